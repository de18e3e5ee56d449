/*
 * Parses and formats device addresses:
 *
 *   list   = item { ("," | blank) item }
 *   item   = "*" | group [ "[" set "]" ] [ "." ( range | "*" | "[" set "]" ) ]
 *   set    = "*" | range { "," range }
 *   range  = number [ "-" number ]
 *
 * A part left out means all of it. Nodes vary slowest; order and repetition are kept as written.
 */
#include "solver/inventory/cluster.h"

#include "solver/base/vec.h"
#include <string.h>

struct range {
    uint32_t from, to; /* both inside */
};

struct ranges {
    struct range *items;
    size_t n, cap;
};

struct scan {
    const struct hv_cluster *c;
    const char *all, *at; /* the whole address, for messages; the current position */
    struct hv_err *err;
    HV_VEC(uint32_t) ids;
};

static enum hv_status refuse(struct scan *s, const char *what)
{
    return hv_err_set(s->err, HV_EINPUT,
                      "device address \"%.80s\": %s; expected group[node].device, for example "
                      "\"a[0-1].*\" or \"a[0].0-3\"",
                      s->all, what);
}

static enum hv_status read_number(struct scan *s, uint32_t *out)
{
    uint64_t x = 0;
    const char *start = s->at;
    while (*s->at >= '0' && *s->at <= '9' && s->at - start < 10) {
        x = x * 10 + (uint64_t)(*s->at++ - '0');
    }
    if (s->at == start) {
        return refuse(s, "a number is missing");
    }
    *out = x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
    return HV_OK;
}

static enum hv_status read_range(struct scan *s, uint32_t limit, const char *what,
                                 struct ranges *out)
{
    struct range r = {0, limit - 1};
    if (*s->at == '*') {
        s->at++;
        hv_vec_push(out, r);
        return HV_OK;
    }
    enum hv_status st = read_number(s, &r.from);
    r.to = r.from;
    if (st == HV_OK && *s->at == '-') {
        s->at++;
        st = read_number(s, &r.to);
    }
    if (st) {
        return st;
    }
    if (r.to < r.from) {
        return refuse(s, "the range runs backwards");
    }
    if (r.to >= limit) {
        return hv_err_set(s->err, HV_EINPUT,
                          "device address \"%.80s\": there is no %s %u; the last one is %u", s->all,
                          what, r.to, limit - 1);
    }
    hv_vec_push(out, r);
    return HV_OK;
}

/* Parses a set after its opening bracket. */
static enum hv_status read_set(struct scan *s, uint32_t limit, const char *what, struct ranges *out)
{
    for (;;) {
        while (*s->at == ' ') {
            s->at++;
        }
        enum hv_status st = read_range(s, limit, what, out);
        if (st) {
            return st;
        }
        while (*s->at == ' ') {
            s->at++;
        }
        if (*s->at == ']') {
            s->at++;
            return HV_OK;
        }
        if (*s->at != ',') {
            return refuse(s, "the bracket is not closed");
        }
        s->at++;
    }
}

static enum hv_status unknown_group(struct scan *s, const char *name)
{
    const char **names = hv_xcalloc(s->c->n_groups + 1, sizeof *names);
    for (size_t i = 0; i < s->c->n_groups; i++) {
        names[i] = s->c->groups[i].name;
    }
    const char *near = hv_suggest(name, names, s->c->n_groups);
    enum hv_status st =
        near ? hv_err_set(s->err, HV_EINPUT,
                          "device address \"%.80s\": no node group \"%.60s\"; did you mean \"%s\"?",
                          s->all, name, near)
             : hv_err_set(s->err, HV_EINPUT, "device address \"%.80s\": no node group \"%.60s\"",
                          s->all, name);
    free(names);
    return st;
}

static enum hv_status read_group(struct scan *s, const struct hv_node_group **out)
{
    size_t n = strcspn(s->at, "[]., \t*");
    if (n == 0) {
        return refuse(s, "the name of a node group is missing");
    }
    for (size_t i = 0; i < s->c->n_groups; i++) {
        const struct hv_node_group *g = &s->c->groups[i];
        if (strlen(g->name) == n && memcmp(g->name, s->at, n) == 0) {
            s->at += n;
            *out = g;
            return HV_OK;
        }
    }
    struct hv_str name = {0};
    hv_str_add(&name, s->at, n);
    enum hv_status st = unknown_group(s, hv_str_cstr(&name));
    hv_str_free(&name);
    return st;
}

static enum hv_status add_product(struct scan *s, const struct hv_node_group *g,
                                  const struct ranges *nodes, const struct ranges *slots)
{
    uint64_t n_nodes = 0, n_slots = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        n_nodes += (uint64_t)nodes->items[i].to - nodes->items[i].from + 1;
    }
    for (size_t i = 0; i < slots->n; i++) {
        n_slots += (uint64_t)slots->items[i].to - slots->items[i].from + 1;
    }
    if (s->ids.n + n_nodes * n_slots > 2 * (uint64_t)HV_CLUSTER_MAX_DEVICES) {
        return refuse(s, "the address names too many devices");
    }
    for (size_t i = 0; i < nodes->n; i++) {
        for (uint32_t node = nodes->items[i].from; node <= nodes->items[i].to; node++) {
            for (size_t k = 0; k < slots->n; k++) {
                for (uint32_t d = slots->items[k].from; d <= slots->items[k].to; d++) {
                    hv_vec_push(&s->ids, g->first_device + node * g->n_devices + d);
                }
            }
        }
    }
    return HV_OK;
}

static enum hv_status read_parts(struct scan *s, const struct hv_node_group *g,
                                 struct ranges *nodes, struct ranges *slots)
{
    enum hv_status st = HV_OK;
    if (*s->at == '[') {
        s->at++;
        st = read_set(s, g->count, "node", nodes);
    } else {
        hv_vec_push(nodes, (struct range){0, g->count - 1});
    }
    if (st == HV_OK && *s->at == '.') {
        s->at++;
        if (*s->at == '[') {
            s->at++;
            st = read_set(s, g->n_devices, "device", slots);
        } else {
            st = read_range(s, g->n_devices, "device", slots);
        }
    } else if (st == HV_OK) {
        hv_vec_push(slots, (struct range){0, g->n_devices - 1});
    }
    return st;
}

static enum hv_status read_item(struct scan *s)
{
    if (*s->at == '*') {
        s->at++;
        for (uint32_t i = 0; i < s->c->n_devices; i++) {
            hv_vec_push(&s->ids, i);
        }
        return HV_OK;
    }
    const struct hv_node_group *g = NULL;
    enum hv_status st = read_group(s, &g);
    if (st) {
        return st;
    }
    struct ranges nodes = {0}, slots = {0};
    st = read_parts(s, g, &nodes, &slots);
    if (st == HV_OK) {
        st = add_product(s, g, &nodes, &slots);
    }
    hv_vec_free(&nodes);
    hv_vec_free(&slots);
    return st;
}

static enum hv_status read_list(struct scan *s)
{
    for (;;) {
        s->at += strspn(s->at, " \t");
        enum hv_status st = read_item(s);
        if (st) {
            return st;
        }
        size_t blank = strspn(s->at, " \t");
        s->at += blank;
        if (*s->at == '\0') {
            return HV_OK;
        }
        if (*s->at == ',') {
            s->at++;
        } else if (blank == 0) {
            return refuse(s, "there are characters behind the end of the address");
        }
    }
}

enum hv_status hv_address_resolve(const struct hv_cluster *c, const char *address,
                                  struct hv_arena *arena, uint32_t **out, size_t *n,
                                  struct hv_err *err)
{
    struct scan s = {.c = c, .all = address, .at = address, .err = err, .ids = {0}};
    enum hv_status st = read_list(&s);
    if (st == HV_OK && s.ids.n) {
        uint32_t *both = hv_arena_new(arena, uint32_t, *n + s.ids.n);
        if (*n) {
            memcpy(both, *out, *n * sizeof **out);
        }
        memcpy(both + *n, s.ids.items, s.ids.n * sizeof *both);
        *out = both;
        *n += s.ids.n;
    }
    hv_vec_free(&s.ids);
    return st;
}

/* Same slots [from, to] of nodes [node, last] of one group. */
struct piece {
    uint32_t group, node, last, from, to;
};

/* Reads the longest run of consecutive slots of one node at ids[0..n). Returns its length. */
static size_t take_run(const struct hv_cluster *c, const uint32_t *ids, size_t n, struct piece *out)
{
    struct hv_device_ref r = hv_cluster_device(c, ids[0]);
    uint32_t per_node = c->groups[r.group].n_devices;
    size_t k = 1;
    while (k < n && ids[k] == ids[0] + k && r.slot + k < per_node) {
        k++;
    }
    *out =
        (struct piece){r.group, r.node_in_group, r.node_in_group, r.slot, r.slot + (uint32_t)k - 1};
    return k;
}

static void add_piece(const struct hv_cluster *c, const struct piece *p, struct hv_str *out)
{
    const struct hv_node_group *g = &c->groups[p->group];
    hv_str_addf(out, "%s[%u", g->name, p->node);
    if (p->last > p->node) {
        hv_str_addf(out, "-%u", p->last);
    }
    hv_str_adds(out, "].");
    if (p->from == 0 && p->to + 1 == g->n_devices && g->n_devices > 1) {
        hv_str_addc(out, '*');
    } else if (p->from == p->to) {
        hv_str_addf(out, "%u", p->from);
    } else {
        hv_str_addf(out, "%u-%u", p->from, p->to);
    }
}

void hv_address_format(const struct hv_cluster *c, const uint32_t *ids, size_t n, const char *sep,
                       struct hv_str *out)
{
    bool first = true;
    for (size_t i = 0; i < n;) {
        struct piece p, next;
        i += take_run(c, ids + i, n - i, &p);
        while (i < n) {
            size_t k = take_run(c, ids + i, n - i, &next);
            if (next.group != p.group || next.node != p.last + 1 || next.from != p.from ||
                next.to != p.to) {
                break;
            }
            p.last = next.node;
            i += k;
        }
        if (!first) {
            hv_str_adds(out, sep);
        }
        first = false;
        add_piece(c, &p, out);
    }
}
