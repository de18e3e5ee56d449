/*
 * The pricing context: block classes, the memo of part prices, the floor and the tables for
 * strategies. What a part costs is in part.c and part_layers.c, what a stage costs in stage.c.
 */
#include "solver/cost/cost.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/cost/cost_int.h"

/* Everything a price depends on. Zeroed before it is filled, so that it compares and hashes as
 * bytes. */
struct key {
    const struct hv_device_kind *device;
    uint64_t group, ep_group; /* signatures; 0: none */
    uint64_t moe;             /* of the knobs of experts; 0: none */
    double sequences, tokens, context, tp_frac;
    int tp, cp, ep, expert_tp, tp_depth, cp_heads;
    unsigned part, cls, recompute, schemes;
    unsigned members; /* of a collective, or units of a pass */
    unsigned window;  /* of units */
};
_Static_assert(sizeof(struct key) == offsetof(struct key, window) + sizeof(unsigned),
               "keys are compared as bytes and must have no padding");

struct entry {
    bool used;
    struct key key;
    struct hv_part_cost cost;
};

/* Open addressing, power-of-two capacity, at most half full. */
struct hv__memo {
    struct entry *entries;
    size_t cap, n;
};

/* Above this many prices the memo starts afresh: a search may ask for millions of shapes. */
#define MEMO_LIMIT ((size_t)1 << 18)

/* The structs may come with any padding after the flags, so those are compared by themselves. */
static bool same_block(const struct hv_block *a, const struct hv_block *b)
{
    return !memcmp(a, b, offsetof(struct hv_block, attention_bias)) &&
           a->attention_bias == b->attention_bias && a->ffn_bias == b->ffn_bias;
}

static void same_class(struct hv_cost *k, size_t block)
{
    const struct hv_model *m = k->model;
    bool table = m->kind == HV_MODEL_TRANSFORMER && m->blocks;
    for (unsigned c = k->n_classes; table && c-- > 0;) {
        if (same_block(&m->blocks[block], &m->blocks[k->representative[c]])) {
            k->cls[block] = c;
            return;
        }
    }
    k->cls[block] = k->n_classes;
    k->representative[k->n_classes++] = block;
}

static void find_runs(struct hv_cost *k)
{
    size_t n = k->model->n_blocks;
    k->runs = hv_arena_new(&k->arena, struct hv__run, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        if (!k->n_runs || k->runs[k->n_runs - 1].cls != k->cls[i]) {
            k->runs[k->n_runs++] = (struct hv__run){(int)i, (int)i, k->cls[i]};
        }
        k->runs[k->n_runs - 1].to = (int)i + 1;
    }
}

struct hv_cost *hv_cost_new(struct hv_cluster *c, struct hv_model *m, const struct hv_job *j)
{
    struct hv_cost *k = hv_xcalloc(1, sizeof *k);
    k->cluster = hv_cluster_ref(c);
    k->model = hv_model_ref(m);
    k->job = *j;
    k->memo = hv_xcalloc(1, sizeof *k->memo);
    size_t n = m->n_blocks ? m->n_blocks : 1;
    k->cls = hv_arena_new(&k->arena, unsigned, n);
    k->representative = hv_arena_new(&k->arena, size_t, n);
    if (m->kind == HV_MODEL_MODULES) {
        hv__modules_open(k);
    }
    for (size_t i = 0; i < m->n_blocks && !k->subs; i++) {
        same_class(k, i);
    }
    find_runs(k);
    return k;
}

void hv_cost_free(struct hv_cost *k)
{
    if (!k) {
        return;
    }
    hv__modules_close(k);
    hv_cluster_unref(k->cluster);
    hv_model_unref(k->model);
    free(k->memo->entries);
    free(k->memo);
    free(k->milestones);
    hv_arena_free(&k->milestones_arena);
    hv_arena_free(&k->arena);
    free(k);
}

const struct hv_cluster *hv_cost_cluster(const struct hv_cost *k)
{
    return k->cluster;
}

const struct hv_model *hv_cost_model(const struct hv_cost *k)
{
    return k->model;
}

const struct hv_job *hv_cost_job(const struct hv_cost *k)
{
    return &k->job;
}

unsigned hv_cost_block_class(const struct hv_cost *k, size_t block)
{
    return k->cls[block];
}

unsigned hv_cost_n_classes(const struct hv_cost *k)
{
    return k->n_classes;
}

size_t hv_cost_class_block(const struct hv_cost *k, unsigned cls)
{
    return k->representative[cls];
}

double hv_cost_tokens(const struct hv_cost *k)
{
    return k->model->patch_tokens > 0 ? k->model->patch_tokens : (double)k->job.sequence;
}

/* Mixes one word into a hash (multiply and fold; constants of splitmix64). */
static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xbf58476d1ce4e5b9ULL;
    return h ^ (h >> 29);
}

/*
 * Equal for groups that cost the same: kinds, islands and the pattern of nodes and link domains,
 * not which nodes. Where the network treats single nodes differently (links, matrix) the nodes
 * themselves count too.
 */
uint64_t hv__signature(const struct hv_cluster *c, const uint32_t *devices, size_t n)
{
    if (!devices || !n) {
        return 0;
    }
    bool named = c->n_links || c->matrix_bytes_per_s || c->matrix_latency_s;
    uint64_t h = HV_HASH_START;
    uint32_t first = hv_cluster_device(c, devices[0]).node;
    uint32_t domain = hv_cluster_domain_of(c, first);
    for (size_t i = 0; i < n; i++) {
        struct hv_device_ref r = hv_cluster_device(c, devices[i]);
        const struct hv_node_group *g = &c->groups[r.group];
        uint64_t where = (uint64_t)r.group << 32 | (named ? r.node : r.node - first);
        h = mix(mix(h, where), (uint64_t)(uintptr_t)r.kind);
        h = g->n_islands ? mix(h, r.slot) : h;
        h = g->domain_nodes > 1 ? mix(h, hv_node_group_domain(g, r.node) - domain) : h;
    }
    return h ? h : 1;
}

/* Of everything about experts that a price depends on. */
static uint64_t moe_signature(const struct hv_moe_knobs *m)
{
    const double shares[] = {m->capacity_factor, hv_or(m->compress_ratio, 0),
                             hv_or(m->compress_bytes_per_s, 0)};
    const int counts[] = {m->min_capacity,    m->expert_shards,   m->degree_forward,
                          m->degree_backward, (int)m->all_to_all, (int)m->n_copies};
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < HV_COUNT(shares); i++) {
        uint64_t word;
        memcpy(&word, &shares[i], sizeof word);
        h = mix(h, word);
    }
    for (size_t i = 0; i < HV_COUNT(counts); i++) {
        h = mix(h, (uint64_t)(int64_t)counts[i]);
    }
    for (size_t i = 0; i < m->n_owners; i++) {
        h = mix(h, (uint64_t)(int64_t)m->owners[i]);
    }
    for (size_t i = 0; i < m->n_copies; i++) {
        const struct hv_expert_copies *c = &m->copies[i];
        h = mix(mix(h, (uint64_t)(int64_t)c->expert), c->everywhere ? UINT64_MAX : c->n_ranks);
        for (size_t r = 0; r < c->n_ranks; r++) {
            h = mix(h, (uint64_t)(int64_t)c->ranks[r]);
        }
    }
    return h ? h : 1;
}

/* Of how many groups share the network; 0: none do. */
static uint64_t beside_signature(const struct hv_beside *b)
{
    const double counts[] = {b->tp, b->cp_heads, b->cp_ring, b->ep};
    uint64_t h = 0;
    for (size_t i = 0; i < HV_COUNT(counts); i++) {
        uint64_t word;
        memcpy(&word, &counts[i], sizeof word);
        h = word || h ? mix(h + i + 1, word) : 0;
    }
    return h;
}

static void fill_key(const struct hv_cost *k, enum hv_part part, unsigned cls,
                     const struct hv_part_query *q, struct key *key)
{
    memset(key, 0, sizeof *key);
    key->device = q->device;
    bool grouped = q->tp * q->cp > 1;
    key->group = grouped ? hv__signature(k->cluster, q->group, (size_t)(q->tp * q->cp)) : 0;
    key->ep_group = q->ep > 1 ? hv__signature(k->cluster, q->ep_group, (size_t)q->ep) : 0;
    key->group ^= beside_signature(&q->beside);
    key->sequences = q->sequences;
    key->tokens = q->tokens;
    key->context = q->context;
    key->tp_frac = q->tp_frac;
    key->moe = q->moe ? moe_signature(q->moe) : 0;
    key->tp = q->tp;
    key->cp = q->cp;
    key->ep = q->ep;
    key->expert_tp = q->expert_tp;
    key->tp_depth = q->tp_depth;
    key->cp_heads = q->cp_heads;
    key->part = part;
    key->cls = part == HV_PART_ATTENTION || part == HV_PART_FFN ? cls : 0;
    key->recompute = q->recompute;
    key->schemes = (unsigned)q->cp_order << 26 | (unsigned)q->cp_backward << 25 |
                   (unsigned)q->sharded_pipeline << 23 | (unsigned)q->sharded_weights << 24 |
                   (unsigned)q->tp_scheme << 16 | (unsigned)q->cp_scheme << 8 |
                   (unsigned)q->cp_layout << 1 | q->sequence_parallel;
}

static uint64_t hash_key(const struct key *key)
{
    uint64_t words[sizeof *key / sizeof(uint64_t)], h = HV_HASH_START;
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        h = mix(h, words[i]);
    }
    return h ^ (h >> 32);
}

static struct entry *slot_of(const struct hv__memo *memo, const struct key *key)
{
    size_t i = (size_t)hash_key(key) & (memo->cap - 1);
    while (memo->entries[i].used && memcmp(&memo->entries[i].key, key, sizeof *key)) {
        i = (i + 1) & (memo->cap - 1);
    }
    return &memo->entries[i];
}

static void grow(struct hv__memo *memo)
{
    struct hv__memo bigger = {.cap = memo->cap ? memo->cap * 2 : 256};
    bool fresh = bigger.cap > MEMO_LIMIT;
    if (fresh) {
        bigger.cap = MEMO_LIMIT;
    }
    bigger.entries = hv_xcalloc(bigger.cap, sizeof *bigger.entries);
    for (size_t i = 0; i < memo->cap && !fresh; i++) {
        if (memo->entries[i].used) {
            *slot_of(&bigger, &memo->entries[i].key) = memo->entries[i];
            bigger.n++;
        }
    }
    free(memo->entries);
    *memo = bigger;
}

struct hv_part_cost hv__price(const struct hv__ask *a)
{
    switch (a->k->model->kind) {
    case HV_MODEL_TRANSFORMER:
        return hv__price_transformer(a);
    case HV_MODEL_LAYERS:
    case HV_MODEL_GRAPH:
        return hv__price_layer(a);
    case HV_MODEL_MODULES:
    case HV_MODEL_KIND_N:
        break;
    }
    return (struct hv_part_cost){.forward_s = HV_UNKNOWN, .input_grad_s = HV_UNKNOWN};
}

struct hv_part_cost hv_cost_part(struct hv_cost *k, enum hv_part part, size_t block,
                                 const struct hv_part_query *q, struct hv_why *why)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    if (in_block && block >= k->model->n_blocks) {
        return (struct hv_part_cost){0};
    }
    if (k->subs) {
        return hv__modules_part(k, part, block, q, why);
    }
    unsigned cls = in_block ? k->cls[block] : 0;
    struct hv__ask ask = {
        k, part, in_block ? k->representative[cls] : 0, q, why, NULL,
    };
    if (why) {
        return hv__price(&ask);
    }
    if (2 * (k->memo->n + 1) > k->memo->cap) {
        grow(k->memo);
    }
    struct key key;
    fill_key(k, part, cls, q, &key);
    struct entry *e = slot_of(k->memo, &key);
    if (!e->used) {
        *e = (struct entry){true, key, hv__price(&ask)};
        k->memo->n++;
    }
    return e->cost;
}

double hv__collective_s(struct hv_cost *k, const struct hv_collective_query *q, uint64_t signature)
{
    if (2 * (k->memo->n + 1) > k->memo->cap) {
        grow(k->memo);
    }
    struct key key;
    memset(&key, 0, sizeof key);
    key.group = signature;
    key.sequences = q->bytes;
    key.tokens = q->together;
    key.members = (unsigned)q->n;
    key.part = HV_PART_N + (unsigned)q->op;
    key.schemes = (unsigned)q->algorithm;
    struct entry *e = slot_of(k->memo, &key);
    if (!e->used) {
        double time_s = hv_cost_collective(k->cluster, q, NULL).time_s;
        *e = (struct entry){true, key, {.forward_s = time_s}};
        k->memo->n++;
    }
    return e->cost.forward_s;
}

struct hv_overlap hv__units(struct hv_cost *k, const struct hv_units *runs, size_t n_runs,
                            size_t window)
{
    if (2 * (k->memo->n + 1) > k->memo->cap) {
        grow(k->memo);
    }
    struct key key;
    memset(&key, 0, sizeof key);
    key.group = HV_HASH_START;
    for (size_t i = 0; i < n_runs; i++) {
        uint64_t words[sizeof *runs / sizeof(uint64_t)];
        memcpy(words, &runs[i], sizeof words);
        for (size_t w = 0; w < HV_COUNT(words); w++) {
            key.group = mix(key.group, words[w]);
        }
    }
    key.members = (unsigned)n_runs;
    key.window = (unsigned)window;
    key.part = HV_PART_N + HV_COLLECTIVE_N;
    struct entry *e = slot_of(k->memo, &key);
    if (!e->used) {
        struct hv_overlap o = hv_overlap_units(runs, n_runs, window);
        *e = (struct entry){true, key, {.forward_s = o.exposed_s, .recompute_s = o.hidden_s}};
        k->memo->n++;
    }
    return (struct hv_overlap){e->cost.forward_s, e->cost.recompute_s};
}

const struct hv_device_kind *hv__slower(const struct hv_cost *k, const struct hv_device_kind *a,
                                        const struct hv_device_kind *b)
{
    if (a == b) {
        return a; /* the devices of a group are mostly of one kind */
    }
    double x = hv_efficiency_of(a, k->job.precision).gemm_flops_per_s;
    double y = hv_efficiency_of(b, k->job.precision).gemm_flops_per_s;
    if (!hv_known(x) || !hv_known(y)) {
        return hv_known(y) ? a : b;
    }
    return y < x ? b : a;
}

static enum hv_status check_measured(struct hv_cost *k, const struct hv_device_kind *d,
                                     struct hv_err *err)
{
    double all_s = 0;
    for (size_t i = 0; i < k->model->n_blocks; i++) {
        double own_s = hv_cost_floor_s(k, HV_PART_ATTENTION, i, d);
        if (!hv_known(own_s)) {
            return hv_err_set(err, HV_ENO,
                              "layer %zu was measured neither on %s nor on another device of this "
                              "cluster: add its forward_ms and backward_ms",
                              i, d->name);
        }
        all_s += own_s;
    }
    if (all_s > 0) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ENO,
                      "no layer of the model takes any time on %s: there is nothing "
                      "to plan",
                      d->name);
}

enum hv_status hv__check_device(struct hv_cost *k, const struct hv_device_kind *d,
                                struct hv_err *err)
{
    switch (k->model->kind) {
    case HV_MODEL_TRANSFORMER:
    case HV_MODEL_GRAPH:
        if (hv_device_has(d, k->job.precision) && hv_known(d->memory_bytes_per_s)) {
            return HV_OK;
        }
        return hv_err_set(err, HV_ENO, "%s has no %s: choose another precision or another device",
                          d->name,
                          hv_known(d->memory_bytes_per_s) ? hv_precision_name(k->job.precision)
                                                          : "known memory bandwidth");
    case HV_MODEL_LAYERS:
        return check_measured(k, d, err);
    case HV_MODEL_MODULES:
        for (size_t i = 0; i < k->n_subs; i++) {
            enum hv_status st = hv__check_device(k->subs[i], d, err);
            if (st != HV_OK) {
                return st;
            }
        }
        return HV_OK;
    case HV_MODEL_KIND_N:
        break;
    }
    return hv_err_set(err, HV_ENO, "a model of this kind cannot be priced");
}

enum hv_status hv_cost_layers(struct hv_cost *k, const struct hv_part_query *q,
                              struct hv_arena *arena, struct hv_layer_table *out,
                              struct hv_err *err)
{
    enum hv_status st = hv__check_device(k, q->device, err);
    if (st != HV_OK) {
        return st;
    }
    if (k->subs) {
        return hv__modules_layers(k, q, arena, out, err);
    }
    size_t n = k->model->n_blocks;
    *out = (struct hv_layer_table){.n_blocks = n,
                                   .forward_s = hv_arena_new(arena, double, n + 1),
                                   .backward_s = hv_arena_new(arena, double, n + 1),
                                   .parameters = hv_arena_new(arena, double, n + 1),
                                   .saved_bytes = hv_arena_new(arena, double, n + 1)};
    struct hv_part_cost halves[2] = {{0}};
    for (size_t i = 0; i < n; i++) {
        double f = out->forward_s[i], b = out->backward_s[i], p = out->parameters[i];
        double saved = out->saved_bytes[i];
        for (int half = 0; half < 2; half++) {
            struct hv_part_cost *c = &halves[half];
            if (i == 0 || k->cls[i] != k->cls[i - 1]) {
                *c = hv_cost_part(k, half ? HV_PART_FFN : HV_PART_ATTENTION, i, q, NULL);
            }
            f += c->forward_s + c->tp_forward_s + c->cp_forward_s + c->ep_forward_s;
            b += c->input_grad_s + c->weight_grad_s + c->recompute_s + c->tp_backward_s +
                 c->cp_backward_s + c->ep_backward_s;
            p += c->parameters + c->expert_parameters;
            saved += c->saved_bytes;
        }
        out->forward_s[i + 1] = f;
        out->backward_s[i + 1] = b;
        out->parameters[i + 1] = p;
        out->saved_bytes[i + 1] = saved;
    }
    bool transformer = k->model->kind == HV_MODEL_TRANSFORMER;
    out->output_bytes =
        transformer ? hv_job_activation_bytes(&k->job) * q->sequences * q->tokens * k->model->hidden
                    : 0;
    out->embedding = hv_cost_part(k, HV_PART_EMBEDDING, 0, q, NULL);
    out->head = hv_cost_part(k, HV_PART_HEAD, 0, q, NULL);
    for (size_t i = 0; i < n && !transformer; i++) {
        double bytes = hv_cost_part(k, HV_PART_ATTENTION, i, q, NULL).output_bytes * q->cp;
        out->output_bytes = bytes > out->output_bytes ? bytes : out->output_bytes;
    }
    return HV_OK;
}
