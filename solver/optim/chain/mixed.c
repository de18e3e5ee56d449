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

/* Lower bound: the least over the open spans and the best result so far. */
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
 * Free order: the least maximum is found quickly and leaves a narrow span. No maximum is smaller,
 * and a maximum whose weighted value alone exceeds the objective found is not searched. False where
 * nothing fits.
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

/* The parts of a span that stay open once its least sum is known; `out` has room for two. */
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

/* A search under way. */
struct search {
    const struct hv_partition *p;
    struct hv__watch *watch;
    struct hv_arena *arena;
    struct best best;
    double bound; /* of the spans not searched to the end */
    int64_t probes;
};

/* The least sum within a span, whose partitions cost `low` or more; returns how much of the span is
 * left. */
static size_t probe(struct search *x, struct span s, double low, struct span *rest)
{
    struct hv_arena_mark mark = hv_arena_mark(x->arena);
    struct hv_partition_result r = {0};
    bool found = least_sum(x->p, s.hi, x->watch, x->arena, &r);
    x->probes++;
    if (x->watch->too_big && x->watch->stopped && x->best.r.feasible) {
        x->watch->too_big = false; /* keeps what was found before */
        x->bound = fmin(x->bound, low);
    }
    if (found) {
        keep(&x->best, &r);
    }
    hv_arena_rewind(x->arena, mark);
    return found ? rest_of(x->p, s, &r, rest) : 0;
}

bool hv__solve_mixed(const struct hv_partition *p, struct hv__watch *watch, struct hv_arena *arena,
                     struct hv_partition_result *out)
{
    struct search x = {.p = p,
                       .watch = watch,
                       .arena = arena,
                       .best = {.cut = hv_arena_new(arena, size_t, p->n_stages),
                                .order = hv_arena_new(arena, size_t, p->n_stages)},
                       .bound = HUGE_VAL};
    const struct hv_partition_result *best = &x.best.r;
    HV_VEC(struct span) todo = {0};
    struct span all = {0, HUGE_VAL, 0};
    if (!p->free_order || p->max_weight <= 0 || start_free(p, watch, arena, &x.best, &all)) {
        hv_vec_push(&todo, all);
    }
    while (todo.n && !watch->too_big) {
        if (hv__watch_due(watch)) {
            hv__watch_tell(watch, best->feasible ? best->objective : HUGE_VAL,
                           open_bound(p, best, todo.items, todo.n));
        }
        struct span s = todo.items[--todo.n], rest[2];
        double low = p->sum_weight * s.sum + p->max_weight * s.lo;
        if (best->feasible && low >= best->objective * (1 - 1e-12)) {
            continue;
        }
        if ((x.probes > 0 || p->free_order) && hv__watch_over(watch)) {
            x.bound = fmin(x.bound, low);
            continue;
        }
        size_t n_rest = probe(&x, s, low, rest);
        for (size_t k = 0; k < n_rest; k++) {
            hv_vec_push(&todo, rest[k]);
        }
    }
    hv_vec_free(&todo);
    *out = *best;
    out->n_probes = x.probes;
    out->stopped = watch->stopped;
    if (!best->feasible) {
        return false;
    }
    out->cut = x.best.cut;
    out->order = x.best.order;
    hv__finish(p, arena, out);
    out->bound = fmin(out->objective, x.bound);
    return true;
}
