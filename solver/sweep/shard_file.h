/**
 * Result files of a sweep: one per shard, one line of JSON per cell.
 *
 * A line is written by one call and ends with its newline, so a result is whole or absent: what a
 * killed program left behind the last newline is cut off when the file is opened again. A lock
 * keeps two programs from writing one shard. A cell that was run again has several lines: one whose
 * state is not retried counts before others, then the last one.
 *
 * Line: {"id", "strategy", "axes": {name: label or number}, "state", "reason"?, "exact"?, "fits"?,
 *        "figures": {…}, "plan"?}
 */
#ifndef HV_SOLVER_SWEEP_SHARD_FILE_H
#define HV_SOLVER_SWEEP_SHARD_FILE_H

#include "solver/sweep/sweep.h"

/** How a cell ended: constant, word, whether `run --failed` tries it again. */
#define HV_SWEEP_STATE_MAP(X)                                                                      \
    X(HV_SWEEP_PLAN, "plan", false)                                                                \
    X(HV_SWEEP_NO_PLAN, "no-plan", false)                                                          \
    X(HV_SWEEP_NOT_FOR_IT, "does-not-apply", false)                                                \
    X(HV_SWEEP_STOPPED, "stopped", true)                                                           \
    X(HV_SWEEP_FAILED, "failed", true)
/** STOPPED: by the time limit of the cell, perhaps with a plan. FAILED: an error or a crash. */
enum hv_sweep_state {
#define X(c, word, again) c,
    HV_SWEEP_STATE_MAP(X)
#undef X
        HV_SWEEP_STATE_N
};
/** The state's word, and back (HV_SWEEP_STATE_N for none). */
const char *hv_sweep_state_word(enum hv_sweep_state s);
enum hv_sweep_state hv_sweep_state_of(const char *word);
/** True where `run --failed` runs such a cell again. */
bool hv_sweep_state_is_retried(enum hv_sweep_state s);

/** Result of a cell. `plan` has `simulated`; borrowed. */
struct hv_sweep_result {
    enum hv_sweep_state state;
    const char *reason; /**< NULL: none */
    const json_t *plan; /**< or NULL */
};
/** The line of a result, with its newline. */
void hv_sweep_line(const struct hv_sweep *s, const struct hv_sweep_cell *cell,
                   const struct hv_sweep_result *r, struct hv_str *out);

/** A shard's file, open for writing. Owner: hv_shard_close. */
struct hv_shard_file;
/**
 * Opens (or makes) the file of shard k of n (from 1) in a folder, waits for nobody: a shard that
 * another program writes is HV_EIO. `has[i]` becomes true for cell i where a file of the folder has
 * a result that need not be made again (`again`: those that are retried do not count). O(size of
 * the files).
 */
enum hv_status hv_shard_open(struct hv_shard_file **out, const struct hv_sweep *s,
                             const char *folder, size_t k, size_t n, bool again, bool *has,
                             struct hv_err *err) HV_NODISCARD;
/** Appends a line. Errors: HV_EIO, with the file as it was before. */
enum hv_status hv_shard_append(struct hv_shard_file *f, const struct hv_str *line,
                               struct hv_err *err) HV_NODISCARD;
/** Waits for the disk and closes. NULL is fine. Errors: HV_EIO. */
enum hv_status hv_shard_close(struct hv_shard_file *f, struct hv_err *err);

/** Receives a line, parsed and borrowed. */
typedef enum hv_status hv_shard_line_fn(void *ctx, const struct hv_json *line, struct hv_err *err);
/**
 * Calls `each` with every whole line of every result file of a folder, files by name, lines in
 * order. A last line without newline is passed over. Errors: HV_EIO, HV_EINPUT with file and line,
 * and what `each` returns.
 */
enum hv_status hv_shard_each(const char *folder, hv_shard_line_fn *each, void *ctx,
                             struct hv_err *err) HV_NODISCARD;

#endif
