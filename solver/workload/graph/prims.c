/** Primitives: names, and appending them to a graph. */
#include "solver/workload/graph/prims.h"

#include <string.h>

const char *hv_prim_name(const struct hv_prim *p)
{
    static const char *const fns[HV_FN_N] = {
#define X(c, name, linear, additive) [c] = name,
        HV_FN_MAP(X)
#undef X
    };
    static const char *const names[] = {
        [HV_PRIM_CONSTANT] = "constant",
        [HV_PRIM_BROADCAST] = "broadcast_in_dim",
        [HV_PRIM_REDUCE] = "reduce",
        [HV_PRIM_DOT] = "dot_general",
        [HV_PRIM_CONV] = "convolution",
        [HV_PRIM_REDUCE_WINDOW] = "reduce_window",
        [HV_PRIM_RESHAPE] = "reshape",
        [HV_PRIM_TRANSPOSE] = "transpose",
        [HV_PRIM_SLICE] = "slice",
        [HV_PRIM_PAD] = "pad",
        [HV_PRIM_CONCAT] = "concatenate",
        [HV_PRIM_GATHER] = "gather",
        [HV_PRIM_SCATTER] = "scatter",
        [HV_PRIM_SORT] = "sort",
        [HV_PRIM_TOP_K] = "top_k",
        [HV_PRIM_REVERSE] = "reverse",
        [HV_PRIM_SELECT_ADD] = "select_and_scatter",
    };
    return p->kind == HV_PRIM_ELEMENTWISE                          ? fns[p->fn]
           : p->kind == HV_PRIM_WHOLE || p->kind == HV_PRIM_OPAQUE ? p->name
                                                                   : names[p->kind];
}

/* Room for one more in an array of the arena; old copies stay there until it is freed. */
static void *more(struct hv_arena *arena, void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return items;
    }
    *cap = *cap > 0 ? 2 * *cap : 64;
    char *bigger = hv_arena_alloc(arena, *cap, size);
    if (n > 0) {
        memcpy(bigger, items, n * size);
    }
    return bigger;
}

uint32_t hv_prim_tensor_add(struct hv_prim_graph *g, const struct hv_shape *shape)
{
    g->tensors = more(g->arena, g->tensors, g->n_tensors, &g->cap_tensors, sizeof *g->tensors);
    g->tensors[g->n_tensors].shape = *shape;
    return (uint32_t)g->n_tensors++;
}

struct hv_prim *hv_prim_add(struct hv_prim_graph *g, enum hv_prim_kind kind, const uint32_t *in,
                            size_t n_in, const struct hv_shape *result)
{
    uint32_t out = hv_prim_tensor_add(g, result);
    g->prims = more(g->arena, g->prims, g->n_prims, &g->cap_prims, sizeof *g->prims);
    struct hv_prim *p = &g->prims[g->n_prims++];
    *p = (struct hv_prim){.kind = kind, .n_in = (uint8_t)n_in, .n_out = 1};
    p->tensor = hv_arena_new(g->arena, uint32_t, n_in + 2);
    for (size_t i = 0; i < n_in; i++) {
        p->tensor[i] = in[i];
    }
    p->tensor[n_in] = out;
    return p;
}

uint32_t hv_prim_last(const struct hv_prim_graph *g)
{
    const struct hv_prim *p = &g->prims[g->n_prims - 1];
    return p->tensor[p->n_in];
}

const struct hv_shape *hv_prim_shape(const struct hv_prim_graph *g, uint32_t tensor)
{
    return &g->tensors[tensor].shape;
}

uint32_t hv_prim_constant(struct hv_prim_graph *g, double value, const struct hv_shape *shape)
{
    struct hv_shape scalar = {.element_bytes = shape->element_bytes};
    hv_prim_add(g, HV_PRIM_CONSTANT, NULL, 0, &scalar)->value = value;
    if (shape->n_dims == 0) {
        return hv_prim_last(g);
    }
    return hv_prim_broadcast(g, hv_prim_last(g), NULL, shape);
}

uint32_t hv_prim_fn(struct hv_prim_graph *g, enum hv_fn fn, uint32_t a, uint32_t b)
{
    const uint32_t in[2] = {a, b};
    struct hv_shape shape = *hv_prim_shape(g, a);
    hv_prim_add(g, HV_PRIM_ELEMENTWISE, in, 2, &shape)->fn = fn;
    return hv_prim_last(g);
}

uint32_t hv_prim_fn1(struct hv_prim_graph *g, enum hv_fn fn, uint32_t a)
{
    struct hv_shape shape = *hv_prim_shape(g, a);
    hv_prim_add(g, HV_PRIM_ELEMENTWISE, &a, 1, &shape)->fn = fn;
    return hv_prim_last(g);
}

uint32_t hv_prim_select(struct hv_prim_graph *g, uint32_t which, uint32_t a, uint32_t b)
{
    const uint32_t in[3] = {which, a, b};
    struct hv_shape shape = *hv_prim_shape(g, a);
    hv_prim_add(g, HV_PRIM_ELEMENTWISE, in, 3, &shape)->fn = HV_FN_SELECT;
    return hv_prim_last(g);
}

uint32_t hv_prim_reduce(struct hv_prim_graph *g, enum hv_reduce_by by, uint32_t a, uint32_t dims)
{
    struct hv_shape from = *hv_prim_shape(g, a), to = {.element_bytes = from.element_bytes};
    for (size_t d = 0; d < from.n_dims; d++) {
        if ((dims >> d & 1) == 0) {
            to.size[to.n_dims++] = from.size[d];
        }
    }
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_REDUCE, &a, 1, &to);
    p->by = by;
    for (size_t d = 0; d < from.n_dims; d++) {
        if ((dims >> d & 1) != 0) {
            p->axis[p->n_axes++] = (int8_t)d;
        }
    }
    return hv_prim_last(g);
}

uint32_t hv_prim_broadcast(struct hv_prim_graph *g, uint32_t a, const int8_t *to,
                           const struct hv_shape *shape)
{
    size_t n = hv_prim_shape(g, a)->n_dims;
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_BROADCAST, &a, 1, shape);
    p->n_axes = (uint8_t)n;
    for (size_t d = 0; d < n; d++) {
        p->axis[d] = to[d];
    }
    return hv_prim_last(g);
}

uint32_t hv_prim_transpose(struct hv_prim_graph *g, uint32_t a, const int8_t *from)
{
    struct hv_shape old = *hv_prim_shape(g, a), shape = old;
    bool moves = false;
    for (size_t d = 0; d < old.n_dims; d++) {
        shape.size[d] = old.size[from[d]];
        moves = moves || from[d] != (int8_t)d;
    }
    if (!moves) {
        return a;
    }
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_TRANSPOSE, &a, 1, &shape);
    p->n_axes = old.n_dims;
    memcpy(p->axis, from, old.n_dims);
    return hv_prim_last(g);
}

uint32_t hv_prim_reshape(struct hv_prim_graph *g, uint32_t a, const struct hv_shape *shape)
{
    hv_prim_add(g, HV_PRIM_RESHAPE, &a, 1, shape);
    return hv_prim_last(g);
}

bool hv_prim_only_reshapes(const struct hv_prim_graph *g, const struct hv_prim *p)
{
    if (p->kind != HV_PRIM_RESHAPE && p->kind != HV_PRIM_TRANSPOSE && p->kind != HV_PRIM_REDUCE) {
        return false;
    }
    const struct hv_shape *from = hv_prim_shape(g, p->tensor[0]);
    const struct hv_shape *to = hv_prim_shape(g, p->tensor[1]);
    int64_t n = 1, m = 1;
    for (size_t d = 0; d < from->n_dims; d++) {
        n *= from->size[d];
    }
    for (size_t d = 0; d < to->n_dims; d++) {
        m *= to->size[d];
    }
    return n == m;
}
