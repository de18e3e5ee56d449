/* Replicated stages with widths, memory by depth and a choice per layer, against enumeration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/chain/replicas.h"

enum { MAX_L = 4, MAX_K = 5, OPTIONS = 2, WIDTHS = 2 };

/* A random instance with its arrays. */
struct inst {
    struct hv_replica_option option[WIDTHS][MAX_L][OPTIONS];
    struct hv_replica_layer layer[WIDTHS][MAX_L];
    double cut[WIDTHS][MAX_L + 1], run[WIDTHS][(MAX_L + 1) * (MAX_L + 1)];
    struct hv_replica_width width[WIDTHS];
    struct hv_replicas p;
};

static void make(struct hv_rng *rng, struct inst *in)
{
    *in = (struct inst){.p = {.n_layers = 1 + hv_rng_below(rng, MAX_L),
                              .n_devices = 1 + hv_rng_below(rng, MAX_K),
                              .n_widths = 1 + hv_rng_below(rng, WIDTHS),
                              .memory = (double)(4 + hv_rng_below(rng, 24)),
                              .batch = hv_rng_below(rng, 3) ? 0 : 1 + hv_rng_below(rng, 6)}};
    for (size_t w = 0; w < WIDTHS; w++) {
        in->width[w] =
            (struct hv_replica_width){w + 1, in->layer[w], hv_rng_below(rng, 3) ? in->cut[w] : NULL,
                                      hv_rng_below(rng, 3) ? NULL : in->run[w]};
        for (size_t k = 0; k < (MAX_L + 1) * (MAX_L + 1); k++) {
            in->run[w][k] = hv_rng_double(rng);
        }
        for (size_t l = 0; l < MAX_L; l++) {
            in->layer[w][l] = (struct hv_replica_layer){
                in->option[w][l], 1 + hv_rng_below(rng, OPTIONS), hv_rng_double(rng)};
            in->cut[w][l] = hv_rng_double(rng);
            for (size_t k = 0; k < OPTIONS; k++) {
                in->option[w][l][k] = (struct hv_replica_option){(double)(1 + hv_rng_below(rng, 9)),
                                                                 (double)hv_rng_below(rng, 4),
                                                                 (double)hv_rng_below(rng, 5)};
            }
        }
    }
}

/* Value of a stage by its definition, over all choices of its layers. */
static double stage_value(const struct hv_replicas *p, size_t i, size_t j, const size_t *how)
{
    size_t w = how[0], d = how[1], y = (how[2] + d - 1) / d, choice[MAX_L] = {0}, l = i;
    const struct hv_replica_width *x = &p->widths[w];
    double best = HUGE_VAL, sync = 0, ends = 0;
    for (l = i; l < j; l++) {
        sync += x->layers[l].sync;
    }
    if (x->cuts && i > 0) {
        ends += x->cuts[i];
    }
    if (x->cuts && j < p->n_layers) {
        ends += x->cuts[j];
    }
    if (x->runs) {
        ends += x->runs[i * (p->n_layers + 1) + j];
    }
    for (;;) {
        double time = 0, need = 0;
        for (l = i; l < j; l++) {
            const struct hv_replica_option *o = &x->layers[l].options[choice[l]];
            time += o->time;
            need += o->fixed + (double)y * o->held;
        }
        if (need <= p->memory) {
            best = fmin(best, time);
        }
        for (l = i; l < j && ++choice[l] == x->layers[l].n_options; l++) {
            choice[l] = 0;
        }
        if (l == j) {
            break;
        }
    }
    return (best + ends) / (double)d + (1 - 1 / (double)d) * sync;
}

/* Least maximum over all stages that end at `end`, `copies` behind, `left` devices to use. */
static double brute(const struct hv_replicas *p, size_t end, size_t left, size_t copies)
{
    double best = HUGE_VAL;
    if (end == 0) {
        return 0;
    }
    for (size_t i = 0; i < end; i++) {
        for (size_t w = 0; w < p->n_widths; w++) {
            for (size_t d = 1; d * p->widths[w].width <= left; d++) {
                const size_t how[] = {w, d, copies + d};
                if (p->batch && (p->batch % d || copies + d > p->batch)) {
                    continue;
                }
                double v = stage_value(p, i, end, how);
                if (v < best) {
                    best =
                        fmin(best, fmax(v, brute(p, i, left - d * p->widths[w].width, copies + d)));
                }
            }
        }
    }
    return best;
}

static void random_chains_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    int solved = 0;
    hv_rng_seed(&rng, 51);
    for (int k = 0; k < 6000; k++) {
        struct inst in;
        struct hv_arena arena = {0};
        struct hv_replicas_result r;
        make(&rng, &in);
        in.p.widths = in.width;
        double want = brute(&in.p, in.p.n_layers, in.p.n_devices, 0);
        assert_int_equal(hv_replicas_solve(&in.p, NULL, &arena, &r, NULL), HV_OK);
        assert_int_equal(r.feasible, !isinf(want));
        assert_true(r.proven);
        if (r.feasible) {
            size_t at = 0, used = 0;
            if (fabs(r.objective - want) > 1e-9 * want) {
                fail_msg("case %d: %.12g, enumeration says %.12g", k, r.objective, want);
            }
            for (size_t s = 0; s < r.n_stages; s++) {
                assert_true(r.stages[s].first == at);
                at = r.stages[s].end;
                used += r.stages[s].replicas * in.width[r.stages[s].width].width;
            }
            assert_true(at == in.p.n_layers && used <= in.p.n_devices);
            solved++;
        }
        hv_arena_free(&arena);
    }
    assert_true(solved > 2000);
}

/* Two branches between a first and a last layer: the best over all down-sets is the better of the
 * two orders, and is found on sets of the chain as on the chain. */
static void down_sets_are_cut_as_chains_are(void **state)
{
    (void)state;
    const unsigned char chain[5][4] = {
        {0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    const unsigned char diamond[6][4] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0},
                                         {1, 0, 1, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    struct hv_rng rng;
    hv_rng_seed(&rng, 4);
    for (int k = 0; k < 1000; k++) {
        struct inst in;
        struct hv_arena arena = {0};
        struct hv_replicas_result r[4];
        make(&rng, &in);
        in.p.widths = in.width;
        in.p.n_layers = 4;
        for (size_t w = 0; w < WIDTHS; w++) {
            in.width[w].cuts = in.width[w].runs = NULL;
        }
        assert_int_equal(hv_replicas_solve(&in.p, NULL, &arena, &r[0], NULL), HV_OK);
        in.p.sets = chain[0];
        in.p.n_sets = 5;
        assert_int_equal(hv_replicas_solve(&in.p, NULL, &arena, &r[1], NULL), HV_OK);
        assert_int_equal(r[0].feasible, r[1].feasible);
        assert_true(!r[0].feasible || fabs(r[0].objective - r[1].objective) < 1e-12);
        in.p.sets = diamond[0];
        in.p.n_sets = 6;
        assert_int_equal(hv_replicas_solve(&in.p, NULL, &arena, &r[2], NULL), HV_OK);
        in.p.sets = NULL;
        for (size_t w = 0; w < WIDTHS; w++) {
            struct hv_replica_layer keep = in.layer[w][1];
            in.layer[w][1] = in.layer[w][2];
            in.layer[w][2] = keep;
        }
        assert_int_equal(hv_replicas_solve(&in.p, NULL, &arena, &r[3], NULL), HV_OK);
        double a = r[0].feasible ? r[0].objective : HUGE_VAL;
        double b = r[3].feasible ? r[3].objective : HUGE_VAL;
        assert_int_equal(r[2].feasible, !isinf(fmin(a, b)));
        if (r[2].feasible && fabs(r[2].objective - fmin(a, b)) > 1e-12) {
            fail_msg("case %d: %.12g, the better order has %.12g", k, r[2].objective, fmin(a, b));
        }
        hv_arena_free(&arena);
    }
}

static void senseless_instances_are_refused(void **state)
{
    (void)state;
    const struct hv_replica_option good = {1, 1, 1}, bad = {-1, 1, 1};
    struct hv_replica_layer layer = {&good, 1, 0};
    struct hv_replica_width width = {1, &layer, NULL, NULL};
    struct hv_replicas p = {
        .n_layers = 1, .n_devices = 1, .n_widths = 1, .widths = &width, .memory = 1};
    struct hv_arena arena = {0};
    struct hv_replicas_result r;
    assert_int_equal(hv_replicas_solve(&p, NULL, &arena, &r, NULL), HV_OK);
    assert_true(!r.feasible && r.proven); /* 1 + 1 · 1 > 1 */
    layer.options = &bad;
    assert_int_equal(hv_replicas_solve(&p, NULL, &arena, &r, NULL), HV_EINPUT);
    layer.options = &good;
    p.n_devices = HV_REPLICAS_MAX_DEVICES + 1;
    assert_int_equal(hv_replicas_solve(&p, NULL, &arena, &r, NULL), HV_ELIMIT);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_chains_match_enumeration),
        cmocka_unit_test(down_sets_are_cut_as_chains_are),
        cmocka_unit_test(senseless_instances_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
