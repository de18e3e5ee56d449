/** Durations into the compiled orders; the steady period of schedules that never flush. */
#include "solver/eval/eval_int.h"

/** End of the last backward of micro-batch `mb` on any rank. */
static double micro_batch_end_s(const struct hv__unit *u, int32_t mb)
{
    double end = 0;
    size_t n = hv_schedule_n_ops(&u->schedule);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &u->schedule.ops[i];
        if (op->mb == mb && op->kind != HV_OP_F && op->kind != HV_OP_R) {
            end = fmax(end, hv_pipe_op_end_s(&u->pipe, &u->run, i));
        }
    }
    return end;
}

/**
 * Seconds per micro-batch once the pipeline is full: the slope between the middle and three
 * quarters of the simulated run, where fill and drain no longer reach.
 */
static double steady_period_s(const struct hv__unit *u)
{
    int32_t a = u->n_mb / 2, b = (u->n_mb * 3) / 4;
    if (b <= a) {
        return u->run.makespan_s / (double)u->n_mb;
    }
    return (micro_batch_end_s(u, b) - micro_batch_end_s(u, a)) / (double)(b - a);
}

enum hv_status hv__time(struct hv__lowered *l, struct hv_err *err)
{
    for (size_t i = 0; i < l->n_units; i++) {
        struct hv__unit *u = &l->units[i];
        hv_pipe_run_new(l->arena, &u->pipe, &u->run);
        hv_pipe_time(&u->pipe, &u->cost, &u->run);
        u->idle = hv_arena_new(l->arena, struct hv_pipe_rank, u->n_ranks);
        hv_pipe_idle(&u->pipe, &u->cost, &u->run, u->idle);
        if (!isfinite(u->run.makespan_s)) {
            return hv_err_set(
                err, HV_ENO,
                "replica entry %zu cannot be timed: two of its stages are not connected",
                u->i_replica);
        }
        for (size_t r = 0; r < u->n_ranks; r++) {
            u->ranks[r].compute_end_s = u->idle[r].last_s;
            u->ranks[r].sync_end_s = u->idle[r].last_s;
        }
        u->period_s = l->stale ? steady_period_s(u) : HV_UNKNOWN;
        l->pipeline_s = fmax(l->pipeline_s, u->run.makespan_s);
    }
    return HV_OK;
}
