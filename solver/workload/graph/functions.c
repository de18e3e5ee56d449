/**
 * Functions of several primitives, in the order in which jax (0.10) lowers them: activation
 * functions, softmax, normalisations, cross-entropy.
 */
#include "solver/workload/graph/expand_int.h"

#include <math.h>

#define EPSILON 1e-5

uint32_t hv__scale(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__aligned(x, 0);
    struct hv_shape shape = *hv_prim_shape(b, t);
    return hv_prim_fn(b, HV_FN_MUL, t, hv_prim_constant(b, 2, &shape));
}

uint32_t hv__relu(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__aligned(x, 0);
    struct hv_shape shape = *hv_prim_shape(b, t);
    return hv_prim_fn(b, HV_FN_MAX, t, hv_prim_constant(b, 0, &shape));
}

uint32_t hv__silu(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__aligned(x, 0);
    return hv_prim_fn(b, HV_FN_MUL, t, hv_prim_fn1(b, HV_FN_LOGISTIC, t));
}

/* 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) */
uint32_t hv__gelu(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__aligned(x, 0);
    struct hv_shape shape = *hv_prim_shape(b, t);
    uint32_t cube = hv_prim_fn(b, HV_FN_MUL, hv_prim_fn(b, HV_FN_MUL, t, t), t);
    uint32_t small = hv_prim_fn(b, HV_FN_MUL, hv_prim_constant(b, 0.044715, &shape), cube);
    uint32_t sum = hv_prim_fn(b, HV_FN_ADD, t, small);
    uint32_t root = hv_prim_constant(b, sqrt(2 / 3.14159265358979323846), &shape);
    uint32_t tanh_of = hv_prim_fn1(b, HV_FN_TANH, hv_prim_fn(b, HV_FN_MUL, root, sum));
    uint32_t one = hv_prim_constant(b, 1, &shape);
    uint32_t more = hv_prim_fn(b, HV_FN_ADD, one, tanh_of);
    uint32_t half = hv_prim_constant(b, 0.5, &shape);
    return hv_prim_fn(b, HV_FN_MUL, t, hv_prim_fn(b, HV_FN_MUL, half, more));
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Places in a list of dimensions of those that the operator goes over (bits). */
static uint32_t over_among(const struct hv__expand *x, const uint32_t *dims, size_t n)
{
    uint32_t set = 0;
    for (size_t i = 0; i < x->op->n_over; i++) {
        size_t at = 0;
        if (hv_dims_hold(dims, n, x->op->over[i], &at)) {
            set |= 1U << at;
        }
    }
    return set;
}

/* The same in the result, in whose order an aligned operand lies. */
static uint32_t over_bits(const struct hv__expand *x)
{
    const struct hv_tensor *out = &x->g->tensors[x->op->out];
    return over_among(x, out->dim, out->n_dims);
}

static double over_count(const struct hv__expand *x)
{
    double n = 1;
    for (size_t i = 0; i < x->op->n_over; i++) {
        n *= (double)x->g->dims[x->op->over[i]].size;
    }
    return n;
}

/* A reduced tensor with its reduced dimensions back, of size 1. */
static uint32_t keep(struct hv_prim_graph *b, uint32_t reduced, const struct hv_shape *full,
                     uint32_t gone)
{
    struct hv_shape ones = *full;
    int8_t to[HV_TENSOR_DIMS];
    size_t n = 0;
    for (size_t d = 0; d < full->n_dims; d++) {
        if ((gone >> d & 1) != 0) {
            ones.size[d] = 1;
        } else {
            to[n++] = (int8_t)d;
        }
    }
    return hv_prim_broadcast(b, reduced, to, &ones);
}

/* Repeats a tensor with dimensions of size 1 over a shape. */
static uint32_t repeat(struct hv_prim_graph *b, uint32_t ones, const struct hv_shape *full)
{
    int8_t to[HV_TENSOR_DIMS];
    for (size_t d = 0; d < full->n_dims; d++) {
        to[d] = (int8_t)d;
    }
    return hv_prim_broadcast(b, ones, to, full);
}

static uint32_t largest(struct hv_prim_graph *b, uint32_t t, uint32_t gone)
{
    uint32_t most = hv_prim_reduce(b, HV_BY_MAX, t, gone);
    b->prims[b->n_prims - 1].still = true;
    struct hv_shape shape = *hv_prim_shape(b, most);
    most = hv_prim_fn(b, HV_FN_MAX, hv_prim_constant(b, -HUGE_VAL, &shape), most);
    b->prims[b->n_prims - 1].still = true;
    return most;
}

uint32_t hv__softmax(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__aligned(x, 0), gone = over_bits(x);
    struct hv_shape full = *hv_prim_shape(b, t);
    uint32_t most = repeat(b, keep(b, largest(b, t, gone), &full, gone), &full);
    uint32_t e = hv_prim_fn1(b, HV_FN_EXP, hv_prim_fn(b, HV_FN_SUB, t, most));
    uint32_t sum = keep(b, hv_prim_reduce(b, HV_BY_SUM, e, gone), &full, gone);
    return hv_prim_fn(b, HV_FN_DIV, e, repeat(b, sum, &full));
}

/* Mean over the dimensions, which stay with size 1. */
static uint32_t mean(struct hv__expand *x, uint32_t t, uint32_t gone)
{
    struct hv_prim_graph *b = &x->out->prims;
    struct hv_shape full = *hv_prim_shape(b, t);
    uint32_t sum = keep(b, hv_prim_reduce(b, HV_BY_SUM, t, gone), &full, gone);
    struct hv_shape ones = *hv_prim_shape(b, sum);
    return hv_prim_fn(b, HV_FN_DIV, sum, hv_prim_constant(b, over_count(x), &ones));
}

/* t / √(mean of squares + ε), times a gain and plus an offset where the operator has them. */
static uint32_t normalised(struct hv__expand *x, uint32_t t, uint32_t gone)
{
    struct hv_prim_graph *b = &x->out->prims;
    struct hv_shape full = *hv_prim_shape(b, t);
    uint32_t square = mean(x, hv_prim_fn(b, HV_FN_MUL, t, t), gone);
    struct hv_shape ones = *hv_prim_shape(b, square);
    uint32_t safe = hv_prim_fn(b, HV_FN_ADD, square, hv_prim_constant(b, EPSILON, &ones));
    uint32_t root = repeat(b, hv_prim_fn1(b, HV_FN_RSQRT, safe), &full);
    uint32_t y = hv_prim_fn(b, HV_FN_MUL, t, root);
    for (size_t i = 1; i < x->op->n_in; i++) {
        y = hv_prim_fn(b, i == 1 ? HV_FN_MUL : HV_FN_ADD, y, hv__aligned(x, i));
    }
    return y;
}

uint32_t hv__layernorm(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    uint32_t t = hv__aligned(x, 0), gone = over_bits(x);
    struct hv_shape full = *hv_prim_shape(b, t);
    uint32_t centre = repeat(b, mean(x, t, gone), &full);
    return normalised(x, hv_prim_fn(b, HV_FN_SUB, t, centre), gone);
}

uint32_t hv__rmsnorm(struct hv__expand *x)
{
    return normalised(x, hv__aligned(x, 0), over_bits(x));
}

/* ---- cross-entropy --------------------------------------------------------------------------- */

/* 1 where the number of the last dimension is the label, else 0. */
static uint32_t one_hot(struct hv__expand *x, const struct hv_shape *full, size_t classes)
{
    struct hv_prim_graph *b = &x->out->prims;
    size_t first = b->n_prims;
    uint32_t label = hv__operand(x, 1);
    struct hv_shape ints = *full, row = *full;
    ints.element_bytes = row.element_bytes = hv_prim_shape(b, label)->element_bytes;
    uint32_t labels = repeat(b, keep(b, label, &ints, 1U << classes), &ints);
    for (size_t d = 0; d < row.n_dims; d++) {
        row.size[d] = d == classes ? row.size[d] : 1;
    }
    struct hv_prim *numbers = hv_prim_add(b, HV_PRIM_CONSTANT, NULL, 0, &row);
    numbers->n_axes = 1;
    numbers->axis[0] = (int8_t)classes;
    uint32_t same = hv_prim_fn(b, HV_FN_EQUAL, labels, repeat(b, hv_prim_last(b), &ints));
    uint32_t hot = hv_prim_fn1(b, HV_FN_CONVERT, same);
    b->tensors[same].shape.element_bytes = 1;
    b->tensors[hot].shape.element_bytes = full->element_bytes;
    for (size_t p = first; p < b->n_prims; p++) {
        b->prims[p].apart = true;
    }
    return hot;
}

/* log Σ exp(l) − Σ l · one_hot(label) */
uint32_t hv__cross_entropy(struct hv__expand *x)
{
    struct hv_prim_graph *b = &x->out->prims;
    const struct hv_tensor_use *logits = &x->op->in[0];
    uint32_t t = hv__operand(x, 0), gone = over_among(x, logits->dim, logits->n_dims);
    struct hv_shape full = *hv_prim_shape(b, t);
    uint32_t most = largest(b, t, gone);
    struct hv_shape small = *hv_prim_shape(b, most);
    uint32_t finite = hv_prim_fn1(b, HV_FN_IS_FINITE, most);
    b->tensors[finite].shape.element_bytes = 1;
    most = hv_prim_select(b, finite, most, hv_prim_constant(b, 0, &small));
    uint32_t wide = repeat(b, keep(b, most, &full, gone), &full);
    uint32_t e = hv_prim_fn1(b, HV_FN_EXP, hv_prim_fn(b, HV_FN_SUB, t, wide));
    uint32_t sum = hv_prim_fn1(b, HV_FN_ABS, hv_prim_reduce(b, HV_BY_SUM, e, gone));
    uint32_t all = hv_prim_fn(b, HV_FN_ADD, hv_prim_fn1(b, HV_FN_LOG, sum), most);
    size_t classes = 0;
    while ((gone >> classes & 1) == 0) {
        classes++;
    }
    uint32_t own = hv_prim_fn(b, HV_FN_MUL, t, one_hot(x, &full, classes));
    return hv_prim_fn(b, HV_FN_SUB, all, hv_prim_reduce(b, HV_BY_SUM, own, gone));
}
