/*
 * Who sends when, and whether links have more to carry than they can. What happens then is played
 * in share_play.c.
 */
#include "solver/sim/share_int.h"

#include "solver/sim/heap.h"
#include <math.h>
#include <stdlib.h>

/* shares of a link that add up to this much more than all of it are rounding */
#define ROUNDING 1e-9

/* ---- transfers of a run ---- */

static int by_node(const void *x, const void *y)
{
    const struct hv_share_transfer *a = x, *b = y;
    return (a->node > b->node) - (a->node < b->node);
}

/* the transfers of one hop by sender, each once: a result that several wait for is sent once.
 * Returns how many are left */
static size_t tidy(struct hv_share_transfer *list, size_t n)
{
    size_t kept = 0;
    for (size_t i = 1; i < n; i++) {
        if (list[i - 1].node > list[i].node) { /* the receiver has another order */
            qsort(list, n, sizeof *list, by_node);
            break;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || list[i].node != list[i - 1].node) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

/* where the transfers of each hop of a pipe begin, with room for all edges: at[h + 1] */
static size_t *count_hops(struct hv_arena *a, const struct hv_share_pipe *p)
{
    const struct hv_pipe *g = p->g;
    size_t *at = hv_arena_new(a, size_t, (size_t)g->n_hops + 2);
    for (int32_t k = 0; k < g->n_nodes; k++) {
        for (int32_t e = 0; e < hv_pipe_n_edges(g, k); e++) {
            int32_t h = hv_pipe_edge_of(g, k, e).hop;
            if (h >= 0 && p->hops[h].n_loads > 0) {
                at[h + 1]++;
            }
        }
    }
    for (int32_t h = 0; h < g->n_hops; h++) {
        at[h + 1] += at[h];
    }
    return at;
}

static void list_edges(const struct hv_share *s, size_t pipe, size_t *next,
                       struct hv_share_transfer *out)
{
    const struct hv_share_pipe *p = &s->pipes[pipe];
    for (int32_t k = 0; k < p->g->n_nodes; k++) {
        for (int32_t e = 0; e < hv_pipe_n_edges(p->g, k); e++) {
            struct hv_pipe_edge x = hv_pipe_edge_of(p->g, k, e);
            if (x.hop < 0 || p->hops[x.hop].n_loads == 0) {
                continue;
            }
            double start = p->run->node_end_s[x.node];
            double took = p->run->edge_s ? p->run->edge_s[hv_pipe_edge_number(p->g, k, e)] -
                                               p->hops[x.hop].latency_s
                                         : p->hops[x.hop].bytes_s;
            out[next[x.hop]++] =
                (struct hv_share_transfer){start, start + took, pipe, x.hop, x.node};
        }
    }
}

struct hv_share_transfer *hv_share_transfers(struct hv_arena *a, const struct hv_share *s,
                                             size_t *n)
{
    size_t room = 0;
    size_t **at = hv_arena_new(a, size_t *, s->n_pipes + 1);
    for (size_t i = 0; i < s->n_pipes; i++) {
        at[i] = count_hops(a, &s->pipes[i]);
        room += at[i][s->pipes[i].g->n_hops];
    }
    struct hv_share_transfer *out = hv_arena_new(a, struct hv_share_transfer, room + 1);
    struct hv_share_transfer *from = out;
    *n = 0;
    for (size_t i = 0; i < s->n_pipes; i++) {
        list_edges(s, i, at[i], from); /* now at[h] is where hop h ends */
        size_t begin = 0;
        for (int32_t h = 0; h < s->pipes[i].g->n_hops; h++) {
            size_t kept = tidy(from + begin, at[i][h] - begin);
            for (size_t k = 0; k < kept; k++) {
                out[(*n)++] = from[begin + k];
            }
            begin = at[i][h];
        }
        from += begin;
    }
    return out;
}

/* ---- is any link crowded? ---- */

/* The transfers of one hop on one link: they start one after the other. */
struct queue {
    const struct hv_share_transfer *list;
    size_t n, next;
    double share; /* of the link, while one is under way */
};

/* Queues by link. */
struct queues {
    size_t *at; /* [n_links + 1] */
    struct queue *items;
};

static size_t run_length(const struct hv_share_transfer *t, size_t i, size_t n)
{
    size_t k = i;
    while (k < n && t[k].pipe == t[i].pipe && t[k].hop == t[i].hop) {
        k++;
    }
    return k - i;
}

static struct queues sort_by_link(struct hv_arena *a, const struct hv_share *s,
                                  const struct hv_share_transfer *t, size_t n)
{
    struct queues q = {.at = hv_arena_new(a, size_t, s->n_links + 2)};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0, len; i < n; i += len) {
            const struct hv_share_hop *h = &s->pipes[t[i].pipe].hops[t[i].hop];
            len = run_length(t, i, n);
            for (size_t k = 0; k < h->n_loads; k++) {
                size_t *to = &q.at[h->loads[k].link + (pass == 0 ? 2 : 1)];
                if (pass == 1) {
                    double share = h->bytes_s > 0 ? h->loads[k].busy_s / h->bytes_s : 0;
                    q.items[*to] = (struct queue){t + i, len, 0, share};
                }
                ++*to;
            }
        }
        if (pass == 0) {
            for (size_t l = 2; l < s->n_links + 2; l++) {
                q.at[l] += q.at[l - 1];
            }
            q.items = hv_arena_new(a, struct queue, q.at[s->n_links + 1] + 1);
        }
    }
    return q;
}

/* plays starts and ends of one link in time order */
static bool link_crowded(struct hv__heap *heap, struct queue *q, size_t n)
{
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        all += q[i].share;
        for (size_t k = 1; k < q[i].n; k++) {
            if (q[i].list[k].start_s < q[i].list[k - 1].end_s * (1 - ROUNDING)) {
                return true; /* a hop's transfers go over one wire */
            }
        }
    }
    if (all <= 1 + ROUNDING) {
        return false;
    }
    heap->n = 0;
    for (size_t i = 0; i < n; i++) {
        hv__heap_push(heap, q[i].list[0].start_s, (int64_t)(2 * i + 1));
    }
    double load = 0;
    while (heap->n > 0) {
        struct hv__entry e = hv__heap_pop(heap);
        struct queue *x = &q[e.id / 2];
        if (e.id % 2 == 1) { /* starts come after ends of the same time */
            load += x->share;
            if (load > 1 + ROUNDING) {
                return true;
            }
            hv__heap_push(heap, x->list[x->next].end_s * (1 - ROUNDING), e.id - 1);
        } else {
            load = heap->n > 0 ? load - x->share : 0;
            if (++x->next < x->n) {
                hv__heap_push(heap, x->list[x->next].start_s, e.id + 1);
            }
        }
    }
    return false;
}

bool hv_share_crowded(const struct hv_share *s)
{
    struct hv_arena a = {0};
    size_t n = 0, most = 0;
    const struct hv_share_transfer *t = hv_share_transfers(&a, s, &n);
    struct queues q = sort_by_link(&a, s, t, n);
    for (size_t l = 0; l < s->n_links; l++) {
        most = q.at[l + 1] - q.at[l] > most ? q.at[l + 1] - q.at[l] : most;
    }
    struct hv__heap heap = {hv_arena_new(&a, struct hv__entry, 2 * most + 2), 0};
    bool crowded = false;
    for (size_t l = 0; l < s->n_links && !crowded; l++) {
        crowded = link_crowded(&heap, q.items + q.at[l], q.at[l + 1] - q.at[l]);
    }
    hv_arena_free(&a);
    return crowded;
}
