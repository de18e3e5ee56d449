/* Routing of tokens to experts and attention of rings, against counting by hand and pair by pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/workload/attention_work.h"
#include "solver/workload/routing.h"
#include <cmocka.h>

/** Where token i of a rank is in the sequence, by the layouts' definitions. */
static int64_t place(enum hv_token_layout layout, int64_t ranks, int64_t tokens, int64_t rank,
                     int64_t i)
{
    int64_t own = tokens / ranks, part = own / 2;
    if (layout == HV_TOKENS_CONTIGUOUS) {
        return rank * own + i;
    }
    if (layout == HV_TOKENS_STRIPED) {
        return i * ranks + rank;
    }
    return i < part ? rank * part + i : (2 * ranks - 1 - rank) * part + i - part;
}

/** Tile of 1: exactly the allowed pairs, for every layout; larger tiles are never less. */
static void test_attention_pairs(void **state)
{
    struct hv_arena a = {0};
    (void)state;

    for (int layout = 0; layout < 3; layout++) {
        for (int64_t ranks = 1; ranks <= 4; ranks++) {
            struct hv_attention_ring g = {ranks, 24 * ranks / 3, 1, (enum hv_token_layout)layout,
                                          true};
            double *fine = NULL, *coarse = NULL, total = 0;
            assert_int_equal(hv_attention_work(&a, &g, &fine, NULL), HV_OK);
            g.tile = 4;
            assert_int_equal(hv_attention_work(&a, &g, &coarse, NULL), HV_OK);
            for (int64_t r = 0; r < ranks; r++) {
                for (int64_t k = 0; k < ranks; k++) {
                    int64_t from = (r - k + ranks) % ranks, own = g.tokens / ranks, pairs = 0;
                    for (int64_t q = 0; q < own; q++) {
                        for (int64_t t = 0; t < own; t++) {
                            pairs += place(g.layout, ranks, g.tokens, r, q) >=
                                     place(g.layout, ranks, g.tokens, from, t);
                        }
                    }
                    assert_int_equal((int64_t)fine[r * ranks + k], pairs);
                    assert_true(coarse[r * ranks + k] >= fine[r * ranks + k]);
                    total += fine[r * ranks + k];
                }
            }
            assert_int_equal((int64_t)total, g.tokens * (g.tokens + 1) / 2);
        }
    }
    hv_arena_free(&a);
}

/** Every row and step is one of three figures, for tiles of any size. */
static void test_ring_pairs_are_three(void **state)
{
    struct hv_arena a = {0};
    (void)state;

    for (int i = 0; i < 3 * 6 * 3; i++) {
        struct hv_attention_ring g = {1 + i / 3 % 6, 60, (int64_t[]){1, 4, 64}[i / 18],
                                      (enum hv_token_layout)(i % 3), true};
        struct hv_ring_pairs p;
        double *w = NULL;
        g.tokens *= 2 * g.ranks;
        assert_int_equal(hv_attention_work(&a, &g, &w, NULL), HV_OK);
        assert_int_equal(hv_attention_ring_pairs(&g, &p, NULL), HV_OK);
        for (int64_t r = 0; r < g.ranks; r++) {
            for (int64_t k = 0; k < g.ranks; k++) {
                double want = k == 0 ? p.same : k <= r ? p.before : p.after;
                assert_true(w[r * g.ranks + k] == want);
            }
        }
    }
    hv_arena_free(&a);
}

static void test_attention_layouts(void **state)
{
    struct hv_arena a = {0};
    struct hv_err err = {0};
    struct hv_attention_ring g = {4, 4096, 128, HV_TOKENS_ZIGZAG, true};
    double *w = NULL;
    (void)state;

    assert_int_equal(hv_attention_work(&a, &g, &w, NULL), HV_OK);
    for (int r = 1; r < 4; r++) { /* zigzag: every rank has the same work in all */
        double first = 0, own = 0;
        for (int k = 0; k < 4; k++) {
            first += w[k];
            own += w[r * 4 + k];
        }
        assert_true(first == own);
    }
    g.causal = false;
    assert_int_equal(hv_attention_work(&a, &g, &w, NULL), HV_OK);
    assert_true(w[5] == 1024.0 * 1024.0);
    g.tokens = 4100;
    assert_int_equal(hv_attention_work(&a, &g, &w, &err), HV_EUSAGE);
    g = (struct hv_attention_ring){2048, INT64_C(1) << 40, 1, HV_TOKENS_CONTIGUOUS, true};
    assert_int_equal(hv_attention_work(&a, &g, &w, &err), HV_ELIMIT);
    hv_arena_free(&a);
}

static void test_routing(void **state)
{
    struct hv_arena a = {0};
    struct hv_routed out;
    struct hv_err err = {0};
    const double tokens[] = {3, 1, 3, 1}; /* 2 sources × 2 experts */
    const struct hv_routing r = {2, 2, tokens};
    const size_t one_each[] = {0, 1, 2}, copied[] = {0, 2, 3}, none[] = {0, 0, 1};
    const uint32_t owners[] = {0, 1}, copies[] = {0, 1, 1}, outside[] = {0, 7};
    struct hv_expert_placement p = {.ranks = 2, .holder_at = one_each, .holders = owners};
    (void)state;

    assert_int_equal(hv_route(&a, &r, &p, &out, NULL), HV_OK);
    assert_true(out.loads[0] == 6 && out.loads[1] == 2 && out.dropped == 0 && out.padded == 0);
    assert_true(out.sent[0] == 3 && out.sent[1] == 1 && out.sent[2] == 3 && out.sent[3] == 1);
    p.capacity_factor = 1; /* mean 4: expert 1 drops 2 of 6, a third of every source */
    p.tile = 3;
    assert_int_equal(hv_route(&a, &r, &p, &out, NULL), HV_OK);
    assert_true(out.dropped == 2 && out.experts[0] == 4 && out.sent[2] == 2);
    assert_true(out.padded == 3); /* 4 → 6 and 2 → 3 */
    p = (struct hv_expert_placement){.ranks = 2, .holder_at = copied, .holders = copies};
    assert_int_equal(hv_route(&a, &r, &p, &out, NULL), HV_OK);
    assert_true(out.sent[0] == 3 && out.sent[3] == 4 && out.sent[2] == 0); /* its own copy */
    p.holder_at = none;
    assert_int_equal(hv_route(&a, &r, &p, &out, &err), HV_EUSAGE);
    p = (struct hv_expert_placement){.ranks = 2, .holder_at = one_each, .holders = outside};
    assert_int_equal(hv_route(&a, &r, &p, &out, &err), HV_EUSAGE);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_pairs),
        cmocka_unit_test(test_ring_pairs_are_three),
        cmocka_unit_test(test_attention_layouts),
        cmocka_unit_test(test_routing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
