/*
 * Notes on plans: a line of text in the plan itself (member `x-note`), so that it is saved,
 * recovered and exported with it. Not for other changes of rows (session_rows.c).
 */
#include "ui/session/session_int.h"

#include <string.h>

#define KEY       "x-note"
#define MAX_BYTES 1000

const char *hv__session_note_of(const json_t *plan)
{
    const char *note = json_string_value(json_object_get(plan, KEY));
    return note != NULL ? note : "";
}

json_t *hv__session_note_put(const json_t *plan, const char *note)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)plan);
    if (note[0] != '\0') {
        json_object_set_new(copy, KEY, json_string(note));
    } else {
        json_object_del(copy, KEY);
    }
    return copy;
}

void hv__session_note_take(struct hv_session *s, struct hv__row *r, json_t *from, json_t *to)
{
    if (r->plan == from) { /* the very tree that was there: what was saved is saved again */
        hv__session_row_set_plan(s, r, to);
    } else if (r->plan != NULL) {
        json_t *plan = hv__session_note_put(r->plan, hv__session_note_of(to));
        hv__session_row_set_plan(s, r, plan);
        json_decref(plan);
    }
}

static void tell(struct hv_session *s, const struct hv__row *r, const char *note)
{
    struct hv_str line = {0};
    hv_str_adds(&line, "note ");
    hv__session_add_word(&line, r->name);
    if (note[0] != '\0') {
        hv_str_addc(&line, ' ');
        hv__session_add_word(&line, note);
    }
    hv__session_did(s, "%s", hv_str_cstr(&line));
    hv_str_free(&line);
}

enum hv_status hv_session_row_note(struct hv_session *s, uint32_t id, const char *note,
                                   struct hv_err *err)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || r->deleted) {
        return hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    }
    if (r->plan == NULL) {
        return hv_err_set(err, HV_EUSAGE, "%s has no plan that could keep a note", r->name);
    }
    if (strlen(note) > MAX_BYTES) {
        return hv_err_set(err, HV_EUSAGE, "a note has at most %d bytes", MAX_BYTES);
    }
    for (const char *p = note; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F) {
            return hv_err_set(err, HV_EUSAGE, "a note is one line without control characters");
        }
    }
    if (strcmp(hv__session_note_of(r->plan), note) == 0) {
        return HV_OK;
    }
    json_t *after = hv__session_note_put(r->plan, note);
    if (strcmp(hv__session_note_of(after), note) != 0) {
        json_decref(after);
        return hv_err_set(err, HV_EUSAGE, "a note is UTF-8 text");
    }
    struct hv_str label = {0};
    hv_str_addf(&label, "note of %s", r->name);
    struct hv__step step = {.kind = HV__STEP_NOTE,
                            .row = id,
                            .before = json_incref(r->plan),
                            .after = after,
                            .label = label.p};
    hv__session_row_set_plan(s, r, after);
    hv__session_journal_push(s, step);
    tell(s, r, note);
    hv__session_row_publish(s, r);
    return HV_OK;
}
