/** Plans for one job: the table of their judges, what those check first, and the judge of training
 * plans, step by step. */
#include "solver/eval/adapt.h"
#include "solver/eval/exchange/exchange.h"
#include "solver/eval/judges.h"
#include "solver/eval/knobs.h"
#include "solver/eval/not_simulated.h"
#include "solver/eval/serve/serve_int.h"
#include "solver/eval/timeline/timeline_int.h"
#include "solver/eval/train/steps.h"
#include "solver/eval/verdict/band.h"
#include "solver/plan/mesh.h"
#include "solver/plan/says.h"
#include "solver/workload/router.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        if (c == HV_V_DEGREE_PRODUCT || c == HV_V_PRECISION || c == HV_V_UNKNOWN_DEVICE ||
            c == HV_V_UNKNOWN_NAME) {
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

void hv__verdict_begin(const struct hv__question *q, struct hv_verdict *out)
{
    struct hv_metrics *m = &out->metrics;
    *out =
        (struct hv_verdict){.runtime = hv_cost_job(q->k)->runtime, .findings = {.arena = q->arena}};
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

/* ---- plans with stages --------------------------------------------------------------------------
 */

/** Adds what the job's runtime cannot run, each property once: as violations for searches, else as
 * notes that the plan is judged as if it could. */
static void check_runtime(const struct hv__question *q, struct hv_verdict *out)
{
    struct hv_unsaid *found = NULL;
    size_t n = hv_plan_not_run(q->plan, out->runtime, q->arena, &found);
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_unsaid *u = &found[i];
        const char *where = u->stage == HV_UNSAID_PLAN
                                ? u->key
                                : hv_arena_printf(q->arena, "replicas[%zu].stages[%zu].%s",
                                                  u->replica, u->stage, u->key);
        const char *text =
            hv_arena_printf(q->arena, "%s does not run %s", hv_runtime_name(out->runtime), u->text);
        if ((seen & HV_SAYS_BIT(u->what)) == 0 && q->options->runtime_limits) {
            hv_finding_add(&out->findings, HV_V_RUNTIME, HV_UNKNOWN, where, "%s", text);
        } else if ((seen & HV_SAYS_BIT(u->what)) == 0) {
            hv__add_approximated(
                out, q->arena,
                hv_arena_printf(q->arena, "%s: %s, judged as if it did", where, text));
        }
        seen |= HV_SAYS_BIT(u->what);
    }
}

/** Lists the approximated knobs, and all violations of the format's rules. */
static void check(const struct hv__question *q, struct hv_verdict *out)
{
    hv__find_approximated(q->plan, q->k, q->arena, out);
    hv__tell_operators(hv_cost_model(q->k), q->arena, out);
    hv__tell_forward_only(hv_cost_model(q->k), q->arena, out);
    check_runtime(q, out);
    hv_plan_check(q->plan, hv_cost_model(q->k), hv_cost_job(q->k), &out->findings);
}

/** HV_ENO where no judge simulates what the plan asks for. Unknown names are findings, and the
 * verdict without figures is then the answer. */
static enum hv_status refuse_unsimulated(const struct hv__question *q, const struct hv_verdict *v,
                                         struct hv_err *err)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        if (v->findings.items[i].code == HV_V_UNKNOWN_NAME) {
            return HV_OK;
        }
    }
    if (hv_model_has_operands(hv_cost_model(q->k)) && hv_cost_job(q->k)->n_lengths > 0) {
        return hv_err_set(err, HV_ENO,
                          "not simulated yet: job.sequence_lengths: the operators of a graph are "
                          "written for one length");
    }
    enum hv_status st = hv__refuse_gates(q->plan, hv_cost_model(q->k), hv_cost_job(q->k), err);
    return st == HV_OK ? hv__refuse_unsimulated(q->plan, hv_cost_model(q->k), q->arena, err) : st;
}

/** Opens the evaluation of a plan that was checked. HV_ENO: it cannot be timed; `err` is left alone
 * where findings already say why, since the verdict is then the answer. */
static enum hv_status open_lowered(const struct hv__question *q, struct hv_verdict *out,
                                   struct hv__lowered *l, struct hv_err *err)
{
    const struct hv_model *m = hv_cost_model(q->k);
    const struct hv_plan *meshed = hv__meshed_plan(q->plan, m, q->arena);
    const struct hv_plan *flat = hv__flat_plan(meshed, m, q->arena);
    if (flat == NULL || !can_be_timed(flat, m, &out->findings)) {
        if (out->findings.n > 0) {
            return HV_ENO;
        }
        return hv_err_set(err, HV_ENO,
                          "a plan in %s mode without stages over layer ranges cannot be timed",
                          hv_plan_mode_words[q->plan->mode]);
    }
    const struct hv__split *splits = NULL;
    const struct hv_plan *written = flat;
    if (q->plan->mode == HV_MODE_TRAIN) {
        flat = hv__split_plan(written, q->arena, &splits);
    }
    *l = (struct hv__lowered){.k = q->k,
                              .plan = flat,
                              .written = written,
                              .splits = splits,
                              .arena = q->arena,
                              .findings = &out->findings,
                              .spans = q->options->timeline,
                              .watch = q->options->watch};
    hv__find_leaves(l);
    return HV_OK;
}

static bool serves(const struct hv_plan *p)
{
    return p->mode == HV_MODE_SERVE;
}

static enum hv_status judge_serve(const struct hv__question *q, struct hv_verdict *out,
                                  struct hv_err *err)
{
    struct hv__lowered l;
    check(q, out);
    enum hv_status st = refuse_unsimulated(q, out, err);
    if (st != HV_OK) {
        return st;
    }
    st = open_lowered(q, out, &l, err);
    if (st != HV_OK) {
        return out->findings.n > 0 ? HV_OK : st;
    }
    return hv__serve(&l, !q->options->no_bound, out, err);
}

/* ---- plans that train ---------------------------------------------------------------------------
 */

/** States the bound of all plans; hv__apply_bound replaces it once the plan is lowered. */
static void state_bound(const struct hv__question *q, struct hv_bound *b, struct hv_verdict *out)
{
    *b = (struct hv_bound){.compute_s = HV_UNKNOWN};
    if (q->options->no_bound) {
        return;
    }
    hv_bound_iteration(q->k, q->arena, b);
    out->metrics.bound_s = b->iteration_s > 0 ? b->iteration_s : HV_UNKNOWN;
    out->bound_why = b->why;
    out->bound_some = b->iteration_s > b->spread_s;
}

/** Sums of weights that differ by less are equal. */
#define ROUNDING 1e-9

/** An iteration of a job whose tokens or lengths differ between iterations. */
struct iteration {
    size_t routed; /**< of the job's routing */
    size_t step;   /**< the same among those that are timed */
    const struct hv__length_run *lengths;
    double weight, time_s;
    double common_weight; /**< see struct hv__length_run; without lengths the weight */
};

/** The iterations of such a job, as timed one by one. */
struct iterations {
    struct iteration *items;
    struct hv_routing_step *steps; /**< [routed] */
    size_t n, routed;              /**< routed: those of the job's routing that are timed */
    bool common_only;              /**< the others are left out */
    size_t n_common;               /**< of one quantile for all micro-batches; they come first */
    struct iteration typical;      /**< the one whose time is nearest to the mean */
    double p95_s;
    struct hv_metrics sum;    /**< weighted, and by time where a figure is a rate or a share */
    struct hv_metrics common; /**< the same by common weights */
    struct hv_stage_memory *memory; /**< per stage, of the iteration that needs most */
    struct hv_findings findings;    /**< of memory, likewise */
};

static int by_time(const void *a, const void *b)
{
    const struct iteration *x = a, *y = b;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

/** Adds the figures of one iteration to sums. */
static void add_iteration(struct hv_metrics *s, const struct hv_verdict *v, double weight)
{
    const struct hv_metrics *m = &v->metrics;
    double t = weight * m->iteration_s;
    s->iteration_s += t;
    s->tokens_per_s += t * m->tokens_per_s;
    s->mfu += t * m->mfu;
    s->bubble_frac += t * m->bubble_frac;
    s->energy_j += weight * m->energy_j;
    s->pipeline_s += weight * m->pipeline_s;
    s->dropped_frac += weight * m->dropped_frac;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        s->breakdown_s[i] += weight * m->breakdown_s[i];
    }
    hv_traffic_add(&s->traffic, &m->traffic, weight);
}

/** Keeps the memory of the stages that need more than in the iterations before, and its findings.
 */
static void keep_worst(struct iterations *all, const struct hv_verdict *v, struct hv_arena *arena)
{
    if (all->memory == NULL) {
        all->memory = hv_arena_copy(arena, v->memory, v->n_memory, sizeof *v->memory);
    }
    for (size_t i = 0; i < v->n_memory; i++) {
        if (v->memory[i].peak_bytes > all->memory[i].peak_bytes) {
            all->memory[i] = v->memory[i];
        }
    }
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct hv_violation *x = &v->findings.items[i];
        struct hv_violation *old = NULL;
        for (size_t k = 0; k < all->findings.n && old == NULL; k++) {
            bool same = all->findings.items[k].code == x->code &&
                        strcmp(all->findings.items[k].where, x->where) == 0;
            old = same ? &all->findings.items[k] : NULL;
        }
        if (old == NULL) {
            hv_finding_add(&all->findings, x->code, x->by, x->where, "%s", x->text);
        } else if (x->by > old->by) {
            old->by = x->by;
            old->text = hv_arena_strdup(arena, x->text);
        }
    }
}

static enum hv_status add_figures(const struct hv__lowered *l, struct hv_verdict *out,
                                  struct hv_err *err);

/** Adds an iteration of the routing with some of the lengths: `of` tells which. */
static void add_runs(struct iterations *all, struct iteration of, const struct hv__length_run *runs,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double routed = (double)all->routed;
        all->items[all->n++] = (struct iteration){.routed = of.routed,
                                                  .step = of.step,
                                                  .lengths = &runs[i],
                                                  .weight = runs[i].weight / routed,
                                                  .common_weight = runs[i].common_weight / routed};
    }
}

/** Iteration of the routing that is the t-th timed one: the middle of its share of all. */
static size_t spaced(size_t t, size_t timed, size_t all)
{
    return (2 * t + 1) * all / (2 * timed);
}

/** Lists the iterations of the job: of its routing, each with all lengths; in turn where what comes
 * depends on what was before. */
static struct iterations list_iterations(const struct hv__question *q, const struct hv__lowered *l,
                                         bool in_turn)
{
    const struct hv_router *router = hv_cost_job(q->k)->routing;
    const struct hv__length_runs lengths = hv__length_runs(l);
    size_t routed = hv_router_is_even(router) || router->iterations < 1 ? 1 : router->iterations;
    size_t total = routed, most = q->options->iterations;
    routed = most > 0 && most < total && !in_turn ? most : total;
    size_t each = lengths.n > 0 ? lengths.n : 1, first = in_turn ? each : lengths.n_common;
    struct iterations all = {.routed = routed, .findings = {.arena = q->arena}};
    all.items = hv_arena_new(q->arena, struct iteration, routed * each);
    all.steps = hv_arena_new(q->arena, struct hv_routing_step, routed);
    for (size_t t = 0; t < routed; t++) {
        double weight = 1 / (double)routed;
        struct iteration of = {.routed = spaced(t, routed, total),
                               .step = t,
                               .weight = weight,
                               .common_weight = weight};
        if (lengths.n == 0) {
            all.items[all.n++] = of;
        } else {
            add_runs(&all, of, lengths.items, first);
        }
    }
    all.n_common = all.n;
    for (size_t t = 0; t < routed && lengths.n > first; t++) {
        add_runs(&all, (struct iteration){.routed = spaced(t, routed, total), .step = t},
                 lengths.items + first, lengths.n - first);
    }
    all.typical = all.items[0];
    return all;
}

/** The shortest time that 95 % of the iterations do not exceed, and the iteration whose time is
 * nearest to the mean. */
static void find_typical(struct iterations *all)
{
    double weight = 0, sum = 0;
    qsort(all->items, all->n, sizeof *all->items, by_time);
    for (size_t i = 0; i < all->n; i++) {
        weight += fmax(0, all->items[i].weight);
    }
    all->p95_s = all->items[all->n - 1].time_s;
    for (size_t i = 0; i < all->n; i++) {
        const struct iteration *x = &all->items[i];
        sum += fmax(0, x->weight);
        all->p95_s = sum >= (0.95 - ROUNDING) * weight ? fmin(all->p95_s, x->time_s) : all->p95_s;
        double mean_s = all->sum.iteration_s;
        if (fabs(x->time_s - mean_s) < fabs(all->typical.time_s - mean_s)) {
            all->typical = *x;
        }
    }
}

/** Seconds of one iteration with another plan: a hv__trial. Of several lengths the expected time,
 * where all micro-batches are equally long. */
static enum hv_status time_trial(const struct hv__lowered *l, const struct hv_plan *plan,
                                 size_t iteration, double *time_s, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv__lowered own = *l;
    own.arena = &arena;
    const struct hv__length_runs lengths = hv__length_runs(&own);
    size_t n = lengths.n > 0 ? lengths.n_common : 1;
    enum hv_status st = HV_OK;
    *time_s = 0;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_arena scratch = {0};
        struct hv_verdict v = {.findings = {.arena = &scratch}};
        struct hv__lowered x = *l;
        x.arena = &scratch;
        x.findings = &v.findings;
        x.plan = plan;
        x.spans = false;
        x.routed = iteration;
        x.lengths = lengths.n > 0 ? &lengths.items[i] : NULL;
        st = hv__time_iteration(&x, &v, err);
        *time_s += (lengths.n > 0 ? lengths.items[i].common_weight : 1) * x.iteration.total_s;
        hv_arena_free(&scratch);
    }
    hv_arena_free(&arena);
    return st;
}

/** Adds the seconds in which experts move before an iteration. */
static void add_move(struct hv_metrics *m, double move_s)
{
    double factor = m->iteration_s / (m->iteration_s + move_s);
    m->iteration_s += move_s;
    m->breakdown_s[HV_TIME_EP] += move_s;
    m->tokens_per_s *= factor;
    m->mfu *= factor;
    m->bubble_frac *= factor;
    m->energy_j /= factor;
}

/** Leaves the drawn iterations out: the sums are those of common lengths. */
static void keep_common(struct iterations *all)
{
    all->common_only = true;
    all->n = all->n_common;
    all->sum = all->common;
    for (size_t i = 0; i < all->n; i++) {
        all->items[i].weight = all->items[i].common_weight;
    }
}

/** Notes the moves before an iteration; the sums of those before are in `*step` for now. */
static void note_moves(const struct hv__adaption *a, const struct hv_plan *plan, double move_s,
                       struct hv_routing_step *step)
{
    step->plan = plan;
    step->move_s = move_s;
    hv__adapt_moved(a, &step->moves, &step->moved_bytes);
}

/** Makes what each iteration moved of the sums up to it. */
static void part_moves(struct iterations *all)
{
    for (size_t t = all->routed; t-- > 1;) {
        struct hv_routing_step *step = &all->steps[t];
        step->moves -= step->plan != NULL ? step[-1].moves : 0;
        step->moved_bytes -= step->plan != NULL ? step[-1].moved_bytes : 0;
    }
}

/** Times every iteration in memory of its own; `adaption`: places of experts that follow the
 * routing, or NULL. */
static enum hv_status time_iterations(const struct hv__question *q, const struct hv__lowered *l,
                                      struct hv__adaption *adaption, struct iterations *all,
                                      struct hv_err *err)
{
    enum hv_status st = HV_OK;
    const struct hv_plan *plan = l->plan;
    double last_s = 0, move_s = 0;
    double beat_s = q->options->beat_s;
    for (size_t t = 0; st == HV_OK && t < all->n; t++) {
        const struct iteration *now = &all->items[t];
        if (t == all->n_common && beat_s > 0 && all->common.iteration_s > beat_s) {
            keep_common(all);
            break;
        }
        if (adaption != NULL && (t == 0 || now->routed != now[-1].routed)) {
            st = hv__adapt_next(adaption, now->routed, last_s, &plan, &move_s, err);
            last_s = 0;
            note_moves(adaption, plan, move_s, &all->steps[now->step]);
        }
        struct hv_arena scratch = {0};
        struct hv_verdict v = {.findings = {.arena = &scratch}};
        struct hv__lowered x = *l;
        x.arena = &scratch;
        x.findings = &v.findings;
        x.spans = false;
        x.plan = plan;
        x.routed = now->routed;
        x.lengths = now->lengths;
        st = st == HV_OK ? hv__time_iteration(&x, &v, err) : st;
        st = st == HV_OK ? add_figures(&x, &v, err) : st;
        if (st == HV_OK) {
            last_s += v.metrics.iteration_s * now->weight * (double)all->routed;
            add_move(&v.metrics, move_s);
            all->steps[now->step].time_s +=
                v.metrics.iteration_s * now->weight * (double)all->routed;
            all->items[t].time_s = v.metrics.iteration_s;
            add_iteration(&all->sum, &v, now->weight);
            add_iteration(&all->common, &v, now->common_weight);
            keep_worst(all, &v, q->arena);
        }
        hv_arena_free(&scratch);
    }
    part_moves(all);
    all->typical = all->items[0];
    find_typical(all);
    return st;
}

/** The verdict is that of the typical iteration; its figures become those of all. */
static void apply_iterations(const struct iterations *all, struct hv_verdict *out)
{
    struct hv_metrics *m = &out->metrics;
    const struct hv_metrics *s = &all->sum;
    double tokens_per_s = s->tokens_per_s / s->iteration_s;
    m->usd_per_mtoken *= m->tokens_per_s / tokens_per_s;
    m->iteration_s = s->iteration_s;
    m->tokens_per_s = tokens_per_s;
    m->mfu = s->mfu / s->iteration_s;
    m->bubble_frac = s->bubble_frac / s->iteration_s;
    m->energy_j = s->energy_j;
    m->pipeline_s = s->pipeline_s;
    m->dropped_frac = s->dropped_frac;
    m->exact = m->exact && m->dropped_frac <= 0;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        m->breakdown_s[i] = s->breakdown_s[i];
    }
    struct hv_sent depth = m->traffic.depth; /* does not depend on tokens */
    m->traffic = s->traffic;
    m->traffic.depth = depth;
    for (size_t i = 0; i < out->n_memory; i++) {
        out->memory[i] = all->memory[i];
    }
}

/** Replaces the findings behind `before` by those of the worst iterations. */
static void apply_findings(const struct iterations *all, size_t before, struct hv_findings *f)
{
    f->n = before;
    for (size_t i = 0; i < all->findings.n; i++) {
        const struct hv_violation *x = &all->findings.items[i];
        hv_finding_add(f, x->code, x->by, x->where, "%s", x->text);
    }
}

/** HV_ENO where the job's routing is not of this model. */
static enum hv_status check_routing(const struct hv__question *q, struct hv_err *err)
{
    const struct hv_router *r = hv_cost_job(q->k)->routing;
    const struct hv_model *m = hv_cost_model(q->k);
    size_t layers = 0, experts = 0;
    for (size_t i = 0; m->kind == HV_MODEL_TRANSFORMER && i < m->n_blocks; i++) {
        size_t own = (size_t)m->blocks[i].experts;
        layers += own > 0;
        experts = own > 0 && (experts == 0 || own != r->experts) ? own : experts;
    }
    if (r->kind != HV_ROUTER_TRACE || (layers == r->layers && experts == r->experts) ||
        layers == 0) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ENO,
                      "the job's routing is of %zu layers with %zu experts, and the model has %zu "
                      "layers with %zu experts: give a routing of this model",
                      r->layers, r->experts, layers, experts);
}

/** Memory, figures and, where asked for, the timeline of a timed iteration. */
static enum hv_status add_figures(const struct hv__lowered *l, struct hv_verdict *out,
                                  struct hv_err *err)
{
    out->metrics = (struct hv_metrics){.bound_s = out->metrics.bound_s};
    hv__memory(l, out);
    hv__metrics(l, out);
    enum hv_status st = hv__report_progress(l, HV__AT_JUDGED, err);
    return st == HV_OK && l->spans ? hv__timeline(l, out, err) : st;
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

/** Expectations under failures, where the job or the inventory gives their rates. */
static void add_goodput(const struct hv__question *q, struct hv_verdict *out)
{
    const struct hv_eval_options *o = q->options;
    if ((o->failures || !o->no_bound) && hv_goodput_asked(q->k, q->plan)) {
        const struct hv_goodput_query g = {q->plan, out->metrics.iteration_s,
                                           out->metrics.tokens_per_s, true};
        hv_eval_goodput(q->k, &g, q->arena, &out->goodput);
    }
}

static bool trains(const struct hv_plan *p)
{
    return p->mode == HV_MODE_TRAIN;
}

static enum hv_status judge_train(const struct hv__question *q, struct hv_verdict *out,
                                  struct hv_err *err)
{
    struct hv__lowered l;
    struct hv_bound b;
    check(q, out);
    enum hv_status st = refuse_unsimulated(q, out, err);
    if (st != HV_OK) {
        return st;
    }
    state_bound(q, &b, out);
    st = open_lowered(q, out, &l, err);
    if (st != HV_OK) {
        return out->findings.n > 0 ? HV_OK : st;
    }
    size_t before = out->findings.n;
    bool routed = !hv_router_is_even(hv_cost_job(q->k)->routing);
    bool adapts = routed && hv__adapts(l.plan);
    struct iterations all = list_iterations(q, &l, adapts);
    st = routed ? check_routing(q, err) : HV_OK;
    struct hv__adaption *adaption = NULL;
    if (st == HV_OK && all.n > 1) {
        static const struct hv__trial trial = {time_trial};
        adaption = adapts && all.routed > 1 ? hv__adapt_open(&l, &trial) : NULL;
        struct hv__kept_memories memories = {.arena = q->arena};
        l.memories = adapts ? NULL : &memories; /* memory does not depend on tokens or lengths */
        st = time_iterations(q, &l, adaption, &all, err);
        l.memories = NULL;
    }
    l.routed = all.typical.routed;
    l.lengths = all.typical.lengths;
    const struct hv_plan *given = l.plan;
    if (st == HV_OK && adaption != NULL) {
        l.plan = hv__adapt_plan(adaption, all.typical.routed);
    }
    l.give_up_s = all.n > 1 ? 0 : q->options->give_up_s;
    st = st == HV_OK ? hv__time_iteration(&l, out, err) : st;
    if (st == HV_OK && l.iteration.least_s > 0) {
        out->at_least_s = l.iteration.least_s;
        return HV_OK;
    }
    st = st == HV_OK ? add_figures(&l, out, err) : st;
    if (st != HV_OK) {
        return out->findings.n > before && st != HV_ESTOPPED ? HV_OK : st;
    }
    if (all.n > 1) {
        apply_iterations(&all, out);
        apply_findings(&all, before, &out->findings);
    }
    if (routed) {
        out->routing =
            (struct hv_routing_figures){.n = all.routed,
                                        .mean_s = out->metrics.iteration_s,
                                        .p95_s = all.n > 1 ? all.p95_s : out->metrics.iteration_s,
                                        .dropped_frac = out->metrics.dropped_frac,
                                        .steps = all.n > 1 ? all.steps : NULL};
    }
    if (adaption != NULL) {
        hv__adapt_moved(adaption, &out->routing.moves, &out->routing.moved_bytes);
    }
    l.plan = given;
    hv__apply_bound(&l, &b, out);
    out->common_s = all.items[0].lengths != NULL ? all.common.iteration_s : 0;
    out->common_only = all.common_only;
    out->steps = l.network.share != NULL ? l.network.share->steps : 0;
    check_limits(hv_cost_job(q->k), out);
    if (!q->options->no_bound) {
        hv_band_of(q->plan, hv_cost_model(q->k), hv_cost_job(q->k), &out->metrics);
    }
    add_goodput(q, out);
    return HV_OK;
}

/* ---- the table ----------------------------------------------------------------------------------
 */

/** Judges of plans; the first that applies judges. */
static const struct {
    bool (*applies)(const struct hv_plan *p);
    hv__judge_fn *judge;
} judges[] = {
    {serves, judge_serve},
    {trains, judge_train},
};

enum hv_status hv__judge_one(const struct hv__question *q, struct hv_verdict *out,
                             struct hv_err *err)
{
    hv__verdict_begin(q, out);
    for (size_t i = 0; i < HV_COUNT(judges); i++) {
        if (judges[i].applies(q->plan)) {
            return judges[i].judge(q, out, err);
        }
    }
    return hv_err_set(err, HV_ENO, "no judge for plans in %s mode",
                      hv_plan_mode_words[q->plan->mode]);
}
