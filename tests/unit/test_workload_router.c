/* Routing files, and the tokens that they send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
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
/* What goes to the owners of experts, added up at once, is the sum of the tokens one by one; traces
 * with an odd number of sources per rank, of parts of tokens, or with rows of unlike experts are
 * left to those. */
static void test_sent_to_owners(void **state)
{
    (void)state;
    enum { SOURCES = 12, EXPERTS = 11, LAYERS = 3, ITERATIONS = 2 };
    uint16_t counts[ITERATIONS * LAYERS * SOURCES * EXPERTS];
    struct hv_router r = {.kind = HV_ROUTER_TRACE,
                          .iterations = ITERATIONS,
                          .layers = LAYERS,
                          .sources = SOURCES,
                          .experts = EXPERTS,
                          .counts = counts};
    struct hv_rng g;
    hv_rng_seed(&g, 20);
    for (int i = 0; i < 300; i++) {
        uint32_t owner[EXPERTS];
        double tokens[SOURCES * EXPERTS], sent[SOURCES * SOURCES];
        for (size_t k = 0; k < HV_COUNT(counts); k++) {
            counts[k] = (uint16_t)(i % 7 == 0 ? 0 : hv_rng_below(&g, i % 2 == 0 ? 9 : 65536));
        }
        size_t of = 1 + (size_t)hv_rng_below(&g, SOURCES);
        for (size_t e = 0; e < EXPERTS; e++) {
            owner[e] = i % 3 == 0 ? (uint32_t)(e * of / EXPERTS) : (uint32_t)hv_rng_below(&g, of);
        }
        struct hv_router_at at = {.iteration = (size_t)hv_rng_below(&g, 5),
                                  .layer = (size_t)hv_rng_below(&g, LAYERS),
                                  .experts = EXPERTS,
                                  .top_k = 1,
                                  .first = (size_t)hv_rng_below(&g, of),
                                  .of = of};
        at.sources = 1 + (size_t)hv_rng_below(&g, of);
        sent[0] = -1;
        bool added = hv_router_sent(&r, &at, owner, of, sent);
        assert_int_equal(added, SOURCES % of == 0);
        if (!added) {
            assert_true(sent[0] < 0);
            continue;
        }
        hv_router_tokens(&r, &at, tokens);
        for (size_t s = 0; s < at.sources; s++) {
            for (size_t rank = 0; rank < of; rank++) {
                double want = 0;
                for (size_t e = 0; e < EXPERTS; e++) {
                    want += owner[e] == rank ? tokens[s * EXPERTS + e] : 0;
                }
                near(sent[s * of + rank], want);
            }
        }
    }
    struct hv_router_at other = {.experts = EXPERTS + 1, .sources = 1, .of = 1};
    double none;
    const uint32_t owner[EXPERTS + 1] = {0};
    assert_false(hv_router_sent(&r, &other, owner, 1, &none));
    assert_false(hv_router_sent(NULL, &other, owner, 1, &none));
}

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

/* ---- files ---------------------------------------------------------------------------------- */

enum { TIMES = 3, LAYERS = 2, SOURCES = 4, EXPERTS = 70 };

/* Reads a text as a file, whose counts are taken as they are read, and as a tree: both say the
 * same, token by token, or the same error at the same place. Returns whether the file became 16-bit
 * counts, which a tree never does. */
static bool assert_read_alike(const char *text)
{
    char path[] = "/tmp/hetviz-routing-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    struct read tree = {0};
    struct hv_arena arena = {0};
    struct hv_err err = {0};
    const struct hv_router *r = NULL;
    enum hv_status want = hv_json_parse(&tree.json, text, strlen(text), path, &tree.err);
    if (want == HV_OK) {
        struct hv_jp root = hv_jp_root(&tree.json);
        want = hv_routing_build(&root, true, &tree.arena, &tree.r, &tree.err);
    }
    enum hv_status got = hv_routing_load(path, &arena, &r, &err);
    (void)unlink(path);
    if (got != want || strcmp(err.text, tree.err.text) != 0 || err.line != tree.err.line ||
        err.col != tree.err.col) {
        fail_msg("%.200s: %u:%u %s, as a tree %u:%u %s", text, err.line, err.col, err.text,
                 tree.err.line, tree.err.col, tree.err.text);
    }
    for (size_t i = 0; got == HV_OK && i < r->iterations * r->layers; i++) {
        double a[SOURCES * EXPERTS], b[SOURCES * EXPERTS];
        struct hv_router_at at = {.iteration = i / r->layers,
                                  .layer = i % r->layers,
                                  .experts = EXPERTS,
                                  .top_k = 1,
                                  .sources = SOURCES,
                                  .of = SOURCES};
        hv_router_tokens(r, &at, a);
        hv_router_tokens(tree.r, &at, b);
        assert_memory_equal(a, b, sizeof a);
    }
    bool counts = got == HV_OK && r->counts != NULL;
    hv_arena_free(&arena);
    done(&tree);
    return counts;
}

/* How a random trace is written. */
enum form { LISTS, OBJECTS, ENTRIES };

/* A trace; `large`: of 1,000 numbers one that 16 bits do not hold, or that is not whole. Entries
 * are in no order. */
static void write_trace(struct hv_str *out, enum form form, bool large, bool blanks,
                        struct hv_rng *r)
{
    const char *comma = blanks ? " ,\n  " : ",";
    hv_str_adds(out, "{\"format\": \"hetviz.routing/1\", \"kind\":\"trace\",\"counts\": [");
    for (int row = 0; row < TIMES * LAYERS * SOURCES; row++) {
        bool source = row % SOURCES == 0, layer = row % (SOURCES * LAYERS) == 0;
        if (form != ENTRIES) {
            hv_str_addf(out, "%s%s%s%c", row > 0 ? comma : "", layer ? "[" : "", source ? "[" : "",
                        form == LISTS ? '[' : '{');
        }
        int n = 0;
        for (int e = 0; e < EXPERTS; e++) {
            uint64_t x = hv_rng_below(r, 12) * hv_rng_below(r, 400);
            int at = form == ENTRIES ? (e * 31 + row) % EXPERTS : e;
            int who = form == ENTRIES ? (row * 5) % (TIMES * LAYERS * SOURCES) : row;
            if (form != LISTS && (x == 0 || hv_rng_below(r, 3) == 0)) {
                continue;
            }
            const char *gap =
                n++ > 0 || (form == ENTRIES && row > 0 && out->p[out->n - 1] == ']') ? comma : "";
            if (form == ENTRIES) {
                hv_str_addf(out, "%s[%d,%d, %d,%d,", gap, who / (LAYERS * SOURCES),
                            who / SOURCES % LAYERS, who % SOURCES, at);
            } else {
                hv_str_adds(out, gap);
            }
            if (form == OBJECTS) {
                hv_str_addf(out, "\"%d\": ", at);
            }
            bool odd = large && hv_rng_below(r, 1000) == 0;
            hv_str_addf(out, odd ? "%llu.125e2" : "%llu", (unsigned long long)x);
            hv_str_adds(out, form == ENTRIES ? "]" : "");
        }
        if (form != ENTRIES) {
            hv_str_addf(out, "%c%s%s", form == LISTS ? ']' : '}',
                        (row + 1) % SOURCES == 0 ? "]" : "",
                        (row + 1) % (SOURCES * LAYERS) == 0 ? "]" : "");
        }
    }
    hv_str_addf(out,
                "],\"x-note\": {\"a\": [\"}]\\\"\", 1]}, \"iterations\": %d, \"layers\": %d, "
                "\"sources\": %d, \"experts\": %d}\n",
                TIMES, LAYERS, SOURCES, EXPERTS);
}

static void test_long_files(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    for (int i = 0; i < 48; i++) {
        struct hv_str text = {0};
        bool large = i / 3 % 2 == 1;
        write_trace(&text, (enum form)(i % 3), large, i / 6 % 2 == 1, &r);
        bool counts = assert_read_alike(hv_str_cstr(&text));
        assert_true(counts == (i % 3 != ENTRIES) || large);
        /* the same with a wrong byte somewhere says what is wrong */
        size_t at = (size_t)hv_rng_below(&r, text.n);
        text.p[at] = "x,]}[\"-. 5"[hv_rng_below(&r, 10)];
        (void)assert_read_alike(hv_str_cstr(&text));
        text.n = (size_t)hv_rng_below(&r, text.n); /* or cut off */
        text.p[text.n] = '\0';
        (void)assert_read_alike(hv_str_cstr(&text));
        hv_str_free(&text);
    }
}

/* Files at the edges of what is read without a tree. */
static void test_odd_files(void **state)
{
    (void)state;
#define TRACE "{\"format\":\"hetviz.routing/1\",\"kind\":\"trace\","
    static const char *const texts[] = {
        "",
        "{}",
        "[1]",
        "{\"format\":\"hetviz.routing/1\",\"kind\":\"uniform\"}",
        "{\"format\":\"hetviz.routing/1\",\"kind\":\"zipf\",\"counts\":[[[[1]]]]}",
        TRACE "\"counts\":[]}",
        TRACE "\"counts\":[[[[]]]]}",
        TRACE "\"counts\":[[[[1,2],[3]]]]}",
        TRACE "\"counts\":[[[[1,2]],[[3,4],[5,6]]]]}",
        TRACE "\"counts\":[[[[1,2]]]],\"counts\":[[[[1,2]]]]}",
        TRACE "\"counts\":[[[[1,2]]]],\"layers\":2}",
        TRACE "\"counts\":[[[[1,2]]]],\"experts\":3}",
        TRACE "\"counts\":[[[[1,2]]]],\"iterations\":1 1}",
        TRACE "\"counts\":[[[[1,2]]]],\"more\":2}",
        TRACE "\"counts\":[[[[01,2]]]]}",
        TRACE "\"counts\":[[[[1,2,]]]]}",
        TRACE "\"counts\":[[[[1,-2]]]]}",
        TRACE "\"counts\":[[[[1,2e13]]]]}",
        TRACE "\"counts\":[[[[1,null]]]]}",
        TRACE "\"counts\":[[[{\"0\":1}]]]}",
        TRACE "\"experts\":70,\"counts\":[[[{\"0\":1,\"0\":2}]]]}",
        TRACE "\"experts\":70,\"counts\":[[[{\"0\":1,\"00\":2}]]]}",
        TRACE "\"experts\":70,\"counts\":[[[{\"70\":1}]]]}",
        TRACE "\"experts\":70,\"counts\":[[[{},{\"69\":1}]]]}",
        TRACE "\"experts\":2,\"counts\":[[[{\"0\":1},[1,2]]]]}",
        TRACE "\"experts\":2,\"counts\":[[[[1,2],{\"0\":1}]]]}",
        TRACE "\"iterations\":1,\"layers\":1,\"sources\":1,\"experts\":70,\"counts\":[]}",
        TRACE "\"iterations\":1,\"layers\":1,\"sources\":1,\"experts\":70,\"counts\":"
              "[[0,0,0,3,5],[0,0,0,3,0.5],[0,0,0,1,0]]}",
        TRACE "\"iterations\":1,\"layers\":1,\"sources\":1,\"experts\":70,\"counts\":"
              "[[0,0,0,3,5],[0,0,1,3,5]]}",
        TRACE "\"iterations\":1,\"layers\":1,\"sources\":1,\"experts\":70,\"counts\":"
              "[[0,0,0,3]]}",
        TRACE "\"counts\":[[0,0,0,3,5]]}",
        TRACE "\" counts\":[[[[1,2]]]]}",
        TRACE "\"counts\":[[[[1,2]]]]} x",
    };
#undef TRACE
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        (void)assert_read_alike(texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf),           cmocka_unit_test(test_no_expert_twice),
        cmocka_unit_test(test_drift),          cmocka_unit_test(test_trace),
        cmocka_unit_test(test_sent_to_owners), cmocka_unit_test(test_drops_by_source),
        cmocka_unit_test(test_errors),         cmocka_unit_test(test_long_files),
        cmocka_unit_test(test_odd_files),
    };
    return cmocka_run_group_tests_name("workload_router", tests, NULL, NULL);
}
