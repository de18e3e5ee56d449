/*
 * Any bytes as an instance file: reading never crashes, a refusal has a text, and small instances
 * that are accepted are solved to values that their own judge confirms.
 */
#include "solver/base/json/json.h"
#include "solver/io/own/instance/partition_file.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            HV_BUG("%s", #x);                                                                      \
    } while (0)

static void try_chain(const struct hv_partition *p, struct hv_arena *a)
{
    struct hv_partition_result r;
    const struct hv_solve_limits limits = {.deadline_s = 0.05};
    if (p->n_layers > 24 || p->n_stages > 6) {
        return;
    }
    REQUIRE(hv_partition_solve(p, &limits, a, &r, NULL) == HV_OK);
    for (size_t s = 0, i = 0; r.feasible && s < r.n_stages; i = r.cut[s++]) {
        REQUIRE(hv_partition_value(p, s, r.order[s], i, r.cut[s]) <= r.max);
    }
    REQUIRE(!r.feasible || r.cut[r.n_stages - 1] == p->n_layers);
}

static void try_split(const struct hv_instance *in, struct hv_arena *a)
{
    struct hv_distribution d;
    int64_t sum = 0;
    if (in->n_shares > 16 || in->total > 4096 ||
        hv_distribute_minmax(in->shares, in->n_shares, in->total, a, &d, NULL) != HV_OK) {
        return;
    }
    for (size_t i = 0; d.feasible && i < in->n_shares; i++) {
        sum += d.count[i] * in->shares[i].size;
    }
    REQUIRE(!d.feasible || sum == in->total);
}

static void try_dag(const struct hv_dag *g, struct hv_arena *a)
{
    double load[16];
    size_t *device = hv_arena_new(a, size_t, g->n_nodes);
    if (g->n_accelerators + g->n_cpus > 16) {
        return;
    }
    REQUIRE(hv_dag_judge(g, device, load) >= 0);
    REQUIRE(hv_dag_latency(g, device, load) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_instance in = {.name = ""};
    struct hv_arena a = {0};
    struct hv_err err = {.status = HV_OK};
    enum hv_status st = hv_json_parse(&json, (const char *)data, size, "input", &err);
    if (st == HV_OK) {
        st = hv_instance_read(&in, &json, &err);
    }
    REQUIRE(st == HV_OK || err.text[0] != '\0');
    if (st == HV_OK && in.kind == HV_INSTANCE_CHAIN) {
        try_chain(&in.chain, &a);
    }
    if (st == HV_OK && in.kind == HV_INSTANCE_DISTRIBUTE) {
        try_split(&in, &a);
    }
    if (st == HV_OK && in.kind == HV_INSTANCE_DAG) {
        try_dag(&in.dag, &a);
    }
    hv_arena_free(&a);
    hv_instance_free(&in);
    hv_json_free(&json);
    return 0;
}
