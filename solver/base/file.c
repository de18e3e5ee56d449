/*
 * Reads and writes whole files, and locates hetviz's own data and the user's folders. Handles bytes
 * only; formats are read elsewhere.
 */
#include "solver/base/file.h"

#include "solver/base/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HV_PREFIX
#define HV_PREFIX "/usr/local"
#endif

static enum hv_status io_error(struct hv_err *err, const char *path, const char *doing)
{
    return hv_err_at(err, HV_EIO, path, 0, 0, "cannot %s: %s", doing, strerror(errno));
}

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
        return io_error(err, path, "read");
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
            s = io_error(err, path, "read");
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
        return io_error(err, path, "read");
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
        return io_error(err, path, "read");
    }
    enum hv_status s = HV_OK;
    if (fstat(fd, &st) != 0) {
        s = io_error(err, path, "read");
    } else if (!S_ISREG(st.st_mode)) {
        s = hv_err_at(err, HV_EIO, path, 0, 0, "this is %s, expected a file",
                      hv_file_kind(st.st_mode));
    }
    s = s == HV_OK ? read_all(fd, path, out, err) : s;
    close(fd);
    return s;
}

/* Writes all bytes; a closed reading end gives EPIPE instead of a signal. */
static bool write_all(int fd, const char *bytes, size_t n)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigemptyset(&ignore.sa_mask);
    bool saved = sigaction(SIGPIPE, &ignore, &old) == 0;
    bool ok = true;
    while (n > 0 && ok) {
        ssize_t k = write(fd, bytes, n);
        if (k > 0) {
            bytes += k;
            n -= (size_t)k;
        } else if (k == 0 || errno != EINTR) {
            ok = false;
            errno = k == 0 ? EIO : errno;
        }
    }
    int why = errno;
    if (saved) {
        sigaction(SIGPIPE, &old, NULL);
    }
    errno = why;
    return ok;
}

static enum hv_status write_direct(const char *path, const char *bytes, size_t n,
                                   struct hv_err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return io_error(err, path, "write");
    }
    bool ok = write_all(fd, bytes, n);
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    errno = why;
    return ok ? HV_OK : io_error(err, path, "write");
}

static void add_folder(struct hv_str *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        hv_str_addc(out, '.');
    } else if (slash == path) {
        hv_str_addc(out, '/');
    } else {
        hv_str_add(out, path, (size_t)(slash - path));
    }
}

/* Resolves a chain of symbolic links; the target of the last one may be missing. */
static bool follow_links(const char *path, struct hv_str *out)
{
    hv_str_adds(out, path);
    for (int hops = 0; hops < 40; hops++) {
        char to[PATH_MAX];
        ssize_t n = readlink(hv_str_cstr(out), to, sizeof to - 1);
        if (n < 0) {
            return errno == EINVAL || errno == ENOENT; /* not a link, or no file yet */
        }
        to[n] = '\0';
        struct hv_str next = {0};
        if (to[0] != '/') {
            add_folder(&next, hv_str_cstr(out));
            hv_str_addc(&next, '/');
        }
        hv_str_adds(&next, to);
        hv_str_free(out);
        *out = next;
    }
    errno = ELOOP;
    return false;
}

static mode_t new_file_mode(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return 0666 & ~mask;
}

static bool sync_fd(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

/* The content to write, and whether it has to be durable (survive a loss of power). */
struct content {
    const char *bytes;
    size_t n;
    bool durable;
};

/* Writes the temporary file and renames it to the target; `old` is NULL when the target is new. */
static bool fill_temp(int fd, const struct stat *old, const struct content *c)
{
    if (!write_all(fd, c->bytes, c->n)) {
        return false;
    }
    if (old && old->st_uid != geteuid() && fchown(fd, old->st_uid, old->st_gid) != 0) {
        errno = 0; /* only root may change the owner; otherwise the new file belongs to the current
                      user */
    }
    return fchmod(fd, old ? old->st_mode & 07777 : new_file_mode()) == 0 &&
           (!c->durable || sync_fd(fd));
}

static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    (void)sync_fd(fd); /* the file is synced already; not every file system can sync a folder */
    close(fd);
}

static enum hv_status replace_file(const char *path, const char *target, const struct stat *old,
                                   const struct content *content, struct hv_err *err)
{
    struct hv_str temp = {0}, folder = {0};
    add_folder(&folder, target);
    const char *slash = strrchr(target, '/');
    hv_str_addf(&temp, "%s/.%.100s.XXXXXX", hv_str_cstr(&folder), slash ? slash + 1 : target);
    int fd = mkstemp(temp.p);
    bool ok = fd >= 0 && fill_temp(fd, old, content);
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(temp.p, target) != 0) {
        ok = false;
        why = errno;
    }
    if (ok && content->durable) {
        sync_folder(hv_str_cstr(&folder));
    } else if (!ok && fd >= 0) {
        unlink(temp.p);
    }
    hv_str_free(&temp);
    hv_str_free(&folder);
    errno = why;
    return ok ? HV_OK : io_error(err, path, "write");
}

static enum hv_status write_file(const char *path, const struct content *content,
                                 struct hv_err *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (!exists && errno != ENOENT) {
        return io_error(err, path, "write");
    }
    if (exists && S_ISDIR(st.st_mode)) {
        return hv_err_at(err, HV_EIO, path, 0, 0, "cannot write: it is a directory");
    }
    if (exists && !S_ISREG(st.st_mode)) {
        return write_direct(path, content->bytes, content->n, err);
    }
    /* a rename would bypass the write protection of an existing file */
    if (exists && access(path, W_OK) != 0) {
        return io_error(err, path, "write");
    }
    struct hv_str target = {0};
    enum hv_status s = follow_links(path, &target) ? replace_file(path, hv_str_cstr(&target),
                                                                  exists ? &st : NULL, content, err)
                                                   : io_error(err, path, "write");
    hv_str_free(&target);
    return s;
}

enum hv_status hv_file_write(const char *path, const char *bytes, size_t n, struct hv_err *err)
{
    if (is_dash(path)) {
        return write_all(STDOUT_FILENO, bytes, n) ? HV_OK
                                                  : io_error(err, "(standard output)", "write");
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
                s = io_error(err, p, "make this folder");
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
