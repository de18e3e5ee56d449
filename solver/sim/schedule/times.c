/* Times of operations while an order is played: when their inputs are there, how long they take. */
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>

/* lists the stages before each stage, and those behind it */
static void fill_near(struct hv_arena *a, struct hv__times *t)
{
    const struct hv_stage_graph *g = &t->s->graph;
    for (int back = 0; back < 2; back++) {
        const int32_t *by = back ? g->from : g->to, *other = back ? g->to : g->from;
        int32_t *at = hv_arena_new(a, int32_t, (size_t)t->s->n_stages + 2);
        t->near[back] = hv_arena_new(a, int32_t, (size_t)g->n_edges + 1);
        for (int32_t e = 0; e < g->n_edges; e++) {
            at[by[e] + 2]++;
        }
        for (int32_t i = 2; i < t->s->n_stages + 2; i++) {
            at[i] += at[i - 1];
        }
        for (int32_t e = 0; e < g->n_edges; e++) {
            t->near[back][at[by[e] + 1]++] = other[e];
        }
        t->near_at[back] = at;
    }
}

void hv__times_begin(struct hv_arena *a, const struct hv_schedule_input *in,
                     const struct hv_schedule *s, struct hv__times *out)
{
    size_t slots = (size_t)s->n_stages * (size_t)s->n_micro_batches * (size_t)s->n_slices;
    *out = (struct hv__times){.in = in, .s = s};
    fill_near(a, out);
    out->end[0] = hv_arena_new(a, double, 2 * slots + 1);
    out->end[1] = out->end[0] + slots;
    for (size_t i = 0; i < 2 * slots; i++) {
        out->end[0][i] = HUGE_VAL;
    }
}

static bool is_backward(const struct hv_op *op)
{
    return op->kind == HV_OP_B || op->kind == HV_OP_BW;
}

static double *end_of(const struct hv__times *t, bool back, int32_t stage, const struct hv_op *op)
{
    size_t q = op->slice > 0 ? (size_t)op->slice : 0;
    size_t mb = (size_t)stage * (size_t)t->s->n_micro_batches + (size_t)op->mb;
    return &t->end[back][mb * (size_t)t->s->n_slices + q];
}

static int32_t rank_of(const struct hv_schedule *s, int32_t pipe, int32_t stage)
{
    return s->stage_to_rank[(size_t)pipe * (size_t)s->n_stages + (size_t)stage];
}

double hv__op_ready(const struct hv__times *t, const struct hv_op *op)
{
    const struct hv_schedule *s = t->s;
    bool back = is_backward(op) || (op->kind == HV_OP_R && s->recompute_waits);
    double at = 0;
    if (!back && op->kind != HV_OP_F) {
        return 0;
    }
    for (int32_t k = t->near_at[back][op->stage]; k < t->near_at[back][op->stage + 1]; k++) {
        int32_t other = t->near[back][k], low = other < op->stage ? other : op->stage;
        bool apart = rank_of(s, op->pipe, other) != rank_of(s, op->pipe, op->stage);
        bool next = other - low == 1 || op->stage - low == 1;
        double hop = !apart ? 0 : next ? hv__hop(t->in, low, back) : t->in->hop_s;
        at = fmax(at, *end_of(t, back, other, op) + hop);
    }
    return at;
}

double hv__op_takes(const struct hv__times *t, const struct hv_op *op)
{
    struct hv_stage_cost c = hv__cost(t->in, op->stage);
    const double s[HV_OP_KIND_N] = {[HV_OP_F] = c.f_s,
                                    [HV_OP_B] = c.b_s,
                                    [HV_OP_W] = c.w_s,
                                    [HV_OP_BW] = c.b_s + c.w_s,
                                    [HV_OP_R] = c.f_s};
    return s[op->kind] * hv_op_share(t->s, op);
}

bool hv__op_ended(const struct hv__times *t, const struct hv_op *op, double at)
{
    bool counts = op->kind == HV_OP_F || is_backward(op);
    if (counts) {
        *end_of(t, op->kind != HV_OP_F, op->stage, op) = at;
    }
    return counts;
}
