/** Causes of the iteration time of a plan, or of its violations: computed sentences, each
 * with its evidence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/slower.h"
#include "solver/eval/timeline/ring_text.h"
#include "ui/screens/explain/explain_int.h"
#include "ui/view/gantt/timeline.h"

/** Most violations and groups listed individually. */
#define MOST_NAMED 8
/** Share of rows without a token from which on they are told. */
#define WASTE_LEAST 0.0005

/** The sentences are numbered as they come. */
static struct hv_explain_row *say(struct hv_explain_data *d, uint64_t what, const char *text)
{
    return hv_explain_add(d, HV_ID_CAUSES + 100 + what, 1, text);
}

static void say_violations(struct hv_explain_data *d)
{
    const struct hv_findings *f = &d->facts.verdict->findings;
    for (size_t i = 0; i < f->n && i < MOST_NAMED; i++) {
        struct hv_explain_row *r =
            say(d, 50 + i, hv_arena_printf(&d->arena, "! %s", f->items[i].text));
        r->detail = hv_arena_printf(
            &d->arena,
            "Violation: %s, at %s. The plan stays in the list and its other figures are valid.",
            hv_violation_meaning(f->items[i].code), f->items[i].where);
        r->style = HV_STYLE_WARNING;
        r->evidence.kind = HV_EVIDENCE_MODEL;
        size_t replica = 0, stage = 0;
        if (sscanf(f->items[i].where, "replicas[%zu].stages[%zu]", &replica, &stage) == 2) {
            r->evidence = hv_explain_on_lane(replica, stage, 0);
        }
    }
    if (f->n > MOST_NAMED) {
        say(d, 60, hv_arena_printf(&d->arena, "! and %zu more violations", f->n - MOST_NAMED))
            ->style = HV_STYLE_WARNING;
    }
}

/** Plans of more passes have timelines that are not made for one line. */
#define MOST_PASSES 50000

/** Who holds the critical path, of a plan whose timeline takes little time. Returns the timeline,
 * NULL where there is none. */
static const struct hv_timeline *say_path(struct hv_explain_data *d, struct hv_session *s)
{
    double passes = 0;
    for (size_t i = 0; i < d->facts.plan->n_replicas; i++) {
        const struct hv_replica *r = &d->facts.plan->replicas[i];
        passes += (double)r->micro_batches * (double)r->n_stages;
    }
    const struct hv_verdict *v =
        passes <= MOST_PASSES ? hv_session_verdict(s, d->facts.row->id, true, NULL) : NULL;
    if (v == NULL || v->timeline == NULL || v->timeline->path.lanes.n == 0) {
        return NULL;
    }
    struct hv_str text = {0};
    hv_str_adds(&text, "critical path: ");
    hv_gantt_path_text(v->timeline, &text);
    struct hv_explain_row *r = say(d, 8, hv_arena_strdup(&d->arena, hv_str_cstr(&text)));
    hv_str_free(&text);
    r->detail =
        "The operations, transfers and waits, one behind the other from the start to the end, "
        "that determine the iteration time: what is made faster elsewhere changes nothing. "
        "Enter shows them in the Gantt chart (C), with the stage of each column.";
    size_t most = 0;
    for (size_t i = 1; i < v->timeline->n_rows; i++) {
        most = v->timeline->path.row_s[i] > v->timeline->path.row_s[most] ? i : most;
    }
    const struct hv_timeline_row *row = &v->timeline->rows[most];
    r->evidence = hv_explain_on_lane(row->replica, row->stage, v->metrics.pipeline_s / 2);
    return v->timeline;
}

/** True where a stage holds the most of the critical path, or no path is known. */
static bool holds_path(const struct hv_timeline *t, const struct hv_stage_metrics *m)
{
    double of_it = 0, most = 0;
    for (size_t i = 0; t != NULL && i < t->n_rows; i++) {
        most = fmax(most, t->path.row_s[i]);
        if (t->rows[i].replica == m->replica && t->rows[i].stage == m->stage) {
            of_it = fmax(of_it, t->path.row_s[i]);
        }
    }
    return of_it >= most;
}

/** The stage with the longest busy time, and the one with the longest idle time. It is "the
 * slowest" only where it holds the critical path. */
static void say_pace(struct hv_explain_data *d, const struct hv_timeline *t)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_verdict *v = d->facts.verdict;
    const struct hv_stage_metrics *slow = NULL, *idle = NULL;
    double sum = 0;
    for (size_t i = 0; i < v->n_stages; i++) {
        const struct hv_stage_metrics *m = &v->stages[i];
        slow = slow == NULL || m->busy_frac > slow->busy_frac ? m : slow;
        idle = idle == NULL || m->busy_frac < idle->busy_frac ? m : idle;
        sum += m->forward_s + m->backward_s;
    }
    if (slow == NULL || !hv_known(slow->busy_frac)) {
        return;
    }
    double each = slow->forward_s + slow->backward_s, mean = sum / (double)v->n_stages;
    struct hv_explain_row *r =
        say(d, 1,
            hv_arena_printf(&d->arena, "%s is %s: busy %s of the iteration, %s per micro-batch",
                            hv_explain_stage_name(d, slow->replica, slow->stage),
                            holds_path(t, slow) ? "the slowest" : "busy most",
                            hv_fmt_percent(a, sizeof a, slow->busy_frac),
                            hv_fmt_seconds(b, sizeof b, each)));
    r->evidence = hv_explain_on_lane(slow->replica, slow->stage, v->metrics.pipeline_s / 2);
    r->detail =
        "Enter shows the lane in the Gantt chart. The terms of this stage are listed below.";
    if (v->n_stages < 2) {
        return;
    }
    r = say(d, 2,
            hv_arena_printf(
                &d->arena,
                "%s waits most: idle %s of the iteration; equal stages would take %s (%+.1f%%)",
                hv_explain_stage_name(d, idle->replica, idle->stage),
                hv_fmt_percent(a, sizeof a, 1 - idle->busy_frac), hv_fmt_seconds(c, sizeof c, mean),
                (mean / each - 1) * 100));
    r->evidence = hv_explain_on_lane(idle->replica, idle->stage, v->metrics.pipeline_s / 2);
    r->detail = "Equal stages are the ideal case: the mean of the forward and backward time of one "
                "micro-batch over all stages.";
}

/** Time (s) in the timeline at which a kind of loss is seen best. */
static double loss_time_s(const struct hv_metrics *m, int cause)
{
    bool at_end = cause == HV_TIME_DP || cause == HV_TIME_OPTIMIZER || cause == HV_TIME_STEP;
    return at_end ? m->pipeline_s : cause == HV_TIME_BUBBLE ? 0 : m->pipeline_s / 2;
}

static void say_loss(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_verdict *v = d->facts.verdict;
    const struct hv_metrics *m = &v->metrics;
    int cause = HV_TIME_RECOMPUTE;
    size_t last = v->n_stages > 0 ? v->n_stages - 1 : 0;
    for (int i = cause + 1; i < HV_BREAKDOWN_N; i++) {
        cause = m->breakdown_s[i] > m->breakdown_s[cause] ? i : cause;
    }
    if (!(m->breakdown_s[cause] > 0)) {
        return;
    }
    struct hv_explain_row *r =
        say(d, 3,
            hv_arena_printf(&d->arena, "largest loss is %s: %s of the iteration, %s",
                            hv_breakdown_name((enum hv_breakdown)cause),
                            hv_fmt_percent(b, sizeof b, m->breakdown_s[cause] / m->iteration_s),
                            hv_fmt_seconds(a, sizeof a, m->breakdown_s[cause])));
    r->detail = hv_arena_printf(&d->arena, "%s: %s. This is the mean over the used devices.",
                                hv_breakdown_name((enum hv_breakdown)cause),
                                hv_breakdown_help((enum hv_breakdown)cause));
    if (v->n_stages > 0) {
        r->evidence = hv_explain_on_lane(v->stages[last].replica, v->stages[last].stage,
                                         loss_time_s(m, cause));
    }
}

static void say_memory(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], e[HV_FMT_CAP];
    const struct hv_verdict *v = d->facts.verdict;
    const struct hv_stage_memory *full = NULL;
    for (size_t i = 0; i < v->n_memory; i++) {
        const struct hv_stage_memory *m = &v->memory[i];
        double frac = m->peak_bytes / m->limit_bytes;
        full = hv_known(frac) && (full == NULL || frac > full->peak_bytes / full->limit_bytes)
                   ? m
                   : full;
    }
    if (full == NULL) {
        return;
    }
    struct hv_explain_row *r =
        say(d, 4,
            hv_arena_printf(&d->arena,
                            "fullest stage is %s: %s of %s (%s), activations %s, %d in flight",
                            hv_explain_stage_name(d, full->replica, full->stage),
                            hv_fmt_bytes(a, sizeof a, full->peak_bytes),
                            hv_fmt_bytes(b, sizeof b, full->limit_bytes),
                            hv_fmt_percent(c, sizeof c, full->peak_bytes / full->limit_bytes),
                            hv_fmt_bytes(e, sizeof e, full->activations_bytes), full->in_flight));
    r->style = full->peak_bytes > full->limit_bytes ? HV_STYLE_WARNING : HV_STYLE_TEXT;
    r->evidence = hv_explain_on_lane(full->replica, full->stage, full->peak_at_s);
    r->detail = "Memory of the fullest device of the stage at its peak. The limit is the capacity "
                "of the device minus the reserve.";
}

/** The longest transfer, and its limiting link. */
static void say_hop(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_verdict *v = d->facts.verdict;
    const struct hv_plan *p = d->facts.plan;
    const struct hv_stage_metrics *m = NULL;
    for (size_t i = 0; i < v->n_stages; i++) {
        m = v->stages[i].hop_s > 0 && (m == NULL || v->stages[i].hop_s > m->hop_s) ? &v->stages[i]
                                                                                   : m;
    }
    if (m == NULL || m->stage + 1 >= p->replicas[m->replica].n_stages) {
        return;
    }
    const struct hv_stage *from = &p->replicas[m->replica].stages[m->stage], *to = from + 1;
    struct hv_path path = hv_cluster_path(p->cluster, from->devices[0], to->devices[0]);
    struct hv_device_ref x = hv_cluster_device(p->cluster, from->devices[0]);
    struct hv_device_ref y = hv_cluster_device(p->cluster, to->devices[0]);
    const char *one = p->cluster->groups[x.group].name, *other = p->cluster->groups[y.group].name;
    struct hv_explain_row *r = say(
        d, 5,
        hv_arena_printf(&d->arena, "slowest transfer %s: %s per micro-batch, %s to %s over %s (%s)",
                        hv_explain_stage_name(d, m->replica, m->stage),
                        hv_fmt_seconds(a, sizeof a, m->hop_s), one, other, path.why,
                        hv_fmt_si(b, sizeof b, path.bytes_per_s, "B/s")));
    r->detail =
        v->metrics.breakdown_s[HV_TIME_PP] > 0.001 * v->metrics.iteration_s
            ? "A part of this transfer is exposed (pp in the breakdown). Enter opens the node "
              "group of the link."
            : "This transfer overlaps with computation. Enter opens the node group of the link.";
    r->evidence = (struct hv_evidence){.kind = HV_EVIDENCE_CLUSTER, .name = one};
}

/** The hop of a ring of context parallelism that shows most, of the stage where all its hops do. */
static void say_ring(struct hv_explain_data *d, const struct hv_timeline *t)
{
    const struct hv_timeline_ring *most = NULL;
    const struct hv_timeline_row *row = NULL;
    for (size_t i = 0; t != NULL && i < t->n_rows; i++) {
        const struct hv_timeline_ring *x = hv_timeline_ring_most(&t->rows[i], HV_RING_ANY, -1);
        if (x != NULL &&
            (most == NULL || hv_timeline_ring_exposed_s(x) > hv_timeline_ring_exposed_s(most))) {
            most = x;
            row = &t->rows[i];
        }
    }
    if (most == NULL) {
        return;
    }
    struct hv_str text = {0};
    hv_str_addf(&text,
                "context parallelism in %s: ", hv_explain_stage_name(d, row->replica, row->stage));
    hv_timeline_ring_text(most, &text);
    struct hv_explain_row *r = say(d, 9, hv_arena_strdup(&d->arena, hv_str_cstr(&text)));
    hv_str_free(&text);
    r->detail = "Steps of attention wait for the keys and values, or the queries, that the ring "
                "passes on. Enter shows the stage in the Gantt chart, whose operation box lists "
                "the steps.";
    r->evidence = hv_explain_on_lane(row->replica, row->stage, 0);
}

/** Rows of experts' products that hold no token, of the stage that has most of them. */
static void say_tiles(struct hv_explain_data *d, struct hv_session *s)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_explain_loads *l = hv_explain_loads_of(d, s);
    double frac = l->waste.computed > 0 ? l->waste.padded / l->waste.computed : 0;
    if (!(frac > WASTE_LEAST)) {
        return;
    }
    struct hv_explain_row *r =
        say(d, 11,
            hv_arena_printf(
                &d->arena, "expert products in %s: %s of the rows hold no token, %s of %s a pass%s",
                hv_explain_stage_name(d, l->waste_replica, l->waste_stage),
                hv_fmt_percent(a, sizeof a, frac), hv_fmt_count(b, sizeof b, l->waste.padded),
                hv_fmt_count(c, sizeof c, l->waste.computed),
                d->facts.verdict->routing.n > 1 ? " in iteration 0" : ""));
    r->detail = "Kernels of experts compute whole tiles, or every place that a capacity gives an "
                "expert. Rows of the busiest rank are counted, of all layers of the stage in one "
                "forward pass.";
    r->evidence = hv_explain_on_lane(l->waste_replica, l->waste_stage, 0);
}

/** How many devices of each group the plan uses. Owner: the caller. O(devices of the plan). */
static uint32_t *count_used(const struct hv_plan *p)
{
    uint32_t *used = hv_xcalloc(p->cluster->n_groups + 1, sizeof *used);
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            const struct hv_stage *s = &p->replicas[i].stages[k];
            for (size_t x = 0; x < s->n_devices; x++) {
                used[hv_cluster_device(p->cluster, s->devices[x]).group]++;
            }
        }
    }
    return used;
}

static void say_unused(struct hv_explain_data *d, struct hv_session *s)
{
    const struct hv_plan *p = d->facts.plan;
    enum hv_precision precision = hv_session_job(s)->job.precision;
    uint32_t *counts = count_used(p);
    for (size_t i = 0, n = 0; i < p->cluster->n_groups && n < MOST_NAMED; i++) {
        const struct hv_node_group *g = &p->cluster->groups[i];
        uint32_t all = g->count * g->n_devices, used = counts[i];
        if (used >= all) {
            continue;
        }
        const struct hv_device_kind *k = hv_node_kind_at(g, 0);
        const char *why = g->state == HV_NODE_DRAIN ? "its nodes are drained"
                          : !hv_device_has(k, precision)
                              ? "the device does not support the precision of the job"
                          : used > 0 ? "the plan uses only some of them"
                                     : "no rule prevents their use";
        struct hv_explain_row *r =
            say(d, 20 + i,
                hv_arena_printf(&d->arena, "%u of %u devices of %s (%s) are not used: %s",
                                all - used, all, g->name, k->name, why));
        r->evidence = (struct hv_evidence){.kind = HV_EVIDENCE_CLUSTER, .name = g->name};
        r->detail = "The lower bound assumes that all devices can be used; the price counts only "
                    "used devices. Screen 3 searches for other plans.";
        n++;
    }
    free(counts);
}

/** For a serving plan, which has no step: its throughput and the limiting factor. */
static void say_serving(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct hv_serving *s = d->facts.verdict->serving;
    if (s == NULL) {
        return;
    }
    say(d, 7,
        hv_arena_printf(&d->arena,
                        "serving plan: up to %s tokens/s, first token after %s, then one per %s",
                        hv_fmt_count(a, sizeof a, s->max_tokens_per_s),
                        hv_fmt_seconds(b, sizeof b, s->first_token_s),
                        hv_fmt_seconds(c, sizeof c, s->next_token_s)));
    say(d, 8,
        hv_arena_printf(&d->arena,
                        "no placement on these devices can serve more than %s tokens/s: %s",
                        hv_fmt_count(a, sizeof a, s->bound_tokens_per_s), s->bound_why));
}

/** True for the rate of a part that can be bought faster. */
static bool is_rate(enum hv_lever_kind k)
{
    return k == HV_LEVER_NIC || k == HV_LEVER_INTRA || k == HV_LEVER_NETWORK ||
           k == HV_LEVER_LINK || k == HV_LEVER_FLOPS || k == HV_LEVER_HBM;
}

/** Trials of a faster part that made this plan slower. */
static void say_slower(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    for (size_t i = 0, n = 0; i < d->n_done && n < MOST_NAMED; i++) {
        const struct hv_explain_try *t = &d->tries.items[i];
        const struct hv_lever *l = &d->levers.items[t->lever];
        double more = t->figures.iteration_s / d->base.iteration_s - 1;
        if (t->failed || !is_rate(l->kind) || t->value <= l->base || !(more > HV_SLOWER_FRAC)) {
            continue;
        }
        struct hv_explain_row *r =
            say(d, 70 + n++,
                hv_arena_printf(&d->arena,
                                "list scheduling: with %s %s faster this plan takes %s longer (%s)",
                                l->name, hv_fmt_percent(a, sizeof a, t->value / l->base - 1),
                                hv_fmt_percent(b, sizeof b, more),
                                hv_fmt_seconds(c, sizeof c, t->figures.iteration_s)));
        r->style = HV_STYLE_WARNING;
        r->detail =
            "The plan was simulated again with this part faster. Operations that end sooner "
            "may run in a worse order: where the schedule derives its order from times, and "
            "where a transfer that is ready earlier delays another on the same link.";
        r->evidence =
            (struct hv_evidence){.kind = HV_EVIDENCE_LEVER, .lever = t->lever, .value = t->value};
    }
}

void hv_explain_causes(struct hv_explain_data *d, struct hv_session *s)
{
    char a[HV_FMT_CAP];
    const struct hv_metrics *m = &d->facts.verdict->metrics;
    const struct hv_verdict *v = d->facts.verdict;
    bool runs = hv_known(m->iteration_s) || v->serving != NULL || v->jobs != NULL;
    bool open = hv_explain_heading(d, HV_ID_CAUSES, 0,
                                   runs ? "What determines the iteration time"
                                        : "Why this plan does not fit");
    d->rows.items[d->rows.n - 1].detail =
        "Each line is computed from the simulated plan. Enter opens the evidence: the operation in "
        "the Gantt chart, the node group, or model and job.";
    if (!open) {
        return;
    }
    say_violations(d);
    if (!m->exact && m->dropped_frac > 0) {
        say(d, 6,
            hv_arena_printf(&d->arena, "~ not exact: drops %s of the tokens",
                            hv_fmt_percent(a, sizeof a, m->dropped_frac)))
            ->style = HV_STYLE_WARNING;
    } else if (!m->exact) {
        say(d, 6,
            hv_arena_printf(&d->arena, "~ not exact: stale weights, up to %d updates old",
                            m->staleness))
            ->style = HV_STYLE_WARNING;
    }
    say_serving(d);
    /* keys and trials come first */
    const struct hv_timeline *t = hv_explain_is_busy(d) ? NULL : say_path(d, s);
    say_pace(d, t);
    say_loss(d);
    say_memory(d);
    say_hop(d);
    say_ring(d, t);
    say_tiles(d, s);
    say_slower(d);
    say_unused(d, s);
}
