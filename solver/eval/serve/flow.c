/**
 * The flow of a serving plan: links with their capacities, the maximum flow, and checks of the
 * plan's own flow. The capacities of stages are in serve.c.
 *
 * Every stage is a chain of corners, NIC in, compute, NIC out, so that its NIC bounds all its links
 * together; links inside a node or a rack bypass the NICs. Stages of one node share its NICs: the
 * flow in use is checked node by node, while the maximum flow gives each stage the NICs for itself.
 */
#include "solver/optim/graph/flow.h"
#include "solver/eval/serve/serve_int.h"

#include <stdio.h>

/** Flows that differ by less than this share are equal. */
#define FLOW_REL 1e-6

/** True where tokens may flow from `a` to `b`. With partial inference `b` computes those of its
 * blocks that `a` has not computed. */
static bool follows(const struct hv__lowered *l, const struct hv__server *a,
                    const struct hv__server *b)
{
    return l->plan->partial_inference ? b->from2 <= a->to2 && a->to2 < b->to2 : b->from2 == a->to2;
}

/** Tokens per second that a link carries: its rate for long messages, without latency. All copies
 * of both stages send at the same time. */
static double link_tokens_per_s(const struct hv__lowered *l, const struct hv__server *a,
                                const struct hv__server *b)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    double bytes = a->token_bytes * a->batch * (double)hv_cost_job(l->k)->sequence;
    size_t from = a->stage->n_devices, to = b->stage->n_devices;
    if (!(bytes > 0)) {
        return HUGE_VAL;
    }
    double one = hv_cost_hop(c, a->stage->devices, from, b->stage->devices, to, bytes, NULL);
    double two = hv_cost_hop(c, a->stage->devices, from, b->stage->devices, to, 2 * bytes, NULL);
    return !isfinite(two) ? 0 : two > one ? bytes / (two - one) / a->token_bytes : HUGE_VAL;
}

double hv__hop_s(const struct hv__lowered *l, const struct hv__server *a,
                 const struct hv__server *b, double tokens)
{
    return hv_cost_hop(hv_cost_cluster(l->k), a->rank.devices, a->rank.n_devices, b->rank.devices,
                       b->rank.n_devices, a->token_bytes * a->batch * tokens, NULL);
}

/** True where no NIC lies between the two, because they share a node or a link domain. */
static bool side_by_side(const struct hv__lowered *l, const struct hv__server *a,
                         const struct hv__server *b)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    uint32_t x = hv_cluster_node_of(c, a->stage->devices[0]);
    uint32_t y = hv_cluster_node_of(c, b->stage->devices[0]);
    return hv_cluster_domain_of(c, x) == hv_cluster_domain_of(c, y);
}

/** Bytes per second of the NICs of all nodes that a stage's devices are in. */
static double nic_bytes_per_s(const struct hv__lowered *l, const struct hv__server *v)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    double sum = 0;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < v->stage->n_devices; i++) {
        uint32_t node = hv_cluster_node_of(c, v->stage->devices[i]);
        sum += node != last ? hv_cluster_group_of_node(c, node)->nic.bytes_per_s : 0;
        last = node;
    }
    return sum;
}

/* ---- the most that passes -------------------------------------------------------------------- */

/** Corners of a stage in the graph; 0 and 1 are source and sink. */
enum corner { NIC_IN, BEFORE, BEHIND, NIC_OUT, CORNERS };

static size_t corner_of(size_t server, enum corner at)
{
    return 2 + CORNERS * server + (size_t)at;
}

struct graph {
    struct hv_flow_edge *edges;
    struct hv_plan_flow *ends; /**< what of the plan an edge is; from == to: inside a stage */
    size_t n;
};

static void add_edge(struct graph *g, size_t from, size_t to, double capacity,
                     struct hv_plan_flow is)
{
    g->edges[g->n] = (struct hv_flow_edge){from, to, capacity};
    g->ends[g->n++] = is;
}

/** Adds the compute and NIC edges of a stage. A token that enters has the size that the stages
 * before it send; the smallest size counts, so that the NIC is never too small. */
static void add_server(const struct hv__lowered *l, const struct hv__servers *all, size_t i,
                       struct graph *g)
{
    const struct hv__server *v = &all->items[i];
    struct hv_plan_flow inside = {.from = (int)i, .to = (int)i};
    double nic = nic_bytes_per_s(l, v), in = HUGE_VAL;
    for (size_t k = 0; k < all->n; k++) {
        in = follows(l, &all->items[k], v) ? fmin(in, all->items[k].token_bytes) : in;
    }
    add_edge(g, corner_of(i, NIC_IN), corner_of(i, BEFORE),
             in > 0 && isfinite(in) ? nic / in : HUGE_VAL, inside);
    add_edge(g, corner_of(i, BEFORE), corner_of(i, BEHIND), v->capacity_tokens_per_s, inside);
    add_edge(g, corner_of(i, BEHIND), corner_of(i, NIC_OUT),
             v->token_bytes > 0 ? nic / v->token_bytes : HUGE_VAL, inside);
    if (v->from2 == 0) {
        add_edge(g, 0, corner_of(i, BEFORE), HUGE_VAL,
                 (struct hv_plan_flow){.from = HV_FLOW_SOURCE, .to = (int)i});
    }
    if (v->to2 == all->n_halves) {
        add_edge(g, corner_of(i, BEHIND), 1, HUGE_VAL,
                 (struct hv_plan_flow){.from = (int)i, .to = HV_FLOW_SINK});
    }
}

static void add_links(const struct hv__lowered *l, const struct hv__servers *all, size_t i,
                      struct graph *g)
{
    const struct hv__server *v = &all->items[i];
    for (size_t k = 0; k < all->n; k++) {
        const struct hv__server *to = &all->items[k];
        if (k == i || !follows(l, v, to)) {
            continue;
        }
        bool near = side_by_side(l, v, to);
        add_edge(g, corner_of(i, near ? BEHIND : NIC_OUT), corner_of(k, near ? BEFORE : NIC_IN),
                 link_tokens_per_s(l, v, to), (struct hv_plan_flow){.from = (int)i, .to = (int)k});
    }
}

/** Maximum flow; it is the flow in use where the plan gives none. */
static enum hv_status max_flow(const struct hv__lowered *l, struct hv__servers *all,
                               struct hv_err *err)
{
    struct graph g = {.n = 0};
    g.edges = hv_arena_new(l->arena, struct hv_flow_edge, all->n * (all->n + 5) + 1);
    g.ends = hv_arena_new(l->arena, struct hv_plan_flow, all->n * (all->n + 5) + 1);
    for (size_t i = 0; i < all->n; i++) {
        add_server(l, all, i, &g);
        add_links(l, all, i, &g);
    }
    struct hv_flow_result r;
    enum hv_status st = hv_flow_max(g.edges, g.n, 2 + CORNERS * all->n, 0, 1, l->arena, &r, err);
    if (st != HV_OK) {
        return st;
    }
    all->most = r.value;
    all->n_flow = l->plan->n_flow;
    all->flow =
        all->given ? hv_arena_copy(l->arena, l->plan->flow, all->n_flow, sizeof *all->flow) : NULL;
    if (!all->given) {
        struct hv_plan_flow *flow = hv_arena_new(l->arena, struct hv_plan_flow, g.n + 1);
        for (size_t e = 0; e < g.n; e++) {
            if (g.ends[e].from != g.ends[e].to && r.flow[e] > 0) {
                flow[all->n_flow] = g.ends[e];
                flow[all->n_flow++].tokens_per_s = r.flow[e];
            }
        }
        all->flow = flow;
    }
    return HV_OK;
}

/* ---- the flow in use ------------------------------------------------------------------------- */

static const char *end_name(int end, char *buf, size_t cap)
{
    (void)snprintf(buf, cap,
                   end >= 0                ? "stage %d"
                   : end == HV_FLOW_SOURCE ? "source"
                                           : "sink",
                   end);
    return buf;
}

/** Adds a finding for a link that no token can use, or whose capacity is exceeded. */
static void check_link(const struct hv__lowered *l, const struct hv__servers *all, size_t e)
{
    const struct hv_plan_flow *f = &all->flow[e];
    const struct hv__server *a = f->from >= 0 ? &all->items[f->from] : NULL;
    const struct hv__server *b = f->to >= 0 ? &all->items[f->to] : NULL;
    char where[32], x[24], y[24];
    (void)snprintf(where, sizeof where, "flow[%zu]", e);
    (void)end_name(f->from, x, sizeof x);
    (void)end_name(f->to, y, sizeof y);
    int done2 = a != NULL ? a->to2 : 0, next2 = b != NULL ? b->from2 : all->n_halves;
    if (next2 > done2) {
        hv_finding_add(l->findings, HV_V_LAYERS_MISSING, (next2 - done2) / 2.0, where,
                       "tokens go from %s to %s without blocks [%g, %g)", x, y, done2 / 2.0,
                       next2 / 2.0);
    } else if (a != NULL && b != NULL && next2 < done2 && done2 < b->to2 && !follows(l, a, b)) {
        hv_finding_add(l->findings, HV_V_CAPACITY, f->tokens_per_s, where,
                       "%s ends at block %g, %s begins at block %g: without partial inference "
                       "tokens enter a stage only at its first block",
                       x, done2 / 2.0, y, next2 / 2.0);
    } else if (a != NULL && b != NULL && !follows(l, a, b)) {
        hv_finding_add(l->findings, HV_V_CAPACITY, f->tokens_per_s, where,
                       "%s ends at block %g, which %s has already computed: the stage has no "
                       "layers left for its tokens",
                       y, b->to2 / 2.0, x);
    } else if (a != NULL && b != NULL) {
        double most = link_tokens_per_s(l, a, b), over = f->tokens_per_s - most;
        if (over > FLOW_REL * most) {
            hv_finding_add(
                l->findings, HV_V_CAPACITY, over, where,
                "%.6g tokens/s flow from %s to %s, but the link carries %.6g: %.6g too many",
                f->tokens_per_s, x, y, most, over);
        }
    }
}

/** Adds findings where inflow and outflow of a stage differ, or exceed its compute capacity. */
static void check_server(const struct hv__lowered *l, struct hv__servers *all, size_t i)
{
    struct hv__server *v = &all->items[i];
    double in = 0, out = 0;
    char where[64];
    for (size_t e = 0; e < all->n_flow; e++) {
        in += all->flow[e].to == (int)i ? all->flow[e].tokens_per_s : 0;
        out += all->flow[e].from == (int)i ? all->flow[e].tokens_per_s : 0;
    }
    v->flow_tokens_per_s = fmax(in, out);
    (void)snprintf(where, sizeof where, "replicas[%zu].stages[%zu]", v->i_replica, v->number);
    if (fabs(in - out) > FLOW_REL * fmax(in, out)) {
        hv_finding_add(l->findings, HV_V_CAPACITY, fabs(in - out), where,
                       "%.6g tokens/s enter stage %zu and %.6g leave it: both must be equal", in, i,
                       out);
    }
    double over = v->flow_tokens_per_s - v->capacity_tokens_per_s;
    if (over > FLOW_REL * v->capacity_tokens_per_s) {
        hv_finding_add(l->findings, HV_V_CAPACITY, over, where,
                       "%.6g tokens/s flow through stage %zu, but it computes %.6g: %.6g too many",
                       v->flow_tokens_per_s, i, v->capacity_tokens_per_s, over);
    }
}

/** Bytes per second that the flow sends out of, or into, every node; stages on several nodes spread
 * them evenly. */
static double *node_bytes(const struct hv__lowered *l, const struct hv__servers *all, bool sending)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    double *bytes = hv_arena_new(l->arena, double, c->n_nodes);
    for (size_t e = 0; e < all->n_flow; e++) {
        const struct hv_plan_flow *f = &all->flow[e];
        if (f->from < 0 || f->to < 0) {
            continue;
        }
        const struct hv__server *a = &all->items[f->from], *b = &all->items[f->to];
        const struct hv_stage *s = sending ? a->stage : b->stage;
        for (size_t d = 0; !side_by_side(l, a, b) && d < s->n_devices; d++) {
            bytes[hv_cluster_node_of(c, s->devices[d])] +=
                f->tokens_per_s * a->token_bytes / (double)s->n_devices;
        }
    }
    return bytes;
}

/** Stages of one node share its NICs. Returns the largest ratio of load to capacity over all nodes;
 * an overload is a finding where the flow is the plan's own. */
static double check_nodes(const struct hv__lowered *l, const struct hv__servers *all)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    double worst = 1;
    for (int sending = 0; sending < 2; sending++) {
        const double *bytes = node_bytes(l, all, sending == 1);
        for (uint32_t i = 0; i < c->n_nodes; i++) {
            const struct hv_node_group *g = hv_cluster_group_of_node(c, i);
            double over = bytes[i] - g->nic.bytes_per_s;
            worst = bytes[i] > 0 ? fmax(worst, bytes[i] / g->nic.bytes_per_s) : worst;
            if (all->given && over > FLOW_REL * g->nic.bytes_per_s) {
                hv_finding_add(l->findings, HV_V_CAPACITY, over, "flow",
                               "the flow %s node %s[%u] needs %.4g GB/s, but its NICs carry %.4g: "
                               "all stages of a node share them",
                               sending ? "out of" : "into", g->name, i - g->first_node,
                               bytes[i] / HV_GBPS, g->nic.bytes_per_s / HV_GBPS);
            }
        }
    }
    return worst;
}

/** Scales the maximum flow down to the capacity of the nodes' NICs. */
static void scale_down(const struct hv__lowered *l, struct hv__servers *all, double by)
{
    struct hv_plan_flow *flow = hv_arena_new(l->arena, struct hv_plan_flow, all->n_flow + 1);
    for (size_t e = 0; e < all->n_flow; e++) {
        flow[e] = all->flow[e];
        flow[e].tokens_per_s /= by;
    }
    all->flow = flow;
    all->scaled = true;
}

bool hv__enters_half_way(const struct hv__servers *all)
{
    for (size_t e = 0; e < all->n_flow; e++) {
        const struct hv_plan_flow *f = &all->flow[e];
        if (f->tokens_per_s > 0 && f->from >= 0 && f->to >= 0 &&
            all->items[f->to].from2 < all->items[f->from].to2) {
            return true;
        }
    }
    return false;
}

static void use_flow(const struct hv__lowered *l, struct hv__servers *all)
{
    all->total = 0;
    for (size_t e = 0; e < all->n_flow; e++) {
        check_link(l, all, e);
        all->total += all->flow[e].from == HV_FLOW_SOURCE ? all->flow[e].tokens_per_s : 0;
    }
    for (size_t i = 0; i < all->n; i++) {
        check_server(l, all, i);
    }
}

enum hv_status hv__serve_flow(const struct hv__lowered *l, struct hv__servers *all,
                              struct hv_err *err)
{
    enum hv_status st = max_flow(l, all, err);
    if (st != HV_OK) {
        return st;
    }
    double over = check_nodes(l, all);
    if (!all->given && over > 1) {
        scale_down(l, all, over);
    }
    use_flow(l, all);
    return HV_OK;
}
