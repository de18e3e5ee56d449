/* Nodes and cards collected by the readers, before the cluster document is made. */
#include "solver/io/import/draft/draft.h"
#include <string.h>

struct hv__card hv__card_unknown(void)
{
    return (struct hv__card){.memory_bytes = HV_UNKNOWN,
                             .pcie_bytes_per_s = HV_UNKNOWN,
                             .tdp_w = HV_UNKNOWN,
                             .compute = HV_UNKNOWN,
                             .host_bytes = HV_UNKNOWN,
                             .count = 1};
}

struct hv__node *hv__node_add(struct hv_import *im)
{
    if (im->nodes.n >= HV__MAX_NODES) {
        return NULL;
    }
    struct hv__node n = {.count = 1,
                         .usd_per_h = HV_UNKNOWN,
                         .spot_usd_per_h = HV_UNKNOWN,
                         .cpus = HV_UNKNOWN,
                         .memory_bytes = HV_UNKNOWN};
    n.links = (struct hv__links){.nvlink_bytes_per_s = HV_UNKNOWN,
                                 .device_bytes_per_s = HV_UNKNOWN,
                                 .device_latency_s = HV_UNKNOWN,
                                 .nic_bytes_per_s = HV_UNKNOWN,
                                 .nic_latency_s = HV_UNKNOWN,
                                 .host_bytes_per_s = HV_UNKNOWN};
    hv_vec_push(&im->nodes, n);
    return &im->nodes.items[im->nodes.n - 1];
}

struct hv__node *hv__node_here(struct hv_import *im)
{
    if (im->here == 0) {
        struct hv__node *n = hv__node_add(im);
        if (!n) {
            return &im->nodes.items[0];
        }
        n->id.file = im->files.n > 0 ? im->files.items[im->files.n - 1] : NULL;
        im->here = im->nodes.n;
    }
    return &im->nodes.items[im->here - 1];
}

/* FNV-1a. */
static size_t hash_of(const char *name, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (unsigned char)name[i]) * 1099511628211u;
    }
    return (size_t)(h ^ h >> 32);
}

static size_t slot_of(const struct hv_import *im, const char *name, size_t n)
{
    size_t at = hash_of(name, n) & (im->n_index - 1);
    while (im->node_index[at] != 0) {
        const char *other = im->nodes.items[im->node_index[at] - 1].name;
        if (strlen(other) == n && memcmp(other, name, n) == 0) {
            break;
        }
        at = (at + 1) & (im->n_index - 1);
    }
    return at;
}

static void grow_index(struct hv_import *im)
{
    free(im->node_index);
    im->n_index = im->n_index ? 4 * im->n_index : 1024;
    im->node_index = hv_xcalloc(im->n_index, sizeof *im->node_index);
    for (size_t i = 0; i < im->nodes.n; i++) {
        const char *name = im->nodes.items[i].name;
        if (name) {
            im->node_index[slot_of(im, name, strlen(name))] = (uint32_t)i + 1;
        }
    }
}

struct hv__node *hv__node_find(struct hv_import *im, const char *name, size_t n)
{
    size_t at = im->n_index > 0 ? slot_of(im, name, n) : 0;
    return im->n_index > 0 && im->node_index[at] != 0 ? &im->nodes.items[im->node_index[at] - 1]
                                                      : NULL;
}

struct hv__node *hv__node_named(struct hv_import *im, const char *name, size_t n)
{
    if (2 * (im->nodes.n + 1) > im->n_index) {
        grow_index(im);
    }
    size_t at = slot_of(im, name, n);
    if (im->node_index[at] == 0) {
        struct hv__node *node = hv__node_add(im);
        if (!node) {
            return NULL;
        }
        node->name = hv_arena_strndup(&im->arena, name, n);
        im->node_index[at] = (uint32_t)im->nodes.n;
    }
    return &im->nodes.items[im->node_index[at] - 1];
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_number(double a, double b)
{
    return (!hv_known(a) && !hv_known(b)) || fabs(a - b) <= 0.01 * fabs(b);
}

bool hv__card_same(const struct hv__card *a, const struct hv__card *b)
{
    return same_text(a->card, b->card) && same_text(a->slice, b->slice) &&
           same_text(a->features, b->features) && a->by_hand == b->by_hand &&
           same_number(a->host_bytes, b->host_bytes) &&
           (!hv_known(a->memory_bytes) || !hv_known(b->memory_bytes) ||
            same_number(a->memory_bytes, b->memory_bytes)) &&
           same_number(a->pcie_bytes_per_s, b->pcie_bytes_per_s) &&
           same_number(a->compute, b->compute);
}

void hv__card_add(struct hv__node *n, const struct hv__card *c)
{
    struct hv__card *last = n->cards.n > 0 ? &n->cards.items[n->cards.n - 1] : NULL;
    if (last && hv__card_same(last, c)) {
        last->count += c->count;
        last->memory_bytes = hv_or(last->memory_bytes, c->memory_bytes);
    } else if (c->count > 0) {
        hv_vec_push(&n->cards, *c);
    }
}

uint32_t hv__cards(const struct hv__node *n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n->cards.n; i++) {
        sum += n->cards.items[i].count;
    }
    return sum;
}
