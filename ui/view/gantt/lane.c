/*
 * One lane: its spans, or its shares by column, become cells (cells.h), and cells become glyphs.
 * Cells next to each other that show one operation get its text ("f3") where it fits.
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
        {'.', '.', HV_STYLE_IDLE}};

/* Columns that operations take in the mean where they are told apart; columns from which on one
 * carries its time. */
#define MEAN_OPERATION 0.75
enum { TIME_COLUMNS = 9 };

void hv__gantt_pen_open(struct hv__gantt_pen *p, const struct hv_gantt_state *st,
                        const struct hv_gantt_source *src, const struct hv_rect *chart, int rows)
{
    size_t n = (size_t)chart->w;
    struct hv_gantt_span here;
    *p = (struct hv__gantt_pen){.st = st, .n = chart->w, .followed = -1};
    p->most = (size_t)ceil((double)n / MEAN_OPERATION) + 2; /* one may be cut at each end */
    p->at_s = hv_xcalloc(n + 1, sizeof *p->at_s);
    p->spans = hv_xcalloc(2 * p->most, sizeof *p->spans);
    p->shares = hv_xcalloc(n * HV_GANTT_KIND_N, sizeof *p->shares);
    p->mix = hv_xcalloc(n, sizeof *p->mix);
    p->cells = hv_xcalloc(n * (size_t)rows, sizeof *p->cells);
    p->critical = hv_xcalloc(n, sizeof *p->critical);
    for (int i = 0; i <= chart->w; i++) {
        p->at_s[i] = hv__gantt_edge(st, chart, i);
    }
    if (st->show_critical && src->path) {
        p->path = hv_xcalloc(n, sizeof *p->path);
        src->path(src->ctx, p->at_s, n, p->path);
    }
    if (st->show_cursor && hv_gantt_at_cursor(st, src, &here)) {
        p->followed = here.micro_batch;
    }
}

void hv__gantt_pen_close(struct hv__gantt_pen *p)
{
    free(p->at_s);
    free(p->spans);
    free(p->shares);
    free(p->mix);
    free(p->cells);
    free(p->critical);
    free(p->path);
}

/* A cell can show no more than one kind. */
static bool is_flat(const struct hv_grid *g)
{
    return g->ascii || g->mono;
}

/* ---- operations ---- */

static unsigned span_style(const struct hv__gantt_pen *p, int32_t i_span)
{
    if (i_span < 0) {
        return HV_STYLE_IDLE;
    }
    const struct hv_gantt_span *s = &p->spans[i_span];
    bool odd = s->micro_batch > 0 && s->micro_batch % 2 == 1 && s->kind != HV_GANTT_OTHER;
    return odd ? kinds[s->kind].style + 1 : kinds[s->kind].style;
}

/* Operations of the micro-batch at the cursor are bold, those of the critical path underlined. */
static unsigned span_flags(const struct hv__gantt_pen *p, int32_t i_span)
{
    if (i_span < 0) {
        return 0;
    }
    const struct hv_gantt_span *s = &p->spans[i_span];
    bool followed = p->followed >= 0 && s->micro_batch == p->followed;
    return (followed ? HV_STYLE_BOLD : 0) |
           (s->critical && p->st->show_critical ? HV_STYLE_UNDERLINE : 0);
}

/* "f12", "F12" for one that is followed; its length. Formatted without printf for speed: thousands
 * per frame. */
static int label_of(const struct hv__gantt_pen *p, const struct hv_gantt_span *s, char *out)
{
    int len = 1;
    out[0] = kinds[s->kind].letter;
    if (p->followed >= 0 && s->micro_batch == p->followed) {
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

/* Text of an operation in n cells: its letter, with its number and its time where they fit.
 * `spare`: cells at the end that stay free of a number. */
static void run_text(const struct hv__gantt_pen *p, int32_t i_span, int n, int spare, char *out,
                     size_t cap)
{
    char time[HV_FMT_CAP];
    const struct hv_gantt_span *s = &p->spans[i_span];
    int len = label_of(p, s, out);
    if (len > n - (n > 2 ? spare : 0)) {
        len = 1;
    }
    out[len] = '\0';
    if (n >= TIME_COLUMNS) {
        hv_fmt_seconds(time, sizeof time, s->end_s - s->start_s);
        if (len + 1 + (int)strlen(time) <= n - spare) {
            (void)snprintf(out + len, cap - (size_t)len, " %s", time);
        }
    }
}

/* n whole cells of one operation, or idle ones; in the first row with text. */
static void draw_run(const struct hv__gantt_pen *p, struct hv_grid *g, struct hv_rect at,
                     int32_t i_span, bool first_row)
{
    bool flat = is_flat(g);
    unsigned style = span_style(p, i_span) | span_flags(p, i_span);
    if (i_span < 0) {
        bool dots = !p->st->color_only_idle && (flat || first_row);
        hv_grid_fill(g, at, dots ? '.' : ' ', style);
        return;
    }
    hv_grid_fill(g, at, flat ? kinds[p->spans[i_span].kind].fill : ' ', style);
    if (flat && at.w > 1) {
        hv_grid_fill(g, (struct hv_rect){at.x + at.w - 1, at.y, 1, at.h}, '|', style);
    }
    if (first_row) {
        char text[HV_FMT_CAP + 16];
        run_text(p, i_span, at.w, flat, text, sizeof text);
        (void)hv_grid_put(g, at.x, at.y, at.w, text, style);
    }
}

static bool is_whole(const struct hv__gantt_cell *c)
{
    return c->eighths == 8;
}

/* A row of cells: runs of one operation, and cells in which one ends and the next begins. */
static void draw_row(const struct hv__gantt_pen *p, struct hv_grid *g, struct hv_rect row,
                     const struct hv__gantt_cell *cells, bool first_row)
{
    for (int i = 0; i < row.w;) {
        const struct hv__gantt_cell *c = &cells[i];
        int to = i + 1;
        if (is_whole(c)) {
            while (to < row.w && is_whole(&cells[to]) && cells[to].i_span[0] == c->i_span[0]) {
                to++;
            }
            draw_run(p, g, (struct hv_rect){row.x + i, row.y, to - i, row.h}, c->i_span[0],
                     first_row);
        } else {
            unsigned flags = span_flags(p, c->i_span[0]) | span_flags(p, c->i_span[1]);
            hv_grid_edge(g, (struct hv_rect){row.x + i, row.y, 1, row.h}, c->eighths,
                         span_style(p, c->i_span[0]) | flags, span_style(p, c->i_span[1]));
        }
        i = to;
    }
}

static void draw_operations(const struct hv__gantt_pen *p, size_t n_spans, struct hv_grid *g,
                            struct hv_rect row)
{
    bool flat = is_flat(g);
    hv__gantt_operations(p->spans, n_spans, p->at_s, p->n, row.h, flat, p->cells);
    for (int y = 0; y < row.h; y++) {
        draw_row(p, g, (struct hv_rect){row.x, row.y + y, row.w, 1},
                 p->cells + (flat ? y * p->n : 0), y == 0);
    }
}

/* ---- shares ---- */

/* Shares do not tell operations apart: columns in which the lane holds most of the critical path
 * are underlined. */
static unsigned share_flags(const struct hv__gantt_pen *p, int32_t path_row, int column)
{
    return p->path && path_row >= 0 && p->path[column].row == path_row ? HV_STYLE_UNDERLINE : 0;
}

static void draw_share(struct hv_grid *g, int x, int y, const struct hv__gantt_cell *c,
                       unsigned flags, bool blank_idle)
{
    unsigned style = kinds[c->kind[0]].style | flags;
    if (!is_whole(c)) {
        hv_grid_stack(g, (struct hv_rect){x, y, 1, 1}, c->eighths, style, kinds[c->kind[1]].style);
        return;
    }
    bool blank = !is_flat(g) || (blank_idle && c->kind[0] == HV__GANTT_IDLE);
    hv_grid_fill(g, (struct hv_rect){x, y, 1, 1}, blank ? ' ' : kinds[c->kind[0]].letter, style);
}

static void draw_shares(const struct hv__gantt_pen *p, const struct hv_gantt_source *src,
                        size_t lane, struct hv_grid *g, struct hv_rect row)
{
    src->shares(src->ctx, lane, p->at_s, (size_t)p->n, p->shares);
    for (int i = 0; i < p->n; i++) {
        double idle = 1;
        for (int k = 0; k < HV_GANTT_KIND_N; k++) {
            p->mix[i].share[k] = p->shares[i * HV_GANTT_KIND_N + k];
            idle -= p->mix[i].share[k];
        }
        p->mix[i].share[HV__GANTT_IDLE] =
            idle > 1e-9 ? idle : 0; /* what rounding leaves is no kind */
    }
    if (is_flat(g)) {
        hv__gantt_letters(p->mix, p->n, row.h, p->cells);
    } else {
        hv__gantt_stack(p->mix, p->n, row.h, p->cells);
    }
    int32_t path_row = src->path_row ? src->path_row(src->ctx, lane) : -1;
    for (int y = 0; y < row.h; y++) {
        for (int i = 0; i < p->n; i++) {
            draw_share(g, row.x + i, row.y + y, &p->cells[y * p->n + i],
                       share_flags(p, path_row, i), p->st->color_only_idle);
        }
    }
}

/* Notes the columns of the critical operations of a lane that shows operations. */
static void note_critical(struct hv__gantt_pen *p, size_t n_spans)
{
    double per_s = 1 / (p->at_s[1] - p->at_s[0]);
    for (size_t i = 0; i < n_spans; i++) {
        int from = (int)fmax(0, floor((p->spans[i].start_s - p->at_s[0]) * per_s));
        int to = (int)fmin(p->n, ceil((p->spans[i].end_s - p->at_s[0]) * per_s));
        for (int c = from; c < to && p->spans[i].critical; c++) {
            p->critical[c] = true;
        }
    }
}

/* Columns that a moment's operation of a lane takes in the mean, so that a few short ones beside
 * long ones change little; nothing to measure counts as wide. */
static double mean_columns(const struct hv__gantt_pen *p, size_t n_spans)
{
    double sum_s = 0, squares = 0;
    for (size_t i = 0; i < n_spans; i++) {
        double length_s = p->spans[i].end_s - p->spans[i].start_s;
        sum_s += length_s;
        squares += length_s * length_s;
    }
    return sum_s > 0 ? squares / sum_s / (p->at_s[1] - p->at_s[0]) : 1;
}

void hv__gantt_lane_draw(struct hv__gantt_pen *p, const struct hv_gantt_source *src, size_t lane,
                         struct hv_grid *g, struct hv_rect row)
{
    size_t parts = 0;
    size_t n = src->spans(src->ctx, lane, p->at_s[0], p->at_s[p->n], p->most, p->spans, &parts);
    if (n <= p->most && mean_columns(p, parts) >= MEAN_OPERATION) {
        note_critical(p, parts);
        draw_operations(p, parts, g, row);
    } else {
        p->ops_per_column = (double)n / p->n;
        draw_shares(p, src, lane, g, row);
    }
}
