/* All restrictions of a process that runs code of plugins: its resource limits, then what the
 * kernel refuses (jail.c, jail_calls.c). */
#define _DEFAULT_SOURCE /* prctl */
#include "scripting/host/jail.h"
#include "solver/base/attr.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define MEMORY_LIMIT ((rlim_t)4 << 30)
#define CPU_GRACE_S  30.0

/** Bytes of address space that this process has; 0 where the system does not tell. */
static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL) {
        return 0;
    }
    if (fscanf(f, "%lu", &pages) != 1) {
        pages = 0;
    }
    (void)fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/** Lowers a limit; one that is lower already stays. */
static void lower(int what, rlim_t soft, rlim_t hard)
{
    struct rlimit now;

    if (getrlimit(what, &now) != 0) {
        return;
    }
    const struct rlimit lowered = {soft < now.rlim_cur ? soft : now.rlim_cur,
                                   hard < now.rlim_max ? hard : now.rlim_max};
    (void)setrlimit(what, &lowered);
}

static void limit_resources(double time_limit_s)
{
    lower(RLIMIT_CORE, 0, 0);
    if (!HV_ASAN) {
        rlim_t most = address_space() + MEMORY_LIMIT;
        lower(RLIMIT_AS, most, most);
    }
    if (time_limit_s > 0 && time_limit_s < 1e6) {
        rlim_t s = (rlim_t)(time_limit_s + CPU_GRACE_S);
        lower(RLIMIT_CPU, s, s + 1);
    }
}

void hv_lock_process(double time_limit_s)
{
    limit_resources(time_limit_s);
#ifdef __linux__
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#endif
    /* where the kernel has neither, the sandbox is the only protection */
    (void)hv_lock_files();
    if (!HV_ASAN) {
        (void)hv_lock_calls();
    }
}
