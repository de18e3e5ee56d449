/**
 * Seconds of one matrix product or one stream through memory: from the device's measured table
 * where it has one, else from a roofline.
 *
 * *Table*: log-space interpolation of hv_profile (inventory/profile.h). Below the grid's edge a
 * product loses speed as a thin one does (hv_efficiency_thin relative to the edge); above it the
 * edge's rate holds. Both keep time from falling when m, n or k grows.
 * *Scaled*: another device of the same chip, or a precision without a table of its own. With t the
 * table's time, R its best rate, R' the best rate here and b the ratio of times of moving the
 * operands, the part of t above 2mnk/R is scaled by b and the rest by R/R' when b ≤ R/R' (fp8 on
 * the same card, a card with faster memory); otherwise all of t is scaled by R/R' and the operands
 * must fit through this device's memory (a card with slower memory).
 * *Roofline*: the larger of thin products at the sustained rate and bytes at the streaming rate.
 *
 * A *share* is relative to the best rate of the device in that precision, is never above 1, and
 * holds no launch; part/sum.c multiplies it with the rate that training sustains.
 *
 * Grouped products (experts) have `groups` weight matrices of k × n and m rows in all; they are
 * priced as one product of m/groups rows and groups × n columns: same FLOPs, weights, outputs and
 * tiles.
 */
#ifndef HV_SOLVER_COST_DEVICE_GEMM_H
#define HV_SOLVER_COST_DEVICE_GEMM_H

#include "solver/inventory/profile.h"

/* clang-format off */
/** Best 8- and 4-bit rate against the best 16-bit rate, in shares of their peaks, where only 16 bit
 * was measured: (1403/1979) / (795/989), H100 best matmuls (ml-engineering). */
#define HV_GEMM_NARROW         0.88
/** Share of the nominal bandwidth at which products of few rows read their weights: 0.80 A100,
 * 0.84 A40, 0.92 H100 (vidur timings, M ≤ 8). */
#define HV_GEMM_READ           0.85
/** Rows that every group of a grouped product costs beyond its own: tiles of 128 or 256 rows that are
 * not full, and a start of its own. Fitted on 72 forward and input-gradient products of bf16 on B200
 * (MooreThreads/SimuMax@4dcaae5 configs/system, group_matmul; 128 to 9832 rows per group) relative to
 * single products of m/groups rows and groups × n columns: mean error 15 % (48 % without). */
#define HV_GEMM_GROUP_ROWS     150.0
/** Error of the roofline on the vidur timings where the asymptote is known: 12.3, 14.7, 12.1 %
 * (A100, H100, A40). */
#define HV_GEMM_ROOFLINE_ERROR 0.13
/* clang-format on */

/** Origin of a price. */
enum hv_gemm_basis { HV_GEMM_TABLE, HV_GEMM_SCALED, HV_GEMM_ROOFLINE };
/** "table", "scaled table", "roofline". */
const char *hv_gemm_basis_name(enum hv_gemm_basis b);

/** Prepared data for all products of a device in a precision: computed once, used many times. */
struct hv_gemm_pricer {
    enum hv_gemm_basis basis;
    const struct hv_gemm_table *table; /**< NULL: roofline */
    bool plain;                        /**< plain rates: thin products reach the best rate too */
    double best_flops_per_s;           /**< asymptote of the device in the precision */
    double compute_ratio, bytes_ratio; /**< scaled: times of FLOPs and of bytes against the table */
    double element_bytes, bytes_per_s, start_s;
    double error_frac;  /**< mean absolute error on unseen shapes; of the table if scaled */
    const char *device; /**< that was measured; NULL: none */
    const char *source; /**< of the data or of the sustained rate */
};

/** Prepares prices; the best rate is HV_UNKNOWN when the device lacks the precision. O(rows). */
struct hv_gemm_pricer hv_gemm_pricer_of(const struct hv_device_kind *d, enum hv_precision p);
/** Share (≤ 1) of the best rate that a product reaches. m, n, k > 0, groups ≥ 1. O(1). */
double hv_gemm_share(const struct hv_gemm_pricer *g, double m, double n, double k, double groups);

/** Share of that rate that a grouped product of so many rows per group reaches in training, where a
 * library starts a product per group. rows > 0. */
double hv_gemm_group_share(double rows);

/** Shares of a product and of the two that its gradients are. */
struct hv_gemm_shares {
    double forward;     /**< m × k times k × n */
    double input_grad;  /**< m × n times n × k */
    double weight_grad; /**< k × m/groups times m/groups × n, `groups` of them */
};
/** All three at once, cheaper than one by one. O(1). */
struct hv_gemm_shares hv_gemm_shares(const struct hv_gemm_pricer *g, double m, double n, double k,
                                     double groups);

/** Largest number of points of an axis in a box; on a longer axis the last covers the rest. */
#define HV_GEMM_POINTS 64

/** Best of a table at each point of one of its axes, or before it. */
struct hv_gemm_best {
    double log2_rate[HV_GEMM_POINTS];
    size_t n;
    double thin; /**< factor of the two other axes */
};

/** Best that products of at most some columns, depth and groups reach, by their number of rows. */
struct hv_gemm_box {
    double n, k, groups;
    struct hv_gemm_best forward, input_grad, weight_grad; /**< unused without a table */
};

/** Reads the table of the pricer, which must outlive the box. O(table). */
struct hv_gemm_box hv_gemm_box_of(const struct hv_gemm_pricer *g, double n, double k,
                                  double groups);
/**
 * Shares that no product with at most `rows` rows in all (HUGE_VAL: any number) and no cut of n, k
 * or groups over ranks can exceed. Between grid points log2 of the rate is linear in each
 * argument, so its maximum over a box lies at a grid point or on the box's edge; thin products and
 * operands through memory only lose. O(1).
 */
struct hv_gemm_shares hv_gemm_box_shares(const struct hv_gemm_pricer *g,
                                         const struct hv_gemm_box *x, double rows);

/** Numbers of rows of a product: no more than a range. */
struct hv_gemm_rows {
    double least, most;
};
/** Shares that no product of exactly that width and depth, in one group, with rows in that range
 * exceeds. O(grid points in the range). */
struct hv_gemm_shares hv_gemm_shares_between(const struct hv_gemm_pricer *g,
                                             const struct hv_gemm_rows *r, double n, double k);

/** Price of an isolated product. */
struct hv_gemm_price {
    double time_s;           /**< with the start of its kernel */
    double flops_per_s;      /**< achieved */
    double best_flops_per_s; /**< asymptote of the device in that precision */
    double shape_frac;       /**< share of it that the shape reaches, without the start */
    double error_frac;
    enum hv_gemm_basis basis;
    const char *device, *source; /**< measured device (or NULL) and origin of the data */
};

/** Prices m × k times k × n, `groups` weight matrices sharing the m rows. O(1). */
struct hv_gemm_price hv_gemm(const struct hv_device_kind *d, enum hv_precision p, double m,
                             double n, double k, double groups);

/** Seconds of an isolated kernel that reads and writes `bytes` in all (0 for none). O(1). */
double hv_stream_s(const struct hv_device_kind *d, double bytes);
/** Share (≤ 1) of the long stream's rate that a stream of `bytes` reaches; 1 without a table. What
 * the second-level cache adds to middling sizes is left out: training streams through it. O(1). */
double hv_stream_share(const struct hv_device_kind *d, double bytes);
/** Best share of any stream of at most `bytes`. O(points). */
double hv_stream_best_share(const struct hv_device_kind *d, double bytes);
/** Origin of the table, or "no table". */
const char *hv_stream_source(const struct hv_device_kind *d);

#endif
