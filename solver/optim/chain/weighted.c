/*
 * Contiguous partition for other objectives: weights that depend on the position of the slowest
 * stage, and arbitrary functions of the stage values.
 * Not here: sums and maxima (partition.c).
 */
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* One dynamic program for a given maximum; rows of (n_stages + 1) × (n_layers + 1) each. */
struct weighted {
    const struct hv_partition *p;
    const struct hv_part_weights *w;
    double top;
    double *before, *after; /* the slowest stage not yet placed, or placed */
    struct hv__row *window; /* [n_stages] where each cut can lie below `top`; NULL with tables */
};

static bool has_tables(const struct hv_partition *p)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        if (p->stages[s].table) {
            return true;
        }
    }
    return false;
}

static double cost_of(const struct weighted *q, size_t s, bool slowest, bool behind, double v)
{
    double c = v;
    if (slowest) {
        c += (q->w->c0 + q->w->c1 * (double)s) * v;
    }
    if (slowest || behind) {
        c += q->w->tail * v;
    }
    return c;
}

/* Improves the cells of stage s that end at j with the run [i, j). */
static void join_run(struct weighted *q, size_t s, size_t i, size_t j)
{
    size_t n = q->p->n_layers + 1;
    double v = hv_partition_value(q->p, s, s, i, j);
    if (!(v <= q->top)) {
        return;
    }
    double *before = q->before + (s + 1) * n + j, *after = q->after + (s + 1) * n + j;
    double from = q->before[s * n + i] + v;
    double to = v == q->top ? q->before[s * n + i] + cost_of(q, s, true, false, v)
                            : q->after[s * n + i] + cost_of(q, s, false, true, v);
    *before = from < *before ? from : *before;
    *after = to < *after ? to : *after;
}

/* First and last end of stage s (starts are the ends of the stage before). */
static struct hv__row ends_of(const struct weighted *q, size_t s)
{
    if (q->window) {
        return q->window[s];
    }
    return (struct hv__row){.lo = (s + 1) * q->p->min_layers, .hi = q->p->n_layers};
}

static double run_weighted(struct weighted *q)
{
    size_t n = q->p->n_layers + 1, S = q->p->n_stages, m = q->p->min_layers;
    if (q->window && !hv__windows(q->p, q->top, q->window)) {
        return HUGE_VAL;
    }
    for (size_t k = 0; k < (S + 1) * n; k++) {
        q->before[k] = q->after[k] = HUGE_VAL;
    }
    q->before[0] = 0;
    struct hv__row starts = {.lo = 0, .hi = 0};
    for (size_t s = 0; s < S; s++) {
        struct hv__row ends = ends_of(q, s);
        for (size_t i = starts.lo; i <= starts.hi; i++) {
            if (q->before[s * n + i] == HUGE_VAL && q->after[s * n + i] == HUGE_VAL) {
                continue;
            }
            for (size_t j = i + m > ends.lo ? i + m : ends.lo; j <= ends.hi; j++) {
                join_run(q, s, i, j);
            }
        }
        starts = ends;
    }
    return q->after[S * n + n - 1];
}

/* Reads the cuts back from the rows of the last run. */
static void trace_weighted(const struct weighted *q, size_t *cut)
{
    size_t n = q->p->n_layers + 1, j = n - 1;
    bool placed = true;
    for (size_t s = q->p->n_stages; s-- > 0;) {
        double want = (placed ? q->after : q->before)[(s + 1) * n + j];
        cut[s] = j;
        for (size_t i = 0; i <= j; i++) {
            double v = hv_partition_value(q->p, s, s, i, j);
            if (!(v <= q->top)) {
                continue;
            }
            double from = q->before[s * n + i], behind = q->after[s * n + i];
            bool here = placed && v == q->top && from + cost_of(q, s, true, false, v) == want;
            bool old = placed && v < q->top && behind + cost_of(q, s, false, true, v) == want;
            if (!here && !old && (placed || from + v != want)) {
                continue;
            }
            if (here) {
                placed = false;
            }
            j = i;
            break;
        }
    }
}

static enum hv_status check_weights(const struct hv_partition *p, const struct hv_part_weights *w,
                                    struct hv_err *err)
{
    double last = w->c0 + w->c1 * (double)(p->n_stages - 1);
    if (!(w->c0 >= 0) || !(last >= 0) || !(w->tail >= 0) || !isfinite(last + w->tail)) {
        return hv_err_set(err, HV_EINPUT,
                          "weights of the slowest stage must be finite and not negative for every "
                          "stage");
    }
    if (p->free_order || p->any_stages || p->tolls) {
        return hv_err_set(err, HV_EINPUT,
                          "this objective needs a fixed order and number of stages, and no tolls");
    }
    if ((p->n_stages + 1) * (p->n_layers + 1) > ((size_t)16 << 20)) {
        return hv_err_set(err, HV_ELIMIT, "too many stages times layers for this objective");
    }
    return HV_OK;
}

/* Tries the candidates for the maximum, ascending, until none can be better; HUGE_VAL: nothing
 * fits. `least`: of c0 + c1·k. */
static double search_tops(struct weighted *q, const double *tops, size_t n, double least_sum,
                          double least, struct hv__watch *watch, struct hv_partition_result *out)
{
    double best = HUGE_VAL, best_top = HUGE_VAL;
    for (size_t k = 0; k < n && !out->stopped; k++) {
        double low = least_sum + (least + q->w->tail) * tops[k];
        if (low >= best) {
            break;
        }
        q->top = tops[k];
        double v = run_weighted(q);
        if (v < best) {
            best = v;
            best_top = tops[k];
        }
        out->stopped = hv__watch_over(watch);
        out->bound = fmin(best, low);
    }
    q->top = best_top;
    return best;
}

/* Runs the program of the best maximum again and takes its cuts. */
static void take_answer(struct weighted *q, struct hv_arena *arena, double best,
                        struct hv_partition_result *out)
{
    const struct hv_partition *p = q->p;
    run_weighted(q);
    out->n_stages = p->n_stages;
    out->cut = hv_arena_new(arena, size_t, p->n_stages);
    out->order = hv_arena_new(arena, size_t, p->n_stages);
    for (size_t s = 0; s < p->n_stages; s++) {
        out->order[s] = s;
    }
    trace_weighted(q, out->cut);
    hv__finish(p, arena, out);
    out->objective = best;
    out->proven = !out->stopped;
    if (out->proven) {
        out->bound = best;
    }
}

enum hv_status hv_partition_weighted(const struct hv_partition *p,
                                     const struct hv_part_weights *weights,
                                     const struct hv_solve_limits *limits, struct hv_arena *arena,
                                     struct hv_partition_result *out, struct hv_err *err)
{
    struct hv_partition plain = *p;
    struct hv_partition_result minmax, minsum;
    size_t cells = (p->n_stages + 1) * (p->n_layers + 1), n = 0;
    struct hv__watch watch;
    double *tops = NULL, best = HUGE_VAL;
    memset(out, 0, sizeof *out);
    enum hv_status st = check_weights(p, weights, err);
    if (st != HV_OK) {
        return st;
    }
    hv__watch_start(&watch, limits);
    plain.sum_weight = 0;
    plain.max_weight = 1;
    out->method = "dp-slowest-stage";
    out->objective = out->bound = HV_UNKNOWN;
    out->proven = true;
    out->proof = "every candidate maximum below the bound, least sums by dynamic program";
    if ((st = hv_partition_solve(&plain, NULL, arena, &minmax, err)) != HV_OK || !minmax.feasible ||
        (st = hv_partition_min_sum(&plain, HUGE_VAL, arena, &minsum, err)) != HV_OK) {
        return st;
    }
    double least = fmin(weights->c0, weights->c0 + weights->c1 * (double)(p->n_stages - 1));
    struct weighted q = {.p = p,
                         .w = weights,
                         .before = hv_arena_new(arena, double, cells),
                         .after = hv_arena_new(arena, double, cells)};
    if (!has_tables(p)) {
        q.window = hv_arena_new(arena, struct hv__row, p->n_stages);
    }
    st = hv_partition_candidates(p, minmax.max, HUGE_VAL, arena, &tops, &n, err);
    if (st == HV_OK) {
        best = search_tops(&q, tops, n, minsum.sum, least, &watch, out);
    }
    if (st == HV_OK && !isinf(best)) {
        take_answer(&q, arena, best, out);
    }
    return st;
}

/* Enumeration for hv_partition_combine. */
struct walk {
    const struct hv_partition *p;
    hv_part_combine *combine;
    void *ctx;
    struct hv_err *err;
    double best, *value;
    size_t *cut, *best_cut;
};

static enum hv_status walk_from(struct walk *w, size_t s, size_t i)
{
    size_t L = w->p->n_layers, S = w->p->n_stages;
    enum hv_status st = HV_OK;
    for (size_t j = s + 1 == S ? L : i + w->p->min_layers; j <= L && st == HV_OK; j++) {
        w->value[s] = hv_partition_value(w->p, s, s, i, j);
        w->cut[s] = j;
        if (isinf(w->value[s])) {
            continue;
        }
        if (s + 1 < S) {
            st = walk_from(w, s + 1, j);
            continue;
        }
        double v = HUGE_VAL;
        st = w->combine(w->ctx, w->value, S, &v, w->err);
        if (st == HV_OK && v < w->best) {
            w->best = v;
            memcpy(w->best_cut, w->cut, S * sizeof *w->cut);
        }
    }
    return st;
}

/* Number of partitions of L layers into S runs of at least m. */
static double count_partitions(size_t L, size_t S, size_t m)
{
    double n = 1, free_layers = (double)L - (double)(S * m);
    for (size_t k = 1; k < S; k++) {
        n *= (free_layers + (double)k) / (double)k;
    }
    return free_layers < 0 ? 0 : n;
}

enum hv_status hv_partition_combine(const struct hv_partition *p, hv_part_combine *combine,
                                    void *ctx, struct hv_arena *arena,
                                    struct hv_partition_result *out, struct hv_err *err)
{
    size_t S = p->n_stages;
    memset(out, 0, sizeof *out);
    if (p->free_order || p->any_stages || p->tolls) {
        return hv_err_set(err, HV_EINPUT,
                          "this objective needs a fixed order and number of stages, and no tolls");
    }
    if (count_partitions(p->n_layers, S, p->min_layers) > 20e6) {
        return hv_err_set(err, HV_ELIMIT,
                          "more than 20 million partitions; use an objective of sums and maxima");
    }
    struct walk w = {p,
                     combine,
                     ctx,
                     err,
                     HUGE_VAL,
                     hv_arena_new(arena, double, S),
                     hv_arena_new(arena, size_t, S),
                     hv_arena_new(arena, size_t, S)};
    enum hv_status st = walk_from(&w, 0, 0);
    out->method = "enumeration";
    out->proof = "every partition was judged";
    out->proven = st == HV_OK;
    out->objective = out->bound = HV_UNKNOWN;
    if (st != HV_OK || isinf(w.best)) {
        return st;
    }
    out->n_stages = S;
    out->cut = w.best_cut;
    out->order = hv_arena_new(arena, size_t, S);
    for (size_t s = 0; s < S; s++) {
        out->order[s] = s;
    }
    hv__finish(p, arena, out);
    out->objective = out->bound = w.best;
    return HV_OK;
}
