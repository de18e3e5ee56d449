/** Gantt pictures of a timeline; the terminal's cells are drawn in ui/view, not here. */
#include "solver/io/export/gantt.h"

#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/export/painter.h"

/* Okabe and Ito, "Color Universal Design" (2008): told apart by colour-blind readers */
static const unsigned colours[HV_SPAN_KIND_N] = {
    [HV_SPAN_F] = 0x56b4e9,      [HV_SPAN_B] = 0xe69f00,    [HV_SPAN_W] = 0x009e73,
    [HV_SPAN_BW] = 0xe69f00,     [HV_SPAN_R] = 0xf0e442,    [HV_SPAN_PAIR] = 0x0072b2,
    [HV_SPAN_HOP] = 0xcc79a7,    [HV_SPAN_SYNC] = 0xcc79a7, [HV_SPAN_OPT] = 0x8c8c8c,
    [HV_SPAN_GATHER] = 0xd55e00, [HV_SPAN_STEP] = 0xb8b8b8};

enum {
    MARGIN = 12,
    LABEL = 170,
    TOP = 64,
    LANE = 22,
    LINK = 6,
    MEMORY = 18,
    GAP = 10,
    BOTTOM = 44,
    MIN_TEXT = 16,
    COLUMNS = 128 /**< told at a time */
};

struct picture {
    const struct hv_timeline *t;
    const struct hv_gantt_text *text;
    int width_px;
    double x0, scale; /**< pixels per second */
};

static int row_height(void)
{
    return LANE + LINK + MEMORY + GAP;
}

static int height_of(const struct hv_timeline *t)
{
    return TOP + (int)t->n_rows * row_height() + BOTTOM;
}

static void put_text(const struct hv_painter *p, double x, double y, double size, enum hv_anchor a,
                     const char *text)
{
    p->text(p->ctx,
            &(struct hv_paint_text){
                .x = x, .y = y, .size_px = size, .anchor = a, .fill = 0x222222, .text = text});
}

static void span_tooltip(const struct hv_timeline_op *op, const struct hv_span *s, char *buf,
                         size_t cap)
{
    char at[HV_FMT_CAP], len[HV_FMT_CAP];
    hv_fmt_seconds(at, sizeof at, s->start_s);
    hv_fmt_seconds(len, sizeof len, s->end_s - s->start_s);
    const char *what = hv_span_kind_text((enum hv_span_kind)op->kind);
    if (op->micro_batch >= 0) {
        (void)snprintf(buf, cap, "%s, stage %d, micro-batch %d: starts %s, takes %s%s", what,
                       op->stage, op->micro_batch, at, len, op->critical ? ", critical" : "");
    } else {
        (void)snprintf(buf, cap, "%s, stage %d: starts %s, takes %s", what, op->stage, at, len);
    }
}

static unsigned shade(unsigned rgb, int micro_batch)
{
    if (micro_batch < 0 || micro_batch % 2 == 0) {
        return rgb;
    }
    unsigned r = (rgb >> 16 & 255) * 85 / 100, g = (rgb >> 8 & 255) * 85 / 100,
             b = (rgb & 255) * 85 / 100;
    return r << 16 | g << 8 | b;
}

static void draw_span(const struct hv_painter *p, const struct picture *pic,
                      const struct hv_span *s, double y, double h)
{
    const struct hv_timeline_op *op = &pic->t->ops[s->id];
    char tip[256], label[32];
    span_tooltip(op, s, tip, sizeof tip);
    double x = pic->x0 + s->start_s * pic->scale, w = (s->end_s - s->start_s) * pic->scale;
    p->rect(p->ctx, &(struct hv_paint_rect){.x = x,
                                            .y = y,
                                            .w = w,
                                            .h = h,
                                            .outlined = w > 3 && h > LINK,
                                            .tooltip = tip,
                                            .fill = shade(colours[s->kind], op->micro_batch)});
    (void)snprintf(label, sizeof label, "%d", op->micro_batch);
    if (op->micro_batch >= 0 && w >= MIN_TEXT && h > LINK) {
        put_text(p, x + w / 2, y + h - 7, 10, HV_ANCHOR_MIDDLE, label);
    }
}

/** Pixel columns of a lane from `from` on: how much of it is busy, and with what most. */
static void draw_columns(const struct hv_painter *p, const struct picture *pic,
                         const struct hv_lane *lane, int from, int n, struct hv_paint_rect lies)
{
    double at_s[COLUMNS + 1];
    struct hv_cover covers[COLUMNS];
    for (int c = 0; c <= n; c++) {
        at_s[c] = (from + c) / pic->scale;
    }
    hv_lane_columns(lane, at_s, (size_t)n, covers);
    for (int c = 0; c < n; c++) {
        if (covers[c].kind >= 0) {
            double busy = covers[c].busy_frac;
            p->rect(p->ctx, &(struct hv_paint_rect){.x = pic->x0 + from + c,
                                                    .y = lies.y + lies.h * (1 - busy),
                                                    .w = 1,
                                                    .h = lies.h * busy,
                                                    .fill = colours[covers[c].kind]});
        }
    }
}

/** A lane: span by span, or by pixel column where there are more spans than pixels. */
static void draw_lane(const struct hv_painter *p, const struct picture *pic, size_t i_lane,
                      double y, double h)
{
    const struct hv_lane *lane = &pic->t->lanes.items[i_lane];
    int columns = pic->width_px - LABEL - 2 * MARGIN;
    if (lane->n_spans <= (size_t)columns) {
        for (size_t i = 0; i < lane->n_spans; i++) {
            draw_span(p, pic, &lane->spans[i], y, h);
        }
        return;
    }
    for (int c = 0; c < columns; c += COLUMNS) {
        int n = columns - c < COLUMNS ? columns - c : COLUMNS;
        draw_columns(p, pic, lane, c, n, (struct hv_paint_rect){.y = y, .h = h});
    }
}

static void draw_memory(const struct hv_painter *p, const struct picture *pic,
                        const struct hv_timeline_row *row, double y)
{
    double limit = row->memory_limit_bytes;
    int columns = pic->width_px - LABEL - 2 * MARGIN;
    for (int c = 0; c < columns; c += 2) {
        double bytes = hv_steps_max(&row->memory, c / pic->scale, (c + 2) / pic->scale);
        double frac = limit > 0 ? fmin(1, bytes / limit) : 0;
        p->rect(p->ctx, &(struct hv_paint_rect){.x = pic->x0 + c,
                                                .y = y + MEMORY * (1 - frac),
                                                .w = 2,
                                                .h = MEMORY * frac,
                                                .fill = bytes > limit ? 0xd55e00 : 0xbbbbbb});
    }
}

static void draw_row(const struct hv_painter *p, const struct picture *pic, size_t i)
{
    const struct hv_timeline_row *row = &pic->t->rows[i];
    double y = TOP + (double)i * row_height();
    char buf[128], peak[HV_FMT_CAP], limit[HV_FMT_CAP], busy[HV_FMT_CAP];
    p->rect(p->ctx, &(struct hv_paint_rect){.x = pic->x0,
                                            .y = y,
                                            .w = pic->width_px - LABEL - 2.0 * MARGIN,
                                            .h = LANE,
                                            .fill = 0xf2f2f2});
    draw_lane(p, pic, row->compute_lane, y, LANE);
    draw_lane(p, pic, row->link_lane, y + LANE, LINK);
    (void)snprintf(buf, sizeof buf, "%.26s", row->name);
    put_text(p, MARGIN, y + 12, 11, HV_ANCHOR_START, buf);
    hv_fmt_percent(busy, sizeof busy, row->busy_frac);
    if (row->multiplicity > 1) {
        (void)snprintf(buf, sizeof buf, "%s, busy %s, one of %d", row->layers, busy,
                       row->multiplicity);
    } else {
        (void)snprintf(buf, sizeof buf, "%s, busy %s", row->layers, busy);
    }
    put_text(p, MARGIN, y + 26, 10, HV_ANCHOR_START, buf);
    if (row->memory.n == 0) {
        return;
    }
    draw_memory(p, pic, row, y + LANE + LINK);
    double most = hv_steps_max(&row->memory, 0, pic->t->end_s);
    (void)snprintf(buf, sizeof buf, "%s of %s", hv_fmt_bytes(peak, sizeof peak, most),
                   hv_fmt_bytes(limit, sizeof limit, row->memory_limit_bytes));
    put_text(p, MARGIN, y + 41, 10, HV_ANCHOR_START, buf);
}

/** Step of a round axis: 1, 2 or 5 times a power of ten, at most `ticks` of them. */
static double tick_step(double end_s, int ticks)
{
    double step = pow(10, floor(log10(end_s / ticks)));
    while (end_s / step > ticks) {
        step *= end_s / (step * 2) <= ticks ? 2 : end_s / (step * 5) <= ticks ? 5 : 10;
    }
    return step;
}

static void draw_axis(const struct hv_painter *p, const struct picture *pic)
{
    double step = tick_step(pic->t->end_s, 12), bottom = height_of(pic->t) - BOTTOM;
    char buf[HV_FMT_CAP];
    for (int i = 0; i * step <= pic->t->end_s; i++) {
        double x = pic->x0 + i * step * pic->scale;
        p->rect(p->ctx,
                &(struct hv_paint_rect){
                    .x = x, .y = TOP - 6, .w = 0.5, .h = bottom - TOP + 6, .fill = 0xcccccc});
        put_text(p, x, TOP - 9, 10, HV_ANCHOR_MIDDLE, hv_fmt_seconds(buf, sizeof buf, i * step));
    }
}

static void draw_legend(const struct hv_painter *p, const struct picture *pic)
{
    bool seen[HV_SPAN_KIND_N] = {false};
    for (size_t i = 0; i < pic->t->lanes.n; i++) {
        const struct hv_lane *lane = &pic->t->lanes.items[i];
        for (uint8_t k = 0; k < lane->n_kinds; k++) {
            seen[lane->kinds[k]] = true;
        }
    }
    double x = pic->x0, y = height_of(pic->t) - 20;
    for (int k = 0; k < HV_SPAN_KIND_N; k++) {
        if (!seen[k]) {
            continue;
        }
        p->rect(p->ctx,
                &(struct hv_paint_rect){
                    .x = x, .y = y - 9, .w = 12, .h = 12, .fill = colours[k], .outlined = true});
        put_text(p, x + 17, y + 1, 11, HV_ANCHOR_START, hv_span_kind_text((enum hv_span_kind)k));
        x += 34 + 6.6 * (double)strlen(hv_span_kind_text((enum hv_span_kind)k));
    }
    p->rect(p->ctx, &(struct hv_paint_rect){
                        .x = x, .y = y - 9, .w = 12, .h = 12, .fill = 0xbbbbbb, .outlined = true});
    put_text(p, x + 17, y + 1, 11, HV_ANCHOR_START, "memory of the worst device");
}

static void draw(const struct hv_painter *p, const void *what)
{
    const struct picture *pic = what;
    p->rect(p->ctx,
            &(struct hv_paint_rect){.w = pic->width_px, .h = height_of(pic->t), .fill = 0xffffff});
    p->text(p->ctx, &(struct hv_paint_text){.x = MARGIN,
                                            .y = 22,
                                            .size_px = 15,
                                            .bold = true,
                                            .fill = 0x111111,
                                            .text = pic->text->title});
    put_text(p, MARGIN, 40, 12, HV_ANCHOR_START, pic->text->subtitle);
    draw_axis(p, pic);
    for (size_t i = 0; i < pic->t->n_rows; i++) {
        draw_row(p, pic, i);
    }
    draw_legend(p, pic);
}

static struct picture make_picture(const struct hv_timeline *t, const struct hv_gantt_text *text,
                                   int width_px)
{
    int w = width_px < HV_GANTT_WIDTH_MIN   ? HV_GANTT_WIDTH_MIN
            : width_px > HV_GANTT_WIDTH_MAX ? HV_GANTT_WIDTH_MAX
                                            : width_px;
    struct picture p = {.t = t, .text = text, .width_px = w, .x0 = MARGIN + LABEL};
    p.scale = t->end_s > 0 ? (w - LABEL - 2 * MARGIN) / t->end_s : 1;
    return p;
}

void hv_gantt_svg(const struct hv_timeline *t, const struct hv_gantt_text *text, int width_px,
                  struct hv_str *out)
{
    struct picture p = make_picture(t, text, width_px);
    hv_paint_svg(p.width_px, height_of(t), draw, &p, out);
}

enum hv_status hv_gantt_png(const struct hv_timeline *t, const struct hv_gantt_text *text,
                            int width_px, struct hv_str *out, struct hv_err *err)
{
    struct picture p = make_picture(t, text, width_px);
    return hv_paint_png(p.width_px, height_of(t), draw, &p, out, err);
}
