/** Products with weights, and norms: what all parts of a transformer's graph are made of. */
#include "solver/workload/graph/model/transformer_int.h"

static const char *with(struct hv__transformer *t, const char *name, const char *member)
{
    return hv_arena_printf(t->b.arena, "%s.%s", name, member);
}

/* Dimensions of `out` that x does not have. */
static struct hv_dim_list fresh_dims(struct hv_dim_list out, struct hv_dim_list x)
{
    struct hv_dim_list fresh = {0};
    for (size_t d = 0; d < out.n; d++) {
        if (!hv_dims_hold(x.dim, x.n, out.dim[d], NULL)) {
            fresh.dim[fresh.n++] = out.dim[d];
        }
    }
    return fresh;
}

uint32_t hv__linear(struct hv__transformer *t, const char *name, uint32_t x,
                    struct hv_dim_list weight, struct hv_dim_list out, bool bias)
{
    struct hv_graph_builder *b = &t->b;
    uint32_t w = hv_build_weight(b, with(t, name, "weight"), weight);
    if (!bias) {
        return hv_build_op2(b, name, HV_OP_EINSUM, x, w, out);
    }
    uint32_t y = hv_build_op2(b, with(t, name, "product"), HV_OP_EINSUM, x, w, out);
    uint32_t add =
        hv_build_weight(b, with(t, name, "bias"), fresh_dims(out, hv_build_dims_of(b, x)));
    return hv_build_op2(b, name, HV_OP_ADD, y, add, out);
}

static uint32_t norm_of(struct hv__transformer *t, const char *name, uint32_t x,
                        enum hv_norm_kind kind)
{
    struct hv_graph_builder *b = &t->b;
    struct hv_dim_list dims = hv_build_dims_of(b, x);
    uint32_t last = dims.dim[dims.n - 1], in[3] = {x};
    size_t n = 1;
    in[n++] = hv_build_weight(b, with(t, name, "weight"), HV_DIMS(last));
    if (kind == HV_NORM_LAYERNORM) {
        in[n++] = hv_build_weight(b, with(t, name, "bias"), HV_DIMS(last));
    }
    enum hv_tensor_op_kind op = kind == HV_NORM_LAYERNORM ? HV_OP_LAYERNORM : HV_OP_RMSNORM;
    uint32_t y = hv_build_op(b, name, op, n, in, dims);
    hv_build_over(b, last);
    return y;
}

uint32_t hv__norm(struct hv__transformer *t, const char *name, uint32_t x)
{
    return norm_of(t, name, x, t->m->norm);
}

uint32_t hv__rms(struct hv__transformer *t, const char *name, uint32_t x)
{
    return norm_of(t, name, x, HV_NORM_RMSNORM);
}
