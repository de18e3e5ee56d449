/*
 * The recovery file of this program, and those of crashed programs. Not for saving (save.c).
 */
#include "ui/session/store/recovery.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "ui/session/doc/diff.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "hetviz.recovery/1"

/* Unsaved edits are written after this long without an edit … */
#define IDLE_S 0.5
/* … and at least this often while edits go on: a killed program loses less than two seconds. */
#define AUTOSAVE_S 1.5
/* Delay before the next attempt after a failed write. */
#define RETRY_S 30.0

struct hv__recovery {
    const char *state_dir; /* borrowed; NULL: the user's own */
    double edited_s;       /* clock of the last unsaved change */
    double unsafe_s;       /* clock of the first change that no file holds; HV_UNKNOWN = none */
    char *own;             /* own recovery file once written */
    char *offered;         /* file of a program that died; NULL = none */
    json_t *content;       /* what it holds */
    bool left;             /* the own file is left behind on purpose */
};

struct hv__recovery *hv__recovery_new(const char *state_dir)
{
    struct hv__recovery *r = hv_xcalloc(1, sizeof *r);
    r->state_dir = state_dir;
    r->unsafe_s = HV_UNKNOWN;
    return r;
}

void hv__recovery_free(struct hv__recovery *r)
{
    json_decref(r->content);
    free(r->offered);
    free(r->own);
    free(r);
}

static enum hv_status recovery_folder(const struct hv__recovery *r, struct hv_str *out,
                                      struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (r->state_dir != NULL) {
        hv_str_adds(out, r->state_dir);
    } else {
        st = hv_user_dir(out, HV_DIR_STATE, err);
    }
    hv_str_adds(out, "/recovery");
    return st;
}

/* "0123456789abcdef-": the same for every program that has this workspace open (FNV-1a). */
static void file_prefix(const char *workspace, struct hv_str *out)
{
    char real[PATH_MAX];
    const char *key = workspace != NULL ? realpath(workspace, real) : NULL;
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *p = key != NULL ? key : (workspace != NULL ? workspace : ""); *p != '\0';
         p++) {
        h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    hv_str_addf(out, "%016" PRIx64 "-", h);
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *unsaved_plans(const struct hv__rows *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < hv__rows_n(rows); i++) {
        const struct hv_row *r = hv__rows_at(rows, i);
        if (r->deleted || r->plan == NULL || r->saved) {
            continue;
        }
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(r->name));
        json_object_set(row, "plan", (json_t *)(uintptr_t)r->plan);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *recovery_tree(const struct hv__recovery *r, const char *workspace,
                             const struct hv__docs *docs, const struct hv__rows *rows)
{
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string(FORMAT));
    json_object_set_new(root, "workspace", json_string(workspace != NULL ? workspace : ""));
    json_object_set_new(root, "pid", json_integer((json_int_t)getpid()));
    if (r->left) {
        json_object_set_new(root, "left", json_true());
    }
    for (int d = 0; d < HV_DOC_N; d++) {
        if (hv__docs_is_edited(docs, (enum hv_doc)d)) {
            json_object_set(root, hv_doc_name((enum hv_doc)d), hv__docs_tree(docs, (enum hv_doc)d));
        }
    }
    json_object_set_new(root, "plans", unsaved_plans(rows));
    return root;
}

/* A name other than that of the offered file, because process ids are reused. */
static enum hv_status choose_name(struct hv__recovery *r, const char *workspace, struct hv_err *err)
{
    struct hv_str path = {0};
    enum hv_status st = HV_OK;
    for (unsigned k = 0; st == HV_OK; k++) {
        hv_str_clear(&path);
        st = recovery_folder(r, &path, err);
        if (st == HV_OK && k == 0) {
            st = hv_file_mkdirs(hv_str_cstr(&path), err);
        }
        hv_str_addc(&path, '/');
        file_prefix(workspace, &path);
        hv_str_addf(&path, "%ld-%u.json", (long)getpid(), k);
        if (st == HV_OK && access(hv_str_cstr(&path), F_OK) != 0) {
            r->own = path.p;
            return HV_OK;
        }
    }
    hv_str_free(&path);
    return st;
}

enum hv_status hv__recovery_write(struct hv__recovery *r, const char *workspace,
                                  const struct hv__docs *docs, const struct hv__rows *rows,
                                  struct hv_err *err)
{
    enum hv_status st = r->own != NULL ? HV_OK : choose_name(r, workspace, err);
    if (st != HV_OK) {
        return st;
    }
    json_t *tree = recovery_tree(r, workspace, docs, rows);
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    st = hv_file_write(r->own, hv_str_cstr(&text), text.n, err);
    if (st == HV_OK) {
        r->unsafe_s = HV_UNKNOWN;
    }
    hv_str_free(&text);
    json_decref(tree);
    return st;
}

void hv__recovery_remove(struct hv__recovery *r)
{
    if (r->own != NULL) {
        unlink(r->own);
    }
    free(r->own);
    r->own = NULL;
    r->unsafe_s = HV_UNKNOWN;
}

void hv__recovery_saved(struct hv__recovery *r)
{
    hv__recovery_remove(r);
    if (json_is_true(json_object_get(r->content, "left"))) {
        hv__recovery_discard(r);
    }
}

void hv__recovery_leave(struct hv__recovery *r)
{
    r->left = true;
}

/* ---- when ------------------------------------------------------------------------------------ */

void hv__recovery_edited(struct hv__recovery *r, double now_s)
{
    r->edited_s = now_s;
    if (!hv_known(r->unsafe_s)) {
        r->unsafe_s = now_s;
    }
}

void hv__recovery_retry(struct hv__recovery *r, double now_s)
{
    r->unsafe_s = r->edited_s = now_s + RETRY_S;
}

double hv__recovery_due_s(const struct hv__recovery *r)
{
    if (!hv_known(r->unsafe_s)) {
        return HV_UNKNOWN;
    }
    return fmin(r->edited_s + IDLE_S, r->unsafe_s + AUTOSAVE_S);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* True where the program that wrote a file has ended. A file with this process's id is of an older
 * process, because this one has written none yet. */
static bool is_gone(json_int_t pid)
{
    return pid > 0 && pid <= INT_MAX &&
           (pid == (json_int_t)getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH));
}

static bool is_orphan(const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    return format != NULL && strcmp(format, FORMAT) == 0 &&
           is_gone(json_integer_value(json_object_get(root, "pid")));
}

/* Number of the program that has or had this half-written file,
 * ".0123456789abcdef-PID-K.json.hetviz-XXXXXX" (hv_file_write's name for one that takes the place
 * of ours; older versions had no "hetviz-"); 0 = it is none. */
static long half_written_by(const char *name)
{
    char *end = NULL;
    if (name[0] != '.' || strspn(name + 1, "0123456789abcdef") != 16 || name[17] != '-') {
        return 0;
    }
    errno = 0;
    long pid = strtol(name + 18, &end, 10);
    if (errno != 0 || end == name + 18 || *end != '-') {
        return 0;
    }
    end += 1 + strspn(end + 1, "0123456789");
    if (strncmp(end, ".json.", 6) != 0) {
        return 0;
    }
    end += strncmp(end + 6, "hetviz-", 7) == 0 ? 13 : 6;
    return strlen(end) == 6 ? pid : 0;
}

/* Removes incomplete files of programs killed while writing: the file beside it is complete. */
static void sweep(DIR *d, const char *folder)
{
    struct hv_str path = {0};
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (!is_gone(half_written_by(e->d_name))) {
            continue;
        }
        hv_str_clear(&path);
        hv_str_addf(&path, "%s/%s", folder, e->d_name);
        unlink(hv_str_cstr(&path));
    }
    hv_str_free(&path);
    rewinddir(d);
}

static void try_offer(struct hv__recovery *r, const char *path)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    if (hv_file_read(path, &text, NULL) == HV_OK &&
        hv_json_parse(&json, hv_str_cstr(&text), text.n, path, NULL) == HV_OK &&
        is_orphan(json.root)) {
        r->content = json_incref(json.root);
        r->offered = hv_xstrdup(path);
    }
    hv_json_free(&json);
    hv_str_free(&text);
}

void hv__recovery_look(struct hv__recovery *r, const char *workspace)
{
    struct hv_str folder = {0}, prefix = {0}, path = {0};
    DIR *d = recovery_folder(r, &folder, NULL) == HV_OK ? opendir(hv_str_cstr(&folder)) : NULL;
    file_prefix(workspace, &prefix);
    if (d != NULL) {
        sweep(d, hv_str_cstr(&folder));
    }
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL && r->content == NULL;
         e = readdir(d)) {
        size_t n = strlen(e->d_name);
        if (strncmp(e->d_name, prefix.p, prefix.n) != 0 || n < 5 ||
            strcmp(e->d_name + n - 5, ".json") != 0) {
            continue;
        }
        hv_str_clear(&path);
        hv_str_addf(&path, "%s/%s", hv_str_cstr(&folder), e->d_name);
        try_offer(r, hv_str_cstr(&path));
    }
    if (d != NULL) {
        closedir(d);
    }
    hv_str_free(&folder);
    hv_str_free(&prefix);
    hv_str_free(&path);
}

const json_t *hv__recovery_content(const struct hv__recovery *r)
{
    return r->content;
}

void hv__recovery_diff(const struct hv__recovery *r, const struct hv__docs *docs,
                       struct hv_str *out)
{
    const json_t *plans = json_object_get(r->content, "plans");
    for (int d = 0; d < HV_DOC_N; d++) {
        const json_t *tree = json_object_get(r->content, hv_doc_name((enum hv_doc)d));
        if (tree != NULL) {
            (void)hv__doc_diff((enum hv_doc)d, hv__docs_tree(docs, (enum hv_doc)d), tree, out);
        }
    }
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(plans, i), "name"));
        hv_str_addf(out, "plan %s\n", name != NULL ? name : "plan");
    }
}

void hv__recovery_discard(struct hv__recovery *r)
{
    if (r->offered != NULL) {
        unlink(r->offered);
    }
    free(r->offered);
    r->offered = NULL;
    json_decref(r->content);
    r->content = NULL;
}
