/*
 * Rates of kernels, real and best. The products and streams of a part are in transformer.c and
 * core.c; floor/ uses the best rates.
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

const struct hv__passes hv__one_pass = {.more = 1, .least = 1, .exact = true, .sums_frac = 1};
const struct hv__passes hv__any_pass = {.more = HUGE_VAL};

/* ---- real rates ------------------------------------------------------------------------------ */

double hv__kernel_share(const struct hv__sum *s, const struct hv__product *p)
{
    bool narrow = hv_precision_bytes(s->a->k->job.precision) <= 1;
    double grouped = s->e.calibration->v[narrow ? HV_CAL_GROUPED_8 : HV_CAL_GROUPED_16];
    switch (hv__kernel_of(s->q->moe)) {
    case HV_MOE_PADDED:
        return 1;
    case HV_MOE_BLOCK:
        return HV_EFF_BLOCK_SPARSE;
    case HV_MOE_GROUPED:
        grouped *= s->q->device->plain_rates ? 1 : hv_gemm_group_share(p->m / p->groups);
        break;
    case HV_MOE_SCATTER: /* one kernel for all: tiles are in its rows */
    case hv_moe_kernel_N:
        break;
    }
    return p->groups > 1 ? grouped : 1;
}

static struct hv_gemm_shares real_product(const struct hv__sum *s, const struct hv__product *p)
{
    return hv_gemm_shares(&s->gemm, p->m, p->n, p->k, p->groups);
}

static double real_stream(const struct hv__sum *s, double bytes)
{
    return hv_stream_share(s->q->device, bytes);
}

static double real_fused_core(const struct hv__sum *s, double compute_s, double bytes)
{
    return fmax(compute_s, bytes / s->e.bytes_per_s);
}

/* Both products over every pair, also those a mask hides, and the matrix of scores through memory
 * between them. */
static double real_unfused_core(const struct hv__sum *s, const struct hv__pairs *p)
{
    const struct hv_part_query *q = s->q;
    double pairs = s->rows * (q->tokens + q->context);
    double thin = q->device->plain_rates ? 1 : hv_efficiency_thin(q->tokens, q->tokens, p->depth);
    double rate = p->flops_per_s * thin;
    return pairs * (p->flops / rate + p->bytes / s->e.bytes_per_s);
}

const struct hv__rates hv__real_rates = {.starts = 1,
                                         .waits = true,
                                         .product = real_product,
                                         .stream = real_stream,
                                         .fused_core = real_fused_core,
                                         .unfused_core = real_unfused_core,
                                         .measured = hv__grid_s,
                                         .exchange = hv__price_exchange};

/* ---- best rates of products ------------------------------------------------------------------ */

/* Key of a stored box: the device, which gives the table, and the widths. */
struct box_key {
    const struct hv_device_kind *device;
    double n, k, groups;
};

struct hv__memo hv__box_memo(void)
{
    return hv__memo_of(sizeof(struct box_key), sizeof(struct hv_gemm_box));
}

/* Of any cut with at most so many rows; of this very cut where the degree is the query's. */
static struct hv_gemm_shares best_product(const struct hv__sum *s, const struct hv__product *p)
{
    struct hv__context *k = s->a->k;
    const struct hv__passes *passes = s->a->passes;
    if (passes->exact && !(p->unit & HV_RC_EXPERTS)) { /* of experts ranks may hold any number */
        const struct hv_gemm_rows rows = {p->m * passes->least, p->m * passes->more};
        return hv_gemm_shares_between(&s->gemm, &rows, p->n, p->k);
    }
    const struct box_key key = {s->q->device, p->n, p->k, p->groups};
    bool known;
    struct hv_gemm_box *box = hv__memo_at(&k->boxes, &key, &known);
    if (!known) {
        *box = hv_gemm_box_of(&s->gemm, p->n, p->k, p->groups);
    }
    return hv_gemm_box_shares(&s->gemm, box, p->m * passes->more);
}

/* ---- best rates of unfused attention, in slices ---------------------------------------------- */

/* Least of (a / thin(x)² + b) (at + x / 2) over slices of x tokens: their products lose speed, but
 * see fewer pairs that are masked. Between two sizes of the grid the first factor is at least that
 * of the larger, the second at least that of the smaller. */
static double least_slice(double a, double b, double at, double tokens)
{
    double best = (a + b) * (at + tokens / 2);
    for (double x = 1, next; x < tokens; x = next) {
        next = fmin(1.125 * x, tokens);
        best = fmin(best, (a / hv_efficiency_thin(next, next, HUGE_VAL) + b) * (at + x / 2));
    }
    return best;
}

/* Seconds over the pairs of a sequence, `a` per pair in products and `b` in memory, however its
 * tokens are cut into slices. A slice of x tokens behind `at` others works on x (at + x) pairs: the
 * integral over its tokens of (at + x / 2), where `at` runs over the places of the tokens. So the
 * least over x for every place is under every way to cut; strips of the integral use the place
 * where they begin. */
static double least_slices_s(double a, double b, double tokens)
{
    enum { STRIPS = 32 };
    double sum = 0;
    for (int i = 0; i < STRIPS; i++) {
        sum += least_slice(a, b, tokens * i / STRIPS, tokens);
    }
    return sum * tokens / STRIPS;
}

struct slices_key {
    double a, b, tokens;
};

struct hv__memo hv__slices_memo(void)
{
    return hv__memo_of(sizeof(struct slices_key), sizeof(double));
}

static double slices_s(struct hv__context *k, double a, double b, double tokens)
{
    const struct slices_key key = {a, b, tokens};
    bool known;
    double *time_s = hv__memo_at(&k->slices, &key, &known);
    if (!known) {
        *time_s = least_slices_s(a, b, tokens);
    }
    return *time_s;
}

/* ---- best rates of the rest ------------------------------------------------------------------ */

static double best_unfused_core(const struct hv__sum *s, const struct hv__pairs *p)
{
    bool plain = s->q->device->plain_rates;
    double rate = p->flops_per_s * (plain ? 1 : hv_efficiency_thin(HUGE_VAL, HUGE_VAL, p->depth));
    return s->q->sequences / s->depth *
           slices_s(s->a->k, p->flops / rate, p->bytes / s->e.bytes_per_s, s->q->tokens);
}

static double best_stream(const struct hv__sum *s, double bytes)
{
    return hv_stream_best_share(s->q->device, bytes * s->a->passes->more);
}

/* Compute time alone: memory traffic is not counted. */
static double best_fused_core(const struct hv__sum *s, double compute_s, double bytes)
{
    (void)s;
    (void)bytes;
    return compute_s;
}

/* Exchanges are left out: their bytes are in hv__left_out. */
static void no_exchange(const struct hv__ask *a, const struct hv__exchange *x,
                        struct hv_part_cost *out)
{
    (void)a;
    (void)x;
    (void)out;
}

const struct hv__rates hv__best_rates = {.starts = 0,
                                         .least_moved = true,
                                         .product = best_product,
                                         .stream = best_stream,
                                         .fused_core = best_fused_core,
                                         .unfused_core = best_unfused_core,
                                         .measured = hv__least_grid_s,
                                         .exchange = no_exchange};
