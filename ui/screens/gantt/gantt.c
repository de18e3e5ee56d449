/** Screen 5, Gantt: the timeline of one plan. Window arithmetic and painting are in ui/view. */
#include "ui/screens/gantt/gantt.h"
#include "ui/screens/gantt/gantt_int.h"
#include "ui/view/gantt/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/view/grid/layout.h"

/* Rows of axis, memory, critical path and minimap; rows that the whole panel needs. */
enum { AROUND_LANES = 11, PANEL_H = 9 };
/* Rows that an operation's facts need with the frame, from a body of this height on. */
enum { PANEL_LEAST = 7, FULL_H = 20 };

struct places {
    struct hv_rect chart, lower, panel;
};

static struct places place(const struct hv_gantt_screen *st, struct hv_rect body, size_t n_lanes)
{
    struct places p = {.chart = body};
    if (st->pick.open) {
        int h = hv_gantt_pick_rows(&st->pick, body.h);
        p.chart.h -= h;
        p.panel = (struct hv_rect){body.x, body.y + p.chart.h, body.w, h};
        return p;
    }
    if (hv_layout_stacked(body)) {
        if (st->flip) {
            p = (struct places){.panel = body};
        }
        return p;
    }
    if (st->flip) {
        return p;
    }
    /* lanes as tall as they can be, with memory and the rest around them; what is left is words */
    int n = n_lanes < 100 ? (int)n_lanes : 100, tall = 3;
    while (tall > 1 && AROUND_LANES + tall * n > body.h - PANEL_H) {
        tall--;
    }
    int h = body.h - AROUND_LANES - tall * n;
    h = h > body.h * 2 / 3 ? body.h * 2 / 3 : h;
    int least = body.h >= FULL_H ? PANEL_LEAST : PANEL_LEAST - 1;
    h = h < least ? least : h;
    p.chart.h -= h;
    p.panel = (struct hv_rect){body.x, body.y + p.chart.h, body.w, h};
    return p;
}

/** As place, with the chart's lower half for the second plan. */
static struct places place_all(const struct hv_gantt_screen *st, struct hv_rect body,
                               size_t n_lanes)
{
    struct places p = place(st, body, st->split ? 2 * n_lanes : n_lanes);
    if (st->split && p.chart.h >= 6) {
        p.lower = p.chart;
        p.lower.h = p.chart.h / 2;
        p.chart.h -= p.lower.h;
        p.lower.y += p.chart.h;
    }
    return p;
}

/** The second plan, on the window and with the labels of the first. */
static void draw_lower(const struct hv_gantt_screen *st, const struct hv_ui *ui,
                       struct hv_gantt_state view, struct hv_grid *g, struct hv_rect r)
{
    struct hv_gantt_subject s;
    if (!hv_gantt_lower_get(st, ui, &s)) {
        (void)hv_grid_put(g, r.x + 1, r.y, r.w - 1, "no second plan has a timeline", HV_STYLE_DIM);
        return;
    }
    char title[160], t[HV_FMT_CAP];
    (void)snprintf(title, sizeof title, "%s  step %s", s.facts.row->name,
                   hv_fmt_seconds(t, sizeof t, s.facts.verdict->metrics.iteration_s));
    hv_grid_hline(g, r.x, r.y, r.w, HV_STYLE_FRAME);
    (void)hv_grid_put_user(g, r.x + 1, r.y, r.w - 2, title, HV_STYLE_TITLE);
    view.show_memory = view.show_minimap = false;
    view.ghost = NULL;
    view.n_flows = 0;
    view.lane = view.lane < s.src.n_lanes ? view.lane : s.src.n_lanes - 1;
    hv_gantt_draw(&view, &s.src, g, (struct hv_rect){r.x, r.y + 1, r.w, r.h - 1});
}

/** Gives the labels of both charts the same width, to align their axes. */
static void align_labels(const struct hv_gantt_screen *st, const struct hv_ui *ui,
                         const struct hv_gantt_subject *s, int w, struct hv_gantt_state *view)
{
    struct hv_gantt_subject lower;
    view->label_w = 0;
    if (st->split && hv_gantt_lower_get(st, ui, &lower)) {
        int a = hv_gantt_label_width(&s->src, w), b = hv_gantt_label_width(&lower.src, w);
        view->label_w = a > b ? a : b;
    }
}

static bool shows_experts(const struct hv_gantt_screen *st)
{
    return st->experts != NULL && st->experts->on;
}

/** An arrow in the lane of a row at a time. */
static void add_flow(const struct hv_gantt_subject *s, size_t row, double at_s, bool up,
                     struct hv_gantt_state *view)
{
    view->flows[view->n_flows++] =
        (struct hv_gantt_flow){hv_gantt_lane_of_row(s->tracks, row), at_s, up};
}

/** Arrows of the operation at the cursor: where its input left and arrived, and where its result
 * is needed; each points the way that it goes. */
static void add_flows(const struct hv_gantt_subject *s, struct hv_gantt_state *view)
{
    const struct hv_timeline *t = s->facts.verdict->timeline;
    const struct hv_span *span = hv_gantt_compute_at_cursor(s);
    view->n_flows = 0;
    if (span == NULL) {
        return;
    }
    size_t row = s->tracks->items[s->view->lane].row;
    const struct hv_gantt_waits from = hv_gantt_waits_for(t, row, span);
    const struct hv_gantt_waits to = hv_gantt_lets_start(t, row, span);
    if (from.other.span != NULL) {
        bool up = from.other.row > row;
        add_flow(s, from.other.row, from.other.span->end_s, up, view);
        add_flow(s, row, span->start_s, up, view);
    }
    if (to.other.span != NULL) {
        add_flow(s, to.other.row, to.other.span->start_s, to.other.row < row, view);
    }
}

static void gantt_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_gantt_screen *st = state;
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject subject;
    struct hv_err err = {0};
    if (!hv_gantt_subject_get(st, model, &view, &subject, &err)) {
        if (!hv_gantt_wait_draw(model, ctx->grid, ctx->body)) {
            const struct hv_row *row = subject.facts.row;
            if (row != NULL &&
                row->plan != NULL) { /* the findings of a verdict without a timeline */
                subject.facts = hv_plan_facts(hv_ui_session(model), row);
            }
            hv_ui_no_plan(&subject.facts, err.text, ctx->grid, ctx->body);
        }
        return;
    }
    if (shows_experts(st)) {
        hv_gantt_experts_draw(st->experts, hv_ui_session(model), &subject, ctx->grid, ctx->body);
        return;
    }
    struct places p = place_all(st, ctx->body, subject.src.n_lanes);
    align_labels(st, model, &subject, p.chart.w, &view);
    add_flows(&subject, &view);
    view.ghost = subject.has_ghost ? &subject.ghost : NULL;
    if (p.chart.h > 0) {
        hv_gantt_draw(&view, &subject.src, ctx->grid, p.chart);
    }
    if (p.lower.h > 0) {
        draw_lower(st, model, view, ctx->grid, p.lower);
    }
    if (p.panel.h > 0 && hv_gantt_pick_is_open(st, model)) {
        hv_gantt_pick_draw(st, ctx->grid, p.panel);
    } else if (p.panel.h > 0) {
        hv_gantt_panel_draw(&subject, ctx->grid, p.panel);
    }
}

static void gantt_status(const void *state, const void *model, struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject s;
    struct hv_err err = {0};
    if (!hv_gantt_subject_get(state, model, &view, &s, &err)) {
        return;
    }
    const struct hv_gantt_screen *st = state;
    if (shows_experts(st)) {
        hv_gantt_experts_status(st->experts, s.facts.row->name, out);
        return;
    }
    if (s.has_ghost) {
        hv_gantt_try_status(state, &s, out);
        return;
    }
    const struct hv_metrics *m = &s.facts.verdict->metrics;
    hv_str_addf(out, "%s%s  ", s.facts.verdict->findings.n > 0 ? "! " : "", s.facts.row->name);
    if (s.facts.plan != NULL) {
        hv_str_addf(out, "%s ", s.facts.plan->schedule.name);
        hv_plan_text(&s.facts, HV_PLAN_DEGREES, out);
    }
    hv_str_addf(out, "  step %s  bubble %s | t=%s  ", hv_fmt_seconds(a, sizeof a, m->iteration_s),
                hv_fmt_percent(b, sizeof b, m->bubble_frac),
                hv_fmt_seconds(c, sizeof c, view.cursor_s));
    hv_gantt_cursor_text(&s, out);
    if (view.t1_s - view.t0_s < s.src.end_s * 0.999) {
        hv_str_addf(out, " | zoom %.3gx", s.src.end_s / (view.t1_s - view.t0_s));
    }
}

/* ---- questions ---- */

/** Stores the changed window; clears the place selected by another screen. */
static void keep(struct hv_gantt_screen *st, struct hv_ui *ui, const struct hv_gantt_subject *s)
{
    ui->place.row = 0;
    st->view = *s->view;
    st->view.ghost = NULL;
    st->view.n_flows = 0;
    st->row = s->facts.row->id;
    st->end_s = s->src.end_s;
}

static unsigned answer_goto(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_gantt_screen *st = ctx;
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject s;
    char *end = NULL;
    double t = strtod(text, &end);
    while (*end == ' ') {
        end++;
    }
    double unit = strcmp(end, "ms") == 0                  ? HV_MS
                  : strcmp(end, "us") == 0                ? HV_US
                  : *end == '\0' || strcmp(end, "s") == 0 ? 1
                                                          : HV_UNKNOWN;
    if (!hv_gantt_subject_get(st, hv_app_model(app), &view, &s, NULL)) {
        return HV_APP_REDRAW;
    }
    unit = strcmp(end, "%") == 0 ? s.src.end_s / 100 : unit;
    if (end == text || !hv_known(t * unit)) {
        hv_app_message(app, HV_MSG_ERROR, "expected a time such as 1.4s, 200ms or 50%%, found '%s'",
                       text);
        return HV_APP_REDRAW;
    }
    hv_gantt_goto(&view, &s.src, t * unit);
    keep(st, hv_app_model(app), &s);
    return HV_APP_REDRAW;
}

/* ---- actions ---- */

/** Moves of cursor, lanes and window; false when the action is none. */
static bool move(struct hv_gantt_state *v, const struct hv_gantt_source *src,
                 const struct hv_gantt_places *p, enum hv_action a)
{
    int page = p->n_shown > 1 ? (int)p->n_shown - 1 : 1;
    size_t lane = v->lane;
    switch ((int)a) {
    case HV_ACT_LEFT:
    case HV_ACT_RIGHT:
        hv_gantt_move(v, src, a == HV_ACT_LEFT ? -1 : 1, p->chart.w);
        return true;
    case HV_ACT_UP:
    case HV_ACT_DOWN:
        hv_gantt_lane_move(v, src, a == HV_ACT_UP ? -1 : 1);
        return true;
    case HV_ACT_PAGE_UP:
    case HV_ACT_PAGE_DOWN:
        hv_gantt_lane_move(v, src, a == HV_ACT_PAGE_UP ? -page : page);
        return true;
    case HV_ACT_HALF_UP:
    case HV_ACT_HALF_DOWN:
        hv_gantt_lane_move(v, src, a == HV_ACT_HALF_UP ? -(page / 2 + 1) : page / 2 + 1);
        return true;
    case HV_ACT_PANEL_NEXT:
        v->lane = lane + 1 < src->n_lanes ? lane + 1 : 0;
        return true;
    case HV_ACT_PANEL_PREV:
        v->lane = lane > 0 ? lane - 1 : src->n_lanes - 1;
        return true;
    case HV_ACT_TOP:
        hv_gantt_goto(v, src, 0);
        return true;
    case HV_ACT_BOTTOM:
        hv_gantt_goto(v, src, src->end_s);
        (void)hv_gantt_step(v, src, -1);
        return true;
    case HV_ACT_GANTT_PAN_LEFT:
    case HV_ACT_GANTT_PAN_RIGHT:
        hv_gantt_pan(v, src, a == HV_ACT_GANTT_PAN_LEFT ? -0.5 : 0.5);
        return true;
    default:
        return false;
    }
}

/** Zooms, switches and jumps; false when the action is none. */
static bool change(struct hv_gantt_state *v, const struct hv_gantt_source *src, struct hv_app *app,
                   enum hv_action a)
{
    bool found = true;
    switch ((int)a) {
    case HV_ACT_GANTT_ZOOM_IN:
    case HV_ACT_GANTT_ZOOM_OUT:
        hv_gantt_zoom(v, src, a == HV_ACT_GANTT_ZOOM_IN ? 1.5 : 1 / 1.5, v->cursor_s);
        break;
    case HV_ACT_GANTT_ZOOM_AREA:
        if (!hv_known(v->mark_s)) {
            hv_app_message(app, HV_MSG_INFO,
                           "Space marks one end of an area; then move and press z");
            break;
        }
        hv_gantt_zoom_to(v, src, v->mark_s, v->cursor_s);
        v->mark_s = HV_UNKNOWN;
        break;
    case HV_ACT_GANTT_FIT:
        hv_gantt_fit(v, src);
        break;
    case HV_ACT_GANTT_OP_PREV:
    case HV_ACT_GANTT_OP_NEXT:
        found = hv_gantt_step(v, src, a == HV_ACT_GANTT_OP_PREV ? -1 : 1);
        break;
    case HV_ACT_GANTT_MB_PREV:
    case HV_ACT_GANTT_MB_NEXT:
        found = hv_gantt_step_mb(v, src, a == HV_ACT_GANTT_MB_PREV ? -1 : 1);
        break;
    case HV_ACT_GANTT_CRITICAL:
        v->show_critical = !v->show_critical;
        break;
    case HV_ACT_GANTT_MEMORY:
        v->show_memory = !v->show_memory;
        break;
    case HV_ACT_GANTT_PIN:
        v->has_pin = !v->has_pin || v->pin_lane != v->lane;
        v->pin_lane = v->lane;
        break;
    case HV_ACT_MARK:
        v->mark_s = hv_known(v->mark_s) ? HV_UNKNOWN : v->cursor_s;
        break;
    default:
        return false;
    }
    if (!found) {
        hv_app_message(app, HV_MSG_INFO, "no more operations in this direction");
    }
    return true;
}

/** Switches separate lines for links, or for the dp ranks that differ, on or off. */
static void unfold(struct hv_gantt_screen *st, struct hv_app *app, const struct hv_gantt_subject *s,
                   unsigned what)
{
    const struct hv_timeline *t = s->facts.verdict->timeline;
    size_t lane = s->view->lane < s->tracks->n ? s->view->lane : 0;
    size_t row = s->tracks->items[lane].row;
    st->tracks ^= what;
    st->view.lane = hv_gantt_lane_of_row(&t->tracks[st->tracks], row);
    st->view.top_lane = 0;
    st->view.has_pin = false; /* the set of lines changed */
    if ((st->tracks & what) != 0 && t->tracks[st->tracks].n == t->tracks[st->tracks ^ what].n) {
        hv_app_message(
            app, HV_MSG_INFO,
            what == HV_TRACKS_LINKS
                ? "no communication: one stage and no reductions"
                : "all GPUs of a stage run the same operations: one lane shows them all");
    }
}

/** Goes to what the operation at the cursor waited for, or what waits for it. */
static void jump(struct hv_gantt_screen *st, struct hv_app *app, const struct hv_gantt_subject *s,
                 bool back)
{
    struct hv_gantt_state view = *s->view;
    struct hv_gantt_subject to = *s;
    const struct hv_timeline *t = s->facts.verdict->timeline;
    const struct hv_span *span = hv_gantt_compute_at_cursor(s);
    struct hv_gantt_waits w = {0};
    if (span != NULL) {
        size_t row = s->tracks->items[view.lane].row;
        w = back ? hv_gantt_waits_for(t, row, span) : hv_gantt_lets_start(t, row, span);
    }
    const struct hv_gantt_end *end = hv_gantt_first_end(&w);
    if (end == NULL) {
        hv_app_message(app, HV_MSG_INFO, "%s",
                       span == NULL ? "no operation is at the cursor"
                       : back       ? "it waited for nothing: it starts the iteration"
                                    : "nothing waits for it");
        return;
    }
    view.lane = hv_gantt_lane_of_row(s->tracks, end->row);
    hv_gantt_goto(&view, &s->src, end->span->start_s);
    to.view = &view;
    keep(st, hv_app_model(app), &to);
}

/** Prompts and actions on the whole screen; false for other actions. */
static bool other(struct hv_gantt_screen *st, struct hv_app *app, const struct hv_gantt_subject *s,
                  enum hv_action a)
{
    char path[256];
    switch ((int)a) {
    case HV_ACT_GANTT_CAUSE:
    case HV_ACT_GANTT_EFFECT:
        jump(st, app, s, a == HV_ACT_GANTT_CAUSE);
        return true;
    case HV_ACT_GANTT_GOTO:
        hv_app_ask(app, "go to time (1.4s, 200ms, 50%): ", "", answer_goto, st);
        return true;
    case HV_ACT_EXPORT:
        (void)snprintf(path, sizeof path, "%s.svg", s->facts.row->name);
        hv_app_ask(
            app, "write the window as .svg or .png, or everything as .json (trace) or .txt: ", path,
            hv_gantt_answer_export, st);
        return true;
    case HV_ACT_GANTT_EXPLAIN:
        st->flip = !st->flip;
        return true;
    case HV_ACT_GANTT_LINKS:
    case HV_ACT_GANTT_PARTS:
        unfold(st, app, s, a == HV_ACT_GANTT_LINKS ? HV_TRACKS_LINKS : HV_TRACKS_PARTS);
        return true;
    case HV_ACT_GANTT_EXPERTS:
        if (st->experts == NULL) {
            st->experts = hv_xcalloc(1, sizeof *st->experts);
        }
        (void)hv_gantt_experts_open(st, app, s);
        return true;
    case HV_ACT_GANTT_SPLIT:
        st->split = !st->split;
        if (st->split && hv_gantt_other(st, hv_app_model(app), 0) == 0) {
            hv_app_message(app, HV_MSG_INFO, "no second plan has a timeline");
            st->split = false;
        }
        return true;
    case HV_ACT_GANTT_OTHER:
        st->other = hv_gantt_other(st, hv_app_model(app), 1);
        st->split = st->other != 0;
        return true;
    case HV_ACT_GANTT_PLAN_PREV:
    case HV_ACT_GANTT_PLAN_NEXT:
        hv_ui_switch_plan(hv_app_model(app), app, s->facts.row->id,
                          a == HV_ACT_GANTT_PLAN_NEXT ? 1 : -1);
        return true;
    default:
        return false;
    }
}

static unsigned gantt_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_gantt_screen *st = state;
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject s;
    if (!hv_gantt_subject_get(st, hv_app_model(app), &view, &s, NULL)) {
        bool done = hv_gantt_wait_action(hv_app_model(app), app, a);
        return done ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
    }
    if (shows_experts(st) && hv_gantt_experts_action(st->experts, app, &s, a)) {
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    if (hv_gantt_pick_action(st, app, a) || hv_gantt_try_action(st, app, a)) {
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    struct places p = place_all(st, hv_app_body(app), s.src.n_lanes);
    align_labels(st, hv_app_model(app), &s, p.chart.w, &view);
    struct hv_gantt_places at = hv_gantt_layout(&view, &s.src, p.chart);
    if (a == HV_ACT_CANCEL && hv_known(view.mark_s)) {
        view.mark_s = HV_UNKNOWN;
    } else if (!move(&view, &s.src, &at, a) && !change(&view, &s.src, app, a)) {
        return other(st, app, &s, a) ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
    }
    view.top_lane = hv_gantt_layout(&view, &s.src, p.chart).top_lane;
    keep(st, hv_app_model(app), &s);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned gantt_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct hv_gantt_screen *st = state;
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject s;
    if (!hv_gantt_subject_get(st, hv_app_model(app), &view, &s, NULL) ||
        !hv_gantt_find(&view, &s.src, text, direction)) {
        return 0;
    }
    keep(st, hv_app_model(app), &s);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

/* ---- mouse ---- */

static void drag(struct hv_gantt_screen *st, struct hv_gantt_state *view,
                 const struct hv_gantt_subject *s, const struct hv_gantt_places *at, int x)
{
    if (st->dragging && at->chart.w > 0) {
        hv_gantt_pan(view, &s->src, (double)(st->drag_x - x) / at->chart.w);
    }
    st->drag_x = x;
}

static unsigned gantt_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_gantt_screen *st = state;
    struct hv_gantt_state view = {0};
    struct hv_gantt_subject s;
    if (ev->type != HV_EV_MOUSE || !hv_gantt_subject_get(st, hv_app_model(app), &view, &s, NULL)) {
        return 0;
    }
    if (shows_experts(st)) {
        bool hit = ev->mouse == HV_MOUSE_PRESS &&
                   hv_gantt_experts_press(st->experts, &s, hv_app_body(app), ev->x, ev->y);
        return hit ? HV_APP_HANDLED | HV_APP_REDRAW : HV_APP_HANDLED;
    }
    struct places p = place_all(st, hv_app_body(app), s.src.n_lanes);
    align_labels(st, hv_app_model(app), &s, p.chart.w, &view);
    struct hv_gantt_places at = hv_gantt_layout(&view, &s.src, p.chart);
    size_t lane = 0;
    double t = 0;
    bool inside = hv_gantt_hit(&view, &at, ev->x, ev->y, &lane, &t);
    bool shift = (ev->key.mods & HV_MOD_SHIFT) != 0;
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? 1 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? -1 : 0;
    if (hv_gantt_pick_is_open(st, hv_app_model(app)) && hv_rect_has(p.panel, ev->x, ev->y)) {
        if (wheel != 0) {
            (void)hv_gantt_pick_action(st, app, wheel > 0 ? HV_ACT_UP : HV_ACT_DOWN);
        } else if (ev->mouse == HV_MOUSE_PRESS) {
            (void)hv_gantt_pick_click(st, app, p.panel, ev->x, ev->y);
        }
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    if (ev->mouse == HV_MOUSE_RELEASE) {
        st->dragging = false;
    } else if (ev->mouse == HV_MOUSE_DRAG) {
        drag(st, &view, &s, &at, ev->x);
    } else if (ev->mouse == HV_MOUSE_PRESS && hv_rect_has(at.above, ev->x, ev->y)) {
        view.lane = at.top_lane > 0 ? at.top_lane - 1 : 0;
        at.top_lane = view.lane;
    } else if (ev->mouse == HV_MOUSE_PRESS && hv_rect_has(at.below, ev->x, ev->y)) {
        view.lane = at.top_lane + at.n_shown; /* the window follows */
    } else if (!inside) {
        return HV_APP_HANDLED;
    } else if (wheel != 0 && shift) {
        hv_gantt_pan(&view, &s.src, -0.1 * wheel);
    } else if (wheel != 0) {
        hv_gantt_zoom(&view, &s.src, wheel > 0 ? 1.25 : 0.8, t);
    } else {
        view.lane = lane;
        hv_gantt_goto(&view, &s.src, t);
        st->dragging = true;
        st->drag_x = ev->x;
    }
    view.top_lane = at.top_lane;
    keep(st, hv_app_model(app), &s);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static void gantt_close(void *state, struct hv_app *app)
{
    struct hv_gantt_screen *st = state;
    (void)app;
    hv_gantt_pick_free(&st->pick);
    hv_gantt_try_free(&st->attempt);
    if (st->experts != NULL) {
        hv_gantt_experts_free(st->experts);
        free(st->experts);
        st->experts = NULL;
    }
}

/* Seconds of judging per tick, so that keys are answered at once. */
#define TICK_S 0.02

static unsigned gantt_tick(void *state, struct hv_app *app, int64_t now_ms)
{
    struct hv_gantt_screen *st = state;
    struct hv_ui *ui = hv_app_model(app);
    unsigned flags = hv_ui_tick(state, app, now_ms);
    if (st->pick.open && !hv_gantt_pick_is_open(st, ui)) { /* the plan or a document changed */
        hv_gantt_pick_free(&st->pick);
        flags |= HV_APP_REDRAW;
    }
    return hv_gantt_pick_some(st, ui, TICK_S) ? flags | HV_APP_REDRAW : flags;
}

static int gantt_timeout_ms(const void *state, const void *model, int64_t now_ms)
{
    return hv_gantt_pick_is_busy(state, model) ? 0 : hv_ui_timeout_ms(state, model, now_ms);
}

static const struct hv_key_hint *gantt_hints(const void *state, const void *model)
{
    static const struct hv_key_hint list[] = {
        {"j", "Try"}, {"Enter", "Keep"},     {"Esc", "Drop"}, {"s", "Sort"},
        {"!", "All"}, {"Tab", "Other list"}, {NULL, NULL}};
    return hv_gantt_pick_is_open(state, model) ? list : NULL;
}

static const enum hv_action experts_keybar[] = {
    HV_ACT_LEFT,   HV_ACT_RIGHT,           HV_ACT_UP,
    HV_ACT_DOWN,   HV_ACT_GANTT_OP_PREV,   HV_ACT_GANTT_OP_NEXT,
    HV_ACT_CANCEL, HV_ACT_GANTT_PLAN_PREV, HV_ACT_GANTT_PLAN_NEXT,
    HV_ACT_NONE,
};

static const enum hv_action *gantt_keybar_now(const void *state, const void *model)
{
    const enum hv_action *waits = hv_gantt_wait_keybar(model);
    return waits == NULL && shows_experts(state) ? experts_keybar : waits;
}

static const enum hv_action keybar[] = {
    HV_ACT_GANTT_ZOOM_IN,
    HV_ACT_GANTT_ZOOM_OUT,
    HV_ACT_GANTT_FIT,
    HV_ACT_GANTT_OP_PREV,
    HV_ACT_GANTT_OP_NEXT,
    HV_ACT_GANTT_SCHEDULE_NEXT,
    HV_ACT_GANTT_CRITICAL,
    HV_ACT_GANTT_MEMORY,
    HV_ACT_FIND,
    HV_ACT_EXPORT,
    HV_ACT_GANTT_MICRO_MORE,
    HV_ACT_GANTT_CHUNKS_MORE,
    HV_ACT_GANTT_SPLIT,
    HV_ACT_GANTT_LINKS,
    HV_ACT_GANTT_PARTS,
    HV_ACT_GANTT_EXPERTS,
    HV_ACT_GANTT_CAUSE,
    HV_ACT_GANTT_EFFECT,
    HV_ACT_GANTT_MB_PREV,
    HV_ACT_GANTT_MB_NEXT,
    HV_ACT_GANTT_EXPLAIN,
    HV_ACT_GANTT_PLAN_PREV,
    HV_ACT_GANTT_PLAN_NEXT,
    HV_ACT_GANTT_GOTO,
    HV_ACT_ADD,
    HV_ACT_NONE,
};

const struct hv_view_ops hv_screen_gantt = {
    .name = "gantt",
    .title = "Gantt",
    .short_title = "Gantt",
    .tab = 5,
    .state_size = sizeof(struct hv_gantt_screen),
    .keybar = keybar,
    .keybar_now = gantt_keybar_now,
    .hints = gantt_hints,
    .help =
        "s lists the schedules that apply, b the micro-batches, v the numbers of virtual chunks, "
        "Tab the degrees too; moving tries each, and the plan stays visible below each lane. "
        "Enter keeps the trial as a plan (u undoes that), Esc drops it, ! lists what does not "
        "apply. The micro-batch at the cursor has capital letters in every lane. C "
        "underlines the critical path; the row below names the stage that holds it, hidden "
        "lanes too (~ a transfer). w goes to what the operation waited for, W to what waits "
        "for it; arrows show the way of its input and its result. Lines of shards and of what "
        "leaves a stage and comes back stand below their stage. X shows the load of ranks with "
        "experts over the iterations of the routing. Very long timelines are drawn in the "
        "background; Esc or x "
        "stops that, r "
        "starts it again. /f3 /b4@s3 /mb 3 search for operations. A click selects, dragging "
        "pans, the wheel zooms (Shift: pans).",
    .close = gantt_close,
    .draw = gantt_draw,
    .action = gantt_action,
    .event = gantt_event,
    .find = gantt_find,
    .status = gantt_status,
    .tick = gantt_tick,
    .timeout_ms = gantt_timeout_ms,
};
