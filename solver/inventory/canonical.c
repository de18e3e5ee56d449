/**
 * The canonical order of a cluster's node groups: the same hardware in the same order, however an
 * inventory lists it.
 */
#include "solver/inventory/cluster.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** A group with the figures by which it is ordered. */
struct ranked {
    const struct hv_node_group *group;
    double zone_flops_per_s; /**< of all nodes of its zone */
    double flops_per_s;      /**< of one device, the fastest of a node */
    double memory_bytes;     /**< of that device */
    size_t at;               /**< position in the file */
};

/** Peak of a kind at the 16-bit formats, else at the best of the others. */
static double peak_flops_per_s(const struct hv_device_kind *k)
{
    double best = fmax(hv_or(k->flops_per_s[HV_BF16], 0), hv_or(k->flops_per_s[HV_FP16], 0));
    for (int p = 0; best <= 0 && p < HV_PRECISION_N; p++) {
        best = hv_or(k->flops_per_s[p], 0);
    }
    return best;
}

static double node_flops_per_s(const struct hv_node_group *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_slots; i++) {
        sum += g->slots[i].count * peak_flops_per_s(g->slots[i].kind);
    }
    return sum;
}

/** Larger first. */
static int descending(double x, double y)
{
    return (x < y) - (x > y);
}

static int by_zone(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    const char *p = x->group->zone != NULL ? x->group->zone : "";
    const char *q = y->group->zone != NULL ? y->group->zone : "";
    return strcmp(p, q);
}

/** Compares hardware, then what a node costs and may do. 0: equal nodes. */
static int by_hardware(const struct ranked *x, const struct ranked *y)
{
    const struct hv_node_group *a = x->group, *b = y->group;
    const struct {
        double x, y;
    } figures[] = {
        {x->flops_per_s, y->flops_per_s},
        {x->memory_bytes, y->memory_bytes},
        {a->n_devices, b->n_devices},
        {node_flops_per_s(a), node_flops_per_s(b)},
        {hv_or(a->intra.bytes_per_s, 0), hv_or(b->intra.bytes_per_s, 0)},
        {hv_or(a->nic.bytes_per_s, 0), hv_or(b->nic.bytes_per_s, 0)},
        {a->n_nics, b->n_nics},
        {-hv_or(a->intra.latency_s, 0), -hv_or(b->intra.latency_s, 0)},
        {-hv_or(a->nic.latency_s, 0), -hv_or(b->nic.latency_s, 0)},
        {a->intra.plain, b->intra.plain},
        {a->nic.plain, b->nic.plain},
        {hv_node_group_domain_nodes(a), hv_node_group_domain_nodes(b)},
        {hv_or(a->host_memory_bytes_per_s, 0), hv_or(b->host_memory_bytes_per_s, 0)},
        {hv_or(a->host_memory_bytes, 0), hv_or(b->host_memory_bytes, 0)},
        {-(double)a->state, -(double)b->state},
        {-hv_or(a->preemptions_per_h, 0), -hv_or(b->preemptions_per_h, 0)},
        {-hv_or(a->price_usd_per_h, 0), -hv_or(b->price_usd_per_h, 0)},
        {-hv_or(a->spot_usd_per_h, 0), -hv_or(b->spot_usd_per_h, 0)},
    };
    for (size_t i = 0; i < HV_COUNT(figures); i++) {
        int c = descending(figures[i].x, figures[i].y);
        if (c != 0) {
            return c;
        }
    }
    return strcmp(a->slots[0].kind->name, b->slots[0].kind->name);
}

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int c = descending(x->zone_flops_per_s, y->zone_flops_per_s);
    c = c != 0 ? c : by_zone(a, b);
    c = c != 0 ? c : by_hardware(x, y);
    return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

/** Fills in the sums of zones of groups that are sorted by zone. */
static void sum_zones(struct ranked *r, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        double sum = 0;
        for (end = i; end < n && by_zone(&r[i], &r[end]) == 0; end++) {
            sum += r[end].group->count * node_flops_per_s(r[end].group);
        }
        for (size_t k = i; k < end; k++) {
            r[k].zone_flops_per_s = sum;
        }
    }
}

static struct ranked rank_of(const struct hv_node_group *g, size_t at)
{
    struct ranked r = {.group = g, .at = at};
    for (size_t i = 0; i < g->n_slots; i++) {
        double flops = peak_flops_per_s(g->slots[i].kind);
        if (i == 0 || flops > r.flops_per_s) {
            r.flops_per_s = flops;
            r.memory_bytes = hv_or(g->slots[i].kind->memory_bytes, 0);
        }
    }
    return r;
}

/** Rows and columns of a matrix over nodes in the order of `from`. */
static double *permuted(struct hv_arena *a, const double *matrix, const uint32_t *from, size_t n)
{
    if (matrix == NULL) {
        return NULL;
    }
    double *out = hv_arena_new(a, double, n *n + 1);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            out[i * n + k] = matrix[from[i] * n + from[k]];
        }
    }
    return out;
}

/** Copies the groups in the order of the ranks, and matrices with their nodes. */
static void copy_groups(struct hv_cluster *to, const struct hv_cluster *c, const struct ranked *r)
{
    uint32_t *from = hv_arena_new(&to->arena, uint32_t, (size_t)c->n_nodes + 1);
    size_t node = 0;
    to->groups = hv_arena_new(&to->arena, struct hv_node_group, c->n_groups);
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct hv_node_group *g = r[i].group;
        to->groups[i] = *g;
        to->groups[i].slots = hv_arena_copy(&to->arena, g->slots, g->n_slots, sizeof *g->slots);
        for (uint32_t k = 0; k < g->count; k++) {
            from[node++] = g->first_node + k;
        }
    }
    to->matrix_bytes_per_s = permuted(&to->arena, c->matrix_bytes_per_s, from, c->n_nodes);
    to->matrix_latency_s = permuted(&to->arena, c->matrix_latency_s, from, c->n_nodes);
}

struct hv_cluster *hv_cluster_canonical(struct hv_cluster *c)
{
    struct ranked *r = hv_xcalloc(c->n_groups + 1, sizeof *r);
    bool sorted = true;
    for (size_t i = 0; i < c->n_groups; i++) {
        r[i] = rank_of(&c->groups[i], i);
    }
    qsort(r, c->n_groups, sizeof *r, by_zone);
    sum_zones(r, c->n_groups);
    qsort(r, c->n_groups, sizeof *r, by_rank);
    for (size_t i = 0; i < c->n_groups; i++) {
        sorted = sorted && r[i].at == i;
    }
    if (sorted) {
        free(r);
        return hv_cluster_ref(c);
    }
    struct hv_cluster *to = hv_xcalloc(1, sizeof *to);
    *to = *c;
    to->arena = (struct hv_arena){0};
    to->refs = 1;
    to->original = hv_cluster_ref(c);
    copy_groups(to, c, r);
    free(r);
    /* the counts are those of a cluster that was within the limits */
    if (hv_cluster_finish(to, NULL) != HV_OK) {
        hv_cluster_unref(to);
        return hv_cluster_ref(c);
    }
    return to;
}
