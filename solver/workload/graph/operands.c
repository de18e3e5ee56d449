/** Operands of an operator as primitive tensors, and in the dimensions of its result. */
#include "solver/workload/graph/expand_int.h"

struct hv_shape hv_tensor_shape(const struct hv_tensor_graph *g, const struct hv_tensor *t)
{
    struct hv_shape s = {.n_dims = t->n_dims, .element_bytes = hv_dtype_bytes(t->dtype)};
    for (size_t d = 0; d < t->n_dims; d++) {
        s.size[d] = g->dims[t->dim[d]].size;
    }
    return s;
}

uint32_t hv__operand(const struct hv__expand *x, size_t i)
{
    return x->out->tensor_of[x->op->in[i].tensor];
}

/* An operand in the dimensions of the result: transposed into their order, then repeated over those
 * it lacks, in two steps as jax does it (new dimensions of size 1 first). */
uint32_t hv__aligned(const struct hv__expand *x, size_t i)
{
    const struct hv_tensor_use *u = &x->op->in[i];
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct hv_prim_graph *b = &x->out->prims;
    int8_t from[HV_TENSOR_DIMS] = {0}, to[HV_TENSOR_DIMS] = {0};
    size_t n = 0;
    for (size_t d = 0; d < out->n_dims; d++) {
        size_t at = 0;
        if (hv_dims_hold(u->dim, u->n_dims, out->dim[d], &at)) {
            from[n] = (int8_t)at;
            to[n++] = (int8_t)d;
        }
    }
    uint32_t t = hv_prim_transpose(b, hv__operand(x, i), from);
    if (n == out->n_dims) {
        return t;
    }
    struct hv_shape full = hv_tensor_shape(x->g, out), ones = full;
    full.element_bytes = ones.element_bytes = hv_prim_shape(b, t)->element_bytes;
    bool same = true; /* the operand has all but leading dimensions of size 1 already */
    for (size_t d = 0; d < out->n_dims; d++) {
        bool held = hv_dims_hold(u->dim, u->n_dims, out->dim[d], NULL);
        ones.size[d] = held ? full.size[d] : 1;
        same = same && ones.size[d] == full.size[d];
    }
    int8_t all[HV_TENSOR_DIMS];
    for (size_t d = 0; d < out->n_dims; d++) {
        all[d] = (int8_t)d;
    }
    if (n == 0) {
        return hv_prim_broadcast(b, t, NULL, &full);
    }
    t = hv_prim_broadcast(b, t, to, &ones);
    return same ? t : hv_prim_broadcast(b, t, all, &full);
}
