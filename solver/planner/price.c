/*
 * Prices of blocks on pools. They rank candidates and split blocks and batch; the value of a plan
 * comes from hv_eval alone.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition.h"

#include <math.h>
#include <string.h>

/* Transfers of more flows count as work, one operation per flow. */
#define MANY_FLOWS 4096

/* `host`: mask of offloaded states. */
double hv__bytes_per_parameter(const struct hv_job *j, const struct hv__replica_sketch *r,
                               int holders, unsigned host)
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
    if (r->zero >= 1) {
        rest /= holders;
    }
    if (r->zero >= 2 && !r->reduce_late) {
        gradients /= holders;
    }
    if (r->zero >= 3 && !r->keeps_gathered) {
        weights /= holders;
    }
    return weights + gradients + rest;
}

double hv__state_bytes(const struct hv_job *j, const struct hv__replica_sketch *r,
                       const struct hv__stage_run *run, const struct hv__price *p)
{
    int sharers = hv__run_sharers(r, run), experts = hv__run_holders(run) / run->ep;
    experts = experts < sharers ? experts : sharers;
    return (p->parameters - p->expert_parameters) *
               hv__bytes_per_parameter(j, r, sharers, run->offload) +
           p->expert_parameters * hv__bytes_per_parameter(j, r, experts, run->offload);
}

static struct hv_part_query query_of(struct hv__search *s, const struct hv__price *p)
{
    const struct hv__pool *pool = &s->pools[p->pool];
    const struct hv__stage_run run = {.cp = p->cp, .cp_way = p->cp_way};
    const struct hv_cp cp = hv__cp_of(s, &run);
    struct hv_part_query q = {.device = pool->kind,
                              .tp = p->tp,
                              .cp = p->cp,
                              .ep = p->ep,
                              .cp_scheme = cp.scheme,
                              .cp_heads = cp.ulysses,
                              .cp_layout = cp.layout,
                              .cp_backward = cp.backward,
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

/* Seconds to fetch the weights of a block from the host, once per pass, that the passes do not
 * overlap; all devices of a node fetch at once. */
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

/* The fraction of a block that is its attention; one half where it cannot be split. */
static void fill_halves(struct hv__search *s, const struct hv_part_query *q, struct hv__price *p)
{
    p->first_s = p->first_parameters = p->first_saved = 0.5;
    if (!hv__splits_blocks(s)) {
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
    return a->pool == b->pool && a->tp == b->tp && a->cp == b->cp && a->cp_way == b->cp_way &&
           a->ep == b->ep && a->sequences == b->sequences && a->recompute == b->recompute &&
           a->sharded == b->sharded && a->fetched == b->fetched;
}

static uint64_t price_hash(const struct hv__price *p)
{
    const int key[] = {p->pool,           p->tp,      p->cp,     p->cp_way, p->ep, p->sequences,
                       (int)p->recompute, p->sharded, p->fetched};
    return hv_hash_words(HV_HASH_START, key, sizeof key);
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

const struct hv__price *hv__price_of(struct hv__search *s, const struct hv__replica_sketch *r,
                                     const struct hv__stage_run *run)
{
    bool sharded = r->zero >= 3 && hv__run_holders(run) > 1 && s->pools[run->pool].shards_change;
    int fetched = r->zero >= 3 ? hv__run_sharers(r, run) : 1;
    struct hv__price want = {.pool = run->pool,
                             .tp = run->tp,
                             .cp = run->cp,
                             .cp_way = run->cp_way,
                             .ep = run->ep,
                             .sequences =
                                 (r->micro_batch - run->second_sequences + run->dp - 1) / run->dp,
                             .recompute = run->recompute,
                             .sharded = sharded,
                             .fetched = run->offload & HV__HOST(HV_OFFLOAD_WEIGHTS) ? fetched : 0};
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

const struct hv__price *hv__slower_of(struct hv__search *s, const struct hv__replica_sketch *r,
                                      const struct hv__stage_run *run)
{
    const struct hv__price *own = hv__price_of(s, r, run);
    if (run->second_dp == 0 || !own->known) {
        return own;
    }
    struct hv__stage_run turned = hv__run_swapped(r, run);
    const struct hv__price *second = hv__price_of(s, r, &turned);
    return second->known && second->block_s <= own->block_s ? own : second;
}

/* ---- transfers between pools --------------------------------------------------------------- */

/* Slot of a transfer in the hash table; empty when it is new. */
static struct hv__pool_hop *hop_place(struct hv__pool_hop *table, size_t cap,
                                      const struct hv__pool_hop *want)
{
    const int key[] = {want->from, want->n_from, want->to, want->n_to};
    uint64_t hash = hv_hash(HV_HASH_START, key, sizeof key);
    size_t at = hv_hash(hash, &want->bytes, sizeof want->bytes) & (cap - 1);
    for (; table[at].n_from > 0; at = (at + 1) & (cap - 1)) {
        const struct hv__pool_hop *x = &table[at];
        if (x->from == want->from && x->n_from == want->n_from && x->to == want->to &&
            x->n_to == want->n_to && x->bytes == want->bytes) {
            break;
        }
    }
    return &table[at];
}

static void grow_hops(struct hv__search *s)
{
    size_t cap = s->cap_hops > 0 ? 2 * s->cap_hops : 256;
    struct hv__pool_hop *table = hv_arena_new(&s->arena, struct hv__pool_hop, cap);
    for (size_t i = 0; i < s->cap_hops; i++) {
        if (s->hops[i].n_from > 0) {
            *hop_place(table, cap, &s->hops[i]) = s->hops[i];
        }
    }
    s->hops = table;
    s->cap_hops = cap;
}

double hv__run_hop_s(struct hv__search *s, const struct hv__replica_sketch *r, int i)
{
    const struct hv__stage_run *a = &r->runs[i - 1], *b = &r->runs[i];
    const struct hv__price *c = hv__price_of(s, r, a);
    struct hv__pool_hop want = {.from = a->pool,
                                .n_from = a->tp * a->cp * a->dp,
                                .to = b->pool,
                                .n_to = b->tp * b->cp * b->dp,
                                .bytes = c->table.output_bytes * a->dp};
    if (2 * (s->n_hops + 1) > s->cap_hops) {
        grow_hops(s);
    }
    struct hv__pool_hop *x = hop_place(s->hops, s->cap_hops, &want);
    if (x->n_from == 0) {
        want.seconds =
            hv_cost_hop(hv_cost_cluster(s->k), s->pools[a->pool].ids, (size_t)want.n_from,
                        s->pools[b->pool].ids, (size_t)want.n_to, want.bytes, NULL);
        *x = want;
        s->n_hops++;
        double flows = fmax(want.n_from, want.n_to);
        s->work += flows > MANY_FLOWS ? flows : 0;
    }
    return x->seconds;
}
