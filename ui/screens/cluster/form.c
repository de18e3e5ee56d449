/* The cluster's form: the editable members of a group and of the network, and their defaults where
 * the file omits them. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/cluster/cluster_int.h"

enum { MAX_COUNT = 4000000, MAX_PORTS = 1024 };

static const char *const link_kinds[] = {
#define X(c, name) name,
    HV_LINK_KIND_MAP(X)
#undef X
};
static const char *const states[] = {"ok", "drain", "spare"};

/* What "2x8" sets: nodes and devices of each. */
static const char *const shape[] = {"count", "devices"};

/* clang-format off */
static const struct hv_doc_row group_rows[] = {
    {"name", "name", NULL, "used in device addresses such as a[0].0-7", HV_DOC_WORD, false, NULL, 0, 0, 0},
    {"device", "device", NULL, "Enter opens the catalogue, typed words narrow it: a100 80", HV_DOC_CHOICE, false, NULL, 0, 0, 0},
    {"nodes", "count", NULL, "identical nodes of this group; 2x8 sets the devices too", HV_DOC_WHOLE, false, NULL, 0, 1, MAX_COUNT},
    {"devices per node", "devices", NULL, "a number, or a JSON list of kinds and counts; 2x8: nodes too", HV_DOC_JSON, false, NULL, 0, 0, 0},
    {"state", "state", NULL, "ok: in use; drain, spare: not used by plans", HV_DOC_CHOICE, false, states, HV_COUNT(states), 0, 0},
    {"intra link", "intra.kind", NULL, "link between the devices of one node", HV_DOC_CHOICE, false, link_kinds, HV_COUNT(link_kinds), 0, 0},
    {"intra bandwidth", "intra.bandwidth_GBps", "GB/s", "one direction, per device; empty: catalogue", HV_DOC_NUMBER, true, NULL, 0, 1e-9, DBL_MAX},
    {"intra latency", "intra.latency_us", "us", "of one message; empty: default of this link", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
    {"NIC bandwidth", "nic.bandwidth_GBps", "GB/s", "one direction, all ports of the node: 25, 200GbE, 8xHDR", HV_DOC_NUMBER, true, NULL, 0, 1e-9, DBL_MAX},
    {"NIC latency", "nic.latency_us", "us", "of one message", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
    {"NIC ports", "nic.count", NULL, "ports per node", HV_DOC_WHOLE, true, NULL, 0, 1, MAX_PORTS},
    {"zone", "zone", NULL, "links between zones are set under L", HV_DOC_WORD, true, NULL, 0, 0, 0},
    {"price", "price_usd_per_hour", "$/h", "per node, on demand; empty: catalogue", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
    {"spot price", "spot_usd_per_hour", "$/h", "per node; empty: catalogue", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
    {"preemptions", "preemptions_per_hour", "1/h", "preemptions of a spot node", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
    {"host memory", "host_memory_GBps", "GB/s", "between CPU and its memory", HV_DOC_NUMBER, true, NULL, 0, 1e-9, DBL_MAX},
    {"host capacity", "host_memory_GiB", "GiB", "of the host, for what devices offload; empty: unknown", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
    {"link domain", "domain_nodes", "nodes", "consecutive nodes on the intra link (a rack); 1: none", HV_DOC_WHOLE, true, NULL, 0, 1, MAX_COUNT},
};
static const struct hv_doc_row network_rows[] = {
    {"network", "", NULL, NULL, HV_DOC_LABEL, false, NULL, 0, 0, 0},
    {"bandwidth", "cluster.network.bandwidth_GBps", "GB/s", "between nodes, per node: 25GbE, 100 Gb/s; empty: NIC only", HV_DOC_NUMBER, true, NULL, 0, 1e-9, DBL_MAX},
    {"latency", "cluster.network.latency_us", "us", "between nodes, added to the NIC latency", HV_DOC_NUMBER, true, NULL, 0, 0, DBL_MAX},
};
/* clang-format on */

static const struct hv_node_group *group_by_id(const struct hv_cluster_screen *v, uint64_t id,
                                               size_t *index)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    for (size_t i = 0; i < c->n_groups; i++) {
        if (hv_cluster_group_id(&c->groups[i]) == id) {
            *index = i;
            return &c->groups[i];
        }
    }
    return NULL;
}

static void add_number(struct hv_str *out, double x)
{
    if (hv_known(x)) {
        hv_str_addf(out, "%.6g", x); /* base units and back may leave a last digit */
    }
}

/* Default of a member that a group omits: the value in the built cluster. */
static void group_fallback(const struct hv_node_group *g, const char *path, struct hv_str *out)
{
    if (strcmp(path, "count") == 0) {
        hv_str_addf(out, "%u", g->count);
    } else if (strcmp(path, "devices") == 0) {
        hv_str_addf(out, "%u", g->n_devices);
    } else if (strcmp(path, "device") == 0) {
        hv_str_adds(out, g->slots[0].kind->name);
    } else if (strcmp(path, "state") == 0) {
        hv_str_adds(out, hv_node_state_name(g->state));
    } else if (strcmp(path, "intra.kind") == 0) {
        hv_str_adds(out, hv_link_kind_name(g->intra.kind));
    } else if (strcmp(path, "intra.bandwidth_GBps") == 0) {
        add_number(out, g->intra.bytes_per_s / HV_GBPS);
    } else if (strcmp(path, "intra.latency_us") == 0) {
        add_number(out, g->intra.latency_s / HV_US);
    } else if (strcmp(path, "domain_nodes") == 0) {
        hv_str_addf(out, "%u", hv_node_group_domain_nodes(g));
    } else if (strcmp(path, "nic.bandwidth_GBps") == 0) {
        add_number(out, g->nic.bytes_per_s / HV_GBPS);
    } else if (strcmp(path, "nic.latency_us") == 0) {
        add_number(out, g->nic.latency_s / HV_US);
    } else if (strcmp(path, "nic.count") == 0) {
        hv_str_addf(out, "%u", g->n_nics);
    } else if (strcmp(path, "price_usd_per_hour") == 0) {
        add_number(out, hv_node_price_usd_per_h(g, false));
    } else if (strcmp(path, "spot_usd_per_hour") == 0) {
        add_number(out, hv_node_price_usd_per_h(g, true));
    } else if (strcmp(path, "host_memory_GBps") == 0) {
        add_number(out, g->host_memory_bytes_per_s / HV_GBPS);
    } else if (strcmp(path, "host_memory_GiB") == 0) {
        add_number(out, g->host_memory_bytes / HV_GIB);
    }
}

static void fallback(const void *ctx, const struct hv_session *s, const struct hv_doc_row *row,
                     size_t base, struct hv_str *out)
{
    const struct hv_cluster_screen *v = ctx;
    size_t i;
    (void)s;
    if (v->editing == HV_EDIT_GROUPS && base < v->edited.n) {
        const struct hv_node_group *g = group_by_id(v, v->edited.items[base], &i);
        if (g != NULL) {
            group_fallback(g, row->path, out);
        }
    }
}

static void describe(const void *ctx, const struct hv_session *s, const char *choice,
                     struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    const struct hv_device_kind *k = hv_device_find(hv_session_devices(s), choice);
    (void)ctx;
    if (k == NULL) {
        return;
    }
    if (hv_known(k->memory_bytes)) {
        hv_str_addf(out, "%s  ", hv_fmt_bytes(buf, sizeof buf, k->memory_bytes));
    }
    enum hv_precision p = hv_session_job(s)->job.precision;
    if (hv_device_has(k, p)) {
        hv_str_addf(out, "%s %s",
                    hv_fmt_si(buf, sizeof buf, hv_device_peak_flops_per_s(k, p), "F/s"),
                    hv_precision_name(p));
    } else {
        hv_str_addf(out, "no %s", hv_precision_name(p));
    }
}

/* Names to choose from: the file's own kinds, then the catalogue. */
static void list_devices(struct hv_cluster_screen *v)
{
    const struct hv_device_catalogue *all = hv_session_devices(v->session);
    const json_t *own = json_object_get(hv_session_tree(v->session, HV_DOC_CLUSTER), "devices");
    v->devices.n = 0;
    for (void *it = json_object_iter((json_t *)(uintptr_t)own); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)own, it)) {
        hv_vec_push(&v->devices, json_object_iter_key(it));
    }
    for (size_t i = 0; i < all->n_kinds; i++) {
        hv_vec_push(&v->devices, all->kinds[i].name);
    }
}

static void fill_groups(struct hv_cluster_screen *v)
{
    char base[64];
    size_t found = 0;
    for (size_t e = 0; e < v->edited.n; e++) {
        size_t i;
        if (group_by_id(v, v->edited.items[e], &i) != NULL) {
            (void)snprintf(base, sizeof base, "cluster.nodes[%zu]", i);
            hv_doc_form_base(&v->form, base);
            v->edited.items[found++] = v->edited.items[e];
        }
    }
    v->edited.n = found;
    if (found == 0) {
        v->form.open = false;
        return;
    }
    list_devices(v);
    for (size_t r = 0; r < HV_COUNT(group_rows); r++) {
        struct hv_doc_row row = group_rows[r];
        if (strcmp(row.path, "device") == 0) {
            row.choices = v->devices.items;
            row.n_choices = v->devices.n;
        }
        if (found == 1 || strcmp(row.path, "name") != 0) {
            hv_doc_form_add(&v->form, &row);
        }
    }
    size_t first;
    const struct hv_node_group *g = group_by_id(v, v->edited.items[0], &first);
    if (found > 1) {
        (void)snprintf(v->form.title, sizeof v->form.title, "Edit %zu marked groups", found);
    } else {
        (void)snprintf(v->form.title, sizeof v->form.title, "Edit %.48s", g->name);
    }
}

static void fill_network(struct hv_cluster_screen *v)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    (void)snprintf(v->form.title, sizeof v->form.title, "Edit network");
    for (size_t r = 0; r < HV_COUNT(network_rows); r++) {
        hv_doc_form_add(&v->form, &network_rows[r]);
    }
    for (size_t i = 0; i < c->n_links; i++) {
        char name[32], path[96];
        (void)snprintf(name, sizeof name, "%.13s - %.13s", c->links[i].a, c->links[i].b);
        struct hv_doc_row row = {.name = name, .path = path, .value = HV_DOC_LABEL};
        path[0] = '\0';
        hv_doc_form_add(&v->form, &row);
        row = network_rows[1];
        row.path = path;
        (void)snprintf(path, sizeof path, "cluster.network.links[%zu].bandwidth_GBps", i);
        hv_doc_form_add(&v->form, &row);
        row = network_rows[2];
        row.path = path;
        (void)snprintf(path, sizeof path, "cluster.network.links[%zu].latency_us", i);
        hv_doc_form_add(&v->form, &row);
    }
}

void hv_cluster_form_fill(struct hv_cluster_screen *v)
{
    if (!v->form.open) {
        return;
    }
    hv_doc_form_clear(&v->form);
    v->form.fallback = fallback;
    v->form.describe = describe;
    v->form.ctx = v;
    v->form.shape = v->editing == HV_EDIT_GROUPS ? shape : NULL;
    if (v->editing == HV_EDIT_GROUPS) {
        fill_groups(v);
    } else {
        fill_network(v);
    }
    hv_doc_form_load(&v->form, v->session);
}

void hv_cluster_form_groups(struct hv_cluster_screen *v)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    const struct hv_node_group *g = hv_cluster_selected(v, NULL);
    v->edited.n = 0;
    for (size_t i = 0; i < c->n_groups; i++) {
        if (hv_cluster_is_marked(v, &c->groups[i])) {
            hv_vec_push(&v->edited, hv_cluster_group_id(&c->groups[i]));
        }
    }
    if (v->edited.n == 0 && g != NULL) {
        hv_vec_push(&v->edited, hv_cluster_group_id(g));
    }
    v->editing = HV_EDIT_GROUPS;
    v->form.open = v->edited.n > 0;
    v->form.form.cursor = v->edited.n > 1 ? 1 : 2; /* the number of nodes */
    v->form.form.top = 0;
    v->panel = HV_CLUSTER_SIDE;
    hv_cluster_form_fill(v);
}

size_t hv_cluster_link_between(const struct hv_cluster *c, size_t a, size_t b)
{
    const struct hv_node_group *x = &c->groups[a], *y = &c->groups[b];
    for (size_t i = 0; i < c->n_links; i++) {
        const char *p = c->links[i].a, *q = c->links[i].b;
        bool straight = strcmp(p, x->name) == 0 && strcmp(q, y->name) == 0;
        bool back = strcmp(q, x->name) == 0 && strcmp(p, y->name) == 0;
        bool zones = x->zone != NULL && y->zone != NULL &&
                     ((strcmp(p, x->zone) == 0 && strcmp(q, y->zone) == 0) ||
                      (strcmp(q, x->zone) == 0 && strcmp(p, y->zone) == 0));
        if (straight || back || zones) {
            return i;
        }
    }
    return c->n_links;
}

void hv_cluster_form_network(struct hv_cluster_screen *v)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    size_t link = hv_cluster_link_between(c, v->link_row, v->link_column);
    v->editing = HV_EDIT_NETWORK;
    v->form.open = true;
    v->panel = HV_CLUSTER_SIDE;
    v->form.form.top = 0;
    v->form.form.cursor = link < c->n_links ? HV_COUNT(network_rows) + 3 * link + 1 : 1;
    hv_cluster_form_fill(v);
}
