/** Screen 6, Explain: the causes of the iteration time of a plan, the terms of every figure, and
 * the changes, moves or purchases with the largest gain. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "ui/screens/explain/explain.h"
#include "ui/screens/explain/explain_int.h"
#include "ui/view/grid/layout.h"

/** Seconds a tick may spend on trials: less than a frame, so that keys are processed in time. */
#define TICK_S 0.004
/** Least interval between redraws while trials are unfinished. */
#define REDRAW_MS 100

static void explain_open(void *state, struct hv_app *app)
{
    struct hv_explain *st = state;
    (void)app;
    st->data = hv_xcalloc(1, sizeof *st->data);
    hv_explain_fold(st->data, HV_ID_CAUSES, true);
    hv_explain_fold(st->data, HV_ID_ADVICE, true);
    hv_explain_fold(st->data, HV_ID_BUY, true);
    st->data->sort = HV_EXPLAIN_CHANGE;
}

static void explain_close(void *state, struct hv_app *app)
{
    struct hv_explain *st = state;
    (void)app;
    hv_explain_free(st->data);
    free(st->data);
}

static unsigned explain_tick(void *state, struct hv_app *app, int64_t now_ms)
{
    struct hv_explain *st = state;
    struct hv_explain_data *d = st->data;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    unsigned flags = hv_ui_tick(state, app, now_ms);
    if (hv_explain_sync(d, s)) {
        hv_explain_build(d, s);
        flags |= HV_APP_REDRAW;
    }
    if (hv_explain_is_busy(d)) {
        bool more = hv_explain_try_some(d, s, TICK_S);
        if (!more || now_ms - d->drawn_ms >= REDRAW_MS || now_ms < d->drawn_ms) {
            hv_explain_build(d, s);
            d->drawn_ms = now_ms;
            flags |= HV_APP_REDRAW;
        }
    }
    return flags;
}

static int explain_timeout_ms(const void *state, const void *model, int64_t now_ms)
{
    const struct hv_explain *st = state;
    return hv_explain_is_busy(st->data) ? 0 : hv_ui_timeout_ms(state, model, now_ms);
}

/* ---- actions ---- */

/** Opens the evidence of a row; false where it has none. */
static bool open_evidence(const struct hv_explain_data *d, const struct hv_evidence *e,
                          struct hv_app *app)
{
    struct hv_ui *ui = hv_app_model(app);
    struct hv_err err = {0};
    static const char *const views[] = {[HV_EVIDENCE_GANTT] = "gantt",
                                        [HV_EVIDENCE_CLUSTER] = "cluster",
                                        [HV_EVIDENCE_MODEL] = "model",
                                        [HV_EVIDENCE_LEVER] = "what-if"};
    if (e->kind == HV_EVIDENCE_NONE) {
        return false;
    }
    if (e->kind == HV_EVIDENCE_GANTT) {
        ui->gantt_row = d->row;
        ui->place = (struct hv_ui_place){
            .row = d->row, .replica = e->replica, .stage = e->stage, .at_s = e->at_s};
    } else if (e->kind == HV_EVIDENCE_LEVER) {
        ui->turn = (struct hv_ui_turn){.row = d->row, .lever = e->lever, .value = e->value};
    }
    const char *name = e->name; /* the rows may be built again once another screen is open */
    if (hv_app_open(app, views[e->kind], &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else if (e->kind == HV_EVIDENCE_LEVER) {
        (void)hv_app_do(app, HV_ACT_NONE); /* any action takes ui->turn; this one does no more */
    } else if (e->kind == HV_EVIDENCE_CLUSTER) {
        (void)hv_app_goto(app, name);
    }
    return true;
}

/** Scrolls the rows below an unfolded heading into view, as far as there is room. */
static void show_below(struct hv_explain *st, size_t i, int height)
{
    const struct hv_explain_data *d = st->data;
    size_t n = 1, h = height > 1 ? (size_t)height : 1;
    while (i + n < d->rows.n && n < h && d->rows.items[i + n].depth > d->rows.items[i].depth) {
        n++;
    }
    if (i + n > st->table.top + h) {
        st->table.top = i + n - h;
    }
}

static void fold(struct hv_explain *st, struct hv_session *s, bool open, int height)
{
    struct hv_explain_data *d = st->data;
    size_t i = st->table.cursor;
    if (i >= d->rows.n) {
        return;
    }
    if (!open && !(d->rows.items[i].folds && d->rows.items[i].open)) {
        int depth = d->rows.items[i].depth; /* a line below a heading goes to it */
        while (i > 0 && d->rows.items[i].depth >= depth) {
            i--;
        }
    } else if (d->rows.items[i].folds) {
        hv_explain_fold(d, d->rows.items[i].id, open);
        hv_explain_build(d, s);
        if (open) {
            show_below(st, i, height);
        }
    }
    struct hv_table_source src = hv_explain_source(d);
    hv_table_goto(&st->table, &src, i, height);
}

/** Scrolls the panel that has the focus; false when that is the tree. */
static bool scroll(struct hv_explain *st, enum hv_action a)
{
    size_t *top = st->focus == HV_EXPLAIN_BARS ? &st->bars_top : &st->text_top;
    if (st->focus == HV_EXPLAIN_TREE || (a != HV_ACT_UP && a != HV_ACT_DOWN)) {
        return false;
    }
    *top = a == HV_ACT_DOWN ? *top + (*top < 40) : *top - (*top > 0);
    return true;
}

/** The rows that are shown, as indented lines. */
static void write_rows(const struct hv_explain_data *d, struct hv_str *out)
{
    for (size_t i = 0; i < d->rows.n; i++) {
        const struct hv_explain_row *r = &d->rows.items[i];
        hv_str_addf(out, "%*s", 2 * r->depth, "");
        if (r->name != NULL) {
            hv_str_addf(out, "%-22s %10s  ", r->name, r->value);
        }
        hv_text_clean(out, r->text, strlen(r->text));
        for (int k = 0; r->cells[0] != NULL && k < HV_EXPLAIN_CELL_N; k++) {
            hv_str_addf(out, "  %s", r->cells[k]);
        }
        if (r->note != NULL) {
            hv_str_adds(out, "  ");
            hv_text_clean(out, r->note, strlen(r->note));
        }
        hv_str_addc(out, '\n');
    }
}

static unsigned answer_export(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_explain *st = ctx;
    struct hv_err err = {0};
    struct hv_str text = {0};
    write_rows(st->data, &text);
    if (hv_file_write(path, hv_str_cstr(&text), text.n, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "explanation written to %s", path);
    }
    hv_str_free(&text);
    return HV_APP_REDRAW;
}

static void ask_export(struct hv_explain *st, struct hv_app *app)
{
    struct hv_str path = {0};
    hv_str_addf(&path, "%s.txt", st->data->facts.row != NULL ? st->data->facts.row->name : "plan");
    hv_app_ask(app, "write the visible lines to: ", hv_str_cstr(&path), answer_export, st);
    hv_str_free(&path);
}

static void next_sort(struct hv_explain_data *d, struct hv_app *app)
{
    static const char *const names[HV_EXPLAIN_CELL_N] = {"step", "change", "$ per million tokens",
                                                         "$ per hour"};
    d->sort = (enum hv_explain_cell)(((int)d->sort + 1) % HV_EXPLAIN_CELL_N);
    hv_app_message(app, HV_MSG_INFO, "what to do is sorted by %s", names[d->sort]);
}

static bool act(struct hv_explain *st, struct hv_app *app, enum hv_action a, int height)
{
    struct hv_explain_data *d = st->data;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    const struct hv_explain_row *row =
        st->table.cursor < d->rows.n ? &d->rows.items[st->table.cursor] : NULL;
    switch ((int)a) {
    case HV_ACT_PANEL_NEXT:
    case HV_ACT_PANEL_PREV:
        st->focus = (enum hv_explain_panel)(((int)st->focus + (a == HV_ACT_PANEL_NEXT ? 1 : 2)) %
                                            HV_EXPLAIN_PANEL_N);
        return true;
    case HV_ACT_LEFT:
    case HV_ACT_RIGHT:
        fold(st, s, a == HV_ACT_RIGHT, height);
        return true;
    case HV_ACT_EXPLAIN_FOLD:
        fold(st, s, row != NULL && !row->open, height);
        return true;
    case HV_ACT_EXPLAIN_EVIDENCE:
        if (row != NULL && !open_evidence(d, &row->evidence, app)) {
            fold(st, s, !row->open, height);
        }
        return true;
    case HV_ACT_EXPLAIN_TRY:
        if (row == NULL || row->evidence.kind != HV_EVIDENCE_LEVER) {
            hv_app_message(
                app, HV_MSG_INFO,
                "this line has no lever; the lines below \"Free\" and \"To buy\" have one");
        } else {
            (void)open_evidence(d, &row->evidence, app);
        }
        return true;
    case HV_ACT_EXPORT:
        ask_export(st, app);
        return true;
    case HV_ACT_SORT:
        next_sort(d, app);
        hv_explain_build(d, s);
        return true;
    case HV_ACT_GANTT_PLAN_PREV:
    case HV_ACT_GANTT_PLAN_NEXT:
        hv_ui_switch_plan(hv_app_model(app), app, d->row, a == HV_ACT_GANTT_PLAN_NEXT ? 1 : -1);
        return true;
    default:
        return false;
    }
}

/** Updates the table to the present rows; returns the height of the tree. */
static int refresh(struct hv_explain *st, struct hv_app *app)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_rect r[HV_EXPLAIN_PANEL_N];
    if (hv_explain_sync(st->data, s)) {
        hv_explain_build(st->data, s);
    }
    hv_explain_place(st, hv_app_body(app), r);
    int height = hv_rect_inner(r[HV_EXPLAIN_TREE]).h;
    struct hv_table_source src = hv_explain_source(st->data);
    hv_table_refresh(&st->table, &src, height);
    return height;
}

static unsigned explain_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_explain *st = state;
    int height = refresh(st, app);
    struct hv_table_source src = hv_explain_source(st->data);
    if (!scroll(st, a)) {
        if (hv_table_action(&st->table, &src, a, height)) {
            st->text_top = 0;
        } else if (!act(st, app, a, height)) {
            return 0;
        }
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned explain_find(void *state, struct hv_app *app, const char *text, int direction)
{
    static const struct hv_column column = {.title = "", .min = 1};
    static const struct hv_table_look look = {.columns = &column, .n_columns = 1};
    struct hv_explain *st = state;
    (void)refresh(st, app);
    struct hv_table_source src = hv_explain_source(st->data);
    return hv_table_find(&st->table, &src, &look, text, direction) ? HV_APP_HANDLED | HV_APP_REDRAW
                                                                   : 0;
}

static void click(struct hv_explain *st, struct hv_app *app, struct hv_rect tree, int y)
{
    size_t i = st->table.top + (size_t)(y - tree.y);
    struct hv_table_source src = hv_explain_source(st->data);
    if (i >= st->data->rows.n) {
        return;
    }
    bool again = i == st->table.cursor;
    hv_table_goto(&st->table, &src, i, tree.h);
    if (again) {
        fold(st, hv_ui_session(hv_app_model(app)), !st->data->rows.items[i].open, tree.h);
    }
}

static unsigned explain_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_explain *st = state;
    struct hv_rect r[HV_EXPLAIN_PANEL_N];
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    int height = refresh(st, app);
    hv_explain_place(st, hv_app_body(app), r);
    struct hv_table_source src = hv_explain_source(st->data);
    struct hv_rect tree = hv_rect_inner(r[HV_EXPLAIN_TREE]);
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    if (wheel != 0 && hv_rect_has(r[HV_EXPLAIN_TREE], ev->x, ev->y)) {
        hv_table_scroll(&st->table, &src, wheel, height);
    }
    for (int i = 0; ev->mouse == HV_MOUSE_PRESS && i < HV_EXPLAIN_PANEL_N; i++) {
        if (hv_rect_has(r[i], ev->x, ev->y)) {
            st->focus = (enum hv_explain_panel)i;
        }
    }
    if (ev->mouse == HV_MOUSE_PRESS && hv_rect_has(tree, ev->x, ev->y)) {
        click(st, app, tree, ev->y);
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static void explain_status(const void *state, const void *model, struct hv_str *out)
{
    const struct hv_explain *st = state;
    const struct hv_explain_data *d = st->data;
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    (void)model;
    if (d->facts.verdict == NULL) {
        return;
    }
    const struct hv_metrics *m = &d->facts.verdict->metrics;
    hv_str_addf(out, "%s%s  ", m->exact ? "" : "~ ", d->facts.row->name);
    if (d->facts.verdict->serving != NULL) {
        hv_str_addf(out, "serves %s tokens/s", hv_fmt_count(a, sizeof a, m->tokens_per_s));
    } else if (!hv_known(m->iteration_s)) {
        hv_plan_trouble(d->facts.row, d->facts.verdict, out);
    } else {
        hv_str_addf(
            out, "iteration %s, bound %s, gap %s", hv_fmt_seconds(a, sizeof a, m->iteration_s),
            hv_fmt_seconds(b, sizeof b, m->bound_s), hv_fmt_percent(c, sizeof c, m->gap_frac));
    }
    if (d->n_done < d->tries.n) {
        hv_str_addf(out, " | trying levers: %zu of %zu", d->n_done, d->tries.n);
    }
}

static const enum hv_action keybar[] = {
    HV_ACT_EXPLAIN_EVIDENCE,
    HV_ACT_EXPLAIN_FOLD,
    HV_ACT_EXPLAIN_TRY,
    HV_ACT_PANEL_NEXT,
    HV_ACT_FIND,
    HV_ACT_SORT,
    HV_ACT_EXPORT,
    HV_ACT_GANTT_PLAN_PREV,
    HV_ACT_GANTT_PLAN_NEXT,
    HV_ACT_NONE,
};

static const enum hv_action *keybar_now(const void *state, const void *model)
{
    (void)state;
    return hv_ui_no_plan_keybar(hv_ui_plan_row(hv_ui_session(model)));
}

const struct hv_view_ops hv_screen_explain = {
    .name = "explain",
    .title = "Explain",
    .short_title = "Why",
    .tab = 6,
    .state_size = sizeof(struct hv_explain),
    .keybar = keybar,
    .keybar_now = keybar_now,
    .help = "Right and Left unfold and fold. A second click on a line folds it.",
    .open = explain_open,
    .close = explain_close,
    .draw = hv_explain_draw,
    .action = explain_action,
    .event = explain_event,
    .find = explain_find,
    .status = explain_status,
    .tick = explain_tick,
    .timeout_ms = explain_timeout_ms,
};
