/*
 * Exposed exchanges of a part between the ranks of its group: tensor-parallel reductions and
 * all-to-alls of experts; those of grids are in summa.c, those of context parallelism in ring.c.
 * Volumes: cost model of Korthikanti et al. 2022 (tensor).
 */
#include <math.h>
#include <stdio.h>

#include "solver/cost/network/matrix.h"
#include "solver/cost/part/part_int.h"

/* The slowest of the tensor-parallel groups, one per context rank. */
static struct hv__span tp_call(const struct hv__ask *a, enum hv_collective op, double bytes)
{
    const struct hv_part_query *q = a->q;
    double together = q->beside.tp > 0 ? q->beside.tp : 1;
    struct hv__call c = {
        .op = op, .bytes = bytes, .members = q->group, .n = q->tp, .together = together};
    struct hv__span worst = hv__call_span(a, &c);
    for (int i = 1; q->group && i < q->cp; i++) {
        c.members = q->group + (size_t)i * (size_t)q->tp;
        struct hv__span other = hv__call_span(a, &c);
        worst = other.time_s > worst.time_s ? other : worst;
    }
    return worst;
}

/* Share of a sequence-parallel exchange that runs beside the products it feeds. */
static double hidden_frac(const struct hv_part_query *q)
{
    return q->sequence_parallel ? hv_device_calibration(q->device)->v[HV_CAL_TP_HIDDEN] : 0;
}

/* Values that a rank sends in its all-reduces, each of two passes over its share of the tensor. */
static void note_tp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    const struct hv_part_query *q = a->q;
    double once = 2.0 * (q->tp - 1) / q->tp * x->tp_bytes / hv_job_activation_bytes(&a->k->job);
    struct hv_sent sent = {once * x->tp_forward, once * x->tp_backward};
    bool block = a->part == HV_PART_ATTENTION || a->part == HV_PART_FFN;
    *(block ? &out->sent.tp : &out->sent.vocabulary) = sent;
}

/* Slices of the experts' tokens, one per rank: gathered at the experts, whose sums are scattered
 * into slices again, and gathered once more where the tokens are from. Backward the same the other
 * way; with sequence parallelism tokens stay in slices at their source, and those at the experts
 * are gathered again for the gradients of weights. */
static void add_slices(const struct hv__ask *a, const struct hv__exchange *x,
                       struct hv_part_cost *out)
{
    const struct hv_part_query *q = a->q;
    bool stay = q->sequence_parallel;
    struct hv__span gather = tp_call(a, HV_ALL_GATHER, x->slices_at_experts);
    struct hv__span sum = tp_call(a, HV_REDUCE_SCATTER, x->slices_at_experts);
    struct hv__span back =
        stay ? (struct hv__span){0, 0} : tp_call(a, HV_ALL_GATHER, x->slices_at_source);
    struct hv__span forward = hv__span_sum(hv__span_sum(gather, sum), back), backward = forward;
    double calls = stay ? 2 : 3, calls_back = 3, again = x->ep_again ? 1 : 0;
    double sent = 2 * x->slices_at_experts + (stay ? 0 : x->slices_at_source);
    double sent_back = sent + (stay ? x->slices_at_experts : 0), tp = q->tp;
    backward = stay ? hv__span_sum(backward, gather) : backward;
    sent *= (tp - 1) / tp / hv_job_activation_bytes(&a->k->job);
    sent_back *= (tp - 1) / tp / hv_job_activation_bytes(&a->k->job);
    out->tp_forward_s += forward.time_s + calls * hv__wait_s(q);
    out->tp_backward_s += backward.time_s + calls_back * hv__wait_s(q) +
                          again * (forward.time_s + calls * hv__wait_s(q));
    out->tp_wire_forward_s += forward.time_s;
    out->tp_wire_backward_s += backward.time_s + again * forward.time_s;
    out->tp_latency_forward_s += forward.latency_s;
    out->tp_latency_backward_s += backward.latency_s + again * forward.latency_s;
    out->sent.tp.forward += sent;
    out->sent.tp.backward += sent_back + again * sent;
    hv_why_add(a->why, "slices of tokens", forward.time_s, "s",
               "%.4g bytes gathered and summed at the experts, %.4g gathered at the source, over "
               "%d tensor-parallel ranks; backward %.4g s",
               x->slices_at_experts, x->slices_at_source, q->tp, backward.time_s);
}

static void add_tp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    note_tp(a, x, out);
    /* with sequence parallelism each all-reduce is its two halves, at different places, and runs
     * beside the products it feeds */
    struct hv__span wire = a->q->sequence_parallel
                               ? hv__span_sum(tp_call(a, HV_REDUCE_SCATTER, x->tp_bytes),
                                              tp_call(a, HV_ALL_GATHER, x->tp_bytes))
                               : tp_call(a, HV_ALL_REDUCE, x->tp_bytes);
    double once = (1 - hidden_frac(a->q)) * wire.time_s + hv__wait_s(a->q);
    out->tp_wire_forward_s = wire.time_s * x->tp_forward;
    out->tp_wire_backward_s = wire.time_s * x->tp_backward;
    out->tp_latency_forward_s = wire.latency_s * x->tp_forward;
    out->tp_latency_backward_s = wire.latency_s * x->tp_backward;
    out->tp_forward_s = once * x->tp_forward;
    out->tp_backward_s = once * x->tp_backward;
}

/* The algorithm of an all-to-all by the knobs of experts; without knobs the fastest one. */
static enum hv_sync_algorithm exchange_of(const struct hv_moe_knobs *m)
{
    if (!m) {
        return HV_ALGO_AUTO;
    }
    switch (m->all_to_all) {
    case HV_A2A_FLAT:
    case HV_A2A_PIPE:
    case HV_A2A_TP:
        return HV_ALGO_RING;
    case HV_A2A_2DH:
        return HV_ALGO_TREE;
    case HV_A2A_HIERARCHICAL:
    case hv_a2a_N:
        break;
    }
    return HV_ALGO_HIERARCHICAL;
}

/* An exchange in which ranks send as the job routes tokens: `bytes` of the call is what a rank
 * sends in the mean. */
static struct hv__span routed(const struct hv__ask *a, const struct hv__exchange *x,
                              const struct hv__call *c, bool back)
{
    const struct hv_matrix_query q = {.bytes = x->load->sent,
                                      .scale = c->bytes,
                                      .back = back,
                                      .algorithm = c->algorithm,
                                      .pipe = c->pipe,
                                      .together = c->together,
                                      .copies = c->copies};
    struct hv_collective_cost cost = hv_cost_matrix(x->load->ways, &q, a->why);
    return (struct hv__span){cost.time_s, cost.alpha_s};
}

static bool is_compressed(const struct hv_part_query *q)
{
    return q->moe && hv_known(q->moe->compress_ratio) && q->moe->compress_ratio > 1;
}

/* Seconds in which a rank compresses `bytes`, or expands them again. */
static double compress_s(const struct hv_part_query *q, double bytes)
{
    bool timed = is_compressed(q) && hv_known(q->moe->compress_bytes_per_s);
    return timed ? bytes / q->moe->compress_bytes_per_s : 0;
}

/* One dispatch or combine of `bytes`, fewer where the plan compresses them. */
static struct hv__span dispatch(const struct hv__ask *a, const struct hv__exchange *x, double bytes,
                                bool back)
{
    const struct hv_part_query *q = a->q;
    struct hv__call c = {.op = HV_ALL_TO_ALL,
                         .bytes = is_compressed(q) ? bytes / q->moe->compress_ratio : bytes,
                         .members = q->ep_group,
                         .n = q->ep,
                         .together = hv__expert_groups(q),
                         .algorithm = exchange_of(q->moe),
                         .pipe = q->moe && q->moe->all_to_all == HV_A2A_PIPE,
                         .copies = x->ep_copies};
    return x->load ? routed(a, x, &c, back) : hv__call_span(a, &c);
}

/* Dispatch, experts, combine, in chunks; *wire: both exchanges of all chunks. */
static double round_trip_s(const struct hv__ask *a, const struct hv__exchange *x, int chunks,
                           double compute_s, struct hv__span *wire)
{
    double bytes = x->ep_bytes / chunks;
    double own_s = compress_s(a->q, x->ep_own / chunks),
           busiest_s = compress_s(a->q, x->ep_arrived / chunks);
    struct hv__span out = dispatch(a, x, bytes, false), back = out;
    if (x->load && !hv_ways_even(x->load->ways)) {
        back = dispatch(a, x, bytes, true);
    }
    *wire = (struct hv__span){chunks * (out.time_s + back.time_s),
                              chunks * (out.latency_s + back.latency_s)};
    struct hv_round_trip trip = {
        out.time_s, compute_s, back.time_s, {own_s, busiest_s}, {busiest_s, own_s}};
    bool optsche = a->q->moe && a->q->moe->order == HV_MOE_OPTSCHE;
    return hv__shown_s(
        a, hv_overlap_round_trips(chunks, trip, optsche ? HV_TRIP_OPTSCHE : HV_TRIP_ARRIVAL));
}

static void add_ep(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    if (a->q->ep < 2 || !(x->ep_bytes > 0)) {
        return;
    }
    int forward = x->ep_chunks_forward, backward = x->ep_chunks_backward;
    struct hv__span ahead, back;
    out->ep_forward_s = round_trip_s(a, x, forward, x->ep_hidden_forward_s, &ahead);
    out->ep_backward_s = out->ep_forward_s;
    back = ahead;
    if (x->forward_only) {
        out->ep_backward_s = 0;
        back = (struct hv__span){0, 0};
    } else if (backward != forward || forward > 1) {
        out->ep_backward_s = round_trip_s(a, x, backward, x->ep_hidden_backward_s, &back);
    }
    if (x->ep_again && !x->forward_only) {
        out->ep_backward_s += out->ep_forward_s;
        back = hv__span_sum(back, ahead);
    }
    out->ep_wire_forward_s = ahead.time_s;
    out->ep_wire_backward_s = back.time_s;
    out->ep_latency_forward_s = ahead.latency_s;
    out->ep_latency_backward_s = back.latency_s;
    hv_why_add(a->why, "expert exchange", out->ep_forward_s, "s",
               "exposed part of dispatch and combine forward, %.4g bytes each over %d ranks in %d "
               "chunk%s beside %.4g s of expert compute; backward %.4g s in %d chunk%s",
               x->ep_bytes, a->q->ep, forward, forward > 1 ? "s" : "",
               forward * x->ep_hidden_forward_s, out->ep_backward_s, backward,
               backward > 1 ? "s" : "");
    double sent = 2.0 * (a->q->ep - 1) / a->q->ep * x->ep_bytes;
    double again = x->forward_only ? 0 : x->ep_again ? 2 : 1;
    double elem = hv_job_activation_bytes(&a->k->job);
    out->sent.ep = (struct hv_sent){sent / elem, again * sent / elem};
    hv_why_attach(a->why, &(struct hv_why_work){.bytes = sent,
                                                .backward_s = out->ep_backward_s,
                                                .backward_bytes = again * sent});
}

/* Explains the all-reduces of one-dimensional tensor parallelism. */
static void why_tp(const struct hv__ask *a, const struct hv__exchange *x,
                   const struct hv_part_cost *out)
{
    char wait[64] = "";
    if (hv__wait_s(a->q) > 0) {
        snprintf(wait, sizeof wait, ", after %.0f us of waiting for all ranks",
                 hv__wait_s(a->q) / HV_US);
    }
    hv_why_add(a->why, "tensor exchange", out->tp_forward_s, "s",
               "%.3g exchanges of %.4g bytes forward, %.3g backward%s; %.0f %% of each hidden "
               "behind products (calibrated)",
               x->tp_forward, x->tp_bytes, x->tp_backward, wait, 100 * hidden_frac(a->q));
    const struct hv_sent *sent = hv__in_block(a->part) ? &out->sent.tp : &out->sent.vocabulary;
    double elem = hv_job_activation_bytes(&a->k->job);
    hv_why_attach(a->why, &(struct hv_why_work){.bytes = elem * sent->forward,
                                                .backward_s = out->tp_backward_s,
                                                .backward_bytes = elem * sent->backward});
}

void hv__price_exchange(const struct hv__ask *a, const struct hv__exchange *x,
                        struct hv_part_cost *out)
{
    bool grid = a->q->tp_scheme != HV_TP_1D;
    if (grid) {
        hv__add_grid(a, x, out);
    } else if (a->q->tp > 1) {
        add_tp(a, x, out);
    }
    if (x->slices_at_experts > 0) {
        add_slices(a, x, out);
    }
    hv__add_cp(a, x, out);
    add_ep(a, x, out);
    if (!grid && a->q->tp > 1) {
        why_tp(a, x, out);
    }
}
