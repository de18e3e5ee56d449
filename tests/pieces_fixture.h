/**
 * Measured layers of pieces on equal ranks over plain links, for tests of the judge by hand.
 */
#ifndef HV_TESTS_PIECES_FIXTURE_H
#define HV_TESTS_PIECES_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/eval_fixture.h"

/** Equal ranks on plain links. */
struct setting {
    int nodes, each; /**< and devices of each */
    double near_GBps, nic_GBps, latency_us;
    int sequence;             /**< tokens of a rank */
    const char *precision;    /**< NULL: fp32 */
    const char *layer, *more; /**< members of the first layer; further layers */
    const char *routing;      /**< NULL: even */
    const char *stage;        /**< further members */
    int n_layers;             /**< 0: one, and one more where `more` is given */
    const char *sync;         /**< members, or NULL */
};

/** The verdict, or why there is none. */
static inline enum hv_status judged(const struct setting *s, struct hv_arena *a,
                                    struct hv_verdict *v, struct hv_err *err)
{
    char cluster[1024], model[4096], job[4096], body[1024];
    int n = s->nodes * s->each, n_layers = s->n_layers > 0 ? s->n_layers : s->more ? 2 : 1;
    bool ring = strstr(s->stage, "\"cp\"") != NULL;
    (void)snprintf(
        cluster, sizeof cluster,
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\",\"count\":%d,"
        "\"device\":\"P\",\"devices\":%d,\"intra\":{\"kind\":\"nvlink\",\"bandwidth_GBps\":%.17g,"
        "\"latency_us\":%.17g,\"curve\":\"plain\"},\"nic\":{\"bandwidth_GBps\":%.17g,"
        "\"latency_us\":%.17g,\"count\":%d,\"curve\":\"plain\"}}],\"devices\":{\"P\":{"
        "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100,\"bf16\":100},"
        "\"rates\":\"plain\"}}}",
        s->nodes, s->each, s->near_GBps, s->latency_us, s->nic_GBps * s->each, s->latency_us,
        s->each);
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":"
                   "[{%s}%s]}",
                   s->layer, s->more ? s->more : "");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                   "\"precision\":\"%s\",\"optimizer\":\"none\"%s%s}",
                   ring ? 1 : n, s->sequence, s->precision ? s->precision : "fp32",
                   s->routing ? ",\"routing\":" : "", s->routing ? s->routing : "");
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":"
                   "\"a[0-%d].*\",\"layers\":[0,%d]%s}]}],\"schedule\":{\"name\":\"1f1b\"},"
                   "\"sync\":{%s}",
                   ring ? 1 : n, s->nodes - 1, n_layers, s->stage, s->sync ? s->sync : "");
    char text[2048];
    struct world w;
    struct hv_plan_doc doc;
    open_world(&w, cluster, model, job);
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    if (hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, err) != HV_OK) {
        fail_msg("plan: %s", err->text);
    }
    struct hv_eval_options o = {0};
    enum hv_status st = hv_eval(w.cost, doc.plan, &o, a, v, err);
    hv_plan_doc_free(&doc);
    close_world(&w);
    return st;
}

static inline struct hv_verdict verdict_of(const struct setting *s, struct hv_arena *a)
{
    struct hv_verdict v;
    struct hv_err err = {0};
    if (judged(s, a, &v, &err) != HV_OK) {
        fail_msg("eval: %s", err.text);
    }
    return v;
}

static inline double time_ms(const struct setting *s)
{
    struct hv_arena a = {0};
    struct hv_verdict v = verdict_of(s, &a);
    if (v.findings.n > 0) {
        fail_msg("%s: %s", v.findings.items[0].where, v.findings.items[0].text);
    }
    double ms = v.metrics.iteration_s * 1e3;
    if (!(v.metrics.bound_s * 1e3 <= ms * (1 + 1e-9))) {
        fail_msg("bound %.9g ms above %.9g", v.metrics.bound_s * 1e3, ms);
    }
    hv_arena_free(&a);
    return ms;
}

static inline void near_to(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want))) {
        fail_msg("%.9g ms instead of %.9g", got, want);
    }
}

#endif
