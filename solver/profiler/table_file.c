/*
 * Writes tables with five digits, rounded so that they satisfy the condition of the reader: along
 * every axis a rate grows at most as fast as its argument.
 */
#include "solver/profiler/table_file.h"

#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/io/own/cluster/probe_file.h"
#include <math.h>
#include <stdlib.h>

#define DIGITS 5

/* x rounded towards 0 to five digits. */
static double rounded_down(double x)
{
    double unit = pow(10, floor(log10(x)) - (DIGITS - 1));
    char buf[HV_FMT_CAP];
    (void)snprintf(buf, sizeof buf, "%.*g", DIGITS, floor(x / unit * (1 + 1e-12)) * unit);
    return strtod(buf, NULL);
}

static json_t *axis_tree(const struct hv_log_axis *a)
{
    return json_pack("{s:o, s:o, s:i}", "from", hv_json_num(a->from), "step", hv_json_num(a->step),
                     "count", (int)a->count);
}

/* Rates in `unit`, place after place; each at most a step above its neighbours before it. */
static void write_rates(const struct hv_sweep_state *s, double unit, double *out)
{
    size_t stride[3] = {s->lattice.axis[1].count * s->lattice.axis[2].count,
                        s->lattice.axis[2].count, 1};
    for (size_t i = 0; i < s->lattice.n; i++) {
        double x = exp2(s->log2_rate[i]) / unit;
        for (size_t a = 0; a < 3; a++) {
            const struct hv_log_axis *axis = &s->lattice.axis[a];
            if (axis->count > 1 && i / stride[a] % axis->count > 0) {
                x = fmin(x, out[i - stride[a]] * exp2(axis->step));
            }
        }
        out[i] = rounded_down(x);
    }
}

/* Nested lists of the values from `at` on, over the axes from `a` on. */
static json_t *nested(const struct hv_lattice *l, const double *values, size_t n_axes, size_t a,
                      size_t *at)
{
    if (a == n_axes) {
        return hv_json_num(values[(*at)++]);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < l->axis[a].count; i++) {
        json_array_append_new(list, nested(l, values, n_axes, a + 1, at));
    }
    return list;
}

static json_t *rates_tree(const struct hv_sweep_state *s, double unit)
{
    size_t at = 0;
    double *values = hv_xcalloc(s->lattice.n, sizeof *values);
    write_rates(s, unit, values);
    json_t *tree = nested(&s->lattice, values, hv_sweep_axis_count(s->sweep), 0, &at);
    free(values);
    return tree;
}

static json_t *error_tree(const struct hv_sweep_state *s)
{
    return hv_known(s->error_frac) ? hv_json_num(rint(s->error_frac * 1e4) / 1e4) : json_null();
}

static json_t *product_tree(const struct hv_sweep_state *s, double peak_flops_per_s)
{
    const struct hv_log_axis *axis = s->lattice.axis;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "precision",
                     hv_precision_name(s->sweep->precision), "peak_TFLOPS",
                     hv_json_num(peak_flops_per_s / HV_TFLOPS), "error_frac", error_tree(s),
                     "log2_m", axis_tree(&axis[0]), "log2_n", axis_tree(&axis[1]), "log2_k",
                     axis_tree(&axis[2]), "TFLOPS", rates_tree(s, HV_TFLOPS));
}

static json_t *core_tree(const struct hv_sweep_state *s)
{
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o}", "precision", hv_precision_name(s->sweep->precision), "pass",
        hv_probe_variant_name(s->sweep->variant), "error_frac", error_tree(s), "log2_sequence",
        axis_tree(&s->lattice.axis[0]), "TFLOPS", rates_tree(s, HV_TFLOPS));
}

static json_t *stream_tree(const struct hv_sweep_state *s)
{
    struct hv_log_axis bytes = s->lattice.axis[0];
    double rows[3] = {exp2(bytes.from), 1, 1};
    struct hv_probe first = hv_sweep_probe(s->sweep, rows, 1);
    bytes.from = log2(hv_probe_bytes(&first));
    return json_pack("{s:s, s:o, s:o, s:o}", "kernel", hv_probe_variant_name(s->sweep->variant),
                     "error_frac", error_tree(s), "log2_bytes", axis_tree(&bytes), "GBps",
                     rates_tree(s, HV_GBPS));
}

/* Appends the sweeps that could not be measured, with reasons. */
static void add_missing(const struct hv_measured *m, struct hv_str *note)
{
    for (size_t i = 0; i < m->n_sweeps; i++) {
        const struct hv_sweep_state *s = &m->sweeps[i];
        if (s->dead) {
            hv_str_addf(note, "; no %s %s %s: %s", hv_precision_name(s->sweep->precision),
                        hv_probe_kind_name(hv_probe_kind_of(s->sweep->variant)),
                        hv_probe_variant_name(s->sweep->variant), s->why);
        }
    }
}

static json_t *note_tree(const struct hv_measured *m, const struct hv_table_file *about)
{
    struct hv_str note = {0};
    hv_str_addf(&note, "%s profile, %zu samples in %.0f s", about->quick ? "quick" : "full",
                m->samples.n, m->elapsed_s);
    if (!m->complete) {
        hv_str_adds(&note, ", cut short");
    }
    add_missing(m, &note);
    json_t *tree = json_string(hv_str_cstr(&note));
    hv_str_free(&note);
    return tree;
}

/* Writes every filled sweep to its table; false when there is none. */
static bool add_tables(const struct hv_measured *m, const struct hv_device_kind *kind, json_t *root)
{
    json_t *products = json_array(), *cores = json_array();
    bool any = false;
    for (size_t i = 0; i < m->n_sweeps; i++) {
        const struct hv_sweep_state *s = &m->sweeps[i];
        double peak = kind->flops_per_s[s->sweep->precision];
        if (s->log2_rate == NULL) {
            continue;
        }
        if (s->sweep->axes == HV_SWEEP_PRODUCT && hv_known(peak)) {
            json_array_append_new(products, product_tree(s, peak));
            any = true;
        } else if (s->sweep->axes == HV_SWEEP_SEQUENCE) {
            json_array_append_new(cores, core_tree(s));
        } else if (s->sweep->variant == HV_STREAM_ADD) {
            json_object_set_new(root, "stream", stream_tree(s));
            any = true;
        }
    }
    json_object_set_new(root, "gemm", products);
    json_object_set_new(root, "attention", cores);
    return any;
}

static json_t *machine_tree(const struct hv_bench_card *c)
{
    const struct {
        const char *key, *text;
    } rows[] = {{"card", c->name}, {"driver", c->driver}, {"runtime", c->runtime},
                {"blas", c->blas}, {"dnn", c->dnn},       {"collectives", c->collectives}};
    json_t *o = json_object();
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].text[0] != '\0') {
            json_object_set_new(o, rows[i].key, json_string(rows[i].text));
        }
    }
    return o;
}

json_t *hv_table_tree(const struct hv_measured *m, const struct hv_table_file *about)
{
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:b}", "format", "hetviz.profile/1", "device",
                  about->kind->name, "source", "measured by hetviz " HV_VERSION, "date",
                  about->date, "note", note_tree(m, about), "bandwidth_GBps",
                  hv_json_num(about->kind->memory_bytes_per_s / HV_GBPS), "complete", m->complete);
    if (hv_known(m->launch_s)) {
        json_object_set_new(root, "kernel_start_us", hv_json_num(rint(m->launch_s * 1e9) / 1e3));
    }
    json_object_set_new(root, "machine", machine_tree(&about->card));
    if (!add_tables(m, about->kind, root)) {
        json_decref(root);
        return NULL;
    }
    json_t *samples = json_array(), *layers = json_array();
    for (size_t i = 0; i < m->samples.n; i++) {
        json_array_append_new(samples, hv_probe_sample_tree(&m->samples.items[i]));
    }
    for (size_t i = 0; i < m->layers.n; i++) {
        json_array_append_new(layers, hv_layer_check_tree(&m->layers.items[i]));
    }
    json_object_set_new(root, "samples", samples);
    json_object_set_new(root, "layers", layers);
    return root;
}
