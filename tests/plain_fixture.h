/**
 * A world of measured layers over plain links: closed forms of published systems go through the
 * judge digit by digit.
 */
#ifndef HV_TESTS_PLAIN_FIXTURE_H
#define HV_TESTS_PLAIN_FIXTURE_H

#include <math.h>

#include "tests/eval_fixture.h"

/** Ranks that reduce the gradients of equal measured layers over plain links of nothing else. */
struct ring {
    int ranks, layers;
    int micro_batches; /**< 0: one */
    double gbps, latency_us;
    double forward_ms, backward_ms, update_ms; /**< per layer; update 0: no optimizer */
    double parameter_bytes;                    /**< per layer, fp32 */
    const char *stage, *sync;                  /**< further members of the stage, and `sync` */
};

static inline void add_layers(char *out, size_t n, const struct ring *r)
{
    size_t at = 0;
    for (int i = 0; i < r->layers; i++) {
        at += (size_t)snprintf(out + at, n - at,
                               "%s{\"forward_ms\":{\"P\":%.17g},\"backward_ms\":{\"P\":%.17g},"
                               "\"update_ms\":{\"P\":%.17g},\"parameter_bytes\":%.17g,"
                               "\"activation_bytes\":0,\"output_bytes\":0}",
                               i > 0 ? "," : "", r->forward_ms, r->backward_ms, r->update_ms,
                               r->parameter_bytes);
    }
}

/** Milliseconds of one iteration. */
static inline double iteration_ms(const struct ring *r)
{
    char cluster[1024], model[4096], layers[3072], job[256], body[768];
    int micro_batches = r->micro_batches > 0 ? r->micro_batches : 1;
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"ring\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":%.17g,"
                   "\"latency_us\":%.17g,\"curve\":\"plain\"}}],\"devices\":{\"P\":{"
                   "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
                   "\"rates\":\"plain\"}}}",
                   r->ranks, r->gbps, r->latency_us);
    add_layers(layers, sizeof layers, r);
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                   "\"layers\":[%s]}",
                   layers);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":1,"
                   "\"precision\":\"fp32\",\"optimizer\":\"%s\"}",
                   r->ranks * micro_batches, r->update_ms > 0 ? "adamw" : "none");
    (void)snprintf(
        body, sizeof body,
        "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[{\"devices\":"
        "\"a[0-%d].0\",\"layers\":[0,%d],\"dp\":%d%s}]}],\"schedule\":{\"name\":"
        "\"1f1b\"},\"sync\":{%s}",
        r->ranks, micro_batches, r->ranks - 1, r->layers, r->ranks, r->stage, r->sync);
    struct world w;
    struct hv_arena a = {0};
    open_world(&w, cluster, model, job);
    double ms = judge(&w, &a, false, body).metrics.iteration_s * 1e3;
    hv_arena_free(&a);
    close_world(&w);
    return ms;
}

static inline void assert_ms(struct ring r, double want)
{
    r.stage = r.stage != NULL ? r.stage : "";
    r.sync = r.sync != NULL ? r.sync : "";
    double got = iteration_ms(&r);
    if (!(fabs(got - want) <= 1e-6 * want)) {
        fail_msg("%.9g ms instead of %.9g", got, want);
    }
}

/** Four layers of 10 MB whose backward passes take 2 ms each, four ranks, 10 GB/s: a ring
 * all-reduce takes 0.15 ms per MB (Li et al. 2020, PyTorch Distributed, section 3.2). */
static const struct ring ddp = {
    .ranks = 4, .layers = 4, .gbps = 10, .backward_ms = 2, .parameter_bytes = 10e6};

static inline struct ring with_sync(struct ring r, const char *sync)
{
    r.sync = sync;
    return r;
}

#endif
