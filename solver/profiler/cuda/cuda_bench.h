/** A bench over a real card. */
#ifndef HV_SOLVER_PROFILER_CUDA_CUDA_BENCH_H
#define HV_SOLVER_PROFILER_CUDA_CUDA_BENCH_H

#include "solver/profiler/bench.h"

/**
 * Opens card `device` of this machine and takes memory of it. Owner: hv_cuda_close. Errors: HV_ENO
 * when there is no card, no driver or no such number, with the driver's message.
 */
enum hv_status hv_cuda_open(int device, struct hv_bench *out, struct hv_err *err) HV_NODISCARD;
/** Frees all resources. */
void hv_cuda_close(struct hv_bench *b);

#endif
