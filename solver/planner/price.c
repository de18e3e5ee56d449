/*
 * Prices of blocks on pools, and the exact step that cuts blocks into chunks by them. Prices only
 * rank and cut; what a plan is worth the judge alone says.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition.h"

#include <math.h>
#include <string.h>

/* What a device holds before any state: context, communicators, work space; a first guess that the
 * judge's figure corrects (hv__refit). */
#define HELD_BYTES (1.5 * HV_GIB)
#define FILL_FRAC  0.95
/* stages × chunks, at most, and micro-batches per stage, of a pipeline whose blocks are cut with an
 * eye to its start */
#define FILL_PARTS   16
#define FILL_BATCHES 8

/* `host`: what of it waits there. */
static double state_bytes(const struct hv_job *j, const struct hv__team *t, int holders,
                          unsigned host)
{
    double weights = hv_job_weight_bytes(j), gradients = hv_job_grad_bytes(j);
    double rest = hv_job_master_bytes(j) + hv_job_optimizer_bytes(j);
    if (host & HV__HOST(HV_OFFLOAD_WEIGHTS)) {
        weights = 0;
    }
    if (host & HV__HOST(HV_OFFLOAD_OPTIMIZER)) {
        rest = 0;
    }
    rest += hv_job_unscaled_bytes(j);
    if (t->zero >= 1) {
        rest /= holders;
    }
    if (t->zero >= 2 && !t->late) {
        gradients /= holders;
    }
    if (t->zero >= 3 && !t->keeps) {
        weights /= holders;
    }
    return weights + gradients + rest;
}

double hv__state_bytes(const struct hv_job *j, const struct hv__team *t, const struct hv__leg *l,
                       const struct hv__price *p)
{
    int sharers = hv__leg_sharers(t, l), experts = hv__leg_holders(l) / l->ep;
    experts = experts < sharers ? experts : sharers;
    return (p->parameters - p->expert_parameters) * state_bytes(j, t, sharers, l->offload) +
           p->expert_parameters * state_bytes(j, t, experts, l->offload);
}

enum hv_cp_layout hv__layout(const struct hv__search *s, const struct hv__leg *l)
{
    double pieces = 2.0 * l->cp;
    bool folds = l->cp > 1 && fmod(hv_cost_tokens(s->k), pieces) == 0;
    return folds ? HV_CP_ZIGZAG : HV_CP_CONTIGUOUS;
}

static struct hv_part_query query_of(struct hv__search *s, const struct hv__price *p)
{
    const struct hv__pool *pool = &s->pools[p->pool];
    const struct hv__leg leg = {.cp = p->cp};
    struct hv_part_query q = {.device = pool->kind,
                              .tp = p->tp,
                              .cp = p->cp,
                              .ep = p->ep,
                              .cp_scheme = HV_CP_RING,
                              .cp_heads = 1,
                              .cp_layout = hv__layout(s, &leg),
                              .sharded_weights = p->sharded,
                              .sequence_parallel = p->tp > 1,
                              .sequences = p->sequences,
                              .tokens = hv_cost_tokens(s->k),
                              .recompute = p->recompute};
    if (p->tp * p->cp > 1) {
        q.group = pool->ids;
    }
    if (p->ep > 1 && p->ep * p->tp <= pool->n) {
        uint32_t *ids = hv_arena_new(&s->arena, uint32_t, (size_t)p->ep);
        for (int i = 0; i < p->ep; i++) {
            ids[i] = pool->ids[i * p->tp];
        }
        q.ep_group = ids;
    }
    return q;
}

static double part_s(const struct hv_part_cost *c)
{
    return c->forward_s + c->input_grad_s + c->weight_grad_s + c->recompute_s + c->tp_forward_s +
           c->tp_backward_s + c->cp_forward_s + c->cp_backward_s;
}

/* What it takes to fetch the weights of a block from the host, twice, beyond the passes that hide
 * it; all devices of a node fetch at once. */
static double fetch_s(const struct hv__search *s, const struct hv__price *p)
{
    const struct hv__pool *pool = &s->pools[p->pool];
    double n = (double)p->table.n_blocks;
    double rate = hv_cost_host_bytes_per_s(hv_cost_cluster(s->k), pool->ids,
                                           (size_t)pool->node_devices, pool->ids[0]);
    double copy_s = p->parameters * hv_job_weight_bytes(s->job) / p->fetched / rate;
    return fmax(0, copy_s - p->table.forward_s[p->table.n_blocks] / n) +
           fmax(0, copy_s - p->table.backward_s[p->table.n_blocks] / n);
}

/* What of a block is its attention; a half where the model does not tell. */
static void fill_halves(struct hv__search *s, const struct hv_part_query *q, struct hv__price *p)
{
    p->first_s = p->first_parameters = p->first_saved = 0.5;
    if (!hv__cuts_blocks(s)) {
        return;
    }
    struct hv_part_cost a = hv_cost_part(s->k, HV_PART_ATTENTION, 0, q, NULL);
    struct hv_part_cost f = hv_cost_part(s->k, HV_PART_FFN, 0, q, NULL);
    double parameters[] = {a.parameters + a.expert_parameters, f.parameters + f.expert_parameters};
    p->first_s = part_s(&a) / (part_s(&a) + part_s(&f));
    p->first_parameters = parameters[0] / (parameters[0] + parameters[1]);
    if (a.saved_bytes + f.saved_bytes > 0) {
        p->first_saved = a.saved_bytes / (a.saved_bytes + f.saved_bytes);
    }
}

static void fill_price(struct hv__search *s, struct hv__price *p)
{
    struct hv_part_query q = query_of(s, p);
    if (hv_cost_layers(s->k, &q, &s->arena, &p->table, NULL) != HV_OK || p->table.n_blocks == 0) {
        return;
    }
    const struct hv_layer_table *t = &p->table;
    double n = (double)t->n_blocks;
    p->block_s = (t->forward_s[t->n_blocks] + t->backward_s[t->n_blocks]) / n;
    p->parameters = t->parameters[t->n_blocks] / n;
    if (p->fetched > 0) {
        p->fetch_s = fetch_s(s, p);
    }
    p->block_s += p->fetch_s;
    p->saved_bytes = t->saved_bytes[t->n_blocks] / n;
    p->ends_s[0] = part_s(&t->embedding);
    p->ends_s[1] = part_s(&t->head);
    p->ends_parameters[0] = t->embedding.parameters;
    p->ends_parameters[1] = t->head.parameters;
    double experts = 0;
    for (size_t i = 0; i < t->n_blocks; i++) {
        if (i == 0 || hv_cost_block_class(s->k, i) != hv_cost_block_class(s->k, i - 1)) {
            experts = hv_cost_part(s->k, HV_PART_FFN, i, &q, NULL).expert_parameters;
        }
        p->expert_parameters += experts / n;
    }
    fill_halves(s, &q, p);
    p->head_bytes = t->head.transient_bytes + t->head.saved_bytes;
    if (p->recompute != HV_RC_NONE) {
        q.recompute = HV_RC_NONE;
        struct hv_part_cost a = hv_cost_part(s->k, HV_PART_ATTENTION, 0, &q, NULL);
        struct hv_part_cost f = hv_cost_part(s->k, HV_PART_FFN, 0, &q, NULL);
        p->peak_bytes = a.saved_bytes + f.saved_bytes;
    }
    p->known = isfinite(p->block_s) && p->block_s > 0 && isfinite(p->ends_s[0] + p->ends_s[1]);
}

static bool same_price(const struct hv__price *a, const struct hv__price *b)
{
    return a->pool == b->pool && a->tp == b->tp && a->cp == b->cp && a->ep == b->ep &&
           a->sequences == b->sequences && a->recompute == b->recompute &&
           a->sharded == b->sharded && a->fetched == b->fetched;
}

static uint64_t price_hash(const struct hv__price *p)
{
    const int key[] = {p->pool,           p->tp,      p->cp,     p->ep, p->sequences,
                       (int)p->recompute, p->sharded, p->fetched};
    return hv_hash(HV_HASH_START, key, sizeof key);
}

static void grow_prices(struct hv__search *s)
{
    size_t cap = s->cap_prices > 0 ? 2 * s->cap_prices : 256;
    struct hv__price **table = hv_arena_new(&s->arena, struct hv__price *, cap);
    for (size_t i = 0; i < s->cap_prices; i++) {
        if (s->prices[i] == NULL) {
            continue;
        }
        size_t at = price_hash(s->prices[i]) & (cap - 1);
        while (table[at] != NULL) {
            at = (at + 1) & (cap - 1);
        }
        table[at] = s->prices[i];
    }
    s->prices = table;
    s->cap_prices = cap;
}

const struct hv__price *hv__price_of(struct hv__search *s, const struct hv__team *t,
                                     const struct hv__leg *l)
{
    bool sharded = t->zero >= 3 && hv__leg_holders(l) > 1 && s->pools[l->pool].shards_change;
    int fetched = t->zero >= 3 ? hv__leg_sharers(t, l) : 1;
    struct hv__price want = {.pool = l->pool,
                             .tp = l->tp,
                             .cp = l->cp,
                             .ep = l->ep,
                             .sequences = (t->micro_batch - l->guest_share + l->dp - 1) / l->dp,
                             .recompute = l->recompute,
                             .sharded = sharded,
                             .fetched = l->offload & HV__HOST(HV_OFFLOAD_WEIGHTS) ? fetched : 0};
    if (2 * (s->n_prices + 1) > s->cap_prices) {
        grow_prices(s);
    }
    size_t at = price_hash(&want) & (s->cap_prices - 1);
    while (s->prices[at] != NULL) {
        if (same_price(s->prices[at], &want)) {
            return s->prices[at];
        }
        at = (at + 1) & (s->cap_prices - 1);
    }
    struct hv__price *p = hv_arena_copy(&s->arena, &want, 1, sizeof want);
    fill_price(s, p);
    s->prices[at] = p;
    s->n_prices++;
    return p;
}

const struct hv__price *hv__slower_of(struct hv__search *s, const struct hv__team *t,
                                      const struct hv__leg *l)
{
    const struct hv__price *own = hv__price_of(s, t, l);
    if (l->guests == 0 || !own->known) {
        return own;
    }
    struct hv__leg turned = hv__leg_turned(t, l);
    const struct hv__price *guest = hv__price_of(s, t, &turned);
    return guest->known && guest->block_s <= own->block_s ? own : guest;
}

/* ---- blocks over chunks ------------------------------------------------------------------- */

/* A sum over the first i of `per` pieces of every block. */
static double sum_to(const double *sums, size_t i, size_t per, double first)
{
    size_t whole = i / per;
    return i % per == 0 ? sums[whole] : sums[whole] + first * (sums[whole + 1] - sums[whole]);
}

/* Prefix sums over embedding, `per` pieces of every block, head. */
static double *time_row(struct hv_arena *a, const struct hv__price *p, size_t per)
{
    const struct hv_layer_table *t = &p->table;
    size_t n = per * t->n_blocks;
    double *row = hv_arena_new(a, double, n + 3);
    row[1] = p->ends_s[0];
    for (size_t i = 1; i <= n; i++) {
        row[i + 1] = row[1] + sum_to(t->forward_s, i, per, p->first_s) +
                     sum_to(t->backward_s, i, per, p->first_s) +
                     (double)i / (double)per * p->fetch_s;
    }
    row[n + 2] = row[n + 1] + p->ends_s[1];
    return row;
}

/* A part of a pipeline: where it is, and micro-batches it keeps. */
struct in_part {
    const struct hv__team *team;
    const struct hv__leg *leg;
    double in_flight;
    size_t per; /* pieces of a block */
};

static double *memory_row(const struct hv__search *s, struct hv_arena *a, const struct hv__price *p,
                          const struct in_part *in)
{
    const struct hv__team *t = in->team;
    const struct hv__leg *l = in->leg;
    const struct hv_layer_table *table = &p->table;
    size_t n = in->per * table->n_blocks;
    double *row = hv_arena_new(a, double, n + 3);
    double plain = state_bytes(s->job, t, hv__leg_sharers(t, l), l->offload);
    double each = hv__state_bytes(s->job, t, l, p) / p->parameters;
    double in_flight = l->offload & HV__HOST(HV_OFFLOAD_ACTIVATIONS) ? 0 : in->in_flight;
    row[1] = p->ends_parameters[0] * plain;
    for (size_t i = 1; i <= n; i++) {
        row[i + 1] = row[1] + sum_to(table->parameters, i, in->per, p->first_parameters) * each +
                     sum_to(table->saved_bytes, i, in->per, p->first_saved) * in_flight;
    }
    row[n + 2] = row[n + 1] + p->ends_parameters[1] * plain + p->head_bytes;
    return row;
}

/* Bytes that blocks may fill on a device of the leg's own pool. */
static double room_of(const struct hv__search *s, const struct hv__leg *l,
                      const struct hv__price *p)
{
    return fmax(0, FILL_FRAC * s->pools[l->pool].limit_bytes - HELD_BYTES - p->peak_bytes);
}

/* What fits owners and guests: the larger share of either's memory, in bytes of the owners. */
static void add_guests(struct hv__search *s, struct hv_arena *a, const struct in_part *in,
                       struct hv_part_stage *part, double room)
{
    struct hv__leg turned = hv__leg_turned(in->team, in->leg);
    const struct hv__price *p = hv__price_of(s, in->team, &turned);
    struct in_part guests = {in->team, &turned, in->in_flight, in->per};
    double *own = hv_arena_new(a, double, in->per * p->table.n_blocks + 3);
    const double *theirs = memory_row(s, a, p, &guests);
    double by = part->capacity / fmax(1, room * room_of(s, &turned, p));
    for (size_t i = 1; i < in->per * p->table.n_blocks + 3; i++) {
        own[i] = own[i - 1] +
                 fmax(part->memory[i] - part->memory[i - 1], by * (theirs[i] - theirs[i - 1]));
    }
    part->memory = own;
}

static double in_flight(const struct hv__team *t, const struct hv__order *o, int depth, int rank)
{
    double n = o->folded ? depth : depth - rank;
    if (o->rounds > 0) {
        n = (2.0 * (depth - 1 - rank) + (o->chunks - 1) * o->rounds * depth + 1) / o->chunks;
    }
    return fmin((double)t->micro_batches, n + o->in_flight_more * depth);
}

static bool fill_parts(struct hv__search *s, struct hv_arena *a, const struct hv__team *t,
                       int order, const struct hv__cut *cut, struct hv_part_stage *parts)
{
    const struct hv__order *o = &hv__orders[order];
    int depth = hv__depth(t);
    const double *times[HV__LEGS] = {NULL};
    size_t per = cut->halves ? 2 : 1;
    for (int i = 0; i < depth * o->chunks; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1) {
            rank = depth - 1 - rank;
        }
        const struct hv__leg *l = hv__leg_at(t, rank);
        const struct hv__price *p = hv__price_of(s, t, l);
        if (!p->known || !hv__slower_of(s, t, l)->known) {
            return false;
        }
        size_t leg = (size_t)(l - t->legs);
        if (times[leg] == NULL) {
            times[leg] = time_row(a, hv__slower_of(s, t, l), per);
        }
        struct in_part in = {t, l, in_flight(t, o, depth, rank), per};
        parts[i] = (struct hv_part_stage){.time = times[leg],
                                          .memory = memory_row(s, a, p, &in),
                                          .capacity = cut->room * room_of(s, l, p) / o->chunks};
        if (l->guests > 0) {
            add_guests(s, a, &in, &parts[i], cut->room / o->chunks);
        }
    }
    return true;
}

bool hv__cuts_blocks(const struct hv__search *s)
{
    return hv_cost_model(s->k)->kind == HV_MODEL_TRANSFORMER;
}

bool hv__fill_matters(const struct hv__team *t, int order)
{
    int n_parts = hv__depth(t) * hv__orders[order].chunks;
    return t->n_legs > 1 && n_parts <= FILL_PARTS && t->micro_batches > 0 &&
           t->micro_batches < FILL_BATCHES * hv__depth(t);
}

bool hv__split(struct hv__search *s, struct hv__team *t, int order, const struct hv__cut *cut)
{
    int n_parts = hv__depth(t) * hv__orders[order].chunks;
    int per = cut->halves ? 2 : 1;
    if (n_parts > HV__CHUNKS || n_parts > per * s->n_blocks + 2) {
        return false;
    }
    struct hv_arena a = {0};
    struct hv_part_stage *parts = hv_arena_new(&a, struct hv_part_stage, (size_t)n_parts);
    struct hv_partition_result r = {0};
    struct hv_partition p = {.n_layers = (size_t)(per * s->n_blocks) + 2,
                             .n_stages = (size_t)n_parts,
                             .stages = parts,
                             .min_layers = 1,
                             .max_weight = 1};
    if (cut->fill) {
        p.sum_weight = 1;
        p.max_weight = (double)t->micro_batches - 1;
    }
    bool ok = fill_parts(s, &a, t, order, cut, parts) &&
              hv_partition_solve(&p, NULL, &a, &r, NULL) == HV_OK && r.feasible;
    for (int i = 0; ok && i < n_parts; i++) {
        t->counts[i] = (int)(r.cut[i] - (i > 0 ? r.cut[i - 1] : 0));
        if (i == 0) {
            t->counts[i]--;
        }
        if (i == n_parts - 1) {
            t->counts[i]--;
        }
        t->counts[i] *= 2 / per;
    }
    hv_arena_free(&a);
    return ok;
}
