/**
 * A small world for tests of the judge and of what is made from its verdicts: 4 × 8 A100 and 2 × 8
 * V100, a 2-billion-parameter GPT, 64 sequences of 2048 tokens. Read through the real readers and
 * the catalogue.
 */
#ifndef HV_TESTS_EVAL_FIXTURE_H
#define HV_TESTS_EVAL_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include "solver/bound/bound.h"
#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"

static const char cluster_text[] = "{\"format\":\"hetviz.cluster/1\",\"name\":\"test\",\"nodes\":["
                                   "{\"name\":\"a\",\"count\":4,\"device\":\"A100-SXM-80GB\","
                                   "\"devices\":8,\"nic\":{\"bandwidth_GBps\":100}},"
                                   "{\"name\":\"v\",\"count\":2,\"device\":\"V100-SXM2-32GB\","
                                   "\"devices\":8,\"nic\":{\"bandwidth_GBps\":12.5}}],"
                                   "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}";
static const char model_text[] =
    "{\"format\":\"hetviz.model/"
    "1\",\"name\":\"gpt-2b\",\"kind\":\"transformer\",\"layers\":24,\"hidden\":2560,\"heads\":32,"
    "\"kv_heads\":32,\"ffn\":10240,\"ffn_kind\":\"gelu\",\"vocab\":51200,\"max_sequence\":2048}";
static const char job_text[] = "{\"format\":\"hetviz.job/"
                               "1\",\"global_batch\":64,\"sequence\":2048,\"precision\":\"fp16\","
                               "\"grad_precision\":\"fp32\",\"optimizer\":\"adam\"}";

struct world {
    struct hv_inputs in;
    struct hv_cost *cost;
};

static inline struct hv_json parse(const char *text, const char *name)
{
    struct hv_json j;
    struct hv_err err = {0};
    if (hv_json_parse(&j, text, strlen(text), name, &err) != HV_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    return j;
}

/** Fills a world from three texts. Close it with close_world. */
static inline void open_world(struct world *w, const char *cluster, const char *model,
                              const char *job)
{
    struct hv_err err = {0};
    memset(w, 0, sizeof *w);
    if (hv_device_catalogue_read(&w->in.devices, &err) != HV_OK ||
        hv_cluster_doc_build(&w->in.cluster, parse(cluster, "c"), &w->in.devices, &err) != HV_OK ||
        hv_model_doc_build(&w->in.model, parse(model, "m"), &err) != HV_OK ||
        hv_job_doc_build(&w->in.job, parse(job, "j"), 2048, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    w->cost = hv_cost_new(w->in.cluster.cluster, w->in.model.model, &w->in.job.job);
}

static inline void close_world(struct world *w)
{
    hv_cost_free(w->cost);
    hv_inputs_free(&w->in);
}

/** The bound with its words; the arena owns them. */
static inline struct hv_bound bound_of(const char *cluster, const char *model, const char *job,
                                       struct hv_arena *a)
{
    struct world w;
    struct hv_bound b = {0};
    open_world(&w, cluster, model, job);
    hv_bound_iteration(w.cost, a, &b);
    close_world(&w);
    return b;
}

static inline int setup(void **state)
{
    static struct world w;
    open_world(&w, cluster_text, model_text, job_text);
    *state = &w;
    return 0;
}

static inline int teardown(void **state)
{
    close_world(*state);
    return 0;
}

/** Judges a plan given as text without its format member; the arena owns the verdict. */
static inline struct hv_verdict judge(struct world *w, struct hv_arena *a, bool timeline,
                                      const char *body)
{
    char text[16384];
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    struct hv_plan_doc doc;
    struct hv_verdict v;
    struct hv_err err = {0};
    if (hv_plan_doc_build(&doc, parse(text, "p"), w->in.cluster.cluster, &err) != HV_OK) {
        fail_msg("plan: %s", err.text);
    }
    struct hv_eval_options o = {.timeline = timeline};
    if (hv_eval(w->cost, doc.plan, &o, a, &v, &err) != HV_OK) {
        fail_msg("eval: %s", err.text);
    }
    hv_plan_doc_free(&doc);
    return v;
}

/** Four equal stages on one node, one micro-batch per sequence. */
static const char four_stages[] =
    "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":64,\"stages\":["
    "{\"devices\":\"a[0].0\",\"layers\":[0,6]},{\"devices\":\"a[0].1\",\"layers\":[6,12]},"
    "{\"devices\":\"a[0].2\",\"layers\":[12,18]},{\"devices\":\"a[0].3\",\"layers\":[18,24]}]}]";

#endif
