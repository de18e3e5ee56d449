/*
 * Starts $VISUAL or $EDITOR and waits for it. Independent of plugins and curses.
 */
#include "ui/process/editor.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "solver/base/attr.h"
#include "solver/base/str.h"

extern char **environ;

/* The shell's exit status when there is no such command. */
#define NOT_FOUND 127

/* Keyboard signals, and their dispositions in this process while the editor runs. */
static const struct {
    int signo;
    void (*action)(int);
} keyboard[] = {{SIGINT, SIG_IGN}, {SIGQUIT, SIG_IGN}, {SIGTSTP, SIG_DFL}};

/* The command: $VISUAL, else $EDITOR, else "vi". */
static const char *editor_command(void)
{
    static const char *const names[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return value;
        }
    }
    return "vi";
}

static void hand_over(struct sigaction *old)
{
    for (size_t i = 0; i < HV_COUNT(keyboard); i++) {
        struct sigaction sa;
        memset(&sa, 0, sizeof sa);
        sa.sa_handler = keyboard[i].action;
        (void)sigemptyset(&sa.sa_mask);
        (void)sigaction(keyboard[i].signo, &sa, &old[i]);
    }
}

static void take_back(const struct sigaction *old)
{
    for (size_t i = 0; i < HV_COUNT(keyboard); i++) {
        (void)sigaction(keyboard[i].signo, &old[i], NULL);
    }
}

/* The shell splits the command; the path is passed as an argument and is not expanded. */
static int start(const char *command, const char *path, pid_t *pid)
{
    struct hv_str line = {0};
    posix_spawnattr_t attr;
    sigset_t untouched;
    (void)sigemptyset(&untouched);
    for (size_t i = 0; i < HV_COUNT(keyboard); i++) {
        (void)sigaddset(&untouched, keyboard[i].signo);
    }
    (void)sigaddset(&untouched, SIGPIPE);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigdefault(&attr, &untouched);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    hv_str_addf(&line, "%s \"$1\"", command);
    char *argv[] = {(char *)(uintptr_t) "sh",
                    (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)hv_str_cstr(&line),
                    (char *)(uintptr_t) "hetviz",
                    (char *)(uintptr_t)path,
                    NULL};
    int rc = posix_spawn(pid, "/bin/sh", NULL, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    hv_str_free(&line);
    return rc;
}

enum hv_status hv_editor_run(const char *path, struct hv_err *err)
{
    if (access(path, R_OK) != 0) {
        return hv_err_set(err, HV_EIO, "%s: %s", path, strerror(errno));
    }
    return hv_editor_call(editor_command(), path, err);
}

enum hv_status hv_editor_call(const char *command, const char *path, struct hv_err *err)
{
    struct sigaction old[HV_COUNT(keyboard)];
    pid_t pid = -1;
    int status = 0;
    hand_over(old);
    int rc = start(command, path, &pid);
    while (rc == 0 && waitpid(pid, &status, 0) < 0) {
        rc = errno == EINTR ? 0 : errno;
    }
    take_back(old);
    if (rc != 0) {
        return hv_err_set(err, HV_EIO, "cannot start the editor \"%s\": %s", command, strerror(rc));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) {
        return hv_err_set(
            err, HV_EIO,
            "the editor \"%s\" does not exist; set VISUAL or EDITOR to an editor that is installed",
            command);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return hv_err_set(err, HV_EIO, "the editor \"%s\" ended with an error", command);
    }
    return HV_OK;
}
