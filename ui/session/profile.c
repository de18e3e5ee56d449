/*
 * Measured profiles while a workspace is open: copies a file to the user's profile folder, and
 * reads that folder again after a measurement. The profile format is in solver/io/own.
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/io/own/cluster/profile_file.h"
#include <string.h>

/* The cost tables of the kinds changed: everything is built and evaluated again. */
static enum hv_status build_again(struct hv_session *s, struct hv_err *err)
{
    json_t *tree = json_incref(hv__docs_tree(s->docs, HV_DOC_CLUSTER));
    enum hv_status st = hv__session_doc_put(s, HV_DOC_CLUSTER, tree, err);
    json_decref(tree);
    return st;
}

/* A thread may be reading the kinds. */
static void end_drawing(struct hv_session *s)
{
    if (hv__cache_draw_end(s->cache)) {
        hv__session_moved(s);
    }
}

/* The user's profile folder, created where it is missing. */
static enum hv_status own_folder(struct hv_str *out, struct hv_err *err)
{
    enum hv_status st = hv_user_dir(out, HV_DIR_DATA, err);
    if (st != HV_OK) {
        return st;
    }
    hv_str_adds(out, "/profiles");
    return hv_file_mkdirs(hv_str_cstr(out), err);
}

/* Copies a profile to the user's folder, for later starts and workers, under its own name. */
static enum hv_status keep(const char *path, const struct hv_str *text, struct hv_str *to,
                           struct hv_err *err)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    size_t n = strlen(base);
    bool named = n > 5 && strcmp(base + n - 5, ".json") == 0;
    enum hv_status st = own_folder(to, err);
    hv_str_addf(to, "/%s%s", base, named ? "" : ".json");
    return st == HV_OK ? hv_file_write(hv_str_cstr(to), hv_str_cstr(text), text->n, err) : st;
}

enum hv_status hv_session_profile_load(struct hv_session *s, const char *path, struct hv_str *said,
                                       struct hv_err *err)
{
    struct hv_str text = {0}, to = {0};
    struct hv_json json = {0};
    enum hv_status st = hv_file_read(path, &text, err);
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, path, err);
    }
    end_drawing(s);
    if (st == HV_OK) {
        st = hv_profile_add(&hv__docs_inputs(s->docs)->devices, &json, err);
    }
    if (st == HV_OK) {
        st = keep(path, &text, &to, err);
    }
    if (st == HV_OK) {
        st = build_again(s, err);
    }
    const char *device =
        st == HV_OK ? json_string_value(json_object_get(json.root, "device")) : NULL;
    if (st == HV_OK) {
        hv_str_addf(said, "this profile now prices %s; it is saved as %s",
                    device != NULL ? device : "it", hv_str_cstr(&to));
    }
    hv_json_free(&json);
    hv_str_free(&text);
    hv_str_free(&to);
    return st;
}

enum hv_status hv_session_profiles_reload(struct hv_session *s, struct hv_err *err)
{
    end_drawing(s);
    enum hv_status st = hv_device_catalogue_own_profiles(&hv__docs_inputs(s->docs)->devices, err);
    return st == HV_OK ? build_again(s, err) : st;
}
