/*
 * The journal of a save: one line with the stage, of fixed length, then the names as JSON.
 */
#include "solver/base/save/journal.h"

#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/rng.h"
#include "solver/base/target.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S  60
#define POLL_NS 10000000 /* 10 ms */

static const char *const stage_lines[] = {
    [HV__SAVE_CLEAN] = "hetviz-save/1 clean  \n",
    [HV__SAVE_COMMIT] = "hetviz-save/1 commit \n",
    [HV__SAVE_UNDO] = "hetviz-save/1 undo   \n",
};
#define LINE_BYTES 22

/* ---- the file and its lock ------------------------------------------------------------------- */

static char *journal_path(const char *folder)
{
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/" HV__SAVE_JOURNAL, folder);
    return path.p;
}

/* Waits for the lock. File systems without locks count as locked: they have one program at a time.
 */
static bool wait_for_lock(int fd)
{
    const struct timespec nap = {.tv_nsec = POLL_NS};
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) {
            continue;
        }
        if (errno != EWOULDBLOCK) {
            return true;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec >= WAIT_S) {
            errno = EWOULDBLOCK;
            return false;
        }
        nanosleep(&nap, NULL);
    }
    return true;
}

/* True where the path still leads to the open file: its last owner removes it before the lock ends.
 */
static bool is_current(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* Whoever may write the folder's files can finish the save of another user, by the usual mask. */
static int open_file(struct hv__save_journal *j, const char *path, bool make)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = open(path, O_RDWR | flags | (make ? O_CREAT : 0), 0666);
    j->read_only = false;
    if (fd < 0 && !make && (errno == EACCES || errno == EROFS || errno == EPERM)) {
        j->read_only = true;
        fd = open(path, O_RDONLY | flags);
    }
    return fd;
}

enum hv_status hv__save_journal_open(struct hv__save_journal *j, const char *folder, bool make,
                                     struct hv_err *err)
{
    char *path = journal_path(folder);
    enum hv_status st = HV_OK;
    *j = (struct hv__save_journal){.folder = hv_xstrdup(folder), .fd = -1};
    while (st == HV_OK && j->fd < 0) {
        int fd = open_file(j, path, make);
        if (fd < 0 && errno == ENOENT && !make) {
            break;
        }
        if (fd < 0) {
            st = hv_io_error(err, path, make ? "write" : "read");
        } else if (!wait_for_lock(fd)) {
            st = hv_err_at(err, HV_EIO, path, 0, 0,
                           "another program has been saving here for more than %d s; end it and "
                           "try again",
                           WAIT_S);
            close(fd);
        } else if (is_current(fd, path)) {
            j->fd = fd;
        } else {
            close(fd);
        }
    }
    free(path);
    return st;
}

void hv__save_journal_remove(struct hv__save_journal *j)
{
    char *path = journal_path(j->folder);
    unlink(path);
    free(path);
    j->gone = true;
    hv_folder_sync(j->folder);
}

static void free_names(struct hv__save_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->items[i]);
    }
    hv_vec_free(names);
}

static void forget(struct hv__save_journal *j)
{
    for (size_t i = 0; i < j->files.n; i++) {
        free(j->files.items[i].name);
    }
    hv_vec_free(&j->files);
    free_names(&j->removed);
    free_names(&j->folders);
}

void hv__save_journal_free(struct hv__save_journal *j)
{
    forget(j);
    if (j->fd >= 0) {
        close(j->fd);
    }
    free(j->folder);
    *j = (struct hv__save_journal){.fd = -1};
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *names_tree(const struct hv__save_names *names)
{
    json_t *list = json_array();
    for (size_t i = 0; i < names->n; i++) {
        json_array_append_new(list, json_string(names->items[i]));
    }
    return list;
}

static json_t *tree_of(const struct hv__save_journal *j)
{
    json_t *root = json_object(), *files = json_array();
    for (size_t i = 0; i < j->files.n; i++) {
        const struct hv__save_entry *e = &j->files.items[i];
        json_array_append_new(files,
                              json_pack("{s:s, s:b}", "name", e->name, "made", (int)e->made));
    }
    json_object_set_new(root, "token", json_string(j->token));
    json_object_set_new(root, "files", files);
    json_object_set_new(root, "remove", names_tree(&j->removed));
    json_object_set_new(root, "folders", names_tree(&j->folders));
    return root;
}

static bool is_synced(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

bool hv__save_journal_write(struct hv__save_journal *j)
{
    struct hv_str text = {0};
    json_t *root = tree_of(j);
    hv_str_adds(&text, stage_lines[HV__SAVE_CLEAN]);
    hv_json_write(&text, root, true);
    j->stage = HV__SAVE_CLEAN;
    bool ok = ftruncate(j->fd, 0) == 0 && lseek(j->fd, 0, SEEK_SET) == 0 &&
              hv_fd_write(j->fd, text.p, text.n) && is_synced(j->fd);
    int why = errno;
    json_decref(root);
    hv_str_free(&text);
    if (ok) {
        hv_folder_sync(j->folder);
    }
    errno = why;
    return ok;
}

bool hv__save_journal_enter(struct hv__save_journal *j, enum hv__save_stage stage)
{
    if (pwrite(j->fd, stage_lines[stage], LINE_BYTES, 0) != LINE_BYTES) {
        return false;
    }
    j->stage = stage;
    return is_synced(j->fd);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A name inside the folder: relative, and no part leads up. */
static bool is_inside(const char *name)
{
    if (name == NULL || name[0] == '\0' || name[0] == '/') {
        return false;
    }
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strcspn(part, "/") == 2 && strncmp(part, "..", 2) == 0) {
            return false;
        }
    }
    return true;
}

static bool take_token(struct hv__save_journal *j, const json_t *root)
{
    const char *token = json_string_value(json_object_get(root, "token"));
    size_t n = sizeof j->token - 1;
    bool good = token != NULL && strlen(token) == n && strspn(token, "0123456789abcdef") == n;
    if (good) {
        memcpy(j->token, token, n + 1);
    }
    return good;
}

static bool take_files(struct hv__save_journal *j, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *file = json_array_get(list, i), *made = json_object_get(file, "made");
        const char *name = json_string_value(json_object_get(file, "name"));
        if (!is_inside(name) || !json_is_boolean(made)) {
            return false;
        }
        struct hv__save_entry e = {.name = hv_xstrdup(name), .made = json_is_true(made)};
        hv_vec_push(&j->files, e);
    }
    return json_is_array(list);
}

static bool take_names(struct hv__save_names *out, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!is_inside(name)) {
            return false;
        }
        hv_vec_push(out, hv_xstrdup(name));
    }
    return json_is_array(list);
}

static bool take_tree(struct hv__save_journal *j, const json_t *root)
{
    bool good = take_token(j, root) && take_files(j, json_object_get(root, "files"));
    return good && take_names(&j->removed, json_object_get(root, "remove")) &&
           take_names(&j->folders, json_object_get(root, "folders"));
}

/* The stage of the first line; false where it is none. */
static bool stage_of(const struct hv_str *text, enum hv__save_stage *out)
{
    for (size_t i = 0; i < HV_COUNT(stage_lines); i++) {
        if (text->n >= LINE_BYTES && memcmp(text->p, stage_lines[i], LINE_BYTES) == 0) {
            *out = (enum hv__save_stage)i;
            return true;
        }
    }
    return false;
}

enum hv_status hv__save_journal_read(struct hv__save_journal *j, struct hv_err *err)
{
    char *path = journal_path(j->folder);
    struct hv_str text = {0};
    struct hv_json json = {0};
    enum hv_status st = hv_file_read(path, &text, err);
    if (st == HV_OK) {
        j->stage = HV__SAVE_CLEAN;
        bool staged = stage_of(&text, &j->stage);
        bool good =
            staged &&
            hv_json_parse(&json, text.p + LINE_BYTES, text.n - LINE_BYTES, path, NULL) == HV_OK &&
            take_tree(j, json.root);
        if (!good) {
            forget(j);
        }
        if (!good && j->stage != HV__SAVE_CLEAN) {
            st = hv_err_at(err, HV_EINPUT, path, 2, 1,
                           "this journal of an interrupted save cannot be read; expected the JSON "
                           "object that hetviz wrote: compare the files of the folder with those "
                           "that begin with .hetviz-, then remove both");
        }
    }
    hv_json_free(&json);
    hv_str_free(&text);
    free(path);
    return st;
}
