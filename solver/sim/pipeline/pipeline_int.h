/** Declarations shared by the files about priced pipelines. Not for other folders. */
#ifndef HV_SOLVER_SIM_PIPELINE_PIPELINE_INT_H
#define HV_SOLVER_SIM_PIPELINE_PIPELINE_INT_H

#include "solver/sim/pipeline/pipeline.h"

/** True where node y of h equals node x of g, d micro-batches later. */
bool hv__same_node(const struct hv_pipe *g, int32_t x, const struct hv_pipe *h, int32_t y,
                   int32_t d);

#endif
