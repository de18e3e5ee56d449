/*
 * Steady states: finds the part of every rank's order that repeats, and its period as the maximum
 * cycle ratio of the operations in one repetition.
 */
#include "solver/sim/pipeline/steady.h"

#include "solver/base/whole.h"
#include "solver/sim/cycle.h"
#include "solver/sim/pipeline/pipeline_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the repeating middle of an order
 * --------------------------------------------------------------------------------- */

/* the window of each rank that repeats: nodes [at, at + len) */
struct repeat {
    const struct hv_pipe *g;
    const struct hv_pipe_cost *c;
    int32_t d;    /* by how much micro-batches of the next window are higher */
    int32_t n_mb; /* how many a window runs: d of each flow where flows number their own */
    int32_t *at, *len;
    int32_t *id_at; /* [ranks + 1] node of the graph of circles */
    struct hv_arena a;
};

static bool same_op(const struct hv_op *x, const struct hv_op *y, int32_t d)
{
    return x->kind == y->kind && x->stage == y->stage && x->slice == y->slice &&
           x->pipe == y->pipe && x->mb + d == y->mb;
}

bool hv__same_node(const struct hv_pipe *g, int32_t x, const struct hv_pipe *h, int32_t y,
                   int32_t d)
{
    size_t i = hv_pipe_first_op(g, x), j = hv_pipe_first_op(h, y);
    size_t n = hv_pipe_first_op(g, x + 1) - i;
    bool same = hv_pipe_first_op(h, y + 1) - j == n;
    for (size_t k = 0; k < n && same; k++) {
        same = same_op(&g->s.ops[i + k], &h->s.ops[j + k], d);
    }
    return same;
}

/* forwards among the ops [from, to); 0 where there are not as many backwards, unless there are none
 * at all */
static size_t whole_forwards(const struct hv_pipe *g, size_t from, size_t to)
{
    size_t n[HV_OP_KIND_N] = {0};
    for (size_t i = from; i < to; i++) {
        n[g->s.ops[i].kind]++;
    }
    size_t back = n[HV_OP_B] + n[HV_OP_BW];
    bool serve = back == 0 && hv_schedule_n_ops(&g->s) == (size_t)g->s.n_stages *
                                                              (size_t)g->s.n_micro_batches *
                                                              (size_t)g->s.n_slices;
    return serve || (back == n[HV_OP_F] && n[HV_OP_W] == n[HV_OP_B]) ? n[HV_OP_F] : 0;
}

/* finds the window of rank r for steps of d micro-batches, from its node c on, which must repeat at
 * least once and until three quarters of the order are over: an order that was played by times
 * repeats itself by chance for a while; 0 = none, else how many micro-batches it runs */
static int32_t window_from(struct repeat *x, int32_t r, int32_t d, int32_t c)
{
    const struct hv_pipe *g = x->g;
    int32_t to = g->rank_node_at[r + 1], len = 1;
    while (c + len < to && !hv__same_node(g, c, g, c + len, d)) {
        len++;
    }
    if (c + 2 * len > to) {
        return 0;
    }
    int32_t from = g->rank_node_at[r], most = from + (to - from) / 4 * 3 - c - len;
    for (int32_t i = 1; i < (most > len ? most : len); i++) {
        if (!hv__same_node(g, c + i, g, c + len + i, d)) {
            return 0;
        }
    }
    size_t n_f = whole_forwards(g, hv_pipe_first_op(g, c), hv_pipe_first_op(g, c + len));
    size_t all_f = whole_forwards(g, g->s.rank_at[r], g->s.rank_at[r + 1]);
    size_t runs = n_f * (size_t)g->s.n_micro_batches;
    x->at[r] = c;
    x->len[r] = len;
    return all_f > 0 && runs % all_f == 0 ? (int32_t)(runs / all_f) : 0;
}

/* tries from the middle of the order, then from earlier positions down to a quarter of it */
static bool find_window(struct repeat *x, int32_t r, int32_t d)
{
    int32_t from = x->g->rank_node_at[r], n = x->g->rank_node_at[r + 1] - from;
    for (int32_t k = 6; k >= 3 && n > 0; k--) {
        int32_t runs = window_from(x, r, d, from + n / 12 * k);
        if (runs > 0 && (r == 0 || runs == x->n_mb)) {
            x->n_mb = runs;
            return true;
        }
    }
    return false;
}

static bool find_windows(struct repeat *x)
{
    for (x->d = 1; x->d <= x->g->s.n_micro_batches / 2; x->d++) {
        int32_t r = 0;
        while (r < x->g->s.n_ranks && find_window(x, r, x->d)) {
            r++;
        }
        if (r == x->g->s.n_ranks) {
            return true;
        }
    }
    return false;
}

/* position in the windows of the op of `other`, or of the equal op some periods away; *periods: how
 * many periods it is before its window. -1 = not found */
static int32_t class_of(const struct repeat *x, int32_t other, int32_t *periods)
{
    const struct hv_pipe *g = x->g;
    const struct hv_op *op = &g->s.ops[hv_pipe_first_op(g, other)];
    int32_t r = hv_schedule_rank_of(&g->s, hv_pipe_first_op(g, other));
    for (int32_t i = 0; i < x->len[r]; i++) {
        const struct hv_op *w = &g->s.ops[hv_pipe_first_op(g, x->at[r] + i)];
        int32_t apart = w->mb - op->mb;
        if (apart % x->d == 0 && same_op(w, op, -apart)) {
            *periods = apart / x->d;
            return x->id_at[r] + i;
        }
    }
    return -1;
}

/* all edges between the nodes of the windows */
static size_t window_edges(const struct repeat *x, struct hv_cycle_edge *out)
{
    const struct hv_pipe *g = x->g;
    size_t n = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        for (int32_t i = 0; i < x->len[r]; i++) {
            int32_t node = x->at[r] + i, id = x->id_at[r] + i;
            bool last = i + 1 == x->len[r];
            out[n++] = (struct hv_cycle_edge){.from = id,
                                              .to = last ? x->id_at[r] : id + 1,
                                              .tokens = last,
                                              .weight_s = hv_pipe_node_duration_s(g, x->c, node)};
            for (int32_t k = 0; k < hv_pipe_n_edges(g, node); k++) {
                struct hv_pipe_edge e = hv_pipe_edge_of(g, node, k);
                int32_t periods = 0, from = class_of(x, e.node, &periods);
                if (from >= 0) {
                    double w =
                        hv_pipe_node_duration_s(g, x->c, e.node) + hv_pipe_hop_s(x->c, e.hop);
                    out[n++] = (struct hv_cycle_edge){from, id, periods, w};
                }
            }
        }
    }
    return n;
}

/* true where rank r is busy during the whole period */
static bool is_always_busy(const struct repeat *x, int32_t r, double period_s)
{
    double busy = 0;
    for (int32_t i = x->at[r]; i < x->at[r] + x->len[r]; i++) {
        busy += hv_pipe_node_duration_s(x->g, x->c, i);
    }
    return busy >= period_s * (1 - 1e-12);
}

/* the ranks on the critical cycle; where several determine the period, reports a rank that is
 * always busy */
static void tell_ranks(const struct repeat *x, const struct hv_cycle_edge *edges,
                       const int32_t *path, size_t n_path, struct hv_steady *out)
{
    for (int32_t r = 0; r < x->g->s.n_ranks; r++) {
        if (is_always_busy(x, r, out->period_s)) {
            out->n_ranks = 1;
            out->rank = r;
            return;
        }
    }
    bool *on = hv_xcalloc((size_t)x->g->s.n_ranks, sizeof *on);
    out->rank = -1;
    for (size_t i = 0; i < n_path; i++) {
        int32_t r = 0;
        while (edges[path[i]].from >= x->id_at[r + 1]) {
            r++;
        }
        out->n_ranks += !on[r];
        on[r] = true;
        out->rank = out->rank < 0 || r < out->rank ? r : out->rank;
    }
    free(on);
}

static enum hv_status measure(struct repeat *x, struct hv_steady *out, struct hv_err *err)
{
    const struct hv_pipe *g = x->g;
    size_t most = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        x->id_at[r + 1] = x->id_at[r] + x->len[r];
        for (int32_t i = x->at[r]; i < x->at[r] + x->len[r]; i++) {
            most += 1 + (size_t)hv_pipe_n_edges(g, i);
        }
    }
    struct hv_cycle_edge *edges = hv_arena_new(&x->a, struct hv_cycle_edge, most + 1);
    size_t n = window_edges(x, edges), n_path = 0;
    const int32_t *path = NULL;
    enum hv_status st = hv_cycle_ratio(&x->a, edges, n, x->id_at[g->s.n_ranks], &out->period_s,
                                       &path, &n_path, err);
    if (st == HV_OK) {
        out->micro_batches = x->n_mb;
        out->per_micro_batch_s = out->period_s / x->n_mb;
        tell_ranks(x, edges, path, n_path, out);
    }
    return st;
}

enum hv_status hv_pipe_steady(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                              struct hv_steady *out, struct hv_err *err)
{
    struct repeat x = {.g = g, .c = c};
    size_t p = (size_t)g->s.n_ranks;
    *out = (struct hv_steady){0};
    if (c->op_s || c->mb_scale || c->hop_scale) {
        return hv_err_set(err, HV_ENO, "micro-batches of different lengths have no steady state");
    }
    x.at = hv_arena_new(&x.a, int32_t, p);
    x.len = hv_arena_new(&x.a, int32_t, p);
    x.id_at = hv_arena_new(&x.a, int32_t, p + 1);
    enum hv_status st = HV_OK;
    if (find_windows(&x)) {
        st = measure(&x, out, err);
    } else {
        st = hv_err_set(err, HV_ENO,
                        "the middle of the order does not repeat with m = %d; a steady state shows "
                        "with several times as many micro-batches as ranks, if there is one",
                        g->s.n_micro_batches);
    }
    hv_arena_free(&x.a);
    return st;
}
