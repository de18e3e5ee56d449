/**
 * Widgets: table, form, line editor, bars, charts, tabs and key bar, drawn into a grid.
 *
 * Drawing never changes a widget. State structs are plain; for those with text buffers the owner is
 * documented.
 */
#ifndef HV_UI_VIEW_WIDGET_WIDGETS_H
#define HV_UI_VIEW_WIDGET_WIDGETS_H

#include "ui/view/grid/grid.h"
#include "ui/view/grid/theme.h"
#include "ui/view/keys/keys.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- table ------------------------------------------------------------------------------- */

/** A column: `min` columns wide at least; `flex` > 0 takes a share of what is left; `fixed` width
 * columns are left out from the right when there is no room. */
struct hv_column {
    const char *title;
    enum hv_align align;
    int min, flex;
};

/** Marks of a row, or-ed. */
enum hv_row_flag {
    HV_ROW_MARKED = 1,  /**< '*' */
    HV_ROW_PROBLEM = 2, /**< '!' */
    HV_ROW_GOOD = 4,    /**< 'P' (front) */
    HV_ROW_DIM = 8,
    HV_ROW_CHECK = 16,  /**< 'v' */
    HV_ROW_CLOSED = 32, /**< a heading whose rows are hidden: '▸' */
    HV_ROW_OPENED = 64  /**< a heading whose rows follow: '▾' */
};

/** Source of rows. Only visible rows are queried. */
struct hv_table_source {
    const void *ctx;
    size_t n_rows;
    /** Appends the text of a cell to `out` (empty on entry). */
    void (*cell)(const void *ctx, size_t row, size_t column, struct hv_str *out);
    /** hv_row_flag bits; NULL = none. */
    unsigned (*flags)(const void *ctx, size_t row);
    /** Identity that survives sorting and reloading; NULL = the row number. */
    uint64_t (*id)(const void *ctx, size_t row);
    /** Version of the text that `cell` appends: rows are drawn again only where it changes
     * (hv_grid_part). A hash that begins with the screen's name; 0: always draw. */
    uint64_t version;
    /** Style of a cell outside of the cursor's row; 0 = that of the row. NULL = of all. */
    unsigned (*style)(const void *ctx, size_t row, size_t column);
    /** Appends the row in words for plain screens; false: it is made of the cells. May be NULL. */
    bool (*words)(const void *ctx, size_t row, struct hv_str *out);
};

/** State of a table: a value. */
struct hv_table {
    size_t cursor, top;   /**< rows */
    uint64_t cursor_id;   /**< identity of the row under the cursor */
    bool has_id;          /**< cursor_id is set */
    int sort_column;      /**< -1 = unsorted */
    bool sort_descending; /**< shown as an arrow beside the title */
    const char *find;     /**< highlighted text, NULL = none; borrowed */
};

/** What to draw. */
struct hv_table_look {
    const struct hv_column *columns;
    size_t n_columns;
    bool focused;
    const char *empty; /**< shown when there is no row; NULL = nothing */
};

/** Draws head and rows into r; places the hardware cursor when focused. O(rows of r · columns). */
void hv_table_draw(const struct hv_table *t, const struct hv_table_source *s,
                   const struct hv_table_look *look, struct hv_grid *g, struct hv_rect r);
/** Width of a column where the table is drawn w wide; 0 where it is left out. */
int hv_table_column_w(const struct hv_table_look *look, int w, size_t column);
/** Handles moves (up, down, pages, top, bottom) for `height` rows shown; true when it was one. */
bool hv_table_action(struct hv_table *t, const struct hv_table_source *s, enum hv_action a,
                     int height);
/** Moves the cursor to a row (clamped) and remembers its identity. */
void hv_table_goto(struct hv_table *t, const struct hv_table_source *s, size_t row, int height);
/** After rows changed: finds the remembered item again, keeps its place on screen. O(rows). */
void hv_table_refresh(struct hv_table *t, const struct hv_table_source *s, int height);
/** Scrolls by rows, cursor stays on screen (mouse wheel). */
void hv_table_scroll(struct hv_table *t, const struct hv_table_source *s, int rows, int height);
/** Column whose head is at a cell of r, or SIZE_MAX (another line, beside the columns). */
size_t hv_table_head_hit(const struct hv_table_look *look, struct hv_rect r, int x, int y);
/** Row at a cell of r, or SIZE_MAX (head, below the last row, outside). */
size_t hv_table_hit(const struct hv_table *t, const struct hv_table_source *s, struct hv_rect r,
                    int x, int y);
/**
 * Moves to the next row (direction 1 or -1; 0 = from the cursor itself) with `text` in a cell,
 * ASCII case-blind, wrapping. Returns false when there is none. O(rows · columns).
 */
bool hv_table_find(struct hv_table *t, const struct hv_table_source *s,
                   const struct hv_table_look *look, const char *text, int direction);
/** True when `text` holds `word`, ASCII case-blind. */
bool hv_text_has(const char *text, const char *word);

/* ---- line editor --------------------------------------------------------------------------- */

/** Effect of a key in a line editor. */
enum hv_edit { HV_EDIT_NONE, HV_EDIT_CHANGED, HV_EDIT_ACCEPT, HV_EDIT_CANCEL };

/** Appends the n-th completion of text[0..at) to `out` as the whole new line; false when none is
 * left. */
typedef bool hv_complete_fn(const void *ctx, const char *text, size_t n, struct hv_str *out);

/** A line editor with undo and history. `{0}` is valid. Owner: caller; free with hv_line_free. */
struct hv_line {
    struct hv_str text;
    size_t at;                /**< byte position of the cursor */
    HV_VEC(char *) undo;      /**< earlier texts */
    HV_VEC(char *) history;   /**< accepted lines, oldest first, no neighbours alike */
    size_t i_history;         /**< = history.n while editing the new line */
    char *draft;              /**< the new line while history is shown */
    hv_complete_fn *complete; /**< NULL = none */
    const void *complete_ctx;
    char *complete_base; /**< what Tab started from; NULL = no completion running */
    size_t i_complete;
};

/** Most bytes a line takes. */
#define HV_LINE_MAX 4096

/** Frees texts, undo and history. */
void hv_line_free(struct hv_line *l);
/** Starts anew with a text; history stays, undo is emptied. */
void hv_line_set(struct hv_line *l, const char *text);
/**
 * Feeds a key: characters, Left/Right/Home/End, ^A ^E ^B ^F, Backspace, Delete, ^W ^K ^U, ^Z-free
 * undo with ^_ or M-u, Up/Down history, Tab completion, Enter accept (kept in history), Esc cancel.
 */
enum hv_edit hv_line_key(struct hv_line *l, struct hv_key k);
/** Inserts text at the cursor as one step of undo, without control characters; what does not fit is
 * left out. CHANGED or NONE. */
enum hv_edit hv_line_paste(struct hv_line *l, const char *text);
/** Draws prefix and text on one row, scrolled so that the cursor is seen; places the cursor. */
void hv_line_draw(const struct hv_line *l, struct hv_grid *g, struct hv_rect row,
                  const char *prefix, unsigned style);

/* ---- form ---------------------------------------------------------------------------------- */

/** Kinds of fields. */
enum hv_field_kind {
    HV_FIELD_TEXT,
    HV_FIELD_NUMBER,
    HV_FIELD_CHOICE,
    HV_FIELD_BOOL,
    HV_FIELD_LABEL
};

/** One field. Strings are borrowed from the caller except `value`. */
struct hv_field {
    const char *name; /**< label */
    const char *help; /**< shown for the focused field; may be NULL */
    const char *unit; /**< behind the value; may be NULL */
    enum hv_field_kind kind;
    const char *const *choices; /**< for HV_FIELD_CHOICE */
    size_t n_choices;
    double min, max; /**< for HV_FIELD_NUMBER; NaN = no bound */
    bool integer;    /**< whole numbers only */
    bool read_only;  /**< derived: shown dim, skipped by Tab */
    bool mixed;      /**< stands for several values that differ; `value` is "" until one is typed */
    char value[256];
    char bad[160]; /**< error of the value; "" = valid */
};

/** Checks one value for the caller: writes the error to bad (cap bytes), "" = valid. */
typedef void hv_field_check(void *ctx, size_t i_field, const char *value, char *bad, size_t cap);

/** A form. Owner of `fields`: the caller. Free `line` with hv_form_free. */
struct hv_form {
    struct hv_field *fields;
    size_t n_fields, cursor;
    size_t top;
    bool editing;
    bool fresh;            /**< nothing was typed yet: the first character replaces the value */
    struct hv_line line;   /**< the value being typed */
    char before[256];      /**< value when editing began */
    hv_field_check *check; /**< NULL = only the built-in checks */
    void *check_ctx;
};

/** Effect of a key in a form. */
enum hv_form_result {
    HV_FORM_NONE,    /**< not a key of the form */
    HV_FORM_MOVED,   /**< redraw */
    HV_FORM_CHANGED, /**< the field at `cursor` has a new, accepted value */
    HV_FORM_REFUSED, /**< a wrong value cannot be accepted; see the field's `bad` */
    HV_FORM_CLOSE    /**< Esc outside a field */
};

/** Frees what editing allocated, not the fields. */
void hv_form_free(struct hv_form *f);
/**
 * Feeds a key. Outside a field: j/k/arrows/Tab move, Enter or e edits (a typed digit starts a
 * number field anew), Space or v or Left/Right or Enter changes choice and bool. Inside: line
 * editor, where the first character replaces the value and a cursor key keeps it; Enter or Tab
 * accepts when valid; Esc restores.
 */
enum hv_form_result hv_form_key(struct hv_form *f, struct hv_key k);
/** Inserts text into the field being edited (a fresh value is replaced); NONE where none is. */
enum hv_form_result hv_form_paste(struct hv_form *f, const char *text);
/** The keys that count while a field is typed; NULL when none is. */
const struct hv_key_hint *hv_form_hints(const struct hv_form *f);
/** Draws label and field per row, scrolled to the cursor. */
void hv_form_draw(const struct hv_form *f, struct hv_grid *g, struct hv_rect r, bool focused);
/** Field at a cell of r, or SIZE_MAX. */
size_t hv_form_hit(const struct hv_form *f, struct hv_rect r, int x, int y);

/* ---- bars and charts ------------------------------------------------------------------------- */

/** "[████▌    ] 31%"; frac NaN shows "[ … ]" without percent. */
void hv_progress_draw(struct hv_grid *g, struct hv_rect row, double frac, unsigned style);

/** One row of a bar list. */
struct hv_bar_row {
    const char *name, *text; /**< left and right of the bar; user text is cleaned */
    double frac;             /**< 0…1 */
    unsigned style;          /**< HV_STYLE_BAR, … */
};
/** Names, bars and texts in three aligned columns; rows beyond r are left out. */
void hv_bars_draw(struct hv_grid *g, struct hv_rect r, const struct hv_bar_row *rows, size_t n);

/** One point of a chart. */
struct hv_point {
    double x, y;
};
/** How a series is drawn. */
enum hv_chart_kind { HV_CHART_STEP, HV_CHART_DOTS, HV_CHART_LINE };
/** One series; points sorted by x for STEP and LINE. */
struct hv_series {
    const struct hv_point *points;
    size_t n;
    enum hv_chart_kind kind;
    unsigned style;
    char mark;         /**< glyph in ASCII and for DOTS */
    const char *marks; /**< DOTS: one glyph per point; NULL = `mark` */
};
/** A chart; ranges NaN = from the data. */
struct hv_chart {
    const struct hv_series *series;
    size_t n_series;
    double x_min, x_max, y_min, y_max;
    const char *x_label, *y_label;
};
/** Draws axes with labels and the series. O(points + cells). */
void hv_chart_draw(struct hv_grid *g, struct hv_rect r, const struct hv_chart *c);
/** Cell at which a chart drawn into r shows (x, y); false when outside. */
bool hv_chart_cell(struct hv_rect r, const struct hv_chart *c, struct hv_point p, int *x, int *y);

/** Text wrapped between words into r, as far as it goes; the last row is cut with "…". Plain
 * screens get it in one line. Returns the rows used. O(length). */
int hv_words_draw(struct hv_grid *g, struct hv_rect r, const char *text, unsigned style);
/** Rows that hv_words_draw uses for `text` in w columns, at most `most`. O(length). */
int hv_words_rows(const char *text, int w, int most);
/** Appends a name in at most w columns. One that is too long keeps its last words ("A100… memory"),
 * or where those are too long too, both its ends ("gro…-007"): the parts in which names differ are
 * kept. */
void hv_text_squeeze(const char *name, int w, bool ascii, struct hv_str *out);
/** Writes on the lower frame of the panel around r the number of the n rows that follow, where the
 * first shown is `top`: " 16 more ". */
void hv_more_draw(struct hv_grid *g, struct hv_rect r, size_t n, size_t top);
/** The same for a table drawn into `at` (its head included) inside a panel's `inner`. */
void hv_table_more_draw(const struct hv_table *t, const struct hv_table_source *s,
                        struct hv_rect at, struct hv_grid *g, struct hv_rect inner);

/* ---- rows of the frame ----------------------------------------------------------------------- */

/** Tabs: the active one in <…>; `right` (project, '*') is right-aligned and cut first. Short titles
 * are used when the long ones do not fit, then numbers for all but the active one. */
struct hv_tabs {
    const char *const *titles, *const *short_titles;
    size_t n, active;
    const char *right;
};
/** Draws the tabs row. */
void hv_tabs_draw(const struct hv_tabs *t, struct hv_grid *g, struct hv_rect row);
/** Tab at column x, or SIZE_MAX. */
size_t hv_tabs_hit(const struct hv_tabs *t, struct hv_rect row, int x);

/** A key that is handled before the key map (by a field, a question): its name and its effect.
 * Lists end with key NULL. */
struct hv_key_hint {
    const char *key, *label;
};

/** One entry of the key bar: an action, two that share a label ("+/- Zoom"), or a hint. */
struct hv_keybar_item {
    enum hv_action action;
    char key[16];
    const char *label;
    int x, w;            /**< filled by hv_keybar_fit; w = 0: dropped */
    enum hv_action twin; /**< what the key behind the '/' does; HV_ACT_NONE = there is none */
    int twin_x;          /**< columns before that key */
    struct hv_key press; /**< of a hint: what a click presses; HV_KEY_NONE = `action` counts */
};
/** Places entries; drops from the right but never Help, Close/Quit and the hint for Esc. O(n²). */
void hv_keybar_fit(struct hv_keybar_item *items, size_t n, int width);
/** Draws the placed entries. */
void hv_keybar_draw(const struct hv_keybar_item *items, size_t n, struct hv_grid *g,
                    struct hv_rect row);
/** Action at column x (the twin's on its key), or HV_ACT_NONE. */
enum hv_action hv_keybar_hit(const struct hv_keybar_item *items, size_t n, int x);
/** Key of the hint at column x, or HV_KEY_NONE. */
struct hv_key hv_keybar_press(const struct hv_keybar_item *items, size_t n, int x);

#endif
