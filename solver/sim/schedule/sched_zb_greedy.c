/*
 * Zero-bubble heuristics that decide by cost under a memory limit: ZB-1p, ZB-1.5p, ZB-2p (Zero
 * Bubble Pipeline Parallelism, ICLR'24, section 3.1). Eight variants are tried, the one with the
 * shortest longest span of a rank wins, the first of equals; a variant stops as soon as it cannot
 * win. O(8·p·m) at most; one variant where its slowest rank never waits.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>
#include <string.h>

/* memory of one stage in halves of an activation: F takes two, B and W give one back each */
enum { MEM_F = 2, MEM_B = -1, MEM_W = -1 };

/* one rank while the order grows */
struct stage {
    int32_t n[3]; /* F, B, W placed */
    int32_t n_ops;
    double cost[3];
    double free_at, bubble;
    double work;             /* all operations of the rank: its span is work + bubble */
    double mem, limit;       /* halves of an activation: held, and allowed */
    double hop_in, hop_back; /* to wait for a forward, for a backward */
};

struct greedy {
    int32_t p, m;
    double own_limit; /* activations a rank may hold by the schedule's name */
    double to_beat;   /* the span of the best variant so far */
    bool bubble_before_b, prioritize_b, greedy_w; /* the variant */
    bool failed;
    struct stage *stages;
    double *end[2];  /* [p × m] end of every F and B */
    uint8_t *orders; /* [p × 3m] kinds in order */
};

static double *end_of(struct greedy *g, int kind, int32_t j, int32_t i)
{
    return &g->end[kind][(size_t)j * (size_t)g->m + (size_t)i];
}

/* when the next op of this kind can start as far as other ranks are concerned; 0 = at once */
static double arrival(struct greedy *g, int32_t j, int kind)
{
    int32_t i = g->stages[j].n[kind];
    if (kind == HV_OP_F && j > 0) {
        return *end_of(g, kind, j - 1, i) + g->stages[j].hop_in;
    }
    if (kind == HV_OP_B && j + 1 < g->p) {
        return *end_of(g, kind, j + 1, i) + g->stages[j].hop_back;
    }
    return 0;
}

static void put(struct greedy *g, int32_t j, int kind)
{
    static const int mem[3] = {MEM_F, MEM_B, MEM_W};
    struct stage *s = &g->stages[j];
    double start = arrival(g, j, kind);
    start = start > s->free_at ? start : s->free_at;
    if (s->n[HV_OP_F] > 0) {
        s->bubble += start - s->free_at;
        g->failed = g->failed || s->work + s->bubble >= g->to_beat;
    }
    s->free_at = start + s->cost[kind];
    s->mem += mem[kind];
    if (kind != HV_OP_W) {
        *end_of(g, kind, j, s->n[kind]) = s->free_at;
    }
    g->orders[(size_t)j * 3 * (size_t)g->m + (size_t)s->n_ops++] = (uint8_t)kind;
    s->n[kind]++;
}

static bool has_w(const struct stage *s)
{
    return s->n[HV_OP_W] < s->n[HV_OP_B];
}

static double largest_bubble(const struct greedy *g)
{
    double most = 0;
    for (int32_t j = 0; j < g->p; j++) {
        most = g->stages[j].bubble > most ? g->stages[j].bubble : most;
    }
    return most;
}

/* how many forwards each rank runs before the first backward comes back */
static void plan_warmup(struct greedy *g, int32_t *extra)
{
    double last = 0;
    for (int32_t j = g->p - 1; j >= 0; j--) {
        const struct stage *s = &g->stages[j];
        double at = s->free_at, mem = s->mem;
        extra[j] = 0;
        if (j == g->p - 1) {
            last = at + s->cost[HV_OP_B];
            continue;
        }
        while (1 + extra[j] < g->m && mem + MEM_F <= s->limit) {
            double limit = last + s->hop_back;
            if (g->bubble_before_b ? at + s->cost[HV_OP_F] > limit : at >= limit) {
                break;
            }
            mem += MEM_F;
            at += s->cost[HV_OP_F];
            extra[j]++;
        }
        last = (at > last + s->hop_back ? at : last + s->hop_back) + s->cost[HV_OP_B];
    }
    for (int32_t j = 1; j < g->p; j++) {
        /* none ahead of the rank before it, which feeds it; all at the end together is fine */
        while (extra[j] > 0 && extra[j] >= extra[j - 1] &&
               (1 + extra[j] < g->m || extra[j] > extra[j - 1])) {
            extra[j]--;
        }
    }
}

static void warm_up(struct greedy *g, int32_t *work)
{
    for (int32_t j = 0; j < g->p; j++) {
        put(g, j, HV_OP_F);
    }
    plan_warmup(g, work);
    for (int32_t j = 0; j < g->p; j++) {
        for (int32_t k = 0; k < work[j]; k++) {
            put(g, j, HV_OP_F);
        }
    }
    for (int32_t j = g->p - 1; j >= 0; j--) {
        put(g, j, HV_OP_B);
    }
}

/* true where rank j should delay its next forward so that its next backward is not delayed */
static bool waits_with_forward(const struct greedy *g, int32_t j)
{
    const struct stage *s = &g->stages[j], *next = s + 1;
    if (!g->prioritize_b || j + 1 >= g->p || s->n[HV_OP_F] < next->n[HV_OP_F] + 2) {
        return false;
    }
    double back_at = next->free_at + next->cost[HV_OP_F] + next->cost[HV_OP_B] + s->hop_back;
    if (s->free_at >= back_at) {
        return true;
    }
    double mem = s->mem + MEM_F, w_cost = 0;
    for (int32_t w = s->n[HV_OP_W]; mem > s->limit && w < s->n[HV_OP_B]; w++) {
        w_cost += s->cost[HV_OP_W];
        mem += MEM_W;
    }
    if (s->free_at + s->cost[HV_OP_F] + w_cost <= back_at) {
        return false;
    }
    return back_at - s->free_at <= largest_bubble(g) - s->bubble;
}

/* makes room for an op of `mem`, fills the wait for it with W's, then places it */
static void put_filled(struct greedy *g, int32_t j, int kind, int mem)
{
    struct stage *s = &g->stages[j];
    while (s->mem + mem > s->limit) {
        if (!has_w(s)) {
            g->failed = true;
            return;
        }
        put(g, j, HV_OP_W);
    }
    if (kind == HV_OP_F ? j > 0 : j + 1 < g->p) {
        double at = arrival(g, j, kind);
        while (has_w(s) && s->free_at + s->cost[HV_OP_W] <= at) {
            put(g, j, HV_OP_W);
        }
        if (has_w(s) && s->free_at < at &&
            (g->greedy_w || at - s->free_at > largest_bubble(g) - s->bubble)) {
            put(g, j, HV_OP_W);
        }
    }
    if (kind == HV_OP_B && j == 0 && s->n[HV_OP_F] == g->m) {
        while (has_w(s)) {
            put(g, j, HV_OP_W);
        }
    }
    put(g, j, kind);
}

/* one round: a forward where it is wanted, then one backward everywhere */
static void one_round(struct greedy *g, int32_t *wanted)
{
    for (int32_t j = 0; j < g->p; j++) {
        wanted[j] = g->stages[j].n[HV_OP_F] < g->m && !waits_with_forward(g, j);
    }
    for (int32_t j = g->p - 2; j >= 0; j--) {
        wanted[j] = wanted[j] && wanted[j + 1];
    }
    for (int32_t j = 0; j < g->p && !g->failed; j++) {
        if (wanted[j]) {
            put_filled(g, j, HV_OP_F, MEM_F);
        }
    }
    for (int32_t j = g->p - 1; j >= 0 && !g->failed; j--) {
        put_filled(g, j, HV_OP_B, MEM_B);
    }
}

/* runs one variant; returns its longest span, or -1 when the memory does not suffice or another
 * variant is as good */
static double run_variant(struct greedy *g, const struct hv_schedule_input *in, unsigned variant,
                          int32_t *work)
{
    g->bubble_before_b = !(variant & 4u);
    g->prioritize_b = !(variant & 2u);
    g->greedy_w = !(variant & 1u);
    g->failed = false;
    for (int32_t j = 0; j < g->p; j++) {
        struct hv_stage_cost c = hv__cost(in, j);
        g->stages[j] = (struct stage){.cost = {c.f_s, c.b_s, c.w_s},
                                      .work = g->m * (c.f_s + c.b_s + c.w_s),
                                      .limit = floor(2 * hv__limit(in, j, g->own_limit)),
                                      .hop_in = j > 0 ? hv__hop(in, j - 1, false) : 0,
                                      .hop_back = j + 1 < g->p ? hv__hop(in, j, true) : 0};
    }
    warm_up(g, work);
    for (int32_t i = 1; i < g->m && !g->failed; i++) {
        one_round(g, work);
    }
    double span = 0;
    for (int32_t j = 0; j < g->p; j++) {
        while (!g->failed && has_w(&g->stages[j])) {
            put(g, j, HV_OP_W);
        }
        double first = *end_of(g, HV_OP_F, j, 0) - g->stages[j].cost[HV_OP_F];
        double len = g->stages[j].free_at - first;
        span = len > span ? len : span;
    }
    return g->failed ? -1 : span;
}

static void add_orders(const struct greedy *g, const uint8_t *orders, struct hv_schedule_builder *b)
{
    for (int32_t j = 0; j < g->p; j++) {
        int32_t n[3] = {0};
        const uint8_t *order = orders + (size_t)j * 3 * (size_t)g->m;
        for (int32_t k = 0; k < 3 * g->m; k++) {
            hv__add(b, (enum hv_op_kind)order[k], j, n[order[k]]++);
        }
        hv__rank_done(b);
    }
}

/* `own_limit`: activations that a rank may hold by the schedule's name */
static enum hv_status generate(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               double own_limit, struct hv_err *err)
{
    size_t cells = (size_t)in->ranks * (size_t)in->micro_batches;
    struct greedy g = {
        .p = in->ranks, .m = in->micro_batches, .own_limit = own_limit, .to_beat = HUGE_VAL};
    g.stages = hv_xcalloc((size_t)g.p, sizeof *g.stages);
    g.end[0] = hv_xcalloc(2 * cells, sizeof *g.end[0]);
    g.end[1] = g.end[0] + cells;
    g.orders = hv_xcalloc(cells, 3);
    uint8_t *best = hv_xcalloc(cells, 3);
    int32_t *work = hv_xcalloc((size_t)g.p, sizeof *work);
    double best_span = -1;
    for (unsigned variant = 0; variant < 8; variant++) {
        double span = run_variant(&g, in, variant, work);
        if (span >= 0 && (best_span < 0 || span < HV__SHORTER * best_span)) {
            best_span = span;
            g.to_beat = HV__SHORTER * span;
            memcpy(best, g.orders, cells * 3);
        }
    }
    enum hv_status st = HV_OK;
    if (best_span < 0) {
        st = hv_err_set(err, HV_ENO, "schedule %s: no order keeps within its memory limit",
                        in->row->name);
    } else {
        add_orders(&g, best, b);
    }
    free(g.stages);
    free(g.end[0]);
    free(g.orders);
    free(best);
    free(work);
    return st;
}

enum hv_status hv__gen_zb_1p(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    return generate(in, b, in->ranks, err);
}

enum hv_status hv__gen_zb_15p(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    return generate(in, b, 1.5 * in->ranks, err);
}

enum hv_status hv__gen_zb_2p(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    return generate(in, b, 2.0 * in->ranks, err);
}
