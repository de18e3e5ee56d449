/** Declarations shared by the files of solver/cost/stage, and the functions called by the front. */
#ifndef HV_SOLVER_COST_STAGE_STAGE_INT_H
#define HV_SOLVER_COST_STAGE_STAGE_INT_H

#include "solver/cost/part/context.h"
#include "solver/cost/stage/stage.h"

/** One pass of a stage of this chain of blocks (hv_cost_pass): pass.c. */
enum hv_status hv__stage_pass(struct hv__context *k, const struct hv_stage_query *q,
                              struct hv_pass *out, struct hv_err *err) HV_NODISCARD;
/** Memory of a rank of a stage that does not depend on micro-batches in flight (hv_cost_memory):
 * memory.c. */
enum hv_status hv__stage_memory(struct hv__context *k, const struct hv_stage_query *q,
                                struct hv_memory *out, struct hv_err *err) HV_NODISCARD;
/** Seconds of the optimizer step (hv_cost_optimizer_s and its two companions): optimizer.c. */
double hv__optimizer_s(const struct hv__context *k, const struct hv_device_kind *device,
                       double parameters);
double hv__peer_optimizer_s(const struct hv__context *k, const struct hv_stage *s,
                            const struct hv_peer_update *u);
double hv__offload_optimizer_s(const struct hv__context *k, const struct hv_host_update *u);

/** Sets the milestones of `out` to a stored list: an equal one where it exists, else a copy. */
void hv__keep_milestones(struct hv__context *k, const struct hv_milestone *items, size_t n,
                         struct hv_pass *out);

/** Most further kinds that are looked at in one rank group. */
#define HV__GROUP_KINDS 4

/** One rank of a stage: its position, devices and degrees (rank.c). */
struct hv__rank {
    const struct hv_stage *stage;
    const uint32_t *group;               /**< its tp × cp devices */
    const uint32_t *part;                /**< all ranks of its copy */
    const struct hv_device_kind *device; /**< slowest of the group for large products */
    const struct hv_device_kind *others[HV__GROUP_KINDS]; /**< further kinds of the group */
    size_t n_others;
    size_t dp, cp, tp, at; /**< degrees; data-parallel rank */
    size_t tp_at;          /**< tensor rank, where shards are unequal; else 0 */
    bool embedding, head;
};
/** Finds the rank; errors: HV_ENO when the stage's devices and degrees do not fit each other. */
enum hv_status hv__find_rank(struct hv__context *k, const struct hv_stage_query *q,
                             struct hv__rank *out, struct hv_err *err) HV_NODISCARD;
/** Query of the stage's parts on that rank, for block `block` of the model and number `i` in the
 * stage. */
struct hv_part_query hv__part_query(const struct hv__context *k, const struct hv_stage_query *q,
                                    const struct hv__rank *r, size_t block, size_t i);
/** Positions in an expert-parallel group that the devices of data-parallel rank `at` have: `n` that
 * follow each other. */
struct hv__ep_places {
    size_t first, n;
};
struct hv__ep_places hv__ep_places_at(const struct hv__rank *r, size_t at,
                                      const struct hv_part_query *q);
/** The devices of its expert-parallel group, each of which is every expert_tp-th of its copy: those
 * of dp × cp ranks of the same tensor position, or consecutive ones where experts are whole on
 * each, starting at a multiple of ep. *first: the number of the first, *of: how many there are. The
 * array lives on the heap (caller frees); NULL: no group. */
uint32_t *hv__ep_group(const struct hv__rank *r, const struct hv_part_query *q, size_t *first,
                       size_t *of);
/** Which of its copy's groups share the network with a rank's tensor- and context-parallel ones;
 * and with its expert-parallel one. As hv__together. */
struct hv_beside hv__beside_of(struct hv__context *k, const struct hv__rank *r,
                               const struct hv_part_query *q);
double hv__beside_ep(struct hv__context *k, const struct hv__rank *r,
                     const struct hv_part_query *q);
/** Holders of a rank's shard: every `stride`-th rank of all copies (tp: of what it cuts); returns
 * how many. The array lives on the heap (caller frees). `limit` > 0 cuts the group. */
size_t hv__holders(const struct hv_stage_query *q, const struct hv__rank *r, size_t stride,
                   size_t limit, uint32_t **out);
/** Routing does not matter for the pieces (hv__piece_end). */
#define HV__ANY_ITERATION SIZE_MAX
/** First half block at or after `at` that starts another piece: a run of equal blocks, a recompute
 * mask or knobs of its own ends before it, or the routing of that iteration of the job differs. */
int hv__piece_end(const struct hv__context *k, const struct hv_stage *s, size_t iteration, int at,
                  int to2);

/** Share of a state that stays on the device. */
double hv__offload_stays(const struct hv_stage *s, enum hv_offload_what what);
/** Adds what copies of activations and of `weight_bytes` take beside a pass, and takes away the
 * activations that leave. */
void hv__price_offload(const struct hv__context *k, const struct hv_stage_query *q,
                       const struct hv__rank *r, double weight_bytes, struct hv_pass *p);

/** Share of the optimizer's states that item `at` takes of the states left by earlier items. */
double hv__optimizer_part(const struct hv_stage *s, size_t at);

#endif
