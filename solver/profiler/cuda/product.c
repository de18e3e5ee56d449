/*
 * Products by cuBLASLt, in the layout of a linear layer: rows of tokens, weights as out × in.
 * Forward reads the weights transposed (the only layout of 8-bit operands), the gradient of the
 * input reads both plainly, that of the weights reads the output's gradient transposed. Of the
 * algorithms that the library suggests first, the fastest is taken.
 */
#include "solver/base/arena.h"
#include "solver/profiler/cuda/cuda_int.h"
#include <stdlib.h>

#define SUGGESTIONS 4
#define TRIALS      2 /* runs of each suggestion, after one that is not timed */

struct product {
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t b_at, c_at; /* offsets of the second operand and the result in a set */
};

/* Formats of a precision: operands, result, and compute type. */
struct formats {
    cudaDataType_t in, out;
    cublasComputeType_t compute;
    enum hv_cuda_format fill;
    size_t in_bytes, out_bytes;
};

static bool formats_of(enum hv_precision p, struct formats *f)
{
    switch (p) {
    case HV_BF16:
        *f = (struct formats){CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, HV_CUDA_BF16, 2, 2};
        return true;
    case HV_FP16:
        *f = (struct formats){CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, HV_CUDA_FP16, 2, 2};
        return true;
    case HV_FP8:
        *f = (struct formats){CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, HV_CUDA_E4M3, 1, 2};
        return true;
    case HV_TF32:
        *f = (struct formats){CUDA_R_32F,   CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                              HV_CUDA_FP32, 4,          4};
        return true;
    case HV_FP32:
        *f = (struct formats){CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, HV_CUDA_FP32, 4, 4};
        return true;
    case HV_INT8:
    case HV_FP4:
    case HV_PRECISION_N:
        break;
    }
    return false;
}

/* The column-major product as passed to the library: rows × columns over depth. */
struct shape {
    uint64_t rows, columns, depth, batch;
    cublasOperation_t op_a, op_b;
};

static struct shape shape_of(const struct hv_probe *p)
{
    uint64_t groups = p->size[3] > 1 ? (uint64_t)p->size[3] : 1;
    uint64_t m = (uint64_t)p->size[0] / groups, n = (uint64_t)p->size[1], k = (uint64_t)p->size[2];
    if (p->variant == HV_INPUT_GRAD) {
        return (struct shape){k, m, n, groups, CUBLAS_OP_N, CUBLAS_OP_N};
    }
    if (p->variant == HV_WEIGHT_GRAD) {
        return (struct shape){k, n, m, groups, CUBLAS_OP_N, CUBLAS_OP_T};
    }
    return (struct shape){n, m, k, groups, CUBLAS_OP_T, CUBLAS_OP_N};
}

static bool layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, cublasOperation_t op,
                   uint64_t rows, uint64_t columns, uint64_t batch)
{
    uint64_t stored_rows = op == CUBLAS_OP_N ? rows : columns;
    uint64_t stored_columns = op == CUBLAS_OP_N ? columns : rows;
    int32_t count = (int32_t)batch;
    int64_t stride = (int64_t)(rows * columns);
    return cublasLtMatrixLayoutCreate(out, type, stored_rows, stored_columns,
                                      (int64_t)stored_rows) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof count) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                            &stride, sizeof stride) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(const struct hv__cuda *c, const struct shape *s, const struct formats *f,
                     struct product *p)
{
    if (cublasLtMatmulDescCreate(&p->how, f->compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) {
        return false;
    }
    bool good = cublasLtMatmulDescSetAttribute(p->how, CUBLASLT_MATMUL_DESC_TRANSA, &s->op_a,
                                               sizeof s->op_a) == CUBLAS_STATUS_SUCCESS &&
                cublasLtMatmulDescSetAttribute(p->how, CUBLASLT_MATMUL_DESC_TRANSB, &s->op_b,
                                               sizeof s->op_b) == CUBLAS_STATUS_SUCCESS;
    if (good && f->in == CUDA_R_8F_E4M3) {
        good = cublasLtMatmulDescSetAttribute(p->how, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &c->one,
                                              sizeof c->one) == CUBLAS_STATUS_SUCCESS &&
               cublasLtMatmulDescSetAttribute(p->how, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &c->one,
                                              sizeof c->one) == CUBLAS_STATUS_SUCCESS;
    }
    return good && layout(&p->a, f->in, s->op_a, s->rows, s->depth, s->batch) &&
           layout(&p->b, f->in, s->op_b, s->depth, s->columns, s->batch) &&
           layout(&p->c, f->out, CUBLAS_OP_N, s->rows, s->columns, s->batch);
}

static void drop(struct hv__op *op)
{
    struct product *p = op->detail;
    (void)cublasLtMatrixLayoutDestroy(p->a);
    (void)cublasLtMatrixLayoutDestroy(p->b);
    (void)cublasLtMatrixLayoutDestroy(p->c);
    (void)cublasLtMatmulDescDestroy(p->how);
    free(p);
}

static enum hv_status enqueue(struct hv__cuda *c, struct hv__op *op, char *memory,
                              struct hv_err *err)
{
    const struct product *p = op->detail;
    const float one = 1, zero = 0;
    char *result = memory + p->c_at;
    cublasStatus_t st =
        cublasLtMatmul(c->blas, p->how, &one, memory, p->a, memory + p->b_at, p->b, &zero, result,
                       p->c, result, p->c, &p->algorithm, c->workspace, HV__WORKSPACE, c->stream);
    return st == CUBLAS_STATUS_SUCCESS
               ? HV_OK
               : hv_err_set(err, HV_ENO, "cublasLtMatmul: %s", cublasLtGetStatusString(st));
}

static size_t suggestions(const struct hv__cuda *c, const struct product *p,
                          cublasLtMatmulHeuristicResult_t found[SUGGESTIONS])
{
    cublasLtMatmulPreference_t limits = NULL;
    size_t most = HV__WORKSPACE;
    int n = 0;
    if (cublasLtMatmulPreferenceCreate(&limits) != CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    if (cublasLtMatmulPreferenceSetAttribute(limits, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &most, sizeof most) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoGetHeuristic(c->blas, p->how, p->a, p->b, p->c, p->c, limits, SUGGESTIONS,
                                       found, &n) != CUBLAS_STATUS_SUCCESS) {
        n = 0;
    }
    (void)cublasLtMatmulPreferenceDestroy(limits);
    return n > 0 ? (size_t)n : 0;
}

/* Milliseconds of some runs of the algorithm that is set; negative when it fails. */
static float trial_ms(struct hv__cuda *c, struct hv__op *op)
{
    float ms = -1;
    enum hv_status st = enqueue(c, op, op->memory, NULL);
    (void)cudaEventRecord(c->from, c->stream);
    for (unsigned i = 0; st == HV_OK && i < TRIALS; i++) {
        st = enqueue(c, op, op->memory + (i + 1) % op->sets * op->set_bytes, NULL);
    }
    (void)cudaEventRecord(c->to, c->stream);
    bool good = cudaEventSynchronize(c->to) == cudaSuccess &&
                cudaEventElapsedTime(&ms, c->from, c->to) == cudaSuccess && st == HV_OK;
    return good ? ms : -1;
}

/* Sets the fastest of the suggestions that run. */
static enum hv_status choose(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    cublasLtMatmulHeuristicResult_t found[SUGGESTIONS];
    struct product *p = op->detail;
    size_t n = suggestions(c, p, found), best = n;
    float least = 0;
    for (size_t i = 0; i < n; i++) {
        p->algorithm = found[i].algo;
        float ms = trial_ms(c, op);
        if (ms >= 0 && (best == n || ms < least)) {
            best = i;
            least = ms;
        }
    }
    if (best == n) {
        return hv_err_set(err, HV_ENO, "cuBLASLt has no algorithm for it on this card");
    }
    p->algorithm = found[best].algo;
    return HV_OK;
}

enum hv_status hv__prepare_product(struct hv__cuda *c, struct hv__op *op, struct hv_err *err)
{
    struct formats f;
    struct shape s = shape_of(&op->probe);
    if (!formats_of(op->probe.precision, &f)) {
        return hv_err_set(err, HV_ENO, "no products of this format");
    }
    struct product *p = hv_xcalloc(1, sizeof *p);
    op->detail = p;
    op->drop = drop;
    op->enqueue = enqueue;
    size_t a = s.rows * s.depth * s.batch, b = s.depth * s.columns * s.batch;
    p->b_at = hv__align(a * f.in_bytes);
    p->c_at = p->b_at + hv__align(b * f.in_bytes);
    if (!describe(c, &s, &f, p)) {
        return hv_err_set(err, HV_ENO, "cuBLASLt cannot describe it");
    }
    enum hv_status st = hv__take(c, op, p->c_at + s.rows * s.columns * s.batch * f.out_bytes, err);
    if (st || (st = hv__fill(c, op, 0, a, f.fill, 1, err)) ||
        (st = hv__fill(c, op, p->b_at, b, f.fill, 1, err))) {
        return st;
    }
    return choose(c, op, err);
}
