/*
 * Longest item first, with or without a limit of items per slot.
 * Not here: splits of a total (distribute.c).
 */
#include "solver/base/units.h"
#include "solver/optim/batch/distribute.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct item {
    double size;
    size_t index;
};

static int by_size(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    if (a->size != b->size) {
        return a->size < b->size ? 1 : -1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* Gives every item, the largest first, to the slot with the least load that has room. */
static void deal(const struct item *order, size_t n, size_t n_slots, size_t most,
                 struct hv_arena *arena, struct hv_distribution *out)
{
    double *load = hv_arena_new(arena, double, n_slots);
    size_t *held = hv_arena_new(arena, size_t, n_slots);
    for (size_t i = 0; i < n; i++) {
        size_t slot = n_slots;
        for (size_t k = 0; k < n_slots; k++) {
            if ((!most || held[k] < most) && (slot == n_slots || load[k] < load[slot])) {
                slot = k;
            }
        }
        held[slot]++;
        load[slot] += order[i].size;
        out->count[order[i].index] = (int64_t)slot;
        out->objective = fmax(out->objective, load[slot]);
    }
}

/* No distribution is better: the mean load, the biggest item, and items forced together. */
static double bound_of(const struct item *order, size_t n, size_t n_slots, size_t most, double sum)
{
    double bound = fmax(sum / (double)n_slots, n ? order[0].size : 0);
    if (n > n_slots) {
        bound = fmax(bound, order[n_slots - 1].size + order[n_slots].size);
    }
    /* the slot of the biggest item holds at least n - most · (slots - 1) items */
    size_t others = most ? most * (n_slots - 1) : n;
    double forced = n > others ? order[0].size : 0;
    for (size_t k = 1; n > others && k < n - others; k++) {
        forced += order[n - k].size;
    }
    return fmax(bound, forced);
}

enum hv_status hv_distribute_lpt(const double *items, size_t n, size_t n_slots, size_t most,
                                 struct hv_arena *arena, struct hv_distribution *out,
                                 struct hv_err *err)
{
    memset(out, 0, sizeof *out);
    if (n_slots == 0 || n_slots > HV_DISTRIBUTE_MAX_SHARES || n > HV_DISTRIBUTE_MAX_SHARES) {
        return hv_err_set(err, HV_EINPUT, "expected 1 to %zu slots and at most as many items",
                          HV_DISTRIBUTE_MAX_SHARES);
    }
    struct item *order = hv_arena_new(arena, struct item, n);
    double sum = 0;
    out->count = hv_arena_new(arena, int64_t, n);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(items[i]) || items[i] < 0) {
            return hv_err_set(err, HV_EINPUT,
                              "item %zu: expected a finite size that is not negative", i + 1);
        }
        order[i] = (struct item){items[i], i};
        sum += items[i];
    }
    out->method = "longest-first";
    if (most && n > n_slots * most) {
        out->objective = out->bound = HV_UNKNOWN;
        out->proven = true;
        out->proof =
            hv_arena_printf(arena, "%zu items, but %zu slot%s of at most %zu hold %zu fewer", n,
                            n_slots, n_slots == 1 ? "" : "s", most, n - n_slots * most);
        return HV_OK;
    }
    if (n) {
        qsort(order, n, sizeof *order, by_size);
    }
    deal(order, n, n_slots, most, arena, out);
    out->bound = bound_of(order, n, n_slots, most, sum);
    out->feasible = true;
    out->proven = out->objective <= out->bound * (1 + 1e-12);
    out->proof = "the bound is the largest of mean load, biggest item and items forced together";
    return HV_OK;
}
