/*
 * Models of modules as a row of leaves: blocks of all modules one after the other, in file order.
 * The contents of a leaf are computed in model.c.
 */
#include "solver/workload/model.h"

size_t hv_model_n_leaves(const struct hv_model *m)
{
    size_t n = 0;
    if (m->kind != HV_MODEL_MODULES) {
        return 1;
    }
    for (size_t i = 0; i < m->n_modules; i++) {
        n += hv_model_n_leaves(m->modules[i].model);
    }
    return n;
}

static bool feeds_others(const struct hv_model *m, size_t module)
{
    for (size_t i = 0; i < m->n_edges; i++) {
        if (m->edges[i].from == module) {
            return true;
        }
    }
    return false;
}

/** Appends the leaves of `m`, which begins at block `at->first`; returns their number. */
static size_t add_leaves(const struct hv_model *m, struct hv_model_leaf at,
                         struct hv_model_leaf *out)
{
    if (m->kind != HV_MODEL_MODULES) {
        at.model = m;
        *out = at;
        return 1;
    }
    size_t n = 0;
    bool outermost = at.name == NULL;
    for (size_t i = 0; i < m->n_modules; i++) {
        struct hv_model_leaf inner = at;
        inner.feeds = at.feeds || feeds_others(m, i);
        inner.name = outermost ? m->modules[i].name : at.name;
        inner.module = outermost ? i : at.module;
        n += add_leaves(m->modules[i].model, inner, out + n);
        at.first += m->modules[i].model->n_blocks;
    }
    return n;
}

void hv_model_leaves(const struct hv_model *m, struct hv_model_leaf *out)
{
    (void)add_leaves(m, (struct hv_model_leaf){0}, out);
}

bool hv_model_has_transformer(const struct hv_model *m)
{
    for (size_t i = 0; i < m->n_modules; i++) {
        if (hv_model_has_transformer(m->modules[i].model)) {
            return true;
        }
    }
    return m->kind == HV_MODEL_TRANSFORMER;
}
