/*
 * Cells to bytes: differences, cursor movement and styles. Capabilities are read in term_caps.c;
 * the caller writes the bytes.
 */
#include "ui/term/term_out_int.h"

#include "solver/base/arena.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* Cells in between that are written again rather than jumped over. */
#define GAP_MAX 4
/* Columns back that are stepped rather than jumped to. */
#define NEAR 2
/* From this many blanks up to the edge on, they are cleared rather than written. */
#define TAIL_MIN 6
/* No cell has this style. */
#define NO_STYLE UINT_MAX

static const struct hv_cell blank = {.utf8 = " ", .width = 1, .style = 0};

void hv__out_forget(struct hv_out *o, int w, int h)
{
    size_t n = (size_t)w * (size_t)h + 1;
    o->w = w;
    o->h = h;
    if (n > o->cap) {
        free(o->shown); /* its content is not needed */
        o->shown = hv_xcalloc(n, sizeof *o->shown);
        o->cap = n;
    }
    o->cleared = false;
}

static bool same_cell(const struct hv_cell *a, const struct hv_cell *b)
{
    return memcmp(a->utf8, b->utf8, sizeof a->utf8) == 0 && a->style == b->style &&
           a->width == b->width;
}

/* The colour behind the text of a style, -1 = the terminal's own. */
static int16_t back_of(struct hv_pen p)
{
    return p.attrs & HV_ATTR_REVERSE ? p.fg : p.bg;
}

/* The pen that shows the left background of an edge as ink on the right one. A background that is
 * the terminal's own can only be one: the other is the ink then, and the cell is shown in reverse.
 * False: these two colours cannot share a cell. */
static bool edge_pen(const struct hv_out *o, const struct hv_cell *c, struct hv_pen *out)
{
    unsigned left = c->style & HV_STYLE_ID_MASK, right = HV_STYLE_RIGHT(c->style);
    if (left >= HV_STYLE_N || right >= HV_STYLE_N) {
        return false;
    }
    int16_t ink = back_of(o->pens[left]), ground = back_of(o->pens[right]);
    bool reversible = o->caps.reverse && !(o->caps.no_colour_attrs & HV_ATTR_REVERSE);
    if (c->style & HV_STYLE_REVERSE) { /* the cursor: the colours change places */
        int16_t swap = ink;
        ink = ground;
        ground = swap;
    }
    *out = ink >= 0 ? (struct hv_pen){.fg = ink, .bg = ground}
                    : (struct hv_pen){.attrs = HV_ATTR_REVERSE, .fg = ground, .bg = -1};
    bool lined = c->style & HV_STYLE_UNDERLINE && o->caps.underline &&
                 !(o->caps.no_colour_attrs & HV_ATTR_UNDERLINE);
    out->attrs |= lined ? HV_ATTR_UNDERLINE : 0;
    return ink >= 0 || (ground >= 0 && reversible);
}

bool hv__out_is_mono(const struct hv_out *o)
{
    int16_t f = o->pens[HV_STYLE_OP_F].bg;
    return f == o->pens[HV_STYLE_OP_B].bg && f == o->pens[HV_STYLE_OP_W].bg;
}

/* An edge whose colours cannot share the cell is blank in the style that has more of it. */
static struct hv_cell whole_cell(const struct hv_cell *c)
{
    struct hv_cell out = {.utf8 = " ", .width = 1};
    unsigned id = hv_cell_eighths(c) >= 4 ? c->style & HV_STYLE_ID_MASK : HV_STYLE_RIGHT(c->style);
    out.style = (uint16_t)id;
    return out;
}

static struct hv_pen pen_of(const struct hv_out *o, const struct hv_cell *c)
{
    unsigned id = c->style & HV_STYLE_ID_MASK;
    struct hv_pen p = o->pens[id < HV_STYLE_N ? id : 0];
    unsigned attrs = p.attrs;
    attrs ^= c->style & HV_STYLE_REVERSE ? HV_ATTR_REVERSE : 0;
    attrs |= c->style & HV_STYLE_BOLD ? HV_ATTR_BOLD : 0;
    attrs |= c->style & HV_STYLE_UNDERLINE ? HV_ATTR_UNDERLINE : 0;
    if (p.fg >= 0 || p.bg >= 0) {
        attrs &= ~(unsigned)o->caps.no_colour_attrs;
    }
    p.attrs = (uint8_t)attrs;
    return p;
}

static bool same_pen(struct hv_pen a, struct hv_pen b)
{
    return a.attrs == b.attrs && a.fg == b.fg && a.bg == b.bg;
}

/* ---- styles ---- */

/* "31;", "91;" or "38;5;208;" with the digits of the plane: 3 and 9 in front, 4 and 10 behind. */
static void add_ansi_colour(struct hv_str *out, int colour, bool back)
{
    int low = back ? 40 : 30, bright = back ? 100 : 90;
    if (colour >= 16) {
        hv_str_addu(out, (unsigned long)low + 8);
        hv_str_adds(out, ";5;");
    } else {
        colour = colour < 0 ? low + 9 : colour < 8 ? low + colour : bright + colour - 8;
    }
    hv_str_addu(out, (unsigned long)colour);
    hv_str_addc(out, ';');
}

/* One sequence that changes only what differs. */
static void set_ansi_pen(struct hv_out *o, struct hv_pen p)
{
    static const struct {
        unsigned bit;
        char code;
    } codes[] = {
        {HV_ATTR_BOLD, '1'}, {HV_ATTR_DIM, '2'}, {HV_ATTR_UNDERLINE, '4'}, {HV_ATTR_REVERSE, '7'}};
    struct hv_pen from = o->pen;
    hv_str_adds(&o->bytes, "\033[");
    if (!o->pen_known || (from.attrs & ~p.attrs) != 0) {
        hv_str_adds(&o->bytes, "0;");
        from = (struct hv_pen){.fg = -1, .bg = -1};
    }
    for (size_t i = 0; i < HV_COUNT(codes); i++) {
        if (p.attrs & ~from.attrs & codes[i].bit) {
            hv_str_addc(&o->bytes, codes[i].code);
            hv_str_addc(&o->bytes, ';');
        }
    }
    if (p.fg != from.fg) {
        add_ansi_colour(&o->bytes, p.fg, false);
    }
    if (p.bg != from.bg) {
        add_ansi_colour(&o->bytes, p.bg, true);
    }
    o->bytes.p[o->bytes.n - 1] = 'm'; /* instead of the last semicolon */
}

/* Sets the whole pen anew with the capabilities of the terminal's description. */
static void set_other_pen(struct hv_out *o, struct hv_pen p)
{
    const struct hv_out_caps *c = &o->caps;
    const struct {
        unsigned bit;
        const char *text;
    } attrs[] = {{HV_ATTR_BOLD, c->bold},
                 {HV_ATTR_DIM, c->dim},
                 {HV_ATTR_UNDERLINE, c->underline},
                 {HV_ATTR_REVERSE, c->reverse}};
    hv__caps_add(&o->bytes, c->plain);
    if ((p.fg < 0 || p.bg < 0) && c->colours) {
        hv__caps_add(&o->bytes, c->colours);
    }
    for (size_t i = 0; i < HV_COUNT(attrs); i++) {
        if (p.attrs & attrs[i].bit) {
            hv__caps_add(&o->bytes, attrs[i].text);
        }
    }
    if (p.fg >= 0) {
        hv__caps_add_1(&o->bytes, c->fore, p.fg);
    }
    if (p.bg >= 0) {
        hv__caps_add_1(&o->bytes, c->back, p.bg);
    }
}

static void set_pen(struct hv_out *o, struct hv_pen p)
{
    if (o->pen_known && same_pen(o->pen, p)) {
        o->style = NO_STYLE;
        return;
    }
    if (o->caps.ansi_pen) {
        set_ansi_pen(o, p);
    } else {
        set_other_pen(o, p);
    }
    o->pen = p;
    o->pen_known = true;
    o->style = NO_STYLE;
}

/* Most cells look like the one before. */
static void set_pen_of(struct hv_out *o, const struct hv_cell *c)
{
    if (o->pen_known && o->style == c->style) {
        return;
    }
    set_pen(o, pen_of(o, c));
    o->style = c->style;
}

/* ---- movement and cells ---- */

static void put_cell(struct hv_out *o, const struct hv_cell *c);

/* Goes right in the row by writing what stands there anyway: at most GAP_MAX plain cells that look
 * like the pen. Else false. */
static bool step_over(struct hv_out *o, const struct hv_grid *g, int x, int y)
{
    const struct hv_cell *row = &g->cells[(size_t)y * (size_t)g->w];
    if (o->y != y || o->x < 0 || x < o->x || x - o->x > GAP_MAX) {
        return false;
    }
    for (int i = o->x; i < x; i++) {
        if (row[i].width != 1 || row[i].utf8[1] != '\0' || !same_pen(pen_of(o, &row[i]), o->pen)) {
            return false;
        }
    }
    for (int i = o->x; i < x; i++) {
        put_cell(o, &row[i]);
    }
    return true;
}

/* A sequence with one or two numbers, which are 1 when they are left out. */
static void add_ansi_move(struct hv_str *out, int a, int b, char what)
{
    hv_str_adds(out, "\033[");
    if (a > 1) {
        hv_str_addu(out, (unsigned long)a);
    }
    if (b > 1) {
        hv_str_addc(out, ';');
        hv_str_addu(out, (unsigned long)b);
    }
    hv_str_addc(out, what);
}

/* A row down and at most NEAR columns back: shorter than an absolute position; frequent where
 * columns scroll. */
static void add_near_below(struct hv_str *bytes, int back)
{
    hv_str_adds(bytes, "\033[B");
    for (; back > 0; back--) {
        hv_str_addc(bytes, '\b');
    }
}

static void move(struct hv_out *o, int x, int y)
{
    if (o->x == x && o->y == y) {
        return;
    }
    if (!o->caps.ansi_move) {
        hv__caps_add_2(&o->bytes, o->caps.move, y, x);
    } else if (o->x >= 0 && o->y == y && x > o->x) {
        add_ansi_move(&o->bytes, x - o->x, 1, 'C');
    } else if (o->x >= x && o->x - x <= NEAR && o->y + 1 == y) {
        add_near_below(&o->bytes, o->x - x);
    } else {
        add_ansi_move(&o->bytes, y + 1, x + 1, 'H');
    }
    o->x = x;
    o->y = y;
}

/* True for a character of one byte and one column. */
static bool is_plain(const struct hv_cell *c)
{
    return c->utf8[1] == '\0' && (unsigned char)c->utf8[0] >= ' ' && c->width == 1;
}

/* Finds out whether the terminal takes the bytes of a cell for as many columns as we do (`safe`),
 * and whether terminals disagree about them (`odd`). Frames are long runs of the same few, so the
 * last one is remembered. */
static void judge(struct hv_out *o, const struct hv_cell *c)
{
    if (memcmp(c->utf8, o->judged.utf8, sizeof c->utf8) == 0 && c->width == o->judged.width) {
        return;
    }
    o->judged = *c;
    o->safe = is_plain(c);
    o->odd = false;
    o->n_judged = strnlen(c->utf8, sizeof c->utf8);
    if (o->n_judged > 1) {
        wchar_t wide = 0;
        mbstate_t state = {0};
        size_t n = mbrtowc(&wide, c->utf8, sizeof c->utf8, &state);
        o->safe = n > 0 && n <= sizeof c->utf8 && wcwidth(wide) == c->width;
        o->odd = o->safe && (c->width != 1 || n < o->n_judged);
    }
}

/* Writes a character at the cursor with the pen there is. */
static void put_plain(struct hv_out *o, const struct hv_cell *c)
{
    hv_str_addc(&o->bytes, c->utf8[0]);
    o->x = o->x + 1 < o->w ? o->x + 1 : -1;
}

/* Writes a cell at the cursor. */
static void put_cell(struct hv_out *o, const struct hv_cell *c)
{
    struct hv_cell whole;
    struct hv_pen edge;
    bool is_edge = HV_STYLE_RIGHT(c->style) != 0, fits = is_edge && edge_pen(o, c, &edge);
    if (!is_edge && is_plain(c)) {
        set_pen_of(o, c);
        put_plain(o, c);
        return;
    }
    if (is_edge && !fits) {
        whole = whole_cell(c);
        c = &whole;
    }
    judge(o, c);
    if (fits) {
        set_pen(o, edge);
    } else {
        set_pen_of(o, c);
    }
    if (o->safe) {
        hv_str_add(&o->bytes, c->utf8, o->n_judged);
    } else {
        hv_str_adds(&o->bytes, c->width == 2 ? "??" : "?");
    }
    o->x += c->width;
    if (o->odd || o->x >= o->w) {
        o->x = -1;
    }
}

/* True for a blank in the terminal's own colours. */
static bool is_empty(const struct hv_out *o, const struct hv_cell *c)
{
    if (c->utf8[0] != ' ' || c->utf8[1] != '\0') {
        return false;
    }
    struct hv_pen p = pen_of(o, c);
    return p.bg < 0 && !(p.attrs & (HV_ATTR_REVERSE | HV_ATTR_UNDERLINE));
}

/* First column of the blanks that one sequence clears up to the edge; the width where there are
 * none. */
static int tail_of(const struct hv_out *o, const struct hv_cell *row, int w)
{
    int x = w, empty = -1; /* the style of the blanks so far: mostly they have one */
    for (; w == o->w && o->caps.clear_line && x > 0; x--) {
        const struct hv_cell *c = &row[x - 1];
        bool again = c->style == empty && c->utf8[0] == ' ' && c->utf8[1] == '\0';
        if (!again && !is_empty(o, c)) {
            break;
        }
        empty = c->style;
    }
    return x;
}

static void clear_tail(struct hv_out *o, int x, int y)
{
    move(o, x, y);
    set_pen(o, (struct hv_pen){.fg = -1, .bg = -1});
    hv_str_adds(&o->bytes, o->caps.clear_line);
}

/* Writing the last cell of the screen would scroll a terminal that wraps immediately. */
static bool is_writable(const struct hv_out *o, int x, int y, int width)
{
    return o->caps.wraps_late || y + 1 < o->h || x + width < o->w;
}

/* Draws the columns of a row that may differ, of w that both have. `all`, unless NULL, is what
 * every cell shows: the screen was just cleared. */
static void draw_row(struct hv_out *o, const struct hv_grid *g, int y, int w,
                     struct hv_grid_columns at, const struct hv_cell *all)
{
    const struct hv_cell *row = &g->cells[(size_t)y * (size_t)g->w];
    struct hv_cell *old = &o->shown[(size_t)y * (size_t)o->w];
    size_t n = (size_t)(at.to - at.from);
    if (!all && memcmp(row + at.from, old + at.from, n * sizeof *row) == 0) {
        return;
    }
    int tail = tail_of(o, row, w);
    for (int x = at.from; x < at.to; x++) {
        if (same_cell(&row[x], all ? all : &old[x]) || row[x].width == 0 ||
            !is_writable(o, x, y, row[x].width)) {
            continue;
        }
        if (x >= tail && w - x >= TAIL_MIN) {
            clear_tail(o, x, y);
            break;
        }
        if ((o->x != x || o->y != y) && !step_over(o, g, x, y)) {
            move(o, x, y);
        }
        if (row[x].style == o->style && o->pen_known && is_plain(&row[x])) {
            put_plain(o, &row[x]); /* most are like the one before */
        } else {
            put_cell(o, &row[x]);
        }
    }
    memcpy(old + at.from, row + at.from, n * sizeof *row);
}

/* Columns of w in which a row may differ from what is shown: for the grid shown last, in the same
 * frame or the next, those that changed in its frame; else all. */
static struct hv_grid_columns columns_of(const struct hv_out *o, const struct hv_grid *g, int y,
                                         int w)
{
    struct hv_grid_columns out = {0, w};
    bool same = o->grid == g, next = same && o->frame + 1 == g->frame;
    if (same && (next || o->frame == g->frame)) {
        out = g->changed[y];
        out.to = out.to < w ? out.to : w;
    }
    return out;
}

/* Returns what all cells show then. */
static struct hv_cell clear_all(struct hv_out *o)
{
    o->pen_known = false;
    o->x = o->cursor = -1;
    set_pen(o, (struct hv_pen){.fg = -1, .bg = -1});
    hv__caps_add(&o->bytes, o->caps.clear);
    o->cleared = true;
    /* cleared cells are blank cells, unless a theme paints blanks; then all are to be written */
    return is_empty(o, &blank) ? blank : (struct hv_cell){0};
}

static void set_cursor(struct hv_out *o, bool visible)
{
    if (o->cursor == (int)visible) {
        return;
    }
    hv__caps_add(&o->bytes, visible ? o->caps.show : o->caps.hide);
    o->cursor = visible;
}

void hv__out_draw(struct hv_out *o, const struct hv_grid *g)
{
    int w = g->w < o->w ? g->w : o->w, h = g->h < o->h ? g->h : o->h;
    bool fresh = !o->cleared;
    struct hv_cell all = fresh ? clear_all(o) : blank;
    for (size_t i = 0; fresh && (w < o->w || h < o->h) && i < (size_t)o->w * (size_t)o->h; i++) {
        o->shown[i] = all; /* also where the grid does not reach */
    }
    for (int y = 0; y < h; y++) {
        struct hv_grid_columns at = fresh ? (struct hv_grid_columns){0, w} : columns_of(o, g, y, w);
        if (at.from < at.to) {
            draw_row(o, g, y, w, at, fresh ? &all : NULL);
        }
    }
    o->grid = g;
    o->frame = g->frame;
    bool visible = g->cursor_x >= 0 && g->cursor_x < w && g->cursor_y < h;
    set_cursor(o, visible);
    if (visible) {
        move(o, g->cursor_x, g->cursor_y);
    }
}

void hv__out_leave(struct hv_out *o)
{
    hv__caps_add(&o->bytes, o->caps.plain);
    hv__caps_add(&o->bytes, o->caps.colours);
    hv__caps_add(&o->bytes, o->caps.show);
    o->pen_known = false;
    o->x = o->cursor = -1;
}
