/** Clusters with one part made faster, or all links slower: what another part would change. */
#ifndef HV_SOLVER_INVENTORY_FASTER_H
#define HV_SOLVER_INVENTORY_FASTER_H

#include "solver/inventory/cluster.h"

/** Kinds of parts. */
enum hv_cluster_part_kind {
    HV_PART_OF_FLOPS,   /**< FLOP/s of a device kind, in every precision */
    HV_PART_OF_HBM,     /**< its memory bandwidth */
    HV_PART_OF_NIC,     /**< NICs of a group's nodes */
    HV_PART_OF_INTRA,   /**< links inside a group's nodes */
    HV_PART_OF_NETWORK, /**< the network between nodes, without its named links */
    HV_PART_OF_LINK     /**< a named link of the network */
};

/** A part of a cluster. Groups that are alike are one part. */
struct hv_cluster_part {
    enum hv_cluster_part_kind kind;
    size_t i; /**< number of the device kind, of the first of the groups, or of the link; 0 */
};

/** Lists the parts whose rate is known, in `arena`; returns their number. O(groups + kinds +
 * links).
 */
size_t hv_cluster_parts(const struct hv_cluster *c, struct hv_arena *arena,
                        struct hv_cluster_part **out);
/** Appends the name of a part: "FLOP/s of A100-SXM-80GB", "NICs of a", "link between east and
 * west".
 */
void hv_cluster_part_text(const struct hv_cluster *c, const struct hv_cluster_part *part,
                          struct hv_str *out);
/** The same cluster with the part's rate multiplied by `times` > 0; latencies, device numbers and
 * addresses stay. Owner: hv_cluster_unref. O(groups + kinds + links, with a matrix + nodes²). */
struct hv_cluster *hv_cluster_faster(struct hv_cluster *c, const struct hv_cluster_part *part,
                                     double times) HV_NODISCARD;
/** The same cluster with links on which everything takes `times` as long: bandwidths divided,
 * latencies multiplied, inside nodes and between them. Device numbers and addresses stay. Owner:
 * hv_cluster_unref. O(groups + links, with a matrix + nodes²). */
struct hv_cluster *hv_cluster_slow_links(struct hv_cluster *c, double times) HV_NODISCARD;

#endif
