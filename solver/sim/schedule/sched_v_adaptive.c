/*
 * V-adaptive (Pipeline Parallelism with Controllable Memory, NeurIPS'24, section 4 and appendix A):
 * the least span within a memory limit over all building blocks whose passes move by uniform steps
 * from rank to rank. Every block is repeated, squeezed, its warm-up and cool-down are laid out anew
 * and the gaps left are filled. The table of unit slots is in v_slots.c.
 * O(900·p) blocks, each O(p·(p + m)) and, for every gap, the slots up to what fills it.
 */
#include "solver/sim/schedule/v_slots.h"
#include <string.h>

enum { PERIOD = HV__V_PERIOD, N_PASS = HV__V_PASSES, FREE = HV__V_FREE, N_STEPS = 5 };
enum { F0 = HV__V_F0, F1 = HV__V_F1, B1 = HV__V_B1, B0 = HV__V_B0, W1 = HV__V_W1, W0 = HV__V_W0 };
/* the durations that decide (the option): 0 times where those of every stage are given, else slots;
 * 1 equal slots; 2 times */
enum { AUTO, SLOTS };

struct search {
    const struct hv_schedule_input *in;
    struct hv_schedule_input judge; /* `in` with the durations that decide */
    struct hv__v_slots slots, best;
    int8_t *block;    /* [p × PERIOD] pass in every slot of the period */
    int32_t limit;    /* chunk activations a rank may hold */
    int32_t smallest; /* least peak of any block tried */
    double best_s;
    bool found;
};

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* W's of a rank into the first free slots of the period behind their B's */
static void add_w(int32_t slot[N_PASS], int8_t *own)
{
    memset(own, FREE, PERIOD);
    for (int k = F0; k <= B0; k++) {
        own[slot[k]] = (int8_t)k;
    }
    for (int k = B1; k <= B0; k++) {
        int32_t t = slot[k];
        while (own[t] != FREE) {
            t = (t + 1) % PERIOD;
        }
        own[t] = (int8_t)(k + 2);
    }
}

/* the block of every rank from that of rank 0; false where two passes meet in one slot. Forwards
 * and backwards going up the ranks move by `near` slots below rank `turn` and by `far` above, those
 * coming down by one slot less per rank */
static bool spread(struct search *s, const int32_t first[4], int32_t near, int32_t far,
                   int32_t turn)
{
    int32_t slot[N_PASS] = {first[0], first[1], first[2], first[3]};
    for (int32_t r = 0; r < s->in->ranks; r++) {
        bool used[PERIOD] = {false};
        int32_t up = r <= turn ? near : far;
        for (int k = F0; k <= B0; k++) {
            if (r > 0) {
                slot[k] = (slot[k] + (k % 2 == 0 ? up : PERIOD - 1)) % PERIOD;
            }
            if (used[slot[k]]) {
                return false;
            }
            used[slot[k]] = true;
        }
        add_w(slot, s->block + (size_t)r * PERIOD);
    }
    return true;
}

/* lays out the warm-up of one rank anew: everything before its first B0 */
static bool lay_warmup(struct hv__v_slots *b, int32_t r, int32_t most)
{
    int8_t *own = hv__v_row(b, r);
    int32_t n[N_PASS] = {0}, u[N_PASS] = {0}, p = b->p;
    for (int32_t t = 0; t < b->len && own[t] != B0; t++) {
        if (own[t] != FREE) {
            n[own[t]]++;
            own[t] = FREE;
        }
    }
    int32_t ahead_f1 = min32(min32(r + 1, most / 2), b->m);
    int32_t ahead_f0 = min32(min32(most - ahead_f1, b->m), n[F0]);
    ahead_f1 = min32(ahead_f1, n[F1]);
    int32_t t = r;
    for (int32_t k = 0; k < 2 * (p - 1 - r); k++, t++) {
        if (u[F0] < ahead_f0) {
            own[t] = F0;
            u[F0]++;
        }
    }
    for (int32_t k = 0; k < 2 * (r + 1); k++, t++) {
        int pass = k % 2 == 0 ? F0 : F1;
        if (u[pass] < (pass == F0 ? ahead_f0 : ahead_f1)) {
            own[t] = (int8_t)pass;
            u[pass]++;
        }
    }
    for (; u[F0] < n[F0] || u[F1] < n[F1] || u[B1] < n[B1] || u[W1] < n[W1]; t += 3) {
        int third = u[F1] < n[F1] ? F1 : F0;
        if (t + 3 > b->cap) {
            return false;
        }
        const int passes[3] = {B1, W1, third};
        for (int k = 0; k < 3; k++) {
            if (u[passes[k]] < n[passes[k]]) {
                own[t + k] = (int8_t)passes[k];
                u[passes[k]]++;
            }
        }
    }
    b->len = t > b->len ? t : b->len;
    return true;
}

static bool lay_warmups(struct hv__v_slots *b)
{
    int32_t most = min32(hv__v_peak(b, -1), 2 * b->p);
    bool ok = true;
    for (int32_t r = 0; r < b->p && ok; r++) {
        ok = lay_warmup(b, r, most);
    }
    return ok;
}

/* few micro-batches leave memory unused: the first W's move to the end, as many as memory allows */
static void delay_w(struct hv__v_slots *b, int32_t limit)
{
    int32_t len = b->len, end = len;
    for (int32_t r = 0; r < b->p; r++) {
        int8_t *own = hv__v_row(b, r);
        int32_t room = limit - hv__v_peak(b, r), n = 0;
        for (int32_t t = 0; t < len && n < room && len + n < b->cap; t++) {
            if (own[t] >= W1) {
                own[len + n++] = own[t];
                own[t] = FREE;
            }
        }
        end = len + n > end ? len + n : end;
    }
    b->len = end;
}

/* removes the last backwards of rank r from the table, and the W's behind them; fills n[] and
 * returns the slot of the last F1 */
static int32_t lift_tail(struct hv__v_slots *b, int32_t r, int32_t peak, int32_t n[N_PASS])
{
    int8_t *own = hv__v_row(b, r);
    int32_t last_f1 = -1, most_b0 = min32((peak + 1) / 2, b->m);
    int32_t most_b1 = min32(min32(peak - most_b0, b->m), r + 1);
    for (int32_t t = b->len - 1; t >= 0; t--) {
        int8_t k = own[t];
        last_f1 = k == F1 && last_f1 < 0 ? t : last_f1;
        if ((k == B1 && n[B1] < most_b1) || (k == B0 && n[B0] < most_b0)) {
            own[t] = FREE;
            n[k]++;
        }
    }
    for (int32_t t = b->len - 1; t >= 0; t--) {
        if (n[W1] >= n[B1] && n[W0] >= n[B0] && n[W1] + n[W0] >= peak) {
            break;
        }
        if (own[t] >= W1) {
            n[own[t]]++;
            own[t] = FREE;
        }
    }
    return last_f1;
}

/* W's whose B has no W yet into the free slots behind the last W of the rank */
static void refill_w(struct hv__v_slots *b, int32_t r, int32_t len)
{
    int8_t *own = hv__v_row(b, r);
    int32_t due[2] = {0}, last_w = -1;
    for (int32_t t = 0; t < len; t++) {
        last_w = own[t] >= W1 ? t : last_w;
    }
    for (int32_t t = 0; t < b->cap && (t < len || due[0] > 0 || due[1] > 0); t++) {
        if (own[t] >= B1) {
            due[own[t] % 2] += own[t] >= W1 ? -1 : 1;
        } else if (own[t] == FREE && t > last_w && (due[0] > 0 || due[1] > 0)) {
            int chunk = due[0] > 0 ? 0 : 1;
            own[t] = (int8_t)(W1 + chunk);
            due[chunk]--;
            b->len = t + 1 > b->len ? t + 1 : b->len;
        }
    }
}

/* lays out the cool-down anew: B0's of every rank two slots apart, one slot earlier per rank, B1's
 * between them */
static bool lay_cooldown(struct hv__v_slots *b)
{
    int32_t peak = hv__v_peak(b, -1), start = -1, len = b->len;
    for (int32_t r = 0; r < b->p; r++) {
        int32_t n[N_PASS] = {0};
        int32_t last_f1 = lift_tail(b, r, peak, n);
        start = r == 0 ? last_f1 : start;
        int32_t at_b0 = start - r + 2 * b->p, at_b1 = start + 1 + r;
        int8_t *own = hv__v_row(b, r);
        if (at_b0 >= b->cap || at_b1 >= b->cap || at_b0 - 2 * n[B0] < -1 ||
            at_b1 - 2 * n[B1] < -1) {
            return false;
        }
        for (int32_t k = 0; k < n[B0]; k++) {
            own[at_b0 - 2 * k] = B0;
        }
        for (int32_t k = 0; k < n[B1]; k++) {
            own[at_b1 - 2 * k] = B1;
        }
        int32_t end = (at_b0 > at_b1 ? at_b0 : at_b1) + 1;
        len = n[B0] + n[B1] > 0 && end > len ? end : len;
    }
    b->len = len;
    for (int32_t r = 0; r < b->p; r++) {
        refill_w(b, r, len);
    }
    return hv__v_squeeze(b);
}

/* the result of a block */
struct outcome {
    bool made;
    int32_t peak; /* of the finished order, or of the block where it could not be used */
};

/* true where every rank is within its limit */
static bool keeps_limits(const struct search *s)
{
    bool keeps = true;
    for (int32_t r = 0; s->in->limits && r < s->in->ranks; r++) {
        keeps = keeps && hv__v_peak(&s->slots, r) <= 2 * s->in->limits[r];
    }
    return keeps;
}

static struct outcome build(struct search *s)
{
    struct hv__v_slots *b = &s->slots;
    int32_t p = s->in->ranks, m = s->in->micro_batches;
    struct outcome o = {.made = false};
    b->m = m > 2 * p ? m : 2 * p; /* the layouts need two rounds; the surplus is cut off later */
    hv__v_repeat(b, s->block);
    o.peak = hv__v_peak(b, -1);
    if ((m == b->m && o.peak > s->limit) || o.peak > 2 * p || !hv__v_squeeze(b) ||
        !lay_warmups(b) || !hv__v_squeeze(b)) {
        return o;
    }
    int32_t peak = hv__v_peak(b, -1);
    if (peak > o.peak) {
        return o;
    }
    if (m < b->m) {
        hv__v_shorten(b, m);
        if (m <= p && 2 * m <= s->limit) {
            delay_w(b, min32(2 * p, peak));
        }
        if (!hv__v_squeeze(b)) {
            return o;
        }
        o.peak = hv__v_peak(b, -1);
        if (o.peak > s->limit) {
            return o;
        }
    }
    if (!lay_cooldown(b)) {
        return o;
    }
    hv__v_fill_gaps(b);
    hv__v_relabel_w(b);
    peak = hv__v_peak(b, -1);
    if (peak <= o.peak) {
        o = (struct outcome){hv__v_is_sound(b) && keeps_limits(s), peak};
    }
    return o;
}

/* tries one block; false: its peak is above the limit, so later turns are not tried */
static bool try_block(struct search *s)
{
    struct outcome o = build(s);
    s->smallest = min32(s->smallest, o.peak);
    if (o.peak > s->limit) {
        return false;
    }
    if (o.made) {
        double span_s = hv__v_span(&s->slots, &s->judge);
        if (!s->found || span_s < HV__SHORTER * s->best_s) {
            struct hv__v_slots t = s->best;
            s->best = s->slots;
            s->slots = t;
            s->best_s = span_s;
            s->found = true;
        }
    }
    return true;
}

/* every way in which the block of rank 0 can go on */
static void try_first(struct search *s, const int32_t first[4])
{
    for (int32_t near = 1; near <= N_STEPS; near++) {
        for (int32_t far = 1; far <= near; far++) {
            /* with one step throughout, where it changes does not matter */
            int32_t last_turn = near == far ? 1 : s->in->ranks - 1;
            for (int32_t turn = 1; turn <= last_turn; turn++) {
                if (spread(s, first, near, far, turn) && !try_block(s)) {
                    break;
                }
            }
        }
    }
}

static void try_all(struct search *s)
{
    for (int32_t f1 = 1; f1 < PERIOD; f1++) {
        for (int32_t b1 = 1; b1 < PERIOD; b1++) {
            for (int32_t b0 = 1; b0 < PERIOD; b0++) {
                if (f1 != b1 && f1 != b0 && b1 != b0) {
                    try_first(s, (int32_t[4]){0, f1, b1, b0});
                }
            }
        }
    }
}

enum hv_status hv__gen_v_adaptive(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                  struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    int64_t asked = hv__option(in, "memory");
    if (p < 2) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule v-adaptive needs at least 2 ranks, found p = 1; use p = 2");
    }
    enum hv_status st = hv__check_work(in, 250.0 * p * p * p * (4.0 * p + m), err);
    if (st != HV_OK) {
        return st;
    }
    struct search s = {.in = in, .judge = *in, .smallest = INT32_MAX};
    int64_t decide = hv__option(in, "decide");
    if (decide == SLOTS || (decide == AUTO && !in->costs)) {
        s.judge.costs = NULL;
        s.judge.cost = (struct hv_stage_cost){1, 1, 1};
        s.judge.hops_s = NULL;
        s.judge.hop_s = 0;
    }
    s.limit = asked > 0 && asked < 2 * p ? (int32_t)asked : 2 * p;
    s.block = hv_xcalloc((size_t)p, PERIOD);
    hv__v_slots_new(&s.slots, p, m > 2 * p ? m : 2 * p);
    hv__v_slots_new(&s.best, p, m > 2 * p ? m : 2 * p);
    try_all(&s);
    if (!s.found) {
        st = hv_err_set(err, HV_ENO,
                        "schedule v-adaptive: memory = %d half-stage activations are too few for "
                        "p = %d; the smallest building block needs %d: use memory = %d",
                        s.limit, p, s.smallest, s.smallest);
    } else {
        hv__place_zigzag(b);
        hv__v_add_orders(&s.best, b);
    }
    hv__v_slots_free(&s.slots);
    hv__v_slots_free(&s.best);
    free(s.block);
    return st;
}
