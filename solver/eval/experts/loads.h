/**
 * Experts of a judged plan over the iterations of the job's routing: what each rank of an
 * expert-parallel group computes, which expert is used most, and rows of products that hold no
 * token. Figures come from the cost model and the router; nothing is estimated here.
 */
#ifndef HV_SOLVER_EVAL_EXPERTS_LOADS_H
#define HV_SOLVER_EVAL_EXPERTS_LOADS_H

#include "solver/cost/cost.h"
#include "solver/eval/verdict/verdict.h"

/** A layer with experts on several ranks, where its tokens are spread unevenly. */
struct hv_expert_layer {
    size_t replica, stage, block;
    size_t layer; /**< among the layers with experts */
    int ep, experts, top_k;
};

/** Lists them, in the order of the plan. None where the job's routing is even or the model has no
 * experts. O(stages · blocks). */
size_t hv_eval_expert_layers(struct hv_cost *k, const struct hv_plan *p, struct hv_arena *arena,
                             struct hv_expert_layer **out);

/** Loads of the ranks of the layer's first expert-parallel group. */
struct hv_expert_loads {
    struct hv_expert_layer at;
    size_t iterations, ranks;
    double *loads;      /**< [iterations × ranks] rows that a rank computes against their mean */
    double *busiest;    /**< [iterations] the largest of them */
    uint32_t *hottest;  /**< [iterations] expert with most tokens of all ranks of the stage */
    double *times;      /**< [iterations] its tokens against the mean of the experts */
    double *padded;     /**< [iterations] share of the busiest rank's rows that hold no token */
    const char **names; /**< [ranks] "rank 1: e2 e3", "rank 1: e4 e5 +2", as the plan places them
                           before any move */
};
/**
 * The loads of one layer in all iterations of the routing: where `steps` is not NULL with the
 * places that experts have in each of them (hv_routing_figures.steps). `p` is the plan as it was
 * judged. Errors: as hv_cost_pass; HV_ENO where the ranks have no loads of their own (experts that
 * travel). O(iterations · price of a block of experts).
 */
enum hv_status hv_eval_expert_loads(struct hv_cost *k, const struct hv_plan *p,
                                    const struct hv_routing_step *steps,
                                    const struct hv_expert_layer *at, struct hv_arena *arena,
                                    struct hv_expert_loads *out, struct hv_err *err) HV_NODISCARD;

/** The expert that is used most of all layers and iterations. */
struct hv_hottest_expert {
    const struct hv_expert_layer *at;
    size_t expert, iteration;
    double times; /**< its tokens against the mean of the layer's experts */
    double frac;  /**< of the tokens of its layer */
};
/** Finds it among n layers; the first of equals. False for none, and for a routing of another
 * model. O(iterations · layers · ranks · experts). */
bool hv_eval_hottest_expert(struct hv_cost *k, const struct hv_plan *p,
                            const struct hv_expert_layer *layers, size_t n,
                            struct hv_hottest_expert *out);

/** Rows of the products of experts on the busiest rank of a stage, in one pass. */
struct hv_expert_waste {
    double computed, padded; /**< padded: of these, rows that hold no token */
};
/** Adds up the rows of all blocks of a stage in one forward pass of its first data-parallel rank,
 * in an iteration of the routing. Errors: as hv_cost_pass. O(blocks of the stage). */
enum hv_status hv_eval_expert_waste(struct hv_cost *k, const struct hv_plan *p, size_t replica,
                                    size_t stage, size_t iteration, struct hv_expert_waste *out,
                                    struct hv_err *err) HV_NODISCARD;

#endif
