/** Inside eval: the members and the data of gradient reductions. */
#ifndef HV_SOLVER_EVAL_TRAIN_REDUCE_INT_H
#define HV_SOLVER_EVAL_TRAIN_REDUCE_INT_H

#include "solver/eval/train/steps.h"

/** Values of from2 for segments that are not half blocks: the embedding or the head of a leaf of
 * the model, below 0. */
static inline int hv__end_of(size_t leaf, bool head)
{
    return -1 - 2 * (int)leaf - (head ? 1 : 0);
}
static inline size_t hv__end_leaf(int from2)
{
    return (size_t)(-1 - from2) / 2;
}
static inline bool hv__end_is_head(int from2)
{
    return (-1 - from2) % 2 == 1;
}

/** Delays inside a pass that is played: what comes after a time of the pass as it was planned is
 * later by so much. */
struct hv__delays {
    struct hv__delay {
        double after_s, by_s;
    } *items; /**< by after_s */
    size_t n, cap;
    double known_until_s; /**< planned time until which all delays are listed */
    double rank_end_s;    /**< end of the last pass of the rank; infinite: not known yet */
};

/** A global stage that holds a segment; of a stage with layer-wise degrees one part of it. */
struct hv__holder {
    size_t pipeline, flat_rank;
    struct hv__rank *rank;
    const struct hv__gstage *g;      /**< of a part: with its range and its ends */
    const struct hv_stage *stage;    /**< of the plan, with the degrees of these blocks */
    double ready_s, duration_s;      /**< end and length of its last backward */
    const struct hv_pass *pass;      /**< the price of that */
    size_t milestone;                /**< arrival.c: of its last answer */
    const struct hv__delays *delays; /**< in_turns.c: of its last backward; NULL: none */
};

/** Half blocks with equal holders. */
struct hv__segment {
    int from2, to2; /**< or hv__end_of(…) in both */
    struct hv__holder *holders;
    size_t n_holders;
};

/** Networks of nodes, by their number, and named links of the network, numbered behind the nodes,
 * that a reduction uses; none when it stays inside one node or one link domain. */
struct hv__lanes {
    uint32_t *ids;
    double *shares; /**< of each that it can keep busy: 1, less on a link wider than the NICs */
    size_t n;
};

/** Dense and routed parameters, all ranks together. */
struct hv__parameters {
    double dense, experts;
};
/** Those of half blocks of a model of these leaves. O(half blocks + leaves). */
struct hv__parameters hv__range_parameters(struct hv_cost *k, const struct hv__leaves *leaves,
                                           struct hv_range r);

/** Experts of a segment that the same ranks of their groups hold. */
struct hv__expert_set {
    double parameters; /**< of all of them, all ranks that cut one together */
    bool lent;         /**< copies that come anew every iteration: the sums go to the owner */
    int ep, shards;    /**< of the first holder */
    size_t ranks;      /**< of the first holder's group that hold them */
    const bool *on;    /**< ranks of the groups of all holders: [at[i], at[i + 1]) of holder i */
    const size_t *at;  /**< [holders + 1] */
};
/** Sets of experts; the items live in the arena. */
struct hv__expert_sets {
    struct hv__expert_set *items;
    size_t n, cap;
};
/** The experts of a segment that plans place by owners or copies; those with copies that come anew
 * are listed twice, their owners alone and with the copies. O(blocks · experts · (holders · ep +
 * sets)); O(blocks · holders) without such knobs. */
struct hv__expert_sets hv__expert_sets(const struct hv__lowered *l, const struct hv__segment *s);

/** Devices from one holder of a slice to the next: of what tensor parallelism cuts, or of routed
 * experts, which ep ranks (and the ranks that cut each) hold in turn. */
static inline size_t hv__holder_stride(const struct hv_stage *s, bool experts)
{
    int ep = hv_stage_experts_over(s);
    return experts ? (size_t)hv_stage_expert_tp(s, ep) * (size_t)ep : (size_t)s->tp.degree;
}

/** Cut of a segment or of its experts: every device has one of `slices`, or several where fewer
 * devices hold them all, and one of `shards` of it. */
struct hv__cut {
    bool experts;
    size_t slices, shards;
    size_t members; /**< of a reduction; 0: all that hold the same */
};
/** True where every node of one of these reductions takes part in all of them. O(devices). */
bool hv__all_concurrent(const struct hv__lowered *l, const struct hv__segment *s,
                        const struct hv__cut *cut);
/** Reductions of these that share the network with the first one (hv_cost_together). O(devices),
 * O(devices · slices · log) where holders of one whole lie on several nodes. */
double hv__concurrent_reductions(const struct hv__lowered *l, const struct hv__segment *s,
                                 const struct hv__cut *cut);

/** Cuts the model into segments. O(operations + cuts × holders). */
struct hv__segment *hv__segments(const struct hv__lowered *l, size_t *out_n);
/** Seconds on the wire of the gradients of so many parameters of a segment, or of others that the
 * same ranks hold. O(devices log devices). */
double hv__bucket_s(const struct hv__lowered *l, const struct hv__segment *s,
                    struct hv__parameters p);
/**
 * True where every pipeline holds tied embeddings twice, on different ranks. False where one rank
 * has both: one stage, V placements, two directions; nor where ranks hold shards of the weights.
 * O(holders).
 */
bool hv__ends_apart(const struct hv__segment *s);
/** The holders at the first (0) or the last (1) end, where hv__ends_apart. */
struct hv__segment hv__one_end(const struct hv__lowered *l, const struct hv__segment *s,
                               size_t end);
/**
 * Seconds until every device of the first stage has summed `bytes` (whole, all tp ranks together)
 * with its mirror in the last one, all pairs at once over the networks of their nodes (Megatron-LM,
 * embedding groups; DeepSpeed's pipeline engine, ReduceTiedGrads). O(devices of both stages).
 */
double hv__pairs_s(const struct hv__lowered *l, const struct hv__segment *s, double bytes);
/** Networks and links that the ring through the nodes of a segment uses. O(devices + nodes ·
 * links). */
struct hv__lanes hv__segment_lanes(const struct hv__lowered *l, const struct hv__segment *s);

/** Parameters of a segment. O(half blocks + leaves). */
struct hv__parameters hv__segment_parameters(const struct hv__lowered *l,
                                             const struct hv__segment *s);
/** True where the plan sums gradients on parameter servers. */
static inline bool hv__by_servers(const struct hv__lowered *l)
{
    return l->plan->sync.kind == HV_SYNC_PS || l->plan->sync.kind == HV_SYNC_WSP;
}
/** Seconds of the gather of updated weights over the shard group of a rank's stage, with zero 1 and
 * 2; all copies of an entry take part. `late`: of the weights that are gathered beside the next
 * forward pass, else of those at the end of an iteration. */
double hv__gather_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                    const struct hv__rank *rk, bool late);
/** The same of shares of its dense and its routed parameters (0 to 1), where all blocks have the
 * degrees of the stage. */
double hv__gather_share_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                          const struct hv__rank *rk, struct hv__parameters share);
/** True where gathers of a stage, or of some of its parts, run beside the next forward pass, not at
 * the end of an iteration. */
bool hv__gathers_late(const struct hv__lowered *l, const struct hv_stage *s);

#endif
