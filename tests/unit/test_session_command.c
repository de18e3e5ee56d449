/* The table of commands: rows are complete, arguments are checked, texts are made from the rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/command/command.h"
#include <cmocka.h>
#include <string.h>

static const struct hv_command *row(const char *name)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    const struct hv_command *c = hv_command_find(rows, n, name);
    assert_non_null(c);
    return c;
}

/** Parses words up to NULL for a command. */
static enum hv_status parse(struct hv_args *a, struct hv_err *err, const char *name,
                            const char *const *words)
{
    int n = 0;
    while (words[n] != NULL) {
        n++;
    }
    *err = (struct hv_err){0};
    return hv_args_parse(a, row(name), n, words, err);
}

static void expect_usage(const char *name, const char *const *words, const char *part)
{
    struct hv_args a;
    struct hv_err err;
    assert_int_equal(parse(&a, &err, name, words), HV_EUSAGE);
    if (strstr(err.text, part) == NULL) {
        print_error("'%s' is not in '%s'\n", part, err.text);
    }
    assert_non_null(strstr(err.text, part));
    hv_args_free(&a);
}

static void test_rows_are_complete(void **state)
{
    size_t n = 0, n_prompt = 0, n_global = 0;
    const struct hv_command *rows = hv_commands(&n), *prompt = hv_prompt_commands(&n_prompt);
    (void)hv_global_options(&n_global);
    (void)state;
    assert_int_equal(n, HV_CMD_N);
    assert_int_equal(n_prompt, HV_PROMPT_END - HV_CMD_N - 1);
    assert_true(n_global >= 5);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].id, i);
        assert_true(strlen(rows[i].summary) > 5 && strlen(rows[i].help) > 5);
        for (size_t j = 0; j < rows[i].n_options; j++) {
            const struct hv_opt *o = &rows[i].options[j];
            assert_true(strlen(o->help) > 3);
            assert_int_equal(o->metavar == NULL, o->type == HV_ARG_FLAG);
            for (size_t k = 0; k < j; k++) {
                assert_string_not_equal(o->name, rows[i].options[k].name);
                assert_true(o->letter == 0 || o->letter != rows[i].options[k].letter);
            }
        }
    }
    for (size_t i = 0; i < n_prompt; i++) {
        assert_true(strlen(prompt[i].summary) > 5 && strlen(prompt[i].help) > 5);
    }
}

static void test_options_in_all_forms(void **state)
{
    const char *const words[] = {"-c",       "a.json",   "-mllama", "--strategy=whale", "-o",
                                 "x=1",      "--option", "y=a=b",   "--time-limit",     "500ms",
                                 "--seed=9", "--json",   NULL};
    struct hv_args a;
    struct hv_err err;
    size_t n = 0;
    (void)state;
    assert_int_equal(parse(&a, &err, "plan", words), HV_OK);
    assert_string_equal(hv_args_text(&a, "cluster", ""), "a.json");
    assert_string_equal(hv_args_text(&a, "model", ""), "llama");
    assert_string_equal(hv_args_text(&a, "strategy", ""), "whale");
    assert_null(hv_args_text(&a, "job", NULL));
    assert_true(hv_args_has(&a, "json"));
    assert_false(hv_args_has(&a, "quiet"));
    assert_float_equal(hv_args_number(&a, "time-limit", 0), 0.5, 1e-12);
    assert_float_equal(hv_args_number(&a, "seed", 1), 9, 0);
    const char **all = hv_args_all(&a, "option", &n);
    assert_int_equal(n, 2);
    assert_string_equal(all[1], "y=a=b");
    hv_args_free(&a);
}

static void test_lists_numbers_and_arguments(void **state)
{
    const char *const compare[] = {"-c", "a", "-m", "b", "-s", "x,y,,z", "-s", "w", NULL};
    const char *const schedule[] = {"1f1b", "-p", "4", "-m8", "--times", "1,2.5,0,0", NULL};
    const char *const eval[] = {"--", "-odd-", NULL};
    const char *const dash[] = {"-", NULL};
    struct hv_args a;
    struct hv_err err;
    size_t n = 0;
    (void)state;
    assert_int_equal(parse(&a, &err, "compare", compare), HV_OK);
    const char **all = hv_args_all(&a, "strategies", &n);
    assert_int_equal(n, 4);
    assert_string_equal(all[2], "z");
    hv_args_free(&a);
    assert_int_equal(parse(&a, &err, "schedule", schedule), HV_OK);
    double *x = hv_args_numbers(&a, "times", &n);
    assert_int_equal(n, 4);
    assert_float_equal(x[1], 2.5, 0);
    assert_string_equal(a.positional[0], "1f1b");
    hv_args_free(&a);
    assert_int_equal(parse(&a, &err, "eval", eval), HV_OK);
    assert_string_equal(a.positional[0], "-odd-");
    hv_args_free(&a);
    assert_int_equal(parse(&a, &err, "eval", dash), HV_OK);
    assert_string_equal(a.positional[0], "-");
    hv_args_free(&a);
}

static void test_usage_errors_say_what_is_wrong(void **state)
{
    (void)state;
    expect_usage("plan", (const char *const[]){"-c", "a", "-m", "b", NULL},
                 "--strategy STRATEGY is missing");
    expect_usage("plan", (const char *const[]){"--clutser", "a", NULL}, "did you mean --cluster");
    expect_usage("plan", (const char *const[]){"-c", NULL}, "needs a value");
    expect_usage("plan", (const char *const[]){"-c", "a", "-m", "b", "-s", "x", "extra", NULL},
                 "unexpected argument 'extra'");
    expect_usage("plan", (const char *const[]){"-o", "novalue", NULL}, "KEY=VALUE");
    expect_usage("plan", (const char *const[]){"--json=1", NULL}, "takes no value");
    expect_usage("plan", (const char *const[]){"--time-limit", "3 parsecs", NULL},
                 "expected a time");
    expect_usage("plan", (const char *const[]){"--time-limit", "-3", NULL}, "out of range");
    expect_usage("plan", (const char *const[]){"--seed", "1.5", NULL}, "whole number");
    expect_usage("plan", (const char *const[]){"--seed", "nan", NULL}, "whole number");
    expect_usage("plan", (const char *const[]){"--seed", "0x10", NULL}, "whole number");
    expect_usage("schedule", (const char *const[]){"gpipe", "-p", "0", "-m", "1", NULL},
                 "out of range");
    expect_usage("schedule",
                 (const char *const[]){"gpipe", "-p", "2", "-m", "1", "--times", "1,,2", NULL},
                 "expected a number");
    expect_usage("eval", (const char *const[]){NULL}, "expected PLAN");
    expect_usage("eval", (const char *const[]){"", "-c", "", NULL}, "found nothing");
}

static void test_help_wins(void **state)
{
    struct hv_args a;
    struct hv_err err;
    (void)state;
    assert_int_equal(parse(&a, &err, "plan", (const char *const[]){"--nonsense", "-h", NULL}),
                     HV_OK);
    assert_true(a.wants_help);
    hv_args_free(&a);
}

static void test_split(void **state)
{
    struct hv_arena arena = {0};
    const char **words;
    size_t n = 0;
    (void)state;
    assert_int_equal(hv_command_split(&arena, "  set \"a b\"  c\\ d \"\" ", &words, &n, NULL),
                     HV_OK);
    assert_int_equal(n, 4);
    assert_string_equal(words[1], "a b");
    assert_string_equal(words[2], "c d");
    assert_string_equal(words[3], "");
    assert_int_equal(hv_command_split(&arena, "", &words, &n, NULL), HV_OK);
    assert_int_equal(n, 0);
    assert_int_equal(hv_command_split(&arena, "a\"", &words, &n, NULL), HV_EUSAGE);
    hv_arena_free(&arena);
}

/** Every name of the table appears in every text that is made from it. */
static void test_texts_name_everything(void **state)
{
    struct hv_str list = {0}, man = {0}, bash = {0}, fish = {0};
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    (void)state;
    hv_command_list(&list);
    hv_command_man(&man);
    assert_int_equal(hv_command_completion(&bash, "bash", NULL), HV_OK);
    assert_int_equal(hv_command_completion(&fish, "fish", NULL), HV_OK);
    assert_int_equal(hv_command_completion(&fish, "tcsh", NULL), HV_EUSAGE);
    for (size_t i = 0; i < n; i++) {
        struct hv_str help = {0};
        hv_command_help(&help, &rows[i]);
        for (size_t j = 0; j < rows[i].n_options; j++) {
            assert_non_null(strstr(hv_str_cstr(&help), rows[i].options[j].help));
        }
        hv_str_free(&help);
        if (rows[i].hidden) {
            continue;
        }
        assert_non_null(strstr(hv_str_cstr(&list), rows[i].name));
        assert_non_null(strstr(hv_str_cstr(&bash), rows[i].name));
        assert_non_null(strstr(hv_str_cstr(&fish), rows[i].name));
    }
    assert_non_null(strstr(hv_str_cstr(&man), ".SH COMMANDS"));
    hv_str_free(&list);
    hv_str_free(&man);
    hv_str_free(&bash);
    hv_str_free(&fish);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_options_in_all_forms),
        cmocka_unit_test(test_lists_numbers_and_arguments),
        cmocka_unit_test(test_usage_errors_say_what_is_wrong),
        cmocka_unit_test(test_help_wins),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_texts_name_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
