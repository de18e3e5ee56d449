/*
 * hv.opt.lp: linear and integer programs over solver/optim/lp.
 * Not here: exact solvers of special problems (api_opt_*.c).
 */
#include "scripting/api/table.h"
#include "scripting/host/host_int.h"
#include "solver/base/units.h"
#include "solver/optim/lp/lp.h"

#include <math.h>

#define LP          "hv.lp"
#define LP_VARS_MAX 1000000

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
    if (lua_gettop(L) == 0) {
        lua_newtable(L);
    }
    hv__check_keys(L, 1, "lp:var", keys);
    double lower = hv__num(L, 1, "lp:var", "lower", 0, -HUGE_VAL, HUGE_VAL);
    double upper = hv__num(L, 1, "lp:var", "upper", HUGE_VAL, -HUGE_VAL, HUGE_VAL);
    bool integer = hv__bool(L, 1, "lp:var", "integer", false);
    if (hv_lp_n_vars(lp) >= LP_VARS_MAX) {
        return luaL_error(L, "lp:var: expected at most %d variables", LP_VARS_MAX);
    }
    if (hv_lp_add_var(lp, lower, upper, integer, &index, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
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
    struct hv_lp_term *terms = hv__scratch_new(L, struct hv_lp_term, *n + 1);
    for (size_t v = 0; v < n_vars && at < *n; v++) {
        if (lua_rawgeti(L, i, (lua_Integer)v + 1) != LUA_TNIL) {
            terms[at++] = (struct hv_lp_term){v, lua_tonumber(L, -1)};
        }
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

    if (hv_lp_add_row(lp, terms, n, op, luaL_checknumber(L, 4), &err) != HV_OK) {
        return hv__raise(L, &err);
    }
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

    if (hv_lp_set_objective(lp, terms, n, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    return 0;
}

/** The arrays of a result in the arena; the originals stay the caller's. */
static struct hv_lp_result kept_result(struct hv_arena *a, const struct hv_lp_result *r)
{
    struct hv_lp_result out = *r;

    out.x = r->x != NULL ? hv_arena_copy(a, r->x, r->n_vars, sizeof *r->x) : NULL;
    out.duals = r->duals != NULL ? hv_arena_copy(a, r->duals, r->n_rows, sizeof *r->x) : NULL;
    out.reduced = r->reduced != NULL ? hv_arena_copy(a, r->reduced, r->n_vars, sizeof *r->x) : NULL;
    return out;
}

static struct hv_lp_ranges kept_range_lists(struct hv_arena *a, const struct hv_lp_ranges *g)
{
    struct hv_lp_ranges out = {0};

    if (g->cost != NULL) {
        out.cost = hv_arena_copy(a, g->cost, g->n_vars, sizeof *g->cost);
        out.rhs = hv_arena_copy(a, g->rhs, g->n_rows, sizeof *g->rhs);
    }
    return out;
}

static void push_result(lua_State *L, const struct hv_lp_result *r)
{
    static const char *const states[] = {"optimal",   "feasible", "infeasible",
                                         "unbounded", "stopped",  "failed"};

    lua_createtable(L, 0, 8);
    hv__set_text(L, "status", states[r->outcome]);
    hv__set_num(L, "objective", r->objective);
    hv__set_num(L, "bound", r->bound);
    lua_pushboolean(L, r->proven);
    lua_setfield(L, -2, "proven");
    if (r->x != NULL) {
        hv__push_numbers(L, r->x, r->n_vars);
        lua_setfield(L, -2, "x");
    }
    if (r->duals != NULL) {
        hv__push_numbers(L, r->duals, r->n_rows);
        lua_setfield(L, -2, "duals");
        hv__push_numbers(L, r->reduced, r->n_vars);
        lua_setfield(L, -2, "reduced");
    }
}

static void push_range_list(lua_State *L, const struct hv_lp_range *r, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        const double end[] = {r[i].from, r[i].till};
        lua_createtable(L, 2, 0);
        for (int k = 0; k < 2; k++) {
            if (hv_known(end[k])) {
                lua_pushnumber(L, end[k]);
                lua_rawseti(L, -2, k + 1);
            }
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/***
Solves the program; every answer is checked against the model. `proven` = status is "optimal": x
keeps all rows (but for 1e-9 of the largest term of a row, with integers for its rounding), and no
point that keeps them is better than `bound`, which was computed from duals with every rounding to
the safe side, or in exact rational numbers, and equals the objective (relative 2e-9); with
integers at every leaf of a branch and bound. No answer of lp_solve counts as a proof. "infeasible"
and "unbounded" are certified in the same way. "feasible" is a point whose proof was given up (a
second of work) or whose bound is within `gap`; "failed" means no answer.
@function lp:solve
@tparam[opt] table q {time_limit_s, gap, ranges = false, proof = true; without: programs with
integers by lp_solve alone, never proven and without a bound, for large ones sooner}
@treturn table {x, objective, bound, duals, reduced, ranges, status =
"optimal|feasible|infeasible|unbounded|stopped|failed", proven}; x is a list of one number per
variable and missing where there is no solution; duals (one per row) and reduced costs (one per
variable) exist without integer variables; ranges = {cost, rhs}: how far each number may move alone
before x (a cost) or the duals (a right-hand side) change, lists of {from, till} with -math.huge and
math.huge where there is no end and nil where the time limit was reached
@units time_limit_s in seconds; gap is a share
@raise wrong arguments, ranges with integer variables
@usage local lp = hv.opt.lp{}
lp:objective{[lp:var{lower = 1}] = 1}
assert(lp:solve{time_limit_s = 1}.proven)
*/
static int lp_solve(lua_State *L)
{
    static const char *const keys[] = {"time_limit_s", "gap", "ranges", "proof", NULL};
    const struct hv_lp *lp = lp_at(L);
    struct hv_arena *a = &hv__host(L)->arena;
    struct hv_lp_result r = {0};
    struct hv_lp_ranges g = {0};
    struct hv_err err = {0};
    struct hv_lp_limits limits = {.cancel = hv__is_cancelled, .ctx = hv__host(L)};
    bool ranges = false;

    if (lua_istable(L, 2)) {
        hv__check_keys(L, 2, "lp:solve", keys);
        limits.deadline_s = hv__num(L, 2, "lp:solve", "time_limit_s", 0, 0, 1e9);
        limits.gap = hv__num(L, 2, "lp:solve", "gap", 0, 0, 1);
        ranges = hv__bool(L, 2, "lp:solve", "ranges", false);
        limits.unproven = !hv__bool(L, 2, "lp:solve", "proof", true);
    }
    enum hv_status s = hv_lp_solve(lp, &limits, &r, &err);
    if (limits.deadline_s > 0) { /* the ranges share the time; the least that is left is a little */
        limits.deadline_s = fmax(limits.deadline_s - r.seconds, 1e-6);
    }
    if (s == HV_OK && ranges && (r.proven || (r.x != NULL && r.duals == NULL))) {
        s = hv_lp_ranges(lp, &r, &limits, &g, &err);
    }
    /* into the arena first: pushing to Lua may raise, and the results are on the heap */
    const struct hv_lp_result kept = kept_result(a, &r);
    const struct hv_lp_ranges kept_ranges = kept_range_lists(a, &g);
    hv_lp_result_free(&r);
    hv_lp_ranges_free(&g);
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    push_result(L, &kept);
    if (kept_ranges.cost != NULL) {
        lua_createtable(L, 0, 2);
        push_range_list(L, kept_ranges.cost, kept.n_vars);
        lua_setfield(L, -2, "cost");
        push_range_list(L, kept_ranges.rhs, kept.n_rows);
        lua_setfield(L, -2, "rhs");
        lua_setfield(L, -2, "ranges");
    }
    return 1;
}

/***
Allows at most one variable of a list (type 1), or at most two neighbours in it (type 2), to differ
from 0. The rows and binary variables for this are added to the program.
@function lp:sos
@tparam table variables a list of two or more variables with finite bounds
@tparam[opt] integer type 1 (default) or 2
@treturn nil nothing
@units none
@raise an infinite bound, a variable named twice or not there, another type
@usage local lp = hv.opt.lp{sense = "max"}
local x, y = lp:var{upper = 4}, lp:var{upper = 3}
lp:objective{[x] = 1, [y] = 1}
lp:sos({x, y}, 1)
assert(lp:solve{}.objective == 4)
*/
static int lp_sos(lua_State *L)
{
    struct hv_lp *lp = lp_at(L);
    struct hv_err err = {0};
    size_t n = 0;

    luaL_checktype(L, 2, LUA_TTABLE);
    const double *x = hv__numbers(L, 2, "lp:sos", NULL, &n);
    size_t *vars = hv__scratch_new(L, size_t, n + 1);
    for (size_t k = 0; k < n; k++) {
        luaL_argcheck(L, x[k] >= 1 && x[k] <= (double)hv_lp_n_vars(lp) && x[k] == floor(x[k]), 2,
                      "expected a list of variables");
        vars[k] = (size_t)x[k] - 1;
    }
    lua_Integer type = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, type == 1 || type == 2, 3, "expected type 1 or 2");
    if (hv_lp_add_sos(lp, (int)type, vars, n, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    return 0;
}

/***
The program as text for other solvers; variable n is called xn, row n rn.
@function lp:text
@tparam[opt] string format "lp" (default) or "mps" (free MPS; a maximum is written as a minimum)
@treturn string the text
@units none: plain numbers
@raise another format
@usage local lp = hv.opt.lp{}
lp:objective{[lp:var{upper = 2}] = 1}
print(lp:text())
*/
static int lp_text(lua_State *L)
{
    static const char *const formats[] = {"lp", "mps", NULL};
    const struct hv_lp *lp = lp_at(L);
    struct hv_str text = {0};

    if (luaL_checkoption(L, 2, "lp", formats) == 0) {
        hv_lp_write(lp, &text);
    } else {
        hv_lp_write_mps(lp, &text);
    }
    const char *kept = hv_arena_strdup(&hv__host(L)->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    lua_pushstring(L, kept);
    return 1;
}

void hv__api_opt_lp(lua_State *L)
{
    static const luaL_Reg rows[] = {{"lp", opt_lp}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"var", lp_var},     {"row", lp_row}, {"objective", lp_objective},
        {"solve", lp_solve}, {"sos", lp_sos}, {"text", lp_text},
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
