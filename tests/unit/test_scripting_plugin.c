/* Plugins: metadata is checked, options are typed, the cache saves Lua, a broken plugin costs one
 * row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plugin_fixture.h"

static void expect_bad(const char *text, const char *part)
{
    struct hv_plugins p;
    struct hv_err err = {0};
    enum hv_status s = hv_plugins_read_file(&p, write_plugin("bad.lua", text), &err);
    if (s == HV_OK || strstr(err.text, part) == NULL) {
        print_error("'%s' is not in '%s'\n", part, err.text);
    }
    assert_int_equal(s, HV_EPLUGIN);
    assert_non_null(strstr(err.text, part));
    assert_non_null(strstr(err.file, "bad.lua"));
    assert_true(err.line > 0);
    hv_plugins_free(&p);
}

static void test_metadata_is_checked(void **state)
{
    (void)state;
    expect_bad("return 3", "returns a table");
    expect_bad("return {}", "api");
    expect_bad(HEAD "colour = 1 }", "colour");
    expect_bad(HEAD "summmary = 'x' }", "summary");
    expect_bad(HEAD "play = function() end }", "unknown function 'play'");
    expect_bad(HEAD "claim = 3 }", "claim: expected a function");
    expect_bad(HEAD "needs = { model = 'layer' } }", "layers");
    expect_bad(HEAD "options = { { key = 'a', type = 'int', help = 'h' } } }", "integer");
    expect_bad(HEAD "options = { { key = 'a', type = 'choice', help = 'h' } } }", "choices");
    expect_bad(HEAD
               "options = { { key = 'a', type = 'integer', help = 'h', default = 9, max = 3 } } }",
               "at most 3");
    expect_bad(HEAD "options = { { key = 'a', type = 'boolean', help = 'h' }, { key = 'a', type = "
                    "'boolean', help = 'h' } } }",
               "twice");
    expect_bad("return { api = 2, id = 'x' }", "api");
    expect_bad("\n\nerror('at load')", "at load");
    expect_bad("while true do end", "budget");
    expect_bad("local t = {} t.t = t return t", "deeply");
}

static void test_options(void **state)
{
    struct hv_plugins list;
    struct hv_err err = {0};
    json_t *o = NULL;
    (void)state;
    const struct hv_plugin *p = load(
        &list, HEAD
        "options = { { key = 'n', type = 'integer', default = 2, min = 1, max = 8, help = 'h' },"
        "{ key = 'x', type = 'number', help = 'h' }, { key = 'on', type = 'boolean', default = "
        "false, help = 'h' },"
        "{ key = 'way', type = 'choice', default = 'a', choices = { 'a', 'b' }, help = 'h' },"
        "{ key = 'name', type = 'string', default = 'q', help = 'h' } } }");
    const char *good[] = {"n=8", "x=-1.5", "on=true", "way=b", "name=a=b"};
    assert_int_equal(hv_options_parse(p, good, 5, &o, &err), HV_OK);
    assert_int_equal(json_integer_value(json_object_get(o, "n")), 8);
    assert_true(json_is_true(json_object_get(o, "on")));
    assert_string_equal(json_string_value(json_object_get(o, "name")), "a=b");
    json_decref(o);
    assert_int_equal(hv_options_parse(p, NULL, 0, &o, &err), HV_OK);
    assert_int_equal(json_integer_value(json_object_get(o, "n")), 2);
    assert_null(json_object_get(o, "x"));
    json_decref(o);
    const char *bad[] = {"n=0",   "n=9",     "n=1.5",    "n=nan", "n=inf", "n=",      "n=0x4",
                         "x=nan", "x=1e999", "on=maybe", "way=c", "m=1",   "nothing", "=3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(hv_options_parse(p, &bad[i], 1, &o, &err), HV_EUSAGE);
        assert_null(o);
    }
    hv_plugins_free(&list);
}

static void test_cache_saves_lua(void **state)
{
    struct hv_plugins a, b;
    struct hv_str path = {0}, text = {0};
    (void)state;
    write_plugin("bad.lua", HEAD "}");
    write_plugin("good.lua", "error('broken')");
    assert_int_equal(hv_plugins_read(&a, NULL), HV_OK);
    assert_true(a.n_run >= 2);
    assert_non_null(hv_plugins_find(&a, "mine"));
    assert_non_null(hv_plugins_find(&a, "good")->error);
    assert_int_equal(hv_plugins_read(&b, NULL), HV_OK);
    assert_int_equal(b.n_run, 0);
    assert_string_equal(hv_plugins_find(&a, "good")->error, hv_plugins_find(&b, "good")->error);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        assert_string_equal(a.items[i].id, b.items[i].id);
        assert_int_equal(a.items[i].n_options, b.items[i].n_options);
        assert_true(i == 0 || strcmp(a.items[i - 1].id, a.items[i].id) < 0);
    }
    hv_plugins_free(&b);
    /* one that requires another file is looked at again, since that one may have changed */
    write_plugin("good.lua", "require 'nowhere'");
    assert_int_equal(hv_plugins_read(&b, NULL), HV_OK);
    hv_plugins_free(&b);
    assert_int_equal(hv_plugins_read(&b, NULL), HV_OK);
    assert_int_equal(b.n_run, 1);
    hv_plugins_free(&b);
    hv_str_addf(&path, "%s/hetviz/plugins.json", folder);
    assert_int_equal(hv_file_write(hv_str_cstr(&path), "{\"format\": 3, oh", 16, NULL), HV_OK);
    assert_int_equal(hv_plugins_read(&b, NULL), HV_OK);
    assert_int_equal(b.n, a.n);
    hv_plugins_free(&b);
    /* an entry that is well-formed but wrong makes that plugin an error, never a crash */
    assert_int_equal(hv_file_read(hv_str_cstr(&path), &text, NULL), HV_OK);
    for (char *s = strstr(text.p, "\"integer\""); s != NULL; s = strstr(s, "\"integer\"")) {
        memcpy(s, "\"intxger\"", 9);
    }
    assert_int_equal(hv_file_write(hv_str_cstr(&path), text.p, text.n, NULL), HV_OK);
    assert_int_equal(hv_plugins_read(&b, NULL), HV_OK);
    hv_plugins_free(&b);
    assert_int_equal(remove(hv_str_cstr(&path)), 0);
    hv_plugins_free(&a);
    hv_str_free(&path);
    hv_str_free(&text);
}

static void test_a_file_that_hangs_in_c_costs_one_row(void **state)
{
    struct hv_plugins list;
    (void)state;
    write_plugin("hang.lua", "local s = string.rep('a', 1 << 20)\n"
                             "return s:find(('.-'):rep(30) .. 'b')");
    write_plugin("greedy.lua", "local s = 'x' while true do s = s .. s end");
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    assert_non_null(strstr(hv_plugins_find(&list, "hang")->error, "hang.lua:1: "));
    assert_non_null(strstr(hv_plugins_find(&list, "greedy")->error, "greedy.lua:1: "));
    hv_plugins_free(&list);
    write_plugin("hang.lua", HEAD "}");
    write_plugin("greedy.lua", HEAD "}");
}

static void test_skeleton_runs(void **state)
{
    struct hv_plugins list;
    struct hv_str text = {0};
    struct hv_selftest_counts counts = {0};
    (void)state;
    assert_int_equal(hv_plugin_skeleton(&text, "my-own", NULL), HV_OK);
    const struct hv_plugin *p = load(&list, hv_str_cstr(&text));
    assert_string_equal(p->id, "my-own");
    hv_str_clear(&text);
    hv_selftest(p, false, &counts, &text);
    assert_int_equal(counts.passed, 1);
    assert_int_equal(counts.failed, 0);
    assert_null(strstr(hv_str_cstr(&text), "s of CPU"));
    hv_selftest(p, true, &counts, &text);
    assert_int_equal(counts.passed, 2);
    assert_non_null(strstr(hv_str_cstr(&text), " s of CPU\n"));
    assert_int_equal(hv_plugin_skeleton(&text, "no/path", NULL), HV_EUSAGE);
    hv_plugins_free(&list);
    hv_str_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata_is_checked),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_cache_saves_lua),
        cmocka_unit_test(test_a_file_that_hangs_in_c_costs_one_row),
        cmocka_unit_test(test_skeleton_runs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
