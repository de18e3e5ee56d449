/**
 * Plans for many jobs: every one is judged by the ordinary judge on its own devices; jobs that run
 * at the same time share none. Waiting and completion times are counted from the arrival on, as job
 * schedulers do (Crius, Xue et al., arXiv 2403.16125, section 6).
 */
#include "solver/eval/judges.h"
#include "solver/eval/timeline/timeline_int.h"

#include <math.h>

#include <stdio.h>

/** Seconds that a job runs: all its iterations; infinite where it gives no number. */
static double run_s(const struct hv_plan_job *j, const struct hv_verdict *v)
{
    return hv_known(j->iterations) ? j->iterations * v->metrics.iteration_s : HUGE_VAL;
}

/** Adds the findings of a job, with their place in the whole plan. */
static void take_findings(struct hv_verdict *out, size_t i, const struct hv_verdict *v)
{
    for (size_t k = 0; k < v->findings.n; k++) {
        const struct hv_violation *x = &v->findings.items[k];
        const char *where = hv_arena_printf(out->findings.arena, "jobs[%zu].plan.%s", i, x->where);
        hv_finding_add(&out->findings, x->code, x->by, where, "%s", x->text);
    }
    for (size_t k = 0; k < v->n_approximated; k++) {
        hv__add_approximated(
            out, out->findings.arena,
            hv_arena_printf(out->findings.arena, "jobs[%zu].plan.%s", i, v->approximated[k]));
    }
}

/** Marks the devices of a plan's stages with `mark`; returns how many had `other` before. */
static size_t mark_devices(const struct hv_plan *p, uint32_t *marks, uint32_t mark, uint32_t other)
{
    size_t met = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *st = &p->replicas[i].stages[s];
            for (size_t d = 0; d < st->n_devices; d++) {
                met += other > 0 && marks[st->devices[d]] == other;
                marks[st->devices[d]] = mark;
            }
        }
    }
    return met;
}

/** True where two jobs run at the same time. A job without an end runs for ever. */
static bool at_once(const struct hv_job_verdict *a, const struct hv_job_verdict *b)
{
    return a->start_s < b->end_s && b->start_s < a->end_s;
}

/** Adds a finding where jobs that run at the same time have devices in common. O(jobs² · devices).
 */
static void check_overlap(const struct hv_plan *p, struct hv_arena *arena, struct hv_verdict *out)
{
    uint32_t *marks = hv_arena_new(arena, uint32_t, p->cluster->n_devices);
    uint32_t mark = 0;
    for (size_t i = 0; i < p->n_jobs; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct hv_job_verdict *a = &out->jobs->items[k], *b = &out->jobs->items[i];
            if (!at_once(a, b)) {
                continue;
            }
            mark += 2;
            (void)mark_devices(p->jobs[k].plan, marks, mark, 0);
            size_t met = mark_devices(p->jobs[i].plan, marks, mark + 1, mark);
            if (met > 0) {
                char where[48];
                (void)snprintf(where, sizeof where, "jobs[%zu].plan", i);
                hv_finding_add(
                    &out->findings, HV_V_DEVICES_OVERLAP, (double)met, where,
                    "%zu device%s of job %s %s also used by job %s at the same time: start the job "
                    "after the other one has ended (start_s), or give it other devices",
                    met, met == 1 ? "" : "s", b->name, met == 1 ? "is" : "are", a->name);
            }
        }
    }
}

/** Price per hour of all nodes that the marked jobs use, each once, and how many devices. */
static void add_price(const struct hv_plan *p, const bool *counts, struct hv_arena *arena,
                      struct hv_metrics *m)
{
    const struct hv_cluster *c = p->cluster;
    uint32_t *marks = hv_arena_new(arena, uint32_t, c->n_devices);
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < p->n_jobs; i++) {
        if (counts[i]) {
            (void)mark_devices(p->jobs[i].plan, marks, 1, 0);
        }
    }
    m->usd_per_h = 0;
    for (uint32_t d = 0; d < c->n_devices; d++) {
        struct hv_device_ref ref = hv_cluster_device(c, d);
        m->n_devices_used += marks[d];
        if (marks[d] > 0 && ref.node != last) {
            m->usd_per_h += hv_node_price_usd_per_h(&c->groups[ref.group], false);
            last = ref.node;
        }
    }
}

/** Metrics of all jobs: sums over the jobs without an end where there are any, else means until the
 * last job has ended. */
static void add_sums(const struct hv_plan *p, struct hv_arena *arena, struct hv_verdict *out)
{
    const struct hv_jobs_verdict *j = out->jobs;
    struct hv_metrics *m = &out->metrics;
    bool *counts = hv_arena_new(arena, bool, j->n + 1), ends = hv_known(j->makespan_s);
    double tokens = 0, usd = 0;
    m->tokens_per_s = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct hv_job_verdict *x = &j->items[i];
        const struct hv_metrics *own = &x->verdict.metrics;
        counts[i] = ends || !isfinite(x->end_s);
        tokens += ends ? own->tokens_per_s * (x->end_s - x->start_s) : 0;
        usd += ends ? x->usd : 0;
        m->tokens_per_s += !ends && counts[i] ? own->tokens_per_s : 0;
        m->exact = m->exact && own->exact;
    }
    add_price(p, counts, arena, m);
    if (ends) {
        m->tokens_per_s = tokens / j->makespan_s;
        m->usd_per_h = usd / j->makespan_s * 3600;
    }
    m->usd_per_mtoken = m->usd_per_h / 3600 / m->tokens_per_s * 1e6;
}

/** True where a later entry continues job i. */
static bool goes_on(const struct hv_plan *p, size_t i)
{
    for (size_t k = i + 1; k < p->n_jobs; k++) {
        if (p->jobs[k].continues == (int)i) {
            return true;
        }
    }
    return false;
}

/** A job of several parts counts once: it waits until its first part starts, and is complete when
 * its last has ended. O(jobs²). */
static void add_times(const struct hv_plan *p, struct hv_jobs_verdict *j)
{
    size_t n = 0;
    j->makespan_s = j->mean_wait_s = j->mean_completion_s = 0;
    for (size_t i = 0; i < j->n; i++) {
        n += p->jobs[i].continues < 0;
    }
    for (size_t i = 0; i < j->n; i++) {
        const struct hv_job_verdict *x = &j->items[i];
        double end = isfinite(x->end_s) ? x->end_s : HV_UNKNOWN;
        j->makespan_s =
            hv_known(end) && hv_known(j->makespan_s) ? fmax(j->makespan_s, end) : HV_UNKNOWN;
        j->mean_wait_s += p->jobs[i].continues < 0 ? (x->start_s - x->arrival_s) / (double)n : 0;
        j->mean_completion_s += goes_on(p, i) ? 0 : (end - x->arrival_s) / (double)n;
    }
}

/** Arrival and start of job i: a further part arrives with the first and starts no earlier than the
 * end of the part before it. */
static void begin(const struct hv_plan *p, size_t i, const struct hv_jobs_verdict *j,
                  struct hv_job_verdict *x)
{
    const struct hv_job_verdict *before =
        p->jobs[i].continues >= 0 ? &j->items[p->jobs[i].continues] : NULL;
    x->arrival_s = before != NULL ? before->arrival_s : p->jobs[i].arrival_s;
    x->start_s = before != NULL ? fmax(p->jobs[i].start_s, before->end_s) : p->jobs[i].start_s;
    x->wait_s = x->start_s - (before != NULL ? before->end_s : x->arrival_s);
}

enum hv_status hv__judge_jobs(const struct hv__question *q, struct hv_verdict *out,
                              struct hv_err *err)
{
    const struct hv_plan *p = q->plan;
    struct hv_arena *arena = q->arena;
    hv__verdict_begin(q, out);
    struct hv_jobs_verdict *j = hv_arena_new(arena, struct hv_jobs_verdict, 1);
    struct hv_cost *const *costs = q->options->jobs;
    struct hv_eval_options own = *q->options;
    own.jobs = NULL;
    j->n = p->n_jobs;
    j->items = hv_arena_new(arena, struct hv_job_verdict, j->n + 1);
    out->jobs = j;
    for (size_t i = 0; i < j->n; i++) {
        const struct hv__question one = {.k = costs != NULL && costs[i] != NULL ? costs[i] : q->k,
                                         .plan = p->jobs[i].plan,
                                         .options = &own,
                                         .arena = arena};
        struct hv_job_verdict *x = &j->items[i];
        *x = (struct hv_job_verdict){.name = hv_arena_strdup(arena, p->jobs[i].name)};
        begin(p, i, j, x);
        enum hv_status st = hv__judge_one(&one, &x->verdict, err);
        if (st != HV_OK) {
            return st;
        }
        x->end_s = x->start_s + run_s(&p->jobs[i], &x->verdict);
        x->usd = (x->end_s - x->start_s) / 3600 * x->verdict.metrics.usd_per_h;
        x->usd = isfinite(x->usd) ? x->usd : HV_UNKNOWN;
        take_findings(out, i, &x->verdict);
    }
    check_overlap(p, arena, out);
    add_times(p, j);
    add_sums(p, arena, out);
    return HV_OK;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/** Copies a lane with its operations moved by `shift`. */
static enum hv_status add_lane(struct hv_arena *arena, const struct hv_lane *from, int32_t shift,
                               const char *name, struct hv_timeline *to, size_t *out)
{
    struct hv_span *spans = hv_arena_new(arena, struct hv_span, from->n_spans + 1);
    for (size_t i = 0; i < from->n_spans; i++) {
        spans[i] = from->spans[i];
        spans[i].id += shift;
    }
    struct hv_lane lane = {
        .name = name, .resource = from->resource, .spans = spans, .n_spans = from->n_spans};
    *out = to->lanes.n;
    return hv_lanes_add(arena, &to->lanes, &lane, NULL);
}

/** Copies operations and their transfers; their numbers follow the existing ones. */
static void add_ops(const struct hv_timeline *t, struct hv_timeline *to)
{
    for (size_t i = 0; i < t->n_ops; i++) {
        struct hv_timeline_op *op = &to->ops[to->n_ops++];
        *op = t->ops[i];
        op->paired += hv_span_is_transfer(op->kind) ? (int32_t)to->n_hops : 0;
    }
    for (size_t i = 0; i < t->n_hops; i++) {
        to->hops[to->n_hops] = t->hops[i];
        to->hops[to->n_hops++].i_link += to->n_links;
    }
}

static enum hv_status add_links(struct hv_arena *arena, const struct hv_timeline *t, int32_t shift,
                                size_t first_row, struct hv_timeline *to)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < t->n_links; i++) {
        struct hv_timeline_link *x = &to->links[to->n_links++];
        *x = t->links[i];
        x->from_row += first_row;
        x->to_row += first_row;
        st = add_lane(arena, &t->lanes.items[t->links[i].lane], shift, x->name, to, &x->lane);
    }
    return st;
}

static enum hv_status add_job(struct hv_arena *arena, const struct hv_job_verdict *j,
                              struct hv_timeline *to)
{
    const struct hv_timeline *t = j->verdict.timeline;
    int32_t shift = (int32_t)to->n_ops;
    size_t first_row = to->n_rows;
    enum hv_status st = HV_OK;
    add_ops(t, to);
    for (size_t r = 0; st == HV_OK && r < t->n_rows; r++) {
        struct hv_timeline_row *row = &to->rows[to->n_rows++];
        *row = t->rows[r];
        row->name = hv_arena_printf(arena, "%s %s", j->name, t->rows[r].name);
        st = add_lane(arena, &t->lanes.items[t->rows[r].compute_lane], shift, row->name, to,
                      &row->compute_lane);
        if (st == HV_OK) {
            st = add_lane(arena, &t->lanes.items[t->rows[r].link_lane], shift, row->name, to,
                          &row->link_lane);
        }
    }
    to->end_s = fmax(to->end_s, t->end_s);
    return st == HV_OK ? add_links(arena, t, shift, first_row, to) : st;
}

struct hv_timeline *hv_eval_jobs_timeline(const struct hv_verdict *v, struct hv_arena *arena)
{
    struct hv_timeline *to = hv_arena_new(arena, struct hv_timeline, 1);
    size_t n_rows = 0, n_ops = 0, n_links = 0, n_hops = 0;
    for (size_t i = 0; v->jobs != NULL && i < v->jobs->n; i++) {
        const struct hv_timeline *t = v->jobs->items[i].verdict.timeline;
        n_rows += t != NULL ? t->n_rows : 0;
        n_ops += t != NULL ? t->n_ops : 0;
        n_links += t != NULL ? t->n_links : 0;
        n_hops += t != NULL ? t->n_hops : 0;
    }
    to->rows = hv_arena_new(arena, struct hv_timeline_row, n_rows + 1);
    to->ops = hv_arena_new(arena, struct hv_timeline_op, n_ops + 1);
    to->links = hv_arena_new(arena, struct hv_timeline_link, n_links + 1);
    to->hops = hv_arena_new(arena, struct hv_timeline_hop, n_hops + 1);
    for (size_t i = 0; n_rows > 0 && i < v->jobs->n; i++) {
        const struct hv_job_verdict *j = &v->jobs->items[i];
        if (j->verdict.timeline != NULL && add_job(arena, j, to) != HV_OK) {
            return NULL;
        }
    }
    hv__list_tracks(to, arena);
    return n_rows > 0 ? to : NULL;
}
