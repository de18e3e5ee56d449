/**
 * Device kinds: the properties of one accelerator (or CPU), from the catalogue in share/devices or
 * from a cluster file.
 *
 * Immutable once built; strings and arrays live in the catalogue's or cluster's arena.
 */
#ifndef HV_SOLVER_INVENTORY_DEVICE_H
#define HV_SOLVER_INVENTORY_DEVICE_H

#include "solver/base/arena.h"
#include "solver/inventory/calibration.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/** Number formats: constant, name in files, bytes per element. */
#define HV_PRECISION_MAP(X)      \
    X(HV_FP32, "fp32", 4)        \
    X(HV_TF32, "tf32", 4)        \
    X(HV_FP16, "fp16", 2)        \
    X(HV_BF16, "bf16", 2)        \
    X(HV_FP8,  "fp8",  1)        \
    X(HV_INT8, "int8", 1)        \
    X(HV_FP4,  "fp4",  0.5)
/* clang-format on */

/** Number format of weights, activations or gradients. */
enum hv_precision {
#define X(c, name, bytes) c,
    HV_PRECISION_MAP(X)
#undef X
        HV_PRECISION_N
};

/** Name in files, e.g. "bf16". */
const char *hv_precision_name(enum hv_precision p);
/** Storage bytes of one element of a weight or activation in this precision (tf32 is stored as 4).
 */
double hv_precision_bytes(enum hv_precision p);

/** Sort of a device. CPUs reach each other through host memory; all other sorts are treated
 * equally. */
enum hv_device_class { HV_CLASS_GPU, HV_CLASS_TPU, HV_CLASS_NPU, HV_CLASS_CPU, HV_CLASS_N };
/** "gpu", "tpu", "npu", "cpu". */
const char *hv_device_class_name(enum hv_device_class c);

/** An offered price of one device, per hour. */
struct hv_price {
    const char *provider, *instance, *date, *source;
    double usd_per_h, spot_usd_per_h;
    bool verified;
};

/** One kind of device. Unknown figures are HV_UNKNOWN. */
struct hv_device_kind {
    const char *name, *vendor, *arch, *memory_type;
    const char *fabric; /**< collectives run only among devices of one fabric, e.g. "nvidia" */
    enum hv_device_class cls;
    int year;
    double memory_bytes, memory_bytes_per_s;
    double flops_per_s[HV_PRECISION_N]; /**< dense vendor peak */
    double matmul_flops_per_s;          /**< best measured dense matmul in the 16-bit format */
    const char *link_kind;              /**< "NVLink3", "PCIe", …; NULL unknown */
    double link_bytes_per_s;            /**< one direction, per device, all peers together */
    int link_domain;                    /**< devices joined by that link; 0 unknown */
    double pcie_bytes_per_s;            /**< one direction, host link */
    double tdp_w;
    const struct hv_price *prices;
    size_t n_prices;
    const char *spec_source;
    bool plain_rates;   /**< `"rates": "plain"`: FLOPs / peak and bytes / bandwidth, whatever the
                           size;   `calibration` and `profile` do not count */
    bool spec_verified; /**< true: figures were read at their source; false: they were recalled */
    const char *note;
    const struct hv_calibration *calibration; /**< of its class; NULL counts as generic */
    const struct hv_profile *profile; /**< operator tables measured on this chip; NULL: none */
};

/** The shipped catalogue. Owner: hv_device_catalogue_free (io builds it). */
struct hv_device_catalogue {
    struct hv_arena arena;
    struct hv_device_kind *kinds;
    size_t n_kinds;
    struct hv_calibration *classes; /**< calibrated classes of devices; the first match holds */
    size_t n_classes;
};

/** The calibration of a kind: its own, else the generic one; with plain rates the plain one. */
const struct hv_calibration *hv_device_calibration(const struct hv_device_kind *k);
/** The operator tables of a kind; NULL where it has none, and with plain rates. */
const struct hv_profile *hv_device_profile(const struct hv_device_kind *k);

/** The kind of that name, or NULL. O(n). */
const struct hv_device_kind *hv_device_find(const struct hv_device_catalogue *c, const char *name);
/**
 * The catalogue's kind for a driver's name of a card ("NVIDIA A100-SXM4-80GB"), by chip, form and
 * memory; NULL when the name contains no chip of the catalogue. `memory_bytes` may be HV_UNKNOWN.
 * O(kinds · name).
 */
const struct hv_device_kind *hv_device_match(const struct hv_device_catalogue *c, const char *card,
                                             double memory_bytes);
/** What a source says about a card beside a name that people wrote. */
struct hv_device_hints {
    double memory_bytes;        /**< of one card; HV_UNKNOWN: not given */
    double host_bytes_per_card; /**< memory of the node by its number of cards; HV_UNKNOWN */
    const char *features;       /**< words with commas between ("ib,a100_80gb,sxm"), or NULL */
};
/** Characters that end a word of `features`: commas, and the operators of a scheduler's request. */
#define HV_DEVICE_FEATURE_ENDS ",;&|[]()* "
/** Most kinds that hv_device_candidates gives. */
#define HV_DEVICE_CANDIDATES 24
/**
 * The kinds that a name written by people ("a100", "rtx", "nvidia_v100") may mean: all variants of
 * the chip that neither the name (memory, form factor) nor the hints exclude. The first is the most
 * likely one: by the memory of the host where that is given, else as hv_device_match. Returns their
 * number, at most HV_DEVICE_CANDIDATES; 1: the name and the hints decide; 0: no such chip.
 * O(kinds · (name + features)).
 */
size_t hv_device_candidates(const struct hv_device_catalogue *c, const char *card,
                            const struct hv_device_hints *hints,
                            const struct hv_device_kind *out[HV_DEVICE_CANDIDATES]);
/** Dense vendor peak in this precision; HV_UNKNOWN where the device lacks it: no precision stands
 * in for another (fp16, tf32 and fp32 neither). */
double hv_device_peak_flops_per_s(const struct hv_device_kind *k, enum hv_precision p);
/** True where the device can compute in this precision. */
bool hv_device_has(const struct hv_device_kind *k, enum hv_precision p);
/** Lowest known price per device-hour of a provider in the catalogue, on demand or spot;
 * HV_UNKNOWN: it has none. */
double hv_device_price_of(const struct hv_device_kind *k, const char *provider, bool spot);
/** Frees the catalogue. */
void hv_device_catalogue_free(struct hv_device_catalogue *c);

#endif
