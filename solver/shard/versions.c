/** Layouts that tensors have. */
#include "solver/shard/versions.h"

#include "solver/base/vec.h"
#include "solver/shard/paths.h"
#include <string.h>

#define NONE UINT32_MAX

struct version {
    struct hv_layout layout;
    uint32_t next; /* older version of the same tensor */
};

struct hv_versions {
    const struct hv_shard_graph *g;
    const struct hv_pricing *pricing;
    HV_VEC(struct version) all;
    uint32_t *newest;             /* per tensor */
    struct hv_paths *paths, *own; /* own: no other call knows them; NULL where they are shared */
    bool cut;
};

struct hv_versions *hv__versions_new(const struct hv_shard_graph *g,
                                     const struct hv_pricing *pricing)
{
    struct hv_versions *v = hv_xcalloc(1, sizeof *v);
    v->g = g;
    v->pricing = pricing;
    v->paths = pricing != NULL ? pricing->paths : NULL;
    if (v->paths == NULL) {
        v->own = hv_paths_new(&g->mesh, pricing);
        v->paths = v->own;
    }
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
    hv_paths_free(v->own);
    free(v->newest);
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

static const struct hv_known_path *find(struct hv_versions *v, const struct hv_shape *shape,
                                        const struct hv_layout *from, const struct hv_layout *to)
{
    const struct hv_known_path *k = hv_paths_find(v->paths, shape, from, to);
    v->cut = v->cut || k->path.cut;
    return k;
}

double hv__versions_between(struct hv_versions *v, const struct hv_shape *shape,
                            const struct hv_layout *from, const struct hv_layout *to)
{
    if (hv_layout_equal(from, to)) {
        return 0;
    }
    const struct hv_known_path *k = find(v, shape, from, to);
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
        const struct hv_known_path *k = find(v, shape, &v->all.items[i].layout, l);
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
