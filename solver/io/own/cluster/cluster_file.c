/* Cluster files (hetviz.cluster/1): the top level, and the network between the nodes. */
#include "solver/base/units.h"
#include "solver/io/own/cluster/cluster_int.h"
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS       100000
#define MAX_MATRIX_NODES 4096

/* True where `end` is a group, a zone or "group[n]". */
static bool names_something(struct hv_cluster_build *b, const char *end)
{
    size_t n = strcspn(end, "[");
    if (end[n] == '\0') {
        return json_object_get(b->group_at, end) != NULL || json_object_get(b->zones, end) != NULL;
    }
    size_t digits = strspn(end + n + 1, "0123456789");
    const char *name = hv_arena_printf(&b->c->arena, "%.*s", (int)n, end);
    const json_t *at = json_object_get(b->group_at, name);
    return at != NULL && digits > 0 && digits < 9 && strcmp(end + n + 1 + digits, "]") == 0 &&
           strtoul(end + n + 1, NULL, 10) < b->c->groups[json_integer_value(at)].count;
}

static enum hv_status read_end(struct hv_cluster_build *b, const struct hv_jp *p, const char **out)
{
    const char *s = NULL;
    enum hv_status st = hv_jp_string(p, &s, b->err);
    if (st) {
        return st;
    }
    if (names_something(b, s)) {
        *out = hv_arena_strdup(&b->c->arena, s);
        return HV_OK;
    }
    const char **names = hv_xcalloc(2 * b->c->n_groups + 1, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < b->c->n_groups; i++) {
        names[n++] = b->c->groups[i].name;
        if (b->c->groups[i].zone) {
            names[n++] = b->c->groups[i].zone;
        }
    }
    const char *near = hv_suggest(s, names, n);
    hv_jp_fail(p, b->err,
               "expected a node group, a zone or a node such as \"%s[0]\", found \"%.80s\"%s%s%s",
               b->c->groups[0].name, s, near ? "; did you mean \"" : "", near ? near : "",
               near ? "\"?" : "");
    free(names);
    return HV_EINPUT;
}

static enum hv_status read_network_link(struct hv_cluster_build *b, const struct hv_jp *p,
                                        struct hv_network_link *l)
{
    struct hv_jp between = {0};
    size_t n = 0;
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_NETWORK_LINK, b->err)) ||
        (st = hv_jp_need(p, "between", "two names", &between, b->err)) ||
        (st = hv_jp_array(&between, &n, b->err))) {
        return st;
    }
    if (n != 2) {
        return hv_jp_fail(&between, b->err, "expected two names, found %zu", n);
    }
    struct hv_jp a = hv_jp_at(&between, 0), z = hv_jp_at(&between, 1);
    l->bytes_per_s = l->latency_s = HV_UNKNOWN;
    if ((st = read_end(b, &a, &l->a)) || (st = read_end(b, &z, &l->b)) ||
        (st = hv__link_figures(p, &l->bytes_per_s, &l->latency_s, b->err))) {
        return st;
    }
    if (!hv_known(l->bytes_per_s) && !hv_known(l->latency_s)) {
        return hv_jp_fail(p, b->err, "expected bandwidth_GBps, latency_us or both, found neither");
    }
    return HV_OK;
}

static enum hv_status read_links(struct hv_cluster_build *b, const struct hv_jp *network)
{
    struct hv_jp list = hv_jp_get(network, "links");
    size_t n = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n, b->err);
    b->c->links = hv_arena_new(&b->c->arena, struct hv_network_link, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_network_link(b, &at, &b->c->links[i]);
    }
    b->c->n_links = st ? 0 : n;
    return st;
}

/* Full rows, one per node; null is unknown, and the diagonal does not matter. */
static enum hv_status read_matrix(struct hv_cluster_build *b, const struct hv_jp *network,
                                  const char *key, double unit, double **out)
{
    struct hv_jp rows = hv_jp_get(network, key);
    size_t n = b->c->n_nodes, n_rows = 0, n_cells = 0;
    if (hv_jp_none(&rows)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&rows, &n_rows, b->err);
    if (st == HV_OK && n_rows != n) {
        return hv_jp_fail(&rows, b->err, "expected %zu rows, one per node, found %zu", n, n_rows);
    }
    if (st == HV_OK && n > MAX_MATRIX_NODES) {
        return hv_jp_fail(&rows, b->err, "a matrix is read for at most %d nodes; use links",
                          MAX_MATRIX_NODES);
    }
    if (st) {
        return st;
    }
    double *m = hv_arena_new(&b->c->arena, double, n *n);
    bool bandwidth = unit > 1;
    for (size_t i = 0; i < n; i++) {
        struct hv_jp row = hv_jp_at(&rows, i);
        if ((st = hv_jp_array(&row, &n_cells, b->err))) {
            return st;
        }
        if (n_cells != n) {
            return hv_jp_fail(&row, b->err, "expected %zu numbers, one per node, found %zu", n,
                              n_cells);
        }
        for (size_t k = 0; k < n; k++) {
            struct hv_jp cell = hv_jp_at(&row, k);
            double x = HV_UNKNOWN, least = bandwidth && i != k ? HV_MIN_GBPS : 0;
            st = hv_jp_none(&cell) ? HV_OK
                                   : hv_jp_number(&cell, least, HV_MAX_LATENCY_US, &x, b->err);
            if (st) {
                return st;
            }
            m[i * n + k] = x * unit;
        }
    }
    *out = m;
    return HV_OK;
}

static enum hv_status read_network(struct hv_cluster_build *b, const struct hv_jp *p)
{
    enum hv_status st;
    if ((st = read_links(b, p)) ||
        (st = read_matrix(b, p, "matrix_bandwidth_GBps", HV_GBPS, &b->c->matrix_bytes_per_s))) {
        return st;
    }
    return read_matrix(b, p, "matrix_latency_us", HV_US, &b->c->matrix_latency_s);
}

/* `network` is read first, because it is the default of nodes without a NIC. */
static enum hv_status read_network_figures(struct hv_cluster_build *b, const struct hv_jp *p)
{
    b->c->network_bytes_per_s = b->c->network_latency_s = HV_UNKNOWN;
    b->nic_bytes_per_s = HV_NIC_BYTES_PER_S;
    if (hv_jp_none(p)) {
        return HV_OK;
    }
    enum hv_status st;
    if ((st = hv_keys_check(p, HV_KEYS_NETWORK, b->err)) ||
        (st = hv__link_curve(p, &b->c->network_plain, &b->c->network_latency_s, b->err)) ||
        (st = hv__link_figures(p, &b->c->network_bytes_per_s, &b->c->network_latency_s, b->err))) {
        return st;
    }
    b->nic_bytes_per_s = hv_or(b->c->network_bytes_per_s, HV_NIC_BYTES_PER_S);
    return HV_OK;
}

static enum hv_status read_nodes(struct hv_cluster_build *b, const struct hv_jp *root)
{
    struct hv_jp nodes = {0};
    size_t n = 0;
    enum hv_status st;
    if ((st = hv_jp_need(root, "nodes", "a list of node groups", &nodes, b->err)) ||
        (st = hv_jp_array(&nodes, &n, b->err))) {
        return st;
    }
    if (n == 0 || n > MAX_GROUPS) {
        return hv_jp_fail(&nodes, b->err, "expected 1 to %d node groups, found %zu", MAX_GROUPS, n);
    }
    b->c->groups = hv_arena_new(&b->c->arena, struct hv_node_group, n);
    b->c->n_groups = n;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&nodes, i);
        st = hv__cluster_node(b, &at, &b->c->groups[i]);
    }
    if (st) {
        return st;
    }
    struct hv_err e = {0};
    return hv_cluster_finish(b->c, &e) ? hv_jp_fail(&nodes, b->err, "%s", e.text) : HV_OK;
}

static enum hv_status build(struct hv_cluster_build *b, const struct hv_json *json)
{
    struct hv_jp root = hv_jp_root(json), network;
    const char *name = NULL;
    enum hv_status st;
    if ((st = hv_jp_format(&root, "hetviz.cluster/1", b->err)) ||
        (st = hv_keys_check(&root, HV_KEYS_CLUSTER, b->err)) ||
        (st = hv_jp_opt_string(&root, "name", &name, b->err))) {
        return st;
    }
    b->c->name = hv_arena_strdup(&b->c->arena, name ? name : "cluster");
    network = hv_jp_get(&root, "network");
    b->own = hv_jp_get(&root, "devices");
    if (hv_jp_none(&b->own)) {
        b->own.v = NULL;
    }
    if ((st = hv__cluster_own_kinds(b)) || (st = read_network_figures(b, &network)) ||
        (st = read_nodes(b, &root)) || hv_jp_none(&network)) {
        return st;
    }
    if ((st = read_network(b, &network))) {
        return st;
    }
    return hv_cluster_finish(b->c, b->err); /* again: the hash now covers the network */
}

enum hv_status hv_cluster_doc_build(struct hv_cluster_doc *out, struct hv_json json,
                                    const struct hv_device_catalogue *devices, struct hv_err *err)
{
    *out = (struct hv_cluster_doc){0};
    struct hv_cluster_build b = {.c = hv_xcalloc(1, sizeof *b.c), .catalogue = devices, .err = err};
    b.c->refs = 1;
    b.kind_at = json_object();
    b.group_at = json_object();
    b.zones = json_object();
    enum hv_status st = build(&b, &json);
    json_decref(b.kind_at);
    json_decref(b.group_at);
    json_decref(b.zones);
    free(b.used);
    if (st) {
        hv_cluster_unref(b.c);
        hv_json_free(&json);
        return st;
    }
    out->json = json;
    out->cluster = b.c;
    return HV_OK;
}

enum hv_status hv_cluster_doc_read(struct hv_cluster_doc *out, const char *path_or_name,
                                   const struct hv_device_catalogue *devices, struct hv_err *err)
{
    struct hv_json json = {0};
    *out = (struct hv_cluster_doc){0};
    enum hv_status st = hv__doc_load(&json, path_or_name, "samples/clusters", err);
    if (st == HV_OK) {
        st = hv_cluster_doc_build(out, json, devices, err);
    }
    if (st == HV_OK) {
        out->path = hv_xstrdup(path_or_name);
    }
    return st;
}

void hv_cluster_doc_free(struct hv_cluster_doc *d)
{
    hv_cluster_unref(d->cluster);
    hv_json_free(&d->json);
    free(d->path);
    *d = (struct hv_cluster_doc){0};
}
