/* Bytes: activations of a layer in closed form for every tensor-parallel, sequence-parallel and
 * recompute case, and which kernels a job runs where its file leaves that open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/cost_fixture.h"

struct world {
    struct hv_cluster *cluster;
    struct hv_model *gpt, *llama, *mixtral;
};

static int setup(void **state)
{
    struct world *w = hv_xcalloc(1, sizeof *w);
    w->cluster = fixture_cost_cluster();
    w->gpt = fixture_gpt(24, 2304, 24);
    w->llama = fixture_llama();
    w->mixtral = fixture_mixtral();
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    hv_model_unref(w->gpt);
    hv_model_unref(w->llama);
    hv_model_unref(w->mixtral);
    hv_cluster_unref(w->cluster);
    free(w);
    return 0;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fmax(fabs(want), 1e-30)))
        fail_msg("got %.17g, want %.17g", got, want);
}

static struct hv_part_query query(int tp, double sequences)
{
    return (struct hv_part_query){
        .device = &kind_a100, .tp = tp, .cp = 1, .ep = 1, .sequences = sequences, .tokens = 2048};
}

static double layer_bytes(struct hv_cost *k, const struct hv_part_query *q)
{
    return hv_cost_part(k, HV_PART_ATTENTION, 0, q, NULL).saved_bytes +
           hv_cost_part(k, HV_PART_FFN, 0, q, NULL).saved_bytes;
}

/* Korthikanti et al. 2022, table 2: activation bytes of a transformer layer, 16 bit, with dropout
 * and stored scores. */
static void test_korthikanti_table_2(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    j.attention = HV_ATTENTION_UNFUSED;
    j.dropout = HV_DROPOUT_ON;
    struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &j);
    double s = 2048, b = 3, h = 2304, a = 24, sbh = s * b * h;
    for (int tp = 1; tp <= 8; tp *= 2) {
        double t = tp;
        struct hv_part_query q = query(tp, b);
        near(layer_bytes(k, &q), sbh * (10 + 24 / t + 5 * a * s / (h * t)));
        q.recompute = HV_RC_CORE;
        near(layer_bytes(k, &q), sbh * (10 + 24 / t));
        q.recompute = HV_RC_FULL;
        near(layer_bytes(k, &q), 2 * sbh);
        q.sequence_parallel = true;
        near(layer_bytes(k, &q), 2 * sbh / t);
        q.recompute = HV_RC_CORE;
        near(layer_bytes(k, &q), 34 * sbh / t);
        q.recompute = HV_RC_NONE;
        near(layer_bytes(k, &q), sbh / t * (34 + 5 * a * s / h));
    }
    hv_cost_free(k);
}

/* Each choice of kernels alone: the mask of a byte twice, the softmax alone, row statistics alone.
 */
static void test_kernels(void **state)
{
    struct world *w = *state;
    double s = 2048, b = 3, h = 2304, a = 24, sbh = s * b * h;
    const double core[] = {4 * a * s * b, 5 * a * s * s * b, 4 * a * s * b, 2 * a * s * s * b};
    for (int i = 0; i < 4; i++) {
        struct hv_job j = fixture_job(2048);
        j.attention = i % 2 ? HV_ATTENTION_UNFUSED : HV_ATTENTION_FLASH;
        j.dropout = i < 2 ? HV_DROPOUT_ON : HV_DROPOUT_OFF;
        struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &j);
        struct hv_part_query q = query(1, b);
        near(layer_bytes(k, &q), (i < 2 ? 34 : 32) * sbh + core[i]);
        hv_cost_free(k);
    }
}

/* RMSNorm, SwiGLU, grouped queries, no dropout, fused: sb(8h + 4ad + 4kd + 6f) + 4sba, all over t
 * with sequence parallelism and over c with context parallelism; for Llama 3 8B 34sbh + 4sba. */
static void test_llama_layer(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(8192);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    double h = 4096, a = 32, d = 128, kv = 8, f = 14336, b = 2, s = 2048;
    for (int tp = 1; tp <= 8; tp *= 2) {
        for (int cp = 1; cp <= 4; cp *= 2) {
            struct hv_part_query q = query(tp, b);
            q.cp = cp;
            q.sequence_parallel = tp > 1;
            double whole = s * b * (8 * h + 4 * a * d + 4 * kv * d + 6 * f) + 4 * s * b * a;
            near(layer_bytes(k, &q), whole / tp / cp);
        }
    }
    near(8 * h + 4 * a * d + 4 * kv * d + 6 * f, 34 * h);
    hv_cost_free(k);
}

/* What `auto` means: device generation, style of the model, sharding, sequence. */
static void test_auto(void **state)
{
    struct world *w = *state;
    struct hv_device_kind v100 = kind_v100, a100 = kind_a100, h100 = kind_h100, none = kind_a100;
    v100.arch = "Volta";
    a100.arch = "Ampere";
    h100.arch = "Hopper";
    none.arch = NULL;
    const struct {
        const struct hv_device_kind *device;
        struct hv_model *model;
        bool sharded, cp;
        int64_t sequence;
        bool flash, dropout;
    } rows[] = {
        {&v100, w->gpt, false, false, 2048, false, true},
        {&v100, w->llama, true, true, 8192, false, false},
        {&a100, w->gpt, false, false, 2048, false, true},
        {&a100, w->gpt, false, false, 4097, true, true},
        {&a100, w->gpt, true, false, 2048, true, false},
        {&a100, w->gpt, false, true, 2048, true, true},
        {&a100, w->llama, false, false, 2048, true, false},
        {&a100, w->mixtral, false, false, 2048, true, false},
        {&h100, w->gpt, false, false, 2048, true, false},
        {&none, w->gpt, false, false, 2048, true, false},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_job j = fixture_job(rows[i].sequence);
        struct hv_kernel_query q = {rows[i].device, rows[i].sharded, rows[i].cp};
        assert_int_equal(hv_job_flash_attention(&j, rows[i].model, &q), rows[i].flash);
        assert_int_equal(hv_job_dropout(&j, rows[i].model, &q), rows[i].dropout);
        j.attention = HV_ATTENTION_FLASH;
        j.dropout = HV_DROPOUT_OFF;
        assert_true(hv_job_flash_attention(&j, rows[i].model, &q));
        assert_false(hv_job_dropout(&j, rows[i].model, &q));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_korthikanti_table_2),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_llama_layer),
        cmocka_unit_test(test_auto),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
