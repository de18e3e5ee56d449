/*
 * hv.sim: pipeline schedules of the simulator. Numbers only; the time of a schedule on a cluster is
 * judged with a plan.
 */
#include "scripting/api/input_int.h"
#include "scripting/api/order_tokens.h"
#include "scripting/api/table.h"
#include "solver/sim/pipeline/pipeline.h"
#include "solver/sim/pipeline/steady.h"

#define FN      "hv.sim.schedule"
#define OPS_MAX ((int64_t)1 << 22)

/** Lists of times, one number per stage; NULL where all stages have the same. */
struct times {
    const double *f, *b, *w;
    size_t n, n_lists;
    const double *hop; /* one number per pair of neighbours */
    size_t n_hops;
};

/** One request. */
struct ask {
    struct hv_schedule_input in;
    struct times times;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
};

static void check(lua_State *L, enum hv_status s, const struct hv_err *err)
{
    if (s != HV_OK) {
        hv__raise(L, err);
    }
}

/** Options of a built-in schedule from the table at the top of the stack: numbers or texts. */
static void read_options(lua_State *L, struct hv_schedule_input *in)
{
    struct hv_err err = {0};

    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1)) {
            luaL_error(L, FN ": options: expected names with numbers or texts");
        }
        lua_pushvalue(L, -1); /* a copy to turn into text */
        check(L, hv_schedule_set_option(in, lua_tostring(L, -3), lua_tostring(L, -1), &err), &err);
        lua_pop(L, 1);
    }
}

/** One of f, b and w: a number for all stages, kept in *all, or a list of one per stage. */
static void read_time(lua_State *L, int at, const char *key, double *all, struct times *t)
{
    size_t n = 0;
    bool list = lua_getfield(L, at, key) == LUA_TTABLE;
    const double *x = list ? hv__numbers(L, lua_gettop(L), FN, NULL, &n) : NULL;

    lua_pop(L, 1);
    *all = list ? 0 : hv__num(L, at, FN, key, 1, 0, 1e12);
    if (!list) {
        return;
    }
    if (n == 0 || (t->n_lists > 0 && n != t->n)) {
        luaL_error(L, FN ": times.%s: expected one number per stage", key);
    }
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= 0 && x[i] <= 1e12)) {
            luaL_error(L, FN ": times.%s: expected numbers of at least 0", key);
        }
        *all = x[i] > *all ? x[i] : *all;
    }
    t->n = n;
    t->n_lists++;
    *(key[0] == 'f' ? &t->f : key[0] == 'b' ? &t->b : &t->w) = x;
}

/** Field hop: a number, or a list of one per pair of neighbours; schedulers that use a single hop
 * decide with the largest. */
static void read_hop(lua_State *L, int at, struct hv_schedule_input *in, struct times *t)
{
    bool list = lua_getfield(L, at, "hop") == LUA_TTABLE;

    t->hop = list ? hv__numbers(L, lua_gettop(L), FN, NULL, &t->n_hops) : NULL;
    lua_pop(L, 1);
    in->hop_s = list ? 0 : hv__num(L, at, FN, "hop", 0, 0, 1e12);
    for (size_t i = 0; list && i < t->n_hops; i++) {
        if (!(t->hop[i] >= 0 && t->hop[i] <= 1e12)) {
            luaL_error(L, FN ": times.hop: expected numbers of at least 0");
        }
        in->hop_s = t->hop[i] > in->hop_s ? t->hop[i] : in->hop_s;
    }
}

/** Times of all stages from field `times`; times that differ between stages are in `t`. */
static void read_times(lua_State *L, struct hv_schedule_input *in, struct times *t)
{
    static const char *const keys[] = {"f", "b", "w", "hop", NULL};

    if (lua_getfield(L, 2, "times") != LUA_TNIL) {
        int at = lua_gettop(L);
        if (!lua_istable(L, at)) {
            hv__bad(L, FN, "times", "a table {f, b, w, hop}", at);
        }
        hv__check_keys(L, at, FN, keys);
        read_time(L, at, "f", &in->cost.f_s, t);
        read_time(L, at, "b", &in->cost.b_s, t);
        read_time(L, at, "w", &in->cost.w_s, t);
        read_hop(L, at, in, t);
    }
    lua_pop(L, 1);
}

/** One cost per stage where lists were given, for schedulers and for the timing. */
static void spread_times(lua_State *L, struct ask *x, struct hv_arena *a)
{
    const struct times *t = &x->times;
    size_t n = (size_t)x->in.ranks * (size_t)x->in.chunks;

    if (t->n_lists == 0) {
        return;
    }
    if (t->n != n) {
        luaL_error(L, FN ": times: expected lists of %d numbers, one per stage, found %d", (int)n,
                   (int)t->n);
    }
    struct hv_stage_cost *c = hv_arena_new(a, struct hv_stage_cost, n);
    for (size_t i = 0; i < n; i++) {
        c[i] = (struct hv_stage_cost){t->f != NULL ? t->f[i] : x->in.cost.f_s,
                                      t->b != NULL ? t->b[i] : x->in.cost.b_s,
                                      t->w != NULL ? t->w[i] : x->in.cost.w_s};
    }
    x->in.costs = c;
}

/** Hops there and back for schedulers, where a list was given. */
static void spread_hops(lua_State *L, struct ask *x, struct hv_arena *a)
{
    size_t n = x->times.n_hops;

    if (x->times.hop == NULL) {
        return;
    }
    if (x->in.chunks != 1 || (x->in.row->flags & HV_SCHEDULE_TWO_WAY)) {
        luaL_error(L, FN ": times.hop: a list needs a schedule of one way and one chunk per rank");
    }
    if (n + 1 != (size_t)x->in.ranks) {
        luaL_error(L, FN ": times.hop: expected %d numbers, one per pair of neighbours, found %d",
                   (int)x->in.ranks - 1, (int)n);
    }
    double *both = hv_arena_new(a, double, 2 * n + 1);
    for (size_t i = 0; i < n; i++) {
        both[i] = both[n + i] = x->times.hop[i];
    }
    x->in.hops_s = both;
}

/** The order of the plugin of that id; its options are the table at the top, which is popped. */
static void order_of_plugin(lua_State *L, struct ask *x, const char *id, struct hv_arena *a)
{
    const struct hv__run *r = hv__run_of(L, FN);

    if (!r->calls->order(L, r->calls->find_schedule(r, id), &x->in)) {
        luaL_error(L, FN ": schedule %s gives no order: %s", id, hv__tolstring(L, -1, NULL));
    }
    x->in.order = hv__take_order(L, lua_gettop(L) - 1, FN, x->in.ranks, a);
    lua_pop(L, 2);
}

/** The row of a built-in name; of any other name that of orders written out, where a plugin has it
 * as order(p), and an error where none has. */
static const struct hv_schedule_row *row_of(lua_State *L, const char *name, bool *of_plugin)
{
    const struct hv_schedule_row *row = NULL;
    struct hv_err err = {0}, other;

    *of_plugin = false;
    if (hv_schedule_find(name, &row, &err) == HV_OK) {
        return row;
    }
    const struct hv__run *run = hv__run_of(L, FN);
    *of_plugin = run->calls->find_schedule(run, name) != NULL;
    if (!*of_plugin) {
        hv__raise(L, &err);
    }
    check(L, hv_schedule_find("explicit", &row, &other), &other);
    return row;
}

/** Fills x->in: a built-in name, the id of a plugin with order(p), or an order written out. */
static void read_request(lua_State *L, struct ask *x, struct hv_arena *a)
{
    static const char *const keys[] = {"ranks",   "micro_batches", "chunks", "times",
                                       "options", "spans",         "order",  NULL};
    bool written = lua_istable(L, 1), of_plugin = false;
    const char *name = written ? "explicit" : luaL_checkstring(L, 1);

    luaL_checktype(L, 2, LUA_TTABLE);
    hv__check_keys(L, 2, FN, keys);
    const struct hv_schedule_row *row = row_of(L, name, &of_plugin);
    int32_t p = (int32_t)hv__int(L, 2, FN, "ranks", 0, 1, HV_SCHEDULE_RANKS_MAX);
    int32_t m = (int32_t)hv__int(L, 2, FN, "micro_batches", 0, 1, HV_SCHEDULE_MB_MAX);
    hv_schedule_input_init(&x->in, row, p, m);
    read_times(L, &x->in, &x->times);
    if (lua_getfield(L, 2, "options") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    if (!lua_istable(L, -1)) {
        hv__bad(L, FN, "options", "a table", lua_gettop(L));
    }
    if (!of_plugin) {
        read_options(L, &x->in);
    }
    x->in.chunks = (int32_t)hv__int(L, 2, FN, "chunks", hv_schedule_usual_chunks(&x->in), 1,
                                    HV_SCHEDULE_CHUNKS_MAX);
    if ((int64_t)p * m * x->in.chunks > OPS_MAX) {
        luaL_error(L, FN ": ranks times micro_batches times chunks: expected at most %d",
                   (int)OPS_MAX);
    }
    spread_times(L, x, a);
    spread_hops(L, x, a);
    if (of_plugin) {
        order_of_plugin(L, x, name, a);
        return;
    }
    lua_pop(L, 1);
    if (written) {
        x->in.order = hv__take_order(L, 1, FN, p, a);
    }
}

/** Cost of every hop of the compiled pipeline from the list of one per pair of neighbours. */
static const double *price_hops(const struct ask *x, struct hv_arena *a)
{
    const double *given = x->times.hop;

    if (given == NULL || x->g.n_hops == 0) {
        return NULL;
    }
    double *hop_s = hv_arena_new(a, double, (size_t)x->g.n_hops);
    for (int32_t i = 0; i < x->g.n_hops; i++) {
        hop_s[i] = given[(size_t)i % x->times.n_hops];
    }
    return hop_s;
}

static void price(struct ask *x, struct hv_arena *a)
{
    size_t n = (size_t)x->s.n_stages;
    size_t listed = (size_t)x->in.ranks * (size_t)x->in.chunks;
    double *t = hv_arena_new(a, double, n *HV_OP_KIND_N);

    for (size_t i = 0; i < n; i++) {
        double *row = t + i * HV_OP_KIND_N;
        const struct hv_stage_cost *c =
            x->in.costs != NULL && n == listed ? &x->in.costs[i] : &x->in.cost;
        row[HV_OP_F] = row[HV_OP_R] = c->f_s;
        row[HV_OP_B] = c->b_s;
        row[HV_OP_W] = c->w_s;
        row[HV_OP_BW] = c->b_s + c->w_s;
    }
    x->cost =
        (struct hv_pipe_cost){.stage_s = t, .hop_s = price_hops(x, a), .hop_all_s = x->in.hop_s};
    hv_pipe_run_new(a, &x->g, &x->run);
    hv_pipe_time(&x->g, &x->cost, &x->run);
}

/** Sets t.order on the table at the top: the tokens of every rank, as a plan takes them. */
static void push_order(lua_State *L, const struct hv_schedule *s)
{
    struct hv_str text = {0};

    lua_createtable(L, s->n_ranks, 0);
    for (int32_t r = 0; r < s->n_ranks; r++) {
        lua_Integer n = 0;
        lua_newtable(L);
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1];) {
            hv_str_clear(&text);
            i += hv_schedule_add_token(s, i, &text);
            lua_pushstring(L, hv_str_cstr(&text));
            lua_rawseti(L, -2, ++n);
        }
        lua_rawseti(L, -2, r + 1);
    }
    hv_str_free(&text);
    lua_setfield(L, -2, "order");
}

/** Sets t.spans: per rank {start, end, start, end, …} in the order of its operations. */
static void push_spans(lua_State *L, const struct ask *x)
{
    lua_createtable(L, x->s.n_ranks, 0);
    for (int32_t r = 0; r < x->s.n_ranks; r++) {
        lua_Integer n = 0;
        lua_newtable(L);
        for (int32_t k = x->g.rank_node_at[r]; k < x->g.rank_node_at[r + 1]; k++) {
            lua_pushnumber(L, x->run.node_start_s[k]);
            lua_rawseti(L, -2, ++n);
            lua_pushnumber(L, x->run.node_end_s[k]);
            lua_rawseti(L, -2, ++n);
        }
        lua_rawseti(L, -2, r + 1);
    }
    lua_setfield(L, -2, "spans");
}

static void push_ints(lua_State *L, const char *key, const int32_t *x, int32_t n)
{
    lua_createtable(L, n, 0);
    for (int32_t i = 0; i < n; i++) {
        lua_pushinteger(L, x[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, key);
}

/***
A pipeline schedule, laid out and timed: one of the built-in names, the id of a plugin with
order(p), or an order written out (one list of operations such as "F0.0" per rank).
@function hv.sim.schedule
@tparam string|table which name, or order: one list of operations per rank
@tparam table q {ranks, micro_batches, chunks = the schedule's own, times = {f = 1, b = 1, w = 1,
hop = 0}: forward, input gradient, weight gradient (each a number, or a list of one per stage), hop
(a number, or, one way and with one chunk per rank, a list of one per pair of neighbours),
options = {key = value}, spans = false, order = true}
@treturn table {order = list per rank (as a plan's schedule of name "explicit" takes it; not with
order = false, which is quicker), makespan,
longest_span, bubble (of that span), idle_share, peak = list per rank, weight_versions = list per
rank, per_micro_batch (steady state, or nil), spans = with spans = true one list {start, end, start,
end, …} per rank}
@units any unit of time, the same in and out; peak counts activations of a stage; bubble and
idle_share are shares
@raise unknown schedule or option, sizes the schedule cannot have, an order that deadlocks (the
message names the operation), more than 4194304 operations of one kind
@usage local r = hv.sim.schedule("1f1b", {ranks = 4, micro_batches = 8, times = {b = 2}})
print(r.makespan, r.bubble, r.order[1][1])
*/
static int sim_schedule(lua_State *L)
{
    hv__check_stop(L);
    struct hv_arena *a = &hv__host(L)->arena;
    struct hv_arena_mark mark = hv_arena_mark(a);
    struct hv_err err = {0};
    struct hv_steady steady;
    struct ask x = {0};

    read_request(L, &x, a);
    check(L, hv_schedule_make(a, &x.in, &x.s, &err), &err);
    check(L, hv_pipe_compile(a, &x.s, &x.g, &err), &err);
    price(&x, a);
    int32_t *peak = hv_arena_new(a, int32_t, (size_t)x.s.n_ranks);
    hv_schedule_peak_inflight(&x.s, peak);
    lua_newtable(L);
    hv__set_num(L, "makespan", x.run.makespan_s);
    hv__set_num(L, "longest_span", x.run.longest_span_s);
    hv__set_num(L, "bubble", x.run.span_bubble_frac);
    hv__set_num(L, "idle_share", x.run.bubble_frac);
    if (hv_pipe_steady(&x.g, &x.cost, &steady, &err) == HV_OK) {
        hv__set_num(L, "per_micro_batch", steady.per_micro_batch_s);
    }
    push_ints(L, "peak", peak, x.s.n_ranks);
    push_ints(L, "weight_versions", x.s.weight_versions, x.s.n_ranks);
    if (hv__bool(L, 2, FN, "order", true)) {
        push_order(L, &x.s);
    }
    if (hv__bool(L, 2, FN, "spans", false)) {
        push_spans(L, &x);
    }
    hv_arena_rewind(a, mark);
    return 1;
}

/** Appends {name, summary, lua} to the list at the top. */
static void push_row(lua_State *L, const char *name, const char *summary, bool lua)
{
    lua_createtable(L, 0, 3);
    hv__set_text(L, "name", name);
    hv__set_text(L, "summary", summary);
    lua_pushboolean(L, lua);
    lua_setfield(L, -2, "lua");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/***
All schedules: the built-in ones, then those of plugins with order(p).
@function hv.sim.schedules
@treturn table list of {name, summary, lua = true for those of plugins}
@units none
@raise none
@usage print(hv.sim.schedules()[1].name)
*/
static int sim_schedules(lua_State *L)
{
    hv__check_stop(L);
    const struct hv__run *run = hv__host(L)->run;
    size_t n;
    const struct hv_schedule_row *rows = hv_schedules(&n);

    lua_newtable(L);
    for (size_t i = 0; i < n; i++) {
        push_row(L, rows[i].name, rows[i].summary, false);
    }
    const char *name, *summary;
    for (size_t i = 0; run != NULL && (name = run->calls->schedule_at(run, i, &summary)) != NULL;
         i++) {
        push_row(L, name, summary, true);
    }
    return 1;
}

void hv__api_sim(lua_State *L)
{
    static const luaL_Reg rows[] = {
        {"schedule", sim_schedule}, {"schedules", sim_schedules}, {NULL, NULL}};

    hv__api_add(L, "sim", rows);
}
