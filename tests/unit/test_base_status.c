/* Status table, error records, and the way the program dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/log.h"
#include "solver/base/status.h"
#include "solver/base/str.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void exit_codes_are_the_public_ones(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 2, 3, 3, 3, 4, 5, 70}; /* in the order of the enum */
    assert_int_equal(HV_COUNT(codes), HV_STATUS_N);
    for (int i = 0; i < HV_STATUS_N; i++) {
        assert_int_equal(hv_status_exit_code((enum hv_status)i), codes[i]);
    }
    assert_string_equal(hv_status_name(HV_EINPUT), "HV_EINPUT");
    assert_int_equal(hv_status_exit_code(HV_STATUS_N), 70);
}

static void format_leaves_out_what_is_unknown(void **state)
{
    (void)state;
    struct hv_err e;
    char b[256];
    assert_int_equal(hv_err_at(&e, HV_EINPUT, "c.json", 4, 17, "bad %d", 5), HV_EINPUT);
    assert_string_equal(hv_err_format(&e, b, sizeof b), "c.json:4:17: bad 5");
    e.col = 0;
    assert_string_equal(hv_err_format(&e, b, sizeof b), "c.json:4: bad 5");
    e.line = 0;
    assert_string_equal(hv_err_format(&e, b, sizeof b), "c.json: bad 5");
    hv_err_set(&e, HV_ENO, "no");
    assert_string_equal(hv_err_format(&e, b, sizeof b), "no");
    assert_string_equal(hv_err_format(&e, b, 2), "n");
    assert_int_equal(hv_err_set(NULL, HV_ENO, "no"), HV_ENO);
    assert_int_equal(hv_err_at(NULL, HV_ENO, NULL, 0, 0, "no"), HV_ENO);
}

static void an_error_may_quote_itself(void **state)
{
    (void)state;
    struct hv_err e;
    hv_err_at(&e, HV_EINPUT, "f", 1, 2, "inner");
    hv_err_at(&e, HV_EINPUT, e.file, e.line, e.col, "outer: %s", e.text);
    assert_string_equal(e.text, "outer: inner");
    assert_string_equal(e.file, "f");
    assert_int_equal(hv_err_context(&e, "while reading %s", "x"), HV_EINPUT);
    assert_string_equal(e.text, "while reading x: outer: inner");
    assert_int_equal(e.line, 1);
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    struct hv_err e;
    char text[3001], path[1001], b[64];
    for (size_t i = 0; i < 3000; i += 3) {
        memcpy(text + i, "\u2013", 3);
    }
    text[3000] = '\0';
    hv_err_set(&e, HV_EINPUT, "%s", text);
    assert_int_equal(strlen(e.text), 1023 / 3 * 3);
    hv_err_context(&e, "%s", "ab");
    assert_int_equal((strlen(e.text) - 4) % 3, 0);
    assert_true(strlen(e.text) > 1000);
    memset(path, 'd', 1000);
    memcpy(path + 1000 - 7, "/c.json", 8);
    hv_err_at(&e, HV_EINPUT, path, 0, 0, "x");
    assert_memory_equal(e.file, "...d", 4);
    assert_string_equal(e.file + strlen(e.file) - 7, "/c.json");
    hv_err_set(&e, HV_EINPUT, "a%s", text);
    hv_err_format(&e, b, sizeof b);
    assert_int_equal((strlen(b) - 1) % 3, 0);
}

static void say_restored(void)
{
    (void)!write(STDOUT_FILENO, "R", 1);
}

/* Runs `die` in a child; returns its wait status and what it wrote. */
static int child(void (*die)(void), char *out, size_t cap)
{
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        hv_die_hook(say_restored);
        die();
        _exit(0);
    }
    close(fds[1]);
    size_t n = 0;
    ssize_t k;
    while ((k = read(fds[0], out + n, cap - 1 - n)) > 0) {
        n += (size_t)k;
    }
    out[n] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void die_of_bug(void)
{
    HV_BUG("impossible %d", 7);
}

static void die_of_hunger(void)
{
    hv_xcalloc(SIZE_MAX / 2, 16);
}

static void dying_restores_once(void **state)
{
    (void)state;
    char out[512];
    int status = child(die_of_bug, out, sizeof out);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_memory_equal(out, "Rhetviz: internal error at ", 27);
    assert_non_null(strstr(out, "impossible 7\n"));
    status = child(die_of_hunger, out, sizeof out);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 70);
    assert_memory_equal(out, "Rhetviz: out of memory", 22);
}

static void keep_line(void *ctx, enum hv_log_level level, const char *area, const char *text)
{
    hv_str_addf(ctx, "%d %s %s|", (int)level, area, text);
}

static void log_is_leveled_and_clean(void **state)
{
    (void)state;
    struct hv_str got = {0};
    hv_log(HV_LOG_ERROR, "a", "nobody listens");
    hv_log_to(keep_line, &got, HV_LOG_WARN);
    hv_log(HV_LOG_INFO, "a", "too detailed");
    hv_log(HV_LOG_WARN, "optim/lp", "x\033[2J%d\ny", 5);
    hv_log_to(NULL, NULL, HV_LOG_DEBUG);
    hv_log(HV_LOG_ERROR, "a", "nobody listens");
    assert_string_equal(hv_str_cstr(&got), "1 optim/lp x<U+001B>[2J5 y|");
    hv_str_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_are_the_public_ones),
        cmocka_unit_test(format_leaves_out_what_is_unknown),
        cmocka_unit_test(an_error_may_quote_itself),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(dying_restores_once),
        cmocka_unit_test(log_is_leveled_and_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
