/** Inside cost/graph: bytes of activations over the order of kernels. */
#ifndef HV_SOLVER_COST_GRAPH_LIVE_H
#define HV_SOLVER_COST_GRAPH_LIVE_H

#include "solver/cost/graph/kernels.h"

/** Bytes of one device. */
struct hv__live {
    double kept;        /**< from the forward to the backward pass of a micro-batch */
    double weight_only; /**< of these, read by gradients of weights */
    double arriving;    /**< tensors that other operators have written */
    double transient;   /**< on top of `kept`, at the worst moment of either pass */
};
/** Walks the kernels in their order: what a kernel writes lives until its last reader has run.
 * `again`: only what arrives is kept, and the forward pass is repeated before the backward one.
 * Parameters and their gradients are not counted. O(kernels · operands). */
struct hv__live hv__live_bytes(const struct hv_sharding *s, const struct hv__kernels *k,
                               const struct hv_graph_part *part, bool again);

#endif
