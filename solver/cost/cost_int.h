/** Shared by the files of the front: the public context, and models of modules. */
#ifndef HV_SOLVER_COST_COST_INT_H
#define HV_SOLVER_COST_COST_INT_H

#include "solver/cost/cost.h"
#include "solver/cost/leaf.h"

/** The public context. */
struct hv_cost {
    struct hv__context own;      /**< of the whole model: classes count through all leaves */
    const struct hv__leaf *leaf; /**< how it is priced; NULL: a model of modules */
    struct hv_cost **subs;       /**< modules: a context per leaf, none of them of modules */
    struct hv_model_leaf *leaves;
    size_t n_subs;
};

/** A pass and the memory of a stage (parts.c): of one with layer-wise degrees the sum of its parts
 * and the changes of layout between them. */
enum hv_status hv__parts_pass(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_pass *out, struct hv_err *err) HV_NODISCARD;
enum hv_status hv__parts_memory(struct hv_cost *k, const struct hv_stage_query *q,
                                struct hv_memory *out, struct hv_err *err) HV_NODISCARD;

/** Models of modules (modules.c): each call covers all leaves, as the function of the same name in
 * cost.h covers one, through the rows of the leaves. */
void hv__modules_open(struct hv_cost *k);
/** Frees the contexts of the leaves. */
void hv__modules_close(struct hv_cost *k);
/** Price of a part, by the leaf that holds it. */
struct hv_part_cost hv__modules_part(struct hv_cost *k, enum hv_part part, size_t block,
                                     const struct hv_part_query *q, struct hv_why *why);
/** Floor of a part; of the ends those of all leaves together. */
double hv__modules_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                           const struct hv_device_kind *device);
/** Floors by size, of the leaf that holds the block; of the ends one for all sizes. */
const struct hv_cost_by_size *hv__modules_by_size(struct hv_cost *k, enum hv_part part,
                                                  size_t block,
                                                  const struct hv_device_kind *device);
/** Tables of all leaves, one behind the other. */
enum hv_status hv__modules_layers(struct hv_cost *k, const struct hv_part_query *q,
                                  struct hv_arena *arena, struct hv_layer_table *out,
                                  struct hv_err *err) HV_NODISCARD;
/** A pass: the stage's blocks and ends of each leaf, one after the other. */
enum hv_status hv__modules_pass(struct hv_cost *k, const struct hv_stage_query *q,
                                struct hv_pass *out, struct hv_err *err) HV_NODISCARD;
/** Memory: the sum over the stage's blocks and ends of each leaf; the runtime's part once. */
enum hv_status hv__modules_memory(struct hv_cost *k, const struct hv_stage_query *q,
                                  struct hv_memory *out, struct hv_err *err) HV_NODISCARD;

#endif
