/** A row with what it owns; for rows.c and run_events.c only. */
#ifndef HV_UI_SESSION_ROW_ROW_INT_H
#define HV_UI_SESSION_ROW_ROW_INT_H

#include "solver/base/str.h"
#include "solver/base/vec.h"
#include "ui/session/row/rows.h"

/** A row with what it owns. */
struct hv__row {
    struct hv_row pub;
    uint32_t job; /**< in the pool; 0 = none */
    char *name, *strategy, *progress, *reason;
    struct hv_str log;
    json_t *options, *plan;
    json_t *made_for[HV_DOC_INPUTS]; /**< trees of the documents the plan was made for */
    HV_VEC(struct hv_row_point) points;
    json_t *saved_plan; /**< tree that lies in the saved workspace; NULL = none */
    char *saved_name;
    char *saved_ref; /**< its file as named by the workspace; NULL = inline */
};

/** The row of a job, or NULL. */
struct hv__row *hv__rows_row_of_job(const struct hv__rows *rows, uint32_t job);
/** A new row; the caller sets its documents and state. */
struct hv__row *hv__rows_push(struct hv__rows *rows, const char *name, const char *strategy);
/** Sets the plan without updating `pub`. */
void hv__row_take_plan(struct hv__row *r, json_t *plan);
/** Updates `pub` from the fields that own its texts and trees. */
void hv__row_publish(struct hv__row *r);
/** Sets a heap string. */
void hv__row_set_text(char **slot, const char *text);

#endif
