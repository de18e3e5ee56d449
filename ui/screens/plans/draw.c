/** Rows, layout and drawing of the Plans screen; changes nothing in the session except the sort
 * order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/facts/details.h"
#include "ui/screens/plans/plans_int.h"
#include "ui/view/grid/layout.h"

/** Fields that can be an axis. */
static const enum hv_plan_field axes[HV_PLANS_AXES] = {
    HV_PLAN_ITERATION, HV_PLAN_COST,   HV_PLAN_MEMORY, HV_PLAN_BUBBLE, HV_PLAN_MFU,
    HV_PLAN_GPUS,      HV_PLAN_TOKENS, HV_PLAN_GAP,    HV_PLAN_ENERGY};

size_t hv_plans_mark(const struct hv_plans *st, uint32_t id)
{
    size_t i = 0;
    while (i < st->marks.n && st->marks.items[i] != id) {
        i++;
    }
    return i;
}

/** The selected axes. By default y is the price where every plan that fits has one, else peak
 * memory. */
static void get_axes(const struct hv_plans_list *l, enum hv_plan_field out[2])
{
    out[0] = axes[l->st->axis_x % HV_PLANS_AXES];
    out[1] = axes[l->st->axis_y % HV_PLANS_AXES];
    for (size_t i = 0; i < l->n && !l->st->axis_chosen; i++) {
        if (hv_plan_fits(&l->facts[i]) && !hv_known(hv_plan_value(&l->facts[i], HV_PLAN_COST))) {
            out[1] = HV_PLAN_MEMORY;
        }
    }
}

static bool is_front(const struct hv_plans_list *l, const struct hv_plan_facts *f)
{
    enum hv_plan_field two[2];
    get_axes(l, two);
    return hv_plan_fits(f) && !hv_plan_is_dominated(f, l->facts, l->n, two);
}

uint32_t hv_plans_front_step(const struct hv_plans_list *l, uint32_t id, int direction)
{
    enum hv_plan_field two[2];
    get_axes(l, two);
    double here = HV_UNKNOWN, best = HV_UNKNOWN;
    uint32_t found = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->facts[i].row->id == id) {
            here = hv_plan_value(&l->facts[i], two[0]);
        }
    }
    for (size_t i = 0; i < l->n; i++) {
        const struct hv_plan_facts *f = &l->facts[i];
        double x = hv_plan_value(f, two[0]), ahead = (x - here) * direction;
        bool first = !hv_known(here) || ahead > 0;
        if (f->row->id != id && first && is_front(l, f) &&
            (!hv_known(best) || (x - best) * direction < 0)) {
            best = x;
            found = f->row->id;
        }
    }
    return found;
}

/* ---- rows ---- */

static bool is_shown(const struct hv_plans_list *l, const struct hv_plan_facts *f)
{
    if (l->st->front_only && !is_front(l, f)) {
        return false;
    }
    if (l->st->filter[0] == '\0') {
        return true;
    }
    bool hit = false;
    struct hv_str text = {0};
    for (int c = 0; c < HV_PLAN_FIELD_N && !hit; c++) {
        hv_str_clear(&text);
        hv_plan_text(f, (enum hv_plan_field)c, &text);
        hit = hv_text_has(hv_str_cstr(&text), l->st->filter);
    }
    hv_str_free(&text);
    return hit;
}

struct hv_plans_list hv_plans_list(const struct hv_plans *st, struct hv_session *s)
{
    struct hv_plans_list l = {.st = st};
    const struct hv_row *const *rows = hv_session_rows(s, &l.n);
    l.facts = hv_xcalloc(l.n + 1, sizeof *l.facts);
    l.shown = hv_xcalloc(l.n + 1, sizeof *l.shown);
    for (size_t i = 0; i < l.n; i++) {
        l.facts[i] = hv_plan_facts(s, rows[i]);
    }
    for (size_t i = 0; i < l.n; i++) {
        if (is_shown(&l, &l.facts[i])) {
            l.shown[l.n_shown++] = i;
        }
    }
    return l;
}

void hv_plans_list_free(struct hv_plans_list *l)
{
    free(l->facts);
    free(l->shown);
}

static const struct hv_plan_facts *shown_at(const struct hv_plans_list *l, size_t row)
{
    return &l->facts[l->shown[row]];
}

static const struct hv_plan_facts *facts_of(const struct hv_plans_list *l, uint32_t id)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->facts[i].row->id == id) {
            return &l->facts[i];
        }
    }
    return NULL;
}

static void cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct hv_plan_facts *f = shown_at(ctx, row);
    bool is_word = column == HV_PLAN_NAME || column == HV_PLAN_STRATEGY || column == HV_PLAN_STATE;
    if (f->verdict != NULL || is_word) {
        hv_plan_text(f, (enum hv_plan_field)column, out);
    }
}

static unsigned row_flags(const void *ctx, size_t row)
{
    const struct hv_plans_list *l = ctx;
    const struct hv_plan_facts *f = shown_at(l, row);
    enum hv_row_state state = f->row->state;
    bool waits = state == HV_ROW_QUEUED || state == HV_ROW_RUNNING;
    unsigned flags = hv_plans_mark(l->st, f->row->id) < l->st->marks.n ? HV_ROW_MARKED : 0;
    if (!waits && !hv_plan_fits(f)) {
        flags |= HV_ROW_PROBLEM;
    } else if (is_front(l, f)) {
        flags |= HV_ROW_GOOD;
    }
    return flags | (waits || f->row->outdated ? HV_ROW_DIM : 0);
}

static uint64_t row_id(const void *ctx, size_t row)
{
    return shown_at(ctx, row)->row->id;
}

struct hv_table_source hv_plans_source(const struct hv_plans_list *l)
{
    return (struct hv_table_source){
        .ctx = l, .n_rows = l->n_shown, .cell = cell, .flags = row_flags, .id = row_id};
}

const struct hv_table_look hv_plans_look = {
    .columns = hv_plan_columns,
    .n_columns = HV_PLAN_FIELD_N,
    .focused = true,
    .empty = "no plans yet: press 3, then Enter (A runs all)",
};

struct hv_table hv_plans_table(const struct hv_plans *st, const struct hv_session *s,
                               const struct hv_table_source *src, int height)
{
    struct hv_table t = st->table;
    uint32_t id = hv_session_selected(s);
    bool descending = false;
    enum hv_plan_field by = hv_plan_sorted_field(hv_session_sort_key(s, &descending));
    t.sort_column = by == HV_PLAN_FIELD_N ? -1 : (int)by;
    t.sort_descending = descending;
    if (id != 0) {
        t.cursor_id = id;
        t.has_id = true;
    }
    hv_table_refresh(&t, src, height);
    return t;
}

/* ---- layout ---- */

void hv_plans_click_head(struct hv_session *s, int x)
{
    static const enum hv_sort keys[] = {
#define X(c, title, align, width, flex, sort, better, name) sort,
        HV_PLAN_FIELD_MAP(X)
#undef X
    };
    int at = 2;
    for (size_t i = 0; i < HV_PLAN_LAYERS; i++) {
        at += hv_plan_columns[i].min + 1;
        if (x < at) {
            bool descending = false;
            bool again = hv_session_sort_key(s, &descending) == keys[i];
            if (keys[i] != HV_SORT_N) {
                hv_session_sort(s, keys[i], again && !descending);
            }
            return;
        }
    }
}

struct hv_plans_places hv_plans_place(const struct hv_plans *st, struct hv_rect body)
{
    struct hv_plans_places p = {0};
    if (hv_layout_stacked(body)) {
        p.r[st->focus] = body;
        p.table_rows = body.h - 3;
        return p;
    }
    int bottom = body.h >= 40 ? 18 : body.h >= 28 ? 13 : 10;
    struct hv_split halves[2] = {{.flex = 1, .min = 5}, {.fixed = bottom, .min = bottom}};
    struct hv_rect rows[2], columns[3];
    hv_layout_split(body, HV_ROWS, halves, 2, rows);
    bool wide = body.w >= HV_THREE_W;
    struct hv_split two[2] = {{.flex = 1, .min = 20}, {.flex = 1, .min = 20}};
    struct hv_split three[3] = {
        {.flex = 3, .min = 20}, {.flex = 3, .min = 20}, {.flex = 5, .min = 20}};
    bool many = st->compare && st->marks.n > 2, split = wide && st->compare && !many;
    if (wide && many) { /* a column for each of them */
        two[1].flex = 3;
    }
    hv_layout_split(rows[1], HV_COLUMNS, split ? three : two, split ? 3 : 2, columns);
    p.r[HV_PLANS_TABLE] = rows[0];
    p.r[HV_PLANS_SCATTER] = columns[0];
    p.r[st->compare && !split ? HV_PLANS_COMPARE : HV_PLANS_DETAILS] = columns[1];
    if (split) {
        p.r[HV_PLANS_COMPARE] = columns[2];
    }
    p.table_rows = rows[0].h - 3;
    return p;
}

size_t hv_plans_compared(const struct hv_plans_list *l, uint32_t cursor,
                         struct hv_plan_facts out[HV_PLANS_COMPARED])
{
    const struct hv_plans *st = l->st;
    size_t n = 0;
    for (size_t i = 0; i < st->marks.n && n < HV_PLANS_COMPARED; i++) {
        const struct hv_plan_facts *f = facts_of(l, st->marks.items[i]);
        if (f != NULL) {
            out[n++] = *f;
        }
    }
    const struct hv_plan_facts *here = facts_of(l, cursor);
    if (n == 1 && here != NULL && here->row != out[0].row) {
        out[n++] = *here;
    }
    return n < 2 ? 0 : n;
}

/* ---- drawing ---- */

/** A row without any shows the reason in their place. */
static bool has_figures(const struct hv_plan_facts *f)
{
    const struct hv_verdict *v = f->verdict;
    return v != NULL && (v->findings.n == 0 || hv_known(v->metrics.iteration_s) ||
                         v->serving != NULL || v->jobs != NULL);
}

static void draw_table(const struct hv_plans_list *l, const struct hv_table *t, struct hv_grid *g,
                       struct hv_rect r)
{
    char title[160];
    struct hv_rect in = hv_rect_inner(r);
    bool focused = l->st->focus == HV_PLANS_TABLE;
    struct hv_table_source src = hv_plans_source(l);
    struct hv_table_look own = hv_plans_look;
    own.focused = focused;
    if (l->n > 0) {
        own.empty = "no plan matches the filter; f with an empty text shows all plans";
    }
    (void)snprintf(title, sizeof title, "Plans%s%s%s", l->st->filter[0] != '\0' ? "  filter:" : "",
                   l->st->filter, l->st->front_only ? "  only the Pareto front" : "");
    hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    hv_table_draw(t, &src, &own, g, in);
    hv_table_more_draw(t, &src, in, g, in);
    int x = 2 + hv_plan_columns[0].min + 1 + hv_plan_columns[1].min + 1;
    struct hv_str text = {0};
    for (int y = in.y + 1; y < in.y + in.h && x + 8 < in.w; y++) {
        size_t row = hv_table_hit(t, &src, in, in.x, y);
        if (row == SIZE_MAX || has_figures(shown_at(l, row))) {
            continue;
        }
        unsigned style = row != t->cursor ? HV_STYLE_WARNING
                         : focused        ? HV_STYLE_SELECTED
                                          : HV_STYLE_SELECTED_BLUR;
        bool waits = (row_flags(l, row) & HV_ROW_DIM) != 0;
        style = waits && row != t->cursor ? HV_STYLE_DIM : style;
        hv_str_clear(&text);
        const struct hv_plan_facts *f = shown_at(l, row);
        if (f->verdict != NULL) {
            hv_str_addf(&text, "breaks a rule: %s", f->verdict->findings.items[0].text);
        } else {
            hv_plan_text(f, HV_PLAN_STATE, &text);
        }
        hv_grid_put_field(g, (struct hv_rect){in.x + x, y, in.w - x, 1}, HV_LEFT,
                          hv_str_cstr(&text), style);
    }
    hv_str_free(&text);
}

struct hv_plan_scatter hv_plans_scatter(const struct hv_plans_list *l, uint32_t selected)
{
    struct hv_plan_scatter s = {.facts = l->facts, .n = l->n, .selected = selected};
    get_axes(l, s.axes);
    return s;
}

static void draw_lower(const struct hv_plans_list *l, uint32_t cursor,
                       const struct hv_plans_places *p, struct hv_grid *g)
{
    const struct hv_plans *st = l->st;
    const struct hv_plan_facts *f = facts_of(l, cursor);
    struct hv_plan_scatter scatter = hv_plans_scatter(l, cursor);
    struct hv_plan_facts set[HV_PLANS_COMPARED];
    size_t n = st->compare ? hv_plans_compared(l, cursor, set) : 0;
    char title[160];
    for (int i = HV_PLANS_SCATTER; i < HV_PLANS_PANEL_N; i++) {
        struct hv_rect r = p->r[i], in = hv_rect_inner(r);
        bool focused = st->focus == (enum hv_plans_panel)i;
        if (r.w < 3 || r.h < 3) {
            continue;
        }
        if (i == HV_PLANS_SCATTER) {
            (void)snprintf(title, sizeof title, "%s over %s  P=front",
                           hv_plan_axis_name(scatter.axes[1]), hv_plan_axis_name(scatter.axes[0]));
        } else {
            (void)snprintf(title, sizeof title, "%s",
                           i == HV_PLANS_COMPARE ? "Compare"
                           : f != NULL           ? f->row->name
                                                 : "Details");
        }
        hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
        if (i == HV_PLANS_SCATTER) {
            hv_plan_scatter_draw(&scatter, g, in);
        } else if (i == HV_PLANS_DETAILS && f != NULL) {
            hv_plan_details_draw(f, st->detail_top, g, in);
            hv_more_draw(g, in, hv_plan_details_lines(f, in.w), st->detail_top);
        } else if (i == HV_PLANS_COMPARE && n > 2) {
            hv_plan_compare_many_draw(set, n, st->detail_top, g, in);
        } else if (i == HV_PLANS_COMPARE && n > 0) {
            hv_plan_compare_draw(set, st->detail_top, g, in);
        } else if (i == HV_PLANS_COMPARE) {
            hv_grid_put_field(
                g, (struct hv_rect){in.x, in.y, in.w, 1}, HV_LEFT,
                "Space marks plans: mark two or more, or mark one and move to another",
                HV_STYLE_DIM);
        }
    }
}

uint32_t hv_plans_cursor(const struct hv_table *t, const struct hv_plans_list *l)
{
    return t->cursor < l->n_shown ? shown_at(l, t->cursor)->row->id : 0;
}

void hv_plans_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct hv_plans *st = state;
    struct hv_session *s = hv_ui_session(model);
    struct hv_plans_list l = hv_plans_list(st, s);
    struct hv_table_source src = hv_plans_source(&l);
    struct hv_plans_places p = hv_plans_place(st, ctx->body);
    struct hv_table t = hv_plans_table(st, s, &src, p.table_rows);
    const char *find = hv_app_find_text(ctx->app);
    t.find = find[0] != '\0' ? find : NULL;
    if (p.r[HV_PLANS_TABLE].w > 0) {
        draw_table(&l, &t, ctx->grid, p.r[HV_PLANS_TABLE]);
    }
    draw_lower(&l, hv_plans_cursor(&t, &l), &p, ctx->grid);
    hv_plans_list_free(&l);
}
