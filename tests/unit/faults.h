/**
 * Faults in calls that change files: the n-th such call of a process fails, or kills the process.
 * The functions below take the place of the C library's in the test program, for the program's own
 * library too; one test program includes this header once.
 */
#ifndef HV_TESTS_UNIT_FAULTS_H
#define HV_TESTS_UNIT_FAULTS_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/** What happens, and to which call. All zero: nothing. */
static struct faults {
    int at;           /**< the call, counted from 1; 0 = none */
    int n;            /**< calls so far */
    int error;        /**< errno of the failure; 0 = the process is killed */
    const char *only; /**< calls of this name only; NULL = all */
    bool from_then;   /**< all later calls fail as well */
} faults;

static bool fault_here(const char *name)
{
    if (faults.at == 0 || (faults.only != NULL && strcmp(faults.only, name) != 0)) {
        return false;
    }
    faults.n++;
    bool here = faults.n == faults.at || (faults.from_then && faults.n > faults.at);
    if (here && faults.error == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    errno = here ? faults.error : errno;
    return here;
}

/* ISO C has no conversion from an object pointer to a function pointer. */
#define FAULT_REAL(name, type, ...)                                                                \
    type (*real)(__VA_ARGS__);                                                                     \
    void *symbol = dlsym(RTLD_NEXT, name);                                                         \
    memcpy(&real, &symbol, sizeof real)

int open(const char *path, int flags, ...)
{
    FAULT_REAL("open", int, const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    bool writes = (flags & (O_CREAT | O_RDWR | O_WRONLY)) != 0;
    return writes && fault_here("open") ? -1 : real(path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    FAULT_REAL("write", ssize_t, int, const void *, size_t);
    if (faults.at != 0 && n > 1) { /* a write may be cut short where it fails */
        faults.n++;
        if (faults.n == faults.at) {
            (void)!real(fd, bytes, n / 2);
        }
        faults.n--;
    }
    return fault_here("write") ? -1 : real(fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    FAULT_REAL("pwrite", ssize_t, int, const void *, size_t, off_t);
    return fault_here("pwrite") ? -1 : real(fd, bytes, n, at);
}

/* A process that is killed loses nothing that the system has not written yet, so the disk is
 * spared.
 */
int fsync(int fd)
{
    return fault_here("fsync") || fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int ftruncate(int fd, off_t n)
{
    FAULT_REAL("ftruncate", int, int, off_t);
    return fault_here("ftruncate") ? -1 : real(fd, n);
}

int rename(const char *from, const char *to)
{
    FAULT_REAL("rename", int, const char *, const char *);
    return fault_here("rename") ? -1 : real(from, to);
}

int link(const char *from, const char *to)
{
    FAULT_REAL("link", int, const char *, const char *);
    return fault_here("link") ? -1 : real(from, to);
}

int unlink(const char *path)
{
    FAULT_REAL("unlink", int, const char *);
    return fault_here("unlink") ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode)
{
    FAULT_REAL("mkdir", int, const char *, mode_t);
    return fault_here("mkdir") ? -1 : real(path, mode);
}

int rmdir(const char *path)
{
    FAULT_REAL("rmdir", int, const char *);
    return fault_here("rmdir") ? -1 : real(path);
}

int mkstemp(char *path)
{
    FAULT_REAL("mkstemp", int, char *);
    return fault_here("mkstemp") ? -1 : real(path);
}

int fchmod(int fd, mode_t mode)
{
    FAULT_REAL("fchmod", int, int, mode_t);
    return fault_here("fchmod") ? -1 : real(fd, mode);
}

#endif
