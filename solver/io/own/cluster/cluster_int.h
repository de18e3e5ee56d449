/** Internals of the cluster reader, shared by its files only. */
#ifndef HV_SOLVER_IO_OWN_CLUSTER_CLUSTER_INT_H
#define HV_SOLVER_IO_OWN_CLUSTER_CLUSTER_INT_H

#include "solver/base/json/json.h"
#include "solver/inventory/cluster.h"

#define HV_MAX_GBPS       1e6 /**< one link, network or NIC set */
#define HV_MIN_GBPS       1e-9
#define HV_MAX_LATENCY_US 1e9

/** A cluster under construction. */
struct hv_cluster_build {
    struct hv_cluster *c;
    const struct hv_device_catalogue *catalogue;
    struct hv_jp own;             /**< `devices` of the file; v NULL when absent */
    struct hv_device_kind **used; /**< kinds copied into the cluster so far */
    size_t n_used, cap_used;
    json_t *kind_at;        /**< place in `used` by name */
    json_t *group_at;       /**< number of the group by name */
    json_t *zones;          /**< names of zones, each true */
    double nic_bytes_per_s; /**< default of a node that does not name its NICs */
    struct hv_err *err;
};

/** The kind with the name at this place, copied into the cluster's arena (once per name). */
enum hv_status hv__cluster_kind(struct hv_cluster_build *b, const struct hv_jp *name,
                                const struct hv_device_kind **out) HV_NODISCARD;
/** Builds every kind of `devices`, used or not, so that each mistake in it is found. */
enum hv_status hv__cluster_own_kinds(struct hv_cluster_build *b) HV_NODISCARD;
/** One element of `nodes`. */
enum hv_status hv__cluster_node(struct hv_cluster_build *b, const struct hv_jp *p,
                                struct hv_node_group *g) HV_NODISCARD;
/** Reads `curve`: "measured" or "plain"; a missing member keeps the value. A plain link has no
 * latency unless the file gives one, so `latency_s` becomes 0 where this member makes it plain. */
enum hv_status hv__link_curve(const struct hv_jp *p, bool *plain, double *latency_s,
                              struct hv_err *err) HV_NODISCARD;
/** Reads `bandwidth_GBps` and `latency_us`; missing members keep their values. */
enum hv_status hv__link_figures(const struct hv_jp *p, double *bytes_per_s, double *latency_s,
                                struct hv_err *err) HV_NODISCARD;

#endif
