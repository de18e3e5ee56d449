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

enum hv_status hv__search_order(const struct hv_partition *p, struct hv__watch *watch,
                                struct hv_arena *arena, struct hv_partition_result *out,
                                struct hv_err *err)
{
    size_t S = p->n_stages, *order = hv_arena_new(arena, size_t, S);
    size_t *cut = hv_arena_new(arena, size_t, S), *chosen = hv_arena_new(arena, size_t, S);
    struct hv_part_stage *stages = hv_arena_new(arena, struct hv_part_stage, S);
    struct hv_partition fixed = *p;
    struct hv_partition_result r;
    struct hv_rng rng;
    const struct hv_solve_limits quiet = hv__watch_rest(watch);
    struct hv__watch inner; /* an order's own bound says nothing about the others */
    hv__watch_start(&inner, &quiet);
    (void)err;
    hv_rng_seed(&rng, 1);
    const double bound = hv__relaxed_bound(p, p->sum_weight, p->max_weight);
    fixed.stages = stages;
    fixed.free_order = false;
    memset(out, 0, sizeof *out);
    for (size_t s = 0; s < S; s++) {
        order[s] = s;
    }
    for (int64_t tries = 0, idle = 0; idle < 400 && tries < 20000; tries++, idle++) {
        size_t a = (size_t)hv_rng_below(&rng, S), b = (size_t)hv_rng_below(&rng, S);
        size_t keep = order[a];
        if (hv__watch_due(watch)) {
            hv__watch_tell(watch, out->feasible ? out->objective : HUGE_VAL, bound);
        }
        if (tries &&
            (hv__watch_over(watch) || hv__same_device(&p->stages[keep], &p->stages[order[b]]))) {
            continue;
        }
        if (tries) {
            order[a] = order[b];
            order[b] = keep;
        }
        place(p, stages, order);
        struct hv_arena_mark mark = hv_arena_mark(arena);
        bool found = judge(&fixed, &inner, arena, &r);
        out->n_probes += r.n_probes;
        if (found && (!out->feasible || r.objective < out->objective)) {
            int64_t probes = out->n_probes;
            memcpy(cut, r.cut, r.n_stages * sizeof *cut);
            memcpy(chosen, order, S * sizeof *chosen);
            *out = r;
            out->n_probes = probes;
            idle = 0;
        } else if (tries && out->feasible) {
            order[b] = order[a];
            order[a] = keep;
        }
        hv_arena_rewind(arena, mark);
    }
    out->method = "order-search";
    out->stopped = watch->stopped || inner.stopped;
    out->proof =
        "orders improved by swaps, each solved exactly; the bound lets devices share layers";
    out->bound = bound;
    out->cut = cut;
    out->order = chosen;
    if (out->feasible) {
        hv__finish(p, arena, out);
    } else {
        out->objective = HV_UNKNOWN;
    }
    out->proven = out->feasible && out->objective <= out->bound * (1 + 1e-9);
    return HV_OK;
}
