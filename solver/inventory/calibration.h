/**
 * Calibration: the share of their peaks that kernels and links of a class of devices reach in
 * training: a few named numbers per class, fitted on published measurements (listed in
 * share/calibration).
 *
 * A data sheet gives the peak of a device; these numbers give the share of it that training
 * reaches. The table below is the only list of them: it feeds the reader, the schema's words, the
 * fit of `hetviz validate` and the help. `generic` holds for every device that no class names.
 * Immutable once built.
 */
#ifndef HV_SOLVER_INVENTORY_CALIBRATION_H
#define HV_SOLVER_INVENTORY_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/** Constant, name in files, value for devices without a class, typical value and its spread (of the
 * logarithm), least, most, meaning. Shares are of the vendor's figure. Typical values are estimates
 * from kernel timings and papers; the ridge term of a fit pulls towards them. */
#define HV_CALIBRATION_MAP(X)                                                                              \
    X(HV_CAL_GEMM_16,        "gemm_16bit",    0.6,  0.68,  0.15, 0.05, 0.95, "share of the 16-bit peak that large products sustain in training") \
    X(HV_CAL_GEMM_8,         "gemm_8bit",     0.53, 0.56,  0.18, 0.05, 0.95, "the same for 8-bit formats and their peak") \
    X(HV_CAL_GEMM_4,         "gemm_4bit",     0.4,  0.45,  0.25, 0.05, 0.95, "the same for 4-bit formats and their peak") \
    X(HV_CAL_STREAM,         "stream",        0.8,  0.83,  0.08, 0.20, 0.98, "share of the memory bandwidth that element-wise kernels reach") \
    X(HV_CAL_CORE_FORWARD,   "core_forward",  0.45, 0.52,  0.25, 0.03, 0.90, "share of the 16-bit peak of a fused attention core, forward") \
    X(HV_CAL_CORE_BACKWARD,  "core_backward", 0.36, 0.4,   0.25, 0.03, 0.90, "the same backward, counting its second score product") \
    X(HV_CAL_NODE_LINKS,     "node_links",    1,    1,     0.2,  0.20, 2.00, "measured rate of collectives inside a node, relative to the link curves") \
    X(HV_CAL_NETWORK,        "network",       1,    1,     0.2,  0.10, 2.00, "measured rate of transfers between nodes, relative to the link curves") \
    X(HV_CAL_TP_HIDDEN,      "tp_hidden",     0,    0.3,   0.7,  0.00, 0.90, "share of sequence-parallel exchange hidden behind products") \
    X(HV_CAL_EAGER,          "eager",         1,    2.2,   0.3,  1.00, 8.00, "element-wise memory traffic of unfused kernels, relative to fused ones") \
    X(HV_CAL_EAGER_CORE,     "eager_core",    1,    0.55,   0.4,  0.10, 1.00, "share of the fused attention core's rate that unfused stacks reach") \
    X(HV_CAL_ACCUMULATE,     "accumulate",    0,    0.4,   0.4,  0.00, 2.00, "exposed share of reading and writing gradient sums in a weight-gradient pass") \
    X(HV_CAL_CAST,           "cast",          0,    0.5,   0.5,  0.00, 4.00, "passes over the inputs of an 8- or 4-bit product to quantise them") \
    X(HV_CAL_KERNEL_US,      "kernel_us",     5,    5,     0.3,  0.50, 50.0, "microseconds between two kernels") \
    X(HV_CAL_PASS_US,        "pass_us",       0,    300,   0.8,  0.00, 5e4, "microseconds of host work per pass of a stage") \
    X(HV_CAL_EXPERT_US,      "expert_us",     0,    1200,  0.6,  0.00, 2e4, "microseconds of host work per layer of experts and pass") \
    X(HV_CAL_EXPERT_TRAFFIC, "expert_traffic", 1,   1.5,   0.1,  0.50, 8.00, "memory traffic of permuting tokens and of the activation of experts, relative to fused kernels") \
    X(HV_CAL_GROUPED_16,     "grouped_16bit", 1,    0.95,  0.09, 0.30, 1.00, "rate of the grouped 16-bit products of experts with many rows each, relative to single products of their size") \
    X(HV_CAL_GROUPED_8,      "grouped_8bit",  1,    0.95,  0.09, 0.30, 1.00, "the same for 8- and 4-bit formats") \
    X(HV_CAL_LAYER_US,       "layer_us",      0,    2500,  0.4,  0.00, 2e4, "microseconds of host work per layer and pass of DeepSpeed pipelines with checkpoints, before fused kernels") \
    X(HV_CAL_EXCHANGE_US,    "exchange_us",   0,    20,    1.0,  0.00, 5e3, "microseconds that tensor-parallel ranks wait for each other before an exchange") \
    X(HV_CAL_STEP_MS,        "step_ms",       0,    20,    0.6,  0.00, 500, "milliseconds per iteration outside of passes, reductions and optimizer") \
    X(HV_CAL_JITTER,         "jitter",        0,    0.003, 0.4,  0.00, 0.02, "share of the pipeline's time lost per doubling of the devices that wait for each other") \
    X(HV_CAL_OVERLAP,        "overlap",       0,    0.1,   0.5,  0.00, 1.00, "seconds of compute lost per second of overlapped communication")
/* clang-format on */

/* clang-format off */
/** Constant, name in files, value for devices without a class, what it is about: half the 80 % band of an
 * iteration time, as a logarithm, without the part that exposed exchange adds (eval/verdict/band.h). `hetviz
 * validate --fit` takes them from predictions without the source of the row; those of devices without a class are of
 * rows that the fit of a similar class, or of all others, predicts. */
#define HV_ERROR_MAP(X)                                                                                  \
    X(HV_ERROR_DENSE_16,   "dense_16bit",   0.28, "dense models in 16 bits and more")                    \
    X(HV_ERROR_DENSE_8,    "dense_8bit",    0.30, "dense models in 8 and 4 bits")                        \
    X(HV_ERROR_EXPERTS_16, "experts_16bit", 0.28, "mixtures of experts in 16 bits and more")             \
    X(HV_ERROR_EXPERTS_8,  "experts_8bit",  0.33, "mixtures of experts in 8 and 4 bits")                 \
    X(HV_ERROR_LAYERS,     "measured",      0.14, "models whose layers were measured on these devices")
/* clang-format on */

/** Most of it: a band from a fifth to five times the prediction says nothing any more. */
#define HV_ERROR_MOST 1.6

/** What a band is about. */
enum hv_error_of {
#define X(c, name, plain, doc) c,
    HV_ERROR_MAP(X)
#undef X
        HV_ERROR_N
};
/** Name in files. */
const char *hv_error_name(enum hv_error_of e);
/** What it is about, in words. */
const char *hv_error_doc(enum hv_error_of e);

/** Index of a parameter. */
enum hv_calibrated {
#define X(c, name, plain, typical, spread, least, most, doc) c,
    HV_CALIBRATION_MAP(X)
#undef X
        HV_CALIBRATED_N
};

/** One row of the table above. */
struct hv_calibrated_row {
    const char *name, *doc;
    double plain;           /**< value for devices without a class: no unmeasured cost is added */
    double typical, spread; /**< prior of a fit: exp(spread) is one standard deviation */
    double least, most;
};
/** The table, indexed by enum hv_calibrated. */
extern const struct hv_calibrated_row hv_calibrated_rows[HV_CALIBRATED_N];

/** True for a parameter that only mixtures of experts depend on. */
bool hv_calibrated_by_experts(enum hv_calibrated k);

/** The numbers of one class of devices. Strings belong to the builder of the class. */
struct hv_calibration {
    const char *name;    /**< of the class, e.g. "A100"; "generic" */
    const char *devices; /**< prefixes of device names, joined by commas; "" for generic */
    const char *source;  /**< data of the fit, for explanations */
    const char *like; /**< similar class, made in the same process, to use where this class was not
                         measured; NULL: none */
    double v[HV_CALIBRATED_N];
    double error[HV_ERROR_N]; /**< see HV_ERROR_MAP; 0: not known */
};

/** No class at all: every parameter at its plain value. Static. */
const struct hv_calibration *hv_calibration_generic(void);
/** Devices of `"rates": "plain"`: whole peaks, and no time of hosts, kernels or waits. Static. */
const struct hv_calibration *hv_calibration_plain(void);
/** An unmeasured class: every parameter at its typical value. Static. */
const struct hv_calibration *hv_calibration_typical(void);

/**
 * True where a class applies to the device of that name. A prefix matches up to the end of the name
 * or a dash: "A100" holds for "A100-SXM-80GB", not for "A1000". O(prefixes).
 */
bool hv_calibration_matches(const struct hv_calibration *c, const char *device);

#endif
