/*
 * Recovery: unsaved edits lie in the state folder while the program lives, so that one that dies
 * loses at most the last seconds. Not for saving (session_save.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
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

static enum hv_status recovery_folder(const struct hv_session *s, struct hv_str *out,
                                      struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (s->state_dir != NULL) {
        hv_str_adds(out, s->state_dir);
    } else {
        st = hv_user_dir(out, HV_DIR_STATE, err);
    }
    hv_str_adds(out, "/recovery");
    return st;
}

/* "0123456789abcdef-": the same for every program that has this workspace open (FNV-1a). */
static void file_prefix(const struct hv_session *s, struct hv_str *out)
{
    char real[PATH_MAX];
    const char *key = s->path != NULL ? realpath(s->path, real) : NULL;
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *p = key != NULL ? key : (s->path != NULL ? s->path : ""); *p != '\0'; p++) {
        h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    hv_str_addf(out, "%016" PRIx64 "-", h);
}

/* ---- writing -----------------------------------------------------------------------------------
 */

static json_t *unsaved_plans(const struct hv_session *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct hv__row *r = s->rows.items[i];
        if (r->deleted || r->plan == NULL || hv__session_row_is_saved(r)) {
            continue;
        }
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(r->name));
        json_object_set(row, "plan", r->plan);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *recovery_tree(const struct hv_session *s)
{
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string(FORMAT));
    json_object_set_new(root, "workspace", json_string(s->path != NULL ? s->path : ""));
    json_object_set_new(root, "pid", json_integer((json_int_t)getpid()));
    for (int d = 0; d < HV_DOC_N; d++) {
        if (s->tree[d] != s->saved_tree[d]) {
            json_object_set(root, hv_doc_name((enum hv_doc)d), s->tree[d]);
        }
    }
    json_object_set_new(root, "plans", unsaved_plans(s));
    return root;
}

/* A name that is not that of the file on offer: process numbers come back. */
static enum hv_status choose_name(struct hv_session *s, struct hv_err *err)
{
    struct hv_str path = {0};
    enum hv_status st = HV_OK;
    for (unsigned k = 0; st == HV_OK; k++) {
        hv_str_clear(&path);
        st = recovery_folder(s, &path, err);
        if (st == HV_OK && k == 0) {
            st = hv_file_mkdirs(hv_str_cstr(&path), err);
        }
        hv_str_addc(&path, '/');
        file_prefix(s, &path);
        hv_str_addf(&path, "%ld-%u.json", (long)getpid(), k);
        if (st == HV_OK && access(hv_str_cstr(&path), F_OK) != 0) {
            s->recovery_out = path.p;
            return HV_OK;
        }
    }
    hv_str_free(&path);
    return st;
}

enum hv_status hv_session_autosave(struct hv_session *s, struct hv_err *err)
{
    enum hv_status st = s->recovery_out != NULL ? HV_OK : choose_name(s, err);
    if (st != HV_OK) {
        return st;
    }
    json_t *tree = recovery_tree(s);
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    st = hv_file_write(s->recovery_out, hv_str_cstr(&text), text.n, err);
    if (st == HV_OK) {
        s->unsafe_s = HV_UNKNOWN;
    }
    hv_str_free(&text);
    json_decref(tree);
    return st;
}

void hv__session_recovery_remove(struct hv_session *s)
{
    if (s->recovery_out != NULL) {
        unlink(s->recovery_out);
    }
    free(s->recovery_out);
    s->recovery_out = NULL;
    s->unsafe_s = HV_UNKNOWN;
}

static double due_s(const struct hv_session *s)
{
    if (!hv_known(s->unsafe_s)) {
        return HV_UNKNOWN;
    }
    return fmin(s->edited_s + HV_SESSION_IDLE_S, s->unsafe_s + HV_SESSION_AUTOSAVE_S);
}

void hv__session_recovery_tick(struct hv_session *s)
{
    double due = due_s(s), now = hv__session_now(s);
    struct hv_err err = {0};
    if (!hv_known(due) || now < due) {
        return;
    }
    if (!hv_session_dirty(s)) {
        hv__session_recovery_remove(s);
    } else if (hv_session_autosave(s, &err) != HV_OK) {
        hv_str_clear(&s->notice);
        hv_str_addf(&s->notice, "unsaved edits cannot be kept safe: %s", err.text);
        s->unsafe_s = s->edited_s = now + HV_SESSION_RETRY_S; /* try again, not at once */
        hv__session_moved(s);
    }
}

int hv__session_recovery_timeout_ms(const struct hv_session *s)
{
    double due = due_s(s);
    if (!hv_known(due)) {
        return -1;
    }
    double ms = ceil((due - hv__session_now(s)) * 1e3);
    return ms < 0 ? 0 : (ms > 1e6 ? 1000000 : (int)ms);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

/* Is the program that wrote a file gone? Our own number is an older one's: we wrote none yet. */
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
 * ".0123456789abcdef-PID-K.json.XXXXXX" (hv_file_write's name for one that takes the place of
 * ours); 0 = it is none. */
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
    return strncmp(end, ".json.", 6) == 0 && strlen(end) == 12 ? pid : 0;
}

/* What programs left that were killed while they wrote: the file beside it is whole. */
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

static void try_offer(struct hv_session *s, const char *path)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    if (hv_file_read(path, &text, NULL) == HV_OK &&
        hv_json_parse(&json, hv_str_cstr(&text), text.n, path, NULL) == HV_OK &&
        is_orphan(json.root)) {
        s->recovery = json_incref(json.root);
        s->recovery_in = hv_xstrdup(path);
    }
    hv_json_free(&json);
    hv_str_free(&text);
}

void hv__session_recovery_look(struct hv_session *s)
{
    struct hv_str folder = {0}, prefix = {0}, path = {0};
    DIR *d = recovery_folder(s, &folder, NULL) == HV_OK ? opendir(hv_str_cstr(&folder)) : NULL;
    file_prefix(s, &prefix);
    if (d != NULL) {
        sweep(d, hv_str_cstr(&folder));
    }
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL && s->recovery == NULL;
         e = readdir(d)) {
        size_t n = strlen(e->d_name);
        if (strncmp(e->d_name, prefix.p, prefix.n) != 0 || n < 5 ||
            strcmp(e->d_name + n - 5, ".json") != 0) {
            continue;
        }
        hv_str_clear(&path);
        hv_str_addf(&path, "%s/%s", hv_str_cstr(&folder), e->d_name);
        try_offer(s, hv_str_cstr(&path));
    }
    if (d != NULL) {
        closedir(d);
    }
    hv_str_free(&folder);
    hv_str_free(&prefix);
    hv_str_free(&path);
}

bool hv_session_recovery_offered(const struct hv_session *s)
{
    return s->recovery != NULL;
}

void hv_session_recovery_describe(const struct hv_session *s, struct hv_str *out)
{
    size_t n_plans = json_array_size(json_object_get(s->recovery, "plans"));
    const char *comma = "";
    for (int d = 0; d < HV_DOC_N; d++) {
        const char *name = hv_doc_name((enum hv_doc)d);
        if (json_object_get(s->recovery, name) == NULL) {
            continue;
        }
        hv_str_addf(out, "%s%s", comma, name);
        comma = ", ";
    }
    if (n_plans > 0) {
        hv_str_addf(out, "%s%zu plan%s", comma, n_plans, n_plans == 1 ? "" : "s");
    }
}

void hv_session_recovery_diff(const struct hv_session *s, struct hv_str *out)
{
    const json_t *plans = json_object_get(s->recovery, "plans");
    for (int d = 0; d < HV_DOC_N; d++) {
        const json_t *tree = json_object_get(s->recovery, hv_doc_name((enum hv_doc)d));
        if (tree != NULL) {
            (void)hv__session_diff((enum hv_doc)d, s->tree[d], tree, out);
        }
    }
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(plans, i), "name"));
        hv_str_addf(out, "plan %s\n", name != NULL ? name : "plan");
    }
}

void hv_session_recovery_discard(struct hv_session *s)
{
    if (s->recovery_in != NULL) {
        unlink(s->recovery_in);
    }
    free(s->recovery_in);
    s->recovery_in = NULL;
    json_decref(s->recovery);
    s->recovery = NULL;
}

enum hv_status hv_session_recover(struct hv_session *s, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (int d = 0; st == HV_OK && d < HV_DOC_N; d++) {
        json_t *tree = json_object_get(s->recovery, hv_doc_name((enum hv_doc)d));
        char label[64];
        snprintf(label, sizeof label, "recover %s", hv_doc_name((enum hv_doc)d));
        if (tree != NULL) {
            st = hv_session_replace(s, (enum hv_doc)d, json_incref(tree), label, err);
        }
    }
    const json_t *plans = json_object_get(s->recovery, "plans");
    for (size_t i = 0; st == HV_OK && i < json_array_size(plans); i++) {
        const json_t *row = json_array_get(plans, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        json_t *plan = json_object_get(row, "plan");
        if (plan != NULL) {
            st = hv_session_row_add(s, name != NULL ? name : "plan", json_incref(plan), NULL, err);
        }
    }
    /* what was taken over is safe under our own name before the old file goes */
    if (st == HV_OK && hv_session_dirty(s)) {
        st = hv_session_autosave(s, err);
    }
    if (st == HV_OK) {
        hv_session_recovery_discard(s);
    }
    return st;
}
