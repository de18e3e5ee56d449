/**
 * What devices beyond a cut take over from those before it: a knapsack of parts of the model (case
 * C of cut.c).
 */
#include "solver/bound/bound_int.h"

/** A piece of the knapsack: what is worth most per second comes first. */
struct piece {
    double value, sum_s;
};

/** Most of ν K over the budgets of one piece, of which `k0` and `b0` are value and seconds of those
 * before it. */
static double most_of_piece(const struct hv__beyond *x, struct piece p, double k0, double b0)
{
    double to = fmin(b0 + p.sum_s, x->window_s), best = 0;
    double slope = p.sum_s > 0 ? p.value / p.sum_s : 0;
    double whole = x->window_s - x->hop_s; /* as much leaves time for the whole batch */
    double top = slope > 0 ? (x->window_s + b0 - k0 / slope) / 2 : to;
    const double tries[] = {b0, to, fmin(fmax(fmax(top, whole), b0), to)};
    for (size_t i = 0; i < HV_COUNT(tries) && b0 <= to; i++) {
        double share = x->hop_s > 0 ? fmin(1, (x->window_s - tries[i]) / x->hop_s) : 1;
        double value = tries[i] >= b0 + p.sum_s ? k0 + p.value : k0 + slope * (tries[i] - b0);
        best = fmax(best, share * value);
    }
    return best;
}

double hv__taken_over(const struct hv__work *w, const double *values)
{
    struct piece sorted[HV__ITEMS_BY_SIZE];
    size_t n = 0;
    for (size_t c = 0; c + 1 < w->n_items; c++) {
        struct piece p = {values[c], w->units[c] / w->batch * w->beyond->sum_s[c]};
        size_t at = n++;
        for (; at > 0 && sorted[at - 1].value * p.sum_s < p.value * sorted[at - 1].sum_s; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = p;
    }
    double best = 0, k0 = 0, b0 = 0;
    for (size_t i = 0; i < n; i++) {
        best = fmax(best, most_of_piece(w->beyond, sorted[i], k0, b0));
        k0 += sorted[i].value;
        b0 += sorted[i].sum_s;
    }
    return best;
}
