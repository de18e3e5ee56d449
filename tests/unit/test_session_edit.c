/* Edits of an open workspace: key paths, checks, bulk changes, options, rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_bench.h"

static double number_at(const struct hv_session *s, const char *path)
{
    return json_number_value(hv_session_get(s, path));
}

static void opens_a_folder(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    assert_string_equal(hv_session_name(s), "lab");
    assert_string_equal(hv_session_path(s), "ws");
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, 24);
    assert_int_equal(hv_session_job(s)->job.global_batch, 64);
    assert_string_equal(hv_session_source(s, HV_DOC_CLUSTER), "cluster.json");
    assert_null(hv_session_source(s, HV_DOC_JOB));
    assert_false(hv_session_dirty(s));
    assert_int_equal(hv_session_timeout_ms(s), -1);
    hv_session_close(s);
}

static void says_where_a_workspace_is_wrong(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = NULL;
    struct hv_err err = {0};
    bench_put("ws/cluster.json", "{\"format\": \"hetviz.cluster/1\",\n \"nodes\": 3}");
    assert_int_equal(hv_session_open(&s, "ws", &b->env, &err), HV_EINPUT);
    assert_null(s);
    assert_int_equal(err.line, 2);
    assert_int_equal(hv_session_open(&s, "nowhere", &b->env, &err), HV_EIO);
}

static void an_edit_rebuilds_the_noun(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    uint64_t before = hv_session_generation(s, HV_DOC_CLUSTER), changes = hv_session_changes(s);
    assert_int_equal(hv_session_set_text(s, "cluster.nodes[0].count", "4", &err), HV_OK);
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, 40);
    assert_true(hv_session_generation(s, HV_DOC_CLUSTER) > before);
    assert_true(hv_session_changes(s) > changes);
    assert_true(hv_session_dirty(s));
    assert_string_equal(hv_session_undo_label(s), "set cluster.nodes[0].count 4");
    /* what an edit does not name stays, unknown keys too */
    assert_string_equal(json_string_value(hv_session_get(s, "cluster.nodes[0].x-rack")), "r1");
    /* setting what is there is no step */
    assert_int_equal(hv_session_set_text(s, "cluster.nodes[0].count", "4", &err), HV_OK);
    assert_int_equal(hv_session_n_undo(s), 1);
    /* a member that may be left out is made on the way */
    assert_int_equal(hv_session_set_text(s, "job.objective.minimize", "cost", &err), HV_OK);
    assert_string_equal(json_string_value(hv_session_get(s, "job.objective.minimize")), "cost");
    /* a new model reaches the job's sequence */
    assert_int_equal(hv_session_set_text(s, "model.max_sequence", "1024", &err), HV_OK);
    assert_int_equal(hv_session_job(s)->job.sequence, 1024);
    hv_session_close(s);
}

static void a_wrong_edit_changes_nothing(void **state)
{
    static const struct {
        const char *path, *text, *want;
    } rows[] = {
        {"cluster.nodes[0].count", "-4", "nodes[0].count"},
        {"cluster.nodes[0].count", "many", "nodes[0].count"},
        {"cluster.nodes[7].count", "4", "2 elements"},
        {"cluster.nodez[0].count", "4", "did you mean \"nodes\""},
        {"cluster.nodes[0].devise", "x", "device"},
        {"cluster.nodes[0].device", "A100-SXM-80BG", "A100-SXM-80GB"},
        {"clutser.nodes", "[]", "did you mean cluster"},
        {"cluster.nodes.[0]", "1", "key path"},
        {"cluster..nodes", "1", "key path"},
        {"cluster.nodes[", "1", "key path"},
        {"cluster", "[1, 2", ""},
        {"cluster.name", "", "expected a value"},
        {"job.precision", "fp7", "precision: expected"},
        {"job", "7", ""},
        {"model.heads", "7", ""},
        {"strategies[0]", "7", "id"},
        {"strategies[0]", "{\"id\": \"mine\", \"options\": {\"faults\": 99}}", "faults"},
    };
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_str before = bench_bytes(s);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_err err = {0};
        assert_int_not_equal(hv_session_set_text(s, rows[i].path, rows[i].text, &err), HV_OK);
        if (strstr(err.text, rows[i].want) == NULL) {
            fail_msg("%s %s: %s", rows[i].path, rows[i].text, err.text);
        }
        struct hv_str after = bench_bytes(s);
        assert_string_equal(after.p, before.p);
        hv_str_free(&after);
    }
    assert_int_equal(hv_session_n_undo(s), 0);
    assert_false(hv_session_dirty(s));
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, 24);
    hv_str_free(&before);
    hv_session_close(s);
}

static void groups_are_added_pasted_and_removed(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    json_t *copy = json_deep_copy(hv_session_get(s, "cluster.nodes[1]"));
    json_object_set_new(copy, "name", json_string("w"));
    assert_int_equal(hv_session_insert(s, "cluster.nodes[2]", copy, &err), HV_OK);
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, 32);
    /* a second group of that name is refused, and nothing happened */
    copy = json_deep_copy(hv_session_get(s, "cluster.nodes[1]"));
    assert_int_equal(hv_session_insert(s, "cluster.nodes[0]", copy, &err), HV_EINPUT);
    assert_int_equal(json_array_size(hv_session_get(s, "cluster.nodes")), 3);
    assert_int_equal(hv_session_remove(s, "cluster.nodes[0]", &err), HV_OK);
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, 16);
    assert_int_equal(hv_session_remove(s, "cluster.nodes[9]", &err), HV_EUSAGE);
    assert_int_equal(hv_session_remove(s, "cluster", &err), HV_EUSAGE);
    const char *both[] = {"cluster.nodes[0].count", "cluster.nodes[1].count"};
    assert_int_equal(hv_session_set_many(s, both, 2, "5", &err), HV_OK);
    assert_true(number_at(s, both[0]) == 5 && number_at(s, both[1]) == 5);
    assert_int_equal(hv_session_n_undo(s), 3);
    assert_true(hv_session_undo(s));
    assert_true(number_at(s, both[0]) == 1 && number_at(s, both[1]) == 1);
    const char *mixed[] = {"cluster.name", "job.name"};
    assert_int_equal(hv_session_set_many(s, mixed, 2, "x", &err), HV_EUSAGE);
    hv_session_close(s);
}

static void options_are_checked_and_kept(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    struct hv_str text = {0};
    hv_session_option(s, "mine", "faults", &text);
    assert_string_equal(hv_str_cstr(&text), "1");
    assert_false(hv_session_option_is_set(s, "mine", "faults"));
    assert_int_equal(hv_session_option_set(s, "mine", "faults", "3", &err), HV_OK);
    assert_int_equal(hv_session_option_set(s, "mine", "faults", "99", &err), HV_EUSAGE);
    assert_int_equal(hv_session_option_set(s, "mine", "mode", "slow", &err), HV_EUSAGE);
    assert_int_equal(hv_session_option_set(s, "mine", "fault", "3", &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "faults"));
    assert_int_equal(hv_session_option_set(s, "mini", "faults", "3", &err), HV_EUSAGE);
    hv_str_clear(&text);
    hv_session_option(s, "mine", "faults", &text);
    assert_string_equal(hv_str_cstr(&text), "3");
    assert_true(hv_session_option_is_set(s, "mine", "faults"));
    assert_int_equal(hv_session_n_undo(s), 1);
    assert_true(hv_session_undo(s));
    assert_false(hv_session_option_is_set(s, "mine", "faults"));
    assert_true(hv_session_redo(s));
    assert_int_equal(hv_session_option_set(s, "mine", "faults", NULL, &err), HV_OK);
    assert_false(hv_session_option_is_set(s, "mine", "faults"));
    hv_str_free(&text);
    hv_session_close(s);
}

static void rows_are_judged_against_the_documents_of_now(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    uint32_t id = bench_add_plan(s, "mine-1");
    const struct hv_verdict *v = hv_session_verdict(s, id, false, &err);
    assert_non_null(v);
    double first = v->metrics.iteration_s;
    assert_true(first > 0);
    assert_true(hv_session_verdict(s, id, false, &err) == v); /* kept */
    assert_true(hv_session_bound(s).iteration_s <= first);
    const struct hv_verdict *drawn = hv_session_verdict(s, id, true, &err);
    assert_non_null(drawn->timeline);
    assert_true(drawn->metrics.iteration_s == first);
    assert_false(hv_session_row(s, id)->outdated);
    /* twice the batch breaks the sum of this plan: a finding, and the row is marked */
    assert_int_equal(v->findings.n, 0);
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "128", &err), HV_OK);
    v = hv_session_verdict(s, id, false, &err);
    assert_true(v->findings.n > 0);
    assert_true(hv_session_row(s, id)->outdated);
    /* without its nodes the plan cannot be built any more: the reason, no figures */
    assert_int_equal(hv_session_remove(s, "cluster.nodes[1]", &err), HV_OK);
    assert_null(hv_session_verdict(s, id, false, &err));
    assert_non_null(strstr(err.text, "v"));
    while (hv_session_undo(s)) {
        continue;
    }
    assert_false(hv_session_row(s, id)->outdated);
    v = hv_session_verdict(s, id, false, &err);
    assert_true(v->metrics.iteration_s == first);
    assert_null(hv_session_verdict(s, 99, false, &err));
    hv_session_close(s);
}

static void rows_keep_their_order(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    size_t n = 0;
    uint32_t ids[3] = {bench_add_plan(s, "b"), bench_add_plan(s, "c"), bench_add_plan(s, "a")};
    json_t *worse = json_deep_copy(hv_session_row(s, ids[0])->plan);
    json_object_set_new(worse, "schedule", json_pack("{s:s}", "name", "gpipe"));
    uint32_t last = 0;
    assert_int_equal(hv_session_row_add(s, "d", worse, &last, NULL), HV_OK);
    hv_session_sort(s, HV_SORT_NAME, true);
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    assert_int_equal(n, 4);
    assert_string_equal(rows[0]->name, "d");
    assert_string_equal(rows[3]->name, "a");
    hv_session_sort(s, HV_SORT_TIME, false);
    rows = hv_session_rows(s, &n);
    for (size_t i = 1; i < n; i++) {
        double a = hv_session_verdict(s, rows[i - 1]->id, false, NULL)->metrics.iteration_s;
        double b = hv_session_verdict(s, rows[i]->id, false, NULL)->metrics.iteration_s;
        assert_true(a < b || (a == b && rows[i - 1]->id < rows[i]->id));
    }
    hv_session_select(s, ids[1]);
    assert_true(hv_session_row_delete(s, ids[1]));
    assert_int_equal(hv_session_selected(s), 0);
    assert_null(hv_session_row(s, ids[1]));
    assert_true(hv_session_undo(s));
    assert_int_equal(hv_session_selected(s), ids[1]);
    assert_int_equal(hv_session_row_rename(s, ids[1], "a", NULL), HV_EUSAGE);
    assert_int_equal(hv_session_row_rename(s, ids[1], "x/y", NULL), HV_EUSAGE);
    assert_int_equal(hv_session_row_rename(s, ids[1], "best", NULL), HV_OK);
    assert_string_equal(hv_session_row(s, ids[1])->name, "best");
    const json_t *plain = hv_session_row(s, ids[1])->plan;
    assert_int_equal(hv_session_row_note(s, ids[1], "two\nlines", NULL), HV_EUSAGE);
    assert_int_equal(hv_session_row_note(s, ids[1], "\xFF", NULL), HV_EUSAGE);
    assert_int_equal(hv_session_row_note(s, 9999, "none", NULL), HV_EUSAGE);
    assert_int_equal(hv_session_row_note(s, ids[1], "", NULL), HV_OK); /* as it was: no step */
    assert_int_equal(hv_session_row_note(s, ids[1], "good", NULL), HV_OK);
    assert_string_equal(hv_session_row(s, ids[1])->note, "good");
    assert_true(hv_session_undo(s));
    assert_string_equal(hv_session_row(s, ids[1])->note, "");
    assert_ptr_equal(hv_session_row(s, ids[1])->plan, plain);
    assert_true(hv_session_undo(s));
    assert_string_equal(hv_session_row(s, ids[1])->name, "c");
    hv_session_close(s);
}

/* What a console changed on its copy comes back as edits, one undo step each. */
static void commands_of_a_console_are_edits(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    size_t done = 0;
    char devices[64];
    (void)snprintf(devices, sizeof devices, "%s[0].0",
                   json_string_value(hv_session_get(s, "cluster.nodes[0].name")));
    json_t *plan = json_pack("{s:i, s:[{s:i, s:[{s:s, s:[i,i]}]}]}", "micro_batch", 1, "replicas",
                             "micro_batches", 32, "stages", "devices", devices, "layers", 0, 1);
    json_t *commands = json_pack(
        "[{s:s, s:s, s:i}, {s:s, s:s, s:i}, {s:s, s:s, s:o}, {s:s, s:s}]", "do", "set", "path",
        "cluster.nodes[0].count", "value", 4, "do", "set", "path", "job.global_batch", "value", 32,
        "do", "plan", "name", "mine", "plan", plan, "do", "remove", "path", "cluster.nowhere");
    size_t rows = 0, more = 0;
    (void)hv_session_rows(s, &rows);
    assert_int_equal(hv_session_apply(s, commands, &done, &err), HV_EUSAGE);
    assert_int_equal(done, 3);
    (void)hv_session_rows(s, &more);
    assert_int_equal(more, rows + 1);
    assert_true(number_at(s, "cluster.nodes[0].count") == 4);
    assert_true(number_at(s, "job.global_batch") == 32);
    assert_true(hv_session_undo(s));
    (void)hv_session_rows(s, &more);
    assert_int_equal(more, rows);
    assert_true(hv_session_undo(s) && hv_session_undo(s));
    assert_true(number_at(s, "cluster.nodes[0].count") == 2);
    assert_true(number_at(s, "job.global_batch") == 64);
    json_t *nonsense = json_loads("[{\"do\": \"format\", \"path\": \"disk\"}]", 0, NULL);
    assert_int_equal(hv_session_apply(s, nonsense, &done, &err), HV_EUSAGE);
    assert_int_equal(done, 0);
    json_decref(nonsense);
    json_decref(commands);
    hv_session_close(s);
}

static void strategies_may_be_read_later(void **state)
{
    struct bench *b = *state;
    size_t n = 0;
    assert_int_equal(setenv("XDG_CACHE_HOME", b->folder, 1), 0);
    b->env.plugins = NULL;
    b->env.n_plugins = 0;
    b->env.plugins_later = true;
    struct hv_session *s = bench_open(b, "ws");
    assert_non_null(hv_session_strategy(s, "uniform"));
    (void)hv_session_strategies(s, &n);
    assert_true(n > 5);
    assert_int_equal(hv_session_strategies_reload(s, NULL, &n, NULL), HV_OK);
    assert_int_equal(n, 0);
    hv_session_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(commands_of_a_console_are_edits), TEST(opens_a_folder),
        TEST(says_where_a_workspace_is_wrong), TEST(an_edit_rebuilds_the_noun),
        TEST(a_wrong_edit_changes_nothing),    TEST(groups_are_added_pasted_and_removed),
        TEST(options_are_checked_and_kept),    TEST(rows_are_judged_against_the_documents_of_now),
        TEST(rows_keep_their_order),           TEST(strategies_may_be_read_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
