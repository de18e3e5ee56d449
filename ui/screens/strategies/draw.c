/** Layout and drawing of the Strategies screen; reads the session, changes nothing. */
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "ui/screens/strategies/strategies_int.h"
#include "ui/view/grid/layout.h"

/* Share of the width for list and parameters: at 80 columns the list shows TRUST. */
#define LIST_W_PERCENT 58
/* Rows that the parameters ask for, and at least get, frame included. */
#define PARAMS_H     13
#define PARAMS_MIN_H 5

/* ---- layout ---- */

/** Rows of the list when all headings are closed and there is no filter. */
static int folded_rows(const struct hv_strategies_data *d)
{
    size_t n = 0;
    for (int k = 0; k <= HV_KIND_N; k++) {
        size_t own = d->kinds[k].n;
        n += hv_strategies_is_plain((enum hv_kind)k) ? own : own > 0;
    }
    return (int)n;
}

void hv_strategies_place(const struct hv_strategies *st, const struct hv_strategies_data *d,
                         struct hv_rect body, struct hv_rect out[HV_STRATEGIES_PANEL_N])
{
    for (int i = 0; i < HV_STRATEGIES_PANEL_N; i++) {
        out[i] = (struct hv_rect){0};
    }
    if (hv_layout_stacked(body)) {
        out[st->focus] = body;
        return;
    }
    int list_w = body.w * LIST_W_PERCENT / 100;
    struct hv_split two[2] = {{.min = list_w > 30 ? list_w : 30}, {.flex = 1, .min = 30}};
    struct hv_rect sides[2], left[2];
    hv_layout_split(body, HV_COLUMNS, two, 2, sides);
    /* frame and head, so that all headings are seen; more where the parameters do not need it */
    int wanted = folded_rows(d) + 3, spare = body.h - PARAMS_H;
    int list = wanted > spare ? wanted : spare, most = body.h - PARAMS_MIN_H;
    struct hv_split halves[2] = {{.flex = 0, .min = list < most ? list : most},
                                 {.flex = 1, .min = PARAMS_MIN_H}};
    hv_layout_split(sides[0], HV_ROWS, halves, 2, left);
    out[HV_STRATEGIES_LIST] = left[0];
    out[HV_STRATEGIES_PARAMS] = left[1];
    out[HV_STRATEGIES_PROGRESS] = sides[1];
}

/* ---- drawing ---- */

/** What one frame is drawn from. */
struct frame {
    const struct hv_strategies *st;
    const struct hv_strategies_data *d;
    const struct hv_table *table;
    const struct hv_strategies_line *line; /**< under the cursor, or NULL */
    const struct hv_plugin *plugin;        /**< of that line, or NULL */
};

/* Hash of the content of a panel beside the list; 0 while text is being typed into it. */
static uint64_t panel_version(const struct frame *f, enum hv_strategies_panel panel)
{
    const struct hv_form *form = &f->st->form.form;
    bool own =
        panel == HV_STRATEGIES_PARAMS && f->st->form.plugin == f->plugin && form->n_fields > 0;
    const uint64_t of[] = {f->d->version,
                           f->line != NULL ? (uint64_t)f->line->kind + 1 : 0,
                           f->line != NULL ? f->line->plugin + 1 : 0,
                           f->st->focus == panel,
                           own ? form->cursor + 1 : 0,
                           own ? form->top : 0};
    if (own && form->editing) {
        return 0;
    }
    const char *name = panel == HV_STRATEGIES_PARAMS ? "parameters" : "progress";
    uint64_t h = hv_hash(hv_hash(HV_HASH_START, name, strlen(name)), of, sizeof of);
    const char *bad = own ? form->fields[form->cursor].bad : "";
    return hv_hash(h, bad, strlen(bad));
}

/** The name of the line under the cursor. */
static const char *name_of(const struct frame *f)
{
    return f->plugin != NULL ? (f->plugin->id != NULL ? f->plugin->id : f->plugin->name)
           : f->line != NULL ? hv_strategies_heading(f->line->kind)
                             : "-";
}

static void draw_list(const struct frame *f, struct hv_grid *g, struct hv_rect in, bool focused)
{
    struct hv_strategies_data own = *f->d;
    struct hv_table_look look = hv_strategies_look;
    look.focused = focused;
    look.empty = f->d->n > 0 ? hv_strategies_look.empty : "no strategy is installed";
    own.name_w = g->plain != NULL ? 0 : hv_table_column_w(&look, in.w, 0);
    struct hv_table_source src = hv_strategies_source(&own);
    hv_table_draw(f->table, &src, &look, g, in);
    hv_table_more_draw(f->table, &src, in, g, in);
}

static void add_title(const struct frame *f, enum hv_strategies_panel panel, char *out, size_t cap)
{
    const struct hv_row *row = f->plugin != NULL ? f->d->facts[f->line->plugin].row : NULL;
    if (panel == HV_STRATEGIES_LIST) {
        (void)snprintf(out, cap, "Strategies%s%s", f->st->filter[0] != '\0' ? "  f " : "",
                       f->st->filter);
    } else if (panel == HV_STRATEGIES_PARAMS) {
        (void)snprintf(out, cap, "Parameters of %s", name_of(f));
    } else if (row != NULL && row->state == HV_ROW_RUNNING) {
        (void)snprintf(out, cap, "%s  RUN", name_of(f));
    } else {
        (void)snprintf(out, cap, "%s", name_of(f));
    }
}

static void draw_panel(const struct frame *f, enum hv_strategies_panel panel, struct hv_grid *g,
                       struct hv_rect r)
{
    bool focused = f->st->focus == panel;
    struct hv_rect in = hv_rect_inner(r);
    char title[160];
    add_title(f, panel, title, sizeof title);
    hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    if (panel == HV_STRATEGIES_LIST) {
        draw_list(f, g, in, focused);
    } else if (f->line == NULL) {
        return;
    } else if (panel == HV_STRATEGIES_PARAMS) {
        hv_strategy_form_draw(&f->st->form, f->d->s, f->plugin, g, in, focused);
    } else if (f->plugin != NULL) {
        hv_strategy_panel_draw(f->st, f->d, f->line->plugin, g, in);
    } else {
        hv_strategy_kind_draw(f->st, f->d, f->line->kind, g, in);
    }
}

void hv_strategies_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_strategies *st = state;
    const struct hv_strategies_data *d = hv_strategies_sync(st, hv_ui_session(model));
    struct hv_table_source src = hv_strategies_source(d);
    struct hv_rect r[HV_STRATEGIES_PANEL_N];
    struct hv_table t = st->table;
    const char *find = hv_app_find_text(ctx->app);
    hv_strategies_place(st, d, ctx->body, r);
    hv_table_refresh(&t, &src, r[HV_STRATEGIES_LIST].h - 3);
    t.find = find[0] != '\0' ? find : st->filter[0] != '\0' ? st->filter : NULL;
    const struct frame f = {st, d, &t, hv_strategies_line_at(d, t.cursor),
                            hv_strategies_at(d, t.cursor)};
    for (int i = 0; i < HV_STRATEGIES_PANEL_N; i++) {
        enum hv_strategies_panel panel = (enum hv_strategies_panel)i;
        if (r[i].w <= 2 || r[i].h <= 2) {
            continue;
        }
        if (panel == HV_STRATEGIES_LIST) { /* its rows are parts */
            draw_panel(&f, panel, ctx->grid, r[i]);
        } else if (!hv_grid_part(ctx->grid, r[i], panel_version(&f, panel))) {
            draw_panel(&f, panel, ctx->grid, r[i]);
            hv_grid_part_end(ctx->grid);
        }
    }
}
