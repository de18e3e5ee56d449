/**
 * A regular grid in log2 of sizes that is measured from coarse to fine: the next place, the rate
 * between places, and the error with which the coarser grid predicts the finer one.
 *
 * Level 0 holds every fourth place along each axis (and the last), level 1 every second, level 2
 * all. Levels 0 and 1 are measured whole; of level 2 only the places near which level 1 was not
 * predicted well enough. The rest is interpolated as hv_gemm_table does. Pure: no device, no clock.
 */
#ifndef HV_SOLVER_PROFILER_LATTICE_H
#define HV_SOLVER_PROFILER_LATTICE_H

#include "solver/inventory/profile.h"

/** Levels of a lattice. */
#define HV_LATTICE_LEVELS 3

/** A lattice. Owner: hv_lattice_free. */
struct hv_lattice {
    struct hv_log_axis axis[3]; /**< unused axes have count 1 */
    size_t n;                   /**< places; the last axis runs fastest */
    double *log2_rate;          /**< per place; HV_UNKNOWN: not measured */
    bool *tried;                /**< measured, or found impossible */
    double band_frac;           /**< level 2 is measured where level 1 was off by more */
};

/** An empty lattice over `n_axes` (1 to 3) axes. */
void hv_lattice_init(struct hv_lattice *l, const struct hv_log_axis *axes, size_t n_axes,
                     double band_frac);
/** Frees it. */
void hv_lattice_free(struct hv_lattice *l);
/** Sizes at a place: 2 to the grid's log2, rounded to whole numbers. */
void hv_lattice_sizes(const struct hv_lattice *l, size_t place, double size[3]);
/** Place of these sizes, or n when they are on no place. O(1). */
size_t hv_lattice_find(const struct hv_lattice *l, const double size[3]);
/** Level of a place: 0 to 2. */
int hv_lattice_level(const struct hv_lattice *l, size_t place);
/**
 * The next place of this level to be measured; false when there is none left. O(places).
 */
bool hv_lattice_next(const struct hv_lattice *l, int level, size_t *place);
/** Records a rate (per second; HV_UNKNOWN: the device cannot). */
void hv_lattice_set(struct hv_lattice *l, size_t place, double rate);
/**
 * log2 of the rate at log2 sizes from the places of levels up to `level`; outside the grid that of
 * its edge; HV_UNKNOWN when a corner of the cell is not known.
 */
double hv_lattice_at(const struct hv_lattice *l, int level, const double log2_size[3]);
/** Mean |predicted/measured − 1| of times over the places of level 1 and 2 that were predicted from
 * the level before; HV_UNKNOWN when there are none. */
double hv_lattice_error_frac(const struct hv_lattice *l);
/**
 * The whole grid: measured places, the others interpolated from the finest level that is whole
 * around them (else the nearest known rate along the last axes), then times made never to fall
 * along any axis (the mean of the running maximum and minimum). `log2_work` gives log2 of the work
 * at a place, in the unit of the rates. Writes n values; false when nothing is known.
 * O(places × axes).
 */
bool hv_lattice_fill(const struct hv_lattice *l, double (*log2_work)(void *ctx, size_t place),
                     void *ctx, double *out);

#endif
