/* The weight tensors of a block. All counts of its parameters are sums of these. */
#include "solver/workload/tensors.h"

double hv_norm_parameters(const struct hv_model *m)
{
    return (m->norm == HV_NORM_LAYERNORM ? 2.0 : 1.0) * m->hidden;
}

static void add(struct hv_weight *out, size_t *n, double parameters)
{
    out[(*n)++] = (struct hv_weight){parameters, false};
}

/* The norm of a half, and what the model gives beside the figures of its shape. */
static void add_norm(const struct hv_model *m, double extra, struct hv_weight *out, size_t *n)
{
    add(out, n, hv_norm_parameters(m) + extra);
}

/* Low-rank query and key/value projections with the norms of their ranks; DeepSeek-V2, arXiv
 * 2405.04434, section 2.1. */
static void add_mla(const struct hv_model *m, const struct hv_block *b, struct hv_weight *out,
                    size_t *n)
{
    const struct hv_mla *x = &b->mla;
    double h = m->hidden, a = b->heads, qk = x->nope_dim + x->rope_dim;
    add(out, n, a * x->value_dim * h);
    add(out, n, x->kv_rank * a * (x->nope_dim + x->value_dim));
    add(out, n, h * (x->kv_rank + x->rope_dim) + x->kv_rank);
    if (x->q_rank) {
        add(out, n, x->q_rank * a * qk);
        add(out, n, h * x->q_rank + x->q_rank);
    } else {
        add(out, n, h * a * qk);
    }
}

static size_t attention_tensors(const struct hv_model *m, const struct hv_block *b,
                                struct hv_weight *out)
{
    size_t n = 0;
    if (b->heads == 0) {
        return 0;
    }
    if (b->mla.kv_rank) {
        add_mla(m, b, out, &n);
    } else {
        double h = m->hidden, q = (double)b->heads * b->head_dim;
        double kv = 2.0 * b->kv_heads * b->head_dim, bias = b->attention_bias ? 1 : 0;
        add(out, &n, q * h + bias * h);
        add(out, &n, h * (q + kv) + bias * (q + kv));
    }
    add_norm(m, b->attention_extra, out, &n);
    return n;
}

/* `times` feed-forward parts of this width: the matrices down, and those up and gate. */
static void add_parts(const struct hv_model *m, const struct hv_block *b, double width,
                      double times, struct hv_weight *out, size_t *n)
{
    double up = hv_ffn_kind_matrices(b->ffn_kind) - 1, bias = b->ffn_bias ? 1 : 0;
    add(out, n, times * (width * m->hidden + bias * m->hidden));
    add(out, n, times * (up * width * m->hidden + bias * up * width));
}

static size_t feed_forward_tensors(const struct hv_model *m, const struct hv_block *b,
                                   struct hv_weight *out)
{
    size_t n = 0;
    if (b->experts) {
        add_parts(m, b, b->expert_ffn, b->experts, out, &n);
        out[0].routed = out[1].routed = true;
        if (b->shared_experts) {
            add_parts(m, b, b->shared_ffn, b->shared_experts, out, &n);
        }
    }
    if (b->ffn) {
        add_parts(m, b, b->ffn, 1, out, &n);
    }
    if (b->experts) {
        add(out, &n, (double)m->hidden * b->experts); /* the router */
    }
    if (n > 0) {
        add_norm(m, b->ffn_extra, out, &n);
    }
    return n;
}

size_t hv_half_tensors(const struct hv_model *m, const struct hv_block *b, bool feed_forward,
                       struct hv_weight *out)
{
    return feed_forward ? feed_forward_tensors(m, b, out) : attention_tensors(m, b, out);
}
