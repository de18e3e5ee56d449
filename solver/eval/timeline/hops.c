/** Lanes of the transfers between pipeline ranks. A transfer begins when its operation has ended
 * and the transfers before it on the same link have; its duration next to other transfers comes
 * from the run (links_shared.c). */
#include "solver/eval/timeline/timeline_int.h"

#include <stdlib.h>

/** A transfer of the run: its two ends in the graph. */
struct crossing {
    double start_s, end_s;
    int32_t from, to, hop; /**< nodes, index of hv_pipe_cost.hop_s */
};

/** Links of one pipeline. */
struct ways {
    int32_t *of_hop; /**< [n_hops] link of a hop, counted from `first`; -1 = it takes no time */
    size_t first, n; /**< in the timeline's links */
    int32_t *newest, *older; /**< [n_ranks], [n]: links that leave a rank, as lists */
    size_t *at;              /**< [n + 1] first crossing of each */
    size_t hops_at;          /**< first hop in the timeline's hops */
};

static double node_hop_s(const struct hv__pipeline *pl, int32_t hop)
{
    return hop < 0 ? 0 : pl->hops.time_s[hop];
}

size_t hv__count_hops(const struct hv__pipeline *pl)
{
    size_t n = 0;
    for (int32_t node = 0; node < pl->pipe->n_nodes; node++) {
        for (int32_t k = 0; k < hv_pipe_n_edges(pl->pipe, node); k++) {
            n += node_hop_s(pl, hv_pipe_edge_of(pl->pipe, node, k).hop) > 0;
        }
    }
    return n;
}

/** The link from one rank to another; creates it on first use. */
static int32_t link_between(struct hv__painter *p, const struct hv__pipeline *pl, struct ways *w,
                            size_t rank_at, size_t from, size_t to)
{
    struct hv_timeline *t = p->t;
    for (int32_t i = w->newest[from]; i >= 0; i = w->older[i]) {
        if (t->links[w->first + (size_t)i].to_row == rank_at + to) {
            return i;
        }
    }
    struct hv_timeline_link *k = &t->links[t->n_links++];
    *k = (struct hv_timeline_link){.from_row = rank_at + from,
                                   .to_row = rank_at + to,
                                   .name = hv_arena_printf(p->l->arena, "  %s>%s",
                                                           hv__rank_name(p->l, pl, from),
                                                           hv__rank_name(p->l, pl, to))};
    w->older[w->n] = w->newest[from];
    w->newest[from] = (int32_t)w->n;
    return (int32_t)w->n++;
}

/** Links and hops of every edge of the stage graph, in both directions. */
static void find_ways(struct hv__painter *p, const struct hv__pipeline *pl, size_t rank_at,
                      struct ways *w)
{
    struct hv_arena *a = p->l->arena;
    const struct hv_stage_graph *g = &pl->schedule->graph;
    size_t n_hops = (size_t)pl->pipe->n_hops;
    w->of_hop = hv_arena_new(a, int32_t, n_hops + 1);
    w->newest = hv_arena_new(a, int32_t, pl->n_ranks);
    w->older = hv_arena_new(a, int32_t, n_hops + 1);
    w->first = p->t->n_links;
    w->hops_at = p->t->n_hops;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        w->newest[r] = -1;
    }
    for (size_t i = 0; i < n_hops; i++) {
        size_t edge = i % (size_t)g->n_edges, pipe = i / (size_t)g->n_edges % pl->n_pipes;
        bool back = i / (size_t)g->n_edges >= pl->n_pipes;
        const struct hv__gstage *of = &pl->gstages[pipe * pl->n_gstages];
        size_t from = of[back ? g->to[edge] : g->from[edge]].rank;
        size_t to = of[back ? g->from[edge] : g->to[edge]].rank;
        bool takes_time = from != to && pl->hops.time_s[i] > 0;
        w->of_hop[i] = takes_time ? link_between(p, pl, w, rank_at, from, to) : -1;
        p->t->hops[p->t->n_hops++] =
            (struct hv_timeline_hop){.i_link = takes_time ? w->first + (size_t)w->of_hop[i] : 0,
                                     .seconds = pl->hops.time_s[i],
                                     .bytes = pl->hops.bytes[i],
                                     .backward = back};
    }
}

static int compare_crossings(const void *x, const void *y)
{
    const struct crossing *a = x, *b = y;
    if (a->start_s != b->start_s) {
        return a->start_s < b->start_s ? -1 : 1;
    }
    return a->from != b->from ? (a->from > b->from) - (a->from < b->from)
                              : (a->to > b->to) - (a->to < b->to);
}

/** Lists all crossings, grouped by link and in time order. */
static struct crossing *list_crossings(struct hv_arena *a, const struct hv__pipeline *pl,
                                       struct ways *w)
{
    size_t *at = hv_arena_new(a, size_t, w->n + 2), n = 0;
    for (int pass = 0; pass < 2; pass++) {
        struct crossing *list = pass ? hv_arena_new(a, struct crossing, n + 1) : NULL;
        for (int32_t node = 0; node < pl->pipe->n_nodes; node++) {
            for (int32_t k = 0; k < hv_pipe_n_edges(pl->pipe, node); k++) {
                struct hv_pipe_edge e = hv_pipe_edge_of(pl->pipe, node, k);
                int32_t way = e.hop < 0 ? -1 : w->of_hop[e.hop];
                if (way >= 0 && list == NULL) {
                    at[way + 2]++;
                    n++;
                } else if (way >= 0) {
                    double start = pl->run.node_end_s[e.node];
                    double took = hv_pipe_edge_s(pl->pipe, &pl->cost, &pl->run, node, k);
                    list[at[way + 1]++] =
                        (struct crossing){start, start + took, e.node, node, e.hop};
                }
            }
        }
        for (size_t i = 2; list == NULL && i < w->n + 2; i++) {
            at[i] += at[i - 1];
        }
        if (list != NULL) {
            w->at = at;
            return list;
        }
    }
    return NULL;
}

/** Draws one link: a transfer that begins before the last one has ended is drawn from that end on.
 */
static enum hv_status paint_link(struct hv__painter *p, const struct hv__pipeline *pl,
                                 const struct ways *w, size_t way, struct crossing *list,
                                 const struct hv__node_facts *facts, struct hv_err *err)
{
    size_t n = w->at[way + 1] - w->at[way];
    list += w->at[way];
    for (size_t i = 1; i < n; i++) {
        if (compare_crossings(&list[i - 1], &list[i]) > 0) { /* the receiver has another order */
            qsort(list, n, sizeof *list, compare_crossings);
            break;
        }
    }
    double free_s = 0;
    p->n_spans = 0;
    for (size_t i = 0; i < n; i++) {
        const struct crossing *c = &list[i];
        double end = c->end_s, wait = pl->run.node_start_s[c->to] - end;
        if (end <= free_s) {
            continue;
        }
        const struct hv_op *op = &pl->schedule->ops[hv_pipe_first_op(pl->pipe, c->from)];
        int32_t id = hv__paint_op(
            p, (struct hv_timeline_op){.stage = op->stage,
                                       .micro_batch = op->mb,
                                       .slice = op->slice,
                                       .paired = (int32_t)w->hops_at + c->hop,
                                       .kind = HV_SPAN_HOP,
                                       .critical = facts->critical[c->from] &&
                                                   facts->critical[c->to] && !(wait > 0),
                                       .slack_s = wait + facts->slack_s[c->to]});
        hv__paint_span(p, fmax(free_s, c->start_s), end, id);
        free_s = end;
    }
    struct hv_timeline_link *k = &p->t->links[w->first + way];
    return hv__paint_lane(p, k->name, HV_RESOURCE_LINK, &k->lane, err);
}

enum hv_status hv__paint_hops(struct hv__painter *p, size_t i_pipeline,
                              const struct hv__node_facts *facts, struct hv_err *err)
{
    const struct hv__pipeline *pl = &p->l->pipelines.items[i_pipeline];
    struct ways w = {0};
    struct hv_arena scratch = {0};
    enum hv_status st = HV_OK;
    if (pl->pipe->n_hops == 0) {
        return HV_OK;
    }
    find_ways(p, pl, p->l->pipelines.rank_at[i_pipeline], &w);
    struct crossing *list = list_crossings(&scratch, pl, &w);
    for (size_t i = 0; st == HV_OK && i < w.n; i++) {
        st = paint_link(p, pl, &w, i, list, facts, err);
        if (st == HV_OK && i_pipeline + 1 == p->l->pipelines.n) {
            size_t done = (HV__AT_DRAWN - HV__AT_RANKS) * (i + 1) / w.n;
            st = hv__report_progress(p->l, HV__AT_RANKS + (unsigned)done, err);
        }
    }
    hv_arena_free(&scratch);
    return st;
}
