/**
 * The cheapest path between two layouts: Dijkstra over layouts. The search runs on *units*, pieces
 * of axes that stay together, which are the atoms of a mesh of their own.
 */
#include "solver/shard/reshard.h"

#include "solver/base/rng.h"
#include <stdlib.h>
#include <string.h>

#define FINE_ATOMS 4 /* up to so many atoms, every atom is a unit */
#define FREE_UNITS 3 /* up to so many units, every permutation is tried */
#define NONE       UINT32_MAX

/* ---- exchanges --------------------------------------------------------------------------------
 */

const char *hv_exchange_name(enum hv_exchange_kind k)
{
    static const char *const names[HV_EXCHANGE_N] = {
#define X(c, name) [c] = name,
        HV_EXCHANGE_MAP(X)
#undef X
    };
    return names[k];
}

double hv_price(const struct hv_pricing *p, const struct hv_exchange *x)
{
    return p != NULL && p->price != NULL ? p->price(p->ctx, x) : x->sent_bytes;
}

struct hv_exchange hv_exchange_make(enum hv_exchange_kind kind, uint32_t atoms, int64_t group,
                                    double local_bytes)
{
    double n = (double)group, share = (n - 1) / n;
    const double factor[HV_EXCHANGE_N] = {
        [HV_EXCHANGE_GATHER] = n - 1,     [HV_EXCHANGE_ALL_TO_ALL] = share,
        [HV_EXCHANGE_REDUCE] = 2 * share, [HV_EXCHANGE_REDUCE_SCATTER] = share,
        [HV_EXCHANGE_PERMUTE] = 1,        [HV_EXCHANGE_HALO] = 1,
    };
    return (struct hv_exchange){kind, atoms, group, local_bytes, factor[kind] * local_bytes};
}

struct node {
    struct hv_layout layout;
    struct hv_exchange by;
    double price;
    uint32_t from, steps;
    bool done;
};

struct search {
    struct hv_mesh units;
    uint8_t unit_of[HV_MESH_ATOMS];    /* atom → unit */
    uint8_t first_atom[HV_MESH_ATOMS]; /* unit → its first atom; its atoms follow */
    const struct hv_mesh *mesh;
    const struct hv_shape *shape;
    const struct hv_pricing *pricing;
    struct hv_layout from, to;
    struct node *nodes;
    size_t n, cap;
    uint32_t *table, *heap;
    size_t n_table, n_heap, cap_heap;
    uint32_t target;
    bool cut;
};

/* ---- units ----------------------------------------------------------------------------------- */

/* True where atom a + 1 follows atom a wherever it stands in the layout. */
static bool together(const struct hv_layout *l, uint8_t a)
{
    uint32_t pair = 3U << a;
    if ((l->sum & pair) != 0 || (l->max & pair) != 0) {
        return (l->sum & pair) == pair || (l->max & pair) == pair;
    }
    for (size_t d = 0; d < l->n_dims; d++) {
        for (size_t i = 0; i < l->dim[d].n; i++) {
            if (l->dim[d].atom[i] == a) {
                return i + 1 < l->dim[d].n && l->dim[d].atom[i + 1] == a + 1;
            }
        }
    }
    return (hv_layout_splits(l) & pair) == 0;
}

static void make_units(struct search *s, const struct hv_layout *from, const struct hv_layout *to)
{
    const struct hv_mesh *m = s->mesh;
    s->units = (struct hv_mesh){.n_devices = m->n_devices};
    for (uint8_t a = 0; a < m->n_atoms; a++) {
        bool joined = a > 0 && m->n_atoms > FINE_ATOMS &&
                      hv_mesh_axis_of(m, a) == hv_mesh_axis_of(m, a - 1U) &&
                      together(from, (uint8_t)(a - 1)) && together(to, (uint8_t)(a - 1));
        if (!joined) {
            s->first_atom[s->units.n_atoms] = a;
            s->units.atom[s->units.n_atoms++] = 1;
        }
        s->unit_of[a] = (uint8_t)(s->units.n_atoms - 1);
        s->units.atom[s->unit_of[a]] *= m->atom[a];
    }
}

static uint32_t to_units_set(const struct search *s, uint32_t atoms)
{
    uint32_t set = 0;
    for (size_t u = 0; u < s->units.n_atoms; u++) {
        set |= (atoms >> s->first_atom[u] & 1) << u;
    }
    return set;
}

static uint32_t to_atoms_set(const struct search *s, uint32_t units)
{
    uint32_t set = 0;
    for (size_t a = 0; a < s->mesh->n_atoms; a++) {
        set |= (units >> s->unit_of[a] & 1) << a;
    }
    return set;
}

static struct hv_layout to_units(const struct search *s, const struct hv_layout *l)
{
    struct hv_layout u = {.n_dims = l->n_dims};
    for (size_t d = 0; d < l->n_dims; d++) {
        for (size_t i = 0; i < l->dim[d].n; i++) {
            uint8_t atom = l->dim[d].atom[i];
            if (s->first_atom[s->unit_of[atom]] == atom) {
                hv_axes_push(&u.dim[d], s->unit_of[atom]);
            }
        }
    }
    u.sum = to_units_set(s, l->sum);
    u.max = to_units_set(s, l->max);
    return u;
}

static struct hv_layout to_atoms(const struct search *s, const struct hv_layout *u)
{
    struct hv_layout l = {.n_dims = u->n_dims};
    for (size_t d = 0; d < u->n_dims; d++) {
        for (size_t i = 0; i < u->dim[d].n; i++) {
            for (uint8_t a = 0; a < s->mesh->n_atoms; a++) {
                if (s->unit_of[a] == u->dim[d].atom[i]) {
                    hv_axes_push(&l.dim[d], a);
                }
            }
        }
    }
    l.sum = to_atoms_set(s, u->sum);
    l.max = to_atoms_set(s, u->max);
    return l;
}

/* ---- nodes and heap -------------------------------------------------------------------------- */

static bool before(const struct search *s, uint32_t a, uint32_t b)
{
    const struct node *x = &s->nodes[a], *y = &s->nodes[b];
    if (x->price != y->price) {
        return x->price < y->price;
    }
    return x->steps != y->steps ? x->steps < y->steps : a < b;
}

static void heap_push(struct search *s, uint32_t node)
{
    if (s->n_heap == s->cap_heap) {
        s->cap_heap = s->cap_heap > 0 ? 2 * s->cap_heap : 64;
        s->heap = hv_xrealloc(s->heap, s->cap_heap, sizeof *s->heap);
    }
    size_t i = s->n_heap++;
    for (; i > 0 && before(s, node, s->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        s->heap[i] = s->heap[(i - 1) / 2];
    }
    s->heap[i] = node;
}

static uint32_t heap_pop(struct search *s)
{
    uint32_t top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_heap) {
            break;
        }
        if (child + 1 < s->n_heap && before(s, s->heap[child + 1], s->heap[child])) {
            child++;
        }
        if (!before(s, s->heap[child], last)) {
            break;
        }
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

static size_t hash(const struct hv_layout *l)
{
    return (size_t)hv_layout_hash(HV_HASH_START, l);
}

static void grow(struct search *s)
{
    free(s->table);
    s->n_table = s->n_table > 0 ? 2 * s->n_table : 256;
    s->table = hv_xmalloc(s->n_table * sizeof *s->table);
    memset(s->table, 0xff, s->n_table * sizeof *s->table);
    for (uint32_t i = 0; i < s->n; i++) {
        size_t at = hash(&s->nodes[i].layout) & (s->n_table - 1);
        while (s->table[at] != NONE) {
            at = (at + 1) & (s->n_table - 1);
        }
        s->table[at] = i;
    }
}

/* Number of the layout's node; a new one has an infinite price. */
static uint32_t node_of(struct search *s, const struct hv_layout *l)
{
    if (2 * (s->n + 1) > s->n_table) {
        grow(s);
    }
    size_t at = hash(l) & (s->n_table - 1);
    for (; s->table[at] != NONE; at = (at + 1) & (s->n_table - 1)) {
        if (hv_layout_equal(&s->nodes[s->table[at]].layout, l)) {
            return s->table[at];
        }
    }
    if (s->n == s->cap) {
        s->cap = s->cap > 0 ? 2 * s->cap : 64;
        s->nodes = hv_xrealloc(s->nodes, s->cap, sizeof *s->nodes);
    }
    s->nodes[s->n] = (struct node){.layout = *l, .price = 1e300, .from = NONE};
    s->table[at] = (uint32_t)s->n;
    return (uint32_t)s->n++;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static bool allowed(const struct search *s, const struct hv_layout *l)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        if (s->shape->size[d] % hv_axes_parts(&s->units, &l->dim[d]) != 0 &&
            !hv_axes_equal(&l->dim[d], &s->from.dim[d]) &&
            !hv_axes_equal(&l->dim[d], &s->to.dim[d])) {
            return false;
        }
    }
    return true;
}

static void step(struct search *s, uint32_t at, const struct hv_layout *to,
                 enum hv_exchange_kind kind, uint32_t units)
{
    if (!allowed(s, to)) {
        return;
    }
    struct hv_exchange x =
        hv_exchange_make(kind, to_atoms_set(s, units), hv_mesh_group(&s->units, units),
                         hv_layout_bytes(&s->nodes[at].layout, &s->units, s->shape));
    double price = s->nodes[at].price + hv_price(s->pricing, &x);
    uint32_t steps = s->nodes[at].steps + 1, next = node_of(s, to);
    struct node *n = &s->nodes[next];
    if (!n->done && (price < n->price || (price == n->price && steps < n->steps))) {
        n->price = price;
        n->steps = steps;
        n->from = at;
        n->by = x;
        heap_push(s, next);
    }
}

/* True where one of the lists begins with the other. */
static bool in_line(const struct hv_axes *a, const struct hv_axes *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    return memcmp(a->atom, b->atom, n) == 0;
}

/* Units that are free become another level of a dimension, or a partial axis of the target. */
static void use_free(struct search *s, uint32_t at, const struct hv_layout *l)
{
    uint32_t used = hv_layout_used(l);
    for (uint8_t u = 0; u < s->units.n_atoms; u++) {
        uint32_t bit = 1U << u;
        if ((used & bit) != 0) {
            continue;
        }
        for (size_t d = 0; d < l->n_dims; d++) {
            struct hv_layout next = *l;
            hv_axes_push(&next.dim[d], u);
            if (!s->cut || in_line(&next.dim[d], &s->to.dim[d])) {
                step(s, at, &next, HV_EXCHANGE_SLICE, bit);
            }
        }
        if (((s->to.sum | s->to.max) & bit) != 0) {
            struct hv_layout next = *l;
            next.sum |= s->to.sum & bit;
            next.max |= s->to.max & bit;
            step(s, at, &next, HV_EXCHANGE_MASK, bit);
        }
    }
}

/* The last units of a dimension are gathered, or go to the end of another one. */
static void move_ends(struct search *s, uint32_t at, const struct hv_layout *l)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        struct hv_layout rest = *l;
        struct hv_axes end = {0};
        while (rest.dim[d].n > 0) {
            struct hv_axes longer = {0};
            hv_axes_push(&longer, rest.dim[d].atom[rest.dim[d].n - 1]);
            hv_axes_append(&longer, &end);
            end = longer;
            hv_axes_cut(&rest.dim[d], rest.dim[d].n - 1U);
            uint32_t set = hv_axes_set(&end);
            step(s, at, &rest, HV_EXCHANGE_GATHER, set);
            for (size_t other = 0; other < l->n_dims; other++) {
                if (other != d) {
                    struct hv_layout next = rest;
                    hv_axes_append(&next.dim[other], &end);
                    step(s, at, &next, HV_EXCHANGE_ALL_TO_ALL, set);
                }
            }
            if ((s->to.sum & set) == set) {
                struct hv_layout next = rest;
                next.sum |= set;
                step(s, at, &next, HV_EXCHANGE_MASK, set);
            }
        }
    }
}

/* Every order of the units of a set at the end of a dimension. */
static void scatter_orders(struct search *s, uint32_t at, const struct hv_layout *l, size_t d,
                           uint32_t left, uint32_t all)
{
    if (left == 0) {
        step(s, at, l, HV_EXCHANGE_REDUCE_SCATTER, all);
    }
    for (uint8_t u = 0; u < s->units.n_atoms; u++) {
        if ((left >> u & 1) != 0) {
            struct hv_layout next = *l;
            hv_axes_push(&next.dim[d], u);
            scatter_orders(s, at, &next, d, left & ~(1U << u), all);
        }
    }
}

/* Every set of partial units of a kind is reduced, or reduced and scattered. */
static void reduce(struct search *s, uint32_t at, const struct hv_layout *l, uint32_t partial)
{
    for (uint32_t set = partial; set != 0; set = (set - 1) & partial) {
        struct hv_layout next = *l;
        next.sum &= ~set;
        next.max &= ~set;
        step(s, at, &next, HV_EXCHANGE_REDUCE, set);
        for (size_t d = 0; d < l->n_dims; d++) {
            scatter_orders(s, at, &next, d, set, set);
        }
    }
}

/* Layouts with as many parts everywhere: filled from place `d` on (dimensions, then the sets of
 * summands and of candidates), `need` parts to go there. */
static void permute(struct search *s, uint32_t at, struct hv_layout *l, size_t d, int64_t need,
                    uint32_t free_units)
{
    const struct hv_layout old = s->nodes[at].layout;
    size_t n_dims = old.n_dims;
    if (need == 1) {
        if (d < n_dims && s->units.n_atoms > FREE_UNITS && !in_line(&l->dim[d], &s->to.dim[d])) {
            return;
        }
        d++;
        if (d == n_dims + 2) {
            uint32_t moved = hv_layout_used(l) | hv_layout_used(&old);
            if (!hv_layout_equal(l, &old)) {
                step(s, at, l, HV_EXCHANGE_PERMUTE, moved);
            }
            return;
        }
        int64_t parts = d < n_dims    ? hv_axes_parts(&s->units, &old.dim[d])
                        : d == n_dims ? hv_mesh_group(&s->units, old.sum)
                                      : hv_mesh_group(&s->units, old.max);
        permute(s, at, l, d, parts, free_units);
        return;
    }
    uint32_t *set = d == n_dims ? &l->sum : &l->max;
    for (uint8_t u = 0; u < s->units.n_atoms; u++) {
        bool taken = (free_units >> u & 1) == 0 || need % s->units.atom[u] != 0;
        if (taken || (d >= n_dims && *set >> u != 0)) { /* sets: in rising order only */
            continue;
        }
        struct hv_layout next = *l;
        if (d < n_dims) {
            hv_axes_push(&next.dim[d], u);
        } else {
            *(d == n_dims ? &next.sum : &next.max) |= 1U << u;
        }
        permute(s, at, &next, d, need / s->units.atom[u], free_units & ~(1U << u));
    }
}

static void expand(struct search *s, uint32_t at)
{
    const struct hv_layout l = s->nodes[at].layout;
    use_free(s, at, &l);
    move_ends(s, at, &l);
    reduce(s, at, &l, l.sum);
    reduce(s, at, &l, l.max);
    if (hv_layout_used(&l) != 0 && s->nodes[at].by.kind != HV_EXCHANGE_PERMUTE) {
        struct hv_layout empty = {.n_dims = l.n_dims};
        uint32_t all = (uint32_t)((1ULL << s->units.n_atoms) - 1);
        int64_t parts =
            l.n_dims > 0 ? hv_axes_parts(&s->units, &l.dim[0]) : hv_mesh_group(&s->units, l.sum);
        permute(s, at, &empty, 0, parts, all);
    }
}

/* ---- the path -------------------------------------------------------------------------------- */

/* Steps that always lead there: reduce, gather all that differs, slice. They bound the search and
 * are the answer where it is cut. */
static void direct(struct search *s)
{
    struct hv_layout l = s->from;
    uint32_t at = node_of(s, &l), reduced = (l.sum & ~s->to.sum) | (l.max & ~s->to.max);
    if (reduced != 0) {
        l.sum &= ~reduced;
        l.max &= ~reduced;
        step(s, at, &l, HV_EXCHANGE_REDUCE, reduced);
        at = node_of(s, &l);
    }
    for (size_t d = 0; d < l.n_dims; d++) {
        size_t same = 0;
        while (same < l.dim[d].n && same < s->to.dim[d].n &&
               l.dim[d].atom[same] == s->to.dim[d].atom[same]) {
            same++;
        }
        uint32_t before_set = hv_axes_set(&l.dim[d]);
        hv_axes_cut(&l.dim[d], same);
        uint32_t gone = before_set & ~hv_axes_set(&l.dim[d]);
        if (gone != 0) {
            step(s, at, &l, HV_EXCHANGE_GATHER, gone);
            at = node_of(s, &l);
        }
    }
}

static void run(struct search *s)
{
    uint32_t start = node_of(s, &s->from);
    s->nodes[start].price = 0;
    s->target = node_of(s, &s->to);
    heap_push(s, start);
    direct(s);
    while (s->n_heap > 0) {
        uint32_t at = heap_pop(s);
        if (s->nodes[at].done) {
            continue;
        }
        s->nodes[at].done = true;
        if (at == s->target) {
            return;
        }
        if (s->n > HV_RESHARD_STATES) { /* only towards the target from here: gathers and slices */
            s->cut = true;
            const struct hv_layout l = s->nodes[at].layout;
            use_free(s, at, &l);
            continue;
        }
        expand(s, at);
    }
}

static void take_path(struct search *s, struct hv_arena *arena, struct hv_reshard *out)
{
    const struct node *t = &s->nodes[s->target];
    *out = (struct hv_reshard){.n = t->steps, .price = t->price, .cut = s->cut};
    out->step = hv_arena_new(arena, struct hv_reshard_step, t->steps + 1);
    for (size_t i = t->steps; i > 0; i--) {
        out->step[i - 1] = (struct hv_reshard_step){t->by, to_atoms(s, &t->layout)};
        out->sent_bytes += t->by.sent_bytes;
        t = &s->nodes[t->from];
    }
}

enum hv_status hv_reshard_path(const struct hv_mesh *m, const struct hv_shape *shape,
                               const struct hv_layout *from, const struct hv_layout *to,
                               const struct hv_pricing *pricing, struct hv_arena *arena,
                               struct hv_reshard *out, struct hv_err *err)
{
    *out = (struct hv_reshard){0};
    if (hv_layout_equal(from, to)) {
        return HV_OK;
    }
    struct search s = {.mesh = m, .shape = shape, .pricing = pricing, .target = NONE};
    make_units(&s, from, to);
    s.from = to_units(&s, from);
    s.to = to_units(&s, to);
    run(&s);
    enum hv_status st = HV_OK;
    if (s.nodes[s.target].price < 1e299) {
        take_path(&s, arena, out);
    } else {
        st = hv_err_set(err, HV_EINPUT, "no exchange leads from the one layout to the other");
    }
    free(s.nodes);
    free(s.table);
    free(s.heap);
    return st;
}
