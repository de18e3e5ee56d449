/*
 * Unsaved edits: written when due, recovered from a crashed program. Not for the files
 * (store/recovery.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdio.h>

enum hv_status hv_session_autosave(struct hv_session *s, struct hv_err *err)
{
    return hv__recovery_write(s->recovery, hv__place_path(s->place), s->docs, s->rows, err);
}

void hv__session_recovery_tick(struct hv_session *s)
{
    double due_s = hv__recovery_due_s(s->recovery), now_s = hv_session_now_s(s);
    struct hv_err err = {0};
    if (!hv_known(due_s) || now_s < due_s) {
        return;
    }
    if (!hv_session_dirty(s)) {
        hv__recovery_remove(s->recovery);
    } else if (hv_session_autosave(s, &err) != HV_OK) {
        hv__session_set_notice(s, "unsaved edits cannot be written to the recovery file: %s",
                               err.text);
        hv__recovery_retry(s->recovery, now_s);
        hv__session_moved(s);
    }
}

int hv__session_recovery_timeout_ms(const struct hv_session *s)
{
    double due_s = hv__recovery_due_s(s->recovery);
    if (!hv_known(due_s)) {
        return -1;
    }
    double ms = ceil((due_s - hv_session_now_s(s)) * 1e3);
    return ms < 0 ? 0 : (ms > 1e6 ? 1000000 : (int)ms);
}

bool hv_session_recovery_offered(const struct hv_session *s)
{
    return hv__recovery_content(s->recovery) != NULL;
}

void hv_session_recovery_diff(const struct hv_session *s, struct hv_str *out)
{
    hv__recovery_diff(s->recovery, s->docs, out);
}

void hv_session_recovery_discard(struct hv_session *s)
{
    hv__recovery_discard(s->recovery);
}

static enum hv_status recover_docs(struct hv_session *s, const json_t *content, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (int d = 0; st == HV_OK && d < HV_DOC_N; d++) {
        json_t *tree = json_object_get(content, hv_doc_name((enum hv_doc)d));
        char label[64];
        snprintf(label, sizeof label, "recover %s", hv_doc_name((enum hv_doc)d));
        if (tree != NULL) {
            st = hv_session_replace(s, (enum hv_doc)d, json_incref(tree), label, err);
        }
    }
    return st;
}

static enum hv_status recover_plans(struct hv_session *s, const json_t *content, struct hv_err *err)
{
    const json_t *plans = json_object_get(content, "plans");
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < json_array_size(plans); i++) {
        const json_t *row = json_array_get(plans, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        json_t *plan = json_object_get(row, "plan");
        if (plan != NULL) {
            st = hv_session_row_add(s, name != NULL ? name : "plan", json_incref(plan), NULL, err);
        }
    }
    return st;
}

enum hv_status hv_session_recover(struct hv_session *s, struct hv_err *err)
{
    const json_t *content = hv__recovery_content(s->recovery);
    enum hv_status st = recover_docs(s, content, err);
    if (st == HV_OK) {
        st = recover_plans(s, content, err);
    }
    /* the recovered edits are in this program's file before the old file is removed */
    if (st == HV_OK && hv_session_dirty(s)) {
        st = hv_session_autosave(s, err);
    }
    if (st == HV_OK) {
        hv__recovery_discard(s->recovery);
    }
    return st;
}
