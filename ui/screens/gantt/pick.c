/** The picker: its rows, their figures and their order; what its keys do. Drawing is in
 * pick_draw.c, the trial itself in try.c. */
#include "ui/screens/gantt/pick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/screens/gantt/gantt_int.h"

void hv_gantt_pick_free(struct hv_gantt_pick *p)
{
    hv_vec_free(&p->rows);
    hv_vec_free(&p->order);
    *p = (struct hv_gantt_pick){.sort = p->sort};
}

bool hv_gantt_pick_is_open(const struct hv_gantt_screen *st, const struct hv_ui *ui)
{
    return st->pick.open && hv_gantt_try_is_current(&st->attempt, ui->session, hv_gantt_row(ui));
}

/* ---- rows ---- */

static const enum hv_lever_kind kinds[HV_PICK_TAB_N] = {HV_LEVER_SCHEDULE, HV_LEVER_MICRO,
                                                        HV_LEVER_CHUNKS, HV_LEVER_TP};

static bool is_search(const struct hv_lever *l, size_t k)
{
    const struct hv_schedule_row *row = NULL;
    return l->kind == HV_LEVER_SCHEDULE && hv_schedule_find(l->words[k], &row, NULL) == HV_OK &&
           (row->flags & HV_SCHEDULE_BY_COST) != 0;
}

static void add_rows(struct hv_gantt_pick *p, const struct hv_gantt_try *t)
{
    p->rows.n = p->n_done = 0;
    for (size_t i = 0; i < t->levers.n; i++) {
        const struct hv_lever *l = &t->levers.items[i];
        for (size_t k = 0; l->kind == kinds[p->tab] && k < l->n_values; k++) {
            bool now = hv_lever_at(l, t->values[i]) == k;
            hv_vec_push(&p->rows, (struct hv_gantt_choice){.lever = i,
                                                           .value = l->values[k],
                                                           .now = now,
                                                           .search = !now && is_search(l, k)});
        }
    }
}

static double sort_key(const struct hv_gantt_choice *c, enum hv_gantt_pick_sort by)
{
    return by == HV_PICK_BY_BUBBLE ? c->figures.bubble_frac
           : by == HV_PICK_BY_PEAK ? c->figures.peak_frac
                                   : c->figures.iteration_s;
}

/** Rows with figures first, by the key; then the others as they stand in the table. */
static bool is_before(const struct hv_gantt_pick *p, size_t a, size_t b)
{
    const struct hv_gantt_choice *x = &p->rows.items[a], *y = &p->rows.items[b];
    bool has = x->done && !x->failed, other = y->done && !y->failed;
    int order = p->sort != HV_PICK_BY_NAME && has && other
                    ? hv_compare_numbers(sort_key(x, p->sort), sort_key(y, p->sort))
                    : 0;
    if (p->sort != HV_PICK_BY_NAME && has != other) {
        return has;
    }
    return order < 0 || (order == 0 && a < b);
}

/** Sorts the rows anew; the cursor stays on its row. */
static void reorder(struct hv_gantt_pick *p)
{
    size_t at = p->cursor < p->order.n ? p->order.items[p->cursor] : SIZE_MAX;
    p->order.n = 0;
    for (size_t i = 0; i < p->rows.n; i++) {
        if (p->rows.items[i].failed && !p->all && i != at) {
            continue;
        }
        hv_vec_push(&p->order, i);
        for (size_t k = p->order.n - 1; k > 0 && is_before(p, i, p->order.items[k - 1]); k--) {
            p->order.items[k] = p->order.items[k - 1];
            p->order.items[k - 1] = i;
        }
    }
    for (size_t k = 0; k < p->order.n; k++) {
        p->cursor = p->order.items[k] == at ? k : p->cursor;
    }
}

/** The figures of a verdict, with the fullest stage. */
static void take_figures(struct hv_gantt_choice *c, const struct hv_verdict *v)
{
    double most = -HUGE_VAL;
    c->figures = hv_figures_of(v);
    c->n_stages = v->n_memory;
    for (size_t i = 0; i < v->n_memory; i++) {
        double frac = v->memory[i].peak_bytes / v->memory[i].limit_bytes;
        if (frac > most) {
            most = frac;
            c->full_stage = i;
            c->over_bytes = v->memory[i].peak_bytes - v->memory[i].limit_bytes;
        }
    }
    if (c->figures.n_violations > 0 && c->over_bytes > 0) {
        char buf[HV_FMT_CAP];
        (void)snprintf(c->why, sizeof c->why, "s%zu %s over", c->full_stage,
                       hv_fmt_bytes(buf, sizeof buf, c->over_bytes));
    } else {
        (void)snprintf(c->why, sizeof c->why, "%.110s", c->figures.violation);
    }
}

static void judge_row(struct hv_gantt_try *t, struct hv_session *s, struct hv_gantt_choice *c)
{
    struct hv_trial *trial = NULL;
    struct hv_err err = {0};
    double kept = t->values[c->lever];
    t->values[c->lever] = c->value;
    c->failed = hv_trial_new(s, &t->levers, t->values, false, &trial, &err) != HV_OK ||
                !(hv_trial_verdict(trial)->metrics.iteration_s > 0);
    if (trial != NULL) {
        take_figures(c, hv_trial_verdict(trial));
    } else {
        (void)snprintf(c->why, sizeof c->why, "%.110s", err.text);
    }
    c->done = true;
    t->values[c->lever] = kept;
    hv_trial_free(trial);
}

bool hv_gantt_pick_is_busy(const struct hv_gantt_screen *st, const struct hv_ui *ui)
{
    return st->pick.n_done < st->pick.rows.n && hv_gantt_pick_is_open(st, ui);
}

bool hv_gantt_pick_some(struct hv_gantt_screen *st, struct hv_ui *ui, double budget_s)
{
    struct hv_gantt_pick *p = &st->pick;
    double start_s = hv_session_now_s(ui->session);
    if (!hv_gantt_pick_is_busy(st, ui)) {
        return false;
    }
    do {
        struct hv_gantt_choice *c = &p->rows.items[p->n_done++];
        if (!c->search && !c->done) {
            judge_row(&st->attempt, ui->session, c);
        }
    } while (p->n_done < p->rows.n && hv_session_now_s(ui->session) - start_s < budget_s);
    reorder(p);
    return true;
}

/* ---- what keys do ---- */

static struct hv_gantt_choice *at_cursor(struct hv_gantt_pick *p)
{
    return p->cursor < p->order.n ? &p->rows.items[p->order.items[p->cursor]] : NULL;
}

/** Tries the row at the cursor in the lanes. */
static void preview(struct hv_gantt_screen *st, struct hv_app *app)
{
    struct hv_gantt_choice *c = at_cursor(&st->pick);
    struct hv_err err = {0};
    if (c == NULL || c->failed) {
        hv_gantt_try_back(&st->attempt);
        return;
    }
    if (c->search && !c->done) {
        hv_gantt_try_back(&st->attempt);
        hv_app_message(app, HV_MSG_INFO, "this schedule is searched: Enter does it");
        return;
    }
    if (hv_gantt_try_set(&st->attempt, hv_ui_session(hv_app_model(app)), c->lever, c->value,
                         &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
}

static void fill(struct hv_gantt_screen *st)
{
    struct hv_gantt_pick *p = &st->pick;
    p->order.n = p->cursor = 0;
    add_rows(p, &st->attempt);
    reorder(p);
    for (size_t k = 0; k < p->order.n; k++) {
        p->cursor = p->rows.items[p->order.items[k]].now ? k : p->cursor;
    }
}

void hv_gantt_pick_show(struct hv_gantt_screen *st, struct hv_app *app, enum hv_gantt_pick_tab tab,
                        int by)
{
    static const char *const nothing[HV_PICK_TAB_N] = {"schedule", "single micro-batch", "chunks",
                                                       "degrees"};
    struct hv_ui *ui = hv_app_model(app);
    struct hv_gantt_pick *p = &st->pick;
    struct hv_err err = {0};
    if (hv_gantt_try_prepare(&st->attempt, ui->session, hv_gantt_row(ui), &err) != HV_OK) {
        hv_ui_error(app, &err);
        return;
    }
    enum hv_gantt_pick_tab before = p->tab;
    p->tab = tab;
    fill(st);
    if (p->rows.n == 0) {
        hv_app_message(app, HV_MSG_INFO, "this plan has no %s to change", nothing[tab]);
        p->tab = before;
        if (p->open) {
            fill(st);
        }
        return;
    }
    p->open = true;
    (void)hv_gantt_pick_some(st, ui, 0.05);
    if (by != 0) {
        size_t last = p->order.n - 1;
        p->cursor = by < 0 ? (p->cursor > 0 ? p->cursor - 1 : last)
                           : (p->cursor < last ? p->cursor + 1 : 0);
        preview(st, app);
    }
}

/** The next tab that has rows. */
static void next_tab(struct hv_gantt_screen *st, struct hv_app *app, int step)
{
    struct hv_gantt_pick *p = &st->pick;
    for (int n = 1; n < HV_PICK_TAB_N; n++) {
        int tab = ((int)p->tab + step * n + n * HV_PICK_TAB_N) % HV_PICK_TAB_N;
        for (size_t i = 0; i < st->attempt.levers.n; i++) {
            if (st->attempt.levers.items[i].kind == kinds[tab]) {
                hv_gantt_pick_show(st, app, (enum hv_gantt_pick_tab)tab, 0);
                return;
            }
        }
    }
}

static void move(struct hv_gantt_screen *st, struct hv_app *app, int by)
{
    struct hv_gantt_pick *p = &st->pick;
    long to = (long)p->cursor + by, last = (long)p->order.n - 1;
    p->cursor = (size_t)(to < 0 ? 0 : to > last ? last : to);
    preview(st, app);
}

/** Enter: a searched schedule is tried first, anything else is kept. */
static void take(struct hv_gantt_screen *st, struct hv_app *app)
{
    struct hv_gantt_choice *c = at_cursor(&st->pick);
    if (c != NULL && c->search && !c->done) {
        judge_row(&st->attempt, hv_ui_session(hv_app_model(app)), c);
        preview(st, app);
        reorder(&st->pick);
    } else if (hv_gantt_try_keep(&st->attempt, app)) {
        hv_gantt_pick_free(&st->pick);
    }
}

static void drop(struct hv_gantt_screen *st, struct hv_app *app)
{
    bool tried = st->attempt.trial != NULL;
    hv_gantt_pick_free(&st->pick);
    hv_gantt_try_free(&st->attempt);
    if (tried) {
        hv_app_message(app, HV_MSG_INFO, "back to the original plan");
    }
}

/** Opens the tab of an action; false where it opens none. */
static bool open_tab(struct hv_gantt_screen *st, struct hv_app *app, enum hv_action a)
{
    static const struct {
        enum hv_action action;
        enum hv_gantt_pick_tab tab;
        int by;
    } tabs[] = {{HV_ACT_GANTT_SCHEDULE_NEXT, HV_PICK_SCHEDULE, 0},
                {HV_ACT_GANTT_SCHEDULE_PREV, HV_PICK_SCHEDULE, -1},
                {HV_ACT_GANTT_MICRO_MORE, HV_PICK_MICRO, 0},
                {HV_ACT_GANTT_MICRO_LESS, HV_PICK_MICRO, -1},
                {HV_ACT_GANTT_CHUNKS_MORE, HV_PICK_CHUNKS, 0},
                {HV_ACT_GANTT_CHUNKS_LESS, HV_PICK_CHUNKS, -1}};
    for (size_t i = 0; i < HV_COUNT(tabs); i++) {
        if (a == tabs[i].action) {
            hv_gantt_pick_show(st, app, tabs[i].tab, tabs[i].by);
            return true;
        }
    }
    return false;
}

bool hv_gantt_pick_action(struct hv_gantt_screen *st, struct hv_app *app, enum hv_action a)
{
    enum { PAGE = 8 };
    struct hv_gantt_pick *p = &st->pick;
    if (!hv_gantt_pick_is_open(st, hv_app_model(app))) {
        return open_tab(st, app, a);
    }
    switch ((int)a) {
    case HV_ACT_UP:
    case HV_ACT_DOWN:
        move(st, app, a == HV_ACT_UP ? -1 : 1);
        return true;
    case HV_ACT_PAGE_UP:
    case HV_ACT_PAGE_DOWN:
        move(st, app, a == HV_ACT_PAGE_UP ? -PAGE : PAGE);
        return true;
    case HV_ACT_GANTT_EXPLAIN:
    case HV_ACT_OPEN:
    case HV_ACT_ADD:
        take(st, app);
        return true;
    case HV_ACT_CANCEL:
        drop(st, app);
        return true;
    case HV_ACT_PANEL_NEXT:
    case HV_ACT_PANEL_PREV:
        next_tab(st, app, a == HV_ACT_PANEL_NEXT ? 1 : -1);
        return true;
    case HV_ACT_GANTT_SCHEDULE_NEXT:
        if (p->tab != HV_PICK_SCHEDULE) {
            return open_tab(st, app, a);
        }
        p->sort = (enum hv_gantt_pick_sort)(((int)p->sort + 1) % HV_PICK_SORT_N);
        reorder(p);
        return true;
    case HV_ACT_GANTT_PICK_ALL:
        p->all = !p->all;
        reorder(p);
        return true;
    default:
        return open_tab(st, app, a);
    }
}

bool hv_gantt_pick_click(struct hv_gantt_screen *st, struct hv_app *app, struct hv_rect r, int x,
                         int y)
{
    struct hv_gantt_pick *p = &st->pick;
    struct hv_rect in = hv_rect_inner(r);
    size_t row = hv_gantt_pick_top(p, in.h) + (size_t)(y - in.y - 1);
    if (!hv_rect_has(in, x, y) || y == in.y || row >= p->order.n) {
        return false;
    }
    if (row == p->cursor) {
        take(st, app);
    } else {
        move(st, app, (int)row - (int)p->cursor);
    }
    return true;
}
