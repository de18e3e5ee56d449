/*
 * Activations from one stage to the next: many flows between two sets of devices. Every flow is
 * bounded by its own path, every node by its NICs, every pair of nodes by the network between them,
 * every named link of the network by all flows over it.
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/collective.h"
#include "solver/cost/efficiency.h"
#include "solver/cost/link_curve.h"

/* One flow, as the nodes see it. */
struct flow {
    uint32_t from, to; /* nodes */
    uint32_t a, b;     /* devices */
    bool network;      /* leaves the node and its link domain */
};

static int by_from(const void *x, const void *y)
{
    const struct flow *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static int by_to(const void *x, const void *y)
{
    const struct flow *a = x, *b = y;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
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

static void take_flow(const struct hv_cluster *c, struct flow *f, double each, struct worst *w)
{
    if (f->a == f->b)
        return;
    struct hv_path p = hv_cluster_path(c, f->a, f->b);
    f->network = p.level >= HV_PATH_NETWORK;
    const struct hv_collective_query q = {.op = HV_P2P,
                                          .bytes = each,
                                          .devices = (const uint32_t[]){f->a, f->b},
                                          .n = 2,
                                          .together = 1};
    struct hv_collective_cost r = hv_cost_collective(c, &q, NULL);
    take(w, r.time_s - r.alpha_s, r.alpha_s, p.why);
}

/* Share of NICs and network that many flows of a node get together. */
static double many_share(const struct hv_node_group *g, double bytes)
{
    const struct hv_link_curve *curve = hv_link_curve(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL);
    return hv_link_share(curve, bytes) * hv_device_calibration(g->slots[0].kind)->v[HV_CAL_NETWORK];
}

/* NICs of one side; `flows` sorted by that side. */
static void take_nics(const struct hv_cluster *c, const struct flow *flows, size_t n, bool sending,
                      double each, struct worst *w)
{
    for (size_t i = 0, last; i < n; i = last) {
        uint32_t node = sending ? flows[i].from : flows[i].to;
        double bytes = 0;
        for (last = i; last < n && (sending ? flows[last].from : flows[last].to) == node; last++)
            bytes += flows[last].network ? each : 0;
        const struct hv_node_group *g = hv_cluster_group_of_node(c, node);
        double rate = g->nic.bytes_per_s * many_share(g, bytes);
        if (bytes > 0 && rate > 0)
            take(w, bytes / rate, 0,
                 sending ? "nic of the sending node" : "nic of the receiving node");
    }
}

/* Named links of the network (`network.links`): one element each, shared by all flows over it. */
static void take_links(const struct hv_cluster *c, const struct flow *flows, size_t n, double each,
                       struct worst *w)
{
    double *bytes = c->n_links ? hv_xcalloc(c->n_links, sizeof *bytes) : NULL;
    const struct hv_network_link *l = NULL;
    for (size_t i = 0; bytes && i < n; i++) {
        if (i == 0 || by_from(&flows[i - 1], &flows[i]))
            l = hv_cluster_link(c, flows[i].from, flows[i].to);
        if (l && flows[i].network)
            bytes[l - c->links] += each;
    }
    for (size_t i = 0; i < c->n_links; i++) {
        const struct hv_node_group *g = hv_cluster_group_of_node(c, flows[0].from);
        if (bytes[i] > 0 && hv_known(c->links[i].bytes_per_s))
            take(w, bytes[i] / (c->links[i].bytes_per_s * many_share(g, bytes[i])), 0,
                 "network link");
    }
    free(bytes);
}

static void take_pairs(const struct hv_cluster *c, const struct flow *flows, size_t n, double each,
                       struct worst *w)
{
    for (size_t i = 0, last; i < n; i = last) {
        double bytes = 0;
        for (last = i; last < n && !by_from(&flows[last], &flows[i]); last++)
            bytes += flows[last].network ? each : 0;
        if (!(bytes > 0))
            continue;
        struct hv_path p = hv_cluster_node_path(c, flows[i].from, flows[i].to);
        const struct hv_node_group *g = hv_cluster_group_of_node(c, flows[i].from);
        take(w, bytes / (p.bytes_per_s * many_share(g, bytes)), p.latency_s, p.why);
    }
}

double hv_cost_hop(const struct hv_cluster *c, const uint32_t *from, size_t n_from,
                   const uint32_t *to, size_t n_to, double bytes, struct hv_why *why)
{
    size_t n = n_from > n_to ? n_from : n_to;
    if (!n_from || !n_to || !(bytes > 0))
        return 0;
    struct flow *flows = hv_xmalloc(n * sizeof *flows);
    double each = bytes / (double)n;
    struct worst w = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t a = from[i * n_from / n], b = to[i * n_to / n];
        flows[i] = (struct flow){hv_cluster_node_of(c, a), hv_cluster_node_of(c, b), a, b, false};
        take_flow(c, &flows[i], each, &w);
    }
    qsort(flows, n, sizeof *flows, by_from);
    take_nics(c, flows, n, true, each, &w);
    take_pairs(c, flows, n, each, &w);
    take_links(c, flows, n, each, &w);
    qsort(flows, n, sizeof *flows, by_to);
    take_nics(c, flows, n, false, each, &w);
    free(flows);
    hv_why_add(why, "hop", w.time_s + w.alpha_s, "s", "%.4g bytes in %zu flows, tightest: %s",
               bytes, n, w.why ? w.why : "same devices");
    return w.time_s + w.alpha_s;
}
