/*
 * The last place of the user: workspace, screen and plan; and what screens keep of a workspace.
 * Small files in the state folder; a broken or missing one is not an error. Not for unsaved edits
 * (recover.c).
 */
#include "ui/session/session_int.h"

#include "ui/session/store/views.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME   "/last.json"
#define FORMAT "hetviz.last/1"

static json_t *read_last(const char *state_dir)
{
    return hv__state_read(state_dir, NAME, FORMAT);
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
    if (!own_path(s, here)) {
        return;
    }
    const struct hv_row *row = hv_session_row(s, hv_session_selected(s));
    json_t *root =
        json_pack("{s:s,s:s,s:s}", "format", FORMAT, "workspace", here, "screen", screen);
    if (root != NULL && row != NULL) {
        json_object_set_new(root, "plan", json_string(row->name));
    }
    hv__state_write(s->state_dir, NAME, root);
    json_decref(root);
}

json_t *hv_session_view(const struct hv_session *s, const char *screen)
{
    char here[PATH_MAX];
    return own_path(s, here) ? hv__views_get(s->state_dir, here, screen) : NULL;
}

void hv_session_view_keep(const struct hv_session *s, const char *screen, json_t *kept)
{
    char here[PATH_MAX];
    if (kept != NULL && own_path(s, here)) {
        hv__views_put(s->state_dir, here, screen, kept);
    }
}
