/** The bound of even plans: by hand, where it is above the chain of a sequence, and for which plans
 * it holds. Soundness: test_eval_bound_random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/bound/bound_int.h"
#include "solver/cost/floor/curve.h"
#include "tests/eval_fixture.h"

/** Best mix of a world of one kind. */
static double best_of(struct hv__work *w, bool even)
{
    static const bool kinds[] = {true};
    double speed = 1, best = 0;
    struct hv__prices p = {.speed = &speed};
    w->even = even;
    hv__mix_values(w, kinds, &p);
    for (size_t i = 0; i < HV_COST_MIXES; i++) {
        best = fmax(best, p.mixed[i] / p.total);
    }
    return best;
}

/**
 * Four sequences through one part on four devices; F, B and the weight gradient take a second each
 * for a sequence and 0.1 more for a pass. In passes of x sequences devices are busy for 3 + 0.3/x.
 * A sequence is through after 0.2 + 2x: as much at x = 1.5, where 2x² - 2.8x - 0.3 = 0. Backward
 * passes begin after 0.1 + x and take 2 + 0.2/x: as much at x = 1, where x² - 0.9x - 0.1 = 0.
 */
static void by_hand(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_cost_cell cell = {0, 4, {{3, 0.3}, {2, 0.2}, {1, 0.1}, {2, 0.2}}};
    struct hv_cost_by_size sizes = {.cells = &cell, .n_cells = 1};
    hv__fill_curve(&sizes, &a);
    const struct hv_cost_by_size *columns[] = {&sizes, NULL};
    double units[] = {4, 1}, floors[] = {3, 0}, devices[] = {4};
    struct hv__work w = {.n_items = 2,
                         .n_kinds = 1,
                         .stride = 2,
                         .batch = 4,
                         .units = units,
                         .floor_s = floors,
                         .sizes = columns,
                         .devices = devices};
    double chain = best_of(&w, false), even = best_of(&w, true);
    assert_true(chain <= 3.2 && chain > 3.2 - 0.02);
    assert_true(even <= 3.3 && even > 3.3 - 0.02);
    assert_true(even > chain + 0.07);
    hv_arena_free(&a);
}

/** Every line of the curve, and what lies between two places, is under what sizes cost. */
static void curve_is_under_every_choice(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_cost_cell cells[] = {{0, 1, {{3, 0.3}, {2, 0.2}, {1, 0.1}, {2, 0.2}}},
                                   {1, 8, {{2.5, 0.4}, {1.5, 0.3}, {0.7, 0.2}, {1.8, 0.2}}}};
    struct hv_cost_by_size sizes = {.cells = cells, .n_cells = HV_COUNT(cells)};
    hv__fill_curve(&sizes, &a);
    for (size_t mix = 0; mix < HV_COST_MIXES; mix++) {
        double share = hv_cost_mix(mix);
        for (double weight = 0.01; weight < 100; weight *= 1.37) {
            double value = hv_cost_even_s(&sizes, mix, weight), least = HUGE_VAL;
            for (double x = 1.0 / 64; x <= 8; x *= 1.01) {
                const struct hv_cost_line *of = cells[x > 1].of;
                double all = of[HV_COST_ALL].each_s + of[HV_COST_ALL].start_s / x;
                double later = of[HV_COST_LATER].each_s + of[HV_COST_LATER].start_s / x;
                double pass = of[HV_COST_FORWARD].start_s + x * of[HV_COST_FORWARD].each_s;
                least = fmin(least, share * all + (1 - share) * later + weight * pass);
            }
            assert_true(value <= least * (1 + 1e-12) && value > 0.9 * least);
        }
    }
    hv_arena_free(&a);
}

static const char experts_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":8,"
    "\"hidden\":2048,\"heads\":16,\"kv_heads\":16,\"ffn\":4096,\"ffn_kind\":\"swiglu\",\"vocab\":"
    "32000,\"max_sequence\":2048,\"moe\":{\"experts\":8,\"top_k\":2,\"ffn\":4096}}";

static void only_plans_with_equal_passes_have_it(void **state)
{
    (void)state;
    struct world w;
    struct hv_arena a = {0};
    struct hv_bound b;
    open_world(&w, cluster_text, experts_model, job_text);
    hv_bound_iteration(w.cost, &a, &b);
    assert_true(b.even_s > 1.005 * b.spread_s && b.cut_why == NULL);
    assert_non_null(strstr(b.even_why, "no backward pass starts before"));
#define TWO_STAGES(more)                                                                           \
    "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":\"a[0-1].*\","  \
    "\"layers\":[0,6],\"dp\":4,\"tp\":4" more "},{\"devices\":\"v[0].*\",\"layers\":[6,8],"        \
    "\"dp\":2,\"tp\":4}]}]"
    static const struct {
        const char *plan;
        bool even;
    } plans[] = {
        {TWO_STAGES(""), true},
        {TWO_STAGES(",\"deal\":\"turns\""), true},
        {TWO_STAGES("") ",\"schedule\":{\"name\":\"zb-2p\"}", true},
        {TWO_STAGES(",\"shares\":[1,1,3,3]"), false},
        {TWO_STAGES("") ",\"schedule\":{\"name\":\"seq1f1b\",\"slices\":4}", false},
        {TWO_STAGES("") ",\"schedule\":{\"name\":\"dualpipe\"}", false},
        {"\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":"
         "\"a[0].*,v[0].*\",\"layers\":[0,8],\"dp\":4,\"tp\":4}]}]",
         false},
        {"\"micro_batch\":1,\"replicas\":[{\"count\":4,\"micro_batches\":16,\"stages\":[{"
         "\"devices\":\"a.*\",\"layers\":[0,8],\"tp\":8}]}]",
         true},
        {"\"micro_batch\":1,\"replicas\":[{\"count\":4,\"micro_batches\":14,\"stages\":[{"
         "\"devices\":\"a.*\",\"layers\":[0,8],\"tp\":8}]},{\"micro_batches\":8,\"stages\":[{"
         "\"devices\":\"v[0].*\",\"layers\":[0,8],\"tp\":8}]}]",
         false},
    };
    for (size_t i = 0; i < HV_COUNT(plans); i++) {
        struct hv_verdict v = judge(&w, &a, false, plans[i].plan);
        if (v.metrics.bound_s != (plans[i].even ? b.even_s : b.spread_s)) {
            fail_msg("%s: %s", plans[i].plan,
                     v.findings.n > 0 ? v.findings.items[0].text : v.bound_why);
        }
        assert_true(v.metrics.iteration_s > v.metrics.bound_s);
        assert_true(v.bound_some == plans[i].even);
    }
    close_world(&w);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(curve_is_under_every_choice),
        cmocka_unit_test(only_plans_with_equal_passes_have_it),
    };
    return cmocka_run_group_tests_name("eval_bound_even", tests, NULL, NULL);
}
