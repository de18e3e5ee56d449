/*
 * Multilevel graph partition: coarsening, growing, refinement.
 * Not here: the meaning of nodes and parts.
 */
#include "solver/optim/graph/partition.h"
#include "solver/base/rng.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define NONE   SIZE_MAX
#define TRIES  12
#define PASSES 12
#define LEVELS 40

/* A graph of one level, as lists of neighbours. */
struct level {
    size_t n, *at, *to, *up; /* up: node → its node on the coarser level */
    double *weight, *edge;
};

/* Work space of the refinement, shared by all levels. */
struct work {
    const struct hv_graph_partition *g;
    struct hv_arena *arena;
    struct hv_rng rng;
    double *load, *most, *pull; /* per part: weight, allowed weight, connection of a node */
    size_t *order, *touched;
};

static void shuffle(struct work *w, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        w->order[k] = k;
    }
    for (size_t k = n; k > 1; k--) {
        size_t j = (size_t)hv_rng_below(&w->rng, k), keep = w->order[k - 1];
        w->order[k - 1] = w->order[j];
        w->order[j] = keep;
    }
}

/* Lists of neighbours from pairs; equal pairs are added up, loops dropped. */
static void build(struct hv_arena *a, const struct hv_graph_partition_edge *e, size_t n_edges,
                  struct level *l)
{
    size_t n = l->n, *mark = hv_arena_new(a, size_t, n), kept = 0;
    l->at = hv_arena_new(a, size_t, n + 2);
    l->to = hv_arena_new(a, size_t, 2 * n_edges);
    l->edge = hv_arena_new(a, double, 2 * n_edges);
    for (size_t k = 0; k < n_edges; k++) {
        l->at[e[k].u + 2] += e[k].u != e[k].v;
        l->at[e[k].v + 2] += e[k].u != e[k].v;
    }
    for (size_t v = 0; v < n; v++) {
        l->at[v + 2] += l->at[v + 1];
    }
    for (size_t k = 0; k < n_edges; k++) {
        if (e[k].u == e[k].v) {
            continue;
        }
        size_t i = l->at[e[k].u + 1]++, j = l->at[e[k].v + 1]++;
        l->to[i] = e[k].v;
        l->to[j] = e[k].u;
        l->edge[i] = l->edge[j] = e[k].weight;
    }
    for (size_t v = 0, begin = 0; v < n; v++) { /* packs the lists to the front */
        size_t first = kept, end = l->at[v + 1];
        for (size_t k = begin; k < end; k++) {
            size_t seen = mark[l->to[k]];
            if (seen > first && seen <= kept && l->to[seen - 1] == l->to[k]) {
                l->edge[seen - 1] += l->edge[k];
                continue;
            }
            l->to[kept] = l->to[k];
            l->edge[kept] = l->edge[k];
            mark[l->to[k]] = ++kept;
        }
        begin = end;
        l->at[v] = first;
    }
    l->at[n] = kept;
}

/* Joins every node with the free neighbour of the heaviest edge; returns the coarser size. */
static size_t match(struct work *w, struct level *l, double heaviest)
{
    size_t n = 0;
    l->up = hv_arena_new(w->arena, size_t, l->n);
    for (size_t v = 0; v < l->n; v++) {
        l->up[v] = NONE;
    }
    shuffle(w, l->n);
    for (size_t k = 0; k < l->n; k++) {
        size_t v = w->order[k], best = NONE;
        double most = 0;
        if (l->up[v] != NONE) {
            continue;
        }
        for (size_t i = l->at[v]; i < l->at[v + 1]; i++) {
            if (l->up[l->to[i]] == NONE && l->edge[i] > most &&
                l->weight[v] + l->weight[l->to[i]] <= heaviest) {
                most = l->edge[i];
                best = l->to[i];
            }
        }
        l->up[v] = n;
        if (best != NONE) {
            l->up[best] = n;
        }
        n++;
    }
    return n;
}

static void coarsen(struct work *w, const struct level *fine, size_t n, struct level *out)
{
    size_t n_edges = 0;
    struct hv_graph_partition_edge *e =
        hv_arena_new(w->arena, struct hv_graph_partition_edge, fine->at[fine->n] / 2);
    *out = (struct level){.n = n, .weight = hv_arena_new(w->arena, double, n)};
    for (size_t v = 0; v < fine->n; v++) {
        out->weight[fine->up[v]] += fine->weight[v];
        for (size_t k = fine->at[v]; k < fine->at[v + 1]; k++) {
            if (v < fine->to[k]) {
                e[n_edges++] = (struct hv_graph_partition_edge){fine->up[v], fine->up[fine->to[k]],
                                                                fine->edge[k]};
            }
        }
    }
    build(w->arena, e, n_edges, out);
}

static double cut_of(const struct level *l, const size_t *part)
{
    double sum = 0;
    for (size_t v = 0; v < l->n; v++) {
        for (size_t k = l->at[v]; k < l->at[v + 1]; k++) {
            sum += v < l->to[k] && part[v] != part[l->to[k]] ? l->edge[k] : 0;
        }
    }
    return sum;
}

static double excess_of(const struct work *w)
{
    double worst = 0;
    for (size_t p = 0; p < w->g->n_parts; p++) {
        worst = fmax(worst, w->load[p] - w->most[p] * (1 + 1e-12));
    }
    return worst;
}

static void count_loads(struct work *w, const struct level *l, const size_t *part)
{
    memset(w->load, 0, w->g->n_parts * sizeof *w->load);
    for (size_t v = 0; v < l->n; v++) {
        w->load[part[v]] += l->weight[v];
    }
}

/* The best part for a node; its own part where no other is better. */
static size_t better_part(struct work *w, const struct level *l, const size_t *part, size_t v)
{
    size_t from = part[v], best = from, n = 0;
    bool over = w->load[from] > w->most[from] * (1 + 1e-12);
    for (size_t k = l->at[v]; k < l->at[v + 1]; k++) {
        size_t p = part[l->to[k]];
        if (l->edge[k] <= 0) {
            continue;
        }
        if (w->pull[p] == 0) {
            w->touched[n++] = p;
        }
        w->pull[p] += l->edge[k];
    }
    double here = w->pull[from], most = over ? -HUGE_VAL : here;
    for (size_t k = 0; k < (over ? w->g->n_parts : n); k++) {
        size_t p = over ? k : w->touched[k];
        double load = w->load[p] + l->weight[v];
        bool fits =
            load <= w->most[p] || (over && load - w->most[p] < w->load[from] - w->most[from]);
        if (p == from || !fits) {
            continue;
        }
        bool even = w->pull[p] == most && load / w->most[p] < w->load[best] / w->most[best] - 1e-12;
        if (w->pull[p] > most || (even && best == from)) {
            most = w->pull[p];
            best = p;
        }
    }
    for (size_t k = 0; k < n; k++) {
        w->pull[w->touched[k]] = 0;
    }
    return best;
}

static void refine(struct work *w, const struct level *l, size_t *part)
{
    count_loads(w, l, part);
    for (int pass = 0; pass < PASSES; pass++) {
        size_t moved = 0;
        shuffle(w, l->n);
        for (size_t k = 0; k < l->n; k++) {
            size_t v = w->order[k], to = better_part(w, l, part, v);
            if (to == part[v]) {
                continue;
            }
            w->load[part[v]] -= l->weight[v];
            w->load[to] += l->weight[v];
            part[v] = to;
            moved++;
        }
        if (moved == 0) {
            break;
        }
    }
}

/* Grows one part after the other from random seeds, always by the node with the largest edge weight
 * to it. */
static void grow(struct work *w, const struct level *l, size_t *part, double *tie)
{
    size_t last = w->g->n_parts - 1;
    for (size_t v = 0; v < l->n; v++) {
        part[v] = last;
    }
    for (size_t p = 0; p < last; p++) {
        double load = 0, target = w->most[p] / (1 + w->g->tolerance);
        size_t seed = (size_t)hv_rng_below(&w->rng, l->n);
        memset(tie, 0, l->n * sizeof *tie);
        for (;;) {
            size_t best = NONE;
            for (size_t k = 0; k < l->n; k++) {
                size_t v = (seed + k) % l->n;
                if (part[v] == last && (best == NONE || tie[v] > tie[best])) {
                    best = v;
                }
            }
            if (best == NONE || load + 0.5 * l->weight[best] > target) {
                break;
            }
            part[best] = p;
            load += l->weight[best];
            for (size_t k = l->at[best]; k < l->at[best + 1]; k++) {
                tie[l->to[k]] += l->edge[k];
            }
        }
    }
}

static void start(struct work *w, const struct level *l, size_t *best)
{
    size_t *part = hv_arena_new(w->arena, size_t, l->n);
    double *tie = hv_arena_new(w->arena, double, l->n), least = HUGE_VAL, over = HUGE_VAL;
    for (int k = 0; k < TRIES; k++) {
        grow(w, l, part, tie);
        refine(w, l, part);
        double cut = cut_of(l, part), excess = excess_of(w);
        if (excess < over - 1e-12 || (excess <= over && cut < least)) {
            least = cut;
            over = excess;
            memcpy(best, part, l->n * sizeof *best);
        }
    }
}

static enum hv_status check(const struct hv_graph_partition *g, struct hv_err *err)
{
    if (g->n_nodes > HV_GRAPH_PARTITION_MAX || g->n_edges > HV_GRAPH_PARTITION_MAX ||
        g->n_parts > HV_GRAPH_PARTITION_MAX_PARTS) {
        return hv_err_set(err, HV_ELIMIT, "at most %zu nodes and edges and %zu parts",
                          HV_GRAPH_PARTITION_MAX, HV_GRAPH_PARTITION_MAX_PARTS);
    }
    if (g->n_parts == 0 || g->n_nodes == 0) {
        return hv_err_set(err, HV_EINPUT, "expected at least one node and one part");
    }
    if (!(g->tolerance >= 0) || isinf(g->tolerance)) {
        return hv_err_set(err, HV_EINPUT, "expected a tolerance that is not negative");
    }
    for (size_t v = 0; g->weight && v < g->n_nodes; v++) {
        if (!isfinite(g->weight[v]) || g->weight[v] < 0) {
            return hv_err_set(err, HV_EINPUT,
                              "node %zu: expected a finite weight that is not negative", v + 1);
        }
    }
    for (size_t p = 0; g->share && p < g->n_parts; p++) {
        if (!isfinite(g->share[p]) || g->share[p] <= 0) {
            return hv_err_set(err, HV_EINPUT, "part %zu: expected a positive share", p + 1);
        }
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        if (g->edges[e].u >= g->n_nodes || g->edges[e].v >= g->n_nodes ||
            !isfinite(g->edges[e].weight) || g->edges[e].weight < 0) {
            return hv_err_set(err, HV_EINPUT,
                              "edge %zu: expected two nodes out of %zu and a finite weight that is "
                              "not negative",
                              e + 1, g->n_nodes);
        }
    }
    return HV_OK;
}

static void allow(struct work *w, const struct level *l)
{
    double all = 0, shares = 0;
    for (size_t v = 0; v < l->n; v++) {
        all += l->weight[v];
    }
    for (size_t p = 0; p < w->g->n_parts; p++) {
        shares += w->g->share ? w->g->share[p] : 1;
    }
    for (size_t p = 0; p < w->g->n_parts; p++) {
        w->most[p] = (1 + w->g->tolerance) * all * (w->g->share ? w->g->share[p] : 1) / shares;
    }
}

/* Merges nodes level by level until few are left or they merge no further. Returns the last level.
 */
static size_t coarsen_all(struct work *w, struct level *level, size_t small)
{
    size_t top = 0;
    while (top + 1 < LEVELS && level[top].n > small) {
        size_t n = match(w, &level[top], w->most[0] * (double)w->g->n_parts / (double)small * 1.5);
        if (n > level[top].n - level[top].n / 20) {
            break;
        }
        coarsen(w, &level[top], n, &level[top + 1]);
        top++;
    }
    return top;
}

/* Projects the parts of level `top` down to the nodes, with refinement at every level. */
static void refine_all(struct work *w, const struct level *level, size_t top, size_t *part,
                       size_t *scratch)
{
    for (size_t k = top; k-- > 0;) {
        for (size_t v = 0; v < level[k].n; v++) {
            scratch[v] = part[level[k].up[v]];
        }
        memcpy(part, scratch, level[k].n * sizeof *part);
        refine(w, &level[k], part);
    }
}

enum hv_status hv_graph_partition_solve(const struct hv_graph_partition *g, struct hv_arena *arena,
                                        struct hv_graph_partition_result *out, struct hv_err *err)
{
    struct level level[LEVELS];
    struct work w = {.g = g, .arena = arena};
    size_t small = 30 * g->n_parts > 120 ? 30 * g->n_parts : 120;
    memset(out, 0, sizeof *out);
    enum hv_status st = check(g, err);
    if (st != HV_OK) {
        return st;
    }
    hv_rng_seed(&w.rng, g->seed);
    w.load = out->load = hv_arena_new(arena, double, g->n_parts);
    w.most = hv_arena_new(arena, double, g->n_parts);
    w.pull = hv_arena_new(arena, double, g->n_parts);
    w.touched = hv_arena_new(arena, size_t, g->n_parts);
    w.order = hv_arena_new(arena, size_t, g->n_nodes);
    level[0] = (struct level){.n = g->n_nodes, .weight = hv_arena_new(arena, double, g->n_nodes)};
    for (size_t v = 0; v < g->n_nodes; v++) {
        level[0].weight[v] = g->weight ? g->weight[v] : 1;
    }
    build(arena, g->edges, g->n_edges, &level[0]);
    allow(&w, &level[0]);
    size_t top = coarsen_all(&w, level, small);
    size_t *part = hv_arena_new(arena, size_t, g->n_nodes);
    out->part = hv_arena_new(arena, size_t, g->n_nodes);
    start(&w, &level[top], part);
    refine_all(&w, level, top, part, out->part);
    memcpy(out->part, part, g->n_nodes * sizeof *part);
    count_loads(&w, &level[0], out->part);
    out->cut = cut_of(&level[0], out->part);
    out->excess = excess_of(&w);
    return HV_OK;
}
