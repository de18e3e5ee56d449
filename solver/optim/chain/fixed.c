/*
 * Contiguous partition in fixed order: windows of the cuts, the dynamic program, the greedy upper
 * bound, and the values of a result. Inner loops are in step.c.
 */
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Toll of a cut behind stage s at j, paid once. */
static double toll_at(const struct hv_partition *p, size_t s, size_t j)
{
    bool paid = p->tolls && s + 1 < p->n_stages && j > 0 && j < p->n_layers;
    return paid ? p->tolls[s][j] : 0;
}

void hv__finish(const struct hv_partition *p, struct hv_arena *arena,
                struct hv_partition_result *out)
{
    out->value = hv_arena_new(arena, double, out->n_stages);
    out->sum = out->max = 0;
    for (size_t s = 0, i = 0; s < out->n_stages; i = out->cut[s++]) {
        out->value[s] = hv_partition_value(p, s, out->order[s], i, out->cut[s]);
        out->sum += out->value[s] + toll_at(p, s, out->cut[s]);
        out->max = fmax(out->max, out->value[s]);
    }
    out->objective = p->sum_weight * out->sum + p->max_weight * out->max;
    out->feasible = true;
}

bool hv__windows(const struct hv_partition *p, double limit, struct hv__row *rows)
{
    size_t L = p->n_layers, S = p->n_stages, m = p->min_layers, at = 0;
    if (m * S > L && !p->any_stages) {
        return false;
    }
    for (size_t s = 0; s < S; s++) {
        at = hv__furthest(p, s, s, at, limit);
        size_t most = p->any_stages ? L : L - (S - 1 - s) * m;
        rows[s].lo = (s + 1) * m < L ? (s + 1) * m : L;
        rows[s].hi = at < most ? at : most;
    }
    if (p->any_stages) {
        return true;
    }
    rows[S - 1].lo = at = L;
    for (size_t s = S; s-- > 1;) {
        if (rows[s].hi < rows[s].lo) {
            return false;
        }
        at = hv__nearest(p, s, s, at, limit);
        if (at > rows[s - 1].lo) {
            rows[s - 1].lo = at;
        }
    }
    return rows[0].hi >= rows[0].lo;
}

/* Row s at the start of stage s: sums including the tolls of the cuts behind stage s - 1. */
static struct hv__row starts_of(const struct hv_partition *p, const struct hv__step *step,
                                const struct hv__row *row, struct hv_arena *arena)
{
    if (!p->tolls || step->goal == HV__MAX || step->pos == 0 || row->lo > row->hi) {
        return *row;
    }
    struct hv__row out = hv__row_new(arena, row->lo, row->hi);
    for (size_t j = row->lo; j <= row->hi; j++) {
        out.v[j - row->lo] = row->v[j - row->lo] + toll_at(p, step->pos - 1, j);
    }
    return out;
}

static void trace_fixed(const struct hv_partition *p, const struct hv__step *step,
                        const struct hv__row *rows, size_t used, struct hv_arena *arena,
                        struct hv_partition_result *out)
{
    struct hv__step s = *step;
    size_t j = p->n_layers;
    double want = rows[used].v[j - rows[used].lo];
    for (size_t k = used; k-- > 0;) {
        s.pos = s.dev = k;
        out->cut[k] = j;
        out->order[k] = k;
        struct hv__row from = starts_of(p, &s, &rows[k], arena);
        j = hv__trace(p, &s, &from, j, want);
        if (s.goal == HV__SUM) {
            want = rows[k].v[j - rows[k].lo];
        }
    }
}

bool hv__solve_fixed(const struct hv_partition *p, enum hv__goal goal, double limit,
                     struct hv_arena *arena, struct hv_partition_result *out)
{
    size_t L = p->n_layers, S = p->n_stages, used = SIZE_MAX;
    struct hv__row *rows = hv_arena_new(arena, struct hv__row, S + 1);
    double *scratch = hv_arena_new(arena, double, L + 1);
    struct hv__step step = {goal, 0, 0, limit};
    double best = HUGE_VAL;
    out->n_probes++;
    if (!hv__windows(p, limit, rows + 1)) {
        return false;
    }
    rows[0] = hv__row_new(arena, 0, 0);
    rows[0].v[0] = 0;
    for (size_t s = 0; s < S; s++) {
        step.pos = step.dev = s;
        rows[s + 1] = hv__row_new(arena, rows[s + 1].lo, rows[s + 1].hi);
        struct hv__row from = starts_of(p, &step, &rows[s], arena);
        hv__relax(p, &step, &from, &rows[s + 1], scratch);
        hv__trim(&rows[s + 1], goal == HV__MAX ? limit : DBL_MAX);
        const struct hv__row *r = &rows[s + 1];
        bool ends = r->lo <= L && r->hi == L && (p->any_stages || s + 1 == S);
        if (ends && r->v[L - r->lo] < best && (goal == HV__SUM || r->v[L - r->lo] <= limit)) {
            best = r->v[L - r->lo];
            used = s + 1;
        }
    }
    if (used == SIZE_MAX) {
        return false;
    }
    out->n_stages = used;
    out->cut = hv_arena_new(arena, size_t, S);
    out->order = hv_arena_new(arena, size_t, S);
    trace_fixed(p, &step, rows, used, arena, out);
    hv__finish(p, arena, out);
    return true;
}

/* Furthest-reaching cut with true values ≤ limit; *worst = its largest value. */
static bool greedy_reaches(const struct hv_partition *p, double limit, double *worst)
{
    size_t L = p->n_layers, S = p->n_stages, i = 0;
    *worst = 0;
    for (size_t s = 0; s < S; s++) {
        size_t most = L - (S - 1 - s) * p->min_layers;
        size_t j = hv__furthest(p, s, s, i, limit);
        j = j < most ? j : most;
        if (s + 1 == S && j < L) {
            return false;
        }
        double v = hv_partition_value(p, s, s, i, j);
        while (v > limit && j > i + p->min_layers) {
            j--;
            v = hv_partition_value(p, s, s, i, j);
        }
        if (v > limit) {
            return false;
        }
        *worst = fmax(*worst, v);
        i = j;
    }
    return i == L;
}

/* Time of all layers when every stage runs at full speed all the time. */
static double ideal_time(const struct hv_partition *p, double *longest)
{
    double rate = 0;
    *longest = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        double total = p->stages[s].time[p->n_layers];
        *longest = fmax(*longest, total);
        if (total <= 0) {
            return 0;
        }
        rate += 1 / total;
    }
    return 1 / rate;
}

double hv__greedy_max(const struct hv_partition *p)
{
    double longest, best = HUGE_VAL, worst;
    if (p->any_stages || p->min_layers * p->n_stages > p->n_layers) {
        return HUGE_VAL;
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        if (p->stages[s].table) {
            return HUGE_VAL;
        }
    }
    double low = ideal_time(p, &longest), high = low > 0 ? low * 1.02 : longest;
    for (double grow = 1.06; !greedy_reaches(p, high, &worst); grow = grow * grow) {
        if (high > 4 * longest || longest <= 0) {
            return HUGE_VAL;
        }
        low = high;
        high *= grow;
    }
    best = worst;
    for (int k = 0; k < 4 && best - low > 0.002 * best; k++) {
        double mid = 0.5 * (low + best);
        if (greedy_reaches(p, mid, &worst)) {
            best = worst;
        } else {
            low = mid;
        }
    }
    return best;
}
