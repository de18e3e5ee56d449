/** Shared by the parts of the CUDA bench: memory that is rotated through, operations, checks. */
#ifndef HV_SOLVER_PROFILER_CUDA_CUDA_INT_H
#define HV_SOLVER_PROFILER_CUDA_CUDA_INT_H

#include "solver/profiler/bench.h"
#include "solver/profiler/cuda/kernels.h"
#include <cublasLt.h>

struct hv__cuda;

/** One prepared probe. */
struct hv__op {
    struct hv_probe probe;
    char *memory;     /**< `sets` times set_bytes, used in turn so that no cache holds them */
    size_t set_bytes; /**< a multiple of HV__ALIGN */
    unsigned sets;
    /** Puts one run on the stream, on the memory of this set. */
    enum hv_status (*enqueue)(struct hv__cuda *c, struct hv__op *op, char *memory,
                              struct hv_err *err);
    /** Frees `detail`. NULL: nothing to free. */
    void (*drop)(struct hv__op *op);
    void *detail; /**< of the part that prepared it */
};
#define HV__ALIGN 256u

/** The bench: one card, one stream, one pool of its memory. */
struct hv__cuda {
    int device, devices;
    struct cudaDeviceProp properties;
    cudaStream_t stream;
    cudaEvent_t from, to;
    cublasLtHandle_t blas;
    char *pool;
    size_t pool_bytes, used_bytes;
    void *workspace; /**< of products, HV__WORKSPACE bytes */
    float *one;      /**< 1.0 in device memory: scale of 8-bit operands */
    char *host;      /**< pinned, HV__HOST bytes: copies */
    struct hv__op *ops;
    size_t n_ops;
    unsigned turn;
    void *dnn;         /**< attention.c; NULL: not available */
    void *collectives; /**< collective.c; NULL: not available */
    void *nvml;        /**< clock.c; NULL: not available */
};
#define HV__WORKSPACE ((size_t)64 << 20)
#define HV__HOST      ((size_t)256 << 20)

/** HV_OK, or HV_ENO naming the failed call and the reason. A sticky error (the card is lost) is
 * HV_EIO. */
enum hv_status hv__cuda_check(cudaError_t e, const char *what, struct hv_err *err);
/** Rounds up to HV__ALIGN. */
size_t hv__align(size_t bytes);
/**
 * Takes memory for an operation: `set_bytes` for one run, as many sets as three times the cache
 * holds. HV_ENO: not enough memory.
 */
enum hv_status hv__take(struct hv__cuda *c, struct hv__op *op, size_t set_bytes,
                        struct hv_err *err);
/** Fills part of every set with random numbers. */
enum hv_status hv__fill(struct hv__cuda *c, const struct hv__op *op, size_t offset, size_t n,
                        enum hv_cuda_format format, uint32_t rows, struct hv_err *err);

/** Each prepares an operation. Errors: HV_ENO when card or library do not support it. */
enum hv_status hv__prepare_product(struct hv__cuda *c, struct hv__op *op, struct hv_err *err);
enum hv_status hv__prepare_attention(struct hv__cuda *c, struct hv__op *op, struct hv_err *err);
enum hv_status hv__prepare_memory(struct hv__cuda *c, struct hv__op *op, struct hv_err *err);
enum hv_status hv__prepare_copy(struct hv__cuda *c, struct hv__op *op, struct hv_err *err);
enum hv_status hv__prepare_collective(struct hv__cuda *c, struct hv__op *op, struct hv_err *err);

/** Loads cuDNN, NCCL and NVML where they are installed; the text names the version, "" none. */
void hv__attention_open(struct hv__cuda *c, char *version, size_t cap);
void hv__attention_close(struct hv__cuda *c);
void hv__collective_open(struct hv__cuda *c, char *version, size_t cap);
void hv__collective_close(struct hv__cuda *c);
void hv__clock_open(struct hv__cuda *c, char *driver, size_t cap);
void hv__clock_close(struct hv__cuda *c);
/** Clock of the multiprocessors, or HV_UNKNOWN. */
double hv__clock_hz(const struct hv__cuda *c);

#endif
