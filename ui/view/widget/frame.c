/* Rows of the frame: tabs and key bar. */
#include <stdio.h>
#include <string.h>

#include "ui/view/widget/widgets.h"

/* How tabs are written: long titles, short ones, or the number alone for all but the active one. */
enum tab_form { TAB_LONG, TAB_SHORT, TAB_NUMBER };

static const char *tab_title(const struct hv_tabs *t, size_t i, enum tab_form form)
{
    return form == TAB_LONG                      ? t->titles[i]
           : form == TAB_SHORT || i == t->active ? t->short_titles[i]
                                                 : "";
}

/* Width of one tab " 1 Cluster " or " 1 ". */
static int tab_width(const struct hv_tabs *t, size_t i, enum tab_form form)
{
    int w = hv_text_width(tab_title(t, i, form));
    return w > 0 ? w + 4 : 3;
}

static int tab_x(const struct hv_tabs *t, struct hv_rect row, size_t which, enum tab_form form)
{
    int x = row.x, gap = form == TAB_LONG ? 1 : 0;
    for (size_t i = 0; i < which; i++) {
        x += tab_width(t, i, form) + gap;
    }
    return x;
}

static enum tab_form form_of(const struct hv_tabs *t, struct hv_rect row)
{
    int right = t->right ? hv_text_width(t->right) + 1 : 0, end = row.x + row.w;
    if (tab_x(t, row, t->n, TAB_LONG) + right <= end) {
        return TAB_LONG;
    }
    return tab_x(t, row, t->n, TAB_SHORT) <= end ? TAB_SHORT : TAB_NUMBER;
}

void hv_tabs_draw(const struct hv_tabs *t, struct hv_grid *g, struct hv_rect row)
{
    char text[64];
    enum tab_form form = form_of(t, row);
    struct hv_rect old = hv_grid_clip(g, row);
    int end = tab_x(t, row, t->n, form);
    for (size_t i = 0; i < t->n; i++) {
        bool active = i == t->active;
        const char *title = tab_title(t, i, form);
        (void)snprintf(text, sizeof text, active ? "<%zu%s%s>" : " %zu%s%s ", i + 1,
                       title[0] != '\0' ? " " : "", title);
        (void)hv_grid_put(g, tab_x(t, row, i, form), row.y, -1, text,
                          active ? HV_STYLE_TAB_ACTIVE : HV_STYLE_TAB);
    }
    int room = row.x + row.w - end - 1;
    if (t->right && room > 0) {
        hv_grid_put_field(g, (struct hv_rect){end + 1, row.y, room, 1}, HV_RIGHT, t->right,
                          HV_STYLE_TAB);
    }
    hv_grid_unclip(g, old);
}

size_t hv_tabs_hit(const struct hv_tabs *t, struct hv_rect row, int x)
{
    enum tab_form form = form_of(t, row);
    for (size_t i = 0; i < t->n; i++) {
        int x0 = tab_x(t, row, i, form);
        if (x >= x0 && x < x0 + tab_width(t, i, form)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static bool is_essential(const struct hv_keybar_item *item)
{
    enum hv_action a = item->action;
    return item->press.code == HV_KEY_ESC || a == HV_ACT_HELP || a == HV_ACT_CLOSE ||
           a == HV_ACT_QUIT;
}

void hv_keybar_fit(struct hv_keybar_item *items, size_t n, int width)
{
    int total = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].w = hv_text_width(items[i].key) + 1 + hv_text_width(items[i].label);
        total += items[i].w + 2;
    }
    for (size_t i = n; i > 0 && total - 2 > width; i--) {
        if (!is_essential(&items[i - 1])) {
            total -= items[i - 1].w + 2;
            items[i - 1].w = 0;
        }
    }
    int x = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].x = x;
        x += items[i].w > 0 ? items[i].w + 2 : 0;
    }
}

void hv_keybar_draw(const struct hv_keybar_item *items, size_t n, struct hv_grid *g,
                    struct hv_rect row)
{
    struct hv_rect old = hv_grid_clip(g, row);
    for (size_t i = 0; i < n; i++) {
        if (items[i].w == 0) {
            continue;
        }
        int x = row.x + items[i].x;
        x += hv_grid_put(g, x, row.y, -1, items[i].key, HV_STYLE_KEYBAR_KEY) + 1;
        (void)hv_grid_put(g, x, row.y, -1, items[i].label, HV_STYLE_KEYBAR);
    }
    hv_grid_unclip(g, old);
}

static const struct hv_keybar_item *item_at(const struct hv_keybar_item *items, size_t n, int x)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i].w > 0 && x >= items[i].x && x < items[i].x + items[i].w) {
            return &items[i];
        }
    }
    return NULL;
}

enum hv_action hv_keybar_hit(const struct hv_keybar_item *items, size_t n, int x)
{
    const struct hv_keybar_item *item = item_at(items, n, x);
    if (!item) {
        return HV_ACT_NONE;
    }
    bool on_twin = item->twin != HV_ACT_NONE && x >= item->x + item->twin_x &&
                   x < item->x + hv_text_width(item->key);
    return on_twin ? item->twin : item->action;
}

struct hv_key hv_keybar_press(const struct hv_keybar_item *items, size_t n, int x)
{
    const struct hv_keybar_item *item = item_at(items, n, x);
    return item ? item->press : (struct hv_key){.code = HV_KEY_NONE};
}

/* ---- words ---- */

/* Bytes of the next row, and behind them the blank or newline that is left out. */
static size_t next_row(const char *text, int w, size_t *skip)
{
    size_t n = hv_text_wrap(text, w > 1 ? w : 1);
    n = n > 0 || !*text ? n : hv_text_next(text, 0);
    *skip = text[n] == ' ' || text[n] == '\n';
    return n;
}

int hv_words_rows(const char *text, int w, int most)
{
    int rows = 0;
    for (size_t skip; *text && rows < most; rows++) {
        text += next_row(text, w, &skip);
        text += skip;
    }
    return rows;
}

int hv_words_draw(struct hv_grid *g, struct hv_rect r, const char *text, unsigned style)
{
    struct hv_str row = {0};
    int y = 0;
    for (; *text && y < r.h; y++) {
        size_t skip = 0, n = g->plain ? strlen(text) : next_row(text, r.w, &skip);
        bool last = y + 1 == r.h; /* its ellipsis shows that text is left out */
        hv_str_clear(&row);
        hv_str_add(&row, text, last ? strlen(text) : n);
        hv_grid_put_field(g, (struct hv_rect){r.x, r.y + y, r.w, 1}, HV_LEFT, hv_str_cstr(&row),
                          style);
        text += n + skip;
    }
    hv_str_free(&row);
    return y;
}

/* Start of the longest end of `name` of at most w columns. */
static const char *end_of(const char *name, int w)
{
    size_t n = strlen(name), at = n;
    while (at > 0 && hv_text_width(name + hv_text_prev(name, at)) <= w) {
        at = hv_text_prev(name, at);
    }
    return name + at;
}

void hv_text_squeeze(const char *name, int w, bool ascii, struct hv_str *out)
{
    enum { LEAST_HEAD = 2 };
    if (hv_text_width(name) <= w) {
        hv_str_adds(out, name);
        return;
    }
    const char *words = strchr(name, ' ');
    bool whole = words && hv_text_width(words) + 1 + LEAST_HEAD <= w;
    const char *end = whole ? words : end_of(name, w / 2);
    int head = w - 1 - hv_text_width(end);
    hv_str_add(out, name, hv_text_fit(name, head > 0 ? head : 0));
    hv_str_addf(out, "%s%s", ascii ? "~" : "…", end);
}

void hv_more_draw(struct hv_grid *g, struct hv_rect r, size_t n, size_t top)
{
    char text[32];
    size_t h = r.h > 0 ? (size_t)r.h : 0, last = n > h ? n - h : 0;
    if (top < last && r.w > 12) {
        (void)snprintf(text, sizeof text, " %zu more ", last - top);
        (void)hv_grid_put(g, r.x + r.w - (int)strlen(text) - 1, r.y + r.h, -1, text, HV_STYLE_DIM);
    }
}

void hv_table_more_draw(const struct hv_table *t, const struct hv_table_source *s,
                        struct hv_rect at, struct hv_grid *g, struct hv_rect inner)
{
    size_t top = at.h > 1 ? hv_table_hit(t, s, at, at.x, at.y + 1) : SIZE_MAX;
    if (top != SIZE_MAX) { /* rows of the panel that are not the table's count as shown */
        hv_more_draw(g, inner, s->n_rows + (size_t)(inner.h - (at.h - 1)), top);
    }
}
