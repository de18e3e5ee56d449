/** Shared by the files that read Hugging Face configs; the importer uses their names too. */
#ifndef HV_SOLVER_IO_OWN_MODEL_HF_INT_H
#define HV_SOLVER_IO_OWN_MODEL_HF_INT_H

#include "solver/io/own/model/hf_rules.h"
#include "solver/io/own/model/model_int.h"

#define HV__HF_NAMES 12

/** Figures and their possible names; the first that is present and not null counts. */
enum hv__hf_figure {
    HV__HF_HIDDEN,
    HV__HF_LAYERS,
    HV__HF_HEADS,
    HV__HF_KV_HEADS,
    HV__HF_HEAD_DIM,
    HV__HF_FFN,
    HV__HF_VOCAB,
    HV__HF_MAX_SEQUENCE,
    HV__HF_EXPERTS,
    HV__HF_TOP_K,
    HV__HF_MOE_FFN,
    HV__HF_SHARED_EXPERTS,
    HV__HF_SHARED_FFN,
    HV__HF_FIRST_DENSE,
    HV__HF_MOE_EVERY,
    HV__HF_ACTIVATION,
    HV__HF_WINDOW,
    HV__HF_Q_RANK,
    HV__HF_KV_RANK,
    HV__HF_ROPE_DIM,
    HV__HF_NOPE_DIM,
    HV__HF_VALUE_DIM,
    HV__HF_FIGURE_N
};

/** What a reading of a config found, for the report of an import. Owner: the caller, which frees it
 * with hv__hf_report_free. */
struct hv__hf_report {
    json_t *read;    /**< object: a member for each path of the config that was looked up */
    json_t *counted; /**< list of texts: weights beside the usual matrices, by name */
    json_t *guesses; /**< list of texts: what was assumed */
};

/** A config being read: its place, the enclosing place (of a text_config), its family, and, for
 * formulas, the model and the layer under construction. */
struct hv__hf {
    struct hv_jp p;
    const struct hv_jp *outer;
    const struct hv__hf_family *f; /**< NULL: unknown */
    bool exact;                    /**< the family has this very type */
    struct hv__hf_rules *rules;
    const char *type, *inside; /**< inside: of the text's config, "text_config." or "" */
    const struct hv_model *m;
    const struct hv_block *b;
    int layer, half;              /**< half: 1 in an encoder, 2 in a decoder beside one, else 0 */
    struct hv__hf_report *report; /**< NULL: none */
    struct hv_arena *arena;
    struct hv_err *err;
};

/** Reads a config and fills *report (which begins as {0}); report NULL: no report. */
enum hv_status hv__hf_read_noted(const struct hv_jp *p, struct hv_model *m,
                                 struct hv__hf_report *report, struct hv_err *err) HV_NODISCARD;
/** Frees the lists. */
void hv__hf_report_free(struct hv__hf_report *r);
/** Adds a guess; no change without a report. */
void hv__hf_guess(const struct hv__hf *c, const char *fmt, ...) HV_PRINTF(2, 3);

/** A member, which counts as read; v NULL when it is absent or null. */
struct hv_jp hv__hf_member(const struct hv__hf *c, const char *key);
/** A whole number or a fraction cut to one; `otherwise` when absent or out of range. */
int hv__hf_int(const struct hv__hf *c, const char *key, int otherwise);
/** The member that holds a figure; v NULL when none of its names is there. */
struct hv_jp hv__hf_find(const struct hv__hf *c, enum hv__hf_figure f);
/** True where the config or the family's rules give the figure. */
bool hv__hf_given(const struct hv__hf *c, enum hv__hf_figure f);
/** A whole number over *io where the config or the family has it. */
enum hv_status hv__hf_opt(const struct hv__hf *c, enum hv__hf_figure f, int64_t lo, int64_t hi,
                          int *io) HV_NODISCARD;
/** A whole number that the config or the family must have. */
enum hv_status hv__hf_need(const struct hv__hf *c, enum hv__hf_figure f, int64_t hi,
                           int *out) HV_NODISCARD;
/** true or false, of the config or of the enclosing one. */
bool hv__hf_flag(const struct hv__hf *c, const char *key, bool otherwise);
/** True where the member is present and not null; _anywhere: or that of the enclosing config. */
bool hv__hf_has(const struct hv__hf *c, const char *key);
bool hv__hf_has_anywhere(const struct hv__hf *c, const char *key);
/** True where the number is in the list `key`. */
bool hv__hf_listed(const struct hv__hf *c, const char *key, int layer);
/** Name of a layer in layer_types, or "". */
const char *hv__hf_layer_type(const struct hv__hf *c, int layer);

/** The family's rule of that name for the layer at hand; missing where it has none. */
struct hv__value hv__hf_rule(const struct hv__hf *c, const char *name);
/** The rule as a truth value. */
bool hv__hf_rule_flag(const struct hv__hf *c, const char *name, bool otherwise);
/** True where the family has a rule of that name that differs between layers. */
bool hv__hf_rule_varies(const struct hv__hf *c, const char *name);
/** The extra weights of a place for the layer at hand; *any: the family has a rule for it. */
double hv__hf_extra(const struct hv__hf *c, enum hv__hf_place place, bool *any);
/** Reports the extra weights by name. */
void hv__hf_tell_extras(const struct hv__hf *c);
/** Reports what was assumed, and the extra weights; no change without a report. */
void hv__hf_tell(const struct hv__hf *c, const struct hv_model *m);

/** Token mixing of a layer, and its second half. BOTH: attention and linear mixing side by side. */
enum hv__hf_mixer { HV__HF_ATTENTION, HV__HF_LINEAR, HV__HF_BOTH, HV__HF_NO_MIXER };
/** ANY: dense or mixture by the config's general rule. */
enum hv__hf_ffn { HV__HF_ANY_FFN, HV__HF_DENSE, HV__HF_MIXTURE, HV__HF_NO_FFN };
/** A layer of a config whose layers differ. */
struct hv__hf_layer {
    enum hv__hf_mixer mixer;
    enum hv__hf_ffn ffn;
};
/** Composition of a layer. */
struct hv__hf_layer hv__hf_layer_of(const struct hv__hf *c, int layer);
/** The row of the table for the linear layers that the config's members describe, or NULL. */
const char *hv__hf_linear_element(const struct hv__hf *c);
/** Weights of a linear layer's mixing, without its norm. */
double hv__hf_linear_weights(const struct hv__hf *c);
/** Replaces a block's attention by the model of a linear layer with as many weights. */
void hv__hf_linear_block(const struct hv__hf *c, double weights, struct hv_block *b);
/** Queries and outputs of low rank (DeepSeek-V4): fewer heads of the same weights. */
bool hv__hf_is_low_rank(const struct hv__hf *c);
void hv__hf_low_rank_block(const struct hv__hf *c, const struct hv_model *m, struct hv_block *b);
/** Sets the window that compressed attention reads; no change where the config has no
 * compression. */
void hv__hf_compressed_window(const struct hv__hf *c, int layer, const struct hv_model *m,
                              struct hv_block *b);
/** Encoder and decoder as two modules. */
enum hv_status hv__hf_two_halves(struct hv__hf *c, struct hv_model *m) HV_NODISCARD;
/** Connects the two modules: the decoder reads the encoder. */
void hv__hf_join_halves(struct hv_model *m);
/** Norm, position encoding, causality and tied embeddings of the model. */
void hv__hf_style(const struct hv__hf *c, struct hv_model *m);
/** Reads the blocks of the model. */
enum hv_status hv__hf_blocks(struct hv__hf *c, struct hv_model *m) HV_NODISCARD;

#endif
