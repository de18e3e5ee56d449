/*
 * Activations from one stage to the next: many flows between two sets of devices. Every flow is
 * bounded by its own path, every node by its NICs, every pair of nodes by the network between them,
 * every named link of the network by all flows over it.
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/link_curve.h"
#include "solver/cost/network/collective_int.h"

/* One flow: its nodes, its devices and the link between them. */
struct flow {
    uint32_t from, to; /* nodes */
    uint32_t a, b;     /* devices */
    uint32_t from_group, to_group;
    const struct hv_device_kind *from_kind, *to_kind;
    const struct hv_network_link *link; /* named one between the nodes, or NULL */
    bool backward;                      /* over it from its second end to its first */
    bool network;                       /* leaves the node and its link domain */
};

/* True where flows f and g between nodes have equal paths: the same kinds and groups at both ends,
 * and the same nodes where the network distinguishes nodes or there are link domains. Never inside
 * a node, where the slots decide. */
static bool same_way(const struct hv_cluster *c, const struct flow *f, const struct flow *g)
{
    bool nodes = f->from == g->from && f->to == g->to;
    bool named = c->matrix_bytes_per_s || c->matrix_latency_s || c->n_links > 0;
    bool domains = c->groups[f->from_group].domain_nodes > 1;
    return f->from != f->to && g->from != g->to && f->from_kind == g->from_kind &&
           f->to_kind == g->to_kind && f->from_group == g->from_group &&
           f->to_group == g->to_group && (nodes || (!named && !domains));
}

/* The network elements that flows of `each` bytes keep busy. */
struct uses {
    struct hv_wire_use *items;
    size_t n;
    double each;
};

static int by_from(const void *x, const void *y)
{
    const struct flow *a = x, *b = y;
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return a->to < b->to ? -1 : a->to > b->to;
}

static int by_to(const void *x, const void *y)
{
    const struct flow *a = x, *b = y;
    if (a->to != b->to) {
        return a->to < b->to ? -1 : 1;
    }
    return a->from < b->from ? -1 : a->from > b->from;
}

struct worst {
    double time_s, alpha_s;
    const char *why;
};

static void take(struct worst *w, double time_s, double alpha_s, const char *why)
{
    w->alpha_s = fmax(w->alpha_s, alpha_s);
    if (time_s > w->time_s || !w->why) {
        w->time_s = time_s;
        w->why = why;
    }
}

static void take_flow(const struct hv_cluster *c, const struct flow *f, double each,
                      struct worst *w)
{
    if (f->a == f->b) {
        return;
    }
    struct hv_path p = hv_cluster_path(c, f->a, f->b);
    const struct hv_collective_query q = {.op = HV_P2P,
                                          .bytes = each,
                                          .devices = (const uint32_t[]){f->a, f->b},
                                          .n = 2,
                                          .together = 1};
    struct hv_collective_cost r = hv_cost_collective(c, &q, NULL);
    take(w, r.time_s - r.alpha_s, r.alpha_s, p.why);
}

/* Share of NICs and network that many flows of a node get together. */
static double many_share(const struct hv_cluster *c, const struct hv_node_group *g, double bytes)
{
    if (c->network_plain || g->nic.plain) {
        return 1;
    }
    const struct hv_link_curve *curve = hv_link_curve(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL);
    return hv_link_share(curve, bytes) * hv_device_calibration(g->slots[0].kind)->v[HV_CAL_NETWORK];
}

double hv_cost_node_bytes_per_s(const struct hv_cluster *c, uint32_t node,
                                const struct hv_network_link *link)
{
    return hv__node_rate(c, hv_cluster_group_of_node(c, node), link);
}

static void use(struct uses *u, enum hv_wire kind, uint64_t number, double busy_s, const char *why)
{
    if (busy_s > 0 && isfinite(busy_s)) {
        u->items[u->n++] = (struct hv_wire_use){hv_wire_id(kind, number), busy_s, why};
    }
}

/* The network of one side; `flows` sorted by that side. */
static void use_nodes(const struct hv_cluster *c, const struct flow *flows, size_t n, bool sending,
                      struct uses *u)
{
    for (size_t i = 0, last; i < n; i = last) {
        uint32_t node = sending ? flows[i].from : flows[i].to;
        double bytes = 0, busy = 0;
        const struct hv_node_group *g = hv_cluster_group_of_node(c, node);
        for (last = i; last < n && (sending ? flows[last].from : flows[last].to) == node; last++) {
            if (!flows[last].network) {
                continue;
            }
            double rate = hv__node_rate(c, g, flows[last].link);
            bytes += u->each;
            busy += rate > 0 ? u->each / rate : 0;
        }
        use(u, sending ? HV_WIRE_NODE_OUT : HV_WIRE_NODE_IN, node, busy / many_share(c, g, bytes),
            sending ? "nic of the sending node" : "nic of the receiving node");
    }
}

/* Named links of the network (`network.links`): one element each, shared by all flows over it in
 * one direction, at the share that the slowest kind of its senders reaches. */
static void use_links(const struct hv_cluster *c, const struct flow *flows, size_t n,
                      struct uses *u)
{
    struct crossing {
        double bytes, least_share;
    } *links = c->n_links ? hv_xcalloc(2 * c->n_links, sizeof *links) : NULL;
    for (size_t i = 0; links && i < n; i++) {
        const struct flow *f = &flows[i];
        if (f->link && f->network) {
            links[2 * (size_t)(f->link - c->links) + f->backward].bytes += u->each;
        }
    }
    for (size_t i = 0; links && i < n; i++) {
        const struct flow *f = &flows[i];
        if (f->link && f->network) {
            struct crossing *x = &links[2 * (size_t)(f->link - c->links) + f->backward];
            double share = many_share(c, hv_cluster_group_of_node(c, f->from), x->bytes);
            x->least_share = x->least_share > 0 ? fmin(x->least_share, share) : share;
        }
    }
    for (size_t i = 0; links && i < 2 * c->n_links; i++) {
        double rate = c->links[i / 2].bytes_per_s;
        if (links[i].bytes > 0 && hv_known(rate)) {
            use(u, HV_WIRE_LINK, i, links[i].bytes / (rate * links[i].least_share), "network link");
        }
    }
    free(links);
}

/* Adds the network between two nodes by the matrix, or by the network's figure for a pair. */
static void use_pairs(const struct hv_cluster *c, const struct flow *flows, size_t n,
                      struct uses *u)
{
    for (size_t i = 0, last; i < n; i = last) {
        double bytes = 0;
        for (last = i; last < n && !by_from(&flows[last], &flows[i]); last++) {
            bytes += flows[last].network ? u->each : 0;
        }
        if (!(bytes > 0)) {
            continue;
        }
        struct hv_path p = hv_cluster_node_path(c, flows[i].from, flows[i].to);
        const struct hv_node_group *g = hv_cluster_group_of_node(c, flows[i].from);
        use(u, HV_WIRE_PAIR, (uint64_t)flows[i].from * c->n_nodes + flows[i].to,
            bytes / (p.bytes_per_s * (p.plain ? 1 : many_share(c, g, bytes))), p.why);
    }
}

/* Flows of a hop, and which of them leave their node and its link domain. */
static struct flow *flows_of(const struct hv_cluster *c, const struct hv_hop_query *q, size_t *n)
{
    *n = q->n_from > q->n_to ? q->n_from : q->n_to;
    struct flow *flows = hv_xmalloc(*n * sizeof *flows);
    for (size_t i = 0; i < *n; i++) {
        uint32_t a = q->from[i * q->n_from / *n], b = q->to[i * q->n_to / *n];
        struct hv_device_ref ra = hv_cluster_device(c, a), rb = hv_cluster_device(c, b);
        struct flow *f = &flows[i];
        *f = (struct flow){.from = ra.node,
                           .to = rb.node,
                           .a = a,
                           .b = b,
                           .from_group = ra.group,
                           .to_group = rb.group,
                           .from_kind = ra.kind,
                           .to_kind = rb.kind};
        if (i > 0 && same_way(c, f - 1, f)) {
            f->link = f[-1].link;
            f->backward = f[-1].backward;
            f->network = f[-1].network;
            continue;
        }
        if (f->from != f->to && c->n_links) {
            f->link = hv_cluster_link(c, f->from, f->to);
            f->backward = f->link && hv_cluster_link_backward(c, f->link, f->from, f->to);
        }
        f->network = f->from != f->to && hv_cluster_path(c, a, b).level >= HV_PATH_NETWORK;
    }
    return flows;
}

/* Stages mostly lie on rising devices, so that their flows come in order. */
static void sort_flows(struct flow *flows, size_t n, int (*compare)(const void *, const void *))
{
    for (size_t i = 1; i < n; i++) {
        if (compare(&flows[i - 1], &flows[i]) > 0) {
            qsort(flows, n, sizeof *flows, compare);
            return;
        }
    }
}

/* Sorts the flows, and lists the network elements that they keep busy. */
static void use_network(const struct hv_cluster *c, struct flow *flows, size_t n, struct uses *u)
{
    sort_flows(flows, n, by_from);
    use_nodes(c, flows, n, true, u);
    use_pairs(c, flows, n, u);
    use_links(c, flows, n, u);
    sort_flows(flows, n, by_to);
    use_nodes(c, flows, n, false, u);
}

double hv_cost_node_s(const struct hv_cluster *c, uint32_t node, double bytes)
{
    const struct hv_node_group *g = hv_cluster_group_of_node(c, node);
    double rate = hv__node_rate(c, g, NULL) * many_share(c, g, bytes);
    return bytes > 0 && rate > 0 ? bytes / rate : 0;
}

size_t hv_cost_hop_uses(const struct hv_cluster *c, const struct hv_hop_query *q,
                        struct hv_wire_use *out)
{
    size_t n = 0;
    if (!q->n_from || !q->n_to || !(q->bytes > 0)) {
        return 0;
    }
    struct flow *flows = flows_of(c, q, &n);
    struct uses u = {.items = out, .each = q->bytes / (double)n};
    use_network(c, flows, n, &u);
    free(flows);
    return u.n;
}

struct hv_hop_cost hv_cost_hop_parts(const struct hv_cluster *c, const struct hv_hop_query *q,
                                     struct hv_wire_use *uses, size_t *n_uses, struct hv_why *why)
{
    size_t n = 0;
    *n_uses = 0;
    if (!q->n_from || !q->n_to || !(q->bytes > 0)) {
        return (struct hv_hop_cost){0};
    }
    struct flow *flows = flows_of(c, q, &n);
    struct worst w = {0};
    struct uses u = {.items = uses, .each = q->bytes / (double)n};
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !same_way(c, &flows[i - 1], &flows[i])) {
            take_flow(c, &flows[i], u.each, &w);
        }
    }
    struct hv_hop_cost out = {.alone_s = w.time_s, .flow_bytes = u.each};
    use_network(c, flows, n, &u);
    for (size_t i = 0; i < u.n; i++) {
        take(&w, u.items[i].busy_s, 0, u.items[i].why);
    }
    out.bytes_s = w.time_s;
    out.latency_s = w.alpha_s;
    *n_uses = u.n;
    free(flows);
    hv_why_add(why, "hop", w.time_s + w.alpha_s, "s", "%.4g bytes in %zu flows, tightest: %s",
               q->bytes, n, w.why ? w.why : "same devices");
    return out;
}

double hv_cost_hop(const struct hv_cluster *c, const uint32_t *from, size_t n_from,
                   const uint32_t *to, size_t n_to, double bytes, struct hv_why *why)
{
    const struct hv_hop_query q = {from, to, n_from, n_to, bytes};
    size_t n_uses = 0, n = n_from > n_to ? n_from : n_to;
    struct hv_wire_use *uses = hv_xmalloc((4 * n + 2 * c->n_links + 1) * sizeof *uses);
    struct hv_hop_cost h = hv_cost_hop_parts(c, &q, uses, &n_uses, why);
    free(uses);
    return h.bytes_s + h.latency_s;
}
