/* seccomp: a filter that allows the system calls for computing, reading files and writing to open
 * pipes, and refuses every other system call. Files are in jail.c, memory and time in
 * jail_process.c. */
#define _DEFAULT_SOURCE /* syscall numbers */
#include "scripting/host/jail.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__has_include)
#if __has_include(<linux/seccomp.h>) && __has_include(<linux/filter.h>)
#define HAVE_SECCOMP 1
#endif
#endif

#ifdef HAVE_SECCOMP
#include "solver/base/attr.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

/** System calls that are allowed with any arguments. Names that an architecture does not have are
 * left out. */
static const int allowed[] = {
    SYS_read,        SYS_write,         SYS_readv,          SYS_writev,       SYS_pread64,
    SYS_close,       SYS_lseek,         SYS_fstat,          SYS_fcntl,        SYS_ppoll,
    SYS_readlinkat,  SYS_faccessat,     SYS_getdents64,     SYS_statx,        SYS_getcwd,
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
#ifdef SYS_access
    SYS_access,      SYS_readlink,      SYS_stat,           SYS_lstat,        SYS_poll,
    SYS_time,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
    SYS_brk,         SYS_mmap,          SYS_munmap,         SYS_mremap,       SYS_mprotect,
    SYS_madvise,     SYS_clock_gettime, SYS_clock_getres,   SYS_gettimeofday, SYS_clock_nanosleep,
    SYS_nanosleep,   SYS_getrandom,     SYS_futex,          SYS_sched_yield,  SYS_sched_getaffinity,
    SYS_getpid,      SYS_gettid,        SYS_getrusage,      SYS_sysinfo,      SYS_uname,
    SYS_sigaltstack, SYS_rt_sigaction,  SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall,
    SYS_exit,        SYS_exit_group,
};

/** Adds a test: continue where the loaded word is not `value`, else return `verdict`. */
static size_t add_rule(struct sock_filter *f, uint32_t value, uint32_t verdict)
{
    f[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    f[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict);
    return 2;
}

/** Adds: a call `nr` is let through when its argument `arg` (low word) has none of the bits `mask`
 * (is_mask) or equals it, else refused; other calls go on. Six instructions. */
static size_t add_checked(struct sock_filter *f, int nr, unsigned arg, uint32_t value, bool is_mask)
{
    const uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)arg);
    const uint8_t yes = is_mask ? 1 : 0;

    f[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4);
    f[1] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
    f[2] = (struct sock_filter)BPF_JUMP(BPF_JMP | (is_mask ? BPF_JSET : BPF_JEQ) | BPF_K, value,
                                        yes, (uint8_t)!yes);
    f[3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[4] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE);
    return 5;
}

bool hv_lock_calls(void)
{
    struct sock_filter f[4 + 2 * HV_COUNT(allowed) + 5 * 6];
    const uint32_t write_bits = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
    size_t n = 0;

    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < HV_COUNT(allowed); i++) {
        n += add_rule(f + n, (uint32_t)allowed[i], SECCOMP_RET_ALLOW);
    }
    n += add_checked(f + n, SYS_openat, 2, write_bits, true);
#ifdef SYS_open
    n += add_checked(f + n, SYS_open, 1, write_bits, true);
#endif
    n += add_checked(f + n, SYS_tgkill, 0, (uint32_t)getpid(), false); /* abort() signals itself */
    n += add_checked(f + n, SYS_prlimit64, 0, 0, false);               /* its own limits only */
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE);
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = f};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
bool hv_lock_calls(void)
{
    return false;
}
#endif
