/** The rows of the plans table: order, selection, adding, renaming, deleting, notes. */
#ifndef HV_UI_SESSION_ROWS_H
#define HV_UI_SESSION_ROWS_H

#include "solver/base/status.h"
#include "ui/session/row/row.h"

struct hv_session;

/** All rows in the current sort order (borrowed until rows or their order change). */
const struct hv_row *const *hv_session_rows(const struct hv_session *s, size_t *n);
/** Row of that id, or NULL. */
const struct hv_row *hv_session_row(const struct hv_session *s, uint32_t id);
/**
 * Sorts rows (kept sorted from then on). Plans with violations come after those without, rows
 * without a figure last, ties by id. Judges what is not judged yet.
 */
void hv_session_sort(struct hv_session *s, enum hv_sort key, bool descending);
/** The sort criterion of the rows; descending may be NULL. */
enum hv_sort hv_session_sort_key(const struct hv_session *s, bool *descending);

/** Row that screens and commands work on: the last one selected that still exists, else 0. */
uint32_t hv_session_selected(const struct hv_session *s);
/** Selects a row. */
void hv_session_select(struct hv_session *s, uint32_t id);

/* ---- changes --------------------------------------------------------------------------------- */

/** Deletes a row (a running one is cancelled first) as one undo step. False when there is none. */
bool hv_session_row_delete(struct hv_session *s, uint32_t id);
/** Renames the plan of a row as one undo step. Errors: HV_EUSAGE for "", "/" and control
 * characters, or a name taken. */
enum hv_status hv_session_row_rename(struct hv_session *s, uint32_t id, const char *name,
                                     struct hv_err *err) HV_NODISCARD;
/**
 * Writes a note (one line, at most 1,000 bytes) on a row's plan, as one undo step; "" removes it.
 * It is kept in the plan (`x-note`) and saved with it. Errors: HV_EUSAGE for a row without a plan.
 */
enum hv_status hv_session_row_note(struct hv_session *s, uint32_t id, const char *note,
                                   struct hv_err *err) HV_NODISCARD;
/** Adds a row from a plan tree (import, paste, edit by hand). Takes over `plan`. Errors: HV_EINPUT.
 */
enum hv_status hv_session_row_add(struct hv_session *s, const char *name, json_t *plan,
                                  uint32_t *id, struct hv_err *err) HV_NODISCARD;
/** The same as one undo step named `label`; NULL: "add NAME". `id` may not be NULL. */
enum hv_status hv_session_row_add_step(struct hv_session *s, const char *name, json_t *plan,
                                       const char *label, uint32_t *id,
                                       struct hv_err *err) HV_NODISCARD;

#endif
