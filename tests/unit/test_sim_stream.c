/* Gathers and scatters in a stream beside the operations of a rank: times, memory, slack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/sim/events/tasks.h"
#include "solver/sim/links/links.h"
#include "solver/sim/pipeline/memory_beside.h"
#include "solver/sim/schedule/shards.h"
#include "tests/sim_fixture.h"

/* One rank with two chunks and two micro-batches, breadth-first: F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0
 * B0.1, forwards of 2 and backwards of 4. */
static void two_chunks(struct fixture *x)
{
    build(x, "breadth-first", 1, 2, 2, NULL, NULL);
    price(x, 2, 2, 2, 0);
}

/* Puts streams with tasks of equal times beside a priced order. */
static void add_stream(struct fixture *x, const struct hv_shard_rule *rules, double gather_s,
                       double scatter_s, double slowdown)
{
    size_t p = (size_t)x->s.n_ranks;
    struct hv_shard_tasks t;
    hv_schedule_plan_shards(&x->a, &x->s, rules, &t);
    struct hv_stream_task *tasks = hv_arena_new(&x->a, struct hv_stream_task, t.task_at[p] + 1);
    double *slow = hv_arena_new(&x->a, double, p);
    int64_t *needs = hv_arena_new(&x->a, int64_t, (size_t)x->g.n_nodes + 1);
    for (size_t r = 0; r < p; r++) {
        slow[r] = slowdown;
        for (size_t k = t.task_at[r]; k < t.task_at[r + 1]; k++) {
            const struct hv_shard_task *from = &t.tasks[k];
            size_t end = x->s.rank_at[r + 1];
            int32_t last = x->g.rank_node_at[r + 1];
            int32_t before = x->g.node_of_op == NULL ? (int32_t)from->before
                             : from->before == end   ? last
                                                     : x->g.node_of_op[from->before];
            int32_t other = x->g.node_of_op == NULL ? (int32_t)from->other
                            : from->other == end    ? last
                                                    : x->g.node_of_op[from->other];
            tasks[k] = (struct hv_stream_task){.time_s = from->scatter ? scatter_s : gather_s,
                                               .stage = from->stage,
                                               .scatter = from->scatter,
                                               .before = before,
                                               .other = other};
        }
    }
    for (int32_t n = 0; n < x->g.n_nodes; n++) {
        needs[n] = -1;
        for (size_t i = hv_pipe_first_op(&x->g, n); i < hv_pipe_first_op(&x->g, n + 1); i++) {
            needs[n] = t.needs[i] > needs[n] ? t.needs[i] : needs[n];
        }
    }
    struct hv_stream *s = hv_arena_new(&x->a, struct hv_stream, 1);
    *s = (struct hv_stream){t.task_at, tasks, needs, slow};
    x->cost.stream = s;
    hv_pipe_stream_new(&x->a, &x->g, s, &x->run);
    hv_pipe_time(&x->g, &x->cost, &x->run);
}

static const struct hv_shard_rule one = {.window = 1, .ahead = 1, .each = true};
static const struct hv_shard_rule two = {.window = 2, .ahead = 2, .each = true};

static double end_of(const struct fixture *x)
{
    return hv_pipe_stream_end_s(x->cost.stream, x->run.stream, 0);
}

/* One chunk held: gathers before chunk 0 (0 to 1), chunk 1 (5 to 6) and chunk 0 again (19 to 20),
 * behind the scatter of chunk 1 (18 to 19); the last scatter from 28 to 29. */
static void one_held(void **state)
{
    (void)state;
    struct fixture x;
    struct hv_pipe_rank idle;
    two_chunks(&x);
    add_stream(&x, &one, 1, 1, 0);
    static const double from[] = {0, 5, 18, 19, 28};
    assert_int_equal(x.cost.stream->task_at[1], 5);
    for (size_t k = 0; k < 5; k++) {
        NEAR(x.run.stream->start_s[k], from[k]);
    }
    NEAR(x.run.makespan_s, 28);
    NEAR(end_of(&x), 29);
    hv_pipe_idle(&x.g, &x.cost, &x.run, &idle);
    NEAR(idle.stream_s, 4);
    NEAR(idle.warmup_s + idle.steady_s + idle.cooldown_s + idle.comm_s, 0);
    hv_arena_free(&x.a);
}

/* Two held: the second gather and the first scatter are hidden. */
static void two_held(void **state)
{
    (void)state;
    struct fixture x;
    two_chunks(&x);
    add_stream(&x, &two, 1, 1, 0);
    NEAR(x.run.makespan_s, 25);
    NEAR(end_of(&x), 26);
    hv_arena_free(&x.a);
}

/* A chunk that stays is gathered once, both as one unit at once, and gradients that are reduced at
 * the end of each chunk go as those of chunks that are given up where each has one run. */
static void rules(void **state)
{
    (void)state;
    struct fixture x;
    const struct hv_shard_rule keeps = {.window = 1, .ahead = 1, .keeps = true, .each = true};
    const struct hv_shard_rule whole = {.window = 1, .ahead = 1, .whole = true, .each = true};
    const struct hv_shard_rule end = {.window = 1, .ahead = 1};
    two_chunks(&x);
    add_stream(&x, &keeps, 1, 1, 0);
    NEAR(end_of(&x), 27);
    add_stream(&x, &whole, 2, 2, 0);
    assert_int_equal(x.cost.stream->task_at[1], 2);
    NEAR(end_of(&x), 28);
    add_stream(&x, &end, 1, 1, 0);
    NEAR(end_of(&x), 29);
    hv_arena_free(&x.a);
}

/* Every second of the stream beside an operation costs half a second of it: those of the second
 * gather (0.5 in F0.0) and of the first scatter (0.5 in B0.0). */
static void slower_beside(void **state)
{
    (void)state;
    struct fixture x;
    two_chunks(&x);
    add_stream(&x, &two, 1, 1, 0.5);
    NEAR(x.run.makespan_s, 26);
    NEAR(x.run.stream->slowed_s[0], 1);
    hv_arena_free(&x.a);
}

/* With nothing beside it, the memory of a rank is the same as one list of changes. */
static void same_beside(struct fixture *x, const struct hv_pipe_memory *mem,
                        const struct hv_pipe_peak *peak)
{
    const struct hv_memory_changes none = {0};
    struct hv_memory_changes c = hv_pipe_changes(&x->a, &x->g, &x->run, mem, 0, &none);
    struct hv_pipe_peak same = hv_memory_peak(&c);
    NEAR(same.peak_bytes, peak->peak_bytes);
    NEAR(same.gathered_bytes, peak->gathered_bytes);
    NEAR(same.unsent_bytes, peak->unsent_bytes);
}

/* Bytes: a chunk is 10, its gradients 100, activations 1 a micro-batch. One chunk held: its
 * gradients and four activations with the last backward of chunk 1. Two held: the same and the
 * other chunk. The gradients of chunk 1 stay until 18, in the first backward pass of chunk 0. */
static void memory(void **state)
{
    (void)state;
    struct fixture x;
    double act[] = {1, 1}, start[2 * HV_OP_KIND_N], end[2 * HV_OP_KIND_N], bytes[8];
    two_chunks(&x);
    hv_pipe_memory_simple(&x.s, act, NULL, NULL, start, end);
    struct hv_pipe_memory mem = {.start_bytes = start, .end_bytes = end, .task_bytes = bytes};
    struct hv_pipe_peak peak;
    for (int held = 1; held <= 2; held++) {
        add_stream(&x, held == 1 ? &one : &two, 1, 1, 0);
        for (size_t k = 0; k < x.cost.stream->task_at[1]; k++) {
            bytes[k] = x.cost.stream->tasks[k].scatter ? 100 : 10;
        }
        mem.stream = x.cost.stream;
        hv_pipe_peaks(&x.g, &x.run, &mem, &peak);
        same_beside(&x, &mem, &peak);
        NEAR(peak.peak_bytes, held == 1 ? 114 : 212);
        NEAR(peak.gathered_bytes, 10);
        NEAR(peak.unsent_bytes, held == 1 ? 100 : 200);
        struct hv_memory_step steps[40];
        size_t n = hv_pipe_trace(&x.g, &x.run, &mem, 0, steps);
        assert_int_equal(n, hv_pipe_trace(&x.g, &x.run, &mem, 0, NULL));
        double most = 0;
        for (size_t i = 0; i < n; i++) {
            most = steps[i].bytes > most ? steps[i].bytes : most;
            assert_true(i == 0 || steps[i].at_s > steps[i - 1].at_s);
        }
        NEAR(steps[0].bytes, 10);
        NEAR(steps[n - 1].bytes, 0);
        NEAR(most, peak.peak_bytes);
    }
    hv_arena_free(&x.a);
}

/* Adds the streams' tasks before a node to a graph of tasks; returns the task that the node waits
 * for. */
struct plain {
    struct hv_task *tasks;
    int32_t *dep_at, *dep, *of_node, *of_task;
    size_t n, n_dep;
};

static int32_t add_task(struct plain *y, int32_t resource, double duration_s)
{
    y->tasks[y->n] = (struct hv_task){.duration_s = duration_s, .resource = resource};
    y->dep_at[++y->n] = (int32_t)y->n_dep;
    return (int32_t)y->n - 1;
}

static void wait_for(struct plain *y, int32_t task)
{
    if (task >= 0) {
        y->dep[y->n_dep++] = task;
        y->dep_at[y->n] = (int32_t)y->n_dep;
    }
}

/* Tasks of a rank's stream up to node n, each behind the node before it. */
static void add_tasks(const struct fixture *x, struct plain *y, int32_t rank, int32_t n,
                      size_t *next)
{
    const struct hv_stream *s = x->cost.stream;
    for (; *next < s->task_at[rank + 1] && s->tasks[*next].before <= n; ++*next) {
        int32_t before = s->tasks[*next].before;
        y->of_task[*next] = add_task(y, x->s.n_ranks + rank, s->tasks[*next].time_s);
        wait_for(y, before > x->g.rank_node_at[rank] ? y->of_node[before - 1] : -1);
    }
}

/* The same run on the engine of task graphs, in which streams are resources like any other. */
static double played(struct fixture *x)
{
    size_t p = (size_t)x->s.n_ranks, n_tasks = x->cost.stream->task_at[p];
    size_t most = (size_t)x->g.n_nodes + n_tasks + 1, next[8];
    struct plain y = {.tasks = hv_arena_new(&x->a, struct hv_task, most),
                      .dep_at = hv_arena_new(&x->a, int32_t, most + 1),
                      .dep = hv_arena_new(&x->a, int32_t, 4 * most),
                      .of_node = hv_arena_new(&x->a, int32_t, most),
                      .of_task = hv_arena_new(&x->a, int32_t, most)};
    enum hv_resource_kind kinds[16] = {HV_RESOURCE_COMPUTE};
    memcpy(next, x->cost.stream->task_at, p * sizeof *next);
    for (size_t k = 0; k < x->g.n_stretches; k++) {
        for (int32_t n = x->g.stretches[k].from; n < x->g.stretches[k].to; n++) {
            int32_t rank = hv_schedule_rank_of(&x->s, hv_pipe_first_op(&x->g, n));
            add_tasks(x, &y, rank, n, &next[rank]);
            y.of_node[n] = add_task(&y, rank, hv_pipe_node_duration_s(&x->g, &x->cost, n));
            int64_t needs = x->cost.stream->needs[n];
            wait_for(&y, needs >= 0 ? y.of_task[needs] : -1);
            for (int32_t e = 0; e < hv_pipe_n_edges(&x->g, n); e++) {
                wait_for(&y, y.of_node[hv_pipe_edge_of(&x->g, n, e).node]);
            }
        }
    }
    for (int32_t r = 0; r < x->s.n_ranks; r++) {
        add_tasks(x, &y, r, x->g.rank_node_at[r + 1], &next[r]);
    }
    struct hv_task_graph g = {.n_tasks = y.n,
                              .n_resources = 2 * p,
                              .tasks = y.tasks,
                              .resources = kinds,
                              .dep_at = y.dep_at,
                              .dep = y.dep};
    struct hv_task_run run;
    hv_tasks_run_new(&x->a, &g, &run);
    assert_int_equal(hv_tasks_run(&x->a, &g, &run, NULL), HV_OK);
    for (size_t k = 0; k < n_tasks; k++) {
        NEAR(x->run.stream->end_s[k], run.end_s[y.of_task[k]]);
    }
    return run.makespan_s;
}

/* Last end of nodes and tasks. */
static double all_ended(const struct fixture *x)
{
    double end = x->run.makespan_s;
    for (int32_t r = 0; r < x->s.n_ranks; r++) {
        double own = hv_pipe_stream_end_s(x->cost.stream, x->run.stream, r);
        end = own > end ? own : end;
    }
    return end;
}

/* A node that ends later by its slack keeps the end; longer gathers never end it sooner. */
static void laws(struct fixture *x, struct hv_rng *rng, const struct hv_shard_rule *rules)
{
    double *slack = hv_arena_new(&x->a, double, (size_t)x->g.n_nodes);
    size_t n_ops = hv_schedule_n_ops(&x->s);
    double *op_s = hv_arena_new(&x->a, double, n_ops), end = all_ended(x);
    hv_pipe_slack(&x->g, &x->cost, &x->run, slack);
    int32_t n = (int32_t)hv_rng_below(rng, (uint64_t)x->g.n_nodes);
    for (int32_t k = 0; k < x->g.n_nodes; k++) {
        op_s[hv_pipe_first_op(&x->g, k)] = hv_pipe_node_duration_s(&x->g, &x->cost, k);
    }
    op_s[hv_pipe_first_op(&x->g, n)] += slack[n];
    x->cost.op_s = op_s;
    hv_pipe_time(&x->g, &x->cost, &x->run);
    assert_true(all_ended(x) <= end + 1e-9);
    x->cost.op_s = NULL;
    add_stream(x, rules, 3, 0.5, 0);
    double longer = all_ended(x);
    add_stream(x, rules, 2, 0.5, 0);
    assert_true(all_ended(x) <= longer + 1e-9);
}

/* Some schedule on two to four ranks, and rules for each of them. */
static void some_order(struct hv_rng *rng, struct fixture *x, struct hv_shard_rule *all)
{
    static const char *const names[] = {"breadth-first", "interleaved", "zb-v", "1f1b", "gpipe"};
    const char *name = names[hv_rng_below(rng, 5)];
    int32_t p = 2 + (int32_t)hv_rng_below(rng, 3);
    bool many = name[0] == 'b' || name[0] == 'i';
    int32_t v = many ? 2 + (int32_t)hv_rng_below(rng, 3) : strcmp(name, "zb-v") == 0 ? 2 : 1;
    build(x, name, p, p * (1 + (int32_t)hv_rng_below(rng, 3)), v, NULL, NULL);
    for (int r = 0; r < 4; r++) {
        int32_t window = 1 + (int32_t)hv_rng_below(rng, 3);
        all[r] = (struct hv_shard_rule){window, 1 + (int32_t)hv_rng_below(rng, 2),
                                        hv_rng_below(rng, 4) == 0, hv_rng_below(rng, 4) == 0,
                                        hv_rng_below(rng, 2) == 0};
    }
    price(x, some(rng, 0.5, 3), some(rng, 0.5, 3), some(rng, 0.5, 3), 0);
}

static void against_task_graphs(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 20);
    for (int i = 0; i < 200; i++) {
        struct fixture x;
        struct hv_shard_rule all[4];
        some_order(&rng, &x, all);
        add_stream(&x, all, some(&rng, 0, 5), some(&rng, 0, 5), 0);
        NEAR(all_ended(&x), played(&x));
        laws(&x, &rng, all);
        hv_arena_free(&x.a);
    }
}

/* Streams on links that nothing else uses, played event by event: the same run, with operations
 * that the stream slows down too. */
static void on_links_of_their_own(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 21);
    for (int i = 0; i < 200; i++) {
        struct fixture x;
        struct hv_shard_rule all[4];
        struct hv_link_load loads[4];
        struct hv_link_rank streams[4];
        double frac[400];
        some_order(&rng, &x, all);
        add_stream(&x, all, some(&rng, 0, 5), some(&rng, 0, 5), i % 2 == 0 ? 0.25 : 0);
        size_t p = (size_t)x.s.n_ranks, n = x.cost.stream->task_at[p];
        assert_true(n <= sizeof frac / sizeof frac[0]);
        for (size_t k = 0; k < n; k++) {
            frac[k] = k % 3 == 0 ? 0 : 1;
        }
        for (int32_t r = 0; r < 4; r++) {
            loads[r] = (struct hv_link_load){r, 1};
            streams[r] = (struct hv_link_rank){&loads[r], r % 2 == 0, 1};
        }
        struct hv_pipe_run run;
        hv_pipe_run_new(&x.a, &x.g, &run);
        hv_pipe_stream_new(&x.a, &x.g, x.cost.stream, &run);
        struct hv_link_pipe pipe = {
            .g = &x.g,
            .c = &x.cost,
            .hops = hv_arena_new(&x.a, struct hv_link_hop, (size_t)x.g.n_hops + 1),
            .streams = streams,
            .task_frac = frac,
            .run = &run};
        struct hv_links share = {.pipes = &pipe, .n_pipes = 1, .n_links = 4};
        hv_links_play(&x.a, &share);
        NEAR(run.makespan_s, x.run.makespan_s);
        for (size_t k = 0; k < n; k++) {
            NEAR(run.stream->start_s[k], x.run.stream->start_s[k]);
            NEAR(run.stream->end_s[k], x.run.stream->end_s[k]);
        }
        for (size_t r = 0; r < p; r++) {
            NEAR(run.stream->slowed_s[r], x.run.stream->slowed_s[r]);
        }
        hv_arena_free(&x.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_held),
        cmocka_unit_test(two_held),
        cmocka_unit_test(rules),
        cmocka_unit_test(slower_beside),
        cmocka_unit_test(memory),
        cmocka_unit_test(against_task_graphs),
        cmocka_unit_test(on_links_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
