/**
 * Prices of single operators under all their splits. Equal operators are priced once, and so are
 * the ways between two layouts of a shape. O(operators · classes + Σ ways of the classes · a stage
 * of one operator + Σ pairs of layouts of the edges' classes · paths between them).
 */
#include "solver/cost/graph/splits.h"

#include "solver/base/vec.h"
#include "solver/cost/graph/graph.h"
#include "solver/cost/graph/live.h"
#include "solver/cost/graph/work.h"
#include "solver/plan/mesh.h"
#include "solver/shard/paths.h"
#include "solver/workload/graph/op_rule.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ways of one operator, at most: choices that leave summands count once per layout that these are
 * brought into. */
#define MOST_WAYS  20000
#define MOST_SLOTS 65 /* operands and the result */

/* Words that tell operators apart which cost alike. */
struct form {
    uint64_t *word;
    size_t n;
};

/* What is known of a class while it is priced. */
struct class_state {
    struct form form;
    bool
        *read_again; /* per operand: the backward pass reads it, in the layout of the forward one */
};

struct splits {
    struct hv__graph_work w;
    struct hv_arena *keep; /* of the answer */
    struct hv_splits *out;
    struct class_state *state; /* per class */
    const struct hv_tensor_graph *g;
    struct hv_pricing pricing;
    bool *trained;                   /* per tensor: a parameter is behind it, or it is one */
    HV_VEC(struct hv_op_split) list; /* of the class at hand */
    HV_VEC(uint64_t) words;
};

/* ---- classes --------------------------------------------------------------------------------- */

struct names {
    uint32_t dim[4 * HV_TENSOR_DIMS * 8];
    size_t n;
};

static void add_word(struct splits *s, uint64_t word)
{
    hv_vec_push(&s->words, word);
}

/* A dimension by its number among those of the operator, and its size where it is new. */
static void add_dim(struct splits *s, struct names *names, uint32_t dim)
{
    size_t i = 0;
    while (i < names->n && names->dim[i] != dim) {
        i++;
    }
    add_word(s, i);
    if (i == names->n && names->n < HV_COUNT(names->dim)) {
        names->dim[names->n++] = dim;
        add_word(s, dim == HV_NO_DIM ? 0 : (uint64_t)s->g->dims[dim].size);
    }
}

static void add_dims(struct splits *s, struct names *names, const uint32_t *dim, size_t n)
{
    add_word(s, n);
    for (size_t i = 0; i < n; i++) {
        add_dim(s, names, dim[i]);
    }
}

/* The first operand that is the same tensor. */
static size_t first_use(const struct hv_tensor_op *op, size_t k)
{
    size_t i = 0;
    while (op->in[i].tensor != op->in[k].tensor) {
        i++;
    }
    return i;
}

static void add_attributes(struct splits *s, struct names *names, const struct hv_tensor_op *op)
{
    add_word(s, (uint64_t)op->feature_groups);
    add_dims(s, names, op->over, op->n_over);
    add_word(s, op->n_windows);
    for (size_t i = 0; i < op->n_windows; i++) {
        const struct hv_tensor_window *w = &op->window[i];
        const uint32_t dims[] = {w->out, w->of, w->tap};
        add_dims(s, names, dims, 3);
        const int64_t numbers[] = {w->size, w->stride, w->pad[0], w->pad[1], w->dilation};
        for (size_t k = 0; k < HV_COUNT(numbers); k++) {
            add_word(s, (uint64_t)numbers[k]);
        }
    }
    add_word(s, op->n_groups);
    for (size_t i = 0; i < op->n_groups; i++) {
        add_dim(s, names, op->group[i].whole);
        add_dims(s, names, op->group[i].part, op->group[i].n_parts);
    }
    add_word(s, op->n_ranges);
    for (size_t i = 0; i < op->n_ranges; i++) {
        const struct hv_tensor_range *r = &op->range[i];
        add_dim(s, names, r->dim);
        add_word(s, (uint64_t)r->from);
        add_word(s, (uint64_t)r->to);
        add_word(s, (uint64_t)r->step);
    }
}

static void describe(struct splits *s, const struct hv_tensor_op *op)
{
    struct names names = {.n = 0};
    s->words.n = 0;
    add_word(s, (uint64_t)op->kind);
    add_word(s, (uint64_t)op->by);
    add_word(s, op->n_in);
    for (size_t k = 0; k < op->n_in; k++) {
        const struct hv_tensor *t = &s->g->tensors[op->in[k].tensor];
        add_word(s, first_use(op, k));
        add_word(s, (uint64_t)t->role);
        add_word(s, s->trained[op->in[k].tensor]);
        add_word(s, (uint64_t)t->dtype);
        add_dims(s, &names, op->in[k].dim, op->in[k].n_dims);
        add_dims(s, &names, t->dim, t->n_dims);
    }
    const struct hv_tensor *out = &s->g->tensors[op->out];
    add_word(s, (uint64_t)out->dtype);
    add_dims(s, &names, out->dim, out->n_dims);
    add_attributes(s, &names, op);
}

static bool is_form(const struct form *f, const uint64_t *word, size_t n)
{
    return f->n == n && memcmp(f->word, word, n * sizeof *word) == 0;
}

static void find_classes(struct splits *s)
{
    const struct hv_tensor_graph *g = s->g;
    s->out->class_of = hv_arena_new(s->keep, uint32_t, g->n_ops + 1);
    s->out->classes = hv_arena_new(s->keep, struct hv_split_class, g->n_ops + 1);
    s->state = hv_arena_new(&s->w.a->arena, struct class_state, g->n_ops + 1);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        uint32_t c = 0;
        describe(s, &g->ops[i]);
        while (c < s->out->n_classes && !is_form(&s->state[c].form, s->words.items, s->words.n)) {
            c++;
        }
        if (c == s->out->n_classes) {
            s->out->classes[c].op = i;
            s->state[c].form.n = s->words.n;
            s->state[c].form.word =
                hv_arena_copy(&s->w.a->arena, s->words.items, s->words.n, sizeof *s->words.items);
            s->out->n_classes++;
        }
        s->out->class_of[i] = c;
    }
}

/* ---- ways of one operator -------------------------------------------------------------------- */

/* The operator at hand, as a graph of its own. */
struct one {
    struct splits *s;
    const struct hv_tensor_op *op;
    const struct hv_op_rule *rule;
    const struct hv_shape **shapes; /* [operands + 1] */
    struct class_state *state;
    enum hv_status st;
    struct hv_err *err;
};

static bool is_known(const struct one *x, const struct hv_layout *layouts)
{
    for (size_t i = 0; i < x->s->list.n; i++) {
        size_t k = 0;
        while (k <= x->op->n_in && hv_layout_equal(&x->s->list.items[i].layouts[k], &layouts[k])) {
            k++;
        }
        if (k > x->op->n_in) {
            return true;
        }
    }
    return false;
}

/* Plans name the dimension of each axis: axes of one dimension lie in the order of the mesh. */
static bool in_mesh_order(const struct hv_layout *l)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        for (size_t i = 1; i < l->dim[d].n; i++) {
            if (l->dim[d].atom[i - 1] > l->dim[d].atom[i]) {
                return false;
            }
        }
    }
    return true;
}

/* One tensor has one layout, also where an operator reads it twice. */
static bool agrees(const struct one *x, const struct hv_layout *layouts)
{
    for (size_t k = 0; k <= x->op->n_in; k++) {
        if (!in_mesh_order(&layouts[k])) {
            return false;
        }
    }
    for (size_t k = 0; k < x->op->n_in; k++) {
        if (!hv_layout_equal(&layouts[k], &layouts[first_use(x->op, k)])) {
            return false;
        }
    }
    return true;
}

static void add_exchanges(const struct one *x, struct hv_op_split *p)
{
    struct hv__graph_work *w = &x->s->w;
    const struct hv_lowered *l = &w->sharding.lowered;
    for (size_t i = 0; i < l->n; i++) {
        double s = hv__wire_price(&w->wires, &l->exchange[i].exchange).time_s;
        *(w->kernels.sums[l->exchange[i].tensor] ? &p->sums_s : &p->exchange_s) += s;
    }
}

static void add_bytes(const struct one *x, struct hv_op_split *p)
{
    struct hv__graph_work *w = &x->s->w;
    p->kept_bytes = hv__live_bytes(&w->sharding, &w->kernels, &w->part, false).kept;
    for (size_t k = 0; k < x->op->n_in; k++) {
        if (w->part.graph.tensors[x->op->in[k].tensor].role == HV_TENSOR_PARAMETER &&
            first_use(x->op, k) == k) {
            p->parameters += hv_layout_bytes(&p->layouts[k], &w->place.mesh, x->shapes[k]) /
                             (double)x->shapes[k]->element_bytes;
        }
    }
}

/* Which operands the backward pass reads as the forward pass has read them. */
static void note_reads(const struct one *x)
{
    const struct hv__graph_work *w = &x->s->w;
    for (size_t k = 0; k < x->op->n_in; k++) {
        uint32_t t = w->kernels.root[w->sharding.expansion.tensor_of[x->op->in[k].tensor]];
        for (size_t i = w->kernels.n_forward; i < w->kernels.n; i++) {
            const struct hv__kernel *kernel = &w->kernels.items[i];
            for (size_t r = 0; r < kernel->n_reads; r++) {
                x->state->read_again[k] = x->state->read_again[k] || kernel->reads[r].tensor == t;
            }
        }
    }
}

static void sum_kernels(const struct hv__graph_work *w, double *forward_s, double *backward_s)
{
    *forward_s = *backward_s = 0;
    for (size_t i = 0; i < w->kernels.n; i++) {
        *(w->kernels.items[i].backward ? backward_s : forward_s) += w->kernels.items[i].time_s;
    }
}

/* The slowest kind of the rank's devices sets the pace. */
static void add_kernels(const struct one *x, struct hv_op_split *p)
{
    struct hv__graph_work *w = &x->s->w;
    const struct hv__rank *r = w->a->r;
    for (size_t i = 0; i <= r->n_others; i++) {
        double forward_s, backward_s;
        hv__graph_kernels(w, i < r->n_others ? r->others[i] : r->device);
        sum_kernels(w, &forward_s, &backward_s);
        if (forward_s + backward_s > p->forward_s + p->backward_s) {
            p->forward_s = forward_s;
            p->backward_s = backward_s;
        }
    }
}

/* Prices the operator in these layouts. */
static void try_layouts(struct one *x, const struct hv_choice *choice,
                        const struct hv_layout *layouts)
{
    struct splits *s = x->s;
    size_t n = x->op->n_in + 1U;
    if (!agrees(x, layouts) || is_known(x, layouts)) {
        return;
    }
    struct hv_arena_mark mark = hv_arena_mark(&s->w.a->arena);
    struct hv_given_layout given[MOST_SLOTS];
    for (size_t k = 0; k < n; k++) {
        given[k] =
            (struct hv_given_layout){k < n - 1 ? x->op->in[k].tensor : x->op->out, layouts[k]};
    }
    struct hv_err why = {0};
    if (hv__graph_solve(&s->w, given, n, &why) == HV_OK) {
        struct hv_op_split p = {.choice = *choice};
        p.layouts = hv_arena_copy(s->keep, layouts, n, sizeof *layouts);
        add_kernels(x, &p);
        add_exchanges(x, &p);
        add_bytes(x, &p);
        if (s->list.n == 0) {
            note_reads(x);
        }
        hv_vec_push(&s->list, p);
    } else if (s->list.n == 0) {
        *x->err = why;
    }
    hv_arena_rewind(&s->w.a->arena, mark);
}

/* Appends the atoms of a set to a dimension, where it divides then. */
static bool scatter(const struct hv_mesh *m, const struct hv_shape *shape, uint32_t atoms,
                    size_t dim, struct hv_layout *l)
{
    for (uint8_t a = 0; a < m->n_atoms; a++) {
        if ((atoms >> a & 1) != 0) {
            hv_axes_push(&l->dim[dim], a);
        }
    }
    return hv_layout_divides(l, m, shape);
}

/* A choice that leaves summands: they are summed up, and every device has the sums, or its part of
 * them. */
static bool try_choice(void *ctx, const struct hv_choice *choice)
{
    struct one *x = ctx;
    const struct hv_mesh *m = &x->s->w.place.mesh;
    struct hv_layout layouts[MOST_SLOTS];
    size_t out = x->op->n_in;
    if (!hv_choice_layouts(x->rule, m, x->shapes, choice, layouts)) {
        return true;
    }
    uint32_t partial = layouts[out].sum | layouts[out].max;
    layouts[out].sum = layouts[out].max = 0;
    struct hv_layout whole = layouts[out];
    try_layouts(x, choice, layouts);
    for (size_t d = 0; d < whole.n_dims && partial != 0; d++) {
        layouts[out] = whole;
        if (scatter(m, x->shapes[out], partial, d, &layouts[out])) {
            try_layouts(x, choice, layouts);
        }
    }
    return x->s->list.n < MOST_WAYS;
}

static enum hv_status price_class(struct splits *s, uint32_t number, struct hv_err *err)
{
    struct hv_split_class *c = &s->out->classes[number];
    struct hv_arena *arena = &s->w.a->arena;
    hv_graph_part_cut(s->g, c->op, c->op + 1U, arena, &s->w.part);
    const struct hv_tensor_graph *g = &s->w.part.graph;
    const struct hv_tensor_op *op = &g->ops[0];
    size_t n = op->n_in + 1U;
    bool *trained = hv_arena_new(arena, bool, g->n_tensors + 1);
    for (size_t t = 0; t < g->n_tensors; t++) {
        trained[t] = s->trained[s->w.part.whole[t]];
    }
    s->w.trained = trained;
    struct hv_op_rule rule;
    uint32_t *factor_dim = hv_arena_new(s->keep, uint32_t, HV_RULE_FACTORS);
    enum hv_status st = n > MOST_SLOTS ? hv_err_set(err, HV_ENO,
                                                    "operator \"%.80s\" has %zu operands, at "
                                                    "most %d can be split",
                                                    op->id, n - 1, MOST_SLOTS - 1)
                                       : hv_tensor_op_rule(g, op, arena, &rule, factor_dim, err);
    if (st != HV_OK) {
        return HV_ENO;
    }
    struct hv_shape *shapes = hv_arena_new(arena, struct hv_shape, n);
    const struct hv_shape **all = hv_arena_new(arena, const struct hv_shape *, n);
    for (size_t k = 0; k < n; k++) {
        shapes[k] = hv_tensor_shape(g, &g->tensors[k < n - 1 ? op->in[k].tensor : op->out]);
        all[k] = &shapes[k];
    }
    s->state[number].read_again = hv_arena_new(arena, bool, n);
    struct hv_err why = {0};
    struct one x = {s, op, &rule, all, &s->state[number], HV_OK, &why};
    s->list.n = 0;
    if (!hv_choice_each(&rule, &s->w.place.mesh, 0, MOST_WAYS, try_choice, &x)) {
        return hv_err_set(err, HV_ENO, "operator \"%.80s\" can be split in more than %d ways",
                          op->id, MOST_WAYS);
    }
    if (s->list.n == 0) {
        return hv_err_set(err, HV_ENO, "operator \"%.80s\" cannot be priced: %s", op->id, why.text);
    }
    c->factor_dim = factor_dim;
    c->n_factors = rule.n_factors;
    c->n = s->list.n;
    c->split = hv_arena_copy(s->keep, s->list.items, s->list.n, sizeof *s->list.items);
    return HV_OK;
}

/* ---- between operators ----------------------------------------------------------------------- */

/* Seconds to bring a tensor from one layout into another; infinity: no way. */
static double way_s(struct splits *s, const struct hv_shape *shape, const struct hv_layout *from,
                    const struct hv_layout *to)
{
    if (hv_layout_equal(from, to)) {
        return 0;
    }
    const struct hv_known_path *k = hv_paths_find(s->w.paths, shape, from, to);
    return k->possible ? k->path.price : (double)INFINITY;
}

/* A tensor at an operator: its operand `slot`, or its result (slot = operands). */
struct end {
    uint32_t op;
    size_t slot;
};

/* What tables of edges are told apart by. */
struct edge_key {
    uint64_t from, to; /* classes */
    uint64_t from_slot, to_slot;
    uint64_t tensor; /* type, and whether it has a gradient */
};

static const double *price_edge(struct splits *s, const struct end *from, const struct end *to,
                                uint32_t number)
{
    const struct hv_tensor *tensor = &s->g->tensors[number];
    const struct hv_split_class *a = &s->out->classes[s->out->class_of[from->op]];
    const struct hv_split_class *b = &s->out->classes[s->out->class_of[to->op]];
    const struct class_state *reader = &s->state[s->out->class_of[to->op]];
    struct hv_shape shape = hv_tensor_shape(s->g, tensor);
    double forward = reader->read_again[to->slot] ? 2 : 1;
    bool back = hv_dtype_is_real(tensor->dtype) && s->trained[number];
    double *out = hv_arena_new(s->keep, double, a->n * b->n + 1);
    for (size_t i = 0; i < a->n; i++) {
        const struct hv_layout *x = &a->split[i].layouts[from->slot];
        for (size_t k = 0; k < b->n; k++) {
            const struct hv_layout *y = &b->split[k].layouts[to->slot];
            out[i * b->n + k] =
                forward * way_s(s, &shape, x, y) + (back ? way_s(s, &shape, y, x) : 0);
        }
    }
    return out;
}

static uint32_t table_of(struct splits *s, struct hv__memo *known, const struct end *from,
                         const struct end *to, uint32_t number)
{
    const struct hv_tensor *tensor = &s->g->tensors[number];
    bool is_known = false;
    struct edge_key key = {s->out->class_of[from->op], s->out->class_of[to->op], from->slot,
                           to->slot, 2 * (uint64_t)tensor->dtype + s->trained[number]};
    uint64_t *at = hv__memo_at(known, &key, &is_known);
    if (!is_known) {
        *at = s->out->n_tables;
        struct hv_split_table *t = &s->out->tables[s->out->n_tables++];
        t->n_from = s->out->classes[key.from].n;
        t->n_to = s->out->classes[key.to].n;
        uint32_t own = (uint32_t)*at;
        t->s = price_edge(s, from, to, number);
        return own;
    }
    return (uint32_t)*at;
}

static void price_edges(struct splits *s)
{
    const struct hv_tensor_graph *g = s->g;
    size_t n_uses = 0;
    struct end *holder = hv_arena_new(&s->w.a->arena, struct end, g->n_tensors + 1);
    bool *held = hv_arena_new(&s->w.a->arena, bool, g->n_tensors + 1);
    struct hv__memo known = hv__memo_of(sizeof(struct edge_key), sizeof(uint64_t));
    for (size_t i = 0; i < g->n_ops; i++) {
        n_uses += g->ops[i].n_in;
    }
    s->out->edges = hv_arena_new(s->keep, struct hv_split_edge, n_uses + 1);
    s->out->tables = hv_arena_new(s->keep, struct hv_split_table, n_uses + 1);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const struct hv_tensor_op *op = &g->ops[i];
        for (size_t k = 0; k < op->n_in; k++) {
            uint32_t t = op->in[k].tensor;
            struct end here = {i, k};
            if (!held[t]) {
                held[t] = true;
                holder[t] = here;
            } else if (holder[t].op != i && first_use(op, k) == k) {
                s->out->edges[s->out->n_edges++] = (struct hv_split_edge){
                    holder[t].op, i, table_of(s, &known, &holder[t], &here, t)};
            }
        }
        held[op->out] = true;
        holder[op->out] = (struct end){i, op->n_in};
    }
    hv__memo_free(&known);
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Whether anybody needs the gradient of a tensor, over the whole model: an input, and what is
 * computed of inputs alone, has none. */
static void find_trained(struct splits *s, const struct hv_tensor_graph *whole,
                         const struct hv_graph_part *part)
{
    bool *of = hv_arena_new(&s->w.a->arena, bool, whole->n_tensors + 1);
    for (size_t t = 0; t < whole->n_given; t++) {
        of[t] = whole->tensors[t].role == HV_TENSOR_PARAMETER;
    }
    for (size_t i = 0; i < whole->n_ops; i++) {
        for (size_t k = 0; k < whole->ops[i].n_in; k++) {
            of[whole->ops[i].out] = of[whole->ops[i].out] || of[whole->ops[i].in[k].tensor];
        }
    }
    s->trained = hv_arena_new(&s->w.a->arena, bool, part->graph.n_tensors + 1);
    for (size_t t = 0; t < part->graph.n_tensors; t++) {
        s->trained[t] = of[part->whole[t]];
    }
}

static enum hv_status price_all(struct splits *s, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    struct hv_tensor_graph whole;
    struct hv_graph_part part;
    struct hv__graph_ask *a = s->w.a;
    st = hv__graph_sized(a, s->keep, &whole, err);
    if (st != HV_OK) {
        return st;
    }
    hv_graph_part_cut(&whole, a->from, a->to, s->keep, &part);
    s->out->graph = part.graph;
    s->g = &s->out->graph;
    s->out->mesh = s->w.place.mesh;
    s->out->axis = s->w.place.axis;
    find_trained(s, &whole, &part);
    s->pricing = hv__graph_pricing(&s->w);
    s->w.paths = hv_paths_new(&s->w.place.mesh, &s->pricing);
    find_classes(s);
    for (uint32_t c = 0; st == HV_OK && c < s->out->n_classes; c++) {
        st = price_class(s, c, err);
    }
    if (st == HV_OK) {
        price_edges(s);
    }
    return st;
}

/* A plan of the stage alone, whose operators are a range and whose mesh is one rank's: every axis
 * can split what it likes. */
struct alone {
    struct hv_plan plan;
    struct hv_replica replica;
    struct hv_stage stage;
};

static enum hv_status take_alone(const struct hv_model *m, const struct hv_stage_query *q,
                                 struct hv_arena *arena, struct alone *out, struct hv_err *err)
{
    out->plan = *q->plan; /* borrowed: only looked at */
    out->replica = *q->replica;
    out->stage = q->replica->stages[q->stage];
    out->plan.replicas = &out->replica;
    out->plan.n_replicas = 1;
    out->replica.stages = &out->stage;
    out->replica.n_stages = 1;
    struct hv_stage *s = &out->stage;
    if (s->n_ops > 0) {
        s->n_ranges = hv_stage_op_ranges(s, m, arena, &s->ranges);
        s->n_ops = 0;
    }
    if (s->n_ranges != 1) {
        return hv_err_set(err, HV_ENO,
                          "the operators of the stage are %zu runs of the model's, not one",
                          s->n_ranges);
    }
    s->dp = 1;
    s->tp.degree = s->mesh.n > 0 ? (int)hv_mesh_places(s) : 1;
    return HV_OK;
}

enum hv_status hv__graph_splits(struct hv__context *k, const struct hv_stage_query *q,
                                struct hv_arena *arena, struct hv_splits *out, struct hv_err *err)
{
    struct hv__rank r;
    struct alone alone;
    *out = (struct hv_splits){0};
    enum hv_status st = take_alone(k->model, q, arena, &alone, err);
    struct hv_stage_query own = {.plan = &alone.plan, .replica = &alone.replica};
    st = st ? st : hv__find_rank(k, &own, &r, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv__graph_ask ask = hv__graph_ask(k, &own, &r, 0);
    struct splits s = {.keep = arena, .out = out};
    st = hv__graph_place(&ask, &s.w, err);
    st = st ? st : price_all(&s, err);
    hv_vec_free(&s.list);
    hv_vec_free(&s.words);
    hv_paths_free(s.w.paths);
    hv__memo_free(&s.w.wires.memo);
    hv_arena_free(&ask.arena);
    return st;
}
