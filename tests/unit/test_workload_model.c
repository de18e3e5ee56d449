/* Parameter counts and FLOPs of the catalogue against published figures; closed forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <string.h>

static struct hv_model_doc read_model(const char *name)
{
    struct hv_model_doc d;
    struct hv_err e = {0};
    if (hv_model_doc_read(&d, name, &e)) {
        fail_msg("%s: %s", name, e.text);
    }
    return d;
}

/* Total and active parameters in 1e9, and the share by which the published figure may differ. */
static const struct {
    const char *name;
    double total, active, tolerance;
} golden[] = {
    {"gpt3-175b", 174.6, 174.6, 0.001},      /* arXiv 2005.14165, table 2.1: 174,600M */
    {"gpt3-13b", 12.85, 12.85, 0.001},       /* the same table: 12,850M */
    {"gpt3-6.7b", 6.658, 6.658, 0.001},      /* the same table: 6,658M */
    {"gpt3-125m", 0.125, 0.125, 0.01},       /* the same table: 125M */
    {"gpt2-xl", 1.558, 1.558, 0.001},        /* released checkpoint: 1,557,611,200 */
    {"llama-2-7b", 6.738, 6.738, 0.0005},    /* checkpoint: 6,738,415,616 */
    {"llama-2-70b", 68.977, 68.977, 0.0005}, /* checkpoint: 68,976,648,192 */
    {"llama-3-8b", 8.030, 8.030, 0.0005},    /* checkpoint: 8,030,261,248 */
    {"llama-3-70b", 70.554, 70.554, 0.0005}, /* checkpoint: 70,553,706,496 */
    {"llama-3-405b", 405.85, 405.85, 0.001}, /* checkpoint: 405,853,388,800 */
    {"mistral-7b", 7.242, 7.242, 0.0005},    /* checkpoint: 7,241,732,096 */
    {"mixtral-8x7b", 46.70, 12.88, 0.001},   /* checkpoint: 46,702,792,704; 12.9e9 active */
    {"mixtral-8x22b", 140.6, 39.1, 0.003},   /* 141e9 and 39e9, release note */
    {"deepseek-v3", 671.0, 37.5, 0.002},     /* arXiv 2412.19437: 671e9 and 37e9 */
    {"qwen3-30b-a3b", 30.5, 3.35, 0.003},    /* arXiv 2505.09388: 30.5e9 and 3.3e9 */
    {"qwen3-235b-a22b", 235.1, 22.2, 0.003}, /* the same: 235e9 and 22e9 */
    {"qwen2.5-72b", 72.7, 72.7, 0.001},      /* released card: 72.7e9 */
    {"gpt-oss-120b", 116.8, 5.71, 0.001},    /* model card: 116.83e9 */
    {"bloom-176b", 176.25, 176.25, 0.001},   /* arXiv 2211.05100: 176,247M */
    {"opt-30b", 29.97, 29.97, 0.002},        /* checkpoint: 29.97e9 */
    {"bert-large", 0.335, 0.335, 0.004}, /* arXiv 1810.04805: 340M; checkpoint 335.1M with pooler */
    {"vit-l-16", 0.3033, 0.3033, 0.002}, /* arXiv 2010.11929: 307M; checkpoint 304.3M with head */
    {"gemma-7b", 8.538, 8.538, 0.001},   /* checkpoint: 8,537,680,896 */
};

static void parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(golden); i++) {
        struct hv_model_doc d = read_model(golden[i].name);
        double total = hv_model_parameters(d.model) / 1e9;
        double active = hv_model_active_parameters(d.model) / 1e9;
        if (fabs(total / golden[i].total - 1) > golden[i].tolerance ||
            fabs(active / golden[i].active - 1) > golden[i].tolerance) {
            fail_msg("%s: %.4f and %.4f", golden[i].name, total, active);
        }
        hv_model_doc_free(&d);
    }
}

/* 24 B L s h² (1 + s/6h) + 2 B s h V, forward; Narayanan et al., SC'21, section 5.1 and appendix.
 */
static void closed_form(void **state)
{
    (void)state;
    struct hv_model_doc d = read_model("gpt3-175b");
    double s = 2048, h = 12288, l = 96, v = 50257;
    double want = 24 * l * s * h * h * (1 + s / (6 * h)) + 2 * s * h * v;
    assert_true(fabs(hv_model_forward_flops(d.model, s, false) / want - 1) < 1e-12);
    double half = want - 2 * l * s * s * h;
    assert_true(fabs(hv_model_forward_flops(d.model, s, true) / half - 1) < 1e-12);
    hv_model_doc_free(&d);
}

/* Without the core, a forward pass costs two FLOPs per active parameter of a matrix and token. */
static void flops_follow_parameters(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-3-70b", "mixtral-8x7b", "deepseek-v3"};
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        struct hv_model_doc d = read_model(names[i]);
        double p = hv_model_active_parameters(d.model) - hv_model_embedding_parameters(d.model);
        double one = hv_model_forward_flops(d.model, 1, false);
        assert_true(fabs(one / (2 * p) - 1) < 2e-3);
        hv_model_doc_free(&d);
    }
}

static void windows(void **state)
{
    (void)state;
    struct hv_block b = {.heads = 4, .head_dim = 8, .window = 100};
    assert_true(hv_block_core_flops(&b, 1000, true) == 4.0 * 4 * 8 * 100);
    assert_true(hv_block_core_flops(&b, 150, true) == 4.0 * 4 * 8 * 75);
}

static void job_bytes(void **state)
{
    (void)state;
    struct hv_job j = hv_job_default(4096);
    assert_int_equal(j.sequence, 4096);
    /* 2 + 4 + 4 + 8 = 18 bytes per parameter; Korthikanti et al. 2022, arXiv 2205.05198 */
    assert_true(hv_job_weight_bytes(&j) + hv_job_grad_bytes(&j) + hv_job_master_bytes(&j) +
                    hv_job_optimizer_bytes(&j) ==
                18);
    j.precision = HV_FP32;
    assert_true(hv_job_master_bytes(&j) == 0 && hv_job_activation_bytes(&j) == 4);
    j.precision = HV_FP8;
    j.grad_fp32 = false;
    assert_true(hv_job_grad_bytes(&j) == 2 && hv_job_activation_bytes(&j) == 2);
    assert_int_equal(hv_job_default(0).sequence, 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameters), cmocka_unit_test(closed_form),
                                       cmocka_unit_test(flops_follow_parameters),
                                       cmocka_unit_test(windows), cmocka_unit_test(job_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
