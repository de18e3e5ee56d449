/*
 * Identical layers in fixed order: no program is needed, a sweep over the limit on the maximum
 * gives the best weighted sum of Σ and maximum.
 * Not here: layers that differ (partition.c), several chunks per rank (chunks.c).
 */
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define SAME 1e-12 /* of the whole: prefix sums of equal layers differ by rounding */

/* A stage where n layers take slope · n + fixed. */
struct even {
    double slope, fixed;
    size_t most, n, room; /* most layers ever; in use; allowed by the limit at hand */
    size_t stage;
};

/* The limit at which a stage may have one layer more. */
struct event {
    double limit;
    size_t at;
};

struct sweep {
    struct even *even; /* by rising slope */
    size_t n;
    struct event *heap;
    size_t n_events;
};

static bool is_linear(const double *x, size_t n)
{
    double step = x[n] / (double)n;
    for (size_t j = 1; j < n; j++) {
        if (fabs(x[j] - (double)j * step) > SAME * x[n]) {
            return false;
        }
    }
    return true;
}

static bool is_constant(const double *x, size_t n)
{
    for (size_t j = 2; j < n; j++) {
        if (x[j] != x[1]) {
            return false;
        }
    }
    return true;
}

/* True where all layers are equal, so that only the number of layers per stage matters. */
static bool applies(const struct hv_partition *p)
{
    if (p->free_order || p->any_stages || p->tolls || (p->cuts && p->min_layers == 0)) {
        return false;
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        const struct hv_part_stage *x = &p->stages[s];
        if (x->table || !is_linear(x->time, p->n_layers) ||
            (x->memory && !is_linear(x->memory, p->n_layers)) ||
            (p->cuts && s + 1 < p->n_stages && !is_constant(p->cuts[s], p->n_layers))) {
            return false;
        }
    }
    return true;
}

static int by_slope(const void *pa, const void *pb)
{
    const struct even *a = pa, *b = pb;
    if (a->slope != b->slope) {
        return a->slope < b->slope ? -1 : 1;
    }
    return (a->stage > b->stage) - (a->stage < b->stage);
}

static void fill_stages(const struct hv_partition *p, struct sweep *w)
{
    size_t L = p->n_layers, S = p->n_stages;
    for (size_t s = 0; s < S; s++) {
        struct even *e = &w->even[s];
        *e = (struct even){.slope = p->stages[s].time[L] / (double)L,
                           .most = hv__furthest(p, s, s, 0, HUGE_VAL),
                           .n = p->min_layers,
                           .room = p->min_layers,
                           .stage = s};
        if (p->cuts && L > 1) {
            e->fixed = (s > 0 ? p->cuts[s - 1][1] : 0) + (s + 1 < S ? p->cuts[s][1] : 0);
        }
    }
    qsort(w->even, S, sizeof *w->even, by_slope);
}

/* Sifts an event down the heap, the least limit on top. */
static void sift(struct sweep *w, size_t k)
{
    struct event e = w->heap[k];
    for (size_t kid = 2 * k + 1; kid < w->n_events; kid = 2 * k + 1) {
        if (kid + 1 < w->n_events && w->heap[kid + 1].limit < w->heap[kid].limit) {
            kid++;
        }
        if (e.limit <= w->heap[kid].limit) {
            break;
        }
        w->heap[k] = w->heap[kid];
        k = kid;
    }
    w->heap[k] = e;
}

static double next_limit(const struct even *e)
{
    return e->slope * (double)(e->room + 1) + e->fixed;
}

/* Gives the stage at the top of the heap room for one layer more; returns it. */
static struct even *pop(struct sweep *w)
{
    struct even *e = &w->even[w->heap[0].at];
    e->room++;
    if (e->room < e->most) {
        w->heap[0].limit = next_limit(e);
    } else {
        w->heap[0] = w->heap[--w->n_events];
    }
    if (w->n_events) {
        sift(w, 0);
    }
    return e;
}

static void begin_heap(struct sweep *w)
{
    for (size_t s = 0; s < w->n; s++) {
        if (w->even[s].room < w->even[s].most) {
            w->heap[w->n_events++] = (struct event){next_limit(&w->even[s]), s};
        }
    }
    for (size_t k = w->n_events; k-- > 0;) {
        sift(w, k);
    }
}

/*
 * As the limit rises, layers go to the fastest stages with room: those before `edge` are full,
 * those behind it have their least. Keeps the numbers with the best weighted sum in `best`.
 */
static bool run(const struct hv_partition *p, struct sweep *w, size_t *best)
{
    size_t left = p->n_layers - p->min_layers * p->n_stages, edge = w->n - 1;
    double limit = 0, sum = 0, value = HUGE_VAL;
    for (size_t s = 0; s < w->n; s++) {
        const struct even *e = &w->even[s];
        if (e->most < p->min_layers) {
            return false;
        }
        limit = fmax(limit, e->slope * (double)e->n + e->fixed);
        sum += e->slope * (double)e->n + e->fixed;
    }
    begin_heap(w);
    for (;;) {
        if (left == 0 && p->sum_weight * sum + p->max_weight * limit < value) {
            value = p->sum_weight * sum + p->max_weight * limit;
            for (size_t s = 0; s < w->n; s++) {
                best[w->even[s].stage] = w->even[s].n;
            }
        }
        if (w->n_events == 0 || (left == 0 && w->even[edge].slope <= w->even[0].slope)) {
            return value < HUGE_VAL;
        }
        limit = fmax(limit, w->heap[0].limit);
        struct even *e = pop(w);
        if (left > 0) {
            e->n++;
            left--;
            sum += e->slope;
        } else {
            while (edge > 0 && w->even[edge].n == p->min_layers) {
                edge--;
            }
            struct even *slow = &w->even[edge];
            if (e->slope >= slow->slope || slow->n == p->min_layers) {
                continue;
            }
            e->n++;
            slow->n--;
            sum += e->slope - slow->slope;
        }
    }
}

bool hv__solve_even(const struct hv_partition *p, struct hv_arena *arena,
                    struct hv_partition_result *out)
{
    struct sweep w = {.n = p->n_stages};
    if (p->min_layers * p->n_stages > p->n_layers || !applies(p)) {
        return false;
    }
    size_t *n = hv_arena_new(arena, size_t, p->n_stages), at = 0;
    w.even = hv_arena_new(arena, struct even, p->n_stages);
    w.heap = hv_arena_new(arena, struct event, p->n_stages);
    fill_stages(p, &w);
    if (!run(p, &w, n)) {
        return false;
    }
    out->n_stages = p->n_stages;
    out->cut = hv_arena_new(arena, size_t, p->n_stages);
    out->order = hv_arena_new(arena, size_t, p->n_stages);
    for (size_t s = 0; s < p->n_stages; s++) {
        at += n[s];
        out->cut[s] = at;
        out->order[s] = s;
    }
    out->n_probes = 1;
    hv__finish(p, arena, out);
    return isfinite(out->objective);
}
