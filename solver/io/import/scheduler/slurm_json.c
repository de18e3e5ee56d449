/*
 * Slurm's JSON: sinfo --json, scontrol show node --json, slurmrestd. `state` is a word (with
 * state_flags) up to 22.05 and a list later; newer sinfo may group nodes (`sinfo[]`). Source: Slurm
 * REST API, data_parser plugins v0.0.37 to v0.0.44.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/scheduler/slurm.h"
#include <string.h>

/* Members that are read, for the report. */
static const char *const used[] = {"*nodes[].name",
                                   "*[].gres",
                                   "*[].gres.total",
                                   "*[].tres",
                                   "*[].features",
                                   "*[].features.total",
                                   "*[].active_features",
                                   "*[].node.state",
                                   "nodes[].state",
                                   "nodes[].state_flags",
                                   "*[].cpus",
                                   "*[].cpus.set",
                                   "*[].cpus.number",
                                   "*[].real_memory",
                                   "*[].real_memory.set",
                                   "*[].real_memory.number",
                                   "*[].partition.name",
                                   "nodes[].partitions",
                                   "*[].instance_type",
                                   "*[].reason",
                                   "sinfo[].nodes.nodes",
                                   "sinfo[].nodes.hostnames",
                                   "sinfo[].nodes.total",
                                   NULL};

static json_t *list_of(const struct hv__in *in, bool *grouped)
{
    json_t *nodes = json_object_get(in->tree, "nodes"),
           *groups = json_object_get(in->tree, "sinfo");
    *grouped = !json_is_array(nodes) && json_is_array(groups);
    return *grouped ? groups : nodes;
}

bool hv__is_slurm_json(const struct hv__in *in)
{
    bool grouped;
    json_t *list = list_of(in, &grouped), *first = json_array_get(list, 0);
    if (!json_is_array(list)) {
        return false;
    }
    return grouped || json_object_get(first, "gres") || json_object_get(first, "real_memory") ||
           (!first && json_object_get(in->tree, "meta"));
}

static struct hv__piece text_of(json_t *v)
{
    return hv__piece_of(json_is_string(v) ? json_string_value(v) : "");
}

/* A number, a text with one, or {"set": true, "number": 8}. */
static double number_of(json_t *v)
{
    if (json_is_object(v)) {
        json_t *set = json_object_get(v, "set");
        return json_is_false(set) ? HV_UNKNOWN : number_of(json_object_get(v, "number"));
    }
    return json_is_number(v) ? json_number_value(v) : hv__plain_number(text_of(v));
}

/* Words of a list, or a text, with commas between. */
static struct hv__piece words_of(struct hv__in *in, json_t *v)
{
    if (!json_is_array(v)) {
        return text_of(v);
    }
    struct hv_str s = {0};
    for (size_t i = 0; i < json_array_size(v); i++) {
        struct hv__piece w = text_of(json_array_get(v, i));
        hv_str_addf(&s, "%s%.*s", i > 0 ? "," : "", (int)w.n, w.p);
    }
    struct hv__piece out = hv__piece_of(hv_arena_strdup(&in->im->arena, hv_str_cstr(&s)));
    hv_str_free(&s);
    return out;
}

static struct hv__piece gres_of(json_t *node)
{
    json_t *gres = json_object_get(node, "gres");
    struct hv__piece s = text_of(json_is_object(gres) ? json_object_get(gres, "total") : gres);
    struct hv__piece tres = text_of(json_object_get(node, "tres"));
    return !hv__is_gres(s) && hv__find(tres, "gres/gpu") ? tres : s;
}

static struct hv__piece features_of(struct hv__in *in, json_t *node)
{
    json_t *f = json_object_get(node, "active_features");
    f = f && text_of(f).n + json_array_size(f) > 0 ? f : json_object_get(node, "features");
    return words_of(in, json_is_object(f) ? json_object_get(f, "total") : f);
}

static void fill(struct hv__in *in, struct hv__node *n, json_t *node)
{
    json_t *inner = json_object_get(node, "node");
    json_t *state = json_object_get(inner ? inner : node, "state");
    unsigned line = hv__line_of(in, json_object_get(node, "name"));
    if (hv__cards(n) == 0) {
        (void)hv__gres_add(in, line, n, gres_of(node), features_of(in, node));
    }
    n->drained = hv__slurm_out(words_of(in, state)) ||
                 hv__slurm_out(words_of(in, json_object_get(node, "state_flags")));
    n->cpus = number_of(json_object_get(node, "cpus"));
    n->memory_bytes = number_of(json_object_get(node, "real_memory")) * HV_MIB;
    json_t *partition = json_object_get(node, "partition");
    partition =
        partition ? json_object_get(partition, "name") : json_object_get(node, "partitions");
    hv__slurm_partitions(in, n, words_of(in, partition));
    struct hv__piece type = text_of(json_object_get(node, "instance_type"));
    n->type = type.n > 0 ? hv__copy(&in->im->arena, type) : NULL;
    if (n->drained) {
        struct hv__piece why = text_of(json_object_get(node, "reason"));
        hv__understood(in, line, "%s is out of use%s%.*s", n->name ? n->name : "a node",
                       why.n > 0 ? ": " : "", (int)(why.n < 80 ? why.n : 80), why.p);
    }
}

/* Nodes of a group of sinfo: by name where they are listed, else by number. */
static size_t add_group(struct hv__in *in, json_t *group)
{
    json_t *nodes = json_object_get(group, "nodes"), *names = json_object_get(nodes, "nodes");
    names = json_array_size(names) > 0 ? names : json_object_get(nodes, "hostnames");
    for (size_t i = 0; i < json_array_size(names); i++) {
        struct hv__piece name = text_of(json_array_get(names, i));
        struct hv__node *n = name.n > 0 ? hv__node_named(in->im, name.p, name.n) : NULL;
        if (n) {
            fill(in, n, group);
        }
    }
    if (json_array_size(names) > 0) {
        return json_array_size(names);
    }
    double total = number_of(json_object_get(nodes, "total"));
    struct hv__node *n = total >= 1 ? hv__node_add(in->im) : NULL;
    if (n) {
        n->name = "node";
        n->count = (uint32_t)fmin(total, HV__MAX_NODES);
        fill(in, n, group);
    }
    return n != NULL;
}

enum hv_status hv__read_slurm_json(struct hv__in *in, struct hv_err *err)
{
    bool grouped;
    json_t *list = list_of(in, &grouped), *v;
    size_t i, n = 0;
    json_array_foreach(list, i, v)
    {
        struct hv__piece name = text_of(json_object_get(v, "name"));
        if (grouped) {
            n += add_group(in, v);
        } else if (name.n > 0) {
            struct hv__node *node = hv__node_named(in->im, name.p, name.n);
            if (!node) {
                break;
            }
            fill(in, node, v);
            n++;
        }
    }
    json_t *errors = json_object_get(in->tree, "errors");
    if (n == 0) {
        struct hv__piece why = text_of(json_object_get(json_array_get(errors, 0), "error"));
        return hv_err_at(err, HV_ENO, in->name, 0, 0, "there is no node in it%s%.*s",
                         why.n > 0 ? "; Slurm says: " : "", (int)(why.n < 200 ? why.n : 200),
                         why.p);
    }
    hv__understood(in, 0, "%zu nodes", n);
    hv__uses(in, used);
    hv__guessed(in, 0, "Slurm gives no links: the catalogue's links of the cards are used");
    return HV_OK;
}
