/** Inside of the loader: reading metadata, shared by the list and the cache. */
#ifndef HV_SCRIPTING_PLUGIN_PLUGIN_INT_H
#define HV_SCRIPTING_PLUGIN_PLUGIN_INT_H

#include "scripting/host/host_int.h"
#include "scripting/plugin/plugin.h"

/**
 * Runs the plugin's chunk in a fresh environment of the host and leaves the returned table on Lua's
 * stack. `path` is read, `name` is shown in messages.
 */
enum hv_status hv__plugin_push(lua_State *L, const char *path, const char *name,
                               struct hv_err *err) HV_NODISCARD;
/** Runs the selftest.lua beside a plugin.lua (path and name of that one) in a fresh environment and
 * leaves the function it returns on Lua's stack. */
enum hv_status hv__plugin_push_selftest(lua_State *L, const char *path, const char *name,
                                        struct hv_err *err) HV_NODISCARD;
/** Metadata tree of the plugin table at the top (functions become the list "functions"). */
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
/** Fills a plugin from its metadata tree; strings and rows go to the arena, defaults stay in the
 * tree. */
enum hv_status hv__plugin_fill(struct hv_plugin *p, json_t *meta, struct hv_arena *arena,
                               struct hv_err *err) HV_NODISCARD;

#endif
