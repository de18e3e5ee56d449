/* The lp_solve certificate never contradicts the exact program, and notices a wrong optimum. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/chain/certify.h"

enum { L = 14, S = 4 };

static void certificate_agrees_with_the_program(void **state)
{
    (void)state;
    struct hv_rng rng;
    int agrees = 0, solved = 0;
    hv_rng_seed(&rng, 4);
    for (int k = 0; k < 200; k++) {
        double time[S][L + 1] = {{0}}, memory[S][L + 1] = {{0}}, cut[S][L + 1] = {{0}};
        const double *cuts[S];
        struct hv_part_stage stage[S];
        for (size_t s = 0; s < S; s++) {
            for (size_t l = 0; l < L; l++) {
                time[s][l + 1] = time[s][l] + 100 * hv_rng_double(&rng) / (double)(1 + s % 3);
                memory[s][l + 1] = memory[s][l] + hv_rng_double(&rng);
                cut[s][l] = 10 * hv_rng_double(&rng);
            }
            cuts[s] = cut[s];
            stage[s] =
                (struct hv_part_stage){time[s], NULL, memory[s], 2.5 + 3 * hv_rng_double(&rng)};
        }
        struct hv_partition p = {.n_layers = L,
                                 .n_stages = S,
                                 .stages = stage,
                                 .cuts = cuts,
                                 .min_layers = (size_t)k % 2,
                                 .max_weight = 1};
        struct hv_arena arena = {0};
        struct hv_partition_result r;
        struct hv_str text = {0};
        assert_true(hv_certify_applies(&p));
        assert_int_equal(hv_partition_solve(&p, NULL, &arena, &r, NULL), HV_OK);
        if (r.feasible) {
            enum hv_certify_outcome o = hv_certify_chain(&p, &r, 20, &text);
            assert_int_not_equal(o, HV_CERTIFY_CONTRADICTS);
            solved++;
            agrees += o == HV_CERTIFY_AGREES;
            assert_non_null(strstr(hv_str_cstr(&text), "exclude every value below"));
            hv_str_clear(&text);
            r.max *= 1.01; /* a claim that is not the optimum */
            assert_int_equal(hv_certify_chain(&p, &r, 20, &text), HV_CERTIFY_CONTRADICTS);
        }
        hv_str_free(&text);
        hv_arena_free(&arena);
    }
    assert_true(solved > 100 && agrees == solved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(certificate_agrees_with_the_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
