/* Fields of the model screen: members of the model file, of a Hugging Face config.json, of the job.
 * Defaults of omitted members come from the built model and job. */
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/model/model_int.h"

static const char *const ffn_kinds[] = {
#define X(c, name, n) name,
    HV_FFN_KIND_MAP(X)
#undef X
};
static const char *const norms[] = {"layernorm", "rmsnorm"};
static const char *const positions[] = {"learned", "rope", "alibi", "none"};
static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
static const char *const grads[] = {"fp32", "same"};
static const char *const attention[] = {
#define X(c, name) name,
    HV_ATTENTION_MAP(X)
#undef X
};
static const char *const dropout[] = {
#define X(c, name) name,
    HV_DROPOUT_MAP(X)
#undef X
};
static const char *const runtimes[] = {
#define X(c, name) name,
    HV_RUNTIME_MAP(X)
#undef X
};
static const char *const minimize[] = {"time", "cost", "energy"};
static const char *const optimizers[] = {
#define X(c, name, n) name,
    HV_OPTIMIZER_MAP(X)
#undef X
};

#define WHOLE(name, path, unit, help, least)                                                       \
    {                                                                                              \
        name, path, unit, help, HV_DOC_WHOLE, false, NULL, 0, least, INT_MAX                       \
    }
#define MAYBE(name, path, unit, help, least)                                                       \
    {                                                                                              \
        name, path, unit, help, HV_DOC_WHOLE, true, NULL, 0, least, INT_MAX                        \
    }
#define CHOICE(name, path, help, words)                                                            \
    {                                                                                              \
        name, path, NULL, help, HV_DOC_CHOICE, false, words, HV_COUNT(words), 0, 0                 \
    }
#define YES_NO(name, path, help)                                                                   \
    {                                                                                              \
        name, path, NULL, help, HV_DOC_BOOL, false, NULL, 0, 0, 0                                  \
    }
#define WORD(name, path, help)                                                                     \
    {                                                                                              \
        name, path, NULL, help, HV_DOC_WORD, false, NULL, 0, 0, 0                                  \
    }
#define DERIVED(name, path, unit)                                                                  \
    {                                                                                              \
        name, path, unit, "follows from the other fields", HV_DOC_DERIVED, false, NULL, 0, 0, 0    \
    }
#define LABEL(name)                                                                                \
    {                                                                                              \
        name, "", NULL, NULL, HV_DOC_LABEL, false, NULL, 0, 0, 0                                   \
    }
#define AMOUNT(name, path, unit, help)                                                             \
    {                                                                                              \
        name, path, unit, help, HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX                           \
    }

static const struct hv_doc_row transformer_rows[] = {
    WORD("name", "model.name", "set by the model; i imports one"),
    DERIVED("source", "source", NULL),
    WHOLE("layers", "model.layers", NULL, "transformer blocks", 1),
    WHOLE("hidden", "model.hidden", NULL, "width of the residual stream", 1),
    WHOLE("heads", "model.heads", NULL, "attention heads; tp must divide them", 1),
    WHOLE("kv heads", "model.kv_heads", NULL, "key/value heads; fewer than heads: grouped", 1),
    MAYBE("head dim", "model.head_dim", NULL, "empty: hidden / heads", 1),
    WHOLE("ffn", "model.ffn", NULL, "width of the feed-forward part; 0: none", 0),
    CHOICE("ffn kind", "model.ffn_kind", "gated kinds use three matrices, others two", ffn_kinds),
    WHOLE("vocab", "model.vocab", NULL, "size of the vocabulary; tp should divide it", 1),
    YES_NO("tied", "model.tied_embeddings", "head and embedding share weights"),
    WHOLE("max sequence", "model.max_sequence", "tokens", "longest sequence of the model", 1),
    CHOICE("norm", "model.norm", "normalisation", norms),
    CHOICE("position", "model.position", "encoding of positions", positions),
};
static const struct hv_doc_row moe_rows[] = {
    WHOLE("experts", "model.moe.experts", NULL, "routed experts of a block; 0: dense", 0),
    WHOLE("top k", "model.moe.top_k", NULL, "experts per token", 1),
    WHOLE("expert ffn", "model.moe.ffn", NULL, "width of one expert", 1),
    WHOLE("shared experts", "model.moe.shared_experts", NULL, "experts that process every token",
          0),
};
static const struct hv_doc_row hf_rows[] = {
    LABEL("config.json of Hugging Face"),
    DERIVED("name", "name", NULL),
    WHOLE("layers", "model.num_hidden_layers", NULL, "transformer blocks", 1),
    WHOLE("hidden", "model.hidden_size", NULL, "width of the residual stream", 1),
    WHOLE("heads", "model.num_attention_heads", NULL, "attention heads; tp must divide them", 1),
    WHOLE("kv heads", "model.num_key_value_heads", NULL, "key/value heads", 1),
    WHOLE("ffn", "model.intermediate_size", NULL, "width of the feed-forward part", 1),
    WHOLE("vocab", "model.vocab_size", NULL, "size of the vocabulary", 1),
    YES_NO("tied", "model.tie_word_embeddings", "head and embedding share weights"),
    WHOLE("max sequence", "model.max_position_embeddings", "tokens", "longest sequence", 1),
};
static const struct hv_doc_row other_rows[] = {
    WORD("name", "model.name", "set by the model; i imports one"),
    DERIVED("source", "source", NULL),
    DERIVED("kind", "kind", NULL),
    DERIVED("parts", "parts", NULL),
};
static const struct hv_doc_row derived_rows[] = {
    DERIVED("parameters", "parameters", NULL),
    DERIVED("active", "active", "per token"),
    DERIVED("forward", "forward", NULL),
};
static const struct hv_doc_row job_rows[] = {
    LABEL("Training job"),
    WHOLE("global batch", "job.global_batch", "sequences", "per iteration, all replicas", 1),
    WHOLE("sequence", "job.sequence", "tokens", "of one sequence", 1),
    CHOICE("precision", "job.precision", "of weights and matrix products", precisions),
    CHOICE("optimizer", "job.optimizer", "its states per parameter count in memory", optimizers),
    YES_NO("master weights", "job.master_weights", "fp32 copy beside 16-bit weights"),
    CHOICE("gradients", "job.grad_precision", "format in which gradients are summed", grads),
    CHOICE("attention", "job.attention", "flash stores no scores; auto: by device, model",
           attention),
    CHOICE("dropout", "job.dropout", "auto: on for GPT-style models before Hopper", dropout),
    CHOICE("runtime", "job.runtime", "that will run the plan; hetviz: nothing assumed", runtimes),
    CHOICE("minimize", "job.objective.minimize", "what strategies minimise", minimize),
    AMOUNT("at most", "job.objective.max_usd_per_hour", "$/h", "empty: no limit"),
    AMOUNT("memory reserve", "job.memory_reserve_GiB", "GiB", "memory kept free; empty: by device"),
    YES_NO("allow stale", "job.objective.allow_stale", "plans with stale gradients may rank first"),
};

static const struct hv_model *model_of(const struct hv_session *s)
{
    return hv_session_model(s)->model;
}

static bool is_hf(const struct hv_session *s)
{
    return json_object_get(hv_session_tree(s, HV_DOC_MODEL), "format") == NULL;
}

static void add_si(struct hv_str *out, double x, const char *unit)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, hv_known(x) ? hv_fmt_si(buf, sizeof buf, x, unit) : "-");
}

static void parts_text(const struct hv_model *m, struct hv_str *out)
{
    if (m->kind == HV_MODEL_GRAPH) {
        hv_str_addf(out, "%zu operators, %zu edges", m->n_ops, m->n_edges);
    } else if (m->kind == HV_MODEL_MODULES) {
        hv_str_addf(out, "%zu modules, %zu edges", m->n_modules, m->n_edges);
    } else {
        hv_str_addf(out, "%zu layers measured on %zu kinds", m->n_blocks, m->n_devices);
    }
}

static bool derived_text(const struct hv_session *s, const char *path, struct hv_str *out)
{
    const struct hv_model *m = model_of(s);
    double sequence = (double)hv_session_job(s)->job.sequence;
    if (strcmp(path, "source") == 0) {
        const char *from = hv_session_source(s, HV_DOC_MODEL);
        hv_str_adds(out, m->source != NULL ? m->source : from != NULL ? from : "workspace");
    } else if (strcmp(path, "name") == 0) {
        hv_str_adds(out, m->name != NULL ? m->name : "-");
    } else if (strcmp(path, "kind") == 0) {
        hv_str_adds(out, hv_model_kind_name(m->kind));
    } else if (strcmp(path, "parts") == 0) {
        parts_text(m, out);
    } else if (strcmp(path, "parameters") == 0) {
        hv_model_count(out, hv_model_parameters(m));
    } else if (strcmp(path, "active") == 0) {
        hv_model_count(out, hv_model_active_parameters(m));
    } else if (strcmp(path, "forward") == 0) {
        add_si(out, hv_model_forward_flops(m, sequence, true) / sequence, "FLOP");
        hv_str_adds(out, "/token");
    } else {
        return false;
    }
    return true;
}

static bool model_default(const struct hv_model *m, const char *path, struct hv_str *out)
{
    const struct hv_block *b = m->n_blocks > 0 && m->blocks != NULL ? &m->blocks[0] : NULL;
    if (strstr(path, "tie") != NULL) {
        hv_str_adds(out, m->tied_embeddings ? "yes" : "no");
    } else if (strstr(path, "max_") != NULL) {
        hv_str_addf(out, "%d", m->max_sequence);
    } else if (strcmp(path, "model.norm") == 0) {
        hv_str_adds(out, hv_norm_kind_name(m->norm));
    } else if (strcmp(path, "model.position") == 0) {
        hv_str_adds(out, hv_position_kind_name(m->position));
    } else if (b == NULL) {
        return false;
    } else if (strcmp(path, "model.kv_heads") == 0 || strstr(path, "key_value") != NULL) {
        hv_str_addf(out, "%d", b->kv_heads);
    } else if (strcmp(path, "model.head_dim") == 0) {
        hv_str_addf(out, "%d", b->head_dim);
    } else if (strcmp(path, "model.ffn_kind") == 0) {
        hv_str_adds(out, hv_ffn_kind_name(b->ffn_kind));
    } else if (strcmp(path, "model.ffn") == 0) {
        hv_str_addf(out, "%d", b->ffn);
    } else if (strcmp(path, "model.moe.shared_experts") == 0) {
        hv_str_addf(out, "%d", b->shared_experts);
    } else {
        return false;
    }
    return true;
}

static void job_default(const struct hv_job *j, const char *path, struct hv_str *out)
{
    if (strcmp(path, "job.global_batch") == 0) {
        hv_str_addf(out, "%lld", (long long)j->global_batch);
    } else if (strcmp(path, "job.sequence") == 0) {
        hv_str_addf(out, "%lld", (long long)j->sequence);
    } else if (strcmp(path, "job.precision") == 0) {
        hv_str_adds(out, hv_precision_name(j->precision));
    } else if (strcmp(path, "job.optimizer") == 0) {
        hv_str_adds(out, hv_optimizer_name(j->optimizer));
    } else if (strcmp(path, "job.master_weights") == 0) {
        hv_str_adds(out, j->master_weights ? "yes" : "no");
    } else if (strcmp(path, "job.grad_precision") == 0) {
        hv_str_adds(out, j->grad_fp32 ? "fp32" : "same");
    } else if (strcmp(path, "job.attention") == 0) {
        hv_str_adds(out, hv_attention_name(j->attention));
    } else if (strcmp(path, "job.dropout") == 0) {
        hv_str_adds(out, hv_dropout_name(j->dropout));
    } else if (strcmp(path, "job.runtime") == 0) {
        hv_str_adds(out, hv_runtime_name(j->runtime));
    } else if (strcmp(path, "job.objective.minimize") == 0) {
        hv_str_adds(out, hv_minimize_name(j->objective.minimize));
    } else if (strcmp(path, "job.objective.allow_stale") == 0) {
        hv_str_adds(out, j->objective.allow_stale ? "yes" : "no");
    }
}

static void fallback(const void *ctx, const struct hv_session *s, const struct hv_doc_row *row,
                     size_t base, struct hv_str *out)
{
    (void)ctx;
    (void)base;
    if (row->value == HV_DOC_LABEL) {
        return;
    }
    if (row->value == HV_DOC_DERIVED && derived_text(s, row->path, out)) {
        return;
    }
    if (strncmp(row->path, "job.", 4) == 0) {
        job_default(&hv_session_job(s)->job, row->path, out);
    } else {
        (void)model_default(model_of(s), row->path, out);
    }
}

static void add_rows(struct hv_model_screen *v, const struct hv_doc_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hv_doc_form_add(&v->form, &rows[i]);
    }
}

void hv_model_form_fill(struct hv_model_screen *v)
{
    const struct hv_model *m = model_of(v->session);
    hv_doc_form_clear(&v->form);
    v->form.open = true;
    v->form.fallback = fallback;
    v->form.ctx = v;
    if (m->kind != HV_MODEL_TRANSFORMER) {
        add_rows(v, other_rows, HV_COUNT(other_rows));
    } else if (is_hf(v->session)) {
        add_rows(v, hf_rows, HV_COUNT(hf_rows));
    } else {
        add_rows(v, transformer_rows, HV_COUNT(transformer_rows));
        if (json_is_object(hv_session_get(v->session, "model.moe"))) {
            add_rows(v, moe_rows, HV_COUNT(moe_rows));
        }
    }
    add_rows(v, derived_rows, HV_COUNT(derived_rows));
    add_rows(v, job_rows, HV_COUNT(job_rows));
    hv_doc_form_load(&v->form, v->session);
}
