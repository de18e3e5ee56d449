/** Loads of ranks with experts over the iterations of a routing, the hottest expert, rows without a
 * token, and moves between iterations. Links and rates are plain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/eval/experts/loads.h"
#include "solver/io/export/gantt.h"
#include "tests/eval_fixture.h"
#include "ui/view/gantt/strips.h"

static const char cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
    "\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":10,\"latency_us\":0,\"curve\":"
    "\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":80,\"bandwidth_GBps\":1000,"
    "\"dense_TFLOPS\":{\"fp32\":10},\"rates\":\"plain\"}}}";

/** Two layers of eight experts on four nodes of one device. */
struct scene {
    struct world w;
    struct hv_plan_doc plan;
    struct hv_verdict v;
    struct hv_arena a;
    struct hv_expert_layer *layers;
    size_t n;
};

static void open_scene(struct scene *x, const char *counts, const char *moe)
{
    char job[4096], plan[1024];
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":1024,"
                   "\"precision\":\"fp32\",\"optimizer\":\"adam\",\"routing\":{\"kind\":\"trace\","
                   "\"counts\":[%s]}}",
                   counts);
    (void)snprintf(plan, sizeof plan,
                   "{\"format\":\"hetviz.plan/1\",\"micro_batch\":64,\"replicas\":[{"
                   "\"micro_batches\":1,\"stages\":[{\"devices\":\"a[0-3].0\",\"layers\":[0,2],"
                   "\"dp\":4,\"ep\":4,\"moe\":{\"all_to_all\":\"flat\"%s}}]}]}",
                   moe);
    memset(x, 0, sizeof *x);
    struct hv_err err = {0};
    const struct hv_eval_options o = {.timeline = true};
    open_world(&x->w, cluster,
               "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
               "\"layers\":2,\"hidden\":1024,\"heads\":8,\"kv_heads\":8,\"ffn\":4096,"
               "\"ffn_kind\":\"gelu\",\"ffn_bias\":false,\"vocab\":1000,\"max_sequence\":1024,"
               "\"moe\":{\"experts\":8,\"top_k\":1,\"ffn\":4096}}",
               job);
    if (hv_plan_doc_build(&x->plan, parse(plan, "p"), x->w.in.cluster.cluster, &err) != HV_OK ||
        hv_eval(x->w.cost, x->plan.plan, &o, &x->a, &x->v, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    x->n = hv_eval_expert_layers(x->w.cost, x->plan.plan, &x->a, &x->layers);
}

static void close_scene(struct scene *x)
{
    hv_plan_doc_free(&x->plan);
    close_world(&x->w);
    hv_arena_free(&x->a);
}

static struct hv_expert_loads loads_of(struct scene *x, size_t layer)
{
    struct hv_expert_loads l;
    struct hv_err err = {0};
    if (hv_eval_expert_loads(x->w.cost, x->plan.plan, x->v.routing.steps, &x->layers[layer], &x->a,
                             &l, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return l;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)))) {
        fail_msg("%.17g is not %.17g", got, want);
    }
}

#define FALLING "[[8,7,6,5,4,3,2,1]]"
#define RISING  "[[1,2,3,4,5,6,7,8]]"
#define HOT     "[[1,1,1,1,1,30,1,1]]"

/** Two experts on each rank: 15, 11, 7 and 3 of 36 tokens, mean 9; the second layer the other way
 * round in its first iteration. Expert 0 has 8 tokens where the mean is 4.5. */
static void loads_by_hand(void **state)
{
    (void)state;
    struct scene x;
    open_scene(&x, "[" FALLING "," RISING "],[" FALLING "," HOT "]", "");
    assert_int_equal(x.n, 2);
    struct hv_expert_loads a = loads_of(&x, 0), b = loads_of(&x, 1);
    const double tokens[4] = {15, 11, 7, 3};
    assert_int_equal(a.iterations, 2);
    assert_int_equal(a.ranks, 4);
    for (size_t r = 0; r < 4; r++) {
        near(a.loads[r], tokens[r] / 9);
        near(a.loads[4 + r], tokens[r] / 9);
        near(b.loads[r], tokens[3 - r] / 9);
    }
    near(a.busiest[0], 15.0 / 9);
    assert_int_equal(a.hottest[0], 0);
    near(a.times[0], 8 / 4.5);
    assert_int_equal(b.hottest[0], 7);
    assert_int_equal(b.hottest[1], 5);
    near(b.times[1], 30 / (37.0 / 8));
    near(b.loads[4 + 2], 31 / (37.0 / 4)); /* experts 4 and 5 are on rank 2 */
    near(a.padded[0], 0);                  /* grouped products have a row for each token */
    assert_string_equal(a.names[2], "rank 2: e4 e5");
    struct hv_hottest_expert hot;
    assert_true(hv_eval_hottest_expert(x.w.cost, x.plan.plan, x.layers, x.n, &hot));
    assert_int_equal(hot.at->block, 1);
    assert_int_equal(hot.expert, 5);
    assert_int_equal(hot.iteration, 1);
    near(hot.times, 30 / (37.0 / 8));
    near(hot.frac, 30.0 / 37);
    close_scene(&x);
}

/** SmartMoE's case (test_eval_adapt.c) on two layers: after the first iteration every rank has 9
 * tokens of 36, for which four experts of each layer have moved. */
static void moves_between_iterations(void **state)
{
    (void)state;
    struct scene x;
    open_scene(&x, "[" FALLING "," FALLING "],[" FALLING "," FALLING "],[" FALLING "," FALLING "]",
               ",\"adapt\":{\"policy\":\"balance\"}");
    struct hv_expert_loads l = loads_of(&x, 1);
    const struct hv_routing_step *s = x.v.routing.steps;
    assert_int_equal(x.v.routing.n, 3);
    assert_non_null(s);
    near(l.busiest[0], 15.0 / 9);
    for (size_t r = 0; r < 4; r++) {
        near(l.loads[4 + r], 1);
        near(l.loads[8 + r], 1);
    }
    double sum_s = 0, bytes = 0;
    size_t moves = 0;
    for (size_t t = 0; t < 3; t++) {
        assert_int_equal(s[t].moves, t == 1 ? 8 : 0);
        assert_true((s[t].move_s > 0) == (t == 1));
        sum_s += s[t].time_s;
        moves += s[t].moves;
        bytes += s[t].moved_bytes;
    }
    near(sum_s / 3, x.v.routing.mean_s);
    assert_int_equal(moves, x.v.routing.moves);
    near(bytes, x.v.routing.moved_bytes);
    near(s[1].time_s, s[2].time_s + s[1].move_s);
    close_scene(&x);
}

static bool holds(const struct hv_str *s, const char *text)
{
    return strstr(hv_str_cstr(s), text) != NULL;
}

/** The same figures in a picture and in lines of text. 1.67 of the mean is seven eighths of a cell
 * where half a cell is the mean, 1.22 five; 0.78 and 0.33 three and one. */
static void strips_in_pictures_and_text(void **state)
{
    (void)state;
    struct scene x;
    open_scene(&x, "[" FALLING "," FALLING "],[" FALLING "," FALLING "]",
               ",\"adapt\":{\"policy\":\"balance\"}");
    struct hv_expert_loads l = loads_of(&x, 0);
    const struct hv_gantt_text text = {
        .title = "t", .subtitle = "s", .strips = {.loads = &l, .steps = x.v.routing.steps}};
    struct hv_str out = {0};
    hv_gantt_svg(x.v.timeline, &text, 1000, &out);
    assert_true(holds(&out, "rank 0: e0 e1, iteration 0: 1.67 times the mean"));
    assert_true(holds(&out, "rank 3: e6 e7, iteration 1: 1.00 times the mean"));
    assert_true(holds(&out, "8 experts move before iteration 1"));
    hv_str_clear(&out);
    const struct hv_gantt_strips view = {.loads = &l, .steps = x.v.routing.steps};
    hv_gantt_strips_print(&view, &(struct hv_gantt_print){.width = 60, .ascii = true}, &out);
    assert_true(holds(&out, " rank 0: e0 e1    #= "));
    assert_true(holds(&out, " rank 1: e2 e3    += "));
    assert_true(holds(&out, " rank 2: e4 e5    -= "));
    assert_true(holds(&out, " rank 3: e6 e7    .= "));
    assert_true(holds(&out, " hottest expert   00 "));
    assert_true(holds(&out, " moves before      8 "));
    hv_str_free(&out);
    close_scene(&x);
}

/** Blocks of 128 rows. 4 ranks send 16,384 tokens each, 65,536 in all. Of 36 parts expert 0 has 8,
 * expert 1 has 7: 14,563.6 rows fill 114 blocks, 12,743.1 fill 100: 27,392 rows for 27,306.7
 * tokens on rank 0, in each of two layers. */
static void rows_without_a_token(void **state)
{
    (void)state;
    struct scene x;
    struct hv_expert_waste w;
    open_scene(&x, "[" FALLING "," FALLING "]", ",\"kernel\":\"block\"");
    double tokens = 65536.0 * 15 / 36;
    near(loads_of(&x, 0).padded[0], 1 - tokens / 27392);
    assert_int_equal(hv_eval_expert_waste(x.w.cost, x.plan.plan, 0, 0, 0, &w, NULL), HV_OK);
    near(w.computed, 2 * 27392);
    near(w.padded, 2 * (27392 - tokens));
    close_scene(&x);
}

/** Copies of all experts everywhere: nobody has more than others; every rank keeps its tokens. */
static void copies_everywhere(void **state)
{
    (void)state;
    struct scene x;
    open_scene(&x, "[" HOT "," HOT "]",
               ",\"copies\":{\"0\":\"*\",\"1\":\"*\",\"2\":\"*\",\"3\":\"*\",\"4\":\"*\","
               "\"5\":\"*\",\"6\":\"*\",\"7\":\"*\"}");
    near(loads_of(&x, 0).busiest[0], 1);
    close_scene(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_by_hand),
        cmocka_unit_test(moves_between_iterations),
        cmocka_unit_test(strips_in_pictures_and_text),
        cmocka_unit_test(rows_without_a_token),
        cmocka_unit_test(copies_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
