/** `hetviz validate`: predicted against published measurements, row by row and per group. */
#if defined(__linux__)
#include <malloc.h>
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/export/scatter.h"
#include "solver/io/own/cluster/calibration_file.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/plan/write.h"
#include "solver/io/own/validation/validation_file.h"
#include "solver/validate/bands.h"
#include "solver/validate/fit.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"

/** Everything the command prints. Owner: free_job. */
struct job {
    struct hv_device_catalogue devices;
    struct hv_validation rows;
    struct hv_arena arena;
    struct hv_prediction *predicted;
    struct hv_prediction *shipped; /**< by the shipped calibration */
    double *half_band;             /**< per row, as a logarithm; HV_UNKNOWN: none */
    struct hv_validation_cover cover;
    struct hv_class_fit *fits; /**< one per class of the catalogue; NULL: nothing was fitted */
    double *baseline_s;
    struct hv_validation_report report;
};

static void free_job(struct job *j)
{
    hv_validation_free(&j->rows);
    hv_device_catalogue_free(&j->devices);
    hv_arena_free(&j->arena);
}

/** Fits the classes and replaces each prediction by one of a fit without the row's own source. With
 * --shipped: keeps the predictions, and fits only for --fit. */
static enum hv_status fit(const struct hv_args *args, struct job *j, struct hv_err *err)
{
    bool file = hv_args_has(args, "fit"), shipped = hv_args_has(args, "shipped");
    if (shipped && !file) {
        return HV_OK;
    }
    j->fits = hv_arena_new(&j->arena, struct hv_class_fit, j->devices.n_classes + 1);
    struct hv_fit_request what = {j->devices.classes, j->devices.n_classes, !shipped};
    enum hv_status st = hv_validation_fit(&j->rows, j->predicted, &what, &j->arena, j->fits, err);
    if (st != HV_OK || shipped) {
        return st;
    }
    return hv_validation_predict_left_out(&j->rows, j->fits, j->devices.n_classes, &j->arena,
                                          j->predicted, err);
}

/** Writes the classes as fitted on all rows; a class without rows stays as it is shipped. */
static enum hv_status write_fit(const struct hv_args *args, struct job *j, struct hv_err *err)
{
    size_t n = j->devices.n_classes;
    struct hv_calibration *all = hv_arena_new(&j->arena, struct hv_calibration, n + 1);
    struct hv_str text = {0};
    for (size_t i = 0; i < n; i++) {
        all[i] = j->fits[i].all;
        if (j->fits[i].n_rows == 0) {
            continue;
        }
        hv_validation_class_errors(&j->rows, j->predicted, j->shipped, all[i].name, all[i].error);
        hv_str_clear(&text);
        hv_text_addf(&text, "fitted by hetviz validate on %zu rows of", j->fits[i].n_rows);
        for (size_t s = 0; s < j->fits[i].n_sources; s++) {
            hv_text_addf(&text, "%s %s", s > 0 ? "," : "", j->fits[i].sources[s]);
        }
        all[i].source = hv_arena_strdup(&j->arena, hv_str_cstr(&text));
    }
    json_t *tree = hv_calibration_tree(all, n);
    hv_str_clear(&text);
    hv_json_write(&text, tree, true);
    json_decref(tree);
    enum hv_status st =
        hv_file_write(hv_args_text(args, "fit", "-"), hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    return st;
}

static enum hv_status run(const struct hv_args *args, struct job *j, struct hv_err *err)
{
    enum hv_status st;
    if ((st = hv_device_catalogue_read_shipped(&j->devices, err)) ||
        (st = hv_validation_read_folder(&j->rows, hv_args_text(args, "data", NULL), &j->devices,
                                        err))) {
        return st;
    }
    size_t n = j->rows.n_rows;
    j->predicted = hv_arena_new(&j->arena, struct hv_prediction, n + 1);
    j->baseline_s = hv_arena_new(&j->arena, double, n + 1);
    j->half_band = hv_arena_new(&j->arena, double, n + 1);
    hv_validation_predict_all(&j->rows, &j->arena, j->predicted);
    j->shipped = hv_arena_copy(&j->arena, j->predicted, n, sizeof *j->predicted);
    if ((st = fit(args, j, err))) {
        return st;
    }
    hv_validation_bands(&j->rows, j->predicted, j->half_band, &j->cover);
    hv_validation_baseline(&j->rows, j->predicted, j->baseline_s);
    hv_validation_sum_up(&j->rows, j->predicted, j->baseline_s, &j->arena, &j->report);
    return HV_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

/** "+4.2%", signed; "–" when unknown. */
static const char *signed_percent(char *buf, size_t cap, double frac)
{
    if (!hv_known(frac)) {
        return hv_fmt_percent(buf, cap, frac);
    }
    (void)snprintf(buf, cap, "%+.1f%%", 100 * frac);
    return buf;
}

/** Names of the recomputed activations, in the arena. */
static const char *recompute_word(struct hv_arena *arena, unsigned mask)
{
    struct hv_str text = {0};
    hv_recompute_format(mask, &text);
    const char *word = hv_arena_strdup(arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return word;
}

static void add_row(struct job *j, size_t i, struct hv_str *out)
{
    const struct hv_validation_row *r = &j->rows.rows[i];
    const struct hv_prediction *p = &j->predicted[i];
    double baseline_s = j->baseline_s[i];
    char m[HV_FMT_CAP], t[HV_FMT_CAP], e[HV_FMT_CAP], b[HV_FMT_CAP], mem[HV_FMT_CAP],
        peak[HV_FMT_CAP];
    hv_text_addf(out, "%-34.34s %9s %9s %7s %7s", r->id, hv_fmt_seconds(m, sizeof m, r->measured_s),
                 hv_fmt_seconds(t, sizeof t, p->iteration_s),
                 signed_percent(e, sizeof e, p->iteration_s / r->measured_s - 1),
                 signed_percent(b, sizeof b, baseline_s / r->measured_s - 1));
    if (hv_known(r->measured_bytes) || r->oom) {
        hv_text_addf(out, " %9s %9s",
                     r->oom ? "OOM" : hv_fmt_bytes(mem, sizeof mem, r->measured_bytes),
                     hv_fmt_bytes(peak, sizeof peak, p->peak_bytes));
    }
    if (p->by == HV_BY_RELATIVE || p->by == HV_BY_GENERIC) {
        hv_str_adds(out, p->by == HV_BY_GENERIC ? "  generic fit" : "  fit of a relative");
    }
    if (r->recompute == HV_ROW_RECOMPUTE_UNKNOWN) {
        hv_text_addf(out, "  recompute not stated, %s assumed",
                     recompute_word(&j->arena, p->recompute));
    }
    if (r->oom && p->fits) {
        hv_str_adds(out, "  predicted to fit");
    }
    if (p->failure != NULL) {
        hv_text_addf(out, "  %s", p->failure);
    }
    hv_str_addc(out, '\n');
}

static void add_rows(struct job *j, struct hv_str *out)
{
    const char *source = NULL;
    for (size_t i = 0; i < j->rows.n_rows; i++) {
        const struct hv_validation_row *r = &j->rows.rows[i];
        if (source == NULL || strcmp(source, r->source) != 0) {
            source = r->source;
            hv_str_adds(out, i > 0 ? "\n" : "");
            hv_text_addf(out, "%s\n%-34s %9s %9s %7s %7s %9s %9s\n", source, "row", "measured",
                         "predicted", "error", "basel.", "memory", "predicted");
        }
        add_row(j, i, out);
    }
}

static void add_group(const struct hv_validation_group *g, struct hv_str *out)
{
    char mape[HV_FMT_CAP], bias[HV_FMT_CAP], rho[HV_FMT_CAP], base[HV_FMT_CAP], rival[HV_FMT_CAP];
    hv_text_addf(out, "%-26.26s ", g->name);
    if (g->device != NULL) {
        hv_text_addf(out, "%-18.18s %-4s %-5s ", g->device, g->low_bits ? "fp8" : "16",
                     g->experts ? "moe" : "dense");
    }
    hv_text_addf(out, "%4zu %7s %7s %6s %7s %7s\n", g->time.n,
                 hv_fmt_percent(mape, sizeof mape, g->time.mape_frac),
                 signed_percent(bias, sizeof bias, g->time.bias_frac),
                 hv_fmt_fixed(rho, sizeof rho, g->time.spearman, 2),
                 hv_fmt_percent(base, sizeof base, g->baseline.mape_frac),
                 hv_fmt_percent(rival, sizeof rival, g->rival.mape_frac));
}

static void add_groups(const struct hv_validation_report *r, struct hv_str *out)
{
    hv_text_addf(out, "\n%-26s %-18s %-4s %-5s %4s %7s %7s %6s %7s %7s\n", "source", "device",
                 "bits", "model", "rows", "MAPE", "bias", "rank", "basel.", "Calculon");
    for (size_t i = 0; i < r->n_groups; i++) {
        add_group(&r->groups[i], out);
    }
    hv_text_addf(out, "\n%-26s %4s %7s %7s %6s %7s %7s\n", "comparison", "rows", "MAPE", "bias",
                 "rank", "basel.", "Calculon");
    for (size_t i = 0; i < r->n_tables; i++) {
        add_group(&r->tables[i], out);
    }
    hv_text_addf(out, "\n%-26s %4s %7s %7s %6s\n", "peak memory", "rows", "MAPE", "bias", "rank");
    for (size_t i = 0; i < r->n_memory; i++) {
        add_group(&r->memory[i], out);
    }
}

/** The fitted numbers of every class with one standard deviation. */
static void add_numbers(const struct job *j, struct hv_str *out)
{
    char a[HV_FMT_CAP];
    for (size_t i = 0; i < j->devices.n_classes; i++) {
        const struct hv_class_fit *f = &j->fits[i];
        if (f->n_rows == 0) {
            continue;
        }
        hv_text_addf(out, "\n%s: ", f->all.name);
        for (int k = 0; k < HV_CALIBRATED_N; k++) {
            hv_text_addf(out, "%s%s %.3g +-%s", k > 0 ? ", " : "", hv_calibrated_rows[k].name,
                         f->all.v[k], hv_fmt_percent(a, sizeof a, f->uncertainty[k]));
        }
        hv_str_adds(out, "\n");
    }
    hv_str_adds(out, "\nafter +-: one standard deviation; a number that no row tells keeps that of "
                     "its prior\n");
}

/** Per class, the data of the fit and the remaining error. */
static void add_fits(const struct job *j, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    if (j->fits == NULL) {
        hv_str_adds(out, "\npredicted with the shipped calibration, which may have been fitted on "
                         "these rows\n");
        return;
    }
    hv_text_addf(out, "\n%-12s %5s %8s %9s %9s %6s\n", "fitted class", "rows", "sources", "shipped",
                 "fitted", "calls");
    for (size_t i = 0; i < j->devices.n_classes; i++) {
        const struct hv_class_fit *f = &j->fits[i];
        hv_text_addf(out, "%-12.12s %5zu %8zu %9s %9s %6zu%s\n", f->all.name, f->n_rows,
                     f->n_sources, hv_fmt_percent(a, sizeof a, f->error_before),
                     hv_fmt_percent(b, sizeof b, f->error_after), f->n_calls,
                     f->n_sources != 1     ? ""
                     : f->all.like == NULL ? "  one source only: predicted by the generic fit"
                                           : "  one source only: predicted by a related class");
    }
    hv_str_adds(out, "errors in this table are mean |log(predicted / measured)| over sources; "
                     "every row above is predicted by a fit without its source\n");
    add_numbers(j, out);
}

/** Bands: their cover, and the half bands of every class. */
static void add_bands(const struct job *j, struct hv_str *out)
{
    const struct hv_validation_cover *c = &j->cover;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], d[HV_FMT_CAP];
    if (c->n == 0) {
        return;
    }
    hv_text_addf(out,
                 "\nbands: the 80%% band holds %zu of %zu left-out rows (%s); %zu of %zu where "
                 "other sources measured the class (%s); mean half width %s\n",
                 c->n_held, c->n, hv_fmt_percent(a, sizeof a, (double)c->n_held / (double)c->n),
                 c->n_own_held, c->n_own,
                 hv_fmt_percent(b, sizeof b, (double)c->n_own_held / (double)c->n_own),
                 hv_fmt_percent(d, sizeof d, exp(c->mean_half) - 1));
    hv_text_addf(out, "%-14s", "half band");
    for (int e = 0; e < HV_ERROR_N; e++) {
        hv_text_addf(out, " %14s", hv_error_name((enum hv_error_of)e));
    }
    for (size_t i = 0; i <= j->devices.n_classes; i++) {
        bool last = i == j->devices.n_classes;
        double half[HV_ERROR_N];
        if (!last && j->fits[i].n_rows == 0) {
            continue;
        }
        memcpy(half, last ? hv_calibration_typical()->error : j->fits[i].all.error, sizeof half);
        hv_validation_class_errors(&j->rows, j->predicted, j->shipped,
                                   last ? NULL : j->fits[i].all.name, half);
        hv_text_addf(out, "\n%-14.14s", last ? "no class" : j->fits[i].all.name);
        for (int e = 0; e < HV_ERROR_N; e++) {
            hv_text_addf(out, " %14s", hv_fmt_percent(a, sizeof a, exp(half[e]) - 1));
        }
    }
    hv_str_adds(out, "\nwithout the part of exposed exchange; rows of a source have no part in "
                     "its bands\n");
}

static void add_summary(const struct job *j, struct hv_str *out)
{
    const struct hv_validation_report *r = &j->report;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], d[HV_FMT_CAP];
    hv_text_addf(out, "\nrows %zu of %zu predicted", r->n_predicted, r->n_rows);
    for (size_t i = 0; i < j->rows.n_skipped; i++) {
        hv_text_addf(out, "%s %zu %s", i == 0 ? "; left out:" : ",", j->rows.skipped[i].n,
                     j->rows.skipped[i].why);
    }
    hv_text_addf(out,
                 "\nmean of group MAPEs: dense 16 bits %s, dense fp8 %s, mixtures of experts "
                 "%s\npeak memory %s; %zu of %zu out-of-memory runs predicted to fit\n",
                 hv_fmt_percent(a, sizeof a, r->dense16), hv_fmt_percent(b, sizeof b, r->dense8),
                 hv_fmt_percent(c, sizeof c, r->moe), hv_fmt_percent(d, sizeof d, r->memory_mape),
                 r->n_oom_called_fitting, r->n_oom);
    if (j->fits != NULL) {
        hv_text_addf(out, "only device classes with a second source: %s, %s, %s\n",
                     hv_fmt_percent(a, sizeof a, r->own_dense16),
                     hv_fmt_percent(b, sizeof b, r->own_dense8),
                     hv_fmt_percent(c, sizeof c, r->own_moe));
    }
}

/* ---- picture --------------------------------------------------------------------------------- */

/** Number of the row's source in `names`, added where it is new. */
static size_t series_of(const char *source, const char **names, size_t *n)
{
    size_t i = 0;
    while (i < *n && strcmp(names[i], source) != 0) {
        i++;
    }
    if (i == *n) {
        names[(*n)++] = source;
    }
    return i;
}

/** Points of all timed rows with the text a pointer on them shows. */
static void add_points(struct job *j, struct hv_scatter_point *points, const char **names,
                       struct hv_scatter *s)
{
    char m[HV_FMT_CAP], p[HV_FMT_CAP], e[HV_FMT_CAP];
    for (size_t i = 0; i < j->rows.n_rows; i++) {
        const struct hv_validation_row *r = &j->rows.rows[i];
        double predicted = j->predicted[i].iteration_s;
        if (!hv_known(r->measured_s) || !hv_known(predicted)) {
            continue;
        }
        const char *tip = hv_arena_printf(
            &j->arena, "%s on %s: measured %s, predicted %s (%s)", r->id, r->device,
            hv_fmt_seconds(m, sizeof m, r->measured_s), hv_fmt_seconds(p, sizeof p, predicted),
            signed_percent(e, sizeof e, predicted / r->measured_s - 1));
        size_t series = series_of(r->source, names, &s->n_series);
        points[s->n_points++] = (struct hv_scatter_point){r->measured_s, predicted, series, tip};
    }
}

static enum hv_status write_svg(const struct hv_args *args, struct job *j, struct hv_err *err)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_validation_report *r = &j->report;
    struct hv_scatter_point *points =
        hv_arena_new(&j->arena, struct hv_scatter_point, j->rows.n_rows + 1);
    const char **names = hv_arena_new(&j->arena, const char *, j->rows.n_rows + 1);
    struct hv_scatter s = {.title = "Iteration time: predicted against measured",
                           .x_label = "measured, seconds",
                           .y_label = "predicted, seconds",
                           .series = names,
                           .points = points};
    s.subtitle = hv_arena_printf(
        &j->arena,
        "mean of group MAPEs: dense 16 bits %s, dense fp8 %s, mixtures of experts %s; %s",
        hv_fmt_percent(a, sizeof a, r->dense16), hv_fmt_percent(b, sizeof b, r->dense8),
        hv_fmt_percent(c, sizeof c, r->moe),
        j->fits != NULL ? "each source left out of the fit that predicts it"
                        : "shipped calibration");
    add_points(j, points, names, &s);
    struct hv_str out = {0};
    hv_scatter_svg(&s, &out);
    enum hv_status st =
        hv_file_write(hv_args_text(args, "svg", "-"), hv_str_cstr(&out), out.n, err);
    hv_str_free(&out);
    return st;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *row_json(struct job *j, size_t i)
{
    const struct hv_validation_row *r = &j->rows.rows[i];
    const struct hv_prediction *p = &j->predicted[i];
    double baseline_s = j->baseline_s[i];
    json_t *o = json_pack("{s:s, s:s, s:s}", "id", r->id, "source", r->source, "device", r->device);
    static const char *const by[] = {"shipped", "held_out", "left_out", "relative", "generic"};
    json_object_set_new(o, "fit", json_string(by[p->by]));
    json_object_set_new(o, "precision", json_string(hv_precision_name(r->job.precision)));
    json_object_set_new(o, "measured_s", hv_json_num(r->measured_s));
    json_object_set_new(o, "predicted_s", hv_json_num(p->iteration_s));
    json_object_set_new(o, "error_frac", hv_json_num(p->iteration_s / r->measured_s - 1));
    if (hv_known(j->half_band[i])) {
        double times = exp(j->half_band[i]);
        json_object_set_new(o, "band",
                            json_pack("{s:o, s:o}", "low_s", hv_json_num(p->iteration_s / times),
                                      "high_s", hv_json_num(p->iteration_s * times)));
    }
    json_object_set_new(o, "baseline_s", hv_json_num(baseline_s));
    json_object_set_new(o, "calculon_s", hv_json_num(r->rival_s));
    json_object_set_new(o, "measured_memory_GiB", hv_json_num(r->measured_bytes / HV_GIB));
    json_object_set_new(o, "predicted_memory_GiB", hv_json_num(p->peak_bytes / HV_GIB));
    json_object_set_new(o, "fits", json_boolean(p->fits));
    json_object_set_new(o, "oom", json_boolean(r->oom));
    json_object_set_new(o, "recompute", json_string(recompute_word(&j->arena, p->recompute)));
    json_object_set_new(o, "recompute_stated",
                        json_boolean(r->recompute == HV_ROW_RECOMPUTE_STATED));
    if (p->failure != NULL) {
        json_object_set_new(o, "failure", json_string(p->failure));
    }
    return o;
}

static json_t *group_json(const struct hv_validation_group *g)
{
    json_t *o = json_pack("{s:s}", "name", g->name);
    if (g->device != NULL) {
        json_object_set_new(o, "device", json_string(g->device));
        json_object_set_new(o, "bits", json_string(g->low_bits ? "fp8" : "16"));
        json_object_set_new(o, "model", json_string(g->experts ? "moe" : "dense"));
    }
    json_object_set_new(o, "n", json_integer((json_int_t)g->time.n));
    json_object_set_new(o, "mape_frac", hv_json_num(g->time.mape_frac));
    json_object_set_new(o, "bias_frac", hv_json_num(g->time.bias_frac));
    json_object_set_new(o, "spearman", hv_json_num(g->time.spearman));
    json_object_set_new(o, "baseline_mape_frac", hv_json_num(g->baseline.mape_frac));
    json_object_set_new(o, "calculon_mape_frac", hv_json_num(g->rival.mape_frac));
    return o;
}

static json_t *groups_json(const struct hv_validation_group *g, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, group_json(&g[i]));
    }
    return list;
}

static json_t *report_json(struct job *j)
{
    const struct hv_validation_report *r = &j->report;
    json_t *rows = json_array(), *skipped = json_object(), *summary = json_object();
    for (size_t i = 0; i < j->rows.n_rows; i++) {
        json_array_append_new(rows, row_json(j, i));
    }
    for (size_t i = 0; i < j->rows.n_skipped; i++) {
        json_object_set_new(skipped, j->rows.skipped[i].why,
                            json_integer((json_int_t)j->rows.skipped[i].n));
    }
    json_object_set_new(summary, "dense_16_mape_frac", hv_json_num(r->dense16));
    json_object_set_new(summary, "dense_fp8_mape_frac", hv_json_num(r->dense8));
    json_object_set_new(summary, "moe_mape_frac", hv_json_num(r->moe));
    json_object_set_new(summary, "own_dense_16_mape_frac", hv_json_num(r->own_dense16));
    json_object_set_new(summary, "own_dense_fp8_mape_frac", hv_json_num(r->own_dense8));
    json_object_set_new(summary, "own_moe_mape_frac", hv_json_num(r->own_moe));
    if (j->cover.n > 0) {
        json_object_set_new(summary, "band_rows", json_integer((json_int_t)j->cover.n));
        json_object_set_new(summary, "band_cover_frac",
                            hv_json_num((double)j->cover.n_held / (double)j->cover.n));
    }
    json_object_set_new(summary, "memory_mape_frac", hv_json_num(r->memory_mape));
    json_object_set_new(summary, "oom", json_integer((json_int_t)r->n_oom));
    json_object_set_new(summary, "oom_called_fitting",
                        json_integer((json_int_t)r->n_oom_called_fitting));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "rows", rows, "skipped", skipped, "groups",
                     groups_json(r->groups, r->n_groups), "comparisons",
                     groups_json(r->tables, r->n_tables), "memory",
                     groups_json(r->memory, r->n_memory), "summary", summary);
}

/**
 * Tens of thousands of short evaluations use the same few megabytes: they are kept rather than
 * given back to the system and cleared again each time (a fifth of the time of a fit).
 */
static void keep_memory(void)
{
#if defined(__GLIBC__)
    (void)mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 128 * 1024 * 1024);
#endif
}

enum hv_status hv_cli_validate(struct hv_args *args, struct hv_err *err)
{
    struct job j = {0};
    struct hv_str out = {0};
    keep_memory();
    enum hv_status st = run(args, &j, err);
    if (st == HV_OK && hv_args_has(args, "json")) {
        st = hv_cli_print_json(report_json(&j), err);
    } else if (st == HV_OK) {
        add_rows(&j, &out);
        add_groups(&j.report, &out);
        add_fits(&j, &out);
        add_bands(&j, &out);
        add_summary(&j, &out);
        st = hv_cli_print(&out, err);
    }
    if (st == HV_OK && hv_args_has(args, "svg")) {
        st = write_svg(args, &j, err);
    }
    if (st == HV_OK && hv_args_has(args, "fit")) {
        st = write_fit(args, &j, err);
    }
    hv_str_free(&out);
    free_job(&j);
    return st;
}
