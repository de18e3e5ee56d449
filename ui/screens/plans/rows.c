/** Actions of the Plans screen on a row: mark, open, rename, note, export, delete, run again. */
#include <stdio.h>
#include <string.h>

#include "solver/workload/target.h"
#include "ui/screens/plans/plans_int.h"

/** The answer is a file, or a target and a folder: "megatron run". */
static enum hv_status export_row(struct hv_session *s, uint32_t id, const char *answer,
                                 struct hv_err *err)
{
    enum hv_target_id target;
    struct hv_str first = {0};
    size_t n = strcspn(answer, " ");
    hv_str_add(&first, answer, n);
    const char *folder = answer + n + strspn(answer + n, " ");
    enum hv_status st = folder[0] != '\0' && hv_target_find(hv_str_cstr(&first), &target)
                            ? hv_session_export_to(s, id, hv_str_cstr(&first), folder, err)
                            : hv_session_export(s, id, answer, err);
    hv_str_free(&first);
    return st;
}

static unsigned answer_export(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_plans *st = ctx;
    struct hv_err err = {0};
    if (export_row(hv_ui_session(hv_app_model(app)), st->asked, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "plan written to %s", path);
    }
    return HV_APP_REDRAW;
}

static unsigned answer_rename(void *ctx, struct hv_app *app, const char *name)
{
    struct hv_plans *st = ctx;
    struct hv_err err = {0};
    if (hv_session_row_rename(hv_ui_session(hv_app_model(app)), st->asked, name, &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
    return HV_APP_REDRAW;
}

static unsigned answer_note(void *ctx, struct hv_app *app, const char *note)
{
    struct hv_plans *st = ctx;
    struct hv_err err = {0};
    if (hv_session_row_note(hv_ui_session(hv_app_model(app)), st->asked, note, &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
    return HV_APP_REDRAW;
}

static void ask_note(const struct hv_plans_at *at)
{
    const struct hv_row *row = hv_session_row(at->s, at->id);
    if (row->plan == NULL) {
        hv_app_message(at->app, HV_MSG_WARNING, "this row has no plan, so it cannot have a note");
        return;
    }
    at->st->asked = at->id;
    hv_app_ask(at->app, "note: ", row->note, answer_note, at->st);
}

static void ask_export(const struct hv_plans_at *at)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s.json", hv_session_row(at->s, at->id)->name);
    at->st->asked = at->id;
    hv_app_ask(at->app, "write the plan to a file, or TARGET FOLDER: ", path, answer_export,
               at->st);
}

static void toggle_mark(const struct hv_plans_at *at)
{
    struct hv_plans *st = at->st;
    size_t i = hv_plans_mark(st, at->id);
    if (i == st->marks.n) {
        hv_vec_push(&st->marks, at->id);
        return;
    }
    for (st->marks.n--; i < st->marks.n; i++) {
        st->marks.items[i] = st->marks.items[i + 1];
    }
}

static void delete_rows(const struct hv_plans_at *at)
{
    size_t n = 0;
    for (size_t i = 0; i < at->st->marks.n; i++) {
        n += hv_session_row_delete(at->s, at->st->marks.items[i]);
    }
    if (at->st->marks.n == 0) {
        n += hv_session_row_delete(at->s, at->id);
    }
    at->st->marks.n = 0;
    hv_app_message(at->app, HV_MSG_INFO, "%zu deleted; u restores %s", n,
                   n == 1 ? "it" : "them one by one");
}

static void run_again(const struct hv_plans_at *at)
{
    const struct hv_row *row = hv_session_row(at->s, at->id);
    struct hv_err err = {0};
    char name[128];
    (void)snprintf(name, sizeof name, "%s", row->strategy);
    if (hv_session_run(at->s, name, row->options, NULL, &err) != HV_OK) {
        hv_ui_error(at->app, &err);
    } else {
        hv_app_message(at->app, HV_MSG_INFO, "%s is running again", name);
    }
}

static void open_gantt(const struct hv_plans_at *at)
{
    struct hv_ui *ui = hv_app_model(at->app);
    struct hv_err err = {0};
    if (hv_session_row(at->s, at->id)->plan == NULL) {
        hv_app_message(at->app, HV_MSG_WARNING, "this row has no plan to draw");
        return;
    }
    ui->gantt_row = 0;
    hv_session_select(at->s, at->id);
    if (hv_app_open(at->app, "gantt", &err) != HV_OK) {
        hv_ui_error(at->app, &err);
    }
}

bool hv_plans_row_action(const struct hv_plans_at *at, enum hv_action a)
{
    switch ((int)a) {
    case HV_ACT_OPEN:
        open_gantt(at);
        return true;
    case HV_ACT_MARK:
        toggle_mark(at);
        return true;
    case HV_ACT_EXPORT:
        ask_export(at);
        return true;
    case HV_ACT_PLAN_RENAME:
        at->st->asked = at->id;
        hv_app_ask(at->app, "new name: ", hv_session_row(at->s, at->id)->name, answer_rename,
                   at->st);
        return true;
    case HV_ACT_PLAN_NOTE:
        ask_note(at);
        return true;
    case HV_ACT_DELETE:
        delete_rows(at);
        return true;
    case HV_ACT_RUN:
        run_again(at);
        return true;
    case HV_ACT_STOP:
        return hv_session_cancel(at->s, at->id);
    default:
        return false;
    }
}
