/* Help overlay, built from the action table and the key map in use. */
#include "ui/view/app/help.h"

#include <stdio.h>
#include <string.h>

void hv_help_open(struct hv_help *h, const struct hv_app_config *config,
                  const struct hv_view_ops *view)
{
    h->keys = config->keys;
    h->view = view;
    h->tabs = 0;
    for (size_t i = 0; i < config->n_views; i++) {
        h->tabs |= 1u << config->views[i]->tab;
    }
    h->cursor = 0;
    hv_line_set(&h->search, "");
}

void hv_help_free(struct hv_help *h)
{
    hv_line_free(&h->search);
}

/* False for keys of screens that do not exist in this program. */
static bool leads_somewhere(const struct hv_help *h, enum hv_action a)
{
    return a < HV_ACT_SCREEN_1 || a > HV_ACT_SCREEN_8 ||
           (h->tabs >> (a - HV_ACT_SCREEN_1 + 1) & 1u) != 0;
}

/* Actions that match the search, the view's own first. Returns how many. */
static size_t matches(const struct hv_help *h, enum hv_action *out)
{
    const char *want = hv_str_cstr(&h->search.text);
    size_t n = 0;
    for (int own = 1; own >= 0; own--) {
        for (size_t i = 1; i < HV_ACT_N; i++) {
            enum hv_action a = (enum hv_action)i;
            const struct hv_action_row *row = hv_action_row(a);
            bool is_own = strcmp(row->views, "*") != 0;
            struct hv_str keys = {0};
            if (is_own != (own == 1) || !hv_action_in_view(a, h->view->name) ||
                !leads_somewhere(h, a)) {
                continue;
            }
            hv_keymap_keys_of(h->keys, h->view->name, a, &keys);
            if (keys.n > 0 &&
                (!*want || hv_text_has(row->help, want) || hv_text_has(row->name, want) ||
                 hv_text_has(hv_str_cstr(&keys), want))) {
                out[n++] = a;
            }
            hv_str_free(&keys);
        }
    }
    return n;
}

bool hv_help_key(struct hv_help *h, struct hv_key k, int height, enum hv_action *run)
{
    enum hv_action found[HV_ACT_N];
    size_t n = matches(h, found), page = height > 4 ? (size_t)height - 4 : 1;
    bool question = k.code == HV_KEY_CHAR && k.cp == '?' && !k.mods;
    if (k.code == HV_KEY_ESC || k.code == HV_KEY_F1 || question) {
        return false;
    }
    if (k.code == HV_KEY_ENTER) {
        if (h->cursor < n) {
            *run = found[h->cursor];
        }
        return false;
    }
    if (k.code == HV_KEY_UP) {
        h->cursor -= h->cursor > 0;
    } else if (k.code == HV_KEY_DOWN) {
        h->cursor += h->cursor + 1 < n;
    } else if (k.code == HV_KEY_PGUP) {
        h->cursor = h->cursor > page ? h->cursor - page : 0;
    } else if (k.code == HV_KEY_PGDN) {
        h->cursor = h->cursor + page < n ? h->cursor + page : n > 0 ? n - 1 : 0;
    } else if (hv_line_key(&h->search, k) == HV_EDIT_CHANGED) {
        h->cursor = 0;
    }
    return true;
}

/* Draws the view's own lines of help from the bottom up, wrapped at blanks; g NULL = only counts.
 */
static int draw_extra(const char *text, struct hv_grid *g, struct hv_rect in, int n_lines)
{
    int n = 0;
    while (text && *text) {
        size_t line = strcspn(text, "\n"), fit = hv_text_fit(text, in.w - 2);
        size_t end = fit < line ? fit : line;
        while (end < line && end > 0 && text[end] != ' ') {
            end--;
        }
        end = end > 0 ? end : fit;
        if (end == 0) {
            break;
        }
        char buf[512];
        (void)snprintf(buf, sizeof buf, "%.*s", (int)(end < sizeof buf ? end : sizeof buf - 1),
                       text);
        if (g) {
            (void)hv_grid_put(g, in.x + 1, in.y + in.h - 1 - n_lines + n, in.w - 2, buf,
                              HV_STYLE_DIM);
        }
        n++;
        text += end;
        text += *text == '\n' || *text == ' ';
    }
    return n;
}

const char *hv_help_status(const struct hv_help *h)
{
    enum hv_action found[HV_ACT_N];
    size_t n = matches(h, found);
    return h->cursor > 0 && h->cursor < n
               ? hv_action_row(found[h->cursor])->help
               : "type to search the keys; Enter runs the selected one, Esc closes";
}

void hv_help_draw(const struct hv_help *h, struct hv_grid *g, struct hv_rect body)
{
    enum hv_action found[HV_ACT_N];
    char title[80];
    size_t n = matches(h, found);
    int margin = body.w > 60 ? 2 : 0;
    struct hv_rect r = {body.x + margin, body.y, body.w - 2 * margin, body.h};
    struct hv_rect in = hv_rect_inner(r);
    int extra = in.h > 8 ? draw_extra(h->view->help, NULL, in, 0) : 0, rows = in.h - 1 - extra;
    size_t shown = rows > 0 ? (size_t)rows : 0;
    size_t top = shown > 0 && h->cursor >= shown ? h->cursor - shown + 1 : 0;
    (void)snprintf(title, sizeof title, "Help: %s  %zu-%zu of %zu keys", h->view->title,
                   n > 0 ? top + 1 : 0, top + shown < n ? top + shown : n, n);
    hv_grid_fill(g, r, ' ', HV_STYLE_TEXT);
    hv_grid_box(g, r, title, true, HV_STYLE_FRAME_FOCUS);
    if (rows < 1) {
        return;
    }
    int key_w = in.w / 3 < 22 ? in.w / 3 : 22;
    for (size_t i = top; i < n && i - top < (size_t)rows; i++) {
        int y = in.y + (int)(i - top);
        struct hv_str keys = {0};
        bool here = i == h->cursor;
        hv_keymap_keys_of(h->keys, h->view->name, found[i], &keys);
        hv_grid_put_field(g, (struct hv_rect){in.x + 1, y, key_w, 1}, HV_LEFT, hv_str_cstr(&keys),
                          here ? HV_STYLE_SELECTED : HV_STYLE_HELP_KEY);
        hv_grid_put_field(g, (struct hv_rect){in.x + key_w + 2, y, in.w - key_w - 2, 1}, HV_LEFT,
                          hv_action_row(found[i])->help, here ? HV_STYLE_SELECTED : HV_STYLE_TEXT);
        hv_str_free(&keys);
    }
    if (n == 0) {
        (void)hv_grid_put(g, in.x + 1, in.y, in.w, "no key matches", HV_STYLE_DIM);
    }
    if (extra) {
        (void)draw_extra(h->view->help, g, in, extra);
    }
    hv_line_draw(&h->search, g, (struct hv_rect){in.x, in.y + in.h - 1, in.w, 1}, "/",
                 HV_STYLE_FIELD);
}
