/* Words instead of cells: see the header. Draws nothing. */
#include "ui/view/grid/plain.h"

#include <string.h>

void hv_plain_line(struct hv_grid *g, const char *text)
{
    hv_text_clean(g->plain->out, text, strlen(text));
    hv_str_addc(g->plain->out, '\n');
}

/* A word that only draws: "[---o====]", "####", "|". */
static bool is_drawing(const char *word, size_t n)
{
    static const char strokes[] = "-=#.~^|+o*_:[]<>";
    size_t letters = 0;
    for (size_t i = 0; i < n; i++) {
        if (strchr(strokes, word[i]) == NULL) {
            return false;
        }
        letters += word[i] == 'o';
    }
    return (n >= 3 && letters <= 1) || (n == 1 && strchr("|^~", word[0]) != NULL);
}

void hv_plain_words(struct hv_str *out, const char *text)
{
    size_t start = out->n;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (n > 0 && !is_drawing(text, n)) {
            if (out->n > start) {
                hv_str_addc(out, ' ');
            }
            hv_str_add(out, text, n);
        }
        text += n + strspn(text + n, " ");
    }
    if (out->n > start) {
        hv_str_addc(out, '\n');
    }
}

/* Writes the cells of r as text and blanks them. */
static void take_cells(struct hv_grid *g, struct hv_rect r)
{
    struct hv_str row = {0};
    r = hv_rect_meet(r, (struct hv_rect){0, 0, g->w, g->h});
    for (int y = r.y; y < r.y + r.h; y++) {
        hv_str_clear(&row);
        for (int x = r.x; x < r.x + r.w; x++) {
            struct hv_cell *c = &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
            if (c->width > 0) {
                hv_str_adds(&row, c->utf8);
            }
            *c = (struct hv_cell){.utf8 = " ", .width = 1};
        }
        hv_plain_words(g->plain->out, hv_str_cstr(&row));
    }
    hv_str_free(&row);
}

void hv_plain_panel(struct hv_grid *g, struct hv_rect r, const char *title)
{
    struct hv_plain *p = g->plain;
    if (p->panel.w > 0) {
        take_cells(g, p->panel);
    }
    p->panel = r;
    if (title != NULL && title[0] != '\0') {
        if (p->out->n > 0) {
            hv_str_addc(p->out, '\n');
        }
        struct hv_str words = {0};
        hv_plain_words(&words, title);
        if (words.n > 0) {
            words.p[--words.n] = '\0';
        }
        hv_text_clean(p->out, hv_str_cstr(&words), words.n);
        hv_str_adds(p->out, ":\n");
        hv_str_free(&words);
    }
}

void hv_plain_end(struct hv_grid *g)
{
    if (g->plain->panel.w > 0) {
        take_cells(g, g->plain->panel);
    }
    take_cells(g, (struct hv_rect){0, 0, g->w, g->h});
    g->plain->panel = (struct hv_rect){0};
}
