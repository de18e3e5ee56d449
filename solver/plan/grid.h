/**
 * Uniform plans: one Megatron grid of tp x cp x dp x pp devices, built from a handful of degrees.
 *
 * The same plan as the strategy `manual` makes of the same options (tested), without Lua:
 * `validate` and hetviz's own searches evaluate hundreds of them.
 */
#ifndef HV_SOLVER_PLAN_GRID_H
#define HV_SOLVER_PLAN_GRID_H

#include "solver/plan/plan.h"

/** Degrees and knobs of a uniform plan. Zero means the default: 1, no, none. */
struct hv_grid {
    int tp, pp, dp, cp, ep;
    enum hv_cp_layout cp_layout; /**< of context parallelism as a ring; contiguous */
    int chunks;                  /**< model chunks per stage (virtual pipeline stages) */
    int micro_batch;             /**< sequences per micro-batch and data-parallel rank */
    int64_t global_batch;        /**< sequences per iteration */
    int zero;                    /**< 0–3 */
    int shard_group;             /**< ranks that share a sharded state; 0: all holders */
    unsigned recompute;          /**< mask of enum hv_recompute */
    bool sequence_parallel;      /**< ignored where tp is 1 */
    const char *schedule;        /**< NULL: 1f1b, with chunks interleaved */
    double
        grad_bytes; /**< of one gradient, for Megatron-LM's size of buckets; 0: the default size */
    bool late_sync; /**< gradients are reduced after the last backward, as DeepSpeed's pipeline
                       engine does, not beside it */
    /** Blocks per chunk in model order (pp x chunks of them). NULL: even; where only the count with
     * two more divides, the first and the last chunk take one block less for embedding and head,
     * else the first chunks take one more. */
    const int *counts;
};

/** Devices that the grid takes: tp · cp · dp · pp, at most HV_CLUSTER_MAX_DEVICES + 1. */
int64_t hv_grid_devices(const struct hv_grid *g);
/**
 * Splits n_blocks over `parts` chunks as described at `counts`. Errors: HV_ENO when there are more
 * chunks than blocks. O(parts).
 */
enum hv_status hv_grid_counts(size_t n_blocks, int parts, int *counts,
                              struct hv_err *err) HV_NODISCARD;
/**
 * Builds the plan on the first devices of the largest fabric that can compute in `precision` and
 * are not drained, in file order; rank order as in rule B, stages slowest. Owner of *out:
 * hv_plan_unref. Errors: HV_ENO in words when the devices, blocks or batch do not suffice or
 * divide. O(devices + pp · chunks).
 */
enum hv_status hv_plan_grid(struct hv_cluster *cluster, enum hv_precision precision,
                            size_t n_blocks, const struct hv_grid *grid, struct hv_plan **out,
                            struct hv_err *err) HV_NODISCARD;

#endif
