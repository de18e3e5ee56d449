/*
 * Proof for small graphs: branch and bound over the placement of whole classes, for the load of the
 * busiest device.
 * Not here: the first placement (dag.c, search.c) and the latency (downset.c).
 */
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES ((size_t)64)
#define MAX_STEPS   ((int64_t)400000) /* placements of one class */

/* A class in the order in which classes are placed, heaviest first. */
struct turn {
    size_t class;
    double accel, cpu, bytes, least;
    bool cpu_only;
};

struct branch {
    const struct hv__dag_index *x;
    struct hv__watch *watch;
    struct turn *turns;
    double *rest;                            /* turn → least compute of the classes from it on */
    size_t n_devices, *device, *best_device; /* of classes; n_devices = not placed */
    uint64_t *sent;                          /* node → devices that have its output or need it */
    double *load, *bytes, best;
    double *saved; /* turn · n_devices: loads before it */
    int64_t steps;
    bool gave_up;
};

static bool is_accel(const struct branch *b, size_t d)
{
    return d < b->x->g->n_accelerators;
}

static size_t device_of(const struct branch *b, size_t v)
{
    return b->device[b->x->g->nodes[v].color];
}

static void pay(struct branch *b, size_t v, size_t d)
{
    b->load[d] += is_accel(b, d) ? b->x->cost[v] : 0;
}

/* True when a placed successor of v other than those of the class is on device d, or, with d the
 * number of devices, on any device but v's. */
static bool sent_before(const struct branch *b, size_t v, size_t d, size_t class)
{
    const struct hv__dag_index *x = b->x;
    for (size_t e = x->out_at[v]; e < x->out_at[v + 1]; e++) {
        size_t to = device_of(b, x->out[e]);
        bool counts = d < b->n_devices ? to == d : to < b->n_devices && to != device_of(b, v);
        if (counts && x->g->nodes[x->out[e]].color != class) {
            return true;
        }
    }
    return false;
}

/* Adds the loads of a class on its device, transfers with placed classes included. */
static void add_class(struct branch *b, const struct turn *t, size_t d)
{
    const struct hv__dag_index *x = b->x;
    size_t c = t->class;
    b->device[c] = d;
    b->load[d] += is_accel(b, d) ? t->accel : t->cpu;
    b->bytes[d] += t->bytes;
    for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
        size_t v = x->member[m];
        uint64_t told = 0;
        for (size_t e = x->out_at[v]; e < x->out_at[v + 1]; e++) {
            size_t to = device_of(b, x->out[e]);
            if (to == d || to == b->n_devices || (told >> to & 1)) {
                continue;
            }
            if (told == 0) {
                pay(b, v, d);
            }
            told |= (uint64_t)1 << to;
            pay(b, v, to);
        }
        for (size_t e = x->in_at[v]; e < x->in_at[v + 1]; e++) {
            size_t u = x->in[e], at = device_of(b, u);
            if (at == d || at == b->n_devices || (b->sent[u] >> d & 1)) {
                continue;
            }
            b->sent[u] |= (uint64_t)1 << d; /* marks this class's own fetches; cleared below */
            if (!sent_before(b, u, d, c)) {
                pay(b, u, d);
            }
            if (!sent_before(b, u, b->n_devices, c)) {
                pay(b, u, at);
            }
        }
    }
    for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
        for (size_t e = x->in_at[x->member[m]]; e < x->in_at[x->member[m] + 1]; e++) {
            b->sent[x->in[e]] = 0;
        }
    }
}

static bool can_be_better(const struct branch *b, size_t turn)
{
    double sum = b->rest[turn];
    for (size_t d = 0; d < b->n_devices; d++) {
        if (b->load[d] >= b->best * (1 - 1e-12)) {
            return false;
        }
        sum += b->load[d];
    }
    return sum < b->best * (1 - 1e-12) * (double)b->n_devices;
}

static void try_turn(struct branch *b, size_t turn, size_t n_accel, size_t n_cpu);

/* Places the class of the turn on device d and continues the search from there. */
static void try_device(struct branch *b, size_t turn, size_t d, size_t n_accel, size_t n_cpu)
{
    const struct turn *t = &b->turns[turn];
    const struct hv_dag *g = b->x->g;
    double *saved = b->saved + turn * b->n_devices;
    bool accel = is_accel(b, d);
    if (accel && (t->cpu_only || b->bytes[d] + t->bytes > g->memory * (1 + 1e-12))) {
        return;
    }
    memcpy(saved, b->load, b->n_devices * sizeof *saved);
    add_class(b, t, d);
    if (can_be_better(b, turn + 1)) {
        try_turn(b, turn + 1, n_accel + (accel && d == n_accel),
                 n_cpu + (!accel && d - g->n_accelerators == n_cpu));
    }
    memcpy(b->load, saved, b->n_devices * sizeof *saved);
    b->bytes[d] -= t->bytes;
    b->device[t->class] = b->n_devices;
}

/* Equal devices that are still empty are tried once. Recursion is as deep as there are classes,
 * which hv__dag_exact keeps small. */
static void try_turn(struct branch *b, size_t turn, size_t n_accel, size_t n_cpu)
{
    const struct hv_dag *g = b->x->g;
    if (++b->steps > MAX_STEPS || (b->steps % 1024 == 0 && hv__watch_over(b->watch))) {
        b->gave_up = true;
    }
    if (b->gave_up) {
        return;
    }
    if (turn == g->n_classes) {
        for (size_t d = 0; d < b->n_devices; d++) {
            b->best = d ? fmax(b->best, b->load[d]) : b->load[0];
        }
        memcpy(b->best_device, b->device, g->n_classes * sizeof *b->device);
        return;
    }
    for (size_t d = 0; d <= n_accel && d < g->n_accelerators; d++) {
        try_device(b, turn, d, n_accel, n_cpu);
    }
    for (size_t d = 0; d <= n_cpu && d < g->n_cpus; d++) {
        try_device(b, turn, g->n_accelerators + d, n_accel, n_cpu);
    }
}

static int by_weight(const void *pa, const void *pb)
{
    const struct turn *a = pa, *b = pb;
    if (a->least != b->least) {
        return a->least < b->least ? 1 : -1;
    }
    return (a->class > b->class) - (a->class < b->class);
}

static void plan_turns(struct branch *b, struct hv_arena *a)
{
    const struct hv__dag_index *x = b->x;
    const struct hv_dag *g = x->g;
    b->turns = hv_arena_new(a, struct turn, g->n_classes);
    b->rest = hv_arena_new(a, double, g->n_classes + 1);
    for (size_t c = 0; c < g->n_classes; c++) {
        struct turn *t = &b->turns[c];
        t->class = c;
        for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
            const struct hv_dag_node *v = &g->nodes[x->member[m]];
            t->accel += v->accel;
            t->cpu += v->cpu;
            t->bytes += v->bytes;
            t->cpu_only = t->cpu_only || v->cpu_only;
        }
        t->least = fmin(g->n_accelerators && !t->cpu_only ? t->accel : HUGE_VAL,
                        g->n_cpus ? t->cpu : HUGE_VAL);
    }
    qsort(b->turns, g->n_classes, sizeof *b->turns, by_weight);
    for (size_t c = g->n_classes; c-- > 0;) {
        b->rest[c] = b->rest[c + 1] + b->turns[c].least;
    }
}

bool hv__dag_exact(const struct hv__dag_index *x, struct hv__watch *watch, struct hv_arena *a,
                   double *best, size_t *device)
{
    const struct hv_dag *g = x->g;
    struct branch b = {
        .x = x, .watch = watch, .best = *best, .n_devices = g->n_accelerators + g->n_cpus};
    if (b.n_devices > MAX_DEVICES || g->n_classes > HV__DAG_EXACT_CLASSES) {
        return false;
    }
    plan_turns(&b, a);
    b.device = hv_arena_new(a, size_t, g->n_classes);
    b.best_device = hv_arena_new(a, size_t, g->n_classes);
    b.sent = hv_arena_new(a, uint64_t, g->n_nodes);
    b.load = hv_arena_new(a, double, b.n_devices);
    b.bytes = hv_arena_new(a, double, b.n_devices);
    b.saved = hv_arena_new(a, double, g->n_classes *b.n_devices);
    for (size_t c = 0; c < g->n_classes; c++) {
        b.device[c] = b.n_devices;
    }
    try_turn(&b, 0, 0, 0);
    if (b.best < *best) {
        *best = b.best;
        for (size_t v = 0; v < g->n_nodes; v++) {
            device[v] = b.best_device[g->nodes[v].color];
        }
    }
    return !b.gave_up;
}
