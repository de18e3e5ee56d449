/*
 * Adds kernels and kept tensors to the price of a part: matrix products with their two gradients,
 * memory-bound kernels, bytes of activations. Rates are in rates.c.
 */
#include "solver/cost/part/part_int.h"

/* The rate that training sustains in large products times the share of it that this shape reaches.
 */
static double product_s(const struct hv__sum *s, const struct hv__product *p, double share)
{
    double flops = 2 * p->m * p->n * p->k;
    if (!(flops > 0)) {
        return 0;
    }
    if (s->in_experts && s->a->rates->starts > 0) { /* best rates: of experts one at a time */
        share *= hv__kernel_share(s, p);
    }
    return s->a->rates->starts * s->e.gemm_start_s + flops / (s->e.gemm_flops_per_s * share);
}

/* Sums of gradients are read and written whole in every weight-gradient pass; the epilogue of the
 * product hides a part of it (calibrated). */
static double accumulate_s(const struct hv__sum *s, const struct hv__product *p)
{
    double bytes = 2 * hv_job_grad_bytes(&s->a->k->job) * p->groups * p->k * p->n;
    return s->e.calibration->v[HV_CAL_ACCUMULATE] * bytes / s->e.bytes_per_s;
}

/* Narrow formats: an operand of `values` is read in 16 bit and written twice, straight and
 * transposed, in 8. */
static double cast_s(const struct hv__sum *s, double values)
{
    bool narrow = hv_precision_bytes(s->a->k->job.precision) <= 1;
    return narrow ? s->e.calibration->v[HV_CAL_CAST] * 4 * values / s->e.bytes_per_s : 0;
}

/* Seconds of one product: forward, gradients of the input and of the weights, and what is in them
 * besides the product itself. */
struct product_times {
    double steps;     /* products that these are the seconds of: 1, unless on a grid */
    double gradients; /* products of the backward pass */
    double forward_s, input_grad_s, weight_grad_s, cast_s, sums_s;
};

static void why_product(const struct hv__sum *s, const struct hv__product *p,
                        const struct product_times *t, double share)
{
    if (!s->a->why) {
        return;
    }
    const struct hv_gemm_pricer *g = &s->gemm;
    hv_why_add(s->a->why, p->name, t->forward_s, "s",
               "%.6g*%.6g*%.6g*%.6g FLOP at %.2f of %.4g TFLOP/s (%s), of which this shape reaches "
               "%.3g (%s%s%s%s%s, error band %.0f %%), casts %.3g s; input gradient %.4g s, weight "
               "gradient %.4g s with %.3g s of sums in memory",
               2 * t->steps, p->m, p->n, p->k, s->e.gemm_frac, s->e.peak_flops_per_s / HV_TFLOPS,
               s->e.source, share, hv_gemm_basis_name(g->basis), g->device ? " of " : "",
               g->device ? g->device : "", g->device ? ", " : "", g->device ? g->source : "",
               100 * g->error_frac, t->cast_s, t->input_grad_s, t->weight_grad_s, t->sums_s);
    double flops = t->steps * 2 * p->m * p->n * p->k, back_s = t->input_grad_s + t->weight_grad_s;
    double back_flops = t->gradients * flops;
    hv_why_attach(s->a->why, &(struct hv_why_work){.flops = flops,
                                                   .flops_per_s = s->e.gemm_flops_per_s * share,
                                                   .backward_s = back_s,
                                                   .backward_flops = back_flops,
                                                   .backward_flops_per_s = back_flops / back_s,
                                                   .source = s->e.source});
}

/* What a grid or a cube does besides the product itself: sums of panels in memory, blocks that are
 * kept, and exchanges of its blocks. */
static void add_blocks(struct hv__sum *s, const struct hv__product *p,
                       const struct product_times *t)
{
    double inputs = p->m * p->k, weights = p->groups * p->k * p->n, outputs = p->m * p->n;
    struct hv__grid_product g = {inputs,
                                 weights,
                                 outputs,
                                 t->forward_s,
                                 t->input_grad_s,
                                 t->weight_grad_s,
                                 (s->q->recompute & p->unit) != 0};
    hv__note_grid_product(s, &g);
    double kept = hv__grid_kept_bytes(s, &g);
    hv__keep(s, kept, p->unit);
    s->weight_only_bytes += kept;
    hv__add_stream(s, &(struct hv__stream){"sums of panels", p->unit,
                                           2 * s->elem * (t->steps - 1) * outputs, 0});
}

/* The gradients of the input and of the weights are products of shapes of their own. */
void hv__add_product(struct hv__sum *s, const struct hv__product *whole)
{
    const struct hv__rates *rates = s->a->rates;
    bool grid = s->x.grid.side > 1;
    double steps = 1;
    const struct hv__product own = grid ? hv__grid_step(s, whole, &steps) : *whole, *p = &own;
    struct hv_gemm_shares share = rates->product(s, p);
    struct product_times t = {.steps = steps,
                              .gradients = 2,
                              .forward_s = steps * product_s(s, p, share.forward),
                              .input_grad_s = steps * product_s(s, p, share.input_grad),
                              .weight_grad_s = steps * product_s(s, p, share.weight_grad)};
    if (t.forward_s > 0) {
        double sums_s = accumulate_s(s, p) / hv__grid_scattered(s), start_s = s->e.gemm_start_s;
        /* of experts a rank may hold as little as it likes */
        double least_s = p->unit & HV_RC_EXPERTS ? 0 : sums_s * s->a->passes->sums_frac;
        hv__count_start(s, start_s, start_s, start_s + least_s);
        t.sums_s = rates->starts * sums_s;
        t.cast_s = steps * cast_s(s, p->m * p->k);
        t.forward_s += t.cast_s;
        t.input_grad_s += steps * cast_s(s, p->m * p->n);
        t.weight_grad_s += t.sums_s;
    }
    s->out.forward_s += t.forward_s;
    s->out.input_grad_s += t.input_grad_s;
    s->out.weight_grad_s += t.weight_grad_s;
    if (s->q->recompute & p->unit) {
        s->out.recompute_s += t.forward_s;
    }
    s->out.flops_forward += 2 * steps * p->m * p->n * p->k;
    why_product(s, p, &t, share.forward);
    if (grid) {
        add_blocks(s, p, &t);
    }
}

void hv__add_tensor_product(struct hv__sum *s, const struct hv__product *p, bool both)
{
    double start_s = s->e.gemm_start_s;
    struct hv_gemm_shares share = s->a->rates->product(s, p);
    struct product_times t = {.steps = 1,
                              .gradients = both ? 2 : 1,
                              .forward_s = product_s(s, p, share.forward),
                              .input_grad_s = product_s(s, p, share.weight_grad)};
    t.input_grad_s += both ? product_s(s, p, share.input_grad) : 0;
    hv__count_start(s, start_s, t.gradients * start_s, 0);
    s->out.forward_s += t.forward_s;
    s->out.input_grad_s += t.input_grad_s;
    s->out.recompute_s += s->q->recompute & p->unit ? t.forward_s : 0;
    why_product(s, p, &t, share.forward);
}

static double stream_s(struct hv__sum *s, const struct hv__stream *p, double bytes, bool backward)
{
    if (!(bytes > 0)) {
        return 0;
    }
    double eager = s->eager ? s->e.calibration->v[HV_CAL_EAGER] : 1;
    eager *= p->unit & HV_RC_EXPERTS ? s->e.calibration->v[HV_CAL_EXPERT_TRAFFIC] : 1;
    double share = s->a->rates->stream(s, bytes);
    hv__count_start(s, backward ? 0 : s->e.launch_s, backward ? s->e.launch_s : 0, 0);
    return s->a->rates->starts * s->e.launch_s + eager * bytes / (s->e.bytes_per_s * share);
}

void hv__add_stream(struct hv__sum *s, const struct hv__stream *p)
{
    double time_s = stream_s(s, p, p->bytes, false);
    double back_s = stream_s(s, p, p->bytes * p->backward, true);
    s->out.forward_s += time_s;
    s->out.input_grad_s += back_s;
    if (s->q->recompute & p->unit) {
        s->out.recompute_s += time_s;
    }
    if (!s->a->why) {
        return;
    }
    hv_why_add(s->a->why, p->name, time_s, "s",
               "%.4g bytes at %.4g GB/s, of which this size reaches %.3g (%s); backward %.3g times "
               "as many",
               p->bytes, s->e.bytes_per_s / HV_GBPS,
               p->bytes > 0 ? hv_stream_share(s->q->device, p->bytes) : 1.0,
               hv_stream_source(s->q->device), p->backward);
    hv_why_attach(s->a->why, &(struct hv_why_work){.bytes = p->bytes,
                                                   .backward_s = back_s,
                                                   .backward_bytes = p->bytes * p->backward,
                                                   .source = hv_stream_source(s->q->device)});
}

/* A tensor of `values` per token, produced by `unit`, dropped when `dropped_by` are all recomputed.
 */
void hv__keep(struct hv__sum *s, double bytes, unsigned dropped_by)
{
    s->full_bytes += bytes;
    if (!dropped_by || (s->q->recompute & dropped_by) != dropped_by) {
        s->kept_bytes += bytes;
    }
}
