/*
 * Times of the optimisers in process: one line per problem, median and worst over seeds.
 * Chains follow the shape of the published instances: four kinds of devices with the throughput of
 * T4, V100, A100 and H100 (65, 125, 312, 989 TFLOP/s), memory that depends on the position.
 */
#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/batch/distribute.h"
#include "solver/optim/batch/with_layers.h"
#include "solver/optim/chain/certify.h"
#include "solver/optim/chain/partition.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEEDS = 15, REPEATS = 5 };

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

/* target_us = 0: none is set for this problem. */
static void report(const char *name, double *seconds, int n, double target_us)
{
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    printf("%-34s median %10.2f us   worst %10.2f us", name, seconds[n / 2] * 1e6,
           seconds[n - 1] * 1e6);
    if (target_us > 0) {
        printf("   target %8.0f us %s", target_us,
               seconds[n / 2] * 1e6 <= target_us ? "met" : "MISSED");
    }
    putchar('\n');
}

/* Parameters of a chain family. */
struct family {
    const char *name;
    size_t L, S, n_kinds;
    bool cuts, free_order;
    double sum_weight, max_weight, target_us;
};

static void make_chain(struct hv_arena *a, struct hv_rng *rng, const struct family *f,
                       struct hv_partition *p)
{
    static const double speed[] = {65, 125, 312, 989}, memory_gib[] = {15.2, 30.4, 76, 76};
    double *time[4], *layer = hv_arena_new(a, double, f->L);
    struct hv_part_stage *stage = hv_arena_new(a, struct hv_part_stage, f->S);
    const double **cuts = hv_arena_new(a, const double *, f->S);
    for (size_t l = 0; l < f->L; l++) {
        layer[l] = 0.5 + hv_rng_double(rng);
    }
    for (size_t k = 0; k < 4; k++) {
        time[k] = hv_arena_new(a, double, f->L + 1);
        for (size_t l = 0; l < f->L; l++) {
            time[k][l + 1] = time[k][l] + 9650 * layer[l] / speed[k];
        }
    }
    double *memory = hv_arena_new(a, double, f->L + 1);
    for (size_t l = 0; l < f->L; l++) {
        memory[l + 1] = memory[l] + 1.3 * layer[l];
    }
    for (size_t s = 0; s < f->S; s++) {
        size_t k = f->free_order ? s % f->n_kinds : hv_rng_below(rng, f->n_kinds);
        double *cut = hv_arena_new(a, double, f->L + 1);
        for (size_t l = 0; l <= f->L; l++) {
            cut[l] = f->cuts ? 6 * hv_rng_double(rng) : 3;
        }
        cuts[s] = cut;
        stage[s] = (struct hv_part_stage){time[k], NULL, memory, memory_gib[k]};
    }
    *p = (struct hv_partition){.n_layers = f->L,
                               .n_stages = f->S,
                               .stages = stage,
                               .cuts = cuts,
                               .min_layers = 1,
                               .sum_weight = f->sum_weight,
                               .max_weight = f->max_weight,
                               .free_order = f->free_order};
}

static void bench_chain(const struct family *f)
{
    double seconds[SEEDS];
    int feasible = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct hv_arena a = {0};
        struct hv_rng rng;
        struct hv_partition p;
        struct hv_partition_result r;
        hv_rng_seed(&rng, (uint64_t)seed + 1);
        make_chain(&a, &rng, f, &p);
        seconds[seed] = HUGE_VAL;
        for (int k = 0; k < REPEATS; k++) {
            struct hv_arena scratch = {0};
            double start = now_s();
            if (hv_partition_solve(&p, NULL, &scratch, &r, NULL) != HV_OK) {
                abort();
            }
            seconds[seed] = fmin(seconds[seed], now_s() - start);
            hv_arena_free(&scratch);
        }
        feasible += r.feasible && r.proven;
        hv_arena_free(&a);
    }
    report(f->name, seconds, SEEDS, f->target_us);
    printf("%-34s solved and proven %d of %d\n", "", feasible, SEEDS);
}

static void bench_split(const char *name, bool mixed, double target_us)
{
    enum { P = 64, B = 8192 };
    double seconds[SEEDS];
    for (int seed = 0; seed < SEEDS; seed++) {
        struct hv_rng rng;
        struct hv_share s[P];
        hv_rng_seed(&rng, (uint64_t)seed + 1);
        for (int i = 0; i < P; i++) {
            s[i] = (struct hv_share){.fixed = 20 + 30 * hv_rng_double(&rng),
                                     .rate = 1 + 9 * hv_rng_double(&rng),
                                     .size = mixed ? (int64_t)1 << hv_rng_below(&rng, 4) : 1,
                                     .min = 1,
                                     .max = B};
        }
        seconds[seed] = HUGE_VAL;
        for (int k = 0; k < REPEATS; k++) {
            struct hv_arena a = {0};
            struct hv_distribution d;
            double start = now_s();
            if (hv_distribute_minmax(s, P, B, &a, &d, NULL) != HV_OK || !d.proven) {
                abort();
            }
            seconds[seed] = fmin(seconds[seed], now_s() - start);
            hv_arena_free(&a);
        }
    }
    report(name, seconds, SEEDS, target_us);
}

static void bench_joint(const char *name, size_t n_pipelines, const size_t *S_L, int64_t total,
                        double target_us)
{
    size_t S = S_L[0], L = S_L[1];
    const struct family f = {name, L, S, 4, true, false, 1, 1, 0};
    double seconds[SEEDS];
    int proven = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct hv_arena a = {0};
        struct hv_rng rng;
        struct hv_batch_layers_result r;
        struct hv_partition *p = hv_arena_new(&a, struct hv_partition, n_pipelines);
        hv_rng_seed(&rng, (uint64_t)seed + 1);
        for (size_t k = 0; k < n_pipelines; k++) {
            make_chain(&a, &rng, &f, &p[k]);
        }
        const struct hv_batch_layers j = {n_pipelines, p, total, NULL, NULL};
        seconds[seed] = HUGE_VAL;
        for (int k = 0; k < REPEATS; k++) {
            struct hv_arena scratch = {0};
            double begin = now_s();
            if (hv_batch_layers_solve(&j, NULL, &scratch, &r, NULL) != HV_OK) {
                abort();
            }
            seconds[seed] = fmin(seconds[seed], now_s() - begin);
            hv_arena_free(&scratch);
        }
        proven += r.feasible && r.proven;
        hv_arena_free(&a);
    }
    report(name, seconds, SEEDS, target_us);
    printf("%-34s solved and proven %d of %d\n", "", proven, SEEDS);
}

/* The lp_solve certificate beside the exact answer, one second for each of its two questions. */
static void bench_certificate(const char *name, size_t L, size_t S)
{
    enum { RUNS = 7 };
    const struct family f = {name, L, S, 4, true, false, 0, 1, 0};
    double seconds[RUNS];
    int agrees = 0, contradicts = 0;
    for (int seed = 0; seed < RUNS; seed++) {
        struct hv_arena a = {0};
        struct hv_rng rng;
        struct hv_partition p;
        struct hv_partition_result r;
        struct hv_str text = {0};
        hv_rng_seed(&rng, (uint64_t)seed + 1);
        make_chain(&a, &rng, &f, &p);
        if (hv_partition_solve(&p, NULL, &a, &r, NULL) != HV_OK || !r.feasible) {
            abort();
        }
        double begin = now_s();
        enum hv_certify_outcome o = hv_certify_chain(&p, &r, 1, &text);
        seconds[seed] = now_s() - begin;
        agrees += o == HV_CERTIFY_AGREES;
        contradicts += o == HV_CERTIFY_CONTRADICTS;
        hv_str_free(&text);
        hv_arena_free(&a);
    }
    report(name, seconds, RUNS, 0);
    printf("%-34s agrees %d of %d, contradicts %d\n", "", agrees, RUNS, contradicts);
}

int main(void)
{
    printf("seeds 1 to %d, the best of %d repeats each\n", SEEDS, REPEATS);
    static const struct family families[] = {
        {"chain L=128 S=64, equal cuts", 128, 64, 4, false, false, 0, 1, 50},
        {"chain L=128 S=64, unequal cuts", 128, 64, 4, true, false, 0, 1, 50},
        {"chain L=128 S=32, unequal cuts", 128, 32, 4, true, false, 0, 1, 0},
        {"chain L=1024 S=256, unequal cuts", 1024, 256, 4, true, false, 0, 1, 2000},
        {"chain L=96 S=8, sum + 31 max", 96, 8, 4, true, false, 1, 31, 0},
        {"chain L=128 S=32, sum + 63 max", 128, 32, 4, true, false, 1, 63, 0},
        {"free order, 4 kinds, 16 devices", 64, 16, 4, false, true, 0, 1, 0},
        {"free order, 4 kinds, 64 devices", 128, 64, 4, false, true, 0, 1, 100000},
        {"the same, unequal cuts", 128, 64, 4, true, true, 0, 1, 100000},
    };
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        bench_chain(&families[k]);
    }
    bench_split("split P=64 B=8192, unit sizes", false, 10);
    bench_split("split P=64 B=8192, mixed sizes", true, 1000);
    bench_joint("joint P=8 S=8 L=96 B=512", 8, (size_t[]){8, 96}, 512, 0);
    bench_joint("joint P=32 S=8 L=128 B=8192", 32, (size_t[]){8, 128}, 8192, 15000);
    bench_certificate("certificate L=48 S=8", 48, 8);
    bench_certificate("certificate L=96 S=16", 96, 16);
    bench_certificate("certificate L=128 S=32", 128, 32);
    return 0;
}
