/**
 * Seconds and bytes of a model's parts on the cluster's devices: the analytic cost model.
 *
 * The unit of pricing is a *part*: the attention half or feed-forward half of a block, the
 * embedding, the head with the loss. Equal blocks share one price (block classes), prices are
 * remembered per query, so pricing a stage costs O(classes), not O(layers). Every figure can say
 * why (hv_cost_part with `why`).
 *
 * Efficiencies are estimates unless a figure says otherwise; see solver/cost/device/efficiency.h
 * for the constants and their sources.
 *
 * A model of modules is priced as its leaves (hv_model_leaves) one after the other: blocks count
 * through all of them, every leaf has its embedding in front, and a head unless another module
 * reads it.
 */
#ifndef HV_SOLVER_COST_COST_H
#define HV_SOLVER_COST_COST_H

#include "solver/base/why.h"
#include "solver/cost/network/collective.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/plan.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** Pricing context: inputs, block classes, memo of prices. Not shared between threads. */
struct hv_cost;

/** New context; takes references to cluster and model, copies the job. Owner: hv_cost_free. */
struct hv_cost *hv_cost_new(struct hv_cluster *c, struct hv_model *m, const struct hv_job *j);
void hv_cost_free(struct hv_cost *k);
const struct hv_cluster *hv_cost_cluster(const struct hv_cost *k); /**< borrowed */
const struct hv_model *hv_cost_model(const struct hv_cost *k);     /**< borrowed */
const struct hv_job *hv_cost_job(const struct hv_cost *k);         /**< borrowed */
/** Tokens of one sequence as the model sees it: patches of an image, else the job's. */
double hv_cost_tokens(const struct hv_cost *k);

/** Parts a model is priced in: the halves of a block, and what stands before and after the blocks.
 */
enum hv_part { HV_PART_ATTENTION, HV_PART_FFN, HV_PART_EMBEDDING, HV_PART_HEAD, HV_PART_N };

/** How many rank groups of each kind share the network with this one (hv_cost_together); 0: not
 * looked at, as many as there are ranks between its members. */
struct hv_beside {
    double tp, cp_heads, cp_ring, ep;
};

/** How a part is run: everything its price depends on besides the block itself. */
struct hv_part_query {
    const struct hv_device_kind *device; /**< the slowest kind of the tensor-parallel group */
    int tp, cp, ep;
    int expert_tp;  /**< ranks that cut one expert: 0 or tp as everything else, 1 whole experts on
                       all tp ranks, each of which sends its own share of the tokens */
    double tp_frac; /**< what this rank has of everything that tensor parallelism cuts; 0: equal
                       shards, 1 / tp */
    enum hv_tp_scheme tp_scheme;
    int tp_depth;                /**< 2.5d: copies of the q × q grid; 0 or 1 otherwise */
    enum hv_cp_scheme cp_scheme; /**< ulysses; everything else is priced as a ring, with cp_heads
                                    as all-to-alls over heads and rings */
    int cp_heads;                /**< heads part of cp (usp, loongtrain); 0 or 1: none */
    enum hv_cp_layout cp_layout; /**< contiguous rings wait for the rank with the latest tokens */
    enum hv_cp_order cp_order;   /**< which of heads and ring has neighbouring ranks */
    enum hv_cp_backward cp_backward; /**< what a ring passes on in the backward pass */
    bool sequence_parallel;
    bool sharded_weights; /**< ZeRO-3 or FSDP; says something about the kernels in use */
    bool
        sharded_pipeline; /**< as DeepSpeed runs pipelines: plain 1F1B with ZeRO-1 or 2; likewise */
    double sequences;     /**< of one micro-batch on one data-parallel rank; fractions allowed */
    double tokens;        /**< per sequence, before cp */
    double context;       /**< extra key/value tokens seen before these (slices); 0 */
    unsigned recompute;   /**< mask of enum hv_recompute */
    const uint32_t
        *group; /**< tp·cp consecutive devices of the rank group, for its collectives; NULL: tp
                   collectives priced on the device's own link as if inside one node */
    const uint32_t *ep_group;       /**< devices of the expert-parallel group, or NULL (ep = 1) */
    const struct hv_moe_knobs *moe; /**< or NULL */
    struct hv_beside beside;
};

/** Price of one part for one micro-batch on one rank. Seconds are compute unless named otherwise.
 */
struct hv_part_cost {
    double forward_s, input_grad_s, weight_grad_s, recompute_s;
    double tp_forward_s, tp_backward_s; /**< exposed tensor-parallel collectives; backward includes
                                           those of recompute */
    double cp_forward_s, cp_backward_s; /**< exposed context-parallel exchange */
    double ep_forward_s, ep_backward_s; /**< exposed expert all-to-all */
    /** How long these keep their links busy, whether compute hides them or not. */
    double tp_wire_forward_s, tp_wire_backward_s, cp_wire_forward_s, cp_wire_backward_s,
        ep_wire_forward_s, ep_wire_backward_s;
    double flops_forward;     /**< model FLOPs on this rank, without recompute */
    double parameters;        /**< dense parameters on this rank (after tp) */
    double expert_parameters; /**< routed experts on this rank (after tp and ep), the most that one
                                 holds */
    double saved_bytes;       /**< activations kept from forward to weight gradient */
    double saved_input_bytes; /**< of these, freed only at the weight gradient (zero-bubble M_W) */
    double transient_bytes;   /**< live only during the pass (logits, attention scores, recompute
                                 peak) */
    double output_bytes;      /**< activation handed on, per rank */
};

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
 * with any number of rows, streams at full length, the cheapest of the kernels that a plan can ask
 * for, no starts, no communication, no recompute. Under this cost model no query is cheaper per
 * sequence × rank, nor are all slices of a sequence together; the lower bound of eval rests on that
 * (tested). Remembered; the first time O(tables).
 */
double hv_cost_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                       const struct hv_device_kind *device);

/** Ranges of sizes of passes that are told apart, degrees of tensor parallelism, most cells of a
 * part on a device (experts are cut or whole), places of its curve. */
#define HV_COST_SIZES   33
#define HV_COST_DEGREES 12
#define HV_COST_CELLS   (HV_COST_SIZES * 2 * HV_COST_DEGREES)
#define HV_COST_WEIGHTS 80
/** Shares of the whole work against what follows the first forward pass that are told apart. */
#define HV_COST_MIXES 20

/** What of a pass a floor is of: all of it; F and B without the weight gradient; F; and what can
 * only follow F, B and the weight gradient. */
enum hv_cost_of { HV_COST_ALL, HV_COST_CHAIN, HV_COST_FORWARD, HV_COST_LATER, HV_COST_OF_N };
/** A pass of size x takes start_s + x each_s. */
struct hv_cost_line {
    double each_s; /**< also the device-seconds of one sequence, all ranks together */
    double start_s;
};
/**
 * The least that passes of one range of sizes can cost. The size x of a pass is its sequences (on
 * one rank, slices and context-parallel shards as fractions) over its tensor-parallel ranks; a pass
 * with least < x ≤ most takes every rank at least of[…].start_s + x of[…].each_s.
 */
struct hv_cost_cell {
    double least, most;
    struct hv_cost_line of[HV_COST_OF_N];
};
/** What a part costs on a kind of device, by the size of its passes. */
struct hv_cost_by_size {
    /** Every pass of a plan with 1d tensor parallelism lies above at least one of those with its
     * size; several have the same limits (they stand for different numbers of ranks). */
    const struct hv_cost_cell *cells;
    size_t n_cells;
    double weighted_s[HV_COST_WEIGHTS]; /**< read by hv_cost_weighted_s */
    double *even_s; /**< [HV_COST_MIXES × HV_COST_WEIGHTS] read and filled by hv_cost_even_s */
};
/** The floors of a part by size; proof: floor_cells.c. They live as long as the context and are
 * remembered. O(cells × (kernels + weights) + tables) the first time. */
const struct hv_cost_by_size *hv_cost_by_size(struct hv_cost *k, enum hv_part part, size_t block,
                                              const struct hv_device_kind *device);
/** Least of the device-seconds of a sequence plus `weight` times the seconds of F and B of a pass,
 * over all sizes: a little too low between places of the curve, never too high. O(1). */
double hv_cost_weighted_s(const struct hv_cost_by_size *c, double weight);
/** Share number i < HV_COST_MIXES: 1 first, falling. */
double hv_cost_mix(size_t i);
/** The same where all passes have one size: least of a share of the device-seconds of a sequence,
 * the rest of those after its F, and `weight` times the seconds of F of a pass. O(1), the first
 * time at a place O(cells). */
double hv_cost_even_s(const struct hv_cost_by_size *c, size_t mix, double weight);

/** Two sides of a cluster and what crosses between them, at the best. */
struct hv_cost_cut {
    const bool *beyond; /**< [groups of the cluster] on the second side */
    double hop_s;       /**< activations of all sequences of the batch, once in one direction */
    double latency_s;   /**< of one message */
    double byte_s;      /**< a byte of gradients that devices on both sides sum */
    const char *words;  /**< "the link between east and west (1.25 GB/s)" */
};
/**
 * Lists zones and groups of nodes, each against all others, with what the network between them
 * carries; proof: floor_cut.c. None for models that are no plain transformer, and for clusters of
 * very many groups. Lists and words in `arena`. O(groups³ · links).
 */
size_t hv_cost_cuts(const struct hv_cost *k, struct hv_arena *arena, struct hv_cost_cut **out);
/** Bytes of the gradients of a part of a transformer, experts included; tied embeddings count at
 * the head. O(1). */
double hv_cost_gradient_bytes(const struct hv_cost *k, enum hv_part part, size_t block);

/** Most bytes of a device that states, activations and what passes need can have. */
double hv_cost_usable_bytes(const struct hv_cost *k, const struct hv_device_kind *d);
/** Bytes that all devices of a plan hold together at the least: sums of gradients and their
 * unscaled copy, which no plan offloads. 0: not known (measured layers, modules). */
double hv_cost_least_state_bytes(const struct hv_cost *k);

/* ---- a whole stage -------------------------------------------------------------------------- */

/** Which stage, seen from which of its data-parallel ranks. */
struct hv_stage_query {
    const struct hv_plan *plan;
    const struct hv_replica *replica;
    size_t stage;         /**< number in the replica */
    int copy;             /**< 0 … count-1: which of the equal pipelines */
    size_t chunk;         /**< range of the stage; 0 when it has one */
    int dp_rank;          /**< 0 … dp-1 */
    int tp_rank;          /**< 0 … tp-1: whose bytes and FLOP, where tensor shards are unequal */
    double sequences;     /**< on this rank; ≤ 0: from micro_batch, shares and deal */
    double tokens;        /**< per sequence; ≤ 0: the job's */
    double context;       /**< see hv_part_query */
    struct hv_why *why;   /**< or NULL */
    const double *scales; /**< per leaf of a model of modules: samples per sequence; NULL: 1 */
};

/** When the gradients of a run of blocks are ready, counted back from the end of the backward pass.
 */
struct hv_milestone {
    struct hv_range
        range; /**< half blocks; from2 == to2 marks embedding (−1) or head (−2) in from2 */
    double before_end_s;
};

/** One pass of a stage (architecture.md §1b.1): what one micro-batch costs on one rank. */
struct hv_pass {
    double forward_s;     /**< with exposed communication */
    double input_grad_s;  /**< "B", with exposed communication */
    double weight_grad_s; /**< "W" */
    double recompute_s;   /**< part of the backward pass, before B */
    /* exposed communication inside the above */
    double tp_s, cp_s, ep_s;
    double zero_s; /**< gathers and scatters of sharded weights, copies of offloaded activations */
    /** How long exchanges between nodes keep the network of the rank's nodes busy, shown or hidden,
     * in forward_s and in the backward pass, which are never shorter. */
    double network_forward_s, network_backward_s;
    double compute_s; /**< forward + backward compute without recompute and communication */
    double flops;     /**< model FLOPs forward and backward on this rank */
    double hop_bytes; /**< activation handed to the next stage by this rank's dp share (all tp and
                         cp ranks together) */
    double activation_bytes;  /**< kept per micro-batch in flight */
    double weight_only_bytes; /**< of these, kept until W */
    double transient_bytes;
    const struct hv_milestone *milestones; /**< in the memo's arena: valid as long as the context */
    size_t n_milestones;
};
/** Prices a pass. O(classes + log) when parts are known. Errors: HV_ENO when a device lacks the
 * precision or a model kind cannot be priced (the text says what is missing). */
enum hv_status hv_cost_pass(struct hv_cost *k, const struct hv_stage_query *q, struct hv_pass *out,
                            struct hv_err *err) HV_NODISCARD;

/** Memory of one rank of a stage that does not depend on what is in flight. */
struct hv_memory {
    double weights_bytes, gradients_bytes, master_bytes, optimizer_bytes;
    double buffers_bytes; /**< of the framework, as its allocator counts: work space, pipeline
                             buffers, buckets, gradients in fp32 for the optimizer */
    double outside_bytes; /**< what only the driver counts: context and communicators, estimated */
    /** Share that the caching allocator holds beyond what is in use, of activations too: estimated.
     */
    double fragmentation_frac;
    double overhead_bytes;     /**< buffers, outside, and the fragmentation of states and buffers */
    double reserve_bytes;      /**< what the job or the device keeps back */
    double limit_bytes;        /**< what the device has */
    double parameters;         /**< held by this rank before zero sharding */
    double expert_parameters;  /**< of these, of routed experts */
    double updated_parameters; /**< those whose optimizer step this rank runs */
};
/** Static memory of a rank over all chunks of the stage; zero shards over dp × cp × count holders
 * (rule E). */
enum hv_status hv_cost_memory(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_memory *out, struct hv_err *err) HV_NODISCARD;

/** Seconds of the optimizer step on a rank that updates `parameters` (memory bound). */
double hv_cost_optimizer_s(const struct hv_cost *k, const struct hv_device_kind *device,
                           double parameters);

/** A device whose optimizer step is done by its host. */
struct hv_host_update {
    const uint32_t *devices; /**< of its stage: those in its node share the host's memory */
    size_t n_devices;
    uint32_t device;
    double parameters;      /**< of the device, that its host updates */
    double node_parameters; /**< the same of all devices of its node together */
    double backward_s;      /**< of its last backward pass */
};
/** Share of the optimizer's states that a stage leaves to its host. */
double hv_stage_host_frac(const struct hv_stage *s);
/** Share of them that it leaves to other devices. */
double hv_stage_peer_frac(const struct hv_stage *s);
/** A device whose optimizer step is done, in part, by other devices. */
struct hv_peer_update {
    uint32_t device;
    double parameters; /**< all that it is to update, theirs included */
    double backward_s; /**< of its last backward pass */
};
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
 * gradients are copied as the backward pass makes them, what it does not hide shows; then the host
 * updates all of its node, and updated weights go back while it does. O(devices).
 */
double hv_cost_offload_optimizer_s(const struct hv_cost *k, const struct hv_host_update *u);
/** Bytes per second that a device gets of its link to the host, when all of `devices` copy: those
 * in its node share the host's memory. O(devices). */
double hv_cost_host_bytes_per_s(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                                uint32_t device);

/* ---- tables for strategies ---------------------------------------------------------------------
 */

/** Per-layer prices of one query as prefix sums over blocks, embedding and head apart. */
struct hv_layer_table {
    size_t n_blocks;
    double *forward_s, *backward_s; /**< n_blocks + 1 prefix sums, exposed communication included;
                                       backward with recompute */
    double *parameters;             /**< n_blocks + 1 prefix sums, on one rank */
    double *saved_bytes;            /**< n_blocks + 1 prefix sums */
    double output_bytes; /**< handed on after any block by one dp rank (all tp ranks together) */
    struct hv_part_cost embedding, head;
};
/** Fills a table in `arena`. O(n_blocks). */
enum hv_status hv_cost_layers(struct hv_cost *k, const struct hv_part_query *q,
                              struct hv_arena *arena, struct hv_layer_table *out,
                              struct hv_err *err) HV_NODISCARD;

#endif
