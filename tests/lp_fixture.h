/* Random chains as the integer programs on which lp_solve 5.5.2.5 is known to answer wrongly: one
 * binary per (stage, run), a row T >= value per stage. For the unit test and the fuzz bench. */
#ifndef HV_TESTS_LP_FIXTURE_H
#define HV_TESTS_LP_FIXTURE_H

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition.h"
#include "solver/optim/lp/lp.h"
#include <math.h>
#include <stdlib.h>

enum { FIX_L = 12, FIX_S = 4 };

/* A random chain with its arrays. */
struct fix_chain {
    double time[FIX_S][FIX_L + 1], memory[FIX_S][FIX_L + 1], cut[FIX_S][FIX_L + 1];
    const double *cuts[FIX_S];
    struct hv_part_stage stage[FIX_S];
    struct hv_partition p;
};

static inline void fix_make(struct hv_rng *rng, struct fix_chain *c)
{
    static const double speed[] = {65, 125, 312, 989};
    *c = (struct fix_chain){.p = {.n_layers = 5 + hv_rng_below(rng, FIX_L - 4),
                                  .n_stages = 2 + hv_rng_below(rng, FIX_S - 1),
                                  .min_layers = hv_rng_below(rng, 2),
                                  .max_weight = 1}};
    c->p.stages = c->stage;
    c->p.cuts = c->cuts;
    for (size_t s = 0; s < c->p.n_stages; s++) {
        double pace = 1000 / speed[hv_rng_below(rng, 4)];
        for (size_t l = 0; l < c->p.n_layers; l++) {
            c->time[s][l + 1] = c->time[s][l] + pace * (0.5 + hv_rng_double(rng));
            c->memory[s][l + 1] = c->memory[s][l] + 1;
            c->cut[s][l] = 6 * hv_rng_double(rng);
        }
        c->cuts[s] = c->cut[s];
        c->stage[s] = (struct hv_part_stage){
            .time = c->time[s],
            .memory = c->memory[s],
            .capacity = (double)(c->p.n_layers / c->p.n_stages + hv_rng_below(rng, 5))};
    }
}

/* The program in units of `unit`, with T <= top when that is finite. Owner: caller. */
static inline struct hv_lp *fix_model(const struct fix_chain *c, double unit, double top)
{
    size_t L = c->p.n_layers, S = c->p.n_stages, t = 0, at[FIX_S][FIX_L + 1][FIX_L + 1];
    struct hv_lp_term row[FIX_S * (FIX_L + 1) * (FIX_L + 1)];
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    bool ok = hv_lp_add_var(lp, 0, top * unit, false, &t, NULL) == HV_OK;
    for (size_t s = 0; s < S; s++) {
        for (size_t i = 0; i <= L; i++) {
            for (size_t j = i; j <= L; j++) {
                bool allowed = !isinf(hv_partition_value(&c->p, s, s, i, j));
                at[s][i][j] = SIZE_MAX;
                if (allowed && (s > 0 || i == 0) && (s + 1 < S || j == L)) {
                    ok = ok && hv_lp_add_var(lp, 0, 1, true, &at[s][i][j], NULL) == HV_OK;
                }
            }
        }
    }
    for (size_t s = 0; s < S; s++) { /* T >= value of the stage's run; one run starts at 0 */
        size_t n = 0;
        for (size_t i = 0; i <= L; i++) {
            for (size_t j = i; j <= L; j++) {
                if (at[s][i][j] != SIZE_MAX) {
                    row[n++] = (struct hv_lp_term){at[s][i][j],
                                                   unit * hv_partition_value(&c->p, s, s, i, j)};
                }
            }
        }
        ok = ok && hv_lp_add_max_row(lp, t, row, n, 0, NULL) == HV_OK;
        for (size_t k = 0; k < n; k++) {
            row[k].coef = 1;
        }
        if (s == 0) {
            ok = ok && hv_lp_add_row(lp, row, n, HV_LP_EQ, 1, NULL) == HV_OK;
        }
    }
    for (size_t s = 0; s + 1 < S; s++) { /* a run that ends at j is followed by one from j */
        for (size_t j = 0; j <= L; j++) {
            size_t n = 0;
            for (size_t i = 0; i <= j; i++) {
                if (at[s][i][j] != SIZE_MAX) {
                    row[n++] = (struct hv_lp_term){at[s][i][j], 1};
                }
            }
            for (size_t k = j; k <= L; k++) {
                if (at[s + 1][j][k] != SIZE_MAX) {
                    row[n++] = (struct hv_lp_term){at[s + 1][j][k], -1};
                }
            }
            if (n) {
                ok = ok && hv_lp_add_row(lp, row, n, HV_LP_EQ, 0, NULL) == HV_OK;
            }
        }
    }
    ok = ok && hv_lp_set_objective(lp, (struct hv_lp_term[]){{t, 1}}, 1, NULL) == HV_OK;
    if (!ok) {
        abort();
    }
    return lp;
}

/* What became of one program. */
struct fix_tally {
    long runs, proven, wrong_proven, worse, infeasible, wrong_infeasible, open;
};

/* Solves one random program and compares with the exact optimum of the chain. */
static inline void fix_run(struct hv_rng *rng, struct fix_tally *n)
{
    static const double units[] = {1, 1, 1e-3, 1e3, 1e6, 1e9}, tops[] = {HUGE_VAL, 1.2, 1.02};
    struct fix_chain c;
    struct hv_arena arena = {0};
    struct hv_partition_result want;
    struct hv_lp_result r;
    fix_make(rng, &c);
    double unit = units[hv_rng_below(rng, 6)], top = tops[hv_rng_below(rng, 3)];
    if (hv_partition_solve(&c.p, NULL, &arena, &want, NULL) != HV_OK) {
        abort();
    }
    struct hv_lp *lp = fix_model(&c, unit, want.feasible ? top * want.max : HUGE_VAL);
    const struct hv_lp_limits limits = {.max_nodes = 20000};
    if (hv_lp_solve(lp, &limits, &r, NULL) != HV_OK) {
        abort();
    }
    bool equal = want.feasible && hv_known(r.objective) &&
                 fabs(r.objective - want.objective * unit) <= 1e-6 * want.objective * unit;
    n->runs++;
    n->proven += r.proven;
    n->wrong_proven += r.proven && !equal;
    n->worse += !r.proven && hv_known(r.objective) && !equal;
    n->infeasible += r.outcome == HV_LP_INFEASIBLE;
    n->wrong_infeasible += r.outcome == HV_LP_INFEASIBLE && want.feasible;
    n->open += r.outcome == HV_LP_STOPPED || r.outcome == HV_LP_FAILED;
    hv_lp_result_free(&r);
    hv_lp_free(lp);
    hv_arena_free(&arena);
}

#endif
