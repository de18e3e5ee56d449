/*
 * Replicated stages with a choice per layer: fronts of suffixes, and the knapsack of a run.
 * Not here: the knapsack itself (solver/optim/choice/knapsack.c), plain chains (partition.c).
 */
#include "solver/optim/chain/replicas.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/chain/partition_int.h"
#include "solver/optim/choice/knapsack.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A plan of a suffix: its devices and copies, its first run, and the plan behind this run. */
struct plan {
    size_t devices, copies;
    uint32_t end, width, replicas, next;
};

/* Stored results of a run at one width: least times by depth, and values independent of depth. */
struct known {
    uint32_t in_flight;
    double time;
};
struct run {
    struct known *items; /* a growable array */
    size_t n, cap;
};

struct front {
    struct plan *items; /* a growable array: rising devices, falling copies */
    size_t n, cap;
};

struct search {
    const struct hv_replicas *p;
    struct hv__watch watch;
    struct hv_arena *arena; /* of the answer */
    struct hv_arena scratch;
    struct run *runs;     /* (width, first, end) */
    struct front *fronts; /* first layer → plans of the suffix within the limit */
    double *fast, *sync;  /* width · (n + 1) + place: sums of least time, and of sync, before it */
    size_t n;             /* places of cuts, less one */
    bool *follows;        /* place · (n + 1) + place: true where a run lies between them */
    size_t *list;         /* layers of the run at hand */
    size_t *choice;
    double limit;
    bool exact;
};

static enum hv_status check_layer(const struct hv_replica_layer *l, size_t at, struct hv_err *err)
{
    if (l->n_options == 0) {
        return hv_err_set(err, HV_EINPUT, "layer %zu: expected at least one option", at + 1);
    }
    for (size_t k = 0; k < l->n_options; k++) {
        const struct hv_replica_option *o = &l->options[k];
        if (!(o->time >= 0) || !(o->fixed >= 0) || !(o->held >= 0) ||
            !isfinite(o->time + o->fixed + o->held) || !(l->sync >= 0) || isinf(l->sync)) {
            return hv_err_set(
                err, HV_EINPUT,
                "layer %zu, option %zu: expected finite numbers that are not negative", at + 1,
                k + 1);
        }
    }
    return HV_OK;
}

static bool is_subset(const struct hv_replicas *p, size_t a, size_t b)
{
    for (size_t l = 0; l < p->n_layers; l++) {
        if (p->sets[a * p->n_layers + l] > p->sets[b * p->n_layers + l]) {
            return false;
        }
    }
    return true;
}

static enum hv_status check_sets(const struct hv_replicas *p, struct hv_err *err)
{
    bool ok = p->n_sets >= 2;
    for (size_t l = 0; ok && l < p->n_layers; l++) {
        ok = !p->sets[l] && p->sets[(p->n_sets - 1) * p->n_layers + l];
    }
    for (size_t a = 1; ok && a < p->n_sets; a++) {
        for (size_t b = 0; ok && b < a; b++) {
            ok = !is_subset(p, a, b);
        }
    }
    return ok ? HV_OK
              : hv_err_set(err, HV_EINPUT,
                           "expected sets from the empty to the full one, each behind its subsets");
}

static enum hv_status check(const struct hv_replicas *p, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (p->n_layers == 0 || p->n_devices == 0 || p->n_widths == 0) {
        return hv_err_set(err, HV_EINPUT, "expected at least one layer, device and width");
    }
    if (isnan(p->memory) || p->memory < 0) {
        return hv_err_set(err, HV_EINPUT, "expected a memory that is not negative");
    }
    size_t n = p->sets ? p->n_sets : p->n_layers + 1;
    if (p->n_devices > HV_REPLICAS_MAX_DEVICES || n > HV_REPLICAS_MAX_RUNS ||
        n > HV_REPLICAS_MAX_RUNS / n / p->n_widths) {
        return hv_err_set(err, HV_ELIMIT, "%zu layers on %zu devices are too many", p->n_layers,
                          p->n_devices);
    }
    for (size_t w = 0; w < p->n_widths && st == HV_OK; w++) {
        const struct hv_replica_width *x = &p->widths[w];
        if (x->width == 0) {
            return hv_err_set(err, HV_EINPUT, "width %zu: expected at least one device", w + 1);
        }
        for (size_t j = 0; x->cuts && j < n; j++) {
            if (!(x->cuts[j] >= 0) || isinf(x->cuts[j])) {
                return hv_err_set(err, HV_EINPUT, "cut %zu: expected a time that is not negative",
                                  j);
            }
        }
        for (size_t k = 0; x->runs && k < n * n; k++) {
            if (!(x->runs[k] >= 0) || isinf(x->runs[k])) {
                return hv_err_set(err, HV_EINPUT,
                                  "run %zu to %zu: expected a time that is not negative", k / n,
                                  k % n);
            }
        }
        for (size_t l = 0; l < p->n_layers && st == HV_OK; l++) {
            st = check_layer(&x->layers[l], l, err);
        }
    }
    return st == HV_OK && p->sets ? check_sets(p, err) : st;
}

static double need_of(const struct hv_replica_option *o, size_t in_flight)
{
    return o->fixed + (double)in_flight * o->held;
}

/* Lists the layers of a stage; returns how many. */
static size_t list_layers(struct search *q, const struct hv_replica_stage *s)
{
    size_t L = q->p->n_layers, n = 0;
    const unsigned char *sets = q->p->sets;
    for (size_t l = sets ? 0 : s->first; l < (sets ? L : s->end); l++) {
        if (!sets || sets[s->end * L + l] > sets[s->first * L + l]) {
            q->list[n++] = l;
        }
    }
    return n;
}

/* Time of the fastest option of every layer, and whether these options fit; else whether any
 * options fit. */
static bool fastest_fits(const struct search *q, const struct hv_replica_stage *s, size_t n,
                         size_t *choice, double *time, bool *hopeless)
{
    double need = 0, least = 0;
    *time = 0;
    for (size_t g = 0; g < n; g++) {
        const struct hv_replica_layer *x = &q->p->widths[s->width].layers[q->list[g]];
        size_t best = 0;
        double light = HUGE_VAL;
        for (size_t k = 0; k < x->n_options; k++) {
            const struct hv_replica_option *o = &x->options[k], *b = &x->options[best];
            double takes = need_of(o, s->in_flight);
            light = fmin(light, takes);
            if (o->time < b->time || (o->time <= b->time && takes < need_of(b, s->in_flight))) {
                best = k;
            }
        }
        choice[g] = best;
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
    size_t n = list_layers(q, s);
    if (fastest_fits(q, s, n, choice, &time, &hopeless)) {
        return time;
    }
    if (hopeless) {
        return HUGE_VAL;
    }
    size_t *first = hv_arena_new(&q->scratch, size_t, n + 1);
    const struct hv_replica_layer *layers = q->p->widths[s->width].layers;
    for (size_t g = 0; g < n; g++) {
        first[g + 1] = first[g] + layers[q->list[g]].n_options;
    }
    struct hv_knapsack_option *o = hv_arena_new(&q->scratch, struct hv_knapsack_option, first[n]);
    for (size_t g = 0; g < n; g++) {
        for (size_t k = 0; k < layers[q->list[g]].n_options; k++) {
            const struct hv_replica_option *x = &layers[q->list[g]].options[k];
            o[first[g] + k] = (struct hv_knapsack_option){-x->time, need_of(x, s->in_flight)};
        }
    }
    struct hv_knapsack_result r;
    if (hv_knapsack_solve(o, first, n, q->p->memory, &q->scratch, &r, NULL) != HV_OK ||
        !r.feasible) {
        return HUGE_VAL;
    }
    q->exact = q->exact && r.proven;
    memcpy(choice, r.choice, n * sizeof *choice);
    return -r.value;
}

static double cut_at(const struct search *q, size_t width, size_t j)
{
    const double *cuts = q->p->widths[width].cuts;
    return cuts && j > 0 && j < q->n ? cuts[j] : 0;
}

/* Time per sample of a stage from the least time of its layers. */
static double value_of(const struct search *q, const struct hv_replica_stage *s, double time)
{
    size_t n = q->n + 1;
    const double *runs = q->p->widths[s->width].runs, *sync = q->sync + s->width * n;
    double d = (double)s->replicas;
    time += cut_at(q, s->width, s->first) + cut_at(q, s->width, s->end);
    time += runs ? runs[s->first * n + s->end] : 0;
    return time / d + (1 - 1 / d) * (sync[s->end] - sync[s->first]);
}

/* Least time of the stage's layers at its depth; worked out once. */
static double run_time(struct search *q, const struct hv_replica_stage *s)
{
    struct run *r = &q->runs[(s->width * q->n + s->first) * (q->n + 1) + s->end];
    for (size_t k = 0; k < r->n; k++) {
        if (r->items[k].in_flight == s->in_flight) {
            return r->items[k].time;
        }
    }
    struct hv_arena_mark mark = hv_arena_mark(&q->scratch);
    double time = solve_run(q, s, q->choice);
    hv_arena_rewind(&q->scratch, mark);
    hv_vec_push(r, (struct known){(uint32_t)s->in_flight, time});
    return time;
}

/*
 * The fewest replicas with which the stage keeps the limit when `copies` are behind it; false when
 * there are none among `room` devices. Fewer are better for every stage before it.
 */
static bool fewest_replicas(struct search *q, struct hv_replica_stage *s, size_t copies,
                            size_t room)
{
    const double *fast = q->fast + s->width * (q->n + 1);
    size_t width = q->p->widths[s->width].width, batch = q->p->batch;
    double least = fast[s->end] - fast[s->first];
    for (s->replicas = 1; s->replicas * width <= room; s->replicas++) {
        if (batch && copies + s->replicas > batch) {
            return false;
        }
        if ((batch && batch % s->replicas) || value_of(q, s, least * (1 - 1e-12)) > q->limit) {
            continue;
        }
        s->in_flight = (copies + 2 * s->replicas - 1) / s->replicas;
        double time = run_time(q, s);
        if (value_of(q, s, time) <= q->limit) {
            return true;
        }
        if (isinf(time) && s->replicas >= copies) {
            return false; /* no number of replicas needs less memory */
        }
    }
    return false;
}

static int by_devices(const void *pa, const void *pb)
{
    const struct plan *a = pa, *b = pb;
    if (a->devices != b->devices) {
        return a->devices < b->devices ? -1 : 1;
    }
    if (a->copies != b->copies) {
        return a->copies < b->copies ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end < b->end ? -1 : 1;
    }
    return (a->width > b->width) - (a->width < b->width);
}

static void keep_front(struct front *f)
{
    size_t kept = 0;
    if (f->n) {
        qsort(f->items, f->n, sizeof *f->items, by_devices);
    }
    for (size_t k = 0; k < f->n; k++) {
        if (kept == 0 || f->items[k].copies < f->items[kept - 1].copies) {
            f->items[kept++] = f->items[k];
        }
    }
    f->n = kept;
}

/* True when the front has a plan that uses no more of either. */
static bool is_beaten(const struct front *f, size_t devices, size_t copies)
{
    for (size_t k = 0; k < f->n; k++) {
        if (f->items[k].devices <= devices && f->items[k].copies <= copies) {
            return true;
        }
    }
    return false;
}

/* Plans of the suffix from layer `first` on. */
static void fill_front(struct search *q, size_t first)
{
    struct front *to = &q->fronts[first];
    to->n = 0;
    for (size_t end = first + 1; end <= q->n; end++) {
        for (size_t w = 0; w < q->p->n_widths; w++) {
            for (size_t k = 0; k < q->fronts[end].n; k++) {
                const struct plan *behind = &q->fronts[end].items[k];
                size_t width = q->p->widths[w].width;
                struct hv_replica_stage s = {.first = first, .end = end, .width = w};
                if (!q->follows[first * (q->n + 1) + end]) {
                    break;
                }
                if (is_beaten(to, behind->devices + width, behind->copies + 1) ||
                    !fewest_replicas(q, &s, behind->copies, q->p->n_devices - behind->devices)) {
                    continue;
                }
                hv_vec_push(to, (struct plan){behind->devices + s.replicas * width,
                                              behind->copies + s.replicas, (uint32_t)end,
                                              (uint32_t)w, (uint32_t)s.replicas, (uint32_t)k});
            }
        }
    }
    keep_front(to);
}

/* Fills stages and choices from the best plan; the values are worked out again from scratch. */
static void trace(struct search *q, struct hv_replicas_result *out)
{
    size_t at = 0, next = 0;
    out->n_stages = 0;
    out->objective = 0;
    while (at < q->n) {
        const struct plan *t = &q->fronts[at].items[next];
        struct hv_replica_stage *s = &out->stages[out->n_stages++];
        *s = (struct hv_replica_stage){.first = at,
                                       .end = t->end,
                                       .width = t->width,
                                       .replicas = t->replicas,
                                       .in_flight = (t->copies + t->replicas - 1) / t->replicas};
        struct hv_arena_mark mark = hv_arena_mark(&q->scratch);
        s->value = value_of(q, s, solve_run(q, s, q->choice));
        hv_arena_rewind(&q->scratch, mark);
        for (size_t g = list_layers(q, s); g-- > 0;) {
            out->choice[q->list[g]] = q->choice[g];
        }
        out->objective = fmax(out->objective, s->value);
        next = t->next;
        at = t->end;
    }
    out->feasible = true;
}

/* Searches for stages within the limit; the result is the best found so far. */
static bool improve(struct search *q, double limit, struct hv_replicas_result *out)
{
    q->limit = limit;
    q->fronts[q->n].n = 0;
    hv_vec_push(&q->fronts[q->n], (struct plan){0});
    for (size_t first = q->n; first-- > 0;) {
        if (hv__watch_over(&q->watch)) {
            return false;
        }
        fill_front(q, first);
    }
    if (q->fronts[0].n == 0) {
        return false;
    }
    trace(q, out);
    return true;
}

static double fastest_of(const struct search *q, size_t width, size_t layer)
{
    const struct hv_replica_layer *x = &q->p->widths[width].layers[layer];
    double least = HUGE_VAL;
    for (size_t k = 0; k < x->n_options; k++) {
        least = fmin(least, x->options[k].time);
    }
    return least;
}

/* Lower bound: the devices' time for all layers at their cheapest widths. */
static double least_value(const struct search *q)
{
    double work = 0;
    for (size_t l = 0; l < q->p->n_layers; l++) {
        double least = HUGE_VAL;
        for (size_t w = 0; w < q->p->n_widths; w++) {
            least = fmin(least, fastest_of(q, w, l) * (double)q->p->widths[w].width);
        }
        work += least;
    }
    return work / (double)q->p->n_devices * (1 - 1e-12);
}

static void tell(struct search *q, const struct hv_replicas_result *out, double low)
{
    if (hv__watch_due(&q->watch)) {
        hv__watch_tell(&q->watch, out->feasible ? out->objective : HUGE_VAL, low);
    }
}

/* Bisects between a lower bound and the value of the best stages found; returns the lower bound. */
static double search(struct search *q, struct hv_replicas_result *out)
{
    double low = least_value(q), near = 0.01, top = 0;
    for (size_t w = 0; w < q->p->n_widths; w++) {
        top = fmax(top, q->fast[w * (q->n + 1) + q->n]);
    }
    for (double limit = low * 1.1; limit > 0 && limit < top && !out->feasible; limit *= 1.5) {
        if (!improve(q, limit, out) && !q->watch.stopped) {
            low = limit;
        }
        tell(q, out, low);
    }
    if (!out->feasible && !improve(q, DBL_MAX, out)) {
        return low;
    }
    while (out->objective > low && !q->watch.stopped) {
        bool below = out->objective - low <= near * out->objective;
        double before = out->objective;
        double limit = below ? nextafter(before, 0) : 0.5 * (low + before);
        bool found = improve(q, limit, out);
        if (found && below) {
            near /= 16;
        } else if (!found && !q->watch.stopped) {
            low = below ? before : limit;
        }
        tell(q, out, low);
    }
    return low;
}

static void finish(struct search *q, double low, struct hv_replicas_result *out)
{
    out->stopped = q->watch.stopped;
    out->proven = !out->stopped && q->exact;
    out->proof = out->stopped ? "stopped; the bound is the last limit that no stages keep"
                              : "no stages keep all values below it, over all runs, widths and "
                                "numbers of copies";
    if (out->feasible) {
        out->bound = q->exact ? fmin(low, out->objective) : least_value(q);
        return;
    }
    out->proof = out->stopped ? "stopped before an answer was found"
                              : "no division of the devices gives every layer the memory it "
                                "needs, even with the lightest options";
}

/* Computes the sums over the layers before every place, and the pairs of places with a run between
 * them. */
static void sum_places(struct search *q)
{
    const struct hv_replicas *p = q->p;
    size_t L = p->n_layers, n = q->n + 1;
    for (size_t w = 0; w < p->n_widths; w++) {
        for (size_t j = 0; j < n; j++) {
            for (size_t l = 0; l < (p->sets ? L : j); l++) {
                if (p->sets && !p->sets[j * L + l]) {
                    continue;
                }
                q->fast[w * n + j] += fastest_of(q, w, l);
                q->sync[w * n + j] += p->widths[w].layers[l].sync;
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            q->follows[i * n + j] = !p->sets || is_subset(p, i, j);
        }
    }
}

static void begin(struct search *q)
{
    size_t n = q->n + 1;
    q->runs = hv_arena_new(&q->scratch, struct run, q->p->n_widths * q->n * n);
    q->fronts = hv_arena_new(&q->scratch, struct front, n);
    q->fast = hv_arena_new(&q->scratch, double, q->p->n_widths *n);
    q->sync = hv_arena_new(&q->scratch, double, q->p->n_widths *n);
    q->follows = hv_arena_new(&q->scratch, bool, n *n);
    q->choice = hv_arena_new(&q->scratch, size_t, q->p->n_layers);
    q->list = hv_arena_new(&q->scratch, size_t, q->p->n_layers);
    sum_places(q);
}

enum hv_status hv_replicas_solve(const struct hv_replicas *p, const struct hv_solve_limits *limits,
                                 struct hv_arena *arena, struct hv_replicas_result *out,
                                 struct hv_err *err)
{
    struct search q = {.p = p, .arena = arena, .limit = HUGE_VAL, .exact = true};
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "front-dp-replicas-knapsack";
    enum hv_status st = check(p, err);
    if (st != HV_OK) {
        return st;
    }
    hv__watch_start(&q.watch, limits);
    q.n = p->sets ? p->n_sets - 1 : p->n_layers;
    begin(&q);
    out->stages = hv_arena_new(arena, struct hv_replica_stage, p->n_layers);
    out->choice = hv_arena_new(arena, size_t, p->n_layers);
    double low = search(&q, out);
    finish(&q, low, out);
    for (size_t k = 0; k < p->n_widths * q.n * (q.n + 1); k++) {
        hv_vec_free(&q.runs[k]);
    }
    for (size_t k = 0; k <= q.n; k++) {
        hv_vec_free(&q.fronts[k]);
    }
    hv_arena_free(&q.scratch);
    return HV_OK;
}
