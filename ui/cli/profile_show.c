/** What a profile holds: ceilings, rates, errors, layers; and its chart. */
#include "ui/cli/profile_show.h"

#include <math.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/export/scatter.h"
#include "solver/io/own/cluster/probe_file.h"
#include "solver/io/own/cluster/profile_file.h"
#include "solver/io/own/docs.h"
#include "ui/cli/print.h"

enum { CHART_W = 64, CHART_H = 16 };

/** A profile and the device kind that it is compared with. Owner: close_shown. */
struct shown {
    struct hv_json json;
    struct hv_arena arena;
    struct hv_device_catalogue devices;
    const struct hv_device_kind *kind; /**< NULL: not in the catalogue */
    struct hv_profile *profile;
    struct hv_probe_report report;
};

static void close_shown(struct shown *s)
{
    hv_json_free(&s->json);
    hv_arena_free(&s->arena);
    hv_device_catalogue_free(&s->devices);
}

static enum hv_status open_shown(struct shown *s, const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    *s = (struct shown){0};
    enum hv_status st;
    if ((st = hv_file_read(path, &text, err)) == HV_OK &&
        (st = hv_json_parse(&s->json, hv_str_cstr(&text), text.n, path, err)) == HV_OK &&
        (st = hv_profile_read(&s->json, &s->arena, &s->profile, err)) == HV_OK &&
        (st = hv_probe_report_read(&s->json, &s->arena, &s->report, err)) == HV_OK &&
        (st = hv_device_catalogue_read(&s->devices, err)) == HV_OK) {
        s->kind = hv_device_find(&s->devices, s->profile->device);
    }
    hv_str_free(&text);
    if (st) {
        close_shown(s);
    }
    return st;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void add_machine(const struct shown *s, struct hv_str *out)
{
    const struct hv_probe_machine *m = &s->report.machine;
    const struct {
        const char *what, *text;
    } rows[] = {{"card", m->card},     {"driver", m->driver}, {"CUDA", m->runtime},
                {"cuBLASLt", m->blas}, {"cuDNN", m->dnn},     {"NCCL", m->collectives}};
    const struct hv_profile *p = s->profile;
    hv_text_addf(out, "%s: %s%s%s\n", p->device, p->source, p->date != NULL ? ", " : "",
                 p->date != NULL ? p->date : "");
    const char *between = "  ";
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].text[0] != '\0') {
            hv_text_addf(out, "%s%s %s", between, rows[i].what, rows[i].text);
            between = ", ";
        }
    }
    hv_str_adds(out, between[0] == ',' ? "\n" : "");
    if (p->note != NULL) {
        hv_text_addf(out, "  %s\n", p->note);
    }
    if (!s->report.complete) {
        hv_str_adds(out, "  incomplete: `hetviz profile` resumes it from its journal\n");
    }
}

static void add_products(const struct shown *s, struct hv_str *out)
{
    char best[HV_FMT_CAP], peak[HV_FMT_CAP], share[HV_FMT_CAP], error[HV_FMT_CAP];
    hv_str_adds(out, "\nproducts      best  data sheet   share  error off the grid\n");
    for (size_t i = 0; i < s->profile->n_gemm; i++) {
        const struct hv_gemm_table *t = &s->profile->gemm[i];
        hv_text_addf(out, "%-5s %9s T %9s T %7s %12s\n", hv_precision_name(t->precision),
                     hv_fmt_fixed(best, sizeof best, t->best_flops_per_s / HV_TFLOPS, 1),
                     hv_fmt_fixed(peak, sizeof peak, t->peak_flops_per_s / HV_TFLOPS, 1),
                     hv_fmt_percent(share, sizeof share, t->best_flops_per_s / t->peak_flops_per_s),
                     hv_fmt_percent(error, sizeof error, t->error_frac));
    }
}

static void add_cores(const struct shown *s, struct hv_str *out)
{
    for (size_t i = 0; i < s->profile->n_core; i++) {
        const struct hv_core_table *t = &s->profile->core[i];
        double last = t->sequence.from + t->sequence.step * (double)(t->sequence.count - 1);
        hv_str_adds(out, i == 0 ? "\n" : "");
        hv_text_addf(out, "attention %-8s %s: %.0f TFLOP/s over %.0f tokens, %.0f over %.0f\n",
                     t->backward ? "backward" : "forward", hv_precision_name(t->precision),
                     exp2(t->log2_flops_per_s[0]) / HV_TFLOPS, exp2(t->sequence.from),
                     exp2(t->log2_flops_per_s[t->sequence.count - 1]) / HV_TFLOPS, exp2(last));
    }
}

/** The fastest sample of a variant, by bytes. */
static const struct hv_probe_sample *fastest(const struct shown *s, enum hv_probe_variant v)
{
    const struct hv_probe_sample *best = NULL;
    double most = 0;
    for (size_t i = 0; i < s->report.n_samples; i++) {
        const struct hv_probe_sample *x = &s->report.samples[i];
        double rate = hv_probe_bytes(&x->probe) / x->median_s;
        if (x->probe.variant == v && rate > most) {
            most = rate;
            best = x;
        }
    }
    return best;
}

static void add_memory(const struct shown *s, struct hv_str *out)
{
    char start[HV_FMT_CAP];
    double peak = s->profile->memory_bytes_per_s;
    hv_text_addf(out,
                 "\nmemory and links, at best (data sheet: %.0f GB/s); a kernel starts in %s\n",
                 peak / HV_GBPS, hv_fmt_seconds(start, sizeof start, s->profile->kernel_start_s));
    for (int v = HV_STREAM_ADD; v < HV_PROBE_VARIANT_N; v++) {
        const struct hv_probe_sample *x = fastest(s, (enum hv_probe_variant)v);
        if (x != NULL && v != HV_LAUNCH_EMPTY) {
            char size[HV_FMT_CAP];
            hv_text_addf(out, "%-10s %-14s %8.1f GB/s with %s\n",
                         hv_probe_kind_name(hv_probe_kind_of((enum hv_probe_variant)v)),
                         hv_probe_variant_name((enum hv_probe_variant)v),
                         hv_probe_bytes(&x->probe) / x->median_s / HV_GBPS,
                         hv_fmt_bytes(size, sizeof size, hv_probe_bytes(&x->probe)));
        }
    }
}

static void add_layers(const struct shown *s, struct hv_str *out)
{
    double sum = 0;
    size_t n = 0;
    if (s->report.n_layers == 0) {
        return;
    }
    hv_str_adds(
        out,
        "\nlayers        hidden    ffn heads  kv sequence batch   measured predicted  error\n");
    for (size_t i = 0; i < s->report.n_layers; i++) {
        const struct hv_layer_check *c = &s->report.layers[i];
        const struct hv_layer_shape *l = &c->shape;
        char a[HV_FMT_CAP], b[HV_FMT_CAP];
        double off = c->predicted_s / c->measured_s - 1;
        hv_text_addf(out, "%-8s %-4s %7.0f %6.0f %5.0f %3.0f %8.0f %5.0f %10s %9s",
                     c->backward ? "backward" : "forward", hv_precision_name(c->precision),
                     l->hidden, l->ffn, l->heads, l->kv_heads, l->sequence, l->batch,
                     hv_fmt_seconds(a, sizeof a, c->measured_s),
                     hv_fmt_seconds(b, sizeof b, c->predicted_s));
        if (hv_known(off)) {
            hv_text_addf(out, " %+5.1f%%", 100 * off);
            sum += fabs(off);
            n++;
        }
        hv_str_addc(out, '\n');
    }
    if (n > 0) {
        hv_text_addf(out, "mean error %.1f%% over %zu layers whose sizes are on no grid\n",
                     100 * sum / (double)n, n);
    }
}

/* ---- the chart ------------------------------------------------------------------------------- */

/** Letter of a sort in the chart; 0: not in it. */
static char letter_of(enum hv_probe_kind k)
{
    return k == HV_PROBE_GEMM        ? 'o'
           : k == HV_PROBE_GROUPED   ? 'e'
           : k == HV_PROBE_ATTENTION ? 'a'
           : k == HV_PROBE_STREAM    ? 's'
                                     : '\0';
}

/** Peak of the widest roof: the fastest format that was measured. */
static double greatest_peak(const struct shown *s)
{
    double peak = 0;
    for (size_t i = 0; i < s->profile->n_gemm; i++) {
        peak = fmax(peak, s->profile->gemm[i].peak_flops_per_s);
    }
    return peak;
}

/** Position of a sample: FLOPs per byte and FLOP/s. A stream counts one operation per two bytes and
 * so lies left of all other samples. False: the sample has no position. */
static bool place_of(const struct hv_probe_sample *x, double *intensity, double *rate)
{
    double bytes = hv_probe_bytes(&x->probe), flops = hv_probe_flops(&x->probe);
    if (letter_of(hv_probe_kind_of(x->probe.variant)) == '\0' || !(bytes > 0)) {
        return false;
    }
    flops = flops > 0 ? flops : bytes / 2;
    *intensity = flops / bytes;
    *rate = flops / x->median_s;
    return true;
}

/** Columns over log10 of the intensity, rows over log10 of the rate. */
struct chart {
    double low_x, high_x, low_y, high_y;
    char cell[CHART_H][CHART_W + 1];
};

static void put(struct chart *c, double x, double y, char letter)
{
    double col = (log10(x) - c->low_x) / (c->high_x - c->low_x) * (CHART_W - 1);
    double row = (c->high_y - log10(y)) / (c->high_y - c->low_y) * (CHART_H - 1);
    if (col >= -0.5 && col < CHART_W - 0.5 && row >= -0.5 && row < CHART_H - 0.5) {
        c->cell[(int)lround(row)][(int)lround(col)] = letter;
    }
}

static void draw_chart(const struct shown *s, struct chart *c)
{
    double peak = greatest_peak(s), x, y;
    memset(c->cell, ' ', sizeof c->cell);
    for (int col = 0; col < CHART_W; col++) {
        double at = pow(10, c->low_x + (c->high_x - c->low_x) * col / (CHART_W - 1));
        double slope = s->profile->memory_bytes_per_s * at;
        put(c, at, fmin(slope, peak), slope < peak ? '/' : '-');
    }
    for (size_t i = 0; i < s->report.n_samples; i++) {
        if (place_of(&s->report.samples[i], &x, &y)) {
            put(c, x, y, letter_of(hv_probe_kind_of(s->report.samples[i].probe.variant)));
        }
    }
}

static void add_chart(const struct shown *s, struct hv_str *out)
{
    double peak = greatest_peak(s);
    if (s->report.n_samples == 0 || !(peak > 0)) {
        return;
    }
    struct chart c = {.low_x = -1, .high_x = 4, .high_y = ceil(log10(peak) * 2) / 2};
    c.low_y = c.high_y - 4;
    draw_chart(s, &c);
    hv_str_adds(out, "\nFLOP/s under the data sheet's roof (o products, e experts, a attention, s "
                     "memory kernels)\n");
    for (int row = 0; row < CHART_H; row++) {
        double y = pow(10, c.high_y - (c.high_y - c.low_y) * row / (CHART_H - 1));
        char label[HV_FMT_CAP] = "";
        if (row % 5 == 0) {
            (void)hv_fmt_si(label, sizeof label, y, "");
        }
        hv_text_addf(out, "%8s |", label);
        hv_str_add(out, c.cell[row], CHART_W);
        hv_str_addc(out, '\n');
    }
    hv_str_adds(out, "         +");
    for (int col = 0; col < CHART_W; col++) {
        hv_str_addc(out, '-');
    }
    hv_text_addf(out, "\n         0.1%*s1%*s10%*s100%*s1000%*s10^4 FLOP per byte\n", 9, "", 11, "",
                 10, "", 9, "", 6, "");
}

static enum hv_status write_svg(struct shown *s, const char *path, struct hv_err *err)
{
    static const char *const series[] = {"products", "experts", "attention", "memory kernels"};
    struct hv_scatter_point *points =
        hv_arena_new(&s->arena, struct hv_scatter_point, s->report.n_samples + 1);
    struct hv_scatter_roof *roofs =
        hv_arena_new(&s->arena, struct hv_scatter_roof, s->profile->n_gemm + 1);
    struct hv_scatter plot = {.x_label = "FLOP per byte",
                              .y_label = "FLOP/s",
                              .series = series,
                              .n_series = HV_COUNT(series),
                              .points = points,
                              .roofs = roofs};
    plot.title = hv_arena_printf(&s->arena, "%s: achieved under its ceilings", s->profile->device);
    plot.subtitle = s->profile->source;
    for (size_t i = 0; i < s->report.n_samples; i++) {
        const struct hv_probe_sample *x = &s->report.samples[i];
        struct hv_scatter_point *p = &points[plot.n_points];
        if (place_of(x, &p->x, &p->y)) {
            struct hv_str text = {0};
            hv_probe_text(&x->probe, &text);
            p->series = (size_t)hv_probe_kind_of(x->probe.variant);
            p->tooltip = hv_arena_strdup(&s->arena, hv_str_cstr(&text));
            hv_str_free(&text);
            plot.n_points++;
        }
    }
    for (size_t i = 0; i < s->profile->n_gemm; i++) {
        const struct hv_gemm_table *t = &s->profile->gemm[i];
        roofs[plot.n_roofs++] = (struct hv_scatter_roof){
            s->profile->memory_bytes_per_s, t->peak_flops_per_s, hv_precision_name(t->precision)};
    }
    struct hv_str out = {0};
    hv_scatter_svg(&plot, &out);
    enum hv_status st = hv_file_write(path, hv_str_cstr(&out), out.n, err);
    hv_str_free(&out);
    return st;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *figures(const struct shown *s)
{
    json_t *o = json_pack("{s:s, s:b, s:i}", "device", s->profile->device, "complete",
                          s->report.complete, "samples", (int)s->report.n_samples);
    json_t *products = json_array();
    for (size_t i = 0; i < s->profile->n_gemm; i++) {
        const struct hv_gemm_table *t = &s->profile->gemm[i];
        json_array_append_new(products,
                              json_pack("{s:s, s:o, s:o, s:o}", "precision",
                                        hv_precision_name(t->precision), "best_TFLOPS",
                                        hv_json_num(t->best_flops_per_s / HV_TFLOPS), "peak_TFLOPS",
                                        hv_json_num(t->peak_flops_per_s / HV_TFLOPS), "error_frac",
                                        hv_json_num(t->error_frac)));
    }
    json_object_set_new(o, "gemm", products);
    json_t *layers = json_array();
    for (size_t i = 0; i < s->report.n_layers; i++) {
        json_array_append_new(layers, hv_layer_check_tree(&s->report.layers[i]));
    }
    json_object_set_new(o, "layers", layers);
    return o;
}

enum hv_status hv_cli_profile_show(struct hv_args *args, const char *path, struct hv_err *err)
{
    struct shown s;
    enum hv_status st = open_shown(&s, path, err);
    if (st) {
        return st;
    }
    if (hv_args_has(args, "svg")) {
        st = write_svg(&s, hv_args_text(args, "svg", "-"), err);
    }
    if (st == HV_OK && hv_args_has(args, "json")) {
        st = hv_cli_print_json(figures(&s), err);
    } else if (st == HV_OK) {
        struct hv_str text = {0};
        add_machine(&s, &text);
        add_products(&s, &text);
        add_cores(&s, &text);
        add_memory(&s, &text);
        add_layers(&s, &text);
        add_chart(&s, &text);
        st = hv_cli_print(&text, err);
        hv_str_free(&text);
    }
    close_shown(&s);
    return st;
}
