/**
 * Terminals: one table of functions, two instances. Only term_curses*.c include curses.
 *
 * The curses terminal restores the screen on every way out: close, exit, INT/TERM/HUP/QUIT, fatal
 * signals, stop and continue, hv_bug and lack of memory.
 */
#ifndef HV_UI_TERM_TERM_H
#define HV_UI_TERM_TERM_H

#include "solver/base/status.h"
#include "ui/view/app/app.h"
#include "ui/view/grid/grid.h"
#include "ui/view/grid/theme.h"
#include "ui/view/keys/keys.h"

/** Colour wishes: `--color=auto|always|never`; auto honours NO_COLOR. */
enum hv_color { HV_COLOR_AUTO, HV_COLOR_ALWAYS, HV_COLOR_NEVER };

/** Settings of a terminal. */
struct hv_term_config {
    const struct hv_theme *theme; /**< borrowed */
    enum hv_color color;
    bool no_mouse;
    int w, h;                      /**< memory terminal only */
    const struct hv_event *events; /**< memory terminal: what wait_event gives, in order */
    size_t n_events;
};

struct hv_term;

/** A terminal's functions. */
struct hv_term_ops {
    const char *name;
    /**
     * Takes the terminal. Errors: HV_EUSAGE when standard output or input is no terminal, or TERM
     * is unset, dumb or unknown (with the advice to use the subcommands).
     */
    enum hv_status (*open)(const struct hv_term_config *c, struct hv_term **out,
                           struct hv_err *err);
    /** Restores the terminal and frees. */
    void (*close)(struct hv_term *t);
    /** Size in cells. */
    void (*size)(const struct hv_term *t, int *w, int *h);
    /** True when only ASCII can be shown. */
    bool (*is_ascii)(const struct hv_term *t);
    /** True when colours cannot be told apart, with the theme in use. */
    bool (*is_mono)(const struct hv_term *t);
    /** Shows the grid; only cells that changed since the last call are sent. O(cells) compare. */
    void (*present)(struct hv_term *t, const struct hv_grid *g);
    /**
     * Waits for an event at most timeout_ms (-1 = for ever, 0 = only what is pending); `fds` are
     * watched for reading too. HV_EV_NONE at the timeout. No other wake-ups.
     */
    struct hv_event (*wait_event)(struct hv_term *t, int timeout_ms, const int *fds, size_t n_fds);
    /** Enables or disables mouse reports (without them the terminal can select text) with the next
     * frame; false where there is no mouse. */
    bool (*mouse)(struct hv_term *t, bool on);
    /** Uses the theme from the next frame on; false for terminals without colours or attributes. */
    bool (*theme)(struct hv_term *t, const struct hv_theme *theme);
    /** Releases the terminal for a child program ($EDITOR), and opens it again. */
    void (*suspend)(struct hv_term *t);
    void (*resume)(struct hv_term *t);
};

/** The real terminal (ncursesw), in the locale that is set. At most one at a time. */
extern const struct hv_term_ops hv_term_curses;
/** Checks at once whether the real terminal can be opened. Errors: as its open. */
enum hv_status hv_term_curses_check(struct hv_err *err) HV_NODISCARD;
/** A terminal in memory: gives the configured events, then HV_EV_QUIT. */
extern const struct hv_term_ops hv_term_memory;
/** The last grid a memory terminal was given. Borrowed. */
const struct hv_grid *hv_term_memory_grid(const struct hv_term *t);
/** Number of cells that differed in the last present of a memory terminal. */
size_t hv_term_memory_changed(const struct hv_term *t);

/** Files the loop watches for its owner. */
struct hv_term_watch {
    /** Fills fds (cap entries) before each wait; returns how many; may be NULL. */
    size_t (*list)(void *ctx, int *fds, size_t cap);
    /** One of them became readable. */
    void (*ready)(void *ctx, struct hv_app *app, int fd);
    void *ctx;
};
/**
 * Runs the app until it ends: reads every pending event, then draws once (at most 30 times a second
 * while events keep coming), then waits. Returns the signal that ended it, or 0.
 */
int hv_term_run(const struct hv_term_ops *ops, struct hv_term *t, struct hv_app *app,
                const struct hv_term_watch *watch);

#endif
