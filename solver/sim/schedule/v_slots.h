/**
 * Table of unit slots for V-shaped schedules with two chunks per rank: the pass of a rank in each
 * slot. Used by the search of v-adaptive. Not for other folders.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_V_SLOTS_H
#define HV_SOLVER_SIM_SCHEDULE_V_SLOTS_H

#include "solver/sim/schedule/schedule_int.h"

/** Passes of a rank: 0 is its chunk nearer the input, 1 its chunk nearer the loss. Even passes go
 * up the ranks, odd ones come down. */
enum hv__v_pass {
    HV__V_F0,
    HV__V_F1,
    HV__V_B1,
    HV__V_B0,
    HV__V_W1,
    HV__V_W0,
    HV__V_PASSES,
    HV__V_FREE = -1
};
/** Slots after which a building block repeats. */
enum { HV__V_PERIOD = 6 };

/** The table. Slots from `len` on are free in every row. */
struct hv__v_slots {
    int32_t p, m;
    int32_t len, cap;     /**< slots in use, slots there are */
    int8_t *cell, *spare; /**< [p × cap] */
    int32_t *when;        /**< [HV__V_PASSES × p × m] slot of every op, −1 = not there */
    int32_t *count;       /**< [p × HV__V_PASSES] */
};

/** Room for m micro-batches on p ranks. */
void hv__v_slots_new(struct hv__v_slots *b, int32_t p, int32_t m);
/** Frees the table. */
void hv__v_slots_free(struct hv__v_slots *b);
/** Slots of one rank. */
static inline int8_t *hv__v_row(const struct hv__v_slots *b, int32_t rank)
{
    return b->cell + (size_t)rank * (size_t)b->cap;
}
/** Most activations of a rank, of any rank with −1. O(slots). */
int32_t hv__v_peak(const struct hv__v_slots *b, int32_t rank);
/** Fills the table with m repetitions of a block [p × HV__V_PERIOD]. */
void hv__v_repeat(struct hv__v_slots *b, const int8_t *block);
/** Every op as early as its inputs and the order of its rank allow. False where an op would come
 * before what it needs. O(slots). */
bool hv__v_squeeze(struct hv__v_slots *b);
/** Leaves the first m micro-batches. */
void hv__v_shorten(struct hv__v_slots *b, int32_t m);
/** Moves later ops into free slots, where inputs and the peak allow. O(slots) per free slot. */
void hv__v_fill_gaps(struct hv__v_slots *b);
/** Assigns the W slots of a rank to its B's, first in, first out. */
void hv__v_relabel_w(struct hv__v_slots *b);
/** True where every pass runs m times on every rank and no op before its inputs. */
bool hv__v_is_sound(struct hv__v_slots *b);
/** Longest span of a rank, with the durations schedulers decide by. O(slots). */
double hv__v_span(struct hv__v_slots *b, const struct hv_schedule_input *in);
/** Adds the orders of all ranks. */
void hv__v_add_orders(const struct hv__v_slots *b, struct hv_schedule_builder *out);

#endif
