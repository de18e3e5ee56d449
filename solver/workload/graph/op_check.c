/** What an operator must have: operands, dimensions and sizes that fit its kind. */
#include "solver/base/str.h"
#include "solver/workload/graph/tensor_graph.h"

#include <inttypes.h>
#include <string.h>

#define MOST_ELEMENTS ((int64_t)1 << 40)

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
    const struct hv_op_kind_row *row = hv_op_kind_row(op->kind);
    if (op->n_in < row->least_in || op->n_in > row->most_in) {
        return hv_err_set(err, HV_EINPUT, "%s takes %d to %d operands, found %d", row->name,
                          row->least_in, row->most_in, op->n_in);
    }
    const struct hv_tensor *out = &g->tensors[op->out];
    bool moves = op->kind == HV_OP_TRANSPOSE || op->kind == HV_OP_BROADCAST;
    bool over = row->needs == HV_NEEDS_OVER && op->kind != HV_OP_CROSS_ENTROPY;
    bool each = row->flops_per_element > 0 && row->needs == 0 && op->kind != HV_OP_OPAQUE;
    bool same = moves || over || each;
    for (size_t i = 0; same && i < op->n_in; i++) {
        for (size_t d = 0; d < op->in[i].n_dims; d++) {
            if (!hv_dims_hold(out->dim, out->n_dims, op->in[i].dim[d], NULL)) {
                return hv_err_set(err, HV_EINPUT,
                                  "%s keeps all dimensions, but the result has no dimension "
                                  "\"%.80s\" of its operand %zu",
                                  row->name, dim_name(g, op->in[i].dim[d]), i + 1);
            }
        }
    }
    return HV_OK;
}

/* A convolution reads `of` in operand 0 and `tap` in operand 1; a pool keeps the places. */
static enum hv_status check_window_dims(const struct hv_tensor_graph *g,
                                        const struct hv_tensor_op *op,
                                        const struct hv_tensor_window *w, struct hv_err *err)
{
    const struct hv_tensor *out = &g->tensors[op->out];
    bool taps = op->kind == HV_OP_CONV;
    if (!hv_dims_hold(out->dim, out->n_dims, w->out, NULL)) {
        return hv_err_set(err, HV_EINPUT,
                          "expected windows by dimension of the result, found \"%.80s\", which it "
                          "does not have",
                          dim_name(g, w->out));
    }
    if (!hv_dims_hold(op->in[0].dim, op->in[0].n_dims, w->of, NULL)) {
        return hv_err_set(err, HV_EINPUT,
                          "the window \"%.80s\" goes over \"%.80s\", which operand 1 does not "
                          "have: name one of its dimensions in \"of\"",
                          dim_name(g, w->out), dim_name(g, w->of));
    }
    if (taps &&
        (w->tap == HV_NO_DIM || !hv_dims_hold(op->in[1].dim, op->in[1].n_dims, w->tap, NULL))) {
        return hv_err_set(err, HV_EINPUT,
                          "the window \"%.80s\" needs a \"tap\" that is a dimension of the "
                          "kernel, operand 2; found %s%.80s%s",
                          dim_name(g, w->out), w->tap == HV_NO_DIM ? "" : "\"",
                          w->tap == HV_NO_DIM ? "none" : dim_name(g, w->tap),
                          w->tap == HV_NO_DIM ? "" : "\"");
    }
    return HV_OK;
}

/* Sizes are at most 2^40: what a window covers may not fit into 64 bits, all else does. */
static enum hv_status check_window(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                   const struct hv_tensor_window *w, struct hv_err *err)
{
    enum hv_status st = check_window_dims(g, op, w, err);
    if (st) {
        return st;
    }
    double covered = (double)(w->size - 1) * (double)w->dilation + 1;
    int64_t room = g->dims[w->of].size + w->pad[0] + w->pad[1], out = 0;
    if (covered <= (double)room) {
        out = (room - (int64_t)covered) / w->stride + 1;
    }
    if (out != g->dims[w->out].size) {
        return hv_err_set(err, HV_EINPUT,
                          "a window of %" PRId64 " over \"%.80s\" gives %" PRId64
                          " elements, but \"%.80s\" has %" PRId64,
                          w->size, dim_name(g, w->of), out, dim_name(g, w->out),
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
    double product = 1;
    for (size_t i = 0; i < p->n_parts; i++) {
        product *= (double)g->dims[p->part[i]].size;
    }
    return product == (double)g->dims[p->whole].size
               ? HV_OK
               : hv_err_set(err, HV_EINPUT,
                            "the parts of \"%.80s\" have %.0f elements together, it has "
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

/* ---- dimensions that an operator goes over ----------------------------------------------------
 */

/* Dimensions in "over", "along", "rows" or "parallel": at least one where the kind needs them, each
 * once, of operand 0 (concat and opaque: of the result). */
static enum hv_status check_over(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 struct hv_err *err)
{
    const struct hv_op_kind_row *row = hv_op_kind_row(op->kind);
    const struct hv_tensor *out = &g->tensors[op->out];
    const char *key = (row->needs & HV_NEEDS_ALONG) != 0  ? "along"
                      : (row->needs & HV_NEEDS_ROWS) != 0 ? "rows"
                      : (row->needs & HV_NEEDS_OVER) != 0 ? "over"
                                                          : "parallel";
    bool single = (row->needs & HV_NEEDS_ROWS) != 0 || op->kind == HV_OP_CONCAT ||
                  op->kind == HV_OP_CROSS_ENTROPY || op->kind == HV_OP_TOP_K;
    bool needed = (row->needs & (HV_NEEDS_OVER | HV_NEEDS_ALONG | HV_NEEDS_ROWS)) != 0;
    if (needed && (op->n_over == 0 || (single && op->n_over > 1))) {
        return hv_err_set(err, HV_EINPUT, "%s needs %s dimension in \"%s\", found %d", row->name,
                          single ? "one" : "at least one", key, op->n_over);
    }
    for (size_t i = 0; i < op->n_over; i++) {
        bool of_result = op->kind == HV_OP_CONCAT || op->kind == HV_OP_OPAQUE;
        const uint32_t *dims = of_result ? out->dim : op->in[0].dim;
        if (!hv_dims_hold(dims, of_result ? out->n_dims : op->in[0].n_dims, op->over[i], NULL)) {
            return hv_err_set(err, HV_EINPUT,
                              "\"%s\" names \"%.80s\", which %s does not have: name one of its "
                              "dimensions",
                              key, dim_name(g, op->over[i]),
                              of_result ? "the result" : "operand 1");
        }
        if (hv_dims_hold(op->over, i, op->over[i], NULL)) {
            return hv_err_set(err, HV_EINPUT, "\"%s\" names \"%.80s\" twice", key,
                              dim_name(g, op->over[i]));
        }
    }
    return HV_OK;
}

/* ---- sizes of results ------------------------------------------------------------------------ */

/* Dimensions of `what` are these, in this order. */
static enum hv_status check_are(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                const char *what, const uint32_t *dims, size_t n,
                                const uint32_t *want, size_t n_want, struct hv_err *err)
{
    if (n == n_want && memcmp(dims, want, n * sizeof *dims) == 0) {
        return HV_OK;
    }
    struct hv_str text = {0};
    for (size_t i = 0; i < n_want; i++) {
        hv_str_addf(&text, "%s\"%.40s\"", i > 0 ? ", " : "", dim_name(g, want[i]));
    }
    enum hv_status st =
        hv_err_set(err, HV_EINPUT, "%s: expected the dimensions [%s] of %s, in this order",
                   hv_op_kind_row(op->kind)->name, hv_str_cstr(&text), what);
    hv_str_free(&text);
    return st;
}

/* Dimensions of an operand but those that the operator goes over; returns how many. */
static size_t rest_of(const struct hv_tensor_op *op, size_t operand, uint32_t *out)
{
    size_t n = 0;
    for (size_t d = 0; d < op->in[operand].n_dims; d++) {
        if (!hv_dims_hold(op->over, op->n_over, op->in[operand].dim[d], NULL)) {
            out[n++] = op->in[operand].dim[d];
        }
    }
    return n;
}

static enum hv_status check_cross_entropy(const struct hv_tensor_graph *g,
                                          const struct hv_tensor_op *op, struct hv_err *err)
{
    uint32_t rest[HV_TENSOR_DIMS];
    const struct hv_tensor *out = &g->tensors[op->out];
    size_t n = rest_of(op, 0, rest);
    enum hv_status st =
        check_are(g, op, "the labels", op->in[1].dim, op->in[1].n_dims, rest, n, err);
    return st ? st : check_are(g, op, "the result", out->dim, out->n_dims, rest, n, err);
}

/* Rows chosen by numbers: dimensions of the numbers, then those of a row. */
static enum hv_status check_rows(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 struct hv_err *err)
{
    uint32_t want[2 * HV_TENSOR_DIMS];
    const struct hv_tensor *out = &g->tensors[op->out];
    const struct hv_tensor_use *table = &op->in[0], *numbers = &op->in[1];
    if (numbers->n_dims == HV_TENSOR_DIMS) {
        return hv_err_set(err, HV_ELIMIT,
                          "%s takes row numbers of at most %d dimensions, found %d: merge two by a "
                          "reshape",
                          hv_op_kind_row(op->kind)->name, HV_TENSOR_DIMS - 1, numbers->n_dims);
    }
    memcpy(want, numbers->dim, numbers->n_dims * sizeof want[0]);
    size_t n = numbers->n_dims + rest_of(op, 0, want + numbers->n_dims);
    if (op->kind != HV_OP_SCATTER_ADD) {
        return check_are(g, op, "the result", out->dim, out->n_dims, want, n, err);
    }
    enum hv_status st =
        check_are(g, op, "the rows, operand 3", op->in[2].dim, op->in[2].n_dims, want, n, err);
    return st ? st
              : check_are(g, op, "the result", out->dim, out->n_dims, table->dim, table->n_dims,
                          err);
}

/* Elements that a range of a slice or pad leaves of `size`. */
static int64_t range_size(const struct hv_tensor_op *op, const struct hv_tensor_range *r,
                          int64_t size)
{
    return op->kind == HV_OP_SLICE ? (r->to - r->from - 1) / r->step + 1
                                   : r->from + r->to + (size - 1) * r->step + 1;
}

/* Size of the result where operand 0 has its d-th dimension: *least to *most. */
static void expected_size(const struct hv_tensor_graph *g, const struct hv_tensor_op *op, size_t d,
                          int64_t *least, int64_t *most)
{
    uint32_t dim = op->in[0].dim[d];
    *least = *most = g->dims[dim].size;
    for (size_t i = 0; i < op->n_ranges; i++) {
        if (op->range[i].dim == dim) {
            *least = *most = range_size(op, &op->range[i], *most);
        }
    }
    for (size_t i = 0; i < op->n_windows; i++) {
        if (op->window[i].of == dim) {
            *least = *most = g->dims[op->window[i].out].size; /* checked by check_window */
        }
    }
    if (op->kind == HV_OP_TOP_K && hv_dims_hold(op->over, op->n_over, dim, NULL)) {
        *least = 1;
    }
    if (op->kind == HV_OP_CONCAT && d < g->tensors[op->out].n_dims &&
        g->tensors[op->out].dim[d] == op->over[0]) {
        int64_t sum = 0;
        for (size_t i = 0; i < op->n_in; i++) {
            sum += d < op->in[i].n_dims ? g->dims[op->in[i].dim[d]].size : 0;
        }
        *least = *most = sum;
    }
}

/* Dimension that a window of the result reads; the dimension itself where it has none. */
static uint32_t window_source(const struct hv_tensor_op *op, uint32_t dim)
{
    for (size_t i = 0; i < op->n_windows; i++) {
        if (op->window[i].out == dim) {
            return op->window[i].of;
        }
    }
    return dim;
}

/* Result and operands have their dimensions at the same places. */
static enum hv_status check_places(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                   struct hv_err *err)
{
    const char *name = hv_op_kind_row(op->kind)->name;
    const struct hv_tensor *out = &g->tensors[op->out];
    for (size_t i = 0; i < op->n_in; i++) {
        if (op->in[i].n_dims != out->n_dims) {
            return hv_err_set(err, HV_EINPUT,
                              "%s: the result has %d dimensions, operand %zu has %d; expected as "
                              "many",
                              name, out->n_dims, i + 1, op->in[i].n_dims);
        }
    }
    for (size_t d = 0; d < out->n_dims; d++) {
        size_t at = d;
        uint32_t from = window_source(op, out->dim[d]);
        hv_dims_hold(op->in[0].dim, op->in[0].n_dims, from, &at);
        if (at != d) {
            return hv_err_set(
                err, HV_EINPUT,
                "%s: \"%.80s\" is dimension %zu of the result and comes from dimension "
                "%zu of operand 1; expected the same place",
                name, dim_name(g, out->dim[d]), d + 1, at + 1);
        }
        int64_t least = 0, most = 0, size = g->dims[out->dim[d]].size;
        expected_size(g, op, d, &least, &most);
        if (size < least || size > most) {
            return hv_err_set(err, HV_EINPUT,
                              "%s: the result's dimension \"%.80s\" has %" PRId64
                              " elements, expected %s%" PRId64,
                              name, dim_name(g, out->dim[d]), size, least < most ? "at most " : "",
                              most);
        }
        bool joins = op->kind == HV_OP_CONCAT && out->dim[d] == op->over[0];
        for (size_t i = 1; i < op->n_in && !joins; i++) {
            if (g->dims[op->in[i].dim[d]].size != size) {
                return hv_err_set(err, HV_EINPUT,
                                  "%s: \"%.80s\" of operand %zu has %" PRId64
                                  " elements, \"%.80s\" of the result has %" PRId64,
                                  name, dim_name(g, op->in[i].dim[d]), i + 1,
                                  g->dims[op->in[i].dim[d]].size, dim_name(g, out->dim[d]), size);
            }
        }
    }
    return HV_OK;
}

static enum hv_status check_ranges(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                   struct hv_err *err)
{
    for (size_t i = 0; i < op->n_ranges; i++) {
        const struct hv_tensor_range *r = &op->range[i];
        if (!hv_dims_hold(op->in[0].dim, op->in[0].n_dims, r->dim, NULL)) {
            return hv_err_set(err, HV_EINPUT,
                              "\"range\" names \"%.80s\", which operand 1 does not have: name one "
                              "of its dimensions",
                              dim_name(g, r->dim));
        }
        double padded = (double)g->dims[r->dim].size * (double)r->step;
        if (op->kind == HV_OP_PAD && padded > (double)MOST_ELEMENTS) {
            return hv_err_set(err, HV_ELIMIT, "\"%.80s\" has more than 2^40 elements when padded",
                              dim_name(g, r->dim));
        }
    }
    return HV_OK;
}

/* What the kind says of the sizes of its result. */
static enum hv_status check_kind(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 struct hv_err *err)
{
    typedef enum hv_status check(const struct hv_tensor_graph *, const struct hv_tensor_op *,
                                 struct hv_err *);
    static check *const checks[HV_TENSOR_OP_KIND_N] = {
        [HV_OP_CROSS_ENTROPY] = check_cross_entropy,
        [HV_OP_EMBEDDING] = check_rows,
        [HV_OP_GATHER] = check_rows,
        [HV_OP_SCATTER_ADD] = check_rows,
        [HV_OP_RESHAPE] = check_elements,
        [HV_OP_POOL] = check_places,
        [HV_OP_CONCAT] = check_places,
        [HV_OP_SLICE] = check_places,
        [HV_OP_PAD] = check_places,
        [HV_OP_REVERSE] = check_places,
        [HV_OP_CUMSUM] = check_places,
        [HV_OP_SORT] = check_places,
        [HV_OP_TOP_K] = check_places,
        [HV_OP_FFT] = check_places,
        [HV_OP_CHOLESKY] = check_places,
    };
    return checks[op->kind] != NULL ? checks[op->kind](g, op, err) : HV_OK;
}

enum hv_status hv_tensor_op_check(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                  struct hv_err *err)
{
    enum hv_status st = check_operands(g, op, err);
    st = st ? st : check_over(g, op, err);
    st = st ? st : check_ranges(g, op, err);
    for (size_t i = 0; st == HV_OK && i < op->n_windows; i++) {
        st = check_window(g, op, &op->window[i], err);
    }
    for (size_t i = 0; st == HV_OK && i < op->n_groups; i++) {
        st = check_group(g, &op->group[i], err);
    }
    st = st ? st : check_result(g, op, err);
    return st ? st : check_kind(g, op, err);
}
