/* Parameters and FLOPs of published models, counted here from their published shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <string.h>

static struct hv_model_doc read_model(const char *name)
{
    struct hv_model_doc d;
    struct hv_err e = {0};
    if (hv_model_doc_read(&d, name, &e)) {
        fail_msg("%s: %s", name, e.text);
    }
    return d;
}

/* A shape as published: `matrices` of a feed-forward, `used` experts per token of `experts`. */
struct shape {
    const char *name; /* in the catalogue */
    double layers, hidden, heads, kv_heads, head_dim, ffn, matrices, vocab;
    double experts, used;
};

/* Sources: GPT-3 arXiv 2005.14165 table 2.1 (vocabulary of GPT-2); Llama 2 arXiv 2307.09288 and
 * Llama 3 arXiv 2407.21783 table 3 with the released configurations; Mistral arXiv 2310.06825
 * table 1; Mixtral arXiv 2401.04088 table 1; OPT arXiv 2205.01068 table 1; BLOOM arXiv 2211.05100
 * table 3; GPT-NeoX arXiv 2204.06745; Qwen2.5 and Qwen3 released configurations; Gemma arXiv
 * 2403.08295 table 1. */
static const struct shape shapes[] = {
    {"gpt3-125m", 12, 768, 12, 12, 64, 3072, 2, 50257, 0, 1},
    {"gpt3-350m", 24, 1024, 16, 16, 64, 4096, 2, 50257, 0, 1},
    {"gpt3-760m", 24, 1536, 16, 16, 96, 6144, 2, 50257, 0, 1},
    {"gpt3-2.7b", 32, 2560, 32, 32, 80, 10240, 2, 50257, 0, 1},
    {"gpt3-6.7b", 32, 4096, 32, 32, 128, 16384, 2, 50257, 0, 1},
    {"gpt3-175b", 96, 12288, 96, 96, 128, 49152, 2, 50257, 0, 1},
    {"gpt2-xl", 48, 1600, 25, 25, 64, 6400, 2, 50257, 0, 1},
    {"llama-2-7b", 32, 4096, 32, 32, 128, 11008, 3, 32000, 0, 1},
    {"llama-2-13b", 40, 5120, 40, 40, 128, 13824, 3, 32000, 0, 1},
    {"llama-2-70b", 80, 8192, 64, 8, 128, 28672, 3, 32000, 0, 1},
    {"llama-3-8b", 32, 4096, 32, 8, 128, 14336, 3, 128256, 0, 1},
    {"llama-3-70b", 80, 8192, 64, 8, 128, 28672, 3, 128256, 0, 1},
    {"llama-3-405b", 126, 16384, 128, 8, 128, 53248, 3, 128256, 0, 1},
    {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 3, 32000, 0, 1},
    {"mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 3, 32000, 8, 2},
    {"mixtral-8x22b", 56, 6144, 48, 8, 128, 16384, 3, 32768, 8, 2},
    {"opt-30b", 48, 7168, 56, 56, 128, 28672, 2, 50272, 0, 1},
    {"opt-66b", 64, 9216, 72, 72, 128, 36864, 2, 50272, 0, 1},
    {"bloom-176b", 70, 14336, 112, 112, 128, 57344, 2, 250880, 0, 1},
    {"gpt-neox-20b", 44, 6144, 64, 64, 96, 24576, 2, 50432, 0, 1},
    {"qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 3, 152064, 0, 1},
    {"qwen3-30b-a3b", 48, 2048, 32, 4, 128, 768, 3, 151936, 128, 8},
    {"qwen3-235b-a22b", 94, 4096, 64, 4, 128, 1536, 3, 151936, 128, 8},
    {"gemma-7b", 28, 3072, 16, 16, 256, 24576, 3, 256000, 0, 1},
};

/* Weights of the matrices that one token meets, without the embedding that is only looked up. */
static double matrices_per_token(const struct shape *s)
{
    double attention = s->hidden * s->head_dim * (2 * s->heads + 2 * s->kv_heads);
    double ffn = s->matrices * s->hidden * s->ffn * s->used + s->hidden * s->experts;
    return s->layers * (attention + ffn) + s->hidden * s->vocab;
}

/* Two FLOPs per weight and token, and 4·heads·dim per pair of tokens, half of them when causal. */
static void flops_of_published_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(shapes); i++) {
        const struct shape *s = &shapes[i];
        struct hv_model_doc d = read_model(s->name);
        for (double tokens = 512; tokens <= 2048; tokens *= 2) {
            double core = 4 * s->layers * s->heads * s->head_dim * tokens * tokens;
            double want = 2 * tokens * matrices_per_token(s);
            double all = hv_model_forward_flops(d.model, tokens, false);
            double half = hv_model_forward_flops(d.model, tokens, true);
            if (fabs(all / (want + core) - 1) > 1e-12 ||
                fabs(half / (want + core / 2) - 1) > 1e-12) {
                fail_msg("%s: %.6g and %.6g FLOPs, want %.6g and %.6g", s->name, all, half,
                         want + core, want + core / 2);
            }
        }
        hv_model_doc_free(&d);
    }
}

/* GPT-3, arXiv 2005.14165, table D.1: training FLOPs of 300e9 tokens at 6 per parameter and token;
 * Llama 3 405B, arXiv 2407.21783, section 3: 3.8e25 over 15.6e12 tokens. */
static void training_compute(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double tokens, flops, tolerance;
    } rows[] = {
        {"gpt3-125m", 300e9, 2.25e20, 0.005},     {"gpt3-350m", 300e9, 6.41e20, 0.005},
        {"gpt3-760m", 300e9, 1.37e21, 0.005},     {"gpt3-1.3b", 300e9, 2.38e21, 0.006},
        {"gpt3-2.7b", 300e9, 4.77e21, 0.005},     {"gpt3-6.7b", 300e9, 1.20e22, 0.005},
        {"gpt3-13b", 300e9, 2.31e22, 0.005},      {"gpt3-175b", 300e9, 3.14e23, 0.005},
        {"llama-3-405b", 15.6e12, 3.8e25, 0.005},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_model_doc d = read_model(rows[i].name);
        double got = 6 * hv_model_active_parameters(d.model) * rows[i].tokens;
        if (fabs(got / rows[i].flops - 1) > rows[i].tolerance) {
            fail_msg("%s: %.4g, published %.4g", rows[i].name, got, rows[i].flops);
        }
        hv_model_doc_free(&d);
    }
}

/* What norms, biases, positions and a head of its own add to the matrices stays small; whole counts
 * against released checkpoints are in test_workload_model.c. */
static void parameters_follow_matrices(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(shapes); i++) {
        const struct shape *s = &shapes[i];
        struct hv_model_doc d = read_model(s->name);
        double table = d.model->tied_embeddings ? 0 : s->hidden * s->vocab;
        double want = matrices_per_token(s) + table;
        if (d.model->position == HV_POSITION_LEARNED) {
            want += s->hidden * d.model->max_sequence;
        }
        double got = hv_model_active_parameters(d.model);
        if (got < want * (1 - 1e-12) || got > want * 1.002) {
            fail_msg("%s: %.6g active parameters, %.6g in matrices", s->name, got, want);
        }
        hv_model_doc_free(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(flops_of_published_models),
                                       cmocka_unit_test(training_compute),
                                       cmocka_unit_test(parameters_follow_matrices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
