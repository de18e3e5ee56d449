/**
 * The screens and what joins them to a session. Each screen is one file with one const table of
 * functions; the tables are listed once, in ui.c.
 */
#ifndef HV_UI_SCREENS_SCREENS_H
#define HV_UI_SCREENS_SCREENS_H

#include "ui/screens/facts/plan_facts.h"
#include "ui/session/session.h"
#include "ui/view/app/app.h"

/** A place in a plan's Gantt that another screen points at; taken when the Gantt moves on. */
struct hv_ui_place {
    uint32_t row; /**< 0 = none */
    size_t replica, stage;
    double at_s;
};

/** A lever that another screen wants to see turned in What-if; taken there. */
struct hv_ui_turn {
    uint32_t row; /**< 0 = none */
    size_t lever; /**< number in hv_levers_read's list */
    double value;
};

/** What every screen gets as its model. The session is shared; drawing only reads, or judges
 * lazily. */
struct hv_ui {
    struct hv_session *session;
    uint32_t gantt_row; /**< row the Gantt shows; 0 = the selected one */
    struct hv_ui_place place;
    struct hv_ui_turn turn;
    unsigned tour;            /**< step of the tour, from 1 on; 0 = there is none */
    struct hv_keymap *keys;   /**< borrowed */
    struct hv_import *import; /**< read and to be shown; taken by the import screen */
    const char *import_words; /**< what it was read from; borrowed until the screen opens */
};

extern const struct hv_view_ops hv_screen_cluster;
extern const struct hv_view_ops hv_screen_model;
extern const struct hv_view_ops hv_screen_strategies;
extern const struct hv_view_ops hv_screen_plans;
extern const struct hv_view_ops hv_screen_gantt;
extern const struct hv_view_ops hv_screen_explain;
extern const struct hv_view_ops hv_screen_what_if;
extern const struct hv_view_ops hv_screen_console;
extern const struct hv_view_ops hv_screen_welcome;
extern const struct hv_view_ops hv_screen_import;

/** A new application over the session: screens, `:` commands, save, undo. Owner: hv_app_free.
 * Borrows ui and keys. */
struct hv_app *hv_ui_app(struct hv_ui *ui, struct hv_keymap *keys, bool ascii);
/** All screens. */
const struct hv_view_ops *const *hv_ui_screens(size_t *n);
/** Starts the tour, or ends it (tour.c). */
void hv_ui_tour(struct hv_ui *ui, struct hv_app *app);
/** Appends the step that comes next, for hv_app_config. */
void hv_ui_tour_guide(const void *model, const char *view, struct hv_str *out);
/** Goes on when the action was the one of the step, for hv_app_config. */
void hv_ui_tour_did(void *model, struct hv_app *app, const char *view, enum hv_action a);
/**
 * Does what a `:` line says about the screens: `set ascii`, `set noascii`, `set mouse`, `set
 * nomouse`, or the name of an action
 * ("gantt-fit", on the Gantt also "fit"), with what its question is to be answered behind it
 * ("goto 1.4s"). False when it is none of these: a command of the session (ui_command.c).
 */
bool hv_ui_command(struct hv_app *app, const char *line);
/** Completion of `:` for hv_app_config: the session's, then screens and actions. */
bool hv_ui_complete(const void *model, const char *text, size_t n, struct hv_str *out);
/** Few words about a `:` line that is a command or an action without arguments (hv_describe_fn). */
void hv_ui_describe(const void *model, const char *line, struct hv_str *out);
/** Session of a model pointer as views get it. */
struct hv_session *hv_ui_session(const void *model);
/** The row that screens about one plan show: the selected one, else the first with a plan; or NULL.
 */
const struct hv_row *hv_ui_plan_row(const struct hv_session *s);
/** Selects the row before or after `id` that has a plan; says so when there is none. */
void hv_ui_switch_plan(struct hv_ui *ui, struct hv_app *app, uint32_t id, int step);
/** What the key bar shows then; NULL while there is a plan. */
const enum hv_action *hv_ui_no_plan_keybar(const struct hv_row *row);
/** Draws why there is no plan (or nothing of it) to show and what to press. Facts with row NULL:
 * there is none yet; `reason` "": what the judge found. */
void hv_ui_no_plan(const struct hv_plan_facts *facts, const char *reason, struct hv_grid *g,
                   struct hv_rect body);
/** Reads files of other programs (or `local`) and shows what they come to; nothing changes yet. An
 * error goes to the status line. */
void hv_ui_import(struct hv_app *app, const char *words);
/** Shows an error in the status line. */
void hv_ui_error(struct hv_app *app, const struct hv_err *err);

/** For every screen's table: takes in what workers said; redraws when something changed. */
unsigned hv_ui_tick(void *state, struct hv_app *app, int64_t now_ms);
/** For every screen's table: when the session wants to be looked at. */
int hv_ui_timeout_ms(const void *state, const void *model, int64_t now_ms);

#endif
