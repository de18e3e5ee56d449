/**
 * Parts of a model: queries and prices. The calls are in cost/cost.h.
 */
#ifndef HV_SOLVER_COST_PART_PART_H
#define HV_SOLVER_COST_PART_PART_H

#include "solver/inventory/device.h"
#include "solver/plan/plan.h"

/** The parts that are priced: the halves of a block, and the embedding and the head. */
enum hv_part { HV_PART_ATTENTION, HV_PART_FFN, HV_PART_EMBEDDING, HV_PART_HEAD, HV_PART_N };

/** How many rank groups of each kind share the network with this one (hv_cost_together); 0: not
 * looked at, as many as there are ranks between its members. */
struct hv_beside {
    double tp, cp_heads, cp_ring, cp_outer, ep;
    double tp_axis[2]; /**< grids and cubes: along the second and third axis; tp is the first */
};

/** Where the job's routing of tokens is asked for a part with experts. */
struct hv_routed_at {
    uint64_t cls; /**< hv_router_class; 0: experts are used evenly, the rest is not looked at */
    size_t iteration, layer; /**< layer: among those with experts */
    size_t first, of;        /**< ranks `first` on have the tokens of the group, of so many ranks */
};

/** The query of a part: everything that its price depends on except the block itself. */
struct hv_part_query {
    const struct hv_device_kind *device; /**< the slowest kind of the tensor-parallel group */
    int tp, cp, ep;
    int expert_tp;  /**< ranks that cut one expert: 0 or tp as everything else, 1 whole experts on
                       all tp ranks, each of which sends its own share of the tokens */
    double tp_frac; /**< what this rank has of everything that tensor parallelism cuts; 0: equal
                       shards, 1 / tp */
    enum hv_tp_scheme tp_scheme;
    int tp_depth;     /**< 2.5d: copies of the q × q grid; 0 or 1 otherwise */
    bool tp_regather; /**< 3d: gathered inputs and weights are dropped and gathered once more for
                         the backward pass */
    enum hv_cp_scheme cp_scheme;
    int cp_heads;     /**< heads part of cp (usp, loongtrain); 0 or 1: none */
    int cp_inner;     /**< ranks of the inner ring, of a team in wallfacer; 0 or 1: none */
    bool cp_switches; /**< dsp: the block before is cut along another dimension of the tokens */
    int cp_tile;      /**< queries and keys of one tile of the attention kernel; 0: 128 */
    enum hv_cp_layout cp_layout;
    enum hv_cp_order cp_order;       /**< which of heads and ring has neighbouring ranks */
    enum hv_cp_backward cp_backward; /**< tensors that a ring passes on in the backward pass */
    bool sequence_parallel;
    bool sharded_weights; /**< ZeRO-3 or FSDP; decides which kernels are in use */
    bool
        sharded_pipeline; /**< as DeepSpeed runs pipelines: plain 1F1B with ZeRO-1 or 2; likewise */
    double sequences;     /**< of one micro-batch on one data-parallel rank; fractions allowed */
    double tokens;        /**< per sequence, before cp */
    const struct hv_documents *documents; /**< packed into the sequences; NULL: each is one */
    double context;     /**< extra key/value tokens seen before these (slices); 0 */
    bool sliced;        /**< later slices of the sequence read keys and values of this one: they are
                           kept whatever is recomputed */
    unsigned recompute; /**< mask of enum hv_recompute */
    const uint32_t
        *group; /**< tp·cp consecutive devices of the rank group, for its collectives; NULL: tp
                   collectives priced on the device's own link as if inside one node */
    const uint32_t *ep_group; /**< devices of the expert-parallel group, or NULL (ep = 1) */
    /** Keys of both groups and of the knobs of experts; 0: not computed. */
    uint64_t group_signature, ep_signature, moe_signature;
    const struct hv_moe_knobs *moe; /**< or NULL */
    struct hv_beside beside;
    struct hv_routed_at routed;
};

/** Values that one rank sends, in the mean over the ranks of its group. */
struct hv_sent {
    double forward, backward;
};

/** What one micro-batch makes a rank send, by kind of exchange. */
struct hv_traffic {
    struct hv_sent tp;      /**< between tensor-parallel ranks, of blocks; of grids the operands
                               and results of products, without the sums of norms */
    struct hv_sent tp_tree; /**< 2d, 2.5d: values of blocks times their hops on the longest path
                               of binomial trees, which the papers count */
    struct hv_sent depth; /**< 2.5d, once per iteration: gradients between the copies of weights */
    struct hv_sent vocabulary; /**< the same, of embedding and head */
    struct hv_sent cp;         /**< between context-parallel ranks */
    struct hv_sent cp_hop;     /**< of these, one hop of a ring */
    struct hv_sent cp_most;    /**< as cp, by the rank that sends most */
    struct hv_sent ep;         /**< between expert-parallel ranks */
};

/** Adds the traffic of `times` parts or passes, without what is sent once per iteration. */
static inline void hv_traffic_add(struct hv_traffic *to, const struct hv_traffic *x, double times)
{
    struct hv_sent *a[] = {&to->tp, &to->tp_tree, &to->vocabulary, &to->cp, &to->cp_most, &to->ep};
    const struct hv_sent *b[] = {&x->tp, &x->tp_tree, &x->vocabulary, &x->cp, &x->cp_most, &x->ep};
    for (int i = 0; i < 6; i++) {
        a[i]->forward += times * b[i]->forward;
        a[i]->backward += times * b[i]->backward;
    }
    to->cp_hop.forward = x->cp_hop.forward > 0 ? x->cp_hop.forward : to->cp_hop.forward;
    to->cp_hop.backward = x->cp_hop.backward > 0 ? x->cp_hop.backward : to->cp_hop.backward;
}

/** Price of one part for one micro-batch on one rank. Seconds are compute unless named otherwise.
 */
struct hv_part_cost {
    double forward_s, input_grad_s, weight_grad_s, recompute_s;
    double tp_forward_s, tp_backward_s; /**< exposed tensor-parallel collectives; backward includes
                                           those of recompute */
    double cp_forward_s, cp_backward_s; /**< exposed context-parallel exchange */
    double ep_forward_s, ep_backward_s; /**< exposed expert all-to-all */
    /** Seconds of these exchanges from start to end, exposed or overlapped. */
    double tp_wire_forward_s, tp_wire_backward_s, cp_wire_forward_s, cp_wire_backward_s,
        ep_wire_forward_s, ep_wire_backward_s;
    /** Of these, latency and compression: no bytes move, and others may use the links meanwhile. */
    double tp_latency_forward_s, tp_latency_backward_s, cp_latency_forward_s, cp_latency_backward_s,
        ep_latency_forward_s, ep_latency_backward_s;
    struct hv_traffic sent;
    double flops_forward;     /**< model FLOPs on this rank, without recompute */
    double parameters;        /**< dense parameters on this rank (after tp) */
    double expert_parameters; /**< routed experts on this rank (after tp and ep), the most that one
                                 holds */
    double saved_bytes;       /**< activations kept from forward to weight gradient */
    double saved_input_bytes; /**< of these, freed only at the weight gradient (zero-bubble M_W) */
    double transient_bytes;   /**< live only during the pass (logits, attention scores, recompute
                                 peak) */
    double output_bytes;      /**< activation handed on, per rank */
    double routed;            /**< 1 where the part sends tokens to experts, else 0 */
    double dropped_frac;      /**< share of the tokens of the rank's group that find no place */
    /** Seconds on the network, none of them in the figures above: copies of experts, sent once in
     * an iteration; experts that come before a forward and before a backward pass; their gradients.
     */
    double copies_s, fetch_s, fetch_again_s, push_s;
    /** Of fetch_s and push_s, seconds between link domains, and the latency in them. */
    double fetch_far_s, push_far_s, fetch_latency_s, push_latency_s;
    /** Where a plan places experts: what each rank of the expert-parallel group computes, over the
     * busiest one, and the bytes of the three figures above that are of its tokens. NULL: as the
     * busiest one. Lives as long as the context. */
    const double *rank_load;
    double routed_saved_bytes, routed_input_bytes, routed_transient_bytes;
};

/** Per-layer prices of one query as prefix sums over blocks, embedding and head apart. */
struct hv_layer_table {
    size_t n_blocks;
    double *forward_s, *backward_s; /**< n_blocks + 1 prefix sums, exposed communication included;
                                       backward with recompute */
    double *parameters;             /**< n_blocks + 1 prefix sums, on one rank */
    double *saved_bytes;            /**< n_blocks + 1 prefix sums */
    double output_bytes; /**< handed on after any block by one dp rank (all tp ranks together) */
    struct hv_part_cost embedding, head;
};
#endif
