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
/** Frees them. NULL is fine. */
void hv_ways_free(struct hv_ways *w);

/** An exchange to price. */
struct hv_matrix_query {
    const double *bytes;              /**< [n × n] from member (row) to member (column) */
    enum hv_sync_algorithm algorithm; /**< as for all_to_all of hv_collective_query */
    double together;                  /**< groups that share each node's network, ≥ 1 */
    double copies;                    /**< members that every item goes to, as there; 0 or 1: one */
};

/** Prices an exchange: bytes of the busiest member inside nodes, of the busiest node between them;
 * time HV_UNKNOWN where a pair with bytes is not connected. O(n²). */
struct hv_collective_cost hv_cost_matrix(const struct hv_ways *w, const struct hv_matrix_query *q,
                                         struct hv_why *why);

#endif
