/* The list of completions above the `:` prompt. Reads the line, changes nothing. */
#include "ui/view/app/palette.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"

enum { MOST_ROWS = 8, LEAST_H = 8, LEAST_W = 30, MARGIN = 1 };

/* The text to complete: the text before the first Tab, else the text before the cursor. Caller
 * frees. */
static char *base_of(const struct hv_line *l)
{
    if (l->complete_base) {
        return hv_xstrdup(l->complete_base);
    }
    char *base = hv_xstrdup(hv_str_cstr(&l->text));
    base[l->at < l->text.n ? l->at : l->text.n] = '\0';
    return base;
}

/* The completions from `top` on; returns how many of `rows` + 1 there are. Where there is none, the
 * command is shown with its usage. */
static size_t collect(const struct hv_line *l, const char *base, size_t top, size_t rows,
                      struct hv_str *out)
{
    size_t n = 0;
    while (n <= rows && l->complete(l->complete_ctx, base, top + n, &out[n])) {
        n++;
    }
    if (n == 0) {
        hv_str_add(&out[0], base, strcspn(base, " "));
    }
    return n;
}

static void draw_row(const char *line, bool here, hv_describe_fn *describe, const void *model,
                     struct hv_grid *g, struct hv_rect row)
{
    struct hv_str words = {0};
    unsigned style = here ? HV_STYLE_SELECTED : HV_STYLE_TEXT;
    int name_w = hv_text_width(line) + 2;
    name_w = name_w < 22 ? 22 : name_w;
    if (describe) {
        describe(model, line, &words);
    }
    hv_grid_fill(g, row, ' ', style);
    (void)hv_grid_put(g, row.x, row.y, 1, here ? ">" : " ", style);
    hv_grid_put_field(g, (struct hv_rect){row.x + 2, row.y, row.w - 2, 1}, HV_LEFT, line, style);
    if (name_w + 2 < row.w && words.n > 0) {
        hv_grid_put_field(g, (struct hv_rect){row.x + 2 + name_w, row.y, row.w - 2 - name_w, 1},
                          HV_LEFT, hv_str_cstr(&words), here ? HV_STYLE_SELECTED : HV_STYLE_DIM);
    }
    hv_str_free(&words);
}

/* "Commands", or the usage of the typed command. */
static void title_of(const char *base, hv_describe_fn *describe, const void *model,
                     struct hv_str *out)
{
    size_t n = strcspn(base, " ");
    struct hv_str name = {0};
    hv_str_add(&name, base, n);
    if (base[n] == ' ' && describe) {
        hv_str_addf(out, "%s ", hv_str_cstr(&name));
        describe(model, hv_str_cstr(&name), out);
    } else {
        hv_str_adds(out, "Commands");
    }
    hv_str_free(&name);
}

void hv_palette_draw(const struct hv_line *line, hv_describe_fn *describe, const void *model,
                     struct hv_grid *g, struct hv_rect body)
{
    if (!line->complete || body.h < LEAST_H || body.w < LEAST_W) {
        return;
    }
    size_t rows = (size_t)(body.h - 3) < MOST_ROWS ? (size_t)(body.h - 3) : MOST_ROWS;
    size_t at = line->complete_base && line->i_complete > 0 ? line->i_complete - 1 : SIZE_MAX;
    size_t top = at != SIZE_MAX && at >= rows ? at - rows + 1 : 0;
    struct hv_str found[MOST_ROWS + 1] = {0}, title = {0};
    char *base = base_of(line);
    size_t n = collect(line, base, top, rows, found), shown = n < rows ? n : rows;
    if (n == 0 && describe) {
        describe(model, hv_str_cstr(&found[0]), &title);
    }
    shown = title.n > 0 ? 1 : shown;
    hv_str_clear(&title);
    if (shown > 0) {
        struct hv_rect r = {body.x + MARGIN, body.y + body.h - (int)shown - 2, body.w - 2 * MARGIN,
                            (int)shown + 2};
        struct hv_rect in = hv_rect_inner(r);
        title_of(n > 0 ? base : "", describe, model, &title);
        hv_grid_fill(g, r, ' ', HV_STYLE_TEXT);
        hv_grid_box(g, r, hv_str_cstr(&title), true, HV_STYLE_FRAME_FOCUS);
        for (size_t i = 0; i < shown; i++) {
            draw_row(hv_str_cstr(&found[i]), top + i == at, describe, model, g,
                     (struct hv_rect){in.x, in.y + (int)i, in.w, 1});
        }
        if (n > rows) {
            (void)hv_grid_put(g, r.x + r.w - 18, r.y + r.h - 1, -1, " Tab shows more ",
                              HV_STYLE_DIM);
        }
    }
    for (size_t i = 0; i <= rows; i++) {
        hv_str_free(&found[i]);
    }
    hv_str_free(&title);
    free(base);
}
