/*
 * Least cost of a part over all sizes of passes, as a function of the weight of the duration of a
 * pass. Cells: cells.c. Users: bound/chain.c, bound/even.c.
 */
#include "solver/cost/floor/curve.h"

#include <math.h>

/* Weight number i of the curve: 0, then a geometric row. */
static double weight_at(int i)
{
    return i == 0 ? 0 : exp2((i - 1 - HV_COST_WEIGHTS / 2) / 2.0);
}

/* Least of work.each_s + work.start_s / x + weight (pass.start_s + x pass.each_s) over the sizes of
 * a cell: where the slopes of its two parts in x are equal, or at an end. */
static double least_over(const struct hv_cost_cell *c, struct hv_cost_line work,
                         struct hv_cost_line pass, double weight)
{
    double rises = weight * pass.each_s;
    double x = rises > 0 ? sqrt(work.start_s / rises) : HUGE_VAL;
    x = fmin(fmax(x, c->least), c->most);
    double starts = work.start_s > 0 ? work.start_s / x : 0, length = rises > 0 ? rises * x : 0;
    return work.each_s + starts + weight * pass.start_s + length;
}

static double chain_value(const struct hv_cost_cell *c, double weight)
{
    return least_over(c, c->of[HV_COST_ALL], c->of[HV_COST_CHAIN], weight);
}

static double even_value(const struct hv_cost_cell *c, double share, double weight)
{
    const struct hv_cost_line *all = &c->of[HV_COST_ALL], *later = &c->of[HV_COST_LATER];
    struct hv_cost_line mixed = {share * all->each_s + (1 - share) * later->each_s,
                                 share * all->start_s + (1 - share) * later->start_s};
    return least_over(c, mixed, c->of[HV_COST_FORWARD], weight);
}

void hv__fill_curve(struct hv_cost_by_size *c, struct hv_arena *arena)
{
    for (int i = 0; i < HV_COST_WEIGHTS; i++) {
        c->weighted_s[i] = HUGE_VAL;
        for (size_t n = 0; n < c->n_cells; n++) {
            c->weighted_s[i] = fmin(c->weighted_s[i], chain_value(&c->cells[n], weight_at(i)));
        }
    }
    c->even_s = hv_arena_new(arena, double, HV_COST_MIXES *HV_COST_WEIGHTS);
    for (int i = 0; i < HV_COST_MIXES * HV_COST_WEIGHTS; i++) {
        c->even_s[i] = -1;
    }
}

/* Two neighbouring places of a curve and the share of the way between them. */
struct place {
    int i, next;
    double frac;
};

static struct place place_of(double weight)
{
    double at = weight > 0 ? 2 * log2(weight) + HV_COST_WEIGHTS / 2 + 1 : 0;
    int i = at < 1 ? 0 : at < HV_COST_WEIGHTS - 1 ? (int)at : HV_COST_WEIGHTS - 1;
    int next = i + 1 < HV_COST_WEIGHTS ? i + 1 : i;
    double from = weight_at(i), width = weight_at(next) - from;
    return (struct place){i, next, width > 0 ? fmin(fmax((weight - from) / width, 0), 1) : 0};
}

/* Both curves are a least of straight lines in the weight: concave, so above their chords, and they
 * never fall. */
double hv_cost_weighted_s(const struct hv_cost_by_size *c, double weight)
{
    struct place p = place_of(weight);
    return c->weighted_s[p.i] + p.frac * (c->weighted_s[p.next] - c->weighted_s[p.i]);
}

double hv_cost_mix(size_t i)
{
    static const double mixes[HV_COST_MIXES] = {1,    0.985, 0.97, 0.955, 0.94, 0.92, 0.9,
                                                0.87, 0.84,  0.8,  0.76,  0.72, 0.67, 0.62,
                                                0.55, 0.48,  0.4,  0.3,   0.2,  0.1};
    return mixes[i];
}

static double even_at(const struct hv_cost_by_size *c, size_t mix, int i)
{
    double *known = &c->even_s[mix * HV_COST_WEIGHTS + (size_t)i];
    if (*known < 0) {
        *known = HUGE_VAL;
        for (size_t n = 0; n < c->n_cells; n++) {
            *known = fmin(*known, even_value(&c->cells[n], hv_cost_mix(mix), weight_at(i)));
        }
    }
    return *known;
}

double hv_cost_even_s(const struct hv_cost_by_size *c, size_t mix, double weight)
{
    struct place p = place_of(weight);
    double from = even_at(c, mix, p.i);
    return from + p.frac * (even_at(c, mix, p.next) - from);
}
