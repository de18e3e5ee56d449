/*
 * Latency of a placed operator graph: the evaluation, the units that cannot be split over
 * accelerators, and the choice of the answer. Not here: the dynamic program over down-sets
 * (downset.c).
 */
#include "solver/base/units.h"
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_UNITS ((size_t)4096)

/* Blocks of a placement: an accelerator is one, a node on a CPU is one of its own. */
struct blocks {
    const struct hv__dag_index *x;
    const size_t *device;
    size_t *waits, *queue, n_queued; /* of blocks */
    size_t *at, *member;             /* nodes of an accelerator */
    size_t *mark;                    /* source → accelerator + 1 that has fetched it */
    double *finish;                  /* of nodes */
};

static size_t block_of(const struct blocks *b, size_t v)
{
    size_t n_accel = b->x->g->n_accelerators;
    return b->device[v] < n_accel ? b->device[v] : n_accel + v;
}

static void release(struct blocks *b, size_t v)
{
    for (size_t e = b->x->out_at[v]; e < b->x->out_at[v + 1]; e++) {
        size_t to = block_of(b, b->x->out[e]);
        if (to != block_of(b, v) && --b->waits[to] == 0) {
            b->queue[b->n_queued++] = to;
        }
    }
}

static double run_cpu_node(struct blocks *b, size_t v)
{
    double start = 0;
    for (size_t e = b->x->in_at[v]; e < b->x->in_at[v + 1]; e++) {
        start = fmax(start, b->finish[b->x->in[e]]);
    }
    b->finish[v] = start + b->x->g->nodes[v].cpu;
    release(b, v);
    return b->finish[v];
}

static double run_accelerator(struct blocks *b, size_t d)
{
    const struct hv__dag_index *x = b->x;
    double start = 0, busy = 0;
    for (size_t k = b->at[d]; k < b->at[d + 1]; k++) {
        size_t v = b->member[k];
        bool leaves = false;
        busy += x->g->nodes[v].accel;
        for (size_t e = x->in_at[v]; e < x->in_at[v + 1]; e++) {
            size_t u = x->in[e];
            if (b->device[u] == d || b->mark[u] == d + 1) {
                continue;
            }
            b->mark[u] = d + 1;
            busy += x->cost[u];
            start = fmax(start, b->finish[u]);
        }
        for (size_t e = x->out_at[v]; e < x->out_at[v + 1]; e++) {
            leaves = leaves || b->device[x->out[e]] != d;
        }
        busy += leaves ? x->cost[v] : 0;
    }
    for (size_t k = b->at[d]; k < b->at[d + 1]; k++) {
        b->finish[b->member[k]] = start + busy;
    }
    for (size_t k = b->at[d]; k < b->at[d + 1]; k++) {
        release(b, b->member[k]);
    }
    return b->at[d] < b->at[d + 1] ? start + busy : 0;
}

static void collect_blocks(struct blocks *b, struct hv_arena *a)
{
    const struct hv_dag *g = b->x->g;
    size_t n_accel = g->n_accelerators, n = n_accel + g->n_nodes;
    b->waits = hv_arena_new(a, size_t, n);
    b->queue = hv_arena_new(a, size_t, n);
    b->at = hv_arena_new(a, size_t, n_accel + 2);
    b->member = hv_arena_new(a, size_t, g->n_nodes);
    b->mark = hv_arena_new(a, size_t, g->n_nodes);
    b->finish = hv_arena_new(a, double, g->n_nodes);
    for (size_t e = 0; e < g->n_edges; e++) {
        if (block_of(b, g->edges[e].from) != block_of(b, g->edges[e].to)) {
            b->waits[block_of(b, g->edges[e].to)]++;
        }
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        if (b->device[v] < n_accel) {
            b->at[b->device[v] + 2]++;
        }
    }
    for (size_t d = 0; d < n_accel; d++) {
        b->at[d + 2] += b->at[d + 1];
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        if (b->device[v] < n_accel) {
            b->member[b->at[b->device[v] + 1]++] = v;
        }
    }
    for (size_t k = 0; k < n; k++) {
        if (b->waits[k] == 0 && (k < n_accel || b->device[k - n_accel] >= n_accel)) {
            b->queue[b->n_queued++] = k;
        }
    }
}

double hv_dag_latency(const struct hv_dag *g, const size_t *device, double *end)
{
    struct hv_arena a = {0};
    struct hv__dag_index x;
    struct blocks b = {.x = &x, .device = device};
    size_t n_accel = g->n_accelerators, n_devices = n_accel + g->n_cpus, n_blocks = n_accel;
    double worst = 0;
    for (size_t d = 0; d < n_devices; d++) {
        end[d] = 0;
    }
    bool ok = hv__dag_nodes_fit(g, device, end, hv_arena_new(&a, double, n_devices),
                                hv_arena_new(&a, size_t, g->n_classes));
    for (size_t d = 0; d < n_devices; d++) {
        end[d] = 0;
    }
    if (ok) {
        hv__dag_index(g, &a, &x);
        collect_blocks(&b, &a);
        for (size_t v = 0; v < g->n_nodes; v++) {
            n_blocks += device[v] >= n_accel;
        }
    }
    for (size_t q = 0; q < b.n_queued; q++) {
        size_t k = b.queue[q], d = k < n_accel ? k : device[k - n_accel];
        end[d] = fmax(end[d], k < n_accel ? run_accelerator(&b, k) : run_cpu_node(&b, k - n_accel));
        worst = fmax(worst, end[d]);
    }
    ok = ok && b.n_queued == n_blocks;
    hv_arena_free(&a);
    return ok ? worst : HUGE_VAL;
}

/* Nodes in a topological order; false when there is none. */
static bool order_nodes(const struct hv__dag_index *x, struct hv_arena *a, size_t *order)
{
    size_t n = x->g->n_nodes, tail = 0, *waits = hv_arena_new(a, size_t, n);
    for (size_t v = 0; v < n; v++) {
        if ((waits[v] = x->in_at[v + 1] - x->in_at[v]) == 0) {
            order[tail++] = v;
        }
    }
    for (size_t q = 0; q < tail; q++) {
        for (size_t e = x->out_at[order[q]]; e < x->out_at[order[q] + 1]; e++) {
            if (--waits[x->out[e]] == 0) {
                order[tail++] = x->out[e];
            }
        }
    }
    return tail == n;
}

/* class → unit, in a topological order; returns the number of units. */
static size_t join_classes(const struct hv__dag_index *x, struct hv_arena *a, size_t *unit)
{
    const struct hv_dag *g = x->g;
    size_t n = g->n_classes, *at = hv_arena_new(a, size_t, n + 2);
    size_t *next = hv_arena_new(a, size_t, g->n_edges);
    for (size_t e = 0; e < g->n_edges; e++) {
        at[g->nodes[g->edges[e].from].color + 2]++;
    }
    for (size_t c = 0; c < n; c++) {
        at[c + 2] += at[c + 1];
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        next[at[g->nodes[g->edges[e].from].color + 1]++] = g->nodes[g->edges[e].to].color;
    }
    return hv__dag_components(at, next, n, a, unit);
}

/* The least time from the start of every node to the end of the graph. */
static void find_paths(struct hv__dag_units *u, const size_t *order)
{
    const struct hv_dag *g = u->x->g;
    for (size_t k = g->n_nodes; k-- > 0;) {
        size_t v = order[k];
        const struct hv_dag_node *node = &g->nodes[v];
        double accel = node->cpu_only || g->n_accelerators == 0 ? HUGE_VAL : node->accel;
        for (size_t e = u->x->out_at[v]; e < u->x->out_at[v + 1]; e++) {
            u->path[v] = fmax(u->path[v], u->path[u->x->out[e]]);
        }
        u->path[v] += fmin(accel, g->n_cpus ? node->cpu : HUGE_VAL);
    }
}

static bool dag_units(const struct hv__dag_index *x, struct hv_arena *a, struct hv__dag_units *u)
{
    const struct hv_dag *g = x->g;
    size_t n = g->n_nodes, *order = hv_arena_new(a, size_t, n);
    size_t *unit = hv_arena_new(a, size_t, g->n_classes);
    if (!order_nodes(x, a, order)) {
        return false;
    }
    *u = (struct hv__dag_units){.x = x, .n = join_classes(x, a, unit)};
    u->joined = u->n < g->n_classes;
    u->of = hv_arena_new(a, size_t, n);
    u->member_at = hv_arena_new(a, size_t, u->n + 2);
    u->member = hv_arena_new(a, size_t, n);
    u->pred_at = hv_arena_new(a, size_t, u->n + 2);
    u->pred = hv_arena_new(a, size_t, g->n_edges);
    u->accel = hv_arena_new(a, double, u->n);
    u->bytes = hv_arena_new(a, double, u->n);
    u->cpu_only = hv_arena_new(a, bool, u->n);
    u->path = hv_arena_new(a, double, n);
    for (size_t v = 0; v < n; v++) {
        size_t k = u->of[v] = unit[g->nodes[v].color];
        u->member_at[k + 2]++;
        u->pred_at[k + 2] += x->in_at[v + 1] - x->in_at[v];
        u->accel[k] += g->nodes[v].accel;
        u->bytes[k] += g->nodes[v].bytes;
        u->cpu_only[k] = u->cpu_only[k] || g->nodes[v].cpu_only;
    }
    for (size_t k = 0; k < u->n; k++) {
        u->member_at[k + 2] += u->member_at[k + 1];
        u->pred_at[k + 2] += u->pred_at[k + 1];
    }
    for (size_t k = 0; k < n; k++) {
        size_t v = order[k], at = u->of[v];
        u->member[u->member_at[at + 1]++] = v;
        for (size_t e = x->in_at[v]; e < x->in_at[v + 1]; e++) {
            u->pred[u->pred_at[at + 1]++] = u->of[x->in[e]];
        }
    }
    find_paths(u, order);
    return true;
}

/* Units by levels: those with the fewest units before them on the longest chain come first. */
static void order_by_levels(const struct hv__dag_units *u, struct hv_arena *a, size_t *order)
{
    size_t *level = hv_arena_new(a, size_t, u->n), *at = hv_arena_new(a, size_t, u->n + 2);
    for (size_t k = 0; k < u->n; k++) {
        for (size_t e = u->pred_at[k]; e < u->pred_at[k + 1]; e++) {
            if (u->pred[e] != k && level[u->pred[e]] + 1 > level[k]) {
                level[k] = level[u->pred[e]] + 1;
            }
        }
        at[level[k] + 1]++;
    }
    for (size_t k = 0; k < u->n; k++) {
        at[k + 1] += at[k];
    }
    for (size_t k = 0; k < u->n; k++) {
        order[at[level[k]]++] = k;
    }
}

enum hv_status hv__dag_solve_latency(const struct hv__dag_index *x, struct hv__watch *watch,
                                     struct hv_arena *a, struct hv_dag_result *out,
                                     struct hv_err *err)
{
    struct hv__dag_units u;
    double best = HUGE_VAL;
    if (!dag_units(x, a, &u)) {
        return hv_err_set(err, HV_EINPUT, "the graph has a cycle");
    }
    if (u.n > MAX_UNITS) {
        return hv_err_set(err, HV_ELIMIT, "%zu separate parts; the latency is for at most %zu", u.n,
                          MAX_UNITS);
    }
    size_t *order = hv_arena_new(a, size_t, u.n);
    for (size_t v = 0; v < x->g->n_nodes; v++) {
        out->bound = fmax(out->bound, u.path[v]);
    }
    for (size_t k = 0; k < u.n; k++) {
        order[k] = k;
    }
    hv__dag_downsets(&u, order, watch, &best, out->device);
    order_by_levels(&u, a, order);
    hv__dag_downsets(&u, order, watch, &best, out->device);
    out->contiguous = best;
    bool complete = hv__dag_downsets(&u, NULL, watch, &best, out->device);
    out->proven = complete && !(u.joined && x->g->n_cpus);
    out->stopped = watch->stopped;
    out->feasible = best < HUGE_VAL;
    out->method = "downset-dp";
    out->proof = out->proven ? "dynamic program over all down-sets with dominance"
                             : "prefixes of two orders; the bound is the longest path";
    if (!out->feasible) {
        out->objective = out->contiguous = out->bound = HV_UNKNOWN;
        const char *why = hv__dag_why_infeasible(x->g, a);
        out->proof = out->proven ? "no placement keeps every accelerator within its memory"
                                 : "no split of the tried orders fits the devices";
        out->proof = why ? why : out->proof;
        out->proven = out->proven || why;
        return HV_OK;
    }
    out->objective = hv_dag_latency(x->g, out->device, out->load);
    out->proven = out->proven || out->objective <= out->bound * (1 + 1e-9);
    out->bound = out->proven ? out->objective : out->bound;
    return HV_OK;
}
