/** `hetviz plan`, `hetviz selftest` and `hetviz worker`: one strategy. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scripting/worker/run.h"
#include "scripting/worker/worker.h"
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/save/save.h"
#include "solver/base/units.h"
#include "ui/cli/cli.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/print.h"
#include "ui/cli/run_options.h"
#include "ui/cli/verdict_text.h"

/** Everything of one `plan` call. */
struct planning {
    struct hv_inputs inputs;
    struct hv_plugins plugins;
    json_t *options;
    struct hv_json replan; /**< the plan that was running, or empty */
    struct hv_run_result result;
    bool progress; /**< a bar on standard error */
};

static void free_planning(struct planning *p)
{
    hv_run_result_free(&p->result);
    json_decref(p->options);
    hv_json_free(&p->replan);
    hv_plugins_free(&p->plugins);
    hv_inputs_free(&p->inputs);
}

/** Progress on a terminal: one line that is written over. */
static void on_event(void *ctx, const json_t *line)
{
    const struct planning *p = ctx;
    const char *event = json_string_value(json_object_get(line, "event"));
    if (!p->progress || event == NULL || strcmp(event, "progress") != 0) {
        return;
    }
    const char *text = json_string_value(json_object_get(line, "text"));
    double frac = json_number_value(json_object_get(line, "frac"));
    struct hv_str shown = {0};
    hv_text_addf(&shown, "\r%3.0f%% %-60.60s", frac * 100, text != NULL ? text : "");
    (void)fputs(hv_str_cstr(&shown), stderr);
    hv_str_free(&shown);
}

/** The plan that was running; plugins rely on a plan of this cluster. */
static enum hv_status read_running(struct planning *p, const char *file, struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    struct hv_plan_doc doc = {0};
    enum hv_status st = hv_save_recover_beside(file, err);
    st = st == HV_OK ? hv_file_read(file, &text, err) : st;
    if (st == HV_OK) {
        st = hv_json_parse(&p->replan, hv_str_cstr(&text), text.n, file, err);
    }
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, file, err);
    }
    if (st == HV_OK) {
        st = hv_plan_doc_build(&doc, json, p->inputs.cluster.cluster, err);
        if (st == HV_OK && doc.plan->n_replicas == 0) {
            st = hv_err_set(err, HV_EINPUT, "%s: --replan: expected a plan with replicas", file);
        }
        hv_plan_doc_free(&doc);
    }
    hv_str_free(&text);
    return st;
}

static enum hv_status read_all(struct hv_args *args, struct planning *p, struct hv_err *err)
{
    enum hv_status st =
        hv_inputs_read(&p->inputs, hv_args_text(args, "cluster", NULL),
                       hv_args_text(args, "model", NULL), hv_args_text(args, "job", NULL), err);
    if (st == HV_OK) {
        st = hv_plugins_read(&p->plugins, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (hv_args_has(args, "replan")) {
        st = read_running(p, hv_args_text(args, "replan", ""), err);
        if (st != HV_OK) {
            return st;
        }
    }
    size_t n = 0;
    const char **texts = hv_args_all(args, "option", &n);
    st = hv_cli_job_options(texts, n, &p->inputs, err);
    return st != HV_OK ? st
                       : hv_cli_run_options(&p->plugins, hv_args_text(args, "strategy", ""), texts,
                                            n, NULL, &p->options, err);
}

/** The plan's figures in words. */
static enum hv_status print_summary(struct planning *p, struct hv_err *err)
{
    struct hv_plan_doc doc = {0};
    struct hv_json json = {0};
    hv_json_wrap(&json, json_deep_copy(p->result.plan), "plan");
    enum hv_status st = hv_plan_doc_build(&doc, json, p->inputs.cluster.cluster, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_cost *k =
        hv_cost_new(p->inputs.cluster.cluster, p->inputs.model.model, &p->inputs.job.job);
    struct hv_arena arena = {0};
    struct hv_verdict v;
    struct hv_job_inputs *own = NULL;
    size_t n = 0;
    st = hv_job_inputs_read(&doc.json, &p->inputs, &own, &n, err);
    struct hv_cost **jobs = st == HV_OK ? hv_job_costs_new(&p->inputs, own, n) : NULL;
    struct hv_eval_options o = {.jobs = jobs};
    st = st == HV_OK ? hv_eval(k, doc.plan, &o, &arena, &v, err) : st;
    if (st == HV_OK) {
        struct hv_str text = {0};
        hv_cli_verdict_text(doc.plan, &v, &text);
        st = hv_cli_print(&text, err);
        hv_str_free(&text);
    }
    hv_job_costs_free(jobs, n);
    hv_job_inputs_free(own, n);
    hv_arena_free(&arena);
    hv_cost_free(k);
    hv_plan_doc_free(&doc);
    return st;
}

static enum hv_status show_plan(const struct hv_args *args, struct planning *p, struct hv_err *err)
{
    if (p->result.stopped) {
        json_object_set_new(p->result.plan, "stopped", json_true());
    }
    enum hv_status st = HV_OK;
    if (hv_args_has(args, "out")) {
        struct hv_str text = {0};
        hv_json_write(&text, p->result.plan, true);
        st = hv_cli_write(args, &text, err);
        hv_str_free(&text);
    }
    if (st != HV_OK ||
        (hv_args_has(args, "out") && strcmp(hv_args_text(args, "out", ""), "-") == 0)) {
        return st;
    }
    if (hv_args_has(args, "json")) {
        return hv_cli_print_json(json_incref(p->result.plan), err);
    }
    return print_summary(p, err);
}

enum hv_status hv_cli_plan(struct hv_args *args, struct hv_err *err)
{
    struct planning p = {.progress = isatty(STDERR_FILENO) && !hv_args_has(args, "quiet")};
    enum hv_status st = read_all(args, &p, err);
    if (st == HV_OK) {
        hv_interrupt_catch();
        struct hv_run_request r = {.inputs = &p.inputs,
                                   .plugins = &p.plugins,
                                   .strategy = hv_args_text(args, "strategy", ""),
                                   .options = p.options,
                                   .seed = (uint64_t)hv_args_number(args, "seed", 1),
                                   .budget = (int64_t)hv_args_number(args, "budget", 0),
                                   .time_limit_s = hv_args_number(args, "time-limit", 0),
                                   .event = on_event,
                                   .cancel = hv_interrupted,
                                   .replan = p.replan.root,
                                   .ctx = &p};
        r.lost = hv_args_all(args, "lost", &r.n_lost);
        st = hv_run_strategy(&r, &p.result, err);
        if (p.progress) {
            (void)fprintf(stderr, "\r%-66s\r", "");
        }
    }
    if (st == HV_EPLUGIN && p.result.traceback.n > 0) {
        struct hv_str text = {0};
        hv_text_clean_lines(&text, hv_str_cstr(&p.result.traceback), p.result.traceback.n);
        (void)fprintf(stderr, "%s\n", hv_str_cstr(&text));
        hv_str_free(&text);
    }
    bool is_answer = st == HV_OK || st == HV_ESTOPPED || (st == HV_ENO && p.result.over_limits);
    if (is_answer && p.result.plan != NULL) {
        struct hv_err unheard = {0}; /* the first reason stays */
        enum hv_status shown = show_plan(args, &p, st == HV_ENO ? &unheard : err);
        st = shown != HV_OK ? shown : st;
    }
    free_planning(&p);
    return st;
}

/** Runs the self-test of one plugin; a broken plugin is a failure. */
static void test_plugin(const struct hv_plugin *p, bool times, struct hv_selftest_counts *counts,
                        struct hv_str *out)
{
    if (p->error != NULL) {
        hv_text_addf(out, "FAILED %s: %s\n", p->id, p->error);
        counts->failed++;
        return;
    }
    hv_selftest(p, times, counts, out);
}

static enum hv_status test_named(const struct hv_plugins *all, const char *name, bool times,
                                 struct hv_selftest_counts *counts, struct hv_str *out,
                                 struct hv_err *err)
{
    if (hv_plugin_is_path(name)) {
        struct hv_plugins one = {0};
        enum hv_status st = hv_plugins_read_file(&one, name, err);
        for (size_t i = 0; st == HV_OK && i < one.n; i++) {
            test_plugin(&one.items[i], times, counts, out);
        }
        hv_plugins_free(&one);
        return st;
    }
    const struct hv_plugin *p = NULL;
    enum hv_status st = hv_plugins_get(all, name, &p, err);
    if (st == HV_OK) {
        test_plugin(p, times, counts, out);
    }
    return st;
}

enum hv_status hv_cli_selftest(struct hv_args *args, struct hv_err *err)
{
    struct hv_plugins all = {0};
    struct hv_selftest_counts counts = {0};
    struct hv_str out = {0};
    bool times = hv_args_has(args, "times");
    enum hv_status st = hv_plugins_read(&all, err);
    for (size_t i = 0; st == HV_OK && i < args->n_positional; i++) {
        st = test_named(&all, args->positional[i], times, &counts, &out, err);
    }
    for (size_t i = 0; st == HV_OK && args->n_positional == 0 && i < all.n; i++) {
        test_plugin(&all.items[i], times, &counts, &out);
    }
    if (st == HV_OK) {
        hv_text_addf(&out, "%zu passed, %zu failed\n", counts.passed, counts.failed);
        st = hv_cli_print(&out, err);
    }
    if (st == HV_OK && counts.failed > 0) {
        st = hv_err_set(err, HV_ENO, "%zu self-test%s failed", counts.failed,
                        counts.failed == 1 ? "" : "s");
    }
    hv_str_free(&out);
    hv_plugins_free(&all);
    return st;
}

enum hv_status hv_cli_worker(struct hv_args *args, struct hv_err *err)
{
    (void)args;
    if (hv_worker_main(STDIN_FILENO, STDOUT_FILENO) != 0) {
        return hv_err_set(err, HV_EINTERNAL, "the worker could not report its result");
    }
    return HV_OK;
}
