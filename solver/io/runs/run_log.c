/* Figures of trainers' logs: a table of the words before them, a scan over the lines, and medians.
 */
#include "solver/io/runs/run_log.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/import/import.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures in the order in which they are preferred as the time of an iteration. */
enum figure {
    ITERATION_S,
    SAMPLES_PER_S,
    TOKENS_PER_S,
    RATES_N,
    BATCH = RATES_N,
    ALLOCATED,
    RESERVED
};

/* A figure on a line: the words before it, and words that must stand on the line before those. */
struct row {
    const char *trainer, *words, *after;
    enum figure figure;
    double unit;
};

/* Sources: Megatron-LM training/training.py (training_log) and training/utils.py (report_memory);
 * DeepSpeed utils/timer.py (ThroughputTimer) and runtime/pipe/engine.py (train_batch); torchtitan
 * components/metrics.py (MetricsProcessor.log); NeMo's progress bar. */
static const struct row rows[] = {
    {"Megatron-LM", "elapsed time per iteration (ms):", NULL, ITERATION_S, 1e-3},
    {"Megatron-LM", "elapsed time per iteration (s):", NULL, ITERATION_S, 1},
    {"Megatron-LM", "global batch size:", NULL, BATCH, 1},
    {"Megatron-LM", "max allocated:", "memory (MB)", ALLOCATED, HV_MIB},
    {"Megatron-LM", "max reserved:", "memory (MB)", RESERVED, HV_MIB},
    {"DeepSpeed", "iter time (s):", "steps:", ITERATION_S, 1},
    {"DeepSpeed", "CurrSamplesPerSec=", NULL, SAMPLES_PER_S, 1},
    {"DeepSpeed", "MaxMemAllocated=", NULL, ALLOCATED, HV_GIB},
    {"torchtitan", "tps:", "step:", TOKENS_PER_S, 1},
    {"torchtitan", "memory:", "step:", RESERVED, HV_GIB},
    {"NeMo", "train_step_timing in s:", NULL, ITERATION_S, 1},
    {"NeMo", "train_step_timing in s=", NULL, ITERATION_S, 1},
};

/* Values of a log while it is read. */
struct found {
    HV_VEC(double) rates[RATES_N];
    const char *trainer[RATES_N];
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* The line without escape sequences (ECMA-48, CSI) and other control characters. */
static void plain_line(const char *text, size_t n, struct hv_str *out)
{
    hv_str_clear(out);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\x1b' && i + 1 < n && text[i + 1] == '[') {
            i += 2;
            while (i < n && (text[i] < '@' || text[i] > '~')) {
                i++;
            }
        } else if ((unsigned char)text[i] >= ' ') {
            hv_str_addc(out, text[i]);
        }
    }
}

/* The number at s, with spaces before it and commas between its thousands. HV_UNKNOWN: none. */
static double number_at(const char *s)
{
    char digits[48];
    size_t n = 0;
    s += strspn(s, " ");
    for (; n + 1 < sizeof digits && *s != '\0'; s++) {
        if (*s == ',' && n > 0 && strspn(s + 1, "0123456789") == 3) {
            continue;
        }
        if (strchr("0123456789.eE+-", *s) == NULL) {
            break;
        }
        digits[n++] = *s;
    }
    digits[n] = '\0';
    char *end = digits;
    double x = strtod(digits, &end);
    return end > digits && isfinite(x) && x > 0 ? x : HV_UNKNOWN;
}

static void take(const struct row *r, double value, struct found *f, struct hv_run_log *out)
{
    value *= r->unit;
    if (r->figure < RATES_N) {
        hv_vec_push(&f->rates[r->figure], value);
        f->trainer[r->figure] = r->trainer;
        return;
    }
    double *to = r->figure == BATCH       ? &out->global_batch
                 : r->figure == ALLOCATED ? &out->allocated_bytes
                                          : &out->reserved_bytes;
    if (r->figure == BATCH || !hv_known(*to) || value > *to) {
        *to = value;
    }
}

static void read_line(const char *line, struct found *f, struct hv_run_log *out)
{
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        const char *from = r->after != NULL ? strstr(line, r->after) : line;
        const char *at = from != NULL ? strstr(from, r->words) : NULL;
        double value = at != NULL ? number_at(at + strlen(r->words)) : HV_UNKNOWN;
        if (hv_known(value)) {
            take(r, value, f, out);
        }
    }
}

/* ---- medians --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts n > 0 values and returns their median. */
static double median_of(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The median of the values without the first where there are more than two; with `out`, the number
 * and the spread too. Changes the values. */
static double summarise(double *v, size_t n, struct hv_run_log *out)
{
    if (n == 0) {
        return HV_UNKNOWN;
    }
    double *from = n > 2 ? v + 1 : v;
    size_t m = n > 2 ? n - 1 : n;
    double median = median_of(from, m);
    if (out != NULL) {
        for (size_t i = 0; i < m; i++) {
            from[i] = fabs(from[i] / median - 1);
        }
        out->n = m;
        out->deviation_frac = median_of(from, m);
    }
    return median;
}

static struct hv_run_log nothing(void)
{
    return (struct hv_run_log){.iteration_s = HV_UNKNOWN,
                               .samples_per_s = HV_UNKNOWN,
                               .tokens_per_s = HV_UNKNOWN,
                               .global_batch = HV_UNKNOWN,
                               .allocated_bytes = HV_UNKNOWN,
                               .reserved_bytes = HV_UNKNOWN};
}

/* Medians of all figures; the preferred one tells number, spread and trainer. False: none. */
static bool finish(struct found *f, struct hv_run_log *out)
{
    double *const to[RATES_N] = {&out->iteration_s, &out->samples_per_s, &out->tokens_per_s};
    for (size_t i = 0; i < RATES_N; i++) {
        bool preferred = out->trainer == NULL && f->rates[i].n > 0;
        *to[i] = summarise(f->rates[i].items, f->rates[i].n, preferred ? out : NULL);
        out->trainer = preferred ? f->trainer[i] : out->trainer;
        hv_vec_free(&f->rates[i]);
    }
    return out->trainer != NULL;
}

enum hv_status hv_run_log_text(const char *name, const char *text, size_t n, struct hv_run_log *out,
                               struct hv_err *err)
{
    struct found f = {0};
    struct hv_str line = {0};
    *out = nothing();
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : n - at;
        plain_line(text + at, length, &line);
        read_line(hv_str_cstr(&line), &f, out);
        at += length + 1;
    }
    hv_str_free(&line);
    if (finish(&f, out)) {
        return HV_OK;
    }
    return hv_err_set(
        err, HV_EINPUT,
        "%s: found no time of an iteration; expected the log of Megatron-LM (\"elapsed "
        "time per iteration\"), DeepSpeed (\"CurrSamplesPerSec\" or \"iter time\"), "
        "torchtitan (\"tps:\"), NeMo (\"train_step_timing\"), or a Chrome trace with "
        "profiler steps",
        name);
}

/* ---- traces ---------------------------------------------------------------------------------- */

/* Steps of a trace that the import has read. */
static enum hv_status steps_of(const char *path, json_t *doc, struct hv_run_log *out,
                               struct hv_err *err)
{
    json_t *steps = json_object_get(doc, "steps"), *step;
    size_t i;
    HV_VEC(double) s = {0};
    json_array_foreach(steps, i, step)
    {
        double ms = json_number_value(json_object_get(step, "ms"));
        if (ms > 0) {
            hv_vec_push(&s, ms / 1e3);
        }
    }
    out->trainer = "PyTorch profiler";
    out->iteration_s = summarise(s.items, s.n, out);
    hv_vec_free(&s);
    return hv_known(out->iteration_s)
               ? HV_OK
               : hv_err_set(
                     err, HV_EINPUT,
                     "%s: the trace has no profiler steps (spans \"ProfilerStep#N\"); record "
                     "it with a schedule, and call step() after every iteration",
                     path);
}

/* Reads the file as what an import knows; `missing` is what a text without times said. */
static enum hv_status read_trace(const char *path, const struct hv_device_catalogue *devices,
                                 struct hv_run_log *out, const struct hv_err *missing,
                                 struct hv_err *err)
{
    struct hv_import *im = hv_import_new(devices);
    *out = nothing();
    enum hv_status st = hv_import_file(im, NULL, path, err);
    const struct hv_import_format *format = hv_import_format_of(im, 0);
    if (st == HV_OK && format != NULL && format->part == HV_IMPORT_LINKS) {
        st = hv_err_set(err, HV_EINPUT,
                        "%s: this is %s, a measurement of links; `hetviz import` completes a "
                        "cluster with it",
                        path, format->title);
    } else if (st != HV_OK || format == NULL || format->part != HV_IMPORT_TRACE) {
        st = missing->text[0] != '\0' ? hv_err_set(err, HV_EINPUT, "%s", missing->text) : st;
    } else if ((st = hv_import_finish(im, err)) == HV_OK) {
        st = steps_of(path, hv_import_document(im), out, err);
    }
    hv_import_free(im);
    return st;
}

enum hv_status hv_run_log_read(const char *path, const struct hv_device_catalogue *devices,
                               struct hv_run_log *out, struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_err missing = {0};
    *out = nothing();
    enum hv_status st = hv_file_read(path, &text, err);
    if (st == HV_OK) {
        st = hv_run_log_text(path, hv_str_cstr(&text), text.n, out, &missing);
    } else if (st == HV_EIO) {
        hv_str_free(&text);
        return st;
    }
    hv_str_free(&text);
    if (st != HV_OK && strcmp(path, "-") == 0) { /* it is read already */
        return hv_err_set(err, HV_EINPUT, "%s; traces are read from files only", missing.text);
    }
    return st == HV_OK ? HV_OK : read_trace(path, devices, out, &missing, err);
}

/* ---- time ------------------------------------------------------------------------------------ */

double hv_run_log_iteration_s(const struct hv_run_log *log, double batch, double sequence,
                              double devices)
{
    if (hv_known(log->iteration_s)) {
        return log->iteration_s;
    }
    if (hv_known(log->samples_per_s)) {
        return batch / log->samples_per_s;
    }
    return batch * sequence / (log->tokens_per_s * devices);
}
