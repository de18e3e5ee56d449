/*
 * Look-ups in measured operator tables. The time of a product outside of the grid, on another
 * device of the same chip or in a precision that was not measured is derived in
 * solver/cost/device/gemm.c.
 */
#include "solver/inventory/profile.h"

#include "solver/base/units.h"
#include <math.h>

const struct hv_gemm_table *hv_profile_gemm(const struct hv_profile *p, enum hv_precision precision)
{
    const struct hv_gemm_table *other = NULL;
    bool half = precision == HV_FP16 || precision == HV_BF16;
    for (size_t i = 0; p && i < p->n_gemm; i++) {
        enum hv_precision of = p->gemm[i].precision;
        if (of == precision) {
            return &p->gemm[i];
        }
        if (half && (of == HV_FP16 || of == HV_BF16)) {
            other = &p->gemm[i];
        }
    }
    return other;
}

/* The grid point at or below log2_x, and the fraction of the step to the next one. */
static size_t find(const struct hv_log_axis *a, double log2_x, double *frac)
{
    double u = (log2_x - a->from) / a->step, last = (double)(a->count - 1);
    u = u > 0 ? u : 0;
    u = u < last ? u : last;
    size_t i = (size_t)u;
    i = i + 2 > a->count ? a->count - 2 : i;
    *frac = u - (double)i;
    return i;
}

static double between(double a, double b, double frac)
{
    return a + (b - a) * frac;
}

double hv_gemm_table_log2_flops_per_s(const struct hv_gemm_table *t, double log2_m, double log2_n,
                                      double log2_k)
{
    double fm, fn, fk;
    size_t im = find(&t->m, log2_m, &fm), in = find(&t->n, log2_n, &fn);
    size_t ik = find(&t->k, log2_k, &fk), row = t->k.count, plane = t->n.count * row;
    const double *v = t->log2_flops_per_s + im * plane + in * row + ik;
    double low = between(between(v[0], v[1], fk), between(v[row], v[row + 1], fk), fn);
    v += plane;
    double high = between(between(v[0], v[1], fk), between(v[row], v[row + 1], fk), fn);
    return between(low, high, fm);
}

double hv_stream_table_bytes_per_s(const struct hv_stream_table *t, double bytes)
{
    double frac;
    const double *v = t->log2_bytes_per_s + find(&t->bytes, log2(bytes), &frac);
    return exp2(between(v[0], v[1], frac));
}

double hv_profile_core_flops_per_s(const struct hv_profile *p, bool backward, double sequence)
{
    for (size_t i = 0; p && i < p->n_core; i++) {
        const struct hv_core_table *t = &p->core[i];
        if (t->backward == backward && (t->precision == HV_FP16 || t->precision == HV_BF16)) {
            double frac;
            const double *v = t->log2_flops_per_s + find(&t->sequence, log2(sequence), &frac);
            return exp2(between(v[0], v[1], frac));
        }
    }
    return HV_UNKNOWN;
}

size_t hv_gemm_table_size(const struct hv_gemm_table *t)
{
    return t->m.count * t->n.count * t->k.count;
}

static void copy_tables(struct hv_arena *a, const struct hv_profile *p, struct hv_profile *mine)
{
    struct hv_gemm_table *gemm = hv_arena_copy(a, p->gemm, p->n_gemm, sizeof *gemm);
    for (size_t i = 0; i < p->n_gemm; i++) {
        gemm[i].log2_flops_per_s = hv_arena_copy(a, p->gemm[i].log2_flops_per_s,
                                                 hv_gemm_table_size(&gemm[i]), sizeof(double));
    }
    mine->gemm = gemm;
    struct hv_core_table *core = hv_arena_copy(a, p->core, p->n_core, sizeof *core);
    for (size_t i = 0; i < p->n_core; i++) {
        core[i].log2_flops_per_s =
            hv_arena_copy(a, p->core[i].log2_flops_per_s, core[i].sequence.count, sizeof(double));
    }
    mine->core = core;
    if (!p->stream) {
        return;
    }
    struct hv_stream_table *stream = hv_arena_copy(a, p->stream, 1, sizeof *stream);
    stream->kernel = hv_arena_strdup(a, stream->kernel);
    stream->log2_bytes_per_s =
        hv_arena_copy(a, stream->log2_bytes_per_s, stream->bytes.count, sizeof(double));
    mine->stream = stream;
}

const struct hv_profile *hv_profile_copy(struct hv_arena *a, const struct hv_profile *p)
{
    if (!p) {
        return NULL;
    }
    struct hv_profile *mine = hv_arena_copy(a, p, 1, sizeof *mine);
    const char **texts[] = {&mine->device, &mine->source, &mine->licence, &mine->date, &mine->note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = hv_arena_strdup(a, *texts[i]);
    }
    const char **names = hv_arena_new(a, const char *, p->n_same_chip + 1);
    for (size_t i = 0; i < p->n_same_chip; i++) {
        names[i] = hv_arena_strdup(a, p->same_chip[i]);
    }
    mine->same_chip = names;
    copy_tables(a, p, mine);
    return mine;
}
