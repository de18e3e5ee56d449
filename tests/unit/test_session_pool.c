/* The worker pool against shell scripts that behave, crash, loop, babble and hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "ui/process/pool.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One event as remembered. */
struct seen {
    uint32_t id;
    enum hv_pool_event_kind kind;
    double frac, seconds;
    bool timed_out;
    char *text, *tail, *line;
};

/* A pool with a script as worker, and everything it reported. */
struct bench {
    struct hv_pool *pool;
    char script[64];
    HV_VEC(struct seen) events;
    uint32_t cancel_at_incumbent; /* job to cancel when its incumbent arrives; 0 = none */
};

static void remember(void *ctx, const struct hv_pool_event *ev)
{
    struct bench *b = ctx;
    struct hv_str line = {0};
    if (ev->line) {
        hv_json_write(&line, ev->line, false);
    }
    struct seen s = {ev->id,
                     ev->kind,
                     ev->frac,
                     ev->seconds,
                     ev->timed_out,
                     hv_xstrdup(ev->text),
                     hv_xstrdup(ev->tail),
                     hv_xstrdup(hv_str_cstr(&line))};
    hv_str_free(&line);
    hv_vec_push(&b->events, s);
    if (ev->kind == HV_POOL_INCUMBENT && ev->id == b->cancel_at_incumbent) {
        assert_true(hv_pool_cancel(b->pool, ev->id));
    }
}

static int n_open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

/* Each test works in an empty folder. */
static int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");
    struct hv_str p = {0};
    hv_str_addf(&p, "%s/hv_test_XXXXXX", tmp && tmp[0] ? tmp : P_tmpdir);
    if (!mkdtemp(p.p) || chdir(p.p) != 0) {
        return -1;
    }
    *state = p.p;
    return 0;
}

static int remove_folder(void **state)
{
    char *path = *state, command[512];
    if (chdir("/") != 0) {
        return -1;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    free(path);
    return system(command);
}

static void open_bench(struct bench *b, const char *script, size_t n_workers)
{
    *b = (struct bench){.script = "worker.sh"};
    struct hv_str text = {0};
    hv_str_addf(&text, "read -r job\n%s\n", script);
    assert_int_equal(hv_file_write(b->script, hv_str_cstr(&text), text.n, NULL), HV_OK);
    hv_str_free(&text);
    const char *argv[] = {"/bin/sh", b->script, NULL};
    b->pool = hv_pool_new(&(struct hv_pool_config){
        .argv = argv, .n_workers = n_workers, .on_event = remember, .ctx = b});
}

static void close_bench(struct bench *b)
{
    hv_pool_free(b->pool);
    for (size_t i = 0; i < b->events.n; i++) {
        free(b->events.items[i].text);
        free(b->events.items[i].tail);
        free(b->events.items[i].line);
    }
    hv_vec_free(&b->events);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a zombie */
    assert_int_equal(errno, ECHILD);
}

static uint32_t submit(struct bench *b, double time_limit_s)
{
    json_t *job = json_pack("{s:s}", "strategy", "x");
    uint32_t id = hv_pool_submit(b->pool, job, time_limit_s);
    json_decref(job);
    return id;
}

static void run_all(struct bench *b)
{
    for (int i = 0; i < 4000 && hv_pool_n_running(b->pool) + hv_pool_n_queued(b->pool) > 0; i++) {
        hv_pool_wait(b->pool, 1000);
    }
    assert_int_equal(hv_pool_n_running(b->pool), 0);
    assert_int_equal(hv_pool_timeout_ms(b->pool), -1);
}

static const struct seen *last(const struct bench *b)
{
    assert_true(b->events.n > 0);
    return &b->events.items[b->events.n - 1];
}

static size_t count(const struct bench *b, enum hv_pool_event_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < b->events.n; i++) {
        n += b->events.items[i].kind == kind;
    }
    return n;
}

static void reports_events_in_order(void **state)
{
    (void)state;
    struct bench b;
    open_bench(
        &b,
        "echo '{\"event\":\"start\"}'\n"
        "echo '{\"event\":\"progress\",\"frac\":0.25,\"text\":\"looking\"}'\n"
        "echo '{\"event\":\"progress\",\"frac\":null}'\n"
        "echo '{\"event\":\"incumbent\",\"plan\":{\"a\":1},\"iteration_s\":2.5}'\n"
        "echo '{\"event\":\"bound\",\"iteration_s\":2}'\n"
        "echo '{\"event\":\"log\",\"text\":\"hello\"}'\n"
        "echo '{\"event\":\"novelty\"}'\n"
        "printf '{\"event\":\"result\",'; sleep 0.05; echo \"\\\"plan\\\":null,\\\"job\\\":$job}\"",
        1);
    uint32_t id = submit(&b, 0);
    run_all(&b);
    static const enum hv_pool_event_kind want[] = {
        HV_POOL_STARTED, HV_POOL_PROGRESS, HV_POOL_PROGRESS, HV_POOL_INCUMBENT,
        HV_POOL_BOUND,   HV_POOL_LOG,      HV_POOL_RESULT};
    assert_int_equal(b.events.n, HV_COUNT(want));
    for (size_t i = 0; i < HV_COUNT(want); i++) {
        assert_int_equal(b.events.items[i].kind, want[i]);
        assert_int_equal(b.events.items[i].id, id);
    }
    assert_true(b.events.items[1].frac == 0.25);
    assert_string_equal(b.events.items[1].text, "looking");
    assert_false(hv_known(b.events.items[2].frac));
    assert_true(b.events.items[3].seconds == 2.5);
    assert_true(b.events.items[4].seconds == 2);
    assert_string_equal(b.events.items[5].text, "hello");
    assert_non_null(strstr(last(&b)->line, "\"strategy\":\"x\"")); /* the job arrived whole */
    close_bench(&b);
}

/* A job of that name behind another one. */
static uint32_t submit_behind(struct bench *b, const char *name, double time_limit_s,
                              uint32_t first)
{
    json_t *job = json_pack("{s:s}", "strategy", name);
    uint32_t id = hv_pool_submit_behind(b->pool, job, time_limit_s, first);
    json_decref(job);
    return id;
}

/* The last event of a job. */
static const struct seen *last_of(const struct bench *b, uint32_t id)
{
    const struct seen *found = NULL;
    for (size_t i = 0; i < b->events.n; i++) {
        found = b->events.items[i].id == id ? &b->events.items[i] : found;
    }
    assert_non_null(found);
    return found;
}

#define ANSWER "echo \"{\\\"event\\\":\\\"result\\\",\\\"pid\\\":$$,\\\"job\\\":$job}\"\n"

static void jobs_behind_another_share_its_process(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "while :; do\n" ANSWER "read -r job || exit 0\ndone", 2);
    uint32_t first = submit_behind(&b, "one", 0, 0), other = submit_behind(&b, "other", 0, 0);
    uint32_t second = submit_behind(&b, "two", 0, first), third = submit_behind(&b, "3", 0, first);
    run_all(&b);
    assert_int_equal(count(&b, HV_POOL_RESULT), 4);
    assert_int_equal(count(&b, HV_POOL_STARTED), 4);
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%.*s",
                   (int)strcspn(strstr(last_of(&b, first)->line, "pid"), ","),
                   strstr(last_of(&b, first)->line, "pid"));
    assert_non_null(strstr(last_of(&b, second)->line, pid));
    assert_non_null(strstr(last_of(&b, third)->line, pid));
    assert_null(strstr(last_of(&b, other)->line, pid));
    assert_non_null(strstr(last_of(&b, third)->line, "\"3\"")); /* each answer is of its own job */
    close_bench(&b);
}

static void a_crash_leaves_the_jobs_behind_to_processes_of_their_own(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, ANSWER "read -r job || exit 0\nkill -SEGV $$", 2);
    uint32_t first = submit_behind(&b, "one", 0, 0);
    (void)submit_behind(&b, "two", 0, first);
    (void)submit_behind(&b, "three", 0, first);
    run_all(&b);
    assert_int_equal(count(&b, HV_POOL_RESULT), 3);
    assert_int_equal(count(&b, HV_POOL_FAILED), 0);
    assert_int_equal(count(&b, HV_POOL_STARTED), 4); /* the second one twice */
    close_bench(&b);
}

static void a_limit_ends_one_of_the_jobs_in_a_process(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b,
               "while :; do\ncase $job in *slow*) sleep 1000 ;; esac\n" ANSWER
               "read -r job || exit 0\ndone",
               1);
    uint32_t first = submit_behind(&b, "one", 0, 0), slow = submit_behind(&b, "slow", 0.2, first);
    uint32_t third = submit_behind(&b, "three", 0, first);
    run_all(&b);
    assert_int_equal(last_of(&b, first)->kind, HV_POOL_RESULT);
    assert_int_equal(last_of(&b, slow)->kind, HV_POOL_CANCELLED);
    assert_true(last_of(&b, slow)->timed_out);
    assert_int_equal(last_of(&b, third)->kind, HV_POOL_RESULT);
    close_bench(&b);
}

static void names_the_signal_of_a_crash(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "echo 'about to go wrong' >&2\nkill -SEGV $$", 1);
    submit(&b, 0);
    run_all(&b);
    assert_int_equal(b.events.n, 2);
    assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
    assert_non_null(strstr(last(&b)->text, "signal 11"));
    assert_string_equal(last(&b)->tail, "about to go wrong\n");
    close_bench(&b);
}

static void reports_what_ends_without_a_result(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "exit 3", 1);
    submit(&b, 0);
    run_all(&b);
    assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
    assert_non_null(strstr(last(&b)->text, "status 3"));
    close_bench(&b);
    open_bench(&b, "echo '{\"event\":\"error\",\"text\":\"x.lua:3: no such key\"}'; exit 5", 1);
    submit(&b, 0);
    run_all(&b);
    assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
    assert_string_equal(last(&b)->text, "x.lua:3: no such key");
    close_bench(&b);
}

static void ends_an_endless_loop_at_its_limit(void **state)
{
    (void)state;
    struct bench b;
    open_bench(
        &b, "trap '' TERM\necho '{\"event\":\"progress\",\"frac\":0.5}'\nwhile :; do :; done", 1);
    submit(&b, 0.2);
    run_all(&b);
    assert_int_equal(last(&b)->kind, HV_POOL_CANCELLED);
    assert_true(last(&b)->timed_out);
    assert_non_null(strstr(last(&b)->text, "time limit"));
    assert_non_null(strstr(last(&b)->text, "signal 9")); /* it did not hear signal 15 */
    close_bench(&b);
}

static void distrusts_garbage(void **state)
{
    (void)state;
    static const struct {
        const char *script, *want;
    } rows[] = {
        {"echo 'Segmentation fault, or so'; sleep 60", "not a JSON value"},
        {"echo '[1, 2]'; sleep 60", "not an event"},
        {"echo '{\"event\": 7}'; sleep 60", "not an event"},
        {"printf '\\033[31m\\000\\377\\n'; sleep 60", "not a JSON value"},
        {"printf '{\"event\":\"res'", "not a JSON value"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct bench b;
        open_bench(&b, rows[i].script, 1);
        submit(&b, 0);
        run_all(&b);
        assert_int_equal(b.events.n, 2);
        assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
        assert_non_null(strstr(last(&b)->text, rows[i].want));
        assert_null(strchr(last(&b)->text, '\033'));
        close_bench(&b);
    }
}

static void cuts_a_line_that_does_not_end(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "exec tr '\\0' x </dev/zero", 1);
    submit(&b, 0);
    run_all(&b);
    assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
    assert_non_null(strstr(last(&b)->text, "16 MiB"));
    close_bench(&b);
}

static void takes_a_long_line_and_many_short_ones(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b,
               "i=0; while [ $i -lt 1000 ]; do echo '{\"event\":\"progress\",\"frac\":0.5}'; "
               "i=$((i+1)); done\n"
               "printf '{\"event\":\"result\",\"plan\":\"'\n"
               "head -c 3000000 /dev/zero | tr '\\0' y\n"
               "echo '\"}'",
               1);
    submit(&b, 0);
    run_all(&b);
    assert_int_equal(count(&b, HV_POOL_PROGRESS), 1000);
    assert_int_equal(last(&b)->kind, HV_POOL_RESULT);
    assert_true(strlen(last(&b)->line) > 3000000);
    close_bench(&b);
}

static void cancel_keeps_what_was_found(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b,
               "echo '{\"event\":\"incumbent\",\"plan\":{\"n\":1},\"iteration_s\":3}'\n"
               "sleep 60 & wait",
               1);
    b.cancel_at_incumbent = submit(&b, 0);
    run_all(&b);
    assert_int_equal(count(&b, HV_POOL_INCUMBENT), 1);
    assert_int_equal(last(&b)->kind, HV_POOL_CANCELLED);
    assert_false(last(&b)->timed_out);
    assert_non_null(strstr(last(&b)->text, "signal 15"));
    close_bench(&b);
}

static void a_last_word_after_cancel_counts(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b,
               "trap \"echo '{\\\"event\\\":\\\"result\\\",\\\"plan\\\":{}}'; exit 0\" TERM\n"
               "echo '{\"event\":\"incumbent\",\"plan\":{}}'\nwhile :; do :; done",
               1);
    b.cancel_at_incumbent = submit(&b, 0);
    run_all(&b);
    assert_int_equal(last(&b)->kind, HV_POOL_RESULT);
    close_bench(&b);
}

static void queue_is_first_come_and_bounded(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "sleep 0.02\necho '{\"event\":\"result\",\"plan\":null}'", 2);
    uint32_t ids[6];
    for (size_t i = 0; i < HV_COUNT(ids); i++) {
        ids[i] = submit(&b, 0);
    }
    assert_true(hv_pool_cancel(b.pool, ids[4]));
    assert_int_equal(last(&b)->kind, HV_POOL_CANCELLED);
    assert_false(hv_pool_cancel(b.pool, ids[4]));
    assert_false(hv_pool_cancel(b.pool, 77));
    size_t most = 0;
    while (hv_pool_n_running(b.pool) + hv_pool_n_queued(b.pool) > 0) {
        hv_pool_wait(b.pool, 1000);
        most = hv_pool_n_running(b.pool) > most ? hv_pool_n_running(b.pool) : most;
    }
    assert_int_equal(most, 2);
    uint32_t before = 0;
    for (size_t i = 0; i < b.events.n; i++) {
        if (b.events.items[i].kind == HV_POOL_STARTED) {
            assert_true(b.events.items[i].id > before);
            before = b.events.items[i].id;
        }
    }
    assert_int_equal(count(&b, HV_POOL_STARTED), 5);
    assert_int_equal(count(&b, HV_POOL_RESULT), 5);
    close_bench(&b);
}

static void keeps_the_end_of_stderr_only(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "head -c 100000 /dev/zero | tr '\\0' a >&2\nprintf END >&2\nexit 1", 1);
    submit(&b, 0);
    run_all(&b);
    assert_int_equal(strlen(last(&b)->tail), HV_POOL_STDERR_KEPT);
    assert_string_equal(last(&b)->tail + HV_POOL_STDERR_KEPT - 4, "aEND");
    close_bench(&b);
}

static void a_worker_that_does_not_read_is_no_trouble(void **state)
{
    (void)state;
    struct bench b = {0};
    const char *argv[] = {"/bin/true", NULL};
    b.pool = hv_pool_new(
        &(struct hv_pool_config){.argv = argv, .n_workers = 1, .on_event = remember, .ctx = &b});
    json_t *job = json_object();
    char *big = hv_xcalloc(1, 2000001);
    memset(big, 'z', 2000000);
    json_object_set_new(job, "cluster", json_string(big));
    hv_pool_submit(b.pool, job, 0);
    json_decref(job);
    free(big);
    run_all(&b);
    assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
    close_bench(&b);
}

static void a_missing_program_is_a_failed_job(void **state)
{
    (void)state;
    struct bench b = {0};
    const char *argv[] = {"/nowhere/hetviz", "worker", NULL};
    b.pool = hv_pool_new(
        &(struct hv_pool_config){.argv = argv, .n_workers = 1, .on_event = remember, .ctx = &b});
    submit(&b, 0);
    run_all(&b);
    /* where the system cannot tell at once (under a checker), the end with status 127 does */
    assert_int_equal(last(&b)->kind, HV_POOL_FAILED);
    assert_non_null(
        strstr(last(&b)->text, b.events.n == 1 ? "/nowhere/hetviz" : "could not be started"));
    close_bench(&b);
}

static void leaks_no_descriptor(void **state)
{
    (void)state;
    int before = n_open_files();
    struct bench b;
    open_bench(&b, "case $job in *) kill -ABRT $$;; esac", 4);
    for (int i = 0; i < 20; i++) {
        submit(&b, 0);
    }
    run_all(&b);
    assert_int_equal(n_open_files(), before);
    close_bench(&b);
    /* and none when it is closed in the middle, with work queued */
    open_bench(&b, "trap '' TERM\nsleep 60", 2);
    for (int i = 0; i < 5; i++) {
        submit(&b, 0);
    }
    hv_pool_poll(b.pool);
    assert_int_equal(hv_pool_n_running(b.pool), 2);
    close_bench(&b);
    assert_int_equal(n_open_files(), before);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(jobs_behind_another_share_its_process),
        TEST(a_crash_leaves_the_jobs_behind_to_processes_of_their_own),
        TEST(a_limit_ends_one_of_the_jobs_in_a_process),
        TEST(reports_events_in_order),
        TEST(names_the_signal_of_a_crash),
        TEST(reports_what_ends_without_a_result),
        TEST(ends_an_endless_loop_at_its_limit),
        TEST(distrusts_garbage),
        TEST(cuts_a_line_that_does_not_end),
        TEST(takes_a_long_line_and_many_short_ones),
        TEST(cancel_keeps_what_was_found),
        TEST(a_last_word_after_cancel_counts),
        TEST(queue_is_first_come_and_bounded),
        TEST(keeps_the_end_of_stderr_only),
        TEST(a_worker_that_does_not_read_is_no_trouble),
        TEST(a_missing_program_is_a_failed_job),
        TEST(leaks_no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
