/*
 * Starts $VISUAL or $EDITOR and waits for it. Independent of plugins and curses. The only mutable
 * state is that of the signal handlers.
 */
#include "ui/process/editor.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
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

/* Seconds until an editor that is to end and goes on gets a hangup, and again until it is left. */
#define PATIENCE_S 5

static volatile sig_atomic_t editor, ended_by, n_alarms;

/* Passes the signal on: editors save what they have, for its recovery. Only async-signal-safe
 * calls, here and below. */
static void on_end(int signo)
{
    int saved_errno = errno;
    ended_by = signo;
    if (editor > 0) {
        (void)kill((pid_t)editor, signo);
    }
    (void)alarm(PATIENCE_S);
    errno = saved_errno;
}

static void on_alarm(int signo)
{
    (void)signo;
    n_alarms++;
    (void)alarm(PATIENCE_S);
}

/* Signals, and their dispositions in this process while the editor runs: those of the keyboard are
 * for the editor. */
static const struct {
    int signo;
    void (*action)(int);
} signals[] = {{SIGINT, SIG_IGN}, {SIGQUIT, SIG_IGN}, {SIGTSTP, SIG_DFL},
               {SIGTERM, on_end}, {SIGHUP, on_end},   {SIGALRM, on_alarm}};

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
    editor = ended_by = n_alarms = 0;
    for (size_t i = 0; i < HV_COUNT(signals); i++) {
        struct sigaction sa;
        memset(&sa, 0, sizeof sa);
        sa.sa_handler = signals[i].action;
        (void)sigemptyset(&sa.sa_mask);
        (void)sigaction(signals[i].signo, NULL, &old[i]);
        if (sa.sa_handler != on_end || old[i].sa_handler != SIG_IGN) {
            (void)sigaction(signals[i].signo, &sa, NULL);
        }
    }
}

/* A signal that would have ended this process meanwhile is handled as it would have been. */
static void take_back(const struct sigaction *old)
{
    (void)alarm(0);
    for (size_t i = 0; i < HV_COUNT(signals); i++) {
        (void)sigaction(signals[i].signo, &old[i], NULL);
    }
    if (ended_by != 0) {
        (void)raise(ended_by);
    }
}

/* The shell splits the command; the path is passed as an argument and is not expanded. */
static int start(const char *command, const char *path, pid_t *pid)
{
    struct hv_str line = {0};
    posix_spawnattr_t attr;
    sigset_t untouched;
    (void)sigemptyset(&untouched);
    for (size_t i = 0; i < HV_COUNT(signals); i++) {
        if (signals[i].action != on_end) { /* ignored by this process, they stay so */
            (void)sigaddset(&untouched, signals[i].signo);
        }
    }
    (void)sigaddset(&untouched, SIGPIPE);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigdefault(&attr, &untouched);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    /* as itself, not as a child of the shell, where it is a plain command: signals reach it then */
    bool plain = command[strcspn(command, "=;&|()<>`$\n")] == '\0';
    hv_str_addf(&line, "%s%s \"$1\"", plain ? "exec " : "", command);
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

/* Waits for the end of the editor; false where it is left running. */
static bool wait_for_end(pid_t pid, int *status)
{
    int alarms = 0;
    while (waitpid(pid, status, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
        if (n_alarms > alarms) {
            alarms = n_alarms;
            (void)kill(pid, SIGHUP);
        }
        if (alarms > 1) {
            return false;
        }
    }
    return true;
}

enum hv_status hv_editor_call(const char *command, const char *path, struct hv_err *err)
{
    struct sigaction old[HV_COUNT(signals)];
    pid_t pid = -1;
    int status = 0;
    hand_over(old);
    int rc = start(command, path, &pid);
    editor = rc == 0 ? (sig_atomic_t)pid : 0;
    if (rc == 0 && ended_by != 0) {
        (void)kill(pid, ended_by);
    }
    bool ended = rc == 0 && wait_for_end(pid, &status);
    bool is_asked = ended_by != 0;
    take_back(old);
    if (rc != 0) {
        return hv_err_set(err, HV_EIO, "cannot start the editor \"%s\": %s", command, strerror(rc));
    }
    if (!ended || is_asked) {
        return hv_err_set(err, HV_EIO, "the editor \"%s\" %s", command,
                          ended ? "was ended by a signal" : "goes on after a signal to end");
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
