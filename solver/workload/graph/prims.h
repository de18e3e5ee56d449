/**
 * Primitives: what operators are made of. Each has a rule (prim_rules.c), a gradient (gradient.c)
 * and a meaning that a test executes. They are the operations of StableHLO that the operators of
 * op_kinds.h need, under the same names, so that rules and programs can be compared with XLA's.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_PRIMS_H
#define HV_SOLVER_WORKLOAD_GRAPH_PRIMS_H

#include "solver/shard/graph.h"
#include "solver/workload/graph/tensor_graph.h"

/** Kinds of primitives. */
enum hv_prim_kind {
    HV_PRIM_CONSTANT,      /**< `value` everywhere; along axis[0] where n_axes is 1: 0, 1, 2, … */
    HV_PRIM_ELEMENTWISE,   /**< fn of the elements */
    HV_PRIM_BROADCAST,     /**< operand dimension i becomes result dimension axis[i] */
    HV_PRIM_REDUCE,        /**< over the operand's dimensions axis[…], by `by` */
    HV_PRIM_DOT,           /**< sums of products; roles below */
    HV_PRIM_CONV,          /**< window below; roles below */
    HV_PRIM_REDUCE_WINDOW, /**< by `by` over window[dimension] */
    HV_PRIM_RESHAPE,
    HV_PRIM_TRANSPOSE, /**< result dimension i is operand dimension axis[i] */
    HV_PRIM_SLICE,     /**< per dimension window: −pad = first element, stride */
    HV_PRIM_PAD,       /**< per dimension window: pad elements in front, base − 1 between */
    HV_PRIM_CONCAT,    /**< along axis[0] */
    HV_PRIM_GATHER,    /**< rows of operand 0 along its dimension axis[0], numbers in operand 1 */
    HV_PRIM_SCATTER,   /**< operand 0 with rows of operand 2 added at numbers in operand 1 */
    HV_PRIM_SORT,      /**< along axis[0] */
    HV_PRIM_TOP_K,     /**< along axis[0] */
    HV_PRIM_REVERSE,   /**< along axis[…] */
    HV_PRIM_WHOLE,     /**< along axis[…] as a whole: fft, cholesky */
    HV_PRIM_OPAQUE,    /**< nothing is known but the dimensions in axis[…], which are parallel */
    HV_PRIM_SELECT_ADD /**< gradient of the largest of a window: operand 0 chooses, 1 is added */
};

/* clang-format off */
/** Functions of elements: constant, name, operands that it is linear in by themselves (bits), and
 * together. */
#define HV_FN_MAP(X)                                     \
    X(HV_FN_ADD,       "add",         0, 3)              \
    X(HV_FN_SUB,       "subtract",    0, 3)              \
    X(HV_FN_MUL,       "multiply",    3, 0)              \
    X(HV_FN_DIV,       "divide",      1, 0)              \
    X(HV_FN_MAX,       "maximum",     0, 0)              \
    X(HV_FN_MIN,       "minimum",     0, 0)              \
    X(HV_FN_NEG,       "negate",      1, 0)              \
    X(HV_FN_EXP,       "exponential", 0, 0)              \
    X(HV_FN_LOG,       "log",         0, 0)              \
    X(HV_FN_TANH,      "tanh",        0, 0)              \
    X(HV_FN_LOGISTIC,  "logistic",    0, 0)              \
    X(HV_FN_SQRT,      "sqrt",        0, 0)              \
    X(HV_FN_RSQRT,     "rsqrt",       0, 0)              \
    X(HV_FN_ABS,       "abs",         0, 0)              \
    X(HV_FN_SIGN,      "sign",        0, 0)              \
    X(HV_FN_CONVERT,   "convert",     1, 0)              \
    X(HV_FN_IS_FINITE, "is_finite",   0, 0)              \
    X(HV_FN_EQUAL,     "compare",     0, 0)              \
    X(HV_FN_GREATER,   "compare",     0, 0)              \
    X(HV_FN_SELECT,    "select",      0, 6)
/* clang-format on */
enum hv_fn {
#define X(c, name, linear, additive) c,
    HV_FN_MAP(X)
#undef X
        HV_FN_N
};

/** What a dimension of an operand of a dot or convolution is for. */
enum hv_contraction_role {
    HV_ROLE_BATCH,    /**< in both operands and the result */
    HV_ROLE_FREE,     /**< in one operand and the result */
    HV_ROLE_CONTRACT, /**< in both operands, summed */
    HV_ROLE_SPATIAL   /**< conv: input, kernel and result dimension of a window */
};
/** A loop of a dot or convolution: its dimension in operand 0, operand 1 and the result; −1: not
 * there. */
struct hv_loop {
    enum hv_contraction_role role;
    int8_t dim[3];
    int64_t size;            /**< iterations */
    struct hv_window window; /**< SPATIAL: window of the result over operand 0 */
};
#define HV_PRIM_LOOPS 16

/** A primitive. tensor: n_in operands, then n_out results. */
struct hv_prim {
    enum hv_prim_kind kind;
    uint8_t n_in, n_out;
    bool apart;  /**< belongs to a function of its own, which programs print behind the main one */
    bool still;  /**< no gradient passes (the largest value that a softmax subtracts) */
    uint32_t op; /**< operator of the graph that it comes from; HV_NO_OP (gradient.h): none */
    uint32_t *tensor;
    enum hv_fn fn;
    enum hv_reduce_by by;
    double value;
    uint8_t n_axes;
    int8_t axis[HV_TENSOR_DIMS];
    struct hv_window window[HV_TENSOR_DIMS];
    uint8_t n_loops;
    struct hv_loop loop[HV_PRIM_LOOPS];
    const char *name; /**< of WHOLE and OPAQUE */
};

/** A tensor of the primitive graph. */
struct hv_prim_tensor {
    struct hv_shape shape;
};

/** A graph of primitives, in an order in which every tensor is written before it is read. */
struct hv_prim_graph {
    struct hv_arena *arena;
    struct hv_prim_tensor *tensors;
    size_t n_tensors, cap_tensors;
    struct hv_prim *prims;
    size_t n_prims, cap_prims;
};

/** Name of a primitive as StableHLO writes it: "dot_general", "add", … */
const char *hv_prim_name(const struct hv_prim *p);
/** The rule of a primitive. Lives in the arena. Errors: HV_ELIMIT for too many factors. */
enum hv_status hv_prim_rule(const struct hv_prim_graph *g, const struct hv_prim *p,
                            struct hv_arena *arena, struct hv_op_rule *out,
                            struct hv_err *err) HV_NODISCARD;

/** Appends a tensor; returns its number. */
uint32_t hv_prim_tensor_add(struct hv_prim_graph *g, const struct hv_shape *shape);
/** Appends a primitive with these operands and one result of this shape; returns it for its other
 * members, valid until the next one is added. */
struct hv_prim *hv_prim_add(struct hv_prim_graph *g, enum hv_prim_kind kind, const uint32_t *in,
                            size_t n_in, const struct hv_shape *result);
/** Number of the first result of the last primitive. */
uint32_t hv_prim_last(const struct hv_prim_graph *g);

/** A constant that is the same everywhere, broadcast to a shape. */
uint32_t hv_prim_constant(struct hv_prim_graph *g, double value, const struct hv_shape *shape);
/** fn of tensors of one shape. */
uint32_t hv_prim_fn(struct hv_prim_graph *g, enum hv_fn fn, uint32_t a, uint32_t b);
uint32_t hv_prim_fn1(struct hv_prim_graph *g, enum hv_fn fn, uint32_t a);
uint32_t hv_prim_select(struct hv_prim_graph *g, uint32_t which, uint32_t a, uint32_t b);
/** Reduction over dimensions (bits). */
uint32_t hv_prim_reduce(struct hv_prim_graph *g, enum hv_reduce_by by, uint32_t a, uint32_t dims);
/** Operand dimension i becomes result dimension to[i]; others are new or repeat one element. */
uint32_t hv_prim_broadcast(struct hv_prim_graph *g, uint32_t a, const int8_t *to,
                           const struct hv_shape *shape);
/** Result dimension i is operand dimension from[i]; the operand itself where nothing moves. */
uint32_t hv_prim_transpose(struct hv_prim_graph *g, uint32_t a, const int8_t *from);
uint32_t hv_prim_reshape(struct hv_prim_graph *g, uint32_t a, const struct hv_shape *shape);
/** Shape of a tensor. */
const struct hv_shape *hv_prim_shape(const struct hv_prim_graph *g, uint32_t tensor);

/** True where the result of a primitive of one operand has the elements of the operand: another
 * shape or order, or sums over dimensions of one element. */
bool hv_prim_only_reshapes(const struct hv_prim_graph *g, const struct hv_prim *p);

#endif
