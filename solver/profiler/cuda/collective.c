/*
 * Collectives by NCCL over all cards of this machine, from one thread. The library is loaded where
 * it is installed and the machine has more than one card. The clock is that of the card that is
 * profiled.
 */
#include "solver/profiler/cuda/cuda_int.h"

#if defined(__has_include) && __has_include(<nccl.h>)
#include <nccl.h>
#endif

#ifdef NCCL_MAJOR

#include "solver/base/arena.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 16

#define CALLS(X)                                                                                   \
    X(ncclGetVersion)                                                                              \
    X(ncclCommInitAll)                                                                             \
    X(ncclCommDestroy)                                                                             \
    X(ncclGetErrorString)                                                                          \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclAllGather)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

/* All cards of the machine. */
struct ranks {
    void *library;
    int n;
    ncclComm_t communicator[MAX_RANKS];
    cudaStream_t stream[MAX_RANKS];
    char *memory[MAX_RANKS]; /* `bytes` to send and as many to receive */
    size_t bytes;
#define X(name) __typeof__(&name) name;
    CALLS(X)
#undef X
};

static bool find_calls(struct ranks *r)
{
    bool all = true;
    void *at;
#define X(name)                                                                                    \
    at = dlsym(r->library, #name);                                                                 \
    memcpy(&r->name, &at, sizeof at);                                                              \
    all = all && at != NULL;
    CALLS(X)
#undef X
    return all;
}

void hv__collective_open(struct hv__cuda *c, char *version, size_t cap)
{
    int v = 0;
    version[0] = '\0';
    if (c->devices < 2 || c->devices > MAX_RANKS) {
        return;
    }
    struct ranks *r = hv_xcalloc(1, sizeof *r);
    c->collectives = r;
    r->library = dlopen("libnccl.so.2", RTLD_NOW);
    if (r->library == NULL || !find_calls(r) || r->ncclGetVersion(&v) != ncclSuccess ||
        r->ncclCommInitAll(r->communicator, c->devices, NULL) != ncclSuccess) {
        hv__collective_close(c);
        (void)cudaSetDevice(c->device);
        return;
    }
    r->n = c->devices;
    for (int i = 0; i < r->n; i++) {
        (void)cudaSetDevice(i);
        if (i != c->device) {
            (void)cudaStreamCreateWithFlags(&r->stream[i], cudaStreamNonBlocking);
        }
    }
    r->stream[c->device] = c->stream;
    (void)cudaSetDevice(c->device);
    (void)snprintf(version, cap, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
}

static void drop_memory(struct ranks *r)
{
    for (int i = 0; i < r->n; i++) {
        (void)cudaFree(r->memory[i]);
        r->memory[i] = NULL;
    }
    r->bytes = 0;
}

void hv__collective_close(struct hv__cuda *c)
{
    struct ranks *r = c->collectives;
    if (r == NULL) {
        return;
    }
    drop_memory(r);
    for (int i = 0; i < r->n; i++) {
        (void)r->ncclCommDestroy(r->communicator[i]);
        if (i != c->device) {
            (void)cudaStreamDestroy(r->stream[i]);
        }
    }
    if (r->library != NULL) {
        (void)dlclose(r->library);
    }
    free(r);
    c->collectives = NULL;
}

/* Memory on every card, kept from probe to probe while it is large enough. */
static enum hv_status take_memory(struct hv__cuda *c, struct ranks *r, size_t bytes,
                                  struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (r->bytes >= bytes) {
        return HV_OK;
    }
    drop_memory(r);
    for (int i = 0; st == HV_OK && i < r->n; i++) {
        (void)cudaSetDevice(i);
        st = hv__cuda_check(cudaMalloc((void **)&r->memory[i], 2 * bytes), "memory of all cards",
                            err);
        if (st == HV_OK) {
            st = hv__cuda_check(
                hv_cuda_fill(r->memory[i], bytes / 2, HV_CUDA_BF16, (uint32_t)i, 1, r->stream[i]),
                "filling memory", err);
        }
    }
    (void)cudaSetDevice(c->device);
    if (st) {
        drop_memory(r);
    } else {
        r->bytes = bytes;
    }
    return st;
}

static ncclResult_t one_rank(struct ranks *r, enum hv_probe_variant what, size_t bytes, int i)
{
    char *from = r->memory[i], *to = from + r->bytes;
    size_t all = bytes / 2, part = all / (size_t)r->n;
    ncclResult_t st = ncclSuccess;
    ncclComm_t comm = r->communicator[i];
    cudaStream_t stream = r->stream[i];
    if (what == HV_TIME_ALL_GATHER) {
        return r->ncclAllGather(from, to, part, ncclBfloat16, comm, stream);
    }
    if (what == HV_TIME_REDUCE_SCATTER) {
        return r->ncclReduceScatter(from, to, part, ncclBfloat16, ncclSum, comm, stream);
    }
    if (what == HV_TIME_ALL_REDUCE) {
        return r->ncclAllReduce(from, to, all, ncclBfloat16, ncclSum, comm, stream);
    }
    for (int k = 0; st == ncclSuccess && k < r->n; k++) { /* all to all */
        size_t at = 2 * part * (size_t)k;
        st = r->ncclSend(from + at, part, ncclBfloat16, k, comm, stream);
        if (st == ncclSuccess) {
            st = r->ncclRecv(to + at, part, ncclBfloat16, k, comm, stream);
        }
    }
    return st;
}

static enum hv_status enqueue(struct hv__cuda *c, struct hv__op *op, char *memory,
                              struct hv_err *err)
{
    (void)memory;
    struct ranks *r = c->collectives;
    ncclResult_t st = r->ncclGroupStart(), end;
    for (int i = 0; st == ncclSuccess && i < r->n; i++) {
        st = one_rank(r, op->probe.variant, (size_t)op->probe.size[0], i);
    }
    end = r->ncclGroupEnd();
    st = st == ncclSuccess ? end : st;
    return st == ncclSuccess ? HV_OK
                             : hv_err_set(err, HV_ENO, "NCCL: %s", r->ncclGetErrorString(st));
}

enum hv_status hv__prepare_collective(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    if (c->collectives == NULL) {
        return hv_err_set(err, HV_ENO, "collectives are timed by NCCL 2, which is not installed");
    }
    op->enqueue = enqueue;
    enum hv_status st = hv__take(c, op, HV__ALIGN, err);
    return st ? st : take_memory(c, c->collectives, (size_t)op->probe.size[0], err);
}

#else

void hv__collective_open(struct hv__cuda *c, char *version, size_t cap)
{
    (void)c;
    (void)cap;
    version[0] = '\0';
}

void hv__collective_close(struct hv__cuda *c)
{
    (void)c;
}

enum hv_status hv__prepare_collective(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    (void)c;
    (void)op;
    return hv_err_set(err, HV_ENO, "built without headers of NCCL");
}

#endif
