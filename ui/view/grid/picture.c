/** Cells to text, and to pixels: backgrounds, then frames and bars as rectangles, so that they meet
 * without gaps in any font, then text by runs of equal style. The grid itself has no colours. */
#include "ui/view/grid/picture.h"

#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include "solver/base/str.h"
#include "solver/io/export/painter.h"

#define CELL_W   8.0
#define CELL_H   17.0
#define BASELINE 13.0
#define FONT_PX  13.29 /* DejaVu Sans Mono advances by 0.602 of it: one cell */

/* A terminal's own colours, dark and light. */
static const unsigned backgrounds[2] = {0x16181d, 0xffffff}, foregrounds[2] = {0xd8dce3, 0x1f2328};

struct picture {
    const struct hv_grid *g;
    const struct hv_theme *theme;
};

/** RGB of an xterm-256 colour; the first 16 as xterm draws them. */
static unsigned rgb_of(int colour)
{
    static const unsigned basic[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                       0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                       0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
    static const unsigned levels[6] = {0, 95, 135, 175, 215, 255};
    if (colour < 16) {
        return basic[colour];
    }
    if (colour >= 232) {
        unsigned v = 8 + 10 * (unsigned)(colour - 232);
        return v << 16 | v << 8 | v;
    }
    unsigned c = (unsigned)colour - 16;
    return levels[c / 36] << 16 | levels[c / 6 % 6] << 8 | levels[c % 6];
}

/** Each channel three fifths of one colour and two of another. */
static unsigned blend(unsigned a, unsigned b)
{
    unsigned out = 0;
    for (unsigned shift = 0; shift < 24; shift += 8) {
        out |= ((a >> shift & 255) * 3 + (b >> shift & 255) * 2) / 5 << shift;
    }
    return out;
}

/** Colours and weight of a cell's style, flags included. */
struct ink {
    unsigned fg, bg;
    bool bold, underline;
};

static const struct hv_style_look *look_of(const struct hv_theme *theme, unsigned id)
{
    return &theme->looks[id < HV_STYLE_N ? id : HV_STYLE_TEXT];
}

static void swap_ground(struct ink *k)
{
    unsigned fg = k->fg;
    k->fg = k->bg;
    k->bg = fg;
}

/** One style without flags. */
static struct ink plain_ink(const struct hv_theme *theme, unsigned id)
{
    const struct hv_style_look *look = look_of(theme, id);
    struct ink k = {.fg = look->fg < 0 ? foregrounds[theme->light] : rgb_of(look->fg),
                    .bg = look->bg < 0 ? backgrounds[theme->light] : rgb_of(look->bg),
                    .bold = (look->attr & HV_ATTR_BOLD) != 0,
                    .underline = (look->attr & HV_ATTR_UNDERLINE) != 0};
    if (look->attr & HV_ATTR_DIM) {
        k.fg = blend(k.fg, k.bg);
    }
    if (look->attr & HV_ATTR_REVERSE) {
        swap_ground(&k);
    }
    return k;
}

static struct ink ink_of(const struct hv_theme *theme, unsigned style)
{
    struct ink k = plain_ink(theme, style & HV_STYLE_ID_MASK);
    if (HV_STYLE_RIGHT(style) != 0) {
        k = (struct ink){.fg = k.bg, .bg = plain_ink(theme, HV_STYLE_RIGHT(style)).bg};
    }
    k.bold = k.bold || (style & HV_STYLE_BOLD) != 0;
    k.underline = k.underline || (style & HV_STYLE_UNDERLINE) != 0;
    if (style & HV_STYLE_REVERSE) {
        swap_ground(&k);
    }
    return k;
}

/** A rectangle in shares of a cell, 0 … 1. */
static void fill_part(const struct hv_painter *p, int x, int y, struct hv_paint_rect part)
{
    part.x = (x + part.x) * CELL_W;
    part.y = (y + part.y) * CELL_H;
    part.w *= CELL_W;
    part.h *= CELL_H;
    p->rect(p->ctx, &part);
}

/* Frames: how thick the arms to the left, right, top and bottom are; 0 = none. */
static const struct line_glyph {
    const char *utf8;
    unsigned char left, right, up, down;
} line_glyphs[] = {{"─", 1, 1, 0, 0}, {"│", 0, 0, 1, 1}, {"┌", 0, 1, 0, 1}, {"┐", 1, 0, 0, 1},
                   {"┘", 1, 0, 1, 0}, {"└", 0, 1, 1, 0}, {"├", 0, 1, 1, 1}, {"━", 2, 2, 0, 0},
                   {"┃", 0, 0, 2, 2}, {"┏", 0, 2, 0, 2}, {"┓", 2, 0, 0, 2}, {"┛", 2, 0, 2, 0},
                   {"┗", 0, 2, 2, 0}};

static bool draw_line(const struct hv_painter *p, int x, int y, const char *utf8, unsigned fg)
{
    for (size_t i = 0; i < HV_COUNT(line_glyphs); i++) {
        const struct line_glyph *l = &line_glyphs[i];
        if (strcmp(l->utf8, utf8) != 0) {
            continue;
        }
        double thick = (l->left | l->right | l->up | l->down) > 1 ? 2.2 : 1.0;
        double w = thick / CELL_W, h = thick / CELL_H;
        double x0 = l->left ? 0 : 0.5 - w / 2, x1 = l->right ? 1 : 0.5 + w / 2;
        double y0 = l->up ? 0 : 0.5 - h / 2, y1 = l->down ? 1 : 0.5 + h / 2;
        if (l->left || l->right) {
            fill_part(p, x, y,
                      (struct hv_paint_rect){
                          .x = x0, .y = 0.5 - h / 2, .w = x1 - x0, .h = h, .fill = fg});
        }
        if (l->up || l->down) {
            fill_part(p, x, y,
                      (struct hv_paint_rect){
                          .x = 0.5 - w / 2, .y = y0, .w = w, .h = y1 - y0, .fill = fg});
        }
        return true;
    }
    return false;
}

/** Block elements U+2581 … U+258F: eighths from below, all, eighths from the left. */
static bool draw_block(const struct hv_painter *p, int x, int y, const char *utf8, unsigned fg)
{
    unsigned char last = (unsigned char)utf8[2];
    if (strncmp(utf8, "\xe2\x96", 2) != 0 || last < 0x81 || last > 0x8f) {
        return false;
    }
    struct hv_paint_rect part = {.w = 1, .h = 1, .fill = fg};
    if (last <= 0x88) {
        part.h = (last - 0x80) / 8.0;
        part.y = 1 - part.h;
    } else {
        part.w = (0x90 - last) / 8.0;
    }
    fill_part(p, x, y, part);
    return true;
}

/** Draws a cell whose glyph is made of rectangles, not text. */
static bool draw_glyph(const struct hv_painter *p, int x, int y, const char *utf8, unsigned fg)
{
    return draw_block(p, x, y, utf8, fg) || draw_line(p, x, y, utf8, fg);
}

static const struct hv_cell *row_of(const struct hv_grid *g, int y)
{
    return &g->cells[(size_t)y * (size_t)g->w];
}

/** One run of cells [x0, x1) of row y with equal style: its background. */
static void draw_ground(const struct hv_painter *p, const struct picture *w, int y, int x0, int x1)
{
    struct ink k = ink_of(w->theme, row_of(w->g, y)[x0].style);
    struct hv_paint_rect r = {.x = x0 * CELL_W, .w = (x1 - x0) * CELL_W};
    if (k.bg != backgrounds[w->theme->light]) {
        r.y = y * CELL_H;
        r.h = CELL_H;
        r.fill = k.bg;
        p->rect(p->ctx, &r);
    }
    if (k.underline) {
        r.y = y * CELL_H + BASELINE + 1.5;
        r.h = 1;
        r.fill = k.fg;
        p->rect(p->ctx, &r);
    }
}

static void put_text(const struct hv_painter *p, const struct hv_str *s, struct ink k, int x, int y,
                     int n)
{
    p->text(p->ctx, &(struct hv_paint_text){.x = x * CELL_W,
                                            .y = y * CELL_H + BASELINE,
                                            .size_px = FONT_PX,
                                            .fill = k.fg,
                                            .bold = k.bold,
                                            .mono = true,
                                            .width_px = n * CELL_W,
                                            .text = hv_str_cstr(s)});
}

/** The text of a run, word by word; what is not ASCII stands alone, so that a glyph from another
 * font moves nothing behind it. */
static void draw_text(const struct hv_painter *p, const struct picture *w, int y, int x0, int x1)
{
    const struct hv_cell *row = row_of(w->g, y);
    struct ink k = ink_of(w->theme, row[x0].style);
    struct hv_str word = {0};
    int from = x0;
    for (int x = x0; x <= x1; x++) {
        bool ascii = x < x1 && row[x].width == 1 && (unsigned char)row[x].utf8[0] < 0x80;
        bool inside = ascii && (row[x].utf8[0] != ' ' ||
                                (word.n > 0 && x + 1 < x1 && row[x + 1].utf8[0] != ' '));
        if (!inside && word.n > 0) {
            put_text(p, &word, k, from, y, x - from);
            hv_str_clear(&word);
        }
        if (inside) {
            from = word.n > 0 ? from : x;
            hv_str_adds(&word, row[x].utf8);
        } else if (x < x1 && !ascii && row[x].width > 0 &&
                   !draw_glyph(p, x, y, row[x].utf8, k.fg)) {
            hv_str_adds(&word, row[x].utf8);
            put_text(p, &word, k, x, y, row[x].width);
            hv_str_clear(&word);
        }
    }
    hv_str_free(&word);
}

static void draw_grid(const struct hv_painter *p, const void *what)
{
    const struct picture *w = what;
    const struct hv_grid *g = w->g;
    p->rect(p->ctx, &(struct hv_paint_rect){.w = g->w * CELL_W,
                                            .h = g->h * CELL_H,
                                            .fill = backgrounds[w->theme->light]});
    for (int y = 0; y < g->h; y++) {
        const struct hv_cell *row = row_of(g, y);
        for (int x = 0; x < g->w;) {
            int end = x + 1;
            while (end < g->w && row[end].style == row[x].style) {
                end++;
            }
            draw_ground(p, w, y, x, end);
            draw_text(p, w, y, x, end);
            x = end;
        }
    }
}

/* Appends an SVG picture of the grid in a theme's 256 colours. O(w·h). */
static void write_svg(const struct hv_grid *g, const struct hv_theme *theme, struct hv_str *out)
{
    struct picture w = {g, theme};
    hv_paint_svg((int)(g->w * CELL_W), (int)(g->h * CELL_H), draw_grid, &w, out);
}

/* The same picture as PNG. Errors: HV_ELIMIT when it is too large for cairo. O(w·h). */
static enum hv_status write_png(const struct hv_grid *g, const struct hv_theme *theme,
                                struct hv_str *out, struct hv_err *err)
{
    struct picture w = {g, theme};
    return hv_paint_png((int)(g->w * CELL_W), (int)(g->h * CELL_H), draw_grid, &w, out, err);
}

enum hv_status hv_grid_save(const struct hv_grid *g, const struct hv_theme *theme, const char *path,
                            struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_theme plain;
    enum hv_status st = HV_OK;
    if (theme == NULL) {
        hv_theme_default(&plain);
        theme = &plain;
    }
    if (hv_text_ends_with(path, ".svg")) {
        write_svg(g, theme, &text);
    } else if (hv_text_ends_with(path, ".png")) {
        st = write_png(g, theme, &text, err);
    } else {
        hv_grid_dump(g, &text);
    }
    if (st == HV_OK) {
        st = hv_file_write(path, hv_str_cstr(&text), text.n, err);
    }
    hv_str_free(&text);
    return st;
}

static void trim_line(struct hv_str *out, size_t from, char pad)
{
    while (out->n > from && out->p[out->n - 1] == pad) {
        out->p[--out->n] = '\0';
    }
    hv_str_addc(out, '\n');
}

void hv_grid_dump(const struct hv_grid *g, struct hv_str *out)
{
    for (int y = 0; y < g->h; y++) {
        size_t from = out->n;
        for (int x = 0; x < g->w; x++) {
            const struct hv_cell *c = &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
            if (c->width > 0) {
                hv_str_adds(out, c->utf8);
            }
        }
        trim_line(out, from, ' ');
    }
}
