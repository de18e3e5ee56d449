/** `hetviz sweep run`: the cells of a shard that have no result yet, on all cores. */
#include "ui/cli/cmd_sweep.h"
#include "ui/cli/sweep/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scripting/host/jail.h"
#include "scripting/worker/run.h"
#include "solver/base/units.h"
#include "solver/sweep/shard_file.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/print.h"
#include "ui/process/crew.h"

/** Seconds after its time limit in which a cell may still return its best plan. */
static const double grace_s = 2;
/** Seconds between two lines of progress. */
static const double progress_s = 0.2;

struct shard {
    const struct hv_sweep *s;
    size_t k, n;
    bool *has; /**< [cells] */
    size_t at; /**< next cell to look at */
    size_t n_todo, n_done, n_failed;
    double start_s, end_s, shown_s; /**< end: HV_UNKNOWN without time limit */
    bool progress;
    struct hv_shard_file *file;
    /* in the children */
    struct hv_sweep_inputs inputs;
    struct hv_plugins plugins;
};

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- in a child ------------------------------------------------------------------------------ */

static void begin(void *ctx)
{
    (void)ctx;
    hv_lock_process(0); /* time is limited from outside, cell by cell */
}

static enum hv_sweep_state state_of(enum hv_status st, const struct hv_run_result *r)
{
    if (st == HV_OK || (st == HV_ENO && r->plan != NULL)) {
        return HV_SWEEP_PLAN;
    }
    if (st == HV_ENO) {
        return r->applies ? HV_SWEEP_NO_PLAN : HV_SWEEP_NOT_FOR_IT;
    }
    return st == HV_ESTOPPED ? HV_SWEEP_STOPPED : HV_SWEEP_FAILED;
}

static void run_cell(void *ctx, size_t i, struct hv_str *answer)
{
    struct shard *shard = ctx;
    const struct hv_sweep_cell *cell = &shard->s->cells[i];
    struct hv_run_result result = {0};
    struct hv_err why = {0};
    json_t *options = hv_sweep_options(shard->s, cell);
    enum hv_status st = hv_sweep_inputs_of(&shard->inputs, shard->s, cell, &why);

    if (st == HV_OK) {
        struct hv_run_request r = {.inputs = &shard->inputs.in,
                                   .plugins = &shard->plugins,
                                   .strategy = shard->s->strategies[cell->strategy],
                                   .options = options,
                                   .seed = shard->s->seed,
                                   .budget = shard->s->budget,
                                   .time_limit_s = shard->s->time_limit_s};
        st = hv_run_strategy_here(&r, &result, &why);
    }
    char text[sizeof why.text + sizeof why.file + 64];
    struct hv_sweep_result out = {.state = state_of(st, &result),
                                  .reason = st == HV_OK ? NULL
                                            : why.text[0] != '\0'
                                                ? hv_err_format(&why, text, sizeof text)
                                                : hv_str_cstr(&result.reason),
                                  .plan = result.plan};
    hv_sweep_line(shard->s, cell, &out, answer);
    hv_run_result_free(&result);
    json_decref(options);
}

/* ---- in the parent --------------------------------------------------------------------------- */

static bool next(void *ctx, size_t *task)
{
    struct shard *shard = ctx;
    while (shard->at < shard->s->n_cells &&
           (shard->at % shard->n + 1 != shard->k || shard->has[shard->at])) {
        shard->at++;
    }
    *task = shard->at;
    return shard->at++ < shard->s->n_cells;
}

static void show_progress(struct shard *shard, bool last)
{
    double now = now_s(), passed_s = now - shard->start_s;
    char left[HV_FMT_CAP];
    if (!shard->progress || (!last && now - shard->shown_s < progress_s)) {
        return;
    }
    shard->shown_s = now;
    double rate = passed_s > 0 ? (double)shard->n_done / passed_s : 0;
    double rest_s = rate > 0 ? (double)(shard->n_todo - shard->n_done) / rate : HV_UNKNOWN;
    (void)fprintf(stderr, "\r%zu of %zu cells, %zu failed, %.0f per second, %s left   %s",
                  shard->n_done, shard->n_todo, shard->n_failed, rate,
                  hv_fmt_seconds(left, sizeof left, rest_s), last ? "\n" : "");
}

static enum hv_status keep(void *ctx, size_t i, enum hv_crew_end end, const struct hv_str *answer,
                           struct hv_err *err)
{
    struct shard *shard = ctx;
    struct hv_str line = {0};
    struct hv_sweep_result failed = {
        .state = HV_SWEEP_FAILED,
        .reason = end == HV_CREW_LATE ? "it did not end at its time limit" : "its process crashed"};
    if (end != HV_CREW_DONE) {
        hv_sweep_line(shard->s, &shard->s->cells[i], &failed, &line);
    }
    const struct hv_str *kept = end == HV_CREW_DONE ? answer : &line;
    shard->n_done++;
    shard->n_failed += strstr(hv_str_cstr(kept), "\"state\": \"failed\"") != NULL;
    enum hv_status st = hv_shard_append(shard->file, kept, err);
    hv_str_free(&line);
    show_progress(shard, false);
    return st;
}

static bool is_over(void *ctx)
{
    const struct shard *shard = ctx;
    return hv_interrupted(NULL) || (hv_known(shard->end_s) && now_s() > shard->end_s);
}

/** "3/10". */
static enum hv_status read_shard(const struct hv_args *args, struct shard *shard,
                                 struct hv_err *err)
{
    const char *text = hv_args_text(args, "shard", "1/1");
    char *slash = NULL, *end = NULL;
    unsigned long k = strtoul(text, &slash, 10), n = 0;
    if (text[0] >= '0' && text[0] <= '9' && *slash == '/' && slash[1] >= '0' && slash[1] <= '9') {
        n = strtoul(slash + 1, &end, 10);
    }
    if (end == NULL || *end != '\0' || k < 1 || k > n) {
        return hv_err_set(err, HV_EUSAGE,
                          "sweep run: --shard: expected K/N with K from 1 to N, found \"%.80s\"",
                          text);
    }
    shard->k = k;
    shard->n = n;
    return HV_OK;
}

/** Reads the specification given, and keeps it in the folder; or the one in the folder. */
static enum hv_status read_spec(struct hv_sweep *s, const char *path, const char *folder,
                                struct hv_err *err)
{
    struct hv_str own = {0};
    hv_cli_sweep_path(folder, HV_SWEEP_SPEC, &own);
    enum hv_status st = hv_sweep_read(s, path != NULL ? path : hv_str_cstr(&own), err);
    if (st == HV_OK && path != NULL) {
        st = hv_cli_sweep_check(s, err);
        st = st == HV_OK ? hv_cli_sweep_keep(s, folder, err) : st;
    }
    hv_str_free(&own);
    return st;
}

static enum hv_status run_all(struct shard *shard, const struct hv_args *args, struct hv_err *err)
{
    struct hv_crew crew = {.n_workers = (size_t)hv_args_number(args, "jobs", 0),
                           .limit_s =
                               shard->s->time_limit_s > 0 ? shard->s->time_limit_s + grace_s : 0,
                           .next = next,
                           .begin = begin,
                           .work = run_cell,
                           .done = keep,
                           .stop = is_over,
                           .ctx = shard};
    for (size_t i = 0; i < shard->s->n_cells; i++) {
        shard->n_todo += i % shard->n + 1 == shard->k && !shard->has[i];
    }
    shard->start_s = now_s();
    shard->end_s = hv_args_has(args, "time-limit")
                       ? shard->start_s + hv_args_number(args, "time-limit", 0)
                       : HV_UNKNOWN;
    hv_interrupt_catch();
    enum hv_status st = hv_crew_run(&crew, err);
    show_progress(shard, true);
    return st;
}

/** What the shard has, in a line. */
static enum hv_status report(const struct shard *shard, const char *folder, struct hv_err *err)
{
    struct hv_str out = {0};
    hv_text_addf(&out, "%s: shard %zu of %zu: %zu cell%s run now, %zu failed\n", folder, shard->k,
                 shard->n, shard->n_done, shard->n_done == 1 ? "" : "s", shard->n_failed);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_sweep_run(struct hv_args *args, struct hv_err *err)
{
    struct hv_sweep s = {0};
    struct shard shard = {.s = &s,
                          .progress = isatty(STDERR_FILENO) && !hv_args_has(args, "quiet")};
    const char *folder = hv_args_text(args, "out", NULL);

    if (folder == NULL) {
        return hv_err_set(err, HV_EUSAGE, "sweep run: expected --out DIR, the folder of results");
    }
    enum hv_status st = read_shard(args, &shard, err);
    st = st == HV_OK ? read_spec(&s, hv_cli_sweep_file(args), folder, err) : st;
    st = st == HV_OK ? hv_plugins_read(&shard.plugins, err) : st;
    st = st == HV_OK ? hv_sweep_inputs_begin(&shard.inputs, err) : st;
    if (st == HV_OK) {
        shard.has = hv_xcalloc(s.n_cells, sizeof *shard.has);
        st = hv_shard_open(&shard.file, &s, folder, shard.k, shard.n, hv_args_has(args, "failed"),
                           shard.has, err);
    }
    if (st == HV_OK) {
        st = run_all(&shard, args, err);
        struct hv_err unheard = {0}; /* the first reason stays */
        enum hv_status closed = hv_shard_close(shard.file, st == HV_OK ? err : &unheard);
        st = st == HV_OK ? closed : st;
    }
    if (st == HV_OK && !hv_args_has(args, "quiet")) {
        st = report(&shard, folder, err);
    }
    if (st == HV_ESTOPPED) {
        (void)hv_err_set(err, st, "sweep: %zu cell%s left; the same command goes on",
                         shard.n_todo - shard.n_done, shard.n_todo - shard.n_done == 1 ? "" : "s");
    }
    free(shard.has);
    hv_sweep_inputs_free(&shard.inputs);
    hv_plugins_free(&shard.plugins);
    hv_sweep_free(&s);
    return st;
}
