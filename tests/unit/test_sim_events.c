/* The event-driven engine: cases by hand, and against the engines for fixed orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/events/events.h"
#include "solver/sim/events/tasks.h"
#include "solver/sim/pipeline/play.h"
#include "tests/sim_fixture.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8 };

/* a graph small enough to be written down; deps[i] ends with -1 */
struct small {
    size_t n_tasks, n_resources;
    struct hv_event_task tasks[MOST];
    int32_t res[MOST][3], deps[MOST][3]; /* ended by -1; {0} stands for resource 0 alone */
    double capacity_bytes[2];
    int32_t pool_credits[2];
};

static enum hv_status play(const struct small *s, const struct hv_event_rules *rules,
                           struct hv_arena *a, struct hv_event_run *run, struct hv_err *err)
{
    int32_t res_at[MOST + 1] = {0}, dep_at[MOST + 1] = {0}, res[3 * MOST], dep[3 * MOST];
    for (size_t i = 0; i < s->n_tasks; i++) {
        res_at[i + 1] = res_at[i];
        dep_at[i + 1] = dep_at[i];
        for (int k = 0; k < 3 && s->res[i][k] >= 0 && (k == 0 || s->res[i][k] > 0); k++) {
            res[res_at[i + 1]++] = s->res[i][k];
        }
        for (int k = 0; k < 3 && s->deps[i][k] >= 0; k++) {
            dep[dep_at[i + 1]++] = s->deps[i][k];
        }
    }
    struct hv_event_graph g = {.n_tasks = s->n_tasks,
                               .n_resources = s->n_resources,
                               .n_memories = 2,
                               .n_pools = 2,
                               .tasks = s->tasks,
                               .res_at = res_at,
                               .res = res,
                               .dep_at = dep_at,
                               .dep = dep,
                               .capacity_bytes = s->capacity_bytes,
                               .pool_credits = s->pool_credits};
    hv_events_run_new(a, &g, run);
    return hv_events_run(&g, rules, run, err);
}

static const struct hv_event_rules plain = {0};
#define TASK(d) .duration_s = (d), .pool = -1, .memory = -1
#define NO_DEPS                                                                                    \
    {                                                                                              \
        -1                                                                                         \
    }

/* a long transfer in pieces of 2 lets an urgent one through at the end of a piece: 0…4, 4…5, 5…11;
 * without pieces the urgent one waits for all of it */
static void pieces_let_urgent_work_through(void **state)
{
    (void)state;
    struct small s = {.n_tasks = 3,
                      .n_resources = 2,
                      .tasks = {{TASK(10), .piece_s = 2}, {TASK(3)}, {TASK(1), .priority = 1}},
                      .res = {{0}, {1}, {0}},
                      .deps = {NO_DEPS, NO_DEPS, {1, -1}}};
    struct hv_arena a = {0};
    struct hv_event_run run;
    assert_int_equal(play(&s, &plain, &a, &run, NULL), HV_OK);
    NEAR(run.start_s[2], 4);
    NEAR(run.end_s[0], 11);
    NEAR(run.busy_s[0], 11);
    assert_int_equal(run.n_interrupted, 1);
    s.tasks[0].piece_s = 0;
    assert_int_equal(play(&s, &plain, &a, &run, NULL), HV_OK);
    NEAR(run.start_s[2], 10);
    assert_int_equal(run.n_interrupted, 0);
    hv_arena_free(&a);
}

/* two credits: the third transfer waits although its link is free */
static void credits_limit_what_is_under_way(void **state)
{
    (void)state;
    struct small s = {.n_tasks = 3,
                      .n_resources = 3,
                      .tasks = {{TASK(5)}, {TASK(3)}, {TASK(1)}},
                      .res = {{0}, {1}, {2}},
                      .deps = {NO_DEPS, NO_DEPS, NO_DEPS},
                      .pool_credits = {2}};
    for (int i = 0; i < 3; i++) {
        s.tasks[i].pool = 0;
        s.tasks[i].credits = 1;
    }
    struct hv_arena a = {0};
    struct hv_event_run run;
    struct hv_err err;
    assert_int_equal(play(&s, &plain, &a, &run, NULL), HV_OK);
    NEAR(run.start_s[2], 3);
    NEAR(run.makespan_s, 5);
    s.tasks[1].credits = 3;
    assert_int_equal(play(&s, &plain, &a, &run, &err), HV_ENO);
    assert_string_equal(
        err.text, "no task can continue: task 1 waits for 3 credits of pool 0, which has 2 left");
    hv_arena_free(&a);
}

/* one task on two devices starts when both are free and keeps both; of two such the urgent one goes
 * first even though the other's resources come first */
static void device_sets(void **state)
{
    (void)state;
    struct small s = {.n_tasks = 4,
                      .n_resources = 3,
                      .tasks = {{TASK(2)}, {TASK(5)}, {TASK(3)}, {TASK(1), .priority = 2}},
                      .res = {{0}, {1}, {0, 1, -1}, {1, 2, -1}},
                      .deps = {NO_DEPS, NO_DEPS, NO_DEPS, {1, -1}}};
    struct hv_arena a = {0};
    struct hv_event_run run;
    assert_int_equal(play(&s, &plain, &a, &run, NULL), HV_OK);
    NEAR(run.start_s[3], 5);
    NEAR(run.start_s[2], 6);
    NEAR(run.makespan_s, 9);
    NEAR(run.busy_s[1], 5 + 1 + 3);
    NEAR(run.busy_s[2], 1);
    hv_arena_free(&a);
}

/* 10 bytes: the second user waits for the first to give back; one that needs more never starts, and
 * the message says so */
static void memory_that_is_limited(void **state)
{
    (void)state;
    struct small s = {.n_tasks = 2,
                      .n_resources = 2,
                      .tasks = {{TASK(4)}, {TASK(1)}},
                      .res = {{0}, {1}},
                      .deps = {NO_DEPS, NO_DEPS},
                      .capacity_bytes = {10}};
    for (int i = 0; i < 2; i++) {
        s.tasks[i].memory = 0;
        s.tasks[i].start_bytes = 6;
        s.tasks[i].end_bytes = -6;
    }
    struct hv_arena a = {0};
    struct hv_event_run run;
    struct hv_err err;
    assert_int_equal(play(&s, &plain, &a, &run, NULL), HV_OK);
    NEAR(run.start_s[1], 4);
    NEAR(run.peak_bytes[0], 6);
    s.tasks[0].end_bytes = 0;
    assert_int_equal(play(&s, &plain, &a, &run, &err), HV_ENO);
    assert_string_equal(
        err.text, "no task can continue: task 1 waits for 6 of memory 0, which holds 6 of 10");
    hv_arena_free(&a);
}

static void circles_and_bad_numbers(void **state)
{
    (void)state;
    struct small s = {.n_tasks = 2,
                      .n_resources = 1,
                      .tasks = {{TASK(1)}, {TASK(1)}},
                      .res = {{0}, {0}},
                      .deps = {{1, -1}, {0, -1}}};
    struct hv_arena a = {0};
    struct hv_event_run run;
    struct hv_err err;
    assert_int_equal(play(&s, &plain, &a, &run, &err), HV_ENO);
    assert_non_null(strstr(err.text, "task 0 waits for task 1"));
    s.tasks[1].duration_s = -1;
    assert_int_equal(play(&s, &plain, &a, &run, &err), HV_EUSAGE);
    s.tasks[1].duration_s = 1;
    s.res[1][0] = 7;
    assert_int_equal(play(&s, &plain, &a, &run, &err), HV_EUSAGE);
    hv_arena_free(&a);
}

/* One task of a plain engine: one resource each, at every end the ready task of highest priority,
 * of equal ones the first. */
struct plain_task {
    double duration_s, start_s, end_s;
    int32_t resource, priority;
    bool placed;
};

/* The next task that resource r would take at the time `now`, or NULL. */
static struct plain_task *next_of(struct plain_task *tasks, int32_t n, const int32_t *dep_at,
                                  const int32_t *dep, int32_t r, double now)
{
    struct plain_task *best = NULL;
    for (int32_t i = 0; i < n; i++) {
        struct plain_task *t = &tasks[i];
        bool ready = !t->placed && t->resource == r;
        for (int32_t k = dep_at[i]; k < dep_at[i + 1]; k++) {
            ready = ready && tasks[dep[k]].placed && tasks[dep[k]].end_s <= now;
        }
        if (t->placed && t->resource == r && t->end_s > now) {
            return NULL;
        }
        if (ready && (best == NULL || t->priority > best->priority)) {
            best = t;
        }
    }
    return best;
}

/* Plays all tasks; durations are whole numbers, so every end is one. A task without a duration
 * ends at once, and the next one is taken after all that end at this time. */
static double play_plainly(struct plain_task *tasks, int32_t n, int32_t n_resources,
                           const int32_t *dep_at, const int32_t *dep)
{
    double makespan_s = 0;
    for (int32_t left = n, now = 0; left > 0; now++) {
        for (bool any = true; any;) {
            struct plain_task *started[16];
            int32_t n_started = 0;
            for (int32_t r = 0; r < n_resources; r++) {
                struct plain_task *t = next_of(tasks, n, dep_at, dep, r, now);
                if (t != NULL) {
                    started[n_started++] = t;
                }
            }
            for (int32_t i = 0; i < n_started; i++) {
                started[i]->placed = true;
                started[i]->start_s = now;
                started[i]->end_s = now + started[i]->duration_s;
                makespan_s = fmax(makespan_s, started[i]->end_s);
            }
            left -= n_started;
            any = n_started > 0;
        }
    }
    return makespan_s;
}

/* random graphs of tasks with one resource each, against the plain engine above */
static void as_the_plain_engine(void **state)
{
    (void)state;
    enum { N = 40, R = 4 };
    struct hv_rng r;
    hv_rng_seed(&r, 3);
    for (int round = 0; round < 1000; round++) {
        struct hv_event_task tasks[N];
        struct plain_task same[N];
        int32_t res_at[N + 1], res[N], dep_at[N + 1] = {0}, dep[N * N];
        for (int32_t i = 0; i < N; i++) {
            double d = (double)hv_rng_below(&r, 9);
            int32_t prio = (int32_t)hv_rng_below(&r, 3);
            res[i] = (int32_t)hv_rng_below(&r, R);
            res_at[i] = i;
            tasks[i] = (struct hv_event_task){TASK(d), .priority = prio};
            same[i] = (struct plain_task){.duration_s = d, .resource = res[i], .priority = prio};
            dep_at[i + 1] = dep_at[i];
            for (int32_t k = 0; k < i; k++) {
                if (hv_rng_below(&r, 10) == 0) {
                    dep[dep_at[i + 1]++] = k;
                }
            }
        }
        res_at[N] = N;
        struct hv_arena a = {0};
        struct hv_event_graph g = {.n_tasks = N,
                                   .n_resources = R,
                                   .tasks = tasks,
                                   .res_at = res_at,
                                   .res = res,
                                   .dep_at = dep_at,
                                   .dep = dep};
        struct hv_event_run run;
        hv_events_run_new(&a, &g, &run);
        assert_int_equal(hv_events_run(&g, &plain, &run, NULL), HV_OK);
        double makespan_s = play_plainly(same, N, R, dep_at, dep);
        for (size_t i = 0; i < N; i++) {
            NEAR(run.start_s[i], same[i].start_s);
        }
        NEAR(run.makespan_s, makespan_s);
        hv_arena_free(&a);
    }
}

/* every named schedule, random sizes, unequal stages and hops: a strict play is the fixed order */
static void strict_play_is_the_fixed_order(void **state)
{
    (void)state;
    size_t n_rows, n_played = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    struct hv_rng r;
    hv_rng_seed(&r, 31);
    for (size_t k = 0; k < 40 * n_rows; k++) {
        struct hv_schedule_input in;
        struct fixture x = {0};
        struct hv_pipe_run run;
        hv_schedule_input_init(&in, &rows[k % n_rows], 2 * (int32_t)(1 + hv_rng_below(&r, 4)),
                               2 * (int32_t)(1 + hv_rng_below(&r, 12)));
        in.chunks = hv_schedule_usual_chunks(&in);
        if (hv_schedule_make(&x.a, &in, &x.s, NULL) == HV_OK) {
            assert_int_equal(hv_pipe_compile(&x.a, &x.s, &x.g, NULL), HV_OK);
            price(&x, 1, 1, 1, some(&r, 0, 2));
            for (size_t i = 0; i < (size_t)x.s.n_stages * HV_OP_KIND_N; i++) {
                x.stage_s[i] = some(&r, 0.5, 4);
            }
            hv_pipe_time(&x.g, &x.cost, &x.run);
            hv_pipe_run_new(&x.a, &x.g, &run);
            struct hv_pipe_play strict = {0};
            assert_int_equal(hv_pipe_play(&x.g, &x.cost, &strict, &run, NULL), HV_OK);
            for (int32_t i = 0; i < x.g.n_nodes; i++) {
                NEAR(run.node_start_s[i], x.run.node_start_s[i]);
                NEAR(run.node_end_s[i], x.run.node_end_s[i]);
            }
            NEAR(run.longest_span_s, x.run.longest_span_s);
            n_played++;
        }
        hv_arena_free(&x.a);
    }
    assert_true(n_played > 20 * n_rows);
}

/* memory for exactly the peak changes nothing; for one activation less, GPipe stops, and the heads
 * say why */
static void a_cap_on_memory(void **state)
{
    (void)state;
    struct fixture x;
    struct hv_pipe_run run;
    struct hv_err err;
    build(&x, "gpipe", 2, 3, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    double act[2] = {1, 1}, start[2 * HV_OP_KIND_N], end[2 * HV_OP_KIND_N], limit[2] = {3, 3};
    hv_pipe_memory_simple(&x.s, act, NULL, NULL, start, end);
    struct hv_pipe_memory mem = {.start_bytes = start, .end_bytes = end};
    struct hv_pipe_play play = {.limit_bytes = limit, .memory = &mem};
    hv_pipe_run_new(&x.a, &x.g, &run);
    assert_int_equal(hv_pipe_play(&x.g, &x.cost, &play, &run, NULL), HV_OK);
    NEAR(run.makespan_s, x.run.makespan_s);
    limit[0] = 2;
    assert_int_equal(hv_pipe_play(&x.g, &x.cost, &play, &run, &err), HV_ENO);
    assert_string_equal(
        err.text, "no task can continue: F0.2 on rank 0 waits for 1 of memory 0, which holds 2 "
                  "of 2; F1.2 on rank 1 waits for F0.2 on rank 0");
    hv_arena_free(&x.a);
}

/* the first gradient is late: a rank that may pull the next forward ends earlier */
static void ranks_that_look_ahead(void **state)
{
    (void)state;
    struct fixture x;
    struct hv_pipe_run run;
    build(&x, "1f1b", 2, 4, 1, NULL, NULL);
    price(&x, 1, 1, 1, 3);
    hv_pipe_run_new(&x.a, &x.g, &run);
    struct hv_pipe_play play = {.look_ahead = 8, .jump = 1u << HV_OP_F};
    assert_int_equal(hv_pipe_play(&x.g, &x.cost, &play, &run, NULL), HV_OK);
    assert_true(run.makespan_s < x.run.makespan_s);
    NEAR(run.busy_s, x.run.busy_s);
    for (int32_t r = 0; r < 2; r++) { /* one at a time on every rank */
        for (int32_t i = x.g.rank_node_at[r]; i < x.g.rank_node_at[r + 1]; i++) {
            for (int32_t k = x.g.rank_node_at[r]; k < i; k++) {
                assert_true(run.node_start_s[i] >= run.node_end_s[k] ||
                            run.node_start_s[k] >= run.node_end_s[i]);
            }
        }
    }
    hv_arena_free(&x.a);
}

/* the same seed gives the same run; the mean factor is 1; jitter makes a pipeline slower */
static void jitter(void **state)
{
    (void)state;
    struct fixture x;
    struct hv_pipe_run one, two;
    double low_s = INFINITY, high_s = 0, sum_s = 0;
    build(&x, "1f1b", 8, 256, 1, NULL, NULL);
    price(&x, 1, 1, 1, 0);
    hv_pipe_run_new(&x.a, &x.g, &one);
    hv_pipe_run_new(&x.a, &x.g, &two);
    struct hv_pipe_play play = {.jitter = 0.2, .seed = 7};
    assert_int_equal(hv_pipe_play(&x.g, &x.cost, &play, &one, NULL), HV_OK);
    assert_int_equal(hv_pipe_play(&x.g, &x.cost, &play, &two, NULL), HV_OK);
    assert_memory_equal(one.node_end_s, two.node_end_s, (size_t)x.g.n_nodes * sizeof(double));
    assert_true(fabs(one.busy_s / x.run.busy_s - 1) < 0.02);
    for (play.seed = 0; play.seed < 10; play.seed++) {
        assert_int_equal(hv_pipe_play(&x.g, &x.cost, &play, &one, NULL), HV_OK);
        low_s = fmin(low_s, one.makespan_s);
        high_s = fmax(high_s, one.makespan_s);
        sum_s += one.makespan_s;
    }
    assert_true(low_s > x.run.makespan_s && low_s < sum_s / 10);
    assert_true(sum_s / 10 < high_s && high_s < 1.5 * x.run.makespan_s);
    hv_arena_free(&x.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_let_urgent_work_through),
        cmocka_unit_test(credits_limit_what_is_under_way),
        cmocka_unit_test(device_sets),
        cmocka_unit_test(memory_that_is_limited),
        cmocka_unit_test(circles_and_bad_numbers),
        cmocka_unit_test(as_the_plain_engine),
        cmocka_unit_test(strict_play_is_the_fixed_order),
        cmocka_unit_test(a_cap_on_memory),
        cmocka_unit_test(ranks_that_look_ahead),
        cmocka_unit_test(jitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
