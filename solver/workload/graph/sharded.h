/**
 * A graph on a mesh: layouts of all its tensors from those of a few, the exchanges that follow, and
 * the bytes of arguments and results on each device.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_SHARDED_H
#define HV_SOLVER_WORKLOAD_GRAPH_SHARDED_H

#include "solver/shard/lower.h"
#include "solver/shard/propagate.h"
#include "solver/workload/graph/expand.h"

/** A layout that is given for a tensor of the graph. */
struct hv_given_layout {
    uint32_t tensor;
    struct hv_layout layout;
};

/** What is asked. Lists are the caller's. */
struct hv_sharding_request {
    const struct hv_tensor_graph *graph;
    struct hv_mesh mesh;
    const struct hv_given_layout *given; /**< of inputs, parameters and (constraints) results */
    size_t n_given;
    bool open_inputs; /**< inputs that are not given get theirs by propagation; else they are whole
                       */
    bool apart; /**< every result is computed by itself, from inputs that all share: a question for
                   the layout of each tensor, not for one program */
    const uint32_t *outputs; /**< results of the whole graph; none with `grad` */
    size_t n_outputs;
    const struct hv_given_layout *asked; /**< layouts of results, of gradients by parameter */
    size_t n_asked;
    bool grad;            /**< results are the gradients of all parameters */
    const uint32_t *loss; /**< of Σ (t²) over these */
    size_t n_loss;
    const uint32_t *wanted; /**< with `grad`: inputs whose gradients are results too */
    size_t n_wanted;
    bool passes; /**< with `grad`: a forward and a backward pass; what tensors were brought into for
                    the first is brought once more for the second; the loss tensors are results too,
                    and gradients of inputs lie as the inputs do */
    enum hv_propagation how;
    const struct hv_pricing *pricing; /**< NULL: bytes */
};

/** The answer. Everything lives in the arena of the call. */
struct hv_sharding {
    struct hv_expansion expansion;
    struct hv_shard_graph graph;       /**< primitives that a result depends on */
    size_t n_forward;                  /**< of them, those of the forward pass, which come first */
    const uint32_t *gradient_of;       /**< primitive tensor of the forward pass → its gradient,
                                          HV_NO_TENSOR (gradient.h); NULL without `grad` */
    uint32_t *prim_of;                 /**< operator of `graph` → primitive of the expansion */
    const struct hv_layout **layout;   /**< per tensor of the graph, as its writer leaves it */
    const struct hv_layout **gradient; /**< per tensor: layout of its gradient; NULL: not asked */
    struct hv_lowered lowered;
    struct hv_conflicts conflicts;
    double argument_bytes, output_bytes; /**< per device */
};

/** Completes layouts and counts exchanges. Errors: HV_EINPUT for layouts that do not fit and
 * operators without gradient; HV_ELIMIT for too many factors. */
enum hv_status hv_shard_graph_solve(const struct hv_sharding_request *r, struct hv_arena *arena,
                                    struct hv_sharding *out, struct hv_err *err) HV_NODISCARD;

/**
 * Bytes per device for one operator of a graph whose operands lie in these layouts: its result in
 * the layout `want`, or, where that is NULL, in the one that propagation gives it (*result, may be
 * NULL). The operator is taken as a whole (op_rule.h). Errors: as above.
 */
enum hv_status hv_shard_op_solve(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                 const struct hv_mesh *m, const struct hv_layout *operands,
                                 const struct hv_layout *want, struct hv_arena *arena,
                                 struct hv_lowered *out, struct hv_layout *result,
                                 struct hv_err *err) HV_NODISCARD;

#endif
