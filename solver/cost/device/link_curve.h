/**
 * Share of a link's rate that a transfer reaches, by the size of the message.
 *
 * One table: for every class of link and use it holds a start (seconds that an operation takes
 * before its first byte counts) and shares of the nominal one-direction rate at a few sizes, fitted
 * to published timings (each curve names its source; the cost model's error against them is
 * measured in tests/unit/test_cost_link_curve.c). Between the points the share is a straight line
 * in the logarithms, and it never grows faster than the size does, so that time never falls when
 * bytes grow. Not here: steps of an algorithm (collective.c) and the factors of calibrated device
 * classes (inventory/calibration.h), which stand on top.
 */
#ifndef HV_SOLVER_COST_DEVICE_LINK_CURVE_H
#define HV_SOLVER_COST_DEVICE_LINK_CURVE_H

#include "solver/inventory/cluster.h"

/** Classes of links with equal curves. */
enum hv_link_class {
    HV_CURVE_NVLINK2, /**< P100 and V100 without a switch: one or two links to each peer */
    HV_CURVE_NVLINK3, /**< A100 with NVSwitch, and any NVLink whose generation is not known */
    HV_CURVE_NVLINK4, /**< Hopper with NVSwitch */
    HV_CURVE_NVLINK5, /**< Blackwell and newer, 8 devices or a rack */
    HV_CURVE_BRIDGE,  /**< NVLink bridges between PCIe cards */
    HV_CURVE_XGMI3,   /**< MI100 and MI200 */
    HV_CURVE_MESH,    /**< full meshes: MI300 and newer, HCCS */
    HV_CURVE_TORUS,   /**< TPU links and others that were not measured */
    HV_CURVE_PCIE,
    HV_CURVE_HOST,
    HV_CURVE_NETWORK, /**< NICs and switches between nodes */
    HV_CURVE_PLAIN,   /**< links of `"curve": "plain"`: the whole rate at every size, no start */
    HV_CURVE_N
};

/** Uses of a link. */
enum hv_link_use {
    HV_USE_RING,       /**< rings and trees of reductions and gathers */
    HV_USE_SWITCH,     /**< reduction inside the switch (NVLS) */
    HV_USE_ALL_TO_ALL, /**< every member to every other */
    HV_USE_P2P,        /**< one sender, one receiver */
    HV_USE_N
};

#define HV_CURVE_POINTS 6

/** A curve: seconds before the first byte, and shares of the nominal rate at rising sizes. */
struct hv_link_curve {
    const char *name, *source; /**< source: "fitted: …" or "estimated: …" */
    double start_s;
    struct {
        double bytes, share;
    } at[HV_CURVE_POINTS]; /**< the last ones may be unused: bytes 0 */
};

/** Class of a link of that kind between devices of kind `d` (NULL: not known). O(1). */
enum hv_link_class hv_link_class_of(enum hv_link_kind kind, const struct hv_device_kind *d);
/** Class of a path whose first device is of kind `d`: plain, the network, or that of its link. */
enum hv_link_class hv_link_class_of_path(const struct hv_path *p, const struct hv_device_kind *d);
/** True where the switches of that class can reduce (NVLink SHARP: Hopper and newer). */
bool hv_link_class_reduces(enum hv_link_class c);
/** The curve; for HV_USE_SWITCH NULL where the class cannot reduce. Static. */
const struct hv_link_curve *hv_link_curve(enum hv_link_class c, enum hv_link_use u);
/** Share of the nominal rate for `bytes`; constant outside the points. O(points). */
double hv_link_share(const struct hv_link_curve *c, double bytes);
/** No more than hv_link_share of the same bytes, without logarithms: the lower of the two points
 * around it. */
double hv_link_share_least(const struct hv_link_curve *c, double bytes);

#endif
