/* The file that a path means, and its new content. Not for the rename (file.c, save/save.c). */
#include "solver/base/target.h"

#include "solver/base/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum hv_status hv_io_error(struct hv_err *err, const char *path, const char *doing)
{
    return hv_err_at(err, HV_EIO, path, 0, 0, "cannot %s: %s", doing, strerror(errno));
}

void hv_folder_of(const char *path, struct hv_str *out)
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
            hv_folder_of(hv_str_cstr(out), &next);
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

bool hv_target_locate(struct hv_target *out, const char *path)
{
    struct stat st;
    struct hv_str real = {0}, folder = {0};
    bool exists = stat(path, &st) == 0;
    *out = (struct hv_target){0};
    if ((!exists && errno != ENOENT) || !follow_links(path, &real)) {
        int why = errno;
        hv_str_free(&real);
        errno = why;
        return false;
    }
    hv_folder_of(hv_str_cstr(&real), &folder);
    *out = (struct hv_target){.path = real.p,
                              .folder = folder.p,
                              .exists = exists,
                              .is_folder = exists && S_ISDIR(st.st_mode),
                              .special = exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode),
                              .mode = exists ? st.st_mode & 07777 : new_file_mode(),
                              .owner = exists ? st.st_uid : geteuid(),
                              .group = exists ? st.st_gid : getegid()};
    return true;
}

enum hv_status hv_target_check(const struct hv_target *t, struct hv_err *err)
{
    if (t->is_folder) {
        return hv_err_at(err, HV_EIO, t->path, 0, 0, "cannot write: it is a directory");
    }
    if (t->exists && !t->special && access(t->path, W_OK) != 0) {
        return hv_io_error(err, t->path, "write");
    }
    return HV_OK;
}

void hv_target_free(struct hv_target *t)
{
    free(t->path);
    free(t->folder);
    *t = (struct hv_target){0};
}

bool hv_fd_write(int fd, const char *bytes, size_t n)
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

static bool sync_fd(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

bool hv_target_fill(const struct hv_target *t, int fd, const char *bytes, size_t n, bool durable)
{
    if (!hv_fd_write(fd, bytes, n)) {
        return false;
    }
    if (t->owner != geteuid() && fchown(fd, t->owner, t->group) != 0) {
        errno = 0; /* only root may change the owner; otherwise the new file belongs to the current
                      user */
    }
    return fchmod(fd, t->mode) == 0 && (!durable || sync_fd(fd));
}

void hv_folder_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    (void)sync_fd(fd); /* the files are synced already; not every file system can sync a folder */
    close(fd);
}
