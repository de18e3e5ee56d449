/*
 * Which process runs where: ranks from the plan's addresses, hosts from the cluster's `x-nodes`.
 * Inside a stage the order is dp slowest, then cp, then tp fastest (rule B), stages are slowest:
 * the order of Megatron-Core ("tp-cp-ep-dp-pp"), of torch's device meshes and of DeepSpeed's
 * topology of pipe, data and model.
 */
#include <string.h>

#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"

/* ---- hosts ------------------------------------------------------------------------------------
 */

/** Adds the name of node `at` of a group as `x-nodes` lists it; false: it lists none. */
static bool listed_host(const json_t *group, uint32_t at, struct hv_str *out)
{
    const json_t *v = json_object_get(group, "x-nodes");
    if (json_is_array(v)) {
        const char *name = json_string_value(json_array_get(v, at));
        hv_str_adds(out, name != NULL ? name : "");
        return name != NULL;
    }
    const char *text = json_string_value(v);
    for (uint32_t i = 0; text != NULL; i++) {
        size_t n = strcspn(text, ",");
        if (i == at && n > 0) {
            hv_str_add(out, text, n);
            return true;
        }
        text = text[n] == ',' ? text + n + 1 : NULL;
    }
    return false;
}

/** The group's name with a number, in letters that a host name may have. */
static void assumed_host(const struct hv_node_group *g, uint32_t at, struct hv_str *out)
{
    for (const char *c = g->name; *c != '\0'; c++) {
        bool plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        hv_str_addc(out, plain ? *c : '-');
    }
    if (out->n == 0 || out->p[0] == '-') {
        hv_str_clear(out);
        hv_str_adds(out, "node");
    }
    hv_str_addf(out, "-%u", at);
}

/** Name of a node; hosts_assumed is set where no file says it. */
static enum hv_status host_of(struct hv__exporting *x, const struct hv_device_ref *ref,
                              const char **out)
{
    const struct hv_node_group *g = &x->s->plan->cluster->groups[ref->group];
    const json_t *nodes = json_object_get(x->s->cluster, "nodes");
    const json_t *group = NULL;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(nodes, i), "name"));
        group = name != NULL && strcmp(name, g->name) == 0 ? json_array_get(nodes, i) : group;
    }
    struct hv_str name = {0};
    bool listed = listed_host(group, ref->node_in_group, &name);
    if (!listed) {
        assumed_host(g, ref->node_in_group, &name);
        x->hosts_assumed = true;
    }
    enum hv_status st = HV_OK;
    if (!hv__export_is_host(hv_str_cstr(&name))) {
        struct hv_str clean = {0};
        hv_text_clean(&clean, hv_str_cstr(&name), name.n);
        st = hv_err_set(x->err, HV_EINPUT,
                        "nodes.x-nodes: expected host names of letters, digits, '.', '-' and '_', "
                        "found \"%.200s\"",
                        hv_str_cstr(&clean));
        hv_str_free(&clean);
    }
    *out = hv_arena_strdup(&x->out->arena, hv_str_cstr(&name));
    hv_str_free(&name);
    return st;
}

/* ---- ranks ------------------------------------------------------------------------------------
 */

/** The ranks of one stage of one entry, copy by copy, appended from `at` on. */
static void take_stage(struct hv__exporting *x, size_t i_replica, size_t i_stage,
                       int64_t first_data, size_t at)
{
    const struct hv_replica *r = &x->s->plan->replicas[i_replica];
    const struct hv_stage *s = &r->stages[i_stage];
    size_t part = hv_stage_ranks(r, s);
    int tp = s->tp.degree > 0 ? s->tp.degree : 1, cp = s->cp.degree > 0 ? s->cp.degree : 1;
    for (size_t i = 0; i < s->n_devices; i++) {
        int inside = (int)(part > 0 ? i % part : 0), copy = (int)(part > 0 ? i / part : 0);
        int dp = inside / (tp * cp);
        struct hv_device_ref ref = hv_cluster_device(x->s->plan->cluster, s->devices[i]);
        x->ranks[at + i] = (struct hv__export_rank){.replica = i_replica,
                                                    .stage = i_stage,
                                                    .copy = copy,
                                                    .dp = dp,
                                                    .cp = inside / tp % cp,
                                                    .tp = inside % tp,
                                                    .data = first_data + (int64_t)copy * s->dp + dp,
                                                    .device = s->devices[i],
                                                    .node = ref.node,
                                                    .slot = ref.slot};
    }
}

/** True where every stage number has the same shape in all entries, so that stages can be slowest.
 */
static bool alike(const struct hv_plan *p)
{
    for (size_t i = 1; i < p->n_replicas; i++) {
        if (p->replicas[i].n_stages != p->replicas[0].n_stages) {
            return false;
        }
    }
    return true;
}

static void order_ranks(struct hv__exporting *x)
{
    const struct hv_plan *p = x->s->plan;
    size_t at = 0, stages = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        stages = p->replicas[i].n_stages > stages ? p->replicas[i].n_stages : stages;
    }
    bool stages_first = alike(p);
    for (size_t a = 0; a < (stages_first ? stages : p->n_replicas); a++) {
        int64_t data = 0;
        for (size_t b = 0; b < (stages_first ? p->n_replicas : p->replicas[a].n_stages); b++) {
            size_t replica = stages_first ? b : a, stage = stages_first ? a : b;
            const struct hv_replica *r = &p->replicas[replica];
            take_stage(x, replica, stage, stages_first ? data : 0, at);
            at += r->stages[stage].n_devices;
            data += (int64_t)r->count * r->stages[stage].dp;
        }
    }
}

/** Sets by_node and the number of hosts. */
static void count_hosts(struct hv__exporting *x)
{
    bool *seen = hv_arena_new(&x->out->arena, bool, x->s->plan->cluster->n_nodes + 1);
    size_t run = 0;
    x->by_node = true;
    for (size_t i = 0; i < x->n_ranks; i++) {
        bool goes_on = i > 0 && x->ranks[i].node == x->ranks[i - 1].node;
        if (!goes_on) {
            x->by_node =
                x->by_node && !seen[x->ranks[i].node] && (x->per_host == 0 || run == x->per_host);
            x->per_host = i > 0 && x->per_host == 0 ? run : x->per_host;
            x->n_hosts += !seen[x->ranks[i].node];
            seen[x->ranks[i].node] = true;
            run = 0;
        }
        run++;
    }
    x->by_node = x->by_node && (x->per_host == 0 || run == x->per_host);
    x->per_host = x->per_host == 0 ? run : x->per_host;
}

enum hv_status hv__export_find_ranks(struct hv__exporting *x)
{
    const struct hv_plan *p = x->s->plan;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            x->n_ranks += p->replicas[i].stages[k].n_devices;
        }
    }
    x->ranks = hv_arena_new(&x->out->arena, struct hv__export_rank, x->n_ranks + 1);
    order_ranks(x);
    count_hosts(x);
    const char **hosts = hv_arena_new(&x->out->arena, const char *, p->cluster->n_nodes + 1);
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < x->n_ranks; i++) {
        struct hv__export_rank *r = &x->ranks[i];
        struct hv_device_ref ref = hv_cluster_device(p->cluster, r->device);
        if (hosts[r->node] == NULL) {
            st = host_of(x, &ref, &hosts[r->node]);
        }
        r->host = hosts[r->node];
    }
    return st;
}

/* ---- files ------------------------------------------------------------------------------------
 */

void hv__export_ranks_file(struct hv__exporting *x)
{
    if (x->hosts_assumed) {
        hv__export_note(x, "host names are made of group and number: give those of your nodes in "
                           "the cluster (\"x-nodes\": \"n1,n2\")");
    }
    struct hv_str *out = hv__export_file(x, "ranks.csv");
    hv_str_adds(out, "rank,host,gpu,address,replica,copy,stage,data_rank,dp,cp,tp\r\n");
    for (size_t i = 0; i < x->n_ranks; i++) {
        const struct hv__export_rank *r = &x->ranks[i];
        struct hv_str address = {0};
        hv_address_format(x->s->plan->cluster, &r->device, 1, " ", &address);
        hv_str_addf(out, "%zu,%s,%u,", i, r->host, r->slot);
        hv__export_csv_field(out, hv_str_cstr(&address));
        hv_str_addf(out, ",%zu,%d,%zu,%lld,%d,%d,%d\r\n", r->replica, r->copy, r->stage,
                    (long long)r->data, r->dp, r->cp, r->tp);
        hv_str_free(&address);
    }
}

/** The ranks of a node, or their GPUs, with blanks between. */
static void add_ranks_of(const struct hv__exporting *x, uint32_t node, bool gpus,
                         struct hv_str *out)
{
    bool any = false;
    for (size_t i = 0; i < x->n_ranks; i++) {
        if (x->ranks[i].node == node) {
            hv_str_addf(out, "%s%zu", any ? " " : "", gpus ? (size_t)x->ranks[i].slot : i);
            any = true;
        }
    }
}

struct cases {
    const struct hv__exporting *x;
    struct hv_str *out;
};

static void add_case(void *ctx, const struct hv__export_rank *first, size_t n)
{
    struct cases *c = ctx;
    (void)n;
    hv_str_addf(c->out, "'%s') ranks=(", first->host);
    add_ranks_of(c->x, first->node, false, c->out);
    hv_str_adds(c->out, ") gpus=(");
    add_ranks_of(c->x, first->node, true, c->out);
    hv_str_adds(c->out, ") ;;\n");
}

void hv__export_host_cases(const struct hv__exporting *x, struct hv_str *out)
{
    struct cases c = {x, out};
    hv__export_each_host(x, add_case, &c);
}

void hv__export_each_host(const struct hv__exporting *x,
                          void (*each)(void *ctx, const struct hv__export_rank *first, size_t n),
                          void *ctx)
{
    struct hv_arena scratch = {0};
    size_t *of = hv_arena_new(&scratch, size_t, x->s->plan->cluster->n_nodes + 1);
    for (size_t i = 0; i < x->n_ranks; i++) {
        of[x->ranks[i].node]++;
    }
    for (size_t i = 0; i < x->n_ranks; i++) {
        if (of[x->ranks[i].node] > 0) {
            each(ctx, &x->ranks[i], of[x->ranks[i].node]);
            of[x->ranks[i].node] = 0;
        }
    }
    hv_arena_free(&scratch);
}
