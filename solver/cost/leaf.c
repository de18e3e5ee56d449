/* The rows of the leaf interface: which functions price which kind of model. */
#include "solver/cost/leaf.h"

#include "solver/cost/floor/floor_int.h"
#include "solver/cost/graph/graph.h"
#include "solver/cost/stage/stage_int.h"

/* The floor of a given time holds for passes of any size. */
static const struct hv_cost_by_size *any_size(struct hv__context *k, enum hv_part part,
                                              size_t block, const struct hv_device_kind *device)
{
    return hv__one_size(k, part, block, device, hv__floor_s(k, part, block, device));
}

/* Attention and feed-forward by formula. */
static const struct hv__leaf transformer = {.parts = &hv__transformer_parts,
                                            .part = hv__part_cost,
                                            .pass = hv__stage_pass,
                                            .memory = hv__stage_memory,
                                            .layers = hv__layers,
                                            .floor_s = hv__floor_s,
                                            .floor_by_size = hv__by_size,
                                            .floor_cuts = hv__cuts,
                                            .floor_state_bytes = hv__least_state_bytes};

/* Layers with times of their own. */
static const struct hv__leaf measured = {.parts = &hv__measured_parts,
                                         .part = hv__part_cost,
                                         .pass = hv__stage_pass,
                                         .memory = hv__stage_memory,
                                         .layers = hv__layers,
                                         .floor_s = hv__floor_s,
                                         .floor_by_size = any_size};

/* Operators of a graph one after the other, each of them whole. */
static const struct hv__leaf operators = {.parts = &hv__operator_parts,
                                          .part = hv__part_cost,
                                          .pass = hv__stage_pass,
                                          .memory = hv__stage_memory,
                                          .layers = hv__layers,
                                          .floor_s = hv__floor_s,
                                          .floor_by_size = any_size};

/* Operators with operands, on a mesh. */
static const struct hv__leaf tensors = {.parts = &hv__tensor_parts,
                                        .part = hv__part_cost,
                                        .pass = hv__graph_pass,
                                        .memory = hv__stage_memory,
                                        .layers = hv__layers,
                                        .floor_s = hv__floor_s,
                                        .floor_by_size = any_size};

const struct hv__leaf *hv__leaf_row(const struct hv_model *m)
{
    static const struct hv__leaf *const rows[HV_MODEL_KIND_N] = {[HV_MODEL_TRANSFORMER] =
                                                                     &transformer,
                                                                 [HV_MODEL_LAYERS] = &measured,
                                                                 [HV_MODEL_GRAPH] = &operators};
    return m->kind == HV_MODEL_GRAPH && m->tensors != NULL ? &tensors : rows[m->kind];
}
