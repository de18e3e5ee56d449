/*
 * Series-parallel graphs: reductions, and folding a value along the tree that they leave.
 * Not here: fronts of time and memory (series_parallel_front.c), other graphs (graph_dp.c).
 */
#include "solver/optim/graph/series_parallel.h"
#include "solver/base/vec.h"
#include <stdint.h>
#include <string.h>

/* An edge of the partly reduced graph. */
struct live {
    size_t from, to, part;
    bool gone;
};

struct reducer {
    const struct hv_series_parallel_graph *g;
    HV_VEC(struct hv_series_parallel_part) parts;
    struct live *edges;
    size_t n_edges, n_live;
    size_t *table, mask;             /* (from, to) → edge + 1; removed vertices never return */
    size_t *n_in, *n_out, *in, *out; /* of a vertex: number of edges, and all of them xor-ed */
    size_t *todo, n_todo;
    bool *queued;
};

static size_t add_part(struct reducer *r, struct hv_series_parallel_part p)
{
    hv_vec_push(&r->parts, p);
    return r->parts.n - 1;
}

/* The slot of an edge between two vertices, or the empty slot where it belongs. */
static size_t find_slot(const struct reducer *r, size_t from, size_t to)
{
    uint64_t h = ((uint64_t)from * 0x9e3779b97f4a7c15u) ^ ((uint64_t)to * 0xc2b2ae3d27d4eb4fu);
    size_t at = (size_t)(h >> 20) & r->mask;
    while (r->table[at]) {
        const struct live *e = &r->edges[r->table[at] - 1];
        if (e->from == from && e->to == to && !e->gone) {
            break;
        }
        at = (at + 1) & r->mask;
    }
    return at;
}

static void look_at(struct reducer *r, size_t v)
{
    bool inner = v != r->g->source && v != r->g->sink;
    if (inner && !r->queued[v] && r->n_in[v] == 1 && r->n_out[v] == 1) {
        r->queued[v] = true;
        r->todo[r->n_todo++] = v;
    }
}

/* Puts a part between two vertices, beside the one that is there. */
static void add_edge(struct reducer *r, size_t from, size_t to, size_t part)
{
    size_t slot = find_slot(r, from, to);
    if (r->table[slot]) {
        struct live *e = &r->edges[r->table[slot] - 1];
        e->part = add_part(r, (struct hv_series_parallel_part){.kind = HV_SERIES_PARALLEL_SIDE,
                                                               .from = from,
                                                               .to = to,
                                                               .left = e->part,
                                                               .right = part});
        return;
    }
    size_t e = r->n_edges++;
    r->table[slot] = e + 1;
    r->edges[e] = (struct live){from, to, part, false};
    r->n_live++;
    r->n_out[from]++;
    r->out[from] ^= e;
    r->n_in[to]++;
    r->in[to] ^= e;
}

static void remove_edge(struct reducer *r, size_t e)
{
    struct live *x = &r->edges[e];
    x->gone = true;
    r->n_live--;
    r->n_out[x->from]--;
    r->out[x->from] ^= e;
    r->n_in[x->to]--;
    r->in[x->to] ^= e;
}

/* A vertex with one edge in and one out becomes part of an edge. */
static void reduce_vertex(struct reducer *r, size_t v)
{
    size_t in = r->in[v], out = r->out[v], from = r->edges[in].from, to = r->edges[out].to;
    if (r->n_in[v] != 1 || r->n_out[v] != 1 || from == to) {
        return; /* a cycle stays */
    }
    size_t part = add_part(r, (struct hv_series_parallel_part){.kind = HV_SERIES_PARALLEL_ROW,
                                                               .from = from,
                                                               .to = to,
                                                               .vertex = v,
                                                               .left = r->edges[in].part,
                                                               .right = r->edges[out].part});
    remove_edge(r, in);
    remove_edge(r, out);
    add_edge(r, from, to, part);
    look_at(r, from);
    look_at(r, to);
}

static enum hv_status check(const struct hv_series_parallel_graph *g, struct hv_err *err)
{
    if (g->n_vertices > HV_SERIES_PARALLEL_MAX || g->n_edges > HV_SERIES_PARALLEL_MAX) {
        return hv_err_set(err, HV_ELIMIT, "%zu vertices and %zu edges: at most %zu of each",
                          g->n_vertices, g->n_edges, HV_SERIES_PARALLEL_MAX);
    }
    if (g->source >= g->n_vertices || g->sink >= g->n_vertices || g->source == g->sink) {
        return hv_err_set(err, HV_EINPUT,
                          "expected a source and a sink, two different vertices out of %zu",
                          g->n_vertices);
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        if (g->edges[e].from >= g->n_vertices || g->edges[e].to >= g->n_vertices) {
            return hv_err_set(err, HV_EINPUT, "edge %zu: expected vertices below %zu", e + 1,
                              g->n_vertices);
        }
    }
    return HV_OK;
}

static void begin(struct reducer *r, struct hv_arena *a)
{
    size_t n = r->g->n_vertices, m = r->g->n_edges + n, slots = 64;
    while (slots < 4 * m) {
        slots *= 2;
    }
    r->mask = slots - 1;
    r->table = hv_arena_new(a, size_t, slots);
    r->edges = hv_arena_new(a, struct live, m);
    r->n_in = hv_arena_new(a, size_t, n);
    r->n_out = hv_arena_new(a, size_t, n);
    r->in = hv_arena_new(a, size_t, n);
    r->out = hv_arena_new(a, size_t, n);
    r->todo = hv_arena_new(a, size_t, n);
    r->queued = hv_arena_new(a, bool, n);
}

enum hv_status hv_series_parallel_decompose(const struct hv_series_parallel_graph *g,
                                            struct hv_arena *arena,
                                            struct hv_series_parallel_tree *out, struct hv_err *err)
{
    struct reducer r = {.g = g};
    struct hv_arena scratch = {0};
    memset(out, 0, sizeof *out);
    enum hv_status st = check(g, err);
    if (st != HV_OK) {
        return st;
    }
    begin(&r, &scratch);
    for (size_t e = 0; e < g->n_edges; e++) {
        const struct hv_series_parallel_edge *x = &g->edges[e];
        add_edge(&r, x->from, x->to,
                 add_part(&r, (struct hv_series_parallel_part){.kind = HV_SERIES_PARALLEL_EDGE,
                                                               .from = x->from,
                                                               .to = x->to,
                                                               .edge = e}));
    }
    for (size_t v = 0; v < g->n_vertices; v++) {
        look_at(&r, v);
    }
    for (size_t k = 0; k < r.n_todo; k++) {
        reduce_vertex(&r, r.todo[k]);
    }
    size_t reduced = 0;
    for (size_t k = 0; k < r.parts.n; k++) {
        reduced += r.parts.items[k].kind == HV_SERIES_PARALLEL_ROW;
    }
    const struct live *last = r.n_edges ? &r.edges[r.n_edges - 1] : NULL;
    for (size_t e = r.n_edges; e-- > 0 && last->gone;) {
        last = &r.edges[e];
    }
    out->n = r.parts.n;
    out->n_left = r.n_live;
    out->parts = hv_arena_copy(arena, r.parts.items, r.parts.n, sizeof *r.parts.items);
    out->complete = r.n_live == 1 && last->from == g->source && last->to == g->sink &&
                    last->part + 1 == r.parts.n && reduced + 2 == g->n_vertices;
    hv_vec_free(&r.parts);
    hv_arena_free(&scratch);
    return HV_OK;
}

enum hv_status hv_series_parallel_fold(const struct hv_series_parallel_tree *tree,
                                       const struct hv_series_parallel_ops *ops, void *ctx,
                                       void **out, struct hv_err *err)
{
    struct hv_arena scratch = {0};
    enum hv_status st = HV_OK;
    if (!tree->complete) {
        return hv_err_set(err, HV_EINPUT,
                          "the graph is not series-parallel: %zu edges are left of it",
                          tree->n_left);
    }
    void **value = hv_arena_new(&scratch, void *, tree->n);
    for (size_t k = 0; k < tree->n && st == HV_OK; k++) {
        const struct hv_series_parallel_part *p = &tree->parts[k];
        switch (p->kind) {
        case HV_SERIES_PARALLEL_EDGE:
            st = ops->edge(ctx, p->edge, &value[k], err);
            break;
        case HV_SERIES_PARALLEL_ROW:
            st = ops->row(ctx, p->vertex, value[p->left], value[p->right], &value[k], err);
            break;
        case HV_SERIES_PARALLEL_SIDE:
            st = ops->side(ctx, value[p->left], value[p->right], &value[k], err);
            break;
        }
    }
    if (st == HV_OK) {
        *out = value[tree->n - 1];
    }
    hv_arena_free(&scratch);
    return st;
}
