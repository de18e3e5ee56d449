/**
 * Transformers as graphs: parameters and FLOPs of every model of the catalogue are those of its
 * layers, counted by another way, and those of the publications.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/io/own/doc/docs.h"
#include "solver/io/own/graph/long_form.h"
#include "solver/workload/graph/model/transformer.h"
#include "solver/workload/graph/work.h"
#include <dirent.h>
#include <math.h>
#include <string.h>

static double product_flops(const struct hv_tensor_graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_ops; i++) {
        sum += hv_tensor_op_product_flops(g, &g->ops[i]);
    }
    return sum;
}

static void make(const struct hv_model *m, int64_t sequences, int64_t tokens,
                 struct hv_arena *arena, struct hv_tensor_graph *g)
{
    struct hv_err err = {0};
    struct hv_graph_of_model q = {sequences, tokens, HV_DTYPE_BF16, m->patch_tokens == 0};
    if (hv_transformer_graph(m, &q, arena, g, &err) != HV_OK) {
        fail_msg("%s: %s", m->name, err.text);
    }
}

/* Experts choose their gate from a row of all: 2 · copies · experts, which the layers do not count.
 */
static double gate_flops(const struct hv_model *m, double tokens)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        sum += 2 * tokens * m->blocks[i].top_k * m->blocks[i].experts;
    }
    return sum;
}

static void check_model(const char *name, size_t *n)
{
    enum { TOKENS = 256 }; /* no sliding window of the catalogue is shorter than both its sides */
    struct hv_model_doc doc = {0};
    struct hv_arena arena = {0};
    struct hv_tensor_graph g;
    struct hv_err err = {0};
    assert_int_equal(hv_model_doc_read(&doc, name, &err), HV_OK);
    const struct hv_model *m = doc.model;
    if (m->kind == HV_MODEL_TRANSFORMER) {
        make(m, 1, TOKENS, &arena, &g);
        double tokens = m->patch_tokens > 0 ? m->patch_tokens : TOKENS;
        double flops = hv_model_forward_flops(m, TOKENS, false), own = product_flops(&g);
        own -=
            m->patch_tokens > 0 ? 2.0 * tokens * m->vocab * m->hidden : 0; /* patches' embedding */
        own -= gate_flops(m, tokens);
        if (hv_tensor_graph_parameters(&g) != hv_model_parameters(m) ||
            fabs(own / flops - 1) > 1e-12) {
            fail_msg("%s: %.0f parameters, %.0f FLOPs; by layers %.0f, %.0f", name,
                     hv_tensor_graph_parameters(&g), own, hv_model_parameters(m), flops);
        }
        (*n)++;
    }
    hv_arena_free(&arena);
    hv_model_doc_free(&doc);
}

static void every_model_of_the_catalogue(void **state)
{
    DIR *d = opendir("share/models");
    size_t n = 0;
    (void)state;
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        size_t len = strlen(e->d_name);
        if (len > 5 && strcmp(e->d_name + len - 5, ".json") == 0) {
            e->d_name[len - 5] = '\0';
            check_model(e->d_name, &n);
        }
    }
    closedir(d);
    assert_true(n >= 41);
}

/* Sources: total_parameters of the safetensors index on Hugging Face (meta-llama/Meta-Llama-3-8B,
 * mistralai/Mixtral-8x7B-v0.1); arXiv 2412.19437 table 1 (DeepSeek-V3: 671 B); Brown et al. 2020,
 * table D.1 (GPT-3: 174,600 M). 0.5 % each. */
static void published_parameters(void **state)
{
    static const struct {
        const char *name;
        double parameters;
    } rows[] = {{"llama-3-8b", 8030261248},
                {"mixtral-8x7b", 46702792704},
                {"deepseek-v3", 671e9},
                {"gpt3-175b", 174.6e9}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hv_model_doc doc = {0};
        struct hv_arena arena = {0};
        struct hv_tensor_graph g;
        struct hv_err err = {0};
        assert_int_equal(hv_model_doc_read(&doc, rows[i].name, &err), HV_OK);
        make(doc.model, 1, 64, &arena, &g);
        if (fabs(hv_tensor_graph_parameters(&g) / rows[i].parameters - 1) > 0.005) {
            fail_msg("%s: %.0f", rows[i].name, hv_tensor_graph_parameters(&g));
        }
        hv_arena_free(&arena);
        hv_model_doc_free(&doc);
    }
}

/* Narayanan et al. 2021, equation 3 of the appendix, forward: 24 B L s h² (1 + s / 6h) + 2 B s h V.
 */
static void flops_of_gpt3(void **state)
{
    struct hv_model_doc doc = {0};
    struct hv_arena arena = {0};
    struct hv_tensor_graph g;
    struct hv_err err = {0};
    double B = 4, L = 96, s = 2048, h = 12288, V = 50257;
    (void)state;
    assert_int_equal(hv_model_doc_read(&doc, "gpt3-175b", &err), HV_OK);
    assert_true(doc.model->vocab == V);
    make(doc.model, 4, 2048, &arena, &g);
    double want = 24 * B * L * s * h * h * (1 + s / (6 * h)) + 2 * B * s * h * V;
    assert_true(fabs(product_flops(&g) / want - 1) < 1e-12);
    hv_arena_free(&arena);
    hv_model_doc_free(&doc);
}

/* What is written reads back the same. */
static void written_and_read(void **state)
{
    static const char *const names[] = {"deepseek-v3", "bert-large", "gpt-oss-120b", "vit-l-16"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hv_model_doc doc = {0}, graph = {0};
        struct hv_graph_of_model q = {2, 128, HV_DTYPE_F16, false};
        struct hv_err err = {0};
        assert_int_equal(hv_model_doc_read(&doc, names[i], &err), HV_OK);
        if (hv_model_doc_graph(&doc, &q, &graph, &err) != HV_OK) {
            fail_msg("%s: %s", names[i], err.text);
        }
        json_t *again = hv_long_graph_json(graph.model->tensors);
        assert_true(
            json_equal(json_object_get(again, "ops"), json_object_get(graph.json.root, "ops")));
        assert_true(json_equal(json_object_get(again, "tensors"),
                               json_object_get(graph.json.root, "tensors")));
        assert_true(hv_model_parameters(graph.model) == hv_model_parameters(doc.model));
        json_decref(again);
        hv_model_doc_free(&graph);
        hv_model_doc_free(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_of_the_catalogue), cmocka_unit_test(published_parameters),
        cmocka_unit_test(flops_of_gpt3), cmocka_unit_test(written_and_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
