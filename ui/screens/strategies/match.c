/** Where a text is found in what is declared of a strategy. Draws nothing. */
#include <stdio.h>
#include <string.h>

#include "ui/screens/strategies/strategies_int.h"

/** Appends a place, once. */
static void add_place(struct hv_str *out, const char *place)
{
    hv_str_addf(out, "%s%s", out->n > 0 ? ", " : "", place);
}

/** Appends `place` where one of the n texts (NULL: none) holds the word. */
static bool look_in(const char *const *texts, size_t n, const char *word, const char *place,
                    struct hv_str *out)
{
    for (size_t i = 0; i < n; i++) {
        if (texts[i] != NULL && hv_text_has(texts[i], word)) {
            add_place(out, place);
            return true;
        }
    }
    return false;
}

/** The first of the knobs that it fixes, "knob zero.stage = 2". */
static bool look_in_sets(const struct hv_plugin *p, const char *word, struct hv_str *out)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)p->sets, key, value)
    {
        char text[96], knob[200];
        (void)snprintf(knob, sizeof knob, "knob %.80s = %.90s", key,
                       hv_option_text(value, text, sizeof text));
        if (hv_text_has(knob + 5, word)) {
            add_place(out, knob);
            return true;
        }
    }
    return false;
}

/** The first of its options, "parameter micro_batch". */
static bool look_in_options(const struct hv_plugin *p, const char *word, struct hv_str *out)
{
    for (size_t i = 0; i < p->n_options; i++) {
        const struct hv_option_row *o = &p->options[i];
        if (hv_text_has(o->key, word) || (o->help != NULL && hv_text_has(o->help, word))) {
            char text[96];
            (void)snprintf(text, sizeof text, "parameter %.80s", o->key);
            add_place(out, text);
            return true;
        }
    }
    return false;
}

enum hv_strategy_match hv_strategy_match(const struct hv_plugin *p, const char *word,
                                         struct hv_str *where)
{
    struct hv_str cite = {0};
    char year[16] = "";
    const char *const names[] = {p->id != NULL ? p->id : p->name}, *const titles[] = {p->title};
    if (p->year > 0) {
        (void)snprintf(year, sizeof year, "%d", p->year);
    }
    hv_plugin_cite(p, &cite);
    const char *const kinds[] = {p->kind, p->family};
    const char *const papers[] = {hv_str_cstr(&cite), p->venue, p->system, p->reference, year};
    const char *const summaries[] = {p->summary, p->error};
    bool named = look_in(names, 1, word, "id", where);
    named |= look_in(titles, 1, word, "title", where);
    const char *const files[] = {p->shipped ? NULL : p->name}; /* of one's own only */
    bool told = look_in(kinds, 2, word, "kind", where);
    told |= look_in(files, 1, word, "file", where);
    told |= look_in(papers, HV_COUNT(papers), word, "citation", where);
    told |= look_in(summaries, 2, word, "summary", where);
    told |= look_in_sets(p, word, where);
    told |= look_in(p->searches, p->n_searches, word, "searched knobs", where);
    told |= look_in_options(p, word, where);
    hv_str_free(&cite);
    return named ? HV_MATCH_NAME : told ? HV_MATCH_TEXT : HV_MATCH_NONE;
}
