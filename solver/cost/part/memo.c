/* The cache of the prices of parts; the key holds everything that a price depends on. */
#include <string.h>

#include "solver/base/rng.h"
#include "solver/cost/part/part_int.h"
#include "solver/workload/router.h"

/* Everything a price depends on. Zeroed before it is filled, so that it compares and hashes as
 * bytes. */
struct key {
    const struct hv_device_kind *device;
    uint64_t group, ep_group; /* signatures; 0: none */
    uint64_t moe;             /* of the knobs of experts; 0: none */
    uint64_t documents;       /* their lengths; 0: none */
    uint64_t routed, sources; /* class of the routing, and whose tokens; 0: even */
    double sequences, tokens, context, tp_frac;
    int tp, cp, ep, expert_tp, tp_depth, cp_heads, cp_inner, cp_tile;
    unsigned part, cls, recompute, schemes;
};
_Static_assert(sizeof(struct key) == offsetof(struct key, schemes) + sizeof(unsigned),
               "keys are compared as bytes and must have no padding");

struct hv__memo hv__part_memo(void)
{
    return hv__memo_of(sizeof(struct key), sizeof(struct hv_part_cost));
}

uint64_t hv__moe_signature(const struct hv_moe_knobs *m)
{
    const double shares[] = {m->capacity_factor, hv_or(m->compress_ratio, 0),
                             hv_or(m->compress_bytes_per_s, 0), hv_or(m->off_node_frac, -1)};
    const int counts[] = {m->min_capacity,    m->expert_shards,   m->degree_forward,
                          m->degree_backward, (int)m->all_to_all, (int)m->n_copies,
                          (int)m->kernel,     (int)m->order,      (int)m->n_target,
                          (int)m->move,       (int)m->copy_life,  (int)m->dispatch};
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < HV_COUNT(shares); i++) {
        uint64_t word;
        memcpy(&word, &shares[i], sizeof word);
        h = hv__mix(h, word);
    }
    for (size_t i = 0; i < HV_COUNT(counts); i++) {
        h = hv__mix(h, (uint64_t)(int64_t)counts[i]);
    }
    for (size_t i = 0; i < m->n_owners; i++) {
        h = hv__mix(h, (uint64_t)(int64_t)m->owners[i]);
    }
    for (size_t i = 0; i < m->n_copies; i++) {
        const struct hv_expert_copies *c = &m->copies[i];
        h = hv__mix(hv__mix(h, (uint64_t)(int64_t)c->expert),
                    c->everywhere ? UINT64_MAX : c->n_ranks);
        for (size_t r = 0; r < c->n_ranks; r++) {
            h = hv__mix(h, (uint64_t)(int64_t)c->ranks[r]);
        }
    }
    h = m->n_target > 0 ? hv_hash(h, m->target, m->n_target * m->n_target * sizeof *m->target) : h;
    return h ? h : 1;
}

/* Key of the documents in the sequences; 0: none. */
static uint64_t documents_signature(const struct hv_documents *d)
{
    uint64_t h = HV_HASH_START;
    if (d == NULL || d->n == 0) {
        return 0;
    }
    h = hv_hash(h, d->lengths, d->n * sizeof *d->lengths);
    return hv_hash(h, &d->tokens, sizeof d->tokens);
}

/* Key of the numbers of groups that share the network; 0: no groups share it. */
static uint64_t beside_signature(const struct hv_beside *b)
{
    const double counts[] = {b->tp, b->cp_heads,   b->cp_ring,   b->cp_outer,
                             b->ep, b->tp_axis[0], b->tp_axis[1]};
    uint64_t h = 0;
    for (size_t i = 0; i < HV_COUNT(counts); i++) {
        uint64_t word;
        memcpy(&word, &counts[i], sizeof word);
        h = word || h ? hv__mix(h + i + 1, word) : 0;
    }
    return h;
}

static void fill_key(const struct hv__context *k, enum hv_part part, unsigned cls,
                     const struct hv_part_query *q, struct key *key)
{
    memset(key, 0, sizeof *key);
    key->device = q->device;
    bool grouped = q->tp * q->cp > 1;
    key->group = !grouped ? 0
                 : q->group_signature
                     ? q->group_signature
                     : hv__signature(k->cluster, q->group, (size_t)(q->tp * q->cp));
    key->ep_group = q->ep < 2         ? 0
                    : q->ep_signature ? q->ep_signature
                                      : hv__signature(k->cluster, q->ep_group, (size_t)q->ep);
    key->group ^= beside_signature(&q->beside);
    key->sequences = q->sequences;
    key->tokens = q->tokens;
    key->context = q->context;
    key->tp_frac = q->tp_frac;
    key->moe = q->moe_signature ? q->moe_signature : q->moe ? hv__moe_signature(q->moe) : 0;
    key->documents = documents_signature(q->documents);
    key->routed = q->routed.cls;
    if (q->routed.cls && hv_router_has_sources(k->job.routing)) {
        key->sources = (uint64_t)q->routed.first << 32 | q->routed.of;
    }
    key->tp = q->tp;
    key->cp = q->cp;
    key->ep = q->ep;
    key->expert_tp = q->expert_tp;
    key->tp_depth = q->tp_depth;
    key->cp_heads = q->cp_heads;
    key->cp_inner = q->cp_inner;
    key->cp_tile = q->cp_tile;
    key->part = part;
    key->cls = hv__in_block(part) ? cls : 0;
    key->recompute = q->recompute;
    key->schemes = (unsigned)q->tp_regather << 29 | (unsigned)q->sliced << 28 |
                   (unsigned)q->cp_switches << 27 | (unsigned)q->cp_order << 26 |
                   (unsigned)q->cp_backward << 25 | (unsigned)q->sharded_pipeline << 23 |
                   (unsigned)q->sharded_weights << 24 | (unsigned)q->tp_scheme << 16 |
                   (unsigned)q->cp_scheme << 8 | (unsigned)q->cp_layout << 1 | q->sequence_parallel;
}

struct hv_part_cost hv__part_cost(struct hv__context *k, enum hv_part part, size_t block,
                                  const struct hv_part_query *q, struct hv_why *why)
{
    bool in_block = hv__in_block(part), known;
    if (in_block && block >= k->model->n_blocks) {
        return (struct hv_part_cost){0};
    }
    unsigned cls = in_block ? k->cls[block] : 0;
    const struct hv__ask ask = {.k = k,
                                .part = part,
                                .block = in_block ? k->representative[cls] : 0,
                                .q = q,
                                .why = why,
                                .rates = &hv__real_rates,
                                .passes = &hv__one_pass};
    if (why) {
        return k->parts->price(&ask);
    }
    struct key key;
    fill_key(k, part, cls, q, &key);
    struct hv_part_cost *cost = hv__memo_at(&k->prices, &key, &known);
    if (!known) {
        *cost = k->parts->price(&ask);
    }
    return *cost;
}
