/*
 * Hugging Face configs as they are. tests/golden/hf holds only the figures of published configs;
 * parameter counts are those of the checkpoints' cards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/io/import/import.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static enum hv_status read_golden(struct hv_model_doc *d, const char *name, struct hv_err *e)
{
    struct hv_str path = {0};
    char file[256];
    snprintf(file, sizeof file, "tests/golden/hf/%s.json", name);
    enum hv_status st = hv_data_path(&path, file, e);
    if (st == HV_OK) {
        st = hv_model_doc_read(d, hv_str_cstr(&path), e);
    }
    hv_str_free(&path);
    return st;
}

static const struct {
    const char *name;
    double total, active;
} golden[] = {
    {"deepseek-v3", 671.0, 37.5},
    {"mixtral-8x22b-v0.1", 140.6, 39.1},
    {"gpt-oss-120b", 116.8, 5.71},
    {"bloom-176b", 176.25, 176.25},
    {"qwen2-14b-cogito", 14.77, 14.77},
    {"llama-4-scout-17b-16e-instruct", 107.8, 17.17}, /* text part of 109e9, 17e9 active */
    {"minimax-m2.5", 228.7, 11.0},
    {"vit-base-patch16-224", 0.0858, 0.0858}, /* 86.6e6 with the head of 1000 classes */
};

static void counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(golden); i++) {
        struct hv_model_doc d;
        struct hv_err e = {0};
        if (read_golden(&d, golden[i].name, &e)) {
            fail_msg("%s", e.text);
        }
        double t = hv_model_parameters(d.model) / 1e9,
               a = hv_model_active_parameters(d.model) / 1e9;
        if (fabs(t / golden[i].total - 1) > 2e-3 || fabs(a / golden[i].active - 1) > 3e-3) {
            fail_msg("%s: %.4f and %.4f", golden[i].name, t, a);
        }
        hv_model_doc_free(&d);
    }
}

static void shapes(void **state)
{
    (void)state;
    struct hv_model_doc d;
    assert_int_equal(read_golden(&d, "deepseek-v3", NULL), HV_OK);
    const struct hv_model *m = d.model;
    assert_int_equal(m->n_blocks, 61);
    assert_int_equal(m->blocks[2].ffn, 18432);
    assert_int_equal(m->blocks[3].experts, 256);
    assert_int_equal(m->blocks[3].shared_ffn, 2048);
    assert_int_equal(m->blocks[0].mla.kv_rank, 512);
    hv_model_doc_free(&d);

    assert_int_equal(read_golden(&d, "gpt-oss-120b", NULL), HV_OK);
    assert_int_equal(d.model->blocks[0].window, 128);
    assert_int_equal(d.model->blocks[1].window, 0);
    hv_model_doc_free(&d);

    assert_int_equal(read_golden(&d, "falcon-180b", NULL), HV_OK);
    assert_int_equal(d.model->blocks[0].kv_heads, 8);
    assert_int_equal(d.model->blocks[0].ffn, 4 * 14848);
    hv_model_doc_free(&d);

    assert_int_equal(read_golden(&d, "gptj", NULL), HV_OK);
    assert_int_equal(d.model->blocks[0].ffn, 4 * 4096); /* n_inner is null */
    assert_int_equal(d.model->position, HV_POSITION_ROPE);
    assert_false(d.model->tied_embeddings);
    hv_model_doc_free(&d);

    assert_int_equal(read_golden(&d, "vit-base-patch16-224", NULL), HV_OK);
    assert_int_equal(d.model->patch_tokens, 197);
    assert_false(d.model->causal);
    hv_model_doc_free(&d);

    assert_int_equal(read_golden(&d, "clip-vision", NULL), HV_OK);
    assert_int_equal(d.model->kind, HV_MODEL_MODULES);
    assert_int_equal(d.model->modules[1].model->hidden, 1664);
    assert_int_equal(d.model->n_blocks, 80);
    hv_model_doc_free(&d);
}

/* Layers that are not all attention and feed-forward: their weights count, and the source says what
 * stands for them. */
static void hybrids(void **state)
{
    (void)state;
    struct hv_model_doc d;
    assert_int_equal(read_golden(&d, "jamba", NULL), HV_OK);
    assert_non_null(strstr(d.model->source, "state-space"));
    assert_int_equal(d.model->blocks[2].window, 0); /* offset 2 of 4 is attention */
    assert_int_equal(d.model->blocks[2].heads, 8);
    assert_int_equal(d.model->blocks[0].window, 128);
    assert_int_equal(d.model->blocks[0].experts, 0);
    assert_int_equal(d.model->blocks[1].experts, 2);
    /* Mamba: 3 h d + d (2 r + 2 n), h 2048, d 4096, r 256, n 4 */
    double weights = hv_block_attention_parameters(d.model, &d.model->blocks[0]);
    assert_true(fabs(weights / 27.3e6 - 1) < 0.02);
    hv_model_doc_free(&d);

    assert_int_equal(read_golden(&d, "whisper", NULL), HV_OK);
    assert_int_equal(d.model->kind, HV_MODEL_MODULES);
    assert_int_equal(d.model->n_edges, 1);
    assert_int_equal(d.model->modules[1].model->n_blocks, 2);
    assert_int_equal(d.model->modules[1].model->blocks[0].ffn, 0);
    hv_model_doc_free(&d);
}

static void reads(const char *text, const char *says)
{
    struct hv_json j = {0};
    struct hv_model_doc d = {0};
    struct hv_err e = {0};
    assert_int_equal(hv_json_parse(&j, text, strlen(text), "config.json", &e), HV_OK);
    enum hv_status st = hv_model_doc_build(&d, j, &e);
    if (!says) {
        if (st) {
            fail_msg("%s", e.text);
        }
        hv_model_doc_free(&d);
        return;
    }
    assert_int_equal(st, HV_EINPUT);
    if (!strstr(e.text, says) || e.line == 0) {
        fail_msg("%u: %s", e.line, e.text);
    }
}

static void refusals(void **state)
{
    (void)state;
    reads("{\"model_type\": \"brand_new\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
          "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100}",
          NULL);
    reads("{\"model_type\": \"brand_new\", \"num_hidden_layers\": 2}", "hidden_size");
    reads("{\"model_type\": \"llama\", \"hidden_size\": 64, \"vocab_size\": 1, "
          "\"num_hidden_layers\": 1000000000}",
          "100000");
    reads("{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
          "\"num_attention_heads\": 5, \"intermediate_size\": 128, \"vocab_size\": 100}",
          "do not divide");
    reads("{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
          "\"num_attention_heads\": 4, \"num_key_value_heads\": 3, \"intermediate_size\": 128, "
          "\"vocab_size\": 100}",
          "kv_heads 3");
    reads("{\"model_type\": \"rwkv\", \"hidden_size\": 64, \"num_hidden_layers\": 1}",
          "vocab_size");
    reads("{\"model_type\": \"bart\", \"d_model\": 64, \"vocab_size\": 100, \"is_decoder\": true, "
          "\"decoder_layers\": 2, \"decoder_attention_heads\": \"x\"}",
          "no number for heads");
    reads("{\"model_type\": \"t5\", \"d_model\": 64, \"vocab_size\": 100, \"num_layers\": 2}",
          "heads");
}

/* The forms in which configs list the layers that are mixtures of experts. */
static void mixtures_are_listed_in_three_ways(void **state)
{
    static const char *const lists[] = {
        "\"mlp_layer_types\":[\"dense\",\"sparse\",\"dense\",\"sparse\"]",
        "\"moe_layer_freq\":[0,1,0,1]", "\"moe_layers\":[1,3]"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(lists); i++) {
        char text[512];
        struct hv_json json;
        struct hv_model_doc d;
        struct hv_err e = {0};
        (void)snprintf(text, sizeof text,
                       "{\"model_type\":\"deepseek_v3\",\"hidden_size\":64,\"num_hidden_layers\":4,"
                       "\"num_attention_heads\":4,\"intermediate_size\":256,\"vocab_size\":1000,"
                       "\"n_routed_experts\":8,\"num_experts_per_tok\":2,"
                       "\"moe_intermediate_size\":32,\"max_position_embeddings\":512,%s}",
                       lists[i]);
        assert_int_equal(hv_json_parse(&json, text, strlen(text), "c", &e), HV_OK);
        if (hv_model_doc_build(&d, json, &e) != HV_OK) {
            fail_msg("%s: %s", lists[i], e.text);
        }
        for (size_t b = 0; b < 4; b++) {
            assert_int_equal(d.model->blocks[b].experts, b % 2 == 1 ? 8 : 0);
            assert_int_equal(d.model->blocks[b].ffn, b % 2 == 1 ? 0 : 256);
        }
        hv_model_doc_free(&d);
    }
}

/* Written out as models of ours they are the same models, block by block. */
static void written_out_they_are_the_same(void **state)
{
    static const char *const names[] = {
        "deepseek-v3",  "mixtral-8x22b-v0.1",   "gpt-oss-120b",
        "bloom-176b",   "qwen2-14b-cogito",     "llama-4-scout-17b-16e-instruct",
        "minimax-m2.5", "vit-base-patch16-224", "jamba",
        "gptj",         "falcon-180b",          "whisper",
        "clip-vision"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        struct hv_model_doc d = {0}, again = {0};
        struct hv_err e = {0};
        struct hv_json json = {0};
        assert_int_equal(read_golden(&d, names[i], &e), HV_OK);
        hv_json_wrap(&json, hv_import_model_json(d.model), names[i]);
        if (hv_model_doc_build(&again, json, &e) != HV_OK) {
            fail_msg("%s: %s", names[i], e.text);
        }
        double t = hv_model_parameters(d.model), u = hv_model_parameters(again.model);
        if (fabs(t / u - 1) > 1e-12) {
            fail_msg("%s: %.6g and %.6g parameters", names[i], t, u);
        }
        assert_int_equal(d.model->n_blocks, again.model->n_blocks);
        for (size_t b = 0; d.model->blocks != NULL && b < d.model->n_blocks; b++) {
            const struct hv_block *x = &d.model->blocks[b], *y = &again.model->blocks[b];
            assert_int_equal(x->heads, y->heads);
            assert_int_equal(x->window, y->window);
            assert_int_equal(x->experts, y->experts);
            assert_true(fabs(hv_block_attention_parameters(d.model, x) -
                             hv_block_attention_parameters(again.model, y)) < 1);
        }
        hv_model_doc_free(&d);
        hv_model_doc_free(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts),
                                       cmocka_unit_test(shapes),
                                       cmocka_unit_test(hybrids),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(mixtures_are_listed_in_three_ways),
                                       cmocka_unit_test(written_out_they_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
