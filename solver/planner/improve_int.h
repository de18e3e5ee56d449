/** Internals of the planner: one climb from a starting point, and its moves. */
#ifndef HV_SOLVER_PLANNER_IMPROVE_INT_H
#define HV_SOLVER_PLANNER_IMPROVE_INT_H

#include "solver/planner/planner_int.h"

/** A climb: the plan reached so far. */
struct hv__climb {
    struct hv__search *s;
    struct hv__sketch k;
    double value;
    bool quick; /* only moves with a fast evaluation */
    bool moved;
};

/* ---- climb.c: one step ---- */
/** Evaluates *next and takes the step to it where it is better; `refit`: with blocks and batch
 * split anew. */
bool hv__attempt(struct hv__climb *c, struct hv__sketch *next, bool refit);
/** Sets the degrees of a run for at most n devices of its pool; in mixed stages also the shares of
 * its two pools. False where the degrees are not possible. */
bool hv__set_degrees(const struct hv__climb *c, struct hv__replica_sketch *r,
                     struct hv__stage_run *run, int n);
/** Devices that a run of the plan could have: its own and the unused ones of its pool. */
int hv__most_devices(const struct hv__climb *c, const struct hv__stage_run *run);
/** Devices of a run of the plan, rounded up to whole nodes where they are unused. */
int hv__whole_nodes(const struct hv__climb *c, const struct hv__stage_run *run);

/* ---- moves ---- */
/** mixed_ranks.c: ranks of a second pool in the stages of run j of replica r. */
void hv__try_mixed_ranks(struct hv__climb *c, int r, int j);
/** mixed_ranks.c: two replicas of different pools as one whose stages hold devices of both: states
 * may then be sharded over all of them. */
void hv__try_joined_replicas(struct hv__climb *c);
/** exchange.c: bucket sizes, and how gradients and states are sharded and kept. */
void hv__try_exchanges(struct hv__climb *c);
/** fine_moves.c: single blocks and micro-batches, until none helps. */
void hv__try_fine_moves(struct hv__climb *c);

#endif
