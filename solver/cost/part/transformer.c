/*
 * Compute time, parameters and kept bytes of the parts of a transformer. FLOPs and activation bytes
 * follow Narayanan et al. (SC'21) and Korthikanti et al. (2022) with fused attention, grouped
 * queries, gated feed-forwards, latent attention and experts. Exchanges between ranks are in
 * exchange.c, rates of kernels in rates.c.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "solver/cost/part/part_int.h"

static double norm_values(const struct hv_model *m)
{
    return (m->norm == HV_NORM_LAYERNORM ? 2.0 : 1.0) * m->hidden;
}

/* `total` parameters of which `whole` sit on every rank of a 1d group; grids cut everything. */
static double on_rank(const struct hv__sum *s, double total, double whole)
{
    if (s->q->tp_scheme != HV_TP_1D) {
        return total / s->weights_over;
    }
    whole = fmin(whole, total);
    return (total - whole) / s->t + whole;
}

/* A norm on a grid sums over the ranks that share the values of a token. */
static void add_norm_sums(struct hv__sum *s, unsigned unit)
{
    struct hv__grid *g = &s->x.grid;
    g->norms += 1;
    g->norms_again += s->q->recompute & unit ? 1 : 0;
    g->norm_sums = (s->m->norm == HV_NORM_LAYERNORM ? 2 : 1) * s->rows;
}

/* Norm in front, residual behind; kept: the input (unless the part before is computed again) and
 * the norm. */
static void add_norm_and_residual(struct hv__sum *s, unsigned input_dropped_by)
{
    double h = s->m->hidden / s->t_norm * s->rows * s->elem;
    hv__add_stream(s, &(struct hv__stream){"norm", HV_RC_NORM, 2 * h, 1.5});
    double mask = s->dropout ? h / s->elem : 0;
    hv__add_stream(s, &(struct hv__stream){"residual", 0, 3 * h + mask, 1.0 / 3});
    hv__keep(s, h, input_dropped_by);
    hv__keep(s, h, HV_RC_NORM);
    s->weight_only_bytes += 2 * h;
    add_norm_sums(s, HV_RC_NORM);
}

static void add_latent_projections(struct hv__sum *s, const struct hv_block *b,
                                   const struct hv__widths *w)
{
    const struct hv_mla *x = &b->mla;
    double h = s->m->hidden, r = s->rows;
    if (x->q_rank) {
        hv__add_product(s, &(struct hv__product){"query down gemm", HV_RC_QKV, r, x->q_rank, h, 1,
                                                 HV__CUT_NONE});
        hv__add_product(s, &(struct hv__product){"query up gemm", HV_RC_QKV, r, w->heads * w->qk,
                                                 x->q_rank, 1, HV__CUT_COLUMNS});
    } else {
        hv__add_product(s, &(struct hv__product){"query gemm", HV_RC_QKV, r, w->heads * w->qk, h, 1,
                                                 HV__CUT_COLUMNS});
    }
    hv__add_product(s, &(struct hv__product){"kv down gemm", HV_RC_QKV, r, x->kv_rank + x->rope_dim,
                                             h, 1, HV__CUT_NONE});
    hv__add_product(s, &(struct hv__product){"kv up gemm", HV_RC_QKV, r,
                                             w->heads * (x->nope_dim + w->v), x->kv_rank, 1,
                                             HV__CUT_COLUMNS});
    double latent = s->elem * r * (x->q_rank + x->kv_rank + x->rope_dim) / s->x.grid.side;
    hv__keep(s, latent, HV_RC_QKV);
    s->weight_only_bytes += latent;
}

/* Bytes that a backward pass needs besides the kept activations: with sequence parallelism the
 * gathered input of a part and the gradient of this input. */
static double gathered_bytes(const struct hv__sum *s)
{
    bool split = s->q->sequence_parallel && s->q->tp > 1 && s->q->tp_scheme == HV_TP_1D;
    return split ? 2 * s->elem * s->rows * s->m->hidden : 0;
}

/* Likewise: gradients of the intermediate values of the feed-forward. */
static double ffn_gradients_bytes(const struct hv__sum *s, const struct hv_block *b)
{
    double f = b->ffn, rows = s->rows;
    if (b->experts) {
        f = fmax(f, b->expert_ffn);
        rows *= b->top_k;
    }
    return s->elem * rows * hv_ffn_kind_matrices(b->ffn_kind) * ceil(f / s->t * (1 - 1e-12));
}

/* A byte per value of the residual stream; the unit in front of it makes it again. */
static void keep_dropout_mask(struct hv__sum *s, unsigned dropped_by)
{
    double bytes = s->dropout ? s->m->hidden / s->t_norm * s->rows : 0;
    hv__keep(s, bytes, dropped_by);
    if (bytes > 0) {
        hv_why_add(s->a->why, "dropout mask", bytes, "bytes",
                   "1 byte per value (Korthikanti et al. 2022, section 4.1)");
    }
}

/* Activations that the core keeps besides its inputs and output: fp32 row statistics, or the
 * softmax of every pair, and with dropout its mask and the masked scores. */
static void keep_core(struct hv__sum *s, const struct hv__widths *w)
{
    double pairs = w->heads * s->rows * (s->q->tokens + s->q->context);
    double bytes = s->flash     ? 4 * s->rows * w->heads
                   : s->dropout ? (2 * s->elem + 1) * pairs
                                : s->elem * pairs;
    hv__keep(s, bytes, HV_RC_CORE);
    hv_why_add(s->a->why, "attention core keeps", bytes, "bytes", "%s",
               s->flash     ? "fused: 4 bytes per token and head (row statistics)"
               : s->dropout ? "unfused: softmax, its dropout mask and their product, "
                              "5*a*s*s*b in 16 bit (Korthikanti et al. 2022, section 4.1)"
                            : "unfused: the softmax, 2*a*s*s*b in 16 bit");
}

/* Activation checkpoints of DeepSpeed's pipelines, in the years before fused kernels: every layer
 * saves and restores random states from the host and waits for the device. Seen as time per layer
 * and pass that does not depend on the layer's size in BigScience's A100 sweep; Megatron's own
 * pipelines of that time show none, and a job whose `kernels` are "fused" has none. */
static void add_layer_host(struct hv__sum *s)
{
    bool told = s->a->k->job.kernels == HV_KERNELS_FUSED;
    bool checkpoints = (s->q->recompute & HV_RC_FULL) == HV_RC_FULL;
    if (told || !checkpoints || !s->q->sharded_pipeline || !hv__on_older_stack(s->a->k, s->q)) {
        return;
    }
    double host_s = s->e.calibration->v[HV_CAL_LAYER_US] * HV_US;
    s->out.forward_s += host_s;
    s->out.input_grad_s += host_s;
    s->out.recompute_s += host_s;
    hv_why_add(s->a->why, "layer host work", host_s, "s",
               "per layer and pass of a DeepSpeed pipeline with checkpoints (%s)",
               s->e.calibration->source);
}

/* Weights beside the usual matrices, as a product of the hidden width and as many columns. */
static void add_extra(struct hv__sum *s, double weights, unsigned unit)
{
    double columns = hv__cut(s, ceil(weights / s->m->hidden), s->t);
    if (columns >= 1) {
        hv__add_product(s, &(struct hv__product){"further gemm", unit, s->rows, columns,
                                                 s->m->hidden, 1, HV__CUT_COLUMNS});
    }
}

static void price_attention(struct hv__sum *s, const struct hv_block *b)
{
    if (!b->heads) {
        return;
    }
    add_layer_host(s);
    struct hv__widths w = hv__widths_of(s, b);
    double h = s->m->hidden, r = s->rows, rope = s->m->position == HV_POSITION_ROPE;
    add_norm_and_residual(s, 0);
    if (b->mla.kv_rank) {
        add_latent_projections(s, b, &w);
    } else {
        hv__add_product(
            s, &(struct hv__product){"qkv gemm", HV_RC_QKV, r, w.projected, h, 1, HV__CUT_COLUMNS});
    }
    hv__add_stream(s,
                   &(struct hv__stream){"rope", HV_RC_QKV,
                                        rope * 2 * s->elem * r * (w.heads + w.kv_heads) * w.qk, 1});
    hv__add_core(s, b, &w);
    hv__add_product(
        s, &(struct hv__product){"out gemm", HV_RC_OUT, r, h, w.core_out, 1, HV__CUT_ROWS});
    add_extra(s, b->attention_extra, HV_RC_OUT);
    double shared = w.kv_heads * (w.qk + w.v); /* keys and values */
    hv__keep(s, s->elem * r * (w.projected - shared), HV_RC_QKV);
    hv__keep(s, s->elem * r * shared, s->q->sliced ? 0 : HV_RC_QKV);
    keep_core(s, &w);
    keep_dropout_mask(s, HV_RC_OUT);
    double scores = s->flash ? 0 : 2 * s->elem * w.heads * r * (s->q->tokens + s->q->context);
    s->out.transient_bytes += fmax(0, scores - ffn_gradients_bytes(s, b));
    hv__keep(s, s->elem * r * w.core_out, HV_RC_CORE | HV_RC_OUT);
    s->weight_only_bytes += s->elem * r * (w.projected + w.core_out);
    const struct hv_mla *x = &b->mla;
    double latent = x->kv_rank ? h * (x->q_rank + x->kv_rank + x->rope_dim) : 0;
    double total = hv_block_attention_parameters(s->m, b);
    s->out.parameters = on_rank(s, total, norm_values(s->m) + latent);
    s->x.tp_bytes = s->elem * r * h;
    s->x.tp_forward = 1;
    s->x.tp_backward =
        1 + (s->q->sequence_parallel ? 0.5 : 0) + (s->q->recompute & HV_RC_OUT ? 1 : 0);
    s->x.cp = (struct hv__cp_values){.queries = r * w.heads * w.qk,
                                     .keys = r * w.kv_heads * (w.qk + w.v),
                                     .outputs = r * w.core_out,
                                     .statistics = r * w.heads,
                                     .activations = r * h,
                                     .keys_per_rank = 1 / w.kv_heads,
                                     .elem = s->elem};
    s->out.transient_bytes += hv__cp_buffers_bytes(s->q, &s->x.cp);
}

static void price_ffn(struct hv__sum *s, const struct hv_block *b)
{
    if (!b->ffn && !b->experts) {
        return;
    }
    add_norm_and_residual(s, b->heads ? HV_RC_OUT : 0);
    if (b->ffn) {
        hv__add_ffn(s, b, &(struct hv__ffn){hv__cut(s, b->ffn, s->t), s->rows, 0, 0});
    }
    if (b->experts) {
        hv__add_experts(s, b);
    }
    add_extra(s, b->ffn_extra, b->experts ? HV_RC_EXPERTS : HV_RC_DOWN);
    keep_dropout_mask(s, b->experts ? HV_RC_EXPERTS : HV_RC_DOWN);
    s->out.transient_bytes += ffn_gradients_bytes(s, b) + gathered_bytes(s);
    double router = b->experts ? (double)s->m->hidden * b->experts : 0;
    s->out.parameters = on_rank(s, hv_block_ffn_parameters(s->m, b), norm_values(s->m) + router);
    unsigned last = b->experts ? HV_RC_EXPERTS : HV_RC_DOWN;
    s->x.tp_bytes = s->elem * s->rows * s->m->hidden;
    s->x.tp_forward = 1;
    s->x.tp_backward = 1 + (s->q->sequence_parallel ? 0.5 : 0) + (s->q->recompute & last ? 1 : 0);
    if (s->x.slices_at_experts > 0 && !b->ffn && !b->shared_experts) {
        s->x.tp_forward = s->x.tp_backward = 0; /* slices are summed */
    }
    if (b->ffn || b->shared_experts || s->t_experts >= s->t) {
        return;
    }
    /* nothing is cut by tensor parallelism: tokens stay where sequence parallelism has them, or
     * each rank sends its share of them and gathers the sums */
    s->x.tp_forward = s->q->sequence_parallel ? 0 : 0.5;
    s->x.tp_backward = s->x.tp_forward * (s->q->recompute & last ? 2 : 1);
}

static void price_embedding(struct hv__sum *s)
{
    double h = s->elem * s->rows * s->m->hidden / s->t_norm;
    if (!s->m->vocab) {
        return;
    }
    hv__add_stream(s, &(struct hv__stream){"embedding", 0, 2 * h, 2});
    keep_dropout_mask(s, 0);
    s->out.parameters = hv_model_embedding_parameters(s->m) / s->weights_over;
    if (s->x.grid.side > 1) {
        hv__add_look_up(s);
    }
    s->x.tp_bytes = s->elem * s->rows * s->m->hidden;
    s->x.tp_forward = 1;
    s->x.tp_backward = s->q->sequence_parallel ? 0.5 : 0;
}

static void price_head(struct hv__sum *s)
{
    double h = s->elem * s->rows * s->m->hidden / s->t_norm, v = hv__cut(s, s->m->vocab, s->t);
    if (!s->m->vocab) {
        return;
    }
    hv__add_stream(s, &(struct hv__stream){"final norm", 0, 2 * h, 1.5});
    add_norm_sums(s, 0);
    hv__add_product(
        s, &(struct hv__product){"head gemm", 0, s->rows, v, s->m->hidden, 1, HV__CUT_COLUMNS});
    hv__add_stream(s, &(struct hv__stream){"loss", 0, (4 + s->elem) * s->rows * v, 1});
    hv__keep(s, 2 * h, 0);
    s->weight_only_bytes += 2 * h;
    double padded = hv_model_padded_vocab(s->m, s->q->tp) / s->t;
    bool older = hv__before_fused(&s->a->k->job, s->m, s->q->device);
    double each = s->q->sharded_weights ? HV_LOGIT_BYTES_TORCH
                  : older               ? HV_LOGIT_BYTES_OLDER
                                        : HV_LOGIT_BYTES;
    double logits = each / 2 * s->elem * s->rows * padded;
    s->out.transient_bytes = logits + gathered_bytes(s);
    s->out.parameters = on_rank(s, hv_model_head_parameters(s->m), norm_values(s->m));
    s->x.tp_bytes = s->elem * s->rows * s->m->hidden;
    s->x.tp_forward = s->q->sequence_parallel ? 0.5 : 0;
    s->x.tp_backward = 1;
    hv_why_add(s->a->why, "logits", logits, "bytes",
               "%.0f tokens x %.0f entries of the padded vocabulary x %.3g bytes: %s", s->rows,
               padded, each / 2 * s->elem,
               s->q->sharded_weights   ? "product, fp32 copy, log-softmax and its gradient"
               : each > HV_LOGIT_BYTES ? "product, fp32 copy and exponentials"
                                       : "product and fp32 copy, softmax in place");
}

/* The sum of a part that nothing was added to: what one rank has of its rows, heads and widths. */
static struct hv__sum sum_of(const struct hv__ask *a)
{
    const struct hv_part_query *q = a->q;
    bool grid = q->tp_scheme != HV_TP_1D;
    int side = hv__grid_side(q);
    struct hv__sum s = {.a = a,
                        .q = q,
                        .m = a->k->model,
                        .e = hv_efficiency_of(q->device, a->k->job.precision),
                        .gemm = hv_gemm_pricer_of(q->device, a->k->job.precision),
                        .t = grid ? side : hv__tp_parts(q),
                        .t_norm = q->sequence_parallel ? q->tp : 1,
                        .depth = grid ? hv__grid_lines(q) : 1,
                        .elem = hv_job_activation_bytes(&a->k->job)};
    s.x.grid.side = side;
    s.weights_over = grid ? q->tp / hv__tp_depth(q) : s.t;
    s.t_norm = grid ? side : s.t_norm;
    s.t_experts = q->expert_tp > 0 && q->expert_tp < q->tp ? q->expert_tp : s.t;
    s.rows = q->sequences * q->tokens / q->cp / s.depth;
    struct hv_kernel_query kq = {q->device, q->sharded_weights, q->cp > 1};
    s.flash = hv_job_flash_attention(&a->k->job, s.m, &kq) &&
              (q->cp < 2 || q->cp_scheme != HV_CP_RSA); /* whose rows of scores are stored */
    s.dropout = hv_job_dropout(&a->k->job, s.m, &kq);
    s.eager = hv_job_eager_kernels(&a->k->job, s.m, &kq);
    return s;
}

static struct hv_part_cost price(const struct hv__ask *a)
{
    struct hv__sum s = sum_of(a);
    if (a->part == HV_PART_ATTENTION) {
        price_attention(&s, &s.m->blocks[a->block]);
    } else if (a->part == HV_PART_FFN) {
        price_ffn(&s, &s.m->blocks[a->block]);
    } else if (a->part == HV_PART_EMBEDDING) {
        price_embedding(&s);
    } else {
        price_head(&s);
    }
    s.out.saved_bytes = s.kept_bytes;
    s.out.saved_input_bytes = fmin(s.weight_only_bytes, s.kept_bytes);
    s.out.transient_bytes += s.full_bytes - s.kept_bytes;
    s.out.output_bytes = s.elem * s.rows * s.m->hidden / s.t_norm;
    s.out.transient_bytes += hv__grid_buffers_bytes(&s);
    a->rates->exchange(a, &s.x, &s.out);
    hv__load_free(&s.load);
    if (a->left_out) {
        *a->left_out = s.starts;
        a->left_out->tp_bytes = s.x.tp_bytes;
        a->left_out->tp_forward = s.x.tp_forward;
        a->left_out->tp_backward = s.x.tp_backward;
    }
    return s.out;
}

/* The structs may come with any padding after the flags, so those are compared by themselves. */
static bool same_block(const struct hv_model *m, size_t a, size_t b)
{
    const struct hv_block *x = &m->blocks[a], *y = &m->blocks[b];
    return !memcmp(x, y, offsetof(struct hv_block, attention_bias)) &&
           x->attention_bias == y->attention_bias && x->ffn_bias == y->ffn_bias;
}

const struct hv__parts hv__transformer_parts = {.price = price,
                                                .same_block = same_block,
                                                .check_device = hv__check_precision,
                                                .analytic = true};
