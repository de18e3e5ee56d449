/*
 * Judging the iterations of a dense routing trace: 64 iterations x 32 layers x 64 ranks x 128
 * experts, with experts in order, with owners, and with copies of some experts besides. Prints CPU
 * time and the largest resident set; judges nothing. The trace itself takes 32 MiB.
 * `bench_routing N`: case N only, from 0, behind the first.
 */
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"
#include "solver/workload/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ITERATIONS = 64, LAYERS = 32, RANKS = 64, EXPERTS = 128, TEXT = 4096 };

static const char cluster_text[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\",\"count\":8,"
    "\"device\":\"H100-SXM-80GB\",\"devices\":8,\"nic\":{\"bandwidth_GBps\":400}}]}";

static const char model_text[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":32,"
    "\"hidden\":2048,\"heads\":32,\"kv_heads\":4,\"ffn\":6144,\"ffn_kind\":\"swiglu\","
    "\"vocab\":151936,\"max_sequence\":4096,\"moe\":{\"experts\":128,\"top_k\":8,\"ffn\":768}}";

static const char job_text[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":4096,\"precision\":\"bf16\","
    "\"optimizer\":\"adam\"}";

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct hv_json parsed(const char *text)
{
    struct hv_json j;
    if (hv_json_parse(&j, text, strlen(text), "bench", NULL) != HV_OK) {
        abort();
    }
    return j;
}

/** Owners of all experts, and copies of every eighth one on the ranks of `copies` nodes. */
static void write_moe(char *out, bool owners, int copies)
{
    size_t n = 0;
    out[0] = '\0';
    if (owners) {
        n += (size_t)snprintf(out + n, TEXT - n, ",\"moe\":{\"owners\":[");
        for (int e = 0; e < EXPERTS; e++) {
            n += (size_t)snprintf(out + n, TEXT - n, "%s%d", e > 0 ? "," : "", e * 7 % RANKS);
        }
        n += (size_t)snprintf(out + n, TEXT - n, "]");
        for (int e = 0; copies > 0 && e < EXPERTS; e += 8) {
            n +=
                (size_t)snprintf(out + n, TEXT - n, "%s\"%d\":[", e > 0 ? "," : ",\"copies\":{", e);
            for (int k = 0; k < copies; k++) {
                int rank = (e * 7 + 8 * (k + 1)) % RANKS;
                n += (size_t)snprintf(out + n, TEXT - n, "%s%d", k > 0 ? "," : "", rank);
            }
            n += (size_t)snprintf(out + n, TEXT - n, "]");
        }
        (void)snprintf(out + n, TEXT - n, copies > 0 ? "}}" : "}");
    }
}

static void bench(const char *name, const struct hv_router *router, bool owners, int copies)
{
    char moe[TEXT], plan[2 * TEXT];
    struct hv_inputs in = {0};
    struct hv_plan_doc doc;
    struct hv_arena a = {0};
    struct hv_verdict v;
    struct rusage use;
    write_moe(moe, owners, copies);
    (void)snprintf(
        plan, sizeof plan,
        "{\"format\":\"hetviz.plan/1\",\"name\":\"p\",\"cluster\":\"c\",\"model\":\"m\","
        "\"job\":\"j\",\"micro_batch\":64,\"replicas\":[{\"micro_batches\":1,\"stages\":["
        "{\"devices\":\"a[0-7].*\",\"layers\":[0,32],\"dp\":64,\"ep\":64,\"zero\":1%s}]}]}",
        moe);
    if (hv_device_catalogue_read(&in.devices, NULL) != HV_OK ||
        hv_cluster_doc_build(&in.cluster, parsed(cluster_text), &in.devices, NULL) != HV_OK ||
        hv_model_doc_build(&in.model, parsed(model_text), NULL) != HV_OK ||
        hv_job_doc_build(&in.job, parsed(job_text), 4096, NULL) != HV_OK ||
        hv_plan_doc_build(&doc, parsed(plan), in.cluster.cluster, NULL) != HV_OK) {
        abort();
    }
    in.job.job.routing = router;
    double start_s = now_s();
    struct hv_cost *k = hv_cost_new(in.cluster.cluster, in.model.model, &in.job.job);
    struct hv_eval_options o = {.no_bound = true};
    enum hv_status st = hv_eval(k, doc.plan, &o, &a, &v, NULL);
    double took_s = now_s() - start_s;
    getrusage(RUSAGE_SELF, &use);
    printf("  %-44s %6.1f ms, iteration %.17g s, %ld MB\n", name, 1e3 * took_s,
           st == HV_OK ? v.metrics.iteration_s : HV_UNKNOWN, use.ru_maxrss / 1000);
    hv_cost_free(k);
    hv_arena_free(&a);
    hv_plan_doc_free(&doc);
    hv_inputs_free(&in);
}

int main(int argc, char **argv)
{
    size_t n = (size_t)ITERATIONS * LAYERS * RANKS * EXPERTS;
    uint16_t *counts = malloc(n * sizeof *counts);
    struct hv_rng rng;
    if (counts == NULL) {
        return 1;
    }
    hv_rng_seed(&rng, 1);
    for (size_t i = 0; i < n; i++) {
        counts[i] = (uint16_t)hv_rng_below(&rng, i % EXPERTS < 16 ? 1000 : 300);
    }
    struct hv_router r = {.kind = HV_ROUTER_TRACE,
                          .iterations = ITERATIONS,
                          .layers = LAYERS,
                          .sources = RANKS,
                          .experts = EXPERTS,
                          .counts = counts};
    printf("dense routing trace, %d iterations x %d layers x %d ranks x %d experts\n", ITERATIONS,
           LAYERS, RANKS, EXPERTS);
    static const struct {
        const char *name;
        bool routed, owners;
        int copies;
    } cases[] = {{"even routing (tables are read)", false, false, 0},
                 {"owners", true, true, 0},
                 {"owners, 16 experts with a copy", true, true, 1},
                 {"owners, 16 experts with 7 copies", true, true, 7},
                 {"experts in order, best of three exchanges", true, false, 0}};
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        if (argc < 2 || i == 0 || (size_t)atoi(argv[1]) == i) {
            bench(cases[i].name, cases[i].routed ? &r : NULL, cases[i].owners, cases[i].copies);
        }
    }
    free(counts);
    return 0;
}
