/*
 * Times of transfers, and the check whether links are overloaded. play.c simulates the run in this
 * case.
 */
#include "solver/sim/links/links_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* shares of a link that add up to this much more than all of it are rounding */
#define ROUNDING 1e-9

/* ---- transfers of a run ---- */

/* The transfers of one pipe, by hop and sender. */
struct sends {
    size_t *at; /* [n_hops + 1] where those of each hop begin */
    size_t *n;  /* [n_hops] each sent once, however many wait for it */
    struct hv_link_transfer *items;
};

static int by_node(const void *x, const void *y)
{
    const struct hv_link_transfer *a = x, *b = y;
    return (a->node > b->node) - (a->node < b->node);
}

/* sorts the transfers of one hop by sender and merges duplicates: a result with several receivers
 * is sent once. Returns how many are left */
static size_t tidy(struct hv_link_transfer *list, size_t n)
{
    size_t kept = 1;
    while (kept < n && list[kept - 1].node < list[kept].node) {
        kept++;
    }
    if (kept >= n) {
        return n;
    }
    for (size_t i = kept; i < n; i++) {
        if (list[i - 1].node > list[i].node) { /* the receiver has another order */
            qsort(list, n, sizeof *list, by_node);
            kept = 1;
            break;
        }
    }
    for (size_t i = kept; i < n; i++) {
        if (list[i].node != list[kept - 1].node) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

/* The first node of a rank that may wait for a transfer that ends after after_s: for a node that
 * started before, all transfers had ended. */
static int32_t first_after(const struct hv_link_pipe *p, int32_t rank, double after_s)
{
    int32_t n = p->g->rank_node_at[rank + 1];
    while (n > p->g->rank_node_at[rank] &&
           p->run->node_start_s[n - 1] * (1 + ROUNDING) >= after_s) {
        n--;
    }
    return n;
}

/* where the transfers of each hop begin, with room for all edges, and the first node of each rank
 * to look at */
static void count_hops(struct hv_arena *a, const struct hv_link_pipe *p, double after_s,
                       int32_t *first, struct sends *out)
{
    const struct hv_pipe *g = p->g;
    out->at = hv_arena_new(a, size_t, (size_t)g->n_hops + 1);
    out->n = hv_arena_new(a, size_t, (size_t)g->n_hops + 1);
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        first[r] = first_after(p, r, after_s);
        for (int32_t k = first[r]; k < g->rank_node_at[r + 1]; k++) {
            for (int32_t e = 0; e < hv_pipe_n_edges(g, k); e++) {
                int32_t h = hv_pipe_edge_of(g, k, e).hop;
                if (h >= 0) {
                    out->at[h + 1]++;
                }
            }
        }
    }
    for (int32_t h = 0; h < g->n_hops; h++) {
        size_t n = p->hops[h].n_loads > 0 ? out->at[h + 1] : 0;
        out->at[h + 1] = out->at[h] + n;
    }
}

/* bytes of a transfer into node n over those of its hop */
static double scale_of(const struct hv_link_pipe *p, int32_t n, int32_t hop)
{
    return hv_pipe_hop_scale(p->g, p->c, hv_pipe_hop_end(p->g, n, hop));
}

/* the transfers of a pipe that end after after_s */
static struct sends list_sends(struct hv_arena *a, const struct hv_links *s, size_t pipe,
                               double after_s)
{
    const struct hv_link_pipe *p = &s->pipes[pipe];
    const struct hv_pipe *g = p->g;
    struct sends out;
    int32_t *first = hv_arena_new(a, int32_t, (size_t)g->s.n_ranks + 1);
    count_hops(a, p, after_s, first, &out);
    out.items = hv_arena_new(a, struct hv_link_transfer, out.at[g->n_hops] + 1);
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        for (int32_t k = first[r]; k < g->rank_node_at[r + 1]; k++) {
            for (int32_t e = 0; e < hv_pipe_n_edges(g, k); e++) {
                struct hv_pipe_edge x = hv_pipe_edge_of(g, k, e);
                if (x.hop < 0 || p->hops[x.hop].n_loads == 0) {
                    continue;
                }
                double start = p->run->node_end_s[x.node];
                double took = p->run->edge_s ? p->run->edge_s[hv_pipe_edge_number(g, k, e)] -
                                                   p->hops[x.hop].latency_s
                                             : p->hops[x.hop].bytes_s * scale_of(p, k, x.hop);
                if (start + took > after_s) {
                    out.items[out.at[x.hop] + out.n[x.hop]++] =
                        (struct hv_link_transfer){start, start + took, pipe, x.hop, x.node};
                }
            }
        }
    }
    for (int32_t h = 0; h < g->n_hops; h++) {
        out.n[h] = tidy(out.items + out.at[h], out.n[h]);
    }
    return out;
}

/* counts the moves of a pipe that use links and end after after_s, and lists them where there is
 * room */
static size_t list_moves(const struct hv_links *s, size_t pipe, double after_s,
                         struct hv_link_transfer *out)
{
    const struct hv_link_pipe *p = &s->pipes[pipe];
    size_t n = 0;
    for (size_t i = 0; i < p->n_moves; i++) {
        int32_t hop = p->g->n_hops + p->moves[i].lane;
        if (p->hops[hop].n_loads == 0 || p->moved[i].end_s <= after_s) {
            continue;
        }
        if (out) {
            out[n] = (struct hv_link_transfer){p->moved[i].start_s, p->moved[i].end_s, pipe, hop,
                                               p->moves[i].node};
        }
        n++;
    }
    return n;
}

struct hv_link_transfer *hv_links_transfers(struct hv_arena *a, const struct hv_links *s,
                                            double after_s, size_t *n)
{
    struct hv_arena scratch = {0};
    struct sends *of = hv_arena_new(&scratch, struct sends, s->n_pipes + 1);
    *n = 0;
    for (size_t i = 0; i < s->n_pipes; i++) {
        of[i] = list_sends(&scratch, s, i, after_s);
        for (int32_t h = 0; h < s->pipes[i].g->n_hops; h++) {
            *n += of[i].n[h];
        }
        *n += list_moves(s, i, after_s, NULL);
    }
    struct hv_link_transfer *out = hv_arena_new(a, struct hv_link_transfer, *n + 1);
    struct hv_link_transfer *to = out;
    for (size_t i = 0; i < s->n_pipes; i++) {
        for (int32_t h = 0; h < s->pipes[i].g->n_hops; h++) {
            for (size_t k = 0; k < of[i].n[h]; k++) {
                *to++ = of[i].items[of[i].at[h] + k];
            }
        }
        to += list_moves(s, i, after_s, to);
    }
    hv_arena_free(&scratch);
    return out;
}

/* ---- check for overloaded links ---- */

/* The transfers of one hop on one link: they start one after the other. */
struct queue {
    const struct hv_link_transfer *list;
    size_t n;
    double share; /* of the link, while one is under way */
};

/* Queues by link. */
struct queues {
    size_t *at; /* [n_links + 1] */
    struct queue *items;
    size_t most; /* transfers of one link */
};

/* A transfer on one link. */
struct slot {
    double start_s, end_s, share;
};

/* Room for all slots of one link, twice, and for where its queues begin. */
struct room {
    struct slot *slots, *spare;
    size_t *at;
};

static struct queues sort_by_link(struct hv_arena *a, const struct hv_links *s,
                                  const struct sends *of)
{
    struct queues q = {.at = hv_arena_new(a, size_t, s->n_links + 2)};
    size_t *n = hv_arena_new(a, size_t, s->n_links + 1);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s->n_pipes; i++) {
            for (int32_t h = 0; h < s->pipes[i].g->n_hops; h++) {
                const struct hv_link_hop *x = &s->pipes[i].hops[h];
                for (size_t k = 0; of[i].n[h] > 0 && k < x->n_loads; k++) {
                    int32_t link = x->loads[k].link;
                    size_t *to = &q.at[link + (pass == 0 ? 2 : 1)];
                    if (pass == 1) {
                        double share = x->bytes_s > 0 ? x->loads[k].busy_s / x->bytes_s : 0;
                        q.items[*to] = (struct queue){of[i].items + of[i].at[h], of[i].n[h], share};
                        n[link] += of[i].n[h];
                        q.most = n[link] > q.most ? n[link] : q.most;
                    }
                    ++*to;
                }
            }
        }
        for (size_t l = 2; pass == 0 && l < s->n_links + 2; l++) {
            q.at[l] += q.at[l - 1];
        }
        q.items = pass == 0 ? hv_arena_new(a, struct queue, q.at[s->n_links + 1] + 1) : q.items;
    }
    return q;
}

/* true where a transfer is ready while the one before it is under way; a hop's transfers share one
 * channel */
static bool waits_for_itself(const struct hv_link_transfer *t, size_t n)
{
    for (size_t k = 1; k < n; k++) {
        if (t[k].start_s < t[k - 1].end_s * (1 - ROUNDING)) {
            return true;
        }
    }
    return false;
}

/* merges two lists of slots by start */
static void merge(const struct slot *a, size_t n_a, const struct slot *b, size_t n_b,
                  struct slot *out)
{
    const struct slot *a_end = a + n_a, *b_end = b + n_b;
    while (a < a_end && b < b_end) {
        *out++ = b->start_s < a->start_s ? *b++ : *a++;
    }
    memcpy(out, a, (size_t)(a_end - a) * sizeof *out);
    memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof *out);
}

/* all slots of the queues by start: neighbours are merged until one list is left */
static const struct slot *merge_queues(struct room *r, const struct queue *q, size_t n)
{
    r->at[0] = 0;
    for (size_t i = 0; i < n; i++) {
        struct slot *to = r->slots + r->at[i];
        for (size_t k = 0; k < q[i].n; k++) {
            to[k] = (struct slot){q[i].list[k].start_s, q[i].list[k].end_s, q[i].share};
        }
        r->at[i + 1] = r->at[i] + q[i].n;
    }
    for (size_t left = n; left > 1; left = (left + 1) / 2) {
        for (size_t i = 0; i < left; i += 2) {
            size_t from = r->at[i], mid = r->at[i + 1], to = i + 2 <= left ? r->at[i + 2] : mid;
            merge(r->slots + from, mid - from, r->slots + mid, to - mid, r->spare + from);
            r->at[i / 2] = from;
            r->at[i / 2 + 1] = to;
        }
        struct slot *spare = r->spare;
        r->spare = r->slots;
        r->slots = spare;
    }
    return r->slots;
}

/* true where transfers of both queues are under way at the same time */
static bool meet(const struct queue *a, const struct queue *b)
{
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        if (a->list[i].end_s * (1 - ROUNDING) <= b->list[k].start_s) {
            i++;
        } else if (b->list[k].end_s * (1 - ROUNDING) <= a->list[i].start_s) {
            k++;
        } else {
            return true;
        }
    }
    return false;
}

/* plays the transfers of one link in time order */
static bool link_crowded(struct room *r, const struct queue *q, size_t n)
{
    double all = 0;
    size_t n_slots = 0, n_active = 0;
    for (size_t i = 0; i < n; i++) {
        all += q[i].share;
        n_slots += q[i].n;
    }
    if (all <= 1 + ROUNDING) {
        return false;
    }
    if (n == 2) {
        return meet(&q[0], &q[1]); /* two queues whose shares exceed the link */
    }
    const struct slot *x = merge_queues(r, q, n);
    struct slot *active = r->spare; /* never more of them than have started */
    for (size_t i = 0; i < n_slots; i++) {
        double load = x[i].share;
        size_t kept = 0;
        for (size_t k = 0; k < n_active; k++) {
            if (active[k].end_s * (1 - ROUNDING) > x[i].start_s) {
                load += active[k].share;
                active[kept++] = active[k];
            }
        }
        if (load > 1 + ROUNDING) {
            return true;
        }
        n_active = kept;
        active[n_active++] = x[i];
    }
    return false;
}

bool hv_links_crowded(const struct hv_links *s)
{
    struct hv_arena a = {0};
    struct sends *of = hv_arena_new(&a, struct sends, s->n_pipes + 1);
    bool crowded = false;
    for (size_t i = 0; i < s->n_pipes && !crowded; i++) {
        of[i] = list_sends(&a, s, i, -HUGE_VAL);
        for (int32_t h = 0; h < s->pipes[i].g->n_hops && !crowded; h++) {
            crowded = waits_for_itself(of[i].items + of[i].at[h], of[i].n[h]);
        }
    }
    if (!crowded) {
        struct queues q = sort_by_link(&a, s, of);
        struct slot *slots = hv_xmalloc((2 * q.most + 1) * sizeof *slots);
        struct room r = {slots, slots + q.most, hv_arena_new(&a, size_t, q.at[s->n_links] + 2)};
        for (size_t l = 0; l < s->n_links && !crowded; l++) {
            crowded = link_crowded(&r, q.items + q.at[l], q.at[l + 1] - q.at[l]);
        }
        free(slots);
    }
    hv_arena_free(&a);
    return crowded;
}
