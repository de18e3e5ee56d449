/** Shared by collective.c and its parts: the shape of a group for the formulae. */
#ifndef HV_SOLVER_COST_NETWORK_COLLECTIVE_INT_H
#define HV_SOLVER_COST_NETWORK_COLLECTIVE_INT_H

#include "solver/cost/device/link_curve.h"
#include "solver/cost/network/collective.h"

/**
 * Placement of a group and its links. "House": the devices joined by the device link, a node or a
 * link domain of several nodes (a rack). Rates are nominal: curves and calibration are applied
 * later.
 */
struct hv__shape {
    double n, houses, per_house; /**< members, houses in use, most members in one house */
    double nodes;                /**< nodes in use */
    double house_bytes_per_s;    /**< tightest inside a house, what one member sends at once */
    double house_alpha_s;
    double net_bytes_per_s; /**< tightest between houses: all NICs that the members of one reach,
                               divided among the groups that run together */
    double net_alpha_s;
    double host_bytes_per_s;         /**< slowest host link */
    double memory_bytes_per_s;       /**< slowest host memory */
    enum hv_link_class link;         /**< of the tightest link inside */
    enum hv_link_class net;          /**< between houses: plain where all paths are */
    double house_factor, net_factor; /**< calibration of the device classes, the lowest; 1 where
                                        the links are plain */
    bool connected;                  /**< one fabric */
    bool reduces;                    /**< the switches inside can reduce */
    const char *house_why, *net_why;
};

/** Computes the shape of the group. O(n log n) and O(n log groups). */
struct hv__shape hv__shape_of(const struct hv_cluster *c, const struct hv_collective_query *q);
/** True where two kinds have the same fabric. */
bool hv__same_fabric(const struct hv_device_kind *a, const struct hv_device_kind *b);

#endif
