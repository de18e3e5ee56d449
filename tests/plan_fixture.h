/**
 * A small fixed cluster, two models and a job for the tests and the fuzz target of plans:
 * a: 2 nodes × 4 nvidia devices with bf16; v: 1 × 4 nvidia without bf16; m: 1 × 4 amd; d: 1 × 4
 * nvidia, draining.
 */
#ifndef HV_TESTS_PLAN_FIXTURE_H
#define HV_TESTS_PLAN_FIXTURE_H

#include "solver/base/status.h"
#include "solver/base/units.h"
#include "solver/inventory/cluster.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"
#include <stdlib.h>

static inline struct hv_device_kind *fixture_kind(struct hv_arena *a, const char *name,
                                                  const char *fabric, bool bf16)
{
    struct hv_device_kind *k = hv_arena_new(a, struct hv_device_kind, 1);
    k->name = name;
    k->vendor = k->fabric = fabric;
    k->memory_bytes = 16 * HV_GIB;
    for (int p = 0; p < HV_PRECISION_N; p++) {
        k->flops_per_s[p] = HV_UNKNOWN;
    }
    k->flops_per_s[HV_FP32] = 1e13;
    k->flops_per_s[HV_FP16] = 1e14;
    k->flops_per_s[HV_BF16] = bf16 ? 1e14 : HV_UNKNOWN;
    k->matmul_flops_per_s = k->link_bytes_per_s = k->pcie_bytes_per_s = HV_UNKNOWN;
    k->memory_bytes_per_s = 1e12;
    k->tdp_w = HV_UNKNOWN;
    return k;
}

static inline void fixture_group(struct hv_cluster *c, size_t at, const char *name, uint32_t nodes,
                                 const struct hv_device_kind *kind)
{
    struct hv_node_group *g = &c->groups[at];
    g->name = name;
    g->count = nodes;
    g->n_devices = 4;
    g->slots = hv_arena_new(&c->arena, struct hv_slots, 1);
    g->slots[0] = (struct hv_slots){.kind = kind, .first = 0, .count = 4};
    g->n_slots = 1;
    g->intra = (struct hv_link){HV_LINK_NVLINK, 3e11, 3e-6, false};
    g->nic = (struct hv_link){HV_LINK_IB, 1.25e10, 1e-5, false};
    g->n_nics = 1;
    g->host_memory_bytes_per_s = g->host_memory_bytes = HV_UNKNOWN;
    g->price_usd_per_h = g->spot_usd_per_h = g->preemptions_per_h = HV_UNKNOWN;
}

/** The cluster described above. Owner: hv_cluster_unref. */
static inline struct hv_cluster *fixture_cluster(void)
{
    struct hv_cluster *c = hv_xcalloc(1, sizeof *c);
    c->refs = 1;
    c->name = "fixture";
    c->n_groups = 4;
    c->groups = hv_arena_new(&c->arena, struct hv_node_group, c->n_groups);
    c->network_bytes_per_s = c->network_latency_s = HV_UNKNOWN;
    const struct hv_device_kind *old = fixture_kind(&c->arena, "old", "nvidia", false);
    const struct hv_device_kind *fast = fixture_kind(&c->arena, "fast", "nvidia", true);
    fixture_group(c, 0, "a", 2, fast);
    fixture_group(c, 1, "v", 1, old);
    fixture_group(c, 2, "m", 1, fixture_kind(&c->arena, "other", "amd", true));
    fixture_group(c, 3, "d", 1, fast);
    c->groups[3].state = HV_NODE_DRAIN;
    struct hv_err err;
    if (hv_cluster_finish(c, &err) != HV_OK) {
        HV_BUG("%s", err.text);
    }
    return c;
}

/** A decoder of 8 blocks with 8 heads and 4 key-value heads; every block has `experts`. Owner:
 * hv_model_unref. */
static inline struct hv_model *fixture_model(int experts)
{
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    m->name = "fixture";
    m->kind = HV_MODEL_TRANSFORMER;
    m->hidden = 64;
    m->vocab = 128;
    m->max_sequence = 64;
    m->causal = true;
    m->n_blocks = 8;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, m->n_blocks);
    for (size_t i = 0; i < m->n_blocks; i++) {
        m->blocks[i] = (struct hv_block){.heads = 8,
                                         .kv_heads = 4,
                                         .head_dim = 8,
                                         .ffn = 256,
                                         .experts = experts,
                                         .top_k = 2,
                                         .expert_ffn = 64};
    }
    return m;
}

/** A chain of operators x0 … x3 and y0 … y3 without dimensions. Owner: hv_model_unref. */
static inline struct hv_model *fixture_graph(void)
{
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    m->name = "graph";
    m->kind = HV_MODEL_GRAPH;
    m->n_ops = m->n_blocks = 8;
    m->ops = hv_arena_new(&m->arena, struct hv_graph_op, m->n_ops);
    for (int i = 0; i < 8; i++) {
        m->ops[i].id = hv_arena_printf(&m->arena, "%c%d", i < 4 ? 'x' : 'y', i % 4);
    }
    return m;
}

/** 8 sequences of 64 tokens in bf16. */
static inline struct hv_job fixture_job(void)
{
    struct hv_job j = hv_job_default(64);
    j.global_batch = 8;
    j.sequence = 64;
    j.precision = HV_BF16;
    return j;
}

#endif
