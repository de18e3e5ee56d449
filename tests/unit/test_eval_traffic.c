/** Reductions beside activations, on networks that several pipelines use: against the definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/eval/train/reduce_int.h"
#include "tests/eval_fixture.h"
#include "tests/sim_fixture.h"

#define NODES 6 /* of the cluster of the fixture */
#define UNITS 3
#define LOADS 8

/** Pipelines whose hops load networks of nodes. */
struct scene {
    struct fixture x[UNITS];
    struct hv__pipeline pipelines[UNITS];
    struct hv__sending sendings[UNITS][64];
    struct hv_wire_use loads[UNITS][64][LOADS];
    struct hv_link_hop hops[UNITS][64];
    double hop_s[UNITS][64];
    int32_t sending_of[UNITS][64];
    struct hv_link_pipe pipes[UNITS];
    struct hv_links share;
    struct hv__lowered l;
};

/** Hops of one pipeline: each loads some nodes, several of them alike. */
static void load_hops(struct scene *z, size_t i, struct hv_rng *r)
{
    static const enum hv_wire kinds[] = {HV_WIRE_NODE_OUT, HV_WIRE_NODE_IN, HV_WIRE_PAIR};
    size_t n = (size_t)z->x[i].g.n_hops;
    for (size_t h = 0; h < n; h++) {
        struct hv__sending *s = &z->sendings[i][h];
        double most = 0;
        *s = (struct hv__sending){.loads = z->loads[i][h], .n_loads = hv_rng_below(r, LOADS)};
        for (size_t k = 0; k < s->n_loads; k++) {
            uint64_t node = hv_rng_below(r, NODES);
            s->loads[k].wire = hv_wire_id(kinds[hv_rng_below(r, HV_COUNT(kinds))], node);
            s->loads[k].busy_s = 0.125 * (double)(1 + hv_rng_below(r, 4));
            most = fmax(most, s->loads[k].busy_s);
        }
        z->sending_of[i][h] = (int32_t)h;
        z->hop_s[i][h] = most;
        z->hops[i][h] = (struct hv_link_hop){
            .bytes_s = most, .flow_bytes = 1, .n_loads = most > 0, .loads = NULL};
    }
    z->x[i].cost.hop_s = z->hop_s[i];
    hv_pipe_time(&z->x[i].g, &z->x[i].cost, &z->x[i].run);
    z->pipelines[i] = (struct hv__pipeline){
        .hops = {.sendings = z->sendings[i], .n_sendings = n, .sending_of = z->sending_of[i]}};
    z->pipes[i] = (struct hv_link_pipe){
        .g = &z->x[i].g, .c = &z->x[i].cost, .hops = z->hops[i], .run = &z->x[i].run};
}

static void open_scene(struct scene *z, struct world *w, struct hv_arena *a, struct hv_rng *r)
{
    size_t n = 1 + hv_rng_below(r, UNITS);
    *z = (struct scene){
        .share = {.pipes = z->pipes, .n_pipes = n},
        .l = {.k = w->cost, .arena = a, .pipelines = {.items = z->pipelines, .n = n}}};
    z->l.network.share = &z->share;
    for (size_t i = 0; i < n; i++) {
        build(&z->x[i], "1f1b", 2 + (int32_t)hv_rng_below(r, 3), 1 + (int32_t)hv_rng_below(r, 7), 1,
              NULL, NULL);
        price(&z->x[i], some(r, 0.5, 2), some(r, 0.5, 2), 0, 0);
        load_hops(z, i, r);
    }
}

/** What a transfer takes of a node's network while it is under way: in and out are one lane. */
static double share_of(const struct scene *z, const struct hv_link_transfer *t, uint32_t lane)
{
    const struct hv__sending *s = &z->sendings[t->pipe][t->hop];
    for (size_t k = 0; k < s->n_loads; k++) {
        bool pair = s->loads[k].wire % HV_WIRE_N == HV_WIRE_PAIR;
        if (!pair && s->loads[k].wire / HV_WIRE_N == lane) {
            return fmin(1, s->loads[k].busy_s / (t->end_s - t->start_s));
        }
    }
    return 0;
}

/** What the transfers under way at now leave of the fullest of the lanes: a ring goes as fast as
 * its slowest link. `until`: when that may change. */
static double rest_of(const struct scene *z, const struct hv_link_transfer *t, size_t n,
                      const struct hv__lanes *w, double now, double *until)
{
    double least = 1;
    *until = HUGE_VAL;
    for (size_t lane = 0; lane < w->n; lane++) {
        double rest = 1;
        for (size_t i = 0; i < n; i++) {
            double share = share_of(z, &t[i], w->ids[lane]);
            if (share > 0 && t[i].start_s > now) {
                *until = fmin(*until, t[i].start_s);
            } else if (share > 0 && t[i].end_s > now) {
                rest -= share;
                *until = fmin(*until, t[i].end_s);
            }
        }
        least = fmin(least, rest);
    }
    return fmax(0, least);
}

static double end_by_definition(const struct scene *z, const struct hv_link_transfer *t, size_t n,
                                const struct hv__lanes *w, double now, double left)
{
    for (;;) {
        double until, rest = rest_of(z, t, n, w, now, &until);
        if (isinf(until) || left <= rest * (until - now)) {
            return now + left / rest;
        }
        left -= rest * (until - now);
        now = until;
    }
}

static void reductions_have_what_activations_leave(void **state)
{
    struct hv_rng r;
    hv_rng_seed(&r, 31);
    int later = 0;
    for (int i = 0; i < 400; i++) {
        static struct scene z;
        struct hv_arena a = {0};
        open_scene(&z, *state, &a, &r);
        double from_s = some(&r, 0, z.x[0].run.makespan_s);
        struct hv__links_left *traffic = hv__links_left_after(&z.l, from_s);
        size_t n = 0;
        struct hv_link_transfer *t = hv_links_transfers(&a, &z.share, from_s, &n);
        for (int k = 0; k < 8; k++) { /* in any order, as buckets come */
            uint32_t ids[NODES];
            struct hv__lanes w = {.ids = ids};
            uint32_t first = (uint32_t)hv_rng_below(&r, NODES);
            for (uint32_t node = 0; node < NODES; node++) {
                if (hv_rng_below(&r, 2)) {
                    ids[w.n++] = (node + first) % NODES;
                }
            }
            double start_s = from_s + some(&r, 0, 4), work_s = some(&r, 0.125, 6);
            double want = end_by_definition(&z, t, n, &w, start_s, work_s);
            double end_s = hv__end_on_links_left(traffic, &w, start_s, work_s);
            assert_true(fabs(end_s - want) < 1e-9 * fmax(1, want));
            later += end_s > start_s + work_s + 1e-9;
        }
        for (size_t k = 0; k < z.l.pipelines.n; k++) {
            hv_arena_free(&z.x[k].a);
        }
        hv_arena_free(&a);
    }
    assert_in_range(later, 400, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reductions_have_what_activations_leave, setup, teardown)};
    return cmocka_run_group_tests_name("eval traffic", tests, NULL, NULL);
}
