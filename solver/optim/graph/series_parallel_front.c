/*
 * Fronts of time and memory of work in a series-parallel graph: one front per part of the tree.
 * Not here: the tree (series_parallel.c).
 */
#include "solver/base/vec.h"
#include "solver/optim/graph/series_parallel.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX

/* A point and its components: two points, or a way to run an edge or a vertex. */
struct point {
    double time, memory;
    size_t left, right; /* points of the pool, NONE for one of a single choice */
    size_t at, way;     /* edge, or number of edges + vertex */
};

/* A front: points of the pool from `first` on. */
struct front {
    size_t first, n;
};

struct folder {
    const struct hv_series_parallel_work *w;
    struct hv_arena scratch;
    HV_VEC(struct point) pool;
    HV_VEC(struct point) made;
    bool thinned;
};

static int by_time(const void *pa, const void *pb)
{
    const struct point *a = pa, *b = pb;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    if (a->memory != b->memory) {
        return a->memory < b->memory ? -1 : 1;
    }
    if (a->left != b->left) {
        return a->left < b->left ? -1 : 1;
    }
    return (a->way > b->way) - (a->way < b->way);
}

/* Moves the undominated points to the pool, at most `keep` of them (0: all). */
static enum hv_status settle(struct folder *f, void **out, struct hv_err *err)
{
    struct front *front = hv_arena_new(&f->scratch, struct front, 1);
    struct point *p = f->made.items;
    size_t kept = 0, keep = f->w->keep;
    if (f->made.n) {
        qsort(p, f->made.n, sizeof *p, by_time);
    }
    for (size_t k = 0; k < f->made.n; k++) {
        if (kept == 0 || p[k].memory < p[kept - 1].memory) {
            p[kept++] = p[k];
        }
    }
    f->thinned = f->thinned || (keep && kept > keep);
    size_t n = keep && kept > keep ? keep : kept;
    if (f->pool.n + n > HV_SERIES_PARALLEL_MAX_POINTS) {
        return hv_err_set(err, HV_ELIMIT, "the fronts have more than %zu points",
                          HV_SERIES_PARALLEL_MAX_POINTS);
    }
    *front = (struct front){f->pool.n, n};
    for (size_t k = 0; k < n; k++) { /* the fastest and the smallest stay */
        hv_vec_push(&f->pool, p[n > 1 ? k * (kept - 1) / (n - 1) : 0]);
    }
    f->made.n = 0;
    *out = front;
    return HV_OK;
}

static enum hv_status single(struct folder *f, const struct hv_series_parallel_choice *c, size_t at,
                             void **out, struct hv_err *err)
{
    for (size_t k = 0; c && k < c->n; k++) {
        hv_vec_push(&f->made,
                    (struct point){c->options[k].time, c->options[k].memory, NONE, NONE, at, k});
    }
    if (f->made.n == 0) {
        hv_vec_push(&f->made, (struct point){0, 0, NONE, NONE, at, 0});
    }
    return settle(f, out, err);
}

/* All sums of two fronts; times are added, or the longer counts. */
static enum hv_status pair(struct folder *f, const struct front *a, const struct front *b, bool add,
                           void **out, struct hv_err *err)
{
    if (a->n > HV_SERIES_PARALLEL_MAX_POINTS / b->n) {
        return hv_err_set(err, HV_ELIMIT, "two fronts of %zu and %zu points are too large", a->n,
                          b->n);
    }
    for (size_t i = a->first; i < a->first + a->n; i++) {
        for (size_t j = b->first; j < b->first + b->n; j++) {
            const struct point *x = &f->pool.items[i], *y = &f->pool.items[j];
            double time = add ? x->time + y->time : fmax(x->time, y->time);
            hv_vec_push(&f->made, (struct point){time, x->memory + y->memory, i, j, NONE, 0});
        }
    }
    return settle(f, out, err);
}

static enum hv_status price_edge(void *ctx, size_t edge, void **out, struct hv_err *err)
{
    struct folder *f = ctx;
    return single(f, f->w->edges ? &f->w->edges[edge] : NULL, edge, out, err);
}

static enum hv_status price_row(void *ctx, size_t vertex, void *left, void *right, void **out,
                                struct hv_err *err)
{
    struct folder *f = ctx;
    const struct hv_series_parallel_choice *c = f->w->vertices ? &f->w->vertices[vertex] : NULL;
    void *middle, *begun;
    enum hv_status st = single(f, c, f->w->graph.n_edges + vertex, &middle, err);
    if (st == HV_OK) {
        st = pair(f, left, middle, true, &begun, err);
    }
    return st == HV_OK ? pair(f, begun, right, true, out, err) : st;
}

static enum hv_status price_side(void *ctx, void *left, void *right, void **out, struct hv_err *err)
{
    struct folder *f = ctx;
    return pair(f, left, right, f->w->shared, out, err);
}

static enum hv_status check_choices(const struct hv_series_parallel_choice *c, size_t n,
                                    const char *what, struct hv_err *err)
{
    for (size_t k = 0; c && k < n; k++) {
        for (size_t o = 0; o < c[k].n; o++) {
            const struct hv_series_parallel_option *x = &c[k].options[o];
            if (!(x->time >= 0) || !(x->memory >= 0) || isinf(x->time + x->memory)) {
                return hv_err_set(
                    err, HV_EINPUT,
                    "%s %zu, option %zu: expected finite numbers that are not negative", what,
                    k + 1, o + 1);
            }
        }
    }
    return HV_OK;
}

/* Reads the choices behind a point. */
static void trace(const struct folder *f, size_t at, struct hv_series_parallel_point *out)
{
    HV_VEC(size_t) todo = {0};
    size_t m = f->w->graph.n_edges;
    hv_vec_push(&todo, at);
    while (todo.n) {
        const struct point *p = &f->pool.items[todo.items[--todo.n]];
        if (p->left != NONE) {
            hv_vec_push(&todo, p->left);
            hv_vec_push(&todo, p->right);
        } else if (p->at < m) {
            out->edge[p->at] = p->way;
        } else {
            out->vertex[p->at - m] = p->way;
        }
    }
    hv_vec_free(&todo);
}

/* The vertices at both ends belong to the row of the whole. */
static enum hv_status fold(struct folder *f, const struct hv_series_parallel_tree *tree,
                           struct front **out, struct hv_err *err)
{
    static const struct hv_series_parallel_ops ops = {price_edge, price_row, price_side};
    const struct hv_series_parallel_graph *g = &f->w->graph;
    const struct hv_series_parallel_choice *v = f->w->vertices;
    void *whole, *first, *last, *begun, *all;
    enum hv_status st = hv_series_parallel_fold(tree, &ops, f, &whole, err);
    if (st == HV_OK) {
        st = single(f, v ? &v[g->source] : NULL, g->n_edges + g->source, &first, err);
    }
    if (st == HV_OK) {
        st = single(f, v ? &v[g->sink] : NULL, g->n_edges + g->sink, &last, err);
    }
    if (st == HV_OK) {
        st = pair(f, first, whole, true, &begun, err);
    }
    if (st == HV_OK) {
        st = pair(f, begun, last, true, &all, err);
    }
    if (st == HV_OK) {
        *out = all;
    }
    return st;
}

enum hv_status hv_series_parallel_solve(const struct hv_series_parallel_work *w,
                                        struct hv_arena *arena,
                                        struct hv_series_parallel_result *out, struct hv_err *err)
{
    struct folder f = {.w = w};
    struct hv_series_parallel_tree tree;
    struct front *all = NULL;
    memset(out, 0, sizeof *out);
    enum hv_status st = hv_series_parallel_decompose(&w->graph, arena, &tree, err);
    if (st == HV_OK) {
        st = check_choices(w->edges, w->graph.n_edges, "edge", err);
    }
    if (st == HV_OK) {
        st = check_choices(w->vertices, w->graph.n_vertices, "vertex", err);
    }
    if (st == HV_OK) {
        st = fold(&f, &tree, &all, err);
    }
    if (st == HV_OK) {
        out->proven = !f.thinned;
        out->n_points = all->n;
        out->points = hv_arena_new(arena, struct hv_series_parallel_point, all->n);
        for (size_t k = 0; k < all->n; k++) {
            struct hv_series_parallel_point *p = &out->points[k];
            p->edge = hv_arena_new(arena, size_t, w->graph.n_edges);
            p->vertex = hv_arena_new(arena, size_t, w->graph.n_vertices);
            p->time = f.pool.items[all->first + k].time;
            p->memory = f.pool.items[all->first + k].memory;
            trace(&f, all->first + k, p);
        }
    }
    hv_vec_free(&f.pool);
    hv_vec_free(&f.made);
    hv_arena_free(&f.scratch);
    return st;
}
