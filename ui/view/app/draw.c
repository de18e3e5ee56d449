/*
 * The frame around a view: tabs, status row, key bar; the same as words. Changes only the grid and
 * the key bar used for clicks.
 */
#include "ui/view/app/app_int.h"

#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "ui/view/app/palette.h"
#include "ui/view/grid/layout.h"
#include "ui/view/grid/plain.h"

/* Tabs and their titles in order of their numbers. */
struct hv_tabs hv__app_tabs(const struct hv_app *app, const char **titles, const char **shorts)
{
    struct hv_tabs t = {.titles = titles, .short_titles = shorts};
    for (int tab = 1; tab <= HV__MAX_TABS; tab++) {
        const struct hv_view_ops *ops = hv__app_tab_ops(app, tab);
        titles[t.n] = ops ? ops->title : "-";
        shorts[t.n] = ops ? ops->short_title : "-";
        if (!ops && tab > app->tab) {
            break;
        }
        t.n++;
    }
    t.active = (size_t)app->tab - 1;
    return t;
}

/* A key as the bar shows it: without the brackets of the key files. */
static void bar_key(struct hv_key k, char *buf, size_t cap)
{
    char name[32];
    if (k.code == HV_KEY_CHAR && k.mods == 0 && (k.cp == '<' || k.cp == '>')) {
        (void)snprintf(name, sizeof name, "%c", (char)k.cp);
    } else {
        (void)hv_key_name(k, name, sizeof name);
    }
    size_t n = strlen(name);
    bool bracketed = n > 2 && name[0] == '<' && name[n - 1] == '>';
    (void)snprintf(buf, cap, "%.*s", (int)(bracketed ? n - 2 : n), name + (bracketed ? 1 : 0));
}

/* Neighbours with one label share an entry: "+/- Zoom". */
static bool add_twin(struct hv_app *app, enum hv_action a, const char *key)
{
    struct hv_keybar_item *item = app->n_bar > 0 ? &app->bar[app->n_bar - 1] : NULL;
    const char *label = hv_action_row(a)->label;
    if (!item || item->twin != HV_ACT_NONE || strcmp(item->label, label) != 0 ||
        strlen(item->key) + 1 + strlen(key) >= sizeof item->key) {
        return false;
    }
    item->twin = a;
    item->twin_x = hv_text_width(item->key) + 1;
    size_t n = strlen(item->key);
    (void)snprintf(item->key + n, sizeof item->key - n, "/%s", key);
    return true;
}

static void add_bar(struct hv_app *app, enum hv_action a)
{
    struct hv_key k;
    char key[sizeof app->bar[0].key];
    const char *view = app->in_help ? "help" : hv__app_top(app)->ops->name;
    if (app->n_bar == HV__MAX_BAR || !hv_keymap_key_of(app->config.keys, view, a, &k)) {
        return;
    }
    bar_key(k, key, sizeof key);
    if (add_twin(app, a, key)) {
        return;
    }
    struct hv_keybar_item *item = &app->bar[app->n_bar++];
    *item = (struct hv_keybar_item){.action = a, .label = hv_action_row(a)->label};
    if (a == HV_ACT_CLOSE && app->n_stack > 0 && !hv__app_top(app)->ops->quits) {
        item->label = "Back";
    }
    (void)snprintf(item->key, sizeof item->key, "%s", key);
}

static void add_hint(struct hv_app *app, const struct hv_key_hint *hint)
{
    struct hv_err err = {0};
    struct hv_key k;
    if (app->n_bar == HV__MAX_BAR ||
        hv_key_parse(hint->key, strlen(hint->key), &k, &err) != HV_OK) {
        return;
    }
    struct hv_keybar_item *item = &app->bar[app->n_bar++];
    *item = (struct hv_keybar_item){.label = hint->label, .press = k};
    bar_key(k, item->key, sizeof item->key);
}

/** Keys that a question in the status row or a field of the view takes; NULL = neither. */
static const struct hv_key_hint *hints_of(const struct hv_app *app)
{
    static const struct hv_key_hint command[] = {{"Enter", "Run"},  {"Tab", "Complete"},
                                                 {"Up", "History"}, {"^U", "Clear"},
                                                 {"Esc", "Cancel"}, {NULL, NULL}};
    static const struct hv_key_hint find[] = {
        {"Enter", "Find"}, {"Up", "History"}, {"Esc", "Cancel"}, {NULL, NULL}};
    static const struct hv_key_hint ask[] = {
        {"Enter", "Accept"}, {"^U", "Clear"}, {"Esc", "Cancel"}, {NULL, NULL}};
    static const struct hv_key_hint ask_path[] = {
        {"Enter", "Accept"}, {"Tab", "Complete"}, {"^U", "Clear"}, {"Esc", "Cancel"}, {NULL, NULL}};
    static const struct hv_key_hint quit[] = {
        {"y", "Quit"}, {"s", "Save, quit"}, {"Esc", "Stay"}, {NULL, NULL}};
    const struct hv_key_hint *prompts[] = {NULL, command, find, app->ask.complete ? ask_path : ask,
                                           quit};
    const struct hv__open_view *v = hv__app_top_const(app);
    if (app->prompt != HV__PROMPT_NONE) {
        return prompts[app->prompt];
    }
    return v->ops->hints && !app->in_help ? v->ops->hints(v->state, app->config.model) : NULL;
}

/** Actions of the key bar of the view on top, up to HV_ACT_NONE; NULL = none. */
static const enum hv_action *bar_of(const struct hv_app *app)
{
    static const enum hv_action in_help[] = {HV_ACT_HELP_RUN, HV_ACT_CANCEL, HV_ACT_UP, HV_ACT_DOWN,
                                             HV_ACT_NONE};
    const struct hv__open_view *v = hv__app_top_const(app);
    if (app->in_help) {
        return in_help;
    }
    const enum hv_action *now =
        v->ops->keybar_now ? v->ops->keybar_now(v->state, app->config.model) : NULL;
    return now ? now : v->ops->keybar;
}

/* The 0 at its end is hashed too and separates it from the next text. */
static uint64_t hash_text(uint64_t h, const char *text)
{
    return hv_hash(h, text, strlen(text) + 1);
}

static void add_actions(struct hv_app *app, const enum hv_action *a)
{
    add_bar(app, HV_ACT_HELP);
    for (; a && *a != HV_ACT_NONE && app->n_bar < HV__MAX_BAR - 1; a++) {
        add_bar(app, *a);
    }
    if (!app->in_help) { /* there q is a letter to search for */
        add_bar(app, HV_ACT_CLOSE);
    }
}

/* The bar of a view stays while its list, hints, depth and width are the same; hv_app_keys_changed
 * resets it. */
static void fill_bar(struct hv_app *app, int width)
{
    const struct hv_view_ops *ops = hv__app_top(app)->ops;
    const enum hv_action *a = bar_of(app);
    const struct hv_key_hint *hints = hints_of(app);
    if (app->bar_of == ops && app->bar_list == a && app->bar_hints == hints &&
        app->bar_depth == app->n_stack && app->bar_width == width) {
        return;
    }
    app->bar_of = ops;
    app->bar_list = a;
    app->bar_hints = hints;
    app->bar_depth = app->n_stack;
    app->bar_width = width;
    app->n_bar = 0;
    if (hints) {
        for (; hints->key; hints++) {
            add_hint(app, hints);
        }
    } else {
        add_actions(app, a);
    }
    hv_keybar_fit(app->bar, app->n_bar, width);
    app->bar_hash = HV_HASH_START;
    for (size_t i = 0; i < app->n_bar; i++) {
        app->bar_hash = hash_text(hash_text(app->bar_hash, app->bar[i].key), app->bar[i].label);
    }
}

void hv_app_keys_changed(struct hv_app *app)
{
    app->bar_of = NULL;
    app->dirty = true;
}

static void draw_keybar(struct hv_app *app, struct hv_grid *g, struct hv_rect row)
{
    fill_bar(app, row.w);
    if (!hv_grid_part(g, row, hash_text(app->bar_hash, "key bar"))) {
        hv_keybar_draw(app->bar, app->n_bar, g, row);
        hv_grid_part_end(g);
    }
}

/* The row of tabs, drawn only where one of its words changed. */
static void draw_tabs(const struct hv_app *app, struct hv_grid *g, struct hv_rect row)
{
    const char *titles[HV__MAX_TABS], *shorts[HV__MAX_TABS];
    struct hv_tabs tabs = hv__app_tabs(app, titles, shorts);
    struct hv_str project = {0};
    if (app->config.project) {
        app->config.project(app->config.model, &project);
    }
    tabs.right = hv_str_cstr(&project);
    uint64_t what = hash_text(hv_hash(HV_HASH_START, &tabs.active, sizeof tabs.active), "tabs");
    what = hash_text(what, tabs.right);
    for (size_t i = 0; i < tabs.n; i++) {
        what = hash_text(hash_text(what, titles[i]), shorts[i]);
    }
    if (!hv_grid_part(g, row, what)) {
        hv_tabs_draw(&tabs, g, row);
        hv_grid_part_end(g);
    }
    hv_str_free(&project);
}

static const char quit_question[] =
    "Unsaved changes. s saves and quits, y quits (they are offered at the next start), else stays";

const char *hv_app_question(const struct hv_app *app, const char **typed)
{
    const struct hv_line *lines[] = {NULL, &app->command, &app->find, &app->ask, NULL};
    const char *labels[] = {NULL, ":", "/", app->ask_label, quit_question};
    if (typed) {
        *typed = lines[app->prompt] ? hv_str_cstr(&lines[app->prompt]->text) : "";
    }
    return labels[app->prompt];
}

/* Least rows of the body for a separate guidance row; below, guidance replaces the status row. */
#define GUIDE_BODY_H 10

static bool get_guide(const struct hv_app *app, struct hv_str *out)
{
    if (app->config.guide) {
        app->config.guide(app->config.model, hv__app_top_const(app)->ops->name, out);
    }
    return out->n > 0;
}

struct hv_frame hv__app_frame(const struct hv_app *app)
{
    struct hv_frame f = hv_layout_frame(app->w, app->h);
    struct hv_str text = {0};
    if (f.body.h >= GUIDE_BODY_H && get_guide(app, &text)) {
        f.body.h--;
    }
    hv_str_free(&text);
    return f;
}

struct hv_rect hv_app_body(const struct hv_app *app)
{
    return hv__app_frame(app).body;
}

static void draw_guide(const struct hv_app *app, struct hv_grid *g, struct hv_rect row)
{
    struct hv_str text = {0};
    if (get_guide(app, &text)) {
        hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), HV_STYLE_MATCH);
    }
    hv_str_free(&text);
}

void hv_app_status(const struct hv_app *app, struct hv_str *out)
{
    const struct hv__open_view *v = hv__app_top_const(app);
    if (v->ops->status) {
        v->ops->status(v->state, app->config.model, out);
    }
    struct hv_str guide = {0};
    if (get_guide(app, &guide)) {
        hv_str_addf(out, "%s%s", out->n > 0 ? "\n" : "", hv_str_cstr(&guide));
    }
    hv_str_free(&guide);
}

size_t hv_app_bar_actions(const struct hv_app *app, enum hv_action *out, size_t cap)
{
    const enum hv_action *a = bar_of(app);
    size_t n = 0;
    for (; a && a[n] != HV_ACT_NONE; n++) {
        if (n < cap) {
            out[n] = a[n];
        }
    }
    return n;
}

void hv_app_plain(struct hv_app *app, struct hv_str *out)
{
    struct hv_plain plain = {.out = out};
    struct hv_grid g = {.ascii = true, .plain = &plain};
    const struct hv__open_view *v = hv__app_top(app);
    hv_grid_resize(&g, app->w, app->h);
    struct hv_view_ctx ctx = {.grid = &g, .body = hv__app_frame(app).body, .app = app};
    if (app->in_help) {
        hv_help_draw(&app->help, &g, ctx.body);
    } else {
        v->ops->draw(v->state, app->config.model, &ctx);
    }
    hv_plain_end(&g);
    hv_grid_free(&g);
}

static void draw_status(struct hv_app *app, struct hv_grid *g, struct hv_rect row)
{
    static const unsigned styles[] = {HV_STYLE_STATUS, HV_STYLE_WARNING, HV_STYLE_ERROR};
    const struct hv__open_view *v = hv__app_top(app);
    struct hv_str text = {0};
    if (app->prompt == HV__PROMPT_COMMAND) {
        hv_line_draw(&app->command, g, row, ":", HV_STYLE_FIELD);
    } else if (app->prompt == HV__PROMPT_FIND) {
        hv_line_draw(&app->find, g, row, "/", HV_STYLE_FIELD);
    } else if (app->prompt == HV__PROMPT_ASK) {
        hv_line_draw(&app->ask, g, row, app->ask_label, HV_STYLE_FIELD);
    } else if (app->prompt == HV__PROMPT_QUIT) {
        hv_grid_put_field(g, row, HV_LEFT, quit_question, HV_STYLE_WARNING);
    } else if (app->message[0]) {
        if (app->message_kind != HV_MSG_INFO) {
            hv_str_adds(&text, app->message_kind == HV_MSG_ERROR ? "error: " : "! ");
        }
        hv_str_adds(&text, app->message);
        hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), styles[app->message_kind]);
    } else if (app->in_help) {
        hv_grid_put_field(g, row, HV_LEFT, hv_help_status(&app->help), HV_STYLE_STATUS);
    } else if (v->ops->status) {
        v->ops->status(v->state, app->config.model, &text);
        hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), HV_STYLE_STATUS);
    }
    hv_str_free(&text);
}

void hv_app_draw(struct hv_app *app, struct hv_grid *g)
{
    struct hv_frame f = hv__app_frame(app);
    const struct hv__open_view *v = hv__app_top(app);
    app->dirty = false;
    g->ascii = app->config.ascii;
    g->mono = app->config.mono;
    hv_grid_begin(g, app->w, app->h);
    if (f.tiny) {
        (void)hv_grid_putf(g, 0, 0, HV_STYLE_TEXT, "%s: needs %dx%d, q quits", v->ops->title,
                           HV_FLOOR_W, HV_FLOOR_H);
        hv_grid_end(g);
        return;
    }
    draw_tabs(app, g, f.tabs);
    struct hv_view_ctx ctx = {.grid = g, .body = f.body, .app = app};
    struct hv_rect old = hv_grid_clip(g, f.body);
    v->ops->draw(v->state, app->config.model, &ctx);
    if (app->in_help) {
        hv_help_draw(&app->help, g, f.body);
    }
    if (app->prompt == HV__PROMPT_COMMAND) {
        hv_palette_draw(&app->command, app->config.describe, app->config.model, g, f.body);
    }
    hv_grid_unclip(g, old);
    int guide_y = f.body.y + f.body.h;
    draw_status(app, g, f.status);
    if (guide_y < f.status.y || (!app->message[0] && app->prompt == HV__PROMPT_NONE)) {
        draw_guide(app, g, (struct hv_rect){f.status.x, guide_y, f.status.w, 1});
    }
    draw_keybar(app, g, f.keybar);
    hv_grid_end(g);
}
