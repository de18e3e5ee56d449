/**
 * Kinds of operators of graphs in long form: one table. A row names the kind, what it becomes
 * (expand.c: primitives, each with a rule and a gradient), how many operands it takes, which
 * members it needs in files, and its arithmetic.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_OP_KINDS_H
#define HV_SOLVER_WORKLOAD_GRAPH_OP_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/**
 * Constant, name in files, way it is expanded, fewest and most operands, FLOPs per element of its
 * largest operand or result (0: counted by products: einsum, conv), members that it needs.
 */
#define HV_OP_KIND_MAP(X)                                                             \
    X(HV_OP_EINSUM,        "einsum",        EINSUM,        1, 8,  0, 0)               \
    X(HV_OP_ADD,           "add",           ELEMENTWISE,   1, 8,  1, 0)               \
    X(HV_OP_SUB,           "sub",           ELEMENTWISE,   2, 2,  1, 0)               \
    X(HV_OP_MUL,           "mul",           ELEMENTWISE,   1, 8,  1, 0)               \
    X(HV_OP_DIV,           "div",           ELEMENTWISE,   2, 2,  1, 0)               \
    X(HV_OP_MAXIMUM,       "maximum",       ELEMENTWISE,   2, 2,  1, 0)               \
    X(HV_OP_MINIMUM,       "minimum",       ELEMENTWISE,   2, 2,  1, 0)               \
    X(HV_OP_NEG,           "neg",           ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_EXP,           "exp",           ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_LOG,           "log",           ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_TANH,          "tanh",          ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_SIGMOID,       "sigmoid",       ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_SQRT,          "sqrt",          ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_RSQRT,         "rsqrt",         ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_ABS,           "abs",           ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_CAST,          "cast",          ELEMENTWISE,   1, 1,  1, 0)               \
    X(HV_OP_SCALE,         "scale",         SCALE,         1, 1,  1, 0)               \
    X(HV_OP_RELU,          "relu",          RELU,          1, 1,  1, 0)               \
    X(HV_OP_SILU,          "silu",          SILU,          1, 1,  2, 0)               \
    X(HV_OP_GELU,          "gelu",          GELU,          1, 1,  8, 0)               \
    X(HV_OP_WHERE,         "where",         WHERE,         3, 3,  1, 0)               \
    X(HV_OP_REDUCE,        "reduce",        REDUCE,        1, 1,  1, HV_NEEDS_BY)     \
    X(HV_OP_SOFTMAX,       "softmax",       SOFTMAX,       1, 1,  5, HV_NEEDS_OVER)   \
    X(HV_OP_LAYERNORM,     "layernorm",     LAYERNORM,     1, 3,  8, HV_NEEDS_OVER)   \
    X(HV_OP_RMSNORM,       "rmsnorm",       RMSNORM,       1, 2,  4, HV_NEEDS_OVER)   \
    X(HV_OP_CROSS_ENTROPY, "cross_entropy", CROSS_ENTROPY, 2, 2,  7, HV_NEEDS_OVER)   \
    X(HV_OP_CONV,          "conv",          CONV,          2, 2,  0, HV_NEEDS_WINDOW) \
    X(HV_OP_POOL,          "pool",          POOL,          1, 1,  1, HV_NEEDS_WINDOW | HV_NEEDS_BY) \
    X(HV_OP_EMBEDDING,     "embedding",     EMBEDDING,     2, 2,  0, HV_NEEDS_ROWS)   \
    X(HV_OP_GATHER,        "gather",        EMBEDDING,     2, 2,  0, HV_NEEDS_ROWS)   \
    X(HV_OP_SCATTER_ADD,   "scatter_add",   SCATTER_ADD,   3, 3,  1, HV_NEEDS_ROWS)   \
    X(HV_OP_RESHAPE,       "reshape",       RESHAPE,       1, 1,  0, 0)               \
    X(HV_OP_TRANSPOSE,     "transpose",     TRANSPOSE,     1, 1,  0, 0)               \
    X(HV_OP_BROADCAST,     "broadcast",     BROADCAST,     1, 1,  0, 0)               \
    X(HV_OP_CONCAT,        "concat",        CONCAT,        1, 64, 0, HV_NEEDS_ALONG)  \
    X(HV_OP_SLICE,         "slice",         SLICE,         1, 1,  0, HV_NEEDS_RANGE)  \
    X(HV_OP_PAD,           "pad",           PAD,           1, 1,  0, HV_NEEDS_RANGE)  \
    X(HV_OP_REVERSE,       "reverse",       REVERSE,       1, 1,  0, HV_NEEDS_ALONG)  \
    X(HV_OP_CUMSUM,        "cumsum",        CUMSUM,        1, 1,  1, HV_NEEDS_ALONG)  \
    X(HV_OP_SORT,          "sort",          SORT,          1, 1,  8, HV_NEEDS_ALONG)  \
    X(HV_OP_TOP_K,         "top_k",         TOP_K,         1, 1,  8, HV_NEEDS_ALONG)  \
    X(HV_OP_FFT,           "fft",           WHOLE,         1, 1,  8, HV_NEEDS_ALONG)  \
    X(HV_OP_CHOLESKY,      "cholesky",      WHOLE,         1, 1,  8, HV_NEEDS_ALONG)  \
    X(HV_OP_OPAQUE,        "opaque",        OPAQUE,        0, 64, 1, 0)
/* clang-format on */

/** Kind of an operator. */
enum hv_tensor_op_kind {
#define X(c, name, way, least, most, flops, needs) c,
    HV_OP_KIND_MAP(X)
#undef X
        HV_TENSOR_OP_KIND_N
};

/** Members that a kind needs. */
enum hv_op_needs {
    HV_NEEDS_OVER = 1,   /**< "over": dimensions */
    HV_NEEDS_ALONG = 2,  /**< "along": a dimension, or several */
    HV_NEEDS_ROWS = 4,   /**< "rows": the dimension that indices choose from */
    HV_NEEDS_WINDOW = 8, /**< "window" */
    HV_NEEDS_RANGE = 16, /**< "range" */
    HV_NEEDS_BY = 32     /**< "by" */
};

/** How values are reduced. */
enum hv_reduce_by { HV_BY_SUM, HV_BY_MEAN, HV_BY_MAX, HV_BY_MIN, HV_BY_N };

/** A row of the table. */
struct hv_op_kind_row {
    const char *name;
    uint8_t least_in, most_in;
    double flops_per_element;
    unsigned needs;
};
const struct hv_op_kind_row *hv_op_kind_row(enum hv_tensor_op_kind k);

#endif
