/** Drawing of the Explain screen: bars of the step, the tree of reasons, the line in full. */
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/explain/explain_int.h"
#include "ui/view/grid/layout.h"

#define NAME_W 20
/* plain text has no columns, so nothing is cut */
#define PLAIN_NAME_W 60
#define VALUE_W      10
#define BAR_W        12
/** Bars stand in two columns from here on when one is too short. */
#define TWO_COLUMNS_W 70

/** Shares of the step below this are left out. */
#define LEAST_SHARE 0.0005

static void row_cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct hv_explain_data *d = ctx;
    const struct hv_explain_row *r = &d->rows.items[row];
    const char *parts[] = {r->name,     r->value,    r->text,     r->cells[0],
                           r->cells[1], r->cells[2], r->cells[3], r->note};
    (void)column;
    for (size_t i = 0; i < HV_COUNT(parts); i++) {
        if (parts[i] != NULL) {
            hv_str_addf(out, "%s%s", out->n > 0 ? "  " : "", parts[i]);
        }
    }
}

static uint64_t row_id(const void *ctx, size_t row)
{
    const struct hv_explain_data *d = ctx;
    return d->rows.items[row].id;
}

struct hv_table_source hv_explain_source(const struct hv_explain_data *d)
{
    return (struct hv_table_source){.ctx = d, .n_rows = d->rows.n, .cell = row_cell, .id = row_id};
}

void hv_explain_place(const struct hv_explain *st, struct hv_rect body,
                      struct hv_rect out[HV_EXPLAIN_PANEL_N])
{
    memset(out, 0, HV_EXPLAIN_PANEL_N * sizeof *out);
    if (hv_layout_stacked(body)) {
        out[st->focus] = body;
        return;
    }
    int bars = body.h / 3 < 12 ? body.h / 3 : 12, text = body.h > 30 ? 9 : 5;
    struct hv_rect left = body, right = {0};
    if (body.w >= HV_THREE_W) {
        left.w = body.w * 5 / 8;
        right = (struct hv_rect){body.x + left.w, body.y, body.w - left.w, body.h};
        bars = body.h / 2 < HV_BREAKDOWN_N + 5 ? body.h / 2 : HV_BREAKDOWN_N + 5;
        out[HV_EXPLAIN_TREE] = left;
        out[HV_EXPLAIN_BARS] = (struct hv_rect){right.x, right.y, right.w, bars};
        out[HV_EXPLAIN_TEXT] = (struct hv_rect){right.x, right.y + bars, right.w, right.h - bars};
        return;
    }
    out[HV_EXPLAIN_BARS] = (struct hv_rect){body.x, body.y, body.w, bars};
    out[HV_EXPLAIN_TREE] = (struct hv_rect){body.x, body.y + bars, body.w, body.h - bars - text};
    out[HV_EXPLAIN_TEXT] = (struct hv_rect){body.x, body.y + body.h - text, body.w, text};
}

/* ---- bars ---- */

static void add_bar(struct hv_bar_row *row, char text[64], const char *name, double part_s,
                    double all_s)
{
    char s[HV_FMT_CAP], pc[HV_FMT_CAP];
    (void)snprintf(text, 64, "%6s %8s", hv_fmt_percent(pc, sizeof pc, part_s / all_s),
                   hv_fmt_seconds(s, sizeof s, part_s));
    *row = (struct hv_bar_row){
        .name = name, .text = text, .frac = part_s / all_s, .style = HV_STYLE_BAR};
}

static void draw_bars(const struct hv_explain *st, const struct hv_metrics *m, struct hv_grid *g,
                      struct hv_rect r)
{
    struct hv_bar_row rows[HV_BREAKDOWN_N + 2];
    char texts[HV_BREAKDOWN_N + 2][64];
    size_t n = 0;
    if (!(m->iteration_s > 0)) {
        (void)hv_words_draw(g, r, "the plan breaks a rule and was not simulated", HV_STYLE_DIM);
        return;
    }
    for (size_t i = 0; i < HV_BREAKDOWN_N; i++) {
        if (m->breakdown_s[i] / m->iteration_s >= LEAST_SHARE) {
            add_bar(&rows[n], texts[n], hv_breakdown_name((enum hv_breakdown)i), m->breakdown_s[i],
                    m->iteration_s);
            rows[n].style = i == HV_TIME_BUBBLE || i == HV_TIME_IMBALANCE ? HV_STYLE_DIM
                            : i == HV_TIME_COMPUTE                        ? HV_STYLE_GOOD
                                                                          : HV_STYLE_BAR;
            n++;
        }
    }
    add_bar(&rows[n], texts[n], "iteration", m->iteration_s, m->iteration_s);
    rows[n++].style = HV_STYLE_AXIS;
    if (hv_known(m->bound_s)) {
        add_bar(&rows[n], texts[n], "bound", m->bound_s, m->iteration_s);
        rows[n++].style = HV_STYLE_MARKED;
    }
    size_t h = r.h > 0 ? (size_t)r.h : 0;
    if (n > h && r.w >= TWO_COLUMNS_W) {
        int w = (r.w - 2) / 2;
        size_t left = n < 2 * h ? (n + 1) / 2 : h;
        hv_bars_draw(g, (struct hv_rect){r.x, r.y, w, r.h}, rows, left);
        hv_bars_draw(g, (struct hv_rect){r.x + r.w - w, r.y, w, r.h}, rows + left, n - left);
        return;
    }
    size_t last = n > h ? n - h : 0, top = st->bars_top < last ? st->bars_top : last;
    hv_bars_draw(g, r, rows + top, n - top);
}

/* ---- tree ---- */

static const char *fold_mark(const struct hv_explain_row *r, bool ascii)
{
    return !r->folds ? "  " : r->open ? (ascii ? "v " : "▾ ") : (ascii ? "> " : "▸ ");
}

/** A column per value: half a cell is 1, a full one 2 and more. Plain screens get the range. */
static void draw_strip(const struct hv_explain_row *r, struct hv_grid *g, struct hv_rect at,
                       unsigned style)
{
    static const char *const utf8[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {".", ":", "-", "=", "+", "*", "#", "@"};
    double lo = r->strip[0], hi = r->strip[0];
    for (size_t i = 0; i < r->n_strip; i++) {
        lo = r->strip[i] < lo ? r->strip[i] : lo;
        hi = r->strip[i] > hi ? r->strip[i] : hi;
    }
    if (g->plain != NULL) {
        char text[64];
        (void)snprintf(text, sizeof text, "from %.2fx to %.2fx", lo, hi);
        hv_grid_put_field(g, at, HV_LEFT, text, style);
        return;
    }
    for (int i = 0; i < at.w && (size_t)i < r->n_strip; i++) {
        int level = (int)ceil(r->strip[i] * 4) - 1;
        level = level < 0 ? 0 : level > 7 ? 7 : level;
        (void)hv_grid_put(g, at.x + i, at.y, 1, (g->ascii ? ascii : utf8)[level], style);
    }
}

/** The action, its figures in columns, and a note where there is room. */
static void draw_cells(const struct hv_explain_row *r, struct hv_grid *g, struct hv_rect at,
                       unsigned style)
{
    static const int widths[HV_EXPLAIN_CELL_N] = {8, 7, 7, 8};
    enum { CELLS_W = 34, NOTE_W = 14 };
    int left = at.w - CELLS_W, n = left < 14 ? 2 : HV_EXPLAIN_CELL_N; /* narrow: step and change */
    left = n == 2 ? at.w - 17 : left;
    int action_w = left >= 60 ? left / 2 : left >= 38 ? left - NOTE_W : left;
    struct hv_str text = {0};
    hv_text_squeeze(r->text, action_w, g->ascii, &text);
    hv_grid_put_field(g, (struct hv_rect){at.x, at.y, action_w, 1}, HV_LEFT, hv_str_cstr(&text),
                      style);
    hv_str_free(&text);
    int x = at.x + action_w;
    for (int i = 0; i < n; i++) {
        hv_grid_put_field(g, (struct hv_rect){x, at.y, widths[i], 1}, HV_RIGHT, r->cells[i], style);
        x += widths[i] + 1;
    }
    if (r->note != NULL && at.x + at.w - x >= NOTE_W - 2) {
        hv_grid_put_field(g, (struct hv_rect){x + 1, at.y, at.x + at.w - x - 1, 1}, HV_LEFT,
                          r->note, style);
    }
}

static void draw_row(const struct hv_explain_row *r, struct hv_grid *g, struct hv_rect at,
                     unsigned style)
{
    int x = at.x + 2 * r->depth, right = at.x + at.w;
    if (style != r->style) {
        hv_grid_fill(g, at, ' ', style);
    }
    x += hv_grid_put(g, x, at.y, right - x, fold_mark(r, g->ascii), style);
    if (r->cells[0] != NULL) {
        draw_cells(r, g, (struct hv_rect){x, at.y, right - x, 1}, style);
        return;
    }
    if (r->name != NULL && right - x > NAME_W) {
        int w = g->plain ? PLAIN_NAME_W : at.w < 60 ? 12 : NAME_W;
        struct hv_str name = {0};
        hv_text_squeeze(r->name, w, g->ascii, &name);
        hv_grid_put_field(g, (struct hv_rect){x, at.y, w, 1}, HV_LEFT, hv_str_cstr(&name), style);
        hv_str_free(&name);
        hv_grid_put_field(g, (struct hv_rect){x + w + 1, at.y, VALUE_W, 1}, HV_RIGHT, r->value,
                          style);
        x += w + VALUE_W + 3;
    }
    if (hv_known(r->frac) && right - x > 2 * BAR_W) {
        hv_grid_bar(g, x, at.y, BAR_W, r->frac,
                    r->frac > 1 ? HV_STYLE_MEMORY_OVER : HV_STYLE_MEMORY);
        x += BAR_W + 1;
    }
    if (right > x && r->n_strip > 0) {
        draw_strip(r, g, (struct hv_rect){x, at.y, right - x, 1}, style);
    } else if (right > x) {
        hv_grid_put_field(g, (struct hv_rect){x, at.y, right - x, 1}, HV_LEFT, r->text, style);
    }
}

static void draw_tree(const struct hv_explain_data *d, const struct hv_table *t, bool focused,
                      struct hv_grid *g, struct hv_rect r)
{
    for (int y = 0; y < r.h && t->top + (size_t)y < d->rows.n; y++) {
        size_t i = t->top + (size_t)y;
        const struct hv_explain_row *row = &d->rows.items[i];
        unsigned style = i != t->cursor ? row->style
                         : focused      ? HV_STYLE_SELECTED
                                        : HV_STYLE_SELECTED_BLUR;
        draw_row(row, g, (struct hv_rect){r.x, r.y + y, r.w, 1}, style);
        if (i == t->cursor && focused) {
            hv_grid_cursor(g, r.x, r.y + y);
        }
    }
}

/* ---- the line in full ---- */

/** Puts text from line `*y` on, broken between words; lines above `top` are left out. */
static void put_wrapped(struct hv_grid *g, struct hv_rect r, int *y, const char *text,
                        unsigned style)
{
    while (*text != '\0' && r.w > 0) {
        size_t n = hv_text_fit(text, r.w), cut = n;
        if (text[n] != '\0') {
            while (cut > 0 && text[cut] != ' ') {
                cut--;
            }
            cut = cut > 0 ? cut : n;
        }
        if (cut == 0) {
            return;
        }
        char line[1024];
        (void)snprintf(line, sizeof line, "%.*s", (int)cut, text);
        if (*y >= 0 && *y < r.h) {
            (void)hv_grid_put_user(g, r.x, r.y + *y, r.w, line, style);
        }
        (*y)++;
        text += cut;
        text += *text == ' ';
    }
}

static const char *evidence_text(const struct hv_evidence *e)
{
    static const char *const texts[] = {
        [HV_EVIDENCE_NONE] = NULL,
        [HV_EVIDENCE_GANTT] = "Enter: lane in the Gantt chart",
        [HV_EVIDENCE_CLUSTER] = "Enter: node group",
        [HV_EVIDENCE_MODEL] = "Enter: model and job",
        [HV_EVIDENCE_LEVER] = "Enter: try it in What-if",
    };
    return texts[e->kind];
}

static void draw_text(const struct hv_explain *st, const struct hv_explain_row *row,
                      struct hv_grid *g, struct hv_rect r)
{
    int y = -(int)st->text_top;
    struct hv_str head = {0};
    if (row->name != NULL) {
        hv_str_addf(&head, "%s  %s", row->name, row->value);
        put_wrapped(g, r, &y, hv_str_cstr(&head), HV_STYLE_TITLE);
    }
    put_wrapped(g, r, &y, row->full != NULL ? row->full : row->text, HV_STYLE_TEXT);
    if (row->note != NULL) {
        put_wrapped(g, r, &y, row->note, HV_STYLE_TEXT);
    }
    if (row->detail != NULL) {
        put_wrapped(g, r, &y, row->detail, HV_STYLE_DIM);
    }
    if (evidence_text(&row->evidence) != NULL) {
        put_wrapped(g, r, &y, evidence_text(&row->evidence), HV_STYLE_HELP_KEY);
    }
    hv_str_free(&head);
}

static void draw_panel(struct hv_grid *g, struct hv_rect r, const char *title, bool focused)
{
    hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
}

void hv_explain_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_explain *st = state;
    struct hv_explain_data *d = st->data;
    struct hv_session *s = hv_ui_session(model);
    struct hv_rect r[HV_EXPLAIN_PANEL_N];
    struct hv_grid *g = ctx->grid;
    if (hv_explain_sync(d, s)) {
        hv_explain_build(d, s);
    }
    if (d->facts.verdict == NULL) {
        hv_ui_no_plan(&d->facts, d->err.text, g, ctx->body);
        return;
    }
    hv_explain_place(st, ctx->body, r);
    int wrap_w = g->plain ? 0 : hv_rect_inner(r[HV_EXPLAIN_TREE]).w;
    if (wrap_w != d->wrap_w) {
        d->wrap_w = wrap_w;
        hv_explain_build(d, s);
    }
    struct hv_table t = st->table;
    struct hv_table_source src = hv_explain_source(d);
    hv_table_refresh(&t, &src, hv_rect_inner(r[HV_EXPLAIN_TREE]).h);
    struct hv_str title = {0};
    if (r[HV_EXPLAIN_BARS].h > 2) {
        draw_panel(g, r[HV_EXPLAIN_BARS], "Parts of the iteration time",
                   st->focus == HV_EXPLAIN_BARS);
        draw_bars(st, &d->facts.verdict->metrics, g, hv_rect_inner(r[HV_EXPLAIN_BARS]));
    }
    if (r[HV_EXPLAIN_TREE].h > 2) {
        bool focused = st->focus == HV_EXPLAIN_TREE;
        hv_str_addf(&title, "Explain %s", d->facts.row->name);
        draw_panel(g, r[HV_EXPLAIN_TREE], hv_str_cstr(&title), focused);
        draw_tree(d, &t, focused, g, hv_rect_inner(r[HV_EXPLAIN_TREE]));
        hv_more_draw(g, hv_rect_inner(r[HV_EXPLAIN_TREE]), d->rows.n, t.top);
    }
    if (r[HV_EXPLAIN_TEXT].h > 2 && t.cursor < d->rows.n) {
        draw_panel(g, r[HV_EXPLAIN_TEXT], "Selected line", st->focus == HV_EXPLAIN_TEXT);
        draw_text(st, &d->rows.items[t.cursor], g, hv_rect_inner(r[HV_EXPLAIN_TEXT]));
    }
    hv_str_free(&title);
}
