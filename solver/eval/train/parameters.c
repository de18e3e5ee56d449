/** Parameters that a reduction sums the gradients of: those of blocks, embeddings and heads, and
 * those of experts that a plan places itself, by the ranks that hold them. */
#include "solver/eval/train/reduce_int.h"
#include "solver/plan/experts.h"

#include <string.h>

struct hv__parameters hv__range_parameters(struct hv_cost *k, const struct hv__leaves *all,
                                           struct hv_range r)
{
    const struct hv_model_leaf *leaves = all->items;
    size_t n_leaves = all->n;
    double weight_bytes = hv_job_weight_bytes(hv_cost_job(k));
    struct hv__parameters p = {0};
    size_t leaf = 0;
    for (int h = r.from2; h < r.to2; h++) {
        while (leaf + 1 < n_leaves && (size_t)h / 2 >= leaves[leaf + 1].first) {
            leaf++;
        }
        const struct hv_model *m = leaves[leaf].model;
        size_t i = (size_t)h / 2 - leaves[leaf].first;
        if (all->held != NULL) {
            p.dense += all->held[h / 2] / 2;
        } else if (m->kind == HV_MODEL_GRAPH && m->tensors != NULL) {
            p.dense += hv_graph_op_parameters(m, i) / 2;
        } else if (m->kind == HV_MODEL_LAYERS) {
            p.dense += m->measured[i].parameter_bytes / weight_bytes / 2;
        } else if (m->kind == HV_MODEL_GRAPH) {
            p.dense += hv_or(m->ops[i].parameter_bytes, 0) / weight_bytes / 2;
        } else if (h % 2 == 0) {
            p.dense += hv_block_attention_parameters(m, &m->blocks[i]);
        } else {
            p.dense += hv_block_ffn_parameters(m, &m->blocks[i]);
            p.experts += hv_block_expert_parameters(m, &m->blocks[i]);
        }
    }
    return p;
}

struct hv__parameters hv__segment_parameters(const struct hv__lowered *l,
                                             const struct hv__segment *s)
{
    if (s->from2 < 0) {
        const struct hv_model *m = l->leaves.items[hv__end_leaf(s->from2)].model;
        return (struct hv__parameters){hv__end_is_head(s->from2) ? hv_model_head_parameters(m)
                                                                 : hv_model_embedding_parameters(m),
                                       0};
    }
    return hv__range_parameters(l->k, &l->leaves, (struct hv_range){s->from2, s->to2});
}

/** Places of one expert in the groups of all holders of a segment, one after the other. */
struct places {
    const struct hv__segment *s;
    size_t block;
    bool *on;
    size_t *at;                /**< [holders + 1] in `on` */
    const struct hv_block *of; /**< the block before with experts; NULL: none */
    size_t before;             /**< its number */
    size_t *went, n_went;      /**< the sets that its experts were added to, in that order */
};

static int group_of(const struct hv_stage *s, size_t block)
{
    return hv_moe_ep(s, hv_stage_moe(s, block));
}

/** True where the plan places the experts of a block. */
static bool placed(const struct hv__segment *s, size_t block)
{
    for (size_t i = 0; i < s->n_holders; i++) {
        if (hv_places_experts(hv_stage_moe(s->holders[i].stage, block))) {
            return true;
        }
    }
    return false;
}

/** Fills the places of an expert; `lent`: with copies that come anew every iteration. Returns
 * whether it has any of those. */
static bool find_places(struct places *p, int experts, int expert, bool lent)
{
    bool any = false;
    for (size_t i = 0; i < p->s->n_holders; i++) {
        const struct hv_stage *s = p->s->holders[i].stage;
        const struct hv_moe_knobs *m = hv_stage_moe(s, p->block);
        int ep = group_of(s, p->block), shards = hv_expert_shards(m, ep);
        bool *on = p->on + p->at[i];
        bool anew = m != NULL && m->n_copies > 0 && m->copy_life == HV_COPY_ITERATION;
        int n = hv_expert_places(m, experts, ep, expert, on);
        any = any || (anew && n > shards);
        for (int r = 0; anew && !lent && r < ep; r++) {
            on[r] = (r - hv_expert_owner(m, experts, ep, expert) + ep) % ep < shards;
        }
        p->at[i + 1] = p->at[i] + (size_t)ep;
    }
    return any;
}

/** Adds the parameters of an expert to those that the same ranks hold; returns the number of the
 * set. */
static size_t add_expert(const struct hv__lowered *l, const struct places *p, double parameters,
                         bool lent, struct hv__expert_sets *out)
{
    size_t n_holders = p->s->n_holders, n_on = p->at[n_holders];
    for (size_t i = 0; i < out->n; i++) {
        struct hv__expert_set *x = &out->items[i];
        bool same = memcmp(x->at, p->at, (n_holders + 1) * sizeof *p->at) == 0;
        if (x->lent == lent && same && memcmp(x->on, p->on, n_on * sizeof *p->on) == 0) {
            x->parameters += parameters;
            return i;
        }
    }
    if (out->n == out->cap) {
        size_t cap = out->cap > 0 ? 2 * out->cap : 16;
        struct hv__expert_set *items = hv_arena_new(l->arena, struct hv__expert_set, cap);
        if (out->n > 0) {
            memcpy(items, out->items, out->n * sizeof *items);
        }
        out->items = items;
        out->cap = cap;
    }
    const struct hv_moe_knobs *m = hv_stage_moe(p->s->holders[0].stage, p->block);
    int ep = group_of(p->s->holders[0].stage, p->block);
    struct hv__expert_set x = {.parameters = parameters,
                               .lent = lent,
                               .ep = ep,
                               .shards = hv_expert_shards(m, ep),
                               .on = hv_arena_copy(l->arena, p->on, n_on, sizeof *p->on),
                               .at = hv_arena_copy(l->arena, p->at, n_holders + 1, sizeof *p->at)};
    for (int r = 0; r < x.ep; r++) {
        x.ranks += x.on[r];
    }
    out->items[out->n] = x;
    return out->n++;
}

/** True where the experts of the block at hand are on the ranks of those of the block before. */
static bool placed_as_before(const struct places *p, const struct hv_block *b)
{
    bool same = p->of != NULL && p->of->experts == b->experts;
    for (size_t i = 0; same && i < p->s->n_holders; i++) {
        const struct hv_stage *s = p->s->holders[i].stage;
        same = hv_stage_moe(s, p->block) == hv_stage_moe(s, p->before);
    }
    return same;
}

static void add_block(const struct hv__lowered *l, struct places *p, const struct hv_block *b,
                      double parameters, struct hv__expert_sets *out)
{
    if (placed_as_before(p, b)) {
        for (size_t i = 0; i < p->n_went; i++) {
            out->items[p->went[i]].parameters += parameters / b->experts;
        }
        return;
    }
    p->went = hv_arena_new(l->arena, size_t, 2 * (size_t)b->experts);
    p->n_went = 0;
    for (int e = 0; e < b->experts; e++) {
        bool lent = find_places(p, b->experts, e, false);
        p->went[p->n_went++] = add_expert(l, p, parameters / b->experts, false, out);
        if (lent) {
            (void)find_places(p, b->experts, e, true);
            p->went[p->n_went++] = add_expert(l, p, parameters / b->experts, true, out);
        }
    }
    p->of = b;
    p->before = p->block;
}

/** The block with experts that a half block is of; NULL: none. */
static const struct hv_block *block_of(const struct hv__lowered *l, int at2)
{
    size_t leaf = 0, block = (size_t)at2 / 2;
    while (leaf + 1 < l->leaves.n && block >= l->leaves.items[leaf + 1].first) {
        leaf++;
    }
    const struct hv_model *m = l->leaves.items[leaf].model;
    size_t i = block - l->leaves.items[leaf].first;
    bool second = at2 % 2 == 1 && m->kind == HV_MODEL_TRANSFORMER;
    return second && m->blocks[i].experts > 0 ? &m->blocks[i] : NULL;
}

struct hv__expert_sets hv__expert_sets(const struct hv__lowered *l, const struct hv__segment *s)
{
    struct hv__expert_sets out = {0};
    struct places p = {.s = s};
    size_t most = 0;
    for (int at2 = s->from2; at2 >= 0 && at2 < s->to2; at2++) {
        const struct hv_block *b = block_of(l, at2);
        p.block = (size_t)at2 / 2;
        if (b == NULL || !placed(s, p.block)) {
            continue;
        }
        if (p.on == NULL) {
            for (size_t i = 0; i < s->n_holders; i++) {
                most += (size_t)hv_stage_experts_over(s->holders[i].stage);
            }
            p.on = hv_arena_new(l->arena, bool, most + 1);
            p.at = hv_arena_new(l->arena, size_t, s->n_holders + 1);
        }
        double parameters =
            hv__range_parameters(l->k, &l->leaves, (struct hv_range){at2, at2 + 1}).experts;
        add_block(l, &p, b, parameters, &out);
    }
    return out;
}
