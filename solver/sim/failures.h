/**
 * Interrupted work: the useful share of the time between checkpoints, and the number of nodes away
 * at a time. Pure numbers; failures are memoryless, at a constant rate. Source of the model and its
 * first-order optimum: Young, "A first order approximation to the optimum checkpoint interval",
 * CACM 17 (1974); of the complete form used here: Daly, "A higher order estimate of the optimum
 * checkpoint interval for restart dumps", FGCS 22 (2006), section 4. Thread: any. Errors: none;
 * everything is finite for finite input.
 */
#ifndef HV_SOLVER_SIM_FAILURES_H
#define HV_SOLVER_SIM_FAILURES_H

#include <stddef.h>

/** Times of a run between checkpoints. Seconds. */
struct hv_failure_run {
    double mtbf_s;    /**< mean time between interruptions, of all parts together, > 0 */
    double segment_s; /**< useful work between two checkpoints, > 0 */
    double write_s;   /**< a checkpoint; nothing else is done meanwhile */
    double
        recover_s; /**< from an interruption to the first repeated work; may be interrupted too */
};

/** Shares of the wall clock in the long run; they add up to 1. */
struct hv_failure_shares {
    double useful;
    double write;
    double rollback; /**< work and checkpoint writing lost by interruptions */
    double recover;
    double rollback_s; /**< mean loss by one interruption of work */
};

/**
 * The long run: a segment with its checkpoint takes M e^(R/M) (e^((τ+δ)/M) − 1) seconds (Daly,
 * equation 13). O(1).
 */
void hv_failure_shares(const struct hv_failure_run *r, struct hv_failure_shares *out);

/**
 * The segment with the largest useful share, exactly: the root of e^(−(τ+δ)/M) = 1 − τ/M, which
 * does not depend on the time to recover. Young's √(2δM) is its first order. 0 where writing takes
 * no time. O(steps of Newton).
 */
double hv_failure_best_segment_s(double write_s, double mtbf_s);

/** Nodes with equal rates of failure and return. */
struct hv_failure_nodes {
    size_t n;
    double per_s;  /**< failures of one present node */
    double away_s; /**< mean time until its return */
};

/**
 * Probabilities that 0, 1, …, n_out − 2 nodes are away at a time, and in the last place that as
 * many as that or more are; every node comes and goes by itself (an alternating renewal process:
 * away a share a/(1 + a) of the time, a = per_s · away_s). O(nodes · n_out).
 */
void hv_failure_away(const struct hv_failure_nodes *groups, size_t n_groups, double *out,
                     size_t n_out);

/** Work that continues with fewer nodes and stops for a while when a node fails or returns. */
struct hv_failure_states {
    const double *probability; /**< [n] of hv_failure_away: 0, 1, … nodes away */
    size_t n;
    double nodes, per_s; /**< all of them; failures of all together */
    double away_s;
    double gone_s, back_s; /**< stops after a node has failed, and after one has returned */
    double rollback_s;     /**< work that a failure throws away */
};
/**
 * Share of the time with i nodes away that is useful, checkpoints not counted: a birth-death chain
 * whose states begin with a stop, cut short by the next event. O(n).
 */
void hv_failure_productive(const struct hv_failure_states *s, double *out);

#endif
