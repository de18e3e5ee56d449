/* Saving, autosave and recovery, also with a disk that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_bench.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int n_files(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    if (d) {
        closedir(d);
    }
    return n;
}

static void a_save_reads_back(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = bench_open(b, "ws");
    struct hv_err err = {0};
    struct hv_str model = bench_get("ws/model.json");
    assert_int_equal(hv_session_set_text(s, "cluster.nodes[0].count", "4", &err), HV_OK);
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", &err), HV_OK);
    assert_int_equal(hv_session_option_set(s, "mine", "faults", "2", &err), HV_OK);
    uint32_t id = bench_add_plan(s, "mine-1");
    assert_int_equal(hv_session_row_note(s, id, "kept \xE2\x80\x93 for later", &err), HV_OK);
    bench_add_plan(s, "odd name/of a plan");
    if (hv_session_save(s, NULL, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_false(hv_session_dirty(s));
    assert_true(hv_session_row(s, id)->saved);
    struct hv_str bytes = bench_bytes(s);
    assert_true(hv_session_undo(s)); /* undo survives a save */
    assert_true(hv_session_dirty(s));
    assert_true(hv_session_redo(s));
    assert_false(hv_session_dirty(s));
    hv_session_close(s);

    assert_int_equal(n_files("ws"), 4); /* three files, plans/, nothing left over */
    assert_int_equal(n_files("ws/plans"), 2);
    struct hv_str same = bench_get("ws/model.json");
    assert_string_equal(same.p, model.p); /* what was not edited is not written again */
    struct hv_str text = bench_get("ws/workspace.json");
    assert_non_null(strstr(text.p, "\"x-owner\": \"me\""));
    assert_non_null(strstr(text.p, "\"cluster\": \"cluster.json\""));
    hv_str_free(&text);
    text = bench_get("ws/plans/mine-1.json");
    assert_non_null(strstr(text.p, "\"simulated\""));
    s = bench_open(b, "ws");
    struct hv_str read = bench_bytes(s);
    assert_string_equal(read.p, bytes.p);
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0]->name, "mine-1");
    assert_string_equal(rows[0]->strategy, "mine");
    assert_string_equal(rows[0]->note, "kept \xE2\x80\x93 for later");
    assert_false(hv_session_dirty(s));
    /* a renamed and a deleted plan leave no file behind */
    assert_int_equal(hv_session_row_rename(s, rows[0]->id, "first", &err), HV_OK);
    assert_true(hv_session_row_delete(s, rows[1]->id));
    assert_true(hv_session_dirty(s));
    assert_int_equal(hv_session_save(s, NULL, &err), HV_OK);
    assert_false(hv_session_dirty(s));
    assert_int_equal(n_files("ws/plans"), 1);
    assert_int_equal(access("ws/plans/first.json", F_OK), 0);
    assert_true(hv_session_undo(s)); /* and a deleted one can still come back */
    assert_true(hv_session_dirty(s));
    assert_int_equal(hv_session_save(s, NULL, &err), HV_OK);
    assert_int_equal(n_files("ws/plans"), 2);
    hv_session_close(s);
    hv_str_free(&model);
    hv_str_free(&same);
    hv_str_free(&text);
    hv_str_free(&bytes);
    hv_str_free(&read);
}

static void two_programs_on_one_workspace_do_not_overwrite_unasked(void **state)
{
    struct hv_session *a = bench_open(*state, "ws"), *b = bench_open(*state, "ws");
    struct hv_err err = {0};
    assert_int_equal(hv_session_set_text(a, "cluster.nodes[0].count", "4", &err), HV_OK);
    assert_int_equal(hv_session_set_text(b, "cluster.nodes[0].count", "5", &err), HV_OK);
    assert_int_equal(hv_session_save(a, NULL, &err), HV_OK);
    struct hv_str of_a = bench_get("ws/cluster.json");
    assert_int_equal(hv_session_save(b, NULL, &err), HV_EIO);
    assert_non_null(strstr(err.text, "changed on disk"));
    assert_true(hv_session_dirty(b));
    struct hv_str now = bench_get("ws/cluster.json");
    assert_string_equal(now.p, of_a.p);
    hv_str_free(&now);
    assert_int_equal(hv_session_save(b, NULL, &err), HV_OK); /* told once, the user insists */
    now = bench_get("ws/cluster.json");
    assert_string_not_equal(now.p, of_a.p);
    assert_int_equal(hv_session_save(b, NULL, &err), HV_OK); /* its own save is no change */
    assert_int_equal(hv_session_save(a, NULL, &err), HV_EIO);
    hv_str_free(&now);
    hv_str_free(&of_a);
    hv_session_close(a);
    hv_session_close(b);
}

static void a_plan_with_any_name_can_be_saved(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    char longest[3001];
    for (size_t i = 0; i + 3 < sizeof longest; i += 3) {
        memcpy(longest + i, "\xe6\xbc\xa2", 3);
    }
    longest[sizeof longest - 1] = '\0';
    bench_add_plan(s, longest);
    bench_add_plan(s, "../../.up");
    bench_add_plan(s, "\x1b[2J");
    if (hv_session_save(s, NULL, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(n_files("ws/plans"), 3);
    hv_session_close(s);
    s = bench_open(*state, "ws");
    size_t n = 0;
    (void)hv_session_rows(s, &n);
    assert_int_equal(n, 3);
    hv_session_close(s);
}

static void a_save_without_a_change_changes_no_byte(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    assert_int_equal(hv_session_save(s, NULL, NULL), HV_OK);
    hv_session_close(s);
    struct hv_str one = bench_get("ws/workspace.json");
    s = bench_open(*state, "ws");
    assert_int_equal(hv_session_save(s, NULL, NULL), HV_OK);
    hv_session_close(s);
    struct hv_str two = bench_get("ws/workspace.json");
    assert_string_equal(one.p, two.p);
    struct hv_str cluster = bench_get("ws/cluster.json");
    assert_string_equal(cluster.p, BENCH_CLUSTER);
    hv_str_free(&one);
    hv_str_free(&two);
    hv_str_free(&cluster);
}

static void saves_elsewhere_and_in_one_file(void **state)
{
    static const char *const places[] = {"new/deep", "one.json"};
    for (size_t i = 0; i < HV_COUNT(places); i++) {
        struct hv_session *s = bench_open(*state, "ws");
        struct hv_err err = {0};
        bench_add_plan(s, "mine-1");
        struct hv_str want = bench_bytes(s);
        if (hv_session_save(s, places[i], &err) != HV_OK) {
            fail_msg("%s", err.text);
        }
        assert_string_equal(hv_session_path(s), places[i]);
        hv_session_close(s);
        assert_int_equal(rename("ws", "gone"), 0); /* it needs nothing of the old place */
        s = bench_open(*state, places[i]);
        struct hv_str got = bench_bytes(s);
        assert_string_equal(got.p, want.p);
        size_t n = 0;
        const struct hv_row *const *rows = hv_session_rows(s, &n);
        assert_int_equal(n, 1);
        assert_string_equal(rows[0]->name, "mine-1");
        assert_non_null(hv_session_verdict(s, rows[0]->id, false, &err));
        hv_session_close(s);
        assert_int_equal(rename("gone", "ws"), 0);
        hv_str_free(&want);
        hv_str_free(&got);
    }
}

static void shipped_files_stay_as_they_are(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = NULL;
    struct hv_err err = {0};
    assert_int_equal(hv_session_new(&s, "two-generations", "llama-3-8b", NULL, &b->env, &err),
                     HV_OK);
    assert_int_equal(hv_session_save(s, NULL, &err), HV_EUSAGE); /* it has no place yet */
    assert_int_equal(hv_session_set_text(s, "cluster.name", "mine", &err), HV_OK);
    assert_int_equal(hv_session_save(s, "mine", &err), HV_OK);
    hv_session_close(s);
    struct hv_str text = bench_get("mine/workspace.json");
    assert_non_null(strstr(text.p, "\"cluster\": \"cluster.json\""));
    assert_non_null(strstr(text.p, "\"model\": \"llama-3-8b\""));
    hv_str_free(&text);
    s = bench_open(b, "mine");
    assert_string_equal(json_string_value(hv_session_get(s, "cluster.name")), "mine");
    hv_session_close(s);
    s = bench_open(b, NULL); /* the sample is a copy in the state folder */
    assert_string_equal(hv_session_path(s), "state/sample");
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "128", &err), HV_OK);
    assert_int_equal(hv_session_save(s, NULL, &err), HV_OK);
    hv_session_close(s);
    s = bench_open(b, NULL);
    assert_int_equal(hv_session_job(s)->job.global_batch, 128);
    hv_session_close(s);
}

static void a_full_disk_loses_nothing(void **state)
{
    struct hv_session *s = bench_open(*state, "ws");
    struct hv_err err = {0};
    assert_int_equal(hv_session_set_text(s, "cluster.nodes[0].count", "4", &err), HV_OK);
    bench_add_plan(s, "mine-1");
    /* files of more than 16 bytes cannot be written from here on */
    struct rlimit old, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 16;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum hv_status st = hv_session_save(s, NULL, &err);
    enum hv_status autosaved = hv_session_autosave(s, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, HV_EIO);
    assert_int_equal(autosaved, HV_EIO);
    struct hv_str cluster = bench_get("ws/cluster.json");
    assert_string_equal(cluster.p, BENCH_CLUSTER);
    assert_int_equal(n_files("ws"), 3); /* neither plans/ nor a temporary file is left */
    assert_true(hv_session_dirty(s));
    assert_int_equal(hv_session_n_undo(s), 1);
    assert_int_equal(hv_session_save(s, NULL, &err), HV_OK);
    assert_false(hv_session_dirty(s));
    hv_str_free(&cluster);
    hv_session_close(s);
}

/* job.global_batch as the recovery file has it. */
static int kept_batch(void)
{
    struct hv_str name = {0};
    DIR *d = opendir("state/recovery");
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            hv_str_clear(&name);
            hv_str_addf(&name, "state/recovery/%s", e->d_name);
        }
    }
    closedir(d);
    struct hv_str text = bench_get(hv_str_cstr(&name));
    json_t *root = json_loads(hv_str_cstr(&text), 0, NULL);
    int batch =
        (int)json_integer_value(json_object_get(json_object_get(root, "job"), "global_batch"));
    json_decref(root);
    hv_str_free(&text);
    hv_str_free(&name);
    return batch;
}

static void autosaves_when_idle_and_at_the_latest(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = bench_open(b, "ws");
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", NULL), HV_OK);
    assert_int_equal(hv_session_timeout_ms(s), 500);
    b->clock_s += 0.4;
    hv_session_tick(s);
    assert_int_equal(n_files("state/recovery"), 0);
    b->clock_s += 0.2;
    hv_session_tick(s);
    assert_int_equal(n_files("state/recovery"), 1);
    assert_int_equal(hv_session_timeout_ms(s), -1); /* nothing more to do: no wake-ups */
    /* edits that never pause: what is in the file is never older than two seconds */
    for (int i = 0; i < 40; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", 40 + i);
        assert_int_equal(hv_session_set_text(s, "job.global_batch", text, NULL), HV_OK);
        b->clock_s += 0.25;
        hv_session_tick(s);
        assert_true(hv_session_timeout_ms(s) <= 500);
        if (i >= 8) {
            assert_true(kept_batch() >= 40 + i - 7);
        }
    }
    hv_session_close(s);
    assert_int_equal(n_files("state/recovery"), 0); /* a clean exit leaves nothing */
}

static void edits_of_a_dead_program_are_offered(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = bench_open(b, "ws");
    struct hv_str what = {0};
    assert_false(hv_session_recovery_offered(s));
    assert_int_equal(hv_session_set_text(s, "cluster.nodes[0].count", "3", NULL), HV_OK);
    bench_add_plan(s, "mine-1");
    struct hv_str want = bench_bytes(s);
    hv_session_abandon(s); /* as if it had been killed */

    s = bench_open(b, "ws");
    assert_true(hv_session_recovery_offered(s));
    assert_int_equal(hv_session_cluster(s)->cluster->n_devices, 24); /* not before it is wanted */
    hv_session_recovery_diff(s, &what);
    assert_string_equal(hv_str_cstr(&what), "set cluster.nodes[0].count 3\nplan mine-1\n");
    /* edits of this program do not touch the file on offer */
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", NULL), HV_OK);
    assert_int_equal(hv_session_autosave(s, NULL), HV_OK);
    assert_int_equal(n_files("state/recovery"), 2);
    assert_true(hv_session_undo(s));
    assert_int_equal(hv_session_recover(s, NULL), HV_OK);
    assert_false(hv_session_recovery_offered(s));
    struct hv_str got = bench_bytes(s);
    assert_string_equal(got.p, want.p);
    assert_string_equal(hv_session_undo_label(s), "recover cluster");
    size_t n = 0;
    hv_session_rows(s, &n);
    assert_int_equal(n, 1);
    assert_true(hv_session_dirty(s));
    assert_int_equal(n_files("state/recovery"), 1);
    hv_session_abandon(s);
    s = bench_open(b, "ws");
    assert_true(hv_session_recovery_offered(s));
    hv_session_recovery_discard(s);
    assert_int_equal(n_files("state/recovery"), 0);
    hv_session_close(s);
    hv_str_free(&what);
    hv_str_free(&want);
    hv_str_free(&got);
}

/* What a user leaves behind is offered again at every start, until the workspace is saved. */
static void edits_left_behind_are_kept_until_a_save(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = bench_open(b, "ws");
    hv_session_leave(s); /* nothing was changed: a clean exit */
    assert_int_equal(n_files("state/recovery"), 0);
    s = bench_open(b, "ws");
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", NULL), HV_OK);
    hv_session_leave(s);
    assert_int_equal(n_files("state/recovery"), 1);
    for (int i = 0; i < 2; i++) {
        s = bench_open(b, "ws");
        assert_true(hv_session_recovery_offered(s));
        hv_session_leave(s); /* not asked for, nothing saved */
        assert_int_equal(n_files("state/recovery"), 1);
    }
    s = bench_open(b, "ws");
    assert_int_equal(hv_session_save(s, NULL, NULL), HV_OK);
    assert_int_equal(n_files("state/recovery"), 0);
    assert_false(hv_session_recovery_offered(s));
    hv_session_close(s);
}

/* Files half written by programs that were killed go at the next start; others stay. */
static void half_written_files_of_the_dead_go(void **state)
{
    struct bench *b = *state;
    static const char *const stays[] = {"state/recovery/.notes",
                                        "state/recovery/.0123-1-0.json.abc"};
    char dead[128], older[128], alive[128];
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(dead, sizeof dead, "state/recovery/.0123456789abcdef-%ld-0.json.hetviz-Ab1234",
             (long)child);
    snprintf(older, sizeof older, "state/recovery/.0123456789abcdef-%ld-0.json.Ab1234",
             (long)child);
    snprintf(alive, sizeof alive, "state/recovery/.0123456789abcdef-%ld-0.json.hetviz-Ab1234",
             (long)getppid());
    assert_int_equal(hv_file_mkdirs("state/recovery", NULL), HV_OK);
    bench_put(dead, "{\"format\": \"hetviz.reco");
    bench_put(older, "{\"format\": \"hetviz.reco");
    bench_put(alive, "{");
    bench_put(stays[0], "mine");
    bench_put(stays[1], "mine");
    hv_session_close(bench_open(b, "ws"));
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(older, F_OK), -1);
    assert_int_equal(access(alive, F_OK), 0);
    assert_int_equal(access(stays[0], F_OK), 0);
    assert_int_equal(access(stays[1], F_OK), 0);
}

static void a_broken_recovery_file_is_passed_over(void **state)
{
    struct bench *b = *state;
    struct hv_session *s = bench_open(b, "ws");
    assert_int_equal(hv_session_set_text(s, "job.global_batch", "32", NULL), HV_OK);
    assert_int_equal(hv_session_autosave(s, NULL), HV_OK);
    DIR *d = opendir("state/recovery");
    struct hv_str path = {0};
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            hv_str_addf(&path, "state/recovery/%s", e->d_name);
        }
    }
    closedir(d);
    hv_session_abandon(s);
    bench_put(hv_str_cstr(&path), "{\"format\": \"hetviz.reco");
    s = bench_open(b, "ws");
    assert_false(hv_session_recovery_offered(s));
    hv_session_close(s);
    /* that of a program that still runs is not ours to take */
    struct hv_str text = {0};
    hv_str_addf(&text, "{\"format\": \"hetviz.recovery/1\", \"pid\": %ld, \"plans\": []}",
                (long)getppid());
    bench_put(hv_str_cstr(&path), hv_str_cstr(&text));
    s = bench_open(b, "ws");
    assert_false(hv_session_recovery_offered(s));
    hv_session_close(s);
    hv_str_free(&text);
    hv_str_free(&path);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_save_reads_back),
        TEST(two_programs_on_one_workspace_do_not_overwrite_unasked),
        TEST(a_plan_with_any_name_can_be_saved),
        TEST(a_save_without_a_change_changes_no_byte),
        TEST(saves_elsewhere_and_in_one_file),
        TEST(shipped_files_stay_as_they_are),
        TEST(a_full_disk_loses_nothing),
        TEST(autosaves_when_idle_and_at_the_latest),
        TEST(edits_of_a_dead_program_are_offered),
        TEST(half_written_files_of_the_dead_go),
        TEST(edits_left_behind_are_kept_until_a_save),
        TEST(a_broken_recovery_file_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
