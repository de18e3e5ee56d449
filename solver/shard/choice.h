/**
 * Choices: how one operator is split over a mesh. Every atom splits a factor, leaves operands and
 * result partial, or is not used. A choice tells which layouts the operands must have and which
 * ones the results get.
 */
#ifndef HV_SOLVER_SHARD_CHOICE_H
#define HV_SOLVER_SHARD_CHOICE_H

#include "solver/shard/reshard.h"
#include "solver/shard/rule.h"

#define HV_CHOICE_OPERANDS 8 /**< operands that can be partial by themselves: the first ones */

/** A choice. Bytes that no member uses are zero. */
struct hv_choice {
    struct hv_axes factor[HV_RULE_FACTORS];
    uint32_t through[HV_CHOICE_OPERANDS]; /**< atoms over which this operand alone stays partial */
    uint32_t through_all; /**< atoms over which the operands of rule->additive_in stay partial */
};

/**
 * Layouts of operands and results (rule->n_in + rule->n_out entries) under a choice. False where it
 * is not legal: a factor that does not divide, or is needed whole; one behind a factor that is not
 * split to the end; partial values through an operand that the result is not linear in; a halo
 * wider than a part.
 */
bool hv_choice_layouts(const struct hv_op_rule *r, const struct hv_mesh *m,
                       const struct hv_shape *const *shapes, const struct hv_choice *c,
                       struct hv_layout *out);

/** Rows that operand `t` fetches from its neighbours under layouts of hv_choice_layouts, one
 * exchange per windowed dimension that is split; *out: up to HV_SHARD_DIMS. Bytes: for each
 * distance between devices the largest piece. Returns their number. */
size_t hv_choice_halos(const struct hv_op_rule *r, const struct hv_mesh *m,
                       const struct hv_shape *shape, size_t t, const struct hv_layout *layout,
                       struct hv_exchange *out);

/** Called for every choice; false ends the enumeration. */
typedef bool hv_choice_fn(void *ctx, const struct hv_choice *c);
/**
 * All choices that use each axis of the mesh whole: for one factor (in every place among the axes
 * of that factor), not at all, or, for axes whose atoms are in `partial`, to keep operands partial.
 * (f + 1)^axes of them and more; `most` ends it. Legality is not checked. Returns false where it
 * was ended.
 */
bool hv_choice_each(const struct hv_op_rule *r, const struct hv_mesh *m, uint32_t partial,
                    size_t most, hv_choice_fn *visit, void *ctx);
/** The choice that follows layouts as they are (one per operand and result): tensor `first` gives
 * the axes of its factors, then the others in order, as far as atoms are left. */
struct hv_choice hv_choice_follow(const struct hv_op_rule *r, const struct hv_mesh *m,
                                  const struct hv_layout *layouts, size_t first);
/** Cuts the axes of a dimension into those of its factors: axes[factor] gets what lies on it. The
 * rest, where parts and factors have no common divisor, is left out. */
void hv_axes_to_factors(const struct hv_op_rule *r, const struct hv_mesh *m,
                        const struct hv_dim_map *d, const struct hv_axes *dim,
                        struct hv_axes *axes);

#endif
