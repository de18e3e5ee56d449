/** Answers of `hetviz shard` as JSON and as text. */
#include "solver/io/own/graph/shard_answer.h"

#include "solver/base/units.h"
#include <string.h>

/* ---- layouts --------------------------------------------------------------------------------- */

/* Appends the names of the axes of a dimension; a part of an axis is "x:(1)2", as Shardy writes it:
 * after parts of 1, a part of 2. */
static void add_axes(json_t *list, const struct hv_shard_case *c, const struct hv_axes *axes)
{
    for (size_t i = 0; i < axes->n;) {
        size_t a = hv_mesh_axis_of(&c->mesh, axes->atom[i]), first = axes->atom[i], n = 0;
        int64_t before = 1, size = 1;
        for (size_t k = c->mesh.first[a]; k < first; k++) {
            before *= c->mesh.atom[k];
        }
        while (i < axes->n && axes->atom[i] == first + n && first + n < c->mesh.first[a + 1]) {
            size *= c->mesh.atom[axes->atom[i++]];
            n++;
        }
        json_array_append_new(list, size == c->mesh.size[a]
                                        ? json_string(c->axis[a])
                                        : json_sprintf("%s:(%lld)%lld", c->axis[a],
                                                       (long long)before, (long long)size));
    }
}

json_t *hv_shard_layout_json(const struct hv_shard_case *c, const struct hv_tensor *t,
                             const struct hv_layout *l)
{
    json_t *o = json_object();
    for (size_t d = 0; d < l->n_dims; d++) {
        if (l->dim[d].n > 0) {
            json_t *list = json_array();
            add_axes(list, c, &l->dim[d]);
            json_object_set_new(o, c->graph->dims[t->dim[d]].name, list);
        }
    }
    return o;
}

/* Layouts of what the case names: gradients by parameter, or results. */
static json_t *layouts_json(const struct hv_shard_answer *a)
{
    const struct hv_shard_case *c = a->asked;
    const struct hv_tensor_graph *g = c->graph;
    json_t *o = json_object();
    for (size_t t = 0; c->request.grad && t < g->n_given; t++) {
        if (a->sharding.gradient[t] != NULL) {
            json_object_set_new(o, g->tensors[t].name,
                                hv_shard_layout_json(c, &g->tensors[t], a->sharding.gradient[t]));
        }
    }
    for (size_t i = 0; !c->request.grad && i < c->request.n_outputs; i++) {
        uint32_t t = c->request.outputs[i];
        json_object_set_new(o, g->tensors[t].name,
                            hv_shard_layout_json(c, &g->tensors[t], a->sharding.layout[t]));
    }
    return o;
}

/* Placements per axis of the mesh: what was asked for, or what came out. An axis whose parts split
 * two dimensions is "S0+S1". */
static json_t *placements_json(const struct hv_shard_answer *a)
{
    const struct hv_shard_case *c = a->asked;
    json_t *list = json_array();
    for (size_t x = 0; x < c->mesh.n_axes; x++) {
        uint32_t atoms = hv_mesh_axis_atoms(&c->mesh, x);
        struct hv_str word = {0};
        for (size_t d = 0; c->want_text == NULL && d < a->result.n_dims; d++) {
            if ((hv_axes_set(&a->result.dim[d]) & atoms) != 0) {
                hv_str_addf(&word, "%sS%zu", word.n > 0 ? "+" : "", d);
            }
        }
        json_array_append_new(list, c->want_text != NULL ? json_string(c->want_text[x])
                                    : word.n > 0         ? json_string(hv_str_cstr(&word))
                                                         : json_string("R"));
        hv_str_free(&word);
    }
    return list;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static json_t *map_json(const struct hv_tensor_map *map)
{
    json_t *dims = json_array();
    for (size_t d = 0; d < map->n_dims; d++) {
        json_t *list = json_array();
        for (size_t i = 0; i < map->dim[d].n; i++) {
            json_array_append_new(list, json_sprintf("f%d", map->dim[d].factor[i]));
        }
        json_array_append_new(dims, list);
    }
    return dims;
}

static void add_kind(json_t *o, const char *key, const struct hv_op_rule *r, bool (*is)(int kind))
{
    json_t *list = json_array();
    for (size_t f = 0; f < r->n_factors; f++) {
        if (is((int)r->factor[f].kind)) {
            json_array_append_new(list, json_sprintf("f%zu", f));
        }
    }
    if (json_array_size(list) > 0) {
        json_object_set(o, key, list);
    }
    json_decref(list);
}

static bool is_reduced(int kind)
{
    return kind == HV_FACTOR_SUM || kind == HV_FACTOR_MAX || kind == HV_FACTOR_INDEXED;
}
static bool is_whole(int kind)
{
    return kind == HV_FACTOR_WHOLE;
}
static bool is_moved(int kind)
{
    return kind == HV_FACTOR_WINDOW;
}

static json_t *rule_json(const struct hv_prim *p, const struct hv_op_rule *r)
{
    json_t *operands = json_array(), *results = json_array(), *sizes = json_object();
    for (size_t t = 0; t < r->n_in; t++) {
        json_array_append_new(operands, map_json(&r->map[t]));
    }
    if (p->kind == HV_PRIM_REDUCE || p->kind == HV_PRIM_REDUCE_WINDOW) {
        json_array_append_new(operands, json_array()); /* the first value, a scalar */
    }
    for (size_t t = r->n_in; t < r->n_in + r->n_out; t++) {
        json_array_append_new(results, map_json(&r->map[t]));
    }
    for (size_t f = 0; f < r->n_factors; f++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", f);
        json_object_set_new(sizes, name, json_integer(r->factor[f].size));
    }
    json_t *o = json_pack("{s:s, s:o, s:o, s:o}", "op", hv_prim_name(p), "operands", operands,
                          "results", results, "sizes", sizes);
    add_kind(o, "reduction", r, is_reduced);
    add_kind(o, "need_replication", r, is_whole);
    add_kind(o, "permutation", r, is_moved);
    return o;
}

/* Rules of all primitives that have dimensions to split, those of functions of their own last. */
static enum hv_status rules_json(const struct hv_shard_answer *a, json_t *list, struct hv_err *err)
{
    const struct hv_prim_graph *g = &a->sharding.expansion.prims;
    struct hv_arena arena = {0};
    enum hv_status st = HV_OK;
    for (int apart = 0; apart < 2; apart++) {
        for (size_t i = 0; st == HV_OK && i < g->n_prims; i++) {
            struct hv_op_rule rule;
            const struct hv_prim *p = &g->prims[i];
            if (p->kind == HV_PRIM_CONSTANT || p->apart != (apart == 1)) {
                continue;
            }
            st = hv_prim_rule(g, p, &arena, &rule, err);
            if (st == HV_OK) {
                json_array_append_new(list, rule_json(p, &rule));
            }
        }
    }
    hv_arena_free(&arena);
    return st;
}

/* ---- an answer ------------------------------------------------------------------------------- */

static enum hv_status answer_json(const struct hv_shard_answer *a, json_t *o, struct hv_err *err)
{
    const struct hv_shard_case *c = a->asked;
    enum hv_status st = HV_OK;
    json_object_set_new(o, "id", json_string(c->id));
    if (c->question == HV_ASK_RULES) {
        json_t *list = json_array();
        st = rules_json(a, list, err);
        json_object_set_new(o, "rule", list);
        return st;
    }
    if (c->question == HV_ASK_OPERATOR) {
        json_object_set_new(o, "out", placements_json(a));
    }
    if (c->question == HV_ASK_GRAPH) {
        json_object_set_new(o, "shardings", layouts_json(a));
        json_object_set_new(o, "memory",
                            json_pack("{s:o, s:o}", "argument_bytes",
                                      hv_json_num(a->sharding.argument_bytes), "output_bytes",
                                      hv_json_num(a->sharding.output_bytes)));
    }
    json_object_set_new(o, "sent_bytes", hv_json_num(a->sharding.lowered.sent_bytes));
    return st;
}

/* Operator of the graph that an operator of the lowered graph comes from. */
static const char *operator_name(const struct hv_shard_answer *a, uint32_t op)
{
    const struct hv_sharding *s = &a->sharding;
    if (s->prim_of == NULL || op >= s->graph.n_ops) {
        return s->prim_of == NULL ? "" : "results";
    }
    uint32_t from = s->expansion.prims.prims[s->prim_of[op]].op;
    return a->asked->graph->ops[from].id;
}

json_t *hv_shard_axes_json(const struct hv_shard_case *c, uint32_t atoms)
{
    json_t *names = json_array();
    struct hv_axes axes = {0};
    for (uint8_t k = 0; k < c->mesh.n_atoms; k++) {
        if ((atoms >> k & 1) != 0) {
            hv_axes_push(&axes, k);
        }
    }
    add_axes(names, c, &axes);
    return names;
}

json_t *hv_shard_exchanges_json(const struct hv_shard_answer *a)
{
    const struct hv_lowered *l = &a->sharding.lowered;
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++) {
        const struct hv_exchange *x = &l->exchange[i].exchange;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:I, s:o, s:o}", "op",
                            operator_name(a, l->exchange[i].op), "kind", hv_exchange_name(x->kind),
                            "axes", hv_shard_axes_json(a->asked, x->atoms), "devices",
                            (json_int_t)x->group, "local_bytes", hv_json_num(x->local_bytes),
                            "sent_bytes", hv_json_num(x->sent_bytes)));
    }
    return list;
}

/* The exchanges in their order: operator, kind, bytes, axes. */
static void exchanges_text(const struct hv_shard_answer *a, struct hv_str *out)
{
    const struct hv_lowered *l = &a->sharding.lowered;
    for (size_t i = 0; i < l->n; i++) {
        const struct hv_lowered_exchange *x = &l->exchange[i];
        char text[HV_FMT_CAP];
        json_t *names = hv_shard_axes_json(a->asked, x->exchange.atoms), *name;
        size_t n = 0;
        hv_text_addf(out, "  %-16.16s %-15s %10s  over", operator_name(a, x->op),
                     hv_exchange_name(x->exchange.kind),
                     hv_fmt_bytes(text, sizeof text, x->exchange.sent_bytes));
        json_array_foreach(names, n, name)
        {
            hv_text_addf(out, " %s", json_string_value(name));
        }
        hv_str_adds(out, "\n");
        json_decref(names);
    }
}

static void layouts_text(const struct hv_shard_answer *a, struct hv_str *out)
{
    json_t *all = layouts_json(a), *layout, *axes, *axis;
    const char *name, *dim;
    size_t i;
    json_object_foreach(all, name, layout)
    {
        hv_text_addf(out, "  %-16s", name);
        json_object_foreach(layout, dim, axes)
        {
            hv_text_addf(out, " %s:", dim);
            json_array_foreach(axes, i, axis)
            {
                hv_text_addf(out, "%s%s", i > 0 ? "+" : "", json_string_value(axis));
            }
        }
        hv_text_addf(out, "%s\n", json_object_size(layout) == 0 ? " whole on every device" : "");
    }
    json_decref(all);
}

static void answer_text(const struct hv_shard_answer *a, struct hv_str *out)
{
    char x[HV_FMT_CAP], y[HV_FMT_CAP];
    const struct hv_sharding *s = &a->sharding;
    hv_text_addf(out, "%s\n", a->asked->id);
    if (a->asked->question == HV_ASK_GRAPH) {
        layouts_text(a, out);
    }
    exchanges_text(a, out);
    hv_text_addf(out, "  sent per device   %s\n", hv_fmt_bytes(x, sizeof x, s->lowered.sent_bytes));
    if (a->asked->question == HV_ASK_GRAPH) {
        hv_text_addf(out, "  arguments %s, results %s per device\n",
                     hv_fmt_bytes(x, sizeof x, s->argument_bytes),
                     hv_fmt_bytes(y, sizeof y, s->output_bytes));
    }
}

enum hv_status hv_shard_answer_print(const struct hv_shard_answer *a, bool json, struct hv_str *out,
                                     struct hv_err *err)
{
    if (!json && a->asked->question != HV_ASK_RULES) {
        answer_text(a, out);
        return HV_OK;
    }
    json_t *o = json_object();
    enum hv_status st = answer_json(a, o, err);
    if (st == HV_OK) {
        hv_json_write(out, o, false);
        hv_str_adds(out, "\n");
    }
    json_decref(o);
    return st;
}
