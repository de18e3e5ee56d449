/** Transfers that share links: by hand, and what holds for all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "solver/base/units.h"
#include "solver/sim/links/links.h"
#include "tests/sim_fixture.h"

#define PIPES_MOST 3
#define LINKS      4

/** Pipes that share links; there and back are different directions. */
struct scene {
    struct fixture x[PIPES_MOST];
    struct hv_link_load loads[PIPES_MOST][64][2];
    struct hv_link_hop hops[PIPES_MOST][64];
    double hop_s[PIPES_MOST][64];
    struct hv_link_pipe pipes[PIPES_MOST];
    struct hv_links s;
};

/** Adds a pipe in which every hop loads link a, and b where that is not negative; back on the links
 * behind. */
static void add(struct scene *z, const char *schedule, int32_t p, int32_t m, double op_s, int a,
                int b, const double busy_s[2])
{
    size_t i = z->s.n_pipes++;
    struct fixture *x = &z->x[i];
    build(x, schedule, p, m, 1, NULL, NULL);
    price(x, op_s, op_s, 0, 0);
    for (int32_t h = 0; h < x->g.n_hops; h++) {
        int back = h >= x->g.n_hops / 2 ? LINKS : 0;
        z->loads[i][h][0] = (struct hv_link_load){a + back, busy_s[0]};
        z->loads[i][h][1] = (struct hv_link_load){b + back, busy_s[1]};
        z->hops[i][h] = (struct hv_link_hop){.bytes_s = fmax(busy_s[0], b < 0 ? 0 : busy_s[1]),
                                             .flow_bytes = 1,
                                             .loads = z->loads[i][h],
                                             .n_loads = b < 0 ? 1 : 2};
        z->hop_s[i][h] = z->hops[i][h].bytes_s;
    }
    x->cost.hop_s = z->hop_s[i];
    hv_pipe_time(&x->g, &x->cost, &x->run);
    z->pipes[i] =
        (struct hv_link_pipe){.g = &x->g, .c = &x->cost, .hops = z->hops[i], .run = &x->run};
    z->s.pipes = z->pipes;
    z->s.n_links = 2 * LINKS;
}

static void clear(struct scene *z)
{
    for (size_t i = 0; i < z->s.n_pipes; i++) {
        hv_arena_free(&z->x[i].a);
    }
    *z = (struct scene){0};
}

/**
 * GPipe, 2 stages, 4 micro-batches, every pass 1 s, every transfer 3 s: forwards arrive at 4, 7,
 * 10, 13 s, the last is done at 14 s; the backwards end at 15 … 18 s and are sent until 18, 21, 24,
 * 27 s; the last ends at 28 s. With hops of their own for all it would be 16 s.
 */
static void a_slow_link_sets_the_pace(void **state)
{
    (void)state;
    struct scene z = {0};
    add(&z, "gpipe", 2, 4, 1, 0, -1, (const double[]){3, 0});
    NEAR(z.x[0].run.makespan_s, 16);
    assert_true(hv_links_crowded(&z.s));
    hv_links_play(&z.x[0].a, &z.s);
    NEAR(z.x[0].run.makespan_s, 28);
    NEAR(z.x[0].run.node_start_s[9], 7); /* second forward of rank 1; 8 nodes per rank */
    clear(&z);
}

/** Micro-batches of a third and of five thirds of the average: transfers of 1 and 5 s. The second
 * is sent when the first is through, at 2 s, and arrives at 7 s; alone on its link or not. */
static void transfers_have_the_size_of_their_micro_batch(void **state)
{
    (void)state;
    const double scale[] = {1.0 / 3, 5.0 / 3};
    for (int shared = 0; shared < 2; shared++) {
        struct scene z = {0};
        add(&z, "gpipe", 2, 2, 1, 0, -1, (const double[]){3, 0});
        if (shared == 1) {
            add(&z, "gpipe", 2, 1, 1, 1, 2, (const double[]){1, 1});
        }
        z.x[0].cost.hop_scale = scale;
        hv_pipe_time(&z.x[0].g, &z.x[0].cost, &z.x[0].run);
        NEAR(z.x[0].run.node_start_s[4], 2);
        NEAR(z.x[0].run.node_start_s[5], 7);
        hv_links_play(&z.x[0].a, &z.s);
        NEAR(z.x[0].run.node_start_s[4], 2);
        NEAR(z.x[0].run.node_start_s[5], 7);
        clear(&z);
    }
}

/** Two equal pipes with one micro-batch over one link: both have half of it. A third with its own
 * link keeps its time. */
static void equal_flows_get_halves(void **state)
{
    (void)state;
    struct scene z = {0};
    add(&z, "gpipe", 2, 1, 1, 0, -1, (const double[]){2, 0});
    add(&z, "gpipe", 2, 1, 1, 0, -1, (const double[]){2, 0});
    add(&z, "gpipe", 2, 1, 1, 1, -1, (const double[]){2, 0});
    NEAR(z.x[0].run.makespan_s, 1 + 2 + 2 + 2 + 1);
    hv_links_play(&z.x[0].a, &z.s);
    NEAR(z.x[0].run.makespan_s, 1 + 4 + 2 + 4 + 1);
    NEAR(z.x[1].run.makespan_s, 1 + 4 + 2 + 4 + 1);
    NEAR(z.x[2].run.makespan_s, 1 + 2 + 2 + 2 + 1);
    clear(&z);
}

/**
 * The textbook case of max-min fairness: link 0 carries 1 byte/s, link 1 half of that; one flow
 * goes over both, one over each. Link 1 gives both of its flows 1/4, so the flow over link 0 alone
 * gets 3/4: forwards arrive 4, 4/3 and 4 s after they were sent.
 */
static void rates_are_max_min_fair(void **state)
{
    (void)state;
    struct scene z = {0};
    add(&z, "gpipe", 2, 1, 1, 0, 1, (const double[]){1, 2});
    add(&z, "gpipe", 2, 1, 1, 0, -1, (const double[]){1, 0});
    add(&z, "gpipe", 2, 1, 1, 1, -1, (const double[]){2, 0});
    hv_links_play(&z.x[0].a, &z.s);
    for (int i = 0; i < 3; i++) {
        NEAR(z.x[i].run.node_start_s[2], 1 + (i == 1 ? 4.0 / 3 : 4)); /* forward of rank 1 */
    }
    clear(&z);
}

static void some_scene(struct scene *z, struct hv_rng *r, double most_busy_s)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1"};
    size_t n = 1 + hv_rng_below(r, PIPES_MOST);
    for (size_t i = 0; i < n; i++) {
        int a = (int)hv_rng_below(r, LINKS), b = (a + 1 + (int)hv_rng_below(r, LINKS - 1)) % LINKS;
        double busy_s[2] = {some(r, 0.125, most_busy_s), some(r, 0.125, most_busy_s)};
        add(z, schedules[hv_rng_below(r, HV_COUNT(schedules))], 2 + (int32_t)hv_rng_below(r, 4),
            1 + (int32_t)hv_rng_below(r, 9), some(r, 0.5, 3), a, hv_rng_below(r, 2) ? b : -1,
            busy_s);
    }
}

/** By the definition: a hop has a transfer ready while one is under way, or the shares that a link
 * gives when a transfer starts are more than all of it. */
static bool is_crowded(const struct scene *z, const struct hv_link_transfer *t, size_t n)
{
    const double most = 1 + 1e-9, end = 1 - 1e-9;
    for (size_t i = 0; i < n; i++) {
        const struct hv_link_hop *h = &z->hops[t[i].pipe][t[i].hop];
        for (size_t w = 0; w < h->n_loads; w++) {
            double load = 0;
            for (size_t k = 0; k < n; k++) {
                const struct hv_link_hop *o = &z->hops[t[k].pipe][t[k].hop];
                bool on = t[k].start_s <= t[i].start_s && t[k].end_s * end > t[i].start_s;
                if (on && k != i && h == o) {
                    return true;
                }
                for (size_t x = 0; on && x < o->n_loads; x++) {
                    bool same = o->loads[x].link == h->loads[w].link;
                    load += same ? o->loads[x].busy_s / o->bytes_s : 0;
                }
            }
            if (load > most) {
                return true;
            }
        }
    }
    return false;
}

/** Crowded links are found where they are; transfers after some time are those of all transfers
 * that end after it. */
static void crowds_are_where_links_are_full(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 13);
    int crowded = 0;
    for (int i = 0; i < 600; i++) {
        struct scene z = {0};
        some_scene(&z, &r, hv_rng_below(&r, 2) ? 0.25 : 1.5);
        for (size_t k = 0; k < z.s.n_pipes; k++) { /* links that carry several transfers at once */
            for (int32_t h = 0; h < z.x[k].g.n_hops && i % 3 == 0; h++) {
                z.hops[k][h].bytes_s *= 2;
                z.hop_s[k][h] *= 2;
            }
            hv_pipe_time(&z.x[k].g, &z.x[k].cost, &z.x[k].run);
        }
        for (int played = 0; played < 2; played++) {
            size_t n = 0, n_late = 0, at = 0;
            struct hv_arena a = {0};
            struct hv_link_transfer *t = hv_links_transfers(&a, &z.s, -HUGE_VAL, &n);
            double from_s = some(&r, 0, z.x[0].run.makespan_s);
            struct hv_link_transfer *late = hv_links_transfers(&a, &z.s, from_s, &n_late);
            for (size_t k = 0; k < n; k++) {
                if (t[k].end_s > from_s) {
                    assert_true(at < n_late);
                    assert_memory_equal(&late[at], &t[k], sizeof *t);
                    at++;
                }
            }
            assert_int_equal(at, n_late);
            if (played == 0) {
                bool want = is_crowded(&z, t, n);
                assert_int_equal(hv_links_crowded(&z.s), want);
                crowded += want;
                hv_links_play(&z.x[0].a, &z.s);
            }
            hv_arena_free(&a);
        }
        clear(&z);
    }
    assert_in_range(crowded, 100, 500);
}

/** In no stretch of time does a link carry more than it can, nobody starts before what it waits for
 * is there, and a pipe that is alone with its links is never faster for that. */
static void links_carry_what_they_can(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 11);
    int crowded = 0;
    for (int i = 0; i < 300; i++) {
        struct scene z = {0};
        some_scene(&z, &r, 3);
        double before = z.x[0].run.makespan_s;
        bool full = hv_links_crowded(&z.s);
        hv_links_play(&z.x[0].a, &z.s);
        crowded += full;
        size_t n = 0;
        struct hv_link_transfer *t = hv_links_transfers(&z.x[0].a, &z.s, -HUGE_VAL, &n);
        if (z.s.n_pipes == 1) {
            assert_true(z.x[0].run.makespan_s >= before - 1e-9);
        }
        if (!full) {
            NEAR(z.x[0].run.makespan_s, before);
        }
        for (int32_t link = 0; link < 2 * LINKS; link++) {
            for (size_t from = 0; from < n; from++) {
                for (size_t to = 0; to < n; to++) { /* all within [start of from, end of to] */
                    double busy = 0;
                    for (size_t k = 0; t[to].end_s > t[from].start_s && k < n; k++) {
                        const struct hv_link_hop *h = &z.hops[t[k].pipe][t[k].hop];
                        bool in = t[k].start_s >= t[from].start_s && t[k].end_s <= t[to].end_s;
                        for (size_t w = 0; in && w < h->n_loads; w++) {
                            busy += h->loads[w].link == link ? h->loads[w].busy_s : 0;
                        }
                    }
                    assert_true(busy <= t[to].end_s - t[from].start_s + 1e-9 || busy == 0);
                }
            }
        }
        clear(&z);
    }
    assert_in_range(crowded, 100, 290);
}

/** Schedules in which ranks send to several others and several hops lead to one, with their chunks.
 */
static const struct {
    const char *name;
    int32_t chunks;
} folded[] = {{"1f1b", 1}, {"interleaved", 2}, {"1f1b-v", 2},
              {"zb-v", 2}, {"v-half", 2},      {"v-min", 2}};

/** The number of the link from one rank to another that a hop takes: the only one between them;
 * sender · ranks + receiver. */
static int32_t way_of(const struct hv_pipe *g, int32_t h)
{
    int32_t edge = h % g->s.graph.n_edges;
    bool back = h >= g->s.graph.n_edges;
    int32_t from = g->s.stage_to_rank[g->s.graph.from[edge]];
    int32_t to = g->s.stage_to_rank[g->s.graph.to[edge]];
    return back ? to * g->s.n_ranks + from : from * g->s.n_ranks + to;
}

/** A pipe with unlike stages in which every ordered pair of ranks has a link of its own, and every
 * rank sends in turn. `faster`: this link, or behind the links this stage, takes half its time; -1:
 * none. */
static void add_folded(struct scene *z, size_t schedule, int32_t p, int32_t m, struct hv_rng r,
                       int32_t faster)
{
    struct fixture *x = &z->x[0];
    build(x, folded[schedule].name, p, m, folded[schedule].chunks, NULL, NULL);
    price(x, 1, 1, 1, 0);
    for (int32_t s = 0; s < x->s.n_stages; s++) {
        double own_s = some(&r, 0.25, 3) * (faster == p * p + s ? 0.5 : 1);
        for (int kind = 0; kind < HV_OP_KIND_N; kind++) {
            x->stage_s[s * HV_OP_KIND_N + kind] *= own_s;
        }
    }
    for (int32_t h = 0; h < x->g.n_hops; h++) {
        int32_t way = way_of(&x->g, h);
        double busy_s = some(&r, 0.25, 4) * (way == faster ? 0.5 : 1);
        z->loads[0][h][0] = (struct hv_link_load){way, busy_s};
        z->loads[0][h][1] = (struct hv_link_load){p * p + way / p, busy_s};
        z->hops[0][h] = (struct hv_link_hop){.bytes_s = busy_s,
                                             .flow_bytes = 1,
                                             .loads = z->loads[0][h],
                                             .n_loads = 2,
                                             .channel = 1 + way / p};
        z->hop_s[0][h] = busy_s;
    }
    x->cost.hop_s = z->hop_s[0];
    hv_pipe_time(&x->g, &x->cost, &x->run);
    z->pipes[0] =
        (struct hv_link_pipe){.g = &x->g, .c = &x->cost, .hops = z->hops[0], .run = &x->run};
    z->s = (struct hv_links){.pipes = z->pipes, .n_pipes = 1, .n_links = (size_t)(p * p + p)};
    if (hv_links_crowded(&z->s)) {
        hv_links_play(&x->a, &z->s);
    }
}

static int by_start(const void *x, const void *y)
{
    const struct hv_link_transfer *a = x, *b = y;
    return a->start_s != b->start_s ? (a->start_s > b->start_s) - (a->start_s < b->start_s)
                                    : (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

/** What one rank sends goes one after the other, in the order in which it was ready: each takes its
 * time from the end of the one before it. Returns how many had to wait. */
static int check_order(const struct scene *z, int32_t p)
{
    size_t n = 0;
    int waited = 0;
    struct hv_arena a = {0};
    struct hv_link_transfer *t = hv_links_transfers(&a, &z->s, -HUGE_VAL, &n);
    qsort(t, n, sizeof *t, by_start);
    for (int32_t sender = 0; sender < p; sender++) {
        double free_s = 0;
        for (size_t k = 0; k < n; k++) {
            if (way_of(&z->x[0].g, t[k].hop) / p == sender) {
                waited += free_s > t[k].start_s;
                free_s = fmax(free_s, t[k].start_s) + z->hops[0][t[k].hop].bytes_s;
                NEAR(t[k].end_s, free_s);
            }
        }
    }
    hv_arena_free(&a);
    return waited;
}

/** With the order of a rank the order of what it sends is fixed, so that a pipe whose ranks share
 * no link never takes longer for a faster link or a faster stage. */
static void sends_keep_their_order(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 17);
    int waited = 0;
    for (int i = 0; i < 60; i++) {
        int32_t p = 2 + (int32_t)hv_rng_below(&r, 3), m = p * (2 + (int32_t)hv_rng_below(&r, 2));
        size_t schedule = (size_t)i % HV_COUNT(folded);
        struct hv_rng own;
        hv_rng_seed(&own, (uint64_t)i);
        struct scene z = {0};
        add_folded(&z, schedule, p, m, own, -1);
        double before_s = z.x[0].run.makespan_s;
        int32_t n_stages = z.x[0].s.n_stages;
        waited += check_order(&z, p);
        clear(&z);
        for (int32_t faster = 0; faster < p * p + n_stages; faster++) {
            add_folded(&z, schedule, p, m, own, faster);
            assert_true(z.x[0].run.makespan_s <= before_s * (1 + 1e-9));
            clear(&z);
        }
    }
    assert_true(waited > 300);
}

/** Where the links are never full, the run is hv_pipe_time's, to the last operation. */
static void wide_links_change_nothing(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 12);
    for (int i = 0; i < 200; i++) {
        struct scene z = {0};
        some_scene(&z, &r, 3);
        for (size_t k = 0; k < z.s.n_pipes; k++) {
            for (int32_t h = 0; h < z.x[k].g.n_hops; h++) { /* the whole load beside the link */
                z.hops[k][h].latency_s = z.hops[k][h].bytes_s;
                z.hops[k][h].bytes_s = 1e-9;
                z.hop_s[k][h] = z.hops[k][h].latency_s + 1e-9;
                z.loads[k][h][0].busy_s = z.loads[k][h][1].busy_s = 1e-12;
            }
            hv_pipe_time(&z.x[k].g, &z.x[k].cost, &z.x[k].run);
        }
        double want[PIPES_MOST] = {z.x[0].run.makespan_s, z.x[1].run.makespan_s,
                                   z.x[2].run.makespan_s};
        hv_links_play(&z.x[0].a, &z.s);
        for (size_t k = 0; k < z.s.n_pipes; k++) {
            assert_true(fabs(z.x[k].run.makespan_s - want[k]) < 1e-7);
            struct hv_pipe_rank idle[8];
            hv_pipe_idle(&z.x[k].g, &z.x[k].cost, &z.x[k].run, idle);
            for (int32_t q = 0; q < z.x[k].s.n_ranks; q++) {
                NEAR(idle[q].busy_s + idle[q].warmup_s + idle[q].steady_s + idle[q].cooldown_s +
                         idle[q].comm_s,
                     z.x[k].run.makespan_s);
            }
        }
        clear(&z);
    }
}

/** One-stage pipes of 4 micro-batches whose operations of 1 s are exchanges for `frac` of it, over
 * one link. */
static void add_exchanges(struct scene *z, int32_t m, const double *frac,
                          const struct hv_link_rank *rank)
{
    size_t i = z->s.n_pipes++;
    struct fixture *x = &z->x[i];
    build(x, "gpipe", 1, m, 1, NULL, NULL);
    price(x, 1, 1, 0, 0);
    z->pipes[i] = (struct hv_link_pipe){
        .g = &x->g, .c = &x->cost, .hops = z->hops[i], .run = &x->run, .ranks = rank, .frac = frac};
    z->s.pipes = z->pipes;
    z->s.n_links = 1;
}

/**
 * Two ranks of which every operation keeps a link busy for 0.75 of its time ask for 1.5 of it: each
 * operation takes half as long again, until one of them is through. Half of the time each fits. A
 * rank that asks for little keeps its time: 0.25 and 0.9, of which 0.25 and 0.75 are to be had.
 */
static void exchanges_share_a_link(void **state)
{
    (void)state;
    const struct hv_link_load load = {0, 1};
    const struct hv_link_rank rank = {&load, 1, 1};
    const struct {
        double frac[2], want[2];
        int32_t m[2];
    } cases[] = {
        {{0.75, 0.75}, {12, 12}, {4, 4}},
        {{0.5, 0.5}, {8, 8}, {4, 4}},
        {{0.25, 0.9}, {8, 8 * 0.9 / 0.75}, {4, 4}},
        {{0.75, 0.75}, {6, 10}, {2, 4}}, /* 6 s at 2/3 leave 4 operations at full rate */
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct scene z = {0};
        double frac[2][HV_OP_KIND_N];
        for (int k = 0; k < 2; k++) {
            for (int kind = 0; kind < HV_OP_KIND_N; kind++) {
                frac[k][kind] = cases[i].frac[k];
            }
            add_exchanges(&z, cases[i].m[k], frac[k], &rank);
        }
        hv_links_play(&z.x[0].a, &z.s);
        NEAR(z.x[0].run.makespan_s, cases[i].want[0]);
        if (i != 2) {
            NEAR(z.x[1].run.makespan_s, cases[i].want[1]);
        } else { /* the last bit is alone on the link */
            assert_true(z.x[1].run.makespan_s > 8 && z.x[1].run.makespan_s < cases[i].want[1]);
        }
        clear(&z);
    }
}

/** Operations that ask for no more than there is take what they take, in any order of events; those
 * that ask for more take as long as the link needs for all of them at least. */
static void exchanges_that_fit_change_nothing(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 14);
    for (int i = 0; i < 200; i++) {
        struct scene z = {0};
        some_scene(&z, &r, 1.5);
        const struct hv_link_load load = {2 * LINKS, 1};
        const bool fits = i % 2;
        struct hv_link_rank ranks[8];
        double frac[8 * HV_OP_KIND_N], want[PIPES_MOST], asked_s = 0, last_s = 0;
        size_t n_ranks = 0;
        for (size_t k = 0; k < HV_COUNT(frac); k++) {
            frac[k] = hv_rng_double(&r);
        }
        for (size_t k = 0; k < z.s.n_pipes; k++) {
            n_ranks += (size_t)z.x[k].s.n_ranks;
        }
        for (size_t k = 0; k < 8; k++) {
            ranks[k] = (struct hv_link_rank){&load, k % 3 > 0, some(&r, 0.5, 2)};
        }
        for (size_t k = 0; k < HV_COUNT(frac) && fits; k++) {
            frac[k] /= (double)n_ranks;
        }
        hv_links_play(&z.x[0].a, &z.s);
        for (size_t k = 0; k < z.s.n_pipes; k++) {
            want[k] = z.x[k].run.makespan_s;
            z.pipes[k].ranks = ranks;
            z.pipes[k].frac = frac;
        }
        z.s.n_links++;
        hv_links_play(&z.x[0].a, &z.s);
        for (size_t k = 0; k < z.s.n_pipes; k++) {
            const struct hv_pipe *g = &z.x[k].g;
            for (int32_t n = 0; n < g->n_nodes; n++) {
                const struct hv_op *op = &g->s.ops[hv_pipe_first_op(g, n)];
                double s = hv_pipe_node_duration_s(g, &z.x[k].cost, n);
                double took = z.x[k].run.node_end_s[n] - z.x[k].run.node_start_s[n];
                bool asks = ranks[hv_schedule_rank_of(&g->s, hv_pipe_first_op(g, n))].n_loads > 0;
                asked_s += asks ? s * frac[(size_t)op->stage * HV_OP_KIND_N + op->kind] : 0;
                assert_true(took >= s * (1 - 1e-9));
                assert_true(asks || took <= s * (1 + 1e-9));
            }
            last_s = fmax(last_s, z.x[k].run.makespan_s);
            assert_true(!fits || fabs(z.x[k].run.makespan_s - want[k]) < 1e-9 * want[k]);
        }
        assert_true(asked_s < last_s * (1 + 1e-9));
        clear(&z);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_link_sets_the_pace),
        cmocka_unit_test(transfers_have_the_size_of_their_micro_batch),
        cmocka_unit_test(equal_flows_get_halves),
        cmocka_unit_test(rates_are_max_min_fair),
        cmocka_unit_test(links_carry_what_they_can),
        cmocka_unit_test(sends_keep_their_order),
        cmocka_unit_test(wide_links_change_nothing),
        cmocka_unit_test(crowds_are_where_links_are_full),
        cmocka_unit_test(exchanges_share_a_link),
        cmocka_unit_test(exchanges_that_fit_change_nothing),
    };
    return cmocka_run_group_tests_name("sim share", tests, NULL, NULL);
}
