/** Inside of the planner: one climb from a start. */
#ifndef HV_SOLVER_PLANNER_IMPROVE_INT_H
#define HV_SOLVER_PLANNER_IMPROVE_INT_H

#include "solver/planner/planner_int.h"

/** A start on its way. */
struct hv__climb {
    struct hv__search *s;
    struct hv__sketch k;
    double value;
    bool quick; /* only steps that are soon judged */
    bool moved;
};

/** Takes the step to *next when it is better; `refit`: with blocks and batch dealt out anew. */
bool hv__attempt(struct hv__climb *c, struct hv__sketch *next, bool refit);
/** Gives the leg new degrees on at most n devices of its pool; with guests, also a new share. False
 * where they do not go together. */
bool hv__set_degrees(const struct hv__climb *c, struct hv__replica_sketch *r,
                     struct hv__stage_run *run, int n);
/** Devices that a run of the plan could have: its own and the unused ones of its pool. */
int hv__most_devices(const struct hv__climb *c, const struct hv__stage_run *run);
/** Devices of a run of the plan, rounded up to whole nodes where they are unused. */
int hv__whole_nodes(const struct hv__climb *c, const struct hv__stage_run *run);
/** Ranks of another pool in the stages of a leg, with a share of their own. */
void hv__try_mixed_ranks(struct hv__climb *c, int r, int run);
/** Two teams of different pools as one, whose stages hold devices of both: states may then be
 * sharded over all of them. */
void hv__try_joined_replicas(struct hv__climb *c);
/** How gradients are reduced, and how states are sharded: bucket sizes, shards inside of nodes,
 * sums and weights that are kept. */
void hv__try_exchanges(struct hv__climb *c);
/** Moves single blocks and micro-batches until none helps. */
void hv__try_fine_moves(struct hv__climb *c);

#endif
