/*
 * A program that is killed while it saves a workspace: after the next start the workspace is the
 * old or the new one, and no temporary file is left. Once killed at every call that changes a file,
 * then at random times: test_session_kill [ROUNDS]
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "tests/unit/faults.h"
#include "tests/unit/session_bench.h"
#include <dirent.h>
#include <sys/wait.h>
#include <time.h>

static int rounds = 30;

/* Number of files of a folder, hidden ones too. */
static int n_files(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* Writes the number `k` into each of the four files of the workspace, the name of one of them too.
 */
static enum hv_status save_number(struct hv_session *s, int k)
{
    char name[16];
    size_t n = 0;
    struct hv_err err = {0};
    snprintf(name, sizeof name, "v%d", k);
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    assert_int_equal(n, 1);
    assert_int_equal(hv_session_set_text(s, "cluster.name", name, &err), HV_OK);
    assert_int_equal(hv_session_set_text(s, "model.name", name, &err), HV_OK);
    assert_int_equal(hv_session_set_text(s, "job.name", name, &err), HV_OK);
    assert_int_equal(hv_session_row_note(s, rows[0]->id, name, &err), HV_OK);
    assert_int_equal(hv_session_row_rename(s, rows[0]->id, name, &err), HV_OK);
    return hv_session_save(s, NULL, &err);
}

/* The number that all files of the workspace hold; fails where they differ or where there are
 * others. */
static int number_of(struct bench *b)
{
    struct hv_session *s = bench_open(b, "ws");
    const char *name = json_string_value(hv_session_get(s, "cluster.name"));
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    assert_int_equal(n, 1);
    assert_non_null(rows[0]->plan);
    assert_string_equal(json_string_value(hv_session_get(s, "model.name")), name);
    assert_string_equal(json_string_value(hv_session_get(s, "job.name")), name);
    assert_string_equal(rows[0]->note, name);
    assert_string_equal(rows[0]->name, name);
    assert_int_equal(n_files("ws"), 4); /* three files and plans/ */
    assert_int_equal(n_files("ws/plans"), 1);
    int k = atoi(name + 1);
    hv_session_recovery_discard(s);
    hv_session_close(s);
    return k;
}

static void begin(struct bench *b)
{
    struct hv_session *s = bench_open(b, "ws");
    bench_add_plan(s, "first");
    assert_int_equal(save_number(s, 0), HV_OK);
    hv_session_close(s);
}

static void killed_at_every_call(void **state)
{
    struct bench *b = *state;
    begin(b);
    for (int at = 1, k = 0;; at++) {
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct hv_session *s = bench_open(b, "ws");
            faults = (struct faults){.at = at};
            _exit(save_number(s, k + 1) == HV_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        int now = number_of(b);
        assert_in_range(now, k, k + 1);
        k = now;
        if (!WIFSIGNALED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_true(at > 40);
            break;
        }
    }
}

/* Saves one number after the other until it is killed; tells through `fd` that it begins. */
static void save_on(struct bench *b, int k, int fd)
{
    struct hv_session *s = bench_open(b, "ws");
    if (write(fd, "x", 1) != 1) {
        _exit(1);
    }
    while (save_number(s, ++k) == HV_OK) {
    }
    _exit(1);
}

static void killed_at_random_times(void **state)
{
    struct bench *b = *state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    begin(b);
    for (int i = 0, k = 0; i < rounds; i++) {
        int fds[2], status = 0;
        char byte;
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(fds[0]);
            save_on(b, k, fds[1]);
        }
        close(fds[1]);
        assert_int_equal(read(fds[0], &byte, 1), 1);
        close(fds[0]);
        const struct timespec nap = {.tv_nsec = (long)hv_rng_below(&rng, 20000000)};
        nanosleep(&nap, NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status)); /* no save failed before */
        int now = number_of(b);
        assert_true(now >= k);
        k = now;
    }
    print_message("%d kills\n", rounds);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_at_every_call, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(killed_at_random_times, bench_setup, bench_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
