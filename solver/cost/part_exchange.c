/*
 * Exposed exchanges of a part between the ranks of its group: tensor-parallel reductions (or SUMMA
 * traffic), rings or all-to-alls of context parallelism, all-to-alls of experts. Volumes:
 * cost-model of Korthikanti et al. 2022 (tensor), Liu et al. 2023 (ring), Jacobs et al. 2023
 * (all-to-all over heads).
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/cost_int.h"
#include "solver/cost/link_curve.h"

/* The device's own link, as if all members sat in one node. */
static double own_link_s(const struct hv_device_kind *d, enum hv_collective op, double bytes,
                         double n)
{
    bool own = hv_known(d->link_bytes_per_s);
    enum hv_link_class link = hv_link_class_of(own ? HV_LINK_NVLINK : HV_LINK_PCIE, own ? d : NULL);
    const struct hv_link_curve *curve =
        hv_link_curve(link, op == HV_ALL_TO_ALL ? HV_USE_ALL_TO_ALL : HV_USE_RING);
    double rate = hv_or(d->link_bytes_per_s, hv_or(d->pcie_bytes_per_s, 16 * HV_GBPS));
    double passes = op == HV_ALL_REDUCE ? 2 : 1;
    if (n < 2 || !(bytes > 0))
        return 0;
    rate *= hv_link_share(curve, bytes) * hv_device_calibration(d)->v[HV_CAL_NODE_LINKS];
    return curve->start_s + passes * (n - 1) / n * bytes / rate;
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

static double call_s(const struct hv__ask *a, const struct call *c)
{
    if (!c->members)
        return own_link_s(a->q->device, c->op, c->bytes, c->n);
    struct hv_collective_query q = {.op = c->op,
                                    .bytes = c->bytes,
                                    .devices = c->members,
                                    .n = (size_t)c->n,
                                    .algorithm = c->algorithm,
                                    .together = c->together,
                                    .copies = c->copies};
    return hv_cost_collective(a->k->cluster, &q, a->why).time_s;
}

/* The slowest of the tensor-parallel groups, one per context rank. */
static double tp_call_s(const struct hv__ask *a, enum hv_collective op, double bytes)
{
    const struct hv_part_query *q = a->q;
    struct call c = {.op = op, .bytes = bytes, .members = q->group, .n = q->tp, .together = 1};
    double worst = call_s(a, &c);
    for (int i = 1; q->group && i < q->cp; i++) {
        c.members = q->group + (size_t)i * (size_t)q->tp;
        worst = fmax(worst, call_s(a, &c));
    }
    return worst;
}

/* Share of a sequence-parallel exchange that runs beside the products it feeds. */
static double hidden_frac(const struct hv_part_query *q)
{
    bool beside = q->sequence_parallel && q->tp_scheme == HV_TP_1D;
    return beside ? hv_device_calibration(q->device)->v[HV_CAL_TP_HIDDEN] : 0;
}

static void add_tp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    if (a->q->tp < 2)
        return;
    if (a->q->tp_scheme != HV_TP_1D) {
        double once = tp_call_s(a, HV_ALL_GATHER, x->grid_bytes);
        out->tp_forward_s = once;
        out->tp_backward_s = once * (x->tp_backward > x->tp_forward ? 3 : 2);
        return;
    }
    /* with sequence parallelism each all-reduce is its two halves, at different places, and runs
     * beside the products it feeds */
    double hidden = hidden_frac(a->q);
    double once = a->q->sequence_parallel
                      ? (1 - hidden) * (tp_call_s(a, HV_REDUCE_SCATTER, x->tp_bytes) +
                                        tp_call_s(a, HV_ALL_GATHER, x->tp_bytes))
                      : tp_call_s(a, HV_ALL_REDUCE, x->tp_bytes);
    out->tp_forward_s = once * x->tp_forward;
    out->tp_backward_s = once * x->tp_backward;
}

/* Seconds of `steps` exchanges of `bytes` with the ring neighbour, or an all-to-all of `bytes`. */
static double cp_call_s(const struct hv__ask *a, bool heads, double bytes, int n)
{
    uint32_t *members = NULL;
    size_t tp = (size_t)a->q->tp;
    if (a->q->group) {
        members = hv_xmalloc((size_t)n * sizeof *members);
        for (size_t i = 0; i < (size_t)n; i++)
            members[i] = a->q->group[i * tp];
    }
    /* a ring passes the other ranks' keys and values: an all-gather of everybody's */
    struct call c = {.op = heads ? HV_ALL_TO_ALL : HV_ALL_GATHER,
                     .bytes = heads ? bytes : bytes * n,
                     .members = members,
                     .n = n,
                     .together = (double)tp};
    double time_s = call_s(a, &c);
    free(members);
    return time_s;
}

static void add_cp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    const struct hv_part_query *q = a->q;
    if (q->cp < 2 || !(x->cp_bytes > 0))
        return;
    int heads = q->cp_scheme == HV_CP_ULYSSES ? q->cp : q->cp_heads > 1 ? q->cp_heads : 1;
    int ring = q->cp / heads;
    bool again = (q->recompute & HV_RC_CORE) != 0;
    if (heads > 1) {
        double once = cp_call_s(a, true, x->cp_heads_bytes, heads);
        out->cp_forward_s += once;
        out->cp_backward_s += once * (again ? 2 : 1);
    }
    if (ring > 1) {
        double once = cp_call_s(a, false, x->cp_bytes, ring);
        double forward_s = fmax(0, once - x->cp_hidden_forward_s * (ring - 1) / ring);
        out->cp_forward_s += forward_s;
        out->cp_backward_s += fmax(0, 2 * once - x->cp_hidden_backward_s * (ring - 1) / ring) +
                              (again ? forward_s : 0);
    }
    hv_why_add(
        a->why, "context exchange", out->cp_forward_s, "s",
        "exposed of forward: ring of %d hidden by the attention core, all-to-all over %d not", ring,
        heads);
}

/* Nobody said how: whatever is fastest. */
static enum hv_sync_algorithm exchange_of(const struct hv_moe_knobs *m)
{
    if (!m)
        return HV_ALGO_AUTO;
    return m->all_to_all == HV_A2A_FLAT ? HV_ALGO_RING : HV_ALGO_HIERARCHICAL;
}

static void add_ep(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    const struct hv_part_query *q = a->q;
    if (q->ep < 2 || !(x->ep_bytes > 0))
        return;
    bool squeezed = q->moe && hv_known(q->moe->compress_ratio) && q->moe->compress_ratio > 1;
    double bytes = squeezed ? x->ep_bytes / q->moe->compress_ratio : x->ep_bytes;
    struct call c = {.op = HV_ALL_TO_ALL,
                     .bytes = bytes,
                     .members = q->ep_group,
                     .n = q->ep,
                     .together = (double)q->tp,
                     .algorithm = exchange_of(q->moe),
                     .copies = x->ep_copies};
    double once = call_s(a, &c);
    if (squeezed && hv_known(q->moe->compress_bytes_per_s))
        once += x->ep_bytes / q->moe->compress_bytes_per_s;
    out->ep_forward_s = 2 * once;
    out->ep_backward_s = (x->ep_again ? 4 : 2) * once;
}

void hv__price_exchange(const struct hv__ask *a, const struct hv__exchange *x,
                        struct hv_part_cost *out)
{
    add_tp(a, x, out);
    add_cp(a, x, out);
    add_ep(a, x, out);
    if (a->q->tp > 1)
        hv_why_add(
            a->why, "tensor exchange", out->tp_forward_s, "s",
            "%.3g exchanges of %.4g bytes forward, %.3g backward; %.0f %% of each hidden behind "
            "products (calibrated)",
            x->tp_forward, x->tp_bytes, x->tp_backward, 100 * hidden_frac(a->q));
}
