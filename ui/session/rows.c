/*
 * Rows of the plans table: the changes that users make, each a step of undo. Not for figures and
 * the order by them (judging.c) nor for runs (runs.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

#define NOTE_MAX_BYTES 1000

const struct hv_row *hv_session_row(const struct hv_session *s, uint32_t id)
{
    return hv__rows_get(s->rows, id);
}

const struct hv_row *const *hv_session_rows(const struct hv_session *s, size_t *n)
{
    return hv__rows_shown(s->rows, n);
}

uint32_t hv_session_selected(const struct hv_session *s)
{
    return hv__rows_selected(s->rows);
}

void hv_session_select(struct hv_session *s, uint32_t id)
{
    if (hv__rows_select(s->rows, id)) {
        hv__session_moved(s);
    }
}

/* ---- deleting, renaming, notes --------------------------------------------------------------- */

/* "delete NAME". Owner: caller. */
static char *label_of(const char *verb, const char *name)
{
    struct hv_str label = {0};
    hv_str_addf(&label, "%s %s", verb, name);
    return label.p;
}

bool hv_session_row_delete(struct hv_session *s, uint32_t id)
{
    const struct hv_row *r = hv__rows_get(s->rows, id);
    if (r == NULL) {
        return false;
    }
    hv_session_cancel(s, id);
    hv__session_did_words(s, "delete", r->name, NULL);
    hv__rows_set_deleted(s->rows, id, true);
    struct hv__step step = {
        .kind = HV__STEP_DELETE, .row = id, .label = label_of("delete", r->name)};
    hv__session_journal_push(s, step);
    hv__session_touch(s);
    hv__session_rows_sort(s);
    return true;
}

static enum hv_status check_name(const struct hv_session *s, uint32_t id, const char *name,
                                 struct hv_err *err)
{
    if (name[0] == '\0' || name[0] == '.' || strlen(name) > 100) {
        return hv_err_set(
            err, HV_EUSAGE,
            "the name of a plan must have 1 to 100 bytes and must not start with a dot");
    }
    for (const char *p = name; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == '/' || *p == 0x7F) {
            return hv_err_set(err, HV_EUSAGE,
                              "the name of a plan must not contain / or control characters");
        }
    }
    if (hv__rows_has_name(s->rows, name, id)) {
        return hv_err_set(err, HV_EUSAGE, "the name %s is taken", name);
    }
    return HV_OK;
}

enum hv_status hv_session_row_rename(struct hv_session *s, uint32_t id, const char *name,
                                     struct hv_err *err)
{
    const struct hv_row *r = hv__rows_get(s->rows, id);
    if (r == NULL) {
        return hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    }
    enum hv_status st = check_name(s, id, name, err);
    if (st != HV_OK || strcmp(r->name, name) == 0) {
        return st;
    }
    char *before = hv_xstrdup(r->name);
    hv__rows_rename(s->rows, id, name);
    struct hv__step step = {.kind = HV__STEP_RENAME,
                            .row = id,
                            .name_before = before,
                            .name_after = hv_xstrdup(r->name),
                            .label = label_of("rename", before)};
    hv__session_did_words(s, "rename", before, r->name);
    hv__session_journal_push(s, step);
    hv__session_touch(s);
    hv__session_rows_sort(s);
    return HV_OK;
}

static enum hv_status check_note(const struct hv_row *r, const char *note, struct hv_err *err)
{
    if (r->plan == NULL) {
        return hv_err_set(err, HV_EUSAGE, "%s has no plan, so it cannot have a note", r->name);
    }
    if (strlen(note) > NOTE_MAX_BYTES) {
        return hv_err_set(err, HV_EUSAGE, "a note must not be longer than %d bytes",
                          NOTE_MAX_BYTES);
    }
    for (const char *p = note; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F) {
            return hv_err_set(err, HV_EUSAGE, "a note must be one line without control characters");
        }
    }
    return HV_OK;
}

enum hv_status hv_session_row_note(struct hv_session *s, uint32_t id, const char *note,
                                   struct hv_err *err)
{
    const struct hv_row *r = hv__rows_get(s->rows, id);
    if (r == NULL) {
        return hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    }
    enum hv_status st = check_note(r, note, err);
    if (st != HV_OK || strcmp(r->note, note) == 0) {
        return st;
    }
    json_t *after = hv__note_put(r->plan, note);
    if (strcmp(hv__note_of(after), note) != 0) {
        json_decref(after);
        return hv_err_set(err, HV_EUSAGE, "a note must be UTF-8 text");
    }
    struct hv__step step = {.kind = HV__STEP_NOTE,
                            .row = id,
                            .before = json_incref((json_t *)(uintptr_t)r->plan),
                            .after = after,
                            .label = label_of("note of", r->name)};
    hv__rows_set_plan(s->rows, id, after);
    hv__session_touch(s);
    hv__session_journal_push(s, step);
    hv__session_did_words(s, "note", r->name, note[0] != '\0' ? note : NULL);
    return HV_OK;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* "plan NAME {…}" */
static void tell_plan(struct hv_session *s, const char *name, const json_t *plan)
{
    struct hv_str line = {0};
    hv_str_adds(&line, "plan ");
    hv__word_add(&line, name);
    hv_str_addc(&line, ' ');
    hv_json_write(&line, plan, false);
    while (line.n > 0 && line.p[line.n - 1] == '\n') {
        line.n--;
    }
    hv__session_did(s, "%.*s", (int)line.n, line.p);
    hv_str_free(&line);
}

enum hv_status hv_session_row_add(struct hv_session *s, const char *name, json_t *plan,
                                  uint32_t *id, struct hv_err *err)
{
    struct hv_plan_doc doc = {0};
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref(plan), name);
    enum hv_status st =
        hv_plan_doc_build(&doc, json, hv__docs_nouns(s->docs)->cluster.cluster, err);
    if (st != HV_OK) {
        json_decref(plan);
        return st;
    }
    bool taken = hv__rows_has_name(s->rows, name, 0);
    char *fresh = taken ? hv__rows_fresh_name(s->rows, name) : hv_xstrdup(name);
    const char *strategy = doc.plan->strategy != NULL ? doc.plan->strategy : "";
    uint32_t row = hv__rows_add(s->rows, s->docs, fresh, strategy);
    free(fresh);
    hv_plan_doc_free(&doc);
    hv__rows_set_state(s->rows, row, HV_ROW_DONE);
    hv__rows_set_plan(s->rows, row, plan);
    hv__session_touch(s);
    tell_plan(s, hv__rows_any(s->rows, row)->name, plan);
    json_decref(plan);
    hv__session_rows_sort(s);
    if (id != NULL) {
        *id = row;
    }
    return HV_OK;
}

enum hv_status hv_session_row_add_step(struct hv_session *s, const char *name, json_t *plan,
                                       const char *label, uint32_t *id, struct hv_err *err)
{
    enum hv_status st = hv_session_row_add(s, name, plan, id, err);
    if (st != HV_OK) {
        return st;
    }
    char *text =
        label != NULL ? hv_xstrdup(label) : label_of("add", hv__rows_get(s->rows, *id)->name);
    hv__session_journal_push(s, (struct hv__step){.kind = HV__STEP_ADD, .row = *id, .label = text});
    hv__session_touch(s);
    return HV_OK;
}
