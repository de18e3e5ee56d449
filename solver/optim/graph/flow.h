/** Maximum flow in a directed graph with real capacities, and the cut that proves it. */
#ifndef HV_SOLVER_OPTIM_GRAPH_FLOW_H
#define HV_SOLVER_OPTIM_GRAPH_FLOW_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** Largest number of nodes and of edges. */
#define HV_FLOW_MAX ((size_t)1 << 22)

/** One edge; capacity ≥ 0, infinity = no limit. */
struct hv_flow_edge {
    size_t from, to;
    double capacity;
};

/** Answer; arrays live in the arena of the call. */
struct hv_flow_result {
    double value;      /**< infinity when a path without limit joins source and sink */
    double cut;        /**< capacity of the edges that leave the source's side */
    double *flow;      /**< one per edge; not set for an infinite value */
    bool *source_side; /**< one per node: reachable from the source in what is left */
    bool proven;       /**< value and cut agree */
};

/**
 * Dinic's algorithm, O(nodes² · edges) at worst. Errors: HV_EINPUT on nodes out of range, source =
 * sink, capacities that are negative or NaN; HV_ELIMIT.
 * Source: E. Dinitz, "Algorithm for solution of a problem of maximum flow in networks" (1970).
 */
enum hv_status hv_flow_max(const struct hv_flow_edge *edges, size_t n_edges, size_t n_nodes,
                           size_t source, size_t sink, struct hv_arena *arena,
                           struct hv_flow_result *out, struct hv_err *err) HV_NODISCARD;

#endif
