/** The Gantt screen while a thread makes the timeline: its progress and how to stop it. The session
 * owns the thread. */
#include "ui/screens/gantt/gantt_int.h"

#include "solver/base/units.h"

/** The row with a pending timeline, and the state of that timeline. */
static const struct hv_row *waiting(const struct hv_ui *ui, enum hv_drawing *state, double *frac)
{
    const struct hv_row *row = hv_gantt_row(ui);
    *state = row != NULL ? hv_session_drawing(ui->session, row->id, frac) : HV_DRAWING_NONE;
    return *state != HV_DRAWING_NONE ? row : NULL;
}

/** "16 stages x 32,768 micro-batches" of the largest pipeline. */
static void size_text(const struct hv_plan *p, struct hv_str *out)
{
    const struct hv_replica *most = NULL;
    double n = 0;
    for (size_t i = 0; p != NULL && i < p->n_replicas; i++) {
        double m = (double)p->replicas[i].n_stages * (double)p->replicas[i].micro_batches;
        if (m > n) {
            n = m;
            most = &p->replicas[i];
        }
    }
    if (most != NULL) {
        char count[HV_FMT_CAP];
        hv_str_addf(out, "%s: %zu stages, ", p->schedule.name, most->n_stages);
        hv_str_addf(out, "%s micro-batches",
                    hv_fmt_count(count, sizeof count, (double)most->micro_batches));
    }
}

/** True for a plan that was not simulated because of a violation. */
static bool not_simulated(const struct hv_ui *ui, const struct hv_row *row)
{
    const struct hv_verdict *v = hv_session_verdict(ui->session, row->id, false, NULL);
    return v != NULL && v->findings.n > 0 && !hv_known(v->metrics.iteration_s);
}

const enum hv_action *hv_gantt_wait_keybar(const struct hv_ui *ui)
{
    static const enum hv_action runs[] = {HV_ACT_STOP, HV_ACT_GANTT_PLAN_NEXT,
                                          HV_ACT_GANTT_PLAN_PREV, HV_ACT_NONE};
    static const enum hv_action stopped[] = {HV_ACT_RELOAD, HV_ACT_GANTT_PLAN_NEXT,
                                             HV_ACT_GANTT_PLAN_PREV, HV_ACT_NONE};
    static const enum hv_action other[] = {
        HV_ACT_SCREEN_3,        HV_ACT_SCREEN_4, HV_ACT_GANTT_PLAN_PREV,
        HV_ACT_GANTT_PLAN_NEXT, HV_ACT_UNDO,     HV_ACT_NONE};
    enum hv_drawing state;
    const struct hv_row *row = waiting(ui, &state, NULL);
    if (row == NULL) {
        row = hv_gantt_row(ui);
        bool misfit = row != NULL && row->plan != NULL && not_simulated(ui, row);
        return misfit ? other : hv_ui_no_plan_keybar(row);
    }
    return state == HV_DRAWING_RUNS ? runs : stopped;
}

bool hv_gantt_wait_draw(const struct hv_ui *ui, struct hv_grid *g, struct hv_rect body)
{
    enum hv_drawing state;
    double frac = 0;
    const struct hv_row *row = waiting(ui, &state, &frac);
    struct hv_str text = {0};
    if (row == NULL) {
        return false;
    }
    bool runs = state == HV_DRAWING_RUNS;
    struct hv_rect line = {body.x + 1, body.y + 1, body.w - 2, 1};
    hv_str_addf(&text, "%s %s", row->name,
                runs ? "is being drawn" : "is not drawn, because you stopped it");
    hv_grid_put_field(g, line, HV_LEFT, hv_str_cstr(&text), HV_STYLE_TITLE);
    hv_str_clear(&text);
    size_text(hv_session_plan(ui->session, row->id, NULL), &text);
    line.y += 1;
    hv_grid_put_field(g, line, HV_LEFT, hv_str_cstr(&text), HV_STYLE_DIM);
    line.y += 2;
    if (runs && line.y < body.y + body.h) {
        line.w = line.w > 60 ? 60 : line.w;
        hv_progress_draw(g, line, frac, HV_STYLE_BAR);
        line.y += 2;
    }
    if (line.y < body.y + body.h) {
        (void)hv_grid_put(g, line.x, line.y, body.w - 2,
                          runs ? "Esc or x stops; you can use all other screens meanwhile"
                               : "r or Enter draws it; < and > select other plans",
                          HV_STYLE_TEXT);
    }
    hv_str_free(&text);
    return true;
}

bool hv_gantt_wait_action(struct hv_ui *ui, struct hv_app *app, enum hv_action a)
{
    enum hv_drawing state;
    const struct hv_row *row = waiting(ui, &state, NULL);
    if (row == NULL) {
        return false;
    }
    if (a == HV_ACT_GANTT_PLAN_PREV || a == HV_ACT_GANTT_PLAN_NEXT) {
        hv_ui_switch_plan(ui, app, row->id, a == HV_ACT_GANTT_PLAN_NEXT ? 1 : -1);
        return true;
    }
    if (state == HV_DRAWING_RUNS && (a == HV_ACT_CANCEL || a == HV_ACT_STOP)) {
        (void)hv_session_draw_stop(ui->session, row->id);
        return true;
    }
    if (state == HV_DRAWING_STOPPED && (a == HV_ACT_GANTT_EXPLAIN || a == HV_ACT_RELOAD)) {
        hv_session_draw_again(ui->session, row->id);
        return true;
    }
    return false;
}
