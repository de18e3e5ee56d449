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
#include "tests/random_world.h"

enum { PLANS_PER_WORLD = 40, WORLDS = 60 };

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
