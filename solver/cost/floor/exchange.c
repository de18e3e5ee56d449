/*
 * The least that an exchange between tensor-parallel ranks can take on a cluster, wherever they
 * are placed: over the slowest link that so many ranks cannot avoid. User: cells.c.
 *
 * Proof. The cost model prices an exchange by the forms of collective.c on the shape of its group
 * (shape.c). Let a device of kind d be one of t members.
 * - All in one house (a node or a link domain): possible only where a house with a d has t devices
 *   of its fabric. The rate is that of the tightest link between members, so of no more than any
 *   link kind of that house by its own curve; factors of calibration are the least of all members.
 *   A ring moves 2 (t-1)/t of the bytes of an all-reduce, (t-1)/t of a half; a tree moves more;
 *   switches that reduce move 1 + 1/t.
 * - In k ≥ 2 houses, k ≥ t over the most devices of a house. A house of d gets at most its NICs,
 *   those next to its members, and the fastest element between nodes. A ring moves (t-1)/t once or
 *   twice at no more than that; a tree more; the hierarchical form (k-1)/k at that and (q-1)/q
 *   inside with q ≥ t/k members in the largest house. The latter is concave in k: its least is at
 *   either end, at k = t a ring. A message between nodes waits for their NICs once per pass.
 * Shares of a rate are the best of any message up to the largest.
 */
#include "solver/cost/floor/exchange.h"

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/cost/network/collective_int.h"

#include <math.h>
#include <stdlib.h>

/* Best share that messages of up to so many bytes get. */
static double best_share(const struct hv_link_curve *l, double bytes)
{
    double best = hv_link_share(l, bytes);
    for (int i = 0; i < HV_CURVE_POINTS && l->at[i].bytes > 0 && l->at[i].bytes < bytes; i++) {
        best = fmax(best, l->at[i].share);
    }
    return best;
}

/* Devices of a node that one group with a device of kind `d` may have. */
static double peers_in_node(const struct hv_node_group *g, const struct hv_device_kind *d)
{
    double n = 0;
    for (size_t s = 0; s < g->n_slots; s++) {
        n += hv__same_fabric(g->slots[s].kind, d) ? g->slots[s].count : 0;
    }
    return n;
}

bool hv__some_plain_network(const struct hv_cluster *c)
{
    bool plain = c->network_plain;
    for (size_t g = 0; g < c->n_groups; g++) {
        plain = plain || c->groups[g].nic.plain;
    }
    return plain;
}

static double nodes_in_house(const struct hv_node_group *g)
{
    return g->domain_nodes > 1 ? fmin(g->domain_nodes, g->count) : 1;
}

static bool has_kind(const struct hv_node_group *g, const struct hv_device_kind *d)
{
    for (size_t s = 0; s < g->n_slots; s++) {
        if (g->slots[s].kind == d) {
            return true;
        }
    }
    return false;
}

/* ---- what the cluster has -----------------------------------------------------------------------
 */

typedef HV_VEC(struct hv__house_link) link_list;

static void add_link(link_list *list, const struct hv_link *link, const struct hv_device_kind *a,
                     double devices)
{
    enum hv_link_class class = link->plain ? HV_CURVE_PLAIN : hv_link_class_of(link->kind, a);
    const struct hv__house_link x = {class, devices, link->bytes_per_s};
    hv_vec_push(list, x);
}

/* Lists the links of a house with a device `d`; through the host where that has no fabric. */
static void add_house(link_list *list, const struct hv_node_group *g,
                      const struct hv_device_kind *d)
{
    bool by_host = d->cls == HV_CLASS_CPU || d->fabric == NULL;
    const struct hv_link host = {HV_LINK_HOST, hv_or(d->pcie_bytes_per_s, HUGE_VAL), 0, false};
    double devices = nodes_in_house(g) * peers_in_node(g, d);
    for (size_t s = 0; s < g->n_slots; s++) {
        const struct hv_device_kind *a = g->slots[s].kind;
        add_link(list, &g->intra, a, devices);
        for (size_t i = 0; i < g->n_islands; i++) {
            add_link(list, &g->islands[i].link, a, devices);
        }
        if (by_host) {
            add_link(list, &host, a, devices);
        }
    }
}

/* By class, larger houses and then faster links first. */
static int by_class(const void *a, const void *b)
{
    const struct hv__house_link *x = a, *y = b;
    if (x->class != y->class) {
        return x->class < y->class ? -1 : 1;
    }
    if (x->devices != y->devices) {
        return x->devices > y->devices ? -1 : 1;
    }
    return (x->bytes_per_s < y->bytes_per_s) - (x->bytes_per_s > y->bytes_per_s);
}

/* Keeps the links that are faster than all of larger houses. */
static void keep_fastest(link_list *list, struct hv_arena *arena, struct hv__reach *out)
{
    size_t n = 0;
    if (list->n > 0) {
        qsort(list->items, list->n, sizeof *list->items, by_class);
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct hv__house_link *x = &list->items[i], *last = &list->items[n > 0 ? n - 1 : 0];
        if (n == 0 || last->class != x->class || last->bytes_per_s < x->bytes_per_s) {
            list->items[n++] = *x;
        }
    }
    out->links = hv_arena_copy(arena, list->items, n, sizeof *list->items);
    out->n_links = n;
}

/* Fastest element between two nodes besides their NICs. */
static double fastest_element(const struct hv_cluster *c)
{
    double best = hv_or(c->network_bytes_per_s, HUGE_VAL);
    size_t n = c->matrix_bytes_per_s ? (size_t)c->n_nodes * c->n_nodes : 0;
    for (size_t i = 0; i < n; i++) {
        best = fmax(best, hv_or(c->matrix_bytes_per_s[i], 0));
    }
    for (size_t i = 0; i < c->n_links; i++) {
        best = fmax(best, hv_or(c->links[i].bytes_per_s, 0));
    }
    return best;
}

/* Fastest link in a house of this group. */
static double fastest_link(const struct hv_node_group *g)
{
    double rate = g->intra.bytes_per_s;
    for (size_t i = 0; i < g->n_islands; i++) {
        rate = fmax(rate, g->islands[i].link.bytes_per_s);
    }
    for (size_t s = 0; s < g->n_slots; s++) {
        rate = fmax(rate, hv_or(g->slots[s].kind->pcie_bytes_per_s, HUGE_VAL));
    }
    return rate;
}

/* Over the network from a house of the group. */
static void look_at_network(const struct hv_node_group *g, struct hv__reach *r)
{
    double nic = hv_or(g->nic.bytes_per_s, HUGE_VAL);
    double flows = hv_or(hv_node_flow_bytes_per_s(g), HUGE_VAL) * g->n_devices;
    double rate = nodes_in_house(g) * fmin(fmin(nic, flows), r->element_bytes_per_s);
    r->net_bytes_per_s = fmax(r->net_bytes_per_s, rate);
    r->net_wait_s = fmin(r->net_wait_s, hv_or(g->nic.latency_s, 0));
}

struct hv__reach hv__reach_of(const struct hv_cluster *c, const struct hv_device_kind *d,
                              struct hv_arena *arena)
{
    struct hv__reach r = {.in_house = 1,
                          .element_bytes_per_s = fastest_element(c),
                          .net_wait_s = HUGE_VAL,
                          .net = hv__some_plain_network(c) ? HV_CURVE_PLAIN : HV_CURVE_NETWORK};
    link_list list = {0};
    for (size_t g = 0; g < c->n_groups; g++) {
        const struct hv_node_group *x = &c->groups[g];
        double peers = peers_in_node(x, d);
        r.devices += peers * x->count;
        r.in_house = fmax(r.in_house, nodes_in_house(x) * peers);
        r.house_bytes_per_s = fmax(r.house_bytes_per_s, fastest_link(x));
        if (has_kind(x, d)) {
            add_house(&list, x, d);
            look_at_network(x, &r);
        }
    }
    keep_fastest(&list, arena, &r);
    hv_vec_free(&list);
    double factor = 1; /* the least of all members counts */
    for (size_t i = 0; i < c->n_kinds; i++) {
        factor = fmax(factor, hv_device_calibration(c->kinds[i])->v[HV_CAL_NODE_LINKS]);
    }
    r.house_bytes_per_s *= factor;
    return r;
}

/* ---- the least of an exchange -------------------------------------------------------------------
 */

static void take_least(struct hv__least_exchange *e, double start_s, double per_byte_s)
{
    e->start_s = fmin(e->start_s, start_s);
    e->per_byte_s = fmin(e->per_byte_s, per_byte_s);
}

/* Inside a house over one of its links. */
static void take_link(const struct hv__exchange_query *q, const struct hv__house_link *link,
                      struct hv__least_exchange out[2])
{
    bool plain = link->class == HV_CURVE_PLAIN;
    double factor = plain ? 1 : hv_device_calibration(q->device)->v[HV_CAL_NODE_LINKS];
    double rate = link->bytes_per_s * factor;
    const struct hv_link_curve *ring = hv_link_curve(link->class, HV_USE_RING);
    const struct hv_link_curve *reduces = hv_link_curve(link->class, HV_USE_SWITCH);
    double once = (q->least - 1) / q->least / (rate * best_share(ring, q->bytes));
    take_least(&out[0], ring->start_s, 2 * once);
    take_least(&out[1], ring->start_s, once);
    if (reduces) {
        take_least(&out[0], reduces->start_s,
                   (1 + 1 / q->most) / (rate * best_share(reduces, q->bytes / q->least)));
    }
}

/* Over the network. */
static void take_network(const struct hv__exchange_query *q, struct hv__least_exchange out[2])
{
    const struct hv__reach *r = q->reach;
    const struct hv_link_curve *ring = hv_link_curve(r->net, HV_USE_RING);
    double factor = hv_device_calibration(q->device)->v[HV_CAL_NETWORK];
    double t = q->least, rate = r->net_bytes_per_s;
    rate *= (r->net == HV_CURVE_PLAIN ? fmax(1, factor) : factor) * best_share(ring, q->bytes);
    double k = fmax(2, ceil(t / r->in_house));
    double levels = (k - 1) / k / rate + fmax(0, 1 - k / t) / r->house_bytes_per_s;
    double once = fmin((t - 1) / t / rate, levels);
    take_least(&out[0], ring->start_s + 2 * r->net_wait_s, 2 * once);
    take_least(&out[1], ring->start_s + r->net_wait_s, once);
}

void hv__least_exchange(const struct hv__exchange_query *q, struct hv__least_exchange out[2])
{
    out[0] = out[1] = (struct hv__least_exchange){HUGE_VAL, HUGE_VAL};
    for (size_t i = 0; i < q->reach->n_links; i++) {
        if (q->reach->links[i].devices >= q->least) {
            take_link(q, &q->reach->links[i], out);
        }
    }
    take_network(q, out);
    if (!isfinite(out[0].per_byte_s)) { /* no group of the cluster has that kind */
        out[0] = out[1] = (struct hv__least_exchange){0, 0};
    }
}
