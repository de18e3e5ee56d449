/** A small view for tests of the application: a table of numbered rows. Not part of the program. */
#ifndef HV_TESTS_SCREEN_TOY_VIEW_H
#define HV_TESTS_SCREEN_TOY_VIEW_H

#include "ui/view/app/app.h"

#include <stdio.h>
#include <string.h>

/** What the toy's views show. */
struct toy_model {
    size_t n_rows;
    bool unsaved;
    char last_command[256];
};

struct toy_state {
    struct hv_table table;
};

static void toy_cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    (void)ctx;
    if (column == 0) {
        hv_str_addf(out, "row-%zu", row);
    } else {
        hv_str_addf(out, "%zu", row * row);
    }
}

static const struct hv_column toy_columns[] = {{"NAME", HV_LEFT, 10, 1}, {"VALUE", HV_RIGHT, 8, 0}};
static const struct hv_table_look toy_look = {toy_columns, 2, true, "no rows"};

static struct hv_table_source toy_source(const void *model)
{
    const struct toy_model *m = model;
    return (struct hv_table_source){.ctx = m, .n_rows = m->n_rows, .cell = toy_cell};
}

static void toy_open(void *state, struct hv_app *app)
{
    (void)app;
    ((struct toy_state *)state)->table.sort_column = -1;
}

static void toy_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct toy_state *st = state;
    struct hv_table_source s = toy_source(model);
    hv_grid_box(ctx->grid, ctx->body, "Toy", true, HV_STYLE_FRAME_FOCUS);
    hv_table_draw(&st->table, &s, &toy_look, ctx->grid, hv_rect_inner(ctx->body));
}

static unsigned toy_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct toy_state *st = state;
    struct hv_table_source s = toy_source(hv_app_model(app));
    struct hv_err err;
    if (a == HV_ACT_OPEN) {
        return hv_app_open(app, "detail", &err) == HV_OK ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
    }
    return hv_table_action(&st->table, &s, a, hv_app_body(app).h - 3)
               ? HV_APP_HANDLED | HV_APP_REDRAW
               : 0;
}

static unsigned toy_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct toy_state *st = state;
    struct hv_table_source s = toy_source(hv_app_model(app));
    return hv_table_find(&st->table, &s, &toy_look, text, direction)
               ? HV_APP_HANDLED | HV_APP_REDRAW
               : 0;
}

static unsigned toy_command(void *model, struct hv_app *app, const char *line)
{
    struct toy_model *m = model;
    (void)snprintf(m->last_command, sizeof m->last_command, "%s", line);
    hv_app_message(app, HV_MSG_INFO, "ran %s", line);
    return HV_APP_REDRAW;
}

static bool toy_unsaved(const void *model)
{
    return ((const struct toy_model *)model)->unsaved;
}

static const enum hv_action toy_bar[] = {HV_ACT_OPEN, HV_ACT_FIND, HV_ACT_MARK, HV_ACT_NONE};
static const struct hv_view_ops toy_list = {.name = "cluster",
                                            .title = "Cluster",
                                            .short_title = "Clu",
                                            .tab = 1,
                                            .state_size = sizeof(struct toy_state),
                                            .keybar = toy_bar,
                                            .open = toy_open,
                                            .draw = toy_draw,
                                            .action = toy_action,
                                            .find = toy_find};
static const struct hv_view_ops toy_detail = {.name = "detail",
                                              .title = "Detail",
                                              .short_title = "Det",
                                              .state_size = sizeof(struct toy_state),
                                              .open = toy_open,
                                              .draw = toy_draw};
static const struct hv_view_ops toy_second = {.name = "model",
                                              .title = "Model",
                                              .short_title = "Mod",
                                              .tab = 2,
                                              .state_size = sizeof(struct toy_state),
                                              .open = toy_open,
                                              .draw = toy_draw,
                                              .action = toy_action};
static const struct hv_view_ops *const toy_views[] = {&toy_list, &toy_second, &toy_detail};

/** An application on a model; `keys` is borrowed. */
static inline struct hv_app *toy_app(struct toy_model *m, struct hv_keymap *keys, bool ascii)
{
    struct hv_app_config c = {.model = m,
                              .views = toy_views,
                              .n_views = 3,
                              .command = toy_command,
                              .unsaved = toy_unsaved,
                              .keys = keys,
                              .ascii = ascii};
    return hv_app_new(&c);
}

#endif
