/*
 * The journal: a thousand steps back and forth. A step holds trees, not differences: trees share
 * what is equal, and putting one back runs through the same check as a file. Not for making steps.
 */
#include "ui/session/session_int.h"

#include <string.h>

static void step_free(struct hv__step *t)
{
    json_decref(t->before);
    json_decref(t->after);
    free(t->name_before);
    free(t->name_after);
    free(t->label);
}

void hv__session_journal_push(struct hv_session *s, struct hv__step step)
{
    bool swept = s->journal_at < s->journal.n || s->journal_at == HV_SESSION_UNDO_LIMIT;
    while (s->journal.n > s->journal_at) {
        step_free(&s->journal.items[--s->journal.n]);
    }
    if (s->journal.n == HV_SESSION_UNDO_LIMIT) {
        step_free(&s->journal.items[0]);
        memmove(&s->journal.items[0], &s->journal.items[1],
                (s->journal.n - 1) * sizeof s->journal.items[0]);
        s->journal.n--;
        s->record_floor -= s->record_floor > 0;
    }
    if (s->record_floor > s->journal.n) {
        s->record_floor = s->journal.n;
    }
    hv_vec_push(&s->journal, step);
    s->journal_at = s->journal.n;
    if (swept) {
        hv__session_rows_sweep(s);
    }
}

void hv__session_journal_free(struct hv_session *s)
{
    for (size_t i = 0; i < s->journal.n; i++) {
        step_free(&s->journal.items[i]);
    }
    hv_vec_free(&s->journal);
    s->journal_at = 0;
}

/* Takes a step in one direction; what was accepted once is accepted again. */
static void take(struct hv_session *s, const struct hv__step *t, bool forward)
{
    struct hv__row *r = t->kind == HV__STEP_DOC ? NULL : hv__session_row_any(s, t->row);
    struct hv_err err = {0};
    if (t->kind == HV__STEP_DOC) {
        if (hv__session_doc_put(s, t->doc, forward ? t->after : t->before, &err) != HV_OK) {
            hv_str_clear(&s->notice);
            hv_str_addf(&s->notice, "the step cannot be taken: %s", err.text);
        }
        return;
    }
    if (r != NULL && t->kind == HV__STEP_DELETE) {
        r->deleted = forward;
    }
    if (r != NULL && t->kind == HV__STEP_ADD) {
        r->deleted = !forward;
    }
    if (r != NULL && t->kind == HV__STEP_RENAME) {
        hv__session_set_text(&r->name, forward ? t->name_after : t->name_before);
    }
    if (r != NULL && t->kind == HV__STEP_NOTE) {
        hv__session_note_take(s, r, forward ? t->before : t->after, forward ? t->after : t->before);
    }
    hv__session_touch(s);
    hv__session_rows_publish(s);
    hv__session_rows_sort(s);
}

/* Steps from before the recording are not known to who replays it: those are told as edits. */
static void tell(struct hv_session *s, const struct hv__step *t, bool forward)
{
    if (s->record_fd >= 0 && t < s->journal.items + s->record_floor && t->kind == HV__STEP_DOC) {
        hv__session_did_doc(s, t->doc, forward ? t->before : t->after,
                            forward ? t->after : t->before);
    } else {
        hv__session_did(s, forward ? "redo" : "undo");
    }
}

bool hv_session_undo(struct hv_session *s)
{
    hv__session_group_drop(s);
    if (s->journal_at == 0) {
        return false;
    }
    do {
        take(s, &s->journal.items[--s->journal_at], false);
        tell(s, &s->journal.items[s->journal_at], false);
    } while (s->journal.items[s->journal_at].joined && s->journal_at > 0);
    return true;
}

bool hv_session_redo(struct hv_session *s)
{
    if (s->journal_at == s->journal.n) {
        return false;
    }
    hv__session_group_drop(s);
    do {
        take(s, &s->journal.items[s->journal_at++], true);
        tell(s, &s->journal.items[s->journal_at - 1], true);
    } while (s->journal_at < s->journal.n && s->journal.items[s->journal_at].joined);
    return true;
}

const char *hv_session_undo_label(const struct hv_session *s)
{
    return s->journal_at > 0 ? s->journal.items[s->journal_at - 1].label : NULL;
}

const char *hv_session_redo_label(const struct hv_session *s)
{
    return s->journal_at < s->journal.n ? s->journal.items[s->journal_at].label : NULL;
}

size_t hv_session_n_undo(const struct hv_session *s)
{
    return s->journal_at;
}

size_t hv_session_n_redo(const struct hv_session *s)
{
    return s->journal.n - s->journal_at;
}

bool hv_session_dirty(const struct hv_session *s)
{
    for (int d = 0; d < HV_DOC_N; d++) {
        if (s->tree[d] != s->saved_tree[d]) {
            return true;
        }
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct hv__row *r = s->rows.items[i];
        if (r->deleted ? r->saved_plan != NULL : r->plan != NULL && !hv__session_row_is_saved(r)) {
            return true;
        }
    }
    return false;
}
