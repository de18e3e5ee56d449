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
#undef CLEAN
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
        cmocka_unit_test(strings_grow_and_end),
        cmocka_unit_test(text_becomes_safe),
        cmocka_unit_test(nearest_word),
        cmocka_unit_test(endings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
