/*
 * The self-tests of plugins (their selftest(t), and selftest.lua of a folder): `t` with near, equal
 * and ok, one line per check, and with (selftest_run.c). They run in a child process, which sends
 * counts and lines.
 */
#include "scripting/host/message.h"

#include "scripting/plugin/find.h"
#include "scripting/plugin/plugin_host.h"
#include "scripting/plugin/plugin_int.h"
#include "scripting/worker/parts_int.h"
#include "scripting/worker/run.h"
#include "solver/base/units.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define TEST_DEADLINE_S 60.0

/** A self-test in progress; the host's limits.ctx points to it. */
struct selftest {
    const struct hv_plugin *plugin;
    struct hv_selftest_counts *counts;
    struct hv_str *out;
    bool times;
    clock_t since; /* when the check before was done */
};

static struct selftest *test_of(lua_State *L)
{
    hv__check_stop(L);
    return hv__host(L)->limits.ctx;
}

/** Counts a check and writes its line: "ok    oobleck: name: got (source)", then what it took. */
static void record(lua_State *L, bool ok, const char *name, const char *text, int source)
{
    struct selftest *t = test_of(L);
    const char *from = luaL_optstring(L, source, "");

    *(ok ? &t->counts->passed : &t->counts->failed) += 1;
    hv_text_addf(t->out, "%s %s: %s: %s", ok ? "ok    " : "FAILED", t->plugin->id, name, text);
    if (from[0] != '\0') {
        hv_text_addf(t->out, " (%s)", from);
    }
    if (t->times) {
        clock_t now = clock();
        hv_text_addf(t->out, ", %.3f s of CPU", (double)(now - t->since) / CLOCKS_PER_SEC);
        t->since = now;
    }
    hv_str_addc(t->out, '\n');
}

static int test_near(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    double got = lua_type(L, 2) == LUA_TNUMBER ? lua_tonumber(L, 2) : HV_UNKNOWN;
    double want = luaL_checknumber(L, 3), tolerance = luaL_checknumber(L, 4);
    bool ok = fabs(got - want) <= tolerance;
    char text[160];

    if (ok) {
        snprintf(text, sizeof text, "%.12g", got);
    } else {
        snprintf(text, sizeof text, "got %.12g, expected %.12g within %g", got, want, tolerance);
    }
    record(L, ok, name, text, 5);
    return 0;
}

static int test_equal(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    bool ok = lua_compare(L, 2, 3, LUA_OPEQ) != 0;
    const char *got = hv__tolstring(L, 2, NULL), *want = hv__tolstring(L, 3, NULL);
    const char *text = ok ? got : lua_pushfstring(L, "got %s, expected %s", got, want);

    record(L, ok, name, text, 4);
    return 0;
}

static int test_ok(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    bool ok = lua_toboolean(L, 2) != 0;

    record(L, ok, name, ok ? "holds" : "does not hold", 3);
    return 0;
}

/** t.with(inputs, f): f(ctx, system) as in a run of the strategy on these inputs. */
static int test_with(lua_State *L)
{
    return hv__selftest_with(L, test_of(L)->plugin);
}

static int run_selftest(lua_State *L)
{
    static const luaL_Reg methods[] = {{"near", test_near},
                                       {"equal", test_equal},
                                       {"ok", test_ok},
                                       {"with", test_with},
                                       {NULL, NULL}};
    const struct hv_plugin *p = ((struct selftest *)lua_touserdata(L, 1))->plugin;
    struct hv_err err = {0};

    if (hv__plugin_push_of(L, p, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    int system = lua_gettop(L);
    if (lua_getfield(L, system, "selftest") != LUA_TNIL) {
        luaL_newlib(L, methods);
        lua_pushvalue(L, system);
        lua_call(L, 2, 0);
    }
    if (!p->in_folder || !hv__has_selftest_file(p->path)) {
        return 0;
    }
    if (hv__plugin_push_selftest(L, p->path, p->name, &err) != HV_OK) {
        hv__raise(L, &err);
    }
    luaL_newlib(L, methods);
    lua_pushvalue(L, system);
    lua_call(L, 2, 0);
    return 0;
}

/** Runs the self-test in this process. */
static void run_here(struct selftest *t)
{
    const struct hv_host_limits limits = {.deadline_s = TEST_DEADLINE_S, .seed = 1, .ctx = t};
    struct hv_host *h = NULL;
    struct hv_err err = {0};
    char text[1400];

    t->since = clock();
    enum hv_status s = hv_plugin_host_new(&h, &limits, &err);
    if (s == HV_OK) {
        s = hv__guard(h, run_selftest, t, &err);
    }
    if (s != HV_OK) {
        t->counts->failed++;
        hv_str_addf(t->out, "FAILED %s: %s\n", t->plugin->id,
                    hv_err_format(&err, text, sizeof text));
    }
    hv_host_free(h);
}

/** The child: {"passed", "failed", "text"}. */
static void run_inside(void *ctx, struct hv__cell_inside *inside)
{
    struct hv_selftest_counts counts = {0};
    struct hv_str text = {0};
    struct selftest t = *(const struct selftest *)ctx;

    t.counts = &counts;
    t.out = &text;
    run_here(&t);
    hv__message_send(inside, json_pack("{s:I, s:I, s:o}", "passed", (json_int_t)counts.passed,
                                       "failed", (json_int_t)counts.failed, "text",
                                       hv__pack_text(hv_str_cstr(&text), text.n)));
    hv_str_free(&text);
}

/** Counts a child without an answer as one failure. */
static void count_loss(struct selftest *t, enum hv__heard heard, int status)
{
    t->counts->failed++;
    hv_str_addf(t->out, "FAILED %s: %s: ", t->plugin->id, t->plugin->name);
    if (heard == HV__CELL_LATE) {
        hv_str_adds(t->out, "the self-test hangs in a call that cannot be interrupted");
    } else {
        hv_str_adds(t->out, "the process of the self-test has no result: ");
        hv__cell_describe(status, t->out);
    }
    hv_str_addc(t->out, '\n');
}

/** Runs the self-test in a child. */
static enum hv_status run_in_cell(struct selftest *t, struct hv_err *err)
{
    /* the host's own limit is to come first */
    const struct hv__cell_work work = {
        .run = run_inside, .ctx = t, .limit_s = 2 * TEST_DEADLINE_S, .cpu_s = 2 * TEST_DEADLINE_S};
    struct hv__cell cell;
    const char *line = NULL;
    size_t n = 0;
    enum hv_status s = hv__cell_start(&cell, &work, err);

    if (s != HV_OK) {
        return s;
    }
    enum hv__heard heard = hv__cell_next(&cell, &line, &n);
    json_t *answer = heard == HV__CELL_LINE ? hv__message_read(line, n) : NULL;
    int status = hv__cell_end(&cell);
    if (answer == NULL) {
        count_loss(t, heard, status);
        return HV_OK;
    }
    t->counts->passed += (size_t)json_integer_value(json_object_get(answer, "passed"));
    t->counts->failed += (size_t)json_integer_value(json_object_get(answer, "failed"));
    hv__unpack_text(json_object_get(answer, "text"), t->out);
    json_decref(answer);
    return HV_OK;
}

void hv_selftest(const struct hv_plugin *p, bool times, struct hv_selftest_counts *counts,
                 struct hv_str *out)
{
    struct selftest t = {.plugin = p, .counts = counts, .out = out, .times = times};
    struct hv_err err = {0};
    char text[1400];

    if (p->error != NULL) {
        counts->failed++;
        hv_text_addf(out, "FAILED %s: %s\n", p->id, p->error);
        return;
    }
    if (!p->has[HV_PLUGIN_SELFTEST]) {
        return;
    }
    if (run_in_cell(&t, &err) != HV_OK) {
        counts->failed++;
        hv_text_addf(out, "FAILED %s: %s\n", p->id, hv_err_format(&err, text, sizeof text));
    }
}
