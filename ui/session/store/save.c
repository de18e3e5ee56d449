/*
 * Saving: the workspace as files, all or none. Everything is written beside the old files and made
 * safe there first; only then the new ones take the old names. Not for autosave
 * (session_recover.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/io/own/verdict_file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_BYTES 120

/* A file to come. */
struct out_file {
    char *path, *temp;
    char *text;
    size_t n;
};

/* One save: where to, and what it will write and take away. */
struct save {
    struct hv_session *s;
    const char *folder; /**< where names are relative to */
    bool single, same;  /**< one file with everything inline; the place it came from */
    HV_VEC(struct out_file) files;
    HV_VEC(char *) obsolete; /**< plan files of ours that nothing names any more */
    char *ref[HV_DOC_N];     /**< new names of documents */
    HV_VEC(char *) plan_ref; /**< new names of plans, one per row; NULL = inline */
};

static void add_file(struct save *v, char *path, const json_t *tree)
{
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    struct out_file f = {path, NULL, text.p, text.n};
    hv_vec_push(&v->files, f);
}

static void save_free(struct save *v)
{
    for (size_t i = 0; i < v->files.n; i++) {
        free(v->files.items[i].path);
        free(v->files.items[i].temp);
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

/* ---- writing
 * ------------------------------------------------------------------------------------- */

static void drop_temps(struct save *v)
{
    for (size_t i = 0; i < v->files.n; i++) {
        if (v->files.items[i].temp != NULL) {
            unlink(v->files.items[i].temp);
        }
    }
}

/* Writes one file under a name beside the final one, which is that of a link's target. */
static enum hv_status stage(struct out_file *f, struct hv_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    struct hv_str temp = {0};
    if (realpath(f->path, real) != NULL) {
        free(f->path);
        f->path = hv_xstrdup(real);
    }
    hv_str_addf(&temp, "%s.%ld.new", f->path, (long)getpid());
    f->temp = temp.p;
    enum hv_status status = hv_file_write(f->temp, f->text, f->n, err);
    if (status == HV_OK && stat(f->path, &st) == 0) {
        chmod(f->temp, st.st_mode & 07777);
    }
    return status;
}

/* The reason comes first: a status line has room for little more. */
static enum hv_status not_saved(const char *path, const char *why, struct hv_err *err)
{
    return hv_err_set(err, HV_EIO, "not saved: %s; the old files are whole (%.200s)", why, path);
}

static enum hv_status write_all(struct save *v, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < v->files.n; i++) {
        struct hv_err why = {0};
        if (stage(&v->files.items[i], &why) != HV_OK) {
            st = not_saved(v->files.items[i].path, why.text, err);
        }
    }
    /* workspace.json is the last of the list: until it has its name the old one counts */
    for (size_t i = 0; st == HV_OK && i < v->files.n; i++) {
        struct out_file *f = &v->files.items[i];
        if (rename(f->temp, f->path) != 0) {
            st = not_saved(f->path, strerror(errno), err);
        } else {
            f->temp[0] = '\0';
        }
    }
    if (st != HV_OK) {
        drop_temps(v);
    }
    int fd = st == HV_OK ? open(v->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    return st;
}

/* ---- what goes where --------------------------------------------------------------------------
 */

static char *in_folder(const struct save *v, const char *name)
{
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/%s", v->folder, name);
    return path.p;
}

/* A name that is no file here: of a sample or of the model catalogue. */
static bool is_shipped(const struct hv_session *s, const char *ref)
{
    struct hv_str path = {0};
    hv_workspace_resolve(&s->workspace, ref, &path);
    bool shipped = strchr(ref, '/') == NULL && access(hv_str_cstr(&path), F_OK) != 0;
    hv_str_free(&path);
    return shipped;
}

/* The file of a document inside the workspace's own folder, which may be written; NULL otherwise.
 */
static char *own_file(const struct save *v, const char *ref)
{
    struct hv_str path = {0};
    if (!v->same || v->single || ref == NULL || ref[0] == '/' || strstr(ref, "..") != NULL) {
        return NULL;
    }
    hv_workspace_resolve(&v->s->workspace, ref, &path);
    size_t n = strlen(v->s->workspace.folder);
    bool own = strncmp(hv_str_cstr(&path), v->s->workspace.folder, n) == 0 &&
               access(hv_str_cstr(&path), F_OK) == 0;
    if (own) {
        return path.p;
    }
    hv_str_free(&path);
    return NULL;
}

/* Puts a document where it belongs and sets its member in the new workspace. */
static void place_doc(struct save *v, enum hv_doc d, json_t *root)
{
    struct hv_session *s = v->s;
    const char *ref = s->ref[d], *key = hv_doc_name(d);
    bool changed = s->tree[d] != s->saved_tree[d];
    bool was_there = json_object_get(root, key) != NULL;
    bool keep = !changed && ref != NULL && (v->same || ref[0] == '/' || is_shipped(s, ref));
    if (keep || (!changed && v->same && !was_there)) {
        v->ref[d] = ref != NULL ? hv_xstrdup(ref) : NULL;
        if (ref != NULL) {
            json_object_set_new(root, key, json_string(ref));
        }
        return;
    }
    bool inline_before = ref == NULL && was_there;
    if (v->single || inline_before) {
        json_object_set(root, key, s->tree[d]);
        return;
    }
    char *path = own_file(v, ref);
    struct hv_str name = {0};
    if (path != NULL) {
        hv_str_adds(&name, ref);
    } else {
        hv_str_addf(&name, "%s.json", key);
    }
    if (path == NULL) {
        path = in_folder(v, hv_str_cstr(&name));
    }
    json_object_set_new(root, key, json_string(hv_str_cstr(&name)));
    v->ref[d] = name.p;
    add_file(v, path, s->tree[d]);
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

/* The plan as a file: with the figures of now, and its name where no file name tells it. */
static json_t *plan_tree(struct hv_session *s, const struct hv__row *r, bool with_name)
{
    const struct hv_verdict *judged = hv_session_verdict(s, r->pub.id, false, NULL);
    json_t *tree =
        judged != NULL ? hv_plan_with_verdict(r->plan, judged, false) : json_copy(r->plan);
    if (with_name) {
        json_object_set_new(tree, "name", json_string(r->name));
    }
    return tree;
}

/* A plan file of ours that this save leaves without a name. */
static void retire(struct save *v, const char *ref)
{
    if (v->same && !v->single && ref != NULL && strncmp(ref, "plans/", 6) == 0 &&
        strstr(ref, "..") == NULL) {
        char *path = in_folder(v, ref);
        hv_vec_push(&v->obsolete, path);
    }
}

static void place_plans(struct save *v, json_t *root)
{
    struct hv_session *s = v->s;
    json_t *list = json_array();
    for (size_t i = 0; i < s->rows.n; i++) {
        struct hv__row *r = s->rows.items[i];
        char *ref = NULL;
        bool unread = r->plan == NULL && r->saved_ref != NULL && !r->deleted && v->same;
        bool keep = !r->deleted && v->same && r->saved_ref != NULL && hv__session_row_is_saved(r);
        if (keep || unread) {
            ref = hv_xstrdup(r->saved_ref);
        } else if (!r->deleted && r->plan != NULL) {
            json_t *tree = plan_tree(s, r, v->single);
            if (!v->single) {
                ref = plan_ref(v, r->name);
                add_file(v, in_folder(v, ref), tree);
            } else {
                json_array_append(list, tree);
            }
            json_decref(tree);
        }
        if (ref != NULL) {
            json_array_append_new(list, json_string(ref));
        }
        if (r->saved_ref != NULL && (ref == NULL || strcmp(ref, r->saved_ref) != 0)) {
            retire(v, r->saved_ref);
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
    struct hv_session *s = v->s;
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string("hetviz.workspace/1"));
    json_object_set_new(root, "name", json_string(s->name));
    if (s->workspace.json.root != NULL) {
        json_object_update(root, s->workspace.json.root);
    }
    for (int d = 0; d < HV__INPUTS; d++) {
        place_doc(v, (enum hv_doc)d, root);
    }
    if (json_array_size(s->tree[HV_DOC_STRATEGIES]) > 0 ||
        json_object_get(root, "strategies") != NULL) {
        json_object_set(root, "strategies", s->tree[HV_DOC_STRATEGIES]);
    }
    place_plans(v, root);
    return root;
}

/* ---- saving
 * ----------------------------------------------------------------------------------------- */

/* From here on this is what was saved. */
static void adopt(struct save *v, struct hv_workspace *w, const char *path)
{
    struct hv_session *s = v->s;
    for (size_t i = 0; i < v->obsolete.n; i++) {
        unlink(v->obsolete.items[i]);
    }
    for (int d = 0; d < HV_DOC_N; d++) {
        json_incref(s->tree[d]);
        json_decref(s->saved_tree[d]);
        s->saved_tree[d] = s->tree[d];
        free(s->ref[d]);
        s->ref[d] = v->ref[d];
        v->ref[d] = NULL;
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        struct hv__row *r = s->rows.items[i];
        bool there = !r->deleted && r->plan != NULL;
        json_decref(r->saved_plan);
        r->saved_plan = there ? json_incref(r->plan) : NULL;
        free(r->saved_name);
        r->saved_name = there ? hv_xstrdup(r->name) : NULL;
        free(r->saved_ref);
        r->saved_ref = v->plan_ref.items[i];
        v->plan_ref.items[i] = NULL;
    }
    hv_workspace_free(&s->workspace);
    s->workspace = *w;
    s->single_file = v->single;
    s->overwrite = false;
    hv__session_stamp(s);
    hv__session_recovery_remove(s);
    char *kept = hv_xstrdup(path);
    free(s->path);
    s->path = kept;
    hv__session_rows_sweep(s);
    hv__session_rows_publish(s);
    hv__session_rows_sort(s);
    hv__session_moved(s);
}

static enum hv_status make_folders(const struct save *v, struct hv_err *err)
{
    enum hv_status st = hv_file_mkdirs(v->folder, err);
    for (size_t i = 0; st == HV_OK && i < v->plan_ref.n; i++) {
        if (v->plan_ref.items[i] != NULL && strncmp(v->plan_ref.items[i], "plans/", 6) == 0) {
            char *plans = in_folder(v, "plans");
            st = hv_file_mkdirs(plans, err);
            free(plans);
            break;
        }
    }
    return st;
}

static enum hv_status save_to(struct save *v, const char *path, struct hv_err *err)
{
    json_t *root = workspace_tree(v);
    struct hv_json json = {0};
    struct hv_workspace w = {0};
    char *file = v->single ? hv_xstrdup(path) : in_folder(v, "workspace.json");
    add_file(v, hv_xstrdup(file), root);
    hv_json_wrap(&json, root, file);
    /* what would not read back must not be written */
    enum hv_status st = hv_workspace_build(&w, json, v->folder, err);
    if (st == HV_OK) {
        st = make_folders(v, err);
    }
    if (st == HV_OK) {
        st = write_all(v, err);
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

static struct hv__stamp stamp_of(const char *path)
{
    struct stat st;
    if (path == NULL || stat(path, &st) != 0) {
        return (struct hv__stamp){0};
    }
    return (struct hv__stamp){.known = true,
                              .file = (uint64_t)st.st_ino,
                              .bytes = (uint64_t)st.st_size,
                              .changed_s = (int64_t)st.st_mtim.tv_sec,
                              .changed_ns = (int64_t)st.st_mtim.tv_nsec};
}

void hv__session_stamp(struct hv_session *s)
{
    s->stamp = stamp_of(s->workspace.path);
}

/* Refuses once to write over what another program wrote since we read it. */
static enum hv_status check_unchanged(struct hv_session *s, struct hv_err *err)
{
    struct hv__stamp now = stamp_of(s->workspace.path), old = s->stamp;
    bool same = now.file == old.file && now.bytes == old.bytes && now.changed_s == old.changed_s &&
                now.changed_ns == old.changed_ns;
    if (!now.known || !old.known || same || s->overwrite) {
        return HV_OK;
    }
    s->overwrite = true;
    return hv_err_set(err, HV_EIO,
                      "the file changed on disk; save again to overwrite, or :write FOLDER");
}

/* "write FOLDER", "export NAME FILE" */
static void tell_file(struct hv_session *s, const char *verb, const char *name, const char *path)
{
    struct hv_str line = {0};
    hv_str_addf(&line, "%s ", verb);
    if (name != NULL) {
        hv__session_add_word(&line, name);
        hv_str_addc(&line, ' ');
    }
    hv__session_add_word(&line, path);
    hv__session_did(s, "%s", hv_str_cstr(&line));
    hv_str_free(&line);
}

enum hv_status hv_session_save(struct hv_session *s, const char *path, struct hv_err *err)
{
    struct stat st;
    struct hv_str to = {0}, folder = {0};
    if (path == NULL) {
        path = s->path;
    }
    if (path == NULL || path[0] == '\0') {
        return hv_err_set(err, HV_EUSAGE,
                          "this workspace has no place yet: give a folder (write FOLDER)");
    }
    hv_str_adds(&to, path);
    while (to.n > 1 && to.p[to.n - 1] == '/') {
        to.p[--to.n] = '\0';
    }
    struct save v = {.s = s};
    v.single = to.n > 5 && strcmp(to.p + to.n - 5, ".json") == 0 &&
               !(stat(to.p, &st) == 0 && S_ISDIR(st.st_mode));
    v.same = same_place(s->path, to.p);
    const char *slash = strrchr(to.p, '/');
    if (!v.single) {
        hv_str_adds(&folder, to.p);
    } else if (slash != NULL) {
        hv_str_add(&folder, to.p, slash > to.p ? (size_t)(slash - to.p) : 1);
    } else {
        hv_str_addc(&folder, '.');
    }
    v.folder = hv_str_cstr(&folder);
    enum hv_status status = v.same ? check_unchanged(s, err) : HV_OK;
    if (status == HV_OK) {
        status = save_to(&v, to.p, err);
    }
    if (status == HV_OK) {
        tell_file(s, "write", NULL, to.p);
    }
    save_free(&v);
    hv_str_free(&to);
    hv_str_free(&folder);
    return status;
}

enum hv_status hv_session_export(struct hv_session *s, uint32_t id, const char *path,
                                 struct hv_err *err)
{
    const struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || r->deleted) {
        return hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    }
    if (r->plan == NULL) {
        return hv_err_set(err, HV_EUSAGE, "%s has no plan to export", r->name);
    }
    json_t *tree = plan_tree(s, r, false);
    for (int d = 0; d < HV__INPUTS; d++) {
        json_object_set(tree, hv_doc_name((enum hv_doc)d), s->tree[d]);
    }
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    enum hv_status st = hv_file_write(path, hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    json_decref(tree);
    if (st == HV_OK) {
        tell_file(s, "export", r->name, path);
    }
    return st;
}
