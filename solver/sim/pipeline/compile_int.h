/** From an order to a graph: declarations shared by compile.c and sort.c. */
#ifndef HV_SOLVER_SIM_PIPELINE_COMPILE_INT_H
#define HV_SOLVER_SIM_PIPELINE_COMPILE_INT_H

#include "solver/sim/pipeline/pipeline.h"

/** Dependency of the ops of one (backward, pipe, stage) of a chain. */
struct hv__link {
    int32_t stage, rank; /**< stage on the other end, -1 = none, and who runs it */
};

/** Temporary data of the compilation. */
struct hv__compiler {
    const struct hv_schedule *s;
    struct hv_pipe *g;
    int32_t *fwd, *bwd;         /**< node of F and of B or BW by slot, -1 = none */
    int32_t *in_at, *in_edge;   /**< stage edges that end in a stage */
    int32_t *out_at, *out_edge; /**< stage edges that start in a stage */
    struct hv_pipe_edge *edges;
    struct hv__link *links; /**< of a chain: [2 × pipes × stages] */
    int32_t *dep;           /**< of a chain, filled while sorting; else NULL */
    struct hv_arena tables; /**< fwd, bwd, links */
    struct hv_err *err;
};

/** Index of an op's (stage, micro-batch, slice) into fwd and bwd, for a stage of choice. */
static inline size_t hv__slot(const struct hv_schedule *s, int32_t stage, const struct hv_op *op)
{
    int32_t q = op->slice > 0 ? op->slice : 0;
    return ((size_t)stage * (size_t)s->n_micro_batches + (size_t)op->mb) * (size_t)s->n_slices +
           (size_t)q;
}

/** Reports that an op waits for one of `stage` that does not exist. */
enum hv_status hv__missing(const struct hv__compiler *c, const struct hv_op *op, int32_t rank,
                           int32_t stage) HV_NODISCARD;
/** Fills g->stretches, and dep where there is one. Errors: HV_ENO, HV_EINPUT as hv_pipe_compile. */
enum hv_status hv__sort_nodes(struct hv_arena *a, struct hv__compiler *c) HV_NODISCARD;

#endif
