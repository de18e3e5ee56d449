/**
 * Share of a device's peaks that real kernels reach: the calibration of its class
 * (inventory/calibration, share/calibration), and the constants that hold for every class.
 */
#ifndef HV_SOLVER_COST_DEVICE_EFFICIENCY_H
#define HV_SOLVER_COST_DEVICE_EFFICIENCY_H

#include "solver/base/units.h"
#include "solver/inventory/cluster.h"
#include "solver/inventory/device.h"
#include <stdbool.h>

/* clang-format off */
/** Sustained share of the best measured matmul, where no class of devices was calibrated: mean of
 * 0.72/(271/312) and 0.68/(795/989). */
#define HV_EFF_OF_MATMUL        0.84
/** Rows, columns or depth (elements) below which a product loses speed: factor 1 - exp(-x/this) (estimated). */
#define HV_EFF_THIN             64.0
/** Experts of a rank whose products cost the host as much as the routing itself (estimated). */
#define HV_EFF_EXPERTS_A_HOST   8.0
/** Rate of block-sparse products of experts relative to batched ones, mean over shapes (MegaBlocks,
 * Gale et al. 2023, section 6.3; recalled). */
#define HV_EFF_BLOCK_SPARSE     0.986
/** Values of 16 bit in 16 bytes: batched products with other row lengths leave the tensor cores
 * (NVIDIA, Matrix Multiplication Background, requirements for fp16). */
#define HV_EFF_ALIGNED          8.0
/** Share of the host link's rate for copies (estimated). */
#define HV_EFF_HOST             0.80
/** Memory bandwidth of a host without a given figure: two sockets of six channels of DDR4-2666. */
#define HV_HOST_MEMORY_BYTES_PER_S 256e9
/** Share of it that an optimizer step on the host reaches: 10 billion parameters of mixed-precision
 * Adam in 2.57 s on two Xeon 8168, 28 bytes each (Ren et al. 2021, ZeRO-Offload, table 4; recalled). */
#define HV_EFF_HOST_UPDATE      (10e9 * 28 / 2.57 / HV_HOST_MEMORY_BYTES_PER_S)
/** Extra latency of a hop that is staged in host memory on both sides (estimated). */
#define HV_HOST_STAGE_S         (20 * HV_US)
/** Width of a head from which on a fused core reaches its full rate. */
#define HV_EFF_CORE_WIDTH       128.0
/** Share of a fused core's time at that width that goes with the query-key pairs, whatever the width
 * (exponentials and maxima), forward and backward: 648 and 497 TFLOP/s forward, 561 and 474 backward at
 * widths of 128 and 64, 16,384 tokens on H100 (Shah et al. 2024, FlashAttention-3, figures 5 and 6;
 * those of width 64 and backward recalled). */
#define HV_EFF_CORE_PAIRS       0.30
#define HV_EFF_CORE_PAIRS_BACK  0.18
/** Backward FLOPs of attention without a stored score matrix, per forward FLOP: it computes QK' again. */
#define HV_FLASH_BACKWARD       2.5
/** Bytes of logits per token and vocabulary entry with the vocabulary-parallel loss of Megatron: the
 * 16-bit product and an fp32 copy that becomes the softmax and its gradient in place. */
#define HV_LOGIT_BYTES          6.0
/** The same before Ampere: the loss of Megatron-LM 1.x works on a copy of the fp32 logits and takes the
 * exponentials into a tensor of their own: 2 + 4 + 4 + 4. */
#define HV_LOGIT_BYTES_OLDER    14.0
/** The same with the loss of torch, as FSDP runs use it: product, fp32 copy, log-softmax, gradient. */
#define HV_LOGIT_BYTES_TORCH    14.0
/** Device memory outside the allocator: context and loaded kernels (0.5 to 1 GiB, estimated). */
#define HV_CONTEXT_BYTES        (0.75 * HV_GIB)
/** Buffers of one communicator of a rank (estimated). */
#define HV_COMMUNICATOR_BYTES   (0.25 * HV_GIB)
/** Work space of product libraries: Megatron-Core CI, allocated less states, A100 67 MiB. */
#define HV_WORKSPACE_BYTES      (67 * HV_MIB)
/** Elements of a reduce or gather bucket of DeepSpeed (its default `reduce_bucket_size`). */
#define HV_ZERO_BUCKET          5e8
/** Fragmentation: memory that the caching allocator holds beyond the memory in use, as a share of
 * it (estimated). */
#define HV_FRAGMENTATION_FRAC   0.03
/** The same where whole layers with stored scores are computed again (fitted: BigScience, nvidia-smi,
 * 59 fp16 rows on A100; any share from 0.08 to 0.15 fits within 3.0 %). */
#define HV_FRAGMENTATION_AGAIN  0.13
/** Share of GDDR that error correction takes on cards of data centres (T4: 15 of 16 GiB are seen). */
#define HV_ECC_FRAC             (1.0 / 16)
/** Default reserve, as a share of device memory (estimated). */
#define HV_RESERVE_FRAC         0.02
/** Pieces a run of equal blocks is cut into for gradient milestones. */
#define HV_MILESTONES_PER_RUN   8
/* clang-format on */

/** Rates that a device reaches in one precision. */
struct hv_efficiency {
    double gemm_flops_per_s; /**< large products: peak × share; HV_UNKNOWN when it lacks the
                                precision */
    double core_forward_flops_per_s, core_backward_flops_per_s; /**< fused attention */
    double bytes_per_s;                                         /**< streaming device memory */
    double gemm_start_s;                                        /**< t0 of a product */
    double launch_s;           /**< start of an elementwise kernel */
    double scalar_flops_per_s; /**< products whose rows are not whole groups of HV_EFF_ALIGNED
                                  values: without tensor cores, at the fp32 rate */
    double core16_flops_per_s; /**< large 16-bit products: those of an unfused attention core */
    double peak_flops_per_s;   /**< vendor peak in that precision */
    double gemm_frac;          /**< share of it */
    const char *source;        /**< "fitted …" or "estimated …" */
    const struct hv_calibration *calibration;
};

/** Efficiencies of a device kind in a precision (fp8 jobs run attention in 16 bit). O(rows). */
struct hv_efficiency hv_efficiency_of(const struct hv_device_kind *d, enum hv_precision p);

/** Factor ≤ 1 for thin products (rows, columns, depth). */
double hv_efficiency_thin(double m, double n, double k);

#endif
