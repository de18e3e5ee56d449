/*
 * Integer distribution with the least variance of rate·count: branch and bound.
 * Not here: the other objectives (distribute.c).
 */
#include "solver/base/units.h"
#include "solver/optim/batch/distribute.h"
#include <math.h>
#include <string.h>

#define MAX_NODES ((int64_t)20000000)

/* The search: shares are decided in order, the last one follows from the total. */
struct spread {
    const struct hv_share *s;
    size_t n;
    double level, reach; /* all values lie within level ± reach · sqrt(best) */
    double best;
    int64_t nodes, *count, *best_count;
    int64_t *least, *most; /* Σ of the smallest and largest contributions from share i on */
};

/* Σ and Σ of squares of the values decided so far; the squared distance from their own mean. */
struct partial {
    double n, mean, squares;
};

static struct partial add_value(struct partial p, double v)
{
    double d = v - p.mean;
    p.n += 1;
    p.mean += d / p.n;
    p.squares += d * (v - p.mean);
    return p;
}

static void decide(struct spread *q, size_t i, int64_t left, struct partial p);

static void try_count(struct spread *q, size_t i, int64_t left, struct partial p, int64_t c)
{
    int64_t rest = left - c * q->s[i].size;
    if (rest < q->least[i + 1] || rest > q->most[i + 1]) {
        return;
    }
    struct partial next = add_value(p, q->s[i].rate * (double)c);
    if (next.squares >= q->best - 1e-12 * fmax(1, q->best)) {
        return;
    }
    q->count[i] = c;
    decide(q, i + 1, rest, next);
}

/* Tries the counts around the common level, nearest first. */
static void decide(struct spread *q, size_t i, int64_t left, struct partial p)
{
    const struct hv_share *s = &q->s[i];
    if (i == q->n) {
        q->best = p.squares;
        memcpy(q->best_count, q->count, q->n * sizeof *q->count);
        return;
    }
    if (i + 1 == q->n) {
        if (left % s->size == 0 && left / s->size >= s->min && left / s->size <= s->max) {
            try_count(q, i, left, p, left / s->size);
        }
        return;
    }
    double ideal = q->level / s->rate;
    int64_t mid = (int64_t)fmin(fmax(nearbyint(ideal), (double)s->min), (double)s->max);
    for (int64_t step = 0; q->nodes < MAX_NODES; step++) {
        bool low = mid - step >= s->min, high = mid + step <= s->max && step > 0;
        double span = q->reach * sqrt(q->best) / s->rate;
        if ((!low && mid + step > s->max) || (double)step > span + fabs(ideal - (double)mid) + 1) {
            return;
        }
        q->nodes++;
        if (low) {
            try_count(q, i, left, p, mid - step);
        }
        if (high) {
            try_count(q, i, left, p, mid + step);
        }
    }
}

/* Least and most that the shares from each on can take; the level at which all values were equal,
 * and how far from it a value may be. Errors: HV_EINPUT. */
static enum hv_status prepare(struct spread *q, int64_t total, struct hv_err *err)
{
    double slope = 0, squares = 0;
    for (size_t i = q->n; i-- > 0;) {
        const struct hv_share *s = &q->s[i];
        int64_t room = s->max < total / s->size ? s->max : total / s->size;
        if (s->rate <= 0 || s->points) {
            return hv_err_set(err, HV_EINPUT, "share %zu: expected a rate above 0, and no curve",
                              i + 1);
        }
        if (s->min > total / s->size) {
            room = s->min;
        }
        q->least[i] = q->least[i + 1] + s->min * s->size;
        q->most[i] = q->most[i + 1] + room * s->size;
        slope += (double)s->size / s->rate;
    }
    for (size_t i = 0; i < q->n; i++) {
        double a = (double)q->s[i].size / q->s[i].rate / slope;
        squares += a * a;
    }
    /* Σ a_i·v_i = level with Σ a = 1, so |mean - level| ≤ sqrt(Σ a²)·sqrt(best), and every value is
     * within sqrt(best) of the mean */
    q->level = (double)total / slope;
    q->reach = 1 + sqrt(squares);
    return HV_OK;
}

enum hv_status hv_distribute_minvar(const struct hv_share *shares, size_t n, int64_t total,
                                    struct hv_arena *arena, struct hv_distribution *out,
                                    struct hv_err *err)
{
    struct spread q = {.s = shares, .n = n, .best = HUGE_VAL};
    memset(out, 0, sizeof *out);
    out->objective = out->bound = HV_UNKNOWN;
    out->method = "branch-and-bound";
    enum hv_status st = hv_distribute_check(shares, n, total, err);
    if (st != HV_OK) {
        return st;
    }
    if (n > 64) {
        return hv_err_set(err, HV_ELIMIT, "least variance takes at most 64 shares");
    }
    q.count = hv_arena_new(arena, int64_t, n);
    q.best_count = hv_arena_new(arena, int64_t, n);
    q.least = hv_arena_new(arena, int64_t, n + 1);
    q.most = hv_arena_new(arena, int64_t, n + 1);
    if ((st = prepare(&q, total, err)) != HV_OK) {
        return st;
    }
    decide(&q, 0, total, (struct partial){0, 0, 0});
    out->feasible = q.best < HUGE_VAL;
    out->proven = q.nodes < MAX_NODES;
    out->proof = out->proven ? "every count within reach of the common level was tried"
                             : "ended after 20 million nodes";
    if (!out->feasible) {
        return HV_OK;
    }
    out->count = q.best_count;
    out->objective = q.best;
    out->bound = out->proven ? q.best : 0;
    return HV_OK;
}
