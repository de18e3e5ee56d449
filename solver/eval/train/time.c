/** Times the compiled orders with durations, and computes the steady period of schedules that never
 * flush. */
#include "solver/eval/moves/moves.h"
#include "solver/eval/train/steps.h"
#include "solver/sim/pipeline/steady.h"

/** Distances that differ by less than this share are equal. */
#define REPEATS_REL 1e-9

/** End of the last backward of every micro-batch, on any rank. One pass over the operations. */
static double *micro_batch_ends(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    double *end = hv_arena_new(l->arena, double, (size_t)pl->n_mb);
    size_t n = hv_schedule_n_ops(pl->schedule);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &pl->schedule->ops[i];
        if (op->kind != HV_OP_F && op->kind != HV_OP_R) {
            end[op->mb] = fmax(end[op->mb], hv_pipe_op_end_s(pl->pipe, &pl->run, i));
        }
    }
    return end;
}

/** True where the ends of [from, to) equal those `step` micro-batches before plus one constant. */
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
 * after a while. The step is searched in the third quarter, which fill and drain do not reach; a
 * run too short to repeat gives the slope over that quarter. O(operations + ranks²).
 */
static double measured_period_s(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    int32_t a = pl->n_mb / 2, b = (pl->n_mb * 3) / 4;
    if (b <= a) {
        return pl->run.makespan_s / (double)pl->n_mb;
    }
    const double *end = micro_batch_ends(l, pl);
    for (int32_t step = 1; step <= (int32_t)pl->n_ranks && a + step < b; step++) {
        if (repeats(end, a, b, step)) {
            return (end[b - 1] - end[b - 1 - step]) / (double)step;
        }
    }
    return (end[b] - end[a]) / (double)(b - a);
}

/**
 * Seconds per micro-batch once the pipeline is full: the exact cycle mean of the order, or the
 * period measured in the run where the order does not repeat or micro-batches differ in length.
 */
static double steady_period_s(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    struct hv_steady steady;
    if (hv_pipe_steady(pl->pipe, &pl->cost, &steady, NULL) == HV_OK) {
        return steady.per_micro_batch_s;
    }
    return measured_period_s(l, pl);
}

/** Share of a rank's waiting in the middle of a run that is due to transfers: over a multiple of p
 * micro-batches (p ranks), where the run repeats. O(nodes). */
static double comm_share(const struct hv__pipeline *pl, size_t rank)
{
    int32_t from = pl->pipe->rank_node_at[rank], p = (int32_t)pl->n_ranks;
    int32_t each = (pl->pipe->rank_node_at[rank + 1] - from) / pl->n_mb, some = pl->n_mb / 4;
    int32_t n = from + pl->n_mb / 2 * each, end = n + each * (some > p ? some / p * p : some);
    double comm_s = 0, waits_s = 0;
    for (; n < end; n++) {
        double gap = pl->run.node_start_s[n] - pl->run.node_end_s[n - 1];
        waits_s += gap;
        comm_s += gap > 0 ? fmin(gap, hv_pipe_waited_s(pl->pipe, &pl->cost, &pl->run, n)) : 0;
    }
    return waits_s > 0 ? comm_s / waits_s : 0;
}

/** Keeps the times of a run before it is stretched: memory over time is that of the short run, in
 * which moves have their times beside the operations. O(nodes + moves). */
static void keep_short(const struct hv__lowered *l, struct hv__pipeline *pl, double by_s)
{
    struct hv__moving *m = &pl->moving;
    size_t n = (size_t)pl->pipe->n_nodes;
    m->later_s = by_s;
    m->short_start_s =
        hv_arena_copy(l->arena, pl->run.node_start_s, n, sizeof *pl->run.node_start_s);
    m->short_end_s = hv_arena_copy(l->arena, pl->run.node_end_s, n, sizeof *pl->run.node_end_s);
    m->short_moved = hv_arena_copy(l->arena, m->moved, m->n, sizeof *m->moved);
    for (size_t i = 0; i < m->n; i++) {
        size_t rank = m->lanes[m->moves[i].lane].rank;
        if (m->moved[i].start_s >= hv__later_from_s(pl, rank)) {
            m->moved[i].start_s += by_s;
            m->moved[i].end_s += by_s;
        }
    }
}

/**
 * Inserts the micro-batches that were left out into the middle of a run that shares links: as many
 * periods, whose idle time is split as in the run. O(nodes).
 */
static void stretch(const struct hv__lowered *l, struct hv__pipeline *pl, double period_s)
{
    double more = (double)pl->more_mb, by_s = more * period_s;
    if (pl->moving.n > 0) {
        keep_short(l, pl, by_s);
    }
    for (size_t r = 0; r < pl->n_ranks; r++) {
        struct hv_pipe_rank *k = &pl->idle[r];
        double busy_s = k->busy_s / (double)pl->n_mb * more, comm_frac = comm_share(pl, r);
        double waits_s = fmax(0, by_s - busy_s);
        k->busy_s += busy_s;
        k->comm_s += comm_frac * waits_s;
        k->steady_s += (1 - comm_frac) * waits_s;
        k->last_s += by_s;
        pl->run.busy_s += busy_s;
    }
    for (size_t r = 0; r < pl->n_ranks; r++) {
        int32_t from = pl->pipe->rank_node_at[r], to = pl->pipe->rank_node_at[r + 1];
        for (int32_t n = from + (to - from) / 2; n < to; n++) {
            pl->run.node_start_s[n] += by_s;
            pl->run.node_end_s[n] += by_s;
        }
    }
    pl->run.makespan_s += by_s;
    pl->run.longest_span_s += by_s;
}

/** Counts the extra time of operations whose communication shared links as waiting for transfers,
 * not as work. O(nodes). */
static void take_waits(struct hv__pipeline *pl)
{
    for (size_t r = 0; r < pl->n_ranks; r++) {
        double waits_s = 0;
        for (int32_t n = pl->pipe->rank_node_at[r]; n < pl->pipe->rank_node_at[r + 1]; n++) {
            double took = pl->run.node_end_s[n] - pl->run.node_start_s[n];
            waits_s += fmax(0, took - hv_pipe_node_duration_s(pl->pipe, &pl->cost, n));
        }
        waits_s -= pl->run.stream != NULL ? pl->run.stream->slowed_s[r] : 0;
        pl->idle[r].busy_s -= waits_s;
        pl->idle[r].comm_s += waits_s;
        pl->run.busy_s -= waits_s;
    }
}

void hv__finish_run(struct hv__lowered *l, struct hv__pipeline *pl, bool shared)
{
    bool async = (l->schedule.row->flags & HV_SCHEDULE_ASYNC) != 0, own = !pl->like || shared;
    if (!own) {
        pl->idle = pl->like->idle;
    } else if (pl->more_mb == 0 || shared) {
        pl->idle = hv_arena_new(l->arena, struct hv_pipe_rank, pl->n_ranks);
        hv_pipe_idle(pl->pipe, &pl->cost, &pl->run, pl->idle);
    }
    if (shared &&
        (l->network.share->pipes[pl - l->pipelines.items].ranks != NULL || pl->moving.n > 0)) {
        take_waits(pl);
    }
    if (pl->more_mb > 0 && shared) {
        stretch(l, pl, measured_period_s(l, pl));
    }
    pl->period_s = !async ? HV_UNKNOWN : own ? steady_period_s(l, pl) : pl->like->period_s;
    if (async && shared) {
        pl->period_s = fmax(pl->period_s, measured_period_s(l, pl)); /* links only add to it */
    }
    for (size_t r = 0; r < pl->n_ranks; r++) {
        double stream_s = pl->cost.stream != NULL
                              ? hv_pipe_stream_end_s(pl->cost.stream, pl->run.stream, (int32_t)r)
                              : 0;
        pl->ranks[r].compute_end_s = pl->idle[r].last_s;
        pl->ranks[r].stream_end_s = stream_s;
        pl->ranks[r].sync_end_s = fmax(pl->idle[r].last_s, stream_s);
    }
    l->iteration.pipeline_s = fmax(l->iteration.pipeline_s, pl->run.makespan_s);
}

enum hv_status hv__time_alone(struct hv__lowered *l, struct hv_err *err)
{
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        if (pl->like != NULL) {
            pl->run = pl->like->run;
        } else if (pl->more_mb == 0) {
            hv__new_run(l, pl, &pl->run);
            hv_pipe_time(pl->pipe, &pl->cost, &pl->run);
        }
        if (!isfinite(pl->run.makespan_s)) {
            return hv_err_set(
                err, HV_ENO,
                "replica entry %zu cannot be timed: two of its stages are not connected",
                pl->i_replica);
        }
    }
    return HV_OK;
}

void hv__time_together(struct hv__lowered *l)
{
    bool shared = l->network.crowded = hv__share_links(l);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        hv__finish_run(l, &l->pipelines.items[i], shared);
    }
}
