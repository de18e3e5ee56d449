/* The prompt against a session, and runs in workers that are shell scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_bench.h"
#include "ui/session/prompt/prompt.h"

/* Runs a line that must work; its message is in `out` until the next. */
static void works(struct hv_session *s, const char *line, struct hv_prompt_outcome *out)
{
    struct hv_err err = {0};
    hv_prompt_outcome_free(out);
    if (hv_session_command(s, line, out, &err) != HV_OK) {
        fail_msg("%s: %s", line, err.text);
    }
}

static void commands_change_the_session(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_prompt_outcome out = {0};
    works(s, "", &out);
    works(s, "  set cluster.nodes[0].count 4", &out);
    assert_string_equal(hv_str_cstr(&out.message), "set cluster.nodes[0].count 4");
    works(s, "set cluster.name two words and \"quotes\"", &out);
    assert_string_equal(json_string_value(hv_session_get(s, "cluster.name")),
                        "two words and \"quotes\"");
    works(s, "set cluster.name \"in JSON\"", &out);
    assert_string_equal(json_string_value(hv_session_get(s, "cluster.name")), "in JSON");
    works(s, "set cluster.devices[\"My.Card\"] {\"base\": \"A100-SXM-80GB\", \"memory_GiB\": 40}",
          &out);
    assert_true(json_number_value(hv_session_get(s, "cluster.devices[\"My.Card\"].memory_GiB")) ==
                40);
    works(s, "undo", &out);
    works(s, "u", &out);
    assert_string_equal(hv_str_cstr(&out.message), "undone: set cluster.name \"in JSON\"");
    works(s, "redo", &out);
    works(s, "option mine faults=4", &out);
    assert_true(hv_session_option_is_set(s, "mine", "faults"));
    works(s, "option mine faults=", &out);
    assert_false(hv_session_option_is_set(s, "mine", "faults"));
    works(s, "write", &out);
    assert_false(hv_session_dirty(s));
    works(s, "w copy", &out);
    assert_string_equal(hv_session_path(s), "copy");
    hv_session_select(s, bench_add_plan(s, "mine-1"));
    works(s, "export out.json", &out);
    works(s, "export mine-1 out2.json", &out);
    works(s, "export --to csv mine-1 tables", &out);
    works(s, "export --to hostfile hosts", &out);
    struct hv_str table = bench_get("tables/stages.csv"), hosts = bench_get("hosts/hostfile");
    assert_non_null(strstr(table.p, "replica,count,stage,devices,"));
    assert_non_null(strstr(hosts.p, " slots="));
    hv_str_free(&table);
    hv_str_free(&hosts);
    struct hv_str a = bench_get("out.json"), b = bench_get("out2.json");
    assert_string_equal(a.p, b.p);
    assert_non_null(strstr(a.p, "\"hetviz.cluster/1\"")); /* it holds its inputs */
    hv_str_free(&a);
    hv_str_free(&b);
    works(s, "screen gantt", &out);
    assert_int_equal(out.todo, HV_TODO_SCREEN);
    assert_string_equal(hv_str_cstr(&out.arg), "gantt");
    works(s, "save-screen x.txt", &out);
    assert_int_equal(out.todo, HV_TODO_SAVE_SCREEN);
    works(s, "q", &out);
    assert_int_equal(out.todo, HV_TODO_QUIT);
    assert_false(out.force);
    works(s, "quit !", &out);
    assert_true(out.force);
    hv_prompt_outcome_free(&out);
    hv_session_close(s);
}

static void wrong_lines_say_why_and_change_nothing(void **state)
{
    static const struct {
        const char *line, *want;
    } rows[] = {
        {"sett job.name x", "did you mean set"},
        {"set", "set"},
        {"set job.name", "set"},
        {"set job.globel_batch 3", "global_batch"},
        {"set job.name \"open", "quotation"},
        {"undo now", "undo"},
        {"undo", "no change"},
        {"redo", "no undone change"},
        {"quit now", "!"},
        {"run", "run"},
        {"run mini", "mine"},
        {"run fold", "fold"},
        {"run mine+other", "other"},
        {"run mine faults=99", "16"},
        {"run mine fault=1", "faults"},
        {"run mine+fold faults=1", "single"},
        {"run all faults=1", "no options"},
        {"cancel nobody", "no row"},
        {"option mine", "option"},
        {"option mine faults", "KEY=VALUE"},
        {"option mine mode=slow", "fast"},
        {"export x.json", "selected"},
        {"export nobody x.json", "no row"},
        {"write /dev/null/x", "folder"},
    };
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_str before = bench_bytes(s);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_prompt_outcome out = {0};
        struct hv_err err = {0};
        assert_int_not_equal(hv_session_command(s, rows[i].line, &out, &err), HV_OK);
        if (strstr(err.text, rows[i].want) == NULL) {
            fail_msg("%s: %s", rows[i].line, err.text);
        }
        hv_prompt_outcome_free(&out);
    }
    struct hv_str after = bench_bytes(s);
    assert_string_equal(before.p, after.p);
    assert_int_equal(hv_session_n_undo(s), 0);
    hv_str_free(&before);
    hv_str_free(&after);
    hv_session_close(s);
}

static void completes(const struct hv_session *s, const char *line, size_t n, const char *want)
{
    struct hv_str out = {0};
    bool found = hv_session_complete(s, line, n, &out);
    if (want == NULL) {
        assert_false(found);
    } else {
        assert_string_equal(hv_str_cstr(&out), want);
    }
    hv_str_free(&out);
}

static void completion_knows_what_there_is(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    bench_add_plan(s, "mine-1");
    completes(s, "se", 0, "set ");
    completes(s, "s", 0, "set ");
    completes(s, "s", 1, "select ");
    completes(s, "s", 2, "screen ");
    completes(s, "s", 3, "save-screen ");
    completes(s, "s", 4, NULL);
    completes(s, "remove cluster.no", 0, "remove cluster.nodes[");
    completes(s, "select m", 0, "select mine-1");
    completes(s, "und", 0, "undo");
    completes(s, "set cl", 0, "set cluster.");
    completes(s, "set cluster.no", 0, "set cluster.nodes[");
    completes(s, "set cluster.nodes[", 1, "set cluster.nodes[1].");
    completes(s, "set cluster.nodes[1].co", 0, "set cluster.nodes[1].count");
    completes(s, "set cluster.nodes[1].count", 0, NULL);
    completes(s, "set job.global_batch 4", 0, NULL);
    completes(s, "run m", 0, "run mine");
    completes(s, "run mine+", 0, "run mine+fold");
    completes(s, "run mine fa", 0, "run mine faults=");
    completes(s, "option mine mode=e", 0, "option mine mode=exact");
    completes(s, "export mi", 0, "export mine-1");
    completes(s, "cancel mi", 0, NULL);
    completes(s, "nothing x", 0, NULL);
    hv_session_close(s);
}

/* ---- runs
 * ------------------------------------------------------------------------------------------ */

static struct hv_session *open_with_script(struct bench *b, const char *script)
{
    static const char *const argv[] = {"/bin/sh", "worker.sh", NULL};
    struct hv_str text = {0};
    bench_put("plan.json", BENCH_PLAN);
    hv_str_addf(&text, "read -r job; plan=$(cat plan.json)\n%s\n", script);
    bench_put("worker.sh", hv_str_cstr(&text));
    hv_str_free(&text);
    b->env.worker_argv = argv;
    return bench_open(b, "ws");
}

static void finish_runs(struct hv_session *s)
{
    for (int i = 0; i < 30000 && hv_session_n_running(s) + hv_session_n_queued(s) > 0; i++) {
        struct pollfd fds[16];
        size_t n = hv_session_fds(s, fds, HV_COUNT(fds));
        poll(fds, (nfds_t)n, 20);
        hv_session_tick(s);
    }
    assert_int_equal(hv_session_n_running(s), 0);
}

/* Three rows of one family and a strategy of its own: two processes for four runs. Alone, a row of
 * the family has a process to itself. */
static void rows_of_a_family_share_a_process(void **state)
{
    struct bench *b = *state;
    static const struct hv_plugin rows[] = {
        {.id = "one", .path = "fam.lua", .family = "fam", .has = {[HV_PLUGIN_PLAN] = true}},
        {.id = "alone", .path = "alone.lua", .has = {[HV_PLUGIN_PLAN] = true}},
        {.id = "two", .path = "fam.lua", .family = "fam", .has = {[HV_PLUGIN_PLAN] = true}},
        {.id = "three", .path = "fam.lua", .family = "fam", .has = {[HV_PLUGIN_PLAN] = true}}};
    b->env.plugins = rows;
    b->env.n_plugins = HV_COUNT(rows);
    struct hv_session *s = open_with_script(
        b, "echo $$ >>pids\necho \"$job\" >>jobs\n"
           "answer='{\"event\":\"result\",\"applies\":false,\"plan\":null,\"reason\":\"no\"}'\n"
           "echo \"$answer\"\nwhile read -r job; do echo \"$job\" >>jobs; echo \"$answer\"; done");
    const struct hv_plugin *const list[] = {&rows[0], &rows[1], &rows[2], &rows[3]};
    struct hv_err err = {0};
    assert_int_equal(hv_session_run_list(s, list, HV_COUNT(list), &err), 4);
    finish_runs(s);
    struct hv_str pids = bench_get("pids"), jobs = bench_get("jobs");
    size_t n_pids = 0, n_three = 0;
    for (const char *at = hv_str_cstr(&pids); *at != '\0'; at++) {
        n_pids += *at == '\n';
    }
    for (const char *at = hv_str_cstr(&jobs); (at = strstr(at, "\"jobs_in_process\":3")); at++) {
        n_three++;
    }
    assert_int_equal(n_pids, 2);
    assert_int_equal(n_three, 3);
    hv_str_free(&pids);
    hv_str_free(&jobs);
    assert_int_equal(hv_session_run(s, "two", NULL, NULL, &err), HV_OK);
    finish_runs(s);
    pids = bench_get("pids");
    n_pids = 0;
    for (const char *at = hv_str_cstr(&pids); *at != '\0'; at++) {
        n_pids += *at == '\n';
    }
    assert_int_equal(n_pids, 3);
    hv_str_free(&pids);
    hv_session_close(s);
}

static void a_run_becomes_a_row(void **state)
{
    struct hv_session *s = open_with_script(
        *state,
        "echo '{\"event\":\"progress\",\"frac\":0.5,\"text\":\"half\"}'\n"
        "echo '{\"event\":\"bound\",\"iteration_s\":0.25}'\n"
        "echo \"{\\\"event\\\":\\\"incumbent\\\",\\\"iteration_s\\\":2,\\\"plan\\\":$plan}\"\n"
        "echo \"{\\\"event\\\":\\\"log\\\",\\\"text\\\":\\\"${#job} bytes\\\"}\"\n"
        "case $job in *'\"faults\":7'*) w=yes;; *) w=no;; esac\n"
        "echo \"{\\\"event\\\":\\\"log\\\",\\\"text\\\":\\\"faults $w\\\"}\"\n"
        "echo \"{\\\"event\\\":\\\"result\\\",\\\"applies\\\":true,\\\"plan\\\":$plan}\"");
    struct hv_prompt_outcome out = {0};
    works(s, "run mine faults=7", &out);
    assert_string_equal(hv_str_cstr(&out.message), "mine-1 queued");
    uint32_t id = hv_session_selected(s);
    assert_int_equal(hv_session_row(s, id)->state, HV_ROW_QUEUED);
    finish_runs(s);
    const struct hv_row *r = hv_session_row(s, id);
    assert_int_equal(r->state, HV_ROW_DONE);
    assert_string_equal(r->progress_text, "half");
    assert_true(r->bound_s == 0.25);
    assert_int_equal(r->n_points, 1);
    assert_true(r->points[0].iteration_s == 2);
    assert_non_null(strstr(r->log, "faults yes"));
    assert_non_null(hv_session_verdict(s, id, false, NULL));
    assert_false(r->outdated);
    assert_true(hv_session_dirty(s)); /* a found plan is worth saving */
    assert_string_equal(hv_session_notice(s), "mine-1: done, best 2 s");
    assert_string_equal(hv_session_notice(s), "");
    works(s, "run all", &out);
    assert_string_equal(hv_str_cstr(&out.message), "2 strategies queued");
    finish_runs(s);
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    assert_int_equal(n, 3);
    assert_string_equal(rows[1]->name, "mine-2");
    assert_string_equal(rows[2]->name, "other-1");
    assert_non_null(strstr(rows[1]->log, "faults no")); /* the option was of one run */
    hv_prompt_outcome_free(&out);
    hv_session_close(s);
}

static void bad_ends_are_rows_too(void **state)
{
    static const struct {
        const char *script;
        enum hv_row_state want;
        const char *reason;
    } rows[] = {
        {"kill -SEGV $$", HV_ROW_FAILED, "signal 11"},
        {"echo nonsense; exit 0", HV_ROW_FAILED, "not a JSON"},
        {"echo '{\"event\":\"error\",\"text\":\"x.lua:3: oops\"}'", HV_ROW_FAILED, "x.lua:3: oops"},
        {"echo '{\"event\":\"result\",\"plan\":null,\"reason\":\"34 of 32 GiB\"}'",
         HV_ROW_INFEASIBLE, "34 of 32 GiB"},
        {"echo '{\"event\":\"result\",\"applies\":false,\"plan\":null,\"reason\":\"needs "
         "layers\"}'",
         HV_ROW_NOT_APPLICABLE, "needs layers"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_session *s = open_with_script(*state, rows[i].script);
        uint32_t id = 0;
        assert_int_equal(hv_session_run(s, "mine", NULL, &id, NULL), HV_OK);
        finish_runs(s);
        const struct hv_row *r = hv_session_row(s, id);
        assert_int_equal(r->state, rows[i].want);
        assert_non_null(strstr(r->reason, rows[i].reason));
        assert_null(r->plan);
        assert_null(hv_session_verdict(s, id, false, NULL));
        assert_false(hv_session_dirty(s)); /* nothing to save */
        hv_session_close(s);
    }
}

static void cancel_keeps_the_best(void **state)
{
    struct hv_session *s = open_with_script(
        *state, "echo \"{\\\"event\\\":\\\"incumbent\\\",\\\"plan\\\":$plan}\"\nsleep 60 & wait");
    struct hv_prompt_outcome out = {0};
    uint32_t id = 0, other = 0;
    assert_int_equal(hv_session_run(s, "mine", NULL, &id, NULL), HV_OK);
    for (int i = 0; i < 30000 && hv_session_row(s, id)->plan == NULL; i++) {
        struct pollfd fds[16];
        size_t n = hv_session_fds(s, fds, HV_COUNT(fds));
        poll(fds, (nfds_t)n, 20);
        hv_session_tick(s);
    }
    assert_int_equal(hv_session_row(s, id)->state, HV_ROW_RUNNING);
    assert_non_null(hv_session_verdict(s, id, true, NULL)); /* a running row can be looked at */
    assert_int_equal(hv_session_run(s, "other", NULL, &other, NULL), HV_OK);
    assert_true(hv_session_row_delete(s, other));
    completes(s, "cancel mi", 0, "cancel mine-1");
    works(s, "cancel mine-1", &out);
    finish_runs(s);
    assert_int_equal(hv_session_row(s, id)->state, HV_ROW_CANCELLED);
    assert_non_null(hv_session_row(s, id)->plan);
    assert_null(hv_session_row(s, other));
    works(s, "cancel", &out);
    assert_string_equal(hv_str_cstr(&out.message), "0 cancelled");
    hv_prompt_outcome_free(&out);
    hv_session_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(commands_change_the_session),
        TEST(wrong_lines_say_why_and_change_nothing),
        TEST(completion_knows_what_there_is),
        TEST(a_run_becomes_a_row),
        TEST(rows_of_a_family_share_a_process),
        TEST(bad_ends_are_rows_too),
        TEST(cancel_keeps_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
