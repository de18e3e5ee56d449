/* Rows of the frame: tabs and key bar. */
#include <stdio.h>
#include <string.h>

#include "ui/view/widgets.h"

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
    for (size_t i = 0; i < which; i++)
        x += tab_width(t, i, form) + gap;
    return x;
}

static enum tab_form form_of(const struct hv_tabs *t, struct hv_rect row)
{
    int right = t->right ? hv_text_width(t->right) + 1 : 0, end = row.x + row.w;
    if (tab_x(t, row, t->n, TAB_LONG) + right <= end)
        return TAB_LONG;
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
    if (t->right && room > 0)
        hv_grid_put_field(g, (struct hv_rect){end + 1, row.y, room, 1}, HV_RIGHT, t->right,
                          HV_STYLE_TAB);
    hv_grid_unclip(g, old);
}

size_t hv_tabs_hit(const struct hv_tabs *t, struct hv_rect row, int x)
{
    enum tab_form form = form_of(t, row);
    for (size_t i = 0; i < t->n; i++) {
        int x0 = tab_x(t, row, i, form);
        if (x >= x0 && x < x0 + tab_width(t, i, form))
            return i;
    }
    return SIZE_MAX;
}

static bool is_essential(enum hv_action a)
{
    return a == HV_ACT_HELP || a == HV_ACT_CLOSE || a == HV_ACT_QUIT;
}

void hv_keybar_fit(struct hv_keybar_item *items, size_t n, int width)
{
    int total = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].w = hv_text_width(items[i].key) + 1 + hv_text_width(items[i].label);
        total += items[i].w + 2;
    }
    for (size_t i = n; i > 0 && total - 2 > width; i--) {
        if (!is_essential(items[i - 1].action)) {
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
        if (items[i].w == 0)
            continue;
        int x = row.x + items[i].x;
        x += hv_grid_put(g, x, row.y, -1, items[i].key, HV_STYLE_KEYBAR_KEY) + 1;
        (void)hv_grid_put(g, x, row.y, -1, items[i].label, HV_STYLE_KEYBAR);
    }
    hv_grid_unclip(g, old);
}

enum hv_action hv_keybar_hit(const struct hv_keybar_item *items, size_t n, int x)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].w > 0 && x >= items[i].x && x < items[i].x + items[i].w)
            return items[i].action;
    return HV_ACT_NONE;
}
