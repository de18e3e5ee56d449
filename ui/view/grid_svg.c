/** Cells to SVG: one rectangle and one text per run of equal style. The grid itself knows no
 * colours. */
#include "ui/view/grid_svg.h"

#include <string.h>

#include "solver/base/file.h"

enum { CELL_W = 8, CELL_H = 17, BASELINE = 13, BACKGROUND = 0x16181d, FOREGROUND = 0xd8dce3 };

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

/** Colours and weight of a cell's style, flags included. */
struct ink {
    unsigned fg, bg;
    bool bold, underline, dim;
};

static struct ink ink_of(unsigned style, const struct hv_theme *theme)
{
    unsigned id = style & HV_STYLE_ID_MASK;
    const struct hv_style_look *look = &theme->looks[id < HV_STYLE_N ? id : HV_STYLE_TEXT];
    struct ink k = {.fg = look->fg < 0 ? FOREGROUND : rgb_of(look->fg),
                    .bg = look->bg < 0 ? BACKGROUND : rgb_of(look->bg),
                    .bold = (look->attr & HV_ATTR_BOLD) || (style & HV_STYLE_BOLD),
                    .underline = (look->attr & HV_ATTR_UNDERLINE) || (style & HV_STYLE_UNDERLINE),
                    .dim = (look->attr & HV_ATTR_DIM) != 0};
    if (((look->attr & HV_ATTR_REVERSE) != 0) != ((style & HV_STYLE_REVERSE) != 0)) {
        unsigned fg = k.fg;
        k.fg = k.bg;
        k.bg = fg;
    }
    return k;
}

static void add_escaped(struct hv_str *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '>' || *text == '&') {
            hv_str_adds(out, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;");
        } else {
            hv_str_addc(out, *text);
        }
    }
}

/** One run of cells [x0, x1) of row y. */
static void add_run(const struct hv_grid *g, int y, int x0, int x1, const struct hv_theme *theme,
                    struct hv_str *out)
{
    const struct hv_cell *row = &g->cells[(size_t)y * (size_t)g->w];
    struct ink k = ink_of(row[x0].style, theme);
    if (k.bg != BACKGROUND) {
        hv_str_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n",
                    x0 * CELL_W, y * CELL_H, (x1 - x0) * CELL_W, CELL_H, k.bg);
    }
    bool blank = true;
    for (int x = x0; x < x1; x++) {
        blank = blank && (row[x].width == 0 || row[x].utf8[0] == ' ');
    }
    if (blank && !k.underline) {
        return;
    }
    hv_str_addf(
        out,
        "<text x=\"%d\" y=\"%d\" fill=\"#%06x\" textLength=\"%d\" xml:space=\"preserve\"%s%s%s>",
        x0 * CELL_W, y * CELL_H + BASELINE, k.fg, (x1 - x0) * CELL_W,
        k.bold ? " font-weight=\"bold\"" : "", k.underline ? " text-decoration=\"underline\"" : "",
        k.dim ? " opacity=\"0.6\"" : "");
    for (int x = x0; x < x1; x++) {
        if (row[x].width > 0) {
            add_escaped(out, row[x].utf8);
        }
    }
    hv_str_adds(out, "</text>\n");
}

void hv_grid_svg(const struct hv_grid *g, const struct hv_theme *theme, struct hv_str *out)
{
    hv_str_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
        "0 %d %d\" "
        "font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13.29\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n",
        g->w * CELL_W, g->h * CELL_H, g->w * CELL_W, g->h * CELL_H, g->w * CELL_W, g->h * CELL_H,
        (unsigned)BACKGROUND);
    for (int y = 0; y < g->h; y++) {
        const struct hv_cell *row = &g->cells[(size_t)y * (size_t)g->w];
        for (int x = 0; x < g->w;) {
            int end = x + 1;
            while (end < g->w && row[end].style == row[x].style) {
                end++;
            }
            add_run(g, y, x, end, theme, out);
            x = end;
        }
    }
    hv_str_adds(out, "</svg>\n");
}

enum hv_status hv_grid_save(const struct hv_grid *g, const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".svg") == 0) {
        struct hv_theme theme;
        hv_theme_default(&theme);
        hv_grid_svg(g, &theme, &text);
    } else {
        hv_grid_dump(g, &text);
    }
    enum hv_status st = hv_file_write(path, hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    return st;
}
