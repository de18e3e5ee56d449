/**
 * Floors: the least cost of a part under this cost model, for any plan. Lower bounds of a plan's
 * time (solver/bound) rest on them. The calls that need a pricing context are in cost/cost.h.
 */
#ifndef HV_SOLVER_COST_FLOOR_FLOOR_H
#define HV_SOLVER_COST_FLOOR_FLOOR_H

#include "solver/base/arena.h"
#include "solver/inventory/houses.h"
#include <stdbool.h>
#include <stddef.h>

/** Number of distinct ranges of sizes of passes, degrees of tensor parallelism, most cells of a
 * part on a device (experts are cut or whole), places of its curve. */
#define HV_COST_SIZES   33
#define HV_COST_DEGREES 12
#define HV_COST_CELLS   (HV_COST_SIZES * 2 * HV_COST_DEGREES)
#define HV_COST_WEIGHTS 80
/** Number of mixes: shares θ of the whole work, the rest being the chain of a sequence
 * (bound/chain.c) or the work after the first forward pass (bound/even.c). */
#define HV_COST_MIXES 20

/** Part of a pass that a floor covers: all of it; F and B without the weight gradient; F; and B and
 * the weight gradient, which can only follow F. */
enum hv_cost_of { HV_COST_ALL, HV_COST_CHAIN, HV_COST_FORWARD, HV_COST_LATER, HV_COST_OF_N };
/** A pass of size x takes start_s + x each_s. */
struct hv_cost_line {
    double each_s; /**< also the device-seconds of one sequence, all ranks together */
    double start_s;
};
/**
 * Floor of passes with one range of sizes. The size x of a pass is its sequences (on one rank,
 * slices and context-parallel shards as fractions) over its tensor-parallel ranks; a pass with
 * least < x ≤ most takes every rank at least of[…].start_s + x of[…].each_s.
 */
struct hv_cost_cell {
    double least, most;
    struct hv_cost_line of[HV_COST_OF_N];
};
/** Floors of a part on a kind of device, by the size of its passes. */
struct hv_cost_by_size {
    /** Every pass of a plan with 1d tensor parallelism lies above at least one of those with its
     * size; several have the same limits (they stand for different numbers of ranks). */
    const struct hv_cost_cell *cells;
    size_t n_cells;
    double weighted_s[HV_COST_WEIGHTS]; /**< read by hv_cost_weighted_s */
    double *even_s; /**< [HV_COST_MIXES × HV_COST_WEIGHTS] read and filled by hv_cost_even_s */
};
/** Least of the device-seconds of a sequence plus `weight` times the seconds of F and B of a pass,
 * over all sizes: a little too low between places of the curve, never too high. O(1). */
double hv_cost_weighted_s(const struct hv_cost_by_size *c, double weight);
/** Share number i < HV_COST_MIXES: 1 first, falling. */
double hv_cost_mix(size_t i);
/** The same where all passes have one size: least of a share of the device-seconds of a sequence,
 * the rest of those after its F, and `weight` times the seconds of F of a pass. O(1), the first
 * time at a place O(cells). */
double hv_cost_even_s(const struct hv_cost_by_size *c, size_t mix, double weight);

/** Two sides of a cluster, with the least times of transfers between them. They hold whichever
 * houses of a class are on either side. */
struct hv_cost_cut {
    const uint32_t *beyond; /**< [classes] houses of each on the second side */
    double hop_s;           /**< activations of all sequences of the batch, once in one direction */
    double latency_s;       /**< of one message */
    double byte_s;          /**< a byte of gradients that devices on both sides sum */
    const char *words;      /**< "the link between east and west (1.25 GB/s)" */
};
/** Cuts of a cluster, and the classes of houses that they are made of. */
struct hv_cost_cuts {
    struct hv_houses houses;
    struct hv_cost_cut *items;
    size_t n;
};
#endif
