/* Chain partition: every solver against enumeration on thousands of small random instances. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/chain/partition.h"

enum { MAX_L = 9, MAX_S = 5 };

/* A random instance with its arrays. */
struct inst {
    double time[MAX_S][MAX_L + 1], memory[MAX_S][MAX_L + 1], cut[MAX_S][MAX_L + 1],
        toll[MAX_S][MAX_L + 1];
    double table[MAX_S][(MAX_L + 1) * (MAX_L + 1)];
    const double *cuts[MAX_S], *tolls[MAX_S];
    struct hv_part_stage stage[MAX_S];
    struct hv_partition p;
};

static double draw(struct hv_rng *rng, bool whole)
{
    return whole ? (double)hv_rng_below(rng, 6) : 5 * hv_rng_double(rng);
}

static void fill_stage(struct hv_rng *rng, struct inst *in, size_t s, bool whole)
{
    size_t L = in->p.n_layers;
    for (size_t j = 0; j < L; j++) {
        in->time[s][j + 1] = in->time[s][j] + draw(rng, whole);
        in->memory[s][j + 1] = in->memory[s][j] + draw(rng, whole);
        in->cut[s][j] = 0.5 * draw(rng, whole);
    }
    in->cuts[s] = in->cut[s];
    in->tolls[s] = in->toll[s];
    in->stage[s] = (struct hv_part_stage){
        .time = in->time[s], .memory = in->memory[s], .capacity = 4 + 12 * hv_rng_double(rng)};
    if (hv_rng_below(rng, 3) == 0) {
        in->stage[s].capacity = HUGE_VAL;
    }
}

static void make(struct hv_rng *rng, struct inst *in)
{
    bool whole = hv_rng_below(rng, 2);
    memset(in, 0, sizeof *in);
    in->p.n_layers = 1 + hv_rng_below(rng, MAX_L);
    in->p.n_stages = 1 + hv_rng_below(rng, MAX_S);
    in->p.stages = in->stage;
    in->p.min_layers = hv_rng_below(rng, 5) ? hv_rng_below(rng, 2) : 2;
    in->p.max_weight = 1;
    for (size_t s = 0; s < in->p.n_stages; s++) {
        fill_stage(rng, in, s, whole);
    }
    if (hv_rng_below(rng, 2)) {
        in->p.cuts = in->cuts;
    }
    for (size_t s = 1; s < in->p.n_stages; s++) { /* equal devices, for free order */
        if (hv_rng_below(rng, 2)) {
            in->stage[s].time = in->stage[s - 1].time;
            in->stage[s].capacity = in->stage[s - 1].capacity;
        }
    }
    if (hv_rng_below(rng, 6) == 0) {
        size_t n = in->p.n_layers + 1;
        for (size_t k = 0; k < n * n; k++) {
            in->table[0][k] = hv_rng_below(rng, 8) ? draw(rng, whole) : HUGE_VAL;
        }
        in->stage[0].table = in->table[0];
    }
}

/* All layers alike, cuts alike. */
static void make_even(struct hv_rng *rng, struct inst *in)
{
    bool whole = hv_rng_below(rng, 2);
    for (size_t s = 0; s < in->p.n_stages; s++) {
        double time = draw(rng, whole), memory = draw(rng, whole), cut = draw(rng, whole);
        for (size_t j = 0; j <= in->p.n_layers; j++) {
            in->time[s][j] = (double)j * time;
            in->memory[s][j] = (double)j * memory;
            in->cut[s][j] = cut;
        }
        in->stage[s].time = in->time[s];
        in->stage[s].table = NULL;
    }
}

/* What an enumeration minimises. */
struct goal {
    const struct hv_part_weights *w; /* or the instance's own weights */
    double limit;
};

static double judge(const struct hv_partition *p, const struct goal *g, const double *v, size_t n)
{
    double sum = 0, max = 0, tail = 0;
    size_t k = 0;
    for (size_t s = 0; s < n; s++) {
        sum += v[s];
        if (v[s] >= max) {
            max = v[s];
            k = s;
        }
    }
    if (max > g->limit) {
        return HUGE_VAL;
    }
    if (!g->w) {
        return p->sum_weight * sum + p->max_weight * max;
    }
    for (size_t s = k; s < n; s++) {
        tail += v[s];
    }
    return sum + (g->w->c0 + g->w->c1 * (double)k) * v[k] + g->w->tail * tail;
}

/* The value of a run by its definition, written independently of the solver. */
static double run_value(const struct hv_partition *p, size_t pos, size_t dev, size_t i, size_t j)
{
    const struct hv_part_stage *m = &p->stages[pos], *d = &p->stages[dev];
    double v = d->table ? d->table[i * (p->n_layers + 1) + j] : d->time[j] - d->time[i];
    if (m->memory[j] - m->memory[i] > d->capacity + 1e-12 || j - i < p->min_layers) {
        return HUGE_VAL;
    }
    if (p->cuts && pos > 0 && i > 0 && i < p->n_layers) {
        v += p->cuts[pos - 1][i];
    }
    if (p->cuts && pos + 1 < p->n_stages && j > 0 && j < p->n_layers) {
        v += p->cuts[pos][j];
    }
    return v;
}

static double brute(const struct hv_partition *p, const struct goal *g, double *v, size_t s,
                    size_t i, unsigned used)
{
    double best = HUGE_VAL;
    if (i == p->n_layers && s > 0 && (s == p->n_stages || p->any_stages)) {
        best = judge(p, g, v, s);
    }
    if (s == p->n_stages) {
        return best;
    }
    for (size_t dev = 0; dev < p->n_stages; dev++) {
        if (p->free_order ? (used >> dev & 1) : dev != s) {
            continue;
        }
        for (size_t j = i; j <= p->n_layers; j++) {
            bool paid = p->tolls && s + 1 < p->n_stages && j > 0 && j < p->n_layers;
            double toll = paid ? p->sum_weight * p->tolls[s][j] : 0;
            v[s] = run_value(p, s, dev, i, j);
            if (!isinf(v[s])) {
                best = fmin(best, toll + brute(p, g, v, s + 1, j, used | 1u << dev));
            }
        }
    }
    return best;
}

static void same(const struct hv_partition *p, const struct hv_partition_result *r, double want,
                 int at)
{
    if (isinf(want)) {
        assert_false(r->feasible);
        return;
    }
    assert_true(r->feasible && r->proven);
    if (fabs(r->objective - want) > 1e-9 * fmax(1, want)) {
        fail_msg("case %d: %.12g, enumeration says %.12g", at, r->objective, want);
    }
    unsigned used = 0;
    for (size_t s = 0, i = 0; s < r->n_stages; i = r->cut[s++]) {
        double v = run_value(p, s, r->order[s], i, r->cut[s]);
        assert_true(fabs(v - r->value[s]) < 1e-9);
        assert_false(used >> r->order[s] & 1);
        used |= 1u << r->order[s];
    }
    assert_true(r->cut[r->n_stages - 1] == p->n_layers);
}

static void sums_and_maxima_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    double v[MAX_S];
    int even = 0;
    hv_rng_seed(&rng, 7);
    for (int k = 0; k < 16000; k++) {
        struct inst in;
        struct hv_arena arena = {0};
        struct hv_partition_result r;
        const struct goal g = {NULL, HUGE_VAL};
        make(&rng, &in);
        in.p.any_stages = hv_rng_below(&rng, 4) == 0;
        if (hv_rng_below(&rng, 2)) {
            in.p.sum_weight = 1;
            in.p.max_weight = (double)hv_rng_below(&rng, 9);
        }
        in.p.free_order = k % 4 == 3;
        if (k % 4 == 1) { /* paid once, by the sum */
            for (size_t s = 0; s < in.p.n_stages; s++) {
                for (size_t j = 0; j <= in.p.n_layers; j++) {
                    in.toll[s][j] = 4 * hv_rng_double(&rng);
                }
            }
            in.p.tolls = in.tolls;
        }
        if (k % 8 == 0 || k % 8 == 2) {
            make_even(&rng, &in);
        }
        assert_int_equal(hv_partition_check(&in.p, NULL), HV_OK);
        assert_int_equal(hv_partition_solve(&in.p, NULL, &arena, &r, NULL), HV_OK);
        even += r.method && strcmp(r.method, "identical-layers") == 0;
        same(&in.p, &r, brute(&in.p, &g, v, 0, 0, 0), k);
        hv_arena_free(&arena);
    }
    assert_true(even > 500);
}

static enum hv_status plain_sum(void *ctx, const double *value, size_t n, double *out,
                                struct hv_err *err)
{
    (void)ctx;
    (void)err;
    *out = 0;
    for (size_t s = 0; s < n; s++) {
        *out += value[s];
    }
    return HV_OK;
}

static void other_objectives_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    double v[MAX_S];
    hv_rng_seed(&rng, 11);
    for (int k = 0; k < 6000; k++) {
        struct inst in;
        struct hv_arena arena = {0};
        struct hv_partition_result r;
        make(&rng, &in);
        const struct hv_part_weights w = {(double)hv_rng_below(&rng, 6),
                                          (double)hv_rng_below(&rng, 3),
                                          (double)hv_rng_below(&rng, 3)};
        struct goal g = {&w, HUGE_VAL};
        assert_int_equal(hv_partition_weighted(&in.p, &w, NULL, &arena, &r, NULL), HV_OK);
        same(&in.p, &r, brute(&in.p, &g, v, 0, 0, 0), k);
        in.p.sum_weight = 1;
        in.p.max_weight = 0;
        g.w = NULL;
        assert_int_equal(hv_partition_combine(&in.p, plain_sum, NULL, &arena, &r, NULL), HV_OK);
        same(&in.p, &r, brute(&in.p, &g, v, 0, 0, 0), k);
        g.limit = 2 + 8 * hv_rng_double(&rng);
        assert_int_equal(hv_partition_min_sum(&in.p, g.limit, &arena, &r, NULL), HV_OK);
        same(&in.p, &r, brute(&in.p, &g, v, 0, 0, 0), k);
        hv_arena_free(&arena);
    }
}

/* Oobleck's template objective, T = T1 + T2 + T3 with T2 = (2S + k + 1)·t_k (csrc/planning of the
 * SOSP'23 artifact, commit 3b7a0c2): layers 2, 4, 6 in two stages give 54, layers 1 … 6 in three
 * stages 6 | 9 | 6 and 108. */
static void slowest_stage_weights_of_the_literature(void **state)
{
    (void)state;
    const double few[] = {0, 2, 6, 12}, many[] = {0, 1, 3, 6, 10, 15, 21};
    const struct hv_part_stage a = {.time = few, .capacity = HUGE_VAL},
                               b = {.time = many, .capacity = HUGE_VAL};
    const struct hv_part_stage two[] = {a, a}, three[] = {b, b, b};
    struct hv_partition p = {.n_layers = 3, .n_stages = 2, .stages = two, .min_layers = 1};
    struct hv_part_weights w = {2 * 2 + 1, 1, 1};
    struct hv_arena arena = {0};
    struct hv_partition_result r;
    assert_int_equal(hv_partition_weighted(&p, &w, NULL, &arena, &r, NULL), HV_OK);
    assert_true(r.objective == 54 && r.cut[0] == 2);
    p = (struct hv_partition){.n_layers = 6, .n_stages = 3, .stages = three, .min_layers = 1};
    w.c0 = 2 * 3 + 1;
    assert_int_equal(hv_partition_weighted(&p, &w, NULL, &arena, &r, NULL), HV_OK);
    assert_true(r.objective == 108 && r.cut[0] == 3 && r.cut[1] == 5);
    assert_true(r.value[0] == 6 && r.value[1] == 9 && r.value[2] == 6);
    hv_arena_free(&arena);
}

/* Plain O(L² S) program for instances too large to enumerate. */
static double plain_program(const struct hv_partition *p, double *best, double *next)
{
    size_t L = p->n_layers;
    for (size_t j = 0; j <= L; j++) {
        best[j] = j ? HUGE_VAL : 0;
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        for (size_t j = 0; j <= L; j++) {
            next[j] = HUGE_VAL;
            for (size_t i = 0; i <= j; i++) {
                if (!isinf(best[i])) {
                    next[j] = fmin(next[j], fmax(best[i], run_value(p, s, s, i, j)));
                }
            }
        }
        memcpy(best, next, (L + 1) * sizeof *best);
    }
    return best[L];
}

static void larger_chains_match_the_plain_program(void **state)
{
    (void)state;
    enum { L = 60, S = 12 };
    static const double speed[] = {65, 125, 312, 989};
    struct hv_rng rng;
    hv_rng_seed(&rng, 5);
    for (int k = 0; k < 300; k++) {
        double time[4][L + 1] = {{0}}, memory[S][L + 1] = {{0}}, cut[S][L + 1] = {{0}},
                           work[2][L + 1];
        const double *cuts[S];
        struct hv_part_stage stage[S];
        for (size_t s = 0; s < S; s++) {
            for (size_t j = 0; j < L; j++) {
                double w = 0.5 + hv_rng_double(&rng);
                if (s < 4) {
                    time[s][j + 1] = time[s][j] + 1000 * w / speed[s];
                }
                memory[s][j + 1] = memory[s][j] + w * (1 + 0.1 * (double)(S - s));
                cut[s][j] = k % 3 ? 4 * hv_rng_double(&rng) : 2;
            }
            cuts[s] = cut[s];
            stage[s] = (struct hv_part_stage){.time = time[hv_rng_below(&rng, 4)],
                                              .memory = memory[s],
                                              .capacity = 8 + 10 * hv_rng_double(&rng)};
        }
        struct hv_partition p = {.n_layers = L,
                                 .n_stages = S,
                                 .stages = stage,
                                 .cuts = cuts,
                                 .min_layers = hv_rng_below(&rng, 3),
                                 .max_weight = 1};
        struct hv_arena arena = {0};
        struct hv_partition_result r;
        assert_int_equal(hv_partition_solve(&p, NULL, &arena, &r, NULL), HV_OK);
        same(&p, &r, plain_program(&p, work[0], work[1]), k);
        hv_arena_free(&arena);
    }
}

/* Layers of 3 and 2 GiB, capacities of 5 and 9: 1 | 5 needs 10 in the second stage. */
static void infeasible_says_why_and_by_how_much(void **state)
{
    (void)state;
    const double time[] = {0, 1, 2, 3, 4, 5, 6}, three[] = {0, 3, 6, 9, 12, 15, 18};
    const double two[] = {0, 2, 4, 6, 8, 10, 12};
    struct hv_part_stage s[] = {{.time = time, .memory = three, .capacity = 5},
                                {.time = time, .memory = two, .capacity = 9}};
    struct hv_partition p = {
        .n_layers = 6, .n_stages = 2, .stages = s, .min_layers = 1, .max_weight = 1};
    struct hv_arena arena = {0};
    struct hv_partition_result r;
    assert_int_equal(hv_partition_solve(&p, NULL, &arena, &r, NULL), HV_OK);
    assert_true(!r.feasible && r.proven);
    assert_non_null(strstr(r.proof, "layers 1 to 5 of 6"));
    assert_non_null(strstr(r.proof, "1.1112 times")); /* 10 / 9 */
    s[1].capacity = 10;
    assert_int_equal(hv_partition_solve(&p, NULL, &arena, &r, NULL), HV_OK);
    assert_true(r.feasible);
    s[0].capacity = 2;
    assert_int_equal(hv_partition_solve(&p, NULL, &arena, &r, NULL), HV_OK);
    assert_non_null(strstr(r.proof, "layers")); /* the first stage cannot hold one layer */
    p.min_layers = 4;
    assert_int_equal(hv_partition_solve(&p, NULL, &arena, &r, NULL), HV_OK);
    assert_non_null(strstr(r.proof, "need 8 layers, there are 6: 2 too few"));
    hv_arena_free(&arena);
}

static void bad_instances_are_refused(void **state)
{
    (void)state;
    const double ok[] = {0, 1, 2}, falls[] = {0, 2, 1};
    struct hv_part_stage s = {.time = ok, .capacity = 1};
    struct hv_partition p = {.n_layers = 2, .n_stages = 1, .stages = &s, .max_weight = 1};
    struct hv_err err = {0};
    assert_int_equal(hv_partition_check(&p, &err), HV_OK);
    s.time = falls;
    assert_int_equal(hv_partition_check(&p, &err), HV_EINPUT);
    s.time = ok;
    s.capacity = (double)NAN;
    assert_int_equal(hv_partition_check(&p, &err), HV_EINPUT);
    s.capacity = 1;
    const double *const tolls[] = {ok};
    p.tolls = tolls;
    p.free_order = true;
    assert_int_equal(hv_partition_check(&p, &err), HV_EINPUT);
    p.free_order = false;
    p.n_layers = 0;
    assert_int_equal(hv_partition_check(&p, &err), HV_EINPUT);
}

/* Ends a search at a given question. */
struct patience {
    int left;
};

static bool out_of_patience(void *ctx)
{
    struct patience *p = ctx;
    return p->left-- <= 0;
}

/* Wherever it is stopped, a free order has an answer and a bound on either side of the optimum. */
static void a_free_order_can_be_stopped_anywhere(void **state)
{
    (void)state;
    enum { L = 40, S = 16 };
    static const double speed[] = {1, 2, 5, 15};
    double time[4][L + 1] = {{0}}, cut[L + 1];
    const double *cuts[S];
    struct hv_part_stage stage[S];
    struct hv_rng rng;
    hv_rng_seed(&rng, 3);
    for (size_t l = 0; l <= L; l++) {
        cut[l] = 0.1 * hv_rng_double(&rng);
    }
    for (size_t l = 0; l < L; l++) {
        double t = 1 + hv_rng_double(&rng);
        for (size_t k = 0; k < 4; k++) {
            time[k][l + 1] = time[k][l] + t / speed[k];
        }
    }
    for (size_t s = 0; s < S; s++) {
        stage[s] = (struct hv_part_stage){.time = time[s % 4], .capacity = HUGE_VAL};
        cuts[s] = cut;
    }
    for (int sum = 0; sum < 2; sum++) {
        const struct hv_partition p = {.n_layers = L,
                                       .n_stages = S,
                                       .stages = stage,
                                       .cuts = cuts,
                                       .min_layers = 1,
                                       .sum_weight = sum,
                                       .max_weight = 1,
                                       .free_order = true};
        struct hv_arena arena = {0};
        struct hv_partition_result best, r;
        assert_int_equal(hv_partition_solve(&p, NULL, &arena, &best, NULL), HV_OK);
        assert_true(best.proven);
        for (int n = 0; n < 6; n++) {
            struct patience patience = {n};
            const struct hv_solve_limits limits = {.cancel = out_of_patience, .ctx = &patience};
            assert_int_equal(hv_partition_solve(&p, &limits, &arena, &r, NULL), HV_OK);
            assert_true(r.feasible && r.objective >= best.objective - 1e-9);
            assert_true(r.bound <= best.objective + 1e-9);
            assert_true(r.stopped || r.proven);
            assert_true(n > 0 || (r.stopped && !r.proven));
        }
        hv_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_maxima_match_enumeration),
        cmocka_unit_test(other_objectives_match_enumeration),
        cmocka_unit_test(slowest_stage_weights_of_the_literature),
        cmocka_unit_test(larger_chains_match_the_plain_program),
        cmocka_unit_test(infeasible_says_why_and_by_how_much),
        cmocka_unit_test(bad_instances_are_refused),
        cmocka_unit_test(a_free_order_can_be_stopped_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
