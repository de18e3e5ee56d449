/*
 * Opening a workspace: reads its documents, makes rows of its plans, and looks for unsaved edits of
 * a crashed program.
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A plan of the workspace as a tree: held inline, or read from its file. */
static enum hv_status load_plan(const struct hv_session *s, const struct hv_workspace_ref *ref,
                                json_t **out, struct hv_err *err)
{
    if (ref->name == NULL) {
        *out = json_incref(ref->inline_);
        return HV_OK;
    }
    struct hv_str path = {0}, text = {0};
    struct hv_json json = {0};
    hv_workspace_resolve(hv__place_workspace(s->place), ref->name, &path);
    enum hv_status st = hv_file_read(hv_str_cstr(&path), &text, err);
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, hv_str_cstr(&path), err);
    }
    if (st == HV_OK && !json_is_object(json.root)) {
        st = hv_err_set(err, HV_EINPUT, "%.200s: expected a plan object", hv_str_cstr(&path));
    }
    if (st == HV_OK) {
        *out = json_incref(json.root);
    }
    hv_json_free(&json);
    hv_str_free(&path);
    hv_str_free(&text);
    return st;
}

/* The plan's name, that of its file, or a fresh one where there is none or it is taken. Owner:
 * caller. */
static char *row_name(const struct hv_session *s, const struct hv_workspace_ref *ref,
                      const json_t *plan, const char *strategy)
{
    const char *name = json_string_value(json_object_get(plan, "name"));
    struct hv_str own = {0};
    if (ref->name != NULL) {
        size_t n = 0;
        const char *base = hv__place_base_name(ref->name, &n);
        hv_str_add(&own, base, n);
        name = hv_str_cstr(&own);
    }
    bool usable = name != NULL && !hv__rows_has_name(s->rows, name, 0);
    char *out = usable ? hv_xstrdup(name)
                       : hv__rows_fresh_name(s->rows, strategy != NULL ? strategy : "plan");
    hv_str_free(&own);
    return out;
}

/* A plan that cannot be read becomes a row with the reason; the rest of the workspace opens. */
static void add_plan_row(struct hv_session *s, const struct hv_workspace_ref *ref)
{
    json_t *plan = NULL;
    struct hv_err err = {0};
    enum hv_status st = load_plan(s, ref, &plan, &err);
    const char *strategy =
        json_string_value(json_object_get(json_object_get(plan, "strategy"), "name"));
    char *name = row_name(s, ref, plan, strategy);
    uint32_t id = hv__rows_add(s->rows, s->docs, name, strategy != NULL ? strategy : "");
    hv__rows_set_state(s->rows, id, st == HV_OK ? HV_ROW_DONE : HV_ROW_FAILED);
    hv__rows_set_reason(s->rows, id, err.text);
    hv__rows_set_plan(s->rows, id, plan);
    hv__rows_mark_saved(s->rows, id, ref->name);
    json_decref(plan);
    free(name);
}

static void finish_opening(struct hv_session *s)
{
    const struct hv_workspace *w = hv__place_workspace(s->place);
    size_t n = 0;
    for (size_t i = 0; i < w->n_plans; i++) {
        add_plan_row(s, &w->plans[i]);
    }
    hv__session_rows_sort(s);
    const struct hv_row *const *shown = hv__rows_shown(s->rows, &n);
    if (n > 0) {
        (void)hv__rows_select(s->rows, shown[0]->id);
    }
    hv__recovery_look(s->recovery, hv__place_path(s->place));
}

/* The shipped sample as a copy that may be changed; its folder is appended to out. */
static enum hv_status own_sample(struct hv_session *s, struct hv_str *out, struct hv_err *err)
{
    struct hv_str file = {0}, shipped = {0}, text = {0};
    enum hv_status st = HV_OK;
    if (s->state_dir != NULL) {
        hv_str_adds(out, s->state_dir);
    } else {
        st = hv_user_dir(out, HV_DIR_STATE, err);
    }
    if (st == HV_OK) {
        hv_str_adds(out, "/sample");
        hv_str_addf(&file, "%s/workspace.json", hv_str_cstr(out));
        if (access(hv_str_cstr(&file), F_OK) != 0 &&
            (st = hv_data_path(&shipped, "samples/workspaces/mixed/workspace.json", err)) ==
                HV_OK &&
            (st = hv_file_read(hv_str_cstr(&shipped), &text, err)) == HV_OK &&
            (st = hv_file_mkdirs(hv_str_cstr(out), err)) == HV_OK) {
            st = hv_file_write(hv_str_cstr(&file), hv_str_cstr(&text), text.n, err);
        }
        s->first = st == HV_OK && text.n > 0;
    }
    hv_str_free(&file);
    hv_str_free(&shipped);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_session_open(struct hv_session **out, const char *path,
                               const struct hv_session_env *env, struct hv_err *err)
{
    struct hv_session *s = hv__session_new(env, "");
    struct hv_str sample = {0};
    *out = NULL;
    enum hv_status st = HV_OK;
    if (path == NULL) {
        st = own_sample(s, &sample, err);
        path = hv_str_cstr(&sample);
    }
    if (st == HV_OK) {
        st = hv__place_read(s->place, path, s->docs, err);
    }
    hv_str_free(&sample);
    if (st != HV_OK) {
        hv__session_free(s);
        return st;
    }
    finish_opening(s);
    *out = s;
    return HV_OK;
}

enum hv_status hv_session_new(struct hv_session **out, const char *cluster, const char *model,
                              const char *job, const struct hv_session_env *env, struct hv_err *err)
{
    struct hv_session *s = hv__session_new(env, "new");
    const char *refs[HV_DOC_INPUTS] = {cluster, model, job};
    *out = NULL;
    enum hv_status st = hv_inputs_read(hv__docs_inputs(s->docs), cluster, model, job, err);
    if (st != HV_OK) {
        hv__session_free(s);
        return st;
    }
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        hv__docs_set_ref(s->docs, (enum hv_doc)d, refs[d]);
    }
    hv__docs_begin(s->docs, NULL);
    finish_opening(s);
    *out = s;
    return HV_OK;
}
