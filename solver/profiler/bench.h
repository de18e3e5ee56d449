/**
 * Interface of the profiler to a device. The CUDA bench (cuda/) implements it for a real card;
 * tests implement it by a formula and a clock of their own.
 */
#ifndef HV_SOLVER_PROFILER_BENCH_H
#define HV_SOLVER_PROFILER_BENCH_H

#include "solver/base/status.h"
#include "solver/inventory/probe.h"

/** Description of a card. Unknown texts are "". */
struct hv_bench_card {
    char name[128]; /**< the driver's name of the card */
    char driver[32], runtime[32], blas[32], dnn[32], collectives[32];
    double memory_bytes;
    int compute_capability; /**< 10 · major + minor */
    int processors;         /**< multiprocessors */
    int peers;              /**< cards of this machine, itself included */
};

/** A device that can be timed. `self` is passed back to every call. */
struct hv_bench {
    void *self;
    /** Describes the card. */
    void (*card)(void *self, struct hv_bench_card *out);
    /**
     * Prepares these probes to run one after the other, each on its own memory. HV_ENO with the
     * reason when the card, its memory or its libraries do not support them; no memory is held
     * then.
     */
    enum hv_status (*prepare)(void *self, const struct hv_probe *probes, size_t n,
                              struct hv_err *err);
    /** Runs them all `repeats` times; *seconds of device time for all repeats. */
    enum hv_status (*run)(void *self, unsigned repeats, double *seconds, struct hv_err *err);
    /** Frees the memory that prepare took. */
    void (*release)(void *self);
    /** Clock of the processor now, or HV_UNKNOWN. */
    double (*clock_hz)(void *self);
    /** Seconds that have passed, from any start. */
    double (*now_s)(void *self);
};

#endif
