/*
 * The reason why no partition fits: the violated constraint, and by how much.
 * Not here: finding partitions (partition.c, order.c).
 */
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <string.h>

#define STEPS 30

/* Furthest end that the stages reach with their capacities times `factor`, in fixed order; *stage =
 * the first stage that holds nothing where it must, or the last one. */
static size_t reach_scaled(const struct hv_partition *p, double factor, bool *open, size_t *stage)
{
    size_t L = p->n_layers, S = p->n_stages, m = p->min_layers, far = 0;
    bool *next = open + L + 1;
    memset(open, 0, (L + 1) * sizeof *open);
    open[0] = true;
    for (size_t s = 0; s < S; s++) {
        const double *mem = p->stages[s].memory;
        double room = p->stages[s].capacity * factor * (1 + 1e-12);
        size_t last = 0;
        memset(next, 0, (L + 1) * sizeof *next);
        bool any = false;
        for (size_t i = 0, j = 0; i <= L; i++) {
            if (!open[i]) {
                continue;
            }
            for (j = j > i ? j : i; j < L && (!mem || mem[j + 1] - mem[i] <= room); j++) {
            }
            for (size_t k = i + m > last ? i + m : last; k <= j; k++) {
                next[k] = any = true;
                last = k;
            }
        }
        *stage = s;
        if (!any) {
            return far;
        }
        far = last;
        memcpy(open, next, (L + 1) * sizeof *open);
        if (p->any_stages && open[L]) {
            return L;
        }
    }
    return open[L] ? L : far < L ? far : L - 1;
}

/* The factor on all capacities from which on the stages hold all layers; infinity = none does. */
static double needed_factor(const struct hv_partition *p, bool *open, size_t *stage)
{
    double low = 1, high = 2;
    size_t ignored;
    while (high < 1e12 && reach_scaled(p, high, open, &ignored) < p->n_layers) {
        high *= 4;
    }
    if (reach_scaled(p, high, open, &ignored) < p->n_layers) {
        return HUGE_VAL;
    }
    for (int k = 0; k < STEPS && high - low > 1e-4 * low; k++) {
        double mid = 0.5 * (low + high);
        if (reach_scaled(p, mid, open, stage) < p->n_layers) {
            low = mid;
        } else {
            high = mid;
        }
    }
    (void)reach_scaled(p, low, open, stage);
    return high;
}

/* The layer that no stage of its own can hold, worst first; false when there is none. */
static bool lone_layer(const struct hv_partition *p, struct hv_arena *arena, const char **why)
{
    double worst = 0;
    for (size_t l = 0; l < p->n_layers; l++) {
        double least = HUGE_VAL, need = 0, room = 0;
        for (size_t s = 0; s < p->n_stages; s++) {
            for (size_t d = p->free_order ? 0 : s; d < (p->free_order ? p->n_stages : s + 1); d++) {
                const double *m = p->stages[s].memory;
                double bytes = m ? m[l + 1] - m[l] : 0, over = bytes - p->stages[d].capacity;
                if (over >= least) {
                    continue;
                }
                least = over;
                need = bytes;
                room = p->stages[d].capacity;
            }
        }
        if (least <= worst + 1e-12 * room) {
            continue;
        }
        char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
        worst = least;
        *why = hv_arena_printf(
            arena,
            "layer %zu alone needs %s of memory where it needs least and fits best, the "
            "capacity there is %s: %s too little",
            l + 1, hv_fmt_double(a, sizeof a, need), hv_fmt_double(b, sizeof b, room),
            hv_fmt_double(c, sizeof c, least));
    }
    return worst > 0;
}

const char *hv__why_infeasible(const struct hv_partition *p, struct hv_arena *arena)
{
    size_t stage = 0, L = p->n_layers, need = p->min_layers * p->n_stages;
    const char *why = NULL;
    if (!p->any_stages && need > L) {
        return hv_arena_printf(arena,
                               "%zu stages of at least %zu layers need %zu layers, there are %zu: "
                               "%zu too few",
                               p->n_stages, p->min_layers, need, L, need - L);
    }
    if (p->any_stages && p->min_layers > L) {
        return hv_arena_printf(arena, "a stage needs at least %zu layers, there are %zu",
                               p->min_layers, L);
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        if (p->stages[s].table) {
            return "the tables of allowed runs and the capacities leave no partition";
        }
    }
    if (lone_layer(p, arena, &why)) {
        return why;
    }
    if (p->free_order) {
        return "the capacities leave no partition in any order, although each layer fits a device";
    }
    bool *open = hv_arena_new(arena, bool, 2 * (L + 1));
    size_t far = reach_scaled(p, 1, open, &stage);
    double factor = needed_factor(p, open, &stage);
    if (isinf(factor)) {
        return "stages without capacity leave layers without a place";
    }
    char share[HV_FMT_CAP];
    return hv_arena_printf(arena,
                           "memory: the stages hold layers 1 to %zu of %zu at most; all capacities "
                           "would have to be %s times as large, stage %zu is the first to give out",
                           far, L, hv_fmt_double(share, sizeof share, ceil(factor * 1e4) / 1e4),
                           stage + 1);
}
