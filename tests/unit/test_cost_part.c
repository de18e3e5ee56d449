/* Parts: FLOPs, kept bytes and parameters against closed forms; explanations add up; monotone
 * prices. */
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

static struct hv_part_query query(int tp, double sequences)
{
    return (struct hv_part_query){
        .device = &kind_a100, .tp = tp, .cp = 1, .ep = 1, .sequences = sequences, .tokens = 2048};
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-30))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static struct hv_part_cost block_of(struct hv_cost *k, const struct hv_part_query *q)
{
    struct hv_part_cost a = hv_cost_part(k, HV_PART_ATTENTION, 0, q, NULL);
    struct hv_part_cost f = hv_cost_part(k, HV_PART_FFN, 0, q, NULL);
    a.flops_forward += f.flops_forward;
    a.saved_bytes += f.saved_bytes;
    a.saved_input_bytes += f.saved_input_bytes;
    a.parameters += f.parameters;
    a.forward_s += f.forward_s;
    return a;
}

/* Narayanan et al., SC'21, appendix: F = 72 B l s h² (1 + s/6h + V/12 l h) without recomputation.
 */
static void test_flops_closed_form(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &j);
    double l = 24, h = 2304, s = 2048, v = 51200, b = 4;
    double want = 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * l * h));
    for (int tp = 1; tp <= 8; tp *= 2) {
        struct hv_part_query q = query(tp, b);
        double got = l * block_of(k, &q).flops_forward +
                     hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL).flops_forward;
        near(3 * got * tp, want);
    }
    hv_cost_free(k);
}

/* The sum of the parts is what the model says of itself (causal half). */
static void test_flops_equal_the_models(void **state)
{
    struct world *w = *state;
    struct hv_model *models[] = {w->llama, w->mixtral};
    struct hv_job j = fixture_job(2048);
    for (int i = 0; i < 2; i++) {
        struct hv_cost *k = hv_cost_new(w->cluster, models[i], &j);
        struct hv_part_query q = query(1, 1);
        double got = 32 * block_of(k, &q).flops_forward +
                     hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL).flops_forward;
        near(got, hv_model_forward_flops(models[i], 2048, true));
        hv_cost_free(k);
    }
}

/* Slices of a sequence see the tokens before them; together they are the whole causal triangle. */
static void test_slices_add_up(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_block kept = w->llama->blocks[0];
    for (int window = 0; window <= 700; window += 700) {
        for (size_t i = 0; i < w->llama->n_blocks; i++) {
            w->llama->blocks[i].window = window;
        }
        struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
        struct hv_part_query q = query(1, 1);
        double whole = block_of(k, &q).flops_forward, sum = 0;
        q.tokens = 512;
        for (q.context = 0; q.context < 2048; q.context += 512) {
            sum += block_of(k, &q).flops_forward;
        }
        near(sum, whole);
        hv_cost_free(k);
    }
    for (size_t i = 0; i < w->llama->n_blocks; i++) {
        w->llama->blocks[i] = kept;
    }
}

/*
 * Korthikanti et al. 2022, eq. 2-6 without dropout (-2sbh) and with fused attention (4sba of row
 * statistics for 5as²b): sbh·32 + 4sba; tensor parallel sbh(8 + 24/t), with sequence parallelism
 * 32/t; all recomputed 2sbh. Their own case is in test_cost_memory.c.
 */
static void test_activation_bytes(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    j.dropout = HV_DROPOUT_OFF;
    struct hv_cost *k = hv_cost_new(w->cluster, w->gpt, &j);
    double sbh = 2048.0 * 3 * 2304, sba = 2048.0 * 3 * 24;
    struct hv_part_query q = query(1, 3);
    near(block_of(k, &q).saved_bytes, 32 * sbh + 4 * sba);
    near(block_of(k, &q).saved_input_bytes, 32 * sbh); /* Qi et al. 2024, table 1: M_W = 32h */
    q.recompute = HV_RC_CORE;
    near(block_of(k, &q).saved_bytes, 32 * sbh);
    q.recompute = HV_RC_FULL;
    near(block_of(k, &q).saved_bytes, 2 * sbh);
    q = query(8, 3);
    near(block_of(k, &q).saved_bytes, (8 + 24.0 / 8) * sbh + 4 * sba / 8);
    q.sequence_parallel = true;
    near(block_of(k, &q).saved_bytes, 32.0 / 8 * sbh + 4 * sba / 8);
    q.recompute = HV_RC_FULL;
    near(block_of(k, &q).saved_bytes, 2.0 / 8 * sbh);
    hv_cost_free(k);
}

/* sb(8h + 4ad + 4kd + 6f) + 4sba, which for Llama 3 8B is 34sbh plus the statistics. */
static void test_activation_bytes_llama(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    struct hv_part_query q = query(1, 1);
    near(block_of(k, &q).saved_bytes, 34.0 * 2048 * 4096 + 4.0 * 2048 * 32);
    hv_cost_free(k);
}

/* Every parameter of the model sits on some rank exactly once, apart from what a 1d group
 * replicates. */
static void test_parameters(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->mixtral, &j);
    struct hv_part_query q = query(1, 1);
    struct hv_part_cost f = hv_cost_part(k, HV_PART_FFN, 0, &q, NULL);
    double sum = 32 * (block_of(k, &q).parameters + f.expert_parameters) +
                 hv_cost_part(k, HV_PART_EMBEDDING, 0, &q, NULL).parameters +
                 hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL).parameters;
    near(sum, hv_model_parameters(w->mixtral));
    q.ep = 4;
    near(hv_cost_part(k, HV_PART_FFN, 0, &q, NULL).expert_parameters, f.expert_parameters / 4);
    q.tp = 2;
    near(hv_cost_part(k, HV_PART_FFN, 0, &q, NULL).expert_parameters, f.expert_parameters / 8);
    hv_cost_free(k);
}

/* One product by hand: 0.72 of 312 TFLOP/s plus 8 us; thin factors from the table. */
static void test_head_by_hand(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    struct hv_part_query q = query(1, 1);
    struct hv_part_cost c = hv_cost_part(k, HV_PART_HEAD, 0, &q, NULL);
    struct hv_efficiency e = hv_efficiency_of(q.device, j.precision);
    double gemm = e.gemm_start_s + 2.0 * 2048 * 4096 * 128256 / (e.gemm_frac * 312e12);
    double bw = e.calibration->v[HV_CAL_STREAM] * 2039e9, start = e.launch_s;
    double norm = start + 2 * 2.0 * 2048 * 4096 / bw, loss = start + 6.0 * 2048 * 128256 / bw;
    assert_true(fabs(c.forward_s / (gemm + norm + loss) - 1) < 1e-9);
    near(c.transient_bytes, 6.0 * 2048 * 128256);
    hv_cost_free(k);
}

/* The terms of an explanation are the figure. */
static void test_why_adds_up(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_model *models[] = {w->gpt, w->llama, w->mixtral};
    for (int i = 0; i < 3; i++) {
        struct hv_cost *k = hv_cost_new(w->cluster, models[i], &j);
        for (int part = 0; part < HV_PART_N; part++) {
            struct hv_arena arena = {0};
            struct hv_why why = {.arena = &arena};
            struct hv_part_query q = query(1, 2);
            struct hv_part_cost c = hv_cost_part(k, (enum hv_part)part, 0, &q, &why);
            double sum = 0;
            for (size_t t = 0; t < why.n; t++) {
                sum += strcmp(why.terms[t].unit, "s") ? 0 : why.terms[t].value;
            }
            near(sum, c.forward_s);
            near(c.forward_s, hv_cost_part(k, (enum hv_part)part, 0, &q, NULL).forward_s);
            hv_arena_free(&arena);
        }
        hv_cost_free(k);
    }
}

static void test_monotone(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    double before = 0;
    for (double n = 0.125; n <= 32; n *= 2) {
        struct hv_part_query q = query(1, n);
        double t = block_of(k, &q).forward_s;
        assert_true(t > before);
        q.device = &kind_h100;
        assert_true(block_of(k, &q).forward_s <= t);
        before = t;
    }
    struct hv_part_query q = query(8, 1);
    double unsharded = hv_cost_part(k, HV_PART_FFN, 0, &q, NULL).tp_forward_s;
    assert_true(unsharded > 0);
    q.sequences = 2;
    assert_true(hv_cost_part(k, HV_PART_FFN, 0, &q, NULL).tp_forward_s > unsharded);
    hv_cost_free(k);
}

/* Ranks wait for each other before every exchange of a block: one of each part. */
static void test_exchange_waits(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    struct hv_calibration slow = *hv_device_calibration(&kind_a100), prompt = slow;
    struct hv_device_kind tardy = kind_a100, other = kind_a100;
    slow.v[HV_CAL_EXCHANGE_US] = 500;
    prompt.v[HV_CAL_EXCHANGE_US] = 0;
    tardy.calibration = &slow;
    other.calibration = &prompt;
    for (int tp = 1; tp <= 8; tp *= 8) {
        struct hv_part_query q = query(tp, 1);
        for (int part = HV_PART_ATTENTION; part <= HV_PART_FFN; part++) {
            q.device = &tardy;
            struct hv_part_cost late = hv_cost_part(k, (enum hv_part)part, 0, &q, NULL);
            q.device = &other;
            struct hv_part_cost once = hv_cost_part(k, (enum hv_part)part, 0, &q, NULL);
            double wait = tp > 1 ? 500e-6 : 0;
            assert_true(fabs(late.tp_forward_s - once.tp_forward_s - wait) < 1e-12);
            assert_true(fabs(late.tp_backward_s - once.tp_backward_s - wait) < 1e-12);
        }
    }
    hv_cost_free(k);
}

/* Seconds of the fused core of a block, forward. */
static double core_s(const struct world *w, const struct hv_device_kind *d)
{
    struct hv_arena arena = {0};
    struct hv_why why = {.arena = &arena};
    struct hv_job j = fixture_job(2048);
    struct hv_part_query q = query(1, 1);
    double time_s = HV_UNKNOWN;
    q.device = d;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    (void)hv_cost_part(k, HV_PART_ATTENTION, 0, &q, &why);
    for (size_t t = 0; t < why.n; t++) {
        time_s = strcmp(why.terms[t].name, "attention core") == 0 ? why.terms[t].value : time_s;
    }
    hv_cost_free(k);
    hv_arena_free(&arena);
    return time_s;
}

/* As many FLOPs in twice as many heads of half the width: 648 against 497 TFLOP/s on H100
 * (FlashAttention-3, figure 5); no difference on Ampere. */
static void test_narrow_heads(void **state)
{
    struct world *w = *state;
    struct hv_device_kind hopper = kind_h100, ampere = kind_a100;
    hopper.arch = "Hopper";
    ampere.arch = "Ampere";
    double wide[] = {core_s(w, &hopper), core_s(w, &ampere)};
    struct hv_block kept = w->llama->blocks[0], *b = &w->llama->blocks[0];
    b->heads *= 2;
    b->kv_heads *= 2;
    b->head_dim /= 2;
    double narrow[] = {core_s(w, &hopper), core_s(w, &ampere)};
    *b = kept;
    if (!(fabs(narrow[0] / wide[0] - 648.0 / 497) < 0.03) ||
        !(fabs(narrow[1] / wide[1] - 1) < 1e-9)) {
        fail_msg("%g and %g times", narrow[0] / wide[0], narrow[1] / wide[1]);
    }
}

/* A contiguous causal ring waits for its last rank: 2 - 1/c of the mean core work; zigzag does not.
 */
static void test_ring_imbalance(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(65536);
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &j);
    struct hv_part_query q = query(1, 1);
    q.tokens = 65536;
    q.cp = 4;
    double contiguous = hv_cost_part(k, HV_PART_ATTENTION, 0, &q, NULL).forward_s;
    q.cp_layout = HV_CP_ZIGZAG;
    struct hv_part_cost even = hv_cost_part(k, HV_PART_ATTENTION, 0, &q, NULL);
    /* four steps of c tokens, tiles of 128: c (c + 128) / 2 pairs of its own, then c^2 of earlier
     * ranks at the last one, or half of it at every one, each longer by the merge */
    double c = 16384, s = 65536,
           rate = hv_efficiency_of(q.device, j.precision).core_forward_flops_per_s;
    double core = 2.0 * 32 * 256 * s * s / 2 / 4 / rate, mean = s * (s + 128) / 2 / 4;
    double more = 3 * c * c * (1.03 - 1.17 / 2) / mean * core;
    assert_true(fabs((contiguous - even.forward_s) / more - 1) < 1e-9);
    hv_cost_free(k);
}

static void test_classes(void **state)
{
    struct world *w = *state;
    struct hv_job j = fixture_job(2048);
    struct hv_model *m = fixture_llama();
    m->blocks[3].window = m->blocks[7].window = 512;
    struct hv_cost *k = hv_cost_new(w->cluster, m, &j);
    assert_int_equal(hv_cost_n_classes(k), 2);
    assert_int_equal(hv_cost_block_class(k, 3), hv_cost_block_class(k, 7));
    assert_int_not_equal(hv_cost_block_class(k, 3), hv_cost_block_class(k, 4));
    assert_int_equal(hv_cost_class_block(k, hv_cost_block_class(k, 7)), 3);
    hv_cost_free(k);
    hv_model_unref(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flops_closed_form),
        cmocka_unit_test(test_flops_equal_the_models),
        cmocka_unit_test(test_slices_add_up),
        cmocka_unit_test(test_activation_bytes),
        cmocka_unit_test(test_activation_bytes_llama),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_head_by_hand),
        cmocka_unit_test(test_why_adds_up),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_exchange_waits),
        cmocka_unit_test(test_narrow_heads),
        cmocka_unit_test(test_ring_imbalance),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests_name("cost_part", tests, setup, teardown);
}
