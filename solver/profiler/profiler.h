/** One run of the profiler on a bench: journal, measuring, progress, file. */
#ifndef HV_SOLVER_PROFILER_PROFILER_H
#define HV_SOLVER_PROFILER_PROFILER_H

#include "solver/profiler/bench.h"
#include <signal.h>
#include <stdio.h>

/** Request of a run. */
struct hv_profiler_options {
    const char *out;  /**< profile file to be written */
    const char *as;   /**< kind of the catalogue that the card counts as; NULL: by its name */
    const char *date; /**< written into the file */
    bool quick;       /**< at most HV_QUICK_S instead of HV_FULL_S */
    bool fresh;       /**< discard the samples of an unfinished run */
    FILE *progress;   /**< stream for progress; NULL: none */
    bool terminal;    /**< redraw progress in place (a terminal) */
    const volatile sig_atomic_t *stop; /**< set to a value other than 0 to stop the run; or NULL */
};

/**
 * Measures the card and writes its profile; the journal `<out>.part` keeps the samples until the
 * run is complete. A stopped run writes its samples and returns HV_ESTOPPED; a run at the end of
 * its budget is complete enough and returns HV_OK. Errors: HV_EINPUT when the catalogue has no such
 * card or the journal is another's; HV_EIO; HV_ENO when nothing could be measured.
 */
enum hv_status hv_profiler_run(const struct hv_bench *b, const struct hv_device_catalogue *devices,
                               const struct hv_profiler_options *o,
                               struct hv_err *err) HV_NODISCARD;

#endif
