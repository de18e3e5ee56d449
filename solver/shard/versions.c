/** Layouts that tensors have, and remembered paths between layouts. */
#include "solver/shard/versions.h"

#include "solver/base/rng.h"
#include "solver/base/vec.h"
#include <string.h>

#define NONE UINT32_MAX

/* A path that was looked for. */
struct known {
    struct hv_shape shape;
    struct hv_layout from, to;
    struct hv_reshard path;
    bool possible;
};

struct version {
    struct hv_layout layout;
    uint32_t next; /* older version of the same tensor */
};

struct hv_versions {
    const struct hv_shard_graph *g;
    const struct hv_pricing *pricing;
    struct hv_arena arena;
    HV_VEC(struct version) all;
    uint32_t *newest; /* per tensor */
    HV_VEC(struct known *) known;
    uint32_t *table;
    size_t n_table;
    bool cut;
};

struct hv_versions *hv__versions_new(const struct hv_shard_graph *g,
                                     const struct hv_pricing *pricing)
{
    struct hv_versions *v = hv_xcalloc(1, sizeof *v);
    v->g = g;
    v->pricing = pricing;
    v->newest = hv_xmalloc((g->n_tensors + 1) * sizeof *v->newest);
    memset(v->newest, 0xff, (g->n_tensors + 1) * sizeof *v->newest);
    bool *written = hv_xcalloc(g->n_tensors + 1, sizeof *written);
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv_op_rule *r = g->ops[i].rule;
        for (size_t t = r->n_in; t < r->n_in + r->n_out; t++) {
            written[g->ops[i].tensor[t]] = true;
        }
    }
    for (uint32_t t = 0; t < g->n_tensors; t++) {
        if (!written[t]) {
            hv__versions_add(v, t, &g->tensors[t].layout);
        }
    }
    free(written);
    return v;
}

void hv__versions_free(struct hv_versions *v)
{
    hv_vec_free(&v->all);
    hv_vec_free(&v->known);
    free(v->newest);
    free(v->table);
    hv_arena_free(&v->arena);
    free(v);
}

void hv__versions_add(struct hv_versions *v, uint32_t tensor, const struct hv_layout *l)
{
    for (uint32_t i = v->newest[tensor]; i != NONE; i = v->all.items[i].next) {
        if (hv_layout_equal(&v->all.items[i].layout, l)) {
            return;
        }
    }
    hv_vec_push(&v->all, (struct version){*l, v->newest[tensor]});
    v->newest[tensor] = (uint32_t)(v->all.n - 1);
}

/* ---- known paths ----------------------------------------------------------------------------- */

static size_t hash(const struct hv_shape *shape, const struct hv_layout *from,
                   const struct hv_layout *to)
{
    uint64_t h = hv_hash_words(HV_HASH_START, shape->size, shape->n_dims * sizeof shape->size[0]);
    return (size_t)hv_layout_hash(hv_layout_hash(h ^ (uint64_t)shape->element_bytes, from), to);
}

static bool shape_equal(const struct hv_shape *a, const struct hv_shape *b)
{
    return a->n_dims == b->n_dims && a->element_bytes == b->element_bytes &&
           memcmp(a->size, b->size, a->n_dims * sizeof a->size[0]) == 0;
}

static void grow(struct hv_versions *v)
{
    free(v->table);
    v->n_table = v->n_table > 0 ? 2 * v->n_table : 256;
    v->table = hv_xmalloc(v->n_table * sizeof *v->table);
    memset(v->table, 0xff, v->n_table * sizeof *v->table);
    for (uint32_t i = 0; i < v->known.n; i++) {
        const struct known *k = v->known.items[i];
        size_t at = hash(&k->shape, &k->from, &k->to) & (v->n_table - 1);
        while (v->table[at] != NONE) {
            at = (at + 1) & (v->n_table - 1);
        }
        v->table[at] = i;
    }
}

static const struct known *find(struct hv_versions *v, const struct hv_shape *shape,
                                const struct hv_layout *from, const struct hv_layout *to)
{
    if (2 * (v->known.n + 1) > v->n_table) {
        grow(v);
    }
    size_t at = hash(shape, from, to) & (v->n_table - 1);
    for (; v->table[at] != NONE; at = (at + 1) & (v->n_table - 1)) {
        const struct known *k = v->known.items[v->table[at]];
        if (shape_equal(&k->shape, shape) && hv_layout_equal(&k->from, from) &&
            hv_layout_equal(&k->to, to)) {
            return k;
        }
    }
    struct known *k = hv_arena_new(&v->arena, struct known, 1);
    struct hv_err none = {0};
    *k = (struct known){.shape = *shape, .from = *from, .to = *to};
    k->possible = hv_reshard_path(&v->g->mesh, shape, from, to, v->pricing, &v->arena, &k->path,
                                  &none) == HV_OK;
    v->cut = v->cut || k->path.cut;
    v->table[at] = (uint32_t)v->known.n;
    hv_vec_push(&v->known, k);
    return k;
}

double hv__versions_between(struct hv_versions *v, const struct hv_shape *shape,
                            const struct hv_layout *from, const struct hv_layout *to)
{
    if (hv_layout_equal(from, to)) {
        return 0;
    }
    const struct known *k = find(v, shape, from, to);
    return k->possible ? k->path.price : 1e300;
}

double hv__versions_price_of(const struct hv_versions *v, const struct hv_exchange *x)
{
    return hv_price(v->pricing, x);
}

/* ---- versions of a tensor -------------------------------------------------------------------- */

double hv__versions_price(struct hv_versions *v, uint32_t tensor, const struct hv_layout *l)
{
    double least = 1e300;
    const struct hv_shape *shape = &v->g->tensors[tensor].shape;
    for (uint32_t i = v->newest[tensor]; i != NONE && least > 0; i = v->all.items[i].next) {
        double price = hv__versions_between(v, shape, &v->all.items[i].layout, l);
        least = price < least ? price : least;
    }
    return least;
}

const struct hv_reshard *hv__versions_bring(struct hv_versions *v, uint32_t tensor,
                                            const struct hv_layout *l)
{
    static const struct hv_reshard none = {0};
    const struct hv_reshard *best = &none;
    double least = 1e300;
    const struct hv_shape *shape = &v->g->tensors[tensor].shape;
    for (uint32_t i = v->newest[tensor]; i != NONE; i = v->all.items[i].next) {
        if (hv_layout_equal(&v->all.items[i].layout, l)) {
            return &none;
        }
        const struct known *k = find(v, shape, &v->all.items[i].layout, l);
        if (k->possible && k->path.price <= least) {
            least = k->path.price;
            best = &k->path;
        }
    }
    hv__versions_add(v, tensor, l);
    return best;
}

void hv__versions_forget(struct hv_versions *v)
{
    for (uint32_t t = 0; t < v->g->n_tensors; t++) {
        uint32_t i = v->newest[t];
        while (i != NONE && !hv_layout_equal(&v->all.items[i].layout, &v->g->tensors[t].layout)) {
            i = v->all.items[i].next;
        }
        if (i != NONE) {
            v->newest[t] = i;
            v->all.items[i].next = NONE;
        }
    }
}

uint32_t hv__versions_partial(const struct hv_versions *v, uint32_t tensor)
{
    uint32_t set = 0;
    for (uint32_t i = v->newest[tensor]; i != NONE; i = v->all.items[i].next) {
        set |= v->all.items[i].layout.sum;
    }
    return set;
}

bool hv__versions_cut(const struct hv_versions *v)
{
    return v->cut;
}
