/** Second protection of a strategy run: restrictions by the kernel that hold even if the sandbox
 * has a hole. */
#ifndef HV_SCRIPTING_HOST_JAIL_H
#define HV_SCRIPTING_HOST_JAIL_H

#include <stdbool.h>

/**
 * From here on this process and its children can neither change the file system (write, make,
 * remove or rename files) nor start programs; files that are open already stay open. Works on Linux
 * with Landlock (5.13); elsewhere nothing happens. Returns true where the restriction is in force.
 * Cannot be undone.
 */
bool hv_lock_files(void);
/**
 * From here on this process can only compute, read files, write to what is open, and end: every
 * other system call (sockets, processes, signals to others, files opened for writing, …) fails with
 * EPERM. Linux with seccomp filters on x86-64 and AArch64; elsewhere, and where the kernel refuses,
 * nothing happens. Returns true where the restriction is in force. Cannot be undone; not for builds
 * with sanitizers, whose leak check starts a process.
 */
bool hv_lock_calls(void);
/**
 * Everything that a process needs before it runs code of plugins: no core file, at most 4 GiB of
 * memory beyond what it has, CPU time that ends a while after `time_limit_s` (≤ 0: no limit), no
 * new privileges, hv_lock_files and hv_lock_calls. What the system lacks is left out; in a build
 * with sanitizers that is hv_lock_calls and the limit of memory. Cannot be undone.
 */
void hv_lock_process(double time_limit_s);

#endif
