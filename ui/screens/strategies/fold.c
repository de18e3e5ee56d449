/** Headings that are open, order and filter: changed, and kept with the workspace. */
#include <stdio.h>
#include <string.h>

#include "ui/screens/strategies/strategies_int.h"

/* The screen's name among what is kept. */
#define VIEW "strategies"

void hv_strategies_fold(struct hv_strategies *st, enum hv_kind kind, bool open)
{
    unsigned bit = 1U << kind;
    if (st->filter[0] != '\0') {
        st->shut = open ? st->shut & ~bit : st->shut | bit;
    } else {
        st->open = open ? st->open | bit : st->open & ~bit;
    }
}

/** The heading of that word, or one too many. */
static int heading_of(const char *word)
{
    int k = 0;
    while (k <= HV_KIND_N && strcmp(hv_strategies_heading((enum hv_kind)k), word) != 0) {
        k++;
    }
    return k;
}

void hv_strategies_restore(struct hv_strategies *st, const struct hv_session *s)
{
    json_t *kept = hv_session_view(s, VIEW), *word = NULL;
    const char *filter = json_string_value(json_object_get(kept, "filter"));
    const char *sort = json_string_value(json_object_get(kept, "sort"));
    size_t i = 0;
    json_array_foreach(json_object_get(kept, "open"), i, word)
    {
        int k = json_is_string(word) ? heading_of(json_string_value(word)) : HV_KIND_N + 1;
        st->open |= k <= HV_KIND_N ? 1U << k : 0;
    }
    for (int k = 0; sort != NULL && k < HV_STRATEGIES_SORT_N; k++) {
        bool same = strcmp(hv_strategies_sort_name((enum hv_strategies_sort)k), sort) == 0;
        st->sort = same ? (enum hv_strategies_sort)k : st->sort;
    }
    st->descending = json_is_true(json_object_get(kept, "descending"));
    (void)snprintf(st->filter, sizeof st->filter, "%s", filter != NULL ? filter : "");
    json_decref(kept);
}

void hv_strategies_keep(const struct hv_strategies *st, const struct hv_session *s)
{
    json_t *open = json_array();
    for (int k = 0; k <= HV_KIND_N; k++) {
        if (st->open & 1U << k) {
            json_array_append_new(open, json_string(hv_strategies_heading((enum hv_kind)k)));
        }
    }
    json_t *kept = json_pack("{s:o,s:s,s:b}", "open", open, "sort",
                             hv_strategies_sort_name(st->sort), "descending", st->descending);
    json_t *filter = json_string(st->filter); /* NULL for what is no UTF-8 */
    if (kept != NULL && filter != NULL) {
        json_object_set(kept, "filter", filter);
    }
    json_decref(filter);
    hv_session_view_keep(s, VIEW, kept);
    json_decref(kept);
}
