/*
 * Maximum flow: levels by breadth first search, blocking flows along them without recursion.
 * Not here: the meaning of the flow.
 */
#include "solver/optim/graph/flow.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Arc 2e is edge e, arc 2e + 1 its reverse. */
struct net {
    const struct hv_flow_edge *edges;
    size_t n_edges, n_nodes, source, sink;
    size_t *at, *arc; /* arcs of a node: arc[at[v]] … arc[at[v + 1] - 1] */
    double *left;     /* of an arc */
    size_t *level, *next, *queue, *path;
};

static size_t head_of(const struct net *n, size_t arc)
{
    return arc % 2 ? n->edges[arc / 2].from : n->edges[arc / 2].to;
}

static void build(struct net *n, struct hv_arena *a)
{
    n->at = hv_arena_new(a, size_t, n->n_nodes + 2);
    n->arc = hv_arena_new(a, size_t, 2 * n->n_edges);
    n->left = hv_arena_new(a, double, 2 * n->n_edges);
    n->level = hv_arena_new(a, size_t, n->n_nodes);
    n->next = hv_arena_new(a, size_t, n->n_nodes);
    n->queue = hv_arena_new(a, size_t, n->n_nodes);
    n->path = hv_arena_new(a, size_t, n->n_nodes);
    for (size_t e = 0; e < n->n_edges; e++) {
        n->at[n->edges[e].from + 2]++;
        n->at[n->edges[e].to + 2]++;
        n->left[2 * e] = n->edges[e].capacity;
    }
    for (size_t v = 0; v < n->n_nodes; v++) {
        n->at[v + 2] += n->at[v + 1];
    }
    for (size_t e = 0; e < n->n_edges; e++) {
        n->arc[n->at[n->edges[e].from + 1]++] = 2 * e;
        n->arc[n->at[n->edges[e].to + 1]++] = 2 * e + 1;
    }
}

/* Distances from the source over arcs with room (`least` = only arcs with at least that much). */
static bool find_levels(struct net *n, double least)
{
    size_t head = 0, tail = 0;
    for (size_t v = 0; v < n->n_nodes; v++) {
        n->level[v] = SIZE_MAX;
    }
    n->level[n->source] = 0;
    n->queue[tail++] = n->source;
    while (head < tail) {
        size_t v = n->queue[head++];
        for (size_t k = n->at[v]; k < n->at[v + 1]; k++) {
            size_t w = head_of(n, n->arc[k]);
            if (!(n->left[n->arc[k]] > 0 && n->left[n->arc[k]] >= least) ||
                n->level[w] != SIZE_MAX) {
                continue;
            }
            n->level[w] = n->level[v] + 1;
            n->queue[tail++] = w;
        }
    }
    return n->level[n->sink] != SIZE_MAX;
}

/* One path along the levels; its arcs in n->path, their number or 0. */
static size_t find_path(struct net *n)
{
    size_t v = n->source, depth = 0;
    while (v != n->sink) {
        size_t k = n->next[v];
        while (k < n->at[v + 1] &&
               !(n->left[n->arc[k]] > 0 && n->level[head_of(n, n->arc[k])] == n->level[v] + 1)) {
            k++;
        }
        n->next[v] = k;
        if (k < n->at[v + 1]) {
            n->path[depth++] = n->arc[k];
            v = head_of(n, n->arc[k]);
        } else if (depth > 0) {
            v = head_of(n, n->path[--depth] ^ 1);
            n->next[v]++;
        } else {
            return 0;
        }
    }
    return depth;
}

static double blocking_flow(struct net *n)
{
    double sum = 0;
    for (size_t v = 0; v < n->n_nodes; v++) {
        n->next[v] = n->at[v];
    }
    for (size_t depth; (depth = find_path(n)) > 0;) {
        double room = HUGE_VAL;
        for (size_t k = 0; k < depth; k++) {
            room = fmin(room, n->left[n->path[k]]);
        }
        for (size_t k = 0; k < depth; k++) {
            if (!isinf(n->left[n->path[k]])) {
                n->left[n->path[k]] -= room;
            }
            n->left[n->path[k] ^ 1] += room;
        }
        sum += room;
    }
    return sum;
}

static enum hv_status check(const struct net *n, struct hv_err *err)
{
    if (n->n_nodes > HV_FLOW_MAX || n->n_edges > HV_FLOW_MAX) {
        return hv_err_set(err, HV_ELIMIT, "a flow may have at most %zu nodes and edges",
                          HV_FLOW_MAX);
    }
    if (n->source >= n->n_nodes || n->sink >= n->n_nodes || n->source == n->sink) {
        return hv_err_set(err, HV_EINPUT,
                          "expected a source and another node as sink out of %zu nodes",
                          n->n_nodes);
    }
    for (size_t e = 0; e < n->n_edges; e++) {
        if (n->edges[e].from >= n->n_nodes || n->edges[e].to >= n->n_nodes) {
            return hv_err_set(err, HV_EINPUT, "edge %zu: expected nodes out of %zu", e + 1,
                              n->n_nodes);
        }
        if (!(n->edges[e].capacity >= 0)) {
            return hv_err_set(err, HV_EINPUT, "edge %zu: expected a capacity that is not negative",
                              e + 1);
        }
    }
    return HV_OK;
}

enum hv_status hv_flow_max(const struct hv_flow_edge *edges, size_t n_edges, size_t n_nodes,
                           size_t source, size_t sink, struct hv_arena *arena,
                           struct hv_flow_result *out, struct hv_err *err)
{
    struct net n = {
        .edges = edges, .n_edges = n_edges, .n_nodes = n_nodes, .source = source, .sink = sink};
    memset(out, 0, sizeof *out);
    enum hv_status st = check(&n, err);
    if (st != HV_OK) {
        return st;
    }
    build(&n, arena);
    out->flow = hv_arena_new(arena, double, n_edges);
    out->source_side = hv_arena_new(arena, bool, n_nodes);
    bool endless = find_levels(&n, HUGE_VAL);
    while (!endless && find_levels(&n, 0)) {
        out->value += blocking_flow(&n);
    }
    for (size_t v = 0; v < n_nodes; v++) {
        out->source_side[v] = n.level[v] != SIZE_MAX;
    }
    if (endless) {
        out->value = out->cut = HUGE_VAL;
        out->proven = true;
        return HV_OK;
    }
    for (size_t e = 0; e < n_edges; e++) {
        out->flow[e] = n.left[2 * e + 1];
        if (out->source_side[edges[e].from] && !out->source_side[edges[e].to]) {
            out->cut += edges[e].capacity;
        }
    }
    out->proven = fabs(out->cut - out->value) <= 1e-9 * fmax(out->cut, 1e-300);
    return HV_OK;
}
