/*
 * Anytime curves of the planner on clusters of several kinds, from 64 to 16,384 devices: seconds to
 * the first plan, to one within 10 % of the final one, and to the end; largest resident set so far.
 * Prints; judges nothing. Seconds are of this program alone, whatever else the machine does, and
 * without those that the plans heard of take to be judged once more. `bench_planner N`: case N
 * only, from 0.
 */
#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include "solver/planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_INCUMBENTS = 512, TEXT = 2048 };

static const char model_text[] =
    "{\"format\":\"hetviz.model/"
    "1\",\"name\":\"llama-2-13b\",\"kind\":\"transformer\",\"layers\":40,"
    "\"hidden\":5120,\"heads\":40,\"kv_heads\":40,\"ffn\":13824,\"ffn_kind\":\"swiglu\","
    "\"vocab\":32000,\"norm\":\"rmsnorm\",\"position\":\"rope\",\"max_sequence\":4096}";

/** Nodes of eight devices per kind. */
static const struct {
    const char *name;
    int h100, a100, v100, l40s, a100_small, batch;
} cases[] = {{"64 devices of 4 kinds", 2, 2, 2, 2, 0, 128},
             {"64 devices of 4 kinds, large batch", 2, 2, 2, 2, 0, 2048},
             {"1,024 devices of 5 kinds", 32, 32, 24, 16, 24, 512},
             {"1,024 devices of 5 kinds, large batch", 32, 32, 24, 16, 24, 4096},
             {"16,384 devices of 5 kinds", 512, 512, 384, 256, 384, 2048},
             {"16,384 devices of 5 kinds, large batch", 512, 512, 384, 256, 384, 16384}};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct curve {
    struct hv_cost *k;
    double start_s, at_s[MOST_INCUMBENTS], value_s[MOST_INCUMBENTS];
    int n;
};

static void hear(void *ctx, const struct hv_plan *p)
{
    struct curve *c = ctx;
    double at_s = now_s() - c->start_s;
    struct hv_eval_options o = {.no_bound = true};
    struct hv_arena a = {0};
    struct hv_verdict v;
    if (c->n < MOST_INCUMBENTS && hv_eval(c->k, p, &o, &a, &v, NULL) == HV_OK) {
        c->at_s[c->n] = at_s;
        c->value_s[c->n++] = v.metrics.iteration_s;
    }
    hv_arena_free(&a);
    c->start_s += now_s() - c->start_s - at_s;
}

static struct hv_json parsed(const char *text)
{
    struct hv_json j;
    if (hv_json_parse(&j, text, strlen(text), "bench", NULL) != HV_OK) {
        abort();
    }
    return j;
}

static void print_curve(const char *name, const struct curve *c, const struct hv_planner_result *r,
                        double end_s)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], d[HV_FMT_CAP], e[HV_FMT_CAP];
    struct rusage use;
    int near = 0;
    while (near + 1 < c->n && c->value_s[near] > 1.1 * r->iteration_s) {
        near++;
    }
    getrusage(RUSAGE_SELF, &use);
    printf("  %-40s first %-8s within 10 %% %-8s end %-8s plan %-8s gap %3.0f %%, %lld judged, "
           "%ld MB\n",
           name, hv_fmt_seconds(a, sizeof a, c->n > 0 ? c->at_s[0] : HV_UNKNOWN),
           hv_fmt_seconds(b, sizeof b, c->n > 0 ? c->at_s[near] : HV_UNKNOWN),
           hv_fmt_seconds(d, sizeof d, end_s), hv_fmt_seconds(e, sizeof e, r->iteration_s),
           100 * (r->iteration_s / r->bound_s - 1), (long long)r->evaluations,
           use.ru_maxrss / 1000);
}

static void add_nodes(char *text, const char *device, int count, const char *rate)
{
    size_t n = strlen(text);
    if (count > 0) {
        (void)snprintf(text + n, TEXT - n,
                       "%s{\"name\":\"n%zu\",\"device\":\"%s\",\"count\":%d,\"devices\":8,\"nic\":{"
                       "\"bandwidth_GBps\":%s}}",
                       text[n - 1] == '[' ? "" : ",", n, device, count, rate);
    }
}

static void bench(size_t i)
{
    char cluster[TEXT] = "{\"format\":\"hetviz.cluster/1\",\"name\":\"kinds\",\"nodes\":[";
    char job[TEXT];
    add_nodes(cluster, "H100-SXM-80GB", cases[i].h100, "400");
    add_nodes(cluster, "A100-SXM-80GB", cases[i].a100, "200");
    add_nodes(cluster, "V100-SXM2-32GB", cases[i].v100, "12.5");
    add_nodes(cluster, "L40S-48GB", cases[i].l40s, "25");
    add_nodes(cluster, "A100-SXM-40GB", cases[i].a100_small, "50");
    (void)strcat(cluster, "],\"network\":{\"bandwidth_GBps\":400,\"latency_us\":10}}");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":2048,"
                   "\"precision\":\"fp16\",\"optimizer\":\"adam\"}",
                   cases[i].batch);
    struct hv_inputs in = {0};
    if (hv_device_catalogue_read(&in.devices, NULL) != HV_OK ||
        hv_cluster_doc_build(&in.cluster, parsed(cluster), &in.devices, NULL) != HV_OK ||
        hv_model_doc_build(&in.model, parsed(model_text), NULL) != HV_OK ||
        hv_job_doc_build(&in.job, parsed(job), 2048, NULL) != HV_OK) {
        abort();
    }
    struct curve c = {.start_s = now_s()};
    c.k = hv_cost_new(in.cluster.cluster, in.model.model, &in.job.job);
    struct hv_planner_options o = {.incumbent = hear, .ctx = &c};
    struct hv_planner_result r;
    if (hv_planner_run(c.k, &o, &r, NULL) == HV_OK) {
        print_curve(cases[i].name, &c, &r, now_s() - c.start_s);
    }
    hv_plan_unref(r.plan);
    hv_cost_free(c.k);
    hv_inputs_free(&in);
}

int main(int argc, char **argv)
{
    printf("anytime: llama-2-13b, sequences of 2,048 tokens, fp16\n");
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        if (argc < 2 || (size_t)atoi(argv[1]) == i) {
            bench(i);
        }
    }
    return 0;
}
