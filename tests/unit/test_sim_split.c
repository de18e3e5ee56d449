/* Ranks that take micro-batches in turns, and stages with micro-batches of their own: every time
 * against a simulation sample by sample, and against times worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim_fixture.h"

enum { MOST = 6, SAMPLES = 96 };

/* a chain of stages, split; times per sample */
struct chain {
    int32_t p, m; /* m: of the schedule */
    struct hv_stage_split splits[MOST];
    double f_s[MOST], b_s[MOST], w_s[MOST]; /* of a sample */
    double hop_s;
    const struct hv_stage_graph *graph;
};

static int32_t samples_of(const struct chain *c)
{
    int32_t most = 1;
    for (int32_t r = 0; r < c->p; r++) {
        most = c->splits[r].passes > most ? c->splits[r].passes : most;
    }
    return most * c->m; /* a sample is the smallest micro-batch: passes divide each other */
}

/* makes, compiles and prices it; false: the schedule refuses */
static bool run_split(struct fixture *x, const char *name, const struct chain *c,
                      struct hv_err *err)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    *x = (struct fixture){0};
    assert_int_equal(hv_schedule_find(name, &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, c->p, c->m);
    in.chunks = 1;
    in.splits = c->splits;
    in.graph = c->graph;
    if (hv_schedule_make(&x->a, &in, &x->s, err) != HV_OK) {
        return false;
    }
    if (hv_pipe_compile(&x->a, &x->s, &x->g, err) != HV_OK) {
        fail_msg("%s: %s", name, err->text);
    }
    double all = samples_of(c);
    x->stage_s = hv_arena_new(&x->a, double, (size_t)x->s.n_stages *HV_OP_KIND_N);
    for (int32_t s = 0, r = 0, lane = 0; s < x->s.n_stages; s++) { /* one chunk */
        double n = all / x->s.units[s].n;
        double row_s[HV_OP_KIND_N] = {[HV_OP_F] = n * c->f_s[r],
                                      [HV_OP_B] = n * c->b_s[r],
                                      [HV_OP_W] = n * c->w_s[r],
                                      [HV_OP_BW] = n * (c->b_s[r] + c->w_s[r]),
                                      [HV_OP_R] = n * c->f_s[r]};
        memcpy(x->stage_s + (size_t)s * HV_OP_KIND_N, row_s, sizeof row_s);
        bool last = ++lane == c->splits[r].lanes;
        r += last;
        lane = last ? 0 : lane;
    }
    x->cost = (struct hv_pipe_cost){.stage_s = x->stage_s, .hop_all_s = c->hop_s};
    hv_pipe_run_new(&x->a, &x->g, &x->run);
    hv_pipe_time(&x->g, &x->cost, &x->run);
    return true;
}

/* ---- sample by sample
 * --------------------------------------------------------------------------------------------- */

/* ends of F and of B of every sample on every stage; infinity while they have not run */
struct naive {
    double f[MOST][SAMPLES], b[MOST][SAMPLES];
};

/* when the samples [from, to) are through the stages before `stage` (or behind it, backward) */
static double arrives(const struct chain *c, const struct naive *n, int32_t stage, bool back,
                      int32_t from, int32_t to)
{
    double at = 0;
    for (int32_t o = 0; o < c->p; o++) {
        bool edge = o == (back ? stage + 1 : stage - 1);
        for (int32_t e = 0; c->graph && e < c->graph->n_edges; e++) {
            int32_t a = c->graph->from[e], z = c->graph->to[e];
            edge = (e > 0 && edge) || (back ? a == stage && z == o : z == stage && a == o);
        }
        for (int32_t i = from; edge && i < to; i++) {
            at = fmax(at, (back ? n->b : n->f)[o][i] + c->hop_s);
        }
    }
    return at;
}

/* the makespan of the orders, op by op and sample by sample; checks who runs which sample */
static double naive_s(const struct fixture *x, const struct chain *c)
{
    static struct naive n;
    int32_t all = samples_of(c), rank = 0;
    size_t at[64] = {0};
    double free_at[64] = {0}, end = 0;
    for (int32_t r = 0; r < MOST; r++) {
        for (int32_t i = 0; i < SAMPLES; i++) {
            n.f[r][i] = n.b[r][i] = HUGE_VAL;
        }
    }
    for (bool more = true; more;) {
        more = false;
        rank = 0;
        for (int32_t r = 0; r < c->p; r++) {
            for (int32_t lane = 0; lane < c->splits[r].lanes; lane++, rank++) {
                size_t i = x->s.rank_at[rank] + at[rank];
                if (i == x->s.rank_at[rank + 1]) {
                    continue;
                }
                const struct hv_op *op = &x->s.ops[i];
                int32_t each = all / (c->m * c->splits[r].passes), from = op->mb * each;
                assert_int_equal(op->mb % c->splits[r].lanes, lane);
                bool back = op->kind == HV_OP_B || op->kind == HV_OP_BW;
                double ready = op->kind == HV_OP_W || op->kind == HV_OP_R
                                   ? 0
                                   : arrives(c, &n, r, back, from, from + each);
                if (!(ready < HUGE_VAL)) {
                    continue;
                }
                const double of[HV_OP_KIND_N] = {[HV_OP_F] = c->f_s[r],
                                                 [HV_OP_B] = c->b_s[r],
                                                 [HV_OP_W] = c->w_s[r],
                                                 [HV_OP_BW] = c->b_s[r] + c->w_s[r],
                                                 [HV_OP_R] = c->f_s[r]};
                free_at[rank] = fmax(free_at[rank], ready) + each * of[op->kind];
                for (int32_t k = from; k < from + each; k++) {
                    double *of_sample = op->kind == HV_OP_F ? &n.f[r][k] : &n.b[r][k];
                    if (op->kind == HV_OP_F || back) {
                        assert_true(*of_sample == HUGE_VAL);
                        *of_sample = free_at[rank];
                    }
                }
                end = fmax(end, free_at[rank]);
                at[rank]++;
                more = true;
            }
        }
    }
    for (int32_t r = 0; r < c->p; r++) {
        for (int32_t i = 0; i < all; i++) {
            assert_true(n.f[r][i] < HUGE_VAL && n.b[r][i] < HUGE_VAL);
        }
    }
    return end;
}

static void fill_random(struct chain *c, struct hv_rng *r, bool turns, bool own)
{
    c->p = 1 + (int32_t)hv_rng_below(r, MOST);
    c->m = 1 + (int32_t)hv_rng_below(r, 12);
    c->hop_s = hv_rng_below(r, 2) ? some(r, 0, 2) : 0;
    c->graph = NULL;
    for (int32_t s = 0; s < c->p; s++) {
        c->splits[s].lanes = turns ? 1 + (int32_t)hv_rng_below(r, 4) : 1;
        c->splits[s].passes = own ? 1 << hv_rng_below(r, 4) : 1;
        c->f_s[s] = some(r, 0, 4);
        c->b_s[s] = some(r, 0, 4);
        c->w_s[s] = some(r, 0, 4);
    }
}

static void against_samples(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b",  "gpipe",     "dapple", "zb-h1",  "zb-list",
                                        "zb-1p", "graphpipe", "tessel", "varuna", "dynapipe"};
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    size_t n = 0;
    for (size_t k = 0; k < 60 * HV_COUNT(names); k++) {
        struct chain c;
        struct fixture x;
        struct hv_err err = {0};
        const char *name = names[k % HV_COUNT(names)];
        fill_random(&c, &r, k % 3 != 1, k % 3 != 0);
        if (k % 3 == 2) { /* both: equal numbers of micro-batches */
            for (int32_t s = 1; s < c.p; s++) {
                c.splits[s].passes = c.splits[0].passes;
            }
        }
        if (strcmp(name, "tessel") == 0 && c.p > 2) {
            continue; /* a search over all lanes */
        }
        if (run_split(&x, name, &c, &err)) {
            double want = naive_s(&x, &c);
            if (!is_near(x.run.makespan_s, want)) {
                fail_msg("%s, p = %d, m = %d: %g, by samples %g", name, c.p, c.m, x.run.makespan_s,
                         want);
            }
            n++;
        }
        hv_arena_free(&x.a);
    }
    assert_true(n > 45 * HV_COUNT(names));
}

/* ---- by hand
 * --------------------------------------------------------------------------------------------- */

static double split_s(const char *name, const struct chain *c)
{
    struct fixture x;
    struct hv_err err = {0};
    if (!run_split(&x, name, c, &err)) {
        fail_msg("%s: %s", name, err.text);
    }
    double s = x.run.makespan_s;
    hv_arena_free(&x.a);
    return s;
}

/* one lane, one pass: the order of the schedule itself */
static void one_changes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b", "gpipe", "zb-h1", "interleaved", "v-half"};
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        struct fixture x, y;
        struct hv_stage_split one[4] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
        const struct hv_schedule_row *row;
        struct hv_schedule_input in;
        x = y = (struct fixture){0};
        assert_int_equal(hv_schedule_find(names[i], &row, NULL), HV_OK);
        hv_schedule_input_init(&in, row, 4, 8);
        assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
        in.splits = one;
        assert_int_equal(hv_schedule_make(&y.a, &in, &y.s, NULL), HV_OK);
        size_t n = hv_schedule_n_ops(&x.s);
        assert_int_equal(n, hv_schedule_n_ops(&y.s));
        assert_memory_equal(x.s.ops, y.s.ops, n * sizeof *x.s.ops);
        assert_memory_equal(x.s.stage_to_rank, y.s.stage_to_rank,
                            (size_t)x.s.n_stages * sizeof *x.s.stage_to_rank);
        assert_int_equal(x.s.graph.n_edges, y.s.graph.n_edges);
        assert_int_equal(hv_pipe_compile(&y.a, &y.s, &y.g, NULL), HV_OK);
        hv_arena_free(&x.a);
        hv_arena_free(&y.a);
    }
}

/* one stage of d ranks in turns: ⌈m / d⌉ micro-batches one after the other */
static void turns_of_one_stage(void **state)
{
    (void)state;
    for (int32_t d = 1; d <= 4; d++) {
        for (int32_t m = 1; m <= 9; m++) {
            struct chain c = {.p = 1, .m = m, .splits = {{d, 1}}, .f_s = {1}, .b_s = {2}};
            NEAR(split_s("1f1b", &c), 3.0 * ((m + d - 1) / d));
        }
    }
}

/* PipeDream's replicated stage: two ranks of 2 + 4 before one of 1 + 2. The second stage is never
 * idle from the first forward's end on: 2 + 8 · 3 + 4. Its forward and backward are whole: with
 * micro-batches that the two ranks split it would be 1 + 8 · 3 + 2. */
static void turns_have_the_latency_of_one_rank(void **state)
{
    (void)state;
    struct chain c = {.p = 2, .m = 8, .splits = {{2, 1}, {1, 1}}, .f_s = {2, 1}, .b_s = {4, 2}};
    NEAR(split_s("1f1b", &c), 2 + 8 * 3 + 4);
    c.splits[0].lanes = 1;
    /* the first stage is the bottleneck: its second forward hides 2 of the second stage's 3 */
    NEAR(split_s("1f1b", &c), 8 * 6 + 3 - 2);
}

/* GPipe: the forwards of 2 lanes, then the backwards, at the pace of the slowest stage */
static void turns_of_gpipe(void **state)
{
    (void)state;
    struct chain c = {.p = 2, .m = 6, .splits = {{2, 1}, {1, 1}}, .f_s = {4, 2}, .b_s = {4, 2}};
    /* F: lanes end at 4, 4, 8, 8, 12, 12; stage 1: 4 + 6 · 2 = 16; back at 18, 20 … 28; lanes of
     * 4 each: the last begins at 28 */
    NEAR(split_s("gpipe", &c), 28 + 4);
}

/* A stage of four samples behind one of single samples: it waits for all four. */
static void waits_for_all_of_its_samples(void **state)
{
    (void)state;
    struct chain c = {
        .p = 2, .m = 1, .splits = {{1, 4}, {1, 1}}, .f_s = {1, 1}, .b_s = {1, 1}, .hop_s = 0.5};
    /* 4 forwards, hop, F of 4, B of 4, hop, 4 backwards */
    NEAR(split_s("gpipe", &c), 4 + 0.5 + 4 + 4 + 0.5 + 4);
    c.splits[0].passes = 1;
    c.splits[1].passes = 4;
    /* one forward of 4, then samples one by one; the first stage waits for all of them */
    NEAR(split_s("gpipe", &c), 4 + 0.5 + 8 + 0.5 + 4);
    c.splits[0].passes = 4;
    /* both by samples: the second stage follows one sample behind */
    NEAR(split_s("gpipe", &c), 1 + 0.5 + 8 + 0.5 + 1);
}

/* GraphPipe's case, two branches of three stages and their merge: 21, and 30 as a chain; with one
 * sample per pass in place of a micro-batch of two, kFkB keeps (m + depth − 1) in samples */
static void graph_of_branches(void **state)
{
    (void)state;
    static const int32_t from[] = {0, 1, 3, 4, 2, 5}, to[] = {1, 2, 4, 5, 6, 6};
    const struct hv_stage_graph g = {6, from, to};
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    assert_int_equal(hv_schedule_find("graphpipe", &row, NULL), HV_OK);
    for (int chain = 0; chain < 2; chain++) {
        for (int32_t lanes = 1; lanes <= 2; lanes++) {
            struct fixture x = {0};
            struct hv_stage_split splits[7];
            for (int i = 0; i < 7; i++) {
                splits[i] = (struct hv_stage_split){lanes, 1};
            }
            hv_schedule_input_init(&in, row, 7, 4 * lanes);
            in.graph = chain ? NULL : &g;
            in.splits = splits;
            assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
            assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
            price(&x, 1, 2, 0, 0);
            NEAR(x.run.makespan_s, chain ? 30 : 21); /* twice the lanes, twice the work */
            hv_arena_free(&x.a);
        }
    }
}

/** Two directions: d turns of m micro-batches are d pipelines of every d-th of them, each with the
 * order, the time and the activations of its own number, whichever the mode. */
static void turns_in_two_directions(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key, *value;
        int32_t p, d, m;
    } cases[] = {
        {"chimera", NULL, NULL, 2, 2, 8},          {"chimera", NULL, NULL, 4, 2, 7},
        {"chimera", NULL, NULL, 4, 3, 13},         {"chimera", "pipes", "4", 4, 2, 16},
        {"chimera", "mode", "doubling", 4, 2, 16}, {"chimera", "mode", "halving", 4, 3, 12},
        {"dualpipe", NULL, NULL, 2, 2, 8},         {"dualpipe", NULL, NULL, 4, 2, 20},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        const struct hv_schedule_row *row;
        struct hv_schedule_input in;
        struct hv_stage_split splits[4];
        struct fixture x = {0};
        const int32_t p = cases[i].p, d = cases[i].d;
        int32_t in_flight[16], own[4];
        double longest = 0, busy = 0;
        assert_int_equal(hv_schedule_find(cases[i].name, &row, NULL), HV_OK);
        hv_schedule_input_init(&in, row, p, cases[i].m);
        for (int32_t r = 0; r < p; r++) {
            splits[r] = (struct hv_stage_split){d, 1};
        }
        in.splits = splits;
        if (cases[i].key != NULL) {
            assert_int_equal(hv_schedule_set_option(&in, cases[i].key, cases[i].value, NULL),
                             HV_OK);
        }
        assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
        assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
        price(&x, 1, 2, 0.5, 0.25);
        hv_schedule_peak_inflight(&x.s, in_flight);
        assert_int_equal(x.s.n_ranks, p * d);
        for (int32_t k = 0; k < d; k++) {
            struct fixture one;
            int32_t m = (cases[i].m - k + d - 1) / d;
            build(&one, cases[i].name, p, m, in.chunks, cases[i].key, cases[i].value);
            price(&one, 1, 2, 0.5, 0.25);
            hv_schedule_peak_inflight(&one.s, own);
            for (int32_t r = 0; r < p; r++) {
                assert_int_equal(in_flight[r * d + k], own[r]);
            }
            longest = fmax(longest, one.run.makespan_s);
            busy += one.run.busy_s;
            hv_arena_free(&one.a);
        }
        NEAR(x.run.makespan_s, longest);
        NEAR(x.run.busy_s, busy);
        hv_arena_free(&x.a);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct hv_stage_split split;
        const char *says;
    } cases[] = {
        {"chimera", {2, 1}, "in turns: its ranks run stages in two directions"},
        {"dualpipe", {1, 2}, "own size: its ranks run stages in two directions"},
        {"seq1f1b", {1, 2}, "cuts micro-batches itself"},
        {"bpipe", {2, 1}, "keep activations for each other"},
        {"pipedream", {1, 2}, "updates weights after every micro-batch"},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct chain c = {.p = 2, .m = 4, .splits = {{1, 1}, cases[i].split}};
        struct fixture x;
        struct hv_err err = {0};
        assert_false(run_split(&x, cases[i].name, &c, &err));
        assert_non_null(strstr(err.text, cases[i].says));
        hv_arena_free(&x.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_samples),    cmocka_unit_test(one_changes_nothing),
        cmocka_unit_test(turns_of_one_stage), cmocka_unit_test(turns_have_the_latency_of_one_rank),
        cmocka_unit_test(turns_of_gpipe),     cmocka_unit_test(waits_for_all_of_its_samples),
        cmocka_unit_test(graph_of_branches),  cmocka_unit_test(turns_in_two_directions),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
