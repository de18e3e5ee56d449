/*
 * Frames of a grid: a frame begins with the cells of the one before, which count as blank until
 * they are drawn again. So a back end compares only the columns that changed, and moving a cursor
 * costs two rows. Independent of text.
 */
#include "ui/view/grid/grid_int.h"

#include <limits.h>
#include <stdlib.h>

#include "solver/base/arena.h"

static const struct hv_grid_columns none = {INT_MAX, 0};

/* Both frames share one allocation and are swapped. */
static void free_rows(struct hv_grid *g)
{
    free(g->changed < g->changed_before ? g->changed : g->changed_before);
    free(g->drawn < g->drawn_before ? g->drawn : g->drawn_before);
}

static void allocate(struct hv_grid *g, int w, int h)
{
    size_t n = (size_t)w * (size_t)h + 1, rows = (size_t)h + 1, words = ((size_t)w + 63) / 64;
    if (n > g->cap) { /* not reduced: dragging a window goes both ways */
        free(g->cells);
        g->cells = hv_xcalloc(n, sizeof *g->cells);
        g->cap = n;
    }
    free_rows(g);
    g->changed = hv_xcalloc(2 * rows, sizeof *g->changed);
    g->changed_before = g->changed + rows;
    g->drawn = hv_xcalloc(2 * rows * words + 1, sizeof *g->drawn);
    g->drawn_before = g->drawn + rows * words;
    g->n_words = words;
    g->w = w;
    g->h = h;
}

/* All cells blank in style 0, full clip, cursor hidden. */
static void clear(struct hv_grid *g)
{
    size_t n = (size_t)g->w * (size_t)g->h, done = 1;
    if (n > 0) {
        g->cells[0] = hv__cell_blank;
    }
    for (; done < n; done *= 2) { /* fills by doubling the copied range */
        memcpy(g->cells + done, g->cells, (done < n - done ? done : n - done) * sizeof *g->cells);
    }
    for (int y = 0; y < g->h; y++) {
        g->changed[y] = g->changed_before[y] = (struct hv_grid_columns){0, g->w};
        hv__grid_drawn(g, y, 0, g->w);
    }
    g->frame++;
    g->clip = (struct hv_rect){0, 0, g->w, g->h};
    g->cursor_x = g->cursor_y = -1;
}

void hv_grid_resize(struct hv_grid *g, int w, int h)
{
    w = w < 0 ? 0 : w > HV_GRID_MAX ? HV_GRID_MAX : w;
    h = h < 0 ? 0 : h > HV_GRID_MAX ? HV_GRID_MAX : h;
    if (w != g->w || h != g->h || !g->cells) {
        allocate(g, w, h);
    }
    clear(g);
}

void hv_grid_free(struct hv_grid *g)
{
    free(g->cells);
    free_rows(g);
    hv__grid_parts_free(g);
    *g = (struct hv_grid){0};
}

void hv_grid_begin(struct hv_grid *g, int w, int h)
{
    struct hv_grid_columns *changed = g->changed_before;
    uint64_t *drawn = g->drawn_before;
    if (w != g->w || h != g->h || !g->cells) {
        hv_grid_resize(g, w, h);
        return;
    }
    g->changed_before = g->changed;
    g->changed = changed;
    g->drawn_before = g->drawn;
    g->drawn = drawn;
    for (int y = 0; y < h; y++) {
        changed[y] = none;
    }
    memset(drawn, 0, (size_t)h * g->n_words * sizeof *drawn);
    g->frame++;
    g->clip = (struct hv_rect){0, 0, w, h};
    g->cursor_x = g->cursor_y = -1;
}

void hv_grid_end(struct hv_grid *g)
{
    for (int y = 0; y < g->h; y++) {
        for (size_t i = 0; i < g->n_words; i++) {
            size_t at = (size_t)y * g->n_words + i;
            /* cells not drawn in the previous frame either are blank already */
            uint64_t todo = g->drawn_before[at] & ~g->drawn[at];
            for (int x = (int)i * 64; todo != 0; x++, todo >>= 1) {
                if (todo & 1 && !hv__cell_same(hv__grid_at(g, x, y), &hv__cell_blank)) {
                    *hv__grid_at(g, x, y) = hv__cell_blank;
                    hv__grid_changed(g, y, x, x + 1);
                }
            }
        }
    }
}
