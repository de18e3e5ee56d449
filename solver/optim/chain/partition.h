/**
 * Exact contiguous partition of a chain of layers over stages.
 *
 * Layers 0 … L-1 are cut into consecutive, possibly empty runs, one per stage in order. A stage's
 * value is the time of its layers on its device plus the cost of the cuts at both its ends; a run
 * must fit the stage's memory. The objective is sum_weight · Σ values + max_weight · max value:
 * (0, 1) balances stages, (1, M-1) is the makespan of M micro-batches in a pipeline.
 *
 * Everything is in numbers of the caller's unit; all numbers are finite and ≥ 0. Ties are broken
 * towards early cuts, so equal input gives equal output.
 */
#ifndef HV_SOLVER_OPTIM_CHAIN_PARTITION_H
#define HV_SOLVER_OPTIM_CHAIN_PARTITION_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/optim/limits.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Largest number of layers and of stages. */
#define HV_PARTITION_MAX_LAYERS ((size_t)1 << 16)
#define HV_PARTITION_MAX_STAGES ((size_t)1 << 12)

/**
 * One stage. With free order, time, table and capacity belong to the device and move; memory
 * belongs to the position and stays. Equal devices may (and, for speed, should) share pointers.
 */
struct hv_part_stage {
    const double *time;   /**< n_layers + 1 prefix sums: run [i, j) takes time[j] - time[i] */
    const double *table;  /**< instead of time: run [i, j) takes table[i · (n_layers + 1) + j];
                               infinity = not allowed; NULL = use time */
    const double *memory; /**< n_layers + 1 prefix sums; NULL = needs nothing */
    double capacity; /**< a run needs memory[j] - memory[i] ≤ capacity (infinity = no limit) */
};

/** An instance. Everything is borrowed. */
struct hv_partition {
    size_t n_layers, n_stages;
    const struct hv_part_stage *stages; /**< n_stages */
    const double *const *cuts;  /**< n_stages - 1 rows of n_layers + 1: cuts[s][j] is paid by stages
                                   s and s + 1 each when the cut between them is at j; entries 0 and
                                     n_layers count as 0; NULL = cuts are free */
    const double *const *tolls; /**< as cuts, but paid once and only in the sum: transfers over the
                                     cut once per pipeline (AMP, NeurIPS 2022, section 3.5). Fixed
                                   order and weights without a slowest stage only; NULL = none */
    size_t min_layers;          /**< in every stage; 0 allows empty stages */
    double sum_weight, max_weight;
    bool any_stages; /**< only the first k ≤ n_stages stages need be used, k is chosen */
    bool free_order; /**< devices may be permuted over the positions */
};

/** Answer. The arrays live in the arena given to the solve. */
struct hv_partition_result {
    bool feasible;      /**< false: no partition fits (or none was found when `stopped`) */
    bool proven;        /**< objective is optimal, or infeasibility is certain */
    bool stopped;       /**< a limit ended the search */
    double objective;   /**< HV_UNKNOWN when infeasible */
    double bound;       /**< no partition is better */
    double sum, max;    /**< of the stage values; the sum with tolls */
    size_t n_stages;    /**< stages used */
    size_t *cut;        /**< n_stages: end of each stage's run; the last is n_layers */
    size_t *order;      /**< n_stages: which of the instance's stages gives the device */
    double *value;      /**< n_stages stage values */
    const char *method; /**< name of the algorithm */
    const char *proof;  /**< one sentence: why the bound holds */
    int64_t n_probes;   /**< dynamic programs run */
};

/** Checks sizes and numbers (finite, ≥ 0, prefix sums that never fall). O(S·L). */
enum hv_status hv_partition_check(const struct hv_partition *p, struct hv_err *err) HV_NODISCARD;

/** Value of run [i, j) as stage number `pos` on the device of stage `dev`; infinity when not
 * allowed. */
double hv_partition_value(const struct hv_partition *p, size_t pos, size_t dev, size_t i, size_t j);

/**
 * The exact optimum.
 *
 * Max only: one dynamic program inside windows that a greedy upper bound leaves, at most
 * O(L · Σ_s (layers that stage s can take within the bound)), about L² in practice; O(S·L²) with
 * tables. With a sum: branch and bound over the value of the maximum, one such program per node.
 * Free order: the same over multisets of equal devices (equal pointers and capacity), exact up to
 * about 2 million states, beyond that, or when stopped inside, a local search with a relaxation as
 * bound.
 * @param p  an instance that hv_partition_check accepts
 * Errors: HV_ELIMIT when the instance needs too much memory. Infeasible is not an error.
 */
enum hv_status hv_partition_solve(const struct hv_partition *p,
                                  const struct hv_solve_limits *limits, struct hv_arena *arena,
                                  struct hv_partition_result *out, struct hv_err *err) HV_NODISCARD;

/**
 * The least Σ of values with every value ≤ `limit` (infinity allowed), fixed order. The parametric
 * step for objectives of other shapes. `out->objective` = the sum.
 * Errors: as hv_partition_solve.
 */
enum hv_status hv_partition_min_sum(const struct hv_partition *p, double limit,
                                    struct hv_arena *arena, struct hv_partition_result *out,
                                    struct hv_err *err) HV_NODISCARD;

/**
 * All distinct stage values of allowed runs in [lo, hi], ascending; the candidates for a maximum.
 * Fixed order. *out lives in the arena. O(S·L² log). Errors: HV_ELIMIT above 16 million runs.
 */
enum hv_status hv_partition_candidates(const struct hv_partition *p, double lo, double hi,
                                       struct hv_arena *arena, double **out, size_t *n,
                                       struct hv_err *err) HV_NODISCARD;

/** Weights that depend on the position k of the slowest stage. k counts from 0; ties make k the
 * rightmost.
 */
struct hv_part_weights {
    double c0, c1; /**< (c0 + c1 · k) · value of stage k is added */
    double tail;   /**< tail · Σ of the values from stage k on is added */
};

/**
 * Minimises Σ values + (c0 + c1·k)·value_k + tail·Σ_{s≥k} value_s, k = the rightmost slowest stage.
 *
 * Exact: for every candidate maximum (k, run) the least sums of prefix (values ≤ it) and suffix
 * (values < it). Fixed order, exactly n_stages stages. Needs c0 + c1·k ≥ 0 and tail ≥ 0.
 * O(candidates below the best) · O(L²). Errors: HV_EINPUT on negative weights; HV_ELIMIT.
 */
enum hv_status hv_partition_weighted(const struct hv_partition *p,
                                     const struct hv_part_weights *weights,
                                     const struct hv_solve_limits *limits, struct hv_arena *arena,
                                     struct hv_partition_result *out,
                                     struct hv_err *err) HV_NODISCARD;

/** Cost of a whole partition from its stage values; infinity = not allowed. */
typedef enum hv_status hv_part_combine(void *ctx, const double *value, size_t n_stages, double *out,
                                       struct hv_err *err);

/**
 * Minimises any function of the stage values by enumerating all partitions (fixed order).
 * Errors: what `combine` returns; HV_ELIMIT when there are more than 20 million partitions.
 */
enum hv_status hv_partition_combine(const struct hv_partition *p, hv_part_combine *combine,
                                    void *ctx, struct hv_arena *arena,
                                    struct hv_partition_result *out,
                                    struct hv_err *err) HV_NODISCARD;

#endif
