/* Orders written out per resource, where stages share resources: every time against a naive player
 * of the lists, deadlocks found where it stops, and a case worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "tests/explicit_fixture.h"

/* ---- the simulator ----------------------------------------------------------------------------
 */

/* what hv_schedule_make and hv_pipe_compile say of the lists; on HV_OK the run is in `out` */
static enum hv_status simulate(const struct shared *x, struct fixture *out, struct hv_err *err)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    *out = (struct fixture){0};
    struct hv_arena *a = &out->a;
    struct hv_order_text text[RESOURCES];
    int32_t at[STAGES + 1] = {0}, resource[STAGES * RESOURCES];
    int32_t from[STAGES * STAGES], to[STAGES * STAGES];
    struct hv_stage_graph graph = {0, from, to};
    for (int32_t q = 0; q < x->n_resources; q++) {
        const char **tokens = hv_arena_new(a, const char *, LONGEST);
        for (int32_t i = 0; i < x->n[q]; i++) {
            char *token = hv_arena_new(a, char, HV_OP_TOKEN_CAP);
            tokens[i] = hv_op_format(&x->list[q][i], token, HV_OP_TOKEN_CAP);
        }
        text[q] = (struct hv_order_text){tokens, (size_t)x->n[q]};
    }
    for (int32_t s = 0; s < x->p; s++) {
        at[s + 1] = at[s];
        for (int32_t q = 0; q < x->n_resources; q++) {
            if (x->on[s][q]) {
                resource[at[s + 1]++] = q;
            }
        }
        for (int32_t o = s + 1; o < x->p; o++) {
            if (x->feeds[s][o]) {
                from[graph.n_edges] = s;
                to[graph.n_edges++] = o;
            }
        }
    }
    struct hv_rank_resources on = {x->n_resources, at, resource};
    assert_int_equal(hv_schedule_find("explicit", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, x->p, x->m);
    in.order = text;
    in.resources = &on;
    in.order_per_resource = true;
    in.graph = &graph;
    enum hv_status st = hv_schedule_make(a, &in, &out->s, err);
    st = st == HV_OK ? hv_pipe_compile(a, &out->s, &out->g, err) : st;
    if (st != HV_OK) {
        return st;
    }
    double *hops = hv_arena_new(a, double, (size_t)out->g.n_hops + 1);
    for (int32_t i = 0; i < graph.n_edges; i++) {
        hops[hv_pipe_hop(&out->g, false, 0, i)] = x->hop_s[from[i]][to[i]];
        hops[hv_pipe_hop(&out->g, true, 0, i)] = x->hop_s[from[i]][to[i]];
    }
    out->stage_s = hv_arena_new(a, double, STAGES *HV_OP_KIND_N);
    memcpy(out->stage_s, x->takes, sizeof x->takes);
    out->cost = (struct hv_pipe_cost){.stage_s = out->stage_s, .hop_s = hops};
    hv_pipe_run_new(a, &out->g, &out->run);
    hv_pipe_time(&out->g, &out->cost, &out->run);
    return st;
}

/* ---- random cases ------------------------------------------------------------------------------
 */

/* stages on some of the resources, in a chain or a graph, with times that are multiples of 1/8 */
static void draw_pipeline(struct hv_rng *r, struct shared *x)
{
    *x = (struct shared){.p = 2 + (int32_t)hv_rng_below(r, STAGES - 1),
                         .m = 1 + (int32_t)hv_rng_below(r, MB),
                         .n_resources = 1 + (int32_t)hv_rng_below(r, RESOURCES),
                         .split = hv_rng_below(r, 2) == 1};
    bool chain = hv_rng_below(r, 2) == 1;
    for (int32_t s = 0; s < x->p; s++) {
        x->on[s][hv_rng_below(r, (uint64_t)x->n_resources)] = true;
        for (int32_t q = 0; q < x->n_resources; q++) {
            x->on[s][q] = x->on[s][q] || hv_rng_below(r, 3) == 0;
        }
        x->takes[s][HV_OP_F] = some(r, 0, 3);
        x->takes[s][HV_OP_B] = some(r, 0, 3);
        x->takes[s][HV_OP_W] = some(r, 0, 3);
        x->takes[s][HV_OP_BW] = x->takes[s][HV_OP_B] + x->takes[s][HV_OP_W];
        for (int32_t o = s + 1; o < x->p; o++) {
            x->feeds[s][o] =
                o == s + 1 ? chain || hv_rng_below(r, 2) == 1 : !chain && hv_rng_below(r, 3) == 0;
            x->hop_s[s][o] = hv_rng_below(r, 2) == 1 ? some(r, 0, 2) : 0;
        }
    }
}

/* the players agree on any legal order */
static void legal_orders_are_played(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 20);
    for (int i = 0; i < 3000; i++) {
        struct shared x;
        struct fixture f;
        struct hv_err err = {0};
        draw_pipeline(&r, &x);
        draw_order(&r, &x);
        if (simulate(&x, &f, &err) != HV_OK) {
            fail_msg("case %d: %s", i, err.text);
        }
        double want = play(&x);
        if (!is_near(f.run.makespan_s, want)) {
            fail_msg("case %d: %g instead of %g", i, f.run.makespan_s, want);
        }
        hv_arena_free(&f.a);
    }
}

/* Two neighbours in one list change places: the naive player stops, or both play the same. Lists of
 * a stage that no longer agree are refused before. */
static void swapped_orders_stop_or_agree(void **state)
{
    (void)state;
    struct hv_rng r;
    int played = 0, stopped = 0, unequal = 0;
    hv_rng_seed(&r, 21);
    for (int i = 0; i < 3000; i++) {
        struct shared x;
        struct fixture f;
        struct hv_err err = {0};
        draw_pipeline(&r, &x);
        draw_order(&r, &x);
        int32_t q = (int32_t)hv_rng_below(&r, (uint64_t)x.n_resources);
        for (int k = 0; k < 3 && x.n[q] > 1; k++) {
            int32_t at = (int32_t)hv_rng_below(&r, (uint64_t)x.n[q] - 1);
            struct hv_op op = x.list[q][at];
            x.list[q][at] = x.list[q][at + 1];
            x.list[q][at + 1] = op;
        }
        enum hv_status st = simulate(&x, &f, &err);
        double want = play(&x);
        played += st == HV_OK;
        stopped += st == HV_ENO;
        unequal += st == HV_EINPUT;
        if ((st == HV_OK) != (want < HUGE_VAL)) {
            fail_msg("case %d: %s, the lists play %g", i, err.text, want);
        }
        if (st == HV_EINPUT && strstr(err.text, "do not agree") == NULL) {
            fail_msg("case %d: %s", i, err.text);
        }
        assert_true(st != HV_OK || is_near(f.run.makespan_s, want));
        hv_arena_free(&f.a);
    }
    assert_true(played > 300 && stopped > 300 && unequal > 300);
}

/* ---- by hand ------------------------------------------------------------------------------------
 */

static void add(struct shared *x, int32_t resource, uint8_t kind, int32_t stage, int32_t mb)
{
    if (mb >= 0 && mb < x->m) {
        x->list[resource][x->n[resource]++] =
            (struct hv_op){.kind = kind, .slice = -1, .stage = stage, .mb = mb, .group = -1};
    }
}

/* Two stages on one resource, two micro-batches of 1 + 2 each: 12 in any order. One after the other
 * or alternating, the first stage has another number in flight. */
static void one_resource(void **state)
{
    (void)state;
    struct shared x = {.p = 2, .m = 2, .n_resources = 1};
    struct fixture f;
    for (int s = 0; s < 2; s++) {
        x.on[s][0] = true;
        x.takes[s][HV_OP_F] = 1;
        x.takes[s][HV_OP_BW] = 2;
    }
    x.feeds[0][1] = true;
    for (int deep = 1; deep <= 2; deep++) {
        int32_t in_flight[2];
        x.n[0] = 0;
        for (int32_t first = 0; first < 2; first += deep) {
            for (int32_t i = first; i < first + deep; i++) {
                add(&x, 0, HV_OP_F, 0, i);
            }
            for (int32_t i = first; i < first + deep; i++) {
                add(&x, 0, HV_OP_F, 1, i);
                add(&x, 0, HV_OP_BW, 1, i);
                add(&x, 0, HV_OP_BW, 0, i);
            }
        }
        assert_int_equal(simulate(&x, &f, NULL), HV_OK);
        NEAR(f.run.makespan_s, 12);
        NEAR(f.run.makespan_s, play(&x));
        hv_schedule_peak_inflight(&f.s, in_flight);
        assert_true(in_flight[0] == deep && in_flight[1] == 1);
        hv_arena_free(&f.a);
    }
}

/* ---- what is refused ----------------------------------------------------------------------------
 */

/* stage 0 on both resources, stage 1 on the second; one micro-batch */
static void bad_lists_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *tokens[2][6];
        enum hv_status st;
        const char *says;
    } cases[] = {
        {{{"F0.0", "BW0.0"}, {"F0.0", "F1.0", "BW1.0", "BW0.0"}}, HV_OK, ""},
        {{{"F0.0", "F1.0", "BW0.0"}, {"F0.0", "F1.0", "BW1.0", "BW0.0"}},
         HV_EINPUT,
         "order[0][1], F1.0: its stage does not run there"},
        {{{"F0.0", "BW0.0"}, {"F0.0", "F1.0", "BW1.0"}},
         HV_EINPUT,
         "order[0][1], BW0.0: lists 0 and 1 do not agree from here on"},
        {{{"F0.0"}, {"F0.0", "F1.0", "BW1.0", "BW0.0"}},
         HV_EINPUT,
         "order[1][3], BW0.0: lists 0 and 1 do not agree from here on"},
        {{{"F0.0", "BW0.0"}, {"F0.0", "F1.0", "{BW1.0|BW0.0}"}},
         HV_EINPUT,
         "order[1][2], BW0.0: operations of two stages"},
        {{{"F0.0", "BW0.0"}, {"F1.0", "F0.0", "BW1.0", "BW0.0"}},
         HV_ENO,
         "the order deadlocks: rank 0 stops at F0.0, waiting for F1.0 of rank 1; rank 1 stops at "
         "F1.0, waiting for F0.0 of rank 0"},
        {{{"F0.0", "F0.0", "BW0.0"}, {"F0.0", "F0.0", "F1.0", "BW1.0", "BW0.0"}},
         HV_EINPUT,
         "order of rank 0: F0.0 occurs twice"},
        {{{"F0.0"}, {"F0.0", "F1.0", "BW1.0"}}, HV_EINPUT, "F0.0 has no backward"},
        {{{"F0.0", "BW0.0"}, {"F0.0", "BW0.0"}}, HV_EINPUT, "BW0.0 waits for BW1.0, which is not"},
        {{{"F0.0", "BW0.1"}, {"F0.0", "F1.0", "BW1.0", "BW0.0"}},
         HV_EINPUT,
         "order[0][1], BW0.1: there are not that many micro-batches"},
        {{{"F0.0", "BW0.0"}, {"F0.0", "F1.0", "BW1,0", "BW0.0"}}, HV_EINPUT, "order[1][2]"},
    };
    static const int32_t at[] = {0, 2, 3}, resource[] = {0, 1, 1};
    const struct hv_rank_resources on = {2, at, resource};
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        const struct hv_schedule_row *row;
        struct hv_schedule_input in;
        struct hv_schedule s;
        struct hv_pipe g;
        struct hv_arena a = {0};
        struct hv_err err = {0};
        struct hv_order_text text[2];
        for (int q = 0; q < 2; q++) {
            text[q] = (struct hv_order_text){cases[i].tokens[q], 0};
            while (text[q].n < 6 && cases[i].tokens[q][text[q].n] != NULL) {
                text[q].n++;
            }
        }
        assert_int_equal(hv_schedule_find("explicit", &row, NULL), HV_OK);
        hv_schedule_input_init(&in, row, 2, 1);
        in.order = text;
        in.resources = &on;
        in.order_per_resource = true;
        enum hv_status st = hv_schedule_make(&a, &in, &s, &err);
        st = st == HV_OK ? hv_pipe_compile(&a, &s, &g, &err) : st;
        if (st != cases[i].st || strstr(err.text, cases[i].says) == NULL) {
            fail_msg("case %zu: %d: %s", i, (int)st, err.text);
        }
        hv_arena_free(&a);
    }
}

/* a pair of one stage stays a pair; chunks are refused */
static void pairs_and_chunks(void **state)
{
    (void)state;
    static const char *const one[] = {"F0.0", "F1.0",  "BW1.0", "{F0.1|BW0.0}",
                                      "F1.1", "BW1.1", "BW0.1"};
    static const int32_t at[] = {0, 1, 2}, resource[] = {0, 0};
    const struct hv_rank_resources on = {1, at, resource};
    const struct hv_order_text text = {one, HV_COUNT(one)};
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_err err = {0};
    struct fixture f = {0};
    assert_int_equal(hv_schedule_find("explicit", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, 2, 2);
    in.order = &text;
    in.resources = &on;
    in.order_per_resource = true;
    assert_int_equal(hv_schedule_make(&f.a, &in, &f.s, &err), HV_OK);
    assert_int_equal(hv_pipe_compile(&f.a, &f.s, &f.g, &err), HV_OK);
    assert_int_equal(f.s.n_groups, 1);
    price(&f, 1, 1, 1, 0);
    NEAR(f.run.makespan_s, 12); /* a pair without a time of its own is the sum of the two */
    hv_arena_free(&f.a);
    in.chunks = 2;
    assert_int_equal(hv_schedule_make(&f.a, &in, &f.s, &err), HV_ENO);
    assert_non_null(strstr(err.text, "one chunk per rank"));
    hv_arena_free(&f.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_orders_are_played),
        cmocka_unit_test(swapped_orders_stop_or_agree),
        cmocka_unit_test(one_resource),
        cmocka_unit_test(bad_lists_are_named),
        cmocka_unit_test(pairs_and_chunks),
    };
    return cmocka_run_group_tests_name("sim_explicit", tests, NULL, NULL);
}
