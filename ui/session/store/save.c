/*
 * Saving: the content of each file of the workspace. That all are replaced or none is the task of
 * solver/base/save. Not for unsaved edits (recovery.c).
 */
#include "ui/session/store/place_int.h"

#include "solver/base/file.h"
#include "solver/base/save/save.h"
#include "solver/base/vec.h"
#include "solver/io/own/verdict_file.h"
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_BYTES 120

/* A file to write. */
struct out_file {
    char *name; /* inside the folder */
    char *text;
    size_t n;
};

/* One save: its destination, and the files to write and to remove. */
struct save {
    const struct hv__save *of;
    const char *folder; /**< where names are relative to */
    bool single, same;  /**< one file with everything inline; the place it came from */
    HV_VEC(struct out_file) files;
    HV_VEC(char *) obsolete; /**< names of own plan files that are no longer referenced */
    char *ref[HV_DOC_N];     /**< new names of documents */
    HV_VEC(char *) plan_ref; /**< new names of plans, one per row; NULL = inline */
};

static void add_file(struct save *v, const char *name, const json_t *tree)
{
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    struct out_file f = {hv_xstrdup(name), text.p, text.n};
    hv_vec_push(&v->files, f);
}

static void save_free(struct save *v)
{
    for (size_t i = 0; i < v->files.n; i++) {
        free(v->files.items[i].name);
        free(v->files.items[i].text);
    }
    hv_vec_free(&v->files);
    for (size_t i = 0; i < v->obsolete.n; i++) {
        free(v->obsolete.items[i]);
    }
    hv_vec_free(&v->obsolete);
    for (int d = 0; d < HV_DOC_N; d++) {
        free(v->ref[d]);
    }
    for (size_t i = 0; i < v->plan_ref.n; i++) {
        free(v->plan_ref.items[i]);
    }
    hv_vec_free(&v->plan_ref);
}

/* ---- assignment of files --------------------------------------------------------------------- */

static char *in_folder(const struct save *v, const char *name)
{
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/%s", v->folder, name);
    return path.p;
}

/* A name that is no file here: of a sample or of the model catalogue. */
static bool is_shipped(const struct hv_workspace *w, const char *ref)
{
    struct hv_str path = {0};
    hv_workspace_resolve(w, ref, &path);
    bool shipped = strchr(ref, '/') == NULL && access(hv_str_cstr(&path), F_OK) != 0;
    hv_str_free(&path);
    return shipped;
}

/* Appends the name, inside the workspace's own folder, of the file of a document that may be
 * written; false when there is none. */
static bool own_file(const struct save *v, const char *ref, struct hv_str *name)
{
    struct hv_str path = {0};
    if (!v->same || v->single || ref == NULL || ref[0] == '/' || strstr(ref, "..") != NULL) {
        return false;
    }
    const struct hv_workspace *w = &v->of->place->workspace;
    hv_workspace_resolve(w, ref, &path);
    size_t n = strlen(w->folder);
    bool own = path.n > n + 1 && strncmp(path.p, w->folder, n) == 0 && path.p[n] == '/' &&
               access(path.p, F_OK) == 0;
    if (own) {
        hv_str_adds(name, path.p + n + 1);
    }
    hv_str_free(&path);
    return own;
}

/* Keeps the reference of a document, puts it inline, or adds its file to the save; sets its member
 * in the new workspace. */
static void place_doc(struct save *v, enum hv_doc d, json_t *root)
{
    const struct hv__docs *docs = v->of->docs;
    json_t *tree = hv__docs_tree(docs, d);
    const char *ref = hv__docs_ref(docs, d), *key = hv_doc_name(d);
    bool changed = hv__docs_is_edited(docs, d);
    bool was_there = json_object_get(root, key) != NULL;
    bool keep = !changed && ref != NULL &&
                (v->same || ref[0] == '/' || is_shipped(&v->of->place->workspace, ref));
    if (keep || (!changed && v->same && !was_there)) {
        v->ref[d] = ref != NULL ? hv_xstrdup(ref) : NULL;
        if (ref != NULL) {
            json_object_set_new(root, key, json_string(ref));
        }
        return;
    }
    bool inline_before = ref == NULL && was_there;
    if (v->single || inline_before) {
        json_object_set(root, key, tree);
        return;
    }
    struct hv_str name = {0};
    if (own_file(v, ref, &name)) {
        v->ref[d] = hv_xstrdup(ref);
    } else {
        hv_str_addf(&name, "%s.json", key);
        v->ref[d] = hv_xstrdup(name.p);
    }
    json_object_set_new(root, key, json_string(v->ref[d]));
    add_file(v, hv_str_cstr(&name), tree);
    hv_str_free(&name);
}

/* A file name's bytes from a plan's name: no control characters, no separators, not hidden, of a
 * length that every file system takes. */
static void add_file_name(struct hv_str *out, const char *name)
{
    size_t n = strlen(name);
    if (n > NAME_MAX_BYTES) {
        for (n = NAME_MAX_BYTES; n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80;) {
            n--;
        }
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        bool bad = c < ' ' || c == 127 || strchr("/\\:*?\"<>| ", c) != NULL || (i == 0 && c == '.');
        hv_str_addc(out, bad ? '_' : name[i]);
    }
}

/* "plans/NAME.json" with a name any file system takes and no other file of this save has. */
static char *plan_ref(const struct save *v, const char *name)
{
    struct hv_str ref = {0};
    for (unsigned k = 1;; k++) {
        hv_str_clear(&ref);
        hv_str_adds(&ref, "plans/");
        add_file_name(&ref, name);
        if (k > 1) {
            hv_str_addf(&ref, "-%u", k);
        }
        hv_str_adds(&ref, ".json");
        bool taken = false;
        for (size_t i = 0; i < v->plan_ref.n; i++) {
            taken |= v->plan_ref.items[i] != NULL && strcmp(v->plan_ref.items[i], ref.p) == 0;
        }
        if (!taken) {
            return ref.p;
        }
    }
}

json_t *hv__save_plan_tree(const struct hv__save *save, const struct hv_row *row, bool with_name)
{
    const struct hv_verdict *judged = hv__cache_verdict(save->cache, save->docs, row, false, NULL);
    json_t *plan = (json_t *)(uintptr_t)row->plan;
    json_t *tree = judged != NULL ? hv_plan_with_verdict(plan, judged, false) : json_copy(plan);
    if (with_name) {
        json_object_set_new(tree, "name", json_string(row->name));
    }
    return tree;
}

/* Marks an own plan file that this save no longer references. */
static void retire(struct save *v, const char *ref)
{
    if (v->same && !v->single && ref != NULL && strncmp(ref, "plans/", 6) == 0 &&
        strstr(ref, "..") == NULL) {
        hv_vec_push(&v->obsolete, hv_xstrdup(ref));
    }
}

/* Adds the file of one plan to the save; returns its name in the workspace, NULL = inline or not
 * saved. */
static char *place_plan(struct save *v, const struct hv_row *r, json_t *list)
{
    const char *saved_ref = hv__rows_saved_ref(v->of->rows, r->id);
    bool unread = r->plan == NULL && saved_ref != NULL && !r->deleted && v->same;
    bool keep = !r->deleted && v->same && saved_ref != NULL && r->saved;
    if (keep || unread) {
        return hv_xstrdup(saved_ref);
    }
    if (r->deleted || r->plan == NULL) {
        return NULL;
    }
    json_t *tree = hv__save_plan_tree(v->of, r, v->single);
    char *ref = NULL;
    if (v->single) {
        json_array_append(list, tree);
    } else {
        ref = plan_ref(v, r->name);
        add_file(v, ref, tree);
    }
    json_decref(tree);
    return ref;
}

static void place_plans(struct save *v, json_t *root)
{
    const struct hv__rows *rows = v->of->rows;
    json_t *list = json_array();
    for (size_t i = 0; i < hv__rows_n(rows); i++) {
        const struct hv_row *r = hv__rows_at(rows, i);
        const char *saved_ref = hv__rows_saved_ref(rows, r->id);
        char *ref = place_plan(v, r, list);
        if (ref != NULL) {
            json_array_append_new(list, json_string(ref));
        }
        if (saved_ref != NULL && (ref == NULL || strcmp(ref, saved_ref) != 0)) {
            retire(v, saved_ref);
        }
        hv_vec_push(&v->plan_ref, ref);
    }
    if (json_array_size(list) > 0 || json_object_get(root, "plans") != NULL) {
        json_object_set(root, "plans", list);
    }
    json_decref(list);
}

/* The new workspace tree; members we do not edit stay. Owner: caller. */
static json_t *workspace_tree(struct save *v)
{
    const struct hv__place *p = v->of->place;
    json_t *strategies = hv__docs_tree(v->of->docs, HV_DOC_STRATEGIES);
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string("hetviz.workspace/1"));
    json_object_set_new(root, "name", json_string(p->name));
    if (p->workspace.json.root != NULL) {
        json_object_update(root, p->workspace.json.root);
    }
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        place_doc(v, (enum hv_doc)d, root);
    }
    if (json_array_size(strategies) > 0 || json_object_get(root, "strategies") != NULL) {
        json_object_set(root, "strategies", strategies);
    }
    place_plans(v, root);
    return root;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Marks the written state as saved. */
static void adopt(struct save *v, const struct hv_workspace *w, const char *path)
{
    struct hv__place *p = v->of->place;
    hv__docs_mark_saved(v->of->docs);
    for (int d = 0; d < HV_DOC_N; d++) {
        hv__docs_set_ref(v->of->docs, (enum hv_doc)d, v->ref[d]);
    }
    for (size_t i = 0; i < hv__rows_n(v->of->rows); i++) {
        hv__rows_mark_saved(v->of->rows, hv__rows_at(v->of->rows, i)->id, v->plan_ref.items[i]);
    }
    hv_workspace_free(&p->workspace);
    p->workspace = *w;
    p->overwrite = false;
    hv__place_stamp(p);
    char *kept = hv_xstrdup(path);
    free(p->path);
    p->path = kept;
}

/* The message begins with the reason, because a status line is short. */
static enum hv_status not_saved(const struct hv_err *why, const char *state, struct hv_err *err)
{
    return hv_err_set(err, HV_EIO, "not saved: %.700s%s (%.200s)", why->text, state, why->file);
}

/* Replaces all files of the folder, or none. */
static enum hv_status write_files(const struct save *v, struct hv_save *to, struct hv_err *err)
{
    for (size_t i = 0; i < v->files.n; i++) {
        const struct out_file *f = &v->files.items[i];
        if (strncmp(f->name, "plans/", 6) == 0) {
            hv_save_folder(to, "plans");
        }
        hv_save_add(to, f->name, f->text, f->n);
    }
    for (size_t i = 0; i < v->obsolete.n; i++) {
        hv_save_remove(to, v->obsolete.items[i]);
    }
    return hv_save_commit(to, err);
}

/* Saves into the folder, after a look at what other programs did there. */
static enum hv_status write_folder(const struct save *v, struct hv_err *err)
{
    struct hv_save *to = NULL;
    struct hv_err why = {0};
    enum hv_status st = hv_file_mkdirs(v->folder, &why);
    if (st == HV_OK) {
        st = hv_save_begin(&to, v->folder, &why);
    }
    if (st == HV_OK && v->same && hv__place_check_unchanged(v->of->place, err) != HV_OK) {
        hv_save_free(to);
        return HV_EIO;
    }
    if (st == HV_OK) {
        st = write_files(v, to, &why);
    }
    hv_save_free(to);
    return st == HV_OK ? HV_OK : not_saved(&why, "", err);
}

/* One file needs no journal. */
static enum hv_status write_single(const struct save *v, const char *path, struct hv_err *err)
{
    struct hv_err why = {0};
    if (v->same && hv__place_check_unchanged(v->of->place, err) != HV_OK) {
        return HV_EIO;
    }
    const struct out_file *f = &v->files.items[0];
    enum hv_status st = hv_file_mkdirs(v->folder, &why);
    if (st == HV_OK) {
        st = hv_file_write(path, f->text, f->n, &why);
    }
    return st == HV_OK ? HV_OK : not_saved(&why, "; the old file is unchanged", err);
}

static enum hv_status write_to(struct save *v, const char *path, struct hv_err *err)
{
    json_t *root = workspace_tree(v);
    struct hv_json json = {0};
    struct hv_workspace w = {0};
    char *file = v->single ? hv_xstrdup(path) : in_folder(v, "workspace.json");
    add_file(v, "workspace.json", root);
    hv_json_wrap(&json, root, file);
    /* text that cannot be read back must not be written */
    enum hv_status st = hv_workspace_build(&w, json, v->folder, err);
    if (st == HV_OK) {
        st = v->single ? write_single(v, path, err) : write_folder(v, err);
    }
    if (st == HV_OK) {
        w.path = file;
        adopt(v, &w, path);
        return HV_OK;
    }
    hv_workspace_free(&w);
    free(file);
    return st;
}

static bool same_place(const char *a, const char *b)
{
    char real_a[PATH_MAX], real_b[PATH_MAX];
    return a != NULL && realpath(a, real_a) != NULL && realpath(b, real_b) != NULL &&
           strcmp(real_a, real_b) == 0;
}

/* A name ending in .json is one file with everything inline, unless it is a folder. */
static bool is_single_file(const char *path)
{
    struct stat st;
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".json") == 0 &&
           !(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

enum hv_status hv__save_to(const struct hv__save *save, const char *path, struct hv_err *err)
{
    struct hv_str folder = {0};
    struct save v = {
        .of = save, .single = is_single_file(path), .same = same_place(save->place->path, path)};
    const char *slash = strrchr(path, '/');
    if (!v.single) {
        hv_str_adds(&folder, path);
    } else if (slash != NULL) {
        hv_str_add(&folder, path, slash > path ? (size_t)(slash - path) : 1);
    } else {
        hv_str_addc(&folder, '.');
    }
    v.folder = hv_str_cstr(&folder);
    enum hv_status st = write_to(&v, path, err);
    save_free(&v);
    hv_str_free(&folder);
    return st;
}
