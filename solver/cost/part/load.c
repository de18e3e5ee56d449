/*
 * Loads of experts under the job's routing: which rank of an expert-parallel group computes how
 * many tokens, and how many every rank sends to every other. Capacity is per source rank and
 * expert, and an expert with one computes all its places, used or not (Switch Transformer, Fedus et
 * al. 2022).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/experts/gate.h"
#include "solver/cost/network/matrix.h"
#include "solver/cost/part/part_int.h"
#include "solver/workload/router.h"

/* Rows of a block, or of a tile. */
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
    double rows;                /* copies of tokens that a rank sends in the mean */
    const double *tokens;       /* [n × experts] */
    double *sent;               /* [n × n] */
    double *got;                /* [n] tokens that come */
    double *done;               /* [HV__LOAD_CUTS × n] rows that are computed */
    double tile[HV__LOAD_CUTS]; /* rows that a kernel works on at once, over all chunks; 0: any */
    double kept_frac;           /* of all tokens */
    struct hv__holding places;
    double *took; /* [all holders of `places`] tokens that each gets of its expert */
};

static size_t house_of(const struct adding *x, size_t rank)
{
    return x->ways ? hv_ways_house(x->ways, rank) : 0;
}

/* Sends `tokens` of a source for an expert to the holders that are nearest to it: itself, those of
 * its house, or all of them; shards of an expert get every token. */
static void send(struct adding *x, size_t source, size_t expert, double tokens)
{
    size_t first = x->places.at[expert], n_holders = x->places.at[expert + 1] - first;
    const uint32_t *holders = x->places.ranks + first;
    double *took = x->took + first, *row = x->sent + source * x->n;
    if (n_holders == 1) {
        row[holders[0]] += tokens;
        took[0] += tokens;
        return;
    }
    size_t house = house_of(x, source), near = 0;
    bool own = false;
    for (size_t i = 0; x->shards == 1 && i < n_holders; i++) {
        own = own || holders[i] == source;
        near += house_of(x, holders[i]) == house;
    }
    double places = own ? 1 : near > 0 ? (double)near : (double)n_holders;
    double each = tokens * x->shards / places;
    for (size_t i = 0; i < n_holders; i++) {
        size_t h = holders[i];
        if (own ? h == source : near > 0 ? house_of(x, h) == house : true) {
            row[h] += each;
            took[i] += each;
        }
    }
}

void hv__kernel_tiles(const struct hv_moe_knobs *m, double rows, double tile[HV__LOAD_CUTS])
{
    enum hv_moe_kernel k = hv__kernel_of(m);
    bool tiles = (k == HV_MOE_BLOCK || k == HV_MOE_SCATTER) && rows > 0;
    int chunks[HV__LOAD_CUTS] = {1, m ? m->degree_forward : 1, m ? m->degree_backward : 1};
    for (size_t i = 0; i < HV__LOAD_CUTS; i++) {
        tile[i] = tiles ? BLOCK_ROWS / rows * (chunks[i] > 1 ? chunks[i] : 1) : 0;
    }
}

double hv__whole_tiles(double tokens, double tile)
{
    return tile > 0 ? ceil(tokens / tile * (1 - 1e-12)) * tile : tokens;
}

/* Tokens that the holders of every expert got. */
static void add_taken(struct adding *x)
{
    for (size_t i = 0; i < x->places.at[x->experts]; i++) {
        size_t rank = x->places.ranks[i];
        x->got[rank] += x->took[i];
        for (size_t c = 0; c < HV__LOAD_CUTS; c++) {
            x->done[c * x->n + rank] += hv__whole_tiles(x->took[i], x->tile[c]);
        }
    }
}

/* Experts with several holders, or kernels that compute whole tiles. */
static void add_held(struct adding *x)
{
    memset(x->took, 0, x->places.at[x->experts] * sizeof *x->took);
    for (size_t s = 0; s < x->n; s++) {
        const double *tokens = x->tokens + s * x->experts;
        for (size_t e = 0; e < x->experts; e++) {
            if (tokens[e] > 0) {
                send(x, s, e, tokens[e]);
            }
        }
    }
    add_taken(x);
}

/* Adds a source's tokens to the row of what it sends; experts of one rank follow each other, as a
 * rule. */
static void add_source(const struct adding *x, const double *tokens, double *row)
{
    const uint32_t *owners = x->places.ranks;
    for (size_t e = 0; e < x->experts;) {
        uint32_t owner = owners[e];
        double sum = row[owner] + tokens[e];
        for (e++; e < x->experts && owners[e] == owner; e++) {
            sum += tokens[e];
        }
        row[owner] = sum;
    }
}

/* What comes to ranks whose kernels compute just that. */
static void add_rows(struct adding *x)
{
    for (size_t s = 0; s < x->n; s++) {
        const double *row = x->sent + s * x->n;
        for (size_t r = 0; r < x->n; r++) {
            x->got[r] += row[r];
        }
    }
    for (size_t c = 0; c < HV__LOAD_CUTS; c++) {
        memcpy(x->done + c * x->n, x->got, x->n * sizeof *x->got);
    }
}

static void add_all(struct adding *x)
{
    memset(x->sent, 0, x->n * x->n * sizeof *x->sent);
    memset(x->got, 0, x->n * sizeof *x->got);
    memset(x->done, 0, HV__LOAD_CUTS * x->n * sizeof *x->done);
    if (x->took) {
        add_held(x);
        return;
    }
    for (size_t s = 0; s < x->n; s++) {
        add_source(x, x->tokens + s * x->experts, x->sent + s * x->n);
    }
    add_rows(x);
}

static double sum_of(const double *list, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += list[i];
    }
    return sum;
}

static double most_of(const double *list, size_t n)
{
    double most = list[0];
    for (size_t r = 1; r < n; r++) {
        most = list[r] > most ? list[r] : most;
    }
    return most;
}

/* Takes the tokens above `places` away; with `all`, every place counts as taken. */
static void limit_tokens(double *tokens, size_t n, double places, bool all)
{
    for (size_t i = 0; i < n; i++) {
        tokens[i] = all ? places : fmin(tokens[i], places);
    }
}

/* Fills sent, got and done; returns the capacity, 0: none. Grouped products have a row for every
 * place of an expert with a capacity, and all places are sent. Batched ones always have a capacity:
 * else that of the source and expert with most tokens. Other kernels take the tokens that are
 * there. */
static double add_kernel(struct adding *x, double *tokens, double capacity)
{
    enum hv_moe_kernel kernel = hv__kernel_of(x->m);
    size_t cells = x->n * x->experts;
    double experts = (double)x->experts;
    bool places = kernel == HV_MOE_GROUPED && capacity > 0;
    if (kernel == HV_MOE_PADDED && !(capacity > 0)) {
        capacity = most_of(tokens, cells) * experts;
    }
    if (capacity > 0) {
        double all = sum_of(tokens, cells);
        limit_tokens(tokens, cells, capacity / experts, false);
        x->kept_frac = all > 0 ? sum_of(tokens, cells) / all : 1;
    }
    if (places) {
        limit_tokens(tokens, cells, capacity / experts, true);
    }
    add_all(x);
    if (kernel == HV_MOE_PADDED) {
        double *got = hv_xmalloc(x->n * sizeof *got);
        memcpy(got, x->got, x->n * sizeof *got);
        limit_tokens(tokens, cells, capacity / experts, true);
        add_all(x);
        memcpy(x->got, got, x->n * sizeof *got);
        free(got);
    }
    return places || kernel == HV_MOE_PADDED ? capacity : 0;
}

static bool has_load(const struct hv_part_query *q)
{
    bool kernel = q->moe && q->moe->kernel != HV_MOE_GROUPED;
    if (hv__moves_experts(q)) {
        return false;
    }
    if (q->ep < 2) {
        return q->routed.cls && (kernel || (q->moe && q->moe->capacity_factor > 0));
    }
    return q->ep_group &&
           (q->routed.cls || hv_places_experts(q->moe) || hv__gates_tokens(q->moe, q->ep));
}

static struct hv_router_at place_of(const struct hv__ask *a, const struct hv_block *b,
                                    const struct adding *x)
{
    const struct hv_part_query *q = a->q;
    return (struct hv_router_at){.iteration = q->routed.iteration,
                                 .layer = q->routed.layer,
                                 .experts = x->experts,
                                 .top_k = b->top_k,
                                 .first = q->routed.first,
                                 .sources = x->n,
                                 .of = q->routed.of > 0 ? q->routed.of : x->n};
}

/* Tokens of every source for every expert. */
static void find_tokens(const struct hv__ask *a, const struct hv_block *b, const struct adding *x,
                        double *tokens)
{
    const struct hv_part_query *q = a->q;
    const struct hv_router_at at = place_of(a, b, x);
    hv_router_tokens(a->k->job.routing, &at, tokens);
    if (hv__gates_tokens(q->moe, q->ep)) {
        const struct hv__gate g = {x->n, x->experts, b->top_k, x->ways};
        hv__gate_tokens(q->moe, &g, tokens);
    }
}

/* Memory for so many figures, as they were left by the load before. */
static struct hv__spare take_room(struct hv__context *k, size_t n)
{
    struct hv__spare room = k->spare;
    k->spare.items = NULL;
    if (!room.items || room.n < n) {
        free(room.items);
        room = (struct hv__spare){hv_xcalloc(n, sizeof *room.items), n};
    }
    return room;
}

/* The holders of one expert, by house. */
struct nearest {
    const uint32_t *holders;
    size_t n;
    uint32_t *near;  /* [houses] how many of them are in it */
    uint32_t *first; /* [houses] one of them */
    uint32_t *next;  /* [holders] another one in the same house */
    bool *own;       /* [ranks] holds it */
};

/* Sends tokens of one source of a house to the holders that are nearest to it, as `send` does for
 * experts that are not in shards. */
static void send_nearest(const struct nearest *x, size_t source, size_t house, double tokens,
                         double *row)
{
    if (x->own[source]) {
        row[source] += tokens;
        return;
    }
    uint32_t near = x->near[house];
    double each = tokens / (near > 0 ? (double)near : (double)x->n);
    for (uint32_t i = x->first[house], k = 0; k < near; k++, i = x->next[i]) {
        row[x->holders[i]] += each;
    }
    for (size_t i = 0; near == 0 && i < x->n; i++) {
        row[x->holders[i]] += each;
    }
}

/* Sends the tokens for experts that several ranks hold; `wide` has a column for each of them behind
 * those of the ranks. O(ranks · such experts). */
static void send_several(struct adding *x, const double *wide)
{
    size_t n = x->n, width = n + x->places.n_several;
    uint32_t *lists = hv_xcalloc(4 * n + 1, sizeof *lists);
    bool *own = hv_xcalloc(n + 1, sizeof *own);
    struct nearest k = {.near = lists, .first = lists + n, .next = lists + 2 * n, .own = own};
    uint32_t *house = lists + 3 * n;
    for (size_t s = 0; s < n; s++) {
        house[s] = (uint32_t)house_of(x, s);
    }
    for (size_t j = 0; j < x->places.n_several; j++) {
        size_t from = x->places.at[x->places.several[j]];
        k.holders = x->places.ranks + from;
        k.n = x->places.at[x->places.several[j] + 1] - from;
        for (uint32_t i = 0; i < k.n; i++) {
            uint32_t h = house[k.holders[i]];
            k.next[i] = k.first[h];
            k.first[h] = i;
            k.near[h]++;
            own[k.holders[i]] = true;
        }
        for (size_t s = 0; s < n; s++) {
            double tokens = wide[s * width + n + j];
            if (tokens > 0) {
                send_nearest(&k, s, house[s], tokens, x->sent + s * n);
            }
        }
        for (size_t i = 0; i < k.n; i++) {
            k.near[house[k.holders[i]]] = 0;
            own[k.holders[i]] = false;
        }
    }
    free(lists);
    free(own);
}

/* Fills sent, got and done where it depends only on what each rank and each expert with several
 * holders gets in all, and the router can add that up; else false. `wide`: room for these. */
static bool add_at_once(const struct hv__ask *a, const struct hv_block *b, struct adding *x,
                        double capacity, double *wide)
{
    const struct hv_router_at at = place_of(a, b, x);
    size_t width = x->n + x->places.n_several;
    bool whole = x->shards == 1 && !(x->tile[0] > 0) && !(capacity > 0) &&
                 hv__kernel_of(x->m) != HV_MOE_PADDED && !hv__gates_tokens(a->q->moe, a->q->ep);
    double *sent = x->places.n_several > 0 ? wide : x->sent;
    if (!whole || !hv_router_sent(a->k->job.routing, &at, x->places.column, width, sent)) {
        return false;
    }
    if (x->places.n_several > 0) {
        for (size_t s = 0; s < x->n; s++) {
            memcpy(x->sent + s * x->n, wide + s * width, x->n * sizeof *wide);
        }
        send_several(x, wide);
    }
    memset(x->got, 0, x->n * sizeof *x->got);
    add_rows(x);
    return true;
}

bool hv__load_of(const struct hv__ask *a, const struct hv_block *b, double rows,
                 struct hv__load *out)
{
    const struct hv_part_query *q = a->q;
    *out = (struct hv__load){0};
    if (!has_load(q)) {
        return false;
    }
    size_t n = q->ep > 1 ? (size_t)q->ep : 1, experts = (size_t)b->experts;
    struct adding x = {.m = q->moe,
                       .ways = n > 1 ? hv__ways_between(a->k, q->ep_group, n) : NULL,
                       .n = n,
                       .experts = experts,
                       .kept_frac = 1,
                       .shards = hv_expert_shards(q->moe, (int)n),
                       .places = hv__holding_of(a->k, q, b->experts)};
    hv__kernel_tiles(q->moe, rows, x.tile);
    bool single = x.shards == 1 && !(x.tile[0] > 0) && (!x.m || x.m->n_copies == 0);
    size_t wide = n + x.places.n_several > experts ? n + x.places.n_several : experts;
    size_t figures = n * wide + n * n + (HV__LOAD_CUTS + 1) * n;
    struct hv__spare room = take_room(a->k, figures + (single ? 0 : x.places.at[experts]));
    x.tokens = room.items;
    x.sent = room.items + n * wide;
    x.got = x.sent + n * n;
    x.done = x.got + n;
    x.took = single ? NULL : room.items + figures;
    double capacity = hv__capacity_of(q->moe, rows / b->experts);
    if (add_at_once(a, b, &x, capacity, room.items)) {
        capacity = 0;
    } else {
        find_tokens(a, b, &x, room.items);
        capacity = add_kernel(&x, room.items, capacity);
    }
    *out = (struct hv__load){.capacity = capacity,
                             .kept_frac = x.kept_frac,
                             .tokens = most_of(x.got, n),
                             .work = most_of(x.done, n),
                             .done = x.done,
                             .sent = x.sent,
                             .ways = x.ways,
                             .room = room,
                             .k = a->k};
    for (size_t c = 1; c < HV__LOAD_CUTS; c++) {
        out->in_chunks[c - 1] = most_of(x.done + c * n, n);
    }
    return true;
}

void hv__load_free(struct hv__load *l)
{
    if (l->room.items) {
        free(l->k->spare.items);
        l->k->spare = l->room;
        l->room.items = NULL;
    }
}
