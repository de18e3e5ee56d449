/** Activations that move beside a pipeline: by hand, and what holds for all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "solver/sim/links/evict.h"
#include "solver/sim/pipeline/memory_beside.h"
#include "solver/sim/schedule/evictions.h"
#include "tests/sim_fixture.h"

#define RANKS_MOST 16
#define HOPS_MOST  64

/** BPipe with evictions and loads of `move_s` each, on links of their own or all on link 0. */
struct scene {
    struct fixture x;
    struct hv_link_load loads[HOPS_MOST][1];
    struct hv_link_hop hops[HOPS_MOST];
    double hop_s[HOPS_MOST];
    struct hv_link_pipe pipe;
    struct hv_links s;
};

static void open_scene(struct scene *z, int32_t p, int32_t m, double move_s, bool shared)
{
    *z = (struct scene){0};
    struct fixture *x = &z->x;
    build(x, "bpipe", p, m, 1, NULL, NULL);
    price(x, 1, 2, 0, 0);
    z->pipe = (struct hv_link_pipe){
        .g = &x->g, .c = &x->cost, .hops = z->hops, .run = &x->run, .n_lanes = 2 * p};
    z->pipe.moves = hv_evict_moves(&x->a, &x->g, &z->pipe.n_moves);
    z->pipe.moved = hv_arena_new(&x->a, struct hv_link_moved, z->pipe.n_moves + 1);
    for (int32_t h = 0; h < hv_link_n_hops(&z->pipe); h++) {
        bool moves = h >= x->g.n_hops;
        z->loads[h][0] = (struct hv_link_load){shared ? 0 : h, move_s};
        z->hops[h] = (struct hv_link_hop){
            .bytes_s = moves ? move_s : 0, .flow_bytes = 1, .loads = z->loads[h], .n_loads = moves};
    }
    x->cost.hop_s = z->hop_s;
    z->s = (struct hv_links){.pipes = &z->pipe, .n_pipes = 1, .n_links = HOPS_MOST};
    hv_links_play(&x->a, &z->s);
}

static void close_scene(struct scene *z)
{
    hv_arena_free(&z->x.a);
}

/** Changes of a rank's memory by moves, one byte each: its own, and those it keeps for another. */
static struct hv_memory_changes beside(struct scene *z, int32_t rank)
{
    size_t n = 0;
    struct hv_memory_change *out =
        hv_arena_new(&z->x.a, struct hv_memory_change, 4 * z->pipe.n_moves + 1);
    int32_t other = z->x.s.n_ranks - 1 - rank;
    for (size_t i = 0; i < z->pipe.n_moves; i++) {
        const struct hv_link_move *m = &z->pipe.moves[i];
        const struct hv_link_moved *t = &z->pipe.moved[i];
        int32_t of = m->lane / 2;
        if (of == rank) {
            out[n++] = (struct hv_memory_change){.at_s = m->back ? t->start_s : t->end_s,
                                                 .bytes = m->back ? 1 : -1};
        } else if (of == other) {
            out[n++] = (struct hv_memory_change){.at_s = m->back ? t->end_s : t->start_s,
                                                 .bytes = m->back ? -1 : 1};
        }
    }
    return (struct hv_memory_changes){out, n, 0};
}

/** Most activations on a rank, and its memory over time. */
static double most_of(struct scene *z, int32_t rank)
{
    struct fixture *x = &z->x;
    size_t n = (size_t)x->s.n_stages;
    double one[RANKS_MOST], none[RANKS_MOST] = {0};
    double start[RANKS_MOST * HV_OP_KIND_N], end[RANKS_MOST * HV_OP_KIND_N];
    for (size_t i = 0; i < n; i++) {
        one[i] = 1;
    }
    hv_pipe_memory_simple(&x->s, one, none, NULL, start, end);
    struct hv_pipe_memory mem = {.start_bytes = start, .end_bytes = end};
    struct hv_memory_changes own = beside(z, rank);
    struct hv_memory_changes all = hv_pipe_changes(&x->a, &x->g, &x->run, &mem, rank, &own);
    struct hv_pipe_peak peak = hv_memory_peak(&all);
    NEAR(peak.end_bytes, 0);
    struct hv_memory_step *steps = hv_arena_new(&x->a, struct hv_memory_step, all.n + 1);
    double top = 0;
    size_t n_steps = hv_memory_steps(&all, steps);
    assert_int_equal(hv_memory_steps(&all, NULL), n_steps);
    for (size_t i = 0; i < n_steps; i++) {
        assert_true(steps[i].bytes >= 0 && (i == 0 || steps[i].at_s > steps[i - 1].at_s));
        top = fmax(top, steps[i].bytes);
    }
    NEAR(top, peak.peak_bytes);
    return peak.peak_bytes;
}

/**
 * Four ranks, six micro-batches: rank 0 has three places and runs F0 F1 F2 F3 B0 F4 B1 F5 B2 …. F3
 * needs the place of 2; 3 leaves for 2 to come back beside B0, 4 for 3; after F5 nothing has to
 * leave, and 4 comes back into the place of 2 when B2 has ended.
 */
static void evictions_by_hand(void **state)
{
    (void)state;
    struct fixture x;
    build(&x, "bpipe", 4, 6, 1, NULL, NULL);
    const struct hv_eviction *e = NULL;
    assert_int_equal(hv_schedule_evictions(&x.a, &x.s, 0, &e), 3);
    static const struct {
        int32_t mb, after_eviction;
        size_t forward, place_of, backward, after_op;
    } want[] = {
        {2, 1, 2, 3, 8, HV_NO_OP}, {3, 2, 3, HV_NO_OP, 9, HV_NO_OP}, {4, -1, 5, HV_NO_OP, 10, 8}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(e[i].mb, want[i].mb);
        assert_int_equal(e[i].forward, want[i].forward);
        assert_int_equal(e[i].backward, want[i].backward);
        assert_int_equal(e[i].place_of, want[i].place_of);
        assert_int_equal(e[i].after_op, want[i].after_op);
        assert_int_equal(e[i].after_eviction, want[i].after_eviction);
    }
    for (int32_t r = 1; r < 4; r++) { /* rank 1 has three, ranks 2 and 3 keep what they have */
        assert_int_equal(hv_schedule_evictions(&x.a, &x.s, r, &e), 0);
        assert_null(e);
    }
    hv_arena_free(&x.a);
}

/**
 * The same with F = 1, B = 2 and no time between stages. Moves of 1 s: F3 waits for 2 to leave from
 * 3 to 4, 3 leaves from 5 to 6, 2 comes back from 6 to 7; all of that is over when B0 starts at 10,
 * and 1F1B takes (m + p - 1)(F + B) = 27.
 */
static void short_moves_hide(void **state)
{
    (void)state;
    struct scene z;
    open_scene(&z, 4, 6, 1, false);
    NEAR(z.x.run.makespan_s, 27);
    NEAR(z.x.run.node_start_s[3], 4);
    static const double want[][2] = {{3, 4}, {6, 7}, {5, 6}};
    for (size_t i = 0; i < 3; i++) {
        NEAR(z.pipe.moved[i].start_s, want[i][0]);
        NEAR(z.pipe.moved[i].end_s, want[i][1]);
    }
    /* both hold what is on its way: rank 3 has its own, 2 and 3 from 5 to 6 */
    static const double most[] = {3, 3, 2, 3};
    for (int32_t r = 0; r < 4; r++) {
        NEAR(most_of(&z, r), most[r]);
    }
    close_scene(&z);
}

/**
 * Moves of 20 s. 2 leaves from 3 to 23, F3 runs from 23, B0 from 24, F4 from 26, B1 from 27, F5
 * from
 * 29. 3 leaves from 24 to 44, 4 from 44 to 64. 2 comes back from 44 to 64, 3 from 64 to 84, 4 from
 * 84 to 104. So B2 starts at 64, B3 at 84, B4 at 104, and B5 ends at 108.
 */
static void long_moves_set_the_pace(void **state)
{
    (void)state;
    struct scene z;
    open_scene(&z, 4, 6, 20, false);
    static const double starts[] = {0, 1, 2, 23, 24, 26, 27, 29, 64, 84, 104, 106};
    for (size_t i = 0; i < 12; i++) {
        NEAR(z.x.run.node_start_s[i], starts[i]);
    }
    NEAR(z.x.run.makespan_s, 108);
    NEAR(most_of(&z, 0), 3);
    struct hv_pipe_rank idle[4];
    hv_pipe_idle(&z.x.g, &z.x.cost, &z.x.run, idle); /* F3, B2, B3 and B4 waited for moves */
    NEAR(idle[0].comm_s, 20 + 34 + 18 + 18);
    const struct hv_pipe_link *path = NULL;
    size_t n = 0;
    hv_pipe_critical(&z.x.a, &z.x.g, &z.x.cost, &z.x.run, &path, &n);
    assert_true(n > 2 && path[0].reason == HV_PIPE_START);
    assert_int_equal(path[n - 1].node, 11);
    assert_int_equal(path[n - 2].node, 10);
    assert_int_equal(path[n - 2].reason, HV_PIPE_HOP);
    close_scene(&z);
}

/** Both directions on one link: what is under way at once goes at half the rate. 3 leaves from 24,
 * alone until 44 …: the same as before but for 4 leaving beside 2 coming back. */
static void both_directions_may_share_a_link(void **state)
{
    (void)state;
    struct scene own, one;
    open_scene(&own, 4, 6, 20, false);
    open_scene(&one, 4, 6, 20, true);
    NEAR(one.pipe.moved[4].start_s, 44); /* 4 leaves */
    NEAR(one.pipe.moved[4].end_s, 84);
    NEAR(one.pipe.moved[1].start_s, 44); /* 2 comes back */
    NEAR(one.pipe.moved[1].end_s, 84);
    NEAR(one.pipe.moved[3].end_s, 104);
    NEAR(one.x.run.makespan_s, own.x.run.makespan_s + 20);
    close_scene(&own);
    close_scene(&one);
}

/** For all sizes: moves never make it shorter, slower ones never shorter than fast ones, moves of
 * no time leave 1F1B; an evictor never holds more than its places; a lane runs in order, and what
 * comes back has left. */
static void what_holds_for_all(void **state)
{
    (void)state;
    for (int32_t p = 2; p <= 12; p += 2) {
        for (int32_t m = 1; m <= 3 * p; m += p / 2) {
            double before = 3.0 * (m + p - 1);
            for (double move_s = 1.0 / 1024; move_s < 20; move_s *= 4) {
                struct scene z;
                open_scene(&z, p, m, move_s, false);
                assert_true(z.x.run.makespan_s >= before - 1e-9);
                if (move_s < 0.01) {
                    NEAR(z.x.run.makespan_s, 3.0 * (m + p - 1));
                }
                before = z.x.run.makespan_s;
                for (int32_t r = 0; r < p; r++) {
                    double places = p / 2 + 1; /* ceil((p + 2) / 2), BPipe, section 3 */
                    assert_true(r >= p / 2 || most_of(&z, r) <= places + 1e-9);
                    assert_true(move_s > 0.5 || most_of(&z, r) <= places + 1e-9);
                }
                for (size_t i = 0; i < z.pipe.n_moves; i++) {
                    const struct hv_link_moved *t = z.pipe.moved;
                    NEAR(t[i].end_s - t[i].start_s, move_s);
                    assert_true(i % 2 == 0 || t[i].start_s >= t[i - 1].end_s);
                    bool first = i < 2 || z.pipe.moves[i - 2].lane != z.pipe.moves[i].lane;
                    assert_true(first || t[i].start_s >= t[i - 2].end_s - 1e-9);
                }
                close_scene(&z);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evictions_by_hand),
        cmocka_unit_test(short_moves_hide),
        cmocka_unit_test(long_moves_set_the_pace),
        cmocka_unit_test(both_directions_may_share_a_link),
        cmocka_unit_test(what_holds_for_all),
    };
    return cmocka_run_group_tests_name("sim moves", tests, NULL, NULL);
}
