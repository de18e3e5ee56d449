/**
 * Probes of a device: one kernel of a transformer at one size, a copy, a launch or a collective,
 * with its measured time. The profiler takes the measurements, profile files hold them.
 */
#ifndef HV_SOLVER_INVENTORY_PROBE_H
#define HV_SOLVER_INVENTORY_PROBE_H

#include "solver/base/str.h"
#include "solver/inventory/device.h"

/** Largest number of sizes of a probe. */
#define HV_PROBE_SIZES 5

/* clang-format off */
/** Sorts of probes: constant, name in files, description, names of its sizes (NULL: fewer). */
#define HV_PROBE_KIND_MAP(X)                                                                                              \
    X(HV_PROBE_GEMM,       "gemm",       "matrix product m x k times k x n",            "m", "n", "k", NULL, NULL)         \
    X(HV_PROBE_GROUPED,    "grouped",    "one product per expert, all in one kernel",   "m", "n", "k", "groups", NULL)     \
    X(HV_PROBE_ATTENTION,  "attention",  "fused attention, no mask",                     "batch", "sequence", "heads", "kv_heads", "head_dim") \
    X(HV_PROBE_STREAM,     "stream",     "kernel that only moves memory",               "rows", "width", NULL, NULL, NULL) \
    X(HV_PROBE_COPY,       "copy",       "copy",                                        "bytes", NULL, NULL, NULL, NULL)   \
    X(HV_PROBE_LAUNCH,     "launch",     "kernel that does nothing",                    NULL, NULL, NULL, NULL, NULL)      \
    X(HV_PROBE_COLLECTIVE, "collective", "collective",                                  "bytes", "ranks", NULL, NULL, NULL)

/** Variants: constant, sort it belongs to, name in files. The order within a sort is that of files. */
#define HV_PROBE_VARIANT_MAP(X)                                     \
    X(HV_FORWARD,          HV_PROBE_GEMM,       "forward")          \
    X(HV_INPUT_GRAD,       HV_PROBE_GEMM,       "input_grad")       \
    X(HV_WEIGHT_GRAD,      HV_PROBE_GEMM,       "weight_grad")      \
    X(HV_GROUPED_FORWARD,  HV_PROBE_GROUPED,    "forward")          \
    X(HV_CORE_FORWARD,     HV_PROBE_ATTENTION,  "forward")          \
    X(HV_CORE_BACKWARD,    HV_PROBE_ATTENTION,  "backward")         \
    X(HV_STREAM_ADD,       HV_PROBE_STREAM,     "add")              \
    X(HV_STREAM_ACTIVATION,HV_PROBE_STREAM,     "activation")       \
    X(HV_STREAM_NORM,      HV_PROBE_STREAM,     "norm")             \
    X(HV_STREAM_ROPE,      HV_PROBE_STREAM,     "rope")             \
    X(HV_STREAM_EMBEDDING, HV_PROBE_STREAM,     "embedding")        \
    X(HV_STREAM_LOSS,      HV_PROBE_STREAM,     "loss")             \
    X(HV_STREAM_OPTIMIZER, HV_PROBE_STREAM,     "optimizer")        \
    X(HV_COPY_DEVICE,      HV_PROBE_COPY,       "device")           \
    X(HV_COPY_TO_DEVICE,   HV_PROBE_COPY,       "host_to_device")   \
    X(HV_COPY_TO_HOST,     HV_PROBE_COPY,       "device_to_host")   \
    X(HV_COPY_PEER,        HV_PROBE_COPY,       "peer")             \
    X(HV_LAUNCH_EMPTY,     HV_PROBE_LAUNCH,     "empty")            \
    X(HV_TIME_ALL_REDUCE,       HV_PROBE_COLLECTIVE, "all_reduce")       \
    X(HV_TIME_ALL_GATHER,       HV_PROBE_COLLECTIVE, "all_gather")       \
    X(HV_TIME_REDUCE_SCATTER,   HV_PROBE_COLLECTIVE, "reduce_scatter")   \
    X(HV_TIME_ALL_TO_ALL,       HV_PROBE_COLLECTIVE, "all_to_all")
/* clang-format on */

/** Sort of a probe. */
enum hv_probe_kind {
#define X(c, ...) c,
    HV_PROBE_KIND_MAP(X)
#undef X
        HV_PROBE_KIND_N
};

/** What a probe times: a direction, a kernel, a way of copying or a collective. */
enum hv_probe_variant {
#define X(c, kind, name) c,
    HV_PROBE_VARIANT_MAP(X)
#undef X
        HV_PROBE_VARIANT_N
};

/** One probe. Sizes are whole numbers, in the order of the kind's row. */
struct hv_probe {
    enum hv_probe_variant variant;
    enum hv_precision precision; /**< of products, attention and streams; else HV_BF16 */
    double size[HV_PROBE_SIZES]; /**< unused ones are 0 */
};

/** A probe with its measurement. */
struct hv_probe_sample {
    struct hv_probe probe;
    double median_s;    /**< of one run */
    double spread_frac; /**< median absolute deviation over the median */
    int n;              /**< timings of which the median was taken */
    double clock_hz;    /**< of the processor while it ran, or HV_UNKNOWN */
};

/** One transformer layer, measured to compare it with the prediction of the tables. */
struct hv_layer_shape {
    double hidden, ffn, heads, kv_heads, head_dim, sequence, batch;
};

/** A layer that was timed as a whole. */
struct hv_layer_check {
    struct hv_layer_shape shape;
    bool backward;
    enum hv_precision precision;
    double measured_s, predicted_s; /**< predicted from the tables; HV_UNKNOWN where one lacks */
};

/** The machine of a profile, by its own names; "" where unknown. */
struct hv_probe_machine {
    const char *card, *driver, *runtime, *blas, *dnn, *collectives;
};

/** Contents of a profile file besides its tables. Memory: the reader's arena. */
struct hv_probe_report {
    struct hv_probe_machine machine;
    struct hv_probe_sample *samples;
    size_t n_samples;
    struct hv_layer_check *layers;
    size_t n_layers;
    bool complete; /**< false: the run ended early, by its budget or by the user */
};

/** Sort of a variant. */
enum hv_probe_kind hv_probe_kind_of(enum hv_probe_variant v);
/** Name of a sort in files. */
const char *hv_probe_kind_name(enum hv_probe_kind k);
/** Name of a variant in files; only unique within its sort. */
const char *hv_probe_variant_name(enum hv_probe_variant v);
/** Name of size i of a sort, or NULL when it has fewer. */
const char *hv_probe_size_name(enum hv_probe_kind k, size_t i);
/** True where variant, precision and sizes are equal. */
bool hv_probe_equal(const struct hv_probe *a, const struct hv_probe *b);
/** FLOPs of one run: 2mnk of products; 4·b·s²·heads·dim of attention, two and a half times that
 * backward (Dao 2023, section 3.3); else 0. */
double hv_probe_flops(const struct hv_probe *p);
/** Least number of bytes that one run reads and writes. Collectives and copies: the bytes of the
 * message (a copy inside the device moves them twice). */
double hv_probe_bytes(const struct hv_probe *p);
/** Appends "gemm forward bf16 m 4096 n 4096 k 4096". */
void hv_probe_text(const struct hv_probe *p, struct hv_str *out);

#endif
