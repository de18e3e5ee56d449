/*
 * Reads an unmodified Hugging Face config.json. Families whose layers hetviz has no cost for are
 * rejected with the reason; approximations are listed in the model's `source`. Configs with
 * different kinds of layers are read in hf_hybrid.c.
 */
#include "solver/base/units.h"
#include "solver/io/own/model/hf_int.h"
#include <string.h>

#define MAX_NESTED 3 /* configs inside configs */
#define MAX_TOWERS 8 /* of one config */

bool hv__hf_looks_like(const struct hv_jp *p)
{
    static const char *const signs[] = {"model_type", "architectures", "hidden_size",      "n_embd",
                                        "d_model",    "text_config",   "num_hidden_layers"};
    if (!json_is_object(p->v) || json_object_get(p->v, "format")) {
        return false;
    }
    for (size_t i = 0; i < HV_COUNT(signs); i++) {
        if (json_object_get(p->v, signs[i])) {
            return true;
        }
    }
    return false;
}

static int word_of(struct hv__value v, const char *const *words, size_t n, int otherwise)
{
    for (size_t i = 0; i < n; i++) {
        otherwise = hv__value_is(v, words[i]) ? (int)i : otherwise;
    }
    return otherwise;
}

static bool is_version_5(const struct hv_jp *p)
{
    const char *s = json_string_value(json_object_get(p->v, "transformers_version"));
    return s && strncmp(s, "5.", 2) == 0;
}

void hv__hf_style(const struct hv__hf *c, struct hv_model *m)
{
    static const char *const norms[] = {"layernorm", "rmsnorm"};
    static const char *const positions[] = {"learned", "rope", "alibi", "none"};
    bool rms = hv__hf_has(c, "rms_norm_eps");
    bool rope = hv__hf_has(c, "rope_theta") || hv__hf_has(c, "rope_scaling") ||
                hv__hf_has(c, "rope_parameters") || hv__hf_has(c, "rotary_dim");
    m->norm = (enum hv_norm_kind)word_of(hv__hf_rule(c, "norm"), norms, HV_COUNT(norms),
                                         rms ? HV_NORM_RMSNORM : HV_NORM_LAYERNORM);
    m->position =
        (enum hv_position_kind)word_of(hv__hf_rule(c, "position"), positions, HV_COUNT(positions),
                                       rope || rms ? HV_POSITION_ROPE : HV_POSITION_LEARNED);
    if (hv__hf_flag(c, "alibi", false)) {
        m->position = HV_POSITION_ALIBI;
    }
    m->causal = hv__hf_rule_flag(c, "causal", true);
    struct hv__hf whole = *c;
    if (c->outer && is_version_5(c->outer)) { /* the flag of the whole model counts */
        whole.p = *c->outer;
        whole.inside = "";
    }
    bool usual = hv__hf_flag(c, "tie_word_embeddings", hv__hf_rule_flag(c, "usually_tied", false));
    bool tied = hv__hf_flag(&whole, "tie_word_embeddings", usual);
    m->tied_embeddings = hv__hf_rule_flag(c, "tied", tied);
}

/* Images: the patches are the tokens, and the patch projection takes the place of the embedding. */
static enum hv_status read_image(const struct hv__hf *c, struct hv_model *m)
{
    int image = 224, patch = 16, channels = 3;
    enum hv_status st;
    (void)hv__hf_member(c, "image_size");
    (void)hv__hf_member(c, "num_channels");
    if ((st = hv__read_int(&c->p, "image_size", 1, 65536, &image, c->err)) ||
        (st = hv__read_int(&c->p, "patch_size", 1, 4096, &patch, c->err)) ||
        (st = hv__read_int(&c->p, "num_channels", 1, 1024, &channels, c->err))) {
        return st;
    }
    int side = image / patch > 0 ? image / patch : 1;
    if ((int64_t)patch * patch * channels > HV_MAX_WIDTH || side > 8192) {
        return hv_jp_fail(&c->p, c->err, "an image of %d pixels in patches of %d is too large",
                          image, patch);
    }
    m->patch_tokens = side * side + 1;
    m->max_sequence = m->patch_tokens;
    m->vocab = patch * patch * channels;
    m->tied_embeddings = true;
    return HV_OK;
}

static enum hv_status read_config(struct hv__hf *c, struct hv_model *m)
{
    enum hv_status st;
    c->m = m;
    bool halves = hv__hf_flag(c, "is_encoder_decoder", hv__hf_rule_flag(c, "halves", false));
    if (halves && c->half == 0) { /* a half with its own config is none of two */
        return hv__hf_two_halves(c, m);
    }
    if (hv__hf_rule(c, "halves").kind != HV__MISSING) {
        hv__hf_guess(c,
                     "the config describes a decoder alone: the encoder that its cross-attention "
                     "reads is left out");
    }
    m->kind = HV_MODEL_TRANSFORMER;
    m->max_sequence = 2048;
    hv__hf_style(c, m);
    bool image = hv__hf_has(c, "patch_size") && !hv__hf_find(c, HV__HF_VOCAB).v;
    if ((st = hv__hf_need(c, HV__HF_HIDDEN, HV_MAX_WIDTH, &m->hidden)) ||
        (st = image ? read_image(c, m) : hv__hf_need(c, HV__HF_VOCAB, HV_MAX_WIDTH, &m->vocab)) ||
        (st = image ? HV_OK
                    : hv__hf_opt(c, HV__HF_MAX_SEQUENCE, 1, HV_MAX_WIDTH, &m->max_sequence))) {
        return st;
    }
    return hv__hf_blocks(c, m);
}

static bool has_object(const struct hv_jp *p, const char *key)
{
    return json_is_object(json_object_get(p->v, key));
}

static const char *source_of(const struct hv__hf *c, struct hv_model *m)
{
    const char *note = c->f ? c->f->note : NULL;
    return hv_arena_printf(&m->arena, "Hugging Face config%s%s", note ? "; " : "",
                           note ? note : "");
}

static void find_family(struct hv__hf *c, struct hv_model *m)
{
    bool exact;
    c->rules = hv_arena_new(&m->arena, struct hv__hf_rules, 1);
    c->f = hv__hf_family_of(c->type, &c->exact);
    const char *element = hv__hf_linear_element(c);
    *c->rules =
        hv__hf_rules_of(c->f, element ? hv__hf_family_of(element, &exact) : NULL, &m->arena);
}

/* Where a config lies: at the root, or as a part of another one. */
struct place {
    struct hv_jp p;
    const struct hv_jp *outer;
    const char *inside; /* path of the part with a dot behind it, or "" */
    int half, depth;
};

static enum hv_status start(struct hv__hf *c, const struct place *at, struct hv_model *m,
                            struct hv__hf_report *report, struct hv_err *err)
{
    *c = (struct hv__hf){.p = at->p,
                         .outer = at->outer,
                         .type = "",
                         .inside = at->inside,
                         .half = at->half,
                         .report = report,
                         .arena = &m->arena,
                         .err = err};
    enum hv_status st = hv_jp_opt_string(&at->p, "model_type", &c->type, err);
    (void)hv__hf_member(c, "model_type");
    find_family(c, m);
    m->name = hv_arena_strdup(&m->arena, *c->type ? c->type : "model");
    m->source = source_of(c, m);
    return st;
}

/* The member that holds the language part, or NULL. */
static const char *text_key(const struct hv_jp *p)
{
    static const char *const keys[] = {"text_config", "llm_config", "language_config"};
    for (size_t i = 0; i < HV_COUNT(keys); i++) {
        if (has_object(p, keys[i])) {
            return keys[i];
        }
    }
    return NULL;
}

/* Goes on with the language part: its own config inside, whose family counts when it names one. */
static void enter_text(struct hv__hf *c, const struct place *at, const char *key,
                       struct hv_model *m)
{
    struct hv_jp text = hv_jp_get(&at->p, key);
    const char *type = json_string_value(json_object_get(text.v, "model_type"));
    bool exact = false;
    const struct hv__hf_family *f = type ? hv__hf_family_of(type, &exact) : NULL;
    (void)hv__hf_member(c, key);
    c->p = text;
    c->outer = &at->p;
    c->inside = hv_arena_printf(&m->arena, "%s%s.", at->inside, key);
    if (f && (exact || !c->exact)) {
        c->type = type;
        (void)hv__hf_member(c, "model_type");
        find_family(c, m);
    }
}

static enum hv_status read_place(const struct place *at, struct hv_model *m,
                                 struct hv__hf_report *report, struct hv_err *err);

/* Two parts with a config each, as modules: the towers of CLIP, or encoder and decoder. */
static enum hv_status read_two(const struct hv__hf *c, const struct place *at,
                               const char *const keys[2], const char *const names[2],
                               struct hv_model *m)
{
    enum hv_status st = HV_OK;
    m->kind = HV_MODEL_MODULES;
    m->modules = hv_arena_new(&m->arena, struct hv_module, 2);
    for (int i = 0; i < 2 && st == HV_OK; i++) {
        struct hv_module *x = &m->modules[m->n_modules++];
        (void)hv__hf_member(c, keys[i]);
        x->name = names[i];
        x->model = hv_xcalloc(1, sizeof *x->model);
        x->model->refs = 1;
        struct place part = {.p = hv_jp_get(&at->p, keys[i]),
                             .outer = &at->p,
                             .inside = hv_arena_printf(&m->arena, "%s%s.", at->inside, keys[i]),
                             .half = strcmp(names[1], "decoder") == 0 ? i + 1 : 0,
                             .depth = at->depth + 1};
        st = read_place(&part, x->model, c->report, c->err);
        if (st == HV_OK) {
            hv_model_finish(x->model);
            m->n_blocks += x->model->n_blocks;
            m->max_sequence =
                x->model->max_sequence > m->max_sequence ? x->model->max_sequence : m->max_sequence;
        }
    }
    return st;
}

static enum hv_status read_towers(const struct hv__hf *c, const struct place *at,
                                  struct hv_model *m)
{
    static const char *const keys[] = {"text_config", "vision_config"};
    static const char *const names[] = {"text", "vision"};
    m->source = "Hugging Face config; two towers side by side";
    return read_two(c, at, keys, names, m);
}

static enum hv_status read_nested_halves(const struct hv__hf *c, const struct place *at,
                                         struct hv_model *m)
{
    static const char *const names[] = {"encoder", "decoder"};
    m->source = "Hugging Face config; encoder and decoder side by side, cross-attention counted "
                "with the decoder's self-attention";
    enum hv_status st = read_two(c, at, names, names, m);
    if (st != HV_OK) {
        return st;
    }
    struct hv_model *decoder = m->modules[1].model, *encoder = m->modules[0].model;
    bool own = hv__hf_rule_flag(c, "own_tables", false);
    if (!own && decoder->vocab == encoder->vocab && encoder->kind == HV_MODEL_TRANSFORMER) {
        encoder->embedding_extra -= (double)encoder->vocab * encoder->hidden;
        hv_model_finish(encoder);
    }
    hv__hf_guess(c, "encoder and decoder are two modules; cross-attention is counted with the "
                    "decoder's self-attention");
    hv__hf_join_halves(m);
    return st;
}

/* A decoder with a config of its own reads an encoder by projections as large as its own. */
static void add_cross(const struct hv__hf *c, struct hv_model *m)
{
    for (size_t i = 0; i < m->n_blocks && hv__hf_rule_flag(c, "cross", true); i++) {
        m->blocks[i].attention_extra += hv_block_attention_parameters(m, &m->blocks[i]);
    }
}

/* Weights of a tower whose config can be read, without those of towers in it; 0: it cannot. */
static double tower_weights(const struct hv_jp *p, size_t *layers)
{
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    struct place part = {.p = *p, .inside = "", .depth = MAX_NESTED};
    struct hv_err none = {0};
    m->refs = 1;
    double n = read_place(&part, m, NULL, &none) == HV_OK ? hv_model_parameters(m) : 0;
    *layers = m->n_blocks;
    hv_model_unref(m);
    return n;
}

/* True for the config of a tower for images or sound: an object with a hidden size. */
static bool is_tower(const struct hv__hf *c, const char *key, const char *text)
{
    struct hv__value other = hv__hf_rule(c, "no_tower");
    struct hv__hf sized = {.p = hv_jp_get(&c->p, key), .rules = c->rules, .inside = ""};
    return json_is_object(sized.p.v) && hv_text_ends_with(key, "_config") &&
           !(text && strcmp(key, text) == 0) && !hv__value_is(other, key) &&
           !hv__value_is(other, "*") && hv__hf_find(&sized, HV__HF_HIDDEN).v != NULL;
}

/* Towers beside the language model `c` of the root: their weights are counted at the embedding
 * where the family says so, else they are left out; both are told, with their size. */
static void add_towers(const struct hv__hf *c, const struct place *at, const char *text,
                       struct hv_model *m)
{
    bool any, counted = hv__hf_rule_flag(c, "towers", false);
    size_t n_towers = 0;
    void *it = at->depth < MAX_NESTED ? json_object_iter(at->p.v) : NULL;
    for (; it && n_towers < MAX_TOWERS; it = json_object_iter_next(at->p.v, it)) {
        const char *key = json_object_iter_key(it);
        size_t layers = 0;
        if (!is_tower(c, key, text)) {
            continue;
        }
        struct hv_jp p = hv_jp_get(&at->p, key);
        double n = counted || c->report ? tower_weights(&p, &layers) : 0;
        n_towers++;
        m->embedding_extra += counted ? n : 0;
        m->source = hv_arena_printf(&m->arena, "%s; %s %s", m->source, key,
                                    counted ? "counted by its weights only" : "left out");
        (void)hv__hf_member(c, key);
        if (n > 0) {
            hv__hf_guess(c, "%s, %zu layers of about %.3g weights, %s", key, layers, n,
                         counted ? "is counted at the embedding: its weights, not its work"
                                 : "and its projection are left out");
        } else {
            hv__hf_guess(c, "%s and its projection are left out", key);
        }
    }
    if (counted && text) { /* weights that the root's family adds to those of the text's */
        m->embedding_extra += hv__hf_extra(c, HV__HF_AT_EMBEDDING, &any);
        hv__hf_tell_extras(c);
    }
}

static enum hv_status read_place(const struct place *at, struct hv_model *m,
                                 struct hv__hf_report *report, struct hv_err *err)
{
    struct hv__hf c;
    enum hv_status st = start(&c, at, m, report, err);
    if (st || at->depth > MAX_NESTED) {
        return st ? st : hv_jp_fail(&at->p, err, "configs lie more than %d deep", MAX_NESTED);
    }
    c.m = m;
    bool clip = strcmp(c.type, "clip") == 0 || strcmp(c.type, "siglip") == 0;
    if (clip && has_object(&at->p, "text_config") && has_object(&at->p, "vision_config")) {
        return read_towers(&c, at, m);
    }
    if (has_object(&at->p, "encoder") && has_object(&at->p, "decoder")) {
        return read_nested_halves(&c, at, m);
    }
    const char *text = text_key(&at->p);
    struct hv__hf root = c;
    if (text) {
        enter_text(&c, at, text, m);
    }
    st = read_config(&c, m);
    if (st == HV_OK) {
        if (at->half == 2 && m->kind == HV_MODEL_TRANSFORMER) {
            add_cross(&c, m);
        }
        add_towers(&root, at, text, m);
        hv__hf_tell(&c, m);
    }
    return st;
}

static enum hv_status read_root(const struct hv_jp *p, struct hv_model *m,
                                struct hv__hf_report *report, struct hv_err *err)
{
    return read_place(&(struct place){.p = *p, .inside = ""}, m, report, err);
}

enum hv_status hv__hf_read(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    return read_root(p, m, NULL, err);
}

enum hv_status hv__hf_read_noted(const struct hv_jp *p, struct hv_model *m,
                                 struct hv__hf_report *report, struct hv_err *err)
{
    *report = (struct hv__hf_report){json_object(), json_array(), json_array()};
    return read_root(p, m, report, err);
}
