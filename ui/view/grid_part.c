/*
 * Parts of a frame that stay as they are from one frame to the next: their cells are kept beside
 * the grid, so that a key draws what it changed and copies the rest. Whether a part is still the
 * same is for its owner to say; what reaches the terminal is the business of ui/term.
 */
#include "ui/view/grid.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/vec.h"

/* One part: where, what it shows, and the cursor it placed (x < 0 = none). */
struct part {
    struct hv_rect at, clip;
    uint64_t what;
    bool ascii;
    int cursor_x, cursor_y;
};

struct hv__grid_parts {
    HV_VEC(struct part) list;
    struct hv_cell *cells; /* as many as the grid has; those of the parts are in their places */
    size_t cap;
    size_t next;      /* where the search begins: frames ask in the same order */
    struct part open; /* what = 0: none */
};

void hv__grid_parts_forget(struct hv_grid *g)
{
    if (g->parts)
        g->parts->list.n = 0;
}

void hv__grid_parts_free(struct hv_grid *g)
{
    if (!g->parts)
        return;
    hv_vec_free(&g->parts->list);
    free(g->parts->cells);
    free(g->parts);
    g->parts = NULL;
}

static bool same_rect(struct hv_rect a, struct hv_rect b)
{
    return a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h;
}

static bool same_part(const struct part *a, const struct part *b)
{
    return a->what == b->what && same_rect(a->at, b->at) && same_rect(a->clip, b->clip) &&
           a->ascii == b->ascii;
}

static void copy_cells(const struct hv_grid *g, struct hv_rect r, struct hv_cell *to,
                       const struct hv_cell *from)
{
    for (int y = r.y; y < r.y + r.h; y++) {
        size_t at = (size_t)y * (size_t)g->w + (size_t)r.x;
        memcpy(to + at, from + at, (size_t)r.w * sizeof *to);
    }
}

static const struct part *find(struct hv__grid_parts *all, const struct part *wanted)
{
    for (size_t k = 0; k < all->list.n; k++) {
        size_t i = (all->next + k) % all->list.n;
        if (same_part(&all->list.items[i], wanted)) {
            all->next = i + 1;
            return &all->list.items[i];
        }
    }
    return NULL;
}

bool hv_grid_part(struct hv_grid *g, struct hv_rect r, uint64_t what)
{
    struct part wanted = {hv_rect_meet(g->clip, r), g->clip, what, g->ascii, -1, -1};
    if (g->plain || what == 0 || wanted.at.w <= 0)
        return false;
    if (!g->parts)
        g->parts = hv_xcalloc(1, sizeof *g->parts);
    if (g->parts->cap < g->cap) { /* a new size: nothing is remembered */
        free(g->parts->cells);
        g->parts->cells = hv_xcalloc(g->cap, sizeof *g->parts->cells);
        g->parts->cap = g->cap;
    }
    const struct part *known = find(g->parts, &wanted);
    if (!known) {
        wanted.cursor_x = g->cursor_x; /* until the end: the one of the parts before */
        wanted.cursor_y = g->cursor_y;
        g->cursor_x = g->cursor_y = -1;
        g->parts->open = wanted;
        return false;
    }
    copy_cells(g, known->at, g->cells, g->parts->cells);
    if (known->cursor_x >= 0) {
        g->cursor_x = known->cursor_x;
        g->cursor_y = known->cursor_y;
    }
    return true;
}

/* Forgets the parts that lie where the cells of this one go; returns the place of the first. */
static size_t make_room(struct hv__grid_parts *all, struct hv_rect r)
{
    size_t kept = 0, first = SIZE_MAX;
    for (size_t i = 0; i < all->list.n; i++) {
        struct hv_rect both = hv_rect_meet(all->list.items[i].at, r);
        if (both.w > 0)
            first = first < kept ? first : kept;
        else
            all->list.items[kept++] = all->list.items[i];
    }
    all->list.n = kept;
    return first < kept ? first : kept;
}

void hv_grid_part_end(struct hv_grid *g)
{
    struct hv__grid_parts *all = g->parts;
    if (!all || all->open.what == 0)
        return;
    struct part done = all->open;
    all->open.what = 0;
    int before_x = done.cursor_x, before_y = done.cursor_y;
    done.cursor_x = g->cursor_x;
    done.cursor_y = g->cursor_y;
    if (g->cursor_x < 0) {
        g->cursor_x = before_x;
        g->cursor_y = before_y;
    }
    copy_cells(g, done.at, all->cells, g->cells);
    size_t at = make_room(all, done.at);
    hv_vec_push(&all->list, done);
    struct part *items = all->list.items;
    memmove(items + at + 1, items + at, (all->list.n - 1 - at) * sizeof *items);
    items[at] = done;
    all->next = at + 1;
}
