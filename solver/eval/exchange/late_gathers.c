/**
 * Gathers of updated weights beside the first forward passes (Xu et al. 2020, Automatic
 * Cross-Replica Sharding of Weight Update, section 4; Megatron-LM: --overlap-param-gather). When an
 * iteration begins, every rank gathers its weights unit by unit in the order in which its passes
 * need them, one after the other; the first pass of a stage waits where it needs a unit that has
 * not come yet. All ranks have updated their shards by then, since an iteration ends with the last
 * of them.
 */
#include "solver/eval/exchange/exchange.h"
#include "solver/eval/exchange/exchange_int.h"

/** The gathers of one rank. */
struct gathers {
    struct hv__lowered *l;
    struct hv__pipeline *pl;
    struct hv__rank *rk;
    const struct hv_stage *stage;
    struct hv__parameters all;  /**< of all its global stages, whole */
    struct hv__parameters last; /**< the unit that was priced last, and its seconds */
    double last_s;
    double end_s; /**< of what has been gathered so far */
};

/** The pass that waits for them. */
struct pass {
    const struct hv__gstage *g;
    double duration_s;
    double release_s; /**< it starts no sooner */
};

/** Parameters of the ends of a leaf that a global stage holds. */
static double end_parameters(const struct hv__lowered *l, const struct hv__gstage *g, bool head)
{
    double sum = 0;
    for (size_t i = 0; i < l->leaves.n; i++) {
        const struct hv_model *m = l->leaves.items[i].model;
        if (m->kind == HV_MODEL_TRANSFORMER && hv__holds_end(l, g, i, head)) {
            sum += head ? hv_model_head_parameters(m) : hv_model_embedding_parameters(m);
        }
    }
    return sum;
}

static struct hv__parameters range_parameters(const struct hv__lowered *l, int from2, int to2)
{
    return hv__range_parameters(l->k, &l->leaves, (struct hv_range){from2, to2});
}

/** Parameters of a global stage. */
static struct hv__parameters gstage_parameters(const struct hv__lowered *l,
                                               const struct hv__gstage *g)
{
    struct hv__parameters p = range_parameters(l, g->range.from2, g->range.to2);
    p.dense += end_parameters(l, g, false) + end_parameters(l, g, true);
    return p;
}

/** Gathers a unit that the pass needs after a share of its time. */
static void gather_unit(struct gathers *x, struct hv__parameters p, double after_frac,
                        struct pass *pass)
{
    if (!(p.dense + p.experts > 0)) {
        return;
    }
    if (p.dense != x->last.dense || p.experts != x->last.experts) {
        struct hv__parameters share = {x->all.dense > 0 ? p.dense / x->all.dense : 0,
                                       x->all.experts > 0 ? p.experts / x->all.experts : 0};
        x->last_s = hv__gather_share_s(x->l, x->pl, x->rk, share);
        x->last = p;
    }
    x->end_s += x->last_s;
    pass->release_s = fmax(pass->release_s, x->end_s - after_frac * pass->duration_s);
}

/** Gathers the units of a global stage: embedding, blocks, head. Forward passes spend their time
 * where backward passes do. */
static void gather_layers(struct gathers *x, struct pass *pass)
{
    const struct hv__gstage *g = pass->g;
    struct hv__holder h = {.g = g, .pass = &g->pass[0], .duration_s = 1};
    gather_unit(x, (struct hv__parameters){end_parameters(x->l, g, false), 0}, 0, pass);
    for (int at2 = g->range.from2; at2 < g->range.to2; at2 += 2 - at2 % 2) {
        int to2 = at2 + 2 - at2 % 2 < g->range.to2 ? at2 + 2 - at2 % 2 : g->range.to2;
        gather_unit(x, range_parameters(x->l, at2, to2), -hv__arrival(&h, at2).at_s, pass);
    }
    double head = end_parameters(x->l, g, true);
    gather_unit(x, (struct hv__parameters){head, 0}, -hv__arrival(&h, g->range.to2).at_s, pass);
}

/** The first pass of a global stage: gathers what its unit says. */
static void gather_for(struct gathers *x, struct pass *pass)
{
    if (x->stage->n_degrees > 0) { /* parts with degrees of their own are gathered together */
        x->end_s = x->end_s > 0 ? x->end_s : hv__gather_s(x->l, x->pl, x->rk, true);
        pass->release_s = x->end_s;
        return;
    }
    switch (x->stage->zero.unit) {
    case HV_ZERO_LAYER:
        gather_layers(x, pass);
        break;
    case HV_ZERO_CHUNK:
        gather_unit(x, gstage_parameters(x->l, pass->g), 0, pass);
        break;
    case HV_ZERO_STAGE:
    case hv_zero_unit_N:
        if (!(x->end_s > 0)) {
            gather_unit(x, x->all, 0, pass);
        }
        pass->release_s = x->end_s;
        break;
    }
}

/** Sets the times before which nodes of a rank do not start. */
static void release_rank(struct hv__lowered *l, struct hv__pipeline *pl, size_t rank,
                         double *not_before_s)
{
    const struct hv_pipe *pipe = pl->pipe;
    struct gathers x = {.l = l,
                        .pl = pl,
                        .rk = &pl->ranks[rank],
                        .stage = &pl->replica->stages[pl->ranks[rank].stage]};
    bool *seen = hv_arena_new(l->arena, bool, pl->n_pipes * pl->n_gstages + 1);
    for (size_t i = 0; i < pl->n_pipes * pl->n_gstages; i++) {
        if (pl->gstages[i].rank == rank) {
            struct hv__parameters p = gstage_parameters(l, &pl->gstages[i]);
            x.all.dense += p.dense;
            x.all.experts += p.experts;
        }
    }
    for (int32_t n = pipe->rank_node_at[rank]; n < pipe->rank_node_at[rank + 1]; n++) {
        const struct hv_op *op = &pl->schedule->ops[hv_pipe_first_op(pipe, n)];
        size_t at = (size_t)op->pipe * pl->n_gstages + (size_t)op->stage;
        if (op->kind == HV_OP_F && !seen[at]) {
            struct pass pass = {.g = &pl->gstages[at],
                                .duration_s = pl->run.node_end_s[n] - pl->run.node_start_s[n]};
            seen[at] = true;
            gather_for(&x, &pass);
            not_before_s[n] = pass.release_s;
        }
    }
    x.rk->late_gather_s = x.end_s;
}

/** Time from which a node could start without its weights: the one before it on its rank has ended,
 * and results and moves that it waits for have come. */
static double could_start_s(const struct hv__pipeline *pl, int32_t n)
{
    const struct hv_pipe_run *run = &pl->run;
    double start_s = hv_pipe_is_first(pl->pipe, n) ? 0 : run->node_end_s[n - 1];
    for (int32_t k = 0; k < hv_pipe_n_edges(pl->pipe, n); k++) {
        int32_t from = hv_pipe_edge_of(pl->pipe, n, k).node;
        start_s =
            fmax(start_s, run->node_end_s[from] + hv_pipe_edge_s(pl->pipe, &pl->cost, run, n, k));
    }
    return run->held != NULL ? fmax(start_s, run->held[n].until_s) : start_s;
}

/** Delays a node; returns by how much it waits for weights. */
static double delay_node(struct hv__pipeline *pl, int32_t n, double not_before_s)
{
    struct hv_pipe_run *run = &pl->run;
    double length_s = run->node_end_s[n] - run->node_start_s[n];
    double start_s = fmax(run->node_start_s[n], could_start_s(pl, n));
    double waits_s = fmax(0, not_before_s - start_s);
    run->node_start_s[n] = start_s + waits_s;
    run->node_end_s[n] = run->node_start_s[n] + length_s;
    return waits_s;
}

/** Delays the run of a pipeline, which has its own times from then on. */
static void delay_run(struct hv__lowered *l, struct hv__pipeline *pl, const double *not_before_s)
{
    size_t n_nodes = (size_t)pl->pipe->n_nodes;
    struct hv_pipe_run own = pl->run;
    own.node_start_s = hv_arena_copy(l->arena, pl->run.node_start_s, n_nodes, sizeof(double));
    own.node_end_s = hv_arena_copy(l->arena, pl->run.node_end_s, n_nodes, sizeof(double));
    pl->run = own;
    pl->like = NULL;
    for (size_t k = 0; k < pl->pipe->n_stretches; k++) {
        struct hv_pipe_stretch s = pl->pipe->stretches[k];
        size_t rank = 0;
        while (pl->pipe->rank_node_at[rank + 1] <= s.from) {
            rank++;
        }
        for (int32_t n = s.from; n < s.to; n++) {
            pl->ranks[rank].sync_exposed_s += delay_node(pl, n, not_before_s[n]);
        }
    }
    hv_pipe_summarise(pl->pipe, &pl->run);
    hv__finish_run(l, pl, l->network.crowded);
}

/** Plays all pipelines again, with passes that wait for weights: moves set out and come back beside
 * the passes as these run now, on links that all pipelines share. */
static void play_again(struct hv__lowered *l, double *const *not_before_s)
{
    struct hv_links *share = l->network.share;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        pl->like = NULL;
        hv__new_run(l, pl, &pl->run);
        hv_pipe_time(pl->pipe, &pl->cost, &pl->run);
        share->pipes[i].run = &pl->run;
        share->pipes[i].not_before_s = not_before_s[i];
    }
    hv_links_play(l->arena, share);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        hv__finish_run(l, pl, true);
        for (size_t r = 0; not_before_s[i] != NULL && r < pl->n_ranks; r++) {
            for (int32_t n = pl->pipe->rank_node_at[r]; n < pl->pipe->rank_node_at[r + 1]; n++) {
                double waits_s = not_before_s[i][n] - could_start_s(pl, n);
                pl->ranks[r].sync_exposed_s += fmax(0, waits_s);
            }
        }
    }
}

/** Times before which nodes of a pipeline do not start; NULL: no rank gathers late. */
static double *find_releases(struct hv__lowered *l, struct hv__pipeline *pl)
{
    double *not_before_s = NULL;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        if (hv__gathers_late(l, &pl->replica->stages[pl->ranks[r].stage])) {
            not_before_s = not_before_s != NULL
                               ? not_before_s
                               : hv_arena_new(l->arena, double, (size_t)pl->pipe->n_nodes + 1);
            release_rank(l, pl, r, not_before_s);
        }
    }
    return not_before_s;
}

void hv__late_gathers(struct hv__lowered *l)
{
    double **not_before_s = hv_arena_new(l->arena, double *, l->pipelines.n + 1);
    bool any = false, moves = false;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        not_before_s[i] = find_releases(l, &l->pipelines.items[i]);
        any = any || not_before_s[i] != NULL;
        moves = moves || l->pipelines.items[i].moving.n > 0;
    }
    if (any && moves && l->network.crowded) {
        play_again(l, not_before_s);
        return;
    }
    for (size_t i = 0; i < l->pipelines.n; i++) {
        if (not_before_s[i] != NULL) {
            delay_run(l, &l->pipelines.items[i], not_before_s[i]);
        }
    }
}
