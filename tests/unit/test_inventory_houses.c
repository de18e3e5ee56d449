/** Classes of equal houses: the same hardware gives the same ones, however its groups are written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/inventory/houses.h"
#include "tests/eval_fixture.h"

#define CLUSTER(nodes, network)                                                                    \
    "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[" nodes                            \
    "],\"network\":{\"bandwidth_GBps\":100,\"latency_us\":5" network "}}"
#define GROUP(name, count, more)                                                                   \
    "{\"name\":\"" name "\",\"count\":" #count                                                     \
    ",\"device\":\"A100-SXM-80GB\",\"devices\":8,\"nic\":{\"bandwidth_GBps\":100}" more "}"

/** A class as text: nodes of a house × houses, "like" the group. */
static const char *classes_of(const char *cluster, struct hv_arena *a)
{
    struct world w;
    struct hv_str out = {0};
    open_world(&w, cluster, model_text, job_text);
    const struct hv_cluster *c = hv_cost_cluster(w.cost);
    struct hv_houses h = hv_houses_of(c, a);
    for (size_t i = 0; i < h.n_classes; i++) {
        const struct hv_house_class *x = &h.classes[i];
        hv_str_addf(&out, "%s%u x %u like %s", i > 0 ? ", " : "", x->nodes, x->houses,
                    x->group->name);
        assert_int_equal(hv_house_class_of(&h, hv_cluster_domain_of(c, x->node)), i);
    }
    hv_str_addf(&out, ";");
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        uint32_t class = hv_house_class_of(&h, hv_cluster_domain_of(c, i));
        hv_str_addf(&out, class == HV_HOUSE_DRAINED ? " -" : " %u", class);
    }
    const char *text = hv_arena_strdup(a, hv_str_cstr(&out));
    hv_str_free(&out);
    close_world(&w);
    return text;
}

static void equal_nodes_are_one_class(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    static const struct {
        const char *cluster, *classes;
    } rows[] = {
        {CLUSTER(GROUP("a", 4, ""), ""), "1 x 4 like a; 0 0 0 0"},
        {CLUSTER(GROUP("b", 3, "") "," GROUP("a", 1, ""), ""), "1 x 4 like a; 0 0 0 0"},
        /* prices do not count, zones and links do */
        {CLUSTER(GROUP("a", 1, ",\"price_usd_per_hour\":3") "," GROUP("b", 1, ""), ""),
         "1 x 2 like a; 0 0"},
        {CLUSTER(GROUP("b", 2, ",\"zone\":\"x\"") "," GROUP("a", 2, ",\"zone\":\"y\""), ""),
         "1 x 2 like a, 1 x 2 like b; 1 1 0 0"},
        {CLUSTER(GROUP("a", 3, "") "," GROUP("b", 2, ""),
                 ",\"links\":[{\"between\":[\"a[1]\",\"b\"],\"bandwidth_GBps\":1}]"),
         "1 x 2 like a, 1 x 1 like a, 1 x 2 like b; 0 1 0 2 2"},
        {CLUSTER(GROUP("a", 2, ",\"zone\":\"x\"") "," GROUP("b", 1, ",\"zone\":\"x\""),
                 ",\"links\":[{\"between\":[\"x\",\"x\"],\"bandwidth_GBps\":1}]"),
         "1 x 3 like a; 0 0 0"},
        /* nodes that no plan may use */
        {CLUSTER(GROUP("a", 2, ",\"state\":\"drain\"") "," GROUP("b", 2, ",\"state\":\"spare\""),
                 ""),
         "1 x 2 like b; - - 0 0"},
        /* link domains are houses; the last has fewer nodes */
        {CLUSTER(GROUP("a", 5, ",\"domain_nodes\":2"), ""),
         "2 x 2 like a, 1 x 1 like a; 0 0 0 0 1"},
        {CLUSTER(GROUP("a", 2, ",\"domain_nodes\":2") "," GROUP("b", 3, ",\"domain_nodes\":2"), ""),
         "2 x 2 like a, 1 x 1 like b; 0 0 0 0 1"},
        {CLUSTER(GROUP("a", 4, ",\"domain_nodes\":2"),
                 ",\"links\":[{\"between\":[\"a[3]\",\"a[0]\"],\"bandwidth_GBps\":1}]"),
         "2 x 1 like a, 2 x 1 like a; 0 0 1 1"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        assert_string_equal(classes_of(rows[i].cluster, &a), rows[i].classes);
    }
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_nodes_are_one_class)};
    return cmocka_run_group_tests_name("inventory_houses", tests, NULL, NULL);
}
