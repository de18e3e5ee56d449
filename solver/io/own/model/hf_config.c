/*
 * Reads an unmodified Hugging Face config.json. Families whose layers hetviz has no cost for are
 * rejected with the reason; approximations are listed in the model's `source`. Configs with
 * different kinds of layers are read in hf_hybrid.c.
 */
#include "solver/base/units.h"
#include "solver/io/own/model/hf_int.h"
#include <string.h>

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

static void read_style(const struct hv__hf *c, struct hv_model *m)
{
    bool rms = hv__hf_has(c, "rms_norm_eps");
    bool rope = rms || hv__hf_has(c, "rope_theta") || hv__hf_has(c, "rope_scaling") ||
                hv__hf_has(c, "rope_parameters") || hv__hf_has(c, "rotary_dim");
    m->norm = c->f->norm >= 0 ? (enum hv_norm_kind)c->f->norm
              : rms           ? HV_NORM_RMSNORM
                              : HV_NORM_LAYERNORM;
    m->position = c->f->position >= 0 ? (enum hv_position_kind)c->f->position
                  : rope              ? HV_POSITION_ROPE
                                      : HV_POSITION_LEARNED;
    if (hv__hf_flag(c, "alibi", false)) {
        m->position = HV_POSITION_ALIBI;
    }
    m->causal = c->f->causal;
    m->tied_embeddings = hv__hf_flag(c, "tie_word_embeddings", c->f->tied);
}

/* Images: the patches are the tokens, and the patch projection takes the place of the embedding. */
static enum hv_status read_image(const struct hv__hf *c, struct hv_model *m)
{
    int image = 224, patch = 16, channels = 3;
    enum hv_status st;
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

static enum hv_status read_config(const struct hv__hf *c, struct hv_model *m)
{
    enum hv_status st;
    if (c->f->refuse) {
        return hv_jp_fail(&c->p, c->err, "a model of type \"%s\" cannot be read: %s", c->type,
                          c->f->refuse);
    }
    bool halves = c->f->note && strncmp(c->f->note, "encoder", 7) == 0;
    if (halves || hv__hf_flag(c, "is_encoder_decoder", false)) {
        return hv__hf_two_halves(c, m);
    }
    m->kind = HV_MODEL_TRANSFORMER;
    m->max_sequence = 2048;
    read_style(c, m);
    bool image = hv__hf_has(c, "patch_size") && !hv__hf_find(c, HV__HF_VOCAB).v;
    if ((st = hv__hf_need(c, HV__HF_HIDDEN, HV_MAX_WIDTH, &m->hidden)) ||
        (st = image ? read_image(c, m) : hv__hf_need(c, HV__HF_VOCAB, HV_MAX_WIDTH, &m->vocab)) ||
        (st = image ? HV_OK
                    : hv__hf_opt(c, HV__HF_MAX_SEQUENCE, 1, HV_MAX_WIDTH, &m->max_sequence))) {
        return st;
    }
    return hv__hf_blocks(c, m);
}

static enum hv_status start(struct hv__hf *c, const struct hv_jp *p, const struct hv_jp *outer,
                            struct hv_model *m, struct hv_err *err)
{
    *c = (struct hv__hf){.p = *p, .outer = outer, .type = "", .err = err};
    enum hv_status st = hv_jp_opt_string(p, "model_type", &c->type, err);
    const char *inner = outer ? NULL : "text_config";
    struct hv_jp text = inner ? hv_jp_get(p, inner) : (struct hv_jp){0};
    c->f = hv__hf_family_of(c->type);
    const char *note = json_is_object(text.v) && hv__hf_has(c, "vision_config")
                           ? "language part only, the vision tower is left out"
                           : NULL;
    m->name = hv_arena_strdup(&m->arena, *c->type ? c->type : "model");
    m->source = hv_arena_printf(&m->arena, "Hugging Face config%s%s%s%s", c->f->note ? "; " : "",
                                c->f->note ? c->f->note : "", note ? "; " : "", note ? note : "");
    return st;
}

static enum hv_status read_part(const struct hv_jp *p, const struct hv_jp *outer,
                                struct hv_model *m, struct hv_err *err)
{
    struct hv__hf c;
    enum hv_status st = start(&c, p, outer, m, err);
    return st ? st : read_config(&c, m);
}

/* CLIP and similar models: two independent encoders. */
static enum hv_status read_towers(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    static const char *const keys[] = {"text_config", "vision_config"};
    static const char *const names[] = {"text", "vision"};
    m->kind = HV_MODEL_MODULES;
    m->source = "Hugging Face config; two towers side by side";
    m->modules = hv_arena_new(&m->arena, struct hv_module, HV_COUNT(keys));
    for (size_t i = 0; i < HV_COUNT(keys); i++) {
        struct hv_jp at = hv_jp_get(p, keys[i]);
        struct hv_module *x = &m->modules[m->n_modules++];
        x->name = names[i];
        x->model = hv_xcalloc(1, sizeof *x->model);
        x->model->refs = 1;
        enum hv_status st = read_part(&at, p, x->model, err);
        if (st) {
            return st;
        }
        hv_model_finish(x->model);
        m->n_blocks += x->model->n_blocks;
        m->max_sequence =
            x->model->max_sequence > m->max_sequence ? x->model->max_sequence : m->max_sequence;
    }
    return HV_OK;
}

enum hv_status hv__hf_read(const struct hv_jp *p, struct hv_model *m, struct hv_err *err)
{
    struct hv__hf c;
    enum hv_status st = start(&c, p, NULL, m, err);
    if (st) {
        return st;
    }
    struct hv_jp text = hv_jp_get(p, "text_config"), vision = hv_jp_get(p, "vision_config");
    bool towers = strcmp(c.type, "clip") == 0 || strcmp(c.type, "siglip") == 0;
    if (towers && json_is_object(text.v) && json_is_object(vision.v)) {
        return read_towers(p, m, err);
    }
    if (json_is_object(text.v) && !c.f->refuse) {
        c.p = text;
        c.outer = p;
    }
    return read_config(&c, m);
}
