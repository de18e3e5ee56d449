/** Propagation of layouts through a graph, to a fixed point. */
#include "solver/shard/propagate.h"

#include "solver/shard/projection.h"
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5

struct flow {
    struct hv_shard_graph *g;
    uint32_t *use_at, *use; /* readers of tensor t: use[use_at[t]] to use[use_at[t + 1]] */
    uint32_t *n_uses;       /* readings of a tensor, those as a result of the graph too */
    uint32_t *writer;       /* n_ops: none */
    uint32_t *stack;        /* operators still to look at, the next one on top */
    size_t n_stack;
    bool *waits; /* operator is on the stack */
    bool choose;
    unsigned round;
    bool changed;
};

/* ---- readers --------------------------------------------------------------------------------- */

static void count_uses(struct flow *f)
{
    const struct hv_shard_graph *g = f->g;
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv_shard_op *op = &g->ops[i];
        for (size_t t = 0; t < op->rule->n_in; t++) {
            f->n_uses[op->tensor[t]]++;
            f->use_at[op->tensor[t] + 1]++;
        }
        for (size_t t = 0; t < op->rule->n_out; t++) {
            f->writer[op->tensor[op->rule->n_in + t]] = (uint32_t)i;
        }
    }
    for (size_t t = 0; t < g->n_tensors; t++) {
        f->use_at[t + 1] += f->use_at[t];
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        f->n_uses[g->outputs[i].tensor]++;
    }
}

static void list_uses(struct flow *f)
{
    const struct hv_shard_graph *g = f->g;
    uint32_t *next = hv_xcalloc(g->n_tensors + 1, sizeof *next);
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv_shard_op *op = &g->ops[i];
        for (size_t t = 0; t < op->rule->n_in; t++) {
            uint32_t tensor = op->tensor[t];
            f->use[f->use_at[tensor] + next[tensor]++] = (uint32_t)i;
        }
    }
    free(next);
}

/* ---- directions ------------------------------------------------------------------------------ */

static bool read_once(const struct flow *f, const struct hv_shard_op *op)
{
    for (size_t t = 0; t < op->rule->n_in; t++) {
        uint32_t tensor = op->tensor[t];
        if (f->g->tensors[tensor].shape.n_dims > 0 && f->n_uses[tensor] != 1) {
            return false;
        }
    }
    return true;
}

/* Directions of all factors of an operator in this round; later rounds only add. */
static void directions(const struct flow *f, const struct hv_shard_op *op,
                       enum hv_direction out[HV_RULE_FACTORS])
{
    const struct hv_op_rule *r = op->rule;
    bool through =
        r->flow == HV_FLOW_THROUGH && (f->round >= 1 || (f->round == 0 && read_once(f, op)));
    enum hv_direction open = r->flow == HV_FLOW_BROADCAST && f->round < ROUNDS - 1
                                 ? HV_DIRECTION_BACK
                                 : HV_DIRECTION_BOTH;
    for (size_t i = 0; i < r->n_factors; i++) {
        bool passes = f->round >= 3 || (f->round == 2 && hv_factor_passes(&r->factor[i]));
        out[i] = r->factor[i].blocked ? HV_DIRECTION_NONE
                 : through            ? HV_DIRECTION_BOTH
                 : passes             ? open
                                      : HV_DIRECTION_NONE;
    }
}

/* ---- one operator ---------------------------------------------------------------------------- */

static void wait_for(struct flow *f, uint32_t op, size_t but)
{
    if (op != but && !f->waits[op]) {
        f->waits[op] = true;
        f->stack[f->n_stack++] = op;
    }
}

/* A tensor has a new layout: its writer and its readers are looked at again, the first reader next.
 */
static void notify(struct flow *f, uint32_t tensor, size_t but)
{
    if (f->writer[tensor] < f->g->n_ops) {
        wait_for(f, f->writer[tensor], but);
    }
    for (uint32_t i = f->use_at[tensor + 1]; i-- > f->use_at[tensor];) {
        wait_for(f, f->use[i], but);
    }
}

/* True where no tensor of the operator is split: nothing can come of it. */
static bool nothing_split(const struct flow *f, const struct hv_shard_op *op)
{
    for (size_t t = 0; t < op->rule->n_in + op->rule->n_out; t++) {
        const struct hv_layout *l = &f->g->tensors[op->tensor[t]].layout;
        for (size_t d = 0; d < l->n_dims; d++) {
            if (l->dim[d].n > 0) {
                return false;
            }
        }
    }
    return true;
}

static void visit(struct flow *f, size_t i)
{
    const struct hv_shard_op *op = &f->g->ops[i];
    size_t n = op->rule->n_in + op->rule->n_out;
    if (nothing_split(f, op)) {
        return;
    }
    enum hv_direction direction[HV_RULE_FACTORS];
    directions(f, op, direction);
    struct hv_projection *p = hv__project(op->rule, &f->g->mesh, f->g->tensors, op->tensor);
    if (f->choose) {
        hv__spread_choose(p, direction);
    } else {
        hv__spread_agreed(p, direction);
    }
    for (size_t t = 0; t < n; t++) {
        struct hv_layout next = f->g->tensors[op->tensor[t]].layout;
        if (hv__projected(p, t, &next) && !f->g->tensors[op->tensor[t]].fixed) {
            f->g->tensors[op->tensor[t]].layout = next;
            f->changed = true;
            notify(f, op->tensor[t], i);
        }
    }
    hv__projection_free(p);
}

/* ---- results --------------------------------------------------------------------------------- */

/* A layout that is asked of a result goes to its tensor where nothing stands against it. */
static void pull_output(struct flow *f, const struct hv_shard_output *o)
{
    struct hv_shard_tensor both[2] = {f->g->tensors[o->tensor],
                                      {.layout = o->layout, .fixed = true}};
    both[1].shape = both[0].shape;
    static const uint32_t tensor[2] = {0, 1};
    struct hv_tensor_map map[2] = {{0}};
    struct hv_op_rule rule = {.n_factors = both[0].shape.n_dims, .n_in = 1, .n_out = 1, .map = map};
    enum hv_direction direction[HV_RULE_FACTORS];
    for (uint8_t d = 0; d < rule.n_factors; d++) {
        rule.factor[d].size = both[0].shape.size[d];
        map[0].dim[d] = (struct hv_dim_map){.n = 1, .factor = {d}};
        direction[d] = HV_DIRECTION_BOTH;
    }
    map[0].n_dims = rule.n_factors;
    map[1] = map[0];
    struct hv_projection *p = hv__project(&rule, &f->g->mesh, both, tensor);
    if (f->choose) {
        hv__spread_choose(p, direction);
    } else {
        hv__spread_agreed(p, direction);
    }
    struct hv_layout next = both[0].layout;
    if (!both[0].fixed && hv__projected(p, 0, &next)) {
        f->g->tensors[o->tensor].layout = next;
    }
    hv__projection_free(p);
}

static void pull_outputs(struct flow *f)
{
    for (size_t i = 0; i < f->g->n_outputs; i++) {
        if (f->g->outputs[i].asked) {
            pull_output(f, &f->g->outputs[i]);
        }
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void settle(struct flow *f, bool choose)
{
    f->choose = choose;
    pull_outputs(f);
    do {
        f->changed = false;
        for (size_t i = f->g->n_ops; i-- > 0;) {
            f->stack[f->n_stack++] = (uint32_t)i;
            f->waits[i] = true;
        }
        while (f->n_stack > 0) {
            uint32_t i = f->stack[--f->n_stack];
            f->waits[i] = false;
            visit(f, i);
        }
    } while (f->changed);
}

static void find_conflicts(struct flow *f, struct hv_arena *arena, struct hv_conflicts *out)
{
    const struct hv_shard_graph *g = f->g;
    size_t n = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        n += g->ops[i].rule->n_factors;
    }
    *out = (struct hv_conflicts){.at = hv_arena_new(arena, struct hv_conflict, n + 1)};
    for (size_t i = 0; i < g->n_ops; i++) {
        const struct hv_op_rule *r = g->ops[i].rule;
        struct hv_projection *p = hv__project(r, &g->mesh, g->tensors, g->ops[i].tensor);
        for (uint8_t k = 0; k < r->n_factors; k++) {
            if (hv__in_conflict(p, k)) {
                out->at[out->n++] = (struct hv_conflict){(uint32_t)i, k};
            }
        }
        hv__projection_free(p);
    }
}

void hv_propagate(struct hv_shard_graph *g, enum hv_propagation how, struct hv_arena *arena,
                  struct hv_conflicts *conflicts)
{
    size_t n_uses = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        n_uses += g->ops[i].rule->n_in;
    }
    struct flow f = {.g = g};
    f.use_at = hv_xcalloc(g->n_tensors + 2, sizeof *f.use_at);
    f.use = hv_xcalloc(n_uses + 1, sizeof *f.use);
    f.n_uses = hv_xcalloc(g->n_tensors + 1, sizeof *f.n_uses);
    f.writer = hv_xmalloc((g->n_tensors + 1) * sizeof *f.writer);
    memset(f.writer, 0xff, (g->n_tensors + 1) * sizeof *f.writer);
    f.stack = hv_xcalloc(g->n_ops + 1, sizeof *f.stack);
    f.waits = hv_xcalloc(g->n_ops + 1, sizeof *f.waits);
    count_uses(&f);
    list_uses(&f);
    for (f.round = 0; f.round < ROUNDS; f.round++) {
        settle(&f, how == HV_PROPAGATE_CHOOSE);
    }
    if (conflicts != NULL) {
        find_conflicts(&f, arena, conflicts);
    }
    free(f.use_at);
    free(f.use);
    free(f.n_uses);
    free(f.writer);
    free(f.stack);
    free(f.waits);
}
