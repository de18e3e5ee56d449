/**
 * Inside cost/graph: kernels of a solved graph. Primitives of one operator that follow each other
 * run together: matrix products by the measured tables, in the shapes of one device, everything
 * else as one stream of what it reads from outside and writes for outside.
 */
#ifndef HV_SOLVER_COST_GRAPH_KERNELS_H
#define HV_SOLVER_COST_GRAPH_KERNELS_H

#include "solver/cost/graph/place.h"

/** A tensor that a kernel reads or writes, whole on the device that has it. */
struct hv__access {
    uint32_t tensor; /**< primitive tensor, its root where it is another view of one */
    double bytes;    /**< of the part of a device */
};
/** A kernel. */
struct hv__kernel {
    uint32_t op;          /**< operator of the graph */
    uint32_t first, last; /**< its primitives: operators [first, last) of the sharded graph */
    bool backward;
    bool weight; /**< only gradients of weights come from it */
    double time_s, flops, stream_bytes;
    double m, n, k; /**< of its largest product; 0: none */
    struct hv__access *reads, *writes;
    size_t n_reads, n_writes;
};
/** Kernels in the order they run. */
struct hv__kernels {
    struct hv__kernel *items;
    size_t n, n_forward;
    uint32_t *root;     /**< per primitive tensor: the tensor that it is a view of */
    bool *constant;     /**< per primitive tensor */
    bool *from_weights; /**< per primitive tensor: of parameters and constants alone */
    bool *sums; /**< per primitive tensor: gradient of a parameter, or another shape of one */
};
/** What kernels are made of. */
struct hv__kernels_query {
    const struct hv__context *k;
    const struct hv_device_kind *device;
    const struct hv_tensor_graph *graph; /**< of the stage */
    const struct hv_sharding *sharding;
    const uint32_t *fused; /**< per operator: number of the group that it runs with */
};
/** Cuts a solved graph into kernels and prices them. Everything lives in the arena. O(primitives ·
 * operands). */
void hv__kernels(const struct hv__kernels_query *q, struct hv_arena *arena,
                 struct hv__kernels *out);
/** Local m, n, k and groups of the product of a dot or convolution; layouts of its operands and its
 * result. */
struct hv__local_product {
    double m, n, k, groups;
};
struct hv__local_product hv__local_product(const struct hv_prim_graph *g, const struct hv_prim *p,
                                           const struct hv_mesh *m,
                                           const struct hv_layout *layouts);
/** Seconds of one of the products of a fused attention core: at the calibrated rate of such
 * kernels, which narrow heads reach in part on devices since Hopper. */
double hv__core_product_s(const struct hv__context *k, const struct hv_device_kind *d,
                          const struct hv__local_product *p, bool backward);
/** Seconds of a product of that shape in training, without what it waits for. */
double hv__local_product_s(const struct hv__context *k, const struct hv_device_kind *d,
                           const struct hv__local_product *p);

#endif
