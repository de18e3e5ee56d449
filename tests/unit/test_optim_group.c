/* Devices grouped into replicas: against enumeration of all groups, orders, partitions and shares.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/chain/group.h"

enum { L = 4, KINDS = 2, STAGES = 3 };

/* Least Σ + (n - 1) · max over all orders of the devices and all cuts. */
static double brute_time(const struct hv_group_chain *c, const size_t *uses, size_t stages,
                         size_t s, size_t i, double sum, double max, double n)
{
    double best = s == stages && i == L ? sum + (n - 1) * max : HUGE_VAL;
    size_t left[KINDS] = {uses[0], uses[1]};
    for (size_t k = 0; k < KINDS && s < stages; k++) {
        if (uses[k] == 0) {
            continue;
        }
        left[k]--;
        for (size_t j = i + 1; j <= L; j++) {
            const double *m = c->memory[stages - 1 - s];
            double v = c->kinds[k].time[j] - c->kinds[k].time[i];
            v += (i > 0 ? c->cuts[i] : 0) + (j < L ? c->cuts[j] : 0);
            if (m[j] - m[i] > c->kinds[k].capacity) {
                continue;
            }
            best = fmin(best, brute_time(c, left, stages, s + 1, j, sum + v, fmax(max, v), n));
        }
        left[k]++;
    }
    return best;
}

static double brute(const struct hv_group_chain *c, const size_t *count, int64_t total)
{
    double best = HUGE_VAL;
    if (total == 0) {
        return 0;
    }
    for (size_t a = 0; a <= count[0]; a++) {
        for (size_t b = 0; b <= count[1]; b++) {
            const size_t uses[] = {a, b}, left[] = {count[0] - a, count[1] - b};
            if (a + b < c->min_stages || a + b > c->max_stages || a + b == 0) {
                continue;
            }
            for (int64_t n = 1; n <= total; n++) {
                double t = brute_time(c, uses, a + b, 0, 0, 0, 0, (double)n);
                if (t < best) {
                    best = fmin(best, fmax(t, brute(c, left, total - n)));
                }
            }
        }
    }
    return best;
}

static void random_groups_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    int solved = 0;
    hv_rng_seed(&rng, 61);
    for (int k = 0; k < 400; k++) {
        double time[KINDS][L + 1] = {{0}}, memory[STAGES][L + 1] = {{0}}, cuts[L + 1] = {0};
        const double *rows[STAGES];
        struct hv_group_kind kinds[KINDS];
        size_t count[KINDS];
        for (size_t d = 0; d < KINDS; d++) {
            for (size_t l = 0; l < L; l++) {
                time[d][l + 1] = time[d][l] + 1 + (double)hv_rng_below(&rng, 6);
            }
            count[d] = hv_rng_below(&rng, 3);
            kinds[d] = (struct hv_group_kind){count[d], time[d], 4 + 8 * hv_rng_double(&rng)};
        }
        for (size_t s = 0; s < STAGES; s++) {
            rows[s] = memory[s];
            for (size_t l = 0; l < L; l++) {
                memory[s][l + 1] = memory[s][l] + 1 + (double)s;
            }
        }
        for (size_t l = 1; l < L; l++) {
            cuts[l] = hv_rng_double(&rng);
        }
        const struct hv_group_chain c = {
            L,      KINDS, kinds, 1 + hv_rng_below(&rng, 2),
            STAGES, rows,  cuts,  (int64_t)(1 + hv_rng_below(&rng, 5))};
        struct hv_arena arena = {0};
        struct hv_group_chains_result r;
        double want = brute(&c, count, c.total), worst = 0;
        assert_int_equal(hv_group_chains(&c, NULL, &arena, &r, NULL), HV_OK);
        assert_int_equal(r.groups.feasible, !isinf(want));
        if (r.groups.feasible) {
            int64_t sum = 0;
            size_t used[KINDS] = {0};
            assert_true(r.groups.proven && r.groups.bound <= want * (1 + 1e-9));
            if (fabs(r.groups.objective - want) > 1e-8 * want) {
                fail_msg("case %d: %.12g, enumeration says %.12g", k, r.groups.objective, want);
            }
            for (size_t g = 0; g < r.groups.n_groups; g++) {
                sum += r.groups.share[g];
                worst =
                    fmax(worst, r.part[g].sum + (double)(r.groups.share[g] - 1) * r.part[g].max);
                for (size_t s = 0; s < r.part[g].n_stages; s++) {
                    used[r.part[g].order[s]]++;
                }
            }
            assert_true(sum == c.total && fabs(worst - want) <= 1e-8 * want);
            assert_true(used[0] <= count[0] && used[1] <= count[1]);
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
