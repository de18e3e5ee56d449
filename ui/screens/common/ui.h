/**
 * The model of every screen, and the functions common to their tables. Includes no screen.
 */
#ifndef HV_UI_SCREENS_COMMON_UI_H
#define HV_UI_SCREENS_COMMON_UI_H

#include "ui/session/session.h"
#include "ui/view/app/app.h"

/** A place in a plan's Gantt chart selected by another screen; cleared at the next change
 * of the Gantt's window. */
struct hv_ui_place {
    uint32_t row; /**< 0 = none */
    size_t replica, stage;
    double at_s;
};

/** A lever with the value that another screen proposes; What-if takes it when it opens. */
struct hv_ui_turn {
    uint32_t row; /**< 0 = none */
    size_t lever; /**< number in hv_levers_read's list */
    double value;
};

/** The model of every screen. The session is shared; drawing only reads, or computes verdicts
 * lazily. */
struct hv_ui {
    struct hv_session *session;
    uint32_t gantt_row; /**< row the Gantt shows; 0 = the selected one */
    struct hv_ui_place place;
    struct hv_ui_turn turn;
    bool scripted;            /**< what screens keep between sessions is neither read nor written */
    unsigned tour;            /**< step of the tour, from 1 on; 0 = there is none */
    struct hv_keymap *keys;   /**< borrowed */
    struct hv_import *import; /**< read and to be shown; taken by the import screen */
    const char *import_words; /**< what it was read from; borrowed until the screen opens */
};

/** Session of a model pointer as views get it. */
struct hv_session *hv_ui_session(const void *model);
/** Shows an error in the status line. */
void hv_ui_error(struct hv_app *app, const struct hv_err *err);
/** For every screen's table: processes events of workers; redraws where something changed. */
unsigned hv_ui_tick(void *state, struct hv_app *app, int64_t now_ms);
/** For every screen's table: milliseconds until the session needs a tick, -1 = never. */
int hv_ui_timeout_ms(const void *state, const void *model, int64_t now_ms);
/** Reads files of other programs (or `local`) and opens the import screen over them; nothing
 * changes yet. An error goes to the status line. */
void hv_ui_import(struct hv_app *app, const char *words);

#endif
