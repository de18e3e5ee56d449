/*
 * Sentences about the difference of two verdicts, from their breakdowns. Plans are evaluated by
 * eval; this file only formats.
 */
#include "ui/cli/compare/why.h"

#include "solver/base/units.h"
#include "solver/eval/eval.h"

#include <math.h>
#include <string.h>

/** Differences below this share of the iteration time are not reported. */
#define WORTH_TELLING 0.01
/** Plans closer than this share are reported as equal. */
#define SAME 5e-5
/** Prices below this (USD per million tokens) are printed with more digits. */
#define SMALL_PRICE 0.1
/** Most causes named per side. */
#define CAUSES 3

static double figure(const json_t *simulated, const char *key)
{
    const json_t *v = json_object_get(simulated, key);
    return json_is_number(v) ? json_number_value(v) : HV_UNKNOWN;
}

double hv_cli_compare_worth(const struct hv_objective *o, const json_t *simulated)
{
    const struct hv_metrics m = {.iteration_s = figure(simulated, "iteration_s"),
                                 .usd_per_h = figure(simulated, "usd_per_hour"),
                                 .usd_per_mtoken = figure(simulated, "usd_per_Mtoken"),
                                 .energy_j = figure(simulated, "energy_J")};
    return hv_known(m.iteration_s) ? hv_eval_worth(o, &m) : HUGE_VAL;
}

static double cause_s(const struct hv_compare_side *s, int cause)
{
    const json_t *causes = json_object_get(s->simulated, "breakdown_s");
    return figure(causes, hv_breakdown_name((enum hv_breakdown)cause));
}

/** By how much `a` is ahead of `b` in the quantity that the job minimises; in iteration time where
 * that quantity is unknown. */
static void add_lead(const struct hv_objective *o, const struct hv_compare_side *a,
                     const struct hv_compare_side *b, struct hv_str *out)
{
    char x[HV_FMT_CAP], y[HV_FMT_CAP], less[HV_FMT_CAP];
    bool cost = o->minimize == HV_MIN_COST, energy = o->minimize == HV_MIN_ENERGY;
    const char *key = hv_eval_figure_key(o);
    double own = figure(a->simulated, key), other = figure(b->simulated, key);
    if (!hv_known(other) && hv_known(own)) {
        hv_text_addf(out, "%s ranks first: the %s of the plan of %s is unknown.", a->strategy,
                     cost ? "cost" : "energy", b->strategy);
        return;
    }
    if (!hv_known(own)) {
        cost = energy = false;
        own = figure(a->simulated, "iteration_s");
        other = figure(b->simulated, "iteration_s");
    }
    if (cost || energy) {
        int digits = !cost ? 0 : own < SMALL_PRICE ? 6 : 3;
        (void)hv_fmt_fixed(x, sizeof x, own, digits);
        (void)hv_fmt_fixed(y, sizeof y, other, digits);
    } else {
        (void)hv_fmt_seconds(x, sizeof x, own);
        (void)hv_fmt_seconds(y, sizeof y, other);
    }
    const char *unit = cost ? " USD per million tokens" : energy ? " J" : "";
    if (fabs(own / other - 1) < SAME) {
        hv_text_addf(out, "%s ranks first with %s%s, equal to %s.", a->strategy, x, unit,
                     b->strategy);
        return;
    }
    hv_text_addf(out, "%s ranks first: %s%s, against %s of %s (%s less).", a->strategy, x, unit, y,
                 b->strategy, hv_fmt_percent(less, sizeof less, 1 - own / other));
}

/** Names the causes on which `less` spends less than `more`, largest first; `word` is "less" or
 * "more", from the point of view of the first plan. False: there is none. */
static bool add_causes(const struct hv_compare_side *less, const struct hv_compare_side *more,
                       const char *start, const char *word, struct hv_str *out)
{
    double worth = WORTH_TELLING * figure(more->simulated, "iteration_s"), before = HUGE_VAL;
    bool any = false;
    for (int n = 0; n < CAUSES; n++) {
        int best = -1;
        double most = worth;
        for (int c = 0; c < HV_BREAKDOWN_N; c++) {
            double d = cause_s(more, c) - cause_s(less, c);
            if (d > most && d < before) {
                most = d;
                best = c;
            }
        }
        if (best < 0) {
            break;
        }
        char text[HV_FMT_CAP];
        hv_text_addf(out, "%s%s %s on %s (%s)", any ? ", " : start,
                     hv_fmt_seconds(text, sizeof text, most), word,
                     hv_breakdown_name((enum hv_breakdown)best),
                     hv_breakdown_help((enum hv_breakdown)best));
        before = most;
        any = true;
    }
    return any;
}

void hv_cli_compare_why(const struct hv_objective *o, const struct hv_compare_side *first,
                        const struct hv_compare_side *second, struct hv_str *out)
{
    if (!(figure(first->simulated, "iteration_s") > 0) ||
        !(figure(second->simulated, "iteration_s") > 0)) {
        return;
    }
    add_lead(o, first, second, out);
    bool saves = add_causes(first, second, " On average a device spends ", "less", out);
    const char *start = saves ? "; but " : " On average a device spends ";
    if (add_causes(second, first, start, "more", out) || saves) {
        hv_str_adds(out, ".");
    }
    double own = figure(first->simulated, "devices_used");
    double other = figure(second->simulated, "devices_used");
    if (own > 0 && other > 0 && own != other) {
        hv_text_addf(out, " It uses %.0f devices; %s uses %.0f.", own, second->strategy, other);
    }
}

/** States that no plan meets the limits, and by how much the closest plan exceeds them. */
static void add_over(const struct hv_objective *o, const struct hv_compare_side *first,
                     struct hv_str *out)
{
    char x[HV_FMT_CAP], y[HV_FMT_CAP];
    double own_s = figure(first->simulated, "iteration_s");
    double usd_per_h = figure(first->simulated, "usd_per_hour");
    const char *join = "";
    hv_text_addf(out,
                 "No plan is within the limits of the objective; %s is closest: ", first->strategy);
    if (hv_known(o->deadline_s) && own_s > o->deadline_s) {
        hv_text_addf(out, "iteration time %s, limit %s", hv_fmt_seconds(x, sizeof x, own_s),
                     hv_fmt_seconds(y, sizeof y, o->deadline_s));
        join = ", ";
    }
    if (hv_known(o->max_usd_per_h) && !(usd_per_h <= o->max_usd_per_h)) {
        hv_text_addf(out, "%sprice %s USD per hour, limit %s", join,
                     hv_fmt_fixed(x, sizeof x, usd_per_h, 2),
                     hv_fmt_fixed(y, sizeof y, o->max_usd_per_h, 2));
    }
    hv_str_adds(out, ".");
}

void hv_cli_compare_alone(const struct hv_objective *o, const struct hv_compare_side *first,
                          enum hv_compare_alone why, struct hv_str *out)
{
    static const char *const only[] = {
        [HV_COMPARE_EXACT] = "exact plan (no stale weights, no dropped tokens)",
        [HV_COMPARE_WITHIN] = "plan within price and deadline of the objective",
        [HV_COMPARE_ONLY] = "plan"};
    if (why == HV_COMPARE_OVER) {
        add_over(o, first, out);
    } else if (why != HV_COMPARE_NO_WORD) {
        hv_text_addf(out, "%s ranks first: it is the only %s.", first->strategy, only[why]);
    }
}

/** How two figures of serving plans differ: "256 requests in flight (1,004)". */
static void add_pair(const struct hv_compare_side *first, const struct hv_compare_side *second,
                     const char *key, const char *what, struct hv_str *out)
{
    double own = figure(first->simulated, key), other = figure(second->simulated, key);
    char x[HV_FMT_CAP], y[HV_FMT_CAP];
    bool seconds = strcmp(key + strlen(key) - 2, "_s") == 0;
    if (!(own > 0) || !(other > 0)) {
        return;
    }
    (void)(seconds ? hv_fmt_seconds(x, sizeof x, own) : hv_fmt_count(x, sizeof x, own));
    (void)(seconds ? hv_fmt_seconds(y, sizeof y, other) : hv_fmt_count(y, sizeof y, other));
    hv_text_addf(out, ", %s %s (%s)", x, what, y);
}

void hv_cli_compare_serving(const struct hv_objective *o, const struct hv_compare_side *first,
                            const struct hv_compare_side *second, struct hv_str *out)
{
    bool cost = o->minimize == HV_MIN_COST;
    const char *key = cost ? "usd_per_Mtoken" : "tokens_per_s";
    double own = figure(first->simulated, key), other = figure(second->simulated, key);
    char x[HV_FMT_CAP], y[HV_FMT_CAP], by[HV_FMT_CAP];
    if (!(own > 0) || !(other > 0)) {
        return;
    }
    (void)hv_fmt_fixed(x, sizeof x, own, cost ? 3 : 0);
    (void)hv_fmt_fixed(y, sizeof y, other, cost ? 3 : 0);
    hv_text_addf(out, "%s ranks first of the serving plans: %s %s, against %s of %s (%s %s).",
                 first->strategy, x, cost ? "USD per million tokens" : "tokens/s", y,
                 second->strategy,
                 hv_fmt_percent(by, sizeof by, cost ? 1 - own / other : own / other - 1),
                 cost ? "less" : "more");
    hv_text_addf(out, " It has %zu stages (%s %zu)",
                 json_array_size(json_object_get(first->simulated, "stages")), second->strategy,
                 json_array_size(json_object_get(second->simulated, "stages")));
    add_pair(first, second, "requests_in_flight", "requests in flight", out);
    add_pair(first, second, "first_token_s", "to the first token", out);
    add_pair(first, second, "next_token_s", "to the next", out);
    add_pair(first, second, "devices_used", "devices", out);
    hv_str_adds(out, ".");
}
