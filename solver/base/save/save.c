/*
 * A save of several files: staged beside the old files, committed by the journal, renamed; or the
 * same steps finished or undone after an interruption. Not for the journal's file (journal.c).
 */
#include "solver/base/save/save.h"

#include "solver/base/file.h"
#include "solver/base/rng.h"
#include "solver/base/save/journal.h"
#include "solver/base/target.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct hv_save {
    struct hv__save_journal journal;
};

/* The paths of one file of a save. Owner: places_free. */
struct places {
    struct hv_target target;
    struct hv_str fresh, old; /* the new content and a link to the old one, beside the target */
};

static void places_free(struct places *p)
{
    hv_target_free(&p->target);
    hv_str_free(&p->fresh);
    hv_str_free(&p->old);
}

static void add_path(const struct hv__save_journal *j, const char *name, struct hv_str *out)
{
    hv_str_addf(out, "%s/%s", j->folder, name);
}

/* False with errno set where the links of the name form a loop. */
static bool find_places(const struct hv__save_journal *j, size_t i, struct places *out)
{
    struct hv_str path = {0};
    *out = (struct places){0};
    add_path(j, j->files.items[i].name, &path);
    bool found = hv_target_locate(&out->target, hv_str_cstr(&path));
    int why = errno;
    if (found) {
        hv_str_addf(&out->fresh, "%s/.hetviz-new-%s-%zu", out->target.folder, j->token, i);
        hv_str_addf(&out->old, "%s/.hetviz-old-%s-%zu", out->target.folder, j->token, i);
    }
    hv_str_free(&path);
    errno = why;
    return found;
}

static bool is_there(const struct hv_str *path)
{
    struct stat st;
    return lstat(hv_str_cstr(path), &st) == 0;
}

/* True where the folder of a path lies in the journal's folder, or is it: a name of a journal may
 * lead out of it through a link. */
static bool is_within(const struct hv__save_journal *j, const char *path)
{
    char outer[PATH_MAX], inner[PATH_MAX];
    struct hv_str folder = {0};
    hv_folder_of(path, &folder);
    bool known =
        realpath(j->folder, outer) != NULL && realpath(hv_str_cstr(&folder), inner) != NULL;
    hv_str_free(&folder);
    size_t n = known ? strlen(outer) : 0;
    return known && strncmp(inner, outer, n) == 0 &&
           (inner[n] == '/' || inner[n] == '\0' || strcmp(outer, "/") == 0);
}

/* ---- staging --------------------------------------------------------------------------------- */

/* Links the old content, or copies it where the file system has no links. */
static bool keep_old(const struct places *p, struct hv_err *err)
{
    const char *old = hv_str_cstr(&p->old);
    struct hv_str text = {0};
    if (link(p->target.path, old) == 0) {
        return true;
    }
    if (hv_file_read(p->target.path, &text, err) != HV_OK) {
        hv_str_free(&text);
        return false;
    }
    int fd = open(old, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && hv_target_fill(&p->target, fd, text.p, text.n, true);
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    hv_str_free(&text);
    errno = why;
    if (!ok) {
        (void)hv_io_error(err, p->target.path, "keep the old content of this file");
    }
    return ok;
}

/* A file whose content can be replaced. */
static enum hv_status check_target(const struct places *p, struct hv_err *err)
{
    enum hv_status st = hv_target_check(&p->target, err);
    if (st == HV_OK && p->target.special) {
        st = hv_err_at(err, HV_EIO, p->target.path, 0, 0, "cannot write: it is no plain file");
    }
    return st;
}

static bool write_fresh(const struct places *p, const struct hv__save_entry *e)
{
    int fd = open(hv_str_cstr(&p->fresh), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && hv_target_fill(&p->target, fd, e->bytes, e->n, true);
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        return false;
    }
    errno = why;
    return ok;
}

static enum hv_status stage_file(struct hv__save_journal *j, size_t i, struct hv_err *err)
{
    const struct hv__save_entry *e = &j->files.items[i];
    struct places p;
    enum hv_status st = HV_OK;
    if (!find_places(j, i, &p)) {
        st = hv_io_error(err, e->name, "write");
    }
    if (st == HV_OK) {
        st = check_target(&p, err);
    }
    if (st == HV_OK && !write_fresh(&p, e)) {
        st = hv_io_error(err, p.target.path, "write");
    }
    if (st == HV_OK && p.target.exists && !keep_old(&p, err)) {
        st = HV_EIO;
    }
    places_free(&p);
    return st;
}

static enum hv_status make_folders(const struct hv__save_journal *j, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < j->folders.n; i++) {
        struct hv_str path = {0};
        add_path(j, j->folders.items[i], &path);
        st = hv_file_mkdirs(hv_str_cstr(&path), err);
        hv_str_free(&path);
    }
    return st;
}

/* ---- replacing and putting back -------------------------------------------------------------- */

static void sync_folders(const struct hv__save_journal *j)
{
    struct hv_str last = {0};
    for (size_t i = 0; i < j->files.n; i++) {
        struct places p;
        if (find_places(j, i, &p) && strcmp(hv_str_cstr(&last), p.target.folder) != 0) {
            hv_folder_sync(p.target.folder);
            hv_str_clear(&last);
            hv_str_adds(&last, p.target.folder);
        }
        places_free(&p);
    }
    hv_str_free(&last);
}

/* Renames all new contents to the old names; one that is missing has been renamed already. */
static enum hv_status replace_all(const struct hv__save_journal *j, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < j->files.n; i++) {
        struct places p;
        bool found = find_places(j, i, &p);
        if (!found || (rename(hv_str_cstr(&p.fresh), p.target.path) != 0 && errno != ENOENT)) {
            st = hv_io_error(err, found ? p.target.path : j->files.items[i].name, "write");
        }
        places_free(&p);
    }
    if (st == HV_OK) {
        sync_folders(j);
    }
    return st;
}

/* Puts the old content of one file back, or takes a file away that did not exist before; errno says
 * why not. */
static bool put_one_back(const struct hv__save_journal *j, size_t i, const struct places *p)
{
    const char *target = p->target.path;
    if (is_there(&p->old)) {
        return rename(hv_str_cstr(&p->old), target) == 0;
    }
    bool replaced = j->files.items[i].made && !is_there(&p->fresh);
    return !replaced || !is_within(j, target) || rename(target, hv_str_cstr(&p->fresh)) == 0 ||
           errno == ENOENT;
}

/* Puts all old contents back; goes on after a failure and reports the first. */
static enum hv_status put_back(const struct hv__save_journal *j, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < j->files.n; i++) {
        struct places p;
        bool ok = find_places(j, i, &p) && put_one_back(j, i, &p);
        if (!ok && st == HV_OK) {
            st = hv_io_error(err, j->files.items[i].name, "put back");
        }
        places_free(&p);
    }
    sync_folders(j);
    return st;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool remove_one(const struct hv_str *path)
{
    return unlink(hv_str_cstr(path)) == 0 || errno == ENOENT;
}

/* False where one of them stays. */
static bool remove_temps(const struct hv__save_journal *j)
{
    bool all = true;
    for (size_t i = 0; i < j->files.n; i++) {
        struct places p;
        if (find_places(j, i, &p)) {
            bool fresh = remove_one(&p.fresh), old = remove_one(&p.old);
            all = all && fresh && old;
        }
        places_free(&p);
    }
    return all;
}

static void remove_obsolete(const struct hv__save_journal *j)
{
    for (size_t i = 0; i < j->removed.n; i++) {
        struct hv_str path = {0};
        add_path(j, j->removed.items[i], &path);
        if (is_within(j, hv_str_cstr(&path))) {
            unlink(hv_str_cstr(&path));
        }
        hv_str_free(&path);
    }
}

/* Removes the folders of a save that did not happen; a folder with a file in it stays. False where
 * an empty one stays. */
static bool remove_folders(const struct hv__save_journal *j)
{
    bool all = true;
    for (size_t i = j->folders.n; i-- > 0;) {
        struct hv_str path = {0};
        add_path(j, j->folders.items[i], &path);
        if (is_within(j, hv_str_cstr(&path)) && rmdir(hv_str_cstr(&path)) != 0) {
            all = all && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT);
        }
        hv_str_free(&path);
    }
    return all;
}

/* Removes what the save needed; no file of the user is touched from here on. What cannot be removed
 * now stays named in the journal for the next start. */
static void clean(struct hv__save_journal *j)
{
    if (j->stage != HV__SAVE_CLEAN) {
        (void)hv__save_journal_enter(j, HV__SAVE_CLEAN);
    }
    bool files = remove_temps(j), folders = remove_folders(j);
    if (files && folders) {
        hv__save_journal_remove(j);
    }
}

/* Leaves the folder as it was before the save. */
static enum hv_status undo(struct hv__save_journal *j, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (j->stage == HV__SAVE_COMMIT && !hv__save_journal_enter(j, HV__SAVE_UNDO)) {
        /* without this word in the journal the next start would go forward again */
        st = hv_io_error(err, j->folder, "write");
    } else if (j->stage == HV__SAVE_UNDO) {
        st = put_back(j, err);
    }
    if (st == HV_OK) {
        clean(j);
    }
    return st;
}

/* Finishes what a killed program began, or undoes it; both leave the folder whole. */
static enum hv_status resume(struct hv__save_journal *j, struct hv_err *err)
{
    enum hv_status st = hv__save_journal_read(j, err);
    if (st != HV_OK || (j->read_only && j->stage == HV__SAVE_CLEAN)) {
        return st;
    }
    if (j->read_only) {
        return hv_err_at(err, HV_EIO, j->folder, 0, 0,
                         "a save into this folder was interrupted and only a user who may write "
                         "there can finish it: open it once as that user");
    }
    if (j->stage == HV__SAVE_COMMIT && replace_all(j, NULL) == HV_OK) {
        remove_obsolete(j);
        clean(j);
        return HV_OK;
    }
    return undo(j, err);
}

/* ---- public ---------------------------------------------------------------------------------- */

enum hv_status hv_save_recover(const char *folder, struct hv_err *err)
{
    struct hv__save_journal j;
    enum hv_status st = hv__save_journal_open(&j, folder, false, err);
    if (st == HV_OK && j.fd >= 0) {
        st = resume(&j, err);
    }
    hv__save_journal_free(&j);
    return st;
}

enum hv_status hv_save_recover_beside(const char *path, struct hv_err *err)
{
    struct hv_str folder = {0}, outer = {0};
    if (strcmp(path, "-") == 0) {
        return HV_OK;
    }
    hv_folder_of(path, &folder);
    enum hv_status st = hv_save_recover(hv_str_cstr(&folder), err);
    if (st == HV_OK) {
        hv_str_addf(&outer, "%s/..", hv_str_cstr(&folder));
        st = hv_save_recover(hv_str_cstr(&outer), err);
    }
    hv_str_free(&folder);
    hv_str_free(&outer);
    return st;
}

static void choose_token(struct hv__save_journal *j)
{
    struct timespec now;
    long pid = (long)getpid();
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t h = hv_hash(HV_HASH_START, &now.tv_sec, sizeof now.tv_sec);
    h = hv_hash(h, &now.tv_nsec, sizeof now.tv_nsec);
    h = hv_hash(h, &pid, sizeof pid);
    snprintf(j->token, sizeof j->token, "%016" PRIx64, h);
}

static bool is_empty(const struct hv__save_journal *j)
{
    struct stat st;
    return fstat(j->fd, &st) == 0 && st.st_size == 0;
}

enum hv_status hv_save_begin(struct hv_save **out, const char *folder, struct hv_err *err)
{
    struct hv_save *s = hv_xcalloc(1, sizeof *s);
    enum hv_status st = hv__save_journal_open(&s->journal, folder, true, err);
    if (st == HV_OK && !is_empty(&s->journal)) {
        st = resume(&s->journal, err);
        hv__save_journal_free(&s->journal);
        if (st == HV_OK) {
            st = hv__save_journal_open(&s->journal, folder, true, err);
        }
        if (st == HV_OK && !is_empty(&s->journal)) {
            st = hv_err_at(err, HV_EIO, folder, 0, 0,
                           "cannot remove what an interrupted save left, the files that begin with "
                           ".hetviz-");
        }
    }
    if (st == HV_OK) {
        choose_token(&s->journal);
    } else {
        hv__save_journal_free(&s->journal);
        free(s);
        s = NULL;
    }
    *out = s;
    return st;
}

void hv_save_add(struct hv_save *s, const char *name, const char *bytes, size_t n)
{
    struct hv__save_entry e = {.name = hv_xstrdup(name), .bytes = bytes, .n = n};
    struct places p;
    hv_vec_push(&s->journal.files, e);
    if (find_places(&s->journal, s->journal.files.n - 1, &p)) {
        s->journal.files.items[s->journal.files.n - 1].made = !p.target.exists;
    }
    places_free(&p);
}

void hv_save_remove(struct hv_save *s, const char *name)
{
    hv_vec_push(&s->journal.removed, hv_xstrdup(name));
}

void hv_save_folder(struct hv_save *s, const char *name)
{
    struct hv_str path = {0};
    add_path(&s->journal, name, &path);
    if (!is_there(&path)) {
        hv_vec_push(&s->journal.folders, hv_xstrdup(name));
    }
    hv_str_free(&path);
}

/* Writes everything beside the old files. */
static enum hv_status stage_all(struct hv__save_journal *j, struct hv_err *err)
{
    enum hv_status st =
        hv__save_journal_write(j) ? make_folders(j, err) : hv_io_error(err, j->folder, "write");
    for (size_t i = 0; st == HV_OK && i < j->files.n; i++) {
        st = stage_file(j, i, err);
    }
    if (st == HV_OK) {
        sync_folders(j);
    }
    if (st == HV_OK && !hv__save_journal_enter(j, HV__SAVE_COMMIT)) {
        st = hv_io_error(err, j->folder, "write");
    }
    return st;
}

/* Adds to an error in which state the files are after it. */
static enum hv_status told(struct hv_err *err, const char *state)
{
    struct hv_err own = err != NULL ? *err : (struct hv_err){0};
    return hv_err_at(err, HV_EIO, own.file, own.line, own.col, "%.500s; %s", own.text, state);
}

enum hv_status hv_save_commit(struct hv_save *s, struct hv_err *err)
{
    struct hv__save_journal *j = &s->journal;
    enum hv_status st = stage_all(j, err);
    if (st == HV_OK) {
        st = replace_all(j, err);
    }
    if (st == HV_OK) {
        remove_obsolete(j);
        clean(j);
        return HV_OK;
    }
    return told(err, undo(j, NULL) == HV_OK
                         ? "the old files are unchanged"
                         : "some files are new and the old ones cannot be put back now; the next "
                           "start tries again");
}

void hv_save_free(struct hv_save *s)
{
    if (s == NULL) {
        return;
    }
    if (!s->journal.gone && s->journal.stage == HV__SAVE_CLEAN) {
        (void)undo(&s->journal, NULL);
    }
    hv__save_journal_free(&s->journal);
    free(s);
}
