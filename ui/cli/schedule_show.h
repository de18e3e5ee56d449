/**
 * The results of `hetviz schedule` and their output formats: text, character chart, JSON, pictures,
 * trace. Only percentages are computed here.
 */
#ifndef HV_UI_CLI_SCHEDULE_SHOW_H
#define HV_UI_CLI_SCHEDULE_SHOW_H

#include "solver/sim/pipeline/pipeline.h"
#include "solver/sim/pipeline/steady.h"
#include "ui/command/command.h"

/** Durations of one stage and of a hop, as `--times` gives them. */
struct hv_schedule_times {
    double f, b, w, c;
};

/** Everything that is printed. Owner: the arena it was computed in. */
struct hv_schedule_shown {
    const char *name;
    struct hv_schedule_times times;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
    const struct hv_pipe_rank *idle; /**< [ranks] */
    struct hv_steady steady;         /**< micro_batches 0: there is none */
    const int32_t *inflight;         /**< [ranks] */
    const int32_t *gathers;          /**< [ranks] of sharded chunks; NULL: not asked for */
    const int32_t *reductions;       /**< [ranks] of their gradients, or NULL */
    const double *scale;             /**< [stages] factors on the times, or NULL */
};

/** A makespan extrapolated from smaller ones. */
struct hv_schedule_told {
    const char *name;
    struct hv_schedule_times times;
    int32_t ranks, chunks;
    int64_t micro_batches;
    struct hv_extrapolated x;
    double longest_span_s, work_s; /**< work of one rank */
};

/** Prints the result, or writes it to files, according to the options of the command. */
enum hv_status hv_schedule_show(struct hv_args *args, const struct hv_schedule_shown *r,
                                struct hv_arena *arena, struct hv_err *err) HV_NODISCARD;
/** The same for a schedule too large to be simulated in full: text or JSON. */
enum hv_status hv_schedule_show_told(struct hv_args *args, const struct hv_schedule_told *t,
                                     struct hv_err *err) HV_NODISCARD;

/** Appends the order as a chart of characters, `columns` of time wide at most. */
void hv_schedule_chart(const struct hv_schedule_shown *r, int columns, struct hv_str *out);

#endif
