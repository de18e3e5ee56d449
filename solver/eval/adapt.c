/** Places of experts that follow the routing: policies, and the moves that they cost. */
#include "solver/eval/adapt.h"

#include <stdlib.h>
#include <string.h>

#include "solver/cost/network/matrix.h"
#include "solver/optim/batch/distribute.h"
#include "solver/plan/experts.h"
#include "solver/plan/parts.h"
#include "solver/workload/router.h"

/** A block with a policy, and where its experts are now. */
struct adapted {
    size_t replica, stage, block;
    size_t layer; /**< among those with experts */
    int ep, experts, top_k;
    double parameters;               /**< of one expert */
    const struct hv_moe_knobs *base; /**< the plan's */
    struct hv_moe_knobs now, next;
};

struct hv__adaption {
    const struct hv__lowered *l;
    const struct hv__trial *trial;
    const struct hv_router *router;
    struct adapted *blocks;
    size_t n_blocks;
    const struct hv_plan **plans; /**< [iterations] */
    size_t moves;
    double moved_bytes;
};

/** Experts to be moved: seconds, how many, bytes. */
struct move {
    double time_s, bytes;
    size_t n;
};

bool hv__adapts(const struct hv_plan *p)
{
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            const struct hv_stage *s = &p->replicas[r].stages[i];
            for (size_t k = 0; k < s->n_moe; k++) {
                if (s->moe[k].adapt.policy != HV_ADAPT_NONE) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* ---- the blocks ----------------------------------------------------------------------------- */

/** Blocks of a stage whose knobs have a policy. */
static void add_stage(struct hv__adaption *a, size_t replica, size_t stage)
{
    const struct hv_model *m = hv_cost_model(a->l->k);
    const struct hv_stage *s = &a->l->plan->replicas[replica].stages[stage];
    size_t layer = 0;
    for (size_t b = 0; m->blocks != NULL && b < m->n_blocks; b++) {
        const struct hv_moe_knobs *k = hv_stage_moe(s, b);
        bool here = false;
        for (size_t i = 0; i < s->n_ranges && !here; i++) {
            here = s->ranges[i].from2 <= 2 * (int)b + 1 && 2 * (int)b + 1 < s->ranges[i].to2;
        }
        int experts = m->blocks[b].experts;
        if (here && experts > 0 && k != NULL && k->adapt.policy != HV_ADAPT_NONE) {
            a->blocks[a->n_blocks++] = (struct adapted){
                .replica = replica,
                .stage = stage,
                .block = b,
                .layer = layer,
                .ep = hv_moe_ep(s, k),
                .experts = experts,
                .top_k = m->blocks[b].top_k,
                .parameters = hv_block_expert_parameters(m, &m->blocks[b]) / experts,
                .base = k,
                .now = *k,
                .next = *k};
        }
        layer += experts > 0;
    }
}

struct hv__adaption *hv__adapt_open(const struct hv__lowered *l, const struct hv__trial *trial)
{
    struct hv__adaption *a = hv_arena_new(l->arena, struct hv__adaption, 1);
    const struct hv_plan *p = l->plan;
    size_t most = 0;
    *a = (struct hv__adaption){.l = l, .trial = trial, .router = hv_cost_job(l->k)->routing};
    for (size_t r = 0; r < p->n_replicas; r++) {
        most += p->replicas[r].n_stages * hv_cost_model(l->k)->n_blocks;
    }
    a->blocks = hv_arena_new(l->arena, struct adapted, most + 1);
    a->plans = hv_arena_new(l->arena, const struct hv_plan *, a->router->iterations + 1);
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            add_stage(a, r, i);
        }
    }
    return a;
}

/** The plan with the places of all blocks as they are (or as they would be next). */
static const struct hv_plan *plan_of(const struct hv__adaption *a, bool next)
{
    struct hv_arena *arena = a->l->arena;
    struct hv_plan *p = hv_arena_copy(arena, a->l->plan, 1, sizeof *p);
    p->replicas = hv_arena_copy(arena, p->replicas, p->n_replicas, sizeof *p->replicas);
    for (size_t r = 0; r < p->n_replicas; r++) {
        struct hv_replica *x = &p->replicas[r];
        x->stages = hv_arena_copy(arena, x->stages, x->n_stages, sizeof *x->stages);
    }
    for (size_t i = 0, end; i < a->n_blocks; i = end) {
        const struct adapted *first = &a->blocks[i];
        struct hv_stage *s = &p->replicas[first->replica].stages[first->stage];
        for (end = i; end < a->n_blocks && a->blocks[end].replica == first->replica &&
                      a->blocks[end].stage == first->stage;) {
            end++;
        }
        struct hv_moe_knobs *list = hv_arena_new(arena, struct hv_moe_knobs, s->n_moe + end - i);
        memcpy(list, s->moe, s->n_moe * sizeof *list);
        for (size_t k = i; k < end; k++) {
            struct hv_moe_knobs *x = &list[s->n_moe + k - i];
            *x = next ? a->blocks[k].next : a->blocks[k].now;
            x->from = (int)a->blocks[k].block;
            x->to = x->from + 1;
        }
        s->moe = list;
        s->n_moe += end - i;
    }
    return p;
}

/* ---- policies ------------------------------------------------------------------------------- */

/** Tokens of the experts of a block in one iteration, of all sources. */
static double *loads_of(const struct hv__adaption *a, const struct adapted *b, size_t iteration,
                        struct hv_arena *arena)
{
    const struct hv_stage *s = &a->l->plan->replicas[b->replica].stages[b->stage];
    size_t of =
        (size_t)(s->dp * s->cp.degree * s->tp.degree) / (size_t)hv_stage_expert_tp(s, b->ep);
    size_t sources = hv_router_has_sources(a->router) ? of : 1, n = (size_t)b->experts;
    const struct hv_router_at at = {iteration, b->layer, n, b->top_k, 0, sources, of};
    double *tokens = hv_arena_new(arena, double, sources *n);
    hv_router_tokens(a->router, &at, tokens);
    for (size_t x = 1; x < sources; x++) {
        for (size_t e = 0; e < n; e++) {
            tokens[e] += tokens[x * n + e];
        }
    }
    return tokens;
}

/** Gives ranks the sets of experts so that many stay where they are: each set in turn the rank that
 * holds most of it now. `set`: [experts] the set of each. */
static void name_ranks(const struct adapted *b, const int64_t *set, int *owners,
                       struct hv_arena *arena)
{
    size_t ep = (size_t)b->ep;
    int *held = hv_arena_new(arena, int, ep *ep);
    bool *taken = hv_arena_new(arena, bool, ep);
    for (int e = 0; e < b->experts; e++) {
        held[(size_t)set[e] * ep + (size_t)hv_expert_owner(&b->now, b->experts, b->ep, e)]++;
    }
    for (size_t k = 0; k < ep; k++) {
        size_t best = ep;
        for (size_t r = 0; r < ep; r++) {
            bool more = best == ep || held[k * ep + r] > held[k * ep + best];
            best = !taken[r] && more ? r : best;
        }
        taken[best] = true;
        for (int e = 0; e < b->experts; e++) {
            owners[e] = (size_t)set[e] == k ? (int)best : owners[e];
        }
    }
}

/** Equal numbers of experts on every rank, the hottest first on the least loaded. Places stay where
 * the busiest rank would have no less to do. */
static void balance(const struct hv__adaption *a, struct adapted *b, const double *loads,
                    struct hv_arena *arena)
{
    size_t slots = ((size_t)b->experts + (size_t)b->ep - 1) / (size_t)b->ep;
    struct hv_distribution d;
    double *now = hv_arena_new(arena, double, (size_t)b->ep), most = 0;
    for (int e = 0; e < b->experts; e++) {
        double *x = &now[hv_expert_owner(&b->now, b->experts, b->ep, e)];
        *x += loads[e];
        most = fmax(most, *x);
    }
    if (hv_distribute_lpt(loads, (size_t)b->experts, (size_t)b->ep, slots, arena, &d, NULL) !=
            HV_OK ||
        !d.feasible || d.objective >= most * (1 - 1e-9)) {
        return;
    }
    b->next.owners = hv_arena_new(a->l->arena, int, (size_t)b->experts);
    b->next.n_owners = (size_t)b->experts;
    name_ranks(b, d.count, b->next.owners, arena);
}

/** Copies of the `n` hottest experts on every rank, beside those of the plan. */
static void copy(const struct hv__adaption *a, struct adapted *b, const double *loads, int n)
{
    struct hv_expert_copies *list =
        hv_arena_new(a->l->arena, struct hv_expert_copies, b->base->n_copies + (size_t)n + 1);
    b->next.copies = list;
    b->next.n_copies = b->base->n_copies;
    for (size_t i = 0; i < b->base->n_copies; i++) {
        list[i] = b->base->copies[i];
    }
    for (int k = 0; k < n && k < b->experts; k++) {
        int best = -1;
        for (int e = 0; e < b->experts; e++) {
            bool listed = false;
            for (size_t i = 0; i < b->next.n_copies; i++) {
                listed = listed || (list[i].expert == e && list[i].everywhere);
            }
            best = !listed && (best < 0 || loads[e] > loads[best]) ? e : best;
        }
        if (best >= 0) {
            list[b->next.n_copies++] =
                (struct hv_expert_copies){.expert = best, .everywhere = true};
        }
    }
}

/** The last recorded placement of a block up to iteration t. */
static void recorded(struct adapted *b, size_t t)
{
    const struct hv_adapting *r = &b->base->adapt;
    for (size_t i = 0; i < r->n_placements && (size_t)r->placements[i].iteration <= t; i++) {
        const struct hv_placement *p = &r->placements[i];
        if (p->from >= 0 && ((size_t)p->from > b->block || b->block >= (size_t)p->to)) {
            continue;
        }
        b->next.owners = p->owners;
        b->next.n_owners = p->n_owners;
        b->next.copies = p->copies;
        b->next.n_copies = p->n_copies;
    }
}

/* ---- moves ---------------------------------------------------------------------------------- */

/** True where a rank holds an expert for good. */
static void keepers(const struct hv_moe_knobs *m, const struct adapted *b, int expert, bool *on)
{
    struct hv_moe_knobs kept = *m;
    kept.n_copies = m->copy_life == HV_COPY_ITERATION ? 0 : m->n_copies;
    (void)hv_expert_places(&kept, b->experts, b->ep, expert, on);
}

/** Adds what the experts of a block send from a rank that has them to those that get them, in
 * parameters. Returns how many are placed anew. */
static size_t add_sends(const struct adapted *b, double *sent, bool *old, bool *new)
{
    size_t n = 0, ep = (size_t)b->ep;
    for (int e = 0; e < b->experts; e++) {
        size_t from = (size_t)hv_expert_owner(&b->now, b->experts, b->ep, e);
        keepers(&b->now, b, e, old);
        keepers(&b->next, b, e, new);
        for (size_t r = 0; r < ep; r++) {
            if (new[r] && !old[r]) {
                sent[from * ep + r] += b->parameters;
                n++;
            }
        }
    }
    return n;
}

/** Bytes of a parameter that moves: its weight, and its states or this group's share of them. */
static double bytes_of_parameter(const struct hv__adaption *a, const struct hv_replica *r,
                                 const struct hv_stage *s, int ep)
{
    const struct hv_job *j = hv_cost_job(a->l->k);
    double groups = (double)s->dp * s->cp.degree * r->count * s->tp.degree /
                    ((double)hv_stage_expert_tp(s, ep) * ep);
    double states = hv_job_master_bytes(j) + hv_job_optimizer_bytes(j);
    return hv_job_weight_bytes(j) + (s->zero.stage > 0 ? states / fmax(1, groups) : states);
}

/** Seconds of the moves of one stage, all groups at once. */
static struct move stage_move(const struct hv__adaption *a, const struct adapted *b, size_t n)
{
    const struct hv_replica *r = &a->l->plan->replicas[b->replica];
    const struct hv_stage *s = &r->stages[b->stage];
    size_t ep = (size_t)b->ep, cuts = (size_t)hv_stage_expert_tp(s, b->ep);
    size_t ranks = hv_stage_ranks(r, s), groups = ranks / (ep * cuts);
    struct hv_arena scratch = {0};
    double *sent = hv_arena_new(&scratch, double, ep *ep);
    bool *old = hv_arena_new(&scratch, bool, ep), *new = hv_arena_new(&scratch, bool, ep);
    uint32_t *ids = hv_arena_new(&scratch, uint32_t, ep);
    struct move out = {0};
    double bytes = bytes_of_parameter(a, r, s, b->ep), all = 0;
    for (size_t i = 0; i < n; i++) {
        out.n += add_sends(&b[i], sent, old, new);
    }
    for (size_t i = 0; i < ep * ep; i++) {
        all += sent[i];
    }
    for (size_t g = 0; out.n > 0 && g < groups; g++) {
        for (size_t i = 0; i < ep; i++) {
            ids[i] = s->devices[(g * ep + i) * cuts];
        }
        struct hv_ways *ways = hv_ways_new(hv_cost_cluster(a->l->k), ids, ep);
        const struct hv_matrix_query q = {.bytes = sent,
                                          .scale = bytes / (double)cuts,
                                          .algorithm = HV_ALGO_RING,
                                          .together = (double)cuts};
        out.time_s = fmax(out.time_s, hv_cost_matrix(ways, &q, NULL).time_s);
        hv_ways_free(ways);
    }
    double copies = (double)groups * r->count;
    out.bytes = all * bytes * copies;
    out.n = (size_t)((double)out.n * copies);
    hv_arena_free(&scratch);
    return out;
}

/** Moves from the places that experts have to the next ones; stages move at the same time. */
static struct move move_of(const struct hv__adaption *a)
{
    struct move sum = {0};
    for (size_t i = 0, end; i < a->n_blocks; i = end) {
        const struct adapted *b = &a->blocks[i];
        for (end = i; end < a->n_blocks && a->blocks[end].replica == b->replica &&
                      a->blocks[end].stage == b->stage && a->blocks[end].ep == b->ep;) {
            end++;
        }
        struct move x = stage_move(a, b, end - i);
        sum.time_s = fmax(sum.time_s, x.time_s);
        sum.bytes += x.bytes;
        sum.n += x.n;
    }
    return sum;
}

/* ---- the walk ------------------------------------------------------------------------------- */

static void take(struct hv__adaption *a, const struct move *m, double *move_s)
{
    for (size_t i = 0; i < a->n_blocks; i++) {
        a->blocks[i].now = a->blocks[i].next;
    }
    a->moves += m->n;
    a->moved_bytes += m->bytes;
    *move_s = m->time_s;
}

/** True where a block is to have other places than now. */
static bool differs(const struct adapted *b)
{
    const struct hv_moe_knobs *x = &b->now, *y = &b->next;
    bool same = x->owners == y->owners && x->n_copies == y->n_copies;
    for (size_t i = 0; same && i < x->n_copies; i++) {
        same = x->copies[i].expert == y->copies[i].expert &&
               x->copies[i].everywhere == y->copies[i].everywhere;
    }
    return !same;
}

/** Next places of all blocks whose policy decides at t; `copies`: of the hottest experts. Returns
 * whether some may be decided otherwise with one copy more. */
static bool propose(struct hv__adaption *a, size_t t, int copies, int *interval)
{
    bool more = false;
    for (size_t i = 0; i < a->n_blocks; i++) {
        struct adapted *b = &a->blocks[i];
        const struct hv_adapting *how = &b->base->adapt;
        b->next = b->now;
        if (t == 0 || t % (size_t)how->interval != 0 || how->policy == HV_ADAPT_RECORD) {
            continue;
        }
        struct hv_arena scratch = {0};
        const double *loads = loads_of(a, b, t - 1, &scratch);
        if (how->policy == HV_ADAPT_BALANCE) {
            balance(a, b, loads, &scratch);
        } else {
            int most = how->experts < b->experts ? how->experts : b->experts;
            copy(a, b, loads, copies < most ? copies : most);
            more = more || copies < most;
        }
        *interval = how->interval > *interval ? how->interval : *interval;
        hv_arena_free(&scratch);
    }
    return more;
}

/** Takes the proposal that would have gained most in the last iteration, if it pays for its moves.
 */
static enum hv_status decide(struct hv__adaption *a, size_t t, double last_s, double *move_s,
                             struct hv_err *err)
{
    struct hv_moe_knobs *best = NULL;
    struct move best_move = {0}, m;
    double best_gain_s = 0, before_s = HUGE_VAL;
    bool more = true, changed;
    for (int copies = 0; more; copies++) {
        int interval = 0;
        double time_s = 0;
        more = propose(a, t, copies, &interval);
        if (interval == 0) {
            break;
        }
        changed = false;
        for (size_t i = 0; i < a->n_blocks; i++) {
            changed = changed || differs(&a->blocks[i]);
        }
        m = move_of(a);
        time_s = last_s;
        enum hv_status st =
            changed ? a->trial->time(a->l, plan_of(a, true), t - 1, &time_s, err) : HV_OK;
        if (st != HV_OK) {
            return st;
        }
        double gain_s = (last_s - time_s) * interval - m.time_s;
        more = more && time_s < before_s;
        before_s = time_s;
        if (gain_s > best_gain_s) {
            best =
                best == NULL ? hv_arena_new(a->l->arena, struct hv_moe_knobs, a->n_blocks) : best;
            for (size_t i = 0; i < a->n_blocks; i++) {
                best[i] = a->blocks[i].next;
            }
            best_gain_s = gain_s;
            best_move = m;
        }
    }
    for (size_t i = 0; i < a->n_blocks; i++) {
        a->blocks[i].next = best != NULL ? best[i] : a->blocks[i].now;
    }
    take(a, &best_move, move_s);
    return HV_OK;
}

/** Places of blocks with a record: they cost what they move, whether that pays or not. */
static void follow_record(struct hv__adaption *a, size_t t, double *move_s)
{
    for (size_t i = 0; i < a->n_blocks; i++) {
        struct adapted *b = &a->blocks[i];
        b->next = b->now;
        if (b->base->adapt.policy == HV_ADAPT_RECORD) {
            recorded(b, t);
        }
    }
    struct move m = t > 0 ? move_of(a) : (struct move){0};
    take(a, &m, move_s);
}

enum hv_status hv__adapt_next(struct hv__adaption *a, size_t t, double last_s,
                              const struct hv_plan **plan, double *move_s, struct hv_err *err)
{
    double decided_s = 0, recorded_s = 0;
    follow_record(a, t, &recorded_s);
    enum hv_status st = t > 0 ? decide(a, t, last_s, &decided_s, err) : HV_OK;
    *move_s = decided_s + recorded_s;
    *plan = a->plans[t] = plan_of(a, false);
    return st;
}

const struct hv_plan *hv__adapt_plan(const struct hv__adaption *a, size_t t)
{
    return a->plans[t];
}

void hv__adapt_moved(const struct hv__adaption *a, size_t *moves, double *bytes)
{
    *moves = a->moves;
    *bytes = a->moved_bytes;
}
