/** Running and stopping strategies and whole headings, and the plan that is selected for the other
 * screens. */
#include <stdlib.h>

#include "ui/screens/strategies/strategies_int.h"

static bool is_active(const struct hv_strategy_facts *f)
{
    return f->row != NULL && (f->row->state == HV_ROW_QUEUED || f->row->state == HV_ROW_RUNNING);
}

static void run_one(struct hv_app *app, struct hv_session *s, const struct hv_plugin *p,
                    bool select)
{
    struct hv_err err = {0};
    uint32_t id = 0;
    if (p->error != NULL) {
        hv_app_message(app, HV_MSG_ERROR, "%s", p->error);
    } else if (hv_session_run(s, p->id, NULL, &id, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        if (select) {
            hv_session_select(s, id);
        }
        hv_app_message(app, HV_MSG_INFO, "%s %s", p->id,
                       hv_session_n_queued(s) > 0 ? "queued" : "runs");
    }
}

/** Queues the strategies under a heading that pass the filter, plan and do not run yet. */
static void run_heading(const struct hv_strategies *st, struct hv_app *app,
                        const struct hv_strategies_data *d, enum hv_kind kind)
{
    size_t *at = hv_xcalloc(d->n + 1, sizeof *at), n = hv_strategies_under(st, d, kind, at);
    const struct hv_plugin **list = hv_xcalloc(n + 1, sizeof *list);
    struct hv_err err = {0};
    size_t due = 0, active = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_plugin *p = &d->plugins[at[i]];
        bool runs = is_active(&d->facts[at[i]]);
        active += runs;
        if (!runs && p->error == NULL && p->has[HV_PLUGIN_PLAN]) {
            list[due++] = p;
        }
    }
    size_t queued = hv_session_run_list(d->s, list, due, &err);
    free(list);
    free(at);
    if (queued == 0 && err.status != HV_OK) {
        hv_ui_error(app, &err);
    } else if (queued == 0) {
        hv_app_message(app, HV_MSG_INFO, "%s: %s", hv_strategies_heading(kind),
                       active > 0 ? "all run already" : "there is nothing to run");
    } else {
        hv_app_message(app, HV_MSG_INFO, "%s: %zu queued", hv_strategies_heading(kind), queued);
    }
}

void hv_strategies_run(const struct hv_strategies *st, struct hv_app *app,
                       const struct hv_strategies_data *d, const struct hv_strategies_line *line,
                       bool select)
{
    if (line->plugin == HV_NO_STRATEGY) {
        run_heading(st, app, d, line->kind);
    } else {
        run_one(app, d->s, &d->plugins[line->plugin], select);
    }
}

bool hv_strategies_stop(const struct hv_strategies *st, struct hv_app *app,
                        const struct hv_strategies_data *d, const struct hv_strategies_line *line)
{
    size_t *at = hv_xcalloc(d->n + 1, sizeof *at), n = 1, stopped = 0;
    at[0] = line->plugin;
    if (line->plugin == HV_NO_STRATEGY) {
        n = hv_strategies_under(st, d, line->kind, at);
    }
    for (size_t i = n; i-- > 0;) { /* backwards: no queued run starts */
        stopped += is_active(&d->facts[at[i]]) && hv_session_cancel(d->s, d->facts[at[i]].row->id);
    }
    free(at);
    if (stopped > 0 && line->plugin != HV_NO_STRATEGY) {
        hv_app_message(app, HV_MSG_INFO, "%s cancelled; the best plan so far is kept",
                       d->plugins[line->plugin].id);
    } else if (stopped > 0) {
        hv_app_message(app, HV_MSG_INFO, "%s: %zu cancelled; their best plans are kept",
                       hv_strategies_heading(line->kind), stopped);
    }
    return stopped > 0;
}

void hv_strategies_follow(struct hv_strategies *st, const struct hv_strategies_data *d,
                          const struct hv_strategies_line *line)
{
    size_t at = line == NULL                     ? HV_NO_STRATEGY
                : line->plugin == HV_NO_STRATEGY ? d->kinds[line->kind].best
                                                 : line->plugin;
    const struct hv_row *row = at != HV_NO_STRATEGY ? d->facts[at].row : NULL;
    if (row != NULL && row->plan != NULL && row->id != st->followed) {
        st->followed = row->id;
        hv_session_select(d->s, row->id);
    }
}
