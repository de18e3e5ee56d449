/** The program behind `hetviz worker`: one job in, events out (protocol: ui/process/pool.h). */
#ifndef HV_SCRIPTING_WORKER_WORKER_H
#define HV_SCRIPTING_WORKER_WORKER_H

/**
 * Reads one line with a job from in_fd, runs it and writes events as JSON lines to out_fd. Sets
 * limits on its own process (memory, cpu, no core file). Returns the exit code: 0 when a result or
 * error event was written.
 */
int hv_worker_main(int in_fd, int out_fd);

#endif
