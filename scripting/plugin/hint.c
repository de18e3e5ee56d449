/*
 * Hints for common mistakes: for errors of Lua that only report a nil value, and for arguments of
 * hv functions that were mixed up. Errors that already name the nearest key get no hint.
 */
#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "scripting/plugin/hint_int.h"
#include "scripting/plugin/plugin.h"
#include "scripting/plugin/reference.h"

#include <ctype.h>
#include <string.h>

#define NAMES_MAX 4096

/** Words to choose the nearest from. */
struct names {
    struct hv_arena arena;
    const char **items;
    size_t n;
    const char *but; /**< a word that is no help */
};

static void add_name(struct names *l, const char *word, size_t n)
{
    bool same = strlen(l->but) == n && memcmp(l->but, word, n) == 0;
    if (l->n < NAMES_MAX && n > 1 && !same) {
        l->items[l->n++] = hv_arena_strndup(&l->arena, word, n);
    }
}

static const char *last_part(const char *name)
{
    const char *end = name + strlen(name);

    while (end > name && end[-1] != '.' && end[-1] != ':') {
        end--;
    }
    return end;
}

/** Names of members in a text of the reference: words of small letters, digits and _. */
static void add_words(struct names *l, const char *text)
{
    while (*text != '\0') {
        size_t n = 0;
        while (islower((unsigned char)text[n]) || isdigit((unsigned char)text[n]) ||
               text[n] == '_') {
            n++;
        }
        add_name(l, text, n);
        text += n > 0 ? n : 1;
    }
}

/** Functions first, then the plugin's own options, then members of results. */
static void collect(struct names *l, const struct hv_host *h, bool is_call)
{
    size_t n = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);

    l->items = hv_arena_new(&l->arena, const char *, NAMES_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *name = last_part(docs[i].name);
        add_name(l, name, strlen(name));
    }
    if (is_call || h->run == NULL) {
        return;
    }
    const char *strategy = h->run->request->strategy;
    char id[64];
    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(strategy, "+"), strategy);
    const struct hv_plugin *p = hv_plugins_find(h->run->request->plugins, id);
    for (size_t i = 0; p != NULL && i < p->n_options; i++) {
        add_name(l, p->options[i].key, strlen(p->options[i].key));
    }
    for (size_t i = 0; i < n; i++) {
        add_words(l, docs[i].returns);
    }
}

/** Adds the whole names of functions whose last part is `word`: methods (or not), or all where
 * there is none of that sort. */
static void add_functions(struct hv_str *out, const char *word, bool methods)
{
    size_t n = 0, found = 0;
    const struct hv_api_doc *docs = hv_api_docs(&n);

    for (int all = 0; all < 2 && found == 0; all++) {
        for (size_t i = 0; i < n; i++) {
            bool sort = all > 0 || (strchr(docs[i].name, ':') != NULL) == methods;
            if (sort && strcmp(last_part(docs[i].name), word) == 0) {
                hv_str_addf(out, "%s%s", found++ == 0 ? " (" : ", ", docs[i].name);
            }
        }
    }
    if (found > 0) {
        hv_str_adds(out, ")");
    }
}

static void hint_member(const struct hv_host *h, const char *name, const char *message,
                        struct hv_str *out)
{
    bool is_call = strstr(message, "to call") != NULL;
    bool is_method = strstr(message, "(method '") != NULL;
    struct names l = {.but = is_call ? "" : name};

    collect(&l, h, is_call);
    const char *near = hv_suggest(name, l.items, l.n);
    if (near != NULL && strcmp(near, name) != 0) {
        hv_str_addf(out, "did you mean '%s'", near);
        add_functions(out, near, is_method);
        hv_str_adds(out, "?");
    } else if (near != NULL && is_call) {
        hv_str_adds(out, "there is");
        add_functions(out, near, is_method);
    }
    hv_arena_free(&l.arena);
}

/** How to load the library that the function belongs to: "share/lua/testing/oracle.lua:7" is
 * required as "testing.oracle". */
static void hint_library(const struct hv_api_doc *doc, const char *name, struct hv_str *out)
{
    static const char folder[] = "share/lua/";
    const char *path = strstr(doc->source, folder);

    if (path == NULL) {
        return;
    }
    path += strlen(folder);
    hv_str_addf(out, "put `local %s = require \"", name);
    for (size_t n = strcspn(path, ":"); n > strlen(".lua"); n--, path++) {
        hv_str_addc(out, *path == '/' ? '.' : *path);
    }
    hv_str_adds(out, "\"` at the top");
}

static void hint_global(const char *name, struct hv_str *out)
{
    static const char *const outside[] = {"io",       "os",     "debug",      "load",
                                          "loadfile", "dofile", "loadstring", "collectgarbage"};
    size_t n = 0, len = strlen(name);
    const struct hv_api_doc *docs = hv_api_docs(&n);

    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        if (strcmp(outside[i], name) == 0) {
            hv_str_adds(out, "plugins reach no files, processes or compiler");
        }
    }
    for (size_t i = 0; i < n && out->n == 0; i++) {
        if (strncmp(docs[i].name, name, len) == 0 && docs[i].name[len] == '.') {
            hint_library(&docs[i], name, out);
        }
    }
    if (out->n == 0 && (strcmp(name, "cluster") == 0 || strcmp(name, "model") == 0 ||
                        strcmp(name, "job") == 0 || strcmp(name, "options") == 0)) {
        hv_str_addf(out, "did you mean 'ctx.%s'?", name);
    }
}

/** Copies the name behind "(WHAT '" in the message; false when there is none. */
static bool name_after(const char *message, const char *what, char *name, size_t cap)
{
    const char *at = strstr(message, what);

    if (at == NULL) {
        return false;
    }
    at += strlen(what);
    size_t n = strcspn(at, "'\n");
    if (n == 0 || n >= cap || at[n] != '\'') {
        return false;
    }
    memcpy(name, at, n);
    name[n] = '\0';
    return true;
}

void hv__hint(const struct hv_host *h, const char *message, struct hv_str *out)
{
    bool nil = strstr(message, "nil value") != NULL;
    char name[64];

    if (nil && name_after(message, "(global '", name, sizeof name)) {
        hint_global(name, out);
    } else if (nil && (name_after(message, "(field '", name, sizeof name) ||
                       name_after(message, "(method '", name, sizeof name))) {
        hint_member(h, name, message, out);
    } else if (strstr(message, "bad argument #1") != NULL && strstr(message, "(hv.") != NULL) {
        hv_str_adds(out, "methods are called with a colon, as in ctx.cluster:groups()");
    } else if (strstr(message, ".devices") != NULL &&
               strstr(message, "expected a string") != NULL) {
        hv_str_adds(out, "ctx.cluster:address(ids) writes device numbers as an address");
    }
}
