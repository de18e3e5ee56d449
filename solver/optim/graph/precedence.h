/**
 * Graphs of precedence: orders, sets that are closed to the front, sets without precedence, and
 * what an order holds at a time.
 */
#ifndef HV_SOLVER_OPTIM_GRAPH_PRECEDENCE_H
#define HV_SOLVER_OPTIM_GRAPH_PRECEDENCE_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** `from` comes before `to`. */
struct hv_precedence_edge {
    size_t from, to;
};
/** A graph; edges may repeat. Everything is borrowed. */
struct hv_precedence {
    size_t n_nodes, n_edges;
    const struct hv_precedence_edge *edges;
};

/** Largest number of nodes and of edges, and of sets. */
#define HV_PRECEDENCE_MAX      ((size_t)1 << 24)
#define HV_PRECEDENCE_MAX_SETS ((size_t)1 << 20)

/**
 * An order in which every node stands behind those before it; of several that could be next the one
 * with the smallest number, so nodes that are in such an order already keep it. *order: n_nodes
 * numbers in the arena. O((nodes + edges) log nodes). Errors: HV_EINPUT for edges out of range and
 * cycles (with a node on one); HV_ELIMIT.
 */
enum hv_status hv_precedence_order(const struct hv_precedence *g, struct hv_arena *arena,
                                   size_t **order, struct hv_err *err) HV_NODISCARD;

/** Sets of nodes as bits: set i is bits[i * n_words] …, node k is bit k % 64 of word k / 64. */
struct hv_node_sets {
    size_t n, n_words;
    uint64_t *bits;
};
/**
 * All ideals (down-sets): sets that hold with a node all nodes before it. The empty one first, then
 * by number of nodes; at most `most` (at most HV_PRECEDENCE_MAX_SETS). In the arena. O(ideals ·
 * nodes). Errors: as above; HV_ELIMIT where there are more.
 */
enum hv_status hv_precedence_ideals(const struct hv_precedence *g, size_t most,
                                    struct hv_arena *arena, struct hv_node_sets *out,
                                    struct hv_err *err) HV_NODISCARD;
/** Turns each ideal into its last nodes, those that none of the set comes behind: an antichain. All
 * antichains arise, each once (R. P. Dilworth). */
void hv_precedence_antichains(const struct hv_precedence *g, struct hv_node_sets *ideals);

/**
 * Bytes that are held while each node of an order runs: results that were written and are still
 * read later, or by nobody (results of the whole), and its own. bytes[node] ≥ 0; held[n_nodes].
 * Returns the largest. Errors of the order are not looked for: it comes from hv_precedence_order or
 * is checked by hv_precedence_is_order.
 */
double hv_precedence_held(const struct hv_precedence *g, const size_t *order, const double *bytes,
                          struct hv_arena *arena, double *held);
/** True where the n_nodes numbers are each node once, behind those before it. */
bool hv_precedence_is_order(const struct hv_precedence *g, const size_t *order,
                            struct hv_arena *arena);

#endif
