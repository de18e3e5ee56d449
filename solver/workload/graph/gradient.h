/**
 * Gradients: the backward graph of primitives, derived, never written by hand. Each primitive's
 * transpose is made of primitives again, in the form jax gives it.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_GRADIENT_H
#define HV_SOLVER_WORKLOAD_GRAPH_GRADIENT_H

#include "solver/workload/graph/prims.h"

#define HV_NO_TENSOR UINT32_MAX
#define HV_NO_OP     UINT32_MAX /**< hv_prim.op of the derivatives of L by the loss tensors */

/**
 * Appends the backward graph of L = Σ (t²) over the loss tensors to g. Afterwards gradient[t] is
 * the tensor of dL/dt for every tensor t that g had, HV_NO_TENSOR where L does not depend on t or t
 * on none of `wanted`. `gradient` has room for g->n_tensors entries of before. Errors: HV_EINPUT
 * for a primitive that has no gradient here, with its name.
 */
enum hv_status hv_gradient(struct hv_prim_graph *g, const uint32_t *loss, size_t n_loss,
                           const uint32_t *wanted, size_t n_wanted, uint32_t *gradient,
                           struct hv_err *err) HV_NODISCARD;

#endif
