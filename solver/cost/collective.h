/**
 * Seconds of collectives and transfers on the real topology.
 *
 * Ring, tree, in-switch, hierarchical and two-hop forms with the slowest link of each level at the
 * share of its rate that messages of that size get (link_curve.h), NIC bandwidth shared among the
 * groups that run together. A link domain of several nodes (an NVL72 rack) counts as one large
 * node. Formulae: Thakur et al. 2005 for ring and tree, DeepEP for two hops. Thread: any. Errors:
 * none; HV_UNKNOWN where two members are not connected.
 */
#ifndef HV_SOLVER_COST_COLLECTIVE_H
#define HV_SOLVER_COST_COLLECTIVE_H

#include "solver/cost/why.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/plan.h"
#include <stdint.h>

/** What a group of devices does with a buffer; HV_P2P moves it from one device to one other. */
enum hv_collective {
    HV_ALL_REDUCE,
    HV_ALL_GATHER,
    HV_REDUCE_SCATTER,
    HV_ALL_TO_ALL,
    HV_BROADCAST,
    HV_REDUCE,
    HV_P2P,
    HV_COLLECTIVE_N
};
/** "all_reduce", "all_gather", …. */
const char *hv_collective_name(enum hv_collective c);

/** What is asked. */
struct hv_collective_query {
    enum hv_collective op;
    /** Full gathered or reduced tensor; for all_to_all the local send buffer; for p2p the message.
     */
    double bytes;
    const uint32_t *devices; /**< members in rank order; p2p: sender, receiver */
    size_t n;
    /** HV_ALGO_AUTO = the fastest that applies; all_to_all: ring = direct, hierarchical = two
     * hops at once (DeepEP), tree = in turn, with every copy (2DH, Hwang et al. 2023).
     */
    enum hv_sync_algorithm algorithm;
    double
        together; /**< groups of this shape that share each node's network at the same time, ≥ 1 */
    double copies; /**< all_to_all: members that every item of `bytes` goes to (top-k experts);
                      two hops carry an item to each node once. 0 or 1: one */
};

/** What it costs. */
struct hv_collective_cost {
    double time_s;
    double alpha_s;                   /**< part of it that bytes do not change */
    double messages;                  /**< per member */
    double node_bytes;                /**< sent per member inside nodes and link domains */
    double network_bytes;             /**< sent per node between them, all `together` groups */
    enum hv_sync_algorithm algorithm; /**< the one used */
};

/** Prices one collective. `why` may be NULL. O(n log groups), and O(n log n) where members do not
 * come in rising order. */
struct hv_collective_cost hv_cost_collective(const struct hv_cluster *c,
                                             const struct hv_collective_query *q,
                                             struct hv_why *why);

/**
 * Seconds until `bytes` (all data-parallel shares of one micro-batch together) have moved from the
 * ranks of one stage to those of the next; flows are spread evenly over the ranks and bounded by
 * links, NICs of both sides, the network and its named links, which all flows over them share.
 */
double hv_cost_hop(const struct hv_cluster *c, const uint32_t *from, size_t n_from,
                   const uint32_t *to, size_t n_to, double bytes, struct hv_why *why);

#endif
