/* Time, idle, memory, critical path and slack of random orders against brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim_fixture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    int32_t p, n_stages, m;
    int32_t rank_of[8];
    uint8_t done[8][6]; /* 1 = F, 2 = B, 4 = W, 8 = BW */
    bool split[8];
    char text[8][200][16];
    const char *tokens[8][200];
    struct hv_order_text order[8];
};

static bool can_run(const struct world *w, int32_t s, int32_t i, int kind)
{
    unsigned d = w->done[s][i], b = 2 | 8;
    switch (kind) {
    case 0:
        return !(d & 1) && (s == 0 || (w->done[s - 1][i] & 1));
    case 1:
        return (d & 1) && !(d & b) && (s + 1 == w->n_stages || (w->done[s + 1][i] & b));
    default:
        return (d & 2) && !(d & 4);
    }
}

/* plays a random valid order */
static void play(struct world *w, struct hv_rng *r)
{
    static const char *const names[] = {"F", "B", "W", "BW"};
    *w = (struct world){.p = (int32_t)(1 + hv_rng_below(r, 4)),
                        .m = (int32_t)(1 + hv_rng_below(r, 5))};
    w->n_stages = w->p * (int32_t)(1 + hv_rng_below(r, 2));
    int total = 0, played = 0;
    for (int32_t s = 0; s < w->n_stages; s++) {
        w->rank_of[s] = (int32_t)hv_rng_below(r, (uint64_t)w->p);
        w->split[s] = hv_rng_below(r, 2) == 1;
        total += w->m * (w->split[s] ? 3 : 2);
    }
    while (played < total) {
        int32_t s = (int32_t)hv_rng_below(r, (uint64_t)w->n_stages);
        int32_t i = (int32_t)hv_rng_below(r, (uint64_t)w->m);
        int kind = (int)hv_rng_below(r, 3);
        if (!can_run(w, s, i, kind)) {
            continue;
        }
        int shown = kind == 1 && !w->split[s] ? 3 : kind;
        w->done[s][i] |= (uint8_t)(1u << shown);
        struct hv_order_text *o = &w->order[w->rank_of[s]];
        char *text = w->text[w->rank_of[s]][o->n];
        snprintf(text, 16, "%s%d.%d", names[shown], s, i);
        w->tokens[w->rank_of[s]][o->n++] = text;
        played++;
    }
    for (int32_t k = 0; k < w->p; k++) {
        w->order[k].tokens = w->tokens[k];
    }
}

/* can op x run, and from when, by the ends of F and of B or BW so far (−1 = has not run)? */
static double ready_at(const struct hv_schedule *s, const struct hv_pipe_cost *c, size_t x,
                       double f_end[8][6], double b_end[8][6])
{
    const struct hv_op *op = &s->ops[x];
    bool back = op->kind == HV_OP_B || op->kind == HV_OP_BW;
    int32_t other = back ? op->stage + 1 : op->stage - 1;
    if (op->kind == HV_OP_W || other < 0 || other == s->n_stages) {
        return 0;
    }
    double end = back ? b_end[other][op->mb] : f_end[other][op->mb];
    if (end < 0 || s->stage_to_rank[other] == s->stage_to_rank[op->stage]) {
        return end;
    }
    return end + c->hop_s[back ? s->graph.n_edges + op->stage : other];
}

/*
 * The reference: ranks in turn, each runs the next op of its order once what it needs has run.
 * Shares nothing with the program but the order.
 */
static void naive(const struct hv_schedule *s, const struct hv_pipe_cost *c, double *start)
{
    double f_end[8][6], b_end[8][6], free_at[8] = {0};
    size_t done[8] = {0}, left = hv_schedule_n_ops(s);
    for (int i = 0; i < 48; i++) {
        f_end[i / 6][i % 6] = b_end[i / 6][i % 6] = -1;
    }
    while (left > 0) {
        for (int32_t r = 0; r < s->n_ranks; r++) {
            size_t x = s->rank_at[r] + done[r];
            double t = x < s->rank_at[r + 1] ? ready_at(s, c, x, f_end, b_end) : -1;
            if (t < 0) {
                continue;
            }
            const struct hv_op *op = &s->ops[x];
            start[x] = t > free_at[r] ? t : free_at[r];
            free_at[r] = start[x] + c->op_s[x];
            if (op->kind == HV_OP_F) {
                f_end[op->stage][op->mb] = free_at[r];
            } else if (op->kind != HV_OP_W) {
                b_end[op->stage][op->mb] = free_at[r];
            }
            done[r]++;
            left--;
        }
    }
}

static void check_idle_and_path(struct fixture *x)
{
    struct hv_pipe_rank *idle = hv_arena_new(&x->a, struct hv_pipe_rank, (size_t)x->s.n_ranks);
    double *slack = hv_arena_new(&x->a, double, (size_t)x->g.n_nodes + 1);
    const struct hv_pipe_link *path;
    size_t n_path;
    hv_pipe_idle(&x->g, &x->cost, &x->run, idle);
    for (int32_t r = 0; r < x->s.n_ranks; r++) {
        const struct hv_pipe_rank *k = &idle[r];
        NEAR(k->busy_s + k->warmup_s + k->steady_s + k->cooldown_s + k->comm_s, x->run.makespan_s);
        assert_true(k->warmup_s >= 0 && k->steady_s >= 0 && k->cooldown_s >= -1e-9 &&
                    k->comm_s >= 0);
    }
    hv_pipe_slack(&x->g, &x->cost, &x->run, slack);
    hv_pipe_critical(&x->a, &x->g, &x->cost, &x->run, &path, &n_path);
    assert_int_equal(path[0].reason, HV_PIPE_START);
    double t = 0;
    for (size_t i = 0; i < n_path; i++) {
        NEAR(x->run.node_start_s[path[i].node], t + path[i].hop_s);
        NEAR(slack[path[i].node], 0);
        t = x->run.node_end_s[path[i].node];
    }
    NEAR(t, x->run.makespan_s);
}

/* delaying an op by its slack keeps the makespan, by more than that makes it longer */
static void check_slack(struct fixture *x, double *op_s, size_t i)
{
    double *slack = hv_arena_new(&x->a, double, (size_t)x->g.n_nodes + 1);
    hv_pipe_slack(&x->g, &x->cost, &x->run, slack);
    double before = x->run.makespan_s, own = op_s[i], room = slack[i];
    op_s[i] = own + room;
    hv_pipe_time(&x->g, &x->cost, &x->run);
    NEAR(x->run.makespan_s, before);
    op_s[i] = own + room + 1;
    hv_pipe_time(&x->g, &x->cost, &x->run);
    NEAR(x->run.makespan_s, before + 1);
    op_s[i] = own;
    hv_pipe_time(&x->g, &x->cost, &x->run);
}

static void check_memory(struct fixture *x, struct hv_rng *r)
{
    size_t n = (size_t)x->s.n_stages;
    double *act = hv_arena_new(&x->a, double, n), *kept = hv_arena_new(&x->a, double, n);
    double *start = hv_arena_new(&x->a, double, n *HV_OP_KIND_N);
    double *end = hv_arena_new(&x->a, double, n *HV_OP_KIND_N);
    for (size_t i = 0; i < n; i++) {
        act[i] = (double)(1 + hv_rng_below(r, 100));
        kept[i] = (double)hv_rng_below(r, (uint64_t)act[i] + 1);
    }
    hv_pipe_memory_simple(&x->s, act, kept, NULL, start, end);
    struct hv_pipe_memory mem = {.start_bytes = start, .end_bytes = end};
    struct hv_pipe_peak peaks[8];
    hv_pipe_peaks(&x->g, &x->run, &mem, peaks);
    for (int32_t k = 0; k < x->s.n_ranks; k++) {
        size_t steps = hv_pipe_trace(&x->g, &x->run, &mem, k, NULL);
        struct hv_memory_step *trace = hv_arena_new(&x->a, struct hv_memory_step, steps);
        assert_int_equal(hv_pipe_trace(&x->g, &x->run, &mem, k, trace), steps);
        double most = 0;
        for (size_t i = 0; i < steps; i++) {
            assert_true(trace[i].bytes >= -1e-9);
            assert_true(i == 0 || trace[i].at_s > trace[i - 1].at_s);
            most = trace[i].bytes > most ? trace[i].bytes : most;
        }
        NEAR(trace[steps - 1].bytes, 0);
        NEAR(peaks[k].end_bytes, 0);
        assert_true(most <= peaks[k].peak_bytes + 1e-9);
    }
}

/* one table of stage times, hops of one length: as naive */
static void check_stage_times(struct fixture *x, struct hv_rng *r)
{
    size_t n = hv_schedule_n_ops(&x->s);
    double *op_s = hv_arena_new(&x->a, double, n), *start = hv_arena_new(&x->a, double, n);
    double stage_s[8 * HV_OP_KIND_N], hop_s[32];
    for (size_t i = 0; i < HV_COUNT(stage_s); i++) {
        stage_s[i] = some(r, 0.5, 9);
    }
    hop_s[0] = some(r, 0, 3);
    for (size_t i = 1; i < HV_COUNT(hop_s); i++) {
        hop_s[i] = hop_s[0];
    }
    for (size_t k = 0; k < n; k++) {
        op_s[k] = stage_s[(size_t)x->s.ops[k].stage * HV_OP_KIND_N + x->s.ops[k].kind];
    }
    naive(&x->s, &(struct hv_pipe_cost){.op_s = op_s, .hop_s = hop_s}, start);
    x->cost = (struct hv_pipe_cost){.stage_s = stage_s, .hop_all_s = hop_s[0]};
    hv_pipe_time(&x->g, &x->cost, &x->run);
    for (size_t k = 0; k < n; k++) {
        NEAR(hv_pipe_op_start_s(&x->g, &x->run, k), start[k]);
    }
}

static void random_orders(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    struct world *w = calloc(1, sizeof *w);
    for (int i = 0; i < 10000; i++) {
        const struct hv_schedule_row *row;
        struct hv_schedule_input in;
        struct fixture x = {0};
        play(w, &r);
        assert_int_equal(hv_schedule_find("explicit", &row, NULL), HV_OK);
        hv_schedule_input_init(&in, row, w->p, w->m);
        in.chunks = w->n_stages / w->p;
        in.order = w->order;
        assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
        assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
        size_t n = hv_schedule_n_ops(&x.s);
        double *op_s = hv_arena_new(&x.a, double, n), *hop_s = hv_arena_new(&x.a, double, 32);
        double *start = hv_arena_new(&x.a, double, n), sum = 0;
        for (size_t k = 0; k < n; k++) {
            op_s[k] = some(&r, 0.5, 9);
            sum += op_s[k];
        }
        for (int32_t k = 0; k < x.g.n_hops; k++) {
            hop_s[k] = some(&r, 0, 3);
        }
        hv_pipe_run_new(&x.a, &x.g, &x.run);
        check_stage_times(&x, &r);
        x.cost = (struct hv_pipe_cost){.op_s = op_s, .hop_s = hop_s};
        hv_pipe_time(&x.g, &x.cost, &x.run);
        NEAR(x.run.busy_s, sum);
        naive(&x.s, &x.cost, start);
        for (size_t k = 0; k < n; k++) {
            NEAR(hv_pipe_op_start_s(&x.g, &x.run, k), start[k]);
        }
        check_idle_and_path(&x);
        check_slack(&x, op_s, (size_t)hv_rng_below(&r, n));
        check_memory(&x, &r);
        hv_arena_free(&x.a);
    }
    free(w);
}

/* micro-batches of unequal length, with the makespans of the authors' schedulers (dynapipe/
 * schedule_opt at d8666ad4; forward 1, backward 2 per unit of length) */
static void unequal_micro_batches(void **state)
{
    (void)state;
    static const double mb_scale[] = {1, 0.8, 1.2, 0.9, 1.1, 0.7, 1.4, 0.6};
    static const struct {
        const char *name, *key, *value;
        int32_t v;
        double makespan;
    } cases[] = {{"dynapipe", NULL, NULL, 1, 33.9},
                 {"dynapipe", NULL, NULL, 2, 60},
                 {"dynapipe", "placement", "zigzag", 2, 62.4},
                 {"1f1b", NULL, NULL, 1, 38},
                 {"interleaved", NULL, NULL, 2, 61.2}};
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct fixture x;
        build(&x, cases[i].name, 4, 8, cases[i].v, cases[i].key, cases[i].value);
        price(&x, 1, 1, 1, 0);
        x.cost.mb_scale = mb_scale;
        hv_pipe_time(&x.g, &x.cost, &x.run);
        NEAR(x.run.makespan_s, cases[i].makespan);
        hv_arena_free(&x.a);
    }
}

/* a slower rank and a longer micro-batch act on the table of stage times */
static void scales(void **state)
{
    (void)state;
    struct fixture x;
    build(&x, "1f1b", 2, 3, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    static const double rank_scale[] = {1, 2}, mb_scale[] = {1, 1, 3};
    x.cost.rank_scale = rank_scale;
    x.cost.mb_scale = mb_scale;
    hv_pipe_time(&x.g, &x.cost, &x.run);
    /* rank 0: 3·(1 + 1 + 3); rank 1 twice that: 6 + 6 + 18, one F before and one BW after */
    NEAR(x.run.busy_s, 15 + 30);
    NEAR(x.run.makespan_s, 1 + 30 + 6);
    hv_arena_free(&x.a);
}

/* two towers feed one stage: it waits for both, and both for its gradient */
static void graph_of_stages(void **state)
{
    (void)state;
    static const int32_t from[] = {0, 1}, to[] = {2, 2};
    struct hv_stage_graph graph = {2, from, to};
    static const char *const r0[] = {"F0.0", "BW0.0"}, *const r1[] = {"F1.0", "BW1.0"},
                             *const r2[] = {"F2.0", "BW2.0"};
    struct hv_order_text order[] = {{r0, 2}, {r1, 2}, {r2, 2}};
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct fixture x = {0};
    assert_int_equal(hv_schedule_find("explicit", &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, 3, 1);
    in.order = order;
    in.graph = &graph;
    assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
    assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
    static const double op_s[] = {3, 1, 5, 1, 2, 2}, hop_s[] = {1, 0.5, 0.25, 0.125};
    x.cost = (struct hv_pipe_cost){.op_s = op_s, .hop_s = hop_s};
    hv_pipe_run_new(&x.a, &x.g, &x.run);
    hv_pipe_time(&x.g, &x.cost, &x.run);
    NEAR(x.run.node_start_s[4], 5.5); /* the slower tower: 5 + 0.5, the other 3 + 1 */
    NEAR(x.run.node_start_s[1], 9.5 + 0.25);
    NEAR(x.run.node_start_s[3], 9.5 + 0.125);
    hv_arena_free(&x.a);
}

/*
 * Random graphs of stages: GraphPipe's order runs on all of them, holds as many micro-batches as
 * the longest way to the end has stages, and on a chain is 1F1B. DistMM's last stage has a whole
 * group before the first backward of that group.
 */
static void orders_on_graphs(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 23);
    for (int i = 0; i < 500; i++) {
        int32_t p = 1 + (int32_t)hv_rng_below(&r, 7), m = 1 + (int32_t)hv_rng_below(&r, 12);
        int32_t g = 1 + (int32_t)hv_rng_below(&r, 5), from[21], to[21], depth[7], peaks[7];
        struct hv_stage_graph graph = {0, from, to};
        for (int32_t s = p - 1; s >= 0; s--) {
            depth[s] = 1;
            for (int32_t t = s + 1; t < p; t++) {
                if (hv_rng_below(&r, 3) == 0) {
                    from[graph.n_edges] = s;
                    to[graph.n_edges++] = t;
                    depth[s] = depth[t] + 1 > depth[s] ? depth[t] + 1 : depth[s];
                }
            }
        }
        for (int k = 0; k < 2; k++) {
            const struct hv_schedule_row *row;
            struct hv_schedule_input in;
            struct fixture x = {0};
            assert_int_equal(hv_schedule_find(k ? "distmm" : "graphpipe", &row, NULL), HV_OK);
            hv_schedule_input_init(&in, row, p, m);
            in.graph = &graph;
            if (k) {
                assert_int_equal(hv_schedule_set_int(&in, "barrier", g, NULL), HV_OK);
            }
            assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
            assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
            hv_schedule_peak_inflight(&x.s, peaks);
            for (int32_t s = 0; s < p; s++) {
                assert_int_equal(peaks[s], min32(m, depth[s] + (k ? min32(g, m) - 1 : 0)));
            }
            int32_t n_f = 0;
            for (size_t o = x.s.rank_at[p - 1]; o < x.s.rank_at[p] && k; o++) {
                int32_t mb = x.s.ops[o].mb;
                n_f += x.s.ops[o].kind == HV_OP_F;
                assert_true(x.s.ops[o].kind == HV_OP_F || n_f >= min32(m, (mb / g + 1) * g));
            }
            hv_arena_free(&x.a);
        }
    }
    struct closed_input c = {.ranks = 5, .micro_batches = 8, .chunks = 1, .f_s = 2, .b_s = 3};
    NEAR(makespan("graphpipe", &c, NULL, NULL, 1), closed_1f1b_s(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_orders),    cmocka_unit_test(unequal_micro_batches),
        cmocka_unit_test(scales),           cmocka_unit_test(graph_of_stages),
        cmocka_unit_test(orders_on_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
