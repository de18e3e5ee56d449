/** The exchanges of a graph with layouts: for every operator the split that costs least. */
#include "solver/shard/lower.h"

#include "solver/base/vec.h"
#include "solver/shard/versions.h"
#include <string.h>

#define OPERANDS 64 /* operands and results of an operator together */

struct lowering {
    const struct hv_shard_graph *g;
    struct hv_versions *versions;
    struct hv_arena *arena;
    struct hv_layout **used;
    HV_VEC(struct hv_lowered_exchange) list;
};

/* The search for the best split of one operator. */
struct best {
    struct lowering *l;
    const struct hv_shard_op *op;
    const struct hv_shape *shapes[OPERANDS];
    struct hv_layout layouts[OPERANDS]; /* of the best choice */
    double price, parts;
    bool found;
};

/* ---- one choice ------------------------------------------------------------------------------ */

/* Price of bringing the operands into these layouts, with halos. */
static double operands_price(const struct best *b, const struct hv_layout *layouts, double most)
{
    const struct hv_op_rule *r = b->op->rule;
    double price = 0;
    for (size_t t = 0; t < r->n_in && price <= most; t++) {
        bool again = false; /* the same tensor in the same layout is brought once */
        for (size_t k = 0; k < t && !again; k++) {
            again =
                b->op->tensor[k] == b->op->tensor[t] && hv_layout_equal(&layouts[k], &layouts[t]);
        }
        if (!again) {
            price += hv__versions_price(b->l->versions, b->op->tensor[t], &layouts[t]);
        }
        struct hv_exchange halo[HV_SHARD_DIMS];
        size_t n = hv_choice_halos(r, &b->l->g->mesh, b->shapes[t], t, &layouts[t], halo);
        for (size_t i = 0; i < n; i++) {
            price += hv__versions_price_of(b->l->versions, &halo[i]);
        }
    }
    return price;
}

static double results_price(const struct best *b, const struct hv_layout *layouts)
{
    const struct hv_op_rule *r = b->op->rule;
    double price = 0;
    for (size_t t = r->n_in; t < r->n_in + r->n_out; t++) {
        const struct hv_shard_tensor *x = &b->l->g->tensors[b->op->tensor[t]];
        price += hv__versions_between(b->l->versions, b->shapes[t], &layouts[t], &x->layout);
    }
    return price;
}

static bool try_choice(void *ctx, const struct hv_choice *c)
{
    struct best *b = ctx;
    const struct hv_op_rule *r = b->op->rule;
    struct hv_layout layouts[OPERANDS];
    if (!hv_choice_layouts(r, &b->l->g->mesh, b->shapes, c, layouts)) {
        return true;
    }
    double parts = 1, slack = 1e-9 * (1 + b->price), most = b->found ? b->price + slack : 1e300;
    for (size_t f = 0; f < r->n_factors; f++) {
        parts *= (double)hv_axes_parts(&b->l->g->mesh, &c->factor[f]);
    }
    double price = results_price(b, layouts);
    price += price <= most ? operands_price(b, layouts, most) : 0;
    bool cheaper = price < b->price - slack, equal = price <= b->price + slack;
    if (price < 1e299 && (!b->found || cheaper || (equal && parts > b->parts))) {
        b->found = true;
        b->price = price;
        b->parts = parts;
        memcpy(b->layouts, layouts, (r->n_in + r->n_out) * sizeof *layouts);
    }
    return true;
}

/* ---- one operator ---------------------------------------------------------------------------- */

static void add(struct lowering *l, uint32_t op, uint32_t tensor, const struct hv_exchange *x)
{
    if (x->sent_bytes > 0) {
        hv_vec_push(&l->list, (struct hv_lowered_exchange){op, tensor, *x});
    }
}

static void add_path(struct lowering *l, uint32_t op, uint32_t tensor,
                     const struct hv_reshard *path)
{
    for (size_t i = 0; i < path->n; i++) {
        add(l, op, tensor, &path->step[i].exchange);
    }
}

static void take(struct best *b, uint32_t op)
{
    const struct hv_op_rule *r = b->op->rule;
    struct lowering *l = b->l;
    l->used[op] = hv_arena_copy(l->arena, b->layouts, r->n_in + r->n_out, sizeof *b->layouts);
    for (size_t t = 0; t < r->n_in; t++) {
        struct hv_exchange halo[HV_SHARD_DIMS];
        add_path(l, op, b->op->tensor[t],
                 hv__versions_bring(l->versions, b->op->tensor[t], &b->layouts[t]));
        size_t n = hv_choice_halos(r, &l->g->mesh, b->shapes[t], t, &b->layouts[t], halo);
        for (size_t i = 0; i < n; i++) {
            add(l, op, b->op->tensor[t], &halo[i]);
        }
    }
    for (size_t t = r->n_in; t < r->n_in + r->n_out; t++) {
        uint32_t tensor = b->op->tensor[t];
        hv__versions_add(l->versions, tensor, &b->layouts[t]);
        add_path(l, op, tensor,
                 hv__versions_bring(l->versions, tensor, &l->g->tensors[tensor].layout));
    }
}

static void lower_op(struct lowering *l, uint32_t i, struct hv_err *err, enum hv_status *st)
{
    struct best b = {.l = l, .op = &l->g->ops[i]};
    const struct hv_op_rule *r = b.op->rule;
    size_t n = r->n_in + r->n_out;
    if (n > OPERANDS) {
        *st = hv_err_set(err, HV_ELIMIT, "operator %u has more than %d operands and results", i,
                         OPERANDS);
        return;
    }
    struct hv_layout now[OPERANDS];
    uint32_t partial = 0;
    for (size_t t = 0; t < n; t++) {
        const struct hv_shard_tensor *x = &l->g->tensors[b.op->tensor[t]];
        b.shapes[t] = &x->shape;
        now[t] = x->layout;
        partial |= hv__versions_partial(l->versions, b.op->tensor[t]) | x->layout.sum;
    }
    for (size_t t = 0; t < n; t++) {
        struct hv_choice c = hv_choice_follow(r, &l->g->mesh, now, t);
        try_choice(&b, &c);
    }
    hv_choice_each(r, &l->g->mesh, partial, HV_LOWER_CHOICES, try_choice, &b);
    if (!b.found) {
        *st = hv_err_set(err, HV_EINPUT, "operator %u cannot be split for its layouts", i);
        return;
    }
    take(&b, i);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void lower_outputs(struct lowering *l)
{
    for (size_t i = 0; i < l->g->n_outputs; i++) {
        const struct hv_shard_output *o = &l->g->outputs[i];
        if (o->asked) {
            add_path(l, (uint32_t)l->g->n_ops, o->tensor,
                     hv__versions_bring(l->versions, o->tensor, &o->layout));
        }
    }
}

enum hv_status hv_lower(const struct hv_shard_graph *g, const struct hv_pricing *pricing,
                        struct hv_arena *arena, struct hv_lowered *out, struct hv_err *err)
{
    struct lowering l = {.g = g, .arena = arena};
    enum hv_status st = HV_OK;
    *out = (struct hv_lowered){0};
    l.versions = hv__versions_new(g, pricing);
    l.used = hv_arena_new(arena, struct hv_layout *, g->n_ops + 1);
    for (uint32_t i = 0; st == HV_OK && i < g->n_ops; i++) {
        if (i == g->n_kept && i > 0) {
            hv__versions_forget(l.versions);
        }
        lower_op(&l, i, err, &st);
    }
    if (st == HV_OK) {
        lower_outputs(&l);
        out->n = l.list.n;
        out->used = l.used;
        out->exchange = hv_arena_copy(arena, l.list.items, l.list.n, sizeof *l.list.items);
        out->cut = hv__versions_cut(l.versions);
        for (size_t i = 0; i < l.list.n; i++) {
            out->sent_bytes += l.list.items[i].exchange.sent_bytes;
            out->price += hv_price(pricing, &l.list.items[i].exchange);
        }
    }
    hv_vec_free(&l.list);
    hv__versions_free(l.versions);
    return st;
}
