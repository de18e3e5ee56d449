/**
 * Parts of a stage: runs of its blocks that have one set of degrees. A plain stage has one part for
 * each of its ranges; a stage with `degrees` has more. All parts run on all devices of the stage,
 * one after the other within a pass.
 */
#ifndef HV_SOLVER_PLAN_PARTS_H
#define HV_SOLVER_PLAN_PARTS_H

#include "solver/plan/plan.h"

/** The entry of `degrees` that a block has: the last that names it; NULL: the stage's own degrees.
 * O(entries). */
const struct hv_degrees *hv_stage_degrees(const struct hv_stage *s, int block);
/** True where the blocks of both entries (NULL: the stage's own) have equal degrees. O(1). */
bool hv_stage_same_degrees(const struct hv_stage *s, const struct hv_degrees *a,
                           const struct hv_degrees *b);
/** End of the part that begins at half block `at2`, at most `to2`. O(entries²). */
int hv_stage_part_end(const struct hv_stage *s, int at2, int to2);
/**
 * A stage with the half blocks of `*range` only, which one range of `s` holds, and the
 * recomputation of its blocks. It points to `range` and to what `s` points to. Embedding and head
 * are as in `s`. O(ranges).
 */
struct hv_stage hv_stage_cut(const struct hv_stage *s, struct hv_range *range);
/** The same of a range within one part, with the degrees of its blocks and no `degrees`. O(entries
 * + ranges). */
struct hv_stage hv_stage_part(const struct hv_stage *s, struct hv_range *range);
/** A walk over the parts of a stage in model order: set `replica` and `stage`, the rest is {0}. */
struct hv_part_walk {
    const struct hv_replica *replica;
    size_t stage;          /**< number in the replica */
    struct hv_range range; /**< of the part at hand */
    struct hv_stage part;  /**< points to `range`; embedding and head are 1 where it has them, else
                              0 */
    size_t chunk;
    bool begun;
};
/** Goes to the next part; false: there are no more. O(entries² + ranges). */
bool hv_stage_next_part(struct hv_part_walk *w);
/** The stage with the degrees of an entry for all of its blocks and no `degrees`; NULL: with its
 * own. */
struct hv_stage hv_stage_with_degrees(const struct hv_stage *s, const struct hv_degrees *d);
/**
 * Devices that have the same sequences in every part: the greatest common divisor of tp × cp over
 * the stage's degrees and those of its entries. Consecutive devices of a stage form a unit of this
 * width; a data-parallel rank of a part is one unit or several. O(entries).
 */
size_t hv_stage_width(const struct hv_stage *s);

#endif
