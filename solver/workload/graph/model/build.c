/** Builder of graphs in long form. */
#include "solver/workload/graph/model/build.h"

#include <inttypes.h>
#include <string.h>

#define RESULT (UINT32_C(1) << 31) /* numbers of results until given tensors are counted */

uint32_t hv_build_dim(struct hv_graph_builder *b, const char *name, int64_t size)
{
    bool taken = false;
    for (size_t i = 0; i < b->dims.n; i++) {
        bool same = strcmp(b->dims.items[i].name, name) == 0;
        if (same && b->dims.items[i].size == size) {
            return (uint32_t)i;
        }
        taken = taken || same;
    }
    if (taken) {
        return hv_build_dim(b, hv_arena_printf(b->arena, "%s_%" PRId64, name, size), size);
    }
    struct hv_tensor_dim d = {hv_arena_strdup(b->arena, name), size};
    hv_vec_push(&b->dims, d);
    return (uint32_t)(b->dims.n - 1);
}

static struct hv_tensor named(struct hv_graph_builder *b, const char *name, struct hv_dim_list dims)
{
    struct hv_tensor t = {.name = hv_arena_printf(b->arena, "%s%s", b->prefix, name),
                          .role = HV_TENSOR_RESULT,
                          .dtype = b->dtype,
                          .n_dims = dims.n};
    memcpy(t.dim, dims.dim, sizeof t.dim);
    return t;
}

static uint32_t add_given(struct hv_graph_builder *b, struct hv_tensor t, enum hv_tensor_role role,
                          enum hv_dtype dtype)
{
    t.role = role;
    t.dtype = dtype;
    hv_vec_push(&b->given, t);
    return (uint32_t)(b->given.n - 1);
}

uint32_t hv_build_input(struct hv_graph_builder *b, const char *name, enum hv_dtype dtype,
                        struct hv_dim_list dims)
{
    for (size_t i = 0; i < b->given.n; i++) {
        if (b->given.items[i].role == HV_TENSOR_INPUT &&
            strcmp(b->given.items[i].name, name) == 0) {
            return (uint32_t)i;
        }
    }
    const char *prefix = b->prefix;
    b->prefix = "";
    struct hv_tensor t = named(b, name, dims);
    b->prefix = prefix;
    return add_given(b, t, HV_TENSOR_INPUT, dtype);
}

uint32_t hv_build_weight(struct hv_graph_builder *b, const char *name, struct hv_dim_list dims)
{
    return add_given(b, named(b, name, dims), HV_TENSOR_PARAMETER, b->dtype);
}

static const struct hv_tensor *tensor_at(const struct hv_graph_builder *b, uint32_t tensor)
{
    return (tensor & RESULT) != 0 ? &b->results.items[tensor & ~RESULT] : &b->given.items[tensor];
}

struct hv_dim_list hv_build_dims_of(const struct hv_graph_builder *b, uint32_t tensor)
{
    const struct hv_tensor *t = tensor_at(b, tensor);
    struct hv_dim_list dims = {.n = t->n_dims};
    memcpy(dims.dim, t->dim, sizeof dims.dim);
    return dims;
}

uint32_t hv_build_op(struct hv_graph_builder *b, const char *name, enum hv_tensor_op_kind kind,
                     size_t n, const uint32_t *in, struct hv_dim_list out)
{
    struct hv_tensor t = named(b, name, out);
    struct hv_tensor_op op = {.id = t.name, .kind = kind, .n_in = (uint8_t)n, .feature_groups = 1};
    op.in = hv_arena_new(b->arena, struct hv_tensor_use, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct hv_tensor *from = tensor_at(b, in[i]);
        op.in[i].tensor = in[i];
        op.in[i].n_dims = from->n_dims;
        memcpy(op.in[i].dim, from->dim, sizeof op.in[i].dim);
    }
    t.dtype = n > 0 ? tensor_at(b, in[0])->dtype : b->dtype;
    op.out = RESULT | (uint32_t)b->results.n;
    hv_vec_push(&b->results, t);
    hv_vec_push(&b->ops, op);
    return op.out;
}

uint32_t hv_build_op1(struct hv_graph_builder *b, const char *name, enum hv_tensor_op_kind kind,
                      uint32_t in, struct hv_dim_list out)
{
    return hv_build_op(b, name, kind, 1, &in, out);
}

uint32_t hv_build_op2(struct hv_graph_builder *b, const char *name, enum hv_tensor_op_kind kind,
                      uint32_t in, uint32_t in2, struct hv_dim_list out)
{
    return hv_build_op(b, name, kind, 2, (uint32_t[]){in, in2}, out);
}

struct hv_tensor_op *hv_build_last(struct hv_graph_builder *b)
{
    return &b->ops.items[b->ops.n - 1];
}

void hv_build_as(struct hv_graph_builder *b, size_t operand, struct hv_dim_list dims)
{
    struct hv_tensor_use *u = &hv_build_last(b)->in[operand];
    memcpy(u->dim, dims.dim, sizeof u->dim);
}

void hv_build_over(struct hv_graph_builder *b, uint32_t dim)
{
    struct hv_tensor_op *op = hv_build_last(b);
    op->over[op->n_over++] = dim;
}

/* Number of a tensor when given ones stand before results. */
static uint32_t settled(const struct hv_graph_builder *b, uint32_t tensor)
{
    return (tensor & RESULT) != 0 ? (uint32_t)b->given.n + (tensor & ~RESULT) : tensor;
}

static void copy_all(struct hv_graph_builder *b, struct hv_tensor_graph *g)
{
    g->n_dims = b->dims.n;
    g->n_given = b->given.n;
    g->n_tensors = b->given.n + b->results.n;
    g->n_ops = b->ops.n;
    g->dims = hv_arena_copy(b->arena, b->dims.items, g->n_dims, sizeof *g->dims);
    g->ops = hv_arena_copy(b->arena, b->ops.items, g->n_ops, sizeof *g->ops);
    g->tensors = hv_arena_new(b->arena, struct hv_tensor, g->n_tensors + 1);
    for (size_t i = 0; i < g->n_given; i++) {
        g->tensors[i] = b->given.items[i];
    }
    for (size_t i = 0; i < b->results.n; i++) {
        g->tensors[g->n_given + i] = b->results.items[i];
    }
    for (size_t i = 0; i < g->n_ops; i++) {
        g->ops[i].out = settled(b, g->ops[i].out);
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            g->ops[i].in[k].tensor = settled(b, g->ops[i].in[k].tensor);
        }
    }
}

enum hv_status hv_build_finish(struct hv_graph_builder *b, struct hv_tensor_graph *out,
                               struct hv_err *err)
{
    *out = (struct hv_tensor_graph){0};
    copy_all(b, out);
    hv_vec_free(&b->dims);
    hv_vec_free(&b->given);
    hv_vec_free(&b->results);
    hv_vec_free(&b->ops);
    for (size_t i = 0; i < out->n_ops; i++) {
        struct hv_err own = {0};
        if (hv_tensor_op_check(out, &out->ops[i], &own)) {
            return hv_err_set(err, HV_EINTERNAL, "operator \"%.80s\": %s", out->ops[i].id,
                              own.text);
        }
    }
    return HV_OK;
}
