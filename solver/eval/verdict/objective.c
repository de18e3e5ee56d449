/** Objective figures of a judged plan. */
#include "solver/eval/verdict/objective.h"

#include "solver/base/units.h"

#include <math.h>

bool hv_eval_has_figure(const struct hv_objective *o, const struct hv_metrics *m)
{
    return o->minimize == HV_MIN_COST     ? hv_known(m->usd_per_mtoken)
           : o->minimize == HV_MIN_ENERGY ? hv_known(m->energy_j)
                                          : hv_known(m->iteration_s);
}

double hv_eval_figure(const struct hv_objective *o, const struct hv_metrics *m)
{
    bool cost = o->minimize == HV_MIN_COST && hv_known(m->usd_per_mtoken);
    bool energy = o->minimize == HV_MIN_ENERGY && hv_known(m->energy_j);
    return cost ? m->usd_per_mtoken : energy ? m->energy_j : m->iteration_s;
}

bool hv_eval_within(const struct hv_objective *o, const struct hv_metrics *m)
{
    bool dear = hv_known(o->max_usd_per_h) && !(m->usd_per_h <= o->max_usd_per_h);
    bool late = hv_known(o->deadline_s) && !(m->iteration_s <= o->deadline_s);
    return !dear && !late;
}

/** Excess over the limits: the larger of price and time as a multiple of its limit, at least 1;
 * HUGE_VAL where the price is limited but unknown. */
static double excess(const struct hv_objective *o, const struct hv_metrics *m)
{
    double most = 1;
    if (hv_known(o->max_usd_per_h)) {
        most = fmax(most, hv_known(m->usd_per_h) ? m->usd_per_h / o->max_usd_per_h : HUGE_VAL);
    }
    if (hv_known(o->deadline_s)) {
        most = fmax(most, m->iteration_s / o->deadline_s);
    }
    return most;
}

double hv_eval_worth(const struct hv_objective *o, const struct hv_metrics *m)
{
    if (!hv_eval_within(o, m)) {
        return HV_EVAL_OVER * excess(o, m);
    }
    return hv_eval_has_figure(o, m) ? hv_eval_figure(o, m) : HV_EVAL_NO_FIGURE * m->iteration_s;
}

const char *hv_eval_figure_key(const struct hv_objective *o)
{
    return o->minimize == HV_MIN_COST     ? "usd_per_Mtoken"
           : o->minimize == HV_MIN_ENERGY ? "energy_J"
                                          : "iteration_s";
}
