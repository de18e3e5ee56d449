/*
 * Profile files: measured rates of products and streams on a regular grid. Rates are converted to
 * times in solver/cost/device/gemm.c.
 */
#include "solver/io/own/cluster/profile_file.h"

#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include <math.h>
#include <string.h>

#define MAX_POINTS 256 /* of one axis */
#define MAX_VALUES 200000
#define MAX_LOG2   50.0 /* of a dimension or a number of bytes */
#define MIN_STEP   0.01 /* of an axis */
#define MIN_RATE   1e-9 /* in the units of the file */
#define MAX_TFLOPS 1e7
#define MAX_GBPS   1e6
#define MAX_US     1e4
/* Times computed from rates of three digits may fall by this much and still count as level. */
#define LEVEL 1e-9

static const char *const precision_words[HV_PRECISION_N] = {
#define X(c, name, bytes) name,
    HV_PRECISION_MAP(X)
#undef X
};

static enum hv_status need_number(const struct hv_jp *p, const char *key, double lo, double hi,
                                  double *out, struct hv_err *err)
{
    struct hv_jp at = {0};
    enum hv_status st = hv_jp_need(p, key, "a number", &at, err);
    return st ? st : hv_jp_number(&at, lo, hi, out, err);
}

static enum hv_status need_text(const struct hv_jp *p, const char *key, struct hv_arena *arena,
                                const char **out, struct hv_err *err)
{
    struct hv_jp at = {0};
    const char *s = NULL;
    enum hv_status st = hv_jp_need(p, key, "a string", &at, err);
    if (st == HV_OK && (st = hv_jp_string(&at, &s, err)) == HV_OK) {
        *out = hv_arena_strdup(arena, s);
    }
    return st;
}

static enum hv_status read_axis(const struct hv_jp *p, const char *key, struct hv_log_axis *out,
                                struct hv_err *err)
{
    struct hv_jp at = {0}, count = {0};
    int64_t n = 0;
    enum hv_status st;
    if ((st = hv_jp_need(p, key, "an axis: from, step and count", &at, err)) ||
        (st = hv_keys_check(&at, HV_KEYS_PROFILE_AXIS, err)) ||
        (st = need_number(&at, "from", -MAX_LOG2, MAX_LOG2, &out->from, err)) ||
        (st = need_number(&at, "step", MIN_STEP, MAX_LOG2, &out->step, err)) ||
        (st = hv_jp_need(&at, "count", "a number of grid points", &count, err)) ||
        (st = hv_jp_int(&count, 2, MAX_POINTS, &n, err))) {
        return st;
    }
    out->count = (size_t)n;
    return HV_OK;
}

/* A grid of up to three axes under construction: the unit of its values, and their destination. */
struct grid {
    const struct hv_log_axis *axes[3];
    size_t n_axes;
    size_t at[3], stride[3]; /* of the value at hand; distance of neighbours in the values */
    double most, unit;
    double *values; /* log2 in base units */
    struct hv_err *err;
};

/* Reads one value; its predecessors along every axis are read already. */
static enum hv_status read_value(const struct grid *g, const struct hv_jp *p, size_t index)
{
    double x = 0;
    enum hv_status st = hv_jp_number(p, MIN_RATE, g->most, &x, g->err);
    if (st) {
        return st;
    }
    g->values[index] = log2(x * g->unit);
    for (size_t a = 0; a < g->n_axes; a++) {
        size_t s = g->stride[a];
        if (g->at[a] && g->values[index] - g->values[index - s] > g->axes[a]->step + LEVEL) {
            return hv_jp_fail(p, g->err,
                              "this rate is more than %.4g times the one before it along axis %zu: "
                              "more work would take less time; expected at most %.6g",
                              exp2(g->axes[a]->step), a + 1,
                              exp2(g->values[index - s] + g->axes[a]->step) / g->unit);
        }
    }
    return HV_OK;
}

static enum hv_status read_level(struct grid *g, const struct hv_jp *p, size_t axis, size_t index)
{
    if (axis == g->n_axes) {
        return read_value(g, p, index);
    }
    size_t n = 0, want = g->axes[axis]->count;
    enum hv_status st = hv_jp_array(p, &n, g->err);
    if (st == HV_OK && n != want) {
        return hv_jp_fail(p, g->err, "expected %zu values, one per grid point, found %zu", want, n);
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(p, i);
        g->at[axis] = i;
        st = read_level(g, &at, axis + 1, index * want + i);
    }
    return st;
}

static enum hv_status read_grid(const struct hv_jp *p, const char *key, struct hv_arena *arena,
                                struct grid *g, const double **out)
{
    size_t n = 1;
    struct hv_jp at = {0};
    for (size_t a = g->n_axes; a-- > 0; n *= g->axes[a]->count) {
        g->stride[a] = n;
    }
    enum hv_status st = hv_jp_need(p, key, "the rates at the grid points", &at, g->err);
    if (st == HV_OK && n > MAX_VALUES) {
        st = hv_jp_fail(p, g->err, "%zu grid points, at most %d are read", n, MAX_VALUES);
    }
    if (st) {
        return st;
    }
    g->values = hv_arena_new(arena, double, n);
    *out = g->values;
    return read_level(g, &at, 0, 0);
}

static double greatest(const double *v, size_t n)
{
    double best = v[0];
    for (size_t i = 1; i < n; i++) {
        best = fmax(best, v[i]);
    }
    return exp2(best);
}

static enum hv_status read_gemm(const struct hv_jp *p, struct hv_arena *arena,
                                struct hv_gemm_table *t, struct hv_err *err)
{
    struct hv_jp at = {0};
    int precision = 0;
    t->error_frac = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_PROFILE_GEMM, err)) ||
        (st = hv_jp_need(p, "precision", "a number format", &at, err)) ||
        (st = hv_jp_word(&at, precision_words, HV_PRECISION_N, &precision, err)) ||
        (st = need_number(p, "peak_TFLOPS", MIN_RATE, MAX_TFLOPS, &t->peak_flops_per_s, err)) ||
        (st = hv_jp_opt_number(p, "error_frac", 0, 10, &t->error_frac, err)) ||
        (st = read_axis(p, "log2_m", &t->m, err)) || (st = read_axis(p, "log2_n", &t->n, err)) ||
        (st = read_axis(p, "log2_k", &t->k, err))) {
        return st;
    }
    t->precision = (enum hv_precision)precision;
    t->peak_flops_per_s *= HV_TFLOPS;
    struct grid g = {.axes = {&t->m, &t->n, &t->k},
                     .n_axes = 3,
                     .most = MAX_TFLOPS,
                     .unit = HV_TFLOPS,
                     .err = err};
    st = read_grid(p, "TFLOPS", arena, &g, &t->log2_flops_per_s);
    if (st == HV_OK) {
        t->best_flops_per_s = greatest(t->log2_flops_per_s, hv_gemm_table_size(t));
    }
    return st;
}

static enum hv_status read_gemms(const struct hv_jp *root, struct hv_arena *arena,
                                 struct hv_profile *p, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "gemm");
    size_t n = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, err);
    if (st == HV_OK && n > HV_PRECISION_N) {
        st = hv_jp_fail(&list, err, "expected one table per number format, found %zu", n);
    }
    struct hv_gemm_table *tables = hv_arena_new(arena, struct hv_gemm_table, n + 1);
    p->gemm = tables;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_gemm(&at, arena, &tables[i], err);
        for (size_t k = 0; st == HV_OK && k < i; k++) {
            if (tables[k].precision == tables[i].precision) {
                st = hv_jp_fail(&at, err, "a second table of %s",
                                hv_precision_name(tables[i].precision));
            }
        }
        p->n_gemm += st == HV_OK;
    }
    return st;
}

/* The rate of long streams, and from where on no stream is slower. */
static void settle_stream(struct hv_stream_table *t)
{
    size_t last = t->bytes.count - 1, i = last;
    while (i > 0 && t->log2_bytes_per_s[i - 1] >= t->log2_bytes_per_s[last]) {
        i--;
    }
    t->long_bytes_per_s = exp2(t->log2_bytes_per_s[last]);
    t->full_bytes = exp2(t->bytes.from + t->bytes.step * (double)i);
}

static enum hv_status read_stream(const struct hv_jp *root, struct hv_arena *arena,
                                  struct hv_profile *p, struct hv_err *err)
{
    struct hv_jp at = hv_jp_get(root, "stream");
    if (hv_jp_none(&at)) {
        return HV_OK;
    }
    struct hv_stream_table *t = hv_arena_new(arena, struct hv_stream_table, 1);
    t->error_frac = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_keys_check(&at, HV_KEYS_PROFILE_STREAM, err)) ||
        (st = need_text(&at, "kernel", arena, &t->kernel, err)) ||
        (st = hv_jp_opt_number(&at, "error_frac", 0, 10, &t->error_frac, err)) ||
        (st = read_axis(&at, "log2_bytes", &t->bytes, err))) {
        return st;
    }
    struct grid g = {
        .axes = {&t->bytes}, .n_axes = 1, .most = MAX_GBPS, .unit = HV_GBPS, .err = err};
    st = read_grid(&at, "GBps", arena, &g, &t->log2_bytes_per_s);
    if (st == HV_OK) {
        settle_stream(t);
        p->stream = t;
    }
    return st;
}

static enum hv_status read_core(const struct hv_jp *p, struct hv_arena *arena,
                                struct hv_core_table *t, struct hv_err *err)
{
    static const char *const passes[] = {"forward", "backward"};
    struct hv_jp precision = {0}, pass = {0};
    int of = 0, which = 0;
    t->error_frac = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_PROFILE_CORE, err)) ||
        (st = hv_jp_need(p, "precision", "a number format", &precision, err)) ||
        (st = hv_jp_word(&precision, precision_words, HV_PRECISION_N, &of, err)) ||
        (st = hv_jp_need(p, "pass", "forward or backward", &pass, err)) ||
        (st = hv_jp_word(&pass, passes, HV_COUNT(passes), &which, err)) ||
        (st = hv_jp_opt_number(p, "error_frac", 0, 10, &t->error_frac, err)) ||
        (st = read_axis(p, "log2_sequence", &t->sequence, err))) {
        return st;
    }
    t->precision = (enum hv_precision)of;
    t->backward = which == 1;
    /* the work grows with the square of the length, so the rate may grow twice as fast as it */
    struct hv_log_axis squared = t->sequence;
    squared.step *= 2;
    struct grid g = {
        .axes = {&squared}, .n_axes = 1, .most = MAX_TFLOPS, .unit = HV_TFLOPS, .err = err};
    return read_grid(p, "TFLOPS", arena, &g, &t->log2_flops_per_s);
}

static enum hv_status read_cores(const struct hv_jp *root, struct hv_arena *arena,
                                 struct hv_profile *p, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "attention");
    size_t n = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, err);
    if (st == HV_OK && n > 2 * HV_PRECISION_N) {
        st = hv_jp_fail(&list, err, "expected one table per number format and pass, found %zu", n);
    }
    struct hv_core_table *tables = hv_arena_new(arena, struct hv_core_table, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_core(&at, arena, &tables[i], err);
    }
    p->core = tables;
    p->n_core = st ? 0 : n;
    return st;
}

static enum hv_status read_names(const struct hv_jp *root, struct hv_arena *arena,
                                 struct hv_profile *p, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "same_chip");
    size_t n = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, err);
    const char **names = hv_arena_new(arena, const char *, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        const char *s = NULL;
        st = hv_jp_string(&at, &s, err);
        names[i] = st ? NULL : hv_arena_strdup(arena, s);
    }
    p->same_chip = names;
    p->n_same_chip = st ? 0 : n;
    return st;
}

static enum hv_status read_words(const struct hv_jp *root, struct hv_arena *arena,
                                 struct hv_profile *p, struct hv_err *err)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"licence", &p->licence}, {"date", &p->date}, {"note", &p->note}};
    enum hv_status st = need_text(root, "device", arena, &p->device, err);
    if (st == HV_OK) {
        st = need_text(root, "source", arena, &p->source, err);
    }
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(texts); i++) {
        const char *s = NULL;
        st = hv_jp_opt_string(root, texts[i].key, &s, err);
        *texts[i].to = hv_arena_strdup(arena, s);
    }
    return st ? st : read_names(root, arena, p, err);
}

enum hv_status hv_profile_read(const struct hv_json *json, struct hv_arena *arena,
                               struct hv_profile **out, struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(json);
    struct hv_profile *p = hv_arena_new(arena, struct hv_profile, 1);
    double start_us = 0;
    enum hv_status st;
    if ((st = hv_jp_format(&root, "hetviz.profile/1", err)) ||
        (st = hv_keys_check(&root, HV_KEYS_PROFILE, err)) ||
        (st = read_words(&root, arena, p, err)) ||
        (st = need_number(&root, "bandwidth_GBps", MIN_RATE, MAX_GBPS, &p->memory_bytes_per_s,
                          err)) ||
        (st = hv_jp_opt_number(&root, "kernel_start_us", 0, MAX_US, &start_us, err)) ||
        (st = read_gemms(&root, arena, p, err)) || (st = read_stream(&root, arena, p, err)) ||
        (st = read_cores(&root, arena, p, err))) {
        return st;
    }
    p->memory_bytes_per_s *= HV_GBPS;
    p->kernel_start_s = start_us * HV_US;
    if (!p->n_gemm && !p->stream) {
        (void)hv_jp_fail(&root, err, "expected tables under \"gemm\" or \"stream\", found none");
        return HV_EINPUT;
    }
    *out = p;
    return HV_OK;
}

static struct hv_device_kind *kind_of(struct hv_device_catalogue *c, const char *name)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (strcmp(c->kinds[i].name, name) == 0) {
            return &c->kinds[i];
        }
    }
    return NULL;
}

static enum hv_status attach(struct hv_device_catalogue *c, const struct hv_jp *at,
                             const struct hv_profile *p, const char *name, struct hv_err *err)
{
    struct hv_device_kind *k = kind_of(c, name);
    if (!k) {
        return hv_jp_fail(at, err, "the catalogue has no device \"%.80s\"", name);
    }
    k->profile = p;
    return HV_OK;
}

enum hv_status hv_profile_add(struct hv_device_catalogue *c, const struct hv_json *json,
                              struct hv_err *err)
{
    struct hv_profile *p = NULL;
    enum hv_status st = hv_profile_read(json, &c->arena, &p, err);
    if (st) {
        return st;
    }
    struct hv_jp root = hv_jp_root(json), device = hv_jp_get(&root, "device");
    struct hv_jp others = hv_jp_get(&root, "same_chip");
    st = attach(c, &device, p, p->device, err);
    for (size_t i = 0; st == HV_OK && i < p->n_same_chip; i++) {
        struct hv_jp at = hv_jp_at(&others, i);
        st = attach(c, &at, p, p->same_chip[i], err);
    }
    return st;
}
