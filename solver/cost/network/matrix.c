/*
 * All-to-alls of unequal parts: flows of a matrix are summed on the elements that they share, and
 * the busiest element sets the time. Steps, starts and curves are those of even all-to-alls
 * (collective.c), by the mean message of each element.
 */
#include "solver/cost/network/matrix.h"

#include <math.h>
#include <stdlib.h>

#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/link_curve.h"
#include "solver/cost/network/collective_int.h"

/* Way from one member to another. */
enum way {
    WAY_SELF,
    WAY_PORT, /* over the device link; a shared island of either end carries it too */
    WAY_MESH, /* over the link between these two devices alone */
    WAY_ISLE, /* inside one shared island */
    WAY_NET,  /* over the network between nodes */
    WAY_NONE  /* other fabrics */
};

struct member {
    uint32_t node, house; /* positions in the lists of the group */
    uint32_t at;          /* position among the members of the house */
    int island;           /* shared island, or -1 */
    enum hv_link_class link;
    double house_alpha_s, flow_bytes_per_s, house_factor;
};

struct node {
    uint32_t id;
    double net_factor;
    enum hv_link_class net; /* plain, or the network */
};

/* A link domain: one node, or nodes that one fabric joins. */
struct house {
    uint32_t id;       /* hv_node_group_domain */
    uint32_t *members; /* of the group, in its order */
    uint32_t n;
};

/* Network between two nodes of the group. */
struct between {
    double out_s_per_byte, in_s_per_byte; /* at the NICs of either end */
    double pair_s_per_byte;               /* of the pair alone; 0: no figure of its own */
    double latency_s;
    int link; /* named one, 2 × its number + 1 backwards; -1: none */
};

struct island {
    uint32_t node, first; /* first slot */
    double bytes_per_s;
};

/* Members [from, to) of one node. */
struct run {
    size_t from, to, node;
};

struct hv_ways {
    const struct hv_cluster *c;
    size_t n, n_nodes, n_houses, n_islands, per_house, n_runs;
    struct run *runs;
    bool *far; /* [n × runs] all between the member and those of the run goes over the network */
    struct member *members;
    struct node *nodes;
    struct house *houses;
    struct island *islands;
    unsigned char *way;   /* [n × n] enum way */
    double *s_per_byte;   /* [n × n] of the device link */
    struct between *nets; /* [nodes × nodes] */
};

static uint32_t node_at(struct hv_ways *w, uint32_t id, const struct hv_device_kind *kind)
{
    bool plain = w->c->network_plain || hv_cluster_group_of_node(w->c, id)->nic.plain;
    double factor = plain ? 1 : hv_device_calibration(kind)->v[HV_CAL_NETWORK];
    for (size_t i = w->n_nodes; i-- > 0;) {
        if (w->nodes[i].id == id) {
            w->nodes[i].net_factor = fmin(w->nodes[i].net_factor, factor);
            return (uint32_t)i;
        }
    }
    w->nodes[w->n_nodes] = (struct node){id, factor, plain ? HV_CURVE_PLAIN : HV_CURVE_NETWORK};
    return (uint32_t)w->n_nodes++;
}

static uint32_t house_at(struct hv_ways *w, uint32_t id)
{
    for (size_t i = w->n_houses; i-- > 0;) {
        if (w->houses[i].id == id) {
            return (uint32_t)i;
        }
    }
    w->houses[w->n_houses].id = id;
    return (uint32_t)w->n_houses++;
}

static int island_at(struct hv_ways *w, const struct hv_device_ref *r)
{
    const struct hv_node_group *g = &w->c->groups[r->group];
    for (size_t i = 0; i < g->n_islands; i++) {
        const struct hv_island *x = &g->islands[i];
        if (!x->shared || r->slot < x->first || r->slot >= x->first + x->count) {
            continue;
        }
        for (size_t k = 0; k < w->n_islands; k++) {
            if (w->islands[k].node == r->node && w->islands[k].first == x->first) {
                return (int)k;
            }
        }
        w->islands[w->n_islands] = (struct island){r->node, x->first, x->link.bytes_per_s};
        return (int)w->n_islands++;
    }
    return -1;
}

static void place_members(struct hv_ways *w, const struct hv_device_ref *refs)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct hv_device_ref *r = &refs[i];
        const struct hv_node_group *g = &w->c->groups[r->group];
        struct member *m = &w->members[i];
        *m = (struct member){.node = node_at(w, r->node, r->kind),
                             .house = house_at(w, hv_node_group_domain(g, r->node)),
                             .island = island_at(w, r),
                             .link = HV_CURVE_NETWORK,
                             .flow_bytes_per_s = hv_node_flow_bytes_per_s(g),
                             .house_factor = hv_device_calibration(r->kind)->v[HV_CAL_NODE_LINKS]};
        struct house *h = &w->houses[m->house];
        m->at = h->n++;
        w->per_house = h->n > w->per_house ? h->n : w->per_house;
    }
    for (size_t i = 0; i < w->n_houses; i++) {
        w->houses[i].members = hv_xcalloc(w->houses[i].n, sizeof *w->houses[i].members);
    }
    for (size_t i = 0; i < w->n; i++) {
        w->houses[w->members[i].house].members[w->members[i].at] = (uint32_t)i;
    }
}

/* The way from member a to member b. */
static void find_way(struct hv_ways *w, const uint32_t *devices, const struct hv_device_ref *refs,
                     size_t a, size_t b)
{
    struct member *m = &w->members[a];
    size_t at = a * w->n + b;
    if (devices[a] == devices[b]) {
        w->way[at] = WAY_SELF;
        return;
    }
    if (!hv__same_fabric(refs[a].kind, refs[b].kind)) {
        w->way[at] = WAY_NONE;
        return;
    }
    if (m->house != w->members[b].house) {
        w->way[at] = WAY_NET;
        return;
    }
    struct hv_path p = hv_cluster_path(w->c, devices[a], devices[b]);
    if (p.level >= HV_PATH_NETWORK) {
        w->way[at] = WAY_NET;
        return;
    }
    bool mesh = p.level == HV_PATH_NODE && (p.kind == HV_LINK_XGMI || p.kind == HV_LINK_HCCS);
    bool isle = p.level == HV_PATH_ISLAND && m->island >= 0 && m->island == w->members[b].island;
    w->way[at] = mesh ? WAY_MESH : isle ? WAY_ISLE : WAY_PORT;
    w->s_per_byte[at] = p.bytes_per_s > 0 ? 1 / p.bytes_per_s : HUGE_VAL;
    m->house_alpha_s = fmax(m->house_alpha_s, p.latency_s);
    m->link = hv_link_class_of_path(&p, refs[a].kind);
    m->house_factor = m->link == HV_CURVE_PLAIN ? 1 : m->house_factor;
}

static void find_net(struct hv_ways *w, size_t i, size_t j)
{
    const struct hv_cluster *c = w->c;
    uint32_t from = w->nodes[i].id, to = w->nodes[j].id;
    struct between *x = &w->nets[i * w->n_nodes + j];
    const struct hv_network_link *link = c->n_links ? hv_cluster_link(c, from, to) : NULL;
    struct hv_path p = hv_cluster_node_path(c, from, to);
    *x = (struct between){
        .out_s_per_byte = 1 / hv__node_rate(c, hv_cluster_group_of_node(c, from), link),
        .in_s_per_byte = 1 / hv__node_rate(c, hv_cluster_group_of_node(c, to), link),
        .latency_s = p.latency_s,
        .link = -1};
    if (link && hv_known(link->bytes_per_s)) {
        size_t number = (size_t)(link - c->links);
        x->link = (int)(2 * number + hv_cluster_link_backward(c, link, from, to));
    }
    if (c->matrix_bytes_per_s) {
        x->pair_s_per_byte = 1 / p.bytes_per_s;
    }
}

static void find_runs(struct hv_ways *w)
{
    w->runs = hv_xcalloc(w->n + 1, sizeof *w->runs);
    for (size_t i = 0; i < w->n; i++) {
        if (w->n_runs == 0 || w->runs[w->n_runs - 1].node != w->members[i].node) {
            w->runs[w->n_runs++] = (struct run){.from = i, .node = w->members[i].node};
        }
        w->runs[w->n_runs - 1].to = i + 1;
    }
    w->far = hv_xcalloc(w->n * w->n_runs + 1, sizeof *w->far);
    for (size_t a = 0; a < w->n; a++) {
        for (size_t r = 0; r < w->n_runs; r++) {
            bool far = true;
            for (size_t b = w->runs[r].from; b < w->runs[r].to; b++) {
                far = far && w->way[a * w->n + b] == WAY_NET && w->way[b * w->n + a] == WAY_NET;
            }
            w->far[a * w->n_runs + r] = far;
        }
    }
}

struct hv_ways *hv_ways_new(const struct hv_cluster *c, const uint32_t *devices, size_t n)
{
    struct hv_ways *w = hv_xcalloc(1, sizeof *w);
    size_t room = n ? n : 1;
    struct hv_device_ref *refs = hv_xcalloc(room, sizeof *refs);
    w->c = c;
    w->n = n;
    w->members = hv_xcalloc(room, sizeof *w->members);
    w->nodes = hv_xcalloc(room, sizeof *w->nodes);
    w->houses = hv_xcalloc(room, sizeof *w->houses);
    w->islands = hv_xcalloc(room, sizeof *w->islands);
    w->way = hv_xcalloc(room * room, sizeof *w->way);
    w->s_per_byte = hv_xcalloc(room * room, sizeof *w->s_per_byte);
    for (size_t i = 0; i < n; i++) {
        refs[i] = hv_cluster_device(c, devices[i]);
    }
    place_members(w, refs);
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            find_way(w, devices, refs, a, b);
        }
    }
    w->nets = hv_xcalloc(w->n_nodes * w->n_nodes + 1, sizeof *w->nets);
    for (size_t i = 0; i < w->n_nodes; i++) {
        for (size_t j = 0; j < w->n_nodes; j++) {
            if (i != j) {
                find_net(w, i, j);
            }
        }
    }
    find_runs(w);
    free(refs);
    return w;
}

size_t hv_ways_house(const struct hv_ways *w, size_t member)
{
    return w->members[member].house;
}

bool hv_ways_even(const struct hv_ways *w)
{
    return w->c->n_links == 0 && !w->c->matrix_bytes_per_s && !w->c->matrix_latency_s;
}

void hv_ways_free(struct hv_ways *w)
{
    if (!w) {
        return;
    }
    for (size_t i = 0; i < w->n_houses; i++) {
        free(w->houses[i].members);
    }
    free(w->members);
    free(w->nodes);
    free(w->houses);
    free(w->islands);
    free(w->way);
    free(w->s_per_byte);
    free(w->nets);
    free(w->runs);
    free(w->far);
    free(w);
}

/* Bytes of the flows over one direction of an element, and at which nominal rate. */
struct load {
    double bytes, flows, busy_s;
};

static void add(struct load *l, double bytes, double s_per_byte)
{
    l->bytes += bytes;
    l->flows++;
    l->busy_s += bytes * s_per_byte;
}

/* Loads of all elements; arrays of [2], where it has two directions: out and in. */
struct loads {
    struct load *ports[2], *own[2]; /* [n] device link; network flows of the device */
    struct load *isles[2];          /* [islands] */
    struct load *nets;              /* [nodes × nodes] */
    double mesh_s;                  /* busiest link of a mesh, nominal */
    struct load mesh;               /* its load */
    uint32_t mesh_member;
    bool apart; /* bytes between members that are not connected */
};

/* What one exchange costs. */
struct result {
    double bytes_s, start_s, steps_s, messages, house_bytes, network_bytes;
    const char *why;
};

/* How flows inside houses and between them go together. */
enum together { AT_ONCE, IN_TURN, APART };

/* An exchange of one kind of hops. */
struct hop {
    const struct hv_ways *w;
    const double *bytes;
    double scale;
    bool back;
    double members;  /* that one exchanges with, itself included: curves are by whole buffers */
    double together; /* groups on the network */
    enum together flows;
};

static struct loads loads_new(const struct hv_ways *w)
{
    struct loads l = {0};
    for (int d = 0; d < 2; d++) {
        l.ports[d] = hv_xcalloc(w->n + 1, sizeof **l.ports);
        l.own[d] = hv_xcalloc(w->n + 1, sizeof **l.own);
        l.isles[d] = hv_xcalloc(w->n_islands + 1, sizeof **l.isles);
    }
    l.nets = hv_xcalloc(w->n_nodes * w->n_nodes + 1, sizeof *l.nets);
    return l;
}

static void loads_free(struct loads *l)
{
    for (int d = 0; d < 2; d++) {
        free(l->ports[d]);
        free(l->own[d]);
        free(l->isles[d]);
    }
    free(l->nets);
}

static void add_inside(const struct hv_ways *w, size_t a, size_t b, double bytes, struct loads *l)
{
    size_t at = a * w->n + b;
    int from = w->members[a].island, to = w->members[b].island;
    bool mesh = w->way[at] == WAY_MESH, isle = w->way[at] == WAY_ISLE;
    double nominal = mesh || isle ? 0 : w->s_per_byte[at];
    add(&l->ports[0][a], bytes, nominal);
    add(&l->ports[1][b], bytes, nominal);
    if (mesh && bytes * w->s_per_byte[at] > l->mesh_s) {
        l->mesh_s = bytes * w->s_per_byte[at];
        l->mesh_member = (uint32_t)a;
    }
    if (from >= 0 && !mesh) {
        add(&l->isles[0][from], bytes, 1 / w->islands[from].bytes_per_s);
    }
    if (to >= 0 && !mesh && !isle) {
        add(&l->isles[1][to], bytes, 1 / w->islands[to].bytes_per_s);
    }
}

/* The flow of one pair of members inside a node, or between two. */
static void add_pair(const struct hop *h, size_t from, size_t to, double bytes, struct loads *l)
{
    const struct hv_ways *w = h->w;
    enum way way = (enum way)w->way[from * w->n + to];
    if (way == WAY_NONE) {
        l->apart = true;
    } else if (way == WAY_NET) {
        struct load *all[] = {&l->own[0][from], &l->own[1][to],
                              &l->nets[w->members[from].node * w->n_nodes + w->members[to].node]};
        for (int i = 0; i < 3; i++) {
            all[i]->bytes += bytes;
            all[i]->flows++;
        }
    } else if (way != WAY_SELF) {
        add_inside(w, from, to, bytes, l);
    }
}

/* A flow of one member to another, where there is any. */
static inline void add_flow(double bytes, struct load *other, struct load *sum)
{
    double some = bytes > 0 ? 1 : 0, some_bytes = bytes > 0 ? bytes : 0;
    other->bytes += some_bytes;
    other->flows += some;
    sum->bytes += some_bytes;
    sum->flows += some;
}

/* The flows of member a to those of a run, all over the network. */
static void add_far(const struct hop *h, size_t a, const struct run *r, struct loads *l)
{
    const struct hv_ways *w = h->w;
    const double *row = h->bytes + a * w->n;
    size_t node = w->members[a].node, from = h->back ? r->node : node;
    struct load *net = &l->nets[from * w->n_nodes + (h->back ? node : r->node)];
    struct load *others = l->own[!h->back];
    struct load even = {0}, odd = {0}; /* of every other flow: two sums that do not wait */
    size_t b = r->from;
    for (; b + 1 < r->to; b += 2) {
        add_flow(row[b] * h->scale, &others[b], &even);
        add_flow(row[b + 1] * h->scale, &others[b + 1], &odd);
    }
    if (b < r->to) {
        add_flow(row[b] * h->scale, &others[b], &even);
    }
    double bytes = even.bytes + odd.bytes, flows = even.flows + odd.flows;
    l->own[h->back][a].bytes += bytes;
    l->own[h->back][a].flows += flows;
    net->bytes += bytes;
    net->flows += flows;
}

/* The flows of one row; a network flow goes over the NICs of both members and their nodes. */
static void add_row(const struct hop *h, size_t a, struct loads *l)
{
    const struct hv_ways *w = h->w;
    const double *row = h->bytes + a * w->n;
    for (size_t i = 0; i < w->n_runs; i++) {
        const struct run *r = &w->runs[i];
        if (w->far[a * w->n_runs + i]) {
            add_far(h, a, r, l);
            continue;
        }
        for (size_t b = r->from; b < r->to; b++) {
            double bytes = row[b] * h->scale;
            if (bytes > 0) {
                add_pair(h, h->back ? b : a, h->back ? a : b, bytes, l);
            }
        }
    }
}

static void add_flows(const struct hop *h, struct loads *l)
{
    for (size_t a = 0; a < h->w->n; a++) {
        add_row(h, a, l);
    }
}

static void take(struct result *r, double busy_s, const char *why)
{
    if (busy_s > r->bytes_s) {
        r->bytes_s = busy_s;
        r->why = why;
    }
}

/* Size of a buffer whose parts are flows of the mean size of `l`. */
static double buffer_of(const struct hop *h, const struct load *l)
{
    return l->bytes / l->flows * fmin(h->members, HV__CURVE_MEMBERS);
}

/* Share of the rate that flows of the mean size of `l` reach. */
static double share(const struct hop *h, const struct hv_link_curve *curve, const struct load *l)
{
    return hv_link_share(curve, buffer_of(h, l));
}

/* Takes a load with `factor` of the rate of its flows, where it is not surely the shorter one: most
 * loads are, and the share that flows of their size reach need not be computed. */
static void take_load(const struct hop *h, const struct hv_link_curve *curve, const struct load *l,
                      double factor, const char *why, struct result *r)
{
    double least = hv_link_share_least(curve, buffer_of(h, l)) * factor;
    if (l->busy_s >= (1 - 1e-9) * least * r->bytes_s) {
        take(r, l->busy_s / (share(h, curve, l) * factor), why);
    }
}

static const struct hv_link_curve *curve_of(const struct hop *h, size_t member)
{
    return hv_link_curve(h->w->members[member].link, HV_USE_ALL_TO_ALL);
}

static void take_inside(const struct hop *h, const struct loads *l, struct result *r)
{
    static const char *const whys[] = {"device link, sending", "device link, receiving"};
    static const char *const isles[] = {"shared island, leaving it", "shared island, entering it"};
    const struct hv_ways *w = h->w;
    for (size_t i = 0; i < w->n; i++) {
        for (int d = 0; d < 2; d++) {
            const struct load *x = &l->ports[d][i];
            if (!(x->flows > 0)) {
                continue;
            }
            const struct hv_link_curve *curve = curve_of(h, i);
            r->start_s = fmax(r->start_s, curve->start_s);
            take_load(h, curve, x, w->members[i].house_factor, whys[d], r);
            int at = w->members[i].island;
            const struct load *y = at < 0 ? x : &l->isles[d][at];
            if (at >= 0 && y->flows > 0) {
                take_load(h, curve, y, w->members[i].house_factor, isles[d], r);
            }
        }
        r->house_bytes = fmax(r->house_bytes, l->ports[0][i].bytes);
    }
    if (l->mesh_s > 0) {
        const struct load *x = &l->ports[0][l->mesh_member];
        double rate = share(h, curve_of(h, l->mesh_member), x);
        take(r, l->mesh_s / (rate * w->members[l->mesh_member].house_factor), "link of the mesh");
    }
}

static double net_s(const struct hop *h, const struct load *x, size_t node)
{
    const struct hv_link_curve *curve = hv_link_curve(h->w->nodes[node].net, HV_USE_ALL_TO_ALL);
    return x->busy_s / (share(h, curve, x) * h->w->nodes[node].net_factor);
}

/* The NICs of node i, sending or receiving. */
static void take_node(const struct hop *h, const struct loads *l, size_t i, bool in,
                      struct result *r)
{
    const struct hv_ways *w = h->w;
    struct load sum = {0};
    for (size_t j = 0; j < w->n_nodes; j++) {
        size_t at = in ? j * w->n_nodes + i : i * w->n_nodes + j;
        const struct load *x = &l->nets[at];
        const struct between *b = &w->nets[at];
        sum.bytes += x->bytes;
        sum.flows += x->flows;
        sum.busy_s += x->bytes * (in ? b->in_s_per_byte : b->out_s_per_byte);
    }
    if (sum.flows > 0) {
        take(r, h->together * net_s(h, &sum, i),
             in ? "nic of the receiving node" : "nic of the sending node");
        r->network_bytes = in ? r->network_bytes : fmax(r->network_bytes, h->together * sum.bytes);
    }
}

static void take_named(const struct hop *h, const struct loads *l, struct result *r)
{
    const struct hv_ways *w = h->w;
    size_t n_links = 2 * w->c->n_links;
    struct load *links = n_links ? hv_xcalloc(n_links, sizeof *links) : NULL;
    double *factors = n_links ? hv_xcalloc(n_links, sizeof *factors) : NULL;
    const enum hv_link_class class = w->c->network_plain ? HV_CURVE_PLAIN : HV_CURVE_NETWORK;
    const struct hv_link_curve *curve = hv_link_curve(class, HV_USE_ALL_TO_ALL);
    for (size_t i = 0; i < w->n_nodes * w->n_nodes; i++) {
        struct load x = l->nets[i];
        int at = w->nets[i].link;
        if (!(x.flows > 0)) {
            continue;
        }
        x.busy_s = x.bytes * w->nets[i].pair_s_per_byte;
        take(r, h->together * net_s(h, &x, i / w->n_nodes), "network between two nodes");
        if (at >= 0 && links && factors) {
            double factor = w->nodes[i / w->n_nodes].net_factor;
            factors[at] = factors[at] > 0 ? fmin(factors[at], factor) : factor;
            links[at].bytes += x.bytes;
            links[at].flows += x.flows;
        }
    }
    for (size_t i = 0; i < n_links && links && factors; i++) {
        if (links[i].flows > 0) {
            double rate = w->c->links[i / 2].bytes_per_s * share(h, curve, &links[i]) * factors[i];
            take(r, h->together * links[i].bytes / rate, "network link");
        }
    }
    free(links);
    free(factors);
}

static void take_network(const struct hop *h, const struct loads *l, struct result *r)
{
    const struct hv_ways *w = h->w;
    for (size_t i = 0; i < w->n_nodes; i++) {
        take_node(h, l, i, false, r);
        take_node(h, l, i, true, r);
    }
    for (size_t i = 0; i < w->n; i++) {
        for (int d = 0; d < 2; d++) {
            struct load x = l->own[d][i];
            if (x.flows > 0) {
                const struct node *node = &w->nodes[w->members[i].node];
                const struct hv_link_curve *curve = hv_link_curve(node->net, HV_USE_ALL_TO_ALL);
                x.busy_s = x.bytes / w->members[i].flow_bytes_per_s;
                take_load(h, curve, &x, node->net_factor, "nic of one device", r);
                r->start_s = fmax(r->start_s, curve->start_s);
            }
        }
    }
    if (w->c->n_links || w->c->matrix_bytes_per_s) {
        take_named(h, l, r);
    }
}

/* The slowest link latency of a node's flows: needed where one of its members has any. */
static double net_alpha_s(const struct hv_ways *w, const struct loads *l, size_t node)
{
    double alpha_s = 0;
    for (size_t j = 0; j < w->n_nodes; j++) {
        size_t out = node * w->n_nodes + j, in = j * w->n_nodes + node;
        alpha_s = l->nets[out].flows > 0 ? fmax(alpha_s, w->nets[out].latency_s) : alpha_s;
        alpha_s = l->nets[in].flows > 0 ? fmax(alpha_s, w->nets[in].latency_s) : alpha_s;
    }
    return alpha_s;
}

/* Seconds that starting the messages of a member takes, inside and between nodes. */
struct steps {
    double near_s, far_s, messages;
};

/* `alphas_s`: of nodes, HV_UNKNOWN where not yet looked up. */
static struct steps steps_of(const struct hv_ways *w, const struct loads *l, size_t i, int d,
                             double *alphas_s)
{
    double inside = l->ports[d][i].flows, out = l->own[d][i].flows;
    size_t node = w->members[i].node;
    struct steps s = {.near_s =
                          hv__step_share(w->members[i].link) * inside * w->members[i].house_alpha_s,
                      .messages = inside + out};
    if (out > 0) {
        double more = hv__step_share(w->nodes[node].net) * (out - 1);
        alphas_s[node] = hv_known(alphas_s[node]) ? alphas_s[node] : net_alpha_s(w, l, node);
        s.far_s = (1 + more) * alphas_s[node];
    }
    return s;
}

/* Messages of the member with most, and what starting them takes: of both kinds in turn, or of each
 * alone. */
static void take_steps(const struct hop *h, const struct loads *l, struct result *near,
                       struct result *far, struct result *all)
{
    double *alphas_s = hv_xcalloc(h->w->n_nodes + 1, sizeof *alphas_s);
    for (size_t i = 0; i < h->w->n_nodes; i++) {
        alphas_s[i] = HV_UNKNOWN;
    }
    for (size_t i = 0; i < h->w->n; i++) {
        for (int d = 0; d < 2; d++) {
            struct steps s = steps_of(h->w, l, i, d, alphas_s);
            near->steps_s = fmax(near->steps_s, s.near_s);
            far->steps_s = fmax(far->steps_s, s.far_s);
            all->steps_s = fmax(all->steps_s, s.near_s + s.far_s);
            all->messages = fmax(all->messages, s.messages);
        }
    }
    free(alphas_s);
}

static double length_s(const struct result *r)
{
    return r->start_s + r->steps_s + r->bytes_s;
}

static struct result run(const struct hop *h, bool *apart)
{
    struct result near = {0}, far = {0}, all = {0};
    struct loads l = loads_new(h->w);
    add_flows(h, &l);
    take_inside(h, &l, &near);
    take_network(h, &l, &far);
    take_steps(h, &l, &near, &far, &all);
    *apart = *apart || l.apart;
    loads_free(&l);
    const struct result *longer = near.bytes_s > far.bytes_s ? &near : &far;
    if (h->flows == APART) {
        longer = length_s(&near) > length_s(&far) ? &near : &far;
        all.steps_s = longer->steps_s;
    }
    all.start_s = h->flows == APART ? longer->start_s : fmax(near.start_s, far.start_s);
    all.bytes_s = h->flows == IN_TURN ? near.bytes_s + far.bytes_s : longer->bytes_s;
    all.why = longer->why;
    all.house_bytes = near.house_bytes;
    all.network_bytes = far.network_bytes;
    return all;
}

/* True where all links inside nodes that are in use, and all between them, are plain. */
static bool all_plain(const struct hv_ways *w)
{
    for (size_t i = 0; i < w->n; i++) {
        bool near = w->houses[w->members[i].house].n > 1;
        if ((near && w->members[i].link != HV_CURVE_PLAIN) ||
            w->nodes[w->members[i].node].net != HV_CURVE_PLAIN) {
            return false;
        }
    }
    return true;
}

/* Share of an exchange's copies that are the first of their item for a house (hv__first_copies),
 * and the two hops of every flow: to the member of the other house at the sender's position, and on
 * inside. */
static void split_hops(const struct hv_ways *w, const struct hv_matrix_query *q, double first,
                       double *across, double *inside)
{
    for (size_t a = 0; a < w->n; a++) {
        const struct member *m = &w->members[a];
        for (size_t b = 0; b < w->n; b++) {
            double x = q->scale * (q->back ? q->bytes[b * w->n + a] : q->bytes[a * w->n + b]);
            if (!(x > 0)) {
                continue;
            }
            if (w->way[a * w->n + b] != WAY_NET) {
                inside[a * w->n + b] += x;
                continue;
            }
            const struct house *h = &w->houses[w->members[b].house];
            size_t relay = h->members[m->at % h->n];
            across[a * w->n + relay] += first * x;
            inside[relay * w->n + b] += relay == b ? 0 : x;
        }
    }
}

static struct result two_hops(const struct hv_ways *w, const struct hv_matrix_query *q,
                              double together, bool *apart)
{
    double *across = hv_xcalloc(w->n * w->n, sizeof *across);
    double *inside = hv_xcalloc(w->n * w->n, sizeof *inside);
    bool in_turn = q->algorithm == HV_ALGO_TREE;
    double first = in_turn ? 1 : hv__first_copies((double)w->n_houses, q->copies);
    split_hops(w, q, first, across, inside);
    struct result x =
        run(&(struct hop){w, across, 1, false, (double)w->n_houses, together, AT_ONCE}, apart);
    struct result y =
        run(&(struct hop){w, inside, 1, false, (double)w->per_house, together, AT_ONCE}, apart);
    struct result out = {.bytes_s = in_turn ? x.bytes_s + y.bytes_s : fmax(x.bytes_s, y.bytes_s),
                         .start_s = fmax(x.start_s, y.start_s),
                         .steps_s = x.steps_s + y.steps_s,
                         .messages = x.messages + y.messages,
                         .house_bytes = fmax(x.house_bytes, y.house_bytes),
                         .network_bytes = fmax(x.network_bytes, y.network_bytes),
                         .why = x.bytes_s > y.bytes_s ? x.why : y.why};
    free(across);
    free(inside);
    return out;
}

struct hv_collective_cost hv_cost_matrix(const struct hv_ways *w, const struct hv_matrix_query *q,
                                         struct hv_why *why)
{
    bool apart = false, can_hop = w->n_houses > 1 && w->per_house > 1;
    bool flat = q->algorithm == HV_ALGO_RING || !can_hop;
    bool hops = can_hop && q->algorithm != HV_ALGO_RING;
    double together = fmax(q->together, 1);
    struct hv_collective_cost out = {.algorithm = HV_ALGO_RING};
    struct result r = {0};
    if (flat || q->algorithm == HV_ALGO_AUTO) {
        enum together flows = q->pipe ? APART : all_plain(w) ? IN_TURN : AT_ONCE;
        r = run(&(struct hop){w, q->bytes, q->scale, q->back, (double)w->n, together, flows},
                &apart);
    }
    if (hops) {
        struct result x = two_hops(w, q, together, &apart);
        bool shorter = x.start_s + x.steps_s + x.bytes_s < r.start_s + r.steps_s + r.bytes_s;
        if (q->algorithm != HV_ALGO_AUTO || shorter) {
            r = x;
            out.algorithm = HV_ALGO_HIERARCHICAL;
        }
    }
    out.alpha_s = r.start_s + r.steps_s;
    out.time_s = apart ? HV_UNKNOWN : out.alpha_s + r.bytes_s;
    out.messages = r.messages;
    out.node_bytes = r.house_bytes;
    out.network_bytes = r.network_bytes;
    hv_why_add(why, "all_to_all", out.time_s, "s",
               "unequal parts over %zu devices in %zu nodes, %s: %.4g us start and steps; %.4g "
               "bytes of the busiest device inside, %.4g of the busiest node between them; "
               "tightest: %s",
               w->n, w->n_nodes, hv_sync_algorithm_words[out.algorithm], out.alpha_s / HV_US,
               out.node_bytes, out.network_bytes, r.why ? r.why : "none");
    return out;
}
