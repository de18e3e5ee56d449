/**
 * Operators, meshes and shapes that cannot be: each is refused and told what to do, before a rule
 * is made of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/io/own/graph/shard_answer.h"
#include "solver/shard/choice.h"
#include <string.h>

static void read_text(const char *text, enum hv_status want, const char *says)
{
    struct hv_json doc = {0};
    struct hv_shard_cases cases = {0};
    struct hv_err err = {0};
    assert_int_equal(hv_json_parse(&doc, text, strlen(text), "c.json", &err), HV_OK);
    enum hv_status st = hv_shard_cases_read(&cases, &doc, &err);
    if (st == HV_OK) {
        struct hv_arena arena = {0};
        struct hv_expansion x;
        st = hv_expand(cases.cases[0].graph, &arena, &x, &err);
        hv_arena_free(&arena);
        hv_shard_cases_free(&cases);
    }
    if (st != want || (says != NULL && strstr(err.text, says) == NULL)) {
        print_message("%s\nsays: %s\nexpected: %s\n", text, err.text, says ? says : "nothing");
        fail();
    }
    hv_json_free(&doc);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* A graph with one operator. */
static void read_op(const char *tensors, const char *op, enum hv_status want, const char *says)
{
    struct hv_str text = {0};
    hv_str_addf(&text,
                "{\"format\":\"hetviz.shard-cases/1\",\"cases\":[{\"id\":\"a\",\"graph\":\"g\"}],"
                "\"graphs\":{\"g\":{\"dims\":{\"b\":8,\"c\":8,\"e\":3,\"f\":16,\"k\":3,\"n\":6,"
                "\"d0\":2,\"d1\":2,\"d2\":2,\"d3\":2,\"d4\":2,\"d5\":2,\"d6\":2,\"d7\":2,\"d8\":2,"
                "\"d9\":2,\"big\":1099511627776},\"tensors\":{%s},\"ops\":[{\"id\":\"y\",%s}]}}}",
                tensors, op);
    read_text(hv_str_cstr(&text), want, says);
    hv_str_free(&text);
}

struct wrong {
    const char *tensors, *op;
    const char *says; /* NULL: the operator is right */
};

static void check_all(const struct wrong *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        read_op(w[i].tensors, w[i].op, w[i].says != NULL ? HV_EINPUT : HV_OK, w[i].says);
    }
}

#define CHECK(list) check_all(list, sizeof(list) / sizeof(list)[0])

#define MATRIX "\"p\":{\"dims\":[\"b\",\"c\"]},\"l\":{\"dims\":[\"b\"],\"dtype\":\"s32\"}"
#define LOSS   "\"op\":\"cross_entropy\",\"in\":[\"p\",\"l\"],\"out\":[\"b\"],\"over\":"
#define SOFT   "\"op\":\"softmax\",\"in\":[\"p\"],\"out\":[\"b\",\"c\"],\"over\":"
#define TWO    "\"p\":{\"dims\":[\"b\"]},\"q\":{\"dims\":[\"c\"]}"
#define CAT    "\"op\":\"concat\",\"in\":[\"p\",\"q\"],"

static void dimensions_to_go_over(void **state)
{
    static const struct wrong list[] = {
        {MATRIX, LOSS "\"c\"", NULL},
        {MATRIX, LOSS "[]", "cross_entropy needs one dimension in \"over\", found 0"},
        {MATRIX, LOSS "[\"e\"]", "\"over\" names \"e\", which operand 1 does not have"},
        {MATRIX, LOSS "[\"b\",\"c\"]", "needs one dimension in \"over\", found 2"},
        {MATRIX, LOSS "\"b\"", "expected the dimensions [\"c\"] of the labels"},
        {MATRIX, SOFT "[\"b\",\"c\"]", NULL},
        {MATRIX, SOFT "\"c\",\"along\":\"b\"", "\"along\" has no effect on softmax: remove it"},
        {TWO, "\"op\":\"neg\",\"in\":[\"p\"],\"out\":[\"b\"],\"parallel\":\"b\"",
         "\"parallel\" has no effect on neg: remove it"},
        {TWO, "\"op\":\"neg\",\"in\":[\"p\"],\"out\":[\"b\"],\"by\":\"max\"",
         "\"by\" has no effect on neg: remove it"},
        {TWO,
         "\"op\":\"exp\",\"in\":[\"p\"],\"out\":[\"b\"],"
         "\"window\":{\"n\":{\"of\":\"b\",\"size\":3}}",
         "\"window\" has no effect on exp: remove it"},
        {TWO, "\"op\":\"exp\",\"in\":[\"p\"],\"out\":[\"b\"],\"range\":{\"b\":[0,3]}",
         "\"range\" has no effect on exp: remove it"},
        {TWO,
         "\"op\":\"exp\",\"in\":[\"p\"],\"out\":[\"b\"],\"groups\":{\"b\":[\"d0\",\"d1\",\"d2\"]}",
         "\"groups\" has no effect on exp: remove it"},
        {MATRIX, SOFT "[]", "softmax needs at least one dimension in \"over\", found 0"},
        {MATRIX, SOFT "\"e\"", "\"over\" names \"e\", which operand 1 does not have"},
        {MATRIX, SOFT "[\"c\",\"c\"]", "\"over\" names \"c\" twice"},
        {TWO, CAT "\"out\":[\"f\"],\"along\":\"f\"", NULL},
        {TWO, CAT "\"out\":[\"f\"],\"along\":[]", "concat needs one dimension in \"along\""},
        {TWO, CAT "\"out\":[\"f\"],\"along\":\"e\"", "which the result does not have"},
    };
    (void)state;
    CHECK(list);
}

#define IMAGE  "\"p\":{\"dims\":[\"b\",\"c\"]},\"w\":{\"dims\":[\"k\",\"c\",\"f\"]}"
#define WINDOW "\"op\":\"conv\",\"in\":[\"p\",\"w\"],\"out\":[\"n\",\"f\"],\"window\":"

static void windows(void **state)
{
    static const struct wrong list[] = {
        {IMAGE, WINDOW "{\"n\":{\"of\":\"b\",\"tap\":\"k\",\"size\":3}}", NULL},
        {IMAGE, WINDOW "{\"n\":{\"of\":\"f\",\"tap\":\"k\",\"size\":3}}",
         "goes over \"f\", which operand 1 does not have"},
        {IMAGE, WINDOW "{\"n\":{\"of\":\"b\",\"tap\":\"e\",\"size\":3}}", "found \"e\""},
        {IMAGE, WINDOW "{\"n\":{\"of\":\"b\",\"size\":3}}", "needs a \"tap\""},
        {IMAGE, WINDOW "{\"e\":{\"of\":\"b\",\"tap\":\"k\",\"size\":3}}",
         "expected windows by dimension of the result, found \"e\""},
        {IMAGE, WINDOW "{\"n\":{\"of\":\"b\",\"tap\":\"k\",\"size\":3,\"dilation\":1099511627776}}",
         "gives 0 elements"},
    };
    (void)state;
    CHECK(list);
}

static void sizes_of_results(void **state)
{
    static const struct wrong list[] = {
        {TWO, CAT "\"out\":[\"e\"],\"along\":\"e\"", "has 3 elements, expected 16"},
        {TWO, "\"op\":\"slice\",\"in\":[\"p\"],\"out\":[\"e\"],\"range\":{\"b\":[0,3]}", NULL},
        {TWO, "\"op\":\"slice\",\"in\":[\"p\"],\"out\":[\"e\"],\"range\":{\"b\":[0,8,3]}", NULL},
        {TWO, "\"op\":\"slice\",\"in\":[\"p\"],\"out\":[\"e\"],\"range\":{\"b\":[0,8]}",
         "has 3 elements, expected 8"},
        {TWO, "\"op\":\"slice\",\"in\":[\"p\"],\"out\":[\"b\"],\"range\":{\"c\":[0,8]}",
         "\"range\" names \"c\", which operand 1 does not have"},
        {TWO, "\"op\":\"pad\",\"in\":[\"p\"],\"out\":[\"f\"],\"range\":{\"b\":[1,0,1]}", NULL},
        {TWO, "\"op\":\"pad\",\"in\":[\"p\"],\"out\":[\"e\"],\"range\":{\"b\":[1,1]}",
         "has 3 elements, expected 10"},
        {TWO, "\"op\":\"top_k\",\"in\":[\"p\"],\"out\":[\"e\"],\"along\":\"b\"", NULL},
        {TWO, "\"op\":\"top_k\",\"in\":[\"p\"],\"out\":[\"f\"],\"along\":\"b\"",
         "has 16 elements, expected at most 8"},
        {MATRIX, "\"op\":\"cumsum\",\"in\":[\"p\"],\"out\":[\"c\",\"b\"],\"along\":\"b\"",
         "expected the same place"},
        {MATRIX, "\"op\":\"gather\",\"in\":[\"p\",\"l\"],\"out\":[\"c\"],\"rows\":\"b\"",
         "expected the dimensions [\"b\", \"c\"] of the result"},
        /* 2^40 · 2^40 · … would be 0 in 64 bits */
        {"\"p\":{\"dims\":[\"b\"]}",
         "\"op\":\"reshape\",\"in\":[\"p\"],\"out\":[\"big\"],\"groups\":{\"b\":[\"big\",\"big\"]}",
         "the parts of \"b\" have 1208925819614629174706176 elements together, it has 8"},
    };
    (void)state;
    CHECK(list);
}

/* 10 dimensions of an intermediate product: two of them were dropped. */
static void a_product_of_too_many_dimensions(void **state)
{
    (void)state;
    read_op("\"p\":{\"dims\":[\"d0\",\"d1\",\"d2\",\"d3\",\"d4\"]},"
            "\"q\":{\"dims\":[\"d5\",\"d6\",\"d7\",\"d8\",\"d9\"]},"
            "\"r\":{\"dims\":[\"d1\",\"d2\",\"d3\",\"d4\",\"d5\",\"d6\",\"d7\",\"d8\"]}",
            "\"op\":\"einsum\",\"in\":[\"p\",\"q\",\"r\"],\"out\":[\"d0\",\"d9\"]", HV_ELIMIT,
            "the product of the first 2 operands has more than 8 dimensions");
}

/* The largest of a transposed softmax is that over c, wherever c lies in the result. */
static void a_softmax_into_another_order(void **state)
{
    static const char text[] =
        "{\"format\":\"hetviz.shard-cases/1\",\"cases\":[{\"id\":\"a\",\"graph\":\"g\"}],"
        "\"graphs\":{\"g\":{\"dims\":{\"b\":4,\"c\":8},\"tensors\":{\"p\":{\"dims\":[\"b\",\"c\"]}}"
        ","
        "\"ops\":[{\"id\":\"y\",\"op\":\"softmax\",\"in\":[\"p\"],\"out\":[\"c\",\"b\"],\"over\":"
        "\"c\"}]}}}";
    struct hv_json doc = {0};
    struct hv_shard_cases cases = {0};
    struct hv_err err = {0};
    struct hv_arena arena = {0};
    struct hv_expansion x;
    size_t reductions = 0;
    (void)state;
    assert_int_equal(hv_json_parse(&doc, text, strlen(text), "c.json", &err), HV_OK);
    assert_int_equal(hv_shard_cases_read(&cases, &doc, &err), HV_OK);
    assert_int_equal(hv_expand(cases.cases[0].graph, &arena, &x, &err), HV_OK);
    for (size_t i = 0; i < x.prims.n_prims; i++) {
        const struct hv_prim *p = &x.prims.prims[i];
        if (p->kind == HV_PRIM_REDUCE) {
            assert_int_equal(hv_prim_shape(&x.prims, p->tensor[1])->size[0], 4);
            reductions++;
        }
    }
    assert_int_equal(reductions, 2);
    hv_arena_free(&arena);
    hv_shard_cases_free(&cases);
    hv_json_free(&doc);
}

/* ---- meshes and shapes ----------------------------------------------------------------------- */

/* (2^31 − 1)³ devices do not fit into 64 bits. */
static void meshes_of_too_many_devices(void **state)
{
    struct hv_mesh m;
    struct hv_err err = {0};
    const int64_t wide[3] = {2147483647, 2147483647, 2147483647}, fine[2] = {32768, 1};
    (void)state;
    assert_int_equal(hv_mesh_make(&m, wide, 3, &err), HV_ELIMIT);
    assert_non_null(strstr(err.text, "at most 2^31 devices"));
    assert_int_equal(hv_mesh_make(&m, fine, 2, &err), HV_OK);
    assert_int_equal(m.n_devices, 32768);
}

static void read_operator(const char *op, const char *shapes, const char *in, const char *says)
{
    struct hv_str text = {0};
    hv_str_addf(&text,
                "{\"format\":\"hetviz.shard-cases/1\",\"cases\":[{\"id\":\"a\",\"mesh\":{\"x\":2},"
                "\"op\":\"%s\",\"shapes\":[%s],\"in\":[%s]}]}",
                op, shapes, in);
    read_text(hv_str_cstr(&text), HV_EINPUT, says);
    hv_str_free(&text);
}

/* Rows of eight dimensions have nine with the row itself. */
static void shapes_of_too_many_dimensions(void **state)
{
    (void)state;
    read_operator("embedding", "[8,4],[2,2,2,2,2,2,2,2]", "[\"R\"],[\"R\"]",
                  "\"embedding\": expected a table of 2 dimensions and row numbers of at most 7");
}

static void shapes_that_do_not_fit(void **state)
{
    (void)state;
    read_operator("mm\",\"means\":\"b m, m h -> b h", "[8,4],[8,16]", "[\"R\"],[\"R\"]",
                  "to \"mm\": the letter \"m\" has the sizes 4 and 8");
    read_operator("mm\",\"means\":\"b m, m h -> b q", "[8,4],[4,16]", "[\"R\"],[\"R\"]",
                  "the result has the letter \"q\", which no operand has");
    read_operator("mm\",\"means\":\"b, m h -> b h", "[8,4],[4,16]", "[\"R\"],[\"R\"]",
                  "operand 1 of \"means\" needs one letter for each of its 2 sizes");
    read_operator("mm\",\"means\":\"b m -> b", "[8,4],[4,16]", "[\"R\"],[\"R\"]",
                  "expected letters of 2 operands and a result");
    read_operator("add", "[8,4],[8,5]", "[\"R\"],[\"R\"]", "size 2 of operand 2 is 5; expected");
    read_operator("sum5", "[8,4]", "[\"R\"]", "a dimension that operand 1 does not have");
    read_operator("merge_heads", "[8,1099511627776,1099511627776]", "[\"R\"]",
                  "the merged dimension has more than 2^40 elements");
}

/* ---- halos ----------------------------------------------------------------------------------- */

/* Three taps over 2^20 rows on 2^15 devices: a row from either side, 2 rows · 4 bytes. A window
 * that reads backwards, r(i) = n − 1 − i on 4 devices, gets a whole other part: part 0 from 3, 1
 * from 2 and back, so distances 3, 1, −1 and −3, each a tile of 4 rows. */
static void halos_of_many_devices(void **state)
{
    struct hv_mesh m;
    struct hv_err err = {0};
    struct hv_exchange x[HV_SHARD_DIMS];
    struct hv_tensor_map map = {.n_dims = 1};
    struct hv_op_rule r = {.map = &map, .n_in = 1};
    int64_t devices = 32768;
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        struct hv_shape shape = {1, {turn == 0 ? 1048576 : 16}, 4};
        struct hv_layout l = hv_layout_whole(1);
        devices = turn == 0 ? 32768 : 4;
        assert_int_equal(hv_mesh_make(&m, &devices, 1, &err), HV_OK);
        for (uint8_t i = 0; i < m.n_atoms; i++) {
            hv_axes_push(&l.dim[0], i);
        }
        map.dim[0].window = turn == 0 ? (struct hv_window){3, 1, 1, 1, 1, 1048576, false}
                                      : (struct hv_window){1, 1, 0, 1, 1, 16, true};
        assert_int_equal(hv_choice_halos(&r, &m, &shape, 0, &l, x), 1);
        assert_true(x[0].local_bytes == (turn == 0 ? 8 : 64));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_to_go_over),
        cmocka_unit_test(windows),
        cmocka_unit_test(sizes_of_results),
        cmocka_unit_test(a_product_of_too_many_dimensions),
        cmocka_unit_test(a_softmax_into_another_order),
        cmocka_unit_test(meshes_of_too_many_devices),
        cmocka_unit_test(shapes_of_too_many_dimensions),
        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(halos_of_many_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
