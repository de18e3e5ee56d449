/**
 * The undo journal: up to HV_SESSION_UNDO_LIMIT steps with a position among them. Steps before the
 * position can be undone, those behind it can be redone. The journal only stores steps; the caller
 * applies them.
 */
#ifndef HV_UI_SESSION_DOC_JOURNAL_H
#define HV_UI_SESSION_DOC_JOURNAL_H

#include "solver/base/json/json.h"
#include "solver/io/own/doc/names.h"
#include "ui/session/doc/undo_limit.h"
#include <stdbool.h>
#include <stdint.h>

/** What a step changed: a document; the presence of a row (deleted or added); its name; its note.
 */
enum hv__step_kind { HV__STEP_DOC, HV__STEP_DELETE, HV__STEP_ADD, HV__STEP_RENAME, HV__STEP_NOTE };
/** One step. It owns its trees and texts. */
struct hv__step {
    enum hv__step_kind kind;
    enum hv_doc doc;
    json_t *before, *after; /**< DOC: trees; NOTE: plans */
    uint32_t row;
    char *name_before, *name_after; /**< RENAME */
    char *label;
    bool joined; /**< joined to the step before it: both are undone together */
};

/** A journal. Owner: hv__journal_free. */
struct hv__journal;

/** An empty journal. Owner: hv__journal_free. */
struct hv__journal *hv__journal_new(void);
/** Frees the journal with its steps. */
void hv__journal_free(struct hv__journal *j);
/** Appends a step (takes ownership of its contents) and drops the steps that could be redone. True
 * where a step was dropped: rows that only it could restore can be freed. */
bool hv__journal_push(struct hv__journal *j, struct hv__step step);
/** Moves one step back and returns the step to undo, or NULL. Valid until the next push. */
const struct hv__step *hv__journal_back(struct hv__journal *j);
/** Moves one step forward and returns the step to make again, or NULL. Valid until the next push.
 */
const struct hv__step *hv__journal_forward(struct hv__journal *j);
/** The step that hv__journal_back would return, or NULL; likewise forward. Nothing moves. */
const struct hv__step *hv__journal_last(const struct hv__journal *j);
const struct hv__step *hv__journal_next(const struct hv__journal *j);
/** Joins the last step to the one before it. */
void hv__journal_join_last(struct hv__journal *j);
/** Steps before and behind the position. */
size_t hv__journal_n_undo(const struct hv__journal *j);
/** True where a step can delete or restore this row. O(steps). */
bool hv__journal_holds_row(const struct hv__journal *j, uint32_t row);

/** Marks the present position: a recording begins here. */
void hv__journal_mark(struct hv__journal *j);
/** True where the step was made before the mark. */
bool hv__journal_is_before_mark(const struct hv__journal *j, const struct hv__step *step);

#endif
