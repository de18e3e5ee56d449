/** Prices of the passes and the memory of a pipeline. */
#include "solver/eval/moves/moves.h"
#include "solver/eval/train/steps.h"
#include "solver/plan/mesh.h"
#include "solver/plan/parts.h"

#include <string.h>

/** Lets the pipeline's scratch replica hold only the blocks of one global stage, on the rank that
 * runs it, so that placement and two-way schedules need no special case in cost. */
static struct hv_stage *set_scratch(struct hv__pipeline *pl, struct hv__gstage *g)
{
    size_t i = pl->ranks[g->rank].stage;
    struct hv_stage *s = &pl->scratch->stages[i];
    *s = hv_stage_cut(&pl->replica->stages[i], &g->range);
    s->embedding = g->embedding;
    s->head = g->head;
    return s;
}

static void set_recompute(struct hv_stage *s, unsigned mask)
{
    s->recompute = mask;
    s->recompute_per = NULL;
    s->n_recompute_per = 0;
}

static struct hv_replica *copy_into(struct hv_arena *arena, const struct hv_replica *from)
{
    struct hv_replica *r = hv_arena_copy(arena, from, 1, sizeof *from);
    r->stages = hv_arena_copy(arena, from->stages, from->n_stages, sizeof *from->stages);
    return r;
}

struct hv_replica *hv__copy_replica(const struct hv__lowered *l, const struct hv_replica *from)
{
    return copy_into(l->arena, from);
}

/** For each dp rank those whose passes are its own but for what they keep of experts' tokens. */
struct peer_lists {
    size_t *at;      /**< [n_dp + 1]; NULL: none has any */
    size_t *ranks;   /**< of rank d at[d] … at[d + 1], in order */
    size_t *numbers; /**< the same as numbers of data-parallel ranks */
};

/** Lists the peers of all dp ranks. O(dp ranks). */
static struct peer_lists list_peers(const struct hv__lowered *l, const struct hv__rank *rk)
{
    struct peer_lists x = {0};
    if (rk->peer == NULL) {
        return x;
    }
    x.at = hv_arena_new(l->arena, size_t, rk->n_dp + 2);
    for (size_t i = 0; i < rk->n_dp; i++) {
        x.at[rk->peer[i] + 2] += rk->peer[i] != i && rk->like[i] == i;
    }
    for (size_t d = 2; d < rk->n_dp + 2; d++) {
        x.at[d] += x.at[d - 1];
    }
    x.ranks = hv_arena_new(l->arena, size_t, x.at[rk->n_dp + 1] + 1);
    x.numbers = hv_arena_new(l->arena, size_t, x.at[rk->n_dp + 1] + 1);
    for (size_t i = 0; i < rk->n_dp; i++) {
        if (rk->peer[i] != i && rk->like[i] == i) {
            size_t at = x.at[rk->peer[i] + 1]++;
            x.ranks[at] = i;
            x.numbers[at] = i / rk->cuts;
        }
    }
    return x;
}

/** The peers of rank d. */
static struct hv_peers peers_of(const struct hv__lowered *l, const struct peer_lists *x, size_t d)
{
    struct hv_peers out = {0};
    if (x->at != NULL) {
        out.n = x->at[d + 1] - x->at[d];
        out.ranks = x->numbers + x->at[d];
        out.kept = hv_arena_new(l->arena, struct hv_kept, out.n);
    }
    return out;
}

/** Fills the passes of the peers of rank d; `passes`: of all dp ranks, priced for rank d. */
static void fill_peers(const struct peer_lists *x, size_t d, const struct hv_peers *peers,
                       struct hv_pass *passes)
{
    for (size_t i = 0; i < peers->n; i++) {
        const struct hv_kept *k = &peers->kept[i];
        struct hv_pass *own = &passes[x->ranks[x->at[d] + i]];
        *own = passes[d];
        own->activation_bytes = k->activation_bytes;
        own->weight_only_bytes = k->weight_only_bytes;
        own->transient_bytes = k->transient_bytes;
    }
}

/** True where the passes of rank d are those of another one, with other bytes at most. */
static bool follows(const struct hv__rank *rk, size_t d)
{
    return rk->peer != NULL && rk->peer[d] != d;
}

/** Passes of one global stage for all shapes and dp ranks; ranks that are alike are priced once. */
static enum hv_status price_passes(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                   const struct hv__gstage *g, struct hv_pass *out,
                                   struct hv_err *err)
{
    const struct hv__rank *rk = &pl->ranks[g->rank];
    const struct hv_replica *r = pl->scratch;
    const struct peer_lists peers = list_peers(l, rk);
    for (size_t i = 0; i < pl->n_shapes; i++) {
        struct hv_pass *passes = &out[i * rk->n_dp];
        for (size_t d = 0; d < rk->n_dp; d++) {
            double n = hv__rank_sequences(rk, &r->stages[rk->stage], pl->shapes[i].sequences, d);
            if (rk->like[d] != d) {
                passes[d] = passes[rk->like[d]];
                continue;
            }
            if (n <= 0 || follows(rk, d)) {
                continue;
            }
            struct hv_stage_query q = {.plan = l->plan,
                                       .replica = r,
                                       .stage = rk->stage,
                                       .copy = pl->first_copy,
                                       .dp_rank = (int)(d / rk->cuts),
                                       .tp_rank = (int)(d % rk->cuts),
                                       .sequences = n,
                                       .tokens = pl->shapes[i].tokens,
                                       .context = pl->shapes[i].context,
                                       .sliced = pl->n_slices > 1,
                                       .documents = &pl->shapes[i].documents,
                                       .scales = pl->shapes[i].scales,
                                       .iteration = l->routed,
                                       .copies_apart = hv__moves_away(pl, g),
                                       .peers = peers_of(l, &peers, d)};
            enum hv_status st = hv_cost_pass(l->k, &q, &passes[d], err);
            if (st != HV_OK) {
                return st;
            }
            fill_peers(&peers, d, &q.peers, passes);
        }
    }
    return HV_OK;
}

static double backward_s(const struct hv_pass *p)
{
    return p->input_grad_s + p->recompute_s;
}

/** Prices one global stage on its rank for all shapes and dp ranks. */
enum hv_status hv__price_gstage(const struct hv__lowered *l, struct hv__pipeline *pl,
                                struct hv__gstage *g, struct hv_err *err)
{
    const struct hv__rank *rk = &pl->ranks[g->rank];
    size_t n = pl->n_shapes * rk->n_dp;
    g->pass = hv_arena_new(l->arena, struct hv_pass, n);
    g->plain = g->pass;
    g->forward_s = hv_arena_new(l->arena, double, pl->n_shapes);
    g->input_grad_s = hv_arena_new(l->arena, double, pl->n_shapes);
    g->weight_grad_s = hv_arena_new(l->arena, double, pl->n_shapes);
    g->backward_s = hv_arena_new(l->arena, double, pl->n_shapes);
    g->recompute_s = hv_arena_new(l->arena, double, pl->n_shapes);
    struct hv_stage *s = set_scratch(pl, g);
    enum hv_status st = HV_OK;
    if (g->again) {
        /* R runs the whole stage again; then B has no recompute in it, whatever the plan's
         * recompute is */
        g->plain = hv_arena_new(l->arena, struct hv_pass, n);
        set_recompute(s, HV_RC_NONE);
        st = price_passes(l, pl, g, g->plain, err);
        set_recompute(s, HV_RC_FULL);
    }
    if (st == HV_OK) {
        st = price_passes(l, pl, g, g->pass, err);
    }
    *s = pl->replica->stages[rk->stage];
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        const struct hv_pass *pass = &g->pass[i], *plain = &g->plain[i];
        size_t shape = i / rk->n_dp;
        if (shape == g->shape) {
            g->network_forward_s =
                fmax(g->network_forward_s, plain->network_forward_s - plain->latency_forward_s);
            g->network_backward_s =
                fmax(g->network_backward_s, plain->network_backward_s - plain->latency_backward_s);
            g->network_weight_s =
                fmax(g->network_weight_s, plain->network_weight_s - plain->latency_weight_s);
        }
        g->copies_s = fmax(g->copies_s, plain->copies_s);
        g->forward_s[shape] = fmax(g->forward_s[shape], plain->forward_s);
        g->input_grad_s[shape] =
            fmax(g->input_grad_s[shape], plain->input_alone_s + plain->recompute_s);
        g->weight_grad_s[shape] = fmax(g->weight_grad_s[shape], plain->weight_alone_s);
        g->backward_s[shape] = fmax(g->backward_s[shape], backward_s(plain) + plain->weight_grad_s);
        g->recompute_s[shape] = fmax(g->recompute_s[shape], backward_s(pass) - backward_s(plain));
    }
    return st;
}

/* ---- overlapped pairs
 * --------------------------------------------------------------------------- */

/** Seconds of a whole backward of one pass. */
static double whole_backward_s(const struct hv_pass *p)
{
    return backward_s(p) + p->weight_grad_s;
}

/**
 * Seconds that dp rank d saves where a forward and a backward run as one overlapped pair: the
 * experts' exchanges of each hide behind the compute of the other (DeepSeek-V3, arXiv 2412.19437,
 * section 3.2.1), down to the longest of both computes, both exchanges, and each pass by itself.
 * Hidden exchanges slow compute down by the calibrated overlap.
 */
static double saved_s(const struct hv__lowered *l, const struct hv__rank *rk, size_t d,
                      const struct hv_pass *f, const struct hv_pass *b)
{
    double exchange_s = f->ep_forward_s + b->ep_s - b->ep_forward_s;
    double forward_s = f->forward_s, back_s = whole_backward_s(b), all_s = forward_s + back_s;
    double least_s = fmax(fmax(all_s - exchange_s, exchange_s), fmax(forward_s, back_s));
    const struct hv_device_kind *kind =
        hv_cluster_device(hv_cost_cluster(l->k), rk->devices[d * rk->width]).kind;
    return (1 - hv_device_calibration(kind)->v[HV_CAL_OVERLAP]) * (all_s - least_s);
}

/** The two passes of an overlapped pair that begins with op i: forward and backward of each dp
 * rank. False: op i begins none. */
static bool find_pair(const struct hv__pipeline *pl, size_t i, struct hv__pair *out)
{
    const struct hv_op *op = &pl->schedule->ops[i];
    if (op->group < 0 || i + 1 == hv_schedule_n_ops(pl->schedule) || op[1].group != op->group) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        bool forward = op[k].kind == HV_OP_F;
        const struct hv__gstage *g =
            &pl->gstages[(size_t)op[k].pipe * pl->n_gstages + (size_t)op[k].stage];
        const struct hv_pass *pass =
            &g->plain[hv__shape_of(pl, op[k].stage, op[k].mb, op[k].slice) *
                      pl->ranks[g->rank].n_dp];
        *(forward ? &out->forward : &out->backward) = pass;
        *(forward ? &out->sends_forward_s : &out->sends_backward_s) =
            forward ? g->sends_forward_s : g->sends_backward_s;
        out->rank = g->rank;
    }
    return out->forward != NULL && out->backward != NULL && op[0].kind != HV_OP_R &&
           (op[0].kind == HV_OP_BW || op[1].kind == HV_OP_BW);
}

bool hv__next_pair(const struct hv__pipeline *pl, size_t *i_op, struct hv__pair *out)
{
    for (; *i_op < hv_schedule_n_ops(pl->schedule); ++*i_op) {
        *out = (struct hv__pair){.group = pl->schedule->ops[*i_op].group};
        if (find_pair(pl, *i_op, out)) {
            *i_op += 2;
            return true;
        }
    }
    return false;
}

double hv__pair_saves_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                        const struct hv__pair *x, size_t d)
{
    return saved_s(l, &pl->ranks[x->rank], d, &x->forward[d], &x->backward[d]);
}

/** Seconds of a pair on the slowest dp rank. */
static double pair_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                     const struct hv__pair *x)
{
    const struct hv__rank *rk = &pl->ranks[x->rank];
    double most = 0;
    for (size_t d = 0; d < rk->n_dp; d++) {
        if (rk->like[d] == d) {
            double all_s = x->forward[d].forward_s + whole_backward_s(&x->backward[d]);
            most = fmax(most, all_s - hv__pair_saves_s(l, pl, x, d));
        }
    }
    return most + x->sends_forward_s + x->sends_backward_s;
}

const double *hv__price_pairs(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    bool exchanges = false;
    size_t n = (size_t)pl->schedule->n_groups;
    for (size_t g = 0; n > 0 && g < pl->n_pipes * pl->n_gstages; g++) {
        size_t many = pl->n_shapes * pl->ranks[pl->gstages[g].rank].n_dp;
        for (size_t i = 0; i < many && !exchanges; i++) {
            exchanges = pl->gstages[g].plain[i].ep_s > 0;
        }
    }
    if (!exchanges) {
        return NULL;
    }
    double *out = hv_arena_new(l->arena, double, n);
    struct hv__pair x, last = {0};
    for (size_t i = 0; hv__next_pair(pl, &i, &x);) {
        bool same = x.forward == last.forward && x.backward == last.backward;
        out[x.group] = same ? out[last.group] : pair_s(l, pl, &x);
        last = x;
    }
    return out;
}

/** The pipeline's replica with every rank holding what the schedule's placement puts there: in
 * two-way schedules also the stages it runs in the other direction. */
static const struct hv_replica *placed_replica(const struct hv__pipeline *pl,
                                               struct hv_arena *arena)
{
    size_t n = pl->n_pipes * pl->n_gstages;
    struct hv_replica *r = copy_into(arena, pl->replica);
    struct hv_stage *stages = r->stages;
    size_t *held = hv_arena_new(arena, size_t, pl->n_ranks);
    for (size_t g = 0; g < n; g++) {
        held[pl->gstages[g].rank]++;
    }
    for (size_t i = 0; i < pl->n_ranks; i++) {
        stages[i].embedding = stages[i].head = 0;
        stages[i].ranges = hv_arena_new(arena, struct hv_range, held[i] + 1);
        stages[i].n_ranges = 0;
    }
    for (size_t g = 0; g < n; g++) {
        struct hv_stage *s = &stages[pl->gstages[g].rank];
        s->ranges[s->n_ranges++] = pl->gstages[g].range;
        s->embedding |= pl->gstages[g].embedding;
        s->head |= pl->gstages[g].head;
    }
    return r;
}

/** Static memory of every dp rank: all its global stages, overheads once. */
static enum hv_status price_placed(const struct hv__lowered *l, struct hv__pipeline *pl,
                                   const struct hv_replica *placed, struct hv_err *err)
{
    for (size_t i = 0; i < pl->n_ranks; i++) {
        struct hv__rank *rk = &pl->ranks[i];
        rk->memory = hv_arena_new(l->arena, struct hv_memory, rk->n_dp);
        double versions = l->schedule.stale ? fmax(1, (double)pl->schedule->weight_versions[i]) : 1;
        for (size_t d = 0; d < rk->n_dp; d++) {
            struct hv_memory *m = &rk->memory[d];
            if (rk->like[d] != d) {
                *m = rk->memory[rk->like[d]];
                continue;
            }
            struct hv_stage_query q = {.plan = l->plan,
                                       .replica = placed,
                                       .stage = rk->stage,
                                       .copy = pl->first_copy,
                                       .dp_rank = (int)(d / rk->cuts),
                                       .tp_rank = (int)(d % rk->cuts)};
            enum hv_status st = hv_cost_memory(l->k, &q, m, err);
            if (st != HV_OK) {
                return st;
            }
            m->weights_bytes *= versions;
        }
    }
    return HV_OK;
}

/** Takes over the memory of an earlier iteration; false: there is none. */
static bool take_kept(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    const struct hv__kept_memory *m = l->memories != NULL ? l->memories->first : NULL;
    while (m != NULL && (m->i_replica != pl->i_replica || m->first_copy != pl->first_copy ||
                         m->n_ranks != pl->n_ranks)) {
        m = m->next;
    }
    for (size_t i = 0; m != NULL && i < pl->n_ranks; i++) {
        struct hv__rank *rk = &pl->ranks[i];
        rk->memory = hv_arena_copy(l->arena, m->ranks[i], rk->n_dp, sizeof *rk->memory);
    }
    return m != NULL;
}

static void keep_memory(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    if (l->memories == NULL) {
        return;
    }
    struct hv_arena *arena = l->memories->arena;
    struct hv__kept_memory *m = hv_arena_new(arena, struct hv__kept_memory, 1);
    *m = (struct hv__kept_memory){.i_replica = pl->i_replica,
                                  .n_ranks = pl->n_ranks,
                                  .first_copy = pl->first_copy,
                                  .ranks = hv_arena_new(arena, struct hv_memory *, pl->n_ranks),
                                  .next = l->memories->first};
    for (size_t i = 0; i < pl->n_ranks; i++) {
        const struct hv__rank *rk = &pl->ranks[i];
        m->ranks[i] = hv_arena_copy(arena, rk->memory, rk->n_dp, sizeof *rk->memory);
    }
    l->memories->first = m;
}

enum hv_status hv__price_memory(const struct hv__lowered *l, struct hv__pipeline *pl,
                                struct hv_err *err)
{
    struct hv_arena scratch = {0};
    if (take_kept(l, pl)) {
        return HV_OK;
    }
    enum hv_status st = price_placed(l, pl, placed_replica(pl, &scratch), err);
    hv_arena_free(&scratch);
    if (st == HV_OK) {
        keep_memory(l, pl);
    }
    return st;
}

enum hv_status hv__find_held(struct hv__lowered *l, struct hv_err *err)
{
    const struct hv_model *m = hv_cost_model(l->k);
    enum hv_status st = HV_OK;
    if (!hv_model_has_operands(m)) {
        return HV_OK;
    }
    double *held = hv_arena_new(l->arena, double, m->n_blocks + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t s = 0; st == HV_OK && s < pl->replica->n_stages; s++) {
            struct hv_stage_query q = {
                .plan = l->plan, .replica = pl->replica, .stage = s, .copy = pl->first_copy};
            st = hv_cost_graph_parameters(l->k, &q, held, err);
        }
    }
    l->leaves.held = held;
    return st;
}
