/*
 * Contiguous partition with free order where exact methods are too large: a local search that swaps
 * devices, with the exact solver for a fixed order inside.
 */
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <string.h>

static bool judge(const struct hv_partition *fixed, struct hv__watch *watch, struct hv_arena *arena,
                  struct hv_partition_result *r)
{
    *r = (struct hv_partition_result){0};
    if (fixed->sum_weight > 0) {
        return hv__solve_mixed(fixed, watch, arena, r);
    }
    return hv__solve_fixed(fixed, HV__MAX, hv__greedy_max(fixed), arena, r);
}

/* The device that position s has in the order, with the position's own memory. */
static void place(const struct hv_partition *p, struct hv_part_stage *stages, const size_t *order)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        stages[s] = p->stages[order[s]];
        stages[s].memory = p->stages[s].memory;
    }
}

/* A search under way; the arrays have a place per position. */
struct order_search {
    const struct hv_partition *p;
    struct hv_partition fixed;    /* with the devices of the order */
    struct hv_part_stage *stages; /* of `fixed` */
    size_t *order, *cut, *chosen; /* tried; cuts and order of the best so far */
    struct hv__watch inner;       /* no reports: the bound of one order does not hold for others */
    struct hv_arena *arena;
};

/* Solves the order; keeps it where it is better than the best so far. False: it is not. */
static bool try_order(struct order_search *x, struct hv_partition_result *out)
{
    struct hv_arena_mark mark = hv_arena_mark(x->arena);
    struct hv_partition_result r;
    place(x->p, x->stages, x->order);
    bool found = judge(&x->fixed, &x->inner, x->arena, &r);
    out->n_probes += r.n_probes;
    bool better = found && (!out->feasible || r.objective < out->objective);
    if (better) {
        int64_t probes = out->n_probes;
        memcpy(x->cut, r.cut, r.n_stages * sizeof *x->cut);
        memcpy(x->chosen, x->order, x->p->n_stages * sizeof *x->chosen);
        *out = r;
        out->n_probes = probes;
    }
    hv_arena_rewind(x->arena, mark);
    return better;
}

/* Swaps two devices at a time; undoes a swap that does not improve. */
static void swap_devices(struct order_search *x, struct hv__watch *watch, double bound,
                         struct hv_partition_result *out)
{
    size_t S = x->p->n_stages, *order = x->order;
    struct hv_rng rng;
    hv_rng_seed(&rng, 1);
    for (int64_t tries = 0, idle = 0; idle < 400 && tries < 20000; tries++, idle++) {
        size_t a = (size_t)hv_rng_below(&rng, S), b = (size_t)hv_rng_below(&rng, S);
        size_t keep = order[a];
        if (hv__watch_due(watch)) {
            hv__watch_tell(watch, out->feasible ? out->objective : HUGE_VAL, bound);
        }
        if (tries && (hv__watch_over(watch) ||
                      hv__same_device(&x->p->stages[keep], &x->p->stages[order[b]]))) {
            continue;
        }
        if (tries) {
            order[a] = order[b];
            order[b] = keep;
        }
        if (try_order(x, out)) {
            idle = 0;
        } else if (tries && out->feasible) {
            order[b] = order[a];
            order[a] = keep;
        }
    }
}

enum hv_status hv__search_order(const struct hv_partition *p, struct hv__watch *watch,
                                struct hv_arena *arena, struct hv_partition_result *out,
                                struct hv_err *err)
{
    size_t S = p->n_stages;
    struct order_search x = {.p = p, .fixed = *p, .arena = arena};
    const struct hv_solve_limits quiet = hv__watch_rest(watch);
    hv__watch_start(&x.inner, &quiet);
    (void)err;
    x.order = hv_arena_new(arena, size_t, S);
    x.cut = hv_arena_new(arena, size_t, S);
    x.chosen = hv_arena_new(arena, size_t, S);
    x.stages = hv_arena_new(arena, struct hv_part_stage, S);
    x.fixed.stages = x.stages;
    x.fixed.free_order = false;
    memset(out, 0, sizeof *out);
    for (size_t s = 0; s < S; s++) {
        x.order[s] = s;
    }
    const double bound = hv__relaxed_bound(p, p->sum_weight, p->max_weight);
    swap_devices(&x, watch, bound, out);
    out->method = "order-search";
    out->stopped = watch->stopped || x.inner.stopped;
    out->proof =
        "orders improved by swaps, each solved exactly; the bound lets devices share layers";
    out->bound = bound;
    out->cut = x.cut;
    out->order = x.chosen;
    if (out->feasible) {
        hv__finish(p, arena, out);
    } else {
        out->objective = HV_UNKNOWN;
    }
    out->proven = out->feasible && out->objective <= out->bound * (1 + 1e-9);
    return HV_OK;
}
