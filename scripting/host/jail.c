/* Landlock: a rule set without rules refuses everything that it handles. Limits on memory and time
 * are in jail_process.c. */
#define _DEFAULT_SOURCE /* syscall */
#include "scripting/host/jail.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/landlock.h>)
#define HAVE_LANDLOCK 1
#endif
#endif

#ifdef HAVE_LANDLOCK
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool hv_lock_files(void)
{
    const struct landlock_ruleset_attr all = {
        .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                             LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                             LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                             LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                             LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                             LANDLOCK_ACCESS_FS_MAKE_SYM};
    /* the first version of the interface knows this one member only */
    long fd = syscall(SYS_landlock_create_ruleset, &all, sizeof all.handled_access_fs, 0);

    if (fd < 0) {
        return false;
    }
    bool ok = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              syscall(SYS_landlock_restrict_self, (int)fd, 0) == 0;
    (void)close((int)fd);
    return ok;
}
#else
bool hv_lock_files(void)
{
    return false;
}
#endif
