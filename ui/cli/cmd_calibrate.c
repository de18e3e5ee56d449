/** `hetviz calibrate`: logs of the user's runs and their plans or launch arguments → numbers of the
 * calibration. */
#include <math.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/own/cluster/calibration_file.h"
#include "solver/io/own/docs.h"
#include "solver/io/runs/run_log.h"
#include "solver/validate/own_runs.h"
#include "ui/cli/calibrate/launched.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"

/** A run this many times slower or faster than its plan is predicted did not follow that plan. */
#define MOST_TIMES 3.0

/** A log with its plan. */
struct run {
    const char *log, *plan;
    struct hv_run_log times;
    struct hv_plan_doc doc;
    struct hv_inputs inputs;
};

/** Everything of one call. Owner: free_work. */
struct work {
    struct hv_args *args;
    struct hv_device_catalogue shipped;
    struct hv_arena arena;
    const char **logs, **plans;
    size_t n_logs, n_plans;
    struct run *runs; /**< n_logs */
    struct hv_own_run *fitted;
    struct hv_own_fit fit;
    const char **files; /**< written */
    size_t n_files;
};

static void free_work(struct work *w)
{
    for (size_t i = 0; w->runs != NULL && i < w->n_logs; i++) {
        hv_plan_doc_free(&w->runs[i].doc);
        hv_inputs_free(&w->runs[i].inputs);
    }
    hv_device_catalogue_free(&w->shipped);
    hv_arena_free(&w->arena);
}

/* ---- input ----------------------------------------------------------------------------------- */

/** True for a file that holds a plan: `--plan A B C` of a shell's pattern gives the option its
 * first file and leaves the others among the arguments. */
static bool is_plan(const char *path)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    bool plan = false;
    if (hv_file_read(path, &text, NULL) == HV_OK && text.n > 0 && text.p[0] == '{' &&
        hv_json_parse(&json, text.p, text.n, path, NULL) == HV_OK) {
        const char *format = json_string_value(json_object_get(json.root, "format"));
        plan = format != NULL && strcmp(format, "hetviz.plan/1") == 0;
        hv_json_free(&json);
    }
    hv_str_free(&text);
    return plan;
}

/** Sorts the arguments into logs and plans. */
static enum hv_status list_files(struct work *w, struct hv_err *err)
{
    size_t n_given = 0, n = w->args->n_positional;
    const char **given = hv_args_all(w->args, "plan", &n_given);
    w->logs = hv_arena_new(&w->arena, const char *, n + 1);
    w->plans = hv_arena_new(&w->arena, const char *, n + n_given + 1);
    for (size_t i = 0; i < n_given; i++) {
        w->plans[w->n_plans++] = given[i];
    }
    for (size_t i = 0; i < n; i++) {
        const char *path = w->args->positional[i];
        if (strcmp(path, "-") != 0 && is_plan(path)) {
            w->plans[w->n_plans++] = path;
        } else {
            w->logs[w->n_logs++] = path;
        }
    }
    if (w->n_logs == 0) {
        return hv_err_set(err, HV_EUSAGE,
                          "calibrate: all files are plans; give the logs of the runs");
    }
    if (w->n_plans != 1 && w->n_plans != w->n_logs) {
        return hv_err_set(
            err, HV_EUSAGE,
            "calibrate: found %zu log(s) and %zu plan(s); give one plan for all logs, or one plan "
            "for each in the same order",
            w->n_logs, w->n_plans);
    }
    return HV_OK;
}

/** Gives the cluster of a run the shipped numbers, from which every fit starts. */
static void start_from_shipped(struct work *w, struct hv_cluster *c)
{
    for (size_t k = 0; k < c->n_kinds; k++) {
        if (hv_device_calibration(c->kinds[k]) != hv_calibration_plain()) {
            hv_cluster_calibrate_kind(c, k, hv_calibration_find(&w->shipped, c->kinds[k]->name));
        }
    }
}

/** Devices that a plan uses. */
static double count_devices(const struct hv_plan *p, size_t n_devices, struct hv_arena *arena)
{
    struct hv_arena_mark mark = hv_arena_mark(arena);
    bool *used = hv_arena_new(arena, bool, n_devices + 1);
    double n = 0;
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t s = 0; s < p->replicas[r].n_stages; s++) {
            const struct hv_stage *stage = &p->replicas[r].stages[s];
            for (size_t d = 0; d < stage->n_devices; d++) {
                n += !used[stage->devices[d]];
                used[stage->devices[d]] = true;
            }
        }
    }
    hv_arena_rewind(arena, mark);
    return n;
}

static enum hv_status read_run(struct work *w, size_t i, struct hv_err *err)
{
    struct run *r = &w->runs[i];
    r->log = w->logs[i];
    r->plan = w->plans[w->n_plans == 1 ? 0 : i];
    const struct hv_cli_named named = {hv_args_text(w->args, "cluster", NULL),
                                       hv_args_text(w->args, "model", NULL),
                                       hv_args_text(w->args, "job", NULL)};
    enum hv_status st = hv_cli_is_launch(r->plan)
                            ? hv_cli_read_launch(r->plan, &named, &r->doc, &r->inputs, err)
                            : hv_plan_doc_read(&r->doc, r->plan, named.cluster, named.model,
                                               named.job, &r->inputs, err);
    st = st ? st : hv_run_log_read(r->log, &w->shipped, &r->times, err);
    if (st != HV_OK) {
        return st;
    }
    const struct hv_job *job = &r->inputs.job.job;
    struct hv_cluster *cluster = r->inputs.cluster.cluster;
    double expected = (double)job->global_batch;
    double batch = hv_known(r->times.global_batch) ? r->times.global_batch : expected;
    if (batch != expected) {
        return hv_err_set(
            err, HV_EINPUT,
            "%s: the run had a global batch of %.0f, the job of %s has %.0f; pair the "
            "log with the plan that ran",
            r->log, batch, r->plan, expected);
    }
    if (r->times.n < 2) {
        return hv_err_set(
            err, HV_EINPUT,
            "%s: found one time of an iteration, which holds compilation and first "
            "allocations; expected at least two: let the run go on for some iterations",
            r->log);
    }
    start_from_shipped(w, cluster);
    double devices = count_devices(r->doc.plan, cluster->n_devices, &w->arena);
    w->fitted[i] = (struct hv_own_run){
        r->log,
        cluster,
        r->inputs.model.model,
        job,
        r->doc.plan,
        hv_run_log_iteration_s(&r->times, batch, (double)job->sequence, devices)};
    return HV_OK;
}

static enum hv_status read_runs(struct work *w, struct hv_err *err)
{
    enum hv_status st = list_files(w, err);
    st = st ? st : hv_device_catalogue_read_shipped(&w->shipped, err);
    if (st != HV_OK) {
        return st;
    }
    w->runs = hv_arena_new(&w->arena, struct run, w->n_logs);
    w->fitted = hv_arena_new(&w->arena, struct hv_own_run, w->n_logs);
    for (size_t i = 0; st == HV_OK && i < w->n_logs; i++) {
        st = read_run(w, i, err);
    }
    return st;
}

/** Refuses runs that are far from what their plans are predicted. */
static enum hv_status check_pairs(const struct work *w, struct hv_err *err)
{
    char measured[HV_FMT_CAP], predicted[HV_FMT_CAP];
    for (size_t i = 0; i < w->n_logs; i++) {
        double measured_s = w->fitted[i].measured_s, times = measured_s / w->fit.before_s[i];
        if (!(times <= MOST_TIMES && times >= 1 / MOST_TIMES)) {
            return hv_err_set(err, HV_EINPUT,
                              "%s: an iteration took %s, the plan %s is predicted to take %s; "
                              "nothing was written. "
                              "Pair the log with the plan that ran, on the cluster that it ran on",
                              w->runs[i].log, hv_fmt_seconds(measured, sizeof measured, measured_s),
                              w->runs[i].plan,
                              hv_fmt_seconds(predicted, sizeof predicted, w->fit.before_s[i]));
        }
    }
    return HV_OK;
}

/* ---- the calibration that is written ----------------------------------------------------------
 */

/** Words for explanations: the runs behind the numbers. */
static const char *source_of(struct work *w, const struct hv_own_class *c)
{
    struct hv_str text = {0};
    hv_text_addf(&text, "calibrated on %zu run%s of yours:", w->n_logs, w->n_logs == 1 ? "" : "s");
    for (size_t i = 0; i < w->n_logs; i++) {
        const char *slash = strrchr(w->logs[i], '/');
        hv_text_addf(&text, "%s %s", i > 0 ? "," : "", slash != NULL ? slash + 1 : w->logs[i]);
    }
    hv_text_addf(&text, "; other numbers as of %s", c->fit.name);
    const char *kept = hv_arena_strdup(&w->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return kept;
}

/** A class of these numbers for some kinds of devices. */
static struct hv_calibration class_for(struct work *w, const struct hv_own_class *c,
                                       const char *kinds)
{
    struct hv_calibration out = c->fit;
    out.devices = kinds;
    out.source = source_of(w, c);
    out.like = NULL;
    return out;
}

static enum hv_status write_classes(struct work *w, const struct hv_calibration *classes, size_t n,
                                    const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    json_t *tree = hv_calibration_tree(classes, n);
    hv_json_write(&text, tree, true);
    json_decref(tree);
    enum hv_status st = hv_file_write(path, hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    if (st == HV_OK) {
        w->files[w->n_files++] = path;
    }
    return st;
}

/** One file per kind in the user's folder, so that a later calibration of the kind takes the place
 * of this one. */
static enum hv_status write_own(struct work *w, const struct hv_own_class *c, const char *folder,
                                struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (const char *at = c->kinds; st == HV_OK && *at != '\0';) {
        size_t n = strcspn(at, ",");
        char *kind = hv_arena_printf(&w->arena, "%.*s", (int)n, at);
        struct hv_calibration one = class_for(w, c, kind);
        for (char *s = kind; *s != '\0'; s++) {
            *s = *s == '/' ? '_' : *s;
        }
        st = write_classes(w, &one, 1, hv_arena_printf(&w->arena, "%s/%s.json", folder, kind), err);
        at += n + (at[n] == ',');
    }
    return st;
}

static size_t count_kinds(const struct work *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->fit.n_classes; i++) {
        n += 1;
        for (const char *s = w->fit.classes[i].kinds; *s != '\0'; s++) {
            n += *s == ',';
        }
    }
    return n;
}

static enum hv_status write_files(struct work *w, struct hv_err *err)
{
    const char *out = hv_args_text(w->args, "out", NULL);
    size_t n = w->fit.n_classes;
    w->files = hv_arena_new(&w->arena, const char *, count_kinds(w) + 1);
    if (out != NULL) {
        struct hv_calibration *all = hv_arena_new(&w->arena, struct hv_calibration, n);
        for (size_t i = 0; i < n; i++) {
            all[i] = class_for(w, &w->fit.classes[i], w->fit.classes[i].kinds);
        }
        return write_classes(w, all, n, out, err);
    }
    struct hv_str folder = {0};
    enum hv_status st = hv_user_dir(&folder, HV_DIR_DATA, err);
    if (st == HV_OK) {
        hv_str_adds(&folder, "/" HV_CALIBRATIONS_FOLDER);
        st = hv_file_mkdirs(hv_str_cstr(&folder), err);
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        st = write_own(w, &w->fit.classes[i], hv_str_cstr(&folder), err);
    }
    hv_str_free(&folder);
    return st;
}

/* ---- report ---------------------------------------------------------------------------------- */

/** "1.23 s (+4.2%)": a prediction beside the measured time. */
static const char *beside(char *buf, size_t cap, double predicted_s, double measured_s)
{
    char s[HV_FMT_CAP];
    if (!hv_known(predicted_s)) {
        (void)snprintf(buf, cap, "–");
        return buf;
    }
    (void)snprintf(buf, cap, "%s (%+.1f%%)", hv_fmt_seconds(s, sizeof s, predicted_s),
                   100 * (predicted_s / measured_s - 1));
    return buf;
}

static void add_runs(const struct work *w, struct hv_str *text)
{
    char s[HV_FMT_CAP], a[64], b[64], c[64];
    hv_text_addf(text, "%-28s %-16s %8s %10s  %-18s %-18s %s\n", "RUN", "TRAINER", "REPORTS",
                 "MEASURED", "PREDICTED BEFORE", "AFTER", "BY THE OTHER RUNS");
    for (size_t i = 0; i < w->n_logs; i++) {
        const struct run *r = &w->runs[i];
        double measured_s = w->fitted[i].measured_s;
        hv_text_addf(text, "%-28.28s %-16s %8zu %10s  %-18s %-18s %s\n", r->log, r->times.trainer,
                     r->times.n, hv_fmt_seconds(s, sizeof s, measured_s),
                     beside(a, sizeof a, w->fit.before_s[i], measured_s),
                     beside(b, sizeof b, w->fit.after_s[i], measured_s),
                     beside(c, sizeof c, w->fit.without_s[i], measured_s));
    }
}

static void add_numbers(const struct work *w, struct hv_str *text)
{
    char before[HV_FMT_CAP], after[HV_FMT_CAP];
    if (w->fit.n_numbers == 0) {
        hv_text_addf(text, "\nThe runs agree with the shipped numbers: none of them is moved.\n");
    } else {
        hv_text_addf(text, "\nNumbers that these runs tell; all others stay as they were:\n");
    }
    for (size_t i = 0; i < w->fit.n_numbers; i++) {
        const struct hv_own_number *n = &w->fit.numbers[i];
        const struct hv_calibrated_row *row = &hv_calibrated_rows[n->number];
        hv_text_addf(text, "  %-12s %-14s %7s -> %-7s ± %.0f%%  %s\n",
                     w->fit.classes[n->class_index].fit.name, row->name,
                     hv_fmt_general(before, sizeof before, n->before, 3),
                     hv_fmt_general(after, sizeof after, n->after, 3), 100 * n->deviation,
                     row->doc);
    }
    hv_text_addf(text,
                 "\nA run of the same software is expected within ± %.0f%% of its prediction "
                 "(one standard deviation).\n",
                 100 * w->fit.noise);
}

static enum hv_status print_text(const struct work *w, struct hv_err *err)
{
    struct hv_str text = {0};
    add_runs(w, &text);
    add_numbers(w, &text);
    for (size_t i = 0; i < w->n_files; i++) {
        hv_str_adds(&text, i == 0 ? "\nWritten: " : "         ");
        hv_text_addf(&text, "%s\n", w->files[i]);
    }
    if (!hv_args_has(w->args, "out")) {
        hv_text_addf(&text, "Every command uses it from now on; to return to the shipped numbers, "
                            "remove the file.\n");
    }
    enum hv_status st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

static json_t *runs_json(const struct work *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->n_logs; i++) {
        const struct run *r = &w->runs[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "log", r->log,
                      "plan", r->plan, "trainer", r->times.trainer, "reports",
                      (json_int_t)r->times.n, "measured_s", hv_json_num(w->fitted[i].measured_s),
                      "deviation_frac", hv_json_num(r->times.deviation_frac), "allocated_bytes",
                      hv_json_num(r->times.allocated_bytes), "reserved_bytes",
                      hv_json_num(r->times.reserved_bytes), "before_s",
                      hv_json_num(w->fit.before_s[i]), "after_s", hv_json_num(w->fit.after_s[i]),
                      "by_others_s", hv_json_num(w->fit.without_s[i])));
    }
    return list;
}

static json_t *numbers_json(const struct work *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->fit.n_numbers; i++) {
        const struct hv_own_number *n = &w->fit.numbers[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:o, s:o, s:o}", "class", w->fit.classes[n->class_index].fit.name,
                      "name", hv_calibrated_rows[n->number].name, "before", hv_json_num(n->before),
                      "after", hv_json_num(n->after), "deviation", hv_json_num(n->deviation)));
    }
    return list;
}

static enum hv_status print_json(const struct work *w, struct hv_err *err)
{
    json_t *files = json_array();
    for (size_t i = 0; i < w->n_files; i++) {
        json_array_append_new(files, json_string(w->files[i]));
    }
    return hv_cli_print_json(json_pack("{s:o, s:o, s:o, s:o}", "runs", runs_json(w), "numbers",
                                       numbers_json(w), "noise_frac", hv_json_num(w->fit.noise),
                                       "files", files),
                             err);
}

enum hv_status hv_cli_calibrate(struct hv_args *args, struct hv_err *err)
{
    struct work w = {.args = args};
    enum hv_status st = read_runs(&w, err);
    st = st ? st : hv_own_runs_fit(w.fitted, w.n_logs, &w.arena, &w.fit, err);
    st = st ? st : check_pairs(&w, err);
    st = st ? st : write_files(&w, err);
    if (st == HV_OK) {
        st = hv_args_has(args, "json") ? print_json(&w, err) : print_text(&w, err);
    }
    free_work(&w);
    return st;
}
