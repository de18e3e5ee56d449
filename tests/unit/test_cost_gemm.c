/* Prices of products and streams: against published timings, against each other, and never falling
 * as shapes grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/cost/device/gemm.h"
#include "solver/io/own/docs.h"
#include "tests/cost_fixture.h"

/* Timings of fp16 products, median of Vidur's (microsoft/vidur@7d47513, MIT,
 * data/profiling/compute/<device>/<model>/mlp.csv); 30 shapes per device drawn by lot. */
struct point {
    double m, n, k, us;
};
static const struct point a100[] = {
    {8, 3072, 4096, 21.5},        {8, 5120, 8192, 59.5},     {16, 6144, 8192, 69},
    {16, 8192, 11008, 120},       {24, 10240, 8192, 115},    {48, 3584, 4096, 25},
    {48, 57344, 8192, 620.25},    {56, 4096, 1376, 13},      {240, 5120, 640, 14},
    {248, 8192, 14336, 256},      {400, 28672, 4096, 499},   {552, 5120, 5120, 144},
    {576, 27648, 5120, 788.5},    {848, 4096, 2752, 98},     {864, 5120, 13824, 560.5},
    {864, 24576, 8192, 1599.5},   {1744, 7168, 8192, 886},   {2272, 6912, 5120, 653.5},
    {3104, 5120, 5120, 810.5},    {3360, 4096, 2752, 311},   {3392, 4096, 5504, 620},
    {3680, 5120, 2560, 490},      {3872, 5120, 2560, 537.5}, {4224, 6144, 4096, 1049.5},
    {6720, 8192, 28672, 14562.5}, {11264, 4096, 3584, 1437}, {12160, 14336, 4096, 6531.5},
    {14592, 28672, 4096, 14715},  {31488, 4096, 3584, 4041}, {32256, 5120, 8192, 11110},
};
static const struct point h100[] = {
    {4, 4096, 2752, 11},        {4, 8192, 3584, 22.5},     {8, 3840, 5120, 19},
    {16, 3072, 4096, 14},       {24, 4096, 1376, 8},       {32, 5504, 8192, 37},
    {48, 8192, 3072, 22},       {128, 15360, 5120, 60.5},  {136, 5504, 4096, 26},
    {312, 6144, 8192, 90.5},    {464, 5120, 6912, 73},     {568, 8192, 28672, 758},
    {688, 3840, 5120, 54},      {776, 8192, 14336, 286},   {872, 44032, 8192, 1019},
    {920, 8192, 11008, 345.5},  {1120, 5120, 8192, 163.5}, {1216, 8192, 14336, 377},
    {1536, 5120, 640, 23},      {2000, 8192, 3072, 132},   {2080, 57344, 8192, 2859},
    {2112, 3840, 5120, 139.5},  {2240, 4096, 4096, 130.5}, {2528, 6144, 8192, 347.75},
    {2624, 11008, 8192, 688},   {2912, 7680, 5120, 327},   {3008, 1280, 8192, 89.5},
    {3040, 15360, 5120, 687.5}, {3488, 5120, 1280, 65},    {3872, 3072, 8192, 289.5},
};
static const struct point a40[] = {
    {2, 22016, 4096, 321},        {2, 57344, 8192, 1676},      {16, 2560, 8192, 88.5},
    {16, 57344, 8192, 1700.5},    {72, 3456, 5120, 81},        {72, 4096, 4096, 79},
    {88, 4096, 4096, 72},         {88, 6144, 8192, 217},       {176, 13824, 5120, 329.5},
    {264, 15360, 5120, 496},      {344, 12288, 4096, 356},     {456, 2560, 10240, 210},
    {496, 2560, 10240, 212},      {528, 5120, 640, 44},        {632, 14336, 8192, 1308},
    {992, 2560, 8192, 346.25},    {1056, 12288, 4096, 956},    {1216, 15360, 5120, 1692},
    {1296, 12288, 8192, 2435.25}, {1648, 5504, 4096, 644.5},   {2016, 10240, 8192, 3092.5},
    {2048, 8192, 2752, 806},      {2208, 4096, 1024, 197},     {2496, 8192, 11008, 3883.5},
    {2720, 8192, 14336, 5612},    {2752, 14336, 8192, 6077},   {3488, 3456, 5120, 1131.5},
    {3488, 4096, 1376, 340},      {3584, 10240, 2560, 1706.5}, {3872, 27648, 5120, 9180},
};

/* fp8 products on H800: dense and grouped (m rows per group), DeepGEMM@a6d97a1 README (MIT),
 * TFLOP/s. Nothing was fitted on them. */
static const struct {
    double groups, m, n, k, tflops;
} deepgemm[] = {
    {1, 64, 2112, 7168, 206},     {1, 64, 24576, 1536, 289},   {1, 64, 32768, 512, 219},
    {1, 64, 7168, 16384, 336},    {1, 64, 4096, 7168, 287},    {1, 64, 7168, 2048, 295},
    {1, 128, 2112, 7168, 352},    {1, 128, 24576, 1536, 535},  {1, 128, 32768, 512, 358},
    {1, 128, 7168, 16384, 645},   {1, 128, 4096, 7168, 533},   {1, 128, 7168, 2048, 510},
    {1, 4096, 2112, 7168, 1058},  {1, 4096, 24576, 1536, 990}, {1, 4096, 32768, 512, 590},
    {1, 4096, 7168, 16384, 1358}, {1, 4096, 4096, 7168, 1304}, {1, 4096, 7168, 2048, 1025},
    {4, 8192, 4096, 7168, 1297},  {4, 8192, 7168, 2048, 1099}, {8, 4096, 4096, 7168, 1288},
    {8, 4096, 7168, 2048, 1093},  {1, 1024, 4096, 7168, 1233}, {1, 1024, 7168, 2048, 925},
    {2, 512, 4096, 7168, 1040},   {2, 512, 7168, 2048, 916},   {4, 256, 4096, 7168, 932},
    {4, 256, 7168, 2048, 815},
};

/* Residual additions: bytes moved and median microseconds, Vidur as above (none that its cache made
 * faster than the memory). */
static const struct {
    const char *device;
    double bytes, us;
} additions[] = {
    {"A100-SXM-80GB", 98304, 2},       {"A100-SXM-80GB", 2949120, 3},
    {"A100-SXM-80GB", 24969216, 10.5}, {"A100-SXM-80GB", 99876864, 56},
    {"A100-SXM-80GB", 199753728, 111}, {"H100-SXM-80GB", 98304, 1.25},
    {"H100-SXM-80GB", 2949120, 2},     {"H100-SXM-80GB", 99876864, 30},
    {"H100-SXM-80GB", 199753728, 62},  {"A40-48GB", 98304, 1},
    {"A40-48GB", 24969216, 43},        {"A40-48GB", 99876864, 172},
    {"A40-48GB", 199753728, 347.25},
};

static int setup(void **state)
{
    struct hv_device_catalogue *c = hv_xcalloc(1, sizeof *c);
    struct hv_err err;
    if (hv_device_catalogue_read(c, &err) != HV_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct hv_device_catalogue *c = *state;
    hv_device_catalogue_free(c);
    free(c);
    return 0;
}

static const struct hv_device_kind *kind(void **state, const char *name)
{
    const struct hv_device_kind *k = hv_device_find(*state, name);
    assert_non_null(k);
    return k;
}

static void check_points(const struct hv_device_kind *d, const struct point *p, size_t n)
{
    double mean = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        struct hv_gemm_price x = hv_gemm(d, HV_FP16, p[i].m, p[i].n, p[i].k, 1);
        double error = fabs(x.time_s / (p[i].us * 1e-6) - 1);
        assert_int_equal(x.basis, HV_GEMM_TABLE);
        assert_true(x.error_frac > 0 && x.error_frac < 0.1);
        assert_non_null(strstr(x.source, "vidur"));
        mean += error / (double)n;
        worst = fmax(worst, error);
    }
    if (!(mean < 0.09) || !(worst < 0.45)) {
        fail_msg("%s: mean error %.3f, worst %.3f", d->name, mean, worst);
    }
}

static void test_timings(void **state)
{
    check_points(kind(state, "A100-SXM-80GB"), a100, HV_COUNT(a100));
    check_points(kind(state, "H100-SXM-80GB"), h100, HV_COUNT(h100));
    check_points(kind(state, "A40-48GB"), a40, HV_COUNT(a40));
}

static void test_fp8_and_groups(void **state)
{
    const struct hv_device_kind *d = kind(state, "H800-SXM-80GB");
    double error = 0, bias = 0, n = HV_COUNT(deepgemm);
    for (size_t i = 0; i < HV_COUNT(deepgemm); i++) {
        double g = deepgemm[i].groups;
        struct hv_gemm_price x =
            hv_gemm(d, HV_FP8, g * deepgemm[i].m, deepgemm[i].n, deepgemm[i].k, g);
        double e = deepgemm[i].tflops * 1e12 / x.flops_per_s - 1;
        error += fabs(e) / n;
        bias += e / n;
        assert_int_equal(x.basis, HV_GEMM_SCALED);
    }
    if (!(error < 0.14) || !(fabs(bias) < 0.03)) {
        fail_msg("mean error %.3f, bias %.3f", error, bias);
    }
}

/* Share of the peak that grouped bf16 products of B200 reached forward: SimuMax@4dcaae5
 * configs/system, group_matmul (Apache-2.0). */
static const struct {
    double groups, m, n, k, share;
} simumax[] = {
    {160, 154, 3072, 5120, 0.19969}, {256, 128, 4096, 7168, 0.20811},
    {128, 256, 4096, 7168, 0.27144}, {80, 308, 3072, 5120, 0.38676},
    {64, 512, 4096, 7168, 0.36701},  {64, 512, 7168, 2048, 0.42745},
    {40, 616, 3072, 5120, 0.4618},   {40, 616, 5120, 1536, 0.32578},
    {32, 1024, 4096, 7168, 0.45711}, {20, 1232, 3072, 5120, 0.51342},
    {20, 1232, 5120, 1536, 0.39744}, {40, 2460, 3072, 5120, 0.48677},
    {40, 2460, 5120, 1536, 0.49584}, {40, 9832, 3072, 5120, 0.47463},
};

static void test_groups_of_few_rows(void **state)
{
    struct hv_gemm_pricer g = hv_gemm_pricer_of(kind(state, "B200-SXM-180GB"), HV_BF16);
    double error = 0, without = 0, n = HV_COUNT(simumax);
    for (size_t i = 0; i < HV_COUNT(simumax); i++) {
        double m = simumax[i].m, groups = simumax[i].groups;
        double single = hv_gemm_share(&g, groups * m, simumax[i].n, simumax[i].k, groups);
        single *= g.best_flops_per_s / 2250e12;
        error += fabs(single * hv_gemm_group_share(m) / simumax[i].share - 1) / n;
        without += fabs(single / simumax[i].share - 1) / n;
    }
    if (!(error < 0.13) || !(without > 0.25)) {
        fail_msg("mean error %.3f, %.3f without", error, without);
    }
}

static void test_additions(void **state)
{
    for (size_t i = 0; i < HV_COUNT(additions); i++) {
        const struct hv_device_kind *d = kind(state, additions[i].device);
        double us = hv_stream_s(d, additions[i].bytes) * 1e6;
        if (!(fabs(us - additions[i].us) <= 0.75 + 0.15 * additions[i].us)) {
            fail_msg("%s %g bytes: %g us", d->name, additions[i].bytes, us);
        }
    }
}

/* The three at once are those of the three shapes one by one. */
static void test_gradients(void **state)
{
    static const char *const names[] = {"A100-SXM-80GB", "H200-SXM-141GB", "V100-SXM2-32GB"};
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        struct hv_gemm_pricer g = hv_gemm_pricer_of(kind(state, names[i]), HV_FP16);
        for (double groups = 1; groups <= 8; groups *= 4) {
            double m = 3000 * groups, n = 1100, k = 7000;
            struct hv_gemm_shares s = hv_gemm_shares(&g, m, n, k, groups);
            assert_true(fabs(s.forward / hv_gemm_share(&g, m, n, k, groups) - 1) < 1e-12);
            assert_true(fabs(s.input_grad / hv_gemm_share(&g, m, k, n, groups) - 1) < 1e-12);
            double weight = hv_gemm_share(&g, k * groups, n, m / groups, groups);
            assert_true(fabs(s.weight_grad / weight - 1) < 1e-12);
        }
    }
}

static const enum hv_precision formats[] = {HV_FP32, HV_TF32, HV_FP16, HV_BF16, HV_FP8};

static void check_growth(const struct hv_device_kind *d, enum hv_precision p, struct hv_rng *r)
{
    struct hv_gemm_pricer g = hv_gemm_pricer_of(d, p);
    double x[3], last = 0, groups = hv_rng_below(r, 3) ? 1 : (double)(2 << hv_rng_below(r, 5));
    for (int i = 0; i < 3; i++) {
        x[i] = exp2(18 * hv_rng_double(r));
    }
    x[0] *= groups;
    size_t axis = (size_t)hv_rng_below(r, 3);
    for (int step = 0; step < 24; step++) {
        double share = hv_gemm_share(&g, x[0], x[1], x[2], groups);
        double flops = 2 * x[0] * x[1] * x[2];
        double time_s = flops / (g.best_flops_per_s * share);
        if (!(share > 0 && share <= 1) || !(time_s >= last * (1 - 1e-9))) {
            fail_msg("%s %s %g x %g x %g: share %g, %.9g s after %.9g s", d->name,
                     hv_precision_name(p), x[0], x[1], x[2], share, time_s, last);
        }
        if (!(g.best_flops_per_s <= hv_device_peak_flops_per_s(d, p))) {
            fail_msg("%s %s above its peak", d->name, hv_precision_name(p));
        }
        last = time_s;
        x[axis] *= 1 + hv_rng_double(r);
    }
}

/* No product of any device in any format gets faster by growing, nor faster than the best. */
static void test_time_never_falls(void **state)
{
    const struct hv_device_catalogue *c = *state;
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    for (size_t i = 0; i < c->n_kinds; i++) {
        for (size_t f = 0; f < HV_COUNT(formats); f++) {
            bool able =
                hv_device_has(&c->kinds[i], formats[f]) && hv_known(c->kinds[i].memory_bytes_per_s);
            for (int n = 0; able && n < (c->kinds[i].profile ? 150 : 5); n++) {
                check_growth(&c->kinds[i], formats[f], &r);
            }
        }
    }
}

static void test_streams_never_fall(void **state)
{
    const struct hv_device_catalogue *c = *state;
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct hv_device_kind *d = &c->kinds[i];
        double last = 0;
        for (double b = 1; b < 1e13 && hv_known(d->memory_bytes_per_s); b *= 1.3) {
            double s = hv_stream_s(d, b), share = hv_stream_share(d, b);
            assert_true(s >= last * (1 - 1e-12) && share > 0 && share <= 1);
            assert_true(b / s <= 1.0001 * d->memory_bytes_per_s);
            last = s;
        }
    }
    assert_true(hv_stream_s(&c->kinds[0], 0) == 0);
}

/* Faster memory helps thin products only, slower memory hurts them only. */
static void test_same_chip(void **state)
{
    const struct hv_device_kind *h100k = kind(state, "H100-SXM-80GB");
    const struct hv_device_kind *h200 = kind(state, "H200-SXM-141GB");
    const struct hv_device_kind *a80 = kind(state, "A100-SXM-80GB");
    const struct hv_device_kind *a40gb = kind(state, "A100-SXM-40GB");
    double thin = hv_gemm(h100k, HV_BF16, 8, 8192, 8192, 1).time_s /
                  hv_gemm(h200, HV_BF16, 8, 8192, 8192, 1).time_s;
    double large = hv_gemm(h100k, HV_BF16, 8192, 8192, 8192, 1).time_s /
                   hv_gemm(h200, HV_BF16, 8192, 8192, 8192, 1).time_s;
    assert_true(thin > 1.3 && thin < 4800.0 / 3350);
    assert_true(large >= 1 && large < 1.02);
    assert_true(hv_gemm(a40gb, HV_BF16, 8, 8192, 8192, 1).time_s >
                1.1 * hv_gemm(a80, HV_BF16, 8, 8192, 8192, 1).time_s);
    assert_true(hv_gemm(a40gb, HV_BF16, 8192, 8192, 8192, 1).time_s ==
                hv_gemm(a80, HV_BF16, 8192, 8192, 8192, 1).time_s);
    assert_int_equal(hv_gemm(a40gb, HV_BF16, 8, 8192, 8192, 1).basis, HV_GEMM_SCALED);
}

/* Without a table: t0 + max(FLOPs at the thin rate, bytes), in closed form. */
static void test_roofline(void **state)
{
    (void)state;
    struct hv_efficiency e = hv_efficiency_of(&kind_v100, HV_FP16);
    struct hv_gemm_price x = hv_gemm(&kind_v100, HV_FP16, 4096, 1024, 64, 1);
    double thin = 1 - exp(-1.0);
    double flops_s = 2.0 * 4096 * 1024 * 64 / (e.gemm_flops_per_s * thin);
    double bytes_s = 2 * (4096.0 * 64 + 1024 * 64 + 4096 * 1024) / e.bytes_per_s;
    double want = e.gemm_start_s + fmax(flops_s, bytes_s);
    assert_true(fabs(x.time_s / want - 1) < 1e-6);
    assert_int_equal(x.basis, HV_GEMM_ROOFLINE);
    assert_null(x.device);
    assert_true(isnan(hv_gemm(&kind_v100, HV_FP8, 64, 64, 64, 1).time_s));
    assert_true(isnan(hv_gemm(&kind_v100, HV_FP8, 64, 64, 64, 1).shape_frac));
}

static void check_floor(struct hv_cost *k, const struct hv_device_kind *d, double sequences, int tp)
{
    struct hv_part_query q = {.device = d,
                              .tp = tp,
                              .cp = 1,
                              .ep = 1,
                              .sequences = sequences,
                              .tokens = hv_cost_tokens(k)};
    for (int part = 0; part < HV_PART_N; part++) {
        struct hv_part_cost c = hv_cost_part(k, (enum hv_part)part, 0, &q, NULL);
        double spent = c.forward_s + c.input_grad_s + c.weight_grad_s;
        double floor_s = hv_cost_floor_s(k, (enum hv_part)part, 0, d);
        if (!(spent * tp >= floor_s * sequences * (1 - 1e-9))) {
            fail_msg("%s part %d: %g s for a floor of %g s", d->name, part, spent * tp,
                     floor_s * sequences);
        }
    }
}

static void test_floor_and_words(void **state)
{
    const struct hv_device_catalogue *c = *state;
    struct hv_cluster *cluster = fixture_cost_cluster();
    struct hv_model *models[] = {fixture_llama(), fixture_mixtral()};
    struct hv_job j = fixture_job(4096);
    for (int i = 0; i < 2; i++) {
        struct hv_cost *k = hv_cost_new(cluster, models[i], &j);
        for (size_t d = 0; d < c->n_kinds; d++) {
            for (int tp = 1; c->kinds[d].profile && tp <= 8; tp *= 2) {
                check_floor(k, &c->kinds[d], 0.25, tp);
                check_floor(k, &c->kinds[d], 16, tp);
            }
        }
        hv_cost_free(k);
    }
    struct hv_arena arena = {0};
    struct hv_why why = {.arena = &arena};
    struct hv_cost *k = hv_cost_new(cluster, models[0], &j);
    struct hv_part_query q = {.device = kind(state, "A100-SXM-80GB"),
                              .tp = 1,
                              .cp = 1,
                              .ep = 1,
                              .sequences = 1,
                              .tokens = 4096};
    hv_cost_part(k, HV_PART_FFN, 0, &q, &why);
    bool table = false, stream = false;
    for (size_t i = 0; i < why.n; i++) {
        const char *t = why.terms[i].text;
        table |=
            strstr(t, "(table of A100-SXM-80GB, microsoft/vidur") && strstr(t, "error band 6 %");
        stream |= strstr(t, "of which this size reaches") && strstr(t, "vidur");
    }
    assert_true(table && stream);
    q.device = &kind_v100;
    j.precision = HV_FP16;
    hv_cost_free(k);
    k = hv_cost_new(cluster, models[0], &j);
    why = (struct hv_why){.arena = &arena};
    hv_cost_part(k, HV_PART_FFN, 0, &q, &why);
    bool roofline = false;
    for (size_t i = 0; i < why.n; i++) {
        roofline |= strstr(why.terms[i].text, "(roofline, error band 13 %)") != NULL;
    }
    assert_true(roofline);
    hv_cost_free(k);
    hv_arena_free(&arena);
    hv_model_unref(models[0]);
    hv_model_unref(models[1]);
    hv_cluster_unref(cluster);
}

/* No product with rows in a range has a larger share than the range is told. */
static void test_shares_between(void **state)
{
    struct hv_rng r;
    hv_rng_seed(&r, 4);
    const char *const names[] = {"A100-SXM-80GB", "H100-SXM-80GB", "A40-48GB", "V100-SXM2-32GB"};
    for (int i = 0; i < 20000; i++) {
        const struct hv_device_kind *d = kind(state, names[hv_rng_below(&r, 4)]);
        struct hv_gemm_pricer g = hv_gemm_pricer_of(d, HV_FP16);
        double n = floor(exp2(14 * hv_rng_double(&r))), k = floor(exp2(14 * hv_rng_double(&r)));
        struct hv_gemm_rows rows = {exp2(18 * hv_rng_double(&r)), 0};
        rows.most = rows.least * (1 + hv_rng_double(&r) * (i % 2 ? 0.5 : 20));
        rows.least *= i % 7 > 0;
        double m = rows.least + hv_rng_double(&r) * (rows.most - rows.least);
        struct hv_gemm_shares most = hv_gemm_shares_between(&g, &rows, n, k);
        struct hv_gemm_shares x = hv_gemm_shares(&g, fmax(m, 1e-3), n, k, 1);
        assert_true(x.forward <= most.forward * (1 + 1e-9));
        assert_true(x.input_grad <= most.input_grad * (1 + 1e-9));
        assert_true(x.weight_grad <= most.weight_grad * (1 + 1e-9));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timings),
        cmocka_unit_test(test_fp8_and_groups),
        cmocka_unit_test(test_groups_of_few_rows),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_additions),
        cmocka_unit_test(test_time_never_falls),
        cmocka_unit_test(test_streams_never_fall),
        cmocka_unit_test(test_same_chip),
        cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_floor_and_words),
        cmocka_unit_test(test_shares_between),
    };
    return cmocka_run_group_tests_name("cost_gemm", tests, setup, teardown);
}
