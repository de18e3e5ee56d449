/**
 * Themes: one table of named styles, its compiled-in defaults and the theme file.
 *
 * Theme file: `style <name> fg=… bg=… attr=… fg16=… bg16=… mono=…`, '#' starts a comment. Colours:
 * `default`, a number 0…255, `#rrggbb` (nearest of the 256), or one of the 16 names (`blue`,
 * `bright-blue`). Attributes: `none` or a `+`-joined list of bold, dim, reverse, underline.
 */
#ifndef HV_UI_VIEW_GRID_THEME_H
#define HV_UI_VIEW_GRID_THEME_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stddef.h>
#include <stdint.h>

/** Attribute bits. */
enum hv_attr {
    HV_ATTR_NONE = 0,
    HV_ATTR_BOLD = 1,
    HV_ATTR_DIM = 2,
    HV_ATTR_REVERSE = 4,
    HV_ATTR_UNDERLINE = 8
};

/* clang-format off */
#define HV_A_N 0
#define HV_A_B 1
#define HV_A_D 2
#define HV_A_R 4
#define HV_A_U 8
/**
 * One row per style: constant, name, fg, bg (256 colours), fg16, bg16, attr with colours, attr without, meaning.
 * Operation hues: Okabe and Ito, "Color Universal Design" (2008), nearest xterm-256 entries:
 * 56B4E9=74, E69F00=178, 009E73=36, CC79A7=175, D55E00=166, 0072B2=25, F0E442=227. -1 = terminal's default.
 * Every state is also a letter or a glyph on screen; the mono attribute is the second carrier.
 */
#define HV_STYLE_MAP(X)                                                                                               \
    X(TEXT,          "text",           -1,  -1, -1, -1, HV_A_N,          HV_A_N,          "plain text")               \
    X(FRAME,         "frame",          244, -1,  7, -1, HV_A_N,          HV_A_N,          "frame of a panel")         \
    X(FRAME_FOCUS,   "frame-focus",    74,  -1, 14, -1, HV_A_B,          HV_A_B,          "frame of the focused panel") \
    X(TITLE,         "title",          255, -1, 15, -1, HV_A_B,          HV_A_B,          "title of a panel")         \
    X(TAB,           "tab",            250, -1,  7, -1, HV_A_N,          HV_A_N,          "tab of a screen")          \
    X(TAB_ACTIVE,    "tab-active",     16,  74,  0,  6, HV_A_B,          HV_A_R|HV_A_B,   "tab of the open screen")   \
    X(KEYBAR_KEY,    "keybar-key",     74,  -1, 14, -1, HV_A_B,          HV_A_B,          "key in the key bar")       \
    X(KEYBAR,        "keybar",         250, -1,  7, -1, HV_A_N,          HV_A_N,          "label in the key bar")     \
    X(STATUS,        "status",         252, -1,  7, -1, HV_A_N,          HV_A_N,          "status line")              \
    X(ERROR,         "error",          231, 124, 15, 5, HV_A_B,          HV_A_R|HV_A_B,   "error message")            \
    X(WARNING,       "warning",        166, -1, 11, -1, HV_A_B,          HV_A_B|HV_A_U,   "warning")                  \
    X(DIM,           "dim",            244, -1,  7, -1, HV_A_N,          HV_A_D,          "less important, derived")  \
    X(SELECTED,      "selected",       16,  74,  0,  6, HV_A_N,          HV_A_R,          "row under the cursor")     \
    X(SELECTED_BLUR, "selected-blur",  255, 240, 15, 4, HV_A_N,          HV_A_U,          "row under the cursor, panel not focused") \
    X(MARKED,        "marked",         227, -1, 11, -1, HV_A_B,          HV_A_B,          "marked row")               \
    X(HEADER,        "header",         250, -1,  6, -1, HV_A_U,          HV_A_U,          "head of a table")          \
    X(FIELD,         "field",          255, 238, 15, 4, HV_A_N,          HV_A_U,          "input field")              \
    X(FIELD_FOCUS,   "field-focus",    16,  250, 0,  7, HV_A_N,          HV_A_R,          "input field being edited") \
    X(FIELD_BAD,     "field-bad",      231, 166, 15, 5, HV_A_B,          HV_A_R|HV_A_U,   "input field with a wrong value") \
    X(MATCH,         "match",          16,  227, 0,  3, HV_A_N,          HV_A_B|HV_A_U,   "text that was found")      \
    X(GOOD,          "good",           36,  -1, 14, -1, HV_A_N,          HV_A_N,          "fits, better")             \
    X(BAR,           "bar",            74,  -1,  6, -1, HV_A_N,          HV_A_N,          "bar, progress")            \
    X(AXIS,          "axis",           246, -1,  7, -1, HV_A_N,          HV_A_D,          "axis and ticks")           \
    X(OP_F,          "op-f",           16,  74,  0,  6, HV_A_N,          HV_A_R,          "forward")                  \
    X(OP_F_ALT,      "op-f-alt",       16,  117, 0,  6, HV_A_B,          HV_A_R,          "forward, odd micro-batch") \
    X(OP_B,          "op-b",           16,  178, 0,  3, HV_A_N,          HV_A_R|HV_A_B,   "backward")                 \
    X(OP_B_ALT,      "op-b-alt",       16,  221, 0,  3, HV_A_B,          HV_A_R|HV_A_B,   "backward, odd micro-batch") \
    X(OP_W,          "op-w",           16,  36,  0,  4, HV_A_N,          HV_A_U,          "weight gradient")          \
    X(OP_W_ALT,      "op-w-alt",       16,  79,  0,  4, HV_A_B,          HV_A_U,          "weight gradient, odd micro-batch") \
    X(OP_R,          "op-r",           231, 25,  0,  2, HV_A_N,          HV_A_D|HV_A_R,   "recompute")                \
    X(OP_R_ALT,      "op-r-alt",       231, 32,  0,  2, HV_A_B,          HV_A_D|HV_A_R,   "recompute, odd micro-batch") \
    X(OP_COMM,       "op-comm",        16,  175, 0,  5, HV_A_N,          HV_A_U|HV_A_B,   "communication")            \
    X(OP_COMM_ALT,   "op-comm-alt",    16,  182, 0,  5, HV_A_B,          HV_A_U|HV_A_B,   "communication, odd micro-batch") \
    X(OP_OTHER,      "op-other",       16,  250, 0,  7, HV_A_N,          HV_A_D,          "optimizer and others")     \
    X(IDLE,          "idle",           240, -1,  7, -1, HV_A_N,          HV_A_D,          "idle, bubble")             \
    X(MEMORY,        "memory",         67,  -1,  6, -1, HV_A_N,          HV_A_N,          "memory in use")            \
    X(MEMORY_OVER,   "memory-over",    166, -1, 11, -1, HV_A_B,          HV_A_B|HV_A_R,   "memory above the limit")   \
    X(CRITICAL,      "critical",       166, -1, 11, -1, HV_A_B,          HV_A_B,          "critical path")            \
    X(HELP_KEY,      "help-key",       74,  -1, 14, -1, HV_A_B,          HV_A_B,          "key in the help")
/* clang-format on */

/** Styles; the grid stores these. */
enum hv_style {
#define X(id, name, fg, bg, fg16, bg16, attr, mono, help) HV_STYLE_##id,
    HV_STYLE_MAP(X)
#undef X
        HV_STYLE_N
};

/** Flags or-ed into a style id in the grid. */
#define HV_STYLE_REVERSE   0x1000u
#define HV_STYLE_BOLD      0x2000u
#define HV_STYLE_UNDERLINE 0x4000u
/** The id without flags. */
#define HV_STYLE_ID_MASK 0x003fu
/**
 * Style of a cell in which one bar ends and another begins: its glyph, the left part, has the
 * background of `left`, the rest that of `right`. HV_STYLE_IDLE stands for no bar.
 */
#define HV_STYLE_EDGE(left, right) ((unsigned)(left) | (unsigned)(right) << 6)
/** Right side of an edge, 0 where the cell is none. */
#define HV_STYLE_RIGHT(style) ((unsigned)(style) >> 6 & HV_STYLE_ID_MASK)
_Static_assert(HV_STYLE_N <= 64, "ids of two styles and three flags share 16 bits");

/** How one style looks. Colours -1 (default), 0…255 and 0…15; attributes: enum hv_attr bits. */
struct hv_style_look {
    int16_t fg, bg;
    int8_t fg16, bg16;
    uint8_t attr, mono;
};

/** A theme: a look per style. A value, nothing to free. */
struct hv_theme {
    struct hv_style_look looks[HV_STYLE_N];
    bool light; /**< made for a light background, which pictures then have */
};

/** The compiled-in theme. */
void hv_theme_default(struct hv_theme *t);
/**
 * Changes `t` by a theme file's text; `name` is used in messages. Good lines are taken even when
 * others are bad; the first bad one is reported. Errors: HV_EINPUT with file:line:col.
 */
enum hv_status hv_theme_parse(struct hv_theme *t, const char *text, size_t n, const char *name,
                              struct hv_err *err) HV_NODISCARD;
/** As hv_theme_parse from a path. Errors: also HV_EIO. */
enum hv_status hv_theme_read(struct hv_theme *t, const char *path, struct hv_err *err) HV_NODISCARD;
/** Names of the shipped themes, up to NULL; the first is the compiled-in one. */
extern const char *const hv_theme_names[];
/** One of the shipped themes by its name, or the file of that path, over the compiled-in theme.
 * Errors: as hv_theme_read; HV_EINPUT with the names there are. */
enum hv_status hv_theme_named(struct hv_theme *t, const char *name,
                              struct hv_err *err) HV_NODISCARD;

#endif
