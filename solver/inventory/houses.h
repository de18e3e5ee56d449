/**
 * Houses of a cluster (single nodes, or the nodes of one link domain), and which of them are equal.
 * The same hardware gives the same classes, whatever groups a file lists it in.
 */
#ifndef HV_SOLVER_INVENTORY_HOUSES_H
#define HV_SOLVER_INVENTORY_HOUSES_H

#include "solver/inventory/cluster.h"

/** Class of houses that plans may not use. */
#define HV_HOUSE_DRAINED UINT32_MAX

/** Usable houses that nothing tells apart: equal numbers of nodes of groups that are alike
 * (hv_node_groups_alike), with the same named links to all others. The matrix of the network is not
 * looked at. */
struct hv_house_class {
    const struct hv_node_group *group; /**< the first by name that has one */
    uint32_t node;                     /**< number of the first node of one of them */
    uint32_t nodes;                    /**< of one house */
    uint32_t houses;                   /**< how many there are */
};
/** Houses with consecutive numbers (hv_node_group_domain) and one class. */
struct hv_house_run {
    uint32_t first_house, class; /**< number of the class, or HV_HOUSE_DRAINED */
};
/** All houses of a cluster. Lists are in the arena of hv_houses_of. */
struct hv_houses {
    const struct hv_house_class *classes; /**< [n_classes] by name of their group */
    size_t n_classes;
    const struct hv_house_run *runs; /**< [n_runs] by number */
    size_t n_runs;
};
/** Lists them. O(groups · log(groups) + links · log(links) + houses that links name). */
struct hv_houses hv_houses_of(const struct hv_cluster *c, struct hv_arena *arena);
/** Class of the house with that number (hv_cluster_domain_of). O(log runs). */
uint32_t hv_house_class_of(const struct hv_houses *h, uint32_t house);

#endif
