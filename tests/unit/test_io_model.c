/* Model files: expansion into blocks, the other kinds, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <string.h>

static enum hv_status build(struct hv_model_doc *d, const char *text, struct hv_err *e)
{
    struct hv_json j = {0};
    enum hv_status st = hv_json_parse(&j, text, strlen(text), "t.json", e);
    return st ? st : hv_model_doc_build(d, j, e);
}

static struct hv_model_doc must(const char *text)
{
    struct hv_model_doc d = {0};
    struct hv_err e = {0};
    if (build(&d, text, &e)) {
        fail_msg("%u:%u: %s", e.line, e.col, e.text);
    }
    return d;
}

#define TOP   "{\"format\": \"hetviz.model/1\",\n"
#define SHAPE "\"layers\": 6, \"hidden\": 64, \"heads\": 8, \"vocab\": 100"

static void defaults(void **state)
{
    (void)state;
    struct hv_model_doc d = must(TOP SHAPE "}");
    const struct hv_block *b = d.model->blocks;
    assert_int_equal(b->ffn, 256);
    assert_int_equal(b->kv_heads, 8);
    assert_int_equal(b->head_dim, 8);
    assert_true(b->attention_bias && b->ffn_bias && d.model->causal);
    assert_int_equal(d.model->norm, HV_NORM_LAYERNORM);
    uint64_t hash = d.model->hash;
    hv_model_doc_free(&d);
    d = must(TOP SHAPE ", \"ffn_kind\": \"swiglu\"}");
    assert_int_equal(d.model->norm, HV_NORM_RMSNORM);
    assert_int_equal(d.model->position, HV_POSITION_ROPE);
    assert_false(d.model->blocks[0].ffn_bias);
    assert_true(d.model->hash != hash);
    hv_model_doc_free(&d);
}

static void experts(void **state)
{
    (void)state;
    struct hv_model_doc d =
        must(TOP SHAPE ", \"ffn\": 200, \"moe\": {\"experts\": 4, \"top_k\": 2, "
                       "\"ffn\": 50, \"every\": 2, \"first_dense\": 1, "
                       "\"shared_experts\": 1}}");
    static const int want[] = {0, 0, 4, 0, 4, 0};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(d.model->blocks[i].experts, want[i]);
        assert_int_equal(d.model->blocks[i].ffn, want[i] ? 0 : 200);
    }
    assert_int_equal(d.model->blocks[2].shared_ffn, 50);
    hv_model_doc_free(&d);
}

static void overrides(void **state)
{
    (void)state;
    struct hv_model_doc d =
        must(TOP SHAPE ", \"layer_list\": [{\"ffn\": 0}, {\"repeat\": 2, \"window\": 16}, "
                       "{\"heads\": 0}, {\"moe\": {\"experts\": 2}}]}");
    const struct hv_block *b = d.model->blocks;
    assert_int_equal(b[0].ffn, 0);
    assert_int_equal(b[1].window, 16);
    assert_int_equal(b[2].window, 16);
    assert_int_equal(b[3].heads, 0);
    assert_true(hv_block_attention_parameters(d.model, &b[3]) == 0);
    assert_int_equal(b[4].experts, 2);
    assert_int_equal(b[5].experts, 0);
    assert_int_equal(b[5].ffn, 256);
    hv_model_doc_free(&d);
}

/* Weights beside the usual matrices count as parameters and as work; shared ones only take
 * parameters off. */
static void further_weights(void **state)
{
    (void)state;
    struct hv_model_doc plain = must(TOP SHAPE "}"), more, less;
    more = must(TOP SHAPE ", \"attention_extra\": 100, \"ffn_extra\": 10, "
                          "\"embedding_extra\": 1000, \"head_extra\": 7}");
    less = must(TOP SHAPE ", \"attention_extra\": -100}");
    double n = (double)plain.model->n_blocks, p = hv_model_parameters(plain.model);
    const struct hv_block *a = &plain.model->blocks[0], *b = &more.model->blocks[0],
                          *c = &less.model->blocks[0];
    assert_true(hv_model_parameters(more.model) == p + n * 110 + 1007);
    assert_true(hv_model_parameters(less.model) == p - n * 100);
    double work = hv_block_attention_flops(plain.model, a);
    assert_true(hv_block_attention_flops(more.model, b) == work + 200);
    assert_true(hv_block_attention_flops(less.model, c) == work);
    assert_true(hv_block_ffn_flops(more.model, b) == hv_block_ffn_flops(plain.model, a) + 20);
    assert_true(plain.model->hash != more.model->hash && plain.model->hash != less.model->hash);
    hv_model_doc_free(&plain);
    hv_model_doc_free(&more);
    hv_model_doc_free(&less);
    /* a dense feed-forward beside the experts, and layers with and without latent attention */
    more = must(TOP SHAPE
                ", \"layer_list\": [{\"ffn\": 8, \"moe\": {\"experts\": 2, "
                "\"ffn\": 4, \"dense_ffn\": 6}}, {\"mla\": {\"kv_rank\": 4, \"rope_dim\": 2, "
                "\"nope_dim\": 2, \"value_dim\": 4}, \"attention_bias\": true}]}");
    assert_int_equal(more.model->blocks[0].ffn, 6);
    assert_int_equal(more.model->blocks[0].experts, 2);
    assert_int_equal(more.model->blocks[0].mla.kv_rank, 0);
    assert_int_equal(more.model->blocks[1].mla.kv_rank, 4);
    assert_true(more.model->blocks[1].attention_bias);
    hv_model_doc_free(&more);
}

static struct hv_model_doc sample(const char *name)
{
    struct hv_model_doc d = {0};
    struct hv_str path = {0};
    struct hv_err e = {0};
    if (hv_data_path(&path, name, &e) || hv_model_doc_read(&d, hv_str_cstr(&path), &e)) {
        fail_msg("%s", e.text);
    }
    hv_str_free(&path);
    return d;
}

static void other_kinds(void **state)
{
    (void)state;
    struct hv_model_doc d = sample("samples/models/measured-layers.json");
    assert_int_equal(d.model->n_devices, 2);
    assert_int_equal(d.model->n_blocks, 7);
    assert_true(fabs(d.model->measured[1].forward_s[0] - 2.1e-3) < 1e-15);
    assert_true(isnan(d.model->measured[1].transfer_s));
    assert_true(d.model->measured[0].parallel_frac == 1);
    assert_true(hv_model_parameters(d.model) == 1.3e9);
    assert_true(isnan(hv_model_forward_flops(d.model, 1, true)));
    hv_model_doc_free(&d);

    d = sample("samples/models/mlp-graph.json");
    assert_int_equal(d.model->n_edges, 3);
    assert_int_equal(d.model->edges[1].from, 1);
    assert_int_equal(d.model->edges[1].to, 2);
    assert_true(hv_graph_op_flops(d.model, &d.model->ops[1]) == 2.0 * 64 * 4096 * 1024);
    assert_true(hv_graph_op_flops(d.model, &d.model->ops[2]) == 64.0 * 4096);
    hv_model_doc_free(&d);

    d = sample("samples/models/two-towers.json");
    assert_int_equal(d.model->n_modules, 2);
    assert_int_equal(d.model->n_blocks, 56);
    assert_string_equal(d.model->modules[1].name, "llm");
    hv_model_doc_free(&d);
}

static const struct {
    const char *text, *says;
} bad[] = {
    {TOP "\"layers\": 1000000000, \"hidden\": 8, \"heads\": 1, \"vocab\": 9}", "100000"},
    {TOP "\"layers\": 0, \"hidden\": 8, \"heads\": 1, \"vocab\": 9}", "layers"},
    {TOP "\"layers\": 1, \"hidden\": 8, \"heads\": 3, \"vocab\": 9}", "head_dim"},
    {TOP "\"layers\": 1, \"hidden\": 8, \"heads\": 4, \"kv_heads\": 3, \"vocab\": 9}",
     "kv_heads 3 does not divide"},
    {TOP "\"layers\": 1, \"hidden\": 8, \"heads\": 4, \"hiden\": 3, \"vocab\": 9}", "hidden"},
    {TOP "\"layers\": 1, \"hidden\": 8, \"heads\": 4}", "vocab"},
    {TOP "\"layers\": 1.5, \"hidden\": 8, \"heads\": 4, \"vocab\": 9}", "layers"},
    {TOP SHAPE ", \"kind\": \"transfromer\"}", "transformer"},
    {TOP SHAPE ", \"moe\": {\"experts\": 2, \"top_k\": 3}}", "top_k 3"},
    {TOP SHAPE ", \"layer_list\": [{\"repeat\": 7}]}", "more than the 6 layers"},
    {TOP SHAPE ", \"mla\": {\"kv_rank\": 3}}", "rope_dim"},
    {TOP "\"kind\": \"layers\", \"layers\": []}", "1 to 100000"},
    {TOP "\"kind\": \"layers\", \"layers\": [{\"name\": \"x\"}]}", "forward_ms"},
    {TOP "\"kind\": \"layers\", \"layers\": [{\"forward_ms\": {\"A\": -1}}]}",
     "layers[0].forward_ms.A"},
    {TOP "\"kind\": \"graph\", \"ops\": [{\"id\": \"a\"}, {\"id\": \"b\"}], \"edges\": "
         "[[\"a\", \"b\"], [\"b\", \"a\"]]}",
     "circle"},
    {TOP "\"kind\": \"graph\", \"ops\": [{\"id\": \"a\"}], \"edges\": [[\"a\", \"a\"]]}", "circle"},
    {TOP "\"kind\": \"graph\", \"ops\": [{\"id\": \"abcd\"}], \"edges\": [[\"abcd\", \"abce\"]]}",
     "did you mean \"abcd\""},
    {TOP "\"kind\": \"graph\", \"ops\": [{\"id\": \"a\"}, {\"id\": \"a\"}]}", "taken"},
    {TOP "\"kind\": \"graph\", \"ops\": [{\"id\": \"a\", \"out\": [\"b\"]}]}", "dims"},
    {TOP "\"kind\": \"modules\", \"modules\": {}}", "1 to 1000"},
    {TOP "\"kind\": \"modules\", \"modules\": {\"a\": {" SHAPE "}, \"b\": {\"layers\": 99999, "
         "\"hidden\": 8, \"heads\": 1, \"vocab\": 9}}}",
     "layers together"},
    {TOP "\"kind\": \"modules\", \"modules\": {\"a\": {" SHAPE "}}, \"edges\": [[\"a\", \"b\"]]}",
     "edges[0][1]"},
    {TOP "\"kind\": \"modules\", \"modules\": {\"a\": {\"layers\": 2}}}", "modules.a"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        struct hv_model_doc d = {0};
        struct hv_err e = {0};
        if (build(&d, bad[i].text, &e) != HV_EINPUT) {
            fail_msg("row %zu is read", i);
        }
        if (e.line == 0 || !strstr(e.text, bad[i].says)) {
            fail_msg("row %zu: %u:%u: %s", i, e.line, e.col, e.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),    cmocka_unit_test(experts),
        cmocka_unit_test(overrides),   cmocka_unit_test(further_weights),
        cmocka_unit_test(other_kinds), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
