/** Feed-forward parts of a transformer's graph: dense, gated, experts with dispatch and combine. */
#include "solver/workload/graph/model/transformer_int.h"

/* Width of a part and the dimensions around it: rows are [batch, tokens], or [experts, capacity].
 */
struct part {
    const char *name;
    uint32_t row[2], ffn;
    bool experts; /* the weights have row[0] too */
    bool bias;
};

static struct hv_dim_list weight_dims(const struct part *p, uint32_t from, uint32_t to)
{
    return p->experts ? HV_DIMS(p->row[0], from, to) : HV_DIMS(from, to);
}

static const char *name_of(struct hv__transformer *t, const struct part *p, const char *name)
{
    return p->name[0] != '\0' ? hv_arena_printf(t->b.arena, "%s_%s", p->name, name) : name;
}

/* Experts have a bias of their own each: over their dimension and the new one. */
static uint32_t matrix(struct hv__transformer *t, const struct part *p, const char *word,
                       uint32_t x, uint32_t from, uint32_t to)
{
    struct hv_graph_builder *b = &t->b;
    const char *name = name_of(t, p, word);
    struct hv_dim_list out = HV_DIMS(p->row[0], p->row[1], to);
    if (!p->experts || !p->bias) {
        return hv__linear(t, name, x, weight_dims(p, from, to), out, p->bias);
    }
    uint32_t y = hv__linear(t, hv_arena_printf(b->arena, "%s.product", name), x,
                            weight_dims(p, from, to), out, false);
    uint32_t bias =
        hv_build_weight(b, hv_arena_printf(b->arena, "%s.bias", name), HV_DIMS(p->row[0], to));
    return hv_build_op2(b, name, HV_OP_ADD, y, bias, out);
}

static uint32_t activation(struct hv__transformer *t, const struct part *p, enum hv_ffn_kind kind,
                           uint32_t x)
{
    static const enum hv_tensor_op_kind ops[HV_FFN_KIND_N] = {
        [HV_FFN_GELU] = HV_OP_GELU, [HV_FFN_RELU] = HV_OP_RELU,   [HV_FFN_RELU2] = HV_OP_RELU,
        [HV_FFN_SILU] = HV_OP_SILU, [HV_FFN_SWIGLU] = HV_OP_SILU, [HV_FFN_GEGLU] = HV_OP_GELU,
    };
    struct hv_graph_builder *b = &t->b;
    struct hv_dim_list dims = hv_build_dims_of(b, x);
    uint32_t y = hv_build_op1(b, name_of(t, p, "act"), ops[kind], x, dims);
    return kind == HV_FFN_RELU2 ? hv_build_op2(b, name_of(t, p, "square"), HV_OP_MUL, y, y, dims)
                                : y;
}

static uint32_t part(struct hv__transformer *t, const struct part *p, enum hv_ffn_kind kind,
                     uint32_t x)
{
    uint32_t up = matrix(t, p, "up", x, t->hidden, p->ffn), y = up;
    if (hv_ffn_kind_matrices(kind) == 3) {
        uint32_t gate = matrix(t, p, "gate", x, t->hidden, p->ffn);
        y = hv_build_op2(&t->b, name_of(t, p, "gated"), HV_OP_MUL, activation(t, p, kind, gate), up,
                         HV_DIMS(p->row[0], p->row[1], p->ffn));
    } else {
        y = activation(t, p, kind, up);
    }
    return matrix(t, p, "down", y, p->ffn, t->hidden);
}

/* Each expert takes the rows of its tokens, and their results are added to their tokens, weighted:
 * rows of the gates by the same numbers, of which the expert's own column is taken. */
static uint32_t experts(struct hv__transformer *t, const struct hv_block *b, uint32_t x)
{
    struct hv_graph_builder *g = &t->b;
    int64_t rows = t->sequences * t->tokens;
    int64_t most = (rows * b->top_k + b->experts - 1) / b->experts;
    uint32_t e = hv_build_dim(g, "experts", b->experts), row = hv_build_dim(g, "rows", rows);
    uint32_t c = hv_build_dim(g, "capacity", most), k = hv_build_dim(g, "top_k", b->top_k);
    uint32_t own = hv_build_dim(g, "gates", b->experts);
    uint32_t flat = hv_build_op1(g, "rows", HV_OP_RESHAPE, x, HV_DIMS(row, t->hidden));
    struct hv_tensor_op *op = hv_build_last(g);
    op->group[op->n_groups++] = (struct hv_tensor_group){row, 2, {t->batch, t->token}};
    uint32_t gates = hv__linear(t, "router", flat, HV_DIMS(t->hidden, e), HV_DIMS(row, e), false);
    gates = hv_build_op1(g, "gates", HV_OP_SOFTMAX, gates, HV_DIMS(row, e));
    hv_build_over(g, e);
    uint32_t best = hv_build_op1(g, "top_k", HV_OP_TOP_K, gates, HV_DIMS(row, k));
    hv_build_over(g, e);
    uint32_t places = hv_build_op1(g, "places", HV_OP_OPAQUE, best, HV_DIMS(e, c));
    uint32_t taken =
        hv_build_op2(g, "dispatch", HV_OP_GATHER, flat, places, HV_DIMS(e, c, t->hidden));
    hv_build_over(g, row);
    struct part p = {
        "expert", {e, c}, hv_build_dim(g, "expert_ffn", b->expert_ffn), true, b->ffn_bias};
    uint32_t y = part(t, &p, b->ffn_kind, taken);
    uint32_t all = hv_build_op2(g, "gates_taken", HV_OP_GATHER, gates, places, HV_DIMS(e, c, own));
    hv_build_as(g, 0, HV_DIMS(row, own));
    hv_build_over(g, row);
    uint32_t which = hv_build_input(g, "own_gate", g->dtype, HV_DIMS(e, own));
    uint32_t weight = hv_build_op2(g, "weights", HV_OP_EINSUM, all, which, HV_DIMS(e, c));
    y = hv_build_op2(g, "weighted", HV_OP_MUL, y, weight, HV_DIMS(e, c, t->hidden));
    uint32_t zero = hv_build_input(g, "zero", g->dtype, (struct hv_dim_list){0});
    uint32_t none = hv_build_op1(g, "none", HV_OP_BROADCAST, zero, HV_DIMS(row, t->hidden));
    y = hv_build_op(g, "combine", HV_OP_SCATTER_ADD, 3, (uint32_t[]){none, places, y},
                    HV_DIMS(row, t->hidden));
    hv_build_over(g, row);
    y = hv_build_op1(g, "tokens", HV_OP_RESHAPE, y, HV_DIMS(t->batch, t->token, t->hidden));
    op = hv_build_last(g);
    op->group[op->n_groups++] = (struct hv_tensor_group){row, 2, {t->batch, t->token}};
    return y;
}

uint32_t hv__feed_forward(struct hv__transformer *t, const struct hv_block *b, uint32_t x)
{
    struct hv_dim_list dims = HV_DIMS(t->batch, t->token, t->hidden);
    uint32_t y = HV_NO_DIM;
    if (b->ffn > 0) {
        struct part p = {
            "", {t->batch, t->token}, hv_build_dim(&t->b, "ffn", b->ffn), false, b->ffn_bias};
        y = part(t, &p, b->ffn_kind, x);
    }
    if (b->experts == 0) {
        return y;
    }
    uint32_t routed = experts(t, b, x);
    y = y == HV_NO_DIM ? routed : hv_build_op2(&t->b, "with_dense", HV_OP_ADD, y, routed, dims);
    if (b->shared_experts > 0) {
        int64_t width = (int64_t)b->shared_experts * b->shared_ffn;
        struct part p = {"shared",
                         {t->batch, t->token},
                         hv_build_dim(&t->b, "shared_ffn", width),
                         false,
                         b->ffn_bias};
        y = hv_build_op2(&t->b, "with_shared", HV_OP_ADD, y, part(t, &p, b->ffn_kind, x), dims);
    }
    return y;
}
