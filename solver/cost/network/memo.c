/* The table of stored prices, and the network prices that are stored in one. */
#include "solver/cost/network/memo.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"

/* Above this many values a table starts afresh. */
#define MEMO_LIMIT ((size_t)1 << 18)

/* A slot with the address of its entry; NULL: the slot is empty. */
struct hv__memo_slot {
    uint64_t hash;
    unsigned char *entry;
};

struct hv__memo hv__memo_of(size_t key_bytes, size_t value_bytes)
{
    return (struct hv__memo){.key_bytes = key_bytes, .value_bytes = value_bytes};
}

void hv__memo_free(struct hv__memo *m)
{
    free(m->slots);
    hv_arena_free(&m->arena);
}

static uint64_t hash_of(const struct hv__memo *m, const void *key)
{
    const unsigned char *bytes = key;
    uint64_t h = HV_HASH_START, word;
    for (size_t i = 0; i < m->key_bytes; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        h = hv__mix(h, word);
    }
    return h ^ (h >> 32);
}

/* Room for twice as many; the entries stay where they are, unless the table starts afresh. */
static void grow(struct hv__memo *m)
{
    size_t cap = m->cap ? m->cap * 2 : 256;
    if (cap > MEMO_LIMIT) {
        memset(m->slots, 0, m->cap * sizeof *m->slots);
        hv_arena_free(&m->arena);
        m->n = 0;
        return;
    }
    struct hv__memo_slot *slots = hv_xcalloc(cap, sizeof *slots);
    for (size_t i = 0; i < m->cap; i++) {
        const struct hv__memo_slot *old = &m->slots[i];
        size_t at = (size_t)old->hash & (cap - 1);
        while (old->entry && slots[at].entry) {
            at = (at + 1) & (cap - 1);
        }
        if (old->entry) {
            slots[at] = *old;
        }
    }
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
}

void *hv__memo_at(struct hv__memo *m, const void *key, bool *known)
{
    if (2 * (m->n + 1) > m->cap) {
        grow(m);
    }
    uint64_t hash = hash_of(m, key);
    size_t at = (size_t)hash & (m->cap - 1);
    for (; m->slots[at].entry; at = (at + 1) & (m->cap - 1)) {
        unsigned char *entry = m->slots[at].entry;
        if (m->slots[at].hash == hash && !memcmp(entry, key, m->key_bytes)) {
            *known = true;
            return entry + m->key_bytes;
        }
    }
    unsigned char *entry = hv_arena_alloc(&m->arena, 1, m->key_bytes + m->value_bytes);
    memcpy(entry, key, m->key_bytes);
    m->slots[at] = (struct hv__memo_slot){hash, entry};
    m->n++;
    *known = false;
    return entry + m->key_bytes;
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
        h = hv__mix(hv__mix(h, where), (uint64_t)(uintptr_t)r.kind);
        h = g->n_islands ? hv__mix(h, r.slot) : h;
        h = g->domain_nodes > 1 ? hv__mix(h, hv_node_group_domain(g, r.node) - domain) : h;
    }
    return h ? h : 1;
}

/* Key of a collective or of the overlap of units; zeroed before it is filled. */
struct key {
    uint64_t what; /* signature of the members, or hash of the runs */
    double bytes, together;
    unsigned op; /* HV_COLLECTIVE_N: units of a pass; + 1: groups that share the network */
    unsigned algorithm, members, window;
};
_Static_assert(sizeof(struct key) == offsetof(struct key, window) + sizeof(unsigned),
               "keys are compared as bytes and must have no padding");

struct hv__memo hv__network_memo(void)
{
    return hv__memo_of(sizeof(struct key), sizeof(struct hv_overlap));
}

double hv__collective_s(struct hv__memo *m, const struct hv_cluster *c,
                        const struct hv_collective_query *q, uint64_t signature)
{
    const struct key key = {.what = signature,
                            .bytes = q->bytes,
                            .together = q->together,
                            .op = q->op,
                            .algorithm = q->algorithm,
                            .members = (unsigned)q->n};
    bool known;
    double *time_s = hv__memo_at(m, &key, &known);
    if (!known) {
        *time_s = hv_cost_collective(c, q, NULL).time_s;
    }
    return *time_s;
}

double hv__together(struct hv__memo *m, const struct hv_cluster *c, const struct hv_family *f,
                    size_t member)
{
    if (f->n <= f->size) {
        return 1; /* there is no other group */
    }
    const struct key key = {.what =
                                hv_hash_words(HV_HASH_START, f->devices, f->n * sizeof *f->devices),
                            .bytes = (double)f->n,
                            .together = (double)member,
                            .op = HV_COLLECTIVE_N + 1,
                            .members = (unsigned)f->size,
                            .window = (unsigned)f->stride};
    bool known;
    double *many = hv__memo_at(m, &key, &known);
    if (!known) {
        *many = hv_cost_together(c, f, member);
    }
    return *many;
}

struct hv_overlap hv__units(struct hv__memo *m, const struct hv_units *runs, size_t n_runs,
                            size_t window)
{
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < n_runs; i++) {
        uint64_t words[sizeof *runs / sizeof(uint64_t)];
        memcpy(words, &runs[i], sizeof words);
        for (size_t w = 0; w < HV_COUNT(words); w++) {
            h = hv__mix(h, words[w]);
        }
    }
    const struct key key = {
        .what = h, .op = HV_COLLECTIVE_N, .members = (unsigned)n_runs, .window = (unsigned)window};
    bool known;
    struct hv_overlap *o = hv__memo_at(m, &key, &known);
    if (!known) {
        *o = hv_overlap_units(runs, n_runs, window);
    }
    return *o;
}
