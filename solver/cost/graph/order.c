/** Passes of a stage as tasks on compute and links. */
#include "solver/cost/graph/order.h"

#include "solver/base/vec.h"
#include "solver/plan/plan.h"
#include "solver/sim/events/tasks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Sums of gradients along the same axes, joined until they are so large. */
#define BUCKET_BYTES HV_PLAN_BUCKET_BYTES
#define MOST_BUCKETS 8
struct bucket {
    enum hv_exchange_kind kind;
    uint32_t atoms;
    int64_t group;
    double local_bytes, sent_bytes;
    HV_VEC(uint32_t) tensors;
};

/* Lanes. */
enum { COMPUTE, NEAR, FAR, N_LANES };

/* The exchanges of one operator in the list: before its kernel from `at` on, then behind it. */
struct exchanges {
    size_t at, end, first_behind;
};

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
    struct bucket buckets[MOST_BUCKETS];
    size_t n_buckets;
    struct exchanges *of_op; /* [operators + 1] */
    int32_t *early;          /* exchange that brings an operand → its task; -1: not added */
    int32_t last_compute, before_last; /* tasks of the kernel at hand, and of the one before */
    double exchange_s, far_s, sent_bytes;
    double chunks_s; /* of exchange_s: gathers and scatters of activations */
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

/* True where a tensor is there from the start of the pass: an input, a weight, or a value of the
 * forward pass in the backward one. */
static bool is_there(const struct order *o, uint32_t tensor)
{
    uint32_t writer = o->writer[tensor];
    return writer == NONE || (o->which != HV__FORWARD && writer < o->q->sharding->n_forward) ||
           o->kernel_of[writer] == NONE;
}

/* Adds an exchange that follows a step of the same path, or the kernel that writes its tensor. */
static int32_t add_exchange(struct order *o, const struct hv_lowered_exchange *x, int32_t follows)
{
    struct hv__wire_price p = hv__wire_price(o->q->wires, &x->exchange);
    int32_t task = begin_task(o, p.time_s, p.far ? FAR : NEAR);
    if (follows >= 0) {
        wait_for(o, follows);
    } else if (!is_there(o, x->tensor)) {
        wait_for(o, o->ready[x->tensor]);
        wait_for(o, o->task_of[o->kernel_of[o->writer[x->tensor]]]);
    }
    enum hv_exchange_kind kind = x->exchange.kind;
    bool chunks = kind == HV_EXCHANGE_GATHER || kind == HV_EXCHANGE_REDUCE_SCATTER;
    o->chunks_s += chunks && !o->q->kernels->from_weights[x->tensor] ? p.time_s : 0;
    o->exchange_s += p.time_s;
    o->far_s += p.far ? p.time_s : 0;
    o->sent_bytes += x->exchange.sent_bytes;
    return task;
}

/* ---- buckets --------------------------------------------------------------------------------- */

static void flush(struct order *o, struct bucket *b)
{
    struct hv_exchange x = {b->kind, b->atoms, b->group, b->local_bytes, b->sent_bytes};
    if (b->tensors.n == 0) {
        return;
    }
    struct hv__wire_price p = hv__wire_price(o->q->wires, &x);
    int32_t task = begin_task(o, p.time_s, p.far ? FAR : NEAR);
    for (size_t i = 0; i < b->tensors.n; i++) {
        uint32_t kernel = o->kernel_of[o->writer[b->tensors.items[i]]];
        wait_for(o, kernel != NONE ? o->task_of[kernel] : -1);
        o->ready[b->tensors.items[i]] = task;
    }
    o->exchange_s += p.time_s;
    o->far_s += p.far ? p.time_s : 0;
    o->sent_bytes += b->sent_bytes;
    b->tensors.n = 0;
    b->local_bytes = b->sent_bytes = 0;
}

static void flush_all(struct order *o)
{
    for (size_t i = 0; i < o->n_buckets; i++) {
        flush(o, &o->buckets[i]);
        hv_vec_free(&o->buckets[i].tensors);
    }
}

/* Puts the sum of a gradient into a bucket; false: it is none, or there are too many kinds. */
static bool put_in_bucket(struct order *o, const struct hv_lowered_exchange *x)
{
    const struct hv_exchange *e = &x->exchange;
    bool sums = e->kind == HV_EXCHANGE_REDUCE || e->kind == HV_EXCHANGE_REDUCE_SCATTER;
    if (!sums || !o->q->kernels->sums[x->tensor] || o->writer[x->tensor] == NONE) {
        return false;
    }
    size_t i = 0;
    while (i < o->n_buckets && (o->buckets[i].kind != e->kind || o->buckets[i].atoms != e->atoms)) {
        i++;
    }
    if (i == MOST_BUCKETS) {
        return false;
    }
    struct bucket *b = &o->buckets[i];
    if (i == o->n_buckets) {
        *b = (struct bucket){.kind = e->kind, .atoms = e->atoms, .group = e->group};
        o->n_buckets++;
    }
    hv_vec_push(&b->tensors, x->tensor);
    b->local_bytes += e->local_bytes;
    b->sent_bytes += e->sent_bytes;
    if (b->local_bytes >= BUCKET_BYTES) {
        flush(o, b);
    }
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The exchanges of every operator; those of results stand behind all operators. */
static void index_exchanges(struct order *o)
{
    const struct hv_lowered *l = &o->q->sharding->lowered;
    size_t n = o->q->sharding->graph.n_ops, at = 0;
    o->of_op = hv_arena_new(&o->arena, struct exchanges, n + 1);
    o->early = hv_arena_new(&o->arena, int32_t, l->n + 1);
    memset(o->early, 0xff, (l->n + 1) * sizeof *o->early);
    for (uint32_t i = 0; i <= n; i++) {
        struct exchanges x = {at, at, at};
        while (x.end < l->n && l->exchange[x.end].op == i) {
            x.first_behind += o->writer[l->exchange[x.end].tensor] != i;
            x.end++;
        }
        o->of_op[i] = x;
        at = x.end;
    }
}

/* Exchanges [from, to) of the list that bring operands to a kernel. `ahead`: only those of tensors
 * that are there, which then start with the kernel at hand. A path's steps follow each other. */
static void bring(struct order *o, size_t from, size_t to, bool ahead)
{
    const struct hv_lowered *l = &o->q->sharding->lowered;
    for (size_t i = from; i < to; i++) {
        bool same = i > from && l->exchange[i].tensor == l->exchange[i - 1].tensor;
        if (o->early[i] >= 0 || (ahead && !is_there(o, l->exchange[i].tensor))) {
            continue;
        }
        int32_t follows = same ? o->early[i - 1] : -1;
        o->early[i] = add_exchange(o, &l->exchange[i], follows);
        if (ahead && !same) {
            wait_for(o, o->before_last);
        }
    }
}

static void send(struct order *o, size_t from, size_t to)
{
    const struct hv_lowered *l = &o->q->sharding->lowered;
    int32_t follows = -1;
    for (size_t i = from; i < to; i++) {
        bool same = i > from && l->exchange[i].tensor == l->exchange[i - 1].tensor;
        bool more = i + 1 < to && l->exchange[i].tensor == l->exchange[i + 1].tensor;
        if (same || more || !put_in_bucket(o, &l->exchange[i])) {
            follows = add_exchange(o, &l->exchange[i], same ? follows : -1);
            o->ready[l->exchange[i].tensor] = follows;
        }
    }
}

static void add_kernel(struct order *o, uint32_t number)
{
    const struct hv__kernel *k = &o->q->kernels->items[number];
    const struct hv_shard_graph *g = &o->q->sharding->graph;
    int32_t task = begin_task(o, k->time_s, COMPUTE);
    for (uint32_t i = k->first; i < k->last; i++) {
        const struct exchanges *x = &o->of_op[i];
        for (size_t e = x->at; e < x->first_behind; e++) {
            wait_for(o, o->early[e]);
        }
        for (size_t t = 0; t < g->ops[i].rule->n_in; t++) {
            wait_for(o, o->ready[g->ops[i].tensor[t]]);
        }
    }
    o->task_of[number] = task;
    o->before_last = o->last_compute;
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

/* Starts what the kernel after the one at hand needs and what is there already. */
static void look_ahead(struct order *o, uint32_t after)
{
    for (uint32_t i = after + 1; i < o->q->sharding->graph.n_ops; i++) {
        uint32_t k = o->kernel_of[i];
        if (!in_pass(o, i)) {
            continue;
        }
        bring(o, o->of_op[i].at, o->of_op[i].first_behind, true);
        if (k != NONE && o->q->kernels->items[k].last == i + 1) {
            return;
        }
    }
}

static void send_of_kernel(struct order *o, uint32_t number)
{
    const struct hv__kernel *k = &o->q->kernels->items[number];
    for (uint32_t i = k->first; i < k->last; i++) {
        if (o->kernel_of[i] == number) {
            send(o, o->of_op[i].first_behind, o->of_op[i].end);
        }
    }
}

/* True where the results of the graph are brought into their layouts in this pass: gradients, where
 * there are any. */
static bool ends_here(const struct order *o)
{
    bool forward_only = o->q->sharding->n_forward == o->q->sharding->graph.n_ops;
    return o->which == HV__FORWARD ? forward_only
                                   : o->which != HV__INPUT_GRADIENTS && !forward_only;
}

static void add_all(struct order *o)
{
    uint32_t n = (uint32_t)o->q->sharding->graph.n_ops;
    for (uint32_t i = 0; i <= n; i++) {
        const struct exchanges *x = &o->of_op[i];
        if (i < n ? !in_pass(o, i) : !ends_here(o)) {
            continue;
        }
        bring(o, x->at, x->first_behind, false);
        uint32_t k = i < n ? o->kernel_of[i] : NONE;
        if (k != NONE && o->q->kernels->items[k].last == i + 1) {
            add_kernel(o, k);
            look_ahead(o, i);
            send_of_kernel(o, k);
        } else if (k == NONE) {
            send(o, x->first_behind, x->end);
        }
    }
    flush_all(o);
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
    struct order o = {.q = q, .which = which, .last_compute = -1, .before_last = -1};
    index_graph(&o);
    index_exchanges(&o);
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
        /* what the order of tasks leaves, and no more than what products leave chunk by chunk */
        double shown_s =
            fmin(run.makespan_s - run.busy_s[COMPUTE], o.exchange_s - q->hidden_frac * o.chunks_s);
        double hidden_s = fmax(0, o.exchange_s - shown_s);
        *out = (struct hv__pass_times){.compute_s = run.busy_s[COMPUTE],
                                       .shown_s = shown_s + q->overlap_frac * hidden_s,
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
