/*
 * Metadata of a plugin: from the table that its chunk returns to a checked tree, and from the tree
 * to a row. find.c finds the files, option.c checks the values of options.
 */
#include "scripting/plugin/find.h"
#include "scripting/plugin/plugin_int.h"
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/units.h"

#include <string.h>

#define FILE_LIMIT ((size_t)1 << 20)

static const char *const type_names[] = {
#define X(c, name) name,
    HV_OPTION_TYPE_MAP(X)
#undef X
};
static const char *const function_names[] = {
#define X(c, name) name,
    HV_PLUGIN_FUNCTION_MAP(X)
#undef X
};

static const struct {
    const char *name;
    size_t devices;
} efforts[] = {
#define X(c, name, devices) {name, devices},
    HV_EFFORT_MAP(X)
#undef X
};

const char *hv_effort_name(enum hv_effort e)
{
    return efforts[e].name;
}

size_t hv_effort_devices(enum hv_effort e)
{
    return efforts[e].devices;
}

const char *hv_option_type_name(enum hv_option_type t)
{
    return type_names[t];
}

const char *hv_plugin_function_name(enum hv_plugin_function f)
{
    return function_names[f];
}

/** The folder of a path ("." where it names none). */
static void add_folder(struct hv_str *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    hv_str_add(out, slash != NULL ? path : ".", slash != NULL ? (size_t)(slash - path) : 1);
}

/** Runs a file's chunk in a fresh environment; leaves its result on the stack. */
static enum hv_status push_file(lua_State *L, const char *path, const char *name,
                                struct hv_err *err)
{
    struct hv_str text = {0}, folder = {0}, label = {0};
    enum hv_status s = hv_file_read_regular(path, &text, err);

    if (s == HV_OK && text.n > FILE_LIMIT) {
        s = hv_err_at(err, HV_EPLUGIN, name, 1, 0, "the file is larger than 1 MiB");
    }
    add_folder(&folder, path);
    add_folder(&label, name);
    if (s == HV_OK) {
        s = hv__env(L, hv_str_cstr(&folder), hv_str_cstr(&label), err);
    }
    if (s == HV_OK) {
        s = hv__load(L, hv_str_cstr(&text), text.n, name, -1, err);
        lua_remove(L, s == HV_OK ? -2 : -1);
    }
    hv_str_free(&text);
    hv_str_free(&folder);
    hv_str_free(&label);
    return s;
}

enum hv_status hv__plugin_push(lua_State *L, const char *path, const char *name, struct hv_err *err)
{
    enum hv_status s = push_file(L, path, name, err);

    if (s == HV_OK && !lua_istable(L, -1)) {
        s = hv_err_at(err, HV_EPLUGIN, name, 1, 0,
                      "a plugin returns a table, this one returns a %s", luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    return s;
}

enum hv_status hv__plugin_push_selftest(lua_State *L, const char *path, const char *name,
                                        struct hv_err *err)
{
    struct hv_str file = {0}, label = {0};

    add_folder(&file, path);
    hv_str_adds(&file, "/" HV__SELFTEST_FILE);
    add_folder(&label, name);
    hv_str_adds(&label, "/" HV__SELFTEST_FILE);
    enum hv_status s = push_file(L, hv_str_cstr(&file), hv_str_cstr(&label), err);
    if (s == HV_OK && !lua_isfunction(L, -1)) {
        s = hv_err_at(err, HV_EPLUGIN, hv_str_cstr(&label), 1, 0,
                      HV__SELFTEST_FILE " returns a function(t), this one returns a %s",
                      luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    hv_str_free(&file);
    hv_str_free(&label);
    return s;
}

/** The member at the top of the stack, whose key is below it, is a function of plugins: adds its
 * name to the list at `names`. An error where it is something else under such a name, or a function
 * under another. False: no function. */
static bool take_function(lua_State *L, int names)
{
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";

    for (size_t i = 0; i < HV_COUNT(function_names); i++) {
        if (strcmp(function_names[i], key) != 0) {
            continue;
        }
        if (!lua_isfunction(L, -1)) {
            luaL_error(L, "%s: expected a function, found %s", key, luaL_typename(L, -1));
        }
        lua_pushvalue(L, -2);
        lua_rawseti(L, names, (lua_Integer)lua_rawlen(L, names) + 1);
        return true;
    }
    if (lua_isfunction(L, -1)) {
        luaL_error(L,
                   "unknown function '%s' (a plugin has plan, apply, order, replan, claim and "
                   "selftest)",
                   hv__tolstring(L, -2, NULL));
    }
    return false;
}

/** Pushes the table at `from` with the list `functions` in place of its functions. */
static void push_stripped(lua_State *L, int from)
{
    lua_newtable(L);
    int copy = lua_gettop(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, from) != 0; lua_pop(L, 1)) {
        if (!take_function(L, copy + 1)) {
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, copy);
        }
    }
    lua_setfield(L, copy, "functions");
}

/** The table at 1 without functions, and so the rows of its `systems`. */
static int strip_functions(lua_State *L)
{
    push_stripped(L, 1);
    if (lua_getfield(L, 1, "systems") != LUA_TTABLE) {
        lua_settop(L, 2);
        return 1;
    }
    lua_newtable(L); /* 4: the rows */
    for (lua_Integer i = 1; lua_rawgeti(L, 3, i) != LUA_TNIL; i++) {
        luaL_argexpected(L, lua_istable(L, -1), 1, "a table in systems");
        push_stripped(L, lua_gettop(L));
        lua_rawseti(L, 4, i);
        lua_pop(L, 1);
    }
    lua_settop(L, 4);
    lua_setfield(L, 2, "systems");
    lua_settop(L, 2);
    return 1;
}

enum hv_status hv__plugin_meta(struct hv_host *h, json_t **out, struct hv_err *err)
{
    *out = NULL;
    lua_pushcfunction(h->L, strip_functions);
    lua_pushvalue(h->L, -2);
    enum hv_status s = hv__call(h->L, 1, 1, err);
    if (s != HV_OK) {
        return s;
    }
    *out = hv__to_json(h->L, -1, err);
    lua_pop(h->L, 1);
    return *out != NULL ? HV_OK : HV_EPLUGIN;
}

static enum hv_status need_text(const struct hv_jp *p, const char *key, struct hv_arena *a,
                                const char **out, struct hv_err *err)
{
    struct hv_jp at;
    const char *text = NULL;
    enum hv_status s = hv_jp_need(p, key, "a text", &at, err);

    if (s == HV_OK) {
        s = hv_jp_string(&at, &text, err);
    }
    *out = hv_arena_strdup(a, text);
    return s;
}

static enum hv_status fill_choices(struct hv_option_row *o, const struct hv_jp *p,
                                   struct hv_arena *a, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "choices");

    if (hv_jp_none(&list)) {
        return o->type == HV_OPTION_CHOICE ? hv_jp_fail(p, err, "a choice needs `choices`") : HV_OK;
    }
    enum hv_status s = hv_jp_array(&list, &o->n_choices, err);
    o->choices = hv_arena_new(a, const char *, o->n_choices + 1);
    for (size_t i = 0; s == HV_OK && i < o->n_choices; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        const char *text = NULL;
        s = hv_jp_string(&at, &text, err);
        o->choices[i] = hv_arena_strdup(a, text);
    }
    return s;
}

static enum hv_status fill_option(struct hv_option_row *o, const struct hv_jp *p,
                                  struct hv_arena *a, struct hv_err *err)
{
    static const char *const keys[] = {"key", "type", "default", "min", "max", "choices", "help"};
    int type = HV_OPTION_STRING;
    enum hv_status s = hv_jp_object(p, keys, HV_COUNT(keys), err);

    o->min = o->max = HV_UNKNOWN;
    if (s == HV_OK) {
        s = need_text(p, "key", a, &o->key, err);
    }
    if (s == HV_OK) {
        s = need_text(p, "help", a, &o->help, err);
    }
    struct hv_jp at = {0};
    if (s == HV_OK) {
        s = hv_jp_need(p, "type", "integer, number, boolean, string, choice or schedule", &at, err);
    }
    if (s == HV_OK) {
        s = hv_jp_word(&at, type_names, HV_OPTION_TYPE_N, &type, err);
    }
    o->type = (enum hv_option_type)type;
    if (s == HV_OK) {
        s = hv_jp_opt_number(p, "min", -1e15, 1e15, &o->min, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_number(p, "max", -1e15, 1e15, &o->max, err);
    }
    if (s == HV_OK) {
        s = fill_choices(o, p, a, err);
    }
    struct hv_jp def = hv_jp_get(p, "default");
    o->def = hv_jp_none(&def) ? NULL : def.v;
    return s;
}

static enum hv_status fill_needs(struct hv_plugin *p, const struct hv_jp *root, struct hv_arena *a,
                                 struct hv_err *err)
{
    static const char *const keys[] = {"model", "jobs", "mode"};
    static const char *const models[] = {"transformer", "layers", "graph", "modules"};
    struct hv_jp needs = hv_jp_get(root, "needs");
    int word = -1;
    const char *jobs = NULL, *mode = NULL;

    if (hv_jp_none(&needs) || (json_is_array(needs.v) && json_array_size(needs.v) == 0)) {
        return HV_OK;
    }
    enum hv_status s = hv_jp_object(&needs, keys, HV_COUNT(keys), err);
    if (s == HV_OK) {
        s = hv_jp_opt_word(&needs, "model", models, HV_COUNT(models), &word, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_string(&needs, "jobs", &jobs, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_string(&needs, "mode", &mode, err);
    }
    p->needs_model = word >= 0 ? models[word] : NULL;
    p->needs_jobs = hv_arena_strdup(a, jobs);
    p->needs_mode = hv_arena_strdup(a, mode);
    return s;
}

/** What others need to know of a strategy: `effort`, `stale`, `serves`, `file_order`, `as_given`.
 */
static enum hv_status fill_facts(struct hv_plugin *p, const struct hv_jp *root, struct hv_err *err)
{
    const char *words[HV_EFFORT_N - HV_EFFORT_QUICK];
    int word = -1;

    for (size_t i = 0; i < HV_COUNT(words); i++) {
        words[i] = efforts[HV_EFFORT_QUICK + i].name;
    }
    enum hv_status s = hv_jp_opt_word(root, "effort", words, HV_COUNT(words), &word, err);
    p->effort = (enum hv_effort)(word + HV_EFFORT_QUICK);
    if (s == HV_OK) {
        s = hv_jp_opt_bool(root, "stale", &p->stale, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_bool(root, "serves", &p->serves, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_bool(root, "file_order", &p->file_order, err);
    }
    if (s == HV_OK) {
        s = hv_jp_opt_bool(root, "as_given", &p->as_given, err);
    }
    return s;
}

static enum hv_status fill_functions(struct hv_plugin *p, const struct hv_jp *root,
                                     struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "functions");
    size_t n = 0;
    enum hv_status s = hv_jp_array(&list, &n, err);

    for (size_t i = 0; s == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        int f = 0;
        s = hv_jp_word(&at, function_names, HV_PLUGIN_FUNCTION_N, &f, err);
        p->has[f] = true;
    }
    if (s == HV_OK && !p->has[HV_PLUGIN_PLAN] && !p->has[HV_PLUGIN_APPLY] &&
        !p->has[HV_PLUGIN_ORDER]) {
        s = hv_jp_fail(root, err, "a plugin needs plan, apply or order");
    }
    return s;
}

static bool is_id(const char *id)
{
    size_t n = strlen(id);
    return n > 0 && n <= 40 && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

static enum hv_status fill_texts(struct hv_plugin *p, const struct hv_jp *root, struct hv_arena *a,
                                 struct hv_err *err)
{
    const struct {
        const char *key;
        const char **to;
        bool optional; /* a schedule of the user's own has no publication */
    } texts[] = {{"id", &p->id, false},
                 {"title", &p->title, false},
                 {"summary", &p->summary, false},
                 {"system", &p->system, true},
                 {"reference", &p->reference, true}};
    struct hv_jp at;
    int64_t api = 0;
    enum hv_status s = hv_jp_need(root, "api", "1", &at, err);

    if (s == HV_OK) {
        s = hv_jp_int(&at, HV_PLUGIN_API, HV_PLUGIN_API, &api, err);
    }
    for (size_t i = 0; s == HV_OK && i < HV_COUNT(texts); i++) {
        at = hv_jp_get(root, texts[i].key);
        if (texts[i].optional && hv_jp_none(&at)) {
            continue;
        }
        s = need_text(root, texts[i].key, a, texts[i].to, err);
    }
    if (s == HV_OK && !is_id(p->id)) {
        at = hv_jp_get(root, "id");
        s = hv_jp_expected(&at, err, "a name of a-z, 0-9, - and _");
    }
    return s;
}

static enum hv_status fill_options(struct hv_plugin *p, const struct hv_jp *root,
                                   struct hv_arena *a, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "options");
    enum hv_status s = hv_jp_none(&list) ? HV_OK : hv_jp_array(&list, &p->n_options, err);

    p->options = hv_arena_new(a, struct hv_option_row, p->n_options + 1);
    for (size_t i = 0; s == HV_OK && i < p->n_options; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        s = fill_option(&p->options[i], &at, a, err);
        for (size_t j = 0; s == HV_OK && j < i; j++) {
            if (strcmp(p->options[i].key, p->options[j].key) == 0) {
                s = hv_jp_fail(&at, err, "option '%s' is declared twice", p->options[i].key);
            }
        }
    }
    return s;
}

enum hv_status hv__plugin_fill(struct hv_plugin *p, json_t *meta, struct hv_arena *arena,
                               struct hv_err *err)
{
    static const char *const keys[] = {
        "api",   "id",      "title",     "kind",     "system",   "reference", "summary",
        "needs", "options", "functions", "effort",   "stale",    "serves",    "file_order",
        "venue", "year",    "sets",      "searches", "verified", "as_given"};
    char name[256];
    snprintf(name, sizeof name, "%s", p->name);
    struct hv_json doc = {.root = meta, .name = name};
    struct hv_jp root = hv_jp_root(&doc);
    enum hv_status s = hv_jp_object(&root, keys, HV_COUNT(keys), err);

    if (s == HV_OK) {
        s = fill_texts(p, &root, arena, err);
    }
    if (s == HV_OK) {
        s = hv__fill_kinds(p, &root, arena, err);
    }
    if (s == HV_OK) {
        s = hv__fill_paper(p, &root, arena, err);
    }
    if (s == HV_OK) {
        s = fill_needs(p, &root, arena, err);
    }
    if (s == HV_OK) {
        s = fill_facts(p, &root, err);
    }
    if (s == HV_OK) {
        s = fill_functions(p, &root, err);
    }
    if (s == HV_OK) {
        s = fill_options(p, &root, arena, err);
    }
    if (p->in_folder && hv__has_selftest_file(p->path)) {
        p->has[HV_PLUGIN_SELFTEST] = true;
    }
    json_t *checked = NULL;
    if (s == HV_OK) { /* defaults must be values that the rows allow */
        s = hv_options_check(p, NULL, &checked, err);
    }
    json_decref(checked);
    if (s != HV_OK && err != NULL) {
        err->status = HV_EPLUGIN;
        if (err->file[0] == '\0') {
            snprintf(err->file, sizeof err->file, "%s", p->name);
        }
        if (err->line == 0) {
            err->line = 1;
        }
    }
    return s == HV_OK ? HV_OK : HV_EPLUGIN;
}
