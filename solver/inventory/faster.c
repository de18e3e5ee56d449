/** Clusters with one part made faster, or all links slower. */
#include "solver/inventory/faster.h"

#include "solver/base/units.h"

size_t hv_cluster_parts(const struct hv_cluster *c, struct hv_arena *arena,
                        struct hv_cluster_part **out)
{
    size_t n = 0;
    struct hv_cluster_part *parts = hv_arena_new(arena, struct hv_cluster_part,
                                                 2 * (c->n_kinds + c->n_groups) + c->n_links + 1);
    for (size_t i = 0; i < c->n_kinds; i++) {
        parts[n++] = (struct hv_cluster_part){HV_PART_OF_FLOPS, i};
        if (hv_known(c->kinds[i]->memory_bytes_per_s)) {
            parts[n++] = (struct hv_cluster_part){HV_PART_OF_HBM, i};
        }
    }
    for (size_t i = 0; i < c->n_groups; i++) {
        if (c->groups[i].like == i) {
            parts[n++] = (struct hv_cluster_part){HV_PART_OF_NIC, i};
            parts[n++] = (struct hv_cluster_part){HV_PART_OF_INTRA, i};
        }
    }
    if (hv_known(c->network_bytes_per_s) || c->matrix_bytes_per_s != NULL) {
        parts[n++] = (struct hv_cluster_part){HV_PART_OF_NETWORK, 0};
    }
    for (size_t i = 0; i < c->n_links; i++) {
        if (hv_known(c->links[i].bytes_per_s)) {
            parts[n++] = (struct hv_cluster_part){HV_PART_OF_LINK, i};
        }
    }
    *out = parts;
    return n;
}

void hv_cluster_part_text(const struct hv_cluster *c, const struct hv_cluster_part *part,
                          struct hv_str *out)
{
    switch (part->kind) {
    case HV_PART_OF_FLOPS:
        hv_str_addf(out, "FLOP/s of %s", c->kinds[part->i]->name);
        break;
    case HV_PART_OF_HBM:
        hv_str_addf(out, "memory bandwidth of %s", c->kinds[part->i]->name);
        break;
    case HV_PART_OF_NIC:
        hv_str_addf(out, "NICs of %s", c->groups[part->i].name);
        break;
    case HV_PART_OF_INTRA:
        hv_str_addf(out, "links inside nodes of %s", c->groups[part->i].name);
        break;
    case HV_PART_OF_NETWORK:
        hv_str_adds(out, "network");
        break;
    case HV_PART_OF_LINK:
        hv_str_addf(out, "link between %s and %s", c->links[part->i].a, c->links[part->i].b);
        break;
    }
}

/** The kind with a multiplied rate, in every slot that has it. */
static void scale_kind(struct hv_cluster *to, const struct hv_cluster_part *part, double times)
{
    const struct hv_device_kind *was = to->kinds[part->i];
    struct hv_device_kind *kind = hv_arena_copy(&to->arena, was, 1, sizeof *was);
    if (part->kind == HV_PART_OF_HBM) {
        kind->memory_bytes_per_s *= times;
    } else {
        for (int i = 0; i < HV_PRECISION_N; i++) {
            kind->flops_per_s[i] *= times;
        }
        kind->matmul_flops_per_s *= times;
    }
    for (size_t i = 0; i < to->n_groups; i++) {
        struct hv_node_group *g = &to->groups[i];
        for (size_t s = 0; s < g->n_slots; s++) {
            g->slots[s].kind = g->slots[s].kind == was ? kind : g->slots[s].kind;
        }
    }
}

static void scale_intra(struct hv_cluster *to, struct hv_node_group *g, double times)
{
    g->intra.bytes_per_s *= times;
    g->islands = hv_arena_copy(&to->arena, g->islands, g->n_islands, sizeof *g->islands);
    for (size_t i = 0; i < g->n_islands; i++) {
        g->islands[i].link.bytes_per_s *= times;
    }
}

static void scale_network(struct hv_cluster *to, double times)
{
    size_t n = (size_t)to->n_nodes * to->n_nodes;
    to->network_bytes_per_s *= times;
    if (to->matrix_bytes_per_s != NULL) {
        to->matrix_bytes_per_s =
            hv_arena_copy(&to->arena, to->matrix_bytes_per_s, n, sizeof *to->matrix_bytes_per_s);
        for (size_t i = 0; i < n; i++) {
            to->matrix_bytes_per_s[i] *= times;
        }
    }
}

static void scale(struct hv_cluster *to, const struct hv_cluster_part *part, double times)
{
    switch (part->kind) {
    case HV_PART_OF_FLOPS:
    case HV_PART_OF_HBM:
        scale_kind(to, part, times);
        break;
    case HV_PART_OF_NIC:
    case HV_PART_OF_INTRA:
        for (size_t i = 0; i < to->n_groups; i++) {
            if (to->groups[i].like == part->i && part->kind == HV_PART_OF_NIC) {
                to->groups[i].nic.bytes_per_s *= times;
            } else if (to->groups[i].like == part->i) {
                scale_intra(to, &to->groups[i], times);
            }
        }
        break;
    case HV_PART_OF_NETWORK:
        scale_network(to, times);
        break;
    case HV_PART_OF_LINK:
        to->links = hv_arena_copy(&to->arena, to->links, to->n_links, sizeof *to->links);
        to->links[part->i].bytes_per_s *= times;
        break;
    }
}

/** A copy whose groups and slots may be changed; hv_cluster_finish is still to be called. */
static struct hv_cluster *copy_of(struct hv_cluster *c)
{
    struct hv_cluster *to = hv_xcalloc(1, sizeof *to);
    *to = *c;
    to->arena = (struct hv_arena){0};
    to->refs = 1;
    to->original = hv_cluster_ref(c);
    to->groups = hv_arena_copy(&to->arena, c->groups, c->n_groups, sizeof *c->groups);
    for (size_t i = 0; i < c->n_groups; i++) {
        struct hv_node_group *g = &to->groups[i];
        g->slots = hv_arena_copy(&to->arena, g->slots, g->n_slots, sizeof *g->slots);
    }
    return to;
}

static struct hv_cluster *finished(struct hv_cluster *c)
{
    if (hv_cluster_finish(c, NULL) != HV_OK) {
        HV_BUG("a faster cluster has as many devices as the one it was made from");
    }
    return c;
}

struct hv_cluster *hv_cluster_faster(struct hv_cluster *c, const struct hv_cluster_part *part,
                                     double times)
{
    struct hv_cluster *to = copy_of(c);
    scale(to, part, times);
    return finished(to);
}

static void slow_link(struct hv_link *l, double times)
{
    l->bytes_per_s /= times;
    l->latency_s *= times;
}

static void slow_network(struct hv_cluster *to, double times)
{
    size_t n = to->matrix_latency_s != NULL ? (size_t)to->n_nodes * to->n_nodes : 0;
    scale_network(to, 1 / times);
    to->network_latency_s *= times;
    if (n > 0) {
        to->matrix_latency_s =
            hv_arena_copy(&to->arena, to->matrix_latency_s, n, sizeof *to->matrix_latency_s);
    }
    for (size_t i = 0; i < n; i++) {
        to->matrix_latency_s[i] *= times;
    }
    to->links = hv_arena_copy(&to->arena, to->links, to->n_links, sizeof *to->links);
    for (size_t i = 0; i < to->n_links; i++) {
        to->links[i].bytes_per_s /= times;
        to->links[i].latency_s *= times;
    }
}

struct hv_cluster *hv_cluster_slow_links(struct hv_cluster *c, double times)
{
    struct hv_cluster *to = copy_of(c);
    for (size_t i = 0; i < to->n_groups; i++) {
        struct hv_node_group *g = &to->groups[i];
        slow_link(&g->intra, times);
        slow_link(&g->nic, times);
        g->islands = hv_arena_copy(&to->arena, g->islands, g->n_islands, sizeof *g->islands);
        for (size_t k = 0; k < g->n_islands; k++) {
            slow_link(&g->islands[k].link, times);
        }
    }
    slow_network(to, times);
    return finished(to);
}
