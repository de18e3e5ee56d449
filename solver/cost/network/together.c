/*
 * Groups that run the same collective at the same time on a shared network: the number of groups
 * that share the path of one of them.
 */
#include <math.h>
#include <stdlib.h>

#include "solver/base/units.h"
#include "solver/cost/network/collective.h"

/* A member and its group. */
struct seat {
    size_t group;
    size_t mention; /* position in the family of the first member on its node */
    uint32_t device;
};

/* A network element on the path of a ring, and the number of rings over it. */
struct element {
    uint64_t wire;
    double bytes_per_s, rings;
};

struct elements {
    struct element *items;
    size_t n;
};

static int by_group(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    return (a->device > b->device) - (a->device < b->device);
}

static int by_mention(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;
    if (a->group == b->group && a->mention != b->mention) {
        return a->mention < b->mention ? -1 : 1;
    }
    return by_group(x, y);
}

static int by_wire(const void *x, const void *y)
{
    const struct element *a = x, *b = y;
    return (a->wire > b->wire) - (a->wire < b->wire);
}

static size_t group_of(const struct hv_family *f, size_t i)
{
    return i / (f->stride * f->size) * f->stride + i % f->stride;
}

/* Members by group, those of a node together, nodes in the order in which the family names them: as
 * rings go (shape.c). */
static struct seat *sorted_seats(const struct hv_cluster *c, const struct hv_family *f)
{
    struct seat *s = hv_xmalloc(f->n * sizeof *s);
    bool sorted = true;
    for (size_t i = 0; i < f->n; i++) {
        s[i] = (struct seat){group_of(f, i), i, f->devices[i]};
        sorted = sorted && (i == 0 || by_group(&s[i - 1], &s[i]) < 0);
    }
    if (sorted) {
        return s;
    }
    qsort(s, f->n, sizeof *s, by_group);
    for (size_t i = 0, last; i < f->n; i = last) {
        size_t first = s[i].mention;
        uint32_t node = hv_cluster_node_of(c, s[i].device);
        for (last = i + 1; last < f->n && s[last].group == s[i].group &&
                           hv_cluster_node_of(c, s[last].device) == node;
             last++) {
            first = s[last].mention < first ? s[last].mention : first;
        }
        for (size_t k = i; k < last; k++) {
            s[k].mention = first;
        }
    }
    qsort(s, f->n, sizeof *s, by_mention);
    return s;
}

/* Adds the network elements between two neighbours of a ring, except their NICs. */
static void add_between(const struct hv_cluster *c, uint32_t a, uint32_t b, struct elements *out)
{
    const struct hv_network_link *x = c->n_links > 0 ? hv_cluster_link(c, a, b) : NULL;
    if (x && hv_known(x->bytes_per_s)) {
        out->items[out->n++] =
            (struct element){hv_wire_id(HV_WIRE_LINK, (uint64_t)(x - c->links)), x->bytes_per_s, 0};
    } else if (c->matrix_bytes_per_s) {
        out->items[out->n++] =
            (struct element){hv_wire_id(HV_WIRE_PAIR, (uint64_t)a * c->n_nodes + b),
                             hv_cluster_node_path(c, a, b).bytes_per_s, 0};
    }
}

/* Lists the network elements on the path of a ring through these members, each once and in order;
 * none where they share a link domain. */
static void list_elements(const struct hv_cluster *c, const struct seat *s, size_t n,
                          struct elements *out)
{
    bool far = false, plain = c->n_links == 0 && !c->matrix_bytes_per_s;
    double most = plain ? hv_or(c->network_bytes_per_s, HUGE_VAL) : HUGE_VAL;
    uint32_t before = hv_cluster_node_of(c, s[n - 1].device);
    uint32_t domain = hv_cluster_domain_of(c, before);
    out->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = hv_cluster_node_of(c, s[i].device);
        if (node == before && i > 0) {
            continue;
        }
        far = far || hv_cluster_domain_of(c, node) != domain;
        out->items[out->n++] =
            (struct element){hv_wire_id(HV_WIRE_NODE_OUT, node),
                             fmin(hv_cluster_group_of_node(c, node)->nic.bytes_per_s, most), 0};
        if (node != before) {
            add_between(c, before, node, out);
        }
        before = node;
    }
    out->n = far ? out->n : 0;
    if (out->n > 1) {
        qsort(out->items, out->n, sizeof *out->items, by_wire);
    }
    size_t kept = out->n > 0;
    for (size_t i = 1; i < out->n; i++) {
        if (out->items[i].wire != out->items[kept - 1].wire) {
            out->items[kept++] = out->items[i];
        }
    }
    out->n = kept;
}

/* Counts a ring on those elements of `own` that are on its path too. */
static void count(struct elements *own, const struct elements *ring)
{
    for (size_t i = 0, k = 0; i < ring->n && k < own->n;) {
        uint64_t a = ring->items[i].wire, b = own->items[k].wire;
        own->items[k].rings += a == b;
        i += a <= b;
        k += b <= a;
    }
}

/* The rate of the slowest element over the least rate that the ring gets of any, each divided among
 * the rings over it. */
static double worst(const struct elements *own)
{
    double slowest = HUGE_VAL, least = HUGE_VAL;
    for (size_t i = 0; i < own->n; i++) {
        slowest = fmin(slowest, own->items[i].bytes_per_s);
        least = fmin(least, own->items[i].bytes_per_s / own->items[i].rings);
    }
    return own->n > 0 && least > 0 ? fmax(1, slowest / least) : 1;
}

double hv_cost_together(const struct hv_cluster *c, const struct hv_family *f, size_t member)
{
    if (f->size < 2 || f->stride == 0 || member >= f->n || f->n <= f->size) {
        return 1;
    }
    struct seat *s = sorted_seats(c, f);
    size_t most = 0, group = group_of(f, member), from = 0, to = 0;
    for (size_t i = 0, last; i < f->n; i = last) {
        for (last = i; last < f->n && s[last].group == s[i].group; last++)
            ;
        most = last - i > most ? last - i : most;
        from = s[i].group == group ? i : from;
        to = s[i].group == group ? last : to;
    }
    struct elements own = {hv_xmalloc(2 * most * sizeof *own.items), 0};
    struct elements ring = {hv_xmalloc(2 * most * sizeof *ring.items), 0};
    list_elements(c, s + from, to - from, &own);
    for (size_t i = 0, last; own.n > 0 && i < f->n; i = last) {
        for (last = i; last < f->n && s[last].group == s[i].group; last++)
            ;
        list_elements(c, s + i, last - i, &ring);
        count(&own, &ring);
    }
    double out = worst(&own);
    free(ring.items);
    free(own.items);
    free(s);
    return out;
}
