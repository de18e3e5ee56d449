/** Declarations shared by the files about priced pipelines. Not for other folders. */
#ifndef HV_SOLVER_SIM_PIPELINE_PIPELINE_INT_H
#define HV_SOLVER_SIM_PIPELINE_PIPELINE_INT_H

#include "solver/sim/pipeline/pipeline.h"

/** True where node y of h equals node x of g, d micro-batches later. */
bool hv__same_node(const struct hv_pipe *g, int32_t x, const struct hv_pipe *h, int32_t y,
                   int32_t d);

/** The bytes that a node adds at its start, holds while it runs, and adds at its end. */
struct hv__node_bytes {
    double start, transient, end;
};
/** Those of node n by the tables (memory.c). O(its operations). */
struct hv__node_bytes hv__node_bytes(const struct hv_pipe *g, const struct hv_pipe_memory *mem,
                                     int32_t n);

#endif
