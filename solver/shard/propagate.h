/**
 * Propagation: from the layouts of a few tensors to those of all.
 *
 * `choose` follows the published order of Shardy (OpenXLA, "Sharding propagation"): operators that
 * let everything through first, then factors that pass through, then reductions and broadcasts.
 * Along each factor go the axes that all tensors agree on up to the first difference; where two
 * factors want one axis in a tensor, the one whose source tensor is larger gets it. `stop`
 * propagates only what nobody contradicts and reports the conflicts (PartIR, ASPLOS'25).
 */
#ifndef HV_SOLVER_SHARD_PROPAGATE_H
#define HV_SOLVER_SHARD_PROPAGATE_H

#include "solver/base/arena.h"
#include "solver/shard/graph.h"

/** What happens where two factors want one axis. */
enum hv_propagation { HV_PROPAGATE_CHOOSE, HV_PROPAGATE_STOP };

/** Two tensors of an operator that split a factor over different axes, or two factors that want the
 * same axis in one tensor. */
struct hv_conflict {
    uint32_t op;
    uint8_t factor;
};
/** Conflicts that are left, in order of operators. Lives in the arena of the call. */
struct hv_conflicts {
    size_t n;
    struct hv_conflict *at;
};

/** Completes the layouts of all tensors that are not fixed; `conflicts` may be NULL. Terminates:
 * layouts only grow. */
void hv_propagate(struct hv_shard_graph *g, enum hv_propagation how, struct hv_arena *arena,
                  struct hv_conflicts *conflicts);

#endif
