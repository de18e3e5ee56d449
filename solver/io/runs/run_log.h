/**
 * Iteration times and memory from the log of a training run.
 *
 * Figures are found by the words that stand before them (the table in run_log.c): Megatron-LM
 * (training_log: "elapsed time per iteration (ms):"), DeepSpeed (ThroughputTimer:
 * "CurrSamplesPerSec=", pipeline engine: "iter time (s):"), torchtitan (metrics: "tps:"), NeMo
 * ("train_step_timing in s"). A file without such lines is read as a Chrome trace, whose profiler
 * steps count. Escape sequences of colours and thousands separators are skipped.
 */
#ifndef HV_SOLVER_IO_RUNS_RUN_LOG_H
#define HV_SOLVER_IO_RUNS_RUN_LOG_H

#include "solver/base/status.h"
#include "solver/inventory/device.h"

/** What one log tells. Figures that it does not give are HV_UNKNOWN. */
struct hv_run_log {
    const char *trainer; /**< "Megatron-LM", …; static text */
    size_t n;            /**< reports that count; the first is left out where there are more than 2:
                              it holds compilation and first allocations */
    double iteration_s;  /**< median */
    double samples_per_s;                   /**< of the whole batch, median */
    double tokens_per_s;                    /**< of one device, median */
    double deviation_frac;                  /**< median deviation from the median, relative to it */
    double global_batch;                    /**< last one printed */
    double allocated_bytes, reserved_bytes; /**< largest peaks printed */
};

/**
 * Reads a log ("-": standard input, no traces). `devices` is used for traces only. Errors: HV_EIO;
 * HV_ELIMIT for text above HV_FILE_LIMIT; HV_EINPUT for a file without any time of an iteration,
 * saying what was expected (for measurements of links: that `hetviz import` takes them). O(bytes +
 * reports · log reports).
 */
enum hv_status hv_run_log_read(const char *path, const struct hv_device_catalogue *devices,
                               struct hv_run_log *out, struct hv_err *err) HV_NODISCARD;
/** The same for text in memory; `name` stands in errors. Traces are not read. */
enum hv_status hv_run_log_text(const char *name, const char *text, size_t n, struct hv_run_log *out,
                               struct hv_err *err) HV_NODISCARD;

/** Time of an iteration of `batch` sequences of `sequence` tokens on `devices` devices, from
 * whatever the log gives. */
double hv_run_log_iteration_s(const struct hv_run_log *log, double batch, double sequence,
                              double devices);

#endif
