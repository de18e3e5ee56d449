/**
 * Integer distribution of a total over shares: batches over replicas, items over slots.
 *
 * Everything is in numbers of the caller's unit. Deterministic; ties go to the lowest index.
 */
#ifndef HV_SOLVER_OPTIM_BATCH_DISTRIBUTE_H
#define HV_SOLVER_OPTIM_BATCH_DISTRIBUTE_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Largest total. */
#define HV_DISTRIBUTE_MAX_TOTAL ((int64_t)1 << 40)
/** Largest number of shares. */
#define HV_DISTRIBUTE_MAX_SHARES ((size_t)1 << 20)

/** A point of a curve: so many counts take so long. */
struct hv_share_point {
    int64_t count;
    double time;
};

/** One share: it gets a count n with min ≤ n ≤ max, worth n · size of the total. */
struct hv_share {
    double fixed;     /**< time without any count, ≥ 0 */
    double rate;      /**< time per count, ≥ 0 (minvar: weight; ratio: proportion) */
    int64_t size;     /**< > 0 */
    int64_t min, max; /**< 0 ≤ min ≤ max */
    /** Instead of fixed and rate (minmax and sum only): the time runs in straight lines through
     * these points. Counts rise, the first is ≤ min, the last is a second max; times never fall. A
     * table is one point per count. NULL = fixed and rate. Borrowed. */
    const struct hv_share_point *points;
    size_t n_points;
};

/** Answer; the array lives in the arena of the call. */
struct hv_distribution {
    bool feasible, proven;
    double objective, bound; /**< HV_UNKNOWN when infeasible */
    int64_t *count;          /**< one per share */
    const char *method, *proof;
};

/** Checks numbers and ranges. Errors: HV_EINPUT naming the share, HV_ELIMIT. */
enum hv_status hv_distribute_check(const struct hv_share *shares, size_t n, int64_t total,
                                   struct hv_err *err) HV_NODISCARD;

/**
 * Minimises max over shares of fixed + count·rate, with Σ count·size = total. Exact.
 *
 * Equal sizes: Newton steps on the threshold, then single units: O(n log) plus O(n) per unit left
 * over. Mixed sizes where each divides the next larger: threshold search, O(n) per step. Other
 * sizes: with a bounded subset sum per step, O(total/gcd · distinct sizes · log). Times that are
 * curves need not be convex; equal sizes then cost O(n · log points) per step of a bisection over
 * values. Errors: HV_ELIMIT when total/gcd times distinct sizes exceeds 64 million (other sizes
 * only).
 */
enum hv_status hv_distribute_minmax(const struct hv_share *shares, size_t n, int64_t total,
                                    struct hv_arena *arena, struct hv_distribution *out,
                                    struct hv_err *err) HV_NODISCARD;

/**
 * Minimises Σ of the times, with Σ count·size = total and equal sizes. Exact for convex times: the
 * cheapest counts first (A. Federgruen and H. Groenevelt, Operations Research 34, 1986).
 * O(points · log points), whatever the total.
 * Errors: HV_EINPUT for sizes that differ, or a curve that is not convex, naming the point.
 */
enum hv_status hv_distribute_sum(const struct hv_share *shares, size_t n, int64_t total,
                                 struct hv_arena *arena, struct hv_distribution *out,
                                 struct hv_err *err) HV_NODISCARD;

/**
 * Minimises Σ (rate·count - mean)², mean over the shares of rate·count (unweighted), with
 * Σ count·size = total: shares are templates, sizes their instances (Oobleck, SOSP'23, §4.2.2).
 * Exact branch and bound, meant for up to about ten shares; `proven` is false when it ended after
 * 20 million nodes. Needs rate > 0 and no points.
 */
enum hv_status hv_distribute_minvar(const struct hv_share *shares, size_t n, int64_t total,
                                    struct hv_arena *arena, struct hv_distribution *out,
                                    struct hv_err *err) HV_NODISCARD;

/**
 * Counts in proportion to `rate` with Σ count = total, largest remainder first, min and max kept
 * (sizes must be 1). objective = the largest difference from the exact proportion.
 */
enum hv_status hv_distribute_ratio(const struct hv_share *shares, size_t n, int64_t total,
                                   struct hv_arena *arena, struct hv_distribution *out,
                                   struct hv_err *err) HV_NODISCARD;

/**
 * Longest processing time first: items in falling size, each onto the emptiest of n_slots slots.
 * A slot takes at most `most` items (0 = no limit). out->count[i] = slot of item i; objective =
 * fullest slot; bound = the largest of the biggest item, the mean load, and the two items that must
 * share a slot; with a limit also what the items that all slots but one cannot take weigh at least.
 * O(n log n + n · slots).
 */
enum hv_status hv_distribute_lpt(const double *items, size_t n, size_t n_slots, size_t most,
                                 struct hv_arena *arena, struct hv_distribution *out,
                                 struct hv_err *err) HV_NODISCARD;

#endif
