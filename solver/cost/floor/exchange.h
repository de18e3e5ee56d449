/** Inside cost: least time of communication between tensor-parallel ranks. */
#ifndef HV_SOLVER_COST_FLOOR_EXCHANGE_H
#define HV_SOLVER_COST_FLOOR_EXCHANGE_H

#include "solver/cost/device/link_curve.h"
#include "solver/inventory/cluster.h"

/** A link inside a house, by the curve of its class. */
struct hv__house_link {
    enum hv_link_class class;
    double devices; /**< of the house that one group can have */
    double bytes_per_s;
};
/** Limits of a cluster for groups that have a device of some kind. */
struct hv__reach {
    double devices;             /**< that can be in one group with it */
    double in_house;            /**< most of them in one node or link domain */
    double house_bytes_per_s;   /**< fastest link in any */
    double element_bytes_per_s; /**< fastest element between nodes besides their NICs */
    /* of the houses that have a device of that kind */
    const struct hv__house_link
        *links; /**< [n_links] faster ones of a class are in smaller houses */
    size_t n_links;
    double net_bytes_per_s; /**< fastest to the network, not calibrated */
    enum hv_link_class net; /**< plain where some path of the network is */
    double net_wait_s;      /**< least latency of a NIC; HUGE_VAL: no group has that kind */
};
/** True where some path between nodes may be plain (`"curve": "plain"`): then the least time of a
 * transfer is that of the plain rate. O(groups). */
bool hv__some_plain_network(const struct hv_cluster *c);
/** Reads these limits from the cluster; lists in `arena`. O(groups · slots · log(groups) +
 * matrix). */
struct hv__reach hv__reach_of(const struct hv_cluster *c, const struct hv_device_kind *d,
                              struct hv_arena *arena);

/** The group: it has `least` to `most` ranks, one of them a device of that kind, and messages of at
 * most `bytes`. */
struct hv__exchange_query {
    const struct hv_device_kind *device;
    const struct hv__reach *reach; /**< of that kind */
    double least, most, bytes;
};
/** A call of so many bytes takes at least start_s + bytes × per_byte_s. */
struct hv__least_exchange {
    double start_s, per_byte_s;
};
/** Fills that of an all-reduce, and of one of its halves. Proof: exchange.c. O(classes of links ·
 * sizes of houses). */
void hv__least_exchange(const struct hv__exchange_query *q, struct hv__least_exchange out[2]);
#endif
