/* Time, peak and bubble of schedules against closed forms and published tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim_fixture.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void closed_forms(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    for (int i = 0; i < 100; i++) {
        double p = (double)(2 + hv_rng_below(&r, 6)), rounds = (double)(2 + hv_rng_below(&r, 3));
        struct closed_input c = {.ranks = p, .micro_batches = p * rounds, .chunks = 1};
        c.f_s = some(&r, 8, 16);
        c.b_s = some(&r, 8, 16);
        c.w_s = some(&r, 4, 8);
        NEAR(makespan("gpipe", &c, NULL, NULL, 1), closed_gpipe_s(&c));
        NEAR(makespan("zb-h1", &c, NULL, NULL, 1), closed_zb_h1_s(&c));
        NEAR(makespan("zb-h2", &c, NULL, NULL, 1), closed_zb_h2_s(&c));
        NEAR(makespan("seq1f1b", &c, "slices", "4", 4), closed_seq1f1b_s(&c, 4));
        c.hop_s = 0.125;
        NEAR(makespan("1f1b", &c, NULL, NULL, 1), closed_1f1b_s(&c));
        c.hop_s = 0;
        c.chunks = 2;
        NEAR(makespan("interleaved", &c, NULL, NULL, 2), closed_interleaved_s(&c));
        NEAR(makespan("breadth-first", &c, NULL, NULL, 2), closed_interleaved_s(&c));
    }
}

/* ---- closed forms of peak and bubble over random sizes */

/* most activations on rank r, in those of a stage (of a slice, where there are) */
typedef int32_t peak_form(int32_t p, int32_t m, int32_t r);

static int32_t peak_all(int32_t p, int32_t m, int32_t r)
{
    (void)p, (void)r;
    return m;
}
static int32_t peak_1f1b(int32_t p, int32_t m, int32_t r)
{
    return min32(m, p - r);
}
static int32_t peak_early(int32_t p, int32_t m, int32_t r)
{
    return min32(m, 2 * (p - r) - 1);
}
static int32_t peak_interleaved(int32_t p, int32_t m, int32_t r)
{
    return min32(3 * m, 2 * (p - 1 - r) + 2 * p + 1);
}
static int32_t peak_thrice(int32_t p, int32_t m, int32_t r)
{
    (void)p, (void)r;
    return 3 * m;
}
static int32_t peak_seq1f1b(int32_t p, int32_t m, int32_t r)
{
    return min32(4 * m, p - 1 - r + 4);
}
static int32_t peak_zb_h1(int32_t p, int32_t m, int32_t r)
{
    (void)m, (void)r;
    return p;
}
static int32_t peak_zb_h2(int32_t p, int32_t m, int32_t r)
{
    (void)m, (void)r;
    return 2 * p - 1;
}
static int32_t peak_zb_v(int32_t p, int32_t m, int32_t r)
{
    (void)m, (void)r;
    return 2 * p;
}
static int32_t peak_dualpipe(int32_t p, int32_t m, int32_t r)
{
    (void)m, (void)r;
    return p + 1;
}
static int32_t peak_dualpipev(int32_t p, int32_t m, int32_t r)
{
    (void)m, (void)r;
    return 2 * p + 1;
}

/* peaks per rank: the papers named in the table of schedules; as counted on orders by other
 * people's programs */
static void peaks_in_closed_form(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key, *value;
        int32_t v, m_times_p; /* m is a multiple of p, at least this one; 0 = any m */
        peak_form *form;
    } rows[] = {
        {"gpipe", NULL, NULL, 1, 0, peak_all},
        {"1f1b", NULL, NULL, 1, 0, peak_1f1b},
        {"dapple", "early", "pa", 1, 0, peak_1f1b},
        {"dapple", "early", "pb", 1, 0, peak_early},
        {"pipedream", NULL, NULL, 1, 0, peak_1f1b},
        {"interleaved", NULL, NULL, 3, 1, peak_interleaved},
        {"breadth-first", NULL, NULL, 3, 0, peak_thrice},
        {"terapipe", "slices", "3", 1, 0, peak_thrice},
        {"seq1f1b", "slices", "4", 1, 0, peak_seq1f1b},
        {"zb-h1", NULL, NULL, 1, 1, peak_zb_h1},
        {"zb-h2", NULL, NULL, 1, 2, peak_zb_h2},
        {"zb-v", NULL, NULL, 2, 2, peak_zb_v},
        {"dualpipe", NULL, NULL, 1, 2, peak_dualpipe},
        {"dualpipev", NULL, NULL, 2, 2, peak_dualpipev},
    };
    struct hv_rng r;
    hv_rng_seed(&r, 13);
    for (int i = 0; i < 1000; i++) {
        size_t k = (size_t)hv_rng_below(&r, HV_COUNT(rows));
        int32_t p = 2 * (1 + (int32_t)hv_rng_below(&r, 6)), peaks[12];
        int32_t m = rows[k].m_times_p ? p * (rows[k].m_times_p + (int32_t)hv_rng_below(&r, 3))
                                      : 1 + (int32_t)hv_rng_below(&r, 30);
        struct fixture x;
        build(&x, rows[k].name, p, m, rows[k].v, rows[k].key, rows[k].value);
        hv_schedule_peak_inflight(&x.s, peaks);
        for (int32_t rank = 0; rank < p; rank++) {
            assert_int_equal(peaks[rank], rows[k].form(p, m, rank));
        }
        hv_arena_free(&x.a);
    }
}

/* longest spans: ZB-H1 m·S + (p − 1)·max(b, f + b − w), ZB-H2 m·S + (p − 1)·max(0, b − f, f + b −
 * 2w); GPipe with recompute (m + p − 1)·(2f + b + w); TeraPipe with k equal slices (mk + p − 1)·S
 */
static void spans_in_closed_form(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 17);
    for (int i = 0; i < 100; i++) {
        int32_t p = 2 + (int32_t)hv_rng_below(&r, 7), m = p * (2 + (int32_t)hv_rng_below(&r, 3));
        double f = some(&r, 8, 16), b = some(&r, 8, 16), w = some(&r, 4, 8), n = p - 1;
        struct fixture x;
        build(&x, "zb-h1", p, m, 1, NULL, NULL);
        price(&x, f, b, w, 0);
        NEAR(x.run.longest_span_s, m * (f + b + w) + n * fmax(b, f + b - w));
        hv_arena_free(&x.a);
        build(&x, "zb-h2", p, m, 1, NULL, NULL);
        price(&x, f, b, w, 0);
        NEAR(x.run.longest_span_s, m * (f + b + w) + n * fmax(0, fmax(b - f, f + b - 2 * w)));
        hv_arena_free(&x.a);
        build(&x, "gpipe", p, m, 1, "recompute", "full");
        price(&x, f, b, w, 0);
        NEAR(x.run.makespan_s, (m + n) * (2 * f + b + w));
        hv_arena_free(&x.a);
        build(&x, "terapipe", p, m, 1, "slices", "3");
        price(&x, f, b, w, 0);
        NEAR(x.run.makespan_s, (3 * m + n) * (f + b + w));
        hv_arena_free(&x.a);
        build(&x, "zb-v", p, m, 2, NULL, NULL);
        price(&x, 1, 1, 1, 0);
        NEAR(x.run.longest_span_s, 6 * m);
        NEAR(x.run.makespan_s, 6 * m + n);
        hv_arena_free(&x.a);
    }
}

/* idle time of DualPipe's middle ranks at f = b = w = 1: (p/2 − 1)·(FB + BW − 3w), FB the length of
 * an overlapped pair (DualPipe repository) */
static void dualpipe_in_closed_form(void **state)
{
    (void)state;
    for (int32_t p = 2; p <= 12; p += 2) {
        for (int32_t m = 2 * p; m <= 4 * p; m += 2) {
            struct fixture x;
            struct hv_pipe_rank idle[12];
            double fb = 2 + (double)(m % 3) / 2;
            build(&x, "dualpipe", p, m, 1, NULL, NULL);
            price(&x, 1, 1, 1, 0);
            double *pair_s = hv_arena_new(&x.a, double, (size_t)x.s.n_groups + 1);
            for (int32_t k = 0; k < x.s.n_groups; k++) {
                pair_s[k] = fb;
            }
            x.cost.pair_s = pair_s;
            hv_pipe_time(&x.g, &x.cost, &x.run);
            hv_pipe_idle(&x.g, &x.cost, &x.run, idle);
            NEAR(x.run.makespan_s - idle[p / 2].busy_s, (p / 2 - 1) * (fb + 2 - 3));
            hv_arena_free(&x.a);
        }
    }
}

/* bubble rates of Zero Bubble (ICLR'24), Table 5, from the times in ms of its Table 6: all rows,
 * all columns, to the four decimals printed */
struct published {
    int32_t p, m;
    double f, b, w, c;
    double bubble[6];
};

static const struct published table_5[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, {0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433}},
    {8, 32, 18.513, 18.086, 9.331, 0.626, {0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039}},
    {8, 64, 18.546, 18.097, 9.321, 0.762, {0.1240, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026}},
    {8, 24, 29.718, 29.444, 19.927, 0.527, {0.2347, 0.0808, 0.1323, 0.0698, 0.1323, 0.0029}},
    {8, 32, 29.802, 29.428, 19.530, 0.577, {0.1898, 0.0628, 0.1045, 0.0559, 0.1045, 0.0022}},
    {8, 64, 29.935, 29.621, 19.388, 0.535, {0.1091, 0.0320, 0.0554, 0.0294, 0.0554, 0.0010}},
    {16, 48, 11.347, 11.248, 8.132, 0.377, {0.2552, 0.1104, 0.1397, 0.0672, 0.1397, 0.0066}},
    {16, 64, 11.307, 11.254, 8.101, 0.379, {0.2082, 0.0852, 0.1088, 0.0516, 0.1088, 0.0054}},
    {16, 128, 11.325, 11.308, 8.109, 0.378, {0.1251, 0.0445, 0.0576, 0.0266, 0.0576, 0.0028}},
    {32, 96, 10.419, 10.207, 7.715, 0.408, {0.2646, 0.1493, 0.1421, 0.0641, 0.1421, 0.0038}},
    {32, 128, 10.408, 10.204, 7.703, 0.408, {0.2168, 0.1164, 0.1106, 0.0490, 0.1106, 0.0029}},
    {32, 256, 10.402, 10.248, 7.698, 0.460, {0.1352, 0.0624, 0.0594, 0.0257, 0.0594, 0.0018}},
};

/* chunks per rank behind the column 1F1B-I: v = 3, 4, 3, 2 for the four models */
static const int32_t table_5_chunks[] = {3, 4, 3, 2};

static double bubble_of(const struct published *t, const char *name)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct fixture x = {0};
    assert_int_equal(hv_schedule_find(name, &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, t->p, t->m);
    in.cost = (struct hv_stage_cost){t->f, t->b, t->w};
    in.hop_s = t->c;
    assert_int_equal(hv_schedule_make(&x.a, &in, &x.s, NULL), HV_OK);
    assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
    price(&x, t->f, t->b, t->w, t->c);
    double bubble = x.run.span_bubble_frac;
    hv_arena_free(&x.a);
    return bubble;
}

/* the column 1F1B-I charges p(2v − 1) − 2 hops, p fewer than an order with every hop at its place
 */
static double bubble_1f1b_i(const struct published *t, int32_t v)
{
    struct closed_input c = {
        .ranks = t->p, .micro_batches = t->m, .chunks = v, .f_s = t->f, .b_s = t->b, .w_s = t->w};
    double work = t->m * (t->f + t->b + t->w);
    double cost = closed_interleaved_s(&c) + (t->p * (2 * v - 1) - 2) * t->c;
    return (cost - work) / cost;
}

static void published_bubbles(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b", NULL, "zb-h1", "zb-h2", "zb-1p", "zb-2p"};
    for (size_t i = 0; i < HV_COUNT(table_5) * HV_COUNT(names); i++) {
        const struct published *t = &table_5[i / HV_COUNT(names)];
        size_t k = i % HV_COUNT(names);
        double got = names[k] ? bubble_of(t, names[k])
                              : bubble_1f1b_i(t, table_5_chunks[i / HV_COUNT(names) / 3]);
        if (fabs(got - t->bubble[k]) > 0.5001e-4) {
            print_error("p = %d, m = %d, column %zu: %.6f instead of %.4f\n", t->p, t->m, k, got,
                        t->bubble[k]);
        }
        assert_true(fabs(got - t->bubble[k]) <= 0.5001e-4);
    }
}

/* with f = b = w the heuristic with twice the memory, and ZB-V, leave no bubble in the span */
static void zero_bubble_has_none(void **state)
{
    (void)state;
    struct fixture x;
    build(&x, "zb-2p", 4, 12, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    NEAR(x.run.longest_span_s, 36);
    NEAR(x.run.span_bubble_frac, 0);
    assert_true(x.run.makespan_s > 36);
    hv_arena_free(&x.a);
    build(&x, "zb-v", 4, 8, 2, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    NEAR(x.run.longest_span_s, 48);
    hv_arena_free(&x.a);
}

/*
 * Bubbles in chunk slots (f = b = w = 1, m ≥ 2p) of the controllable-memory family, NeurIPS'24:
 * V-Half 3p − 7 (p even), 3p − 4 (p odd); V-Min 4p − 7 (3 divides p), else 4p − 5; 1F1B-V as run
 * with its authors' program.
 */
static void controllable_memory(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t p;
        double bubble;
        int32_t peak; /* chunk activations on the worst rank */
    } cases[] = {
        {"v-half", 4, 5, 6},   {"v-half", 5, 11, 6},  {"v-half", 8, 17, 10}, {"v-min", 4, 11, 4},
        {"v-min", 6, 17, 6},   {"v-min", 8, 27, 8},   {"1f1b-v", 4, 15, 6},  {"1f1b-v", 5, 18, 8},
        {"1f1b-v", 6, 22, 10}, {"1f1b-v", 8, 33, 12},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct fixture x;
        int32_t peaks[8], most = 0;
        build(&x, cases[i].name, cases[i].p, 2 * cases[i].p, 2, NULL, NULL);
        price(&x, 1, 1, 1, 0);
        NEAR(x.run.longest_span_s - 6 * 2 * cases[i].p, cases[i].bubble);
        hv_schedule_peak_inflight(&x.s, peaks);
        for (int32_t r = 0; r < cases[i].p; r++) {
            most = peaks[r] > most ? peaks[r] : most;
        }
        assert_int_equal(most, cases[i].peak);
        hv_arena_free(&x.a);
    }
}

/*
 * Chimera, SC'21: with forward and backward equal, N micro-batches (a multiple of D) on D ranks
 * take 2N + D/f − 2 slots, and with two pipes rank r holds D/2 + 1 + min(r, D − 1 − r) of them;
 * with a backward of two slots and N = D, D = 4 takes 16. Hanayo, SC'23, one wave, m = p: p·(T_F +
 * T_B) + (p − 1)·max(T_F, T_B), times of a whole rank.
 */
static void waves_and_two_ways(void **state)
{
    (void)state;
    for (int32_t d = 2; d <= 16; d += 2) {
        for (int32_t f = 1; 2 * f <= d; f++) {
            if (d % (2 * f) != 0) {
                continue;
            }
            struct fixture x;
            char pipes[16];
            int32_t n = d * (1 + f % 3), peaks[16];
            snprintf(pipes, sizeof pipes, "%d", 2 * f);
            build(&x, "chimera", d, n, 1, "pipes", pipes);
            price(&x, 2, 1, 1, 0);
            NEAR(x.run.makespan_s, 2 * (2 * n + d / f - 2));
            hv_schedule_peak_inflight(&x.s, peaks);
            for (int32_t r = 0; r < d && f == 1; r++) {
                assert_int_equal(peaks[r], d / 2 + 1 + (r < d - 1 - r ? r : d - 1 - r));
            }
            hv_arena_free(&x.a);
        }
    }
    struct fixture x;
    build(&x, "chimera", 4, 4, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    NEAR(x.run.makespan_s, 16);
    hv_arena_free(&x.a);
    for (int32_t p = 1; p <= 8; p++) {
        build(&x, "hanayo", p, p, 2, NULL, NULL);
        price(&x, 0.5, 0.5, 0.5, 0);
        NEAR(x.run.makespan_s, 3 * p + 2 * (p - 1));
        hv_arena_free(&x.a);
    }
}

/* the overlapped pair counts once; default duration = the sum */
static void pairs(void **state)
{
    (void)state;
    struct fixture x;
    build(&x, "dualpipe", 4, 8, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    double plain = x.run.makespan_s;
    NEAR(x.run.busy_s, 4 * 8 * 3);
    double *pair = hv_arena_new(&x.a, double, (size_t)x.s.n_groups);
    for (int32_t i = 0; i < x.s.n_groups; i++) {
        pair[i] = 2;
    }
    x.cost.pair_s = pair;
    hv_pipe_time(&x.g, &x.cost, &x.run);
    NEAR(x.run.busy_s, 4 * 8 * 3 - (double)x.s.n_groups);
    assert_true(x.run.makespan_s < plain);
    hv_arena_free(&x.a);
}

/* BPipe, ICML'23: nobody holds more than p/2 + 1 activations, and bytes say the same as counts;
 * time as 1F1B */
static void balanced_memory(void **state)
{
    (void)state;
    for (int32_t p = 2; p <= 16; p += 2) {
        struct fixture x;
        int32_t count[16];
        struct hv_pipe_peak peaks[16];
        double act[16], start[16 * HV_OP_KIND_N], end[16 * HV_OP_KIND_N];
        struct closed_input c = {.ranks = p, .micro_batches = 2 * p, .f_s = 1, .b_s = 2};
        build(&x, "bpipe", p, 2 * p, 1, NULL, NULL);
        price(&x, 1, 1, 1, 0);
        NEAR(x.run.makespan_s, closed_1f1b_s(&c));
        for (int32_t r = 0; r < p; r++) {
            act[r] = 3;
        }
        hv_pipe_memory_simple(&x.s, act, NULL, NULL, start, end);
        struct hv_pipe_memory mem = {.start_bytes = start, .end_bytes = end};
        hv_schedule_peak_inflight(&x.s, count);
        hv_pipe_peaks(&x.g, &x.run, &mem, peaks);
        int32_t sum = 0;
        for (int32_t r = 0; r < p; r++) {
            assert_true(count[r] <= p / 2 + 1);
            NEAR(peaks[r].peak_bytes, 3.0 * count[r]);
            sum += count[r];
        }
        assert_int_equal(sum, p * (p + 1) / 2); /* as without */
        hv_arena_free(&x.a);
    }
}

/* Tessel, HPCA'24, on a chain with the memory of 1F1B: no bubble in the middle, so the time of
 * 1F1B; with less, no rank holds more than it may, and a limit of one runs micro-batches one by one
 */
static void repetends_of_a_chain(void **state)
{
    (void)state;
    for (int32_t p = 1; p <= 5; p++) {
        struct closed_input c = {.ranks = p, .micro_batches = 12, .chunks = 1, .f_s = 1, .b_s = 2};
        NEAR(makespan("tessel", &c, NULL, NULL, 1), closed_1f1b_s(&c));
        NEAR(makespan("tessel", &c, "memory", "1", 1), 12 * 3 * p);
        for (int32_t limit = 1; limit <= p; limit++) {
            struct fixture x;
            int32_t peaks[5];
            char text[16];
            snprintf(text, sizeof text, "%d", limit);
            build(&x, "tessel", p, 12, 1, "memory", text);
            hv_schedule_peak_inflight(&x.s, peaks);
            for (int32_t r = 0; r < p; r++) {
                assert_true(peaks[r] <= limit);
            }
            hv_arena_free(&x.a);
        }
    }
}

/* AutoPipe, CLUSTER'22: with the warm-up in halves, 1F1B ends (p − 1)·f/2 earlier as long as a
 * backward takes at least as long as a forward */
static void a_warm_up_in_halves(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 37);
    for (int i = 0; i < 100; i++) {
        struct closed_input c = {.ranks = (double)(1 + hv_rng_below(&r, 9)), .chunks = 1};
        c.micro_batches = c.ranks + (double)hv_rng_below(&r, 20);
        c.f_s = some(&r, 1, 4);
        c.b_s = c.f_s + some(&r, 0, 4);
        NEAR(makespan("autopipe", &c, NULL, NULL, 1),
             closed_1f1b_s(&c) - (c.ranks - 1) * c.f_s / 2);
    }
}

/* a recompute right after its forward is free with except-last and only there */
static void free_recompute(void **state)
{
    (void)state;
    struct fixture x;
    build(&x, "gpipe", 3, 4, 1, "recompute", "full");
    price(&x, 2, 2, 2, 0);
    NEAR(x.run.makespan_s, 6 * 8);
    hv_arena_free(&x.a);
    build(&x, "gpipe", 3, 4, 1, "recompute", "except-last");
    price(&x, 2, 2, 2, 0);
    NEAR(x.run.makespan_s, 6 * 8 - 2);
    hv_arena_free(&x.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),         cmocka_unit_test(peaks_in_closed_form),
        cmocka_unit_test(spans_in_closed_form), cmocka_unit_test(dualpipe_in_closed_form),
        cmocka_unit_test(published_bubbles),    cmocka_unit_test(zero_bubble_has_none),
        cmocka_unit_test(controllable_memory),  cmocka_unit_test(waves_and_two_ways),
        cmocka_unit_test(balanced_memory),      cmocka_unit_test(a_warm_up_in_halves),
        cmocka_unit_test(repetends_of_a_chain), cmocka_unit_test(pairs),
        cmocka_unit_test(free_recompute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
