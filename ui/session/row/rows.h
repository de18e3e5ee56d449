/**
 * The rows of the plans table: names, plans, runs, saved state, order and selection. Rows are
 * stored in order of their ids; a deleted row is kept until no undo step can restore it. Every
 * function that changes a row updates its struct hv_row.
 */
#ifndef HV_UI_SESSION_ROW_ROWS_H
#define HV_UI_SESSION_ROW_ROWS_H

#include "ui/session/doc/documents.h"
#include "ui/session/doc/journal.h"
#include "ui/session/row/row.h"

/** The rows of a session. Owner: hv__rows_free. */
struct hv__rows;

/** No rows. Owner: hv__rows_free. */
struct hv__rows *hv__rows_new(void);
/** Frees all rows, deleted ones too. */
void hv__rows_free(struct hv__rows *rows);

/* ---- reading --------------------------------------------------------------------------------- */

/** How many rows there are, deleted ones included. */
size_t hv__rows_n(const struct hv__rows *rows);
/** Row number i in order of ids, deleted ones included. */
const struct hv_row *hv__rows_at(const struct hv__rows *rows, size_t i);
/** The row of that id, deleted ones included, or NULL. O(log rows). */
const struct hv_row *hv__rows_any(const struct hv__rows *rows, uint32_t id);
/** The row of that id when it is not deleted, or NULL. O(log rows). */
const struct hv_row *hv__rows_get(const struct hv__rows *rows, uint32_t id);
/** True where a row other than `besides` has this name. Deleted rows keep their names. */
bool hv__rows_has_name(const struct hv__rows *rows, const char *name, uint32_t besides);
/** A plan name that no row has yet, "base-N". Owner: caller. */
char *hv__rows_fresh_name(const struct hv__rows *rows, const char *base);
/** True where a plan differs from its saved state. */
bool hv__rows_are_edited(const struct hv__rows *rows);

/* ---- changes --------------------------------------------------------------------------------- */

/** A new queued row without a plan, made for the documents as they are; returns its id. */
uint32_t hv__rows_add(struct hv__rows *rows, const struct hv__docs *docs, const char *name,
                      const char *strategy);
/** Sets the state. */
void hv__rows_set_state(struct hv__rows *rows, uint32_t id, enum hv_row_state state);
/** Sets the options of its run; shared. */
void hv__rows_set_options(struct hv__rows *rows, uint32_t id, json_t *options);
/** Sets the plan; shared. */
void hv__rows_set_plan(struct hv__rows *rows, uint32_t id, json_t *plan);
/** Sets the reason for the missing plan. */
void hv__rows_set_reason(struct hv__rows *rows, uint32_t id, const char *reason);
/** Deletes the row, or restores it. */
void hv__rows_set_deleted(struct hv__rows *rows, uint32_t id, bool deleted);
/** Renames it; the caller checks that the name is free and well formed. */
void hv__rows_rename(struct hv__rows *rows, uint32_t id, const char *name);
/** Sets the elapsed time of a running row (seconds). */
void hv__rows_set_elapsed(struct hv__rows *rows, uint32_t id, double elapsed_s);
/** Updates the `outdated` flags after a change of the documents. */
void hv__rows_update_outdated(struct hv__rows *rows, const struct hv__docs *docs);
/** Frees deleted rows that no step of the journal can restore and that are not in the saved
 * workspace. */
void hv__rows_sweep(struct hv__rows *rows, const struct hv__journal *journal);

/* ---- notes ----------------------------------------------------------------------------------- */

/** The plan with this note, "" = none; a note that is no UTF-8 is left out. Owner: caller. */
json_t *hv__note_put(const json_t *plan, const char *note);
/** The note in a plan (may be NULL), "" when there is none. Borrowed from the plan. */
const char *hv__note_of(const json_t *plan);

/* ---- the saved workspace --------------------------------------------------------------------- */

/** File of the row's plan in the saved workspace; NULL = inline or not saved. */
const char *hv__rows_saved_ref(const struct hv__rows *rows, uint32_t id);
/** Marks the present row as saved: in the file `ref` (copied), or inline (NULL). A deleted row, or
 * one without a plan, counts as absent from the saved workspace. */
void hv__rows_mark_saved(struct hv__rows *rows, uint32_t id, const char *ref);

/* ---- runs ------------------------------------------------------------------------------------ */

/** The row's job in the pool of workers; 0 = none. */
uint32_t hv__rows_job(const struct hv__rows *rows, uint32_t id);
/** Sets its job. */
void hv__rows_set_job(struct hv__rows *rows, uint32_t id, uint32_t job);

/* ---- order and selection --------------------------------------------------------------------- */

/** Sort key of a row. */
struct hv__rank {
    int group;     /**< rows of a lower group come first in either direction; 3 has no figure */
    double figure; /**< inside the group */
};
/** Computes the sort key of a row for a criterion after HV_SORT_STATE. */
typedef struct hv__rank hv__rank_fn(void *ctx, const struct hv_row *row, enum hv_sort key);

/** Rows that are not deleted, in order. Borrowed until rows or their order change. */
const struct hv_row *const *hv__rows_shown(const struct hv__rows *rows, size_t *n);
/** Sets the sort criterion of hv__rows_sort. */
void hv__rows_set_order(struct hv__rows *rows, enum hv_sort key, bool descending);
/** The sort criterion of the rows; descending may be NULL. */
enum hv_sort hv__rows_order(const struct hv__rows *rows, bool *descending);
/** Sorts the shown rows; ties are broken by id. O(rows log rows) and a rank per row. */
void hv__rows_sort(struct hv__rows *rows, hv__rank_fn *rank, void *ctx);
/** The selected row, when it still exists, else 0. */
uint32_t hv__rows_selected(const struct hv__rows *rows);
/** Selects a row. True when another one was selected before. */
bool hv__rows_select(struct hv__rows *rows, uint32_t id);

#endif
