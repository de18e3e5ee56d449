/*
 * Paths: finds the element that bounds a single flow between two devices. Flows that share an
 * element are handled where a plan is lowered to operations.
 */
#include "solver/inventory/cluster.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Narrows the path to `bytes_per_s` when that is known and tighter. */
static void narrow(struct hv_path *p, double bytes_per_s, const char *why)
{
    if (bytes_per_s < p->bytes_per_s) {
        p->bytes_per_s = bytes_per_s;
        p->why = why;
    }
}

const struct hv_island *hv_node_group_island(const struct hv_node_group *g, uint32_t slot)
{
    for (size_t i = 0; i < g->n_islands; i++) {
        if (slot - g->islands[i].first < g->islands[i].count && slot >= g->islands[i].first) {
            return &g->islands[i];
        }
    }
    return NULL;
}

bool hv_cluster_is_far(const struct hv_cluster *c, const uint32_t *devices, size_t n, size_t stride)
{
    uint32_t first = n > 0 ? hv_cluster_domain_of(c, hv_cluster_node_of(c, devices[0])) : 0;
    for (size_t i = 1; i < n; i++) {
        if (hv_cluster_domain_of(c, hv_cluster_node_of(c, devices[i * stride])) != first) {
            return true;
        }
    }
    return false;
}

/* A full mesh of point-to-point links gives one pair only its own link; a switch gives it all. */
static double pair_bytes_per_s(const struct hv_link *l, uint32_t members)
{
    bool mesh = l->kind == HV_LINK_XGMI || l->kind == HV_LINK_HCCS;
    return mesh && members > 2 ? l->bytes_per_s / (members - 1) : l->bytes_per_s;
}

static struct hv_path host_path(const struct hv_node_group *g, const struct hv_device_kind *a,
                                const struct hv_device_kind *b)
{
    struct hv_path p = {HV_PATH_NODE, (double)INFINITY, HV_HOST_LATENCY_S,
                        HV_LINK_HOST, "host",           false};
    narrow(&p, a->pcie_bytes_per_s, "pcie");
    narrow(&p, b->pcie_bytes_per_s, "pcie");
    narrow(&p, g->host_memory_bytes_per_s, "host memory");
    if (isinf(p.bytes_per_s)) {
        p.bytes_per_s = HV_PCIE_BYTES_PER_S;
    }
    return p;
}

/* A flow that leaves an island with one shared link (a PCIe root) crosses that link. */
static void leave_island(struct hv_path *p, const struct hv_island *s)
{
    if (s && s->shared && s->link.bytes_per_s < p->bytes_per_s) {
        narrow(p, s->link.bytes_per_s, hv_link_kind_name(s->link.kind));
        p->kind = s->link.kind;
        p->plain = p->plain && s->link.plain;
    }
}

static struct hv_path path_in_node(const struct hv_node_group *g, uint32_t slot_a, uint32_t slot_b)
{
    const struct hv_island *ia = hv_node_group_island(g, slot_a);
    const struct hv_island *ib = hv_node_group_island(g, slot_b);
    if (ia && ia == ib) {
        return (struct hv_path){
            HV_PATH_ISLAND, pair_bytes_per_s(&ia->link, ia->count), ia->link.latency_s,
            ia->link.kind,  hv_link_kind_name(ia->link.kind),       ia->link.plain};
    }
    const struct hv_device_kind *a = hv_node_kind_at(g, slot_a), *b = hv_node_kind_at(g, slot_b);
    bool one_fabric = a->fabric && b->fabric && strcmp(a->fabric, b->fabric) == 0;
    bool by_host = a->cls == HV_CLASS_CPU || b->cls == HV_CLASS_CPU || !one_fabric;
    struct hv_path p = {
        HV_PATH_NODE,  pair_bytes_per_s(&g->intra, g->n_devices), g->intra.latency_s,
        g->intra.kind, hv_link_kind_name(g->intra.kind),          g->intra.plain};
    p = by_host ? host_path(g, a, b) : p;
    leave_island(&p, ia);
    leave_island(&p, ib);
    return p;
}

/* How closely an end of a link ("v[3]", "v", "west") names this node: 3, 2, 1, or 0 for not at all.
 */
static int match_end(const struct hv_node_group *g, uint32_t node, const char *end)
{
    size_t n = strlen(g->name);
    if (strncmp(end, g->name, n) == 0 && end[n] == '[') {
        return strtoul(end + n + 1, NULL, 10) == node - g->first_node ? 3 : 0;
    }
    if (strcmp(end, g->name) == 0) {
        return 2;
    }
    return g->zone && strcmp(end, g->zone) == 0 ? 1 : 0;
}

static int match_link(const struct hv_network_link *l, const struct hv_node_group *ga, uint32_t a,
                      const struct hv_node_group *gb, uint32_t b)
{
    int x = match_end(ga, a, l->a), y = match_end(gb, b, l->b);
    int u = match_end(ga, a, l->b), v = match_end(gb, b, l->a);
    int straight = x && y ? x + y : 0, crossed = u && v ? u + v : 0;
    return straight > crossed ? straight : crossed;
}

const struct hv_network_link *hv_cluster_link(const struct hv_cluster *c, uint32_t node_a,
                                              uint32_t node_b)
{
    const struct hv_node_group *ga = hv_cluster_group_of_node(c, node_a);
    const struct hv_node_group *gb = hv_cluster_group_of_node(c, node_b);
    const struct hv_network_link *best = NULL;
    int best_match = 0;
    for (size_t i = 0; i < c->n_links; i++) {
        int m = match_link(&c->links[i], ga, node_a, gb, node_b);
        if (m > best_match) {
            best_match = m;
            best = &c->links[i];
        }
    }
    return best;
}

/* True where an end of a link names this group or a node of it, not its zone alone. */
static bool names_group(const struct hv_node_group *g, const char *end)
{
    size_t n = strlen(g->name);
    return strncmp(end, g->name, n) == 0 && (end[n] == '[' || end[n] == '\0');
}

/* True where all nodes of both groups have the same figures to and from every node of the cluster,
 * and to each other. */
static bool matrix_alike(const struct hv_cluster *c, const double *matrix,
                         const struct hv_node_group *a, const struct hv_node_group *b)
{
    size_t n = c->n_nodes, first = a->first_node;
    const double *inside = NULL; /* the figure between two of these nodes */
    for (size_t i = 0; matrix != NULL && i < (size_t)a->count + b->count; i++) {
        size_t x = i < a->count ? first + i : b->first_node + (i - a->count);
        for (size_t k = 0; k < n; k++) {
            bool own = k - first < a->count || k - b->first_node < b->count;
            const double *out = &matrix[x * n + k], *in = &matrix[k * n + x];
            inside = own && k != x && inside == NULL ? out : inside;
            const double *want_out = own ? inside : &matrix[first * n + k];
            const double *want_in = own ? inside : &matrix[k * n + first];
            if (k != x && (hv_compare_numbers(*out, *want_out) != 0 ||
                           hv_compare_numbers(*in, *want_in) != 0)) {
                return false;
            }
        }
    }
    return true;
}

bool hv_cluster_network_alike(const struct hv_cluster *c, const struct hv_node_group *a,
                              const struct hv_node_group *b)
{
    for (size_t i = 0; i < c->n_links; i++) {
        const char *ends[] = {c->links[i].a, c->links[i].b};
        for (size_t e = 0; e < HV_COUNT(ends); e++) {
            if (names_group(a, ends[e]) || names_group(b, ends[e])) {
                return false;
            }
        }
    }
    return matrix_alike(c, c->matrix_bytes_per_s, a, b) &&
           matrix_alike(c, c->matrix_latency_s, a, b);
}

/* How closely a link names two nodes by its ends in order, and crossed. */
struct ways {
    int straight, crossed;
};

static struct ways ways_of(const struct hv_cluster *c, const struct hv_network_link *l,
                           uint32_t from, uint32_t to)
{
    const struct hv_node_group *ga = hv_cluster_group_of_node(c, from);
    const struct hv_node_group *gb = hv_cluster_group_of_node(c, to);
    return (struct ways){match_end(ga, from, l->a) * match_end(gb, to, l->b),
                         match_end(ga, from, l->b) * match_end(gb, to, l->a)};
}

bool hv_cluster_link_backward(const struct hv_cluster *c, const struct hv_network_link *l,
                              uint32_t from, uint32_t to)
{
    struct ways w = ways_of(c, l, from, to);
    return w.crossed > 0 && (w.straight == 0 || from > to); /* between two of one zone: by number */
}

bool hv_cluster_link_either_way(const struct hv_cluster *c, const struct hv_network_link *l,
                                uint32_t from, uint32_t to)
{
    struct ways w = ways_of(c, l, from, to);
    return w.crossed > 0 && w.straight > 0;
}

struct hv_path hv_cluster_node_path(const struct hv_cluster *c, uint32_t node_a, uint32_t node_b)
{
    const struct hv_node_group *ga = hv_cluster_group_of_node(c, node_a);
    const struct hv_node_group *gb = hv_cluster_group_of_node(c, node_b);
    bool far = ga->zone && gb->zone && strcmp(ga->zone, gb->zone) != 0;
    struct hv_path p = {far ? HV_PATH_WAN : HV_PATH_NETWORK,
                        (double)INFINITY,
                        0,
                        gb->nic.bytes_per_s < ga->nic.bytes_per_s ? gb->nic.kind : ga->nic.kind,
                        "network",
                        c->network_plain || (ga->nic.plain && gb->nic.plain)};
    narrow(&p, ga->nic.bytes_per_s, "nic");
    narrow(&p, gb->nic.bytes_per_s, "nic");
    double bytes_per_s = c->network_bytes_per_s, latency_s = hv_or(c->network_latency_s, 0);
    const char *why = "network";
    size_t at = (size_t)node_a * c->n_nodes + node_b;
    if (c->matrix_bytes_per_s && hv_known(c->matrix_bytes_per_s[at])) {
        bytes_per_s = c->matrix_bytes_per_s[at];
        why = "network matrix";
    }
    if (c->matrix_latency_s && hv_known(c->matrix_latency_s[at])) {
        latency_s = c->matrix_latency_s[at];
    }
    const struct hv_network_link *l = c->n_links ? hv_cluster_link(c, node_a, node_b) : NULL;
    if (l) {
        bytes_per_s = hv_or(l->bytes_per_s, bytes_per_s);
        latency_s = hv_or(l->latency_s, latency_s);
        why = "network link";
    }
    narrow(&p, bytes_per_s, why);
    p.latency_s = fmax(ga->nic.latency_s, gb->nic.latency_s) + latency_s;
    return p;
}

/* True where the device link connects devices of this kind. */
static bool on_link(const struct hv_device_kind *k)
{
    return k->cls != HV_CLASS_CPU;
}

struct hv_path hv_node_group_path(const struct hv_node_group *g, uint32_t slot_a, uint32_t slot_b)
{
    if (slot_a == slot_b) {
        return (struct hv_path){HV_PATH_SELF,
                                hv_node_kind_at(g, slot_a)->memory_bytes_per_s,
                                0,
                                HV_LINK_OTHER,
                                "memory",
                                false};
    }
    return path_in_node(g, slot_a, slot_b);
}

struct hv_path hv_cluster_path(const struct hv_cluster *c, uint32_t a, uint32_t b)
{
    struct hv_device_ref ra = hv_cluster_device(c, a), rb = hv_cluster_device(c, b);
    if (ra.node == rb.node) {
        return hv_node_group_path(&c->groups[ra.group], ra.slot, rb.slot);
    }
    const struct hv_node_group *ga = &c->groups[ra.group], *gb = &c->groups[rb.group];
    if (ga == gb && hv_node_group_domain(ga, ra.node) == hv_node_group_domain(ga, rb.node) &&
        on_link(ra.kind) && on_link(rb.kind)) {
        return (struct hv_path){HV_PATH_DOMAIN,
                                ga->intra.bytes_per_s,
                                ga->intra.latency_s,
                                ga->intra.kind,
                                hv_link_kind_name(ga->intra.kind),
                                ga->intra.plain};
    }
    struct hv_path p = hv_cluster_node_path(c, ra.node, rb.node);
    narrow(&p, fmin(hv_node_flow_bytes_per_s(ga), hv_node_flow_bytes_per_s(gb)), "nic");
    return p;
}
