/** The table of operator kinds; names of dimensions and tensors. */
#include "solver/workload/graph/op_kinds.h"

#include "solver/workload/graph/tensor_graph.h"
#include <string.h>

static const struct hv_op_kind_row rows[HV_TENSOR_OP_KIND_N] = {
#define X(c, name, way, least, most, flops, needs) [c] = {name, least, most, flops, needs},
    HV_OP_KIND_MAP(X)
#undef X
};

const struct hv_op_kind_row *hv_op_kind_row(enum hv_tensor_op_kind k)
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

bool hv_dtype_is_real(enum hv_dtype t)
{
    return t == HV_DTYPE_F32 || t == HV_DTYPE_F16 || t == HV_DTYPE_BF16 || t == HV_DTYPE_F64 ||
           t == HV_DTYPE_F8;
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
