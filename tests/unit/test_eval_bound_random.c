/** No valid plan is faster than the bound: random clusters, models, jobs and plans of many shapes.
 * With a number as argument that many plans are judged instead of the few of every test run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

enum { MOST_DEVICES = 64, PLANS_PER_WORLD = 40, WORLDS = 60 };

/** Devices of a cluster by their addresses, in order. */
struct places {
    char address[MOST_DEVICES][32];
    int n, layers;
};

static int below(struct hv_rng *r, int n)
{
    return (int)hv_rng_below(r, (uint64_t)n);
}

static bool often(struct hv_rng *r, int of_ten)
{
    return below(r, 10) < of_ten;
}

/** What joins the devices of a node, or of a rack: often something unlike the kind's own. */
static void add_inside(struct hv_rng *r, struct hv_str *t, int each, int count)
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

static void add_nodes(struct hv_rng *r, struct hv_str *t, int g, bool zones, struct places *p)
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

static void random_cluster(struct hv_rng *r, struct hv_str *t, struct places *p)
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

static void random_model(struct hv_rng *r, struct hv_str *t, struct places *p)
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

static int random_job(struct hv_rng *r, struct hv_str *t)
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
static void random_cuts(struct hv_rng *r, int n, int parts, int *at)
{
    at[0] = 0;
    for (int i = 1; i < parts; i++) {
        int left = n - at[i - 1] - (parts - i), even = (n - at[i - 1]) / (parts - i + 1);
        int each = often(r, 6) ? even : 1 + below(r, left > 0 ? left : 1);
        at[i] = at[i - 1] + (each < 1 ? 1 : each > left ? left : each);
    }
    at[parts] = n;
}

static void add_layers(struct hv_str *t, const struct entry *e, const int *at, int i)
{
    int second = e->s->v ? 2 * e->stages - 1 - i : e->stages + i;
    if (e->s->chunks == 1) {
        hv_str_addf(t, "\"layers\":[%g,%g]", at[i] / 2.0, at[i + 1] / 2.0);
        return;
    }
    hv_str_addf(t, "\"layers\":[[%g,%g],[%g,%g]]", at[i] / 2.0, at[i + 1] / 2.0, at[second] / 2.0,
                at[second + 1] / 2.0);
}

static void add_devices(struct hv_str *t, const struct entry *e, int at, int ranks)
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

static void add_tp(struct hv_rng *r, struct hv_str *t, int tp)
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

static void add_cp(struct hv_rng *r, struct hv_str *t, int cp)
{
    static const char *const how[] = {"\"layout\":\"zigzag\"", "\"layout\":\"contiguous\"",
                                      "\"scheme\":\"ulysses\"", "\"layout\":\"striped\""};
    if (cp > 1 && often(r, 5)) {
        hv_str_addf(t, ",\"cp\":{\"degree\":%d,%s}", cp, how[below(r, 4)]);
        return;
    }
    hv_str_addf(t, ",\"cp\":%d", cp);
}

static void add_zero(struct hv_rng *r, struct hv_str *t)
{
    static const char *const reduce[] = {"each", "end", "two_hop"};
    int stage = below(r, 4);
    if (stage > 1 && often(r, 5)) {
        hv_str_addf(t, ",\"zero\":{\"stage\":%d,\"reduce\":\"%s\",\"prefetch\":%d}", stage,
                    reduce[below(r, 3)], below(r, 3));
        return;
    }
    hv_str_addf(t, ",\"zero\":%d", stage);
}

static void add_degrees(struct hv_rng *r, struct hv_str *t, const struct entry *e, int ranks)
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
    add_zero(r, t);
    if (often(r, 5)) {
        hv_str_addf(t, ",\"sequence_parallel\":true");
    }
    if (dp > 1 && (e->micro_batch % dp != 0 || often(r, 1))) {
        if (often(r, 5) || e->micro_batch < dp) {
            hv_str_addf(t, ",\"deal\":\"turns\"");
        } else {
            hv_str_addf(t, ",\"shares\":[%d", e->micro_batch - (dp - 1) * (e->micro_batch / dp));
            for (int i = 1; i < dp; i++) {
                hv_str_addf(t, ",%d", e->micro_batch / dp);
            }
            hv_str_addf(t, "]");
        }
    }
    int ep = often(r, 4) ? often(r, 5) ? dp : dp * tp * cp : 1;
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

static void add_entry(struct hv_rng *r, struct hv_str *t, const struct entry *e)
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
static bool random_batches(struct hv_rng *r, struct entry *e, int batch)
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
static bool random_plan(struct hv_rng *r, struct hv_str *t, const struct places *p, int batch)
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

/** Judged plans so far: valid ones, those with the bound of even plans, and the least that one was
 * above its bound, also of the latter. */
struct tally {
    int valid, close, even, even_close;
    double least, even_least;
};

static void check(const struct hv_verdict *v, const char *world, const char *plan, struct tally *n)
{
    const struct hv_metrics *m = &v->metrics;
    if (v->findings.n > 0 || !hv_known(m->iteration_s)) {
        return;
    }
    double ratio = m->iteration_s / m->bound_s;
    n->valid++;
    n->close += ratio < 1.25;
    n->least = fmin(n->least, ratio);
    if (strstr(v->bound_why, "no backward pass starts") != NULL) {
        n->even++;
        n->even_close += ratio < 1.25;
        n->even_least = fmin(n->even_least, ratio);
    }
    if (!(m->bound_s > 0) || !(ratio >= 1 - 1e-9)) {
        fail_msg("bound %.9g above %.9g (%s):\n%s\n%s", m->bound_s, m->iteration_s, v->bound_why,
                 world, plan);
    }
}

static void say(const struct tally *n)
{
    print_message("%d valid plans, %d within 25 %% of the bound, least %.3f times; by that of even "
                  "plans %d, %d within 25 %%, least %.3f times\n",
                  n->valid, n->close, n->least, n->even, n->even_close, n->even_least);
}

static void try_world(struct hv_rng *r, int plans, struct tally *n)
{
    struct hv_str cluster = {0}, model = {0}, job = {0}, all = {0};
    struct places p;
    struct world w;
    random_cluster(r, &cluster, &p);
    random_model(r, &model, &p);
    int batch = random_job(r, &job);
    hv_str_addf(&all, "%s\n%s\n%s", hv_str_cstr(&cluster), hv_str_cstr(&model), hv_str_cstr(&job));
    open_world(&w, hv_str_cstr(&cluster), hv_str_cstr(&model), hv_str_cstr(&job));
    for (int i = 0; i < plans; i++) {
        struct hv_arena a = {0};
        struct hv_str t = {0};
        if (random_plan(r, &t, &p, batch)) {
            struct hv_verdict v = judge(&w, &a, false, hv_str_cstr(&t));
            check(&v, hv_str_cstr(&all), hv_str_cstr(&t), n);
        }
        hv_str_free(&t);
        hv_arena_free(&a);
    }
    close_world(&w);
    hv_str_free(&cluster);
    hv_str_free(&model);
    hv_str_free(&job);
    hv_str_free(&all);
}

static int wanted;

static void valid_plans_stay_above_the_bound(void **state)
{
    (void)state;
    struct hv_rng r;
    struct tally n = {.least = HUGE_VAL, .even_least = HUGE_VAL};
    hv_rng_seed(&r, 5);
    for (int i = 0; i < WORLDS || n.valid < wanted; i++) {
        try_world(&r, PLANS_PER_WORLD, &n);
    }
    say(&n);
    assert_true(n.valid > 300);
    assert_true(n.even > 200 && n.even_close >= 5);
    assert_true(n.close >= 10); /* else a bound that is too high would not show */
}

/* ---- every plan of a small world ---------------------------------------------------------------
 */

static const char small_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"small\",\"nodes\":["
    "{\"name\":\"a\",\"device\":\"A100-SXM-80GB\",\"devices\":2,\"nic\":{\"bandwidth_GBps\":25}},"
    "{\"name\":\"v\",\"device\":\"V100-SXM2-32GB\",\"devices\":2,\"nic\":{\"bandwidth_GBps\":12.5}}"
    "],"
    "\"network\":{\"bandwidth_GBps\":25,\"latency_us\":5}}";
/** The same at two sites, and little between them. */
static const char small_sites[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"small\",\"nodes\":["
    "{\"name\":\"a\",\"device\":\"A100-SXM-80GB\",\"devices\":2,\"zone\":\"east\",\"nic\":{"
    "\"bandwidth_GBps\":25}},"
    "{\"name\":\"v\",\"device\":\"A100-SXM-80GB\",\"devices\":2,\"zone\":\"west\",\"nic\":{"
    "\"bandwidth_GBps\":12.5}}],\"network\":{\"bandwidth_GBps\":25,\"latency_us\":5,\"links\":["
    "{\"between\":[\"east\",\"west\"],\"bandwidth_GBps\":0.4,\"latency_us\":3000}]}}";
static const char small_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"small\",\"kind\":\"transformer\",\"layers\":3,"
    "\"hidden\":2048,\"heads\":16,\"kv_heads\":16,\"ffn\":8192,\"ffn_kind\":\"gelu\",\"vocab\":"
    "32000,"
    "\"max_sequence\":2048}";
/** What the host does for every layer of experts in every pass makes small passes dear. */
static const char small_experts[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"experts\",\"kind\":\"transformer\",\"layers\":3,"
    "\"hidden\":1024,\"heads\":16,\"kv_heads\":16,\"ffn\":2048,\"ffn_kind\":\"swiglu\",\"vocab\":"
    "8000,\"max_sequence\":2048,\"moe\":{\"experts\":4,\"top_k\":2,\"ffn\":2048}}";
static const char small_job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":1024,\"precision\":\"fp16\","
    "\"optimizer\":\"adam\"}";

/** One of them: which devices, how they fall into stages, where the layers are cut, and the rest.
 */
struct small_plan {
    int first, n, stages_mask, cuts, degrees, batches, zero, schedule;
};

static void add_small_stage(struct hv_str *t, const struct small_plan *x, int first, int ranks)
{
    static const char *const places[] = {"a[0].0", "a[0].1", "v[0].0", "v[0].1"};
    static const char *const kinds[] = {"dp", "tp", "cp"};
    hv_str_addf(t, "\"devices\":\"");
    for (int i = 0; i < ranks; i++) {
        hv_str_addf(t, "%s%s", i > 0 ? "," : "", places[first + i]);
    }
    hv_str_addf(t, "\",\"%s\":%d,\"zero\":%d,", kinds[x->degrees], ranks, x->zero);
}

/** Writes it; false where there are fewer layers than stages, or the cuts are no other ones. */
static bool write_small_plan(struct hv_str *t, const struct small_plan *x)
{
    static const char *const schedules_of[] = {"1f1b", "gpipe", "zb-2p"};
    int stages = 1, first = x->first, stage = 0, layer = 0;
    for (int i = 0; i + 1 < x->n; i++) {
        stages += x->stages_mask >> i & 1;
    }
    int choices = stages == 2 ? 2 : 1;
    if (stages > 3 || x->cuts >= choices || (stages == 1 && x->schedule > 0)) {
        return false;
    }
    hv_str_addf(t, "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[",
                4 / x->batches, x->batches);
    for (int i = 0; i < x->n; i++) {
        if (i + 1 < x->n && !(x->stages_mask >> i & 1)) {
            continue;
        }
        int last = stage + 1 == stages ? 3 : layer + (stages == 2 ? 1 + x->cuts : 1);
        hv_str_addf(t, "%s{", stage++ > 0 ? "," : "");
        add_small_stage(t, x, first, x->first + i + 1 - first);
        hv_str_addf(t, "\"layers\":[%d,%d]}", layer, last);
        first = x->first + i + 1;
        layer = last;
    }
    hv_str_addf(t, "]}],\"schedule\":{\"name\":\"%s\"}", schedules_of[x->schedule]);
    return true;
}

static void try_small_plan(struct world *w, const struct small_plan *x, struct tally *n)
{
    struct hv_arena a = {0};
    struct hv_str t = {0};
    if (write_small_plan(&t, x)) {
        struct hv_verdict v = judge(w, &a, false, hv_str_cstr(&t));
        check(&v, "the small world", hv_str_cstr(&t), n);
    }
    hv_str_free(&t);
    hv_arena_free(&a);
}

/** All runs of devices, all ways to cut them and the layers, one kind of degree for all stages. */
static struct tally every_small_plan_stays_above(const char *cluster, const char *model)
{
    struct world w;
    struct tally n = {.least = HUGE_VAL, .even_least = HUGE_VAL};
    open_world(&w, cluster, model, small_job);
    for (int i = 0; i < 4 * 4 * 8 * 2 * 3 * 3 * 4 * 3; i++) {
        struct small_plan x = {.schedule = i % 3, .zero = i / 3 % 4, .batches = 1 << i / 12 % 3};
        x.degrees = i / 36 % 3;
        x.cuts = i / 108 % 2;
        x.stages_mask = i / 216 % 8;
        x.n = 1 + i / 1728 % 4;
        x.first = i / 6912;
        if (x.first + x.n <= 4 && x.stages_mask < 1 << (x.n - 1)) {
            try_small_plan(&w, &x, &n);
        }
    }
    close_world(&w);
    say(&n);
    assert_true(n.valid > 1000);
    assert_true(n.least < 1.25);
    return n;
}

static void every_small_plan_stays_above_the_bound(void **state)
{
    (void)state;
    struct tally plain = every_small_plan_stays_above(small_cluster, small_model);
    assert_true(plain.even > 1000 && plain.even_close > 10);
    (void)every_small_plan_stays_above(small_sites, small_model);
    struct tally experts = every_small_plan_stays_above(small_cluster, small_experts);
    assert_true(experts.even > 1000 && experts.even_close > 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_plans_stay_above_the_bound),
        cmocka_unit_test(every_small_plan_stays_above_the_bound),
    };
    wanted = argc > 1 ? atoi(argv[1]) : 0;
    return cmocka_run_group_tests_name("eval_bound_random", tests, NULL, NULL);
}
