/**
 * Search for the best repeating middle of a pipeline whose blocks may sit anywhere, also on several
 * devices at once. Source: Tessel, HPCA 2024, sections III and IV.
 *
 * A repetend runs every block once, block k for the micro-batch `mid[k]` ahead of the oldest one in
 * it; mids do not grow along dependencies. All choices of mids are tried, from few micro-batches in
 * the repetend to many, and for each the shortest period over all orders on the devices is found by
 * branch and bound on the order of pairs of blocks, with the cycle ratio as bound.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_TESSEL_H
#define HV_SOLVER_SIM_SCHEDULE_TESSEL_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One block, which every micro-batch runs once. */
struct hv_tessel_block {
    double span_s;
    double memory;    /**< added on its devices at its start where positive, at its end where not */
    uint64_t devices; /**< bit d: runs on device d (all of them at the same time) */
};

/** The problem. Blocks are in topological order; every device has a block. Borrowed. */
struct hv_tessel {
    int32_t n_blocks, n_devices; /**< devices: at most 64 */
    const struct hv_tessel_block *blocks;
    const int32_t *dep_at, *dep; /**< [n_blocks + 1], blocks of lower index */
    double memory_limit;         /**< of every device */
    const double *limits;        /**< [n_devices] tighter ones, or NULL */
    int32_t most_micro_batches;  /**< in one repetend */
};

/** The answer. Owner: the arena. */
struct hv_repetend {
    double period_s;
    int32_t micro_batches;
    const int32_t *mid;    /**< [n_blocks] */
    const double *start_s; /**< [n_blocks] in the repetend */
    bool zero_bubble;      /**< the busiest device is never idle */
    bool proven;           /**< no repetend within the limits is shorter */
};

/**
 * Searches; the first repetend without bubble ends it, else the shortest, the first of equals.
 * After 200,000 branches it answers with the best so far, not proven. Errors: HV_ENO when nothing
 * fits the memory limit; HV_EUSAGE for numbers out of range; HV_ELIMIT when 200,000 branches
 * found nothing.
 */
enum hv_status hv_tessel_search(struct hv_arena *a, const struct hv_tessel *t,
                                struct hv_repetend *out, struct hv_err *err) HV_NODISCARD;

/** A run of a block for a micro-batch. */
struct hv_tessel_run {
    int32_t block, mb;
    double start_s;
};
/**
 * m micro-batches: warm-up, repetends and cool-down in one, everything as early as the order of the
 * repetends allows. out[n_blocks × m] in the order in which devices run them. Errors: HV_EUSAGE.
 */
enum hv_status hv_tessel_unroll(const struct hv_tessel *t, const struct hv_repetend *r, int32_t m,
                                struct hv_tessel_run *out, double *makespan_s,
                                struct hv_err *err) HV_NODISCARD;

#endif
