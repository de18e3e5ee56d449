/** The table of operator kinds, and what an operator must have. */
#include "solver/workload/graph/op_kinds.h"

#include "solver/workload/graph/tensor_graph.h"
#include <inttypes.h>
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

const char *hv_reduce_name(enum hv_reduce_by b)
{
    static const char *const names[HV_BY_N] = {"sum", "mean", "max", "min"};
    return names[b];
}

const char *hv_dtype_name(enum hv_dtype t)
{
    static const char *const names[HV_DTYPE_N] = {
#define X(c, name, bytes) [c] = name,
        HV_DTYPE_MAP(X)
#undef X
    };
    return names[t];
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

uint32_t hv_tensor_graph_tensor(const struct hv_tensor_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        if (strcmp(g->tensors[i].name, name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
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

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *dim_name(const struct hv_tensor_graph *g, uint32_t d)
{
    return g->dims[d].name;
}

/* Some operand has the dimension. */
static bool read_by(const struct hv_tensor_op *op, uint32_t dim)
{
    for (size_t i = 0; i < op->n_in; i++) {
        if (hv_dims_hold(op->in[i].dim, op->in[i].n_dims, dim, NULL)) {
            return true;
        }
    }
    return false;
}

/* Dimensions of the result that come from elsewhere than an operand's dimension of that name. */
static bool made_here(const struct hv_tensor_op *op, uint32_t dim)
{
    for (size_t i = 0; i < op->n_windows; i++) {
        if (op->window[i].out == dim) {
            return true;
        }
    }
    for (size_t i = 0; i < op->n_groups; i++) {
        if (op->group[i].whole == dim ||
            hv_dims_hold(op->group[i].part, op->group[i].n_parts, dim, NULL)) {
            return true;
        }
    }
    return op->kind == HV_OP_BROADCAST || op->kind == HV_OP_OPAQUE || op->kind == HV_OP_RESHAPE ||
           op->kind == HV_OP_SLICE || op->kind == HV_OP_PAD || op->kind == HV_OP_TOP_K ||
           (op->kind == HV_OP_CONCAT && hv_dims_hold(op->over, op->n_over, dim, NULL));
}

static enum hv_status check_result(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                   struct hv_err *err)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    for (size_t d = 0; d < out->n_dims; d++) {
        if (!read_by(op, out->dim[d]) && !made_here(op, out->dim[d])) {
            return hv_err_set(err, HV_EINPUT,
                              "the result has the dimension \"%.80s\", which no operand has",
                              dim_name(g, out->dim[d]));
        }
        for (size_t k = 0; k < d; k++) {
            if (out->dim[k] == out->dim[d]) {
                return hv_err_set(err, HV_EINPUT, "the result has the dimension \"%.80s\" twice",
                                  dim_name(g, out->dim[d]));
            }
        }
    }
    return HV_OK;
}

/* Operands whose dimensions all stand in the result, in any order, or may be reduced. */
static enum hv_status check_operands(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                     struct hv_err *err)
{
    const struct hv_op_kind_row *row = &rows[op->kind];
    if (op->n_in < row->least_in || op->n_in > row->most_in) {
        return hv_err_set(err, HV_EINPUT, "%s takes %d to %d operands, found %d", row->name,
                          row->least_in, row->most_in, op->n_in);
    }
    const struct hv_tensor *out = &g->tensors[op->out];
    bool same = row->flops_per_element > 0 && row->needs == 0 && op->kind != HV_OP_OPAQUE;
    for (size_t i = 0; same && i < op->n_in; i++) {
        for (size_t d = 0; d < op->in[i].n_dims; d++) {
            if (!hv_dims_hold(out->dim, out->n_dims, op->in[i].dim[d], NULL)) {
                return hv_err_set(err, HV_EINPUT,
                                  "%s works element by element, but the result has no dimension "
                                  "\"%.80s\" of its operand %zu",
                                  row->name, dim_name(g, op->in[i].dim[d]), i + 1);
            }
        }
    }
    return HV_OK;
}

static enum hv_status check_window(const struct hv_tensor_graph *g,
                                   const struct hv_tensor_window *w, struct hv_err *err)
{
    int64_t covered = (w->size - 1) * w->dilation + 1, of = g->dims[w->of].size;
    int64_t out = (of + w->pad[0] + w->pad[1] - covered) / w->stride + 1;
    if (of + w->pad[0] + w->pad[1] < covered || out != g->dims[w->out].size) {
        return hv_err_set(err, HV_EINPUT,
                          "a window of %" PRId64 " over \"%.80s\" gives %" PRId64
                          " elements, but \"%.80s\" has %" PRId64,
                          w->size, dim_name(g, w->of),
                          of + w->pad[0] + w->pad[1] < covered ? 0 : out, dim_name(g, w->out),
                          g->dims[w->out].size);
    }
    if (w->tap != HV_NO_DIM && g->dims[w->tap].size != w->size) {
        return hv_err_set(err, HV_EINPUT,
                          "the window's size is %" PRId64 ", but its tap \"%.80s\" has %" PRId64,
                          w->size, dim_name(g, w->tap), g->dims[w->tap].size);
    }
    return HV_OK;
}

static enum hv_status check_group(const struct hv_tensor_graph *g, const struct hv_tensor_group *p,
                                  struct hv_err *err)
{
    int64_t product = 1;
    for (size_t i = 0; i < p->n_parts; i++) {
        product *= g->dims[p->part[i]].size;
    }
    return product == g->dims[p->whole].size
               ? HV_OK
               : hv_err_set(err, HV_EINPUT,
                            "the parts of \"%.80s\" have %" PRId64 " elements together, it has "
                            "%" PRId64,
                            dim_name(g, p->whole), product, g->dims[p->whole].size);
}

static enum hv_status check_elements(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                     struct hv_err *err)
{
    double in = 1, out = 1;
    const struct hv_tensor *y = &g->tensors[op->out];
    for (size_t d = 0; d < y->n_dims; d++) {
        out *= (double)g->dims[y->dim[d]].size;
    }
    for (size_t d = 0; d < op->in[0].n_dims; d++) {
        in *= (double)g->dims[op->in[0].dim[d]].size;
    }
    return in == out ? HV_OK
                     : hv_err_set(err, HV_EINPUT,
                                  "a reshape keeps the number of elements, but %.0f become %.0f",
                                  in, out);
}

enum hv_status hv_tensor_op_check(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                  struct hv_err *err)
{
    enum hv_status st = check_operands(g, op, err);
    st = st ? st : check_result(g, op, err);
    for (size_t i = 0; st == HV_OK && i < op->n_windows; i++) {
        st = check_window(g, &op->window[i], err);
    }
    for (size_t i = 0; st == HV_OK && i < op->n_groups; i++) {
        st = check_group(g, &op->group[i], err);
    }
    return st == HV_OK && op->kind == HV_OP_RESHAPE ? check_elements(g, op, err) : st;
}
