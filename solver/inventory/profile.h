/**
 * Measured operator tables of a device: measured rates of products by shape and of streams by size,
 * from share/profiles or from a profile the user measured (`hetviz.profile/1`).
 *
 * A table is a regular grid in log2 of its arguments; between grid points log2 of the rate is
 * interpolated (tri-)linearly. Readers guarantee that along every axis a rate grows at most as fast
 * as the argument, so no measured time falls when a product or a stream grows. Immutable once
 * built; all memory is the owner's arena.
 */
#ifndef HV_SOLVER_INVENTORY_PROFILE_H
#define HV_SOLVER_INVENTORY_PROFILE_H

#include "solver/inventory/device.h"

/** Grid points at log2(x) = from, from + step, …; at least two of them, step > 0. */
struct hv_log_axis {
    double from, step;
    size_t count;
};

/** Achieved rates of matrix products: m × k times k × n, one weight matrix. */
struct hv_gemm_table {
    enum hv_precision precision;
    double peak_flops_per_s; /**< vendor peak of the measured device in that precision */
    double best_flops_per_s; /**< greatest rate of the table: its asymptote */
    double error_frac; /**< mean absolute error on shapes that were not fitted; or HV_UNKNOWN */
    struct hv_log_axis m, n, k;
    const double *log2_flops_per_s; /**< m.count × n.count × k.count, k fastest */
};

/** Achieved rates of a kernel that only reads and writes memory, by bytes moved. */
struct hv_stream_table {
    const char *kernel;      /**< name of the measured kernel, e.g. "add" */
    double error_frac;       /**< as above */
    double long_bytes_per_s; /**< of the longest stream of the table */
    double full_bytes; /**< streams of at least this many bytes are no slower than the longest */
    struct hv_log_axis bytes;       /**< moved in all */
    const double *log2_bytes_per_s; /**< bytes.count */
};

/** Achieved rates of fused attention by the length of the sequences: FLOPs of the pairs that are
 * computed. Measured without a mask; a causal kernel is assumed to compute its half of the pairs at
 * that rate. */
struct hv_core_table {
    enum hv_precision precision;
    bool backward;
    double error_frac;              /**< as above */
    struct hv_log_axis sequence;    /**< tokens */
    const double *log2_flops_per_s; /**< sequence.count */
};

/** Measured tables of one kind of device. */
struct hv_profile {
    const char *device;           /**< name of the kind that was measured */
    const char *const *same_chip; /**< further kinds that use the tables, scaled */
    size_t n_same_chip;
    const char *source, *licence, *date, *note; /**< licence, date and note may be NULL */
    double memory_bytes_per_s;                  /**< vendor bandwidth of the measured device */
    double kernel_start_s;                      /**< shortest kernel; no operator is faster */
    const struct hv_gemm_table *gemm;           /**< one per measured precision */
    size_t n_gemm;
    const struct hv_stream_table *stream; /**< NULL: not measured */
    const struct hv_core_table *core;     /**< one per measured precision and pass */
    size_t n_core;
};

/**
 * The table of that precision. fp16 and bf16 stand for each other (same engines, same peaks); any
 * other precision needs a table of its own, else NULL. O(tables); p may be NULL.
 */
const struct hv_gemm_table *hv_profile_gemm(const struct hv_profile *p,
                                            enum hv_precision precision);
/** log2 of the rate of a product by log2 of its shape; outside the grid that of the nearest place
 * in it. O(1). */
double hv_gemm_table_log2_flops_per_s(const struct hv_gemm_table *t, double log2_m, double log2_n,
                                      double log2_k);
/** Rate of a stream; outside the grid that of its nearest end. bytes > 0. O(1). */
double hv_stream_table_bytes_per_s(const struct hv_stream_table *t, double bytes);
/** Rate of fused 16-bit attention over sequences of that length; HV_UNKNOWN without a table of the
 * pass. Outside the grid that of its nearest end. O(tables); p may be NULL. */
double hv_profile_core_flops_per_s(const struct hv_profile *p, bool backward, double sequence);
/** Number of values of a table. */
size_t hv_gemm_table_size(const struct hv_gemm_table *t);
/** Deep copy into another arena; NULL stays NULL. */
const struct hv_profile *hv_profile_copy(struct hv_arena *a, const struct hv_profile *p);

#endif
