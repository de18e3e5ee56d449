/**
 * Small passes: what it costs that a sequence has to go through all layers before the iteration
 * ends.
 *
 * Let T' be the time of an iteration without what is around its passes (bound.c). Of any plan whose
 * stages are a chain two things hold:
 * 1. *Work.* Devices of kind k that earn λ_k per second earn no more than T' Σ λ_k in T'.
 * 2. *Chain.* Every micro-batch (or slice of one) runs F through all stages in turn and then B
 *    through all of them back, on whichever ranks hold them: T' is at least the sum over all parts
 *    of the model of F and B of one pass. That holds for every choice of one rank per part, so also
 *    for their mean weighted by the sequences that each takes, and for the mean over passes.
 * A part in passes of size x (hv_cost_cell) costs work_s + start_s / x of device time per sequence
 * and at least chain_start_s + x chain_s of the chain: large passes are long, small ones cost many
 * starts and slow products. With θ between 0 and 1, κ > 0, N sequences of a batch and m parts of a
 * class, θ times 1 plus (1-θ) κ times 2, the latter weighted by the sequences of each replica:
 *
 *   T' (θ Σ λ + (1-θ) κ) ≥ Σ_classes m min over kinds, cells and x of
 *                          θ N λ (work_s + start_s/x) + (1-θ) κ (chain_start_s + x chain_s).
 *
 * The least over x of a cell is at sqrt of its two slopes, or an end. Nothing is assumed of what
 * size passes have: each part, rank and replica may choose its own. κ is the speed of all devices
 * in use, so that θ alone decides between the two.
 */
#include "solver/eval/bound_int.h"

double hv__mix(size_t i)
{
    static const double mixes[HV__MIXES] = {1,   0.97, 0.94, 0.9,  0.85, 0.8, 0.75,
                                            0.7, 0.63, 0.55, 0.45, 0.35, 0.2, 0.1};
    return mixes[i];
}

/** What a mix makes of one part. */
struct weights {
    double work, chain; /**< θ N λ and (1-θ) κ */
};

static double cell_value(const struct hv_cost_cell *c, const struct weights *w)
{
    double falls = w->work * c->start_s, rises = w->chain * c->chain_s;
    double x = rises > 0 ? sqrt(falls / rises) : HUGE_VAL;
    x = fmin(fmax(x, c->least), c->most);
    double starts = falls > 0 ? falls / x : 0, length = rises > 0 ? rises * x : 0;
    return w->work * c->work_s + starts + w->chain * c->chain_start_s + length;
}

static double mix_value(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                        double share)
{
    double sum = 0;
    for (size_t c = 0; c + 1 < w->n_items; c++) {
        double least = w->units[c] > 0 ? HUGE_VAL : 0;
        for (size_t k = 0; k < w->n_kinds && w->units[c] > 0; k++) {
            const struct hv__cells *cells = &w->cells[k * w->stride + c];
            struct weights by = {share * w->batch * p->speed[k], (1 - share) * p->total};
            for (size_t i = 0; kinds[k] && i < cells->n; i++) {
                least = fmin(least, cell_value(&cells->items[i], &by));
            }
        }
        sum += w->units[c] / w->batch * least;
    }
    return sum;
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
}

void hv__mix_values(const struct hv__work *w, const bool *kinds, struct hv__prices *p)
{
    set_total(w, kinds, p);
    for (size_t i = 0; i < HV__MIXES; i++) {
        p->mixed[i] = mix_value(w, kinds, p, hv__mix(i));
    }
}

void hv__improve_mix(const struct hv__work *w, const bool *kinds, struct hv__prices *p)
{
    hv__mix_values(w, kinds, p);
    size_t at = 0;
    for (size_t i = 1; i < HV__MIXES; i++) {
        at = p->mixed[i] > p->mixed[at] ? i : at;
    }
    double best = p->mixed[at] / p->total;
    for (double step = 1.3; step > 1.01; step = sqrt(step)) {
        for (size_t k = 0; k < w->n_kinds; k++) {
            for (int up = 0; up < 2 && kinds[k]; up++) {
                double before = p->speed[k];
                p->speed[k] *= up ? step : 1 / step;
                set_total(w, kinds, p);
                double now = mix_value(w, kinds, p, hv__mix(at)) / p->total;
                if (now > best) {
                    best = now;
                } else {
                    p->speed[k] = before;
                }
            }
        }
    }
    hv__mix_values(w, kinds, p);
}
