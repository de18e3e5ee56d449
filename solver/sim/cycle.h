/**
 * Maximum cycle ratio of a weighted graph: the period of a repeating schedule in max-plus algebra.
 * Source: Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", 1992, chapter 3.
 */
#ifndef HV_SOLVER_SIM_CYCLE_H
#define HV_SOLVER_SIM_CYCLE_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stddef.h>
#include <stdint.h>

/** `to` starts at least weight_s after the start of `from`, `tokens` periods ago. */
struct hv_cycle_edge {
    int32_t from, to;
    int32_t tokens; /**< may be negative where no cycle's sum is */
    double weight_s;
};

/**
 * The maximum over all cycles of weight divided by tokens: the shortest period that satisfies every
 * edge. *path (may be NULL) gets the edges of a cycle that attains it, in order; owner: the arena.
 * Errors: HV_ENO where a cycle has weight and no tokens (a deadlock), or there is no cycle.
 * Each round is O(nodes · edges) at worst and usually O(edges); few rounds.
 */
enum hv_status hv_cycle_ratio(struct hv_arena *a, const struct hv_cycle_edge *edges, size_t n_edges,
                              int32_t n_nodes, double *out_s, const int32_t **path, size_t *n_path,
                              struct hv_err *err) HV_NODISCARD;

#endif
