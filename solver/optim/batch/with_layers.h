/**
 * Layers and batch decided together: several pipelines, each with its own stages, share a batch.
 *
 * Pipeline p with a partition of stage values v takes Σ v + (n - 1) · max v for n > 0 micro-batches
 * and 0 for none. The slowest pipeline is to be as fast as can be, over all partitions of all
 * pipelines and all whole counts with Σ n = total. Deterministic; ties go to the lowest index.
 */
#ifndef HV_SOLVER_OPTIM_BATCH_WITH_LAYERS_H
#define HV_SOLVER_OPTIM_BATCH_WITH_LAYERS_H

#include "solver/optim/chain/partition.h"

/** Largest number of pipelines and largest total. */
#define HV_BATCH_LAYERS_MAX_PIPELINES ((size_t)1 << 14)
#define HV_BATCH_LAYERS_MAX_TOTAL     ((int64_t)1 << 40)

/** An instance; everything is borrowed. */
struct hv_batch_layers {
    size_t n_pipelines;
    /** One each; weights are not looked at. Equal pipelines (equal pointers inside) are solved
     * once. */
    const struct hv_partition *pipelines;
    int64_t total;
    const int64_t *min, *max; /**< counts allowed, per pipeline; NULL = 0 and no limit */
};

/** Answer; arrays live in the arena of the call. */
struct hv_batch_layers_result {
    bool feasible, proven, stopped;
    double objective, bound; /**< HV_UNKNOWN when infeasible */
    int64_t *count;          /**< one per pipeline */
    /** The partition of every pipeline; not feasible where the pipeline gets nothing because no
     * partition fits it. Equal pipelines may share arrays. */
    struct hv_partition_result *part;
    int64_t n_programs; /**< partitions solved */
    const char *method, *proof;
};

/**
 * The exact optimum. A pipeline's time for n is the lower hull over its partitions' (Σ, max); lines
 * of the hull are found where the threshold needs them, and the answer is proven by solving every
 * pipeline exactly at the first count that would reach the threshold.
 * Errors: HV_EINPUT on counts that make no sense, HV_ELIMIT; those of hv_partition_solve.
 */
enum hv_status hv_batch_layers_solve(const struct hv_batch_layers *j,
                                     const struct hv_solve_limits *limits, struct hv_arena *arena,
                                     struct hv_batch_layers_result *out,
                                     struct hv_err *err) HV_NODISCARD;

#endif
