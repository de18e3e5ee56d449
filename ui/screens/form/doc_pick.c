/* The list of choices of a form: typed words narrow it, in any order, Enter takes one. Writes
 * nothing itself. */
#include <string.h>

#include "solver/base/units.h"
#include "ui/command/typed.h"
#include "ui/screens/form/doc_form.h"

enum { BACKSPACE_CP = 127, FIRST_PRINTABLE = 32 };

static const struct hv_field *field_of(const struct hv_doc_form *f)
{
    return &f->fields[f->form.cursor];
}

/* The n-th choice that has the typed text, or NULL. */
static const char *shown(const struct hv_doc_form *f, size_t n)
{
    const struct hv_field *d = field_of(f);
    for (size_t i = 0; i < d->n_choices; i++) {
        if (hv_typed_words_in(d->choices[i], f->pick.word) && n-- == 0) {
            return d->choices[i];
        }
    }
    return NULL;
}

static size_t n_shown(const struct hv_doc_form *f)
{
    const struct hv_field *d = field_of(f);
    size_t n = 0;
    for (size_t i = 0; i < d->n_choices; i++) {
        n += hv_typed_words_in(d->choices[i], f->pick.word);
    }
    return n;
}

void hv_doc_pick_open(struct hv_doc_form *f)
{
    const struct hv_field *d = field_of(f);
    f->pick = (struct hv_doc_pick){.open = true};
    for (size_t i = 0; i < d->n_choices; i++) {
        if (strcmp(d->choices[i], d->value) == 0) {
            f->pick.cursor = i;
        }
    }
}

/* What is said of a choice, at the right edge; parts that there is no room for are left out whole.
 */
static void draw_description(const struct hv_doc_form *f, const struct hv_session *s,
                             const char *choice, struct hv_grid *g, struct hv_rect row,
                             unsigned style)
{
    struct hv_str text = {0};
    int room = row.w - hv_text_width(choice) - 4;
    f->describe(f->ctx, s, choice, &text);
    while (hv_text_width(hv_str_cstr(&text)) > room && text.n > 0) {
        char *last = NULL;
        for (char *at = strstr(text.p, "  "); at != NULL; at = strstr(at + 2, "  ")) {
            last = at;
        }
        text.n = last != NULL ? (size_t)(last - text.p) : 0;
        text.p[text.n] = '\0';
    }
    int w = hv_text_width(hv_str_cstr(&text));
    (void)hv_grid_put_user(g, row.x + row.w - w, row.y, w, hv_str_cstr(&text), style);
    hv_str_free(&text);
}

void hv_doc_pick_draw(const struct hv_doc_form *f, const struct hv_session *s, struct hv_grid *g,
                      struct hv_rect r)
{
    struct hv_rect old = hv_grid_clip(g, r);
    struct hv_str text = {0};
    size_t n = n_shown(f), height = r.h > 1 ? (size_t)r.h - 1 : 1;
    size_t top = f->pick.cursor >= height ? f->pick.cursor - height + 1 : 0;
    hv_str_addf(&text, "%s: %s", field_of(f)->name, f->pick.word);
    hv_grid_put_field(g, (struct hv_rect){r.x, r.y, r.w, 1}, HV_LEFT, hv_str_cstr(&text),
                      HV_STYLE_FIELD_FOCUS);
    int at = hv_text_width(hv_str_cstr(&text));
    if (f->pick.word[0] == '\0' && r.w - at > 4) {
        (void)hv_grid_put(g, r.x + at, r.y, r.w - at, "type words to narrow", HV_STYLE_FIELD_FOCUS);
    }
    hv_grid_cursor(g, r.x + at, r.y);
    for (size_t i = top; i < n && i - top < height; i++) {
        const char *choice = shown(f, i);
        unsigned style = i == f->pick.cursor ? HV_STYLE_SELECTED : HV_STYLE_TEXT;
        struct hv_rect row = {r.x, r.y + 1 + (int)(i - top), r.w, 1};
        hv_str_clear(&text);
        hv_str_addf(&text, "%s%s", i == f->pick.cursor ? "> " : "  ", choice);
        hv_grid_put_field(g, row, HV_LEFT, hv_str_cstr(&text), style);
        if (f->describe != NULL) {
            draw_description(f, s, choice, g, row, style);
        }
    }
    if (n == 0) {
        (void)hv_grid_put(g, r.x + 2, r.y + 1, r.w - 2, "none; Backspace widens, Esc closes",
                          HV_STYLE_DIM);
    }
    hv_str_free(&text);
    hv_grid_unclip(g, old);
}

static void type(struct hv_doc_form *f, struct hv_key k)
{
    size_t n = strlen(f->pick.word);
    if (k.code == HV_KEY_BACKSPACE && n > 0) {
        f->pick.word[n - 1] = '\0';
        f->pick.cursor = 0;
    } else if (k.code == HV_KEY_CHAR && k.mods == 0 && k.cp >= FIRST_PRINTABLE &&
               k.cp < BACKSPACE_CP && n + 1 < sizeof f->pick.word) {
        f->pick.word[n] = (char)k.cp;
        f->pick.word[n + 1] = '\0';
        f->pick.cursor = 0;
    }
}

const char *hv_doc_pick_key(struct hv_doc_form *f, struct hv_key k)
{
    enum { PAGE = 8 };
    size_t n = n_shown(f);
    size_t last = n > 0 ? n - 1 : 0, c = f->pick.cursor;
    if (k.code == HV_KEY_ENTER) {
        const char *picked = shown(f, c);
        f->pick.open = picked == NULL;
        return picked;
    }
    if (k.code == HV_KEY_ESC) {
        f->pick.open = false;
    } else if (k.code == HV_KEY_UP || k.code == HV_KEY_PGUP) {
        size_t step = k.code == HV_KEY_UP ? 1 : PAGE;
        f->pick.cursor = c > step ? c - step : 0;
    } else if (k.code == HV_KEY_DOWN || k.code == HV_KEY_PGDN) {
        size_t step = k.code == HV_KEY_DOWN ? 1 : PAGE;
        f->pick.cursor = c + step < last ? c + step : last;
    } else if (k.code == HV_KEY_HOME || k.code == HV_KEY_END) {
        f->pick.cursor = k.code == HV_KEY_HOME ? 0 : last;
    } else {
        type(f, k);
    }
    return NULL;
}
