/**
 * The measurement: sweeps from coarse to fine, single shapes, layer checks; within a budget,
 * cancellable after every sample, and continued from earlier samples.
 */
#ifndef HV_SOLVER_PROFILER_MEASURE_H
#define HV_SOLVER_PROFILER_MEASURE_H

#include "solver/base/vec.h"
#include "solver/profiler/bench.h"
#include "solver/profiler/sampler.h"
#include "solver/profiler/sweep.h"

/** A sweep and its state. */
struct hv_sweep_state {
    const struct hv_sweep *sweep;
    struct hv_lattice lattice;
    double *
        log2_rate; /**< the filled grid, or NULL before hv_measured_fill or when nothing is known */
    double error_frac; /**< error of times predicted off the grid places; HV_UNKNOWN: none were
                          measured */
    bool dead;         /**< true: its first places could not be measured */
    char why[160];     /**< the reason */
};

/** All measurements. Owner: hv_measured_free. */
struct hv_measured {
    struct hv_sweep_state *sweeps;
    size_t n_sweeps;
    HV_VEC(struct hv_probe_sample) samples;
    HV_VEC(struct hv_layer_check) layers;
    double launch_s;  /**< of an empty kernel; HV_UNKNOWN */
    double elapsed_s; /**< of this run */
    bool complete;    /**< false: the budget ran out, or it was cancelled */
};

/** Settings of a run. */
struct hv_measuring {
    bool quick;
    double budget_s;
    const struct hv_probe_sample *before; /**< samples of an earlier run, used unchanged */
    size_t n_before;
    void *ctx;
    /** Called before every sample; true ends the run. NULL: never. */
    bool (*cancelled)(void *ctx);
    /** Receives every new sample, so that it can be stored. NULL: none. */
    enum hv_status (*keep)(void *ctx, const struct hv_probe_sample *s, struct hv_err *err);
    /** Receives the progress before every sample: samples done, estimated total. NULL: none. */
    void (*progress)(void *ctx, size_t done, size_t about, double elapsed_s,
                     const struct hv_probe *next);
};

/** Budget of a quick and of a full profile. */
#define HV_QUICK_S 60.0
#define HV_FULL_S  600.0

/**
 * Measures. HV_OK also when it ended early: see `complete`. Errors: what the bench's run or `keep`
 * returned, other than HV_ENO (that shape is left out).
 */
enum hv_status hv_measure(const struct hv_bench *b, const struct hv_measuring *how,
                          struct hv_measured *out, struct hv_err *err) HV_NODISCARD;
/** Fills the grids, works out their errors and predicts the layers. O(places). */
void hv_measured_fill(struct hv_measured *m);
/** Seconds of one probe by the filled tables; HV_UNKNOWN when no table covers it. */
double hv_measured_predict_s(const struct hv_measured *m, const struct hv_probe *p);
/** Frees it. */
void hv_measured_free(struct hv_measured *m);

#endif
