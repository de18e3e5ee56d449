/**
 * Chooses the lower bound of bound/bound.h that holds for a plan. Each bound holds for a family of
 * plans only; the lowered plan shows whether it belongs to the family.
 */
#include "solver/eval/judges.h"
#include "solver/eval/train/reduce_int.h"

#include <math.h>

/* ---- stages that form a chain ------------------------------------------------------------------
 */

/** True where all micro-batches of the plan pass through its stages one after the other, in passes
 * that the cost model prices by their size. Then hv_bound.iteration_s holds, else any_s.
 * O(stages). */
static bool is_chain(const struct hv__lowered *l)
{
    if (l->schedule.row->flags & HV_SCHEDULE_PARTS) {
        return false;
    }
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            const struct hv_stage *st = &r->stages[k];
            if (st->tp.scheme != HV_TP_1D || st->tp.shares != NULL || hv_stage_branches(st, k)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- sides of a cut ---------------------------------------------------------------------------
 */

/** True where the devices are on both sides. */
static bool is_across(const struct hv_cluster *c, const bool *beyond, const uint32_t *devices,
                      size_t n)
{
    bool first = n > 0 && beyond[hv_cluster_device(c, devices[0]).group];
    for (size_t i = 1; i < n; i++) {
        if (beyond[hv_cluster_device(c, devices[i]).group] != first) {
            return true;
        }
    }
    return false;
}

/** True where a copy of the stage may have devices on both sides: only whole, equal data-parallel
 * ranks without communication between them inside passes, and with equal flows from and to all
 * other stages. */
static bool may_be_across(const struct hv_cluster *c, const struct hv_replica *r,
                          const struct hv_stage *st, const uint32_t *devices, const bool *beyond)
{
    size_t each = hv_stage_ranks(r, st), n = st->dp > 0 ? (size_t)st->dp : 1, width = each / n;
    if (st->zero.stage > 0 || st->shares != NULL || hv_stage_experts_over(st) > 1) {
        return false;
    }
    for (size_t d = 0; d < n; d++) {
        if (is_across(c, beyond, devices + d * width, width)) {
            return false;
        }
    }
    for (size_t i = 0; i < r->n_stages; i++) {
        size_t other = hv_stage_ranks(r, &r->stages[i]);
        if (other == 0 || (other % each != 0 && each % other != 0)) {
            return false;
        }
    }
    return true;
}

static bool stage_keeps(const struct hv_cluster *c, const struct hv_replica *r,
                        const struct hv_stage *st, const bool *beyond)
{
    size_t each = hv_stage_ranks(r, st);
    if (st->zero.stage > 0) { /* all copies may share the states */
        return !is_across(c, beyond, st->devices, st->n_devices);
    }
    for (size_t at = 0; each > 0 && at + each <= st->n_devices; at += each) {
        if (is_across(c, beyond, st->devices + at, each) &&
            !may_be_across(c, r, st, st->devices + at, beyond)) {
            return false;
        }
    }
    return true;
}

/** True where no communication inside passes and no sharded state of the plan crosses the cut, and
 * it uses no parameter servers. Then the bound by that cut holds, else
 * hv_bound.spread_s. O(devices · log groups + stages²). */
static bool keeps_to_sides(const struct hv__lowered *l, const bool *beyond)
{
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            if (!stage_keeps(hv_cost_cluster(l->k), r, &r->stages[k], beyond)) {
                return false;
            }
        }
    }
    return !hv__by_servers(l);
}

/* ---- even plans -------------------------------------------------------------------------------
 */

static bool even_stage(const struct hv_cluster *c, const struct hv_replica *r,
                       const struct hv_stage *st)
{
    if (st->shares != NULL || st->tp.shares != NULL ||
        (st->micro_batch > 0 && st->micro_batch != r->micro_batch)) {
        return false;
    }
    for (size_t i = 1; i < st->n_devices; i++) {
        if (hv_cluster_device(c, st->devices[i]).kind !=
            hv_cluster_device(c, st->devices[0]).kind) {
            return false;
        }
    }
    return true;
}

/** True where the plan consists of copies of one pipeline with all passes of a stage alike: of one
 * size, on devices of one kind, with no two pipelines on the same devices. Then hv_bound.even_s
 * holds too. O(devices). */
static bool is_even(const struct hv__lowered *l)
{
    const struct hv_plan *p = l->plan;
    if (l->leaves.n != 1 || l->leaves.items[0].model->kind != HV_MODEL_TRANSFORMER ||
        p->n_replicas != 1 || p->replicas[0].list != NULL || p->schedule.slices > 1 ||
        p->schedule.slice_tokens != NULL) {
        return false;
    }
    for (size_t i = 0; i < l->pipelines.n; i++) {
        if (l->pipelines.items[i].n_pipes > 1) {
            return false;
        }
    }
    const struct hv_replica *r = &p->replicas[0];
    for (size_t k = 0; k < r->n_stages; k++) {
        if (!even_stage(hv_cost_cluster(l->k), r, &r->stages[k])) {
            return false;
        }
    }
    return true;
}

/* ---- the bound that holds ----------------------------------------------------------------------
 */

/** A bound and its reason in words. */
struct held {
    double time_s;
    const char *why;
};

/** The bound that holds for a plan, where `b` was computed for the sequences that the plan has. */
static struct held bound_that_holds(const struct hv__lowered *l, const struct hv_bound *b)
{
    if (l->schedule.stale) { /* stale plans do not wait at the end of an iteration */
        return (struct held){b->compute_s, b->compute_why};
    }
    if (!is_chain(l)) {
        return (struct held){b->any_s, b->any_why};
    }
    struct held h = {b->iteration_s, b->why};
    if (b->beyond != NULL && !keeps_to_sides(l, b->beyond)) {
        h = (struct held){b->spread_s, b->spread_why};
    }
    if (b->even_s > h.time_s && is_even(l)) {
        h = (struct held){b->even_s,
                          hv_arena_printf(l->arena, "%s; %s", b->spread_why, b->even_why)};
    }
    return h;
}

void hv__apply_bound(const struct hv__lowered *l, const struct hv_bound *b, struct hv_verdict *out)
{
    const struct hv_job *job = hv_cost_job(l->k);
    struct hv_metrics *m = &out->metrics;
    if (l->schedule.scaled ||
        hv__tokens_of_iteration(l) != (double)(job->global_batch * job->sequence)) {
        /* the bound is for the job's whole sequences, which this plan does not process */
        m->bound_s = HV_UNKNOWN;
        out->bound_why = "the bound is for the job's sequences, which the micro-batches of this "
                         "plan do not hold";
    }
    if (hv_known(m->bound_s)) {
        struct held h = bound_that_holds(l, b);
        m->bound_s = h.time_s;
        out->bound_why = h.why;
    }
    out->bound_some = m->bound_s > b->spread_s;
    m->gap_frac = m->iteration_s / m->bound_s - 1;
    if (m->gap_frac < 0 && out->findings.n > 0) {
        m->gap_frac = HV_UNKNOWN; /* a plan that does not fit may be faster than the bound */
    }
}
