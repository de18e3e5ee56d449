/** Rows of a store in memory, for what looks at several of them. */
#ifndef HV_UI_CLI_SWEEP_ROWS_H
#define HV_UI_CLI_SWEEP_ROWS_H

#include "solver/base/arena.h"
#include "solver/sweep/store.h"

/** Rows with their columns. Owner: hv_rows_free. */
struct hv_rows {
    struct hv_arena arena;
    const char **columns; /**< [n_columns], borrowed from the query */
    size_t n_columns;
    struct hv_store_value *values; /**< [n × n_columns] */
    size_t n, cap;
};
/** Reads the rows of a query. Errors: as hv_store_read. */
enum hv_status hv_rows_read(struct hv_rows *out, const struct hv_store *store,
                            const struct hv_store_query *q, struct hv_err *err) HV_NODISCARD;
void hv_rows_free(struct hv_rows *r);
/** A value. */
const struct hv_store_value *hv_rows_at(const struct hv_rows *r, size_t row, size_t column);
/** Index of a column, or n_columns. */
size_t hv_rows_column(const struct hv_rows *r, const char *name);
/**
 * Keeps the rows that no other row beats: at least as good in all columns and better in one. Rows
 * without one of the values go. More is better where the figure says so, else less. O(rows²).
 */
void hv_rows_front(struct hv_rows *r, const size_t *columns, size_t n);

#endif
