/** Attention of a transformer's graph: grouped queries, or latent keys and values. */
#include "solver/workload/graph/model/transformer_int.h"

/* Rotary positions: the two halves of a head are turned by the angle of their token. They move
 * nothing between tokens or heads, so the graph has a product with a table of angles. */
static uint32_t rotated(struct hv__transformer *t, const char *name, uint32_t x)
{
    struct hv_dim_list dims = hv_build_dims_of(&t->b, x);
    uint32_t width = dims.dim[dims.n - 1];
    if (t->m->position != HV_POSITION_ROPE) {
        return x;
    }
    const char *table = hv_arena_printf(t->b.arena, "angles_%s", t->b.dims.items[width].name);
    uint32_t angles = hv_build_input(&t->b, table, t->b.dtype, HV_DIMS(t->token, width));
    return hv_build_op2(&t->b, name, HV_OP_MUL, x, angles, dims);
}

/* Softmax of scaled and masked scores, whose last dimension is that of keys. */
static uint32_t probabilities(struct hv__transformer *t, uint32_t scores)
{
    struct hv_dim_list dims = hv_build_dims_of(&t->b, scores);
    uint32_t s = hv_build_op1(&t->b, "scaled", HV_OP_SCALE, scores, dims);
    if (t->m->causal) {
        s = hv_build_op2(&t->b, "masked", HV_OP_ADD, s, t->mask, dims);
    }
    s = hv_build_op1(&t->b, "probabilities", HV_OP_SOFTMAX, s, dims);
    hv_build_over(&t->b, t->key);
    return s;
}

/* Keys and values by their place as keys instead of tokens: dimension 1. */
static struct hv_dim_list as_keys(const struct hv__transformer *t, uint32_t x)
{
    struct hv_dim_list dims = hv_build_dims_of(&t->b, x);
    dims.dim[1] = t->key;
    return dims;
}

static uint32_t scores_of(struct hv__transformer *t, const char *name, uint32_t q, uint32_t k,
                          struct hv_dim_list out)
{
    struct hv_dim_list dims = as_keys(t, k);
    uint32_t s = hv_build_op2(&t->b, name, HV_OP_EINSUM, q, k, out);
    hv_build_as(&t->b, 1, dims);
    return s;
}

/* Without groups (as many heads for keys as for queries), `group` stays away. */
static uint32_t grouped(struct hv__transformer *t, const struct hv_block *b, uint32_t x)
{
    struct hv_graph_builder *g = &t->b;
    bool bias = b->attention_bias, one = b->heads == b->kv_heads;
    uint32_t heads = hv_build_dim(g, one ? "heads" : "kv_heads", b->kv_heads);
    uint32_t width = hv_build_dim(g, "head_dim", b->head_dim);
    uint32_t group = one ? 0 : hv_build_dim(g, "group", b->heads / b->kv_heads);
    struct hv_dim_list kv = HV_DIMS(t->batch, t->token, heads, width);
    struct hv_dim_list kv_weight = HV_DIMS(t->hidden, heads, width);
    struct hv_dim_list q_dims = one ? kv : HV_DIMS(t->batch, t->token, heads, group, width);
    struct hv_dim_list q_weight = one ? kv_weight : HV_DIMS(t->hidden, heads, group, width);
    struct hv_dim_list o_weight =
        one ? HV_DIMS(heads, width, t->hidden) : HV_DIMS(heads, group, width, t->hidden);
    struct hv_dim_list scores = one ? HV_DIMS(t->batch, heads, t->token, t->key)
                                    : HV_DIMS(t->batch, heads, group, t->token, t->key);
    uint32_t q = rotated(t, "q_turned", hv__linear(t, "q", x, q_weight, q_dims, bias));
    uint32_t k = rotated(t, "k_turned", hv__linear(t, "k", x, kv_weight, kv, bias));
    uint32_t v = hv__linear(t, "v", x, kv_weight, kv, bias);
    uint32_t p = probabilities(t, scores_of(t, "scores", q, k, scores));
    uint32_t c = hv_build_op2(g, "context", HV_OP_EINSUM, p, v, q_dims);
    hv_build_as(g, 1, as_keys(t, v));
    return hv__linear(t, "o", c, o_weight, HV_DIMS(t->batch, t->token, t->hidden), bias);
}

/* Latent attention, DeepSeek-V2, arXiv 2405.04434, section 2.1: keys and values from a vector of
 * kv_rank, a part of every key from one turned vector that all heads share. */
static uint32_t latent(struct hv__transformer *t, const struct hv_block *b, uint32_t x)
{
    struct hv_graph_builder *g = &t->b;
    const struct hv_mla *m = &b->mla;
    uint32_t heads = hv_build_dim(g, "heads", b->heads), n = t->batch, s = t->token;
    uint32_t nope = hv_build_dim(g, "nope", m->nope_dim),
             rope = hv_build_dim(g, "rope", m->rope_dim);
    uint32_t value = hv_build_dim(g, "value", m->value_dim);
    uint32_t kv_rank = hv_build_dim(g, "kv_rank", m->kv_rank), from = t->hidden;
    uint32_t q_in = x;
    if (m->q_rank > 0) {
        from = hv_build_dim(g, "q_rank", m->q_rank);
        q_in = hv__rms(
            t, "q_norm",
            hv__linear(t, "q_down", x, HV_DIMS(t->hidden, from), HV_DIMS(n, s, from), false));
    }
    uint32_t q =
        hv__linear(t, "q", q_in, HV_DIMS(from, heads, nope), HV_DIMS(n, s, heads, nope), false);
    uint32_t qr = hv__linear(t, "q_rope", q_in, HV_DIMS(from, heads, rope),
                             HV_DIMS(n, s, heads, rope), false);
    uint32_t kr = hv__linear(t, "k_rope", x, HV_DIMS(t->hidden, rope), HV_DIMS(n, s, rope), false);
    uint32_t c = hv__rms(
        t, "kv_norm",
        hv__linear(t, "kv_down", x, HV_DIMS(t->hidden, kv_rank), HV_DIMS(n, s, kv_rank), false));
    uint32_t k =
        hv__linear(t, "k", c, HV_DIMS(kv_rank, heads, nope), HV_DIMS(n, s, heads, nope), false);
    uint32_t v =
        hv__linear(t, "v", c, HV_DIMS(kv_rank, heads, value), HV_DIMS(n, s, heads, value), false);
    struct hv_dim_list all = HV_DIMS(n, heads, s, t->key);
    uint32_t plain = scores_of(t, "scores_nope", q, k, all);
    uint32_t turned =
        scores_of(t, "scores_rope", rotated(t, "q_turned", qr), rotated(t, "k_turned", kr), all);
    uint32_t p = probabilities(t, hv_build_op2(g, "scores", HV_OP_ADD, plain, turned, all));
    uint32_t y = hv_build_op2(g, "context", HV_OP_EINSUM, p, v, HV_DIMS(n, s, heads, value));
    hv_build_as(g, 1, as_keys(t, v));
    return hv__linear(t, "o", y, HV_DIMS(heads, value, t->hidden), HV_DIMS(n, s, t->hidden), false);
}

uint32_t hv__attention(struct hv__transformer *t, const struct hv_block *b, uint32_t x)
{
    return b->mla.kv_rank > 0 ? latent(t, b, x) : grouped(t, b, x);
}
