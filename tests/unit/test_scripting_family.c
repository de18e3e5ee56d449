/* Families: one plugin, several strategies. Their rows are read, kept in the cache, refused with
 * the row named, and run with ctx.system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plugin_fixture.h"

#define FAMILY                                                                                     \
    "return { api = 1, kind = 'data', summary = 'of the family', year = 2001,\n"                   \
    "plan = function(ctx) return nil, 'I am ' .. ctx.system.id .. ' with ' .. "                    \
    "ctx.system.sets.zero end,\n"                                                                  \
    "options = { { key = 'n', type = 'integer', default = 2, help = 'h' } },\n"

static const char two_rows[] = FAMILY
    "systems = {\n"
    "{ id = 'one', title = 'One', system = 'First paper', venue = 'VLDB', reference = 'arXiv:1',\n"
    "  sets = { zero = 1 }, searches = { 'degrees', 'buckets' }, verified = { 'a number' } },\n"
    "{ id = 'two', title = 'Two', kind = { 'tensor', 'hetero' }, summary = 'its own', year = "
    "2002,\n  system = 'Second paper',\n"
    "  sets = { zero = 2 }, options = { { key = 'm', type = 'boolean', help = 'h' } },\n"
    "  plan = function(ctx) return nil, 'own plan of ' .. ctx.system.id end,\n"
    "  selftest = function(t, system) t.equal('id', system.id, 'two', 'hand') end } } }";

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
    assert_int_equal(p.n, 0);
    hv_plugins_free(&p);
}

static void test_rows_stand_over_the_family(void **state)
{
    struct hv_plugins list;
    struct hv_str cite = {0};
    (void)state;
    const struct hv_plugin *one = load(&list, two_rows), *two = one + 1;
    assert_int_equal(list.n, 2);
    assert_string_equal(one->id, "one");
    assert_string_equal(one->summary, "of the family");
    assert_string_equal(one->family, "good");
    assert_int_equal(one->year, 2001);
    assert_int_equal(one->n_searches, 2);
    assert_string_equal(one->verified[0], "a number");
    assert_string_equal(one->options[0].key, "n");
    assert_int_equal(json_integer_value(json_object_get(one->sets, "zero")), 1);
    assert_false(one->has[HV_PLUGIN_SELFTEST]);
    hv_plugin_cite(one, &cite);
    assert_string_equal(hv_str_cstr(&cite), "First paper, VLDB 2001, arXiv:1");
    hv_str_free(&cite);
    hv_plugin_cite(two, &cite); /* without a venue */
    assert_string_equal(hv_str_cstr(&cite), "Second paper, 2002");
    hv_str_free(&cite);
    assert_string_equal(two->summary, "its own");
    assert_int_equal(two->year, 2002);
    assert_string_equal(two->kind, "tensor, hetero");
    assert_true(hv_plugin_is_of(two, HV_KIND_TENSOR) && hv_plugin_is_of(two, HV_KIND_HETERO));
    assert_false(hv_plugin_is_of(two, HV_KIND_DATA));
    /* this file is the user's, so its heading is theirs */
    assert_int_equal(two->kinds[0], HV_KIND_YOURS);
    assert_string_equal(two->options[0].key, "m");
    assert_true(two->has[HV_PLUGIN_PLAN] && two->has[HV_PLUGIN_SELFTEST]);
    hv_plugins_free(&list);
}

static void test_bad_families_are_refused(void **state)
{
    (void)state;
    expect_bad(FAMILY "systems = {} }", "systems: expected a list");
    expect_bad(FAMILY "systems = { 3 } }", "a table in systems");
    expect_bad(FAMILY "systems = { { title = 'x' } } }", "systems[1]: expected a row with an id");
    expect_bad(FAMILY "id = 'f', systems = { { id = 'a' } } }", "a family has no id");
    expect_bad(FAMILY "systems = { { id = 'a', title = 'A' }, { id = 'a', title = 'A' } } }",
               "two rows have the id 'a'");
    expect_bad(FAMILY "systems = { { id = 'a', title = 'A' }, { id = 'b' } } }", "row 'b': ");
    expect_bad(FAMILY "systems = { { id = 'a', title = 'A', colour = 1 } } }", "row 'a': ");
    expect_bad(FAMILY "systems = { { id = 'a', title = 'A', systems = {} } } }", "systems");
    expect_bad(FAMILY "systems = { { id = 'a', title = 'A', play = function() end } } }",
               "unknown function 'play'");
    expect_bad(FAMILY "systems = { { id = 'a', title = 'A', kind = {} } } }", "kinds");
}

static void run_row(const struct hv_plugins *list, const char *id, const char *reason)
{
    struct hv_inputs in = {0};
    struct hv_run_result out;
    struct hv_err err = {0};
    assert_int_equal(hv_inputs_read(&in, "homogeneous", "llama-3-8b", NULL, &err), HV_OK);
    const struct hv_run_request r = {
        .inputs = &in, .plugins = list, .strategy = id, .seed = 1, .time_limit_s = 4};
    assert_int_equal(hv_run_strategy(&r, &out, &err), HV_ENO);
    assert_string_equal(hv_str_cstr(&out.reason), reason);
    hv_run_result_free(&out);
    hv_inputs_free(&in);
}

static void test_a_row_runs_as_itself(void **state)
{
    struct hv_plugins list;
    struct hv_selftest_counts counts = {0};
    struct hv_str text = {0};
    (void)state;
    load(&list, two_rows);
    run_row(&list, "one", "I am one with 1");
    run_row(&list, "two", "own plan of two");
    for (size_t i = 0; i < list.n; i++) {
        hv_selftest(&list.items[i], false, &counts, &text);
    }
    assert_int_equal(counts.passed, 1);
    assert_int_equal(counts.failed, 0);
    assert_string_equal(hv_str_cstr(&text), "ok     two: id: two (hand)\n");
    hv_str_free(&text);
    hv_plugins_free(&list);
}

static void test_cache_keeps_rows(void **state)
{
    struct hv_plugins a, b;
    (void)state;
    write_plugin("good.lua", two_rows);
    unlink(write_plugin("bad.lua", ""));
    assert_int_equal(hv_plugins_read(&a, NULL), HV_OK);
    assert_int_equal(hv_plugins_read(&b, NULL), HV_OK);
    assert_int_equal(b.n_run, 0);
    assert_int_equal(a.n, b.n);
    const struct hv_plugin *two = hv_plugins_find(&b, "two");
    assert_non_null(two);
    assert_string_equal(two->family, "good");
    assert_int_equal(json_integer_value(json_object_get(two->sets, "zero")), 2);
    hv_plugins_free(&a);
    hv_plugins_free(&b);
}

static void test_skeleton_runs(void **state)
{
    struct hv_plugins list;
    struct hv_selftest_counts counts = {0};
    struct hv_str path = {0}, text = {0};
    struct hv_err err = {0};
    (void)state;
    hv_str_addf(&path, "%s/plugins/fam", folder);
    assert_int_equal(hv_plugin_skeleton_family(hv_str_cstr(&path), "fam", &err), HV_OK);
    assert_int_equal(hv_plugins_read_file(&list, hv_str_cstr(&path), &err), HV_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].id, "fam-1f1b");
    for (size_t i = 0; i < list.n; i++) {
        hv_selftest(&list.items[i], false, &counts, &text);
    }
    assert_int_equal(counts.passed, 4);
    assert_int_equal(counts.failed, 0);
    hv_str_free(&text);
    hv_str_free(&path);
    hv_plugins_free(&list);
}

/** What a shipped row lists under `verified` is the name of a self-test of its own that passes. */
static void test_what_is_verified_is_tested(void **state)
{
    struct hv_plugins list;
    (void)state;
    assert_int_equal(hv_plugins_read(&list, NULL), HV_OK);
    for (size_t i = 0; i < list.n; i++) {
        const struct hv_plugin *p = &list.items[i];
        struct hv_selftest_counts counts = {0};
        struct hv_str text = {0}, line = {0};
        if (!p->shipped) {
            continue;
        }
        if (p->n_verified > 0) {
            hv_selftest(p, false, &counts, &text);
        }
        for (size_t k = 0; k < p->n_verified; k++) {
            hv_str_clear(&line);
            hv_str_addf(&line, "ok     %s: %s: ", p->id, p->verified[k]);
            if (strstr(hv_str_cstr(&text), hv_str_cstr(&line)) == NULL) {
                fail_msg("no self-test of %s is named '%s'", p->id, p->verified[k]);
            }
        }
        hv_str_free(&text);
        hv_str_free(&line);
    }
    hv_plugins_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_stand_over_the_family),
        cmocka_unit_test(test_bad_families_are_refused),
        cmocka_unit_test(test_a_row_runs_as_itself),
        cmocka_unit_test(test_cache_keeps_rows),
        cmocka_unit_test(test_skeleton_runs),
        cmocka_unit_test(test_what_is_verified_is_tested),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
