/** Parts of a transformer's graph. For files of this folder. */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_MODEL_TRANSFORMER_INT_H
#define HV_SOLVER_WORKLOAD_GRAPH_MODEL_TRANSFORMER_INT_H

#include "solver/workload/graph/model/build.h"
#include "solver/workload/model.h"

/** A transformer being built. */
struct hv__transformer {
    struct hv_graph_builder b;
    const struct hv_model *m;
    int64_t sequences, tokens;
    uint32_t batch, token, key, hidden; /**< dimensions */
    uint32_t mask;                      /**< tensor [tokens, keys] */
};

/** x times a weight "NAME.weight" of dimensions `weight`; with a bias over the dimensions that are
 * new. */
uint32_t hv__linear(struct hv__transformer *t, const char *name, uint32_t x,
                    struct hv_dim_list weight, struct hv_dim_list out, bool bias);
/** The model's norm over the last dimension of x. */
uint32_t hv__norm(struct hv__transformer *t, const char *name, uint32_t x);
/** An rmsnorm over the last dimension of x. */
uint32_t hv__rms(struct hv__transformer *t, const char *name, uint32_t x);
/** Attention (attention.c) and feed-forward parts, experts among them (feed_forward.c), of the
 * normalised x [batch, tokens, hidden]; the results have its dimensions. */
uint32_t hv__attention(struct hv__transformer *t, const struct hv_block *b, uint32_t x);
uint32_t hv__feed_forward(struct hv__transformer *t, const struct hv_block *b, uint32_t x);

#endif
