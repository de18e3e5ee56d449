/*
 * The inner loops of the partition solver: values and limits of runs, one stage of a dynamic
 * program, and the traceback of a value.
 * Not here: which stages follow each other (partition.c, order.c).
 */
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Relative tolerance of comparisons that prune runs; comparisons that decide have none. */
#define HAIR (1 + 1e-12)

/* Terms of a run's value that depend on its end j: prefix time and the cut behind it. */
static double end_part(const struct hv_partition *p, size_t pos, const double *time, size_t j)
{
    double v = time ? time[j] : 0;
    if (p->cuts && pos + 1 < p->n_stages && j > 0 && j < p->n_layers) {
        v += p->cuts[pos][j];
    }
    return v;
}

/* Term subtracted for the start of a run: prefix time less the cut before it. */
static double start_part(const struct hv_partition *p, size_t pos, const double *time, size_t i)
{
    double v = time ? time[i] : 0;
    if (p->cuts && pos > 0 && i > 0 && i < p->n_layers) {
        v -= p->cuts[pos - 1][i];
    }
    return v;
}

bool hv__fits(const struct hv_partition *p, size_t pos, size_t dev, size_t i, size_t j)
{
    const double *m = p->stages[pos].memory;
    double cap = p->stages[dev].capacity;
    return !m || m[j] - m[i] <= cap * HAIR;
}

static double raw_value(const struct hv_partition *p, size_t pos, size_t dev, size_t i, size_t j)
{
    const struct hv_part_stage *d = &p->stages[dev];
    const double *time = d->table ? NULL : d->time;
    double v = end_part(p, pos, time, j) - start_part(p, pos, time, i);
    return d->table ? v + d->table[i * (p->n_layers + 1) + j] : v;
}

double hv_partition_value(const struct hv_partition *p, size_t pos, size_t dev, size_t i, size_t j)
{
    if (j < i || j - i < p->min_layers || !hv__fits(p, pos, dev, i, j)) {
        return HUGE_VAL;
    }
    return raw_value(p, pos, dev, i, j);
}

static bool within(const struct hv_partition *p, const struct hv__step *s, size_t i, size_t j)
{
    const double *t = p->stages[s->dev].table ? NULL : p->stages[s->dev].time;
    return (!t || t[j] - t[i] <= s->limit * HAIR) && hv__fits(p, s->pos, s->dev, i, j);
}

size_t hv__furthest(const struct hv_partition *p, size_t pos, size_t dev, size_t i, double limit)
{
    const struct hv__step s = {HV__MAX, pos, dev, limit};
    size_t lo = i, hi = i + 1, step = 1;
    while (hi <= p->n_layers && within(p, &s, i, hi)) {
        lo = hi;
        step *= 2;
        hi += step;
    }
    hi = hi > p->n_layers + 1 ? p->n_layers + 1 : hi;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (within(p, &s, i, mid)) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t hv__nearest(const struct hv_partition *p, size_t pos, size_t dev, size_t j, double limit)
{
    const struct hv__step s = {HV__MAX, pos, dev, limit};
    size_t good = j, step = 1;
    while (good >= step && within(p, &s, good - step, j)) {
        good -= step;
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (good >= step && within(p, &s, good - step, j)) {
            good -= step;
        }
    }
    return good;
}

struct hv__row hv__row_new(struct hv_arena *arena, size_t lo, size_t hi)
{
    struct hv__row r = {lo, hi, NULL};
    if (lo > hi) {
        return r;
    }
    r.v = hv_arena_new(arena, double, hi - lo + 1);
    for (size_t k = 0; k <= hi - lo; k++) {
        r.v[k] = HUGE_VAL;
    }
    return r;
}

void hv__trim(struct hv__row *r, double limit)
{
    while (r->lo < r->hi && r->v[r->hi - r->lo] > limit) {
        r->hi--;
    }
    while (r->lo < r->hi && r->v[0] > limit) {
        r->lo++;
        r->v++;
    }
}

#ifdef __SSE2__ /* two at a time; the last pair may overlap the one before, which min forgives */
static double least_of(__m128d a)
{
    return _mm_cvtsd_f64(_mm_min_sd(a, _mm_unpackhi_pd(a, a)));
}

static __m128d max_pair(const double *from, const double *start, __m128d end)
{
    return _mm_max_pd(_mm_sub_pd(end, _mm_loadu_pd(start)), _mm_loadu_pd(from));
}

static __m128d sum_pair(const double *from, const double *start, __m128d end, __m128d limit)
{
    __m128d c = _mm_sub_pd(end, _mm_loadu_pd(start)), ok = _mm_cmple_pd(c, limit);
    return _mm_or_pd(_mm_and_pd(ok, _mm_add_pd(_mm_loadu_pd(from), c)),
                     _mm_andnot_pd(ok, _mm_set1_pd(HUGE_VAL)));
}

/* min over k of max(from[k], end - start[k]). */
static double best_max(const double *from, const double *start, size_t n, double end)
{
    if (n == 1) {
        return from[0] > end - start[0] ? from[0] : end - start[0];
    }
    __m128d e = _mm_set1_pd(end), b0 = max_pair(from + n - 2, start + n - 2, e), b1 = b0;
    for (size_t k = 0; k + 2 < n; k += 4) { /* two chains hide the latency of min */
        size_t next = k + 4 < n ? k + 2 : n - 2;
        b0 = _mm_min_pd(b0, max_pair(from + k, start + k, e));
        b1 = _mm_min_pd(b1, max_pair(from + next, start + next, e));
    }
    return least_of(_mm_min_pd(b0, b1));
}

/* min over k of from[k] + (end - start[k]) where that value is within the limit. */
static double best_sum(const double *from, const double *start, size_t n, double end, double limit)
{
    if (n == 1) {
        return end - start[0] <= limit ? from[0] + (end - start[0]) : HUGE_VAL;
    }
    __m128d e = _mm_set1_pd(end), l = _mm_set1_pd(limit);
    __m128d b0 = sum_pair(from + n - 2, start + n - 2, e, l), b1 = b0;
    for (size_t k = 0; k + 2 < n; k += 4) {
        size_t next = k + 4 < n ? k + 2 : n - 2;
        b0 = _mm_min_pd(b0, sum_pair(from + k, start + k, e, l));
        b1 = _mm_min_pd(b1, sum_pair(from + next, start + next, e, l));
    }
    return least_of(_mm_min_pd(b0, b1));
}
#else
/* min over k of max(from[k], end - start[k]). */
static double best_max(const double *from, const double *start, size_t n, double end)
{
    double best = HUGE_VAL;
    for (size_t k = 0; k < n; k++) {
        double c = end - start[k];
        c = from[k] > c ? from[k] : c;
        best = c < best ? c : best;
    }
    return best;
}

/* min over k of from[k] + (end - start[k]) where that value is within the limit. */
static double best_sum(const double *from, const double *start, size_t n, double end, double limit)
{
    double best = HUGE_VAL;
    for (size_t k = 0; k < n; k++) {
        double c = end - start[k], v = c <= limit ? from[k] + c : HUGE_VAL;
        best = v < best ? v : best;
    }
    return best;
}
#endif

static double join(const struct hv__step *s, double from, double value)
{
    if (s->goal == HV__MAX) {
        return from > value ? from : value;
    }
    return value <= s->limit ? from + value : HUGE_VAL;
}

static void relax_table(const struct hv_partition *p, const struct hv__step *s,
                        const struct hv__row *from, struct hv__row *out)
{
    for (size_t j = out->lo; j <= out->hi; j++) {
        double best = out->v[j - out->lo];
        for (size_t i = from->lo; i <= from->hi && i + p->min_layers <= j; i++) {
            if (from->v[i - from->lo] == HUGE_VAL || !hv__fits(p, s->pos, s->dev, i, j)) {
                continue;
            }
            double v = join(s, from->v[i - from->lo], raw_value(p, s->pos, s->dev, i, j));
            best = v < best ? v : best;
        }
        out->v[j - out->lo] = best;
    }
}

/* Prefix times of the starts less the cuts before them. */
static void fill_starts(const struct hv_partition *p, const struct hv__step *s,
                        const struct hv__row *from, double *start)
{
    const double *time = p->stages[s->dev].time + from->lo;
    size_t n = from->hi - from->lo + 1;
    memcpy(start, time, n * sizeof *start);
    if (!p->cuts || s->pos == 0) {
        return;
    }
    const double *cut = p->cuts[s->pos - 1] + from->lo;
    for (size_t k = from->lo == 0; k < n && from->lo + k < p->n_layers; k++) {
        start[k] = time[k] - cut[k];
    }
}

void hv__relax(const struct hv_partition *p, const struct hv__step *s, const struct hv__row *from,
               struct hv__row *out, double *scratch)
{
    const struct hv_part_stage *d = &p->stages[s->dev];
    const double *time = d->time, *memory = p->stages[s->pos].memory;
    if (from->lo > from->hi || out->lo > out->hi) {
        return;
    }
    if (d->table) {
        relax_table(p, s, from, out);
        return;
    }
    fill_starts(p, s, from, scratch);
    const double *cut = p->cuts && s->pos + 1 < p->n_stages ? p->cuts[s->pos] : NULL;
    size_t first = from->lo, j = from->lo + p->min_layers;
    double longest = s->limit * HAIR, room = d->capacity * HAIR;
    for (j = j > out->lo ? j : out->lo; j <= out->hi; j++) {
        while (first <= from->hi && first < j &&
               (time[j] - time[first] > longest || (memory && memory[j] - memory[first] > room))) {
            first++;
        }
        if (first > from->hi) {
            break;
        }
        if (first + p->min_layers > j) {
            continue;
        }
        size_t last = j - p->min_layers < from->hi ? j - p->min_layers : from->hi;
        size_t at = first - from->lo, n = last - first + 1;
        double end = cut && j > 0 && j < p->n_layers ? time[j] + cut[j] : time[j];
        double v = s->goal == HV__MAX ? best_max(from->v + at, scratch + at, n, end)
                                      : best_sum(from->v + at, scratch + at, n, end, s->limit);
        if (v < out->v[j - out->lo]) {
            out->v[j - out->lo] = v;
        }
    }
}

size_t hv__trace(const struct hv_partition *p, const struct hv__step *s, const struct hv__row *from,
                 size_t j, double want)
{
    for (size_t i = from->lo; i <= from->hi && i + p->min_layers <= j; i++) {
        if (from->v[i - from->lo] == HUGE_VAL || !within(p, s, i, j)) {
            continue;
        }
        if (join(s, from->v[i - from->lo], raw_value(p, s->pos, s->dev, i, j)) <= want) {
            return i;
        }
    }
    return SIZE_MAX;
}
