/* Routing files, and the tokens that they send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/own/routing_file.h"

struct read {
    struct hv_arena arena;
    struct hv_json json;
    const struct hv_router *r;
    struct hv_err err;
};

static enum hv_status read_text(struct read *x, const char *text)
{
    *x = (struct read){0};
    assert_int_equal(hv_json_parse(&x->json, text, strlen(text), "r.json", &x->err), HV_OK);
    struct hv_jp root = hv_jp_root(&x->json);
    return hv_routing_build(&root, false, &x->arena, &x->r, &x->err);
}

static void done(struct read *x)
{
    hv_json_free(&x->json);
    hv_arena_free(&x->arena);
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(fabs(want), 1e-3))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

/* Shares in proportion to 1, 1/2, 1/3, 1/4 at skew 1; expert 0 is the most popular one. */
static void test_zipf(void **state)
{
    (void)state;
    struct read x;
    double out[8];
    assert_int_equal(read_text(&x, "{\"kind\": \"zipf\", \"skew\": 1}"), HV_OK);
    struct hv_router_at at = {.experts = 4, .top_k = 1, .sources = 2, .of = 2};
    hv_router_tokens(x.r, &at, out);
    for (size_t i = 0; i < 8; i++) {
        near(out[i], 12.0 / 25 / (double)(i % 4 + 1));
    }
    /* 12, 6, 4 and 3 of 25 tokens, of which 3.5 find a place at each expert */
    near(hv_router_dropped(x.r, &at, 0.14), (12.0 + 6 + 4 - 3 * 3.5) / 25);
    assert_true(hv_router_class(x.r, 0, 0) == hv_router_class(x.r, 9, 7));
    done(&x);
}

/* A token goes to two different experts, so none gets more than half of all copies. */
static void test_no_expert_twice(void **state)
{
    (void)state;
    struct read x;
    double out[4];
    assert_int_equal(read_text(&x, "{\"kind\": \"zipf\", \"skew\": 4}"), HV_OK);
    struct hv_router_at at = {.experts = 4, .top_k = 2, .sources = 1, .of = 1};
    hv_router_tokens(x.r, &at, out);
    near(out[0], 0.5);
    near(out[0] + out[1] + out[2] + out[3], 1);
    assert_true(out[1] > out[2] && out[2] > out[3]);
    done(&x);
}

/* Drift changes iterations, correlation below 1 changes layers; the same seed gives the same. */
static void test_drift(void **state)
{
    (void)state;
    struct read x, y;
    double a[16], b[16];
    static const char text[] = "{\"kind\": \"zipf\", \"skew\": 1.2, \"drift\": 0.3, "
                               "\"correlation\": 0.5, \"seed\": 7, \"iterations\": 8}";
    assert_int_equal(read_text(&x, text), HV_OK);
    assert_int_equal(read_text(&y, text), HV_OK);
    assert_int_equal(x.r->iterations, 8);
    int moved = 0, apart = 0;
    for (size_t t = 0; t < 8; t++) {
        struct hv_router_at at = {
            .iteration = t, .layer = 1, .experts = 16, .top_k = 1, .sources = 1, .of = 1};
        hv_router_tokens(x.r, &at, a);
        hv_router_tokens(y.r, &at, b);
        assert_memory_equal(a, b, sizeof a);
        at.layer = 2;
        hv_router_tokens(x.r, &at, b);
        apart += memcmp(a, b, sizeof a) != 0;
        at.layer = 1;
        at.iteration = t + 1;
        hv_router_tokens(x.r, &at, b);
        moved += memcmp(a, b, sizeof a) != 0;
    }
    assert_true(moved >= 6 && apart >= 6);
    done(&x);
    done(&y);
}

static const char *const same[] = {
    "{\"kind\": \"trace\", \"counts\": [[[[3, 1, 0], [1, 0, 3]], [[0, 4, 0], [0, 0, 4]]]]}",
    "{\"kind\": \"trace\", \"experts\": 3, \"counts\": [[[{\"0\": 3, \"1\": 1}, {\"2\": 3, "
    "\"0\": 1}], [{\"1\": 4}, {\"2\": 4}]]]}",
    "{\"kind\": \"trace\", \"iterations\": 1, \"layers\": 2, \"sources\": 2, \"experts\": 3, "
    "\"counts\": [[0, 0, 1, 2, 3], [0, 1, 0, 1, 4], [0, 0, 0, 0, 3], [0, 0, 0, 1, 1], "
    "[0, 0, 1, 0, 1], [0, 1, 1, 2, 4]]}",
};

/* The three ways to write counts say the same. */
static void test_trace(void **state)
{
    (void)state;
    static const double want[] = {3, 1, 0, 1, 0, 3};
    for (size_t k = 0; k < HV_COUNT(same); k++) {
        struct read x;
        double out[12];
        assert_int_equal(read_text(&x, same[k]), HV_OK);
        struct hv_router_at at = {.experts = 3, .top_k = 1, .sources = 2, .of = 2};
        hv_router_tokens(x.r, &at, out);
        for (size_t i = 0; i < 6; i++) {
            near(out[i], want[i] / 4);
        }
        /* four ranks: each source is two of them; one rank: both sources */
        at.sources = at.of = 4;
        hv_router_tokens(x.r, &at, out);
        for (size_t i = 0; i < 12; i++) {
            near(out[i], want[i / 6 * 3 + i % 3] / 4);
        }
        at.sources = at.of = 1;
        hv_router_tokens(x.r, &at, out);
        near(out[0], 0.5);
        near(out[2], 0.375);
        at = (struct hv_router_at){.layer = 1, .experts = 3, .sources = 1, .first = 1, .of = 2};
        hv_router_tokens(x.r, &at, out);
        near(out[2], 1);
        at.experts = 4; /* not the model of the trace */
        hv_router_tokens(x.r, &at, out);
        assert_false(hv_known(out[0]));
        done(&x);
    }
}

/* The capacity holds for each source and expert, not for the sum. */
static void test_drops_by_source(void **state)
{
    (void)state;
    struct read x;
    assert_int_equal(read_text(&x, "{\"kind\": \"trace\", \"counts\": [[[[4, 0], [0, 4]]]]}"),
                     HV_OK);
    struct hv_router_at at = {.experts = 2, .top_k = 1, .of = 2};
    near(hv_router_dropped(x.r, &at, 0.5), 0.5);
    near(hv_router_dropped(x.r, &at, 1), 0);
    done(&x);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"{\"kind\": \"even\"}", "kind"},
        {"{\"skew\": 1}", "kind"},
        {"{\"kind\": \"uniform\", \"skew\": 1}", "skew"},
        {"{\"kind\": \"zipf\", \"skew\": -1}", "skew"},
        {"{\"kind\": \"zipf\", \"drift\": 2}", "drift"},
        {"{\"kind\": \"trace\"}", "counts"},
        {"{\"kind\": \"trace\", \"counts\": []}", "iterations"},
        {"{\"kind\": \"trace\", \"counts\": [[[[1, 2]], [[1]]]]}", "2 experts"},
        {"{\"kind\": \"trace\", \"counts\": [[[[1, -2]]]]}", "counts[0][0][0][1]"},
        {"{\"kind\": \"trace\", \"counts\": [[[{\"0\": 1}]]]}", "experts"},
        {"{\"kind\": \"trace\", \"experts\": 2, \"counts\": [[[{\"2\": 1}]]]}", "0 to 1"},
        {"{\"kind\": \"trace\", \"counts\": [[0, 0, 0, 0, 1]]}", "iterations"},
        {"{\"kind\": \"trace\", \"iterations\": 1, \"layers\": 1, \"sources\": 1, \"experts\": 1, "
         "\"counts\": [[0, 0, 0, 1, 1]]}",
         "counts[0][3]"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct read x;
        assert_int_equal(read_text(&x, rows[i].text), HV_EINPUT);
        if (!strstr(x.err.text, rows[i].says)) {
            fail_msg("%s: %s", rows[i].text, x.err.text);
        }
        assert_true(x.err.line > 0);
        done(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_no_expert_twice),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_drops_by_source),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("workload_router", tests, NULL, NULL);
}
