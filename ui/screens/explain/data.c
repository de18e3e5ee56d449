/** Data of the plan shown: updated from the session, and freed. */
#include "ui/screens/explain/explain_int.h"

static bool is_current(const struct hv_explain_data *d, const struct hv_session *s,
                       const struct hv_row *row)
{
    for (int i = 0; i < HV_DOC_STRATEGIES; i++) {
        if (d->generation[i] != hv_session_generation(s, (enum hv_doc)i)) {
            return false;
        }
    }
    return row != NULL && d->row == row->id && d->plan == row->plan;
}

bool hv_explain_sync(struct hv_explain_data *d, struct hv_session *s)
{
    const struct hv_row *row = hv_ui_plan_row(s);
    bool current = is_current(d, s, row);
    d->facts = (struct hv_plan_facts){.row = row};
    if (row != NULL && row->plan != NULL) {
        d->facts = hv_plan_facts(s, row);
    }
    if (current) {
        return false;
    }
    hv_levers_free(&d->levers);
    d->row = row != NULL ? row->id : 0;
    d->plan = row != NULL ? row->plan : NULL;
    for (int i = 0; i < HV_DOC_STRATEGIES; i++) {
        d->generation[i] = hv_session_generation(s, (enum hv_doc)i);
    }
    d->tries.n = d->n_done = 0;
    d->share.ok = d->loads.done = d->loads.ok = false;
    d->share.done = d->facts.verdict == NULL;
    d->err = (struct hv_err){0};
    if (d->facts.verdict == NULL) {
        if (row != NULL && row->plan != NULL) {
            (void)hv_session_verdict(s, row->id, false, &d->err);
        }
        return true;
    }
    d->base = hv_figures_of(d->facts.verdict);
    if (hv_levers_read(s, row->id, &d->levers, &d->err) == HV_OK) {
        hv_explain_plan_tries(d);
    }
    return true;
}

void hv_explain_free(struct hv_explain_data *d)
{
    hv_levers_free(&d->levers);
    hv_arena_free(&d->arena);
    hv_arena_free(&d->share.arena);
    hv_arena_free(&d->loads.arena);
    hv_vec_free(&d->tries);
    hv_vec_free(&d->rows);
    hv_vec_free(&d->open);
}
