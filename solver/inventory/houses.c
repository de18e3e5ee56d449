/*
 * Classes of equal houses. Houses of a group are listed as runs with what distinguishes them (their
 * hardware, the nodes that they have, the ends of links that name them); runs that agree in it are
 * of one class.
 */
#include "solver/inventory/houses.h"

#include "solver/base/vec.h"
#include <stdlib.h>
#include <string.h>

/* Offset of the nodes that an end of a link names when it names all of a house. */
#define ALL_NODES UINT32_MAX

/* An end of a link: "west", or "v[3]". */
struct end {
    const char *name; /* up to n bytes, without the node */
    size_t n;
    bool of_node;
    uint32_t node; /* in its group */
    uint32_t link;
    bool second;
};

/* How an end names nodes of a house. */
struct named {
    uint32_t link, level, node; /* level: zone 1, group 2, node 3; node: offset in the house */
    bool second;
};

/* Consecutive houses of a group. */
struct run {
    const struct hv_node_group *group;
    uint32_t first_house, houses, node, nodes; /* node: first one, in the group */
    size_t first_named, n_named;
    const struct named *named; /* set when all runs are listed */
    uint32_t class;
};

struct lister {
    const struct hv_cluster *c;
    struct hv_arena *arena;
    struct end *ends; /* by name */
    size_t n_ends;
    HV_VEC(struct named) named;
    HV_VEC(struct run) runs;
};

/* ---- ends of links ------------------------------------------------------------------------------
 */

static int compare_names(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static int by_end_name(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    return compare_names(x->name, x->n, y->name, y->n);
}

static struct end end_of(const char *text, size_t link, bool second)
{
    struct end e = {
        .name = text, .n = strcspn(text, "["), .link = (uint32_t)link, .second = second};
    e.of_node = text[e.n] == '[';
    e.node = e.of_node ? (uint32_t)strtoul(text + e.n + 1, NULL, 10) : 0;
    return e;
}

static void list_ends(struct lister *l)
{
    l->ends = hv_arena_new(l->arena, struct end, 2 * l->c->n_links + 1);
    for (size_t i = 0; i < l->c->n_links; i++) {
        l->ends[l->n_ends++] = end_of(l->c->links[i].a, i, false);
        l->ends[l->n_ends++] = end_of(l->c->links[i].b, i, true);
    }
    qsort(l->ends, l->n_ends, sizeof *l->ends, by_end_name);
}

/* The first end with that name; l->n_ends where there is none. */
static size_t first_end(const struct lister *l, const char *name)
{
    size_t lo = 0, hi = l->n_ends, n = strlen(name);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_names(l->ends[mid].name, l->ends[mid].n, name, n) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    bool found = lo < l->n_ends && compare_names(l->ends[lo].name, l->ends[lo].n, name, n) == 0;
    return found ? lo : l->n_ends;
}

static bool is_named_like(const struct lister *l, size_t end, size_t first)
{
    return end < l->n_ends && by_end_name(&l->ends[end], &l->ends[first]) == 0;
}

/* ---- runs ---------------------------------------------------------------------------------------
 */

static int by_link(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    if (x->link != y->link) {
        return x->link < y->link ? -1 : 1;
    }
    if (x->second != y->second) {
        return x->second ? 1 : -1;
    }
    if (x->level != y->level) {
        return x->level < y->level ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

static void add_named(struct lister *l, const struct end *e, uint32_t level, uint32_t node)
{
    const struct named x = {e->link, level, node, e->second};
    hv_vec_push(&l->named, x);
}

/* Lists the ends that name nodes of the run. */
static void name_run(struct lister *l, struct run *r)
{
    const char *zone = r->group->zone;
    size_t from = first_end(l, r->group->name);
    r->first_named = l->named.n;
    for (size_t i = from; is_named_like(l, i, from); i++) {
        const struct end *e = &l->ends[i];
        if (!e->of_node) {
            add_named(l, e, 2, ALL_NODES);
        } else if (e->node >= r->node && e->node - r->node < r->nodes) {
            add_named(l, e, 3, e->node - r->node);
        }
    }
    if (zone != NULL && strcmp(zone, r->group->name) != 0) {
        from = first_end(l, zone);
        for (size_t i = from; is_named_like(l, i, from); i++) {
            if (!l->ends[i].of_node) {
                add_named(l, &l->ends[i], 1, ALL_NODES);
            }
        }
    }
    r->n_named = l->named.n - r->first_named;
    if (r->n_named > 1) {
        qsort(l->named.items + r->first_named, r->n_named, sizeof *l->named.items, by_link);
    }
}

/* Houses [from, to) of a group. */
static void add_run(struct lister *l, const struct hv_node_group *g, uint32_t from, uint32_t to)
{
    uint32_t each = hv_node_group_domain_nodes(g), left = g->count - from * each;
    struct run r = {.group = g,
                    .first_house = g->first_domain + from,
                    .houses = to - from,
                    .node = from * each,
                    .nodes = left < each ? left : each};
    name_run(l, &r);
    hv_vec_push(&l->runs, r);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Lists the runs of a group: a house with a node that links name, and the last one where it has
 * fewer nodes, are runs of their own. */
static void add_group(struct lister *l, const struct hv_node_group *g)
{
    uint32_t each = hv_node_group_domain_nodes(g), at = 0;
    uint32_t houses = g->count / each + (g->count % each != 0);
    size_t from = first_end(l, g->name), n = 0, many = 0;
    while (is_named_like(l, from + many, from)) {
        many++;
    }
    uint32_t *own = hv_xcalloc(many + 1, sizeof *own);
    for (size_t i = from; i < from + many; i++) {
        if (l->ends[i].of_node && l->ends[i].node < g->count) {
            own[n++] = l->ends[i].node / each;
        }
    }
    own[n++] = g->count % each != 0 ? houses - 1 : houses;
    qsort(own, n, sizeof *own, by_number);
    for (size_t i = 0; i < n; i++) {
        if (own[i] > at) {
            add_run(l, g, at, own[i]);
            at = own[i];
        }
        if (own[i] == at && at < houses) {
            add_run(l, g, at, at + 1);
            at++;
        }
    }
    if (at < houses) {
        add_run(l, g, at, houses);
    }
    free(own);
}

/* ---- classes ------------------------------------------------------------------------------------
 */

/* Order of what distinguishes houses; 0: they are of one class. */
static int compare_houses(const struct run *x, const struct run *y)
{
    if (x->group->like != y->group->like) {
        return x->group->like < y->group->like ? -1 : 1;
    }
    if (x->nodes != y->nodes) {
        return x->nodes < y->nodes ? 1 : -1;
    }
    for (size_t i = 0; i < x->n_named && i < y->n_named; i++) {
        int order = by_link(&x->named[i], &y->named[i]);
        if (order != 0) {
            return order;
        }
    }
    return (x->n_named > y->n_named) - (x->n_named < y->n_named);
}

static int compare_places(const struct run *x, const struct run *y)
{
    int order = strcmp(x->group->name, y->group->name);
    return order != 0 ? order : (x->node > y->node) - (x->node < y->node);
}

static int by_houses(const void *a, const void *b)
{
    const struct run *const *x = a, *const *y = b;
    int order = compare_houses(*x, *y);
    return order != 0 ? order : compare_places(*x, *y);
}

/* First runs of their classes. */
static int by_place(const void *a, const void *b)
{
    const struct run *const *x = a, *const *y = b;
    return compare_places(*x, *y);
}

static bool is_usable(const struct run *r)
{
    return r->group->state != HV_NODE_DRAIN && r->group->n_devices > 0;
}

/* The first usable run of every class, by place; runs keep the number of that run in `class`.
 * Returns how many. */
static size_t find_classes(struct lister *l, struct run **firsts)
{
    struct run **sorted = hv_arena_new(l->arena, struct run *, l->runs.n + 1);
    size_t n = 0, n_classes = 0;
    for (size_t i = 0; i < l->runs.n; i++) {
        struct run *r = &l->runs.items[i];
        r->named = r->n_named > 0 ? l->named.items + r->first_named : NULL;
        if (is_usable(r)) {
            sorted[n++] = r;
        }
    }
    qsort(sorted, n, sizeof(struct run *), by_houses);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare_houses(sorted[i - 1], sorted[i]) != 0) {
            firsts[n_classes++] = sorted[i];
        }
        sorted[i]->class = (uint32_t)(firsts[n_classes - 1] - l->runs.items);
    }
    qsort(firsts, n_classes, sizeof(struct run *), by_place);
    return n_classes;
}

static struct hv_houses number_classes(struct lister *l)
{
    struct run **firsts = hv_arena_new(l->arena, struct run *, l->runs.n + 1);
    uint32_t *number = hv_arena_new(l->arena, uint32_t, l->runs.n + 1);
    size_t n = find_classes(l, firsts);
    struct hv_house_class *classes = hv_arena_new(l->arena, struct hv_house_class, n + 1);
    struct hv_house_run *runs = hv_arena_new(l->arena, struct hv_house_run, l->runs.n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct run *r = firsts[i];
        classes[i] = (struct hv_house_class){r->group, r->group->first_node + r->node, r->nodes, 0};
        number[r - l->runs.items] = (uint32_t)i;
    }
    for (size_t i = 0; i < l->runs.n; i++) {
        const struct run *r = &l->runs.items[i];
        uint32_t class = is_usable(r) ? number[r->class] : HV_HOUSE_DRAINED;
        runs[i] = (struct hv_house_run){r->first_house, class};
        if (class != HV_HOUSE_DRAINED) {
            classes[class].houses += r->houses;
        }
    }
    return (struct hv_houses){classes, n, runs, l->runs.n};
}

struct hv_houses hv_houses_of(const struct hv_cluster *c, struct hv_arena *arena)
{
    struct lister l = {.c = c, .arena = arena};
    list_ends(&l);
    for (size_t i = 0; i < c->n_groups; i++) {
        add_group(&l, &c->groups[i]);
    }
    struct hv_houses out = number_classes(&l);
    hv_vec_free(&l.named);
    hv_vec_free(&l.runs);
    return out;
}

uint32_t hv_house_class_of(const struct hv_houses *h, uint32_t house)
{
    size_t lo = 0, hi = h->n_runs;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (h->runs[mid].first_house <= house) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return h->runs[lo].class;
}
