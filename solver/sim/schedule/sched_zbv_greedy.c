/*
 * ZB-V that decides by cost (Zero Bubble, arXiv version 2, section 6): greedy placement of F and B
 * in turn, W's fill the waits. Four variants, each run again with the bubbles it made as budget as
 * long as that helps; the smallest bubble wins, the first of equals. Memory limit: that of 1F1B.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <string.h>

/* passes of one rank: F of the first and second chunk, B nearer the loss and nearer the input, W's
 * alike */
enum { N_PASS = 6 };
enum { MEM_F = 2, MEM_B = -1 };

struct stage {
    int32_t n[N_PASS];
    double free_at, bubble;
    int32_t mem, limit, n_ops, w_head;
};

struct greedy {
    int32_t p, m;
    bool fill_f, fill_b; /* the variant */
    bool failed;
    struct stage *stages;
    const struct hv_schedule_input *in;
    double *end;      /* [N_PASS × p × m], −1 = not placed */
    int8_t *pending;  /* [p × 2m] chunks of the B's placed, oldest first */
    uint8_t *orders;  /* [p × 6m] passes */
    double *approved; /* [p] bubbles of the run before, −1 = none */
    double approved_max;
};

static int pass_of(int cat, int chunk)
{
    return 2 * cat + chunk;
}

static double *end_of(const struct greedy *g, int pass, int32_t j, int32_t i)
{
    return &g->end[((size_t)pass * (size_t)g->p + (size_t)j) * (size_t)g->m + (size_t)i];
}

static int32_t stage_of(const struct greedy *g, int pass, int32_t j)
{
    bool second = pass == 1 || pass == 2 || pass == 4; /* B and W run from the loss backwards */
    return second ? 2 * g->p - 1 - j : j;
}

static double cost_of(const struct greedy *g, int pass, int32_t j)
{
    struct hv_stage_cost c = hv__cost(g->in, stage_of(g, pass, j));
    return pass < 2 ? c.f_s : pass < 4 ? c.b_s : c.w_s;
}

/* end of the input of the next op of a pass on another rank, NULL where there is none */
static const double *upstream(const struct greedy *g, int pass, int32_t j)
{
    int32_t from = pass >= 4 ? -1 : pass % 2 == 1 ? j + 1 : j - 1;
    if (from < 0 || from >= g->p || g->stages[j].n[pass] >= g->m) {
        return NULL;
    }
    return end_of(g, pass, from, g->stages[j].n[pass]);
}

/* hop time of the input of the next op of a pass */
static double hop_of(const struct greedy *g, int pass, int32_t j)
{
    int32_t s = stage_of(g, pass, j);
    if (pass < 2) {
        return s > 0 ? hv__hop(g->in, s - 1, false) : g->in->hop_s;
    }
    return s + 1 < 2 * g->p ? hv__hop(g->in, s, true) : g->in->hop_s;
}

static void put(struct greedy *g, int pass, int32_t j)
{
    static const int mem[3] = {MEM_F, MEM_B, -1};
    struct stage *s = &g->stages[j];
    const double *up = upstream(g, pass, j);
    if (g->failed || s->n[pass] >= g->m || s->mem + mem[pass / 2] > s->limit || (up && *up < 0)) {
        g->failed = true;
        return;
    }
    double start = s->free_at;
    if (up && *up + hop_of(g, pass, j) > start) {
        start = *up + hop_of(g, pass, j);
    }
    if (s->n[0] > 0) {
        s->bubble += start - s->free_at;
    }
    s->free_at = start + cost_of(g, pass, j);
    s->mem += mem[pass / 2];
    *end_of(g, pass, j, s->n[pass]) = s->free_at;
    g->orders[(size_t)j * 6 * (size_t)g->m + (size_t)s->n_ops++] = (uint8_t)pass;
    if (pass / 2 == 1) {
        g->pending[(size_t)j * 2 * (size_t)g->m + (size_t)(s->n[2] + s->n[3])] = (int8_t)(pass % 2);
    }
    s->n[pass]++;
}

static bool has_w(const struct stage *s)
{
    return s->w_head < s->n[2] + s->n[3];
}

static void put_w(struct greedy *g, int32_t j)
{
    struct stage *s = &g->stages[j];
    if (!has_w(s)) {
        g->failed = true;
        return;
    }
    put(g, pass_of(2, g->pending[(size_t)j * 2 * (size_t)g->m + (size_t)s->w_head++]), j);
}

/* bubble that rank j may add: up to the largest bubble of any rank, or up to what the approved
 * maximum leaves it, where that is more */
static double budget(const struct greedy *g, int32_t j)
{
    double most = 0;
    for (int32_t k = 0; k < g->p; k++) {
        most = g->stages[k].bubble > most ? g->stages[k].bubble : most;
    }
    double more = g->approved_max - g->approved[j];
    return (more > most ? more : most) - g->stages[j].bubble;
}

/* fills the wait for the next op of a pass with W's, then places it */
static void put_filled(struct greedy *g, int pass, int32_t j, bool fill)
{
    struct stage *s = &g->stages[j];
    const double *up = upstream(g, pass, j);
    while (!g->failed && has_w(s) && up &&
           *up + hop_of(g, pass, j) >= s->free_at + cost_of(g, 4, j)) {
        put_w(g, j);
    }
    /* without an input, the reference reads the very last W: −1 until it is placed */
    double at = (up ? *up : *end_of(g, 5, g->p - 1, g->m - 1)) + hop_of(g, pass, j);
    if (has_w(s) && at - s->free_at > budget(g, j) && fill) {
        put_w(g, j);
    }
    put(g, pass, j);
}

static void warm_up(struct greedy *g)
{
    for (int32_t j = 0; j < g->p; j++) {
        put(g, 0, j);
    }
    for (int32_t j = g->p - 1; j >= 0; j--) {
        const double *up = upstream(g, 1, j);
        while (up && !g->failed && g->stages[j].mem + MEM_F * (2 + 2 * j) <= g->stages[j].limit &&
               g->stages[j].free_at + cost_of(g, 0, j) <= *up + hop_of(g, 1, j) &&
               g->stages[j].n[0] < g->m) {
            for (int32_t k = 0; k <= j; k++) {
                put(g, 0, k);
            }
        }
        put(g, 1, j);
    }
}

/* no rank may be behind the one before it */
static void even_out(struct greedy *g)
{
    int chunk = 0, idle = 0;
    for (int32_t j = 1; j < g->p && !g->failed; j++) {
        const struct stage *s = &g->stages[j], *prev = s - 1;
        while (!g->failed && (s->n[0] + s->n[1] < prev->n[0] + prev->n[1] ||
                              (s->n[1] <= prev->n[1] && prev->n[1] < g->m))) {
            idle++;
            for (int32_t k = g->p - 1; k >= j; k--) {
                if (g->stages[k].n[chunk] < g->m) {
                    put(g, chunk, k);
                    idle = 0;
                }
            }
            chunk = 1 - chunk;
            g->failed = g->failed || idle > 2;
        }
    }
}

static int next_backward(const struct greedy *g, int32_t j)
{
    const struct stage *s = &g->stages[j];
    if (s->n[3] >= s->n[2]) {
        return 2;
    }
    if (j == g->p - 1 || s->n[2] >= g->m) {
        return 3;
    }
    return *end_of(g, 3, j + 1, s->n[3]) >= 0 ? 3 : 2;
}

static void all_backwards(struct greedy *g, int *pick)
{
    for (int32_t j = 0; j < g->p; j++) {
        while (!g->failed && g->stages[j].mem + MEM_B > g->stages[j].limit) {
            put_w(g, j);
        }
        pick[j] = next_backward(g, j);
    }
    for (int32_t j = g->p - 1; j >= 0; j--) {
        if (pick[j] == 3) {
            put_filled(g, 3, j, true);
        }
    }
    for (int32_t j = 0; j < g->p; j++) {
        if (pick[j] == 2) {
            put_filled(g, 2, j, g->fill_b);
        }
    }
}

static int next_forward(const struct greedy *g, int32_t j)
{
    const struct stage *s = &g->stages[j];
    if (s->n[1] >= s->n[0]) {
        return 0;
    }
    if (j == g->p - 1 || *end_of(g, 1, j + 1, s->n[1]) >= 0) {
        return 1;
    }
    bool ready = s->n[0] < g->m && (j == 0 || *end_of(g, 0, j - 1, s->n[0]) >= 0);
    return ready ? 0 : -1;
}

static void all_forwards(struct greedy *g)
{
    for (int32_t j = 0; j < g->p && !g->failed; j++) {
        int pass = g->stages[j].n[1] >= g->m ? -1 : next_forward(g, j);
        if (pass < 0) {
            continue;
        }
        while (!g->failed && g->stages[j].mem + MEM_F > g->stages[j].limit) {
            put_w(g, j);
        }
        if (!g->failed) {
            put_filled(g, pass, j, g->fill_f);
        }
    }
}

/* one run; returns its largest bubble, −1 when it got stuck */
static double run(struct greedy *g, int *work)
{
    size_t cells = (size_t)g->p * (size_t)g->m;
    for (size_t i = 0; i < N_PASS * cells; i++) {
        g->end[i] = -1;
    }
    memset(g->stages, 0, (size_t)g->p * sizeof *g->stages);
    for (int32_t j = 0; j < g->p; j++) { /* p micro-batches of two chunks, as 1F1B */
        g->stages[j].limit = (int32_t)(2 * MEM_F * hv__limit(g->in, j, g->p));
    }
    g->failed = false;
    warm_up(g);
    even_out(g);
    for (int32_t i = 0; i < 2 * g->m && !g->failed; i++) {
        all_backwards(g, work);
        all_forwards(g);
    }
    double most = 0;
    for (int32_t j = 0; j < g->p; j++) {
        while (!g->failed && has_w(&g->stages[j])) {
            put_w(g, j);
        }
        g->failed = g->failed || g->stages[j].n_ops != 6 * g->m;
        most = g->stages[j].bubble > most ? g->stages[j].bubble : most;
    }
    return g->failed ? -1 : most;
}

/* a variant, repeated with its own bubbles approved while that makes the largest one smaller */
static void try_variant(struct greedy *g, int *work, double *best, uint8_t *best_orders)
{
    double last = -1;
    for (int32_t j = 0; j < g->p; j++) {
        g->approved[j] = -1;
    }
    g->approved_max = -1;
    for (;;) {
        double bubble = run(g, work);
        if (bubble < 0 || (last >= 0 && bubble >= HV__SHORTER * last)) {
            return;
        }
        last = bubble;
        g->approved_max = bubble;
        for (int32_t j = 0; j < g->p; j++) {
            g->approved[j] = g->stages[j].bubble;
        }
        if (*best < 0 || bubble < HV__SHORTER * *best) {
            *best = bubble;
            memcpy(best_orders, g->orders, 6 * (size_t)g->p * (size_t)g->m);
        }
    }
}

static void add_orders(const struct greedy *g, const uint8_t *orders, struct hv_schedule_builder *b)
{
    for (int32_t j = 0; j < g->p; j++) {
        int32_t n[N_PASS] = {0};
        const uint8_t *order = orders + (size_t)j * 6 * (size_t)g->m;
        for (int32_t k = 0; k < 6 * g->m; k++) {
            enum hv_op_kind kind = order[k] < 2 ? HV_OP_F : order[k] < 4 ? HV_OP_B : HV_OP_W;
            hv__add(b, kind, stage_of(g, order[k], j), n[order[k]]++);
        }
        hv__rank_done(b);
    }
}

enum hv_status hv__gen_zb_v_greedy(const struct hv_schedule_input *in,
                                   struct hv_schedule_builder *b, struct hv_err *err)
{
    size_t p = (size_t)in->ranks, cells = p * (size_t)in->micro_batches;
    struct greedy g = {.p = in->ranks, .m = in->micro_batches, .in = in};
    g.stages = hv_xcalloc(p, sizeof *g.stages);
    g.end = hv_xcalloc(N_PASS * cells, sizeof *g.end);
    g.pending = hv_xcalloc(2 * cells, 1);
    g.orders = hv_xcalloc(6 * cells, 1);
    g.approved = hv_xcalloc(p, sizeof *g.approved);
    uint8_t *best_orders = hv_xcalloc(6 * cells, 1);
    int *work = hv_xcalloc(p, sizeof *work);
    double best = -1;
    for (unsigned variant = 0; variant < 4; variant++) {
        g.fill_b = !(variant & 2u);
        g.fill_f = !(variant & 1u);
        try_variant(&g, work, &best, best_orders);
    }
    enum hv_status st = HV_OK;
    if (best < 0) {
        st = hv_err_set(err, HV_ENO,
                        "schedule zb-v, variant heuristic: found no order for p = %d, m = %d",
                        in->ranks, in->micro_batches);
    } else {
        add_orders(&g, best_orders, b);
    }
    free(g.stages);
    free(g.end);
    free(g.pending);
    free(g.orders);
    free(g.approved);
    free(best_orders);
    free(work);
    return st;
}
