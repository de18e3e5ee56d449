/*
 * The tables of measurements. Grids are chosen so that every second place of the products' covers
 * hidden sizes from 256 to 32,768 under tensor parallelism, and thin micro-batches.
 */
#include "solver/profiler/sweep.h"

#include "solver/base/attr.h"
#include "solver/base/units.h"

/* clang-format off */
#define PRODUCT_AXES  {{5, 1, 11}, {8, 1, 8}, {8, 1, 8}}
#define SMALL_AXES    {{5, 1, 9}, {8, 1, 7}, {8, 1, 7}} /* fp32 is up to 30 times slower */
#define SEQUENCE_AXIS {{10, 1, 6}, {0, 1, 1}, {0, 1, 1}}
#define ROWS_AXIS     {{4, 1, 15}, {0, 1, 1}, {0, 1, 1}}
#define COPY_AXIS     {{10, 1, 19}, {0, 1, 1}, {0, 1, 1}}
static const struct hv_sweep sweeps[] = {
    {HV_FORWARD,          HV_BF16, HV_SWEEP_PRODUCT,  PRODUCT_AXES,  false, false, false},
    {HV_FORWARD,          HV_FP16, HV_SWEEP_PRODUCT,  PRODUCT_AXES,  true,  false, false},
    {HV_FORWARD,          HV_FP8,  HV_SWEEP_PRODUCT,  PRODUCT_AXES,  false, false, false},
    {HV_FORWARD,          HV_TF32, HV_SWEEP_PRODUCT,  PRODUCT_AXES,  false, false, true},
    {HV_FORWARD,          HV_FP32, HV_SWEEP_PRODUCT,  SMALL_AXES,    false, false, true},
    {HV_CORE_FORWARD,     HV_BF16, HV_SWEEP_SEQUENCE, SEQUENCE_AXIS, false, false, false},
    {HV_CORE_FORWARD,     HV_FP16, HV_SWEEP_SEQUENCE, SEQUENCE_AXIS, true,  false, false},
    {HV_CORE_BACKWARD,    HV_BF16, HV_SWEEP_SEQUENCE, SEQUENCE_AXIS, false, false, false},
    {HV_CORE_BACKWARD,    HV_FP16, HV_SWEEP_SEQUENCE, SEQUENCE_AXIS, true,  false, false},
    {HV_STREAM_ADD,       HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, false},
    {HV_STREAM_ACTIVATION,HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, false},
    {HV_STREAM_NORM,      HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, false},
    {HV_STREAM_ROPE,      HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, false},
    {HV_STREAM_EMBEDDING, HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, true},
    {HV_STREAM_LOSS,      HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, true},
    {HV_STREAM_OPTIMIZER, HV_BF16, HV_SWEEP_ROWS,     ROWS_AXIS,     false, false, true},
    {HV_COPY_DEVICE,      HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, false, false},
    {HV_COPY_TO_DEVICE,   HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, false, false},
    {HV_COPY_TO_HOST,     HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, false, false},
    {HV_COPY_PEER,        HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, true,  false},
    {HV_TIME_ALL_REDUCE,       HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, true,  false},
    {HV_TIME_ALL_GATHER,       HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, true,  false},
    {HV_TIME_REDUCE_SCATTER,   HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, true,  false},
    {HV_TIME_ALL_TO_ALL,       HV_BF16, HV_SWEEP_BYTES,    COPY_AXIS,     false, true,  false},
};

static const struct hv_probe singles[] = {
    {HV_LAUNCH_EMPTY,   HV_BF16, {0}},
    /* gradients of common layers */
    {HV_INPUT_GRAD,     HV_BF16, {4096,  6144,  4096}},
    {HV_WEIGHT_GRAD,    HV_BF16, {4096,  6144,  4096}},
    {HV_INPUT_GRAD,     HV_BF16, {8192,  28672, 4096}},
    {HV_WEIGHT_GRAD,    HV_BF16, {8192,  28672, 4096}},
    {HV_INPUT_GRAD,     HV_BF16, {2048,  3072,  1024}},
    {HV_WEIGHT_GRAD,    HV_BF16, {2048,  3072,  1024}},
    /* experts: rows of all of them together */
    {HV_GROUPED_FORWARD,HV_BF16, {8192,  14336, 4096, 8}},
    {HV_GROUPED_FORWARD,HV_BF16, {16384, 2048,  7168, 32}},
    {HV_GROUPED_FORWARD,HV_BF16, {16384, 768,   2048, 128}},
    /* other heads than those of the sweep */
    {HV_CORE_FORWARD,   HV_BF16, {4,     4096,  32,   32, 64}},
    {HV_CORE_BACKWARD,  HV_BF16, {4,     4096,  32,   32, 64}},
    {HV_CORE_FORWARD,   HV_BF16, {2,     8192,  64,   8,  128}},
    {HV_CORE_BACKWARD,  HV_BF16, {2,     8192,  64,   8,  128}},
};

/* m, n, k on no grid place */
static const double check_products[][3] = {
    {640,  1920,  640},  {1536, 3072, 768},   {3000, 4800, 1600},  {6144, 2560,  2560}, {2048,  13824, 5120},
    {4096, 10752, 7168}, {8192, 6144, 12288}, {4096, 3584, 18944}, {160,  11008, 4096}, {12288, 1152,  9216},
};

/* hidden, ffn, heads, kv heads, head size, sequence, sequences at once: sizes of public models and
 * of their tensor-parallel shards */
static const struct hv_layer_shape layers[] = {
    {1600,  6400,  25, 25, 64,  1024, 8}, {2560,  6912,  20, 20, 128, 2048, 4},
    {3072,  8192,  24, 8,  128, 2048, 4}, {3584,  18944, 28, 4,  128, 4096, 2},
    {4608,  12288, 36, 6,  128, 4096, 2}, {5120,  13824, 40, 40, 128, 4096, 1},
    {5120,  17408, 40, 8,  128, 8192, 1}, {6144,  16384, 48, 8,  128, 4096, 1},
    {6656,  17920, 52, 52, 128, 2048, 2}, {7168,  20480, 56, 8,  128, 4096, 1},
    {3584,  4736,  7,  1,  128, 4096, 2}, {5120,  3456,  10, 10, 128, 4096, 1},
    {6656,  4480,  13, 13, 128, 2048, 2}, {7168,  2560,  7,  1,  128, 4096, 1},
    {9216,  4608,  9,  1,  128, 4096, 1}, {12288, 6144,  12, 12, 128, 2048, 1},
    {1280,  5120,  20, 20, 64,  1024, 6}, {2304,  9216,  8,  4,  256, 3072, 2},
    {2880,  7680,  30, 10, 96,  3072, 3}, {8192,  3696,  8,  1,  128, 6144, 1},
};
/* clang-format on */

const struct hv_sweep *hv_sweeps(size_t *n)
{
    *n = HV_COUNT(sweeps);
    return sweeps;
}

const struct hv_probe *hv_singles(size_t *n)
{
    *n = HV_COUNT(singles);
    return singles;
}

const struct hv_layer_shape *hv_layer_shapes(size_t *n)
{
    *n = HV_COUNT(layers);
    return layers;
}

/* Between the places of the only axis, a quarter, half and three quarters along it. */
static double between_places(const struct hv_log_axis *axis, size_t i)
{
    double at = axis->from + axis->step * ((double)((i + 1) * axis->count / 4) + 0.5);
    return rint(exp2(at) / 16) * 16;
}

bool hv_sweep_check(const struct hv_sweep *s, size_t i, double size[3])
{
    bool products = s->axes == HV_SWEEP_PRODUCT;
    if (i >= (products ? HV_COUNT(check_products) : 3)) {
        return false;
    }
    size[0] = products ? check_products[i][0] : between_places(&s->axis[0], i);
    size[1] = products ? check_products[i][1] : 1;
    size[2] = products ? check_products[i][2] : 1;
    return true;
}

size_t hv_sweep_axis_count(const struct hv_sweep *s)
{
    return s->axes == HV_SWEEP_PRODUCT ? 3 : 1;
}

struct hv_probe hv_sweep_probe(const struct hv_sweep *s, const double size[3], double ranks)
{
    struct hv_probe p = {s->variant, s->precision, {0}};
    switch (s->axes) {
    case HV_SWEEP_PRODUCT:
        p.size[0] = size[0];
        p.size[1] = size[1];
        p.size[2] = size[2];
        break;
    case HV_SWEEP_SEQUENCE:
        p = (struct hv_probe){s->variant,
                              s->precision,
                              {fmax(floor(HV_SWEEP_TOKENS / size[0]), 1), size[0], 32, 8, 128}};
        break;
    case HV_SWEEP_ROWS:
        p.size[0] = size[0];
        p.size[1] = HV_SWEEP_WIDTH;
        break;
    case HV_SWEEP_BYTES:
        p.size[0] = size[0];
        p.size[1] = hv_probe_kind_of(s->variant) == HV_PROBE_COLLECTIVE ? ranks : 0;
        break;
    }
    return p;
}

double hv_sweep_work(const struct hv_probe *p)
{
    double flops = hv_probe_flops(p);
    return flops > 0 ? flops : hv_probe_bytes(p);
}

bool hv_sweep_place(const struct hv_sweep *s, const struct hv_probe *p, double log2_size[3])
{
    enum hv_probe_kind kind = hv_probe_kind_of(p->variant);
    const double *z = p->size;
    double at[3] = {z[0], 1, 1};
    if (kind != hv_probe_kind_of(s->variant) || p->precision != s->precision ||
        (kind != HV_PROBE_GEMM && p->variant != s->variant)) {
        return false;
    }
    if (kind ==
        HV_PROBE_GEMM) { /* m × k times k × n; its gradients m × n · n × k and k × m · m × n */
        at[0] = p->variant == HV_WEIGHT_GRAD ? z[2] : z[0];
        at[1] = p->variant == HV_INPUT_GRAD ? z[2] : z[1];
        at[2] = p->variant == HV_FORWARD ? z[2] : p->variant == HV_INPUT_GRAD ? z[1] : z[0];
    } else if (kind == HV_PROBE_ATTENTION) {
        at[0] = z[1];
    } else if (kind == HV_PROBE_STREAM) { /* rows of the sweep's width that hold as much */
        at[0] = z[0] * z[1] / HV_SWEEP_WIDTH;
    }
    for (size_t a = 0; a < 3; a++) {
        log2_size[a] = log2(at[a]);
    }
    return true;
}

/* A list of probes under construction. */
struct list {
    struct hv_probe *to;
    size_t n;
    enum hv_precision precision;
    bool backward;
};

static void put(struct list *l, enum hv_probe_variant v, enum hv_precision precision, double a,
                double b, double c)
{
    l->to[l->n++] = (struct hv_probe){v, precision, {a, b, c, 0, 0}};
}

static void product(struct list *l, double m, double n, double k)
{
    if (l->backward) {
        put(l, HV_INPUT_GRAD, l->precision, m, n, k);
        put(l, HV_WEIGHT_GRAD, l->precision, m, n, k);
    } else {
        put(l, HV_FORWARD, l->precision, m, n, k);
    }
}

size_t hv_layer_probes(const struct hv_layer_shape *s, enum hv_precision precision, bool backward,
                       struct hv_probe out[HV_LAYER_PROBES])
{
    struct list l = {out, 0, precision, backward};
    enum hv_precision narrow = precision == HV_FP16 ? HV_FP16 : HV_BF16;
    double rows = s->sequence * s->batch, q = s->heads * s->head_dim;
    double kv = s->kv_heads * s->head_dim;
    put(&l, HV_STREAM_NORM, HV_BF16, rows, s->hidden, 0);
    product(&l, rows, q + 2 * kv, s->hidden);
    put(&l, HV_STREAM_ROPE, HV_BF16, rows, q + kv, 0);
    l.to[l.n++] = (struct hv_probe){backward ? HV_CORE_BACKWARD : HV_CORE_FORWARD,
                                    narrow,
                                    {s->batch, s->sequence, s->heads, s->kv_heads, s->head_dim}};
    product(&l, rows, s->hidden, q);
    put(&l, HV_STREAM_ADD, HV_BF16, rows, s->hidden, 0);
    put(&l, HV_STREAM_NORM, HV_BF16, rows, s->hidden, 0);
    product(&l, rows, 2 * s->ffn, s->hidden);
    put(&l, HV_STREAM_ACTIVATION, HV_BF16, rows, s->ffn, 0);
    product(&l, rows, s->hidden, s->ffn);
    put(&l, HV_STREAM_ADD, HV_BF16, rows, s->hidden, 0);
    return l.n;
}
