/* The profiler on a device that is a formula with a clock of its own: everything but the launches.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/io/own/cluster/probe_file.h"
#include "solver/io/own/cluster/profile_file.h"
#include "solver/io/own/docs.h"
#include "solver/profiler/journal.h"
#include "solver/profiler/profiler.h"
#include "solver/profiler/table_file.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void assert_near(double a, double b, double within)
{
    if (!(fabs(a - b) <= within)) {
        fail_msg("%.9g is not within %.3g of %.9g", a, within, b);
    }
}

/* ---- a device that is a formula -------------------------------------------------------------- */

struct fake {
    struct hv_probe probes[HV_LAYER_PROBES];
    size_t n_probes, prepared, released;
    double now_s, noise_frac, memory_bytes;
    const char *name;
    bool no_bf16, no_attention;
    int stop_after; /* runs; 0: never */
    volatile sig_atomic_t stop;
    struct hv_rng rng;
};

#define PEAK  100e12
#define BYTES 1e12
#define START 4e-6

/* Smooth in its sizes, so that grids foresee it: a roofline whose corner is rounded. */
static double formula_s(const struct hv_probe *p)
{
    double flops_s = hv_probe_flops(p) / PEAK, bytes_s = hv_probe_bytes(p) / BYTES;
    if (p->precision == HV_FP8) {
        flops_s /= 2;
    } else if (p->precision == HV_FP32) {
        flops_s *= 16;
    } else if (p->precision == HV_TF32) {
        flops_s *= 2;
    }
    return START + sqrt(flops_s * flops_s + bytes_s * bytes_s);
}

static void fake_card(void *self, struct hv_bench_card *out)
{
    const struct fake *f = self;
    *out = (struct hv_bench_card){.driver = "580.1", .runtime = "13.0", .blas = "13.1", .peers = 1};
    (void)snprintf(out->name, sizeof out->name, "%s", f->name);
    out->memory_bytes = f->memory_bytes;
}

static enum hv_status fake_prepare(void *self, const struct hv_probe *probes, size_t n,
                                   struct hv_err *err)
{
    struct fake *f = self;
    for (size_t i = 0; i < n; i++) {
        enum hv_probe_kind kind = hv_probe_kind_of(probes[i].variant);
        if (hv_probe_bytes(&probes[i]) > f->memory_bytes) {
            return hv_err_set(err, HV_ENO, "OOM");
        }
        if ((f->no_bf16 && kind <= HV_PROBE_ATTENTION && probes[i].precision == HV_BF16) ||
            (f->no_bf16 && probes[i].precision == HV_FP8) ||
            (f->no_attention && kind == HV_PROBE_ATTENTION)) {
            return hv_err_set(err, HV_ENO, "not on this card");
        }
        f->probes[i] = probes[i];
    }
    f->n_probes = n;
    f->prepared++;
    f->now_s += 1e-3;
    return HV_OK;
}

static enum hv_status fake_run(void *self, unsigned repeats, double *seconds, struct hv_err *err)
{
    struct fake *f = self;
    (void)err;
    double once = 0;
    for (size_t i = 0; i < f->n_probes; i++) {
        once += formula_s(&f->probes[i]);
    }
    once *= 1 + f->noise_frac * (2 * hv_rng_double(&f->rng) - 1);
    *seconds = once * repeats;
    f->now_s += *seconds;
    if (f->stop_after > 0 && --f->stop_after == 0) {
        f->stop = 1;
    }
    return HV_OK;
}

static void fake_release(void *self)
{
    struct fake *f = self;
    f->released++;
}

static double fake_clock_hz(void *self)
{
    (void)self;
    return 1.4e9;
}

static double fake_now_s(void *self)
{
    const struct fake *f = self;
    return f->now_s;
}

static struct fake new_fake(void)
{
    struct fake f = {.name = "NVIDIA A100-SXM4-80GB", .memory_bytes = 80e9, .noise_frac = 0.01};
    hv_rng_seed(&f.rng, 1);
    return f;
}

static struct hv_bench bench_of(struct fake *f)
{
    return (struct hv_bench){
        f, fake_card, fake_prepare, fake_run, fake_release, fake_clock_hz, fake_now_s};
}

/* ---- sampling -------------------------------------------------------------------------------- */

static void medians_are_those_of_the_definition(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_near(hv_median(odd, 3), 3, 0);
    assert_near(hv_median(even, 4), 2.5, 0);
    assert_near(hv_median(one, 1), 7, 0);
}

static void a_steady_device_needs_few_timings_and_a_noisy_one_more(void **state)
{
    (void)state;
    struct hv_sampling how = {1e-3, 0.005, 5, 40, 1e9};
    struct hv_probe p = {HV_FORWARD, HV_BF16, {4096, 4096, 4096}};
    struct hv_probe_sample s;
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    f.noise_frac = 0;
    assert_int_equal(hv_sample_run(&b, &p, 1, &how, &s, NULL), HV_OK);
    assert_int_equal(s.n, 5);
    assert_near(s.median_s, formula_s(&p), 1e-12);
    assert_near(s.clock_hz, 1.4e9, 1);
    f.noise_frac = 0.05;
    assert_int_equal(hv_sample_run(&b, &p, 1, &how, &s, NULL), HV_OK);
    assert_near(s.median_s / formula_s(&p), 1, 0.05);
    int n = 0;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(hv_sample_run(&b, &p, 1, &how, &s, NULL), HV_OK);
        n += s.n;
    }
    assert_true(n > 50 * 20);
    assert_int_equal(f.prepared, f.released);
}

static void what_the_card_cannot_is_no_error_of_ours(void **state)
{
    (void)state;
    struct hv_sampling how = {1e-3, 0.01, 3, 5, 1};
    struct hv_probe p = {HV_CORE_FORWARD, HV_BF16, {1, 1024, 8, 8, 64}};
    struct hv_probe_sample s;
    struct hv_err err = {0};
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    f.no_attention = true;
    assert_int_equal(hv_sample_run(&b, &p, 1, &how, &s, &err), HV_ENO);
    assert_string_equal(err.text, "not on this card");
    assert_int_equal(f.released, 0);
}

/* ---- lattices -------------------------------------------------------------------------------- */

static double log2_area(void *ctx, size_t place)
{
    const struct hv_lattice *l = ctx;
    double s[3];
    hv_lattice_sizes(l, place, s);
    return log2(s[0]) + log2(s[1]) + log2(s[2]);
}

static void levels_cover_every_place_once(void **state)
{
    (void)state;
    const struct hv_log_axis axes[3] = {{5, 1, 11}, {8, 1, 8}, {8, 1, 6}};
    struct hv_lattice l;
    hv_lattice_init(&l, axes, 3, 0); /* nothing is foreseen well enough */
    size_t place = 0, n[HV_LATTICE_LEVELS] = {0};
    for (int level = 0; level < HV_LATTICE_LEVELS; level++) {
        while (hv_lattice_next(&l, level, &place)) {
            assert_int_equal(hv_lattice_level(&l, place), level);
            assert_false(l.tried[place]);
            hv_lattice_set(&l, place, 1 + (double)(place * 7919 % 101));
            n[level]++;
        }
    }
    assert_int_equal(n[0], 4 * 3 * 3); /* 0, 4, 8, 10; 0, 4, 7; 0, 4, 5 */
    assert_int_equal(n[0] + n[1], 6 * 5 * 4);
    assert_int_equal(n[0] + n[1] + n[2], l.n);
    hv_lattice_free(&l);
}

static void places_that_were_foreseen_are_not_measured(void **state)
{
    (void)state;
    const struct hv_log_axis axes[3] = {{5, 1, 9}, {8, 1, 9}, {8, 1, 9}};
    struct hv_lattice l;
    hv_lattice_init(&l, axes, 3, 0.01);
    size_t place = 0;
    for (int level = 0; level < 2; level++) {
        while (hv_lattice_next(&l, level, &place)) { /* a power law is straight in log2 */
            hv_lattice_set(&l, place, exp2(0.4 * log2_area(&l, place)));
        }
    }
    assert_false(hv_lattice_next(&l, 2, &place));
    assert_near(hv_lattice_error_frac(&l), 0, 1e-9);
    double *out = hv_xcalloc(l.n, sizeof *out);
    assert_true(hv_lattice_fill(&l, log2_area, &l, out));
    for (size_t i = 0; i < l.n; i++) {
        assert_near(out[i], 0.4 * log2_area(&l, i), 1e-9);
    }
    free(out);
    hv_lattice_free(&l);
}

/* Whatever was measured: a larger product never takes less time, and what is monotone stays. */
static void filled_times_never_fall(void **state)
{
    (void)state;
    const struct hv_log_axis axes[3] = {{5, 1, 6}, {8, 0.5, 5}, {8, 1, 4}};
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    for (int round = 0; round < 200; round++) {
        struct hv_lattice l;
        hv_lattice_init(&l, axes, 3, 0);
        double *out = hv_xcalloc(l.n, sizeof *out);
        for (size_t i = 0; i < l.n; i++) {
            if (hv_rng_double(&rng) < 0.5) {
                hv_lattice_set(&l, i, exp2(10 * hv_rng_double(&rng)));
            }
        }
        assert_true(hv_lattice_fill(&l, log2_area, &l, out));
        for (size_t i = 0; i < l.n; i++) {
            size_t stride[3] = {20, 4, 1}, count[3] = {6, 5, 4};
            for (size_t a = 0; a < 3; a++) {
                if (i / stride[a] % count[a] > 0) {
                    size_t j = i - stride[a];
                    assert_true(log2_area(&l, i) - out[i] >= log2_area(&l, j) - out[j] - 1e-9);
                }
            }
        }
        free(out);
        hv_lattice_free(&l);
    }
}

/* ---- whole runs ------------------------------------------------------------------------------ */

static void a_full_run_foresees_layers_it_never_saw(void **state)
{
    (void)state;
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    struct hv_measuring how = {.budget_s = 1e9};
    struct hv_measured m;
    f.noise_frac = 0.005;
    assert_int_equal(hv_measure(&b, &how, &m, NULL), HV_OK);
    assert_true(m.complete);
    assert_int_equal(f.prepared, f.released);
    hv_measured_fill(&m);
    assert_int_equal(m.layers.n, 40); /* 20 shapes, two passes */
    for (size_t i = 0; i < m.layers.n; i++) {
        assert_near(m.layers.items[i].predicted_s / m.layers.items[i].measured_s, 1, 0.05);
    }
    for (size_t i = 0; i < m.n_sweeps; i++) {
        if (m.sweeps[i].log2_rate != NULL) {
            if (!(m.sweeps[i].error_frac < 0.05)) {
                fail_msg("%s %s: %.3f", hv_probe_variant_name(m.sweeps[i].sweep->variant),
                         hv_precision_name(m.sweeps[i].sweep->precision), m.sweeps[i].error_frac);
            }
        }
    }
    struct hv_probe fp16 = {HV_FORWARD, HV_FP16, {512, 512, 512}};
    assert_true(isnan(hv_measured_predict_s(&m, &fp16))); /* bf16 stands for it: not measured */
    hv_measured_free(&m);
}

static void a_card_without_bf16_is_measured_in_fp16(void **state)
{
    (void)state;
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    struct hv_measuring how = {.quick = true, .budget_s = 1e9};
    struct hv_measured m;
    f.no_bf16 = f.no_attention = true;
    assert_int_equal(hv_measure(&b, &how, &m, NULL), HV_OK);
    hv_measured_fill(&m);
    assert_true(m.sweeps[0].dead);
    assert_string_equal(m.sweeps[0].why, "not on this card");
    assert_null(m.sweeps[0].log2_rate);
    assert_non_null(m.sweeps[1].log2_rate);
    assert_int_equal(m.layers.n, 0); /* a layer needs its attention */
    hv_measured_free(&m);
}

static void a_budget_is_kept_and_leaves_tables(void **state)
{
    (void)state;
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    struct hv_measuring how = {.budget_s = 2};
    struct hv_measured m;
    assert_int_equal(hv_measure(&b, &how, &m, NULL), HV_OK);
    assert_false(m.complete);
    assert_true(m.elapsed_s < 4); /* the last sample may run over */
    hv_measured_fill(&m);
    assert_non_null(m.sweeps[0].log2_rate);
    hv_measured_free(&m);
}

static char folder[] = "/tmp/hetviz-profiler-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    (void)memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    return mkdtemp(folder) == NULL;
}

static int drop_folder(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void path_in(char *out, size_t cap, const char *name)
{
    (void)snprintf(out, cap, "%s/%s", folder, name);
}

/* Reads a profile that was written, with its samples. */
static void read_profile(const char *path, struct hv_json *json, struct hv_arena *arena,
                         struct hv_profile **p, struct hv_probe_report *report)
{
    struct hv_str text = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_file_read(path, &text, NULL), HV_OK);
    assert_int_equal(hv_json_parse(json, text.p, text.n, path, NULL), HV_OK);
    if (hv_profile_read(json, arena, p, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(hv_probe_report_read(json, arena, report, NULL), HV_OK);
    hv_str_free(&text);
}

static void a_profile_is_written_and_read_again(void **state)
{
    (void)state;
    char path[128], part[128];
    path_in(path, sizeof path, "p.json");
    path_in(part, sizeof part, "p.json.part");
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    struct hv_device_catalogue devices;
    struct hv_err err = {0};
    assert_int_equal(hv_device_catalogue_read(&devices, NULL), HV_OK);
    struct hv_profiler_options o = {.out = path, .date = "2026-11-21", .quick = true};
    f.noise_frac = 0.03;
    if (hv_profiler_run(&b, &devices, &o, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_not_equal(access(part, F_OK), 0);
    struct hv_json json = {0};
    struct hv_arena arena = {0};
    struct hv_profile *p = NULL;
    struct hv_probe_report report;
    read_profile(path, &json, &arena, &p, &report);
    assert_string_equal(p->device, "A100-SXM-80GB");
    assert_string_equal(p->date, "2026-11-21");
    assert_true(report.complete);
    assert_true(report.n_samples > 300);
    assert_int_equal(report.n_layers, 40);
    assert_string_equal(report.machine.card, "NVIDIA A100-SXM4-80GB");
    assert_near(p->kernel_start_s, START, START * 0.04);
    const struct hv_gemm_table *t = hv_profile_gemm(p, HV_BF16);
    struct hv_probe probe = {HV_FORWARD, HV_BF16, {4096, 4096, 4096}};
    assert_near(exp2(hv_gemm_table_log2_flops_per_s(t, 12, 12, 12)),
                hv_probe_flops(&probe) / formula_s(&probe), 0.08 * PEAK);
    assert_true(hv_known(hv_profile_core_flops_per_s(p, true, 4096)));
    assert_true(t->error_frac < 0.1);
    assert_non_null(p->stream);
    assert_int_equal(hv_profile_add(&devices, &json, NULL), HV_OK);
    hv_arena_free(&arena);
    hv_json_free(&json);
    hv_device_catalogue_free(&devices);
}

static void a_stopped_run_goes_on_where_it_was(void **state)
{
    (void)state;
    char path[128], part[128];
    path_in(path, sizeof path, "s.json");
    path_in(part, sizeof part, "s.json.part");
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    struct hv_device_catalogue devices;
    struct hv_err err = {0};
    assert_int_equal(hv_device_catalogue_read(&devices, NULL), HV_OK);
    struct hv_profiler_options o = {.out = path, .quick = true, .stop = &f.stop, .date = "d"};
    f.stop_after = 500;
    assert_int_equal(hv_profiler_run(&b, &devices, &o, &err), HV_ESTOPPED);
    assert_int_equal(access(part, F_OK), 0);
    size_t first = f.prepared;
    assert_true(first > 50);
    FILE *cut = fopen(part, "a"); /* a crash in the middle of a line */
    (void)fputs("{\"kind\": \"gemm\", \"va", cut);
    (void)fclose(cut);
    f.stop = 0;
    f.prepared = 0;
    assert_int_equal(hv_profiler_run(&b, &devices, &o, &err), HV_OK);
    assert_int_not_equal(access(part, F_OK), 0);
    struct fake whole = new_fake();
    struct hv_bench other = bench_of(&whole);
    o.stop = NULL;
    assert_int_equal(hv_profiler_run(&other, &devices, &o, &err), HV_OK);
    assert_true(f.prepared + first < whole.prepared + 40); /* little is measured twice */
    hv_device_catalogue_free(&devices);
}

static void a_journal_of_another_card_is_refused(void **state)
{
    (void)state;
    char path[128];
    path_in(path, sizeof path, "j.part");
    struct hv_bench_card a = {.name = "NVIDIA A100-SXM4-80GB", .driver = "1"}, other = a;
    (void)snprintf(other.name, sizeof other.name, "Tesla T4");
    struct hv_journal j;
    struct hv_err err = {0};
    assert_int_equal(hv_journal_open(&j, path, &a, true, false, NULL), HV_OK);
    hv_journal_close(&j);
    assert_int_equal(hv_journal_open(&j, path, &other, true, false, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "--fresh"));
    assert_int_equal(hv_journal_open(&j, path, &a, false, false, NULL), HV_EINPUT);
    assert_int_equal(hv_journal_open(&j, path, &other, true, true, NULL), HV_OK);
    hv_journal_close(&j);
}

static void an_unknown_card_is_refused_with_the_way_out(void **state)
{
    (void)state;
    char path[128];
    path_in(path, sizeof path, "u.json");
    struct fake f = new_fake();
    struct hv_bench b = bench_of(&f);
    struct hv_device_catalogue devices;
    struct hv_err err = {0};
    assert_int_equal(hv_device_catalogue_read(&devices, NULL), HV_OK);
    struct hv_profiler_options o = {.out = path, .quick = true, .date = "d"};
    f.name = "Imaginary 9000";
    assert_int_equal(hv_profiler_run(&b, &devices, &o, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "--as"));
    o.as = "V100-SXM2-32GB";
    assert_int_equal(hv_profiler_run(&b, &devices, &o, &err), HV_OK);
    hv_device_catalogue_free(&devices);
}

/* Names as drivers print them (nvidia-smi -L). */
static void drivers_names_find_their_kind(void **state)
{
    (void)state;
    static const struct {
        const char *card, *kind;
        double gib;
    } rows[] = {
        {"NVIDIA A100-SXM4-80GB", "A100-SXM-80GB", 80},
        {"NVIDIA A100-SXM4-40GB", "A100-SXM-40GB", 40},
        {"NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB", 40},
        {"NVIDIA A100 80GB PCIe", "A100-PCIe-80GB", 80},
        {"NVIDIA A10", "A10-24GB", 22.5},
        {"NVIDIA A10G", "A10G-24GB", 22.5},
        {"NVIDIA A40", "A40-48GB", 45},
        {"NVIDIA H100 80GB HBM3", "H100-SXM-80GB", 80},
        {"NVIDIA H100 PCIe", "H100-PCIe-80GB", 80},
        {"NVIDIA H100 NVL", "H100-NVL-94GB", 94},
        {"NVIDIA H200", "H200-SXM-141GB", 140},
        {"NVIDIA GH200 480GB", "GH200-96GB", 95},
        {"Tesla V100-SXM2-16GB", "V100-SXM2-16GB", 16},
        {"Tesla V100-PCIE-32GB", "V100-PCIe-32GB", 32},
        {"Tesla T4", "T4-16GB", 15},
        {"NVIDIA L40S", "L40S-48GB", 45},
        {"NVIDIA L4", "L4-24GB", 22},
        {"NVIDIA GeForce RTX 3090", "RTX3090-24GB", 24},
        {"NVIDIA GeForce RTX 2080 Ti", "RTX2080Ti-11GB", 11},
        {"NVIDIA RTX A6000", "RTX-A6000-48GB", 48},
        {"NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada-48GB", 48},
        {"NVIDIA B200", "B200-SXM-180GB", 179},
    };
    struct hv_device_catalogue devices;
    assert_int_equal(hv_device_catalogue_read(&devices, NULL), HV_OK);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const struct hv_device_kind *k =
            hv_device_match(&devices, rows[i].card, rows[i].gib * HV_GIB);
        if (k == NULL || strcmp(k->name, rows[i].kind) != 0) {
            fail_msg("%s: %s", rows[i].card, k != NULL ? k->name : "none");
        }
    }
    assert_null(hv_device_match(&devices, "NVIDIA GeForce GT 710", 2 * HV_GIB));
    assert_null(hv_device_match(&devices, "", 0));
    hv_device_catalogue_free(&devices);
}

static void samples_survive_the_file(void **state)
{
    (void)state;
    for (int v = 0; v < HV_PROBE_VARIANT_N; v++) {
        struct hv_probe_sample s = {{(enum hv_probe_variant)v, HV_FP16, {0}},
                                    1.25e-4,
                                    0.01,
                                    9,
                                    1.98e9},
                               back;
        enum hv_probe_kind kind = hv_probe_kind_of(s.probe.variant);
        for (size_t i = 0; hv_probe_size_name(kind, i) != NULL; i++) {
            s.probe.size[i] = 64 + (double)i;
        }
        struct hv_json json;
        hv_json_wrap(&json, hv_probe_sample_tree(&s), "sample");
        struct hv_jp root = hv_jp_root(&json);
        assert_int_equal(hv_probe_sample_read(&root, &back, NULL), HV_OK);
        assert_true(hv_probe_equal(&s.probe, &back.probe));
        assert_near(back.median_s, s.median_s, 1e-12);
        assert_near(back.clock_hz, s.clock_hz, 1);
        assert_int_equal(back.n, 9);
        hv_json_free(&json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_are_those_of_the_definition),
        cmocka_unit_test(a_steady_device_needs_few_timings_and_a_noisy_one_more),
        cmocka_unit_test(what_the_card_cannot_is_no_error_of_ours),
        cmocka_unit_test(levels_cover_every_place_once),
        cmocka_unit_test(places_that_were_foreseen_are_not_measured),
        cmocka_unit_test(filled_times_never_fall),
        cmocka_unit_test(a_full_run_foresees_layers_it_never_saw),
        cmocka_unit_test(a_card_without_bf16_is_measured_in_fp16),
        cmocka_unit_test(a_budget_is_kept_and_leaves_tables),
        cmocka_unit_test_setup_teardown(a_profile_is_written_and_read_again, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_stopped_run_goes_on_where_it_was, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(a_journal_of_another_card_is_refused, make_folder,
                                        drop_folder),
        cmocka_unit_test_setup_teardown(an_unknown_card_is_refused_with_the_way_out, make_folder,
                                        drop_folder),
        cmocka_unit_test(drivers_names_find_their_kind),
        cmocka_unit_test(samples_survive_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
