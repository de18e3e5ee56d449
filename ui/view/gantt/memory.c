/*
 * The memory lane below the chart: per column the largest memory in use of the lane at the cursor,
 * beside its limit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "ui/view/gantt/gantt_int.h"

/* Whose memory it is, the most of it, and of what. */
static void draw_labels(const struct hv_gantt_source *src, struct hv_grid *g,
                        const struct hv_gantt_places *p, size_t lane, double limit)
{
    char text[HV_FMT_CAP], name[40], of[HV_FMT_CAP + 8];
    struct hv_gantt_lane info = {0};
    const char *at = "";
    struct hv_rect r = {p->labels.x + 1, p->memory.y, p->labels.w - 2, 1};
    src->lane(src->ctx, lane, &info);
    size_t n = hv__gantt_short_name(info.name ? info.name : "", &at);
    (void)snprintf(name, sizeof name, "mem %.*s", n < 30 ? (int)n : 30, at);
    hv_grid_put_field(g, r, HV_LEFT, name, HV_STYLE_TEXT);
    r.y++;
    hv_grid_put_field(
        g, r, HV_LEFT,
        hv_fmt_bytes(text, sizeof text, src->memory_max_bytes(src->ctx, lane, 0, src->end_s)),
        HV_STYLE_DIM);
    (void)snprintf(of, sizeof of, "of %s", hv_fmt_bytes(text, sizeof text, limit));
    if (hv_text_width(of) > r.w && strrchr(of, ' ') != NULL) {
        *strrchr(of, ' ') = '\0'; /* the unit is that of the line above */
    }
    r.y++;
    hv_grid_put_field(g, r, HV_LEFT, of, HV_STYLE_DIM);
}

void hv__gantt_memory_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                           struct hv_grid *g, const struct hv_gantt_places *p, size_t lane)
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    struct hv_rect m = p->memory;
    double top = 0, *use = hv_xcalloc((size_t)m.w, sizeof *use);
    double limit = src->memory_limit_bytes ? src->memory_limit_bytes(src->ctx, lane) : HV_UNKNOWN;
    for (int i = 0; i < m.w; i++) {
        double v = src->memory_max_bytes(src->ctx, lane, hv__gantt_edge(st, &m, i),
                                         hv__gantt_edge(st, &m, i + 1));
        use[i] = isfinite(v) && v > 0 ? v : 0;
        top = fmax(top, use[i]);
    }
    if (hv_known(limit)) {
        top = fmax(top, limit);
    }
    int steps = g->ascii ? 1 : 8;
    for (int i = 0; i < m.w && top > 0; i++) {
        int filled = (int)lround(use[i] / top * m.h * steps);
        unsigned style = use[i] > limit ? HV_STYLE_MEMORY_OVER : HV_STYLE_MEMORY;
        for (int y = 0; y < m.h; y++) {
            int part = filled - (m.h - 1 - y) * steps;
            part = part < 0 ? 0 : part > steps ? steps : part;
            const char *glyph = g->ascii ? (part ? "#" : " ") : eighths[part];
            (void)hv_grid_put(g, m.x + i, m.y + y, 1, glyph, style);
        }
        int limit_y = hv_known(limit) ? m.h - (int)ceil(limit / top * m.h) : -1;
        if (limit_y >= 0 && filled <= (m.h - 1 - limit_y) * steps) {
            (void)hv_grid_put(g, m.x + i, m.y + limit_y, 1, g->ascii ? "-" : "┄", HV_STYLE_AXIS);
        }
    }
    free(use);
    draw_labels(src, g, p, lane, hv_or(limit, top));
}
