/* Node groups of a cluster file: devices, links inside the node, NICs, price and state. */
#include "solver/base/units.h"
#include "solver/io/own/cluster/cluster_int.h"
#include "solver/io/own/doc/keys.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PER_NODE 100000
#define MAX_NICS     100000
#define MAX_RACK     1024 /* nodes; larger domains are not split into equal shares */
#define MAX_USD      1e9
#define MAX_RATE     1e6 /* preemptions per hour */
#define MAX_HOST_GIB 1e6

#define X(c, name) name,
static const char *const link_words[HV_LINK_KIND_N] = {HV_LINK_KIND_MAP(X)};
#undef X
static const char *const state_words[HV_NODE_STATE_N] = {"ok", "drain", "spare"};

/* Delays of one message that the catalogue does not hold; round figures of the usual order. */
static double default_latency_s(enum hv_link_kind k)
{
    switch (k) {
    case HV_LINK_NVLINK:
    case HV_LINK_NVSWITCH:
    case HV_LINK_XGMI:
    case HV_LINK_HCCS:
    case HV_LINK_ICI:
    case HV_LINK_OTHER:
        return 3e-6;
    case HV_LINK_PCIE:
    case HV_LINK_PCIE_ROOT:
    case HV_LINK_IB:
        return 5e-6;
    case HV_LINK_HOST:
    case HV_LINK_ETHERNET:
    case HV_LINK_KIND_N:
        break;
    }
    return HV_HOST_LATENCY_S;
}

static enum hv_link_kind link_kind_of(const char *catalogue_name)
{
    static const struct {
        const char *start;
        enum hv_link_kind kind;
    } rows[] = {{"NVLink2+NVSwitch", HV_LINK_NVSWITCH},
                {"NVLink", HV_LINK_NVLINK},
                {"xGMI", HV_LINK_XGMI},
                {"HCCS/UB", HV_LINK_OTHER},
                {"HCCS", HV_LINK_HCCS},
                {"ICI", HV_LINK_ICI},
                {"RoCE", HV_LINK_ETHERNET},
                {"PCIe", HV_LINK_PCIE}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (strncmp(catalogue_name, rows[i].start, strlen(rows[i].start)) == 0) {
            return rows[i].kind;
        }
    }
    return HV_LINK_OTHER;
}

/* True where the kind's own link joins n devices. Bridges join pairs only. */
static bool link_joins(const struct hv_device_kind *k, uint32_t n)
{
    if (!k->link_kind || !hv_known(k->link_bytes_per_s) || k->cls == HV_CLASS_CPU) {
        return false;
    }
    if (k->link_domain > 0) {
        return (uint32_t)k->link_domain >= n;
    }
    return n <= 2 || !strstr(k->link_kind, "bridge");
}

static struct hv_link pcie_link(const struct hv_node_group *g)
{
    double least = (double)INFINITY;
    for (size_t i = 0; i < g->n_slots; i++) {
        least = fmin(least, hv_or(g->slots[i].kind->pcie_bytes_per_s, (double)INFINITY));
    }
    return (struct hv_link){HV_LINK_PCIE, isinf(least) ? HV_PCIE_BYTES_PER_S : least,
                            default_latency_s(HV_LINK_PCIE), false};
}

/* The only kind of the node's accelerators and their number, or NULL where there are several
 * kinds. */
static const struct hv_device_kind *only_kind(const struct hv_node_group *g, uint32_t *n)
{
    const struct hv_device_kind *k = NULL;
    *n = 0;
    for (size_t i = 0; i < g->n_slots; i++) {
        const struct hv_device_kind *x = g->slots[i].kind;
        if (x->cls == HV_CLASS_CPU) {
            continue;
        }
        if (k && k != x) {
            return NULL;
        }
        k = x;
        *n += g->slots[i].count;
    }
    return k;
}

/* The catalogue's link between all devices of the node. */
static struct hv_link default_intra(const struct hv_node_group *g, bool islands)
{
    uint32_t n = 0;
    const struct hv_device_kind *k = only_kind(g, &n);
    if (!k || islands || !link_joins(k, n)) {
        return pcie_link(g);
    }
    enum hv_link_kind kind = link_kind_of(k->link_kind);
    return (struct hv_link){kind, k->link_bytes_per_s, default_latency_s(kind), false};
}

enum hv_status hv__link_figures(const struct hv_jp *p, double *bytes_per_s, double *latency_s,
                                struct hv_err *err)
{
    double gbps = HV_UNKNOWN, us = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_jp_opt_number(p, "bandwidth_GBps", HV_MIN_GBPS, HV_MAX_GBPS, &gbps, err)) ||
        (st = hv_jp_opt_number(p, "latency_us", 0, HV_MAX_LATENCY_US, &us, err))) {
        return st;
    }
    *bytes_per_s = hv_known(gbps) ? gbps * HV_GBPS : *bytes_per_s;
    *latency_s = hv_known(us) ? us * HV_US : *latency_s;
    return HV_OK;
}

enum hv_status hv__link_curve(const struct hv_jp *p, bool *plain, double *latency_s,
                              struct hv_err *err)
{
    static const char *const words[] = {"measured", "plain"};
    int word = *plain;
    enum hv_status st = hv_jp_opt_word(p, "curve", words, HV_COUNT(words), &word, err);
    *plain = word == 1;
    *latency_s = *plain ? 0 : *latency_s;
    return st;
}

/* Reads `kind`, `curve`, `bandwidth_GBps` and `latency_us`; a kind other than the default's has a
 * latency of its own. */
static enum hv_status read_link(const struct hv_jp *p, struct hv_link *l, struct hv_err *err)
{
    int kind = (int)l->kind;
    enum hv_status st = hv_jp_opt_word(p, "kind", link_words, HV_LINK_KIND_N, &kind, err);
    if (st == HV_OK && kind != (int)l->kind) {
        l->kind = (enum hv_link_kind)kind;
        l->latency_s = default_latency_s(l->kind);
    }
    st = st ? st : hv__link_curve(p, &l->plain, &l->latency_s, err);
    return st ? st : hv__link_figures(p, &l->bytes_per_s, &l->latency_s, err);
}

/* "3" or "0-3". */
static enum hv_status read_slot_range(const struct hv_jp *p, uint32_t limit, struct hv_island *s,
                                      struct hv_err *err)
{
    const char *text = NULL;
    enum hv_status st = hv_jp_string(p, &text, err);
    if (st) {
        return st;
    }
    size_t a = strspn(text, "0123456789"), b = 0;
    bool range = text[a] == '-';
    if (range) {
        b = strspn(text + a + 1, "0123456789");
    }
    if (a == 0 || a > 6 || b > 6 || (range && b == 0) || text[a + range + b]) {
        return hv_jp_expected(p, err, "slots of the node such as \"0-3\"");
    }
    unsigned long from = strtoul(text, NULL, 10);
    unsigned long to = range ? strtoul(text + a + 1, NULL, 10) : from;
    if (to < from || to >= limit) {
        return hv_jp_fail(p, err, "expected slots inside 0-%u, found \"%s\"", limit - 1, text);
    }
    s->first = (uint32_t)from;
    s->count = (uint32_t)(to - from + 1);
    return HV_OK;
}

static enum hv_status read_island(const struct hv_jp *p, const struct hv_node_group *g,
                                  struct hv_island *s, struct hv_err *err)
{
    struct hv_jp slots = {0};
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_ISLAND, err)) ||
        (st = hv_jp_need(p, "devices", "slots such as \"0-3\"", &slots, err)) ||
        (st = read_slot_range(&slots, g->n_devices, s, err))) {
        return st;
    }
    const struct hv_device_kind *k = hv_node_kind_at(g, s->first);
    s->link = pcie_link(g);
    if (link_joins(k, s->count)) {
        enum hv_link_kind kind = link_kind_of(k->link_kind);
        s->link = (struct hv_link){kind, k->link_bytes_per_s, default_latency_s(kind), false};
    }
    s->link.plain = g->intra.plain;
    if ((st = read_link(p, &s->link, err)) || (st = hv_jp_opt_bool(p, "shared", &s->shared, err))) {
        return st;
    }
    for (const struct hv_island *o = g->islands; o < s; o++) {
        if (s->first < o->first + o->count && o->first < s->first + s->count) {
            return hv_jp_fail(&slots, err, "the slots overlap those of group %td", o - g->islands);
        }
    }
    return HV_OK;
}

static enum hv_status read_intra(struct hv_cluster_build *b, const struct hv_jp *node,
                                 struct hv_node_group *g)
{
    struct hv_jp p = hv_jp_get(node, "intra"), groups = {0};
    g->intra = default_intra(g, false);
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    enum hv_status st = hv_keys_check(&p, HV_KEYS_INTRA, b->err);
    groups = hv_jp_get(&p, "groups");
    size_t n = 0;
    if (st == HV_OK && !hv_jp_none(&groups)) {
        st = hv_jp_array(&groups, &n, b->err);
    }
    g->intra = default_intra(g, n > 0);
    if (st || (st = read_link(&p, &g->intra, b->err))) {
        return st;
    }
    g->islands = hv_arena_new(&b->c->arena, struct hv_island, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&groups, i);
        st = read_island(&at, g, &g->islands[i], b->err);
        g->n_islands = i + 1;
    }
    return st;
}

/* Nodes per rack of a group of `count` when `most` fit: a job gets the same number from every rack
 * (64 nodes of NVL72 racks are four times 16), or full racks where the count is not divisible. */
static uint32_t rack_nodes(uint32_t count, uint32_t most)
{
    for (uint32_t d = most; count > most && most <= MAX_RACK && 2 * d > most; d--) {
        if (count % d == 0) {
            return d;
        }
    }
    return most;
}

/* Nodes joined by the device link where the file gives no number: as many as its domain holds, when
 * the domain is larger than a chassis and the devices of the node are on that link. */
static uint32_t default_domain_nodes(const struct hv_node_group *g)
{
    uint32_t n = 0;
    const struct hv_device_kind *k = only_kind(g, &n);
    if (!k || !k->link_kind || g->n_islands > 0 || k->link_domain <= HV_CHASSIS_DEVICES) {
        return 1;
    }
    enum hv_link_kind own = link_kind_of(k->link_kind);
    bool switched = own == HV_LINK_NVLINK && g->intra.kind == HV_LINK_NVSWITCH;
    bool larger = (uint32_t)k->link_domain > n;
    return larger && (g->intra.kind == own || switched)
               ? rack_nodes(g->count, (uint32_t)k->link_domain / n)
               : 1;
}

static enum hv_status read_domain(struct hv_cluster_build *b, const struct hv_jp *node,
                                  struct hv_node_group *g)
{
    int64_t nodes = default_domain_nodes(g);
    enum hv_status st =
        hv_jp_opt_int(node, "domain_nodes", 1, HV_CLUSTER_MAX_DEVICES, &nodes, b->err);
    g->domain_nodes = (uint32_t)nodes;
    return st;
}

static enum hv_status read_nic(struct hv_cluster_build *b, const struct hv_jp *node,
                               struct hv_node_group *g)
{
    struct hv_jp p = hv_jp_get(node, "nic");
    double latency_s = b->c->network_plain ? 0 : HV_NIC_LATENCY_S;
    g->nic = (struct hv_link){HV_LINK_ETHERNET, b->nic_bytes_per_s, latency_s, false};
    g->n_nics = 1;
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    int64_t count = 1;
    enum hv_status st;
    if ((st = hv_keys_check(&p, HV_KEYS_NIC, b->err)) ||
        (st = hv__link_curve(&p, &g->nic.plain, &g->nic.latency_s, b->err)) ||
        (st = hv__link_figures(&p, &g->nic.bytes_per_s, &g->nic.latency_s, b->err)) ||
        (st = hv_jp_opt_int(&p, "count", 1, MAX_NICS, &count, b->err))) {
        return st;
    }
    g->n_nics = (uint32_t)count;
    return HV_OK;
}

/* `devices` as a list of kinds; an element without a kind is of the node's. */
static enum hv_status read_slot_list(struct hv_cluster_build *b, const struct hv_jp *list,
                                     const struct hv_jp *node_device, struct hv_node_group *g)
{
    size_t n = 0;
    enum hv_status st = hv_jp_array(list, &n, b->err);
    if (st) {
        return st;
    }
    if (n == 0) {
        return hv_jp_expected(list, b->err, "at least one device");
    }
    g->slots = hv_arena_new(&b->c->arena, struct hv_slots, n);
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct hv_jp at = hv_jp_at(list, i), device = hv_jp_get(&at, "device");
        int64_t count = 1;
        if ((st = hv_keys_check(&at, HV_KEYS_SLOTS, b->err)) ||
            (st = hv_jp_opt_int(&at, "count", 1, MAX_PER_NODE, &count, b->err))) {
            return st;
        }
        if (hv_jp_none(&device) && hv_jp_none(node_device)) {
            st = hv_jp_need(&at, "device", "the name of a device", &device, b->err);
        }
        if (st || (st = hv__cluster_kind(b, hv_jp_none(&device) ? node_device : &device,
                                         &g->slots[i].kind))) {
            return st;
        }
        sum += count;
        if (sum > MAX_PER_NODE) {
            return hv_jp_fail(list, b->err, "more than %d devices in one node", MAX_PER_NODE);
        }
        g->slots[i].count = (uint32_t)count;
        g->slots[i].first = (uint32_t)(sum - count);
    }
    g->n_slots = n;
    g->n_devices = (uint32_t)sum;
    return HV_OK;
}

static enum hv_status read_devices(struct hv_cluster_build *b, const struct hv_jp *p,
                                   struct hv_node_group *g)
{
    struct hv_jp device = hv_jp_get(p, "device"), devices = hv_jp_get(p, "devices");
    if (json_is_array(devices.v)) {
        return read_slot_list(b, &devices, &device, g);
    }
    int64_t n = 1;
    enum hv_status st;
    if (!hv_jp_none(&devices) && !json_is_number(devices.v)) {
        return hv_jp_expected(&devices, b->err, "a number or a list of devices");
    }
    if ((st = hv_jp_need(p, "device", "the name of a device", &device, b->err)) ||
        (st = hv_jp_opt_int(p, "devices", 1, MAX_PER_NODE, &n, b->err))) {
        return st;
    }
    g->slots = hv_arena_new(&b->c->arena, struct hv_slots, 1);
    g->n_slots = 1;
    g->slots[0].count = g->n_devices = (uint32_t)n;
    return hv__cluster_kind(b, &device, &g->slots[0].kind);
}

static enum hv_status read_name(struct hv_cluster_build *b, const struct hv_jp *p,
                                struct hv_node_group *g)
{
    struct hv_jp at = {0};
    const char *s = NULL;
    enum hv_status st;
    if ((st = hv_jp_need(p, "name", "the name of the node group", &at, b->err)) ||
        (st = hv_jp_string(&at, &s, b->err))) {
        return st;
    }
    if (s[strcspn(s, "[]., \t\r\n*")]) {
        return hv_jp_expected(&at, b->err,
                              "a name without blanks, commas, dots, stars or brackets");
    }
    const json_t *other = json_object_get(b->group_at, s);
    if (other != NULL) {
        return hv_jp_fail(&at, b->err, "the name \"%.80s\" is taken by nodes[%lld] already", s,
                          (long long)json_integer_value(other));
    }
    g->name = hv_arena_strdup(&b->c->arena, s);
    json_object_set_new(b->group_at, s, json_integer(g - b->c->groups));
    return HV_OK;
}

static enum hv_status read_rest(struct hv_cluster_build *b, const struct hv_jp *p,
                                struct hv_node_group *g)
{
    const char *zone = NULL;
    double host = HV_UNKNOWN, memory = HV_UNKNOWN;
    int state = HV_NODE_OK;
    g->price_usd_per_h = g->spot_usd_per_h = g->preemptions_per_h = HV_UNKNOWN;
    enum hv_status st;
    if ((st = hv_jp_opt_string(p, "zone", &zone, b->err)) ||
        (st = hv_jp_opt_number(p, "host_memory_GBps", HV_MIN_GBPS, HV_MAX_GBPS, &host, b->err)) ||
        (st = hv_jp_opt_number(p, "host_memory_GiB", 0, MAX_HOST_GIB, &memory, b->err)) ||
        (st = hv_jp_opt_number(p, "price_usd_per_hour", 0, MAX_USD, &g->price_usd_per_h, b->err)) ||
        (st = hv_jp_opt_number(p, "spot_usd_per_hour", 0, MAX_USD, &g->spot_usd_per_h, b->err)) ||
        (st = hv_jp_opt_number(p, "preemptions_per_hour", 0, MAX_RATE, &g->preemptions_per_h,
                               b->err)) ||
        (st = hv_jp_opt_word(p, "state", state_words, HV_NODE_STATE_N, &state, b->err))) {
        return st;
    }
    g->zone = hv_arena_strdup(&b->c->arena, zone);
    if (zone != NULL) {
        json_object_set_new(b->zones, zone, json_true());
    }
    g->host_memory_bytes_per_s = host * HV_GBPS;
    g->host_memory_bytes = memory * HV_GIB;
    g->state = (enum hv_node_state)state;
    return HV_OK;
}

enum hv_status hv__cluster_node(struct hv_cluster_build *b, const struct hv_jp *p,
                                struct hv_node_group *g)
{
    int64_t count = 1;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_NODE, b->err)) || (st = read_name(b, p, g)) ||
        (st = hv_jp_opt_int(p, "count", 1, HV_CLUSTER_MAX_DEVICES, &count, b->err)) ||
        (st = read_devices(b, p, g)) || (st = read_intra(b, p, g))) {
        return st;
    }
    g->count = (uint32_t)count;
    if ((st = read_domain(b, p, g)) || (st = read_nic(b, p, g))) {
        return st;
    }
    return read_rest(b, p, g);
}
