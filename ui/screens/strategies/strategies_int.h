/** Private to the files of the Strategies screen: its state, the lines of the list, its layout. */
#ifndef HV_UI_SCREENS_STRATEGIES_STRATEGIES_INT_H
#define HV_UI_SCREENS_STRATEGIES_STRATEGIES_INT_H

#include "solver/base/vec.h"
#include "ui/screens/common/ui.h"
#include "ui/screens/facts/plan_facts.h"
#include "ui/screens/strategies/form.h"

/** Panels. */
enum hv_strategies_panel {
    HV_STRATEGIES_LIST,
    HV_STRATEGIES_PARAMS,
    HV_STRATEGIES_PROGRESS,
    HV_STRATEGIES_PANEL_N
};

/* clang-format off */
/** Orders inside a kind: constant, word. */
#define HV_STRATEGIES_SORT_MAP(X)  \
    X(HV_STRATEGIES_BY_ID,    "id")     \
    X(HV_STRATEGIES_BY_TIME,  "time")   \
    X(HV_STRATEGIES_BY_YEAR,  "year")   \
    X(HV_STRATEGIES_BY_TRUST, "trust")
/* clang-format on */
enum hv_strategies_sort {
#define X(c, name) c,
    HV_STRATEGIES_SORT_MAP(X)
#undef X
        HV_STRATEGIES_SORT_N
};
/** The order by a column of the list, or HV_STRATEGIES_SORT_N: by none. */
enum hv_strategies_sort hv_strategies_sort_of(size_t column);
/** Word of an order. */
const char *hv_strategies_sort_name(enum hv_strategies_sort sort);

/** Headings: the kinds, and the one of broken plugins behind them. */
#define HV_HEADINGS ((size_t)HV_KIND_N + 1)
/** No strategy. */
#define HV_NO_STRATEGY SIZE_MAX

/** A line of the list: a strategy under its heading, or the heading itself. */
struct hv_strategies_line {
    enum hv_kind kind;
    size_t plugin; /**< number in `plugins`, HV_NO_STRATEGY: the heading */
};

/** Where a text was found. */
enum hv_strategy_match { HV_MATCH_NONE, HV_MATCH_TEXT, HV_MATCH_NAME };

/** What is known of one strategy. */
struct hv_strategy_facts {
    const struct hv_row *row;     /**< its latest run, or NULL */
    bool judged;                  /**< it has a plan with a verdict, of which are: */
    bool fits, exact;             /**< no rule is broken; no stale weights */
    size_t n_approximated;        /**< parts */
    double iteration_s;           /**< HV_UNKNOWN: none */
    enum hv_strategy_match match; /**< of the filter */
    size_t same;                  /**< strategy before it with an equal plan, or HV_NO_STRATEGY */
    json_t *plan;                 /**< `text` was made from it, for this cluster */
    uint64_t cluster;             /**< generation */
    char *text;                   /**< hv_plan_same_text, or NULL */
};

/** What is known of a heading. */
struct hv_heading_facts {
    size_t n, n_shown;      /**< strategies, those that pass the filter; the others count these */
    size_t n_active, n_run; /**< queued or running; ended */
    size_t n_not, n_misfit; /**< do not apply; have a plan that breaks a rule */
    size_t best;            /**< the fastest exact one, else the fastest; HV_NO_STRATEGY */
    size_t first;           /**< strategy that is shown, or HV_NO_STRATEGY */
    const char *reason;     /**< why the first of those does not apply, or NULL */
};

struct hv_strategies;

/** The lines of the list and what they show. Brought up to date while drawing, too. */
struct hv_strategies_data {
    struct hv_session *s;
    const struct hv_strategies *st;
    const struct hv_plugin *plugins;
    size_t n;
    struct hv_strategy_facts *facts; /**< [n] */
    struct hv_heading_facts kinds[HV_HEADINGS];
    struct hv_strategies_lines {
        struct hv_strategies_line *items;
        size_t n, cap;
    } lines;          /**< an HV_VEC */
    bool in_seconds;  /**< times are in seconds, else each in its own unit */
    int name_w;       /**< width of the first column while drawing, 0: not known */
    uint64_t version; /**< of everything above: a hash */
};

/** Folding, order and filter as they were written last. */
struct hv_strategies_kept {
    char filter[64];
    unsigned open;
    enum hv_strategies_sort sort;
    bool descending;
    int64_t since_ms; /**< since when they have changed; 0 = they have not */
};

/** State of the screen. */
struct hv_strategies {
    struct hv_table table;
    enum hv_strategies_panel focus;
    struct hv_strategy_form form;
    char filter[64];
    unsigned open; /**< bits of the headings whose rows are shown */
    unsigned shut; /**< the same while there is a filter: those that are not */
    enum hv_strategies_sort sort;
    bool descending;
    uint32_t followed; /**< row that was selected because the cursor is on its strategy */
    struct hv_strategies_data *data;
    struct hv_strategies_kept kept;
};

/* ---- match.c ---- */

/** Looks for a word in id and title, or in kind, citation, summary and knobs; appends the places
 * found: "id, knob zero.stage = 2". O(texts). */
enum hv_strategy_match hv_strategy_match(const struct hv_plugin *p, const char *word,
                                         struct hv_str *where);

/* ---- data.c ---- */

/** Brings the data up to date with the session, the filter and the folding. O(strategies · rows),
 * and an evaluation for every new plan. */
struct hv_strategies_data *hv_strategies_sync(const struct hv_strategies *st, struct hv_session *s);
/** Frees it. NULL is fine. */
void hv_strategies_data_free(struct hv_strategies_data *d);
/** True where the strategies of the kind stand in the list without a heading. */
bool hv_strategies_is_plain(enum hv_kind kind);
/** True where its rows are shown. */
bool hv_strategies_is_open(const struct hv_strategies *st, enum hv_kind kind);
/** The word of a heading: a kind, or "broken". */
const char *hv_strategies_heading(enum hv_kind kind);
/** Numbers of the strategies under a heading that pass the filter, in the order of the list; `out`
 * has room for d->n. Returns how many. */
size_t hv_strategies_under(const struct hv_strategies *st, const struct hv_strategies_data *d,
                           enum hv_kind kind, size_t *out);
/** All lines as if every heading was open and there was no filter; the caller frees them. Returns
 * how many. */
struct hv_strategies_line *hv_strategies_all_lines(const struct hv_strategies *st,
                                                   const struct hv_strategies_data *d, size_t *n);
/** Line under the cursor; NULL when there is none. */
const struct hv_strategies_line *hv_strategies_line_at(const struct hv_strategies_data *d,
                                                       size_t row);
/** Strategy in a line of the list, NULL for headings. */
const struct hv_plugin *hv_strategies_at(const struct hv_strategies_data *d, size_t row);
/** True where the plan of strategy a is ahead of that of b: exact plans come before others, then
 * shorter iterations; equal ones in the order of ids. Both have times. */
bool hv_strategy_is_faster(const struct hv_strategies_data *d, size_t a, size_t b);
/** The baseline that others are compared with: the first one with a plan, or HV_NO_STRATEGY. */
size_t hv_strategies_baseline(const struct hv_strategies_data *d);

/* ---- table.c ---- */

/** Appearance of the table. */
extern const struct hv_table_look hv_strategies_look;
/** Table source over the lines. */
struct hv_table_source hv_strategies_source(const struct hv_strategies_data *d);
/** What the strategies under a heading decide, a few words. */
const char *hv_strategies_about(enum hv_kind kind);
/** Appends a time of the list. */
void hv_strategies_add_time(const struct hv_strategies_data *d, double s, struct hv_str *out);
/** Appends "whole", "~2", "= zero2", the line of an error, or why it does not apply. */
void hv_strategies_add_trust(const struct hv_strategies_data *d, size_t plugin, struct hv_str *out);

/* ---- knobs.c ---- */

/** Appends a line per knob in which the second plan differs from the first: "schedule 1f1b ->
 * zb-h1". O(stages). */
void hv_strategies_unlike(const struct hv_plan_facts pair[2], struct hv_str *out);

/* ---- panel.c, kind_panel.c ---- */

/** Draws title, citation, summary, knobs and trust, then state, progress, chart of best and bound,
 * reason and the end of the log. O(cells + points). */
void hv_strategy_panel_draw(const struct hv_strategies *st, const struct hv_strategies_data *d,
                            size_t plugin, struct hv_grid *g, struct hv_rect r);
/** Draws what the kind decides, its fastest systems, and what its keys do. */
void hv_strategy_kind_draw(const struct hv_strategies *st, const struct hv_strategies_data *d,
                           enum hv_kind kind, struct hv_grid *g, struct hv_rect r);

/* ---- run.c ---- */

/** Queues the strategy of a line, or all under a heading that pass the filter and do not run yet.
 * `select`: a single run is selected for the other screens. */
void hv_strategies_run(const struct hv_strategies *st, struct hv_app *app,
                       const struct hv_strategies_data *d, const struct hv_strategies_line *line,
                       bool select);
/** Cancels the latest run of the strategy, or of all under the heading; false where none runs. */
bool hv_strategies_stop(const struct hv_strategies *st, struct hv_app *app,
                        const struct hv_strategies_data *d, const struct hv_strategies_line *line);
/** Selects the plan of the line under the cursor, of a heading its fastest one, once: what the
 * user selects on other screens afterwards stays selected. */
void hv_strategies_follow(struct hv_strategies *st, const struct hv_strategies_data *d,
                          const struct hv_strategies_line *line);

/* ---- fold.c ---- */

/** Shows or hides the rows of a heading. */
void hv_strategies_fold(struct hv_strategies *st, enum hv_kind kind, bool open);
/** Folding, order and filter as they were kept with the workspace. */
void hv_strategies_restore(struct hv_strategies *st, const struct hv_session *s);
/** Keeps them now. */
void hv_strategies_keep(struct hv_strategies *st, const struct hv_session *s);
/** Keeps them where they changed a second ago or more, as unsaved edits are: a program that is
 * killed does not lose them. */
void hv_strategies_keep_when_due(struct hv_strategies *st, const struct hv_session *s,
                                 int64_t now_ms);
/** Milliseconds until that is due, -1 = nothing changed. */
int hv_strategies_keep_timeout_ms(const struct hv_strategies *st, int64_t now_ms);

/* ---- draw.c ---- */

/** Panels for a body; empty ones are not shown. */
void hv_strategies_place(const struct hv_strategies *st, const struct hv_strategies_data *d,
                         struct hv_rect body, struct hv_rect out[HV_STRATEGIES_PANEL_N]);
/** Draws everything. */
void hv_strategies_draw(const void *state, const void *model, const struct hv_view_ctx *ctx);

#endif
