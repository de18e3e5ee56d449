/* The table of probes and their FLOPs and bytes. The profiler runs them. */
#include "solver/inventory/probe.h"

#include "solver/base/units.h"
#include <string.h>

struct kind_row {
    const char *name, *what, *sizes[HV_PROBE_SIZES];
};
static const struct kind_row kinds[HV_PROBE_KIND_N] = {
#define X(c, name, what, ...) {name, what, {__VA_ARGS__}},
    HV_PROBE_KIND_MAP(X)
#undef X
};
struct variant_row {
    enum hv_probe_kind kind;
    const char *name;
};
static const struct variant_row variants[HV_PROBE_VARIANT_N] = {
#define X(c, kind, name) {kind, name},
    HV_PROBE_VARIANT_MAP(X)
#undef X
};

enum hv_probe_kind hv_probe_kind_of(enum hv_probe_variant v)
{
    return variants[v].kind;
}

const char *hv_probe_kind_name(enum hv_probe_kind k)
{
    return kinds[k].name;
}

const char *hv_probe_variant_name(enum hv_probe_variant v)
{
    return variants[v].name;
}

const char *hv_probe_size_name(enum hv_probe_kind k, size_t i)
{
    return i < HV_PROBE_SIZES ? kinds[k].sizes[i] : NULL;
}

bool hv_probe_equal(const struct hv_probe *a, const struct hv_probe *b)
{
    bool same = a->variant == b->variant && a->precision == b->precision;
    for (size_t i = 0; i < HV_PROBE_SIZES; i++) {
        same = same && fabs(a->size[i] - b->size[i]) < 0.5;
    }
    return same;
}

double hv_probe_flops(const struct hv_probe *p)
{
    const double *s = p->size;
    switch (hv_probe_kind_of(p->variant)) {
    case HV_PROBE_GEMM:
    case HV_PROBE_GROUPED: /* m: rows of all experts together */
        return 2 * s[0] * s[1] * s[2];
    case HV_PROBE_ATTENTION:
        return 4 * s[0] * s[1] * s[1] * s[2] * s[4] * (p->variant == HV_CORE_BACKWARD ? 2.5 : 1);
    case HV_PROBE_STREAM:
    case HV_PROBE_COPY:
    case HV_PROBE_LAUNCH:
    case HV_PROBE_COLLECTIVE:
    case HV_PROBE_KIND_N:
        break;
    }
    return 0;
}

/* Bytes of a stream per row of `width` numbers of `e` bytes. */
static double stream_bytes(enum hv_probe_variant v, double width, double e)
{
    /* two in, one out: the sum of two, the gated activation, the row of a table (with its index)
     * that is copied; one in, one out: norm, rope, logits to their gradient */
    if (v == HV_STREAM_ADD || v == HV_STREAM_ACTIVATION) {
        return 3 * width * e;
    }
    if (v == HV_STREAM_OPTIMIZER) {
        /* Adam: gradient (4) read; master copy and two moments (4 each) read and written; weight
         * written */
        return width * (4 + 3 * 8 + e);
    }
    return 2 * width * e;
}

double hv_probe_bytes(const struct hv_probe *p)
{
    const double *s = p->size, e = hv_precision_bytes(p->precision);
    switch (hv_probe_kind_of(p->variant)) {
    case HV_PROBE_GEMM:
        return e * (s[0] * s[2] + s[2] * s[1]) + fmax(e, 2) * s[0] * s[1];
    case HV_PROBE_GROUPED:
        return e * (s[0] * s[2] + s[3] * s[2] * s[1]) + fmax(e, 2) * s[0] * s[1];
    case HV_PROBE_ATTENTION: {
        double q = s[0] * s[1] * s[2] * s[4] * e, kv = s[0] * s[1] * s[3] * s[4] * e;
        double once = 2 * q + 2 * kv; /* queries and output, keys and values */
        return p->variant == HV_CORE_BACKWARD ? 2 * once : once;
    }
    case HV_PROBE_STREAM:
        return s[0] * stream_bytes(p->variant, s[1], e);
    case HV_PROBE_COPY:
        return p->variant == HV_COPY_DEVICE ? 2 * s[0] : s[0];
    case HV_PROBE_COLLECTIVE:
        return s[0];
    case HV_PROBE_LAUNCH:
    case HV_PROBE_KIND_N:
        break;
    }
    return 0;
}

void hv_probe_text(const struct hv_probe *p, struct hv_str *out)
{
    enum hv_probe_kind k = hv_probe_kind_of(p->variant);
    hv_str_addf(out, "%s %s", hv_probe_kind_name(k), hv_probe_variant_name(p->variant));
    if (k <= HV_PROBE_STREAM) {
        hv_str_addf(out, " %s", hv_precision_name(p->precision));
    }
    for (size_t i = 0; hv_probe_size_name(k, i) != NULL; i++) {
        hv_str_addf(out, " %s %.0f", hv_probe_size_name(k, i), p->size[i]);
    }
}
