/** Multilevel k-way partition of a weighted graph: little weight cut, balanced parts. Heuristic. */
#ifndef HV_SOLVER_OPTIM_GRAPH_PARTITION_H
#define HV_SOLVER_OPTIM_GRAPH_PARTITION_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Largest number of nodes and of edges. */
#define HV_GRAPH_PARTITION_MAX ((size_t)1 << 22)
/** Largest number of parts. */
#define HV_GRAPH_PARTITION_MAX_PARTS ((size_t)1 << 10)

/** An undirected edge; equal pairs add up, weight ≥ 0. */
struct hv_graph_partition_edge {
    size_t u, v;
    double weight;
};

/** An instance; everything is borrowed. */
struct hv_graph_partition {
    size_t n_nodes, n_edges, n_parts;
    const double *weight; /**< n_nodes numbers ≥ 0; NULL = 1 each */
    const struct hv_graph_partition_edge *edges;
    const double *share; /**< n_parts: target shares of the weight; NULL = equal */
    double tolerance;    /**< a part may have (1 + tolerance) times its share */
    uint64_t seed;
};

/** Answer; arrays live in the arena of the call. */
struct hv_graph_partition_result {
    double cut;    /**< Σ weight of edges between different parts */
    double excess; /**< largest load above its allowed one, 0 when all parts keep the tolerance */
    size_t *part;  /**< one per node */
    double *load;  /**< one per part */
};

/**
 * Coarsens by heavy-edge matching, grows parts on the coarsest graph from several starts and
 * refines on the way back by moves of single nodes (after B. Hendrickson and R. Leland, "A
 * Multilevel Algorithm for Partitioning Graphs", 1995). O((nodes + edges) · log nodes · passes).
 * Deterministic for a seed. Errors: HV_EINPUT on bad numbers; HV_ELIMIT.
 */
enum hv_status hv_graph_partition_solve(const struct hv_graph_partition *g, struct hv_arena *arena,
                                        struct hv_graph_partition_result *out,
                                        struct hv_err *err) HV_NODISCARD;

#endif
