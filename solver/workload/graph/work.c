/** FLOPs of operators, parameters of graphs. */
#include "solver/workload/graph/work.h"

#include <math.h>
#include <string.h>

double hv_tensor_elements(const struct hv_tensor_graph *g, const struct hv_tensor *t)
{
    double n = 1;
    for (size_t d = 0; d < t->n_dims; d++) {
        n *= (double)g->dims[t->dim[d]].size;
    }
    return n;
}

/* Dimensions of a product so far; einsums of 8 operands of 8 dimensions fit. */
struct dims {
    size_t n;
    uint32_t dim[64 * HV_TENSOR_DIMS];
};

static void join(struct dims *all, const struct hv_tensor_use *u)
{
    for (size_t d = 0; d < u->n_dims; d++) {
        if (!hv_dims_hold(all->dim, all->n, u->dim[d], NULL)) {
            all->dim[all->n++] = u->dim[d];
        }
    }
}

static double size_of(const struct hv_tensor_graph *g, const struct dims *all)
{
    double n = 1;
    for (size_t d = 0; d < all->n; d++) {
        n *= (double)g->dims[all->dim[d]].size;
    }
    return n;
}

/* Leaves the dimensions that the result or a later operand has. */
static void keep_needed(const struct hv_tensor_graph *g, const struct hv_tensor_op *op, size_t next,
                        struct dims *all)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    size_t n = 0;
    for (size_t d = 0; d < all->n; d++) {
        bool needed = hv_dims_hold(out->dim, out->n_dims, all->dim[d], NULL);
        for (size_t i = next; i < op->n_in && !needed; i++) {
            needed = hv_dims_hold(op->in[i].dim, op->in[i].n_dims, all->dim[d], NULL);
        }
        if (needed) {
            all->dim[n++] = all->dim[d];
        }
    }
    all->n = n;
}

static double einsum_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    struct dims all = {0};
    double flops = 0;
    join(&all, &op->in[0]);
    if (op->n_in == 1) {
        return size_of(g, &all);
    }
    for (size_t i = 1; i < op->n_in; i++) {
        join(&all, &op->in[i]);
        flops += 2 * size_of(g, &all);
        keep_needed(g, op, i + 1, &all);
    }
    return flops;
}

/* Each element of the result is a sum over the kernel and the channels of its group: over the
 * dimensions of operand 1 that the result does not have. */
static double conv_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    double flops = 2 * hv_tensor_elements(g, out);
    for (size_t d = 0; d < op->in[1].n_dims; d++) {
        if (!hv_dims_hold(out->dim, out->n_dims, op->in[1].dim[d], NULL)) {
            flops *= (double)g->dims[op->in[1].dim[d]].size;
        }
    }
    return flops;
}

static double pool_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    double flops = hv_tensor_elements(g, &g->tensors[op->out]);
    for (size_t i = 0; i < op->n_windows; i++) {
        flops *= (double)op->window[i].size;
    }
    return flops;
}

double hv_tensor_op_product_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    if (op->kind == HV_OP_CONV) {
        return conv_flops(g, op);
    }
    return op->kind == HV_OP_EINSUM && op->n_in > 1 ? einsum_flops(g, op) : 0;
}

double hv_tensor_op_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    if (op->kind == HV_OP_EINSUM || op->kind == HV_OP_CONV) {
        return op->kind == HV_OP_CONV ? conv_flops(g, op) : einsum_flops(g, op);
    }
    if (op->kind == HV_OP_POOL) {
        return pool_flops(g, op);
    }
    double most = hv_tensor_elements(g, &g->tensors[op->out]);
    for (size_t i = 0; i < op->n_in; i++) {
        most = fmax(most, hv_tensor_elements(g, &g->tensors[op->in[i].tensor]));
    }
    return hv_op_kind_row(op->kind)->flops_per_element * most;
}

double hv_tensor_graph_parameters(const struct hv_tensor_graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_given; i++) {
        bool counts = g->tensors[i].role == HV_TENSOR_PARAMETER;
        sum += counts ? hv_tensor_elements(g, &g->tensors[i]) : 0;
    }
    return sum;
}
