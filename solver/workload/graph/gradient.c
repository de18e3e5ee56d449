/** The backward graph: transposes of primitives, from the last one to the first. */
#include "solver/workload/graph/gradient.h"

#include <stdlib.h>
#include <string.h>

struct backward {
    struct hv_prim_graph *g;
    uint32_t *gradient;
    bool *active; /* tensors that depend on a wanted one */
};

/* The primitive whose operands get their gradients; a copy, since the array grows. */
struct turn {
    struct backward *b;
    struct hv_prim p;
    uint32_t ct; /* gradient of its result */
};

static const struct hv_shape *shape(const struct turn *t, size_t i)
{
    return hv_prim_shape(t->b->g, t->p.tensor[i]);
}

static bool wants(const struct turn *t, size_t operand)
{
    return t->b->active[t->p.tensor[operand]];
}

/* Adds to the gradient of an operand. */
static void give(struct turn *t, size_t operand, uint32_t ct)
{
    uint32_t *own = &t->b->gradient[t->p.tensor[operand]];
    *own = *own == HV_NO_TENSOR ? ct : hv_prim_fn(t->b->g, HV_FN_ADD, *own, ct);
}

static uint32_t constant_like(struct turn *t, double value, uint32_t like)
{
    struct hv_shape s = *hv_prim_shape(t->b->g, like);
    return hv_prim_constant(t->b->g, value, &s);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static uint32_t times(struct turn *t, uint32_t a, uint32_t b)
{
    return hv_prim_fn(t->b->g, HV_FN_MUL, a, b);
}

/* 1 where a is greater, 1/2 where both are equal: as jax shares the gradient of max. */
static uint32_t share(struct turn *t, size_t own, size_t other, enum hv_fn fn)
{
    struct hv_prim_graph *g = t->b->g;
    uint32_t a = t->p.tensor[own], b = t->p.tensor[other];
    uint32_t first = fn == HV_FN_MAX ? a : b, second = fn == HV_FN_MAX ? b : a;
    uint32_t more = hv_prim_fn(g, HV_FN_GREATER, first, second);
    uint32_t same = hv_prim_fn(g, HV_FN_EQUAL, a, b);
    uint32_t half = constant_like(t, 0.5, a), none = constant_like(t, 0, a);
    uint32_t tie = hv_prim_select(g, same, half, none);
    return hv_prim_select(g, more, constant_like(t, 1, a), tie);
}

static void of_max(struct turn *t)
{
    for (size_t i = 0; i < 2; i++) {
        if (wants(t, i)) {
            give(t, i, times(t, t->ct, share(t, i, 1 - i, t->p.fn)));
        }
    }
}

static void of_two(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    uint32_t a = t->p.tensor[0], b = t->p.tensor[1], y = t->p.tensor[2];
    if (t->p.fn == HV_FN_ADD || t->p.fn == HV_FN_SUB) {
        if (wants(t, 0)) {
            give(t, 0, t->ct);
        }
        if (wants(t, 1)) {
            give(t, 1, t->p.fn == HV_FN_ADD ? t->ct : hv_prim_fn1(g, HV_FN_NEG, t->ct));
        }
    } else if (t->p.fn == HV_FN_MUL) {
        if (wants(t, 0)) {
            give(t, 0, times(t, t->ct, b));
        }
        if (wants(t, 1)) {
            give(t, 1, times(t, t->ct, a));
        }
    } else if (t->p.fn == HV_FN_DIV) {
        if (wants(t, 0)) {
            give(t, 0, hv_prim_fn(g, HV_FN_DIV, t->ct, b));
        }
        if (wants(t, 1)) { /* −ct · y / b */
            uint32_t slope = hv_prim_fn(g, HV_FN_DIV, y, b);
            give(t, 1, hv_prim_fn1(g, HV_FN_NEG, times(t, t->ct, slope)));
        }
    } else if (t->p.fn == HV_FN_MAX || t->p.fn == HV_FN_MIN) {
        of_max(t);
    }
}

/* ct · (1 − y²), as (ct + ct·y)·(1 − y) */
static uint32_t of_tanh(struct turn *t, uint32_t y)
{
    uint32_t one = constant_like(t, 1, y);
    uint32_t rest = times(t, t->ct, hv_prim_fn(t->b->g, HV_FN_SUB, one, y));
    return hv_prim_fn(t->b->g, HV_FN_ADD, rest, times(t, rest, y));
}

static uint32_t of_one(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    uint32_t x = t->p.tensor[0], y = t->p.tensor[1];
    uint32_t one, slope;
    switch (t->p.fn) {
    case HV_FN_NEG:
        return hv_prim_fn1(g, HV_FN_NEG, t->ct);
    case HV_FN_CONVERT:
        return hv_prim_fn1(g, HV_FN_CONVERT, t->ct);
    case HV_FN_EXP:
        return times(t, t->ct, y);
    case HV_FN_LOG:
        return hv_prim_fn(g, HV_FN_DIV, t->ct, x);
    case HV_FN_TANH:
        return of_tanh(t, y);
    case HV_FN_LOGISTIC:
        one = constant_like(t, 1, y);
        slope = times(t, y, hv_prim_fn(g, HV_FN_SUB, one, y));
        return times(t, t->ct, slope);
    case HV_FN_SQRT:
        one = constant_like(t, 0.5, y);
        return times(t, t->ct, hv_prim_fn(g, HV_FN_DIV, one, y));
    case HV_FN_RSQRT:
        slope = hv_prim_fn(g, HV_FN_DIV, y, x);
        return times(t, t->ct, times(t, constant_like(t, -0.5, y), slope));
    case HV_FN_ABS:
        return times(t, t->ct, hv_prim_fn1(g, HV_FN_SIGN, x));
    case HV_FN_SIGN:
    case HV_FN_IS_FINITE: /* constant almost everywhere */
    case HV_FN_EQUAL:
    case HV_FN_GREATER:
    case HV_FN_ADD: /* of two or three */
    case HV_FN_SUB:
    case HV_FN_MUL:
    case HV_FN_DIV:
    case HV_FN_MAX:
    case HV_FN_MIN:
    case HV_FN_SELECT:
    case HV_FN_N:
        break;
    }
    return HV_NO_TENSOR;
}

static void of_select(struct turn *t)
{
    uint32_t which = t->p.tensor[0];
    uint32_t none = constant_like(t, 0, t->ct);
    if (wants(t, 1)) {
        give(t, 1, hv_prim_select(t->b->g, which, t->ct, none));
    }
    if (wants(t, 2)) {
        give(t, 2, hv_prim_select(t->b->g, which, none, t->ct));
    }
}

/* max(x, 0) of a constant: jax defines the gradient at 0 as 0. */
static bool is_constant(const struct turn *t, uint32_t tensor)
{
    const struct hv_prim_graph *g = t->b->g;
    for (size_t i = 0; i < g->n_prims; i++) {
        const struct hv_prim *p = &g->prims[i];
        if (p->tensor[p->n_in] == tensor) {
            return p->kind == HV_PRIM_CONSTANT ||
                   (p->kind == HV_PRIM_BROADCAST && is_constant(t, p->tensor[0]));
        }
    }
    return false;
}

static void of_relu(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    uint32_t more = hv_prim_fn(g, HV_FN_GREATER, t->p.tensor[0], t->p.tensor[1]);
    give(t, 0, hv_prim_select(g, more, t->ct, constant_like(t, 0, t->ct)));
}

static void of_elementwise(struct turn *t)
{
    if (t->p.fn == HV_FN_SELECT) {
        of_select(t);
    } else if (t->p.fn == HV_FN_MAX && !wants(t, 1) && is_constant(t, t->p.tensor[1])) {
        of_relu(t);
    } else if (t->p.n_in == 2) {
        of_two(t);
    } else {
        uint32_t ct = of_one(t);
        if (ct != HV_NO_TENSOR) {
            give(t, 0, ct);
        }
    }
}

/* ---- moves and reductions -------------------------------------------------------------------- */

/* Sums over the dimensions that a broadcast made, or repeated from one element. */
static void of_broadcast(struct turn *t)
{
    struct hv_shape in = *shape(t, 0), out = *shape(t, 1);
    uint32_t gone = (uint32_t)((1U << out.n_dims) - 1);
    bool ones = false;
    for (size_t i = 0; i < t->p.n_axes; i++) {
        if (in.size[i] == out.size[t->p.axis[i]]) {
            gone &= ~(1U << t->p.axis[i]);
        } else {
            ones = true;
        }
    }
    uint32_t ct = gone != 0 ? hv_prim_reduce(t->b->g, HV_BY_SUM, t->ct, gone) : t->ct;
    give(t, 0, ones ? hv_prim_reshape(t->b->g, ct, &in) : ct);
}

static uint32_t spread(struct turn *t, uint32_t reduced)
{
    struct hv_shape in = *shape(t, 0);
    int8_t to[HV_TENSOR_DIMS];
    size_t n = 0;
    for (int d = 0; d < in.n_dims; d++) {
        bool gone = false;
        for (size_t i = 0; i < t->p.n_axes; i++) {
            gone = gone || t->p.axis[i] == d;
        }
        if (!gone) {
            to[n++] = (int8_t)d;
        }
    }
    return hv_prim_broadcast(t->b->g, reduced, to, &in);
}

/* The largest gets the gradient; several that are equal share it. */
static void of_reduce(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    if (t->p.by == HV_BY_SUM) {
        give(t, 0, spread(t, t->ct));
        return;
    }
    uint32_t gone = 0;
    for (size_t i = 0; i < t->p.n_axes; i++) {
        gone |= 1U << t->p.axis[i];
    }
    uint32_t same = hv_prim_fn(g, HV_FN_EQUAL, t->p.tensor[0], spread(t, t->p.tensor[1]));
    uint32_t mask = hv_prim_fn1(g, HV_FN_CONVERT, same);
    uint32_t count = hv_prim_reduce(g, HV_BY_SUM, mask, gone);
    uint32_t each = hv_prim_fn(g, HV_FN_DIV, t->ct, count);
    give(t, 0, times(t, mask, spread(t, each)));
}

static void of_transpose(struct turn *t)
{
    int8_t back[HV_TENSOR_DIMS] = {0};
    for (int d = 0; d < t->p.n_axes; d++) {
        back[t->p.axis[d]] = (int8_t)d;
    }
    give(t, 0, hv_prim_transpose(t->b->g, t->ct, back));
}

static struct hv_prim *add_like(struct turn *t, enum hv_prim_kind kind, uint32_t in, size_t result)
{
    struct hv_shape s = *shape(t, result);
    struct hv_prim *p = hv_prim_add(t->b->g, kind, &in, 1, &s);
    for (size_t d = 0; d < s.n_dims; d++) {
        p->window[d] = (struct hv_window){1, 1, 0, 1, 1, s.size[d], false};
    }
    return p;
}

/* Slices and pads turn into each other: stride and the elements between, first element and pad. */
static void of_slice_or_pad(struct turn *t)
{
    bool slices = t->p.kind == HV_PRIM_SLICE;
    struct hv_prim *p = add_like(t, slices ? HV_PRIM_PAD : HV_PRIM_SLICE, t->ct, 0);
    for (size_t d = 0; d < shape(t, 0)->n_dims; d++) {
        p->window[d].pad = -t->p.window[d].pad;
        p->window[d].stride = t->p.window[d].base;
        p->window[d].base = t->p.window[d].stride;
    }
    give(t, 0, hv_prim_last(t->b->g));
}

static void of_concat(struct turn *t)
{
    int64_t from = 0;
    for (size_t i = 0; i < t->p.n_in; i++) {
        if (wants(t, i)) {
            add_like(t, HV_PRIM_SLICE, t->ct, i)->window[t->p.axis[0]].pad = -from;
            give(t, i, hv_prim_last(t->b->g));
        }
        from += shape(t, i)->size[t->p.axis[0]];
    }
}

static void of_reverse(struct turn *t)
{
    struct hv_prim *p = add_like(t, HV_PRIM_REVERSE, t->ct, 0);
    p->n_axes = t->p.n_axes;
    memcpy(p->axis, t->p.axis, sizeof p->axis);
    give(t, 0, hv_prim_last(t->b->g));
}

/* ---- products -------------------------------------------------------------------------------- */

/* Gradient of operand `own` of a dot: the product of ct and the other operand, summed over what
 * only the other one has; its dimensions come as batch, own, contracted (in the other's order). */
static void of_dot_operand(struct turn *t, size_t own)
{
    struct hv_prim_graph *g = t->b->g;
    size_t other = 1 - own;
    const uint32_t in[2] = {t->ct, t->p.tensor[other]};
    struct hv_shape full = *shape(t, own), result = {.element_bytes = full.element_bytes};
    struct hv_loop loops[HV_PRIM_LOOPS];
    int8_t from[HV_TENSOR_DIMS] = {0};
    size_t n = 0;
    for (int turn = 0; turn < 4; turn++) { /* batch, own, contracted, the other's */
        for (int d = 0; d < HV_TENSOR_DIMS; d++) {
            for (size_t i = 0; i < t->p.n_loops; i++) {
                const struct hv_loop *l = &t->p.loop[i];
                bool has_own = l->dim[own] >= 0, has_other = l->dim[other] >= 0;
                int kind = l->role == HV_ROLE_BATCH      ? 0
                           : l->role == HV_ROLE_CONTRACT ? 2
                           : has_own                     ? 1
                                                         : 3;
                size_t by = kind == 2 || kind == 3 ? other : own;
                if (kind != turn || l->dim[by] != d) {
                    continue;
                }
                int8_t at = -1;
                if (has_own) {
                    at = (int8_t)result.n_dims;
                    from[l->dim[own]] = at;
                    result.size[result.n_dims++] = l->size;
                }
                loops[n++] =
                    (struct hv_loop){.role = kind == 0   ? HV_ROLE_BATCH
                                             : kind == 3 ? HV_ROLE_CONTRACT
                                                         : HV_ROLE_FREE,
                                     .dim = {l->dim[2], has_other ? l->dim[other] : (int8_t)-1, at},
                                     .size = l->size};
            }
        }
    }
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_DOT, in, 2, &result);
    p->n_loops = (uint8_t)n;
    memcpy(p->loop, loops, n * sizeof *loops);
    give(t, own, hv_prim_transpose(g, hv_prim_last(g), from));
}

static void of_dot(struct turn *t)
{
    for (size_t i = 0; i < 2; i++) {
        if (wants(t, i)) {
            of_dot_operand(t, i);
        }
    }
}

/* The kernel turned round along its taps. */
static uint32_t reversed_kernel(struct turn *t)
{
    struct hv_prim *p = add_like(t, HV_PRIM_REVERSE, t->p.tensor[1], 1);
    for (size_t i = 0; i < t->p.n_loops; i++) {
        const struct hv_loop *l = &t->p.loop[i];
        if (l->role == HV_ROLE_SPATIAL && l->dim[1] >= 0) {
            p->axis[p->n_axes++] = l->dim[1];
        }
    }
    return hv_prim_last(t->b->g);
}

/* Input of a convolution: that of ct, spread by the stride, with the kernel turned round. */
static void of_conv_input(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    struct hv_shape result = *shape(t, 0);
    const uint32_t in[2] = {t->ct, reversed_kernel(t)};
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_CONV, in, 2, &result);
    for (size_t i = 0; i < t->p.n_loops; i++) {
        const struct hv_loop *l = &t->p.loop[i];
        struct hv_loop next = {
            .role = l->role, .dim = {l->dim[2], l->dim[1], l->dim[0]}, .size = l->size};
        const struct hv_window *w = &l->window;
        if (l->role == HV_ROLE_SPATIAL) {
            next.window =
                (struct hv_window){w->taps,     1,         (w->taps - 1) * w->dilation - w->pad,
                                   w->dilation, w->stride, result.size[l->dim[0]],
                                   false};
        } else if (l->role == HV_ROLE_CONTRACT || (l->role == HV_ROLE_FREE && l->dim[1] >= 0)) {
            next.role = l->role == HV_ROLE_CONTRACT ? HV_ROLE_FREE : HV_ROLE_CONTRACT;
        }
        p->loop[p->n_loops++] = next;
    }
    give(t, 0, hv_prim_last(g));
}

/* Kernel of a convolution: that of the input with ct as kernel; the batch is summed. */
static void of_conv_kernel(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    struct hv_shape result = *shape(t, 1), ct = *hv_prim_shape(g, t->ct);
    const uint32_t in[2] = {t->p.tensor[0], t->ct};
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_CONV, in, 2, &result);
    for (size_t i = 0; i < t->p.n_loops; i++) {
        const struct hv_loop *l = &t->p.loop[i];
        struct hv_loop next = {
            .role = l->role, .dim = {l->dim[0], l->dim[2], l->dim[1]}, .size = l->size};
        const struct hv_window *w = &l->window;
        if (l->role == HV_ROLE_SPATIAL) {
            next.size = ct.size[l->dim[2]];
            next.window =
                (struct hv_window){next.size, w->dilation, w->pad, w->stride, 1, w->taps, false};
        } else if (l->role == HV_ROLE_CONTRACT) {
            next.role = HV_ROLE_FREE;
        } else if (l->role == HV_ROLE_FREE && l->dim[0] >= 0) {
            next.role = HV_ROLE_CONTRACT;
        }
        p->loop[p->n_loops++] = next;
    }
    give(t, 1, hv_prim_last(g));
}

static bool grouped(const struct turn *t)
{
    for (size_t i = 0; i < t->p.n_loops; i++) {
        if (t->p.loop[i].role == HV_ROLE_BATCH) {
            return true;
        }
    }
    return false;
}

static void of_conv(struct turn *t)
{
    if (wants(t, 0)) {
        of_conv_input(t);
    }
    if (wants(t, 1)) {
        of_conv_kernel(t);
    }
}

/* ---- windows and rows ------------------------------------------------------------------------ */

static void of_reduce_window(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    struct hv_shape in = *shape(t, 0);
    if (t->p.by != HV_BY_SUM) {
        const uint32_t both[2] = {t->p.tensor[0], t->ct};
        struct hv_prim *p = hv_prim_add(g, HV_PRIM_SELECT_ADD, both, 2, &in);
        p->by = t->p.by;
        memcpy(p->window, t->p.window, sizeof p->window);
        give(t, 0, hv_prim_last(g));
        return;
    }
    struct hv_prim *p = add_like(t, HV_PRIM_REDUCE_WINDOW, t->ct, 0);
    p->by = HV_BY_SUM;
    for (size_t d = 0; d < in.n_dims; d++) {
        const struct hv_window *w = &t->p.window[d];
        p->window[d] = (struct hv_window){
            w->taps,    1,    (w->taps - 1) * w->dilation - w->pad, w->dilation, w->stride,
            in.size[d], false};
    }
    give(t, 0, hv_prim_last(g));
}

static void of_gather(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    struct hv_shape table = *shape(t, 0);
    const uint32_t in[3] = {hv_prim_constant(g, 0, &table), t->p.tensor[1], t->ct};
    struct hv_prim *p = hv_prim_add(g, HV_PRIM_SCATTER, in, 3, &table);
    p->n_axes = 1;
    p->axis[0] = t->p.axis[0];
    give(t, 0, hv_prim_last(g));
}

static void of_scatter(struct turn *t)
{
    struct hv_prim_graph *g = t->b->g;
    if (wants(t, 0)) {
        give(t, 0, t->ct);
    }
    if (wants(t, 2)) {
        struct hv_shape slices = *shape(t, 2);
        const uint32_t in[2] = {t->ct, t->p.tensor[1]};
        struct hv_prim *p = hv_prim_add(g, HV_PRIM_GATHER, in, 2, &slices);
        p->n_axes = 1;
        p->axis[0] = t->p.axis[0];
        give(t, 2, hv_prim_last(g));
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum hv_status turn_back(struct turn *t, struct hv_err *err)
{
    switch (t->p.kind) {
    case HV_PRIM_CONSTANT:
        return HV_OK;
    case HV_PRIM_ELEMENTWISE:
        of_elementwise(t);
        return HV_OK;
    case HV_PRIM_BROADCAST:
        of_broadcast(t);
        return HV_OK;
    case HV_PRIM_REDUCE:
        of_reduce(t);
        return HV_OK;
    case HV_PRIM_DOT:
        of_dot(t);
        return HV_OK;
    case HV_PRIM_RESHAPE:
        give(t, 0, hv_prim_reshape(t->b->g, t->ct, shape(t, 0)));
        return HV_OK;
    case HV_PRIM_TRANSPOSE:
        of_transpose(t);
        return HV_OK;
    case HV_PRIM_SLICE:
    case HV_PRIM_PAD:
        of_slice_or_pad(t);
        return HV_OK;
    case HV_PRIM_CONCAT:
        of_concat(t);
        return HV_OK;
    case HV_PRIM_REVERSE:
        of_reverse(t);
        return HV_OK;
    case HV_PRIM_REDUCE_WINDOW:
        of_reduce_window(t);
        return HV_OK;
    case HV_PRIM_GATHER:
        of_gather(t);
        return HV_OK;
    case HV_PRIM_SCATTER:
        of_scatter(t);
        return HV_OK;
    case HV_PRIM_CONV:
        if (!grouped(t)) {
            of_conv(t);
            return HV_OK;
        }
        break;
    case HV_PRIM_SORT:
    case HV_PRIM_TOP_K:
    case HV_PRIM_WHOLE:
    case HV_PRIM_OPAQUE:
    case HV_PRIM_SELECT_ADD:
        break;
    }
    return hv_err_set(err, HV_EINPUT, "%s has no gradient here", hv_prim_name(&t->p));
}

static void mark_active(struct backward *b, const uint32_t *wanted, size_t n_wanted)
{
    for (size_t i = 0; i < n_wanted; i++) {
        b->active[wanted[i]] = true;
    }
    for (size_t i = 0; i < b->g->n_prims; i++) {
        const struct hv_prim *p = &b->g->prims[i];
        for (size_t t = 0; t < p->n_in && !p->still; t++) {
            if (b->active[p->tensor[t]]) {
                b->active[p->tensor[p->n_in]] = true;
            }
        }
    }
}

enum hv_status hv_gradient(struct hv_prim_graph *g, const uint32_t *loss, size_t n_loss,
                           const uint32_t *wanted, size_t n_wanted, uint32_t *gradient,
                           struct hv_err *err)
{
    size_t n = g->n_prims;
    struct backward b = {g, gradient, hv_xcalloc(g->n_tensors + 1, sizeof(bool))};
    enum hv_status st = HV_OK;
    memset(gradient, 0xff, g->n_tensors * sizeof *gradient);
    mark_active(&b, wanted, n_wanted);
    for (size_t i = 0; i < n_loss; i++) {
        struct hv_shape s = *hv_prim_shape(g, loss[i]);
        uint32_t twice = hv_prim_fn(g, HV_FN_MUL, hv_prim_constant(g, 2, &s), loss[i]);
        gradient[loss[i]] = hv_prim_fn(g, HV_FN_MUL, hv_prim_constant(g, 1, &s), twice);
    }
    for (size_t p = n; p < g->n_prims; p++) {
        g->prims[p].op = HV_NO_OP;
    }
    for (size_t i = n; st == HV_OK && i-- > 0;) {
        struct turn t = {&b, g->prims[i], 0};
        size_t first = g->n_prims;
        t.ct = gradient[t.p.tensor[t.p.n_in]];
        if (t.ct == HV_NO_TENSOR || !b.active[t.p.tensor[t.p.n_in]] || t.p.still) {
            continue;
        }
        st = turn_back(&t, err);
        for (size_t p = first; p < g->n_prims; p++) {
            g->prims[p].op = t.p.op;
        }
    }
    free(b.active);
    return st;
}
