/**
 * Streams of gathers and scatters beside the passes, where whole chunks or stages of weights are
 * sharded: their tasks by the plan's window, priced as the passes say, on the order of a pipeline.
 * Layers that are sharded one by one are gathered inside every pass (cost/stage/pass.c), since
 * FSDP's gathers of a forward pass wait for the compute that was issued before it.
 */
#include "solver/sim/schedule/shards.h"
#include "solver/eval/train/steps.h"

#include <limits.h>

const struct hv_zero *hv__scheduled_zero(const struct hv_stage *s)
{
    for (size_t i = 0; i < s->n_degrees; i++) {
        if (hv_zero_by_schedule(&s->degrees[i].zero)) {
            return &s->degrees[i].zero;
        }
    }
    return s->n_degrees == 0 && hv_zero_by_schedule(&s->zero) ? &s->zero : NULL;
}

bool hv__has_stream(const struct hv__pipeline *pl)
{
    for (size_t i = 0; i < pl->n_ranks; i++) {
        if (hv__scheduled_zero(&pl->replica->stages[pl->ranks[i].stage]) != NULL) {
            return true;
        }
    }
    return false;
}

/** What the plan's knobs ask of a rank's stream. */
static struct hv_shard_rule rule_of(const struct hv_stage *s)
{
    const struct hv_zero *z = hv__scheduled_zero(s);
    if (z == NULL) {
        return (struct hv_shard_rule){0};
    }
    int32_t limit = z->limit > 0 ? z->limit : INT_MAX;
    return (struct hv_shard_rule){.window = limit,
                                  .ahead = z->prefetch < limit ? z->prefetch + 1 : limit,
                                  .whole = z->unit == HV_ZERO_STAGE,
                                  .keeps = !z->reshard,
                                  .each = z->reduce != HV_REDUCE_END};
}

/** The largest slowdown of compute by communication beside it, of a rank's devices: they run in
 * step. */
static double slowdown_of(const struct hv__lowered *l, const struct hv__rank *rk)
{
    double most = 0;
    for (size_t d = 0; d < rk->n_dp; d++) {
        for (size_t i = 0; rk->like[d] == d && i < rk->width; i++) {
            uint32_t id = rk->devices[d * rk->width + i];
            const struct hv_device_kind *kind = hv_cluster_device(hv_cost_cluster(l->k), id).kind;
            most = fmax(most, hv_device_calibration(kind)->v[HV_CAL_OVERLAP]);
        }
    }
    return most;
}

/** Figures of a gather or a scatter of one pass. */
static double seconds_of(const struct hv_pass *p, bool scatter)
{
    return scatter ? p->scatter_s : p->gather_s;
}

static double network_s_of(const struct hv_pass *p, bool scatter)
{
    return scatter ? p->scatter_network_s : p->gather_network_s;
}

static double bytes_of(const struct hv_pass *p, bool scatter)
{
    return scatter ? p->scatter_bytes : p->gather_bytes;
}

/** That of one global stage, of the first shape of micro-batches: weights are the same for all.
 * i_dp < 0: the largest of all data-parallel ranks, which run in step. */
static double of_gstage(const struct hv__pipeline *pl, const struct hv__gstage *g, bool scatter,
                        ptrdiff_t i_dp, double (*figure)(const struct hv_pass *p, bool scatter))
{
    const struct hv__rank *rk = &pl->ranks[g->rank];
    double most = 0;
    if (i_dp >= 0) {
        return figure(&g->plain[(size_t)i_dp % rk->n_dp], scatter);
    }
    for (size_t d = 0; d < rk->n_dp; d++) {
        most = rk->like[d] == d ? fmax(most, figure(&g->plain[d], scatter)) : most;
    }
    return most;
}

/** The same of a task: of its global stage, or the sum of all of its rank. O(1), O(global stages);
 * times data-parallel ranks. */
static double of_task(const struct hv__pipeline *pl, size_t rank, const struct hv_stream_task *t,
                      ptrdiff_t i_dp, double (*figure)(const struct hv_pass *p, bool scatter))
{
    double sum = 0;
    if (t->stage >= 0) {
        const struct hv__gstage *g =
            &pl->gstages[(size_t)t->pipe * pl->n_gstages + (size_t)t->stage];
        return of_gstage(pl, g, t->scatter, i_dp, figure);
    }
    for (size_t i = 0; i < pl->n_pipes * pl->n_gstages; i++) {
        const struct hv__gstage *g = &pl->gstages[i];
        sum += g->rank == rank ? of_gstage(pl, g, t->scatter, i_dp, figure) : 0;
    }
    return sum;
}

/** The node of an operation, or behind the last of its rank. */
static int32_t node_at(const struct hv__pipeline *pl, size_t rank, size_t op)
{
    if (op == pl->schedule->rank_at[rank + 1]) {
        return pl->pipe->rank_node_at[rank + 1];
    }
    return pl->pipe->node_of_op != NULL ? pl->pipe->node_of_op[op] : (int32_t)op;
}

/** Tasks with their nodes and times. */
static struct hv_stream_task *price_tasks(const struct hv__lowered *l,
                                          const struct hv__pipeline *pl,
                                          const struct hv_shard_tasks *from)
{
    struct hv_stream_task *out =
        hv_arena_new(l->arena, struct hv_stream_task, from->task_at[pl->n_ranks] + 1);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        for (size_t k = from->task_at[r]; k < from->task_at[r + 1]; k++) {
            const struct hv_shard_task *t = &from->tasks[k];
            out[k] = (struct hv_stream_task){.stage = t->stage,
                                             .pipe = t->pipe,
                                             .scatter = t->scatter,
                                             .before = node_at(pl, r, t->before),
                                             .other = node_at(pl, r, t->other)};
            out[k].time_s = of_task(pl, r, &out[k], -1, seconds_of);
        }
    }
    return out;
}

void hv__plan_stream(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    if (!hv__has_stream(pl)) {
        return;
    }
    struct hv_shard_rule *rules = hv_arena_new(l->arena, struct hv_shard_rule, pl->n_ranks);
    double *slowdown = hv_arena_new(l->arena, double, pl->n_ranks);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        rules[r] = rule_of(&pl->replica->stages[pl->ranks[r].stage]);
        slowdown[r] = slowdown_of(l, &pl->ranks[r]);
    }
    struct hv_shard_tasks tasks;
    hv_schedule_plan_shards(l->arena, pl->schedule, rules, &tasks);
    int64_t *needs = hv_arena_new(l->arena, int64_t, (size_t)pl->pipe->n_nodes + 1);
    for (int32_t n = 0; n < pl->pipe->n_nodes; n++) {
        needs[n] = -1;
        for (size_t i = hv_pipe_first_op(pl->pipe, n); i < hv_pipe_first_op(pl->pipe, n + 1); i++) {
            needs[n] = tasks.needs[i] > needs[n] ? tasks.needs[i] : needs[n];
        }
    }
    struct hv_stream *stream = hv_arena_new(l->arena, struct hv_stream, 1);
    *stream = (struct hv_stream){tasks.task_at, price_tasks(l, pl, &tasks), needs, slowdown};
    pl->cost.stream = stream;
}

void hv__new_run(const struct hv__lowered *l, const struct hv__pipeline *pl,
                 struct hv_pipe_run *out)
{
    hv_pipe_run_new(l->arena, pl->pipe, out);
    if (pl->cost.stream != NULL) {
        hv_pipe_stream_new(l->arena, pl->pipe, pl->cost.stream, out);
    }
}

void hv__stream_memory(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t i_dp,
                       double *base_bytes, struct hv_pipe_memory *mem)
{
    const struct hv_stream *x = pl->cost.stream;
    if (x == NULL) {
        return;
    }
    double *bytes = hv_arena_new(l->arena, double, x->task_at[pl->n_ranks] + 1);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        const struct hv_memory *m = &pl->ranks[r].memory[i_dp % pl->ranks[r].n_dp];
        double held = 1 + m->fragmentation_frac;
        base_bytes[r] -=
            held * (m->unit_weights_bytes + m->unit_gradients_bytes + m->unit_buffers_bytes);
        for (size_t k = x->task_at[r]; k < x->task_at[r + 1]; k++) {
            bytes[k] = held * of_task(pl, r, &x->tasks[k], (ptrdiff_t)i_dp, bytes_of);
        }
    }
    mem->stream = x;
    mem->task_bytes = bytes;
}

double *hv__task_fracs(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    const struct hv_stream *x = pl->cost.stream;
    bool any = false;
    if (x == NULL) {
        return NULL;
    }
    double *frac = hv_arena_new(l->arena, double, x->task_at[pl->n_ranks] + 1);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        for (size_t k = x->task_at[r]; k < x->task_at[r + 1]; k++) {
            double network_s = of_task(pl, r, &x->tasks[k], -1, network_s_of);
            frac[k] = x->tasks[k].time_s > 0 ? fmin(1, network_s / x->tasks[k].time_s) : 0;
            any = any || frac[k] > 0;
        }
    }
    return any ? frac : NULL;
}

double hv__scattered_s(const struct hv__pipeline *pl, size_t gstage)
{
    const struct hv_stream *x = pl->cost.stream;
    size_t rank = pl->gstages[gstage].rank;
    double end_s = 0;
    for (size_t k = x != NULL ? x->task_at[rank] : 0; x != NULL && k < x->task_at[rank + 1]; k++) {
        const struct hv_stream_task *t = &x->tasks[k];
        size_t own = (size_t)t->pipe * pl->n_gstages + (size_t)t->stage;
        if (t->scatter && (t->stage < 0 || own == gstage)) {
            end_s = pl->run.stream->end_s[k];
        }
    }
    return end_s;
}
