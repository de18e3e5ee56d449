/* Reads jobs from a pipe, one after the other, and writes events to a pipe. The run itself is in
 * run.c, the parent's side in ui/process/pool. */
#include "scripting/worker/worker.h"
#include "scripting/host/jail.h"
#include "scripting/worker/worker_int.h"
#include "solver/base/units.h"

#include <stdlib.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

/** The worker with a job as read. */
struct worker_job {
    struct hv_json json;
    struct hv_inputs inputs; /**< of the latest job, kept as long as they stay the same */
    json_t *documents;       /**< [cluster, model, job] they were read from; NULL: none */
    struct hv_run_prices prices;
    struct hv_plugins plugins;
    struct hv_run_request request;
    const char **lost; /**< on the heap */
    int out_fd;
    int64_t n_jobs;  /**< that the process is to run, for its limit of CPU time */
    bool is_console; /**< kind `lua` */
    bool is_locked;
};

static void write_event(void *ctx, const json_t *line)
{
    const struct worker_job *w = ctx;
    hv__write_line(w->out_fd, line);
}

/** Ends the worker when its parent is killed, also inside a long call of C. */
static void end_with_parent(void)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

/** The addresses of lost devices. */
static enum hv_status read_lost(struct worker_job *w, const struct hv_jp *list, struct hv_err *err)
{
    enum hv_status s = hv_jp_array(list, &w->request.n_lost, err);

    if (s != HV_OK) {
        return s;
    }
    w->lost = hv_xcalloc(w->request.n_lost + 1, sizeof *w->lost);
    for (size_t i = 0; s == HV_OK && i < w->request.n_lost; i++) {
        struct hv_jp at = hv_jp_at(list, i);
        s = hv_jp_string(&at, &w->lost[i], err);
    }
    w->request.lost = w->lost;
    return s;
}

/** Seed, evaluations and time limit of the job, and how many the process is to run. */
static enum hv_status read_limits(const struct hv_jp *root, struct worker_job *w,
                                  struct hv_err *err)
{
    struct hv_run_request *r = &w->request;
    int64_t seed = 1, budget = 0;
    double limit = 0;
    enum hv_status s = hv_jp_opt_int(root, "seed", 0, INT64_C(9007199254740991), &seed, err);
    if (s == HV_OK) {
        s = hv_jp_opt_int(root, "budget", 0, INT64_C(9007199254740991), &budget, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_number(root, "time_limit_s", 0, 1e9, &limit, err);
    }
    w->n_jobs = 1;
    if (s == HV_OK) {
        s = hv_jp_opt_int(root, "jobs_in_process", 1, 1000000, &w->n_jobs, err);
    }
    r->seed = (uint64_t)seed;
    r->budget = budget;
    r->time_limit_s = limit;
    return s;
}

/** Reads the inputs of the job; those of the job before stay, with their prices, where they are the
 * same. */
static enum hv_status read_inputs(struct worker_job *w, const struct hv_jp *root,
                                  struct hv_err *err)
{
    json_t *now = json_pack("[O?,O?,O?]", json_object_get(root->v, "cluster"),
                            json_object_get(root->v, "model"), json_object_get(root->v, "job"));
    if (w->documents != NULL && json_equal(w->documents, now)) {
        json_decref(now);
        return HV_OK;
    }
    hv_run_prices_free(&w->prices);
    hv_inputs_free(&w->inputs);
    json_decref(w->documents);
    w->inputs = (struct hv_inputs){0};
    w->documents = now;
    return hv__job_inputs(root, &w->inputs, err);
}

static enum hv_status read_job(struct worker_job *w, const char *line, size_t n, struct hv_err *err)
{
    static const char *const keys[] = {"cluster",         "model",  "job",    "strategy",
                                       "options",         "seed",   "budget", "time_limit_s",
                                       "jobs_in_process", "replan", "lost",   "kind"};
    static const char *const kinds[] = {"plan", "lua"};
    int kind = 0;
    struct hv_jp at;
    enum hv_status s = hv_json_parse(&w->json, line, n, "job", err);
    if (s != HV_OK) {
        return s;
    }
    struct hv_jp root = hv_jp_root(&w->json);
    s = hv_jp_object(&root, keys, HV_COUNT(keys), err);
    if (s == HV_OK) {
        s = hv_jp_opt_word(&root, "kind", kinds, HV_COUNT(kinds), &kind, err);
    }
    w->is_console = kind == 1;
    if (s == HV_OK && !w->is_console) {
        s = hv_jp_need(&root, "strategy", "the name of a strategy", &at, err);
    }
    if (s == HV_OK && !w->is_console) {
        s = hv_jp_string(&at, &w->request.strategy, err);
    }
    if (s == HV_OK) {
        s = read_limits(&root, w, err);
    }
    at = hv_jp_get(&root, "options");
    if (s == HV_OK && !hv_jp_none(&at) && !json_is_object(at.v)) {
        s = hv_jp_expected(&at, err, "an object of options");
    }
    w->request.options = hv_jp_none(&at) ? NULL : at.v;
    at = hv_jp_get(&root, "replan");
    w->request.replan = json_is_object(at.v) ? at.v : NULL;
    at = hv_jp_get(&root, "lost");
    if (s == HV_OK && !hv_jp_none(&at)) {
        s = read_lost(w, &at, err);
    }
    return s == HV_OK ? read_inputs(w, &root, err) : s;
}

/** Runs the job with the restrictions of the kernel in force. */
static enum hv_status run_job(struct worker_job *w, struct hv__lines *in,
                              struct hv_run_result *result, struct hv_err *err)
{
    if (!w->is_locked) {
        hv_lock_process(w->request.time_limit_s * (double)w->n_jobs);
        w->is_locked = true;
    }
    w->request.inputs = &w->inputs;
    w->request.plugins = &w->plugins;
    w->request.prices = &w->prices;
    w->request.event = write_event;
    w->request.ctx = w;
    if (w->is_console) {
        return hv__worker_console(in, w->out_fd, &w->request, err);
    }
    return hv_run_strategy_here(&w->request, result, err);
}

/** Runs the job of a line and writes its result. */
static void take_job(struct worker_job *w, struct hv__lines *in, const char *line, size_t n)
{
    struct hv_run_result result = {0};
    struct hv_err err = {0};

    w->request = (struct hv_run_request){0};
    enum hv_status s = read_job(w, line, n, &err);
    if (s == HV_OK && w->plugins.items == NULL) {
        s = hv_plugins_read(&w->plugins, &err);
    }
    if (s == HV_OK) {
        s = run_job(w, in, &result, &err);
    }
    json_t *last = hv_run_result_event(&result, s, &err);
    hv__write_line(w->out_fd, last);
    json_decref(last);
    hv_run_result_free(&result);
    free(w->lost);
    w->lost = NULL;
    hv_json_free(&w->json);
    w->json = (struct hv_json){0};
}

int hv_worker_main(int in_fd, int out_fd)
{
    struct worker_job w = {.out_fd = out_fd};
    struct hv__lines in = {.fd = in_fd};
    struct hv_err err = {0};
    const char *line = NULL;
    size_t n = 0;
    bool first = true;

    end_with_parent();
    for (enum hv_status s = HV_OK; s == HV_OK; first = false) {
        s = hv__lines_next(&in, &line, &n, &err);
        if (s != HV_OK) {
            json_t *last = hv_run_result_event(&(struct hv_run_result){0}, s, &err);
            hv__write_line(out_fd, last);
            json_decref(last);
        } else if (line != NULL || first) {
            take_job(&w, &in, line != NULL ? line : "", n);
        } else {
            break;
        }
    }
    hv_run_prices_free(&w.prices);
    json_decref(w.documents);
    hv_plugins_free(&w.plugins);
    hv_inputs_free(&w.inputs);
    hv_str_free(&in.text);
    return 0;
}
