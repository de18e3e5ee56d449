/* Small files of the state folder, and what screens keep of workspaces in one of them. */
#include "ui/session/store/views.h"

#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include <string.h>

#define NAME   "/views.json"
#define FORMAT "hetviz.views/1"

/* Workspaces that are remembered. */
#define WORKSPACES 100

bool hv__state_file(const char *state_dir, const char *name, bool make, struct hv_str *out)
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
    hv_str_adds(out, name);
    return st == HV_OK;
}

json_t *hv__state_read(const char *state_dir, const char *name, const char *format)
{
    struct hv_str file = {0}, text = {0};
    struct hv_json json = {0};
    json_t *root = NULL;
    if (hv__state_file(state_dir, name, false, &file) &&
        hv_file_read(hv_str_cstr(&file), &text, NULL) == HV_OK &&
        hv_json_parse(&json, hv_str_cstr(&text), text.n, hv_str_cstr(&file), NULL) == HV_OK) {
        const char *have = json_string_value(json_object_get(json.root, "format"));
        if (have != NULL && strcmp(have, format) == 0) {
            root = json_incref(json.root);
        }
    }
    hv_json_free(&json);
    hv_str_free(&text);
    hv_str_free(&file);
    return root;
}

void hv__state_write(const char *state_dir, const char *name, const json_t *root)
{
    struct hv_str file = {0}, text = {0}, old = {0};
    if (hv__state_file(state_dir, name, true, &file)) {
        hv_json_write(&text, root, true);
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

/* Number of the workspace in the list, or the list's length. */
static size_t place_of(const json_t *list, const char *workspace)
{
    size_t i = 0;
    while (i < json_array_size(list)) {
        const char *path = json_string_value(json_object_get(json_array_get(list, i), "path"));
        if (path != NULL && strcmp(path, workspace) == 0) {
            break;
        }
        i++;
    }
    return i;
}

json_t *hv__views_get(const char *state_dir, const char *workspace, const char *screen)
{
    json_t *root = hv__state_read(state_dir, NAME, FORMAT);
    const json_t *list = json_object_get(root, "workspaces");
    const json_t *one = json_array_get(list, place_of(list, workspace));
    json_t *kept = json_incref(json_object_get(json_object_get(one, "screens"), screen));
    json_decref(root);
    return kept;
}

void hv__views_put(const char *state_dir, const char *workspace, const char *screen, json_t *kept)
{
    json_t *root = hv__state_read(state_dir, NAME, FORMAT);
    if (root == NULL || !json_is_array(json_object_get(root, "workspaces"))) {
        json_decref(root);
        root = json_pack("{s:s,s:[]}", "format", FORMAT, "workspaces");
    }
    json_t *list = json_object_get(root, "workspaces");
    size_t at = place_of(list, workspace);
    json_t *one = json_incref(json_array_get(list, at));
    if (one == NULL) {
        one = json_pack("{s:s,s:{}}", "path", workspace, "screens");
    } else {
        json_array_remove(list, at);
    }
    if (!json_is_object(json_object_get(one, "screens"))) {
        json_object_set_new(one, "screens", json_object());
    }
    json_object_set(json_object_get(one, "screens"), screen, kept);
    json_array_append_new(list, one); /* the latest are last */
    while (json_array_size(list) > WORKSPACES) {
        json_array_remove(list, 0);
    }
    hv__state_write(state_dir, NAME, root);
    json_decref(root);
}
