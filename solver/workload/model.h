/**
 * Models: a transformer (dense or MoE) as a table of blocks, a list of measured layers, an operator
 * graph, or modules of these. Source of the file
 * semantics: share/schema/model.schema.json.
 *
 * Immutable once built; everything lives in the model's arena.
 */
#ifndef HV_SOLVER_WORKLOAD_MODEL_H
#define HV_SOLVER_WORKLOAD_MODEL_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Form of the model's description: dimensions, measured layers, operators, or named modules. */
enum hv_model_kind {
    HV_MODEL_TRANSFORMER,
    HV_MODEL_LAYERS,
    HV_MODEL_GRAPH,
    HV_MODEL_MODULES,
    HV_MODEL_KIND_N
};
/** "transformer", "layers", "graph", "modules". */
const char *hv_model_kind_name(enum hv_model_kind k);

/* clang-format off */
/** Feed-forward kinds: constant, name, matrices of hidden × ffn (3 = gated). */
#define HV_FFN_KIND_MAP(X)          \
    X(HV_FFN_GELU,   "gelu",   2)   \
    X(HV_FFN_RELU,   "relu",   2)   \
    X(HV_FFN_RELU2,  "relu2",  2)   \
    X(HV_FFN_SILU,   "silu",   2)   \
    X(HV_FFN_SWIGLU, "swiglu", 3)   \
    X(HV_FFN_GEGLU,  "geglu",  3)
/* clang-format on */
enum hv_ffn_kind {
#define X(c, name, mats) c,
    HV_FFN_KIND_MAP(X)
#undef X
        HV_FFN_KIND_N
};
const char *hv_ffn_kind_name(enum hv_ffn_kind k); /**< name in files */
int hv_ffn_kind_matrices(enum hv_ffn_kind k);     /**< 2 plain, 3 gated */

/** Normalisation: a layernorm has a bias beside its weights, an rmsnorm has not. */
enum hv_norm_kind { HV_NORM_LAYERNORM, HV_NORM_RMSNORM, HV_NORM_KIND_N };
/** Position encodings: only `learned` has weights (max_sequence × hidden). */
enum hv_position_kind {
    HV_POSITION_LEARNED,
    HV_POSITION_ROPE,
    HV_POSITION_ALIBI,
    HV_POSITION_NONE,
    HV_POSITION_KIND_N
};
const char *hv_norm_kind_name(enum hv_norm_kind k); /**< "layernorm", "rmsnorm" */
const char *
hv_position_kind_name(enum hv_position_kind k); /**< "learned", "rope", "alibi", "none" */

/** Multi-head latent attention (DeepSeek-V2/V3); kv_rank 0 = not MLA. */
struct hv_mla {
    int q_rank, kv_rank, rope_dim, nope_dim, value_dim;
};

/** One transformer block: attention and feed-forward. */
struct hv_block {
    int heads, kv_heads, head_dim; /**< heads 0: no attention */
    struct hv_mla mla;
    int window;  /**< sliding attention window in tokens, 0 = full */
    int attends; /**< number of the token dimension that attention is along, from 1; 0: all tokens
                  */
    int reach;   /**< tokens of that dimension; 0: all tokens */
    int ffn;     /**< dense feed-forward width, 0: none */
    enum hv_ffn_kind ffn_kind;
    int experts, top_k, expert_ffn, shared_experts,
        shared_ffn;                    /**< experts 0: dense; ffn widths of one expert */
    double attention_extra, ffn_extra; /**< weights of the halves beside those of the figures above:
                                          gates, convolutions, indexers; below 0: weights that the
                                          block shares with an earlier one */
    bool attention_bias, ffn_bias;
};

/** Seconds of a piece of work in the two passes; HV_UNKNOWN: not given. */
struct hv_both_ways {
    double forward_s, backward_s;
};

/** Pieces of a measured layer whose number follows from the plan: blocks of a ring of attention,
 * experts and their tokens. Arrays: one per entry of `devices` of the model, the last for all
 * others; NULL: the layer has none. */
struct hv_measured_pieces {
    struct hv_both_ways *attention_block; /**< a rank's queries against the keys of one rank of the
                                             ring, one sequence */
    struct hv_both_ways *expert_fixed;    /**< experts of a rank, once per chunk of tokens */
    struct hv_both_ways *expert_token;    /**< one copy of a token in its expert */
    double dispatch_bytes;                /**< of a copy of a token on its way to its expert */
    double kv_bytes; /**< keys and values of a token; HV_UNKNOWN: twice the output's */
    int experts;     /**< of the layer; 0: as many as the routing has, or ranks */
    int top_k;       /**< experts that a token goes to */
};

/** One measured layer (kind "layers"). Times per micro-batch of the model's grid: of one sequence
 * where the grid has one point. */
struct hv_measured_layer {
    const char *name;
    double *forward_s, *backward_s; /**< per entry of `devices` of the model, degree of `grid_tp`
                                       and micro-batch of `grid_batch`; HV_UNKNOWN where missing */
    double *update_s; /**< optimizer step of the whole layer, per entry of `devices`; HV_UNKNOWN:
                         by the memory's speed */
    double parameter_bytes, activation_bytes, output_bytes;
    double transfer_s;    /**< HV_UNKNOWN: from output_bytes and the link */
    double parallel_frac; /**< Amdahl fraction that tensor parallelism divides; 1 */
    struct hv_measured_pieces pieces;
    bool forward_given, backward_given; /**< else they are 0 beside the pieces */
    bool forward_only; /**< has pieces, and nothing says how long its backward pass takes */
};

/** One operator of a graph model. */
struct hv_graph_op {
    const char *id, *op, *group, *device_class;
    const char **out_dims, **contract_dims;
    size_t n_out_dims, n_contract_dims;
    double flops, parameter_bytes, bytes, time_s; /**< HV_UNKNOWN: derived from dims */
};
/** A named dimension of a graph model, or of the tokens of a transformer. */
struct hv_graph_dim {
    const char *name;
    int64_t size;
};
/** Edge between operators or modules (indices). */
struct hv_model_edge {
    uint32_t from, to;
};

struct hv_tensor_graph;
struct hv_model;
/** A named sub-model of kind "modules". */
struct hv_module {
    const char *name;
    struct hv_model *model; /**< owned through its reference */
};

/** A model. Owner: hv_model_unref. */
struct hv_model {
    struct hv_arena arena;
    unsigned refs;
    const char *name, *source; /**< source: where the shape was read (catalogue), may be NULL */
    enum hv_model_kind kind;
    /* transformer */
    int hidden, vocab, max_sequence;
    bool tied_embeddings, causal;
    double embedding_extra, head_extra; /**< weights beside the table and the head, or, below 0,
                                           fewer than those */
    enum hv_norm_kind norm;
    enum hv_position_kind position;
    int patch_tokens; /**< vision models: tokens per image (then `vocab` is the number of values of
                         a patch); 0 */
    struct hv_graph_dim *token_dims; /**< that the tokens of a sequence are spread over (time and
                                        space of a video); none: a sequence has one dimension */
    size_t n_token_dims;
    struct hv_block *blocks;
    size_t n_blocks; /**< transformer: blocks; layers: measured layers; graph: ops; modules: sum */
    /* layers */
    const char **devices; /**< device names of the measured times */
    size_t n_devices;
    int *grid_tp,
        *grid_batch; /**< degrees and micro-batches that were measured, rising; {1}, {1} */
    size_t n_grid_tp, n_grid_batch;
    struct hv_measured_layer *measured;
    /* graph */
    struct hv_graph_dim *dims;
    size_t n_dims;
    struct hv_graph_op *ops;
    size_t n_ops;
    const struct hv_tensor_graph *tensors; /**< the long form, with operands; NULL: short form. The
                                              members above follow from it: an operator writes its
                                              result and contracts what it only reads */
    /* modules */
    struct hv_module *modules;
    size_t n_modules;
    struct hv_model_edge *edges; /**< graph or modules */
    size_t n_edges;
    uint64_t hash;
};

/** Adds a reference. Returns m. */
struct hv_model *hv_model_ref(struct hv_model *m);
/** Drops a reference and frees the model with the last one. NULL is fine. */
void hv_model_unref(struct hv_model *m);

/** Computes the content hash; called once by the builder. */
void hv_model_finish(struct hv_model *m);

/** A leaf: a model inside a model of modules that has no modules itself; any other model is its own
 * and only leaf. */
struct hv_model_leaf {
    const struct hv_model *model;
    const char *name; /**< of the outermost module it lies in; NULL: the model itself */
    size_t module;    /**< number of that module */
    size_t first;     /**< its first block among those of the whole model */
    bool feeds;       /**< another module reads its output, so it has no head and no loss */
};
/** Number of leaves of a model, at least 1. */
size_t hv_model_n_leaves(const struct hv_model *m);
/** Fills hv_model_n_leaves entries in the order of their blocks. */
void hv_model_leaves(const struct hv_model *m, struct hv_model_leaf *out);
/** True where any leaf is a transformer. */
bool hv_model_has_transformer(const struct hv_model *m);

/** True where the layer computes nothing but its measured times. */
static inline bool hv_measured_is_whole(const struct hv_measured_layer *l)
{
    return !l->pieces.attention_block && !l->pieces.expert_fixed && !l->pieces.expert_token;
}
/** True where a block of the model has experts. */
static inline bool hv_model_has_experts(const struct hv_model *m, size_t block)
{
    if (m->kind == HV_MODEL_LAYERS) {
        return m->measured[block].pieces.expert_fixed || m->measured[block].pieces.expert_token;
    }
    return m->blocks && m->blocks[block].experts > 0;
}

/** Parameters of the attention half of a block (projections, biases, its norm). Counts, not bytes.
 */
double hv_block_attention_parameters(const struct hv_model *m, const struct hv_block *b);
/** Parameters of the feed-forward half that every data-parallel rank of it holds (dense FFN, shared
 * experts, router, its norm). */
double hv_block_ffn_parameters(const struct hv_model *m, const struct hv_block *b);
/** Parameters of all routed experts of a block; 0 when dense. */
double hv_block_expert_parameters(const struct hv_model *m, const struct hv_block *b);
/** Token embedding (and learned position table). */
double hv_model_embedding_parameters(const struct hv_model *m);
/** Output head: 0 when tied to the embedding; plus the final norm. */
double hv_model_head_parameters(const struct hv_model *m);
/** Entries of the vocabulary with those that Megatron adds so that each of `tp` ranks gets a
 * multiple of 128; patches of images are not padded, and 0 stays 0. */
double hv_model_padded_vocab(const struct hv_model *m, int tp);
/** All parameters. For measured layers and short graphs: bytes / 2. Golden: llama-3-8b 8.03e9,
 * GPT-3 175B 1.746e11.
 */
double hv_model_parameters(const struct hv_model *m);
/** Parameters used per token (MoE: top_k of experts). */
double hv_model_active_parameters(const struct hv_model *m);
/** Forward FLOPs per token of the projections of the attention half (low-rank ones for MLA). */
double hv_block_attention_flops(const struct hv_model *m, const struct hv_block *b);
/** Forward FLOPs per token of scores and weighted sum: 4·heads·head_dim·context. */
double hv_block_core_flops(const struct hv_block *b, double sequence, bool causal_half);
/** Forward FLOPs per token of the feed-forward half: dense, or top_k and shared experts and the
 * router. */
double hv_block_ffn_flops(const struct hv_model *m, const struct hv_block *b);
/** Elements of the parameters that operator `op` of a graph in long form reads. O(operands). */
double hv_graph_op_parameters(const struct hv_model *m, size_t op);
/** FLOPs of an operator: as given, else 2·Π out·Π contract (Π out without contraction). O(dims). */
double hv_graph_op_flops(const struct hv_model *m, const struct hv_graph_op *o);
/**
 * Model FLOPs of one sequence forward (causal attention counted half when `causal_half`),
 * without recompute. Closed form 24BLsh²(1+s/6h)+2BshV for MHA, f = 4h, not causal (Narayanan et
 * al., SC'21, eq. 2 / 3). Vision models take patch_tokens instead of `sequence`; measured layers:
 * HV_UNKNOWN.
 */
double hv_model_forward_flops(const struct hv_model *m, double sequence, bool causal_half);
/** The same of one leaf; one that feeds others has no head. */
double hv_leaf_forward_flops(const struct hv_model_leaf *leaf, double sequence, bool causal_half);

#endif
