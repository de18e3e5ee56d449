/*
 * Maximum cycle ratio: starting from ratio 0, each round finds a cycle that is longer than the
 * ratio allows, and takes that cycle's own ratio; the last one found is the maximum.
 */
#include "solver/sim/cycle.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct ratio {
    const struct hv_cycle_edge *edges;
    size_t n_edges;
    int32_t n;
    double lambda;
    double *far;   /* longest path to each node at this lambda */
    int32_t *into; /* its last edge, -1 = none */
    int32_t *mark;
};

/* An edge of a cycle of last edges; -1: there is none. O(nodes). */
static int32_t find_circle(struct ratio *r)
{
    memset(r->mark, 0, (size_t)r->n * sizeof *r->mark);
    for (int32_t s = 0; s < r->n; s++) {
        int32_t v = s;
        while (r->mark[v] == 0 && r->into[v] >= 0) {
            r->mark[v] = s + 1;
            v = r->edges[r->into[v]].from;
        }
        if (r->mark[v] == s + 1) {
            return r->into[v];
        }
        r->mark[v] = r->mark[v] ? r->mark[v] : s + 1;
    }
    return -1;
}

/* Lengthens paths until nothing changes (returns -1) or a path closes a cycle (returns one of its
 * edges). */
static int32_t relax(struct ratio *r)
{
    double scale = 0;
    memset(r->far, 0, (size_t)r->n * sizeof *r->far);
    for (int32_t v = 0; v < r->n; v++) {
        r->into[v] = -1;
    }
    for (size_t e = 0; e < r->n_edges; e++) {
        scale = fmax(scale, fabs(r->edges[e].weight_s));
    }
    double eps = 1e-12 * (scale + r->lambda);
    for (int32_t round = 0; round <= r->n; round++) {
        bool changed = false;
        for (size_t e = 0; e < r->n_edges; e++) {
            const struct hv_cycle_edge *x = &r->edges[e];
            double to = r->far[x->from] + x->weight_s - r->lambda * x->tokens;
            if (to > r->far[x->to] + eps) {
                r->far[x->to] = to;
                r->into[x->to] = (int32_t)e;
                changed = true;
            }
        }
        int32_t edge = changed ? find_circle(r) : -1;
        if (!changed || edge >= 0) {
            return edge;
        }
    }
    return -1;
}

/* Lists the cycle that ends with the edge, from its end, and sets lambda to its ratio. Errors:
 * HV_ENO where it has no token. */
static enum hv_status take_circle(struct ratio *r, int32_t edge, int32_t *circle, size_t *len,
                                  struct hv_err *err)
{
    double weight = 0;
    int64_t tokens = 0;
    int32_t e = edge;
    *len = 0;
    do {
        weight += r->edges[e].weight_s;
        tokens += r->edges[e].tokens;
        circle[(*len)++] = e;
        e = r->into[r->edges[e].from];
    } while (e != edge);
    if (tokens <= 0) {
        return hv_err_set(err, HV_ENO, "a circle of %zu steps waits for itself", *len);
    }
    r->lambda = weight / (double)tokens;
    return HV_OK;
}

enum hv_status hv_cycle_ratio(struct hv_arena *a, const struct hv_cycle_edge *edges, size_t n_edges,
                              int32_t n_nodes, double *out_s, const int32_t **path, size_t *n_path,
                              struct hv_err *err)
{
    size_t n = (size_t)n_nodes;
    struct ratio r = {.edges = edges, .n_edges = n_edges, .n = n_nodes};
    int32_t *circle = hv_arena_new(a, int32_t, n + 1);
    size_t len = 0;
    r.far = hv_xcalloc(n + 1, sizeof *r.far);
    r.into = hv_xcalloc(2 * n + 2, sizeof *r.into);
    r.mark = r.into + n + 1;
    enum hv_status st = HV_OK;
    for (int32_t edge = relax(&r); edge >= 0 && st == HV_OK; edge = st ? -1 : relax(&r)) {
        st = take_circle(&r, edge, circle, &len, err);
    }
    if (st == HV_OK && len == 0) {
        st = hv_err_set(err, HV_ENO, "nothing repeats: there is no cycle with a weight");
    }
    for (size_t i = 0; i < len / 2; i++) { /* found from its end */
        int32_t t = circle[i];
        circle[i] = circle[len - 1 - i];
        circle[len - 1 - i] = t;
    }
    *out_s = r.lambda;
    if (path) {
        *path = circle;
        *n_path = len;
    }
    free(r.far);
    free(r.into);
    return st;
}
