/*
 * Feed-forward products and experts of a part: rows, widths, kept bytes and parameters of the
 * busiest expert-parallel rank, and the bytes of its all-to-alls. Their time and overlap are in
 * exchange.c.
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

void hv__add_ffn(struct hv__sum *s, const struct hv_block *b, const struct hv__ffn *x)
{
    double g = hv_ffn_kind_matrices(b->ffn_kind), h = s->m->hidden, f = x->width, rows = x->rows;
    bool experts = x->groups > 0;
    unsigned up = experts ? HV_RC_EXPERTS : HV_RC_UP, down = experts ? HV_RC_EXPERTS : HV_RC_DOWN;
    unsigned act = experts ? HV_RC_EXPERTS : HV_RC_ACT;
    double groups = experts ? x->groups : 1;
    hv__add_product(s, &(struct hv__product){experts ? "experts up gemm" : "up gemm", up, rows,
                                             (g - 1) * f, h, groups, HV__CUT_COLUMNS});
    hv__add_stream(s, &(struct hv__stream){experts ? "experts activation" : "activation", act,
                                           s->elem * rows * g * f, g > 2 ? 5.0 / 3 : 1.5});
    hv__add_product(s, &(struct hv__product){experts ? "experts down gemm" : "down gemm", down,
                                             rows, h, f, groups, HV__CUT_ROWS});
    hv__keep(s, s->elem * rows * (g - 1) * f, up);
    hv__keep(s, s->elem * rows * f, act);
    s->weight_only_bytes += s->elem * rows * g * f;
}

/* Seconds of the experts on one of `n` chunks of their tokens: forward, backward, recompute. */
struct chunk {
    double forward_s, input_grad_s, weight_grad_s, recompute_s;
};

static struct chunk chunk_of(const struct hv__sum *s, const struct hv_block *b,
                             const struct hv__ffn *whole, int n)
{
    struct hv__ask quiet = *s->a;
    struct hv__ffn part = *whole;
    struct hv__sum probe = *s;
    quiet.why = NULL;
    probe.a = &quiet;
    probe.out = (struct hv_part_cost){0};
    part.rows /= n;
    hv__add_ffn(&probe, b, &part);
    return (struct chunk){probe.out.forward_s, probe.out.input_grad_s, probe.out.weight_grad_s,
                          probe.out.recompute_s};
}

/* Exchanges cut into chunks run beside experts that see fewer tokens at a time. */
static void cut_into_chunks(struct hv__sum *s, const struct hv_block *b, const struct hv__ffn *f)
{
    const struct hv_moe_knobs *m = s->q->moe;
    int forward = m && m->degree_forward > 1 ? m->degree_forward : 1;
    int backward = m && m->degree_backward > 1 ? m->degree_backward : 1;
    s->x.ep_chunks_forward = forward;
    s->x.ep_chunks_backward = backward;
    if (s->q->ep < 2 || (forward < 2 && backward < 2)) {
        return;
    }
    struct chunk whole = chunk_of(s, b, f, 1), x = chunk_of(s, b, f, forward);
    struct chunk y = chunk_of(s, b, f, backward);
    double more_s = forward * x.forward_s - whole.forward_s;
    s->out.forward_s += more_s;
    s->out.recompute_s += forward * x.recompute_s - whole.recompute_s;
    s->out.input_grad_s += backward * y.input_grad_s - whole.input_grad_s;
    s->out.weight_grad_s += backward * y.weight_grad_s - whole.weight_grad_s;
    s->x.ep_hidden_forward_s = x.forward_s;
    s->x.ep_hidden_backward_s = y.input_grad_s + y.weight_grad_s;
    hv_why_add(s->a->why, "experts in chunks", more_s, "s",
               "%d chunks forward, %d backward: thinner products and more of them", forward,
               backward);
}

static void add_routed(struct hv__sum *s, const struct hv_block *b)
{
    const struct hv_moe_knobs *m = s->q->moe;
    int shards = m && m->expert_shards > 1 ? m->expert_shards : 1;
    struct hv__spread spread = hv__spread_of(m, b->experts, s->q->ep);
    double h = s->m->hidden, k = b->top_k, whole = 1;
    if (s->t_experts < s->t) {
        whole = s->q->tp / s->depth / s->t_experts;
    }
    double rows = s->rows / whole * k; /* each rank that holds whole experts sends its share */
    double copies = s->elem * s->rows * k * h / fmax(s->t_norm, whole);
    double capacity = hv__capacity_of(m, rows / b->experts), pad = capacity > 0 ? capacity : 1;
    bool routed = hv__load_of(s->a, b, rows, &s->load);
    if (routed) { /* places, shards and copies are in its figures */
        spread.work = s->load.work / shards / pad;
        spread.traffic = 1 / (pad * shards);
        s->x.load = &s->load;
    }
    double flops = s->out.flops_forward;
    hv__add_stream(s, &(struct hv__stream){"dispatch and combine", HV_RC_EXPERTS,
                                           4 * copies * shards * spread.work, 1});
    struct hv__ffn f = {hv__cut(s, b->expert_ffn / s->t_experts, shards),
                        rows * shards * pad * spread.work, spread.held};
    hv__add_ffn(s, b, &f);
    cut_into_chunks(s, b, &f);
    hv__keep(s, 2 * copies * shards * spread.work, HV_RC_EXPERTS);
    s->weight_only_bytes += 2 * copies * shards * spread.work;
    double all = (s->out.flops_forward - flops) / (pad * spread.work);
    s->out.flops_forward = flops + all * (capacity > 0 ? fmin(capacity, 1) : 1);
    s->out.expert_parameters =
        hv_block_expert_parameters(s->m, b) * spread.held / shards / b->experts / s->t_experts;
    s->x.ep_bytes = copies * pad * shards * spread.traffic;
    s->x.ep_copies = k * shards;
    if (spread.work > 1) {
        hv_why_add(s->a->why, "busiest experts", s->x.ep_bytes, "bytes",
                   "%.3g times the mean of its tokens and %.0f experts on the busiest rank, for "
                   "which all ranks wait",
                   spread.work, spread.held);
    }
}

void hv__add_experts(struct hv__sum *s, const struct hv_block *b)
{
    double h = s->m->hidden, r = s->rows, routed = s->x.grid.side > 1 ? r : r / s->t_norm;
    hv__add_product(s, &(struct hv__product){"router gemm", HV_RC_EXPERTS, routed, b->experts, h, 1,
                                             HV__CUT_NONE});
    add_routed(s, b);
    if (b->shared_experts) {
        hv__add_ffn(
            s, b,
            &(struct hv__ffn){hv__cut(s, (double)b->shared_experts * b->shared_ffn, s->t), r, 0});
    }
    double local = ceil((double)b->experts / (s->q->ep > 1 ? s->q->ep : 1));
    /* routing decides on the host how many rows each product gets, and the device waits for it */
    double host_s = s->e.calibration->v[HV_CAL_EXPERT_US] * HV_US;
    double least_s = host_s * (1 + 1 / HV_EFF_EXPERTS_A_HOST); /* of one expert */
    hv__count_start(s, least_s, least_s, 0);
    host_s *= s->a->rates->starts;
    host_s *= 1 + local / HV_EFF_EXPERTS_A_HOST; /* and starts products for each of its experts */
    s->out.forward_s += host_s;
    s->out.input_grad_s += host_s;
    hv_why_add(s->a->why, "expert host work", host_s, "s", "per layer of experts, each way (%s)",
               s->e.calibration->source);
    s->x.ep_again = (s->q->recompute & HV_RC_EXPERTS) != 0;
}
