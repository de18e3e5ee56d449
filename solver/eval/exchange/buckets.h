/**
 * Buckets of gradients. The gradients of the blocks and ends that the same ranks hold form a
 * stream, in the order in which the last backward pass makes them, tensor by tensor; those of
 * routed experts, which other ranks hold too, form another beside it (Megatron-LM:
 * expert_parallel_buffers). A bucket is a run of consecutive tensors of a stream that is reduced at
 * once.
 *
 * Without a cycle, under the runtime of a framework, and for layers that were measured as a whole,
 * the tensor with which a bucket reaches its size closes it (Li et al. 2020, PyTorch Distributed,
 * section 4.2; reducer.cpp, compute_bucket_assignment_by_size; Megatron-LM:
 * param_and_grad_buffer.py). Without a runtime the gradients of a transformer's blocks are one flat
 * buffer that is cut at exactly the size; embedding and head are a bucket each. With a cycle,
 * tensors that are there at a tick are fused as long as they fit (Sergeev and Del Balso 2018,
 * Horovod, section 4). Where gradients are reduced after the backward pass, or by plans with stale
 * weights, each segment is one bucket.
 */
#ifndef HV_SOLVER_EVAL_EXCHANGE_BUCKETS_H
#define HV_SOLVER_EVAL_EXCHANGE_BUCKETS_H

#include "solver/eval/exchange/exchange_int.h"
#include "solver/workload/tensors.h"

/** A bucket, or a run of equal ones. */
struct hv__bucket {
    double n;          /**< 1, or how many */
    double ready_s;    /**< all holders have the gradients of the first, or the tick after that */
    bool certain;      /**< false: ready_s or later (hv__arrival) */
    double step_s;     /**< by which each is ready later than the one before it */
    double duration_s; /**< on the network, of each */
    double chunk_s;    /**< of these, the largest part that nothing interrupts */
    struct hv__lanes lanes; /**< of the network that it uses */
};

/** A tensor at the head of a stream. */
struct hv__arrived {
    const struct hv__segment *segment;
    double parameters;
    double taken;            /**< of these, in buckets already */
    double from_at2, to_at2; /**< places in its blocks before and after it: from_at2 > to_at2; equal
                               where it is an end */
};

/** Price of a bucket of so many parameters. */
struct hv__bucket_price {
    double parameters, duration_s, chunk_s;
    struct hv__lanes lanes;
};

/** Different prices that a stream remembers. */
enum { HV__BUCKET_PRICES = 8 };

/** Gradients that the same ranks hold, and how far they are in buckets. */
struct hv__bucket_stream {
    const struct hv__segment *blocks; /**< NULL: it has ends only */
    const struct hv__segment **ends;  /**< [n_ends] in order of arrival */
    size_t n_ends;
    bool routed, whole;         /**< of routed experts; one bucket of one segment */
    bool cut;                   /**< buckets have exactly their size */
    double bytes_per_parameter; /**< on one rank */
    struct hv__holder *holders;
    size_t n_holders;
    size_t *ranks;             /**< [n_ranks] flat, each once */
    struct hv__rank **members; /**< [n_ranks] the same */
    size_t n_ranks;
    /* where it stands: of the half blocks [end2, half_end2) the tensors from i_half on come next */
    int end2, half_end2;
    size_t i_end, i_half, n_half, n_closed;
    struct hv_weight half[HV_HALF_TENSORS];
    double half_parameters, half_done;
    struct hv__arrived ahead;
    bool more;
    struct hv__lanes lanes;
    struct hv__bucket_price prices[HV__BUCKET_PRICES];
    size_t n_prices;
};

/** The streams of a plan, each at its first bucket. O(operations + segments²). */
struct hv__bucket_stream *hv__bucket_streams(struct hv__lowered *l, size_t *n);
/**
 * Takes the next bucket of a stream; false: there are no more, or its ranks reduce nothing. Buckets
 * of a stream come in order of readiness. O(tensors of it · holders), and for a size that is new
 * O(devices log devices).
 */
bool hv__next_bucket(struct hv__lowered *l, struct hv__bucket_stream *s, struct hv__bucket *out);

/** Reductions of equal buckets as they were run: one, or several without a gap (n = 1), or n that
 * begin by equal steps with gaps between them. */
struct hv__reduced {
    double start_s, duration_s; /**< of the first */
    double n, step_s;           /**< step_s: longer than duration_s; 0 where n = 1 */
};
/** Lanes in use: by the last reduction on them. */
struct hv__lane_use {
    double start_s, end_s;
};

/**
 * Runs some of the first `n` buckets of a run of equal ones, of which `done` are done, as soon as
 * they are ready and their lanes free: on lanes of their own without a gap as long as each is ready
 * when the one before it is done, then each when it is ready. Those that share lanes with traffic
 * take longer. `u`: the last one so far, which begins no later than any that is to come. Returns
 * how many it was, at least one. O(traffic), whatever their number.
 */
double hv__run_some(struct hv__links_left *traffic, const struct hv__bucket *b, double done,
                    double n, struct hv__lane_use *u, struct hv__reduced *out);
/** How many buckets of a run are ready before a time; at least one. */
double hv__ready_before(const struct hv__bucket *b, double until_s);
/** Counts reductions to the ranks of a stream, and keeps them for drawing. O(ranks; and of those
 * that are drawn). */
void hv__count_reductions(struct hv__lowered *l, const struct hv__bucket_stream *s,
                          const struct hv__reduced *x);

#endif
