/*
 * Exposed exchanges of a part between the ranks of its group: tensor-parallel reductions (or SUMMA
 * traffic), rings or all-to-alls of context parallelism, all-to-alls of experts. Volumes:
 * cost-model of Korthikanti et al. 2022 (tensor), Liu et al. 2023 (ring), Jacobs et al. 2023
 * (all-to-all over heads).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "solver/cost/device/link_curve.h"
#include "solver/cost/part/part_int.h"

/* Seconds of an exchange, and those of them in which no bytes move. */
struct span {
    double time_s, latency_s;
};

static struct span sum_of(struct span a, struct span b)
{
    return (struct span){a.time_s + b.time_s, a.latency_s + b.latency_s};
}

/* The device's own link, as if all members sat in one node. */
static struct span own_link(const struct hv_device_kind *d, enum hv_collective op, double bytes,
                            double n)
{
    bool own = hv_known(d->link_bytes_per_s);
    enum hv_link_class link = hv_link_class_of(own ? HV_LINK_NVLINK : HV_LINK_PCIE, own ? d : NULL);
    const struct hv_link_curve *curve =
        hv_link_curve(link, op == HV_ALL_TO_ALL ? HV_USE_ALL_TO_ALL : HV_USE_RING);
    double rate = hv_or(d->link_bytes_per_s, hv_or(d->pcie_bytes_per_s, 16 * HV_GBPS));
    double passes = op == HV_ALL_REDUCE ? 2 : 1;
    if (n < 2 || !(bytes > 0)) {
        return (struct span){0, 0};
    }
    rate *= hv_link_share(curve, bytes) * hv_device_calibration(d)->v[HV_CAL_NODE_LINKS];
    return (struct span){curve->start_s + passes * (n - 1) / n * bytes / rate, curve->start_s};
}

/* One collective over `n` members starting at `first`, or on the device's own link. */
struct call {
    enum hv_collective op;
    double bytes;
    const uint32_t *members;
    int n;
    double together;
    enum hv_sync_algorithm algorithm;
    double copies;
};

static struct span call(const struct hv__ask *a, const struct call *c)
{
    if (!c->members) {
        return own_link(a->q->device, c->op, c->bytes, c->n);
    }
    struct hv_collective_query q = {.op = c->op,
                                    .bytes = c->bytes,
                                    .devices = c->members,
                                    .n = (size_t)c->n,
                                    .algorithm = c->algorithm,
                                    .together = c->together,
                                    .copies = c->copies};
    struct hv_collective_cost cost = hv_cost_collective(a->k->cluster, &q, a->why);
    return (struct span){cost.time_s, cost.alpha_s};
}

/* The slowest of the tensor-parallel groups, one per context rank; of 2.5d the grids. */
static struct span tp_call(const struct hv__ask *a, enum hv_collective op, double bytes)
{
    const struct hv_part_query *q = a->q;
    int n = (int)(q->tp / hv__tp_depth(q));
    double together = q->beside.tp > 0 ? q->beside.tp : 1;
    struct call c = {.op = op, .bytes = bytes, .members = q->group, .n = n, .together = together};
    struct span worst = call(a, &c);
    for (int i = 1; q->group && i < q->cp; i++) {
        c.members = q->group + (size_t)i * (size_t)q->tp;
        struct span other = call(a, &c);
        worst = other.time_s > worst.time_s ? other : worst;
    }
    return worst;
}

/* Share of a sequence-parallel exchange that runs beside the products it feeds. */
static double hidden_frac(const struct hv_part_query *q)
{
    bool beside = q->sequence_parallel && q->tp_scheme == HV_TP_1D;
    return beside ? hv_device_calibration(q->device)->v[HV_CAL_TP_HIDDEN] : 0;
}

/* Wait before an exchange: ranks whose hosts launch kernels one by one do not arrive at the same
 * time. */
static double wait_s(const struct hv_part_query *q)
{
    return hv_device_calibration(q->device)->v[HV_CAL_EXCHANGE_US] * HV_US;
}

static void add_tp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    if (a->q->tp < 2) {
        return;
    }
    if (a->q->tp_scheme != HV_TP_1D) {
        struct span once = tp_call(a, HV_ALL_GATHER, x->grid_bytes);
        double backward = x->tp_backward > x->tp_forward ? 3 : 2;
        out->tp_forward_s = out->tp_wire_forward_s = once.time_s;
        out->tp_backward_s = out->tp_wire_backward_s = once.time_s * backward;
        out->tp_latency_forward_s = once.latency_s;
        out->tp_latency_backward_s = once.latency_s * backward;
        return;
    }
    /* with sequence parallelism each all-reduce is its two halves, at different places, and runs
     * beside the products it feeds */
    struct span wire = a->q->sequence_parallel ? sum_of(tp_call(a, HV_REDUCE_SCATTER, x->tp_bytes),
                                                        tp_call(a, HV_ALL_GATHER, x->tp_bytes))
                                               : tp_call(a, HV_ALL_REDUCE, x->tp_bytes);
    double once = (1 - hidden_frac(a->q)) * wire.time_s + wait_s(a->q);
    out->tp_wire_forward_s = wire.time_s * x->tp_forward;
    out->tp_wire_backward_s = wire.time_s * x->tp_backward;
    out->tp_latency_forward_s = wire.latency_s * x->tp_forward;
    out->tp_latency_backward_s = wire.latency_s * x->tp_backward;
    out->tp_forward_s = once * x->tp_forward;
    out->tp_backward_s = once * x->tp_backward;
}

/* Seconds by which communication lengthens compute beside it: the exposed part, and the slowdown of
 * compute by the overlapped part. Source of the form: compute C and communication X together take
 * max(C, X) + sigma min(C, X), Galvatron's overlap coefficient. */
static double shown_s(const struct hv__ask *a, struct hv_overlap o)
{
    return o.exposed_s + hv_device_calibration(a->q->device)->v[HV_CAL_OVERLAP] * o.hidden_s;
}

struct hv__cp_shape hv__cp_shape_of(const struct hv_part_query *q)
{
    int heads = q->cp_scheme == HV_CP_ULYSSES ? q->cp : q->cp_heads > 1 ? q->cp_heads : 1;
    struct hv__cp_shape s = {heads, q->cp / heads, 1, 1};
    if (q->cp_order == HV_CP_RING_INNER) {
        s.heads_apart = (size_t)s.ring;
    } else {
        s.ring_apart = (size_t)heads;
    }
    return s;
}

/* An all-to-all or an all-gather over `n` context-parallel ranks at distance `apart`; the ranks
 * between them run the same collective at the same time. */
struct cp_call {
    enum hv_collective op;
    double bytes;
    int n;
    size_t apart;
    double together; /* 0: as many as lie between */
};

static struct span cp_call(const struct hv__ask *a, const struct cp_call *x)
{
    uint32_t *members = NULL;
    size_t stride = (size_t)a->q->tp * x->apart;
    if (!(x->bytes > 0)) {
        return (struct span){0, 0};
    }
    if (a->q->group) {
        members = hv_xmalloc((size_t)x->n * sizeof *members);
        for (size_t i = 0; i < (size_t)x->n; i++) {
            members[i] = a->q->group[i * stride];
        }
    }
    double together = x->together > 0 ? x->together : (double)stride;
    struct call c = {
        .op = x->op, .bytes = x->bytes, .members = members, .n = x->n, .together = together};
    struct span all = call(a, &c);
    free(members);
    return all;
}

/* One hop of a ring: all hops together move every share to every rank, like an all-gather. */
static struct span ring_hop(const struct hv__ask *a, const struct hv__cp_shape *s, double bytes)
{
    struct cp_call c = {HV_ALL_GATHER, bytes * s->ring, s->ring, s->ring_apart,
                        a->q->beside.cp_ring};
    struct span all = cp_call(a, &c);
    return (struct span){all.time_s / (s->ring - 1), all.latency_s / (s->ring - 1)};
}

static void add_ring(const struct hv__ask *a, const struct hv__exchange *x,
                     const struct hv__cp_shape *s, struct hv_part_cost *out)
{
    struct span keys = ring_hop(a, s, x->cp_bytes), ahead = keys, behind = keys;
    double c = s->ring, hops = s->ring - 1;
    if (a->q->cp_backward == HV_CP_Q_DO) {
        ahead = ring_hop(a, s, x->cp_queries_bytes + x->cp_outputs_bytes);
        behind = ring_hop(a, s, x->cp_queries_bytes);
    }
    struct hv_ring_step forward = {x->cp_hidden_forward_s / c, keys.time_s, 0};
    /* keys and values go ahead and their gradients follow, or queries and gradients of outputs go
     * ahead and the gradients of queries follow */
    struct hv_ring_step backward = {x->cp_hidden_backward_s / c, ahead.time_s, behind.time_s};
    double forward_s = shown_s(a, hv_overlap_ring(s->ring, forward));
    double again = a->q->recompute & HV_RC_CORE ? hops : 0;
    out->cp_wire_forward_s += hops * keys.time_s;
    out->cp_wire_backward_s += hops * (ahead.time_s + behind.time_s) + again * keys.time_s;
    out->cp_latency_forward_s += hops * keys.latency_s;
    out->cp_latency_backward_s +=
        hops * (ahead.latency_s + behind.latency_s) + again * keys.latency_s;
    out->cp_forward_s += forward_s;
    out->cp_backward_s += shown_s(a, hv_overlap_ring(s->ring, backward));
    out->cp_backward_s += a->q->recompute & HV_RC_CORE ? forward_s : 0;
}

static void add_cp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    const struct hv_part_query *q = a->q;
    if (q->cp < 2 || !(x->cp_bytes > 0)) {
        return;
    }
    struct hv__cp_shape s = hv__cp_shape_of(q);
    if (s.heads > 1) {
        struct cp_call c = {HV_ALL_TO_ALL, x->cp_heads_bytes, s.heads, s.heads_apart,
                            q->beside.cp_heads};
        struct span once = cp_call(a, &c);
        double backward = q->recompute & HV_RC_CORE ? 2 : 1;
        out->cp_forward_s += once.time_s;
        out->cp_backward_s += once.time_s * backward;
        out->cp_wire_forward_s = out->cp_forward_s;
        out->cp_wire_backward_s = out->cp_backward_s;
        out->cp_latency_forward_s = once.latency_s;
        out->cp_latency_backward_s = once.latency_s * backward;
    }
    if (s.ring > 1) {
        add_ring(a, x, &s, out);
    }
    hv_why_add(a->why, "context exchange", out->cp_forward_s, "s",
               "exposed part of forward: the ring of %d ranks overlaps with the attention core, "
               "the all-to-all over %d ranks does not",
               s.ring, s.heads);
}

/* The algorithm of an all-to-all by the knobs of experts; without knobs the fastest one. `pipe`
 * means direct sends over both kinds of links at once, which is how direct sends are timed. */
static enum hv_sync_algorithm exchange_of(const struct hv_moe_knobs *m)
{
    if (!m) {
        return HV_ALGO_AUTO;
    }
    switch (m->all_to_all) {
    case HV_A2A_FLAT:
    case HV_A2A_PIPE:
        return HV_ALGO_RING;
    case HV_A2A_2DH:
        return HV_ALGO_TREE;
    case HV_A2A_HIERARCHICAL:
    case HV_A2A_TP:
    case hv_a2a_N:
        break;
    }
    return HV_ALGO_HIERARCHICAL;
}

/* One dispatch or combine of `bytes`, compressed where the plan requires it. */
static struct span dispatch(const struct hv__ask *a, const struct hv__exchange *x, double bytes)
{
    const struct hv_part_query *q = a->q;
    bool squeezed = q->moe && hv_known(q->moe->compress_ratio) && q->moe->compress_ratio > 1;
    bool whole = q->expert_tp > 0 && q->expert_tp < q->tp; /* groups of consecutive ranks */
    double between = whole ? 1 : q->tp;
    struct call c = {.op = HV_ALL_TO_ALL,
                     .bytes = squeezed ? bytes / q->moe->compress_ratio : bytes,
                     .members = q->ep_group,
                     .n = q->ep,
                     .together = q->beside.ep > 0 ? q->beside.ep : between,
                     .algorithm = exchange_of(q->moe),
                     .copies = x->ep_copies};
    struct span once = call(a, &c);
    if (squeezed && hv_known(q->moe->compress_bytes_per_s)) {
        double compress_s = bytes / q->moe->compress_bytes_per_s;
        once = sum_of(once, (struct span){compress_s, compress_s});
    }
    return once;
}

/* Dispatch, experts, combine, in chunks; *wire: both exchanges of all chunks. */
static double round_trip_s(const struct hv__ask *a, const struct hv__exchange *x, int chunks,
                           double compute_s, struct span *wire)
{
    struct span once = dispatch(a, x, x->ep_bytes / chunks);
    *wire = (struct span){2 * chunks * once.time_s, 2 * chunks * once.latency_s};
    struct hv_round_trip trip = {once.time_s, compute_s, once.time_s};
    return shown_s(a, hv_overlap_round_trips(chunks, trip));
}

static void add_ep(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    if (a->q->ep < 2 || !(x->ep_bytes > 0)) {
        return;
    }
    int forward = x->ep_chunks_forward, backward = x->ep_chunks_backward;
    struct span ahead, back;
    out->ep_forward_s = round_trip_s(a, x, forward, x->ep_hidden_forward_s, &ahead);
    out->ep_backward_s = out->ep_forward_s;
    back = ahead;
    if (backward != forward || forward > 1) {
        out->ep_backward_s = round_trip_s(a, x, backward, x->ep_hidden_backward_s, &back);
    }
    if (x->ep_again) {
        out->ep_backward_s += out->ep_forward_s;
        back = sum_of(back, ahead);
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
}

void hv__price_exchange(const struct hv__ask *a, const struct hv__exchange *x,
                        struct hv_part_cost *out)
{
    add_tp(a, x, out);
    add_cp(a, x, out);
    add_ep(a, x, out);
    if (a->q->tp > 1) {
        char wait[64] = "";
        if (wait_s(a->q) > 0) {
            snprintf(wait, sizeof wait, ", after %.0f us of waiting for all ranks",
                     wait_s(a->q) / HV_US);
        }
        hv_why_add(
            a->why, "tensor exchange", out->tp_forward_s, "s",
            "%.3g exchanges of %.4g bytes forward, %.3g backward%s; %.0f %% of each hidden behind "
            "products (calibrated)",
            x->tp_forward, x->tp_bytes, x->tp_backward, wait, 100 * hidden_frac(a->q));
    }
}
