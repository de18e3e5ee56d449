/** Parts of operator graphs: what arrives and leaves, and other sizes of the batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "solver/io/own/docs.h"
#include "solver/workload/graph/graph_part.h"

static const char text[] =
    "{\"format\":\"hetviz.model/"
    "1\",\"kind\":\"graph\",\"dims\":{\"batch\":4,\"seq\":8,\"tokens\":32,"
    "\"hidden\":16,\"ffn\":64},\"tensors\":{\"x\":{\"dims\":[\"batch\",\"seq\",\"hidden\"]},"
    "\"u\":{\"dims\":[\"hidden\",\"ffn\"],\"role\":\"parameter\"},"
    "\"d\":{\"dims\":[\"ffn\",\"hidden\"],\"role\":\"parameter\"}},\"ops\":["
    "{\"id\":\"flat\",\"op\":\"reshape\",\"in\":[\"x\"],\"out\":[\"tokens\",\"hidden\"],"
    "\"groups\":{\"tokens\":[\"batch\",\"seq\"]}},"
    "{\"id\":\"up\",\"op\":\"einsum\",\"in\":[\"flat\",\"u\"],\"out\":[\"tokens\",\"ffn\"]},"
    "{\"id\":\"down\",\"op\":\"einsum\",\"in\":[\"up\",\"d\"],\"out\":[\"tokens\",\"hidden\"]},"
    "{\"id\":\"sum\",\"op\":\"add\",\"in\":[\"flat\",\"down\"],\"out\":[\"tokens\",\"hidden\"]}]}";

static struct hv_model_doc read_model(const char *body)
{
    struct hv_json j;
    struct hv_model_doc m;
    struct hv_err err = {0};
    if (hv_json_parse(&j, body, strlen(body), "m", &err) || hv_model_doc_build(&m, j, &err)) {
        fail_msg("%s", err.text);
    }
    return m;
}

/** "flat" goes on past "up" and "down" to "sum": 32 · 16 numbers of 4 bytes; "up" has 32 · 64. */
static void what_is_read_later_passes_on(void **state)
{
    struct hv_model_doc m = read_model(text);
    struct hv_arena a = {0};
    struct hv_graph_part p;
    (void)state;

    hv_graph_part_cut(m.model->tensors, 0, 2, &a, &p);
    assert_int_equal(p.n_arriving, 0);
    assert_int_equal(p.n_leaving, 2);
    assert_true(p.passing_bytes == 4 * 32 * (16 + 64));
    hv_graph_part_cut(m.model->tensors, 2, 3, &a, &p);
    assert_int_equal(p.n_arriving, 1);
    assert_int_equal(p.n_leaving, 1);
    assert_string_equal(p.graph.tensors[p.arriving[0]].name, "up");
    assert_int_equal(p.graph.tensors[p.arriving[0]].role, HV_TENSOR_INPUT);
    assert_true(p.passing_bytes == 4 * 32 * (16 + 16));
    hv_graph_part_cut(m.model->tensors, 3, 4, &a, &p);
    assert_int_equal(p.n_arriving, 2);
    assert_int_equal(p.n_leaving, 1);
    assert_true(p.passing_bytes == 0);
    assert_string_equal(m.model->tensors->tensors[p.whole[p.leaving[0]]].name, "sum");
    hv_arena_free(&a);
    hv_model_doc_free(&m);
}

static void sizes_follow_the_batch(void **state)
{
    struct hv_model_doc m = read_model(text);
    struct hv_arena a = {0};
    struct hv_tensor_graph g;
    struct hv_err err = {0};
    (void)state;

    assert_int_equal(hv_tensor_graph_sized(m.model->tensors, 12, &a, &g, &err), HV_OK);
    assert_int_equal(g.dims[hv_tensor_graph_dim(&g, "batch")].size, 12);
    assert_int_equal(g.dims[hv_tensor_graph_dim(&g, "tokens")].size, 96);
    assert_int_equal(g.dims[hv_tensor_graph_dim(&g, "seq")].size, 8);
    assert_int_equal(g.dims[hv_tensor_graph_dim(&g, "hidden")].size, 16);
    /* 2 · 32 · 16 · 64 of each product, and an addition: of one sequence a quarter */
    assert_true(hv_model_forward_flops(m.model, 8, false) ==
                (2 * 2.0 * 32 * 16 * 64 + 32 * 16) / 4);
    hv_arena_free(&a);
    hv_model_doc_free(&m);
}

/** Groups of tokens that do not follow from the batch. */
static void sizes_that_do_not_follow_are_refused(void **state)
{
    static const char other[] =
        "{\"format\":\"hetviz.model/1\",\"kind\":\"graph\",\"dims\":{\"batch\":32,\"g\":4,\"s\":8,"
        "\"hidden\":16},\"tensors\":{\"x\":{\"dims\":[\"batch\",\"hidden\"]}},\"ops\":["
        "{\"id\":\"split\",\"op\":\"reshape\",\"in\":[\"x\"],\"out\":[\"g\",\"s\",\"hidden\"],"
        "\"groups\":{\"batch\":[\"g\",\"s\"]}}]}";
    struct hv_model_doc m = read_model(other);
    struct hv_arena a = {0};
    struct hv_tensor_graph g;
    struct hv_err err = {0};
    (void)state;

    assert_int_equal(hv_tensor_graph_sized(m.model->tensors, 32, &a, &g, &err), HV_OK);
    assert_int_equal(hv_tensor_graph_sized(m.model->tensors, 64, &a, &g, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "operator \"split\""));
    hv_arena_free(&a);
    hv_model_doc_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_read_later_passes_on),
                                       cmocka_unit_test(sizes_follow_the_batch),
                                       cmocka_unit_test(sizes_that_do_not_follow_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
