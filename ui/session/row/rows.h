/**
 * The rows of the plans table: names, plans, runs, what of them was saved, order and selection.
 * Rows are kept in order of their ids and stay after a deletion until no step of undo can bring
 * them back. Every function that changes a row leaves its struct hv_row up to date.
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
/** Is another row than `besides` called so? Deleted rows keep their names. */
bool hv__rows_has_name(const struct hv__rows *rows, const char *name, uint32_t besides);
/** A plan name that no row has yet, "base-N". Owner: caller. */
char *hv__rows_fresh_name(const struct hv__rows *rows, const char *base);
/** Does any plan differ from what was saved? */
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
/** Sets the text that tells why there is no plan. */
void hv__rows_set_reason(struct hv__rows *rows, uint32_t id, const char *reason);
/** Deletes the row, or brings it back. */
void hv__rows_set_deleted(struct hv__rows *rows, uint32_t id, bool deleted);
/** Renames it; whether the name is free and well formed is the caller's to check. */
void hv__rows_rename(struct hv__rows *rows, uint32_t id, const char *name);
/** Sets the elapsed time of a running row (seconds). */
void hv__rows_set_elapsed(struct hv__rows *rows, uint32_t id, double elapsed_s);
/** The documents changed: which plans are outdated now? */
void hv__rows_update_outdated(struct hv__rows *rows, const struct hv__docs *docs);
/** Frees deleted rows that no step of the journal can bring back and that the saved workspace does
 * not hold. */
void hv__rows_sweep(struct hv__rows *rows, const struct hv__journal *journal);

/* ---- notes ----------------------------------------------------------------------------------- */

/** The plan with this note, "" = none; a note that is no UTF-8 is left out. Owner: caller. */
json_t *hv__note_put(const json_t *plan, const char *note);
/** The note in a plan (may be NULL), "" when there is none. Borrowed from the plan. */
const char *hv__note_of(const json_t *plan);

/* ---- the saved workspace --------------------------------------------------------------------- */

/** File of the row's plan in the saved workspace; NULL = inline or not saved. */
const char *hv__rows_saved_ref(const struct hv__rows *rows, uint32_t id);
/** From here on the row as it is now counts as saved: in the file `ref` (copied), or inline (NULL).
 * A deleted row, or one without a plan, is not in the saved workspace then. */
void hv__rows_mark_saved(struct hv__rows *rows, uint32_t id, const char *ref);

/* ---- runs ------------------------------------------------------------------------------------ */

/** The row's job in the pool of workers; 0 = none. */
uint32_t hv__rows_job(const struct hv__rows *rows, uint32_t id);
/** Sets its job. */
void hv__rows_set_job(struct hv__rows *rows, uint32_t id, uint32_t job);

/* ---- order and selection --------------------------------------------------------------------- */

/** What a row is sorted by. */
struct hv__rank {
    int group;     /**< rows of a lower group come first in either direction; 3 has no figure */
    double figure; /**< inside the group */
};
/** The rank of a row for a key behind HV_SORT_STATE. */
typedef struct hv__rank hv__rank_fn(void *ctx, const struct hv_row *row, enum hv_sort key);

/** Rows that are not deleted, in order. Borrowed until rows or their order change. */
const struct hv_row *const *hv__rows_shown(const struct hv__rows *rows, size_t *n);
/** Sets what hv__rows_sort sorts by. */
void hv__rows_set_order(struct hv__rows *rows, enum hv_sort key, bool descending);
/** What rows are sorted by; descending may be NULL. */
enum hv_sort hv__rows_order(const struct hv__rows *rows, bool *descending);
/** Sorts the shown rows; ties are broken by id. O(rows log rows) and a rank per row. */
void hv__rows_sort(struct hv__rows *rows, hv__rank_fn *rank, void *ctx);
/** The selected row, when it still exists, else 0. */
uint32_t hv__rows_selected(const struct hv__rows *rows);
/** Selects a row. True when another one was selected before. */
bool hv__rows_select(struct hv__rows *rows, uint32_t id);

#endif
