/**
 * Event-driven simulation of a pipeline: the same order with limited memory, with jitter of
 * durations, or with ranks that run a ready operation before its turn.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_PLAY_H
#define HV_SOLVER_SIM_PIPELINE_PLAY_H

#include "solver/sim/pipeline/pipeline.h"

/** Settings of a simulation. `{0}` = as hv_pipe_time. */
struct hv_pipe_play {
    double jitter; /**< standard deviation of the logarithm of a factor of mean 1 on every op */
    uint64_t seed; /**< of the jitter */
    int32_t look_ahead; /**< while its next op is not ready, a rank takes the first ready one among
                           so many behind it; 0 = waits */
    unsigned jump;      /**< kinds (1 << kind) that may run before their turn, e.g. 1 << HV_OP_F as
                           Varuna does (EuroSys 2022, section 4) */
    const double *limit_bytes; /**< [n_ranks] most bytes of a rank, or NULL: no limit */
    const struct hv_pipe_memory
        *memory; /**< memory of ops; needed for limit_bytes. Without transient bytes */
};

/**
 * Plays g into run (as hv_pipe_time fills it; hv_pipe_idle and hv_pipe_critical hold only for
 * strict orders). An op whose bytes do not fit waits until others have given enough back. Errors:
 * HV_ENO when no op can start; the message names the blocked heads of up to eight ranks and what
 * they wait for. O(ops log ops).
 */
enum hv_status hv_pipe_play(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                            const struct hv_pipe_play *play, struct hv_pipe_run *run,
                            struct hv_err *err) HV_NODISCARD;

/**
 * The order in which a play ran its ops, as a schedule of its own: compiled, and with the run's
 * starts and ends. What strict orders allow (idle time by cause, drawing) holds for it. Owner: the
 * arena. Errors: those of hv_pipe_compile. O(ops log ops).
 */
enum hv_status hv_pipe_played(struct hv_arena *a, const struct hv_pipe *g,
                              const struct hv_pipe_run *run, struct hv_pipe *out,
                              struct hv_pipe_run *out_run, struct hv_err *err) HV_NODISCARD;

#endif
