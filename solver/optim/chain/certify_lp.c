/*
 * A chain as an integer program over prefix cuts inside windows, written for other solvers.
 * Not here: the certificate, which solves a network program (certify.c).
 */
#include "solver/base/vec.h"
#include "solver/optim/chain/certify.h"
#include "solver/optim/chain/partition_int.h"
#include "solver/optim/lp/lp.h"
#include <math.h>
#include <stdlib.h>

/* Variable y(s, l) = 1 when layer l is in one of the stages 0 … s; fixed outside the window. */
struct model {
    const struct hv_partition *p;
    struct hv_lp *lp;
    struct hv__row *window; /* end positions of each stage */
    size_t *base, top;      /* first variable of each stage; the maximum */
    HV_VEC(struct hv_lp_term) terms;
    double constant; /* what fixed variables add to the terms */
};

/* Adds coef · y(s, l); s counts from 0, stage -1 holds nothing (pass s = SIZE_MAX). */
static void add_y(struct model *m, size_t s, size_t l, double coef)
{
    if (coef == 0 || s == SIZE_MAX) {
        return;
    }
    if (s + 1 == m->p->n_stages || l < m->window[s].lo) {
        m->constant += coef;
    } else if (l < m->window[s].hi) {
        hv_vec_push(&m->terms, (struct hv_lp_term){m->base[s] + l - m->window[s].lo, coef});
    }
}

/* Adds coef · [cut s is at j] = y(s, j - 1) - y(s, j). */
static void add_cut(struct model *m, size_t s, size_t j, double coef)
{
    if (j == 0 || j >= m->p->n_layers) {
        return;
    }
    add_y(m, s, j - 1, coef);
    add_y(m, s, j, -coef);
}

static void start_row(struct model *m)
{
    m->terms.n = 0;
    m->constant = 0;
}

static enum hv_status add_stage(struct model *m, size_t s)
{
    const struct hv_partition *p = m->p;
    const struct hv_part_stage *d = &p->stages[s];
    size_t L = p->n_layers, before = s ? s - 1 : SIZE_MAX;
    start_row(m);
    for (size_t l = 0; l < L; l++) {
        double t = d->time[l + 1] - d->time[l];
        add_y(m, s, l, t);
        add_y(m, before, l, -t);
    }
    for (size_t j = 1; p->cuts && j < L; j++) {
        if (s + 1 < p->n_stages) {
            add_cut(m, s, j, p->cuts[s][j]);
        }
        if (s > 0) {
            add_cut(m, s - 1, j, p->cuts[s - 1][j]);
        }
    }
    enum hv_status st =
        hv_lp_add_max_row(m->lp, m->top, m->terms.items, m->terms.n, m->constant, NULL);
    if (st != HV_OK || !d->memory || isinf(d->capacity)) {
        return st;
    }
    start_row(m);
    for (size_t l = 0; l < L; l++) {
        double b = d->memory[l + 1] - d->memory[l];
        add_y(m, s, l, b);
        add_y(m, before, l, -b);
    }
    return hv_lp_add_row(m->lp, m->terms.items, m->terms.n, HV_LP_LE,
                         d->capacity * (1 + 1e-12) - m->constant, NULL);
}

/* y(s, l) ≥ y(s, l + 1), and cut s at least min_layers behind cut s - 1. */
static enum hv_status add_order(struct model *m, size_t s)
{
    size_t L = m->p->n_layers, gap = m->p->min_layers;
    enum hv_status st = HV_OK;
    for (size_t l = m->window[s].lo; l + 1 < m->window[s].hi && st == HV_OK; l++) {
        start_row(m);
        add_y(m, s, l, 1);
        add_y(m, s, l + 1, -1);
        st = hv_lp_add_row(m->lp, m->terms.items, m->terms.n, HV_LP_GE, -m->constant, NULL);
    }
    for (size_t l = 0; s > 0 && l + gap < L && st == HV_OK; l++) {
        start_row(m);
        add_y(m, s, l + gap, 1);
        add_y(m, s - 1, l, -1);
        if (m->terms.n) {
            st = hv_lp_add_row(m->lp, m->terms.items, m->terms.n, HV_LP_GE, -m->constant, NULL);
        } else if (m->constant < 0) { /* 0 ≥ 1: the windows contradict each other */
            st = hv_lp_add_row(m->lp, NULL, 0, HV_LP_GE, -m->constant, NULL);
        }
    }
    return st;
}

static enum hv_status build_model(struct model *m, double limit)
{
    struct hv_lp_term top;
    enum hv_status st = hv_lp_add_var(m->lp, 0, limit, false, &m->top, NULL);
    for (size_t s = 0; s + 1 < m->p->n_stages && st == HV_OK; s++) {
        m->base[s] = hv_lp_n_vars(m->lp);
        for (size_t l = m->window[s].lo; l < m->window[s].hi && st == HV_OK; l++) {
            st = hv_lp_add_var(m->lp, 0, 1, true, NULL, NULL);
        }
    }
    for (size_t s = 0; s < m->p->n_stages && st == HV_OK; s++) {
        if ((st = add_stage(m, s)) == HV_OK && s + 1 < m->p->n_stages) {
            st = add_order(m, s);
        }
    }
    top = (struct hv_lp_term){m->top, 1};
    return st == HV_OK ? hv_lp_set_objective(m->lp, &top, 1, NULL) : st;
}

enum hv_status hv_certify_write_lp(const struct hv_partition *p,
                                   const struct hv_partition_result *r, bool mps,
                                   struct hv_str *out, struct hv_err *err)
{
    if (!hv_certify_applies(p)) {
        return hv_err_set(err, HV_EUSAGE,
                          "only chains with a fixed order, a fixed number of stages and the minmax "
                          "objective have an integer program");
    }
    struct hv_arena arena = {0};
    struct model m = {.p = p, .lp = hv_lp_new(HV_LP_MIN)};
    m.window = hv_arena_new(&arena, struct hv__row, p->n_stages);
    m.base = hv_arena_new(&arena, size_t, p->n_stages);
    double limit = r->max * (1 + 1e-9);
    enum hv_status st = HV_OK;
    if (!hv__windows(p, limit, m.window) || build_model(&m, limit) != HV_OK) {
        st = hv_err_set(err, HV_EINTERNAL, "the integer program at the optimum cannot be built");
    } else if (mps) {
        hv_lp_write_mps(m.lp, out);
    } else {
        hv_lp_write(m.lp, out);
    }
    hv_lp_free(m.lp);
    hv_vec_free(&m.terms);
    hv_arena_free(&arena);
    return st;
}
