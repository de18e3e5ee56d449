/*
 * Integer distribution: least maximum (equal and mixed sizes).
 * Not here: times of a share (distribute_shares.c), least sum (distribute_sum.c), proportions
 * (distribute_ratio.c), least variance (distribute_var.c), longest item first (distribute_lpt.c).
 */
#include "solver/base/units.h"
#include "solver/base/whole.h"
#include "solver/optim/batch/distribute_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELLS ((int64_t)64 << 20)

/* One minmax problem: counts are the largest that a threshold allows. */
struct job {
    const struct hv_share *s;
    size_t n;
    int64_t total, unit; /* unit = greatest common divisor of the sizes */
    int64_t *most;       /* largest useful count of each share */
    int64_t *cap;        /* count under the current threshold */
    size_t *class;       /* mixed sizes: which of the distinct sizes it has */
    bool curved;         /* a share has points */
};

static double value_at(const struct hv_share *s, int64_t count)
{
    if (s->points) {
        return hv__share_value(s, count);
    }
    return s->fixed + (double)count * s->rate;
}

/* Largest count in [min, most] whose value is ≤ t; min when none is. */
static int64_t count_under(const struct hv_share *s, int64_t most, double t)
{
    if (s->points) {
        return hv__share_under(s, most, t);
    }
    if (s->rate <= 0) {
        return s->fixed <= t ? most : s->min;
    }
    double q = (t - s->fixed) / s->rate;
    if (q >= (double)most + 1) {
        return most;
    }
    int64_t c = q > (double)s->min ? (int64_t)q : s->min;
    while (c < most && value_at(s, c + 1) <= t) {
        c++;
    }
    while (c > s->min && value_at(s, c) > t) {
        c--;
    }
    return c < most ? c : most;
}

/* Fills cap for the threshold and returns Σ cap·size. */
static int64_t fill_caps(struct job *j, double t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < j->n; i++) {
        j->cap[i] = count_under(&j->s[i], j->most[i], t);
        sum += j->cap[i] * j->s[i].size;
    }
    return sum;
}

/* Lower and upper ends of the total; false when the total lies outside or does not divide. */
static bool prepare(struct job *j, bool *mixed)
{
    int64_t least = 0, most = 0;
    j->unit = 0;
    *mixed = false;
    for (size_t i = 0; i < j->n; i++) {
        const struct hv_share *s = &j->s[i];
        int64_t room = j->total / s->size, max = hv__share_max(s);
        j->most[i] = max < room ? max : room;
        j->curved = j->curved || s->points;
        if (j->most[i] < s->min) {
            return false;
        }
        least += s->min * s->size;
        most += j->most[i] * s->size;
        j->unit = hv_gcd(j->unit, s->size);
        *mixed = *mixed || s->size != j->s[0].size;
        if (least > j->total) {
            return false;
        }
    }
    return most >= j->total && j->total % j->unit == 0;
}

/* Writes why minima, maxima and sizes do not allow the total, and by how much. */
static const char *why_not(const struct job *j, struct hv_arena *arena)
{
    int64_t least = 0, most = 0, unit = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct hv_share *s = &j->s[i];
        int64_t room = j->total / s->size, max = hv__share_max(s), top = max < room ? max : room;
        if (s->min > HV_DISTRIBUTE_MAX_TOTAL / s->size || s->min * s->size > j->total - least) {
            return hv_arena_printf(arena,
                                   "the minima of the first %zu shares exceed the total %lld",
                                   i + 1, (long long)j->total);
        }
        least += s->min * s->size;
        most += top * s->size;
        unit = hv_gcd(unit, s->size);
    }
    if (most < j->total) {
        return hv_arena_printf(arena, "the maxima add up to %lld, %lld less than the total",
                               (long long)most, (long long)(j->total - most));
    }
    return hv_arena_printf(arena,
                           "all sizes are multiples of %lld, the total leaves a rest of %lld",
                           (long long)unit, (long long)(j->total % unit));
}

/* A threshold near the fractional optimum: Newton steps on Σ count·size = total. */
static double near_threshold(struct job *j)
{
    double rate = 0, load = (double)j->total, t;
    for (size_t i = 0; i < j->n; i++) {
        if (j->s[i].rate <= 0) {
            continue;
        }
        rate += (double)j->s[i].size / j->s[i].rate;
        load += j->s[i].fixed * (double)j->s[i].size / j->s[i].rate;
    }
    t = rate > 0 ? load / rate : 0;
    for (int step = 0; step < 24; step++) {
        int64_t sum = fill_caps(j, t), off = j->total - sum;
        if (off >= 0 ? off <= (int64_t)j->n * j->s[0].size : -off <= (int64_t)j->n * j->s[0].size) {
            return t;
        }
        rate = 0;
        for (size_t i = 0; i < j->n; i++) {
            if (j->s[i].rate > 0 && (off > 0 ? j->cap[i] < j->most[i] : j->cap[i] > j->s[i].min)) {
                rate += (double)j->s[i].size / j->s[i].rate;
            }
        }
        if (rate <= 0) {
            return t;
        }
        t += (double)off / rate;
    }
    return t;
}

/* Adds the unit that ends first, or takes away the one that ends last, until the total is met. */
static void settle_units(struct job *j)
{
    int64_t sum = 0;
    for (size_t i = 0; i < j->n; i++) {
        sum += j->cap[i] * j->s[i].size;
    }
    for (; sum < j->total; sum += j->s[0].size) {
        size_t best = j->n;
        double v = HUGE_VAL;
        for (size_t i = 0; i < j->n; i++) {
            double next = j->cap[i] < j->most[i] ? value_at(&j->s[i], j->cap[i] + 1) : HUGE_VAL;
            if (next < v) {
                v = next;
                best = i;
            }
        }
        j->cap[best]++;
    }
    for (; sum > j->total; sum -= j->s[0].size) {
        size_t best = j->n;
        double v = -1;
        for (size_t i = 0; i < j->n; i++) {
            double now = j->cap[i] > j->s[i].min ? value_at(&j->s[i], j->cap[i]) : -1;
            if (now > v) {
                v = now;
                best = i;
            }
        }
        j->cap[best]--;
    }
}

/* Distinct sizes, falling, and how many of each make up the total. */
struct sums {
    size_t n;
    int64_t *size, *room; /* distinct sizes in units, and how many may be added above min */
    int64_t *take;        /* how many of each are used */
    bool divisible;       /* every size divides the one before */
    int32_t *used;        /* (total + 1) per size: copies of the size used to get there, or -1 */
    int64_t total;        /* to be reached above the minima, in units */
};

/* Every size divides the larger ones, so it is optimal to take as many of the largest as fit: any
 * sum of smaller ones that reaches the largest size could be replaced by one more of it. */
static bool sum_by_greed(struct sums *q)
{
    int64_t left = q->total;
    for (size_t d = 0; d < q->n; d++) {
        int64_t fit = left / q->size[d];
        q->take[d] = fit < q->room[d] ? fit : q->room[d];
        left -= q->take[d] * q->size[d];
    }
    return left == 0;
}

/* True where Σ take·size = total has a solution with 0 ≤ take ≤ room. One pass per size. */
static bool sum_reachable(struct sums *q)
{
    size_t width = (size_t)q->total + 1;
    if (q->divisible) {
        return sum_by_greed(q);
    }
    for (size_t d = 0; d < q->n; d++) {
        int32_t *now = q->used + d * width;
        const int32_t *before = d ? now - width : NULL;
        int64_t size = q->size[d], room = q->room[d];
        for (int64_t x = 0; x <= q->total; x++) {
            if (before ? before[x] >= 0 : x == 0) {
                now[x] = 0;
            } else if (x >= size && now[x - size] >= 0 && now[x - size] < room) {
                now[x] = now[x - size] + 1;
            } else {
                now[x] = -1;
            }
        }
    }
    if (q->used[q->n * width - 1] < 0) {
        return false;
    }
    int64_t x = q->total;
    for (size_t d = q->n; d-- > 0; x -= q->take[d] * q->size[d]) {
        q->take[d] = q->used[d * width + (size_t)x];
    }
    return true;
}

static bool caps_suffice(const struct job *j, struct sums *q)
{
    for (size_t d = 0; d < q->n; d++) {
        q->room[d] = 0;
    }
    for (size_t i = 0; i < j->n; i++) {
        q->room[j->class[i]] += j->cap[i] - j->s[i].min;
    }
    return sum_reachable(q);
}

/* Σ of the counts above the minima of one class within a threshold; they become the caps. */
static int64_t fill_class(struct job *j, size_t d, double t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < j->n; i++) {
        if (j->class[i] != d) {
            continue;
        }
        j->cap[i] = count_under(&j->s[i], j->most[i], t);
        sum += j->cap[i] - j->s[i].min;
    }
    return sum;
}

/* Gives a class its number of counts under the lowest threshold that holds them; the rest between
 * two neighbouring thresholds goes to the lowest indices. */
static void spread_class(struct job *j, size_t d, int64_t take)
{
    double lo = 0, hi = 0;
    for (size_t i = 0; i < j->n; i++) {
        if (j->class[i] == d) {
            hi = fmax(hi, value_at(&j->s[i], j->most[i]));
        }
    }
    for (int step = 0; step < 100; step++) {
        double mid = 0.5 * (lo + hi);
        int64_t sum = fill_class(j, d, mid);
        if (sum == take) {
            return;
        }
        if (sum > take) {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    take -= fill_class(j, d, lo);
    for (size_t i = 0; i < j->n && take > 0; i++) {
        if (j->class[i] != d) {
            continue;
        }
        int64_t more = count_under(&j->s[i], j->most[i], hi) - j->cap[i];
        more = more < take ? more : take;
        j->cap[i] += more;
        take -= more;
    }
    for (size_t i = j->n; i-- > 0 && take < 0;) {
        if (j->class[i] != d) {
            continue;
        }
        int64_t less = j->cap[i] - j->s[i].min;
        less = less < -take ? less : -take;
        j->cap[i] -= less;
        take += less;
    }
}

/* Turns the numbers per size into counts per share. */
static void spread_sizes(struct job *j, const struct sums *q)
{
    memcpy(j->most, j->cap, j->n * sizeof *j->most);
    for (size_t d = 0; d < q->n; d++) {
        spread_class(j, d, q->take[d]);
    }
}

static int by_falling_size(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return (*a < *b) - (*a > *b);
}

static void collect_sizes(const struct job *j, struct sums *q)
{
    int64_t total = j->total;
    for (size_t i = 0; i < j->n; i++) {
        q->size[i] = j->s[i].size / j->unit;
        total -= j->s[i].min * j->s[i].size;
    }
    qsort(q->size, j->n, sizeof *q->size, by_falling_size);
    q->divisible = true;
    for (size_t i = 0; i < j->n; i++) {
        if (q->n && q->size[i] == q->size[q->n - 1]) {
            continue;
        }
        q->divisible = q->divisible && (!q->n || q->size[q->n - 1] % q->size[i] == 0);
        q->size[q->n++] = q->size[i];
    }
    for (size_t i = 0; i < j->n; i++) {
        size_t lo = 0, hi = q->n;
        while (hi - lo > 1) { /* the sizes fall */
            size_t mid = lo + (hi - lo) / 2;
            if (q->size[mid] >= j->s[i].size / j->unit) {
                lo = mid;
            } else {
                hi = mid;
            }
        }
        j->class[i] = lo;
    }
    q->total = total / j->unit;
}

static double worst_of(const struct job *j, const int64_t *count)
{
    double v = 0;
    for (size_t i = 0; i < j->n; i++) {
        v = fmax(v, value_at(&j->s[i], count[i]));
    }
    return v;
}

/* Smallest value above t that a share can take; nothing changes between t and it. */
static double next_value(const struct job *j)
{
    double v = HUGE_VAL;
    for (size_t i = 0; i < j->n; i++) {
        if (j->cap[i] < j->most[i]) {
            v = fmin(v, value_at(&j->s[i], j->cap[i] + 1));
        }
    }
    return v;
}

/* Largest value ≤ t that a share takes under its cap. */
static double settled_value(const struct job *j, double floor)
{
    double v = floor;
    for (size_t i = 0; i < j->n; i++) {
        if (j->cap[i] > j->s[i].min) {
            v = fmax(v, value_at(&j->s[i], j->cap[i]));
        }
    }
    return v;
}

/* Binary search over thresholds between values that occur; true when the total can be met at all.
 */
static bool search_mixed(struct job *j, struct sums *q, double floor)
{
    fill_caps(j, HUGE_VAL);
    if (!caps_suffice(j, q)) {
        return false;
    }
    double hi = settled_value(j, floor), lo = fmin(floor, hi);
    double guess = j->curved ? lo : near_threshold(j);
    while (lo < hi) {
        double t = guess > lo && guess < hi ? guess : 0.5 * (lo + hi);
        guess = lo + (guess - lo) * (hi - guess > 0 ? 1.002 : 0.5);
        if (!(t < hi) || !(t >= lo)) {
            t = lo;
        }
        int64_t sum = fill_caps(j, t);
        if (sum >= j->total && caps_suffice(j, q)) {
            hi = fmin(t, settled_value(j, floor));
        } else {
            lo = fmax(t, next_value(j));
        }
    }
    fill_caps(j, hi);
    return caps_suffice(j, q);
}

/* Equal sizes with curves: bisection between values that occur, then from the counts below the
 * threshold up to those at it, lowest index first. The total can be met. */
static void solve_curves(struct job *j)
{
    double lo = 0, hi;
    for (size_t i = 0; i < j->n; i++) {
        lo = fmax(lo, value_at(&j->s[i], j->s[i].min));
    }
    double floor = lo;
    fill_caps(j, HUGE_VAL);
    hi = settled_value(j, floor);
    while (lo < hi) {
        double t = 0.5 * (lo + hi);
        if (!(t < hi)) {
            t = lo;
        }
        if (fill_caps(j, t) >= j->total) {
            hi = fmin(t, settled_value(j, floor));
        } else {
            lo = fmax(t, next_value(j));
        }
    }
    int64_t left = j->total - fill_caps(j, nextafter(hi, -1));
    for (size_t i = 0; i < j->n && left > 0; i++) {
        int64_t more = count_under(&j->s[i], j->most[i], hi) - j->cap[i];
        more = more * j->s[i].size < left ? more : left / j->s[i].size;
        j->cap[i] += more;
        left -= more * j->s[i].size;
    }
    for (size_t i = j->n; i-- > 0 && left < 0;) { /* a minimum is the slowest: others have room */
        int64_t less = j->cap[i] - j->s[i].min, over = -left / j->s[i].size;
        less = less < over ? less : over;
        j->cap[i] -= less;
        left += less * j->s[i].size;
    }
}

static enum hv_status solve_mixed_sizes(struct job *j, struct hv_arena *arena,
                                        struct hv_distribution *out, struct hv_err *err)
{
    struct sums q = {0};
    double floor = 0;
    q.size = hv_arena_new(arena, int64_t, j->n);
    q.room = hv_arena_new(arena, int64_t, j->n);
    q.take = hv_arena_new(arena, int64_t, j->n);
    j->class = hv_arena_new(arena, size_t, j->n);
    collect_sizes(j, &q);
    if (!q.divisible) {
        if (q.total >= MAX_CELLS / (int64_t)q.n) {
            return hv_err_set(err, HV_ELIMIT,
                              "a total of %lld units with %zu different sizes is too large",
                              (long long)q.total, q.n);
        }
        q.used = hv_xmalloc((size_t)(q.total + 1) * q.n * sizeof *q.used);
    }
    for (size_t i = 0; i < j->n; i++) {
        floor = fmax(floor, value_at(&j->s[i], j->s[i].min));
    }
    out->feasible = search_mixed(j, &q, floor);
    if (out->feasible) {
        spread_sizes(j, &q);
    }
    free(q.used);
    return HV_OK;
}

enum hv_status hv_distribute_minmax(const struct hv_share *shares, size_t n, int64_t total,
                                    struct hv_arena *arena, struct hv_distribution *out,
                                    struct hv_err *err)
{
    bool mixed;
    struct job j = {.s = shares, .n = n, .total = total};
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "threshold";
    out->proven = true;
    enum hv_status st = hv_distribute_check(shares, n, total, err);
    if (st != HV_OK) {
        return st;
    }
    j.most = hv_arena_new(arena, int64_t, n);
    j.cap = hv_arena_new(arena, int64_t, n);
    if (!prepare(&j, &mixed)) {
        out->proof = why_not(&j, arena);
        return HV_OK;
    }
    out->proof = "no counts within minima and maxima add up to the total with these sizes";
    if (mixed) {
        out->method = "threshold-subset-sum";
        if ((st = solve_mixed_sizes(&j, arena, out, err)) != HV_OK || !out->feasible) {
            return st;
        }
    } else if (j.curved) {
        solve_curves(&j);
        out->feasible = true;
    } else {
        fill_caps(&j, near_threshold(&j));
        settle_units(&j);
        out->feasible = true;
    }
    out->count = j.cap;
    out->objective = out->bound = worst_of(&j, j.cap);
    out->proof = "no smaller threshold leaves room for the total";
    return HV_OK;
}
