/** Draws the picker: tabs in the frame, a row per value with its figures, what does not fit marked.
 */
#include <stdio.h>

#include "solver/base/units.h"
#include "ui/screens/gantt/gantt_int.h"
#include "ui/screens/gantt/pick.h"

/* Columns: name, step, change, bubble, peak with its stage; the reason has the rest. */
enum {
    NAME_W = 18,
    STEP_W = 8,
    CHANGE_W = 7,
    BUBBLE_W = 7,
    PEAK_W = 9,
    FRAME = 2,
    HEAD = 1,
    LEAST = 5
};

/** Rows of values in a panel of h rows; the line below them has the last one where there are many.
 */
static int rows_shown(int h)
{
    int rows = h - HEAD - (h >= LEAST ? 1 : 0);
    return rows > 1 ? rows : 1;
}

size_t hv_gantt_pick_top(const struct hv_gantt_pick *p, int h)
{
    size_t rows = (size_t)rows_shown(h);
    return p->cursor >= rows ? p->cursor - rows + 1 : 0;
}

int hv_gantt_pick_rows(const struct hv_gantt_pick *p, int body_h)
{
    int want = (int)p->order.n + FRAME + HEAD + 1, most = body_h * 11 / 21;
    want = want > most ? most : want;
    return want < LEAST ? LEAST : want;
}

/** All tabs, or the open one alone where there is no room for them. */
static void title(const struct hv_gantt_pick *p, int w, struct hv_str *out)
{
    enum { ALL_W = 50 };
    static const char *const tabs[HV_PICK_TAB_N] = {"Schedule", "Micro-batch", "Chunks", "Degrees"};
    for (int t = 0; t < HV_PICK_TAB_N; t++) {
        bool is = p->tab == (enum hv_gantt_pick_tab)t;
        if (!is && w < ALL_W) {
            continue;
        }
        hv_str_addf(out, "%s%s%s%s", out->n > 0 ? "  " : "", is ? "<" : "", tabs[t], is ? ">" : "");
    }
}

/** Puts a text of a column and moves on; a text that does not fit is not begun. */
static int put(struct hv_grid *g, struct hv_rect row, int x, int w, const char *text,
               unsigned style)
{
    if (x + w <= row.x + row.w) {
        hv_grid_put_field(g, (struct hv_rect){x, row.y, w, 1}, HV_RIGHT, text, style);
    }
    return x + w + 1;
}

static void name_of(const struct hv_gantt_try *t, const struct hv_gantt_choice *c,
                    struct hv_str *out)
{
    const struct hv_lever *l = &t->levers.items[c->lever];
    if (l->kind == HV_LEVER_TP) {
        hv_str_addf(out, "%s ", l->name);
    }
    hv_lever_text(l, c->value, out);
}

static void draw_row(const struct hv_gantt_screen *st, const struct hv_gantt_choice *c,
                     struct hv_grid *g, struct hv_rect row, bool cursor)
{
    char a[HV_FMT_CAP], text[40];
    const struct hv_lever *l = &st->attempt.levers.items[c->lever];
    const double before_s = st->attempt.before_s, now_s = c->figures.iteration_s;
    bool bad = c->done && c->figures.n_violations > 0;
    unsigned style = cursor             ? HV_STYLE_SELECTED
                     : bad || c->failed ? HV_STYLE_WARNING
                                        : HV_STYLE_TEXT;
    unsigned gain = cursor || bad || !(now_s < before_s * 0.9995) ? style : HV_STYLE_GOOD;
    struct hv_str name = {0};
    int x = row.x + 2, name_w = row.w < 46 ? 13 : NAME_W;
    if (cursor) {
        hv_grid_fill(g, row, ' ', style);
        hv_grid_cursor(g, row.x, row.y);
    }
    (void)hv_grid_put(g, row.x, row.y, 1, bad || c->failed ? "!" : cursor ? ">" : " ", style);
    name_of(&st->attempt, c, &name);
    hv_grid_put_field(g, (struct hv_rect){x, row.y, name_w, 1}, HV_LEFT, hv_str_cstr(&name), style);
    hv_str_free(&name);
    x += name_w + 1;
    if (!c->done || c->failed) {
        const char *what = c->failed ? c->why : c->search ? "searched: Enter tries it" : "...";
        hv_grid_put_field(g, (struct hv_rect){x, row.y, row.x + row.w - x, 1}, HV_LEFT, what,
                          cursor ? style : HV_STYLE_DIM);
        return;
    }
    x = put(g, row, x, STEP_W, hv_fmt_seconds(a, sizeof a, now_s), style);
    bool same = now_s <= before_s * 1.00005 && now_s >= before_s * 0.99995;
    (void)snprintf(text, sizeof text, "%+.1f%%", (now_s / before_s - 1) * 100);
    x = put(g, row, x, CHANGE_W, same ? "=" : text, gain);
    x = put(g, row, x, BUBBLE_W, hv_fmt_percent(a, sizeof a, c->figures.bubble_frac), style);
    (void)snprintf(text, sizeof text, "%.0f%% s%zu", c->figures.peak_frac * 100, c->full_stage);
    x = put(g, row, x, PEAK_W, text, style) + 1;
    const char *note = c->why[0] != '\0'               ? c->why
                       : hv_lever_is_base(l, c->value) ? "this plan"
                       : !c->figures.exact             ? "trains otherwise: stale or dropped"
                                                       : "";
    if (x < row.x + row.w) {
        hv_grid_put_field(g, (struct hv_rect){x, row.y, row.x + row.w - x, 1}, HV_LEFT, note,
                          cursor ? style : HV_STYLE_DIM);
    }
}

static void draw_head(const struct hv_gantt_pick *p, struct hv_grid *g, struct hv_rect row)
{
    static const char *const names[HV_PICK_TAB_N] = {"SCHEDULE", "MICRO-BATCH", "CHUNKS",
                                                     "DEGREES"};
    int x = row.x + 2, name_w = row.w < 46 ? 13 : NAME_W;
    hv_grid_put_field(g, (struct hv_rect){x, row.y, name_w, 1}, HV_LEFT, names[p->tab],
                      HV_STYLE_HEADER);
    x += name_w + 1;
    x = put(g, row, x, STEP_W, "STEP", HV_STYLE_HEADER);
    x = put(g, row, x, CHANGE_W, "CHANGE", HV_STYLE_HEADER);
    x = put(g, row, x, BUBBLE_W, "BUBBLE", HV_STYLE_HEADER);
    (void)put(g, row, x, PEAK_W, "PEAK", HV_STYLE_HEADER);
}

/** "3 do not apply: ! lists them" below the rows, where there is room. */
static void draw_foot(const struct hv_gantt_pick *p, struct hv_grid *g, struct hv_rect row)
{
    static const char *const orders[HV_PICK_SORT_N] = {"step", "bubble", "peak", "name"};
    size_t failed = 0;
    struct hv_str text = {0};
    for (size_t i = 0; i < p->rows.n; i++) {
        failed += p->rows.items[i].failed;
    }
    hv_str_addf(&text, "by %s", orders[p->sort]);
    if (failed > 0) {
        hv_str_addf(&text, "; %zu do not apply: ! %s", failed,
                    p->all ? "hides them" : "lists them with the reason");
    }
    hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), HV_STYLE_DIM);
    hv_str_free(&text);
}

void hv_gantt_pick_draw(const struct hv_gantt_screen *st, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_gantt_pick *p = &st->pick;
    struct hv_rect in = hv_rect_inner(r);
    struct hv_str name = {0};
    title(p, r.w, &name);
    hv_grid_box(g, r, hv_str_cstr(&name), true, HV_STYLE_FRAME_FOCUS);
    hv_str_free(&name);
    struct hv_rect old = hv_grid_clip(g, in);
    size_t top = hv_gantt_pick_top(p, in.h);
    draw_head(p, g, (struct hv_rect){in.x, in.y, in.w, 1});
    int y = in.y + HEAD;
    for (size_t k = top; k < p->order.n && y < in.y + HEAD + rows_shown(in.h); k++, y++) {
        draw_row(st, &p->rows.items[p->order.items[k]], g, (struct hv_rect){in.x, y, in.w, 1},
                 k == p->cursor);
    }
    if (y < in.y + in.h) {
        draw_foot(p, g, (struct hv_rect){in.x + 2, y, in.w - 2, 1});
    }
    hv_grid_unclip(g, old);
    hv_more_draw(g, in, p->order.n + HEAD, top);
}
