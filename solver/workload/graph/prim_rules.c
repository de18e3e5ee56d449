/**
 * Rules of primitives. Factors and their order follow OpenXLA Shardy's registry of op sharding
 * rules, which the goldens of `rule` cases print; windows are added here, since our exchanges are
 * counted.
 */
#include "solver/workload/graph/prims.h"

/* A rule that is being built. */
struct build {
    const struct hv_prim_graph *g;
    const struct hv_prim *p;
    struct hv_op_rule *r;
    bool full; /* more factors than a rule may have */
};

static const struct hv_shape *shape(const struct build *b, size_t t)
{
    return hv_prim_shape(b->g, b->p->tensor[t]);
}

static uint8_t add_factor(struct build *b, enum hv_factor_kind kind, int64_t size)
{
    if (b->r->n_factors == HV_RULE_FACTORS) {
        b->full = true;
        return 0;
    }
    b->r->factor[b->r->n_factors] = (struct hv_factor){.kind = kind, .size = size};
    return b->r->n_factors++;
}

static struct hv_dim_map *map(struct build *b, size_t t, int dim)
{
    return &b->r->map[t].dim[dim];
}

static void put(struct build *b, size_t t, int dim, uint8_t factor)
{
    if (dim >= 0) {
        struct hv_dim_map *d = map(b, t, dim);
        if (d->n == HV_DIM_FACTORS) {
            b->full = true;
            return;
        }
        d->factor[d->n++] = factor;
    }
}

/* Dimensions without a factor get one of size 1: nothing can be split there. */
static void fill(struct build *b)
{
    for (size_t t = 0; t < b->r->n_in + b->r->n_out; t++) {
        for (int d = 0; d < b->r->map[t].n_dims; d++) {
            if (map(b, t, d)->n == 0) {
                put(b, t, d, add_factor(b, HV_FACTOR_PARALLEL, 1));
            }
        }
    }
}

/* One factor per dimension of `t`, in all tensors that have as many dimensions. */
static void pointwise(struct build *b, size_t t)
{
    for (int d = 0; d < shape(b, t)->n_dims; d++) {
        uint8_t f = add_factor(b, HV_FACTOR_PARALLEL, shape(b, t)->size[d]);
        for (size_t k = 0; k < b->r->n_in + b->r->n_out; k++) {
            put(b, k, shape(b, k)->n_dims > 0 ? d : -1, f);
        }
    }
}

static bool axis_among(const struct hv_prim *p, int dim)
{
    for (size_t i = 0; i < p->n_axes; i++) {
        if (p->axis[i] == dim) {
            return true;
        }
    }
    return false;
}

/* ---- elementwise and moves ------------------------------------------------------------------- */

static void elementwise(struct build *b)
{
    static const uint32_t linear[HV_FN_N] = {
#define X(c, name, one, together) [c] = one,
        HV_FN_MAP(X)
#undef X
    };
    static const uint32_t additive[HV_FN_N] = {
#define X(c, name, one, together) [c] = together,
        HV_FN_MAP(X)
#undef X
    };
    pointwise(b, b->p->n_in);
    b->r->elementwise = true;
    b->r->flow = HV_FLOW_THROUGH;
    b->r->linear_in = linear[b->p->fn];
    b->r->additive_in = additive[b->p->fn];
}

static void moves(struct build *b)
{
    b->r->linear_in = 1;
    b->r->moves = true;
}

static void broadcast(struct build *b)
{
    const struct hv_shape *in = shape(b, 0), *out = shape(b, 1);
    for (int d = 0; d < out->n_dims; d++) {
        int from = -1;
        for (int i = 0; i < b->p->n_axes; i++) {
            from = b->p->axis[i] == d ? i : from;
        }
        if (from >= 0 && in->size[from] == 1 && out->size[d] != 1) {
            put(b, 0, from, add_factor(b, HV_FACTOR_PARALLEL, 1));
            from = -1;
        }
        uint8_t f = add_factor(b, HV_FACTOR_PARALLEL, out->size[d]);
        put(b, 0, from, f);
        put(b, 1, d, f);
    }
    b->r->flow = HV_FLOW_BROADCAST;
    moves(b);
}

static void transpose(struct build *b)
{
    for (int d = 0; d < b->p->n_axes; d++) {
        uint8_t f = add_factor(b, HV_FACTOR_PARALLEL, shape(b, 1)->size[d]);
        put(b, 0, b->p->axis[d], f);
        put(b, 1, d, f);
    }
    b->r->flow = HV_FLOW_THROUGH;
    moves(b);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One side of a reshape that is being walked. */
struct side {
    const struct hv_shape *shape;
    size_t tensor;
    int dim;
    int64_t sizes, factors; /* products of the dimensions begun and of the factors given out */
};

static int64_t next_factor(struct side *s)
{
    if (s->dim < s->shape->n_dims && s->sizes == s->factors) {
        s->sizes *= s->shape->size[s->dim];
    }
    return s->sizes / s->factors;
}

static bool skip_one(struct build *b, struct side *s)
{
    if (s->dim < s->shape->n_dims && s->shape->size[s->dim] == 1) {
        put(b, s->tensor, s->dim++, add_factor(b, HV_FACTOR_PARALLEL, 1));
        return true;
    }
    return false;
}

/* A factor of one side alone, as small as lets both sides meet again. */
static void alone(struct build *b, struct side *s, int64_t next, int64_t common, int64_t ahead)
{
    if (ahead % s->factors == 0 && next % (ahead / s->factors) == 0) {
        next = ahead / s->factors;
    } else if (next > common) {
        next /= common;
    }
    put(b, s->tensor, s->dim, add_factor(b, HV_FACTOR_PARALLEL, next));
    s->factors *= next;
}

static void reshape(struct build *b)
{
    struct side in = {shape(b, 0), 0, 0, 1, 1}, out = {shape(b, 1), 1, 0, 1, 1};
    while (!b->full && (in.dim < in.shape->n_dims || out.dim < out.shape->n_dims)) {
        if (skip_one(b, &in) || skip_one(b, &out)) {
            continue;
        }
        int64_t a = next_factor(&in), c = next_factor(&out), common = gcd(a, c);
        if (in.factors == out.factors && common > 1) {
            uint8_t f = add_factor(b, HV_FACTOR_PARALLEL, common);
            put(b, 0, in.dim, f);
            put(b, 1, out.dim, f);
            in.factors *= common;
            out.factors *= common;
        } else if (in.factors == out.factors) {
            put(b, 0, in.dim, add_factor(b, HV_FACTOR_PARALLEL, a));
            put(b, 1, out.dim, add_factor(b, HV_FACTOR_PARALLEL, c));
            in.factors *= a;
            out.factors *= c;
        } else if (in.factors < out.factors) {
            alone(b, &in, a, common, out.factors);
        } else {
            alone(b, &out, c, common, in.factors);
        }
        in.dim += in.dim < in.shape->n_dims && in.sizes == in.factors;
        out.dim += out.dim < out.shape->n_dims && out.sizes == out.factors;
    }
    b->r->flow = HV_FLOW_THROUGH;
    moves(b);
}

/* Slice, pad, reverse, windows of reductions: `sizes` is the side whose extent the factor has. */
static void windows(struct build *b, size_t sizes)
{
    for (int d = 0; d < shape(b, sizes)->n_dims; d++) {
        const struct hv_window *w = &b->p->window[d];
        bool differs = shape(b, 0)->size[d] != shape(b, b->p->n_in)->size[d];
        bool moved = differs || w->taps > 1 || w->reversed;
        uint8_t f =
            add_factor(b, moved ? HV_FACTOR_WINDOW : HV_FACTOR_PARALLEL, shape(b, sizes)->size[d]);
        put(b, 0, d, f);
        put(b, b->p->n_in, d, f);
        if (moved) {
            map(b, 0, d)->window = *w;
        }
    }
}

static void reverse(struct build *b)
{
    for (int d = 0; d < shape(b, 0)->n_dims; d++) {
        bool moved = axis_among(b->p, d);
        int64_t size = shape(b, 0)->size[d];
        uint8_t f = add_factor(b, moved ? HV_FACTOR_WINDOW : HV_FACTOR_PARALLEL, size);
        put(b, 0, d, f);
        put(b, 1, d, f);
        if (moved) {
            map(b, 0, d)->window = (struct hv_window){1, 1, 0, 1, 1, size, true};
        }
    }
    moves(b);
}

/* ---- reductions and products ----------------------------------------------------------------- */

static enum hv_factor_kind reduced(enum hv_reduce_by by)
{
    return by == HV_BY_SUM || by == HV_BY_MEAN ? HV_FACTOR_SUM : HV_FACTOR_MAX;
}

static void reduce(struct build *b)
{
    int out = 0;
    for (int d = 0; d < shape(b, 0)->n_dims; d++) {
        bool gone = axis_among(b->p, d);
        uint8_t f =
            add_factor(b, gone ? reduced(b->p->by) : HV_FACTOR_PARALLEL, shape(b, 0)->size[d]);
        b->r->factor[f].least = b->p->by == HV_BY_MIN;
        put(b, 0, d, f);
        put(b, 1, gone ? -1 : out++, f);
    }
    b->r->linear_in = reduced(b->p->by) == HV_FACTOR_SUM ? 1 : 0;
}

/* A loop of a product. One of size 1 beside another factor of its dimension is left out there. */
static void loop(struct build *b, const struct hv_loop *l)
{
    enum hv_factor_kind kind = l->role == HV_ROLE_CONTRACT ? HV_FACTOR_SUM : HV_FACTOR_PARALLEL;
    uint8_t f = HV_RULE_FACTORS;
    for (size_t k = 0; k < 3; k++) {
        if (l->dim[k] >= 0 && (l->size > 1 || map(b, k, l->dim[k])->n == 0)) {
            f = f == HV_RULE_FACTORS ? add_factor(b, kind, l->size) : f;
            put(b, k, l->dim[k], f);
        }
    }
}

static void dot(struct build *b)
{
    for (size_t i = 0; i < b->p->n_loops; i++) {
        const struct hv_loop *l = &b->p->loop[i];
        loop(b, l);
    }
    b->r->linear_in = 3;
}

/* The input of a window is split along the windows, or along the taps: a factor for each, the
 * larger one first; what is left of the input bounds the second. */
static void spatial(struct build *b, const struct hv_loop *l)
{
    int64_t out = shape(b, 2)->size[l->dim[2]], taps = shape(b, 1)->size[l->dim[1]];
    int64_t left = shape(b, 0)->size[l->dim[0]];
    for (int turn = 0; turn < 2; turn++) {
        bool along_windows = (out >= taps) == (turn == 0);
        int64_t size = along_windows ? out : taps;
        size = size < left ? size : left;
        if (size <= 1) {
            continue;
        }
        uint8_t f = add_factor(b, along_windows ? HV_FACTOR_WINDOW : HV_FACTOR_SUM, size);
        struct hv_dim_map *in = map(b, 0, l->dim[0]);
        /* what is read of operand 0 for a range of results, or of taps */
        if (along_windows) {
            in->window = l->window;
            in->window.range = out;
            in->at = in->n;
        } else if (in->n == 0 && taps > out) {
            in->window = (struct hv_window){
                out,  l->window.dilation, l->window.pad, l->window.stride, l->window.base, taps,
                false};
            in->at = in->n;
        }
        put(b, 0, l->dim[0], f);
        put(b, along_windows ? 2 : 1, along_windows ? l->dim[2] : l->dim[1], f);
        left /= size;
    }
}

static void conv(struct build *b)
{
    for (size_t i = 0; i < b->p->n_loops; i++) {
        const struct hv_loop *l = &b->p->loop[i];
        if (l->role == HV_ROLE_SPATIAL) {
            spatial(b, l);
            continue;
        }
        loop(b, l);
    }
    b->r->linear_in = 3;
    fill(b);
}

/* ---- rows, whole dimensions ------------------------------------------------------------------ */

/* Operand 0 has rows along axis[0]; operand 1 their numbers with a last dimension of 1. */
static void rows(struct build *b)
{
    bool adds = b->p->kind == HV_PRIM_SCATTER;
    size_t slices = 2; /* gather: the result; scatter: the rows to add */
    int batch = shape(b, 1)->n_dims - 1, row = b->p->axis[0];
    for (int d = 0; d < batch; d++) {
        uint8_t f = add_factor(b, adds ? HV_FACTOR_SUM : HV_FACTOR_PARALLEL, shape(b, 1)->size[d]);
        put(b, 1, d, f);
        put(b, slices, d, f);
    }
    for (int d = 0, next = batch; d < shape(b, 0)->n_dims; d++) {
        if (d != row) {
            uint8_t f = add_factor(b, HV_FACTOR_PARALLEL, shape(b, 0)->size[d]);
            put(b, 0, d, f);
            put(b, slices, next++, f);
            put(b, 3, adds ? d : -1, f);
        }
    }
    uint8_t f =
        add_factor(b, adds ? HV_FACTOR_PARALLEL : HV_FACTOR_INDEXED, shape(b, 0)->size[row]);
    put(b, 0, row, f);
    put(b, 3, adds ? row : -1, f);
    put(b, 1, batch, add_factor(b, HV_FACTOR_WHOLE, 1));
    b->r->linear_in = adds ? 0 : 1;
    b->r->additive_in = adds ? 5 : 0;
    b->r->added = adds ? 1 : 0;
}

/* Dimensions in axis[…] are needed whole (`inverse`: all others are). */
static void whole(struct build *b, bool inverse)
{
    const struct hv_shape *out = shape(b, b->p->n_in);
    for (int d = 0; d < out->n_dims; d++) {
        bool needed = axis_among(b->p, d) != inverse;
        int64_t size = b->p->n_in > 0 ? shape(b, 0)->size[d] : out->size[d];
        uint8_t f = add_factor(b, needed ? HV_FACTOR_WHOLE : HV_FACTOR_PARALLEL,
                               b->p->kind == HV_PRIM_CONCAT ? out->size[d] : size);
        for (size_t t = 0; t < b->r->n_in + b->r->n_out; t++) {
            put(b, t, d < shape(b, t)->n_dims ? d : -1, f);
        }
        b->r->factor[f].blocked = size != out->size[d] && b->p->kind == HV_PRIM_TOP_K;
    }
}

static void concat(struct build *b)
{
    whole(b, false);
    b->r->additive_in = (uint32_t)((1ULL << b->p->n_in) - 1);
}

/* Nothing is known of an opaque operator but its parallel dimensions, which stand at the same place
 * in all tensors. */
static void opaque(struct build *b)
{
    for (size_t t = 0; t < b->r->n_in + b->r->n_out; t++) {
        for (int d = 0; d < shape(b, t)->n_dims; d++) {
            map(b, t, d)->n = 0;
        }
    }
    whole(b, true);
    fill(b);
}

static void build(struct build *b)
{
    switch (b->p->kind) {
    case HV_PRIM_CONSTANT:
        pointwise(b, 0);
        break;
    case HV_PRIM_ELEMENTWISE:
        elementwise(b);
        break;
    case HV_PRIM_BROADCAST:
        broadcast(b);
        break;
    case HV_PRIM_REDUCE:
        reduce(b);
        break;
    case HV_PRIM_DOT:
        dot(b);
        break;
    case HV_PRIM_CONV:
        conv(b);
        break;
    case HV_PRIM_REDUCE_WINDOW:
        windows(b, 1);
        b->r->linear_in = reduced(b->p->by) == HV_FACTOR_SUM ? 1 : 0;
        break;
    case HV_PRIM_SELECT_ADD:
        windows(b, 1);
        for (int d = 0; d < shape(b, 1)->n_dims; d++) {
            put(b, 1, d, map(b, 0, d)->factor[0]);
        }
        break;
    case HV_PRIM_RESHAPE:
        reshape(b);
        break;
    case HV_PRIM_TRANSPOSE:
        transpose(b);
        break;
    case HV_PRIM_SLICE:
    case HV_PRIM_PAD:
        windows(b, 0);
        moves(b);
        break;
    case HV_PRIM_REVERSE:
        reverse(b);
        break;
    case HV_PRIM_CONCAT:
        concat(b);
        break;
    case HV_PRIM_GATHER:
    case HV_PRIM_SCATTER:
        rows(b);
        break;
    case HV_PRIM_SORT:
    case HV_PRIM_TOP_K:
    case HV_PRIM_WHOLE:
        whole(b, false);
        break;
    case HV_PRIM_OPAQUE:
        opaque(b);
        break;
    }
}

enum hv_status hv_prim_rule(const struct hv_prim_graph *g, const struct hv_prim *p,
                            struct hv_arena *arena, struct hv_op_rule *out, struct hv_err *err)
{
    *out = (struct hv_op_rule){.n_in = p->n_in, .n_out = p->n_out};
    out->map = hv_arena_new(arena, struct hv_tensor_map, (size_t)(p->n_in + p->n_out + 1));
    struct build b = {.g = g, .p = p, .r = out};
    for (size_t t = 0; t < out->n_in + out->n_out; t++) {
        out->map[t].n_dims = shape(&b, t)->n_dims;
    }
    build(&b);
    return b.full ? hv_err_set(err, HV_ELIMIT, "%s has more than %d factors, or %d per dimension",
                               hv_prim_name(p), HV_RULE_FACTORS, HV_DIM_FACTORS)
                  : HV_OK;
}
