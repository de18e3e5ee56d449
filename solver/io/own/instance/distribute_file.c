/* Reads distribution instances. The solvers are in solver/optim. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/instance/partition_int.h"
#include <math.h>

#define MAX_POINTS ((size_t)1 << 22)

/* Points [count, ms] of a curve. */
static enum hv_status read_points(struct hv_arena *a, const struct hv_jp *list, struct hv_share *s,
                                  struct hv_err *err)
{
    size_t n = 0, pair = 0;
    enum hv_status st = hv_jp_array(list, &n, err);
    if (st == HV_OK && (n == 0 || n > MAX_POINTS)) {
        return hv_jp_fail(list, err, "expected 1 to %zu points, found %zu", MAX_POINTS, n);
    }
    struct hv_share_point *p = hv_arena_new(a, struct hv_share_point, n);
    for (size_t k = 0; k < n && st == HV_OK; k++) {
        struct hv_jp at = hv_jp_at(list, k);
        st = hv_jp_array(&at, &pair, err);
        if (st == HV_OK && pair != 2) {
            return hv_jp_fail(&at, err, "expected [count, ms], found %zu numbers", pair);
        }
        struct hv_jp count = hv_jp_at(&at, 0), time = hv_jp_at(&at, 1);
        if (st == HV_OK) {
            st = hv_jp_int(&count, 0, HV_DISTRIBUTE_MAX_TOTAL, &p[k].count, err);
        }
        if (st == HV_OK) {
            st = hv_jp_number(&time, 0, 1e15, &p[k].time, err);
        }
        if (st == HV_OK && k && p[k].count <= p[k - 1].count) {
            return hv_jp_fail(&count, err, "expected a count above %lld, that of the point before",
                              (long long)p[k - 1].count);
        }
        if (st == HV_OK && k && p[k].time < p[k - 1].time) {
            return hv_jp_fail(&time, err, "expected a time that does not fall below %g",
                              p[k - 1].time);
        }
    }
    s->points = p;
    s->n_points = n;
    return st;
}

static enum hv_status read_share(struct hv_arena *a, const struct hv_jp *at, struct hv_share *s,
                                 struct hv_err *err)
{
    struct hv_jp rate, points = hv_jp_get(at, "time_ms");
    *s = (struct hv_share){.size = 1, .max = HV_DISTRIBUTE_MAX_TOTAL};
    enum hv_status st = hv_keys_check(at, HV_KEYS_INSTANCE_SHARE, err);
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "size", 1, HV_DISTRIBUTE_MAX_TOTAL, &s->size, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "min", 0, HV_DISTRIBUTE_MAX_TOTAL, &s->min, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "max", s->min, HV_DISTRIBUTE_MAX_TOTAL, &s->max, err);
    }
    if (st == HV_OK && !hv_jp_none(&points)) {
        struct hv_jp twice = hv_jp_get(at, "per_microbatch_ms"), fixed = hv_jp_get(at, "fixed_ms");
        if (!hv_jp_none(&twice) || !hv_jp_none(&fixed)) {
            return hv_jp_fail(&points, err,
                              "points stand instead of fixed_ms and per_microbatch_ms");
        }
        st = read_points(a, &points, s, err);
        if (st == HV_OK && s->points[0].count > s->min) {
            return hv_jp_fail(&points, err, "expected a first point at the min %lld or below",
                              (long long)s->min);
        }
        if (st == HV_OK && s->points[s->n_points - 1].count < s->min) {
            return hv_jp_fail(&points, err, "expected points that reach the min %lld",
                              (long long)s->min);
        }
        return st;
    }
    if (st == HV_OK) {
        st = hv_jp_opt_number(at, "fixed_ms", 0, 1e15, &s->fixed, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(at, "per_microbatch_ms", "a number (or points as time_ms)", &rate, err);
    }
    return st == HV_OK ? hv_jp_number(&rate, 0, 1e15, &s->rate, err) : st;
}

/* True where the slope of the curve is smaller after point k than before it. */
static bool bends_down(const struct hv_share_point *p, size_t k)
{
    double before = (p[k].time - p[k - 1].time) / (double)(p[k].count - p[k - 1].count);
    double behind = (p[k + 1].time - p[k].time) / (double)(p[k + 1].count - p[k].count);
    return behind < before * (1 - 1e-9);
}

/* Checks what the objective requires of a replica. The solver checks the same, but cannot report
 * line and column. */
static enum hv_status check_goal(const struct hv_instance *in, const struct hv_jp *at, size_t i,
                                 struct hv_err *err)
{
    const struct hv_share *s = &in->shares[i];
    struct hv_jp points = hv_jp_get(at, "time_ms"), rate = hv_jp_get(at, "per_microbatch_ms");
    struct hv_jp size = hv_jp_get(at, "size");
    if (s->points && (in->goal == HV_INSTANCE_MINVAR || in->goal == HV_INSTANCE_RATIO)) {
        return hv_jp_fail(&points, err, "points go with minmax and sum only");
    }
    if (in->goal == HV_INSTANCE_MINVAR && s->rate <= 0) {
        return hv_jp_fail(&rate, err, "minvar needs a time above 0");
    }
    if (in->goal == HV_INSTANCE_RATIO && s->size != 1) {
        return hv_jp_fail(&size, err, "ratio needs sizes of 1");
    }
    if (in->goal != HV_INSTANCE_SUM) {
        return HV_OK;
    }
    if (s->size != in->shares[0].size) {
        return hv_jp_fail(hv_jp_none(&size) ? at : &size, err,
                          "sum needs equal sizes, found %lld after %lld", (long long)s->size,
                          (long long)in->shares[0].size);
    }
    for (size_t k = 1; s->points && k + 1 < s->n_points; k++) {
        struct hv_jp point = hv_jp_at(&points, k);
        if (bends_down(s->points, k)) {
            return hv_jp_fail(&point, err,
                              "sum needs convex times, but a count costs less behind this point "
                              "than before it");
        }
    }
    return HV_OK;
}

static enum hv_status read_replicas(struct hv_instance *in, const struct hv_jp *root,
                                    struct hv_err *err)
{
    struct hv_jp at;
    enum hv_status st = hv_jp_need(root, "total", "a whole number", &at, err);
    if (st == HV_OK) {
        st = hv_jp_int(&at, 0, HV_DISTRIBUTE_MAX_TOTAL, &in->total, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "replicas", "a list", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&at, &in->n_shares, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (in->n_shares == 0 || in->n_shares > HV_DISTRIBUTE_MAX_SHARES) {
        return hv_jp_expected(&at, err, "1 to 1048576 replicas");
    }
    struct hv_share *shares = hv_arena_new(&in->arena, struct hv_share, in->n_shares);
    in->shares = shares;
    for (size_t i = 0; i < in->n_shares && st == HV_OK; i++) {
        struct hv_jp one = hv_jp_at(&at, i);
        st = read_share(&in->arena, &one, &shares[i], err);
        if (st == HV_OK) {
            st = check_goal(in, &one, i, err);
        }
    }
    return st;
}

static enum hv_status read_items(struct hv_instance *in, const struct hv_jp *root,
                                 struct hv_err *err)
{
    struct hv_jp at;
    int64_t slots = 0, most = 0;
    enum hv_status st = hv_jp_need(root, "slots", "a whole number", &at, err);
    if (st == HV_OK) {
        st = hv_jp_int(&at, 1, (int64_t)HV_DISTRIBUTE_MAX_SHARES, &slots, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(root, "most", 1, (int64_t)HV_DISTRIBUTE_MAX_SHARES, &most, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "items_ms", "a list of times", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&at, &in->n_items, err);
    }
    if (st == HV_OK && in->n_items > HV_DISTRIBUTE_MAX_SHARES) {
        return hv_jp_expected(&at, err, "at most 1048576 items");
    }
    double *items = hv_arena_new(&in->arena, double, in->n_items + 1);
    in->items = items;
    in->n_slots = (size_t)slots;
    in->most = (size_t)most;
    for (size_t i = 0; i < in->n_items && st == HV_OK; i++) {
        struct hv_jp one = hv_jp_at(&at, i);
        st = hv_jp_number(&one, 0, 1e15, &items[i], err);
    }
    return st;
}

enum hv_status hv__instance_read_distribute(struct hv_instance *in, const struct hv_jp *root,
                                            struct hv_err *err)
{
    static const char *const goals[] = {"minmax", "sum", "minvar", "ratio", "lpt"};
    int goal = HV_INSTANCE_MINMAX;
    enum hv_status st = hv_keys_check(root, HV_KEYS_INSTANCE_DISTRIBUTE, err);
    if (st == HV_OK) {
        st = hv_jp_opt_word(root, "objective", goals, HV_COUNT(goals), &goal, err);
    }
    if (st != HV_OK) {
        return st;
    }
    in->goal = (enum hv_instance_goal)goal;
    return in->goal == HV_INSTANCE_LPT ? read_items(in, root, err) : read_replicas(in, root, err);
}
