/* Kinds of strategies, and the members of a declaration that say what is published: reads them, and
 * writes citations. */
#include "scripting/plugin/plugin_int.h"
#include "solver/base/units.h"

#include <string.h>

static const struct {
    const char *name, *about;
} kinds[] = {
#define X(c, name, about) {name, about},
    HV_KIND_MAP(X)
#undef X
};

const char *hv_kind_name(enum hv_kind k)
{
    return kinds[k].name;
}

const char *hv_kind_about(enum hv_kind k)
{
    return kinds[k].about;
}

enum hv_kind hv_kind_of(const char *word)
{
    int k = 0;
    while (k < HV_KIND_N && strcmp(kinds[k].name, word) != 0) {
        k++;
    }
    return (enum hv_kind)k;
}

bool hv_plugin_is_of(const struct hv_plugin *p, enum hv_kind kind)
{
    for (size_t i = 0; i < p->n_kinds; i++) {
        if (p->kinds[i] == kind) {
            return true;
        }
    }
    return false;
}

bool hv_plugin_stands_under(const struct hv_plugin *p, enum hv_kind kind)
{
    if (p->error != NULL) {
        return kind == HV_KIND_N;
    }
    return kind == p->kinds[0] || (p->shipped && hv_plugin_is_of(p, kind));
}

size_t hv_plugins_under(const struct hv_plugin *p, size_t n, enum hv_kind kind, size_t *out)
{
    size_t n_out = 0;
    for (int by_hand = 0; by_hand < 2; by_hand++) { /* only baselines come in two parts */
        for (size_t i = 0; i < n; i++) {
            bool last = kind == HV_KIND_BASELINE && p[i].effort == HV_EFFORT_UNKNOWN;
            if (hv_plugin_stands_under(&p[i], kind) && last == (by_hand == 1)) {
                out[n_out++] = i;
            }
        }
    }
    return n_out;
}

void hv_plugin_cite(const struct hv_plugin *p, struct hv_str *out)
{
    const char *system = p->system != NULL ? p->system : "", *venue = p->venue;
    char year[16] = "";

    hv_str_adds(out, system);
    if (venue != NULL && strstr(system, venue) == NULL) {
        hv_str_addf(out, "%s%s", system[0] != '\0' ? ", " : "", venue);
    }
    if (p->year > 0) {
        (void)snprintf(year, sizeof year, "%d", p->year);
    }
    if (strstr(hv_str_cstr(out), year) == NULL) {
        hv_str_addf(out, "%s%s", venue == NULL && out->n > 0 ? ", " : " ", year);
    }
    if (p->reference != NULL && p->reference[0] != '\0') {
        hv_str_addf(out, "%s%s", out->n > 0 ? ", " : "", p->reference);
    }
}

/** Adds a kind, once. */
static void add_kind(struct hv_plugin *p, enum hv_kind kind)
{
    if (p->n_kinds < HV_PLUGIN_KINDS_MAX && !hv_plugin_is_of(p, kind)) {
        p->kinds[p->n_kinds++] = kind;
    }
}

/** One word of `kind`. A plugin of the user's may call its kind as it likes. */
static enum hv_status take_kind(struct hv_plugin *p, const struct hv_jp *at, struct hv_str *text,
                                struct hv_err *err)
{
    const char *word = NULL;
    enum hv_status s = hv_jp_string(at, &word, err);

    if (s != HV_OK) {
        return s;
    }
    enum hv_kind kind = hv_kind_of(word);
    if (kind == HV_KIND_N && p->shipped) {
        return hv_jp_expected(at, err,
                              "planner, baseline, data, tensor, pipeline, sequence, experts, "
                              "hetero, auto-parallel or yours");
    }
    hv_str_addf(text, "%s%s", text->n > 0 ? ", " : "", word);
    add_kind(p, kind == HV_KIND_N ? HV_KIND_YOURS : kind);
    return HV_OK;
}

enum hv_status hv__fill_kinds(struct hv_plugin *p, const struct hv_jp *root, struct hv_arena *arena,
                              struct hv_err *err)
{
    struct hv_jp at;
    struct hv_str text = {0};
    size_t n = 1;
    enum hv_status s = hv_jp_need(root, "kind", "a kind, or a list of kinds", &at, err);
    bool is_list = s == HV_OK && json_is_array(at.v);

    p->n_kinds = 0;
    if (!p->shipped) {
        add_kind(p, HV_KIND_YOURS);
    }
    if (is_list) {
        s = hv_jp_array(&at, &n, err);
    }
    if (s == HV_OK && (n == 0 || n >= HV_PLUGIN_KINDS_MAX)) {
        s = hv_jp_expected(&at, err, "one to three kinds");
    }
    for (size_t i = 0; s == HV_OK && i < n; i++) {
        struct hv_jp one = is_list ? hv_jp_at(&at, i) : at;
        s = take_kind(p, &one, &text, err);
    }
    p->kind = hv_arena_strdup(arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return s;
}

/** Reads an optional list of texts. */
static enum hv_status fill_texts(const struct hv_jp *root, const char *key, const char ***out,
                                 size_t *n, struct hv_arena *arena, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, key);
    enum hv_status s = HV_OK;

    *n = 0;
    if (!hv_jp_none(&list)) {
        s = hv_jp_array(&list, n, err);
    }
    *out = hv_arena_new(arena, const char *, *n + 1);
    for (size_t i = 0; s == HV_OK && i < *n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        const char *text = NULL;
        s = hv_jp_string(&at, &text, err);
        (*out)[i] = hv_arena_strdup(arena, text);
    }
    return s;
}

enum hv_status hv__fill_paper(struct hv_plugin *p, const struct hv_jp *root, struct hv_arena *arena,
                              struct hv_err *err)
{
    struct hv_jp sets = hv_jp_get(root, "sets");
    int64_t year = 0;
    const char *venue = NULL;
    enum hv_status s = hv_jp_opt_string(root, "venue", &venue, err);

    p->venue = hv_arena_strdup(arena, venue);
    if (s == HV_OK) {
        s = hv_jp_opt_int(root, "year", 1900, 2200, &year, err);
    }
    p->year = (int)year;
    bool empty = hv_jp_none(&sets) || (json_is_array(sets.v) && json_array_size(sets.v) == 0);
    if (s == HV_OK && !empty && !json_is_object(sets.v)) {
        s = hv_jp_expected(&sets, err, "knobs and their values");
    }
    p->sets = empty ? NULL : sets.v;
    if (s == HV_OK) {
        s = fill_texts(root, "searches", &p->searches, &p->n_searches, arena, err);
    }
    if (s == HV_OK) {
        s = fill_texts(root, "verified", &p->verified, &p->n_verified, arena, err);
    }
    return s;
}
