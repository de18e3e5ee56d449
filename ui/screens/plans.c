/** Screen 4, Plans: the table of runs and plans, two of them compared, a scatter with the Pareto
 * front. Judging and storing are the session's. */
#include "ui/screens/screens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "ui/screens/plan_panels.h"
#include "ui/view/layout.h"

enum panel { PANEL_TABLE, PANEL_SCATTER, PANEL_DETAILS, PANEL_COMPARE, PANEL_N };

/** Fields that can be an axis. */
static const enum hv_plan_field axes[] = {HV_PLAN_ITERATION, HV_PLAN_COST, HV_PLAN_MEMORY,
                                          HV_PLAN_BUBBLE, HV_PLAN_MFU};

/** State of the screen. */
struct plans {
    struct hv_table table;
    HV_VEC(uint32_t) marks; /**< rows */
    enum panel focus;
    size_t detail_top;
    unsigned axis_x, axis_y; /**< numbers in `axes` */
    bool compare, front_only;
    char filter[64];
    uint32_t asked; /**< row a question is about */
};

/** The rows shown, with their facts. Made for one event or frame. */
struct list {
    const struct plans *st;
    struct hv_plan_facts *facts; /**< of all rows, in sort order */
    size_t n;
    size_t *shown; /**< numbers in facts */
    size_t n_shown;
};

static void plans_open(void *state, struct hv_app *app)
{
    (void)app;
    struct plans *st = state;
    st->axis_y = 1;
}

static void plans_close(void *state, struct hv_app *app)
{
    (void)app;
    struct plans *st = state;
    hv_vec_free(&st->marks);
}

static size_t find_mark(const struct plans *st, uint32_t id)
{
    size_t i = 0;
    while (i < st->marks.n && st->marks.items[i] != id) {
        i++;
    }
    return i;
}

static void get_axes(const struct plans *st, enum hv_plan_field out[2])
{
    out[0] = axes[st->axis_x % HV_COUNT(axes)];
    out[1] = axes[st->axis_y % HV_COUNT(axes)];
}

static bool is_front(const struct list *l, const struct hv_plan_facts *f)
{
    enum hv_plan_field two[2];
    get_axes(l->st, two);
    return hv_plan_fits(f) && !hv_plan_is_dominated(f, l->facts, l->n, two);
}

/* ---- rows ---- */

static bool is_shown(const struct list *l, const struct hv_plan_facts *f)
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

static struct list make_list(const struct plans *st, struct hv_session *s)
{
    struct list l = {.st = st};
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

static void free_list(struct list *l)
{
    free(l->facts);
    free(l->shown);
}

static const struct hv_plan_facts *shown_at(const struct list *l, size_t row)
{
    return &l->facts[l->shown[row]];
}

static const struct hv_plan_facts *facts_of(const struct list *l, uint32_t id)
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
    const struct list *l = ctx;
    const struct hv_plan_facts *f = shown_at(l, row);
    enum hv_row_state state = f->row->state;
    bool waits = state == HV_ROW_QUEUED || state == HV_ROW_RUNNING;
    unsigned flags = find_mark(l->st, f->row->id) < l->st->marks.n ? HV_ROW_MARKED : 0;
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

static struct hv_table_source make_source(const struct list *l)
{
    return (struct hv_table_source){
        .ctx = l, .n_rows = l->n_shown, .cell = cell, .flags = row_flags, .id = row_id};
}

static const struct hv_table_look look = {
    .columns = hv_plan_columns,
    .n_columns = HV_PLAN_FIELD_N,
    .focused = true,
    .empty = "no plan yet: 3, choose a strategy, Enter (or A runs all of them)",
};

/** The table with its cursor on the session's selected row. */
static struct hv_table synced(const struct plans *st, const struct hv_session *s,
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

struct places {
    struct hv_rect r[PANEL_N];
    int table_rows; /**< below the head */
};

static struct places place(const struct plans *st, struct hv_rect body)
{
    struct places p = {0};
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
    bool split = wide && st->compare;
    hv_layout_split(rows[1], HV_COLUMNS, split ? three : two, split ? 3 : 2, columns);
    p.r[PANEL_TABLE] = rows[0];
    p.r[PANEL_SCATTER] = columns[0];
    p.r[st->compare && !wide ? PANEL_COMPARE : PANEL_DETAILS] = columns[1];
    if (split) {
        p.r[PANEL_COMPARE] = columns[2];
    }
    p.table_rows = rows[0].h - 3;
    return p;
}

static bool can_focus(const struct plans *st, enum panel panel, const struct places *p,
                      bool stacked)
{
    return stacked ? panel != PANEL_COMPARE || st->compare : p->r[panel].w > 0;
}

static void move_focus(struct plans *st, struct hv_rect body, int step)
{
    struct places p = place(st, body);
    bool stacked = hv_layout_stacked(body);
    int i = (int)st->focus;
    for (int tries = 0; tries < PANEL_N; tries++) {
        i = (i + step + PANEL_N) % PANEL_N;
        if (can_focus(st, (enum panel)i, &p, stacked)) {
            st->focus = (enum panel)i;
            return;
        }
    }
}

/** The two plans compared: the marked ones, or the marked one and the one under the cursor. */
static bool get_pair(const struct list *l, uint32_t cursor, struct hv_plan_facts pair[2])
{
    const struct plans *st = l->st;
    const struct hv_plan_facts *a = NULL, *b = NULL;
    for (size_t i = 0; i < st->marks.n && b == NULL; i++) {
        const struct hv_plan_facts *f = facts_of(l, st->marks.items[i]);
        if (a == NULL) {
            a = f;
        } else {
            b = f;
        }
    }
    b = b != NULL ? b : facts_of(l, cursor);
    if (a == NULL || b == NULL || a == b) {
        return false;
    }
    pair[0] = *a;
    pair[1] = *b;
    return true;
}

/* ---- drawing ---- */

static void draw_table(const struct list *l, const struct hv_table *t, struct hv_grid *g,
                       struct hv_rect r)
{
    char title[160];
    struct hv_rect in = hv_rect_inner(r);
    bool focused = l->st->focus == PANEL_TABLE;
    struct hv_table_source src = make_source(l);
    struct hv_table_look own = look;
    own.focused = focused;
    if (l->n > 0) {
        own.empty = "no plan passes the filter; f and an empty text shows all again";
    }
    (void)snprintf(title, sizeof title, "Plans%s%s%s", l->st->filter[0] != '\0' ? "  filter:" : "",
                   l->st->filter, l->st->front_only ? "  only the Pareto front" : "");
    hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    hv_table_draw(t, &src, &own, g, in);
    int x = 2 + hv_plan_columns[0].min + 1 + hv_plan_columns[1].min + 1;
    struct hv_str text = {0};
    for (int y = in.y + 1; y < in.y + in.h && x + 8 < in.w; y++) {
        size_t row = hv_table_hit(t, &src, in, in.x, y);
        if (row == SIZE_MAX || shown_at(l, row)->verdict != NULL) {
            continue;
        }
        unsigned style = row != t->cursor ? HV_STYLE_WARNING
                         : focused        ? HV_STYLE_SELECTED
                                          : HV_STYLE_SELECTED_BLUR;
        bool waits = (row_flags(l, row) & HV_ROW_DIM) != 0;
        style = waits && row != t->cursor ? HV_STYLE_DIM : style;
        hv_str_clear(&text);
        hv_plan_text(shown_at(l, row), HV_PLAN_STATE, &text);
        hv_grid_put_field(g, (struct hv_rect){in.x + x, y, in.w - x, 1}, HV_LEFT,
                          hv_str_cstr(&text), style);
    }
    hv_str_free(&text);
}

static struct hv_plan_scatter make_scatter(const struct list *l, uint32_t selected)
{
    struct hv_plan_scatter s = {.facts = l->facts, .n = l->n, .selected = selected};
    get_axes(l->st, s.axes);
    return s;
}

static void draw_lower(const struct list *l, uint32_t cursor, const struct places *p,
                       struct hv_grid *g)
{
    const struct plans *st = l->st;
    const struct hv_plan_facts *f = facts_of(l, cursor);
    struct hv_plan_scatter scatter = make_scatter(l, cursor);
    struct hv_plan_facts pair[2];
    char title[160];
    for (int i = PANEL_SCATTER; i < PANEL_N; i++) {
        struct hv_rect r = p->r[i], in = hv_rect_inner(r);
        bool focused = st->focus == (enum panel)i;
        if (r.w < 3 || r.h < 3) {
            continue;
        }
        if (i == PANEL_SCATTER) {
            (void)snprintf(title, sizeof title, "%s over %s  P=front",
                           hv_plan_field_name(scatter.axes[1]),
                           hv_plan_field_name(scatter.axes[0]));
        } else {
            (void)snprintf(title, sizeof title, "%s",
                           i == PANEL_COMPARE ? "Compare"
                           : f != NULL        ? f->row->name
                                              : "Details");
        }
        hv_grid_box(g, r, title, focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
        if (i == PANEL_SCATTER) {
            hv_plan_scatter_draw(&scatter, g, in);
        } else if (i == PANEL_DETAILS && f != NULL) {
            hv_plan_details_draw(f, st->detail_top, g, in);
        } else if (i == PANEL_COMPARE && get_pair(l, cursor, pair)) {
            hv_plan_compare_draw(pair, st->detail_top, g, in);
        } else if (i == PANEL_COMPARE) {
            hv_grid_put_field(g, (struct hv_rect){in.x, in.y, in.w, 1}, HV_LEFT,
                              "Space marks a plan, move to another", HV_STYLE_DIM);
        }
    }
}

static uint32_t cursor_row(const struct hv_table *t, const struct list *l)
{
    return t->cursor < l->n_shown ? shown_at(l, t->cursor)->row->id : 0;
}

static void plans_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct plans *st = state;
    struct hv_session *s = hv_ui_session(model);
    struct list l = make_list(st, s);
    struct hv_table_source src = make_source(&l);
    struct places p = place(st, ctx->body);
    struct hv_table t = synced(st, s, &src, p.table_rows);
    const char *find = hv_app_find_text(ctx->app);
    t.find = find[0] != '\0' ? find : NULL;
    if (p.r[PANEL_TABLE].w > 0) {
        draw_table(&l, &t, ctx->grid, p.r[PANEL_TABLE]);
    }
    draw_lower(&l, cursor_row(&t, &l), &p, ctx->grid);
    free_list(&l);
}

static void plans_status(const void *state, const void *model, struct hv_str *out)
{
    const struct plans *st = state;
    struct hv_session *s = hv_ui_session(model);
    bool descending = false;
    size_t n = 0;
    (void)hv_session_rows(s, &n);
    enum hv_sort key = hv_session_sort_key(s, &descending);
    hv_str_addf(out, "%zu plan%s, %zu marked | sorted by %s%s", n, n == 1 ? "" : "s", st->marks.n,
                hv_sort_name(key), descending ? ", turned" : "");
    const struct hv_row *row = hv_session_row(s, hv_session_selected(s));
    if (row != NULL) {
        struct hv_plan_facts f = hv_plan_facts(s, row);
        struct hv_str why = {0};
        hv_plan_trouble(&f, &why);
        hv_str_addf(out, " | %s%s%s", row->name, why.n > 0 ? ": " : "", hv_str_cstr(&why));
        hv_str_free(&why);
    }
    hv_str_adds(out, " | P front, ! does not fit, * marked");
}

/* ---- actions ---- */

/** What an action works on. */
struct at {
    struct plans *st;
    struct hv_app *app;
    struct hv_session *s;
    struct list *l;
    uint32_t id; /**< row under the cursor, or 0 */
};

static unsigned answer_filter(void *ctx, struct hv_app *app, const char *text)
{
    (void)app;
    struct plans *st = ctx;
    (void)snprintf(st->filter, sizeof st->filter, "%s", text);
    return HV_APP_REDRAW;
}

static unsigned answer_export(void *ctx, struct hv_app *app, const char *path)
{
    struct plans *st = ctx;
    struct hv_err err = {0};
    if (hv_session_export(hv_ui_session(hv_app_model(app)), st->asked, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "plan written to %s", path);
    }
    return HV_APP_REDRAW;
}

static unsigned answer_rename(void *ctx, struct hv_app *app, const char *name)
{
    struct plans *st = ctx;
    struct hv_err err = {0};
    if (hv_session_row_rename(hv_ui_session(hv_app_model(app)), st->asked, name, &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
    return HV_APP_REDRAW;
}

static void ask_export(const struct at *at)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s.json", hv_session_row(at->s, at->id)->name);
    at->st->asked = at->id;
    hv_app_ask(at->app, "write the plan to: ", path, answer_export, at->st);
}

static void toggle_mark(const struct at *at)
{
    struct plans *st = at->st;
    size_t i = find_mark(st, at->id);
    if (i == st->marks.n) {
        hv_vec_push(&st->marks, at->id);
        return;
    }
    for (st->marks.n--; i < st->marks.n; i++) {
        st->marks.items[i] = st->marks.items[i + 1];
    }
}

/** Forgets marks of rows that are gone. */
static void clean_marks(struct plans *st, struct hv_session *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < st->marks.n; i++) {
        if (hv_session_row(s, st->marks.items[i]) != NULL) {
            st->marks.items[kept++] = st->marks.items[i];
        }
    }
    st->marks.n = kept;
}

static void delete_rows(const struct at *at)
{
    size_t n = 0;
    for (size_t i = 0; i < at->st->marks.n; i++) {
        n += hv_session_row_delete(at->s, at->st->marks.items[i]);
    }
    if (at->st->marks.n == 0) {
        n += hv_session_row_delete(at->s, at->id);
    }
    at->st->marks.n = 0;
    hv_app_message(at->app, HV_MSG_INFO, "%zu deleted; u brings %s back", n,
                   n == 1 ? "it" : "them one by one");
}

static void start_compare(const struct at *at)
{
    struct hv_plan_facts pair[2];
    at->st->compare = !at->st->compare;
    at->st->detail_top = 0;
    bool stacked = hv_layout_stacked(hv_app_body(at->app));
    if (!at->st->compare) {
        at->st->focus = PANEL_TABLE;
    } else if (!get_pair(at->l, at->id, pair)) {
        hv_app_message(at->app, HV_MSG_INFO, "mark one plan with Space and move to another");
    } else if (stacked) {
        at->st->focus = PANEL_COMPARE;
    }
    if (at->st->focus == PANEL_DETAILS && at->st->compare) {
        at->st->focus = PANEL_COMPARE;
    }
}

static void run_again(const struct at *at)
{
    const struct hv_row *row = hv_session_row(at->s, at->id);
    struct hv_err err = {0};
    char name[128];
    (void)snprintf(name, sizeof name, "%s", row->strategy);
    if (hv_session_run(at->s, name, row->options, NULL, &err) != HV_OK) {
        hv_ui_error(at->app, &err);
    } else {
        hv_app_message(at->app, HV_MSG_INFO, "%s runs again", name);
    }
}

static void next_sort(const struct at *at, bool turn)
{
    bool descending = false;
    enum hv_sort key = hv_session_sort_key(at->s, &descending);
    if (turn) {
        hv_session_sort(at->s, key, !descending);
        return;
    }
    key = (enum hv_sort)(((int)key + 1) % HV_SORT_N);
    hv_session_sort(at->s, key, key == HV_SORT_TOKENS || key == HV_SORT_MFU);
}

static void open_gantt(const struct at *at)
{
    struct hv_ui *ui = hv_app_model(at->app);
    struct hv_err err = {0};
    if (hv_session_row(at->s, at->id)->plan == NULL) {
        hv_app_message(at->app, HV_MSG_WARNING, "this row has no plan to draw");
        return;
    }
    ui->gantt_row = 0;
    hv_session_select(at->s, at->id);
    if (hv_app_open(at->app, "gantt", &err) != HV_OK) {
        hv_ui_error(at->app, &err);
    }
}

/** Actions on the row under the cursor; false when it is none of them. */
static bool row_action(const struct at *at, enum hv_action a)
{
    switch ((int)a) {
    case HV_ACT_OPEN:
        open_gantt(at);
        return true;
    case HV_ACT_MARK:
        toggle_mark(at);
        return true;
    case HV_ACT_EXPORT:
        ask_export(at);
        return true;
    case HV_ACT_PLAN_RENAME:
        at->st->asked = at->id;
        hv_app_ask(at->app, "new name: ", hv_session_row(at->s, at->id)->name, answer_rename,
                   at->st);
        return true;
    case HV_ACT_DELETE:
        delete_rows(at);
        return true;
    case HV_ACT_RUN:
        run_again(at);
        return true;
    case HV_ACT_STOP:
        return hv_session_cancel(at->s, at->id);
    default:
        return false;
    }
}

/** Actions on the view; false when it is none of them. */
static bool view_action(const struct at *at, enum hv_action a)
{
    struct plans *st = at->st;
    switch ((int)a) {
    case HV_ACT_PANEL_NEXT:
    case HV_ACT_PANEL_PREV:
        move_focus(st, hv_app_body(at->app), a == HV_ACT_PANEL_NEXT ? 1 : -1);
        st->detail_top = 0;
        return true;
    case HV_ACT_SORT:
    case HV_ACT_SORT_REVERSE:
        next_sort(at, a == HV_ACT_SORT_REVERSE);
        return true;
    case HV_ACT_FILTER:
        hv_app_ask(at->app, "show only rows with: ", st->filter, answer_filter, st);
        return true;
    case HV_ACT_PLAN_FRONT:
        st->front_only = !st->front_only;
        return true;
    case HV_ACT_PLAN_AXIS_X:
        st->axis_x = (st->axis_x + 1) % HV_COUNT(axes);
        return true;
    case HV_ACT_PLAN_AXIS_Y:
        st->axis_y = (st->axis_y + 1) % HV_COUNT(axes);
        return true;
    case HV_ACT_PLAN_COMPARE:
        start_compare(at);
        return true;
    case HV_ACT_CANCEL:
        if (!st->compare && st->focus == PANEL_TABLE) {
            return false;
        }
        st->compare = false;
        st->focus = PANEL_TABLE;
        return true;
    default:
        return false;
    }
}

/** Scrolls the lower panels. */
static bool scroll_details(struct plans *st, enum hv_action a)
{
    if (st->focus != PANEL_DETAILS && st->focus != PANEL_COMPARE) {
        return false;
    }
    if (a == HV_ACT_UP || a == HV_ACT_TOP) {
        st->detail_top = a == HV_ACT_UP && st->detail_top > 0 ? st->detail_top - 1 : 0;
    } else if (a == HV_ACT_DOWN && st->detail_top < 500) {
        st->detail_top++;
    } else {
        return false;
    }
    return true;
}

/** Remembers the table and makes the row under its cursor the selected one. */
static void settle(struct plans *st, struct hv_session *s, const struct hv_table *t,
                   const struct list *l)
{
    uint32_t id = cursor_row(t, l);
    st->table = *t;
    st->table.find = NULL;
    if (id != 0 && id != hv_session_selected(s)) {
        hv_session_select(s, id);
        st->detail_top = 0;
    }
}

static unsigned plans_action(void *state, struct hv_app *app, enum hv_action a)
{
    struct plans *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    clean_marks(st, s);
    struct list l = make_list(st, s);
    struct hv_table_source src = make_source(&l);
    int rows = place(st, hv_app_body(app)).table_rows;
    struct hv_table t = synced(st, s, &src, rows);
    struct at at = {st, app, s, &l, cursor_row(&t, &l)};
    bool done = scroll_details(st, a);
    if (!done && hv_table_action(&t, &src, a, rows)) {
        settle(st, s, &t, &l);
        done = true;
    }
    done = done || view_action(&at, a);
    if (!done && at.id != 0) {
        done = row_action(&at, a);
        if (done && a == HV_ACT_MARK && hv_table_action(&t, &src, HV_ACT_DOWN, rows)) {
            settle(st, s, &t, &l);
        }
    }
    free_list(&l);
    return done ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

static unsigned plans_find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct plans *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct list l = make_list(st, s);
    struct hv_table_source src = make_source(&l);
    struct hv_table t = synced(st, s, &src, place(st, hv_app_body(app)).table_rows);
    bool found = hv_table_find(&t, &src, &look, text, direction);
    if (found) {
        settle(st, s, &t, &l);
    }
    free_list(&l);
    return found ? HV_APP_HANDLED | HV_APP_REDRAW : 0;
}

/* ---- mouse ---- */

/** A click on the head sorts by the column; a second one turns the order round. */
static void click_head(struct hv_session *s, int x)
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

static void click_table(const struct at *at, struct hv_table *t, const struct hv_table_source *src,
                        const struct places *p, const struct hv_event *ev)
{
    struct hv_rect in = hv_rect_inner(p->r[PANEL_TABLE]);
    size_t row = hv_table_hit(t, src, in, ev->x, ev->y);
    if (ev->y == in.y && hv_rect_has(in, ev->x, ev->y)) {
        click_head(at->s, ev->x - in.x);
    } else if (row != SIZE_MAX && row == t->cursor && at->id != 0) {
        open_gantt(at);
    } else if (row != SIZE_MAX) {
        hv_table_goto(t, src, row, p->table_rows);
        settle(at->st, at->s, t, at->l);
    }
}

static void mouse(const struct at *at, struct hv_table *t, const struct hv_table_source *src,
                  const struct hv_event *ev)
{
    struct plans *st = at->st;
    struct places p = place(st, hv_app_body(at->app));
    int wheel = ev->mouse == HV_MOUSE_WHEEL_UP ? -3 : ev->mouse == HV_MOUSE_WHEEL_DOWN ? 3 : 0;
    for (int i = 0; i < PANEL_N; i++) {
        if (!hv_rect_has(p.r[i], ev->x, ev->y)) {
            continue;
        }
        if (wheel != 0 && i == PANEL_TABLE) {
            hv_table_scroll(t, src, wheel, p.table_rows);
            settle(st, at->s, t, at->l);
        } else if (wheel != 0) {
            st->detail_top = wheel > 0            ? st->detail_top + 3
                             : st->detail_top > 3 ? st->detail_top - 3
                                                  : 0;
            st->detail_top = st->detail_top < 500 ? st->detail_top : 500;
        } else if (ev->mouse == HV_MOUSE_PRESS) {
            st->focus = (enum panel)i;
            struct hv_plan_scatter scatter = make_scatter(at->l, at->id);
            uint32_t hit = i != PANEL_SCATTER
                               ? 0
                               : hv_plan_scatter_hit(&scatter, hv_rect_inner(p.r[i]), ev->x, ev->y);
            if (hit != 0) {
                hv_session_select(at->s, hit);
            } else if (i == PANEL_TABLE) {
                click_table(at, t, src, &p, ev);
            }
        }
        return;
    }
}

static unsigned plans_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    struct plans *st = state;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct list l = make_list(st, s);
    struct hv_table_source src = make_source(&l);
    struct hv_table t = synced(st, s, &src, place(st, hv_app_body(app)).table_rows);
    struct at at = {st, app, s, &l, cursor_row(&t, &l)};
    mouse(&at, &t, &src, ev);
    free_list(&l);
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static const enum hv_action keybar[] = {
    HV_ACT_OPEN,        HV_ACT_MARK,   HV_ACT_PLAN_COMPARE, HV_ACT_SORT,        HV_ACT_FIND,
    HV_ACT_FILTER,      HV_ACT_EXPORT, HV_ACT_DELETE,       HV_ACT_PLAN_RENAME, HV_ACT_RUN,
    HV_ACT_PLAN_AXIS_X, HV_ACT_UNDO,   HV_ACT_NONE,
};

const struct hv_view_ops hv_screen_plans = {
    .name = "plans",
    .title = "Plans",
    .short_title = "Plan",
    .tab = 4,
    .state_size = sizeof(struct plans),
    .keybar = keybar,
    .help = "Enter opens the Gantt. Mouse: a click on a heading sorts, on a dot selects, a second "
            "click on a row opens it.",
    .open = plans_open,
    .close = plans_close,
    .draw = plans_draw,
    .action = plans_action,
    .event = plans_event,
    .find = plans_find,
    .status = plans_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
