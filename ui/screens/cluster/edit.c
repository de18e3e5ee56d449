/* Edits of the cluster screen outside of the form: add, delete, copy, drain, import, export. Each
 * is one undo step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include "solver/base/units.h"
#include "ui/screens/cluster/cluster_int.h"
#include "ui/screens/common/ui.h"
#include "ui/session/import/import.h"

enum { DONE = HV_APP_HANDLED | HV_APP_REDRAW };

static struct hv_session *session_of(struct hv_app *app)
{
    return hv_ui_session(hv_app_model(app));
}

static bool name_taken(const struct hv_cluster *c, const char *name)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        if (strcmp(c->groups[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A free name after `name`: "a" → "a2", "a2" → "a3". */
static void free_name(const struct hv_cluster *c, const char *name, struct hv_str *out)
{
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] >= '0' && name[n - 1] <= '9') {
        n--;
    }
    for (unsigned k = 2;; k++) {
        hv_str_clear(out);
        hv_str_add(out, name, n);
        hv_str_addf(out, "%u", k);
        if (!name_taken(c, hv_str_cstr(out))) {
            return;
        }
    }
}

static void goto_group(struct hv_cluster_screen *v, const char *name)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_table_source s = hv_cluster_source(v);
    for (size_t row = 0; row < v->order.n; row++) {
        if (strcmp(c->groups[v->order.items[row]].name, name) == 0) {
            hv_table_goto(&v->table, &s, row, HV_GRID_MAX);
        }
    }
}

/* Puts a group (taken over) behind the selected one under a free name. */
static unsigned insert_group(struct hv_cluster_screen *v, struct hv_app *app, json_t *group)
{
    struct hv_session *s = session_of(app);
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_err err = {0};
    struct hv_str name = {0};
    char path[64];
    size_t at = c->n_groups - 1;
    const char *old = json_string_value(json_object_get(group, "name"));
    (void)hv_cluster_selected(v, &at);
    free_name(c, old != NULL ? old : "group", &name);
    (void)json_object_set_new(group, "name", json_string(hv_str_cstr(&name)));
    (void)snprintf(path, sizeof path, "cluster.nodes[%zu]", at + 1);
    if (hv_session_insert(s, path, group, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        v->filter[0] = '\0';
        hv_cluster_sync(v, s);
        goto_group(v, hv_str_cstr(&name));
        hv_app_message(app, HV_MSG_INFO, "group %s added; e edits it, u undoes this",
                       hv_str_cstr(&name));
    }
    hv_str_free(&name);
    return DONE;
}

static json_t *selected_tree(struct hv_cluster_screen *v)
{
    size_t i;
    if (hv_cluster_selected(v, &i) == NULL) {
        return NULL;
    }
    const json_t *nodes = json_object_get(hv_session_tree(v->session, HV_DOC_CLUSTER), "nodes");
    return json_deep_copy(json_array_get(nodes, i));
}

static unsigned add(struct hv_cluster_screen *v, struct hv_app *app)
{
    json_t *group = selected_tree(v);
    if (group == NULL) {
        hv_app_message(app, HV_MSG_WARNING, "no group is visible that could be copied");
        return DONE;
    }
    return insert_group(v, app, group);
}

static unsigned copy(struct hv_cluster_screen *v, struct hv_app *app)
{
    json_t *group = selected_tree(v);
    if (group == NULL) {
        return DONE;
    }
    json_decref(v->clip);
    v->clip = group;
    hv_app_message(app, HV_MSG_INFO, "group %s copied; P pastes it",
                   hv_cluster_selected(v, NULL)->name);
    return DONE;
}

static unsigned paste(struct hv_cluster_screen *v, struct hv_app *app)
{
    if (v->clip == NULL) {
        hv_app_message(app, HV_MSG_INFO, "no group was copied yet; y copies one");
        return DONE;
    }
    return insert_group(v, app, json_deep_copy(v->clip));
}

/* Numbers of the marked groups, else of the selected one. Returns how many; caller frees. */
static size_t chosen(const struct hv_cluster_screen *v, size_t **out)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    size_t n = 0, at;
    *out = hv_xcalloc(c->n_groups + 1, sizeof **out);
    for (size_t i = 0; i < c->n_groups; i++) {
        if (hv_cluster_is_marked(v, &c->groups[i])) {
            (*out)[n++] = i;
        }
    }
    if (n == 0 && hv_cluster_selected(v, &at) != NULL) {
        (*out)[n++] = at;
    }
    return n;
}

static unsigned delete_groups(struct hv_cluster_screen *v, struct hv_app *app)
{
    struct hv_session *s = session_of(app);
    struct hv_err err = {0};
    size_t *at = NULL, n = chosen(v, &at);
    enum hv_status st = HV_OK;
    char text[128];
    if (n == 1) {
        (void)snprintf(text, sizeof text, "group %.60s deleted",
                       hv_cluster_shown(v)->groups[at[0]].name);
        char path[64];
        (void)snprintf(path, sizeof path, "cluster.nodes[%zu]", at[0]);
        st = hv_session_remove(s, path, &err);
    } else if (n > 1) {
        (void)snprintf(text, sizeof text, "%zu groups deleted", n);
        json_t *tree = json_deep_copy(hv_session_tree(s, HV_DOC_CLUSTER));
        for (size_t i = n; i > 0; i--) {
            (void)json_array_remove(json_object_get(tree, "nodes"), at[i - 1]);
        }
        st = hv_session_replace(s, HV_DOC_CLUSTER, tree, "delete marked groups", &err);
    }
    free(at);
    if (st != HV_OK) {
        hv_ui_error(app, &err);
    } else if (n > 0) {
        v->marks.n = 0;
        hv_app_message(app, HV_MSG_INFO, "%s; u restores %s", text, n > 1 ? "them" : "it");
    }
    return DONE;
}

/* Drains the groups where any is in use, else undrains them. */
static unsigned drain(struct hv_cluster_screen *v, struct hv_app *app)
{
    struct hv_session *s = session_of(app);
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_err err = {0};
    size_t *at = NULL, n = chosen(v, &at);
    bool any = false;
    char **paths = hv_xcalloc(n + 1, sizeof *paths);
    for (size_t i = 0; i < n; i++) {
        struct hv_str path = {0};
        any = any || c->groups[at[i]].state == HV_NODE_OK;
        hv_str_addf(&path, "cluster.nodes[%zu].state", at[i]);
        paths[i] = path.p;
    }
    if (n > 0 && hv_session_set_many(s, (const char *const *)paths, n, any ? "\"drain\"" : "\"ok\"",
                                     &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else if (n > 0) {
        hv_app_message(app, HV_MSG_INFO, "%zu group%s %s", n, n > 1 ? "s" : "",
                       any ? "drained: plans do not use the nodes" : "back in use");
    }
    for (size_t i = 0; i < n; i++) {
        free(paths[i]);
    }
    free(paths);
    free(at);
    return DONE;
}

static unsigned import_cluster(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_session *s = session_of(app);
    struct hv_cluster_doc doc = {0};
    struct hv_err err = {0};
    char label[160];
    (void)ctx;
    if (!hv_import_is_own(path)) {
        hv_ui_import(app, path);
        return HV_APP_REDRAW;
    }
    if (hv_cluster_doc_read(&doc, path, hv_session_devices(s), &err) != HV_OK) {
        hv_ui_error(app, &err);
        return HV_APP_REDRAW;
    }
    (void)snprintf(label, sizeof label, "import %.140s", path);
    uint32_t nodes = doc.cluster->n_nodes, devices = doc.cluster->n_devices;
    size_t groups = doc.cluster->n_groups;
    json_t *tree = json_incref(doc.json.root);
    hv_cluster_doc_free(&doc);
    if (hv_session_replace(s, HV_DOC_CLUSTER, tree, label, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO,
                       "imported %zu groups, %u nodes, %u devices; u restores the old cluster",
                       groups, nodes, devices);
    }
    return HV_APP_REDRAW;
}

static unsigned export_cluster(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_str text = {0};
    struct hv_err err = {0};
    (void)ctx;
    hv_json_write(&text, hv_session_tree(session_of(app), HV_DOC_CLUSTER), true);
    if (hv_file_write(path, hv_str_cstr(&text), text.n, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "cluster written to %s", path);
    }
    hv_str_free(&text);
    return HV_APP_REDRAW;
}

/* ---- links between two groups ---------------------------------------------------------------- */

/* A link that overrides the network between the groups of the cell, with the figures it has now. */
static unsigned add_link(struct hv_cluster_screen *v, struct hv_app *app)
{
    struct hv_session *s = session_of(app);
    const struct hv_cluster *c = hv_cluster_shown(v);
    const struct hv_node_group *a = &c->groups[v->link_row], *b = &c->groups[v->link_column];
    struct hv_err err = {0};
    if (a == b || hv_cluster_link_between(c, v->link_row, v->link_column) < c->n_links) {
        hv_cluster_form_network(v);
        return DONE;
    }
    struct hv_path p = hv_cluster_group_path(c, v->link_row, v->link_column);
    json_t *link = json_object(), *between = json_array();
    (void)json_array_append_new(between, json_string(a->name));
    (void)json_array_append_new(between, json_string(b->name));
    (void)json_object_set_new(link, "between", between);
    (void)json_object_set_new(link, "bandwidth_GBps", hv_json_num(p.bytes_per_s / HV_GBPS));
    json_t *tree = json_deep_copy(hv_session_tree(s, HV_DOC_CLUSTER));
    json_t *network = json_object_get(tree, "network");
    if (!json_is_object(network)) {
        network = json_object();
        (void)json_object_set_new(tree, "network", network);
    }
    json_t *links = json_object_get(network, "links");
    if (!json_is_array(links)) {
        links = json_array();
        (void)json_object_set_new(network, "links", links);
    }
    (void)json_array_append_new(links, link);
    if (hv_session_replace(s, HV_DOC_CLUSTER, tree, "add a link between groups", &err) != HV_OK) {
        hv_ui_error(app, &err);
        return DONE;
    }
    hv_cluster_sync(v, s);
    hv_cluster_form_network(v);
    hv_app_message(app, HV_MSG_INFO, "this link now has individual values; u undoes this");
    return DONE;
}

static unsigned delete_link(struct hv_cluster_screen *v, struct hv_app *app)
{
    struct hv_session *s = session_of(app);
    const struct hv_cluster *c = hv_cluster_shown(v);
    size_t i = hv_cluster_link_between(c, v->link_row, v->link_column);
    struct hv_err err = {0};
    char path[64], text[128];
    if (i == c->n_links) {
        hv_app_message(app, HV_MSG_INFO,
                       "this link has no individual values; a adds them, L edits the network");
        return DONE;
    }
    (void)snprintf(path, sizeof path, "cluster.network.links[%zu]", i);
    (void)snprintf(text, sizeof text, "link %.40s - %.40s deleted; u restores it", c->links[i].a,
                   c->links[i].b);
    if (hv_session_remove(s, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "%s", text);
    }
    return DONE;
}

unsigned hv_cluster_change(struct hv_cluster_screen *v, struct hv_app *app, enum hv_action a)
{
    bool links = v->panel == HV_CLUSTER_LINKS;
    if (a == HV_ACT_ADD) {
        return links ? add_link(v, app) : add(v, app);
    }
    if (a == HV_ACT_DELETE) {
        return links ? delete_link(v, app) : delete_groups(v, app);
    }
    if (a == HV_ACT_COPY) {
        return copy(v, app);
    }
    if (a == HV_ACT_PASTE) {
        return paste(v, app);
    }
    if (a == HV_ACT_CLUSTER_DRAIN) {
        return drain(v, app);
    }
    if (a == HV_ACT_IMPORT) {
        hv_app_ask_path(app, "file of any kind, sample, or local: ", "", import_cluster, NULL);
        return DONE;
    }
    if (a == HV_ACT_EXPORT) {
        hv_app_ask(app, "write cluster to: ", "cluster.json", export_cluster, NULL);
        return DONE;
    }
    return 0;
}
