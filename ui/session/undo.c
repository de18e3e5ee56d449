/*
 * Undo and redo: applies steps of the journal in either direction. Not for making steps (edit.c,
 * rows.c).
 */
#include "ui/session/session_int.h"

void hv_session_join_last(struct hv_session *s)
{
    hv__journal_join_last(s->journal);
}

/* Gives the row the note of `to` instead of that of `from`, both plans. */
static void take_note(struct hv_session *s, const struct hv_row *r, const json_t *from, json_t *to)
{
    if (r->plan == from) { /* the identical tree: the saved state is valid again */
        hv__rows_set_plan(s->rows, r->id, to);
    } else if (r->plan != NULL) {
        json_t *plan = hv__note_put(r->plan, hv__note_of(to));
        hv__rows_set_plan(s->rows, r->id, plan);
        json_decref(plan);
    }
}

static void take_row_step(struct hv_session *s, const struct hv__step *t, bool forward)
{
    const struct hv_row *r = hv__rows_any(s->rows, t->row);
    if (r != NULL && t->kind == HV__STEP_DELETE) {
        hv__rows_set_deleted(s->rows, t->row, forward);
    } else if (r != NULL && t->kind == HV__STEP_ADD) {
        hv__rows_set_deleted(s->rows, t->row, !forward);
    } else if (r != NULL && t->kind == HV__STEP_RENAME) {
        hv__rows_rename(s->rows, t->row, forward ? t->name_after : t->name_before);
    } else if (r != NULL && t->kind == HV__STEP_NOTE) {
        take_note(s, r, forward ? t->before : t->after, forward ? t->after : t->before);
    }
    hv__session_touch(s);
    hv__session_rows_sort(s);
}

/* Applies a step in one direction; its trees have been checked before. */
static void take(struct hv_session *s, const struct hv__step *t, bool forward)
{
    struct hv_err err = {0};
    if (t->kind != HV__STEP_DOC) {
        take_row_step(s, t, forward);
    } else if (hv__session_doc_put(s, t->doc, forward ? t->after : t->before, &err) != HV_OK) {
        hv__session_set_notice(s, "the change cannot be undone or redone: %s", err.text);
    }
}

/* A replay has no steps from before the recording: undoing those is recorded as edits. */
static void tell(struct hv_session *s, const struct hv__step *t, bool forward)
{
    if (hv__recording_is_on(s->recording) && t->kind == HV__STEP_DOC &&
        hv__journal_is_before_mark(s->journal, t)) {
        hv__session_did_doc(s, t->doc, forward ? t->before : t->after,
                            forward ? t->after : t->before);
    } else {
        hv__session_did(s, forward ? "redo" : "undo");
    }
}

bool hv_session_undo(struct hv_session *s)
{
    hv__docs_group_drop(s->docs);
    const struct hv__step *t = hv__journal_back(s->journal);
    bool any = t != NULL;
    while (t != NULL) {
        take(s, t, false);
        tell(s, t, false);
        t = t->joined ? hv__journal_back(s->journal) : NULL;
    }
    return any;
}

bool hv_session_redo(struct hv_session *s)
{
    const struct hv__step *t = hv__journal_forward(s->journal);
    if (t == NULL) {
        return false;
    }
    hv__docs_group_drop(s->docs);
    while (t != NULL) {
        take(s, t, true);
        tell(s, t, true);
        const struct hv__step *next = hv__journal_next(s->journal);
        t = next != NULL && next->joined ? hv__journal_forward(s->journal) : NULL;
    }
    return true;
}

const char *hv_session_undo_label(const struct hv_session *s)
{
    const struct hv__step *t = hv__journal_last(s->journal);
    return t != NULL ? t->label : NULL;
}

const char *hv_session_redo_label(const struct hv_session *s)
{
    const struct hv__step *t = hv__journal_next(s->journal);
    return t != NULL ? t->label : NULL;
}

size_t hv_session_n_undo(const struct hv_session *s)
{
    return hv__journal_n_undo(s->journal);
}
