/* Error figures and the baseline against numbers done by hand; fits that find what a row was made
 * with, and that never see the source they predict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/validation/validation_file.h"
#include "solver/validate/bands.h"
#include "solver/validate/fit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define assert_near(a, b, eps) assert_true(fabs((a) - (b)) <= (eps))

static void error_figures(void **state)
{
    (void)state;
    const double measured[] = {1, 2, 4, (double)NAN, 5},
                 predicted[] = {1.1, 1.8, 4, 7, (double)NAN};
    struct hv_error_stats s;
    hv_error_stats(predicted, measured, 5, &s);
    assert_int_equal(s.n, 3);
    assert_near(s.mape_frac, 0.2 / 3, 1e-12); /* 10 %, 10 %, 0 */
    assert_near(s.bias_frac, 0, 1e-12);
    assert_near(s.spearman, 1, 1e-12);
    /* ranks 1 2 3 4 against 2 1 4 3: 1 − 6·4 / (4·15) = 0.6 */
    const double a[] = {1, 2, 3, 4}, b[] = {20, 10, 40, 30};
    hv_error_stats(a, b, 4, &s);
    assert_near(s.spearman, 0.6, 1e-12);
    /* a tie has the mean rank: 1.5 1.5 3 against 1 2 3, correlation √3/2 */
    const double t[] = {5, 5, 6}, u[] = {1, 2, 3};
    hv_error_stats(t, u, 3, &s);
    assert_near(s.spearman, sqrt(3) / 2, 1e-12);
    hv_error_stats(t, u, 2, &s);
    assert_true(isnan(s.spearman));
    hv_error_stats(t, u, 0, &s);
    assert_true(s.n == 0 && isnan(s.mape_frac) && isnan(s.bias_frac));
}

/* ---- made-up rows: what a device of known efficiency would have shown --------------------------
 */

/* Classes of the tests' own, for devices whose products are not measured in a table. */
static const struct {
    const char *name, *device;
} classes[] = {{"V", "V100-SXM2-32GB"}, {"T", "T4-16GB"}};

struct fixture {
    struct hv_device_catalogue devices;
    struct hv_calibration classes[HV_COUNT(classes)];
    struct hv_validation v;
    struct hv_arena arena;
    struct hv_prediction predicted[64];
    struct hv_class_fit fits[HV_COUNT(classes)];
};

/* One row of GPT-1.3B on a node; the sequence makes rows differ. */
static void add_row(struct hv_str *text, const char *source, int i, const char *device,
                    const char *more, const char *model)
{
    int mbs = i + 1;
    hv_str_addf(
        text,
        "%s{\"id\": \"%s-%d\", \"model\": {\"layers\": 24, \"hidden\": 2048, \"heads\": 16, "
        "\"ffn\": 8192, \"vocab\": 50304, \"seq\": 2048%s}, \"system\": {\"device\": \"%s\", "
        "\"n\": 8, \"per_node\": 8}, \"precision\": \"fp16\", \"par\": {\"tp\": 1, \"pp\": 1, "
        "\"dp\": 8, \"zero\": 1}, \"mbs\": %d, \"gbs\": %d, \"recompute\": \"none\", "
        "\"iter_s\": 1%s}",
        text->n > 12 ? ", " : "", source, i, model, device, mbs, 64 * mbs, more);
}

/* `model`: further members of the model. */
static void read_model(struct fixture *f, const char *source, const char *device, int n,
                       const char *more, const char *model)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    struct hv_err err = {0};
    hv_str_adds(&text, "{\"rows\": [");
    for (int i = 0; i < n; i++) {
        add_row(&text, source, i, device, more, model);
    }
    hv_str_adds(&text, "]}");
    struct hv_validation_reader *r = hv_validation_reader_new(&f->v, &f->devices);
    if (hv_json_parse(&json, hv_str_cstr(&text), text.n, source, &err) ||
        hv_validation_read(r, &json, source, &err)) {
        fail_msg("%s", err.text);
    }
    hv_validation_reader_free(r);
    hv_json_free(&json);
    hv_str_free(&text);
}

static void read(struct fixture *f, const char *source, const char *device, int n, const char *more)
{
    read_model(f, source, device, n, more, "");
}

static void open_fixture(struct fixture *f)
{
    struct hv_err err = {0};
    *f = (struct fixture){0};
    if (hv_device_catalogue_read(&f->devices, &err)) {
        fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < HV_COUNT(classes); i++) {
        f->classes[i] = *hv_calibration_generic();
        f->classes[i].name = classes[i].name;
        for (size_t k = 0; k < f->devices.n_kinds; k++) {
            if (strcmp(f->devices.kinds[k].name, classes[i].device) == 0) {
                f->devices.kinds[k].calibration = &f->classes[i];
            }
        }
    }
}

static void close_fixture(struct fixture *f)
{
    hv_validation_free(&f->v);
    hv_arena_free(&f->arena);
    hv_device_catalogue_free(&f->devices);
}

/* Gives every row of a source the time that the cost model predicts with these numbers. */
static void measure(struct fixture *f, const char *source, const struct hv_calibration *truth)
{
    for (size_t i = 0; i < f->v.n_rows; i++) {
        struct hv_validation_row *r = &f->v.rows[i];
        if (strcmp(r->source, source) != 0) {
            continue;
        }
        const struct hv_calibration *shipped =
            hv_device_calibration(hv_cluster_device(r->cluster, 0).kind);
        struct hv_prediction p;
        hv_cluster_calibrate(r->cluster, truth);
        hv_validation_predict(r, &f->arena, &p);
        assert_null(p.failure);
        r->measured_s = p.iteration_s;
        hv_cluster_calibrate(r->cluster, shipped);
    }
}

static void fit(struct fixture *f)
{
    struct hv_err err = {0};
    const struct hv_fit_request what = {f->classes, HV_COUNT(classes), true};
    assert_true(f->v.n_rows < HV_COUNT(f->predicted));
    hv_validation_predict_all(&f->v, &f->arena, f->predicted);
    if (hv_validation_fit(&f->v, f->predicted, &what, &f->arena, f->fits, &err) ||
        hv_validation_predict_left_out(&f->v, f->fits, HV_COUNT(classes), &f->arena, f->predicted,
                                       &err)) {
        fail_msg("%s", err.text);
    }
}

static const struct hv_class_fit *fit_of(const struct fixture *f, const char *name)
{
    for (size_t i = 0; i < HV_COUNT(classes); i++) {
        if (strcmp(f->fits[i].all.name, name) == 0) {
            return &f->fits[i];
        }
    }
    fail_msg("no class %s", name);
    return NULL;
}

static void fits_find_what_rows_were_made_with(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct hv_calibration truth = *hv_calibration_generic();
    truth.v[HV_CAL_GEMM_16] = 0.42;
    read(&f, "one", "V100-SXM2-32GB", 6, "");
    read(&f, "two", "V100-SXM2-32GB", 4, "");
    measure(&f, "one", &truth);
    measure(&f, "two", &truth);
    fit(&f);
    const struct hv_class_fit *a = fit_of(&f, "V");
    assert_int_equal(a->n_rows, 10);
    assert_int_equal(a->n_sources, 2);
    assert_int_equal(a->n_without, 2);
    assert_true(a->error_after < 0.02 && a->error_after <= a->error_before);
    for (size_t i = 0; i < f.v.n_rows; i++) {
        assert_int_equal(f.predicted[i].by, HV_BY_LEFT_OUT);
        assert_near(f.predicted[i].iteration_s / f.v.rows[i].measured_s, 1, 0.05);
    }
    close_fixture(&f);
}

/* A source that contradicts the other but is held out: the fit is that without its rows, and they
 * keep the prediction of the shipped numbers. */
static void held_out_rows_are_in_no_fit(void **state)
{
    (void)state;
    struct fixture f;
    struct hv_calibration fast = *hv_calibration_generic(), slow = fast;
    double alone[HV_CALIBRATED_N];
    fast.v[HV_CAL_GEMM_16] = 0.7;
    slow.v[HV_CAL_GEMM_16] = 0.3;
    for (int both = 0; both < 2; both++) {
        open_fixture(&f);
        read(&f, "one", "V100-SXM2-32GB", 6, "");
        if (both) {
            read(&f, "two", "V100-SXM2-32GB", 4, "");
        }
        measure(&f, "one", &fast);
        measure(&f, "two", &slow);
        for (size_t i = 6; i < f.v.n_rows; i++) {
            f.v.rows[i].held_out = true;
        }
        fit(&f);
        const struct hv_class_fit *a = fit_of(&f, "V");
        assert_int_equal(a->n_rows, 6);
        if (both) {
            struct hv_prediction p;
            assert_memory_equal(a->all.v, alone, sizeof alone);
            assert_int_equal(f.predicted[6].by, HV_BY_HELD_OUT);
            hv_cluster_calibrate(f.v.rows[6].cluster, &f.classes[0]);
            hv_validation_predict(&f.v.rows[6], &f.arena, &p);
            assert_near(f.predicted[6].iteration_s, p.iteration_s, 0);
        }
        memcpy(alone, a->all.v, sizeof alone);
        close_fixture(&f);
    }
}

/* Two sources that contradict each other: whoever is left out is predicted by the other. */
static void the_left_out_source_is_not_seen(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct hv_calibration fast = *hv_calibration_generic(), slow = fast;
    fast.v[HV_CAL_GEMM_16] = 0.8;
    slow.v[HV_CAL_GEMM_16] = 0.3;
    read(&f, "fast", "V100-SXM2-32GB", 5, "");
    read(&f, "slow", "V100-SXM2-32GB", 5, "");
    measure(&f, "fast", &fast);
    measure(&f, "slow", &slow);
    fit(&f);
    for (size_t i = 0; i < f.v.n_rows; i++) {
        double ratio = f.predicted[i].iteration_s / f.v.rows[i].measured_s;
        bool is_fast = strcmp(f.v.rows[i].source, "fast") == 0;

        assert_true(is_fast ? ratio > 1.4 : ratio < 0.7);
    }
    close_fixture(&f);
}

/* Mixtures that run three times as long as the model of dense layers explains change the numbers of
 * experts only. */
static void mixtures_move_no_dense_number(void **state)
{
    (void)state;
    struct hv_calibration found[2];
    for (int with = 0; with < 2; with++) {
        struct fixture f;
        open_fixture(&f);
        struct hv_calibration truth = *hv_calibration_generic();
        truth.v[HV_CAL_GEMM_16] = 0.42;
        read(&f, "one", "V100-SXM2-32GB", 12, "");
        measure(&f, "one", &truth);
        if (with) {
            read_model(&f, "two", "V100-SXM2-32GB", 12, "",
                       ", \"experts\": 8, \"topk\": 2, \"moe_ffn\": 4096");
            measure(&f, "two", &truth);
            for (size_t i = 0; i < f.v.n_rows; i++) {
                f.v.rows[i].measured_s *= f.v.rows[i].experts ? 3 : 1;
            }
        }
        fit(&f);
        found[with] = fit_of(&f, "V")->all;
        close_fixture(&f);
    }
    for (int k = 0; k < HV_CALIBRATED_N; k++) {
        if (!hv_calibrated_by_experts((enum hv_calibrated)k)) {
            assert_near(found[1].v[k] / found[0].v[k], 1, 1e-9);
        }
    }
    assert_true(found[1].v[HV_CAL_EXPERT_US] > found[0].v[HV_CAL_EXPERT_US]);
}

/* Fewer rows than tell all numbers tell the shares of products alone, and number formats of one
 * card move together. */
static void few_rows_move_products_only(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct hv_calibration truth = *hv_calibration_typical();
    truth.v[HV_CAL_GEMM_16] *= 0.8;
    read(&f, "one", "V100-SXM2-32GB", 3, "");
    measure(&f, "one", &truth);
    fit(&f);
    const struct hv_class_fit *a = fit_of(&f, "V");
    const double *v = a->all.v, *typical = hv_calibration_typical()->v;
    assert_near(v[HV_CAL_GEMM_16] / truth.v[HV_CAL_GEMM_16], 1, 0.05);
    assert_near(v[HV_CAL_GEMM_8] / v[HV_CAL_GEMM_16],
                typical[HV_CAL_GEMM_8] / typical[HV_CAL_GEMM_16], 1e-6);
    assert_near(v[HV_CAL_GEMM_4] / v[HV_CAL_GEMM_8],
                typical[HV_CAL_GEMM_4] / typical[HV_CAL_GEMM_8], 1e-6);
    assert_near(v[HV_CAL_STREAM], typical[HV_CAL_STREAM], 1e-9);
    assert_near(v[HV_CAL_TP_HIDDEN], typical[HV_CAL_TP_HIDDEN], 1e-9);
    /* measured numbers are known better than those that keep their prior */
    assert_true(a->uncertainty[HV_CAL_GEMM_16] < hv_calibrated_rows[HV_CAL_GEMM_16].spread / 2);
    assert_near(a->uncertainty[HV_CAL_TP_HIDDEN], hv_calibrated_rows[HV_CAL_TP_HIDDEN].spread,
                1e-6);
    close_fixture(&f);
}

static void one_source_gets_the_generic_fit(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct hv_calibration truth = *hv_calibration_generic();
    truth.v[HV_CAL_GEMM_16] = 0.42;
    read(&f, "one", "V100-SXM2-32GB", 4, "");
    read(&f, "two", "V100-SXM2-32GB", 4, "");
    read(&f, "three", "T4-16GB", 4, "");
    for (int i = 0; i < 3; i++) {
        measure(&f, (const char *const[]){"one", "two", "three"}[i], &truth);
    }
    fit(&f);
    assert_int_equal(fit_of(&f, "T")->n_sources, 1);
    assert_int_equal(fit_of(&f, "T")->n_without, 0);
    for (size_t i = 0; i < f.v.n_rows; i++) {
        bool h = strcmp(f.v.rows[i].source, "three") == 0;
        assert_int_equal(f.predicted[i].by, h ? HV_BY_GENERIC : HV_BY_LEFT_OUT);
        /* the numbers are those of the other class, which was made with the same ones */
        assert_near(f.predicted[i].iteration_s / f.v.rows[i].measured_s, 1, h ? 0.15 : 0.05);
    }
    close_fixture(&f);
}

/* ---- the baseline and the groups ---------------------------------------------------------------
 */

static void baseline_is_the_others_median(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    read(&f, "one", "A100-SXM-80GB", 3, "");
    read(&f, "two", "A100-SXM-80GB", 1, "");
    hv_validation_predict_all(&f.v, &f.arena, f.predicted);
    /* rows of "one" at 50 % of the peak, the one of "two" at 25 % */
    for (size_t i = 0; i < f.v.n_rows; i++) {
        struct hv_validation_row *r = &f.v.rows[i];
        double work = hv_validation_flops(r, HV_RC_NONE) / (8 * 312e12);
        r->measured_s = strcmp(r->source, "one") == 0 ? work / 0.5 : work / 0.25;
    }
    double s[8];
    hv_validation_baseline(&f.v, f.predicted, s);
    for (size_t i = 0; i < f.v.n_rows; i++) {
        bool one = strcmp(f.v.rows[i].source, "one") == 0;
        assert_near(s[i] / f.v.rows[i].measured_s, one ? 2 : 0.5, 1e-9);
    }
    struct hv_validation_report report;
    hv_validation_sum_up(&f.v, f.predicted, s, &f.arena, &report);
    assert_int_equal(report.n_groups, 2);
    assert_string_equal(report.groups[0].name, "one");
    assert_int_equal(report.groups[0].time.n, 3);
    assert_near(report.groups[0].baseline.mape_frac, 1, 1e-9);
    assert_near(report.groups[1].baseline.mape_frac, 0.5, 1e-9);
    assert_near(report.dense16,
                (report.groups[0].time.mape_frac + report.groups[1].time.mape_frac) / 2, 1e-12);
    assert_true(isnan(report.dense8) && isnan(report.moe) && isnan(report.memory_mape));
    close_fixture(&f);
}

static void work_counts_what_is_done_again(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    read(&f, "one", "A100-SXM-80GB", 1, "");
    const struct hv_validation_row *r = &f.v.rows[0];
    double none = hv_validation_flops(r, HV_RC_NONE), full = hv_validation_flops(r, HV_RC_FULL),
           core = hv_validation_flops(r, HV_RC_CORE);
    assert_near(full / none, 4.0 / 3, 1e-12);
    assert_near(none, 64 * 3 * hv_model_forward_flops(r->model, 2048, true), 1);
    assert_true(core > none && core < full);
    close_fixture(&f);
}

static void runs_without_room_and_unstated_recomputation(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    read(&f, "tight", "A100-SXM-40GB", 1, ", \"oom\": true");
    read(&f, "mem", "A100-SXM-80GB", 1, "");
    f.v.rows[0].grid.micro_batch = 64; /* 64 sequences of activations cannot fit in 40 GiB */
    f.v.rows[0].grid.global_batch = 512;
    hv_validation_predict_all(&f.v, &f.arena, f.predicted);
    assert_false(f.predicted[0].fits);
    struct hv_validation_row r = f.v.rows[0];
    struct hv_prediction p;
    r.oom = false;
    r.recompute = HV_ROW_RECOMPUTE_UNKNOWN;
    hv_validation_predict(&r, &f.arena, &p);
    assert_int_equal(p.recompute, HV_RC_NONE); /* what recipes that print none mostly ran */
    double s[2] = {HV_UNKNOWN, HV_UNKNOWN};
    struct hv_validation_report report;
    hv_validation_sum_up(&f.v, f.predicted, s, &f.arena, &report);
    assert_int_equal(report.n_oom, 1);
    assert_int_equal(report.n_oom_called_fitting, 0);
    close_fixture(&f);
}

/* Predicts rows of a source so far off: the logarithms of predicted / measured. */
static void predict_off(struct fixture *f, const char *source, const double *off,
                        double exposed_frac)
{
    for (size_t i = 0, k = 0; i < f->v.n_rows; i++) {
        struct hv_validation_row *r = &f->v.rows[i];
        if (strcmp(r->source, source) == 0) {
            r->measured_s = 1;
            f->predicted[i] = (struct hv_prediction){
                .by = HV_BY_LEFT_OUT, .iteration_s = exp(off[k++]), .exposed_frac = exposed_frac};
        }
    }
}

/* Bands of a row come from rows of other sources. One other source is one effective group: the
 * level 0.8 · (1 + 1/2) is above 1, and its largest score counts. Of `b`, whose rows are off by
 * 10 %, nothing lies in the band of `a`, 5 %; and all of `a` in that of `b`. */
static void bands_come_from_other_sources(void **state)
{
    (void)state;
    static struct fixture f;
    const double a[] = {0.01, -0.02, 0.03, -0.04, 0.05}, b[] = {0.1, -0.1, 0.1, -0.1, 0.1};
    double half[64], errors[HV_ERROR_N] = {0};
    struct hv_validation_cover cover;
    open_fixture(&f);
    read(&f, "a", "V100-SXM2-32GB", 5, "");
    read(&f, "b", "V100-SXM2-32GB", 5, "");
    predict_off(&f, "a", a, 0);
    predict_off(&f, "b", b, 0);
    hv_validation_bands(&f.v, f.predicted, half, &cover);
    assert_int_equal(cover.n, 10);
    assert_int_equal(cover.n_held, 5);
    for (size_t i = 0; i < 10; i++) {
        bool of_a = strcmp(f.v.rows[i].source, "a") == 0;
        assert_near(half[i], of_a ? 0.1 : 0.05, 1e-12);
    }
    /* both sources: two groups of equal weight, level 0.8 · (1 + 1/4) = 1, and the largest */
    hv_validation_class_errors(&f.v, f.predicted, f.predicted, "V", errors);
    assert_near(errors[HV_ERROR_DENSE_16], 0.1, 1e-12);
    assert_near(errors[HV_ERROR_LAYERS], 0, 0); /* no such row: it stays as it was */
    close_fixture(&f);
}

/* Rows with 15 % of exposed exchange have bands that are 1.25 times as wide, and scores that are so
 * much lower. Rows of a similar class tell nothing about those of a fit of their own class. */
static void bands_know_exchange_and_the_kind_of_fit(void **state)
{
    (void)state;
    static struct fixture f;
    const double a[] = {0.05, 0.05, 0.05}, b[] = {0.06, 0.06, 0.065}, c[] = {1, 1, 1};
    double half[64];
    struct hv_validation_cover cover;
    open_fixture(&f);
    read(&f, "a", "V100-SXM2-32GB", 3, "");
    read(&f, "b", "V100-SXM2-32GB", 3, "");
    read(&f, "c", "T4-16GB", 3, "");
    predict_off(&f, "a", a, 0);
    predict_off(&f, "b", b, 0.15);
    predict_off(&f, "c", c, 0);
    for (size_t i = 6; i < 9; i++) {
        f.predicted[i].by = HV_BY_RELATIVE;
    }
    hv_validation_bands(&f.v, f.predicted, half, &cover);
    assert_near(half[0], 0.065 / 1.25, 1e-12);
    assert_near(half[3], 0.05 * 1.25, 1e-12);
    assert_true(isnan(half[6])); /* no other source was predicted so */
    assert_int_equal(cover.n, 6);
    assert_int_equal(cover.n_held, 5); /* all but 0.065 of b: its half band is 0.0625 */
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_figures),
        cmocka_unit_test(fits_find_what_rows_were_made_with),
        cmocka_unit_test(held_out_rows_are_in_no_fit),
        cmocka_unit_test(the_left_out_source_is_not_seen),
        cmocka_unit_test(mixtures_move_no_dense_number),
        cmocka_unit_test(few_rows_move_products_only),
        cmocka_unit_test(one_source_gets_the_generic_fit),
        cmocka_unit_test(baseline_is_the_others_median),
        cmocka_unit_test(work_counts_what_is_done_again),
        cmocka_unit_test(runs_without_room_and_unstated_recomputation),
        cmocka_unit_test(bands_come_from_other_sources),
        cmocka_unit_test(bands_know_exchange_and_the_kind_of_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
