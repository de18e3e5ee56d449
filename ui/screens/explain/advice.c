/** Possible improvements of the plan: levers are changed one at a time, and the trials are ranked.
 * Levers and trials are in ui/lever. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/screens/explain/explain_int.h"

/** Relative change of hardware levers. */
#define TURN 0.1
/** Changes below this share are ignored. */
#define LEAST_GAIN 0.0005

static void plan_try(struct hv_explain_data *d, size_t lever, double value)
{
    struct hv_explain_try t = {.lever = lever, .value = value};
    if (!hv_lever_is_base(&d->levers.items[lever], value)) {
        hv_vec_push(&d->tries, t);
    }
}

/** Schedules that train as this one does and are ordered without a search. */
static bool is_quick_schedule(const char *name)
{
    const struct hv_schedule_row *row = NULL;
    return hv_schedule_find(name, &row, NULL) == HV_OK &&
           (row->flags & (HV_SCHEDULE_BY_COST | HV_SCHEDULE_ASYNC)) == 0;
}

static void plan_words(struct hv_explain_data *d, size_t i)
{
    const struct hv_lever *l = &d->levers.items[i];
    for (size_t k = 0; k < l->n_values; k++) {
        if (l->kind != HV_LEVER_SCHEDULE || is_quick_schedule(l->words[k])) {
            plan_try(d, i, l->values[k]);
        }
    }
}

void hv_explain_plan_tries(struct hv_explain_data *d)
{
    d->tries.n = d->ranked.n = d->n_done = 0;
    for (size_t i = 0; i < d->levers.n; i++) {
        const struct hv_lever *l = &d->levers.items[i];
        switch (l->kind) {
        case HV_LEVER_BATCH:
        case HV_LEVER_MICRO:
        case HV_LEVER_LAYERS:
        case HV_LEVER_CHUNKS:
        case HV_LEVER_TP:
            plan_try(d, i, hv_lever_step(l, l->base, 1));
            plan_try(d, i, hv_lever_step(l, l->base, -1));
            break;
        case HV_LEVER_SCHEDULE:
        case HV_LEVER_RECOMPUTE:
        case HV_LEVER_ZERO:
            plan_words(d, i);
            break;
        case HV_LEVER_NODES:
            plan_try(d, i, l->base + 1);
            break;
        case HV_LEVER_NIC:
        case HV_LEVER_INTRA:
        case HV_LEVER_NETWORK:
        case HV_LEVER_LINK:
        case HV_LEVER_FLOPS:
        case HV_LEVER_HBM:
        case HV_LEVER_MEMORY:
            plan_try(d, i, l->base * (1 + TURN));
            plan_try(d, i, l->base * (1 - TURN));
            break;
        case HV_LEVER_SEQUENCE: /* another task, not another way to do it */
        case HV_LEVER_FAILED:
        case HV_LEVER_SLOW:
        case HV_LEVER_PRICE:
        case HV_LEVER_PREEMPTED:
        case HV_LEVER_INTERVAL:
        case HV_LEVER_RESTART:
        case HV_LEVER_N:
            break;
        }
    }
}

/** How much less time a token takes; of more nodes, how much lower the bound is. */
static double gain_of(const struct hv_explain_data *d, const struct hv_explain_try *t)
{
    if (!t->done || t->failed) {
        return 0;
    }
    double g = d->levers.items[t->lever].kind == HV_LEVER_NODES
                   ? 1 - t->figures.bound_s / d->base.bound_s
                   : 1 - d->base.tokens_per_s / t->figures.tokens_per_s;
    return hv_or(g, 0);
}

/** True for an improvement: a gain without more violations and without a loss of exactness. */
static bool is_good(const struct hv_explain_data *d, const struct hv_explain_try *t)
{
    return gain_of(d, t) > LEAST_GAIN && t->figures.n_violations <= d->base.n_violations &&
           t->figures.exact >= d->base.exact;
}

/** True where a ranks before b: improvements first, among them those usable by this plan before
 * those that need a new plan (more nodes), then by gain. */
static bool is_before(const struct hv_explain_data *d, size_t a, size_t b)
{
    const struct hv_explain_try *x = &d->tries.items[a], *y = &d->tries.items[b];
    bool good = is_good(d, x), other = is_good(d, y);
    bool later = d->levers.items[x->lever].kind == HV_LEVER_NODES;
    bool other_later = d->levers.items[y->lever].kind == HV_LEVER_NODES;
    if (good != other) {
        return good;
    }
    if (later != other_later) {
        return other_later;
    }
    double g = gain_of(d, x), h = gain_of(d, y);
    return g > h || (!(h > g) && a < b);
}

static void rank_last(struct hv_explain_data *d, size_t i)
{
    hv_vec_push(&d->ranked, i);
    for (size_t k = d->ranked.n - 1; k > 0 && is_before(d, i, d->ranked.items[k - 1]); k--) {
        d->ranked.items[k] = d->ranked.items[k - 1];
        d->ranked.items[k - 1] = i;
    }
}

static void try_one(struct hv_explain_data *d, struct hv_session *s, struct hv_explain_try *t,
                    double *values)
{
    struct hv_err err = {0};
    const struct hv_lever *l = &d->levers.items[t->lever];
    values[t->lever] = t->value;
    bool bound = l->kind == HV_LEVER_NODES;
    t->failed = hv_levers_try(s, &d->levers, values, bound, &t->figures, &err) != HV_OK;
    if (t->failed) {
        (void)snprintf(t->reason, sizeof t->reason, "%.150s", err.text);
    }
    t->done = true;
    values[t->lever] = l->base;
}

bool hv_explain_try_some(struct hv_explain_data *d, struct hv_session *s, double budget_s)
{
    double start_s = hv_session_now_s(s);
    double *values = hv_xcalloc(d->levers.n + 1, sizeof *values);
    for (size_t i = 0; i < d->levers.n; i++) {
        values[i] = d->levers.items[i].base;
    }
    while (d->n_done < d->tries.n) {
        try_one(d, s, &d->tries.items[d->n_done], values);
        rank_last(d, d->n_done);
        d->n_done++;
        if (hv_session_now_s(s) - start_s > budget_s) {
            break;
        }
    }
    free(values);
    if (d->n_done == d->tries.n && !d->share.done) {
        hv_explain_share_try(d, s);
    }
    return hv_explain_is_busy(d);
}

bool hv_explain_is_busy(const struct hv_explain_data *d)
{
    return d->n_done < d->tries.n || !d->share.done;
}

/* ---- rows ---- */

/** The trial of the same lever in the other direction. */
static const struct hv_explain_try *opposite(const struct hv_explain_data *d, size_t i)
{
    for (size_t k = 0; k < d->n_done; k++) {
        if (k != i && d->tries.items[k].lever == d->tries.items[i].lever) {
            return &d->tries.items[k];
        }
    }
    return NULL;
}

/** "buy 12.5 -> 13.75 GB/s: 9.12 s -> 8.75 s". */
static const char *turn_text(struct hv_explain_data *d, const struct hv_explain_try *t)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_lever *l = &d->levers.items[t->lever];
    struct hv_str text = {0};
    bool less = hv_lever_deed(l) == HV_DEED_BUY && t->value < l->base;
    hv_str_addf(&text, "%s ", less ? "save" : hv_lever_deed_name(hv_lever_deed(l)));
    hv_lever_text(l, l->base, &text);
    hv_str_adds(&text, " -> ");
    hv_lever_text(l, t->value, &text);
    hv_str_addf(&text, "%s%s: ", hv_lever_unit(l)[0] != '\0' ? " " : "", hv_lever_unit(l));
    if (t->failed) {
        hv_str_adds(&text, t->reason);
    } else if (l->kind == HV_LEVER_NODES) {
        hv_str_addf(&text, "lower bound %s -> %s, for a new plan",
                    hv_fmt_seconds(a, sizeof a, d->base.bound_s),
                    hv_fmt_seconds(b, sizeof b, t->figures.bound_s));
    } else if (t->figures.n_violations > d->base.n_violations) {
        hv_str_addf(&text, "breaks %s", t->figures.violation);
    } else {
        hv_str_addf(&text, "iteration %s -> %s", hv_fmt_seconds(a, sizeof a, d->base.iteration_s),
                    hv_fmt_seconds(b, sizeof b, t->figures.iteration_s));
        hv_str_addf(&text, ", peak memory %s%s", hv_fmt_percent(a, sizeof a, t->figures.peak_frac),
                    t->figures.exact < d->base.exact ? ", not exact" : "");
    }
    const char *kept = hv_arena_strdup(&d->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return kept;
}

static const char *turn_detail(struct hv_explain_data *d, size_t i)
{
    const struct hv_explain_try *t = &d->tries.items[i], *o = opposite(d, i);
    const struct hv_lever *l = &d->levers.items[t->lever];
    if (l->words != NULL || o == NULL || o->failed || l->kind == HV_LEVER_NODES) {
        return hv_arena_printf(
            &d->arena,
            "%s. The plan was simulated again with this value. Enter tries it in What-if.",
            hv_lever_help(l));
    }
    struct hv_str other = {0};
    hv_lever_text(l, o->value, &other);
    const char *text =
        hv_arena_printf(&d->arena,
                        "%s. The plan was simulated again with this value; in the other direction, "
                        "at %s, the time per token changes by %+.1f%%. Enter tries it in What-if.",
                        hv_lever_help(l), hv_str_cstr(&other), -100 * gain_of(d, o));
    hv_str_free(&other);
    return text;
}

static void add_try(struct hv_explain_data *d, size_t i, int depth)
{
    const struct hv_explain_try *t = &d->tries.items[i];
    bool good = is_good(d, t);
    struct hv_explain_row *r =
        hv_explain_add(d, HV_ID_ADVICE + 2000000 + i, depth, turn_text(d, t));
    r->name = d->levers.items[t->lever].name;
    double change = -100 * gain_of(d, t);
    r->value = t->failed             ? "-"
               : fabs(change) < 0.05 ? "0.0%"
                                     : hv_arena_printf(&d->arena, "%+.1f%%", change);
    r->style = good ? HV_STYLE_GOOD : HV_STYLE_DIM;
    r->detail = turn_detail(d, i);
    r->evidence =
        (struct hv_evidence){.kind = HV_EVIDENCE_LEVER, .lever = t->lever, .value = t->value};
}

void hv_explain_advice(struct hv_explain_data *d)
{
    size_t n_good = 0;
    struct hv_explain_row *r = hv_explain_add(
        d, HV_ID_ADVICE, 0,
        d->n_done < d->tries.n
            ? hv_arena_printf(&d->arena, "What to change, move or buy first (%zu of %zu tried)",
                              d->n_done, d->tries.n)
            : hv_arena_printf(&d->arena, "What to change, move or buy first (all %zu tried)",
                              d->tries.n));
    r->folds = true;
    r->open = hv_explain_is_open(d, HV_ID_ADVICE);
    r->style = HV_STYLE_TITLE;
    r->detail = "Each lever was moved by one position (hardware by 10 %) and the plan was "
                "simulated again. The levers are ranked by the change of the time per token. More "
                "nodes need a new plan; for them the change of the lower bound counts.";
    if (!r->open) {
        return;
    }
    for (size_t i = 0; i < d->ranked.n; i++) {
        if (is_good(d, &d->tries.items[d->ranked.items[i]])) {
            add_try(d, d->ranked.items[i], 1);
            n_good++;
        }
    }
    size_t n_others = d->ranked.n - n_good;
    if (n_others == 0) {
        return;
    }
    r = hv_explain_add(d, HV_ID_OTHERS, 1,
                       hv_arena_printf(&d->arena, "no gain, or breaks a rule: %zu", n_others));
    r->folds = true;
    r->open = hv_explain_is_open(d, HV_ID_OTHERS);
    r->style = HV_STYLE_DIM;
    bool open = r->open;
    for (size_t i = n_good; open && i < d->ranked.n; i++) {
        add_try(d, d->ranked.items[i], 2);
    }
}
