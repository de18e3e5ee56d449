/*
 * Clusters: numbering of groups, nodes and devices, ownership, shares of NICs and prices. Paths are
 * in path.c, addresses in address.c; files are read in solver/io/own.
 */
#include "solver/inventory/cluster.h"

#include "solver/base/units.h"
#include "solver/inventory/profile.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 10 Gbit/s: no server has slower network cards beside its accelerators. Where dividing by `count`
 * would give less, `count` is the number of devices that share one card (virtual NICs of cloud
 * instances: EC2 p3, g4dn). */
#define NIC_LEAST_BYTES_PER_S (1.25 * HV_GBPS)

#define X(c, name) name,
static const char *const link_kind_names[HV_LINK_KIND_N] = {HV_LINK_KIND_MAP(X)};
#undef X
static const char *const state_names[HV_NODE_STATE_N] = {"ok", "drain", "spare"};

const char *hv_link_kind_name(enum hv_link_kind k)
{
    return link_kind_names[k];
}

const char *hv_node_state_name(enum hv_node_state s)
{
    return state_names[s];
}

/* A kind and its first mention. */
struct mention {
    const struct hv_device_kind *kind;
    size_t at;
};

static int by_kind(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    if (x->kind != y->kind) {
        return (uintptr_t)x->kind < (uintptr_t)y->kind ? -1 : 1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

static int by_mention(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Lists the kinds in the order of first mention. O(slots · log(slots)). */
static void collect_kinds(struct hv_cluster *c)
{
    size_t n = 0, most = 0;
    for (size_t g = 0; g < c->n_groups; g++) {
        most += c->groups[g].n_slots;
    }
    struct mention *all = hv_xcalloc(most + 1, sizeof *all);
    for (size_t g = 0; g < c->n_groups; g++) {
        for (size_t i = 0; i < c->groups[g].n_slots; i++) {
            all[n] = (struct mention){c->groups[g].slots[i].kind, n};
            n++;
        }
    }
    qsort(all, n, sizeof *all, by_kind);
    c->n_kinds = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || all[i].kind != all[i - 1].kind) {
            all[c->n_kinds++] = all[i];
        }
    }
    qsort(all, c->n_kinds, sizeof *all, by_mention);
    c->kinds = hv_arena_new(&c->arena, const struct hv_device_kind *, c->n_kinds + 1);
    for (size_t i = 0; i < c->n_kinds; i++) {
        c->kinds[i] = all[i].kind;
    }
    free(all);
}

uint32_t hv_node_group_domain_nodes(const struct hv_node_group *g)
{
    return g->domain_nodes > 1 ? g->domain_nodes : 1;
}

/* ---- groups that are alike ----------------------------------------------------------------------
 */

static int compare_counts(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_links(const struct hv_link *a, const struct hv_link *b)
{
    int order = compare_counts(a->kind, b->kind);
    order = order != 0 ? order : hv_compare_numbers(a->bytes_per_s, b->bytes_per_s);
    order = order != 0 ? order : hv_compare_numbers(a->latency_s, b->latency_s);
    return order != 0 ? order : compare_counts(a->plain, b->plain);
}

static int compare_slots(const struct hv_node_group *a, const struct hv_node_group *b)
{
    int order = compare_counts(a->n_slots, b->n_slots);
    for (size_t i = 0; order == 0 && i < a->n_slots; i++) {
        const struct hv_slots *x = &a->slots[i], *y = &b->slots[i];
        order = compare_counts((uintptr_t)x->kind, (uintptr_t)y->kind);
        order = order != 0 ? order : compare_counts(x->count, y->count);
    }
    return order;
}

static int compare_islands(const struct hv_node_group *a, const struct hv_node_group *b)
{
    int order = compare_counts(a->n_islands, b->n_islands);
    for (size_t i = 0; order == 0 && i < a->n_islands; i++) {
        const struct hv_island *x = &a->islands[i], *y = &b->islands[i];
        order = compare_counts(x->first, y->first);
        order = order != 0 ? order : compare_counts(x->count, y->count);
        order = order != 0 ? order : compare_counts(x->shared, y->shared);
        order = order != 0 ? order : compare_links(&x->link, &y->link);
    }
    return order;
}

static int compare_zones(const char *a, const char *b)
{
    if (a == NULL || b == NULL) {
        return (b == NULL) - (a == NULL);
    }
    return strcmp(a, b);
}

/* An order of groups in which those that are alike are equal. */
static int compare_groups(const struct hv_node_group *a, const struct hv_node_group *b)
{
    int order = compare_zones(a->zone, b->zone);
    order = order != 0 ? order : compare_slots(a, b);
    order = order != 0 ? order : compare_islands(a, b);
    order = order != 0 ? order : compare_links(&a->intra, &b->intra);
    order = order != 0 ? order : compare_links(&a->nic, &b->nic);
    order = order != 0 ? order : compare_counts(a->n_nics, b->n_nics);
    order = order != 0
                ? order
                : compare_counts(hv_node_group_domain_nodes(a), hv_node_group_domain_nodes(b));
    order = order != 0 ? order
                       : hv_compare_numbers(a->host_memory_bytes_per_s, b->host_memory_bytes_per_s);
    return order != 0 ? order : hv_compare_numbers(a->host_memory_bytes, b->host_memory_bytes);
}

bool hv_node_groups_alike(const struct hv_node_group *a, const struct hv_node_group *b)
{
    return compare_groups(a, b) == 0;
}

static int by_likeness(const void *a, const void *b)
{
    const struct hv_node_group *const *x = a, *const *y = b;
    int order = compare_groups(*x, *y);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

/* For every group, the first one with hv_node_groups_alike. O(groups · log(groups)). */
static void find_like(struct hv_cluster *c)
{
    struct hv_node_group **sorted = hv_xcalloc(c->n_groups + 1, sizeof *sorted);
    for (size_t i = 0; i < c->n_groups; i++) {
        sorted[i] = &c->groups[i];
    }
    qsort(sorted, c->n_groups, sizeof(struct hv_node_group *), by_likeness);
    for (size_t i = 0; i < c->n_groups; i++) {
        bool again = i > 0 && hv_node_groups_alike(sorted[i - 1], sorted[i]);
        sorted[i]->like = again ? sorted[i - 1]->like : (uint32_t)(sorted[i] - c->groups);
    }
    free(sorted);
}

/* ---- numbers ------------------------------------------------------------------------------------
 */

enum hv_status hv_cluster_finish(struct hv_cluster *c, struct hv_err *err)
{
    uint64_t nodes = 0, devices = 0, domains = 0;
    for (size_t i = 0; i < c->n_groups; i++) {
        struct hv_node_group *g = &c->groups[i];
        uint32_t slot = 0;
        for (size_t s = 0; s < g->n_slots; s++) {
            g->slots[s].first = slot;
            slot += g->slots[s].count;
        }
        g->n_devices = slot;
        g->first_node = (uint32_t)nodes;
        g->first_device = (uint32_t)devices;
        g->first_domain = (uint32_t)domains;
        domains += g->count > 0 ? (g->count - 1) / hv_node_group_domain_nodes(g) + 1 : 0;
        nodes += g->count;
        devices += (uint64_t)g->count * g->n_devices;
        if (devices > HV_CLUSTER_MAX_DEVICES || nodes > HV_CLUSTER_MAX_DEVICES) {
            return hv_err_set(err, HV_ELIMIT,
                              "the cluster has more than %d devices; split it or lower a count",
                              HV_CLUSTER_MAX_DEVICES);
        }
    }
    c->n_nodes = (uint32_t)nodes;
    c->n_devices = (uint32_t)devices;
    collect_kinds(c);
    find_like(c);
    return HV_OK;
}

/* Puts a copy of a kind into its place, and returns it to be changed. */
static struct hv_device_kind *own_kind(struct hv_cluster *c, size_t kind)
{
    const struct hv_device_kind *old = c->kinds[kind];
    struct hv_device_kind *mine = hv_arena_copy(&c->arena, old, 1, sizeof *mine);
    c->kinds[kind] = mine;
    for (size_t g = 0; g < c->n_groups; g++) {
        struct hv_node_group *group = &c->groups[g];
        for (size_t s = 0; s < group->n_slots; s++) {
            if (group->slots[s].kind == old) {
                group->slots[s].kind = mine;
            }
        }
    }
    return mine;
}

void hv_cluster_calibrate_kind(struct hv_cluster *c, size_t kind, const struct hv_calibration *by)
{
    own_kind(c, kind)->calibration = by;
}

void hv_cluster_set_memory(struct hv_cluster *c, size_t kind, double bytes)
{
    own_kind(c, kind)->memory_bytes = bytes;
}

void hv_cluster_calibrate(struct hv_cluster *c, const struct hv_calibration *by)
{
    for (size_t k = 0; k < c->n_kinds; k++) {
        hv_cluster_calibrate_kind(c, k, by);
    }
}

struct hv_cluster *hv_cluster_ref(struct hv_cluster *c)
{
    c->refs++;
    return c;
}

void hv_cluster_unref(struct hv_cluster *c)
{
    while (c != NULL && --c->refs == 0) {
        struct hv_cluster *original = c->original;
        hv_arena_free(&c->arena);
        free(c);
        c = original;
    }
}

/* The last group whose first number is not above x; by node numbers or by device numbers. */
static size_t find_group(const struct hv_cluster *c, uint32_t x, bool by_node)
{
    size_t lo = 0, hi = c->n_groups;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        uint32_t first = by_node ? c->groups[mid].first_node : c->groups[mid].first_device;
        if (first <= x) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

const struct hv_device_kind *hv_node_kind_at(const struct hv_node_group *g, uint32_t slot)
{
    size_t i = 0;
    while (i + 1 < g->n_slots && slot >= g->slots[i + 1].first) {
        i++;
    }
    return g->slots[i].kind;
}

struct hv_device_ref hv_cluster_device(const struct hv_cluster *c, uint32_t id)
{
    size_t i = find_group(c, id, false);
    const struct hv_node_group *g = &c->groups[i];
    uint32_t in_group = id - g->first_device;
    struct hv_device_ref r = {.group = (uint32_t)i,
                              .node_in_group = in_group / g->n_devices,
                              .slot = in_group % g->n_devices};
    r.node = g->first_node + r.node_in_group;
    r.kind = hv_node_kind_at(g, r.slot);
    return r;
}

uint32_t hv_cluster_node_of(const struct hv_cluster *c, uint32_t device)
{
    const struct hv_node_group *g = &c->groups[find_group(c, device, false)];
    return g->first_node + (device - g->first_device) / g->n_devices;
}

const struct hv_node_group *hv_cluster_group_of_node(const struct hv_cluster *c, uint32_t node)
{
    return &c->groups[find_group(c, node, true)];
}

uint32_t hv_node_group_domain(const struct hv_node_group *g, uint32_t node)
{
    return g->first_domain + (node - g->first_node) / hv_node_group_domain_nodes(g);
}

uint32_t hv_cluster_domain_of(const struct hv_cluster *c, uint32_t node)
{
    return hv_node_group_domain(hv_cluster_group_of_node(c, node), node);
}

double hv_node_flow_bytes_per_s(const struct hv_node_group *g)
{
    double most = fmax(1, floor(g->nic.bytes_per_s / NIC_LEAST_BYTES_PER_S));
    uint32_t nics = g->n_nics > 1 ? g->n_nics : 1;
    if (most < nics) {
        nics = (uint32_t)most;
    }
    uint32_t each = nics > g->n_devices && g->n_devices > 0 ? nics / g->n_devices : 1;
    return g->nic.bytes_per_s * each / nics;
}

/* True where the price of a slot is part of another's: that of an accelerator instance contains its
 * host. */
static bool is_free(const struct hv_node_group *g, size_t slot)
{
    return g->slots[slot].kind->cls == HV_CLASS_CPU && g->n_slots > 1;
}

/* What a provider asks for all devices of a node; HV_UNKNOWN where it lacks one. NULL providers are
 * one. */
static double node_price_of(const struct hv_node_group *g, const char *provider, bool spot)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_slots; i++) {
        if (!is_free(g, i)) {
            sum += hv_device_price_of(g->slots[i].kind, provider, spot) * g->slots[i].count;
        }
    }
    return sum;
}

/* The provider that asks least for a node on demand, or NULL: none has all its devices. */
static const struct hv_price *cheapest_of(const struct hv_node_group *g)
{
    const struct hv_price *best = NULL;
    double least = (double)INFINITY;
    for (size_t i = 0; i < g->n_slots; i++) {
        const struct hv_device_kind *k = g->slots[i].kind;
        for (size_t p = 0; !is_free(g, i) && p < k->n_prices; p++) {
            double sum = node_price_of(g, k->prices[p].provider, false);
            if (sum < least) {
                least = sum;
                best = &k->prices[p];
            }
        }
    }
    return best;
}

double hv_node_price_usd_per_h(const struct hv_node_group *g, bool spot)
{
    double own = spot ? g->spot_usd_per_h : g->price_usd_per_h;
    if (hv_known(own)) {
        return own;
    }
    const struct hv_price *offer = cheapest_of(g);
    double price = offer ? node_price_of(g, offer->provider, false) : HV_UNKNOWN;
    if (!spot) {
        return price;
    }
    double least = offer ? node_price_of(g, offer->provider, true) : HV_UNKNOWN;
    return least <= hv_or(g->price_usd_per_h, price) ? least : HV_UNKNOWN;
}
