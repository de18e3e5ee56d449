/** Layouts of one operator as axes of its factors. */
#include "solver/shard/projection.h"

#include "solver/base/arena.h"
#include <stdlib.h>
#include <string.h>

/* One factor in one tensor. */
struct cell {
    struct hv_axes axes, over; /* over: axes of the dimension that do not fit on any factor */
    bool has, closed, minor;   /* minor: the last factor of its dimension */
};

struct hv_projection {
    const struct hv_op_rule *rule;
    const struct hv_mesh *mesh;
    size_t n_tensors;
    uint32_t *held;    /* per tensor: atoms of all its cells */
    struct cell *cell; /* tensor · n_factors + factor */
};

static struct cell *cell_at(const struct hv_projection *p, size_t t, size_t f)
{
    return &p->cell[t * p->rule->n_factors + f];
}

/* The axes of a dimension on its factors, from the major ones on; a factor takes them as long as
 * they divide it, the last one takes the rest. */
static void project_dim(struct hv_projection *p, size_t t, const struct hv_dim_map *d,
                        const struct hv_axes *dim, bool closed)
{
    size_t next = 0;
    bool over = false;
    for (size_t i = 0; i < d->n; i++) {
        struct cell *c = cell_at(p, t, d->factor[i]);
        c->has = true;
        c->minor = i + 1 == d->n;
        c->closed = closed || over;
        if (over) {
            continue;
        }
        int64_t left = p->rule->factor[d->factor[i]].size;
        while (next < dim->n && (c->minor || left % p->mesh->atom[dim->atom[next]] == 0)) {
            left /= c->minor ? 1 : p->mesh->atom[dim->atom[next]];
            hv_axes_push(&c->axes, dim->atom[next++]);
        }
        if (left > 1 && next < dim->n) {
            over = true;
            while (next < dim->n) {
                hv_axes_push(&c->over, dim->atom[next++]);
            }
        }
    }
}

struct hv_projection *hv__project(const struct hv_op_rule *r, const struct hv_mesh *m,
                                  const struct hv_shard_tensor *tensors, const uint32_t *tensor)
{
    struct hv_projection *p = hv_xcalloc(1, sizeof *p);
    p->rule = r;
    p->mesh = m;
    p->n_tensors = r->n_in + r->n_out;
    p->cell = hv_xcalloc(p->n_tensors * r->n_factors + 1, sizeof *p->cell);
    p->held = hv_xcalloc(p->n_tensors + 1, sizeof *p->held);
    for (size_t t = 0; t < p->n_tensors; t++) {
        const struct hv_shard_tensor *x = &tensors[tensor[t]];
        p->held[t] = hv_layout_splits(&x->layout);
        for (size_t d = 0; d < r->map[t].n_dims; d++) {
            project_dim(p, t, &r->map[t].dim[d], &x->layout.dim[d], x->fixed);
        }
    }
    return p;
}

void hv__projection_free(struct hv_projection *p)
{
    free(p->cell);
    free(p->held);
    free(p);
}

bool hv__projected(const struct hv_projection *p, size_t t, struct hv_layout *io)
{
    struct hv_layout next = *io;
    const struct hv_tensor_map *map = &p->rule->map[t];
    for (size_t d = 0; d < map->n_dims; d++) {
        next.dim[d] = (struct hv_axes){0};
        for (size_t i = 0; i < map->dim[d].n; i++) {
            const struct cell *c = cell_at(p, t, map->dim[d].factor[i]);
            hv_axes_append(&next.dim[d], &c->axes);
            hv_axes_append(&next.dim[d], &c->over);
            if (c->over.n > 0 ||
                hv_axes_parts(p->mesh, &c->axes) < p->rule->factor[map->dim[d].factor[i]].size) {
                break; /* what comes behind would need a strided view */
            }
        }
    }
    bool differs = !hv_layout_equal(&next, io);
    *io = next;
    return differs;
}

/* ---- axes that a factor could have ----------------------------------------------------------- */

/* Joins a list with that of the next tensor: up to the first difference, then no further. A longer
 * list wins where `*grows`. */
static void join(struct hv_axes *list, const struct hv_axes *next, bool *grows)
{
    size_t i = 0;
    while (i < list->n && i < next->n) {
        if (list->atom[i] != next->atom[i]) {
            hv_axes_cut(list, i);
            *grows = false;
            return;
        }
        i++;
    }
    for (; *grows && i < next->n; i++) {
        hv_axes_push(list, next->atom[i]);
    }
}

/* Axes of a factor that all tensors agree on, conflicts with other factors aside. */
static struct hv_axes agreed(const struct hv_projection *p, size_t f, enum hv_direction direction)
{
    struct hv_axes list = {0};
    bool grows = true;
    size_t n_in = p->rule->n_in, n = p->n_tensors;
    if (direction == HV_DIRECTION_NONE) {
        return list;
    }
    bool back = direction == HV_DIRECTION_BACK;
    for (size_t i = 0; i < n; i++) {
        size_t t = !back ? i : i < n - n_in ? n_in + i : i - (n - n_in);
        bool second = back ? t < n_in : t >= n_in;
        grows = grows && !(second && direction != HV_DIRECTION_BOTH);
        if (cell_at(p, t, f)->has) {
            join(&list, &cell_at(p, t, f)->axes, &grows);
        }
    }
    return list;
}

/* Atoms of tensor t that lie on other factors than f. */
static uint32_t on_others(const struct hv_projection *p, size_t t, size_t f)
{
    return p->held[t] & ~hv_axes_set(&cell_at(p, t, f)->axes);
}

/* How many atoms of a list may stand on a factor of one tensor: those that are there, and more
 * where the factor is open and divides. */
static size_t fits(const struct hv_projection *p, size_t t, size_t f, const struct hv_axes *list)
{
    const struct cell *c = cell_at(p, t, f);
    int64_t before = 1, size = p->rule->factor[f].size;
    uint32_t here = hv_axes_set(&c->axes);
    for (size_t i = 0; i < list->n; i++) {
        int64_t atom = p->mesh->atom[list->atom[i]];
        bool divides = c->minor || size % (before * atom) == 0;
        if ((here >> list->atom[i] & 1) == 0 && (c->closed || c->over.n > 0 || !divides)) {
            return i;
        }
        before *= atom;
    }
    return list->n;
}

/* How many atoms of a list come before the first one of a set. */
static size_t until(const struct hv_axes *list, uint32_t set)
{
    size_t i = 0;
    while (i < list->n && (set >> list->atom[i] & 1) == 0) {
        i++;
    }
    return i;
}

/* True where a list is longer than another that it begins with. */
static bool extends(const struct hv_axes *list, const struct hv_axes *old)
{
    return list->n > old->n && memcmp(list->atom, old->atom, old->n) == 0;
}

static bool give(struct hv_projection *p, size_t t, size_t f, const struct hv_axes *list)
{
    struct cell *c = cell_at(p, t, f);
    if (!c->has || !extends(list, &c->axes)) {
        return false;
    }
    c->axes = *list;
    p->held[t] |= hv_axes_set(list);
    return true;
}

/* ---- what nobody contradicts ----------------------------------------------------------------- */

void hv__spread_agreed(struct hv_projection *p, const enum hv_direction *direction)
{
    for (size_t f = 0; f < p->rule->n_factors; f++) {
        struct hv_axes list = agreed(p, f, direction[f]);
        for (size_t t = 0; t < p->n_tensors && list.n > 0; t++) {
            hv_axes_cut(&list, until(&list, on_others(p, t, f)));
            if (cell_at(p, t, f)->has) {
                hv_axes_cut(&list, fits(p, t, f, &list));
            }
        }
        for (size_t t = 0; t < p->n_tensors && list.n > 0; t++) {
            give(p, t, f, &list);
        }
    }
}

/* ---- conflicts decided ----------------------------------------------------------------------- */

/* Where the axes of a factor come from: the largest tensor that has them all, or more. */
struct source {
    uint8_t factor;
    double size;
    size_t tensor;
    int64_t parts;
};

static double tensor_size(const struct hv_projection *p, size_t t)
{
    double size = 1;
    for (size_t f = 0; f < p->rule->n_factors; f++) {
        size *= cell_at(p, t, f)->has ? (double)p->rule->factor[f].size : 1;
    }
    return size;
}

static struct source find_source(const struct hv_projection *p, uint8_t f,
                                 const struct hv_axes *list)
{
    struct source s = {f, -1, SIZE_MAX, 0};
    s.parts = p->rule->elementwise ? hv_axes_parts(p->mesh, list) : 0;
    for (size_t t = 0; t < p->n_tensors && list->n > 0; t++) {
        const struct cell *c = cell_at(p, t, f);
        bool whole =
            c->has && c->axes.n >= list->n && memcmp(c->axes.atom, list->atom, list->n) == 0;
        double size = whole ? tensor_size(p, t) : -1;
        if (size > s.size) {
            s.size = size;
            s.tensor = t;
        }
    }
    return s;
}

static int compare_sources(const void *x, const void *y)
{
    const struct source *a = x, *b = y;
    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    if (a->parts != b->parts) {
        return a->parts > b->parts ? -1 : 1;
    }
    if (a->tensor != b->tensor) {
        return a->tensor < b->tensor ? -1 : 1;
    }
    return a->factor < b->factor ? -1 : 1;
}

/* An operand of an elementwise operator gets no more than a result has: it would have to be
 * gathered again. */
static void limit_to_results(const struct hv_projection *p, size_t f, struct hv_axes *list)
{
    for (size_t t = p->rule->n_in; t < p->n_tensors; t++) {
        const struct cell *c = cell_at(p, t, f);
        if (c->has && extends(list, &c->axes)) {
            *list = c->axes;
        }
    }
}

static void give_fitting(struct hv_projection *p, size_t t, size_t f, const struct hv_axes *all)
{
    if (!cell_at(p, t, f)->has) {
        return;
    }
    struct hv_axes list = *all;
    hv_axes_cut(&list, fits(p, t, f, &list));
    if (!extends(&list, &cell_at(p, t, f)->axes)) {
        return;
    }
    hv_axes_cut(&list, until(&list, on_others(p, t, f)));
    if (t < p->rule->n_in && p->rule->elementwise) {
        limit_to_results(p, f, &list);
    }
    give(p, t, f, &list);
}

void hv__spread_choose(struct hv_projection *p, const enum hv_direction *direction)
{
    struct hv_axes list[HV_RULE_FACTORS];
    struct source order[HV_RULE_FACTORS];
    uint8_t n = p->rule->n_factors;
    for (uint8_t f = 0; f < n; f++) {
        list[f] = agreed(p, f, direction[f]);
        order[f] = find_source(p, f, &list[f]);
    }
    qsort(order, n, sizeof *order, compare_sources);
    for (size_t i = 0; i < p->n_tensors; i++) {
        size_t n_in = p->rule->n_in, n_out = p->n_tensors - n_in;
        size_t t = i < n_out ? n_in + i : i - n_out; /* results first */
        for (size_t k = 0; k < n; k++) {
            give_fitting(p, t, order[k].factor, &list[order[k].factor]);
        }
    }
}

bool hv__in_conflict(const struct hv_projection *p, uint8_t factor)
{
    struct hv_axes all = agreed(p, factor, HV_DIRECTION_BOTH);
    for (size_t t = 0; t < p->n_tensors; t++) {
        const struct cell *c = cell_at(p, t, factor);
        if (!c->has) {
            continue;
        }
        bool same = c->axes.n <= all.n && memcmp(c->axes.atom, all.atom, c->axes.n) == 0;
        if (!same || until(&all, on_others(p, t, factor)) < all.n) {
            return true;
        }
    }
    return false;
}
