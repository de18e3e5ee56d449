/*
 * Contiguous partition for objectives with a sum and a maximum: branch and bound over the maximum,
 * with the least sum under a limit inside, in fixed order (fixed.c) or free order (order.c).
 */
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <string.h>

/* The least sum of values with every value within the limit. */
static bool least_sum(const struct hv_partition *p, double limit, struct hv__watch *watch,
                      struct hv_arena *arena, struct hv_partition_result *out)
{
    return p->free_order ? hv__solve_free(p, limit, watch, arena, out)
                         : hv__solve_fixed(p, HV__SUM, limit, arena, out);
}

/* A part of the search over the maximum: maxima in (lo, hi], whose sums are at least `sum`. */
struct span {
    double lo, hi, sum;
};

/* Keeps a copy of the better result; the arena is rewound around inner programs. */
struct best {
    struct hv_partition_result r;
    size_t *cut, *order;
};

static void keep(struct best *b, const struct hv_partition_result *r)
{
    if (b->r.feasible && r->objective >= b->r.objective) {
        return;
    }
    memcpy(b->cut, r->cut, r->n_stages * sizeof *b->cut);
    memcpy(b->order, r->order, r->n_stages * sizeof *b->order);
    b->r = *r;
}

/* No partition is better: the least over what is still open, and the best so far. */
static double open_bound(const struct hv_partition *p, const struct hv_partition_result *best,
                         const struct span *todo, size_t n)
{
    double bound = best->feasible ? best->objective : HUGE_VAL;
    for (size_t k = 0; k < n; k++) {
        bound = fmin(bound, p->sum_weight * todo[k].sum + p->max_weight * todo[k].lo);
    }
    return bound;
}

/*
 * Free order: the least maximum is found quickly, and what it leaves is narrow. No maximum is less,
 * and none so large that it alone beats the partition found is looked at. False when nothing fits.
 */
static bool start_free(const struct hv_partition *p, struct hv__watch *watch,
                       struct hv_arena *arena, struct best *best, struct span *all)
{
    struct hv_arena_mark mark = hv_arena_mark(arena);
    struct hv_partition_result r = {0};
    bool found = hv__reach_free(p, watch, arena, &r);
    all->sum = hv__relaxed_bound(p, 1, 0) * (1 - 1e-12);
    if (found) {
        keep(best, &r);
        all->lo = nextafter(r.bound / p->max_weight * (1 - 1e-12), 0);
        all->hi = (r.objective - p->sum_weight * all->sum) / p->max_weight * (1 + 1e-12);
        all->hi = fmax(all->hi, r.max);
    }
    hv_arena_rewind(arena, mark);
    return found || watch->stopped;
}

/* What of a span is left once the least sum of its maxima is known: `out` has room for two. */
static size_t rest_of(const struct hv_partition *p, struct span s,
                      const struct hv_partition_result *r, struct span *out)
{
    double below = nextafter(r->max, 0), mid = 0.5 * (s.lo + below);
    if (r->max <= s.lo || p->max_weight <= 0 || below <= s.lo) {
        return 0;
    }
    out[0] = (struct span){s.lo, mid, r->sum};
    if (mid > s.lo && mid < below) {
        out[1] = (struct span){mid, below, r->sum};
        return 2;
    }
    out[0].hi = below;
    return 1;
}

bool hv__solve_mixed(const struct hv_partition *p, struct hv__watch *watch, struct hv_arena *arena,
                     struct hv_partition_result *out)
{
    struct best best = {.cut = hv_arena_new(arena, size_t, p->n_stages),
                        .order = hv_arena_new(arena, size_t, p->n_stages)};
    HV_VEC(struct span) todo = {0};
    double bound = HUGE_VAL;
    int64_t probes = 0;
    struct span all = {0, HUGE_VAL, 0};
    if (!p->free_order || p->max_weight <= 0 || start_free(p, watch, arena, &best, &all)) {
        hv_vec_push(&todo, all);
    }
    while (todo.n && !watch->too_big) {
        if (hv__watch_due(watch)) {
            hv__watch_tell(watch, best.r.feasible ? best.r.objective : HUGE_VAL,
                           open_bound(p, &best.r, todo.items, todo.n));
        }
        struct span s = todo.items[--todo.n];
        double low = p->sum_weight * s.sum + p->max_weight * s.lo;
        if (best.r.feasible && low >= best.r.objective * (1 - 1e-12)) {
            continue;
        }
        if ((probes > 0 || p->free_order) && hv__watch_over(watch)) {
            bound = fmin(bound, low);
            continue;
        }
        struct hv_arena_mark mark = hv_arena_mark(arena);
        struct hv_partition_result r = {0};
        bool found = least_sum(p, s.hi, watch, arena, &r);
        probes++;
        if (watch->too_big && watch->stopped && best.r.feasible) {
            watch->too_big = false; /* keeps what was found before */
            bound = fmin(bound, low);
        }
        if (found) {
            keep(&best, &r);
        }
        hv_arena_rewind(arena, mark);
        struct span rest[2];
        size_t n_rest = found ? rest_of(p, s, &r, rest) : 0;
        for (size_t k = 0; k < n_rest; k++) {
            hv_vec_push(&todo, rest[k]);
        }
    }
    hv_vec_free(&todo);
    *out = best.r;
    out->n_probes = probes;
    out->stopped = watch->stopped;
    if (!best.r.feasible) {
        return false;
    }
    out->cut = best.cut;
    out->order = best.order;
    hv__finish(p, arena, out);
    out->bound = fmin(out->objective, bound);
    return true;
}
