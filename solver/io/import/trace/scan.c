/*
 * Events of a Chrome trace, one after the other: elements of "traceEvents", or of the list that is
 * the whole text. Brackets outside of strings tell where an event ends; each is then parsed alone.
 */
#include "solver/io/import/trace/scan.h"
#include "solver/io/import/text/trees.h"
#include <string.h>

#define MAX_ITEM ((size_t)4 << 20) /* bytes of one event */
#define MAX_HEAD ((size_t)4 << 20) /* bytes of the members beside the events */

static json_t *parse(const struct hv_str *s)
{
    json_t *v = json_loadb(hv_str_cstr(s), s->n, JSON_ALLOW_NUL, NULL);
    if (!v) { /* programs write NaN */
        struct hv_str mended = {0};
        (void)hv__json_mend(hv_str_cstr(s), s->n, &mended);
        v = json_loadb(hv_str_cstr(&mended), mended.n, JSON_ALLOW_NUL, NULL);
        hv_str_free(&mended);
    }
    return v;
}

static void end_item(struct hv__scan *s)
{
    json_t *event = s->item.n <= MAX_ITEM ? parse(&s->item) : NULL;
    if (event) {
        s->each(s->ctx, event);
        json_decref(event);
    } else {
        s->bad++;
    }
    hv_str_clear(&s->item);
    s->in_item = false;
}

/* Keeps a byte: of the event, or of the text around the events. */
static void put(struct hv__scan *s, char c)
{
    if (s->in_item) {
        if (s->item.n <= MAX_ITEM) {
            hv_str_addc(&s->item, c);
        }
    } else if (s->events_at == 0 && s->head.n <= MAX_HEAD) {
        hv_str_addc(&s->head, c);
    }
}

static void in_string(struct hv__scan *s, char c)
{
    put(s, c);
    if (s->escaped) {
        s->escaped = false;
    } else if (c == '\\') {
        s->escaped = true;
    } else if (c == '"') {
        s->in_string = false;
        return;
    }
    if (s->depth == 1 && s->n_key < sizeof s->key) {
        s->key[s->n_key++] = c;
    }
}

/* True where the bracket that was just opened holds the events. */
static bool opens_events(const struct hv__scan *s, char c)
{
    static const char key[] = "traceEvents";
    if (c != '[' || s->events_at > 0) {
        return false;
    }
    bool named = s->n_key == strlen(key) && memcmp(s->key, key, s->n_key) == 0;
    return s->is_list ? s->depth == 1 : s->depth == 2 && named;
}

static void open_bracket(struct hv__scan *s, char c)
{
    s->is_list = s->depth == 0 ? c == '[' : s->is_list;
    if (c == '{' && !s->in_item && s->events_at > 0 && s->depth == s->events_at) {
        s->in_item = true;
    }
    put(s, c);
    s->depth++;
    if (opens_events(s, c)) {
        s->events_at = s->depth;
    }
}

static void close_bracket(struct hv__scan *s, char c)
{
    s->depth -= s->depth > 0;
    if (!s->in_item && s->depth < s->events_at) {
        s->events_at = 0;
    }
    put(s, c);
    if (s->in_item && s->depth == s->events_at) {
        end_item(s);
    }
}

void hv__scan_feed(struct hv__scan *s, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if (s->in_string) {
            in_string(s, c);
        } else if (c == '{' || c == '[') {
            open_bracket(s, c);
        } else if (c == '}' || c == ']') {
            close_bracket(s, c);
        } else {
            s->in_string = c == '"';
            s->n_key = s->in_string && s->depth == 1 ? 0 : s->n_key;
            put(s, c);
        }
    }
}

json_t *hv__scan_head(const struct hv__scan *s)
{
    return s->head.n <= MAX_HEAD ? parse(&s->head) : NULL;
}

bool hv__scan_is_cut(const struct hv__scan *s)
{
    return s->depth > 0 || s->in_string;
}

void hv__scan_free(struct hv__scan *s)
{
    hv_str_free(&s->head);
    hv_str_free(&s->item);
}
