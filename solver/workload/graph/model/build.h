/**
 * Builder of graphs in long form from code: dimensions, tensors and operators in any order of
 * calls. Numbers that it returns for tensors are its own until hv_build_finish.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_MODEL_BUILD_H
#define HV_SOLVER_WORKLOAD_GRAPH_MODEL_BUILD_H

#include "solver/base/vec.h"
#include "solver/workload/graph/tensor_graph.h"

/** Dimensions of a tensor, in order. */
struct hv_dim_list {
    uint8_t n;
    uint32_t dim[HV_TENSOR_DIMS];
};
/** `HV_DIMS(a, b, c)`: the list of these dimensions. */
#define HV_DIMS(...)                                                                               \
    ((struct hv_dim_list){sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), {__VA_ARGS__}})

/** A graph under construction. Owner: whoever made it calls hv_build_finish. */
struct hv_graph_builder {
    struct hv_arena *arena; /**< of the graph */
    const char *prefix;     /**< before the names of parameters and operators; "" */
    enum hv_dtype dtype;    /**< of parameters and inputs that are not numbers of rows */
    HV_VEC(struct hv_tensor_dim) dims;
    HV_VEC(struct hv_tensor) given, results;
    HV_VEC(struct hv_tensor_op) ops;
};

/** The dimension of that name and size; one of another size under the same name gets the size
 * behind its name ("ffn_512"). */
uint32_t hv_build_dim(struct hv_graph_builder *b, const char *name, int64_t size);
/** An input; the one that was made already where the name is known (names of inputs have no
 * prefix).
 */
uint32_t hv_build_input(struct hv_graph_builder *b, const char *name, enum hv_dtype dtype,
                        struct hv_dim_list dims);
/** A parameter. */
uint32_t hv_build_weight(struct hv_graph_builder *b, const char *name, struct hv_dim_list dims);
/** The dimensions of a tensor. */
struct hv_dim_list hv_build_dims_of(const struct hv_graph_builder *b, uint32_t tensor);
/** An operator on n tensors (at most 64); returns its result. */
uint32_t hv_build_op(struct hv_graph_builder *b, const char *name, enum hv_tensor_op_kind kind,
                     size_t n, const uint32_t *in, struct hv_dim_list out);
/** The same with one or two operands. */
uint32_t hv_build_op1(struct hv_graph_builder *b, const char *name, enum hv_tensor_op_kind kind,
                      uint32_t in, struct hv_dim_list out);
uint32_t hv_build_op2(struct hv_graph_builder *b, const char *name, enum hv_tensor_op_kind kind,
                      uint32_t in, uint32_t in2, struct hv_dim_list out);
/** The operator that was added last: for its other members. Valid until the next one is added. */
struct hv_tensor_op *hv_build_last(struct hv_graph_builder *b);
/** Operand i of the last operator has these names for its dimensions ("as"). */
void hv_build_as(struct hv_graph_builder *b, size_t operand, struct hv_dim_list dims);
/** The last operator goes over (along, by rows of) this dimension. */
void hv_build_over(struct hv_graph_builder *b, uint32_t dim);
/**
 * Numbers the tensors, checks every operator, and ends the builder; *out lives in the arena.
 * Errors: HV_EINTERNAL with the operator that does not fit.
 */
enum hv_status hv_build_finish(struct hv_graph_builder *b, struct hv_tensor_graph *out,
                               struct hv_err *err) HV_NODISCARD;

#endif
