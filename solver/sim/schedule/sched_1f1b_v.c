/*
 * 1F1B-V (Pipeline Parallelism with Controllable Memory, NeurIPS'24, appendix): V shape with whole
 * backwards. The building block of one micro-batch, repeated every six slots, is cut to m
 * repetitions and its warm-up pulled forward without raising the peak. O(p·slots·look-back).
 */
#include "solver/sim/schedule/schedule_int.h"
#include <string.h>

/* passes on the grid; a backward takes two slots: B and the W right behind it */
enum { F0, F1, B1, B0, W1, W0, N_PASS, FREE = -1, PERIOD = 6 };

struct grid {
    int32_t p, m, n_slots;
    int8_t *slots; /* [p × n_slots] */
    int32_t *held; /* [p × n_slots] activations after each slot */
    int32_t
        *where; /* [p × (m + 2) × N_PASS] slot of the n-th op of a pass, from 1; −1 = none yet */
    int32_t *count; /* [p × N_PASS] */
    int32_t peak;
    bool failed;
};

static int8_t *row(const struct grid *g, int32_t r)
{
    return g->slots + (size_t)r * (size_t)g->n_slots;
}

static int32_t *where(const struct grid *g, int32_t r, int32_t nth, int pass)
{
    return &g->where[((size_t)r * (size_t)(g->m + 2) + (size_t)nth) * N_PASS + (size_t)pass];
}

/* offsets of one micro-batch: forwards one slot per rank, backwards two, with three slots inserted
 * wherever two ops of a rank would have the same slot modulo six */
static void fill_pattern(struct grid *g, int8_t *pattern)
{
    int32_t now = 2 * g->p + 1 + (g->p % 3 == 0 ? 3 : 0);
    int32_t cycle = (3 - (g->p + 2) % 3) % 3;
    memset(pattern, FREE, (size_t)g->p * PERIOD);
    for (int32_t k = 0; k < 2 * g->p; k++) {
        int32_t r = k < g->p ? k : 2 * g->p - 1 - k;
        int8_t *own = pattern + (size_t)r * PERIOD;
        own[(k + 1) % PERIOD] = k < g->p ? F0 : F1;
        own[now % PERIOD] = k < g->p ? B1 : B0;
        own[(now + 1) % PERIOD] = k < g->p ? W1 : W0;
        now += 2;
        if (++cycle == 3) {
            cycle = 0;
            now += 3;
        }
    }
    for (int32_t r = 0; r < g->p; r++) {
        for (int32_t t = 0; t < g->n_slots; t++) {
            row(g, r)[t] = pattern[(size_t)r * PERIOD + (size_t)(t % PERIOD)];
        }
    }
}

/* leaves m repetitions of the pass that is at slot t */
static void keep_m(struct grid *g, int32_t r, int32_t t)
{
    for (int32_t k = t - PERIOD; k >= 0; k -= PERIOD) {
        row(g, r)[k] = FREE;
    }
    for (int32_t k = t + PERIOD * g->m; k < g->n_slots; k += PERIOD) {
        row(g, r)[k] = FREE;
    }
}

/* first slot from t on, within a period, that holds the pass; −1 when there is none */
static int32_t find(const struct grid *g, int32_t r, int32_t t, int pass)
{
    for (int32_t k = t; k < t + PERIOD && k < g->n_slots; k++) {
        if (row(g, r)[k] == pass) {
            return k;
        }
    }
    return -1;
}

/* follows the first micro-batch through all ranks and cuts every pass to m repetitions */
static void cut(struct grid *g)
{
    int32_t t = PERIOD;
    for (int pass = F0; pass <= B0; pass++) {
        for (int32_t k = 0; k < g->p && !g->failed; k++) {
            int32_t r = pass % 2 == 0 ? k : g->p - 1 - k;
            int32_t hit = find(g, r, t, pass);
            if (hit < 0) {
                g->failed = true;
                return;
            }
            keep_m(g, r, hit);
            t = hit + 1;
            int32_t w = pass >= B1 ? find(g, r, t, pass + 2) : -1;
            if (w >= 0) {
                keep_m(g, r, w);
            }
        }
    }
}

static void measure(struct grid *g)
{
    for (int32_t r = 0; r < g->p; r++) {
        int32_t now = 0;
        for (int32_t t = 0; t < g->n_slots; t++) {
            int8_t k = row(g, r)[t];
            now += k == F0 || k == F1 ? 1 : k == W1 || k == W0 ? -1 : 0;
            g->held[(size_t)r * (size_t)g->n_slots + (size_t)t] = now;
            g->peak = now > g->peak ? now : g->peak;
        }
    }
}

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* slot of the latest op that the n-th op of a pass waits for */
static int32_t input_of(const struct grid *g, int32_t r, int32_t nth, int pass)
{
    int32_t t = nth > 1 ? *where(g, r, nth - 1, pass) : -1;
    switch (pass) {
    case F0:
        return r > 0 ? later(t, *where(g, r - 1, nth, F0)) : t;
    case F1:
        return later(t, r + 1 < g->p ? *where(g, r + 1, nth, F1) : *where(g, r, nth, F0));
    case B1:
        return later(t, r > 0 ? *where(g, r - 1, nth, W1) : *where(g, r, nth, F1));
    case B0:
        return later(t, r + 1 < g->p ? *where(g, r + 1, nth, W0) : *where(g, r, nth, W1));
    default:
        return later(t, *where(g, r, nth, pass - 2));
    }
}

/* the earliest slot for the op at slot t: behind its inputs, and for forwards without raising the
 * peak */
static int32_t find_room(const struct grid *g, int32_t r, int32_t t, int32_t from, int pass)
{
    const int8_t *s = row(g, r);
    const int32_t *held = g->held + (size_t)r * (size_t)g->n_slots;
    while (from < t && s[from] != FREE) {
        from++;
    }
    if (pass == B1 || pass == B0) {
        while (from < t && (s[from] != FREE || s[from + 1] != FREE)) {
            from++;
        }
    }
    if (pass != F0 && pass != F1) {
        return from;
    }
    int32_t place = t;
    while (place > from && held[place - 1] < g->peak) {
        place--;
    }
    while (place < t && s[place] != FREE) {
        place++;
    }
    return place;
}

static void pull_forward(struct grid *g, int32_t r, int32_t t)
{
    int8_t *s = row(g, r);
    int pass = s[t];
    int32_t nth = ++g->count[(size_t)r * N_PASS + (size_t)pass];
    if (nth > g->m + 1) {
        g->failed = true;
        return;
    }
    int32_t to = find_room(g, r, t, input_of(g, r, nth, pass) + 1, pass);
    *where(g, r, nth, pass) = to;
    if (to >= t) {
        return;
    }
    s[t] = FREE;
    s[to] = (int8_t)pass;
    int32_t change = pass == F0 || pass == F1 ? 1 : pass >= W1 ? -1 : 0;
    for (int32_t k = to; k < t; k++) {
        g->held[(size_t)r * (size_t)g->n_slots + (size_t)k] += change;
    }
}

static void add_orders(const struct grid *g, struct hv_schedule_builder *b)
{
    for (int32_t r = 0; r < g->p; r++) {
        int32_t n[N_PASS] = {0};
        for (int32_t t = 0; t < g->n_slots; t++) {
            int8_t k = row(g, r)[t];
            if (k == FREE || k >= W1 || n[k] >= g->m) {
                continue;
            }
            bool second = k == F1 || k == B1;
            hv__add(b, k == F0 || k == F1 ? HV_OP_F : HV_OP_BW, second ? 2 * g->p - 1 - r : r,
                    n[k]++);
        }
        hv__rank_done(b);
    }
}

enum hv_status hv__gen_1f1b_v(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    struct grid g = {.p = in->ranks, .m = in->micro_batches};
    size_t p = (size_t)g.p;
    double slots = PERIOD * (4.0 * g.p + g.m + 1);
    enum hv_status st = hv__check_work(in, 40 * slots * g.p, err);
    if (st != HV_OK) {
        return st;
    }
    g.n_slots = (int32_t)slots;
    g.slots = hv_xcalloc(p, (size_t)g.n_slots);
    g.held = hv_xcalloc(p * (size_t)g.n_slots, sizeof *g.held);
    g.where = hv_xcalloc(p * ((size_t)g.m + 2) * N_PASS, sizeof *g.where);
    g.count = hv_xcalloc(p * N_PASS, sizeof *g.count);
    memset(g.where, 0xff, p * ((size_t)g.m + 2) * N_PASS * sizeof *g.where);
    int8_t *pattern = hv_xcalloc(p, PERIOD);
    fill_pattern(&g, pattern);
    cut(&g);
    measure(&g);
    for (int32_t t = 0; t < g.n_slots; t++) {
        for (int32_t r = 0; r < g.p && !g.failed; r++) {
            if (row(&g, r)[t] != FREE) {
                pull_forward(&g, r, t);
            }
        }
    }
    if (g.failed) {
        st =
            hv_err_set(err, HV_ENO,
                       "schedule 1f1b-v: its building block does not repeat for p = %d", in->ranks);
    } else {
        hv__place_zigzag(b);
        add_orders(&g, b);
    }
    free(g.slots);
    free(g.held);
    free(g.where);
    free(g.count);
    free(pattern);
    return st;
}
