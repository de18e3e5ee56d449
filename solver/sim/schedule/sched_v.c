/*
 * V-Min and V-Half (Pipeline Parallelism with Controllable Memory, NeurIPS'24, section 3): a
 * building block of one micro-batch on a grid of unit slots is repeated every six slots, weight
 * gradients go into free slots, then warm-up and cool-down are pulled forward as far as the memory
 * of the middle allows. O(p·m log(p·m)) and O(slots) for every slot tried in warm-up and cool-down.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <string.h>

/* passes: F of the first and second chunk, B nearer the loss and nearer the input, W (one list or
 * two) */
enum { N_PASS = 6, PERIOD = 6, FREE = -1 };

struct grid {
    int32_t p, m;
    int32_t n_slots;
    int32_t n_pass;     /* 4 without W, 5 with one list of W, 6 with two */
    int32_t n[N_PASS];  /* ops of each pass on a rank */
    int32_t *at;        /* [p × N_PASS × 2m] slot of every op */
    int8_t *slots;      /* [p × n_slots] pass in every slot, FREE */
    struct cell *cells; /* [p × 6m] for sorting */
    int32_t *end;       /* as `at`: ends while squeezing */
    bool failed;
};

/* an op on the grid, in the order (slot, rank, pass, number) */
struct cell {
    int32_t slot, rank, pass, i;
};

static int32_t *at(const struct grid *g, int32_t *table, int32_t rank, int32_t pass, int32_t i)
{
    return &table[((size_t)rank * N_PASS + (size_t)pass) * 2 * (size_t)g->m + (size_t)i];
}

static int8_t *slots_of(const struct grid *g, int32_t rank)
{
    return g->slots + (size_t)rank * (size_t)g->n_slots;
}

static int by_cell(const void *x, const void *y)
{
    const struct cell *a = x, *b = y;
    if (a->slot != b->slot) {
        return a->slot < b->slot ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->pass != b->pass) {
        return a->pass < b->pass ? -1 : 1;
    }
    return (a->i > b->i) - (a->i < b->i);
}

static size_t sort_cells(struct grid *g)
{
    size_t n = 0;
    for (int32_t r = 0; r < g->p; r++) {
        for (int32_t k = 0; k < g->n_pass; k++) {
            for (int32_t i = 0; i < g->n[k]; i++) {
                g->cells[n++] = (struct cell){*at(g, g->at, r, k, i), r, k, i};
            }
        }
    }
    qsort(g->cells, n, sizeof *g->cells, by_cell);
    return n;
}

/* enters every op into its slot; two ops in one slot would be an error of the pattern */
static void fill_slots(struct grid *g)
{
    memset(g->slots, FREE, (size_t)g->p * (size_t)g->n_slots);
    for (int32_t r = 0; r < g->p; r++) {
        for (int32_t k = 0; k < g->n_pass; k++) {
            for (int32_t i = 0; i < g->n[k]; i++) {
                int8_t *s = &slots_of(g, r)[*at(g, g->at, r, k, i)];
                g->failed = g->failed || *s != FREE;
                *s = (int8_t)k;
            }
        }
    }
}

/* W's into the free slots behind their B's; `split`: one list per chunk, the one nearer the loss
 * first */
static void place_w(struct grid *g, bool split)
{
    g->n_pass = 4;
    fill_slots(g);
    for (int32_t r = 0; r < g->p; r++) {
        int32_t due[2] = {0}, placed[2] = {0}, last = 0;
        for (int32_t k = 0; k < 4; k++) {
            int32_t end = *at(g, g->at, r, k, g->m - 1);
            last = end > last ? end : last;
        }
        for (int32_t t = 0; t <= last || due[0] + due[1] > 0; t++) {
            int8_t *s = &slots_of(g, r)[t];
            int32_t w = due[0] > 0 ? 0 : 1;
            if (*s == 2 || *s == 3) {
                due[split ? *s - 2 : 0]++;
            } else if (*s == FREE && due[w] > 0) {
                *at(g, g->at, r, 4 + w, placed[w]++) = t;
                due[w]--;
            }
        }
    }
    g->n_pass = split ? 6 : 5;
    g->n[4] = split ? g->m : 2 * g->m;
    g->n[5] = g->m;
    fill_slots(g);
}

/* most activations of a rank; without W's a free slot serves one that is due */
static int32_t peak(const struct grid *g, int32_t rank)
{
    const int8_t *s = slots_of(g, rank);
    int32_t now = 0, most = 0, due = 0;
    for (int32_t t = 0; t < g->n_slots; t++) {
        if (s[t] == 0 || s[t] == 1) {
            now++;
        } else if (s[t] == 4) {
            now--;
        } else if (s[t] != FREE) {
            due++;
        } else if (g->n_pass == 4 && due > 0) {
            now--;
            due--;
        }
        most = now > most ? now : most;
    }
    return most;
}

/* slot of the i-th B of a rank, both chunks together */
static int32_t nth_b(const struct grid *g, int32_t rank, int32_t i)
{
    int32_t a = 0, b = 0, t = 0;
    while (a + b <= i) {
        int32_t ta = a < g->m ? *at(g, g->at, rank, 2, a) : INT32_MAX;
        int32_t tb = b < g->m ? *at(g, g->at, rank, 3, b) : INT32_MAX;
        t = ta < tb ? ta : tb;
        a += ta < tb;
        b += ta >= tb;
    }
    return t;
}

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* the latest dependency of op c on other ranks and on its own; −1 = none. `table` = slots
 * or ends */
static int32_t latest_input(const struct grid *g, int32_t *table, const struct cell *c)
{
    int32_t t = -1, from = c->pass % 2 == 0 ? c->rank - 1 : c->rank + 1;
    if (c->pass < 4 && from >= 0 && from < g->p) {
        t = *at(g, table, from, c->pass, c->i);
    }
    if (c->pass > 0 && c->pass < 4) {
        t = later(t, *at(g, table, c->rank, c->pass - 1, c->i));
    }
    if (c->i > 0) {
        t = later(t, *at(g, table, c->rank, c->pass, c->i - 1));
    }
    return t;
}

/* moves one op to the first free slot that keeps within the memory `limit` */
static void pull_forward(struct grid *g, const struct cell *c, int32_t limit)
{
    int32_t from = latest_input(g, g->at, c);
    if (c->pass == 4) {
        from = later(from, nth_b(g, c->rank, c->i));
    }
    int8_t *s = slots_of(g, c->rank);
    g->failed = g->failed || from >= c->slot;
    s[c->slot] = FREE;
    for (int32_t t = from + 1; t < c->slot; t++) {
        if (s[t] != FREE) {
            continue;
        }
        s[t] = (int8_t)c->pass;
        if (peak(g, c->rank) <= limit) {
            *at(g, g->at, c->rank, c->pass, c->i) = t;
            return;
        }
        s[t] = FREE;
    }
    s[c->slot] = (int8_t)c->pass;
}

/* every op as early as its inputs and the order of its rank allow, one slot each */
static void squeeze(struct grid *g)
{
    size_t n = sort_cells(g);
    int32_t *free_at = hv_xcalloc((size_t)g->p, sizeof *free_at);
    for (size_t k = 0; k < n; k++) {
        const struct cell *c = &g->cells[k];
        int32_t t = later(free_at[c->rank], latest_input(g, g->end, c));
        *at(g, g->end, c->rank, c->pass, c->i) = t + 1;
        free_at[c->rank] = t + 1;
        *at(g, g->at, c->rank, c->pass, c->i) = t;
    }
    free(free_at);
}

/* warm-up (only with W's placed) and cool-down pulled forward, then everything squeezed */
static void reorder(struct grid *g, bool with_w)
{
    enum { WARM_UP, MIDDLE, COOL_DOWN } phase = WARM_UP;
    g->n_pass = 4;
    if (with_w) {
        place_w(g, false);
    } else {
        fill_slots(g);
    }
    int32_t limit = 0;
    for (int32_t r = 0; r < g->p; r++) {
        limit = later(limit, peak(g, r));
    }
    size_t n = sort_cells(g);
    for (size_t k = 0; k < n && !g->failed; k++) {
        const struct cell *c = &g->cells[k];
        if (phase == WARM_UP && c->pass == 3 && c->rank == 0) {
            phase = MIDDLE;
        }
        if (phase == MIDDLE) {
            phase = c->pass == 0 && c->i == g->m - 1 ? COOL_DOWN : MIDDLE;
        } else if (phase == COOL_DOWN || with_w) {
            pull_forward(g, c, limit);
        }
    }
    if (!with_w) {
        place_w(g, false);
    }
    squeeze(g);
}

static void add_orders(struct grid *g, struct hv_schedule_builder *b)
{
    for (int32_t r = 0; r < g->p; r++) {
        int32_t n[N_PASS] = {0};
        const int8_t *s = slots_of(g, r);
        for (int32_t t = 0; t < g->n_slots; t++) {
            if (s[t] == FREE) {
                continue;
            }
            bool second = s[t] == 1 || s[t] == 2 || s[t] == 4;
            enum hv_op_kind kind = s[t] < 2 ? HV_OP_F : s[t] < 4 ? HV_OP_B : HV_OP_W;
            hv__add(b, kind, second ? 2 * g->p - 1 - r : r, n[s[t]]++);
        }
        hv__rank_done(b);
    }
}

/* slots of the first micro-batch on one rank */
struct block {
    int32_t slot[4];
};

static struct block v_min_block(int32_t p, int32_t r)
{
    int32_t wait = p % 3 == 0 ? 2 : 0;
    return (struct block){{r, 2 * p - r - 1, 2 * p + wait + r, 4 * p + wait - r - 1}};
}

static struct block v_half_block(int32_t p, int32_t r)
{
    int32_t wait = p % 2 == 0 ? 3 : 0;
    return (struct block){{2 * r, 3 * p - r - 2, 3 * p + wait + 2 * r - 1, 6 * p + wait - r - 2}};
}

static enum hv_status generate(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               struct block (*block)(int32_t p, int32_t r), struct hv_err *err)
{
    struct grid g = {.p = in->ranks, .m = in->micro_batches};
    size_t p = (size_t)g.p, m = (size_t)g.m;
    double slots = 12.0 * ((double)g.p + g.m) + 64;
    enum hv_status st = hv__check_work(in, slots * slots * g.p / 4, err);
    if (st != HV_OK) {
        return st;
    }
    g.n_slots = (int32_t)slots;
    g.at = hv_xcalloc(p * N_PASS * 2 * m, sizeof *g.at);
    g.end = hv_xcalloc(p * N_PASS * 2 * m, sizeof *g.end);
    g.slots = hv_xcalloc(p, (size_t)g.n_slots);
    g.cells = hv_xcalloc(p * N_PASS * m, sizeof *g.cells);
    for (int32_t k = 0; k < 4; k++) {
        g.n[k] = g.m;
        for (int32_t r = 0; r < g.p; r++) {
            for (int32_t i = 0; i < g.m; i++) {
                *at(&g, g.at, r, k, i) = block(g.p, r).slot[k] + PERIOD * i;
            }
        }
    }
    reorder(&g, true);
    reorder(&g, false);
    place_w(&g, true);
    if (g.failed) {
        st = hv_err_set(err, HV_ENO, "schedule %s: its building block does not repeat for p = %d",
                        in->row->name, in->ranks);
    } else {
        hv__place_zigzag(b);
        add_orders(&g, b);
    }
    free(g.at);
    free(g.end);
    free(g.slots);
    free(g.cells);
    return st;
}

enum hv_status hv__gen_v_min(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    return generate(in, b, v_min_block, err);
}

enum hv_status hv__gen_v_half(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    return generate(in, b, v_half_block, err);
}
