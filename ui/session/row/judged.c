/*
 * Figures of rows: plans are built and judged when somebody asks, once per state of the documents.
 * Not for their order (session_rows.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

/* A timeline of a million operations takes 340 MiB. */
#define TIMELINE_BYTES ((size_t)512 << 20)

struct hv_cost *hv_session_cost(struct hv_session *s)
{
    if (s->cost == NULL || s->cost_epoch != s->epoch) {
        hv_cost_free(s->cost);
        s->cost = hv_cost_new(s->inputs.cluster.cluster, s->inputs.model.model, &s->inputs.job.job);
        s->cost_epoch = s->epoch;
    }
    return s->cost;
}

struct hv_bound hv_session_bound(struct hv_session *s)
{
    if (s->bound_epoch != s->epoch) {
        hv_arena_free(&s->bound_arena);
        s->bound = (struct hv_bound){.iteration_s = HV_UNKNOWN, .spread_s = HV_UNKNOWN, .why = ""};
        hv_eval_bound(hv_session_cost(s), &s->bound_arena, &s->bound);
        s->bound_epoch = s->epoch;
    }
    return s->bound;
}

void hv__session_judged_free(struct hv__judged *j)
{
    hv_job_costs_free(j->costs, j->n_own);
    hv_job_inputs_free(j->own, j->n_own);
    hv_plan_doc_free(&j->plan);
    hv_arena_free(&j->arena);
    hv_arena_free(&j->timeline_arena);
    hv__drawn_free(j->drawn);
    *j = (struct hv__judged){0};
}

enum hv_status hv__session_open_jobs(const struct hv_inputs *in, const struct hv_plan_doc *plan,
                                     struct hv_job_inputs **own, size_t *n_own,
                                     struct hv_cost ***costs, struct hv_err *err)
{
    enum hv_status st = hv_job_inputs_read(&plan->json, in, own, n_own, err);
    if (st == HV_OK) {
        *costs = hv_job_costs_new(in, *own, *n_own);
    }
    return st;
}

/* Builds the plan against the documents as they are now, unless that was done. */
static void build_plan(struct hv_session *s, struct hv__row *r)
{
    struct hv__judged *j = &r->judged;
    if (j->epoch == s->epoch && j->plan_tree == r->plan) {
        return;
    }
    hv__session_draw_drop(s, j);
    hv__session_judged_free(j);
    j->epoch = s->epoch;
    j->plan_tree = r->plan;
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref(r->plan), r->name);
    j->has_plan = hv_plan_doc_build(&j->plan, json, s->inputs.cluster.cluster, &j->err) == HV_OK &&
                  hv__session_open_jobs(&s->inputs, &j->plan, &j->own, &j->n_own, &j->costs,
                                        &j->err) == HV_OK;
}

static void drop_timeline(struct hv_session *s, size_t at)
{
    struct hv__row *old = hv__session_row_any(s, s->timelines[at]);
    if (old != NULL) {
        hv_arena_free(&old->judged.timeline_arena);
        hv__drawn_free(old->judged.drawn);
        old->judged.drawn = NULL;
        old->judged.has_timeline = false;
    }
    s->timelines[at] = 0;
}

/* Beside the last two, which may be on the screen together, timelines of so many bytes stay. */
static void keep_within(struct hv_session *s, size_t most)
{
    size_t bytes = 0;
    for (size_t i = 0; i < HV__TIMELINES; i++) {
        const struct hv__row *r = hv__session_row_any(s, s->timelines[i]);
        if (r != NULL) {
            bytes += r->judged.timeline_arena.used_bytes + hv__drawn_bytes(r->judged.drawn);
        }
        if (r != NULL && i >= 2 && bytes > most) {
            drop_timeline(s, i);
        }
    }
}

/* Keeps the timelines of the last few rows only: they are the large part of a verdict. */
static void keep_timeline(struct hv_session *s, struct hv__row *r)
{
    size_t at = 0;
    while (at < HV__TIMELINES - 1 && s->timelines[at] != r->pub.id) {
        at++;
    }
    if (s->timelines[at] != r->pub.id) {
        drop_timeline(s, at);
    }
    memmove(&s->timelines[1], &s->timelines[0], at * sizeof s->timelines[0]);
    s->timelines[0] = r->pub.id;
    keep_within(s, s->env.timeline_bytes > 0 ? s->env.timeline_bytes : TIMELINE_BYTES);
}

static bool judge(struct hv_session *s, struct hv__row *r, bool timeline)
{
    struct hv__judged *j = &r->judged;
    bool *has = timeline ? &j->has_timeline : &j->has_verdict;
    if (timeline) {
        keep_timeline(s, r);
    }
    if (*has || j->err.status != HV_OK) {
        return *has;
    }
    struct hv_eval_options o = {.timeline = timeline, .jobs = j->costs};
    *has = hv_eval(hv_session_cost(s), j->plan.plan, &o, timeline ? &j->timeline_arena : &j->arena,
                   timeline ? &j->with_timeline : &j->verdict, &j->err) == HV_OK;
    return *has;
}

/* The row with its plan built, or NULL and why. */
static struct hv__row *planned(struct hv_session *s, uint32_t id, struct hv_err *err)
{
    struct hv__row *r = hv__session_row_any(s, id);
    if (r == NULL || r->deleted) {
        hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    } else if (r->plan == NULL) {
        hv_err_set(err, HV_ENO, "%s has no plan%s%s", r->name, r->reason[0] ? ": " : "", r->reason);
    } else {
        build_plan(s, r);
    }
    if (r == NULL || r->deleted || r->plan == NULL) {
        return NULL;
    }
    if (!r->judged.has_plan && err != NULL) {
        *err = r->judged.err;
    }
    return r->judged.has_plan ? r : NULL;
}

const struct hv_plan *hv_session_plan(struct hv_session *s, uint32_t id, struct hv_err *err)
{
    struct hv__row *r = planned(s, id, err);
    return r != NULL ? r->judged.plan.plan : NULL;
}

const struct hv_verdict *hv_session_verdict(struct hv_session *s, uint32_t id, bool timeline,
                                            struct hv_err *err)
{
    struct hv__row *r = planned(s, id, err);
    if (r == NULL) {
        return NULL;
    }
    if (timeline && hv__session_draws_apart(s, r)) {
        keep_timeline(s, r);
        return hv__session_draw(s, r, err);
    }
    if (!judge(s, r, timeline)) {
        if (err != NULL) {
            *err = r->judged.err;
        }
        return NULL;
    }
    return timeline ? &r->judged.with_timeline : &r->judged.verdict;
}
