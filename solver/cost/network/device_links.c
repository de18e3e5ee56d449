/*
 * Links of single devices. A flow keeps each of them busy for its own time where it gets the whole
 * link, and for less where the link is faster than the path (a full mesh, a slow root on the way).
 */
#include "solver/cost/network/device_links.h"

#include <math.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"

struct list {
    struct hv_wire_use *items;
    size_t n;
};

static void use(struct list *l, enum hv_wire kind, uint64_t number, double busy_s, const char *why)
{
    if (busy_s > 0 && isfinite(busy_s)) {
        l->items[l->n++] = (struct hv_wire_use){hv_wire_id(kind, number), busy_s, why};
    }
}

/* One end of a flow: its device and the node that it is in. */
struct end {
    uint32_t device;
    struct hv_device_ref ref;
    const struct hv_node_group *group;
    const struct hv_island *island; /* or NULL */
};

static struct end end_at(const struct hv_cluster *c, uint32_t device)
{
    struct end e = {.device = device, .ref = hv_cluster_device(c, device)};
    e.group = &c->groups[e.ref.group];
    e.island = hv_node_group_island(e.group, e.ref.slot);
    return e;
}

/* The links of one end of a flow that takes time_s at the rate of its path. */
static void use_end(struct list *l, const struct end *e, const struct hv_path *p, double time_s,
                    bool sending)
{
    bool pcie = hv_link_reaches_host(p->kind), inside = p->level == HV_PATH_ISLAND;
    double bytes = time_s * p->bytes_per_s;
    const struct hv_link *own = inside && e->island ? &e->island->link : &e->group->intra;
    double rate = pcie ? hv_or(e->ref.kind->pcie_bytes_per_s, p->bytes_per_s) : own->bytes_per_s;
    bool root = e->island && e->island->shared;
    if (!(inside && root)) {
        enum hv_wire kind = pcie ? (sending ? HV_WIRE_HOST_OUT : HV_WIRE_HOST_IN)
                                 : (sending ? HV_WIRE_DEVICE_OUT : HV_WIRE_DEVICE_IN);
        use(l, kind, e->device, fmin(time_s, bytes / rate), "link of a device");
    }
    if (root) {
        use(l, sending ? HV_WIRE_ROOT_OUT : HV_WIRE_ROOT_IN,
            e->device - e->ref.slot + e->island->first,
            fmin(time_s, bytes / e->island->link.bytes_per_s), "link of an island");
    }
}

static void use_flow(const struct hv_cluster *c, uint32_t a, uint32_t b, double bytes,
                     struct list *l)
{
    struct hv_path p = hv_cluster_path(c, a, b);
    if (a == b || p.level >= HV_PATH_NETWORK) {
        return;
    }
    const struct hv_collective_query q = {
        .op = HV_P2P, .bytes = bytes, .devices = (const uint32_t[]){a, b}, .n = 2, .together = 1};
    struct hv_collective_cost cost = hv_cost_collective(c, &q, NULL);
    struct end from = end_at(c, a), to = end_at(c, b);
    use_end(l, &from, &p, cost.time_s - cost.alpha_s, true);
    use_end(l, &to, &p, cost.time_s - cost.alpha_s, false);
}

size_t hv_cost_device_uses(const struct hv_cluster *c, const struct hv_hop_query *q,
                           struct hv_wire_use *out)
{
    struct list l = {.items = out};
    size_t n = q->n_from > q->n_to ? q->n_from : q->n_to;
    for (size_t i = 0; q->n_from > 0 && q->n_to > 0 && q->bytes > 0 && i < n; i++) {
        use_flow(c, q->from[i * q->n_from / n], q->to[i * q->n_to / n], q->bytes / (double)n, &l);
    }
    return l.n;
}

size_t hv_cost_host_uses(const struct hv_cluster *c, const struct hv_host_query *q,
                         struct hv_wire_use *out)
{
    struct list l = {.items = out};
    for (size_t i = 0; i < q->n; i++) {
        struct end e = end_at(c, q->devices[i]);
        double share = e.ref.kind->plain_rates ? 1 : HV_EFF_HOST;
        double bytes = q->bytes / (double)q->n / share;
        use(&l, q->to_host ? HV_WIRE_HOST_OUT : HV_WIRE_HOST_IN, e.device,
            bytes / hv_or(e.ref.kind->pcie_bytes_per_s, HV_PCIE_BYTES_PER_S),
            "link of a device to its host");
        if (e.island && e.island->shared && hv_link_reaches_host(e.island->link.kind)) {
            use(&l, q->to_host ? HV_WIRE_ROOT_OUT : HV_WIRE_ROOT_IN,
                e.device - e.ref.slot + e.island->first, bytes / e.island->link.bytes_per_s,
                "link of an island");
        }
        use(&l, HV_WIRE_HOST, e.ref.node,
            bytes / hv_or(e.group->host_memory_bytes_per_s, HV_HOST_MEMORY_BYTES_PER_S),
            "memory of the host");
    }
    return l.n;
}
