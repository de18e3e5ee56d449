/* Screen 1, Cluster: node groups, links between them, details and editing. Combines the parts;
 * drawing and editing are in the other files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "ui/screens/cluster/cluster.h"
#include "ui/screens/cluster/cluster_int.h"
#include "ui/screens/common/ui.h"
#include "ui/view/grid/layout.h"

enum { DONE = HV_APP_HANDLED | HV_APP_REDRAW, WHEEL_ROWS = 3, FORM_ROWS = 20, BOTTOM_ROWS = 10 };

/* State of the view, which drawing may update from the documents. */
struct state {
    struct hv_cluster_screen *screen;
};

static struct hv_cluster_screen *screen_of(void *state, struct hv_app *app)
{
    struct hv_cluster_screen *v = ((struct state *)state)->screen;
    hv_cluster_sync(v, hv_ui_session(hv_app_model(app)));
    return v;
}

static void open_screen(void *state, struct hv_app *app)
{
    struct hv_cluster_screen *v = hv_xcalloc(1, sizeof *v);
    ((struct state *)state)->screen = v;
    v->sort = -1;
    hv_cluster_sync(v, hv_ui_session(hv_app_model(app)));
    struct hv_table_source s = hv_cluster_source(v);
    hv_table_goto(&v->table, &s, 0, HV_GRID_MAX);
}

static void close_screen(void *state, struct hv_app *app)
{
    struct hv_cluster_screen *v = ((struct state *)state)->screen;
    (void)app;
    hv_doc_form_free(&v->form);
    hv_vec_free(&v->marks);
    hv_vec_free(&v->order);
    hv_vec_free(&v->edited);
    hv_vec_free(&v->devices);
    hv_str_free(&v->totals);
    json_decref(v->clip);
    free(v);
}

/* ---- layout ---------------------------------------------------------------------------------- */

static void stacked(const struct hv_cluster_screen *v, struct hv_rect body,
                    struct hv_cluster_rects *out)
{
    if (v->panel == HV_CLUSTER_NODES) {
        out->nodes = body;
    } else if (v->panel == HV_CLUSTER_LINKS) {
        out->links = body;
    } else if (v->form.open) {
        out->form = body;
    } else {
        out->side = body;
    }
}

static void wide(const struct hv_cluster_screen *v, struct hv_rect body,
                 struct hv_cluster_rects *out)
{
    int side = body.w * 34 / 100;
    const struct hv_split sides[] = {{0, 1, 60}, {side > 44 ? side : 44, 0, 0}};
    int links = (int)hv_cluster_shown(v)->n_groups + 4;
    links = links < BOTTOM_ROWS ? BOTTOM_ROWS : links;
    const struct hv_split left[] = {{0, 1, 6}, {links < body.h / 2 ? links : body.h / 2, 0, 0}};
    const struct hv_split right[] = {
        {v->form.open ? (body.h > 2 * FORM_ROWS ? FORM_ROWS : body.h - BOTTOM_ROWS) : 1, 0, 0},
        {0, 1, 0}};
    struct hv_rect halves[2], rows[2];
    hv_layout_split(body, HV_COLUMNS, sides, 2, halves);
    hv_layout_split(halves[0], HV_ROWS, left, 2, rows);
    out->nodes = rows[0];
    out->links = rows[1];
    out->side = halves[1];
    if (v->form.open) {
        hv_layout_split(halves[1], HV_ROWS, right, 2, rows);
        out->form = rows[0];
        out->side = rows[1];
    }
}

static void narrow(const struct hv_cluster_screen *v, struct hv_rect body,
                   struct hv_cluster_rects *out)
{
    int need = (int)hv_cluster_shown(v)->n_groups + 4, room = body.h - BOTTOM_ROWS;
    int nodes = v->form.open && need < room ? need : room;
    const struct hv_split rows[] = {{nodes, 0, 0}, {0, 1, 0}};
    const struct hv_split columns[] = {{0, 1, 30}, {0, 1, 40}};
    struct hv_rect halves[2], bottom[2];
    hv_layout_split(body, HV_ROWS, rows, 2, halves);
    hv_layout_split(halves[1], HV_COLUMNS, columns, 2, bottom);
    out->nodes = halves[0];
    out->links = bottom[0];
    *(v->form.open ? &out->form : &out->side) = bottom[1];
}

static struct hv_cluster_rects place(const struct hv_cluster_screen *v, struct hv_rect body)
{
    struct hv_cluster_rects out = {0};
    if (hv_layout_stacked(body)) {
        stacked(v, body, &out);
    } else if (hv_layout_columns(body.w) == 3) {
        wide(v, body, &out);
    } else {
        narrow(v, body, &out);
    }
    return out;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    struct hv_cluster_screen *v = ((const struct state *)state)->screen;
    hv_cluster_sync(v, hv_ui_session(model));
    struct hv_cluster_rects at = place(v, ctx->body);
    const char *find = hv_app_find_text(ctx->app);
    v->table.find = find[0] != '\0' ? find : NULL;
    if (at.nodes.w > 0) {
        hv_cluster_draw_nodes(v, ctx->grid, at.nodes);
    }
    if (at.links.w > 0) {
        hv_cluster_draw_links(v, ctx->grid, at.links);
    }
    if (at.side.w > 0) {
        hv_cluster_draw_side(v, ctx->grid, at.side);
    }
    if (at.form.w > 0) {
        bool focused = v->panel == HV_CLUSTER_SIDE;
        struct hv_str title = {0};
        hv_text_clean(&title, v->form.title, strlen(v->form.title));
        hv_grid_box(ctx->grid, at.form, hv_str_cstr(&title), focused,
                    focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
        hv_doc_form_draw(&v->form, v->session, ctx->grid, hv_rect_inner(at.form), focused);
        hv_str_free(&title);
    }
}

static void status(const void *state, const void *model, struct hv_str *out)
{
    struct hv_cluster_screen *v = ((const struct state *)state)->screen;
    hv_cluster_sync(v, hv_ui_session(model));
    const struct hv_node_group *g = hv_cluster_selected(v, NULL);
    if (v->panel == HV_CLUSTER_LINKS) {
        hv_cluster_link_line(v, out);
        return;
    }
    if (g == NULL) {
        return;
    }
    size_t before = out->n;
    hv_cluster_problem(v, g, out);
    if (out->n == before) {
        hv_cluster_group_line(g, out);
    }
}

/* ---- actions --------------------------------------------------------------------------------- */

static void toggle_mark(struct hv_cluster_screen *v)
{
    const struct hv_node_group *g = hv_cluster_selected(v, NULL);
    if (g == NULL) {
        return;
    }
    uint64_t id = hv_cluster_group_id(g);
    size_t i = 0;
    while (i < v->marks.n && v->marks.items[i] != id) {
        i++;
    }
    if (i < v->marks.n) {
        v->marks.items[i] = v->marks.items[--v->marks.n];
    } else {
        hv_vec_push(&v->marks, id);
    }
}

static unsigned set_filter(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_cluster_screen *v = ctx;
    (void)app;
    (void)snprintf(v->filter, sizeof v->filter, "%s", text);
    hv_cluster_reorder(v);
    return HV_APP_REDRAW;
}

/* The next column to sort by; after the last one the order of the file. */
static void next_sort(struct hv_cluster_screen *v)
{
    v->sort = v->sort + 1 < HV_CLUSTER_COLUMN_N ? v->sort + 1 : -1;
    hv_cluster_reorder(v);
}

static void move_panel(struct hv_cluster_screen *v, int step)
{
    int n = HV_CLUSTER_PANEL_N;
    v->panel = (enum hv_cluster_panel)(((int)v->panel + n + step) % n);
}

static bool scroll_side(struct hv_cluster_screen *v, enum hv_action a)
{
    enum { PAGE = 8 };
    if (a == HV_ACT_UP || a == HV_ACT_DOWN) {
        v->side_top += a == HV_ACT_UP ? -1 : 1;
    } else if (a == HV_ACT_PAGE_UP || a == HV_ACT_PAGE_DOWN) {
        v->side_top += a == HV_ACT_PAGE_UP ? -PAGE : PAGE;
    } else if (a == HV_ACT_TOP || a == HV_ACT_BOTTOM) {
        v->side_top = a == HV_ACT_TOP ? 0 : hv_cluster_side_line(v, "prices");
    } else {
        return false;
    }
    int last = hv_cluster_side_line(v, "prices");
    v->side_top = v->side_top > last ? last : v->side_top;
    v->side_top = v->side_top < 0 ? 0 : v->side_top;
    return true;
}

static unsigned move_in_panel(struct hv_cluster_screen *v, struct hv_app *app, enum hv_action a)
{
    struct hv_cluster_rects at = place(v, hv_app_body(app));
    if (v->panel == HV_CLUSTER_LINKS) {
        return hv_cluster_links_action(v, a) ? DONE : 0;
    }
    if (v->panel == HV_CLUSTER_SIDE) {
        return scroll_side(v, a) ? DONE : 0;
    }
    struct hv_table_source s = hv_cluster_source(v);
    if (!hv_table_action(&v->table, &s, a, hv_cluster_table_height(at.nodes))) {
        return 0;
    }
    v->side_top = 0;
    (void)hv_cluster_selected(v, &v->link_row); /* the matrix follows */
    return DONE;
}

static unsigned edit(struct hv_cluster_screen *v)
{
    if (v->panel == HV_CLUSTER_LINKS) {
        hv_cluster_form_network(v);
    } else {
        hv_cluster_form_groups(v);
    }
    return DONE;
}

static unsigned show_section(struct hv_cluster_screen *v, const char *section)
{
    v->form.open = false;
    v->panel = HV_CLUSTER_SIDE;
    v->side_top = hv_cluster_side_line(v, section);
    return DONE;
}

static unsigned cancel(struct hv_cluster_screen *v)
{
    if (v->form.open) {
        v->form.open = false;
        v->panel = v->editing == HV_EDIT_NETWORK ? HV_CLUSTER_LINKS : HV_CLUSTER_NODES;
    } else if (v->filter[0] != '\0') {
        v->filter[0] = '\0';
        hv_cluster_reorder(v);
    } else if (v->marks.n > 0) {
        v->marks.n = 0;
    } else if (v->panel != HV_CLUSTER_NODES) {
        v->panel = HV_CLUSTER_NODES;
    } else {
        return 0;
    }
    return DONE;
}

static unsigned table_change(struct hv_cluster_screen *v, struct hv_app *app, enum hv_action a)
{
    struct hv_table_source s = hv_cluster_source(v);
    if (a == HV_ACT_MARK) {
        toggle_mark(v);
        hv_table_goto(&v->table, &s, v->table.cursor + 1,
                      hv_cluster_table_height(place(v, hv_app_body(app)).nodes));
    } else if (a == HV_ACT_SORT) {
        next_sort(v);
    } else if (a == HV_ACT_SORT_REVERSE) {
        v->descending = !v->descending;
        hv_cluster_reorder(v);
    } else if (a == HV_ACT_FILTER) {
        hv_app_ask(app, "show only groups with: ", v->filter, set_filter, v);
    } else {
        return 0;
    }
    return DONE;
}

static unsigned action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_cluster_screen *v = screen_of(state, app);
    if (a == HV_ACT_PANEL_NEXT || a == HV_ACT_PANEL_PREV) {
        move_panel(v, a == HV_ACT_PANEL_NEXT ? 1 : -1);
        return DONE;
    }
    if (a == HV_ACT_EDIT || a == HV_ACT_OPEN) {
        return edit(v);
    }
    if (a == HV_ACT_CLUSTER_LINKS) {
        hv_cluster_form_network(v);
        return DONE;
    }
    if (a == HV_ACT_CLUSTER_TOPOLOGY || a == HV_ACT_CLUSTER_PRICES) {
        return show_section(v, a == HV_ACT_CLUSTER_TOPOLOGY ? "topology" : "prices");
    }
    if (a == HV_ACT_CANCEL || (a == HV_ACT_CLOSE && v->form.open)) {
        return cancel(v);
    }
    unsigned flags = move_in_panel(v, app, a);
    flags = flags != 0 ? flags : table_change(v, app, a);
    return flags != 0 ? flags : hv_cluster_change(v, app, a);
}

/* ---- mouse and form keys --------------------------------------------------------------------- */

static unsigned wheel(struct hv_cluster_screen *v, const struct hv_event *ev,
                      const struct hv_cluster_rects *at)
{
    int rows = ev->mouse == HV_MOUSE_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS;
    if (hv_rect_has(at->nodes, ev->x, ev->y)) {
        struct hv_table_source s = hv_cluster_source(v);
        hv_table_scroll(&v->table, &s, rows, hv_cluster_table_height(at->nodes));
        return DONE;
    }
    if (hv_rect_has(at->side, ev->x, ev->y)) {
        for (int i = 0; i < WHEEL_ROWS; i++) {
            (void)scroll_side(v, rows < 0 ? HV_ACT_UP : HV_ACT_DOWN);
        }
        return DONE;
    }
    return 0;
}

static unsigned press(struct hv_cluster_screen *v, const struct hv_event *ev,
                      const struct hv_cluster_rects *at)
{
    if (hv_rect_has(at->nodes, ev->x, ev->y)) {
        struct hv_table_source s = hv_cluster_source(v);
        size_t row = hv_table_hit(&v->table, &s, hv_cluster_table_rect(at->nodes), ev->x, ev->y);
        bool again = v->panel == HV_CLUSTER_NODES && row == v->table.cursor;
        v->panel = HV_CLUSTER_NODES;
        if (row != SIZE_MAX) {
            hv_table_goto(&v->table, &s, row, hv_cluster_table_height(at->nodes));
        }
        return again && row != SIZE_MAX ? edit(v) : DONE;
    }
    if (hv_rect_has(at->links, ev->x, ev->y)) {
        v->panel = HV_CLUSTER_LINKS;
        (void)hv_cluster_links_click(v, at->links, ev->x, ev->y);
        return DONE;
    }
    if (hv_rect_has(at->side, ev->x, ev->y) || hv_rect_has(at->form, ev->x, ev->y)) {
        v->panel = HV_CLUSTER_SIDE;
        return DONE;
    }
    return 0;
}

static unsigned event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_cluster_screen *v = screen_of(state, app);
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_cluster_rects at = place(v, hv_app_body(app));
    if (v->form.open && v->panel == HV_CLUSTER_SIDE) {
        bool typing = v->form.form.editing || v->form.pick.open;
        unsigned flags = hv_doc_form_event(&v->form, app, s, ev, hv_rect_inner(at.form));
        if (!v->form.open) {
            v->panel = v->editing == HV_EDIT_NETWORK ? HV_CLUSTER_LINKS : HV_CLUSTER_NODES;
        }
        hv_cluster_sync(v, s);
        if (flags != 0 || typing) {
            return flags | HV_APP_HANDLED;
        }
    }
    if (ev->type != HV_EV_MOUSE) {
        return 0;
    }
    if (ev->mouse == HV_MOUSE_WHEEL_UP || ev->mouse == HV_MOUSE_WHEEL_DOWN) {
        return wheel(v, ev, &at);
    }
    return ev->mouse == HV_MOUSE_PRESS ? press(v, ev, &at) : 0;
}

static unsigned find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct hv_cluster_screen *v = screen_of(state, app);
    struct hv_table_source s = hv_cluster_source(v);
    struct hv_table_look look = {.n_columns = HV_CLUSTER_COLUMN_N};
    v->panel = HV_CLUSTER_NODES;
    return hv_table_find(&v->table, &s, &look, text, direction) ? DONE : 0;
}

static const enum hv_action bar[] = {HV_ACT_ADD,
                                     HV_ACT_EDIT,
                                     HV_ACT_DELETE,
                                     HV_ACT_MARK,
                                     HV_ACT_CLUSTER_DRAIN,
                                     HV_ACT_FIND,
                                     HV_ACT_UNDO,
                                     HV_ACT_CLUSTER_LINKS,
                                     HV_ACT_IMPORT,
                                     HV_ACT_SAVE,
                                     HV_ACT_SORT,
                                     HV_ACT_COPY,
                                     HV_ACT_PASTE,
                                     HV_ACT_CLUSTER_TOPOLOGY,
                                     HV_ACT_CLUSTER_PRICES,
                                     HV_ACT_NONE};

static const enum hv_action *keybar_now(const void *state, const void *model)
{
    static const enum hv_action links[] = {HV_ACT_EDIT,          HV_ACT_ADD,        HV_ACT_DELETE,
                                           HV_ACT_CLUSTER_LINKS, HV_ACT_PANEL_NEXT, HV_ACT_CANCEL,
                                           HV_ACT_UNDO,          HV_ACT_NONE};
    const struct hv_cluster_screen *v = ((const struct state *)state)->screen;
    (void)model;
    return v->panel == HV_CLUSTER_LINKS ? links : NULL;
}

static const struct hv_key_hint *hints(const void *state, const void *model)
{
    static const struct hv_key_hint form[] = {{"Enter", "Change"},       {"Tab", "Next field"},
                                              {"Shift-Tab", "Previous"}, {"u", "Undo"},
                                              {"Esc", "Close"},          {NULL, NULL}};
    const struct hv_cluster_screen *v = ((const struct state *)state)->screen;
    (void)model;
    if (!v->form.open || v->panel != HV_CLUSTER_SIDE) {
        return NULL;
    }
    const struct hv_key_hint *typing = hv_doc_form_hints(&v->form);
    return typing != NULL ? typing : form;
}

const struct hv_view_ops hv_screen_cluster = {
    .name = "cluster",
    .title = "Cluster",
    .short_title = "Clu",
    .tab = 1,
    .state_size = sizeof(struct state),
    .keybar = bar,
    .keybar_now = keybar_now,
    .hints = hints,
    .help = "Space marks groups: e, d and D then act on all of them.\nIn the form Enter edits a "
            "value, Esc leaves it, and an empty value means the value of the catalogue.\nA click "
            "selects, a second click edits, the wheel scrolls.",
    .open = open_screen,
    .close = close_screen,
    .draw = draw,
    .action = action,
    .event = event,
    .find = find,
    .status = status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms};
