/* Repetends against those of Tessel's own program, and unrolled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/schedule/tessel.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 12, MOST_MB = 10 };

struct written {
    int span, memory;
    unsigned devices;
    int32_t deps[3]; /* ended by -1 */
};

/* placements and answers of examples/simulator/cases_tessel.py of zhiqi-0/Tessel at 44f72c35, run
 * with z3: period of the repetend, steps of two unrolled runs */
static const struct {
    const char *name;
    int32_t n_blocks, n_devices;
    double memory_limit;
    int32_t most;
    double period;
    int32_t m[2];
    double steps[2];
    struct written blocks[MOST_BLOCKS];
} cases[] = {
    {"finetune_4_3_1",
     9,
     4,
     4,
     3,
     7,
     {5, 9},
     {42, 70},
     {{1, 0, 0xf, {-1}},
      {1, 1, 0x1, {0, -1}},
      {1, 1, 0x2, {1, -1}},
      {1, 1, 0x4, {2, -1}},
      {1, 1, 0x8, {3, -1}},
      {2, -1, 0x8, {4, -1}},
      {2, -1, 0x4, {5, -1}},
      {2, -1, 0x2, {6, -1}},
      {2, -1, 0x1, {7, -1}}}},
    {"kshape_4_2_1",
     10,
     4,
     4,
     2,
     7,
     {4, 8},
     {33, 61},
     {{1, 1, 0x1, {-1}},
      {1, 1, 0x4, {-1}},
      {1, 1, 0x2, {0, -1}},
      {1, 1, 0x8, {1, -1}},
      {1, 1, 0xf, {2, 3, -1}},
      {1, -1, 0xf, {4, -1}},
      {3, -1, 0x2, {5, -1}},
      {3, -1, 0x8, {5, -1}},
      {3, -1, 0x1, {6, -1}},
      {3, -1, 0x4, {7, -1}}}},
    {"mllm_4_2_1",
     12,
     4,
     4,
     2,
     13,
     {4, 8},
     {59, 111},
     {{1, 0, 0xf, {-1}},
      {1, 1, 0x1, {0, -1}},
      {1, 1, 0x2, {1, -1}},
      {1, 1, 0x4, {2, -1}},
      {1, 1, 0x8, {3, -1}},
      {1, 0, 0xf, {4, -1}},
      {1, 0, 0xf, {5, -1}},
      {3, -1, 0x8, {6, -1}},
      {3, -1, 0x4, {7, -1}},
      {3, -1, 0x2, {8, -1}},
      {3, -1, 0x1, {9, -1}},
      {1, 0, 0xf, {10, -1}}}},
    {"mshape_2_2_1",
     6,
     2,
     2,
     2,
     7,
     {4, 8},
     {31, 59},
     {{1, 0, 0x3, {-1}},
      {1, 1, 0x1, {0, -1}},
      {1, 1, 0x2, {1, -1}},
      {3, -1, 0x2, {2, -1}},
      {3, -1, 0x1, {3, -1}},
      {1, 0, 0x3, {4, -1}}}},
    {"mshape_4_3_1",
     10,
     4,
     4,
     3,
     10,
     {5, 9},
     {58, 98},
     {{1, 0, 0xf, {-1}},
      {1, 1, 0x1, {0, -1}},
      {1, 1, 0x2, {1, -1}},
      {1, 1, 0x4, {2, -1}},
      {1, 1, 0x8, {3, -1}},
      {3, -1, 0x8, {4, -1}},
      {3, -1, 0x4, {5, -1}},
      {3, -1, 0x2, {6, -1}},
      {3, -1, 0x1, {7, -1}},
      {1, 0, 0xf, {8, -1}}}},
    {"nnshape_2_2_1",
     8,
     2,
     2,
     2,
     9,
     {4, 8},
     {39, 75},
     {{1, 0, 0x3, {-1}},
      {1, 1, 0x1, {0, -1}},
      {1, 0, 0x3, {1, -1}},
      {1, 1, 0x2, {2, -1}},
      {3, -1, 0x2, {3, -1}},
      {1, 0, 0x3, {4, -1}},
      {3, -1, 0x1, {5, -1}},
      {1, 0, 0x3, {6, -1}}}},
    {"vshape_2_2_1",
     4,
     2,
     2,
     2,
     4,
     {4, 8},
     {23, 39},
     {{1, 1, 0x1, {-1}}, {1, 1, 0x2, {0, -1}}, {3, -1, 0x2, {1, -1}}, {3, -1, 0x1, {2, -1}}}},
    {"vshape_4_4_1",
     8,
     4,
     4,
     4,
     4,
     {6, 10},
     {45, 61},
     {{1, 1, 0x1, {-1}},
      {1, 1, 0x2, {0, -1}},
      {1, 1, 0x4, {1, -1}},
      {1, 1, 0x8, {2, -1}},
      {3, -1, 0x8, {3, -1}},
      {3, -1, 0x4, {4, -1}},
      {3, -1, 0x2, {5, -1}},
      {3, -1, 0x1, {6, -1}}}},
    {"xshape_2_2_1",
     8,
     2,
     4,
     2,
     8,
     {4, 8},
     {34, 66},
     {{1, 1, 0x1, {-1}},
      {1, 1, 0x2, {-1}},
      {1, 1, 0x1, {1, -1}},
      {1, 1, 0x2, {0, -1}},
      {3, -1, 0x1, {2, -1}},
      {3, -1, 0x2, {3, -1}},
      {3, -1, 0x1, {5, -1}},
      {3, -1, 0x2, {4, -1}}}},
};

/* the order that devices run the runs in keeps dependencies, exclusion and memory */
static void check_runs(const struct hv_tessel *t, const struct hv_tessel_run *runs, int32_t m)
{
    double start[MOST_BLOCKS][MOST_MB];
    size_t n = (size_t)t->n_blocks * (size_t)m;
    for (size_t i = 0; i < n; i++) {
        start[runs[i].block][runs[i].mb] = runs[i].start_s;
    }
    for (int32_t k = 0; k < t->n_blocks; k++) {
        for (int32_t e = t->dep_at[k]; e < t->dep_at[k + 1]; e++) {
            for (int32_t i = 0; i < m; i++) {
                assert_true(start[k][i] >= start[t->dep[e]][i] + t->blocks[t->dep[e]].span_s);
            }
        }
    }
    for (int32_t d = 0; d < t->n_devices; d++) {
        double free_at = 0, held = 0;
        for (size_t i = 0; i < n; i++) {
            const struct hv_tessel_block *b = &t->blocks[runs[i].block];
            if (b->devices >> d & 1) {
                assert_true(runs[i].start_s >= free_at);
                free_at = runs[i].start_s + b->span_s;
                held += b->memory;
                assert_true(held <= t->memory_limit);
            }
        }
    }
}

static void as_its_authors_found(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct hv_tessel_block blocks[MOST_BLOCKS];
        int32_t dep_at[MOST_BLOCKS + 1] = {0}, dep[3 * MOST_BLOCKS];
        for (int32_t k = 0; k < cases[c].n_blocks; k++) {
            const struct written *w = &cases[c].blocks[k];
            blocks[k] = (struct hv_tessel_block){w->span, w->memory, w->devices};
            dep_at[k + 1] = dep_at[k];
            for (int i = 0; i < 3 && w->deps[i] >= 0; i++) {
                dep[dep_at[k + 1]++] = w->deps[i];
            }
        }
        struct hv_tessel t = {.n_blocks = cases[c].n_blocks,
                              .n_devices = cases[c].n_devices,
                              .blocks = blocks,
                              .dep_at = dep_at,
                              .dep = dep,
                              .memory_limit = cases[c].memory_limit,
                              .most_micro_batches = cases[c].most};
        struct hv_arena a = {0};
        struct hv_repetend r;
        assert_int_equal(hv_tessel_search(&a, &t, &r, NULL), HV_OK);
        if (!(fabs(r.period_s - cases[c].period) < 1e-9)) {
            print_error("%s: period %g instead of %g\n", cases[c].name, r.period_s,
                        cases[c].period);
        }
        assert_true(fabs(r.period_s - cases[c].period) < 1e-9);
        for (int i = 0; i < 2; i++) {
            struct hv_tessel_run runs[MOST_BLOCKS * MOST_MB];
            double makespan = 0;
            assert_int_equal(hv_tessel_unroll(&t, &r, cases[c].m[i], runs, &makespan, NULL), HV_OK);
            check_runs(&t, runs, cases[c].m[i]);
            if (makespan > cases[c].steps[i]) {
                print_error("%s, m = %d: %g steps, theirs %g\n", cases[c].name, cases[c].m[i],
                            makespan, cases[c].steps[i]);
            }
            assert_true(makespan <= cases[c].steps[i]);
        }
        hv_arena_free(&a);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct hv_tessel_block blocks[] = {{1, 2, 1}, {1, -2, 1}};
    static const int32_t dep_at[] = {0, 0, 1}, dep[] = {0};
    struct hv_tessel t = {.n_blocks = 2,
                          .n_devices = 1,
                          .blocks = blocks,
                          .dep_at = dep_at,
                          .dep = dep,
                          .memory_limit = 1,
                          .most_micro_batches = 2};
    struct hv_arena a = {0};
    struct hv_repetend r;
    struct hv_err err = {0};
    assert_int_equal(hv_tessel_search(&a, &t, &r, &err), HV_ENO);
    assert_non_null(strstr(err.text, "fits into 1"));
    t.memory_limit = 2;
    assert_int_equal(hv_tessel_search(&a, &t, &r, &err), HV_OK);
    assert_true(r.zero_bubble && r.proven && fabs(r.period_s - 2) < 1e-12 && r.micro_batches == 1);
    t.n_devices = 65;
    assert_int_equal(hv_tessel_search(&a, &t, &r, &err), HV_EUSAGE);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_its_authors_found),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
