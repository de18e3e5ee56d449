/* Devices grouped into replicas: against enumeration of all groups and shares. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/chain/group.h"

enum { KINDS = 2, TYPES = 5, LINES = 2 };

static double time_of(const struct hv_group_type *t, double n)
{
    double best = HUGE_VAL;
    for (size_t i = 0; i < t->n_lines; i++) {
        best = fmin(best, t->lines[i].fixed + n * t->lines[i].rate);
    }
    return best;
}

/* Least time of the slowest group over all choices of groups and shares. */
static double brute(const struct hv_group *g, const size_t *left, int64_t total)
{
    double best = HUGE_VAL;
    if (total == 0) {
        return 0;
    }
    for (size_t t = 0; t < g->n_types; t++) {
        const size_t *uses = g->types[t].uses;
        if (uses[0] > left[0] || uses[1] > left[1]) {
            continue;
        }
        const size_t rest[] = {left[0] - uses[0], left[1] - uses[1]};
        for (int64_t n = 1; n <= total; n++) {
            double time = time_of(&g->types[t], (double)n);
            if (time < best) {
                best = fmin(best, fmax(time, brute(g, rest, total - n)));
            }
        }
    }
    return best;
}

/* What the groups of an answer take: every share has its group, no kind is used too often. */
static void check_answer(const struct hv_group *g, const struct hv_group_result *r, double want)
{
    int64_t sum = 0;
    size_t used[KINDS] = {0};
    double worst = 0;
    assert_true(r->proven && r->bound <= want * (1 + 1e-9));
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct hv_group_type *t = &g->types[r->type[i]];
        sum += r->share[i];
        worst = fmax(worst, time_of(t, (double)r->share[i]));
        for (size_t k = 0; k < KINDS; k++) {
            used[k] += t->uses[k];
        }
    }
    assert_true(sum == g->total && fabs(worst - want) <= 1e-8 * want);
    assert_true(used[0] <= g->count[0] && used[1] <= g->count[1]);
}

static void random_groups_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 5);
    int solved = 0;
    for (int k = 0; k < 400; k++) {
        size_t count[KINDS], uses[TYPES][KINDS];
        struct hv_group_line lines[TYPES][LINES];
        struct hv_group_type types[TYPES];
        for (size_t d = 0; d < KINDS; d++) {
            count[d] = hv_rng_below(&rng, 4);
        }
        for (size_t t = 0; t < TYPES; t++) {
            uses[t][0] = hv_rng_below(&rng, 3);
            uses[t][1] = hv_rng_below(&rng, 3) + (uses[t][0] == 0);
            for (size_t i = 0; i < LINES; i++) {
                double rate = 1 + 9 * hv_rng_double(&rng);
                lines[t][i] = (struct hv_group_line){rate * (4 * hv_rng_double(&rng) - 1), rate};
            }
            types[t] = (struct hv_group_type){uses[t], 1 + hv_rng_below(&rng, LINES), lines[t]};
        }
        const struct hv_group g = {KINDS, count, TYPES, types,
                                   (int64_t)(1 + hv_rng_below(&rng, 5))};
        struct hv_arena arena = {0};
        struct hv_group_result r;
        double want = brute(&g, count, g.total);
        assert_int_equal(hv_group_solve(&g, NULL, &arena, &r, NULL), HV_OK);
        assert_int_equal(r.feasible, !isinf(want));
        if (r.feasible) {
            if (fabs(r.objective - want) > 1e-8 * want) {
                fail_msg("case %d: %.12g, enumeration says %.12g", k, r.objective, want);
            }
            check_answer(&g, &r, want);
            solved++;
        }
        hv_arena_free(&arena);
    }
    assert_true(solved > 200);
}

static void senseless_groups_are_refused(void **state)
{
    (void)state;
    const size_t none[] = {0}, many[] = {60000}, one[] = {1};
    const struct hv_group_line line = {1, 1}, minus = {-3, 1};
    struct hv_group_type type = {none, 1, &line};
    struct hv_group g = {1, one, 1, &type, 4};
    struct hv_arena arena = {0};
    struct hv_group_result r;
    assert_int_equal(hv_group_solve(&g, NULL, &arena, &r, NULL), HV_EINPUT);
    type.uses = one;
    type.lines = &minus;
    assert_int_equal(hv_group_solve(&g, NULL, &arena, &r, NULL), HV_EINPUT);
    type.lines = &line;
    assert_int_equal(hv_group_solve(&g, NULL, &arena, &r, NULL), HV_OK);
    assert_true(r.feasible && r.proven && r.objective == 5 && r.n_groups == 1);
    g.count = many;
    g.n_types = HV_GROUP_MAX_WORK;
    assert_int_equal(hv_group_solve(&g, NULL, &arena, &r, NULL), HV_ELIMIT);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_groups_match_enumeration),
        cmocka_unit_test(senseless_groups_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
