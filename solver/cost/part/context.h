/**
 * Inside cost: the pricing context of one model that is a chain of blocks, and the queries that
 * stages and floors make of its parts. Whatever depends on the kind of the model is in its row of
 * `struct hv__parts`; a model of modules has a context per leaf (cost/modules.c).
 */
#ifndef HV_SOLVER_COST_PART_CONTEXT_H
#define HV_SOLVER_COST_PART_CONTEXT_H

#include "solver/cost/device/era.h"
#include "solver/cost/network/memo.h"
#include "solver/cost/part/part.h"
#include "solver/cost/part/rates.h"

/** Blocks [from, to) of one class. */
struct hv__run {
    int from, to;
    unsigned cls;
};

struct hv__parts;
struct hv__graphs;
struct hv__ways_of;
struct hv__rank;
struct hv_stage_query;

/** Memory that a call gives back for the next one. */
struct hv__spare {
    double *items; /**< NULL: none */
    size_t n;
};

/** The context: equal blocks share a class and a price; computed prices are stored. */
struct hv__context {
    struct hv_cluster *cluster;
    struct hv_model *model;
    struct hv_job job;
    const struct hv__parts *parts; /**< how its parts are priced; NULL: a model of modules */
    struct hv_arena arena;         /**< classes, runs, and the data of the pointers below */
    unsigned *cls;                 /**< per block */
    size_t *representative;        /**< a block per class */
    unsigned n_classes;
    struct hv__run *runs; /**< NULL for a model of modules */
    size_t n_runs;
    size_t *with_experts;      /**< [blocks] how many of those before it have experts; NULL: even
                                  routing, or a model without any */
    const bool *from_weights;  /**< graph/parts.c: per tensor of a graph with operands, whether a
                                  parameter is behind it; NULL before the first */
    struct hv__graphs *graphs; /**< graph/stage.c: solved stages; NULL before the first */
    struct hv__ways_of *ways; /**< load.c: links of expert-parallel groups; NULL before the first */
    bool *can_price;          /**< [kinds of the cluster] found to be able to price the model */
    struct hv__memo prices;   /**< of parts: memo.c */
    struct hv__memo network;  /**< of collectives: network/memo.h */
    struct hv__memo held;     /**< held.c: what ranks hold of experts that plans place */
    struct hv__memo places;   /**< held.c: ranks that hold each expert */
    struct hv__spare spare;   /**< load.c: memory for the next load */
    struct hv__memo boxes;    /**< rates.c: best rates of products */
    struct hv__memo slices;   /**< rates.c: attention in slices */
    double *floors;           /**< floor/floor.c; NULL before the first */
    struct hv__by_size *by_size; /**< floor/cells.c */
    struct hv__reach **reach;    /**< [kinds + 1] floor/cells.c; NULL before the first */
    /** stage/milestones.c: lists already handed out. */
    struct hv__milestones *milestones;
    size_t n_milestones, cap_milestones;
    struct hv_arena milestones_arena;
};

/** Opens a context: takes references to cluster and model, copies the job, finds block classes and
 * runs. `parts` NULL: a model of modules, whose classes the caller fills in. */
void hv__context_open(struct hv__context *k, struct hv_cluster *c, struct hv_model *m,
                      const struct hv_job *j, const struct hv__parts *parts);
/** Frees the contents of the context and releases its references. */
void hv__context_close(struct hv__context *k);

/** A part to price. */
struct hv__ask {
    struct hv__context *k;
    enum hv_part part;
    size_t block;
    const struct hv_part_query *q;
    struct hv_why *why;              /**< or NULL */
    const struct hv__rates *rates;   /**< hv__real_rates or hv__best_rates */
    const struct hv__passes *passes; /**< hv__one_pass, or the passes that a floor is of */
    struct hv__left_out *left_out;   /**< of floors: costs that the price leaves out; or NULL */
};

/** What a rank of a stage holds, of one device. */
struct hv__rank_counts {
    double parameters;     /**< of all its chunks */
    double largest;        /**< of the largest unit of sharding */
    double boundary_bytes; /**< activations at its boundaries, and their gradients */
};
/** Functions that price the parts of one kind of model. */
struct hv__parts {
    /** Price of a part, not remembered; seconds HV_UNKNOWN where the device cannot run it. */
    struct hv_part_cost (*price)(const struct hv__ask *a);
    /** True where two blocks cost the same. NULL: each block is a class of its own. */
    bool (*same_block)(const struct hv_model *m, size_t a, size_t b);
    /** HV_OK, or why this kind of device cannot price the model; called once per kind. */
    enum hv_status (*check_device)(struct hv__context *k, const struct hv_device_kind *d,
                                   struct hv_err *err);
    /** Measured seconds of the optimizer step per parameter, or HV_UNKNOWN; NULL: never measured.
     */
    double (*update_s)(const struct hv__context *k, const struct hv_device_kind *d);
    /** What a rank holds, where it does not follow from prices of its parts; NULL: it does. */
    enum hv_status (*count)(struct hv__context *k, const struct hv_stage_query *q,
                            const struct hv__rank *r, struct hv__rank_counts *out,
                            struct hv_err *err);
    /** Prices are computed from dimensions: kernels depend on the software of the device's era, the
     * framework's host work comes on top of every pass, and blocks hand on tokens × hidden values.
     * Otherwise seconds are given and every block has an output size of its own. */
    bool analytic;
};
extern const struct hv__parts hv__transformer_parts; /**< transformer.c */
extern const struct hv__parts hv__measured_parts;    /**< measured.c */

/** Key of all properties of experts that a price depends on. O(owners + ranks of copies). */
uint64_t hv__moe_signature(const struct hv_moe_knobs *m);
/** Experts of other nodes that a rank holds for the ranks of its node where experts move
 * (travel.c). O(experts × ep). */
double hv__cached_experts(const struct hv__context *k, const struct hv_part_query *q, int experts);
/** Price of a part, remembered; `block` is ignored for embedding and head, and blocks beyond the
 * model cost nothing. With `why` it is computed and explained. O(1) when seen before. */
struct hv_part_cost hv__part_cost(struct hv__context *k, enum hv_part part, size_t block,
                                  const struct hv_part_query *q, struct hv_why *why);
/** HV_OK, or why this device cannot price the model. O(kinds) when the answer is stored. */
enum hv_status hv__check_device(struct hv__context *k, const struct hv_device_kind *d,
                                struct hv_err *err) HV_NODISCARD;

/** HV_ENO, with the reason, for a device without the job's precision or a known bandwidth. O(1). */
enum hv_status hv__check_precision(struct hv__context *k, const struct hv_device_kind *d,
                                   struct hv_err *err) HV_NODISCARD;

/** Tokens of one sequence as the model has them: patches of an image, else the job's. */
static inline double hv__tokens(const struct hv__context *k)
{
    return k->model->patch_tokens > 0 ? k->model->patch_tokens : (double)k->job.sequence;
}

/** True for the attention or feed-forward half of a block; false for embedding and head. */
static inline bool hv__in_block(enum hv_part part)
{
    return part == HV_PART_ATTENTION || part == HV_PART_FFN;
}

/** hv__older_stack for this part; false for models that are not analytic. */
static inline bool hv__on_older_stack(const struct hv__context *k, const struct hv_part_query *q)
{
    const struct hv_kernel_query kq = {q->device, q->sharded_weights, q->cp > 1};
    return k->parts->analytic && hv__older_stack(&k->job, k->model, &kq);
}

/** Division of the context-parallel ranks into all-to-alls over heads and rings. */
struct hv__cp_shape {
    int heads, ring;
    int inner; /**< ranks of the ring that form an inner ring, or a team of wallfacer; 1: none */
    /** Ranks between neighbours of an all-to-all, of a ring, of an inner ring (or a team) and of an
     * outer ring (or of one member of each team), in tensor-parallel groups. */
    size_t heads_apart, ring_apart, inner_apart, outer_apart;
};
/** From scheme, degrees and order (ring.c). O(1). */
struct hv__cp_shape hv__cp_shape_of(const struct hv_part_query *q);

/** Ranks along each axis of a grid or a cube (summa.c); 1d: 1. O(side). */
int hv__grid_side(const struct hv_part_query *q);
/** Lines along each axis, of all grids of 2.5d (summa.c). O(side). */
int hv__grid_lines(const struct hv_part_query *q);
/** The first rank of a line: axis 0 has rows, 1 columns, 2 layers of a cube (summa.c). O(side). */
size_t hv__grid_line(const struct hv_part_query *q, int axis, int line);
/** Ranks between neighbours along an axis (summa.c). O(side). */
size_t hv__grid_apart(const struct hv_part_query *q, int axis);

/** Parts of this rank's size that everything tensor-parallel would be cut into. */
static inline double hv__tp_parts(const struct hv_part_query *q)
{
    return q->tp_frac > 0 ? 1 / q->tp_frac : q->tp;
}

/** 2.5d: grids that share the sequences and hold the same weights; 1 otherwise. */
static inline double hv__tp_depth(const struct hv_part_query *q)
{
    return q->tp_scheme == HV_TP_25D && q->tp_depth > 1 ? q->tp_depth : 1;
}

#endif
