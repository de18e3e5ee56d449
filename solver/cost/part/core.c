/*
 * The core of attention: scores, softmax and values of every query-key pair, fused or not, and the
 * steps in which the ranks of a ring compute them.
 */
#include <math.h>

#include "solver/cost/device/era.h"
#include "solver/cost/part/part_int.h"
#include "solver/workload/attention_work.h"

/* Query-key pairs of one sequence: each token sees those before it, at most `window` of them. */
static double pairs_until(double x, double window)
{
    if (window > 0 && x > window) {
        return window * x - window * window / 2;
    }
    return x * x / 2;
}

/* Pairs of all documents of a micro-batch, each by itself. */
static double document_pairs(const struct hv_model *m, const struct hv_block *b,
                             const struct hv_documents *d)
{
    double pairs = 0;
    for (size_t i = 0; i < d->n; i++) {
        double x = d->lengths[i];
        pairs += m->causal ? pairs_until(x, b->window)
                           : x * fmin(x, b->window > 0 ? 2.0 * b->window : x);
    }
    return pairs;
}

static double attention_pairs(const struct hv_model *m, const struct hv_block *b,
                              const struct hv_part_query *q)
{
    double s = q->tokens, seen = q->context;
    if (b->reach > 0 && b->reach < s) { /* along one dimension: as many sequences of its size */
        double keys = m->causal ? pairs_until(b->reach, b->window) / b->reach
                                : fmin(b->reach, b->window > 0 ? 2.0 * b->window : b->reach);
        return s * keys;
    }
    if (q->documents != NULL && q->documents->n > 0) {
        return document_pairs(m, b, q->documents) / q->documents->tokens * s;
    }
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

/* A step after the first merges its partial output into those before, weighted by their statistics;
 * backward it adds up gradients. The share of its block's time that this takes: contiguous outputs
 * are merged in place, halves (zigzag) and outputs shifted by one token (striped) through copies.
 * Three numbers per pass, between the shares that the README of github.com/zhuzilin/
 * ring-flash-attention (commit 01c8baf, 8192 tokens per rank) prints for 8 A100 and for 8 H800, so
 * neither table is a test of them; that of zigzag is lower than the A100 alone gives (0.27 and
 * 0.11), for the rows of Megatron-LM in share/validation, whose kernels merge in fewer passes. The
 * share is taken as the same at all lengths, although a merge grows with the tokens and a block
 * with their square. */
static double merge_share(enum hv_cp_layout layout, bool backward)
{
    static const double forward[hv_cp_layout_N] = {0.03, 0.17, 0.43};
    static const double sums[hv_cp_layout_N] = {0.028, 0.03, 0.16};
    return (backward ? sums : forward)[layout];
}

/* Adds the pairs of one sequence, or of a document, that the ranks of a ring share by its layout; a
 * length that they do not divide is padded. */
static void add_ring_pairs(const struct hv__sum *s, int64_t ranks, double tokens,
                           enum hv_cp_layout layout, struct hv_ring_pairs *sum)
{
    static const enum hv_token_layout layouts[hv_cp_layout_N] = {
        HV_TOKENS_CONTIGUOUS, HV_TOKENS_ZIGZAG, HV_TOKENS_STRIPED};
    int64_t parts = 2 * ranks;
    const struct hv_attention_ring ring = {
        .ranks = ranks,
        .tokens = (int64_t)ceil(fmax(tokens, 1) / (double)parts) * parts,
        .tile = s->q->cp_tile > 0 ? s->q->cp_tile : 128,
        .layout = layouts[layout],
        .causal = s->m->causal};
    struct hv_ring_pairs p = {0};
    struct hv_err err;
    if (hv_attention_ring_pairs(&ring, &p, &err) == HV_OK) {
        sum->same += p.same;
        sum->before += p.before;
        sum->after += p.after;
    }
}

/* Of every sequence, or of all documents, each of which is spread over the ranks. */
static struct hv_ring_pairs ring_pairs(const struct hv__sum *s, int64_t ranks,
                                       enum hv_cp_layout layout)
{
    const struct hv_documents *d = s->q->documents;
    struct hv_ring_pairs sum = {0};
    if (d == NULL || d->n == 0) {
        add_ring_pairs(s, ranks, s->q->tokens, layout, &sum);
        return sum;
    }
    for (size_t i = 0; i < d->n; i++) {
        add_ring_pairs(s, ranks, d->lengths[i], layout, &sum);
    }
    return sum;
}

/* Steps of the rank that computes most in each, in shares of what a rank computes in the mean when
 * the sequence is worked on whole. */
static struct hv__ring_steps ring_shares(const struct hv__sum *s, bool backward)
{
    const struct hv_part_query *q = s->q;
    struct hv__cp_shape shape = hv__cp_shape_of(q);
    int64_t n = shape.ring, teams = shape.inner;
    if (n < 2 || q->cp_scheme == HV_CP_DSP || !s->a->rates->waits) {
        return (struct hv__ring_steps){1, 1, 0};
    }
    bool helped = q->cp_scheme == HV_CP_DISTFLASH && s->m->causal;
    bool team = q->cp_scheme == HV_CP_WALLFACER && teams > 1;
    enum hv_cp_layout layout = helped ? HV_CP_CONTIGUOUS : q->cp_layout;
    struct hv_ring_pairs p = ring_pairs(s, team ? n / teams : n, layout);
    double mean = ring_pairs(s, 1, HV_CP_CONTIGUOUS).same / (double)n;
    double most = fmax(p.before, p.after) / mean, first = p.same / mean;
    double merge = merge_share(layout, backward);
    if (q->cp_scheme == HV_CP_ALL_GATHER) {
        return (struct hv__ring_steps){1, first + (double)(n - 1) * most, 0};
    }
    if (team) {
        double c = (double)teams, step = fmax(first, most);
        int64_t rounds = n / (teams * teams); /* 0: the plan breaks a rule */
        return (struct hv__ring_steps){rounds > 0 ? (int)rounds : 1,
                                       step * (1 + (c - 1) / c * merge), step * (1 + merge)};
    }
    int steps = helped ? 1 + (int)(n / 2) : (int)n;
    return (struct hv__ring_steps){steps, first, most * (1 + merge)};
}

static double all_steps(const struct hv__ring_steps *t)
{
    return t->first + (t->n - 1) * t->step;
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

/* Share of that rate that narrow heads reach: softmax takes as long for every pair, and they have
 * fewer FLOPs per pair. On Ampere, whose tensor cores are slower beside the units of exponentials,
 * runs of narrow and of wide heads show no difference. */
static double narrow_share(const struct hv__sum *s, const struct hv__widths *w, bool backward)
{
    double width = (w->qk + w->v) / 2;
    if (s->q->device->plain_rates || width >= HV_EFF_CORE_WIDTH ||
        !hv__since_hopper(s->q->device)) {
        return 1;
    }
    double pairs = backward ? HV_EFF_CORE_PAIRS_BACK : HV_EFF_CORE_PAIRS;
    return 1 / (1 - pairs + pairs * HV_EFF_CORE_WIDTH / width);
}

static double fused_s(struct hv__sum *s, const struct hv__widths *w, double flops, bool backward)
{
    double rate = core_rate(s, backward) / (backward ? HV_FLASH_BACKWARD : 1);
    rate *= narrow_share(s, w, backward);
    if (s->eager) {
        rate *= s->e.calibration->v[HV_CAL_EAGER_CORE];
    }
    struct hv__ring_steps t = ring_shares(s, backward);
    double compute_s = all_steps(&t) * flops / rate;
    if (!(flops > 0)) {
        return compute_s;
    }
    hv__count_start(s, backward ? 0 : s->e.launch_s, backward ? s->e.launch_s : 0, 0);
    double bytes = (backward ? 2 : 1) * s->elem * s->rows * (w->projected + w->core_out);
    return s->a->rates->starts * s->e.launch_s + s->a->rates->fused_core(s, compute_s, bytes);
}

/* Seconds of a core spread over its steps; a core that stores its scores has equal ones. */
static struct hv__ring_steps steps_s(const struct hv__sum *s, double time_s, bool backward)
{
    struct hv__ring_steps t = ring_shares(s, backward);
    if (!s->flash && t.n > 1) {
        t.first = t.step = 1;
    }
    double all = all_steps(&t);
    t.first *= time_s / all;
    t.step *= time_s / all;
    return t;
}

static void why_core(const struct hv__sum *s, const struct hv__widths *w, double flops,
                     double forward_s, double backward_s)
{
    struct hv_why_work work = {.flops = flops,
                               .backward_s = backward_s,
                               .backward_flops = HV_FLASH_BACKWARD * flops,
                               .source = s->e.source};
    if (s->flash) {
        struct hv__ring_steps t = ring_shares(s, false);
        work.flops_per_s = core_rate(s, false) * narrow_share(s, w, false);
        work.backward_flops_per_s = core_rate(s, true) * narrow_share(s, w, true);
        hv_why_add(s->a->why, "attention core", forward_s, "s",
                   "%.6g FLOP at %.4g TFLOP/s, fused, slowest rank %.3g of the mean in %d step%s; "
                   "backward 2.5 times the FLOP, %.4g s (%s)",
                   flops, work.flops_per_s / HV_TFLOPS, all_steps(&t), t.n, t.n > 1 ? "s" : "",
                   backward_s, s->e.source);
    } else {
        work.flops_per_s = flops / forward_s;
        work.backward_flops = 2 * flops;
        work.backward_flops_per_s = 2 * flops / backward_s;
        hv_why_add(
            s->a->why, "attention core", forward_s, "s",
            "unfused: both products over all pairs, and %.0f bytes per pair and head through "
            "memory; backward %.4g s with %.0f bytes",
            unfused_pair_bytes(s, false), backward_s, unfused_pair_bytes(s, true));
    }
    hv_why_attach(s->a->why, &work);
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
    s->x.ring_forward_s = steps_s(s, forward_s, false);
    s->x.ring_backward_s = steps_s(s, backward_s, true);
    why_core(s, w, flops, forward_s, backward_s);
}
