/** The program of a pipeline's layers: its closed form against lp_solve's point and duals, whole
 * layers against every way to share them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/eval/balance.h"
#include "solver/optim/lp/lp.h"
#include "tests/eval_fixture.h"

/** Slowest stage of whole numbers of layers, seconds per micro-batch. */
static double pace_s(const struct hv_balance *b, const int *layers)
{
    double pace = 0;
    for (size_t i = 0; i < b->n; i++) {
        pace = fmax(pace, layers[i] * b->stages[i].layer_s);
    }
    return pace;
}

enum { MOST = 5 };

/** A plan and a verdict of random stages, as the judge would give them. */
struct made {
    struct hv_stage stages[MOST];
    struct hv_range ranges[MOST];
    struct hv_replica replica;
    struct hv_plan plan;
    struct hv_stage_metrics metrics[MOST];
    struct hv_stage_memory memory[MOST];
    struct hv_verdict verdict;
};

static void make(struct made *m, struct hv_rng *rng, size_t n)
{
    *m = (struct made){0};
    for (size_t i = 0; i < n; i++) {
        int layers = 1 + (int)(hv_rng_double(rng) * 5);
        double each = 1 + hv_rng_double(rng) * 4, t = 0.1 + hv_rng_double(rng);
        m->ranges[i] = (struct hv_range){0, 2 * layers};
        m->stages[i] = (struct hv_stage){.ranges = &m->ranges[i], .n_ranges = 1};
        m->metrics[i] = (struct hv_stage_metrics){
            .stage = i, .forward_s = t * layers / 3, .backward_s = t * layers * 2 / 3};
        m->memory[i] =
            (struct hv_stage_memory){.stage = i,
                                     .overhead_bytes = 1,
                                     .peak_bytes = 1 + each * layers,
                                     .limit_bytes = 1 + each * (1 + hv_rng_double(rng) * 9)};
    }
    m->replica = (struct hv_replica){.stages = m->stages, .n_stages = n, .micro_batches = 8};
    m->plan = (struct hv_plan){.replicas = &m->replica, .n_replicas = 1};
    m->verdict = (struct hv_verdict){
        .stages = m->metrics, .n_stages = n, .memory = m->memory, .n_memory = n};
}

/** The same program by lp_solve; rows: time of each, memory of each, all layers. */
static void solve_lp(const struct hv_balance *b, struct hv_lp_result *r)
{
    struct hv_lp *lp = hv_lp_new(HV_LP_MIN);
    size_t x[MOST], pace = 0;
    struct hv_lp_term all[MOST];
    assert_int_equal(hv_lp_add_var(lp, 0, HUGE_VAL, false, &pace, NULL), HV_OK);
    for (size_t i = 0; i < b->n; i++) {
        assert_int_equal(hv_lp_add_var(lp, 0, HUGE_VAL, false, &x[i], NULL), HV_OK);
        all[i] = (struct hv_lp_term){x[i], 1};
    }
    for (size_t i = 0; i < b->n; i++) {
        struct hv_lp_term t[] = {{x[i], b->stages[i].layer_s}, {pace, -1}};
        assert_int_equal(hv_lp_add_row(lp, t, 2, HV_LP_LE, 0, NULL), HV_OK);
    }
    for (size_t i = 0; i < b->n; i++) {
        const struct hv_balance_stage *s = &b->stages[i];
        struct hv_lp_term t = {x[i], s->layer_bytes};
        assert_int_equal(hv_lp_add_row(lp, &t, 1, HV_LP_LE, s->limit_bytes - s->fixed_bytes, NULL),
                         HV_OK);
    }
    assert_int_equal(hv_lp_add_row(lp, all, b->n, HV_LP_EQ, b->layers, NULL), HV_OK);
    struct hv_lp_term goal = {pace, 1};
    assert_int_equal(hv_lp_set_objective(lp, &goal, 1, NULL), HV_OK);
    assert_int_equal(hv_lp_solve(lp, &(struct hv_lp_limits){0}, r, NULL), HV_OK);
    hv_lp_free(lp);
}

/** Least pace of all ways to give `left` layers to stages from i on; HUGE_VAL = none fits. */
static double best_of_all(const struct hv_balance *b, size_t i, int left)
{
    if (i == b->n) {
        return left == 0 ? 0 : HUGE_VAL;
    }
    const struct hv_balance_stage *s = &b->stages[i];
    double best = HUGE_VAL;
    for (int k = 1;
         k <= left && k * s->layer_bytes <= (s->limit_bytes - s->fixed_bytes) * (1 + 1e-12); k++) {
        best = fmin(best, fmax(k * s->layer_s, best_of_all(b, i + 1, left - k)));
    }
    return best;
}

static void the_closed_form_is_the_optimum_with_its_duals(void **state)
{
    struct hv_rng rng;
    (void)state;
    size_t full = 0, impossible = 0;
    hv_rng_seed(&rng, 4);
    for (int round = 0; round < 400; round++) {
        struct made m;
        struct hv_arena a = {0};
        struct hv_balance b;
        struct hv_lp_result r = {0};
        make(&m, &rng, 2 + (size_t)(hv_rng_double(&rng) * (MOST - 1)));
        assert_int_equal(hv_eval_balance(&m.verdict, &m.plan, 0, &a, &b, NULL), HV_OK);
        solve_lp(&b, &r);
        int whole[MOST];
        double best = best_of_all(&b, 0, (int)b.layers);
        assert_int_equal(hv_balance_whole(&b, SIZE_MAX, whole), best < HUGE_VAL);
        if (best < HUGE_VAL) {
            assert_true(fabs(pace_s(&b, whole) - best) < 1e-9);
        }
        if (!hv_known(b.best_pace_s)) {
            assert_int_equal(r.outcome, HV_LP_INFEASIBLE);
            impossible++;
        } else {
            assert_int_equal(r.outcome, HV_LP_OPTIMAL);
            assert_true(fabs(r.objective - b.best_pace_s) < 1e-7);
            double prices = 0;
            for (size_t i = 0; i < b.n; i++) {
                const struct hv_balance_stage *s = &b.stages[i];
                assert_true(fabs(fabs(r.duals[i]) - s->time_price) < 1e-6);
                assert_true(fabs(-r.duals[b.n + i] - s->memory_price_s_per_byte) < 1e-6);
                prices += s->time_price;
                full += s->memory_price_s_per_byte > 0;
            }
            assert_true(fabs(prices - 1) < 1e-9);
        }
        hv_lp_result_free(&r);
        hv_arena_free(&a);
    }
    assert_true(full > 50 && impossible > 5); /* both kinds were met */
}

static void what_has_no_layers_to_share_is_refused(void **state)
{
    struct hv_arena a = {0};
    struct hv_balance b;
    struct hv_err err = {0};
    struct made m;
    struct hv_rng rng;
    (void)state;
    hv_rng_seed(&rng, 1);
    make(&m, &rng, 1);
    assert_int_equal(hv_eval_balance(&m.verdict, &m.plan, 0, &a, &b, &err), HV_ENO);
    make(&m, &rng, 3);
    m.ranges[1].to2++; /* half a layer */
    assert_int_equal(hv_eval_balance(&m.verdict, &m.plan, 0, &a, &b, &err), HV_ENO);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_closed_form_is_the_optimum_with_its_duals),
        cmocka_unit_test(what_has_no_layers_to_share_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
