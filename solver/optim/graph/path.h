/** Paths over a matrix of costs: the shortest between two nodes, and the best through all of them.
 */
#ifndef HV_SOLVER_OPTIM_GRAPH_PATH_H
#define HV_SOLVER_OPTIM_GRAPH_PATH_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** Largest number of nodes. */
#define HV_PATH_MAX ((size_t)1 << 12)
/** Up to so many nodes a path through all of them is exact. */
#define HV_PATH_EXACT ((size_t)18)

/** Answer; the array lives in the arena of the call. */
struct hv_path_result {
    bool feasible, proven;
    double value, bound; /**< HV_UNKNOWN when there is no path */
    size_t n;            /**< nodes on the path */
    size_t *order;       /**< n nodes */
};

/**
 * Shortest path; cost[u · n + v] ≥ 0, infinity = no edge. Dijkstra, O(n²).
 * Errors: HV_EINPUT on negative costs, NaN, nodes out of range; HV_ELIMIT.
 */
enum hv_status hv_path_shortest(const double *cost, size_t n, size_t from, size_t to,
                                struct hv_arena *arena, struct hv_path_result *out,
                                struct hv_err *err) HV_NODISCARD;

/**
 * The order of all nodes with the least (or, when `heaviest`, the largest) Σ of cost[order[i] · n +
 * order[i + 1]]; the costs need not be symmetric, infinity = never neighbours.
 *
 * Up to HV_PATH_EXACT nodes by dynamic program over subsets, O(n² · 2ⁿ) (M. Held and R. Karp, "A
 * Dynamic Programming Approach to Sequencing Problems", 1962). Beyond that nearest neighbours from
 * every start, then moves of segments and reversals until none helps; the bound lets every node but
 * one take its best neighbour. Errors: HV_EINPUT on NaN; HV_ELIMIT above 4096 nodes.
 */
enum hv_status hv_path_through_all(const double *cost, size_t n, bool heaviest,
                                   struct hv_arena *arena, struct hv_path_result *out,
                                   struct hv_err *err) HV_NODISCARD;

#endif
