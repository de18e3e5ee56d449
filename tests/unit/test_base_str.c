/* Strings, cleaning of text, suggestions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/str.h"

static void strings_grow_and_end(void **state)
{
    (void)state;
    struct hv_str s = {0};
    assert_string_equal(hv_str_cstr(&s), "");
    hv_str_add(&s, NULL, 0);
    for (int i = 0; i < 1000; i++) {
        hv_str_addc(&s, (char)('a' + i % 26));
        assert_int_equal(s.p[s.n], 0);
    }
    assert_int_equal(s.n, 1000);
    hv_str_clear(&s);
    assert_string_equal(hv_str_cstr(&s), "");
    hv_str_addu(&s, 0);
    hv_str_addu(&s, 4294967295);
    assert_string_equal(hv_str_cstr(&s), "04294967295");
    hv_str_clear(&s);
    hv_str_addf(&s, "%s-%0500d", "x", 7);
    assert_int_equal(s.n, 502);
    assert_int_equal(s.p[501], '7');
    hv_str_add(&s, "\0z", 2);
    assert_int_equal(s.n, 504);
    hv_str_free(&s);
    assert_true(!s.p && !s.n && !s.cap);
}

static void clean(const char *in, size_t n, const char *want)
{
    struct hv_str s = {0};
    hv_text_clean(&s, in, n);
    assert_string_equal(hv_str_cstr(&s), want);
    hv_str_free(&s);
}

static void text_becomes_safe(void **state)
{
    (void)state;
#define CLEAN(in, want) clean(in, sizeof(in) - 1, want)
    CLEAN("", "");
    CLEAN("stage \u2013 \u00e9\U0001F600", "stage \u2013 \u00e9\U0001F600");
    CLEAN("a\tb\nc\r\nd", "a b c d");
    CLEAN("\r", "<U+000D>");
    CLEAN("\033[2Jx\x7f", "<U+001B>[2Jx<U+007F>");
    CLEAN("\0", "<U+0000>");
    CLEAN("\xc2\x9b", "<U+009B>");
    CLEAN("a\u202Eb\u2066\u2069\u200E\u200F", "a<U+202E>b<U+2066><U+2069><U+200E><U+200F>");
    CLEAN("\u202A\u202B\u202C\u202D", "<U+202A><U+202B><U+202C><U+202D>");
    CLEAN("\xff-\xc3", "<0xFF>-<0xC3>");
    CLEAN("\xc0\xaf", "<0xC0><0xAF>");                     /* overlong '/' */
    CLEAN("\xed\xa0\x80", "<0xED><0xA0><0x80>");           /* half a surrogate pair */
    CLEAN("\xf4\x90\x80\x80", "<0xF4><0x90><0x80><0x80>"); /* above U+10FFFF */
    CLEAN("\xe2\x80", "<0xE2><0x80>");
    /* what is not drawn could make two names look the same */
    CLEAN("a\u00ADb\u200B\u200D\u2060\u2064\uFEFF",
          "a<U+00AD>b<U+200B><U+200D><U+2060><U+2064><U+FEFF>");
    CLEAN("\u061C\u180E\u2028\u2029\u3164\uFFF9",
          "<U+061C><U+180E><U+2028><U+2029><U+3164><U+FFF9>");
    CLEAN("\U000E0041\uFE0F\uFFFF", "<U+E0041><U+FE0F><U+FFFF>");
    CLEAN("\u2764\uFE0F \u05D0\u0627\u0300",
          "\u2764\uFE0F \u05D0\u0627\u0300"); /* letters and marks stay */
#undef CLEAN
}

static void lines_stay_lines(void **state)
{
    (void)state;
    struct hv_str s = {0};
    const char text[] = "a\tb\nc\r\n\033[2J\n\xff";
    hv_text_clean_lines(&s, text, sizeof text - 1);
    assert_string_equal(s.p, "a\tb\nc\n<U+001B>[2J\n<0xFF>");
    struct hv_str again = {0};
    hv_text_clean_lines(&again, s.p, s.n); /* clean text stays as it is */
    assert_string_equal(again.p, s.p);
    hv_str_free(&s);
    hv_str_free(&again);
}

/* A formatted text equals that of printf for plain ASCII; a foreign one is a line, and its width
 * counts columns. */
static void text_is_formatted(void **state)
{
    (void)state;
    struct hv_str s = {0}, want = {0};
#define BOTH(...) (hv_text_addf(&s, __VA_ARGS__), hv_str_addf(&want, __VA_ARGS__))
    BOTH("plain %% %d %5.2f|%-6s|%6s|%.2s|\n", -3, 2.5, "ab", "ab", "abc");
    BOTH("%zu %lu %lld %u %c %x %g %e%s", (size_t)1, 2UL, -3LL, 4U, 'c', 255U, 1e9, 0.5, "");
    BOTH("%*d|%-*s|%*s|%.*s|%-*.*s|", 5, 1, 6, "x", -4, "y", 1, "long", 3, 2, "long");
    BOTH("%s", "");
    BOTH("%+d % d %#x %05d %jd %td %hhd", 1, 2, 3U, 4, (intmax_t)6, (ptrdiff_t)7, 8);
    BOTH("%Lf %s %Lg", 1.5L, "between", 2.5L);
    BOTH("no conversion");
#undef BOTH
    assert_string_equal(s.p, want.p);
    hv_str_clear(&s);
    hv_text_addf(&s, "[%s] %-4s|%3s|%.2s|%d", "a\nb\033", "\u00e9", "\u6f22", "\u6f22\u5b57", 7);
    assert_string_equal(s.p, "[a b<U+001B>] \u00e9   | \u6f22|\u6f22|7");
    hv_str_free(&s);
    hv_str_free(&want);
}

static void near(const char *word, const char *want)
{
    static const char *const words[] = {"count", "name", "gpus", "intra", "price_usd_per_h", "tp"};
    const char *found = hv_suggest(word, words, HV_COUNT(words));
    assert_string_equal(found ? found : "(none)", want);
}

static void nearest_word(void **state)
{
    (void)state;
    near("cuont", "count"); /* a swap is one edit */
    near("COUNT", "count");
    near("cnt", "count");
    near("nmae", "name");
    near("price_usd_per_hour", "price_usd_per_h");
    near("price_usd_per_month", "price_usd_per_h"); /* 4 edits of 19 letters */
    near("bandwidth", "(none)");
    near("x", "(none)"); /* two edits from "tp", but nothing in common */
    near("", "(none)");
    static const char *const twins[] = {"ab1", "ab2"};
    assert_string_equal(hv_suggest("ab", twins, 2), "ab1");
    assert_null(hv_suggest("ab", twins, 0));
    struct hv_str huge = {0};
    for (int i = 0; i < 1000000; i++) {
        hv_str_addc(&huge, 'c');
    }
    near(hv_str_cstr(&huge), "(none)");
    hv_str_free(&huge);
}

static void endings(void **state)
{
    (void)state;
    assert_true(hv_text_ends_with("a.svg", ".svg"));
    assert_false(hv_text_ends_with(".svg", ".svg"));
    assert_false(hv_text_ends_with("a.svg2", ".svg"));
    assert_false(hv_text_ends_with("g", ".svg"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_grow_and_end), cmocka_unit_test(text_becomes_safe),
        cmocka_unit_test(lines_stay_lines),     cmocka_unit_test(text_is_formatted),
        cmocka_unit_test(nearest_word),         cmocka_unit_test(endings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
