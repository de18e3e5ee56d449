/*
 * Hugging Face configs: one table of the names that families give to the same figure, and the
 * look-up of members and figures. A rule of the family (hf_families.c) goes before the names.
 */
#include "solver/io/own/model/hf_int.h"
#include <math.h>
#include <string.h>

#define MAX_SIDE 1000000
#define MAX_PATH 128

static const struct {
    const char *rule; /* its name in the families' rules */
    const char *names[HV__HF_NAMES];
} figures[HV__HF_FIGURE_N] = {
    [HV__HF_HIDDEN] = {"hidden",
                       {"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim",
                        "emb_dim"}},
    [HV__HF_LAYERS] = {"layers", {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}},
    [HV__HF_HEADS] = {"heads",
                      {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"}},
    [HV__HF_KV_HEADS] = {"kv_heads",
                         {"num_key_value_heads", "num_kv_heads", "n_head_kv",
                          "multi_query_group_num", "num_query_groups"}},
    [HV__HF_HEAD_DIM] = {"head_dim", {"head_dim", "kv_channels", "attention_head_dim", "d_head"}},
    [HV__HF_FFN] = {"ffn",
                    {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff",
                     "hidden_dim", "dff", "d_inner", "mlp_dim"}},
    [HV__HF_VOCAB] = {"vocab", {"vocab_size", "padded_vocab_size"}},
    [HV__HF_MAX_SEQUENCE] = {"max_sequence",
                             {"max_position_embeddings", "n_positions", "seq_length", "n_ctx",
                              "max_seq_len", "max_sequence_length", "context_length"}},
    [HV__HF_EXPERTS] = {"experts",
                        {"num_local_experts", "num_experts", "n_routed_experts",
                         "moe_num_experts"}},
    [HV__HF_TOP_K] = {"top_k",
                      {"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                       "moe_top_k", "moe_k", "top_k_experts", "moe_topk"}},
    [HV__HF_MOE_FFN] = {"moe_ffn",
                        {"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size",
                         "expert_ffn_hidden_size"}},
    [HV__HF_SHARED_EXPERTS] = {"shared_experts",
                               {"n_shared_experts", "num_shared_experts",
                                "moe_num_shared_experts"}},
    [HV__HF_SHARED_FFN] = {"shared_ffn",
                           {"shared_expert_intermediate_size", "shared_intermediate_size",
                            "moe_shared_expert_intermediate_size"}},
    [HV__HF_FIRST_DENSE] = {"first_dense",
                            {"first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"}},
    [HV__HF_MOE_EVERY] = {"moe_every",
                          {"moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step"}},
    [HV__HF_ACTIVATION] = {"activation",
                           {"hidden_act", "activation_function", "hidden_activation",
                            "mlp_hidden_act", "activation", "ff_activation"}},
    [HV__HF_WINDOW] = {"window", {"sliding_window", "sliding_window_size"}},
    [HV__HF_Q_RANK] = {"q_rank", {"q_lora_rank"}},
    [HV__HF_KV_RANK] = {"kv_rank", {"kv_lora_rank"}},
    [HV__HF_ROPE_DIM] = {"rope_dim", {"qk_rope_head_dim"}},
    [HV__HF_NOPE_DIM] = {"nope_dim", {"qk_nope_head_dim"}},
    [HV__HF_VALUE_DIM] = {"value_dim", {"v_head_dim"}},
};

/* ---- members ----------------------------------------------------------------------------------
 */

static void note_read(const struct hv__hf *c, const char *inside, const char *key)
{
    char path[MAX_PATH];
    size_t n = strlen(inside), k = strlen(key);
    if (c->report && n + k < sizeof path) {
        memcpy(path, inside, n);
        memcpy(path + n, key, k + 1);
        json_object_set_new(c->report->read, path, json_true());
    }
}

struct hv_jp hv__hf_member(const struct hv__hf *c, const char *key)
{
    struct hv_jp at = hv_jp_get(&c->p, key);
    if (hv_jp_none(&at)) {
        at.v = NULL;
    } else {
        note_read(c, c->inside, key);
    }
    return at;
}

/* The member of the config, or else of the enclosing one. */
static json_t *member_or_outer(const struct hv__hf *c, const char *key)
{
    struct hv_jp at = hv__hf_member(c, key);
    if (!at.v && c->outer) {
        at = hv_jp_get(c->outer, key);
        if (hv_jp_none(&at)) {
            return NULL;
        }
        note_read(c, "", key);
    }
    return at.v;
}

int hv__hf_int(const struct hv__hf *c, const char *key, int otherwise)
{
    struct hv_jp at = hv__hf_member(c, key);
    double x = json_is_number(at.v) ? json_number_value(at.v) : otherwise;
    return x >= 0 && x <= MAX_SIDE ? (int)x : otherwise;
}

bool hv__hf_flag(const struct hv__hf *c, const char *key, bool otherwise)
{
    json_t *v = member_or_outer(c, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

bool hv__hf_has(const struct hv__hf *c, const char *key)
{
    return hv__hf_member(c, key).v != NULL;
}

bool hv__hf_has_anywhere(const struct hv__hf *c, const char *key)
{
    return member_or_outer(c, key) != NULL;
}

bool hv__hf_listed(const struct hv__hf *c, const char *key, int layer)
{
    json_t *list = hv__hf_member(c, key).v;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *x = json_array_get(list, i);
        if (json_is_integer(x) && json_integer_value(x) == layer) {
            return true;
        }
    }
    return false;
}

const char *hv__hf_layer_type(const struct hv__hf *c, int layer)
{
    const char *s =
        json_string_value(json_array_get(hv__hf_member(c, "layer_types").v, (size_t)layer));
    return s ? s : "";
}

/* ---- rules ------------------------------------------------------------------------------------
 */

/* One evaluation: `varies` becomes true when the formula asks for something of the layer. */
struct evaluation {
    const struct hv__hf *c;
    bool varies;
};

static bool is_name(const char *name, size_t n, const char *want)
{
    return strlen(want) == n && memcmp(name, want, n) == 0;
}

static struct hv__value derived(struct evaluation *e, const char *name, size_t n, bool *found)
{
    const struct hv_model *m = e->c->m;
    const struct hv_block *b = e->c->b;
    const struct {
        const char *name;
        double x;
        bool of_layer;
    } rows[] = {{"i", e->c->layer, true},
                {"h", m ? m->hidden : 0, false},
                {"V", m ? m->vocab : 0, false},
                {"L", m ? (double)m->n_blocks : 0, false},
                {"S", m ? m->max_sequence : 0, false},
                {"heads", b ? b->heads : 0, true},
                {"kv", b ? b->kv_heads : 0, true},
                {"dim", b ? b->head_dim : 0, true},
                {"f", b ? b->ffn : 0, true},
                {"E", b ? b->experts : 0, true},
                {"ef", b ? b->expert_ffn : 0, true},
                {"sf", b ? (double)b->shared_experts * b->shared_ffn : 0, true},
                {"enc", e->c->half == 1, true},
                {"dec", e->c->half == 2, true},
                {"wa", m && b ? hv_block_attention_parameters(m, b) : 0, true},
                {"wf", m && b ? hv_block_ffn_parameters(m, b) : 0, true}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (is_name(name, n, rows[i].name)) {
            *found = true;
            e->varies = e->varies || rows[i].of_layer;
            return hv__value_number(rows[i].x);
        }
    }
    *found = false;
    return (struct hv__value){.kind = HV__MISSING};
}

/* A member by its path ("linear_attn_config.head_dim"). */
static struct hv__value member_at(const struct hv__hf *c, const char *path)
{
    char key[MAX_PATH];
    size_t n = strcspn(path, ".");
    memcpy(key, path, n);
    key[n] = '\0';
    json_t *at = member_or_outer(c, key);
    for (const char *rest = path + n; *rest && at; rest += n) {
        rest++;
        n = strcspn(rest, ".");
        memcpy(key, rest, n);
        key[n] = '\0';
        at = json_object_get(at, key);
    }
    if (at && strchr(path, '.')) {
        note_read(c, c->inside, path);
    }
    return hv__value_of(at);
}

static struct hv__value value_of(const struct hv__hf *c, struct hv__hf_rule *r, bool *varies);

static struct hv__value name_value(void *ctx, const char *name, size_t n)
{
    struct evaluation *e = ctx;
    char key[MAX_PATH];
    bool found;
    struct hv__value v = derived(e, name, n, &found);
    if (found || n >= sizeof key) {
        return v;
    }
    memcpy(key, name, n);
    key[n] = '\0';
    struct hv__hf_rule *r = hv__hf_rule_find(e->c->rules, key);
    return r && !r->busy ? value_of(e->c, r, &e->varies) : member_at(e->c, key);
}

static struct hv__value value_of(const struct hv__hf *c, struct hv__hf_rule *r, bool *varies)
{
    struct evaluation e = {.c = c};
    bool valid;
    if (r->fixed) {
        return r->value;
    }
    r->busy = true;
    struct hv__value v = hv__formula(r->from, r->to, name_value, &e, &valid);
    r->busy = false;
    *varies = *varies || e.varies;
    if (!e.varies && c->m && c->m->n_blocks > 0) {
        r->fixed = true;
        r->value = v;
    }
    return v;
}

struct hv__value hv__hf_rule(const struct hv__hf *c, const char *name)
{
    struct hv__hf_rule *r = hv__hf_rule_find(c->rules, name);
    bool varies = false;
    return r ? value_of(c, r, &varies) : (struct hv__value){.kind = HV__MISSING};
}

bool hv__hf_rule_flag(const struct hv__hf *c, const char *name, bool otherwise)
{
    struct hv__value v = hv__hf_rule(c, name);
    return v.kind == HV__MISSING ? otherwise : hv__value_true(v);
}

bool hv__hf_rule_varies(const struct hv__hf *c, const char *name)
{
    struct hv__hf_rule *r = hv__hf_rule_find(c->rules, name);
    bool varies = false;
    if (r) {
        (void)value_of(c, r, &varies);
    }
    return varies;
}

double hv__hf_extra(const struct hv__hf *c, enum hv__hf_place place, bool *any)
{
    double sum = 0;
    bool varies = false;
    *any = false;
    for (size_t i = 0; i < c->rules->n; i++) {
        struct hv__hf_rule *r = &c->rules->items[i];
        struct hv__value v = {.kind = HV__MISSING};
        if (r->place == (int)place) {
            v = value_of(c, r, &varies);
            *any = true;
        }
        if (v.kind == HV__NUMBER && fabs(v.x) < HV_MAX_EXTRA) {
            r->total += round(v.x);
            sum += round(v.x);
        } else if (r->place == (int)place) {
            r->lacking = true;
        }
    }
    return sum;
}

void hv__hf_tell_extras(const struct hv__hf *c)
{
    for (size_t i = 0; c->report && i < c->rules->n; i++) {
        const struct hv__hf_rule *r = &c->rules->items[i];
        if (r->lacking) {
            const char *text =
                hv_arena_printf(c->arena, "%s: not counted, the config lacks a member of %.*s",
                                r->name, (int)(r->to - r->from), r->from);
            json_array_append_new(c->report->guesses, json_string(text));
        }
        if (r->total != 0) {
            const char *text = hv_arena_printf(c->arena, "%s: %.0f weights", r->name, r->total);
            json_array_append_new(c->report->counted, json_string(text));
        }
    }
}

/* ---- figures ----------------------------------------------------------------------------------
 */

struct hv_jp hv__hf_find(const struct hv__hf *c, enum hv__hf_figure f)
{
    struct hv_jp at = {0};
    for (int i = 0; i < HV__HF_NAMES && figures[f].names[i]; i++) {
        at = hv__hf_member(c, figures[f].names[i]);
        if (at.v) {
            return at;
        }
    }
    at.v = NULL;
    return at;
}

bool hv__hf_given(const struct hv__hf *c, enum hv__hf_figure f)
{
    return hv__hf_rule(c, figures[f].rule).kind != HV__MISSING || hv__hf_find(c, f).v != NULL;
}

enum hv_status hv__hf_opt(const struct hv__hf *c, enum hv__hf_figure f, int64_t lo, int64_t hi,
                          int *io)
{
    struct hv__value ruled = hv__hf_rule(c, figures[f].rule);
    if (ruled.kind == HV__NUMBER) {
        if (ruled.x < (double)lo || ruled.x > (double)hi || ruled.x != floor(ruled.x)) {
            return hv_jp_fail(&c->p, c->err,
                              "the figures of this %s model give %s = %g; expected a whole number "
                              "from %lld to %lld",
                              c->type, figures[f].rule, ruled.x, (long long)lo, (long long)hi);
        }
        *io = (int)ruled.x;
        return HV_OK;
    }
    if (ruled.kind != HV__MISSING) {
        return hv_jp_fail(&c->p, c->err,
                          "the figures of this %s model give no number for %s; expected a whole "
                          "number from %lld to %lld",
                          c->type, figures[f].rule, (long long)lo, (long long)hi);
    }
    struct hv_jp at = hv__hf_find(c, f);
    int64_t x = *io;
    enum hv_status st = at.v ? hv_jp_int(&at, lo, hi, &x, c->err) : HV_OK;
    *io = (int)x;
    return st;
}

enum hv_status hv__hf_need(const struct hv__hf *c, enum hv__hf_figure f, int64_t hi, int *out)
{
    if (!hv__hf_given(c, f)) {
        return hv_jp_fail(&c->p, c->err, "missing key \"%s\" (or another name for it)",
                          figures[f].names[0]);
    }
    return hv__hf_opt(c, f, 1, hi, out);
}
