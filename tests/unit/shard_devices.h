/**
 * Virtual devices that hold parts of tensors of integers: primitives are executed on the parts that
 * each device has, and exchanges move parts between the devices of a group. Reading an element that
 * a device does not have is an error, so a rule that asks for too little cannot pass.
 */
#ifndef HV_TESTS_UNIT_SHARD_DEVICES_H
#define HV_TESTS_UNIT_SHARD_DEVICES_H

#include "solver/shard/choice.h"
#include "solver/workload/graph/prims.h"
#include <stdlib.h>
#include <string.h>

#define MOST_DEVICES  8
#define MOST_ELEMENTS 4096

/** A whole tensor. */
struct whole {
    struct hv_shape shape;
    int64_t at[MOST_ELEMENTS];
};
/** What one device holds of a tensor: the elements of a box, in global coordinates. */
struct part {
    int64_t lo[HV_SHARD_DIMS], hi[HV_SHARD_DIMS];
    int64_t at[MOST_ELEMENTS];
};
/** A tensor on all devices. */
struct spread {
    struct hv_layout layout;
    struct part on[MOST_DEVICES];
};

/* Sums and products modulo 2^64: exact for what is compared, at any depth. */
static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static bool missing; /* an element was read that the device does not have */

static size_t count(const struct hv_shape *s)
{
    size_t n = 1;
    for (size_t d = 0; d < s->n_dims; d++) {
        n *= (size_t)s->size[d];
    }
    return n;
}

/* Coordinates from a running number inside a box. */
static void coordinates(const int64_t *lo, const int64_t *hi, size_t n_dims, size_t i, int64_t *at)
{
    for (size_t d = n_dims; d-- > 0;) {
        int64_t n = hi[d] - lo[d];
        at[d] = lo[d] + (int64_t)(i % (size_t)n);
        i /= (size_t)n;
    }
}

static size_t number(const int64_t *lo, const int64_t *hi, size_t n_dims, const int64_t *at)
{
    size_t i = 0;
    for (size_t d = 0; d < n_dims; d++) {
        i = i * (size_t)(hi[d] - lo[d]) + (size_t)(at[d] - lo[d]);
    }
    return i;
}

static size_t box_count(const struct part *p, size_t n_dims)
{
    size_t n = 1;
    for (size_t d = 0; d < n_dims; d++) {
        n *= p->hi[d] > p->lo[d] ? (size_t)(p->hi[d] - p->lo[d]) : 0;
    }
    return n;
}

static bool holds(const struct part *p, size_t n_dims, const int64_t *at)
{
    for (size_t d = 0; d < n_dims; d++) {
        if (at[d] < p->lo[d] || at[d] >= p->hi[d]) {
            return false;
        }
    }
    return true;
}

static int64_t read_part(const struct part *p, size_t n_dims, const int64_t *at)
{
    if (!holds(p, n_dims, at)) {
        missing = true;
        return 0;
    }
    return p->at[number(p->lo, p->hi, n_dims, at)];
}

/* The box of a device under a layout. */
static void set_box(const struct hv_mesh *m, const struct hv_shape *s, const struct hv_layout *l,
                    int64_t device, struct part *p)
{
    int64_t digit[HV_MESH_ATOMS];
    hv_mesh_digits(m, device, digit);
    for (size_t d = 0; d < s->n_dims; d++) {
        int64_t tile = s->size[d] / hv_axes_parts(m, &l->dim[d]);
        p->lo[d] = hv_axes_part(m, &l->dim[d], digit) * tile;
        p->hi[d] = p->lo[d] + tile;
    }
}

/* Number of a device among those that differ from it in these atoms only. */
static int64_t rank_in(const struct hv_mesh *m, uint32_t atoms, int64_t device)
{
    int64_t digit[HV_MESH_ATOMS], rank = 0;
    hv_mesh_digits(m, device, digit);
    for (size_t a = 0; a < m->n_atoms; a++) {
        rank = (atoms >> a & 1) != 0 ? rank * m->atom[a] + digit[a] : rank;
    }
    return rank;
}

static bool same_group(const struct hv_mesh *m, uint32_t atoms, int64_t a, int64_t b)
{
    uint32_t rest = (uint32_t)((1ULL << m->n_atoms) - 1) & ~atoms;
    return rank_in(m, rest, a) == rank_in(m, rest, b);
}

/* Lays a tensor out: parts, and where it is partial, summands (or candidates) that give the value
 * together. */
static void lay_out(const struct hv_mesh *m, const struct whole *w, const struct hv_layout *l,
                    struct spread *out)
{
    out->layout = *l;
    for (int64_t d = 0; d < m->n_devices; d++) {
        struct part *p = &out->on[d];
        set_box(m, &w->shape, l, d, p);
        size_t n = box_count(p, w->shape.n_dims);
        int64_t sums = hv_mesh_group(m, l->sum), rank = rank_in(m, l->sum, d);
        int64_t most = hv_mesh_group(m, l->max), own = rank_in(m, l->max, d);
        for (size_t i = 0; i < n; i++) {
            int64_t at[HV_SHARD_DIMS];
            coordinates(p->lo, p->hi, w->shape.n_dims, i, at);
            int64_t zero[HV_SHARD_DIMS] = {0};
            int64_t value = w->at[number(zero, w->shape.size, w->shape.n_dims, at)];
            /* rank r > 0 has r·3 + 1; rank 0 the rest, so that all give the value */
            int64_t others = 3 * sums * (sums - 1) / 2 + (sums - 1);
            value = sums == 1 ? value : rank == 0 ? plus(value, -others) : 3 * rank + 1;
            p->at[i] = own == most - 1 ? value : value - 1 - own;
        }
    }
}

/* True where the devices together hold exactly this tensor. */
static bool is_whole(const struct hv_mesh *m, const struct spread *s, const struct whole *w)
{
    for (int64_t d = 0; d < m->n_devices; d++) {
        const struct part *p = &s->on[d];
        size_t n = box_count(p, w->shape.n_dims);
        for (size_t i = 0; i < n; i++) {
            int64_t at[HV_SHARD_DIMS], zero[HV_SHARD_DIMS] = {0}, best = INT64_MIN;
            coordinates(p->lo, p->hi, w->shape.n_dims, i, at);
            for (int64_t e = 0; e < m->n_devices; e++) { /* one sum per candidate */
                if (same_group(m, s->layout.max, d, e)) {
                    int64_t sum = 0;
                    for (int64_t f = 0; f < m->n_devices; f++) {
                        sum = same_group(m, s->layout.sum, e, f)
                                  ? plus(sum, read_part(&s->on[f], w->shape.n_dims, at))
                                  : sum;
                    }
                    best = sum > best ? sum : best;
                }
            }
            if (best != w->at[number(zero, w->shape.size, w->shape.n_dims, at)]) {
                return false;
            }
        }
    }
    return true;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* One element after an exchange, from the devices of the group only. */
static int64_t exchanged(const struct hv_mesh *m, const struct hv_shape *shape,
                         const struct spread *old, const struct hv_exchange *x,
                         const struct hv_layout *after, int64_t device, const int64_t *at)
{
    int64_t value = 0;
    bool any = false;
    if (x->kind == HV_EXCHANGE_MASK) {
        bool first = rank_in(m, x->atoms, device) == 0 || (after->max & x->atoms) == x->atoms;
        bool here = holds(&old->on[device], shape->n_dims, at);
        bool split = (hv_layout_splits(&old->layout) & x->atoms) != 0;
        return split   ? (here ? read_part(&old->on[device], shape->n_dims, at) : 0)
               : first ? read_part(&old->on[device], shape->n_dims, at)
                       : 0;
    }
    for (int64_t e = 0; e < m->n_devices; e++) {
        bool own = x->kind == HV_EXCHANGE_SLICE ? e == device
                   : x->kind == HV_EXCHANGE_PERMUTE
                       ? rank_in(m, old->layout.sum, e) == rank_in(m, after->sum, device) &&
                             rank_in(m, old->layout.max, e) == rank_in(m, after->max, device)
                       : same_group(m, x->atoms, device, e);
        if (!own || !holds(&old->on[e], shape->n_dims, at)) {
            continue;
        }
        int64_t v = read_part(&old->on[e], shape->n_dims, at);
        bool reduces = x->kind == HV_EXCHANGE_REDUCE || x->kind == HV_EXCHANGE_REDUCE_SCATTER;
        if (!reduces) {
            return v;
        }
        bool sums = (old->layout.sum & x->atoms) != 0;
        value = !any ? v : sums ? plus(value, v) : v > value ? v : value;
        any = true;
    }
    missing = missing || !any;
    return value;
}

static void exchange(const struct hv_mesh *m, const struct hv_shape *shape, struct spread *io,
                     const struct hv_exchange *x, const struct hv_layout *after)
{
    static struct spread next;
    next.layout = *after;
    for (int64_t d = 0; d < m->n_devices; d++) {
        struct part *p = &next.on[d];
        set_box(m, shape, after, d, p);
        size_t n = box_count(p, shape->n_dims);
        for (size_t i = 0; i < n; i++) {
            int64_t at[HV_SHARD_DIMS];
            coordinates(p->lo, p->hi, shape->n_dims, i, at);
            p->at[i] = exchanged(m, shape, io, x, after, d, at);
        }
    }
    *io = next;
}

/* ---- primitives ------------------------------------------------------------------------------ */

/* Integer functions with the same linearity as the real ones. */
static int64_t apply(enum hv_fn fn, int64_t a, int64_t b, int64_t c)
{
    switch (fn) {
    case HV_FN_ADD:
        return plus(a, b);
    case HV_FN_SUB:
        return plus(a, times(b, -1));
    case HV_FN_MUL:
        return times(a, b);
    case HV_FN_DIV:
        return times(a, plus(times(b, b), 1));
    case HV_FN_MAX:
        return a > b ? a : b;
    case HV_FN_MIN:
        return a < b ? a : b;
    case HV_FN_NEG:
        return times(a, -1);
    case HV_FN_CONVERT:
        return a;
    case HV_FN_EQUAL:
        return a == b;
    case HV_FN_GREATER:
        return a > b;
    case HV_FN_SELECT:
        return a % 2 != 0 ? b : c;
    case HV_FN_EXP:
    case HV_FN_LOG:
    case HV_FN_TANH:
    case HV_FN_LOGISTIC:
    case HV_FN_SQRT:
    case HV_FN_RSQRT:
    case HV_FN_ABS:
    case HV_FN_SIGN:
    case HV_FN_IS_FINITE:
    case HV_FN_N:
        break;
    }
    return plus(plus(times(a, a), times((int64_t)fn, a)), 3) %
           11; /* any function that is not linear */
}

/* What a device works on: its parts of the operands, and which part of sums is its own. */
struct local {
    const struct hv_prim_graph *g;
    const struct hv_prim *p;
    const struct part *in[8];
    const struct part *own[8]; /* without rows of neighbours */
};

static int64_t in_at(const struct local *l, size_t t, const int64_t *at)
{
    return read_part(l->in[t], hv_prim_shape(l->g, l->p->tensor[t])->n_dims, at);
}

static int64_t extent(const struct local *l, size_t t, size_t d)
{
    return hv_prim_shape(l->g, l->p->tensor[t])->size[d];
}

/* Element that a window reads; false: padding. */
static bool window_at(const struct hv_window *w, int64_t extent_of, int64_t i, int64_t tap,
                      int64_t *at)
{
    int64_t place = i * w->stride - w->pad + tap * w->dilation;
    if (place < 0 || place % w->base != 0) {
        return false;
    }
    *at = place / w->base;
    return *at < extent_of;
}

static int64_t reduce_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *s = hv_prim_shape(l->g, l->p->tensor[0]);
    int64_t at[HV_SHARD_DIMS], lo[HV_SHARD_DIMS], hi[HV_SHARD_DIMS], value = 0;
    bool gone[HV_SHARD_DIMS] = {false}, any = false;
    size_t n = 1, next = 0;
    for (size_t i = 0; i < l->p->n_axes; i++) {
        gone[l->p->axis[i]] = true;
    }
    for (size_t d = 0; d < s->n_dims; d++) {
        lo[d] = gone[d] ? l->own[0]->lo[d] : out[next];
        hi[d] = gone[d] ? l->own[0]->hi[d] : out[next++] + 1;
        n *= (size_t)(hi[d] - lo[d]);
    }
    for (size_t i = 0; i < n; i++) {
        coordinates(lo, hi, s->n_dims, i, at);
        int64_t v = in_at(l, 0, at);
        value = !any                    ? v
                : l->p->by == HV_BY_SUM ? plus(value, v)
                : l->p->by == HV_BY_MAX ? (v > value ? v : value)
                                        : (v < value ? v : value);
        any = true;
    }
    return value;
}

/* Products: loops that the result has are fixed, the others run over the device's own part. */
static int64_t product_at(const struct local *l, const int64_t *out)
{
    int64_t lo[HV_PRIM_LOOPS], hi[HV_PRIM_LOOPS], at[HV_PRIM_LOOPS], sum = 0;
    size_t n = 1, loops = l->p->n_loops;
    for (size_t k = 0; k < loops; k++) {
        const struct hv_loop *x = &l->p->loop[k];
        bool inner = x->role == HV_ROLE_CONTRACT || x->role == HV_ROLE_SPATIAL;
        size_t t = x->dim[1] >= 0 ? 1 : 0;
        lo[k] = !inner ? out[x->dim[2]] : x->dim[t] >= 0 ? l->own[t]->lo[x->dim[t]] : 0;
        hi[k] = !inner ? lo[k] + 1 : x->dim[t] >= 0 ? l->own[t]->hi[x->dim[t]] : 1;
        n *= (size_t)(hi[k] - lo[k]);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t a[HV_SHARD_DIMS] = {0}, b[HV_SHARD_DIMS] = {0};
        bool inside = true;
        coordinates(lo, hi, loops, i, at);
        for (size_t k = 0; k < loops; k++) {
            const struct hv_loop *x = &l->p->loop[k];
            if (x->dim[1] >= 0) {
                b[x->dim[1]] = at[k];
            }
            if (x->role == HV_ROLE_SPATIAL) {
                inside = inside && window_at(&x->window, extent(l, 0, (size_t)x->dim[0]),
                                             out[x->dim[2]], at[k], &a[x->dim[0]]);
            } else if (x->dim[0] >= 0) {
                a[x->dim[0]] = at[k];
            }
        }
        sum = inside ? plus(sum, times(in_at(l, 0, a), in_at(l, 1, b))) : sum;
    }
    return sum;
}

static int64_t reduce_window_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *s = hv_prim_shape(l->g, l->p->tensor[0]);
    int64_t zero[HV_SHARD_DIMS] = {0}, taps[HV_SHARD_DIMS], value = 0;
    size_t n = 1;
    bool any = false;
    for (size_t d = 0; d < s->n_dims; d++) {
        taps[d] = l->p->window[d].taps;
        n *= (size_t)taps[d];
    }
    for (size_t i = 0; i < n; i++) {
        int64_t tap[HV_SHARD_DIMS], at[HV_SHARD_DIMS];
        bool inside = true;
        coordinates(zero, taps, s->n_dims, i, tap);
        for (size_t d = 0; d < s->n_dims && inside; d++) {
            inside = window_at(&l->p->window[d], s->size[d], out[d], tap[d], &at[d]);
        }
        if (inside) {
            int64_t v = in_at(l, 0, at);
            value = !any ? v : l->p->by == HV_BY_SUM ? plus(value, v) : v > value ? v : value;
            any = true;
        }
    }
    return value;
}

static int64_t reshape_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *s = hv_prim_shape(l->g, l->p->tensor[0]);
    const struct hv_shape *r = hv_prim_shape(l->g, l->p->tensor[1]);
    int64_t zero[HV_SHARD_DIMS] = {0}, at[HV_SHARD_DIMS];
    coordinates(zero, s->size, s->n_dims, number(zero, r->size, r->n_dims, out), at);
    return in_at(l, 0, at);
}

static int64_t moved_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *s = hv_prim_shape(l->g, l->p->tensor[0]);
    int64_t at[HV_SHARD_DIMS] = {0};
    for (size_t d = 0; d < s->n_dims; d++) {
        at[d] = out[d];
    }
    for (size_t i = 0; i < l->p->n_axes; i++) {
        int axis = l->p->axis[i];
        if (l->p->kind == HV_PRIM_TRANSPOSE) {
            at[axis] = out[i];
        } else if (l->p->kind == HV_PRIM_BROADCAST) {
            at[i] = s->size[i] == 1 ? 0 : out[axis];
        } else {
            at[axis] = s->size[axis] - 1 - out[axis];
        }
    }
    for (size_t d = 0; (l->p->kind == HV_PRIM_SLICE || l->p->kind == HV_PRIM_PAD) && d < s->n_dims;
         d++) {
        if (!window_at(&l->p->window[d], s->size[d], out[d], 0, &at[d])) {
            return 0;
        }
    }
    return in_at(l, 0, at);
}

static int64_t concat_at(const struct local *l, const int64_t *out)
{
    int axis = l->p->axis[0];
    int64_t at[HV_SHARD_DIMS], from = 0;
    memcpy(at, out, sizeof at);
    for (size_t t = 0; t < l->p->n_in; t++) {
        if (out[axis] < from + extent(l, t, (size_t)axis)) {
            at[axis] = out[axis] - from;
            return in_at(l, t, at);
        }
        from += extent(l, t, (size_t)axis);
    }
    return 0;
}

/* Rows that a device does not have are zeros: others have them. */
static int64_t gather_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *table = hv_prim_shape(l->g, l->p->tensor[0]);
    size_t batch = hv_prim_shape(l->g, l->p->tensor[1])->n_dims - 1U;
    int64_t index[HV_SHARD_DIMS] = {0}, at[HV_SHARD_DIMS] = {0};
    int row = l->p->axis[0];
    memcpy(index, out, batch * sizeof *index);
    int64_t wanted = in_at(l, 1, index);
    for (size_t d = 0, next = batch; d < table->n_dims; d++) {
        at[d] = (int)d == row ? wanted : out[next++];
    }
    return wanted < l->own[0]->lo[row] || wanted >= l->own[0]->hi[row] ? 0 : in_at(l, 0, at);
}

static int64_t scatter_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *table = hv_prim_shape(l->g, l->p->tensor[0]);
    size_t batch = hv_prim_shape(l->g, l->p->tensor[1])->n_dims - 1U, n = 1;
    int64_t index[HV_SHARD_DIMS] = {0}, at[HV_SHARD_DIMS] = {0}, sum = in_at(l, 0, out);
    int row = l->p->axis[0];
    for (size_t d = 0; d < batch; d++) {
        n *= (size_t)(l->own[1]->hi[d] - l->own[1]->lo[d]);
    }
    for (size_t i = 0; i < n; i++) {
        coordinates(l->own[1]->lo, l->own[1]->hi, batch, i, index);
        index[batch] = 0;
        memcpy(at, index, batch * sizeof *at);
        for (size_t d = 0, next = batch; d < table->n_dims; d++) {
            if ((int)d != row) {
                at[next++] = out[d];
            }
        }
        sum = in_at(l, 1, index) == out[row] ? plus(sum, in_at(l, 2, at)) : sum;
    }
    return sum;
}

static int compare_values(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Along a dimension that is whole on the device: sorted, or a transform that needs all of it. */
static int64_t whole_at(const struct local *l, const int64_t *out)
{
    const struct hv_shape *s = hv_prim_shape(l->g, l->p->tensor[0]);
    int axis = l->p->axis[0];
    int64_t row[MOST_ELEMENTS], at[HV_SHARD_DIMS];
    memcpy(at, out, sizeof at);
    for (int64_t i = 0; i < s->size[axis]; i++) {
        at[axis] = i;
        row[i] = in_at(l, 0, at);
    }
    qsort(row, (size_t)s->size[axis], sizeof *row, compare_values);
    return row[out[axis]];
}

static int64_t result_at(const struct local *l, const int64_t *out)
{
    int64_t v[3] = {0};
    switch (l->p->kind) {
    case HV_PRIM_CONSTANT:
        return l->p->n_axes == 1 ? out[l->p->axis[0]] : (int64_t)(l->p->value < 0 ? -3 : 2);
    case HV_PRIM_ELEMENTWISE:
        for (size_t t = 0; t < l->p->n_in; t++) {
            v[t] = in_at(l, t, out);
        }
        return apply(l->p->fn, v[0], v[1], v[2]);
    case HV_PRIM_REDUCE:
        return reduce_at(l, out);
    case HV_PRIM_DOT:
    case HV_PRIM_CONV:
        return product_at(l, out);
    case HV_PRIM_REDUCE_WINDOW:
        return reduce_window_at(l, out);
    case HV_PRIM_RESHAPE:
        return reshape_at(l, out);
    case HV_PRIM_BROADCAST:
    case HV_PRIM_TRANSPOSE:
    case HV_PRIM_SLICE:
    case HV_PRIM_PAD:
    case HV_PRIM_REVERSE:
        return moved_at(l, out);
    case HV_PRIM_CONCAT:
        return concat_at(l, out);
    case HV_PRIM_GATHER:
        return gather_at(l, out);
    case HV_PRIM_SCATTER:
        return scatter_at(l, out);
    case HV_PRIM_SORT:
    case HV_PRIM_TOP_K:
    case HV_PRIM_WHOLE:
        return whole_at(l, out);
    case HV_PRIM_OPAQUE:
    case HV_PRIM_SELECT_ADD:
        break;
    }
    missing = true;
    return 0;
}

/* The first result of a primitive on its box, from the operands' parts. */
static void compute(const struct local *l, struct part *out)
{
    size_t n_dims = hv_prim_shape(l->g, l->p->tensor[l->p->n_in])->n_dims;
    size_t n = box_count(out, n_dims);
    for (size_t i = 0; i < n; i++) {
        int64_t at[HV_SHARD_DIMS] = {0};
        coordinates(out->lo, out->hi, n_dims, i, at);
        out->at[i] = result_at(l, at);
    }
}

/* Rows that a window reads from the neighbours join a device's part. */
static void add_halo(const struct hv_mesh *m, const struct hv_shape *shape,
                     const struct hv_tensor_map *map, const struct spread *s, int64_t device,
                     struct part *out)
{
    int64_t digit[HV_MESH_ATOMS];
    hv_mesh_digits(m, device, digit);
    *out = s->on[device];
    for (size_t d = 0; d < shape->n_dims; d++) {
        const struct hv_axes *axes = &s->layout.dim[d];
        int64_t parts = hv_axes_parts(m, axes), lo = 0, hi = 0;
        if (map->dim[d].window.taps > 0 && parts > 1) {
            hv_window_needs(&map->dim[d].window, shape->size[d], hv_axes_part(m, axes, digit),
                            parts, &lo, &hi);
            out->lo[d] = lo < out->lo[d] && hi > lo ? lo : out->lo[d];
            out->hi[d] = hi > out->hi[d] && hi > lo ? hi : out->hi[d];
        }
    }
    size_t n = box_count(out, shape->n_dims);
    for (size_t i = 0; i < n; i++) {
        int64_t at[HV_SHARD_DIMS];
        coordinates(out->lo, out->hi, shape->n_dims, i, at);
        int64_t value = 0;
        bool found = false;
        for (int64_t e = 0; e < m->n_devices && !found; e++) {
            uint32_t split = hv_layout_splits(&s->layout);
            found = same_group(m, split, device, e) && holds(&s->on[e], shape->n_dims, at);
            value = found ? read_part(&s->on[e], shape->n_dims, at) : 0;
        }
        missing = missing || !found;
        out->at[i] = value;
    }
}

/* A primitive on all devices: operands in their layouts, the result in its own. */
static void execute(const struct hv_prim_graph *g, const struct hv_prim *p,
                    const struct hv_op_rule *r, const struct hv_mesh *m, struct spread *const *in,
                    const struct hv_layout *result, struct spread *out)
{
    static struct part wide[8];
    out->layout = *result;
    for (int64_t d = 0; d < m->n_devices; d++) {
        struct local l = {.g = g, .p = p};
        for (size_t t = 0; t < p->n_in; t++) {
            add_halo(m, hv_prim_shape(g, p->tensor[t]), &r->map[t], in[t], d, &wide[t]);
            l.in[t] = &wide[t];
            l.own[t] = &in[t]->on[d];
        }
        set_box(m, hv_prim_shape(g, p->tensor[p->n_in]), result, d, &out->on[d]);
        compute(&l, &out->on[d]);
    }
}

/* The same on one device that has everything. */
static void execute_whole(const struct hv_prim_graph *g, const struct hv_prim *p,
                          const struct whole *tensors, struct whole *out)
{
    static struct part parts[9];
    struct local l = {.g = g, .p = p};
    for (size_t t = 0; t <= p->n_in; t++) {
        const struct hv_shape *s = hv_prim_shape(g, p->tensor[t]);
        memset(parts[t].lo, 0, sizeof parts[t].lo);
        memcpy(parts[t].hi, s->size, sizeof parts[t].hi);
        if (t < p->n_in) {
            memcpy(parts[t].at, tensors[p->tensor[t]].at, count(s) * sizeof(int64_t));
            l.in[t] = l.own[t] = &parts[t];
        }
    }
    compute(&l, &parts[p->n_in]);
    out->shape = *hv_prim_shape(g, p->tensor[p->n_in]);
    memcpy(out->at, parts[p->n_in].at, count(&out->shape) * sizeof(int64_t));
}

#endif
