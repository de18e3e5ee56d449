/**
 * Communication beside compute inside one pass: small task graphs on a compute and a link lane,
 * timed by sim/events/tasks.h.
 *
 * The results are the exposed time (by which the pass is longer than its compute) and the time that
 * overlaps with compute; the caller adds the calibrated slowdown for the latter. Both are per pass,
 * in seconds. Thread: any. Errors: none.
 */
#ifndef HV_SOLVER_COST_NETWORK_OVERLAP_H
#define HV_SOLVER_COST_NETWORK_OVERLAP_H

#include "solver/base/why.h"

#include <stdbool.h>
#include <stddef.h>

/** Communication of a pass: exposed and overlapped part. */
struct hv_overlap {
    double exposed_s, hidden_s;
};

/** A chunk of an exchange: sent, worked on, sent back. Compression before a send and its reverse
 * after it are work of the device too. */
struct hv_round_trip {
    double out_s, compute_s, back_s;
    double compress_s[2], expand_s[2]; /**< of the way there and of the way back; 0: none */
};
/** Order of the device's work on chunks. */
enum hv_trip_order {
    HV_TRIP_ARRIVAL, /**< every piece of work when it can begin, the one that waits longest first */
    HV_TRIP_OPTSCHE  /**< all compressions, then chunk by chunk until its result can return, and at
                        last the results */
};
/**
 * `n` equal chunks: all are sent in turn, each is worked on when it has arrived and sent back when
 * that is done, after everything that is sent out. Exposed is what the chunks take besides n
 * compute_s. O(n log n). Sources: PipeMoE (Shi et al. 2023), Tutel (Hwang et al. 2023); OptSche:
 * ScheMoE (Shi et al. 2024, theorem 1: no order is faster where both ways take alike). Without
 * compression both orders are the same.
 */
struct hv_overlap hv_overlap_round_trips(int n, struct hv_round_trip chunk,
                                         enum hv_trip_order order);

/** A ring of ranks, or an inner ring on each of several ranks of an outer one: equal steps of
 * compute after the first, hops of what the next step needs while a step computes (two buffers),
 * and hops of what steps have produced after them. */
struct hv_ring {
    int steps;                  /**< of compute, at least 1 */
    double first_s, step_s;     /**< compute of the first step and of every further one */
    double ahead_s;             /**< hop before every step but the first */
    double behind_s;            /**< hop after a step; 0: none */
    int behind_from, behind_to; /**< steps [from, to) that have one */
    const double *ahead_of_s;   /**< per step in place of ahead_s; NULL: equal */
    const double *behind_of_s;  /**< per step in place of behind_s; NULL: equal */
    int window;                 /**< steps of the inner ring; 0 or 1: the ring is not nested */
    double outer_ahead_s;       /**< hop of the outer ring: begins with a window, on a link of its
                                     own, before the first step of the next window */
    double outer_behind_s; /**< hop after that of the last step of a window, on the same link */
};
/**
 * Exposed and hidden part of the hops. O(steps log steps). Sources: Liu et al. 2023 (Ring
 * Attention); Gu et al. 2024 (LoongTrain, double ring): per window max(w max(step, inner hop),
 * outer hop).
 */
struct hv_overlap hv_overlap_ring(const struct hv_ring *ring);
/** Fills steps[ring->steps] from the same run; returns by how long hops go on after the last step.
 * This and what the steps waited add up to the exposed part. O(steps log steps). */
double hv_overlap_ring_steps(const struct hv_ring *ring, struct hv_why_step *steps);

/** A product in steps whose operands come over two links and whose partial results leave over them:
 * a panel of each operand before every step, a sum of a result after it. */
struct hv_panels {
    int steps;
    double step_s;                  /**< compute of one step */
    double before_s[2], after_s[2]; /**< before and after every step on each link; 0: none */
    bool one_link;                  /**< both links are the same one */
};
/**
 * Exposed and hidden part of the exchanges of a product in panels, with two buffers for each: what
 * goes before a step starts when the step two places before is done, and a step waits for what the
 * one two places before sends. O(steps log steps). Source: SUMMA (van de Geijn and Watts 1997,
 * section 4) in the order of Colossal-AI's 2d and 2.5d layers.
 */
struct hv_overlap hv_overlap_panels(const struct hv_panels *p);

/** `n` equal units in a row whose weights are gathered before and whose gradients are scattered
 * after their compute; no padding, compared as bytes. */
struct hv_units {
    double gather_s, compute_s, scatter_s;
    size_t n;
};
/**
 * Runs of units in the order they are computed. The gather of a unit starts at the earliest when
 * the unit `window` places before it is done: 1 = nothing is gathered ahead. O(units log units).
 * Source of the order of gathers and scatters: PyTorch FSDP (Zhao et al. 2023, section 3.3).
 */
struct hv_overlap hv_overlap_units(const struct hv_units *runs, size_t n_runs, size_t window);

#endif
