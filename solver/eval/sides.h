/**
 * Sides of cuts: which houses of a cluster a plan ties together, and whether a cut can leave all of
 * them on one side each.
 */
#ifndef HV_SOLVER_EVAL_SIDES_H
#define HV_SOLVER_EVAL_SIDES_H

#include "solver/eval/lowered/lowered.h"
#include "solver/inventory/houses.h"

/** Houses of one class in a set of houses that a plan ties together. */
struct hv__tied_row {
    uint32_t set, class, houses;
};
/** The sets of several houses that a plan ties together. */
struct hv__ties {
    const struct hv_houses *houses;
    struct hv_arena *arena;
    bool none_free;            /**< the plan cannot be cut anywhere (parameter servers) */
    struct hv__tied_row *rows; /**< [n] by set: sets of houses of several classes */
    size_t n;
    struct hv__tied_row *own; /**< [n_own] by class and houses: sets of one class; `set` counts the
                                 sets of that size */
    size_t n_own;
    uint32_t *tied; /**< [classes] houses in any set */
};
/**
 * Lists what communication inside passes and sharded states tie together: the devices of a stage
 * whose states are sharded; else of every copy of a stage, or of each of its data-parallel ranks
 * where these exchange nothing inside passes and have equal flows from and to all other stages.
 * `houses` are those of the plan's cluster. O(devices · log(devices)).
 */
struct hv__ties hv__find_ties(const struct hv__lowered *l, const struct hv_houses *houses);
/**
 * True where so many houses of each class can be on the far side of a cut that no set of tied
 * houses is on both sides. A cut goes through one class at most. O(rows + sizes · houses of that
 * class).
 */
bool hv__can_cut(const struct hv__ties *t, const uint32_t *beyond);

#endif
