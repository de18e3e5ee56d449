/** The whole tree of a plan: what to do, causes, stages, experts, bound, failures, in this order.
 */
#include "solver/base/units.h"
#include "ui/screens/explain/explain_int.h"

static void add_bound(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_verdict *v = d->facts.verdict;
    if (!hv_known(v->metrics.bound_s)) {
        return;
    }
    const char *bound = hv_fmt_seconds(a, sizeof a, v->metrics.bound_s);
    const char *like = v->bound_some ? " like this" : "";
    const char *text =
        hv_known(v->metrics.gap_frac)
            ? hv_arena_printf(&d->arena, "No plan%s can be faster than %s (this one is %s above)",
                              like, bound, hv_fmt_percent(b, sizeof b, v->metrics.gap_frac))
            : hv_arena_printf(&d->arena, "No plan%s can be faster than %s", like, bound);
    struct hv_explain_row *r = hv_explain_add(d, HV_ID_BOUND, 0, text);
    r->detail = v->bound_why;
    r->style = HV_STYLE_TITLE;
}

/** The runtime for which the plan was judged, with what it does by itself. */
static void add_runtime(struct hv_explain_data *d)
{
    enum hv_runtime runtime = d->facts.verdict->runtime;
    const struct hv_runtime_row *r = hv_runtime_row(runtime);
    if (runtime == HV_RUNTIME_HETVIZ) {
        return;
    }
    struct hv_explain_row *row =
        hv_explain_add(d, HV_ID_RUNTIME, 0,
                       hv_arena_printf(&d->arena, "Judged for the runtime %s (%s)",
                                       hv_runtime_name(runtime), r->title));
    row->detail = hv_arena_printf(&d->arena, "%s; %s", hv_runtime_sends_text(r->sends),
                                  hv_runtime_reduction_text(r->reduction));
    row->style = HV_STYLE_TITLE;
}

static void add_approximated(struct hv_explain_data *d)
{
    const struct hv_verdict *v = d->facts.verdict;
    if (v->n_approximated == 0 ||
        !hv_explain_heading(d, HV_ID_APPROXIMATED, 0,
                            hv_arena_printf(&d->arena, "Properties that are only approximated: %zu",
                                            v->n_approximated))) {
        return;
    }
    for (size_t i = 0; i < v->n_approximated; i++) {
        hv_explain_add(d, HV_ID_APPROXIMATED + 1000000 + i, 1, v->approximated[i])->style =
            HV_STYLE_WARNING;
    }
}

void hv_explain_build(struct hv_explain_data *d, struct hv_session *s)
{
    hv_arena_free(&d->arena);
    d->rows.n = 0;
    if (d->facts.verdict == NULL || d->facts.plan == NULL) {
        return;
    }
    bool broken = d->base.n_violations > 0; /* why it does not fit comes first then */
    if (broken) {
        hv_explain_causes(d, s);
    }
    hv_explain_actions(d, s);
    if (!broken) {
        hv_explain_causes(d, s);
    }
    hv_explain_share_rows(d);
    hv_explain_stages(d, s);
    hv_explain_experts(d, s);
    add_bound(d);
    add_runtime(d);
    hv_explain_failures(d);
    add_approximated(d);
    hv_explain_wrap(d);
}
