/* Graph placement: the judge on a case done by hand, answers against enumeration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/dag.h"

/* a feeds b and c on another device: a's output (2) is paid once by each side, not per edge. */
static void transfers_are_paid_once_per_pair(void **state)
{
    (void)state;
    const struct hv_dag_node nodes[] = {{.accel = 1, .cpu = 9, .bytes = 1, .color = 0},
                                        {.accel = 3, .cpu = 9, .bytes = 1, .color = 1},
                                        {.accel = 4, .cpu = 9, .bytes = 1, .color = 2}};
    const struct hv_dag_edge edges[] = {{0, 1, 2}, {0, 2, 2}};
    const struct hv_dag g = {3, 2, 3, nodes, edges, 3, 1, 2};
    double load[4];
    assert_true(hv_dag_judge(&g, (size_t[]){0, 1, 1}, load) == 9);
    assert_true(load[0] == 3 && load[1] == 9 && load[2] == 0);
    assert_true(hv_dag_judge(&g, (size_t[]){0, 1, 2}, load) == 6);
    assert_true(load[0] == 5 && load[1] == 5 && load[2] == 6);
    assert_true(hv_dag_judge(&g, (size_t[]){0, 1, 3}, load) == 9); /* a CPU pays no transfer */
    assert_true(load[0] == 5 && load[3] == 9);
    assert_true(isinf(hv_dag_judge(&g, (size_t[]){0, 0, 0}, load))); /* memory */
}

static double brute(const struct hv_dag *g, size_t *device, size_t class)
{
    double load[8], best = HUGE_VAL;
    if (class == g->n_classes)
        return hv_dag_judge(g, device, load);
    for (size_t d = 0; d < g->n_accelerators + g->n_cpus; d++) {
        for (size_t v = 0; v < g->n_nodes; v++)
            if (g->nodes[v].color == class)
                device[v] = d;
        best = fmin(best, brute(g, device, class + 1));
    }
    return best;
}

static void small_graphs_are_never_beaten_by_much(void **state)
{
    (void)state;
    struct hv_rng rng;
    int equal = 0, n_cases = 12;
    hv_rng_seed(&rng, 2);
    for (int k = 0; k < n_cases; k++) {
        struct hv_dag_node nodes[7];
        struct hv_dag_edge edges[21];
        struct hv_arena arena = {0};
        struct hv_dag_result r;
        size_t device[7], m = 0;
        for (size_t v = 0; v < 7; v++)
            nodes[v] = (struct hv_dag_node){.accel = 1 + 9 * hv_rng_double(&rng),
                                            .cpu = 20 + 30 * hv_rng_double(&rng),
                                            .bytes = 1,
                                            .color = v < 5 ? v : v - 5};
        for (size_t v = 5; v < 7; v++)
            nodes[v].backward = true;
        for (size_t u = 0; u < 7; u++)
            for (size_t v = u + 1; v < 7; v++)
                if (hv_rng_below(&rng, 2))
                    edges[m++] = (struct hv_dag_edge){u, v, 0.1 * (double)(u + 1)};
        const struct hv_dag g = {7, m, 5, nodes, edges, 2, 1, 5};
        assert_int_equal(hv_dag_solve(&g, NULL, &arena, &r, NULL), HV_OK);
        double want = brute(&g, device, 0);
        assert_true(r.feasible && r.objective >= want - 1e-9 && r.bound <= want + 1e-9);
        assert_true(r.objective <= r.contiguous);
        equal += r.objective <= want + 1e-9;
        hv_arena_free(&arena);
    }
    assert_true(equal == n_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers_are_paid_once_per_pair),
        cmocka_unit_test(small_graphs_are_never_beaten_by_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
