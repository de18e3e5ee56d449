/** The judge's front: checks, lowers, times, and collects the verdict. */
#include "solver/eval/eval_int.h"

/** Do all ranges of a stage lie in the model? */
static bool within(const struct hv_stage *s, const struct hv_model *m)
{
    for (size_t k = 0; k < s->n_ranges; k++) {
        if (s->ranges[k].from2 < 0 || (size_t)s->ranges[k].to2 > 2 * m->n_blocks) {
            return false;
        }
    }
    return s->n_ranges > 0;
}

/** Do the shapes hold well enough that a stage's ranks can be cut out of its devices? */
static bool can_be_timed(const struct hv_plan *p, const struct hv_model *m,
                         const struct hv_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        enum hv_violation_code c = f->items[i].code;
        if (c == HV_V_DEGREE_PRODUCT || c == HV_V_PRECISION || c == HV_V_UNKNOWN_DEVICE) {
            return false;
        }
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *st = &p->replicas[i].stages[s];
            if (!within(st, m) || st->n_devices == 0) {
                return false;
            }
        }
    }
    return p->n_replicas > 0;
}

static void unknown_metrics(struct hv_metrics *m)
{
    *m = (struct hv_metrics){.iteration_s = HV_UNKNOWN,
                             .tokens_per_s = HV_UNKNOWN,
                             .mfu = HV_UNKNOWN,
                             .bubble_frac = HV_UNKNOWN,
                             .exact = true,
                             .bound_s = HV_UNKNOWN,
                             .gap_frac = HV_UNKNOWN,
                             .usd_per_h = HV_UNKNOWN,
                             .usd_per_mtoken = HV_UNKNOWN,
                             .energy_j = HV_UNKNOWN,
                             .pipeline_s = HV_UNKNOWN};
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        m->breakdown_s[i] = HV_UNKNOWN;
    }
}

enum hv_status hv__went_on(const struct hv__lowered *l, unsigned permille, struct hv_err *err)
{
    struct hv_eval_watch *w = l->watch;
    if (w == NULL) {
        return HV_OK;
    }
    if (atomic_load(&w->stop)) {
        return hv_err_set(err, HV_ESTOPPED, "stopped");
    }
    if (permille > atomic_load(&w->permille)) {
        atomic_store(&w->permille, permille);
    }
    return HV_OK;
}

static enum hv_status judge(struct hv__lowered *l, const struct hv_eval_options *o,
                            struct hv_verdict *out, struct hv_err *err)
{
    enum hv_status st = hv__lower(l, err);
    if (st == HV_OK) {
        st = hv__went_on(l, HV__AT_LOWERED, err);
    }
    if (st == HV_OK) {
        st = hv__time(l, err);
    }
    if (st == HV_OK) {
        st = hv__went_on(l, HV__AT_TIMED, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (l->stale) {
        st = hv__steady(l, out, err);
    } else {
        hv__tail(l);
    }
    if (st != HV_OK) {
        return st;
    }
    out->metrics = (struct hv_metrics){.bound_s = out->metrics.bound_s};
    hv__memory(l, out);
    hv__metrics(l, out);
    st = hv__went_on(l, HV__AT_JUDGED, err);
    if (st != HV_OK) {
        return st;
    }
    return o->timeline ? hv__timeline(l, out, err) : HV_OK;
}

/** The objective's limits are no rule of plans, but an answer that misses them says so. */
static void check_limits(const struct hv_job *job, struct hv_verdict *out)
{
    const struct hv_objective *o = &job->objective;
    const struct hv_metrics *m = &out->metrics;
    char is[HV_FMT_CAP], may[HV_FMT_CAP], over[HV_FMT_CAP];
    if (hv_known(o->deadline_s) && m->iteration_s > o->deadline_s) {
        double by = m->iteration_s - o->deadline_s;
        hv_finding_add(&out->findings, HV_V_DEADLINE, by, "job.objective.deadline_s",
                       "an iteration takes %s and the objective allows %s: %s too long",
                       hv_fmt_seconds(is, sizeof is, m->iteration_s),
                       hv_fmt_seconds(may, sizeof may, o->deadline_s),
                       hv_fmt_seconds(over, sizeof over, by));
    }
    if (!hv_known(o->max_usd_per_h) || m->usd_per_h <= o->max_usd_per_h) {
        return;
    }
    double by = m->usd_per_h - o->max_usd_per_h;
    if (hv_known(by)) {
        hv_finding_add(&out->findings, HV_V_PRICE, by, "job.objective.max_usd_per_hour",
                       "the nodes in use cost %.4g USD per hour and the objective allows %.4g: "
                       "%.4g too much",
                       m->usd_per_h, o->max_usd_per_h, by);
    } else {
        hv_finding_add(&out->findings, HV_V_PRICE, by, "job.objective.max_usd_per_hour",
                       "the objective allows %.4g USD per hour and a node in use has no known "
                       "price: give its price_usd_per_hour",
                       o->max_usd_per_h);
    }
}

enum hv_status hv_eval(struct hv_cost *k, const struct hv_plan *p, const struct hv_eval_options *o,
                       struct hv_arena *arena, struct hv_verdict *out, struct hv_err *err)
{
    struct hv_err own = {0};
    struct hv_err *e = err != NULL ? err : &own;
    *out = (struct hv_verdict){.findings = {.arena = arena}};
    unknown_metrics(&out->metrics);
    if (p->n_jobs > 0) {
        return hv__judge_jobs(k, p, o, arena, out, e);
    }
    hv__approximated(p, arena, out);
    hv_plan_check(p, hv_cost_model(k), hv_cost_job(k), &out->findings);
    struct hv_bound b = {.compute_s = HV_UNKNOWN};
    if (!o->no_bound && p->mode == HV_MODE_TRAIN) {
        hv_eval_bound(k, arena, &b);
        out->metrics.bound_s = b.iteration_s > 0 ? b.iteration_s : HV_UNKNOWN;
        out->bound_why = b.why;
        out->bound_some = b.iteration_s > b.spread_s;
    }
    const struct hv_plan *flat = hv__flat_plan(p, hv_cost_model(k), arena);
    if (flat == NULL || !can_be_timed(flat, hv_cost_model(k), &out->findings)) {
        return out->findings.n > 0
                   ? HV_OK
                   : hv_err_set(
                         e, HV_ENO,
                         "a plan in %s mode without stages over layer ranges cannot be timed",
                         hv_plan_mode_words[p->mode]);
    }
    struct hv__lowered l = {.k = k,
                            .plan = flat,
                            .arena = arena,
                            .findings = &out->findings,
                            .spans = o->timeline,
                            .watch = o->watch};
    hv__find_leaves(&l);
    if (p->mode == HV_MODE_SERVE) {
        return hv__serve(&l, !o->no_bound, out, e);
    }
    size_t before = out->findings.n;
    enum hv_status st = judge(&l, o, out, e);
    if (st != HV_OK) {
        return out->findings.n > before && st != HV_ESTOPPED ? HV_OK : st;
    }
    const struct hv_job *job = hv_cost_job(k);
    if (l.scaled || hv__tokens_of_iteration(&l) != (double)(job->global_batch * job->sequence)) {
        /* the bound is for whole sequences; this plan has others to do */
        out->metrics.bound_s = HV_UNKNOWN;
        out->bound_why = "the micro-batches of this plan are not the job's sequences";
    }
    if (l.stale && hv_known(out->metrics.bound_s)) {
        /* devices of this plan do not wait for each other at the end of an iteration */
        out->metrics.bound_s = b.compute_s;
        out->bound_why = b.compute_why;
    } else if (hv_known(out->metrics.bound_s) && !hv__bound_covers(&l)) {
        out->metrics.bound_s = b.any_s;
        out->bound_why = b.any_why;
    } else if (hv_known(out->metrics.bound_s) && b.beyond && !hv__keeps_to_sides(&l, b.beyond)) {
        out->metrics.bound_s = b.spread_s;
        out->bound_why = b.spread_why;
    }
    if (hv_known(out->metrics.bound_s) && b.even_s > out->metrics.bound_s && !l.stale &&
        hv__bound_covers(&l) && hv__is_even(&l)) {
        out->metrics.bound_s = b.even_s;
        out->bound_why = hv_arena_printf(arena, "%s; %s", b.spread_why, b.even_why);
    }
    out->bound_some = out->metrics.bound_s > b.spread_s;
    out->metrics.gap_frac = out->metrics.iteration_s / out->metrics.bound_s - 1;
    if (out->metrics.gap_frac < 0 && out->findings.n > 0) {
        out->metrics.gap_frac = HV_UNKNOWN; /* what does not fit may be faster than what does */
    }
    check_limits(job, out);
    if ((o->failures || !o->no_bound) && hv_goodput_asked(k, p)) {
        const struct hv_goodput_query q = {p, out->metrics.iteration_s, out->metrics.tokens_per_s,
                                           true};
        hv_eval_goodput(k, &q, arena, &out->goodput);
    }
    return HV_OK;
}
