/**
 * The headless application: a stack of views, prompts, help, key dispatch; no terminal, no session.
 *
 * The event loop is: hv_app_feed for every pending event, hv_app_draw when hv_app_is_dirty, then
 * wait hv_app_timeout_ms. Views get the caller's `model` pointer; ui/view never dereferences it.
 */
#ifndef HV_UI_VIEW_APP_APP_H
#define HV_UI_VIEW_APP_APP_H

#include "solver/base/status.h"
#include "ui/view/grid/grid.h"
#include "ui/view/grid/theme.h"
#include "ui/view/keys/keys.h"
#include "ui/view/widget/widgets.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hv_app;

/** Flags returned by handlers, or-ed. */
enum hv_app_flag {
    HV_APP_HANDLED = 1, /**< the event is consumed */
    HV_APP_REDRAW = 2,  /**< draw again */
    HV_APP_CLOSE = 4,   /**< close this view */
    HV_APP_QUIT = 8 /**< quit the program (after a confirmation where there are unsaved changes) */
};

/** Drawing context of a view: its rectangle and the properties of the screen. */
struct hv_view_ctx {
    struct hv_grid *grid;
    struct hv_rect body;
    const struct hv_app *app;
};

/** A view: a const table. Functions may be NULL where noted. */
struct hv_view_ops {
    const char *name;        /**< for key maps and commands: "cluster" */
    const char *title;       /**< tab: "Cluster" */
    const char *short_title; /**< tab below 110 columns: "Clu" */
    int tab; /**< 1 … 9: opened by that key and shown as a tab; 0 = opened on top */
    /** Stands for the whole program: its close key quits, although other views lie below. */
    bool quits;
    size_t state_size;            /**< bytes of zeroed state that open gets */
    const enum hv_action *keybar; /**< ends with HV_ACT_NONE; HELP and CLOSE are added */
    /** What the key bar shows instead where the screen has nothing to show these for; NULL =
     * `keybar` stays. May be NULL. */
    const enum hv_action *(*keybar_now)(const void *state, const void *model);
    /** Keys of the field in focus, shown in place of the key bar; NULL = none is. May be NULL. */
    const struct hv_key_hint *(*hints)(const void *state, const void *model);
    const char *help; /**< extra lines of help (mouse, commands); NULL */
    /** Called once when opened; may be NULL. */
    void (*open)(void *state, struct hv_app *app);
    /** Releases what open allocated; may be NULL. */
    void (*close)(void *state, struct hv_app *app);
    /** Draws into ctx->body only; changes nothing but the grid. */
    void (*draw)(const void *state, const void *model, const struct hv_view_ctx *ctx);
    /** An action (key, click on the key bar, help). */
    unsigned (*action)(void *state, struct hv_app *app, enum hv_action a);
    /** Raw events before the key map: text fields, mouse. Return 0 to let them pass; may be NULL.
     */
    unsigned (*event)(void *state, struct hv_app *app, const struct hv_event *ev);
    /** `/`: direction 0 = from here, 1 next, -1 previous. HANDLED when found; may be NULL. */
    unsigned (*find)(void *state, struct hv_app *app, const char *text, int direction);
    /** Status line while no message is shown; may be NULL. */
    void (*status)(const void *state, const void *model, struct hv_str *out);
    /** Called before drawing when due; returns flags; may be NULL. */
    unsigned (*tick)(void *state, struct hv_app *app, int64_t now_ms);
    /** Milliseconds until tick must be called, -1 = never; may be NULL (= never). */
    int (*timeout_ms)(const void *state, const void *model, int64_t now_ms);
};

/** Kinds of messages: errors stay until a key, others until the next event that redraws. */
enum hv_message { HV_MSG_INFO, HV_MSG_WARNING, HV_MSG_ERROR };

/** Appends few words about a `:` line ("PATH  write a picture"), nothing when there are none. */
typedef void hv_describe_fn(const void *model, const char *line, struct hv_str *out);

/** Configuration of an application. */
struct hv_app_config {
    void *model; /**< given to the views */
    const struct hv_view_ops *const *views;
    size_t n_views;
    /** Runs a `:` command line; the result goes to hv_app_message. Flags QUIT and REDRAW count. */
    unsigned (*command)(void *model, struct hv_app *app, const char *line);
    /** Actions no view took (save, undo, …); may be NULL. */
    unsigned (*action)(void *model, struct hv_app *app, enum hv_action a);
    hv_complete_fn *complete;      /**< completion of `:`; ctx is the model; may be NULL */
    hv_describe_fn *describe;      /**< of the list of completions; may be NULL */
    hv_complete_fn *complete_path; /**< of files, for hv_app_ask_path; may be NULL */
    /** Text right in the tabs row ("lab.hv*"); may be NULL. */
    void (*project)(const void *model, struct hv_str *out);
    /** True where there are unsaved changes; may be NULL. */
    bool (*unsaved)(const void *model);
    /** Called with every message that is shown, for a log; may be NULL. */
    void (*said)(void *model, enum hv_message kind, const char *text);
    /** A line of guidance for the view on top, above the status row; nothing appended = no such
     * line. May be NULL. */
    void (*guide)(const void *model, const char *view, struct hv_str *out);
    /** Called with every action performed, and the view that was on top; may be NULL. */
    void (*did)(void *model, struct hv_app *app, const char *view, enum hv_action a);
    struct hv_keymap *keys; /**< borrowed */
    bool ascii;
    bool mono; /**< colours cannot be told apart */
};

/** Least time for which the answer to a key is shown before a notice replaces it, milliseconds. */
#define HV_APP_ANSWER_MS 4000

/** New application with the first tab open. Owner: caller frees with hv_app_free. */
struct hv_app *hv_app_new(const struct hv_app_config *config);
/** Closes all views and frees. */
void hv_app_free(struct hv_app *app);
/** Handles one event; false where the program ends. */
bool hv_app_feed(struct hv_app *app, const struct hv_event *ev);
/** Draws everything; resizes the grid to the app's size. Clears the dirty mark. O(cells). */
void hv_app_draw(struct hv_app *app, struct hv_grid *g);
/** Appends what the view on top (or the help) shows as lines of words (grid/plain.h). The app's
 * size limits the number of rows. */
void hv_app_plain(struct hv_app *app, struct hv_str *out);
/** Appends the status line of the view on top. */
void hv_app_status(const struct hv_app *app, struct hv_str *out);
/** Keys shown in the key bar: up to `cap` actions; returns how many there are. */
size_t hv_app_bar_actions(const struct hv_app *app, enum hv_action *out, size_t cap);
/**
 * The question in the status row, or NULL; `typed` (may be NULL) = the answer so far. An open
 * question receives all keys.
 */
const char *hv_app_question(const struct hv_app *app, const char **typed);
/** Answers the question as if `text` had been typed and accepted; closes it when text is NULL. */
void hv_app_reply(struct hv_app *app, const char *text);
/** True where a redraw is due. */
bool hv_app_is_dirty(const struct hv_app *app);
/** Milliseconds until hv_app_tick must be called without an event; -1 = never. */
int hv_app_timeout_ms(const struct hv_app *app);
/** Runs due ticks with the clock given. */
void hv_app_tick(struct hv_app *app, int64_t now_ms);
/** True after quit. */
bool hv_app_is_done(const struct hv_app *app);
/** Does an action as if its key had been pressed. */
bool hv_app_do(struct hv_app *app, enum hv_action a);
/** Functions to release the terminal to another program, to open it again, to enable or disable
 * mouse reports (false: no mouse), and to set the theme; all may be NULL. */
struct hv_app_terminal {
    void (*give)(void *ctx);
    void (*take)(void *ctx, struct hv_app *app);
    bool (*mouse)(void *ctx, bool on);
    enum hv_status (*theme)(void *ctx, const char *name, struct hv_err *err);
    void *ctx;
};
/** Sets the terminal of the app; {0} = none that must be released. */
void hv_app_set_terminal(struct hv_app *app, struct hv_app_terminal terminal);
/** Runs a function (an editor, a pager) with the terminal released, then draws again. */
void hv_app_outside(struct hv_app *app, void (*run)(void *ctx), void *ctx);
/** Enables or disables mouse reports; false where there is no mouse. */
bool hv_app_set_mouse(struct hv_app *app, bool on);
/** Draws in another theme from now on (hv_theme_named). Errors: also HV_ENO without a terminal. */
enum hv_status hv_app_set_theme(struct hv_app *app, const char *name,
                                struct hv_err *err) HV_NODISCARD;
/** Opens the help of the view on top, filtered by a word; "" = all entries. */
void hv_app_help(struct hv_app *app, const char *word);
/** Opens the `:` prompt with a text in it. */
void hv_app_type(struct hv_app *app, const char *line);
/** Runs a `:` command line as if it had been typed. */
void hv_app_command(struct hv_app *app, const char *line);
/** Rebuilds the key bar after a change of the key map. */
void hv_app_keys_changed(struct hv_app *app);
/** Schedules a redraw (after progress of a job). */
void hv_app_touch(struct hv_app *app);

/** Opens the view with that name: a tab is switched to (its state is kept), others go on top. */
enum hv_status hv_app_open(struct hv_app *app, const char *name, struct hv_err *err) HV_NODISCARD;
/** Name of the view on top. */
const char *hv_app_view(const struct hv_app *app);
/** Moves the view on top to the first item with `text`, from its cursor on; false when there is
 * none. Unlike a search it shows no message and leaves hv_app_find_text as it is. */
bool hv_app_goto(struct hv_app *app, const char *text);
/** The caller's model. */
void *hv_app_model(const struct hv_app *app);
/** The rectangle the view on top draws into. */
struct hv_rect hv_app_body(const struct hv_app *app);
/** Shows a message in the status line; text is cleaned. */
void hv_app_message(struct hv_app *app, enum hv_message kind, const char *fmt, ...) HV_PRINTF(3, 4);
/**
 * Shows a notice about an event without user input (a run ended). The notice waits until the answer
 * to the last key has been shown for HV_APP_ANSWER_MS, or was cleared; it never replaces an error.
 * Of several waiting notices the last is shown with the number of the others.
 */
void hv_app_notice(struct hv_app *app, const char *text);
/** Clears the message; a waiting notice may follow. */
void hv_app_clear_message(struct hv_app *app);
/** The message shown, "" when there is none. */
const char *hv_app_message_text(const struct hv_app *app);
/** Text last searched for, "" when none. */
const char *hv_app_find_text(const struct hv_app *app);
/** Switches ASCII drawing. */
void hv_app_set_ascii(struct hv_app *app, bool ascii);
/** Switches drawing that needs no colours; the next frame follows. */
void hv_app_set_mono(struct hv_app *app, bool mono);

/** Answer to a question. */
typedef unsigned hv_app_answer(void *ctx, struct hv_app *app, const char *text);
/**
 * Opens a prompt for a line of text in the status row (`label`, start value); `done` gets it on
 * Enter and is not called on Esc.
 */
void hv_app_ask(struct hv_app *app, const char *label, const char *start, hv_app_answer *done,
                void *ctx);
/** As hv_app_ask for a file: Tab completes it. */
void hv_app_ask_path(struct hv_app *app, const char *label, const char *start, hv_app_answer *done,
                     void *ctx);

#endif
