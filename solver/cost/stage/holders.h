/** Ranks that share the shards of a stage's weights, gradients or states, and what their exchanges
 * take. */
#ifndef HV_SOLVER_COST_STAGE_HOLDERS_H
#define HV_SOLVER_COST_STAGE_HOLDERS_H

#include "solver/cost/network/collective.h"
#include "solver/cost/stage/stage_int.h"

/** Devices of a collective. */
struct hv__members {
    uint32_t *ids; /**< [n] */
    size_t n;
    double together;    /**< groups that share the network with them */
    uint64_t signature; /**< equal for groups with equal links */
    bool far;           /**< over the network between nodes */
};

/** The ranks that share a shard, and those of other groups that hold the same one where passes sum
 * over these too (else across.n = 0). */
struct hv__shard_holders {
    struct hv__members own, across;
};

/** Seconds of an exchange, and those of them on the network between nodes. */
struct hv__shard_s {
    double all_s, network_s;
};

/** Finds those of a rank: it and every `stride`-th one of its stage, in groups of zero.shard_group.
 * Owner of what it fills in: hv__free_shard_holders. O(devices of the entry). */
void hv__find_shard_holders(struct hv__context *k, const struct hv_stage_query *q,
                            const struct hv__rank *rank, size_t stride,
                            struct hv__shard_holders *h);
/** Frees them; `{0}` is empty. */
void hv__free_shard_holders(struct hv__shard_holders *h);

/** A gather or a scatter of `bytes` over those who share them; behind a scatter the sum of the
 * shard with those of other groups, where the plan asks for it after every pass. Gathers and
 * scatters run by the knob of sharded states, sums by the plan's. */
struct hv__shard_s hv__share_s(struct hv__context *k, const struct hv_stage_query *q,
                               const struct hv__rank *rank, enum hv_collective op,
                               const struct hv__shard_holders *h, double bytes);

#endif
