/*
 * hv.opt.distribute over solver/optim. Numbers only.
 * Not here: linear programs (api_opt_lp.c), partitions (api_opt_partition.c), the classics
 * (api_opt_classics.c).
 */
#include "scripting/api/table.h"
#include "scripting/host/host_int.h"
#include "solver/base/units.h"
#include "solver/optim/batch/distribute.h"

#include <math.h>
#include <string.h>

/** Most values that are read of a time function. */
#define CALLS_MAX 1000000

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
    if (!there) {
        return NULL;
    }
    const double *x = hv__numbers(L, 1, fn, key, &len);
    if (len != n) {
        luaL_error(L, "%s: %s: expected %d numbers, found %d", fn, key, (int)n, (int)len);
    }
    return x;
}

/** A whole number out of a list. */
static int64_t whole(lua_State *L, const char *fn, const char *key, double x)
{
    if (!(fabs(x) <= 1e15) || x != floor(x)) {
        luaL_error(L, "%s: %s: expected whole numbers", fn, key);
    }
    return (int64_t)x;
}

/** Points {{count, time}, …} of share i from the list at the top. */
static void read_points(lua_State *L, const char *fn, size_t i, struct hv_share *s)
{
    size_t n = (size_t)lua_rawlen(L, -1);
    struct hv_share_point *p = hv__scratch_new(L, struct hv_share_point, n + 1);

    for (size_t k = 0; k < n; k++) {
        bool pair = lua_rawgeti(L, -1, (lua_Integer)k + 1) == LUA_TTABLE &&
                    lua_rawgeti(L, -1, 1) == LUA_TNUMBER && lua_rawgeti(L, -2, 2) == LUA_TNUMBER;
        if (!pair) {
            luaL_error(L, "%s: time: share %d, point %d: expected {count, time}", fn, (int)i + 1,
                       (int)k + 1);
        }
        p[k] =
            (struct hv_share_point){whole(L, fn, "time", lua_tonumber(L, -2)), lua_tonumber(L, -1)};
        lua_pop(L, 3);
    }
    s->points = p;
    s->n_points = n;
}

/** One point per count from the function at the top, time(share, count). */
static void call_for_points(lua_State *L, const char *fn, size_t i, int64_t total,
                            struct hv_share *s, int64_t *calls)
{
    int64_t most = total / s->size < s->max ? total / s->size : s->max;
    size_t n = most >= s->min ? (size_t)(most - s->min) + 1 : 1;
    struct hv_err err = {0};

    *calls += (int64_t)n;
    if (*calls > CALLS_MAX) {
        luaL_error(L, "%s: time: a function for %d shares and a total of %d has too many values",
                   fn, (int)i + 1, (int)total);
    }
    struct hv_share_point *p = hv__scratch_new(L, struct hv_share_point, n);
    for (size_t k = 0; k < n; k++) {
        const double x[] = {(double)i + 1, (double)(s->min + (int64_t)k)};
        p[k].count = s->min + (int64_t)k;
        if (hv__call_number(L, x, 2, false, &p[k].time, &err) != HV_OK) {
            hv__raise(L, &err);
        }
        if (isinf(p[k].time)) { /* nil: no more than this */
            if (k == 0) {
                luaL_error(L, "%s: time: share %d: expected a time for its least count", fn,
                           (int)i + 1);
            }
            n = k;
        }
    }
    s->points = p;
    s->n_points = n;
}

/** Number of shares: the length of `time`, with a function `shares`. */
static size_t count_shares(lua_State *L, const char *fn, int kind)
{
    if (kind == LUA_TFUNCTION) {
        return (size_t)hv__int(L, 1, fn, "shares", -1, 1, CALLS_MAX);
    }
    if (kind != LUA_TTABLE) {
        hv__bad(L, fn, "time", "a list or a function", -1);
    }
    return (size_t)lua_rawlen(L, -1);
}

static struct hv_share *read_shares(lua_State *L, const char *fn, int64_t total, size_t *n)
{
    int kind = lua_getfield(L, 1, "time");
    int64_t calls = 0;

    *n = count_shares(L, fn, kind);
    const double *sizes = optional_numbers(L, fn, "sizes", *n);
    const double *caps = optional_numbers(L, fn, "caps", *n),
                 *min = optional_numbers(L, fn, "min", *n);
    const double *fixed = optional_numbers(L, fn, "fixed", *n);
    struct hv_share *shares = hv__scratch_new(L, struct hv_share, *n + 1);
    for (size_t i = 0; i < *n; i++) {
        struct hv_share *s = &shares[i];
        *s = (struct hv_share){.fixed = fixed != NULL ? fixed[i] : 0,
                               .size = sizes != NULL ? whole(L, fn, "sizes", sizes[i]) : 1,
                               .min = min != NULL ? whole(L, fn, "min", min[i]) : 0,
                               .max = caps != NULL ? whole(L, fn, "caps", caps[i]) : total};
        if (kind == LUA_TFUNCTION) {
            struct hv_err err = {0};
            if (hv_distribute_check(s, 1, total, &err) != HV_OK) {
                hv__raise(L, &err);
            }
            call_for_points(L, fn, i, total, s, &calls);
            continue;
        }
        int entry = lua_rawgeti(L, -1, (lua_Integer)i + 1);
        if (entry == LUA_TTABLE) {
            read_points(L, fn, i, s);
        } else if (entry == LUA_TNUMBER) {
            s->rate = lua_tonumber(L, -1);
        } else {
            hv__bad(L, fn, "time", "numbers or lists of {count, time}", -1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return shares;
}

/** Pushes the answer, or nil and the reason; indices of slots count from `base`. */
static int push_answer(lua_State *L, const struct hv_distribution *d, size_t n, int64_t base)
{
    if (d->feasible) {
        push_distribution(L, d, n, base);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, d->proof != NULL ? d->proof : "no distribution adds up to the total");
    return 2;
}

/** Items onto slots, longest first. */
static int longest_first(lua_State *L, const char *fn)
{
    struct hv_distribution d = {0};
    struct hv_err err = {0};
    size_t n = 0;
    const double *items = hv__numbers(L, 1, fn, "items", &n);
    size_t slots = (size_t)hv__int(L, 1, fn, "slots", -1, 1, 1 << 20);
    size_t most = (size_t)hv__int(L, 1, fn, "most", 0, 0, 1 << 20);

    if (hv_distribute_lpt(items, n, slots, most, &hv__host(L)->arena, &d, &err) != HV_OK) {
        return hv__raise(L, &err);
    }
    return push_answer(L, &d, n, 1);
}

/***
Splits a whole total over shares. Exact.
@function hv.opt.distribute
@tparam table q {total, time = list of times per unit (minvar: weight, ratio: proportion), fixed,
sizes, min, caps, objective = "minmax|sum|minvar|ratio"}, or {items = list of times, slots, most =
items per slot, objective = "lpt"}. minmax and sum also take curves: an entry of time may be a list
of points {count, time} joined by straight lines, and time a function (share, count) for so many
`shares` (nil = no more than the count before); times never fall, for sum they are convex and sizes
equal
@treturn table {counts, value, bound, proven} (lpt: counts holds the slot of each item); nil and the
reason when nothing fits
@units counts are whole numbers; times any unit, the same in and out
@raise sizes, caps or totals that are not whole, lists of another length, times that fall, curves
that are not convex (sum), errors of the function
@usage local d = hv.opt.distribute{total = 48, time = {1, 1, 2, 2}, objective = "minmax"}
assert(d.counts[1] == 16 and d.counts[3] == 8)
*/
static int opt_distribute(lua_State *L)
{
    static const char *const keys[] = {"total", "items", "time",   "fixed",     "sizes", "min",
                                       "caps",  "slots", "shares", "objective", "most",  NULL};
    static const char *const objectives[] = {"minmax", "minvar", "ratio", "sum", "lpt"};
    static enum hv_status (*const solvers[])(const struct hv_share *, size_t, int64_t,
                                             struct hv_arena *, struct hv_distribution *,
                                             struct hv_err *) = {
        hv_distribute_minmax, hv_distribute_minvar, hv_distribute_ratio, hv_distribute_sum};
    static const char fn[] = "hv.opt.distribute";
    struct hv_host *h = hv__host(L);
    struct hv_distribution d = {0};
    struct hv_err err = {0};
    enum hv_status s;
    size_t n = 0;

    hv__check_stop(L);
    hv__check_keys(L, 1, fn, keys);
    int objective = hv__word(L, 1, fn, "objective", objectives, HV_COUNT(objectives), 0);
    if (objective == HV_COUNT(objectives) - 1) {
        return longest_first(L, fn);
    }
    int64_t total = hv__int(L, 1, fn, "total", -1, 0, HV_DISTRIBUTE_MAX_TOTAL);
    const struct hv_share *shares = read_shares(L, fn, total, &n);
    s = hv_distribute_check(shares, n, total, &err);
    if (s == HV_OK) {
        s = solvers[objective](shares, n, total, &h->arena, &d, &err);
    }
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    return push_answer(L, &d, n, 0);
}

void hv__api_opt(lua_State *L)
{
    static const luaL_Reg rows[] = {{"distribute", opt_distribute}, {NULL, NULL}};

    hv__api_add(L, "opt", rows);
}
