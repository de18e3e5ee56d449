/**
 * Bound by the size of passes: every sequence passes through all layers before the iteration ends,
 * which takes long with large passes, while small passes cost more work.
 *
 * Let T' be the time of an iteration without the time around its passes (least.c). Of any plan
 * whose stages are a chain two things hold:
 * 1. *Work.* Devices of kind k that earn λ_k per second earn no more than T' Σ λ_k in T'.
 * 2. *Chain.* Every micro-batch (or slice of one) runs F through all stages in turn and then B
 *    through all of them back, on whichever ranks hold them: T' is at least the sum over all parts
 *    of the model of F and B of one pass. That holds for every choice of one rank per part, so also
 *    for their mean weighted by the sequences that each takes, and for the mean over passes.
 * A part in passes of size x (hv_cost_cell) costs w + s / x of device time per sequence and at
 * least s' + x w' of the chain, both by its cell: large passes are long, small ones cost many
 * starts and slow products. With θ between 0 and 1, κ > 0, N sequences of a batch and m parts of a
 * class, θ times 1 plus (1-θ) κ times 2, the latter weighted by the sequences of each replica:
 *
 *   T' (θ Σ λ + (1-θ) κ) ≥ Σ_classes m min over kinds, cells and x of
 *                          θ N λ (w + s/x) + (1-θ) κ (s' + x w').
 *
 * The minimum over x of a cell is at the square root of the ratio of its two slopes, or at an end.
 * The sizes of passes are free: each part, rank and replica may choose its own. κ is the speed of
 * all devices in use, so that θ alone decides between the two.
 */
#include "solver/bound/bound_int.h"

/** Most steps of one size in one direction. */
#define TURNS 8

/** A trial: factors on the speeds of two kinds, for one mix. */
struct
try {
    size_t a, b;
    double times_a, times_b;
    size_t mix;
};

/** Value of a part of the model for the whole batch on devices of a kind, by one mix. */
static double value_on(const struct hv__work *w, const struct hv__prices *p, size_t k, size_t item,
                       size_t mix)
{
    double share = hv_cost_mix(mix), all = w->batch * p->speed[k], rest = (1 - share) * p->total;
    size_t at = k * w->stride + item;
    if (w->sizes[at] == NULL) {
        return share * all * w->floor_s[at];
    }
    return w->even ? all * hv_cost_even_s(w->sizes[at], mix, rest / all)
                   : share * all * hv_cost_weighted_s(w->sizes[at], rest / (share * all));
}

static double part_value(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                         size_t item, size_t mix)
{
    double least = HUGE_VAL;
    for (size_t k = 0; k < w->n_kinds; k++) {
        least = kinds[k] ? fmin(least, value_on(w, p, k, item, mix)) : least;
    }
    return least;
}

static double mix_value(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                        size_t mix)
{
    double sum = 0, values[HV__ITEMS_BY_SIZE];
    for (size_t c = 0; c + 1 < w->n_items; c++) {
        double parts = w->units[c] / w->batch;
        double value = parts > 0 ? parts * part_value(w, kinds, p, c, mix) : 0;
        sum += value;
        if (w->beyond != NULL) {
            values[c] = value;
        }
    }
    return w->beyond != NULL ? sum - hv__taken_over(w, values) : sum;
}

static void set_total(const struct hv__work *w, const bool *kinds, struct hv__prices *p)
{
    p->total = 0;
    p->optimizer = HUGE_VAL;
    for (size_t k = 0; k < w->n_kinds; k++) {
        if (kinds[k]) {
            p->total += w->devices[k] * p->speed[k];
            double s = p->speed[k] * w->floor_s[k * w->stride + w->n_items - 1];
            p->optimizer = fmin(p->optimizer, s);
        }
    }
    if (w->beyond != NULL) {
        p->optimizer = 0; /* devices beyond the cut may do it */
    }
}

void hv__mix_values(const struct hv__work *w, const bool *kinds, struct hv__prices *p)
{
    set_total(w, kinds, p);
    for (size_t i = 0; i < HV_COST_MIXES; i++) {
        p->mixed[i] = mix_value(w, kinds, p, i);
    }
}

/** Bound by one mix. */
static double mix_bound(const struct hv__work *w, const bool *kinds, struct hv__prices *p,
                        size_t mix)
{
    set_total(w, kinds, p);
    return mix_value(w, kinds, p, mix) / p->total;
}

/** Multiplies the speeds of two kinds, or of one where they are the same, and keeps the change if
 * it raises the bound by this mix. */
static bool try_speeds(const struct hv__work *w, const bool *kinds, struct hv__prices *p,
                       const struct try *x, double *best)
{
    double before[] = {p->speed[x->a], p->speed[x->b]};
    p->speed[x->a] *= x->times_a;
    p->speed[x->b] *= x->a == x->b ? 1 : x->times_b;
    double now = mix_bound(w, kinds, p, x->mix);
    if (now > *best) {
        *best = now;
        return true;
    }
    p->speed[x->a] = before[0];
    p->speed[x->b] = before[1];
    return false;
}

/** The bound is concave in the logarithms only along some ways, so kinds are tried alone and in
 * pairs, in smaller and smaller steps. */
static double improve_speeds(const struct hv__work *w, const bool *kinds, struct hv__prices *p,
                             size_t mix)
{
    double best = mix_bound(w, kinds, p, mix);
    for (double step = 1.3; step > 1.001; step = sqrt(step)) {
        for (size_t i = 0; i < w->n_kinds * w->n_kinds * 4 && !hv__is_stopped(w); i++) {
            size_t pair = i / 4;
            const struct try x = {.a = pair / w->n_kinds,
                                  .b = pair % w->n_kinds,
                                  .times_a = i & 1 ? step : 1 / step,
                                  .times_b = i & 2 ? step : 1 / step,
                                  .mix = mix};
            for (int again = 0; kinds[x.a] && kinds[x.b] && x.a <= x.b && again < TURNS; again++) {
                again = try_speeds(w, kinds, p, &x, &best) ? again : TURNS;
            }
        }
    }
    return best;
}

void hv__improve_mix(const struct hv__work *w, const bool *kinds, struct hv__prices *p,
                     struct hv_arena *arena)
{
    hv__mix_values(w, kinds, p);
    size_t at = 0;
    for (size_t i = 1; i < HV_COST_MIXES; i++) {
        at = p->mixed[i] > p->mixed[at] ? i : at;
    }
    struct hv__prices best = *p;
    double most = 0;
    for (size_t i = at > 0 ? at - 1 : 0; i < HV_COST_MIXES && i <= at + 1; i++) {
        struct hv__prices own = *p;
        own.speed = hv_arena_copy(arena, p->speed, w->n_kinds, sizeof *own.speed);
        double now = improve_speeds(w, kinds, &own, i);
        best = now > most ? own : best;
        most = fmax(now, most);
    }
    *p = best;
    hv__mix_values(w, kinds, p);
}
