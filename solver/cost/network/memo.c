/* The table of remembered prices, and what of the network is remembered in one. */
#include "solver/cost/network/memo.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"

/* Above this many values a table starts afresh. */
#define MEMO_LIMIT ((size_t)1 << 18)

struct hv__memo hv__memo_of(size_t key_bytes, size_t value_bytes)
{
    return (struct hv__memo){.key_words = key_bytes / sizeof(uint64_t),
                             .value_words = value_bytes / sizeof(uint64_t)};
}

void hv__memo_free(struct hv__memo *m)
{
    free(m->entries);
}

static size_t entry_words(const struct hv__memo *m)
{
    return 1 + m->key_words + m->value_words;
}

/* Where the key is, or the empty place where it belongs. */
static uint64_t *slot_of(const struct hv__memo *m, const void *key)
{
    size_t each = entry_words(m), key_bytes = m->key_words * sizeof(uint64_t);
    const unsigned char *bytes = key;
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < m->key_words; i++) {
        uint64_t word;
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        h = hv__mix(h, word);
    }
    size_t at = (size_t)(h ^ (h >> 32)) & (m->cap - 1);
    while (m->entries[at * each] && memcmp(&m->entries[at * each + 1], key, key_bytes) != 0) {
        at = (at + 1) & (m->cap - 1);
    }
    return &m->entries[at * each];
}

static void grow(struct hv__memo *m)
{
    struct hv__memo bigger = *m;
    size_t each = entry_words(m);
    bigger.cap = m->cap ? m->cap * 2 : 256;
    bigger.n = 0;
    bool fresh = bigger.cap > MEMO_LIMIT;
    if (fresh) {
        bigger.cap = MEMO_LIMIT;
    }
    bigger.entries = hv_xcalloc(bigger.cap * each, sizeof *bigger.entries);
    for (size_t i = 0; i < m->cap && !fresh; i++) {
        const uint64_t *entry = &m->entries[i * each];
        if (*entry) {
            memcpy(slot_of(&bigger, entry + 1), entry, each * sizeof *entry);
            bigger.n++;
        }
    }
    free(m->entries);
    *m = bigger;
}

void *hv__memo_at(struct hv__memo *m, const void *key, bool *known)
{
    if (2 * (m->n + 1) > m->cap) {
        grow(m);
    }
    uint64_t *entry = slot_of(m, key);
    *known = *entry != 0;
    if (!*known) {
        *entry = 1;
        memcpy(entry + 1, key, m->key_words * sizeof *entry);
        m->n++;
    }
    return entry + 1 + m->key_words;
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

/* What a collective or the overlap of units depends on; zeroed before it is filled. */
struct key {
    uint64_t what; /* signature of the members, or hash of the runs */
    double bytes, together;
    unsigned op; /* HV_COLLECTIVE_N: units of a pass */
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
