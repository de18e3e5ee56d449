/** Headings that are open, order and filter: changed, and kept with the workspace. */
#include <stdio.h>
#include <string.h>

#include "ui/screens/strategies/strategies_int.h"

/* The screen's name among what is kept. */
#define VIEW "strategies"

/* Milliseconds after a change until it is written: keys come in runs. */
enum { KEEP_AFTER_MS = 1000 };

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

/** Notes what is kept. */
static void note_kept(struct hv_strategies *st)
{
    struct hv_strategies_kept *k = &st->kept;
    *k = (struct hv_strategies_kept){
        .open = st->open, .sort = st->sort, .descending = st->descending};
    (void)snprintf(k->filter, sizeof k->filter, "%s", st->filter);
}

static bool is_kept(const struct hv_strategies *st)
{
    const struct hv_strategies_kept *k = &st->kept;
    return k->open == st->open && k->sort == st->sort && k->descending == st->descending &&
           strcmp(k->filter, st->filter) == 0;
}

void hv_strategies_keep_when_due(struct hv_strategies *st, const struct hv_session *s,
                                 int64_t now_ms)
{
    if (is_kept(st)) {
        st->kept.since_ms = 0;
    } else if (st->kept.since_ms == 0) {
        st->kept.since_ms = now_ms > 0 ? now_ms : 1;
    } else if (now_ms - st->kept.since_ms >= KEEP_AFTER_MS) {
        hv_strategies_keep(st, s);
    }
}

int hv_strategies_keep_timeout_ms(const struct hv_strategies *st, int64_t now_ms)
{
    int64_t left = KEEP_AFTER_MS;
    if (is_kept(st)) {
        return -1;
    }
    left -= st->kept.since_ms > 0 ? now_ms - st->kept.since_ms : 0;
    return left < 0 ? 0 : left > KEEP_AFTER_MS ? KEEP_AFTER_MS : (int)left;
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
    note_kept(st);
}

void hv_strategies_keep(struct hv_strategies *st, const struct hv_session *s)
{
    note_kept(st);
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
