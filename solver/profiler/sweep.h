/**
 * Measurements of the profiler: one table of sweeps (a kernel over a grid of sizes), single shapes,
 * and layers that check the tables. Every kernel of transformer training on one device is a row
 * here; the bench times the rows.
 */
#ifndef HV_SOLVER_PROFILER_SWEEP_H
#define HV_SOLVER_PROFILER_SWEEP_H

#include "solver/inventory/probe.h"
#include "solver/profiler/lattice.h"

/** Meaning of the axes of a sweep. */
enum hv_sweep_axes {
    HV_SWEEP_PRODUCT,  /**< m, n, k */
    HV_SWEEP_SEQUENCE, /**< length of the sequences, whose number keeps the tokens constant */
    HV_SWEEP_ROWS,     /**< rows of HV_SWEEP_WIDTH numbers */
    HV_SWEEP_BYTES     /**< size of a message */
};

#define HV_SWEEP_TOKENS 32768.0 /**< of attention sweeps, at least one sequence */
#define HV_SWEEP_WIDTH  4096.0  /**< numbers in a row of a stream */

/** One sweep. */
struct hv_sweep {
    enum hv_probe_variant variant;
    enum hv_precision precision;
    enum hv_sweep_axes axes;
    struct hv_log_axis axis[3];
    bool instead;     /**< only where the row before it could not be measured */
    bool needs_peers; /**< only with more than one card */
    bool only_full;   /**< left out of quick profiles */
};

/** The table of sweeps, in the order in which they are measured. */
const struct hv_sweep *hv_sweeps(size_t *n);
/** Number of axes: 3 for products, else 1. */
size_t hv_sweep_axis_count(const struct hv_sweep *s);
/** The probe at sizes of the sweep's lattice. `ranks`: cards of a collective. */
struct hv_probe hv_sweep_probe(const struct hv_sweep *s, const double size[3], double ranks);
/** Sizes of the sweep's i-th check, on no place of its grid: used to compute the error of its
 * table. False when there are no more. */
bool hv_sweep_check(const struct hv_sweep *s, size_t i, double size[3]);
/** Work of a probe in the unit of the sweep's rates: FLOPs, else bytes. */
double hv_sweep_work(const struct hv_probe *p);
/** log2 of the lattice's sizes for a probe of the sweep's variant: the arguments of hv_lattice_at.
 * A gradient is looked up as the equivalent plain product. False when the sweep does not cover the
 * probe. */
bool hv_sweep_place(const struct hv_sweep *s, const struct hv_probe *p, double log2_size[3]);

/** Shapes measured one by one, beside the tables: gradients, products of experts, other heads. */
const struct hv_probe *hv_singles(size_t *n);

/** Layers whose sizes lie on no grid place. */
const struct hv_layer_shape *hv_layer_shapes(size_t *n);
/** Largest number of probes of a layer per direction. */
#define HV_LAYER_PROBES 24
/**
 * The kernels of a gated layer (norm, query/key/value, rope, attention, output, sum, norm, gate and
 * up, activation, down, sum) in their order, or those of its backward pass (two products for each).
 * Returns their number.
 */
size_t hv_layer_probes(const struct hv_layer_shape *l, enum hv_precision precision, bool backward,
                       struct hv_probe out[HV_LAYER_PROBES]);

#endif
