/*
 * hv.opt: distribution and linear programs over solver/optim. Numbers only.
 * Not here: partitions (api_opt_partition.c), the classics (api_opt_classics.c).
 */
#include "scripting/host_int.h"
#include "solver/base/units.h"
#include "solver/optim/distribute.h"
#include "solver/optim/lp.h"

#include <math.h>
#include <string.h>

#define LP          "hv.lp"
#define LP_VARS_MAX 1000000

bool hv__is_cancelled(void *ctx)
{
    const struct hv_host *h = ctx;
    return (h->limits.cancel != NULL && h->limits.cancel(h->limits.ctx)) ||
           (h->limits.deadline_s > 0 && hv__elapsed_s(h) > h->limits.deadline_s);
}

static void push_distribution(lua_State *L, const struct hv_distribution *d, size_t n, int64_t base)
{
    lua_createtable(L, 0, 4);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushinteger(L, (lua_Integer)(d->count[i] + base));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "counts");
    hv__set_num(L, "value", d->objective);
    hv__set_num(L, "bound", d->bound);
    lua_pushboolean(L, d->proven);
    lua_setfield(L, -2, "proven");
}

/** Optional list field of n numbers, or NULL. */
static const double *optional_numbers(lua_State *L, const char *fn, const char *key, size_t n)
{
    size_t len = 0;
    bool there = lua_getfield(L, 1, key) != LUA_TNIL;

    lua_pop(L, 1);
    if (!there)
        return NULL;
    const double *x = hv__numbers(L, 1, fn, key, &len);
    if (len != n)
        luaL_error(L, "%s: %s: expected %d numbers, found %d", fn, key, (int)n, (int)len);
    return x;
}

/** A whole number out of a list. */
static int64_t whole(lua_State *L, const char *fn, const char *key, double x)
{
    if (!(fabs(x) <= 1e15) || x != floor(x))
        luaL_error(L, "%s: %s: expected whole numbers", fn, key);
    return (int64_t)x;
}

static struct hv_share *read_shares(lua_State *L, const char *fn, int64_t total, size_t *n)
{
    const double *time = hv__numbers(L, 1, fn, "time", n);
    const double *sizes = optional_numbers(L, fn, "sizes", *n);
    const double *caps = optional_numbers(L, fn, "caps", *n),
                 *min = optional_numbers(L, fn, "min", *n);
    const double *fixed = optional_numbers(L, fn, "fixed", *n);
    struct hv_share *shares = hv_arena_new(&hv__host(L)->arena, struct hv_share, *n + 1);

    for (size_t i = 0; i < *n; i++)
        shares[i] = (struct hv_share){.fixed = fixed != NULL ? fixed[i] : 0,
                                      .rate = time[i],
                                      .size = sizes != NULL ? whole(L, fn, "sizes", sizes[i]) : 1,
                                      .min = min != NULL ? whole(L, fn, "min", min[i]) : 0,
                                      .max = caps != NULL ? whole(L, fn, "caps", caps[i]) : total};
    return shares;
}

/***
Splits a whole total over shares. Exact.
@function hv.opt.distribute
@tparam table q {total, time = time per unit (minvar: weight, ratio: proportion), fixed, sizes, min,
caps, objective = "minmax|minvar|ratio"}, or {items = list of times, slots, most = items per
slot, objective = "lpt"}
@treturn table {counts, value, bound, proven} (lpt: counts holds the slot of each item); nil and the
reason when nothing fits
@units counts are whole numbers; times any unit, the same in and out
@raise sizes, caps or totals that are not whole, lists of another length
@usage local d = hv.opt.distribute{total = 48, time = {1, 1, 2, 2}, objective = "minmax"}
assert(d.counts[1] == 16 and d.counts[3] == 8)
*/
static int opt_distribute(lua_State *L)
{
    static const char *const keys[] = {"total", "items", "time", "fixed",     "sizes", "min",
                                       "caps",  "slots", "most", "objective", NULL};
    static const char *const objectives[] = {"minmax", "minvar", "ratio", "lpt"};
    static const char fn[] = "hv.opt.distribute";
    struct hv_host *h = hv__host(L);
    struct hv_distribution d = {0};
    struct hv_err err = {0};
    enum hv_status s;
    size_t n = 0;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    int objective = hv__word(L, 1, fn, "objective", objectives, HV_COUNT(objectives), 0);
    if (objective == 3) {
        const double *items = hv__numbers(L, 1, fn, "items", &n);
        size_t slots = (size_t)hv__int(L, 1, fn, "slots", -1, 1, 1 << 20);
        size_t most = (size_t)hv__int(L, 1, fn, "most", 0, 0, 1 << 20);
        s = hv_distribute_lpt(items, n, slots, most, &h->arena, &d, &err);
        if (s != HV_OK)
            return hv__raise(L, &err);
        if (!d.feasible) {
            lua_pushnil(L);
            lua_pushstring(L, d.proof);
            return 2;
        }
        push_distribution(L, &d, n, 1);
        return 1;
    }
    int64_t total = hv__int(L, 1, fn, "total", -1, 0, HV_DISTRIBUTE_MAX_TOTAL);
    const struct hv_share *shares = read_shares(L, fn, total, &n);
    s = hv_distribute_check(shares, n, total, &err);
    if (s == HV_OK && objective == 0)
        s = hv_distribute_minmax(shares, n, total, &h->arena, &d, &err);
    else if (s == HV_OK && objective == 1)
        s = hv_distribute_minvar(shares, n, total, &h->arena, &d, &err);
    else if (s == HV_OK)
        s = hv_distribute_ratio(shares, n, total, &h->arena, &d, &err);
    if (s != HV_OK)
        return hv__raise(L, &err);
    if (!d.feasible) {
        lua_pushnil(L);
        lua_pushstring(L, d.proof != NULL ? d.proof : "no distribution adds up to the total");
        return 2;
    }
    push_distribution(L, &d, n, 0);
    return 1;
}

static struct hv_lp *lp_at(lua_State *L)
{
    struct hv_lp **lp = luaL_checkudata(L, 1, LP);
    hv__check_stop(L);
    return *lp;
}

static int lp_gc(lua_State *L)
{
    struct hv_lp **lp = lua_touserdata(L, 1);
    hv_lp_free(*lp);
    *lp = NULL;
    return 0;
}

/***
A new linear or integer program.
@function hv.opt.lp
@tparam table q {sense = "min|max"}
@treturn handle lp: with var, row, objective and solve
@units none: plain numbers
@raise another sense
@usage local lp = hv.opt.lp{sense = "max"}
local x = lp:var{upper = 4, integer = true}
lp:objective{[x] = 1}
print(lp:solve{}.objective)
*/
static int opt_lp(lua_State *L)
{
    static const char *const keys[] = {"sense", NULL}, *const senses[] = {"min", "max"};

    hv__check_stop(L);
    hv__check_keys(L, 1, "hv.opt.lp", keys);
    int sense = hv__word(L, 1, "hv.opt.lp", "sense", senses, 2, 0);
    struct hv_lp **lp = lua_newuserdatauv(L, sizeof *lp, 0);
    *lp = NULL;
    luaL_setmetatable(L, LP);
    *lp = hv_lp_new((enum hv_lp_sense)sense);
    return 1;
}

/***
Adds a variable.
@function lp:var
@tparam table q {lower = 0, upper = infinity, integer = false}
@treturn integer number of the variable
@units none: plain numbers
@raise lower above upper, unknown numbers
@usage print(hv.opt.lp{}:var{upper = 3, integer = true})
*/
static int lp_var(lua_State *L)
{
    static const char *const keys[] = {"lower", "upper", "integer", NULL};
    struct hv_lp *lp = lp_at(L);
    struct hv_err err = {0};
    size_t index = 0;

    lua_remove(L, 1);
    if (lua_gettop(L) == 0)
        lua_newtable(L);
    hv__check_keys(L, 1, "lp:var", keys);
    double lower = hv__num(L, 1, "lp:var", "lower", 0, -HUGE_VAL, HUGE_VAL);
    double upper = hv__num(L, 1, "lp:var", "upper", HUGE_VAL, -HUGE_VAL, HUGE_VAL);
    bool integer = hv__bool(L, 1, "lp:var", "integer", false);
    if (hv_lp_n_vars(lp) >= LP_VARS_MAX)
        return luaL_error(L, "lp:var: expected at most %d variables", LP_VARS_MAX);
    if (hv_lp_add_var(lp, lower, upper, integer, &index, &err) != HV_OK)
        return hv__raise(L, &err);
    lua_pushinteger(L, (lua_Integer)index + 1);
    return 1;
}

/** Terms {[variable] = coefficient} at argument i, in order of the variables. */
static struct hv_lp_term *terms_at(lua_State *L, int i, const struct hv_lp *lp, size_t *n)
{
    size_t n_vars = hv_lp_n_vars(lp), at = 0;

    luaL_checktype(L, i, LUA_TTABLE);
    *n = 0;
    for (lua_pushnil(L); lua_next(L, i) != 0; lua_pop(L, 1)) {
        lua_Integer v = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
        luaL_argcheck(L, v >= 1 && v <= (lua_Integer)n_vars && lua_type(L, -1) == LUA_TNUMBER, i,
                      "expected {[variable] = coefficient}");
        ++*n;
    }
    struct hv_lp_term *terms = hv_arena_new(&hv__host(L)->arena, struct hv_lp_term, *n + 1);
    for (size_t v = 0; v < n_vars && at < *n; v++) {
        if (lua_rawgeti(L, i, (lua_Integer)v + 1) != LUA_TNIL)
            terms[at++] = (struct hv_lp_term){v, lua_tonumber(L, -1)};
        lua_pop(L, 1);
    }
    return terms;
}

/***
Adds the row Σ terms (op) rhs.
@function lp:row
@tparam table terms {[variable] = coefficient}
@tparam string op "<=", ">=" or "="
@tparam number rhs the right-hand side
@treturn nil nothing
@units none: plain numbers
@raise a variable that is not there, an unknown number
@usage local lp = hv.opt.lp{}
lp:row({[lp:var{}] = 2}, ">=", 3)
*/
static int lp_row(lua_State *L)
{
    static const char *const ops[] = {"<=", ">=", "=", NULL};
    struct hv_lp *lp = lp_at(L);
    struct hv_err err = {0};
    size_t n = 0;
    const struct hv_lp_term *terms = terms_at(L, 2, lp, &n);
    enum hv_lp_op op = (enum hv_lp_op)luaL_checkoption(L, 3, NULL, ops);

    if (hv_lp_add_row(lp, terms, n, op, luaL_checknumber(L, 4), &err) != HV_OK)
        return hv__raise(L, &err);
    return 0;
}

/***
Sets the objective.
@function lp:objective
@tparam table terms {[variable] = coefficient}
@treturn nil nothing
@units none: plain numbers
@raise a variable that is not there, an unknown number
@usage local lp = hv.opt.lp{}
lp:objective{[lp:var{}] = 1}
*/
static int lp_objective(lua_State *L)
{
    struct hv_lp *lp = lp_at(L);
    struct hv_err err = {0};
    size_t n = 0;
    const struct hv_lp_term *terms = terms_at(L, 2, lp, &n);

    if (hv_lp_set_objective(lp, terms, n, &err) != HV_OK)
        return hv__raise(L, &err);
    return 0;
}

/***
Solves the program; every answer is checked against the model.
@function lp:solve
@tparam[opt] table q {time_limit_s, gap}
@treturn table {x, objective, bound, duals, status =
"optimal|feasible|infeasible|unbounded|stopped|failed", proven}; x is a list of one number per
variable and missing where there is no solution, duals a list of one per row
@units time_limit_s in seconds; gap is a share
@raise wrong arguments
@usage local lp = hv.opt.lp{}
lp:objective{[lp:var{lower = 1}] = 1}
assert(lp:solve{time_limit_s = 1}.objective == 1)
*/
static int lp_solve(lua_State *L)
{
    static const char *const keys[] = {"time_limit_s", "gap", NULL};
    static const char *const states[] = {"optimal",   "feasible", "infeasible",
                                         "unbounded", "stopped",  "failed"};
    const struct hv_lp *lp = lp_at(L);
    struct hv_lp_result r = {0};
    struct hv_err err = {0};
    struct hv_lp_limits limits = {.cancel = hv__is_cancelled, .ctx = hv__host(L)};

    if (lua_istable(L, 2)) {
        hv__check_keys(L, 2, "lp:solve", keys);
        limits.deadline_s = hv__num(L, 2, "lp:solve", "time_limit_s", 0, 0, 1e9);
        limits.gap = hv__num(L, 2, "lp:solve", "gap", 0, 0, 1);
    }
    if (hv_lp_solve(lp, &limits, &r, &err) != HV_OK)
        return hv__raise(L, &err);
    /* into the arena first: pushing to Lua may raise, and the result is on the heap */
    struct hv_arena *a = &hv__host(L)->arena;
    const double *x = r.x != NULL ? hv_arena_copy(a, r.x, r.n_vars, sizeof *x) : NULL;
    const double *duals = r.duals != NULL ? hv_arena_copy(a, r.duals, r.n_rows, sizeof *x) : NULL;
    struct hv_lp_result kept = r;
    hv_lp_result_free(&r);
    lua_createtable(L, 0, 6);
    hv__set_text(L, "status", states[kept.outcome]);
    hv__set_num(L, "objective", kept.objective);
    hv__set_num(L, "bound", kept.bound);
    lua_pushboolean(L, kept.proven);
    lua_setfield(L, -2, "proven");
    if (x != NULL) {
        hv__push_numbers(L, x, kept.n_vars);
        lua_setfield(L, -2, "x");
    }
    if (duals != NULL) {
        hv__push_numbers(L, duals, kept.n_rows);
        lua_setfield(L, -2, "duals");
    }
    return 1;
}

void hv__api_opt(lua_State *L)
{
    static const luaL_Reg rows[] = {{"distribute", opt_distribute}, {"lp", opt_lp}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"var", lp_var},
                                       {"row", lp_row},
                                       {"objective", lp_objective},
                                       {"solve", lp_solve},
                                       {NULL, NULL}};

    hv__api_names(L, "lp", methods);
    luaL_newmetatable(L, LP);
    lua_pushcfunction(L, lp_gc);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    hv__api_add(L, "opt", rows);
}
