/*
 * Fused attention by cuDNN's graph API: one operation, its tensors, and the first execution plan
 * that the library's heuristics suggest. The library is loaded where it is installed and rejects
 * the cards and sizes that it does not support. No mask is used. Not yet tested on a real card.
 */
#include "solver/profiler/cuda/cuda_int.h"

#if defined(__has_include) && __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

#if defined(CUDNN_VERSION) && CUDNN_VERSION >= 91900 /* first version known to have it */

#include "solver/base/arena.h"
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Functions of cuDNN that are used. */
#define CALLS(X)                                                                                   \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetVersion)                                                                             \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

struct dnn {
    void *library;
    cudnnHandle_t handle;
#define X(name) __typeof__(&name) name;
    CALLS(X)
#undef X
};

static bool find_calls(struct dnn *d)
{
    bool all = true;
    void *at;
#define X(name)                                                                                    \
    at = dlsym(d->library, #name);                                                                 \
    memcpy(&d->name, &at, sizeof at);                                                              \
    all = all && at != NULL;
    CALLS(X)
#undef X
    return all;
}

void hv__attention_open(struct hv__cuda *c, char *version, size_t cap)
{
    struct dnn *d = hv_xcalloc(1, sizeof *d);
    version[0] = '\0';
    d->library = dlopen("libcudnn.so.9", RTLD_NOW);
    if (d->library == NULL || !find_calls(d) ||
        d->cudnnCreate(&d->handle) != CUDNN_STATUS_SUCCESS) {
        if (d->library != NULL) {
            (void)dlclose(d->library);
        }
        free(d);
        return;
    }
    size_t v = d->cudnnGetVersion();
    (void)snprintf(version, cap, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    (void)d->cudnnSetStream(d->handle, c->stream);
    c->dnn = d;
}

void hv__attention_close(struct hv__cuda *c)
{
    struct dnn *d = c->dnn;
    if (d != NULL) {
        (void)d->cudnnDestroy(d->handle);
        (void)dlclose(d->library);
        free(d);
    }
    c->dnn = NULL;
}

/* ---- one operation --------------------------------------------------------------------------- */

enum tensor { Q, K, V, O, STATS, SCALE, DQ, DK, DV, DO, TENSORS };

#define MAX_PARTS (TENSORS + 8)

/* An execution plan and the descriptors created for it. */
struct core {
    struct dnn *d;
    cudnnBackendDescriptor_t parts[MAX_PARTS], plan, tensor[TENSORS];
    size_t n_parts;
    size_t at[TENSORS]; /* offsets in a set; the work space is last */
    size_t work_at;
    int64_t work_bytes;
    float scale;
    bool backward;
    cudnnStatus_t status; /* the first failure */
};

static cudnnBackendDescriptor_t make(struct core *k, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t part = NULL;
    if (k->status == CUDNN_STATUS_SUCCESS && k->n_parts < MAX_PARTS) {
        k->status = k->d->cudnnBackendCreateDescriptor(type, &part);
        if (k->status == CUDNN_STATUS_SUCCESS) {
            k->parts[k->n_parts++] = part;
        }
    }
    return part;
}

static void set(struct core *k, cudnnBackendDescriptor_t part, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (k->status == CUDNN_STATUS_SUCCESS) {
        k->status = k->d->cudnnBackendSetAttribute(part, name, type, n, values);
    }
}

static void finish(struct core *k, cudnnBackendDescriptor_t part)
{
    if (k->status == CUDNN_STATUS_SUCCESS) {
        k->status = k->d->cudnnBackendFinalize(part);
    }
}

/* batch × heads × sequence × width, stored sequence by sequence with the heads side by side. */
static cudnnBackendDescriptor_t make_tensor(struct core *k, enum tensor which, cudnnDataType_t type,
                                            const int64_t dims[4])
{
    cudnnBackendDescriptor_t t = make(k, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t strides[4] = {dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1};
    int64_t id = which + 1, alignment = 16;
    bool by_value = which == SCALE;
    if (which == STATS) { /* heads apart */
        strides[1] = dims[2];
        strides[2] = 1;
    }
    set(k, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(k, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(k, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(k, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(k, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(k, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish(k, t);
    return t;
}

/* Creates all tensors and assigns their offsets; returns the bytes of a set without work space. */
static size_t make_tensors(struct core *k, const struct hv_probe *p)
{
    int64_t b = (int64_t)p->size[0], s = (int64_t)p->size[1], h = (int64_t)p->size[2];
    int64_t kv = (int64_t)p->size[3], d = (int64_t)p->size[4];
    cudnnDataType_t half = p->precision == HV_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
    const int64_t wide[4] = {b, h, s, d}, narrow[4] = {b, kv, s, d};
    const int64_t rows[4] = {b, h, s, 1}, one[4] = {1, 1, 1, 1};
    size_t bytes = 0;
    for (int t = 0; t < (k->backward ? TENSORS : SCALE + 1); t++) {
        bool few = t == K || t == V || t == DK || t == DV;
        const int64_t *dims = t == STATS ? rows : t == SCALE ? one : few ? narrow : wide;
        cudnnDataType_t type = t == STATS || t == SCALE ? CUDNN_DATA_FLOAT : half;
        k->tensor[t] = make_tensor(k, (enum tensor)t, type, dims);
        k->at[t] = bytes;
        bytes += hv__align((size_t)(dims[0] * dims[1] * dims[2] * dims[3]) * (t == STATS ? 4 : 2));
    }
    return bytes;
}

/* Attributes of the operation and their tensors. */
struct slot {
    cudnnBackendAttributeName_t name;
    enum tensor tensor;
};
static const struct slot forward_slots[] = {
    {CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, Q},
    {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, K},
    {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, V},
    {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, O},
    {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, STATS},
    {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, SCALE},
};
static const struct slot backward_slots[] = {
    {CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, Q},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, K},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, V},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, O},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, STATS},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, SCALE},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, DQ},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, DK},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, DV},
    {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, DO},
};

static cudnnBackendDescriptor_t make_graph(struct core *k)
{
    const struct slot *slots = k->backward ? backward_slots : forward_slots;
    size_t n = k->backward ? HV_COUNT(backward_slots) : HV_COUNT(forward_slots);
    cudnnBackendDescriptor_t op =
        make(k, k->backward ? CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR
                            : CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    for (size_t i = 0; i < n; i++) {
        set(k, op, slots[i].name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &k->tensor[slots[i].tensor]);
    }
    finish(k, op);
    cudnnBackendDescriptor_t graph = make(k, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(k, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &k->d->handle);
    set(k, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    finish(k, graph);
    return graph;
}

/* Creates the first execution plan that the library's heuristics suggest. */
static void make_plan(struct core *k, cudnnBackendDescriptor_t graph)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t advice = make(k, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendDescriptor_t engine = make(k, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t n = 0;
    set(k, advice, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    set(k, advice, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finish(k, advice);
    if (k->status == CUDNN_STATUS_SUCCESS) {
        k->status = k->d->cudnnBackendGetAttribute(advice, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
        if (k->status == CUDNN_STATUS_SUCCESS && n < 1) {
            k->status = CUDNN_STATUS_NOT_SUPPORTED;
        }
    }
    k->plan = make(k, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(k, k->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &k->d->handle);
    set(k, k->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &engine);
    finish(k, k->plan);
    if (k->status == CUDNN_STATUS_SUCCESS) {
        k->status =
            k->d->cudnnBackendGetAttribute(k->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &n, &k->work_bytes);
    }
}

static void drop(struct hv__op *op)
{
    struct core *k = op->detail;
    while (k->n_parts > 0) {
        (void)k->d->cudnnBackendDestroyDescriptor(k->parts[--k->n_parts]);
    }
    free(k);
}

static enum hv_status enqueue(struct hv__cuda *c, struct hv__op *op, char *memory,
                              struct hv_err *err)
{
    (void)c;
    struct core *k = op->detail;
    int64_t ids[TENSORS], n = k->backward ? TENSORS : SCALE + 1;
    void *at[TENSORS], *work = memory + k->work_at;
    for (int64_t t = 0; t < n; t++) {
        ids[t] = t + 1;
        at[t] = t == SCALE ? (void *)&k->scale : memory + k->at[t];
    }
    size_t before = k->n_parts;
    cudnnBackendDescriptor_t pack = make(k, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(k, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    set(k, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at);
    set(k, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &work);
    finish(k, pack);
    if (k->status == CUDNN_STATUS_SUCCESS) {
        k->status = k->d->cudnnBackendExecute(k->d->handle, k->plan, pack);
    }
    while (k->n_parts > before) {
        (void)k->d->cudnnBackendDestroyDescriptor(k->parts[--k->n_parts]);
    }
    return k->status == CUDNN_STATUS_SUCCESS
               ? HV_OK
               : hv_err_set(err, HV_ENO, "cuDNN: %s", k->d->cudnnGetErrorString(k->status));
}

/* Random operands; the statistics are those of rows of small scores. */
static enum hv_status fill(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    const struct core *k = op->detail;
    enum hv_cuda_format half = op->probe.precision == HV_FP16 ? HV_CUDA_FP16 : HV_CUDA_BF16;
    enum hv_status st = hv__fill(c, op, 0, k->at[STATS] / 2, half, 1, err);
    if (st == HV_OK && k->backward) {
        st = hv__fill(c, op, k->at[STATS], (k->at[SCALE] - k->at[STATS]) / 4, HV_CUDA_FP32, 1, err);
    }
    if (st == HV_OK && k->backward) {
        st = hv__fill(c, op, k->at[DQ], (k->work_at - k->at[DQ]) / 2, half, 1, err);
    }
    return st;
}

enum hv_status hv__prepare_attention(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    if (c->dnn == NULL) {
        return hv_err_set(err, HV_ENO, "attention is timed by cuDNN 9, which is not installed");
    }
    struct core *k = hv_xcalloc(1, sizeof *k);
    k->d = c->dnn;
    k->backward = op->probe.variant == HV_CORE_BACKWARD;
    k->scale = (float)(1 / sqrt(op->probe.size[4]));
    op->detail = k;
    op->drop = drop;
    op->enqueue = enqueue;
    k->work_at = make_tensors(k, &op->probe);
    make_plan(k, make_graph(k));
    if (k->status != CUDNN_STATUS_SUCCESS) {
        return hv_err_set(err, HV_ENO, "cuDNN has no fused attention for it: %s",
                          k->d->cudnnGetErrorString(k->status));
    }
    enum hv_status st = hv__take(c, op, k->work_at + (size_t)k->work_bytes, err);
    return st ? st : fill(c, op, err);
}

#else

void hv__attention_open(struct hv__cuda *c, char *version, size_t cap)
{
    (void)c;
    (void)cap;
    version[0] = '\0';
}

void hv__attention_close(struct hv__cuda *c)
{
    (void)c;
}

enum hv_status hv__prepare_attention(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    (void)c;
    (void)op;
    return hv_err_set(err, HV_ENO, "built without headers of cuDNN 9.19 or later");
}

#endif
