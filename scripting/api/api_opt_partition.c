/*
 * hv.opt.partition: exact contiguous partition, with values and costs from Lua where wanted.
 * Only arguments and results; the solver is solver/optim's.
 */
#include "scripting/api/api_opt_int.h"
#include "scripting/api/table.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition.h"

#include <math.h>
#include <string.h>

/** Prefix sums of n numbers. */
static double *prefix(lua_State *L, const double *x, size_t n)
{
    double *p = hv__scratch_new(L, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        p[i + 1] = p[i] + x[i];
    }
    return p;
}

/**
 * Field `key`: a list of n numbers for all parts, or one such list per part. Fills rows[parts] with
 * prefix sums; equal Lua tables share one array (the solver then knows that the parts are equal).
 * False when the field is missing.
 */
static bool rows_of(lua_State *L, const char *fn, const char *key, size_t n, size_t parts,
                    const double **rows)
{
    size_t len = 0;

    if (lua_getfield(L, 1, key) == LUA_TNIL) {
        lua_pop(L, 1);
        return false;
    }
    if (!lua_istable(L, -1)) {
        hv__bad(L, fn, key, "a list", -1);
    }
    bool each = lua_rawgeti(L, -1, 1) == LUA_TTABLE;
    lua_pop(L, 1);
    for (size_t s = 0; s < parts; s++) {
        const void *self = NULL;
        if (each && lua_rawgeti(L, -1, (lua_Integer)s + 1) != LUA_TTABLE) {
            luaL_error(L, "%s: %s: expected one list per part, part %d has none", fn, key,
                       (int)s + 1);
        }
        self = lua_topointer(L, -1);
        for (size_t t = 0; t < s && rows[s] == NULL; t++) {
            if (each) {
                lua_rawgeti(L, -2, (lua_Integer)t + 1);
            }
            if (!each || lua_topointer(L, -1) == self) {
                rows[s] = rows[t];
            }
            if (each) {
                lua_pop(L, 1);
            }
        }
        if (rows[s] == NULL) {
            const double *x = hv__numbers(L, lua_gettop(L), fn, NULL, &len);
            if (len != n) {
                luaL_error(L, "%s: %s: expected %d numbers, found %d", fn, key, (int)n, (int)len);
            }
            rows[s] = prefix(L, x, n);
        }
        if (each) {
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    return true;
}

/** Values of all runs from the function at the top, load(first, last, part); one table per part. */
static const double **load_tables(lua_State *L, const char *fn, const struct hv_partition *p)
{
    size_t n = p->n_layers + 1;
    struct hv_err err = {0};

    if (n * n * p->n_stages > (size_t)1 << 23) {
        luaL_error(L, "%s: load: a function for %d layers and %d parts has too many runs", fn,
                   (int)p->n_layers, (int)p->n_stages);
    }
    const double **tables = hv__scratch_new(L, const double *, p->n_stages);
    for (size_t s = 0; s < p->n_stages; s++) {
        double *t = hv__scratch_new(L, double, n *n);
        tables[s] = t;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = i + 1; j < n; j++) {
                const double x[] = {(double)i + 1, (double)j, (double)s + 1};
                if (hv__call_number(L, x, 3, false, &t[i * n + j], &err) != HV_OK) {
                    hv__raise(L, &err);
                }
            }
        }
    }
    return tables;
}

/** The state in which `combine` is called; the function is at the top of its stack. */
static enum hv_status combine(void *ctx, const double *value, size_t n, double *out,
                              struct hv_err *err)
{
    return hv__call_number(ctx, value, n, true, out, err);
}

/** Field `key`: costs of the n − 1 places between layers, one list for all cuts or one per cut;
 * NULL when missing. */
static const double *const *between(lua_State *L, const char *fn, const char *key,
                                    const struct hv_partition *p)
{
    const double **rows = hv__scratch_new(L, const double *, p->n_stages);
    size_t n = 0;

    if (lua_getfield(L, 1, key) == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    if (!lua_istable(L, -1)) {
        hv__bad(L, fn, key, "a list", -1);
    }
    bool each = lua_rawgeti(L, -1, 1) == LUA_TTABLE;
    lua_pop(L, 1);
    for (size_t s = 0; s + 1 < p->n_stages; s++) {
        if (each) {
            lua_rawgeti(L, -1, (lua_Integer)s + 1);
        }
        if (each || s == 0) {
            const double *x = hv__numbers(L, lua_gettop(L), fn, NULL, &n);
            if (n + 1 != p->n_layers) {
                luaL_error(L, "%s: %s: expected %d numbers, one per place between layers", fn, key,
                           (int)p->n_layers - 1);
            }
            double *row = hv__scratch_new(L, double, p->n_layers + 1);
            memcpy(row + 1, x, n * sizeof *row);
            rows[s] = row;
        } else {
            rows[s] = rows[0];
        }
        if (each) {
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    return rows;
}

/** Rows, cuts and capacities of the instance at argument 1. */
static void read_partition(lua_State *L, const char *fn, struct hv_partition *p)
{
    struct hv_part_stage *stages = hv__scratch_new(L, struct hv_part_stage, p->n_stages);
    const double **time = hv__scratch_new(L, const double *, p->n_stages);
    const double **memory = hv__scratch_new(L, const double *, p->n_stages);
    size_t n = 0;

    const double **tables = NULL;
    if (lua_getfield(L, 1, "load") == LUA_TFUNCTION) {
        tables = load_tables(L, fn, p);
    }
    lua_pop(L, 1);
    if (tables == NULL && !rows_of(L, fn, "load", p->n_layers, p->n_stages, time)) {
        luaL_error(L, "%s: load: expected a list of times, one per part, or a function", fn);
    }
    rows_of(L, fn, "memory", p->n_layers, p->n_stages, memory);
    double *caps = NULL;
    if (lua_getfield(L, 1, "capacity") != LUA_TNIL) {
        caps = hv__numbers(L, 1, fn, "capacity", &n);
    }
    lua_pop(L, 1);
    if (caps != NULL && n != p->n_stages) {
        luaL_error(L, "%s: capacity: expected %d numbers, found %d", fn, (int)p->n_stages, (int)n);
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        stages[s] = (struct hv_part_stage){.time = time[s],
                                           .table = tables != NULL ? tables[s] : NULL,
                                           .memory = memory[s],
                                           .capacity = caps != NULL ? caps[s] : HUGE_VAL};
    }
    p->stages = stages;
    p->cuts = between(L, fn, "cut", p);
    p->tolls = between(L, fn, "toll", p);
}

/** Solves the checked instance, also with an own combination or weights; pushes the answer. */
static int solve_plain(lua_State *L, const char *fn, const struct hv_partition *p, bool own,
                       bool weighted)
{
    struct hv_host *h = hv__host(L);
    const struct hv_solve_limits limits = {.cancel = hv__is_cancelled, .ctx = h};
    struct hv_partition_result r = {0};
    struct hv_err err = {0};
    enum hv_status s;

    if (own) {
        if (lua_getfield(L, 1, "combine") != LUA_TFUNCTION) {
            hv__bad(L, fn, "combine", "a function", -1);
        }
        s = hv_partition_combine(p, combine, L, &h->arena, &r, &err);
    } else if (weighted) {
        size_t n = 0;
        const double *w = hv__numbers(L, 1, fn, "weights", &n);
        if (n != 3) {
            return luaL_error(L, "%s: weights: expected {c0, c1, tail}", fn);
        }
        const struct hv_part_weights pw = {w[0], w[1], w[2]};
        s = hv_partition_weighted(p, &pw, &limits, &h->arena, &r, &err);
    } else {
        s = hv_partition_solve(p, &limits, &h->arena, &r, &err);
    }
    hv__check_stop(L);
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.feasible) {
        return hv__push_no(L, r.proof);
    }
    hv__push_partition(L, &r);
    return 1;
}

/** Number of parts: as given, or with "any" one per list of `load`, else one per layer. */
static size_t count_parts(lua_State *L, const char *fn, size_t n_layers, bool *any)
{
    size_t n = n_layers < HV_PARTITION_MAX_STAGES ? n_layers : HV_PARTITION_MAX_STAGES;

    *any = lua_getfield(L, 1, "parts") == LUA_TSTRING;
    lua_pop(L, 1);
    if (!*any) {
        return (size_t)hv__int(L, 1, fn, "parts", -1, 1, HV_PARTITION_MAX_STAGES);
    }
    static const char *const words[] = {"any"};
    (void)hv__word(L, 1, fn, "parts", words, 1, 0);
    if (lua_getfield(L, 1, "load") == LUA_TTABLE && lua_rawgeti(L, -1, 1) == LUA_TTABLE) {
        n = (size_t)lua_rawlen(L, -2);
    }
    if (n < 1 || n > HV_PARTITION_MAX_STAGES) {
        luaL_error(L, "%s: load: expected at most %d lists, one per part, found %d", fn,
                   (int)HV_PARTITION_MAX_STAGES, (int)n);
    }
    lua_settop(L, 1);
    return n;
}

/***
Cuts n layers into contiguous parts so that sum · Σ times + max · longest time is least. Exact.
@function hv.opt.partition
@tparam table q {n, parts = a number, or "any": as many as are best, load = list of n times, one
list per part, or a function (first, last, part) that gives the value of a run (nil = not allowed),
cut = n − 1 times paid by both neighbours of a cut, toll = n − 1 times paid once for a cut, by the
sum alone (cut and toll: one list, or one per cut; toll with order = "fixed"), memory (as load) with
capacity = one number per part, sum = 0, max = 1, min = 1 (layers per part), order = "fixed|free"
(may the parts be permuted; equal parts share one table), any = false (may later parts stay unused),
combine = function (values) that gives the cost of a whole partition instead (all partitions are
tried: up to 20 million), weights = {c0, c1, tail}: instead minimise Σ times + (c0 + c1·k)·longest +
tail·Σ from the slowest part k (from 0, rightmost of equals) on, ranks = p: the parts are chunks of
p ranks and the busiest rank is what counts, with placement = "loop" (chunk c on rank c mod p) or
"fold" (every second pass backwards, a V), or rank = list of the rank of each part}. With replicas =
{devices, memory, widths} instead of all but n: equal devices, stages with copies, see below
@tparam table replicas {devices = how many, memory = of one copy, widths = list of {width = devices
per copy, load = list of n times, or one such list per way to run a layer, fixed and held (as load):
memory per copy and per sample in flight, sync = n times to keep copies equal, cut = n − 1 times}}
@treturn table {stages = list of {first, last}, order, values, value, sum, max, bound, proven}, with
ranks also loads (one per rank) and rank; with replicas {stages = list of {first, last, width,
replicas, in_flight, value}, choices (one per layer), value, bound, proven}; nil and the reason when
nothing fits
@units any, the same in and out; layers, parts and ranks are numbers from 1, ranges inclusive
@raise lists of another length, negative or unknown numbers, errors of the functions
@usage local r = hv.opt.partition{n = 6, parts = 2, load = {{1,1,1,1,1,1}, {2,2,2,2,2,2}}}
assert(r.value == 4 and r.stages[1][2] == 4)
*/
static int opt_partition(lua_State *L)
{
    static const char *const keys[] = {"n",      "parts",     "load",     "cut",     "toll",
                                       "memory", "capacity",  "sum",      "max",     "min",
                                       "order",  "any",       "weights",  "combine", "ranks",
                                       "rank",   "placement", "replicas", NULL};
    static const char *const orders[] = {"fixed", "free"};
    static const char fn[] = "hv.opt.partition";
    struct hv_err err = {0};
    bool any;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    bool copies = lua_getfield(L, 1, "replicas") != LUA_TNIL;
    lua_settop(L, 1);
    if (copies) {
        return hv__opt_replicas(L);
    }
    struct hv_partition p = {
        .n_layers = (size_t)hv__int(L, 1, fn, "n", -1, 1, HV_PARTITION_MAX_LAYERS),
        .min_layers = (size_t)hv__int(L, 1, fn, "min", 1, 0, HV_PARTITION_MAX_LAYERS),
        .sum_weight = hv__num(L, 1, fn, "sum", 0, 0, 1e12),
        .max_weight = hv__num(L, 1, fn, "max", 1, 0, 1e12),
        .free_order = hv__word(L, 1, fn, "order", orders, HV_COUNT(orders), 0) == 1};
    p.n_stages = count_parts(L, fn, p.n_layers, &any);
    p.any_stages = hv__bool(L, 1, fn, "any", any);
    read_partition(L, fn, &p);
    enum hv_status s = hv_partition_check(&p, &err);
    bool weighted = lua_getfield(L, 1, "weights") != LUA_TNIL;
    bool own = lua_getfield(L, 1, "combine") != LUA_TNIL;
    bool chunks = lua_getfield(L, 1, "ranks") != LUA_TNIL;
    lua_settop(L, 1);
    if (weighted + own + chunks > 1) {
        return luaL_error(L, "%s: combine, weights and ranks exclude each other", fn);
    }
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    return chunks ? hv__opt_chunks(L, &p) : solve_plain(L, fn, &p, own, weighted);
}

void hv__api_opt_partition(lua_State *L)
{
    static const luaL_Reg rows[] = {{"partition", opt_partition}, {NULL, NULL}};

    hv__api_add(L, "opt", rows);
}
