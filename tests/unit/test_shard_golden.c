/**
 * Layouts, bytes and memory against XLA's partitioner (tests/golden/shard/xla.json, whose `source`
 * says how they were made): equal layouts of results, no more bytes sent, arguments and results
 * within 1 %.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/io/own/graph/shard_answer.h"
#include <math.h>
#include <string.h>

static double number(const json_t *o, const char *group, const char *key)
{
    const json_t *g = group != NULL ? json_object_get(o, group) : o;
    return json_number_value(json_object_get(g, key));
}

static void compare(const struct hv_shard_case *c, const json_t *theirs)
{
    struct hv_arena arena = {0};
    struct hv_err err = {0};
    struct hv_str text = {0};
    struct hv_json ours = {0};
    struct hv_shard_answer a = {.asked = c};
    assert_int_equal(hv_shard_graph_solve(&c->request, &arena, &a.sharding, &err), HV_OK);
    assert_int_equal(hv_shard_answer_print(&a, true, &text, &err), HV_OK);
    assert_int_equal(
        hv_json_parse(&ours, hv_str_cstr(&text), strlen(hv_str_cstr(&text)), "answer", &err),
        HV_OK);
    if (!json_equal(json_object_get(ours.root, "shardings"),
                    json_object_get(theirs, "shardings"))) {
        fail_msg("%s: another layout than XLA's: %s", c->id, hv_str_cstr(&text));
    }
    if (number(ours.root, NULL, "sent_bytes") > number(theirs, NULL, "sent_bytes") + 0.5) {
        fail_msg("%s: more bytes than XLA sends: %s", c->id, hv_str_cstr(&text));
    }
    static const char *const sizes[] = {"argument_bytes", "output_bytes"};
    for (size_t i = 0; i < 2; i++) {
        double own = number(ours.root, "memory", sizes[i]),
               his = number(theirs, "memory", sizes[i]);
        assert_true(fabs(own - his) <= 0.01 * his + 64); /* XLA counts a pointer per result */
    }
    hv_json_free(&ours);
    hv_str_free(&text);
    hv_arena_free(&arena);
}

static void as_xla_partitions(void **state)
{
    struct hv_json doc = {0};
    struct hv_str text = {0};
    struct hv_shard_cases cases = {0};
    struct hv_err err = {0};
    bool is_cases = false;
    (void)state;
    assert_int_equal(hv_shard_doc_load(&doc, "tests/golden/shard/xla.json", &is_cases, &err),
                     HV_OK);
    assert_true(is_cases);
    assert_int_equal(hv_shard_cases_read(&cases, &doc, &err), HV_OK);
    assert_true(cases.n >= 80);
    const json_t *list = json_object_get(doc.root, "cases");
    for (size_t i = 0; i < cases.n; i++) {
        compare(&cases.cases[i], json_object_get(json_array_get(list, i), "xla"));
    }
    hv_shard_cases_free(&cases);
    hv_json_free(&doc);
    hv_str_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_xla_partitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
