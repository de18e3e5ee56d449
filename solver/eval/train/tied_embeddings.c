/**
 * Tied embeddings whose two copies sit at the ends of the pipelines: their holders, and the time in
 * which every device of the first stage sums its gradient with the device of the last stage that
 * mirrors it. The sums over replicas before that are in reduce.c.
 */
#include "solver/eval/train/reduce_int.h"

bool hv__ends_apart(const struct hv__segment *s)
{
    for (size_t i = 0; i < s->n_holders; i += 2) {
        const struct hv__holder *a = &s->holders[i], *b = a + 1;
        bool two = i + 1 < s->n_holders && a->pipeline == b->pipeline &&
                   (i + 2 == s->n_holders || b[1].pipeline != b->pipeline);
        if (!two || a->flat_rank == b->flat_rank || !a->g->embedding || a->g->head || !b->g->head ||
            a->stage->zero.stage >= 3 || b->stage->zero.stage >= 3) {
            return false;
        }
    }
    return s->n_holders > 0;
}

struct hv__segment hv__one_end(const struct hv__lowered *l, const struct hv__segment *s, size_t end)
{
    struct hv__segment e = {s->from2, s->to2, NULL, s->n_holders / 2};
    e.holders = hv_arena_new(l->arena, struct hv__holder, e.n_holders);
    for (size_t i = 0; i < e.n_holders; i++) {
        e.holders[i] = s->holders[2 * i + end];
    }
    return e;
}

/** The first and the last stage of a pipeline, whose devices mirror each other. */
struct ends {
    const struct hv__holder *first, *last;
    size_t n; /**< pairs per copy */
};

static struct ends ends_at(const struct hv__segment *s, size_t i)
{
    struct ends e = {&s->holders[i], &s->holders[i + 1], 0};
    size_t a = e.first->rank->n_devices, b = e.last->rank->n_devices;
    e.n = a > b ? a : b;
    return e;
}

/** Two devices that mirror each other, and their nodes. */
struct pair {
    uint32_t devices[2], nodes[2];
};

static struct pair pair_at(const struct hv__lowered *l, const struct ends *e, int copy, size_t i)
{
    struct pair p;
    for (int k = 0; k < 2; k++) {
        const struct hv__holder *h = k == 0 ? e->first : e->last;
        size_t ranks = h->rank->n_devices,
               at = (size_t)l->pipelines.items[h->pipeline].copies[copy] * ranks;
        p.devices[k] = h->stage->devices[at + i * ranks / e->n];
        p.nodes[k] = hv_cluster_node_of(hv_cost_cluster(l->k), p.devices[k]);
    }
    return p;
}

/** Adds the pairs of a pipeline that leave a node to the counts of their nodes. */
static void count_pairs(const struct hv__lowered *l, const struct ends *e, size_t *at_node)
{
    for (int c = 0; c < l->pipelines.items[e->first->pipeline].multiplicity; c++) {
        for (size_t i = 0; i < e->n; i++) {
            struct pair p = pair_at(l, e, c, i);
            size_t far = p.nodes[0] != p.nodes[1];
            at_node[p.nodes[0]] += far;
            at_node[p.nodes[1]] += far;
        }
    }
}

/** Seconds of the pair of a pipeline whose nodes have most pairs. */
static double busiest_pair_s(const struct hv__lowered *l, const struct ends *e,
                             const size_t *at_node, double bytes)
{
    struct pair busiest = pair_at(l, e, 0, 0);
    size_t most = 0;
    for (int c = 0; c < l->pipelines.items[e->first->pipeline].multiplicity; c++) {
        for (size_t i = 0; i < e->n; i++) {
            struct pair p = pair_at(l, e, c, i);
            size_t x = at_node[p.nodes[0]], y = at_node[p.nodes[1]], n = x > y ? x : y;
            if (n > most) {
                busiest = p;
                most = n;
            }
        }
    }
    double frac =
        fmin(hv_tp_largest_frac(&e->first->stage->tp), hv_tp_largest_frac(&e->last->stage->tp));
    const struct hv_collective_query q = {.op = HV_ALL_REDUCE,
                                          .bytes = bytes * frac,
                                          .devices = busiest.devices,
                                          .n = 2,
                                          .algorithm = l->plan->sync.algorithm,
                                          .together = most > 0 ? (double)most : 1};
    return hv_cost_collective(hv_cost_cluster(l->k), &q, NULL).time_s;
}

double hv__pairs_s(const struct hv__lowered *l, const struct hv__segment *s, double bytes)
{
    size_t *at_node = hv_arena_new(l->arena, size_t, hv_cost_cluster(l->k)->n_nodes);
    double worst_s = 0;
    for (size_t i = 0; i < s->n_holders; i += 2) {
        struct ends e = ends_at(s, i);
        count_pairs(l, &e, at_node);
    }
    for (size_t i = 0; i < s->n_holders; i += 2) {
        struct ends e = ends_at(s, i);
        worst_s = fmax(worst_s, busiest_pair_s(l, &e, at_node, bytes));
    }
    return worst_s;
}
