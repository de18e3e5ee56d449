/*
 * Megatron-LM: arguments one a line, with the layout string of Megatron-Core. Source: Megatron-LM,
 * training/arguments.py; megatron-core, pipeline_parallel_layer_layout.py: chunks are written chunk
 * by chunk over the stages, "E" is the embedding, "t" a layer, "L" the loss.
 */
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"

void hv__megatron_layout(const struct hv__export_grid *g, struct hv_str *out)
{
    int n = g->pp * g->chunks;
    for (int i = 0; i < n; i++) {
        hv_str_adds(out, i == 0 ? "E" : "|");
        if (g->layers[i] == 1) {
            hv_str_adds(out, "t");
        } else if (g->layers[i] > 1) {
            hv_str_addf(out, "t*%d", g->layers[i]);
        }
    }
    hv_str_adds(out, "L");
}

const char *hv__megatron_cp_word(const struct hv_cp *cp)
{
    return cp->scheme == HV_CP_ULYSSES      ? "a2a"
           : cp->scheme == HV_CP_ALL_GATHER ? "all_gather"
                                            : "p2p";
}

/* ---- arguments --------------------------------------------------------------------------------
 */

static void flag(struct hv_str *out, const char *name)
{
    hv_str_addf(out, "--%s\n", name);
}

static void number(struct hv_str *out, const char *name, double value)
{
    char buf[HV_FMT_CAP];
    hv_str_addf(out, "--%s %s\n", name, hv_fmt_double(buf, sizeof buf, value));
}

static void word(struct hv_str *out, const char *name, const char *value)
{
    hv_str_addf(out, "--%s %s\n", name, value);
}

static void add_degrees(const struct hv__export_grid *g, struct hv_str *out)
{
    number(out, "tensor-model-parallel-size", g->tp);
    number(out, "pipeline-model-parallel-size", g->pp);
    if (g->pp * g->chunks > 1) {
        struct hv_str layout = {0};
        hv__megatron_layout(g, &layout);
        word(out, "pipeline-model-parallel-layout", hv_str_cstr(&layout));
        hv_str_free(&layout);
    }
    number(out, "context-parallel-size", g->cp);
    if (g->cp > 1) {
        word(out, "cp-comm-type", hv__megatron_cp_word(&g->stage->cp));
    }
    if (g->ep > 1) {
        number(out, "expert-model-parallel-size", g->ep);
        number(out, "expert-tensor-parallel-size", hv_stage_expert_tp(g->stage, g->ep));
    }
    if (g->stage->sequence_parallel && g->tp > 1) {
        flag(out, "sequence-parallel");
    }
}

static const char *group_of(const struct hv_plan_schedule *s)
{
    for (size_t i = 0; i < s->n_options; i++) {
        if (strcmp(s->options[i].key, "group") == 0) {
            return s->options[i].value;
        }
    }
    return NULL;
}

static void add_batch(struct hv__exporting *x, const struct hv__export_grid *g, struct hv_str *out)
{
    const char *group = group_of(&x->s->plan->schedule);
    number(out, "micro-batch-size", (double)g->micro_batch);
    number(out, "global-batch-size", (double)x->s->job->global_batch);
    if (group != NULL && g->chunks > 1) {
        number(out, "microbatch-group-size-per-virtual-pipeline-stage", strtod(group, NULL));
    }
}

static void add_states(struct hv__exporting *x, const struct hv__export_grid *g, struct hv_str *out)
{
    const struct hv_stage *s = g->stage;
    int64_t holders = g->dp * g->cp;
    const char *recompute = hv__export_recompute(s);
    if (s->zero.stage == 1 && holders > 1) {
        flag(out, "use-distributed-optimizer");
        if (g->shards < holders) {
            number(out, "num-distributed-optimizer-instances", (double)(holders / g->shards));
        }
    }
    if (x->s->plan->sync.overlap && holders > 1) {
        flag(out, "overlap-grad-reduce");
    }
    if (strcmp(recompute, "full") == 0) {
        word(out, "recompute-granularity", "full");
        word(out, "recompute-method", "uniform");
        number(out, "recompute-num-layers", 1);
    } else if (strcmp(recompute, "selective") == 0) {
        word(out, "recompute-granularity", "selective");
    }
    if (s->n_offload > 0) {
        flag(out, "optimizer-cpu-offload");
        flag(out, "use-precision-aware-optimizer");
    }
}

static void add_precision(struct hv__exporting *x, struct hv_str *out)
{
    const struct hv_job *j = x->s->job;
    if (j->precision == HV_FP8 || j->precision == HV_FP4 || j->precision == HV_BF16) {
        flag(out, "bf16");
    } else if (j->precision == HV_FP16) {
        flag(out, "fp16");
    }
    if (j->precision == HV_FP8) {
        word(out, "fp8-format", "hybrid");
    } else if (j->precision == HV_FP4) {
        word(out, "fp4-format", "e2m1");
    }
    if (j->optimizer == HV_OPT_ADAM || j->optimizer == HV_OPT_ADAMW) {
        word(out, "optimizer", "adam");
    } else if (j->optimizer == HV_OPT_SGD || j->optimizer == HV_OPT_MOMENTUM) {
        word(out, "optimizer", "sgd");
    } else {
        hv__export_note(x, "the optimizer of the job is none of Megatron-LM's: give your own");
    }
}

/* ---- the model --------------------------------------------------------------------------------
 */

static bool same_block(const struct hv_block *a, const struct hv_block *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
           a->ffn == b->ffn && a->ffn_kind == b->ffn_kind && a->experts == b->experts &&
           a->expert_ffn == b->expert_ffn && a->top_k == b->top_k && a->window == b->window;
}

/** True where arguments can say the model: one kind of block, attention over all tokens. */
static bool is_plain(const struct hv_model *m)
{
    bool plain = m->kind == HV_MODEL_TRANSFORMER && m->n_blocks > 0 && m->patch_tokens == 0;
    for (size_t i = 0; plain && i < m->n_blocks; i++) {
        const struct hv_block *b = &m->blocks[i];
        plain = same_block(b, &m->blocks[0]) && b->heads > 0 && b->mla.kv_rank == 0 &&
                b->window == 0 && b->attention_extra == 0 && b->ffn_extra == 0;
    }
    return plain && m->position != HV_POSITION_ALIBI;
}

static void add_experts(const struct hv_block *b, struct hv_str *out)
{
    if (b->experts == 0) {
        return;
    }
    number(out, "num-experts", b->experts);
    number(out, "moe-router-topk", b->top_k);
    number(out, "moe-ffn-hidden-size", b->expert_ffn);
    word(out, "moe-token-dispatcher-type", "alltoall");
    flag(out, "moe-grouped-gemm");
    if (b->shared_experts > 0) {
        number(out, "moe-shared-expert-intermediate-size",
               (double)b->shared_experts * b->shared_ffn);
    }
}

static void add_model(struct hv__exporting *x, struct hv_str *out)
{
    const struct hv_model *m = x->s->model;
    number(out, "seq-length", (double)x->s->job->sequence);
    if (!is_plain(m)) {
        hv__export_note(x, "the model's arguments are left out: its layers differ, or it is none "
                           "that arguments describe");
        return;
    }
    const struct hv_block *b = &m->blocks[0];
    number(out, "num-layers", (double)m->n_blocks);
    number(out, "hidden-size", m->hidden);
    number(out, "num-attention-heads", b->heads);
    number(out, "kv-channels", b->head_dim);
    if (b->kv_heads > 0 && b->kv_heads != b->heads) {
        flag(out, "group-query-attention");
        number(out, "num-query-groups", b->kv_heads);
    }
    number(out, "ffn-hidden-size", b->ffn > 0 ? b->ffn : b->expert_ffn);
    if (hv_ffn_kind_matrices(b->ffn_kind) == 3) {
        flag(out, "swiglu");
    } else if (b->ffn_kind == HV_FFN_RELU2) {
        flag(out, "squared-relu");
    }
    add_experts(b, out);
    word(out, "normalization", m->norm == HV_NORM_RMSNORM ? "RMSNorm" : "LayerNorm");
    word(out, "position-embedding-type",
         m->position == HV_POSITION_ROPE      ? "rope"
         : m->position == HV_POSITION_LEARNED ? "learned_absolute"
                                              : "none");
    number(out, "max-position-embeddings",
           (double)(m->max_sequence > x->s->job->sequence ? m->max_sequence : x->s->job->sequence));
    number(out, "vocab-size", m->vocab);
    number(out, "make-vocab-size-divisible-by", 1);
    if (!m->tied_embeddings) {
        flag(out, "untie-embeddings-and-output-weights");
    }
    if (!b->ffn_bias) {
        flag(out, "disable-bias-linear");
    }
    if (!b->ffn_bias && b->attention_bias) {
        flag(out, "add-qkv-bias");
    }
}

/** The capacity that all stages with experts agree on. */
static void add_capacity(const struct hv__export_grid *g, struct hv_str *out)
{
    if (g->stage->n_moe > 0 && g->stage->moe[0].capacity_factor > 0) {
        number(out, "moe-expert-capacity-factor", g->stage->moe[0].capacity_factor);
    }
}

enum hv_status hv__export_megatron(struct hv__exporting *x)
{
    struct hv__export_grid g = hv__export_grid_of(x);
    struct hv_str *out = hv__export_file(x, "megatron.args");
    add_degrees(&g, out);
    add_batch(x, &g, out);
    add_states(x, &g, out);
    add_precision(x, out);
    add_model(x, out);
    add_capacity(&g, out);
    hv__export_note(x, "add data, tokenizer, learning rate and checkpoint arguments of your own");
    hv__export_launch(x, "python pretrain_gpt.py", "megatron.args");
    hv__export_ranks_file(x);
    return HV_OK;
}
