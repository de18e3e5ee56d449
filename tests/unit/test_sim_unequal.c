/* Schedules on unequal stages: durations of every stage, hops of every edge, limits of every rank.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/sim/pipeline/steady.h"
#include "solver/sim/schedule/schedule_int.h"
#include "tests/sim_fixture.h"
#include <stdio.h>
#include <string.h>

enum { MOST_RANKS = 9, MOST_STAGES = 64 };

/* a schedule asked for on unequal stages */
struct unequal {
    struct hv_schedule_input in;
    struct hv_stage_cost costs[MOST_STAGES];
    double hops_s[2 * MOST_STAGES], limits[MOST_RANKS];
};

static const struct hv_schedule_row *row_of(const char *name)
{
    const struct hv_schedule_row *row;
    assert_int_equal(hv_schedule_find(name, &row, NULL), HV_OK);
    return row;
}

static void fill(struct unequal *u, const struct hv_schedule_row *row, int32_t p, int32_t m,
                 struct hv_rng *r)
{
    hv_schedule_input_init(&u->in, row, p, m);
    int32_t n = p * u->in.chunks;
    for (int32_t s = 0; s < n; s++) {
        bool idle = hv_rng_below(r, 12) == 0; /* a stage may take no time at all */
        u->costs[s] =
            (struct hv_stage_cost){idle ? 0 : some(r, 0, 8), some(r, 0, 8), some(r, 0, 4)};
    }
    for (int32_t e = 0; e < 2 * n; e++) {
        u->hops_s[e] = hv_rng_below(r, 3) == 0 ? 0 : some(r, 0, 2);
    }
    for (int32_t k = 0; k < p; k++) {
        u->limits[k] = hv_rng_below(r, 3) == 0 ? (double)INFINITY
                                               : 1 + (double)hv_rng_below(r, 2 * MOST_RANKS);
    }
    u->in.costs = u->costs;
    u->in.hops_s = u->hops_s;
    u->in.limits = u->limits;
}

/* durations and hops as they are, not as they were planned */
static void price_unequal(struct fixture *x, const struct unequal *u)
{
    price(x, 1, 1, 1, 0);
    for (int32_t s = 0; s < x->s.n_stages; s++) {
        const struct hv_stage_cost *c = &u->costs[s];
        double row[HV_OP_KIND_N] = {[HV_OP_F] = c->f_s,
                                    [HV_OP_B] = c->b_s,
                                    [HV_OP_W] = c->w_s,
                                    [HV_OP_BW] = c->b_s + c->w_s,
                                    [HV_OP_R] = c->f_s};
        memcpy(x->stage_s + (size_t)s * HV_OP_KIND_N, row, sizeof row);
    }
    int32_t n_edges = x->s.graph.n_edges;
    double *hops_s = hv_arena_new(&x->a, double, (size_t)x->g.n_hops + 1);
    for (int32_t i = 0; i < x->g.n_hops; i++) {
        bool back = i >= x->s.n_pipes * n_edges;
        hops_s[i] = u->hops_s[(back ? n_edges : 0) + i % n_edges];
    }
    x->cost.hop_s = hops_s;
    hv_pipe_time(&x->g, &x->cost, &x->run);
}

static enum hv_status make_unequal(struct fixture *x, const struct unequal *u, struct hv_err *err)
{
    *x = (struct fixture){0};
    enum hv_status st = hv_schedule_make(&x->a, &u->in, &x->s, err);
    if (st == HV_OK) {
        struct hv_err why = {0};
        if (hv_pipe_compile(&x->a, &x->s, &x->g, &why) != HV_OK) {
            fail_msg("%s, p = %d, m = %d, limits %g %g…: %s", u->in.row->name, u->in.ranks,
                     u->in.micro_batches, u->in.limits ? u->in.limits[0] : 0,
                     u->in.limits ? u->in.limits[1] : 0, why.text);
        }
        price_unequal(x, u);
    }
    return st;
}

/* most micro-batches held by a rank: a rank gives an activation back with its W or BW, the
 * zero-bubble schedulers count half of it with B */
static double held(const struct fixture *x, const struct hv_schedule_row *row, int32_t rank)
{
    bool halves = (row->flags & HV_SCHEDULE_SPLIT) && (row->flags & HV_SCHEDULE_BY_COST);
    double now = 0, most = 0, unit = x->s.parts ? 1 : x->s.n_slices;
    for (size_t i = x->s.rank_at[rank]; i < x->s.rank_at[rank + 1]; i++) {
        const struct hv_op *op = &x->s.ops[i];
        bool more = x->s.parts && op->slice > 0;
        now += op->kind == HV_OP_F && !more ? 1 : 0;
        now -= op->kind == HV_OP_BW ? 1 : op->kind == HV_OP_W ? (halves ? 0.5 : 1) : 0;
        now -= op->kind == HV_OP_B && halves ? 0.5 : 0;
        most = now > most ? now : most;
    }
    return most / (unit * x->s.n_stages / x->s.n_ranks);
}

/* no rank is faster than its own work, nor than a micro-batch through all stages and back */
static void check_time(const struct fixture *x, const struct unequal *u)
{
    double through_s = 0;
    for (int32_t s = 0; s < x->s.n_stages; s++) {
        through_s += u->costs[s].f_s / (x->s.parts ? 2 : 1);
    }
    assert_true(x->s.parts || x->s.n_slices > 1 || x->run.makespan_s >= through_s - 1e-9);
    for (int32_t r = 0; r < x->s.n_ranks; r++) {
        double work_s = 0;
        for (size_t i = x->s.rank_at[r]; i < x->s.rank_at[r + 1]; i++) {
            const struct hv_op *op = &x->s.ops[i];
            if (op->kind != HV_OP_R) {
                work_s += x->stage_s[(size_t)op->stage * HV_OP_KIND_N + op->kind] *
                          hv_op_share(&x->s, op);
            }
        }
        assert_true(x->run.makespan_s >= work_s - 1e-6);
    }
}

/* every row, random times, hops and limits: an order that is sound, does not block and keeps to the
 * limits, or a refusal in words */
static void all_rows(void **state)
{
    (void)state;
    size_t n_rows, n_made = 0, n_full = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    struct hv_rng r;
    hv_rng_seed(&r, 53);
    for (size_t k = 0; k < n_rows * 120; k++) {
        const struct hv_schedule_row *row = &rows[k % n_rows];
        struct unequal u;
        struct fixture x;
        struct hv_err err = {0};
        bool tessel = strcmp(row->name, "tessel") == 0;
        int32_t p = 1 + (int32_t)hv_rng_below(&r, tessel ? 4 : MOST_RANKS);
        fill(&u, row, p, 1 + (int32_t)hv_rng_below(&r, 20), &r);
        u.in.limits = hv_rng_below(&r, 2) ? u.limits : NULL;
        enum hv_status st = make_unequal(&x, &u, &err);
        if (st == HV_OK) {
            for (int32_t i = 0; i < p; i++) {
                double most = x.s.stash ? 0 : held(&x, row, i);
                assert_true(!u.in.limits || most <= u.limits[i]);
            }
            check_time(&x, &u);
            n_full += u.in.limits != NULL;
        } else {
            assert_true(st == HV_EUSAGE || st == HV_ENO);
            assert_true(strlen(err.text) > 20);
        }
        n_made += st == HV_OK;
        hv_arena_free(&x.a);
    }
    assert_true(n_made > n_rows * 60);
    assert_true(n_full > n_rows * 10);
}

/* schedules that decide by memory find an order within any limits that leave a micro-batch to every
 * rank; those that do not say by how much they fail */
static void limits_are_kept(void **state)
{
    (void)state;
    static const char *const deciding[] = {"1f1b",   "dapple",  "zb-1p",    "zb-1.5p", "zb-2p",
                                           "tessel", "hetpipe", "dynapipe", "zb-list"};
    struct hv_rng r;
    hv_rng_seed(&r, 59);
    for (size_t k = 0; k < HV_COUNT(deciding) * 40; k++) {
        struct unequal u;
        struct fixture x;
        struct hv_err err = {0};
        const struct hv_schedule_row *row = row_of(deciding[k % HV_COUNT(deciding)]);
        fill(&u, row, 2 + (int32_t)hv_rng_below(&r, 3), 8, &r);
        enum hv_status st = make_unequal(&x, &u, &err);
        if (st != HV_OK) {
            fail_msg("%s: %s", row->name, err.text);
        }
        hv_arena_free(&x.a);
    }
    struct unequal u;
    struct fixture x;
    struct hv_err err = {0};
    fill(&u, row_of("gpipe"), 2, 8, &r);
    u.limits[0] = 8;
    u.limits[1] = 5;
    assert_int_equal(make_unequal(&x, &u, &err), HV_OK);
    hv_arena_free(&x.a);
    u.limits[1] = 0.5;
    assert_int_equal(make_unequal(&x, &u, &err), HV_ENO);
    assert_non_null(strstr(err.text, "room for 1"));
    hv_arena_free(&x.a);
}

/* wider limits never make 1F1B slower, and from p − r on they change nothing */
static void wider_limits(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 61);
    for (int k = 0; k < 100; k++) {
        struct unequal u;
        struct fixture x;
        int32_t p = 2 + (int32_t)hv_rng_below(&r, 4);
        double last_s = (double)INFINITY;
        fill(&u, row_of("1f1b"), p, 12, &r);
        memset(u.hops_s, 0, sizeof u.hops_s);
        for (int32_t s = 0; s < p; s++) {
            u.costs[s] = u.costs[0];
        }
        for (int most = 1; most <= p + 1; most++) {
            for (int32_t i = 0; i < p; i++) {
                u.limits[i] = most;
            }
            assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
            assert_true(x.run.makespan_s <= last_s + 1e-9);
            assert_true(most <= p || is_near(x.run.makespan_s, last_s));
            last_s = x.run.makespan_s;
            hv_arena_free(&x.a);
        }
    }
}

/* the span of an order planned with one set of numbers, run with the real ones */
static double span_planned(const struct unequal *real, bool by_times, const char *key,
                           const char *value)
{
    struct unequal u = *real;
    struct fixture x;
    u.in.costs = by_times ? real->costs : NULL;
    u.in.hops_s = by_times ? real->hops_s : NULL;
    u.in.limits = NULL;
    if (key) {
        assert_int_equal(hv_schedule_set_option(&u.in, key, value, NULL), HV_OK);
    }
    assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
    double span_s = x.run.longest_span_s;
    hv_arena_free(&x.a);
    return span_s;
}

/* v-adaptive tries the same building blocks whatever they are judged by: judged by the real times
 * the chosen one is never longer than judged by slots */
static void adaptive_takes_the_shortest(void **state)
{
    (void)state;
    struct hv_rng r;
    int n_better = 0;
    hv_rng_seed(&r, 67);
    for (int k = 0; k < 30; k++) {
        struct unequal u;
        fill(&u, row_of("v-adaptive"), 2 + (int32_t)hv_rng_below(&r, 4),
             4 + (int32_t)hv_rng_below(&r, 8), &r);
        double slots_s = span_planned(&u, false, "decide", "slots");
        double times_s = span_planned(&u, true, "decide", "times");
        assert_true(times_s <= slots_s + 1e-9 * (1 + slots_s));
        NEAR(span_planned(&u, true, NULL, NULL), times_s); /* by itself it looks at the stages */
        n_better += times_s < slots_s - 1e-9;
    }
    assert_true(n_better > 5);
}

/* seconds per micro-batch in the steady state, with the real times */
static double pace(const struct unequal *real, bool by_times)
{
    struct unequal u = *real;
    struct fixture x;
    struct hv_steady steady;
    u.in.costs = by_times ? real->costs : NULL;
    assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
    assert_int_equal(hv_pipe_steady(&x.g, &x.cost, &steady, NULL), HV_OK);
    hv_arena_free(&x.a);
    return steady.per_micro_batch_s;
}

/* tessel: the repetend found with the real times is no longer than the one for equal stages */
static void tessel_takes_the_shortest(void **state)
{
    (void)state;
    struct hv_rng r;
    int n_better = 0;
    hv_rng_seed(&r, 71);
    for (int k = 0; k < 30; k++) {
        struct unequal u;
        int32_t p = 2 + (int32_t)hv_rng_below(&r, 2);
        fill(&u, row_of("tessel"), p, 24, &r);
        memset(u.hops_s, 0, sizeof u.hops_s);
        for (int32_t s = 0; s < p; s++) {
            u.costs[s] = (struct hv_stage_cost){some(&r, 1, 8), some(&r, 1, 8), some(&r, 1, 4)};
            u.limits[s] = 1 + (double)hv_rng_below(&r, 3);
        }
        double equal_s = pace(&u, false), real_s = pace(&u, true);
        assert_true(real_s <= equal_s * (1 + 1e-6));
        n_better += real_s < equal_s * (1 - 1e-6);
    }
    assert_true(n_better > 0);
}

/* one slow link: over many cases, orders made for the real hops are shorter than orders made as if
 * every hop were that slow */
static void hops_are_real(void **state)
{
    (void)state;
    struct hv_rng r;
    double real_s = 0, worst_s = 0;
    hv_rng_seed(&r, 73);
    for (int k = 0; k < 200; k++) {
        struct unequal u;
        struct fixture x;
        int32_t p = 3 + (int32_t)hv_rng_below(&r, 4);
        fill(&u, row_of("zb-2p"), p, 2 * p, &r);
        u.in.limits = NULL;
        memset(u.hops_s, 0, sizeof u.hops_s);
        u.hops_s[0] = u.hops_s[p - 1] = 6; /* between the first two ranks, there and back */
        assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
        real_s += x.run.longest_span_s;
        hv_arena_free(&x.a);
        u.in.hops_s = NULL;
        u.in.hop_s = 6;
        assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
        worst_s += x.run.longest_span_s;
        hv_arena_free(&x.a);
    }
    assert_true(real_s < worst_s);
}

/* the wall makespan of a schedule on the stages, hops and limits of `u`, memory for all */
static double span_of(const struct unequal *u, const char *name)
{
    struct unequal own = *u;
    struct fixture x;
    int32_t chunks = u->in.chunks;
    hv_schedule_input_init(&own.in, row_of(name), u->in.ranks, u->in.micro_batches);
    own.in.chunks = chunks;
    own.in.costs = own.costs;
    own.in.hops_s = own.hops_s;
    if (strcmp(name, "zb-list") == 0) {
        assert_int_equal(hv_schedule_set_int(&own.in, "memory", u->in.micro_batches, NULL), HV_OK);
    }
    assert_int_equal(make_unequal(&x, &own, NULL), HV_OK);
    double span_s = x.run.makespan_s;
    hv_arena_free(&x.a);
    return span_s;
}

/* zb-list: a slow rank among fast ones never waits once it has begun (its work, and the way of the
 * first micro-batch to it and of the last one back), where the order of ZB-V leaves it idle */
static void list_keeps_the_slowest_busy(void **state)
{
    (void)state;
    for (int32_t slow = 0; slow < 4; slow++) {
        struct unequal u = {0};
        hv_schedule_input_init(&u.in, row_of("zb-v"), 4, 16);
        for (int32_t s = 0; s < 8; s++) {
            double t = s == slow || s == 7 - slow ? 2 : 1;
            u.costs[s] = (struct hv_stage_cost){t, t, t};
        }
        double list_s = span_of(&u, "zb-list"), order_s = span_of(&u, "zb-v");
        assert_true(list_s >= 16 * 12);
        assert_true(list_s <= 16 * 12 + 2 * slow);
        assert_true(list_s <= order_s);
    }
}

enum { LIST_MB = 9, LIST_OPS = 3 * 2 * LIST_MB };

/* List scheduling as the head of sched_list.c says it, by looking at everything at every step. */
struct by_hand {
    const struct hv_schedule_input *in;
    int32_t p, n, m;
    int32_t done[3][MOST_STAGES], held[MOST_RANKS], n_ops[MOST_RANKS];
    double end[3][MOST_STAGES][LIST_MB], free_at[MOST_RANKS], last;
    struct hv_op ops[MOST_RANKS][LIST_OPS];
};

static int32_t owner_of(const struct by_hand *x, int32_t s)
{
    return s / x->p % 2 == 0 ? s % x->p : x->p - 1 - s % x->p;
}

/* start of the next F (0), B (1) or W (2) of a stage if its rank were free; infinite: not known */
static double start_of(const struct by_hand *x, int32_t rank, int k, int32_t s)
{
    int32_t mb = x->done[k][s], from = k == 0 ? s - 1 : s + 1;
    double limit = fmax(1, fmin(floor(hv__limit(x->in, rank, x->p)), x->m)) * x->n / x->p;
    bool room = x->held[rank] + x->n / x->p <= limit;
    if (mb >= x->m || (k > 0 && mb >= x->done[k - 1][s]) || (k == 0 && s < x->p && !room)) {
        return HUGE_VAL;
    }
    if (k == 2 || (k == 1 && from == x->n)) {
        return x->end[k - 1][s][mb];
    }
    if (k == 0 && s == 0) {
        return 0;
    }
    if (mb >= x->done[k][from]) {
        return HUGE_VAL;
    }
    bool same = owner_of(x, from) == rank;
    return x->end[k][from][mb] + (same ? 0 : hv__hop(x->in, from < s ? from : s, k == 1));
}

static double earliest(const struct by_hand *x, int32_t rank)
{
    double first = HUGE_VAL;
    for (int32_t s = 0; s < x->n; s++) {
        for (int k = 0; k < 3 && owner_of(x, s) == rank; k++) {
            first = fmin(first, start_of(x, rank, k, s));
        }
    }
    return fmax(first, x->free_at[rank]);
}

/* runs what the rank prefers of all that can begin now */
static void run_one(struct by_hand *x, int32_t rank, bool late_first)
{
    static const int order[] = {1, 0, 2}; /* B, F, W */
    static const enum hv_op_kind words[] = {HV_OP_F, HV_OP_B, HV_OP_W};
    double now = earliest(x, rank);
    int32_t best = -1, k = 0;
    for (int i = 0; i < 3 && best < 0; i++) {
        k = order[i];
        for (int32_t s = 0; s < x->n; s++) {
            if (owner_of(x, s) == rank && start_of(x, rank, k, s) <= now) {
                bool older = best >= 0 && x->done[k][s] < x->done[k][best];
                bool equal = best < 0 || x->done[k][s] == x->done[k][best];
                best = equal || late_first || older ? s : best;
            }
        }
    }
    struct hv_stage_cost c = hv__cost(x->in, best);
    int32_t mb = x->done[k][best]++;
    x->free_at[rank] = now + (k == 0 ? c.f_s : k == 1 ? c.b_s : c.w_s);
    x->end[k][best][mb] = x->free_at[rank];
    x->last = fmax(x->last, x->free_at[rank]);
    x->held[rank] += k == 0 && best < x->p ? x->n / x->p : k == 2 ? -1 : 0;
    x->ops[rank][x->n_ops[rank]++] =
        (struct hv_op){.kind = (uint8_t)words[k], .stage = best, .mb = mb};
}

static void list_by_hand(const struct hv_schedule_input *in, bool late_first, struct by_hand *x)
{
    *x = (struct by_hand){
        .in = in, .p = in->ranks, .n = in->ranks * in->chunks, .m = in->micro_batches};
    for (int32_t left = 3 * x->n * x->m; left > 0; left--) {
        int32_t rank = 0;
        for (int32_t r = 1; r < x->p; r++) {
            rank = earliest(x, r) < earliest(x, rank) ? r : rank;
        }
        run_one(x, rank, late_first);
    }
}

/* zb-list on random stages, hops and limits is list scheduling by hand; of ranks that can begin at
 * the same time, as with whole seconds they often can, the lowest goes first */
static void list_by_definition(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 83);
    for (int k = 0; k < 120; k++) {
        static struct by_hand early, late;
        struct unequal u;
        struct fixture x;
        fill(&u, row_of("zb-list"), 1 + k % MOST_RANKS, 1 + (int32_t)hv_rng_below(&r, LIST_MB), &r);
        u.in.chunks = 1 + k / MOST_RANKS % 2;
        for (int32_t s = 0; s < u.in.ranks * u.in.chunks; s++) {
            double t[3];
            for (int i = 0; i < 3; i++) {
                t[i] = k % 3 == 0 ? (double)hv_rng_below(&r, 3) : some(&r, 0, 4);
            }
            u.costs[s] = (struct hv_stage_cost){t[0], t[1], t[2]};
            u.hops_s[s] = u.hops_s[MOST_STAGES + s] = k % 2 ? some(&r, 0, 1) : 0;
        }
        assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
        list_by_hand(&u.in, false, &early);
        list_by_hand(&u.in, true, &late);
        const struct by_hand *want = late.last < early.last ? &late : &early;
        for (int32_t rank = 0; rank < x.s.n_ranks; rank++) {
            const struct hv_op *got = x.s.ops + x.s.rank_at[rank];
            assert_int_equal(x.s.rank_at[rank + 1] - x.s.rank_at[rank], want->n_ops[rank]);
            for (int32_t i = 0; i < want->n_ops[rank]; i++) {
                const struct hv_op *op = &want->ops[rank][i];
                assert_true(got[i].kind == op->kind && got[i].stage == op->stage &&
                            got[i].mb == op->mb);
            }
        }
        hv_arena_free(&x.a);
    }
}

/* zb-list is no worse than 1F1B over many cases, and much better over all of them */
static void list_beats_1f1b(void **state)
{
    (void)state;
    struct hv_rng r;
    double list_s = 0, plain_s = 0;
    hv_rng_seed(&r, 79);
    for (int k = 0; k < 200; k++) {
        struct unequal u;
        fill(&u, row_of("1f1b"), 2 + (int32_t)hv_rng_below(&r, 4), 12, &r);
        double mine_s = span_of(&u, "zb-list"), theirs_s = span_of(&u, "1f1b");
        assert_true(mine_s <= 1.05 * theirs_s);
        list_s += mine_s;
        plain_s += theirs_s;
    }
    assert_true(list_s < 0.96 * plain_s);
}

/* equal stages in V shape: 24 units of work for every two micro-batches, and the three units that
 * the last rank waits for its first; that is the optimum, and the memory of 1F1B is enough */
static void list_equals_zb_v(void **state)
{
    (void)state;
    struct fixture x;
    build(&x, "zb-list", 4, 8, 2, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    NEAR(x.run.makespan_s, 8 * 6 + 3);
    int32_t peak[4];
    hv_schedule_peak_inflight(&x.s, peak);
    for (int r = 0; r < 4; r++) {
        assert_true(peak[r] <= 2 * 4);
    }
    hv_arena_free(&x.a);
}

/* runs of unequal stages may end inside a period */
#define SETTLED 2e-3

/* a virtual worker of p ranks with n_m minibatches in flight, all ranks and hops alike where
 * `equal` says so: seconds per minibatch by HetPipe's formula, max(P, round trip / n_m) with the
 * slowest stage P, and by the run */
static void hetpipe_pace(struct hv_rng *r, bool equal, double *formula_s, double *run_s)
{
    enum { FILL = 420, MORE = 840 }; /* a multiple of every n_m, after which runs repeat */
    int32_t p = 2 + (int32_t)hv_rng_below(r, 7), n_m = 1 + (int32_t)hv_rng_below(r, (uint64_t)p);
    struct unequal u;
    struct fixture x;
    struct hv_steady steady;
    char in_flight[16];
    double longest_s = 0, round_s = 0, end_s[2];
    fill(&u, row_of("hetpipe"), p, FILL, r);
    u.in.limits = NULL;
    for (int32_t s = 0; s < p; s++) {
        if (equal) {
            u.costs[s] = u.costs[0];
            u.hops_s[s] = u.hops_s[p - 1 + s] = u.hops_s[0];
        }
        double own_s = u.costs[s].f_s + u.costs[s].b_s + u.costs[s].w_s;
        longest_s = fmax(longest_s, own_s);
        round_s += own_s + (s + 1 < p ? u.hops_s[s] + u.hops_s[p - 1 + s] : 0);
    }
    *formula_s = fmax(longest_s, round_s / n_m);
    snprintf(in_flight, sizeof in_flight, "%d", n_m);
    assert_int_equal(hv_schedule_set_option(&u.in, "in_flight", in_flight, NULL), HV_OK);
    for (int k = 0; k < 2; k++) {
        u.in.micro_batches = FILL + k * MORE;
        assert_int_equal(make_unequal(&x, &u, NULL), HV_OK);
        end_s[k] = x.run.makespan_s;
        if (k == 1 && hv_pipe_steady(&x.g, &x.cost, &steady, NULL) == HV_OK) {
            double got_s = (end_s[1] - end_s[0]) / MORE;
            assert_true(fabs(steady.per_micro_batch_s - got_s) <= SETTLED * got_s);
        }
        hv_arena_free(&x.a);
    }
    *run_s = (end_s[1] - end_s[0]) / MORE;
}

/* HetPipe, ATC'20, sections 4 and 7; with unequal stages it can be slower, never faster */
static void hetpipe_goes_at_its_formula(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 97);
    for (int i = 0; i < 300; i++) {
        bool equal = i % 2 == 0;
        double formula_s, run_s;
        hetpipe_pace(&r, equal, &formula_s, &run_s);
        if (equal) {
            NEAR(run_s, formula_s);
        }
        assert_true(run_s >= formula_s * (1 - SETTLED) && run_s <= 1.5 * formula_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_rows),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(wider_limits),
        cmocka_unit_test(adaptive_takes_the_shortest),
        cmocka_unit_test(tessel_takes_the_shortest),
        cmocka_unit_test(hops_are_real),
        cmocka_unit_test(list_keeps_the_slowest_busy),
        cmocka_unit_test(list_by_definition),
        cmocka_unit_test(list_beats_1f1b),
        cmocka_unit_test(list_equals_zb_v),
        cmocka_unit_test(hetpipe_goes_at_its_formula),
    };
    return cmocka_run_group_tests_name("sim/unequal", tests, NULL, NULL);
}
