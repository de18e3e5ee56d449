/* Numbers with units as people type them. Expected values by hand: 25 Gb/s = 25 / 8 = 3.125 GB/s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "solver/base/attr.h"
#include "ui/command/typed.h"

static void numbers_with_units_become_the_fields_unit(void **state)
{
    static const struct {
        const char *text, *unit;
        double expected;
    } cases[] = {
        {"25GbE", "GB/s", 3.125},
        {"25 GbE", "GB/s", 3.125},
        {"100 Gb/s", "GB/s", 12.5},
        {"100Gbps", "GB/s", 12.5},
        {"100Gbit/s", "GB/s", 12.5},
        {"400G", "GB/s", 50},
        {"12.5", "GB/s", 12.5},
        {"12.5 GB/s", "GB/s", 12.5},
        {"900GBps", "GB/s", 900},
        {"1.25TB/s", "GB/s", 1250},
        {"500 MB/s", "GB/s", 0.5},
        {"100Mb/s", "GB/s", 0.0125},
        {"1GiB/s", "GB/s", 1.073741824},
        {"HDR", "GB/s", 25},
        {"NDR", "GB/s", 50},
        {"8xHDR", "GB/s", 200},
        {"8 x 400Gb/s", "GB/s", 400},
        {"2x100GbE", "GB/s", 25},
        {"80GiB", "GiB", 80},
        {"80 GB", "GiB", 80},
        {"80g", "GiB", 80},
        {"1.5TiB", "GiB", 1536},
        {"512 MiB", "GiB", 0.5},
        {"5us", "us", 5},
        {"5 \xc2\xb5s", "us", 5},
        {"2ms", "us", 2000},
        {"5 min", "s", 300},
        {"2h", "s", 7200},
        {"90", "s", 90},
        {"$3.50", "$/h", 3.5},
        {"3.5 $/h", "$/h", 3.5},
        {"$3.5/h", "USD/h", 3.5},
        {"0.5/h", "1/h", 0.5},
        {"12/d", "/h", 0.5},
        {"1.5 PFLOPS", "TFLOP/s", 1500},
        {"312 TF/s", "TFLOP/s", 312},
        {"8k", "tokens", 8192},
        {"2048 tokens", "tokens", 2048},
        {"3", NULL, 3},
        {"-3", NULL, -3},
        {"4 nodes", "nodes", 4},
        {" 7 ", NULL, 7},
    };
    (void)state;
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_err err = {0};
        double x = NAN;
        if (hv_typed_number(cases[i].text, cases[i].unit, &x, &err) != HV_OK) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        if (fabs(x - cases[i].expected) > 1e-12 * fabs(cases[i].expected)) {
            fail_msg("%s is %.17g %s instead of %.17g", cases[i].text, x,
                     cases[i].unit != NULL ? cases[i].unit : "", cases[i].expected);
        }
    }
}

static void what_cannot_be_meant_is_refused_in_words(void **state)
{
    static const struct {
        const char *text, *unit, *why;
    } cases[] = {
        {"25gb/s", "GB/s", "Gb/s for bits or GB/s for bytes"},
        {"25 GiB", "GB/s", "is no unit here; expected GB/s"},
        {"80GiB", "us", "is no unit here; expected us"},
        {"", "GB/s", "expected a number of GB/s, found ''"},
        {"x", NULL, "expected a number, found 'x'"},
        {"3 nodes", NULL, "is no unit here"},
        {"0x10", "GiB", "expected a number"},
        {"nan", "GiB", "expected a number"},
        {"inf", NULL, "expected a number"},
        {"1e999", NULL, "expected a number"},
        {"1,5", NULL, "is no unit here"},
        {"5 5", NULL, "is no unit here"},
        {"2x", "GB/s", "expected a number"},
        {"hdr", "GB/s", "expected a number"},
        {"GbE", "GB/s", "expected a number"},
    };
    (void)state;
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_err err = {0};
        double x = -1;
        assert_int_equal(hv_typed_number(cases[i].text, cases[i].unit, &x, &err), HV_EUSAGE);
        if (strstr(err.text, cases[i].why) == NULL) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        assert_true(x >= -1 && x <= -1);
    }
}

static void a_shape_is_two_whole_numbers(void **state)
{
    static const char *const good[] = {"2x8", "2 x 8", " 2X8 ", "2*8",
                                       "2\xc3\x97"
                                       "8"};
    static const char *const bad[] = {"2", "2x", "x8", "2x8x4", "0x8", "2x0", "2.5x8", "-2x8", ""};
    double a, b;
    (void)state;
    for (size_t i = 0; i < HV_COUNT(good); i++) {
        a = b = 0;
        assert_true(hv_typed_shape(good[i], &a, &b));
        assert_int_equal((int)a, 2);
        assert_int_equal((int)b, 8);
    }
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        assert_false(hv_typed_shape(bad[i], &a, &b));
    }
}

static void words_are_found_in_any_order(void **state)
{
    (void)state;
    assert_true(hv_typed_words_in("A100-SXM-80GB", "a100 80"));
    assert_true(hv_typed_words_in("A100-SXM-80GB", "80  sxm a100 "));
    assert_true(hv_typed_words_in("A100-SXM-80GB", ""));
    assert_false(hv_typed_words_in("A100-SXM-40GB", "a100 80"));
    assert_false(hv_typed_words_in("", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_with_units_become_the_fields_unit),
        cmocka_unit_test(what_cannot_be_meant_is_refused_in_words),
        cmocka_unit_test(a_shape_is_two_whole_numbers),
        cmocka_unit_test(words_are_found_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
