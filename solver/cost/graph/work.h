/**
 * Inside cost/graph: a range of operators on a rank, solved and timed. What stages and splits of
 * single operators are priced by.
 */
#ifndef HV_SOLVER_COST_GRAPH_WORK_H
#define HV_SOLVER_COST_GRAPH_WORK_H

#include "solver/cost/graph/order.h"
#include "solver/cost/stage/stage_int.h"

/** What is asked for: a range of operators on a rank. */
struct hv__graph_ask {
    struct hv__context *k;
    const struct hv_stage_query *q;
    const struct hv__rank *r;
    struct hv_part_query part;
    size_t from, to;
    bool again;        /**< the forward pass is computed once more */
    int64_t sequences; /**< of the graph's batch; 0: the graph has none */
    struct hv_arena arena;
};

/** Everything that a price is made of. */
struct hv__graph_work {
    struct hv__graph_ask *a;
    struct hv_graph_part part;
    struct hv__mesh_place place;
    struct hv__wires wires; /**< Owner of its memo: the caller */
    struct hv_paths *paths; /**< of the mesh, between several calls; NULL: none are remembered */
    const bool *trained; /**< per tensor of the part: its gradient is of use to somebody; NULL: all
                            that arrive */
    struct hv_sharding sharding;
    struct hv__kernels kernels;
};
/** Times of all passes on one kind of device. */
struct hv__graph_times {
    struct hv__pass_times forward, back, inputs, weights;
    double *end_s; /**< [kernels] in `back` */
};

/** What is asked of the operators of a chunk of the stage of a rank. */
struct hv__graph_ask hv__graph_ask(struct hv__context *k, const struct hv_stage_query *q,
                                   const struct hv__rank *r, size_t chunk);
/** The model's graph for the sequences of a micro-batch, in numbers of the job's precision. Lives
 * in the arena. Errors: HV_ENO where sizes do not follow from that of the batch. */
enum hv_status hv__graph_sized(const struct hv__graph_ask *a, struct hv_arena *arena,
                               struct hv_tensor_graph *out, struct hv_err *err) HV_NODISCARD;
/** Places the mesh and prepares the exchanges on it. Errors: HV_ENO (place.h). */
enum hv_status hv__graph_place(struct hv__graph_ask *a, struct hv__graph_work *out,
                               struct hv_err *err) HV_NODISCARD;
/** Seconds of exchanges on its mesh; of use as long as the work is. */
struct hv_pricing hv__graph_pricing(struct hv__graph_work *w);
/** Solves the operators of w->part, forward and backward, with these layouts given by number of the
 * tensor of the part. Errors: HV_ENO. */
enum hv_status hv__graph_solve(struct hv__graph_work *w, const struct hv_given_layout *given,
                               size_t n_given, struct hv_err *err) HV_NODISCARD;
/** Kernels of solved operators on a kind of device. */
void hv__graph_kernels(struct hv__graph_work *w, const struct hv_device_kind *d);
/** Times all passes; the slowest kind of the rank's devices sets the pace of each. */
enum hv_status hv__graph_time(struct hv__graph_work *w, struct hv__graph_times *out,
                              struct hv_err *err) HV_NODISCARD;

#endif
