/* Stages: passes are sums of parts, memory follows bytes per parameter, refusals say what is
 * missing. */
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
    struct hv_model *llama, *mixtral;
    struct hv_job job;
    struct fixture_plan p;
};

static int setup(void **state)
{
    struct world *w = hv_xcalloc(1, sizeof *w);
    w->cluster = fixture_cost_cluster();
    w->llama = fixture_llama();
    w->mixtral = fixture_mixtral();
    w->job = fixture_job(2048);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    hv_model_unref(w->llama);
    hv_model_unref(w->mixtral);
    hv_cluster_unref(w->cluster);
    free(w);
    return 0;
}

static struct hv_stage_query ask(struct fixture_plan *p, size_t stage)
{
    return (struct hv_stage_query){.plan = &p->plan, .replica = &p->replica, .stage = stage};
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-30))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static struct hv_pass pass_of(struct hv_cost *k, const struct hv_stage_query *q)
{
    struct hv_pass out;
    struct hv_err err = {0};
    if (hv_cost_pass(k, q, &out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return out;
}

static struct hv_memory memory_of(struct hv_cost *k, const struct hv_stage_query *q)
{
    struct hv_memory out;
    struct hv_err err = {0};
    if (hv_cost_memory(k, q, &out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return out;
}

/* Four stages hold what one holds: times, FLOPs and bytes add up, each end once. */
static void test_stages_add_up(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 1, 8);
    struct hv_stage_query q = ask(&w->p, 0);
    struct hv_pass one = pass_of(k, &q);
    double forward = 0, backward = 0, flops = 0, kept = 0, parameters = 0;
    double whole = memory_of(k, &q).parameters;
    fixture_stages(&w->p, w->cluster, 32, 4, 1, 8);
    w->p.ranges[0].to2--; /* a cut between attention and feed-forward */
    w->p.ranges[1].from2--;
    for (size_t i = 0; i < 4; i++) {
        q = ask(&w->p, i);
        struct hv_pass p = pass_of(k, &q);
        forward += p.forward_s;
        backward += p.input_grad_s + p.weight_grad_s + p.recompute_s;
        flops += p.flops;
        kept += p.activation_bytes;
        parameters += memory_of(k, &q).parameters;
        near(p.hop_bytes, 2.0 * 2048 * 4096);
        near(p.compute_s + p.tp_s, p.forward_s + p.input_grad_s + p.weight_grad_s);
    }
    near(forward, one.forward_s);
    near(backward, one.input_grad_s + one.weight_grad_s);
    near(flops, one.flops);
    near(flops * 8, 3 * hv_model_forward_flops(w->llama, 2048, true));
    near(kept, one.activation_bytes);
    near(parameters, whole);
    hv_cost_free(k);
}

/* The same figures come out of the table that strategies read. */
static void test_table_equals_pass(void **state)
{
    struct world *w = *state;
    struct hv_arena arena = {0};
    struct hv_cost *k = hv_cost_new(w->cluster, w->mixtral, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 2, 4, 2);
    struct hv_stage *s = &w->p.stages[0];
    s->ep = 4;
    s->recompute = HV_RC_FULL;
    struct hv_stage_query q = ask(&w->p, 0);
    struct hv_pass p = pass_of(k, &q);
    const uint32_t ep_group[] = {0, 2, 4, 6};
    struct hv_part_query pq = {.device = &kind_a100,
                               .tp = 2,
                               .cp = 1,
                               .ep = 4,
                               .tp_depth = s->tp.depth,
                               .cp_heads = s->cp.ulysses,
                               .sequences = 1,
                               .tokens = 2048,
                               .recompute = HV_RC_FULL,
                               .group = w->p.devices,
                               .ep_group = ep_group};
    struct hv_layer_table t;
    assert_int_equal(hv_cost_layers(k, &pq, &arena, &t, NULL), HV_OK);
    assert_true(p.ep_s > 0 && p.recompute_s > 0);
    near(p.forward_s, t.forward_s[16] + t.embedding.forward_s + t.embedding.tp_forward_s);
    near(p.input_grad_s + p.weight_grad_s + p.recompute_s,
         t.backward_s[16] + t.embedding.input_grad_s + t.embedding.tp_backward_s);
    near(p.activation_bytes, t.saved_bytes[16]);
    near(memory_of(k, &q).parameters, t.parameters[16] + t.embedding.parameters);
    hv_cost_free(k);
    hv_arena_free(&arena);
}

/* 18 bytes per parameter with fp32 gradients, 16 without (Korthikanti fig. 1; Rajbhandari et al.
 * 2020). */
static void test_state_bytes(void **state)
{
    struct world *w = *state;
    double n = hv_model_parameters(w->llama), d = 4;
    for (int fp32 = 0; fp32 < 2; fp32++) {
        w->job.grad_fp32 = fp32;
        double g = fp32 ? 4 : 2;
        const double want[] = {2 + g + 12, 2 + g + 12 / d, 2 + (g + 12) / d, (2 + g + 12) / d};
        struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
        fixture_stages(&w->p, w->cluster, 32, 1, 4, 1);
        double unit = hv_model_embedding_parameters(w->llama); /* the head's and a norm, larger */
        unit = fmax(unit, hv_model_head_parameters(w->llama));
        for (int z = 0; z < 4; z++) {
            w->p.stages[0].zero.stage = z;
            struct hv_stage_query q = ask(&w->p, 0);
            struct hv_memory m = memory_of(k, &q);
            double gathered =
                z == 3 ? 2 * 2 * unit : 0; /* the unit in use and the one prefetched */
            near(m.weights_bytes + m.gradients_bytes + m.master_bytes + m.optimizer_bytes -
                     gathered,
                 want[z] * n);
            assert_true(m.overhead_bytes > 0.5 * HV_GIB && m.limit_bytes == 80 * HV_GIB);
        }
        hv_cost_free(k);
    }
    w->job.grad_fp32 = true;
}

/* Holders of a shard: dp × cp × count; experts over ep only once. */
static void test_holders_of_experts(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->mixtral, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 8, 1);
    w->p.stages[0].zero.stage = 1;
    w->p.stages[0].ep = 4;
    w->p.replica.count = 2;
    w->p.stages[0].n_devices = 16;
    struct hv_stage_query q = ask(&w->p, 0);
    double experts = 32 * hv_block_expert_parameters(w->mixtral, w->mixtral->blocks);
    double dense = hv_model_parameters(w->mixtral) - experts;
    struct hv_memory m = memory_of(k, &q);
    near(m.parameters, dense + experts / 4);
    near(m.optimizer_bytes, 8 * (dense / 16 + experts / 4 / 4));
    hv_cost_free(k);
}

/* Gradients come last block first; what is left below them is before_end_s. */
static void test_milestones(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 1, 8);
    struct hv_stage_query q = ask(&w->p, 0);
    struct hv_pass p = pass_of(k, &q), again = pass_of(k, &q);
    assert_ptr_equal(p.milestones, again.milestones);
    assert_int_equal(p.n_milestones, HV_MILESTONES_PER_RUN + 2);
    assert_int_equal(p.milestones[0].range.from2, -1);
    assert_int_equal(p.milestones[p.n_milestones - 1].range.from2, -2);
    assert_true(p.milestones[0].before_end_s == 0.0);
    int covered = 0;
    for (size_t i = 1; i < p.n_milestones; i++) {
        assert_true(p.milestones[i].before_end_s > p.milestones[i - 1].before_end_s);
        covered += p.milestones[i].range.to2 - p.milestones[i].range.from2;
    }
    assert_int_equal(covered, 64);
    assert_true(p.milestones[p.n_milestones - 1].before_end_s < p.input_grad_s + p.weight_grad_s);
    hv_cost_free(k);
}

static void test_zero3_gathers_show(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 16, 1);
    w->p.stages[0].zero.stage = 3;
    struct hv_stage_query q = ask(&w->p, 0);
    q.sequences = 0.25; /* too little compute to hide a gather over two nodes */
    struct hv_pass few = pass_of(k, &q);
    q.sequences = 64;
    struct hv_pass many = pass_of(k, &q);
    assert_true(few.zero_s > 0 && many.zero_s < few.zero_s);
    near(few.forward_s + few.input_grad_s + few.weight_grad_s, few.compute_s + few.zero_s);
    w->p.stages[0].zero.prefetch = 0;
    assert_true(pass_of(k, &q).zero_s > many.zero_s);
    hv_cost_free(k);
}

/* Units of sharded weights: larger ones hide nothing and fill memory, a limit of one gathers
 * nothing ahead, weights that stay are gathered once and are whole. */
static void test_units_of_sharding(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 16, 1);
    struct hv_zero *z = &w->p.stages[0].zero;
    z->stage = 3;
    struct hv_stage_query q = ask(&w->p, 0);
    q.sequences = 4;
    struct hv_pass layers = pass_of(k, &q);
    double weights = memory_of(k, &q).weights_bytes, n = hv_model_parameters(w->llama);
    z->limit = 1;
    struct hv_pass limited = pass_of(k, &q);
    z->limit = 2;
    z->prefetch = 0;
    near(pass_of(k, &q).zero_s, limited.zero_s);
    assert_true(limited.zero_s > layers.zero_s);
    z->prefetch = 1;
    z->unit = HV_ZERO_CHUNK;
    assert_true(pass_of(k, &q).zero_s > layers.zero_s);
    near(memory_of(k, &q).weights_bytes, 2 * n);
    assert_true(weights < 0.5 * n);
    z->unit = HV_ZERO_LAYER;
    q.sequences = 0.25; /* so little compute that every gather shows */
    layers = pass_of(k, &q);
    z->reshard = false;
    assert_true(pass_of(k, &q).zero_s < layers.zero_s);
    near(memory_of(k, &q).weights_bytes, 2 * n);
    z->reshard = true;
    z->reduce = HV_REDUCE_TWO_HOP; /* in the shard group in every pass, across at the end */
    near(pass_of(k, &q).zero_s, layers.zero_s);
    z->reduce = HV_REDUCE_END;
    assert_true(pass_of(k, &q).zero_s < layers.zero_s);
    hv_cost_free(k);
}

static void test_shares_and_recompute_lists(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 2, 1);
    int shares[] = {3, 1};
    w->p.plan.micro_batch = 4;
    w->p.stages[0].shares = shares;
    struct hv_stage_query q = ask(&w->p, 0);
    struct hv_pass big = pass_of(k, &q);
    q.dp_rank = 1;
    struct hv_pass small = pass_of(k, &q);
    near(big.hop_bytes, 3 * small.hop_bytes);
    assert_true(big.forward_s > 2 * small.forward_s);
    unsigned masks[32] = {0};
    for (int i = 0; i < 16; i++) {
        masks[i] = HV_RC_FULL;
    }
    w->p.stages[0].recompute_per = masks;
    w->p.stages[0].n_recompute_per = 32;
    struct hv_pass half = pass_of(k, &q);
    w->p.stages[0].recompute_per = NULL;
    w->p.stages[0].recompute = HV_RC_FULL;
    struct hv_pass all = pass_of(k, &q);
    near(half.recompute_s, all.recompute_s / 2);
    near(half.activation_bytes, (all.activation_bytes + small.activation_bytes) / 2);
    hv_cost_free(k);
}

static void test_refusals(void **state)
{
    struct world *w = *state;
    struct hv_pass p;
    struct hv_err err = {0};
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    fixture_stages(&w->p, w->cluster, 32, 1, 1, 8);
    w->p.stages[0].devices += 192; /* V100 */
    struct hv_stage_query q = ask(&w->p, 0);
    assert_int_equal(hv_cost_pass(k, &q, &p, &err), HV_ENO);
    assert_non_null(strstr(err.text, "V100-SXM2-32GB has no bf16"));
    fixture_stages(&w->p, w->cluster, 32, 1, 2, 8);
    w->p.stages[0].n_devices = 8;
    q.dp_rank = 1;
    assert_int_equal(hv_cost_pass(k, &q, &p, &err), HV_ENO);
    assert_int_equal(hv_cost_pass(k, &q, &p, NULL), HV_ENO);
    hv_cost_free(k);
}

/* Measured layers: own column, else scaled by peaks (A100 312 to H100 989 TFLOP/s); no column:
 * refused. */
static void test_measured_layers(void **state)
{
    struct world *w = *state;
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    m->kind = HV_MODEL_LAYERS;
    m->n_blocks = 2;
    const char *devices[] = {"A100-SXM-80GB"};
    double forward[] = {1e-3}, backward[] = {2e-3}, unknown[] = {HV_UNKNOWN};
    struct hv_measured_layer layers[] = {{.name = "a",
                                          .forward_s = forward,
                                          .backward_s = backward,
                                          .update_s = unknown,
                                          .parameter_bytes = 4e6,
                                          .activation_bytes = 8e6,
                                          .output_bytes = 1e6,
                                          .transfer_s = HV_UNKNOWN,
                                          .parallel_frac = 0.5},
                                         {.name = "b",
                                          .forward_s = forward,
                                          .backward_s = backward,
                                          .update_s = unknown,
                                          .parameter_bytes = 2e6,
                                          .activation_bytes = 8e6,
                                          .output_bytes = 3e6,
                                          .transfer_s = HV_UNKNOWN,
                                          .parallel_frac = 1}};
    m->devices = devices;
    m->n_devices = 1;
    m->measured = layers;
    int one[] = {1};
    m->grid_tp = m->grid_batch = one;
    m->n_grid_tp = m->n_grid_batch = 1;
    struct hv_cost *k = hv_cost_new(w->cluster, m, &w->job);
    fixture_stages(&w->p, w->cluster, 2, 1, 1, 1);
    struct hv_stage_query q = ask(&w->p, 0);
    struct hv_pass p = pass_of(k, &q);
    near(p.forward_s, 2e-3);
    near(p.input_grad_s + p.weight_grad_s, 4e-3);
    near(p.activation_bytes, 16e6);
    near(p.hop_bytes, 3e6);
    near(memory_of(k, &q).parameters, 3e6);
    w->p.devices[0] = 128;
    near(pass_of(k, &q).forward_s, 2e-3 * 312 / 989);
    w->p.stages[0].tp.degree = 2;
    w->p.stages[0].n_devices = 2;
    w->p.devices[0] = 0;
    struct hv_pass split = pass_of(k, &q);
    near(split.forward_s - split.tp_s / 2, 1e-3 * 0.75 + 1e-3 * 0.5); /* Amdahl */
    hv_cost_free(k);
    layers[1].forward_s = unknown;
    k = hv_cost_new(w->cluster, m, &w->job);
    struct hv_err err = {0};
    assert_int_equal(hv_cost_pass(k, &q, &p, &err), HV_ENO);
    assert_non_null(strstr(err.text, "layer 1"));
    hv_cost_free(k);
    hv_model_unref(m);
}

/* Operators in a chain: the file's time, else a roofline; backward twice forward. */
static void test_graph_chain(void **state)
{
    struct world *w = *state;
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    m->kind = HV_MODEL_GRAPH;
    m->n_blocks = m->n_ops = 2;
    struct hv_graph_op ops[] = {
        {.id = "a", .flops = 1e12, .parameter_bytes = 2e6, .bytes = 4e6, .time_s = HV_UNKNOWN},
        {.id = "b", .flops = 5, .parameter_bytes = HV_UNKNOWN, .bytes = 6e6, .time_s = 3e-3}};
    m->ops = ops;
    struct hv_cost *k = hv_cost_new(w->cluster, m, &w->job);
    fixture_stages(&w->p, w->cluster, 2, 1, 1, 1);
    struct hv_stage_query q = ask(&w->p, 0);
    struct hv_pass p = pass_of(k, &q);
    struct hv_efficiency e = hv_efficiency_of(&kind_a100, w->job.precision);
    near(p.forward_s, e.launch_s + 1e12 / e.gemm_flops_per_s + 3e-3);
    near(p.input_grad_s + p.weight_grad_s, 2 * p.forward_s);
    near(p.hop_bytes, 6e6);
    near(memory_of(k, &q).parameters, 1e6);
    assert_true(hv_cost_floor_s(k, HV_PART_ATTENTION, 0, &kind_a100) <= 3 * p.forward_s);
    hv_cost_free(k);
    /* the same graph as two modules in a row: blocks 0 to 4, twice the time, the same hop */
    struct hv_model *both = hv_xcalloc(1, sizeof *both);
    struct hv_module modules[] = {{"first", m}, {"second", hv_model_ref(m)}};
    *both = (struct hv_model){
        .refs = 1, .kind = HV_MODEL_MODULES, .n_blocks = 4, .modules = modules, .n_modules = 2};
    k = hv_cost_new(w->cluster, both, &w->job);
    struct hv_range all = {0, 8};
    w->p.stages[0].ranges = &all;
    w->p.stages[0].n_ranges = 1;
    struct hv_pass twice = pass_of(k, &q);
    near(twice.forward_s, 2 * p.forward_s);
    near(twice.hop_bytes, 6e6);
    near(memory_of(k, &q).parameters, 2e6);
    hv_cost_free(k);
    hv_model_unref(both);
}

static void test_optimizer(void **state)
{
    struct world *w = *state;
    struct hv_cost *k = hv_cost_new(w->cluster, w->llama, &w->job);
    /* 4 read + 2 written + 2 × (4 + 8) bytes at 0.80 of 2039 GB/s */
    near(hv_cost_optimizer_s(k, &kind_a100, 1e9), 5e-6 + 30e9 / (0.80 * 2039e9));
    assert_true(hv_cost_optimizer_s(k, &kind_a100, 0) == 0.0);
    hv_cost_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages_add_up),     cmocka_unit_test(test_table_equals_pass),
        cmocka_unit_test(test_state_bytes),       cmocka_unit_test(test_holders_of_experts),
        cmocka_unit_test(test_milestones),        cmocka_unit_test(test_zero3_gathers_show),
        cmocka_unit_test(test_units_of_sharding), cmocka_unit_test(test_shares_and_recompute_lists),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_measured_layers),
        cmocka_unit_test(test_graph_chain),       cmocka_unit_test(test_optimizer),
    };
    return cmocka_run_group_tests_name("cost_stage", tests, setup, teardown);
}
