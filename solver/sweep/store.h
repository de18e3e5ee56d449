/**
 * The store of a sweep: one SQLite file with all results, for any client of SQLite.
 *
 * Tables
 *   cells     one row per cell: id (text, primary key), strategy, one column per axis (number or
 *             text, named as the axis), state, reason, exact and fits (0 or 1), one column per
 *             figure (hv_sweep_figures; NULL where there is none), plan (JSON text or NULL).
 *             A cell without a result has the state "missing".
 *   axes      position, name, place (key path)
 *   sweep     key, value: format, id, name of the specification
 */
#ifndef HV_SOLVER_SWEEP_STORE_H
#define HV_SOLVER_SWEEP_STORE_H

#include "solver/base/str.h"
#include "solver/sweep/sweep.h"

/** Counts of a merge. */
struct hv_store_counts {
    size_t cells, done;
    size_t failed; /**< in a state that `run --failed` tries again */
    size_t missing;
};

/**
 * Writes the store from the result files of a folder: whole or not at all (a file beside it is
 * renamed). Lines of cells that the sweep does not have, such as those of an earlier specification,
 * are passed over. Errors: HV_EIO, HV_EINPUT with file and line of a result that cannot be read.
 */
enum hv_status hv_store_write(const char *path, const struct hv_sweep *s, const char *folder,
                              struct hv_store_counts *counts, struct hv_err *err) HV_NODISCARD;

/** A store, open for reading. Owner: hv_store_close. */
struct hv_store;
/** Opens a store. Errors: HV_EIO; HV_EINPUT where the file is none. */
enum hv_status hv_store_open(struct hv_store **out, const char *path,
                             struct hv_err *err) HV_NODISCARD;
void hv_store_close(struct hv_store *s);

/** An axis of a store. Borrowed. */
struct hv_store_axis {
    const char *name, *place;
};
/** The axes, in order. */
const struct hv_store_axis *hv_store_axes(const struct hv_store *s, size_t *n);

/** What to read of the cells. */
struct hv_store_query {
    const char *where;          /**< SQL condition on columns of `cells`, or NULL */
    const char *const *columns; /**< [n_columns] names of columns */
    size_t n_columns;
    const char *sort; /**< column, or NULL: by axes and strategy; a figure where more is better
                         sorts downwards */
    size_t most;      /**< rows; 0: all */
};
/** A value of a row. */
struct hv_store_value {
    const char *text; /**< NULL: nothing there; else borrowed until the callback returns */
    double number;    /**< HV_UNKNOWN where the value is a text */
};
typedef enum hv_status hv_store_row_fn(void *ctx, const struct hv_store_value *values,
                                       struct hv_err *err);
/**
 * Calls `each` with the columns of every row. Conditions can only read and compute. Errors:
 * HV_EUSAGE for a column that does not exist (with the nearest) and a condition that is none, and
 * what `each` returns.
 */
enum hv_status hv_store_read(const struct hv_store *s, const struct hv_store_query *q,
                             hv_store_row_fn *each, void *ctx, struct hv_err *err) HV_NODISCARD;

#endif
