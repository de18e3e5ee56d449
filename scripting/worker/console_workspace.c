/*
 * The `workspace` of a console: its documents as tables that may be changed, and the changes as
 * commands. ui/session carries them out, console.c runs the lines.
 */
#include "scripting/api/plan_int.h"
#include "scripting/worker/console_int.h"
#include "solver/base/json/json.h"

#include <string.h>

#define WORKSPACE "hv.workspace"
#define DEPTH_MAX 60

static const char *const doc_names[HV__CONSOLE_DOCS] = {"cluster", "model", "job"};

/* Differences of two trees as commands */

static void add_command(json_t *out, const char *what, const struct hv_str *path, json_t *value)
{
    json_t *c = json_object();

    json_object_set_new(c, "do", json_string(what));
    json_object_set_new(c, "path", json_string(hv_str_cstr(path)));
    if (value != NULL) {
        json_object_set(c, "value", value);
    }
    json_array_append_new(out, c);
}

/** Cuts the path back to n bytes. */
static void shorten(struct hv_str *path, size_t n)
{
    path->n = n;
    path->p[n] = '\0';
}

/** Adds one key as key paths write it: ".name", or ["a.b"] where the name would not read back. */
static void add_key(struct hv_str *path, const char *key)
{
    if (key[strcspn(key, ".[\"\\")] == '\0') {
        hv_str_addf(path, ".%s", key);
        return;
    }
    hv_str_adds(path, "[\"");
    for (; *key != '\0'; key++) {
        if (*key == '"' || *key == '\\') {
            hv_str_addc(path, '\\');
        }
        hv_str_addc(path, *key);
    }
    hv_str_adds(path, "\"]");
}

static bool holds_tables(const json_t *list)
{
    const json_t *first = json_array_get(list, 0);
    return json_is_object(first) || json_is_array(first);
}

static void diff(json_t *out, struct hv_str *path, json_t *a, json_t *b, int depth);

static void diff_objects(json_t *out, struct hv_str *path, json_t *a, json_t *b, int depth)
{
    const size_t n = path->n;
    const char *key;
    json_t *value;

    json_object_foreach(b, key, value)
    {
        json_t *old = json_object_get(a, key);
        add_key(path, key);
        if (old != NULL) {
            diff(out, path, old, value, depth);
        } else {
            add_command(out, "set", path, value);
        }
        shorten(path, n);
    }
    json_object_foreach(a, key, value)
    {
        if (json_object_get(b, key) != NULL) {
            continue;
        }
        add_key(path, key);
        add_command(out, "remove", path, NULL);
        shorten(path, n);
    }
}

/** Lists of tables: equal ends stay, what is between is changed in place, then grows or shrinks. */
static void diff_lists(json_t *out, struct hv_str *path, json_t *a, json_t *b, int depth)
{
    size_t na = json_array_size(a), nb = json_array_size(b), head = 0, tail = 0;
    const size_t n = path->n;

    while (head < na && head < nb && json_equal(json_array_get(a, head), json_array_get(b, head))) {
        head++;
    }
    while (tail < na - head && tail < nb - head &&
           json_equal(json_array_get(a, na - 1 - tail), json_array_get(b, nb - 1 - tail))) {
        tail++;
    }
    size_t common = (na < nb ? na : nb) - tail;
    for (size_t i = head; i < common; i++) {
        hv_str_addf(path, "[%zu]", i);
        diff(out, path, json_array_get(a, i), json_array_get(b, i), depth);
        shorten(path, n);
    }
    for (size_t i = common; i < nb - tail; i++) {
        hv_str_addf(path, "[%zu]", i);
        add_command(out, "insert", path, json_array_get(b, i));
        shorten(path, n);
    }
    for (size_t i = common; i < na - tail; i++) {
        hv_str_addf(path, "[%zu]", common);
        add_command(out, "remove", path, NULL);
        shorten(path, n);
    }
}

/* Recursion is bounded by DEPTH_MAX; trees made from Lua are less deep. */
static void diff(json_t *out, struct hv_str *path, json_t *a, json_t *b, int depth)
{
    if (json_equal(a, b)) {
        return;
    }
    if (depth < DEPTH_MAX && json_is_object(a) && json_is_object(b)) {
        diff_objects(out, path, a, b, depth + 1);
    } else if (depth < DEPTH_MAX && json_is_array(a) && json_is_array(b) && holds_tables(a) &&
               holds_tables(b)) {
        diff_lists(out, path, a, b, depth + 1);
    } else {
        add_command(out, "set", path, b);
    }
}

/* The tables */

/** The tree of a value once it has been a table: no null, lists for empty objects. */
static json_t *settle(lua_State *L, const json_t *tree)
{
    struct hv_err err = {0};

    hv__push_json(L, tree);
    json_t *settled = hv__to_json(L, -1, &err);
    lua_pop(L, 1);
    return settled;
}

/** Puts the documents as tables into the workspace at the top. */
static void put_documents(lua_State *L, struct hv__workspace *w)
{
    for (int d = 0; d < HV__CONSOLE_DOCS; d++) {
        if (w->trees[d] == NULL) {
            continue;
        }
        hv__push_json(L, w->trees[d]);
        lua_setfield(L, -2, doc_names[d]);
    }
}

void hv__workspace_open(lua_State *L, struct hv__workspace *w, const struct hv_inputs *in)
{
    const json_t *roots[HV__CONSOLE_DOCS] = {in->cluster.json.root, in->model.json.root,
                                             in->job.json.root};

    for (int d = 0; d < HV__CONSOLE_DOCS; d++) {
        if (w->trees[d] == NULL && json_is_object(roots[d])) {
            w->trees[d] = settle(L, roots[d]);
        }
    }
    lua_newtable(L);
    put_documents(L, w);
    lua_newtable(L);
    lua_setfield(L, -2, "plans");
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, WORKSPACE);
}

/** The tree of the plan at the top (a handle or a table), popped; NULL with err. The table `plans`
 * below its key gets a table in the place of a handle, which may be stale at the next line. */
static json_t *pop_plan(lua_State *L, struct hv_err *err)
{
    json_t *tree;

    if (luaL_testudata(L, -1, HV__PLAN) == NULL) {
        tree = hv__to_json(L, -1, err);
        lua_pop(L, 1);
        return tree;
    }
    const json_t *root = hv__plan_at(L, -1)->doc.json.root;
    lua_pushvalue(L, -2);
    hv__push_json(L, root);
    tree = hv__to_json(L, -1, err);
    lua_rawset(L, -5);
    lua_pop(L, 1);
    return tree;
}

/** Plans that the table `plans` of the workspace at the top did not have before. */
static bool take_plans(lua_State *L, struct hv__workspace *w, json_t *out, struct hv_err *err)
{
    if (lua_getfield(L, -1, "plans") != LUA_TTABLE) {
        lua_pop(L, 1);
        hv_err_set(err, HV_EPLUGIN, "workspace.plans: expected a table of plans by name");
        return false;
    }
    for (lua_pushnil(L); lua_next(L, -2) != 0;) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            lua_pop(L, 3);
            hv_err_set(err, HV_EPLUGIN,
                       "workspace.plans: expected names as keys, as in "
                       "workspace.plans.mine = hv.strategy(\"uniform\")");
            return false;
        }
        const char *name = lua_tostring(L, -2);
        json_t *plan = pop_plan(L, err);
        if (plan == NULL) {
            hv_err_context(err, "workspace.plans.%s", name);
            lua_pop(L, 2);
            return false;
        }
        if (!json_equal(plan, json_object_get(w->plans, name))) {
            json_object_set(w->plans, name, plan);
            json_array_append_new(
                out, json_pack("{s:s, s:s, s:O}", "do", "plan", "name", name, "plan", plan));
        }
        json_decref(plan);
    }
    lua_pop(L, 1);
    return true;
}

bool hv__workspace_take(lua_State *L, struct hv__workspace *w, json_t *out, struct hv_err *err)
{
    bool ok = lua_getfield(L, LUA_REGISTRYINDEX, WORKSPACE) == LUA_TTABLE;

    for (int d = 0; ok && d < HV__CONSOLE_DOCS; d++) {
        struct hv_str path = {0};
        if (w->trees[d] == NULL) {
            continue;
        }
        lua_getfield(L, -1, doc_names[d]);
        json_t *now = hv__to_json(L, -1, err);
        lua_pop(L, 1);
        ok = json_is_object(now);
        if (now != NULL && !ok) {
            hv_err_set(err, HV_EPLUGIN, "expected a table");
        }
        if (!ok) {
            hv_err_context(err, "workspace.%s", doc_names[d]);
        }
        hv_str_adds(&path, doc_names[d]);
        if (ok) {
            diff(out, &path, w->trees[d], now, 0);
        }
        hv_str_free(&path);
        json_decref(w->changed[d]);
        w->changed[d] = ok && !json_equal(now, w->trees[d]) ? json_incref(now) : NULL;
        json_decref(now);
    }
    ok = ok && take_plans(L, w, out, err);
    lua_pop(L, 1);
    return ok;
}

void hv__workspace_settle(lua_State *L, struct hv__workspace *w, bool keep)
{
    for (int d = 0; d < HV__CONSOLE_DOCS; d++) {
        if (keep && w->changed[d] != NULL) {
            json_decref(w->trees[d]);
            w->trees[d] = json_incref(w->changed[d]);
        }
        json_decref(w->changed[d]);
        w->changed[d] = NULL;
    }
    if (keep) {
        return;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, WORKSPACE);
    put_documents(L, w);
    lua_pop(L, 1);
}

void hv__workspace_free(struct hv__workspace *w)
{
    for (int d = 0; d < HV__CONSOLE_DOCS; d++) {
        json_decref(w->trees[d]);
        json_decref(w->changed[d]);
    }
    json_decref(w->plans);
}
