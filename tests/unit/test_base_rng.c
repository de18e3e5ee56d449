/* The generator against its published algorithm, and the hash against published vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"

/* From the state {1, 2, 3, 4} by the definition of the paper, out = rotl(s1 * 5, 7) * 9: first
 * rotl(10, 7) * 9 = 1280 * 9 = 11520; then s1 = 2 ^ (3 ^ 1) = 0; then s1 = 262149 (0x40005). */
static void first_outputs(void **state)
{
    (void)state;
    struct hv_rng r = {{1, 2, 3, 4}};
    assert_true(hv_rng_u64(&r) == 11520);
    assert_true(hv_rng_u64(&r) == 0);
    assert_true(hv_rng_u64(&r) == 1509978240);
    assert_true(hv_rng_u64(&r) == 1215971899390074240ULL);
}

/* splitmix64 from 0: the first two values of every published implementation. */
static void seeding(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdafULL);
    assert_true(r.s[1] == 0x6e789e6aa1b965f4ULL);
}

static void ranges(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 1);
    unsigned seen[7] = {0};
    double sum = 0;
    for (int i = 0; i < 70000; i++) {
        uint64_t x = hv_rng_below(&r, 7);
        assert_true(x < 7);
        seen[x]++;
        double d = hv_rng_double(&r);
        assert_true(d >= 0 && d < 1);
        sum += d;
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(seen[i], 9500, 10500); /* 5 standard deviations */
    }
    assert_true(sum > 34500 && sum < 35500);
    assert_true(hv_rng_below(&r, 1) == 0);
    assert_true(hv_rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

/* FNV-1a, 64 bits: Landon Curt Noll's test vectors "", "a", "foobar". */
static void hash(void **state)
{
    (void)state;
    assert_true(hv_hash(HV_HASH_START, "", 0) == 0xcbf29ce484222325ULL);
    assert_true(hv_hash(HV_HASH_START, "a", 1) == 0xaf63dc4c8601ec8cULL);
    assert_true(hv_hash(HV_HASH_START, "foobar", 6) == 0x85944171f73967e8ULL);
    assert_true(hv_hash(hv_hash(HV_HASH_START, "foo", 3), "bar", 3) == 0x85944171f73967e8ULL);
}

/* The last word may be cut: every byte and the length count, and parts of whole words can be hashed
 * one after the other. */
static void hash_words(void **state)
{
    (void)state;
    unsigned char bytes[24] = {0};
    uint64_t whole = hv_hash_words(HV_HASH_START, bytes, sizeof bytes);
    assert_true(hv_hash_words(hv_hash_words(HV_HASH_START, bytes, 8), bytes + 8, 16) == whole);
    assert_true(hv_hash_words(HV_HASH_START, bytes, 0) == HV_HASH_START);
    for (size_t i = 0; i < sizeof bytes; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (unsigned char)(1 << bit);
            assert_true(hv_hash_words(HV_HASH_START, bytes, sizeof bytes) != whole);
            assert_true(hv_hash_words(HV_HASH_START, bytes, i + 1) !=
                        hv_hash_words(HV_HASH_START, bytes, i));
        }
        bytes[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_outputs), cmocka_unit_test(seeding),    cmocka_unit_test(ranges),
        cmocka_unit_test(hash),          cmocka_unit_test(hash_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
