/*
 * Timelines of very many operations, made by a thread on copies of all inputs: the program goes on
 * meanwhile, shows how far it is, and can end it. One at a time. Short ones are made where they are
 * asked for (session_judge.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often progress is shown while a thread is at work. */
#define PROGRESS_MS 50

/* What the thread works on, and leaves behind: everything is its own but the device kinds. */
struct hv__drawn {
    struct hv_inputs inputs; /* without device kinds */
    struct hv_plan_doc plan;
    struct hv_job_inputs *own;
    size_t n_own;
    struct hv_cost *cost, **costs;
    struct hv_arena arena;
    struct hv_verdict verdict;
};

size_t hv__drawn_bytes(const struct hv__drawn *d)
{
    return d != NULL ? d->arena.used_bytes : 0;
}

/* One thread with its work. */
struct hv__drawing {
    uint32_t row;
    bool dropped; /* nobody wants it any more */
    const struct hv_device_catalogue *devices;
    json_t *tree[HV__INPUTS], *plan; /* copies; handed to the documents one by one */
    struct hv__drawn *out;
    struct hv_eval_watch watch;
    unsigned shown_permille;
    pthread_t thread;
    int done_fd[2]; /* one byte when the thread is through */
    enum hv_status status;
    struct hv_err err;
};

void hv__drawn_free(struct hv__drawn *d)
{
    if (d == NULL) {
        return;
    }
    hv_cost_free(d->cost);
    for (size_t i = 0; i < d->n_own; i++) {
        hv_cost_free(d->costs[i]);
    }
    free(d->costs);
    hv_job_inputs_free(d->own, d->n_own);
    hv_plan_doc_free(&d->plan);
    hv_cluster_doc_free(&d->inputs.cluster);
    hv_model_doc_free(&d->inputs.model);
    hv_job_doc_free(&d->inputs.job);
    hv_arena_free(&d->arena);
    free(d);
}

/* ---- in the thread ----------------------------------------------------------------------------
 */

/* A copied tree as a document; the tree is handed over. */
static struct hv_json take(json_t **tree, const char *name)
{
    struct hv_json json = {0};
    hv_json_wrap(&json, *tree, name);
    *tree = NULL;
    return json;
}

static enum hv_status build(struct hv__drawing *w, struct hv_err *err)
{
    struct hv__drawn *d = w->out;
    struct hv_inputs *in = &d->inputs;
    enum hv_status st = hv_cluster_doc_build(
        &in->cluster, take(&w->tree[HV_DOC_CLUSTER], "cluster"), w->devices, err);
    if (st == HV_OK) {
        st = hv_model_doc_build(&in->model, take(&w->tree[HV_DOC_MODEL], "model"), err);
    }
    if (st == HV_OK) {
        st = hv_job_doc_build(&in->job, take(&w->tree[HV_DOC_JOB], "job"),
                              in->model.model->max_sequence, err);
    }
    if (st == HV_OK) {
        st = hv_plan_doc_build(&d->plan, take(&w->plan, "plan"), in->cluster.cluster, err);
    }
    if (st == HV_OK) {
        st = hv__session_open_jobs(in, &d->plan, &d->own, &d->n_own, &d->costs, err);
    }
    if (st == HV_OK) {
        d->cost = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
    }
    return st;
}

static void *work(void *arg)
{
    struct hv__drawing *w = arg;
    struct hv__drawn *d = w->out;
    struct hv_eval_options o = {.timeline = true, .watch = &w->watch};
    w->status = build(w, &w->err);
    o.jobs = d->costs;
    if (w->status == HV_OK) {
        w->status = hv_eval(d->cost, d->plan.plan, &o, &d->arena, &d->verdict, &w->err);
    }
    if (atomic_load(&w->watch.stop)) { /* nobody will look: let go of the memory here */
        hv__drawn_free(d);
        w->out = NULL;
    }
    ssize_t n = write(w->done_fd[1], "", 1);
    (void)n; /* the pipe is empty and open */
    return NULL;
}

/* ---- outside of it ----------------------------------------------------------------------------
 */

/* Ends that do not outlive this program's own life; −1 on failure. */
static bool open_pipe(int fd[2])
{
    if (pipe(fd) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(fd[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

/* Signals are the main thread's. */
static bool start_thread(struct hv__drawing *w)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&w->thread, NULL, work, w) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static void drawing_free(struct hv__drawing *w)
{
    for (int i = 0; i < 2; i++) {
        if (w->done_fd[i] >= 0) {
            (void)close(w->done_fd[i]);
        }
    }
    for (int d = 0; d < HV__INPUTS; d++) {
        json_decref(w->tree[d]);
    }
    json_decref(w->plan);
    hv__drawn_free(w->out);
    free(w);
}

static bool start(struct hv_session *s, struct hv__row *r)
{
    struct hv__drawing *w = hv_xcalloc(1, sizeof *w);
    w->row = r->pub.id;
    w->devices = &s->inputs.devices;
    w->done_fd[0] = w->done_fd[1] = -1;
    w->out = hv_xcalloc(1, sizeof *w->out);
    for (int d = 0; d < HV__INPUTS; d++) {
        w->tree[d] = json_deep_copy(s->tree[d]);
    }
    w->plan = json_deep_copy(r->plan);
    if (!open_pipe(w->done_fd) || !start_thread(w)) {
        drawing_free(w);
        return false;
    }
    s->drawing = w;
    return true;
}

/* Waits for the thread and takes what it made to its row. */
static void finish(struct hv_session *s)
{
    struct hv__drawing *w = s->drawing;
    (void)pthread_join(w->thread, NULL);
    s->drawing = NULL;
    struct hv__row *r = w->dropped ? NULL : hv__session_row_any(s, w->row);
    if (r != NULL && w->status == HV_OK) {
        r->judged.drawn = w->out;
        w->out = NULL;
    } else if (r != NULL) {
        r->judged.err = w->err;
    }
    drawing_free(w);
    hv__session_moved(s);
}

void hv__session_draw_drop(struct hv_session *s, const struct hv__judged *j)
{
    struct hv__drawing *w = s->drawing;
    const struct hv__row *r = w != NULL && !w->dropped ? hv__session_row_any(s, w->row) : NULL;
    if (r != NULL && &r->judged == j) {
        w->dropped = true;
        atomic_store(&w->watch.stop, true);
    }
}

void hv__session_draw_free(struct hv_session *s)
{
    if (s->drawing != NULL) {
        s->drawing->dropped = true;
        atomic_store(&s->drawing->watch.stop, true);
        finish(s);
    }
}

/* Operations of all pipelines that are laid out, about. */
static double n_operations(const struct hv_plan *p)
{
    double n = 0;
    for (size_t i = 0; i < p->n_jobs; i++) {
        n += n_operations(p->jobs[i].plan);
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        n += 2 * (double)p->replicas[i].n_stages * (double)p->replicas[i].micro_batches;
    }
    return n;
}

bool hv__session_draws_apart(const struct hv_session *s, const struct hv__row *r)
{
    return s->env.apart_from > 0 && n_operations(r->judged.plan.plan) >= (double)s->env.apart_from;
}

const struct hv_verdict *hv__session_draw(struct hv_session *s, struct hv__row *r,
                                          struct hv_err *err)
{
    struct hv__judged *j = &r->judged;
    enum hv_drawing state = HV_DRAWING_NONE;
    if (j->drawn != NULL) {
        return &j->drawn->verdict;
    }
    if (j->err.status != HV_OK) {
        if (err != NULL) {
            *err = j->err;
        }
        return NULL;
    }
    if (s->drawing == NULL && !j->draw_stopped && !start(s, r)) {
        hv_err_set(err, HV_EIO, "no thread to draw it: %s", strerror(errno));
        return NULL;
    }
    state = hv_session_drawing(s, r->pub.id, NULL);
    hv_err_set(err, HV_ESTOPPED,
               state == HV_DRAWING_STOPPED ? "drawing was stopped" : "it is being drawn");
    return NULL;
}

enum hv_drawing hv_session_drawing(const struct hv_session *s, uint32_t id, double *frac)
{
    const struct hv__drawing *w = s->drawing;
    const struct hv__row *r = hv__session_row_any(s, id);
    if (frac != NULL) {
        *frac = 0;
    }
    if (r == NULL || r->deleted) {
        return HV_DRAWING_NONE;
    }
    if (r->judged.draw_stopped) {
        return HV_DRAWING_STOPPED;
    }
    if (w == NULL) {
        return HV_DRAWING_NONE;
    }
    if (w->row == id && !w->dropped && frac != NULL) {
        *frac = 1e-3 * (double)w->shown_permille;
    }
    return w->row == id ||
                   (r->judged.has_plan && hv__session_draws_apart(s, r) && r->judged.drawn == NULL)
               ? HV_DRAWING_RUNS
               : HV_DRAWING_NONE;
}

bool hv_session_draw_stop(struct hv_session *s, uint32_t id)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || hv_session_drawing(s, id, NULL) != HV_DRAWING_RUNS) {
        return false;
    }
    hv__session_draw_drop(s, &r->judged);
    r->judged.draw_stopped = true;
    hv__session_moved(s);
    return true;
}

void hv_session_draw_again(struct hv_session *s, uint32_t id)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r != NULL && r->judged.draw_stopped) {
        r->judged.draw_stopped = false;
        hv__session_moved(s);
    }
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

void hv__session_draw_tick(struct hv_session *s)
{
    struct hv__drawing *w = s->drawing;
    struct pollfd p = {.fd = w != NULL ? w->done_fd[0] : -1, .events = POLLIN};
    if (w == NULL) {
        return;
    }
    if (poll(&p, 1, 0) > 0) {
        finish(s);
        return;
    }
    unsigned now = atomic_load(&w->watch.permille);
    if (now != w->shown_permille) {
        w->shown_permille = now;
        hv__session_moved(s);
    }
}

size_t hv__session_draw_fds(const struct hv_session *s, struct pollfd *out, size_t cap)
{
    if (s->drawing == NULL) {
        return 0;
    }
    if (cap > 0) {
        *out = (struct pollfd){.fd = s->drawing->done_fd[0], .events = POLLIN};
    }
    return 1;
}

int hv__session_draw_timeout_ms(const struct hv_session *s)
{
    return s->drawing != NULL && !s->drawing->dropped ? PROGRESS_MS : -1;
}
