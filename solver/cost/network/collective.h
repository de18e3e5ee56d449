/**
 * Seconds of collectives and transfers on the real topology.
 *
 * Ring, tree, in-switch, hierarchical and two-hop forms with the slowest link of each level at the
 * share of its rate that messages of that size get (link_curve.h), NIC bandwidth shared among the
 * groups that run together. A link domain of several nodes (an NVL72 rack) counts as one large
 * node. Formulae: Thakur et al. 2005 for ring and tree, DeepEP for two hops. Thread: any. Errors:
 * none; HV_UNKNOWN where two members are not connected.
 */
#ifndef HV_SOLVER_COST_NETWORK_COLLECTIVE_H
#define HV_SOLVER_COST_NETWORK_COLLECTIVE_H

#include "solver/base/why.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/plan.h"
#include <stdint.h>

/** Collective operations; HV_P2P moves a buffer from one device to one other. */
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

/** A collective to price. */
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
    const double *matrix; /**< all_to_all: [n × n] bytes that each member (row) sends to each
                             (column) instead of equal parts of `bytes`, own ones free; or NULL */
    /** all_to_all, direct: members inside a house and those in others are sent to at the same time
     * over communicators of their own, so that the longer of both counts (Pipe-A2A, Shi et al.
     * 2024, ScheMoE). Else messages start one after the other, and on plain links follow each
     * other. */
    bool pipe;
};

/** Price of a collective. */
struct hv_collective_cost {
    double time_s;
    double alpha_s;  /**< part of it that does not depend on the bytes */
    double messages; /**< per member */
    /** Sent per member inside nodes and link domains, and per node between them by all `together`
     * groups; of a matrix by the busiest member and the busiest node. */
    double node_bytes, network_bytes;
    enum hv_sync_algorithm algorithm; /**< the one used */
};

/** Prices one collective. `why` may be NULL. O(n log groups), and O(n log n) where members do not
 * come in rising order. */
struct hv_collective_cost hv_cost_collective(const struct hv_cluster *c,
                                             const struct hv_collective_query *q,
                                             struct hv_why *why);

/** Groups that run the same collective at the same time: of `n` devices in rank order, each group
 * has `size` that lie `stride` apart, and as many groups lie between them. */
struct hv_family {
    const uint32_t *devices;
    size_t n, stride, size;
};
/**
 * Number of groups that share the network with the one that holds devices[member], itself included:
 * the rate of the slowest NIC or named link on its way for one group alone, divided by the rate on
 * the tightest one, where each is divided among the groups that use it. Groups within one node or
 * link domain use none. 1: the group shares with no other. O(n log n), O(n) where devices rise
 * within groups.
 */
double hv_cost_together(const struct hv_cluster *c, const struct hv_family *f, size_t member);

/** Network elements that transfers share, in one direction. Constant, text. */
enum hv_wire {
    HV_WIRE_NODE_OUT,   /**< all NICs of a node, sending; number: the node */
    HV_WIRE_NODE_IN,    /**< the same, receiving */
    HV_WIRE_PAIR,       /**< the network between two nodes; from × nodes + to */
    HV_WIRE_LINK,       /**< a named link of the network; 2 × its number, + 1 backwards */
    HV_WIRE_OWN,        /**< a link between two ranks of a plan alone; numbered by the caller */
    HV_WIRE_DEVICE_OUT, /**< the link of a device to its peers, sending; number: the device */
    HV_WIRE_DEVICE_IN,  /**< the same, receiving */
    HV_WIRE_HOST_OUT,   /**< the link of a device to its host, sending; number: the device */
    HV_WIRE_HOST_IN,    /**< the same, receiving */
    HV_WIRE_ROOT_OUT, /**< the link that an island's devices share (a PCIe root), out of it; number:
                         the island's first device */
    HV_WIRE_ROOT_IN,  /**< the same, into it */
    HV_WIRE_HOST,     /**< the memory of a node's host, read and written; number: the node */
    HV_WIRE_N
};
/** One element in one direction, of all there are. */
static inline uint64_t hv_wire_id(enum hv_wire kind, uint64_t number)
{
    return number * HV_WIRE_N + (uint64_t)kind;
}

/** Time that a transfer alone keeps an element busy. */
struct hv_wire_use {
    uint64_t wire; /**< hv_wire_id */
    double busy_s;
    const char *why; /**< text of the element */
};

/** Activations from the ranks of one stage to those of another: `bytes` in all, spread evenly over
 * as many flows as the larger side has ranks. */
struct hv_hop_query {
    const uint32_t *from, *to;
    size_t n_from, n_to;
    double bytes;
};

/** Seconds of a hop in parts. */
struct hv_hop_cost {
    double latency_s;  /**< independent of the bytes */
    double alone_s;    /**< for the bytes of the slowest flow, if it had its path to itself */
    double bytes_s;    /**< for the bytes of all flows, which share elements: at least alone_s */
    double flow_bytes; /**< bytes of one flow */
};

/** The parts of hv_cost_hop, and the list of hv_cost_hop_uses in `uses`. O(flows, · log where
 * devices do not rise, + links). */
struct hv_hop_cost hv_cost_hop_parts(const struct hv_cluster *c, const struct hv_hop_query *q,
                                     struct hv_wire_use *uses, size_t *n_uses, struct hv_why *why);
/**
 * Lists the network elements (no links inside nodes and link domains) that a transfer keeps busy;
 * returns their number. `out` has room for 4 × the flows + 2 × the named links. O(flows log flows +
 * links).
 */
size_t hv_cost_hop_uses(const struct hv_cluster *c, const struct hv_hop_query *q,
                        struct hv_wire_use *out);

/** What all flows of a node to (or from) one other node get together: its NICs, and the network's
 * own figure where neither a link nor a matrix gives one for the two nodes. O(log groups). */
double hv_cost_node_bytes_per_s(const struct hv_cluster *c, uint32_t node,
                                const struct hv_network_link *link);
/** Seconds that all NICs of a node take to send (or to receive) so many bytes of many flows to (or
 * from) others. O(log groups). */
double hv_cost_node_s(const struct hv_cluster *c, uint32_t node, double bytes);

/**
 * Seconds until `bytes` (all data-parallel shares of one micro-batch together) have moved from the
 * ranks of one stage to those of the next; flows are spread evenly over the ranks and bounded by
 * links, NICs of both sides, the network and its named links, which all flows over them share.
 */
double hv_cost_hop(const struct hv_cluster *c, const uint32_t *from, size_t n_from,
                   const uint32_t *to, size_t n_to, double bytes, struct hv_why *why);

#endif
