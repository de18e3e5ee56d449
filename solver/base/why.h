/** Explanation of a number: named terms that any cost function writes on request. */
#ifndef HV_SOLVER_BASE_WHY_H
#define HV_SOLVER_BASE_WHY_H

#include "solver/base/arena.h"
#include <stdbool.h>
#include <stddef.h>

/** Work behind a term of a forward pass, and the same of the backward pass that the term stands for
 * too. 0: none of it. */
struct hv_why_work {
    double flops, flops_per_s, bytes;
    double backward_s; /**< 0: the term has no backward pass */
    double backward_flops, backward_flops_per_s, backward_bytes;
    const char *source; /**< of the rate; static, or NULL */
};

/** One step of work that needs what a hop brings. Seconds from the start of the first step. */
struct hv_why_step {
    double work_s, done_s;       /**< work begins and ends */
    double hop_from_s, hop_to_s; /**< the hop that it needs begins and ends; both 0: none */
    double waited_s;             /**< by which work began later for that hop; 0: it was hidden */
    bool outer;                  /**< that hop is on the ring between rings */
};

/** Steps of work beside the hops of a ring, in one pass of one block on the slowest rank. What the
 * steps waited and `after_s` add up to what the hops leave exposed. */
struct hv_why_ring {
    const char *what; /**< "keys and values"; static */
    bool backward;    /**< of the backward pass */
    struct hv_why_step *steps;
    size_t n;
    double after_s; /**< hops that end after the last step: sums that return */
};

/** Rows of experts on the busiest rank of their group, in one pass of one block. */
struct hv_why_rows {
    double tokens;           /**< rows of tokens that it gets */
    double computed;         /**< rows of its products, with those that hold no token */
    size_t ranks;            /**< of the group; 0: all have alike */
    const double *rank_rows; /**< [ranks] what each computes, over what a rank sends in the mean */
};

/** One term: "qkv gemm", 1.2e-4, "s", "2·8192·4096·6144 FLOP at 0.72 of 312 TFLOP/s (estimated)".
 */
struct hv_why_term {
    const char *name;
    double value;
    const char *unit;
    const char *text;
    struct hv_why_work work;         /**< of terms in seconds of a pass; else zero */
    const struct hv_why_ring *rings; /**< [n_rings] behind the term */
    size_t n_rings;
    const struct hv_why_rows *rows; /**< behind the term, or NULL */
    int from, to;                   /**< blocks that the terms after it are of, where to > from */
};

/** A list of terms in the order they were added. `arena` is set by the owner before use. */
struct hv_why {
    struct hv_arena *arena;
    struct hv_why_term *terms;
    size_t n, cap;
};

/** Adds a term; does nothing when w is NULL. Name and unit are kept as given (static), text is
 * formatted. */
void hv_why_add(struct hv_why *w, const char *name, double value, const char *unit, const char *fmt,
                ...) HV_PRINTF(5, 6);

/** Attaches work to the term added last; does nothing when w is NULL. */
void hv_why_attach(struct hv_why *w, const struct hv_why_work *work);
/** Adds a ring to the term added last, which keeps copies of the steps; does nothing when w is
 * NULL. O(rings + steps). */
void hv_why_attach_ring(struct hv_why *w, const struct hv_why_ring *ring);
/** Attaches rows to the term added last, which keeps copies; does nothing when w is NULL. O(ranks).
 */
void hv_why_attach_rows(struct hv_why *w, const struct hv_why_rows *rows);
/** Says of which blocks [from, to) the terms after the last one are; does nothing when w is NULL.
 */
void hv_why_attach_blocks(struct hv_why *w, int from, int to);

#endif
