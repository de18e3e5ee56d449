/** Stages of operators: solved once per range, mesh, layouts and micro-batch, and remembered. */
#include "solver/cost/graph/graph.h"

#include "solver/base/rng.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/graph/fold.h"
#include "solver/cost/graph/live.h"
#include "solver/cost/graph/work.h"
#include "solver/workload/graph/gradient.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most stages that are remembered; then all are forgotten. */
#define MOST_STAGES 4096

/* A solved and priced stage of one micro-batch on one rank. */
struct solved {
    uint64_t key;
    struct hv_pass pass;
    double arriving_bytes, leaving_bytes; /* of one device */
    double *parameters;                   /* [operators + 1] of one device, prefix sums */
    size_t from, to;                      /* operators */
    struct solved *next;
};

struct hv__graphs {
    struct hv_arena arena;
    struct solved *first;
    size_t n;
};

void hv__graphs_free(struct hv__graphs *g)
{
    if (g != NULL) {
        hv_arena_free(&g->arena);
        free(g);
    }
}

/* ---- key ------------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t h, const char *text)
{
    return hv_hash(h, text, strlen(text) + 1);
}

static uint64_t hash_pairs(uint64_t h, const struct hv_named_pairs *p)
{
    h = hash_text(h, p->name != NULL ? p->name : "");
    for (size_t i = 0; i < p->n; i++) {
        h = hash_text(hash_text(h, p->keys[i]), p->values[i]);
    }
    return h;
}

static uint64_t key_of(const struct hv__graph_ask *a)
{
    const struct hv_stage *s = a->r->stage;
    const struct hv_cluster *c = a->k->cluster;
    const uint64_t numbers[] = {a->from,
                                a->to,
                                (uint64_t)a->sequences,
                                a->again,
                                a->r->dp,
                                a->r->tp,
                                a->r->at,
                                s->n_shard,
                                hv__signature(c, a->r->group, a->r->tp),
                                hv__signature(c, a->r->part, a->r->dp * a->r->tp)};
    uint64_t h = hv_hash(HV_HASH_START, numbers, sizeof numbers);
    h = hv_hash(h, &a->part.sequences, sizeof a->part.sequences);
    h = hash_pairs(hash_pairs(h, &s->mesh), &s->fuse);
    for (size_t i = 0; i < s->n_shard; i++) {
        h = hash_pairs(h, &s->shard[i]);
    }
    return h;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static enum hv_status solve(struct hv__graph_work *w, struct hv_err *err)
{
    struct hv__graph_ask *a = w->a;
    struct hv_tensor_graph g;
    struct hv_given_layout *given = NULL;
    size_t n_given = 0;
    enum hv_status st = hv__graph_sized(a, &a->arena, &g, err);
    st = st ? st : hv__graph_place(a, w, err);
    if (st != HV_OK) {
        return st;
    }
    hv_graph_part_cut(&g, a->from, a->to, &a->arena, &w->part);
    st =
        hv__given_layouts(a->r->stage, &w->place, &w->part.graph, &a->arena, &given, &n_given, err);
    return st ? st : hv__graph_solve(w, given, n_given, err);
}

static double sums_s(const struct hv__graph_ask *a, double parameters)
{
    struct hv_efficiency e = hv_efficiency_of(a->r->device, a->k->job.precision);
    double bytes = 2 * hv_job_grad_bytes(&a->k->job) * parameters;
    return e.calibration->v[HV_CAL_ACCUMULATE] * bytes / e.bytes_per_s;
}

static void set_seconds(const struct hv__graph_work *w, const struct hv__graph_times *t,
                        double parameters, struct hv_pass *o)
{
    const struct hv__graph_ask *a = w->a;
    double sums = sums_s(a, parameters);
    double host_s =
        a->q->continued ? 0 : hv_device_calibration(a->r->device)->v[HV_CAL_PASS_US] * HV_US;
    o->weight_grad_s = fmin(t->weights.compute_s, t->back.all_s) + sums;
    o->forward_s = t->forward.all_s + host_s;
    o->input_grad_s = t->back.all_s - fmin(t->weights.compute_s, t->back.all_s) + host_s;
    o->weight_alone_s = t->weights.all_s + sums;
    o->input_alone_s = fmax(t->inputs.all_s, t->back.all_s - t->weights.all_s) + host_s;
    o->recompute_s = a->again ? t->forward.all_s : 0;
    o->tp_s = t->forward.shown_s * (a->again ? 2 : 1) + t->back.shown_s;
    o->network_forward_s = t->forward.far_s;
    o->network_backward_s = t->back.far_s + (a->again ? t->forward.far_s : 0);
    o->network_weight_s = t->weights.far_s;
    o->compute_s = t->forward.compute_s + t->back.compute_s + sums + 2 * host_s;
    double values = hv_job_activation_bytes(&a->k->job);
    o->sent.tp.forward = t->forward.sent_bytes / values;
    o->sent.tp.backward = t->back.sent_bytes / values;
    for (size_t i = 0; i < w->kernels.n; i++) {
        o->flops += w->kernels.items[i].flops;
    }
}

static void set_bytes(const struct hv__graph_work *w, struct solved *x)
{
    struct hv__live live = hv__live_bytes(&w->sharding, &w->kernels, &w->part, w->a->again);
    x->pass.activation_bytes = live.kept;
    x->pass.weight_only_bytes = live.weight_only;
    x->pass.transient_bytes = live.transient;
    x->pass.hop_bytes = w->part.passing_bytes;
    x->arriving_bytes = live.arriving;
    for (size_t i = 0; i < w->part.n_leaving && w->part.passing_bytes > 0; i++) {
        const struct hv_shard_tensor *t =
            &w->sharding.graph.tensors[w->sharding.expansion.tensor_of[w->part.leaving[i]]];
        x->leaving_bytes += hv_layout_bytes(&t->layout, &w->place.mesh, &t->shape);
    }
}

/* Parameters of one device, by the operator that reads each first. */
static double *count_parameters(const struct hv__graph_work *w, struct hv_arena *keep)
{
    const struct hv_tensor_graph *g = &w->part.graph;
    double *sum = hv_arena_new(keep, double, g->n_ops + 2);
    bool *seen = hv_arena_new(&w->a->arena, bool, g->n_tensors + 1);
    for (size_t i = 0; i < g->n_ops; i++) {
        sum[i + 1] = sum[i];
        for (size_t k = 0; k < g->ops[i].n_in; k++) {
            uint32_t t = g->ops[i].in[k].tensor;
            const struct hv_shard_tensor *x =
                &w->sharding.graph.tensors[w->sharding.expansion.tensor_of[t]];
            if (g->tensors[t].role == HV_TENSOR_PARAMETER && !seen[t]) {
                sum[i + 1] += hv_layout_bytes(&x->layout, &w->place.mesh, &x->shape) /
                              (double)x->shape.element_bytes;
            }
            seen[t] = true;
        }
    }
    return sum;
}

/* When the gradients of up to HV_MILESTONES_PER_RUN runs of operators are ready, counted back from
 * the end. */
static void set_milestones(const struct hv__graph_work *w, const struct hv__graph_times *t,
                           struct hv_pass *o)
{
    size_t n_ops = w->part.graph.n_ops;
    size_t n = n_ops < HV_MILESTONES_PER_RUN ? n_ops : HV_MILESTONES_PER_RUN;
    struct hv_milestone list[HV_MILESTONES_PER_RUN];
    for (size_t i = 0; i < n; i++) {
        size_t from = i * n_ops / n, to = (i + 1) * n_ops / n;
        double ready_s = 0;
        for (size_t k = w->kernels.n_forward; k < w->kernels.n; k++) {
            uint32_t op = w->kernels.items[k].op;
            ready_s = op >= from && op < to ? fmax(ready_s, t->end_s[k]) : ready_s;
        }
        list[i] = (struct hv_milestone){{2 * (int)(w->a->from + from), 2 * (int)(w->a->from + to)},
                                        fmax(0, t->back.all_s - ready_s)};
    }
    hv__keep_milestones(w->a->k, list, n, o);
}

/* A graph without batch is one sequence: a micro-batch is as many of them, one after the other. */
static void repeat(struct hv_pass *o, double times)
{
    double *const fields[] = {&o->forward_s,
                              &o->input_grad_s,
                              &o->weight_grad_s,
                              &o->recompute_s,
                              &o->input_alone_s,
                              &o->weight_alone_s,
                              &o->tp_s,
                              &o->network_forward_s,
                              &o->network_backward_s,
                              &o->network_weight_s,
                              &o->compute_s,
                              &o->flops,
                              &o->hop_bytes,
                              &o->activation_bytes,
                              &o->weight_only_bytes,
                              &o->sent.tp.forward,
                              &o->sent.tp.backward};
    for (size_t i = 0; i < HV_COUNT(fields); i++) {
        *fields[i] *= times;
    }
}

/* ---- why ------------------------------------------------------------------------------------- */

/* The operator that an exchange is for, and its pass. */
static const char *purpose(const struct hv__graph_work *w, const struct hv_lowered_exchange *x,
                           struct hv_arena *arena)
{
    const struct hv_sharding *s = &w->sharding;
    uint32_t op =
        x->op < s->graph.n_ops ? s->expansion.prims.prims[s->prim_of[x->op]].op : HV_NO_OP;
    return op == HV_NO_OP ? "results"
                          : hv_arena_printf(arena, "%s of \"%.80s\"",
                                            x->op < s->n_forward ? "forward" : "backward",
                                            w->part.graph.ops[op].id);
}

/* One term per operator: its kernels of the forward pass, and those of the backward one. */
static void explain_kernels(const struct hv__graph_work *w, struct hv_why *why)
{
    size_t n = w->part.graph.n_ops;
    struct hv_why_work *work = hv_arena_new(why->arena, struct hv_why_work, n + 1);
    double *forward_s = hv_arena_new(why->arena, double, n + 1);
    const struct hv__kernel **largest = hv_arena_new(why->arena, const struct hv__kernel *, n + 1);
    for (size_t i = 0; i < w->kernels.n; i++) {
        const struct hv__kernel *k = &w->kernels.items[i];
        struct hv_why_work *x = &work[k->op];
        forward_s[k->op] += k->backward ? 0 : k->time_s;
        x->backward_s += k->backward ? k->time_s : 0;
        *(k->backward ? &x->backward_flops : &x->flops) += k->flops;
        *(k->backward ? &x->backward_bytes : &x->bytes) += k->stream_bytes;
        bool first = largest[k->op] == NULL || k->flops > largest[k->op]->flops;
        largest[k->op] = first ? k : largest[k->op];
    }
    for (size_t i = 0; i < n; i++) {
        const struct hv_why_work *x = &work[i];
        const struct hv__kernel *k = largest[i];
        if (k != NULL) {
            hv_why_add(why, w->part.graph.ops[i].id, forward_s[i], "s",
                       "%.4g FLOP, stream of %.4g bytes; backward %.4g s, %.4g FLOP, %.4g bytes; "
                       "largest product of a device %.0f*%.0f*%.0f",
                       x->flops, x->bytes, x->backward_s, x->backward_flops, x->backward_bytes,
                       k->m, k->n, k->k);
            hv_why_attach(why, x);
        }
    }
}

static void explain(struct hv__graph_work *w, struct hv_why *why)
{
    const struct hv_lowered *l = &w->sharding.lowered;
    struct hv__folded *rules = NULL;
    size_t n_rules = hv__fold_layouts(&w->part.graph, &w->sharding, &w->place, why->arena, &rules);
    for (size_t i = 0; i < n_rules; i++) {
        hv_why_add(why, rules[i].pattern, rules[i].bytes, "bytes", "shard %s, %zu tensor%s",
                   rules[i].layout, rules[i].n, rules[i].n == 1 ? "" : "s");
    }
    explain_kernels(w, why);
    for (size_t i = 0; i < l->n; i++) {
        const struct hv_exchange *x = &l->exchange[i].exchange;
        struct hv__wire_price p = hv__wire_price(&w->wires, x);
        bool backward = l->exchange[i].op >= w->sharding.n_forward;
        hv_why_add(why, hv_exchange_name(x->kind), backward ? 0 : p.time_s, "s",
                   "%.4g s %s, along %s, groups of %lld: %.4g bytes of a device, %.4g sent, %s "
                   "nodes%s",
                   p.time_s, purpose(w, &l->exchange[i], why->arena),
                   hv__wire_text(&w->wires, x, why->arena), (long long)x->group, x->local_bytes,
                   x->sent_bytes, p.far ? "between" : "inside",
                   l->cut ? "; a cheaper way may exist" : "");
        hv_why_attach(why, &(struct hv_why_work){.backward_s = backward ? p.time_s : 0});
    }
}

/* ---- the calls ------------------------------------------------------------------------------- */

static enum hv_status price(struct hv__graph_ask *a, struct hv_arena *keep, struct solved *out,
                            struct hv_err *err)
{
    struct hv__graph_work w = {.a = a};
    struct hv__graph_times t = {0};
    *out = (struct solved){.from = a->from, .to = a->to};
    enum hv_status st = solve(&w, err);
    st = st ? st : hv__graph_time(&w, &t, err);
    if (st == HV_OK) {
        out->parameters = count_parameters(&w, keep);
        set_seconds(&w, &t, out->parameters[a->to - a->from], &out->pass);
        set_bytes(&w, out);
        set_milestones(&w, &t, &out->pass);
        if (a->sequences == 0) {
            repeat(&out->pass, a->part.sequences);
        }
        if (a->q->why != NULL) {
            explain(&w, a->q->why);
        }
    }
    hv__memo_free(&w.wires.memo);
    return st;
}

static enum hv_status check(const struct hv__graph_ask *a, struct hv_err *err)
{
    if (a->r->cp > 1) {
        return hv_err_set(err, HV_ENO, "operators of a graph have no context parallelism");
    }
    if (a->part.recompute != HV_RC_NONE && !a->again) {
        return hv_err_set(err, HV_ENO, "recompute of operators of a graph is \"none\" or \"full\"");
    }
    return HV_OK;
}

/* The operators of a range of a stage, solved. */
static enum hv_status find(struct hv__context *k, const struct hv_stage_query *q,
                           const struct hv__rank *r, size_t chunk, const struct solved **out,
                           struct hv_err *err)
{
    struct hv__graph_ask a = hv__graph_ask(k, q, r, chunk);
    enum hv_status st = check(&a, err);
    uint64_t key = key_of(&a);
    if (k->graphs == NULL || k->graphs->n > MOST_STAGES) {
        hv__graphs_free(k->graphs);
        k->graphs = hv_xcalloc(1, sizeof *k->graphs);
    }
    for (struct solved *s = k->graphs->first; st == HV_OK && s != NULL; s = s->next) {
        if (s->key == key && q->why == NULL) {
            *out = s;
            return HV_OK;
        }
    }
    struct solved *own = hv_arena_new(&k->graphs->arena, struct solved, 1);
    st = st ? st : price(&a, &k->graphs->arena, own, err);
    hv_arena_free(&a.arena);
    if (st == HV_OK) {
        own->key = key;
        own->next = k->graphs->first;
        k->graphs->first = own;
        k->graphs->n++;
        *out = own;
    }
    return st;
}

enum hv_status hv__graph_pass(struct hv__context *k, const struct hv_stage_query *q,
                              struct hv_pass *out, struct hv_err *err)
{
    struct hv__rank r;
    const struct solved *s = NULL;
    *out = (struct hv_pass){0};
    enum hv_status st = hv__find_rank(k, q, &r, err);
    if (st != HV_OK || q->chunk >= r.stage->n_ranges) {
        return st;
    }
    st = find(k, q, &r, q->chunk, &s, err);
    if (st == HV_OK) {
        *out = s->pass;
    }
    return st;
}

enum hv_status hv__graph_counts(struct hv__context *k, const struct hv_stage_query *q,
                                const struct hv__rank *r, struct hv__rank_counts *out,
                                struct hv_err *err)
{
    struct hv_stage_query silent = *q;
    silent.why = NULL;
    *out = (struct hv__rank_counts){0};
    for (size_t i = 0; i < r->stage->n_ranges; i++) {
        const struct solved *s = NULL;
        enum hv_status st = find(k, &silent, r, i, &s, err);
        if (st != HV_OK) {
            return st;
        }
        double boundary = fmax(s->arriving_bytes, s->leaving_bytes);
        out->boundary_bytes = fmax(out->boundary_bytes, 2 * boundary);
        out->parameters += s->parameters[s->to - s->from];
        for (size_t o = 0; o < s->to - s->from; o++) {
            out->largest = fmax(out->largest, s->parameters[o + 1] - s->parameters[o]);
        }
    }
    return HV_OK;
}

enum hv_status hv__graph_parameters(struct hv__context *k, const struct hv_stage_query *q,
                                    double *of_block, struct hv_err *err)
{
    struct hv__rank r;
    enum hv_status st = hv__find_rank(k, q, &r, err);
    for (size_t i = 0; st == HV_OK && i < r.stage->n_ranges; i++) {
        const struct solved *s = NULL;
        st = find(k, q, &r, i, &s, err);
        for (size_t o = 0; st == HV_OK && o < s->to - s->from; o++) {
            of_block[s->from + o] = (double)r.tp * (s->parameters[o + 1] - s->parameters[o]);
        }
    }
    return st;
}
