/** Plans on both sides of slow networks stay above the lower bound, whatever they send over them:
 * random clusters, models, jobs and plans. With a number as argument that many plans are judged
 * instead of the few of every test run. */
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

enum { WORLDS = 80, PLANS_PER_WORLD = 40, SIDES = 3 };

static int below(struct hv_rng *r, int n)
{
    return (int)hv_rng_below(r, (uint64_t)n);
}

static bool often(struct hv_rng *r, int of_ten)
{
    return below(r, 10) < of_ten;
}

/** The devices of two or three sites and what runs on them. */
struct site {
    int nodes[SIDES], each[SIDES], layers, batch, hidden;
    bool both; /**< a stage of the plan at hand has devices on both */
};

static int devices_of(const struct site *s, int side)
{
    return s->nodes[side] * s->each[side];
}

static void add_address(struct hv_str *t, const struct site *s, int side, int device)
{
    hv_str_addf(t, "%c[%d].%d", "ewm"[side], device / s->each[side], device % s->each[side]);
}

/** What joins two sites: often nothing but the network of all. */
static void add_links(struct hv_rng *r, struct hv_str *t, bool south)
{
    static const char *const pairs[] = {"\"east\",\"west\"", "\"e[0]\",\"west\"",
                                        "\"east\",\"south\"", "\"west\",\"south\""};
    static const double links[] = {0.125, 0.5, 1.25, 3, 10};
    hv_str_addf(t, ",\"links\":[");
    for (size_t i = 0, n = 0; i < (south ? 4 : 2); i++) {
        if (often(r, i == 1 ? 1 : 8)) {
            hv_str_addf(t, "%s{\"between\":[%s],\"bandwidth_GBps\":%g,\"latency_us\":%d}",
                        n++ > 0 ? "," : "", pairs[i], links[below(r, HV_COUNT(links))],
                        often(r, 5) ? 30000 : 300);
        }
    }
    hv_str_addf(t, "]");
}

static void random_cluster(struct hv_rng *r, struct hv_str *t, struct site *s)
{
    static const char *const devices[] = {"A100-SXM-80GB", "H100-SXM-80GB", "V100-SXM2-32GB",
                                          "A10G-24GB"};
    static const char *const zones[] = {"east", "west", "south"};
    static const double nics[] = {1.25, 5, 25, 100};
    bool same = often(r, 3);  /* the third site is in the zone of the first */
    bool alike = often(r, 3); /* equal nodes without zones: cuts are numbers of them */
    int device = below(r, HV_COUNT(devices)), nic = below(r, HV_COUNT(nics));
    hv_str_addf(t, "{\"format\":\"hetviz.cluster/1\",\"name\":\"sites\",\"nodes\":[");
    for (int i = 0; i < SIDES; i++) {
        s->nodes[i] = i == 2 && often(r, 6) ? 0 : 1 + below(r, 3);
        s->each[i] = alike && i > 0 ? s->each[0] : 1 << below(r, 3);
        device = alike ? device : below(r, HV_COUNT(devices));
        nic = alike ? nic : below(r, HV_COUNT(nics));
        if (s->nodes[i] > 0) {
            hv_str_addf(t,
                        "%s{\"name\":\"%c\",\"count\":%d,\"device\":\"%s\",\"devices\":%d,"
                        "\"nic\":{\"bandwidth_GBps\":%g}",
                        i > 0 ? "," : "", "ewm"[i], s -> nodes[i], devices[device], s -> each[i],
                        nics[nic]);
            hv_str_addf(t, alike ? "}" : ",\"zone\":\"%s\"}", zones[same && i == 2 ? 0 : i]);
        }
    }
    hv_str_addf(t, "],\"network\":{\"bandwidth_GBps\":%g,\"latency_us\":%d",
                often(r, 5) ? 100 : 3.0, often(r, 8) ? 5 : 500);
    if (!alike && often(r, 7)) {
        add_links(r, t, s->nodes[2] > 0 && !same);
    }
    hv_str_addf(t, "}}");
}

static void random_model(struct hv_rng *r, struct hv_str *t, struct site *s)
{
    static const int layers[] = {4, 8, 12}, hidden[] = {1024, 2048, 4096};
    s->layers = layers[below(r, HV_COUNT(layers))];
    s->hidden = hidden[below(r, HV_COUNT(hidden))];
    hv_str_addf(t,
                "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                "\"layers\":%d,\"hidden\":%d,\"heads\":16,\"kv_heads\":16,\"ffn\":%d,"
                "\"ffn_kind\":\"gelu\",\"vocab\":%d,\"max_sequence\":4096,\"tied_embeddings\":%s",
                s->layers, s->hidden, 4 * s->hidden, often(r, 5) ? 50257 : 3200,
                often(r, 5) ? "true" : "false");
    if (often(r, 2)) {
        hv_str_addf(t, ",\"moe\":{\"experts\":4,\"top_k\":2,\"ffn\":%d}", s->hidden);
    }
    hv_str_addf(t, "}");
}

static void random_job(struct hv_rng *r, struct hv_str *t, struct site *s)
{
    s->batch = 8 << below(r, 5);
    hv_str_addf(t,
                "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                "\"precision\":\"fp16\",\"optimizer\":\"adam\"%s}",
                s->batch, 512 << below(r, 3), often(r, 3) ? ",\"grad_precision\":\"fp32\"" : "");
}

/** A replica entry: stages with a run of devices on one side or on several, and how the batch
 * comes.
 */
struct entry {
    int first[4][SIDES], devices[4][SIDES], stages, batch, micro;
    bool shards;
};

static int sides_in(const struct entry *e, int stage)
{
    int n = 0;
    for (int side = 0; side < SIDES; side++) {
        n += e->devices[stage][side] > 0;
    }
    return n;
}

static void add_stage(struct hv_rng *r, struct hv_str *t, const struct site *s,
                      const struct entry *e, int i)
{
    static const char *const degrees[] = {"tp", "dp", "dp", "cp"};
    int from = 2 * s->layers * i / e->stages, to = 2 * s->layers * (i + 1) / e->stages, n = 0;
    hv_str_addf(t, "%s{\"devices\":\"", i > 0 ? "," : "");
    for (int side = 0; side < SIDES; side++) {
        for (int d = 0; d < e->devices[i][side]; d++) {
            hv_str_addf(t, "%s", n++ > 0 ? "," : "");
            add_address(t, s, side, e->first[i][side] + d);
        }
    }
    const char *degree = sides_in(e, i) > 1 && often(r, 8) ? "dp" : degrees[below(r, 4)];
    hv_str_addf(t, "\",\"layers\":[%g,%g],\"%s\":%d", from / 2.0, to / 2.0, degree, n);
    bool turns = degree[0] == 'd' && e->micro % n != 0;
    if (turns) {
        hv_str_addf(t, ",\"deal\":\"turns\"");
    }
    if (e->shards) {
        hv_str_addf(t, ",\"zero\":%d", 1 + below(r, turns ? 1 : 3));
    }
    hv_str_addf(t, "}");
}

static void add_entry(struct hv_rng *r, struct hv_str *t, const struct site *s, struct entry *e)
{
    e->micro = 1 << below(r, 6);
    while (e->batch % e->micro != 0) {
        e->micro /= 2;
    }
    hv_str_addf(t, "{\"micro_batch\":%d,\"micro_batches\":%d,\"stages\":[", e->micro,
                e->batch / e->micro);
    for (int i = 0; i < e->stages; i++) {
        add_stage(r, t, s, e, i);
    }
    hv_str_addf(t, "]}");
}

/** Takes a run of devices of a side that nobody has yet for the last stage. */
static void take(struct hv_rng *r, const struct site *s, int *used, struct entry *e, int side)
{
    int left = devices_of(s, side) - used[side], n = left, at = e->stages - 1;
    if (often(r, 4)) {
        n = 1 << below(r, 4);
    }
    n = n > left ? left : n;
    e->first[at][side] = used[side];
    e->devices[at][side] = n;
    used[side] += n;
}

/** One to three stages on one side, across from either or both; false when no devices are left. */
static bool random_entry(struct hv_rng *r, const struct site *s, int *used, struct entry *e)
{
    int side = below(r, SIDES), stages = 1 + below(r, 3);
    bool across = often(r, 5), both = often(r, 3);
    for (int i = 0; i < stages; i++) {
        bool cross = across && i > 0 && (i + 1 == stages || often(r, 5));
        side = cross ? (side + 1 + below(r, SIDES - 1)) % SIDES : side;
        e->stages++;
        take(r, s, used, e, side);
        if (both && often(r, 6)) {
            take(r, s, used, e, (side + 1 + below(r, SIDES - 1)) % SIDES);
        }
        if (sides_in(e, i) == 0) {
            e->stages--;
            break;
        }
    }
    return e->stages > 0;
}

/** One stage on all devices of a site: where little crosses, a good plan. Returns how many entries.
 */
static int whole_site(struct hv_rng *r, const struct site *s, struct entry *e)
{
    int side = below(r, SIDES);
    e->stages = 1;
    e->devices[0][side] = devices_of(s, side);
    return e->devices[0][side] > 0;
}

/** Up to three, as long as there are devices. Returns how many. */
static int random_entries(struct hv_rng *r, const struct site *s, int *used, struct entry *e)
{
    int n = 1 + below(r, 3);
    for (int i = 0; i < n; i++) {
        if (!random_entry(r, s, used, &e[i])) {
            return i;
        }
    }
    return n;
}

static bool random_plan(struct hv_rng *r, struct hv_str *t, struct site *s)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1", "zb-2p"};
    struct entry e[3] = {{.shards = often(r, 3)}, {.shards = often(r, 3)}, {.shards = often(r, 3)}};
    int used[SIDES] = {0}, left = s->batch;
    int n = often(r, 2) ? whole_site(r, s, &e[0]) : random_entries(r, s, used, e);
    for (int i = 0; i < n; i++) {
        e[i].batch = i + 1 == n ? left : 1 + below(r, left - (n - 1 - i));
        left -= e[i].batch;
    }
    s->both = false;
    for (int i = 0; i < 4 * n; i++) {
        s->both = s->both || sides_in(&e[i / 4], i % 4) > 1;
    }
    if (n < 1) {
        return false;
    }
    hv_str_addf(t, "\"micro_batch\":1,\"replicas\":[");
    for (int i = 0; i < n; i++) {
        hv_str_addf(t, "%s", i > 0 ? "," : "");
        add_entry(r, t, s, &e[i]);
    }
    hv_str_addf(t, "],\"schedule\":{\"name\":\"%s\"},\"sync\":{\"overlap\":%s}",
                schedules[below(r, HV_COUNT(schedules))], often(r, 7) ? "true" : "false");
    return true;
}

/** Plans judged so far: valid ones, ones that a cut is for, and of these the close ones. */
struct tally {
    int valid, cut, both, close; /**< both: with a stage on both sides */
    int alike;                   /**< for which a cut goes between equal nodes */
    double least;
};

static bool goes_between_equals(const struct hv_bound *b, const struct hv_bound_cut *cut)
{
    for (size_t i = 0; i < b->houses.n_classes; i++) {
        if (cut->beyond[i] > 0 && cut->beyond[i] < b->houses.classes[i].houses) {
            return true;
        }
    }
    return false;
}

static void check(const struct hv_verdict *v, const struct hv_bound *b, const char *world,
                  const char *plan, struct tally *n)
{
    const struct hv_metrics *m = &v->metrics;
    if (v->findings.n > 0 || !hv_known(m->iteration_s)) {
        return;
    }
    double ratio = m->iteration_s / m->bound_s;
    const struct hv_bound_cut *used = NULL;
    for (size_t i = 0; i < b->n_cuts; i++) {
        used = m->bound_s == b->cuts[i].time_s ? &b->cuts[i] : used;
    }
    bool cut = used != NULL && m->bound_s > 1.05 * b->spread_s;
    n->alike += cut && goes_between_equals(b, used);
    n->valid++;
    n->cut += cut;
    n->close += cut && ratio < 1.25;
    n->least = cut ? fmin(n->least, ratio) : n->least;
    if (!(m->bound_s > 0) || !(ratio >= 1 - 1e-9)) {
        fail_msg("bound %.9g above %.9g (%s):\n%s\n%s", m->bound_s, m->iteration_s, v->bound_why,
                 world, plan);
    }
}

static void try_world(struct hv_rng *r, struct tally *n)
{
    struct hv_str cluster = {0}, model = {0}, job = {0}, all = {0};
    struct hv_arena own = {0};
    struct site s;
    struct world w;
    struct hv_bound b;
    random_cluster(r, &cluster, &s);
    random_model(r, &model, &s);
    random_job(r, &job, &s);
    hv_str_addf(&all, "%s\n%s\n%s", hv_str_cstr(&cluster), hv_str_cstr(&model), hv_str_cstr(&job));
    open_world(&w, hv_str_cstr(&cluster), hv_str_cstr(&model), hv_str_cstr(&job));
    hv_bound_iteration(w.cost, &own, &b);
    for (int i = 0; i < PLANS_PER_WORLD; i++) {
        struct hv_arena a = {0};
        struct hv_str t = {0};
        if (random_plan(r, &t, &s)) {
            struct hv_verdict v = judge(&w, &a, false, hv_str_cstr(&t));
            int cut = n->cut;
            check(&v, &b, hv_str_cstr(&all), hv_str_cstr(&t), n);
            n->both += s.both ? n->cut - cut : 0;
        }
        hv_str_free(&t);
        hv_arena_free(&a);
    }
    close_world(&w);
    hv_arena_free(&own);
    struct hv_str *const texts[] = {&cluster, &model, &job, &all};
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        hv_str_free(texts[i]);
    }
}

static int wanted;

static void plans_over_slow_networks_stay_above_the_bound(void **state)
{
    (void)state;
    struct hv_rng r;
    struct tally n = {.least = HUGE_VAL};
    hv_rng_seed(&r, 11);
    for (int i = 0; i < WORLDS || n.valid < wanted; i++) {
        try_world(&r, &n);
    }
    print_message(
        "%d valid plans, %d where a cut counts, %d of them between equal nodes, %d with a "
        "stage on both sides, %d within 25 %%, least %.3f\n",
        n.valid, n.cut, n.alike, n.both, n.close, n.least);
    assert_true(n.valid > 500 && n.cut > 100 && n.alike > 50 && n.both > 10);
    assert_true(n.close >= 5); /* else a bound that is too high would not show */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_over_slow_networks_stay_above_the_bound),
    };
    wanted = argc > 1 ? atoi(argv[1]) : 0;
    return cmocka_run_group_tests_name("eval_bound_cut_random", tests, NULL, NULL);
}
