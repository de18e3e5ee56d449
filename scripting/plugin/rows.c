/*
 * Families: a plugin with `systems = { row, … }` is one engine with several strategies. From its
 * metadata to one tree per row, and from its table to that of a row: in both, members of the row
 * stand over those of the family.
 */
#include "scripting/host/run_state.h"
#include "scripting/plugin/plugin_int.h"

#include <string.h>

#define FAMILIES "hv.families" /* in the registry: tables of families by file and job */

/** The functions of the family and of the row, each once. */
static json_t *joined_functions(const json_t *family, const json_t *row)
{
    json_t *all = json_array();
    const json_t *lists[] = {family, row};

    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < json_array_size(lists[l]); i++) {
            json_t *name = json_array_get(lists[l], i);
            bool known = false;
            for (size_t k = 0; k < json_array_size(all); k++) {
                known = known || json_equal(json_array_get(all, k), name);
            }
            if (!known) {
                json_array_append(all, name);
            }
        }
    }
    return all;
}

/** One tree: the family's members, those of the row over them. */
static json_t *merged(json_t *family, json_t *row)
{
    json_t *out = json_copy(family);

    json_object_del(out, "systems");
    json_object_update(out, row);
    json_object_set_new(
        out, "functions",
        joined_functions(json_object_get(family, "functions"), json_object_get(row, "functions")));
    return out;
}

/** True where an earlier row has the id of row i. */
static bool is_repeated(const json_t *systems, size_t i)
{
    const json_t *id = json_object_get(json_array_get(systems, i), "id");

    for (size_t k = 0; k < i; k++) {
        if (json_equal(json_object_get(json_array_get(systems, k), "id"), id)) {
            return true;
        }
    }
    return false;
}

enum hv_status hv__plugin_rows(json_t *meta, const char *name, json_t **out, struct hv_err *err)
{
    json_t *systems = json_object_get(meta, "systems");
    size_t n = json_array_size(systems);

    *out = json_array();
    if (systems == NULL) {
        json_array_append(*out, meta);
        return HV_OK;
    }
    if (!json_is_array(systems) || n == 0) {
        return hv_err_at(err, HV_EPLUGIN, name, 1, 0,
                         "systems: expected a list with a row for each strategy");
    }
    if (json_object_get(meta, "id") != NULL) {
        return hv_err_at(err, HV_EPLUGIN, name, 1, 0,
                         "a family has no id, its rows have: take `id` out, or `systems`");
    }
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array_get(systems, i);
        if (!json_is_object(row) || !json_is_string(json_object_get(row, "id"))) {
            return hv_err_at(err, HV_EPLUGIN, name, 1, 0, "systems[%zu]: expected a row with an id",
                             i + 1);
        }
        if (is_repeated(systems, i)) {
            return hv_err_at(err, HV_EPLUGIN, name, 1, 0, "systems: two rows have the id '%s'",
                             json_string_value(json_object_get(row, "id")));
        }
        json_array_append_new(*out, merged(meta, row));
    }
    return HV_OK;
}

/** Copies the members of the table at `from` to the table at `to`. */
static void copy_members(lua_State *L, int from, int to)
{
    for (lua_pushnil(L); lua_next(L, from) != 0; lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, to);
    }
}

/** Pushes the row of that id of the list at `systems`; nil where there is none. */
static void push_row(lua_State *L, int systems, const char *id)
{
    for (lua_Integer i = 1; lua_rawgeti(L, systems, i) == LUA_TTABLE; i++) {
        int type = lua_getfield(L, -1, "id");
        bool found = type == LUA_TSTRING && strcmp(lua_tostring(L, -1), id) == 0;
        lua_pop(L, 1);
        if (found) {
            return;
        }
        lua_pop(L, 1);
    }
}

/**
 * Pushes the family's table. Its chunk is run once for all rows and calls of a run (or of a job of
 * its queue), so that its rows share the prices that its libraries keep.
 */
static enum hv_status push_family(lua_State *L, const struct hv_plugin *p, struct hv_err *err)
{
    const struct hv__run *run = hv__host(L)->run;
    enum hv_status s = HV_OK;

    if (lua_getfield(L, LUA_REGISTRYINDEX, FAMILIES) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, LUA_REGISTRYINDEX, FAMILIES);
    }
    int families = lua_gettop(L);
    lua_pushfstring(L, "%s@%d", p->path, run != NULL ? (int)run->i_job : -1);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, families) == LUA_TNIL) {
        lua_pop(L, 1);
        s = hv__plugin_push(L, p->path, p->name, err);
        if (s == HV_OK) {
            lua_pushvalue(L, families + 1);
            lua_pushvalue(L, -2);
            lua_rawset(L, families);
        }
    }
    if (s == HV_OK) {
        lua_replace(L, families);
    }
    lua_settop(L, families - (s == HV_OK ? 0 : 1));
    return s;
}

enum hv_status hv__plugin_push_of(lua_State *L, const struct hv_plugin *p, struct hv_err *err)
{
    if (p->family == NULL) {
        return hv__plugin_push(L, p->path, p->name, err);
    }
    enum hv_status s = push_family(L, p, err);
    if (s != HV_OK) {
        return s;
    }
    int family = lua_gettop(L);
    if (lua_getfield(L, family, "systems") == LUA_TTABLE) {
        push_row(L, family + 1, p->id);
    }
    if (!lua_istable(L, -1) || lua_gettop(L) != family + 2) {
        lua_settop(L, family - 1);
        return hv_err_at(err, HV_EPLUGIN, p->name, 1, 0,
                         "systems: the file has no row '%s' any more; start again to read it",
                         p->id);
    }
    lua_newtable(L);
    copy_members(L, family, family + 3);
    copy_members(L, family + 2, family + 3);
    lua_pushnil(L);
    lua_setfield(L, family + 3, "systems");
    lua_replace(L, family);
    lua_settop(L, family);
    return HV_OK;
}
