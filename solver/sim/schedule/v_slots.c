/*
 * Table of unit slots for V-shaped schedules. sched_v_adaptive.c decides the order; this file has
 * the moves that are valid for any order.
 */
#include "solver/sim/schedule/v_slots.h"
#include <string.h>

enum { PERIOD = HV__V_PERIOD, N_PASS = HV__V_PASSES, FREE = HV__V_FREE };
enum { F0 = HV__V_F0, F1 = HV__V_F1, B1 = HV__V_B1, B0 = HV__V_B0, W1 = HV__V_W1, W0 = HV__V_W0 };

void hv__v_slots_new(struct hv__v_slots *b, int32_t p, int32_t m)
{
    *b = (struct hv__v_slots){.p = p, .m = m, .cap = PERIOD * (4 * p + m + 1) + 4 * p};
    b->cell = hv_xcalloc((size_t)p, (size_t)b->cap);
    b->spare = hv_xcalloc((size_t)p, (size_t)b->cap);
    b->when = hv_xcalloc((size_t)N_PASS * (size_t)p * (size_t)m, sizeof *b->when);
    b->count = hv_xcalloc((size_t)p * N_PASS, sizeof *b->count);
}

void hv__v_slots_free(struct hv__v_slots *b)
{
    free(b->cell);
    free(b->spare);
    free(b->when);
    free(b->count);
}

static int32_t *when(const struct hv__v_slots *b, int32_t rank, int pass, int32_t mb)
{
    return &b->when[((size_t)pass * (size_t)b->p + (size_t)rank) * (size_t)b->m + (size_t)mb];
}

static int32_t *count(const struct hv__v_slots *b, int32_t rank, int pass)
{
    return &b->count[(size_t)rank * N_PASS + (size_t)pass];
}

/* marks every op as not seen */
static void forget(struct hv__v_slots *b)
{
    memset(b->when, 0xff, (size_t)N_PASS * (size_t)b->p * (size_t)b->m * sizeof *b->when);
    memset(b->count, 0, (size_t)b->p * N_PASS * sizeof *b->count);
}

int32_t hv__v_peak(const struct hv__v_slots *b, int32_t rank)
{
    int32_t most = 0;
    for (int32_t r = rank < 0 ? 0 : rank; r < (rank < 0 ? b->p : rank + 1); r++) {
        const int8_t *own = hv__v_row(b, r);
        int32_t now = 0;
        for (int32_t t = 0; t < b->len; t++) {
            now += own[t] == F0 || own[t] == F1 ? 1 : own[t] >= W1 ? -1 : 0;
            most = now > most ? now : most;
        }
    }
    return most;
}

/* leaves m repetitions of the pass that is at slot t of rank r */
static void keep_m(struct hv__v_slots *b, int32_t r, int32_t t)
{
    int8_t *own = hv__v_row(b, r);
    for (int32_t k = t - PERIOD; k >= 0; k -= PERIOD) {
        own[k] = FREE;
    }
    for (int32_t k = t + PERIOD * b->m; k < b->len; k += PERIOD) {
        own[k] = FREE;
    }
}

/* first slot from t on that holds the pass, within one period */
static int32_t find(const struct hv__v_slots *b, int32_t r, int32_t t, int pass)
{
    const int8_t *own = hv__v_row(b, r);
    int32_t end = t + PERIOD;
    while (t < end && own[t] != pass) {
        t++;
    }
    return t;
}

void hv__v_repeat(struct hv__v_slots *b, const int8_t *block)
{
    b->len = PERIOD * (4 * b->p + b->m + 1);
    memset(b->cell, FREE, (size_t)b->p * (size_t)b->cap);
    for (int32_t r = 0; r < b->p; r++) {
        for (int32_t t = 0; t < b->len; t += PERIOD) {
            memcpy(hv__v_row(b, r) + t, block + (size_t)r * PERIOD, PERIOD);
        }
    }
    int32_t t = PERIOD;
    for (int pass = F0; pass <= B0; pass++) {
        for (int32_t k = 0; k < b->p; k++) {
            int32_t r = pass % 2 == 0 ? k : b->p - 1 - k;
            t = find(b, r, t, pass);
            keep_m(b, r, t++);
            if (pass >= B1) {
                keep_m(b, r, find(b, r, t, pass + 2));
            }
        }
    }
}

/* slot of the input of the mb-th op of a pass, −1 = not seen yet; a W only follows its rank's order
 */
static int32_t input_of(const struct hv__v_slots *b, int32_t r, int pass, int32_t mb)
{
    int32_t from = pass % 2 == 0 ? r - 1 : r + 1;
    if (from >= 0 && from < b->p) {
        return *when(b, from, pass, mb);
    }
    return *when(b, r, pass - 1, mb);
}

static bool has_input(int32_t r, int pass)
{
    return pass < W1 && (pass != F0 || r > 0);
}

/* moves the op at slot t of rank r to its earliest possible slot from `to` on */
static bool squeeze_op(struct hv__v_slots *b, int32_t r, int32_t t, int32_t *free_at)
{
    int pass = hv__v_row(b, r)[t];
    int32_t mb = (*count(b, r, pass))++, to = free_at[r];
    if (mb >= b->m) {
        return false;
    }
    if (has_input(r, pass)) {
        int32_t input = input_of(b, r, pass, mb);
        if (input < 0) {
            return false;
        }
        to = input + 1 > to ? input + 1 : to;
    }
    if (to >= b->cap) {
        return false;
    }
    b->spare[(size_t)r * (size_t)b->cap + (size_t)to] = (int8_t)pass;
    *when(b, r, pass, mb) = to;
    free_at[r] = to + 1;
    return true;
}

bool hv__v_squeeze(struct hv__v_slots *b)
{
    int32_t *free_at = hv_xcalloc((size_t)b->p, sizeof *free_at);
    bool ok = true;
    forget(b);
    memset(b->spare, FREE, (size_t)b->p * (size_t)b->cap);
    for (int32_t t = 0; t < b->len && ok; t++) {
        for (int32_t k = 0; k < 2 * b->p && ok; k++) {
            int32_t r = k < b->p ? k : 2 * b->p - 1 - k;
            int8_t pass = hv__v_row(b, r)[t];
            if (pass != FREE && pass % 2 == k / b->p) {
                ok = squeeze_op(b, r, t, free_at);
            }
        }
    }
    int8_t *old = b->cell;
    b->cell = b->spare;
    b->spare = old;
    b->len = 0;
    for (int32_t r = 0; r < b->p; r++) {
        b->len = free_at[r] > b->len ? free_at[r] : b->len;
    }
    free(free_at);
    return ok;
}

void hv__v_shorten(struct hv__v_slots *b, int32_t m)
{
    b->m = m;
    forget(b);
    for (int32_t r = 0; r < b->p; r++) {
        int8_t *own = hv__v_row(b, r);
        for (int32_t t = 0; t < b->len; t++) {
            if (own[t] != FREE && (*count(b, r, own[t]))++ >= m) {
                own[t] = FREE;
            }
        }
    }
}

/* true where the next op of the pass may run in slot t */
static bool is_ready(const struct hv__v_slots *b, int32_t r, int pass, int32_t t)
{
    int32_t mb = *count(b, r, pass);
    int32_t from = pass % 2 == 0 ? r - 1 : r + 1;
    if (pass >= W1) {
        return *count(b, r, pass - 2) > mb;
    }
    if (from < 0 || from >= b->p) {
        return pass == F0 || *count(b, r, pass - 1) > mb;
    }
    int32_t input = *when(b, from, pass, mb);
    return input >= 0 && input < t;
}

/* the slot whose op fills the gap at slot t of rank r, −1 = none */
static int32_t find_filler(const struct hv__v_slots *b, int32_t r, int32_t t, int32_t room,
                           const int32_t last[N_PASS])
{
    const int8_t *own = hv__v_row(b, r);
    int32_t change = 0, most = 0, left = 0;
    bool wanted[N_PASS];
    for (int k = 0; k < N_PASS; k++) {
        wanted[k] = last[k] > t;
        left += wanted[k];
    }
    for (int32_t k = t + 1; k < b->len && left > 0; k++) {
        int8_t pass = own[k];
        int32_t before = most;
        change += pass == F0 || pass == F1 ? 1 : pass >= W1 ? -1 : 0;
        most = change > most ? change : most;
        if (pass == FREE || !wanted[pass]) {
            continue;
        }
        wanted[pass] = false;
        left--;
        if ((pass > F1 || before < room) && is_ready(b, r, pass, t)) {
            return k;
        }
    }
    return -1;
}

void hv__v_fill_gaps(struct hv__v_slots *b)
{
    int32_t peak = hv__v_peak(b, -1);
    int32_t *held = hv_xcalloc((size_t)b->p, sizeof *held);
    int32_t *last = hv_xcalloc((size_t)b->p * N_PASS, sizeof *last);
    forget(b);
    for (int32_t r = 0; r < b->p; r++) {
        for (int32_t t = 0; t < b->len; t++) {
            if (hv__v_row(b, r)[t] != FREE) {
                last[(size_t)r * N_PASS + (size_t)hv__v_row(b, r)[t]] = t;
            }
        }
    }
    for (int32_t t = 0; t < b->len; t++) {
        for (int32_t r = 0; r < b->p; r++) {
            int8_t *own = hv__v_row(b, r);
            if (own[t] == FREE) {
                int32_t k = find_filler(b, r, t, peak - held[r], last + (size_t)r * N_PASS);
                if (k < 0) {
                    continue;
                }
                own[t] = own[k];
                own[k] = FREE;
            }
            int pass = own[t];
            int32_t mb = (*count(b, r, pass))++;
            if (mb < b->m) {
                *when(b, r, pass, mb) = t;
            }
            held[r] += pass <= F1 ? 1 : pass >= W1 ? -1 : 0;
        }
    }
    free(held);
    free(last);
}

void hv__v_relabel_w(struct hv__v_slots *b)
{
    for (int32_t r = 0; r < b->p; r++) {
        int8_t *own = hv__v_row(b, r);
        for (int32_t from = -1, t = 0; t < b->len; t++) {
            if (own[t] < W1) {
                continue;
            }
            do {
                from++;
            } while (from < b->len && own[from] != B1 && own[from] != B0);
            if (from < t) {
                own[t] = (int8_t)(own[from] + 2);
            }
        }
    }
}

static bool is_op_sound(const struct hv__v_slots *b, int32_t r, int pass, int32_t mb)
{
    int32_t t = *when(b, r, pass, mb);
    if (pass >= W1) {
        return *when(b, r, pass - 2, mb) < t;
    }
    return !has_input(r, pass) || input_of(b, r, pass, mb) < t;
}

bool hv__v_is_sound(struct hv__v_slots *b)
{
    forget(b);
    for (int32_t r = 0; r < b->p; r++) {
        for (int32_t t = 0; t < b->len; t++) {
            int pass = hv__v_row(b, r)[t];
            int32_t mb = pass == FREE ? 0 : (*count(b, r, pass))++;
            if (mb >= b->m) {
                return false;
            }
            if (pass != FREE) {
                *when(b, r, pass, mb) = t;
            }
        }
    }
    for (int32_t r = 0; r < b->p; r++) {
        for (int pass = 0; pass < N_PASS; pass++) {
            for (int32_t mb = 0; mb < b->m; mb++) {
                if (*when(b, r, pass, mb) < 0 || !is_op_sound(b, r, pass, mb)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static int32_t stage_of(int32_t p, int32_t r, int pass)
{
    return pass == F1 || pass == B1 || pass == W1 ? 2 * p - 1 - r : r;
}

static double duration(const struct hv_schedule_input *in, int32_t r, int pass)
{
    struct hv_stage_cost c = hv__cost(in, stage_of(in->ranks, r, pass));
    return pass <= F1 ? c.f_s : pass <= B0 ? c.b_s : c.w_s;
}

/* hop time of the input of an F or B on rank r from another rank */
static double hop_of(const struct hv_schedule_input *in, int32_t r, int pass)
{
    int32_t s = stage_of(in->ranks, r, pass);
    return pass <= F1 ? hv__hop(in, s - 1, false) : hv__hop(in, s, true);
}

double hv__v_span(struct hv__v_slots *b, const struct hv_schedule_input *in)
{
    size_t p = (size_t)b->p, m = (size_t)b->m;
    double *end_s = hv_xcalloc(p * m * N_PASS + 2 * p, sizeof *end_s);
    double *free_s = end_s + p * m * N_PASS, *first_s = free_s + p, most_s = 0;
    memset(b->count, 0, p * N_PASS * sizeof *b->count);
    for (int32_t t = 0; t < b->len; t++) {
        for (int32_t r = 0; r < b->p; r++) {
            int pass = hv__v_row(b, r)[t];
            if (pass == FREE) {
                continue;
            }
            int32_t from = pass % 2 == 0 ? r - 1 : r + 1, mb = (*count(b, r, pass))++;
            double start_s = free_s[r];
            if (pass < W1 && from >= 0 && from < b->p) {
                double ready_s = end_s[when(b, from, pass, mb) - b->when] + hop_of(in, r, pass);
                start_s = ready_s > start_s ? ready_s : start_s;
            }
            if (pass == F0 && mb == 0) {
                first_s[r] = start_s;
            }
            free_s[r] = end_s[when(b, r, pass, mb) - b->when] = start_s + duration(in, r, pass);
        }
    }
    for (size_t r = 0; r < p; r++) {
        most_s = free_s[r] - first_s[r] > most_s ? free_s[r] - first_s[r] : most_s;
    }
    free(end_s);
    return most_s;
}

void hv__v_add_orders(const struct hv__v_slots *b, struct hv_schedule_builder *out)
{
    for (int32_t r = 0; r < b->p; r++) {
        int32_t n[N_PASS] = {0};
        for (int32_t t = 0; t < b->len; t++) {
            int pass = hv__v_row(b, r)[t];
            if (pass != FREE) {
                enum hv_op_kind kind = pass <= F1 ? HV_OP_F : pass <= B0 ? HV_OP_B : HV_OP_W;
                hv__add(out, kind, stage_of(b->p, r, pass), n[pass]++);
            }
        }
        hv__rank_done(out);
    }
}
