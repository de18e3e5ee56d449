/*
 * Reads and writes whole files, and locates hetviz's own data and the user's folders. Handles bytes
 * only; formats are read elsewhere.
 */
#include "solver/base/file.h"

#include "solver/base/arena.h"
#include "solver/base/target.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HV_PREFIX
#define HV_PREFIX "/usr/local"
#endif

static bool is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

static enum hv_status over_limit(const char *path, struct hv_err *err)
{
    return hv_err_at(err, HV_ELIMIT, path, 0, 0, "larger than %zu MiB, the most that is read",
                     HV_FILE_LIMIT >> 20);
}

static enum hv_status read_all(int fd, const char *path, struct hv_str *out, struct hv_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return hv_io_error(err, path, "read");
    }
    if (S_ISDIR(st.st_mode)) {
        return hv_err_at(err, HV_EIO, path, 0, 0, "cannot read: it is a directory");
    }
    if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > HV_FILE_LIMIT) {
        return over_limit(path, err);
    }
    /* one byte above the size, so that read reports the end of the file */
    size_t expected = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : 0;
    size_t start = out->n;
    enum hv_status s = HV_OK;
    for (;;) {
        size_t got = out->n - start, chunk = got < expected ? expected - got : 65536;
        hv_str_reserve(out, chunk);
        ssize_t n = read(fd, out->p + out->n, chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            s = hv_io_error(err, path, "read");
        } else if (got + (size_t)n > HV_FILE_LIMIT) {
            s = over_limit(path, err);
        }
        if (n <= 0 || s != HV_OK) {
            break;
        }
        out->n += (size_t)n;
    }
    out->n = s == HV_OK ? out->n : start;
    out->p[out->n] = '\0';
    return s;
}

enum hv_status hv_file_read(const char *path, struct hv_str *out, struct hv_err *err)
{
    if (is_dash(path)) {
        return read_all(STDIN_FILENO, "(standard input)", out, err);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return hv_io_error(err, path, "read");
    }
    enum hv_status s = read_all(fd, path, out, err);
    close(fd);
    return s;
}

enum hv_status hv_descriptors_error(struct hv_err *err, const char *what, int why)
{
    struct rlimit most;

    if (why != EMFILE || getrlimit(RLIMIT_NOFILE, &most) != 0) {
        return hv_err_set(err, HV_EIO, "%s: %s", what, strerror(why));
    }
    return hv_err_set(err, HV_EIO,
                      "%s: too few file descriptors, this process may have %llu; raise the limit "
                      "(`ulimit -n 64` or more)",
                      what, (unsigned long long)most.rlim_cur);
}

/** Moves one descriptor; false with errno where it cannot be moved. */
static bool lift(int *fd)
{
    if (*fd > STDERR_FILENO) {
        return fcntl(*fd, F_SETFD, FD_CLOEXEC) == 0;
    }
    int up = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (up < 0) {
        return false;
    }
    (void)close(*fd);
    *fd = up;
    return true;
}

bool hv_descriptors_lift(int pair[2])
{
    if (lift(&pair[0]) && lift(&pair[1])) {
        return true;
    }
    int why = errno;
    (void)close(pair[0]);
    (void)close(pair[1]);
    pair[0] = pair[1] = -1;
    errno = why;
    return false;
}

const char *hv_file_kind(unsigned mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

enum hv_status hv_file_read_regular(const char *path, struct hv_str *out, struct hv_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        return hv_io_error(err, path, "read");
    }
    enum hv_status s = HV_OK;
    if (fstat(fd, &st) != 0) {
        s = hv_io_error(err, path, "read");
    } else if (!S_ISREG(st.st_mode)) {
        s = hv_err_at(err, HV_EIO, path, 0, 0, "this is %s, expected a file",
                      hv_file_kind(st.st_mode));
    }
    s = s == HV_OK ? read_all(fd, path, out, err) : s;
    close(fd);
    return s;
}

static enum hv_status write_direct(const char *path, const char *bytes, size_t n,
                                   struct hv_err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return hv_io_error(err, path, "write");
    }
    bool ok = hv_fd_write(fd, bytes, n);
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    errno = why;
    return ok ? HV_OK : hv_io_error(err, path, "write");
}

/* The content to write, and whether it has to be durable (survive a loss of power). */
struct content {
    const char *bytes;
    size_t n;
    bool durable;
};

/* ---- temporary files ------------------------------------------------------------------------- */

/* Ending of the names of temporary files, ".NAME.hetviz-XXXXXX". A program holds a lock on its file
 * until it is renamed, so a file without a lock belongs to a program that was killed. */
#define TEMP_MARK ".hetviz-"
#define TEMP_TAIL (sizeof TEMP_MARK - 1 + 6)

#define NAME_CAP 100 /* bytes of the target's name that its temporary file repeats */

/* A file beside the target, open and locked; -1 with errno set. Its name is appended to `path`. */
static int make_temp(const struct hv_target *t, struct hv_str *path)
{
    const char *slash = strrchr(t->path, '/');
    for (int tries = 0; tries < 100; tries++) {
        struct stat st;
        hv_str_clear(path);
        hv_str_addf(path, "%s/.%.*s" TEMP_MARK "XXXXXX", t->folder, NAME_CAP,
                    slash ? slash + 1 : t->path);
        int fd = mkstemp(path->p);
        if (fd < 0) {
            return -1;
        }
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        /* a sweep may have seen the file before it was locked, and removed it */
        bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (locked && fstat(fd, &st) == 0 && st.st_nlink > 0) {
            return fd;
        }
        close(fd);
    }
    errno = EAGAIN;
    return -1;
}

/* True for the name of a temporary file, of the target `of` where given. */
static bool is_temp_name(const char *name, const char *of)
{
    size_t n = strlen(name);
    if (name[0] != '.' || n <= TEMP_TAIL + 1 ||
        strncmp(name + n - TEMP_TAIL, TEMP_MARK, sizeof TEMP_MARK - 1) != 0) {
        return false;
    }
    for (size_t i = n - 6; i < n; i++) {
        if (!isalnum((unsigned char)name[i])) {
            return false;
        }
    }
    size_t stem = n - 1 - TEMP_TAIL;
    return of == NULL || (stem == strnlen(of, NAME_CAP) && strncmp(name + 1, of, stem) == 0);
}

/* Removes a temporary file of this user that no program holds a lock on. */
static void remove_stale(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        unlink(path);
    }
    close(fd);
}

static void sweep(const char *folder, const char *of)
{
    struct hv_str path = {0};
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (is_temp_name(e->d_name, of)) {
            hv_str_clear(&path);
            hv_str_addf(&path, "%s/%s", folder, e->d_name);
            remove_stale(hv_str_cstr(&path));
        }
    }
    if (d) {
        closedir(d);
    }
    hv_str_free(&path);
}

void hv_file_sweep(const char *folder)
{
    sweep(folder, NULL);
}

/* ---- writing --------------------------------------------------------------------------------- */

static enum hv_status replace_file(const struct hv_target *t, const char *path,
                                   const struct content *content, struct hv_err *err)
{
    struct hv_str temp = {0};
    const char *slash = strrchr(t->path, '/');
    sweep(t->folder, slash ? slash + 1 : t->path);
    int fd = make_temp(t, &temp);
    bool ok = fd >= 0 && hv_target_fill(t, fd, content->bytes, content->n, content->durable) &&
              rename(temp.p, t->path) == 0;
    int why = errno;
    if (ok && content->durable) {
        hv_folder_sync(t->folder);
    } else if (!ok && fd >= 0) {
        unlink(temp.p);
    }
    if (fd >= 0) {
        close(fd); /* not before the rename: it ends the lock */
    }
    hv_str_free(&temp);
    errno = why;
    return ok ? HV_OK : hv_io_error(err, path, "write");
}

static enum hv_status write_file(const char *path, const struct content *content,
                                 struct hv_err *err)
{
    struct hv_target t;
    enum hv_status s =
        hv_target_locate(&t, path) ? hv_target_check(&t, err) : hv_io_error(err, path, "write");
    if (s == HV_OK) {
        s = t.special ? write_direct(path, content->bytes, content->n, err)
                      : replace_file(&t, path, content, err);
    }
    hv_target_free(&t);
    return s;
}

enum hv_status hv_file_write(const char *path, const char *bytes, size_t n, struct hv_err *err)
{
    if (is_dash(path)) {
        return hv_fd_write(STDOUT_FILENO, bytes, n)
                   ? HV_OK
                   : hv_io_error(err, "(standard output)", "write");
    }
    return write_file(path, &(struct content){bytes, n, true}, err);
}

enum hv_status hv_file_write_soon(const char *path, const char *bytes, size_t n, struct hv_err *err)
{
    return write_file(path, &(struct content){bytes, n, false}, err);
}

enum hv_status hv_file_mkdirs(const char *path, struct hv_err *err)
{
    char *p = hv_xstrdup(path);
    size_t n = strlen(p);
    enum hv_status s = HV_OK;
    for (size_t i = 1; i <= n && s == HV_OK; i++) {
        if ((p[i] != '/' && p[i] != '\0') || p[i - 1] == '/') {
            continue;
        }
        p[i] = '\0';
        struct stat st;
        if (mkdir(p, 0700) != 0) {
            int why = errno;
            if (stat(p, &st) != 0 || !S_ISDIR(st.st_mode)) {
                errno = why;
                s = hv_io_error(err, p, "make this folder");
            }
        }
        p[i] = path[i];
    }
    free(p);
    return s;
}

/* Appends to out when folder + "/" + name exists. */
static bool try_path(struct hv_str *out, const char *folder, const char *name)
{
    struct hv_str p = {0};
    hv_str_addf(&p, "%s/%s", folder, name);
    bool there = access(p.p, F_OK) == 0;
    if (there) {
        hv_str_add(out, p.p, p.n);
    }
    hv_str_free(&p);
    return there;
}

static bool has(const char *folder, const char *name)
{
    struct hv_str none = {0};
    bool there = try_path(&none, folder, name);
    hv_str_free(&none);
    return there;
}

static bool is_source_tree(const char *folder)
{
    return has(folder, "plugins") && (has(folder, "share/schema") || has(folder, "share/devices"));
}

/* Looks beside the program: the source tree above it, or ../share/hetviz. */
static bool try_beside_program(struct hv_str *out, const char *name, const char *installed_name)
{
    char dir[PATH_MAX], share[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n <= 0) {
        return false;
    }
    dir[n] = '\0';
    /* the program's folder and three above it: <root>/build/asan/tests/x is the deepest */
    for (int up = 0; up < 4; up++) {
        char *slash = strrchr(dir, '/');
        if (!slash || slash == dir) {
            return false;
        }
        *slash = '\0';
        if (is_source_tree(dir) && try_path(out, dir, name)) {
            return true;
        }
        if (up == 1) {
            snprintf(share, sizeof share, "%s/share/hetviz", dir);
            if (try_path(out, share, installed_name)) {
                return true;
            }
        }
    }
    return false;
}

enum hv_status hv_data_path(struct hv_str *out, const char *name, struct hv_err *err)
{
    const char *installed_name = strncmp(name, "share/", 6) == 0 ? name + 6 : name;
    const char *root = getenv("HETVIZ_ROOT");
    if (root && root[0] && try_path(out, root, name)) {
        return HV_OK;
    }
    if (try_beside_program(out, name, installed_name) ||
        try_path(out, HV_PREFIX "/share/hetviz", installed_name)) {
        return HV_OK;
    }
    return hv_err_set(err, HV_EIO,
                      "cannot find hetviz's own file %s beside the program or in %s; "
                      "set HETVIZ_ROOT to the folder that holds it",
                      name, HV_PREFIX "/share/hetviz");
}

bool hv_program_beside(struct hv_str *out, const char *name)
{
    char dir[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n <= 0) {
        return false;
    }
    dir[n] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return try_path(out, dir, name);
}

enum hv_status hv_user_dir(struct hv_str *out, enum hv_user_dir which, struct hv_err *err)
{
    static const struct {
        const char *variable, *in_home;
    } dirs[] = {
        [HV_DIR_STATE] = {"XDG_STATE_HOME", ".local/state"},
        [HV_DIR_DATA] = {"XDG_DATA_HOME", ".local/share"},
        [HV_DIR_CACHE] = {"XDG_CACHE_HOME", ".cache"},
    };
    /* the XDG base directory specification: relative paths are to be ignored */
    const char *base = getenv(dirs[which].variable), *home = getenv("HOME");
    if (base && base[0] == '/') {
        hv_str_addf(out, "%s/hetviz", base);
    } else if (home && home[0]) {
        hv_str_addf(out, "%s/%s/hetviz", home, dirs[which].in_home);
    } else {
        return hv_err_set(err, HV_EIO, "neither %s nor HOME is set", dirs[which].variable);
    }
    return HV_OK;
}
