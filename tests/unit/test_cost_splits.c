/** Operators under all their splits: seconds by hand over plain links, equal operators once, and
 * the judge's own price of a stage with the same layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/cost/graph/splits.h"
#include "solver/plan/mesh.h"
#include "tests/eval_fixture.h"

/* Four nodes of one device of 100 TFLOPS; 10 GB/s between them and no latency. Streams cost
 * nothing that counts. */
static const char plain_cluster[] =
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"plain\",\"nodes\":[{\"name\":\"a\",\"count\":4,"
    "\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":10,\"latency_us\":0,"
    "\"curve\":\"plain\"}}],\"devices\":{\"P\":{\"memory_GiB\":80,\"bandwidth_GBps\":1e6,"
    "\"dense_TFLOPS\":{\"fp32\":100},\"rates\":\"plain\"}}}";
static const char plain_job[] = "{\"format\":\"hetviz.job/1\",\"global_batch\":1,\"sequence\":1,"
                                "\"precision\":\"fp32\",\"optimizer\":\"none\"}";

#define OF_DIMS(b, m, n, tensors, ops)                                                             \
    "{\"format\":\"hetviz.model/1\",\"name\":\"g\",\"kind\":\"graph\",\"dims\":{\"b\":" b          \
    ",\"m\":" m ",\"n\":" n                                                                        \
    "},\"tensors\":{\"x\":{\"dims\":[\"b\",\"m\"],\"role\":\"parameter\"}," tensors                \
    "},\"ops\":[" ops "]}"
#define GRAPH(tensors, ops) OF_DIMS("4096", "64", "256", tensors, ops)
#define WEIGHT(name, from, to)                                                                     \
    "\"" name "\":{\"dims\":[\"" from "\",\"" to "\"],\"role\":\"parameter\"}"
#define PRODUCT(id, in, w, to)                                                                     \
    "{\"id\":\"" id "\",\"op\":\"einsum\",\"in\":[\"" in "\",\"" w "\"],\"out\":[\"b\",\"" to "\"" \
    "]}"
#define RELU(id, in, dim)                                                                          \
    "{\"id\":\"" id "\",\"op\":\"relu\",\"in\":[\"" in "\"],\"out\":[\"b\",\"" dim "\"]}"

#define PRODUCT_US(b, m, n)                                                                        \
    (2.0 * (b) * (m) * (n) / 100e12 * 1e6) /* of each of its three products */
#define SENT_US(bytes) ((bytes) / 10e9 * 1e6)

/** A world, a plan of one stage of all operators on all devices, and its splits. */
struct asked {
    struct world w;
    struct hv_plan_doc doc;
    struct hv_arena arena;
    struct hv_splits s;
};

static void ask(struct asked *a, const char *model, const char *stage)
{
    char text[2048];
    struct hv_err err = {0};
    memset(a, 0, sizeof *a);
    open_world(&a->w, plain_cluster, model, plain_job);
    (void)snprintf(text, sizeof text,
                   "{\"format\":\"hetviz.plan/1\",\"micro_batch\":1,\"replicas\":[{"
                   "\"micro_batches\":1,\"stages\":[{\"devices\":\"a[0-3].0\",\"ops\":[\"*\"],%s}"
                   "]}]}",
                   stage);
    if (hv_plan_doc_build(&a->doc, parse(text, "p"), a->w.in.cluster.cluster, &err) != HV_OK) {
        fail_msg("plan: %s", err.text);
    }
    struct hv_stage_query q = {.plan = a->doc.plan, .replica = &a->doc.plan->replicas[0]};
    if (hv_cost_splits(a->w.cost, &q, &a->arena, &a->s, &err) != HV_OK) {
        fail_msg("splits: %s", err.text);
    }
}

static void done(struct asked *a)
{
    hv_plan_doc_free(&a->doc);
    hv_arena_free(&a->arena);
    close_world(&a->w);
}

static const struct hv_split_class *class_of(const struct asked *a, size_t op)
{
    return &a->s.classes[a->s.class_of[op]];
}

/* The way whose operands and result are split over axis 0 along these dimensions; -1: whole. */
static const struct hv_op_split *way(const struct asked *a, size_t op, const int *dims)
{
    const struct hv_split_class *c = class_of(a, op);
    size_t n = a->s.graph.ops[op].n_in + 1U;
    for (size_t i = 0; i < c->n; i++) {
        size_t k = 0;
        for (; k < n; k++) {
            const struct hv_layout *l = &c->split[i].layouts[k];
            uint32_t on = dims[k] < 0 ? 0 : hv_axes_set(&l->dim[dims[k]]);
            if (hv_layout_used(l) != (dims[k] < 0 ? 0 : on) || (dims[k] >= 0 && on == 0)) {
                break;
            }
        }
        if (k == n) {
            return &c->split[i];
        }
    }
    fail_msg("no such way");
    return NULL;
}

static void assert_us(const char *what, double seconds, double us)
{
    if (!(fabs(seconds * 1e6 - us) <= 1e-6 * us + 1e-4)) {
        fail_msg("%s: %.9g us instead of %.9g", what, seconds * 1e6, us);
    }
}

#define CHAIN_TENSORS WEIGHT("w", "m", "n")
#define CHAIN_OPS     RELU("r", "x", "m") "," PRODUCT("y", "r", "w", "n") "," RELU("z", "y", "n")
#define CHAIN         GRAPH(CHAIN_TENSORS, CHAIN_OPS)

/** A way of the product by hand. */
struct by_hand {
    const char *name;
    int dims[3];
    double parts, exchange_us, sums_us, weight_parts;
};

static void compare(const struct asked *a, const struct by_hand *row, double product_us,
                    double weights)
{
    const struct hv_op_split *w = way(a, 1, row->dims);
    assert_us(row->name, w->forward_s, product_us / row->parts);
    assert_us(row->name, w->backward_s, 2 * product_us / row->parts);
    assert_us(row->name, w->exchange_s, row->exchange_us);
    assert_us(row->name, w->sums_s, row->sums_us);
    assert_true(w->parameters == weights / row->weight_parts);
}

/* y[b, n] = Σ_m r[b, m] w[m, n] on a mesh of four. Split along b every device sums the gradients of
 * all weights; along n the gradients of r are summands. */
static void a_product_by_hand(void **state)
{
    struct asked a;
    (void)state;
    ask(&a, CHAIN, "\"mesh\":{\"d\":4}");
    const double weights = 64.0 * 256, r = 4096.0 * 64;
    const struct by_hand rows[] = {
        {"whole", {-1, -1, -1}, 1, 0, 0, 1},
        {"b", {0, -1, 0}, 4, 0, SENT_US(1.5 * 4 * weights), 1},
        {"n", {-1, 1, 1}, 4, SENT_US(1.5 * 4 * r), 0, 4},
    };
    assert_int_equal(class_of(&a, 1)->n, 6);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        compare(&a, &rows[i], PRODUCT_US(4096, 64, 256), weights);
    }
    done(&a);
}

/* Split along m, here the long dimension, the result is: summed up everywhere, or scattered and its
 * gradient gathered, which are the same bytes. */
static void summands_by_hand(void **state)
{
    struct asked a;
    (void)state;
    ask(&a, OF_DIMS("64", "4096", "64", CHAIN_TENSORS, CHAIN_OPS), "\"mesh\":{\"d\":4}");
    const double weights = 4096.0 * 64, y = 64.0 * 64;
    const struct by_hand rows[] = {
        {"m", {1, 0, -1}, 4, SENT_US(1.5 * 4 * y), 0, 4},
        {"m, scattered along b", {1, 0, 0}, 4, SENT_US(1.5 * 4 * y), 0, 4},
        {"m, scattered along n", {1, 0, 1}, 4, SENT_US(1.5 * 4 * y), 0, 4},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        compare(&a, &rows[i], PRODUCT_US(64, 4096, 64), weights);
    }
    done(&a);
}

/* z = relu(y): from y split along n to z split along b go all-to-alls, (n - 1) / n of a quarter of
 * y each: of y for either pass, since the backward pass reads it too, and of its gradient. From
 * whole to split nothing is sent, but the gradient is gathered. */
static void between_two_operators(void **state)
{
    struct asked a;
    (void)state;
    ask(&a, CHAIN, "\"mesh\":{\"d\":4}");
    assert_int_equal(a.s.n_edges, 2);
    const struct hv_split_table *t = &a.s.tables[a.s.edges[1].table];
    const double y = 4.0 * 4096 * 256;
    const struct {
        int from[3], to[2];
        double us;
    } rows[] = {
        {{-1, 1, 1}, {1, 1}, 0},
        {{-1, 1, 1}, {0, 0}, 3 * SENT_US(0.75 * y / 4)},
        {{-1, -1, -1}, {0, 0}, SENT_US(0.75 * y)},
        {{0, -1, 0}, {-1, -1}, 2 * SENT_US(0.75 * y)},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        size_t from = (size_t)(way(&a, 1, rows[i].from) - class_of(&a, 1)->split);
        size_t to = (size_t)(way(&a, 2, rows[i].to) - class_of(&a, 2)->split);
        assert_us("between", t->s[from * t->n_to + to], rows[i].us);
    }
    done(&a);
}

static const char four_layers[] =
    GRAPH(WEIGHT("w1", "m", "n") "," WEIGHT("w2", "n", "m") "," WEIGHT("w3", "m", "n") "," WEIGHT(
              "w4", "n", "m"),
          PRODUCT("a1", "x", "w1", "n") "," RELU("r1", "a1", "n") "," PRODUCT(
              "a2", "r1", "w2",
              "m") "," RELU("r2", "a2", "m") "," PRODUCT("a3", "r2", "w3",
                                                         "n") "," RELU("r3", "a3",
                                                                       "n") "," PRODUCT("a4", "r3",
                                                                                        "w4", "m"));

/* Operators that differ in names only are priced once: an input has no gradient, so that the first
 * product is another one than the third. */
static void equal_operators_are_one_class(void **state)
{
    struct asked a;
    (void)state;
    ask(&a, four_layers, "\"mesh\":{\"d\":4}");
    const uint32_t want[] = {0, 1, 2, 3, 4, 1, 2};
    assert_int_equal(a.s.graph.n_ops, HV_COUNT(want));
    for (size_t i = 0; i < HV_COUNT(want); i++) {
        assert_int_equal(a.s.class_of[i], want[i]);
    }
    assert_int_equal(a.s.n_edges, 6);
    done(&a);
}

/* Seconds of both passes of the stage as the judge has them. */
static double judged_s(struct asked *a)
{
    struct hv_pass p;
    struct hv_err err = {0};
    struct hv_stage_query q = {.plan = a->doc.plan, .replica = &a->doc.plan->replicas[0]};
    struct hv_stage *one = &a->doc.plan->replicas[0].stages[0]; /* as the judge rewrites it */
    one->n_ranges = hv_stage_op_ranges(one, a->w.in.model.model, &a->arena, &one->ranges);
    one->n_ops = 0;
    one->tp.degree = 4;
    if (hv_cost_pass(a->w.cost, &q, &p, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return p.forward_s + p.input_grad_s + p.weight_grad_s;
}

static double way_s(const struct hv_op_split *w)
{
    return w->forward_s + w->backward_s + w->exchange_s + w->sums_s;
}

/* Chain r, y, z in every combination of ways: the judge's stage with these layouts never takes more
 * than the sum of the ways and of what is between them, since it may find a cheaper way for an
 * operator among its neighbours. Where nothing is between them, only sums of gradients are
 * hidden, and beside exchanges of y the kernels of r and z and the gradient of w. */
static void the_judge_agrees(void **state)
{
    static const int r[][2] = {{-1, -1}, {0, 0}, {1, 1}};
    static const int y[][3] = {{-1, -1, -1}, {0, -1, 0}, {-1, 1, 1},
                               {1, 0, 0},    {1, 0, 1},  {1, 0, -1}};
    size_t n_equal = 0;
    static const char *const of[] = {"{}", "{\"d\":\"b\"}", "{\"d\":\"m\"}", "{\"d\":\"n\"}"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(r) * HV_COUNT(y) * HV_COUNT(r); i++) {
        const int *first = r[i / 18], *middle = y[i / 3 % 6], *last = r[i % 3];
        char stage[512];
        struct asked a;
        (void)snprintf(stage, sizeof stage,
                       "\"mesh\":{\"d\":4},\"shard\":{\"x\":%s,\"r\":%s,\"w\":%s,\"y\":%s,"
                       "\"z\":%s}",
                       of[first[0] < 0 ? 0 : 1 + first[0]], of[first[1] < 0 ? 0 : 1 + first[1]],
                       of[middle[1] < 0 ? 0 : 2 + middle[1]],
                       of[middle[2] < 0    ? 0
                          : middle[2] == 0 ? 1
                                           : 3],
                       of[last[1] < 0    ? 0
                          : last[1] == 0 ? 1
                                         : 3]);
        ask(&a, CHAIN, stage);
        const struct hv_op_split *w[] = {way(&a, 0, first), way(&a, 1, middle), way(&a, 2, last)};
        double between_s = 0, sum_s = way_s(w[0]) + way_s(w[1]) + way_s(w[2]);
        for (size_t e = 0; e < 2; e++) {
            const struct hv_split_table *t = &a.s.tables[a.s.edges[e].table];
            size_t from = (size_t)(w[e] - class_of(&a, e)->split);
            size_t to = (size_t)(w[e + 1] - class_of(&a, e + 1)->split);
            between_s += t->s[from * t->n_to + to];
        }
        sum_s += between_s;
        double s = judged_s(&a);
        if (!(s <= sum_s * (1 + 1e-9))) {
            fail_msg("%s: the judge says %.9g us, the splits %.9g", stage, s * 1e6, sum_s * 1e6);
        }
        double hidden_s = w[0]->forward_s + w[0]->backward_s + w[1]->backward_s / 2 +
                          w[2]->forward_s + w[2]->backward_s;
        for (size_t k = 0; k < 3; k++) {
            hidden_s += w[k]->sums_s;
        }
        if (between_s == 0 && !(s >= (sum_s - hidden_s) * (1 - 1e-9))) {
            fail_msg("%s: the judge says %.9g us, the splits %.9g, of which %.9g may be hidden",
                     stage, s * 1e6, sum_s * 1e6, hidden_s * 1e6);
        }
        n_equal += between_s == 0;
        done(&a);
    }
    assert_int_equal(n_equal, 6);
}

#define CONVOLUTION(in, out, stride)                                                               \
    "{\"format\":\"hetviz.model/"                                                                  \
    "1\",\"name\":\"g\",\"kind\":\"graph\",\"dims\":{\"s\":32,\"c\":16,"                           \
    "\"d\":64,\"g\":16,\"h\":" in ",\"w\":" in ",\"u\":" out ",\"v\":" out                         \
    ",\"p\":3,\"q\":3},\"tensors\":{\"x\":{\"dims\":[\"s\",\"c\",\"h\",\"w\"],\"role\":"           \
    "\"parameter\"},\"k\":{\"dims\":[\"d\",\"g\",\"p\",\"q\"],\"role\":\"parameter\"}},\"ops\":[{" \
    "\"id\":\"y\",\"op\":\"conv\",\"in\":[\"x\",\"k\"],\"out\":[\"s\",\"d\",\"u\",\"v\"]"          \
    ",\"window\":{\"u\":{\"of\":\"h\",\"tap\":\"p\",\"size\":3,\"stride\":" stride                 \
    ",\"pad\":[1,1]},\"v\":{\"of\":\"w\",\"tap\":\"q\",\"size\":3,\"stride\":" stride              \
    ",\"pad\":[1,1]}}}]}"

/* A convolution and both of its gradients are products of as many terms: 2 · sequences · rows ·
 * columns · channels out · channels in · taps FLOPs each, also where the window moves by two. */
static void convolutions_by_hand(void **state)
{
    static const struct {
        const char *model;
        double out;
    } rows[] = {{CONVOLUTION("32", "32", "1"), 32}, {CONVOLUTION("32", "16", "2"), 16}};
    static const int whole[] = {-1, -1, -1}, batch[] = {0, -1, 0};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct asked a;
        ask(&a, rows[i].model, "\"mesh\":{\"d\":4}");
        double us = 2.0 * 32 * rows[i].out * rows[i].out * 64 * 16 * 9 / 100e12 * 1e6;
        assert_us("forward", way(&a, 0, whole)->forward_s, us);
        assert_us("backward", way(&a, 0, whole)->backward_s, 2 * us);
        assert_us("a quarter", way(&a, 0, batch)->forward_s, us / 4);
        assert_us("gradients of a quarter", way(&a, 0, batch)->backward_s, 2 * us / 4);
        done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_by_hand),     cmocka_unit_test(summands_by_hand),
        cmocka_unit_test(between_two_operators), cmocka_unit_test(equal_operators_are_one_class),
        cmocka_unit_test(the_judge_agrees),      cmocka_unit_test(convolutions_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
