/**
 * Parameter servers (sync kinds ps and wsp): the time in which every holder of a segment pushes its
 * gradients to the servers and pulls the weights back. Servers run on the hosts of nodes: sharded
 * over all nodes of the plan (HetPipe's default, Park et al. 2020, section 7), local to the node
 * with most holders of the segment (its ED-local), or at the addresses in the plan.
 */
#include "solver/eval/exchange/exchange_int.h"

#include <stdlib.h>
#include <string.h>

/** Nodes of the servers of sharded and addressed ones; found once. */
static void find_servers(struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const char *where = l->plan->sync.servers;
    uint32_t *ids = NULL;
    size_t n = 0;
    bool address = where != NULL && strcmp(where, "sharded") != 0 && strcmp(where, "local") != 0;
    l->nodes.serve = hv_arena_new(l->arena, bool, (size_t)c->n_nodes + 1);
    if (address && hv_address_resolve(c, where, l->arena, &ids, &n, NULL) == HV_OK) {
        for (size_t i = 0; i < n; i++) {
            l->nodes.serve[hv_cluster_node_of(c, ids[i])] = true;
        }
        return;
    }
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (size_t s = 0; s < r->n_stages; s++) {
            for (size_t d = 0; d < r->stages[s].n_devices; d++) {
                l->nodes.serve[hv_cluster_node_of(c, r->stages[s].devices[d])] = true;
            }
        }
    }
}

/** Bytes of one round by node, and of the slowest device over its link to the host. */
struct round {
    const struct hv_cluster *c;
    double *push, *pull; /**< [nodes] of the holders there */
    double all_push, all_pull, host_s;
    double *serves_frac; /**< [nodes] share of the parameters that its server has */
};

static void add_holder(const struct hv__lowered *l, const struct hv__holder *h,
                       struct hv__parameters p, struct round *x)
{
    const struct hv__pipeline *pl = &l->pipelines.items[h->pipeline];
    const struct hv_stage *s = h->stage;
    const struct hv_job *j = hv_cost_job(l->k);
    int over = hv_stage_experts_over(s);
    double experts = p.experts / hv_stage_expert_tp(s, over) / over;
    double each = hv_job_grad_bytes(j) + hv_job_weight_bytes(j);
    size_t ranks = h->rank->n_devices, tp = s->tp.degree > 1 ? (size_t)s->tp.degree : 1;
    for (int k = 0; k < pl->multiplicity; k++) {
        const uint32_t *d = s->devices + (size_t)pl->copies[k] * ranks;
        double rate = hv_cost_host_bytes_per_s(x->c, d, ranks, d[0]);
        for (size_t i = 0; i < ranks; i++) {
            uint32_t node = hv_cluster_node_of(x->c, d[i]);
            double n = p.dense * hv_tp_frac(&s->tp, i % tp) + experts;
            x->host_s = fmax(x->host_s, n * each / rate);
            x->push[node] += n * hv_job_grad_bytes(j);
            x->pull[node] += n * hv_job_weight_bytes(j);
            x->all_push += n * hv_job_grad_bytes(j);
            x->all_pull += n * hv_job_weight_bytes(j);
        }
    }
}

/** Sets the shares of the servers: even, or everything on the node with most holders. */
static void share_out(const struct hv__lowered *l, struct round *x)
{
    const char *where = l->plan->sync.servers;
    uint32_t most = 0;
    double n = 0;
    for (uint32_t i = 0; i < x->c->n_nodes; i++) {
        most = x->push[i] > x->push[most] ? i : most;
        n += l->nodes.serve[i];
    }
    bool local = where != NULL && strcmp(where, "local") == 0;
    for (uint32_t i = 0; i < x->c->n_nodes; i++) {
        x->serves_frac[i] = local ? i == most : l->nodes.serve[i] && n > 0 ? 1 / n : 0;
    }
}

/** Seconds that a node's network is busy with pushes and then with pulls; both directions work at
 * once. */
static double node_s(const struct round *x, uint32_t i)
{
    double f = x->serves_frac[i];
    double push = fmax(x->push[i] * (1 - f), f * (x->all_push - x->push[i]));
    double pull = fmax(x->pull[i] * (1 - f), f * (x->all_pull - x->pull[i]));
    return hv_cost_node_s(x->c, i, push) + hv_cost_node_s(x->c, i, pull);
}

/** Adds the load of pushes and pulls on named links between nodes, in seconds by link. O(nodes² ·
 * links). */
static void add_links(const struct round *x, double *link_s)
{
    double *busy_s = hv_xcalloc(2 * x->c->n_links + 1, sizeof *busy_s);
    for (uint32_t a = 0; a < x->c->n_nodes; a++) {
        for (uint32_t b = 0; x->push[a] > 0 && b < x->c->n_nodes; b++) {
            const struct hv_network_link *k =
                a != b && x->serves_frac[b] > 0 ? hv_cluster_link(x->c, a, b) : NULL;
            if (k != NULL && hv_known(k->bytes_per_s)) {
                size_t at = 2 * (size_t)(k - x->c->links);
                size_t back = hv_cluster_link_backward(x->c, k, a, b);
                busy_s[at + back] += x->push[a] * x->serves_frac[b] / k->bytes_per_s;
                busy_s[at + 1 - back] += x->pull[a] * x->serves_frac[b] / k->bytes_per_s;
            }
        }
    }
    for (size_t i = 0; i < x->c->n_links; i++) {
        link_s[i] = fmax(busy_s[2 * i], busy_s[2 * i + 1]);
    }
    free(busy_s);
}

/** Latency of a push and its pull: the longest between a holder and a server. */
static double latency_s(const struct round *x, const struct hv__lanes *w)
{
    double most = 0;
    for (size_t i = 1; i < w->n && w->ids[i] < x->c->n_nodes; i++) {
        most = fmax(most, hv_cluster_node_path(x->c, w->ids[0], w->ids[i]).latency_s);
    }
    return 2 * most;
}

/** Nodes and links in use, with their time as a share of the longest. */
static struct hv__lanes busy_lanes(const struct hv__lowered *l, const struct round *x,
                                   double *most_s)
{
    const struct hv_cluster *c = x->c;
    size_t most = (size_t)c->n_nodes + c->n_links + 1;
    struct hv__lanes w = {hv_arena_new(l->arena, uint32_t, most),
                          hv_arena_new(l->arena, double, most), 0};
    double *link_s = hv_arena_new(l->arena, double, c->n_links + 1);
    if (c->n_links > 0) {
        add_links(x, link_s);
    }
    for (uint32_t i = 0; i < c->n_nodes + c->n_links; i++) {
        double t = i < c->n_nodes ? node_s(x, i) : link_s[i - c->n_nodes];
        if (t > 0) {
            w.ids[w.n] = i;
            w.shares[w.n++] = t;
            *most_s = fmax(*most_s, t);
        }
    }
    return w;
}

double hv__push_pull_s(struct hv__lowered *l, const struct hv__segment *s, struct hv__parameters p,
                       struct hv__lanes *lanes)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    struct round x = {.c = c,
                      .push = hv_arena_new(l->arena, double, (size_t)c->n_nodes + 1),
                      .pull = hv_arena_new(l->arena, double, (size_t)c->n_nodes + 1),
                      .serves_frac = hv_arena_new(l->arena, double, (size_t)c->n_nodes + 1)};
    if (l->nodes.serve == NULL) {
        find_servers(l);
    }
    for (size_t i = 0; i < s->n_holders; i++) {
        add_holder(l, &s->holders[i], p, &x);
    }
    share_out(l, &x);
    double most_s = x.host_s;
    *lanes = busy_lanes(l, &x, &most_s);
    double t = most_s + latency_s(&x, lanes);
    for (size_t i = 0; i < lanes->n; i++) {
        lanes->shares[i] = t > 0 ? lanes->shares[i] / t : 0;
    }
    return t;
}
