/*
 * Special ordered sets as binary variables and rows. Not here: the model itself (model.c).
 */
#include "solver/base/units.h"
#include "solver/optim/lp/lp_int.h"
#include <math.h>
#include <stdlib.h>

static int by_index(const void *pa, const void *pb)
{
    const size_t *a = pa, *b = pb;
    return (*a > *b) - (*a < *b);
}

static enum hv_status check_set(const struct hv_lp *lp, int type, const size_t *vars, size_t n,
                                struct hv_err *err)
{
    if (type != 1 && type != 2) {
        return hv_err_set(err, HV_EINPUT, "a special ordered set has type 1 or 2, not %d", type);
    }
    if (n < 2) {
        return hv_err_set(err, HV_EINPUT, "a special ordered set needs at least two variables");
    }
    for (size_t k = 0; k < n; k++) {
        if (vars[k] >= lp->vars.n) {
            return hv_err_set(err, HV_EINPUT,
                              "the set names variable %zu, but the model has %zu variables",
                              vars[k] + 1, lp->vars.n);
        }
        const struct hv__lp_var *v = &lp->vars.items[vars[k]];
        if (isinf(v->lower) || isinf(v->upper)) {
            return hv_err_set(err, HV_EINPUT,
                              "variable %zu of a special ordered set needs finite bounds",
                              vars[k] + 1);
        }
    }
    size_t *sorted = hv_xcalloc(n, sizeof *sorted), twice = 0;
    for (size_t k = 0; k < n; k++) {
        sorted[k] = vars[k];
    }
    qsort(sorted, n, sizeof *sorted, by_index);
    for (size_t k = 1; k < n && !twice; k++) {
        twice = sorted[k] == sorted[k - 1] ? sorted[k] + 1 : 0;
    }
    free(sorted);
    if (twice) {
        return hv_err_set(err, HV_EINPUT, "the set names variable %zu twice", twice);
    }
    return HV_OK;
}

/* lower · Σ z ≤ x ≤ upper · Σ z over the one or two binaries that allow x. */
static enum hv_status allow(struct hv_lp *lp, size_t x, const size_t *z, size_t n_z,
                            struct hv_err *err)
{
    const struct hv__lp_var v = lp->vars.items[x];
    struct hv_lp_term t[3] = {{x, 1}};
    for (size_t k = 0; k < n_z; k++) {
        t[k + 1] = (struct hv_lp_term){z[k], -v.upper};
    }
    enum hv_status st = hv_lp_add_row(lp, t, n_z + 1, HV_LP_LE, 0, err);
    for (size_t k = 0; k < n_z; k++) {
        t[k + 1].coef = -v.lower;
    }
    if (st == HV_OK && v.lower != 0) {
        st = hv_lp_add_row(lp, t, n_z + 1, HV_LP_GE, 0, err);
    }
    return st;
}

/* Σ z ≤ 1. */
static enum hv_status at_most_one(struct hv_lp *lp, const size_t *z, size_t n, struct hv_err *err)
{
    struct hv_lp_term *t = hv_xcalloc(n, sizeof *t);
    for (size_t k = 0; k < n; k++) {
        t[k] = (struct hv_lp_term){z[k], 1};
    }
    enum hv_status st = hv_lp_add_row(lp, t, n, HV_LP_LE, 1, err);
    free(t);
    return st;
}

static bool is_binary(const struct hv_lp *lp, size_t x)
{
    const struct hv__lp_var *v = &lp->vars.items[x];
    return v->integer && v->lower == 0 && v->upper == 1;
}

enum hv_status hv_lp_add_sos(struct hv_lp *lp, int type, const size_t *vars, size_t n,
                             struct hv_err *err)
{
    enum hv_status st = check_set(lp, type, vars, n, err);
    if (st != HV_OK) {
        return st;
    }
    /* type 1: z[k] allows variable k; type 2: z[k] allows variables k and k + 1 */
    size_t n_z = type == 1 ? n : n - 1, *z = hv_xcalloc(n, sizeof *z);
    for (size_t k = 0; k < n_z && st == HV_OK; k++) {
        z[k] = vars[k];
        if (type == 2 || !is_binary(lp, vars[k])) {
            st = hv_lp_add_var(lp, 0, 1, true, &z[k], err);
        }
    }
    if (st == HV_OK) {
        st = at_most_one(lp, z, n_z, err);
    }
    for (size_t k = 0; k < n && st == HV_OK; k++) {
        if (type == 1 && z[k] == vars[k]) {
            continue;
        }
        size_t first = type == 2 && k > 0 ? k - 1 : k, last = k < n_z ? k : n_z - 1;
        st = allow(lp, vars[k], z + first, last - first + 1, err);
    }
    free(z);
    return st;
}
