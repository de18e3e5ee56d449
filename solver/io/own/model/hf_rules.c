/* Splits the rules of families, and finds the row of a model type. */
#include "solver/io/own/model/hf_rules.h"
#include <ctype.h>
#include <string.h>

#define MAX_RULES  96
#define MAX_PARENT 4

static const char *const places[HV__HF_PLACE_N] = {"attention", "linear",    "layer", "dense",
                                                   "mixture",   "embedding", "head"};

static bool word_is(const char *words, const char *type, size_t *length)
{
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (strlen(type) == n && memcmp(words, type, n) == 0) {
            *length = n;
            return true;
        }
    }
    return false;
}

/* Length of the longest of the words that the type begins with. */
static size_t longest_start(const char *words, const char *type)
{
    size_t best = 0;
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (n > best && strncmp(words, type, n) == 0) {
            best = n;
        }
    }
    return best;
}

const struct hv__hf_family *hv__hf_family_of(const char *type, bool *exact)
{
    size_t n, best = 0, length;
    const struct hv__hf_family *rows = hv__hf_families(&n), *found = NULL;
    *exact = true;
    for (size_t i = 0; i < n; i++) {
        if (word_is(rows[i].types, type, &length)) {
            return &rows[i];
        }
    }
    *exact = false;
    for (size_t i = 0; i < n; i++) {
        length = longest_start(rows[i].types, type);
        if (length > best) {
            best = length;
            found = &rows[i];
        }
    }
    return found;
}

static const char *skip_blanks(const char *s)
{
    while (isspace((unsigned char)*s)) {
        s++;
    }
    return s;
}

static size_t trimmed(const char *s, size_t n)
{
    while (n > 0 && isspace((unsigned char)s[n - 1])) {
        n--;
    }
    return n;
}

/* The place of "+place name"; *name is moved behind it. */
static int place_of(const char **name)
{
    for (int p = 0; **name == '+' && p < HV__HF_PLACE_N; p++) {
        size_t n = strlen(places[p]);
        if (strncmp(*name + 1, places[p], n) == 0 && (*name)[n + 1] == ' ') {
            *name = skip_blanks(*name + n + 1);
            return p;
        }
    }
    return -1;
}

static void split(const char *text, struct hv__hf_rules *out, struct hv_arena *arena)
{
    for (const char *s = skip_blanks(text); *s && out->n < MAX_RULES; s = skip_blanks(s)) {
        size_t length = strcspn(s, ";"), before = strcspn(s, "=");
        const char *end = s + length, *name = s;
        int place = place_of(&name);
        if (before < length && name < s + before) {
            out->items[out->n++] = (struct hv__hf_rule){
                .name = hv_arena_strndup(arena, name, trimmed(name, (size_t)(s + before - name))),
                .from = s + before + 1,
                .to = end,
                .place = place};
        }
        s = *end ? end + 1 : end;
    }
}

struct hv__hf_rules hv__hf_rules_of(const struct hv__hf_family *f,
                                    const struct hv__hf_family *element, struct hv_arena *arena)
{
    bool linear = false;
    struct hv__hf_rules out = {.items = hv_arena_new(arena, struct hv__hf_rule, MAX_RULES)};
    for (int depth = 0; f && depth < MAX_PARENT; depth++) {
        bool exact;
        split(f->rules ? f->rules : "", &out, arena);
        f = f->like ? hv__hf_family_of(f->like, &exact) : NULL;
    }
    for (size_t i = 0; i < out.n; i++) {
        linear = linear || out.items[i].place == HV__HF_AT_LINEAR;
    }
    if (element && !linear) {
        split(element->rules, &out, arena);
    }
    return out;
}

struct hv__hf_rule *hv__hf_rule_find(const struct hv__hf_rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->n; i++) {
        if (rules->items[i].place < 0 && strcmp(rules->items[i].name, name) == 0) {
            return &rules->items[i];
        }
    }
    return NULL;
}
