/*
 * The last place of the user: workspace, screen and plan. A small file in the state folder; a
 * broken or missing file is not an error. Not for unsaved edits (recover.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORMAT "hetviz.last/1"

static bool last_file(const char *state_dir, bool make, struct hv_str *out)
{
    enum hv_status st = HV_OK;
    if (state_dir != NULL) {
        hv_str_adds(out, state_dir);
    } else {
        st = hv_user_dir(out, HV_DIR_STATE, NULL);
    }
    if (st == HV_OK && make) {
        st = hv_file_mkdirs(hv_str_cstr(out), NULL);
    }
    hv_str_adds(out, "/last.json");
    return st == HV_OK;
}

static json_t *read_last(const char *state_dir)
{
    struct hv_str file = {0}, text = {0};
    struct hv_json json = {0};
    json_t *root = NULL;
    if (last_file(state_dir, false, &file) &&
        hv_file_read(hv_str_cstr(&file), &text, NULL) == HV_OK &&
        hv_json_parse(&json, hv_str_cstr(&text), text.n, hv_str_cstr(&file), NULL) == HV_OK) {
        const char *format = json_string_value(json_object_get(json.root, "format"));
        if (format != NULL && strcmp(format, FORMAT) == 0) {
            root = json_incref(json.root);
        }
    }
    hv_json_free(&json);
    hv_str_free(&text);
    hv_str_free(&file);
    return root;
}

bool hv_session_last_workspace(const char *state_dir, struct hv_str *out)
{
    json_t *root = read_last(state_dir);
    const char *path = json_string_value(json_object_get(root, "workspace"));
    struct stat st;
    bool there = path != NULL && path[0] == '/' && stat(path, &st) == 0;
    if (there) {
        hv_str_adds(out, path);
    }
    json_decref(root);
    return there;
}

/* The absolute path of the workspace; it has none before its first save. */
static bool own_path(const struct hv_session *s, char out[PATH_MAX])
{
    const char *path = hv_session_path(s);
    return path != NULL && realpath(path, out) != NULL;
}

bool hv_session_last_place(struct hv_session *s, struct hv_str *screen)
{
    char here[PATH_MAX];
    json_t *root = read_last(s->state_dir);
    const char *path = json_string_value(json_object_get(root, "workspace"));
    const char *name = json_string_value(json_object_get(root, "screen"));
    const char *plan = json_string_value(json_object_get(root, "plan"));
    bool same = path != NULL && name != NULL && own_path(s, here) && strcmp(path, here) == 0;
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    for (size_t i = 0; same && plan != NULL && i < n; i++) {
        if (strcmp(rows[i]->name, plan) == 0) {
            hv_session_select(s, rows[i]->id);
        }
    }
    if (same) {
        hv_str_adds(screen, name);
    }
    json_decref(root);
    return same;
}

void hv_session_last_keep(const struct hv_session *s, const char *screen)
{
    char here[PATH_MAX];
    struct hv_str file = {0}, text = {0}, old = {0};
    if (own_path(s, here) && last_file(s->state_dir, true, &file)) {
        const struct hv_row *row = hv_session_row(s, hv_session_selected(s));
        json_t *root =
            json_pack("{s:s,s:s,s:s}", "format", FORMAT, "workspace", here, "screen", screen);
        if (root != NULL && row != NULL) {
            json_object_set_new(root, "plan", json_string(row->name));
        }
        hv_json_write(&text, root, true);
        json_decref(root);
        /* the place mostly is unchanged: then nothing is written. A failure is not reported */
        bool known = hv_file_read(hv_str_cstr(&file), &old, NULL) == HV_OK &&
                     strcmp(hv_str_cstr(&old), hv_str_cstr(&text)) == 0;
        if (!known) {
            (void)!hv_file_write_soon(hv_str_cstr(&file), hv_str_cstr(&text), text.n, NULL);
        }
    }
    hv_str_free(&file);
    hv_str_free(&old);
    hv_str_free(&text);
}
