/**
 * Links of single devices: to the peers in their node or link domain, and to the host. Transfers
 * between stages take them one at a time; what moves beside operations (evictions, offloads) shares
 * them.
 */
#ifndef HV_SOLVER_COST_NETWORK_DEVICE_LINKS_H
#define HV_SOLVER_COST_NETWORK_DEVICE_LINKS_H

#include "solver/cost/network/collective.h"

/** Most uses that the functions below list per flow (device). */
#define HV_DEVICE_USES 4

/**
 * Lists the links of devices that a transfer keeps busy where its flows stay inside nodes and link
 * domains: of each flow the sender's, the receiver's, and those of islands with a shared link that
 * it leaves and enters. Paths over PCIe take the links to the host. Returns how many; one link may
 * come several times. `out` has room for HV_DEVICE_USES × the flows. O(flows · log groups).
 */
size_t hv_cost_device_uses(const struct hv_cluster *c, const struct hv_hop_query *q,
                           struct hv_wire_use *out);

/** Copies between devices and the memory of their hosts. */
struct hv_host_query {
    const uint32_t *devices;
    size_t n;
    double bytes; /**< of all devices together, spread evenly */
    bool to_host;
};

/**
 * Lists the links that copies between devices and their hosts keep busy: of each device its own,
 * that of its island where it is shared, and the memory of the host. Each at the share of its rate
 * that such copies get (HV_EFF_HOST), or all of it on a device with plain rates. Returns how many;
 * `out` has room for HV_DEVICE_USES × n. Source: Rajbhandari et al. 2021 (ZeRO-Infinity), section
 * 4. O(n · log groups).
 */
size_t hv_cost_host_uses(const struct hv_cluster *c, const struct hv_host_query *q,
                         struct hv_wire_use *out);

#endif
