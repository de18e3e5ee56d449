/** Shared by collective.c and its parts: the shape of a group for the formulae. */
#ifndef HV_SOLVER_COST_NETWORK_COLLECTIVE_INT_H
#define HV_SOLVER_COST_NETWORK_COLLECTIVE_INT_H

#include <math.h>

#include "solver/base/units.h"
#include "solver/cost/device/link_curve.h"
#include "solver/cost/network/collective.h"

/** Part of a link's message latency that one more step costs: a step passes a flag along with its
 * data, and the next one is posted before the last has arrived. Fitted on vidur DGX A100 and H100,
 * where all-reduces of a few KB take equally long over 2, 4 and 8 devices. */
#define HV__STEP_SHARE 0.2
/** The same for links of a class; on plain ones every step costs the whole latency. */
static inline double hv__step_share(enum hv_link_class c)
{
    return c == HV_CURVE_PLAIN ? 1 : HV__STEP_SHARE;
}
/** Curves were measured with up to this many members; with more, each step moves less. */
#define HV__CURVE_MEMBERS 8

/** Share of an exchange's copies that are the first of their item for a house, where every item
 * goes to `copies` members at random: k (1 - (1 - 1/k)^c) of c. */
static inline double hv__first_copies(double houses, double copies)
{
    return copies > 1 ? houses * -expm1(copies * log1p(-1 / houses)) / copies : 1;
}

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

/** What all flows of a node of the group get together, over a named link or the network. O(1). */
static inline double hv__node_rate(const struct hv_cluster *c, const struct hv_node_group *g,
                                   const struct hv_network_link *link)
{
    bool named = link != NULL || c->matrix_bytes_per_s != NULL;
    return named ? g->nic.bytes_per_s
                 : fmin(g->nic.bytes_per_s, hv_or(c->network_bytes_per_s, HUGE_VAL));
}

/** Computes the shape of the group. O(n log n) and O(n log groups). */
struct hv__shape hv__shape_of(const struct hv_cluster *c, const struct hv_collective_query *q);
/** True where two kinds have the same fabric. */
bool hv__same_fabric(const struct hv_device_kind *a, const struct hv_device_kind *b);

#endif
