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
/** Moves single blocks and micro-batches until none helps. */
void hv__try_small(struct hv__climb *c);

#endif
