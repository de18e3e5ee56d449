/**
 * Memory of a rank whose operations are not all that fills it: activations that leave it and come
 * back, and those that it keeps for other ranks.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_MEMORY_BESIDE_H
#define HV_SOLVER_SIM_PIPELINE_MEMORY_BESIDE_H

#include "solver/sim/pipeline/pipeline.h"

/** A change of the bytes in a memory. */
struct hv_memory_change {
    double at_s, bytes;                  /**< negative: given back */
    double gathered_bytes, unsent_bytes; /**< parts of it, of streams (struct hv_pipe_peak) */
};

/** What a rank holds over time: `n` changes, and the bytes before the first. */
struct hv_memory_changes {
    const struct hv_memory_change *items;
    size_t n;
    double base_bytes;
};

/**
 * The changes of one rank by its operations, its stream (run->stream, where the tables have one)
 * and by `beside` (its base_bytes are not used), in time order; at one time bytes are given back
 * before others are taken. Tables as hv_pipe_peaks has them, without its stash. In `a`. O(nodes of
 * the rank + n · log).
 */
struct hv_memory_changes hv_pipe_changes(struct hv_arena *a, const struct hv_pipe *g,
                                         const struct hv_pipe_run *run,
                                         const struct hv_pipe_memory *mem, int32_t rank,
                                         const struct hv_memory_changes *beside);

/** Sorts changes by time; at one time bytes are given back first. O(n log n). */
void hv_memory_sort(struct hv_memory_change *items, size_t n);

/** The peak of sorted changes. O(n). */
struct hv_pipe_peak hv_memory_peak(const struct hv_memory_changes *c);

/** Sorted changes as steps: at most n + 1 into out (NULL = only count); changes at one time are
 * joined. Returns how many. O(n). */
size_t hv_memory_steps(const struct hv_memory_changes *c, struct hv_memory_step *out);

#endif
