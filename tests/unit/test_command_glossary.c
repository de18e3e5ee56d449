/** The glossary: order, other names, width, and the words that screens use without explaining them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <strings.h>

#include "ui/command/glossary.h"

static void test_terms_are_in_alphabetical_order_and_defined(void **state)
{
    (void)state;
    size_t n = 0;
    const struct hv_term *t = hv_glossary(&n);
    assert_true(n > 10);
    for (size_t i = 0; i < n; i++) {
        assert_true(strlen(t[i].text) > 20);
        assert_int_equal(t[i].text[strlen(t[i].text) - 1], '.');
        assert_true(i == 0 || strcasecmp(t[i - 1].name, t[i].name) < 0);
        assert_ptr_equal(hv_glossary_find(t[i].name), &t[i]);
    }
}

static void test_words_of_the_screens_are_defined(void **state)
{
    (void)state;
    static const char *const words[] = {"gap",
                                        "bound",
                                        "MFU",
                                        "mfu",
                                        "bubble",
                                        "claimed",
                                        "simulated",
                                        "exact",
                                        "stale",
                                        "layout",
                                        "dp",
                                        "tp",
                                        "pp",
                                        "cp",
                                        "ep",
                                        "proven",
                                        "step",
                                        "iteration",
                                        "micro-batch",
                                        "exposed",
                                        "critical path",
                                        "replica",
                                        "lower bound",
                                        "FSDP",
                                        "approximated",
                                        "optimality gap",
                                        "s/iter"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (hv_glossary_find(words[i]) == NULL) {
            fail_msg("no term %s", words[i]);
        }
    }
    assert_null(hv_glossary_find("gaps"));
    assert_null(hv_glossary_find(""));
    assert_null(hv_glossary_find("lower"));
}

static void test_the_list_is_wrapped(void **state)
{
    (void)state;
    struct hv_str out = {0};
    hv_glossary_list(&out);
    const char *text = hv_str_cstr(&out);
    assert_non_null(strstr(text, "zb-h2 1/16/1-2"));
    for (size_t at = 0, len; text[at] != '\0'; at += len + 1) {
        len = strcspn(text + at, "\n");
        assert_true(len <= 78);
    }
    hv_str_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms_are_in_alphabetical_order_and_defined),
        cmocka_unit_test(test_words_of_the_screens_are_defined),
        cmocka_unit_test(test_the_list_is_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
