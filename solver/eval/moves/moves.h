/**
 * Activations that leave their rank and come back, beside the operations of a pipeline: evictions
 * to another rank (hv_schedule.stash), and offloads to the host or to other devices
 * (hv_stage.offload). Which they are (moves.c), what their transfers and those between
 * stages cost (sending.c), and memory over time at both ends (memory.c).
 */
#ifndef HV_SOLVER_EVAL_MOVES_MOVES_H
#define HV_SOLVER_EVAL_MOVES_MOVES_H

#include "solver/eval/lowered/lowered.h"
#include "solver/sim/pipeline/memory_beside.h"

/* ---- sending.c --------------------------------------------------------------------------------
 */

/** Devices of a rank in one copy of its pipeline. */
const uint32_t *hv__devices_of(const struct hv__pipeline *pl, const struct hv__rank *rk, int copy);
/** Prices a sending with all copies that send at the same time: cost and loads. O(flows of all
 * copies that share links). */
void hv__price_sending(const struct hv__lowered *l, const struct hv__pipeline *pl,
                       struct hv__sending *x);

/* ---- moves.c ----------------------------------------------------------------------------------
 */

/** True where the activations that a global stage offloads are copied beside its passes. Where the
 * schedule recomputes a stage by operations of its own, each pass waits for its copies.
 * O(offloads).
 */
bool hv__moves_away(const struct hv__pipeline *pl, const struct hv__gstage *g);
/** Most lanes of moves that a pipeline can have; 0: it has no moves. O(stages). */
size_t hv__most_lanes(const struct hv__pipeline *pl);
/** Finds the moves of a pipeline whose order and passes are known, and prices their lanes:
 * pl->moving, and further sendings in pl->hops. O(operations of ranks with moves). */
void hv__find_moves(const struct hv__lowered *l, struct hv__pipeline *pl);

/* ---- memory.c ---------------------------------------------------------------------------------
 */

/** Of a stretched run with moves: start of the operation of a rank, in the short run, from which on
 * its operations are later in the long one. O(1). */
double hv__later_from_s(const struct hv__pipeline *pl, size_t rank);
/** True where memory of a pipeline's ranks changes beside their operations. O(1). */
bool hv__memory_moves(const struct hv__pipeline *pl);
/** The peak of a device of dp rank `i_dp` of a rank, for the tables `mem` of that dp rank, with
 * what it keeps besides: `others`, or NULL. O(operations of the rank + moves · log). */
struct hv_pipe_peak hv__memory_peak(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                    const struct hv_pipe_memory *mem, size_t rank, size_t i_dp,
                                    const struct hv_memory_changes *others);
/** All changes of the memory of such a device, in time order. O(operations of the rank · log). */
struct hv_memory_changes hv__memory_changes(const struct hv__lowered *l,
                                            const struct hv__pipeline *pl,
                                            const struct hv_pipe_memory *mem, size_t rank,
                                            size_t i_dp);
/** Its memory over time: steps in the arena, *n of them. O(operations of the rank), with moves as
 * hv__memory_peak. */
struct hv_memory_step *hv__memory_steps(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                        const struct hv_pipe_memory *mem, size_t rank, size_t i_dp,
                                        size_t *n);

/* ---- kept.c -----------------------------------------------------------------------------------
 */

/** A place that keeps offloads. */
struct hv__kept_place {
    struct hv_memory_changes changes; /**< of what it keeps, in time order; base: what stays */
    bool owned;                       /**< a stage runs on the device: */
    size_t pipeline, rank, i_dp;      /**< where */
    uint32_t device;
};
/** Fills out->kept but for the peaks of devices that run a stage, and adds findings where other
 * places have too little memory. Returns the places, [out->n_kept]. Nothing without offloads; else
 * O(devices + gifts · moves · log). */
struct hv__kept_place *hv__find_kept(const struct hv__lowered *l, struct hv_verdict *out);

#endif
