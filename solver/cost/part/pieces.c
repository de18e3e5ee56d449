/*
 * Pieces of a measured layer whose number follows from the plan: its experts, by the tokens of the
 * busiest rank, and attention in blocks of a ring of ranks. Between ranks of a group they exchange
 * what the layer says of a token. Backward passes take what the layer gives; else experts twice as
 * long (a product for each of two gradients), and attention as long as kernels that compute the
 * scores again.
 */
#include <math.h>

#include "solver/cost/device/efficiency.h"
#include "solver/cost/part/part_int.h"
#include "solver/workload/router.h"

/* Backward passes of experts per forward pass. */
#define EXPERTS_BACKWARD 2.0

/* The piece on the column's device, its backward pass at `backward` times the forward one where it
 * is not given. */
static struct hv_both_ways piece_of(const struct hv_model *m, const struct hv_both_ways *list,
                                    const struct hv__column *c, double backward)
{
    struct hv_both_ways x = {0, 0};
    if (list == NULL) {
        return x;
    }
    x = list[m->n_devices];
    if (!hv_known(x.forward_s)) {
        x = list[c->at];
        x.forward_s *= c->measured_on ? c->factor : HV_UNKNOWN;
        x.backward_s *= c->factor;
    }
    x.backward_s = hv_or(x.backward_s, backward * x.forward_s);
    return x;
}

/* Experts of a layer: its own number, else that of the recorded routing, else one per rank. */
static int experts_of(const struct hv__ask *a, const struct hv_measured_pieces *p)
{
    const struct hv_router *r = a->k->job.routing;
    bool recorded = r && r->kind == HV_ROUTER_TRACE && r->experts > 0;
    return p->experts > 0 ? p->experts : recorded ? (int)r->experts : a->q->ep;
}

/* Seconds of the experts on one of n chunks. */
static double chunk_s(double fixed_s, double token_s, double tokens, int n)
{
    return fixed_s + token_s * tokens / n;
}

static void add_experts(const struct hv__ask *a, const struct hv_measured_layer *l,
                        const struct hv__column *c, struct hv__pieces_of *out)
{
    const struct hv_measured_pieces *p = &l->pieces;
    const struct hv_part_query *q = a->q;
    const struct hv_moe_knobs *knobs = q->moe;
    struct hv__exchange *x = &out->x;
    const struct hv_block b = {.experts = experts_of(a, p), .top_k = p->top_k};
    double whole = q->expert_tp > 0 ? (double)q->tp / q->expert_tp : 1;
    double tokens = q->sequences * q->tokens / q->cp / whole, rows = tokens * p->top_k;
    struct hv__dispatched d = hv__dispatched_of(a, &b, rows, &out->load);
    struct hv_both_ways fixed = piece_of(a->k->model, p->expert_fixed, c, EXPERTS_BACKWARD);
    struct hv_both_ways token = piece_of(a->k->model, p->expert_token, c, EXPERTS_BACKWARD);
    double busiest = rows * d.computed / d.shards;
    double there = rows * d.in_chunks[0] / d.shards, back = rows * d.in_chunks[1] / d.shards;
    fixed.forward_s *= a->rates->starts;
    fixed.backward_s *= a->rates->starts;
    x->load = d.routed ? &out->load : NULL;
    x->ep_bytes = rows * p->dispatch_bytes * d.sent;
    x->ep_own = rows * p->dispatch_bytes * d.own;
    x->ep_arrived = rows * p->dispatch_bytes * d.arrived;
    x->ep_copies = p->top_k * d.shards;
    x->ep_chunks_forward = knobs && knobs->degree_forward > 1 ? knobs->degree_forward : 1;
    x->ep_chunks_backward = knobs && knobs->degree_backward > 1 ? knobs->degree_backward : 1;
    int n = q->ep > 1 ? x->ep_chunks_forward : 1, n_back = q->ep > 1 ? x->ep_chunks_backward : 1;
    x->ep_hidden_forward_s = chunk_s(fixed.forward_s, token.forward_s, n > 1 ? there : busiest, n);
    x->ep_hidden_backward_s =
        chunk_s(fixed.backward_s, token.backward_s, n_back > 1 ? back : busiest, n_back);
    out->dropped_frac = 1 - d.kept_frac;
    out->forward_s += n * x->ep_hidden_forward_s;
    out->backward_s += n_back * x->ep_hidden_backward_s;
    hv_why_add(a->why, "experts", n * x->ep_hidden_forward_s, "s",
               "%d chunk%s of %.4g s each and %.4g s per row, %.6g rows on the busiest rank, %.3g "
               "times the mean; backward %.4g s",
               n, n > 1 ? "s" : "", fixed.forward_s, token.forward_s, busiest,
               d.computed / d.shards, n_back * x->ep_hidden_backward_s);
}

/* A step of the ring per rank; one alone has one block. */
static void add_attention(const struct hv__ask *a, const struct hv_measured_layer *l,
                          const struct hv__column *c, struct hv__pieces_of *out)
{
    const struct hv_part_query *q = a->q;
    const struct hv_measured_pieces *p = &l->pieces;
    struct hv_both_ways t = piece_of(a->k->model, p->attention_block, c, HV_FLASH_BACKWARD);
    struct hv__cp_shape s = hv__cp_shape_of(q);
    double forward_s = q->sequences * t.forward_s, backward_s = q->sequences * t.backward_s;
    double elem = hv_job_activation_bytes(&a->k->job);
    double all = l->output_bytes * q->sequences / q->cp / elem;
    double kv =
        hv_known(p->kv_bytes) ? p->kv_bytes * q->sequences * q->tokens / q->cp / elem : 2 * all;
    out->forward_s += s.ring * forward_s;
    out->backward_s += s.ring * backward_s;
    out->x.ring_forward_s = (struct hv__ring_steps){s.ring, forward_s, forward_s};
    out->x.ring_backward_s = (struct hv__ring_steps){s.ring, backward_s, backward_s};
    out->x.cp = (struct hv__cp_values){
        .queries = all, .keys = kv, .outputs = all, .activations = all, .elem = elem};
    out->buffers_bytes = hv__cp_buffers_bytes(q, &out->x.cp);
    hv_why_add(a->why, "attention", s.ring * forward_s, "s",
               "%d block%s of %.4g s; backward %.4g s each", s.ring, s.ring > 1 ? "s" : "",
               forward_s, backward_s);
}

void hv__add_pieces(const struct hv__ask *a, const struct hv_measured_layer *l,
                    const struct hv__column *c, struct hv__pieces_of *out)
{
    if (l->pieces.expert_fixed || l->pieces.expert_token) {
        add_experts(a, l, c, out);
    }
    if (l->pieces.attention_block) {
        add_attention(a, l, c, out);
    }
    if (l->forward_only) {
        out->backward_s = 0;
        out->x.forward_only = true;
    }
}
