/** Rows, layout and drawing of the Strategies screen; reads the session, changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/strategies/strategies_int.h"
#include "ui/view/grid/layout.h"

enum column { COL_ID, COL_STATE, COL_ITERATION, COL_KIND, COL_TITLE, COL_N };

static const struct hv_column columns[COL_N] = {
    {"STRATEGY", HV_LEFT, 14, 1}, {"STATE", HV_LEFT, 11, 0}, {"S/ITER", HV_RIGHT, 8, 0},
    {"KIND", HV_LEFT, 9, 0},      {"TITLE", HV_LEFT, 12, 3},
};

/* ---- rows ---- */

const struct hv_plugin *hv_strategies_at(const struct hv_strategies_list *l, size_t row)
{
    return row < l->n_shown ? &l->plugins[l->shown[row]] : NULL;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static bool is_shown(const struct hv_plugin *p, const char *filter)
{
    const char *const texts[] = {p->id, p->title, p->kind, p->system, p->reference, p->name};
    bool hit = filter[0] == '\0';
    for (size_t i = 0; i < HV_COUNT(texts) && !hit; i++) {
        hit = texts[i] != NULL && hv_text_has(texts[i], filter);
    }
    return hit;
}

struct hv_strategies_list hv_strategies_list(const struct hv_strategies *st, struct hv_session *s)
{
    struct hv_strategies_list l = {.s = s};
    l.plugins = hv_session_strategies(s, &l.n);
    l.shown = hv_xcalloc(l.n + 1, sizeof *l.shown);
    for (size_t i = 0; i < l.n; i++) {
        if (is_shown(&l.plugins[i], st->filter)) {
            l.shown[l.n_shown++] = i;
        }
    }
    return l;
}

/** True when the run ended with a plan that breaks a rule. */
static bool has_violations(const struct hv_strategies_list *l, const struct hv_row *row)
{
    const struct hv_verdict *v =
        row != NULL && row->plan != NULL ? hv_session_verdict(l->s, row->id, false, NULL) : NULL;
    return v != NULL && v->findings.n > 0;
}

static void add_state(const struct hv_strategies_list *l, const struct hv_plugin *p,
                      const struct hv_row *row, struct hv_str *out)
{
    if (p->error != NULL) {
        hv_str_adds(out, "broken");
    } else if (row == NULL) {
        return;
    } else if (row->state == HV_ROW_RUNNING && hv_known(row->progress_frac)) {
        hv_str_addf(out, "RUN %.0f%%", row->progress_frac * 100);
    } else if (row->state == HV_ROW_RUNNING) {
        hv_str_adds(out, "RUN");
    } else if (row->state == HV_ROW_DONE && has_violations(l, row)) {
        hv_str_adds(out, "misfit");
    } else {
        hv_str_adds(out, row->state == HV_ROW_NOT_APPLICABLE ? "not applicable"
                                                             : hv_row_state_name(row->state));
    }
}

static void add_iteration(const struct hv_strategies_list *l, const struct hv_row *row,
                          struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (row == NULL || row->plan == NULL) {
        return;
    }
    const struct hv_verdict *v = hv_session_verdict(l->s, row->id, false, NULL);
    if (v != NULL) {
        hv_str_adds(out, hv_fmt_seconds(buf, sizeof buf, v->metrics.iteration_s));
    }
}

static const struct hv_row *latest(const struct hv_strategies_list *l, const struct hv_plugin *p)
{
    return p->id != NULL ? hv_strategy_latest(l->s, p->id) : NULL;
}

static void cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct hv_strategies_list *l = ctx;
    const struct hv_plugin *p = hv_strategies_at(l, row);
    switch ((enum column)column) {
    case COL_ID:
        hv_str_adds(out, text_or(p->id, p->name));
        break;
    case COL_STATE:
        add_state(l, p, latest(l, p), out);
        break;
    case COL_ITERATION:
        add_iteration(l, latest(l, p), out);
        break;
    case COL_KIND:
        hv_str_adds(out, text_or(p->kind, ""));
        break;
    case COL_TITLE:
        hv_str_adds(out, text_or(p->error != NULL ? p->error : p->title, ""));
        break;
    case COL_N:
        break;
    }
}

static unsigned row_flags(const void *ctx, size_t row)
{
    const struct hv_plugin *p = hv_strategies_at(ctx, row);
    const struct hv_row *run = latest(ctx, p);
    if (p->error != NULL) {
        return HV_ROW_PROBLEM;
    }
    if (run == NULL) {
        return 0;
    }
    switch ((int)run->state) {
    case HV_ROW_DONE:
        return has_violations(ctx, run) ? HV_ROW_PROBLEM : HV_ROW_CHECK;
    case HV_ROW_QUEUED:
    case HV_ROW_RUNNING:
        return HV_ROW_MARKED;
    case HV_ROW_FAILED:
    case HV_ROW_INFEASIBLE:
        return HV_ROW_PROBLEM;
    default:
        return HV_ROW_DIM;
    }
}

static uint64_t row_id(const void *ctx, size_t row)
{
    const struct hv_strategies_list *l = ctx;
    return l->shown[row];
}

struct hv_table_source hv_strategies_source(const struct hv_strategies_list *l)
{
    return (struct hv_table_source){
        .ctx = l, .n_rows = l->n_shown, .cell = cell, .flags = row_flags, .id = row_id};
}

const struct hv_table_look hv_strategies_look = {
    .columns = columns,
    .n_columns = COL_N,
    .focused = true,
    .empty = "no strategy matches the filter; f with an empty text shows all",
};

/* ---- layout ---- */

void hv_strategies_place(const struct hv_strategies *st, struct hv_rect body,
                         struct hv_rect out[HV_STRATEGIES_PANEL_N])
{
    for (int i = 0; i < HV_STRATEGIES_PANEL_N; i++) {
        out[i] = (struct hv_rect){0};
    }
    if (hv_layout_stacked(body)) {
        out[st->focus] = body;
        return;
    }
    struct hv_split two[2] = {{.flex = 1, .min = 30}, {.flex = 1, .min = 30}};
    struct hv_split halves[2] = {{.flex = 1, .min = 6}, {.flex = 1, .min = 5}};
    struct hv_rect sides[2], left[2];
    hv_layout_split(body, HV_COLUMNS, two, 2, sides);
    hv_layout_split(sides[0], HV_ROWS, halves, 2, left);
    out[HV_STRATEGIES_LIST] = left[0];
    out[HV_STRATEGIES_PARAMS] = left[1];
    out[HV_STRATEGIES_PROGRESS] = sides[1];
}

/* ---- drawing ---- */

/* Hash of the state of the session that a panel shows. */
static uint64_t version_of(const struct hv_strategies_list *l, const char *panel)
{
    uint64_t changes = hv_session_changes(l->s);
    return hv_hash(hv_hash(HV_HASH_START, panel, strlen(panel)), &changes, sizeof changes);
}

/* Hash of the content of a panel beside the list; 0 while text is being typed into it. */
static uint64_t panel_version(const struct hv_strategies *st, const struct hv_strategies_list *l,
                              const struct hv_plugin *p, enum hv_strategies_panel panel)
{
    const struct hv_form *f = &st->form.form;
    bool own = panel == HV_STRATEGIES_PARAMS && st->form.plugin == p && f->n_fields > 0;
    const uint64_t of[] = {p != NULL ? (uint64_t)(p - l->plugins) + 1 : 0, st->focus == panel,
                           own ? f->cursor + 1 : 0, own ? f->top : 0};
    if (own && f->editing) {
        return 0;
    }
    uint64_t h = hv_hash(version_of(l, panel == HV_STRATEGIES_PARAMS ? "parameters" : "progress"),
                         of, sizeof of);
    const char *bad = own ? f->fields[f->cursor].bad : "";
    return hv_hash(h, bad, strlen(bad));
}

static void draw_panel(const struct hv_strategies *st, const struct hv_strategies_list *l,
                       const struct hv_table *table, enum hv_strategies_panel panel,
                       struct hv_grid *g, struct hv_rect r)
{
    const struct hv_plugin *p = hv_strategies_at(l, table->cursor);
    bool focused = st->focus == panel;
    struct hv_rect in = hv_rect_inner(r);
    char title[160];
    if (panel == HV_STRATEGIES_LIST) {
        (void)snprintf(title, sizeof title, "Strategies%s%s",
                       st->filter[0] != '\0' ? "  filter:" : "", st->filter);
    } else if (panel == HV_STRATEGIES_PARAMS) {
        (void)snprintf(title, sizeof title, "Parameters of %s",
                       p != NULL ? text_or(p->id, p->name) : "-");
    } else {
        (void)snprintf(title, sizeof title, "%s", p != NULL ? text_or(p->id, p->name) : "Progress");
    }
    hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    if (panel == HV_STRATEGIES_LIST) {
        struct hv_table_source src = hv_strategies_source(l);
        src.version = version_of(l, "strategies");
        src.version = hv_hash(src.version, st->filter, strlen(st->filter));
        struct hv_table_look own = hv_strategies_look;
        own.focused = focused;
        own.empty = l->n > 0 ? hv_strategies_look.empty : "no strategy is installed";
        hv_table_draw(table, &src, &own, g, in);
        hv_table_more_draw(table, &src, in, g, in);
    } else if (panel == HV_STRATEGIES_PARAMS && p != NULL) {
        hv_strategy_form_draw(&st->form, l->s, p, g, in, focused);
    } else if (p != NULL) {
        hv_strategy_panel_draw(l->s, p, g, in);
    }
}

void hv_strategies_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_strategies *st = state;
    struct hv_strategies_list l = hv_strategies_list(st, hv_ui_session(model));
    struct hv_table_source src = hv_strategies_source(&l);
    struct hv_rect r[HV_STRATEGIES_PANEL_N];
    struct hv_table t = st->table;
    const char *find = hv_app_find_text(ctx->app);
    hv_strategies_place(st, ctx->body, r);
    hv_table_refresh(&t, &src, r[HV_STRATEGIES_LIST].h - 3);
    t.find = find[0] != '\0' ? find : NULL;
    for (int i = 0; i < HV_STRATEGIES_PANEL_N; i++) {
        enum hv_strategies_panel panel = (enum hv_strategies_panel)i;
        const struct hv_plugin *p = hv_strategies_at(&l, t.cursor);
        if (r[i].w <= 2 || r[i].h <= 2) {
            continue;
        }
        if (panel == HV_STRATEGIES_LIST) { /* its rows are parts */
            draw_panel(st, &l, &t, panel, ctx->grid, r[i]);
        } else if (!hv_grid_part(ctx->grid, r[i], panel_version(st, &l, p, panel))) {
            draw_panel(st, &l, &t, panel, ctx->grid, r[i]);
            hv_grid_part_end(ctx->grid);
        }
    }
    free(l.shown);
}
