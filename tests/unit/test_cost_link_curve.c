/* Link curves: their shape, which link uses which, and the model against published timings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/cost/device/link_curve.h"
#include "tests/cost_fixture.h"

/* One measured operation. */
struct point {
    double bytes, us;
};

/* What was measured where: n devices of `kind`, `far`: one per node. */
struct series {
    const char *name;
    const struct hv_device_kind *kind;
    enum hv_link_kind intra;
    double intra_bytes_per_s, nic_bytes_per_s;
    enum hv_collective op;
    uint32_t n;
    bool far;
    double limit; /* mean error that is accepted from 1 MB up */
    struct point points[5];
};

static struct hv_device_kind h100, a100, h100_pcie;

/* Rows of microsoft/vidur@7d47513 data/profiling/network (MIT): medians over iterations of the
 * slowest rank, the row nearest the median of its neighbours in size. */
static const struct series measured[] = {
    {"A100 x2",
     &a100,
     HV_LINK_NVLINK,
     300e9,
     100e9,
     HV_ALL_REDUCE,
     2,
     false,
     0.12,
     {{239616, 46}, {1034240, 56}, {3964928, 65}, {16285696, 137}, {63963136, 418}}},
    {"A100 x4",
     &a100,
     HV_LINK_NVLINK,
     300e9,
     100e9,
     HV_ALL_REDUCE,
     4,
     false,
     0.20,
     {{264192, 62}, {1034240, 63}, {4194304, 85}, {16154624, 199}, {63832064, 585}}},
    {"A100 x8",
     &a100,
     HV_LINK_NVLINK,
     300e9,
     100e9,
     HV_ALL_REDUCE,
     8,
     false,
     0.15,
     {{247808, 61}, {1001472, 40}, {4227072, 98}, {16089088, 259}, {63700992, 655}}},
    {"H100 x2",
     &h100,
     HV_LINK_NVLINK,
     450e9,
     400e9,
     HV_ALL_REDUCE,
     2,
     false,
     0.25,
     {{272384, 41}, {1001472, 42}, {4259840, 42}, {16154624, 72}, {63832064, 237}}},
    {"H100 x4",
     &h100,
     HV_LINK_NVLINK,
     450e9,
     400e9,
     HV_ALL_REDUCE,
     4,
     false,
     0.15,
     {{272384, 41}, {1048576, 41}, {4194304, 47}, {16351232, 90}, {63963136, 304}}},
    {"H100 x8",
     &h100,
     HV_LINK_NVLINK,
     450e9,
     400e9,
     HV_ALL_REDUCE,
     8,
     false,
     0.08,
     {{272384, 38}, {1001472, 33}, {4194304, 51}, {16285696, 112}, {63700992, 338}}},
    {"A100 pair",
     &a100,
     HV_LINK_NVLINK,
     300e9,
     100e9,
     HV_P2P,
     2,
     false,
     0.20,
     {{264192, 17}, {1026048, 17}, {4194304, 25}, {16154624, 64}, {64094208, 280}}},
    {"H100 pair",
     &h100,
     HV_LINK_NVLINK,
     450e9,
     400e9,
     HV_P2P,
     2,
     false,
     0.08,
     {{280576, 8}, {1009664, 10}, {4194304, 19}, {16154624, 52}, {63832064, 185}}},
    {"H100 pair of nodes",
     &h100,
     HV_LINK_NVLINK,
     450e9,
     400e9,
     HV_P2P,
     2,
     true,
     0.08,
     {{247808, 28}, {993280, 52}, {4194304, 129}, {16121856, 467}, {63045632, 1845}}},
    {"H100 PCIe x4",
     &h100_pcie,
     HV_LINK_PCIE,
     63e9,
     400e9,
     HV_ALL_REDUCE,
     4,
     false,
     0.08,
     {{239616, 30}, {1009664, 80}, {4194304, 178}, {16056320, 538}, {63832064, 1972}}},
};

static int setup(void **state)
{
    (void)state;
    a100 = kind_a100;
    a100.link_kind = "NVLink3";
    h100 = kind_h100;
    h100.link_kind = "NVLink4";
    h100_pcie = kind_h100;
    h100_pcie.name = "H100-PCIe-80GB";
    h100_pcie.link_kind = "NVLink4 bridge";
    return 0;
}

static struct hv_cluster *machine(const struct series *s)
{
    struct hv_cluster *c = hv_xcalloc(1, sizeof *c);
    c->refs = 1;
    c->groups = hv_arena_new(&c->arena, struct hv_node_group, 1);
    c->network_bytes_per_s = c->network_latency_s = HV_UNKNOWN;
    fixture_group(c, "m", 2, s->kind);
    bool pcie = s->intra == HV_LINK_PCIE;
    c->groups[0].intra =
        (struct hv_link){s->intra, s->intra_bytes_per_s, pcie ? 5e-6 : 3e-6, false};
    c->groups[0].nic.bytes_per_s = s->nic_bytes_per_s;
    assert_int_equal(hv_cluster_finish(c, NULL), HV_OK);
    return c;
}

static double predicted_us(const struct hv_cluster *c, const struct series *s, double bytes)
{
    uint32_t ids[8];
    for (uint32_t i = 0; i < s->n; i++) {
        ids[i] = i * (s->far ? 8 : 1);
    }
    struct hv_collective_query q = {s->op, bytes, ids, s->n, HV_ALGO_AUTO, 1, 1, NULL, false};
    return 1e6 * hv_cost_collective(c, &q, NULL).time_s;
}

/* From 1 MB up within the limit of each series and 12 % over all; the first point of each, below
 * it, is start alone and noisy in the data: within a factor of two. */
static void against_timings(void **state)
{
    double sum = 0, n = 0;
    (void)state;
    for (size_t i = 0; i < HV_COUNT(measured); i++) {
        const struct series *s = &measured[i];
        struct hv_cluster *c = machine(s);
        double error = 0;
        for (int k = 0; k < 5; k++) {
            double got = predicted_us(c, s, s->points[k].bytes), want = s->points[k].us;
            error += k ? fabs(got / want - 1) / 4 : 0;
            if (!(got < 2 * want && want < 2 * got)) {
                fail_msg("%s, %.0f bytes: %.1f us, measured %.1f", s->name, s->points[k].bytes, got,
                         want);
            }
        }
        if (!(error <= s->limit)) {
            fail_msg("%s: mean error %.1f %%", s->name, 100 * error);
        }
        sum += error;
        n++;
        hv_cluster_unref(c);
    }
    if (!(sum / n <= 0.12)) {
        fail_msg("mean error %.1f %%", 100 * sum / n);
    }
}

static void bus_near(const struct hv_device_kind *kind, double link, enum hv_sync_algorithm a,
                     double bytes, double want_gbps)
{
    struct series s = {"", kind, HV_LINK_NVLINK, link, 400e9, HV_ALL_REDUCE, 8, false, 0, {{0, 0}}};
    struct hv_cluster *c = machine(&s);
    const uint32_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct hv_collective_query q = {HV_ALL_REDUCE, bytes, ids, 8, a, 1, 1, NULL, false};
    struct hv_collective_cost r = hv_cost_collective(c, &q, NULL);
    double bus = 2 * 7.0 / 8 * bytes / r.time_s / 1e9;
    if (!(fabs(bus / want_gbps - 1) <= 0.04)) {
        fail_msg("bus bandwidth %.0f GB/s, measured %.0f", bus, want_gbps);
    }
    assert_true(a == HV_ALGO_AUTO || r.algorithm == a);
    hv_cluster_unref(c);
}

/* Large messages: A100 232 GB/s (nccl-tests issue 175), H100 370 by rings and 475 in the switch
 * (issues 212 and 272), B200 682 and 838 (stas00/ml-engineering). */
static void large_messages(void **state)
{
    struct hv_device_kind b200 = kind_h100;
    (void)state;
    b200.link_kind = "NVLink5";
    bus_near(&a100, 300e9, HV_ALGO_AUTO, 4e9, 232);
    bus_near(&h100, 450e9, HV_ALGO_RING, 4e9, 370);
    bus_near(&h100, 450e9, HV_ALGO_AUTO, 4e9, 475);
    bus_near(&b200, 900e9, HV_ALGO_RING, 8e9, 682);
    bus_near(&b200, 900e9, HV_ALGO_AUTO, 8e9, 838);
}

/* All-gathers over 8 B200 as SimuMax@4dcaae5 configs/system measured them (a line through its
 * measurements: 23.1 us, 9.18 us for each of 7 steps, 606 GB/s): within a fifth, as NCCL has got
 * faster elsewhere. */
static void gathers_of_b200(void **state)
{
    struct hv_device_kind b200 = kind_h100;
    const struct series s = {"",    &b200, HV_LINK_NVLINK, 900e9, 400e9, HV_ALL_GATHER, 8,
                             false, 0,     {{0, 0}}};
    const double bytes[] = {64 * HV_MIB, 256 * HV_MIB, 1024 * HV_MIB};
    double error = 0;
    (void)state;
    b200.link_kind = "NVLink5";
    struct hv_cluster *c = machine(&s);
    for (size_t i = 0; i < HV_COUNT(bytes); i++) {
        double want = 23.1 + 7 * 9.18 + 7.0 / 8 * bytes[i] / 606e3;
        error += fabs(predicted_us(c, &s, bytes[i]) / want - 1) / 3;
    }
    if (!(error < 0.17)) {
        fail_msg("mean error %.3f", error);
    }
    hv_cluster_unref(c);
}

/* A plain link has its whole rate at every size and no start. */
static void plain(void **state)
{
    (void)state;
    for (int u = 0; u < HV_USE_N; u++) {
        const struct hv_link_curve *k = hv_link_curve(HV_CURVE_PLAIN, (enum hv_link_use)u);
        for (double bytes = 1; k && bytes < 1e12; bytes *= 7) {
            assert_true(hv_link_share(k, bytes) == 1 && k->start_s == 0);
        }
    }
    assert_false(hv_link_class_reduces(HV_CURVE_PLAIN));
}

/* Shares of measured links rise with size, lie in (0, 1), and bytes / share rises with bytes: time
 * never falls. */
static void shapes(void **state)
{
    (void)state;
    for (int c = 0; c < HV_CURVE_PLAIN; c++) {
        for (int u = 0; u < HV_USE_N; u++) {
            const struct hv_link_curve *k =
                hv_link_curve((enum hv_link_class)c, (enum hv_link_use)u);
            bool reduces = hv_link_class_reduces((enum hv_link_class)c);
            assert_true(k || (u == HV_USE_SWITCH && !reduces));
            double share = 0, time = 0;
            for (double bytes = 1; k && bytes < 1e12; bytes *= 1.3) {
                double s = hv_link_share(k, bytes);
                assert_true(s >= share && s > 0 && s < 1 && bytes / s > time);
                share = s;
                time = bytes / s;
            }
            assert_true(!k || (k->start_s > 0 && k->start_s < 1e-3));
            assert_true(!k || !strncmp(k->source, "fitted", 6) ||
                        !strncmp(k->source, "estimated", 9));
        }
    }
}

static enum hv_link_class class_of(enum hv_link_kind kind, const char *catalogue)
{
    struct hv_device_kind d = {.name = "x", .link_kind = catalogue};
    return hv_link_class_of(kind, &d);
}

static void classes(void **state)
{
    (void)state;
    assert_int_equal(class_of(HV_LINK_NVLINK, "NVLink4 (cut)"), HV_CURVE_NVLINK4);
    assert_int_equal(class_of(HV_LINK_NVSWITCH, "NVLink5"), HV_CURVE_NVLINK5);
    assert_int_equal(class_of(HV_LINK_NVLINK, "NVLink6"), HV_CURVE_NVLINK5);
    assert_int_equal(class_of(HV_LINK_NVLINK, "NVLink3 bridge"), HV_CURVE_BRIDGE);
    assert_int_equal(class_of(HV_LINK_NVLINK, "NVLink2"), HV_CURVE_NVLINK2);
    assert_int_equal(class_of(HV_LINK_NVSWITCH, "NVLink2+NVSwitch"), HV_CURVE_NVLINK3);
    assert_int_equal(class_of(HV_LINK_NVLINK, NULL), HV_CURVE_NVLINK3);
    assert_int_equal(class_of(HV_LINK_PCIE_ROOT, "NVLink4"), HV_CURVE_PCIE);
    assert_int_equal(class_of(HV_LINK_XGMI, "xGMI3"), HV_CURVE_XGMI3);
    assert_int_equal(class_of(HV_LINK_XGMI, "xGMI4"), HV_CURVE_MESH);
    assert_int_equal(class_of(HV_LINK_HCCS, "HCCS"), HV_CURVE_MESH);
    assert_int_equal(class_of(HV_LINK_ICI, "ICI 3D torus 6x100"), HV_CURVE_TORUS);
    assert_int_equal(hv_link_class_of(HV_LINK_IB, NULL), HV_CURVE_NETWORK);
    assert_false(hv_link_class_reduces(HV_CURVE_NVLINK3));
    assert_true(hv_link_class_reduces(HV_CURVE_NVLINK4));
}

/* Calibration of a device class stands on top of the curve. */
static void calibration(void **state)
{
    struct hv_calibration slow = *hv_calibration_generic();
    struct hv_device_kind d = a100;
    struct series s = measured[0], t = measured[0];
    (void)state;
    slow.v[HV_CAL_NODE_LINKS] = 0.5;
    d.calibration = &slow;
    t.kind = &d;
    struct hv_cluster *a = machine(&s), *b = machine(&t);
    double start = hv_link_curve(HV_CURVE_NVLINK3, HV_USE_RING)->start_s * 1e6 + 2 * 0.2 * 3;
    double x = predicted_us(a, &s, 64e6) - start, y = predicted_us(b, &t, 64e6) - start;
    assert_true(fabs(y / x - 2) < 1e-9);
    hv_cluster_unref(a);
    hv_cluster_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_timings), cmocka_unit_test(large_messages),
        cmocka_unit_test(gathers_of_b200), cmocka_unit_test(shapes),
        cmocka_unit_test(plain),           cmocka_unit_test(classes),
        cmocka_unit_test(calibration),
    };
    return cmocka_run_group_tests_name("cost_link_curve", tests, setup, NULL);
}
