/** The mesh of a stage, and the layouts that its plan gives. */
#include "solver/cost/graph/place.h"

#include <stdlib.h>
#include <string.h>

enum hv_status hv__mesh_place(const struct hv_stage *s, size_t dp, const uint32_t *devices,
                              size_t n, struct hv__mesh_place *out, struct hv_err *err)
{
    int64_t sizes[HV_MESH_AXES], product = 1;
    size_t first = 0;
    while (first < s->mesh.n && product < (int64_t)dp) {
        product *= strtoll(s->mesh.values[first++], NULL, 10);
    }
    size_t n_axes = s->mesh.n > first ? s->mesh.n - first : 0;
    if ((s->mesh.n > 0 && product != (int64_t)dp) || n_axes > HV_MESH_AXES) {
        return hv_err_set(err, HV_ENO, "a mesh of %zu axes cannot be placed on dp %zu", s->mesh.n,
                          dp);
    }
    for (size_t i = 0; i < n_axes; i++) {
        sizes[i] = strtoll(s->mesh.values[first + i], NULL, 10);
    }
    *out = (struct hv__mesh_place){.axis = s->mesh.keys + first, .devices = devices};
    enum hv_status st = hv_mesh_make(&out->mesh, sizes, n_axes, err);
    if (st == HV_OK && out->mesh.n_devices != (int64_t)n) {
        return hv_err_set(err, HV_ENO,
                          "a mesh of %lld places beside dp %zu, but %zu devices for each; a stage "
                          "of operators takes its devices by \"mesh\"",
                          (long long)out->mesh.n_devices, dp, n);
    }
    return st == HV_OK ? HV_OK : HV_ENO;
}

static size_t axis_of(const struct hv__mesh_place *p, const char *name)
{
    size_t a = 0;
    while (a < p->mesh.n_axes && strcmp(p->axis[a], name) != 0) {
        a++;
    }
    return a;
}

static void split(const struct hv__mesh_place *p, const struct hv_tensor_graph *g,
                  const struct hv_tensor *t, size_t axis, const char *dim, struct hv_layout *l)
{
    for (size_t d = 0; d < t->n_dims; d++) {
        if (strcmp(g->dims[t->dim[d]].name, dim) == 0) {
            for (size_t i = p->mesh.first[axis]; i < p->mesh.first[axis + 1]; i++) {
                hv_axes_push(&l->dim[d], (uint8_t)i);
            }
            return;
        }
    }
}

static enum hv_status layout_by(const struct hv_named_pairs *rule, const struct hv__mesh_place *p,
                                const struct hv_tensor_graph *g, const struct hv_tensor *t,
                                struct hv_layout *l, struct hv_err *err)
{
    *l = hv_layout_whole(t->n_dims);
    for (size_t i = 0; i < rule->n; i++) {
        size_t axis = axis_of(p, rule->keys[i]);
        if (axis == p->mesh.n_axes) {
            continue;
        }
        if (strcmp(rule->values[i], "partial") == 0) {
            l->sum |= hv_mesh_axis_atoms(&p->mesh, axis);
        } else if (strcmp(rule->values[i], "partial-max") == 0) {
            l->max |= hv_mesh_axis_atoms(&p->mesh, axis);
        } else {
            split(p, g, t, axis, rule->values[i], l);
        }
    }
    for (size_t d = 0; d < t->n_dims; d++) {
        long long size = g->dims[t->dim[d]].size, parts = hv_axes_parts(&p->mesh, &l->dim[d]);
        if (size % parts != 0) {
            return hv_err_set(err, HV_ENO,
                              "shard.%.80s: %lld elements of \"%.80s\" do not divide into %lld "
                              "parts",
                              rule->name, size, g->dims[t->dim[d]].name, parts);
        }
    }
    return HV_OK;
}

enum hv_status hv__given_layouts(const struct hv_stage *s, const struct hv__mesh_place *p,
                                 const struct hv_tensor_graph *g, struct hv_arena *arena,
                                 struct hv_given_layout **out, size_t *n, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    *n = 0;
    *out = hv_arena_new(arena, struct hv_given_layout, g->n_tensors + 1);
    for (uint32_t t = 0; st == HV_OK && t < g->n_tensors; t++) {
        size_t i = s->n_shard;
        while (i > 0 && !hv_name_match(s->shard[i - 1].name, g->tensors[t].name)) {
            i--;
        }
        if (i > 0) {
            struct hv_given_layout *x = &(*out)[(*n)++];
            x->tensor = t;
            st = layout_by(&s->shard[i - 1], p, g, &g->tensors[t], &x->layout, err);
        }
    }
    return st;
}
