#define _DEFAULT_SOURCE /* usleep */
/* A child behind walls: it answers line by line, crashes, hangs, floods, is cancelled; what it
 * still holds of its parent; texts and errors on their way through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "scripting/host/message.h"
#include "solver/base/attr.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static void start(struct hv__cell *c, struct hv__cell_work work)
{
    struct hv_err err = {0};
    assert_int_equal(hv__cell_start(c, &work, &err), HV_OK);
}

/** No child is left behind. */
static void assert_alone(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void many_lines(void *ctx, struct hv__cell_inside *inside)
{
    for (int i = 0; i < *(int *)ctx; i++) {
        char text[1000];
        memset(text, 'a' + i % 26, sizeof text);
        hv__cell_write(inside, text, (size_t)(i * 7 % 1000));
    }
}

static void test_lines(void **state)
{
    struct hv__cell c;
    const char *line = NULL;
    size_t n = 0;
    int lines = 5000;
    (void)state;
    start(&c, (struct hv__cell_work){.run = many_lines, .ctx = &lines});
    for (int i = 0; i < lines; i++) {
        assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_LINE);
        assert_int_equal(n, i * 7 % 1000);
        assert_true(n == 0 || (line[0] == 'a' + i % 26 && line[n - 1] == line[0]));
    }
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_END);
    int status = hv__cell_end(&c);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_alone();
}

static void test_ended_early(void **state)
{
    struct hv__cell c;
    const char *line = NULL;
    size_t n = 0;
    int lines = 1000000;
    (void)state;
    start(&c, (struct hv__cell_work){.run = many_lines, .ctx = &lines});
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_LINE);
    (void)hv__cell_end(&c);
    assert_alone();
}

static void crash(void *ctx, struct hv__cell_inside *inside)
{
    (void)ctx;
    hv__cell_write(inside, "said before", 11);
    abort();
}

static void test_crash(void **state)
{
    struct hv__cell c;
    struct hv_str how = {0};
    const char *line = NULL;
    size_t n = 0;
    (void)state;
    start(&c, (struct hv__cell_work){.run = crash});
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_LINE);
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_END);
    hv__cell_describe(hv__cell_end(&c), &how);
    assert_string_equal(hv_str_cstr(&how), "it ended by signal 6 (Aborted)");
    hv_str_free(&how);
    assert_alone();
}

static void hang(void *ctx, struct hv__cell_inside *inside)
{
    volatile unsigned long n = 0;
    (void)ctx;
    (void)inside;
    for (;;) {
        n++;
    }
}

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

/** A child that never looks at its parent's wish is killed. */
static void test_hang(void **state)
{
    struct hv__cell c;
    const char *line = NULL;
    size_t n = 0;
    (void)state;
    start(&c, (struct hv__cell_work){.run = hang, .limit_s = 0.01});
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_LATE);
    (void)hv__cell_end(&c);
    start(&c, (struct hv__cell_work){.run = hang, .cancel = yes});
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_CANCELLED);
    (void)hv__cell_end(&c);
    assert_alone();
}

static void until_asked(void *ctx, struct hv__cell_inside *inside)
{
    (void)ctx;
    /* what timeout(1) and Ctrl-C send to the whole group is for the parent */
    (void)kill(getpid(), SIGTERM);
    while (!hv__cell_is_asked(inside)) {
        (void)usleep(1000);
    }
    hv__cell_write(inside, "the best so far", 15);
}

static void test_cancel(void **state)
{
    struct hv__cell c;
    const char *line = NULL;
    size_t n = 0;
    (void)state;
    start(&c, (struct hv__cell_work){.run = until_asked, .cancel = yes});
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_LINE);
    assert_int_equal(n, 15);
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_END);
    (void)hv__cell_end(&c);
    assert_alone();
}

/** Writes the name of the first thing that the child has and should not have. */
static void look_around(void *ctx, struct hv__cell_inside *inside)
{
    const char *what = "";
    struct rlimit limit = {1, 1};
    char c;

    if (write(*(int *)ctx, "x", 1) >= 0) {
        what = "a file of the parent";
    } else if (read(STDIN_FILENO, &c, 1) != 0) {
        what = "the standard input";
    } else if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max != 0) {
        what = "a core file";
    } else if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max > 100) {
        what = "endless CPU time";
    } else if (!HV_ASAN && (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_max == RLIM_INFINITY)) {
        what = "endless memory";
    } else if (printf("to the terminal\n") < 0 || fflush(stdout) != 0) {
        what = "no place to print to";
    }
    hv__cell_write(inside, what, strlen(what));
}

static void test_surroundings(void **state)
{
    struct hv__cell c;
    const char *line = NULL;
    size_t n = 0;
    int fd[2];
    (void)state;
    assert_int_equal(pipe(fd), 0);
    start(&c, (struct hv__cell_work){.run = look_around, .ctx = &fd[1], .cpu_s = 10});
    assert_int_equal(hv__cell_next(&c, &line, &n), HV__CELL_LINE);
    if (n > 0) {
        fail_msg("the child has %.*s", (int)n, line);
    }
    (void)hv__cell_end(&c);
    (void)close(fd[0]);
    (void)close(fd[1]);
}

/** A program that was started without standard descriptors has its pipe on their numbers. */
static void test_closed_standard_files(void **state)
{
    int saved[3];
    (void)state;
    for (int closed = 1; closed < 8; closed++) { /* a bit for each descriptor */
        struct hv__cell c;
        struct hv_err err = {0};
        const char *line = NULL;
        size_t n = 0;
        int lines = 3;
        for (int fd = 0; fd < 3; fd++) {
            saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        }
        for (int fd = 0; fd < 3; fd++) {
            if ((closed & 1 << fd) != 0) {
                (void)close(fd);
            }
        }
        const struct hv__cell_work work = {.run = many_lines, .ctx = &lines};
        enum hv_status s = hv__cell_start(&c, &work, &err);
        int heard = 0;
        while (s == HV_OK && hv__cell_next(&c, &line, &n) == HV__CELL_LINE) {
            heard++;
        }
        int status = s == HV_OK ? hv__cell_end(&c) : -1;
        for (int fd = 0; fd < 3; fd++) {
            (void)dup2(saved[fd], fd);
            (void)close(saved[fd]);
        }
        assert_int_equal(s, HV_OK);
        assert_int_equal(heard, lines);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_alone();
}

/** Without file descriptors the error says so. */
static void test_no_descriptors(void **state)
{
    struct rlimit old, none;
    struct hv__cell c;
    struct hv_err err = {0};
    const struct hv__cell_work work = {.run = hang};
    int spare = dup(STDERR_FILENO);
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){(rlim_t)spare + 1, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum hv_status s = hv__cell_start(&c, &work, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    (void)close(spare);
    assert_int_equal(s, HV_EIO);
    assert_non_null(strstr(err.text, "file descriptors"));
    assert_non_null(strstr(err.text, "ulimit -n"));
    assert_alone();
}

static void test_texts(void **state)
{
    struct hv_str back = {0};
    char all[256];
    (void)state;
    for (size_t i = 0; i < sizeof all; i++) {
        all[i] = (char)i;
    }
    json_t *packed = hv__pack_text(all, sizeof all);
    char *line = json_dumps(packed, JSON_ENCODE_ANY);
    json_t *read = hv__message_read(line, strlen(line));
    hv__unpack_text(read, &back);
    assert_int_equal(back.n, sizeof all);
    assert_memory_equal(back.p, all, sizeof all);
    hv_str_free(&back);
    free(line);
    json_decref(read);
    json_decref(packed);
}

static void test_errors(void **state)
{
    struct hv_err err = {0}, back = {0};
    (void)state;
    (void)hv_err_at(&err, HV_EPLUGIN, "a/\xFFplugin.lua", 7, 3, "an \x80odd text");
    json_t *packed = hv__pack_err(HV_EPLUGIN, &err);
    assert_int_equal(hv__unpack_err(packed, &back), HV_EPLUGIN);
    assert_string_equal(back.file, err.file);
    assert_string_equal(back.text, err.text);
    assert_int_equal(back.line, 7);
    assert_int_equal(back.col, 3);
    assert_int_equal(back.status, HV_EPLUGIN);
    json_decref(packed);
    /* what a child under foreign control might say */
    json_t *odd = json_pack("{s:i}", "status", 1000);
    assert_int_equal(hv__unpack_err(odd, &back), HV_EINTERNAL);
    assert_int_equal(hv__unpack_err(NULL, &back), HV_EINTERNAL);
    json_decref(odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),          cmocka_unit_test(test_ended_early),
        cmocka_unit_test(test_crash),          cmocka_unit_test(test_hang),
        cmocka_unit_test(test_cancel),         cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_errors),         cmocka_unit_test(test_closed_standard_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
