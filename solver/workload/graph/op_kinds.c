/** The table of operator kinds; names of dimensions and tensors. */
#include "solver/workload/graph/op_kinds.h"

#include "solver/workload/graph/tensor_graph.h"
#include <string.h>

static const struct hv_op_kind_row rows[HV_OP_KIND_N] = {
#define X(c, name, way, least, most, flops, needs) [c] = {name, least, most, flops, needs},
    HV_OP_KIND_MAP(X)
#undef X
};

const struct hv_op_kind_row *hv_op_kind_row(enum hv_op_kind k)
{
    return &rows[k];
}

int64_t hv_dtype_bytes(enum hv_dtype t)
{
    static const int64_t sizes[HV_DTYPE_N] = {
#define X(c, name, bytes) [c] = bytes,
        HV_DTYPE_MAP(X)
#undef X
    };
    return sizes[t];
}

uint32_t hv_tensor_graph_dim(const struct hv_tensor_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->n_dims; i++) {
        if (strcmp(g->dims[i].name, name) == 0) {
            return i;
        }
    }
    return HV_NO_DIM;
}

bool hv_dims_hold(const uint32_t *dims, size_t n, uint32_t dim, size_t *at)
{
    for (size_t i = 0; i < n; i++) {
        if (dims[i] == dim) {
            if (at != NULL) {
                *at = i;
            }
            return true;
        }
    }
    return false;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static double elements(const struct hv_tensor_graph *g, const uint32_t *dims, size_t n)
{
    double all = 1;
    for (size_t d = 0; d < n; d++) {
        all *= (double)g->dims[dims[d]].size;
    }
    return all;
}

double hv_tensor_op_product_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    if (op->n_in != 2 || (op->kind != HV_OP_EINSUM && op->kind != HV_OP_CONV)) {
        return 0;
    }
    const struct hv_tensor_use *a = &op->in[0], *b = &op->in[1];
    double flops = 2 * elements(g, out->dim, out->n_dims);
    for (size_t d = 0; d < b->n_dims; d++) { /* summed: what both have, and taps of a kernel */
        bool both = op->kind == HV_OP_CONV || hv_dims_hold(a->dim, a->n_dims, b->dim[d], NULL);
        if (both && !hv_dims_hold(out->dim, out->n_dims, b->dim[d], NULL)) {
            flops *= (double)g->dims[b->dim[d]].size;
        }
    }
    return flops;
}

double hv_tensor_op_flops(const struct hv_tensor_graph *g, const struct hv_tensor_op *op)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    double most = elements(g, out->dim, out->n_dims);
    double product = hv_tensor_op_product_flops(g, op);
    for (size_t i = 0; i < op->n_in; i++) {
        double own = elements(g, op->in[i].dim, op->in[i].n_dims);
        most = own > most ? own : most;
    }
    return product > 0 ? product : hv_op_kind_row(op->kind)->flops_per_element * most;
}
