/*
 * Changes that must not make the planner's answer slower, on random clusters: the same groups in
 * another order (the very same time), one node more, faster networks, more memory. Prints every
 * case that is slower and by how much, and the CPU time; ends with status 1 when a permuted cluster
 * differs, or another change costs more than TOLERANCE. Arguments: first seed, number of seeds.
 */
#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include "solver/planner/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_GROUPS = 4, SEEDS = 12 };
#define TOLERANCE 0.01

static const char *const kinds[] = {"H100-SXM-80GB",  "A100-SXM-80GB", "A100-SXM-40GB",
                                    "V100-SXM2-32GB", "L40S-48GB",     "RTX4090-24GB",
                                    "V100-SXM2-16GB", "T4-16GB"};
static const char *const models[] = {
    "\"layers\":24,\"hidden\":2048,\"heads\":16,\"kv_heads\":16,\"ffn\":8192,\"vocab\":51200",
    "\"layers\":32,\"hidden\":4096,\"heads\":32,\"kv_heads\":32,\"ffn\":16384,\"vocab\":50257",
    "\"layers\":40,\"hidden\":5120,\"heads\":40,\"kv_heads\":40,\"ffn\":20480,\"vocab\":50257"};

/** A cluster in numbers. */
struct world {
    int n_groups, kind[MOST_GROUPS], nodes[MOST_GROUPS], devices[MOST_GROUPS], order[MOST_GROUPS];
    double nic[MOST_GROUPS], network, memory;
    int model, batch;
};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct world random_world(struct hv_rng *r)
{
    struct world w = {.memory = 1};
    w.n_groups = 1 + (int)hv_rng_below(r, MOST_GROUPS);
    for (int i = 0; i < w.n_groups; i++) {
        bool again = true;
        while (again) {
            w.kind[i] = (int)hv_rng_below(r, HV_COUNT(kinds));
            again = false;
            for (int k = 0; k < i; k++) {
                again = again || w.kind[k] == w.kind[i];
            }
        }
        w.nodes[i] = 1 + (int)hv_rng_below(r, 4);
        w.devices[i] = 2 << hv_rng_below(r, 3);
        w.nic[i] = 1.25 * (double)(1 << hv_rng_below(r, 6));
        w.order[i] = i;
    }
    w.network = 50;
    w.model = (int)hv_rng_below(r, HV_COUNT(models));
    w.batch = 32 << hv_rng_below(r, 4);
    return w;
}

static void write_cluster(const struct world *w, struct hv_str *out)
{
    static const double memory[] = {80, 80, 40, 32, 48, 24, 16, 16};
    hv_str_addf(out, "{\"format\":\"hetviz.cluster/1\",\"name\":\"meta\",\"devices\":{");
    for (int i = 0; i < w->n_groups; i++) {
        hv_str_addf(out, "%s\"K%d\":{\"base\":\"%s\",\"memory_GiB\":%g}", i > 0 ? "," : "",
                    w->kind[i], kinds[w->kind[i]], w->memory * memory[w->kind[i]]);
    }
    hv_str_addf(out, "},\"nodes\":[");
    for (int i = 0; i < w->n_groups; i++) {
        int g = w->order[i];
        hv_str_addf(out,
                    "%s{\"name\":\"g%d\",\"device\":\"K%d\",\"count\":%d,\"devices\":%d,\"nic\":{"
                    "\"bandwidth_GBps\":%g}}",
                    i > 0 ? "," : "", g, w->kind[g], w->nodes[g], w->devices[g], w->nic[g]);
    }
    hv_str_addf(out, "],\"network\":{\"bandwidth_GBps\":%g,\"latency_us\":10}}", w->network);
}

static struct hv_json parsed(const char *text)
{
    struct hv_json j;
    if (hv_json_parse(&j, text, strlen(text), "bench", NULL) != HV_OK) {
        abort();
    }
    return j;
}

/* Iteration time of the planner's answer; infinity where there is none. */
static double plan_s(const struct world *w)
{
    struct hv_str cluster = {0};
    char model[512], job[256];
    write_cluster(w, &cluster);
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",%s,"
                   "\"ffn_kind\":\"gelu\",\"max_sequence\":2048}",
                   models[w->model]);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":2048,"
                   "\"precision\":\"fp16\",\"optimizer\":\"adam\"}",
                   w->batch);
    struct hv_inputs in = {0};
    struct hv_err err = {0};
    if (hv_device_catalogue_read(&in.devices, &err) != HV_OK ||
        hv_cluster_doc_build(&in.cluster, parsed(hv_str_cstr(&cluster)), &in.devices, &err) !=
            HV_OK ||
        hv_model_doc_build(&in.model, parsed(model), &err) != HV_OK ||
        hv_job_doc_build(&in.job, parsed(job), 2048, &err) != HV_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    struct hv_cost *k = hv_cost_new(in.cluster.cluster, in.model.model, &in.job.job);
    struct hv_planner_options o = {0};
    struct hv_planner_result r = {0};
    double s = HUGE_VAL;
    if (hv_planner_run(k, &o, &r, NULL) == HV_OK) {
        s = r.iteration_s;
    }
    hv_plan_unref(r.plan);
    hv_cost_free(k);
    hv_inputs_free(&in);
    hv_str_free(&cluster);
    return s;
}

/* What a change did to the time; counts what it should not have done. */
static int judge(unsigned seed, const char *change, double before_s, double after_s, double most)
{
    if (!(after_s > before_s * (1 + most)) && (most > 1e-9 || after_s >= before_s * (1 - 1e-9))) {
        if (after_s > before_s * (1 + 1e-9)) {
            printf("  seed %u, %s: %.4g -> %.4g s (%+.2f %%)\n", seed, change, before_s, after_s,
                   100 * (after_s / before_s - 1));
        }
        return 0;
    }
    printf("  seed %u, %s: %.6g -> %.6g s (%+.2f %%)  SLOWER\n", seed, change, before_s, after_s,
           100 * (after_s / before_s - 1));
    return 1;
}

static int try_seed(unsigned seed)
{
    struct hv_rng r;
    hv_rng_seed(&r, seed);
    struct world w = random_world(&r), other = w;
    double base_s = plan_s(&w);
    int wrong = 0;
    for (int i = 0; i < w.n_groups; i++) {
        other.order[i] = w.n_groups - 1 - i;
    }
    wrong += judge(seed, "groups in another order", base_s, plan_s(&other), 1e-9);
    other = w;
    other.nodes[hv_rng_below(&r, (uint64_t)w.n_groups)]++;
    wrong += judge(seed, "a node more", base_s, plan_s(&other), TOLERANCE);
    other = w;
    for (int i = 0; i < w.n_groups; i++) {
        other.nic[i] *= 2;
    }
    other.network *= 2;
    wrong += judge(seed, "networks twice as fast", base_s, plan_s(&other), TOLERANCE);
    other = w;
    other.memory = 1.25;
    wrong += judge(seed, "a quarter more memory", base_s, plan_s(&other), TOLERANCE);
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    int n = argc > 2 ? atoi(argv[2]) : SEEDS, wrong = 0;
    double begin = cpu_s();
    printf("changes that must not cost time, seeds %u to %u\n", first, first + (unsigned)n - 1);
    for (int i = 0; i < n; i++) {
        wrong += try_seed(first + (unsigned)i);
    }
    printf("%d of %d changes cost time; %.1f s CPU\n", wrong, 4 * n, cpu_s() - begin);
    return wrong > 0;
}
