/** Nothing beats the bound, and time adds up: random plans over unequal clusters and all kinds of
 * models and schedules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/* L40S: faster products than A100, half its memory bandwidth; so which is slower depends on the
 * part. */
static const char mixed_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"mixed\",\"nodes\":["
    "{\"name\":\"a\",\"count\":2,\"devices\":[{\"device\":\"A100-SXM-80GB\",\"count\":4},"
    "{\"device\":\"L40S-48GB\",\"count\":4}],\"nic\":{\"bandwidth_GBps\":50}},"
    "{\"name\":\"v\",\"count\":2,\"device\":\"V100-SXM2-32GB\",\"devices\":8,"
    "\"nic\":{\"bandwidth_GBps\":12.5}},"
    "{\"name\":\"h\",\"count\":2,\"device\":\"H100-SXM-80GB\",\"devices\":8,"
    "\"nic\":{\"bandwidth_GBps\":400}}],"
    "\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5}}";

static const char experts_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"experts\",\"kind\":\"transformer\",\"layers\":16,"
    "\"hidden\":1024,\"heads\":16,\"kv_heads\":4,\"ffn\":2816,\"ffn_kind\":\"swiglu\","
    "\"vocab\":32000,\"tied_embeddings\":true,\"max_sequence\":2048,"
    "\"moe\":{\"experts\":8,\"top_k\":2,\"ffn\":1408}}";
static const char dense_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"dense\",\"kind\":\"transformer\",\"layers\":16,"
    "\"hidden\":1024,\"heads\":16,\"kv_heads\":16,\"ffn\":4096,\"ffn_kind\":\"gelu\","
    "\"vocab\":50304,\"max_sequence\":2048}";
static const char image_model[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"images\",\"kind\":\"transformer\",\"layers\":16,"
    "\"hidden\":768,\"heads\":12,\"kv_heads\":12,\"ffn\":3072,\"ffn_kind\":\"gelu\","
    "\"vocab\":1000,\"causal\":false,\"patch_tokens\":4096}";

struct shape {
    const char *schedule, *more; /**< name and options */
    int chunks, slices;
};
static const struct shape shapes[] = {
    {"1f1b", "", 1, 0},
    {"gpipe", "", 1, 0},
    {"gpipe", ",\"recompute\":\"full\"", 1, 0},
    {"gpipe", ",\"recompute\":\"except-last\"", 1, 0},
    {"dapple", ",\"early\":\"pb\"", 1, 0},
    {"interleaved", "", 2, 0},
    {"breadth-first", "", 2, 0},
    {"group-interleaved", "", 2, 0},
    {"zb-h1", "", 1, 0},
    {"zb-2p", "", 1, 0},
    {"zb-v", "", 2, 0},
    {"1f1b-v", "", 2, 0},
    {"v-half", "", 2, 0},
    {"v-min", "", 2, 0},
    {"dualpipe", "", 1, 0},
    {"dualpipev", "", 2, 0},
    {"varuna", "", 1, 0},
    {"seq1f1b", "", 1, 4},
    {"terapipe", "", 1, 4},
    {"pipedream", "", 1, 0},
    {"pipedream-2bw", "", 1, 0},
    {"hetpipe", "", 1, 0},
    {"hetpipe", ",\"in_flight\":1", 1, 0},
};

static void add_ranges(struct hv_str *t, const struct shape *x, int i, int stages)
{
    int each = 16 / (stages * x->chunks), last = 16 - each * (i + 1);
    bool v = x->chunks == 2 && strcmp(x->schedule, "interleaved") != 0 &&
             strcmp(x->schedule, "breadth-first") != 0 &&
             strcmp(x->schedule, "group-interleaved") != 0;
    if (x->chunks == 1) {
        hv_str_addf(t, "\"layers\":[%d,%d]", each * i, each * (i + 1));
        return;
    }
    int second = v ? last : 8 + each * i;
    hv_str_addf(t, "\"layers\":[[%d,%d],[%d,%d]]", each * i, each * (i + 1), second, second + each);
}

/** A random stage on `width` devices of a node, its share of layers, its degrees. */
static void add_stage(struct hv_str *t, struct hv_rng *r, const struct shape *x, const int at[3])
{
    static const char *const recompute[] = {"none", "selective", "full"};
    static const char *const nodes[] = {"h[0]", "a[0]", "v[0]", "a[1]", "h[1]", "v[1]"};
    int i = at[0], stages = at[1], turn = at[2], dp = 1 << hv_rng_below(r, 3);
    int tp = 1 << hv_rng_below(r, dp == 1 ? 4 : dp == 2 ? 3 : 2);
    int cp = tp * dp < 8 ? 1 << hv_rng_below(r, 2) : 1;
    hv_str_addf(t, "%s{\"devices\":\"%s.%d-%d\",\"cp\":%d,", i > 0 ? "," : "",
                nodes[(i + turn) % 6], 8 - tp * cp * dp, 7, cp);
    add_ranges(t, x, i, stages);
    hv_str_addf(t, ",\"tp\":%d,\"dp\":%d,\"zero\":%d,\"recompute\":\"%s\"", tp, dp,
                (int)hv_rng_below(r, 4), recompute[hv_rng_below(r, 3)]);
    if (hv_rng_below(r, 2)) {
        hv_str_addf(t, ",\"sequence_parallel\":true");
    }
    if (dp == 2 && hv_rng_below(r, 2)) {
        hv_str_addf(t, ",\"shares\":[5,3]");
    } else if (hv_rng_below(r, 2)) {
        hv_str_addf(t, ",\"ep\":%d", dp);
    }
    hv_str_addf(t, "}");
}

static void random_plan(struct hv_rng *r, struct hv_str *t)
{
    static const char *const sync[] = {"allreduce",      "ps",     "wsp",
                                       "partial_reduce", "gossip", "none"};
    const struct shape *x = &shapes[hv_rng_below(r, HV_COUNT(shapes))];
    int stages = 1 << hv_rng_below(r, 3), turn = (int)hv_rng_below(r, 6);
    hv_str_addf(t, "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[");
    for (int i = 0; i < stages; i++) {
        add_stage(t, r, x, (const int[]){i, stages, turn});
    }
    hv_str_addf(t, "]}],\"schedule\":{\"name\":\"%s\"%s", x->schedule, x->more);
    if (x->slices) {
        hv_str_addf(t, ",\"slices\":%d", x->slices);
    }
    hv_str_addf(t, "},\"sync\":{\"kind\":\"%s\",\"overlap\":%s}", sync[hv_rng_below(r, 6)],
                hv_rng_below(r, 2) ? "true" : "false");
}

static bool counts(const struct hv_verdict *v)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        if (v->findings.items[i].code != HV_V_MEMORY) {
            return false;
        }
    }
    return hv_known(v->metrics.iteration_s);
}

static void check(const struct hv_verdict *v, const char *text)
{
    const struct hv_metrics *m = &v->metrics;
    double sum = 0;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        sum += m->breakdown_s[i];
        if (!(m->breakdown_s[i] >= 0)) {
            fail_msg("%s is %g: %s", hv_breakdown_name((enum hv_breakdown)i), m->breakdown_s[i],
                     text);
        }
    }
    if (!(fabs(sum - m->iteration_s) <= 1e-9 * m->iteration_s)) {
        fail_msg("causes add up to %.12g of %.12g: %s", sum, m->iteration_s, text);
    }
    if (v->findings.n > 0) {
        return; /* the bound counts memory too */
    }
    if (!(m->bound_s > 0) || !(m->bound_s <= m->iteration_s * (1 + 1e-9))) {
        fail_msg("bound %g, plan %g: %s", m->bound_s, m->iteration_s, text);
    }
}

static void try_world(const char *model, const char *job, int at_least)
{
    struct world w;
    struct hv_rng r;
    int timed = 0;
    open_world(&w, mixed_cluster, model, job);
    hv_rng_seed(&r, 11);
    for (int i = 0; i < 600; i++) {
        struct hv_arena a = {0};
        struct hv_str t = {0};
        random_plan(&r, &t);
        struct hv_verdict v = judge(&w, &a, false, hv_str_cstr(&t));
        if (counts(&v)) {
            timed++;
            check(&v, hv_str_cstr(&t));
        }
        hv_str_free(&t);
        hv_arena_free(&a);
    }
    close_world(&w);
    if (timed < at_least) {
        fail_msg("only %d plans could be timed", timed);
    }
}

#define JOB(precision)                                                                             \
    "{\"format\":\"hetviz.job/"                                                                    \
    "1\",\"global_batch\":64,\"sequence\":2048,\"precision\":\"" precision                         \
    "\",\"optimizer\":\"adam\"}"

static void dense_plans_stay_above_the_bound(void **state)
{
    (void)state;
    try_world(dense_model, JOB("fp16"), 300);
}

static void plans_with_experts_stay_above_the_bound(void **state)
{
    (void)state;
    try_world(experts_model, JOB("fp16"), 200);
}

static void plans_for_images_stay_above_the_bound(void **state)
{
    (void)state;
    try_world(image_model, JOB("fp16"), 200);
}

static void fp8_plans_stay_above_the_bound(void **state)
{
    (void)state;
    try_world(dense_model, JOB("fp8"), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_plans_stay_above_the_bound),
        cmocka_unit_test(plans_with_experts_stay_above_the_bound),
        cmocka_unit_test(plans_for_images_stay_above_the_bound),
        cmocka_unit_test(fp8_plans_stay_above_the_bound),
    };
    return cmocka_run_group_tests_name("eval_bound", tests, NULL, NULL);
}
