/** Attention work of every rank of a ring at every step, by the placement of tokens on ranks. */
#ifndef HV_SOLVER_WORKLOAD_ATTENTION_WORK_H
#define HV_SOLVER_WORKLOAD_ATTENTION_WORK_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stdint.h>

/** Placement of the tokens of a sequence on ranks. */
enum hv_token_layout {
    HV_TOKENS_CONTIGUOUS, /**< rank r has the r-th part */
    HV_TOKENS_ZIGZAG,     /**< of 2 · ranks parts, rank r has r and 2 · ranks − 1 − r */
    HV_TOKENS_STRIPED     /**< token t is on rank t mod ranks (Brandon et al., arXiv 2311.09431) */
};

/** A ring. */
struct hv_attention_ring {
    int64_t ranks, tokens, tile; /**< kernels compute whole tiles of tile × tile pairs */
    enum hv_token_layout layout;
    bool causal; /**< else every pair of tokens is computed */
};

/**
 * Pairs of tokens that every rank computes at every step into *out [ranks × ranks] from the arena:
 * row = rank, column = step; at step k rank r has the keys of rank (r − k) mod ranks. Errors:
 * HV_EUSAGE when ranks (twice the ranks for zigzag) do not divide the tokens; HV_ELIMIT above 1e9
 * steps of work. O(ranks · tokens / tile).
 */
enum hv_status hv_attention_work(struct hv_arena *a, const struct hv_attention_ring *ring,
                                 double **out, struct hv_err *err) HV_NODISCARD;

/** Pairs that a rank of a ring computes with the keys of one rank, by the order of the two. */
struct hv_ring_pairs {
    double same;   /**< with its own keys */
    double before; /**< with those of a rank of a lower number */
    double after;  /**< with those of a rank of a higher number */
};

/**
 * The three figures that all rows of hv_attention_work consist of: in every layout the pairs of two
 * ranks depend on nothing but which of them comes first. Errors as there, without the limit.
 * O(tokens / (ranks · tile)).
 */
enum hv_status hv_attention_ring_pairs(const struct hv_attention_ring *ring,
                                       struct hv_ring_pairs *out, struct hv_err *err) HV_NODISCARD;

#endif
