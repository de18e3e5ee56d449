/* Names of operators, dimensions and axes in the stages of a plan. Which blocks a stage holds is
 * checked in check_blocks.c. */
#include "solver/plan/names.h"

#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/workload/graph/tensor_graph.h"
#include <string.h>

/* The walk over the names of one stage. */
struct walk {
    const struct hv_model *m; /* whose operators the stage's patterns name */
    const struct hv_stage *s;
    struct hv_arena *arena;
    struct hv_unknown_name here; /* place of the name at hand */
    struct hv_unknown_name *items;
    size_t n, cap;
};

static void report(struct walk *w, const char *text)
{
    if (w->n == w->cap) {
        size_t cap = w->cap > 0 ? 2 * w->cap : 8;
        struct hv_unknown_name *items = hv_arena_new(w->arena, struct hv_unknown_name, cap);
        if (w->n > 0) {
            memcpy(items, w->items, w->n * sizeof *items);
        }
        w->items = items;
        w->cap = cap;
    }
    w->items[w->n] = w->here;
    w->items[w->n++].text = text;
}

/* `found`, and the nearest of `n` names where there is one. */
static const char *with_nearest(struct walk *w, const char *expected, const char *found,
                                const char *const *names, size_t n)
{
    const char *near = hv_suggest(found, names, n);
    return hv_arena_printf(w->arena, "expected %s, found \"%.80s\"%s%s%s", expected, found,
                           near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* ---- operators ---- */

/* Names of operators, and of the tensors that a graph in long form is given. */
static size_t names_of(const struct walk *w, bool tensors, const char **out)
{
    size_t n = 0;
    for (size_t i = 0; i < w->m->n_ops; i++) {
        out[n++] = w->m->ops[i].id;
    }
    for (size_t t = 0; tensors && w->m->tensors != NULL && t < w->m->tensors->n_given; t++) {
        out[n++] = w->m->tensors->tensors[t].name;
    }
    return n;
}

static const char **new_names(struct walk *w)
{
    size_t tensors = w->m->tensors != NULL ? w->m->tensors->n_given : 0;
    return hv_arena_new(w->arena, const char *, w->m->n_ops + tensors + 1);
}

static const char *unknown_operator(struct walk *w, const char *pattern, bool tensors)
{
    if (w->m->kind != HV_MODEL_GRAPH) {
        return hv_arena_printf(w->arena,
                               "expected no operator, found \"%.80s\": the model is of kind %s and "
                               "has no named operators",
                               pattern, hv_model_kind_name(w->m->kind));
    }
    const char **names = new_names(w);
    const char *expected = tensors && w->m->tensors != NULL
                               ? "an operator or tensor of the model, or a pattern that matches one"
                               : "an operator of the model, or a pattern that matches one";
    return with_nearest(w, expected, pattern, names, names_of(w, tensors, names));
}

/* True where the pattern names an operator (`tensors`: or a tensor); else it is reported. */
static bool check_name(struct walk *w, const char *pattern, bool tensors)
{
    const char **names = new_names(w);
    size_t n = w->m->kind == HV_MODEL_GRAPH ? names_of(w, tensors, names) : 0;
    for (size_t i = 0; i < n; i++) {
        if (hv_name_match(pattern, names[i])) {
            return true;
        }
    }
    report(w, unknown_operator(w, pattern, tensors));
    return false;
}

static bool check_operator(struct walk *w, const char *pattern)
{
    return check_name(w, pattern, false);
}

/* ---- dimensions and axes ---- */

static bool has_dim(const struct hv_graph_op *o, const char *dim)
{
    for (size_t i = 0; i < o->n_out_dims; i++) {
        if (strcmp(o->out_dims[i], dim) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < o->n_contract_dims; i++) {
        if (strcmp(o->contract_dims[i], dim) == 0) {
            return true;
        }
    }
    return false;
}

/* True where a tensor that the pattern names has the dimension: in long form a pattern is of
 * tensors, an operator's name that of its result. */
static bool tensor_has_dim(const struct hv_tensor_graph *g, const char *pattern, const char *dim)
{
    for (size_t t = 0; t < g->n_tensors; t++) {
        const struct hv_tensor *x = &g->tensors[t];
        for (size_t d = 0; hv_name_match(pattern, x->name) && d < x->n_dims; d++) {
            if (strcmp(g->dims[x->dim[d]].name, dim) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool any_has_dim(const struct walk *w, const char *pattern, const char *dim)
{
    if (w->m->tensors != NULL) {
        return tensor_has_dim(w->m->tensors, pattern, dim);
    }
    for (size_t i = 0; i < w->m->n_ops; i++) {
        if (hv_name_match(pattern, w->m->ops[i].id) && has_dim(&w->m->ops[i], dim)) {
            return true;
        }
    }
    return false;
}

static void check_dim(struct walk *w, const char *pattern, const char *dim)
{
    static const char *const sums[] = {"partial", "partial-max"};
    bool sum = false, known = false;
    for (size_t i = 0; i < HV_COUNT(sums); i++) {
        sum = sum || strcmp(dim, sums[i]) == 0;
    }
    if (!sum && any_has_dim(w, pattern, dim)) {
        return;
    }
    const char **names = hv_arena_new(w->arena, const char *, w->m->n_dims + 1);
    for (size_t i = 0; i < w->m->n_dims; i++) {
        names[i] = w->m->dims[i].name;
        known = known || strcmp(names[i], dim) == 0;
    }
    if (known) {
        report(w, hv_arena_printf(
                      w->arena, "expected a dimension that \"%.80s\" %s, found \"%.80s\"", pattern,
                      w->m->tensors != NULL ? "has" : "writes or contracts", dim));
    } else if (!sum) {
        report(w, with_nearest(w, "a dimension of the model, \"partial\" or \"partial-max\"", dim,
                               names, w->m->n_dims));
    }
}

static void check_axis(struct walk *w, const char *axis)
{
    const struct hv_named_pairs *mesh = &w->s->mesh;
    for (size_t i = 0; i < mesh->n; i++) {
        if (strcmp(mesh->keys[i], axis) == 0) {
            return;
        }
    }
    report(w, mesh->n > 0
                  ? with_nearest(w, "an axis of the stage's mesh", axis, mesh->keys, mesh->n)
                  : hv_arena_printf(w->arena,
                                    "expected no axis, found \"%.80s\": the stage has no "
                                    "mesh; add \"mesh\": { \"%.80s\": size }",
                                    axis, axis));
}

static void check_shard(struct walk *w)
{
    w->here.key = "shard";
    for (size_t i = 0; i < w->s->n_shard; i++) {
        const struct hv_named_pairs *rule = &w->s->shard[i];
        w->here.entry = rule->name;
        bool known = check_name(w, rule->name, true);
        for (size_t k = 0; k < rule->n; k++) {
            w->here.axis = rule->keys[k];
            check_axis(w, rule->keys[k]);
            if (known) {
                check_dim(w, rule->name, rule->values[k]);
            }
        }
        w->here.axis = NULL;
    }
    w->here.entry = NULL;
}

/* ---- stages ---- */

static void check_stage(struct walk *w)
{
    w->here.key = "ops";
    for (size_t i = 0; i < w->s->n_ops; i++) {
        w->here.at = i;
        check_operator(w, w->s->ops[i]);
    }
    check_shard(w);
    w->here.key = "place";
    for (size_t i = 0; i < w->s->place.n; i++) {
        w->here.entry = w->s->place.keys[i];
        check_operator(w, w->s->place.keys[i]);
    }
    w->here.entry = NULL;
    w->here.key = "fuse";
    for (size_t i = 0; i < w->s->fuse.n; i++) {
        w->here.at = i;
        w->here.side = 0;
        check_operator(w, w->s->fuse.keys[i]);
        w->here.side = 1;
        check_operator(w, w->s->fuse.values[i]);
    }
}

size_t hv_plan_unknown_names(const struct hv_plan *p, const struct hv_model *m,
                             struct hv_arena *arena, struct hv_unknown_name **out)
{
    struct walk w = {.arena = arena};
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            w.s = &p->replicas[r].stages[i];
            w.m = hv_stage_model(m, w.s);
            w.here = (struct hv_unknown_name){.replica = r, .stage = i};
            if (w.m != NULL) {
                check_stage(&w);
            }
        }
    }
    *out = w.items;
    return w.n;
}
