/*
 * From a sketch to a plan, and to its value. The one place of the planner that calls the judge.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <math.h>
#include <string.h>

/* a second try for what hardly fits: of the memory that prices allow */
#define ROOMY  1.2
#define WIDTH  64 /* ranks of one tensor and context group, at most, that are placed first */
#define REFITS 4  /* splits of one sketch, each with less memory than the one before */

/* clang-format off */
const struct hv__order hv__orders[] = {
    {"1f1b",        1, false, 1, 0},
    {"interleaved", 2, false, 1, 0.5},
    {"interleaved", 4, false, 1, 0.75},
    {"zb-h1",       1, false, 1, 0},
    {"zb-h2",       1, false, 1, 1},
    {"zb-2p",       1, false, 1, 1},
    {"zb-v",        2, true,  1, 0},
    {"seq1f1b",     1, false, 2, 0},
    {"seq1f1b",     1, false, 4, 0},
};
/* clang-format on */
const int hv__n_orders = (int)HV_COUNT(hv__orders);

int hv__depth(const struct hv__team *t)
{
    int n = 0;
    for (int i = 0; i < t->n_legs; i++)
        n += t->legs[i].n_stages;
    return n;
}

const struct hv__leg *hv__leg_at(const struct hv__team *t, int stage)
{
    int i = 0;
    while (i + 1 < t->n_legs && stage >= t->legs[i].n_stages)
        stage -= t->legs[i++].n_stages;
    return &t->legs[i];
}

int hv__leg_devices(const struct hv__leg *l)
{
    return l->n_stages * l->tp * l->cp * l->dp;
}

int hv__leg_holders(const struct hv__leg *l)
{
    return l->cp * l->dp;
}

static void fill_ranges(struct hv_replica *r, const struct hv__team *t, const struct hv__order *o)
{
    int depth = (int)r->n_stages, parts = depth * o->chunks, at = 0;
    bool hollow = t->counts[0] == 0 || t->counts[parts - 1] == 0;
    for (int i = 0; i < parts; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1)
            rank = depth - 1 - rank;
        struct hv_stage *st = &r->stages[rank];
        st->ranges[turn] = (struct hv_range){2 * at, 2 * (at + t->counts[i])};
        at += t->counts[i];
    }
    int last = o->folded && o->chunks % 2 == 0 ? 0 : depth - 1;
    for (int i = 0; hollow && i < depth; i++) {
        r->stages[i].embedding = i == 0;
        r->stages[i].head = i == last;
    }
}

/* Where the devices of every leg begin in its pool: wide groups of ranks first, so that they lie
 * inside their nodes. */
static void place_legs(const struct hv__sketch *k, int first[HV__TEAMS][HV__LEGS])
{
    int used[HV__POOLS] = {0};
    for (int width = WIDTH; width > 0; width /= 2) {
        for (int t = 0; t < k->n_teams; t++) {
            for (int l = 0; l < k->teams[t].n_legs; l++) {
                const struct hv__leg *leg = &k->teams[t].legs[l];
                int ranks = leg->tp * leg->cp;
                if (ranks < width || (ranks >= 2 * width && width < WIDTH))
                    continue;
                first[t][l] = used[leg->pool];
                used[leg->pool] += hv__leg_devices(leg);
            }
        }
    }
}

int hv__spare_devices(const struct hv__search *s, const struct hv__sketch *k, int pool)
{
    int spare = s->pools[pool].n;
    for (int t = 0; t < k->n_teams; t++) {
        for (int l = 0; l < k->teams[t].n_legs; l++) {
            if (k->teams[t].legs[l].pool == pool)
                spare -= hv__leg_devices(&k->teams[t].legs[l]);
        }
    }
    return spare;
}

static bool has_devices(const struct hv__search *s, const struct hv__sketch *k)
{
    for (int i = 0; i < s->n_pools; i++) {
        if (hv__spare_devices(s, k, i) < 0)
            return false;
    }
    return true;
}

/* Sequences of every data-parallel rank, as even as can be; NULL: all have as many. */
static int *shares_of(struct hv_arena *a, int micro_batch, int dp)
{
    if (micro_batch % dp == 0)
        return NULL;
    int *shares = hv_arena_new(a, int, (size_t)dp);
    for (int i = 0; i < dp; i++)
        shares[i] = micro_batch / dp + (i < micro_batch % dp);
    return shares;
}

/* Devices of the next stage of a leg, whose own begin at *at. */
static void take_devices(const struct hv__search *s, const struct hv__leg *l, int *at,
                         struct hv_stage *st)
{
    const uint32_t *ids = s->pools[l->pool].ids + *at;
    size_t width = (size_t)(l->tp * l->cp), step = l->beside ? width * (size_t)l->n_stages : width;
    for (size_t rank = 0; rank < (size_t)l->dp; rank++)
        memcpy(st->devices + rank * width, ids + rank * step, width * sizeof *ids);
    *at += (int)(l->beside ? width : st->n_devices);
}

/* `first`: where the devices of each leg begin. */
static void draw_team(const struct hv__search *s, struct hv_plan *p, struct hv_replica *r,
                      const struct hv__team *t, const struct hv__order *o, int *first)
{
    r->count = 1;
    r->micro_batch = t->micro_batch;
    r->micro_batches = t->micro_batches;
    r->n_stages = (size_t)hv__depth(t);
    r->stages = hv_arena_new(&p->arena, struct hv_stage, r->n_stages);
    for (size_t i = 0; i < r->n_stages; i++) {
        struct hv_stage *st = &r->stages[i];
        const struct hv__leg *l = hv__leg_at(t, (int)i);
        hv_stage_defaults(st);
        st->n_devices = (size_t)(l->tp * l->cp * l->dp);
        st->devices = hv_arena_new(&p->arena, uint32_t, st->n_devices);
        take_devices(s, l, &first[l - t->legs], st);
        st->tp.degree = l->tp;
        st->sequence_parallel = l->tp > 1;
        st->cp.degree = l->cp;
        st->cp.layout = hv__layout(s, l);
        st->dp = l->dp;
        st->shares = shares_of(&p->arena, t->micro_batch, l->dp);
        st->ep = l->ep;
        st->zero.stage = hv__leg_holders(l) > 1 ? t->zero : 0;
        st->recompute = l->recompute;
        if (l->offload) {
            st->n_offload = 1;
            st->offload = hv_arena_new(&p->arena, struct hv_offload, 1);
            st->offload[0] =
                (struct hv_offload){.what = HV_OFFLOAD_ACTIVATIONS, .frac = 1, .to_host = true};
        }
        st->n_ranges = (size_t)o->chunks;
        st->ranges = hv_arena_new(&p->arena, struct hv_range, st->n_ranges);
    }
    fill_ranges(r, t, o);
}

struct hv_plan *hv__draw(const struct hv__search *s, const struct hv__sketch *k)
{
    struct hv_plan *p = hv_plan_new((struct hv_cluster *)(uintptr_t)hv_cost_cluster(s->k));
    const struct hv__order *o = &hv__orders[k->order];
    int first[HV__TEAMS][HV__LEGS];
    place_legs(k, first);
    p->schedule.name = hv_arena_strdup(&p->arena, o->name);
    p->schedule.slices = o->slices;
    p->n_replicas = (size_t)k->n_teams;
    p->replicas = hv_arena_new(&p->arena, struct hv_replica, p->n_replicas);
    for (int i = 0; i < k->n_teams; i++)
        draw_team(s, p, &p->replicas[i], &k->teams[i], o, first[i]);
    p->micro_batch = k->teams[0].micro_batch;
    return p;
}

/* What the job minimises; infinity where the plan is no answer. */
static double value_of(const struct hv__search *s, const struct hv_verdict *v)
{
    const struct hv_objective *o = &s->job->objective;
    const struct hv_metrics *m = &v->metrics;
    if (hv_findings_of_rules(&v->findings) > 0 || !m->exact || !hv_known(m->iteration_s))
        return HUGE_VAL;
    if (!hv_eval_within(o, m))
        return hv_eval_worth(o, m);
    switch (o->minimize) {
    case HV_MIN_COST:
        return hv_known(m->usd_per_h) ? m->usd_per_h * m->iteration_s / 3600 : m->iteration_s;
    case HV_MIN_ENERGY:
        return hv_or(m->energy_j, m->iteration_s);
    case HV_MIN_TIME:
    case HV_MINIMIZE_N:
        break;
    }
    return m->iteration_s;
}

bool hv__over(struct hv__search *s)
{
    if (s->o->stop != NULL && s->o->stop(s->o->ctx))
        s->stopped = true;
    if (s->o->budget > 0 && s->evaluations >= s->o->budget)
        s->stopped = true;
    return s->stopped || s->work >= s->work_limit;
}

double hv__work_of(const struct hv__search *s, const struct hv__sketch *k)
{
    double ops = 400 + s->n_blocks;
    for (int i = 0; i < k->n_teams; i++) {
        const struct hv__team *t = &k->teams[i];
        const struct hv__order *o = &hv__orders[k->order];
        ops += (double)t->micro_batches * hv__depth(t) * o->chunks * o->slices * 2;
        for (int l = 0; l < t->n_legs; l++)
            ops += hv__leg_devices(&t->legs[l]) + 100 * t->legs[l].n_stages;
    }
    return ops;
}

static void tell(struct hv__search *s, const struct hv_plan *p)
{
    if (s->o->incumbent != NULL && s->best_value < 0.99 * s->told_value) {
        s->told_value = s->best_value;
        s->o->incumbent(s->o->ctx, p);
    }
}

double hv__judge_sketch(struct hv__search *s, const struct hv__sketch *k)
{
    struct hv_eval_options eval = {.no_bound = true};
    double value = HUGE_VAL;
    if (!has_devices(s, k)) {
        s->last = (struct hv_verdict){0};
        return value;
    }
    struct hv_plan *p = hv__draw(s, k);
    hv_arena_free(&s->scratch);
    s->evaluations++;
    s->work += hv__work_of(s, k);
    if (hv_eval(s->k, p, &eval, &s->scratch, &s->last, NULL) == HV_OK)
        value = value_of(s, &s->last);
    else
        s->last = (struct hv_verdict){0};
    if (value < s->best_value) {
        s->best = *k;
        s->best_value = value;
        s->best_s = s->last.metrics.iteration_s;
        tell(s, p);
    }
    hv_plan_unref(p);
    return value;
}

static bool lacks_memory(const struct hv_verdict *v)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        enum hv_violation_code code = v->findings.items[i].code;
        if (code != HV_V_MEMORY && !hv_violation_is_limit(code))
            return false;
    }
    return hv_findings_of_rules(&v->findings) > 0;
}

/* How much of a device's memory may be filled, where the worst stage asked for more than it has. */
static double smaller_room(const struct hv_verdict *v)
{
    double least = 1;
    for (size_t i = 0; i < v->n_memory; i++) {
        if (v->memory[i].peak_bytes > 0)
            least = fmin(least, v->memory[i].limit_bytes / v->memory[i].peak_bytes);
    }
    return fmin(0.98, least);
}

static bool split_all(struct hv__search *s, struct hv__sketch *k, const struct hv__cut *cut)
{
    for (int t = 0; t < k->n_teams; t++) {
        struct hv__cut own = *cut;
        own.fill = cut->fill && hv__fill_matters(&k->teams[t], k->order);
        if (!hv__split(s, &k->teams[t], k->order, &own))
            return false;
    }
    return true;
}

static bool same_counts(const struct hv__sketch *a, const struct hv__sketch *b)
{
    for (int t = 0; t < a->n_teams; t++) {
        if (memcmp(a->teams[t].counts, b->teams[t].counts, sizeof a->teams[t].counts) != 0)
            return false;
    }
    return true;
}

/* One way to split; the plan that is known already need not be judged again. */
static double refit(struct hv__search *s, struct hv__sketch *k, struct hv__cut cut,
                    const struct hv__sketch *known)
{
    for (int i = 0; i < REFITS && !hv__over(s); i++) {
        struct hv__cut roomy = {ROOMY, cut.fill};
        if (!split_all(s, k, &cut) && (i > 0 || !split_all(s, k, &roomy)))
            return HUGE_VAL;
        if (known != NULL && same_counts(k, known))
            return HUGE_VAL;
        if (i == 0 && !hv__deal(s, k))
            return HUGE_VAL;
        double value = hv__judge_sketch(s, k);
        if (value < HUGE_VAL || !lacks_memory(&s->last))
            return value;
        cut.room *= smaller_room(&s->last);
        if (cut.room < 0.5)
            return HUGE_VAL;
    }
    return HUGE_VAL;
}

double hv__refit(struct hv__search *s, struct hv__sketch *k)
{
    if (!has_devices(s, k) || !hv__deal(s, k))
        return HUGE_VAL;
    struct hv__sketch other = *k;
    double value = refit(s, k, (struct hv__cut){.room = 1}, NULL);
    bool fill = false;
    for (int t = 0; t < k->n_teams; t++)
        fill = fill || hv__fill_matters(&k->teams[t], k->order);
    if (!fill)
        return value;
    double filled = refit(s, &other, (struct hv__cut){.room = 1, .fill = true}, k);
    if (filled < value)
        *k = other;
    return fmin(filled, value);
}
