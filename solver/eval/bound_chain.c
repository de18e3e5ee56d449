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
    static const double mixes[HV__MIXES] = {1,    0.985, 0.97, 0.955, 0.94, 0.92, 0.9,
                                            0.87, 0.84,  0.8,  0.76,  0.72, 0.67, 0.62,
                                            0.55, 0.48,  0.4,  0.3,   0.2,  0.1};
    return mixes[i];
}

/** What one mix makes of a part: θ N, and the weight of its chain. */
struct weights {
    double work, chain;
};

static double part_value(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                         size_t item, struct weights by)
{
    double least = HUGE_VAL;
    for (size_t k = 0; k < w->n_kinds; k++) {
        size_t at = k * w->stride + item;
        double work = by.work * p->speed[k];
        if (kinds[k] && w->sizes[at] == NULL) {
            least = fmin(least, work * w->floor_s[at]);
        } else if (kinds[k]) {
            least = fmin(least, work * hv_cost_weighted_s(w->sizes[at], by.chain / work));
        }
    }
    return least;
}

static double mix_value(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                        double share)
{
    double sum = 0;
    for (size_t c = 0; c + 1 < w->n_items; c++) {
        struct weights by = {share * w->batch, (1 - share) * p->total};
        double parts = w->units[c] / w->batch;
        sum += parts > 0 ? parts * part_value(w, kinds, p, c, by) : 0;
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
