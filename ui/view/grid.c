/*
 * Cell grid: clipping, text by graphemes, frames, bars. Knows nothing of terminals; colours
 * are style ids only.
 */
#include "ui/view/grid.h"

#include "ui/view/plain.h"
#include "ui/view/theme.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "solver/base/arena.h"

static const struct hv_cell blank = {.utf8 = " ", .width = 1, .style = 0};

struct hv_rect hv_rect_meet(struct hv_rect a, struct hv_rect b)
{
    int x0 = a.x > b.x ? a.x : b.x, y0 = a.y > b.y ? a.y : b.y;
    int ax = a.x + a.w, bx = b.x + b.w, ay = a.y + a.h, by = b.y + b.h;
    int x1 = ax < bx ? ax : bx, y1 = ay < by ? ay : by;
    if (x1 <= x0 || y1 <= y0)
        return (struct hv_rect){.x = x0, .y = y0};
    return (struct hv_rect){x0, y0, x1 - x0, y1 - y0};
}

bool hv_rect_has(struct hv_rect r, int x, int y)
{
    return x >= r.x && y >= r.y && x < r.x + r.w && y < r.y + r.h;
}

struct hv_rect hv_rect_inner(struct hv_rect r)
{
    struct hv_rect in = {r.x + 1, r.y + 1, r.w - 2, r.h - 2};
    if (in.w < 0)
        in.w = 0;
    if (in.h < 0)
        in.h = 0;
    return in;
}

void hv_grid_resize(struct hv_grid *g, int w, int h)
{
    w = w < 0 ? 0 : w > HV_GRID_MAX ? HV_GRID_MAX : w;
    h = h < 0 ? 0 : h > HV_GRID_MAX ? HV_GRID_MAX : h;
    if (w != g->w || h != g->h || !g->cells) {
        size_t n = (size_t)w * (size_t)h + 1;
        if (n > g->cap) { /* kept when it gets smaller: whoever drags a window goes both ways */
            free(g->cells);
            g->cells = hv_xcalloc(n, sizeof *g->cells);
            g->cap = n;
        }
        g->w = w;
        g->h = h;
        hv__grid_parts_forget(g);
    }
    hv_grid_clear(g);
}

void hv_grid_free(struct hv_grid *g)
{
    free(g->cells);
    hv__grid_parts_free(g);
    *g = (struct hv_grid){0};
}

void hv_grid_clear(struct hv_grid *g)
{
    size_t n = (size_t)g->w * (size_t)g->h, done = 1;
    if (n > 0)
        g->cells[0] = blank;
    for (; done < n; done *= 2) /* what is there twice is there four times with the next step */
        memcpy(g->cells + done, g->cells, (done < n - done ? done : n - done) * sizeof *g->cells);
    g->clip = (struct hv_rect){0, 0, g->w, g->h};
    g->cursor_x = g->cursor_y = -1;
}

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

static struct hv_cell *cell_at(struct hv_grid *g, int x, int y)
{
    return &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
}

/* A wide grapheme loses its other half when one half is overwritten. */
static void break_wide(struct hv_grid *g, int x, int y)
{
    struct hv_cell *c = cell_at(g, x, y);
    if (c->width == 0 && x > 0) {
        uint16_t style = cell_at(g, x - 1, y)->style;
        *cell_at(g, x - 1, y) = blank;
        cell_at(g, x - 1, y)->style = style;
    } else if (c->width == 2 && x + 1 < g->w) {
        uint16_t style = cell_at(g, x + 1, y)->style;
        *cell_at(g, x + 1, y) = blank;
        cell_at(g, x + 1, y)->style = style;
    }
}

/* Writes one grapheme of `width` columns; the caller has checked nothing. */
static void set_cell(struct hv_grid *g, int x, int y, const char *bytes, size_t n, int width,
                     unsigned style)
{
    bool fits = hv_rect_has(g->clip, x, y) && (width < 2 || hv_rect_has(g->clip, x + 1, y));
    if (!fits) {
        if (width == 2 && (hv_rect_has(g->clip, x, y) || hv_rect_has(g->clip, x + 1, y)))
            set_cell(g, hv_rect_has(g->clip, x, y) ? x : x + 1, y, " ", 1, 1, style);
        return;
    }
    break_wide(g, x, y);
    if (width == 2)
        break_wide(g, x + 1, y);
    struct hv_cell *c = cell_at(g, x, y);
    memset(c->utf8, 0, sizeof c->utf8);
    memcpy(c->utf8, bytes, n);
    c->width = (uint8_t)width;
    c->style = (uint16_t)style;
    if (width == 2) {
        struct hv_cell *right = cell_at(g, x + 1, y);
        *right = (struct hv_cell){.width = 0, .style = (uint16_t)style};
    }
}

/* A character of one byte and one column, whatever stands beside it. */
static bool is_plain(const char *s, size_t left)
{
    return s[0] >= ' ' && s[0] < 0x7f && (left == 1 || (unsigned char)s[1] < 0x80);
}

/* The part of n columns from x on that the clip leaves, ready to be overwritten with cells of one
 * column: *n = how many, *skipped = how many the clip cut off in front. NULL: none. */
static struct hv_cell *open_run(struct hv_grid *g, int x, int y, int *n, int *skipped)
{
    struct hv_rect in = hv_rect_meet(g->clip, (struct hv_rect){x, y, *n, 1});
    *n = in.w;
    *skipped = in.x - x;
    if (in.w <= 0)
        return NULL;
    struct hv_cell *first = cell_at(g, in.x, y), *last = first + in.w - 1;
    if (first->width == 0)
        break_wide(g, in.x, y);
    if (last->width == 2)
        break_wide(g, in.x + in.w - 1, y);
    return first;
}

/* Writes such characters. */
static void put_plain(struct hv_grid *g, int x, int y, const char *text, int n, unsigned style)
{
    int skipped;
    struct hv_cell *to = open_run(g, x, y, &n, &skipped);
    for (int i = 0; i < n; i++)
        to[i] = (struct hv_cell){.utf8 = {text[skipped + i]}, .width = 1, .style = (uint16_t)style};
}

/* How many of such characters a text of n bytes begins with, at most `most`. */
static int plain_run(const char *s, size_t n, int most)
{
    int k = 0;
    while (k < most && (size_t)k < n && is_plain(s + k, n - (size_t)k))
        k++;
    return k;
}

/* Length of a text of nothing but such characters, else SIZE_MAX. */
static size_t plain_length(const char *s)
{
    size_t n = 0;
    while (s[n] >= ' ' && s[n] < 0x7f)
        n++;
    return s[n] == '\0' ? n : SIZE_MAX;
}

/* A grapheme: bytes of the whole, bytes that fit a cell, columns. */
struct grapheme {
    size_t n, keep;
    int width;
};

static utf8proc_ssize_t decode(const char *s, size_t n, utf8proc_int32_t *cp)
{
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, cp);
    if (len <= 0) {
        *cp = '?';
        return 1;
    }
    return len;
}

static struct grapheme next_grapheme(const char *s, size_t n)
{
    utf8proc_int32_t cp = 0, prev = 0, state = 0;
    struct grapheme out = {0};
    if (n > 0 && is_plain(s, n))
        return (struct grapheme){1, 1, 1};
    while (out.n < n) {
        utf8proc_ssize_t len = decode(s + out.n, n - out.n, &cp);
        if (out.n > 0 && utf8proc_grapheme_break_stateful(prev, cp, &state))
            break;
        int w = utf8proc_charwidth(cp);
        if (w > out.width)
            out.width = w > 2 ? 2 : w;
        out.n += (size_t)len;
        if (out.n < sizeof((struct hv_cell *)0)->utf8)
            out.keep = out.n;
        prev = cp;
    }
    return out;
}

size_t hv_text_next(const char *text, size_t at)
{
    return next_grapheme(text + at, strlen(text + at)).n;
}

size_t hv_text_prev(const char *text, size_t at)
{
    size_t i = 0, last = 0;
    while (i < at && text[i]) {
        last = i;
        i += hv_text_next(text, i);
    }
    return last;
}

size_t hv_text_fit(const char *text, int max_w)
{
    size_t i = 0, n = strlen(text);
    int used = 0;
    while (i < n) {
        struct grapheme gr = next_grapheme(text + i, n - i);
        if (used + gr.width > max_w)
            break;
        used += gr.width;
        i += gr.n;
    }
    return i;
}

size_t hv_text_wrap(const char *text, int w)
{
    size_t line = strcspn(text, "\n"), n = hv_text_fit(text, w);
    if (line <= n)
        return line;
    size_t cut = n;
    while (cut > 0 && text[cut] != ' ')
        cut--;
    return cut > 0 ? cut : n > 0 ? n : 1;
}

int hv_text_width(const char *text)
{
    size_t i = 0, n = strlen(text), plain = plain_length(text);
    int used = 0;
    if (plain < INT_MAX)
        return (int)plain;
    while (i < n) {
        struct grapheme gr = next_grapheme(text + i, n - i);
        used += gr.width;
        i += gr.n;
    }
    return used;
}

/* Puts one grapheme; returns its columns. Bytes that are no text become '?'; dashes (unknown
 * figures) stay dashes in ASCII. */
static int put_grapheme(struct hv_grid *g, int x, int y, const char *s, struct grapheme gr,
                        unsigned style)
{
    unsigned char first = (unsigned char)s[0];
    utf8proc_int32_t cp;
    bool bad = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)gr.n, &cp) <= 0;
    if (bad || first < 0x20 || first == 0x7f || (g->ascii && first >= 0x80)) {
        int w = gr.width > 0 ? gr.width : 1;
        bool dash = !bad && cp >= 0x2010 && cp <= 0x2015;
        for (int i = 0; i < w; i++)
            set_cell(g, x + i, y, dash ? "-" : "?", 1, 1, style);
        return w;
    }
    if (gr.width == 0)
        return 0;
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
        struct grapheme gr = next_grapheme(text + i, n - i);
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
    if (plain_length(text) != SIZE_MAX)
        return hv_grid_put(g, x, y, max_w, text, style);
    hv_text_clean(&clean, text, strlen(text));
    int used = hv_grid_put(g, x, y, max_w, hv_str_cstr(&clean), style);
    hv_str_free(&clean);
    return used;
}

/* n plain characters from column x on of a field; blanks around them. */
static void put_plain_padded(struct hv_grid *g, struct hv_rect at, int x, const char *s, int n,
                             unsigned style)
{
    int w = at.w, skipped;
    const struct hv_cell pad = {.utf8 = " ", .width = 1, .style = (uint16_t)style};
    struct hv_cell *to = open_run(g, at.x, at.y, &w, &skipped);
    int from = x - at.x - skipped; /* of the text, in cells from `to` on */
    for (int i = 0; i < w; i++) {
        to[i] = pad;
        if (i >= from && i < from + n)
            to[i].utf8[0] = s[i - from];
    }
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
    size_t plain = plain_length(text);
    if (plain == SIZE_MAX) {
        hv_text_clean(&clean, text, strlen(text));
        s = hv_str_cstr(&clean);
    }
    int w = plain < INT_MAX ? (int)plain : hv_text_width(s), x = at.x;
    if (w > at.w && at.w > 0) {
        put_padded(g, at, x, at.w - 1, s, style);
        (void)hv_grid_put(g, at.x + at.w - 1, at.y, 1, g->ascii ? "~" : "…", style);
    } else if (at.w > 0) {
        if (align == HV_RIGHT)
            x += at.w - w;
        else if (align == HV_CENTER)
            x += (at.w - w) / 2;
        if (plain < INT_MAX)
            put_plain_padded(g, at, x, s, w, style);
        else
            put_padded(g, at, x, w, s, style);
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
    int skipped;
    struct hv_cell cell = {.width = 1, .style = (uint16_t)style};
    struct hv_cell *to = open_run(g, x, y, &n, &skipped);
    memcpy(cell.utf8, glyph, strlen(glyph));
    for (int i = 0; i < n; i++)
        to[i] = cell;
}

void hv_grid_hline(struct hv_grid *g, int x, int y, int n, unsigned style)
{
    put_glyphs(g, x, y, n, g->ascii ? "-" : "─", style);
}

void hv_grid_vline(struct hv_grid *g, int x, int y, int n, unsigned style)
{
    struct hv_rect r = hv_rect_meet(g->clip, (struct hv_rect){x, y, 1, n});
    for (int i = 0; i < r.h; i++)
        put_glyph(g, x, r.y + i, g->ascii ? "|" : "│", style);
}

/* Frame glyphs: horizontal, vertical, corners from top left clockwise. */
static const char *const frames[3][6] = {
    {"─", "│", "┌", "┐", "┘", "└"}, {"━", "┃", "┏", "┓", "┛", "┗"}, {"-", "|", "+", "+", "+", "+"}};

void hv_grid_box(struct hv_grid *g, struct hv_rect r, const char *title, bool focused,
                 unsigned style)
{
    if (r.w < 2 || r.h < 2)
        return;
    if (g->plain) {
        hv_plain_panel(g, hv_rect_inner(r), title);
        return;
    }
    const char *const *f = frames[g->ascii ? 2 : focused ? 1 : 0];
    const char *horizontal = g->ascii && focused ? "=" : f[0];
    int right = r.x + r.w - 1, bottom = r.y + r.h - 1;
    put_glyphs(g, r.x + 1, r.y, r.w - 2, horizontal, style);
    put_glyphs(g, r.x + 1, bottom, r.w - 2, horizontal, style);
    for (int y = r.y + 1; y < bottom; y++) {
        put_glyph(g, r.x, y, f[1], style);
        put_glyph(g, right, y, f[1], style);
    }
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
        int n = in.w, skipped;
        struct hv_cell *to = open_run(g, in.x, y, &n, &skipped);
        for (int i = 0; i < n; i++)
            to[i] = cell;
    }
}

void hv_grid_restyle(struct hv_grid *g, struct hv_rect r, unsigned keep, unsigned set)
{
    struct hv_rect in = hv_rect_meet(g->clip, r);
    for (int y = in.y; y < in.y + in.h; y++)
        for (int x = in.x; x < in.x + in.w; x++)
            cell_at(g, x, y)->style = (uint16_t)((cell_at(g, x, y)->style & keep) | set);
}

/* Left parts of a cell by eighths: U+2588 is all of it, each one further an eighth less. */
static const char *const eighths_of_cell[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

void hv_grid_bar(struct hv_grid *g, int x, int y, int w, double frac, unsigned style)
{
    if (g->plain)
        return;
    if (isnan(frac) || frac < 0)
        frac = 0;
    if (frac > 1)
        frac = 1;
    int steps = g->ascii ? 1 : 8;
    int filled = (int)lround(frac * (double)w * steps);
    if (filled == 0 && frac > 0)
        filled = 1;
    for (int i = 0; i < w; i++) {
        int here = filled - i * steps;
        here = here < 0 ? 0 : here > steps ? steps : here;
        put_glyph(g, x + i, y, g->ascii ? (here > 0 ? "#" : " ") : eighths_of_cell[here], style);
    }
}

void hv_grid_edge(struct hv_grid *g, struct hv_rect r, int eighths, unsigned left, unsigned right)
{
    struct hv_rect in = hv_rect_meet(g->clip, r);
    for (int y = in.y; y < in.y + in.h; y++)
        for (int x = in.x; x < in.x + in.w; x++)
            if (g->ascii)
                set_cell(g, x, y, " ", 1, 1, eighths >= 4 ? left : right);
            else
                set_cell(g, x, y, eighths_of_cell[eighths], 3, 1, HV_STYLE_EDGE(left, right));
}

int hv_cell_eighths(const struct hv_cell *c)
{
    return 0x90 - (unsigned char)c->utf8[2];
}

void hv_grid_cursor(struct hv_grid *g, int x, int y)
{
    if (hv_rect_has(g->clip, x, y)) {
        g->cursor_x = x;
        g->cursor_y = y;
    }
}
