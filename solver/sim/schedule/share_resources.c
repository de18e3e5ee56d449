/*
 * Ranks that share resources, played on one timeline. Every rank keeps its order; among the ranks
 * whose next operation has its inputs, the one that can begin first runs it, and holds all of its
 * resources meanwhile. There is no deadlock: resources are held for as long as an operation runs,
 * so whatever the orders would run without sharing is run at last.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>

struct resource {
    double free_at;
    size_t last; /* op, ops of the schedule = none */
};

struct sharing {
    const struct hv_rank_resources *resources;
    struct hv_schedule *s;
    struct hv__times times;
    size_t *head;    /* [ranks] next op */
    double *free_at; /* [ranks] */
    struct resource *on;
    size_t *wait_at, *waits, n_waits; /* of op i from wait_at[i] on, wait_at[i + 1] set later */
    size_t *n_of;                     /* [ops] waits */
};

/* ops that run together from op i on: an overlapped pair, or one */
static size_t width(const struct sharing *x, size_t i, size_t end)
{
    const struct hv_op *ops = x->s->ops;
    return ops[i].group >= 0 && i + 1 < end && ops[i + 1].group == ops[i].group ? 2 : 1;
}

/* earliest start of what a rank runs next; infinity: it waits for other ranks, or is done */
static double start_of(const struct sharing *x, int32_t r)
{
    size_t i = x->head[r], end = x->s->rank_at[r + 1];
    double at = x->free_at[r];
    for (size_t k = 0; i < end && k < width(x, i, end); k++) {
        at = fmax(at, hv__op_ready(&x->times, &x->s->ops[i + k]));
    }
    for (int32_t d = x->resources->at[r]; d < x->resources->at[r + 1]; d++) {
        at = fmax(at, x->on[x->resources->resource[d]].free_at);
    }
    return i < end ? at : HUGE_VAL;
}

/* true where rank r goes before rank q, both being able to begin at the same time */
static bool goes_first(const struct sharing *x, int32_t r, int32_t q)
{
    const struct hv_op *a = &x->s->ops[x->head[r]], *b = &x->s->ops[x->head[q]];
    bool forward_a = a->kind == HV_OP_F, forward_b = b->kind == HV_OP_F;
    return forward_a != forward_b ? forward_b : a->mb < b->mb;
}

/* notes the ops that op i waits for on the resources of its rank */
static void wait(struct sharing *x, int32_t r, size_t i)
{
    size_t from = x->s->rank_at[r], end = x->s->rank_at[r + 1];
    x->wait_at[i] = x->n_waits;
    for (int32_t d = x->resources->at[r]; d < x->resources->at[r + 1]; d++) {
        size_t last = x->on[x->resources->resource[d]].last;
        bool own = last >= from && last < end, known = last == hv_schedule_n_ops(x->s);
        for (size_t k = x->wait_at[i]; k < x->n_waits && !known; k++) {
            known = x->waits[k] == last;
        }
        if (!own && !known) {
            x->waits[x->n_waits++] = last;
        }
    }
    x->n_of[i] = x->n_waits - x->wait_at[i];
}

static void run(struct sharing *x, int32_t r, double at)
{
    size_t i = x->head[r], n = width(x, i, x->s->rank_at[r + 1]);
    wait(x, r, i);
    for (size_t k = i; k < i + n; k++) {
        at += hv__op_takes(&x->times, &x->s->ops[k]);
    }
    for (size_t k = i; k < i + n; k++) {
        (void)hv__op_ended(&x->times, &x->s->ops[k], at);
    }
    for (int32_t d = x->resources->at[r]; d < x->resources->at[r + 1]; d++) {
        x->on[x->resources->resource[d]] = (struct resource){at, i};
    }
    x->free_at[r] = at;
    x->head[r] = i + n;
}

/* the rank that runs next; -1: none can */
static int32_t next_rank(const struct sharing *x, double *at)
{
    int32_t next = -1;
    for (int32_t r = 0; r < x->s->n_ranks; r++) {
        double own = start_of(x, r);
        if (own < HUGE_VAL && (next < 0 || own < *at || (own <= *at && goes_first(x, r, next)))) {
            next = r;
            *at = own;
        }
    }
    return next;
}

/* lists the waits of all ops in their order */
static void keep_waits(struct hv_arena *a, struct sharing *x)
{
    size_t n_ops = hv_schedule_n_ops(x->s);
    size_t *at = hv_arena_new(a, size_t, n_ops + 1),
           *waits = hv_arena_new(a, size_t, x->n_waits + 1);
    for (size_t i = 0; i < n_ops; i++) {
        at[i + 1] = at[i] + x->n_of[i];
        for (size_t k = 0; k < x->n_of[i]; k++) {
            waits[at[i] + k] = x->waits[x->wait_at[i] + k];
        }
    }
    x->s->wait_at = at;
    x->s->waits = waits;
    x->s->by_times = true;
}

enum hv_status hv__share_resources(struct hv_arena *a, const struct hv_schedule_input *in,
                                   struct hv_schedule *s, struct hv_err *err)
{
    const struct hv_rank_resources *d = in->resources;
    size_t n_ops = hv_schedule_n_ops(s), most = 1;
    if (d == NULL || s->wait_at != NULL) {
        return HV_OK;
    }
    if (s->n_pipes > 1) {
        return hv_err_set(
            err, HV_ENO,
            "schedule %s runs stages in two directions, which cannot share resources; "
            "give every rank its own, or take a schedule of one direction",
            in->row->name);
    }
    for (int32_t r = 0; r < s->n_ranks; r++) {
        most += (s->rank_at[r + 1] - s->rank_at[r]) * (size_t)(d->at[r + 1] - d->at[r]);
    }
    struct hv_arena scratch = {0};
    struct sharing x = {.resources = d, .s = s};
    hv__times_begin(&scratch, in, s, &x.times);
    x.head = hv_arena_copy(&scratch, s->rank_at, (size_t)s->n_ranks, sizeof *x.head);
    x.free_at = hv_arena_new(&scratch, double, (size_t)s->n_ranks);
    x.on = hv_arena_new(&scratch, struct resource, (size_t)d->n_resources);
    x.wait_at = hv_arena_new(&scratch, size_t, n_ops + 1);
    x.n_of = hv_arena_new(&scratch, size_t, n_ops + 1);
    x.waits = hv_arena_new(&scratch, size_t, most);
    for (int32_t i = 0; i < d->n_resources; i++) {
        x.on[i].last = n_ops;
    }
    double at = 0;
    for (int32_t r = next_rank(&x, &at); r >= 0; r = next_rank(&x, &at)) {
        run(&x, r, at);
    }
    keep_waits(a, &x);
    hv_arena_free(&scratch);
    return HV_OK;
}
