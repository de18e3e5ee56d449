/* Kernels that only move memory (kernels.cu), and copies. */
#include "solver/base/attr.h"
#include "solver/profiler/cuda/cuda_int.h"

/* Row of a kernel: its function and the bytes per number of each buffer; 0: no buffer. */
struct kernel {
    enum hv_probe_variant variant;
    cudaError_t (*launch)(const struct hv_cuda_buffers *b, cudaStream_t stream);
    enum hv_cuda_format format[4];
    size_t in_bytes[4];
    bool picks; /* in0 is a table of rows, in1 one index per row */
};

/* clang-format off */
#define NONE HV_CUDA_FP32
static const struct kernel kernels[] = {
    {HV_STREAM_ADD,        hv_cuda_add,        {HV_CUDA_BF16, HV_CUDA_BF16, NONE, NONE},   {2, 2, 0, 0}, false},
    {HV_STREAM_ACTIVATION, hv_cuda_activation, {HV_CUDA_BF16, HV_CUDA_BF16, NONE, NONE},   {2, 2, 0, 0}, false},
    {HV_STREAM_NORM,       hv_cuda_norm,       {HV_CUDA_BF16, NONE, NONE, NONE},           {2, 0, 0, 0}, false},
    {HV_STREAM_ROPE,       hv_cuda_rope,       {HV_CUDA_BF16, NONE, NONE, NONE},           {2, 0, 0, 0}, false},
    {HV_STREAM_EMBEDDING,  hv_cuda_embedding,  {HV_CUDA_BF16, HV_CUDA_INDEX, NONE, NONE},  {2, 4, 0, 0}, true},
    {HV_STREAM_LOSS,       hv_cuda_loss,       {HV_CUDA_BF16, NONE, NONE, NONE},           {2, 0, 0, 0}, false},
    {HV_STREAM_OPTIMIZER,  hv_cuda_optimizer,
     {HV_CUDA_FP32, HV_CUDA_FP32, HV_CUDA_FP32, HV_CUDA_FP32},                             {4, 4, 4, 4}, false},
};
/* clang-format on */

static const struct kernel *kernel_of(enum hv_probe_variant v)
{
    for (size_t i = 0; i < HV_COUNT(kernels); i++) {
        if (kernels[i].variant == v) {
            return &kernels[i];
        }
    }
    return NULL;
}

/* Numbers in a buffer. */
static size_t count_of(const struct kernel *k, const struct hv_probe *p, size_t i)
{
    size_t rows = (size_t)p->size[0], width = (size_t)p->size[1];
    return k->picks && i == 1 ? rows : rows * width;
}

/* Offsets of the buffers in a set; returns the bytes of a set. */
static size_t place(const struct kernel *k, const struct hv_probe *p, size_t at[5])
{
    size_t bytes = 0;
    for (size_t i = 0; i < 4; i++) {
        at[i] = bytes;
        bytes += hv__align(k->in_bytes[i] * count_of(k, p, i));
    }
    at[4] = bytes;
    return bytes + 2 * (size_t)p->size[0] * (size_t)p->size[1];
}

static enum hv_status enqueue(struct hv__cuda *c, struct hv__op *op, char *memory,
                              struct hv_err *err)
{
    const struct kernel *k = kernel_of(op->probe.variant);
    size_t at[5];
    (void)place(k, &op->probe, at);
    struct hv_cuda_buffers b = {{memory + at[0], memory + at[1], memory + at[2], memory + at[3]},
                                memory + at[4],
                                (size_t)op->probe.size[0],
                                (size_t)op->probe.size[1]};
    return hv__cuda_check(k->launch(&b, c->stream), "memory kernel", err);
}

enum hv_status hv__prepare_memory(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    const struct kernel *k = kernel_of(op->probe.variant);
    size_t at[5];
    if (k == NULL || (size_t)op->probe.size[1] % 8 != 0) {
        return hv_err_set(err, HV_ENO, "no such kernel, or rows that are no multiple of 8");
    }
    op->enqueue = enqueue;
    enum hv_status st = hv__take(c, op, place(k, &op->probe, at), err);
    for (size_t i = 0; st == HV_OK && i < 4; i++) {
        if (k->in_bytes[i] > 0) {
            st = hv__fill(c, op, at[i], count_of(k, &op->probe, i), k->format[i],
                          (uint32_t)op->probe.size[0], err);
        }
    }
    return st;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static enum hv_status enqueue_copy(struct hv__cuda *c, struct hv__op *op, char *memory,
                                   struct hv_err *err)
{
    size_t n = (size_t)op->probe.size[0];
    cudaError_t e = cudaSuccess;
    if (op->probe.variant == HV_COPY_DEVICE) {
        e = cudaMemcpyAsync(memory + hv__align(n), memory, n, cudaMemcpyDeviceToDevice, c->stream);
    } else if (op->probe.variant == HV_COPY_TO_DEVICE) {
        e = cudaMemcpyAsync(memory, c->host, n, cudaMemcpyHostToDevice, c->stream);
    } else if (op->probe.variant == HV_COPY_TO_HOST) {
        e = cudaMemcpyAsync(c->host, memory, n, cudaMemcpyDeviceToHost, c->stream);
    } else {
        e = cudaMemcpyPeerAsync(op->detail, (c->device + 1) % c->devices, memory, c->device, n,
                                c->stream);
    }
    return hv__cuda_check(e, "copy", err);
}

static void drop_peer(struct hv__op *op)
{
    (void)cudaFree(op->detail);
}

static enum hv_status take_peer(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    int peer = (c->device + 1) % c->devices, direct = 0;
    (void)cudaDeviceCanAccessPeer(&direct, c->device, peer);
    if (direct != 0) {
        cudaError_t e = cudaDeviceEnablePeerAccess(peer, 0);
        if (e != cudaSuccess) { /* peer access that is already enabled is not an error */
            (void)cudaGetLastError();
        }
    }
    enum hv_status st = hv__cuda_check(cudaSetDevice(peer), "peer", err);
    if (st == HV_OK) {
        st = hv__cuda_check(cudaMalloc(&op->detail, (size_t)op->probe.size[0]), "peer's memory",
                            err);
        (void)cudaSetDevice(c->device);
        op->drop = drop_peer;
    }
    return st;
}

enum hv_status hv__prepare_copy(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    size_t n = (size_t)op->probe.size[0];
    if (op->probe.variant != HV_COPY_DEVICE && n > HV__HOST) {
        return hv_err_set(err, HV_ENO, "larger than the host's buffer");
    }
    op->enqueue = enqueue_copy;
    enum hv_status st = hv__take(c, op, 2 * hv__align(n), err);
    if (st == HV_OK) {
        st = hv__fill(c, op, 0, n / 4, HV_CUDA_FP32, 1, err);
    }
    return st == HV_OK && op->probe.variant == HV_COPY_PEER ? take_peer(c, op, err) : st;
}
