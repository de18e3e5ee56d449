/**
 * Numbers that publications give or that follow from them by hand: bytes of a product, of a halo,
 * of the best split of a small network, reductions of a large one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/io/own/graph/shard_cases.h"
#include "solver/workload/graph/model/build.h"
#include <string.h>

/* Bytes that a device sends in the one case of this text. */
static double sent_bytes(const char *graph, const char *members, struct hv_sharding *out,
                         struct hv_arena *arena)
{
    struct hv_str text = {0};
    struct hv_json doc = {0};
    struct hv_shard_cases cases = {0};
    struct hv_err err = {0};
    hv_str_addf(&text,
                "{\"format\":\"hetviz.shard-cases/1\",\"graphs\":{\"g\":{%s}},\"cases\":[{\"id\":"
                "\"a\",\"graph\":\"g\",%s}]}",
                graph, members);
    if (hv_json_parse(&doc, hv_str_cstr(&text), text.n, "c.json", &err) != HV_OK ||
        hv_shard_cases_read(&cases, &doc, &err) != HV_OK ||
        hv_shard_graph_solve(&cases.cases[0].request, arena, out, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    hv_shard_cases_free(&cases);
    hv_json_free(&doc);
    hv_str_free(&text);
    return out->lowered.sent_bytes;
}

#define PRODUCT                                                                                    \
    "\"dims\":{\"b\":8,\"m\":1024,\"h\":1024},\"tensors\":{\"x\":{\"dims\":[\"b\",\"m\"]},\"w\":"  \
    "{\"dims\":[\"m\",\"h\"],\"role\":\"parameter\"}},\"ops\":[{\"id\":\"y\",\"op\":\"einsum\","   \
    "\"in\":[\"x\",\"w\"],\"out\":[\"b\",\"h\"]}]"
#define SUMMED                                                                                     \
    "\"mesh\":{\"d\":4},\"shard\":{\"x\":{\"m\":[\"d\"]},\"w\":{\"m\":[\"d\"]}},\"outputs\":["     \
    "\"y\"]"

/* GSPMD (Xu et al. 2021), Dot with a split sum: 8 · 1024 · 4 bytes are reduced, 2 · 3/4 of them
 * sent; half of that where the result may lie split. */
static void a_product(void **state)
{
    struct hv_arena arena = {0};
    struct hv_sharding s;
    (void)state;
    assert_true(sent_bytes(PRODUCT, SUMMED, &s, &arena) == 48 * 1024);
    assert_true(sent_bytes(PRODUCT, SUMMED ",\"out_shard\":{\"y\":{\"h\":[\"d\"]}}", &s, &arena) ==
                24 * 1024);
    hv_arena_free(&arena);
}

/* GSPMD, convolution of 3 x 3 on four parts of 56 rows of 56 x 64: a row to each side, 2 · 56 · 64
 * · 4 bytes. */
static void a_halo(void **state)
{
    static const char graph[] =
        "\"dims\":{\"n\":1,\"hi\":56,\"wi\":56,\"h\":56,\"w\":56,\"c\":64,\"k\":64,\"kh\":3,"
        "\"kw\":3},\"tensors\":{\"x\":{\"dims\":[\"n\",\"hi\",\"wi\",\"c\"]},\"f\":{\"dims\":"
        "[\"kh\",\"kw\",\"c\",\"k\"],\"role\":\"parameter\"}},\"ops\":[{\"id\":\"y\",\"op\":"
        "\"conv\",\"in\":[\"x\",\"f\"],\"out\":[\"n\",\"h\",\"w\",\"k\"],\"window\":{\"h\":{\"of\":"
        "\"hi\",\"tap\":\"kh\",\"size\":3,\"pad\":[1,1]},\"w\":{\"of\":\"wi\",\"tap\":\"kw\","
        "\"size\":3,\"pad\":[1,1]}}}]";
    struct hv_arena arena = {0};
    struct hv_sharding s;
    (void)state;
    assert_true(sent_bytes(graph,
                           "\"mesh\":{\"d\":4},\"shard\":{\"x\":{\"hi\":[\"d\"]}},\"out_shard\":"
                           "{\"y\":{\"h\":[\"d\"]}},\"outputs\":[\"y\"]",
                           &s, &arena) == 28672);
    hv_arena_free(&arena);
}

/* Automap (Schaarschmidt et al. 2021): X[8, 64] W1[64, 256] W2[256, 64] on two devices, both
 * weights split, Y whole: of all 12 layouts one sends 512 elements (W1 by columns, W2 by rows: one
 * all-reduce), the next 768. */
static void the_best_of_all_layouts(void **state)
{
    static const char graph[] =
        "\"dims\":{\"b\":8,\"m\":64,\"f\":256,\"n\":64},\"tensors\":{\"x\":{\"dims\":[\"b\",\"m\"]}"
        ","
        "\"w1\":{\"dims\":[\"m\",\"f\"]},\"w2\":{\"dims\":[\"f\",\"n\"]}},\"ops\":[{\"id\":\"h\","
        "\"op\":\"einsum\",\"in\":[\"x\",\"w1\"],\"out\":[\"b\",\"f\"]},{\"id\":\"y\",\"op\":"
        "\"einsum\",\"in\":[\"h\",\"w2\"],\"out\":[\"b\",\"n\"]}]";
    static const char *const x[] = {"", "\"x\":{\"b\":[\"d\"]},", "\"x\":{\"m\":[\"d\"]},"};
    static const char *const w1[] = {"m", "f"}, *const w2[] = {"f", "n"};
    double least = 1e9, next = 1e9;
    size_t best = 0;
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        struct hv_arena arena = {0};
        struct hv_sharding s;
        struct hv_str members = {0};
        hv_str_addf(&members,
                    "\"mesh\":{\"d\":2},\"shard\":{%s\"w1\":{\"%s\":[\"d\"]},\"w2\":{\"%s\":"
                    "[\"d\"]}},\"out_shard\":{\"y\":{}},\"outputs\":[\"y\"]",
                    x[i / 4], w1[i / 2 % 2], w2[i % 2]);
        double elements = sent_bytes(graph, hv_str_cstr(&members), &s, &arena) / 4;
        if (elements < least) {
            next = least;
            least = elements;
            best = i;
            assert_true(
                elements > 512 ||
                (s.lowered.n == 1 && s.lowered.exchange[0].exchange.kind == HV_EXCHANGE_REDUCE));
        } else {
            next = elements < next ? elements : next;
        }
        hv_str_free(&members);
        hv_arena_free(&arena);
    }
    assert_true(least == 512 && next == 768);
    assert_int_equal(best, 2); /* x whole, w1 by f, w2 by f */
}

/* ---- a transformer of 32 layers -------------------------------------------------------------- */

struct network {
    struct hv_graph_builder b;
    uint32_t n, s, t, h, a, d, f, one, three;
};

static uint32_t normed(struct network *x, const char *name, uint32_t in)
{
    struct hv_str w = {0}, v = {0};
    hv_str_addf(&w, "%s.w", name);
    hv_str_addf(&v, "%s.b", name);
    uint32_t all[3] = {in, hv_build_weight(&x->b, hv_str_cstr(&w), HV_DIMS(x->h)),
                       hv_build_weight(&x->b, hv_str_cstr(&v), HV_DIMS(x->h))};
    uint32_t y = hv_build_op(&x->b, name, HV_OP_LAYERNORM, 3, all, HV_DIMS(x->n, x->s, x->h));
    hv_build_over(&x->b, x->h);
    hv_str_free(&w);
    hv_str_free(&v);
    return y;
}

/* A third of the one product of queries, keys and values. */
static uint32_t third(struct network *x, const char *cut, const char *name, uint32_t qkv, int64_t i)
{
    uint32_t y =
        hv_build_op1(&x->b, cut, HV_OP_SLICE, qkv, HV_DIMS(x->n, x->s, x->one, x->a, x->d));
    struct hv_tensor_op *op = hv_build_last(&x->b);
    op->range[op->n_ranges++] = (struct hv_tensor_range){x->three, i, i + 1, 1};
    return hv_build_op1(&x->b, name, HV_OP_REDUCE, y, HV_DIMS(x->n, x->s, x->a, x->d));
}

/* Nine weights: two norms of two, qkv, o, up with a bias, down. */
static uint32_t layer(struct network *x, uint32_t in)
{
    struct hv_graph_builder *b = &x->b;
    struct hv_dim_list rows = HV_DIMS(x->n, x->s, x->h), keys = HV_DIMS(x->n, x->t, x->a, x->d);
    uint32_t w = hv_build_weight(b, "qkv.w", HV_DIMS(x->h, x->three, x->a, x->d));
    uint32_t qkv = hv_build_op2(b, "qkv", HV_OP_EINSUM, normed(x, "norm1", in), w,
                                HV_DIMS(x->n, x->s, x->three, x->a, x->d));
    uint32_t q = third(x, "q3", "q", qkv, 0), k = third(x, "k3", "k", qkv, 1);
    uint32_t v = third(x, "v3", "v", qkv, 2);
    uint32_t p = hv_build_op2(b, "scores", HV_OP_EINSUM, q, k, HV_DIMS(x->n, x->a, x->s, x->t));
    hv_build_as(b, 1, keys);
    p = hv_build_op1(b, "softmax", HV_OP_SOFTMAX, p, HV_DIMS(x->n, x->a, x->s, x->t));
    hv_build_over(b, x->t);
    uint32_t c = hv_build_op2(b, "context", HV_OP_EINSUM, p, v, HV_DIMS(x->n, x->s, x->a, x->d));
    hv_build_as(b, 1, keys);
    w = hv_build_weight(b, "o.w", HV_DIMS(x->a, x->d, x->h));
    uint32_t y = hv_build_op2(b, "sum1", HV_OP_ADD, in,
                              hv_build_op2(b, "o", HV_OP_EINSUM, c, w, rows), rows);
    w = hv_build_weight(b, "up.w", HV_DIMS(x->h, x->f));
    struct hv_dim_list wide = HV_DIMS(x->n, x->s, x->f);
    uint32_t u = hv_build_op2(b, "up", HV_OP_EINSUM, normed(x, "norm2", y), w, wide);
    u = hv_build_op2(b, "biased", HV_OP_ADD, u, hv_build_weight(b, "up.b", HV_DIMS(x->f)), wide);
    u = hv_build_op1(b, "gelu", HV_OP_GELU, u, wide);
    w = hv_build_weight(b, "down.w", HV_DIMS(x->f, x->h));
    return hv_build_op2(b, "sum2", HV_OP_ADD, y, hv_build_op2(b, "down", HV_OP_EINSUM, u, w, rows),
                        rows);
}

static void build_network(struct hv_arena *arena, struct hv_tensor_graph *g)
{
    struct network x = {.b = {.arena = arena, .prefix = "", .dtype = HV_DTYPE_F32}};
    struct hv_graph_builder *b = &x.b;
    struct hv_err err = {0};
    x.n = hv_build_dim(b, "batch", 64);
    x.s = hv_build_dim(b, "tokens", 128);
    x.t = hv_build_dim(b, "keys", 128);
    x.h = hv_build_dim(b, "hidden", 512);
    x.a = hv_build_dim(b, "heads", 8);
    x.d = hv_build_dim(b, "width", 64);
    x.f = hv_build_dim(b, "ffn", 2048);
    x.one = hv_build_dim(b, "one", 1);
    x.three = hv_build_dim(b, "three", 3);
    uint32_t v = hv_build_dim(b, "vocab", 64);
    uint32_t words = hv_build_input(b, "words", HV_DTYPE_S32, HV_DIMS(x.n, x.s));
    uint32_t y =
        hv_build_op2(b, "embedding", HV_OP_EMBEDDING, hv_build_weight(b, "table", HV_DIMS(v, x.h)),
                     words, HV_DIMS(x.n, x.s, x.h));
    hv_build_over(b, v);
    for (int i = 0; i < 32; i++) {
        b->prefix = hv_arena_printf(arena, "layer%d.", i);
        y = layer(&x, y);
    }
    b->prefix = "";
    hv_build_op2(b, "head", HV_OP_EINSUM, y, hv_build_weight(b, "head.w", HV_DIMS(x.h, v)),
                 HV_DIMS(x.n, x.s, v));
    if (hv_build_finish(b, g, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
}

/* Splits the dimension of that name, where the tensor has it. */
static bool split(const struct hv_tensor_graph *g, const struct hv_mesh *m, size_t t,
                  const char *dim, size_t axis, struct hv_layout *l)
{
    size_t at = 0;
    uint32_t d = hv_tensor_graph_dim(g, dim);
    if (!hv_dims_hold(g->tensors[t].dim, g->tensors[t].n_dims, d, &at)) {
        return false;
    }
    for (uint8_t k = m->first[axis]; k < m->first[axis + 1]; k++) {
        hv_axes_push(&l->dim[at], k);
    }
    return true;
}

/* All-reduces of the gradients of all parameters: the batch over 64 devices, and (`model`) heads
 * and feed-forward over 2 more. Gradients lie as their parameters. */
static size_t reductions(const struct hv_tensor_graph *g, bool model)
{
    struct hv_arena arena = {0};
    struct hv_sharding s;
    struct hv_err err = {0};
    const int64_t sizes[] = {64, 2};
    uint32_t loss = g->ops[g->n_ops - 1].out;
    struct hv_given_layout *given = hv_arena_new(&arena, struct hv_given_layout, g->n_given);
    struct hv_sharding_request q = {.graph = g,
                                    .given = given,
                                    .n_given = g->n_given,
                                    .asked = given,
                                    .n_asked = g->n_given,
                                    .grad = true,
                                    .loss = &loss,
                                    .n_loss = 1};
    size_t n = 0, parameters = 0;
    assert_int_equal(hv_mesh_make(&q.mesh, sizes, model ? 2 : 1, &err), HV_OK);
    for (size_t t = 0; t < g->n_given; t++) {
        given[t].tensor = (uint32_t)t;
        given[t].layout = hv_layout_whole(g->tensors[t].n_dims);
        parameters += g->tensors[t].role == HV_TENSOR_PARAMETER;
        if (g->tensors[t].role == HV_TENSOR_INPUT) {
            split(g, &q.mesh, t, "batch", 0, &given[t].layout);
        } else if (model && !split(g, &q.mesh, t, "heads", 1, &given[t].layout)) {
            split(g, &q.mesh, t, "ffn", 1, &given[t].layout);
        }
    }
    assert_int_equal(parameters, 290);
    if (hv_shard_graph_solve(&q, &arena, &s, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < s.lowered.n; i++) {
        n += s.lowered.exchange[i].exchange.kind == HV_EXCHANGE_REDUCE;
    }
    hv_arena_free(&arena);
    return n;
}

/* PartIR (Alabed et al. 2025): 32 layers with 9 weights and 2 more have 290 gradients, each reduced
 * once over the batch; Megatron's split adds 4 per layer: 418. The sizes are such that reducing is
 * the cheapest way of each: 128 tokens on a device, fewer words than that, and a wide feed-forward.
 */
static void reductions_of_a_transformer(void **state)
{
    struct hv_arena arena = {0};
    struct hv_tensor_graph g;
    (void)state;
    build_network(&arena, &g);
    assert_int_equal(reductions(&g, false), 290);
    assert_int_equal(reductions(&g, true), 290 + 4 * 32);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_product), cmocka_unit_test(a_halo),
                                       cmocka_unit_test(the_best_of_all_layouts),
                                       cmocka_unit_test(reductions_of_a_transformer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
