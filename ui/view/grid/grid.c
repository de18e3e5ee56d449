/*
 * Cell grid: clipping, text into cells, boxes, bars. Independent of terminals; colours are style
 * ids only.
 */
#include "ui/view/grid/grid_int.h"

#include "ui/view/grid/plain.h"
#include "ui/view/grid/theme.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

struct hv_rect hv_grid_clip(struct hv_grid *g, struct hv_rect r)
{
    struct hv_rect old = g->clip;
    g->clip = hv_rect_meet(old, r);
    return old;
}

void hv_grid_unclip(struct hv_grid *g, struct hv_rect old)
{
    g->clip = old;
}

/* Writes one grapheme of `width` columns, clipped here. */
static void set_cell(struct hv_grid *g, int x, int y, const char *bytes, size_t n, int width,
                     unsigned style)
{
    bool fits = hv_rect_has(g->clip, x, y) && (width < 2 || hv_rect_has(g->clip, x + 1, y));
    if (!fits) {
        if (width == 2 && (hv_rect_has(g->clip, x, y) || hv_rect_has(g->clip, x + 1, y))) {
            set_cell(g, hv_rect_has(g->clip, x, y) ? x : x + 1, y, " ", 1, 1, style);
        }
        return;
    }
    struct hv_cell cells[2] = {{.width = (uint8_t)width, .style = (uint16_t)style},
                               {.width = 0, .style = (uint16_t)style}};
    memcpy(cells[0].utf8, bytes, n);
    if (width == 1) {
        hv__grid_put(g, x, y, &cells[0]);
    } else {
        hv__grid_put_cells(g, x, y, cells, width);
    }
}

/* The part of n columns from x on that the clip leaves, to be overwritten with cells of one column:
 * to[0] is skipped columns after x. */
struct run {
    struct hv_cell *to;
    int n, skipped;
    int x, y, first, last; /* its row and position, and its changed columns */
};

static struct run open_run(struct hv_grid *g, int x, int y, int n)
{
    struct hv_rect in = hv_rect_meet(g->clip, (struct hv_rect){x, y, n, 1});
    struct run run = {.n = in.w, .skipped = in.x - x, .x = in.x, .y = y, .first = in.w, .last = -1};
    if (in.w <= 0) {
        return run;
    }
    run.to = hv__grid_at(g, in.x, y);
    if (run.to[0].width == 0) {
        hv__grid_break_wide(g, in.x, y);
    }
    if (run.to[in.w - 1].width == 2) {
        hv__grid_break_wide(g, in.x + in.w - 1, y);
    }
    return run;
}

/* Cell i of a run. */
static inline void put_in_run(struct run *run, int i, const struct hv_cell *cell)
{
    if (hv__cell_same(&run->to[i], cell)) {
        return;
    }
    run->to[i] = *cell;
    run->first = i < run->first ? i : run->first;
    run->last = i;
}

static void close_run(struct hv_grid *g, const struct run *run)
{
    if (run->n <= 0) {
        return;
    }
    hv__grid_drawn(g, run->y, run->x, run->x + run->n);
    if (run->last >= 0) {
        hv__grid_changed(g, run->y, run->x + run->first, run->x + run->last + 1);
    }
}

/* Writes characters of one byte and one column. */
static void put_plain(struct hv_grid *g, int x, int y, const char *text, int n, unsigned style)
{
    struct run run = open_run(g, x, y, n);
    struct hv_cell cell = {.width = 1, .style = (uint16_t)style};
    for (int i = 0; i < run.n; i++) {
        cell.utf8[0] = text[run.skipped + i];
        put_in_run(&run, i, &cell);
    }
    close_run(g, &run);
}

/* The same cell in n columns. */
static void put_same(struct hv_grid *g, int x, int y, int n, const struct hv_cell *cell)
{
    struct run run = open_run(g, x, y, n);
    for (int i = 0; i < run.n; i++) {
        put_in_run(&run, i, cell);
    }
    close_run(g, &run);
}

/* Number of characters of one byte and one column at the beginning of a text of n bytes, at most
 * `most`. */
static int plain_run(const char *s, size_t n, int most)
{
    int k = 0;
    while (k < most && (size_t)k < n && hv__text_is_plain(s + k, n - (size_t)k)) {
        k++;
    }
    return k;
}

/* Puts one grapheme; returns its columns. Bytes that are no UTF-8 and characters that a terminal
 * would obey become '?'; dashes (unknown figures) stay
 * dashes in ASCII. */
static int put_grapheme(struct hv_grid *g, int x, int y, const char *s, struct hv__grapheme gr,
                        unsigned style)
{
    unsigned char first = (unsigned char)s[0];
    utf8proc_int32_t cp;
    bool bad = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)gr.n, &cp) <= 0;
    if (bad || hv_text_is_unsafe(cp) || (g->ascii && first >= 0x80)) {
        int w = gr.width > 0 ? gr.width : 1;
        bool dash = !bad && cp >= 0x2010 && cp <= 0x2015;
        for (int i = 0; i < w; i++) {
            set_cell(g, x + i, y, dash ? "-" : "?", 1, 1, style);
        }
        return w;
    }
    if (gr.width == 0) {
        return 0;
    }
    set_cell(g, x, y, s, gr.keep, gr.width, style);
    return gr.width;
}

int hv_grid_put(struct hv_grid *g, int x, int y, int max_w, const char *text, unsigned style)
{
    int limit = max_w < 0 ? g->clip.x + g->clip.w - x : max_w;
    size_t i = 0, n = strlen(text);
    int used = 0;
    while (i < n && used < limit) {
        int run = plain_run(text + i, n - i, limit - used);
        if (run > 0) {
            put_plain(g, x + used, y, text + i, run, style);
            used += run;
            i += (size_t)run;
            continue;
        }
        struct hv__grapheme gr = hv__text_grapheme(text + i, n - i);
        if (used + gr.width > limit) {
            set_cell(g, x + used, y, " ", 1, 1, style);
            used++;
            break;
        }
        used += put_grapheme(g, x + used, y, text + i, gr, style);
        i += gr.n;
    }
    return used;
}

int hv_grid_putf(struct hv_grid *g, int x, int y, unsigned style, const char *fmt, ...)
{
    char buf[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return hv_grid_put(g, x, y, -1, buf, style);
}

int hv_grid_put_user(struct hv_grid *g, int x, int y, int max_w, const char *text, unsigned style)
{
    struct hv_str clean = {0};
    if (hv__text_plain(text) != SIZE_MAX) {
        return hv_grid_put(g, x, y, max_w, text, style);
    }
    hv_text_clean(&clean, text, strlen(text));
    int used = hv_grid_put(g, x, y, max_w, hv_str_cstr(&clean), style);
    hv_str_free(&clean);
    return used;
}

/* n plain characters from column x on of a field; blanks around them. */
static void put_plain_padded(struct hv_grid *g, struct hv_rect at, int x, const char *s, int n,
                             unsigned style)
{
    struct run run = open_run(g, at.x, at.y, at.w);
    struct hv_cell cell = {.width = 1, .style = (uint16_t)style};
    int from = x - at.x - run.skipped; /* of the text, in cells of the run */
    for (int i = 0; i < run.n; i++) {
        cell.utf8[0] = ' ';
        if (i >= from && i < from + n) {
            cell.utf8[0] = s[i - from];
        }
        put_in_run(&run, i, &cell);
    }
    close_run(g, &run);
}

/* A text of known width at a place in a field; blanks around it. */
static void put_padded(struct hv_grid *g, struct hv_rect at, int x, int w, const char *s,
                       unsigned style)
{
    hv_grid_fill(g, (struct hv_rect){at.x, at.y, x - at.x, 1}, ' ', style);
    hv_grid_fill(g, (struct hv_rect){x + w, at.y, at.x + at.w - x - w, 1}, ' ', style);
    (void)hv_grid_put(g, x, at.y, w, s, style);
}

void hv_grid_put_field(struct hv_grid *g, struct hv_rect at, enum hv_align align, const char *text,
                       unsigned style)
{
    struct hv_str clean = {0};
    const char *s = text;
    size_t plain = hv__text_plain(text);
    if (plain == SIZE_MAX) {
        hv_text_clean(&clean, text, strlen(text));
        s = hv_str_cstr(&clean);
    }
    int w = plain < INT_MAX ? (int)plain : hv_text_width(s), x = at.x;
    if (w > at.w && at.w > 0) {
        put_padded(g, at, x, at.w - 1, s, style);
        (void)hv_grid_put(g, at.x + at.w - 1, at.y, 1, g->ascii ? "~" : "…", style);
    } else if (at.w > 0) {
        if (align == HV_RIGHT) {
            x += at.w - w;
        } else if (align == HV_CENTER) {
            x += (at.w - w) / 2;
        }
        if (plain < INT_MAX) {
            put_plain_padded(g, at, x, s, w, style);
        } else {
            put_padded(g, at, x, w, s, style);
        }
    }
    hv_str_free(&clean);
}

static void put_glyph(struct hv_grid *g, int x, int y, const char *glyph, unsigned style)
{
    set_cell(g, x, y, glyph, strlen(glyph), 1, style);
}

/* The same glyph in n columns. */
static void put_glyphs(struct hv_grid *g, int x, int y, int n, const char *glyph, unsigned style)
{
    struct hv_cell cell = {.width = 1, .style = (uint16_t)style};
    memcpy(cell.utf8, glyph, strlen(glyph));
    put_same(g, x, y, n, &cell);
}

void hv_grid_hline(struct hv_grid *g, int x, int y, int n, unsigned style)
{
    put_glyphs(g, x, y, n, g->ascii ? "-" : "─", style);
}

/* The same glyph in n rows. */
static void put_column(struct hv_grid *g, int x, int y, int n, const char *glyph, unsigned style)
{
    struct hv_cell cell = {.width = 1, .style = (uint16_t)style};
    struct hv_rect r = hv_rect_meet(g->clip, (struct hv_rect){x, y, 1, n});
    memcpy(cell.utf8, glyph, strlen(glyph));
    for (int i = 0; i < r.h; i++) {
        hv__grid_put(g, x, r.y + i, &cell);
    }
}

void hv_grid_vline(struct hv_grid *g, int x, int y, int n, unsigned style)
{
    put_column(g, x, y, n, g->ascii ? "|" : "│", style);
}

/* Frame glyphs: horizontal, vertical, corners from top left clockwise. */
static const char *const frames[3][6] = {
    {"─", "│", "┌", "┐", "┘", "└"}, {"━", "┃", "┏", "┓", "┛", "┗"}, {"-", "|", "+", "+", "+", "+"}};

void hv_grid_box(struct hv_grid *g, struct hv_rect r, const char *title, bool focused,
                 unsigned style)
{
    if (r.w < 2 || r.h < 2) {
        return;
    }
    if (g->plain) {
        hv_plain_panel(g, hv_rect_inner(r), title);
        return;
    }
    const char *const *f = frames[g->ascii ? 2 : focused ? 1 : 0];
    const char *horizontal = g->ascii && focused ? "=" : f[0];
    int right = r.x + r.w - 1, bottom = r.y + r.h - 1;
    put_glyphs(g, r.x + 1, r.y, r.w - 2, horizontal, style);
    put_glyphs(g, r.x + 1, bottom, r.w - 2, horizontal, style);
    put_column(g, r.x, r.y + 1, r.h - 2, f[1], style);
    put_column(g, right, r.y + 1, r.h - 2, f[1], style);
    put_glyph(g, r.x, r.y, f[2], style);
    put_glyph(g, right, r.y, f[3], style);
    put_glyph(g, right, bottom, f[4], style);
    put_glyph(g, r.x, bottom, f[5], style);
    if (title && *title && r.w > 6) {
        put_glyph(g, r.x + 2, r.y, "[", style);
        int used = hv_grid_put_user(g, r.x + 3, r.y, r.w - 6, title, style);
        put_glyph(g, r.x + 3 + used, r.y, "]", style);
    }
}

void hv_grid_fill(struct hv_grid *g, struct hv_rect r, char c, unsigned style)
{
    struct hv_cell cell = {.utf8 = {c}, .width = 1, .style = (uint16_t)style};
    struct hv_rect in = hv_rect_meet(g->clip, r);
    for (int y = in.y; y < in.y + in.h; y++) {
        put_same(g, in.x, y, in.w, &cell);
    }
}

void hv_grid_restyle(struct hv_grid *g, struct hv_rect r, unsigned keep, unsigned set)
{
    struct hv_rect in = hv_rect_meet(g->clip, r);
    hv__grid_blank_rest(g, in);
    for (int y = in.y; y < in.y + in.h; y++) {
        for (int x = in.x; x < in.x + in.w; x++) {
            struct hv_cell *c = hv__grid_at(g, x, y);
            uint16_t style = (uint16_t)((c->style & keep) | set);
            if (style != c->style) {
                hv__grid_changed(g, y, x, x + 1);
            }
            c->style = style;
        }
    }
}

/* Left parts of a cell by eighths: U+2588 is the full cell; each following code point is an eighth
 * less. */
static const char *const eighths_of_cell[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

void hv_grid_bar(struct hv_grid *g, int x, int y, int w, double frac, unsigned style)
{
    if (g->plain) {
        return;
    }
    if (isnan(frac) || frac < 0) {
        frac = 0;
    }
    if (frac > 1) {
        frac = 1;
    }
    int steps = g->ascii ? 1 : 8;
    int filled = (int)lround(frac * (double)w * steps);
    if (filled == 0 && frac > 0) {
        filled = 1;
    }
    for (int i = 0; i < w; i++) {
        int here = filled - i * steps;
        here = here < 0 ? 0 : here > steps ? steps : here;
        put_glyph(g, x + i, y, g->ascii ? (here > 0 ? "#" : " ") : eighths_of_cell[here], style);
    }
}

/* Lower parts of a cell by eighths. */
static const char *const eighths_of_height[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* Cells with the glyph of the first of two parts. */
static void put_parts(struct hv_grid *g, struct hv_rect r, const char *const *glyphs, int eighths,
                      unsigned first, unsigned rest)
{
    struct hv_rect in = hv_rect_meet(g->clip, r);
    for (int y = in.y; y < in.y + in.h; y++) {
        for (int x = in.x; x < in.x + in.w; x++) {
            if (g->ascii) {
                set_cell(g, x, y, " ", 1, 1, eighths >= 4 ? first : rest);
            } else {
                set_cell(g, x, y, glyphs[eighths], 3, 1, HV_STYLE_EDGE(first, rest));
            }
        }
    }
}

void hv_grid_edge(struct hv_grid *g, struct hv_rect r, int eighths, unsigned left, unsigned right)
{
    put_parts(g, r, eighths_of_cell, eighths, left, right);
}

void hv_grid_stack(struct hv_grid *g, struct hv_rect r, int eighths, unsigned lower, unsigned upper)
{
    put_parts(g, r, eighths_of_height, eighths, lower, upper);
}

int hv_cell_eighths(const struct hv_cell *c)
{
    int last =
        (unsigned char)c->utf8[2]; /* U+2581 … U+2588 from below, U+2588 … U+258F from left */
    return last <= 0x88 ? last - 0x80 : 0x90 - last;
}

void hv_grid_cursor(struct hv_grid *g, int x, int y)
{
    if (hv_rect_has(g->clip, x, y)) {
        g->cursor_x = x;
        g->cursor_y = y;
    }
}
