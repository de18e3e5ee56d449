/** Rules of whole operators. */
#include "solver/workload/graph/op_rule.h"

#include "solver/workload/graph/expand.h"
#include <string.h>

struct build {
    const struct hv_tensor_graph *g;
    const struct hv_tensor_op *op;
    struct hv_op_rule *r;
    uint32_t dim[HV_RULE_FACTORS]; /* of each factor */
    bool full;
};

/* What happens along a dimension that stands in operands only. */
static enum hv_factor_kind gone(const struct hv_tensor_op *op)
{
    if (op->kind == HV_OP_REDUCE || op->kind == HV_OP_POOL) {
        return op->by == HV_BY_SUM || op->by == HV_BY_MEAN ? HV_FACTOR_SUM : HV_FACTOR_MAX;
    }
    if (op->kind == HV_OP_EMBEDDING || op->kind == HV_OP_GATHER) {
        return HV_FACTOR_INDEXED;
    }
    return op->kind == HV_OP_EINSUM || op->kind == HV_OP_CONV || op->kind == HV_OP_SCATTER_ADD
               ? HV_FACTOR_SUM
               : HV_FACTOR_WHOLE;
}

static bool needs_whole(const struct hv_tensor_op *op, uint32_t dim)
{
    bool over = hv_dims_hold(op->over, op->n_over, dim, NULL);
    if (op->kind == HV_OP_OPAQUE) {
        return !over;
    }
    return over && op->kind != HV_OP_EMBEDDING && op->kind != HV_OP_GATHER &&
           op->kind != HV_OP_SCATTER_ADD;
}

static uint8_t factor_of(struct build *b, uint32_t dim, enum hv_factor_kind kind)
{
    for (uint8_t f = 0; f < b->r->n_factors; f++) {
        if (b->dim[f] == dim) {
            return f;
        }
    }
    if (b->r->n_factors == HV_RULE_FACTORS) {
        b->full = true;
        return 0;
    }
    b->dim[b->r->n_factors] = dim;
    b->r->factor[b->r->n_factors] = (struct hv_factor){
        .kind = needs_whole(b->op, dim) ? HV_FACTOR_WHOLE : kind, .size = b->g->dims[dim].size};
    return b->r->n_factors++;
}

static const struct hv_tensor_window *window_at(const struct hv_tensor_op *op, uint32_t dim)
{
    for (size_t i = 0; i < op->n_windows; i++) {
        if (op->window[i].of == dim) {
            return &op->window[i];
        }
    }
    return NULL;
}

static bool is_tap(const struct hv_tensor_op *op, uint32_t dim)
{
    for (size_t i = 0; i < op->n_windows; i++) {
        if (op->window[i].tap == dim) {
            return true;
        }
    }
    return false;
}

static void map_operand(struct build *b, size_t t)
{
    const struct hv_tensor_use *u = &b->op->in[t];
    struct hv_tensor_map *map = &b->r->map[t];
    map->n_dims = u->n_dims;
    for (size_t d = 0; d < u->n_dims; d++) {
        const struct hv_tensor_window *w = t == 0 ? window_at(b->op, u->dim[d]) : NULL;
        map->dim[d].n = 1;
        if (w != NULL) {
            map->dim[d].factor[0] = factor_of(b, w->out, HV_FACTOR_WINDOW);
            map->dim[d].window = (struct hv_window){
                w->size, w->stride, w->pad[0], w->dilation, 1, b->g->dims[w->out].size, false};
            continue;
        }
        enum hv_factor_kind kind = is_tap(b->op, u->dim[d]) ? HV_FACTOR_WHOLE : gone(b->op);
        bool grouped = b->op->kind == HV_OP_CONV && b->op->feature_groups > 1 && t == 1;
        map->dim[d].factor[0] = factor_of(b, u->dim[d], grouped ? HV_FACTOR_WHOLE : kind);
    }
}

static void map_result(struct build *b)
{
    const struct hv_tensor *out = &b->g->tensors[b->op->out];
    struct hv_tensor_map *map = &b->r->map[b->r->n_in];
    map->n_dims = out->n_dims;
    for (size_t d = 0; d < out->n_dims; d++) {
        bool window = false;
        for (size_t i = 0; i < b->op->n_windows; i++) {
            window = window || b->op->window[i].out == out->dim[d];
        }
        map->dim[d].n = 1;
        map->dim[d].factor[0] =
            factor_of(b, out->dim[d], window ? HV_FACTOR_WINDOW : HV_FACTOR_PARALLEL);
    }
}

/* Operands that the result is linear in, by themselves and together. */
static void linear(struct build *b)
{
    const struct hv_tensor_op *op = b->op;
    uint32_t all = (uint32_t)((1ULL << op->n_in) - 1);
    struct hv_op_rule *r = b->r;
    switch (op->kind) {
    case HV_OP_EINSUM:
    case HV_OP_CONV:
    case HV_OP_MUL:
        r->linear_in = all;
        break;
    case HV_OP_ADD:
    case HV_OP_SUB:
    case HV_OP_CONCAT:
        r->additive_in = all;
        break;
    case HV_OP_DIV:
    case HV_OP_NEG:
    case HV_OP_SCALE:
    case HV_OP_CAST:
    case HV_OP_CUMSUM:
    case HV_OP_EMBEDDING:
    case HV_OP_GATHER:
        r->linear_in = 1;
        break;
    case HV_OP_REDUCE:
    case HV_OP_POOL:
        r->linear_in = gone(op) == HV_FACTOR_SUM ? 1 : 0;
        break;
    case HV_OP_TRANSPOSE:
    case HV_OP_BROADCAST:
        r->linear_in = 1;
        r->moves = true;
        break;
    case HV_OP_WHERE:
        r->additive_in = 6;
        break;
    case HV_OP_SCATTER_ADD:
        r->additive_in = 5;
        r->added = 1;
        break;
    case HV_OP_MAXIMUM:
    case HV_OP_MINIMUM:
    case HV_OP_EXP:
    case HV_OP_LOG:
    case HV_OP_TANH:
    case HV_OP_SIGMOID:
    case HV_OP_SQRT:
    case HV_OP_RSQRT:
    case HV_OP_ABS:
    case HV_OP_RELU:
    case HV_OP_SILU:
    case HV_OP_GELU:
    case HV_OP_SOFTMAX:
    case HV_OP_LAYERNORM:
    case HV_OP_RMSNORM:
    case HV_OP_CROSS_ENTROPY:
    case HV_OP_SORT:
    case HV_OP_TOP_K:
    case HV_OP_FFT:
    case HV_OP_CHOLESKY:
    case HV_OP_OPAQUE:
    case HV_OP_RESHAPE: /* by their primitive */
    case HV_OP_SLICE:
    case HV_OP_PAD:
    case HV_OP_REVERSE:
    case HV_TENSOR_OP_KIND_N:
        break;
    }
}

/* Operators that are one primitive: its rule. */
static enum hv_status from_primitive(struct build *b, struct hv_arena *arena, struct hv_err *err)
{
    struct hv_tensor_graph one = *b->g;
    struct hv_expansion x;
    struct hv_tensor_op op = *b->op;
    one.ops = &op;
    one.n_ops = 1;
    one.n_given = b->op->out;
    enum hv_status st = hv_expand(&one, arena, &x, err);
    for (size_t f = 0; f < HV_RULE_FACTORS; f++) {
        b->dim[f] = HV_NO_DIM;
    }
    return st ? st : hv_prim_rule(&x.prims, &x.prims.prims[x.prims.n_prims - 1], arena, b->r, err);
}

enum hv_status hv_tensor_op_rule(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 struct hv_arena *arena, struct hv_op_rule *out,
                                 uint32_t *factor_dim, struct hv_err *err)
{
    *out = (struct hv_op_rule){.n_in = op->n_in, .n_out = 1};
    struct build b = {.g = g, .op = op, .r = out};
    enum hv_status st = HV_OK;
    if (op->kind == HV_OP_RESHAPE || op->kind == HV_OP_SLICE || op->kind == HV_OP_PAD ||
        op->kind == HV_OP_REVERSE) {
        st = from_primitive(&b, arena, err);
    } else {
        out->map = hv_arena_new(arena, struct hv_tensor_map, op->n_in + 2U);
        map_result(&b);
        for (size_t t = 0; t < op->n_in; t++) {
            map_operand(&b, t);
        }
        linear(&b);
    }
    if (factor_dim != NULL) {
        memcpy(factor_dim, b.dim, sizeof b.dim);
    }
    return b.full ? hv_err_set(err, HV_ELIMIT, "operator \"%.80s\" has more than %d dimensions",
                               op->id, HV_RULE_FACTORS)
                  : st;
}
