/*
 * Times of the cost model in process: every rank of a plan of 1,024 devices (16 stages, dp 8, tp
 * 8), cold (a new context) and warm (all prices remembered), collectives over large groups, single
 * operators, and a model of 128 layers made ready on five kinds of devices.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "solver/cost/device/gemm.h"
#include "solver/io/own/docs.h"
#include "tests/cost_fixture.h"

enum { REPEATS = 51 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static void report(const char *name, double *seconds)
{
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    printf("%-34s median %10.2f us   worst %10.2f us\n", name, seconds[REPEATS / 2] * 1e6,
           seconds[REPEATS - 1] * 1e6);
}

/* Times and memory of all 128 stage ranks. Returns a sum, so that nothing is left out. */
static double price_plan(struct hv_cost *k, struct fixture_plan *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->replica.n_stages; i++) {
        for (int dp = 0; dp < p->stages[i].dp; dp++) {
            struct hv_stage_query q = {
                .plan = &p->plan, .replica = &p->replica, .stage = i, .dp_rank = dp};
            struct hv_pass pass;
            struct hv_memory memory;
            struct hv_err err = {0};
            if (hv_cost_pass(k, &q, &pass, &err) != HV_OK ||
                hv_cost_memory(k, &q, &memory, &err) != HV_OK) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
            }
            sum += pass.forward_s + memory.weights_bytes;
        }
    }
    return sum;
}

static void bench_plan(const char *name, struct hv_cluster *c, struct hv_model *m, int zero)
{
    static struct fixture_plan p;
    double cold[REPEATS], warm[REPEATS], sum = 0;
    char label[64];
    struct hv_job j = fixture_job(2048);
    fixture_stages(&p, c, (int)m->n_blocks, 16, 8, 8);
    for (size_t i = 0; i < 16; i++) {
        p.stages[i].zero.stage = zero;
    }
    for (int r = 0; r < REPEATS; r++) {
        double start = now_s();
        struct hv_cost *k = hv_cost_new(c, m, &j);
        sum += price_plan(k, &p);
        cold[r] = now_s() - start;
        start = now_s();
        sum += price_plan(k, &p);
        warm[r] = now_s() - start;
        hv_cost_free(k);
    }
    snprintf(label, sizeof label, "cost %s cold (%g)", name, sum > 0 ? 1.0 : 0.0);
    report(label, cold);
    snprintf(label, sizeof label, "cost %s warm", name);
    report(label, warm);
}

static void bench_collective(struct hv_cluster *c, size_t n)
{
    double seconds[REPEATS];
    uint32_t *ids = hv_xmalloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (uint32_t)i;
    }
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e9, ids, n, HV_ALGO_AUTO, 1, 1, NULL, false};
    for (int r = 0; r < REPEATS; r++) {
        double start = now_s();
        if (!(hv_cost_collective(c, &q, NULL).time_s > 0)) {
            exit(1);
        }
        seconds[r] = now_s() - start;
    }
    char label[64];
    snprintf(label, sizeof label, "all-reduce over %zu devices", n);
    report(label, seconds);
    free(ids);
}

/* Kinds with a measured table, of the same chip, and without any. */
static const char *const names[] = {"A100-SXM-80GB", "H100-SXM-80GB", "A40-48GB", "H200-SXM-141GB",
                                    "V100-SXM2-32GB"};
enum { KINDS = 5 };

static void report_rate(const char *name, double n, double *seconds)
{
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    printf("%-34s median %10.2f million per second, %.0f ns each\n", name,
           n / seconds[REPEATS / 2] * 1e-6, seconds[REPEATS / 2] / n * 1e9);
}

/* Prices of 5,000 products of different shapes, everything looked up anew for each. */
static void bench_products(const struct hv_device_kind *d)
{
    double seconds[REPEATS], sum = 0;
    for (int r = 0; r < REPEATS; r++) {
        double start = now_s();
        for (int i = 0; i < 5000; i++) {
            sum += hv_gemm(d, HV_FP16, 1 + i, 1024 + (i & 1023), 4096 + (i & 511), 1).time_s;
        }
        seconds[r] = now_s() - start;
    }
    char label[64];
    snprintf(label, sizeof label, "products on %s%s", d->name, sum > 0 ? "" : " (none)");
    report_rate(label, 5000, seconds);
}

/* Seconds that the parts of a block are explained by: one per operator. */
static int count_operators(struct hv_cost *k, const struct hv_part_query *q)
{
    struct hv_arena arena = {0};
    struct hv_why why = {.arena = &arena};
    int n = 0;
    hv_cost_part(k, HV_PART_ATTENTION, 0, q, &why);
    hv_cost_part(k, HV_PART_FFN, 0, q, &why);
    for (size_t i = 0; i < why.n; i++) {
        n += !strcmp(why.terms[i].unit, "s");
    }
    hv_arena_free(&arena);
    return n;
}

/* Blocks of a transformer in 1,000 sizes of a micro-batch, none priced before; forward, input and
 * weight gradient of an operator count as one. */
static void bench_operators(struct hv_cluster *c, struct hv_model *m,
                            const struct hv_device_kind *d)
{
    double seconds[REPEATS], sum = 0;
    struct hv_job j = fixture_job(2048);
    struct hv_part_query q = {
        .device = d, .tp = 1, .cp = 1, .ep = 1, .sequences = 1, .tokens = 2048};
    j.precision = HV_FP16;
    int n = 0;
    for (int r = 0; r < REPEATS; r++) {
        struct hv_cost *k = hv_cost_new(c, m, &j);
        n = n ? n : count_operators(k, &q);
        double start = now_s();
        for (int i = 0; i < 1000; i++) {
            q.sequences = 1 + i / 1000.0;
            sum += hv_cost_part(k, HV_PART_ATTENTION, 0, &q, NULL).forward_s;
            sum += hv_cost_part(k, HV_PART_FFN, 0, &q, NULL).forward_s;
        }
        seconds[r] = now_s() - start;
        hv_cost_free(k);
    }
    char label[64];
    snprintf(label, sizeof label, "operators on %s%s", d->name, sum > 0 ? "" : " (none)");
    report_rate(label, 1000.0 * n, seconds);
}

/* A context and the tables of all kinds; `step` > 0: no two layers alike, nothing is remembered. */
static void bench_ready(struct hv_cluster *c, const struct hv_device_kind *const *kinds, int step)
{
    double seconds[REPEATS], sum = 0;
    struct hv_model *m = fixture_llama();
    struct hv_block first = m->blocks[0];
    struct hv_job j = fixture_job(2048);
    j.precision = HV_FP16;
    m->n_blocks = 128;
    m->blocks = hv_arena_new(&m->arena, struct hv_block, 128);
    for (int i = 0; i < 128; i++) {
        m->blocks[i] = first;
        m->blocks[i].ffn += step * i;
    }
    for (int r = 0; r < REPEATS; r++) {
        struct hv_arena arena = {0};
        double start = now_s();
        struct hv_cost *k = hv_cost_new(c, m, &j);
        for (int i = 0; i < KINDS; i++) {
            struct hv_part_query q = {
                .device = kinds[i], .tp = 1, .cp = 1, .ep = 1, .sequences = 1, .tokens = 2048};
            struct hv_layer_table t;
            if (hv_cost_layers(k, &q, &arena, &t, NULL) != HV_OK) {
                exit(1);
            }
            sum += t.forward_s[128];
        }
        seconds[r] = now_s() - start;
        hv_cost_free(k);
        hv_arena_free(&arena);
    }
    char label[64];
    snprintf(label, sizeof label, "128 %s layers on five kinds (%g)", step ? "unequal" : "equal",
             sum > 0 ? 1.0 : 0.0);
    report(label, seconds);
    hv_model_unref(m);
}

static void bench_catalogue(struct hv_cluster *c, struct hv_model *m)
{
    struct hv_device_catalogue catalogue;
    struct hv_err err = {0};
    if (hv_device_catalogue_read(&catalogue, &err) != HV_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    const struct hv_device_kind *kinds[KINDS];
    for (int i = 0; i < KINDS; i++) {
        kinds[i] = hv_device_find(&catalogue, names[i]);
        bench_products(kinds[i]);
        bench_operators(c, m, kinds[i]);
    }
    bench_ready(c, kinds, 0);
    bench_ready(c, kinds, 64);
    hv_device_catalogue_free(&catalogue);
}

int main(void)
{
    struct hv_cluster *c = hv_xcalloc(1, sizeof *c);
    c->refs = 1;
    c->name = "bench";
    c->groups = hv_arena_new(&c->arena, struct hv_node_group, 1);
    c->network_bytes_per_s = c->network_latency_s = HV_UNKNOWN;
    fixture_group(c, "h", 128, &kind_h100);
    if (hv_cluster_finish(c, NULL) != HV_OK) {
        return 1;
    }
    struct hv_model *llama = fixture_llama(), *mixtral = fixture_mixtral();
    bench_plan("1024 devices dense", c, llama, 1);
    bench_plan("1024 devices zero-3", c, llama, 3);
    for (size_t i = 0; i < mixtral->n_blocks; i += 2) {
        mixtral->blocks[i].window = 4096; /* no two neighbours alike */
    }
    bench_plan("1024 devices alternating", c, mixtral, 1);
    bench_collective(c, 8);
    bench_collective(c, 1024);
    bench_catalogue(c, llama);
    hv_model_unref(llama);
    hv_model_unref(mixtral);
    hv_cluster_unref(c);
    return 0;
}
