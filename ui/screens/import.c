/** Report of an import before it changes anything: understood, guessed and ignored values. Shown on
 * top of the other screens; Enter applies it as one undo step, Esc discards it. */
#include "ui/session/import/import.h"

#include <stdio.h>
#include <string.h>

#include "solver/base/vec.h"
#include "solver/inventory/device.h"
#include "ui/screens/import_cards.h"
#include "ui/screens/screens.h"

/** State of the screen. */
struct state {
    struct hv_import *im;
    char label[160];
    enum hv_import_way way;
    bool choice;                 /**< there is a cluster: replace, add or update */
    int top;                     /**< first line shown */
    struct hv_str words;         /**< what it was read from, with the user's choices of kinds */
    size_t card;                 /**< the guessed card that keys change */
    enum hv_precision precision; /**< of the job: peaks are said in it */
};

/** A line of the report at a width. */
struct line {
    size_t at, n; /**< bytes of the text */
    int indent;
    unsigned style;
};

/** All lines: the texts one after the other, wrapped. */
struct lines {
    struct hv_str text;
    HV_VEC(struct line) items;
};

static void add_line(struct lines *l, const char *text, int indent, int w, unsigned style)
{
    do {
        int room = w - indent > 8 ? w - indent : 8;
        size_t n = hv_text_wrap(text, room);
        n = n > 0 ? n : strlen(text);
        hv_vec_push(&l->items, (struct line){l->text.n, n, indent, style});
        hv_str_add(&l->text, text, n);
        hv_str_addc(&l->text, '\0');
        text += n;
        text += strspn(text, " ");
        indent += indent < 4 ? 2 : 0;
    } while (*text != '\0');
}

static void add_parts(struct lines *l, const struct hv_import *im, int w)
{
    struct hv_str parts = {0};
    hv_session_import_parts(im, &parts);
    for (char *s = parts.p; s != NULL && *s != '\0';) {
        char *end = s + strcspn(s, "\n");
        bool more = *end == '\n';
        *end = '\0';
        add_line(l, s, 0, w, HV_STYLE_TITLE);
        s = end + more;
    }
    hv_str_free(&parts);
}

static void add_group(struct lines *l, const struct hv_import *im, enum hv_import_level level,
                      int w)
{
    static const char *const heads[HV_IMPORT_LEVEL_N] = {"Understood", "Guessed: please check",
                                                         "Ignored"};
    static const unsigned styles[HV_IMPORT_LEVEL_N] = {HV_STYLE_TEXT, HV_STYLE_WARNING,
                                                       HV_STYLE_DIM};
    size_t n, shown = 0;
    bool several = hv_import_format_of(im, 1) != NULL;
    const struct hv_import_note *notes = hv_import_notes(im, &n);
    for (size_t i = 0; i < n; i++) {
        struct hv_str text = {0};
        if (notes[i].level != level) {
            continue;
        }
        if (shown++ == 0) {
            add_line(l, heads[level], 0, w, HV_STYLE_HEADER);
        }
        hv_import_note_text(&notes[i], several, &text);
        add_line(l, hv_str_cstr(&text), 2, w, styles[level]);
        hv_str_free(&text);
    }
}

/** The kinds that the card at the cursor may be, the one taken marked. */
static void add_candidates(struct lines *l, const struct hv_import_choice *c, enum hv_precision p,
                           int w)
{
    int width = 0;
    for (size_t i = 0; i < c->n; i++) {
        int own = hv_text_width(c->candidates[i]->name);
        width = own > width ? own : width;
    }
    for (size_t i = 0; i < c->n; i++) {
        struct hv_str text = {0};
        hv_str_adds(&text, i == c->taken ? "> " : "  ");
        hv_import_kind_text(c->candidates[i], p, width, &text);
        add_line(l, hv_str_cstr(&text), 6, w, i == c->taken ? HV_STYLE_MARKED : HV_STYLE_DIM);
        hv_str_free(&text);
    }
}

/** One line per card whose name may mean several kinds: the kind taken and the number of others;
 * the card at the cursor has them below it. */
static void add_cards(struct lines *l, const struct state *v, enum hv_precision p, int w)
{
    size_t n;
    const struct hv_import_choice *all = hv_import_choices(v->im, &n);
    if (n > 0) {
        add_line(l, "Guessed cards (d, e: kind; c: next)", 0, w, HV_STYLE_HEADER);
    }
    for (size_t i = 0; i < n; i++) {
        struct hv_str text = {0};
        hv_str_addf(&text, "%s %s: %s (%zu of %zu)", i == v->card ? ">" : " ", all[i].written,
                    all[i].candidates[all[i].taken]->name, all[i].taken + 1, all[i].n);
        add_line(l, hv_str_cstr(&text), 2, w, i == v->card ? HV_STYLE_SELECTED : HV_STYLE_TEXT);
        hv_str_free(&text);
        if (i == v->card) {
            add_candidates(l, &all[i], p, w);
        }
    }
}

static struct lines make_lines(const struct state *v, int w)
{
    struct lines l = {0};
    add_parts(&l, v->im, w);
    add_cards(&l, v, v->precision, w);
    /* parts that need a review come first */
    add_group(&l, v->im, HV_IMPORT_GUESSED, w);
    add_group(&l, v->im, HV_IMPORT_UNDERSTOOD, w);
    add_group(&l, v->im, HV_IMPORT_IGNORED, w);
    return l;
}

static void free_lines(struct lines *l)
{
    hv_str_free(&l->text);
    hv_vec_free(&l->items);
}

/** Rows for the report: the frame and the line of choices are not among them. */
static int height_of(const struct state *v, struct hv_rect body)
{
    int h = body.h - 2 - v->choice;
    return h > 1 ? h : 1;
}

static int last_top(const struct state *v, struct hv_rect body)
{
    struct lines l = make_lines(v, hv_rect_inner(body).w - 1);
    int most = (int)l.items.n - height_of(v, body);
    free_lines(&l);
    return most > 0 ? most : 0;
}

static void draw_choice(const struct state *v, struct hv_grid *g, struct hv_rect row)
{
    static const char more[] = "Tab: other";
    int x = row.x;
    for (int w = 0; w < HV_IMPORT_WAY_N; w++) {
        const char *text = hv_import_way_text((enum hv_import_way)w);
        bool is = v->way == (enum hv_import_way)w;
        if (!is && row.w < 64) {
            continue; /* narrow: the one that is chosen */
        }
        struct hv_str s = {0};
        hv_str_addf(&s, "%s%s", is ? "> " : "  ", text);
        x += hv_grid_put(g, x, row.y, row.x + row.w - x, hv_str_cstr(&s),
                         is ? HV_STYLE_SELECTED : HV_STYLE_TEXT);
        x += 2;
        hv_str_free(&s);
    }
    if (x + hv_text_width(more) <= row.x + row.w) {
        (void)hv_grid_put(g, x, row.y, -1, more, HV_STYLE_DIM);
    }
}

static void import_draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    const struct state *v = state;
    struct hv_rect in = hv_rect_inner(ctx->body);
    struct hv_grid *g = ctx->grid;
    (void)model;
    if (v->im == NULL) {
        return;
    }
    hv_grid_box(g, ctx->body, v->label, true, HV_STYLE_FRAME_FOCUS);
    struct hv_rect old = hv_grid_clip(g, in);
    struct lines l = make_lines(v, in.w - 1);
    int h = height_of(v, ctx->body);
    for (int i = 0; i < h && (size_t)(v->top + i) < l.items.n; i++) {
        const struct line *x = &l.items.items[v->top + i];
        (void)hv_grid_put_user(g, in.x + 1 + x->indent, in.y + i, in.w - 1 - x->indent,
                               l.text.p + x->at, x->style);
    }
    free_lines(&l);
    if (v->choice) {
        draw_choice(v, g, (struct hv_rect){in.x + 1, in.y + h, in.w - 1, 1});
    }
    hv_grid_unclip(g, old);
}

static unsigned accept(struct state *v, struct hv_app *app)
{
    struct hv_err err = {0};
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    if (hv_session_import(s, v->im, v->way, v->label, &err) != HV_OK) {
        hv_ui_error(app, &err);
        return HV_APP_HANDLED | HV_APP_REDRAW;
    }
    hv_app_message(app, HV_MSG_INFO, "%s: done; u undoes the import", v->label);
    return HV_APP_HANDLED | HV_APP_REDRAW | HV_APP_CLOSE;
}

static unsigned scroll(struct state *v, struct hv_app *app, int by)
{
    int most = last_top(v, hv_app_body(app));
    long top = (long)v->top + by;
    v->top = top < 0 ? 0 : top > most ? most : (int)top;
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned choose(struct state *v, int step)
{
    if (v->choice) {
        v->way = (enum hv_import_way)(((int)v->way + step + HV_IMPORT_WAY_N) % HV_IMPORT_WAY_N);
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

/** The guessed card at the cursor; NULL with a message where none is guessed. */
static const struct hv_import_choice *card_at(const struct state *v, struct hv_app *app)
{
    size_t n;
    const struct hv_import_choice *all = hv_import_choices(v->im, &n);
    if (v->card >= n) {
        hv_app_message(app, HV_MSG_INFO, "no card is guessed");
        return NULL;
    }
    return &all[v->card];
}

/** Reads the files again with another kind for a guessed card. */
static void take_kind(struct state *v, struct hv_app *app, const char *written, const char *kind)
{
    struct hv_str words = {0};
    struct hv_import *im = NULL;
    struct hv_err err = {0};
    hv_str_adds(&words, hv_str_cstr(&v->words));
    hv_import_add_kind(&words, written, kind);
    if (hv_session_import_read(hv_ui_session(hv_app_model(app)), hv_str_cstr(&words), &im, &err) ==
        HV_OK) {
        hv_import_free(v->im);
        v->im = im;
        hv_str_clear(&v->words);
        hv_str_adds(&v->words, hv_str_cstr(&words));
    } else {
        hv_ui_error(app, &err);
    }
    hv_str_free(&words);
}

static unsigned choose_kind(struct state *v, struct hv_app *app, int step)
{
    const struct hv_import_choice *c = card_at(v, app);
    if (c != NULL) {
        size_t to = (c->taken + c->n + (step > 0 ? 1 : c->n - 1)) % c->n;
        take_kind(v, app, c->written, c->candidates[to]->name);
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned answer_kind(void *ctx, struct hv_app *app, const char *words)
{
    struct state *v = ctx;
    const struct hv_import_choice *c = card_at(v, app);
    const struct hv_device_kind *kind = NULL;
    struct hv_err err = {0};
    if (c == NULL || words[0] == '\0') {
        return HV_APP_REDRAW;
    }
    if (hv_import_kind_named(hv_ui_session(hv_app_model(app)), c, words, &kind, &err) == HV_OK) {
        take_kind(v, app, c->written, kind->name);
    } else {
        hv_ui_error(app, &err);
    }
    return HV_APP_REDRAW;
}

static unsigned ask_kind(struct state *v, struct hv_app *app)
{
    const struct hv_import_choice *c = card_at(v, app);
    if (c != NULL) {
        char label[96];
        (void)snprintf(label, sizeof label, "%.40s is (words such as 80 sxm): ", c->written);
        hv_app_ask(app, label, "", answer_kind, v);
    }
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned next_card(struct state *v)
{
    size_t n;
    (void)hv_import_choices(v->im, &n);
    v->card = v->card + 1 < n ? v->card + 1 : 0;
    return HV_APP_HANDLED | HV_APP_REDRAW;
}

static unsigned import_action(void *state, struct hv_app *app, enum hv_action a)
{
    enum { ALL = 1000000 };
    struct state *v = state;
    int page = height_of(v, hv_app_body(app));
    const struct {
        enum hv_action action;
        int by;
    } moves[] = {{HV_ACT_UP, -1},
                 {HV_ACT_DOWN, 1},
                 {HV_ACT_PAGE_UP, -page},
                 {HV_ACT_PAGE_DOWN, page},
                 {HV_ACT_HALF_UP, -page / 2},
                 {HV_ACT_HALF_DOWN, page / 2},
                 {HV_ACT_TOP, -ALL},
                 {HV_ACT_BOTTOM, ALL}};
    for (size_t i = 0; i < HV_COUNT(moves); i++) {
        if (a == moves[i].action) {
            return scroll(v, app, moves[i].by);
        }
    }
    bool back = a == HV_ACT_PANEL_PREV || a == HV_ACT_LEFT;
    if (back || a == HV_ACT_IMPORT_WAY || a == HV_ACT_RIGHT) {
        return choose(v, back ? -1 : 1);
    }
    if (a == HV_ACT_IMPORT_KIND_NEXT || a == HV_ACT_IMPORT_KIND_PREV) {
        return choose_kind(v, app, a == HV_ACT_IMPORT_KIND_NEXT ? 1 : -1);
    }
    if (a == HV_ACT_EDIT) {
        return ask_kind(v, app);
    }
    if (a == HV_ACT_IMPORT_CARD) {
        return next_card(v);
    }
    if (a == HV_ACT_CANCEL || a == HV_ACT_CLOSE) {
        hv_app_message(app, HV_MSG_INFO, "nothing was changed");
        return HV_APP_HANDLED | HV_APP_REDRAW | HV_APP_CLOSE;
    }
    return a == HV_ACT_IMPORT_ACCEPT ? accept(v, app) : 0;
}

static unsigned import_event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    enum { WHEEL = 3 };
    bool wheel = ev->type == HV_EV_MOUSE &&
                 (ev->mouse == HV_MOUSE_WHEEL_UP || ev->mouse == HV_MOUSE_WHEEL_DOWN);
    return wheel ? scroll(state, app, ev->mouse == HV_MOUSE_WHEEL_UP ? -WHEEL : WHEEL) : 0;
}

static void import_status(const void *state, const void *model, struct hv_str *out)
{
    const struct state *v = state;
    (void)model;
    hv_str_adds(out, v->choice ? "Enter accepts the import, Tab changes the mode, Esc cancels"
                               : "Enter accepts the import, Esc cancels");
}

static void import_open(void *state, struct hv_app *app)
{
    struct state *v = state;
    struct hv_ui *ui = hv_app_model(app);
    v->im = ui->import;
    ui->import = NULL;
    if (v->im != NULL) {
        (void)snprintf(v->label, sizeof v->label, "import %.140s", ui->import_words);
        hv_str_adds(&v->words, ui->import_words);
        v->precision = hv_session_job(ui->session)->job.precision;
        v->way = hv_import_way_usual(v->im);
        v->choice = hv_import_cluster(v->im) != NULL && !hv_import_cluster_is_guess(v->im);
    }
}

static void import_close(void *state, struct hv_app *app)
{
    struct state *v = state;
    (void)app;
    hv_import_free(v->im);
    hv_str_free(&v->words);
    v->im = NULL;
}

static const enum hv_action keybar[] = {
    HV_ACT_IMPORT_ACCEPT, HV_ACT_IMPORT_WAY, HV_ACT_IMPORT_KIND_NEXT, HV_ACT_EDIT,
    HV_ACT_CANCEL,        HV_ACT_DOWN,       HV_ACT_PAGE_DOWN,        HV_ACT_NONE};

const struct hv_view_ops hv_screen_import = {
    .name = "import",
    .title = "Import",
    .short_title = "Import",
    .state_size = sizeof(struct state),
    .keybar = keybar,
    .help =
        "The result of reading files of other programs. Guessed figures are listed first: check "
        "them.\nA card whose name may mean several kinds is listed with the kind taken: c goes to "
        "the next such card, d and D choose the next and the previous kind, e one by words of its "
        "name, also one that was not guessed.\nEnter accepts "
        "everything as one change that u undoes; Esc changes nothing.",
    .open = import_open,
    .close = import_close,
    .draw = import_draw,
    .action = import_action,
    .event = import_event,
    .status = import_status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms,
};
