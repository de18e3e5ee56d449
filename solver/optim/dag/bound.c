/*
 * Lower bound on the load of the busiest device of an operator graph: compute spread evenly over
 * accelerators and CPUs, and the longest part.
 * Not here: answers (dag.c, contiguous.c).
 */
#include "solver/base/units.h"
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdlib.h>

#define STEPS 60 /* of the bisection: to the last bits */

/* A part by the accelerator time that it takes off per CPU time. */
struct part {
    double per_cpu, accel, cpu;
};

static int by_relief(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    return (a->per_cpu < b->per_cpu) - (a->per_cpu > b->per_cpu);
}

void hv__dag_relief(const double *accel, const double *cpu, const size_t *n_cpu_only, size_t n,
                    struct hv_arena *a, struct hv__dag_relief *r)
{
    struct part *parts = hv_arena_new(a, struct part, n);
    *r = (struct hv__dag_relief){.accel = hv_arena_new(a, double, n + 1),
                                 .cpu = hv_arena_new(a, double, n + 1)};
    for (size_t k = 0; k < n; k++) {
        if (n_cpu_only[k]) {
            r->must_cpu += cpu[k];
        } else if (accel[k] > 0) {
            parts[r->n++] = (struct part){accel[k] / cpu[k], accel[k], cpu[k]};
        }
    }
    if (r->n) {
        qsort(parts, r->n, sizeof *parts, by_relief);
    }
    for (size_t k = 0; k < r->n; k++) {
        r->accel[k + 1] = r->accel[k] + parts[k].accel;
        r->cpu[k + 1] = r->cpu[k] + parts[k].cpu;
    }
}

double hv__dag_offload(const struct hv__dag_relief *r, double room)
{
    size_t lo = 0, hi = r->n + 1; /* cpu[lo] ≤ room < cpu[hi] */
    if (!(room >= 0)) {
        return 0;
    }
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->cpu[mid] <= room) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    double most = r->accel[lo];
    if (lo < r->n) {
        most +=
            (r->accel[lo + 1] - r->accel[lo]) * (room - r->cpu[lo]) / (r->cpu[lo + 1] - r->cpu[lo]);
    }
    return most;
}

double hv__dag_even_bound(const struct hv__dag_relief *r, const struct hv_dag *g)
{
    double whole = r->accel[r->n], low = 0, high = whole + r->cpu[r->n] + r->must_cpu;
    double n_accel = (double)g->n_accelerators, n_cpu = (double)g->n_cpus;
    for (int k = 0; k < STEPS; k++) {
        double t = 0.5 * (low + high), room = n_cpu * t - r->must_cpu;
        if (room >= 0 && whole - hv__dag_offload(r, room) <= n_accel * t) {
            high = t;
        } else {
            low = t;
        }
    }
    return low * (1 - 1e-12);
}

/* The node with the heaviest class, its class's bytes, and the sum over all nodes. */
static size_t heaviest(const struct hv_dag *g, struct hv_arena *a, double *bytes, double *sum)
{
    double *of = hv_arena_new(a, double, g->n_classes);
    size_t at = 0;
    *bytes = *sum = 0;
    for (size_t v = 0; v < g->n_nodes; v++) {
        of[g->nodes[v].color] += g->nodes[v].bytes;
        *sum += g->nodes[v].bytes;
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        if (of[g->nodes[v].color] > *bytes) {
            *bytes = of[g->nodes[v].color];
            at = v;
        }
    }
    return at;
}

const char *hv__dag_why_infeasible(const struct hv_dag *g, struct hv_arena *arena)
{
    char need[HV_FMT_CAP], have[HV_FMT_CAP], lack[HV_FMT_CAP];
    double bytes, sum, room = (double)g->n_accelerators * g->memory;
    if (g->n_cpus > 0) {
        return NULL; /* CPUs take everything */
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        if (g->nodes[v].cpu_only) {
            return hv_arena_printf(arena, "node %zu runs on CPUs only, and there is none", v + 1);
        }
    }
    size_t v = heaviest(g, arena, &bytes, &sum);
    if (bytes > g->memory * (1 + 1e-12)) {
        return hv_arena_printf(
            arena,
            "node %zu and its class need %s of memory, an accelerator holds %s: %s too little",
            v + 1, hv_fmt_bytes(need, sizeof need, bytes),
            hv_fmt_bytes(have, sizeof have, g->memory),
            hv_fmt_bytes(lack, sizeof lack, bytes - g->memory));
    }
    if (sum > room * (1 + 1e-12)) {
        return hv_arena_printf(
            arena, "all nodes need %s of memory, %zu accelerators hold %s: %s too little",
            hv_fmt_bytes(need, sizeof need, sum), g->n_accelerators,
            hv_fmt_bytes(have, sizeof have, room), hv_fmt_bytes(lack, sizeof lack, sum - room));
    }
    return NULL;
}

double hv__dag_simple_bound(const struct hv__dag_index *x)
{
    const struct hv_dag *g = x->g;
    struct hv_arena a = {0};
    struct hv__dag_relief r;
    double longest = 0, *accel = hv_arena_new(&a, double, g->n_classes);
    double *cpu = hv_arena_new(&a, double, g->n_classes);
    size_t *n_cpu_only = hv_arena_new(&a, size_t, g->n_classes);
    for (size_t v = 0; v < g->n_nodes; v++) {
        const struct hv_dag_node *k = &g->nodes[v];
        accel[k->color] += k->accel;
        cpu[k->color] += k->cpu;
        n_cpu_only[k->color] += k->cpu_only;
    }
    for (size_t c = 0; c < g->n_classes; c++) {
        bool on_accel = g->n_accelerators && !n_cpu_only[c];
        longest =
            fmax(longest, fmin(on_accel ? accel[c] : HUGE_VAL, g->n_cpus ? cpu[c] : HUGE_VAL));
    }
    hv__dag_relief(accel, cpu, n_cpu_only, g->n_classes, &a, &r);
    double even = hv__dag_even_bound(&r, g);
    hv_arena_free(&a);
    return fmax(longest, even);
}
