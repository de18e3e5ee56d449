/* Layout of a Gantt chart, and the lane and time of a cell. Paints nothing. */
#include "ui/view/gantt/gantt_int.h"

size_t hv_gantt_lane_at(const struct hv_gantt_state *st, const struct hv_gantt_places *p,
                        size_t slot)
{
    return p->pinned && slot == 0 ? st->pin_lane : p->top_lane + slot;
}

int hv_gantt_label_width(const struct hv_gantt_source *src, int w)
{
    int need = 6, most = w / 4;
    size_t n = src->n_lanes < 256 ? src->n_lanes : 256;
    for (size_t i = 0; i < n; i++) {
        struct hv_gantt_lane lane = {0};
        src->lane(src->ctx, i, &lane);
        int a = hv_text_width(lane.name ? lane.name : "");
        int b = lane.sublabel ? hv_text_width(lane.sublabel) + 1 : 0;
        need = a > need ? a : need;
        need = b > need ? b : need;
    }
    return (need < most ? need : most) + 2;
}

/* Heights of what is below the lanes, in cells. */
struct below {
    int memory, critical, map;
};

/* Rows below the lanes are dropped one by one where the lanes would have too few of the `h`
 * rows. */
static struct below heights_below(const struct hv_gantt_state *st,
                                  const struct hv_gantt_source *src, int h, int lanes)
{
    struct below b = {.memory = st->show_memory && src->memory_max_bytes ? 4 : 0,
                      .critical = st->show_critical ? 1 : 0,
                      .map = st->show_minimap ? 1 : 0};
    int floor_h = lanes < 3 ? lanes : 3;
    b.map = h - b.map >= floor_h ? b.map : 0;
    b.critical = h - b.map - b.critical >= floor_h ? b.critical : 0;
    b.memory = h - b.map - b.critical - b.memory >= floor_h ? b.memory : 0;
    return b;
}

/* Which lanes are shown: the chosen one is among them, and a pinned one above the first stays. */
static void scroll(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                   struct hv_gantt_places *p)
{
    size_t lane = st->lane < src->n_lanes ? st->lane : src->n_lanes - 1;
    p->top_lane = st->top_lane < lane ? st->top_lane : lane;
    if (lane >= p->top_lane + p->n_shown) {
        p->top_lane = lane - p->n_shown + 1;
    }
    if (p->top_lane + p->n_shown > src->n_lanes) {
        p->top_lane = src->n_lanes - p->n_shown;
    }
    p->pinned = st->has_pin && p->n_shown > 1 && st->pin_lane < p->top_lane;
    if (p->pinned && lane == p->top_lane) { /* the pinned lane is in its place */
        p->top_lane--;
    }
    p->pinned = p->pinned && st->pin_lane < p->top_lane;
}

/* Rows of one lane each are too few for all lanes: those shown, and the rows that tell of the
 * others. Below three rows there are only lanes. */
struct hidden {
    bool above, below;
};

static struct hidden scroll_in(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                               int room, struct hv_gantt_places *p)
{
    struct hidden h = {false, false};
    for (int told = room < 3 ? 0 : 1; told <= (room < 4 ? 1 : 2); told++) {
        p->n_shown = (size_t)(room - told);
        scroll(st, src, p);
        h.above = p->top_lane > 0;
        h.below = p->top_lane + p->n_shown < src->n_lanes;
        if (told == 0) {
            return (struct hidden){false, false};
        }
        if (h.above + h.below <= told) {
            return h;
        }
    }
    return (struct hidden){false, h.below};
}

struct hv_gantt_places hv_gantt_layout(const struct hv_gantt_state *st,
                                       const struct hv_gantt_source *src, struct hv_rect r)
{
    struct hv_gantt_places p = {.rows_per_lane = 1};
    int lw = hv_gantt_label_width(src, r.w), h = r.h - 1;
    lw = st->label_w > lw && st->label_w < r.w / 2 ? st->label_w : lw;
    int x = r.x + lw, w = r.w - lw;
    if (w < 4 || h < 1 || src->n_lanes == 0) {
        return p;
    }
    int lanes = src->n_lanes < 1000 ? (int)src->n_lanes : 1000;
    struct below b = heights_below(st, src, h, lanes);
    int room = h - b.map - b.critical - b.memory;
    p.rows_per_lane = room / lanes < 1 ? 1 : room / lanes > 3 ? 3 : room / lanes;
    int used = lanes * p.rows_per_lane < room ? lanes * p.rows_per_lane : room;
    if (b.memory && room - used > 0) {
        b.memory += room - used < 4 ? room - used : 4;
    }
    p.n_shown = (size_t)(used / p.rows_per_lane);
    struct hidden hidden = {false, false};
    if (p.n_shown < src->n_lanes) {
        hidden = scroll_in(st, src, used, &p);
    } else {
        scroll(st, src, &p);
    }
    int y = r.y, shown = (int)p.n_shown * p.rows_per_lane;
    p.axis = (struct hv_rect){x, y++, w, 1};
    p.above = (struct hv_rect){r.x, y, r.w, hidden.above};
    y += hidden.above;
    p.labels = (struct hv_rect){r.x, y, lw, shown};
    p.chart = (struct hv_rect){x, y, w, shown};
    y += shown;
    p.below = (struct hv_rect){r.x, y, r.w, hidden.below};
    y += hidden.below;
    p.memory = (struct hv_rect){x, y, w, b.memory};
    y += b.memory;
    p.critical = (struct hv_rect){x, y, w, b.critical};
    y += b.critical;
    p.minimap = (struct hv_rect){r.x, y, r.w, b.map};
    return p;
}

bool hv_gantt_hit(const struct hv_gantt_state *st, const struct hv_gantt_places *p, int x, int y,
                  size_t *lane, double *t_s)
{
    if (!hv_rect_has(p->chart, x, y)) {
        return false;
    }
    *lane = hv_gantt_lane_at(st, p, (size_t)((y - p->chart.y) / p->rows_per_lane));
    *t_s = (hv__gantt_edge(st, &p->chart, x - p->chart.x) +
            hv__gantt_edge(st, &p->chart, x - p->chart.x + 1)) /
           2;
    return true;
}
