/** Plans that write out the order of each device, on stages that share devices: the case of
 * Tessel's blocks on several devices worked out by hand, random orders against a naive player, and
 * what is refused. Layers of known times on plain links, so that every time is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"
#include "tests/explicit_fixture.h"

/** Milliseconds of a layer for one sequence. */
struct layer {
    double forward_ms, backward_ms;
};

/** Layers on nodes a[0], a[1], … of one device; every stage holds one of them. */
struct order_case {
    int n_layers, batch; /**< sequences of an iteration */
    struct layer layers[8];
    bool one_node; /**< devices a[0].0, a[0].1, … of one node instead */
};

static void open_case(struct world *w, const struct order_case *x)
{
    char cluster[1024], job[256];
    struct hv_str model = {0};
    (void)snprintf(
        cluster, sizeof cluster,
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
        "\"count\":%d,\"device\":\"P\",\"devices\":%d,\"nic\":{\"bandwidth_GBps\":1e6,"
        "\"latency_us\":0,\"curve\":\"plain\"},\"intra\":{\"kind\":\"nvlink\","
        "\"bandwidth_GBps\":1e6,\"latency_us\":0,\"curve\":\"plain\"}}],\"network\":{"
        "\"bandwidth_GBps\":1e6,\"latency_us\":0,\"curve\":\"plain\"},\"devices\":{"
        "\"P\":{\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100}"
        ",\"rates\":\"plain\"}}}",
        x->one_node ? 1 : 4, x->one_node ? 4 : 1);
    hv_str_adds(&model, "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                        "\"layers\":[");
    for (int i = 0; i < x->n_layers; i++) {
        hv_str_addf(&model,
                    "%s{\"forward_ms\":{\"P\":%.17g},\"backward_ms\":{\"P\":%.17g},"
                    "\"parameter_bytes\":0,\"activation_bytes\":1e6,\"output_bytes\":0}",
                    i > 0 ? "," : "", x->layers[i].forward_ms, x->layers[i].backward_ms);
    }
    hv_str_adds(&model, "]}");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"none\"}",
                   x->batch);
    open_world(w, cluster, hv_str_cstr(&model), job);
    hv_str_free(&model);
}

/** Milliseconds of the pipeline. */
static double time_ms(const struct order_case *x, const char *plan)
{
    struct world w;
    struct hv_arena a = {0};
    open_case(&w, x);
    struct hv_verdict v = judge(&w, &a, false, plan);
    for (size_t i = 0; i < v.findings.n; i++) {
        fail_msg("%s: %s", v.findings.items[i].where, v.findings.items[i].text);
    }
    assert_true(!hv_known(v.metrics.bound_s) ||
                v.metrics.bound_s <= v.metrics.iteration_s * (1 + 1e-9));
    double ms = v.metrics.pipeline_s * 1e3;
    close_world(&w);
    hv_arena_free(&a);
    return ms;
}

/** Appends an operation to a list of tokens, unless its micro-batch is not one of m. */
static void add_token(struct hv_str *list, const char *kind, int stage, int mb, int m)
{
    if (mb >= 0 && mb < m) {
        hv_str_addf(list, "%s\"%s%d.%d\"", list->n > 0 && list->p[list->n - 1] != '[' ? "," : "",
                    kind, stage, mb);
    }
}

/* ---- by hand ------------------------------------------------------------------------------------
 */

/** How many periods after its embedding a block runs: on each of four devices, and the head. */
struct offsets {
    int forward[4], head, backward[4], last;
    bool backward_first[4]; /**< in a period */
};

/** Embedding and head on all four devices (their forward 1 ms, their backward 2 ms), between them a
 * chain of four stages of 1 + 2 ms, one per device; micro-batches of four sequences. */
static char *blocks_on_all(int m, const struct offsets *at)
{
    struct hv_str s = {0};
    hv_str_addf(&s,
                "\"micro_batch\":4,\"replicas\":[{\"micro_batches\":%d,\"stages\":["
                "{\"devices\":\"a[0-3].0\",\"layers\":[0,1],\"dp\":4}",
                m);
    for (int d = 0; d < 4; d++) {
        hv_str_addf(&s, ",{\"devices\":\"a[%d].0\",\"layers\":[%d,%d]}", d, d + 1, d + 2);
    }
    hv_str_adds(&s, ",{\"devices\":\"a[0-3].0\",\"layers\":[5,6],\"dp\":4}]}],"
                    "\"schedule\":{\"name\":\"explicit\",\"order\":[");
    for (int d = 0; d < 4; d++) {
        hv_str_adds(&s, d > 0 ? ",[" : "[");
        for (int p = 0; p <= m + at->last; p++) {
            add_token(&s, "BW", 0, p - at->last, m);
            add_token(&s, "F", 0, p, m);
            add_token(&s, "F", 5, p - at->head, m);
            add_token(&s, "BW", 5, p - at->head, m);
            if (at->backward_first[d]) {
                add_token(&s, "BW", d + 1, p - at->backward[d], m);
            }
            add_token(&s, "F", d + 1, p - at->forward[d], m);
            if (!at->backward_first[d]) {
                add_token(&s, "BW", d + 1, p - at->backward[d], m);
            }
        }
        hv_str_adds(&s, "]");
    }
    hv_str_adds(&s, "]}");
    char *text = strdup(hv_str_cstr(&s));
    hv_str_free(&s);
    return text;
}

/**
 * Tessel's placement with blocks on all devices (../catalogue: τ = 6). Every device works 1 (E_f) +
 * 2 (E_b) + 1 (F) + 2 (B) = 6 ms per micro-batch, so no period is shorter. Period p runs E_f of
 * micro-batch p at 0, E_b of p − 4 at 1, then on device d F of p − d and B of p − 7 + d at 3 to 6,
 * so that the chain of a micro-batch spans 8 periods and none waits: τ = 6.
 *
 * The ends of m ≥ 5 micro-batches, played as soon as may be: E_f and F alone take 2 ms each in
 * periods 0 to 3; period 4 takes 1 + 2 + 1 ms and B on device 3, 6 in all: it ends at 14 ms. Each
 * of the m − 5 periods up to m − 1 takes 6. Behind them E_f is missing (three periods of 5 ms),
 * then F too (one of 4 ms, the last with an E_b), then E_b (three of 2 ms, one device each). In all
 * 14 + 6 (m − 5) + 15 + 4 + 6 = 6 m + 9.
 *
 * On odd devices B may go before F: micro-batches then span 6 periods, with the same τ.
 */
static void blocks_on_several_devices(void **state)
{
    (void)state;
    static const struct offsets eight = {
        .forward = {0, 1, 2, 3}, .head = 4, .backward = {7, 6, 5, 4}, .last = 8};
    static const struct offsets six = {.forward = {0, 0, 1, 1},
                                       .head = 2,
                                       .backward = {5, 4, 3, 2},
                                       .last = 6,
                                       .backward_first = {false, true, false, true}};
    struct order_case x = {
        .n_layers = 6,
        .layers = {{1, 0}, {0.25, 0.5}, {0.25, 0.5}, {0.25, 0.5}, {0.25, 0.5}, {0, 2}}};
    double before_ms = 0;
    for (int m = 8; m <= 24; m += 4) {
        x.batch = 4 * m;
        char *plan = blocks_on_all(m, &eight), *shorter = blocks_on_all(m, &six);
        double ms = time_ms(&x, plan), six_ms = time_ms(&x, shorter);
        assert_true(fabs(ms - (6 * m + 9)) < 1e-6);
        assert_true(m == 8 || fabs(six_ms - before_ms - 4 * 6) < 1e-6);
        before_ms = six_ms;
        free(plan);
        free(shorter);
    }
}

/* ---- random orders ------------------------------------------------------------------------------
 */

/** A random chain on random devices, one of which at least has two stages. Numbers devices in the
 * order of first mention. */
static void draw_plan(struct hv_rng *r, struct shared *x, struct order_case *c)
{
    bool on[STAGES][RESOURCES], shares = false;
    int32_t number[RESOURCES], n = 0;
    while (!shares) {
        int32_t users[RESOURCES] = {0};
        memset(on, 0, sizeof on);
        *x = (struct shared){.p = 2 + (int32_t)hv_rng_below(r, STAGES - 1),
                             .m = 1 + (int32_t)hv_rng_below(r, MB)};
        for (int32_t s = 0; s < x->p; s++) {
            on[s][hv_rng_below(r, RESOURCES)] = true;
            for (int32_t q = 0; q < RESOURCES; q++) {
                on[s][q] = on[s][q] || hv_rng_below(r, 3) == 0;
                shares = shares || (on[s][q] && users[q] > 0);
                users[q] += on[s][q];
            }
        }
    }
    memset(number, 0xff, sizeof number);
    *c = (struct order_case){.n_layers = x->p, .batch = 12 * x->m};
    for (int32_t s = 0; s < x->p; s++) {
        int32_t k = 0;
        for (int32_t q = 0; q < RESOURCES; q++) {
            if (on[s][q]) {
                k++;
                number[q] = number[q] < 0 ? n++ : number[q];
                x->on[s][number[q]] = true;
            }
        }
        c->layers[s] = (struct layer){some(r, 0, 2), some(r, 0, 2)};
        x->takes[s][HV_OP_F] = c->layers[s].forward_ms * 12 / k;
        x->takes[s][HV_OP_BW] = c->layers[s].backward_ms * 12 / k;
        x->feeds[s > 0 ? s - 1 : 0][s] = s > 0;
    }
    x->n_resources = n;
}

/** The plan of a random case: device q of its lists is a[q].0. */
static char *plan_of(const struct shared *x)
{
    struct hv_str s = {0};
    hv_str_addf(&s, "\"micro_batch\":12,\"replicas\":[{\"micro_batches\":%d,\"stages\":[", x->m);
    for (int32_t i = 0; i < x->p; i++) {
        int32_t k = 0;
        hv_str_addf(&s, "%s{\"devices\":[", i > 0 ? "," : "");
        for (int32_t q = 0; q < x->n_resources; q++) {
            if (x->on[i][q]) {
                hv_str_addf(&s, "%s\"a[%d].0\"", k++ > 0 ? "," : "", q);
            }
        }
        hv_str_addf(&s, "],\"layers\":[%d,%d],\"dp\":%d}", i, i + 1, k);
    }
    hv_str_adds(&s, "]}],\"schedule\":{\"name\":\"explicit\",\"order\":[");
    for (int32_t q = 0; q < x->n_resources; q++) {
        hv_str_adds(&s, q > 0 ? ",[" : "[");
        for (int32_t i = 0; i < x->n[q]; i++) {
            const struct hv_op *op = &x->list[q][i];
            add_token(&s, op->kind == HV_OP_F ? "F" : "BW", op->stage, op->mb, x->m);
        }
        hv_str_adds(&s, "]");
    }
    hv_str_adds(&s, "]}");
    char *text = strdup(hv_str_cstr(&s));
    hv_str_free(&s);
    return text;
}

/** The judge plays any legal order as the naive player does. */
static void legal_orders_are_judged(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 20);
    for (int i = 0; i < 400; i++) {
        struct shared x;
        struct order_case c;
        draw_plan(&r, &x, &c);
        draw_order(&r, &x);
        char *plan = plan_of(&x);
        double ms = time_ms(&c, plan), want = play(&x);
        if (fabs(ms - want) > 1e-9 * (1 + want)) {
            fail_msg("case %d: %.9g ms instead of %.9g: %s", i, ms, want, plan);
        }
        free(plan);
    }
}

/* ---- copies of a pipeline
 * ------------------------------------------------------------------------
 */

/** Two copies of two stages of 1 + 2 ms, four micro-batches: one takes 4 · 6 ms on one device, the
 * other (4 + 1) · 3 ms on two. They are unlike, whichever comes first, also inside a node. */
static void copies_that_share_and_that_do_not(void **state)
{
    (void)state;
    static const char *const second[] = {"0\",\"a[0].1", "0\",\"a[0].2", "2\",\"a[0].1"};
    for (size_t i = 0; i < HV_COUNT(second); i++) {
        char plan[512];
        const struct order_case x = {
            .n_layers = 2, .batch = 8, .layers = {{1, 2}, {1, 2}}, .one_node = true};
        (void)snprintf(plan, sizeof plan,
                       "\"micro_batch\":1,\"replicas\":[{\"count\":2,\"micro_batches\":4,"
                       "\"stages\":[{\"devices\":\"a[0].0-1\",\"layers\":[0,1]},{\"devices\":"
                       "[\"a[0].%s\"],\"layers\":[1,2]}]}],\"schedule\":{\"name\":\"graphpipe\"}",
                       second[i]);
        assert_true(fabs(time_ms(&x, plan) - 24) < 1e-6);
    }
}

/** A device in two copies is in two pipelines, whose operations no schedule orders. */
static void copies_share_nothing(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct world w;
    const struct order_case x = {.n_layers = 2, .batch = 8, .layers = {{1, 2}, {1, 2}}};
    open_case(&w, &x);
    struct hv_verdict v =
        judge(&w, &a, false,
              "\"micro_batch\":1,\"replicas\":[{\"count\":2,\"micro_batches\":4,\"stages\":["
              "{\"devices\":[\"a[0].0\",\"a[1].0\"],\"layers\":[0,1]},{\"devices\":[\"a[1].0\","
              "\"a[0].0\"],\"layers\":[1,2]}]}],\"schedule\":{\"name\":\"graphpipe\"}");
    assert_int_equal(v.findings.n, 1);
    assert_int_equal(v.findings.items[0].code, HV_V_DEVICES_OVERLAP);
    assert_true(v.findings.items[0].by == 2);
    close_world(&w);
    hv_arena_free(&a);
}

/* ---- what is refused ----------------------------------------------------------------------------
 */

/** Two stages of one layer, the first on two devices, the second on the last of them. */
static void bad_orders_are_findings(void **state)
{
    (void)state;
    static const struct {
        const char *order;
        enum hv_violation_code code;
        const char *says;
    } cases[] = {
        {"[\"F0.0\",\"BW0.0\"],[\"F0.0\",\"F1.0\",\"BW1.0\"]", HV_V_SCHEDULE_NEEDS,
         "order[0][1], BW0.0: lists 0 and 1 do not agree from here on"},
        {"[\"F0.0\",\"F1.0\",\"BW1.0\",\"BW0.0\"]", HV_V_SCHEDULE_NEEDS,
         "needs one order per device (2, in the order in which the stages name them first), as "
         "stages share devices, or one per stage (2); the plan has 1"},
        {"[\"F0.0\",\"F1.0\",\"BW0.0\"],[\"F0.0\",\"F1.0\",\"BW1.0\",\"BW0.0\"]",
         HV_V_SCHEDULE_NEEDS, "order[0][1], F1.0: its stage does not run there"},
        {"[\"F0.0\",\"BW0.0\"],[\"F1.0\",\"F0.0\",\"BW1.0\",\"BW0.0\"]", HV_V_ORDER_DEADLOCK,
         "rank 0 stops at F0.0, waiting for F1.0 of rank 1"},
        {"[\"F0.0\",\"F0.0\",\"BW0.0\"],[\"F0.0\",\"F0.0\",\"F1.0\",\"BW1.0\",\"BW0.0\"]",
         HV_V_SCHEDULE_NEEDS, "F0.0 occurs twice"},
        {"[],[\"F1.0\",\"BW1.0\"]", HV_V_SCHEDULE_NEEDS,
         "waits for F0.0, which is not in the order"},
        {"[],[]", HV_V_SCHEDULE_NEEDS, "the order has 0 forwards"},
    };
    const struct order_case x = {.n_layers = 2, .batch = 2, .layers = {{1, 2}, {1, 2}}};
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        struct world w;
        open_case(&w, &x);
        const char *plan = hv_arena_printf(
            &a,
            "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":"
            "\"a[0-1].0\",\"layers\":[0,1],\"dp\":2},{\"devices\":\"a[1].0\",\"layers\":"
            "[1,2]}]}],\"schedule\":{\"name\":\"explicit\",\"order\":[%s]}",
            cases[i].order);
        struct hv_verdict v = judge(&w, &a, false, plan);
        assert_false(hv_known(v.metrics.iteration_s));
        assert_int_equal(v.findings.n, 1);
        const struct hv_violation *f = &v.findings.items[0];
        if (f->code != cases[i].code || strstr(f->text, cases[i].says) == NULL ||
            strcmp(f->where, "schedule.order") != 0) {
            fail_msg("case %zu: %s: %s", i, f->where, f->text);
        }
        close_world(&w);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_on_several_devices),
        cmocka_unit_test(legal_orders_are_judged),
        cmocka_unit_test(copies_that_share_and_that_do_not),
        cmocka_unit_test(copies_share_nothing),
        cmocka_unit_test(bad_orders_are_findings),
    };
    return cmocka_run_group_tests_name("eval_explicit", tests, NULL, NULL);
}
