/* Reads one job from a pipe and writes events to a pipe. The run itself is in run.c, the parent's
 * side in ui/process/pool. */
#include "scripting/worker/worker.h"
#include "scripting/host/jail.h"
#include "scripting/worker/worker_int.h"
#include "solver/base/units.h"

#include <stdlib.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

/** A job as read. */
struct worker_job {
    struct hv_json json;
    struct hv_inputs inputs;
    struct hv_plugins plugins;
    struct hv_run_request request;
    const char **lost; /**< on the heap */
    int out_fd;
    bool is_console; /**< kind `lua` */
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

/** Seed, evaluations and time limit of the job. */
static enum hv_status read_limits(const struct hv_jp *root, struct hv_run_request *r,
                                  struct hv_err *err)
{
    int64_t seed = 1, budget = 0;
    double limit = 0;
    enum hv_status s = hv_jp_opt_int(root, "seed", 0, INT64_C(9007199254740991), &seed, err);
    if (s == HV_OK) {
        s = hv_jp_opt_int(root, "budget", 0, INT64_C(9007199254740991), &budget, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_number(root, "time_limit_s", 0, 1e9, &limit, err);
    }
    r->seed = (uint64_t)seed;
    r->budget = budget;
    r->time_limit_s = limit;
    return s;
}

static enum hv_status read_job(struct worker_job *w, const char *line, size_t n, struct hv_err *err)
{
    static const char *const keys[] = {"cluster", "model", "job",    "strategy",
                                       "options", "seed",  "budget", "time_limit_s",
                                       "replan",  "lost",  "kind"};
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
        s = read_limits(&root, &w->request, err);
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
    return s == HV_OK ? hv__job_inputs(&root, &w->inputs, err) : s;
}

/** Runs the job with the restrictions of the kernel in force. */
static enum hv_status run_job(struct worker_job *w, struct hv__lines *in,
                              struct hv_run_result *result, struct hv_err *err)
{
    hv_lock_process(w->request.time_limit_s);
    w->request.inputs = &w->inputs;
    w->request.plugins = &w->plugins;
    w->request.event = write_event;
    w->request.ctx = w;
    if (w->is_console) {
        return hv__worker_console(in, w->out_fd, &w->request, err);
    }
    return hv_run_strategy_here(&w->request, result, err);
}

int hv_worker_main(int in_fd, int out_fd)
{
    struct worker_job w = {.out_fd = out_fd};
    struct hv_run_result result = {0};
    struct hv__lines in = {.fd = in_fd};
    struct hv_err err = {0};
    const char *line = NULL;
    size_t n = 0;

    end_with_parent();
    enum hv_status s = hv__lines_next(&in, &line, &n, &err);
    if (s == HV_OK) {
        s = read_job(&w, line != NULL ? line : "", n, &err);
    }
    if (s == HV_OK) {
        s = hv_plugins_read(&w.plugins, &err);
    }
    if (s == HV_OK) {
        s = run_job(&w, &in, &result, &err);
    }
    json_t *last = hv_run_result_event(&result, s, &err);
    hv__write_line(out_fd, last);
    json_decref(last);
    hv_run_result_free(&result);
    free(w.lost);
    hv_plugins_free(&w.plugins);
    hv_inputs_free(&w.inputs);
    hv_json_free(&w.json);
    hv_str_free(&in.text);
    return 0;
}
