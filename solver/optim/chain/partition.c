/*
 * Contiguous partition: checks of an instance, and the choice of method. Fixed order is in fixed.c,
 * free order in order.c and reach.c, branch and bound for objectives with a sum in mixed.c, the
 * local search for large instances in order_search.c, other objectives in weighted.c.
 */
#include "solver/optim/chain/partition.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum hv_status check_prefix(const double *x, size_t n, const char *what, size_t stage,
                                   struct hv_err *err)
{
    for (size_t j = 0; j < n; j++) {
        if (!isfinite(x[j]) || (j && x[j] < x[j - 1])) {
            return hv_err_set(err, HV_EINPUT,
                              "stage %zu: %s of layer %zu: expected a finite number that is not "
                              "negative",
                              stage + 1, what, j);
        }
    }
    return HV_OK;
}

static enum hv_status check_stage(const struct hv_partition *p, size_t s, struct hv_err *err)
{
    const struct hv_part_stage *st = &p->stages[s];
    size_t n = p->n_layers + 1;
    if (isnan(st->capacity) || st->capacity < 0) {
        return hv_err_set(err, HV_EINPUT, "stage %zu: expected a capacity that is not negative",
                          s + 1);
    }
    if (!st->table && !st->time) {
        return hv_err_set(err, HV_EINPUT, "stage %zu has no times", s + 1);
    }
    if (st->memory && check_prefix(st->memory, n, "memory", s, err) != HV_OK) {
        return HV_EINPUT;
    }
    if (!st->table) {
        return check_prefix(st->time, n, "time", s, err);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i; j < n; j++) {
            if (isnan(st->table[i * n + j]) || st->table[i * n + j] < 0) {
                return hv_err_set(err, HV_EINPUT,
                                  "stage %zu: value of layers %zu to %zu: expected a number that "
                                  "is not negative",
                                  s + 1, i + 1, j);
            }
        }
    }
    return HV_OK;
}

static enum hv_status check_cuts(const struct hv_partition *p, const double *const *rows,
                                 const char *what, struct hv_err *err)
{
    for (size_t s = 0; rows && s + 1 < p->n_stages; s++) {
        for (size_t j = 0; j <= p->n_layers; j++) {
            if (!isfinite(rows[s][j]) || rows[s][j] < 0) {
                return hv_err_set(err, HV_EINPUT,
                                  "%s %zu after layer %zu: expected a finite number that is not "
                                  "negative",
                                  what, s + 1, j);
            }
        }
    }
    return HV_OK;
}

enum hv_status hv_partition_check(const struct hv_partition *p, struct hv_err *err)
{
    if (p->n_layers == 0 || p->n_stages == 0) {
        return hv_err_set(err, HV_EINPUT, "a partition needs at least one layer and one stage");
    }
    if (p->n_layers > HV_PARTITION_MAX_LAYERS || p->n_stages > HV_PARTITION_MAX_STAGES) {
        return hv_err_set(err, HV_ELIMIT, "a partition may have at most %zu layers and %zu stages",
                          HV_PARTITION_MAX_LAYERS, HV_PARTITION_MAX_STAGES);
    }
    if (!(p->sum_weight >= 0) || !(p->max_weight >= 0) ||
        !isfinite(p->sum_weight + p->max_weight)) {
        return hv_err_set(err, HV_EINPUT, "weights must be finite and not negative");
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        enum hv_status st = check_stage(p, s, err);
        if (st != HV_OK) {
            return st;
        }
    }
    if (p->tolls && p->free_order) {
        return hv_err_set(err, HV_EINPUT, "tolls are for a fixed order");
    }
    enum hv_status st = check_cuts(p, p->cuts, "cut", err);
    return st == HV_OK ? check_cuts(p, p->tolls, "toll", err) : st;
}

static void describe(const struct hv_partition *p, struct hv_arena *arena,
                     struct hv_partition_result *out)
{
    bool mixed = p->sum_weight > 0;
    out->proven = !out->stopped;
    out->method = mixed ? "dp-sum-max" : "dp-minmax";
    if (p->free_order) {
        out->method = mixed ? "dp-orders-sum-max" : "dp-orders-minmax";
    }
    if (!out->feasible) {
        out->objective = HV_UNKNOWN;
        out->bound = HV_UNKNOWN;
        out->proof =
            out->stopped ? "stopped before a partition was found" : hv__why_infeasible(p, arena);
    } else if (out->stopped) {
        out->proof = "stopped; the bound covers the part that was not searched";
    } else {
        out->bound = out->objective;
        out->proof = mixed ? "branch and bound over the maximum, least sum by dynamic program"
                           : "dynamic program over every cut within the greedy upper bound";
    }
}

enum hv_status hv_partition_solve(const struct hv_partition *p,
                                  const struct hv_solve_limits *limits, struct hv_arena *arena,
                                  struct hv_partition_result *out, struct hv_err *err)
{
    struct hv__watch watch;
    memset(out, 0, sizeof *out);
    hv__watch_start(&watch, limits);
    bool even = p->sum_weight > 0 && hv__solve_even(p, arena, out);
    if (even) {
        out->bound = out->objective;
    } else if (p->sum_weight > 0) {
        hv__solve_mixed(p, &watch, arena, out);
    } else if (p->free_order) {
        hv__reach_free(p, &watch, arena, out);
    } else {
        hv__solve_fixed(p, HV__MAX, hv__greedy_max(p), arena, out);
    }
    if (watch.too_big || (p->free_order && watch.stopped && !out->feasible)) {
        return hv__search_order(p, &watch, arena, out, err);
    }
    describe(p, arena, out);
    if (even) {
        out->method = "identical-layers";
        out->proof = "sweep over the maximum, layers on the fastest stages below it";
    }
    return HV_OK;
}

enum hv_status hv_partition_min_sum(const struct hv_partition *p, double limit,
                                    struct hv_arena *arena, struct hv_partition_result *out,
                                    struct hv_err *err)
{
    memset(out, 0, sizeof *out);
    if (p->free_order || isnan(limit)) {
        return hv_err_set(err, HV_EINPUT, "the least sum under a limit is for a fixed order");
    }
    hv__solve_fixed(p, HV__SUM, limit, arena, out);
    if (!out->feasible && !isinf(limit)) {
        out->proven = true;
        out->objective = out->bound = HV_UNKNOWN;
        out->proof = "no partition keeps all values within the limit";
    } else {
        describe(p, arena, out);
    }
    out->method = "dp-sum";
    if (out->feasible) {
        out->objective = out->bound = out->sum;
    }
    return HV_OK;
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

enum hv_status hv_partition_candidates(const struct hv_partition *p, double lo, double hi,
                                       struct hv_arena *arena, double **out, size_t *n,
                                       struct hv_err *err)
{
    HV_VEC(double) all = {0};
    enum hv_status st = HV_OK;
    for (size_t s = 0; s < p->n_stages && st == HV_OK; s++) {
        for (size_t i = 0; i <= p->n_layers && st == HV_OK; i++) {
            for (size_t j = i; j <= p->n_layers; j++) {
                double v = hv_partition_value(p, s, s, i, j);
                if (!(v >= lo && v <= hi) || isinf(v)) {
                    continue;
                }
                if (all.n >= (size_t)16 << 20) {
                    st = hv_err_set(err, HV_ELIMIT, "too many candidate runs");
                    break;
                }
                hv_vec_push(&all, v);
            }
        }
    }
    size_t kept = 0;
    if (all.n) {
        qsort(all.items, all.n, sizeof *all.items, by_value);
    }
    for (size_t k = 0; k < all.n; k++) {
        if (kept == 0 || all.items[k] != all.items[kept - 1]) {
            all.items[kept++] = all.items[k];
        }
    }
    *n = kept;
    *out = hv_arena_copy(arena, all.items, kept, sizeof *all.items);
    hv_vec_free(&all);
    return st;
}
