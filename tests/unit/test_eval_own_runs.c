/* Calibration on own runs: planted numbers are found, agreeing runs move nothing, and a run that
 * nobody measured is predicted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/plan/grid.h"
#include "solver/validate/own_runs.h"
#include "tests/cost_fixture.h"
#include <math.h>
#include <string.h>

enum { RUNS = 5 };

/* Runs of one model on 8 devices of a node: tensor degree and micro-batch of each. */
static const struct {
    int tp, micro_batch;
} layouts[RUNS] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}, {2, 8}};

struct world {
    struct hv_calibration shipped, truth;
    struct hv_cluster *cluster;
    struct hv_model *model;
    struct hv_job job;
    struct hv_plan *plans[RUNS];
    struct hv_own_run runs[RUNS];
    struct hv_arena arena;
};

static double time_of(struct world *w, size_t i)
{
    const struct hv_eval_options o = {.no_bound = true};
    struct hv_cost *k = hv_cost_new(w->cluster, w->model, &w->job);
    struct hv_verdict v = {0};
    struct hv_err err = {0};
    if (hv_eval(k, w->plans[i], &o, &w->arena, &v, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    hv_cost_free(k);
    return v.metrics.iteration_s;
}

/* The cluster with the shipped numbers, and times as `truth` gives them. */
static void measure(struct world *w)
{
    hv_cluster_calibrate(w->cluster, &w->truth);
    for (size_t i = 0; i < RUNS; i++) {
        w->runs[i] = (struct hv_own_run){.name = "run",
                                         .cluster = w->cluster,
                                         .model = w->model,
                                         .job = &w->job,
                                         .plan = w->plans[i],
                                         .measured_s = time_of(w, i)};
    }
    hv_cluster_calibrate(w->cluster, &w->shipped);
}

static void open_world(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->shipped = *hv_calibration_typical();
    w->shipped.name = "C";
    w->shipped.devices = "A100";
    w->cluster = fixture_cost_cluster();
    w->model = fixture_gpt(24, 2048, 16);
    w->job = fixture_job(2048);
    w->job.global_batch = 64;
    for (size_t i = 0; i < RUNS; i++) {
        int dp = 8 / layouts[i].tp;
        const struct hv_grid grid = {.tp = layouts[i].tp,
                                     .pp = 1,
                                     .dp = dp,
                                     .cp = 1,
                                     .ep = 1,
                                     .chunks = 1,
                                     .micro_batch = layouts[i].micro_batch,
                                     .global_batch = 64,
                                     .grad_bytes = 4};
        struct hv_err err = {0};
        if (hv_plan_grid(w->cluster, w->job.precision, 24, &grid, &w->plans[i], &err) != HV_OK) {
            fail_msg("%s", err.text);
        }
    }
    w->truth = w->shipped;
}

static void close_world(struct world *w)
{
    for (size_t i = 0; i < RUNS; i++) {
        hv_plan_unref(w->plans[i]);
    }
    hv_cluster_unref(w->cluster);
    hv_model_unref(w->model);
    hv_arena_free(&w->arena);
}

static const struct hv_own_number *number_of(const struct hv_own_fit *f, enum hv_calibrated k)
{
    for (size_t i = 0; i < f->n_numbers; i++) {
        if (f->numbers[i].number == k) {
            return &f->numbers[i];
        }
    }
    return NULL;
}

static void planted_numbers_are_found(void **state)
{
    (void)state;
    struct world w;
    struct hv_own_fit f;
    struct hv_err err = {0};
    open_world(&w);
    w.truth.v[HV_CAL_GEMM_16] = 0.75 * w.shipped.v[HV_CAL_GEMM_16];
    w.truth.v[HV_CAL_NODE_LINKS] = 0.6 * w.shipped.v[HV_CAL_NODE_LINKS];
    measure(&w);
    assert_int_equal(hv_own_runs_fit(w.runs, 4, &w.arena, &f, &err), HV_OK);
    const struct hv_own_number *gemm = number_of(&f, HV_CAL_GEMM_16);
    assert_non_null(gemm);
    assert_true(fabs(gemm->after / w.truth.v[HV_CAL_GEMM_16] - 1) < 0.06);
    assert_true(gemm->deviation > 0 && gemm->deviation < 0.1);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fabs(f.before_s[i] / w.runs[i].measured_s - 1) > 0.08);
        assert_true(fabs(f.after_s[i] / w.runs[i].measured_s - 1) < 0.02);
    }
    /* the fifth run, which the fit has not seen: the cluster uses the fitted numbers now */
    assert_true(fabs(time_of(&w, 4) / w.runs[4].measured_s - 1) < 0.03);
    close_world(&w);
}

static void agreeing_runs_move_nothing_much(void **state)
{
    (void)state;
    struct world w;
    struct hv_own_fit f;
    struct hv_err err = {0};
    open_world(&w);
    measure(&w);
    assert_int_equal(hv_own_runs_fit(w.runs, 3, &w.arena, &f, &err), HV_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_true(fabs(f.after_s[i] / w.runs[i].measured_s - 1) < 1e-6);
        assert_true(fabs(f.without_s[i] / w.runs[i].measured_s - 1) < 1e-6);
    }
    for (int k = 0; k < HV_CALIBRATED_N; k++) {
        assert_true(fabs(f.classes[0].fit.v[k] - w.shipped.v[k]) <= 1e-6 * w.shipped.v[k]);
    }
    /* nothing is missed without a run, so the noise decides: 1.2816 deviations, three runs */
    const double *half = f.classes[0].fit.error;
    assert_true(fabs(half[HV_ERROR_DENSE_16] - 1.2816 * f.noise * sqrt(4.0 / 3)) < 1e-6);
    assert_true(half[HV_ERROR_EXPERTS_16] == w.shipped.error[HV_ERROR_EXPERTS_16]);
    /* two runs say nothing about their band */
    assert_int_equal(hv_own_runs_fit(w.runs, 2, &w.arena, &f, &err), HV_OK);
    assert_true(fabs(f.classes[0].fit.error[HV_ERROR_DENSE_16] - half[HV_ERROR_DENSE_16]) < 1e-12);
    close_world(&w);
}

/* The order of the runs changes no number; numbers that are not listed keep their values. */
static void order_does_not_matter(void **state)
{
    (void)state;
    struct world w;
    struct hv_own_fit f, g;
    struct hv_err err = {0};
    open_world(&w);
    w.truth.v[HV_CAL_GEMM_16] *= 0.8;
    measure(&w);
    assert_int_equal(hv_own_runs_fit(w.runs, 3, &w.arena, &f, &err), HV_OK);
    hv_cluster_calibrate(w.cluster, &w.shipped);
    struct hv_own_run back[3] = {w.runs[2], w.runs[1], w.runs[0]};
    assert_int_equal(hv_own_runs_fit(back, 3, &w.arena, &g, &err), HV_OK);
    for (int k = 0; k < HV_CALIBRATED_N; k++) {
        bool format = k == HV_CAL_GEMM_8 || k == HV_CAL_GEMM_4; /* follow 16 bit */
        assert_true(fabs(f.classes[0].fit.v[k] - g.classes[0].fit.v[k]) <=
                    1e-6 * fabs(f.classes[0].fit.v[k]));
        if (!format && number_of(&f, (enum hv_calibrated)k) == NULL) {
            assert_true(f.classes[0].fit.v[k] == w.shipped.v[k]);
        }
    }
    close_world(&w);
}

/* A kind that no class names is priced by its best measured product; it gets a class of its own,
 * and its time before the fit is what it was. */
static void unknown_kinds_get_a_class(void **state)
{
    (void)state;
    struct world w;
    struct hv_own_fit f;
    struct hv_err err = {0};
    open_world(&w);
    w.shipped.devices = "";
    w.truth = w.shipped;
    measure(&w);
    for (size_t i = 0; i < 3; i++) {
        w.runs[i].measured_s *= 1.3;
    }
    assert_int_equal(hv_own_runs_fit(w.runs, 3, &w.arena, &f, &err), HV_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_true(fabs(f.before_s[i] * 1.3 / w.runs[i].measured_s - 1) < 1e-9);
        assert_true(fabs(f.after_s[i] / w.runs[i].measured_s - 1) < 0.03);
    }
    const struct hv_own_number *gemm = number_of(&f, HV_CAL_GEMM_16);
    assert_true(gemm != NULL && gemm->after < gemm->before);
    assert_string_equal(f.classes[gemm->class_index].kinds, "A100-SXM-80GB");
    close_world(&w);
}

static void plain_rates_have_no_numbers(void **state)
{
    (void)state;
    struct world w;
    struct hv_own_fit f;
    struct hv_err err = {0};
    open_world(&w);
    measure(&w);
    hv_cluster_calibrate(w.cluster, hv_calibration_plain());
    assert_int_equal(hv_own_runs_fit(w.runs, 3, &w.arena, &f, &err), HV_ENO);
    assert_non_null(strstr(err.text, "plain rates"));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_numbers_are_found),
        cmocka_unit_test(agreeing_runs_move_nothing_much),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(unknown_kinds_get_a_class),
        cmocka_unit_test(plain_rates_have_no_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
