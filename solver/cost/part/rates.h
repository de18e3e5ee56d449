/**
 * Inside cost: how fast the kernels of a part run. The same formulas give a real price and its
 * floor: *real* rates are those that this shape reaches with its starts and exchanges, *best* rates
 * are those that no plan exceeds in a pass of the sizes given, without the costs of a pass that do
 * not depend on its size. A price is computed under one of the two.
 */
#ifndef HV_SOLVER_COST_PART_RATES_H
#define HV_SOLVER_COST_PART_RATES_H

#include "solver/cost/device/gemm.h"
#include "solver/cost/part/part.h"
#include "solver/workload/model.h"
#include <stdbool.h>

struct hv__ask;
struct hv__exchange;
struct hv__product;
struct hv__sum;

/** The passes that a price is of. */
struct hv__passes {
    double more;      /**< largest pass, in rows of the query; HUGE_VAL: no limit */
    double least;     /**< smallest */
    bool exact;       /**< the query has the very degree: widths are rounded up over its ranks */
    double sums_frac; /**< share of the query's weights that a rank may hold at the least */
};
extern const struct hv__passes hv__one_pass; /**< the query's own, of a real price */
extern const struct hv__passes hv__any_pass; /**< of any size, however its widths are cut */

/** Costs that a price under best rates leaves out: those that do not depend on the pass's size. */
struct hv__left_out {
    double forward_start_s, back_start_s, weight_start_s; /**< starts and sums of gradients: of F, B
                                                             and the weight gradient */
    double tp_bytes, tp_forward, tp_backward; /**< bytes of an all-reduce between tensor-parallel
                                                 ranks, and how many of them either way */
};

/** Every query-key pair of an unfused attention core: work and traffic of one on this rank. */
struct hv__pairs {
    double flops, bytes; /**< per pair, all heads of the rank */
    double flops_per_s;  /**< of large products */
    double depth;        /**< values per head and query */
};

/** A policy of rates. */
struct hv__rates {
    /** Share of starts, sums of gradients and host work that is inside the seconds: 1, or 0 where
     * they are left out (hv__left_out). */
    double starts;
    /** True where ranks of a ring wait for the one that computes most in a step; else every rank
     * computes the mean. */
    bool waits;
    /** True where experts move no more around their products than under the kernel that moves
     * least, whichever the plan has. */
    bool least_moved;
    /** Shares of the best rate that a product and its two gradients reach. */
    struct hv_gemm_shares (*product)(const struct hv__sum *s, const struct hv__product *p);
    /** Share of the rate of long streams that one of `bytes` reaches. */
    double (*stream)(const struct hv__sum *s, double bytes);
    /** Seconds of a fused attention core that computes for compute_s and moves `bytes`. */
    double (*fused_core)(const struct hv__sum *s, double compute_s, double bytes);
    /** Seconds of an unfused attention core. */
    double (*unfused_core)(const struct hv__sum *s, const struct hv__pairs *p);
    /** Seconds of a measured layer from its grid of degrees and micro-batches, of which
     * `parallel_frac` is divided among ranks. HV_UNKNOWN: none was measured. */
    double (*measured)(const struct hv_model *m, const double *grid, const struct hv_part_query *q,
                       double parallel_frac);
    /** Adds the exposed seconds of exchanges between ranks to a price. */
    void (*exchange)(const struct hv__ask *a, const struct hv__exchange *x,
                     struct hv_part_cost *out);
};
extern const struct hv__rates hv__real_rates, hv__best_rates;

#endif
