/**
 * Seconds and bytes of a model's parts on the cluster's devices: the analytic cost model.
 *
 * The unit of pricing is a *part*: the attention half or feed-forward half of a block, the
 * embedding, the head with the loss. Equal blocks share one price (block classes), prices are
 * stored per query, so pricing a stage takes O(classes), not O(layers). Every figure can be
 * explained (hv_cost_part with `why`).
 *
 * Efficiencies are estimates unless stated otherwise; see solver/cost/device/efficiency.h
 * for the constants and their sources.
 *
 * A model of modules is priced as its leaves (hv_model_leaves) one after the other: blocks count
 * through all of them; every leaf begins with its embedding and ends with a head unless another
 * module reads its output.
 */
#ifndef HV_SOLVER_COST_COST_H
#define HV_SOLVER_COST_COST_H

#include "solver/base/why.h"
#include "solver/cost/floor/floor.h"
#include "solver/cost/network/collective.h"
#include "solver/cost/part/part.h"
#include "solver/cost/stage/stage.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/plan.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** Pricing context: inputs, block classes, memo of prices. Not shared between threads. */
struct hv_cost;
struct hv_splits; /**< graph/splits.h */

/** New context; takes references to cluster and model, copies the job. Owner: hv_cost_free. */
struct hv_cost *hv_cost_new(struct hv_cluster *c, struct hv_model *m, const struct hv_job *j);
void hv_cost_free(struct hv_cost *k);
const struct hv_cluster *hv_cost_cluster(const struct hv_cost *k); /**< borrowed */
const struct hv_model *hv_cost_model(const struct hv_cost *k);     /**< borrowed */
const struct hv_job *hv_cost_job(const struct hv_cost *k);         /**< borrowed */
/** Tokens of one sequence for the model: patches of an image, else the job's sequence. */
double hv_cost_tokens(const struct hv_cost *k);

/** Prices a part (`block` is ignored for embedding and head). Remembered; O(1) when seen before. */
struct hv_part_cost hv_cost_part(struct hv_cost *k, enum hv_part part, size_t block,
                                 const struct hv_part_query *q, struct hv_why *why);

/** Class of a block: equal blocks have equal classes, 0 … hv_cost_n_classes-1. */
unsigned hv_cost_block_class(const struct hv_cost *k, size_t block);
unsigned hv_cost_n_classes(const struct hv_cost *k);
/** A block of that class. */
size_t hv_cost_class_block(const struct hv_cost *k, unsigned cls);

/**
 * Least device-seconds that any plan can spend on one sequence of this part, forward and backward,
 * on this kind of device: the best rate that products of these widths or of any cut of them reach
 * with any number of rows, streams at full length, the cheapest kernels that a plan can choose,
 * without kernel starts, communication and recompute. Under this cost model no query is cheaper per
 * sequence × rank, nor are all slices of a sequence together; the lower bound of eval rests on that
 * (tested). Remembered; the first time O(tables).
 */
double hv_cost_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                       const struct hv_device_kind *device);

/** The floors of a part by size; proof: floor/cells.c. They live as long as the context and are
 * remembered. O(cells × (kernels + weights) + tables) the first time. */
const struct hv_cost_by_size *hv_cost_by_size(struct hv_cost *k, enum hv_part part, size_t block,
                                              const struct hv_device_kind *device);
/**
 * Lists zones, and numbers of equal houses, each against all others, with the capacity of the
 * network between them; proof: floor/cut.c. The hardware alone decides which cuts there are, not
 * how a file groups it. None for models that are not plain transformers, and for clusters of more
 * than 32 classes of houses. Lists and texts in `arena`. O(groups · log(groups) + cuts · (cuts +
 * classes · links) · classes).
 */
void hv_cost_cuts(const struct hv_cost *k, struct hv_arena *arena, struct hv_cost_cuts *out);
/** Bytes of the gradients of a part of a transformer, experts included; tied embeddings count at
 * the head. O(1). */
double hv_cost_gradient_bytes(const struct hv_cost *k, enum hv_part part, size_t block);

/** Largest number of bytes of a device for states, activations and temporary buffers of passes. */
double hv_cost_usable_bytes(const struct hv_cost *k, const struct hv_device_kind *d);
/** Least bytes that all devices of a plan hold together: sums of gradients and their unscaled copy,
 * which no plan offloads. 0: not known (measured layers, modules). */
double hv_cost_least_state_bytes(const struct hv_cost *k);

/* ---- a whole stage -------------------------------------------------------------------------- */

/** Prices a pass. O(classes + log) when parts are known. Errors: HV_ENO when a device lacks the
 * precision or a model kind cannot be priced (the text names what is missing). */
enum hv_status hv_cost_pass(struct hv_cost *k, const struct hv_stage_query *q, struct hv_pass *out,
                            struct hv_err *err) HV_NODISCARD;

/** Static memory of a rank over all chunks of the stage; zero shards over the dp × cp × count
 * holders of the same weights. */
enum hv_status hv_cost_memory(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_memory *out, struct hv_err *err) HV_NODISCARD;

/** Sets, in of_block[blocks of the model], the parameters of the operators of a stage: of all
 * tensor-parallel ranks of one data-parallel rank together, each counted where it is held. Errors:
 * HV_ENO for models other than graphs of operators with operands, and as hv_cost_pass. */
enum hv_status hv_cost_graph_parameters(struct hv_cost *k, const struct hv_stage_query *q,
                                        double *of_block, struct hv_err *err) HV_NODISCARD;

/** Prices the operators of a stage, each by itself, under all their splits over its mesh, and the
 * ways between them (graph/splits.h). Layouts that the stage gives do not count. Errors: HV_ENO for
 * models other than graphs of operators with operands, for operators that can be split in too many
 * ways, and as hv_cost_pass. */
enum hv_status hv_cost_splits(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_arena *arena, struct hv_splits *out,
                              struct hv_err *err) HV_NODISCARD;

/** hv_cost_together of the family's first member, remembered. O(members) when seen before. */
double hv_cost_sharing(struct hv_cost *k, const struct hv_family *f);

/** Seconds of the optimizer step on a rank that updates `parameters` (memory bound). */
double hv_cost_optimizer_s(const struct hv_cost *k, const struct hv_device_kind *device,
                           double parameters);

/**
 * Seconds of the part of that step that the devices named in the stage's offload do, beyond the
 * backward pass: gradients go to them one after the other over the device's links as the pass makes
 * them, each updates its share at its own rate, and updated weights go back while they do.
 * O(devices named).
 */
double hv_cost_peer_optimizer_s(const struct hv_cost *k, const struct hv_stage *s,
                                const struct hv_peer_update *u);
/**
 * Seconds of that step beyond the backward pass (Ren et al. 2021, ZeRO-Offload, section 4):
 * gradients are copied while the backward pass makes them, and the part that it does not hide is
 * exposed; then the host updates the parameters of its node, and updated weights return meanwhile.
 * O(devices).
 */
double hv_cost_offload_optimizer_s(const struct hv_cost *k, const struct hv_host_update *u);

/* ---- tables for strategies ---------------------------------------------------------------------
 */

/** Fills a table in `arena`. O(n_blocks). */
enum hv_status hv_cost_layers(struct hv_cost *k, const struct hv_part_query *q,
                              struct hv_arena *arena, struct hv_layer_table *out,
                              struct hv_err *err) HV_NODISCARD;

#endif
