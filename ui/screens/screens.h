/**
 * The screens and what joins them to a session. Each screen is one file with one const table of
 * functions; the tables are listed once, in ui.c.
 */
#ifndef HV_UI_SCREENS_SCREENS_H
#define HV_UI_SCREENS_SCREENS_H

#include "ui/session/session.h"
#include "ui/view/app.h"

/** What every screen gets as its model. The session is shared; drawing only reads, or judges
 * lazily. */
struct hv_ui {
    struct hv_session *session;
    uint32_t gantt_row; /**< row the Gantt shows; 0 = the selected one */
};

extern const struct hv_view_ops hv_screen_cluster;
extern const struct hv_view_ops hv_screen_model;
extern const struct hv_view_ops hv_screen_strategies;
extern const struct hv_view_ops hv_screen_plans;
extern const struct hv_view_ops hv_screen_gantt;

/** A new application over the session: screens, `:` commands, save, undo. Owner: hv_app_free.
 * Borrows ui and keys. */
struct hv_app *hv_ui_app(struct hv_ui *ui, struct hv_keymap *keys, bool ascii);
/** Session of a model pointer as views get it. */
struct hv_session *hv_ui_session(const void *model);
/** Shows an error in the status line. */
void hv_ui_error(struct hv_app *app, const struct hv_err *err);

/** For every screen's table: takes in what workers said; redraws when something changed. */
unsigned hv_ui_tick(void *state, struct hv_app *app, int64_t now_ms);
/** For every screen's table: when the session wants to be looked at. */
int hv_ui_timeout_ms(const void *state, const void *model, int64_t now_ms);

#endif
