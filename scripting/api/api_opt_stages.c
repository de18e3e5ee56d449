/*
 * hv.opt.partition where a rank holds several chunks, or a stage several copies; answers of all
 * partitions as tables.
 * Not here: plain partitions (api_opt_partition.c).
 */
#include "scripting/api/api_opt_int.h"
#include "solver/base/units.h"
#include "solver/optim/chain/chunks.h"
#include "solver/optim/chain/replicas.h"

#include <math.h>
#include <string.h>

static const char fn[] = "hv.opt.partition";

int hv__push_no(lua_State *L, const char *reason)
{
    lua_pushnil(L);
    lua_pushstring(L, reason != NULL ? reason : "no partition fits the capacities");
    return 2;
}

void hv__push_partition(lua_State *L, const struct hv_partition_result *r)
{
    lua_createtable(L, 0, 8);
    lua_createtable(L, (int)r->n_stages, 0);
    for (size_t s = 0; s < r->n_stages; s++) {
        lua_createtable(L, 2, 0);
        lua_pushinteger(L, (lua_Integer)(s > 0 ? r->cut[s - 1] : 0) + 1);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, (lua_Integer)r->cut[s]);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (lua_Integer)s + 1);
    }
    lua_setfield(L, -2, "stages");
    lua_createtable(L, (int)r->n_stages, 0);
    for (size_t s = 0; s < r->n_stages; s++) {
        lua_pushinteger(L, r->order != NULL ? (lua_Integer)r->order[s] + 1 : (lua_Integer)s + 1);
        lua_rawseti(L, -2, (lua_Integer)s + 1);
    }
    lua_setfield(L, -2, "order");
    hv__push_numbers(L, r->value, r->n_stages);
    lua_setfield(L, -2, "values");
    hv__set_num(L, "value", r->objective);
    hv__set_num(L, "bound", r->bound);
    hv__set_num(L, "sum", r->sum);
    hv__set_num(L, "max", r->max);
    lua_pushboolean(L, r->proven);
    lua_setfield(L, -2, "proven");
}

/** Pushes n indices, counted from 1, as field `key` of the table at the top. */
static void set_indices(lua_State *L, const char *key, const size_t *x, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushinteger(L, (lua_Integer)x[i] + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, key);
}

/** The rank of each part, from `rank` or `placement`. */
static const size_t *read_ranks(lua_State *L, const struct hv_partition *p, size_t n_ranks)
{
    static const char *const places[] = {"loop", "fold"};
    size_t *rank = hv__scratch_new(L, size_t, p->n_stages), n = 0;
    bool given = lua_getfield(L, 1, "rank") != LUA_TNIL;

    lua_pop(L, 1);
    if (given) {
        const double *x = hv__numbers(L, 1, fn, "rank", &n);
        if (n != p->n_stages) {
            luaL_error(L, "%s: rank: expected %d numbers, one per part, found %d", fn,
                       (int)p->n_stages, (int)n);
        }
        for (size_t s = 0; s < n; s++) {
            if (!(x[s] >= 1 && x[s] <= (double)n_ranks) || x[s] != floor(x[s])) {
                luaL_error(L, "%s: rank: expected ranks from 1 to %d", fn, (int)n_ranks);
            }
            rank[s] = (size_t)x[s] - 1;
        }
        return rank;
    }
    if (p->n_stages % n_ranks != 0) {
        luaL_error(L, "%s: parts: expected a multiple of the %d ranks, found %d", fn, (int)n_ranks,
                   (int)p->n_stages);
    }
    int place = hv__word(L, 1, fn, "placement", places, HV_COUNT(places), 0);
    hv_partition_place((enum hv_part_placement)place, n_ranks, p->n_stages / n_ranks, rank);
    return rank;
}

int hv__opt_chunks(lua_State *L, const struct hv_partition *p)
{
    struct hv_host *h = hv__host(L);
    const struct hv_solve_limits limits = {.cancel = hv__is_cancelled, .ctx = h};
    struct hv_part_chunks c = {.chain = *p};
    struct hv_part_chunks_result r = {0};
    struct hv_err err = {0};

    c.n_ranks = (size_t)hv__int(L, 1, fn, "ranks", -1, 1, HV_PARTITION_MAX_STAGES);
    c.rank = read_ranks(L, p, c.n_ranks);
    if (p->sum_weight > 0 || p->max_weight != 1) {
        return luaL_error(L, "%s: with ranks the busiest rank is what counts: no sum or max", fn);
    }
    enum hv_status s = hv_partition_chunks_solve(&c, &limits, &h->arena, &r, &err);
    hv__check_stop(L);
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.chain.feasible) {
        return hv__push_no(L, r.chain.proof);
    }
    hv__push_partition(L, &r.chain);
    hv__push_numbers(L, r.load, c.n_ranks);
    lua_setfield(L, -2, "loads");
    set_indices(L, "rank", c.rank, p->n_stages);
    return 1;
}

/** Field `key` of the width at the top: n numbers, zeros where it is missing. */
static const double *width_numbers(lua_State *L, const char *key, size_t n)
{
    size_t len = 0;
    bool there = lua_getfield(L, -1, key) != LUA_TNIL;

    lua_pop(L, 1);
    if (!there) {
        return hv__scratch_new(L, double, n + 1);
    }
    const double *x = hv__numbers(L, lua_gettop(L), fn, key, &len);
    if (len != n) {
        luaL_error(L, "%s: widths: %s: expected %d numbers, found %d", fn, key, (int)n, (int)len);
    }
    return x;
}

/** Row k of field `key` of the width at the top: a list of rows, or one list for k = 0 alone. */
static const double *option_row(lua_State *L, const char *key, size_t k, size_t n)
{
    size_t len = 0;

    if (lua_getfield(L, -1, key) == LUA_TNIL) {
        lua_pop(L, 1);
        return hv__scratch_new(L, double, n + 1);
    }
    if (!lua_istable(L, -1)) {
        hv__bad(L, fn, key, "a list", -1);
    }
    if (lua_rawgeti(L, -1, (lua_Integer)k + 1) != LUA_TTABLE) {
        if (k > 0) {
            luaL_error(L, "%s: widths: %s: expected one list per way to run a layer", fn, key);
        }
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
    }
    const double *x = hv__numbers(L, lua_gettop(L), fn, NULL, &len);
    if (len != n) {
        luaL_error(L, "%s: widths: %s: expected %d numbers, found %d", fn, key, (int)n, (int)len);
    }
    lua_pop(L, 2);
    return x;
}

/** How many ways to run a layer the width at the top has. */
static size_t count_options(lua_State *L)
{
    size_t n = 1;

    if (lua_getfield(L, -1, "load") != LUA_TTABLE) {
        hv__bad(L, fn, "widths: load", "a list of times, or of such lists", -1);
    }
    if (lua_rawgeti(L, -1, 1) == LUA_TTABLE) {
        n = (size_t)lua_rawlen(L, -2);
    }
    lua_pop(L, 2);
    return n;
}

static void read_width(lua_State *L, size_t n, struct hv_replica_width *w)
{
    static const char *const keys[] = {"width", "load", "fixed", "held", "sync", "cut", NULL};
    int top = lua_gettop(L);

    hv__check_keys(L, top, fn, keys);
    w->width = (size_t)hv__int(L, top, fn, "width", 1, 1, 1 << 20);
    size_t n_options = count_options(L);
    if (n_options * n > (size_t)1 << 22) {
        luaL_error(L, "%s: widths: too many ways to run the layers", fn);
    }
    struct hv_replica_option *options = hv__scratch_new(L, struct hv_replica_option, n * n_options);
    struct hv_replica_layer *layers = hv__scratch_new(L, struct hv_replica_layer, n);
    for (size_t k = 0; k < n_options; k++) {
        const double *time = option_row(L, "load", k, n), *fixed = option_row(L, "fixed", k, n);
        const double *held = option_row(L, "held", k, n);
        for (size_t l = 0; l < n; l++) {
            options[l * n_options + k] = (struct hv_replica_option){time[l], fixed[l], held[l]};
        }
    }
    const double *sync = width_numbers(L, "sync", n), *cut = width_numbers(L, "cut", n - 1);
    for (size_t l = 0; l < n; l++) {
        layers[l] = (struct hv_replica_layer){options + l * n_options, n_options, sync[l]};
    }
    double *cuts = hv__scratch_new(L, double, n + 1);
    memcpy(cuts + 1, cut, (n - 1) * sizeof *cuts);
    w->layers = layers;
    w->cuts = cuts;
}

static void push_stages(lua_State *L, const struct hv_replicas *p,
                        const struct hv_replicas_result *r)
{
    lua_createtable(L, 0, 6);
    lua_createtable(L, (int)r->n_stages, 0);
    for (size_t s = 0; s < r->n_stages; s++) {
        const struct hv_replica_stage *st = &r->stages[s];
        lua_createtable(L, 0, 6);
        hv__set_num(L, "first", (double)st->first + 1);
        hv__set_num(L, "last", (double)st->end);
        hv__set_num(L, "width", (double)p->widths[st->width].width);
        hv__set_num(L, "replicas", (double)st->replicas);
        hv__set_num(L, "in_flight", (double)st->in_flight);
        hv__set_num(L, "value", st->value);
        lua_rawseti(L, -2, (lua_Integer)s + 1);
    }
    lua_setfield(L, -2, "stages");
    set_indices(L, "choices", r->choice, p->n_layers);
    hv__set_num(L, "value", r->objective);
    hv__set_num(L, "bound", r->bound);
    lua_pushboolean(L, r->proven);
    lua_setfield(L, -2, "proven");
}

int hv__opt_replicas(lua_State *L)
{
    static const char *const outer[] = {"n", "replicas", NULL};
    static const char *const keys[] = {"devices", "memory", "widths", NULL};
    struct hv_host *h = hv__host(L);
    const struct hv_solve_limits limits = {.cancel = hv__is_cancelled, .ctx = h};
    struct hv_replicas_result r = {0};
    struct hv_err err = {0};

    hv__check_keys(L, 1, fn, outer);
    struct hv_replicas p = {.n_layers =
                                (size_t)hv__int(L, 1, fn, "n", -1, 1, HV_PARTITION_MAX_LAYERS)};
    if (lua_getfield(L, 1, "replicas") != LUA_TTABLE) {
        hv__bad(L, fn, "replicas", "a table", -1);
    }
    hv__check_keys(L, 2, fn, keys);
    p.n_devices = (size_t)hv__int(L, 2, fn, "devices", -1, 1, 1 << 16);
    p.memory = hv__num(L, 2, fn, "memory", HUGE_VAL, 0, HUGE_VAL);
    if (lua_getfield(L, 2, "widths") != LUA_TTABLE) {
        hv__bad(L, fn, "widths", "a list of tables", -1);
    }
    p.n_widths = (size_t)lua_rawlen(L, -1);
    if (p.n_widths == 0 || p.n_widths > 64) {
        return luaL_error(L, "%s: widths: expected 1 to 64 widths", fn);
    }
    struct hv_replica_width *widths = hv__scratch_new(L, struct hv_replica_width, p.n_widths);
    p.widths = widths;
    for (size_t w = 0; w < p.n_widths; w++) {
        if (lua_rawgeti(L, -1, (lua_Integer)w + 1) != LUA_TTABLE) {
            hv__bad(L, fn, "widths", "a list of tables", -1);
        }
        read_width(L, p.n_layers, &widths[w]);
        lua_pop(L, 1);
    }
    enum hv_status s = hv_replicas_solve(&p, &limits, &h->arena, &r, &err);
    hv__check_stop(L);
    if (s != HV_OK) {
        return hv__raise(L, &err);
    }
    if (!r.feasible) {
        return hv__push_no(L, r.proof);
    }
    push_stages(L, &p, &r);
    return 1;
}
