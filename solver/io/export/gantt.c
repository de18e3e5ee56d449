/** Gantt pictures of a timeline. The version for the terminal is in ui/view. */
#include "solver/io/export/gantt.h"

#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/timeline/ring_text.h"
#include "solver/io/export/painter.h"

/* Okabe and Ito, "Color Universal Design" (2008): distinguishable for colour-blind readers; a half
 * of a backward pass has a lighter shade, host work is brown */
static const unsigned colours[HV_SPAN_KIND_N] = {
    [HV_SPAN_F] = 0x56b4e9,     [HV_SPAN_B] = 0xf3c76a,      [HV_SPAN_W] = 0x009e73,
    [HV_SPAN_BW] = 0xe69f00,    [HV_SPAN_R] = 0xf0e442,      [HV_SPAN_PAIR] = 0x56b4e9,
    [HV_SPAN_HOP] = 0xcc79a7,   [HV_SPAN_SYNC] = 0xcc79a7,   [HV_SPAN_OPT] = 0x8c8c8c,
    [HV_SPAN_LEAVE] = 0x0072b2, [HV_SPAN_RETURN] = 0x66aad1, [HV_SPAN_GATHER] = 0xd55e00,
    [HV_SPAN_STEP] = 0x7b5b45,  [HV_SPAN_WHOLE] = 0xd55e00,  [HV_SPAN_SCATTER] = 0x009e73};

/* memory below its limit: violet, which no kind of work has */
#define MEMORY_FILL 0xb7a3d0U

enum {
    MARGIN = 12,
    LABEL = 170,
    TOP = 64,
    LANE = 22,
    LINK = 6,
    MEMORY = 18,
    GAP = 10,
    BOTTOM = 56,
    MIN_TEXT = 16,
    COLUMNS = 128 /**< processed at a time */
};

struct picture {
    const struct hv_timeline *t;
    const struct hv_gantt_text *text;
    int width_px;
    double x0, scale; /**< where the window begins; pixels per second */
    double from_s, to_s;
    bool has_memory; /**< some row has memory figures */
    size_t n_beside; /**< strips of what goes beside the pipeline, of the row with most of them */
};

static int row_height(const struct picture *pic)
{
    return LANE + (1 + (int)pic->n_beside) * LINK + GAP + (pic->has_memory ? MEMORY : 0);
}

static int strips_height(const struct picture *pic)
{
    return pic->text->strips.loads != NULL ? hv_strips_height(&pic->text->strips) : 0;
}

static int height_of(const struct picture *pic)
{
    return TOP + (int)pic->t->n_rows * row_height(pic) + strips_height(pic) + BOTTOM;
}

/** Pixels of time. */
static int columns_of(const struct picture *pic)
{
    return pic->width_px - LABEL - 2 * MARGIN;
}

/** A time as text: seconds, or a plain number. */
static const char *time_text(const struct picture *pic, char *buf, size_t cap, double s)
{
    return pic->text->bare ? hv_fmt_double(buf, cap, s) : hv_fmt_seconds(buf, cap, s);
}

static double x_of(const struct picture *pic, double t_s)
{
    return pic->x0 + (t_s - pic->from_s) * pic->scale;
}

static void put_text(const struct hv_painter *p, double x, double y, double size, enum hv_anchor a,
                     const char *text)
{
    p->text(p->ctx,
            &(struct hv_paint_text){
                .x = x, .y = y, .size_px = size, .anchor = a, .fill = 0x222222, .text = text});
}

static void span_tooltip(const struct picture *pic, const struct hv_span *s, char *buf, size_t cap)
{
    const struct hv_timeline_op *op = &pic->t->ops[s->id];
    char at[HV_FMT_CAP], len[HV_FMT_CAP];
    time_text(pic, at, sizeof at, s->start_s);
    time_text(pic, len, sizeof len, s->end_s - s->start_s);
    const char *what = hv_span_kind_text((enum hv_span_kind)op->kind);
    if (op->micro_batch >= 0) {
        (void)snprintf(buf, cap, "%s, stage %d, micro-batch %d: starts %s, takes %s%s", what,
                       op->stage, op->micro_batch, at, len, op->critical ? ", critical" : "");
    } else {
        (void)snprintf(buf, cap, "%s, stage %d: starts %s, takes %s", what, op->stage, at, len);
    }
}

/** Adds what belongs to the operation of a row: the other end of a move, the ring in a pass. */
static void add_to_tooltip(const struct picture *pic, size_t row, const struct hv_span *s,
                           struct hv_str *out)
{
    const struct hv_timeline *t = pic->t;
    const struct hv_timeline_op *op = &t->ops[s->id];
    bool forward = s->kind == HV_SPAN_F, backward = s->kind == HV_SPAN_B || s->kind == HV_SPAN_BW;
    if (s->kind == HV_SPAN_LEAVE || s->kind == HV_SPAN_RETURN) {
        const struct hv_timeline_link *k = &t->links[t->hops[op->paired].i_link];
        hv_str_addf(out, "; from %s to %s", hv_timeline_end(t, k, false),
                    hv_timeline_end(t, k, true));
    }
    const struct hv_timeline_ring *ring =
        forward || backward
            ? hv_timeline_ring_most(&t->rows[row], forward ? HV_RING_FORWARD : HV_RING_BACKWARD, -1)
            : NULL;
    if (ring != NULL) {
        hv_str_adds(out, "; ");
        hv_timeline_ring_text(ring, out);
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

/** An overlapped pair: the forward above the backward, and both micro-batches. */
static void draw_pair(const struct hv_painter *p, const struct hv_timeline_op *op,
                      struct hv_paint_rect whole)
{
    const int32_t micro_batch[2] = {op->micro_batch, op->paired};
    const unsigned fill[2] = {colours[HV_SPAN_F], colours[HV_SPAN_BW]};
    struct hv_paint_rect half = whole;
    half.h = whole.h / 2;
    for (int i = 0; i < 2; i++) {
        char label[32];
        half.fill = shade(fill[i], micro_batch[i]);
        p->rect(p->ctx, &half);
        (void)snprintf(label, sizeof label, "%d", micro_batch[i]);
        if (half.w >= MIN_TEXT && whole.h > LINK) {
            put_text(p, half.x + half.w / 2, half.y + half.h - 2, 9, HV_ANCHOR_MIDDLE, label);
        }
        half.y += half.h;
    }
}

static void draw_span(const struct hv_painter *p, const struct picture *pic, size_t row,
                      const struct hv_span *s, double y, double h)
{
    const struct hv_timeline_op *op = &pic->t->ops[s->id];
    char words[256], label[32];
    struct hv_str tip = {0};
    span_tooltip(pic, s, words, sizeof words);
    hv_str_adds(&tip, words);
    add_to_tooltip(pic, row, s, &tip);
    double x = x_of(pic, fmax(s->start_s, pic->from_s));
    double w = x_of(pic, fmin(s->end_s, pic->to_s)) - x;
    struct hv_paint_rect rect = {.x = x,
                                 .y = y,
                                 .w = w,
                                 .h = h,
                                 .outlined = w > 3 && h > LINK,
                                 .tooltip = hv_str_cstr(&tip),
                                 .fill = shade(colours[s->kind], op->micro_batch)};
    if (s->kind == HV_SPAN_PAIR) {
        draw_pair(p, op, rect);
        hv_str_free(&tip);
        return;
    }
    p->rect(p->ctx, &rect);
    hv_str_free(&tip);
    (void)snprintf(label, sizeof label, "%d", op->micro_batch);
    if (op->micro_batch >= 0 && w >= MIN_TEXT && h > LINK) {
        put_text(p, x + w / 2, y + h - 7, 10, HV_ANCHOR_MIDDLE, label);
    }
}

/** Draws neighbouring pixel columns, [from, from + n) of the picture: from the bottom the share of
 * every kind, then idle time. */
static void draw_columns(const struct hv_painter *p, const struct picture *pic,
                         const struct hv_lane *lane, int from, int n, struct hv_paint_rect lies)
{
    double at_s[COLUMNS + 1], busy_s[COLUMNS * HV_SPAN_KINDS];
    for (int c = 0; c <= n; c++) {
        at_s[c] = pic->from_s + (from + c) / pic->scale;
    }
    hv_lane_busy(lane, at_s, (size_t)n, busy_s);
    for (int c = 0; c < n; c++) {
        double bottom = lies.y + lies.h;
        for (size_t k = 0; k < lane->n_kinds; k++) {
            uint8_t kind = lane->kinds[k];
            double h = busy_s[(size_t)c * lane->n_kinds + k] * pic->scale * lies.h;
            struct hv_paint_rect part = {
                .x = pic->x0 + from + c, .y = bottom - h, .w = 1, .h = h, .fill = colours[kind]};
            bottom -= h;
            if (h > 0) {
                p->rect(p->ctx, &part);
            }
            if (h > 0 && kind == HV_SPAN_PAIR) { /* its other half is a backward */
                part.h /= 2;
                part.fill = colours[HV_SPAN_BW];
                p->rect(p->ctx, &part);
            }
        }
    }
}

/** Spans [from, to) of a lane that lie in the window. */
struct seen {
    size_t from, to;
};

static struct seen spans_seen(const struct picture *pic, const struct hv_lane *lane)
{
    struct seen in = {0, lane->n_spans};
    int32_t here = hv_lane_at(lane, pic->from_s), after = hv_lane_next(lane, pic->from_s);
    int32_t last = hv_lane_prev(lane, pic->to_s);
    in.from = here >= 0 ? (size_t)here : after >= 0 ? (size_t)after : lane->n_spans;
    in.to = last >= 0 ? (size_t)last + 1 : 0;
    in.to = in.to < in.from ? in.from : in.to;
    return in;
}

/** A lane: span by span, or shares by pixel column where there are more spans than pixels. */
static void draw_lane(const struct hv_painter *p, const struct picture *pic, size_t row,
                      size_t i_lane, double y, double h)
{
    const struct hv_lane *lane = &pic->t->lanes.items[i_lane];
    int columns = columns_of(pic);
    struct seen in = spans_seen(pic, lane);
    if (in.to - in.from <= (size_t)columns) {
        for (size_t i = in.from; i < in.to; i++) {
            draw_span(p, pic, row, &lane->spans[i], y, h);
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
    int columns = columns_of(pic);
    for (int c = 0; c < columns; c += 2) {
        double at_s = pic->from_s + c / pic->scale;
        double bytes = hv_steps_max(&row->memory, at_s, at_s + 2 / pic->scale);
        double frac = limit > 0 ? fmin(1, bytes / limit) : 0;
        p->rect(p->ctx, &(struct hv_paint_rect){.x = pic->x0 + c,
                                                .y = y + MEMORY * (1 - frac),
                                                .w = 2,
                                                .h = MEMORY * frac,
                                                .fill = bytes > limit ? 0xd55e00 : MEMORY_FILL});
    }
}

static void draw_row(const struct hv_painter *p, const struct picture *pic, size_t i)
{
    const struct hv_timeline_row *row = &pic->t->rows[i];
    double y = TOP + (double)i * row_height(pic);
    char buf[128], peak[HV_FMT_CAP], limit[HV_FMT_CAP], busy[HV_FMT_CAP];
    p->rect(p->ctx, &(struct hv_paint_rect){
                        .x = pic->x0, .y = y, .w = columns_of(pic), .h = LANE, .fill = 0xf2f2f2});
    draw_lane(p, pic, i, row->compute_lane, y, LANE);
    draw_lane(p, pic, i, row->link_lane, y + LANE, LINK);
    double below = y + LANE + LINK;
    for (size_t k = 0; k < pic->t->n_links; k++) {
        const struct hv_timeline_link *link = &pic->t->links[k];
        if (link->from_row == i) {
            draw_lane(p, pic, i, link->lane, link->beside ? below : y + LANE, LINK);
            below += link->beside ? LINK : 0;
        }
    }
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
    draw_memory(p, pic, row, y + LANE + (double)(1 + pic->n_beside) * LINK);
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
    double step = tick_step(pic->to_s - pic->from_s, 12),
           bottom = height_of(pic) - BOTTOM - strips_height(pic);
    double first = ceil(pic->from_s / step - 1e-9);
    char buf[HV_FMT_CAP];
    for (int i = 0; (first + i) * step <= pic->to_s; i++) {
        double x = x_of(pic, (first + i) * step);
        p->rect(p->ctx,
                &(struct hv_paint_rect){
                    .x = x, .y = TOP - 6, .w = 0.5, .h = bottom - TOP + 6, .fill = 0xcccccc});
        put_text(p, x, TOP - 9, 10, HV_ANCHOR_MIDDLE,
                 time_text(pic, buf, sizeof buf, (first + i) * step));
    }
}

/** Position of the next entry of the legend; entries that do not fit start a new line. */
struct legend {
    double x, y, left, right;
};

/** One entry: a box, its lower half in a second colour where that differs, and a text. */
static void add_legend(const struct hv_painter *p, struct legend *at, const unsigned fill[2],
                       const char *text)
{
    double width = 34 + 6.6 * (double)strlen(text);
    if (at->x + width > at->right) {
        at->x = at->left;
        at->y += 17;
    }
    struct hv_paint_rect box = {
        .x = at->x, .y = at->y, .w = 12, .h = 12, .fill = fill[0], .outlined = true};
    p->rect(p->ctx, &box);
    if (fill[1] != fill[0]) {
        box.y += box.h / 2;
        box.h /= 2;
        box.fill = fill[1];
        p->rect(p->ctx, &box);
    }
    put_text(p, at->x + 17, at->y + 10, 11, HV_ANCHOR_START, text);
    at->x += width;
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
    struct legend at = {pic->x0, height_of(pic) - BOTTOM + 15, pic->x0, pic->width_px};
    for (int k = 0; k < HV_SPAN_KIND_N; k++) {
        const unsigned fill[] = {colours[k == HV_SPAN_PAIR ? HV_SPAN_F : k],
                                 colours[k == HV_SPAN_PAIR ? HV_SPAN_BW : k]};
        if (seen[k]) {
            add_legend(p, &at, fill, hv_span_kind_text((enum hv_span_kind)k));
        }
    }
    if (pic->has_memory) {
        add_legend(p, &at, (const unsigned[]){MEMORY_FILL, MEMORY_FILL},
                   "memory of the worst device");
    }
}

static void draw(const struct hv_painter *p, const void *what)
{
    const struct picture *pic = what;
    p->rect(p->ctx,
            &(struct hv_paint_rect){.w = pic->width_px, .h = height_of(pic), .fill = 0xffffff});
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
    if (strips_height(pic) > 0) {
        hv_paint_strips(p, &pic->text->strips, MARGIN, pic->x0,
                        height_of(pic) - BOTTOM - strips_height(pic), columns_of(pic));
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
    for (size_t i = 0; i < t->n_rows; i++) {
        size_t n = 0;
        for (size_t k = 0; k < t->n_links; k++) {
            n += t->links[k].from_row == i && t->links[k].beside;
        }
        p.has_memory = p.has_memory || t->rows[i].memory.n > 0;
        p.n_beside = n > p.n_beside ? n : p.n_beside;
    }
    bool all = !(text->to_s > text->from_s);
    p.from_s = all ? 0 : text->from_s;
    p.to_s = all ? t->end_s : text->to_s;
    p.scale = p.to_s > p.from_s ? columns_of(&p) / (p.to_s - p.from_s) : 1;
    return p;
}

void hv_gantt_svg(const struct hv_timeline *t, const struct hv_gantt_text *text, int width_px,
                  struct hv_str *out)
{
    struct picture p = make_picture(t, text, width_px);
    hv_paint_svg(p.width_px, height_of(&p), draw, &p, out);
}

enum hv_status hv_gantt_png(const struct hv_timeline *t, const struct hv_gantt_text *text,
                            int width_px, struct hv_str *out, struct hv_err *err)
{
    struct picture p = make_picture(t, text, width_px);
    return hv_paint_png(p.width_px, height_of(&p), draw, &p, out, err);
}
