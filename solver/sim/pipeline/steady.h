/**
 * What a pipeline settles into: the exact period of its steady state (a cycle mean of max-plus
 * algebra; Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", 1992, chapter 3), and
 * with it the time of more micro-batches than anybody wants to lay out.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_STEADY_H
#define HV_SOLVER_SIM_PIPELINE_STEADY_H

#include "solver/sim/pipeline/pipeline.h"

/** `to` starts at least weight_s after the start of `from`, `tokens` periods ago. */
struct hv_cycle_edge {
    int32_t from, to;
    int32_t tokens; /**< may be negative where no circle's sum is */
    double weight_s;
};

/**
 * Largest ratio of weight to tokens over all circles: the shortest period with which all edges can
 * be kept. *path (may be NULL) gets the edges of a circle that reaches it, in order, from the
 * arena. Errors: HV_ENO when a circle has weight and no tokens (a deadlock), or there is no circle.
 * Each round is O(nodes · edges) at worst and usually O(edges); few rounds.
 */
enum hv_status hv_cycle_ratio(struct hv_arena *a, const struct hv_cycle_edge *edges, size_t n_edges,
                              int32_t n_nodes, double *out_s, const int32_t **path, size_t *n_path,
                              struct hv_err *err) HV_NODISCARD;

/** The steady state of a pipeline. */
struct hv_steady {
    double period_s;       /**< of `micro_batches` more */
    int32_t micro_batches; /**< after which every rank repeats itself */
    double per_micro_batch_s;
    int32_t n_ranks; /**< ranks on the circle that sets the pace */
    int32_t rank; /**< the lowest of them, -1 = not known; with n_ranks 1 it is busy all the time,
                     or waits only for itself */
};

/**
 * The steady state of a compiled pipeline: what it would settle into if its middle went on for
 * ever. Errors: HV_ENO where the middle does not repeat (all forwards before all backwards, or too
 * few micro-batches), or where micro-batches differ. O(nodes of a period · edges) per round.
 */
enum hv_status hv_pipe_steady(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                              struct hv_steady *out, struct hv_err *err) HV_NODISCARD;

/** A makespan told from smaller ones. */
struct hv_extrapolated {
    double makespan_s;
    int32_t from_micro_batches; /**< the largest that was laid out */
    struct hv_steady steady;
    bool exact; /**< it was laid out in full, proved (fold.h), or four sizes in a row grew by the
                   period exactly */
};

/**
 * Time of a schedule for any number of micro-batches: lays out small numbers until the makespan
 * grows by the steady period, then adds periods. `in->micro_batches` is ignored; durations: stage_s
 * and hop_all_s of `c`. Where the middle of an order does not repeat, the period is what p more
 * micro-batches cost. Errors: those of hv_schedule_make and hv_pipe_compile.
 */
enum hv_status hv_schedule_extrapolate(const struct hv_schedule_input *in,
                                       const struct hv_pipe_cost *c, int64_t micro_batches,
                                       struct hv_extrapolated *out,
                                       struct hv_err *err) HV_NODISCARD;

#endif
