/* Numbers for people and for files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/attr.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(call, want)                                                                             \
    do {                                                                                           \
        char b[HV_FMT_CAP];                                                                        \
        assert_string_equal(call, want);                                                           \
    } while (0)
#define BYTES(x, want)   IS(hv_fmt_bytes(b, sizeof b, x), want)
#define SECONDS(x, want) IS(hv_fmt_seconds(b, sizeof b, x), want)
#define SI(x, want)      IS(hv_fmt_si(b, sizeof b, x, "FLOP/s"), want)
#define COUNT(x, want)   IS(hv_fmt_count(b, sizeof b, x), want)
#define DOUBLE(x, want)  IS(hv_fmt_double(b, sizeof b, x), want)

static void amounts(void **state)
{
    (void)state;
    BYTES(512, "512 B");
    BYTES(0, "0 B");
    BYTES(61.2 * HV_GIB, "61.2 GiB");
    BYTES(80 * HV_GIB, "80 GiB");
    BYTES(1023, "1023 B");
    BYTES(1023.9 * HV_MIB, "1 GiB"); /* never "1024 MiB" */
    BYTES(-1536, "-1.5 KiB");
    BYTES(HV_UNKNOWN, "\u2013");
    SI(3.12e14, "312 TFLOP/s");
    SI(999.7e9, "1 TFLOP/s");
    SI(0.25, "0.25 FLOP/s");
    SI((double)INFINITY, "inf FLOP/s");
    SI(HV_UNKNOWN, "\u2013");
    COUNT(93600, "93,600");
    COUNT(999, "999");
    COUNT(-1234567, "-1,234,567");
    COUNT(-0.2, "0");
    COUNT(1e300, "1e+300");
    COUNT(HV_UNKNOWN, "\u2013");
    IS(hv_fmt_percent(b, sizeof b, 0.412), "41.2%");
    IS(hv_fmt_percent(b, sizeof b, HV_UNKNOWN), "\u2013");
    IS(hv_fmt_fixed(b, sizeof b, 2.375, 2), "2.38");
    IS(hv_fmt_fixed(b, sizeof b, -0.001, 2), "0.00");
    IS(hv_fmt_fixed(b, 3, 12.5, 1), "12");
}

static void times(void **state)
{
    (void)state;
    SECONDS(11.2, "11.2 s");
    SECONDS(0.348, "348 ms");
    SECONDS(3.1e-6, "3.1 us");
    SECONDS(2e-9, "2 ns");
    SECONDS(0, "0 s");
    SECONDS(0.99996, "1 s");
    SECONDS(150, "2.5 min");
    SECONDS(3 * 3600.0, "3 h");
    SECONDS(10 * 86400.0, "10 d");
    SECONDS(-0.5, "-500 ms");
    SECONDS(HV_UNKNOWN, "\u2013");
    SECONDS((double)INFINITY, "inf s");
}

static void shortest_digits(void **state)
{
    (void)state;
    DOUBLE(0.1, "0.1");
    DOUBLE(0.1 + 0.2, "0.30000000000000004");
    DOUBLE(1e15, "1000000000000000");
    DOUBLE(9007199254740991.0, "9007199254740991");
    DOUBLE(1e22, "1e22");
    DOUBLE(1e-7, "1e-7");
    DOUBLE(1.5e-100, "1.5e-100");
    DOUBLE(-2, "-2");
    struct hv_rng r;
    hv_rng_seed(&r, 7);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = hv_rng_u64(&r);
        double x;
        char b[HV_FMT_CAP];
        memcpy(&x, &bits, sizeof x);
        hv_fmt_double(b, sizeof b, x);
        assert_true(!isfinite(x) || strtod(b, NULL) == x);
        assert_true(strlen(b) < 32);
    }
}

static void every_format_fits(void **state)
{
    (void)state;
    static const double xs[] = {0,
                                -0.0,
                                DBL_MAX,
                                1e18,
                                -DBL_MAX,
                                DBL_MIN,
                                5e-324,
                                123456.789,
                                -999999999999999999.0,
                                (double)INFINITY,
                                -(double)INFINITY};
    for (size_t i = 0; i < HV_COUNT(xs); i++) {
        char b[HV_FMT_CAP];
        assert_true(strlen(hv_fmt_bytes(b, sizeof b, xs[i])) < 32);
        assert_true(strlen(hv_fmt_seconds(b, sizeof b, xs[i])) < 32);
        assert_true(strlen(hv_fmt_si(b, sizeof b, xs[i], "B/s")) < 32);
        assert_true(strlen(hv_fmt_percent(b, sizeof b, xs[i])) < 32);
        assert_true(strlen(hv_fmt_fixed(b, sizeof b, xs[i], 17)) < 47);
        assert_true(strlen(hv_fmt_count(b, sizeof b, xs[i])) < 32);
        assert_true(strlen(hv_fmt_double(b, sizeof b, xs[i])) < 32);
    }
}

static void unknown_spreads(void **state)
{
    (void)state;
    assert_false(hv_known(HV_UNKNOWN + 1));
    assert_true(hv_known((double)INFINITY));
    assert_true(hv_or(HV_UNKNOWN, 3) == 3);
    assert_true(hv_or(2, 3) == 2);
}

static void same_as_printf(double x, int decimals)
{
    char b[HV_FMT_CAP], want[64];
    (void)snprintf(want, sizeof want, "%.*f", decimals, x);
    const char *expected =
        want[0] == '-' && strspn(want + 1, "0.") == strlen(want + 1) ? want + 1 : want;
    assert_string_equal(hv_fmt_fixed(b, sizeof b, x, decimals), expected);
}

static void general_digits_are_those_of_printf(void **state)
{
    (void)state;
    struct hv_rng rng;
    char b[HV_FMT_CAP], want[64];
    static const double odd[] = {0,     -0.0, 1,       -1,      9.9995,    9.99949, 0.1,
                                 0.95,  99.5, 999.5,   9999.5,  99999.5,   0.09999, 1e-300,
                                 1e300, 2.5,  1e9 - 1, 1.00005, 123456789, 0.5,     HUGE_VAL};
    hv_rng_seed(&rng, 9);
    for (int i = 0; i < 200000; i++) {
        int digits = 1 + (int)hv_rng_below(&rng, 9);
        double x = pow(10, (double)hv_rng_below(&rng, 16) - 5) * (hv_rng_double(&rng) * 2 - 1);
        if (i % 3 == 0) { /* halves of the last digit */
            x = floor(x * 64) / 64 + 0.5;
        } else if (i % 3 == 1) {
            x = odd[hv_rng_below(&rng, HV_COUNT(odd))];
        }
        (void)snprintf(want, sizeof want, "%.*g", digits, x);
        assert_string_equal(hv_fmt_general(b, sizeof b, x, digits), want);
    }
    assert_string_equal(hv_fmt_general(b, sizeof b, HV_UNKNOWN, 3), "\u2013");
    assert_string_equal(hv_fmt_general(b, 3, 12.5, 3), "12");
}

/* Also where the last digit hangs on the last bit: halves and their neighbours. */
static void fixed_digits_are_those_of_printf(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 5);
    for (int i = 0; i < 100000; i++) {
        double size = pow(10, (double)hv_rng_below(&rng, 14) - 4);
        double x = (hv_rng_double(&rng) - 0.5) * size;
        int decimals = (int)hv_rng_below(&rng, 6);
        double half = (floor(x * 1000) + 0.5) / pow(10, (double)hv_rng_below(&rng, 4));
        same_as_printf(x, decimals);
        same_as_printf(half, decimals);
        same_as_printf(nextafter(half, 1e9), decimals);
        same_as_printf(floor(x), decimals);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts),
        cmocka_unit_test(times),
        cmocka_unit_test(shortest_digits),
        cmocka_unit_test(every_format_fits),
        cmocka_unit_test(unknown_spreads),
        cmocka_unit_test(fixed_digits_are_those_of_printf),
        cmocka_unit_test(general_digits_are_those_of_printf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
