/*
 * Cuts of a cluster: the largest traffic between two sides. bound/cut.c applies it to a whole plan.
 *
 * A cut is given by how many houses of each class (inventory/houses.h) are on its far side: it has
 * the same capacity whichever these are, and it does not depend on how groups are written. Cut off
 * are all houses of a zone, or some of the houses of one class.
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
#include "solver/cost/floor/exchange.h"
#include "solver/cost/floor/floor_int.h"

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/link_curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Clusters of more classes of houses get no cuts. */
#define CLASSES 32
/* Most cuts through one class. */
#define CUTS_OF_CLASS 32

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

/* The classes of a cluster, and where cuts are listed. */
struct classes {
    const struct hv__context *k;
    const struct hv_house_class *items;
    size_t n;
    struct hv_arena *arena;
    struct hv_cost_cuts *out;
};

/* Houses of a class on that side. */
static uint32_t houses_of(const struct classes *o, const uint32_t *beyond, size_t class, bool side)
{
    return side ? beyond[class] : o->items[class].houses - beyond[class];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sum in an order of its own, so that the order of a file does not even change the last digit. */
static double sum_of(double *values, size_t n)
{
    double sum = 0;
    qsort(values, n, sizeof *values, by_value);
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum;
}

/* Rate at which one side can send or receive. */
struct side {
    double rate;   /* of all its nodes, calibrated */
    double factor; /* of its best kind, on what lies between */
};

static struct side look_at_side(const struct classes *o, const uint32_t *beyond, bool side)
{
    const struct hv_cluster *c = o->k->cluster;
    bool named = c->n_links > 0 || c->matrix_bytes_per_s != NULL;
    double between = named ? HUGE_VAL : hv_or(c->network_bytes_per_s, HUGE_VAL);
    double rates[CLASSES], best = 0;
    for (size_t i = 0; i < o->n; i++) {
        const struct hv_node_group *x = o->items[i].group;
        double nodes = (double)houses_of(o, beyond, i, side) * o->items[i].nodes, factor = 0;
        for (size_t s = 0; nodes > 0 && s < x->n_slots; s++) {
            factor = fmax(factor, hv_device_calibration(x->slots[s].kind)->v[HV_CAL_NETWORK]);
        }
        factor = nodes > 0 && hv__some_plain_network(c) ? fmax(factor, 1) : factor;
        double each = fmin(hv_or(x->nic.bytes_per_s, HUGE_VAL), between) * factor;
        rates[i] = factor > 0 ? nodes * each : 0;
        best = fmax(best, factor);
    }
    return (struct side){sum_of(rates, o->n), best};
}

/* Links and rates between the pairs of houses across a cut. */
struct across {
    double latency_s;
    bool unlimited; /* some pair has no named link, or one without a rate */
    bool *seen;     /* [2 × links] used in that direction */
};

static void look_at_pair(const struct hv_cluster *c, uint32_t from, uint32_t to, struct across *x)
{
    const struct hv_network_link *l = c->n_links ? hv_cluster_link(c, from, to) : NULL;
    x->latency_s = fmin(x->latency_s, hv_cluster_node_path(c, from, to).latency_s);
    if (!l || !hv_known(l->bytes_per_s)) {
        x->unlimited = true;
        return;
    }
    bool *seen = &x->seen[2 * (size_t)(l - c->links)];
    bool either = hv_cluster_link_either_way(c, l, from, to);
    bool backward = hv_cluster_link_backward(c, l, from, to);
    seen[0] = seen[0] || either || !backward; /* any node of the two may be on either side */
    seen[1] = seen[1] || either || backward;
}

/* All pairs of nodes of two houses, one on each side. Links tell nodes of one house apart only
 * where they name them. */
static void look_at_houses(const struct classes *o, size_t from, size_t to, struct across *x)
{
    const struct hv_house_class *a = &o->items[from], *b = &o->items[to];
    uint32_t n_a = o->k->cluster->n_links > 0 ? a->nodes : 1;
    uint32_t n_b = o->k->cluster->n_links > 0 ? b->nodes : 1;
    for (uint32_t i = 0; i < n_a; i++) {
        for (uint32_t j = 0; j < n_b; j++) {
            look_at_pair(o->k->cluster, a->node + i, b->node + j, x);
        }
    }
}

static struct across look_across(const struct classes *o, const uint32_t *beyond)
{
    const struct hv_cluster *c = o->k->cluster;
    struct across x = {HUGE_VAL, c->matrix_bytes_per_s != NULL,
                       hv_arena_new(o->arena, bool, 2 * c->n_links + 1)};
    for (size_t a = 0; c->matrix_bytes_per_s == NULL && a < o->n; a++) {
        for (size_t b = 0; b < o->n; b++) {
            if (houses_of(o, beyond, a, false) > 0 && houses_of(o, beyond, b, true) > 0) {
                look_at_houses(o, a, b, &x);
            }
        }
    }
    return x;
}

/* The named links that the cut's traffic uses, in both directions together; *only: the one that it
 * uses, NULL where there are several. HUGE_VAL: not limited by links. */
static double links_rate(const struct classes *o, const struct across *x,
                         const struct hv_network_link **only)
{
    const struct hv_cluster *c = o->k->cluster;
    double *rates = hv_arena_new(o->arena, double, 2 * c->n_links + 1);
    size_t n = 0, n_links = 0;
    *only = NULL;
    for (size_t i = 0; !x->unlimited && i < 2 * c->n_links; i++) {
        const struct hv_network_link *l = &c->links[i / 2];
        if (x->seen[i]) {
            n_links += i % 2 == 0 || !x->seen[i - 1];
            *only = n_links == 1 ? l : NULL;
            rates[n++] = l->bytes_per_s;
        }
    }
    return n > 0 ? sum_of(rates, n) : HUGE_VAL;
}

static double largest_house(const struct classes *o)
{
    double nodes = 1;
    for (size_t i = 0; i < o->n; i++) {
        nodes = fmax(nodes, o->items[i].nodes);
    }
    return nodes;
}

static bool same_zone(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* "4 of 8 nodes like a": what one class has on the far side. */
static const char *class_words(const struct classes *o, size_t class, uint32_t houses)
{
    const struct hv_house_class *x = &o->items[class];
    const char *what = x->nodes > 1 ? "link domain" : "node";
    if (houses == x->houses) {
        return houses == 1 && x->group->count == 1
                   ? x->group->name
                   : hv_arena_printf(o->arena, "the %u %s%s like those of %s", houses, what,
                                     houses == 1 ? "" : "s", x->group->name);
    }
    return hv_arena_printf(o->arena, "%u of the %u %ss like those of %s", houses, x->houses, what,
                           x->group->name);
}

/* `link`: the only one between the sides, or NULL where nodes are slower or there are several. */
static const char *words_of(const struct classes *o, const struct hv_network_link *link,
                            const uint32_t *beyond)
{
    if (link) {
        return hv_arena_printf(o->arena, "the link between %s and %s (%.4g GB/s)", link->a, link->b,
                               link->bytes_per_s / HV_GBPS);
    }
    size_t n = 0, last = 0;
    for (size_t i = 0; i < o->n; i++) {
        n += beyond[i] > 0;
        last = beyond[i] > 0 ? i : last;
    }
    return hv_arena_printf(o->arena, "the network between %s and the other nodes",
                           n > 1 ? o->items[last].group->zone : class_words(o, last, beyond[last]));
}

/* Fills the cut with these houses on the far side; false: its capacity is not known. */
static bool fill_cut(const struct classes *o, const uint32_t *beyond, struct hv_cost_cut *out)
{
    const struct hv__context *k = o->k;
    struct across x = look_across(o, beyond);
    const struct hv_network_link *only = NULL;
    struct side a = look_at_side(o, beyond, false), b = look_at_side(o, beyond, true);
    double rate = links_rate(o, &x, &only), nodes = fmin(a.rate, b.rate);
    double sums = fmin(rate * fmin(a.factor, b.factor), nodes);
    double links = rate * fmax(a.factor, b.factor), most = fmin(links, nodes);
    enum hv_link_class class =
        hv__some_plain_network(k->cluster) ? HV_CURVE_PLAIN : HV_CURVE_NETWORK;
    double hop = hv_link_share(hv_link_curve(class, HV_USE_ALL_TO_ALL), LONG_BYTES);
    double ring = hv_link_share(hv_link_curve(class, HV_USE_RING), LONG_BYTES);
    double bytes = (double)k->job.global_batch * hv__tokens(k) * k->model->hidden *
                   hv_job_activation_bytes(&k->job);
    if (!(sums > 0) || !isfinite(most)) {
        return false;
    }
    *out = (struct hv_cost_cut){.beyond = beyond,
                                .hop_s = bytes / (most * hop),
                                .byte_s = 1 / (sums * ring * largest_house(o)),
                                .latency_s = isfinite(x.latency_s) ? x.latency_s : 0,
                                .words = words_of(o, most == links ? only : NULL, beyond)};
    return true;
}

/* True where the list has that cut, with the sides in either order. */
static bool is_listed(const struct classes *o, const uint32_t *beyond)
{
    for (size_t i = 0; i < o->out->n; i++) {
        size_t same = 0, opposite = 0;
        for (size_t c = 0; c < o->n; c++) {
            same += o->out->items[i].beyond[c] == beyond[c];
            opposite += o->out->items[i].beyond[c] == o->items[c].houses - beyond[c];
        }
        if (same == o->n || opposite == o->n) {
            return true;
        }
    }
    return false;
}

/* Adds the cut with these houses on the far side, where both sides have some. */
static void add_cut(struct classes *o, const uint32_t *beyond)
{
    bool near = false, far = false;
    for (size_t i = 0; i < o->n; i++) {
        near = near || houses_of(o, beyond, i, false) > 0;
        far = far || beyond[i] > 0;
    }
    if (near && far && !is_listed(o, beyond)) {
        o->out->n += fill_cut(o, beyond, &o->out->items[o->out->n]);
    }
}

/* Cuts off the zone of a class. */
static void cut_zone(struct classes *o, size_t class)
{
    uint32_t *beyond = hv_arena_new(o->arena, uint32_t, o->n + 1);
    for (size_t i = 0; i < o->n; i++) {
        bool with = same_zone(o->items[i].group->zone, o->items[class].group->zone);
        beyond[i] = with ? o->items[i].houses : 0;
    }
    add_cut(o, beyond);
}

/* Cuts off some houses of a class: every number of them, or of many houses numbers at about equal
 * ratios. */
static void cut_class(struct classes *o, size_t class)
{
    uint32_t houses = o->items[class].houses;
    double step = pow(houses, 1.0 / (CUTS_OF_CLASS - 1));
    for (uint32_t i = 0, n = 0; i < CUTS_OF_CLASS && n < houses; i++) {
        uint32_t next = houses <= CUTS_OF_CLASS ? n + 1 : (uint32_t)lround(pow(step, i));
        next = next > houses || i + 1 == CUTS_OF_CLASS ? houses : next;
        if (next > n) {
            uint32_t *beyond = hv_arena_new(o->arena, uint32_t, o->n + 1);
            beyond[class] = n = next;
            add_cut(o, beyond);
        }
    }
}

void hv__cuts(const struct hv__context *k, struct hv_arena *arena, struct hv_cost_cuts *out)
{
    out->houses = hv_houses_of(k->cluster, arena);
    struct classes o = {k, out->houses.classes, out->houses.n_classes, arena, out};
    if (o.n > CLASSES) {
        return;
    }
    out->items = hv_arena_new(arena, struct hv_cost_cut, o.n * (1 + CUTS_OF_CLASS) + 1);
    for (size_t i = 0; i < o.n; i++) {
        cut_zone(&o, i);
    }
    for (size_t i = 0; i < o.n; i++) {
        cut_class(&o, i);
    }
}
