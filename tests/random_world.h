/**
 * Random clusters, models, jobs and plans of many shapes, as JSON texts, for properties of the
 * judge and of the bound. The same generator state gives the same texts.
 */
#ifndef HV_TESTS_RANDOM_WORLD_H
#define HV_TESTS_RANDOM_WORLD_H

#include <stdio.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/units.h"

enum { MOST_DEVICES = 64 };

/** Devices of a cluster by their addresses, in order. */
struct places {
    char address[MOST_DEVICES][32];
    int n, layers;
};

static inline int below(struct hv_rng *r, int n)
{
    return (int)hv_rng_below(r, (uint64_t)n);
}

static inline bool often(struct hv_rng *r, int of_ten)
{
    return below(r, 10) < of_ten;
}

/** What joins the devices of a node, or of a rack: often something unlike the kind's own. */
static inline void add_inside(struct hv_rng *r, struct hv_str *t, int each, int count)
{
    static const char *const kinds[] = {"pcie", "nvlink", "nvswitch", "xgmi"};
    static const double rates[] = {12, 64, 300, 450};
    if (often(r, 6)) {
        return;
    }
    int kind = below(r, HV_COUNT(kinds));
    hv_str_addf(t, ",\"intra\":{\"kind\":\"%s\",\"bandwidth_GBps\":%g", kinds[kind],
                rates[below(r, HV_COUNT(rates))]);
    if (each > 3 && often(r, 3)) {
        hv_str_addf(t,
                    ",\"groups\":[{\"devices\":\"0-1\",\"kind\":\"nvlink\",\"bandwidth_GBps\":100},"
                    "{\"devices\":\"2-3\",\"kind\":\"pcie-root\",\"bandwidth_GBps\":14,"
                    "\"shared\":true}]");
    }
    hv_str_addf(t, "}");
    if (count > 1 && kind == 2 && often(r, 5)) {
        hv_str_addf(t, ",\"domain_nodes\":2");
    }
}

static inline void add_nodes(struct hv_rng *r, struct hv_str *t, int g, bool zones,
                             struct places *p)
{
    static const char *const devices[] = {"A100-SXM-80GB",  "H100-SXM-80GB", "V100-SXM2-32GB",
                                          "T4-16GB",        "L40S-48GB",     "A10G-24GB",
                                          "V100-SXM2-16GB", "A100-SXM-40GB", "RTX4090-24GB"};
    static const double nics[] = {1.25, 5, 12.5, 50, 400};
    int each = 1 << below(r, 4), count = 1 + below(r, 2);
    hv_str_addf(t,
                "%s{\"name\":\"%c\",\"count\":%d,\"device\":\"%s\",\"devices\":%d,"
                "\"nic\":{\"bandwidth_GBps\":%g,\"latency_us\":%d}",
                g > 0 ? "," : "", 'a' + g, count, devices[below(r, HV_COUNT(devices))], each,
                nics[below(r, HV_COUNT(nics))], 1 + below(r, 20));
    add_inside(r, t, each, count);
    if (zones) {
        hv_str_addf(t, ",\"zone\":\"%s\"", g % 2 ? "west" : "east");
    }
    if (often(r, 1)) {
        hv_str_addf(t, ",\"state\":\"spare\""); /* plans may use it all the same */
    }
    hv_str_addf(t, "}");
    for (int i = 0; i < count * each; i++) {
        (void)snprintf(p->address[p->n++], sizeof p->address[0], "%c[%d].%d", 'a' + g, i / each,
                       i % each);
    }
}

static inline void random_cluster(struct hv_rng *r, struct hv_str *t, struct places *p)
{
    int groups = 1 + below(r, 3);
    bool zones = groups > 1 && often(r, 3);
    hv_str_addf(t, "{\"format\":\"hetviz.cluster/1\",\"name\":\"random\",\"nodes\":[");
    p->n = 0;
    for (int g = 0; g < groups; g++) {
        add_nodes(r, t, g, zones, p);
    }
    hv_str_addf(t, "],\"network\":{\"bandwidth_GBps\":%g,\"latency_us\":%d",
                often(r, 5) ? 100 : 3.0, often(r, 8) ? 5 : 500);
    if (zones) {
        hv_str_addf(t,
                    ",\"links\":[{\"between\":[\"east\",\"west\"],\"bandwidth_GBps\":%g,"
                    "\"latency_us\":%d}]",
                    often(r, 5) ? 1.25 : 25, often(r, 5) ? 30000 : 300);
    }
    hv_str_addf(t, "}}");
}

static inline void random_model(struct hv_rng *r, struct hv_str *t, struct places *p)
{
    static const int layers[] = {2, 4, 6, 8, 12, 16, 24}, hidden[] = {256, 512, 1024, 2048, 4096};
    bool llama = often(r, 5);
    int h = hidden[below(r, HV_COUNT(hidden))], heads = h / (often(r, 5) ? 64 : 128);
    p->layers = layers[below(r, HV_COUNT(layers))];
    hv_str_addf(t,
                "{\"format\":\"hetviz.model/1\",\"name\":\"random\",\"kind\":\"transformer\","
                "\"layers\":%d,\"hidden\":%d,\"heads\":%d,\"kv_heads\":%d,\"ffn\":%d,"
                "\"ffn_kind\":\"%s\",\"vocab\":%d,\"max_sequence\":4096,\"tied_embeddings\":%s",
                p->layers, h, heads, llama && heads > 4 ? heads / 4 : heads,
                (llama ? 8 : 12) * h / 3, llama ? "swiglu" : "gelu", often(r, 5) ? 50257 : 32000,
                often(r, 4) ? "true" : "false");
    if (often(r, 4)) {
        hv_str_addf(t, ",\"moe\":{\"experts\":%d,\"top_k\":%d,\"ffn\":%d}", often(r, 5) ? 8 : 4,
                    1 + below(r, 2), h + 64 * below(r, 30));
    }
    hv_str_addf(t, "}");
}

static inline int random_job(struct hv_rng *r, struct hv_str *t)
{
    static const int sequences[] = {32, 128, 512, 1024, 2048, 4096};
    int batch = 1 << below(r, 8);
    hv_str_addf(t,
                "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                "\"precision\":\"%s\",\"optimizer\":\"%s\"%s%s}",
                batch, sequences[below(r, HV_COUNT(sequences))], often(r, 8) ? "fp16" : "fp32",
                often(r, 8) ? "adam" : "sgd", often(r, 3) ? ",\"grad_precision\":\"fp32\"" : "",
                often(r, 2) ? ",\"memory_reserve_GiB\":9" : "");
    return batch;
}

struct schedule {
    const char *text;
    int chunks, slices;
    bool v;
};
static const struct schedule schedules[] = {
    {"\"name\":\"1f1b\"", 1, 0, false},
    {"\"name\":\"gpipe\"", 1, 0, false},
    {"\"name\":\"dapple\",\"early\":\"pb\"", 1, 0, false},
    {"\"name\":\"interleaved\"", 2, 0, false},
    {"\"name\":\"breadth-first\"", 2, 0, false},
    {"\"name\":\"zb-h1\"", 1, 0, false},
    {"\"name\":\"zb-h2\"", 1, 0, false},
    {"\"name\":\"zb-2p\"", 1, 0, false},
    {"\"name\":\"zb-v\"", 2, 0, true},
    {"\"name\":\"v-half\"", 2, 0, true},
    {"\"name\":\"1f1b-v\"", 2, 0, true},
    {"\"name\":\"dualpipe\"", 1, 0, false},
    {"\"name\":\"dualpipev\"", 2, 0, true},
    {"\"name\":\"varuna\"", 1, 0, false},
    {"\"name\":\"seq1f1b\",\"slices\":4", 1, 4, false},
    {"\"name\":\"terapipe\",\"slices\":2", 1, 2, false},
    {"\"name\":\"autopipe\",\"slices\":1", 1, 0, false},
};

/** One replica entry being written. */
struct entry {
    const struct places *p;
    const struct schedule *s;
    int first, devices; /**< its share of the cluster */
    int count, stages, micro_batch, micro_batches;
};

/** Cuts `n` halves of blocks into `parts` runs of random lengths, each at least one half. */
static inline void random_cuts(struct hv_rng *r, int n, int parts, int *at)
{
    at[0] = 0;
    for (int i = 1; i < parts; i++) {
        int left = n - at[i - 1] - (parts - i), even = (n - at[i - 1]) / (parts - i + 1);
        int each = often(r, 6) ? even : 1 + below(r, left > 0 ? left : 1);
        at[i] = at[i - 1] + (each < 1 ? 1 : each > left ? left : each);
    }
    at[parts] = n;
}

static inline void add_layers(struct hv_str *t, const struct entry *e, const int *at, int i)
{
    int second = e->s->v ? 2 * e->stages - 1 - i : e->stages + i;
    if (e->s->chunks == 1) {
        hv_str_addf(t, "\"layers\":[%g,%g]", at[i] / 2.0, at[i + 1] / 2.0);
        return;
    }
    hv_str_addf(t, "\"layers\":[[%g,%g],[%g,%g]]", at[i] / 2.0, at[i + 1] / 2.0, at[second] / 2.0,
                at[second + 1] / 2.0);
}

static inline void add_devices(struct hv_str *t, const struct entry *e, int at, int ranks)
{
    hv_str_addf(t, "\"devices\":\"");
    for (int c = 0; c < e->count; c++) {
        int start = e->first + c * (e->devices / e->count) + at;
        for (int i = 0; i < ranks; i++) {
            hv_str_addf(t, "%s%s", c + i > 0 ? "," : "", e->p->address[start + i]);
        }
    }
    hv_str_addf(t, "\",");
}

static inline void add_tp(struct hv_rng *r, struct hv_str *t, int tp)
{
    static const char *const schemes[] = {"2d", "2.5d", "2.5d"};
    static const int depths[] = {1, 1, 4};
    int grid = below(r, (int)HV_COUNT(schemes));
    if (tp == 4 && often(r, 2)) {
        hv_str_addf(t, ",\"tp\":{\"scheme\":\"%s\",\"degree\":4,\"depth\":%d}", schemes[grid],
                    depths[grid]);
        return;
    }
    hv_str_addf(t, ",\"tp\":%d", tp);
}

static inline void add_cp(struct hv_rng *r, struct hv_str *t, int cp)
{
    static const char *const how[] = {"\"layout\":\"zigzag\"", "\"layout\":\"contiguous\"",
                                      "\"scheme\":\"ulysses\"", "\"layout\":\"striped\""};
    if (cp > 1 && often(r, 5)) {
        hv_str_addf(t, ",\"cp\":{\"degree\":%d,%s}", cp, how[below(r, 4)]);
        return;
    }
    hv_str_addf(t, ",\"cp\":%d", cp);
}

/* stages of ZeRO below `most`: ranks that take turns run no exchanges together in their passes */
static inline void add_zero(struct hv_rng *r, struct hv_str *t, int most)
{
    static const char *const reduce[] = {"each", "end", "two_hop"};
    int stage = below(r, most);
    if (stage > 1 && often(r, 5)) {
        hv_str_addf(t, ",\"zero\":{\"stage\":%d,\"reduce\":\"%s\",\"prefetch\":%d}", stage,
                    reduce[below(r, 3)], below(r, 3));
        return;
    }
    hv_str_addf(t, ",\"zero\":%d", stage);
}

static inline void add_degrees(struct hv_rng *r, struct hv_str *t, const struct entry *e, int ranks)
{
    static const char *const recompute[] = {"none", "none", "selective", "full"};
    int dp = 1, tp = 1, cp = 1, left = ranks;
    while (left % 2 == 0 && left > 1) {
        int what = below(r, 4);
        left /= 2;
        *(what == 0 ? &cp : what == 1 ? &tp : &dp) *= 2;
    }
    dp *= left;
    hv_str_addf(t, ",\"dp\":%d,\"recompute\":\"%s\"", dp, recompute[below(r, 4)]);
    add_tp(r, t, tp);
    add_cp(r, t, cp);
    bool uneven = dp > 1 && (e->micro_batch % dp != 0 || often(r, 1));
    bool turns = uneven && (often(r, 5) || e->micro_batch < dp);
    add_zero(r, t, turns ? 2 : 4);
    if (often(r, 5)) {
        hv_str_addf(t, ",\"sequence_parallel\":true");
    }
    if (uneven) {
        if (turns) {
            hv_str_addf(t, ",\"deal\":\"turns\"");
        } else {
            hv_str_addf(t, ",\"shares\":[%d", e->micro_batch - (dp - 1) * (e->micro_batch / dp));
            for (int i = 1; i < dp; i++) {
                hv_str_addf(t, ",%d", e->micro_batch / dp);
            }
            hv_str_addf(t, "]");
        }
    }
    int ep = turns ? 1 : often(r, 4) ? often(r, 5) ? dp : dp * tp * cp : 1;
    if (ep > 1) {
        hv_str_addf(t, ",\"ep\":%d", ep);
    }
    if (often(r, 2)) {
        static const char *const what[] = {"activations", "optimizer", "weights"};
        hv_str_addf(t, ",\"offload\":[{\"what\":\"%s\"}]", what[below(r, 3)]);
    }
    if (ep > 1 && ep % 2 == 0 && often(r, 2)) {
        hv_str_addf(t, ",\"moe\":{\"expert_shards\":2,\"capacity_factor\":%g}", below(r, 3) / 2.0);
    }
}

static inline void add_entry(struct hv_rng *r, struct hv_str *t, const struct entry *e)
{
    int at[64], n = e->devices / e->count, used = 0;
    random_cuts(r, 2 * e->p->layers, e->stages * e->s->chunks, at);
    hv_str_addf(t, "{\"count\":%d,\"micro_batch\":%d,\"micro_batches\":%d,\"stages\":[", e->count,
                e->micro_batch, e->micro_batches);
    for (int i = 0; i < e->stages; i++) {
        int left = n - used - (e->stages - 1 - i), even = (n - used) / (e->stages - i);
        int ranks = often(r, 8) ? even : 1 + below(r, left);
        ranks = ranks < 1 ? 1 : ranks > left ? left : ranks;
        hv_str_addf(t, "%s{", i > 0 ? "," : "");
        add_devices(t, e, used, ranks);
        add_layers(t, e, at, i);
        add_degrees(r, t, e, ranks);
        hv_str_addf(t, "}");
        used += ranks;
    }
    hv_str_addf(t, "]}");
}

/** Fills how `batch` sequences fall into micro-batches; false when they do not. */
static inline bool random_batches(struct hv_rng *r, struct entry *e, int batch)
{
    if (e->devices < 1 || batch < 1) {
        return false;
    }
    e->count = often(r, 3) && e->devices % 2 == 0 && batch % 2 == 0 ? 2 : 1;
    int each = batch / e->count;
    e->micro_batches = 1 << below(r, 7);
    while (each % e->micro_batches != 0) {
        e->micro_batches /= 2;
    }
    e->micro_batch = each / e->micro_batches;
    int most = e->devices / e->count, deepest = 2 * e->p->layers / e->s->chunks;
    most = most < deepest ? most : deepest;
    most = most > 6 ? 6 : most;
    e->stages = most > 1 && often(r, 7) ? 1 + below(r, most) : 1;
    return most > 0;
}

/** Writes a plan; false when the dice fell badly. */
static inline bool random_plan(struct hv_rng *r, struct hv_str *t, const struct places *p,
                               int batch)
{
    const struct schedule *s = &schedules[below(r, HV_COUNT(schedules))];
    struct entry e[2] = {{.p = p, .s = s}, {.p = p, .s = s}};
    int skip = often(r, 3) ? below(r, p->n) : 0, n = p->n - skip, entries = often(r, 3) ? 2 : 1;
    int cut = entries > 1 && n > 1 ? 1 + below(r, n - 1) : n, share = batch;
    if (entries > 1) {
        share = batch > 1 ? 1 + below(r, batch - 1) : 0;
    }
    e[0].first = skip;
    e[0].devices = cut;
    e[1].first = skip + cut;
    e[1].devices = n - cut;
    if (!random_batches(r, &e[0], share) ||
        (entries > 1 && !random_batches(r, &e[1], batch - share))) {
        return false;
    }
    hv_str_addf(t, "\"micro_batch\":1,\"replicas\":[");
    for (int i = 0; i < entries; i++) {
        hv_str_addf(t, "%s", i > 0 ? "," : "");
        add_entry(r, t, &e[i]);
    }
    hv_str_addf(t, "],\"schedule\":{%s},\"sync\":{\"overlap\":%s}", s->text,
                often(r, 7) ? "true" : "false");
    return true;
}

#endif
