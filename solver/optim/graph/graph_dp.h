/**
 * Choices on the nodes of a graph with costs on nodes and edges: the best choices, or the whole
 * front of time against memory. Exact while tables stay small.
 */
#ifndef HV_SOLVER_OPTIM_GRAPH_GRAPH_DP_H
#define HV_SOLVER_OPTIM_GRAPH_GRAPH_DP_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** A cost of two parts; `b` counts only with `pareto`. Both finite or infinity
 * (= not allowed). */
struct hv_graph_cost {
    double a, b;
};

/** One node: its choices and their costs. */
struct hv_graph_node {
    size_t n_choices;
    const struct hv_graph_cost *cost;
};

/** One edge: cost[choice of u · choices of v + choice of v]. */
struct hv_graph_edge {
    size_t u, v;
    const struct hv_graph_cost *cost;
};

/** Order in which nodes are eliminated. */
enum hv_graph_method {
    HV_GRAPH_ELIMINATE, /**< always the node that leaves the smallest table */
    HV_GRAPH_CHAIN,     /**< in order of the numbers; only chains k – k + 1 are accepted */
    HV_GRAPH_FRONTIER   /**< in order of the numbers; the table is the frontier's */
};

/** An instance; everything is borrowed. */
struct hv_graph_dp {
    size_t n_nodes, n_edges;
    const struct hv_graph_node *nodes;
    const struct hv_graph_edge *edges;
    enum hv_graph_method method;
    bool pareto; /**< the front of (a, b) instead of the least a */
    size_t keep; /**< points per table cell in a front; 0 = all. Fewer make it no longer proven */
};

/** One point of the answer. */
struct hv_graph_point {
    double a, b;
    size_t *choice; /**< one per node */
};

/** Answer; arrays live in the arena of the call. */
struct hv_graph_dp_result {
    bool feasible, proven;
    size_t n_points; /**< 1 unless pareto; rising a, falling b */
    struct hv_graph_point *points;
    size_t width; /**< nodes in the widest table */
};

/** Largest number of cells of one table and of points in all tables. */
#define HV_GRAPH_MAX_CELLS  ((size_t)1 << 22)
#define HV_GRAPH_MAX_POINTS ((size_t)1 << 25)

/**
 * Eliminates nodes one after the other (U. Bertelè and F. Brioschi, "Nonserial Dynamic
 * Programming", 1972); time and memory are exponential in the width only. Errors: HV_EINPUT on bad
 * numbers, or a graph that is not a chain; HV_ELIMIT when a table would exceed the limits above
 * (the message names node and size).
 */
enum hv_status hv_graph_dp_solve(const struct hv_graph_dp *g, struct hv_arena *arena,
                                 struct hv_graph_dp_result *out, struct hv_err *err) HV_NODISCARD;

#endif
