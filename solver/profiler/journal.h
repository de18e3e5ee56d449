/**
 * Samples of an unfinished profile, one JSON object a line, so that a stopped run continues where
 * it ended.
 */
#ifndef HV_SOLVER_PROFILER_JOURNAL_H
#define HV_SOLVER_PROFILER_JOURNAL_H

#include "solver/base/vec.h"
#include "solver/profiler/bench.h"
#include <stdio.h>

/** An open journal. Owner: hv_journal_close. */
struct hv_journal {
    FILE *f;
    HV_VEC(struct hv_probe_sample) before; /**< the samples it held when it was opened */
};

/**
 * Opens the journal of a profile, and reads the samples it holds; an incomplete last line is
 * dropped. `fresh`: earlier samples are dropped. Errors: HV_EIO; HV_EINPUT when it is of another
 * card or driver, or of a quick profile and this one is full (or the other way round).
 */
enum hv_status hv_journal_open(struct hv_journal *j, const char *path,
                               const struct hv_bench_card *card, bool quick, bool fresh,
                               struct hv_err *err) HV_NODISCARD;
/** Appends a sample and flushes it. Errors: HV_EIO. */
enum hv_status hv_journal_add(struct hv_journal *j, const struct hv_probe_sample *s,
                              struct hv_err *err) HV_NODISCARD;
/** Closes it; the file stays. */
void hv_journal_close(struct hv_journal *j);

#endif
