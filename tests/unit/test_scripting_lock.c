/* The walls around a worker: in a child that has them, the kernel refuses what a hole in the
 * sandbox could reach, and computing goes on. */
#define _DEFAULT_SOURCE /* mkdtemp, syscall */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripting/host/jail.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { NO_WALL = 77 };

/** Runs `f` in a child and returns its exit status. */
static int in_child(int (*f)(int fd), int fd)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(f(fd));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_calls(int fd)
{
    char buf[64] = "";
    void *p;

    if (!hv_lock_calls()) {
        return NO_WALL;
    }
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) {
        return 1;
    }
    if (fork() >= 0) {
        return 2;
    }
    if (kill(getppid(), 0) == 0) {
        return 3;
    }
    if (open("/dev/null", O_WRONLY) >= 0 || open("/dev/null", O_RDWR) >= 0) {
        return 4;
    }
    if (unlink("/nowhere/at/all") == 0 || errno != EPERM) {
        return 5;
    }
    if (execl("/bin/true", "true", (char *)NULL) == 0 || errno != EPERM) {
        return 6;
    }
    /* and what a run needs still works */
    if ((p = malloc(64 << 20)) == NULL) {
        return 7;
    }
    memset(p, 1, 64 << 20);
    free(p);
    int in = open("/dev/zero", O_RDONLY);
    if (in < 0 || read(in, buf, sizeof buf) != (ssize_t)sizeof buf || close(in) != 0) {
        return 8;
    }
    return write(fd, "x", 1) == 1 ? 0 : 9;
}

static void test_calls(void **state)
{
    char c = 0;
    int fd[2];
    (void)state;
    if (SANITIZED) {
        skip();
    }
    assert_int_equal(pipe(fd), 0);
    int rc = in_child(try_calls, fd[1]);
    if (rc == NO_WALL) {
        skip();
    }
    assert_int_equal(rc, 0);
    assert_int_equal(read(fd[0], &c, 1), 1);
    (void)close(fd[0]);
    (void)close(fd[1]);
}

static int try_files(int fd)
{
    (void)fd;
    if (!hv_lock_files()) {
        return NO_WALL;
    }
    if (open("made-by-a-test", O_WRONLY | O_CREAT, 0600) >= 0) {
        return 1;
    }
    return open("/dev/null", O_RDONLY) >= 0 ? 0 : 2;
}

static void test_files(void **state)
{
    char folder[] = "/var/tmp/hetviz-lock-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    int rc = in_child(try_files, -1);
    (void)remove("made-by-a-test");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
    if (rc == NO_WALL) {
        skip();
    }
    assert_int_equal(rc, 0);
}

static int try_abort(int fd)
{
    (void)fd;
    if (!hv_lock_calls()) {
        return NO_WALL;
    }
    abort();
}

/** A crash stays a crash: the parent sees the signal. */
static void test_a_crash_is_seen(void **state)
{
    int status = 0;
    (void)state;
    if (SANITIZED) {
        skip();
    }
    pid_t pid = fork();
    if (pid == 0) {
        _exit(try_abort(-1));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_WALL) {
        skip();
    }
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_a_crash_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
