/* Form widget: labelled fields with inline editing and checks. Values are text; the caller
 * interprets them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "ui/view/widget/plain.h"

void hv_form_free(struct hv_form *f)
{
    hv_line_free(&f->line);
    f->editing = false;
}

static void check_number(const struct hv_field *d, const char *value, char *bad, size_t cap)
{
    char *end = NULL;
    errno = 0;
    double x = strtod(value, &end);
    if (end == value || *end || errno == ERANGE || !isfinite(x)) {
        (void)snprintf(bad, cap, "expected a number, found '%.40s'", value);
    } else if (d->integer && x != floor(x)) {
        (void)snprintf(bad, cap, "expected a whole number");
    } else if (!isnan(d->min) && x < d->min) {
        (void)snprintf(bad, cap, "must be at least %g", d->min);
    } else if (!isnan(d->max) && x > d->max) {
        (void)snprintf(bad, cap, "must be at most %g", d->max);
    }
}

static bool is_choice(const struct hv_field *d, const char *value)
{
    for (size_t i = 0; i < d->n_choices; i++) {
        if (strcmp(d->choices[i], value) == 0) {
            return true;
        }
    }
    return false;
}

/* Checks a value by kind, bounds, choices and the caller's check; fills `bad`. True when fine. */
static bool check_value(struct hv_form *f, size_t i_field, const char *value)
{
    struct hv_field *d = &f->fields[i_field];
    d->bad[0] = '\0';
    if (d->kind == HV_FIELD_NUMBER) {
        check_number(d, value, d->bad, sizeof d->bad);
    } else if (d->kind == HV_FIELD_CHOICE && !is_choice(d, value)) {
        (void)snprintf(d->bad, sizeof d->bad, "'%.40s' is not one of the choices", value);
    } else if (d->kind == HV_FIELD_BOOL && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0) {
        (void)snprintf(d->bad, sizeof d->bad, "expected yes or no");
    }
    if (!d->bad[0] && f->check) {
        f->check(f->check_ctx, i_field, value, d->bad, sizeof d->bad);
    }
    return !d->bad[0];
}

static bool can_focus(const struct hv_field *d)
{
    return !d->read_only && d->kind != HV_FIELD_LABEL;
}

static enum hv_form_result move(struct hv_form *f, int step)
{
    size_t i = f->cursor;
    for (size_t tries = 0; tries < f->n_fields; tries++) {
        i = step > 0 ? (i + 1) % f->n_fields : (i + f->n_fields - 1) % f->n_fields;
        if (can_focus(&f->fields[i])) {
            f->cursor = i;
            return HV_FORM_MOVED;
        }
    }
    return HV_FORM_NONE;
}

static enum hv_form_result set_value(struct hv_form *f, const char *value)
{
    struct hv_field *d = &f->fields[f->cursor];
    if (!check_value(f, f->cursor, value)) {
        return HV_FORM_REFUSED;
    }
    (void)snprintf(d->value, sizeof d->value, "%s", value);
    return HV_FORM_CHANGED;
}

static enum hv_form_result cycle(struct hv_form *f, int step)
{
    struct hv_field *d = &f->fields[f->cursor];
    if (d->kind == HV_FIELD_BOOL) {
        return set_value(f, strcmp(d->value, "yes") == 0 ? "no" : "yes");
    }
    if (d->n_choices == 0) {
        return HV_FORM_NONE;
    }
    size_t i = 0;
    while (i < d->n_choices && strcmp(d->choices[i], d->value) != 0) {
        i++;
    }
    if (i == d->n_choices) {
        i = step > 0 ? d->n_choices - 1 : 0;
    }
    i = step > 0 ? (i + 1) % d->n_choices : (i + d->n_choices - 1) % d->n_choices;
    return set_value(f, d->choices[i]);
}

static enum hv_form_result begin(struct hv_form *f, const char *start)
{
    struct hv_field *d = &f->fields[f->cursor];
    (void)snprintf(f->before, sizeof f->before, "%s", d->value);
    hv_line_set(&f->line, start);
    f->editing = true;
    f->fresh = start[0] != '\0';
    (void)check_value(f, f->cursor, start);
    return HV_FORM_MOVED;
}

/* The value stays until the first key: a character replaces it, any other key keeps it. */
static void touch(struct hv_form *f, bool replaces)
{
    if (f->fresh && replaces) {
        hv_line_set(&f->line, "");
    }
    f->fresh = false;
}

static enum hv_form_result edit_key(struct hv_form *f, struct hv_key k)
{
    bool tab = k.code == HV_KEY_TAB;
    touch(f, k.code == HV_KEY_CHAR && k.mods == 0);
    enum hv_edit e = tab ? HV_EDIT_ACCEPT : hv_line_key(&f->line, k);
    const char *text = hv_str_cstr(&f->line.text);
    if (e == HV_EDIT_CANCEL) {
        f->editing = false;
        (void)check_value(f, f->cursor, f->before);
        return HV_FORM_MOVED;
    }
    if (e != HV_EDIT_ACCEPT) {
        (void)check_value(f, f->cursor, text);
        return HV_FORM_MOVED;
    }
    if (strlen(text) >= sizeof f->fields[0].value) {
        (void)snprintf(f->fields[f->cursor].bad, sizeof f->fields[0].bad, "longer than %zu bytes",
                       sizeof f->fields[0].value - 1);
        return HV_FORM_REFUSED;
    }
    enum hv_form_result r = set_value(f, text);
    if (r == HV_FORM_CHANGED) {
        f->editing = false;
    }
    return r;
}

/* A printable key outside a field; j, k, e, v are commands there. */
static enum hv_form_result char_key(struct hv_form *f, struct hv_key k)
{
    const struct hv_field *d = &f->fields[f->cursor];
    bool pick = d->kind == HV_FIELD_CHOICE || d->kind == HV_FIELD_BOOL;
    if (k.mods) {
        return HV_FORM_NONE;
    }
    if (k.cp == 'j' || k.cp == 'k') {
        return move(f, k.cp == 'j' ? 1 : -1);
    }
    if (pick && (k.cp == ' ' || k.cp == 'v' || k.cp == 'l' || k.cp == 'h')) {
        return cycle(f, k.cp == 'h' ? -1 : 1);
    }
    if (pick) {
        return HV_FORM_NONE;
    }
    if (k.cp == 'e' || k.cp == '=') {
        return begin(f, d->value);
    }
    if (d->kind == HV_FIELD_NUMBER && k.cp < 128 && strchr("0123456789.-", (int)k.cp) && k.cp) {
        (void)begin(f, "");
        return edit_key(f, k);
    }
    return HV_FORM_NONE;
}

enum hv_form_result hv_form_key(struct hv_form *f, struct hv_key k)
{
    if (f->n_fields == 0) {
        return k.code == HV_KEY_ESC ? HV_FORM_CLOSE : HV_FORM_NONE;
    }
    if (f->editing) {
        return edit_key(f, k);
    }
    if (k.code == HV_KEY_ESC) {
        return HV_FORM_CLOSE;
    }
    if (k.code == HV_KEY_UP || k.code == HV_KEY_DOWN || k.code == HV_KEY_TAB) {
        return move(f, k.code == HV_KEY_UP || (k.mods & HV_MOD_SHIFT) ? -1 : 1);
    }
    const struct hv_field *d = &f->fields[f->cursor];
    if (!can_focus(d)) {
        return HV_FORM_NONE;
    }
    bool pick = d->kind == HV_FIELD_CHOICE || d->kind == HV_FIELD_BOOL;
    if (pick && (k.code == HV_KEY_LEFT || k.code == HV_KEY_RIGHT || k.code == HV_KEY_ENTER)) {
        return cycle(f, k.code == HV_KEY_LEFT ? -1 : 1);
    }
    if (k.code == HV_KEY_ENTER) {
        return begin(f, d->value);
    }
    return k.code == HV_KEY_CHAR ? char_key(f, k) : HV_FORM_NONE;
}

enum hv_form_result hv_form_paste(struct hv_form *f, const char *text)
{
    if (!f->editing) {
        return HV_FORM_NONE;
    }
    touch(f, true);
    (void)hv_line_paste(&f->line, text);
    (void)check_value(f, f->cursor, hv_str_cstr(&f->line.text));
    return HV_FORM_MOVED;
}

const struct hv_key_hint *hv_form_hints(const struct hv_form *f)
{
    static const struct hv_key_hint fresh[] = {{"Enter", "Accept"},
                                               {"Tab", "Accept, next"},
                                               {"End", "Go on"},
                                               {"Esc", "Keep the old"},
                                               {NULL, NULL}};
    static const struct hv_key_hint typing[] = {{"Enter", "Accept"},
                                                {"Tab", "Accept, next"},
                                                {"^U", "Clear"},
                                                {"Esc", "Keep the old"},
                                                {NULL, NULL}};
    return !f->editing ? NULL : f->fresh ? fresh : typing;
}

static int label_width(const struct hv_form *f, int room)
{
    int w = 0;
    for (size_t i = 0; i < f->n_fields; i++) {
        int n = f->fields[i].kind == HV_FIELD_LABEL ? 0 : hv_text_width(f->fields[i].name);
        w = n > w ? n : w;
    }
    return w < room / 2 ? w : room / 2;
}

static size_t form_top(const struct hv_form *f, int height)
{
    size_t h = height > 0 ? (size_t)height : 1, top = f->top;
    if (top > f->cursor) {
        top = f->cursor;
    }
    return f->cursor >= top + h ? f->cursor - h + 1 : top;
}

/* The text below the fields: the error of the field in focus, else its help. */
static const char *words_below(const struct hv_form *f)
{
    const struct hv_field *d = f->cursor < f->n_fields ? &f->fields[f->cursor] : NULL;
    return !d ? "" : d->bad[0] ? d->bad : d->help ? d->help : "";
}

/* Rows for fields: the text below them has up to a third, one to three rows, so that fields do not
 * move where it is short. */
static int rows_of(const struct hv_form *f, struct hv_rect r)
{
    if (r.h <= 2) {
        return r.h;
    }
    int most = r.h / 3 < 3 ? r.h / 3 : 3, words = hv_words_rows(words_below(f), r.w, most);
    return r.h - (words > 1 ? words : 1);
}

static void draw_value(const struct hv_form *f, const struct hv_field *d, struct hv_grid *g,
                       struct hv_rect at, bool focus)
{
    unsigned style = d->bad[0]      ? HV_STYLE_FIELD_BAD
                     : d->read_only ? HV_STYLE_DIM
                     : focus        ? HV_STYLE_FIELD_FOCUS
                                    : HV_STYLE_FIELD;
    if (focus && f->editing) {
        hv_line_draw(&f->line, g, at, "", f->fresh ? HV_STYLE_SELECTED : style);
        return;
    }
    const char *value = d->mixed && d->value[0] == '\0' ? "mixed" : d->value;
    if (d->kind == HV_FIELD_CHOICE && at.w > 4 && !d->read_only) {
        hv_grid_put_field(g, (struct hv_rect){at.x, at.y, at.w - 2, 1}, HV_LEFT, value, style);
        (void)hv_grid_put(g, at.x + at.w - 2, at.y, 2, g->ascii ? " v" : " ▾", style);
    } else {
        hv_grid_put_field(g, at, HV_LEFT, value, style);
    }
    if (focus) {
        hv_grid_cursor(g, at.x, at.y);
    }
}

static void draw_field(const struct hv_form *f, size_t i, struct hv_grid *g, struct hv_rect row,
                       int label_w, bool focused)
{
    const struct hv_field *d = &f->fields[i];
    bool focus = focused && i == f->cursor;
    if (d->kind == HV_FIELD_LABEL) {
        (void)hv_grid_put_user(g, row.x, row.y, row.w, d->name, HV_STYLE_TITLE);
        return;
    }
    hv_grid_put_field(g, (struct hv_rect){row.x + 1, row.y, label_w, 1}, HV_LEFT, d->name,
                      d->read_only ? HV_STYLE_DIM
                      : focus      ? HV_STYLE_TITLE
                                   : HV_STYLE_TEXT);
    (void)hv_grid_put(g, row.x, row.y, 1,
                      d->bad[0] ? "!"
                      : focus   ? ">"
                                : " ",
                      d->bad[0] ? HV_STYLE_WARNING : HV_STYLE_TEXT);
    int unit_w = d->unit ? hv_text_width(d->unit) + 1 : 0, x = row.x + label_w + 2;
    int w = row.w - label_w - 4 - unit_w;
    w += d->read_only && !d->unit; /* no bracket follows */
    w = w > 32 ? 32 : w;
    if (w < 1) {
        return;
    }
    (void)hv_grid_put(g, x, row.y, 1, d->read_only ? " " : "[", HV_STYLE_DIM);
    draw_value(f, d, g, (struct hv_rect){x + 1, row.y, w, 1}, focus);
    (void)hv_grid_put(g, x + 1 + w, row.y, 1, d->read_only ? " " : "]", HV_STYLE_DIM);
    if (d->unit) {
        (void)hv_grid_put_user(g, x + w + 3, row.y, -1, d->unit, HV_STYLE_DIM);
    }
}

/* Hash of the content drawn by draw_field; 0 while the field is edited. */
static uint64_t field_version(const struct hv_form *f, size_t i, int label_w, bool focused)
{
    const struct hv_field *d = &f->fields[i];
    bool focus = focused && i == f->cursor;
    const int of[] = {label_w, focus, (int)d->kind, d->read_only, d->bad[0] != '\0', d->mixed};
    if (focus && f->editing) {
        return 0;
    }
    uint64_t h = hv_hash(hv_hash(HV_HASH_START, "field", 5), of, sizeof of);
    h = hv_hash(h, d->name, strlen(d->name) + 1);
    h = hv_hash(h, d->value, strlen(d->value) + 1);
    return d->unit ? hv_hash(h, d->unit, strlen(d->unit)) : h;
}

void hv_form_draw(const struct hv_form *f, struct hv_grid *g, struct hv_rect r, bool focused)
{
    if (g->plain) {
        hv_plain_form(g, f);
        return;
    }
    struct hv_rect old = hv_grid_clip(g, r);
    int label_w = label_width(f, r.w), height = rows_of(f, r);
    size_t top = form_top(f, height);
    for (size_t i = top; i < f->n_fields && (int)(i - top) < height; i++) {
        struct hv_rect row = {r.x, r.y + (int)(i - top), r.w, 1};
        if (hv_grid_part(g, row, field_version(f, i, label_w, focused))) {
            continue;
        }
        draw_field(f, i, g, row, label_w, focused);
        hv_grid_part_end(g);
    }
    if (height < r.h && f->cursor < f->n_fields) {
        (void)hv_words_draw(g, (struct hv_rect){r.x, r.y + height, r.w, r.h - height},
                            words_below(f),
                            f->fields[f->cursor].bad[0] ? HV_STYLE_WARNING : HV_STYLE_DIM);
    }
    hv_grid_unclip(g, old);
    hv_more_draw(g, r, f->n_fields + (size_t)(r.h - height), top);
}

size_t hv_form_hit(const struct hv_form *f, struct hv_rect r, int x, int y)
{
    int height = rows_of(f, r);
    if (!hv_rect_has((struct hv_rect){r.x, r.y, r.w, height}, x, y)) {
        return SIZE_MAX;
    }
    size_t i = form_top(f, height) + (size_t)(y - r.y);
    return i < f->n_fields && can_focus(&f->fields[i]) ? i : SIZE_MAX;
}
