/** Internals of the partition solver, shared by its files; not for other modules. */
#ifndef HV_SOLVER_OPTIM_CHAIN_PARTITION_INT_H
#define HV_SOLVER_OPTIM_CHAIN_PARTITION_INT_H

#include "solver/optim/chain/partition.h"
#include "solver/optim/watch.h"

/** Objective of a dynamic program. */
enum hv__goal { HV__MAX, HV__SUM };

/** Best values for the end positions lo … hi (inclusive) of a stage; lo > hi = none. */
struct hv__row {
    size_t lo, hi;
    double *v; /**< v[j - lo] */
};

/** One stage to be put behind a row: position, device, and the limit on its value. */
struct hv__step {
    enum hv__goal goal;
    size_t pos, dev;
    double limit;
};

/** True when run [i, j) fits the memory of position `pos` with the capacity of `dev`. */
bool hv__fits(const struct hv_partition *p, size_t pos, size_t dev, size_t i, size_t j);
/** Largest j with time of [i, j) ≤ limit that fits (cut costs ignored). O(log L). */
size_t hv__furthest(const struct hv_partition *p, size_t pos, size_t dev, size_t i, double limit);
/** Smallest i with time of [i, j) ≤ limit that fits (cut costs ignored). O(log L). */
size_t hv__nearest(const struct hv_partition *p, size_t pos, size_t dev, size_t j, double limit);
/** out[j] = min(out[j], best over i of from[i] joined with the value of [i, j)), for the row's j.
 * scratch: n_layers + 1 numbers. */
void hv__relax(const struct hv_partition *p, const struct hv__step *step,
               const struct hv__row *from, struct hv__row *out, double *scratch);
/** A start i with from[i] joined with the value of [i, j) equal to `want`; SIZE_MAX when none. */
size_t hv__trace(const struct hv_partition *p, const struct hv__step *step,
                 const struct hv__row *from, size_t j, double want);
/**
 * Fixed order: first and last end position of every stage (n_stages rows) under the limit, cut
 * costs ignored; false when there is none. O(S log L).
 */
bool hv__windows(const struct hv_partition *p, double limit, struct hv__row *rows);
/** New row with all values infinite. */
struct hv__row hv__row_new(struct hv_arena *arena, size_t lo, size_t hi);
/** Drops the ends of a row whose values are beyond the limit; at least one value stays. */
void hv__trim(struct hv__row *r, double limit);
/** Fills value, sum, max and objective of a result whose cut and order are set. */
void hv__finish(const struct hv_partition *p, struct hv_arena *arena,
                struct hv_partition_result *out);
/**
 * Fixed order: one dynamic program with every value ≤ limit; fills cut and order (identity) and
 * returns whether a partition was found.
 */
bool hv__solve_fixed(const struct hv_partition *p, enum hv__goal goal, double limit,
                     struct hv_arena *arena, struct hv_partition_result *out);
/** One sentence for an instance without a partition: the constraint and by how much; it lives in
 * the arena. */
const char *hv__why_infeasible(const struct hv_partition *p, struct hv_arena *arena);
/** An upper bound on the best maximum from a greedy cut (infinity when greedy finds none). */
double hv__greedy_max(const struct hv_partition *p);
/** Devices grouped into kinds; a state holds the number of used devices of each kind. */
struct hv__kinds {
    const struct hv_partition *p;
    size_t n_kinds, n_states;
    size_t *dev;     /**< a stage that has the kind's device */
    size_t *count;   /**< devices of the kind */
    size_t *radix;   /**< weight of the kind in a state's number */
    size_t *used;    /**< state → stages used */
    uint16_t *digit; /**< state · n_kinds + kind → devices of the kind used */
};

/** True when two stages have equal devices. */
bool hv__same_device(const struct hv_part_stage *a, const struct hv_part_stage *b);
/** Groups the devices, slow kinds first; false when there are too many states (about 2 million). */
bool hv__kinds_group(struct hv__kinds *g, const struct hv_partition *p, struct hv_arena *arena);
/** True when the state has used a device of kind k. */
bool hv__has_kind(const struct hv__kinds *g, size_t state, size_t k);
/** Gives every position one of the instance's stages of its kind (order holds `dev` of the kind),
 * lowest first. */
void hv__kinds_name(const struct hv__kinds *g, struct hv_partition_result *out);
/**
 * Bound on sum_weight · Σ + max_weight · max that no order beats: any weights w ≥ 0 with Σ w = 1
 * give max_d time_d ≥ Σ_layers min_d w_d t_d(layer). 0 with tables.
 */
double hv__relaxed_bound(const struct hv_partition *p, double sum_weight, double max_weight);
/** Free order, the least sum with every value ≤ limit; watch->too_big is set when there are too
 * many states or a limit is reached before the end. */
bool hv__solve_free(const struct hv_partition *p, double limit, struct hv__watch *watch,
                    struct hv_arena *arena, struct hv_partition_result *out);
/**
 * Free order, the least maximum: bisection over a limit, and for each limit the ends that every
 * multiset of devices can reach. Fills the result, bound and `stopped` included. False when nothing
 * was found; watch->too_big as in hv__solve_free.
 */
bool hv__reach_free(const struct hv_partition *p, struct hv__watch *watch, struct hv_arena *arena,
                    struct hv_partition_result *out);
/** Local search over device orders with the fixed-order solver inside, and a relaxed bound. */
enum hv_status hv__search_order(const struct hv_partition *p, struct hv__watch *watch,
                                struct hv_arena *arena, struct hv_partition_result *out,
                                struct hv_err *err);
/** Fixed order, identical layers and equal cuts: the best weighted sum by a sweep over the limit,
 * O(L · log S). False when layers differ or nothing fits. */
bool hv__solve_even(const struct hv_partition *p, struct hv_arena *arena,
                    struct hv_partition_result *out);
/** Branch and bound over the maximum; `free_order` picks the inner program. */
bool hv__solve_mixed(const struct hv_partition *p, struct hv__watch *watch, struct hv_arena *arena,
                     struct hv_partition_result *out);

#endif
