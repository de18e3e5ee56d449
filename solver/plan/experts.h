/** Which ranks of an expert-parallel group hold which experts: owners, shards and copies. */
#ifndef HV_SOLVER_PLAN_EXPERTS_H
#define HV_SOLVER_PLAN_EXPERTS_H

#include "solver/plan/plan.h"

/** True where a plan says itself which ranks hold experts. `m` may be NULL. */
static inline bool hv_places_experts(const struct hv_moe_knobs *m)
{
    return m != NULL && (m->n_owners > 0 || m->n_copies > 0);
}
/** Ranks that a shard of an expert is on, of `ep`: 1 and more. `m` may be NULL. */
int hv_expert_shards(const struct hv_moe_knobs *m, int ep);
/** The rank that holds an expert, or its first shard: by blocks where no owners are named. `m` may
 * be NULL. O(1). */
int hv_expert_owner(const struct hv_moe_knobs *m, int experts, int ep, int expert);
/** Ranks that hold an expert or a part of it: its owner with the shards on the ranks behind it, and
 * its copies. Fills on[ep]; returns how many. `m` may be NULL. O(ep + copies). */
int hv_expert_places(const struct hv_moe_knobs *m, int experts, int ep, int expert, bool *on);

#endif
