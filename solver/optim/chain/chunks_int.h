/** Inside of the partition over several chunks per rank, shared by its files. */
#ifndef HV_SOLVER_OPTIM_CHAIN_CHUNKS_INT_H
#define HV_SOLVER_OPTIM_CHAIN_CHUNKS_INT_H

#include "solver/optim/chain/chunks.h"
#include "solver/optim/chain/partition_int.h"

/** An instance with what both its searches read. */
struct hv__chunks {
    const struct hv_part_chunks *c;
    size_t L, S, R, m; /**< layers, chunks, ranks, least layers of a chunk */
    double *value;     /**< value[(s · (L + 1) + i) · (L + 1) + j]; infinity = not allowed */
    double *capacity;  /**< of a rank */
    double *weight;    /**< of a rank: ≥ 0, sum 1; those of the best bound */
    double *rest;      /**< (S + 1) · (L + 1): least weighted value of chunks s … from layer i */
    size_t *cut;       /**< the best so far: S ends */
    double best;       /**< its busiest load; infinity = none */
    double bound;
    struct hv__watch *watch;
    struct hv_arena *arena;
    int64_t n_probes;
};

/** Memory that chunk s needs for layers [i, j). */
double hv__chunk_bytes(const struct hv__chunks *x, size_t s, size_t i, size_t j);
/**
 * Looks for cuts with every load below x->best; takes the best there are into x->cut and x->best.
 * Returns false when it had to give up; x->bound is then what was proven.
 */
bool hv__chunks_exact(struct hv__chunks *x);

#endif
