/** Shared by the files of solver/cost only: the context, its memo and the pricing of one part. */
#ifndef HV_SOLVER_COST_COST_INT_H
#define HV_SOLVER_COST_COST_INT_H

#include "solver/cost/cost.h"
#include "solver/cost/efficiency.h"

/** Blocks [from, to) of one class. */
struct hv__run {
    int from, to;
    unsigned cls;
};

struct hv__memo; /* cost.c */

struct hv_cost {
    struct hv_cluster *cluster;
    struct hv_model *model;
    struct hv_job job;
    struct hv_arena arena; /**< classes, runs, milestones */
    unsigned *cls;         /**< per block */
    size_t *representative; /**< a block per class */
    unsigned n_classes;
    struct hv__run *runs;
    size_t n_runs;
    struct hv__memo *memo;
    struct hv_arena milestones_arena;
    struct hv__milestones *milestones; /**< lists already handed out */
    size_t n_milestones, cap_milestones;
};

/** A part to price. `ideal` = the floor: no starts, no thin products, no weights read, no exchange. */
struct hv__ask {
    struct hv_cost *k;
    enum hv_part part;
    size_t block;
    const struct hv_part_query *q;
    struct hv_why *why;
    bool ideal;
};

/** Prices a part of a transformer (part.c). All figures HV_UNKNOWN when the device lacks the precision. */
struct hv_part_cost hv__price_transformer(const struct hv__ask *a);
/** Prices a measured layer or a graph operator; the attention half carries all (part_layers.c). */
struct hv_part_cost hv__price_layer(const struct hv__ask *a);

/** What one pass moves between the ranks of its group, and how. */
struct hv__exchange {
    double tp_bytes;         /**< of one all-reduce (1d), forward */
    double tp_forward, tp_backward; /**< how many of them */
    double grid_bytes;       /**< 2d, 2.5d, 3d: moved per rank forward; backward twice that */
    double cp_bytes;         /**< keys and values of one rank */
    double cp_heads_bytes;   /**< ulysses: queries, keys, values and outputs of one rank */
    double cp_hidden_forward_s, cp_hidden_backward_s; /**< compute that hides the ring */
    double ep_bytes;         /**< one dispatch or combine of one rank */
    bool ep_again;           /**< recompute sends tokens once more */
};
/** Adds the seconds of these exchanges to the price (part_exchange.c). */
void hv__price_exchange(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out);

/** Why this device cannot price the model, or HV_OK. */
enum hv_status hv__check_device(const struct hv_cost *k, const struct hv_device_kind *d,
                                struct hv_err *err) HV_NODISCARD;
/** Slower of two kinds for the job's precision (unknown counts as slowest). */
const struct hv_device_kind *hv__slower(const struct hv_cost *k, const struct hv_device_kind *a,
                                        const struct hv_device_kind *b);
/** Tokens per sequence that the model sees: patches of an image, else the job's. */
double hv__tokens(const struct hv_cost *k);

#endif
