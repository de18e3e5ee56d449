/*
 * The core of attention: scores, softmax and values of every query-key pair, fused or not, and how
 * large the share of the slowest rank of a ring is.
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

/* Query-key pairs of one sequence: each token sees those before it, at most `window` of them. */
static double pairs_until(double x, double window)
{
    if (window > 0 && x > window) {
        return window * x - window * window / 2;
    }
    return x * x / 2;
}

static double attention_pairs(const struct hv_model *m, const struct hv_block *b,
                              const struct hv_part_query *q)
{
    double s = q->tokens, seen = q->context;
    if (m->causal) {
        return pairs_until(seen + s, b->window) - pairs_until(seen, b->window);
    }
    return s * (b->window > 0 ? fmin(s + seen, 2.0 * b->window) : s + seen);
}

struct hv__widths hv__widths_of(const struct hv__sum *s, const struct hv_block *b)
{
    struct hv__widths w = {.heads = hv__cut(s, b->heads, s->t),
                           .kv_heads = hv__cut(s, b->kv_heads, s->t),
                           .qk = b->head_dim,
                           .v = b->head_dim};
    if (b->mla.kv_rank) {
        w.qk = b->mla.nope_dim + b->mla.rope_dim;
        w.v = b->mla.value_dim;
        w.kv_heads = w.heads;
    }
    w.projected = w.heads * w.qk + w.kv_heads * (w.qk + w.v);
    w.core_out = w.heads * w.v;
    return w;
}

/* Work of the slowest rank of a causal ring with contiguous shards over the mean; 1 for all other
 * attention. */
static double ring_imbalance(const struct hv__sum *s)
{
    const struct hv_part_query *q = s->q;
    bool ring = q->cp_scheme != HV_CP_ULYSSES && q->cp_heads < q->cp;
    if (q->cp < 2 || !s->m->causal || !ring || q->cp_layout != HV_CP_CONTIGUOUS) {
        return 1;
    }
    double c = (double)q->cp / (q->cp_heads > 1 ? q->cp_heads : 1);
    return 2 - 1 / c;
}

/* Bytes per query-key pair that three separate kernels move (16 bit, scale, mask and softmax in
 * one): scores out, softmax in and out, dropout in, out and mask, probabilities in; backward the
 * same with gradients and what was kept. */
static double unfused_pair_bytes(const struct hv__sum *s, bool backward)
{
    double passes = backward ? 7 : 4;
    return s->elem * passes + (s->dropout ? s->elem * 2 + 1 : 0);
}

static double unfused_s(struct hv__sum *s, const struct hv__widths *w, bool backward)
{
    double start_s = (backward ? 7 : 4) * s->e.launch_s;
    bool aligned = fmod(w->qk, HV_EFF_ALIGNED) == 0 && fmod(w->v, HV_EFF_ALIGNED) == 0;
    double rate =
        aligned || s->q->device->plain_rates ? s->e.core16_flops_per_s : s->e.scalar_flops_per_s;
    const struct hv__pairs pairs = {.flops = 2 * w->heads * (w->qk + w->v) * (backward ? 2 : 1),
                                    .bytes = unfused_pair_bytes(s, backward) * w->heads,
                                    .flops_per_s = rate,
                                    .depth = w->qk};
    hv__count_start(s, backward ? 0 : start_s, backward ? start_s : 0, 0);
    return s->a->rates->starts * start_s + s->a->rates->unfused_core(s, &pairs);
}

/* FLOP/s of the fused core: the profile's, slowed as training slows the best product of the
 * profile, else the calibrated share of the peak. */
static double core_rate(const struct hv__sum *s, bool backward)
{
    const struct hv_profile *p = hv_device_profile(s->q->device);
    double isolated = hv_profile_core_flops_per_s(p, backward, s->q->tokens + s->q->context);
    const struct hv_gemm_table *best = hv_profile_gemm(p, HV_BF16);
    if (hv_known(isolated) && best != NULL) {
        return isolated * fmin(s->e.core16_flops_per_s / best->best_flops_per_s, 1);
    }
    return backward ? s->e.core_backward_flops_per_s : s->e.core_forward_flops_per_s;
}

static double fused_s(struct hv__sum *s, const struct hv__widths *w, double flops, bool backward)
{
    double rate = core_rate(s, backward) / (backward ? HV_FLASH_BACKWARD : 1);
    if (s->eager) {
        rate *= s->e.calibration->v[HV_CAL_EAGER_CORE];
    }
    double compute_s = ring_imbalance(s) * flops / rate;
    if (!(flops > 0)) {
        return compute_s;
    }
    hv__count_start(s, backward ? 0 : s->e.launch_s, backward ? s->e.launch_s : 0, 0);
    double bytes = (backward ? 2 : 1) * s->elem * s->rows * (w->projected + w->core_out);
    return s->a->rates->starts * s->e.launch_s + s->a->rates->fused_core(s, compute_s, bytes);
}

void hv__add_core(struct hv__sum *s, const struct hv_block *b, const struct hv__widths *w)
{
    double pairs = attention_pairs(s->m, b, s->q) * s->q->sequences / s->depth / s->q->cp;
    double flops = 2 * w->heads * (w->qk + w->v) * pairs;
    double forward_s = s->flash ? fused_s(s, w, flops, false) : unfused_s(s, w, false);
    double backward_s = s->flash ? fused_s(s, w, flops, true) : unfused_s(s, w, true);
    s->out.forward_s += forward_s;
    s->out.input_grad_s += backward_s;
    if (s->q->recompute & HV_RC_CORE) {
        s->out.recompute_s += forward_s;
    }
    s->out.flops_forward += flops;
    s->x.cp_hidden_forward_s = forward_s;
    s->x.cp_hidden_backward_s = backward_s;
    if (s->flash) {
        hv_why_add(s->a->why, "attention core", forward_s, "s",
                   "%.6g FLOP at %.4g TFLOP/s, fused, slowest rank %.3g of the mean; backward 2.5 "
                   "times the FLOP, %.4g s (%s)",
                   flops, core_rate(s, false) / HV_TFLOPS, ring_imbalance(s), backward_s,
                   s->e.source);
    } else {
        hv_why_add(
            s->a->why, "attention core", forward_s, "s",
            "unfused: both products over all pairs, and %.0f bytes per pair and head through "
            "memory; backward %.4g s with %.0f bytes",
            unfused_pair_bytes(s, false), backward_s, unfused_pair_bytes(s, true));
    }
}
