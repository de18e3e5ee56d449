/** Orders written out per resource, for tests of sim and of the judge: random legal ones, and a
 * naive player of the lists. Include behind cmocka. */
#ifndef HV_TESTS_EXPLICIT_FIXTURE_H
#define HV_TESTS_EXPLICIT_FIXTURE_H

#include "tests/sim_fixture.h"

enum { STAGES = 5, RESOURCES = 4, MB = 5, LONGEST = 3 * STAGES * MB };

/* a pipeline on resources, and one list of operations per resource */
struct shared {
    int32_t p, m, n_resources;
    bool on[STAGES][RESOURCES];
    bool split;                 /* B and W instead of BW */
    bool feeds[STAGES][STAGES]; /* the stage graph */
    double takes[STAGES][HV_OP_KIND_N], hop_s[STAGES][STAGES];
    struct hv_op list[RESOURCES][LONGEST];
    int32_t n[RESOURCES];
};

/* ---- the naive player ------------------------------------------------------------------------ */

/* ends of all operations, infinity = has not run */
struct ends {
    double of[HV_OP_KIND_N][STAGES][MB];
};

/* when the inputs of an operation are there */
static inline double inputs_at(const struct shared *x, const struct ends *e, const struct hv_op *op)
{
    int32_t s = op->stage;
    enum hv_op_kind back = x->split ? HV_OP_B : HV_OP_BW;
    double at = op->kind == HV_OP_F   ? 0
                : op->kind == HV_OP_W ? e->of[HV_OP_B][s][op->mb]
                                      : e->of[HV_OP_F][s][op->mb];
    for (int32_t o = 0; o < x->p && op->kind != HV_OP_W; o++) {
        if (op->kind == HV_OP_F && x->feeds[o][s]) {
            at = fmax(at, e->of[HV_OP_F][o][op->mb] + x->hop_s[o][s]);
        } else if (op->kind != HV_OP_F && x->feeds[s][o]) {
            at = fmax(at, e->of[back][o][op->mb] + x->hop_s[s][o]);
        }
    }
    return at;
}

static inline bool same(const struct hv_op *a, const struct hv_op *b)
{
    return a->kind == b->kind && a->stage == b->stage && a->mb == b->mb;
}

/* plays the lists: an operation starts when it is next on all of its resources, these are free and
 * its inputs there. Infinity: it stops before the end */
static inline double play(const struct shared *x)
{
    struct ends e;
    int32_t head[RESOURCES] = {0};
    double free_at[RESOURCES] = {0}, last = 0;
    bool busy = true;
    for (size_t i = 0; i < sizeof e / sizeof(double); i++) {
        (&e.of[0][0][0])[i] = HUGE_VAL;
    }
    while (busy) {
        busy = false;
        for (int32_t q = 0; q < x->n_resources; q++) {
            const struct hv_op *op = &x->list[q][head[q]];
            bool next = head[q] < x->n[q];
            double at = next ? inputs_at(x, &e, op) : HUGE_VAL;
            for (int32_t o = 0; o < x->n_resources && next; o++) {
                if (x->on[op->stage][o]) {
                    next = head[o] < x->n[o] && same(&x->list[o][head[o]], op);
                    at = fmax(at, free_at[o]);
                }
            }
            if (!next || !(at < HUGE_VAL)) {
                continue;
            }
            at += x->takes[op->stage][op->kind];
            e.of[op->kind][op->stage][op->mb] = at;
            last = fmax(last, at);
            busy = true;
            for (int32_t o = 0, s = op->stage; o < x->n_resources; o++) {
                if (x->on[s][o]) {
                    free_at[o] = at;
                    head[o]++;
                }
            }
        }
    }
    for (int32_t q = 0; q < x->n_resources; q++) {
        last = head[q] < x->n[q] ? HUGE_VAL : last;
    }
    return last;
}

/* true where everything that an operation waits for has been placed */
static inline bool may_come(const struct shared *x, const struct ends *placed,
                            const struct hv_op *op)
{
    return placed->of[op->kind][op->stage][op->mb] == HUGE_VAL &&
           inputs_at(x, placed, op) < HUGE_VAL;
}

/* lists in a random order of all operations in which none stands before its inputs: legal */
static inline void draw_order(struct hv_rng *r, struct shared *x)
{
    struct ends placed;
    size_t kinds = x->split ? 3 : 2, all = kinds * (size_t)x->p * (size_t)x->m;
    for (size_t i = 0; i < sizeof placed / sizeof(double); i++) {
        (&placed.of[0][0][0])[i] = HUGE_VAL;
    }
    for (size_t n = 0; n < all;) {
        uint8_t kind = HV_OP_F;
        uint64_t back = hv_rng_below(r, kinds);
        kind = back == 0 ? HV_OP_F : !x->split ? HV_OP_BW : back == 1 ? HV_OP_B : HV_OP_W;
        struct hv_op op = {.kind = kind,
                           .slice = -1,
                           .stage = (int32_t)hv_rng_below(r, (uint64_t)x->p),
                           .mb = (int32_t)hv_rng_below(r, (uint64_t)x->m),
                           .group = -1};
        if (!may_come(x, &placed, &op)) {
            continue;
        }
        placed.of[op.kind][op.stage][op.mb] = 0;
        n++;
        for (int32_t q = 0; q < x->n_resources; q++) {
            if (x->on[op.stage][q]) {
                x->list[q][x->n[q]++] = op;
            }
        }
    }
}

#endif
