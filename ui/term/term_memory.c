/* Terminal in memory: gives scripted events and keeps the last grid. For tests; sends nothing. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "ui/term/term.h"
#include "ui/view/grid/layout.h"

struct hv_term {
    const struct hv_event *events;
    size_t n_events, at, changed;
    struct hv_grid last;
    int w, h;
};

static enum hv_status open_memory(const struct hv_term_config *c, struct hv_term **out,
                                  struct hv_err *err)
{
    (void)err;
    struct hv_term *t = hv_xcalloc(1, sizeof *t);
    t->events = c->events;
    t->n_events = c->n_events;
    t->w = c->w > 0 ? c->w : HV_FULL_W;
    t->h = c->h > 0 ? c->h : HV_FULL_H;
    *out = t;
    return HV_OK;
}

static void close_memory(struct hv_term *t)
{
    hv_grid_free(&t->last);
    free(t);
}

static void get_size(const struct hv_term *t, int *w, int *h)
{
    *w = t->w;
    *h = t->h;
}

static bool never(const struct hv_term *t)
{
    (void)t;
    return false;
}

static bool same_cell(const struct hv_cell *a, const struct hv_cell *b)
{
    return a->style == b->style && a->width == b->width &&
           memcmp(a->utf8, b->utf8, sizeof a->utf8) == 0;
}

static void present(struct hv_term *t, const struct hv_grid *g)
{
    size_t n = (size_t)g->w * (size_t)g->h;
    bool same_size = t->last.cells && t->last.w == g->w && t->last.h == g->h;
    t->changed = 0;
    for (size_t i = 0; i < n; i++) {
        t->changed += !same_size || !same_cell(&t->last.cells[i], &g->cells[i]);
    }
    hv_grid_resize(&t->last, g->w, g->h);
    if (n > 0) {
        memcpy(t->last.cells, g->cells, n * sizeof *g->cells);
    }
    t->last.cursor_x = g->cursor_x;
    t->last.cursor_y = g->cursor_y;
}

static struct hv_event wait_event(struct hv_term *t, int timeout_ms, const int *fds, size_t n_fds)
{
    (void)fds;
    (void)n_fds;
    if (t->at >= t->n_events) {
        return (struct hv_event){.type = timeout_ms == 0 ? HV_EV_NONE : HV_EV_QUIT};
    }
    struct hv_event ev = t->events[t->at++];
    if (ev.type == HV_EV_RESIZE) {
        t->w = ev.w;
        t->h = ev.h;
    }
    return ev;
}

static void nothing(struct hv_term *t)
{
    (void)t;
}

static bool no_theme(struct hv_term *t, const struct hv_theme *theme)
{
    (void)t;
    (void)theme;
    return false;
}

static bool no_mouse(struct hv_term *t, bool on)
{
    (void)t;
    (void)on;
    return false;
}

const struct hv_term_ops hv_term_memory = {.name = "memory",
                                           .open = open_memory,
                                           .close = close_memory,
                                           .size = get_size,
                                           .is_ascii = never,
                                           .is_mono = never,
                                           .present = present,
                                           .wait_event = wait_event,
                                           .mouse = no_mouse,
                                           .theme = no_theme,
                                           .suspend = nothing,
                                           .resume = nothing};

const struct hv_grid *hv_term_memory_grid(const struct hv_term *t)
{
    return &t->last;
}

size_t hv_term_memory_changed(const struct hv_term *t)
{
    return t->changed;
}
