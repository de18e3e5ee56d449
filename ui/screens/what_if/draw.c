/** Drawing of the What-if screen: sliders, figures before and after, the curve of one lever. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/screens/what_if/what_if_int.h"
#include "ui/view/grid/layout.h"

static const struct {
    const char *name;
    int better;
} figures[HV_FIGURE_N] = {
#define X(field, name, better) {name, better},
    HV_FIGURE_MAP(X)
#undef X
};

static double figure_of(const struct hv_figures *f, enum hv_what_if_figure which)
{
    const double all[HV_FIGURE_N] = {
#define X(field, name, better) f->field,
        HV_FIGURE_MAP(X)
#undef X
    };
    return all[which];
}

/** Divisor of a figure on an axis, for short labels. */
static double axis_unit(enum hv_what_if_figure which)
{
    bool share =
        which == HV_FIGURE_peak_frac || which == HV_FIGURE_bubble_frac || which == HV_FIGURE_mfu;
    bool tokens = which == HV_FIGURE_tokens_per_s || which == HV_FIGURE_expected_per_s;
    return tokens ? 1000 : share ? 0.01 : 1;
}

static const char *figure_text(char *buf, size_t cap, enum hv_what_if_figure which, double x)
{
    switch (which) {
    case HV_FIGURE_iteration_s:
    case HV_FIGURE_bound_s:
        return hv_fmt_seconds(buf, cap, x);
    case HV_FIGURE_tokens_per_s:
    case HV_FIGURE_expected_per_s:
        return x < 999999.5 ? hv_fmt_count(buf, cap, x) : hv_fmt_si(buf, cap, x, "");
    case HV_FIGURE_usd_per_mtoken:
    case HV_FIGURE_expected_usd:
        return hv_fmt_fixed(buf, cap, x, 3);
    case HV_FIGURE_usd_per_h:
        return hv_fmt_fixed(buf, cap, x, 2);
    case HV_FIGURE_peak_frac:
    case HV_FIGURE_bubble_frac:
    case HV_FIGURE_mfu:
        return hv_fmt_percent(buf, cap, x);
    case HV_FIGURE_N:
        break;
    }
    return "";
}

void hv_what_if_place(const struct hv_what_if *st, struct hv_rect body,
                      struct hv_rect out[HV_WHAT_IF_PANEL_N])
{
    memset(out, 0, HV_WHAT_IF_PANEL_N * sizeof *out);
    if (hv_layout_stacked(body)) {
        out[st->focus] = body;
        return;
    }
    int w = body.w >= HV_THREE_W ? body.w / 2 : body.w * 5 / 9;
    out[HV_WHAT_IF_SLIDERS] = (struct hv_rect){body.x, body.y, w, body.h};
    out[HV_WHAT_IF_RESULT] = (struct hv_rect){body.x + w, body.y, body.w - w, body.h};
}

/* ---- sliders ---- */

/* Plain text has no columns, so no name is cut. */
#define PLAIN_NAME_W 60

/** "[----o=====]": filled up to the value, 'o' where it stands in the workspace. */
static void draw_track(const struct hv_lever *l, double value, struct hv_grid *g, struct hv_rect at,
                       unsigned style)
{
    double last = (double)(l->n_values - 1);
    int base = (int)lround((double)hv_lever_at(l, l->base) / last * (at.w - 3));
    int now = (int)lround((double)hv_lever_at(l, value) / last * (at.w - 3));
    (void)hv_grid_put(g, at.x, at.y, 1, "[", style);
    for (int i = 0; i < at.w - 2; i++) {
        const char *glyph = i == now    ? (g->ascii ? "#" : "█")
                            : i == base ? "o"
                            : i < now   ? (g->ascii ? "=" : "━")
                                        : (g->ascii ? "-" : "─");
        (void)hv_grid_put(g, at.x + 1 + i, at.y, 1, glyph, style);
    }
    (void)hv_grid_put(g, at.x + at.w - 1, at.y, 1, "]", style);
}

static void draw_slider(const struct hv_what_if_data *d, size_t i, struct hv_grid *g,
                        struct hv_rect at, unsigned style)
{
    const struct hv_lever *l = &d->levers.items[i];
    struct hv_str text = {0}, name = {0};
    bool turned = !hv_lever_is_base(l, d->values[i]);
    enum { VALUE_W = 8, UNIT_W = 7, GAPS = 6, LEAST_TRACK = 6 };
    int name_w = at.w >= 60 ? 26 : at.w >= 44 ? 18 : at.w >= 40 ? 15 : 14;
    name_w = g->plain ? PLAIN_NAME_W : name_w;
    int track_w = at.w - name_w - VALUE_W - UNIT_W - GAPS;
    if (track_w < LEAST_TRACK && !g->plain) { /* no track: its room is the name's */
        name_w += track_w + 1;
        track_w = -1;
    }
    style = turned ? style | HV_STYLE_BOLD : style;
    hv_grid_fill(g, at, ' ', style);
    (void)hv_grid_put(g, at.x, at.y, 1, turned ? "*" : " ", style);
    hv_text_squeeze(l->name, name_w, g->ascii, &name);
    hv_grid_put_field(g, (struct hv_rect){at.x + 2, at.y, name_w, 1}, HV_LEFT, hv_str_cstr(&name),
                      style);
    int x = at.x + 2 + name_w + 1;
    hv_lever_text(l, d->values[i], &text);
    if (l->words != NULL) {
        int w = at.x + at.w - x;
        (void)hv_grid_put(g, x, at.y, w, "< ", style);
        hv_grid_put_field(g, (struct hv_rect){x + 2, at.y, w - 4, 1}, HV_LEFT, hv_str_cstr(&text),
                          style);
        (void)hv_grid_put(g, x + w - 2, at.y, 2, " >", style);
    } else {
        if (track_w >= LEAST_TRACK) {
            draw_track(l, d->values[i], g, (struct hv_rect){x, at.y, track_w, 1}, style);
        }
        x += track_w + 1;
        hv_grid_put_field(g, (struct hv_rect){x, at.y, VALUE_W, 1}, HV_RIGHT, hv_str_cstr(&text),
                          style);
        hv_grid_put_field(g, (struct hv_rect){x + VALUE_W + 1, at.y, UNIT_W, 1}, HV_LEFT,
                          hv_lever_unit(l), style);
    }
    hv_str_free(&name);
    hv_str_free(&text);
}

/** One line for small screens: the figures in words. */
static void draw_summary(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect at)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], text[120];
    double change = (d->now.iteration_s / d->base.iteration_s - 1) * 100;
    if (d->failed) {
        (void)snprintf(text, sizeof text, "! %.100s", d->why.text);
    } else {
        (void)snprintf(text, sizeof text, "%s %s -> %s %+.1f%%",
                       d->now.n_violations > 0 ? "!" : "=",
                       hv_fmt_seconds(a, sizeof a, d->base.iteration_s),
                       hv_fmt_seconds(b, sizeof b, d->now.iteration_s), change);
    }
    hv_grid_put_field(g, at, HV_LEFT, text,
                      d->failed || d->now.n_violations > 0 ? HV_STYLE_WARNING : HV_STYLE_TITLE);
}

static void draw_sliders(const struct hv_what_if *st, const struct hv_table *t, struct hv_grid *g,
                         struct hv_rect r)
{
    const struct hv_what_if_data *d = st->data;
    bool focused = st->focus == HV_WHAT_IF_SLIDERS;
    for (int y = 0; y < r.h && t->top + (size_t)y < d->levers.n; y++) {
        size_t i = t->top + (size_t)y;
        bool turned = !hv_lever_is_base(&d->levers.items[i], d->values[i]);
        unsigned style = i != t->cursor ? (turned ? HV_STYLE_MARKED : HV_STYLE_TEXT)
                         : focused      ? HV_STYLE_SELECTED
                                        : HV_STYLE_SELECTED_BLUR;
        draw_slider(d, i, g, (struct hv_rect){r.x, r.y + y, r.w, 1}, style);
        if (i == t->cursor && focused) {
            (void)hv_grid_put(g, r.x + 1, r.y + y, 1, ">", style);
            hv_grid_cursor(g, r.x, r.y + y);
        }
    }
}

/* ---- result ---- */

/** A line of figures, columns sized from the right, so that what is short of room is the name. */
static void put_figures(struct hv_grid *g, struct hv_rect row, const char *const cells[4],
                        unsigned style, unsigned change_style)
{
    enum { CHANGE_W = 8, LEAST_W = 7, SPARE_FROM = 34, MOST_WIDER = 5, MOST_W = 60 };
    row.w = row.w < MOST_W ? row.w : MOST_W; /* figures stay near their names */
    int spare = row.w > SPARE_FROM ? (row.w - SPARE_FROM) / 3 : 0;
    int value_w = LEAST_W + (spare < MOST_WIDER ? spare : MOST_WIDER);
    int name_w = row.w - CHANGE_W - 2 * value_w - 3;
    const int w[4] = {name_w > 0 ? name_w : 0, value_w, value_w, CHANGE_W};
    int x = row.x + row.w - CHANGE_W - 2 * value_w - 3 - w[0];
    for (int i = 0; i < 4; i++) {
        if (w[i] > 0 && x >= row.x) {
            hv_grid_put_field(g, (struct hv_rect){x, row.y, w[i], 1}, i == 0 ? HV_LEFT : HV_RIGHT,
                              cells[i], i == 3 ? change_style : style);
        }
        x += w[i] + 1;
    }
}

/** The rows of figures; returns how many were drawn. */
static int draw_figures(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect r)
{
    char base[HV_FMT_CAP], now[HV_FMT_CAP], change[HV_FMT_CAP];
    static const char *const head[4] = {"", "base", "now", "change"};
    put_figures(g, r, head, HV_STYLE_HEADER, HV_STYLE_HEADER);
    int y = 1;
    for (int i = 0; i < HV_FIGURE_N && y < r.h; i++) {
        enum hv_what_if_figure which = (enum hv_what_if_figure)i;
        double a = figure_of(&d->base, which);
        double b = d->failed ? HV_UNKNOWN : figure_of(&d->now, which);
        if (!hv_known(a) && !hv_known(b)) {
            continue;
        }
        bool share = axis_unit(which) < 1;
        double x = share ? (b - a) * 100 : (b / a - 1) * 100;
        (void)snprintf(change, sizeof change, share ? "%+.1f pt" : "%+.1f%%", x);
        unsigned style = !hv_known(x) || fabs(x) < 0.05           ? HV_STYLE_DIM
                         : (x > 0) == (figures[which].better > 0) ? HV_STYLE_GOOD
                                                                  : HV_STYLE_WARNING;
        const char *const cells[4] = {figures[which].name, figure_text(base, sizeof base, which, a),
                                      figure_text(now, sizeof now, which, b),
                                      !hv_known(x)     ? "-"
                                      : fabs(x) < 0.05 ? "="
                                                       : change};
        put_figures(g, (struct hv_rect){r.x, r.y + y, r.w, 1}, cells, HV_STYLE_TEXT, style);
        y++;
    }
    return y;
}

/** A text over as many lines as it needs, `r.h` at most; returns how many. */
static int draw_wrapped(struct hv_grid *g, struct hv_rect r, const char *text, unsigned style)
{
    const char *at = text;
    int y = 0;
    for (; *at != '\0' && y < r.h; y++) {
        size_t n = hv_text_fit(at, r.w), cut = n;
        while (at[n] != '\0' && cut > 0 && at[cut] != ' ') {
            cut--;
        }
        cut = cut > 0 ? cut : n > 0 ? n : strlen(at);
        char line[400];
        (void)snprintf(line, sizeof line, "%.*s", (int)cut, at);
        (void)hv_grid_put_user(g, r.x, r.y + y, r.w, line, style);
        at += cut;
        at += *at == ' ';
    }
    return y;
}

/** The first violation for the present values, or that there is none. */
static int draw_fit(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect r)
{
    char text[240];
    bool bad = d->failed || d->now.n_violations > 0;
    if (d->failed) {
        (void)snprintf(text, sizeof text, "! %.200s", d->why.text);
    } else if (d->now.n_violations > 0) {
        (void)snprintf(text, sizeof text, "! %s", d->now.violation);
    } else {
        (void)snprintf(text, sizeof text, "fits, no violations%s",
                       d->now.exact ? "" : "; ~ not exact");
    }
    return draw_wrapped(g, (struct hv_rect){r.x, r.y, r.w, r.h < 3 ? r.h : 3}, text,
                        bad ? HV_STYLE_WARNING : HV_STYLE_GOOD);
}

/** Effect of a redistribution of the layers; nothing where that is not possible. */
static int draw_share(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_share *x = &d->share.result;
    char text[400], t[HV_FMT_CAP];
    double change = x->figures.iteration_s / d->now.iteration_s - 1;
    if (!d->share.done || d->share.failed) {
        return 0;
    }
    bool better = hv_what_if_share_helps(d);
    if (!better) {
        (void)snprintf(text, sizeof text, "LP: no better distribution of the layers than %s",
                       x->was);
    } else {
        (void)snprintf(text, sizeof text,
                       "LP: layers %s instead of %s: %s/iter %+.1f%%%s; b applies this", x->now,
                       x->was, hv_fmt_seconds(t, sizeof t, x->figures.iteration_s), change * 100,
                       x->figures.n_violations > 0 ? ", breaks a rule" : "");
    }
    return draw_wrapped(g, (struct hv_rect){r.x, r.y, r.w, r.h < 3 ? r.h : 3}, text,
                        better ? HV_STYLE_GOOD : HV_STYLE_DIM);
}

/** Summary of the schedule at the lever, from the table of schedules, while the cursor is there. */
static int draw_schedule(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_schedule_row *row = NULL;
    char text[400];
    if (d->curve_lever >= d->levers.n || r.h < 12) {
        return 0;
    }
    const struct hv_lever *l = &d->levers.items[d->curve_lever];
    size_t at = hv_lever_at(l, d->values[d->curve_lever]);
    if (l->kind != HV_LEVER_SCHEDULE || hv_schedule_find(l->words[at], &row, NULL) != HV_OK) {
        return 0;
    }
    bool needs = row->constraints[0] != '\0';
    (void)snprintf(text, sizeof text, "%s: %s; %s%s%smemory: %s", row->name, row->summary,
                   needs ? "needs " : "", row->constraints, needs ? "; " : "", row->memory);
    return draw_wrapped(g, (struct hv_rect){r.x, r.y, r.w, 4}, text, HV_STYLE_DIM);
}

/** The best position of the curve that keeps the rules, or NULL. */
static const struct hv_what_if_point *best_of(const struct hv_what_if_data *d,
                                              enum hv_what_if_figure which)
{
    const struct hv_what_if_point *best = NULL;
    for (size_t i = 0; i < d->curve.n; i++) {
        const struct hv_what_if_point *p = &d->curve.items[i];
        double x = p->failed ? HV_UNKNOWN : figure_of(&p->figures, which);
        double y = best != NULL ? figure_of(&best->figures, which) : HV_UNKNOWN;
        bool ok = hv_known(x) && p->figures.n_violations <= d->base.n_violations;
        if (ok && (best == NULL || (figures[which].better > 0 ? x > y : x < y))) {
            best = p;
        }
    }
    return best;
}

static void draw_best(const struct hv_what_if_data *d, const struct hv_lever *l,
                      enum hv_what_if_figure which, struct hv_grid *g, struct hv_rect at)
{
    static const char *const legends[] = {"  (@ now, o others, x breaks a rule)",
                                          "  @ now, x breaks", "  @ now"};
    char buf[HV_FMT_CAP];
    struct hv_str text = {0};
    const struct hv_what_if_point *best = best_of(d, which);
    if (d->n_curve_done < l->n_values) {
        hv_str_addf(&text, "%zu of %zu positions", d->n_curve_done, l->n_values);
    } else if (best == NULL) {
        hv_str_adds(&text, "every position breaks a rule");
    } else {
        hv_str_adds(&text, "best at ");
        hv_lever_text(l, best->value, &text);
        hv_str_addf(&text, ": %s",
                    figure_text(buf, sizeof buf, which, figure_of(&best->figures, which)));
    }
    for (size_t i = 0; best != NULL && i < HV_COUNT(legends); i++) {
        if (hv_text_width(hv_str_cstr(&text)) + hv_text_width(legends[i]) <= at.w) {
            hv_str_adds(&text, legends[i]);
            break;
        }
    }
    hv_grid_put_field(g, at, HV_LEFT, hv_str_cstr(&text), HV_STYLE_DIM);
    hv_str_free(&text);
}

static void draw_curve(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect r)
{
    if (r.h < 6 || d->curve_lever >= d->levers.n) {
        return;
    }
    const struct hv_lever *l = &d->levers.items[d->curve_lever];
    enum hv_what_if_figure which = hv_what_if_figure(l);
    struct hv_point *points = hv_xcalloc(d->curve.n + 1, sizeof *points);
    char *marks = hv_xcalloc(d->curve.n + 2, 1), title[120];
    size_t n = 0;
    for (size_t i = 0; i < d->curve.n; i++) {
        const struct hv_what_if_point *p = &d->curve.items[i];
        double y = p->failed ? HV_UNKNOWN : figure_of(&p->figures, which);
        if (hv_known(y)) {
            marks[n] = hv_lever_at(l, p->value) == hv_lever_at(l, d->values[d->curve_lever]) ? '@'
                       : p->figures.n_violations > d->base.n_violations                      ? 'x'
                                                                                             : 'o';
            points[n++] = (struct hv_point){p->value, y / axis_unit(which)};
        }
    }
    double unit = axis_unit(which);
    (void)snprintf(title, sizeof title, "%s%s%s over %s", unit > 1 ? "k " : "", figures[which].name,
                   unit < 1 ? " %" : "", l->name);
    hv_grid_put_field(g, (struct hv_rect){r.x, r.y, r.w, 1}, HV_LEFT, title, HV_STYLE_HEADER);
    struct hv_series series = {
        .points = points, .n = n, .kind = HV_CHART_DOTS, .style = HV_STYLE_BAR, .marks = marks};
    struct hv_chart chart = {.series = &series,
                             .n_series = 1,
                             .x_min = HV_UNKNOWN,
                             .x_max = HV_UNKNOWN,
                             .y_min = HV_UNKNOWN,
                             .y_max = HV_UNKNOWN};
    int h = r.h - 2 < 16 ? r.h - 2 : 16;
    if (n > 0) {
        hv_chart_draw(g, (struct hv_rect){r.x, r.y + 1, r.w, h}, &chart);
    }
    draw_best(d, l, which, g, (struct hv_rect){r.x, r.y + 1 + h, r.w, 1});
    free(points);
    free(marks);
}

static void draw_result(const struct hv_what_if_data *d, struct hv_grid *g, struct hv_rect r)
{
    struct hv_rect old = hv_grid_clip(g, r);
    int y = draw_figures(d, g, r);
    struct hv_rect rest = {r.x, r.y + y, r.w, r.h - y};
    y = draw_fit(d, g, rest);
    y += draw_share(d, g, (struct hv_rect){rest.x, rest.y + y, rest.w, rest.h - y});
    y += draw_schedule(d, g, (struct hv_rect){rest.x, rest.y + y, rest.w, rest.h - y});
    draw_curve(d, g, (struct hv_rect){rest.x, rest.y + y + 1, rest.w, rest.h - y - 1});
    hv_grid_unclip(g, old);
}

void hv_what_if_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_what_if *st = state;
    struct hv_what_if_data *d = st->data;
    struct hv_rect r[HV_WHAT_IF_PANEL_N];
    struct hv_grid *g = ctx->grid;
    hv_what_if_sync(d, hv_ui_session(model));
    if (d->facts.verdict == NULL || d->levers.n == 0) {
        hv_ui_no_plan(&d->facts, d->err.text, g, ctx->body);
        return;
    }
    hv_what_if_place(st, ctx->body, r);
    bool stacked = hv_layout_stacked(ctx->body);
    struct hv_rect in = hv_rect_inner(r[HV_WHAT_IF_SLIDERS]);
    in.h -= stacked ? 1 : 0;
    struct hv_table t = d->table;
    struct hv_table_source src = hv_what_if_source(d);
    hv_table_refresh(&t, &src, in.h);
    if (r[HV_WHAT_IF_SLIDERS].h > 2) {
        bool focused = st->focus == HV_WHAT_IF_SLIDERS;
        struct hv_str title = {0};
        hv_str_addf(&title, "What if %s had", d->facts.row->name);
        hv_grid_box(g, r[HV_WHAT_IF_SLIDERS], hv_str_cstr(&title), focused,
                    focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
        draw_sliders(st, &t, g, in);
        hv_more_draw(g, hv_rect_inner(r[HV_WHAT_IF_SLIDERS]), d->levers.n, t.top);
        if (stacked) {
            draw_summary(d, g, (struct hv_rect){in.x, in.y + in.h, in.w, 1});
        }
        hv_str_free(&title);
    }
    if (r[HV_WHAT_IF_RESULT].h > 2) {
        bool focused = st->focus == HV_WHAT_IF_RESULT;
        hv_grid_box(g, r[HV_WHAT_IF_RESULT], "Result", focused,
                    focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
        draw_result(d, g, hv_rect_inner(r[HV_WHAT_IF_RESULT]));
    }
}
