/**
 * Training runtimes: what a framework does by itself, whatever the plan says. One table, which
 * feeds the reader of jobs, the cost model, the judge, the help and the completion. The row
 * `hetviz` assumes nothing: the plan is judged as it is written.
 */
#ifndef HV_SOLVER_WORKLOAD_RUNTIME_H
#define HV_SOLVER_WORKLOAD_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/workload/target.h"

/** Runtimes: constant, name in files. */
#define HV_RUNTIME_MAP(X)                                                                          \
    X(HV_RUNTIME_HETVIZ, "hetviz")                                                                 \
    X(HV_RUNTIME_MEGATRON, "megatron")                                                             \
    X(HV_RUNTIME_DEEPSPEED, "deepspeed")                                                           \
    X(HV_RUNTIME_TORCHTITAN, "torchtitan")                                                         \
    X(HV_RUNTIME_FSDP, "fsdp")
/** A runtime: index into the table. */
enum hv_runtime {
#define X(c, name) c,
    HV_RUNTIME_MAP(X)
#undef X
        HV_RUNTIME_N
};

/** When a rank goes on after it has sent an activation or its gradient to another stage. */
enum hv_runtime_sends {
    HV_SENDS_BESIDE, /**< at once: transfers run beside compute */
    HV_SENDS_BLOCK,  /**< when the transfer is through */
    HV_RUNTIME_SENDS_N
};
const char *hv_runtime_sends_text(enum hv_runtime_sends s); /**< as a clause for the help */

/** When gradients are reduced over data-parallel ranks. */
enum hv_runtime_reduction {
    HV_REDUCTION_PLANNED, /**< as the plan's `sync.overlap` says */
    HV_REDUCTION_LATE,    /**< after the last backward pass of the iteration */
    HV_RUNTIME_REDUCTION_N
};
const char *hv_runtime_reduction_text(enum hv_runtime_reduction r); /**< as a clause for the help */

/** Facts about a runtime. Strings are static. */
struct hv_runtime_row {
    const char *title;
    enum hv_runtime_sends sends;
    bool splits_sends; /**< tensor-parallel ranks send one share each of what they all hold, and the
                          receivers gather it */
    enum hv_runtime_reduction reduction;
    bool bucket_of_tensors; /**< a bucket of gradients holds whole tensors, and the one with which
                               it reaches its size closes it; else flat gradients are cut at
                               exactly that size */
    double tensor_s;        /**< host time of a reduction per parameter tensor; 0: not counted */
    double flat_elements; /**< gradients are reduced in flat copies of at most so many values; 0: in
                             place */
    double step_bytes;    /**< temporaries of an optimizer step without master copy, per updated
                             parameter */
    double whole_tensors; /**< tensors of the size of a layer's input that every tensor-parallel
                             rank keeps whole, without sequence parallelism; 0: not counted */
    double library_bytes; /**< context, kernels and work space of libraries of a process;
                             HV_UNKNOWN: the estimate of the cost model */
    double channel_bytes; /**< buffers of a channel of the communicator of a tensor-parallel group,
                             beside what any communicator takes */
    /** Share that the allocator holds beyond what is in use, and the same where whole layers with
     * stored scores are computed again; HV_UNKNOWN: the estimates of the cost model. */
    double fragmentation_frac, fragmentation_again_frac;
    struct hv_says_limits can; /**< what it can run of a plan: limits of every search for it */
    const char *degrees;       /**< which parallel degrees it can do, for the help */
    const char *source;        /**< where each of these facts comes from */
};

const char *hv_runtime_name(enum hv_runtime r); /**< name in files */
/** The runtime of a name in files. False: there is none. O(runtimes). */
bool hv_runtime_find(const char *name, enum hv_runtime *out);
/** The row of a runtime. O(1). */
const struct hv_runtime_row *hv_runtime_row(enum hv_runtime r);

#endif
