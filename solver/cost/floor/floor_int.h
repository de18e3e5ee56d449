/** Declarations shared by the files of solver/cost/floor, and the functions called by the front. */
#ifndef HV_SOLVER_COST_FLOOR_FLOOR_INT_H
#define HV_SOLVER_COST_FLOOR_FLOOR_INT_H

#include "solver/cost/floor/floor.h"
#include "solver/cost/part/context.h"

/** Least device-seconds of a sequence in a part (hv_cost_floor_s): floor.c. */
double hv__floor_s(struct hv__context *k, enum hv_part part, size_t block,
                   const struct hv_device_kind *device);
/** The floors of a part by the size of passes (hv_cost_by_size): cells.c. */
const struct hv_cost_by_size *hv__by_size(struct hv__context *k, enum hv_part part, size_t block,
                                          const struct hv_device_kind *device);
/** The same with one cell for all sizes, of a part whose sequence takes at least floor_s; its
 * passes may be as short as they like. */
const struct hv_cost_by_size *hv__one_size(struct hv__context *k, enum hv_part part, size_t block,
                                           const struct hv_device_kind *device, double floor_s);
/** Cuts of the cluster (hv_cost_cuts): cut.c. */
void hv__cuts(const struct hv__context *k, struct hv_arena *arena, struct hv_cost_cuts *out);
/** hv_cost_gradient_bytes: cut.c. */
double hv__gradient_bytes(const struct hv__context *k, enum hv_part part, size_t block);
/** hv_cost_usable_bytes and hv_cost_least_state_bytes of a transformer: memory.c. */
double hv__usable_bytes(const struct hv_job *j, const struct hv_device_kind *d);
double hv__least_state_bytes(const struct hv__context *k);

/** Ways to run a part that change its kernels (workload/job.h). */
struct hv__way {
    bool sharded, context_parallel;
};
#define HV__WAYS 4
/** Which of them differ on this device; the rest of a query only adds to a price. Returns how many.
 */
size_t hv__different_ways(const struct hv__context *k, const struct hv_device_kind *d,
                          struct hv__way out[HV__WAYS]);
/** One sequence in that way; two over two context-parallel ranks leave the rows and pairs of one.
 */
struct hv_part_query hv__floor_query(const struct hv__context *k, const struct hv_device_kind *d,
                                     struct hv__way way, int tp);
/** Largest size of a pass of this part whose gradients and logits fit into the device's memory;
 * HUGE_VAL: does not matter. Attention is left out: its slices have fewer scores. */
double hv__largest_pass(struct hv__ask *ask, const struct hv_part_query *q);
#endif
