/** Shared by the files that read Hugging Face configs; the importer uses their names too. */
#ifndef HV_SOLVER_IO_OWN_MODEL_HF_INT_H
#define HV_SOLVER_IO_OWN_MODEL_HF_INT_H

#include "solver/io/own/model/model_int.h"

#define HV__HF_NAMES 8

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
    HV__HF_FIGURE_N
};

/** Names of a figure, NULL-terminated within HV__HF_NAMES. */
const char *const *hv__hf_names(enum hv__hf_figure f);

/** Properties of a family; ASK: the config itself or its activation decides. */
enum hv__hf_answer { HV__NO, HV__YES, HV__ASK };

/** Defaults of a family of models. */
struct hv__hf_family {
    const char *type; /* start of model_type; the first row that fits counts */
    const char *refuse;
    enum hv__hf_answer gated;
    int norm, position; /* -1: the config decides */
    bool causal, tied, attention_bias, ffn_bias;
    const char *note;
};

/** The family of a model_type; the last one fits every type. */
const struct hv__hf_family *hv__hf_family_of(const char *type);

/** A config being read: its place, the enclosing place (of a text_config), its family. */
struct hv__hf {
    struct hv_jp p;
    const struct hv_jp *outer;
    const struct hv__hf_family *f;
    const char *type;
    struct hv_err *err;
};

/** The member that holds a figure; v NULL when none of its names is there. */
struct hv_jp hv__hf_find(const struct hv__hf *c, enum hv__hf_figure f);
/** A whole number over *io where the config has it. */
enum hv_status hv__hf_opt(const struct hv__hf *c, enum hv__hf_figure f, int64_t lo, int64_t hi,
                          int *io) HV_NODISCARD;
/** A whole number that the config must have. */
enum hv_status hv__hf_need(const struct hv__hf *c, enum hv__hf_figure f, int64_t hi,
                           int *out) HV_NODISCARD;
/** true or false, of the config or of the enclosing one. */
bool hv__hf_flag(const struct hv__hf *c, const char *key, bool otherwise);
/** True where the member is present and not null. */
bool hv__hf_has(const struct hv__hf *c, const char *key);
/** True where the number is in the list `key`. */
bool hv__hf_listed(const struct hv__hf *c, const char *key, int layer);
/** Name of a layer in layer_types, or "". */
const char *hv__hf_layer_type(const struct hv__hf *c, int layer);
/** Token mixing of a layer, and its second half. */
enum hv__hf_mixer { HV__HF_ATTENTION, HV__HF_LINEAR, HV__HF_NO_MIXER };
/** ANY: dense or mixture by the config's general rule. */
enum hv__hf_ffn { HV__HF_ANY_FFN, HV__HF_DENSE, HV__HF_MIXTURE, HV__HF_NO_FFN };
/** A layer of a config whose layers differ. */
struct hv__hf_layer {
    enum hv__hf_mixer mixer;
    enum hv__hf_ffn ffn;
};
/** Composition of a layer. */
struct hv__hf_layer hv__hf_layer_of(const struct hv__hf *c, int layer);
/** Replaces a block's attention by the model of a linear layer. */
void hv__hf_linear_block(const struct hv__hf *c, const struct hv_model *m, struct hv_block *b);
/** Queries and outputs of low rank (DeepSeek-V4): fewer heads of the same weights. */
bool hv__hf_is_low_rank(const struct hv__hf *c);
void hv__hf_low_rank_block(const struct hv__hf *c, const struct hv_model *m, struct hv_block *b);
/** Sets the window that compressed attention reads; no change where the config has no
 * compression. */
void hv__hf_compressed_window(const struct hv__hf *c, int layer, const struct hv_model *m,
                              struct hv_block *b);
/** Encoder and decoder as two modules. */
enum hv_status hv__hf_two_halves(const struct hv__hf *c, struct hv_model *m) HV_NODISCARD;
/** Reads the blocks of the model. */
enum hv_status hv__hf_blocks(const struct hv__hf *c, struct hv_model *m) HV_NODISCARD;

#endif
