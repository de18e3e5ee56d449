/* The plain front end: a tour of all screens in words, and what it does with odd input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"
#include "ui/term/plain.h"

#include <fcntl.h>

/* Runs lines; what it wrote goes to b->out. */
static enum hv_status talk(struct bench *b, const char *lines, bool *abandoned)
{
    int in[2], out = open("out.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct hv_err err = {0};
    assert_int_equal(pipe(in), 0);
    assert_true(out >= 0);
    assert_true(fcntl(in[1], F_SETFL, O_NONBLOCK) == 0);
    (void)!write(in[1], lines, strlen(lines));
    (void)close(in[1]);
    const struct hv_plain_config c = {
        .app = b->app, .session = b->session, .in = in[0], .out = out, .ascii = true};
    enum hv_status st = hv_plain_run(&c, abandoned, &err);
    (void)close(in[0]);
    (void)close(out);
    hv_str_clear(&b->out);
    assert_int_equal(hv_file_read("out.txt", &b->out, NULL), HV_OK);
    for (size_t i = 0; i < b->out.n; i++) {
        unsigned char c1 = (unsigned char)b->out.p[i];
        assert_true(c1 == '\n' || (c1 >= 0x20 && c1 < 0x7F)); /* no control sequence, ASCII only */
    }
    return st;
}

static void says(const struct bench *b, const char *text)
{
    if (strstr(hv_str_cstr(&b->out), text) == NULL) {
        fail_msg("it does not say '%s':\n%s", text, hv_str_cstr(&b->out));
    }
}

/* As bench_golden for what was written. */
static void golden(struct bench *b, const char *name)
{
    struct hv_str path = {0}, then = {0}, x = {0}, y = {0};
    hv_str_addf(&path, "%s/tests/golden/screens/%s.txt", b->root, name);
    if (getenv("GENERATE") != NULL) {
        assert_int_equal(hv_file_write(hv_str_cstr(&path), hv_str_cstr(&b->out), b->out.n, NULL),
                         HV_OK);
    }
    assert_int_equal(hv_file_read(hv_str_cstr(&path), &then, NULL), HV_OK);
    bench_skeleton(hv_str_cstr(&b->out), &x);
    bench_skeleton(hv_str_cstr(&then), &y);
    if (strcmp(hv_str_cstr(&x), hv_str_cstr(&y)) != 0) {
        fail_msg("%s is not what is said:\n%s", hv_str_cstr(&path), hv_str_cstr(&b->out));
    }
    hv_str_free(&path);
    hv_str_free(&then);
    hv_str_free(&x);
    hv_str_free(&y);
}

static void a_tour_of_all_screens(void **state)
{
    struct bench *b = *state;
    bool abandoned = true;
    assert_int_equal(talk(b, "2\n3\n4\nrow 2\n5\n7\n8\n?\nq\n", &abandoned), HV_OK);
    assert_false(abandoned);
    says(b, "1 > group: a; device: A100-SXM-80GB");
    says(b, "hidden: 4096");
    says(b, "plan: two-stages; strategy: search");
    says(b, "few-devices");
    says(b, "order: f0");
    says(b, "s/iter");
    golden(b, "plain_tour");
}

static void numbers_words_and_commands_act(void **state)
{
    struct bench *b = *state;
    bool abandoned = false;
    assert_int_equal(talk(b,
                          "set job.global_batch 256\n:set job.global_batch 64\nundo\nset nothing "
                          "1\nfind v\nfind\nrow 99999999\n77\nmenu\n4\nplan-rename\nmine\nkeys "
                          "g<nokey>\nkeys G\nwait\n\n",
                          &abandoned),
                     HV_OK);
    says(b, "set job.global_batch 64\n");
    says(b, "undone: set job.global_batch 64");
    says(b, "a key path begins with");
    says(b, "unknown number");
    says(b, "rename");
    says(b, "not saved; hetviz offers these changes at the next start");
    assert_true(abandoned);
    assert_true(json_integer_value(hv_session_get(b->session, "job.global_batch")) == 256);
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(b->session, &n);
    assert_string_equal(rows[0]->name, "mine");
}

static void explain_is_told_once_it_is_worked_out(void **state)
{
    struct bench *b = *state;
    bool abandoned = false;
    assert_int_equal(talk(b, "select two-stages\n6\nq\n", &abandoned), HV_OK);
    says(b, "== explain ==");
    says(b, "Explain two-stages:");
    says(b, "is the slowest");
}

static void leaving_asks_when_something_is_unsaved(void **state)
{
    struct bench *b = *state;
    bool abandoned = false;
    assert_int_equal(talk(b, "set job.global_batch 64\nq\nn\n8\nq\ny\n4\n", &abandoned), HV_OK);
    says(b, "Unsaved changes.");
    says(b, "== console ==");
    assert_null(strstr(hv_str_cstr(&b->out), "== plans =="));
    assert_false(abandoned);
}

static void a_full_output_is_an_error(void **state)
{
    struct bench *b = *state;
    bool abandoned = false;
    struct hv_err err = {0};
    int full = open("/dev/full", O_WRONLY), nothing = open("/dev/null", O_RDONLY);
    const struct hv_plain_config c = {
        .app = b->app, .session = b->session, .in = nothing, .out = full, .ascii = true};
    assert_int_equal(hv_plain_run(&c, &abandoned, &err), HV_EIO);
    assert_non_null(strstr(err.text, "cannot write"));
    (void)close(full);
    (void)close(nothing);
}

static void nothing_breaks_it(void **state)
{
    static const char *const words[] = {"1",
                                        "2",
                                        "3",
                                        "4",
                                        "5",
                                        "6",
                                        "7",
                                        "8",
                                        "11",
                                        "12",
                                        "13",
                                        "14",
                                        "15",
                                        "16",
                                        "17",
                                        "18",
                                        "row 2",
                                        "row x",
                                        "",
                                        "?",
                                        "q",
                                        "find two",
                                        "find",
                                        "keys jj",
                                        "keys <",
                                        "undo",
                                        "redo",
                                        "set",
                                        ":",
                                        "\033[2J",
                                        "\xff",
                                        "menu",
                                        "wait",
                                        "x",
                                        "select two-stages",
                                        "r",
                                        "plan-compare",
                                        "gantt-zoom-in",
                                        "what-if-solve",
                                        "begin",
                                        "end",
                                        "n"};
    struct bench *b = *state;
    struct hv_rng rng;
    struct hv_str lines = {0};
    hv_rng_seed(&rng, 5);
    for (int i = 0; i < 400; i++) {
        hv_str_addf(&lines, "%s\n", words[hv_rng_below(&rng, HV_COUNT(words))]);
    }
    bool abandoned = false;
    assert_int_equal(talk(b, hv_str_cstr(&lines), &abandoned), HV_OK);
    hv_str_free(&lines);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tour_of_all_screens),
        TEST(numbers_words_and_commands_act),
        TEST(explain_is_told_once_it_is_worked_out),
        TEST(leaving_asks_when_something_is_unsaved),
        TEST(a_full_output_is_an_error),
        TEST(nothing_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
