/**
 * Inside cost: a cache of prices, with the inputs as key. The table itself, the signature of a
 * group of devices, and the two prices of the network that are remembered.
 */
#ifndef HV_SOLVER_COST_NETWORK_MEMO_H
#define HV_SOLVER_COST_NETWORK_MEMO_H

#include "solver/base/arena.h"
#include "solver/cost/network/collective.h"
#include "solver/cost/network/overlap.h"

/** Values by key: open addressing, capacity a power of two, at most half full. Above some hundred
 * thousand values it is emptied, because a search may price millions of shapes. */
struct hv__memo {
    struct hv__memo_slot *slots;
    struct hv_arena arena; /**< of the entries: each a key and its value */
    size_t key_bytes, value_bytes, cap, n;
};
/** An empty table for keys and values of so many bytes, both whole words of 8. */
struct hv__memo hv__memo_of(size_t key_bytes, size_t value_bytes);
/** Frees slots and entries. */
void hv__memo_free(struct hv__memo *m);
/** The value of a key, valid until the next call. *known false: it is new, and the caller fills it
 * in. Keys are compared as bytes. O(1). */
void *hv__memo_at(struct hv__memo *m, const void *key, bool *known);

/** Mixes one word into a hash (multiply and fold; constants of splitmix64). */
static inline uint64_t hv__mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xbf58476d1ce4e5b9ULL;
    return h ^ (h >> 29);
}

/** Equal for groups that cost the same; 0 for none. O(n log groups). */
uint64_t hv__signature(const struct hv_cluster *c, const uint32_t *devices, size_t n);

/** A table for the two calls below. */
struct hv__memo hv__network_memo(void);
/** Seconds of a collective, remembered by the signature of its members. */
double hv__collective_s(struct hv__memo *m, const struct hv_cluster *c,
                        const struct hv_collective_query *q, uint64_t signature);
/** hv_cost_together, remembered by the devices of the family. O(n). */
double hv__together(struct hv__memo *m, const struct hv_cluster *c, const struct hv_family *f,
                    size_t member);
/** hv_overlap_units, remembered. O(runs) when seen before. */
struct hv_overlap hv__units(struct hv__memo *m, const struct hv_units *runs, size_t n_runs,
                            size_t window);

#endif
