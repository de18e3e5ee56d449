/** Remembered paths between layouts: a table with open addressing. */
#include "solver/shard/paths.h"

#include "solver/base/rng.h"
#include "solver/base/vec.h"
#include <string.h>

#define NONE UINT32_MAX

struct hv_paths {
    const struct hv_mesh *mesh;
    const struct hv_pricing *pricing;
    struct hv_arena arena;
    HV_VEC(struct hv_known_path *) known;
    uint32_t *table;
    size_t n_table;
};

struct hv_paths *hv_paths_new(const struct hv_mesh *m, const struct hv_pricing *pricing)
{
    struct hv_paths *p = hv_xcalloc(1, sizeof *p);
    p->mesh = m;
    p->pricing = pricing;
    return p;
}

void hv_paths_free(struct hv_paths *p)
{
    if (p != NULL) {
        hv_vec_free(&p->known);
        free(p->table);
        hv_arena_free(&p->arena);
        free(p);
    }
}

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

static void grow(struct hv_paths *p)
{
    free(p->table);
    p->n_table = p->n_table > 0 ? 2 * p->n_table : 256;
    p->table = hv_xmalloc(p->n_table * sizeof *p->table);
    memset(p->table, 0xff, p->n_table * sizeof *p->table);
    for (uint32_t i = 0; i < p->known.n; i++) {
        const struct hv_known_path *k = p->known.items[i];
        size_t at = hash(&k->shape, &k->from, &k->to) & (p->n_table - 1);
        while (p->table[at] != NONE) {
            at = (at + 1) & (p->n_table - 1);
        }
        p->table[at] = i;
    }
}

const struct hv_known_path *hv_paths_find(struct hv_paths *p, const struct hv_shape *shape,
                                          const struct hv_layout *from, const struct hv_layout *to)
{
    if (2 * (p->known.n + 1) > p->n_table) {
        grow(p);
    }
    size_t at = hash(shape, from, to) & (p->n_table - 1);
    for (; p->table[at] != NONE; at = (at + 1) & (p->n_table - 1)) {
        const struct hv_known_path *k = p->known.items[p->table[at]];
        if (shape_equal(&k->shape, shape) && hv_layout_equal(&k->from, from) &&
            hv_layout_equal(&k->to, to)) {
            return k;
        }
    }
    struct hv_known_path *k = hv_arena_new(&p->arena, struct hv_known_path, 1);
    struct hv_err none = {0};
    *k = (struct hv_known_path){.shape = *shape, .from = *from, .to = *to};
    k->possible =
        hv_reshard_path(p->mesh, shape, from, to, p->pricing, &p->arena, &k->path, &none) == HV_OK;
    p->table[at] = (uint32_t)p->known.n;
    hv_vec_push(&p->known, k);
    return k;
}
