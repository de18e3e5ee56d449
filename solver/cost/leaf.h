/**
 * Inside cost: the interface between the front (cost.c, modules.c) and the kinds of models it
 * prices. A model of modules is priced leaf by leaf; every leaf is priced through its row here, and
 * nothing below calls back into the front. A new kind of model is a row in leaf.c.
 */
#ifndef HV_SOLVER_COST_LEAF_H
#define HV_SOLVER_COST_LEAF_H

#include "solver/cost/floor/floor.h"
#include "solver/cost/part/context.h"
#include "solver/cost/stage/stage.h"

/** Functions that price one kind of leaf. The functions of the same names in cost.h describe the
 * calls; blocks are counted in the leaf. */
struct hv__leaf {
    const struct hv__parts *parts; /**< for the context of the leaf */
    struct hv_part_cost (*part)(struct hv__context *k, enum hv_part part, size_t block,
                                const struct hv_part_query *q, struct hv_why *why);
    enum hv_status (*pass)(struct hv__context *k, const struct hv_stage_query *q,
                           struct hv_pass *out, struct hv_err *err);
    enum hv_status (*memory)(struct hv__context *k, const struct hv_stage_query *q,
                             struct hv_memory *out, struct hv_err *err);
    enum hv_status (*layers)(struct hv__context *k, const struct hv_part_query *q,
                             struct hv_arena *arena, struct hv_layer_table *out,
                             struct hv_err *err);
    double (*floor_s)(struct hv__context *k, enum hv_part part, size_t block,
                      const struct hv_device_kind *device);
    const struct hv_cost_by_size *(*floor_by_size)(struct hv__context *k, enum hv_part part,
                                                   size_t block,
                                                   const struct hv_device_kind *device);
    /** Floors; NULL: none are known. */
    void (*floor_cuts)(const struct hv__context *k, struct hv_arena *arena,
                       struct hv_cost_cuts *out);
    double (*floor_state_bytes)(const struct hv__context *k);
};

/** Prices of all blocks as prefix sums (hv_cost_layers; table.c). O(blocks). */
enum hv_status hv__layers(struct hv__context *k, const struct hv_part_query *q,
                          struct hv_arena *arena, struct hv_layer_table *out,
                          struct hv_err *err) HV_NODISCARD;
extern const struct hv__parts hv__operator_parts; /**< operators.c */

/** The row of a model; NULL for one of modules, which is not a leaf. */
const struct hv__leaf *hv__leaf_row(const struct hv_model *m);

#endif
