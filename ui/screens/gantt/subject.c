/** Content of the Gantt screen: a row's timeline, a trial of it with the plan as ghost, and the
 * second plan in the split view. */
#include <math.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/gantt/gantt_int.h"
#include "ui/view/gantt/timeline.h"

static struct hv_gantt_source source_of(const struct hv_gantt_screen *st,
                                        const struct hv_timeline *t)
{
    return hv_gantt_tracks_source(&t->tracks[st->tracks]);
}

size_t hv_gantt_lane_of_row(const struct hv_timeline_tracks *tracks, size_t row)
{
    size_t i = 0;
    while (i + 1 < tracks->n && tracks->items[i].row != row) {
        i++;
    }
    return i;
}

/** Moves lane and cursor to the place selected by another screen. */
static void go_to_place(const struct hv_gantt_screen *st, const struct hv_ui_place *at,
                        const struct hv_timeline *t, const struct hv_gantt_source *src,
                        struct hv_gantt_state *view)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        if (t->rows[i].replica == at->replica && t->rows[i].stage == at->stage) {
            view->lane = hv_gantt_lane_of_row(&t->tracks[st->tracks], i);
            hv_gantt_goto(view, src, at->at_s);
            return;
        }
    }
}

/** A row's verdict with a timeline, or NULL. */
static const struct hv_verdict *drawn(const struct hv_ui *ui, const struct hv_row *row,
                                      struct hv_err *err)
{
    const struct hv_verdict *v = row != NULL && row->plan != NULL
                                     ? hv_session_verdict(ui->session, row->id, true, err)
                                     : NULL;
    return v != NULL && v->timeline != NULL && v->timeline->n_rows > 0 ? v : NULL;
}

/** The trial takes the place of the plan, which becomes its ghost. */
static void take_trial(const struct hv_gantt_screen *st, struct hv_gantt_subject *s)
{
    s->has_ghost = true;
    s->before = s->facts.verdict;
    s->ghost = s->src;
    s->facts.verdict = hv_trial_verdict(st->attempt.trial);
    s->facts.plan = hv_trial_plan(st->attempt.trial);
    s->src = source_of(st, s->facts.verdict->timeline);
    s->tracks = &s->facts.verdict->timeline->tracks[st->tracks];
    if (st->tracks != 0 && s->ghost.n_lanes != s->src.n_lanes) {
        s->ghost.n_lanes = 0; /* other lines: nothing to lay one over the other */
    }
    s->src.end_s = fmax(s->src.end_s, s->ghost.end_s); /* one axis for both */
}

static void fit_window(const struct hv_gantt_screen *st, const struct hv_gantt_subject *s,
                       struct hv_gantt_state *view)
{
    *view = st->view;
    if (st->row == 0) {
        hv_gantt_init(view, &s->src);
    } else if (st->row != s->facts.row->id || st->end_s < s->src.end_s ||
               st->end_s > s->src.end_s) {
        bool whole = view->t0_s <= 0 && view->t1_s >= st->end_s;
        view->mark_s = HV_UNKNOWN;
        if (whole) {
            hv_gantt_fit(view, &s->src);
        } else {
            hv_gantt_zoom_to(view, &s->src, view->t0_s, view->t1_s);
        }
    }
}

bool hv_gantt_subject_get(const struct hv_gantt_screen *st, const struct hv_ui *ui,
                          struct hv_gantt_state *view, struct hv_gantt_subject *out,
                          struct hv_err *err)
{
    const struct hv_row *row = hv_gantt_row(ui);
    *out = (struct hv_gantt_subject){.facts = {.row = row}, .view = view};
    const struct hv_verdict *v = drawn(ui, row, err);
    if (v == NULL) {
        return false;
    }
    out->facts.verdict = v;
    out->facts.plan = hv_session_plan(ui->session, row->id, NULL);
    out->src = source_of(st, v->timeline);
    out->tracks = &v->timeline->tracks[st->tracks];
    if (hv_gantt_try_is_on(&st->attempt, ui->session, row)) {
        take_trial(st, out);
    }
    struct hv_gantt_subject lower;
    if (st->split && hv_gantt_lower_get(st, ui, &lower)) {
        out->src.end_s = fmax(out->src.end_s, lower.src.end_s);
    }
    fit_window(st, out, view);
    if (ui->place.row == row->id) {
        go_to_place(st, &ui->place, v->timeline, &out->src, view);
    }
    hv_gantt_lane_move(view, &out->src, 0);
    return true;
}

uint32_t hv_gantt_other(const struct hv_gantt_screen *st, const struct hv_ui *ui, int step)
{
    size_t n = 0, at = 0;
    const struct hv_row *const *rows = hv_session_rows(ui->session, &n);
    const struct hv_row *shown = hv_gantt_row(ui), *now = hv_session_row(ui->session, st->other);
    const struct hv_row *from = now != NULL ? now : shown;
    if (now != NULL && now != shown && step == 0) {
        return now->id;
    }
    while (at < n && rows[at] != from) {
        at++;
    }
    for (size_t k = 1; at < n && k <= n; k++) {
        const struct hv_row *row = rows[step >= 0 ? (at + k) % n : (at + n - k) % n];
        if (row != shown && drawn(ui, row, NULL) != NULL) {
            return row->id;
        }
    }
    return 0;
}

bool hv_gantt_lower_get(const struct hv_gantt_screen *st, const struct hv_ui *ui,
                        struct hv_gantt_subject *out)
{
    const struct hv_row *row = hv_session_row(ui->session, hv_gantt_other(st, ui, 0));
    const struct hv_verdict *v = drawn(ui, row, NULL);
    *out = (struct hv_gantt_subject){.facts = {.row = row, .verdict = v}};
    if (v != NULL) {
        out->src = source_of(st, v->timeline);
        out->tracks = &v->timeline->tracks[st->tracks];
    }
    return v != NULL;
}
