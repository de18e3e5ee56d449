/**
 * Series-parallel graphs: recognition, decomposition into a tree, and evaluation along the tree.
 *
 * A graph with one source and one sink is series-parallel when two reductions leave one edge: two
 * edges between the same vertices become one (parallel), and a vertex with one edge in and one out
 * goes into an edge (series). J. Valdes, R. E. Tarjan and E. L. Lawler, "The recognition of series
 * parallel digraphs", SIAM J. Comput. 11 (1982).
 */
#ifndef HV_SOLVER_OPTIM_GRAPH_SERIES_PARALLEL_H
#define HV_SOLVER_OPTIM_GRAPH_SERIES_PARALLEL_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** A directed edge between vertices. */
struct hv_series_parallel_edge {
    size_t from, to;
};

/** A graph; parallel edges are allowed. Everything is borrowed. */
struct hv_series_parallel_graph {
    size_t n_vertices, n_edges;
    const struct hv_series_parallel_edge *edges;
    size_t source, sink;
};

/** Kind of a part of the graph. */
enum hv_series_parallel_kind {
    HV_SERIES_PARALLEL_EDGE, /**< one edge */
    HV_SERIES_PARALLEL_ROW,  /**< left, then the vertex, then right */
    HV_SERIES_PARALLEL_SIDE, /**< left beside right */
};

/** A part of the graph between two vertices. */
struct hv_series_parallel_part {
    enum hv_series_parallel_kind kind;
    size_t from, to;
    size_t edge;        /**< HV_SERIES_PARALLEL_EDGE: its number */
    size_t vertex;      /**< HV_SERIES_PARALLEL_ROW: the vertex between */
    size_t left, right; /**< numbers of parts */
};

/** The tree; the arrays live in the arena of the call. */
struct hv_series_parallel_tree {
    bool complete; /**< the whole graph is one part, the last; else it is not series-parallel */
    size_t n;      /**< parts, each behind its own parts */
    struct hv_series_parallel_part *parts;
    size_t n_left; /**< edges that no reduction removes; 1 when complete */
};

/** Largest number of vertices and of edges. */
#define HV_SERIES_PARALLEL_MAX ((size_t)1 << 24)

/**
 * Takes a graph apart. O(vertices + edges). A graph that is not series-parallel is not an error.
 * Errors: HV_EINPUT for an edge or terminal out of range or equal terminals; HV_ELIMIT.
 */
enum hv_status hv_series_parallel_decompose(const struct hv_series_parallel_graph *g,
                                            struct hv_arena *arena,
                                            struct hv_series_parallel_tree *out,
                                            struct hv_err *err) HV_NODISCARD;

/** Callbacks that evaluate parts; every function returns a value of the caller's type, or an error.
 */
struct hv_series_parallel_ops {
    /** Value of an edge. */
    enum hv_status (*edge)(void *ctx, size_t edge, void **out, struct hv_err *err);
    /** Value of left, the vertex and right one after the other. */
    enum hv_status (*row)(void *ctx, size_t vertex, void *left, void *right, void **out,
                          struct hv_err *err);
    /** Value of left and right side by side. */
    enum hv_status (*side)(void *ctx, void *left, void *right, void **out, struct hv_err *err);
};

/**
 * Value of a complete tree. *out = value of the whole. O(parts) calls.
 * Errors: what the functions return; HV_EINPUT for a tree that is not complete.
 */
enum hv_status hv_series_parallel_fold(const struct hv_series_parallel_tree *tree,
                                       const struct hv_series_parallel_ops *ops, void *ctx,
                                       void **out, struct hv_err *err) HV_NODISCARD;

/** One way to run an edge or a vertex. */
struct hv_series_parallel_option {
    double time, memory; /**< finite, ≥ 0 */
};

/** The ways to run an edge or a vertex; none = no cost. */
struct hv_series_parallel_choice {
    size_t n;
    const struct hv_series_parallel_option *options;
};

/** A graph of work: every edge and vertex is run in one of its ways. */
struct hv_series_parallel_work {
    struct hv_series_parallel_graph graph;
    const struct hv_series_parallel_choice *edges;    /**< one per edge, or NULL */
    const struct hv_series_parallel_choice *vertices; /**< one per vertex, or NULL */
    bool
        shared; /**< parallel parts share one device: times add up; otherwise the longest decides */
    size_t keep; /**< points per part; 0 = all. Fewer make it no longer proven */
};

/** One point of the front. */
struct hv_series_parallel_point {
    double time, memory;
    size_t *edge, *vertex; /**< the ways chosen; 0 where there are none */
};

/** Answer; arrays live in the arena of the call. */
struct hv_series_parallel_result {
    bool proven;     /**< no point is missing */
    size_t n_points; /**< rising time, falling memory */
    struct hv_series_parallel_point *points;
};

/** Largest number of points of all fronts, and of sums computed for one part. */
#define HV_SERIES_PARALLEL_MAX_POINTS ((size_t)1 << 23)

/**
 * The front of the time from source to sink against the memory of all work: times add up in a row,
 * memory always. Exact without `keep`: every part has its own Pareto front.
 * Errors: HV_EINPUT for bad numbers or a graph that is not series-parallel; HV_ELIMIT.
 */
enum hv_status hv_series_parallel_solve(const struct hv_series_parallel_work *w,
                                        struct hv_arena *arena,
                                        struct hv_series_parallel_result *out,
                                        struct hv_err *err) HV_NODISCARD;

#endif
