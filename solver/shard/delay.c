/** Leaves summands that are added to each other partial. */
#include "solver/shard/delay.h"

struct delay {
    struct hv_shard_graph *g;
    uint32_t *readers; /* per tensor: uses as an operand or result of the graph */
    uint32_t *left;    /* per tensor: atoms over which it can stay partial */
};

static void count_readers(struct delay *d)
{
    for (size_t i = 0; i < d->g->n_ops; i++) {
        for (size_t t = 0; t < d->g->ops[i].rule->n_in; t++) {
            d->readers[d->g->ops[i].tensor[t]]++;
        }
    }
    for (size_t i = 0; i < d->g->n_outputs; i++) {
        d->readers[d->g->outputs[i].tensor] += 2;
    }
}

/* Atoms that split a summed factor of the operands: its result is partial over them, whatever it is
 * brought into afterwards. */
static uint32_t summed_over(const struct delay *d, const struct hv_shard_op *op)
{
    const struct hv_op_rule *r = op->rule;
    uint32_t atoms = 0;
    for (size_t t = 0; t < r->n_in; t++) {
        const struct hv_layout *l = &d->g->tensors[op->tensor[t]].layout;
        for (size_t k = 0; k < r->map[t].n_dims; k++) {
            const struct hv_dim_map *m = &r->map[t].dim[k];
            if (m->n == 1 && r->factor[m->factor[0]].kind == HV_FACTOR_SUM) {
                atoms |= hv_axes_set(&l->dim[k]);
            }
        }
    }
    return atoms;
}

/* Leaves a tensor partial over atoms, none of which splits it then. */
static void leave_partial(struct hv_layout *l, uint32_t atoms)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        struct hv_axes kept = {0};
        for (size_t i = 0; i < l->dim[d].n; i++) {
            if ((atoms >> l->dim[d].atom[i] & 1) == 0) {
                hv_axes_push(&kept, l->dim[d].atom[i]);
            }
        }
        l->dim[d] = kept;
    }
    l->sum |= atoms;
}

static bool adds_two(const struct hv_op_rule *r)
{
    return r->n_in == 2 && r->n_out == 1 && r->additive_in == 3;
}

/* Atoms over which both operands of an addition can stay partial. */
static uint32_t common(const struct delay *d, const struct hv_shard_op *op)
{
    uint32_t a = op->tensor[0], b = op->tensor[1];
    bool alone = adds_two(op->rule) && a != b && d->readers[a] == 1 && d->readers[b] == 1 &&
                 !d->g->tensors[a].fixed && !d->g->tensors[b].fixed;
    return alone && d->left[a] == d->left[b] ? d->left[a] : 0;
}

void hv_delay_sums(struct hv_shard_graph *g, size_t from, struct hv_arena *arena)
{
    struct delay d = {g, hv_arena_new(arena, uint32_t, g->n_tensors + 1),
                      hv_arena_new(arena, uint32_t, g->n_tensors + 1)};
    count_readers(&d);
    for (size_t i = from; i < g->n_ops; i++) {
        const struct hv_shard_op *op = &g->ops[i];
        uint32_t result = op->tensor[op->rule->n_in];
        d.left[result] = op->rule->elementwise  ? common(&d, op)
                         : op->rule->n_out == 1 ? summed_over(&d, op)
                                                : 0;
    }
    for (size_t i = from; i < g->n_ops; i++) {
        const struct hv_shard_op *op = &g->ops[i];
        uint32_t atoms = common(&d, op);
        for (size_t t = 0; t < 2 && atoms != 0; t++) {
            leave_partial(&g->tensors[op->tensor[t]].layout, atoms);
        }
    }
}
