/** What the files about priced pipelines share. Not for other rooms. */
#ifndef HV_SOLVER_SIM_PIPELINE_INT_H
#define HV_SOLVER_SIM_PIPELINE_INT_H

#include "solver/sim/pipeline.h"

/** The largest hop among the edges that node n really waited for, 0 = none. */
double hv__waited_hop_s(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                        const struct hv_pipe_run *run, int32_t n);
/** Is node y of h what node x of g is, d micro-batches later? */
bool hv__same_node(const struct hv_pipe *g, int32_t x, const struct hv_pipe *h, int32_t y,
                   int32_t d);

#endif
