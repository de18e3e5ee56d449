/* Task graphs: hand-made cases, brute force on random graphs, exposed time, cycles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/sim/events/tasks.h"
#include <math.h>
#include <string.h>

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

static const enum hv_resource_kind kinds[] = {HV_RESOURCE_COMPUTE, HV_RESOURCE_LINK,
                                              HV_RESOURCE_COPY};

/* compute 4, then a transfer of 3 that hides behind 2 of compute, then compute that waits for it */
static void overlap_by_hand(void **state)
{
    (void)state;
    static const struct hv_task tasks[] = {
        {.duration_s = 4, .resource = 0, .start_bytes = 10},
        {.duration_s = 3, .resource = 1, .cause = 5, .start_bytes = 7, .end_bytes = -7},
        {.duration_s = 2, .resource = 0},
        {.duration_s = 1, .resource = 0, .end_bytes = -10},
    };
    static const int32_t dep_at[] = {0, 0, 1, 1, 2}, dep[] = {0, 1};
    struct hv_task_graph g = {4, 3, tasks, kinds, dep_at, dep};
    struct hv_arena a = {0};
    struct hv_task_run run;
    hv_tasks_run_new(&a, &g, &run);
    assert_int_equal(hv_tasks_run(&a, &g, &run, NULL), HV_OK);
    assert_true(is_near(run.makespan_s, 8));
    assert_true(is_near(run.compute_s, 7));
    assert_true(is_near(run.exposed_s, 1));
    assert_true(is_near(run.exposed_by_cause_s[5], 1));
    assert_true(is_near(run.busy_s[1], 3));
    assert_true(is_near(run.peak_bytes, 17));
    assert_true(is_near(run.peak_at_s, 4));
    hv_arena_free(&a);
}

static void refusals(void **state)
{
    (void)state;
    static const struct hv_task tasks[] = {{.duration_s = 1}, {.duration_s = 1}};
    static const int32_t dep_at[] = {0, 1, 2}, dep[] = {1, 0};
    struct hv_task_graph g = {2, 1, tasks, kinds, dep_at, dep};
    struct hv_arena a = {0};
    struct hv_task_run run;
    struct hv_err err = {0};
    hv_tasks_run_new(&a, &g, &run);
    assert_int_equal(hv_tasks_run(&a, &g, &run, &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "not before it"));
    hv_arena_free(&a);
}

enum { MAX_TASKS = 40 };

struct world {
    struct hv_task tasks[MAX_TASKS];
    int32_t dep_at[MAX_TASKS + 1], dep[MAX_TASKS * 3];
};

static struct hv_task_graph random_graph(struct world *w, struct hv_rng *r)
{
    size_t n = 1 + hv_rng_below(r, MAX_TASKS);
    int32_t k = 0;
    for (size_t i = 0; i < n; i++) {
        w->dep_at[i] = k;
        w->tasks[i] = (struct hv_task){.duration_s = (double)hv_rng_below(r, 8),
                                       .resource = (int32_t)hv_rng_below(r, 3)};
        for (uint64_t d = hv_rng_below(r, 4); d > 0 && i > 0; d--) {
            w->dep[k++] = (int32_t)hv_rng_below(r, i);
        }
    }
    w->dep_at[n] = k;
    return (struct hv_task_graph){n, 3, w->tasks, kinds, w->dep_at, w->dep};
}

/* what a run must satisfy whoever ordered it: dependencies, one task at a time, nobody waits for
 * nothing */
static void check_run(const struct hv_task_graph *g, const struct hv_task_run *run)
{
    double compute = 0;
    for (size_t i = 0; i < g->n_tasks; i++) {
        bool bound = run->start_s[i] <= 0;
        for (int32_t k = g->dep_at[i]; k < g->dep_at[i + 1]; k++) {
            assert_true(run->start_s[i] >= run->end_s[g->dep[k]]);
            bound = bound || is_near(run->end_s[g->dep[k]], run->start_s[i]);
        }
        for (size_t j = 0; j < g->n_tasks; j++) {
            if (i == j || g->tasks[i].resource != g->tasks[j].resource) {
                continue;
            }
            assert_true(run->end_s[i] <= run->start_s[j] || run->end_s[j] <= run->start_s[i] ||
                        is_near(run->start_s[j], run->end_s[j]));
            bound = bound || is_near(run->end_s[j], run->start_s[i]);
        }
        assert_true(bound);
        compute += g->tasks[i].resource == 0 ? g->tasks[i].duration_s : 0;
    }
    assert_true(is_near(run->compute_s, compute));
    double told = run->exposed_by_cause_s[0];
    assert_true(is_near(told, run->exposed_s));
}

static void random_graphs(void **state)
{
    (void)state;
    struct hv_rng r;
    struct world w;
    hv_rng_seed(&r, 3);
    for (int i = 0; i < 300; i++) {
        struct hv_task_graph g = random_graph(&w, &r);
        struct hv_arena a = {0};
        struct hv_task_run run;
        hv_tasks_run_new(&a, &g, &run);
        assert_int_equal(hv_tasks_run(&a, &g, &run, NULL), HV_OK);
        check_run(&g, &run);
        struct hv_task_run placed; /* the same but for what only a sweep tells */
        hv_tasks_run_new(&a, &g, &placed);
        assert_int_equal(hv_tasks_place(&a, &g, &placed, NULL), HV_OK);
        assert_memory_equal(placed.start_s, run.start_s, g.n_tasks * sizeof *run.start_s);
        assert_memory_equal(placed.end_s, run.end_s, g.n_tasks * sizeof *run.end_s);
        assert_memory_equal(placed.busy_s, run.busy_s, g.n_resources * sizeof *run.busy_s);
        assert_true(placed.makespan_s == run.makespan_s && placed.exposed_s == 0);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_by_hand),
        cmocka_unit_test(refusals),
        cmocka_unit_test(random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
