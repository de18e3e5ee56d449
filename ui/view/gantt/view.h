/**
 * Gantt painter: a timeline into cells, and the pure functions that move the window over it.
 *
 * A lane is drawn by proportion: of any stretch of columns every kind of work has the share that it
 * has in the timeline (cells.h). A lane whose operations are about a column or wider shows them one
 * by one, with letters and numbers; else its columns show shares, which are queried per column, so
 * the cost is O(columns × lanes), however many operations there are. The same painter serves the
 * Gantt screen and `hetviz gantt`.
 */
#ifndef HV_UI_VIEW_GANTT_VIEW_H
#define HV_UI_VIEW_GANTT_VIEW_H

#include "solver/base/str.h"
#include "ui/view/grid/grid.h"
#include "ui/view/grid/theme.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/** Kinds of operations: constant, letter in the cell, fill character in ASCII, style, name. */
#define HV_GANTT_KIND_MAP(X)                            \
    X(F,     'f', '-', OP_F,     "forward")             \
    X(B,     'b', '=', OP_B,     "backward")            \
    X(W,     'w', '+', OP_W,     "weight gradient")     \
    X(R,     'r', ':', OP_R,     "recompute")           \
    X(COMM,  'c', '~', OP_COMM,  "communication")       \
    X(OTHER, 'o', '#', OP_OTHER, "other")
/* clang-format on */

/** Most arrows of a state. */
#define HV_GANTT_FLOWS 3

/** Kinds of operations. */
enum hv_gantt_kind {
#define X(id, letter, fill, style, name) HV_GANTT_##id,
    HV_GANTT_KIND_MAP(X)
#undef X
        HV_GANTT_KIND_N
};

/** One operation. Times in seconds from the start of the step. */
struct hv_gantt_span {
    double start_s, end_s;
    int64_t id;          /**< the source's own */
    int32_t micro_batch; /**< -1 = none */
    int32_t stage;       /**< -1 = none */
    enum hv_gantt_kind kind;
    bool critical;
};

/** One lane. Strings are borrowed until the next call into the source and may be user text. */
struct hv_gantt_lane {
    const char *name;     /**< "s1 h100-01 x8" */
    const char *sublabel; /**< "22 L 71%"; NULL = none */
};

/** The content of a window of a lane. */
struct hv_gantt_cover {
    struct hv_gantt_span span; /**< the span that covers most of it */
    double busy_frac;          /**< covered share of the window, 0…1 */
    size_t n_spans;            /**< spans that touch it; 0 = nothing there */
};

/** Who holds the most of a window of the critical path. */
struct hv_gantt_holder {
    int32_t
        row; /**< of the path's rows (hv_gantt_source.path_row); −1 = a transfer, −2 = nothing */
    int32_t stage; /**< its number, to be named by */
    double frac;   /**< its share of the window */
};

/** A search along a lane: criteria, direction and limit. */
struct hv_gantt_wanted {
    int kind; /**< enum hv_gantt_kind; -1 = any */
    int32_t micro_batch;
    bool back;      /**< towards the beginning */
    double until_s; /**< starts beyond this do not count */
};

/** A timeline as the painter sees it. Queries return false where there is no operation. */
struct hv_gantt_source {
    const void *ctx;
    size_t n_lanes;
    double end_s; /**< end of the last operation */
    void (*lane)(const void *ctx, size_t lane, struct hv_gantt_lane *out);
    /** The content of n adjacent windows; window i is [at_s[i], at_s[i + 1]). */
    void (*columns)(const void *ctx, size_t lane, const double *at_s, size_t n,
                    struct hv_gantt_cover *out);
    /** Shares of n adjacent windows that each kind has, 0…1, as they are seen: `out` is
     * [n][HV_GANTT_KIND_N]. */
    void (*shares)(const void *ctx, size_t lane, const double *at_s, size_t n, double *out);
    /** How many spans touch [t0, t1). Where there are no more than `most`, what is seen of them is
     * written in the order of time: without what another span hides, so one may be in several
     * parts. Room: 2 · most. */
    size_t (*spans)(const void *ctx, size_t lane, double t0_s, double t1_s, size_t most,
                    struct hv_gantt_span *out, size_t *n_out);
    /** Span that covers t (it holds its start, not its end). */
    bool (*at)(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out);
    /** First span that starts after t. */
    bool (*next)(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out);
    /** Last span that starts before t. */
    bool (*prev)(const void *ctx, size_t lane, double t_s, struct hv_gantt_span *out);
    /** First span wanted that starts after t (before t, going back), in the order of next and
     * prev: for lanes of very many spans; NULL = those two will do. */
    bool (*seek)(const void *ctx, size_t lane, double t_s, const struct hv_gantt_wanted *w,
                 struct hv_gantt_span *out);
    /** Largest memory in use (bytes) in [t0, t1) of a lane; NULL = no memory known. */
    double (*memory_max_bytes)(const void *ctx, size_t lane, double t0_s, double t1_s);
    /** Memory limit of a lane (bytes), HV_UNKNOWN when there is none; NULL with the above. */
    double (*memory_limit_bytes)(const void *ctx, size_t lane);
    /** Who holds the most of n adjacent windows of the critical path, of all lanes; NULL = no path
     * is known. O(n). */
    void (*path)(const void *ctx, const double *at_s, size_t n, struct hv_gantt_holder *out);
    /** The row of the path whose work a lane shows, −1 = none; NULL with the above. */
    int32_t (*path_row)(const void *ctx, size_t lane);
    struct hv_gantt_holder path_most; /**< of the whole path, where one is known */
};

/** An arrow in a lane: what goes to another lane, or comes from it. */
struct hv_gantt_flow {
    size_t lane;
    double at_s;
    bool up; /**< to lanes above, else below */
};

/** Window, cursor and switches: a value. */
struct hv_gantt_state {
    double t0_s, t1_s; /**< window shown */
    double cursor_s;
    double mark_s; /**< other end of an area, HV_UNKNOWN = none */
    size_t lane, top_lane;
    size_t pin_lane; /**< stays at the top when the others scroll */
    bool has_pin;
    bool show_memory, show_critical, show_minimap, show_cursor;
    bool color_only_idle; /**< idle cells blank instead of '.' */
    int label_w;          /**< labels are at least this wide, so that two charts line up */
    /** Source drawn dim below each lane that has a second row: the state before a change. NULL =
     * none. */
    const struct hv_gantt_source *ghost;
    struct hv_gantt_flow flows[HV_GANTT_FLOWS];
    size_t n_flows; /**< drawn in the last row of lanes that have several */
};

/** Layout for a given rectangle, shared by the painter and the mouse. */
struct hv_gantt_places {
    struct hv_rect axis, labels, chart, memory, critical, minimap;
    /** Rows that say which lanes are hidden above and below those shown; empty where none are. */
    struct hv_rect above, below;
    int rows_per_lane; /**< 1 … 3 */
    size_t n_shown;    /**< lanes that fit */
    size_t top_lane;   /**< first lane shown (cursor lane is always among them) */
    bool pinned;       /**< the first place shows the pinned lane, which is above the window */
};

/** Whole step in view, cursor at its start, memory and critical rows on. */
void hv_gantt_init(struct hv_gantt_state *st, const struct hv_gantt_source *src);
/** Whole step in view, cursor kept. */
void hv_gantt_fit(struct hv_gantt_state *st, const struct hv_gantt_source *src);
/** Zooms around a time that keeps its column; factor > 1 zooms in. Window stays inside the step. */
void hv_gantt_zoom(struct hv_gantt_state *st, const struct hv_gantt_source *src, double factor,
                   double at_s);
/** Shows [a, b] (any order), at least 1e-9 of the step. */
void hv_gantt_zoom_to(struct hv_gantt_state *st, const struct hv_gantt_source *src, double a_s,
                      double b_s);
/** Moves the window by a share of its width; the cursor stays inside. */
void hv_gantt_pan(struct hv_gantt_state *st, const struct hv_gantt_source *src, double frac);
/** Moves the cursor by columns of a chart `columns` wide; the window follows. */
void hv_gantt_move(struct hv_gantt_state *st, const struct hv_gantt_source *src, int n,
                   int columns);
/** Moves the cursor to a time; the window follows. */
void hv_gantt_goto(struct hv_gantt_state *st, const struct hv_gantt_source *src, double t_s);
/** Moves the cursor by lanes. */
void hv_gantt_lane_move(struct hv_gantt_state *st, const struct hv_gantt_source *src, int n);
/** Cursor to the next (1) or previous (-1) operation of the lane; false when there is none. */
bool hv_gantt_step(struct hv_gantt_state *st, const struct hv_gantt_source *src, int direction);
/** Cursor to the next or previous operation of the same micro-batch in any lane. O(spans passed ·
 * lanes). */
bool hv_gantt_step_mb(struct hv_gantt_state *st, const struct hv_gantt_source *src, int direction);
/**
 * Cursor to the next (direction 1, 0 = here first) or previous match of "f3" (kind and
 * micro-batch), "mb 3" or "3" (micro-batch), either with "@s2" (only in lanes whose name begins
 * so), or text in a lane's name. False when there is none.
 */
bool hv_gantt_find(struct hv_gantt_state *st, const struct hv_gantt_source *src, const char *text,
                   int direction);
/** The operation at the cursor. */
bool hv_gantt_at_cursor(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                        struct hv_gantt_span *out);

/** Columns that the labels of a source take in a rectangle of width w. */
int hv_gantt_label_width(const struct hv_gantt_source *src, int w);
/** Places for a rectangle. Empty rectangles where there is no room or a switch is off. */
struct hv_gantt_places hv_gantt_layout(const struct hv_gantt_state *st,
                                       const struct hv_gantt_source *src, struct hv_rect r);
/** The lane that is shown in place number `slot` from the top. */
size_t hv_gantt_lane_at(const struct hv_gantt_state *st, const struct hv_gantt_places *p,
                        size_t slot);
/** Paints everything into r. O(columns × lanes shown) queries. */
void hv_gantt_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                   struct hv_grid *g, struct hv_rect r);
/** Lane and time at a cell; false outside the chart. */
bool hv_gantt_hit(const struct hv_gantt_state *st, const struct hv_gantt_places *p, int x, int y,
                  size_t *lane, double *t_s);

/** Options of hv_gantt_print. */
struct hv_gantt_print {
    int width; /**< columns, at least 30 are used */
    bool ascii;
    bool color;     /**< ANSI colours of `theme` (256) */
    bool no_memory; /**< leave the memory of the fullest lane out */
    const struct hv_theme *theme;
};
/** Appends the whole timeline as lines of text: axis, lanes, memory of the fullest lane, legend. */
void hv_gantt_print(const struct hv_gantt_source *src, const struct hv_gantt_print *o,
                    struct hv_str *out);

#endif
