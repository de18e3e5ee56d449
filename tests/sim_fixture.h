/** A compiled and priced schedule for the tests of solver/sim. Include behind cmocka. */
#ifndef HV_TESTS_SIM_FIXTURE_H
#define HV_TESTS_SIM_FIXTURE_H

#include <math.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/sim/pipeline/pipeline.h"
#include "tests/sim_closed.h"

static inline bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

#define NEAR(a, b) assert_true(is_near((a), (b)))

/* a compiled schedule with the same times on every stage */
struct fixture {
    struct hv_arena a;
    struct hv_schedule s;
    struct hv_pipe g;
    struct hv_pipe_cost cost;
    struct hv_pipe_run run;
    double *stage_s;
};

static inline void price(struct fixture *x, double f, double b, double w, double hop)
{
    x->stage_s = hv_arena_new(&x->a, double, (size_t)x->s.n_stages *HV_OP_KIND_N);
    for (int32_t i = 0; i < x->s.n_stages; i++) {
        double row[HV_OP_KIND_N] = {
            [HV_OP_F] = f, [HV_OP_B] = b, [HV_OP_W] = w, [HV_OP_BW] = b + w, [HV_OP_R] = f};
        memcpy(x->stage_s + (size_t)i * HV_OP_KIND_N, row, sizeof row);
    }
    x->cost = (struct hv_pipe_cost){.stage_s = x->stage_s, .hop_all_s = hop};
    hv_pipe_run_new(&x->a, &x->g, &x->run);
    hv_pipe_time(&x->g, &x->cost, &x->run);
}

static inline void build(struct fixture *x, const char *name, int32_t p, int32_t m, int32_t v,
                         const char *key, const char *value)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    *x = (struct fixture){0};
    assert_int_equal(hv_schedule_find(name, &row, NULL), HV_OK);
    hv_schedule_input_init(&in, row, p, m);
    in.chunks = v;
    if (key) {
        assert_int_equal(hv_schedule_set_option(&in, key, value, NULL), HV_OK);
    }
    assert_int_equal(hv_schedule_make(&x->a, &in, &x->s, NULL), HV_OK);
    assert_int_equal(hv_pipe_compile(&x->a, &x->s, &x->g, NULL), HV_OK);
}

/* times are multiples of 1/8, so that sums are exact */
static inline double some(struct hv_rng *r, double lo, double hi)
{
    return lo + floor(hv_rng_double(r) * (hi - lo) * 8) / 8;
}

static inline double makespan(const char *name, const struct closed_input *c, const char *key,
                              const char *value, double share)
{
    struct fixture x;
    build(&x, name, (int32_t)c->ranks, (int32_t)c->micro_batches, (int32_t)c->chunks, key, value);
    price(&x, c->f_s / share, c->b_s / share, c->w_s / share, c->hop_s);
    double t = x.run.makespan_s;
    hv_arena_free(&x.a);
    return t;
}

static inline int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

#endif
