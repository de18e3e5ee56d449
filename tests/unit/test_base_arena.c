/* The arena with blocks so small that every path of growth runs. */
#define HV_ARENA_BLOCK 64
#define HV_VEC_MIN     1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.c"
#include "solver/base/rng.h"
#include "solver/base/vec.h"
#include <string.h>

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_rng r;
    unsigned char *p[200];
    size_t n[200];
    for (uint64_t round = 0; round < 3; round++) {
        hv_rng_seed(&r, round);
        struct hv_arena_mark start = hv_arena_mark(&a);
        for (size_t i = 0; i < HV_COUNT(p); i++) {
            n[i] = (size_t)hv_rng_below(&r, 90);
            p[i] = hv_arena_alloc(&a, n[i], 1);
            assert_int_equal((uintptr_t)p[i] % alignof(max_align_t), 0);
            for (size_t k = 0; k < n[i]; k++) {
                assert_int_equal(p[i][k], 0);
            }
            if (n[i]) {
                memset(p[i], (int)(i & 0xFF), n[i]);
            }
        }
        for (size_t i = 0; i < HV_COUNT(p); i++) {
            for (size_t k = 0; k < n[i]; k++) {
                assert_int_equal(p[i][k], i & 0xFF);
            }
        }
        hv_arena_rewind(&a, start);
    }
    assert_int_equal(a.used_bytes, 0);
    hv_arena_free(&a);
    assert_null(a.head);
}

static size_t n_blocks(const struct hv_arena *a)
{
    size_t n = 0;
    for (const struct hv_arena_block *b = a->head; b; b = b->prev) {
        n++;
    }
    return n;
}

static void rewinding_keeps_what_was_before(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_rng r;
    hv_rng_seed(&r, 42);
    struct {
        struct hv_arena_mark m;
        char *text;
        size_t blocks;
    } level[60];
    for (int round = 0; round < 20; round++) {
        size_t depth = 1 + (size_t)hv_rng_below(&r, HV_COUNT(level));
        for (size_t i = 0; i < depth; i++) {
            level[i].text = hv_arena_printf(&a, "%d/%zu", round, i);
            level[i].m = hv_arena_mark(&a);
            level[i].blocks = n_blocks(&a);
            for (size_t k = hv_rng_below(&r, 4); k > 0; k--) {
                hv_arena_alloc(&a, (size_t)hv_rng_below(&r, 300), 1);
            }
        }
        for (size_t i = depth; i-- > 0;) {
            char want[64];
            hv_arena_rewind(&a, level[i].m);
            assert_int_equal(n_blocks(&a), level[i].blocks);
            assert_int_equal(a.used_bytes, level[i].m.used_bytes);
            snprintf(want, sizeof want, "%d/%zu", round, i);
            assert_string_equal(level[i].text, want);
        }
    }
    hv_arena_free(&a);
    assert_int_equal(a.used_bytes, 0);
}

static void large_pieces_leave_the_head_in_use(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    hv_arena_alloc(&a, 1, 1);
    struct hv_arena_block *head = a.head;
    for (int i = 0; i < 5; i++) {
        hv_arena_alloc(&a, 1000, 1);
    }
    assert_ptr_equal(a.head, head);
    assert_int_equal(n_blocks(&a), 6);
    hv_arena_free(&a);
}

/* Blocks are used again, what they hold is zero again, and large pieces and the blocks above the
 * limit are freed. */
static void a_reset_keeps_blocks(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8 * HV_ARENA_SPARES; i++) {
            unsigned char *p = hv_arena_alloc(&a, i % 4 == 1 ? 1000 : 16, 1);
            assert_int_equal(p[0] | p[15], 0);
            memset(p, 0xFF, 16);
        }
        assert_true(n_blocks(&a) > 3 * HV_ARENA_SPARES);
        hv_arena_reset(&a);
        assert_null(a.head);
        assert_int_equal(a.used_bytes, 0);
        size_t kept = 0;
        for (const struct hv_arena_block *b = a.spare; b != NULL; b = b->prev) {
            assert_false(b->own);
            kept++;
        }
        assert_int_equal(kept, HV_ARENA_SPARES);
    }
    struct hv_arena_block *next = a.spare;
    hv_arena_alloc(&a, 8, 1);
    assert_ptr_equal(a.head, next);
    hv_arena_free(&a);
    assert_null(a.spare);
}

static void copies(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    int xs[] = {1, 2, 3}, *ys = hv_arena_copy(&a, xs, 3, sizeof *xs);
    assert_memory_equal(xs, ys, sizeof xs);
    assert_string_equal(hv_arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(hv_arena_strdup(&a, ""), "");
    assert_null(hv_arena_strdup(&a, NULL));
    assert_non_null(hv_arena_new(&a, int, 0));
    hv_arena_free(&a);
}

static void vectors_grow(void **state)
{
    (void)state;
    struct pair {
        int a, b;
    };
    HV_VEC(struct pair) v = {0};
    for (int i = 0; i < 1000; i++) {
        hv_vec_push(&v, (struct pair){i, -i});
        assert_true(v.n <= v.cap);
    }
    for (int i = 0; i < 1000; i++) {
        assert_true(v.items[i].a == i && v.items[i].b == -i);
    }
    hv_vec_free(&v);
    assert_true(!v.items && !v.n && !v.cap);
}
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(rewinding_keeps_what_was_before),
        cmocka_unit_test(large_pieces_leave_the_head_in_use),
        cmocka_unit_test(a_reset_keeps_blocks),
        cmocka_unit_test(copies),
        cmocka_unit_test(vectors_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
