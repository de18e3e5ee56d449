/*
 * Cuts of a cluster: the largest traffic between two sides. bound/cut.c applies it to a whole plan.
 *
 * Proof. All traffic from one side to the other passes through
 * - the NICs of the nodes of either side, each for its own node;
 * - where named links join every pair of nodes across, one of these, each at its rate in a
 *   direction (twice that where not all pairs use it the same way round).
 * Factors of calibration are those of senders and receivers at the nodes, of one of the senders on
 * links, and the least of all members in reductions. So the least of the three is the capacity of
 * the cut in bytes per second. Hops (hop.c) get the share that many flows get, at its best,
 * reductions (collective.c, reduce.c) that of a ring: a ring moves
 * 2 (n-1)/n of the bytes at no more than the tightest link between neighbouring houses, a tree
 * 2, the hierarchical form 2 (k-1)/k over k houses, a reduction in the hosts the same; all of these
 * are one time the bytes or more where two sides take part. A link domain of q nodes is one house
 * and gets q times the rate of its nodes. Links and NICs carry one reduction at a time, beside
 * activations (tail.c, traffic.c).
 */
#include "solver/cost/floor/floor_int.h"

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/link_curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Clusters of more groups get no cuts. */
#define CUTS 16

/* A byte count above the last point of every curve. */
#define LONG_BYTES 1e15

double hv__gradient_bytes(const struct hv__context *k, enum hv_part part, size_t block)
{
    const struct hv_model *m = k->model;
    const struct hv_block *b = &m->blocks[block];
    double n = 0;
    switch (part) {
    case HV_PART_ATTENTION:
        n = hv_block_attention_parameters(m, b);
        break;
    case HV_PART_FFN:
        n = hv_block_ffn_parameters(m, b) + hv_block_expert_parameters(m, b);
        break;
    case HV_PART_EMBEDDING: /* tied: counted at the head */
        n = m->tied_embeddings ? 0 : hv_model_embedding_parameters(m);
        break;
    case HV_PART_HEAD:
        n = hv_model_head_parameters(m);
        n = m->tied_embeddings ? fmax(n, hv_model_embedding_parameters(m)) : n;
        break;
    case HV_PART_N:
        break;
    }
    return n * hv_job_grad_bytes(&k->job);
}

/* The groups of a cluster sorted by name, so that results do not depend on the order of the file,
 * not even in the last digit. */
struct groups {
    const struct hv__context *k;
    const struct hv_node_group **items;
    size_t n;
    struct hv_arena *arena;
};

static int by_name(const void *a, const void *b)
{
    const struct hv_node_group *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static struct groups sorted_groups(const struct hv__context *k, struct hv_arena *arena)
{
    struct groups o = {k, NULL, k->cluster->n_groups, arena};
    o.items = hv_arena_new(arena, const struct hv_node_group *, o.n + 1);
    for (size_t g = 0; g < o.n; g++) {
        o.items[g] = &k->cluster->groups[g];
    }
    qsort(o.items, o.n, sizeof *o.items, by_name);
    return o;
}

/* Number of a group in the file. */
static size_t number_of(const struct groups *o, const struct hv_node_group *g)
{
    return (size_t)(g - o->k->cluster->groups);
}

static bool used(const struct hv_node_group *g)
{
    return g->state != HV_NODE_DRAIN && g->count > 0;
}

/* Rate at which one side can send or receive. */
struct side {
    double rate;   /* of all its nodes, calibrated */
    double factor; /* of its best kind, on what lies between */
};

static struct side look_at_side(const struct groups *o, const bool *beyond, bool side)
{
    const struct hv_cluster *c = o->k->cluster;
    bool named = c->n_links > 0 || c->matrix_bytes_per_s != NULL;
    double between = named ? HUGE_VAL : hv_or(c->network_bytes_per_s, HUGE_VAL);
    struct side out = {0, 0};
    for (size_t g = 0; g < o->n; g++) {
        const struct hv_node_group *x = o->items[g];
        bool counts = beyond[number_of(o, x)] == side && used(x);
        double factor = 0;
        for (size_t s = 0; counts && s < x->n_slots; s++) {
            factor = fmax(factor, hv_device_calibration(x->slots[s].kind)->v[HV_CAL_NETWORK]);
        }
        if (factor > 0) {
            out.rate += x->count * fmin(hv_or(x->nic.bytes_per_s, HUGE_VAL), between) * factor;
        }
        out.factor = fmax(out.factor, factor);
    }
    return out;
}

/* True where links name groups and zones only and there is no matrix of nodes: then one node
 * represents all nodes of its group. */
static bool by_group(const struct hv_cluster *c)
{
    for (size_t i = 0; i < c->n_links; i++) {
        if (strchr(c->links[i].a, '[') || strchr(c->links[i].b, '[')) {
            return false;
        }
    }
    return c->matrix_bytes_per_s == NULL;
}

/* Links and rates between the pairs of groups across a cut. */
struct across {
    double rate, latency_s;
    const struct hv_network_link *link; /* the only one, else NULL */
    bool *seen;                         /* [2 × links] used in that direction */
};

static void look_at_pair(const struct hv_cluster *c, uint32_t from, uint32_t to, struct across *x)
{
    const struct hv_network_link *l = c->n_links ? hv_cluster_link(c, from, to) : NULL;
    x->latency_s = fmin(x->latency_s, hv_cluster_node_path(c, from, to).latency_s);
    if (!l || !hv_known(l->bytes_per_s)) {
        x->rate = HUGE_VAL;
        return;
    }
    size_t at = 2 * (size_t)(l - c->links) + hv_cluster_link_backward(c, l, from, to);
    if (!x->seen[at]) {
        x->seen[at] = true;
        x->link = x->rate > 0 && x->link != l ? NULL : l;
        x->rate += l->bytes_per_s;
    }
}

static struct across look_across(const struct groups *o, const bool *beyond)
{
    const struct hv_cluster *c = o->k->cluster;
    struct across x = {0, HUGE_VAL, NULL, hv_arena_new(o->arena, bool, 2 * c->n_links + 1)};
    for (size_t a = 0; by_group(c) && a < o->n; a++) {
        for (size_t b = 0; b < o->n; b++) {
            const struct hv_node_group *from = o->items[a], *to = o->items[b];
            if (!beyond[number_of(o, from)] && beyond[number_of(o, to)] && used(from) && used(to)) {
                look_at_pair(c, from->first_node, to->first_node, &x);
            }
        }
    }
    x.latency_s = isfinite(x.latency_s) ? x.latency_s : 0;
    x.rate = x.rate > 0 ? x.rate : HUGE_VAL;
    return x;
}

static double largest_house(const struct hv_cluster *c)
{
    double nodes = 1;
    for (size_t g = 0; g < c->n_groups; g++) {
        nodes = fmax(nodes, fmin(c->groups[g].domain_nodes, c->groups[g].count));
    }
    return nodes;
}

/* `link`: the only one between the sides, or NULL where nodes are slower or there are several. */
static const char *words_of(const struct groups *o, const struct hv_network_link *link,
                            const bool *beyond)
{
    if (link) {
        return hv_arena_printf(o->arena, "the link between %s and %s (%.4g GB/s)", link->a, link->b,
                               link->bytes_per_s / HV_GBPS);
    }
    size_t n[2] = {0, 0}, last[2] = {0, 0};
    for (size_t g = 0; g < o->n; g++) {
        bool side = beyond[number_of(o, o->items[g])];
        n[side]++;
        last[side] = g;
    }
    const struct hv_node_group *x = o->items[last[n[1] > 1 && n[0] == 1 ? 0 : 1]];
    return hv_arena_printf(o->arena, "the network between %s and the other nodes",
                           n[0] > 1 && n[1] > 1 ? x->zone : x->name);
}

/* Fills the cut with these groups on the far side; false: its capacity is not known. */
static bool fill_cut(const struct groups *o, const bool *beyond, struct hv_cost_cut *out)
{
    const struct hv__context *k = o->k;
    struct across x = look_across(o, beyond);
    struct side a = look_at_side(o, beyond, false), b = look_at_side(o, beyond, true);
    double nodes = fmin(a.rate, b.rate), sums = fmin(x.rate * fmin(a.factor, b.factor), nodes);
    double links = x.rate * fmax(a.factor, b.factor), most = fmin(links, nodes);
    double hop = hv_link_share(hv_link_curve(HV_CURVE_NETWORK, HV_USE_ALL_TO_ALL), LONG_BYTES);
    double ring = hv_link_share(hv_link_curve(HV_CURVE_NETWORK, HV_USE_RING), LONG_BYTES);
    double bytes = (double)k->job.global_batch * hv__tokens(k) * k->model->hidden *
                   hv_job_activation_bytes(&k->job);
    if (!(sums > 0) || !isfinite(most)) {
        return false;
    }
    *out = (struct hv_cost_cut){.beyond = beyond,
                                .hop_s = bytes / (most * hop),
                                .byte_s = 1 / (sums * ring * largest_house(k->cluster)),
                                .latency_s = x.latency_s,
                                .words = words_of(o, most == links ? x.link : NULL, beyond)};
    return true;
}

static bool same_zone(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The groups on the far side of the cut of group i: its zone, or the group alone. NULL: there is no
 * such cut, or an earlier group gives the same one. */
static const bool *sides_of(const struct groups *o, size_t i, bool zone)
{
    bool *beyond = hv_arena_new(o->arena, bool, o->n + 1);
    size_t n = 0;
    for (size_t g = 0; g < o->n; g++) {
        bool with = zone ? same_zone(o->items[g]->zone, o->items[i]->zone) : g == i;
        if (zone && with && g < i) {
            return NULL;
        }
        beyond[number_of(o, o->items[g])] = with;
        n += with;
    }
    return n > (zone ? 1 : 0) && n < o->n ? beyond : NULL;
}

/* True where that cut, with the sides in either order, is among the first n. */
static bool is_listed(const struct hv_cost_cut *cuts, size_t n, const bool *beyond, size_t n_groups)
{
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        for (size_t g = 0; g < n_groups; g++) {
            same += cuts[i].beyond[g] == beyond[g];
        }
        if (same == n_groups || same == 0) {
            return true;
        }
    }
    return false;
}

size_t hv__cuts(const struct hv__context *k, struct hv_arena *arena, struct hv_cost_cut **out)
{
    size_t n = 0;
    *out = NULL;
    if (k->cluster->n_groups < 2 || k->cluster->n_groups > CUTS) {
        return 0;
    }
    const struct groups o = sorted_groups(k, arena);
    *out = hv_arena_new(arena, struct hv_cost_cut, 2 * o.n);
    for (size_t i = 0; i < 2 * o.n; i++) {
        const bool *beyond = sides_of(&o, i % o.n, i < o.n);
        n += beyond && !is_listed(*out, n, beyond, o.n) && fill_cut(&o, beyond, *out + n);
    }
    return n;
}
