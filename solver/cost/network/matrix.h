/**
 * Exchanges of unequal parts: a matrix of bytes from every member of a group to every other, routed
 * over the links that the pairs really have.
 *
 * Elements that flows share, each in both directions: the port of a device, the link of a full mesh
 * between two devices, a shared island, a device's own NIC, all NICs of a node, the network between
 * two nodes, a named link. The busiest element sets the time; bytes that stay on a member are free.
 * An even matrix costs what hv_cost_collective gives for the same all-to-all by bytes. Thread: any.
 */
#ifndef HV_SOLVER_COST_NETWORK_MATRIX_H
#define HV_SOLVER_COST_NETWORK_MATRIX_H

#include "solver/cost/network/collective.h"

/** Links between the members of a group. Owner: hv_ways_free. */
struct hv_ways;

/** Looks up the links of all pairs. Owner of the result: hv_ways_free; borrows the cluster.
 * O(n² (log groups + links)). */
struct hv_ways *hv_ways_new(const struct hv_cluster *c, const uint32_t *devices, size_t n);
/** Number of the house (node or link domain) of a member, among those of the group. O(1). */
size_t hv_ways_house(const struct hv_ways *w, size_t member);
/** True where an exchange and the same one back always cost the same: no named links and no matrix
 * of the network. O(1). */
bool hv_ways_even(const struct hv_ways *w);
/** Frees them. NULL is fine. */
void hv_ways_free(struct hv_ways *w);

/** An exchange to price. */
struct hv_matrix_query {
    const double *bytes; /**< [n × n] from member (row) to member (column), in units of `scale` */
    double scale;        /**< bytes of one unit */
    bool back;           /**< every part goes the other way: from column to row */
    enum hv_sync_algorithm algorithm; /**< as for all_to_all of hv_collective_query */
    bool pipe;                        /**< likewise */
    double together;                  /**< groups that share each node's network, ≥ 1 */
    double copies;                    /**< members that every item goes to, as there; 0 or 1: one */
};

/** Prices an exchange: bytes of the busiest member inside nodes, of the busiest node between them;
 * time HV_UNKNOWN where a pair with bytes is not connected. O(n²). */
struct hv_collective_cost hv_cost_matrix(const struct hv_ways *w, const struct hv_matrix_query *q,
                                         struct hv_why *why);

#endif
