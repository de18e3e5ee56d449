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
    if (!(fabs(got - want) <= 1e-12 * fmax(fabs(want), 1e-30))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
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

/* 7.5 billion parameters in 7500 equal layers, so that a gathered unit is out of sight. */
static struct hv_model *layers_7_5b(void)
{
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    m->kind = HV_MODEL_LAYERS;
    m->n_blocks = 7500;
    m->devices = hv_arena_new(&m->arena, const char *, 1);
    m->devices[0] = kind_a100.name;
    m->n_devices = 1;
    m->measured = hv_arena_new(&m->arena, struct hv_measured_layer, m->n_blocks);
    m->grid_tp = m->grid_batch = hv_arena_new(&m->arena, int, 1);
    m->grid_tp[0] = 1;
    m->n_grid_tp = m->n_grid_batch = 1;
    double *times = hv_arena_new(&m->arena, double, 3);
    times[0] = times[1] = 1e-3;
    times[2] = HV_UNKNOWN;
    for (size_t i = 0; i < m->n_blocks; i++) {
        m->measured[i] = (struct hv_measured_layer){.forward_s = &times[0],
                                                    .backward_s = &times[1],
                                                    .update_s = &times[2],
                                                    .parameter_bytes = 2e6,
                                                    .transfer_s = HV_UNKNOWN,
                                                    .parallel_frac = 1};
    }
    return m;
}

/* Rajbhandari et al. 2020 (ZeRO), figure 1: 2 + 2 + 12 bytes, 64 ranks: 120, 31.4, 16.6, 1.88 GB.
 */
static void test_zero_figure_1(void **state)
{
    struct world *w = *state;
    static struct fixture_plan p;
    struct hv_model *m = layers_7_5b();
    struct hv_job j = fixture_job(2048);
    j.grad_fp32 = false;
    struct hv_cost *k = hv_cost_new(w->cluster, m, &j);
    fixture_stages(&p, w->cluster, 7500, 1, 64, 1);
    static const double printed_gb[] = {120, 31.4, 16.6, 1.88}, half_gb[] = {.5, .05, .05, .005};
    static const double bytes[] = {16, 4 + 12.0 / 64, 2 + 14.0 / 64, 16.0 / 64};
    for (int z = 0; z < 4; z++) {
        p.stages[0].zero.stage = z;
        p.stages[0].zero.reduce = HV_REDUCE_EACH;
        p.stages[0].zero.prefetch = 0;
        struct hv_stage_query q = {.plan = &p.plan, .replica = &p.replica};
        struct hv_memory mem = {0};
        struct hv_err err = {0};
        if (hv_cost_memory(k, &q, &mem, &err) != HV_OK) {
            fail_msg("%s", err.text);
        }
        double sum = mem.weights_bytes + mem.gradients_bytes + mem.master_bytes +
                     mem.optimizer_bytes - (z == 3 ? 2e6 : 0);
        near(sum, 7.5e9 * bytes[z]);
        assert_true(fabs(sum / 1e9 - printed_gb[z]) <= half_gb[z]);
    }
    hv_cost_free(k);
    hv_model_unref(m);
}

/* Megatron-LM, docs of the distributed optimizer, bytes per parameter on d ranks: fp16 with fp16
 * gradients 20 and 4 + 16/d (fp32 gradients of the optimizer are in the buffers), bf16 with fp32
 * gradients 18 and 6 + 12/d, fp32 16 and 8 + 8/d. */
static void test_distributed_optimizer(void **state)
{
    struct world *w = *state;
    static struct fixture_plan p;
    static const struct {
        enum hv_precision precision;
        bool grad_fp32;
        double whole, kept, cut;
    } rows[] = {{HV_FP16, false, 20, 4, 16}, {HV_BF16, true, 18, 6, 12}, {HV_FP32, true, 16, 8, 8}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_job j = fixture_job(2048);
        j.precision = rows[i].precision;
        j.grad_fp32 = rows[i].grad_fp32;
        struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
        fixture_stages(&p, w->cluster, 32, 1, 8, 1);
        for (int z = 0; z < 2; z++) {
            p.stages[0].zero.stage = z;
            struct hv_stage_query q = {.plan = &p.plan, .replica = &p.replica};
            struct hv_memory mem = {0};
            struct hv_err err = {0};
            if (hv_cost_memory(k, &q, &mem, &err) != HV_OK) {
                fail_msg("%s", err.text);
            }
            double sum = mem.weights_bytes + mem.gradients_bytes + mem.master_bytes +
                         mem.optimizer_bytes + mem.buffers_bytes - HV_WORKSPACE_BYTES;
            near(sum, mem.parameters * (z ? rows[i].kept + rows[i].cut / 8 : rows[i].whole));
        }
        hv_cost_free(k);
    }
}

/* 50257 entries become 50304 on one rank and 51200 on eight: Megatron-LM pads to 128 per rank. */
static void test_vocabulary_padding(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    w->gpt->vocab = 50257;
    struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &j);
    struct hv_part_query q = query(1, 1);
    near(hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL).transient_bytes, 6.0 * 2048 * 50304);
    q.tp = 8;
    near(hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL).transient_bytes, 6.0 * 2048 * 51200 / 8);
    q.tp = 1;
    q.sharded_weights = true;
    near(hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL).transient_bytes, 14.0 * 2048 * 50304);
    hv_cost_free(k);
    w->gpt->vocab = 51200;
}

/* A communicator for every group: tensor, data, two neighbours, the norm of a replica. */
static void test_outside(void **state)
{
    struct world *w = *state;
    static struct fixture_plan p;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    static const int n[] = {4, 5, 5, 4};
    fixture_stages(&p, w->cluster, 32, 4, 2, 4);
    for (size_t i = 0; i < 4; i++) {
        struct hv_stage_query q = {.plan = &p.plan, .replica = &p.replica, .stage = i};
        struct hv_memory mem = {0};
        struct hv_err err = {0};
        if (hv_cost_memory(k, &q, &mem, &err) != HV_OK) {
            fail_msg("%s", err.text);
        }
        near(mem.outside_bytes, HV_CONTEXT_BYTES + n[i] * HV_COMMUNICATOR_BYTES);
        double held = mem.weights_bytes + mem.gradients_bytes + mem.master_bytes +
                      mem.optimizer_bytes + mem.buffers_bytes;
        near(mem.overhead_bytes,
             mem.buffers_bytes + mem.outside_bytes + mem.fragmentation_frac * held);
    }
    hv_cost_free(k);
}

/* Every byte of the static memory has a term. */
static void test_why(void **state)
{
    struct world *w = *state;
    static struct fixture_plan p;
    struct hv_arena arena = {0};
    struct hv_why why = {.arena = &arena};
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    fixture_stages(&p, w->cluster, 32, 2, 4, 2);
    p.stages[1].zero.stage = 3;
    struct hv_stage_query q = {.plan = &p.plan, .replica = &p.replica, .stage = 1, .why = &why};
    struct hv_memory mem = {0};
    struct hv_err err = {0};
    if (hv_cost_memory(k, &q, &mem, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    double sum = 0;
    for (size_t i = 0; i < why.n; i++) {
        sum += strcmp(why.terms[i].unit, "bytes") ? 0 : why.terms[i].value;
    }
    near(sum, mem.weights_bytes + mem.gradients_bytes + mem.master_bytes + mem.optimizer_bytes +
                  mem.overhead_bytes);
    hv_cost_free(k);
    hv_arena_free(&arena);
}

/* Before fused attention: what a stage hands on is kept, and DeepSpeed keeps 16-bit gradients
 * beside their fp32 sums. Scores kept by choice on a later device change nothing of that. */
static void test_older_stack(void **state)
{
    struct world *w = *state;
    static struct fixture_plan p;
    struct hv_device_kind a100 = kind_a100;
    const struct hv_device_kind *kept = w->cluster->groups[0].slots[0].kind;
    struct hv_slots *slots = (struct hv_slots *)(uintptr_t)w->cluster->groups[0].slots;
    a100.arch = "Ampere";
    double activation[2], buffers[2];
    for (int older = 0; older < 2; older++) {
        slots[0].kind = older ? &a100 : kept;
        struct hv_job j = fixture_job(2048);
        j.attention = HV_ATTENTION_UNFUSED;
        j.dropout = HV_DROPOUT_OFF;
        struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &j);
        fixture_stages(&p, w->cluster, 24, 2, 2, 1);
        p.stages[0].zero.stage = 1;
        struct hv_stage_query q = {.plan = &p.plan, .replica = &p.replica};
        struct hv_memory mem = {0};
        struct hv_pass pass = {0};
        struct hv_err err = {0};
        if (hv_cost_memory(k, &q, &mem, &err) || hv_cost_pass(k, &q, &pass, &err)) {
            fail_msg("%s", err.text);
        }
        activation[older] = pass.activation_bytes;
        buffers[older] = mem.buffers_bytes;
        if (older) {
            near(buffers[1] - buffers[0], 2 * mem.parameters + 4 * fmin(mem.parameters, 5e8));
        }
        hv_cost_free(k);
    }
    near(activation[1] - activation[0], 2.0 * 2048 * 2304);
    slots[0].kind = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_korthikanti_table_2),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_llama_layer),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_zero_figure_1),
        cmocka_unit_test(test_distributed_optimizer),
        cmocka_unit_test(test_vocabulary_padding),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_older_stack),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
