/*
 * Gantt painter: one query per lane and column, then cells. Equal neighbours form runs that get
 * their text ("f3") where it fits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "ui/view/gantt/gantt_int.h"

static const struct {
    char letter, fill;
    unsigned style;
} kinds[] = {
#define X(id, letter, fill, style, name) {letter, fill, HV_STYLE_##style},
    HV_GANTT_KIND_MAP(X)
#undef X
};

#define MINIMAP_W 48

/* ---- axis ---- */

/* 1, 2 or 5 times a power of ten, at least x. */
static double round_step(double x)
{
    double p = pow(10, floor(log10(x)));
    double m = x / p;
    return (m <= 1.0000001 ? 1 : m <= 2.0000001 ? 2 : m <= 5.0000001 ? 5 : 10) * p;
}

static void tick_label(char *buf, size_t cap, double t, double step)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t u = 0;
    while (u < 3 && step < units[u].unit * 0.0999) {
        u++;
    }
    double decimals = ceil(-log10(step / units[u].unit) - 1e-9);
    int d = decimals < 0 ? 0 : decimals > 6 ? 6 : (int)decimals;
    (void)snprintf(buf, cap, "%.*f%s", d, t / units[u].unit, units[u].name);
}

static void draw_axis(const struct hv_gantt_state *st, struct hv_grid *g, struct hv_rect at)
{
    double w = st->t1_s - st->t0_s;
    if (!(w > 0) || at.w < 4) {
        return;
    }
    hv_grid_hline(g, at.x, at.y, at.w, HV_STYLE_AXIS);
    double step = round_step(w * 12 / at.w), first = ceil(st->t0_s / step - 1e-9);
    int n = at.w / 8 + 2;
    for (int i = 0; i < n; i++) {
        double t = (first + i) * step;
        int x = (int)lround((t - st->t0_s) / w * at.w);
        char text[48];
        tick_label(text, sizeof text, t, step);
        if (x + 1 + (int)strlen(text) > at.w) {
            break;
        }
        (void)hv_grid_put(g, at.x + x, at.y, 1, g->ascii ? "|" : "├", HV_STYLE_AXIS);
        (void)hv_grid_put(g, at.x + x + 1, at.y, -1, text, HV_STYLE_AXIS);
    }
}

/* ---- lanes ---- */

/* One column of a lane. */
struct column {
    struct hv_gantt_cover cover;
    bool busy;
    bool followed; /* of the micro-batch under the cursor */
};

static unsigned span_style(const struct hv_gantt_span *s)
{
    unsigned base = kinds[s->kind].style;
    bool odd = s->micro_batch > 0 && s->micro_batch % 2 == 1 && s->kind != HV_GANTT_OTHER;
    return odd ? base + 1 : base;
}

/* Room for one lane after the other. */
struct columns {
    struct column *items;
    struct hv_gantt_cover *covers;
    double *at_s;   /* edges */
    bool *critical; /* true where a lane so far has a critical operation in the column */
};

static struct columns new_columns(const struct hv_gantt_state *st, const struct hv_rect *chart)
{
    size_t n = (size_t)chart->w;
    struct columns c = {.items = hv_xcalloc(n, sizeof *c.items),
                        .covers = hv_xcalloc(n, sizeof *c.covers),
                        .at_s = hv_xcalloc(n + 1, sizeof *c.at_s),
                        .critical = hv_xcalloc(n, sizeof *c.critical)};
    for (int i = 0; i <= chart->w; i++) {
        c.at_s[i] = hv__gantt_edge(st, chart, i);
    }
    return c;
}

static void free_columns(struct columns *c)
{
    free(c->items);
    free(c->covers);
    free(c->at_s);
    free(c->critical);
}

static void get_columns(const struct hv_gantt_source *src, size_t lane, int n, struct columns *out)
{
    src->columns(src->ctx, lane, out->at_s, (size_t)n, out->covers);
    for (int i = 0; i < n; i++) {
        const struct hv_gantt_cover *c = &out->covers[i];
        struct column *x = &out->items[i];
        *x = (struct column){.cover = *c, .busy = c->n_spans > 0 && c->busy_frac >= 0.5};
        if (c->n_spans > 0 && !x->busy) {
            x->busy = c->busy_frac > 0 &&
                      c->span.end_s - c->span.start_s <=
                          c->busy_frac * (out->at_s[1] - out->at_s[0]) * 1.01 &&
                      (i == 0 || !x[-1].busy);
        }
        out->critical[i] |= c->n_spans > 0 && c->span.critical;
    }
}

static bool same_op(const struct column *a, const struct column *b)
{
    const struct hv_gantt_span *p = &a->cover.span, *q = &b->cover.span;
    return a->busy && b->busy && p->start_s == q->start_s && p->kind == q->kind &&
           p->micro_batch == q->micro_batch;
}

/* Marks the columns of the micro-batch under the cursor, if any: its path through the stages is
 * highlighted. */
static void follow(const struct hv_gantt_state *st, const struct hv_gantt_source *src, int n,
                   struct columns *c)
{
    struct hv_gantt_span here;
    if (!st->show_cursor || !hv_gantt_at_cursor(st, src, &here) || here.micro_batch < 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        c->items[i].followed =
            c->items[i].busy && c->items[i].cover.span.micro_batch == here.micro_batch;
    }
}

/* "f12", "F12" for one that is followed; its length. Formatted without printf for speed: thousands
 * per frame. */
static int label_of(const struct column *c, char *out)
{
    const struct hv_gantt_span *s = &c->cover.span;
    int len = 1;
    out[0] = kinds[s->kind].letter;
    if (c->followed) {
        out[0] = (char)(out[0] - 'a' + 'A');
    }
    for (int32_t rest = s->micro_batch; rest > 0 || (rest == 0 && len == 1); rest /= 10) {
        len++;
    }
    int32_t rest = s->micro_batch;
    for (int i = len - 1; i > 0; i--, rest /= 10) {
        out[i] = (char)('0' + rest % 10);
    }
    return len;
}

/* Where a time lies in column i, in eighths of it, held to 0 … 8. */
static int eighths_at(const struct columns *c, int i, double t_s)
{
    double part = (t_s - c->at_s[i]) / (c->at_s[i + 1] - c->at_s[i]) * 8;
    return part > 0 ? (int)(fmin(part, 8) + 0.5) : 0;
}

/* Style of the operation in column i where it ends (else: starts) within an eighth of a column of
 * t; HV_STYLE_IDLE where there is none. */
static unsigned beside(const struct columns *c, int i, int n, double t_s, bool ends_there)
{
    if (i < 0 || i >= n || !c->items[i].busy) {
        return HV_STYLE_IDLE;
    }
    const struct hv_gantt_span *s = &c->items[i].cover.span;
    double gap = fabs((ends_there ? s->end_s : s->start_s) - t_s);
    return gap * 8 <= c->at_s[1] - c->at_s[0] ? span_style(s) : HV_STYLE_IDLE;
}

/* Eighths of the first column before an operation begins and of the last before it ends. */
struct ends {
    int first, last;
};

/* In ASCII whole columns; a letter always has a column of its own. */
static struct ends ends_of(const struct hv_grid *g, const struct columns *c, int from, int to)
{
    const struct hv_gantt_span *s = &c->items[from].cover.span;
    struct ends e = {0, 8};
    if (g->ascii || to - from < 2) {
        return e;
    }
    e.last = eighths_at(c, to - 1, s->end_s);
    e.last = e.last == 0 ? 8 : e.last;
    if (to - from - (e.last < 8) > 1) {
        e.first = eighths_at(c, from, s->start_s) % 8;
    }
    return e;
}

/* Draws columns [from, to) that show one operation. */
static void draw_run(struct hv_grid *g, const struct hv_rect *row, const struct columns *c,
                     int from, int to)
{
    const struct column *col = &c->items[from];
    const struct hv_gantt_span *s = &col->cover.span;
    unsigned style = span_style(s), flags = 0;
    if (col->followed) {
        flags = HV_STYLE_BOLD | HV_STYLE_UNDERLINE;
    }
    struct ends e = ends_of(g, c, from, to);
    if (e.first > 0) {
        hv_grid_edge(g, (struct hv_rect){row->x + from, row->y, 1, row->h}, e.first,
                     beside(c, from - 1, row->w, s->start_s, true) | flags, style);
        from++;
    }
    if (e.last < 8) {
        to--;
        hv_grid_edge(g, (struct hv_rect){row->x + to, row->y, 1, row->h}, e.last, style | flags,
                     beside(c, to + 1, row->w, s->end_s, false));
    }
    int n = to - from;
    char text[16], fill = g->ascii ? kinds[s->kind].fill : ' ';
    style |= flags;
    hv_grid_fill(g, (struct hv_rect){row->x + from, row->y, n, row->h}, fill, style);
    if (g->ascii && n > 1) {
        hv_grid_fill(g, (struct hv_rect){row->x + to - 1, row->y, 1, row->h}, '|', style);
    }
    int len = label_of(col, text);
    if (len > n - (g->ascii && n > 2)) {
        len = 1;
    }
    text[len] = '\0';
    if (len == 1) {
        hv_grid_fill(g, (struct hv_rect){row->x + from, row->y, 1, 1}, text[0], style);
    } else if (n >= len) {
        (void)hv_grid_put(g, row->x + from, row->y, n, text, style);
    }
}

/* A column that is mostly idle: the rest of the operation before it, the beginning of the one
 * behind it, or a dot. */
static void draw_idle(const struct hv_gantt_state *st, struct hv_grid *g, struct hv_rect cell,
                      const struct columns *c, int i, int n)
{
    const struct column *col = &c->items[i];
    const struct hv_gantt_span *s = &col->cover.span;
    bool some = !g->ascii && col->cover.n_spans > 0;
    if (some && i > 0 && c->items[i - 1].busy && c->items[i - 1].cover.span.start_s == s->start_s) {
        int e = eighths_at(c, i, s->end_s);
        if (e > 0 && e < 8) {
            hv_grid_edge(g, cell, e, span_style(s), HV_STYLE_IDLE);
            return;
        }
    }
    if (some && i + 1 < n && c->items[i + 1].busy &&
        c->items[i + 1].cover.span.start_s == s->start_s) {
        int e = eighths_at(c, i, s->start_s);
        if (e > 0 && e < 8) {
            hv_grid_edge(g, cell, e, HV_STYLE_IDLE, span_style(s));
            return;
        }
    }
    cell.h = 1;
    hv_grid_fill(g, cell, st->color_only_idle ? ' ' : '.', HV_STYLE_IDLE);
}

/* Runs of equal columns are one operation; gaps are dots. */
static void draw_lane(const struct hv_gantt_state *st, struct hv_grid *g, struct hv_rect row,
                      const struct columns *c)
{
    for (int i = 0; i < row.w;) {
        int to = i + 1;
        if (!c->items[i].busy) {
            draw_idle(st, g, (struct hv_rect){row.x + i, row.y, 1, row.h}, c, i, row.w);
        } else {
            while (to < row.w && same_op(&c->items[i], &c->items[to])) {
                to++;
            }
            draw_run(g, &row, c, i, to);
        }
        i = to;
    }
}

static void draw_label(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                       struct hv_grid *g, struct hv_rect at, size_t lane)
{
    struct hv_gantt_lane info = {0};
    src->lane(src->ctx, lane, &info);
    bool here = st->show_cursor && lane == st->lane;
    bool pinned = st->has_pin && lane == st->pin_lane;
    (void)hv_grid_put(g, at.x, at.y, 1, here ? ">" : pinned ? "^" : " ", HV_STYLE_TITLE);
    hv_grid_put_field(g, (struct hv_rect){at.x + 1, at.y, at.w - 2, 1}, HV_LEFT,
                      info.name ? info.name : "", here ? HV_STYLE_TITLE : HV_STYLE_TEXT);
    if (at.h > 1 && info.sublabel) {
        hv_grid_put_field(g, (struct hv_rect){at.x + 2, at.y + 1, at.w - 3, 1}, HV_LEFT,
                          info.sublabel, HV_STYLE_DIM);
    }
}

/* ---- rows below the lanes ---- */

static void draw_critical(struct hv_grid *g, const struct hv_gantt_places *p, const bool *critical)
{
    struct hv_rect c = p->critical;
    hv_grid_put_field(g, (struct hv_rect){p->labels.x + 1, c.y, p->labels.w - 2, 1}, HV_LEFT,
                      "critical", HV_STYLE_CRITICAL);
    for (int i = 0; i < c.w; i++) {
        if (critical[i]) {
            (void)hv_grid_put(g, c.x + i, c.y, 1, "^", HV_STYLE_CRITICAL);
        }
    }
}

static void draw_minimap(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                         struct hv_grid *g, struct hv_rect at)
{
    char zoom[96], per[HV_FMT_CAP];
    double end = src->end_s > 0 ? src->end_s : 1, w = st->t1_s - st->t0_s;
    int n = at.w - 36 < MINIMAP_W ? at.w - 36 : MINIMAP_W;
    (void)snprintf(zoom, sizeof zoom, " zoom %.1fx  %s per column", w > 0 ? end / w : 1.0,
                   hv_fmt_seconds(per, sizeof per, at.w > 0 ? w / at.w : 0));
    int x = at.x + 1;
    if (n >= 8) {
        int a = (int)floor(st->t0_s / end * n), b = (int)ceil(st->t1_s / end * n);
        (void)hv_grid_put(g, x, at.y, 1, "[", HV_STYLE_AXIS);
        for (int i = 0; i < n; i++) {
            (void)hv_grid_put(g, x + 1 + i, at.y, 1,
                              i >= a && i < b ? (g->ascii ? "=" : "━") : (g->ascii ? "." : "·"),
                              i >= a && i < b ? HV_STYLE_BAR : HV_STYLE_AXIS);
        }
        (void)hv_grid_put(g, x + 1 + n, at.y, 1, "]", HV_STYLE_AXIS);
        x += n + 2;
    }
    (void)hv_grid_put(g, x, at.y, at.x + at.w - x, zoom, HV_STYLE_DIM);
}

static void draw_cursor(const struct hv_gantt_state *st, struct hv_grid *g,
                        const struct hv_gantt_places *p)
{
    double w = st->t1_s - st->t0_s;
    if (!(w > 0)) {
        return;
    }
    int i = (int)floor((st->cursor_s - st->t0_s) / w * p->chart.w + 1e-9);
    i = i < 0 ? 0 : i >= p->chart.w ? p->chart.w - 1 : i;
    int x = p->chart.x + i, lane_y = (int)(st->lane - p->top_lane) * p->rows_per_lane;
    lane_y = p->pinned && st->lane == st->pin_lane ? 0 : lane_y;
    hv_grid_restyle(g, (struct hv_rect){x, p->axis.y, 1, 1}, 0xffffu, HV_STYLE_REVERSE);
    hv_grid_restyle(g, (struct hv_rect){x, p->chart.y, 1, p->chart.h}, 0xffffu, HV_STYLE_UNDERLINE);
    hv_grid_restyle(g, (struct hv_rect){x, p->chart.y + lane_y, 1, p->rows_per_lane}, 0xffffu,
                    HV_STYLE_REVERSE);
    if (hv_known(st->mark_s)) {
        double a = fmin(st->mark_s, st->cursor_s), b = fmax(st->mark_s, st->cursor_s);
        int x0 = (int)floor((fmax(a, st->t0_s) - st->t0_s) / w * p->chart.w);
        int x1 = (int)ceil((fmin(b, st->t1_s) - st->t0_s) / w * p->chart.w);
        hv_grid_restyle(g, (struct hv_rect){p->axis.x + x0, p->axis.y, x1 - x0, 1}, 0xffffu,
                        HV_STYLE_REVERSE);
    }
    hv_grid_cursor(g, x, p->chart.y + lane_y);
}

/* The lanes that are shown with their labels; below a tall lane the same lane of the compared
 * plan. */
static void draw_lanes(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                       struct hv_grid *g, const struct hv_gantt_places *p, struct columns *columns)
{
    struct columns ghost = new_columns(st, &p->chart);
    for (size_t k = 0; k < p->n_shown; k++) {
        int y = p->chart.y + (int)k * p->rows_per_lane, h = p->rows_per_lane;
        size_t lane = hv_gantt_lane_at(st, p, k);
        get_columns(src, lane, p->chart.w, columns);
        follow(st, src, p->chart.w, columns);
        /* tall lanes keep their last row free, as a gap */
        draw_lane(st, g, (struct hv_rect){p->chart.x, y, p->chart.w, h > 2 ? 2 : 1}, columns);
        draw_label(st, src, g, (struct hv_rect){p->labels.x, y, p->labels.w, h}, lane);
        if (h > 1 && st->ghost && lane < st->ghost->n_lanes) {
            struct hv_rect last = {p->chart.x, y + h - 1, p->chart.w, 1};
            get_columns(st->ghost, lane, p->chart.w, &ghost);
            draw_lane(st, g, last, &ghost);
            hv_grid_restyle(g, last, 0, HV_STYLE_DIM);
        }
    }
    free_columns(&ghost);
}

void hv_gantt_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                   struct hv_grid *g, struct hv_rect r)
{
    if (g->plain) {
        hv_plain_gantt(g, st, src);
        return;
    }
    struct hv_gantt_places p = hv_gantt_layout(st, src, r);
    struct hv_rect old = hv_grid_clip(g, r);
    if (p.chart.w <= 0) {
        (void)hv_grid_put(g, r.x, r.y, r.w, src->n_lanes ? "too narrow" : "nothing to draw",
                          HV_STYLE_DIM);
        hv_grid_unclip(g, old);
        return;
    }
    struct columns columns = new_columns(st, &p.chart);
    draw_axis(st, g, p.axis);
    draw_lanes(st, src, g, &p, &columns);
    if (p.memory.h > 0) {
        hv__gantt_memory_draw(st, src, g, &p, st->lane < src->n_lanes ? st->lane : 0);
    }
    if (p.critical.h > 0) {
        draw_critical(g, &p, columns.critical);
    }
    free_columns(&columns);
    if (p.minimap.h > 0) {
        draw_minimap(st, src, g, p.minimap);
    }
    if (st->show_cursor) {
        draw_cursor(st, g, &p);
    }
    hv_grid_unclip(g, old);
}
