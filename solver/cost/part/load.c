/*
 * Loads of experts under the job's routing: which rank of an expert-parallel group computes how
 * many tokens, and how many every rank sends to every other. Capacity is per source rank and
 * expert, and an expert with one computes all its places, used or not (Switch Transformer, Fedus et
 * al. 2022).
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/network/matrix.h"
#include "solver/cost/part/part_int.h"
#include "solver/workload/router.h"

/* Rows that block-sparse products work on at once (MegaBlocks, Gale et al. 2023). */
#define BLOCK_ROWS 128
/* Groups whose links are remembered. */
#define WAYS_MOST 64

struct hv__ways_of {
    struct {
        uint64_t signature;
        struct hv_ways *ways;
    } items[WAYS_MOST];
    size_t n, next;
};

void hv__free_ways(struct hv__context *k)
{
    for (size_t i = 0; k->ways && i < k->ways->n; i++) {
        hv_ways_free(k->ways->items[i].ways);
    }
    free(k->ways);
    k->ways = NULL;
}

/* Links between the members; groups with equal links share them. */
const struct hv_ways *hv__ways_between(struct hv__context *k, const uint32_t *devices, size_t n)
{
    uint64_t signature = hv__mix(hv__signature(k->cluster, devices, n), n);
    if (!k->ways) {
        k->ways = hv_xcalloc(1, sizeof *k->ways);
    }
    struct hv__ways_of *w = k->ways;
    for (size_t i = 0; i < w->n; i++) {
        if (w->items[i].signature == signature) {
            return w->items[i].ways;
        }
    }
    size_t at = w->n < WAYS_MOST ? w->n++ : w->next++ % WAYS_MOST;
    hv_ways_free(w->items[at].ways);
    w->items[at].signature = signature;
    w->items[at].ways = hv_ways_new(k->cluster, devices, n);
    return w->items[at].ways;
}

/* A load that is being added up: tokens by source and expert, what ranks send and compute. */
struct adding {
    const struct hv__ask *a;
    const struct hv_moe_knobs *m;
    const struct hv_ways *ways;
    size_t n, experts;
    int shards;
    double rows;          /* copies of tokens that a rank sends in the mean */
    const double *tokens; /* [n × experts] */
    double *sent, *done;  /* [n × n], [n] */
    uint32_t *holders;
};

/* Sends `tokens` of a source to the holders that are nearest to it: itself, those of its house, or
 * all of them; shards of an expert get every token. */
static void send(struct adding *x, size_t source, size_t n_holders, double tokens, double *took)
{
    size_t house = hv_ways_house(x->ways, source), near = 0;
    bool own = false;
    for (size_t i = 0; x->shards == 1 && i < n_holders; i++) {
        own = own || x->holders[i] == source;
        near += hv_ways_house(x->ways, x->holders[i]) == house;
    }
    double places = own ? 1 : near > 0 ? (double)near : (double)n_holders;
    double each = tokens * x->shards / places;
    for (size_t i = 0; i < n_holders; i++) {
        size_t h = x->holders[i];
        if (own ? h == source : near > 0 ? hv_ways_house(x->ways, h) == house : true) {
            x->sent[source * x->n + h] += each;
            took[i] += each;
        }
    }
}

/* Rows that a kernel computes for so many tokens. */
static double kernel_rows(const struct adding *x, double tokens)
{
    bool block = x->m && (x->m->kernel == HV_MOE_BLOCK || x->m->kernel == HV_MOE_SCATTER);
    if (!block || !(x->rows > 0)) {
        return tokens;
    }
    double tile = BLOCK_ROWS / x->rows;
    return ceil(tokens / tile * (1 - 1e-12)) * tile;
}

static void add_expert(struct adding *x, int expert, bool *on, double *took)
{
    size_t n = 0;
    hv_expert_places(x->m, (int)x->experts, (int)x->n, expert, on);
    for (size_t r = 0; r < x->n; r++) {
        if (on[r]) {
            took[n] = 0;
            x->holders[n++] = (uint32_t)r;
        }
    }
    for (size_t s = 0; s < x->n; s++) {
        double tokens = x->tokens[s * x->experts + (size_t)expert];
        if (tokens > 0) {
            send(x, s, n, tokens, took);
        }
    }
    for (size_t i = 0; i < n; i++) {
        x->done[x->holders[i]] += kernel_rows(x, took[i]);
    }
}

/* Experts with one holder each, whose kernels compute what comes. */
static void add_single(struct adding *x)
{
    uint32_t *owners = hv_xcalloc(x->experts, sizeof *owners);
    for (size_t e = 0; e < x->experts; e++) {
        owners[e] = (uint32_t)hv_expert_owner(x->m, (int)x->experts, (int)x->n, (int)e);
    }
    for (size_t s = 0; s < x->n; s++) {
        const double *tokens = x->tokens + s * x->experts;
        double *row = x->sent + s * x->n;
        for (size_t e = 0; e < x->experts; e++) {
            row[owners[e]] += tokens[e];
        }
        for (size_t r = 0; r < x->n; r++) {
            x->done[r] += row[r];
        }
    }
    free(owners);
}

/* With a capacity every source fills all places of every expert. */
static void fill_places(double *tokens, size_t n, double places)
{
    for (size_t i = 0; i < n; i++) {
        tokens[i] = places;
    }
}

/* Batched products have as many rows for every expert as the one with most tokens. */
static void pad_to_most(struct adding *x, bool *on)
{
    double most = 0;
    for (size_t e = 0; e < x->experts; e++) {
        double sum = 0;
        for (size_t s = 0; s < x->n; s++) {
            sum += x->tokens[s * x->experts + e];
        }
        int n = hv_expert_places(x->m, (int)x->experts, (int)x->n, (int)e, on);
        most = fmax(most, sum * x->shards / n);
    }
    for (size_t r = 0; r < x->n; r++) {
        x->done[r] = 0;
    }
    for (size_t e = 0; e < x->experts; e++) {
        hv_expert_places(x->m, (int)x->experts, (int)x->n, (int)e, on);
        for (size_t r = 0; r < x->n; r++) {
            x->done[r] += on[r] ? most : 0;
        }
    }
}

bool hv__load_of(const struct hv__ask *a, const struct hv_block *b, double rows,
                 struct hv__load *out)
{
    const struct hv_part_query *q = a->q;
    *out = (struct hv__load){0};
    bool placed = hv_places_experts(q->moe);
    if (hv__moves_experts(q) || !(q->routed.cls || placed) || !q->ep_group || q->ep < 2) {
        return false;
    }
    size_t n = (size_t)q->ep, experts = (size_t)b->experts;
    double *room = hv_xcalloc(n * experts + n * n + 2 * n, sizeof *room);
    uint32_t *holders = hv_xcalloc(n, sizeof *holders);
    bool *on = hv_xcalloc(n, sizeof *on);
    int shards = q->moe && q->moe->expert_shards > 1 ? q->moe->expert_shards : 1;
    struct adding x = {a,
                       q->moe,
                       hv__ways_between(a->k, q->ep_group, n),
                       n,
                       experts,
                       shards < q->ep ? shards : q->ep,
                       rows,
                       room,
                       room + n * experts,
                       room + n * experts + n * n,
                       holders};
    const struct hv_router_at at = {
        q->routed.iteration, q->routed.layer, experts, b->top_k, q->routed.first, n, q->routed.of};
    double capacity = hv__capacity_of(q->moe, rows / b->experts);
    hv_router_tokens(a->k->job.routing, &at, room);
    if (capacity > 0) {
        fill_places(room, n * experts, capacity / b->experts);
    }
    bool tiles = q->moe && (q->moe->kernel == HV_MOE_BLOCK || q->moe->kernel == HV_MOE_SCATTER);
    if (shards == 1 && !tiles && (!q->moe || q->moe->n_copies == 0)) {
        add_single(&x);
    } else {
        for (int e = 0; e < b->experts; e++) {
            add_expert(&x, e, on, x.done + n);
        }
    }
    if (q->moe && q->moe->kernel == HV_MOE_PADDED && !(capacity > 0)) {
        pad_to_most(&x, on);
    }
    out->work = x.done[0];
    for (size_t r = 1; r < n; r++) {
        out->work = fmax(out->work, x.done[r]);
    }
    out->done = x.done;
    out->sent = x.sent;
    out->ways = x.ways;
    out->room = room;
    free(holders);
    free(on);
    return true;
}

void hv__load_free(struct hv__load *l)
{
    free(l->room);
    l->room = NULL;
}
