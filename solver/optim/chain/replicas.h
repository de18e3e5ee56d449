/**
 * Contiguous partition of a chain over equal devices where stages may be replicated, layers may be
 * split over several devices, and every layer chooses how it is run (to keep or to recompute its
 * activations).
 *
 * A stage has `replicas` copies of `width` devices each. Its value is
 *   (Σ time of its layers + the cuts at both ends + runs[first, end)) / replicas
 *       + (1 - 1 / replicas) · Σ sync of its layers,
 * the time per sample; the largest value is minimised. Memory depends on the position: a copy holds
 * Σ (fixed + in_flight · held) ≤ memory, in_flight = ⌈Σ replicas of this and all later stages /
 * replicas⌉, as in one-forward-one-backward schedules with samples dealt out in turn (the model of
 * J. Tarnawski, D. Narayanan and A. Phanishayee, "Piper", NeurIPS 2021, on chains). Numbers only.
 */
#ifndef HV_SOLVER_OPTIM_CHAIN_REPLICAS_H
#define HV_SOLVER_OPTIM_CHAIN_REPLICAS_H

#include "solver/optim/chain/partition.h"

/** One way to run a layer; all numbers finite and ≥ 0. */
struct hv_replica_option {
    double time, fixed, held;
};

/** A layer at one width. */
struct hv_replica_layer {
    const struct hv_replica_option *options;
    size_t n_options;
    double sync; /**< time per sample to keep copies equal, before the factor 1 - 1 / replicas */
};

/** All layers with `width` devices per copy. */
struct hv_replica_width {
    size_t width;
    const struct hv_replica_layer *layers; /**< n_layers */
    const double
        *cuts; /**< n_layers + 1: time of the cut before layer j; ends count as 0; or NULL */
    const double *runs; /**< more time of a run: runs[first · (n_layers + 1) + end]; or NULL */
};

/**
 * An instance; everything is borrowed. Layers are cut into runs of the chain 0 … n_layers - 1, or,
 * with `sets`, into differences of down-sets of a graph: set j then takes the place of the cut
 * before layer j, and cuts and runs are indexed by sets, with n_sets in place of n_layers + 1.
 */
struct hv_replicas {
    size_t n_layers, n_devices, n_widths;
    const unsigned char *sets; /**< n_sets × n_layers: 1 where the layer is in the set; every set is
                                  behind its subsets, the first is empty, the last full; or NULL */
    size_t n_sets;
    const struct hv_replica_width *widths;
    double memory; /**< of one copy; infinity = no limit */
    size_t batch;  /**< samples: every number of replicas divides it, all of them together are at
                      most as many; 0 = any number */
};

/** One stage of the answer. */
struct hv_replica_stage {
    size_t first, end; /**< layers [first, end), or the sets around it: end without first */
    size_t width;      /**< index into the widths */
    size_t replicas, in_flight;
    double value;
};

/** Answer; arrays live in the arena of the call. */
struct hv_replicas_result {
    bool feasible, proven, stopped;
    double objective, bound; /**< HV_UNKNOWN when infeasible */
    size_t n_stages;
    struct hv_replica_stage *stages;
    size_t *choice; /**< one per layer: its option */
    const char *method, *proof;
};

/** Largest n_widths · n_layers · (n_layers + 1), or with n_sets², and number of devices. */
#define HV_REPLICAS_MAX_RUNS    ((size_t)1 << 22)
#define HV_REPLICAS_MAX_DEVICES ((size_t)1 << 16)

/**
 * The exact optimum. A limit on the values is bisected; within a limit, fewer devices and fewer
 * copies behind are never worse, so every suffix of the chain keeps its Pareto front of the two,
 * and a stage takes the fewest replicas that keep the limit. An exact multiple-choice knapsack per
 * run, width and depth. At most n_devices devices are used.
 * O(layers² · widths · front) per limit, about 30 of them.
 * Errors: HV_EINPUT on numbers that make no sense; HV_ELIMIT.
 */
enum hv_status hv_replicas_solve(const struct hv_replicas *p, const struct hv_solve_limits *limits,
                                 struct hv_arena *arena, struct hv_replicas_result *out,
                                 struct hv_err *err) HV_NODISCARD;

#endif
