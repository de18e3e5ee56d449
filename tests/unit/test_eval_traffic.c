/** What ranks send: the values that `simulated.traffic` prints against published counts, and
 * reductions beside activations, on networks that several pipelines use, against the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/eval/exchange/exchange_int.h"
#include "solver/io/own/verdict_file.h"
#include "tests/eval_fixture.h"
#include "tests/sim_fixture.h"

/** A grid of so many ranks. */
#define TWO_D(degree) "\"tp\":{\"scheme\":\"2d\",\"degree\":" #degree "}"

#define NODES 6 /* of the cluster of the fixture */
#define UNITS 3
#define LOADS 8

/** Pipelines whose hops load networks of nodes. */
struct scene {
    struct fixture x[UNITS];
    struct hv__pipeline pipelines[UNITS];
    struct hv__sending sendings[UNITS][64];
    struct hv_wire_use loads[UNITS][64][LOADS];
    struct hv_link_hop hops[UNITS][64];
    double hop_s[UNITS][64];
    int32_t sending_of[UNITS][64];
    struct hv_link_pipe pipes[UNITS];
    struct hv_links share;
    struct hv__lowered l;
};

/** Hops of one pipeline: each loads some nodes, several of them alike. */
static void load_hops(struct scene *z, size_t i, struct hv_rng *r)
{
    static const enum hv_wire kinds[] = {HV_WIRE_NODE_OUT, HV_WIRE_NODE_IN, HV_WIRE_PAIR};
    size_t n = (size_t)z->x[i].g.n_hops;
    for (size_t h = 0; h < n; h++) {
        struct hv__sending *s = &z->sendings[i][h];
        double most = 0;
        *s = (struct hv__sending){.loads = z->loads[i][h], .n_loads = hv_rng_below(r, LOADS)};
        for (size_t k = 0; k < s->n_loads; k++) {
            uint64_t node = hv_rng_below(r, NODES);
            s->loads[k].wire = hv_wire_id(kinds[hv_rng_below(r, HV_COUNT(kinds))], node);
            s->loads[k].busy_s = 0.125 * (double)(1 + hv_rng_below(r, 4));
            most = fmax(most, s->loads[k].busy_s);
        }
        z->sending_of[i][h] = (int32_t)h;
        z->hop_s[i][h] = most;
        z->hops[i][h] = (struct hv_link_hop){
            .bytes_s = most, .flow_bytes = 1, .n_loads = most > 0, .loads = NULL};
    }
    z->x[i].cost.hop_s = z->hop_s[i];
    hv_pipe_time(&z->x[i].g, &z->x[i].cost, &z->x[i].run);
    z->pipelines[i] = (struct hv__pipeline){
        .hops = {.sendings = z->sendings[i], .n_sendings = n, .sending_of = z->sending_of[i]}};
    z->pipes[i] = (struct hv_link_pipe){
        .g = &z->x[i].g, .c = &z->x[i].cost, .hops = z->hops[i], .run = &z->x[i].run};
}

static void open_scene(struct scene *z, struct world *w, struct hv_arena *a, struct hv_rng *r)
{
    size_t n = 1 + hv_rng_below(r, UNITS);
    *z = (struct scene){
        .share = {.pipes = z->pipes, .n_pipes = n},
        .l = {.k = w->cost, .arena = a, .pipelines = {.items = z->pipelines, .n = n}}};
    z->l.network.share = &z->share;
    for (size_t i = 0; i < n; i++) {
        build(&z->x[i], "1f1b", 2 + (int32_t)hv_rng_below(r, 3), 1 + (int32_t)hv_rng_below(r, 7), 1,
              NULL, NULL);
        price(&z->x[i], some(r, 0.5, 2), some(r, 0.5, 2), 0, 0);
        load_hops(z, i, r);
    }
}

/** What a transfer takes of a node's network while it is under way: in and out are one lane. */
static double share_of(const struct scene *z, const struct hv_link_transfer *t, uint32_t lane)
{
    const struct hv__sending *s = &z->sendings[t->pipe][t->hop];
    for (size_t k = 0; k < s->n_loads; k++) {
        bool pair = s->loads[k].wire % HV_WIRE_N == HV_WIRE_PAIR;
        if (!pair && s->loads[k].wire / HV_WIRE_N == lane) {
            return fmin(1, s->loads[k].busy_s / (t->end_s - t->start_s));
        }
    }
    return 0;
}

/** What the transfers under way at now leave of the fullest of the lanes: a ring goes as fast as
 * its slowest link. `until`: when that may change. */
static double rest_of(const struct scene *z, const struct hv_link_transfer *t, size_t n,
                      const struct hv__lanes *w, double now, double *until)
{
    double least = 1;
    *until = HUGE_VAL;
    for (size_t lane = 0; lane < w->n; lane++) {
        double rest = 1;
        for (size_t i = 0; i < n; i++) {
            double share = share_of(z, &t[i], w->ids[lane]);
            if (share > 0 && t[i].start_s > now) {
                *until = fmin(*until, t[i].start_s);
            } else if (share > 0 && t[i].end_s > now) {
                rest -= share;
                *until = fmin(*until, t[i].end_s);
            }
        }
        least = fmin(least, rest);
    }
    return fmax(0, least);
}

static double end_by_definition(const struct scene *z, const struct hv_link_transfer *t, size_t n,
                                const struct hv__lanes *w, double now, double left)
{
    for (;;) {
        double until, rest = rest_of(z, t, n, w, now, &until);
        if (isinf(until) || left <= rest * (until - now)) {
            return now + left / rest;
        }
        left -= rest * (until - now);
        now = until;
    }
}

static void reductions_have_what_activations_leave(void **state)
{
    struct hv_rng r;
    hv_rng_seed(&r, 31);
    int later = 0;
    for (int i = 0; i < 400; i++) {
        static struct scene z;
        struct hv_arena a = {0};
        open_scene(&z, *state, &a, &r);
        double from_s = some(&r, 0, z.x[0].run.makespan_s);
        struct hv__links_left *traffic = hv__links_left_after(&z.l, from_s, NULL);
        size_t n = 0;
        struct hv_link_transfer *t = hv_links_transfers(&a, &z.share, from_s, &n);
        for (int k = 0; k < 8; k++) { /* in any order, as buckets come */
            uint32_t ids[NODES];
            struct hv__lanes w = {.ids = ids};
            uint32_t first = (uint32_t)hv_rng_below(&r, NODES);
            for (uint32_t node = 0; node < NODES; node++) {
                if (hv_rng_below(&r, 2)) {
                    ids[w.n++] = (node + first) % NODES;
                }
            }
            double start_s = from_s + some(&r, 0, 4), work_s = some(&r, 0.125, 6);
            double want = end_by_definition(&z, t, n, &w, start_s, work_s);
            double end_s = hv__end_on_links_left(traffic, &w, start_s, work_s);
            assert_true(fabs(end_s - want) < 1e-9 * fmax(1, want));
            later += end_s > start_s + work_s + 1e-9;
        }
        for (size_t k = 0; k < z.l.pipelines.n; k++) {
            hv_arena_free(&z.x[k].a);
        }
        hv_arena_free(&a);
    }
    assert_in_range(later, 400, 3000);
}

/* ---- values that ranks send ------------------------------------------------------------------ */

/** One or more layers of 4 x hidden inner width on nodes of eight A100. */
struct sender {
    const char *devices, *stage; /**< stage: further members */
    int hidden, heads, kv_heads, layers;
    int micro_batch, sequence;
    const char *model; /**< further members */
};

/** `simulated.traffic` as `eval --json` prints it. Owner: json_decref. */
static json_t *printed_traffic(const struct sender *x)
{
    char model[512], job[256], body[512];
    struct hv_arena a = {0};
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                   "\"layers\":%d,\"hidden\":%d,\"heads\":%d,\"kv_heads\":%d,\"ffn\":%d,"
                   "\"ffn_kind\":\"gelu\",\"vocab\":32000%s}",
                   x->layers, x->hidden, x->heads, x->kv_heads, 4 * x->hidden,
                   x->model != NULL ? x->model : "");
    (void)snprintf(job, sizeof job,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":%d,\"sequence\":%d,"
                   "\"precision\":\"bf16\",\"dropout\":\"off\"}",
                   x->micro_batch, x->sequence);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":1,\"stages\":[{"
                   "\"devices\":\"%s\",\"layers\":[0,%d],%s}]}]",
                   x->micro_batch, x->devices, x->layers, x->stage);
    struct world w;
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
               "\"count\":8,\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{"
               "\"bandwidth_GBps\":100,\"count\":4}}],\"network\":{\"bandwidth_GBps\":100,"
               "\"latency_us\":5}}",
               model, job);
    struct hv_verdict v = judge(&w, &a, false, body);
    json_t *simulated = hv_verdict_simulated(&v);
    json_t *traffic = json_incref(json_object_get(simulated, "traffic"));
    json_decref(simulated);
    close_world(&w);
    hv_arena_free(&a);
    return traffic;
}

/** A figure of a kind of exchange; 0: it is not printed. */
static double sent_by(const struct sender *x, const char *kind, const char *figure)
{
    json_t *t = printed_traffic(x);
    double values = json_number_value(json_object_get(json_object_get(t, kind), figure));
    json_decref(t);
    return values;
}

static void sends(const struct sender *x, const char *kind, const char *figure, double want)
{
    double got = sent_by(x, kind, figure);
    if (!(fabs(got - want) <= 1e-9 * want)) {
        fail_msg("%s: %s.%s is %.17g, not %.17g", x->stage, kind, figure, got, want);
    }
}

/** One layer with 32 heads of 128, one sequence of 65536 tokens; 0 as backward: not published. */
static void values_of_context_parallelism(void **state)
{
    (void)state;
    static const struct {
        const char *devices, *cp;
        int kv_heads;
        double forward, backward;
    } rows[] = {
        /* Fang and Zhao 2024, heads x ring of 8 */
        {"a[0].*", "\"degree\":8", 32, 469762048, 1006632960}, /* gradients go 8 hops */
        {"a[0].*", "\"degree\":8,\"scheme\":\"usp\",\"ulysses\":2", 32, 268435456, 0},
        {"a[0].*", "\"degree\":8,\"scheme\":\"usp\",\"ulysses\":4", 32, 167772160, 0},
        {"a[0].*", "\"degree\":8,\"scheme\":\"ulysses\"", 32, 117440512, 117440512},
        {"a[0].*", "\"degree\":8", 8, 117440512, 0},
        {"a[0].*", "\"degree\":8,\"scheme\":\"usp\",\"ulysses\":2", 8, 92274688, 0},
        {"a[0].*", "\"degree\":8,\"scheme\":\"usp\",\"ulysses\":4", 8, 79691776, 0},
        {"a[0].*", "\"degree\":8,\"scheme\":\"ulysses\"", 8, 73400320, 73400320},
        /* Li et al. 2023 (LightSeq): half of a ring */
        {"a[0].*", "\"degree\":8,\"scheme\":\"distflash\"", 32, 234881024, 469762048},
        /* Li et al. 2021: in all as much as tensor parallelism, 8 (n - 1) / n values */
        {"a[0].*", "\"degree\":8,\"scheme\":\"rsa\"", 32, 469762048, 1879048192.0 - 469762048},
        /* Liu et al. 2024, 16 and 64 ranks; teams of 1 are a ring */
        {"a[0-1].*", "\"degree\":16,\"scheme\":\"wallfacer\"", 32, 503316480, 0},
        {"a[0-1].*", "\"degree\":16,\"scheme\":\"wallfacer\",\"inner\":2", 32, 268435456, 0},
        {"a[0-1].*", "\"degree\":16,\"scheme\":\"wallfacer\",\"inner\":4", 32, 201326592, 0},
        {"a[0-7].*", "\"degree\":64,\"scheme\":\"wallfacer\",\"inner\":2", 32, 268435456, 0},
        {"a[0-7].*", "\"degree\":64,\"scheme\":\"wallfacer\",\"inner\":4", 32, 150994944, 0},
        {"a[0-7].*", "\"degree\":64,\"scheme\":\"wallfacer\",\"inner\":8", 32, 117440512, 0},
        /* keys and values of all other ranks; once more backward, and their gradients */
        {"a[0].*", "\"degree\":8,\"scheme\":\"all_gather\"", 32, 469762048, 2 * 469762048.0},
        /* nested rings have the hops of one */
        {"a[0-1].*", "\"degree\":16,\"inner\":8", 32, 503316480, 0},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        char stage[128];
        (void)snprintf(stage, sizeof stage, "\"cp\":{%s}", rows[i].cp);
        const struct sender x = {rows[i].devices, stage, 4096, 32, rows[i].kv_heads, 1, 1,
                                 65536,           NULL};
        sends(&x, "context", "forward", rows[i].forward);
        if (rows[i].backward > 0) {
            sends(&x, "context", "backward", rows[i].backward);
        }
    }
}

/** Sun et al. 2024: queries, gradients of outputs and of queries, two statistics per head, instead
 * of keys, values and their gradients: 0.754 of them; with few key heads the preference turns. */
static void values_of_a_hop(void **state)
{
    (void)state;
    struct sender kv = {"a[0].*", "\"cp\":{\"degree\":8}", 4096, 32, 32, 1, 1, 65536, NULL};
    struct sender q = kv;
    q.stage = "\"cp\":{\"degree\":8,\"backward\":\"q_do\"}";
    sends(&kv, "context", "hop_backward", 134217728);
    sends(&q, "context", "hop_backward", 101187584);
    kv.kv_heads = q.kv_heads = 8;
    assert_true(sent_by(&q, "context", "hop_backward") > sent_by(&kv, "context", "hop_backward"));
}

/** Zhao et al. 2024: M = 268435456 values, two switches of M / n per pair of blocks, of which 7/8
 * leave the rank; all-to-alls of heads send four times as much. */
static void values_of_switches(void **state)
{
    (void)state;
    const char *video = ",\"causal\":false,\"tokens\":{\"time\":16,\"space\":1024},"
                        "\"attends\":[\"space\",\"time\"]";
    const struct sender dsp = {
        "a[0].*", "\"cp\":{\"degree\":8,\"scheme\":\"dsp\"}", 4096, 32, 32, 2, 4, 16384, video};
    struct sender heads = dsp;
    heads.stage = "\"cp\":{\"degree\":8,\"scheme\":\"ulysses\"}";
    sends(&dsp, "context", "forward", 67108864.0 * 7 / 8);
    sends(&heads, "context", "forward", 268435456.0 * 7 / 8);
}

/** Rows of published figures; ways of recompute and of grids. */
static void values_of_tensor_parallelism(void **state)
{
    (void)state;
    static const struct {
        struct sender x;
        const char *figure;
        double values;
    } rows[] = {
        /* Shoeybi et al. 2019: GPT-3's layer, 2 all-reduces each way of 88080384 bytes */
        {{"a[0].*", "\"tp\":8", 12288, 96, 96, 1, 1, 2048, NULL}, "forward", 2 * 88080384.0 / 2},
        {{"a[0].*", "\"tp\":8", 12288, 96, 96, 1, 1, 2048, NULL}, "backward", 2 * 88080384.0 / 2},
        {{"a[0-1].*", "\"tp\":16", 1024, 16, 16, 1, 4, 512, NULL}, "forward", 7864320},
        {{"a[0-1].*", "\"tp\":16,\"recompute\":\"full\"", 1024, 16, 16, 1, 4, 512, NULL},
         "backward",
         2 * 7864320},
        {{"a[0-7].*", "\"tp\":64", 4096, 64, 64, 1, 8, 512, NULL}, "forward", 66060288},
        /* Xu et al. 2021, table 1: binomial trees, and what a rank sends in the mean */
        {{"a[0-1].*", TWO_D(16) ",\"recompute\":\"full\"", 1024, 16, 16, 1, 4, 512, NULL},
         "tree_forward",
         13631488},
        {{"a[0-1].*", TWO_D(16) ",\"recompute\":\"full\"", 1024, 16, 16, 1, 4, 512, NULL},
         "tree_backward",
         40894464},
        {{"a[0-7].*", TWO_D(64), 4096, 64, 64, 1, 8, 512, NULL}, "tree_forward", 119537664},
        {{"a[0-7].*", TWO_D(64), 4096, 64, 64, 1, 8, 512, NULL}, "forward", 34865152},
        {{"a[0-7].*", TWO_D(64), 4096, 64, 64, 1, 8, 512, NULL}, "backward", 2 * 34865152.0},
        /* Wang et al. 2021: 4 grids of 4 x 4 */
        {{"a[0-7].*", "\"tp\":{\"scheme\":\"2.5d\",\"degree\":64,\"depth\":4}", 4096, 64, 64, 1, 16,
          256, NULL},
         "forward",
         43253760},
        /* Bian et al. 2021: 4 x 4 x 4; gathering again 3/64 (7 b s h + 12 h²) more */
        {{"a[0-7].*", "\"tp\":{\"scheme\":\"3d\",\"degree\":64}", 4096, 64, 64, 1, 16, 256, NULL},
         "forward",
         22020096},
        {{"a[0-7].*", "\"tp\":{\"scheme\":\"3d\",\"degree\":64}", 4096, 64, 64, 1, 16, 256, NULL},
         "backward",
         22020096},
        {{"a[0-7].*", "\"tp\":{\"scheme\":\"3d\",\"degree\":64,\"regather\":true}", 4096, 64, 64, 1,
          16, 256, NULL},
         "backward",
         22020096 + 14942208},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        sends(&rows[i].x, "tensor", rows[i].figure, rows[i].values);
    }
    /* in trees a grid of 16 sends more than all-reduces do, one of 64 pipelined panels less */
    assert_true(sent_by(&rows[5].x, "tensor", "tree_forward") >
                sent_by(&rows[2].x, "tensor", "forward"));
    assert_true(sent_by(&rows[8].x, "tensor", "forward") <
                sent_by(&rows[4].x, "tensor", "forward"));
}

/** Wang et al. 2021: the copies of a layer's weights are summed over the depth, 2 (d - 1) / d of
 * 12 h² / q² values; here with its two norms. */
static void values_of_depth(void **state)
{
    (void)state;
    struct sender one = {"a[0-7].*",
                         "\"tp\":{\"scheme\":\"2.5d\",\"degree\":64,\"depth\":4}",
                         4096,
                         64,
                         64,
                         1,
                         16,
                         256,
                         ",\"norm\":\"rmsnorm\""};
    struct sender two = one;
    two.layers = 2;
    double layer = sent_by(&two, "depth", "backward") - sent_by(&one, "depth", "backward");
    double norms = 1.5 * 2 * 4096 / 16;
    assert_true(fabs(layer - (18874368 + norms)) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_context_parallelism),
        cmocka_unit_test(values_of_a_hop),
        cmocka_unit_test(values_of_switches),
        cmocka_unit_test(values_of_tensor_parallelism),
        cmocka_unit_test(values_of_depth),
        cmocka_unit_test_setup_teardown(reductions_have_what_activations_leave, setup, teardown)};
    return cmocka_run_group_tests_name("eval traffic", tests, NULL, NULL);
}
