/** The kernels that only move memory, and a function that fills memory with numbers. C side of
 * kernels.cu. */
#ifndef HV_SOLVER_PROFILER_CUDA_KERNELS_H
#define HV_SOLVER_PROFILER_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Formats that memory is filled in. */
enum hv_cuda_format { HV_CUDA_BF16, HV_CUDA_FP16, HV_CUDA_FP32, HV_CUDA_E4M3, HV_CUDA_INDEX };

/**
 * Fills n numbers with seeded random ones in [−1, 1), as bits that keep the multipliers busy (zeros
 * and ones run cooler and faster); indices are random rows below `rows`.
 */
cudaError_t hv_cuda_fill(void *to, size_t n, enum hv_cuda_format format, uint32_t seed,
                         uint32_t rows, cudaStream_t stream);

/** Buffers of a memory kernel; each kernel below documents the buffers that it uses. */
struct hv_cuda_buffers {
    void *in[4], *out;
    size_t rows, width; /**< width: a multiple of 8 */
};
/** out = in0 + in1, bf16. */
cudaError_t hv_cuda_add(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** out = silu(in0) · in1, bf16. */
cudaError_t hv_cuda_activation(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** out = in0 / root mean square of its row, bf16. */
cudaError_t hv_cuda_norm(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** out = in0 with pairs turned by an angle of row and column, bf16. */
cudaError_t hv_cuda_rope(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** out = rows of in0 picked by the indices in1, bf16. */
cudaError_t hv_cuda_embedding(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** out = softmax of the rows of in0, bf16 (the first step of the loss gradient). */
cudaError_t hv_cuda_loss(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** One step of Adam: in0 gradient, in1 master weights, in2 and in3 moments (fp32); out bf16. */
cudaError_t hv_cuda_optimizer(const struct hv_cuda_buffers *b, cudaStream_t stream);
/** A kernel that does nothing. */
cudaError_t hv_cuda_nothing(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
