/** Inside of the loader: reading metadata, shared by the list and the cache. */
#ifndef HV_SCRIPTING_PLUGIN_PLUGIN_INT_H
#define HV_SCRIPTING_PLUGIN_PLUGIN_INT_H

#include "scripting/host/host_int.h"
#include "scripting/plugin/plugin.h"
#include "solver/base/json/json.h"

/**
 * Runs the plugin's chunk in a fresh environment of the host and leaves the returned table on Lua's
 * stack. `path` is read, `name` is shown in messages.
 */
enum hv_status hv__plugin_push(lua_State *L, const char *path, const char *name,
                               struct hv_err *err) HV_NODISCARD;
/**
 * The same for a strategy: of a row of a family, the table has the family's members with those of
 * the row over them, without `systems`. Errors: HV_EPLUGIN, also where the file has no such row any
 * more.
 */
enum hv_status hv__plugin_push_of(lua_State *L, const struct hv_plugin *p,
                                  struct hv_err *err) HV_NODISCARD;
/** Runs the selftest.lua beside a plugin.lua (path and name of that one) in a fresh environment and
 * leaves the function it returns on Lua's stack. */
enum hv_status hv__plugin_push_selftest(lua_State *L, const char *path, const char *name,
                                        struct hv_err *err) HV_NODISCARD;
/** Metadata tree of the plugin table at the top (functions become the list "functions", in the rows
 * of `systems` too). */
enum hv_status hv__plugin_meta(struct hv_host *h, json_t **out, struct hv_err *err) HV_NODISCARD;
/** A file whose metadata is to be read, and the result. */
struct hv__probe {
    const char *path, *name;
    json_t *meta; /**< a new tree (owner: caller), or NULL */
    enum hv_status status;
    struct hv_err err;
};
/**
 * Metadata of files by running their chunks in a child process: what a chunk does (a pattern that
 * is never done matching, a crash) ends there, after PROBE_LIMIT_S at the latest, and the others
 * are read all the same. Errors per file: HV_EPLUGIN with the file and what is wrong; HV_EIO.
 */
void hv__plugin_probe(struct hv__probe *probes, size_t n);
/**
 * The strategies of a metadata tree: the tree itself, or for each row of `systems` a tree with the
 * family's members and those of the row over them. *out is a new list (owner: caller). Errors:
 * HV_EPLUGIN.
 */
enum hv_status hv__plugin_rows(json_t *meta, const char *name, json_t **out,
                               struct hv_err *err) HV_NODISCARD;
/** Reads `kind`: a word or a list of them. */
enum hv_status hv__fill_kinds(struct hv_plugin *p, const struct hv_jp *root, struct hv_arena *arena,
                              struct hv_err *err) HV_NODISCARD;
/** Reads `venue`, `year`, `sets`, `searches` and `verified`. */
enum hv_status hv__fill_paper(struct hv_plugin *p, const struct hv_jp *root, struct hv_arena *arena,
                              struct hv_err *err) HV_NODISCARD;
/** Fills a strategy from its tree (hv__plugin_rows); strings and rows go to the arena, defaults and
 * `sets` stay in the tree. p->path, name, in_folder, shipped and family are set. */
enum hv_status hv__plugin_fill(struct hv_plugin *p, json_t *meta, struct hv_arena *arena,
                               struct hv_err *err) HV_NODISCARD;

#endif
