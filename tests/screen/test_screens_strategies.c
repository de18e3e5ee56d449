/* The Strategies screen: list, parameters, runs that fail, errors of plugins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

#include "tests/screen/screens_bench.h"

static void shows_strategies_and_what_they_are(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 3\nwait broken\nwait search\nwait Search of everything\n"
                    "wait max_pp\n");
    bench_golden(b, "strategies_80x24");
    bench_script(b, "resize 160x48\nwait Proceedings of the tests\n");
    bench_golden(b, "strategies_160x48");
    bench_script(b, "resize 40x10\nwait [Strategies]\nkeys <Tab>\nwait Parameters of search\n"
                    "keys <Tab>\nwait Searcher\n");
}

static void a_broken_plugin_says_why(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 3G\nresize 160x48\nwait line 7\nwait attempt to index a nil value\n"
                    "keys <Right><Right><Enter>\n"
                    "wait error: plugins/a/broken.lua:7\n");
}

static void option_is(struct bench *b, const char *key, const char *value)
{
    struct hv_str text = {0};
    hv_session_option(b->session, "search", key, &text);
    assert_string_equal(hv_str_cstr(&text), value);
    hv_str_free(&text);
}

static void parameters_are_checked_and_undone(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 3gp<Enter>99\nwait expected\nkeys <Enter>\n");
    option_is(b, "max_pp", "");
    bench_script(b, "keys ^U8<Enter>\nwait set\n");
    option_is(b, "max_pp", "8");
    bench_script(b, "keys j<Right>\n");
    assert_true(hv_session_option_is_set(b->session, "search", "objective"));
    bench_script(b, "keys uu\n");
    option_is(b, "max_pp", "");
    bench_script(b, "keys jjj20<Enter>\n");
    assert_true(hv_session_limits(b->session).time_limit_s >= 20 ||
                hv_session_limits(b->session).budget == 20);
}

/** Lets workers end. */
static void settle(struct bench *b)
{
    for (int i = 0; i < 200 && hv_session_n_running(b->session) + hv_session_n_queued(b->session);
         i++) {
        struct pollfd fds[16];
        size_t n = hv_session_fds(b->session, fds, 16);
        (void)poll(fds, (nfds_t)(n < 16 ? n : 16), 20);
        hv_app_tick(b->app, i);
    }
}

static void a_run_that_dies_is_one_row(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 3g<Enter>\n");
    settle(b);
    bench_script(b, "wait failed\nkeys 4\nwait failed\n");
    size_t n = 0;
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 4);
    bench_script(b, "keys 3A\n");
    settle(b);
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 6);
    bench_script(b, "keys x\n");
}

static void filters_and_finds(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 3fbaseline<Enter>\nwait f baseline\nwait One plan\n");
    assert_false(bench_sees(b, "search"));
    bench_script(b, "keys f^U<Enter>/search<Enter>\nwait Search of everything\n");
}

static void write_text(const char *path, const char *text)
{
    assert_int_equal(hv_file_write(path, text, strlen(text), NULL), HV_OK);
}

/* A plugin of the id with one option. */
static void write_plugin(const char *path, const char *id, const char *option)
{
    struct hv_str text = {0};
    hv_str_addf(&text,
                "return { api = 1, id = '%s', title = 'Search', kind = 'planner',\n"
                "  system = 'Mine', reference = 'none', summary = 'Looks everywhere.',\n"
                "  options = { { key = '%s', type = 'integer', default = 3, min = 1, max = 9,\n"
                "    help = 'how far it looks' } },\n"
                "  plan = function(ctx) return nil, 'none' end }\n",
                id, option);
    write_text(path, hv_str_cstr(&text));
    hv_str_free(&text);
}

static void a_plugin_is_edited_and_read_again(void **state)
{
    struct bench *b = *state;
    assert_int_equal(system("mkdir -p plugins/a"), 0);
    write_plugin("plugins/a/search.lua", "search", "depth");
    write_plugin("plugins/a/simple.lua", "simple", "depth");
    write_plugin("more.lua", "search", "far_depth");
    write_plugin("other.lua", "simple", "depth");
    write_text("bad.lua", "return {\n  api = 1,\n  id = = 'search'\n}\n");
    assert_int_equal(setenv("VISUAL", "", 1), 0);
    assert_int_equal(setenv("EDITOR", "cp more.lua", 1), 0);
    bench_script(b, "resize 160x48\nkeys 3g\nwait max_pp\nkeys p<Esc>E\nwait 2 plugins "
                    "reloaded\nwait far_depth\n");
    assert_false(bench_sees(b, "max_pp"));
    assert_string_equal(hv_session_strategy(b->session, "search")->name, "plugins/a/search.lua");
    /* what is wrong is said with its line, and the strategy stays as it was */
    assert_int_equal(setenv("EDITOR", "cp bad.lua", 1), 0);
    bench_script(b, "keys E\nwait plugins/a/search.lua:3\nwait far_depth\n");
    assert_int_equal(setenv("EDITOR", "cp other.lua", 1), 0);
    bench_script(
        b,
        "keys E\nwait the id 'simple' is already used by plugins/a/simple.lua\nwait far_depth\n");
    /* saved by a program outside; r reads it, and the form keeps to the new limits */
    write_plugin("plugins/a/search.lua", "search", "depth");
    bench_script(b, "keys rp<Enter>^U12<Enter>\nwait at most 9\nkeys ^U7<Enter>\n");
    option_is(b, "depth", "7");
    assert_int_equal(setenv("EDITOR", "no-such-editor --wait", 1), 0);
    bench_script(b, "keys <Esc><Esc>E\nwait the editor \"no-such-editor --wait\"\n");
    assert_int_equal(unlink("plugins/a/search.lua"), 0);
    bench_script(b, "keys E\nwait plugins/a/search.lua: No such file\n");
}

static void nothing_breaks_strategies(void **state)
{
    struct bench *b = *state;
    bench_script(b, "keys 3\n");
    bench_fuzz(b, 3, 1500);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(shows_strategies_and_what_they_are),
        TEST(a_broken_plugin_says_why),
        TEST(parameters_are_checked_and_undone),
        TEST(a_run_that_dies_is_one_row),
        TEST(filters_and_finds),
        TEST(a_plugin_is_edited_and_read_again),
        TEST(nothing_breaks_strategies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
