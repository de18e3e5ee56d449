/* Line editor: one line of UTF-8 with undo, history and completion. */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "ui/view/widget/widgets.h"

#define UNDO_MAX    200
#define HISTORY_MAX 500

static void drop_completion(struct hv_line *l)
{
    free(l->complete_base);
    l->complete_base = NULL;
}

static void clear_undo(struct hv_line *l)
{
    for (size_t i = 0; i < l->undo.n; i++) {
        free(l->undo.items[i]);
    }
    l->undo.n = 0;
}

void hv_line_free(struct hv_line *l)
{
    clear_undo(l);
    hv_vec_free(&l->undo);
    for (size_t i = 0; i < l->history.n; i++) {
        free(l->history.items[i]);
    }
    hv_vec_free(&l->history);
    free(l->draft);
    drop_completion(l);
    hv_str_free(&l->text);
    *l = (struct hv_line){0};
}

static void put_text(struct hv_line *l, const char *text)
{
    char *copy = hv_xstrdup(text);
    hv_str_clear(&l->text);
    hv_str_adds(&l->text, copy);
    l->at = l->text.n;
    free(copy);
}

void hv_line_set(struct hv_line *l, const char *text)
{
    put_text(l, text);
    clear_undo(l);
    drop_completion(l);
    free(l->draft);
    l->draft = NULL;
    l->i_history = l->history.n;
}

static void remember(struct hv_line *l)
{
    if (l->undo.n == UNDO_MAX) {
        free(l->undo.items[0]);
        memmove(l->undo.items, l->undo.items + 1, (UNDO_MAX - 1) * sizeof *l->undo.items);
        l->undo.n--;
    }
    hv_vec_push(&l->undo, hv_xstrdup(hv_str_cstr(&l->text)));
}

static enum hv_edit undo(struct hv_line *l)
{
    if (l->undo.n == 0) {
        return HV_EDIT_NONE;
    }
    char *text = l->undo.items[--l->undo.n];
    put_text(l, text);
    free(text);
    return HV_EDIT_CHANGED;
}

/* Replaces bytes [from, to) by n bytes of `with`. */
static enum hv_edit splice(struct hv_line *l, size_t from, size_t to, const char *with, size_t n)
{
    if (l->text.n - (to - from) + n > HV_LINE_MAX || (from == to && n == 0)) {
        return HV_EDIT_NONE;
    }
    remember(l);
    struct hv_str next = {0};
    hv_str_add(&next, hv_str_cstr(&l->text), from);
    hv_str_add(&next, with, n);
    hv_str_add(&next, hv_str_cstr(&l->text) + to, l->text.n - to);
    hv_str_free(&l->text);
    l->text = next;
    l->at = from + n;
    return HV_EDIT_CHANGED;
}

static enum hv_edit insert_cp(struct hv_line *l, uint32_t cp)
{
    utf8proc_uint8_t utf8[4];
    utf8proc_ssize_t n = cp >= 0x20 && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0)
                             ? utf8proc_encode_char((utf8proc_int32_t)cp, utf8)
                             : 0;
    return n > 0 ? splice(l, l->at, l->at, (const char *)utf8, (size_t)n) : HV_EDIT_NONE;
}

static size_t word_start(const struct hv_line *l)
{
    const char *s = hv_str_cstr(&l->text);
    size_t i = l->at;
    while (i > 0 && s[i - 1] == ' ') {
        i--;
    }
    while (i > 0 && s[i - 1] != ' ') {
        i--;
    }
    return i;
}

static enum hv_edit show_history(struct hv_line *l, int step)
{
    if ((step < 0 && l->i_history == 0) || (step > 0 && l->i_history >= l->history.n)) {
        return HV_EDIT_NONE;
    }
    if (l->i_history >= l->history.n) {
        free(l->draft);
        l->draft = hv_xstrdup(hv_str_cstr(&l->text));
    }
    l->i_history = step < 0 ? l->i_history - 1 : l->i_history + 1;
    put_text(l, l->i_history < l->history.n ? l->history.items[l->i_history]
                : l->draft                  ? l->draft
                                            : "");
    return HV_EDIT_CHANGED;
}

static enum hv_edit complete(struct hv_line *l)
{
    struct hv_str next = {0};
    if (!l->complete) {
        return HV_EDIT_NONE;
    }
    if (!l->complete_base) {
        l->complete_base = hv_xstrdup(hv_str_cstr(&l->text));
        l->complete_base[l->at] = '\0';
        l->i_complete = 0;
        remember(l);
    }
    if (!l->complete(l->complete_ctx, l->complete_base, l->i_complete, &next)) {
        hv_str_clear(&next);
        hv_str_adds(&next, l->complete_base);
        l->i_complete = 0;
    } else {
        l->i_complete++;
    }
    put_text(l, hv_str_cstr(&next));
    hv_str_free(&next);
    return HV_EDIT_CHANGED;
}

static enum hv_edit accept(struct hv_line *l)
{
    const char *s = hv_str_cstr(&l->text);
    bool again = l->history.n > 0 && strcmp(l->history.items[l->history.n - 1], s) == 0;
    if (*s && !again) {
        if (l->history.n == HISTORY_MAX) {
            free(l->history.items[0]);
            memmove(l->history.items, l->history.items + 1,
                    (HISTORY_MAX - 1) * sizeof *l->history.items);
            l->history.n--;
        }
        hv_vec_push(&l->history, hv_xstrdup(s));
    }
    l->i_history = l->history.n;
    return HV_EDIT_ACCEPT;
}

/* Control and alt characters, as in a shell. */
static enum hv_edit control(struct hv_line *l, uint32_t cp)
{
    const char *s = hv_str_cstr(&l->text);
    if (cp == 'a') {
        l->at = 0;
    } else if (cp == 'e') {
        l->at = l->text.n;
    } else if (cp == 'b') {
        l->at = hv_text_prev(s, l->at);
    } else if (cp == 'f') {
        l->at += hv_text_next(s, l->at);
    } else if (cp == 'w') {
        return splice(l, word_start(l), l->at, "", 0);
    } else if (cp == 'k') {
        return splice(l, l->at, l->text.n, "", 0);
    } else if (cp == 'u') {
        return splice(l, 0, l->at, "", 0);
    } else if (cp == '_') {
        return undo(l);
    } else {
        return HV_EDIT_NONE;
    }
    return HV_EDIT_CHANGED;
}

/* Cursor keys and deletions. */
static enum hv_edit move(struct hv_line *l, enum hv_key_code code)
{
    const char *s = hv_str_cstr(&l->text);
    if (code == HV_KEY_LEFT) {
        l->at = hv_text_prev(s, l->at);
    } else if (code == HV_KEY_RIGHT) {
        l->at += hv_text_next(s, l->at);
    } else if (code == HV_KEY_HOME) {
        l->at = 0;
    } else if (code == HV_KEY_END) {
        l->at = l->text.n;
    } else if (code == HV_KEY_BACKSPACE) {
        return splice(l, hv_text_prev(s, l->at), l->at, "", 0);
    } else if (code == HV_KEY_DELETE) {
        return splice(l, l->at, l->at + hv_text_next(s, l->at), "", 0);
    } else if (code == HV_KEY_UP) {
        return show_history(l, -1);
    } else if (code == HV_KEY_DOWN) {
        return show_history(l, 1);
    } else {
        return HV_EDIT_NONE;
    }
    return HV_EDIT_CHANGED;
}

enum hv_edit hv_line_key(struct hv_line *l, struct hv_key k)
{
    if (k.code == HV_KEY_TAB) {
        return complete(l);
    }
    drop_completion(l);
    if (k.code == HV_KEY_ENTER) {
        return accept(l);
    }
    if (k.code == HV_KEY_ESC) {
        return HV_EDIT_CANCEL;
    }
    if (k.code != HV_KEY_CHAR) {
        return move(l, k.code);
    }
    if (k.mods & HV_MOD_ALT) {
        return k.cp == 'u' ? undo(l) : HV_EDIT_NONE;
    }
    return k.mods & HV_MOD_CTRL ? control(l, k.cp) : insert_cp(l, k.cp);
}

enum hv_edit hv_line_paste(struct hv_line *l, const char *text)
{
    size_t room = HV_LINE_MAX - l->text.n, n = 0, at = 0, part;
    char clean[HV_LINE_MAX];
    drop_completion(l);
    for (; (part = hv_text_next(text, at)) > 0 && n + part <= room; at += part) {
        bool control = (unsigned char)text[at] < 0x20 || text[at] == 0x7f;
        memcpy(clean + n, text + at, control ? 0 : part);
        n += control ? 0 : part;
    }
    return splice(l, l->at, l->at, clean, n);
}

void hv_line_draw(const struct hv_line *l, struct hv_grid *g, struct hv_rect row,
                  const char *prefix, unsigned style)
{
    struct hv_rect old = hv_grid_clip(g, (struct hv_rect){row.x, row.y, row.w, 1});
    hv_grid_fill(g, row, ' ', style);
    int x = row.x + hv_grid_put(g, row.x, row.y, row.w, prefix, style);
    int room = row.x + row.w - x - 1;
    const char *s = hv_str_cstr(&l->text);
    size_t at = l->at <= l->text.n ? l->at : l->text.n, from = 0;
    char *left = hv_xstrdup(s);
    left[at] = '\0';
    int width = hv_text_width(left);
    while (width > room && from < at) { /* each character is measured once: a paste may be long */
        size_t next = from + hv_text_next(left, from);
        char kept = left[next];
        left[next] = '\0';
        width -= hv_text_width(left + from);
        left[next] = kept;
        from = next;
    }
    (void)hv_grid_put_user(g, x, row.y, room > 0 ? room + 1 : 0, s + from, style);
    hv_grid_cursor(g, x + width, row.y);
    free(left);
    hv_grid_unclip(g, old);
}
