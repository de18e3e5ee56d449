/*
 * Collectives as alpha-beta forms over the cluster's nodes (Thakur, Rabenseifner, Gropp 2005 for
 * ring and tree; hierarchical: reduce-scatter in the node, ring across nodes on one rail per
 * member, all-gather in the node). Not here: overlap with compute, and which groups run together
 * (the caller says `together`).
 */
#include "solver/cost/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/efficiency.h"

static const char *const names[HV_COLLECTIVE_N] = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "p2p"};

const char *hv_collective_name(enum hv_collective c)
{
    return names[c];
}

/* The group as the formulae see it: links inside nodes, links between nodes, and how it is spread.
 */
struct shape {
    double n, nodes, per_node;             /* members, nodes, most members in one node */
    double node_bytes_per_s, node_alpha_s; /* slowest link inside a node, one flow per member */
    double net_bytes_per_s,
        net_alpha_s; /* slowest link between neighbouring nodes, one node's share */
    double host_bytes_per_s;
    bool connected, switched;
    const char *node_why, *net_why;
};

struct seat {
    uint32_t node, device;
};

static int by_node(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->device < b->device ? -1 : a->device > b->device;
}

static void take_node_link(struct shape *s, double bytes_per_s, double latency_s, const char *why)
{
    if (bytes_per_s < s->node_bytes_per_s) {
        s->node_bytes_per_s = bytes_per_s;
        s->node_why = why;
    }
    s->node_alpha_s = fmax(s->node_alpha_s, latency_s);
}

static void take_net_link(struct shape *s, const struct hv_path *p)
{
    double bytes_per_s = p->bytes_per_s * HV_EFF_NETWORK;
    if (bytes_per_s < s->net_bytes_per_s) {
        s->net_bytes_per_s = bytes_per_s;
        s->net_why = p->why;
    }
    s->net_alpha_s = fmax(s->net_alpha_s, p->latency_s);
}

/* Members of [first, last) that sit in the island of `slot` when the island shares one link. */
static double sharers(const struct hv_cluster *c, const struct seat *seats, size_t first,
                      size_t last, struct hv_device_ref at)
{
    const struct hv_node_group *g = &c->groups[at.group];
    for (size_t i = 0; i < g->n_islands; i++) {
        const struct hv_island *x = &g->islands[i];
        if (!x->shared || at.slot < x->first || at.slot >= x->first + x->count)
            continue;
        double n = 0;
        for (size_t k = first; k < last; k++) {
            uint32_t slot = hv_cluster_device(c, seats[k].device).slot;
            n += slot >= x->first && slot < x->first + x->count;
        }
        return n;
    }
    return 1;
}

static void look_inside(const struct hv_cluster *c, const struct seat *seats, size_t first,
                        size_t last, struct shape *s)
{
    s->per_node = fmax(s->per_node, (double)(last - first));
    for (size_t k = first; k < last && last - first > 1; k++) {
        size_t next = k + 1 < last ? k + 1 : first;
        struct hv_path p = hv_cluster_path(c, seats[k].device, seats[next].device);
        double share = 1;
        if (p.level == HV_PATH_ISLAND)
            share = sharers(c, seats, first, last, hv_cluster_device(c, seats[k].device));
        take_node_link(s, p.bytes_per_s * HV_EFF_NODE_COLLECTIVE / share, p.latency_s, p.why);
    }
}

static bool same_fabric(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static struct shape shape_of(const struct hv_cluster *c, const struct hv_collective_query *q)
{
    struct shape s = {.n = (double)q->n,
                      .node_bytes_per_s = HUGE_VAL,
                      .net_bytes_per_s = HUGE_VAL,
                      .host_bytes_per_s = HUGE_VAL,
                      .connected = true};
    struct seat *seats = hv_xmalloc(q->n * sizeof *seats);
    struct hv_device_ref first = hv_cluster_device(c, q->devices[0]);
    s.switched = c->groups[first.group].intra.kind == HV_LINK_NVSWITCH;
    for (size_t i = 0; i < q->n; i++) {
        struct hv_device_ref r = hv_cluster_device(c, q->devices[i]);
        seats[i] = (struct seat){r.node, q->devices[i]};
        s.connected = s.connected && same_fabric(r.kind->fabric, first.kind->fabric);
        s.host_bytes_per_s = fmin(s.host_bytes_per_s, hv_or(r.kind->pcie_bytes_per_s, HUGE_VAL));
    }
    qsort(seats, q->n, sizeof *seats, by_node);
    uint32_t before = seats[q->n - 1].node;
    for (size_t i = 0, last; i < q->n; i = last) {
        for (last = i + 1; last < q->n && seats[last].node == seats[i].node; last++)
            ;
        look_inside(c, seats, i, last, &s);
        if (before != seats[i].node) {
            struct hv_path p = hv_cluster_node_path(c, before, seats[i].node);
            take_net_link(&s, &p);
        }
        before = seats[i].node;
        s.nodes++;
    }
    free(seats);
    s.net_bytes_per_s /= fmax(q->together, 1);
    return s;
}

/* Ring passes of (n-1)/n of the bytes: two for all-reduce, one for its halves. */
static double ring_passes(enum hv_collective op)
{
    return op == HV_ALL_REDUCE ? 2 : 1;
}

static double log2_up(double n)
{
    return ceil(log2(n));
}

static double ring_s(const struct shape *s, enum hv_collective op, double bytes)
{
    double b = s->nodes > 1 ? fmin(s->node_bytes_per_s, s->net_bytes_per_s) : s->node_bytes_per_s;
    double steps = ring_passes(op) * (s->n - 1);
    double far = s->nodes > 1 ? ring_passes(op) * s->nodes : 0;
    double alpha = (steps - fmin(far, steps)) * s->node_alpha_s + fmin(far, steps) * s->net_alpha_s;
    return alpha + ring_passes(op) * (s->n - 1) / s->n * bytes / b;
}

/* Binary tree, pipelined: depth in hops, every byte once each way over the slowest link. */
static double tree_s(const struct shape *s, enum hv_collective op, double bytes)
{
    double b = s->nodes > 1 ? fmin(s->node_bytes_per_s, s->net_bytes_per_s) : s->node_bytes_per_s;
    double alpha = log2_up(s->per_node) * s->node_alpha_s + log2_up(s->nodes) * s->net_alpha_s;
    return ring_passes(op) * (alpha + bytes / b);
}

static double hierarchical_s(const struct shape *s, enum hv_collective op, double bytes)
{
    double q = s->per_node, k = s->nodes, inside = 0;
    if (q > 1)
        inside = (q - 1) * s->node_alpha_s + (q - 1) / q * bytes / s->node_bytes_per_s;
    double rails = bytes / q / (s->net_bytes_per_s / q);
    double across = (k - 1) * s->net_alpha_s + (k - 1) / k * rails;
    return ring_passes(op) * (inside + across);
}

static double all_to_all_s(const struct shape *s, double bytes)
{
    double stay = (s->per_node - 1) / s->n, leave = (s->n - s->per_node) / s->n;
    double inside = s->per_node > 1 ? stay * bytes / s->node_bytes_per_s : 0;
    double across = s->nodes > 1 ? s->per_node * leave * bytes / s->net_bytes_per_s : 0;
    double alpha = (s->per_node - 1) * s->node_alpha_s +
                   (s->nodes > 1 ? (s->n - s->per_node) * s->net_alpha_s : 0);
    return alpha + fmax(inside, across);
}

/* Switch reduction in the network chips of one node: every member sends once and receives once. */
static double nvls_s(const struct shape *s, double bytes)
{
    return 2 * s->node_alpha_s + bytes * (1 + 1 / s->n) / s->node_bytes_per_s;
}

/* Reduction in host memory: down and up the host links, ring of whole nodes between them. */
static double hfreduce_s(const struct shape *s, double bytes)
{
    double host = s->per_node * bytes / (s->host_bytes_per_s * HV_EFF_HOST) / s->per_node;
    double across = s->nodes > 1 ? 2 * (s->nodes - 1) / s->nodes * bytes / s->net_bytes_per_s : 0;
    return 2 * HV_HOST_STAGE_S + 2 * (s->nodes - 1) * s->net_alpha_s + fmax(2 * host, across);
}

static double p2p_s(const struct hv_cluster *c, const struct hv_collective_query *q)
{
    struct hv_path p = hv_cluster_path(c, q->devices[0], q->devices[q->n - 1]);
    struct hv_device_ref a = hv_cluster_device(c, q->devices[0]);
    struct hv_device_ref b = hv_cluster_device(c, q->devices[q->n - 1]);
    double rate = p.bytes_per_s * hv_efficiency_link(p.level, true), alpha = p.latency_s;
    if (p.level >= HV_PATH_NETWORK)
        rate /= fmax(q->together, 1);
    if (!same_fabric(a.kind->fabric, b.kind->fabric)) {
        rate = fmin(rate, HV_EFF_HOST * fmin(hv_or(a.kind->pcie_bytes_per_s, HUGE_VAL),
                                             hv_or(b.kind->pcie_bytes_per_s, HUGE_VAL)));
        alpha += 2 * HV_HOST_STAGE_S;
    }
    return alpha + q->bytes / rate;
}

static void consider(struct hv_collective_cost *best, double time_s, enum hv_sync_algorithm a)
{
    if (!hv_known(best->time_s) || time_s < best->time_s) {
        best->time_s = time_s;
        best->algorithm = a;
    }
}

static bool wants(const struct hv_collective_query *q, enum hv_sync_algorithm a)
{
    return q->algorithm == a || q->algorithm == HV_ALGO_AUTO;
}

/* All-reduce and its halves: the algorithm asked for, or the fastest of ring, tree, hierarchical.
 */
static void price_reduction(const struct shape *s, const struct hv_collective_query *q,
                            struct hv_collective_cost *out)
{
    bool reduces = q->op == HV_ALL_REDUCE, one_node = s->nodes <= 1;
    if (wants(q, HV_ALGO_RING))
        consider(out, ring_s(s, q->op, q->bytes), HV_ALGO_RING);
    if (wants(q, HV_ALGO_TREE) && reduces)
        consider(out, tree_s(s, q->op, q->bytes), HV_ALGO_TREE);
    if (wants(q, HV_ALGO_HIERARCHICAL) && !one_node)
        consider(out, hierarchical_s(s, q->op, q->bytes), HV_ALGO_HIERARCHICAL);
    if (q->algorithm == HV_ALGO_NVLS && reduces && one_node && s->switched)
        consider(out, nvls_s(s, q->bytes), HV_ALGO_NVLS);
    if (q->algorithm == HV_ALGO_HFREDUCE && reduces && isfinite(s->host_bytes_per_s))
        consider(out, hfreduce_s(s, q->bytes), HV_ALGO_HFREDUCE);
    if (!hv_known(out->time_s))
        consider(out, ring_s(s, q->op, q->bytes), HV_ALGO_RING);
}

static void count_bytes(const struct shape *s, const struct hv_collective_query *q,
                        struct hv_collective_cost *out)
{
    double sent = ring_passes(q->op) * (s->n - 1) / s->n * q->bytes;
    out->messages = ring_passes(q->op) * (s->n - 1);
    if (q->op == HV_ALL_TO_ALL) {
        out->node_bytes = (s->per_node - 1) / s->n * q->bytes;
        out->network_bytes =
            s->nodes > 1 ? s->per_node * (s->n - s->per_node) / s->n * q->bytes : 0;
    } else {
        out->node_bytes = s->per_node > 1 ? sent : 0;
        out->network_bytes =
            s->nodes > 1 ? ring_passes(q->op) * (s->nodes - 1) / s->nodes * q->bytes : 0;
    }
    out->network_bytes *= fmax(q->together, 1);
}

static void explain(const struct shape *s, const struct hv_collective_query *q,
                    const struct hv_collective_cost *r, struct hv_why *why)
{
    if (!why)
        return;
    hv_why_add(
        why, names[q->op], r->time_s, "s",
        "%.4g bytes over %.0f devices in %.0f nodes, %s; in the node %.4g GB/s (%s), between "
        "nodes %.4g GB/s (%s, %.0f together)",
        q->bytes, s->n, s->nodes, hv_sync_algorithm_words[r->algorithm],
        s->node_bytes_per_s / HV_GBPS, s->node_why ? s->node_why : "unused",
        s->net_bytes_per_s / HV_GBPS, s->net_why ? s->net_why : "unused", fmax(q->together, 1));
}

struct hv_collective_cost hv_cost_collective(const struct hv_cluster *c,
                                             const struct hv_collective_query *q,
                                             struct hv_why *why)
{
    struct hv_collective_cost out = {.algorithm = q->algorithm};
    if (q->n < 2 || !(q->bytes > 0))
        return out;
    out.time_s = HV_UNKNOWN;
    struct shape s = shape_of(c, q);
    switch (q->op) {
    case HV_ALL_REDUCE:
    case HV_ALL_GATHER:
    case HV_REDUCE_SCATTER:
        price_reduction(&s, q, &out);
        break;
    case HV_ALL_TO_ALL:
        consider(&out, all_to_all_s(&s, q->bytes), HV_ALGO_RING);
        break;
    case HV_BROADCAST:
    case HV_REDUCE:
        consider(&out, tree_s(&s, q->op, q->bytes), HV_ALGO_TREE);
        break;
    case HV_P2P:
        consider(&out, p2p_s(c, q), HV_ALGO_RING);
        s.connected = true;
        break;
    case HV_COLLECTIVE_N:
        break;
    }
    count_bytes(&s, q, &out);
    if (!s.connected)
        out.time_s = HV_UNKNOWN;
    explain(&s, q, &out, why);
    return out;
}
