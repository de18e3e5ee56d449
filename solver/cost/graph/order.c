/** Passes of a stage as tasks on compute and links. */
#include "solver/cost/graph/order.h"

#include "solver/base/vec.h"
#include "solver/sim/events/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Lanes. */
enum { COMPUTE, NEAR, FAR, N_LANES };

struct order {
    const struct hv__order_query *q;
    enum hv__pass_of which;
    struct hv_arena arena;
    HV_VEC(struct hv_task) tasks;
    HV_VEC(int32_t) dep;
    HV_VEC(int32_t) dep_at;
    int32_t *ready;      /* tensor → task of the exchange behind its writer, -1: none */
    uint32_t *writer;    /* tensor → operator of the graph */
    int32_t *task_of;    /* kernel → its task; -1: not in this pass */
    uint32_t *kernel_of; /* operator of the graph → kernel; NONE: none */
    int32_t last_compute;
    int32_t ahead; /* kernel before the one that the last gather of weights was for */
    double exchange_s, far_s, sent_bytes;
};

static bool takes_part(const struct order *o, const struct hv__kernel *k)
{
    switch (o->which) {
    case HV__FORWARD:
        return !k->backward;
    case HV__BACKWARD:
        return k->backward;
    case HV__INPUT_GRADIENTS:
        return k->backward && !k->weight;
    case HV__WEIGHT_GRADIENTS:
        return k->weight;
    }
    return false;
}

static int32_t begin_task(struct order *o, double duration_s, int32_t lane)
{
    hv_vec_push(&o->dep_at, (int32_t)o->dep.n);
    hv_vec_push(&o->tasks, (struct hv_task){.duration_s = duration_s, .resource = lane});
    return (int32_t)o->tasks.n - 1;
}

static void wait_for(struct order *o, int32_t task)
{
    if (task >= 0) {
        hv_vec_push(&o->dep, task);
    }
}

static void index_graph(struct order *o)
{
    const struct hv_shard_graph *g = &o->q->sharding->graph;
    o->ready = hv_arena_new(&o->arena, int32_t, g->n_tensors + 1);
    o->writer = hv_arena_new(&o->arena, uint32_t, g->n_tensors + 1);
    o->kernel_of = hv_arena_new(&o->arena, uint32_t, g->n_ops + 1);
    o->task_of = hv_arena_new(&o->arena, int32_t, o->q->kernels->n + 1);
    memset(o->ready, 0xff, (g->n_tensors + 1) * sizeof *o->ready);
    memset(o->writer, 0xff, (g->n_tensors + 1) * sizeof *o->writer);
    memset(o->kernel_of, 0xff, (g->n_ops + 1) * sizeof *o->kernel_of);
    memset(o->task_of, 0xff, (o->q->kernels->n + 1) * sizeof *o->task_of);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        for (size_t t = g->ops[i].rule->n_in; t < g->ops[i].rule->n_in + g->ops[i].rule->n_out;
             t++) {
            o->writer[g->ops[i].tensor[t]] = i;
        }
    }
    for (uint32_t k = 0; k < o->q->kernels->n; k++) {
        for (uint32_t i = o->q->kernels->items[k].first; i < o->q->kernels->items[k].last; i++) {
            o->kernel_of[i] = k;
        }
    }
}

/* Adds an exchange; `before`: it brings an operand to the kernel that comes next. Gathers of
 * weights start while the kernel before that of the last one runs: one is in memory ahead. */
static int32_t add_exchange(struct order *o, const struct hv_lowered_exchange *x, bool before,
                            int32_t follows)
{
    struct hv__wire_price p = hv__wire_price(o->q->wires, &x->exchange);
    int32_t task = begin_task(o, p.time_s, p.far ? FAR : NEAR);
    uint32_t writer = o->writer[x->tensor];
    uint32_t kernel = writer != NONE ? o->kernel_of[writer] : NONE;
    bool weights = o->q->kernels->from_weights[x->tensor] && kernel == NONE;
    wait_for(o, follows >= 0 ? follows : o->ready[x->tensor]);
    wait_for(o, kernel != NONE ? o->task_of[kernel] : -1);
    if (before && weights) {
        wait_for(o, o->ahead);
        o->ahead = o->last_compute;
    }
    o->exchange_s += p.time_s;
    o->far_s += p.far ? p.time_s : 0;
    o->sent_bytes += x->exchange.sent_bytes;
    return task;
}

/* The exchanges of one operator from *at on. */
struct exchanges {
    size_t at, end, first_behind;
};

static struct exchanges exchanges_of(const struct order *o, uint32_t op, size_t at)
{
    const struct hv_lowered *l = &o->q->sharding->lowered;
    struct exchanges x = {at, at, at};
    while (x.end < l->n && l->exchange[x.end].op == op) {
        bool behind = o->writer[l->exchange[x.end].tensor] == op;
        x.first_behind += !behind;
        x.end++;
    }
    return x;
}

/* The last task of each tensor's path is what waits for it; a path's steps follow each other. */
static int32_t add_exchanges(struct order *o, size_t from, size_t to, bool before, int32_t *last)
{
    const struct hv_lowered *l = &o->q->sharding->lowered;
    int32_t follows = -1;
    for (size_t i = from; i < to; i++) {
        bool same = i > from && l->exchange[i].tensor == l->exchange[i - 1].tensor;
        follows = add_exchange(o, &l->exchange[i], before, same ? follows : -1);
        if (!before) {
            o->ready[l->exchange[i].tensor] = follows;
        }
        last[i - from] = follows;
    }
    return follows;
}

static void add_kernel(struct order *o, uint32_t number, const int32_t *waits, size_t n_waits)
{
    const struct hv__kernel *k = &o->q->kernels->items[number];
    const struct hv_shard_graph *g = &o->q->sharding->graph;
    int32_t task = begin_task(o, k->time_s, COMPUTE);
    for (size_t i = 0; i < n_waits; i++) {
        wait_for(o, waits[i]);
    }
    for (uint32_t i = k->first; i < k->last; i++) {
        for (size_t t = 0; t < g->ops[i].rule->n_in; t++) {
            wait_for(o, o->ready[g->ops[i].tensor[t]]);
        }
    }
    o->task_of[number] = task;
    o->last_compute = task;
}

/* True where the exchanges of an operator are those of this pass. */
static bool in_pass(const struct order *o, uint32_t op)
{
    uint32_t k = o->kernel_of[op];
    bool backward = op >= o->q->sharding->n_forward;
    bool whole = o->which == HV__FORWARD ? !backward : o->which == HV__BACKWARD && backward;
    return k != NONE ? takes_part(o, &o->q->kernels->items[k]) : whole;
}

static void add_all(struct order *o)
{
    const struct hv_sharding *s = o->q->sharding;
    size_t at = 0, room = s->lowered.n + 1;
    int32_t *waits = hv_arena_new(&o->arena, int32_t, room);
    int32_t *behind = hv_arena_new(&o->arena, int32_t, room);
    size_t n_waits = 0;
    for (uint32_t i = 0; i <= s->graph.n_ops; i++) {
        struct exchanges x = exchanges_of(o, i, at);
        at = x.end;
        bool ends = i == s->graph.n_ops; /* results of the graph: gradients, where there are any */
        if (ends ? o->which == HV__INPUT_GRADIENTS ||
                       (o->which == HV__FORWARD) != (s->n_forward == s->graph.n_ops)
                 : !in_pass(o, i)) {
            continue;
        }
        (void)add_exchanges(o, x.at, x.first_behind, true, waits + n_waits);
        n_waits += x.first_behind - x.at;
        uint32_t k = ends ? NONE : o->kernel_of[i];
        if (k != NONE && o->q->kernels->items[k].last == i + 1) {
            add_kernel(o, k, waits, n_waits);
            n_waits = 0;
        }
        (void)add_exchanges(o, x.first_behind, x.end, false, behind);
    }
    hv_vec_push(&o->dep_at, (int32_t)o->dep.n);
}

static void note_ends(const struct order *o, const struct hv_task_run *run, double *end_s)
{
    const struct hv_shard_graph *g = &o->q->sharding->graph;
    for (uint32_t k = 0; k < o->q->kernels->n; k++) {
        const struct hv__kernel *x = &o->q->kernels->items[k];
        end_s[k] = o->task_of[k] >= 0 ? run->end_s[o->task_of[k]] : 0;
        for (uint32_t i = x->first; i < x->last && o->task_of[k] >= 0; i++) {
            for (size_t t = g->ops[i].rule->n_in; t < g->ops[i].rule->n_in + g->ops[i].rule->n_out;
                 t++) {
                int32_t ready = o->ready[g->ops[i].tensor[t]];
                end_s[k] = ready >= 0 ? fmax(end_s[k], run->end_s[ready]) : end_s[k];
            }
        }
    }
}

enum hv_status hv__pass_times(const struct hv__order_query *q, enum hv__pass_of which,
                              struct hv__pass_times *out, double *end_s, struct hv_err *err)
{
    static const enum hv_resource_kind lanes[N_LANES] = {HV_RESOURCE_COMPUTE, HV_RESOURCE_LINK,
                                                         HV_RESOURCE_LINK};
    struct order o = {.q = q, .which = which, .last_compute = -1, .ahead = -1};
    index_graph(&o);
    add_all(&o);
    struct hv_task_graph g = {.n_tasks = o.tasks.n,
                              .n_resources = N_LANES,
                              .tasks = o.tasks.items,
                              .resources = lanes,
                              .dep_at = o.dep_at.items,
                              .dep = o.dep.items};
    struct hv_task_run run;
    hv_tasks_run_new(&o.arena, &g, &run);
    enum hv_status st = hv_tasks_place(&o.arena, &g, &run, err);
    if (st == HV_OK) {
        double hidden_s = fmax(0, o.exchange_s - (run.makespan_s - run.busy_s[COMPUTE]));
        *out = (struct hv__pass_times){.compute_s = run.busy_s[COMPUTE],
                                       .shown_s = run.makespan_s - run.busy_s[COMPUTE] +
                                                  q->overlap_frac * hidden_s,
                                       .far_s = o.far_s,
                                       .sent_bytes = o.sent_bytes};
        out->all_s = out->compute_s + out->shown_s;
        if (end_s != NULL) {
            note_ends(&o, &run, end_s);
        }
    }
    hv_vec_free(&o.tasks);
    hv_vec_free(&o.dep);
    hv_vec_free(&o.dep_at);
    hv_arena_free(&o.arena);
    return st;
}
