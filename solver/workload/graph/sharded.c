/** From a graph and a few layouts to all layouts and exchanges. */
#include "solver/workload/graph/sharded.h"

#include "solver/shard/delay.h"
#include "solver/workload/graph/gradient.h"
#include "solver/workload/graph/op_rule.h"
#include <stdlib.h>
#include <string.h>

#define MOST_PRIMS 10000000 /* of results by themselves */

struct solve {
    const struct hv_sharding_request *r;
    struct hv_arena *arena;
    struct hv_sharding *out;
    uint32_t *gradient;             /* primitive tensor → its gradient */
    size_t n_forward;               /* primitives before those of gradients */
    const struct hv_layout **asked; /* tensor → the layout that its result shall have; NULL: any */
};

static struct hv_prim_graph *prims(const struct solve *s)
{
    return &s->out->expansion.prims;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Layouts by tensor; of two for one tensor the first counts. */
static void index_asked(struct solve *s)
{
    s->asked = hv_arena_new(s->arena, const struct hv_layout *, s->r->graph->n_tensors + 1);
    for (size_t i = s->r->n_asked; i-- > 0;) {
        s->asked[s->r->asked[i].tensor] = &s->r->asked[i].layout;
    }
}

static void add_output(struct solve *s, uint32_t tensor, uint32_t prim_tensor)
{
    struct hv_shard_output *o = &s->out->graph.outputs[s->out->graph.n_outputs++];
    const struct hv_layout *l = s->asked[tensor];
    *o = (struct hv_shard_output){.tensor = prim_tensor, .asked = l != NULL};
    if (l != NULL) {
        o->layout = *l;
    }
}

static enum hv_status backward(struct solve *s, struct hv_err *err)
{
    const struct hv_tensor_graph *g = s->r->graph;
    const uint32_t *of = s->out->expansion.tensor_of;
    uint32_t *loss = hv_arena_new(s->arena, uint32_t, s->r->n_loss + 1);
    uint32_t *wanted = hv_arena_new(s->arena, uint32_t, g->n_given + s->r->n_wanted + 1);
    size_t n = 0;
    s->n_forward = prims(s)->n_prims;
    for (size_t i = 0; i < s->r->n_loss; i++) {
        loss[i] = of[s->r->loss[i]];
    }
    for (size_t t = 0; t < g->n_given; t++) {
        if (g->tensors[t].role == HV_TENSOR_PARAMETER) {
            wanted[n++] = of[t];
        }
    }
    for (size_t i = 0; i < s->r->n_wanted; i++) {
        wanted[n++] = of[s->r->wanted[i]];
    }
    for (size_t i = 0; i < s->r->n_loss && s->r->passes; i++) {
        add_output(s, s->r->loss[i], loss[i]);
    }
    s->gradient = hv_arena_new(s->arena, uint32_t, prims(s)->n_tensors + 1);
    enum hv_status st = hv_gradient(prims(s), loss, s->r->n_loss, wanted, n, s->gradient, err);
    for (uint32_t t = 0; st == HV_OK && t < g->n_given; t++) {
        if (g->tensors[t].role == HV_TENSOR_PARAMETER && s->gradient[of[t]] != HV_NO_TENSOR) {
            add_output(s, t, s->gradient[of[t]]);
        }
    }
    for (size_t i = 0; st == HV_OK && i < s->r->n_wanted; i++) {
        uint32_t t = s->r->wanted[i];
        if (s->gradient[of[t]] != HV_NO_TENSOR) {
            add_output(s, t, s->gradient[of[t]]);
        }
    }
    s->out->gradient_of = s->gradient;
    return st;
}

/* ---- results apart --------------------------------------------------------------------------- */

/* Primitive that writes each tensor; HV_NO_TENSOR: none. */
static uint32_t *writers(const struct solve *s)
{
    const struct hv_prim_graph *g = prims(s);
    uint32_t *writer = hv_arena_new(s->arena, uint32_t, g->n_tensors + 1);
    memset(writer, 0xff, (g->n_tensors + 1) * sizeof *writer);
    for (uint32_t i = 0; i < g->n_prims; i++) {
        const struct hv_prim *p = &g->prims[i];
        for (size_t t = p->n_in; t < (size_t)(p->n_in + p->n_out); t++) {
            writer[p->tensor[t]] = i;
        }
    }
    return writer;
}

/* A copy of a primitive with new results; `to` tells the copies of tensors. */
static void copy_prim(struct hv_prim_graph *g, size_t i, uint32_t *to)
{
    struct hv_prim old = g->prims[i];
    uint32_t in[64];
    for (size_t t = 0; t < old.n_in; t++) {
        in[t] = to[old.tensor[t]];
    }
    struct hv_shape shape = *hv_prim_shape(g, old.tensor[old.n_in]);
    struct hv_prim *p = hv_prim_add(g, old.kind, in, old.n_in, &shape);
    uint32_t *tensor = p->tensor;
    *p = old;
    p->tensor = tensor;
    to[old.tensor[old.n_in]] = tensor[old.n_in];
    if (old.n_out == 2) {
        shape = *hv_prim_shape(g, old.tensor[old.n_in + 1]);
        uint32_t second = hv_prim_tensor_add(g, &shape);
        tensor[old.n_in + 1] = second;
        to[old.tensor[old.n_in + 1]] = second;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Primitives that a tensor depends on, in their order; `seen` holds the round in which a primitive
 * was met last. Returns how many. */
static size_t ancestors(const struct hv_prim_graph *g, const uint32_t *writer, uint32_t tensor,
                        uint32_t round, uint32_t *seen, uint32_t *list)
{
    size_t n = 0;
    if (writer[tensor] != HV_NO_TENSOR) {
        seen[writer[tensor]] = round;
        list[n++] = writer[tensor];
    }
    for (size_t i = 0; i < n; i++) {
        const struct hv_prim *p = &g->prims[list[i]];
        for (size_t t = 0; t < p->n_in; t++) {
            uint32_t from = writer[p->tensor[t]];
            if (from != HV_NO_TENSOR && seen[from] != round) {
                seen[from] = round;
                list[n++] = from;
            }
        }
    }
    qsort(list, n, sizeof *list, by_number);
    return n;
}

/* Gives every result but the first a copy of all that it is made of. */
static enum hv_status part_results(struct solve *s, struct hv_err *err)
{
    struct hv_prim_graph *g = prims(s);
    const uint32_t *writer = writers(s);
    uint32_t *seen = hv_arena_new(s->arena, uint32_t, g->n_prims + 1);
    uint32_t *list = hv_arena_new(s->arena, uint32_t, g->n_prims + 1);
    uint32_t *to = hv_arena_new(s->arena, uint32_t, g->n_tensors + 1);
    for (uint32_t t = 0; t < g->n_tensors; t++) {
        to[t] = t;
    }
    for (uint32_t k = 1; k < s->out->graph.n_outputs; k++) {
        struct hv_shard_output *o = &s->out->graph.outputs[k];
        size_t n = ancestors(g, writer, o->tensor, k, seen, list);
        for (size_t i = 0; i < n; i++) {
            copy_prim(g, list[i], to);
        }
        o->tensor = to[o->tensor];
        for (size_t i = 0; i < n; i++) {
            const struct hv_prim *p = &g->prims[list[i]];
            for (size_t t = p->n_in; t < (size_t)(p->n_in + p->n_out); t++) {
                to[p->tensor[t]] = p->tensor[t];
            }
        }
        if (g->n_prims > MOST_PRIMS) {
            return hv_err_set(err, HV_ELIMIT,
                              "the results by themselves need more than %d "
                              "primitives; ask for fewer of them",
                              MOST_PRIMS);
        }
    }
    return HV_OK;
}

/* ---- what the results depend on -------------------------------------------------------------- */

static bool *needed_prims(const struct solve *s)
{
    const struct hv_prim_graph *g = prims(s);
    bool *tensor = hv_arena_new(s->arena, bool, g->n_tensors + 1);
    bool *prim = hv_arena_new(s->arena, bool, g->n_prims + 1);
    for (size_t i = 0; i < s->out->graph.n_outputs; i++) {
        tensor[s->out->graph.outputs[i].tensor] = true;
    }
    for (size_t i = g->n_prims; i-- > 0;) {
        const struct hv_prim *p = &g->prims[i];
        for (size_t t = p->n_in; t < (size_t)(p->n_in + p->n_out); t++) {
            prim[i] = prim[i] || tensor[p->tensor[t]];
        }
        for (size_t t = 0; prim[i] && t < p->n_in; t++) {
            tensor[p->tensor[t]] = true;
        }
    }
    return prim;
}

static enum hv_status make_ops(struct solve *s, struct hv_err *err)
{
    const struct hv_prim_graph *g = prims(s);
    const bool *needed = needed_prims(s);
    struct hv_shard_op *ops = hv_arena_new(s->arena, struct hv_shard_op, g->n_prims + 1);
    s->out->prim_of = hv_arena_new(s->arena, uint32_t, g->n_prims + 1);
    for (size_t i = 0; i < g->n_prims; i++) {
        if (!needed[i]) {
            continue;
        }
        struct hv_op_rule *rule = hv_arena_new(s->arena, struct hv_op_rule, 1);
        enum hv_status st = hv_prim_rule(g, &g->prims[i], s->arena, rule, err);
        if (st) {
            return st;
        }
        s->out->prim_of[s->out->graph.n_ops] = (uint32_t)i;
        ops[s->out->graph.n_ops++] = (struct hv_shard_op){rule, g->prims[i].tensor};
        s->out->n_forward += i < s->n_forward;
    }
    s->out->graph.ops = ops;
    return HV_OK;
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void fix(struct solve *s, uint32_t prim_tensor, const struct hv_layout *l)
{
    struct hv_shard_tensor *t = &s->out->graph.tensors[prim_tensor];
    t->layout = *l;
    t->fixed = true;
}

static void place_tensors(struct solve *s)
{
    const struct hv_tensor_graph *g = s->r->graph;
    const struct hv_prim_graph *p = prims(s);
    struct hv_shard_graph *out = &s->out->graph;
    const uint32_t *of = s->out->expansion.tensor_of;
    out->n_tensors = p->n_tensors;
    out->tensors = hv_arena_new(s->arena, struct hv_shard_tensor, p->n_tensors + 1);
    for (size_t t = 0; t < p->n_tensors; t++) {
        out->tensors[t].shape = p->tensors[t].shape;
        out->tensors[t].layout = hv_layout_whole(p->tensors[t].shape.n_dims);
    }
    for (size_t t = 0; t < g->n_given; t++) {
        out->tensors[of[t]].fixed = !s->r->open_inputs;
    }
    for (size_t i = 0; i < s->r->n_given; i++) {
        uint32_t t = s->r->given[i].tensor, prim = of[t];
        fix(s, prim, &s->r->given[i].layout);
        if (t >= g->n_given && s->gradient != NULL && s->gradient[prim] != HV_NO_TENSOR) {
            fix(s, s->gradient[prim], &s->r->given[i].layout); /* a constraint holds both ways */
        }
    }
}

/* Cuts each dimension at the first part of an axis: results are split over whole axes, as programs
 * around this one name them. */
static void keep_whole_axes(const struct hv_mesh *m, struct hv_layout *l)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        size_t kept = 0;
        while (kept < l->dim[d].n) {
            size_t axis = hv_mesh_axis_of(m, l->dim[d].atom[kept]), n = 0;
            size_t all = (size_t)(m->first[axis + 1] - m->first[axis]);
            while (n < all && kept + n < l->dim[d].n &&
                   l->dim[d].atom[kept + n] == m->first[axis] + n) {
                n++;
            }
            if (n < all) {
                break;
            }
            kept += n;
        }
        hv_axes_cut(&l->dim[d], kept);
    }
}

static void name_results_by_axes(struct hv_shard_graph *g)
{
    for (size_t i = 0; i < g->n_outputs; i++) {
        struct hv_shard_output *o = &g->outputs[i];
        struct hv_layout l = g->tensors[o->tensor].layout;
        keep_whole_axes(&g->mesh, &l);
        if (!o->asked && !hv_layout_equal(&l, &g->tensors[o->tensor].layout)) {
            o->asked = true;
            o->layout = l;
        }
    }
}

/* The operand of an operator that only changes its shape gets the layout that follows from the
 * result's. */
static void fix_operand(struct solve *s, const struct hv_shard_op *op)
{
    struct hv_shard_graph *x = &s->out->graph;
    struct hv_shard_tensor pair[] = {x->tensors[op->tensor[0]], x->tensors[op->tensor[1]]};
    const uint32_t numbers[] = {0, 1};
    const struct hv_shard_op one = {op->rule, numbers};
    struct hv_shard_graph alone = {
        .mesh = x->mesh, .tensors = pair, .n_tensors = 2, .ops = &one, .n_ops = 1};
    pair[0].layout = hv_layout_whole(pair[0].shape.n_dims);
    hv_propagate(&alone, HV_PROPAGATE_CHOOSE, s->arena, NULL);
    fix(s, op->tensor[0], &pair[0].layout);
}

/* A gradient that is computed in another shape is made where it must lie: else an operand's split
 * goes on to it, and all of it is gathered behind. */
static void fix_other_shapes(struct solve *s)
{
    const struct hv_shard_graph *x = &s->out->graph;
    for (size_t i = x->n_ops; i-- > s->out->n_forward;) {
        const struct hv_prim *p = &prims(s)->prims[s->out->prim_of[i]];
        if (p->n_in == 1 && x->tensors[p->tensor[1]].fixed && !x->tensors[p->tensor[0]].fixed &&
            hv_prim_only_reshapes(prims(s), p)) {
            fix_operand(s, &x->ops[i]);
        }
    }
}

/* In passes a gradient lies as what it is the gradient of: the optimizer, and whoever sent the
 * tensor, have that part of it. Where propagation has found another layout, the gradients get the
 * right ones first, and everything else follows once more. */
static void lay_gradients(struct solve *s)
{
    struct hv_shard_graph *x = &s->out->graph;
    bool other = false;
    for (size_t t = 0; t < s->r->graph->n_given && s->r->passes && s->gradient != NULL; t++) {
        uint32_t prim = s->out->expansion.tensor_of[t], gradient = s->gradient[prim];
        if (gradient != HV_NO_TENSOR && !x->tensors[gradient].fixed) {
            other =
                other || !hv_layout_equal(&x->tensors[gradient].layout, &x->tensors[prim].layout);
            x->tensors[prim].fixed = true;
            fix(s, gradient, &x->tensors[prim].layout);
        }
    }
    for (size_t t = 0; t < x->n_tensors && other; t++) {
        if (!x->tensors[t].fixed) {
            x->tensors[t].layout = hv_layout_whole(x->tensors[t].shape.n_dims);
        }
    }
    if (other) {
        fix_other_shapes(s);
        hv_propagate(x, s->r->how, s->arena, &s->out->conflicts);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void count_bytes(struct solve *s)
{
    const struct hv_tensor_graph *g = s->r->graph;
    const struct hv_shard_graph *x = &s->out->graph;
    bool *read = hv_arena_new(s->arena, bool, x->n_tensors + 1);
    for (size_t i = 0; i < x->n_ops; i++) {
        for (size_t t = 0; t < x->ops[i].rule->n_in; t++) {
            read[x->ops[i].tensor[t]] = true;
        }
    }
    for (size_t i = 0; i < x->n_outputs; i++) {
        const struct hv_shard_output *o = &x->outputs[i];
        const struct hv_shard_tensor *t = &x->tensors[o->tensor];
        const struct hv_layout *l = o->asked ? &o->layout : &t->layout;
        s->out->output_bytes += hv_layout_bytes(l, &x->mesh, &t->shape);
        read[o->tensor] = true;
    }
    for (size_t t = 0; t < g->n_given; t++) {
        const struct hv_shard_tensor *tensor = &x->tensors[s->out->expansion.tensor_of[t]];
        if (read[s->out->expansion.tensor_of[t]]) {
            s->out->argument_bytes += hv_layout_bytes(&tensor->layout, &x->mesh, &tensor->shape);
        }
    }
}

static const struct hv_layout *output_layout(const struct hv_shard_graph *x, size_t i)
{
    const struct hv_shard_output *o = &x->outputs[i];
    return o->asked ? &o->layout : &x->tensors[o->tensor].layout;
}

/* Layouts of gradients; where one is a result several times, the last one counts. */
static void name_gradients(struct solve *s)
{
    const struct hv_shard_graph *x = &s->out->graph;
    const struct hv_layout **of =
        hv_arena_new(s->arena, const struct hv_layout *, x->n_tensors + 1);
    for (size_t i = 0; i < x->n_outputs; i++) {
        of[x->outputs[i].tensor] = output_layout(x, i);
    }
    for (size_t t = 0; t < s->r->graph->n_given; t++) {
        uint32_t gradient = s->gradient[s->out->expansion.tensor_of[t]];
        s->out->gradient[t] = gradient != HV_NO_TENSOR ? of[gradient] : NULL;
    }
}

static void name_layouts(struct solve *s)
{
    const struct hv_tensor_graph *g = s->r->graph;
    struct hv_shard_graph *x = &s->out->graph;
    s->out->layout = hv_arena_new(s->arena, const struct hv_layout *, g->n_tensors + 1);
    s->out->gradient = hv_arena_new(s->arena, const struct hv_layout *, g->n_tensors + 1);
    for (size_t t = 0; t < g->n_tensors; t++) {
        s->out->layout[t] = &x->tensors[s->out->expansion.tensor_of[t]].layout;
    }
    if (s->gradient != NULL) {
        name_gradients(s);
        return;
    }
    for (size_t i = 0; i < x->n_outputs; i++) {
        s->out->layout[s->r->outputs[i]] = output_layout(x, i);
    }
}

enum hv_status hv_shard_graph_solve(const struct hv_sharding_request *r, struct hv_arena *arena,
                                    struct hv_sharding *out, struct hv_err *err)
{
    struct solve s = {.r = r, .arena = arena, .out = out};
    *out = (struct hv_sharding){0};
    enum hv_status st = hv_expand(r->graph, arena, &out->expansion, err);
    if (st) {
        return st;
    }
    out->graph.mesh = r->mesh;
    size_t most = r->n_outputs + r->n_loss + r->n_wanted + r->graph->n_given + 1;
    out->graph.outputs = hv_arena_new(arena, struct hv_shard_output, most);
    index_asked(&s);
    for (size_t i = 0; i < r->n_outputs && !r->grad; i++) {
        add_output(&s, r->outputs[i], out->expansion.tensor_of[r->outputs[i]]);
    }
    st = r->grad ? backward(&s, err) : r->apart ? part_results(&s, err) : HV_OK;
    st = st ? st : make_ops(&s, err);
    if (st) {
        return st;
    }
    s.out->graph.n_kept = r->passes ? s.out->n_forward : 0;
    place_tensors(&s);
    hv_propagate(&out->graph, r->how, arena, &out->conflicts);
    lay_gradients(&s);
    name_results_by_axes(&out->graph);
    hv_delay_sums(&out->graph, out->n_forward, arena);
    st = hv_lower(&out->graph, r->pricing, arena, &out->lowered, err);
    if (st == HV_OK) {
        count_bytes(&s);
        name_layouts(&s);
    }
    return st;
}

enum hv_status hv_shard_op_solve(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 const struct hv_mesh *m, const struct hv_layout *operands,
                                 const struct hv_layout *want, struct hv_arena *arena,
                                 struct hv_lowered *out, struct hv_layout *result,
                                 struct hv_err *err)
{
    struct hv_op_rule rule;
    enum hv_status st = hv_tensor_op_rule(g, op, arena, &rule, NULL, err);
    if (st) {
        return st;
    }
    size_t n = op->n_in + 1U;
    struct hv_shard_tensor *tensors = hv_arena_new(arena, struct hv_shard_tensor, n);
    uint32_t *numbers = hv_arena_new(arena, uint32_t, n);
    for (size_t i = 0; i < n; i++) {
        bool in = i < op->n_in;
        tensors[i].shape = hv_tensor_shape(g, &g->tensors[in ? op->in[i].tensor : op->out]);
        tensors[i].layout = in ? operands[i] : want ? *want : hv_layout_whole(rule.map[i].n_dims);
        tensors[i].fixed = in || want != NULL;
        numbers[i] = (uint32_t)i;
    }
    struct hv_shard_op one = {&rule, numbers};
    struct hv_shard_graph x = {.mesh = *m, .tensors = tensors, .n_tensors = n, .ops = &one};
    x.n_ops = 1;
    hv_propagate(&x, HV_PROPAGATE_CHOOSE, arena, NULL);
    if (result != NULL) {
        *result = tensors[op->n_in].layout;
    }
    return hv_lower(&x, NULL, arena, out, err);
}
