/** Lower bounds of the iteration time that hold for every plan of a job on a cluster. */
#ifndef HV_SOLVER_BOUND_BOUND_H
#define HV_SOLVER_BOUND_BOUND_H

#include "solver/cost/cost.h"

/** Lower bound of plans that a cut of the cluster is for: of those of which no communication inside
 * passes and no sharded state crosses it, whichever houses of its classes are on either side, and
 * that use no parameter servers. */
struct hv_bound_cut {
    double time_s; /**< above spread_s of the bound */
    const char *why;
    const uint32_t *beyond; /**< [classes of houses] houses of each on the second side */
};

/** Lower bound of the iteration time of any plan for these inputs. */
struct hv_bound {
    double iteration_s; /**< of chains of stages that the first of `cuts` is for */
    const char *why;    /**< one sentence, in the arena */
    double compute_s;   /**< forward and backward work alone on all devices that can hold a rank; it
                           also holds for plans with stale weights */
    double any_s;       /**< of any exact plan, including plans with branching stages, parts of
                           micro-batches or tensor parallelism other than 1d: passes of any size */
    const char *any_why, *compute_why;
    double spread_s; /**< of plans whose stages form a chain: also of those that exchange inside
                        passes or shard states across a cut, or sum gradients on servers */
    const char *spread_why;
    double even_s; /**< of those that spread_s is for which are copies of one pipeline with all
                      passes of a stage alike: above spread_s, or 0 */
    const char *even_why;
    const char *cut_why;             /**< explanation of cut_s; NULL where no cut counts */
    const struct hv_bound_cut *cuts; /**< [n_cuts] those that count, by falling time_s: the first
                                        is that of iteration_s */
    size_t n_cuts;
    struct hv_houses houses; /**< classes that cuts are made of; in the arena */
    /* parts of iteration_s besides compute_s */
    double shapes_s; /**< kernels of the shapes that valid degrees allow, and their communication */
    double passes_s; /**< fill and drain: passes of limited size, and devices better left unused */
    double optimizer_s; /**< the optimizer step of all weights */
    double host_s;      /**< of the host, once per iteration and in one pass */
    double wait_s;      /**< for the slowest of many devices */
    double cut_s;       /**< because a slow network lies between the devices */
    double fewest;      /**< fewest devices whose memory holds the gradients; 0: not known */
    bool stopped;       /**< the search was stopped: every figure holds, and may be lower than it
                           would be after a whole search */
};
/**
 * Computes the lower bounds. No exact plan can be faster, because every plan has to do all of
 * this: the work of every sequence in the best kernels that passes of some size reach and that fit
 * into memory, with the tensor-parallel communication over the slowest link that its ranks cannot
 * avoid, divided without loss over all devices that are not drained; the way of a sequence through
 * all layers before the iteration ends (fill and drain; weighed against the work, not added to it);
 * the optimizer step of all weights; and the host work and the waits of an iteration. The devices
 * in use hold all gradients. Between two sides of a slow network, either the sides share little
 * work, or the activations of all sequences cross it, or the gradients of all weights. Where all
 * passes of a stage are alike, no backward pass starts before a forward pass through all layers.
 * Weak duality over block classes keeps the bound valid for mixed kinds (derivations: least.c,
 * chain.c, cut.c, even.c). O(2^kinds × kinds × classes × cells), kinds up to 8; the cells are
 * remembered by the context.
 */
void hv_bound_iteration(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out);
/**
 * The same, and the search ends soon after `stop`, which is called often, has returned true: what
 * was shown until then holds, at the least the work alone on all devices. NULL: it never ends
 * early.
 */
void hv_bound_within(struct hv_cost *k, bool (*stop)(void *ctx), void *ctx, struct hv_arena *arena,
                     struct hv_bound *out);

#endif
