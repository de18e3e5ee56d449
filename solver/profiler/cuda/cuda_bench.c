/*
 * The bench over CUDA: memory, events, and the dispatch of probes to the part that prepares them.
 * Every probe runs on sets of memory that are used in turn and together exceed the cache three
 * times, filled with random bits.
 */
#include "solver/profiler/cuda/cuda_bench.h"

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "solver/profiler/cuda/cuda_int.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_SETS    32u
#define MAX_POOL    ((size_t)16 << 30)
#define POOL_FRAC   0.8 /* of the memory that is free */
#define CACHE_TIMES 3

enum hv_status hv__cuda_check(cudaError_t e, const char *what, struct hv_err *err)
{
    if (e == cudaSuccess) {
        return HV_OK;
    }
    bool lost = e == cudaErrorIllegalAddress || e == cudaErrorLaunchFailure ||
                e == cudaErrorECCUncorrectable || e == cudaErrorHardwareStackError;
    (void)cudaGetLastError();
    return hv_err_set(err, lost ? HV_EIO : HV_ENO, "%s: %s", what, cudaGetErrorString(e));
}

size_t hv__align(size_t bytes)
{
    return (bytes + HV__ALIGN - 1) / HV__ALIGN * HV__ALIGN;
}

enum hv_status hv__take(struct hv__cuda *c, struct hv__op *op, size_t set_bytes, struct hv_err *err)
{
    size_t room = c->pool_bytes - c->used_bytes, set = hv__align(set_bytes);
    size_t cache = (size_t)c->properties.l2CacheSize * CACHE_TIMES;
    size_t sets = set > 0 ? cache / set + 1 : 1;
    sets = sets < MAX_SETS ? sets : MAX_SETS;
    if (set > room) {
        return hv_err_set(err, HV_ENO, "needs %.3g GiB, %.3g GiB are free", (double)set / HV_GIB,
                          (double)room / HV_GIB);
    }
    while (sets > 1 && sets * set > room) {
        sets--;
    }
    op->memory = c->pool + c->used_bytes;
    op->set_bytes = set;
    op->sets = (unsigned)sets;
    c->used_bytes += sets * set;
    return HV_OK;
}

enum hv_status hv__fill(struct hv__cuda *c, const struct hv__op *op, size_t offset, size_t n,
                        enum hv_cuda_format format, uint32_t rows, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (unsigned s = 0; st == HV_OK && s < op->sets; s++) {
        char *to = op->memory + s * op->set_bytes + offset;
        st = hv__cuda_check(
            hv_cuda_fill(to, n, format, s * 7919u + (uint32_t)offset, rows, c->stream),
            "filling memory", err);
    }
    return st;
}

/* ---- launches -------------------------------------------------------------------------------- */

static enum hv_status enqueue_nothing(struct hv__cuda *c, struct hv__op *op, char *memory,
                                      struct hv_err *err)
{
    (void)op;
    (void)memory;
    return hv__cuda_check(hv_cuda_nothing(c->stream), "empty kernel", err);
}

static enum hv_status prepare_launch(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    op->enqueue = enqueue_nothing;
    return hv__take(c, op, HV__ALIGN, err);
}

/* ---- the bench ------------------------------------------------------------------------------- */

static void release(void *self)
{
    struct hv__cuda *c = self;
    for (size_t i = 0; i < c->n_ops; i++) {
        if (c->ops[i].drop != NULL) {
            c->ops[i].drop(&c->ops[i]);
        }
    }
    free(c->ops);
    c->ops = NULL;
    c->n_ops = 0;
    c->used_bytes = 0;
}

static enum hv_status prepare_one(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    switch (hv_probe_kind_of(op->probe.variant)) {
    case HV_PROBE_GEMM:
    case HV_PROBE_GROUPED:
        return hv__prepare_product(c, op, err);
    case HV_PROBE_ATTENTION:
        return hv__prepare_attention(c, op, err);
    case HV_PROBE_STREAM:
        return hv__prepare_memory(c, op, err);
    case HV_PROBE_COPY:
        return hv__prepare_copy(c, op, err);
    case HV_PROBE_LAUNCH:
        return prepare_launch(c, op, err);
    case HV_PROBE_COLLECTIVE:
        return hv__prepare_collective(c, op, err);
    case HV_PROBE_KIND_N:
        break;
    }
    return hv_err_set(err, HV_ENO, "nothing to run");
}

static enum hv_status prepare(void *self, const struct hv_probe *probes, size_t n,
                              struct hv_err *err)
{
    struct hv__cuda *c = self;
    enum hv_status st = HV_OK;
    c->ops = hv_xcalloc(n, sizeof *c->ops);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        c->ops[i].probe = probes[i];
        c->n_ops = i + 1; /* release frees a partly prepared probe */
        st = prepare_one(c, &c->ops[i], err);
    }
    if (st == HV_OK) {
        st = hv__cuda_check(cudaStreamSynchronize(c->stream), "preparing", err);
    }
    if (st) {
        release(c);
    }
    return st;
}

static enum hv_status enqueue_all(struct hv__cuda *c, unsigned repeats, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (unsigned r = 0; st == HV_OK && r < repeats; r++, c->turn++) {
        for (size_t i = 0; st == HV_OK && i < c->n_ops; i++) {
            struct hv__op *op = &c->ops[i];
            st = op->enqueue(c, op, op->memory + c->turn % op->sets * op->set_bytes, err);
        }
    }
    return st;
}

static enum hv_status run(void *self, unsigned repeats, double *seconds, struct hv_err *err)
{
    struct hv__cuda *c = self;
    float ms = 0;
    enum hv_status st;
    if ((st = hv__cuda_check(cudaEventRecord(c->from, c->stream), "event", err)) ||
        (st = enqueue_all(c, repeats, err)) ||
        (st = hv__cuda_check(cudaEventRecord(c->to, c->stream), "event", err)) ||
        (st = hv__cuda_check(cudaEventSynchronize(c->to), "running", err)) ||
        (st = hv__cuda_check(cudaEventElapsedTime(&ms, c->from, c->to), "timing", err))) {
        return st;
    }
    *seconds = (double)ms * HV_MS;
    return HV_OK;
}

static double clock_hz(void *self)
{
    return hv__clock_hz(self);
}

static double now_s(void *self)
{
    (void)self;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Opens the card and reads its description. */
struct opened {
    struct hv__cuda cuda;
    struct hv_bench_card card;
};

static void card(void *self, struct hv_bench_card *out)
{
    *out = ((const struct opened *)self)->card;
}

static void describe(struct opened *o)
{
    struct hv__cuda *c = &o->cuda;
    struct hv_bench_card *k = &o->card;
    int runtime = 0;
    size_t blas = cublasLtGetVersion();
    (void)cudaRuntimeGetVersion(&runtime);
    (void)snprintf(k->name, sizeof k->name, "%.*s", (int)sizeof k->name - 1, c->properties.name);
    (void)snprintf(k->runtime, sizeof k->runtime, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    (void)snprintf(k->blas, sizeof k->blas, "%zu", blas);
    k->memory_bytes = (double)c->properties.totalGlobalMem;
    k->compute_capability = 10 * c->properties.major + c->properties.minor;
    k->processors = c->properties.multiProcessorCount;
    k->peers = c->devices;
    hv__clock_open(c, k->driver, sizeof k->driver);
    hv__attention_open(c, k->dnn, sizeof k->dnn);
    hv__collective_open(c, k->collectives, sizeof k->collectives);
    if (k->driver[0] == '\0') {
        int driver = 0;
        (void)cudaDriverGetVersion(&driver);
        (void)snprintf(k->driver, sizeof k->driver, "CUDA %d.%d", driver / 1000,
                       driver % 1000 / 10);
    }
}

static enum hv_status take_pool(struct hv__cuda *c, struct hv_err *err)
{
    size_t free_bytes = 0, all_bytes = 0;
    enum hv_status st = hv__cuda_check(cudaMemGetInfo(&free_bytes, &all_bytes), "memory", err);
    double want = (double)free_bytes * POOL_FRAC;
    c->pool_bytes = want < (double)MAX_POOL ? (size_t)want : MAX_POOL;
    const float one = 1;
    if (st == HV_OK &&
        (st = hv__cuda_check(cudaMalloc((void **)&c->workspace, HV__WORKSPACE), "work space",
                             err)) == HV_OK &&
        (st = hv__cuda_check(cudaMalloc((void **)&c->one, sizeof one), "memory", err)) == HV_OK &&
        (st = hv__cuda_check(cudaMemcpy(c->one, &one, sizeof one, cudaMemcpyHostToDevice), "copy",
                             err)) == HV_OK &&
        (st = hv__cuda_check(cudaMallocHost((void **)&c->host, HV__HOST), "host memory", err)) ==
            HV_OK) {
        c->pool_bytes -= c->pool_bytes > 2 * HV__WORKSPACE ? 2 * HV__WORKSPACE : 0;
        st = hv__cuda_check(cudaMalloc((void **)&c->pool, c->pool_bytes), "memory pool", err);
    }
    return st;
}

static enum hv_status set_up(struct hv__cuda *c, int device, struct hv_err *err)
{
    enum hv_status st;
    cudaError_t found = cudaGetDeviceCount(&c->devices);
    if (found != cudaSuccess) {
        return hv_err_set(err, HV_ENO,
                          "no GPU can be used: %s; does `nvidia-smi` list one? If not, install "
                          "NVIDIA's driver; `hetviz profile --show F` needs none",
                          cudaGetErrorString(found));
    }
    if (device < 0 || device >= c->devices) {
        return hv_err_set(err, HV_ENO, "there is no GPU %d; this machine has %d, counted from 0",
                          device, c->devices);
    }
    c->device = device;
    if ((st = hv__cuda_check(cudaSetDevice(device), "GPU", err)) ||
        (st = hv__cuda_check(cudaGetDeviceProperties(&c->properties, device), "GPU", err)) ||
        (st = hv__cuda_check(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "stream",
                             err)) ||
        (st = hv__cuda_check(cudaEventCreate(&c->from), "event", err)) ||
        (st = hv__cuda_check(cudaEventCreate(&c->to), "event", err)) || (st = take_pool(c, err))) {
        return st;
    }
    return cublasLtCreate(&c->blas) == CUBLAS_STATUS_SUCCESS
               ? HV_OK
               : hv_err_set(err, HV_ENO, "cuBLASLt cannot be initialised");
}

enum hv_status hv_cuda_open(int device, struct hv_bench *out, struct hv_err *err)
{
    struct opened *o = hv_xcalloc(1, sizeof *o);
    *out = (struct hv_bench){o, card, prepare, run, release, clock_hz, now_s};
    enum hv_status st = set_up(&o->cuda, device, err);
    if (st) {
        hv_cuda_close(out);
        return st;
    }
    describe(o);
    return HV_OK;
}

void hv_cuda_close(struct hv_bench *b)
{
    struct opened *o = b->self;
    if (o == NULL) {
        return;
    }
    struct hv__cuda *c = &o->cuda;
    hv__collective_close(c);
    hv__attention_close(c);
    hv__clock_close(c);
    if (c->blas != NULL) {
        (void)cublasLtDestroy(c->blas);
    }
    if (c->stream != NULL) {
        (void)cudaEventDestroy(c->from);
        (void)cudaEventDestroy(c->to);
        (void)cudaStreamDestroy(c->stream);
    }
    (void)cudaFreeHost(c->host);
    (void)cudaFree(c->one);
    (void)cudaFree(c->workspace);
    (void)cudaFree(c->pool);
    free(o);
    *b = (struct hv_bench){0};
}
