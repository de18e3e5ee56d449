/* The console: lines, what they change as commands, and what becomes of handles then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scripting/worker/console.h"
#include "tests/plugin_fixture.h"

/** A console on a sample. */
struct bench {
    struct hv_inputs in;
    struct hv_plugins plugins;
    struct hv_console *c;
};

static void open_bench(struct bench *b)
{
    struct hv_err err = {0};

    *b = (struct bench){0};
    assert_int_equal(hv_inputs_read(&b->in, "two-generations", "llama-3-8b", NULL, &err), HV_OK);
    assert_int_equal(hv_plugins_read(&b->plugins, &err), HV_OK);
    const struct hv_console_config config = {.inputs = &b->in, .plugins = &b->plugins, .seed = 1};
    assert_int_equal(hv_console_new(&b->c, &config, &err), HV_OK);
}

static void close_bench(struct bench *b)
{
    hv_console_free(b->c);
    hv_plugins_free(&b->plugins);
    hv_inputs_free(&b->in);
}

/** Runs a line that must give this output and these commands (compact JSON, "" = none). */
static void expect_line(struct bench *b, const char *line, const char *out, const char *commands)
{
    struct hv_str said = {0}, told = {0};
    struct hv_err err = {0};

    if (hv_console_eval(b->c, line, &said, &err) != HV_CONSOLE_DONE) {
        fail_msg("%s: %s", line, err.text);
    }
    assert_string_equal(hv_str_cstr(&said), out);
    json_t *c = hv_console_commands(b->c);
    if (c != NULL) {
        hv_json_write(&told, c, false);
    }
    assert_string_equal(hv_str_cstr(&told), commands);
    json_decref(c);
    hv_str_free(&said);
    hv_str_free(&told);
}

static void expect_error(struct bench *b, const char *line, const char *part)
{
    struct hv_str said = {0};
    struct hv_err err = {0};

    assert_int_equal(hv_console_eval(b->c, line, &said, &err), HV_CONSOLE_ERROR);
    if (strstr(err.text, part) == NULL) {
        fail_msg("%s: '%s' is not in '%s'", line, part, err.text);
    }
    assert_null(hv_console_commands(b->c));
    hv_str_free(&said);
}

static void test_changes_become_commands(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    expect_line(&b, "ctx.cluster.n_devices", "32\n", "");
    expect_line(&b, "workspace.cluster.nodes[1].count = 4", "",
                "[{\"do\":\"set\",\"path\":\"cluster.nodes[0].count\",\"value\":4}]");
    expect_line(&b, "ctx.cluster.n_devices", "48\n", "");
    expect_line(&b, "workspace.cluster.nodes[1].count = 4", "", "");
    expect_line(&b, "workspace.model.layers, workspace.job.global_batch = 16, 128", "",
                "[{\"do\":\"set\",\"path\":\"model.layers\",\"value\":16},{\"do\":\"set\",\"path\":"
                "\"job.global_batch\",\"value\":128}]");
    expect_line(&b, "return ctx.model.n_layers, ctx.job.global_batch", "16\t128\n", "");
    expect_line(&b, "local _ = table.remove(workspace.cluster.nodes, 1)", "",
                "[{\"do\":\"remove\",\"path\":\"cluster.nodes[0]\"}]");
    expect_line(&b,
                "table.insert(workspace.cluster.nodes, 1, {name = 'new', count = 1, device = "
                "'A100-SXM-80GB', devices = 8})",
                "",
                "[{\"do\":\"insert\",\"path\":\"cluster.nodes[0]\",\"value\":{\"name\":\"new\","
                "\"count\":1,\"devices\":8,\"device\":\"A100-SXM-80GB\"}}]");
    expect_line(&b, "workspace.cluster['x-my.note'] = 'hm'", "",
                "[{\"do\":\"set\",\"path\":\"cluster[\\\"x-my.note\\\"]\",\"value\":\"hm\"}]");
    expect_line(&b, "workspace.cluster['x-my.note'] = nil", "",
                "[{\"do\":\"remove\",\"path\":\"cluster[\\\"x-my.note\\\"]\"}]");
    expect_line(&b, "return ctx.cluster:groups()[1].name", "new\n", "");
    close_bench(&b);
}

static void test_what_cannot_be_is_taken_back(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    expect_error(&b, "workspace.cluster.nodes[1].count = 'x'", "nodes[0].count");
    expect_line(&b, "return workspace.cluster.nodes[1].count", "2\n", "");
    expect_error(&b, "workspace.cluster.nodes[1] = nil", "hole");
    expect_error(&b, "workspace.cluster = 3", "workspace.cluster: expected a table");
    expect_error(&b, "workspace.job.global_batch = function() end", "workspace.job");
    expect_error(&b, "workspace.model.colour = 1", "colour");
    /* two documents, one of them wrong: neither is changed */
    expect_error(&b, "workspace.job.global_batch = 8 workspace.cluster.nodes = {}", "nodes");
    expect_line(&b, "return ctx.job.global_batch, #workspace.cluster.nodes", "256\t2\n", "");
    expect_error(&b, "workspace.plans[1] = hv.strategy('uniform')", "names as keys");
    close_bench(&b);
}

static void test_plans_and_handles(void **state)
{
    struct hv_str said = {0};
    struct bench b;
    struct hv_err err = {0};
    (void)state;
    open_bench(&b);
    expect_line(&b, "t = hv.cost.layers{tp = 8} c = ctx.cluster", "", "");
    assert_int_equal(
        hv_console_eval(b.c, "workspace.plans.mine = hv.strategy('manual', {recompute = 'full'})",
                        &said, &err),
        HV_CONSOLE_DONE);
    json_t *commands = hv_console_commands(b.c);
    assert_int_equal(json_array_size(commands), 1);
    const json_t *first = json_array_get(commands, 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "mine");
    assert_true(json_is_array(json_object_get(json_object_get(first, "plan"), "replicas")));
    json_decref(commands);
    expect_line(&b, "workspace.job.global_batch = 64", "",
                "[{\"do\":\"set\",\"path\":\"job.global_batch\",\"value\":64}]");
    expect_error(&b, "return c:groups()", "a run that has ended");
    expect_line(&b, "return type(workspace.plans.mine)", "table\n", "");
    assert_int_equal(hv_console_eval(b.c, "for i = 1, 3 do", &said, &err), HV_CONSOLE_MORE);
    hv_str_free(&said);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_become_commands),
        cmocka_unit_test(test_what_cannot_be_is_taken_back),
        cmocka_unit_test(test_plans_and_handles),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
