/** The inside of an app, shared by its files: app.c, input.c, draw.c. */
#ifndef HV_UI_VIEW_APP_APP_INT_H
#define HV_UI_VIEW_APP_APP_INT_H

#include "ui/view/app/app.h"
#include "ui/view/app/help.h"
#include "ui/view/grid/layout.h"

#define HV__MAX_TABS  9
#define HV__MAX_STACK 16
#define HV__MAX_BAR   32

/** Kinds of questions in the status row. */
enum hv__prompt {
    HV__PROMPT_NONE,
    HV__PROMPT_COMMAND,
    HV__PROMPT_FIND,
    HV__PROMPT_ASK,
    HV__PROMPT_QUIT
};

/** An open view. */
struct hv__open_view {
    const struct hv_view_ops *ops;
    void *state;
};

/** The application. */
struct hv_app {
    struct hv_app_config config;
    struct hv__open_view tabs[HV__MAX_TABS + 1]; /* by tab number; ops NULL = never opened */
    int tab;
    struct hv__open_view stack[HV__MAX_STACK]; /* on top of the tab */
    size_t n_stack;
    int w, h;
    bool dirty, done, in_help;
    struct hv_help help;
    enum hv__prompt prompt;
    struct hv_line command, find, ask;
    hv_app_answer *answer;
    void *answer_ctx;
    char ask_label[80], find_text[256], message[512];
    enum hv_message message_kind;
    int64_t message_ms; /* when the message was first ticked; -1 = not yet */
    char notice[512];   /* waits behind the message */
    size_t n_notices;
    int64_t now_ms;
    struct hv_app_terminal terminal;
    struct hv_str pasted; /* what has come of a pasted text */
    bool paste_cut;       /* and there was more */
    struct hv_keybar_item bar[HV__MAX_BAR];
    size_t n_bar;
    const struct hv_view_ops *bar_of;    /* the view whose keys `bar` holds; NULL: outdated */
    const enum hv_action *bar_list;      /* the list it was made of */
    const struct hv_key_hint *bar_hints; /* or these */
    size_t bar_depth;                    /* n_stack then */
    int bar_width;
    uint64_t bar_hash; /* of its words */
};

/** The view on top. */
struct hv__open_view *hv__app_top(struct hv_app *app);
const struct hv__open_view *hv__app_top_const(const struct hv_app *app);
/** The view of a tab, NULL when there is none. */
const struct hv_view_ops *hv__app_tab_ops(const struct hv_app *app, int tab);
/** The frame; where there is guidance and room, a row between body and status is left for it. */
struct hv_frame hv__app_frame(const struct hv_app *app);
/** Goes to a tab, closing what is on top of the one before; false when there is none. */
bool hv__app_show_tab(struct hv_app *app, int tab);
/** Ends the program, or opens the confirmation where there are unsaved changes. */
void hv__app_try_quit(struct hv_app *app);
/** Closes the view on top; the last one quits. */
void hv__app_close_top(struct hv_app *app);
/** Applies the flags returned by a handler (enum hv_app_flag). */
void hv__app_apply(struct hv_app *app, unsigned flags);
/** Tabs in order of their numbers; titles are put into the two arrays of HV__MAX_TABS. */
struct hv_tabs hv__app_tabs(const struct hv_app *app, const char **titles, const char **shorts);

#endif
