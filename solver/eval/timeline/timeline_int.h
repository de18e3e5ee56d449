/** Shared by the files that lay out a timeline. */
#ifndef HV_SOLVER_EVAL_TIMELINE_TIMELINE_INT_H
#define HV_SOLVER_EVAL_TIMELINE_TIMELINE_INT_H

#include "solver/eval/timeline/timeline.h"
#include "solver/eval/train/steps.h"

/** A timeline under construction. */
struct hv__painter {
    const struct hv__lowered *l;
    struct hv_timeline *t;
    struct hv_span *spans; /**< room for those of one lane */
    size_t n_spans;
    const struct hv__path *path;
    int32_t *first_op; /**< [rows] number of the first operation of each */
};

/** A piece of the critical path, known before anything is painted. */
struct hv__path_piece {
    double start_s, end_s;
    int32_t row;  /**< −1: a transfer between rows */
    int32_t node; /**< of its pipeline; −1: none */
    uint8_t kind; /**< enum hv_span_kind; of nodes not set */
};

/** The critical path, in order of time. */
struct hv__path {
    const struct hv__path_piece *pieces;
    size_t n;
    size_t i_pipeline; /**< of its nodes */
    bool *critical;    /**< [nodes of that pipeline + 1] */
};

/** Walks back from the end of the iteration. O(path + edges on it + reductions²). */
struct hv__path hv__find_path(const struct hv__lowered *l, double end_s);
/** True where an operation of a row at the end of the iteration is on the path. O(pieces behind the
 * last node). */
bool hv__path_has(const struct hv__path *p, int32_t row, uint8_t kind, double start_s);
/** Fills hv_timeline.path, after all rows. O(path). */
enum hv_status hv__paint_path(struct hv__painter *p, struct hv_err *err) HV_NODISCARD;

/** Data about the nodes of one pipeline. */
struct hv__node_facts {
    const bool *critical;
    const double *slack_s;
};

/** Lays out the timeline of a timed plan: out->timeline. O(operations + transfers · log). */
enum hv_status hv__timeline(const struct hv__lowered *l, struct hv_verdict *out,
                            struct hv_err *err) HV_NODISCARD;
/** Appends an operation; returns its number. */
int32_t hv__paint_op(struct hv__painter *p, struct hv_timeline_op op);
/** Appends the span of an operation, with what painters show of it. */
void hv__paint_span(struct hv__painter *p, double start_s, double end_s, int32_t id);
/** Name of a rank of a pipeline: "s1", its stage as the plan counts; "s1 turn 0" where ranks of it
 * take micro-batches in turns. */
const char *hv__rank_name(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank);
/** Makes a lane of the spans so far. */
enum hv_status hv__paint_lane(struct hv__painter *p, const char *name, enum hv_resource_kind kind,
                              size_t *out, struct hv_err *err) HV_NODISCARD;

/** Number of transfers of a pipeline that take time: an upper bound of what hv__paint_hops adds.
 * O(edges). */
size_t hv__count_hops(const struct hv__pipeline *pl);
/** Adds the lanes of the transfers between the ranks of a pipeline. O(edges + hops·log hops). */
enum hv_status hv__paint_hops(struct hv__painter *p, size_t i_pipeline,
                              const struct hv__node_facts *facts, struct hv_err *err) HV_NODISCARD;
/** Number of gathers and scatters beside the passes of a pipeline. */
size_t hv__count_tasks(const struct hv__pipeline *pl);
/** Adds the lane of those of a rank, where it has any. O(tasks of it). */
enum hv_status hv__paint_stream(struct hv__painter *p, size_t i_pipeline, size_t rank,
                                struct hv_err *err) HV_NODISCARD;
/** Adds the lanes of the moves beside a pipeline (sim/links). O(moves · lanes). */
enum hv_status hv__paint_moves(struct hv__painter *p, size_t i_pipeline,
                               const struct hv__node_facts *facts, struct hv_err *err) HV_NODISCARD;
/** Finds the dp ranks of a row that differ, with their memory. O(dp + differing · ops). */
enum hv_status hv__paint_parts(struct hv__painter *p, size_t i_pipeline, size_t rank,
                               struct hv_err *err) HV_NODISCARD;
/** Finds the rings of context parallelism in the passes of a rank: row->rings. O(blocks). */
enum hv_status hv__paint_rings(const struct hv__painter *p, const struct hv__pipeline *pl,
                               size_t rank, struct hv_timeline_row *row,
                               struct hv_err *err) HV_NODISCARD;
/** Fills hv_timeline.tracks. O(rows + parts + links). */
void hv__list_tracks(struct hv_timeline *t, struct hv_arena *arena);

#endif
