/** Strips of loads in pictures. The version for the terminal is in ui/view. */
#include "solver/io/export/strips.h"

#include <math.h>
#include <stdio.h>

enum { TITLE = 20, STRIP = 16, BAR = 14, RANKS = 32, LEAST_W = 2 };

/* Above the first share of the mean a rank makes the others wait, below the second it waits. */
#define HOT  1.25
#define COLD 0.75

static size_t ranks_shown(const struct hv_strips *s)
{
    return s->loads->ranks < RANKS ? s->loads->ranks : RANKS;
}

static bool has_moves(const struct hv_strips *s)
{
    for (size_t t = 0; s->steps != NULL && t < s->loads->iterations; t++) {
        if (s->steps[t].moves > 0) {
            return true;
        }
    }
    return false;
}

int hv_strips_height(const struct hv_strips *s)
{
    return TITLE + (int)(ranks_shown(s) + has_moves(s)) * STRIP + STRIP;
}

static void put(const struct hv_painter *p, double x, double y, const char *text)
{
    p->text(p->ctx, &(struct hv_paint_text){.x = x,
                                            .y = y,
                                            .size_px = 10,
                                            .anchor = HV_ANCHOR_START,
                                            .fill = 0x222222,
                                            .text = text});
}

static unsigned colour_of(double load)
{
    return load > HOT ? 0xd55e00 : load < COLD ? 0xbfbfbf : 0x56b4e9;
}

/** Iterations of a column, and its width. */
struct columns {
    size_t each, n;
    double w_px;
};

static struct columns columns_of(const struct hv_strips *s, int width)
{
    size_t most = (size_t)(width / LEAST_W > 1 ? width / LEAST_W : 1);
    struct columns c = {.each = (s->loads->iterations + most - 1) / most};
    c.n = (s->loads->iterations + c.each - 1) / c.each;
    c.w_px = (double)width / (double)c.n;
    return c;
}

static void paint_rank(const struct hv_painter *p, const struct hv_strips *s, size_t rank,
                       const struct columns *c, double x0, double y)
{
    const struct hv_expert_loads *l = s->loads;
    char tip[128];
    for (size_t i = 0; i < c->n; i++) {
        size_t most = i * c->each;
        for (size_t t = most; t < (i + 1) * c->each && t < l->iterations; t++) {
            most = l->loads[t * l->ranks + rank] > l->loads[most * l->ranks + rank] ? t : most;
        }
        double load = l->loads[most * l->ranks + rank], h = fmin(load, 2) / 2 * BAR;
        (void)snprintf(tip, sizeof tip, "%s, iteration %zu: %.2f times the mean", l->names[rank],
                       most, load);
        p->rect(p->ctx, &(struct hv_paint_rect){.x = x0 + (double)i * c->w_px,
                                                .y = y + BAR - h,
                                                .w = c->w_px,
                                                .h = h,
                                                .tooltip = tip,
                                                .fill = colour_of(load)});
    }
}

static void paint_moves(const struct hv_painter *p, const struct hv_strips *s,
                        const struct columns *c, double x0, double y)
{
    char tip[128];
    for (size_t t = 0; t < s->loads->iterations; t++) {
        const struct hv_routing_step *step = &s->steps[t];
        if (step->moves == 0) {
            continue;
        }
        (void)snprintf(tip, sizeof tip, "%zu experts move before iteration %zu: %.4g bytes, %.4g s",
                       step->moves, t, step->moved_bytes, step->move_s);
        p->rect(p->ctx, &(struct hv_paint_rect){.x = x0 + (double)(t / c->each) * c->w_px,
                                                .y = y,
                                                .w = fmin(c->w_px, BAR),
                                                .h = BAR,
                                                .tooltip = tip,
                                                .fill = 0xcc79a7});
    }
}

void hv_paint_strips(const struct hv_painter *p, const struct hv_strips *s, double left, double x0,
                     double y, int width)
{
    const struct hv_expert_loads *l = s->loads;
    const struct columns c = columns_of(s, width);
    char text[160];
    (void)snprintf(text, sizeof text,
                   "experts of layer %zu: rows of each rank against the mean, which is half the "
                   "height; iterations 0 to %zu",
                   l->at.block, l->iterations - 1);
    put(p, x0, y + 12, text);
    y += TITLE;
    for (size_t r = 0; r < ranks_shown(s); r++, y += STRIP) {
        put(p, left, y + 11, l->names[r]);
        paint_rank(p, s, r, &c, x0, y);
    }
    if (has_moves(s)) {
        put(p, left, y + 11, "experts that move");
        paint_moves(p, s, &c, x0, y);
        y += STRIP;
    }
    if (ranks_shown(s) < l->ranks) {
        (void)snprintf(text, sizeof text, "and %zu more ranks", l->ranks - ranks_shown(s));
        put(p, left, y + 11, text);
    }
}
