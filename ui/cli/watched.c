/** Watches work in another thread: progress, time limit, signals. */
#include "ui/cli/judged.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "solver/base/units.h"
#include "ui/cli/interrupt.h"

/* Pauses between two looks at the work, rising to the last. */
#define FIRST_PAUSE_S 1e-3
#define LAST_PAUSE_S  0.05
/* Work that ends sooner shows no progress. */
#define SHOW_AFTER_S 0.5

struct watched {
    hv_cli_work *work;
    void *ctx;
    struct hv_err *err;
    struct hv_eval_watch watch;
    enum hv_status status; /* written before `done` */
    atomic_bool done;
    struct timespec begin;
};

static void *run(void *ctx)
{
    struct watched *w = ctx;
    w->status = w->work(w->ctx, &w->watch, w->err);
    atomic_store(&w->done, true);
    return NULL;
}

static double passed_s(const struct watched *w)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - w->begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - w->begin.tv_nsec);
}

static void show_progress(struct watched *w)
{
    char time[HV_FMT_CAP];
    unsigned permille = atomic_load(&w->watch.permille);
    if (permille > 0) {
        (void)fprintf(stderr, "\r%3u%% %-20s", permille / 10,
                      hv_fmt_seconds(time, sizeof time, passed_s(w)));
    } else {
        (void)fprintf(stderr, "\r     %-20s", hv_fmt_seconds(time, sizeof time, passed_s(w)));
    }
}

/** Looks at the work until it is done. */
static void look_at(struct watched *w, double limit_s, bool progress)
{
    double pause_s = FIRST_PAUSE_S;
    bool shown = false;
    while (!atomic_load(&w->done)) {
        const struct timespec pause = {.tv_nsec = (long)(pause_s * 1e9)};
        (void)nanosleep(&pause, NULL);
        pause_s = pause_s < LAST_PAUSE_S / 2 ? 2 * pause_s : LAST_PAUSE_S;
        double now_s = passed_s(w);
        if (hv_interrupted(NULL) || (limit_s > 0 && now_s > limit_s)) {
            atomic_store(&w->watch.stop, true);
        }
        if (progress && now_s > SHOW_AFTER_S) {
            show_progress(w);
            shown = true;
        }
    }
    if (shown) {
        (void)fprintf(stderr, "\r%-26s\r", "");
    }
}

static bool start(struct watched *w, pthread_t *thread)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals come to this thread */
    bool ok = pthread_create(thread, NULL, run, w) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

enum hv_status hv_cli_watched(const struct hv_args *args, hv_cli_work *work, void *ctx,
                              struct hv_err *err)
{
    double limit_s = hv_args_number(args, "time-limit", 0);
    bool progress = isatty(STDERR_FILENO) && !hv_args_has(args, "quiet");
    struct watched w = {.work = work, .ctx = ctx, .err = err};
    pthread_t thread;
    if (limit_s <= 0 && !progress) {
        return work(ctx, NULL, err);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &w.begin);
    hv_interrupt_catch();
    hv_interrupt_insist(limit_s);
    if (!start(&w, &thread)) {
        return hv_err_set(err, HV_EINTERNAL, "no thread could be started for the work");
    }
    look_at(&w, limit_s, progress);
    (void)pthread_join(thread, NULL);
    hv_interrupt_relax();
    if (w.status != HV_ESTOPPED) {
        return w.status;
    }
    char limit[HV_FMT_CAP];
    if (hv_interrupted(NULL)) {
        return hv_err_set(err, HV_ESTOPPED, "interrupted; no result");
    }
    return hv_err_set(
        err, HV_ESTOPPED,
        "the time limit of %s is reached; no result: give more time with --time-limit",
        hv_fmt_seconds(limit, sizeof limit, limit_s));
}
