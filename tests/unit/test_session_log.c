/* The log, groups of edits, and recordings that do everything again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "tests/unit/session_bench.h"
#include "ui/session/prompt/prompt.h"

static void command(struct hv_session *s, const char *line)
{
    struct hv_prompt_outcome o = {0};
    struct hv_err err = {0};
    if (hv_session_command(s, line, &o, &err) != HV_OK) {
        fail_msg("%s: %s", line, err.text);
    }
    hv_prompt_outcome_free(&o);
}

/* Runs the `:` lines of a recording. */
static void replay(struct hv_session *s, const char *path)
{
    struct hv_str text = bench_get(path);
    for (char *at = text.p; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        char more = at[n];
        at[n] = '\0';
        if (at[0] == ':') {
            command(s, at + 1);
        }
        at += n + (more != '\0');
    }
    hv_str_free(&text);
}

static const char *last_command(const struct hv_session *s)
{
    size_t n = 0;
    const struct hv_log_line *lines = hv_session_log_lines(s, &n);
    while (n > 0 && !lines[n - 1].command) {
        n--;
    }
    return n > 0 ? lines[n - 1].text : "";
}

static void changes_are_logged_as_commands(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    command(s, "set cluster.nodes[0].count 4");
    assert_string_equal(last_command(s), "set cluster.nodes[0].count 4");
    command(s, "set cluster.nodes[0].x-rack \"r 2\"");
    assert_string_equal(last_command(s), "set cluster.nodes[0].x-rack \"r 2\"");
    command(s, "remove cluster.nodes[1]");
    assert_string_equal(last_command(s), "remove cluster.nodes[1]");
    command(s, "undo");
    assert_string_equal(last_command(s), "undo");
    command(s, "option mine faults=3");
    assert_string_equal(last_command(s), "set strategies[0] {\"id\":\"mine\",\"options\":"
                                         "{\"faults\":3}}");
    uint32_t id = bench_add_plan(s, "first plan");
    assert_memory_equal(last_command(s), "plan \"first plan\" {", 19);
    assert_true(hv_session_row_delete(s, id));
    assert_string_equal(last_command(s), "delete \"first plan\"");
    hv_session_log(s, HV_LOG_ERROR, "x", "one\ntwo\033[m");
    size_t n = 0;
    const struct hv_log_line *lines = hv_session_log_lines(s, &n);
    assert_string_equal(lines[n - 2].text, "one");
    assert_null(strchr(lines[n - 1].text, '\033'));
    assert_float_equal(lines[n - 1].at_s, 1000, 0);
    for (int i = 0; i < 10000; i++) {
        hv_session_log(s, HV_LOG_DEBUG, "x", "line %d", i);
    }
    lines = hv_session_log_lines(s, &n);
    assert_in_range(n, 2000, 4000);
    assert_string_equal(lines[n - 1].text, "line 9999");
    hv_session_close(s);
}

static void a_group_is_one_step_or_nothing(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    struct hv_str first = bench_bytes(s);
    /* neither edit is valid alone: heads must divide hidden */
    command(s, "begin");
    command(s, "set model.hidden 1000");
    command(s, "set model.heads 10");
    command(s, "set model.kv_heads 10");
    command(s, "set job.global_batch 128");
    assert_int_equal(hv_session_n_undo(s), 0);
    command(s, "end");
    assert_int_equal(hv_session_n_undo(s), 2); /* a step per document */
    assert_int_equal(json_integer_value(hv_session_get(s, "model.heads")), 10);
    command(s, "undo");
    command(s, "undo");
    struct hv_str back = bench_bytes(s);
    assert_string_equal(back.p, first.p);
    hv_session_group_begin(s);
    assert_int_equal(hv_session_set_text(s, "model.layers", "-1", &err), HV_OK);
    assert_int_equal(hv_session_group_end(s, &err), HV_EINPUT);
    assert_int_equal(hv_session_n_undo(s), 0);
    command(s, "begin");
    command(s, "set model.layers 4");
    command(s, "redo"); /* steps back and forth end a group */
    command(s, "end");
    assert_int_equal(json_integer_value(hv_session_get(s, "model.layers")), 8);
    hv_str_free(&first);
    hv_str_free(&back);
    hv_session_close(s);
}

static void random_edit(struct hv_session *s, struct hv_rng *rng, unsigned i)
{
    char line[200];
    unsigned a = (unsigned)hv_rng_below(rng, 4), b = (unsigned)hv_rng_below(rng, 6);
    switch (hv_rng_below(rng, 9)) {
    case 0:
        snprintf(line, sizeof line, "set cluster.nodes[%u].count %u", a, b);
        break;
    case 1:
        snprintf(line, sizeof line, "set cluster.nodes[%u].devices %u", a, b);
        break;
    case 2:
        snprintf(line, sizeof line, "remove cluster.nodes[%u]", a);
        break;
    case 3:
        snprintf(line, sizeof line, "set cluster.nodes[%u].x-note {\"a b\": [%u, 1]}", a, b);
        break;
    case 4:
        snprintf(line, sizeof line, "set job.global_batch %u%u", a, b);
        break;
    case 5:
        snprintf(line, sizeof line, "set model.layers %u%u", a, b);
        break;
    case 6:
        snprintf(line, sizeof line,
                 "insert cluster.nodes[%u] {\"name\": \"g%u\", \"count\": 1, \"device\": "
                 "\"T4-16GB\", \"devices\": 2}",
                 a, i);
        break;
    default:
        snprintf(line, sizeof line, "%s", b < 4 ? "undo" : "redo");
    }
    struct hv_prompt_outcome o = {0};
    (void)!hv_session_command(s, line, &o, NULL);
    hv_prompt_outcome_free(&o);
}

static void a_recording_does_everything_again(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_rng rng;
    hv_rng_seed(&rng, 3);
    for (unsigned i = 0; i < 50; i++) { /* unsaved changes before the recording count too */
        random_edit(s, &rng, i);
    }
    command(s, "record r.script");
    assert_string_equal(hv_session_recording(s), "r.script");
    for (unsigned i = 50; i < 600; i++) {
        random_edit(s, &rng, i);
    }
    command(s, "limit time=5 seed=9");
    command(s, "record");
    assert_null(hv_session_recording(s));
    struct hv_str want = bench_bytes(s);
    hv_session_close(s);
    s = bench_open(*state, "ws");
    replay(s, "r.script");
    struct hv_str got = bench_bytes(s);
    assert_string_equal(got.p, want.p);
    assert_true(hv_session_limits(s).seed == 9);
    hv_str_free(&want);
    hv_str_free(&got);
    hv_session_close(s);
}

static void recordings_say_what_is_wrong(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_prompt_outcome o = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_session_command(s, "record", &o, &err), HV_EUSAGE);
    assert_int_equal(hv_session_command(s, "record no/such/folder", &o, &err), HV_EIO);
    assert_int_equal(hv_session_command(s, "record /dev/full", &o, &err), HV_EIO);
    assert_null(hv_session_recording(s));
    assert_int_equal(hv_session_command(s, "limit speed=1", &o, &err), HV_EUSAGE);
    assert_int_equal(hv_session_command(s, "plan x {", &o, &err), HV_EINPUT);
    assert_int_equal(hv_session_command(s, "delete nobody", &o, &err), HV_EUSAGE);
    hv_prompt_outcome_free(&o);
    hv_session_close(s);
}

/* Ticks until no line of Lua runs any more. */
static void settle(struct hv_session *s)
{
    for (int i = 0; i < 60000 && hv_session_lua_busy(s); i++) {
        struct pollfd fds[8];
        size_t n = hv_session_fds(s, fds, HV_COUNT(fds));
        (void)poll(fds, (nfds_t)n, 10);
        (void)hv_session_tick(s);
    }
    assert_false(hv_session_lua_busy(s));
}

static bool was_said(const struct hv_session *s, enum hv_log_level level, const char *text)
{
    size_t n = 0;
    const struct hv_log_line *lines = hv_session_log_lines(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (lines[i].level == level && strstr(lines[i].text, text) != NULL) {
            return true;
        }
    }
    return false;
}

static void what_lua_changes_comes_back_as_steps(void **state)
{
    struct bench *b = *state;
    static const char *const argv[] = {"/bin/sh", "lua.sh", NULL};
    /* a worker that answers: more, then a change, then an error, then it dies */
    bench_put("lua.sh",
              "read -r job\n"
              "say() { read -r line; printf '%s\\n' \"$1\"; }\n"
              "say '{\"event\":\"answer\",\"state\":\"more\",\"text\":\"\"}'\n"
              "say '{\"event\":\"answer\",\"state\":\"done\",\"text\":\"hi\\nyou\\n\","
              "\"commands\":[{\"do\":\"set\",\"path\":\"job.global_batch\",\"value\":32}]}'\n"
              "say '{\"event\":\"answer\",\"state\":\"error\",\"text\":\"\","
              "\"error\":{\"text\":\"no such thing\"}}'\n"
              "read -r line; exit 3\n");
    b->env.worker_argv = argv;
    struct hv_session *s = bench_open(b, "ws");
    command(s, "lua for \"x");
    settle(s);
    assert_true(hv_session_lua_wants_more(s));
    command(s, "lua end");
    settle(s);
    assert_false(hv_session_lua_wants_more(s));
    assert_true(was_said(s, HV_LOG_INFO, "you"));
    assert_int_equal(json_integer_value(hv_session_get(s, "job.global_batch")), 32);
    assert_string_equal(last_command(s), "set job.global_batch 32");
    command(s, "lua again()");
    settle(s);
    assert_true(was_said(s, HV_LOG_ERROR, "no such thing"));
    command(s, "lua die()");
    settle(s);
    assert_true(was_said(s, HV_LOG_ERROR, "the console ended"));
    command(s, "undo");
    assert_int_equal(json_integer_value(hv_session_get(s, "job.global_batch")), 64);
    hv_session_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_are_logged_as_commands), TEST(a_group_is_one_step_or_nothing),
        TEST(a_recording_does_everything_again), TEST(recordings_say_what_is_wrong),
        TEST(what_lua_changes_comes_back_as_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
