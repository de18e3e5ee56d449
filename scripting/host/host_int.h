/** Internals of the scripting room: declarations shared by the host, the API tables and the loader.
 * Includes Lua. */
#ifndef HV_SCRIPTING_HOST_HOST_INT_H
#define HV_SCRIPTING_HOST_HOST_INT_H

#include "scripting/host/host.h"
#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/base/str.h"
#include <jansson.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

struct hv__run;

/** A host. */
struct hv_host {
    lua_State *L;
    struct hv_host_limits limits;
    size_t used_bytes;
    int64_t instructions_left;
    double start_s;     /**< monotonic clock */
    const char *killed; /**< why the run must end, or NULL; once set no Lua runs any more */
    bool stopped;       /**< killed by cancel or deadline rather than by the plugin's own fault */
    struct hv_rng rng;
    struct hv_arena arena; /**< scratch of API calls; rewound when the outermost call ends */
    struct hv_str message, traceback;
    char origin_file[256]; /**< function called last from C, for errors that name no line; or "" */
    unsigned origin_line;
    struct hv__run *run; /**< the run in progress, or NULL: then there is no ctx and no cost */
    uint32_t generation; /**< of handles: goes up when a run ends */
};

/** The host of a state. */
struct hv_host *hv__host(lua_State *L);
/** Allocator of states; its `ud` is the host, whose byte cap holds. */
void *hv__limited_alloc(void *ud, void *p, size_t old_size, size_t new_size);
/** Sets the hook that counts instructions and looks at the clock, for this stack. */
void hv__host_watch(lua_State *L);
/** Gives a host that was not killed its whole budget again: instructions, time and the seed. */
void hv__host_rearm(struct hv_host *h);
/** Fills the sandbox: the master table of globals, `hv` included, which open_api fills (NULL:
 * empty).
 */
void hv__sandbox_open(lua_State *L, void (*open_api)(lua_State *L));
/** Pushes a fresh environment (a deep copy of the master globals) whose `require` looks in
 * `folder` first (NULL: in share/lua only); messages call that folder `label`. */
void hv__env_push(lua_State *L, const char *folder, const char *label);
/** As hv__env_push, protected. */
enum hv_status hv__env(lua_State *L, const char *folder, const char *label,
                       struct hv_err *err) HV_NODISCARD;
/**
 * Compiles a text chunk and calls it in the environment at `env`; leaves one result.
 * Errors: as hv__call.
 */
enum hv_status hv__load(lua_State *L, const char *text, size_t n, const char *name, int env,
                        struct hv_err *err) HV_NODISCARD;
/** Protected call, on the stack of L, which may be a coroutine's, of the function below n_args
 * arguments; fills err with file:line, and the host's traceback. */
enum hv_status hv__call(lua_State *L, int n_args, int n_results, struct hv_err *err) HV_NODISCARD;
/** Remembers the Lua function at the top as the one to blame where an error names no line. */
void hv__blame(lua_State *L);
/** Runs a C function protected with one light userdata argument; for set-up code that may run out
 * of memory. */
enum hv_status hv__guard(struct hv_host *h, lua_CFunction f, void *arg,
                         struct hv_err *err) HV_NODISCARD;
/** Raises an error when the run has to end. Every hv call begins with it. */
void hv__check_stop(lua_State *L);
/** Seconds since the host was made. */
double hv__elapsed_s(const struct hv_host *h);
/** `print` and `hv.log`: the arguments as one line to the log of the run. */
int hv__print(lua_State *L);
/** Pushes a text for any value that never shows an address. */
const char *hv__tolstring(lua_State *L, int i, size_t *n);
/** Raises the recorded error as a Lua error with the caller's file:line. */
int hv__raise(lua_State *L, const struct hv_err *err);

/* Values. */

/**
 * JSON tree of the Lua value at i; keys of plan files in their usual order, others sorted; integral
 * numbers as integers. Never raises a Lua error. Returns NULL with a text in err (functions,
 * cycles, too deep, mixed tables).
 */
json_t *hv__to_json(lua_State *L, int i, struct hv_err *err);
/** Pushes a JSON tree as Lua value (null = nil). May raise a memory error. */
void hv__push_json(lua_State *L, const json_t *v);

/** Raises "fn: key: expected …, found …". */
int hv__bad(lua_State *L, const char *fn, const char *key, const char *expected, int found);
/** Checks that argument i is a table with keys from the NULL-terminated list only. */
void hv__check_keys(lua_State *L, int i, const char *fn, const char *const *keys);
/** Number field of the table at i, in [lo, hi]; the field must be there when `otherwise` < lo.
 * Without the field: `otherwise`, which may be NaN. */
double hv__num(lua_State *L, int i, const char *fn, const char *key, double otherwise, double lo,
               double hi);
/** Whole number field; the field must be there when `otherwise` < lo. */
int64_t hv__int(lua_State *L, int i, const char *fn, const char *key, int64_t otherwise, int64_t lo,
                int64_t hi);
/** Boolean field. */
bool hv__bool(lua_State *L, int i, const char *fn, const char *key, bool otherwise);
/** String field (borrowed as long as the table holds it); `otherwise` may be NULL. */
const char *hv__text(lua_State *L, int i, const char *fn, const char *key, const char *otherwise);
/** One of n words. */
int hv__word(lua_State *L, int i, const char *fn, const char *key, const char *const *words,
             size_t n, int otherwise);
/** Array of numbers at field `key` (or the value at i itself when key is NULL) in the host's arena.
 */
double *hv__numbers(lua_State *L, int i, const char *fn, const char *key, size_t *n);
/**
 * Zeroed memory for n objects of `size` bytes from the host's arena. Raises an error where the
 * scratch of the run would exceed 1 GiB: a list may name one table many times, so what is read of
 * Lua may be much larger than what Lua holds.
 */
void *hv__scratch(lua_State *L, size_t n, size_t size);
/** `T *hv__scratch_new(L, T, n)`: n zeroed objects of type T. */
#define hv__scratch_new(L, T, n) ((T *)hv__scratch((L), (n), sizeof(T)))
/** Pushes an array of n numbers (unknown = nil is not allowed in arrays: NaN stays NaN). */
void hv__push_numbers(lua_State *L, const double *x, size_t n);
/** Sets t[key] = x on the table at the top; HV_UNKNOWN is left out. */
void hv__set_num(lua_State *L, const char *key, double x);
/** Sets t[key] = text; NULL is left out. */
void hv__set_text(lua_State *L, const char *key, const char *text);

/* Tables of functions for plugins: host/api.c. */

/** Registry key of the list of names of all API functions; the reference must have each. */
#define HV__API_NAMES "hv.names"
/** Adds the rows to the table `hv.table` (NULL: `hv` itself), where `hv` is at the top of the
 * stack. What a function takes from the host's arena is freed when it returns. */
void hv__api_add(lua_State *L, const char *table, const luaL_Reg *rows);
/** Puts the names of methods ("lp:var") on the list; the caller puts them into a metatable. */
void hv__api_names(lua_State *L, const char *object, const luaL_Reg *methods);

/* Lua functions that solvers call: host/callback.c. */

/**
 * Calls the function at the top of the stack with n numbers, as arguments (whole ones) or as one
 * list; its one result must be a number (nil = infinity). The function stays. Never raises: also
 * running out of memory is a status, so solvers may call it from their depths.
 * Errors: HV_EPLUGIN with the message of the function, which names its file:line.
 */
enum hv_status hv__call_number(lua_State *L, const double *x, size_t n, bool as_list, double *out,
                               struct hv_err *err);
/** True when the run of the host `ctx` has to end; the cancel callback of the solvers. */
bool hv__is_cancelled(void *ctx);

#endif
