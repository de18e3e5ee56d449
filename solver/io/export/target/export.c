/* The front of the exports: the check against the table, then the exporter. */
#include "solver/io/export/target/export.h"

#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"

static hv__exporter *const exporters[HV_TARGET_N] = {
    [HV_TARGET_MEGATRON] = hv__export_megatron,    [HV_TARGET_BRIDGE] = hv__export_bridge,
    [HV_TARGET_FLAGSCALE] = hv__export_flagscale,  [HV_TARGET_TORCHTITAN] = hv__export_torchtitan,
    [HV_TARGET_DEEPSPEED] = hv__export_deepspeed,  [HV_TARGET_ACCELERATE] = hv__export_accelerate,
    [HV_TARGET_PIPELINING_CSV] = hv__export_order, [HV_TARGET_SLURM] = hv__export_slurm,
    [HV_TARGET_HOSTFILE] = hv__export_hostfile,    [HV_TARGET_REPORT] = hv__export_report,
    [HV_TARGET_CSV] = hv__export_stages,           [HV_TARGET_DOT] = hv__export_dot,
};

/** Refuses a plan that the target cannot say. */
static enum hv_status check_said(const struct hv_export_source *s, enum hv_target_id t,
                                 struct hv_arena *arena, struct hv_err *err)
{
    struct hv_unsaid *found = NULL;
    size_t n = hv_plan_unsaid(s->plan, t, arena, &found);
    if (n == 0) {
        return HV_OK;
    }
    struct hv_str text = {0}, clean = {0};
    enum { SHOWN = 4 };
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        hv_str_adds(&text, i > 0 ? "; " : "");
        hv_unsaid_text(s->plan, &found[i], &text);
    }
    if (n > SHOWN) {
        hv_str_addf(&text, "; and %zu more", n - SHOWN);
    }
    hv_text_clean(&clean, hv_str_cstr(&text), text.n);
    enum hv_status st = hv_err_set(err, HV_ENO, "%s cannot say this plan: %.800s",
                                   hv_target_row(t)->title, hv_str_cstr(&clean));
    hv_str_free(&text);
    hv_str_free(&clean);
    return st;
}

/** Refuses a plan that cannot run. Limits of the objective do not keep it from running. */
static enum hv_status check_rules(const struct hv_export_source *s, enum hv_target_id t,
                                  struct hv_err *err)
{
    for (size_t i = 0; t != HV_TARGET_REPORT && i < s->verdict->findings.n; i++) {
        const struct hv_violation *v = &s->verdict->findings.items[i];
        if (!hv_violation_is_limit(v->code)) {
            return hv_err_set(err, HV_ENO, "the plan cannot run: %s: %s", v->where, v->text);
        }
    }
    return HV_OK;
}

enum hv_status hv_export_plan(const struct hv_export_source *s, enum hv_target_id t,
                              struct hv_export *out, struct hv_err *err)
{
    *out = (struct hv_export){0};
    struct hv__exporting x = {.s = s, .out = out, .err = err};
    if (exporters[t] == NULL) {
        return hv_err_set(err, HV_EUSAGE, "target %s is a limit of searches and writes no files",
                          hv_target_name(t));
    }
    enum hv_status st = check_said(s, t, &out->arena, err);
    st = st == HV_OK ? check_rules(s, t, err) : st;
    if (st == HV_OK && s->plan->n_replicas > 0) {
        st = hv__export_find_ranks(&x);
    }
    st = st == HV_OK ? exporters[t](&x) : st;
    if (st != HV_OK) {
        hv_export_free(out);
    }
    return st;
}
