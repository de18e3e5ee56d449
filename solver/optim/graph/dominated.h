/**
 * Choices on a graph that another choice of the same node can always replace: an exact reduction
 * before elimination (criterion of R. F. Goldstein, "Efficient rotamer elimination applied to
 * protein side-chains", Biophysical Journal 66, 1994).
 */
#ifndef HV_SOLVER_OPTIM_GRAPH_DOMINATED_H
#define HV_SOLVER_OPTIM_GRAPH_DOMINATED_H

#include "solver/optim/graph/graph_dp.h"

#include <stdint.h>

/** An instance with the choices that are left. Everything lives in the arena of the call. */
struct hv_graph_reduced {
    struct hv_graph_dp g;
    uint32_t **kept; /**< per node: choice of g → choice of the whole instance */
};

/**
 * Takes out choices until none is found: r of node v goes where a choice t costs at most as much as
 * r with every choice of every neighbour together, cost(r) − cost(t) + Σ over edges of the least
 * difference ≥ 0, in both costs where fronts are asked for. The least value, and every point of a
 * front, stays. Of equal choices the one with the least number stays. Only the 16 cheapest choices
 * of a node are tried as t, so that a round takes O(Σ nodes · choices · 16 · Σ choices of
 * neighbours).
 */
void hv_graph_reduce(const struct hv_graph_dp *whole, struct hv_arena *arena,
                     struct hv_graph_reduced *out);

#endif
