/*
 * Samples, layer checks and the machine of a profile. Its tables are read in profile_file.c.
 */
#include "solver/io/own/cluster/probe_file.h"

#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"

#define MAX_SIZE    1e15
#define MAX_SAMPLES 100000
#define MAX_LAYERS  1000

static const char *const kind_words[HV_PROBE_KIND_N] = {
#define X(c, name, ...) name,
    HV_PROBE_KIND_MAP(X)
#undef X
};
static const char *const precision_words[HV_PRECISION_N] = {
#define X(c, name, bytes) name,
    HV_PRECISION_MAP(X)
#undef X
};
static const char *const pass_words[] = {"forward", "backward"};

/* Four digits: more than the spread of any timing. */
static json_t *rounded(double x)
{
    if (!hv_known(x) || x <= 0) {
        return hv_json_num(x);
    }
    double unit = pow(10, floor(log10(x)) - 4);
    char buf[HV_FMT_CAP];
    (void)snprintf(buf, sizeof buf, "%.5g", rint(x / unit) * unit);
    return hv_json_num(strtod(buf, NULL));
}

json_t *hv_probe_sample_tree(const struct hv_probe_sample *s)
{
    enum hv_probe_kind kind = hv_probe_kind_of(s->probe.variant);
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string(hv_probe_kind_name(kind)));
    json_object_set_new(o, "variant", json_string(hv_probe_variant_name(s->probe.variant)));
    json_object_set_new(o, "precision", json_string(hv_precision_name(s->probe.precision)));
    for (size_t i = 0; hv_probe_size_name(kind, i) != NULL; i++) {
        json_object_set_new(o, hv_probe_size_name(kind, i), hv_json_num(s->probe.size[i]));
    }
    json_object_set_new(o, "median_us", rounded(s->median_s / HV_US));
    json_object_set_new(o, "spread_frac", rounded(s->spread_frac));
    json_object_set_new(o, "timings", json_integer(s->n));
    if (hv_known(s->clock_hz)) {
        json_object_set_new(o, "clock_MHz", rounded(s->clock_hz / 1e6));
    }
    return o;
}

/* Sizes of a layer by name. */
struct layer_member {
    const char *key;
    size_t at;
};
static const struct layer_member layer_members[] = {
    {"hidden", offsetof(struct hv_layer_shape, hidden)},
    {"ffn", offsetof(struct hv_layer_shape, ffn)},
    {"heads", offsetof(struct hv_layer_shape, heads)},
    {"kv_heads", offsetof(struct hv_layer_shape, kv_heads)},
    {"head_dim", offsetof(struct hv_layer_shape, head_dim)},
    {"sequence", offsetof(struct hv_layer_shape, sequence)},
    {"batch", offsetof(struct hv_layer_shape, batch)},
};

static double *layer_size(struct hv_layer_shape *l, size_t i)
{
    return (double *)((char *)l + layer_members[i].at);
}

json_t *hv_layer_check_tree(const struct hv_layer_check *c)
{
    struct hv_layer_shape shape = c->shape;
    json_t *o = json_object();
    for (size_t i = 0; i < HV_COUNT(layer_members); i++) {
        json_object_set_new(o, layer_members[i].key, hv_json_num(*layer_size(&shape, i)));
    }
    json_object_set_new(o, "pass", json_string(pass_words[c->backward]));
    json_object_set_new(o, "precision", json_string(hv_precision_name(c->precision)));
    json_object_set_new(o, "measured_us", rounded(c->measured_s / HV_US));
    json_object_set_new(o, "predicted_us", rounded(c->predicted_s / HV_US));
    return o;
}

static enum hv_status need_number(const struct hv_jp *p, const char *key, double lo, double hi,
                                  double *out, struct hv_err *err)
{
    struct hv_jp at = {0};
    enum hv_status st = hv_jp_need(p, key, "a number", &at, err);
    return st ? st : hv_jp_number(&at, lo, hi, out, err);
}

static enum hv_status need_word(const struct hv_jp *p, const char *key, const char *const *words,
                                size_t n, int *out, struct hv_err *err)
{
    struct hv_jp at = {0};
    enum hv_status st = hv_jp_need(p, key, "a word", &at, err);
    return st ? st : hv_jp_word(&at, words, n, out, err);
}

static enum hv_status read_variant(const struct hv_jp *p, enum hv_probe_kind kind,
                                   enum hv_probe_variant *out, struct hv_err *err)
{
    const char *words[HV_PROBE_VARIANT_N];
    size_t n = 0;
    int first = 0, which = 0;
    for (int v = 0; v < HV_PROBE_VARIANT_N; v++) {
        if (hv_probe_kind_of((enum hv_probe_variant)v) == kind) {
            first = n == 0 ? v : first;
            words[n++] = hv_probe_variant_name((enum hv_probe_variant)v);
        }
    }
    enum hv_status st = need_word(p, "variant", words, n, &which, err);
    *out = (enum hv_probe_variant)(first + which);
    return st;
}

enum hv_status hv_probe_sample_read(const struct hv_jp *p, struct hv_probe_sample *out,
                                    struct hv_err *err)
{
    *out = (struct hv_probe_sample){.clock_hz = HV_UNKNOWN};
    int kind = 0, precision = HV_BF16;
    double median_us = 0, timings = 0, clock_mhz = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_PROFILE_SAMPLE, err)) ||
        (st = need_word(p, "kind", kind_words, HV_PROBE_KIND_N, &kind, err)) ||
        (st = read_variant(p, (enum hv_probe_kind)kind, &out->probe.variant, err)) ||
        (st = hv_jp_opt_word(p, "precision", precision_words, HV_PRECISION_N, &precision, err)) ||
        (st = need_number(p, "median_us", 1e-6, 1e12, &median_us, err)) ||
        (st = hv_jp_opt_number(p, "spread_frac", 0, 1e6, &out->spread_frac, err)) ||
        (st = hv_jp_opt_number(p, "timings", 1, 1e9, &timings, err)) ||
        (st = hv_jp_opt_number(p, "clock_MHz", 0, 1e6, &clock_mhz, err))) {
        return st;
    }
    for (size_t i = 0; hv_probe_size_name((enum hv_probe_kind)kind, i) != NULL; i++) {
        const char *name = hv_probe_size_name((enum hv_probe_kind)kind, i);
        if ((st = need_number(p, name, 0, MAX_SIZE, &out->probe.size[i], err))) {
            return st;
        }
    }
    out->probe.precision = (enum hv_precision)precision;
    out->median_s = median_us * HV_US;
    out->clock_hz = clock_mhz * 1e6;
    out->n = (int)timings;
    return HV_OK;
}

static enum hv_status read_layer(const struct hv_jp *p, struct hv_layer_check *out,
                                 struct hv_err *err)
{
    int pass = 0, precision = HV_BF16;
    double measured_us = 0, predicted_us = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_PROFILE_LAYER, err)) ||
        (st = need_word(p, "pass", pass_words, HV_COUNT(pass_words), &pass, err)) ||
        (st = hv_jp_opt_word(p, "precision", precision_words, HV_PRECISION_N, &precision, err)) ||
        (st = need_number(p, "measured_us", 1e-6, 1e12, &measured_us, err)) ||
        (st = hv_jp_opt_number(p, "predicted_us", 0, 1e12, &predicted_us, err))) {
        return st;
    }
    for (size_t i = 0; i < HV_COUNT(layer_members); i++) {
        if ((st = need_number(p, layer_members[i].key, 1, MAX_SIZE, layer_size(&out->shape, i),
                              err))) {
            return st;
        }
    }
    out->backward = pass == 1;
    out->precision = (enum hv_precision)precision;
    out->measured_s = measured_us * HV_US;
    out->predicted_s = predicted_us * HV_US;
    return HV_OK;
}

static enum hv_status read_machine(const struct hv_jp *root, struct hv_arena *arena,
                                   struct hv_probe_machine *out, struct hv_err *err)
{
    *out = (struct hv_probe_machine){"", "", "", "", "", ""};
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"card", &out->card},       {"driver", &out->driver},
                 {"runtime", &out->runtime}, {"blas", &out->blas},
                 {"dnn", &out->dnn},         {"collectives", &out->collectives}};
    struct hv_jp p = hv_jp_get(root, "machine");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    enum hv_status st = hv_keys_check(&p, HV_KEYS_PROFILE_MACHINE, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(texts); i++) {
        const char *s = NULL;
        st = hv_jp_opt_string(&p, texts[i].key, &s, err);
        if (st == HV_OK && s != NULL) {
            *texts[i].to = hv_arena_strdup(arena, s);
        }
    }
    return st;
}

/* Length of a list that may be absent. */
static enum hv_status list_of(const struct hv_jp *root, const char *key, size_t most,
                              struct hv_jp *list, size_t *n, struct hv_err *err)
{
    *list = hv_jp_get(root, key);
    *n = 0;
    if (hv_jp_none(list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(list, n, err);
    if (st == HV_OK && *n > most) {
        st = hv_jp_fail(list, err, "%zu entries, at most %zu are read", *n, most);
    }
    return st;
}

enum hv_status hv_probe_report_read(const struct hv_json *json, struct hv_arena *arena,
                                    struct hv_probe_report *out, struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(json), list;
    *out = (struct hv_probe_report){.complete = true};
    enum hv_status st;
    if ((st = read_machine(&root, arena, &out->machine, err)) ||
        (st = hv_jp_opt_bool(&root, "complete", &out->complete, err)) ||
        (st = list_of(&root, "samples", MAX_SAMPLES, &list, &out->n_samples, err))) {
        return st;
    }
    out->samples = hv_arena_new(arena, struct hv_probe_sample, out->n_samples + 1);
    for (size_t i = 0; st == HV_OK && i < out->n_samples; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = hv_probe_sample_read(&at, &out->samples[i], err);
    }
    if (st == HV_OK) {
        st = list_of(&root, "layers", MAX_LAYERS, &list, &out->n_layers, err);
    }
    out->layers = hv_arena_new(arena, struct hv_layer_check, out->n_layers + 1);
    for (size_t i = 0; st == HV_OK && i < out->n_layers; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_layer(&at, &out->layers[i], err);
    }
    return st;
}
