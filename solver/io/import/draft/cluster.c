/*
 * The cluster document: equal nodes become one group, nodes without accelerators are left out
 * unless there are no others, and values without a place in the format are kept beside it.
 */
#include "solver/io/import/draft/draft.h"
#include <ctype.h>
#include <string.h>

#define MAX_GROUPS     5000
#define MAX_NAMES      1000000 /* bytes of host names kept with a group */
#define NAME_MAX_BYTES 60      /* of the name of a group */
#define MANY_GROUPS    16      /* from here on words that change no figure keep no groups apart */

/* Nodes with the same document. */
struct group {
    json_t *node;
    struct hv_str names;
    const char *first; /* name of the first node, or NULL */
    double count;
    size_t common; /* letters that all names begin with */
    bool unnamed;
};

struct groups {
    HV_VEC(struct group) items;
    json_t *index; /* by key */
};

/* Where only a topology describes the machine, its devices are those of the topology. */
static void guess_cards(struct hv_import *im)
{
    struct hv__node *n = im->nodes.n > 0 ? &im->nodes.items[0] : hv__node_add(im);
    struct hv__card c = hv__card_unknown();
    int most = 0, sum = 0;
    for (size_t i = im->nodes.n; i > 0; i--) {
        n = im->nodes.items[i - 1].links.n > 0 ? &im->nodes.items[i - 1] : n;
    }
    for (uint32_t i = 0; n->links.nv && i < n->links.n * n->links.n; i++) {
        most = n->links.nv[i] > most ? n->links.nv[i] : most;
        sum += i < n->links.n ? n->links.nv[i] : 0;
    }
    static const struct {
        int most, sum; /* between two cards, of one card; 0: any */
        const char *card;
    } rows[] = {{18, 0, "H100-SXM-80GB"}, {12, 0, "A100-SXM-80GB"}, {4, 12, "A100-SXM-80GB"},
                {6, 0, "V100-SXM3-32GB"}, {2, 6, "V100-SXM2-32GB"}, {2, 4, "V100-SXM2-32GB"}};
    for (size_t i = 0; i < HV_COUNT(rows) && !c.card; i++) {
        if (most == rows[i].most && (rows[i].sum == 0 || sum == rows[i].sum)) {
            c.card = rows[i].card;
            hv__note(im, HV_IMPORT_GUESSED,
                     "cards with up to %d NVLinks between two are taken for %s", most, c.card);
        }
    }
    c.count = n->links.n > 0 ? n->links.n : 1;
    hv__card_add(n, &c);
}

/* Keeps nodes with devices; where none has any, nodes are their CPUs. */
static void settle_devices(struct hv_import *im)
{
    size_t with = 0, without = 0, to = 0;
    for (size_t i = 0; i < im->nodes.n; i++) {
        bool has = hv__cards(&im->nodes.items[i]) > 0;
        with += has;
        without += !has && im->nodes.items[i].name != NULL;
    }
    if (with == 0 && without == 0) {
        guess_cards(im);
    }
    for (size_t i = 0; i < im->nodes.n; i++) {
        struct hv__node *n = &im->nodes.items[i];
        if (hv__cards(n) == 0 && (with > 0 || !n->name)) {
            hv_vec_free(&n->cards);
            continue;
        }
        im->nodes.items[to++] = *n;
    }
    im->nodes.n = to;
    if (with > 0 && without > 0) {
        hv__note(im, HV_IMPORT_IGNORED, "%zu nodes without an accelerator", without);
    } else if (without > 0) {
        hv__note(im, HV_IMPORT_GUESSED,
                 "no node has an accelerator: the %zu nodes are listed with one CPU-generic each",
                 without);
    }
}

static json_t *devices_json(const struct hv__node *n, const char **device)
{
    *device = NULL;
    if (n->cards.n == 0) {
        *device = "CPU-generic";
        return hv_json_num(1);
    }
    if (n->cards.n == 1) {
        *device = n->cards.items[0].name;
        return hv_json_num(n->cards.items[0].count);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < n->cards.n; i++) {
        const struct hv__card *c = &n->cards.items[i];
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "device", c->name, "count", hv_json_num(c->count)));
    }
    return list;
}

static void set_known(json_t *o, const char *key, double x)
{
    if (hv_known(x)) {
        json_object_set_new(o, key, hv_json_num(x));
    }
}

static void set_part(json_t *o, const char *key, json_t *part)
{
    if (part) {
        json_object_set_new(o, key, part);
    }
}

/* A node's object without its name and count. */
static json_t *node_json(struct hv_import *im, const struct hv__node *n)
{
    const char *device;
    json_t *o = json_object(), *devices = devices_json(n, &device);
    if (device) {
        json_object_set_new(o, "device", json_string(device));
    }
    json_object_set_new(o, "devices", devices);
    set_part(o, "intra", hv__intra_json(im, n));
    set_part(o, "nic", hv__nic_json(im, n));
    if (n->zone && *n->zone) {
        json_object_set_new(o, "zone", json_string(n->zone));
    }
    set_known(o, "price_usd_per_hour", n->usd_per_h);
    set_known(o, "spot_usd_per_hour", n->spot_usd_per_h);
    if (n->drained) {
        json_object_set_new(o, "state", json_string("drain"));
    }
    if (n->cards.n == 0) {
        set_known(o, "x-cpus", n->cpus);
    }
    if (n->type && *n->type) {
        json_object_set_new(o, "x-type", json_string(n->type));
    }
    if (n->partitions && *n->partitions) {
        json_object_set_new(o, "x-partition", json_string(n->partitions));
    }
    return o;
}

/* Bytes of the whole characters among the first n of a text. */
static size_t whole_characters(const char *s, size_t n)
{
    while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

static size_t common_start(const char *a, const char *b, size_t most)
{
    size_t n = 0;
    while (n < most && a[n] && a[n] == b[n]) {
        n++;
    }
    return whole_characters(a, n);
}

static void join_group(struct group *g, const struct hv__node *n)
{
    g->count += n->count;
    if (!n->name) {
        g->unnamed = true;
        return;
    }
    g->common = g->first ? common_start(g->first, n->name, g->common) : strlen(n->name);
    g->first = g->first ? g->first : n->name;
    if (g->names.n < MAX_NAMES) {
        hv_str_addf(&g->names, "%s%s", g->names.n > 0 ? "," : "", n->name);
    } else if (g->names.p[g->names.n - 1] != '.') {
        hv_str_adds(&g->names, ",...");
    }
}

static void add_to_group(struct groups *all, const struct hv__node *n, json_t *node)
{
    char *key = json_dumps(node, JSON_COMPACT);
    json_t *at = json_object_get(all->index, key);
    size_t i = at ? (size_t)json_integer_value(at) : all->items.n;
    if (at || i >= MAX_GROUPS) {
        json_decref(node);
        i = at ? i : MAX_GROUPS - 1;
    } else {
        json_object_set_new(all->index, key, json_integer((json_int_t)i));
        hv_vec_push(&all->items, (struct group){.node = node});
    }
    free(key);
    join_group(&all->items.items[i], n);
}

/* A name for the group: the common prefix of its nodes' names, else the device; unique and without
 * the characters that addresses use. */
static char *group_name(struct hv_import *im, const struct group *g, json_t *taken)
{
    struct hv_str s = {0};
    if (g->first) {
        hv_str_add(&s, g->first, g->common);
        while (g->count > 1 && s.n > 0 && isdigit((unsigned char)s.p[s.n - 1])) {
            s.n--;
        }
    }
    for (size_t i = 0; i < s.n; i++) {
        s.p[i] = strchr("[]., \t\r\n*", s.p[i]) ? '-' : s.p[i];
    }
    while (s.n > 0 && strchr("-_.", s.p[s.n - 1])) {
        s.n--;
    }
    s.n = s.n < NAME_MAX_BYTES ? s.n : whole_characters(s.p, NAME_MAX_BYTES);
    if (s.p) {
        s.p[s.n] = '\0';
    }
    char *name = hv_arena_strdup(&im->arena, s.n > 0 ? hv_str_cstr(&s) : "node");
    hv_str_free(&s);
    for (int k = 2; json_object_get(taken, name); k++) {
        size_t n = strlen(name);
        while (n > 0 && k > 2 && isdigit((unsigned char)name[n - 1])) {
            n--;
        }
        n -= n > 0 && k > 2 && name[n - 1] == '-';
        name = hv_arena_printf(&im->arena, "%.*s-%d", (int)n, name, k);
    }
    json_object_set_new(taken, name, json_true());
    return name;
}

/* Adds the words of a list with commas that another does not have. */
static void join_words(json_t *to, const json_t *from, const char *key)
{
    const char *more = json_string_value(json_object_get(from, key));
    const char *there = json_string_value(json_object_get(to, key));
    struct hv_str all = {0};
    hv_str_adds(&all, there ? there : "");
    for (const char *w = more; w && *w != '\0';) {
        size_t n = strcspn(w, ",");
        bool has = false;
        for (const char *t = hv_str_cstr(&all); *t != '\0' && !has;) {
            size_t own = strcspn(t, ",");
            has = own == n && strncmp(t, w, n) == 0;
            t += own + (t[own] == ',');
        }
        if (!has) {
            hv_str_addf(&all, "%s%.*s", all.n > 0 ? "," : "", (int)n, w);
        }
        w += n + (w[n] == ',');
    }
    if (all.n > 0) {
        json_object_set_new(to, key, json_string(hv_str_cstr(&all)));
    }
    hv_str_free(&all);
}

/* Takes a group into another: its nodes, their names, its partitions and types. */
static void take_group(struct group *to, struct group *from)
{
    to->common = to->first && from->first
                     ? common_start(to->first, from->first,
                                    to->common < from->common ? to->common : from->common)
                     : to->common;
    to->count += from->count;
    to->unnamed = to->unnamed || from->unnamed;
    if (from->names.n > 0) {
        hv_str_addf(&to->names, "%s%s", to->names.n > 0 ? "," : "", hv_str_cstr(&from->names));
    }
    join_words(to->node, from->node, "x-partition");
    join_words(to->node, from->node, "x-type");
    json_decref(from->node);
    hv_str_free(&from->names);
}

/* Where there are many groups, those that differ in partition or type alone become one: neither
 * changes a figure. */
static void join_like_groups(struct hv_import *im, struct groups *all)
{
    size_t before = all->items.n, n = 0;
    json_t *index = json_object();
    for (size_t i = 0; before > MANY_GROUPS && i < before; i++) {
        json_t *bare = json_deep_copy(all->items.items[i].node);
        json_object_del(bare, "x-partition");
        json_object_del(bare, "x-type");
        char *key = json_dumps(bare, JSON_COMPACT);
        json_t *at = json_object_get(index, key);
        if (at) {
            take_group(&all->items.items[json_integer_value(at)], &all->items.items[i]);
        } else {
            json_object_set_new(index, key, json_integer((json_int_t)n));
            all->items.items[n++] = all->items.items[i];
        }
        free(key);
        json_decref(bare);
    }
    json_decref(index);
    if (n > 0 && n < before) {
        all->items.n = n;
        hv__note(im, HV_IMPORT_UNDERSTOOD,
                 "%zu groups that differ in partition or type alone are joined to %zu", before, n);
    }
}

static json_t *nodes_json(struct hv_import *im, struct groups *all)
{
    json_t *nodes = json_array(), *taken = json_object();
    double devices = 0;
    join_like_groups(im, all);
    for (size_t i = 0; i < all->items.n; i++) {
        struct group *g = &all->items.items[i];
        const char *name = group_name(im, g, taken);
        json_t *o = json_object();
        json_object_set_new(o, "name", json_string(name));
        json_object_set_new(o, "count", hv_json_num(g->count));
        json_object_update(o, g->node);
        if (g->names.n > 0 && strcmp(hv_str_cstr(&g->names), name) != 0) {
            json_object_set_new(o, "x-nodes", json_string(hv_str_cstr(&g->names)));
        }
        json_array_append_new(nodes, o);
        devices += g->count;
        json_decref(g->node);
        hv_str_free(&g->names);
    }
    if (devices > 1) {
        hv__note(im, HV_IMPORT_UNDERSTOOD, "%.0f nodes, in groups of alike ones: %zu", devices,
                 all->items.n);
    }
    hv_vec_free(&all->items);
    json_decref(all->index);
    json_decref(taken);
    return nodes;
}

enum hv_status hv__cluster_make(struct hv_import *im, struct hv_err *err)
{
    struct groups all = {.index = json_object()};
    hv__machines_unite(im);
    settle_devices(im);
    hv__kinds_find(im);
    double sum = 0;
    for (size_t i = 0; i < im->nodes.n; i++) {
        sum += (double)im->nodes.items[i].count * hv__cards(&im->nodes.items[i]);
    }
    if (sum > HV_CLUSTER_MAX_DEVICES) {
        json_decref(all.index);
        return hv_err_set(err, HV_ELIMIT, "%.0f devices; a cluster may have %d", sum,
                          HV_CLUSTER_MAX_DEVICES);
    }
    for (size_t i = 0; i < im->nodes.n; i++) {
        add_to_group(&all, &im->nodes.items[i], node_json(im, &im->nodes.items[i]));
    }
    json_t *doc = json_pack("{s:s, s:s}", "format", "hetviz.cluster/1", "name", "imported");
    json_object_set_new(doc, "nodes", nodes_json(im, &all));
    if (im->own) {
        json_object_set(doc, "devices", im->own);
    }
    im->cluster = doc;
    return HV_OK;
}

void hv__cluster_guess(struct hv_import *im)
{
    int ranks = im->world > 0 ? im->world : 8, per_node = ranks < 8 ? ranks : 8;
    int nodes = (ranks + per_node - 1) / per_node;
    im->cluster = json_pack("{s:s, s:s, s:[{s:s, s:i, s:s, s:i}]}", "format", "hetviz.cluster/1",
                            "name", "guessed", "nodes", "name", "node", "count", nodes, "device",
                            "H100-SXM-80GB", "devices", per_node);
    im->guessed_cluster = true;
    hv__note(im, HV_IMPORT_GUESSED, "no file lists the devices: %d × %d H100-SXM-80GB are assumed",
             nodes, per_node);
}
