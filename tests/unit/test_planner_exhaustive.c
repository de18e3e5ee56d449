/*
 * The planner against a search through everything, on small random cases: every way to make
 * replicas and stages of a few devices, every degree, cut of the layers, micro-batch, share of the
 * batch, recompute, sharding, offload and schedule of the lists below. The enumeration is written
 * from the plan format alone and shares nothing with the planner. `test_planner_exhaustive N
 * [FROM]` runs N cases, numbered from FROM, and prints every one; without arguments a fast share of
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/io/own/plan/write.h"
#include "solver/planner/planner.h"
#include "tests/eval_fixture.h"

#include <math.h>
#include <stdlib.h>

enum {
    POOLS = 3,
    STAGES = 8,
    REPLICAS = 8,
    FAST_CASES = 24,
    FAST_PLANS = 6000,
    PLANS = 300000,
    COUNTED = 100000000,
    LARGE = 4
};

/** Equal devices of one node. */
struct pool {
    int first, n;
};

struct stage {
    int pool, tp, dp;
};

struct replica {
    int n_stages, micro_batch, micro_batches;
    struct stage stages[STAGES];
    int counts[STAGES];
};

/** An enumeration in progress. */
struct all {
    struct world w;
    int n_pools, n_layers, batch;
    int64_t plans, most, every; /**< plans counted; counted at most; one of so many is judged */
    struct pool pools[POOLS];
    int left[POOLS]; /**< devices of each pool that no stage has taken */
    struct replica replicas[REPLICAS];
    int n_replicas;
    unsigned recompute;
    int zero, host; /**< host: how many of `hosts` wait in host memory */
    const char *schedule;
    double best; /**< of what the job minimises */
    char *text;
    struct hv_arena arena;
};

static const char *const schedules[] = {"1f1b", "zb-h1", "zb-2p", "gpipe"};
static const unsigned recomputes[] = {HV_RC_NONE, HV_RC_CORE, HV_RC_FULL};
static const enum hv_offload_what hosts[] = {HV_OFFLOAD_OPTIMIZER, HV_OFFLOAD_WEIGHTS,
                                             HV_OFFLOAD_ACTIVATIONS};

static void fill_stage(const struct all *a, struct hv_plan *p, const struct replica *r, int i,
                       int *used, struct hv_stage *out)
{
    const struct stage *s = &r->stages[i];
    int from = 0;
    hv_stage_defaults(out);
    for (int k = 0; k < i; k++) {
        from += r->counts[k];
    }
    out->n_devices = (size_t)(s->tp * s->dp);
    out->devices = hv_arena_new(&p->arena, uint32_t, out->n_devices);
    for (size_t d = 0; d < out->n_devices; d++) {
        out->devices[d] = (uint32_t)(a->pools[s->pool].first + used[s->pool]++);
    }
    out->tp.degree = s->tp;
    out->sequence_parallel = s->tp > 1;
    out->dp = s->dp;
    if (r->micro_batch % s->dp != 0) {
        out->shares = hv_arena_new(&p->arena, int, (size_t)s->dp);
        for (int d = 0; d < s->dp; d++) {
            out->shares[d] = r->micro_batch / s->dp + (d < r->micro_batch % s->dp);
        }
    }
    out->zero.stage = s->dp > 1 ? a->zero : 0;
    out->recompute = a->recompute;
    out->n_offload = (size_t)a->host;
    out->offload = hv_arena_new(&p->arena, struct hv_offload, HV_COUNT(hosts));
    for (size_t h = 0; h < out->n_offload; h++) {
        out->offload[h] = (struct hv_offload){.what = hosts[h], .frac = 1, .to_host = true};
    }
    out->n_ranges = 1;
    out->ranges = hv_arena_new(&p->arena, struct hv_range, 1);
    out->ranges[0] = (struct hv_range){2 * from, 2 * (from + r->counts[i])};
    out->embedding = i == 0;
    out->head = i == r->n_stages - 1;
}

static struct hv_plan *draw(const struct all *a)
{
    struct hv_plan *p = hv_plan_new(a->w.in.cluster.cluster);
    int used[POOLS] = {0};
    p->schedule.name = a->schedule;
    p->micro_batch = a->replicas[0].micro_batch;
    p->n_replicas = (size_t)a->n_replicas;
    p->replicas = hv_arena_new(&p->arena, struct hv_replica, p->n_replicas);
    for (int i = 0; i < a->n_replicas; i++) {
        const struct replica *r = &a->replicas[i];
        struct hv_replica *out = &p->replicas[i];
        out->count = 1;
        out->micro_batch = r->micro_batch;
        out->micro_batches = r->micro_batches;
        out->n_stages = (size_t)r->n_stages;
        out->stages = hv_arena_new(&p->arena, struct hv_stage, out->n_stages);
        for (int s = 0; s < r->n_stages; s++) {
            fill_stage(a, p, r, s, used, &out->stages[s]);
        }
    }
    return p;
}

static const struct hv_objective *o_of(const struct all *a)
{
    return &a->w.in.job.job.objective;
}

/* What the planner's answer is worth: more than anything within the limits where it misses one. */
static double worth(const struct all *a, const struct hv_plan *p)
{
    struct hv_arena arena = {0};
    struct hv_verdict v;
    struct hv_eval_options o = {.no_bound = true};
    assert_int_equal(hv_eval(a->w.cost, p, &o, &arena, &v, NULL), HV_OK);
    assert_int_equal(hv_findings_of_rules(&v.findings), 0);
    double x = hv_eval_worth(o_of(a), &v.metrics);
    hv_arena_free(&arena);
    return x;
}

static void judge_it(struct all *a)
{
    struct hv_verdict v;
    struct hv_eval_options o = {.no_bound = true};
    if (a->plans++ % a->every != 0) {
        return;
    }
    struct hv_plan *p = draw(a);
    hv_arena_free(&a->arena);
    if (hv_eval(a->w.cost, p, &o, &a->arena, &v, NULL) == HV_OK && v.findings.n == 0 &&
        hv_eval_within(o_of(a), &v.metrics) && hv_eval_figure(o_of(a), &v.metrics) < a->best) {
        json_t *tree = hv_plan_to_json(p, NULL, NULL, NULL);
        free(a->text);
        a->text = json_dumps(tree, JSON_COMPACT);
        json_decref(tree);
        a->best = hv_eval_figure(o_of(a), &v.metrics);
    }
    hv_plan_unref(p);
}

static bool full(const struct all *a)
{
    return a->plans >= a->most;
}

/* Every way to leave states to the host; with the recompute in between none. */
static void vary_host(struct all *a)
{
    int most = a->recompute == HV_RC_CORE ? 0 : (int)HV_COUNT(hosts);
    for (a->host = 0; a->host <= most && !full(a); a->host++) {
        judge_it(a);
    }
}

/* Every schedule, recompute and sharding of the shapes that are set. */
static void vary_plan(struct all *a)
{
    bool deep = false, wide = false;
    for (int i = 0; i < a->n_replicas; i++) {
        deep = deep || a->replicas[i].n_stages > 1;
        for (int s = 0; s < a->replicas[i].n_stages; s++) {
            wide = wide || a->replicas[i].stages[s].dp > 1;
        }
    }
    for (size_t s = 0; s < (deep ? HV_COUNT(schedules) : 1); s++) {
        for (size_t c = 0; c < HV_COUNT(recomputes); c++) {
            for (int zero = 0; zero <= (wide ? 3 : 0) && !full(a); zero++) {
                a->schedule = schedules[s];
                a->recompute = recomputes[c];
                a->zero = zero;
                vary_host(a);
            }
        }
    }
}

/* Cuts the layers of replica `r` from stage `at` on, then those of the next replica. */
static void cut(struct all *a, int r, int at, int left)
{
    if (r == a->n_replicas) {
        vary_plan(a);
        return;
    }
    struct replica *x = &a->replicas[r];
    if (at == x->n_stages - 1) {
        x->counts[at] = left;
        if (left > 0 || at > 0) {
            cut(a, r + 1, 0, a->n_layers);
        }
        return;
    }
    for (int n = at == 0 ? 0 : 1; n <= left && !full(a); n++) {
        x->counts[at] = n;
        cut(a, r, at + 1, left - n);
    }
}

/* Deals the batch out to replica `r` and those after it. */
static void deal(struct all *a, int r, int left)
{
    struct replica *x = &a->replicas[r];
    bool last = r == a->n_replicas - 1;
    for (int mb = 1; mb <= left && !full(a); mb++) {
        bool fits = true;
        for (int s = 0; s < x->n_stages; s++) {
            fits = fits && mb >= x->stages[s].dp;
        }
        for (int m = 1; fits && m * mb <= left; m++) {
            x->micro_batch = mb;
            x->micro_batches = m;
            if (last && m * mb == left) {
                cut(a, 0, 0, a->n_layers);
            } else if (!last) {
                deal(a, r + 1, left - m * mb);
            }
        }
    }
}

static void add_replica(struct all *a);

/* Adds a stage to the last replica, or closes it. */
static void add_stage(struct all *a)
{
    struct replica *x = &a->replicas[a->n_replicas - 1];
    if (x->n_stages > 0) {
        deal(a, 0, a->batch);
        add_replica(a);
    }
    if (x->n_stages == STAGES || x->n_stages == a->n_layers) {
        return;
    }
    struct stage *s = &x->stages[x->n_stages++];
    for (s->pool = 0; s->pool < a->n_pools && !full(a); s->pool++) {
        for (s->tp = 1; s->tp <= a->left[s->pool]; s->tp *= 2) {
            for (s->dp = 1; s->dp * s->tp <= a->left[s->pool] && !full(a); s->dp++) {
                int n = s->dp * s->tp, pool = s->pool;
                a->left[pool] -= n;
                add_stage(a);
                a->left[pool] += n;
                /* deeper calls have used the fields of later stages only */
            }
        }
    }
    x->n_stages--;
}

static void add_replica(struct all *a)
{
    if (a->n_replicas == REPLICAS) {
        return;
    }
    a->replicas[a->n_replicas++].n_stages = 0;
    add_stage(a);
    a->n_replicas--;
}

/* ---- random cases -----------------------------------------------------------------------------
 */

static int pick(struct hv_rng *r, const int *of, int n)
{
    return of[hv_rng_below(r, (uint64_t)n)];
}

static void random_case(struct all *a, int number)
{
    static const char *const kinds[] = {"A100-SXM-80GB", "V100-SXM2-32GB", "H100-SXM-80GB",
                                        "T4-16GB",       "RTX4090-24GB",   "A10G-24GB"};
    static const char *const rates[] = {"1.25", "12.5", "50", "200"};
    static const char *const objectives[] = {"{}",
                                             "{\"minimize\":\"time\"}",
                                             "{\"minimize\":\"energy\"}",
                                             "{\"minimize\":\"cost\"}",
                                             "{\"minimize\":\"time\",\"max_usd_per_hour\":20}",
                                             "{\"minimize\":\"cost\",\"deadline_s\":0.1}"};
    static const int prices[] = {4, 8, 12, 30};
    static const int batches[] = {2, 3, 4, 6, 8}, widths[] = {1024, 2048, 4096}, some[] = {1, 1, 2};
    bool large = number % LARGE == LARGE - 1;
    struct hv_rng rng;
    char cluster[1024], model[512], job[512];
    memset(a, 0, sizeof *a);
    a->best = HUGE_VAL;
    hv_rng_seed(&rng, (uint64_t)number);
    a->n_pools = 1 + (int)hv_rng_below(&rng, POOLS);
    int n = snprintf(cluster, sizeof cluster,
                     "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[");
    for (int i = 0, first = 0; i < a->n_pools; i++) {
        a->pools[i] = (struct pool){first, a->n_pools == 1 ? 2 + (int)hv_rng_below(&rng, 3)
                                                           : pick(&rng, some, HV_COUNT(some))};
        a->pools[i].n *= large ? 2 : 1;
        a->left[i] = a->pools[i].n;
        first += a->pools[i].n;
        n += snprintf(cluster + n, sizeof cluster - (size_t)n,
                      "%s{\"name\":\"n%d\",\"count\":1,\"device\":\"%s\",\"devices\":%d,\"nic\":{"
                      "\"bandwidth_GBps\":%s},\"price_usd_per_hour\":%d}",
                      i > 0 ? "," : "", i, kinds[hv_rng_below(&rng, HV_COUNT(kinds))],
                      a->pools[i].n, rates[hv_rng_below(&rng, HV_COUNT(rates))],
                      prices[hv_rng_below(&rng, HV_COUNT(prices))]);
    }
    (void)snprintf(cluster + n, sizeof cluster - (size_t)n,
                   "],\"network\":{\"bandwidth_GBps\":200,\"latency_us\":10}}");
    a->n_layers = 2 + (int)hv_rng_below(&rng, large ? 11 : 5);
    a->batch = pick(&rng, batches, HV_COUNT(batches));
    int width = pick(&rng, widths, HV_COUNT(widths));
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                   "\"layers\":%d,\"hidden\":%d,\"heads\":16,\"kv_heads\":16,\"ffn\":%d,"
                   "\"ffn_kind\":\"gelu\",\"vocab\":32000,\"max_sequence\":2048}",
                   a->n_layers, width, 4 * width);
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                   "\"precision\":\"fp16\",\"optimizer\":\"adam\",\"objective\":%s}",
                   a->batch, hv_rng_below(&rng, 2) == 0 ? 512 : 2048,
                   objectives[(size_t)number % HV_COUNT(objectives)]);
    open_world(&a->w, cluster, model, job);
}

/** Least time of all plans over the planner's, less one: above zero the planner has missed it. */
static double miss_of(int number, int most, bool print)
{
    struct all a;
    struct hv_planner_result r;
    random_case(&a, number);
    a.most = a.every = COUNTED; /* counts them first */
    add_replica(&a);
    a.every = (a.plans + most - 1) / most;
    a.plans = 0;
    add_replica(&a);
    enum hv_status s = hv_planner_run(a.w.cost, &(struct hv_planner_options){0}, &r, NULL);

    double found = s == HV_OK ? worth(&a, r.plan) : HUGE_VAL;
    double miss = a.best < HUGE_VAL ? found / a.best - 1 : 0;
    if (print) {
        printf("%4d: %lld plans, one of %lld judged, best %.6g, planner %.6g, %lld judged%s\n",
               number, (long long)a.plans, (long long)a.every, a.best, found,
               (long long)r.evaluations, miss > 1e-9 ? " MISS" : "");
        if (miss > 1e-9 && s == HV_OK) {
            json_t *tree = hv_plan_to_json(r.plan, NULL, NULL, NULL);
            char *text = json_dumps(tree, JSON_COMPACT);
            printf("  miss %.3f %%: %s\n  found %s\n", 100 * miss, a.text, text);
            free(text);
            json_decref(tree);
        }
        (void)fflush(stdout);
    }
    hv_plan_unref(r.plan);
    hv_arena_free(&a.arena);
    free(a.text);
    close_world(&a.w);
    return miss;
}

static void is_never_beaten_by_a_search_through_everything(void **state)
{
    (void)state;
    for (int i = 0; i < FAST_CASES; i++) {
        assert_true(miss_of(i, FAST_PLANS, false) <= 1e-9);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_never_beaten_by_a_search_through_everything),
    };
    if (argc < 2) {
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    int missed = 0, from = argc > 2 ? atoi(argv[2]) : 0;
    for (int i = from; i < from + atoi(argv[1]); i++) {
        missed += miss_of(i, PLANS, true) > 1e-9;
    }
    printf("%d missed\n", missed);
    return missed > 0;
}
