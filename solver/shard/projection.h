/**
 * Projection of the layouts of one operator on its factors, and the two ways to spread axes along a
 * factor. For files of this room.
 */
#ifndef HV_SOLVER_SHARD_PROJECTION_H
#define HV_SOLVER_SHARD_PROJECTION_H

#include "solver/shard/graph.h"

/** From operands to results, back, or both. */
enum hv_direction { HV_DIRECTION_NONE, HV_DIRECTION_FORWARD, HV_DIRECTION_BACK, HV_DIRECTION_BOTH };

struct hv_projection;

/** Axes of every factor in every tensor of an operator. Owner: hv__projection_free. */
struct hv_projection *hv__project(const struct hv_op_rule *r, const struct hv_mesh *m,
                                  const struct hv_shard_tensor *tensors, const uint32_t *tensor);
void hv__projection_free(struct hv_projection *p);
/** Gives every factor the axes that no tensor contradicts. */
void hv__spread_agreed(struct hv_projection *p, const enum hv_direction *direction);
/** Gives every tensor the axes of its factors, the factor with the larger source first; what does
 * not fit into a tensor is left out there. */
void hv__spread_choose(struct hv_projection *p, const enum hv_direction *direction);
/** The layout of tensor t as the projection has it now; true where it differs from *io. */
bool hv__projected(const struct hv_projection *p, size_t t, struct hv_layout *io);
/** True where tensors split the factor over different axes, or one of its axes splits another
 * factor of a tensor that it could go to. */
bool hv__in_conflict(const struct hv_projection *p, uint8_t factor);

#endif
