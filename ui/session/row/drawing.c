/*
 * Timelines of very many operations, made by a thread on copies of all inputs: the program
 * meanwhile handles events, shows the progress, and can cancel the thread. One timeline at a time.
 * Not for short timelines, which are made on request (judged.c).
 */
#include "ui/session/row/judged_int.h"

#include "solver/base/units.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Interval of progress updates while a thread runs. */
#define PROGRESS_MS 50

/* Input and output of the thread. It owns everything except the device kinds. */
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
    bool dropped; /* its result will be discarded */
    const struct hv_device_catalogue *devices;
    json_t *tree[HV_DOC_INPUTS], *plan; /* copies; handed to the documents one by one */
    struct hv__drawn *out;
    struct hv_eval_watch watch;
    unsigned shown_permille;
    pthread_t thread;
    int done_fd[2]; /* a pipe: the thread writes one byte to it at its end */
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

/* ---- in the thread --------------------------------------------------------------------------- */

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
        st = hv__cache_open_jobs(in, &d->plan, &d->own, &d->n_own, &d->costs, err);
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
    if (atomic_load(&w->watch.stop)) { /* the result is discarded: free the memory in this thread */
        hv__drawn_free(d);
        w->out = NULL;
    }
    ssize_t n = write(w->done_fd[1], "", 1);
    (void)n; /* the pipe is empty and open */
    return NULL;
}

/* ---- outside of it --------------------------------------------------------------------------- */

/* Creates the pipe, close-on-exec; false on failure. */
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

/* Signals are handled by the main thread. */
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
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_decref(w->tree[d]);
    }
    json_decref(w->plan);
    hv__drawn_free(w->out);
    free(w);
}

static bool start(struct hv__cache *cache, const struct hv__docs *docs, const struct hv__judged *j)
{
    struct hv__drawing *w = hv_xcalloc(1, sizeof *w);
    w->row = j->row;
    w->devices = &hv__docs_nouns(docs)->devices;
    w->done_fd[0] = w->done_fd[1] = -1;
    w->out = hv_xcalloc(1, sizeof *w->out);
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        w->tree[d] = json_deep_copy(hv__docs_tree(docs, (enum hv_doc)d));
    }
    w->plan = json_deep_copy(j->plan_tree);
    if (!open_pipe(w->done_fd) || !start_thread(w)) {
        drawing_free(w);
        return false;
    }
    cache->drawing = w;
    return true;
}

/* Waits for the thread and stores its result in the row. */
static void finish(struct hv__cache *cache)
{
    struct hv__drawing *w = cache->drawing;
    (void)pthread_join(w->thread, NULL);
    cache->drawing = NULL;
    struct hv__judged *j = w->dropped ? NULL : hv__cache_find(cache, w->row);
    if (j != NULL && w->status == HV_OK) {
        j->drawn = w->out;
        w->out = NULL;
    } else if (j != NULL) {
        j->err = w->err;
    }
    drawing_free(w);
}

void hv__cache_draw_drop(struct hv__cache *cache, const struct hv__judged *j)
{
    struct hv__drawing *w = cache->drawing;
    if (w != NULL && !w->dropped && w->row == j->row) {
        w->dropped = true;
        atomic_store(&w->watch.stop, true);
    }
}

bool hv__cache_draw_end(struct hv__cache *cache)
{
    if (cache->drawing == NULL) {
        return false;
    }
    cache->drawing->dropped = true;
    atomic_store(&cache->drawing->watch.stop, true);
    finish(cache);
    return true;
}

/* Estimated number of simulated operations of all pipelines. */
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

bool hv__cache_draws_apart(const struct hv__cache *cache, const struct hv__judged *j)
{
    return cache->apart_from > 0 && n_operations(j->plan.plan) >= (double)cache->apart_from;
}

const struct hv_verdict *hv__cache_draw(struct hv__cache *cache, const struct hv__docs *docs,
                                        struct hv__judged *j, struct hv_err *err)
{
    if (j->drawn != NULL) {
        return &j->drawn->verdict;
    }
    if (j->err.status != HV_OK) {
        if (err != NULL) {
            *err = j->err;
        }
        return NULL;
    }
    if (cache->drawing == NULL && !j->draw_stopped && !start(cache, docs, j)) {
        hv_err_set(err, HV_EIO, "no thread to draw it: %s", strerror(errno));
        return NULL;
    }
    enum hv_drawing state = hv__cache_drawing(cache, j->row, NULL);
    hv_err_set(err, HV_ESTOPPED,
               state == HV_DRAWING_STOPPED ? "the drawing was stopped"
                                           : "the timeline is being drawn");
    return NULL;
}

enum hv_drawing hv__cache_drawing(const struct hv__cache *cache, uint32_t row, double *frac)
{
    const struct hv__drawing *w = cache->drawing;
    const struct hv__judged *j = hv__cache_find(cache, row);
    if (frac != NULL) {
        *frac = 0;
    }
    if (j != NULL && j->draw_stopped) {
        return HV_DRAWING_STOPPED;
    }
    if (w == NULL) {
        return HV_DRAWING_NONE;
    }
    if (w->row == row && !w->dropped && frac != NULL) {
        *frac = 1e-3 * (double)w->shown_permille;
    }
    bool waits = j != NULL && j->has_plan && hv__cache_draws_apart(cache, j) && j->drawn == NULL;
    return w->row == row || waits ? HV_DRAWING_RUNS : HV_DRAWING_NONE;
}

bool hv__cache_draw_stop(struct hv__cache *cache, uint32_t row)
{
    struct hv__judged *j = hv__cache_find(cache, row);
    if (j == NULL || hv__cache_drawing(cache, row, NULL) != HV_DRAWING_RUNS) {
        return false;
    }
    hv__cache_draw_drop(cache, j);
    j->draw_stopped = true;
    return true;
}

bool hv__cache_draw_again(struct hv__cache *cache, uint32_t row)
{
    struct hv__judged *j = hv__cache_find(cache, row);
    bool stopped = j != NULL && j->draw_stopped;
    if (stopped) {
        j->draw_stopped = false;
    }
    return stopped;
}

/* ---- the loop -------------------------------------------------------------------------------- */

bool hv__cache_draw_tick(struct hv__cache *cache)
{
    struct hv__drawing *w = cache->drawing;
    struct pollfd p = {.fd = w != NULL ? w->done_fd[0] : -1, .events = POLLIN};
    if (w == NULL) {
        return false;
    }
    if (poll(&p, 1, 0) > 0) {
        finish(cache);
        return true;
    }
    unsigned now = atomic_load(&w->watch.permille);
    bool changed = now != w->shown_permille;
    w->shown_permille = now;
    return changed;
}

size_t hv__cache_fds(const struct hv__cache *cache, struct pollfd *out, size_t cap)
{
    if (cache->drawing == NULL) {
        return 0;
    }
    if (cap > 0) {
        *out = (struct pollfd){.fd = cache->drawing->done_fd[0], .events = POLLIN};
    }
    return 1;
}

int hv__cache_timeout_ms(const struct hv__cache *cache)
{
    return cache->drawing != NULL && !cache->drawing->dropped ? PROGRESS_MS : -1;
}
