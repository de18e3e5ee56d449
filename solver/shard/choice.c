/** How one operator is split over a mesh: layouts of a choice, halos, and enumeration. */
#include "solver/shard/choice.h"

#include <stdlib.h>
#include <string.h>

/* ---- layouts --------------------------------------------------------------------------------- */

/* Axes of a dimension under a choice; false where the dimension cannot be split so. */
static bool dim_axes(const struct hv_op_rule *r, const struct hv_mesh *m,
                     const struct hv_dim_map *d, const struct hv_choice *c, struct hv_axes *out)
{
    bool open = true; /* all factors so far are split to the end */
    for (size_t i = 0; i < d->n; i++) {
        const struct hv_axes *a = &c->factor[d->factor[i]];
        if (a->n > 0 && d->window.taps > 0 && i != d->at) {
            return false;
        }
        if (a->n > 0 && !open && d->window.taps == 0) {
            return false;
        }
        hv_axes_append(out, a);
        open = open && hv_axes_parts(m, a) == r->factor[d->factor[i]].size;
    }
    return true;
}

static bool factors_divide(const struct hv_op_rule *r, const struct hv_mesh *m,
                           const struct hv_choice *c)
{
    for (size_t f = 0; f < r->n_factors; f++) {
        int64_t parts = hv_axes_parts(m, &c->factor[f]);
        bool whole = r->factor[f].kind == HV_FACTOR_WHOLE && parts > 1;
        if (whole || r->factor[f].size % parts != 0) {
            return false;
        }
    }
    return true;
}

/* Summands and candidates of the results. */
static bool partials(const struct hv_op_rule *r, const struct hv_choice *c, struct hv_layout *out)
{
    uint32_t sum = 0, max = 0;
    for (size_t f = 0; f < r->n_factors; f++) {
        uint32_t set = hv_axes_set(&c->factor[f]);
        enum hv_factor_kind k = r->factor[f].kind;
        sum |= k == HV_FACTOR_SUM || k == HV_FACTOR_INDEXED ? set : 0;
        max |= k == HV_FACTOR_MAX ? set : 0;
    }
    uint32_t reduced = sum;
    if (c->through_all != 0 && r->additive_in == 0) {
        return false;
    }
    sum |= c->through_all;
    for (size_t t = 0; t < r->n_in; t++) {
        uint32_t own = t < HV_CHOICE_OPERANDS ? c->through[t] : 0;
        if (own != 0 && (r->linear_in >> t & 1) == 0) {
            return false;
        }
        out[t].sum = own | ((r->additive_in >> t & 1) != 0 ? c->through_all : 0);
        out[t].sum |= (r->added >> t & 1) != 0 ? reduced : 0;
        sum |= own;
    }
    for (size_t t = r->n_in; t < r->n_in + r->n_out; t++) {
        out[t].sum = sum;
        out[t].max = max;
    }
    return true;
}

/* The window of a dimension reads no further than the next part. */
static bool window_fits(const struct hv_dim_map *d, int64_t extent, int64_t parts)
{
    if (extent % parts != 0 || d->window.range % parts != 0) {
        return false;
    }
    for (int64_t p = 0; p < parts && d->window.taps > 1; p++) {
        int64_t lo = 0, hi = 0, tile = extent / parts;
        hv_window_needs(&d->window, extent, p, parts, &lo, &hi);
        if (hi > lo && (lo < (p - 1) * tile || hi > (p + 2) * tile)) {
            return false;
        }
    }
    return true;
}

static bool windows_fit(const struct hv_op_rule *r, const struct hv_mesh *m,
                        const struct hv_shape *const *shapes, const struct hv_layout *layouts)
{
    for (size_t t = 0; t < r->n_in + r->n_out; t++) {
        for (size_t d = 0; d < r->map[t].n_dims; d++) {
            int64_t parts = hv_axes_parts(m, &layouts[t].dim[d]);
            const struct hv_dim_map *map = &r->map[t].dim[d];
            if (parts > 1 && map->window.taps > 0 && !window_fits(map, shapes[t]->size[d], parts)) {
                return false;
            }
        }
    }
    return true;
}

bool hv_choice_layouts(const struct hv_op_rule *r, const struct hv_mesh *m,
                       const struct hv_shape *const *shapes, const struct hv_choice *c,
                       struct hv_layout *out)
{
    if (!factors_divide(r, m, c)) {
        return false;
    }
    for (size_t t = 0; t < r->n_in + r->n_out; t++) {
        out[t] = hv_layout_whole(r->map[t].n_dims);
        for (size_t d = 0; d < r->map[t].n_dims; d++) {
            if (!dim_axes(r, m, &r->map[t].dim[d], c, &out[t].dim[d]) ||
                shapes[t]->size[d] % hv_axes_parts(m, &out[t].dim[d]) != 0) {
                return false;
            }
        }
    }
    return partials(r, c, out) && windows_fit(r, m, shapes, out);
}

/* ---- halos ----------------------------------------------------------------------------------- */

/* Distances to the parts of an operand that the parts of a window read: parts `*first` to `*last`
 * further. *most = most rows that a part reads. */
static void reach(const struct hv_window *w, int64_t extent, int64_t parts, int64_t *first,
                  int64_t *last, int64_t *most)
{
    int64_t tile = extent / parts;
    *first = *last = *most = 0;
    for (int64_t p = 0; p < parts; p++) {
        int64_t lo = 0, hi = 0;
        hv_window_needs(w, extent, p, parts, &lo, &hi);
        if (hi > lo) {
            int64_t low = lo / tile - p, high = (hi - 1) / tile - p;
            *first = low < *first ? low : *first;
            *last = high > *last ? high : *last;
            *most = hi - lo > *most ? hi - lo : *most;
        }
    }
}

/* Rows of a dimension that come from other devices: for each distance the largest piece, summed.
 * *most = most rows that a part reads. O(parts and pieces that they read). */
static int64_t foreign_rows(const struct hv_window *w, int64_t extent, int64_t parts, int64_t *most)
{
    int64_t tile = extent / parts, sum = 0, first = 0, last = 0;
    reach(w, extent, parts, &first, &last, most);
    int64_t *largest = hv_xcalloc((size_t)(last - first + 1), sizeof *largest);
    for (int64_t p = 0; p < parts; p++) {
        int64_t lo = 0, hi = 0;
        hv_window_needs(w, extent, p, parts, &lo, &hi);
        for (int64_t q = lo / tile; q * tile < hi && hi > lo; q++) {
            int64_t from = lo > q * tile ? lo : q * tile;
            int64_t to = hi < (q + 1) * tile ? hi : (q + 1) * tile;
            int64_t *piece = &largest[q - p - first];
            *piece = to - from > *piece ? to - from : *piece;
        }
    }
    for (int64_t distance = first; distance <= last; distance++) {
        sum += distance != 0 ? largest[distance - first] : 0;
    }
    free(largest);
    return sum;
}

size_t hv_choice_halos(const struct hv_op_rule *r, const struct hv_mesh *m,
                       const struct hv_shape *shape, size_t t, const struct hv_layout *layout,
                       struct hv_exchange *out)
{
    size_t n = 0;
    int64_t rows[HV_SHARD_DIMS] = {0};
    const struct hv_tensor_map *map = &r->map[t];
    for (size_t d = 0; d < map->n_dims; d++) {
        rows[d] = shape->size[d] / hv_axes_parts(m, &layout->dim[d]);
    }
    for (size_t d = 0; d < map->n_dims; d++) {
        int64_t parts = hv_axes_parts(m, &layout->dim[d]), most = 0;
        if (map->dim[d].window.taps == 0 || parts == 1) {
            continue;
        }
        int64_t foreign = foreign_rows(&map->dim[d].window, shape->size[d], parts, &most);
        double bytes = (double)(shape->element_bytes * foreign);
        for (size_t other = 0; other < map->n_dims; other++) {
            bytes *= other == d ? 1 : (double)rows[other];
        }
        rows[d] = most > rows[d] ? most : rows[d];
        if (foreign > 0) {
            uint32_t set = hv_axes_set(&layout->dim[d]);
            out[n++] = hv_exchange_make(HV_EXCHANGE_HALO, set, hv_mesh_group(m, set), bytes);
        }
    }
    return n;
}

/* ---- enumeration ----------------------------------------------------------------------------- */

struct enumeration {
    const struct hv_op_rule *rule;
    const struct hv_mesh *mesh;
    uint32_t partial;
    size_t left;
    hv_choice_fn *visit;
    void *ctx;
};

static bool each(struct enumeration *e, size_t axis, const struct hv_choice *c);

/* The atoms of an axis in every place among the axes of a factor. */
static bool each_place(struct enumeration *e, size_t axis, const struct hv_choice *c, size_t f)
{
    const struct hv_axes *old = &c->factor[f];
    size_t n_axis = (size_t)(e->mesh->first[axis + 1] - e->mesh->first[axis]);
    for (size_t at = 0; at <= old->n; at++) {
        size_t before = at > 0 ? hv_mesh_axis_of(e->mesh, old->atom[at - 1]) : HV_MESH_AXES;
        if (at > 0 && at < old->n && hv_mesh_axis_of(e->mesh, old->atom[at]) == before) {
            continue; /* inside another axis */
        }
        struct hv_choice next = *c;
        struct hv_axes *a = &next.factor[f];
        hv_axes_cut(a, at);
        for (size_t i = 0; i < n_axis; i++) {
            hv_axes_push(a, (uint8_t)(e->mesh->first[axis] + i));
        }
        for (size_t i = at; i < old->n; i++) {
            hv_axes_push(a, old->atom[i]);
        }
        if (!each(e, axis + 1, &next)) {
            return false;
        }
    }
    return true;
}

/* Choices that keep values partial over an axis. */
static bool each_partial(struct enumeration *e, size_t axis, const struct hv_choice *c)
{
    const struct hv_op_rule *r = e->rule;
    uint32_t set = hv_mesh_axis_atoms(e->mesh, axis);
    if ((e->partial & set) == 0) {
        return true;
    }
    for (size_t t = 0; t < r->n_in && t < HV_CHOICE_OPERANDS; t++) {
        if ((r->linear_in >> t & 1) != 0) {
            struct hv_choice next = *c;
            next.through[t] |= set;
            if (!each(e, axis + 1, &next)) {
                return false;
            }
        }
    }
    struct hv_choice next = *c;
    next.through_all |= set;
    return r->additive_in == 0 || each(e, axis + 1, &next);
}

static bool each(struct enumeration *e, size_t axis, const struct hv_choice *c)
{
    if (axis == e->mesh->n_axes) {
        return e->left > 0 && e->left-- > 0 && e->visit(e->ctx, c);
    }
    if (!each(e, axis + 1, c)) {
        return false;
    }
    if (e->mesh->size[axis] == 1) {
        return true;
    }
    for (size_t f = 0; f < e->rule->n_factors; f++) {
        const struct hv_factor *factor = &e->rule->factor[f];
        bool splits = factor->kind != HV_FACTOR_WHOLE && factor->size % e->mesh->size[axis] == 0;
        if (splits && !each_place(e, axis, c, f)) {
            return false;
        }
    }
    return each_partial(e, axis, c);
}

bool hv_choice_each(const struct hv_op_rule *r, const struct hv_mesh *m, uint32_t partial,
                    size_t most, hv_choice_fn *visit, void *ctx)
{
    struct enumeration e = {r, m, partial, most, visit, ctx};
    struct hv_choice none = {0};
    return each(&e, 0, &none);
}

void hv_axes_to_factors(const struct hv_op_rule *r, const struct hv_mesh *m,
                        const struct hv_dim_map *d, const struct hv_axes *dim, struct hv_axes *axes)
{
    size_t next = 0;
    for (size_t i = 0; i < d->n; i++) {
        int64_t left = r->factor[d->factor[i]].size;
        bool last = i + 1 == d->n;
        while (next < dim->n && (last || left % m->atom[dim->atom[next]] == 0)) {
            left /= last ? 1 : m->atom[dim->atom[next]];
            hv_axes_push(&axes[d->factor[i]], dim->atom[next++]);
        }
        if (left > 1 && !last) {
            return;
        }
    }
}

struct hv_choice hv_choice_follow(const struct hv_op_rule *r, const struct hv_mesh *m,
                                  const struct hv_layout *layouts, size_t first)
{
    struct hv_choice c = {0};
    uint32_t used = 0;
    size_t n = r->n_in + r->n_out;
    for (size_t i = 0; i <= n; i++) {
        size_t t = i == 0 ? first : i - 1;
        const struct hv_tensor_map *map = &r->map[t];
        struct hv_axes own[HV_RULE_FACTORS] = {0};
        for (size_t d = 0; d < map->n_dims; d++) {
            if (map->dim[d].window.taps > 0) {
                own[map->dim[d].factor[map->dim[d].at]] = layouts[t].dim[d];
            } else {
                hv_axes_to_factors(r, m, &map->dim[d], &layouts[t].dim[d], own);
            }
        }
        for (size_t f = 0; f < r->n_factors; f++) {
            uint32_t set = hv_axes_set(&own[f]);
            bool whole = r->factor[f].kind == HV_FACTOR_WHOLE;
            if (set != 0 && !whole && (used & set) == 0 && c.factor[f].n == 0) {
                c.factor[f] = own[f];
                used |= set;
            }
        }
    }
    return c;
}
