/**
 * The stage in the cost model: the query (stage and rank), the price of one pass, and the memory of
 * a rank. The calls that need a pricing context are in cost/cost.h.
 */
#ifndef HV_SOLVER_COST_STAGE_STAGE_H
#define HV_SOLVER_COST_STAGE_STAGE_H

#include "solver/base/why.h"
#include "solver/cost/part/part.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/plan.h"

/** Bytes that a rank keeps of a pass: the members of hv_pass of these names. */
struct hv_kept {
    double activation_bytes, weight_only_bytes, transient_bytes;
};
/** Data-parallel ranks whose passes are those of the query's rank, but for what they keep of the
 * tokens of experts that the plan places. */
struct hv_peers {
    const size_t *ranks;  /**< [n] numbers as dp_rank */
    struct hv_kept *kept; /**< [n] filled in by the price of the pass, zeroed before */
    size_t n;
};

/** The stage, and the rank on which it is priced. */
struct hv_stage_query {
    const struct hv_plan *plan;
    const struct hv_replica *replica;
    size_t stage;              /**< number in the replica */
    const struct hv_stage *as; /**< priced in its place, with embedding and head given; NULL: as it
                                  is in the replica */
    int copy;                  /**< 0 … count-1: which of the equal pipelines */
    size_t chunk;              /**< range of the stage; 0 when it has one */
    int dp_rank; /**< 0 … dp-1; of a stage with `degrees` the number of its unit (hv_stage_width) */
    int tp_rank;      /**< 0 … tp-1: whose bytes and FLOP, where tensor shards are unequal */
    double sequences; /**< on this rank (unit); ≤ 0: from micro_batch, shares and deal */
    double tokens;    /**< per sequence; ≤ 0: the job's */
    double context;   /**< see hv_part_query */
    bool sliced;      /**< see hv_part_query */
    const struct hv_documents *documents; /**< see hv_part_query */
    bool continued; /**< blocks of the same pass come before these, on the same devices */
    bool continues; /**< blocks of the same pass follow on the same devices: nothing is sent on */
    struct hv_why *why; /**< or NULL */
    size_t iteration;   /**< of the job's routing */
    bool copies_apart;  /**< copies of offloaded activations go beside the pipeline, by the caller:
                           they do not lengthen the pass */
    const double *scales;  /**< per leaf of a model of modules: samples per sequence; NULL: 1 */
    struct hv_peers peers; /**< none in models of modules, stages with `degrees` or with offloads */
};

/** The stage that a query is about. */
static inline const struct hv_stage *hv_stage_asked(const struct hv_stage_query *q)
{
    return q->as != NULL ? q->as : &q->replica->stages[q->stage];
}

/** Ends of a model in the list of milestones. */
enum { HV_MILESTONE_EMBEDDING = -1, HV_MILESTONE_HEAD = -2 };
/** When the gradients of a run of blocks are ready, counted back from the end of the backward pass.
 */
struct hv_milestone {
    struct hv_range range; /**< half blocks; from2 == to2 marks an end in from2 */
    double before_end_s;
};

/** One pass of a stage: the price of one micro-batch on one rank. */
struct hv_pass {
    double forward_s;     /**< with exposed communication */
    double input_grad_s;  /**< of a whole backward, with its exposed communication */
    double weight_grad_s; /**< the rest of it */
    double recompute_s;   /**< part of the backward pass, before B */
    /** "B" and "W" of schedules that run them apart, with the communication that each leaves
     * exposed: together at least input_grad_s + weight_grad_s, where one hides that of the other.
     */
    double input_alone_s, weight_alone_s;
    /* exposed communication inside the above */
    double tp_s, cp_s, ep_s;
    double ep_forward_s; /**< of ep_s, what is in forward_s; the rest is in the backward pass */
    double zero_s; /**< gathers and scatters of sharded weights, copies of offloaded activations */
    /** Weights sharded in units larger than a layer: the gather of all blocks of the pass, and the
     * scatter of their gradients, each one collective. They belong to the schedule and are in none
     * of the seconds above; so does the memory of what they gather and scatter. 0: no such weights.
     */
    double gather_s, scatter_s, gather_bytes, scatter_bytes;
    double gather_network_s, scatter_network_s; /**< of these, seconds in which bytes move between
                                                   nodes */
    /** How long exchanges between nodes take, shown or hidden, in forward_s and in the backward
     * pass, which are never shorter. */
    double network_forward_s, network_backward_s;
    /** Of these and of network_weight_s, seconds in which no bytes move: latency, compression. */
    double latency_forward_s, latency_backward_s, latency_weight_s;
    double network_weight_s; /**< of network_backward_s: what W has, scatters of gradients */
    double copies_s;         /**< exposed sends of copies of experts, of a forward pass: once in an
                                iteration, not in the above */
    double compute_s;        /**< forward + backward compute without recompute and communication */
    double flops;            /**< model FLOPs forward and backward on this rank */
    double routed, dropped;  /**< blocks that send tokens to experts, and the sum over them of the
                                share that finds no place */
    double hop_bytes; /**< activation handed to the next stage by this rank's dp share (all tp and
                         cp ranks together) */
    double activation_bytes;              /**< kept per micro-batch in flight */
    double weight_only_bytes;             /**< of these, kept until W */
    double away_bytes, away_weight_bytes; /**< what offloads took away from these two */
    double transient_bytes;
    struct hv_traffic sent;                /**< by this rank */
    const struct hv_milestone *milestones; /**< in the memo's arena: valid as long as the context */
    size_t n_milestones;
};
/** Memory of one rank of a stage that does not depend on micro-batches in flight. */
struct hv_memory {
    double weights_bytes, gradients_bytes, master_bytes, optimizer_bytes;
    double buffers_bytes;      /**< of the framework, as its allocator counts: work space, pipeline
                                  buffers, buckets, gradients in fp32 for the optimizer */
    double boundary_bytes;     /**< of these, where the stage has neighbours: activations and
                                  gradients at its boundaries */
    double communicator_bytes; /**< of one group of ranks that exchanges data: in `outside` for each
                                  group that the rank is in */
    double outside_bytes; /**< what only the driver counts: context and communicators, estimated */
    /** Share that the caching allocator holds beyond what is in use, of activations too: estimated.
     */
    double fragmentation_frac;
    double overhead_bytes; /**< buffers, outside, and the fragmentation of states and buffers */
    double away_weights_bytes, away_states_bytes; /**< what offloads took away: weights; master
                                  copy and states of the optimizer */
    double reserve_bytes;                         /**< reserve of the job or the device */
    double limit_bytes;                           /**< memory of the device */
    /** Of the above, what comes and goes with the units that a schedule gathers, where they are
     * larger than a layer: gathered weights, gradients and buffers beyond the shards. */
    double unit_weights_bytes, unit_gradients_bytes, unit_buffers_bytes;
    double parameters;         /**< held by this rank before zero sharding */
    double expert_parameters;  /**< of these, of routed experts */
    double updated_parameters; /**< those whose optimizer step this rank runs */
};
/** A device whose optimizer step is done by its host. */
struct hv_host_update {
    const uint32_t *devices; /**< of its stage: those in its node share the host's memory */
    size_t n_devices;
    uint32_t device;
    double parameters;      /**< of the device, that its host updates */
    double node_parameters; /**< the same of all devices of its node together */
    double backward_s; /**< in which its gradients become ready: from the last backward pass to the
                          last reduction */
};
/** Memory of a device that plans may use: all of it less the reserve of the job, or of the device.
 * O(1). */
double hv_device_usable_bytes(const struct hv_job *job, const struct hv_device_kind *kind);
/** True where copies of the activations of a stage go beside its passes, on lanes of their own;
 * else every pass waits for its own: its link carries weights too. O(offloads). */
bool hv_stage_copies_apart(const struct hv_stage *s);
/** Share of all that offloads take of a kind (activations, weights, states) that item `at` takes.
 * O(offloads). */
double hv_stage_offload_share(const struct hv_stage *s, size_t at);
/** Share of the optimizer's states that a stage leaves to its host. */
double hv_stage_host_frac(const struct hv_stage *s);
/** Share of them that it leaves to other devices. */
double hv_stage_peer_frac(const struct hv_stage *s);
/** A device whose optimizer step is done, in part, by other devices. */
struct hv_peer_update {
    uint32_t device;
    double parameters; /**< all that it is to update, theirs included */
    double backward_s; /**< in which its gradients become ready: from the last backward pass to the
                          last reduction */
};
/** Bytes per second that a device gets of its link to the host, when all of `devices` copy: those
 * in its node share the host's memory. O(devices). */
double hv_cost_host_bytes_per_s(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                                uint32_t device);

#endif
