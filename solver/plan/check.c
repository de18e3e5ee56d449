/*
 * The plan checker: batch sums (rule A), staleness, dropping, and the walk over all stages. Costs,
 * memory and schedules are judged in solver/eval.
 */
#include "solver/plan/check.h"

#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/plan/check_inside.h"
#include "solver/plan/names.h"
#include "solver/plan/says.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rule A. Doubles: the product of the largest values a file may hold is above 64 bits. */
static void check_batch_sum(const struct hv_check *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->p->n_replicas; i++) {
        const struct hv_replica *r = &c->p->replicas[i];
        sum += (double)r->count * (double)hv_replica_sequences(c->p, r);
    }
    double missing = (double)c->j->global_batch - sum;
    if (missing != 0) {
        hv_finding_add(c->out, HV_V_BATCH_SUM, missing, "replicas",
                       "the replicas run %.0f sequences per iteration, the global batch is %lld: "
                       "%.0f %s",
                       sum, (long long)c->j->global_batch, fabs(missing),
                       missing > 0 ? "are missing" : "too many");
    }
}

static void check_exactness(const struct hv_check *c)
{
    const struct hv_objective *o = &c->j->objective;
    const struct hv_plan *p = c->p;
    if (o->allow_stale_given && !o->allow_stale && hv_plan_is_stale(p)) {
        hv_finding_add(c->out, HV_V_STALE, HV_UNKNOWN, "schedule.name",
                       "schedule %s with sync %s trains on stale weights, and the objective sets "
                       "allow_stale to false",
                       p->schedule.name, hv_sync_kind_words[p->sync.kind]);
    }
    if (!o->allow_drop_given || o->allow_drop) {
        return;
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            const struct hv_stage *s = &p->replicas[i].stages[k];
            struct hv_check_stage at = {i, k, &p->replicas[i], s};
            for (size_t e = 0; e < s->n_moe; e++) {
                if (s->moe[e].capacity_factor > 0) {
                    hv_check_stage_add(c, &at, "moe", HV_V_DROP, s->moe[e].capacity_factor,
                                       "capacity_factor %g drops tokens above it, and the "
                                       "objective sets allow_drop to false; 0 drops none",
                                       s->moe[e].capacity_factor);
                }
            }
        }
    }
}

static void check_slices(const struct hv_check *c)
{
    const struct hv_plan_schedule *s = &c->p->schedule;
    int64_t sum = 0;
    for (size_t i = 0; i < s->n_slice_tokens; i++) {
        sum += s->slice_tokens[i];
    }
    if (s->n_slice_tokens > 0 && sum != c->j->sequence) {
        hv_finding_add(c->out, HV_V_DIVISIBLE, (double)(c->j->sequence - sum), "schedule.slices",
                       "the slices hold %lld tokens, a sequence has %lld", (long long)sum,
                       (long long)c->j->sequence);
    } else if (s->slices > c->j->sequence) {
        hv_finding_add(c->out, HV_V_DIVISIBLE, (double)(s->slices - c->j->sequence),
                       "schedule.slices", "a sequence of %lld tokens cannot be cut into %d slices",
                       (long long)c->j->sequence, s->slices);
    } else if (s->slices > 1 && c->m->kind == HV_MODEL_TRANSFORMER && !c->m->causal) {
        hv_finding_add(c->out, HV_V_SCHEDULE_NEEDS, HV_UNKNOWN, "schedule.slices",
                       "tokens of the model attend to those behind them (causal is false), so a "
                       "slice of a sequence cannot run before the rest: give whole sequences");
    }
}

/* Names of operators, dimensions and axes; patterns of `ops` are checked with rule C. */
static void check_names(const struct hv_check *c)
{
    struct hv_arena scratch = {0};
    struct hv_unknown_name *names = NULL;
    size_t n = hv_plan_unknown_names(c->p, c->m, &scratch, &names);
    for (size_t i = 0; i < n; i++) {
        const struct hv_unknown_name *x = &names[i];
        const struct hv_replica *r = &c->p->replicas[x->replica];
        struct hv_check_stage at = {x->replica, x->stage, r, &r->stages[x->stage]};
        if (strcmp(x->key, "ops") != 0) {
            const char *key =
                x->axis != NULL ? hv_arena_printf(&scratch, "%s.%s.%s", x->key, x->entry, x->axis)
                : x->entry != NULL
                    ? hv_arena_printf(&scratch, "%s.%s", x->key, x->entry)
                    : hv_arena_printf(&scratch, "%s[%zu][%zu]", x->key, x->at, x->side);
            hv_check_stage_add(c, &at, key, HV_V_UNKNOWN_NAME, HV_UNKNOWN, "%s", x->text);
        }
    }
    hv_arena_free(&scratch);
}

/* What the job's target has no words for. */
static void check_target(const struct hv_check *c)
{
    struct hv_arena scratch = {0};
    struct hv_unsaid *found = NULL;
    size_t n =
        c->j->target == HV_TARGET_ANY ? 0 : hv_plan_unsaid(c->p, c->j->target, &scratch, &found);
    for (size_t i = 0; i < n; i++) {
        const struct hv_unsaid *u = &found[i];
        const char *title = hv_target_row(c->j->target)->title;
        if (u->stage == HV_UNSAID_PLAN) {
            hv_finding_add(c->out, HV_V_TARGET, HV_UNKNOWN, u->key, "%s cannot say %s", title,
                           u->text);
        } else {
            const struct hv_replica *r = &c->p->replicas[u->replica];
            struct hv_check_stage at = {u->replica, u->stage, r, &r->stages[u->stage]};
            hv_check_stage_add(c, &at, u->key, HV_V_TARGET, HV_UNKNOWN, "%s cannot say %s", title,
                               u->text);
        }
    }
    hv_arena_free(&scratch);
}

void hv_plan_check(const struct hv_plan *p, const struct hv_model *m, const struct hv_job *j,
                   struct hv_findings *out)
{
    struct hv_check c = {.p = p, .m = m, .j = j, .out = out, .n_halves = 2 * m->n_blocks};
    if (p->n_replicas == 0) {
        return;
    }
    if (p->mode == HV_MODE_TRAIN && !hv_plan_is_stale(p)) {
        check_batch_sum(&c);
    }
    hv_check_devices(&c);
    hv_check_blocks(&c);
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            struct hv_check_stage at = {i, k, &p->replicas[i], &p->replicas[i].stages[k]};
            hv_check_degrees(&c, &at);
        }
    }
    check_names(&c);
    check_slices(&c);
    check_exactness(&c);
    check_target(&c);
}
