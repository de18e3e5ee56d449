/* Several chunks per rank: placements by hand, answers against enumeration, the closed form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/chain/chunks.h"

enum { MAX_L = 9, MAX_S = 6, MAX_R = 3, BIG_L = 64 };

static void placements_are_loops_and_folds(void **state)
{
    (void)state;
    static const size_t loop[] = {0, 1, 2, 0, 1, 2}, fold[] = {0, 1, 2, 2, 1, 0, 0, 1, 2};
    size_t rank[9];
    hv_partition_place(HV_PLACE_LOOP, 3, 2, rank);
    assert_memory_equal(rank, loop, sizeof loop);
    hv_partition_place(HV_PLACE_FOLD, 3, 3, rank);
    assert_memory_equal(rank, fold, sizeof fold);
}

/* A random instance with its arrays. */
struct inst {
    double time[MAX_S][BIG_L + 1], memory[MAX_S][BIG_L + 1], cut[MAX_S][BIG_L + 1];
    const double *cuts[MAX_S];
    struct hv_part_stage stage[MAX_S];
    size_t rank[MAX_S];
    struct hv_part_chunks c;
};

/* even: identical layers, the same times in all chunks of a rank. */
static void make(struct hv_rng *rng, struct inst *in, size_t L, bool even)
{
    size_t R = 1 + hv_rng_below(rng, MAX_R), passes = 1 + hv_rng_below(rng, MAX_S / R);
    double capacity[MAX_R];
    memset(in, 0, sizeof *in);
    hv_partition_place(hv_rng_below(rng, 2) ? HV_PLACE_LOOP : HV_PLACE_FOLD, R, passes, in->rank);
    for (size_t r = 0; r < R; r++) {
        capacity[r] = hv_rng_below(rng, 2) ? HUGE_VAL : (0.5 + hv_rng_double(rng)) * 3 * (double)L;
    }
    for (size_t s = 0; s < R * passes; s++) {
        double t = 1 + 4 * hv_rng_double(rng), m = 1 + 4 * hv_rng_double(rng), c = 2 * t;
        for (size_t j = 0; j < L; j++) {
            in->time[s][j + 1] = in->time[s][j] + (even ? t : 5 * hv_rng_double(rng));
            in->memory[s][j + 1] = in->memory[s][j] + (even ? m : 5 * hv_rng_double(rng));
            in->cut[s][j] = even ? c : 2 * hv_rng_double(rng);
        }
        in->cuts[s] = in->cut[s];
        in->stage[s] = (struct hv_part_stage){
            .time = in->time[s], .memory = in->memory[s], .capacity = capacity[in->rank[s]]};
        if (even && s >= R) {
            for (size_t q = 0; q < R; q++) {
                if (in->rank[q] == in->rank[s]) {
                    in->stage[s].time = in->time[q];
                }
            }
        }
    }
    bool cuts = hv_rng_below(rng, 2);
    in->c =
        (struct hv_part_chunks){.chain = {.n_layers = L,
                                          .n_stages = R * passes,
                                          .stages = in->stage,
                                          .cuts = cuts ? in->cuts : NULL,
                                          .min_layers = even && cuts ? 1 : hv_rng_below(rng, 2)},
                                .rank = in->rank,
                                .n_ranks = R};
}

/* The busiest load by its definition; infinity when memory runs out. */
static double judge(const struct inst *in, const size_t *cut)
{
    const struct hv_partition *p = &in->c.chain;
    double load[MAX_R] = {0}, bytes[MAX_R] = {0}, worst = 0;
    for (size_t s = 0, i = 0; s < p->n_stages; i = cut[s++]) {
        size_t r = in->rank[s], j = cut[s];
        load[r] += p->stages[s].time[j] - p->stages[s].time[i];
        bytes[r] += in->memory[s][j] - in->memory[s][i];
        if (p->cuts && s > 0 && i > 0 && i < p->n_layers) {
            load[r] += p->cuts[s - 1][i];
        }
        if (p->cuts && s + 1 < p->n_stages && j > 0 && j < p->n_layers) {
            load[r] += p->cuts[s][j];
        }
        worst = fmax(worst, load[r]);
        if (bytes[r] > p->stages[s].capacity + 1e-9) {
            return HUGE_VAL;
        }
    }
    return worst;
}

static double brute(const struct inst *in, size_t *cut, size_t s)
{
    const struct hv_partition *p = &in->c.chain;
    size_t i = s ? cut[s - 1] : 0;
    double best = HUGE_VAL;
    if (s == p->n_stages) {
        return i == p->n_layers ? judge(in, cut) : HUGE_VAL;
    }
    for (size_t j = i + p->min_layers; j <= p->n_layers; j++) {
        cut[s] = j;
        best = fmin(best, brute(in, cut, s + 1));
    }
    return best;
}

static void compare(const struct inst *in, int at)
{
    struct hv_arena arena = {0};
    struct hv_part_chunks_result r;
    size_t cut[MAX_S];
    double want = brute(in, cut, 0);
    assert_int_equal(hv_partition_chunks_solve(&in->c, NULL, &arena, &r, NULL), HV_OK);
    assert_true(r.chain.proven && r.chain.feasible == !isinf(want));
    if (r.chain.feasible) {
        if (fabs(r.chain.objective - want) > 1e-9 * fmax(1, want)) {
            fail_msg("case %d: %.12g, enumeration says %.12g", at, r.chain.objective, want);
        }
        assert_true(fabs(judge(in, r.chain.cut) - want) < 1e-9 * fmax(1, want));
        assert_true(r.chain.bound <= want * (1 + 1e-9));
    }
    hv_arena_free(&arena);
}

static void answers_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    struct inst in;
    hv_rng_seed(&rng, 11);
    for (int k = 0; k < 4000; k++) {
        make(&rng, &in, 1 + hv_rng_below(&rng, MAX_L), false);
        compare(&in, k);
    }
}

static void identical_layers_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    struct inst in;
    struct hv_arena arena = {0};
    struct hv_part_chunks_result r;
    hv_rng_seed(&rng, 12);
    for (int k = 0; k < 3000; k++) {
        make(&rng, &in, 1 + hv_rng_below(&rng, MAX_L), true);
        compare(&in, k);
        if (k % 100 == 0) {
            assert_int_equal(hv_partition_chunks_solve(&in.c, NULL, &arena, &r, NULL), HV_OK);
            assert_string_equal(r.chain.method, "closed-form");
        }
    }
    hv_arena_free(&arena);
}

/* Longer chains: the bound never exceeds the answer, and the answer is what its cuts cost. */
static void bounds_hold_where_enumeration_cannot_follow(void **state)
{
    (void)state;
    struct hv_rng rng;
    struct inst in;
    int proven = 0;
    hv_rng_seed(&rng, 13);
    for (int k = 0; k < 20; k++) {
        struct hv_arena arena = {0};
        struct hv_part_chunks_result r;
        make(&rng, &in, 40, false);
        assert_int_equal(hv_partition_chunks_solve(&in.c, NULL, &arena, &r, NULL), HV_OK);
        if (r.chain.feasible) {
            double v = judge(&in, r.chain.cut);
            assert_true(fabs(v - r.chain.objective) < 1e-9 * v);
            assert_true(r.chain.bound <= v * (1 + 1e-9) && r.chain.bound >= 0.8 * v);
        }
        proven += r.chain.proven;
        hv_arena_free(&arena);
    }
    assert_true(proven >= 15);
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void a_cancelled_search_is_not_proven(void **state)
{
    (void)state;
    struct hv_rng rng;
    struct inst in;
    struct hv_arena arena = {0};
    struct hv_part_chunks_result r;
    const struct hv_solve_limits limits = {.cancel = at_once};
    hv_rng_seed(&rng, 17);
    do {
        make(&rng, &in, 40, false);
    } while (in.c.n_ranks < 3 || in.c.chain.n_stages < 6);
    for (size_t s = 0; s < in.c.chain.n_stages; s++) {
        in.stage[s].capacity = HUGE_VAL;
    }
    assert_int_equal(hv_partition_chunks_solve(&in.c, &limits, &arena, &r, NULL), HV_OK);
    assert_true(r.chain.feasible && r.chain.stopped && !r.chain.proven);
    assert_true(r.chain.bound < r.chain.objective);
    hv_arena_free(&arena);
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    struct hv_arena arena = {0};
    struct hv_part_chunks_result r;
    const double time[] = {0, 1, 3, 4, 5}, memory[] = {0, 5, 10, 15, 20};
    const struct hv_part_stage st = {.time = time, .memory = memory, .capacity = 8};
    const struct hv_part_stage stages[] = {st, st, st, st};
    const size_t rank[] = {0, 1, 1, 0}, wrong[] = {0, 1, 2, 0};
    struct hv_part_chunks c = {
        .chain = {.n_layers = 4, .n_stages = 4, .stages = stages}, .rank = rank, .n_ranks = 2};
    assert_int_equal(hv_partition_chunks_solve(&c, NULL, &arena, &r, NULL), HV_OK);
    assert_true(!r.chain.feasible && r.chain.proven);
    assert_non_null(strstr(r.chain.proof, "4 too little"));
    c.rank = wrong;
    assert_int_equal(hv_partition_chunks_solve(&c, NULL, &arena, &r, NULL), HV_EINPUT);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placements_are_loops_and_folds),
        cmocka_unit_test(answers_match_enumeration),
        cmocka_unit_test(identical_layers_match_enumeration),
        cmocka_unit_test(bounds_hold_where_enumeration_cannot_follow),
        cmocka_unit_test(a_cancelled_search_is_not_proven),
        cmocka_unit_test(what_is_missing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
