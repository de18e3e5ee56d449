/** Operators as primitives. */
#include "solver/workload/graph/expand.h"

#include "solver/workload/graph/expand_int.h"
#include <string.h>

/* ---- elementwise ----------------------------------------------------------------------------- */

static uint32_t one(struct hv__expand *x, enum hv_fn fn)
{
    return hv_prim_fn1(&x->out->prims, fn, hv__aligned(x, 0));
}

static uint32_t folded(struct hv__expand *x, enum hv_fn fn)
{
    uint32_t t = hv__aligned(x, 0);
    for (size_t i = 1; i < x->op->n_in; i++) {
        t = hv_prim_fn(&x->out->prims, fn, t, hv__aligned(x, i));
    }
    return t;
}

static enum hv_status elementwise(struct hv__expand *x, uint32_t *out, struct hv_err *err)
{
    static const struct {
        enum hv_tensor_op_kind kind;
        enum hv_fn fn;
        bool unary;
    } fns[] = {
        {HV_OP_ADD, HV_FN_ADD, false},         {HV_OP_SUB, HV_FN_SUB, false},
        {HV_OP_MUL, HV_FN_MUL, false},         {HV_OP_DIV, HV_FN_DIV, false},
        {HV_OP_MAXIMUM, HV_FN_MAX, false},     {HV_OP_MINIMUM, HV_FN_MIN, false},
        {HV_OP_NEG, HV_FN_NEG, true},          {HV_OP_EXP, HV_FN_EXP, true},
        {HV_OP_LOG, HV_FN_LOG, true},          {HV_OP_TANH, HV_FN_TANH, true},
        {HV_OP_SIGMOID, HV_FN_LOGISTIC, true}, {HV_OP_SQRT, HV_FN_SQRT, true},
        {HV_OP_RSQRT, HV_FN_RSQRT, true},      {HV_OP_ABS, HV_FN_ABS, true},
        {HV_OP_CAST, HV_FN_CONVERT, true},
    };
    for (size_t i = 0; i < sizeof fns / sizeof fns[0]; i++) {
        if (fns[i].kind == x->op->kind) {
            *out = fns[i].unary ? one(x, fns[i].fn) : folded(x, fns[i].fn);
            return HV_OK;
        }
    }
    return hv_err_set(err, HV_EINTERNAL, "an elementwise kind without a function");
}

/* ---- products -------------------------------------------------------------------------------- */

/* An operand or an intermediate product: its tensor and names of its dimensions. */
struct named {
    uint32_t tensor;
    uint8_t n_dims;
    uint32_t dim[HV_TENSOR_DIMS];
};

static bool has(const struct named *a, uint32_t dim, size_t *at)
{
    return hv_dims_hold(a->dim, a->n_dims, dim, at);
}

/* Needed behind these two operands: in the result or in a later operand. */
static bool needed_later(const struct hv__expand *x, uint32_t dim, size_t next)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    if (hv_dims_hold(out->dim, out->n_dims, dim, NULL)) {
        return true;
    }
    for (size_t i = next; i < x->op->n_in; i++) {
        if (hv_dims_hold(x->op->in[i].dim, x->op->in[i].n_dims, dim, NULL)) {
            return true;
        }
    }
    return false;
}

/* Sums over dimensions that nobody else has. */
static void sum_alone(struct hv__expand *x, struct named *a, const struct named *other, size_t next)
{
    uint32_t gone = 0;
    struct named rest = {0};
    for (size_t d = 0; d < a->n_dims; d++) {
        bool kept = needed_later(x, a->dim[d], next) || (other && has(other, a->dim[d], NULL));
        if (kept) {
            rest.dim[rest.n_dims++] = a->dim[d];
        } else {
            gone |= 1U << d;
        }
    }
    if (gone != 0) {
        rest.tensor = hv_prim_reduce(&x->out->prims, HV_BY_SUM, a->tensor, gone);
        *a = rest;
    }
}

/* Dimensions that both operands have and nobody needs later, in order of their names, as jax sorts
 * them. */
static size_t contracted(const struct hv__expand *x, const struct named *a, const struct named *b,
                         size_t next, uint32_t *out)
{
    size_t n = 0;
    for (size_t d = 0; d < a->n_dims; d++) {
        if (has(b, a->dim[d], NULL) && !needed_later(x, a->dim[d], next)) {
            size_t at = n++;
            const char *name = x->g->dims[a->dim[d]].name;
            for (; at > 0 && strcmp(x->g->dims[out[at - 1]].name, name) > 0; at--) {
                out[at] = out[at - 1];
            }
            out[at] = a->dim[d];
        }
    }
    return n;
}

static void add_loop(struct hv_prim *p, enum hv_contraction_role role, int64_t size, int a, int b,
                     int out)
{
    p->loop[p->n_loops++] =
        (struct hv_loop){.role = role, .dim = {(int8_t)a, (int8_t)b, (int8_t)out}, .size = size};
}

/* Names of a product's dimensions: shared ones, then those of the first, then those of the second.
 * False where it has more than a tensor may have. */
static bool product_dims(const struct hv__expand *x, const struct named *a, const struct named *b,
                         size_t next, struct named *out)
{
    *out = (struct named){0};
    for (int turn = 0; turn < 3; turn++) {
        const struct named *from = turn < 2 ? a : b;
        for (size_t d = 0; d < from->n_dims; d++) {
            bool shared = has(turn < 2 ? b : a, from->dim[d], NULL);
            bool kept = needed_later(x, from->dim[d], next);
            if (!kept || shared != (turn == 0)) {
                continue;
            }
            if (out->n_dims == HV_TENSOR_DIMS) {
                return false;
            }
            out->dim[out->n_dims++] = from->dim[d];
        }
    }
    return true;
}

static struct named product(struct hv__expand *x, const struct named *a, const struct named *b,
                            size_t next)
{
    struct named out;
    struct hv_prim_graph *g = &x->out->prims;
    product_dims(x, a, b, next, &out);
    struct hv_shape shape = {.n_dims = out.n_dims};
    shape.element_bytes = hv_prim_shape(g, a->tensor)->element_bytes;
    for (size_t d = 0; d < out.n_dims; d++) {
        shape.size[d] = x->g->dims[out.dim[d]].size;
    }
    const uint32_t in[2] = {a->tensor, b->tensor};
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_DOT, in, 2, &shape);
    for (size_t d = 0; d < out.n_dims; d++) {
        size_t i = 0, k = 0;
        bool in_a = has(a, out.dim[d], &i), in_b = has(b, out.dim[d], &k);
        add_loop(p, in_a && in_b ? HV_ROLE_BATCH : HV_ROLE_FREE, shape.size[d], in_a ? (int)i : -1,
                 in_b ? (int)k : -1, (int)d);
    }
    uint32_t gone[HV_TENSOR_DIMS];
    size_t n = contracted(x, a, b, next, gone);
    for (size_t c = 0; c < n; c++) {
        size_t i = 0, k = 0;
        has(a, gone[c], &i);
        has(b, gone[c], &k);
        add_loop(p, HV_ROLE_CONTRACT, x->g->dims[gone[c]].size, (int)i, (int)k, -1);
    }
    out.tensor = hv_prim_last(g);
    return out;
}

static bool same_dims(const struct named *a, const struct hv_tensor *out)
{
    return a->n_dims == out->n_dims && memcmp(a->dim, out->dim, a->n_dims * sizeof a->dim[0]) == 0;
}

static uint32_t in_order(struct hv__expand *x, const struct named *a)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    int8_t from[HV_TENSOR_DIMS] = {0};
    for (size_t d = 0; d < out->n_dims; d++) {
        size_t at = 0;
        has(a, out->dim[d], &at);
        from[d] = (int8_t)at;
    }
    return hv_prim_transpose(&x->out->prims, a->tensor, from);
}

static struct named named_operand(const struct hv__expand *x, size_t i)
{
    const struct hv_tensor_use *u = &x->op->in[i];
    struct named a = {hv__operand(x, i), u->n_dims, {0}};
    memcpy(a.dim, u->dim, u->n_dims * sizeof a.dim[0]);
    return a;
}

static enum hv_status einsum(struct hv__expand *x, uint32_t *result, struct hv_err *err)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct named a = named_operand(x, 0);
    for (size_t i = 1; i < x->op->n_in; i++) {
        struct named b = named_operand(x, i), turned;
        sum_alone(x, &a, &b, i + 1);
        sum_alone(x, &b, &a, i + 1);
        if (!product_dims(x, &a, &b, i + 1, &turned)) {
            return hv_err_set(err, HV_ELIMIT,
                              "the product of the first %zu operands has more than %d dimensions: "
                              "put operands that share dimensions next to each other, or merge "
                              "dimensions by a reshape",
                              i + 1, HV_TENSOR_DIMS);
        }
        /* jax takes the second operand first where that does not cost a transpose */
        a = same_dims(&turned, out) ? product(x, &a, &b, i + 1) : product(x, &b, &a, i + 1);
    }
    sum_alone(x, &a, NULL, x->op->n_in);
    *result = in_order(x, &a);
    return HV_OK;
}

/* ---- reductions and moves -------------------------------------------------------------------- */

static uint32_t reduce(struct hv__expand *x)
{
    const struct hv_tensor_use *u = &x->op->in[0];
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t gone = 0;
    double n = 1;
    for (size_t d = 0; d < u->n_dims; d++) {
        if (!hv_dims_hold(out->dim, out->n_dims, u->dim[d], NULL)) {
            gone |= 1U << d;
            n *= (double)x->g->dims[u->dim[d]].size;
        }
    }
    enum hv_reduce_by by = x->op->by == HV_BY_MEAN ? HV_BY_SUM : x->op->by;
    uint32_t t = hv_prim_reduce(b, by, hv__operand(x, 0), gone);
    struct hv_shape shape = *hv_prim_shape(b, t);
    if (x->op->by == HV_BY_MEAN) {
        t = hv_prim_fn(b, HV_FN_DIV, t, hv_prim_constant(b, n, &shape));
    }
    struct named rest = {.tensor = t};
    for (size_t d = 0; d < u->n_dims; d++) {
        if ((gone >> d & 1) == 0) {
            rest.dim[rest.n_dims++] = u->dim[d];
        }
    }
    return in_order(x, &rest);
}

static uint32_t reshape(struct hv__expand *x)
{
    struct hv_shape shape = hv_tensor_shape(x->g, &x->g->tensors[x->op->out]);
    return hv_prim_reshape(&x->out->prims, hv__operand(x, 0), &shape);
}

static uint32_t concat(struct hv__expand *x)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct hv_shape shape = hv_tensor_shape(x->g, out);
    uint32_t in[64];
    size_t along = 0;
    hv_dims_hold(out->dim, out->n_dims, x->op->over[0], &along);
    for (size_t i = 0; i < x->op->n_in; i++) {
        in[i] = hv__operand(x, i);
    }
    struct hv_prim *p = hv_prim_add(&x->out->prims, HV_PRIM_CONCAT, in, x->op->n_in, &shape);
    p->n_axes = 1;
    p->axis[0] = (int8_t)along;
    return hv_prim_last(&x->out->prims);
}

/* Windows of all dimensions: those that stay read one element. */
static void plain_windows(struct hv_prim *p, const struct hv_shape *result)
{
    for (size_t d = 0; d < result->n_dims; d++) {
        p->window[d] = (struct hv_window){1, 1, 0, 1, 1, result->size[d], false};
    }
}

static uint32_t slice_or_pad(struct hv__expand *x, enum hv_prim_kind kind)
{
    const struct hv_tensor_use *u = &x->op->in[0];
    struct hv_shape shape = hv_tensor_shape(x->g, &x->g->tensors[x->op->out]);
    uint32_t in = hv__operand(x, 0);
    struct hv_prim *p = hv_prim_add(&x->out->prims, kind, &in, 1, &shape);
    plain_windows(p, &shape);
    for (size_t i = 0; i < x->op->n_ranges; i++) {
        const struct hv_tensor_range *r = &x->op->range[i];
        size_t at = 0;
        if (hv_dims_hold(u->dim, u->n_dims, r->dim, &at)) {
            bool slices = kind == HV_PRIM_SLICE;
            p->window[at].pad = slices ? -r->from : r->from;
            p->window[at].stride = slices ? r->step : 1;
            p->window[at].base = slices ? 1 : r->step;
        }
    }
    return hv_prim_last(&x->out->prims);
}

static uint32_t along(struct hv__expand *x, enum hv_prim_kind kind)
{
    const struct hv_tensor_use *u = &x->op->in[0];
    struct hv_shape shape = hv_tensor_shape(x->g, &x->g->tensors[x->op->out]);
    uint32_t in = hv__operand(x, 0);
    struct hv_prim *p = hv_prim_add(&x->out->prims, kind, &in, 1, &shape);
    for (size_t i = 0; i < x->op->n_over; i++) {
        size_t at = 0;
        if (hv_dims_hold(u->dim, u->n_dims, x->op->over[i], &at)) {
            p->axis[p->n_axes++] = (int8_t)at;
        }
    }
    p->name = hv_op_kind_row(x->op->kind)->name;
    return hv_prim_last(&x->out->prims);
}

/* A cumulative sum is a sum over a window that reaches back to the first element. */
static uint32_t cumsum(struct hv__expand *x)
{
    uint32_t t = along(x, HV_PRIM_REDUCE_WINDOW);
    struct hv_prim_graph *b = &x->out->prims;
    struct hv_prim *p = &b->prims[b->n_prims - 1];
    struct hv_shape shape = *hv_prim_shape(b, t);
    plain_windows(p, &shape);
    for (size_t i = 0; i < p->n_axes; i++) {
        int64_t n = shape.size[p->axis[i]];
        p->window[p->axis[i]] = (struct hv_window){n, 1, n - 1, 1, 1, n, false};
    }
    p->n_axes = 0;
    return t;
}

static uint32_t opaque(struct hv__expand *x)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct hv_shape shape = hv_tensor_shape(x->g, out);
    uint32_t in[64];
    for (size_t i = 0; i < x->op->n_in; i++) {
        in[i] = hv__operand(x, i);
    }
    struct hv_prim *p = hv_prim_add(&x->out->prims, HV_PRIM_OPAQUE, in, x->op->n_in, &shape);
    for (size_t d = 0; d < out->n_dims; d++) {
        if (hv_dims_hold(x->op->over, x->op->n_over, out->dim[d], NULL)) {
            p->axis[p->n_axes++] = (int8_t)d;
        }
    }
    p->name = x->op->id;
    return hv_prim_last(&x->out->prims);
}

static uint32_t broadcast(struct hv__expand *x)
{
    const struct hv_tensor_use *u = &x->op->in[0];
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct hv_shape shape = hv_tensor_shape(x->g, out);
    int8_t to[HV_TENSOR_DIMS] = {0};
    for (size_t d = 0; d < u->n_dims; d++) {
        size_t at = 0;
        hv_dims_hold(out->dim, out->n_dims, u->dim[d], &at);
        to[d] = (int8_t)at;
    }
    return hv_prim_broadcast(&x->out->prims, hv__operand(x, 0), to, &shape);
}

/* ---- windows --------------------------------------------------------------------------------- */

static struct hv_window prim_window(const struct hv__expand *x, const struct hv_tensor_window *w)
{
    return (struct hv_window){
        w->size, w->stride, w->pad[0], w->dilation, 1, x->g->dims[w->out].size, false};
}

static const struct hv_tensor_window *window_for(const struct hv__expand *x, uint32_t out)
{
    for (size_t i = 0; i < x->op->n_windows; i++) {
        if (x->op->window[i].out == out) {
            return &x->op->window[i];
        }
    }
    return NULL;
}

static int place(const uint32_t *dims, size_t n, uint32_t dim)
{
    size_t at = 0;
    return dim != HV_NO_DIM && hv_dims_hold(dims, n, dim, &at) ? (int)at : -1;
}

static bool is_spatial(const struct hv__expand *x, uint32_t dim)
{
    for (size_t i = 0; i < x->op->n_windows; i++) {
        if (x->op->window[i].of == dim || x->op->window[i].tap == dim) {
            return true;
        }
    }
    return false;
}

/* Loops of a convolution: batch, windows, groups, channels read, channels written. */
static void conv_loops(const struct hv__expand *x, struct hv_prim *p)
{
    const struct hv_tensor_use *a = &x->op->in[0], *k = &x->op->in[1];
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    int64_t groups = x->op->feature_groups;
    int in_channel = -1, out_channel = -1, kernel_in = -1, kernel_out = -1;
    for (int d = 0; d < out->n_dims; d++) {
        int from = place(a->dim, a->n_dims, out->dim[d]);
        int kernel = place(k->dim, k->n_dims, out->dim[d]);
        if (kernel >= 0) {
            out_channel = d;
            kernel_out = kernel;
        } else if (from >= 0) {
            add_loop(p, HV_ROLE_FREE, x->g->dims[out->dim[d]].size, from, -1, d);
        }
    }
    for (int d = 0; d < out->n_dims; d++) {
        const struct hv_tensor_window *w = window_for(x, out->dim[d]);
        if (w != NULL) {
            add_loop(p, HV_ROLE_SPATIAL, w->size, place(a->dim, a->n_dims, w->of),
                     place(k->dim, k->n_dims, w->tap), d);
            p->loop[p->n_loops - 1].window = prim_window(x, w);
        }
    }
    for (int d = 0; d < a->n_dims; d++) {
        bool gone = !is_spatial(x, a->dim[d]) && place(out->dim, out->n_dims, a->dim[d]) < 0;
        bool written = out_channel >= 0 && a->dim[d] == out->dim[out_channel];
        in_channel = gone || written ? d : in_channel;
    }
    for (int d = 0; d < k->n_dims; d++) {
        kernel_in = !is_spatial(x, k->dim[d]) && d != kernel_out ? d : kernel_in;
    }
    if (groups > 1) {
        add_loop(p, HV_ROLE_BATCH, groups, in_channel, kernel_out, out_channel);
    }
    int64_t n_in = kernel_in >= 0 ? x->g->dims[k->dim[kernel_in]].size : 1;
    int64_t n_out = out_channel >= 0 ? x->g->dims[out->dim[out_channel]].size : 1;
    add_loop(p, HV_ROLE_CONTRACT, n_in, in_channel, kernel_in, -1);
    add_loop(p, HV_ROLE_FREE, n_out / groups, -1, kernel_out, out_channel);
}

static uint32_t conv(struct hv__expand *x)
{
    struct hv_shape shape = hv_tensor_shape(x->g, &x->g->tensors[x->op->out]);
    const uint32_t in[2] = {hv__operand(x, 0), hv__operand(x, 1)};
    conv_loops(x, hv_prim_add(&x->out->prims, HV_PRIM_CONV, in, 2, &shape));
    return hv_prim_last(&x->out->prims);
}

static uint32_t pool(struct hv__expand *x)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    struct hv_shape shape = hv_tensor_shape(x->g, out);
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t in = hv__operand(x, 0);
    double n = 1;
    struct hv_prim *p = hv_prim_add(b, HV_PRIM_REDUCE_WINDOW, &in, 1, &shape);
    p->by = x->op->by == HV_BY_MEAN ? HV_BY_SUM : x->op->by;
    plain_windows(p, &shape);
    for (size_t d = 0; d < out->n_dims; d++) {
        const struct hv_tensor_window *w = window_for(x, out->dim[d]);
        if (w != NULL) {
            p->window[d] = prim_window(x, w);
            n *= (double)w->size;
        }
    }
    uint32_t t = hv_prim_last(b);
    return x->op->by == HV_BY_MEAN ? hv_prim_fn(b, HV_FN_DIV, t, hv_prim_constant(b, n, &shape))
                                   : t;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Numbers of rows with a last dimension of 1. */
static uint32_t row_numbers(struct hv__expand *x, size_t operand)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__operand(x, operand);
    struct hv_shape shape = *hv_prim_shape(b, t);
    int8_t to[HV_TENSOR_DIMS];
    for (size_t d = 0; d < shape.n_dims; d++) {
        to[d] = (int8_t)d;
    }
    shape.size[shape.n_dims++] = 1;
    return hv_prim_broadcast(b, t, to, &shape);
}

static uint32_t rows(struct hv__expand *x, enum hv_prim_kind kind)
{
    struct hv_prim_graph *b = &x->out->prims;
    struct hv_shape shape = hv_tensor_shape(x->g, &x->g->tensors[x->op->out]);
    const struct hv_tensor_use *u = &x->op->in[0];
    uint32_t in[3] = {hv__operand(x, 0), row_numbers(x, 1), 0};
    size_t n = kind == HV_PRIM_SCATTER ? 3 : 2, at = 0;
    in[2] = n == 3 ? hv__operand(x, 2) : 0;
    struct hv_prim *p = hv_prim_add(b, kind, in, n, &shape);
    hv_dims_hold(u->dim, u->n_dims, x->op->over[0], &at);
    p->n_axes = 1;
    p->axis[0] = (int8_t)at;
    return hv_prim_last(b);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static uint32_t where(struct hv__expand *x)
{
    uint32_t which = hv__aligned(x, 0), a = hv__aligned(x, 1), b = hv__aligned(x, 2);
    return hv_prim_select(&x->out->prims, which, a, b);
}

static uint32_t top_k(struct hv__expand *x)
{
    uint32_t t = along(x, HV_PRIM_TOP_K);
    struct hv_prim_graph *b = &x->out->prims;
    struct hv_prim *p = &b->prims[b->n_prims - 1];
    struct hv_shape numbers = *hv_prim_shape(b, t);
    numbers.element_bytes = 4;
    p->tensor[2] = hv_prim_tensor_add(b, &numbers);
    p->n_out = 2;
    return t;
}

enum way {
    WAY_EINSUM,
    WAY_ELEMENTWISE,
    WAY_SCALE,
    WAY_RELU,
    WAY_SILU,
    WAY_GELU,
    WAY_WHERE,
    WAY_REDUCE,
    WAY_SOFTMAX,
    WAY_LAYERNORM,
    WAY_RMSNORM,
    WAY_CROSS_ENTROPY,
    WAY_CONV,
    WAY_POOL,
    WAY_EMBEDDING,
    WAY_SCATTER_ADD,
    WAY_RESHAPE,
    WAY_TRANSPOSE,
    WAY_BROADCAST,
    WAY_CONCAT,
    WAY_SLICE,
    WAY_PAD,
    WAY_REVERSE,
    WAY_CUMSUM,
    WAY_SORT,
    WAY_TOP_K,
    WAY_WHOLE,
    WAY_OPAQUE
};
static const enum way ways[HV_TENSOR_OP_KIND_N] = {
#define X(c, name, way, least, most, flops, needs) [c] = WAY_##way,
    HV_OP_KIND_MAP(X)
#undef X
};

static enum hv_status expand_op(struct hv__expand *x, uint32_t *out, struct hv_err *err)
{
    switch (ways[x->op->kind]) {
    case WAY_EINSUM:
        return einsum(x, out, err);
    case WAY_ELEMENTWISE:
        return elementwise(x, out, err);
    case WAY_SCALE:
        *out = hv__scale(x);
        break;
    case WAY_RELU:
        *out = hv__relu(x);
        break;
    case WAY_SILU:
        *out = hv__silu(x);
        break;
    case WAY_GELU:
        *out = hv__gelu(x);
        break;
    case WAY_WHERE:
        *out = where(x);
        break;
    case WAY_REDUCE:
        *out = reduce(x);
        break;
    case WAY_SOFTMAX:
        *out = hv__softmax(x);
        break;
    case WAY_LAYERNORM:
        *out = hv__layernorm(x);
        break;
    case WAY_RMSNORM:
        *out = hv__rmsnorm(x);
        break;
    case WAY_CROSS_ENTROPY:
        *out = hv__cross_entropy(x);
        break;
    case WAY_CONV:
        *out = conv(x);
        break;
    case WAY_POOL:
        *out = pool(x);
        break;
    case WAY_EMBEDDING:
        *out = rows(x, HV_PRIM_GATHER);
        break;
    case WAY_SCATTER_ADD:
        *out = rows(x, HV_PRIM_SCATTER);
        break;
    case WAY_RESHAPE:
        *out = reshape(x);
        break;
    case WAY_TRANSPOSE:
        *out = hv__aligned(x, 0);
        break;
    case WAY_BROADCAST:
        *out = broadcast(x);
        break;
    case WAY_CONCAT:
        *out = concat(x);
        break;
    case WAY_SLICE:
        *out = slice_or_pad(x, HV_PRIM_SLICE);
        break;
    case WAY_PAD:
        *out = slice_or_pad(x, HV_PRIM_PAD);
        break;
    case WAY_REVERSE:
        *out = along(x, HV_PRIM_REVERSE);
        break;
    case WAY_CUMSUM:
        *out = cumsum(x);
        break;
    case WAY_SORT:
        *out = along(x, HV_PRIM_SORT);
        break;
    case WAY_TOP_K:
        *out = top_k(x);
        break;
    case WAY_WHOLE:
        *out = along(x, HV_PRIM_WHOLE);
        break;
    case WAY_OPAQUE:
        *out = opaque(x);
        break;
    }
    return HV_OK;
}

enum hv_status hv_expand(const struct hv_tensor_graph *g, struct hv_arena *arena,
                         struct hv_expansion *out, struct hv_err *err)
{
    *out = (struct hv_expansion){.prims = {.arena = arena}};
    out->tensor_of = hv_arena_new(arena, uint32_t, g->n_tensors + 1);
    for (size_t t = 0; t < g->n_given; t++) {
        struct hv_shape shape = hv_tensor_shape(g, &g->tensors[t]);
        out->tensor_of[t] = hv_prim_tensor_add(&out->prims, &shape);
    }
    for (size_t i = 0; i < g->n_ops; i++) {
        struct hv__expand x = {g, &g->ops[i], out};
        size_t first = out->prims.n_prims;
        uint32_t result = 0;
        enum hv_status st = expand_op(&x, &result, err);
        if (st) {
            hv_err_context(err, "operator \"%.80s\"", g->ops[i].id);
            return st;
        }
        out->tensor_of[g->ops[i].out] = result;
        for (size_t p = first; p < out->prims.n_prims; p++) {
            out->prims.prims[p].op = (uint32_t)i;
        }
    }
    return HV_OK;
}
