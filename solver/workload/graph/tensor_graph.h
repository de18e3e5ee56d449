/**
 * Operator graphs in long form: named dimensions, tensors over them, and operators that read and
 * write tensors. Everything that an operator does follows from its kind (op_kinds.h) and the names
 * of the dimensions; what it reads and does not write is reduced.
 *
 * Built by the reader (io) or by code; immutable afterwards; everything lives in the builder's
 * arena.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_TENSOR_GRAPH_H
#define HV_SOLVER_WORKLOAD_GRAPH_TENSOR_GRAPH_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/workload/graph/op_kinds.h"
#include <stdbool.h>
#include <stdint.h>

#define HV_TENSOR_DIMS 8 /**< dimensions of a tensor */

/** A named dimension. */
struct hv_tensor_dim {
    const char *name;
    int64_t size;
};

/** What a tensor of the graph is; results of operators are the rest. */
enum hv_tensor_role { HV_TENSOR_INPUT, HV_TENSOR_PARAMETER, HV_TENSOR_STATE, HV_TENSOR_RESULT };

/** Bytes of an element: constant, name in files, bytes. */
/* clang-format off */
#define HV_DTYPE_MAP(X)                                                                            \
    X(HV_DTYPE_F32, "f32", 4) X(HV_DTYPE_F16, "f16", 2) X(HV_DTYPE_BF16, "bf16", 2)                 \
    X(HV_DTYPE_F64, "f64", 8) X(HV_DTYPE_F8, "f8", 1) X(HV_DTYPE_S32, "s32", 4)                     \
    X(HV_DTYPE_S64, "s64", 8) X(HV_DTYPE_S8, "s8", 1) X(HV_DTYPE_BOOL, "bool", 1)
/* clang-format on */
enum hv_dtype {
#define X(c, name, bytes) c,
    HV_DTYPE_MAP(X)
#undef X
        HV_DTYPE_N
};
int64_t hv_dtype_bytes(enum hv_dtype t); /**< bytes of an element */
bool hv_dtype_is_real(enum hv_dtype t); /**< true for floating point: such tensors have gradients */

/** A tensor: inputs first, in order of the file, then results in order of the operators. */
struct hv_tensor {
    const char *name;
    enum hv_tensor_role role;
    enum hv_dtype dtype;
    uint8_t n_dims;
    uint32_t dim[HV_TENSOR_DIMS]; /**< numbers of dimensions */
};

/** An operand: a tensor whose dimensions may have other names here ("as"). */
struct hv_tensor_use {
    uint32_t tensor;
    uint8_t n_dims;
    uint32_t dim[HV_TENSOR_DIMS];
};

/** Window of a dimension: element i of `out` reads `size` elements of `of` from i·stride − pad[0]
 * on, `dilation` apart. */
struct hv_tensor_window {
    uint32_t out, of, tap; /**< tap: dimension of the kernel; UINT32_MAX: none */
    int64_t size, stride, pad[2], dilation;
};

/** A reshape: one dimension is the product of others, the major one first. */
struct hv_tensor_group {
    uint32_t whole;
    uint8_t n_parts;
    uint32_t part[HV_TENSOR_DIMS];
};

/** Elements [from, to) of a dimension, every step-th. */
struct hv_tensor_range {
    uint32_t dim;
    int64_t from, to, step;
};

/** An operator. */
struct hv_tensor_op {
    const char *id;
    enum hv_tensor_op_kind kind;
    uint8_t n_in;
    struct hv_tensor_use *in;
    uint32_t out; /**< its result, a tensor */
    enum hv_reduce_by by;
    uint8_t n_over; /**< dimensions that it normalises, ranks or needs whole (over, along, rows) */
    uint32_t over[HV_TENSOR_DIMS];
    uint8_t n_windows;
    struct hv_tensor_window window[HV_TENSOR_DIMS];
    uint8_t n_groups;
    struct hv_tensor_group group[HV_TENSOR_DIMS];
    uint8_t n_ranges;
    struct hv_tensor_range range[HV_TENSOR_DIMS];
    int64_t feature_groups;                /**< conv: groups of channels; 1 */
    const char *group_name, *device_class; /**< as in the short form; NULL */
};

#define HV_NO_DIM UINT32_MAX

/** A graph. */
struct hv_tensor_graph {
    struct hv_tensor_dim *dims;
    size_t n_dims;
    uint32_t batch; /**< the dimension that counts sequences; HV_NO_DIM: none, all of it is one */
    struct hv_tensor *tensors;
    size_t n_tensors, n_given; /**< given: inputs, parameters, states */
    struct hv_tensor_op *ops;
    size_t n_ops;
};

/** Number of the dimension of that name; HV_NO_DIM: none. O(n). */
uint32_t hv_tensor_graph_dim(const struct hv_tensor_graph *g, const char *name);
/** True where the list holds the dimension; *at its place (may be NULL). */
bool hv_dims_hold(const uint32_t *dims, size_t n, uint32_t dim, size_t *at);
/**
 * Checks that an operator can do what it says: operands of the right number and dimensions, sizes
 * of windows, groups and ranges that fit. Errors: HV_EINPUT with what was expected; the caller adds
 * the place.
 */
enum hv_status hv_tensor_op_check(const struct hv_tensor_graph *g, const struct hv_tensor_op *op,
                                  struct hv_err *err) HV_NODISCARD;

#endif
