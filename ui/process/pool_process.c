/*
 * One worker process: starting it with its pipes, signals, the wait for its end. Not for its output
 * (pool_line.c) nor for the queue (pool.c).
 */
#include "ui/process/pool_int.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The two ends of a channel: ours, and the child's. */
struct ends {
    int ours, theirs;
};

void hv__pool_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* The job goes through a socket, because a write to one whose reader died can be made not to raise
 * SIGPIPE. */
static bool open_ends(struct ends e[3])
{
    int fd[2];
    for (int i = 0; i < 3; i++) {
        /* a pipe's first descriptor is the reader: ours, for what the worker writes */
        if ((i == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd)) != 0 ||
            !hv_descriptors_lift(fd)) {
            return false;
        }
        e[i] = (struct ends){.ours = fd[0], .theirs = fd[1]};
        if (fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0) {
            return false;
        }
    }
    return true;
}

static void close_ends(struct ends e[3])
{
    for (int i = 0; i < 3; i++) {
        hv__pool_close(&e[i].ours);
        hv__pool_close(&e[i].theirs);
    }
}

/* The child gets its three descriptors, a process group of its own and untouched signals. */
static int spawn(struct hv_pool *p, const struct ends e[3], pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigemptyset(&all);
    const int ours_to_reset[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGXFSZ};
    for (size_t i = 0; i < HV_COUNT(ours_to_reset); i++) {
        sigaddset(&all, ours_to_reset[i]);
    }
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    for (int i = 0; i < 3; i++) {
        posix_spawn_file_actions_adddup2(&files, e[i].theirs, i);
    }
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    static char self[] = "/proc/self/exe", name[] = "hetviz", worker[] = "worker";
    char *own[] = {name, worker, NULL};
    int rc = p->argv != NULL ? posix_spawnp(pid, p->argv[0], &files, &attr, p->argv, environ)
                             : posix_spawn(pid, self, &files, &attr, own, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

/* Gives the process a job to read, whose time begins. Takes over its text. */
static void give_job(const struct hv_pool *p, struct hv__worker *w, struct hv__pending *job)
{
    w->job = job->text;
    w->job_n = job->n;
    w->job_at = 0;
    job->text = NULL;
    w->job_limit_s = job->time_limit_s;
    w->started_s = hv__pool_now(p);
    w->limit_s = job->time_limit_s > 0 ? w->started_s + job->time_limit_s : HV_UNKNOWN;
}

enum hv_status hv__pool_worker_start(struct hv_pool *p, struct hv__pending *job,
                                     struct hv__worker **out, struct hv_err *err)
{
    struct ends e[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    pid_t pid = -1;
    int rc = open_ends(e) ? spawn(p, e, &pid) : errno;
    if (rc != 0) {
        char what[256];
        close_ends(e);
        (void)snprintf(what, sizeof what, "cannot start a worker (%s)",
                       p->argv != NULL ? p->argv[0] : "hetviz worker");
        (void)hv_descriptors_error(err, what, rc);
        return rc == EMFILE || rc == ENFILE || rc == EAGAIN ? HV_ELIMIT : HV_EIO;
    }
    struct hv__worker *w = hv_xcalloc(1, sizeof *w);
    w->id = job->id;
    w->pid = pid;
    w->in_fd = e[0].ours;
    w->out_fd = e[1].ours;
    w->err_fd = e[2].ours;
    for (int i = 0; i < 3; i++) {
        hv__pool_close(&e[i].theirs);
    }
    w->first = job->behind == 0 ? job->id : 0;
    w->talks = job->talks;
    w->kill_s = HV_UNKNOWN;
    give_job(p, w, job);
    *out = w;
    return HV_OK;
}

void hv__pool_worker_next(const struct hv_pool *p, struct hv__worker *w, struct hv__pending *job)
{
    json_decref(w->result);
    json_decref(w->error);
    w->result = w->error = NULL;
    w->tail_n = 0;
    w->tail[0] = '\0';
    w->n_done++;
    w->id = job->id;
    free(w->job);
    give_job(p, w, job);
}

void hv__pool_worker_signal(const struct hv__worker *w, int signal)
{
    /* the whole group: child processes of a worker must not keep the pipes open */
    if (kill(-w->pid, signal) != 0) {
        kill(w->pid, signal);
    }
}

bool hv__pool_worker_has_ended(const struct hv__worker *w)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == w->pid;
}

int hv__pool_worker_reap(const struct hv__worker *w)
{
    int status = 0;
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    return status;
}

void hv__pool_worker_free(struct hv__worker *w)
{
    hv__pool_close(&w->in_fd);
    hv__pool_close(&w->out_fd);
    hv__pool_close(&w->err_fd);
    json_decref(w->result);
    json_decref(w->error);
    hv_str_free(&w->line);
    hv_str_free(&w->broken);
    free(w->job);
    free(w);
}
