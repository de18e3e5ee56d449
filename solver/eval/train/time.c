/** Durations into the compiled orders; the steady period of schedules that never flush. */
#include "solver/eval/eval_int.h"
#include "solver/sim/pipeline/steady.h"

/** Distances that differ by less than this share are equal. */
#define REPEATS_REL 1e-9

/** End of the last backward of every micro-batch, on any rank. One pass over the operations. */
static double *micro_batch_ends(struct hv__lowered *l, const struct hv__unit *u)
{
    double *end = hv_arena_new(l->arena, double, (size_t)u->n_mb);
    size_t n = hv_schedule_n_ops(&u->schedule);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &u->schedule.ops[i];
        if (op->kind != HV_OP_F && op->kind != HV_OP_R) {
            end[op->mb] = fmax(end[op->mb], hv_pipe_op_end_s(&u->pipe, &u->run, i));
        }
    }
    return end;
}

/** Do the ends of [from, to) repeat those `step` micro-batches before, later by one constant? */
static bool repeats(const double *end, int32_t from, int32_t to, int32_t step)
{
    double period = end[from] - end[from - step];
    for (int32_t i = from + 1; i < to; i++) {
        if (fabs(end[i] - end[i - step] - period) > REPEATS_REL * period) {
            return false;
        }
    }
    return true;
}

/**
 * Seconds per micro-batch in the run as it was laid out: its ends repeat every `step` micro-batches
 * after a while. We look for the step in the third quarter, where fill and drain do not reach; a
 * run too short to repeat gives the slope over that quarter. O(operations + ranks²).
 */
static double measured_period_s(struct hv__lowered *l, const struct hv__unit *u)
{
    int32_t a = u->n_mb / 2, b = (u->n_mb * 3) / 4;
    if (b <= a) {
        return u->run.makespan_s / (double)u->n_mb;
    }
    const double *end = micro_batch_ends(l, u);
    for (int32_t step = 1; step <= (int32_t)u->n_ranks && a + step < b; step++) {
        if (repeats(end, a, b, step)) {
            return (end[b - 1] - end[b - 1 - step]) / (double)step;
        }
    }
    return (end[b] - end[a]) / (double)(b - a);
}

/**
 * Seconds per micro-batch once the pipeline is full: the exact cycle mean of the order, or what the
 * run shows where the order does not repeat or micro-batches differ in length.
 */
static double steady_period_s(struct hv__lowered *l, const struct hv__unit *u)
{
    struct hv_steady steady;
    if (hv_pipe_steady(&u->pipe, &u->cost, &steady, NULL) == HV_OK) {
        return steady.per_micro_batch_s;
    }
    return measured_period_s(l, u);
}

/** What of a rank's waiting in the middle of a run is for transfers: over whole turns of all ranks,
 * where the run repeats. O(nodes). */
static double comm_share(const struct hv__unit *u, size_t rank)
{
    int32_t from = u->pipe.rank_node_at[rank], p = (int32_t)u->n_ranks;
    int32_t each = (u->pipe.rank_node_at[rank + 1] - from) / u->n_mb, some = u->n_mb / 4;
    int32_t n = from + u->n_mb / 2 * each, end = n + each * (some > p ? some / p * p : some);
    double comm_s = 0, waits_s = 0;
    for (; n < end; n++) {
        double gap = u->run.node_start_s[n] - u->run.node_end_s[n - 1];
        waits_s += gap;
        comm_s += gap > 0 ? fmin(gap, hv_pipe_waited_s(&u->pipe, &u->cost, &u->run, n)) : 0;
    }
    return waits_s > 0 ? comm_s / waits_s : 0;
}

/**
 * Puts the micro-batches that were left out into the middle of a run that shares links: as many
 * periods, of which what is not work is waiting as it is in the run. O(nodes).
 */
static void stretch(struct hv__unit *u, double period_s)
{
    double more = (double)u->more_mb, by_s = more * period_s;
    for (size_t r = 0; r < u->n_ranks; r++) {
        struct hv_pipe_rank *k = &u->idle[r];
        double busy_s = k->busy_s / (double)u->n_mb * more, comm_frac = comm_share(u, r);
        double waits_s = fmax(0, by_s - busy_s);
        k->busy_s += busy_s;
        k->comm_s += comm_frac * waits_s;
        k->steady_s += (1 - comm_frac) * waits_s;
        k->last_s += by_s;
        u->run.busy_s += busy_s;
    }
    for (size_t r = 0; r < u->n_ranks; r++) {
        int32_t from = u->pipe.rank_node_at[r], to = u->pipe.rank_node_at[r + 1];
        for (int32_t n = from + (to - from) / 2; n < to; n++) {
            u->run.node_start_s[n] += by_s;
            u->run.node_end_s[n] += by_s;
        }
    }
    u->run.makespan_s += by_s;
    u->run.longest_span_s += by_s;
}

/** What operations took longer because their exchanges shared links is waiting for transfers, not
 * work. O(nodes). */
static void take_waits(struct hv__unit *u)
{
    for (size_t r = 0; r < u->n_ranks; r++) {
        double waits_s = 0;
        for (int32_t n = u->pipe.rank_node_at[r]; n < u->pipe.rank_node_at[r + 1]; n++) {
            double took = u->run.node_end_s[n] - u->run.node_start_s[n];
            waits_s += fmax(0, took - hv_pipe_node_duration_s(&u->pipe, &u->cost, n));
        }
        u->idle[r].busy_s -= waits_s;
        u->idle[r].comm_s += waits_s;
        u->run.busy_s -= waits_s;
    }
}

/** Idle time of a run, and what it says of the rest of a long one. */
static void finish_run(struct hv__lowered *l, struct hv__unit *u, bool shared)
{
    bool async = (l->row->flags & HV_SCHEDULE_ASYNC) != 0;
    if (u->more_mb == 0 || shared) {
        u->idle = hv_arena_new(l->arena, struct hv_pipe_rank, u->n_ranks);
        hv_pipe_idle(&u->pipe, &u->cost, &u->run, u->idle);
    }
    if (shared && l->share->pipes[u - l->units].ranks != NULL) {
        take_waits(u);
    }
    if (u->more_mb > 0 && shared) {
        stretch(u, measured_period_s(l, u));
    }
    u->period_s = async ? steady_period_s(l, u) : HV_UNKNOWN;
    if (async && shared) {
        u->period_s = fmax(u->period_s, measured_period_s(l, u)); /* links only add to it */
    }
    for (size_t r = 0; r < u->n_ranks; r++) {
        u->ranks[r].compute_end_s = u->idle[r].last_s;
        u->ranks[r].sync_end_s = u->idle[r].last_s;
    }
    l->pipeline_s = fmax(l->pipeline_s, u->run.makespan_s);
}

enum hv_status hv__time(struct hv__lowered *l, struct hv_err *err)
{
    for (size_t i = 0; i < l->n_units; i++) {
        struct hv__unit *u = &l->units[i];
        if (u->more_mb == 0) {
            hv_pipe_run_new(l->arena, &u->pipe, &u->run);
            hv_pipe_time(&u->pipe, &u->cost, &u->run);
        }
        if (!isfinite(u->run.makespan_s)) {
            return hv_err_set(
                err, HV_ENO,
                "replica entry %zu cannot be timed: two of its stages are not connected",
                u->i_replica);
        }
    }
    bool shared = hv__contend(l);
    for (size_t i = 0; i < l->n_units; i++) {
        finish_run(l, &l->units[i], shared);
    }
    return HV_OK;
}
