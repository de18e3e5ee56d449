/**
 * Weights that are sharded over data-parallel ranks under a schedule: when a rank gathers the
 * chunks that it computes, and when it scatters their gradients, in one in-order stream beside its
 * operations.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_SHARDS_H
#define HV_SOLVER_SIM_SCHEDULE_SHARDS_H

#include "solver/sim/schedule/schedule.h"

/** How a rank keeps its sharded chunks. */
struct hv_shard_rule {
    int32_t window; /**< chunks held whole at a time; 0: nothing of the rank is sharded */
    int32_t ahead;  /**< of these, gathered before they are used, the present one included */
    bool whole;     /**< all chunks of the rank are one unit */
    bool keeps;     /**< a chunk that was gathered stays until its last operation */
    bool each;      /**< gradients are scattered whenever their chunk is given up; else once, after
                       the last backward pass of the chunk */
};

/** A gather or a scatter. Operations are counted through all ranks, as in hv_schedule.ops. */
struct hv_shard_task {
    int32_t stage; /**< global stage; −1: all chunks of the rank */
    uint8_t pipe;
    bool scatter;
    size_t before; /**< issued when the operation before this one has ended; the end of the rank's
                      order: after its last one */
    size_t other;  /**< gather: the chunk is given up when the operation before this one has ended;
                      scatter: the first operation whose gradients it has */
};

/** The streams of all ranks. Owner: the arena. */
struct hv_shard_tasks {
    const size_t *task_at;             /**< [ranks + 1] */
    const struct hv_shard_task *tasks; /**< of each rank in the order of its stream */
    const int64_t *needs; /**< [ops] the gather that an operation waits for, −1: none */
};

/**
 * Plans the streams. Before each operation (an overlapped pair is one) a rank gathers the `ahead`
 * chunks that its operations use next, the present one included, unless it holds them, and gives up
 * all but the `window` ones that it holds and uses next: not once per micro-batch. Scatters come
 * before gathers that are issued at the same time. Source of the rule: torch 2.15,
 * distributed/pipelining/schedules.py, _add_unshard_reshard (`ahead` = `window`) and
 * _add_reduce_grad (one reduction, `each` false); Lamy-Poirier 2023 (breadth-first pipeline),
 * section 3: gradients of a chunk are reduced when the rank goes on to another chunk (`each`).
 * @param rules  [ranks]
 *
 * O(ops · chunks of a rank · window).
 */
void hv_schedule_plan_shards(struct hv_arena *a, const struct hv_schedule *s,
                             const struct hv_shard_rule *rules, struct hv_shard_tasks *out);

/**
 * Counts the gathers and reductions of every rank that holds `window` ≥ 1 chunks and reduces each
 * chunk once.
 * @param gathers, reductions  [ranks]
 *
 * O(ops · chunks of a rank · window).
 */
void hv_schedule_shards(const struct hv_schedule *s, int32_t window, int32_t *gathers,
                        int32_t *reductions);

#endif
