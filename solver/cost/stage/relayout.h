/** Change of layout of activations between two parts of a stage with different degrees. */
#ifndef HV_SOLVER_COST_STAGE_RELAYOUT_H
#define HV_SOLVER_COST_STAGE_RELAYOUT_H

#include "solver/cost/network/collective.h"
#include "solver/cost/stage/stage_int.h"

/** What moves, and where. */
struct hv__relayout {
    const uint32_t *devices; /**< of one copy of the stage */
    size_t n_devices;
    size_t unit;  /**< a device whose group is priced, by its position among these */
    double bytes; /**< of all sequences of a micro-batch, each token once */
};

/**
 * Seconds until every device of the unit's group has what it needs of the activations in the layout
 * of `to`, from that of `from`. The gradients take hv__relayout_s of the two the other way round.
 * All groups of the stage exchange at the same time. O(devices of the group + n_devices log).
 */
double hv__relayout_s(struct hv__context *k, const struct hv__relayout *x,
                      const struct hv_stage *from, const struct hv_stage *to);
/** True where that exchange leaves a node or link domain. */
bool hv__relayout_is_far(const struct hv__context *k, const struct hv__relayout *x,
                         const struct hv_stage *from, const struct hv_stage *to);

#endif
