/*
 * Parts of a frame that stay as they are from one frame to the next, at their place or another:
 * their cells are cached, so that a key only redraws changed parts. The owner of a part decides
 * whether it is unchanged; ui/term decides on the output to the terminal.
 */
#include "ui/view/grid/grid_int.h"

#include <stdlib.h>

#include "solver/base/arena.h"

/* Set-associative cache: a part of one row belongs to the set given by its hash, a larger part to
 * the last set; the least recently shown part is replaced. There are few large parts, because
 * allocating one costs more than drawing it. */
enum { ROW_SETS = 64, ROW_WAYS = 4, LARGE = 16, ALL = ROW_SETS * ROW_WAYS + LARGE };

/* One part: its size and the piece of it that the clip leaves, what it shows, where it was shown
 * last, and the cursor it placed (in its piece; x < 0 = none). */
struct part {
    int w, h;
    struct hv_rect piece;
    uint64_t what;
    bool ascii, mono;
    uint64_t frame;
    int x, y, cursor_x, cursor_y;
    struct hv_cell *cells;
    size_t cap;
};

struct hv__grid_parts {
    struct part all[ALL];
    struct part open; /* what = 0: none; its cursor is that of what was drawn before, in the grid */
    int begun, open_at; /* parts begun and not ended, and which of them `open` is */
};

void hv__grid_parts_free(struct hv_grid *g)
{
    if (!g->parts) {
        return;
    }
    for (int i = 0; i < ALL; i++) {
        free(g->parts->all[i].cells);
    }
    free(g->parts);
    g->parts = NULL;
}

static bool same_part(const struct part *a, const struct part *b)
{
    return a->what == b->what && a->w == b->w && a->h == b->h && a->piece.x == b->piece.x &&
           a->piece.y == b->piece.y && a->piece.w == b->piece.w && a->piece.h == b->piece.h &&
           a->ascii == b->ascii && a->mono == b->mono;
}

/* The set in which a part may be stored; *n = its ways. */
static struct part *set_of(const struct hv_grid *g, const struct part *p, int *n)
{
    bool large = p->piece.h > 1;
    *n = large ? LARGE : ROW_WAYS;
    return g->parts->all + (large ? ROW_SETS : (p->what ^ p->what >> 32) % ROW_SETS) * ROW_WAYS;
}

/* The rectangle of cells that a part takes. */
static struct hv_rect place_of(const struct part *p)
{
    return (struct hv_rect){p->x, p->y, p->piece.w, p->piece.h};
}

static bool meets(struct hv_grid_columns c, struct hv_rect r)
{
    return c.from < r.x + r.w && c.to > r.x;
}

/* True where no cell of r changed since the frame before was begun, by this part or over it. */
static bool is_untouched(const struct hv_grid *g, struct hv_rect r)
{
    for (int y = r.y; y < r.y + r.h; y++) {
        if (meets(g->changed[y], r) || meets(g->changed_before[y], r)) {
            return false;
        }
    }
    return true;
}

/* Copies a cached part to the place of `wanted`; only marks its cells as drawn where they are there
 * already. */
static void show(struct hv_grid *g, struct part *p, const struct part *wanted)
{
    struct hv_rect at = place_of(wanted);
    bool there = p->frame + 1 == g->frame && p->x == at.x && p->y == at.y && is_untouched(g, at);
    for (int i = 0; i < at.h; i++) {
        if (there) {
            hv__grid_drawn(g, at.y + i, at.x, at.x + at.w);
        } else {
            hv__grid_put_cells(g, at.x, at.y + i, p->cells + (size_t)i * (size_t)at.w, at.w);
        }
    }
    p->x = at.x;
    p->y = at.y;
    p->frame = g->frame;
    if (p->cursor_x >= 0) {
        g->cursor_x = at.x + p->cursor_x;
        g->cursor_y = at.y + p->cursor_y;
    }
}

bool hv_grid_part(struct hv_grid *g, struct hv_rect r, uint64_t what)
{
    struct hv_rect in = hv_rect_meet(g->clip, r);
    if (g->plain) {
        return false;
    }
    if (!g->parts) {
        g->parts = hv_xcalloc(1, sizeof *g->parts);
    }
    g->parts->begun++;
    if (what == 0 || in.w <= 0 || g->parts->open.what != 0) {
        return false;
    }
    struct part wanted = {.w = r.w,
                          .h = r.h,
                          .piece = {in.x - r.x, in.y - r.y, in.w, in.h},
                          .what = what,
                          .ascii = g->ascii,
                          .mono = g->mono,
                          .x = in.x,
                          .y = in.y};
    int n;
    struct part *set = set_of(g, &wanted, &n);
    for (int i = 0; i < n; i++) {
        if (same_part(&set[i], &wanted)) {
            show(g, &set[i], &wanted);
            g->parts->begun--;
            return true;
        }
    }
    wanted.cursor_x = g->cursor_x;
    wanted.cursor_y = g->cursor_y;
    g->cursor_x = g->cursor_y = -1;
    g->parts->open = wanted;
    g->parts->open_at = g->parts->begun;
    return false;
}

/* Keeps the cells of a part in place of the one of its set that was not shown for longest. */
static void keep(struct hv_grid *g, const struct part *done)
{
    int ways;
    struct part *set = set_of(g, done, &ways), *to = &set[0];
    struct hv_rect at = place_of(done);
    size_t n = (size_t)at.w * (size_t)at.h;
    for (int i = 1; i < ways; i++) {
        to = set[i].frame < to->frame ? &set[i] : to;
    }
    struct hv_cell *cells = to->cells;
    size_t cap = to->cap;
    if (n > cap) {
        free(cells);
        cells = hv_xmalloc(n * sizeof *cells);
        cap = n;
    }
    *to = *done;
    to->cells = cells;
    to->cap = cap;
    to->frame = g->frame;
    for (int i = 0; i < at.h; i++) {
        memcpy(cells + (size_t)i * (size_t)at.w, hv__grid_at(g, at.x, at.y + i),
               (size_t)at.w * sizeof *cells);
    }
}

void hv_grid_part_end(struct hv_grid *g)
{
    if (!g->parts) {
        return;
    }
    bool ends = g->parts->begun-- == g->parts->open_at;
    if (g->parts->open.what == 0 || !ends) {
        return;
    }
    struct part done = g->parts->open;
    int before_x = done.cursor_x, before_y = done.cursor_y;
    g->parts->open.what = 0;
    done.cursor_x = g->cursor_x < 0 ? -1 : g->cursor_x - done.x;
    done.cursor_y = g->cursor_y - done.y;
    if (g->cursor_x < 0) {
        g->cursor_x = before_x;
        g->cursor_y = before_y;
    }
    hv__grid_blank_rest(g, place_of(&done));
    keep(g, &done);
}
