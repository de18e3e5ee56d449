/**
 * A cluster: groups of identical nodes, the devices in them, and the network between them.
 *
 * Groups are stored once with a count, so the memory for 100 000 devices of five kinds is that of
 * five kinds. Devices are numbered group by group, node by node, slot by slot (`struct
 * hv_device_ref` gives the way back). Immutable once built (solver/io/own fills the struct and
 * calls hv_cluster_finish). All bandwidths are one direction. The file's
 * semantics: share/schema/cluster.schema.json.
 */
#ifndef HV_SOLVER_INVENTORY_CLUSTER_H
#define HV_SOLVER_INVENTORY_CLUSTER_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/base/str.h"
#include "solver/inventory/device.h"

/** Most devices, and most nodes, of a cluster. */
#define HV_CLUSTER_MAX_DEVICES 4000000

/* Defaults of the reader for figures that neither the file nor the catalogue gives. */
#define HV_NIC_BYTES_PER_S                                                                         \
    12.5e9 /**< per node: one 100 Gbit/s port; network.bandwidth_GBps where given */
#define HV_NIC_LATENCY_S    5e-6    /**< one message between two nodes of one switch */
#define HV_PCIE_BYTES_PER_S 15.75e9 /**< PCIe 3.0 x16, where the kind gives none */
#define HV_HOST_LATENCY_S   10e-6   /**< through host memory */
/** Most devices behind one backplane (DGX-2: 16): a device link that joins more of them (a rack, a
 * TPU slice) extends over several nodes, so that nodes of such a kind form domains unless the file
 * states otherwise. */
#define HV_CHASSIS_DEVICES 16

/* clang-format off */
/** Links inside a node: constant, name in files. */
#define HV_LINK_KIND_MAP(X)         \
    X(HV_LINK_NVLINK,   "nvlink")   \
    X(HV_LINK_NVSWITCH, "nvswitch") \
    X(HV_LINK_XGMI,     "xgmi")     \
    X(HV_LINK_HCCS,     "hccs")     \
    X(HV_LINK_ICI,      "ici")      \
    X(HV_LINK_PCIE,     "pcie")     \
    X(HV_LINK_PCIE_ROOT,"pcie-root")\
    X(HV_LINK_HOST,     "host")     \
    X(HV_LINK_ETHERNET, "ethernet") \
    X(HV_LINK_IB,       "infiniband") \
    X(HV_LINK_OTHER,    "other")
/* clang-format on */
enum hv_link_kind {
#define X(c, name) c,
    HV_LINK_KIND_MAP(X)
#undef X
        HV_LINK_KIND_N
};
/** Name in files. */
const char *hv_link_kind_name(enum hv_link_kind k);

/** A link: one direction, per device or per node, depending on the owner. */
struct hv_link {
    enum hv_link_kind kind;
    double bytes_per_s, latency_s;
    bool plain; /**< `"curve": "plain"`: steps × latency + bytes / bandwidth, nothing calibrated */
};

/** Consecutive slots of one device kind in a node: slots [first, first + count). */
struct hv_slots {
    const struct hv_device_kind *kind;
    uint32_t first, count;
};

/** An island inside the node with its own link (`intra.groups`). */
struct hv_island {
    uint32_t first, count; /**< slots */
    struct hv_link link;
    bool shared; /**< the bandwidth is shared by all of them (a PCIe root), not per device */
};

/** State of a node. Plans may use `ok` and `spare` nodes, not those in `drain`. */
enum hv_node_state { HV_NODE_OK, HV_NODE_DRAIN, HV_NODE_SPARE, HV_NODE_STATE_N };
/** "ok", "drain", "spare". */
const char *hv_node_state_name(enum hv_node_state s);

/** `count` identical nodes. */
struct hv_node_group {
    const char *name, *zone; /**< zone NULL when not given */
    uint32_t count;
    uint32_t n_devices; /**< per node */
    struct hv_slots *slots;
    size_t n_slots;
    struct hv_link intra; /**< per device, to all peers of the node together */
    struct hv_island *islands;
    size_t n_islands;
    struct hv_link nic; /**< per node, all NICs together */
    uint32_t n_nics;
    uint32_t domain_nodes; /**< consecutive nodes joined by `intra` too (a rack); 0 or 1: none */
    double host_memory_bytes_per_s;
    double
        host_memory_bytes; /**< of a node's host, for what devices offload; HV_UNKNOWN: not given */
    double price_usd_per_h, spot_usd_per_h, preemptions_per_h; /**< per node */
    enum hv_node_state state;
    uint32_t first_node, first_device, first_domain; /**< global, set by hv_cluster_finish */
    uint32_t like; /**< first group with hv_node_groups_alike; set by hv_cluster_finish */
};

/** True where the nodes of both groups could form one group: equal hardware, links and zone; prices
 * and states may differ, because an inventory may list every node by itself. O(slots). */
bool hv_node_groups_alike(const struct hv_node_group *a, const struct hv_node_group *b);

/** A network element between two groups, zones or single nodes that overrides the default. */
struct hv_network_link {
    const char *a, *b; /**< as written: group, zone or "v[3]" */
    double bytes_per_s, latency_s;
};

/** A cluster. Owner: hv_cluster_unref. */
struct hv_cluster {
    struct hv_arena arena;
    unsigned refs;
    const char *name;
    struct hv_node_group *groups;
    size_t n_groups;
    uint32_t n_nodes, n_devices;
    double network_bytes_per_s,
        network_latency_s; /**< between nodes, per node; HV_UNKNOWN: the NICs bound it */
    bool network_plain;    /**< every path between nodes is plain, whatever its NICs are */
    struct hv_network_link *links;
    size_t n_links;
    double *matrix_bytes_per_s, *matrix_latency_s; /**< n_nodes × n_nodes rows, or NULL */
    const struct hv_device_kind **kinds; /**< distinct kinds in use, in order of first mention */
    size_t n_kinds;
    struct hv_cluster *original; /**< the cluster whose strings and islands this one uses, a
                                    reference; NULL: it has its own */
};

/** Position of a device. */
struct hv_device_ref {
    uint32_t group, node_in_group, slot; /**< slot inside the node */
    uint32_t node;                       /**< global node number */
    const struct hv_device_kind *kind;
};

/** Level of the path from a to b: the device link is used up to the level of the domain. */
enum hv_path_level {
    HV_PATH_SELF,
    HV_PATH_ISLAND,
    HV_PATH_NODE,
    HV_PATH_DOMAIN,
    HV_PATH_NETWORK,
    HV_PATH_WAN
};
/** Bandwidth and latency of one flow between two devices. */
struct hv_path {
    enum hv_path_level level;
    double bytes_per_s; /**< bandwidth of the tightest element, for one flow alone on the path */
    double latency_s;
    enum hv_link_kind kind; /**< of the link, on a network of the slower NICs */
    const char *why;        /**< which element is the tightest: static text such as "nic", "nvlink",
                        "network link" */
    bool plain;             /**< all its links are (struct hv_link) */
};

/** Numbers groups, nodes and devices, collects kinds; called once by the builder. Errors: HV_ELIMIT
 * above 4 million devices. */
enum hv_status hv_cluster_finish(struct hv_cluster *c, struct hv_err *err) HV_NODISCARD;
/**
 * Gives every kind of the cluster the calibration `by` (borrowed, and read again at every pricing:
 * a fit changes the numbers in place). Only for a cluster without other users. O(kinds · groups).
 */
void hv_cluster_calibrate(struct hv_cluster *c, const struct hv_calibration *by);
/** The same for kind number `kind` of the cluster. O(groups). */
void hv_cluster_calibrate_kind(struct hv_cluster *c, size_t kind, const struct hv_calibration *by);
/** Gives every device of kind number `kind` so much memory. Only for a cluster without other users
 * whose slots are its own. O(groups). */
void hv_cluster_set_memory(struct hv_cluster *c, size_t kind, double bytes);
/**
 * The same cluster with its groups in an order that depends on the hardware alone: zones by the sum
 * of their peaks, then by name; in a zone the fastest devices first, then by memory, size of nodes,
 * links, state and price. Groups of equal nodes keep the order of the file; addresses stay valid.
 * Device numbers differ from those of c. Owner: hv_cluster_unref; c itself, with one reference
 * more, where its order is canonical. O(groups · log groups + nodes² of a matrix).
 */
struct hv_cluster *hv_cluster_canonical(struct hv_cluster *c) HV_NODISCARD;
/** Adds a reference. Returns c. */
struct hv_cluster *hv_cluster_ref(struct hv_cluster *c);
/** Drops a reference and frees the cluster with the last one. NULL is fine. */
void hv_cluster_unref(struct hv_cluster *c);

/** The device with global number id < n_devices. O(log groups). */
struct hv_device_ref hv_cluster_device(const struct hv_cluster *c, uint32_t id);
/** Global node number of a device. O(log groups). */
uint32_t hv_cluster_node_of(const struct hv_cluster *c, uint32_t device);
/** The group that holds a node. O(log groups). */
const struct hv_node_group *hv_cluster_group_of_node(const struct hv_cluster *c, uint32_t node);
/**
 * Number of the domain that holds a node of the group. A domain is a run of consecutive nodes whose
 * devices share the device link at full speed (an NVL72 rack: 18 nodes of 4); counted from the
 * group's first node. A node that shares it with no other is a domain of its own. O(1).
 */
uint32_t hv_node_group_domain(const struct hv_node_group *g, uint32_t node);
/** Nodes of a full domain of the group; 1 without domains. O(1). */
uint32_t hv_node_group_domain_nodes(const struct hv_node_group *g);
/** Number of the domain that holds a node. O(log groups). */
uint32_t hv_cluster_domain_of(const struct hv_cluster *c, uint32_t node);
/** Bandwidth of its node's NICs that one device can use: one NIC, or as many as there are per
 * device (GPUDirect: a flow leaves by the NIC next to its device). NICs below 10 Gbit/s are one
 * that all devices share. */
double hv_node_flow_bytes_per_s(const struct hv_node_group *g);
/** Kind of the device in a slot. O(slot lists of the node). */
const struct hv_device_kind *hv_node_kind_at(const struct hv_node_group *g, uint32_t slot);
/** The most specific overriding link between two nodes (node before group before zone), or NULL.
 * O(links). */
const struct hv_network_link *hv_cluster_link(const struct hv_cluster *c, uint32_t node_a,
                                              uint32_t node_b);
/** True where no figure of the network tells the nodes of both groups apart: no link names one of
 * the groups or a node of it (links between zones may be there), and in a matrix all their rows and
 * columns are equal. Nodes of groups that are alike (hv_node_groups_alike) could then form one
 * group. O(links), with a matrix O(nodes of the groups · nodes). */
bool hv_cluster_network_alike(const struct hv_cluster *c, const struct hv_node_group *a,
                              const struct hv_node_group *b);
/** True where a flow from one node to another uses that link from its second end to its first. */
bool hv_cluster_link_backward(const struct hv_cluster *c, const struct hv_network_link *l,
                              uint32_t from, uint32_t to);
/** True where both ends of that link name both nodes, as between two nodes of one zone: then the
 * numbers of the nodes decide which way a flow uses it. */
bool hv_cluster_link_either_way(const struct hv_cluster *c, const struct hv_network_link *l,
                                uint32_t from, uint32_t to);
/**
 * Path between two devices. O(log groups + links).
 *
 * Same device: its memory. One island: its link. One node: `intra`, divided by the number of peers
 * where the link is a full mesh (xgmi, hccs), and bounded by the links of shared islands it leaves;
 * a CPU or another fabric is reached over PCIe and host memory. One domain: `intra`, through its
 * switches. Else the path of the nodes, of which one flow gets hv_node_flow_bytes_per_s at most.
 */
struct hv_path hv_cluster_path(const struct hv_cluster *c, uint32_t a, uint32_t b);
/** True where the devices [0], [stride], … of n lie in more than one link domain, so that they
 * reach each other over the network. O(n · log groups). */
bool hv_cluster_is_far(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                       size_t stride);
/** The island of a node that a slot is in; NULL: it is in none. O(islands). */
const struct hv_island *hv_node_group_island(const struct hv_node_group *g, uint32_t slot);
/** True where a link of this kind goes through the host: flows to the host's memory use it too. */
static inline bool hv_link_reaches_host(enum hv_link_kind k)
{
    return k == HV_LINK_PCIE || k == HV_LINK_PCIE_ROOT || k == HV_LINK_HOST;
}
/** The same between two slots of one node of a group. O(islands). */
struct hv_path hv_node_group_path(const struct hv_node_group *g, uint32_t slot_a, uint32_t slot_b);
/**
 * Path between two nodes (a ≠ b) over the network: the tightest of both NICs and the network
 * element, which is the overriding link, else the matrix, else the network's figure. Latency: the
 * slower NIC's plus the element's. Plain where the network or both NICs are. Level WAN when both
 * zones are known and differ. Nodes of one
 * domain have this path too, for devices that are not on the link (CPUs).
 */
struct hv_path hv_cluster_node_path(const struct hv_cluster *c, uint32_t node_a, uint32_t node_b);
/** Price of one node of the group: its own, else that of the provider in the catalogue that asks
 * least for all its devices on demand, and the spot price of the same provider unless it is above
 * that. HV_UNKNOWN where no provider has all devices. O(slots² · prices). */
double hv_node_price_usd_per_h(const struct hv_node_group *g, bool spot);

/**
 * Resolves an address, or several with commas or blanks between: `a[0].0-7`, `v[1-3,5].*`, `a[2]`,
 * `a`, `a.*` (all nodes), `a[0].[0,2]`, `*`; appends global device numbers in written order.
 * @param out  array of *n ids, grown in `arena`
 *
 * Errors: HV_EINPUT with the reason (unknown group with the nearest name, index out of range).
 */
enum hv_status hv_address_resolve(const struct hv_cluster *c, const char *address,
                                  struct hv_arena *arena, uint32_t **out, size_t *n,
                                  struct hv_err *err) HV_NODISCARD;
/** Shortest address list of a device sequence, order kept ("a[0-1].*", "v[0].0-3"): appends to
 * `items` separated by `sep`. */
void hv_address_format(const struct hv_cluster *c, const uint32_t *ids, size_t n, const char *sep,
                       struct hv_str *out);

#endif
