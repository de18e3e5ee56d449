/* Screen 8: the log, the commands in it, recordings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"

static void changes_and_mistakes_are_in_the_log(void **state)
{
    struct bench *b = *state;
    bench_script(b, ":set cluster.nodes[0].count 4\n:set cluster.nodes[0].count no\n"
                    ":rename too-big \"much too big\"\nkeys <Esc>8\n"
                    "wait set cluster.nodes[0].count 4\nwait expected\nwait follow\n");
    bench_golden(b, "console_80x24");
    bench_script(b, "resize 160x48\nwait Console>\n");
    bench_golden(b, "console_160x48");
    bench_script(b, "resize 40x10\nwait <8 Cons>\n");
    bench_golden(b, "console_40x10");
    bench_script(b, "resize 80x24\nkeys LL\nwait Log  errors\n");
    assert_false(bench_sees(b, "set cluster.nodes[0].count 4"));
    bench_script(b, "keys L\nwait Log  commands\nwait set cluster\nkeys f^Urename<Enter>\n"
                    "wait 1 lines shown\nkeys f^U<Enter>LL\nkeys /count<Enter>n\n"
                    "wait count\nkeys gG\nwait follow\n");
}

static void a_command_goes_to_the_prompt_again(void **state)
{
    struct bench *b = *state;
    bench_script(b, ":set job.global_batch 256\nkeys 8cG<Enter>\nwait :set job.global_batch 256\n"
                    "keys <Backspace><Backspace><Backspace>512<Enter>\n");
    assert_true(json_integer_value(hv_session_get(b->session, "job.global_batch")) == 512);
}

static void a_recording_is_a_script(void **state)
{
    struct bench *b = *state;
    struct hv_str text = {0};
    bench_script(b, "keys 8R^Ur.script<Enter>\nwait recording to r.script\n"
                    ":set job.global_batch 256\nkeys u\n:limit seed=7\nkeys R\n"
                    "wait recorded in r.script\n");
    assert_int_equal(hv_file_read("r.script", &text, NULL), HV_OK);
    assert_non_null(strstr(hv_str_cstr(&text), "\n:set job.global_batch 256\n:undo\n:limit "));
    bench_script(b, hv_str_cstr(&text)); /* its lines are lines of scripts */
    hv_str_free(&text);
    bench_script(b, "keys 8R^Uno/such/r<Enter>\nwait error\n");
}

static void what_can_be_typed_is_listed(void **state)
{
    struct bench *b = *state;
    bench_script(
        b, "keys :\nwait [Commands]\nwait Tab shows more\nwait Tab Complete\nkeys <Tab><Tab>\nwait "
           "> remove\nkeys <Esc>:undo\nwait undo the last change\nkeys <Esc>:set job.sequence "
           "4\nwait DOCUMENT.KEY VALUE  change\nkeys <Esc>:set c\nwait set DOCUMENT.KEY VALUE  "
           "change a value\nwait set cluster.\nkeys <Esc>\nwait a Add\n");
    assert_false(bench_sees(b, "set cluster."));
    bench_script(b, "keys :zzz\nwait :zzz\n");
    assert_false(bench_sees(b, "[Commands]"));
    bench_script(b, "keys <Esc>?<Down>\nwait quit hetviz; asks if there are unsaved changes\n");
    bench_script(b, "keys <Esc>8e=1+1<Enter>\nwait > 1+1\n");
}

static void a_key_is_bound_while_the_program_runs(void **state)
{
    struct bench *b = *state;
    bench_script(
        b,
        "keys 8\nwait L Level\n:bind console M console-level\nwait key bound; add the line\nkeys "
        "M\nwait Log  warn\n:bind console M no-such-action\nwait error: \nkeys <Esc>:bind console "
        "M console-le\nwait console-level\nkeys <Esc>:bin\nwait VIEW KEY ACTION\nkeys <Esc>\n");
}

static void nothing_breaks_it(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 8\n");
    for (int i = 0; i < 30; i++) {
        hv_session_log(b->session, (enum hv_log_level)(i % 4), "x", "line %d\033[2J\n\n", i);
        bench_fuzz(b, (uint64_t)i, 40);
        bench_script(b, "keys <Esc><Esc><Esc>8\n");
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_and_mistakes_are_in_the_log),
        TEST(a_command_goes_to_the_prompt_again),
        TEST(a_recording_is_a_script),
        TEST(what_can_be_typed_is_listed),
        TEST(a_key_is_bound_while_the_program_runs),
        TEST(nothing_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
