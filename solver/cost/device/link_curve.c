/*
 * The table behind link_curve.h. Sources in the rows:
 *   vidur     microsoft/vidur, data/profiling/network (MIT): all_reduce and send_recv on DGX A100,
 *             DGX H100 and pairs of PCIe cards, up to 64 MB
 *   nnscaler  microsoft/nnscaler, resources/profile/mi200 (MIT)
 *   DeepEP    deepseek-ai/DeepEP README (MIT): 153-158 of 200 GB/s NVLink (H800), 726-740 of 900
 *             (B200), 43-47 of 50 GB/s RDMA per GPU
 *   nccl      NVIDIA/nccl-tests issues 119, 175, 212, 272: A100 232 GB/s, H100 ring 370 and with
 *             switch reduction 475-480 GB/s, 86-96 of 100 GB/s between A100 nodes
 *   simumax   MooreThreads/SimuMax@4dcaae5 configs/system (Apache-2.0): all-gather and
 * reduce-scatter over 8 B200, 23 us, 9.2 us per step and 606 GB/s behind them nvl72
 * coreweave/nccl-tests pull request 43: all-reduce over 72 GPUs, 586 to 839 GB/s ml-eng
 * stas00/ml-engineering: B200 ring 682, with switch reduction 838 GB/s
 */
#include "solver/cost/device/link_curve.h"

#include "solver/base/units.h"
#include <math.h>
#include <string.h>

#define KB HV_KIB
#define MB HV_MIB
#define GB HV_GIB

/* clang-format off */
static const struct hv_link_curve curves[HV_CURVE_N][HV_USE_N] = {
    [HV_CURVE_NVLINK2] = {
        [HV_USE_RING] = {"NVLink2 ring", "estimated: NVLink3 curve, 130 of 150 GB/s at the end (DGX-1)", 30 * HV_US,
            {{1*MB, .45}, {4*MB, .52}, {16*MB, .60}, {64*MB, .72}, {256*MB, .82}, {1*GB, .86}}},
        [HV_USE_ALL_TO_ALL] = {"NVLink2 all-to-all", "estimated: half of the pairs have no link of their own", 20 * HV_US,
            {{1*MB, .30}, {16*MB, .40}, {256*MB, .50}}},
        [HV_USE_P2P] = {"NVLink2 pair", "estimated: one or two of six links join a pair", 10 * HV_US,
            {{1*MB, .26}, {16*MB, .29}, {64*MB, .30}}},
    },
    [HV_CURVE_NVLINK3] = {
        [HV_USE_RING] = {"NVLink3 ring", "fitted: vidur DGX A100 to 64 MB; nccl above", 35 * HV_US,
            {{1*MB, .46}, {4*MB, .49}, {16*MB, .505}, {64*MB, .60}, {256*MB, .70}, {1*GB, .775}}},
        [HV_USE_ALL_TO_ALL] = {"NVLink3 all-to-all", "estimated: as its pairs, end as DeepEP on NVLink4", 20 * HV_US,
            {{1*MB, .50}, {4*MB, .65}, {16*MB, .74}, {64*MB, .77}}},
        [HV_USE_P2P] = {"NVLink3 pair", "fitted: vidur DGX A100", 11 * HV_US,
            {{1*MB, .75}, {4*MB, .83}, {64*MB, .84}}},
    },
    [HV_CURVE_NVLINK4] = {
        [HV_USE_RING] = {"NVLink4 ring", "fitted: vidur DGX H100 to 64 MB; nccl above", 20 * HV_US,
            {{1*MB, .60}, {4*MB, .65}, {16*MB, .735}, {64*MB, .79}, {256*MB, .82}}},
        [HV_USE_SWITCH] = {"NVLink4 switch", "fitted: vidur DGX H100 to 64 MB; nccl above", 21 * HV_US,
            {{128*KB, .20}, {512*KB, .33}, {2*MB, .455}, {8*MB, .53}, {32*MB, .625}, {128*MB, .685}}},
        [HV_USE_ALL_TO_ALL] = {"NVLink4 all-to-all", "fitted: DeepEP at the end, vidur pairs below", 20 * HV_US,
            {{1*MB, .50}, {4*MB, .68}, {16*MB, .75}, {64*MB, .78}}},
        [HV_USE_P2P] = {"NVLink4 pair", "fitted: vidur DGX H100", 4.5 * HV_US,
            {{1*MB, .745}, {4*MB, .75}, {8*MB, .78}, {16*MB, .81}, {64*MB, .815}}},
    },
    [HV_CURVE_NVLINK5] = {
        [HV_USE_RING] = {"NVLink5 ring", "fitted: between SimuMax' B200 (.41, .58, .65 from 64 MB) and NVLink4's shape; ml-eng at the end", 20 * HV_US,
            {{1*MB, .32}, {16*MB, .42}, {64*MB, .55}, {256*MB, .65}, {1*GB, .72}, {4*GB, .758}}},
        [HV_USE_SWITCH] = {"NVLink5 switch", "fitted: nvl72 (7 to 60 MB per rank); ml-eng at the end", 21 * HV_US,
            {{512*KB, .20}, {2*MB, .27}, {8*MB, .345}, {32*MB, .44}, {64*MB, .485}, {128*MB, .60}}},
        [HV_USE_ALL_TO_ALL] = {"NVLink5 all-to-all", "fitted: DeepEP on B200 at the end; NVLink4 curve below", 20 * HV_US,
            {{1*MB, .35}, {4*MB, .55}, {16*MB, .70}, {64*MB, .78}, {256*MB, .80}}},
        [HV_USE_P2P] = {"NVLink5 pair", "estimated: NVLink4 curve, 770 of 900 GB/s at the end", 4.5 * HV_US,
            {{1*MB, .65}, {4*MB, .72}, {16*MB, .80}, {64*MB, .85}}},
    },
    [HV_CURVE_BRIDGE] = {
        [HV_USE_RING] = {"NVLink bridge ring", "fitted: vidur pairs of A100 and H100 PCIe cards", 30 * HV_US,
            {{1*MB, .45}, {4*MB, .62}, {16*MB, .655}}},
        [HV_USE_ALL_TO_ALL] = {"NVLink bridge exchange", "estimated: as its ring", 20 * HV_US,
            {{1*MB, .45}, {4*MB, .62}, {16*MB, .655}}},
        [HV_USE_P2P] = {"NVLink bridge", "estimated: NVLink3 pair", 8 * HV_US,
            {{1*MB, .70}, {4*MB, .80}, {64*MB, .82}}},
    },
    [HV_CURVE_XGMI3] = {
        [HV_USE_RING] = {"xGMI3 ring", "fitted: nnscaler MI200, 8 devices", 150 * HV_US,
            {{1*MB, .11}, {4*MB, .18}, {16*MB, .19}, {256*MB, .195}}},
        [HV_USE_ALL_TO_ALL] = {"xGMI3 all-to-all", "fitted: nnscaler MI200, 8 devices", 280 * HV_US,
            {{16*MB, .45}, {64*MB, .58}, {512*MB, .62}}},
        [HV_USE_P2P] = {"xGMI3 pair", "estimated", 20 * HV_US,
            {{1*MB, .60}, {16*MB, .80}}},
    },
    [HV_CURVE_MESH] = {
        [HV_USE_RING] = {"full mesh ring", "estimated: 310 of 448 GB/s (MI300X)", 30 * HV_US,
            {{1*MB, .20}, {16*MB, .45}, {64*MB, .58}, {256*MB, .68}, {1*GB, .70}}},
        [HV_USE_ALL_TO_ALL] = {"full mesh all-to-all", "estimated", 30 * HV_US,
            {{1*MB, .30}, {16*MB, .60}, {64*MB, .72}}},
        [HV_USE_P2P] = {"full mesh pair", "estimated", 10 * HV_US,
            {{1*MB, .70}, {16*MB, .80}}},
    },
    [HV_CURVE_TORUS] = {
        [HV_USE_RING] = {"device link ring", "estimated", 20 * HV_US,
            {{1*MB, .40}, {16*MB, .65}, {64*MB, .75}}},
        [HV_USE_ALL_TO_ALL] = {"device link all-to-all", "estimated", 20 * HV_US,
            {{1*MB, .35}, {16*MB, .55}, {64*MB, .65}}},
        [HV_USE_P2P] = {"device link pair", "estimated", 10 * HV_US,
            {{1*MB, .60}, {16*MB, .75}}},
    },
    [HV_CURVE_PCIE] = {
        [HV_USE_RING] = {"PCIe ring", "fitted: vidur, four A100 and four H100 cards, pairs bridged", 28 * HV_US,
            {{1*MB, .60}, {4*MB, .68}, {16*MB, .75}, {64*MB, .765}}},
        [HV_USE_ALL_TO_ALL] = {"PCIe exchange", "estimated: as its ring", 30 * HV_US,
            {{1*MB, .55}, {4*MB, .65}, {16*MB, .72}}},
        [HV_USE_P2P] = {"PCIe pair", "estimated: as its ring", 10 * HV_US,
            {{1*MB, .65}, {4*MB, .72}, {16*MB, .76}}},
    },
    [HV_CURVE_HOST] = {
        [HV_USE_RING] = {"host ring", "estimated", 40 * HV_US, {{1*MB, .60}, {16*MB, .80}}},
        [HV_USE_ALL_TO_ALL] = {"host exchange", "estimated", 40 * HV_US, {{1*MB, .60}, {16*MB, .80}}},
        [HV_USE_P2P] = {"host pair", "estimated", 10 * HV_US, {{1*MB, .70}, {16*MB, .80}}},
    },
    [HV_CURVE_NETWORK] = {
        [HV_USE_RING] = {"network ring", "fitted: nccl at the end; shape of vidur DGX A100 between nodes", 30 * HV_US,
            {{256*KB, .45}, {1*MB, .60}, {4*MB, .72}, {16*MB, .80}, {64*MB, .86}, {256*MB, .90}}},
        [HV_USE_ALL_TO_ALL] = {"network all-to-all", "fitted: DeepEP at the end; the rest estimated", 30 * HV_US,
            {{256*KB, .35}, {1*MB, .50}, {4*MB, .65}, {16*MB, .77}, {64*MB, .85}, {256*MB, .88}}},
        [HV_USE_P2P] = {"network pair", "fitted: vidur DGX H100 between nodes, 50 GB/s NIC", 12.5 * HV_US,
            {{256*KB, .40}, {1*MB, .57}, {4*MB, .72}}},
    },
    [HV_CURVE_PLAIN] = {
        [HV_USE_RING] = {"plain", "as the cluster's file says", 0, {{1, 1}}},
        [HV_USE_ALL_TO_ALL] = {"plain", "as the cluster's file says", 0, {{1, 1}}},
        [HV_USE_P2P] = {"plain", "as the cluster's file says", 0, {{1, 1}}},
    },
};
/* clang-format on */

/* Generation in "NVLink4 (cut)", 0 where the text is of another link. */
static int nvlink_generation(const char *link_kind)
{
    static const char start[] = "NVLink";
    if (!link_kind || strncmp(link_kind, start, sizeof start - 1) != 0) {
        return 0;
    }
    char digit = link_kind[sizeof start - 1];
    return digit >= '1' && digit <= '9' ? digit - '0' : 0;
}

static enum hv_link_class nvlink_class(enum hv_link_kind kind, const char *link_kind)
{
    int generation = nvlink_generation(link_kind);
    if (generation && strstr(link_kind, "bridge")) {
        return HV_CURVE_BRIDGE;
    }
    if (generation == 0 || generation == 3) {
        return HV_CURVE_NVLINK3;
    }
    if (generation < 3) {
        return kind == HV_LINK_NVSWITCH ? HV_CURVE_NVLINK3 : HV_CURVE_NVLINK2;
    }
    return generation == 4 ? HV_CURVE_NVLINK4 : HV_CURVE_NVLINK5;
}

enum hv_link_class hv_link_class_of(enum hv_link_kind kind, const struct hv_device_kind *d)
{
    const char *own = d ? d->link_kind : NULL;
    switch (kind) {
    case HV_LINK_NVLINK:
    case HV_LINK_NVSWITCH:
        return nvlink_class(kind, own);
    case HV_LINK_XGMI:
        return own && strncmp(own, "xGMI", 4) == 0 && own[4] != '4' ? HV_CURVE_XGMI3
                                                                    : HV_CURVE_MESH;
    case HV_LINK_HCCS:
        return HV_CURVE_MESH;
    case HV_LINK_PCIE:
    case HV_LINK_PCIE_ROOT:
        return HV_CURVE_PCIE;
    case HV_LINK_HOST:
        return HV_CURVE_HOST;
    case HV_LINK_ETHERNET:
    case HV_LINK_IB:
        return HV_CURVE_NETWORK;
    case HV_LINK_ICI:
    case HV_LINK_OTHER:
    case HV_LINK_KIND_N:
        break;
    }
    return HV_CURVE_TORUS;
}

enum hv_link_class hv_link_class_of_path(const struct hv_path *p, const struct hv_device_kind *d)
{
    if (p->plain) {
        return HV_CURVE_PLAIN;
    }
    return p->level >= HV_PATH_NETWORK ? HV_CURVE_NETWORK : hv_link_class_of(p->kind, d);
}

bool hv_link_class_reduces(enum hv_link_class c)
{
    return curves[c][HV_USE_SWITCH].name != NULL;
}

const struct hv_link_curve *hv_link_curve(enum hv_link_class c, enum hv_link_use u)
{
    return curves[c][u].name ? &curves[c][u] : NULL;
}

/* The point of the curve at `bytes` or before. *last: the share is that of the point. */
static size_t point_before(const struct hv_link_curve *c, double bytes, bool *last)
{
    size_t i = 0;
    while (i + 1 < HV_CURVE_POINTS && c->at[i + 1].bytes > 0 && bytes > c->at[i + 1].bytes) {
        i++;
    }
    *last = i + 1 == HV_CURVE_POINTS || !(c->at[i + 1].bytes > 0) || bytes <= c->at[i].bytes;
    return i;
}

double hv_link_share_least(const struct hv_link_curve *c, double bytes)
{
    bool last;
    size_t i = point_before(c, bytes, &last);
    return last ? c->at[i].share : fmin(c->at[i].share, c->at[i + 1].share);
}

double hv_link_share(const struct hv_link_curve *c, double bytes)
{
    bool last;
    size_t i = point_before(c, bytes, &last);
    if (last) {
        return c->at[i].share;
    }
    double f = log(bytes / c->at[i].bytes) / log(c->at[i + 1].bytes / c->at[i].bytes);
    return c->at[i].share * pow(c->at[i + 1].share / c->at[i].share, f);
}
