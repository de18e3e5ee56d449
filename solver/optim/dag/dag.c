/*
 * Placement of operator graphs: the contiguous dynamic program over topological orders of the
 * classes, and the choice of the answer. The local search is in search.c.
 */
#include "solver/optim/dag/dag.h"
#include "solver/base/units.h"
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define GUESS 1.3 /* the first splits may be this much above the bound */

/* A run of groups that grows at its end: its load as one accelerator. */
struct run {
    const struct hv__dag_index *x;
    size_t *inside; /* node → mark of the run it is in */
    size_t *fed, *fed_mark, *left;
    size_t mark;
    double compute, cpu, bytes, transfer;
    bool cpu_only;
};

static void grow_node(struct run *r, size_t v)
{
    const struct hv__dag_index *x = r->x;
    const struct hv_dag_node *node = &x->g->nodes[v];
    r->inside[v] = r->mark;
    r->compute += node->accel;
    r->cpu += node->cpu;
    r->bytes += node->bytes;
    r->cpu_only = r->cpu_only || node->cpu_only;
    if (r->fed_mark[v] == r->mark && r->fed[v] > 0) {
        r->transfer -= x->cost[v]; /* was fetched from outside until now */
    }
    r->left[v] = 0;
    for (size_t e = x->out_at[v]; e < x->out_at[v + 1]; e++) {
        r->left[v] += r->inside[x->out[e]] != r->mark;
    }
    if (r->left[v] > 0) {
        r->transfer += x->cost[v];
    }
    for (size_t e = x->in_at[v]; e < x->in_at[v + 1]; e++) {
        size_t u = x->in[e];
        if (r->inside[u] == r->mark) {
            if (u != v && --r->left[u] == 0) {
                r->transfer -= x->cost[u];
            }
            continue;
        }
        if (r->fed_mark[u] != r->mark) {
            r->fed_mark[u] = r->mark;
            r->fed[u] = 0;
        }
        if (r->fed[u]++ == 0) {
            r->transfer += x->cost[u];
        }
    }
}

static void grow_group(struct run *r, const struct hv__dag_groups *q, size_t c)
{
    for (size_t m = q->member_at[c]; m < q->member_at[c + 1]; m++) {
        grow_node(r, q->member[m]);
    }
}

/* Tables of the contiguous program: best[state · (n + 1) + j], state = (accelerators, cpus) used.
 */
struct split {
    size_t n, n_accel, n_cpu;
    double *best;
    size_t *from;
    unsigned char *kind;
};

static void offer(struct split *q, size_t from_state, size_t to_state, size_t i, size_t j,
                  double value, unsigned char kind)
{
    double before = q->best[from_state * (q->n + 1) + i], v = before > value ? before : value;
    size_t cell = to_state * (q->n + 1) + j;
    if (v >= q->best[cell]) {
        return;
    }
    q->best[cell] = v;
    q->from[cell] = i;
    q->kind[cell] = kind;
}

static void offer_run(struct split *q, const struct run *r, size_t i, size_t j)
{
    bool fits = r->bytes <= r->x->g->memory && !r->cpu_only;
    for (size_t a = 0; a <= q->n_accel; a++) {
        for (size_t c = 0; c <= q->n_cpu; c++) {
            size_t state = a * (q->n_cpu + 1) + c;
            if (q->best[state * (q->n + 1) + i] == HUGE_VAL) {
                continue;
            }
            if (a < q->n_accel && fits) {
                offer(q, state, state + q->n_cpu + 1, i, j, r->compute + r->transfer, 1);
            }
            if (c < q->n_cpu) {
                offer(q, state, state + 1, i, j, r->cpu, 2);
            }
        }
    }
}

static void trace_split(const struct split *q, const struct hv__dag_groups *groups,
                        const size_t *order, size_t *device)
{
    size_t best = 0, j = q->n, n_states = (q->n_accel + 1) * (q->n_cpu + 1);
    for (size_t s = 1; s < n_states; s++) {
        if (q->best[s * (q->n + 1) + q->n] < q->best[best * (q->n + 1) + q->n]) {
            best = s;
        }
    }
    while (j > 0) {
        size_t cell = best * (q->n + 1) + j, i = q->from[cell];
        size_t a = best / (q->n_cpu + 1), c = best % (q->n_cpu + 1);
        bool accel = q->kind[cell] == 1;
        size_t dev = accel ? a - 1 : groups->x->g->n_accelerators + c - 1;
        for (size_t k = i; k < j; k++) {
            for (size_t m = groups->member_at[order[k]]; m < groups->member_at[order[k] + 1]; m++) {
                device[groups->member[m]] = dev;
            }
        }
        best -= accel ? q->n_cpu + 1 : 1;
        j = i;
    }
}

static bool nothing_ends_at(const struct split *q, size_t i)
{
    size_t n_states = (q->n_accel + 1) * (q->n_cpu + 1);
    for (size_t s = 0; s < n_states; s++) {
        if (q->best[s * (q->n + 1) + i] < HUGE_VAL) {
            return false;
        }
    }
    return true;
}

/* Best contiguous split of one order; returns its load. Runs of at least `limit` are skipped.
 */
static double split_order(const struct hv__dag_groups *groups, struct hv_arena *a,
                          const size_t *order, double limit, size_t *device,
                          struct hv__watch *watch)
{
    const struct hv__dag_index *x = groups->x;
    const struct hv_dag *g = x->g;
    struct split q = {.n = groups->n, .n_accel = g->n_accelerators, .n_cpu = g->n_cpus};
    size_t cells = (q.n_accel + 1) * (q.n_cpu + 1) * (q.n + 1), last = cells - 1;
    q.best = hv_arena_new(a, double, cells);
    q.from = hv_arena_new(a, size_t, cells);
    q.kind = hv_arena_new(a, unsigned char, cells);
    for (size_t k = 0; k < cells; k++) {
        q.best[k] = HUGE_VAL;
    }
    q.best[0] = 0;
    struct run r = {.x = x,
                    .inside = hv_arena_new(a, size_t, g->n_nodes),
                    .fed = hv_arena_new(a, size_t, g->n_nodes),
                    .fed_mark = hv_arena_new(a, size_t, g->n_nodes),
                    .left = hv_arena_new(a, size_t, g->n_nodes)};
    for (size_t i = 0; i < q.n && !hv__watch_over(watch); i++) {
        if (nothing_ends_at(&q, i)) {
            continue;
        }
        r.mark = i + 1;
        r.compute = r.cpu = r.bytes = r.transfer = 0;
        r.cpu_only = false;
        for (size_t j = i; j < q.n; j++) {
            grow_group(&r, groups, order[j]);
            if (r.cpu >= limit && (r.compute >= limit || r.bytes > g->memory)) {
                break;
            }
            offer_run(&q, &r, i, j + 1);
        }
    }
    double best = HUGE_VAL;
    for (size_t k = q.n; k <= last; k += q.n + 1) {
        best = fmin(best, q.best[k]);
    }
    if (best < HUGE_VAL) {
        trace_split(&q, groups, order, device);
    }
    return best;
}

/* Fills the proof of the answer; the objective is evaluated again. */
static void describe(const struct hv_dag *g, bool exact, struct hv_arena *arena,
                     struct hv_dag_result *out)
{
    if (out->feasible) {
        out->objective = hv_dag_judge(g, out->device, out->load);
        out->contiguous = isinf(out->contiguous) ? out->objective : out->contiguous;
        out->bound = exact ? out->objective : out->bound;
        out->proof = "the bound is compute spread evenly over the devices or the longest class";
        if (out->contiguous_proven) {
            out->proof = "no contiguous split is better than the best one found, over all "
                         "down-sets; the bound on other placements is compute spread evenly or the "
                         "longest class";
        }
        if (exact) {
            out->proof = "branch and bound over the device of every class";
        }
        return;
    }
    out->objective = out->contiguous = out->bound = HV_UNKNOWN;
    const char *why = hv__dag_why_infeasible(g, arena);
    out->proven = out->proven || why;
    out->proof = exact ? "no placement keeps every accelerator within its memory"
                       : "no contiguous split that was tried keeps every accelerator within its "
                         "memory";
    if (out->contiguous_proven && !exact) {
        out->proof = "no contiguous split keeps every accelerator within its memory";
    }
    out->proof = why ? why : out->proof;
}

/* The better of the splits of two orders, and then the best of all down-sets where that ends within
 * a share of the time. */
static void split_orders(const struct hv__dag_index *x, struct hv__watch *watch, double share,
                         struct hv_arena *arena, struct hv_dag_result *out)
{
    const struct hv_dag *g = x->g;
    struct hv__dag_groups groups;
    hv__dag_groups(x, arena, &groups);
    size_t *order = hv_arena_new(arena, size_t, groups.n);
    size_t *device = hv_arena_new(arena, size_t, g->n_nodes);
    double best = HUGE_VAL;
    out->bound = hv__dag_simple_bound(x);
    for (int k = 0; k < 4; k++) { /* both orders with a guess at the limit, then without */
        if (k == 2 && best < HUGE_VAL) {
            break;
        }
        double limit = k < 2 ? fmin(best, GUESS * out->bound) : best;
        hv__dag_order(&groups, arena, k % 2 == 1, order);
        double v = split_order(&groups, arena, order, limit, device, watch);
        if (v < best) {
            best = v;
            memcpy(out->device, device, g->n_nodes * sizeof *device);
        }
    }
    struct hv_solve_limits half = hv__watch_rest(watch); /* the rest is for other placements */
    struct hv__watch part;
    half.deadline_s *= share;
    half.report = watch->limits->report;
    hv__watch_start(&part, &half);
    out->contiguous_proven = hv__dag_contiguous(&groups, &part, &best, out->device);
    if (best < HUGE_VAL) {
        best = hv_dag_judge(g, out->device, out->load);
    }
    out->objective = out->contiguous = best;
}

static enum hv_status begin(const struct hv_dag *g, struct hv_arena *arena, struct hv__dag_index *x,
                            struct hv_dag_result *out, struct hv_err *err)
{
    memset(out, 0, sizeof *out);
    if ((g->n_accelerators + 1) * (g->n_cpus + 1) * (g->n_classes + 1) > (size_t)32 << 20) {
        return hv_err_set(err, HV_ELIMIT, "too many classes times devices");
    }
    hv__dag_index(g, arena, x);
    out->device = hv_arena_new(arena, size_t, g->n_nodes);
    out->load = hv_arena_new(arena, double, g->n_accelerators + g->n_cpus);
    return HV_OK;
}

enum hv_status hv_dag_split(const struct hv_dag *g, const struct hv_solve_limits *limits,
                            struct hv_arena *arena, struct hv_dag_result *out, struct hv_err *err)
{
    struct hv__watch watch;
    struct hv__dag_index x;
    hv__watch_start(&watch, limits);
    enum hv_status st = begin(g, arena, &x, out, err);
    if (st != HV_OK) {
        return st;
    }
    split_orders(&x, &watch, 1, arena, out);
    out->feasible = out->objective < HUGE_VAL;
    out->stopped = hv__watch_over(&watch);
    out->proven = out->feasible && out->objective <= out->bound * (1 + 1e-9);
    out->method = "contiguous-dp";
    describe(g, false, arena, out);
    return HV_OK;
}

enum hv_status hv_dag_solve(const struct hv_dag *g, const struct hv_solve_limits *limits,
                            struct hv_arena *arena, struct hv_dag_result *out, struct hv_err *err)
{
    struct hv__watch watch;
    struct hv__dag_index x;
    hv__watch_start(&watch, limits);
    enum hv_status st = begin(g, arena, &x, out, err);
    if (st != HV_OK) {
        return st;
    }
    if (g->objective == HV_DAG_LATENCY) {
        return hv__dag_solve_latency(&x, &watch, arena, out, err);
    }
    split_orders(&x, &watch, 0.5, arena, out);
    if (out->objective < HUGE_VAL) {
        hv__dag_search(&x, &watch, out->bound, arena, out->device);
    }
    out->objective = hv_dag_judge(g, out->device, out->load);
    bool met = out->objective <= out->bound * (1 + 1e-9);
    bool exact = !met && hv__dag_exact(&x, &watch, arena, &out->objective, out->device);
    out->feasible = out->objective < HUGE_VAL;
    out->stopped = watch.stopped;
    out->proven = exact || met;
    out->method = exact ? "contiguous-dp+annealing+branch" : "contiguous-dp+annealing";
    describe(g, exact, arena, out);
    return HV_OK;
}
