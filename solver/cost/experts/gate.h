/**
 * Gates that choose experts by place: a target for the tokens that go from rank to rank, and a
 * limit on tokens that leave their link domain. Sources: TA-MoE (Chen et al. 2022, dispatch towards
 * a target c_ie; its released gate limits tokens that leave the node), FasterMoE (He et al. 2022,
 * the topology-aware gate: what is above the limit chooses again among the experts of its node).
 * Thread: any.
 */
#ifndef HV_SOLVER_COST_EXPERTS_GATE_H
#define HV_SOLVER_COST_EXPERTS_GATE_H

#include "solver/cost/network/matrix.h"
#include "solver/plan/experts.h"

/** A group whose gate chooses experts by place. */
struct hv__gate {
    size_t ranks, experts;
    int top_k;
    const struct hv_ways *ways;
};
/** True where the plan's gate decides where tokens go between `ep` ranks. `m` may be NULL. */
bool hv__gates_tokens(const struct hv_moe_knobs *m, int ep);
/** Moves tokens[ranks × experts], shares of what a rank sends in the mean, to where the gate lets
 * them go. O(ranks² · experts). */
void hv__gate_tokens(const struct hv_moe_knobs *m, const struct hv__gate *g, double *tokens);

#endif
