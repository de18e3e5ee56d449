/* Clusters, models and plans for the tests of solver/cost, built by hand so that every figure is in
 * sight. */
#ifndef HV_TESTS_COST_FIXTURE_H
#define HV_TESTS_COST_FIXTURE_H

#include <stdlib.h>

#include "solver/base/units.h"
#include "solver/cost/cost.h"
#include "solver/cost/device/efficiency.h"

/* Vendor figures: NVIDIA A100, H100, V100 data sheets (dense). */
static const struct hv_device_kind kind_a100 = {
    .name = "A100-SXM-80GB",
    .fabric = "nvidia",
    .memory_bytes = 80 * HV_GIB,
    .memory_bytes_per_s = 2039e9,
    .flops_per_s = {19.5e12, 156e12, 312e12, 312e12, HV_UNKNOWN, 624e12, HV_UNKNOWN},
    .matmul_flops_per_s = 271e12,
    .link_bytes_per_s = 300e9,
    .pcie_bytes_per_s = 31.5e9};
static const struct hv_device_kind kind_h100 = {
    .name = "H100-SXM-80GB",
    .fabric = "nvidia",
    .memory_bytes = 80 * HV_GIB,
    .memory_bytes_per_s = 3350e9,
    .flops_per_s = {67e12, 494.5e12, 989e12, 989e12, 1979e12, 1979e12, HV_UNKNOWN},
    .matmul_flops_per_s = 795e12,
    .link_bytes_per_s = 450e9,
    .pcie_bytes_per_s = 63e9};
static const struct hv_device_kind kind_v100 = {
    .name = "V100-SXM2-32GB",
    .fabric = "nvidia",
    .memory_bytes = 32 * HV_GIB,
    .memory_bytes_per_s = 900e9,
    .flops_per_s = {15.7e12, HV_UNKNOWN, 125e12, HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN},
    .matmul_flops_per_s = HV_UNKNOWN,
    .link_bytes_per_s = 150e9,
    .pcie_bytes_per_s = 15.75e9};
static const struct hv_device_kind kind_mi300 = {
    .name = "MI300X-192GB",
    .fabric = "amd",
    .memory_bytes = 192 * HV_GIB,
    .memory_bytes_per_s = 5300e9,
    .flops_per_s = {163e12, 654e12, 1300e12, 1300e12, 2600e12, 2600e12, HV_UNKNOWN},
    .matmul_flops_per_s = 668e12,
    .link_bytes_per_s = 448e9,
    .pcie_bytes_per_s = 63e9};

/* `count` nodes of 8 devices: 300 GB/s and 3 us inside, 100 GB/s and 5 us per node outside. */
static inline void fixture_group(struct hv_cluster *c, const char *name, uint32_t count,
                                 const struct hv_device_kind *kind)
{
    struct hv_node_group *g = &c->groups[c->n_groups++];
    struct hv_slots *slots = hv_arena_new(&c->arena, struct hv_slots, 1);
    *slots = (struct hv_slots){kind, 0, 8};
    *g = (struct hv_node_group){.name = name,
                                .count = count,
                                .n_devices = 8,
                                .slots = slots,
                                .n_slots = 1,
                                .intra = {HV_LINK_NVSWITCH, 300e9, 3e-6},
                                .nic = {HV_LINK_IB, 100e9, 5e-6},
                                .n_nics = 8,
                                .host_memory_bytes_per_s = 200e9,
                                .host_memory_bytes = HV_UNKNOWN,
                                .price_usd_per_h = HV_UNKNOWN,
                                .spot_usd_per_h = HV_UNKNOWN};
}

/* Devices 0-127: 16 nodes of A100; 128-191: 8 of H100; 192-255: 8 of V100; 256-263: one of MI300X.
 */
static inline struct hv_cluster *fixture_cost_cluster(void)
{
    struct hv_cluster *c = hv_xcalloc(1, sizeof *c);
    c->refs = 1;
    c->name = "toy";
    c->groups = hv_arena_new(&c->arena, struct hv_node_group, 4);
    c->network_bytes_per_s = c->network_latency_s = HV_UNKNOWN;
    fixture_group(c, "a", 16, &kind_a100);
    fixture_group(c, "h", 8, &kind_h100);
    fixture_group(c, "v", 8, &kind_v100);
    fixture_group(c, "m", 1, &kind_mi300);
    struct hv_err err;
    if (hv_cluster_finish(c, &err) != HV_OK) {
        abort();
    }
    return c;
}

static inline struct hv_model *fixture_blocks(size_t n, struct hv_block b)
{
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    m->kind = HV_MODEL_TRANSFORMER;
    m->causal = true;
    m->n_blocks = n;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, n);
    for (size_t i = 0; i < n; i++) {
        m->blocks[i] = b;
    }
    return m;
}

/* GPT as in Narayanan et al., SC'21: f = 4h, GELU, 51 200 entries; not causal as in their FLOP
 * count. */
static inline struct hv_model *fixture_gpt(size_t layers, int hidden, int heads)
{
    struct hv_model *m = fixture_blocks(layers, (struct hv_block){.heads = heads,
                                                                  .kv_heads = heads,
                                                                  .head_dim = hidden / heads,
                                                                  .ffn = 4 * hidden,
                                                                  .ffn_kind = HV_FFN_GELU,
                                                                  .attention_bias = true,
                                                                  .ffn_bias = true});
    m->hidden = hidden;
    m->vocab = 51200;
    m->max_sequence = 2048;
    m->tied_embeddings = true;
    m->causal = false;
    m->norm = HV_NORM_LAYERNORM;
    m->position = HV_POSITION_LEARNED;
    return m;
}

/* Llama 3 8B, meta-llama/Meta-Llama-3-8B config.json. */
static inline struct hv_model *fixture_llama(void)
{
    struct hv_model *m = fixture_blocks(
        32,
        (struct hv_block){
            .heads = 32, .kv_heads = 8, .head_dim = 128, .ffn = 14336, .ffn_kind = HV_FFN_SWIGLU});
    m->hidden = 4096;
    m->vocab = 128256;
    m->max_sequence = 8192;
    m->norm = HV_NORM_RMSNORM;
    m->position = HV_POSITION_ROPE;
    return m;
}

/* Mixtral 8x7B, mistralai/Mixtral-8x7B-v0.1 config.json. */
static inline struct hv_model *fixture_mixtral(void)
{
    struct hv_model *m = fixture_blocks(32, (struct hv_block){.heads = 32,
                                                              .kv_heads = 8,
                                                              .head_dim = 128,
                                                              .experts = 8,
                                                              .top_k = 2,
                                                              .expert_ffn = 14336,
                                                              .ffn_kind = HV_FFN_SWIGLU});
    m->hidden = 4096;
    m->vocab = 32000;
    m->max_sequence = 32768;
    m->norm = HV_NORM_RMSNORM;
    m->position = HV_POSITION_ROPE;
    return m;
}

/* Job of 2048-token sequences; bf16 with fp32 master weights and gradients, Adam. */
static inline struct hv_job fixture_job(int64_t sequence)
{
    struct hv_job j = hv_job_default(2048);
    j.sequence = sequence;
    return j;
}

/* One replica entry with equal stages over devices 0, 1, …: dp × tp ranks each. */
struct fixture_plan {
    struct hv_plan plan;
    struct hv_replica replica;
    struct hv_stage stages[16];
    struct hv_range ranges[16];
    uint32_t devices[1024];
};

static inline void fixture_stages(struct fixture_plan *p, struct hv_cluster *c, int blocks, int n,
                                  int dp, int tp)
{
    *p = (struct fixture_plan){.plan = {.cluster = c, .micro_batch = dp, .n_replicas = 1},
                               .replica = {.count = 1, .micro_batches = 8}};
    for (uint32_t i = 0; i < 1024; i++) {
        p->devices[i] = i % c->n_devices;
    }
    for (int i = 0; i < n; i++) {
        struct hv_stage *s = &p->stages[i];
        hv_stage_defaults(s);
        s->devices = p->devices + i * dp * tp;
        s->n_devices = (size_t)(dp * tp);
        s->dp = dp;
        s->tp.degree = tp;
        p->ranges[i] = (struct hv_range){2 * (i * blocks / n), 2 * ((i + 1) * blocks / n)};
        s->ranges = &p->ranges[i];
        s->n_ranges = 1;
    }
    p->replica.stages = p->stages;
    p->replica.n_stages = (size_t)n;
    p->plan.replicas = &p->replica;
}

#endif
