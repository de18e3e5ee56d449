/** Inside solver/eval/exchange: when gradients are there, what reductions share their links with,
 * servers, and the step that follows them. */
#ifndef HV_SOLVER_EVAL_EXCHANGE_EXCHANGE_INT_H
#define HV_SOLVER_EVAL_EXCHANGE_EXCHANGE_INT_H

#include "solver/eval/train/reduce_int.h"

/* ---- give_up.c --------------------------------------------------------------------------------
 */

/** True where the iteration is known to take longer than l->give_up_s, from runs that share no
 * links yet (hv__time_alone), or from final ones (`together`) without reductions: sets
 * l->iteration.least_s. Never where give_up_s is 0, or for stale plans. O(devices of the distinct
 * pipelines). */
bool hv__gives_up(struct hv__lowered *l, bool together);
/** The same where the iteration takes at least time_s. O(1). */
bool hv__too_long(struct hv__lowered *l, double time_s);

/* ---- optimizer_step.c -------------------------------------------------------------------------
 */

/** Least seconds of a rank's optimizer step: the part that it runs by itself. O(devices). */
double hv__least_optimizer_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                             const struct hv__rank *rk);

/* ---- arrival.c --------------------------------------------------------------------------------
 */

/** When gradients are there. */
struct hv__arrival {
    double at_s;
    double by_s;  /**< of that, what exchanges that waited have delayed it by */
    bool certain; /**< false: at_s or later, since the pass has not been played so far */
};
/** When a holder has the gradients of all its half blocks from `at2` upwards. Fastest where calls
 * go downwards: O(1), else O(milestones). */
struct hv__arrival hv__arrival(struct hv__holder *h, double at2);
/** First half block of the run of equal blocks that the half block before `end2` lies in: gradients
 * of a run come evenly. Fastest where calls go downwards. */
int hv__run_below(struct hv__holder *h, int end2);
/** When a holder has those of an end (hv__end_of). O(milestones). */
struct hv__arrival hv__end_arrival(const struct hv__lowered *l, const struct hv__holder *h,
                                   int end);

/* ---- servers.c --------------------------------------------------------------------------------
 */

/**
 * Seconds until all holders of so many parameters of a segment have pushed their gradients to the
 * servers and pulled the weights; the networks of nodes and named links in use are written to
 * `lanes`. O(devices + nodes; nodes² · links where there are named links).
 */
double hv__push_pull_s(struct hv__lowered *l, const struct hv__segment *s, struct hv__parameters p,
                       struct hv__lanes *lanes);

/* ---- links_left.c -----------------------------------------------------------------------------
 */

/** Traffic of activations and their gradients from some time on. */
struct hv__links_left;
/** Transfers that end after from_s, without the all-to-alls of pipelines whose exchanges take turns
 * with reductions (in_turns, [pipelines]; NULL: none). NULL: none uses a network. O(transfers). */
struct hv__links_left *hv__links_left_after(const struct hv__lowered *l, double from_s,
                                            const bool *in_turns);
/** True where some of that traffic (NULL: none) ends after a time. O(1). */
bool hv__links_busy_after(const struct hv__links_left *t, double start_s);
/** End of a reduction of so many seconds on lanes that it shares with that traffic, which has
 * priority. O(traffic of the lanes after start_s · how much of it at once). */
double hv__end_on_links_left(struct hv__links_left *t, const struct hv__lanes *w, double start_s,
                             double work_s);

/** End of what a rank does by itself: its passes, and the stream of its sharded weights. */
static inline double hv__own_end_s(const struct hv__rank *rk)
{
    return rk->compute_end_s > rk->stream_end_s ? rk->compute_end_s : rk->stream_end_s;
}

/* ---- pass_exchanges.c
 * -------------------------------------------------------------------------- */

/** An all-to-all of experts inside a pass. */
struct hv__exchange {
    double at_s; /**< from the start of its node, if no exchange before it waits */
    double length_s;
};
/** Seconds of a node that are exposed all-to-alls of experts; overlapped pairs have none of their
 * own. O(dp ranks). */
double hv__exchanges_s(const struct hv__pipeline *pl, int32_t node);
/** The all-to-alls of a node in order of time, in the arena: two for each block with experts, of
 * equal length. Returns how many. O(blocks + milestones). */
size_t hv__list_exchanges(const struct hv__lowered *l, const struct hv__pipeline *pl, int32_t node,
                          struct hv__exchange **out);

/* ---- in_turns.c
 * -------------------------------------------------------------------------------- */

/**
 * Runs all reductions of a plan in which all-to-alls of experts and reductions use the same network
 * at the same time: they take turns there, and passes are delayed by exchanges that wait. False: no
 * plan like that, and nothing is changed. O(events · (ranks + streams)), where events are the
 * all-to-alls and the ends of passes after the first bucket is ready, and the runs of equal buckets
 * between them; each bucket where exchanges go first. Where the caller stops the evaluation, what
 * is left is not played.
 */
bool hv__reduce_in_turns(struct hv__lowered *l);

/* ---- reductions.c
 * ------------------------------------------------------------------------------ */

/** Runs the reductions of a plan in order of readiness. */
void hv__run_reductions(struct hv__lowered *l);

/* ---- tail.c, optimizer_step.c -----------------------------------------------------------------
 */

/** Optimizer and weight gather of one rank. */
void hv__optimizer_step(struct hv__lowered *l, const struct hv__pipeline *pl, struct hv__rank *rk);
/** Host work of an iteration, and waiting for the slowest of many devices, seconds. */
double hv__step_s(const struct hv__lowered *l);
/** How long one round of all reductions keeps links and ranks busy, seconds. */
struct hv__round {
    double time_s;  /**< of the busiest link lane or network of a node */
    double *rank_s; /**< [flat ranks] of their lanes */
    double *lane_s; /**< [n_lanes] of the networks of nodes and the named links behind them */
    size_t n_lanes;
};
/** One round of all reductions, in the arena of the evaluation. */
struct hv__round hv__exchange_round(struct hv__lowered *l);

#endif
