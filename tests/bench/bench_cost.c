/*
 * Times of the cost model in process: every rank of a plan of 1,024 devices (16 stages, dp 8, tp
 * 8), cold (a new context) and warm (all prices remembered), and collectives over large groups.
 */
#include <stdio.h>
#include <time.h>

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
    for (size_t i = 0; i < 16; i++)
        p.stages[i].zero.stage = zero;
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
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)i;
    struct hv_collective_query q = {HV_ALL_REDUCE, 1e9, ids, n, HV_ALGO_AUTO, 1, 1};
    for (int r = 0; r < REPEATS; r++) {
        double start = now_s();
        if (!(hv_cost_collective(c, &q, NULL).time_s > 0))
            exit(1);
        seconds[r] = now_s() - start;
    }
    char label[64];
    snprintf(label, sizeof label, "all-reduce over %zu devices", n);
    report(label, seconds);
    free(ids);
}

int main(void)
{
    struct hv_cluster *c = hv_xcalloc(1, sizeof *c);
    c->refs = 1;
    c->name = "bench";
    c->groups = hv_arena_new(&c->arena, struct hv_node_group, 1);
    c->network_bytes_per_s = c->network_latency_s = HV_UNKNOWN;
    fixture_group(c, "h", 128, &kind_h100);
    if (hv_cluster_finish(c, NULL) != HV_OK)
        return 1;
    struct hv_model *llama = fixture_llama(), *mixtral = fixture_mixtral();
    bench_plan("1024 devices dense", c, llama, 1);
    bench_plan("1024 devices zero-3", c, llama, 3);
    for (size_t i = 0; i < mixtral->n_blocks; i += 2)
        mixtral->blocks[i].window = 4096; /* no two neighbours alike */
    bench_plan("1024 devices alternating", c, mixtral, 1);
    bench_collective(c, 8);
    bench_collective(c, 1024);
    hv_model_unref(llama);
    hv_model_unref(mixtral);
    hv_cluster_unref(c);
    return 0;
}
