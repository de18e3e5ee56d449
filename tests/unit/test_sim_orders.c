/* Orders of the fixed schedules over random sizes (p not dividing m, m < p, one rank, one
 * micro-batch, ragged groups) against the definitions in their papers, written down here as lists
 * of what every rank runs, not as the generators do it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim_fixture.h"
#include <stdio.h>
#include <string.h>

enum { MOST_OPS = 4096, CASES = 2500 };

/* what a rank runs: kind, stage, micro-batch, slice */
struct list {
    struct hv_op ops[MOST_OPS];
    size_t n;
};

/* a size with its options */
struct size {
    int32_t p, m, v, group, k; /* k: slices, in flight, barrier, whatever the schedule has */
    bool flag;
};

static void put(struct list *l, enum hv_op_kind kind, int32_t stage, int32_t mb, int32_t slice)
{
    assert_true(l->n < MOST_OPS);
    l->ops[l->n++] = (struct hv_op){
        .kind = (uint8_t)kind, .stage = stage, .mb = mb, .slice = (int16_t)slice, .group = -1};
}

/* forwards f[0…n), backwards b[0…n): `warm` forwards, then in turn, then the backwards left */
static void alternate(struct list *l, const struct list *f, const struct list *b, int32_t warm)
{
    size_t i = 0, j = 0, w = (size_t)warm < f->n ? (size_t)warm : f->n;
    while (i < w) {
        l->ops[l->n++] = f->ops[i++];
    }
    while (j < b->n) {
        if (i < f->n) {
            l->ops[l->n++] = f->ops[i++];
        }
        l->ops[l->n++] = b->ops[j++];
    }
}

/* one op per micro-batch on stage r */
static void each(struct list *l, enum hv_op_kind kind, int32_t r, int32_t m)
{
    l->n = 0;
    for (int32_t i = 0; i < m; i++) {
        put(l, kind, r, i, -1);
    }
}

/* ---- definitions: what rank r runs */

static struct list f, b, w;

static void gpipe(const struct size *x, int32_t r, struct list *l)
{
    each(l, HV_OP_F, r, x->m);
    for (int32_t i = 0; i < x->m; i++) {
        put(l, HV_OP_BW, r, x->flag ? i : x->m - 1 - i, -1);
    }
}

/* at most `keep` micro-batches begun and not ended */
static void one_each(const struct size *x, int32_t r, int32_t keep, struct list *l)
{
    each(&f, HV_OP_F, r, x->m);
    each(&b, HV_OP_BW, r, x->m);
    alternate(l, &f, &b, keep - 1);
}

static void one_f_one_b(const struct size *x, int32_t r, struct list *l)
{
    one_each(x, r, x->p - r, l);
}

static void dapple(const struct size *x, int32_t r, struct list *l)
{
    one_each(x, r, x->flag ? 2 * (x->p - r) - 1 : x->p - r, l);
}

static void distmm(const struct size *x, int32_t r, struct list *l)
{
    one_each(x, r, min32(x->k, x->m) + x->p - 1 - r, l);
}

/* Megatron's table: groups of micro-batches, each through all chunks; forwards, or backwards from
 * the last chunk */
static void table(const struct size *x, int32_t r, enum hv_op_kind kind, struct list *l)
{
    l->n = 0;
    for (int32_t first = 0; first < x->m; first += x->group) {
        for (int32_t c = 0; c < x->v; c++) {
            for (int32_t i = first; i < min32(x->m, first + x->group); i++) {
                put(l, kind, (kind == HV_OP_F ? c : x->v - 1 - c) * x->p + r, i, -1);
            }
        }
    }
}

static void interleaved(const struct size *x, int32_t r, struct list *l)
{
    table(x, r, HV_OP_F, &f);
    table(x, r, HV_OP_BW, &b);
    alternate(l, &f, &b, 2 * (x->p - r - 1) + (x->v - 1) * x->group);
}

/* the j-th pair is followed by a W from j = r on */
static void zb_h1(const struct size *x, int32_t r, struct list *l)
{
    table(x, r, HV_OP_F, &f);
    table(x, r, HV_OP_B, &b);
    table(x, r, HV_OP_W, &w);
    struct list pairs = {.n = 0};
    alternate(&pairs, &f, &b, (x->v - 1) * x->group + x->p - 1 - r);
    size_t n_b = 0, n_w = 0;
    for (size_t i = 0; i < pairs.n; i++) {
        l->ops[l->n++] = pairs.ops[i];
        if (pairs.ops[i].kind == HV_OP_B && (int32_t)n_b++ >= r) {
            l->ops[l->n++] = w.ops[n_w++];
        }
    }
    while (n_w < w.n) {
        l->ops[l->n++] = w.ops[n_w++];
    }
}

/* 2(p − r) − 1 forwards; 2r times B, F; B, W, F while there are forwards; B, W; W */
static void zb_h2(const struct size *x, int32_t r, struct list *l)
{
    int32_t n_f = 0, n_b = 0, n_w = 0;
    while (n_f < 2 * (x->p - r) - 1) {
        put(l, HV_OP_F, r, n_f++, -1);
    }
    while (n_b < x->m) {
        put(l, HV_OP_B, r, n_b++, -1);
        if (n_b > 2 * r) {
            put(l, HV_OP_W, r, n_w++, -1);
        }
        if (n_f < x->m) {
            put(l, HV_OP_F, r, n_f++, -1);
        }
    }
    while (n_w < x->m) {
        put(l, HV_OP_W, r, n_w++, -1);
    }
}

static void breadth_first(const struct size *x, int32_t r, struct list *l)
{
    for (int32_t c = 0; c < x->v; c++) {
        for (int32_t i = 0; i < x->m; i++) {
            put(l, HV_OP_F, c * x->p + r, i, -1);
        }
    }
    for (size_t n = l->n, i = 0; i < n; i++) {
        put(l, HV_OP_BW, l->ops[n - 1 - i].stage, l->ops[n - 1 - i].mb, -1);
    }
}

static void terapipe(const struct size *x, int32_t r, struct list *l)
{
    for (int32_t u = 0; u < x->m * x->k; u++) {
        put(l, HV_OP_F, r, u / x->k, u % x->k);
    }
    for (size_t n = l->n, i = 0; i < n; i++) {
        put(l, HV_OP_BW, r, l->ops[n - 1 - i].mb, l->ops[n - 1 - i].slice);
    }
}

static void seq1f1b(const struct size *x, int32_t r, struct list *l)
{
    f.n = b.n = 0;
    for (int32_t u = 0; u < x->m * x->k; u++) {
        put(&f, HV_OP_F, r, u / x->k, u % x->k);
        put(&b, HV_OP_BW, r, u / x->k, x->k - 1 - u % x->k);
    }
    alternate(l, &f, &b, x->p - r - 2 + x->k);
}

/* ---- sizes that the schedules take */

static const int32_t some_m[] = {1, 2, 3, 5, 7, 8, 12, 15, 16, 24, 30};

static bool groups(struct size *x)
{
    int32_t rounds = x->m / x->p > 1 ? x->m / x->p : 1;
    x->group = x->m / rounds;
    return x->m % rounds == 0;
}

static bool any(struct size *x)
{
    (void)x;
    return true;
}

static bool ragged(struct size *x)
{
    x->group = min32(x->m, x->p + x->k - 1);
    return x->m % x->group == 0 || x->m % x->group >= x->p;
}

/* one chunk has no groups: any number of micro-batches will do */
static bool one_chunk(struct size *x)
{
    x->v = 1;
    x->group = x->m;
    return true;
}

static bool enough(struct size *x)
{
    return x->m >= 2 * x->p - 1;
}

/* with as many in flight as ranks; with fewer the order follows the times (test_sim_unequal) */
static bool full(struct size *x)
{
    x->k = x->p;
    return true;
}

/* options as text, with %d for group, k, or the choice that the flag makes */
enum takes { NOTHING, GROUP, K };
static const struct row {
    const char *name, *key, *choice[2];
    enum takes takes;
    bool chunks;
    bool (*suits)(struct size *x);
    void (*define)(const struct size *x, int32_t r, struct list *l);
} rows[] = {
    {"gpipe", "backward", {"reverse", "forward"}, NOTHING, false, any, gpipe},
    {"1f1b", NULL, {NULL}, NOTHING, false, any, one_f_one_b},
    {"pipedream", NULL, {NULL}, NOTHING, false, any, one_f_one_b},
    {"graphpipe", NULL, {NULL}, NOTHING, false, any, one_f_one_b},
    {"dapple", "early", {"pa", "pb"}, NOTHING, false, any, dapple},
    {"hetpipe", "in_flight", {NULL}, K, false, full, one_f_one_b},
    {"distmm", "barrier", {NULL}, K, false, any, distmm},
    {"interleaved", NULL, {NULL}, NOTHING, true, groups, interleaved},
    {"interleaved", "group", {NULL}, GROUP, true, ragged, interleaved},
    {"zb-h1", NULL, {NULL}, NOTHING, true, groups, zb_h1},
    {"zb-h1", NULL, {NULL}, NOTHING, true, one_chunk, zb_h1},
    {"zb-h2", NULL, {NULL}, NOTHING, false, enough, zb_h2},
    {"breadth-first", NULL, {NULL}, NOTHING, true, any, breadth_first},
    {"terapipe", "slices", {NULL}, K, false, any, terapipe},
    {"seq1f1b", "slices", {NULL}, K, false, any, seq1f1b},
};

static void check_order(const struct row *row, const struct size *x, const struct fixture *got)
{
    static struct list want;
    for (int32_t r = 0; r < x->p; r++) {
        const struct hv_op *ops = got->s.ops + got->s.rank_at[r];
        want.n = 0;
        row->define(x, r, &want);
        assert_int_equal(got->s.rank_at[r + 1] - got->s.rank_at[r], want.n);
        for (size_t i = 0; i < want.n; i++) {
            char a[HV_OP_TOKEN_CAP], e[HV_OP_TOKEN_CAP];
            hv_op_format(&ops[i], a, sizeof a);
            hv_op_format(&want.ops[i], e, sizeof e);
            if (strcmp(a, e) != 0) {
                fail_msg("%s p=%d m=%d v=%d group=%d k=%d, rank %d, position %zu: %s instead of %s",
                         row->name, x->p, x->m, x->v, x->group, x->k, r, i, a, e);
            }
        }
    }
}

static void as_defined(void **state)
{
    (void)state;
    struct hv_rng rng;
    size_t n_checked = 0;
    hv_rng_seed(&rng, 41);
    for (int i = 0; i < CASES; i++) {
        const struct row *row = &rows[(size_t)i % HV_COUNT(rows)];
        struct size x = {.p = 1 + (int32_t)hv_rng_below(&rng, 9),
                         .m = some_m[hv_rng_below(&rng, HV_COUNT(some_m))],
                         .v = row->chunks ? 2 + (int32_t)hv_rng_below(&rng, 3) : 1,
                         .k = 1 + (int32_t)hv_rng_below(&rng, 4),
                         .flag = hv_rng_below(&rng, 2) == 1};
        char value[32];
        if (!row->suits(&x)) {
            continue;
        }
        snprintf(value, sizeof value, "%d", row->takes == GROUP ? x.group : x.k);
        struct fixture got;
        build(&got, row->name, x.p, x.m, x.v, row->key,
              row->choice[0] ? row->choice[x.flag] : value);
        check_order(row, &x, &got);
        hv_arena_free(&got.a);
        n_checked++;
    }
    assert_true(n_checked > CASES * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_defined)};
    return cmocka_run_group_tests_name("sim/orders", tests, NULL, NULL);
}
