/* The sandbox: what must not be reachable, what must end, what must not depend on addresses or the
 * clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "scripting/host/host_int.h"
#include "scripting/plugin/plugin_host.h"
#include "solver/base/str.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/** Runs a text chunk in a fresh environment and throws its results away. */
static enum hv_status run_text(struct hv_host *h, const char *text, const char *name,
                               struct hv_err *err)
{
    enum hv_status s = hv__env(h->L, NULL, NULL, err);

    if (s == HV_OK) {
        s = hv__load(h->L, text, strlen(text), name, -1, err);
        lua_settop(h->L, 0);
    }
    hv_arena_free(&h->arena);
    return s;
}

static void collect(void *ctx, const char *text)
{
    struct hv_str *out = ctx;
    hv_str_adds(out, text);
    hv_str_addc(out, '\n');
}

/** Runs a text with small limits; the log goes to `out`, the error to err. */
static enum hv_status run(const char *text, struct hv_str *out, struct hv_err *err)
{
    const struct hv_host_limits limits = {
        .memory_bytes = 128 << 20, .instructions = 20000000, .seed = 7, .log = collect, .ctx = out};
    struct hv_host *h = NULL;
    *err = (struct hv_err){0};
    assert_int_equal(hv_plugin_host_new(&h, &limits, err), HV_OK);
    enum hv_status s = run_text(h, text, "plugins/t.lua", err);
    hv_host_free(h);
    return s;
}

static void expect_log(const char *text, const char *want)
{
    struct hv_str out = {0};
    struct hv_err err;
    enum hv_status s = run(text, &out, &err);
    if (s != HV_OK) {
        print_error("%s:%u: %s\n", err.file, err.line, err.text);
    }
    assert_int_equal(s, HV_OK);
    assert_string_equal(hv_str_cstr(&out), want);
    hv_str_free(&out);
}

static void expect_error(const char *text, unsigned line, const char *part)
{
    struct hv_str out = {0};
    struct hv_err err;
    assert_int_equal(run(text, &out, &err), HV_EPLUGIN);
    if (strstr(err.text, part) == NULL) {
        print_error("'%s' is not in '%s'\n", part, err.text);
    }
    assert_non_null(strstr(err.text, part));
    if (line > 0) {
        assert_string_equal(err.file, "plugins/t.lua");
        assert_int_equal(err.line, line);
    }
    hv_str_free(&out);
}

static void test_forbidden_globals(void **state)
{
    (void)state;
    expect_log("for _, n in "
               "ipairs{'io','os','debug','load','loadstring','loadfile','dofile','collectgarbage',"
               "'package','warn'} do if _G[n] ~= nil then print('reachable', n) end end "
               "if string.dump or math.randomseed then print 'reachable' end",
               "");
}

static void test_string_metatable_is_sealed(void **state)
{
    (void)state;
    expect_log("print(getmetatable('x'))", "false\n");
    expect_log("string.upper = function() return 'mine' end print(('x'):upper())", "X\n");
    expect_error("setmetatable(_G, {__gc = function() while true do end end})", 1, "__gc");
    expect_error("\nsetmetatable({}, {__mode = 'k'})", 2, "__mode");
}

static void test_endless_loops_die(void **state)
{
    (void)state;
    expect_error("while true do end", 1, "instruction budget");
    expect_error("while true do pcall(function() while true do end end) end", 1,
                 "instruction budget");
    expect_error("local function f() while true do end end\nwhile true do xpcall(f, f) end", 0,
                 "budget");
    expect_error("while true do pcall(coroutine.wrap(function() while true do end end)) end", 1,
                 "budget");
    expect_error("local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) "
                 "print(pcall(function() "
                 "return t[1] end)) while true do end",
                 1, "budget");
    expect_error(
        "local c = coroutine.wrap(function() local x <close> = setmetatable({}, {__close = "
        "function() while true do end end}) while true do end end) while true do pcall(c) end",
        0, "budget");
    expect_log("print(xpcall(error, function(m) return m .. '!' end, 'a')) "
               "local f = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) error('e' .. "
               "b, 0) end) "
               "print(f(1), pcall(f, 2))",
               "false a!\n2 false e2\n");
    expect_error("repeat pcall(string.rep, 'x', 1e9) until false", 1, "budget");
    expect_error("table.sort({3, 2, 1}, function() while true do end end)", 1, "budget");
}

static void test_memory_bombs(void **state)
{
    (void)state;
    expect_error("local t = {} for i = 1, 1e9 do t[i] = {} end", 0, "MiB");
    expect_error("local s = ('x'):rep(1e9)", 0, "MiB");
    expect_error("local s = 'x' while true do s = s .. s end", 0, "MiB");
    expect_log("print(pcall(string.rep, 'x', 1 << 62))", "false resulting string too large\n");
}

static void test_stack_overflow(void **state)
{
    (void)state;
    expect_error("local function f() return 1 + f() end\nf()", 1, "stack overflow");
    expect_error("local t = {} t.__index = t setmetatable(t, t) print(t.x)", 0, "loop");
    expect_error("local s = ('('):rep(500) .. '1' .. (')'):rep(500) error(s:sub(1, 3))", 1, "(((");
}

static void test_no_bytecode_and_no_outside_modules(void **state)
{
    (void)state;
    expect_error("\033Lua", 0, "binary");
    expect_error("require '../../etc/passwd'", 1, "neither");
    expect_error("require 'nothing_of_the_kind'", 1, "neither");
    expect_error("x = = 1", 1, "unexpected symbol");
}

static void test_order_is_sorted(void **state)
{
    (void)state;
    expect_log("local t = {b = 1, a = 2, [3] = 3, [1.5] = 4, [-1] = 5, [true] = 6}\n"
               "for k, v in pairs(t) do print(k, v) end",
               "true 6\n-1 5\n1.5 4\n3 3\na 2\nb 1\n");
    expect_log("local t = {c = 1, a = 2, b = 3} local k, v = next(t) while k do print(k, v) k, v = "
               "next(t, k) end",
               "a 2\nb 3\nc 1\n");
    expect_log("print(next({}))", "nil\n");
    expect_log(
        "local t = {a = 1, b = 2, c = 3} for k in pairs(t) do t[k] = nil t.c = nil print(k) end",
        "a\nb\n");
    expect_error("for k in pairs{[{}] = 1} do end", 1, "no order");
    expect_log("for k, v in pairs(setmetatable({}, {__pairs = function() return next, {z = 1}, nil "
               "end})) do print(k, v) end",
               "z 1\n");
}

static void test_sort_is_stable(void **state)
{
    (void)state;
    expect_log("local t = {} for i = 1, 1000 do t[i] = {i % 7, i} end\n"
               "table.sort(t, function(a, b) return a[1] < b[1] end)\n"
               "for i = 2, #t do assert(t[i-1][1] < t[i][1] or t[i-1][1] == t[i][1] and t[i-1][2] "
               "< t[i][2]) end\n"
               "local u = {5, 3, 1, 4, 2} table.sort(u) print(table.concat(u, ' '))\n"
               "table.sort(u, function() return true end) print(#u)",
               "1 2 3 4 5\n5\n");
    expect_error("\n\ntable.sort({1, 'x'})", 3, "compare");
}

static void test_no_addresses(void **state)
{
    (void)state;
    expect_log("print({}, print, coroutine.create(print), tostring({}))",
               "table function thread table\n");
    expect_log("print(string.format('%s %s %d %5.2f', {}, print, 3, 1.5), ('%s'):format({}))",
               "table function 3  1.50 table\n");
    expect_error("string.format('%p', {})", 1, "address");
    expect_error("string.format('%-20p', {})", 1, "address");
    expect_error("error({})", 0, "table");
    expect_log("print(setmetatable({}, {__tostring = function() return 'me' end}))", "me\n");
}

static void test_random_is_seeded(void **state)
{
    struct hv_str a = {0}, b = {0};
    struct hv_err err;
    const char *text = "for i = 1, 20 do print(math.random(), math.random(10), math.random(-3, 3), "
                       "hv.random(4)) end";
    (void)state;
    assert_int_equal(run(text, &a, &err), HV_OK);
    assert_int_equal(run(text, &b, &err), HV_OK);
    assert_string_equal(hv_str_cstr(&a), hv_str_cstr(&b));
    assert_true(a.n > 100);
    hv_str_free(&a);
    hv_str_free(&b);
    expect_error("math.random(0)", 1, "empty");
    expect_error("hv.random(0)", 1, "at least 1");
    expect_log("local x = math.random(math.mininteger, math.maxinteger) print(math.type(x))",
               "integer\n");
}

static bool stop_at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void test_cancel_and_deadline(void **state)
{
    struct hv_host_limits limits = {.cancel = stop_at_once};
    struct hv_host *h = NULL;
    struct hv_err err = {0};
    const char *text = "while true do pcall(hv.log, 'x') end";
    (void)state;
    assert_int_equal(hv_plugin_host_new(&h, &limits, &err), HV_OK);
    assert_int_equal(run_text(h, text, "t", &err), HV_ESTOPPED);
    hv_host_free(h);
    limits = (struct hv_host_limits){.deadline_s = 0.02};
    assert_int_equal(hv_plugin_host_new(&h, &limits, &err), HV_OK);
    assert_int_equal(run_text(h, text, "t", &err), HV_ESTOPPED);
    assert_non_null(strstr(err.text, "time limit"));
    hv_host_free(h);
}

static void test_environments_are_separate(void **state)
{
    struct hv_host_limits limits = {0};
    struct hv_host *h = NULL;
    struct hv_err err = {0};
    const char *one = "x = 1 hv.log = nil string.format = nil math.pi = 3";
    const char *two = "assert(x == nil and hv.log and string.format and math.pi > 3.1)";
    (void)state;
    assert_int_equal(hv_plugin_host_new(&h, &limits, &err), HV_OK);
    assert_int_equal(run_text(h, one, "one", &err), HV_OK);
    assert_int_equal(run_text(h, two, "two", &err), HV_OK);
    hv_host_free(h);
}

static void test_traceback_names_lines(void **state)
{
    struct hv_host_limits limits = {0};
    struct hv_host *h = NULL;
    struct hv_err err = {0};
    const char *text = "local function inner()\n  error('no good')\nend\nlocal function outer()\n  "
                       "inner()\nend\nouter()";
    (void)state;
    assert_int_equal(hv_plugin_host_new(&h, &limits, &err), HV_OK);
    assert_int_equal(run_text(h, text, "plugins/t.lua", &err), HV_EPLUGIN);
    assert_string_equal(err.text, "no good");
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(hv_host_traceback(h), "plugins/t.lua:5"));
    hv_host_free(h);
}

/** Every memory limit either refuses cleanly or works: no limit may crash or leak. */
static void test_any_memory_limit(void **state)
{
    (void)state;
    for (size_t kib = 1; kib < 400; kib += 3) {
        struct hv_host_limits limits = {.memory_bytes = kib << 10};
        struct hv_host *h = NULL;
        struct hv_err err = {0};
        if (hv_plugin_host_new(&h, &limits, &err) == HV_OK) {
            const char *text =
                "local t = {} for i = 1, 1000 do t[i] = {tostring(i)} end for k in pairs(t) do end "
                "table.sort(t, function(a, b) return a[1] < b[1] end)";
            (void)!run_text(h, text, "t", &err);
            assert_true(hv_host_used_bytes(h) <= limits.memory_bytes);
        }
        hv_host_free(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forbidden_globals),
        cmocka_unit_test(test_string_metatable_is_sealed),
        cmocka_unit_test(test_endless_loops_die),
        cmocka_unit_test(test_memory_bombs),
        cmocka_unit_test(test_stack_overflow),
        cmocka_unit_test(test_no_bytecode_and_no_outside_modules),
        cmocka_unit_test(test_order_is_sorted),
        cmocka_unit_test(test_sort_is_stable),
        cmocka_unit_test(test_no_addresses),
        cmocka_unit_test(test_random_is_seeded),
        cmocka_unit_test(test_cancel_and_deadline),
        cmocka_unit_test(test_environments_are_separate),
        cmocka_unit_test(test_traceback_names_lines),
        cmocka_unit_test(test_any_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
