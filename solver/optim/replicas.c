/*
 * Replicated stages with a choice per layer: the dynamic program, and the knapsack of a run.
 * Not here: the knapsack itself (knapsack.c), plain chains (partition.c).
 */
#include "solver/optim/replicas.h"
#include "solver/base/units.h"
#include "solver/optim/knapsack.h"
#include "solver/optim/partition_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define UNSOLVED (-1.0)

/* How a suffix begins: the run that starts it and what follows. */
struct step {
    uint32_t end, replicas, width;
};

struct search {
    const struct hv_replicas *p;
    struct hv__watch watch;
    struct hv_arena *arena; /* of the answer */
    struct hv_arena scratch;
    double *best; /* (layer, devices, copies) → least maximum of the suffix */
    struct step *step;
    double *run;  /* (width, in_flight) → least time of the run at hand, or UNSOLVED */
    double limit; /* nothing above it is looked at */
    bool exact;
};

static size_t cell_of(const struct search *q, size_t layer, size_t devices, size_t copies)
{
    size_t n = q->p->n_devices + 1;
    return (layer * n + devices) * n + copies;
}

static enum hv_status check_layer(const struct hv_replica_layer *l, size_t at, struct hv_err *err)
{
    if (l->n_options == 0)
        return hv_err_set(err, HV_EINPUT, "layer %zu: expected at least one option", at + 1);
    for (size_t k = 0; k < l->n_options; k++) {
        const struct hv_replica_option *o = &l->options[k];
        if (!(o->time >= 0) || !(o->fixed >= 0) || !(o->held >= 0) ||
            !isfinite(o->time + o->fixed + o->held) || !(l->sync >= 0) || isinf(l->sync))
            return hv_err_set(
                err, HV_EINPUT,
                "layer %zu, option %zu: expected finite numbers that are not negative", at + 1,
                k + 1);
    }
    return HV_OK;
}

static enum hv_status check(const struct hv_replicas *p, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (p->n_layers == 0 || p->n_devices == 0 || p->n_widths == 0)
        return hv_err_set(err, HV_EINPUT, "expected at least one layer, device and width");
    if (isnan(p->memory) || p->memory < 0)
        return hv_err_set(err, HV_EINPUT, "expected a memory that is not negative");
    if (p->n_devices > 4096 ||
        (p->n_layers + 1) > HV_REPLICAS_MAX_CELLS / ((p->n_devices + 1) * (p->n_devices + 1)))
        return hv_err_set(err, HV_ELIMIT, "%zu layers on %zu devices are too many", p->n_layers,
                          p->n_devices);
    for (size_t w = 0; w < p->n_widths && st == HV_OK; w++) {
        const struct hv_replica_width *x = &p->widths[w];
        if (x->width == 0)
            return hv_err_set(err, HV_EINPUT, "width %zu: expected at least one device", w + 1);
        for (size_t j = 0; x->cuts && j <= p->n_layers; j++)
            if (!(x->cuts[j] >= 0) || isinf(x->cuts[j]))
                return hv_err_set(err, HV_EINPUT, "cut %zu: expected a time that is not negative",
                                  j);
        for (size_t l = 0; l < p->n_layers && st == HV_OK; l++)
            st = check_layer(&x->layers[l], l, err);
    }
    return st;
}

static double need_of(const struct hv_replica_option *o, size_t in_flight)
{
    return o->fixed + (double)in_flight * o->held;
}

/* Fastest option of every layer: its time, and whether that fits; else whether anything can. */
static bool fastest_fits(const struct search *q, const struct hv_replica_stage *s, size_t *choice,
                         double *time, bool *hopeless)
{
    double need = 0, least = 0;
    *time = 0;
    for (size_t l = s->first; l < s->end; l++) {
        const struct hv_replica_layer *x = &q->p->widths[s->width].layers[l];
        size_t best = 0;
        double light = HUGE_VAL;
        for (size_t k = 0; k < x->n_options; k++) {
            const struct hv_replica_option *o = &x->options[k], *b = &x->options[best];
            double n = need_of(o, s->in_flight);
            light = fmin(light, n);
            if (o->time < b->time || (o->time <= b->time && n < need_of(b, s->in_flight)))
                best = k;
        }
        choice[l - s->first] = best;
        *time += x->options[best].time;
        need += need_of(&x->options[best], s->in_flight);
        least += light;
    }
    *hopeless = least > q->p->memory;
    return need <= q->p->memory;
}

/* Least time of a run's layers within the memory; `choice` gets its options. */
static double solve_run(struct search *q, const struct hv_replica_stage *s, size_t *choice)
{
    double time = 0;
    bool hopeless = false;
    if (fastest_fits(q, s, choice, &time, &hopeless))
        return time;
    if (hopeless)
        return HUGE_VAL;
    size_t n = s->end - s->first, *first = hv_arena_new(&q->scratch, size_t, n + 1);
    const struct hv_replica_layer *layers = q->p->widths[s->width].layers;
    for (size_t g = 0; g < n; g++)
        first[g + 1] = first[g] + layers[s->first + g].n_options;
    struct hv_knapsack_option *o = hv_arena_new(&q->scratch, struct hv_knapsack_option, first[n]);
    for (size_t g = 0; g < n; g++)
        for (size_t k = 0; k < layers[s->first + g].n_options; k++) {
            const struct hv_replica_option *x = &layers[s->first + g].options[k];
            o[first[g] + k] = (struct hv_knapsack_option){-x->time, need_of(x, s->in_flight)};
        }
    struct hv_knapsack_result r;
    if (hv_knapsack_solve(o, first, n, q->p->memory, &q->scratch, &r, NULL) != HV_OK || !r.feasible)
        return HUGE_VAL;
    q->exact = q->exact && r.proven;
    memcpy(choice, r.choice, n * sizeof *choice);
    return -r.value;
}

static double cut_at(const struct search *q, size_t width, size_t j)
{
    const double *cuts = q->p->widths[width].cuts;
    return cuts && j > 0 && j < q->p->n_layers ? cuts[j] : 0;
}

/* Time per sample of a stage from the least time of its layers. */
static double value_of(const struct search *q, const struct hv_replica_stage *s, double time,
                       double sync)
{
    double d = (double)s->replicas;
    return (time + cut_at(q, s->width, s->first) + cut_at(q, s->width, s->end)) / d +
           (1 - 1 / d) * sync;
}

static double run_time(struct search *q, const struct hv_replica_stage *s, size_t *choice)
{
    double *known = &q->run[s->width * (q->p->n_devices + 1) + s->in_flight];
    if (*known == UNSOLVED) {
        struct hv_arena_mark mark = hv_arena_mark(&q->scratch);
        *known = solve_run(q, s, choice);
        hv_arena_rewind(&q->scratch, mark);
    }
    return *known;
}

/* Puts the run in front of every suffix that begins at its end. */
static void extend(struct search *q, struct hv_replica_stage s, double sync, size_t *choice)
{
    size_t K = q->p->n_devices, w = q->p->widths[s.width].width;
    for (size_t k = 0; k + w <= K; k++)
        for (size_t c = 0; c <= k; c++) {
            double behind = q->best[cell_of(q, s.end, k, c)];
            if (behind >= q->limit)
                continue;
            for (s.replicas = 1; k + s.replicas * w <= K; s.replicas++) {
                s.in_flight = (c + s.replicas + s.replicas - 1) / s.replicas;
                double v = fmax(behind, value_of(q, &s, run_time(q, &s, choice), sync));
                size_t to = cell_of(q, s.first, k + s.replicas * w, c + s.replicas);
                if (v >= q->best[to] || v >= q->limit)
                    continue;
                q->best[to] = v;
                q->step[to] =
                    (struct step){(uint32_t)s.end, (uint32_t)s.replicas, (uint32_t)s.width};
                if (s.first == 0)
                    q->limit = fmin(q->limit, v);
            }
        }
}

static void run(struct search *q)
{
    size_t L = q->p->n_layers, K = q->p->n_devices;
    size_t *choice = hv_arena_new(&q->scratch, size_t, L);
    for (size_t end = L; end > 0; end--)
        for (size_t w = 0; w < q->p->n_widths; w++) {
            double sync = 0;
            for (size_t first = end; first-- > 0 && !hv__watch_over(&q->watch);) {
                struct hv_replica_stage s = {.first = first, .end = end, .width = w};
                sync += q->p->widths[w].layers[first].sync;
                for (size_t y = 0; y <= K; y++)
                    q->run[w * (K + 1) + y] = UNSOLVED;
                extend(q, s, sync, choice);
            }
        }
}

/* Fills stages and choices from the best cell; the values are worked out again from scratch. */
static void trace(struct search *q, size_t devices, size_t copies, struct hv_replicas_result *out)
{
    size_t L = q->p->n_layers, at = 0, k = devices, c = copies;
    out->stages = hv_arena_new(q->arena, struct hv_replica_stage, L);
    out->choice = hv_arena_new(q->arena, size_t, L);
    out->objective = 0;
    while (at < L) {
        struct step t = q->step[cell_of(q, at, k, c)];
        struct hv_replica_stage *s = &out->stages[out->n_stages++];
        *s = (struct hv_replica_stage){.first = at,
                                       .end = t.end,
                                       .width = t.width,
                                       .replicas = t.replicas,
                                       .in_flight = (c + t.replicas - 1) / t.replicas};
        struct hv_arena_mark mark = hv_arena_mark(&q->scratch);
        solve_run(q, s, out->choice + at);
        hv_arena_rewind(&q->scratch, mark);
        double time = 0, sync = 0;
        for (size_t l = at; l < t.end; l++) {
            const struct hv_replica_layer *x = &q->p->widths[t.width].layers[l];
            time += x->options[out->choice[l]].time;
            sync += x->sync;
        }
        s->value = value_of(q, s, time, sync);
        out->objective = fmax(out->objective, s->value);
        k -= t.replicas * q->p->widths[t.width].width;
        c -= t.replicas;
        at = t.end;
    }
}

static void finish(struct search *q, struct hv_replicas_result *out)
{
    size_t K = q->p->n_devices, devices = 0, copies = 0;
    double best = HUGE_VAL;
    for (size_t k = 1; k <= K; k++)
        for (size_t c = 1; c <= k; c++)
            if (q->best[cell_of(q, 0, k, c)] < best) {
                best = q->best[cell_of(q, 0, k, c)];
                devices = k;
                copies = c;
            }
    out->stopped = q->watch.stopped;
    out->proven = !out->stopped && q->exact;
    out->proof = out->stopped ? "stopped before all runs were tried"
                              : "dynamic program over all runs, widths and numbers of copies";
    if (isinf(best)) {
        out->proof = out->stopped ? "stopped before an answer was found"
                                  : "no division of the devices gives every layer the memory it "
                                    "needs, even with the lightest options";
        return;
    }
    trace(q, devices, copies, out);
    out->feasible = true;
    out->bound = out->proven ? out->objective : 0;
}

enum hv_status hv_replicas_solve(const struct hv_replicas *p, const struct hv_part_limits *limits,
                                 struct hv_arena *arena, struct hv_replicas_result *out,
                                 struct hv_err *err)
{
    struct search q = {.p = p, .arena = arena, .limit = HUGE_VAL, .exact = true};
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "dp-replicas-knapsack";
    enum hv_status st = check(p, err);
    if (st != HV_OK)
        return st;
    size_t cells = (p->n_layers + 1) * (p->n_devices + 1) * (p->n_devices + 1);
    hv__watch_start(&q.watch, limits);
    q.best = hv_arena_new(&q.scratch, double, cells);
    q.step = hv_arena_new(&q.scratch, struct step, cells);
    q.run = hv_arena_new(&q.scratch, double, p->n_widths *(p->n_devices + 1));
    for (size_t k = 0; k < cells; k++)
        q.best[k] = HUGE_VAL;
    q.best[cell_of(&q, p->n_layers, 0, 0)] = 0;
    run(&q);
    finish(&q, out);
    hv_arena_free(&q.scratch);
    return HV_OK;
}
