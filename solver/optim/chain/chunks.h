/**
 * Contiguous partition of a chain when a rank holds several runs of layers ("chunks").
 *
 * The chain is cut into one run per chunk, in order, as in partition.h; every chunk belongs to a
 * rank, and a rank's load is the sum of the values of its chunks. The objective is the load of the
 * busiest rank: the time between two micro-batches in the steady state of an interleaved pipeline
 * (Narayanan et al., SC 2021, section 2.2) or of one folded into a V (Qi et al., 2024).
 */
#ifndef HV_SOLVER_OPTIM_CHAIN_CHUNKS_H
#define HV_SOLVER_OPTIM_CHAIN_CHUNKS_H

#include "solver/optim/chain/partition.h"

/** Where the chunks of a rank lie along the chain. */
enum hv_part_placement {
    HV_PLACE_LOOP, /**< rank r holds chunks r, r + p, r + 2p, … */
    HV_PLACE_FOLD, /**< every second pass over the ranks runs backwards; two passes are a V */
};

/** An instance. Everything is borrowed. */
struct hv_part_chunks {
    /** One stage per chunk. The memories of a rank's chunks add up and must stay within the least
     * capacity of its stages. Weights are ignored; order is fixed, all stages are used. */
    struct hv_partition chain;
    const size_t *rank; /**< chain.n_stages: the rank of each chunk, < n_ranks */
    size_t n_ranks;
};

/** Answer: `chain` as in partition.h with `objective` and `max` = load of the busiest rank. */
struct hv_part_chunks_result {
    struct hv_partition_result chain;
    double *load;  /**< n_ranks */
    double *bytes; /**< n_ranks: memory in use */
};

/** rank[s] of n_ranks · n_passes chunks. O(chunks). */
void hv_partition_place(enum hv_part_placement placement, size_t n_ranks, size_t n_passes,
                        size_t *rank);

/**
 * The least load of the busiest rank.
 *
 * Identical layers with equal cuts: in closed form, O(S · L + p · (p + 60)). Otherwise a bound by
 * weights on the ranks (the Lagrangian dual: one O(S·L²) program per step, at most 120), a local
 * search over cuts, and a dynamic program over (chunk, cut, loads of the ranks) that keeps only
 * loads which neither the bound nor another entry rules out. That program is exact and ends within
 * about a million entries when p and the gap are small; where it does not, the best cuts so far
 * come back with the bound and `proven` false.
 * Errors: HV_EINPUT for a rank out of range, free order or optional stages; HV_ELIMIT when S · L²
 * exceeds 32 million. Infeasible is not an error.
 */
enum hv_status hv_partition_chunks_solve(const struct hv_part_chunks *c,
                                         const struct hv_solve_limits *limits,
                                         struct hv_arena *arena, struct hv_part_chunks_result *out,
                                         struct hv_err *err) HV_NODISCARD;

#endif
