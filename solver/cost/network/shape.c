/*
 * The shape of a group: which members share a node or a link domain, and the tightest links inside
 * and between. Prices of collectives are in collective.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/network/collective_int.h"

/* Message size at which links of one nominal rate are compared. */
#define TIE_BYTES (64.0 * 1024 * 1024)

struct seat {
    uint32_t house, device;
    size_t mention; /**< position in the query of the first member of its house */
    struct hv_device_ref at;
};

/* A list of seats that share something. */
struct span {
    const struct seat *s;
    size_t n;
};

/** Numbers of devices rise house by house. */
static int by_device(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;
    return a->device < b->device ? -1 : a->device > b->device;
}

static int by_mention(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;
    if (a->mention != b->mention) {
        return a->mention < b->mention ? -1 : 1;
    }
    return by_device(x, y);
}

/** Puts members of a house together, houses in the order in which the query names them: a ring
 * follows the ranks of the plan, not the order of node groups in the cluster's file. */
static void sort_seats(struct seat *seats, size_t n)
{
    qsort(seats, n, sizeof *seats, by_device);
    for (size_t i = 0, last; i < n; i = last) {
        size_t first = seats[i].mention;
        for (last = i + 1; last < n && seats[last].house == seats[i].house; last++) {
            first = seats[last].mention < first ? seats[last].mention : first;
        }
        for (size_t k = i; k < last; k++) {
            seats[k].mention = first;
        }
    }
    qsort(seats, n, sizeof *seats, by_mention);
}

bool hv__same_fabric(const struct hv_device_kind *a, const struct hv_device_kind *b)
{
    return a->fabric == b->fabric || (a->fabric && b->fabric && !strcmp(a->fabric, b->fabric));
}

static const struct hv_island *shared_island(const struct hv_node_group *g, uint32_t slot)
{
    for (size_t i = 0; i < g->n_islands; i++) {
        const struct hv_island *x = &g->islands[i];
        if (x->shared && slot >= x->first && slot < x->first + x->count) {
            return x;
        }
    }
    return NULL;
}

/* Members that divide the link of this member's island, when all of it hangs on one link. */
static double sharers(const struct hv_cluster *c, struct span house, const struct seat *s)
{
    const struct hv_island *x = shared_island(&c->groups[s->at.group], s->at.slot);
    double n = 0;
    for (size_t k = 0; x && k < house.n; k++) {
        const struct hv_device_ref *r = &house.s[k].at;
        n += r->node == s->at.node && r->slot >= x->first && r->slot < x->first + x->count;
    }
    return n > 1 ? n : 1;
}

/* Members on the node of seat k. */
static double neighbours(struct span house, size_t k)
{
    size_t first = k, last = k + 1;
    while (first > 0 && house.s[first - 1].at.node == house.s[k].at.node) {
        first--;
    }
    while (last < house.n && house.s[last].at.node == house.s[k].at.node) {
        last++;
    }
    return (double)(last - first);
}

/* True where a ring over the first of two classes of links with the same nominal rate reaches a
 * smaller share of it. Decides between equal links, so that the order of members does not. */
static bool is_slower_class(enum hv_link_class x, enum hv_link_class y)
{
    double of_x = hv_link_share(hv_link_curve(x, HV_USE_RING), TIE_BYTES);
    double of_y = hv_link_share(hv_link_curve(y, HV_USE_RING), TIE_BYTES);
    return of_x < of_y || (of_x <= of_y && x < y);
}

/* The link from member k to the next: on a full mesh a member uses its links to all peers at once.
 */
static void take_house_link(const struct hv_cluster *c, struct span house, size_t k,
                            struct hv__shape *s)
{
    const struct seat *a = &house.s[k], *b = &house.s[k + 1 < house.n ? k + 1 : 0];
    struct hv_path p = hv_cluster_path(c, a->device, b->device);
    double rate = p.bytes_per_s / (p.level == HV_PATH_ISLAND ? sharers(c, house, a) : 1);
    if (p.kind == HV_LINK_XGMI || p.kind == HV_LINK_HCCS) {
        uint32_t peers = c->groups[a->at.group].n_devices;
        rate *= p.level == HV_PATH_NODE && peers > 2 ? neighbours(house, k) - 1 : 1;
    }
    enum hv_link_class class = hv_link_class_of_path(&p, a->at.kind);
    if (rate < s->house_bytes_per_s ||
        (rate <= s->house_bytes_per_s && is_slower_class(class, s->link))) {
        s->house_bytes_per_s = rate;
        s->house_why = p.why;
        s->link = class;
    }
    s->house_alpha_s = fmax(s->house_alpha_s, p.latency_s);
}

/* True where all pairs of devices in the group's houses have equal links: then one pair represents
 * all. */
static bool uniform(const struct hv_node_group *g)
{
    return g->n_slots == 1 && g->n_islands == 0 && g->slots[0].kind->cls != HV_CLASS_CPU;
}

static void look_inside(const struct hv_cluster *c, struct span house, struct hv__shape *s)
{
    s->per_house = fmax(s->per_house, (double)house.n);
    if (house.n < 2) {
        return;
    }
    const struct hv_node_group *g = &c->groups[house.s[0].at.group];
    bool mesh = g->intra.kind == HV_LINK_XGMI || g->intra.kind == HV_LINK_HCCS;
    size_t look = uniform(g) && !mesh ? 1 : house.n;
    for (size_t k = 0; k < look; k++) {
        take_house_link(c, house, k, s);
    }
}

/* Per-node rate of the network between two neighbouring houses. */
static void take_net_link(const struct hv_cluster *c, uint32_t a, uint32_t b, struct hv__shape *s)
{
    struct hv_path p = hv_cluster_node_path(c, a, b);
    s->net_alpha_s = fmax(s->net_alpha_s, p.latency_s);
    s->net = p.plain ? s->net : HV_CURVE_NETWORK;
    if (!(s->net_bytes_per_s <= p.bytes_per_s)) {
        s->net_bytes_per_s = p.bytes_per_s;
        s->net_why = p.why;
    }
}

/* Network rate of all members of a house together: per node its share of the path, but per member
 * at most the rate of the NICs next to it. */
static double house_net(const struct hv_cluster *c, struct span house, double node_bytes_per_s,
                        double together)
{
    double sum = 0;
    for (size_t i = 0, last; i < house.n; i = last) {
        for (last = i + 1; last < house.n && house.s[last].at.node == house.s[i].at.node; last++)
            ;
        double own = hv_node_flow_bytes_per_s(&c->groups[house.s[i].at.group]);
        sum += fmin(node_bytes_per_s / together, (double)(last - i) * own);
    }
    return sum;
}

static struct span next_house(struct span all, size_t from)
{
    size_t last = from + 1;
    while (last < all.n && all.s[last].house == all.s[from].house) {
        last++;
    }
    return (struct span){all.s + from, last - from};
}

static void look_around(const struct hv_cluster *c, struct span all, double together,
                        struct hv__shape *s)
{
    uint32_t before = all.s[all.n - 1].house, before_node = all.s[all.n - 1].at.node;
    for (size_t i = 0; i < all.n;) {
        struct span house = next_house(all, i);
        if (before != house.s[0].house) {
            take_net_link(c, before_node, house.s[0].at.node, s);
        }
        look_inside(c, house, s);
        before = house.s[0].house;
        before_node = house.s[house.n - 1].at.node;
        s->houses++;
        i += house.n;
    }
    double node_rate = s->net_bytes_per_s;
    for (size_t i = 0; s->houses > 1 && i < all.n;) {
        struct span house = next_house(all, i);
        double rate = house_net(c, house, node_rate, together);
        s->net_bytes_per_s = i == 0 ? rate : fmin(s->net_bytes_per_s, rate);
        i += house.n;
    }
}

struct hv__shape hv__shape_of(const struct hv_cluster *c, const struct hv_collective_query *q)
{
    struct hv__shape s = {.n = (double)q->n,
                          .house_bytes_per_s = HUGE_VAL,
                          .net_bytes_per_s = HUGE_VAL,
                          .host_bytes_per_s = HUGE_VAL,
                          .memory_bytes_per_s = HUGE_VAL,
                          .link = HV_CURVE_NETWORK,
                          .net = HV_CURVE_PLAIN,
                          .house_factor = HUGE_VAL,
                          .net_factor = HUGE_VAL,
                          .connected = true};
    struct seat *seats = hv_xmalloc(q->n * sizeof *seats);
    bool sorted = true;
    for (size_t i = 0; i < q->n; i++) {
        struct hv_device_ref r = hv_cluster_device(c, q->devices[i]);
        uint32_t house = hv_node_group_domain(&c->groups[r.group], r.node);
        seats[i] = (struct seat){house, q->devices[i], i, r};
        s.connected = s.connected && hv__same_fabric(r.kind, seats[0].at.kind);
        s.host_bytes_per_s = fmin(s.host_bytes_per_s, hv_or(r.kind->pcie_bytes_per_s, HUGE_VAL));
        s.memory_bytes_per_s =
            fmin(s.memory_bytes_per_s,
                 hv_or(c->groups[r.group].host_memory_bytes_per_s, HV_HOST_MEMORY_BYTES_PER_S));
        const struct hv_calibration *known = hv_device_calibration(r.kind);
        s.house_factor = fmin(s.house_factor, known->v[HV_CAL_NODE_LINKS]);
        s.net_factor = fmin(s.net_factor, known->v[HV_CAL_NETWORK]);
        sorted = sorted && (i == 0 || seats[i - 1].device < seats[i].device);
    }
    if (!sorted) {
        sort_seats(seats, q->n);
    }
    for (size_t i = 0; i < q->n; i++) {
        s.nodes += i == 0 || seats[i].at.node != seats[i - 1].at.node;
    }
    look_around(c, (struct span){seats, q->n}, fmax(q->together, 1), &s);
    free(seats);
    s.house_factor = s.link == HV_CURVE_PLAIN ? 1 : s.house_factor;
    s.net_factor = s.net == HV_CURVE_PLAIN ? 1 : s.net_factor;
    s.reduces = s.houses == 1 && hv_link_class_reduces(s.link);
    return s;
}
