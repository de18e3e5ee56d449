/**
 * Chooses the lower bound of bound/bound.h that holds for a plan. Each bound holds for a family of
 * plans only; the lowered plan shows whether it belongs to the family.
 */
#include "solver/eval/judges.h"
#include "solver/eval/sides.h"
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
    for (size_t i = 0; i < l->written->n_replicas; i++) {
        const struct hv_replica *r = &l->written->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            const struct hv_stage *st = &r->stages[k];
            if (st->tp.scheme != HV_TP_1D || st->tp.shares != NULL || st->n_degrees > 0 ||
                hv_stage_branches(st, k)) {
                return false;
            }
        }
    }
    return true;
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
    const struct hv_plan *p = l->written;
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

/** The largest bound by a cut that the plan can be laid on. */
static struct held bound_by_cuts(const struct hv__lowered *l, const struct hv_bound *b)
{
    struct hv__ties ties = {0};
    for (size_t i = 0; i < b->n_cuts; i++) {
        if (i == 0) {
            ties = hv__find_ties(l, &b->houses);
        }
        if (hv__can_cut(&ties, b->cuts[i].beyond)) {
            return (struct held){b->cuts[i].time_s, b->cuts[i].why};
        }
    }
    return (struct held){b->spread_s, b->spread_why};
}

/** The bound that holds for a plan, where `b` was computed for the sequences that the plan has. */
static struct held bound_that_holds(const struct hv__lowered *l, const struct hv_bound *b)
{
    if (l->schedule.stale) { /* stale plans do not wait at the end of an iteration */
        return (struct held){b->compute_s, b->compute_why};
    }
    if (!is_chain(l)) {
        return (struct held){b->any_s, b->any_why};
    }
    struct held h = bound_by_cuts(l, b);
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
    if (l->schedule.scaled || l->schedule.packed ||
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
    if (m->gap_frac < 0 && (out->findings.n > 0 || m->dropped_frac > 0)) {
        /* a plan that does not fit, or does not compute all tokens, may be faster than the bound */
        m->gap_frac = HV_UNKNOWN;
    }
}
