/* The planner: never worse than a search through everything small, the same twice, and within every
 * limit it is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/plan/write.h"
#include "solver/plan/grid.h"
#include "tests/planner_fixture.h"

#include <stdlib.h>

static const char four_alike[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"four\",\"nodes\":[{\"name\":\"a\",\"count\":1,"
    "\"device\":\"A100-SXM-80GB\",\"devices\":4}]}";
static const char two_unlike[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"two\",\"nodes\":[{\"name\":\"a\",\"count\":1,"
    "\"device\":\"A100-SXM-80GB\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":12.5}},{\"name\":\"v\","
    "\"count\":1,\"device\":\"V100-SXM2-32GB\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":12.5}}],"
    "\"network\":{\"bandwidth_GBps\":12.5,\"latency_us\":10}}";

static const char *const orders[] = {"1f1b", "zb-h1", "zb-h2", "zb-2p"};
static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};

/* Least time over all layers of a grid, cut in any way. */
static double best_cut(struct world *w, struct hv_grid *g, int *counts, int at, int left)
{
    double best = HUGE_VAL;
    if (at == g->pp - 1) {
        struct hv_plan *p = NULL;
        counts[at] = left;
        g->counts = counts;
        if (hv_plan_grid(w->in.cluster.cluster, HV_FP16, 6, g, &p, NULL) == HV_OK) {
            best = time_of(w, p);
        }
        hv_plan_unref(p);
        return best;
    }
    for (int n = 0; n <= left; n++) {
        counts[at] = n;
        best = fmin(best, best_cut(w, g, counts, at + 1, left - n));
    }
    return best;
}

static double best_grid(struct world *w, int tp, int pp, int dp)
{
    double best = HUGE_VAL;
    for (int mb = 1; mb * dp <= 8; mb *= 2) {
        for (size_t o = 0; o < HV_COUNT(orders); o++) {
            for (size_t r = 0; r < HV_COUNT(recomputes); r++) {
                for (int zero = 0; zero <= 3; zero++) {
                    int counts[4] = {0};
                    struct hv_grid g = {.tp = tp,
                                        .pp = pp,
                                        .dp = dp,
                                        .micro_batch = mb,
                                        .global_batch = 8,
                                        .zero = dp > 1 ? zero : 0,
                                        .recompute = recomputes[r],
                                        .sequence_parallel = true,
                                        .schedule = orders[o]};
                    best = fmin(best, best_cut(w, &g, counts, 0, 6));
                }
            }
        }
    }
    return best;
}

static void beats_every_grid_of_four_devices(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, four_alike, small_model, small_job);
    double best = HUGE_VAL;
    for (int tp = 1; tp <= 4; tp *= 2) {
        for (int pp = 1; tp * pp <= 4; pp *= 2) {
            for (int dp = 1; tp * pp * dp <= 4; dp *= 2) {
                best = fmin(best, best_grid(&w, tp, pp, dp));
            }
        }
    }
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(best < HUGE_VAL);
    assert_true(r.iteration_s <= best * (1 + 1e-9));
    assert_true(r.bound_s <= r.iteration_s);
    assert_true(r.iteration_s == time_of(&w, r.plan));
    hv_plan_unref(r.plan);
    close_world(&w);
}

static double time_of_text(struct world *w, const char *body)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(w, &a, false, body);
    double t = v.findings.n == 0 ? v.metrics.iteration_s : HUGE_VAL;
    hv_arena_free(&a);
    return t;
}

/* Both orders of a pipeline over the two devices, every cut, micro-batch and schedule. */
static double best_pipeline(struct world *w)
{
    double best = HUGE_VAL;
    char body[512];
    for (int cut = 0; cut <= 6; cut++) {
        for (int mb = 1; mb <= 8; mb *= 2) {
            for (size_t o = 0; o < 2 * HV_COUNT(orders); o++) {
                const char *first = o % 2 ? "v" : "a", *last = o % 2 ? "a" : "v";
                (void)snprintf(body, sizeof body,
                               "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":["
                               "{\"devices\":\"%s\",\"layers\":[0,%d],\"embedding\":true},"
                               "{\"devices\":\"%s\",\"layers\":[%d,6],\"head\":true}]}],"
                               "\"schedule\":{\"name\":\"%s\"}",
                               mb, 8 / mb, first, cut, last, cut, orders[o / 2]);
                best = fmin(best, time_of_text(w, body));
            }
        }
    }
    return best;
}

/* Both devices alone, and as two replicas with every share of the batch. */
static double best_replicas(struct world *w)
{
    double best = HUGE_VAL;
    char body[512];
    for (int share = 0; share <= 8; share++) {
        for (int mb = 1; mb <= 8; mb *= 2) {
            if (share % mb != 0) {
                continue;
            }
            char a[160] = "", v[160] = "";
            if (share > 0) {
                (void)snprintf(a, sizeof a,
                               "{\"micro_batch\":%d,\"micro_batches\":%d,\"stages\":[{\"devices\":"
                               "\"a\",\"layers\":[0,6]}]}",
                               mb, share / mb);
            }
            for (int nb = 1; nb <= 8; nb *= 2) {
                if ((8 - share) % nb != 0) {
                    continue;
                }
                v[0] = '\0';
                if (share < 8) {
                    (void)snprintf(v, sizeof v,
                                   "{\"micro_batch\":%d,\"micro_batches\":%d,\"stages\":[{"
                                   "\"devices\":\"v\",\"layers\":[0,6]}]}",
                                   nb, (8 - share) / nb);
                }
                (void)snprintf(body, sizeof body, "\"micro_batch\":1,\"replicas\":[%s%s%s]", a,
                               *a != '\0' && *v != '\0' ? "," : "", v);
                best = fmin(best, time_of_text(w, body));
            }
        }
    }
    return best;
}

static void beats_every_plan_of_two_kinds(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, two_unlike, small_model, small_job);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(r.iteration_s <= best_pipeline(&w) * (1 + 1e-9));
    assert_true(r.iteration_s <= best_replicas(&w) * (1 + 1e-9));
    hv_plan_unref(r.plan);
    close_world(&w);
}

static const char eight_of_two_kinds[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"eight\",\"nodes\":[{\"name\":\"a\",\"count\":1,"
    "\"device\":\"A100-SXM-80GB\",\"devices\":4,\"nic\":{\"bandwidth_GBps\":25}},{\"name\":\"v\","
    "\"count\":1,\"device\":\"V100-SXM2-32GB\",\"devices\":4,\"nic\":{\"bandwidth_GBps\":25}}],"
    "\"network\":{\"bandwidth_GBps\":25,\"latency_us\":10}}";
static const char twelve_layers[] =
    "{\"format\":\"hetviz.model/1\",\"name\":\"llama-s\",\"kind\":\"transformer\",\"layers\":12,"
    "\"hidden\":2048,\"heads\":16,\"kv_heads\":16,\"ffn\":5504,\"ffn_kind\":\"swiglu\","
    "\"norm\":\"rmsnorm\",\"position\":\"rope\",\"vocab\":32000,\"max_sequence\":2048}";

/* What all eight devices can be: a stage per node in either order, every degree, cut, micro-batch
 * and schedule. */
static double best_two_stages(struct world *w)
{
    double best = HUGE_VAL;
    char body[512];
    for (int i = 0; i < 2 * 3 * 3 * 4; i++) {
        const char *first = i % 2 ? "v" : "a", *last = i % 2 ? "a" : "v";
        int tp = 1 << i / 2 % 3, other_tp = 1 << i / 6 % 3;
        const char *order = orders[i / 18];
        for (int mb = 1; mb <= 8; mb *= 2) {
            for (int cut = 0; cut <= 12 && mb % (4 / tp) == 0 && mb % (4 / other_tp) == 0; cut++) {
                (void)snprintf(body, sizeof body,
                               "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":["
                               "{\"devices\":\"%s.*\",\"layers\":[0,%d],\"embedding\":true,"
                               "\"tp\":%d,\"dp\":%d,\"sequence_parallel\":%s},"
                               "{\"devices\":\"%s.*\",\"layers\":[%d,12],\"head\":true,"
                               "\"tp\":%d,\"dp\":%d,\"sequence_parallel\":%s}]}],"
                               "\"schedule\":{\"name\":\"%s\"}",
                               mb, 8 / mb, first, cut, tp, 4 / tp, tp > 1 ? "true" : "false", last,
                               cut, other_tp, 4 / other_tp, other_tp > 1 ? "true" : "false", order);
                best = fmin(best, time_of_text(w, body));
            }
        }
    }
    return best;
}

static void beats_every_pair_of_stages_on_eight_devices(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, eight_of_two_kinds, twelve_layers, small_job);
    double best = best_two_stages(&w);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(best < HUGE_VAL);
    assert_true(r.iteration_s <= best * (1 + 1e-9));
    assert_true(r.bound_s <= r.iteration_s);
    hv_plan_unref(r.plan);
    close_world(&w);
}

static void finds_the_same_twice(void **state)
{
    struct world *w = *state;
    char *text[2];
    for (int i = 0; i < 2; i++) {
        struct hv_cost *k = hv_cost_new(w->in.cluster.cluster, w->in.model.model, &w->in.job.job);
        struct hv_planner_result r;
        assert_int_equal(hv_planner_run(k, &(struct hv_planner_options){0}, &r, NULL), HV_OK);
        json_t *tree = hv_plan_to_json(r.plan, NULL, NULL, NULL);
        text[i] = json_dumps(tree, 0);
        json_decref(tree);
        hv_plan_unref(r.plan);
        hv_cost_free(k);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

/* Nodes of one group, and the same nodes as several groups. */
#define NODES_HEAD "{\"format\":\"hetviz.cluster/1\",\"nodes\":["
#define A_NODES(name, count)                                                                       \
    "{\"name\":\"" name "\",\"count\":" count ",\"device\":\"A100-SXM-80GB\",\"devices\":2,"       \
    "\"zone\":\"x\",\"nic\":{\"bandwidth_GBps\":12.5}}"
#define V_NODES(name, count)                                                                       \
    "{\"name\":\"" name "\",\"count\":" count ",\"device\":\"V100-SXM2-32GB\",\"devices\":2,"      \
    "\"zone\":\"y\",\"nic\":{\"bandwidth_GBps\":6}}"
#define ZONE_LINK                                                                                  \
    "],\"network\":{\"bandwidth_GBps\":12.5,\"latency_us\":10,\"links\":"                          \
    "[{\"between\":[\"x\",\"y\"],\"bandwidth_GBps\":3,\"latency_us\":500}]}}"
#define NODE_MATRIX                                                                                \
    "],\"network\":{\"matrix_bandwidth_GBps\":[[0,9,4,4,4],[9,0,4,4,4],"                           \
    "[5,5,0,6,6],[5,5,6,0,6],[5,5,6,6,0]]}}"
/* Two kinds of device in a node, and roots that devices of a node share. */
#define MIXED_NODES(name, count)                                                                   \
    "{\"name\":\"" name "\",\"count\":" count ",\"device\":\"A100-SXM-80GB\",\"devices\":"         \
    "[{\"count\":2},{\"device\":\"V100-SXM2-32GB\",\"count\":2}]}"
#define ROOT_NODES(name, count)                                                                    \
    "{\"name\":\"" name "\",\"count\":" count ",\"device\":\"V100-PCIe-32GB\",\"devices\":4,"      \
    "\"intra\":{\"kind\":\"pcie\",\"bandwidth_GBps\":12,\"groups\":[{\"devices\":\"0-1\","         \
    "\"kind\":\"pcie-root\",\"bandwidth_GBps\":14,\"shared\":true}]}}"
#define ONE_NODE(name, device)                                                                     \
    "{\"name\":\"" name "\",\"count\":1,\"device\":\"" device "\",\"devices\":1},"
/* Six kinds stronger than one node of the seventh, of which there are more. */
#define SIX_KINDS                                                                                  \
    ONE_NODE("p", "A100-SXM-80GB")                                                                 \
    ONE_NODE("q", "A100-SXM-40GB")                                                                 \
    ONE_NODE("r", "H100-SXM-80GB")                                                                 \
    ONE_NODE("s", "V100-SXM2-32GB") ONE_NODE("t", "V100-SXM2-16GB") ONE_NODE("u", "A10G-24GB")
#define T_NODES(name, count)                                                                       \
    "{\"name\":\"" name "\",\"count\":" count ",\"device\":\"T4-16GB\",\"devices\":2}"

static const char *const written_twice[][2] = {
    {NODES_HEAD A_NODES("a", "2") "," V_NODES("v", "3") ZONE_LINK,
     NODES_HEAD A_NODES("a", "1") "," A_NODES("b", "1") "," V_NODES("v", "2") "," V_NODES("w", "1")
         ZONE_LINK},
    {NODES_HEAD A_NODES("a", "2") "," V_NODES("v", "3") NODE_MATRIX,
     NODES_HEAD A_NODES("a", "1") "," A_NODES("b", "1") "," V_NODES("v", "1") "," V_NODES("w", "2")
         NODE_MATRIX},
    {NODES_HEAD MIXED_NODES("m", "2") "," ROOT_NODES("r", "2") "]}",
     NODES_HEAD MIXED_NODES("m", "1") "," MIXED_NODES("n", "1") "," ROOT_NODES(
         "r", "1") "," ROOT_NODES("s", "1") "]}"},
    {NODES_HEAD SIX_KINDS T_NODES("v", "3") "]}",
     NODES_HEAD SIX_KINDS T_NODES("v", "1") "," T_NODES("w", "1") "," T_NODES("x", "1") "]}"},
};

static void takes_equal_nodes_of_several_groups_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(written_twice); i++) {
        struct hv_planner_result r[2];
        for (size_t k = 0; k < 2; k++) {
            struct world w;
            open_world(&w, written_twice[i][k], small_model, small_job);
            r[k] = search(&w, &(struct hv_planner_options){0});
            hv_plan_unref(r[k].plan);
            close_world(&w);
        }
        if (r[0].iteration_s != r[1].iteration_s || r[0].evaluations != r[1].evaluations) {
            fail_msg("cluster %zu: %.17g s in %lld evaluations as one group, %.17g s in %lld as "
                     "several",
                     i, r[0].iteration_s, (long long)r[0].evaluations, r[1].iteration_s,
                     (long long)r[1].evaluations);
        }
    }
}

/* Twelve equal pipelines and a batch that twelve does not divide: no worse than any plan of equal
 * pipelines on fewer devices, and all devices at work. */
static void deals_out_an_odd_batch(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"o\",\"nodes\":[{\"name\":\"a\",\"count\":3,"
        "\"device\":\"A100-SXM-80GB\",\"devices\":4,\"nic\":{\"bandwidth_GBps\":100}}],\"network\":"
        "{"
        "\"bandwidth_GBps\":100,\"latency_us\":5}}";
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":128,\"sequence\":2048,\"precision\":"
        "\"fp16\",\"optimizer\":\"adam\"}";
    struct world w;
    open_world(&w, cluster, small_model, job);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    double eight_s = time_of_text(&w, "\"micro_batch\":1,\"replicas\":[{\"count\":8,"
                                      "\"micro_batches\":16,\"stages\":[{\"devices\":\"a[0-1].*\","
                                      "\"layers\":[0,6],\"zero\":1}]}]");
    int64_t sequences = 0;
    size_t devices = 0;
    for (size_t i = 0; i < r.plan->n_replicas; i++) {
        const struct hv_replica *x = &r.plan->replicas[i];
        sequences += x->count * hv_replica_sequences(r.plan, x);
        for (size_t s = 0; s < x->n_stages; s++) {
            devices += x->stages[s].n_devices;
        }
    }
    assert_int_equal(sequences, 128);
    assert_int_equal(devices, 12);
    assert_true(r.iteration_s < 0.8 * eight_s);
    hv_plan_unref(r.plan);
    close_world(&w);
}

/** Over slow links the answer is in an order that no other of as many chunks beats, whatever memory
 * each is given. */
static void beats_every_other_order_of_its_plan(void **state)
{
    (void)state;
    static const char cluster[] = "{\"format\":\"hetviz.cluster/1\",\"name\":\"s\",\"nodes\":["
                                  "{\"name\":\"a\",\"count\":1,\"device\":\"RTX4090-24GB\","
                                  "\"devices\":2,\"nic\":{\"bandwidth_GBps\":1.25}},"
                                  "{\"name\":\"b\",\"count\":1,\"device\":\"V100-SXM2-32GB\","
                                  "\"devices\":2,\"nic\":{\"bandwidth_GBps\":1.25}},"
                                  "{\"name\":\"c\",\"count\":1,\"device\":\"A10G-24GB\","
                                  "\"devices\":2,\"nic\":{\"bandwidth_GBps\":1.25}}],"
                                  "\"network\":{\"bandwidth_GBps\":12.5,\"latency_us\":5000}}";
    static const char *const whole[] = {"1f1b", "zb-h1", "zb-h2", "zb-2p", "zb-list"};
    static const char *const folded[] = {"zb-v", "zb-list"};
    struct world w;
    open_world(&w, cluster, model_text, job_text);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    struct hv_replica *x = &r.plan->replicas[0];
    struct hv_option memory = {"memory", NULL};
    assert_true(x->n_stages > 1);
    bool turns =
        x->stages[0].n_ranges == 2 && x->stages[0].ranges[1].from2 > x->stages[1].ranges[1].from2;
    bool plain = x->stages[0].n_ranges == 1;
    for (size_t i = 0; i < (plain ? HV_COUNT(whole) : turns ? HV_COUNT(folded) : 0); i++) {
        r.plan->schedule.name = plain ? whole[i] : folded[i];
        for (size_t depths = 1; depths <= (plain ? 3 : 2); depths++) {
            bool list = strcmp(r.plan->schedule.name, "zb-list") == 0;
            char number[16];
            (void)snprintf(number, sizeof number, "%zu", depths * x->n_stages);
            memory.value = number;
            r.plan->schedule.options = &memory;
            r.plan->schedule.n_options = list && depths > 1;
            assert_true(time_of(&w, r.plan) >= r.iteration_s * (1 - 1e-9));
        }
    }
    r.plan->schedule.n_options = 0;
    hv_plan_unref(r.plan);
    close_world(&w);
}

static const char one_t4[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"t\",\"nodes\":[{\"name\":\"t\",\"count\":1,"
    "\"device\":\"T4-16GB\",\"devices\":1}]}";

/** States wait in host memory where the model has no room without: 37 GiB on a device of 16. */
static void leaves_to_the_host_what_does_not_fit(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, one_t4, model_text, job_text);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_true(time_of(&w, r.plan) < HUGE_VAL);
    const struct hv_stage *s = &r.plan->replicas[0].stages[0];
    bool optimizer = false;
    for (size_t i = 0; i < s->n_offload; i++) {
        optimizer =
            optimizer || (s->offload[i].what == HV_OFFLOAD_OPTIMIZER && s->offload[i].to_host);
    }
    assert_true(optimizer);
    hv_plan_unref(r.plan);
    close_world(&w);
}

static void says_when_nothing_fits(void **state)
{
    (void)state;
    static const char model[] =
        "{\"format\":\"hetviz.model/1\",\"name\":\"b\",\"kind\":\"transformer\",\"layers\":48,"
        "\"hidden\":8192,\"heads\":64,\"kv_heads\":64,\"ffn\":32768,\"ffn_kind\":\"gelu\","
        "\"vocab\":51200,\"max_sequence\":2048}";
    struct world w;
    struct hv_planner_result r;
    struct hv_err err = {0};
    open_world(&w, one_t4, model, job_text);
    assert_int_equal(hv_planner_run(w.cost, &(struct hv_planner_options){0}, &r, &err), HV_ENO);
    assert_null(r.plan);
    assert_non_null(strstr(err.text, "no plan that fits"));
    close_world(&w);
}

struct listener {
    int asked, until, told;
    double last_s;
    struct world *w;
};

static bool stop_after(void *ctx)
{
    struct listener *l = ctx;
    return ++l->asked > l->until;
}

static void hear(void *ctx, const struct hv_plan *p)
{
    struct listener *l = ctx;
    double t = time_of(l->w, p);
    assert_true(l->told == 0 || t < l->last_s);
    l->last_s = t;
    l->told++;
}

static void ends_when_told_with_the_best_so_far(void **state)
{
    struct world *w = *state;
    struct listener l = {.until = 400, .w = w};
    struct hv_planner_options o = {.stop = stop_after, .incumbent = hear, .ctx = &l};
    struct hv_planner_result r = search(w, &o);
    assert_true(r.stopped);
    assert_true(r.evaluations < 400);
    assert_true(l.told > 0);
    assert_true(r.iteration_s <= l.last_s);
    hv_plan_unref(r.plan);
    struct hv_planner_options few = {.budget = 10};
    r = search(w, &few);
    assert_true(r.stopped);
    assert_true(r.evaluations <= 10);
    hv_plan_unref(r.plan);
}

/** The first plan is there soon also where no plan keeps to the limits. */
static void is_soon_with_a_plan_that_misses_the_limits(void **state)
{
    (void)state;
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":2048,\"precision\":\"fp16\","
        "\"objective\":{\"deadline_s\":0.0001}}";
    struct world w;
    open_world(&w, two_unlike, small_model, job);
    struct listener l = {.until = 200};
    struct hv_planner_options o = {.stop = stop_after, .ctx = &l};
    struct hv_planner_result r = search(&w, &o);
    assert_true(r.stopped && r.evaluations > 0 && r.plan != NULL);
    hv_plan_unref(r.plan);
    close_world(&w);
}

/* Searches from a plan given as text: what was found, and how long the start itself takes. */
static enum hv_status search_from(struct world *w, const char *body, struct hv_planner_result *r,
                                  double *start_s, struct hv_err *err)
{
    char text[4096];
    struct hv_plan_doc doc;
    (void)snprintf(text, sizeof text, "{\"format\":\"hetviz.plan/1\",%s}", body);
    if (hv_plan_doc_build(&doc, parse(text, "p"), w->in.cluster.cluster, err) != HV_OK) {
        fail_msg("plan: %s", err->text);
    }
    *start_s = time_of(w, doc.plan);
    enum hv_status s =
        hv_planner_run(w->cost, &(struct hv_planner_options){.start = doc.plan}, r, err);
    hv_plan_doc_free(&doc);
    return s;
}

/** Ten devices and 13 sequences: three pipelines of two stages leave four devices, which are one
 * that is twice as wide and twice as fast; equal pipelines leave some of them idle. */
static void widens_some_pipelines_of_a_team(void **state)
{
    (void)state;
    static const char ten[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"ten\",\"nodes\":[{\"name\":\"a\",\"device\":"
        "\"H20-96GB\",\"devices\":10}]}";
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":13,\"sequence\":2048,\"precision\":\"fp16\","
        "\"optimizer\":\"adam\"}";
    static const char unequal[] =
        "\"micro_batch\":1,\"replicas\":[{\"count\":3,\"micro_batches\":3,\"stages\":[{\"devices\":"
        "\"a[0].0-2\",\"layers\":[0,4]},{\"devices\":\"a[0].3-5\",\"layers\":[4,6]}]},"
        "{\"micro_batch\":2,\"micro_batches\":2,\"stages\":[{\"devices\":\"a[0].6-9\",\"layers\":["
        "0,6],"
        "\"tp\":4,\"sequence_parallel\":true}]}],\"schedule\":{\"name\":\"zb-h2\"}";
    struct world w;
    struct hv_err err = {0};
    struct hv_planner_result again;
    double by_hand_s;
    open_world(&w, ten, small_model, job);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_int_equal(search_from(&w, unequal, &again, &by_hand_s, &err), HV_OK);
    assert_true(r.iteration_s <= by_hand_s * (1 + 1e-9));
    hv_plan_unref(again.plan);
    hv_plan_unref(r.plan);
    close_world(&w);
}

/** A prime batch has no even shares: experts still go over all ranks of a node, some of which have
 * a sequence more. */
static void spreads_experts_though_nothing_divides_the_batch(void **state)
{
    (void)state;
    static const char nodes[] =
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"n\",\"nodes\":[{\"name\":\"a\",\"count\":2,"
        "\"device\":\"H100-SXM-80GB\",\"devices\":8}]}";
    static const char experts[] =
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":6,"
        "\"hidden\":2048,\"heads\":16,\"vocab\":51200,\"max_sequence\":2048,"
        "\"moe\":{\"experts\":64,\"top_k\":2,\"ffn\":1024}}";
    static const char job[] =
        "{\"format\":\"hetviz.job/1\",\"global_batch\":17,\"sequence\":512,\"precision\":\"fp16\"}";
    static const char by_hand[] =
        "\"micro_batch\":17,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":\"a[0].*\","
        "\"layers\":[0,6],\"dp\":8,\"ep\":8,\"shares\":[3,2,2,2,2,2,2,2],\"zero\":1}]}]";
    struct world w;
    struct hv_err err = {0};
    struct hv_planner_result again;
    double by_hand_s;
    open_world(&w, nodes, experts, job);
    struct hv_planner_result r = search(&w, &(struct hv_planner_options){0});
    assert_int_equal(search_from(&w, by_hand, &again, &by_hand_s, &err), HV_OK);
    assert_true(by_hand_s < HUGE_VAL && r.iteration_s <= by_hand_s * (1 + 1e-9));
    hv_plan_unref(again.plan);
    hv_plan_unref(r.plan);
    close_world(&w);
}

static void improves_a_plan_that_is_given(void **state)
{
    static const char *const starts[] = {
        four_stages,
        /* two copies, recompute, an order that the search does not know */
        "\"micro_batch\":2,\"replicas\":[{\"count\":2,\"micro_batches\":8,\"stages\":[{\"devices\":"
        "\"a[0].0-3\",\"layers\":[0,12],\"dp\":2,\"recompute\":\"full\"},{\"devices\":\"a[0].4-7\","
        "\"layers\":[12,24],\"tp\":2,\"recompute\":\"full\"}]},{\"micro_batches\":16,\"stages\":[{"
        "\"devices\":\"v[0].*\","
        "\"layers\":[0,24],\"tp\":4,\"dp\":2,\"zero\":1,\"recompute\":\"full\"}]}],\"schedule\":{"
        "\"name\":\"gpipe\"}",
        /* unequal devices in a stage, with shares of their own */
        "\"micro_batch\":8,\"replicas\":[{\"micro_batches\":8,\"stages\":[{\"devices\":["
        "\"a[0].0-1\",\"v[0].0-1\"],\"layers\":[0,24],\"dp\":4,\"shares\":[3,2,2,1],\"zero\":3,"
        "\"recompute\":\"full\"}]}]"};
    struct world *w = *state;
    for (size_t i = 0; i < HV_COUNT(starts); i++) {
        struct hv_planner_result r;
        struct hv_err err = {0};
        double start_s;
        assert_int_equal(search_from(w, starts[i], &r, &start_s, &err), HV_OK);
        assert_true(start_s < HUGE_VAL);
        assert_true(r.iteration_s < start_s);
        assert_true(r.iteration_s == time_of(w, r.plan));
        hv_plan_unref(r.plan);
    }
}

static void says_why_it_cannot_start_from_a_plan(void **state)
{
    static const struct {
        const char *plan, *why;
    } refused[] = {
        {"\"micro_batch\":2,\"replicas\":[{\"micro_batches\":32,\"stages\":[{\"devices\":["
         "\"a[0].0\",\"v[0].0\"],\"layers\":[0,24],\"tp\":2}]}]",
         "several kinds"},
        {"\"micro_batch\":1,\"replicas\":[{\"micro_batches\":[{\"sequences\":60},{"
         "\"sequences\":4}],\"stages\":[{\"devices\":\"a[0].*\",\"layers\":[0,24],"
         "\"tp\":8}]}]",
         "differ in size"}};
    for (size_t i = 0; i < HV_COUNT(refused); i++) {
        struct hv_planner_result r;
        struct hv_err err = {0};
        double start_s;
        assert_int_equal(search_from(*state, refused[i].plan, &r, &start_s, &err), HV_ENO);
        assert_null(r.plan);
        assert_non_null(strstr(err.text, refused[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(improves_a_plan_that_is_given, setup, teardown),
        cmocka_unit_test_setup_teardown(says_why_it_cannot_start_from_a_plan, setup, teardown),
        cmocka_unit_test(beats_every_grid_of_four_devices),
        cmocka_unit_test(beats_every_plan_of_two_kinds),
        cmocka_unit_test(beats_every_pair_of_stages_on_eight_devices),
        cmocka_unit_test_setup_teardown(finds_the_same_twice, setup, teardown),
        cmocka_unit_test(takes_equal_nodes_of_several_groups_as_one),
        cmocka_unit_test(deals_out_an_odd_batch),
        cmocka_unit_test(beats_every_other_order_of_its_plan),
        cmocka_unit_test(leaves_to_the_host_what_does_not_fit),
        cmocka_unit_test(says_when_nothing_fits),
        cmocka_unit_test_setup_teardown(ends_when_told_with_the_best_so_far, setup, teardown),
        cmocka_unit_test(is_soon_with_a_plan_that_misses_the_limits),
        cmocka_unit_test(widens_some_pipelines_of_a_team),
        cmocka_unit_test(spreads_experts_though_nothing_divides_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
