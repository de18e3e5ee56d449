/** Orders, ideals, antichains and liveness of graphs of precedence. */
#include "solver/optim/graph/precedence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Successors of node k: next[at[k]] … next[at[k + 1] - 1]; `before`: number of edges into it. */
struct successors {
    size_t *at, *next, *before;
};

static enum hv_status check(const struct hv_precedence *g, struct hv_err *err)
{
    if (g->n_nodes > HV_PRECEDENCE_MAX || g->n_edges > HV_PRECEDENCE_MAX) {
        return hv_err_set(err, HV_ELIMIT, "more than %zu nodes or edges", HV_PRECEDENCE_MAX);
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        if (g->edges[i].from >= g->n_nodes || g->edges[i].to >= g->n_nodes) {
            return hv_err_set(err, HV_EINPUT, "edge %zu: expected nodes below %zu", i, g->n_nodes);
        }
    }
    return HV_OK;
}

static struct successors index_of(const struct hv_precedence *g, struct hv_arena *arena)
{
    struct successors s = {.at = hv_arena_new(arena, size_t, g->n_nodes + 2),
                           .next = hv_arena_new(arena, size_t, g->n_edges + 1),
                           .before = hv_arena_new(arena, size_t, g->n_nodes + 1)};
    for (size_t i = 0; i < g->n_edges; i++) {
        s.at[g->edges[i].from + 2]++;
        s.before[g->edges[i].to]++;
    }
    for (size_t k = 2; k <= g->n_nodes; k++) {
        s.at[k] += s.at[k - 1];
    }
    for (size_t i = 0; i < g->n_edges; i++) { /* at[k + 1] runs from the start of k to its end */
        s.next[s.at[g->edges[i].from + 1]++] = g->edges[i].to;
    }
    return s;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* The smallest number first. */
struct heap {
    size_t n, *item;
};

static void swap(size_t *a, size_t *b)
{
    size_t t = *a;
    *a = *b;
    *b = t;
}

static void push(struct heap *h, size_t x)
{
    size_t i = h->n++;
    h->item[i] = x;
    for (; i > 0 && h->item[(i - 1) / 2] > h->item[i]; i = (i - 1) / 2) {
        swap(&h->item[(i - 1) / 2], &h->item[i]);
    }
}

static size_t pop(struct heap *h)
{
    size_t least = h->item[0], i = 0;
    h->item[0] = h->item[--h->n];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < h->n && h->item[child + 1] < h->item[child]) {
            child++;
        }
        if (child >= h->n || h->item[i] <= h->item[child]) {
            return least;
        }
        swap(&h->item[i], &h->item[child]);
        i = child;
    }
}

enum hv_status hv_precedence_order(const struct hv_precedence *g, struct hv_arena *arena,
                                   size_t **order, struct hv_err *err)
{
    enum hv_status st = check(g, err);
    if (st) {
        return st;
    }
    struct successors s = index_of(g, arena);
    struct heap ready = {0, hv_arena_new(arena, size_t, g->n_nodes + 1)};
    size_t n = 0;
    *order = hv_arena_new(arena, size_t, g->n_nodes + 1);
    for (size_t k = 0; k < g->n_nodes; k++) {
        if (s.before[k] == 0) {
            push(&ready, k);
        }
    }
    while (ready.n > 0) {
        size_t k = pop(&ready);
        (*order)[n++] = k;
        for (size_t i = s.at[k]; i < s.at[k + 1]; i++) {
            if (--s.before[s.next[i]] == 0) {
                push(&ready, s.next[i]);
            }
        }
    }
    for (size_t k = 0; n < g->n_nodes && k < g->n_nodes; k++) {
        if (s.before[k] > 0) {
            return hv_err_set(err, HV_EINPUT, "node %zu waits for itself: the graph has a cycle",
                              k);
        }
    }
    return HV_OK;
}

bool hv_precedence_is_order(const struct hv_precedence *g, const size_t *order,
                            struct hv_arena *arena)
{
    size_t *place = hv_arena_new(arena, size_t, g->n_nodes + 1);
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (order[i] >= g->n_nodes || place[order[i]] != 0) {
            return false;
        }
        place[order[i]] = i + 1;
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        if (place[g->edges[i].from] >= place[g->edges[i].to]) {
            return false;
        }
    }
    return true;
}

double hv_precedence_held(const struct hv_precedence *g, const size_t *order, const double *bytes,
                          struct hv_arena *arena, double *held)
{
    size_t n = g->n_nodes, *place = hv_arena_new(arena, size_t, n + 1);
    size_t *last = hv_arena_new(arena, size_t, n + 1); /* place of the last reader */
    double now = 0, most = 0;
    double *freed = hv_arena_new(arena, double, n + 1); /* behind the node at that place */
    for (size_t i = 0; i < n; i++) {
        place[order[i]] = i;
        last[order[i]] = n;
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        size_t from = g->edges[i].from, at = place[g->edges[i].to];
        last[from] = last[from] == n || last[from] < at ? at : last[from];
    }
    for (size_t k = 0; k < n; k++) {
        freed[last[k]] += bytes[k];
    }
    for (size_t i = 0; i < n; i++) {
        now += bytes[order[i]];
        held[i] = now;
        most = fmax(most, now);
        now -= freed[i];
    }
    return most;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static bool holds(const uint64_t *set, size_t node)
{
    return (set[node / 64] >> node % 64 & 1) != 0;
}

static void put(uint64_t *set, size_t node)
{
    set[node / 64] |= UINT64_C(1) << node % 64;
}

/* Sets that are known, by hash; slot 0: free, else number + 1. */
struct known {
    size_t n_slots, *slot;
    struct hv_node_sets sets;
    size_t cap;
};

static uint64_t hash_of(const uint64_t *set, size_t n)
{
    uint64_t h = UINT64_C(1469598103934665603);
    for (size_t i = 0; i < n; i++) {
        h = (h ^ set[i]) * UINT64_C(1099511628211);
        h ^= h >> 29;
    }
    return h;
}

static size_t slot_of(const struct known *k, const uint64_t *set)
{
    size_t w = k->sets.n_words, i = hash_of(set, w) & (k->n_slots - 1);
    while (k->slot[i] != 0 &&
           memcmp(&k->sets.bits[(k->slot[i] - 1) * w], set, w * sizeof *set) != 0) {
        i = (i + 1) & (k->n_slots - 1);
    }
    return i;
}

static void grow(struct known *k)
{
    k->n_slots *= 2;
    free(k->slot);
    k->slot = hv_xcalloc(k->n_slots, sizeof *k->slot);
    for (size_t i = 0; i < k->sets.n; i++) {
        k->slot[slot_of(k, &k->sets.bits[i * k->sets.n_words])] = i + 1;
    }
}

/* Adds the set behind the last one where it is new. */
static void add_set(struct known *k)
{
    size_t w = k->sets.n_words;
    const uint64_t *set = &k->sets.bits[k->sets.n * w];
    size_t i = slot_of(k, set);
    if (k->slot[i] != 0) {
        return;
    }
    k->slot[i] = ++k->sets.n;
    if (2 * k->sets.n > k->n_slots) {
        grow(k);
    }
    if (k->sets.n + 1 > k->cap) {
        k->cap *= 2;
        k->sets.bits = hv_xrealloc(k->sets.bits, k->cap, w * sizeof *k->sets.bits);
    }
}

/* Nodes that can follow a set: all before them are in it. */
static bool can_follow(const struct successors *before, const uint64_t *set, size_t node)
{
    for (size_t i = before->at[node]; i < before->at[node + 1]; i++) {
        if (!holds(set, before->next[i])) {
            return false;
        }
    }
    return true;
}

static bool all_sets(struct known *k, const struct successors *before, size_t n, size_t most)
{
    size_t w = k->sets.n_words;
    memset(k->sets.bits, 0, w * sizeof *k->sets.bits);
    add_set(k);
    for (size_t i = 0; i < k->sets.n; i++) {
        for (size_t node = 0; node < n; node++) {
            const uint64_t *from = &k->sets.bits[i * w];
            if (holds(from, node) || !can_follow(before, from, node)) {
                continue;
            }
            uint64_t *next = &k->sets.bits[k->sets.n * w];
            memcpy(next, from, w * sizeof *next);
            put(next, node);
            add_set(k);
            if (k->sets.n > most) {
                return false;
            }
        }
    }
    return true;
}

enum hv_status hv_precedence_ideals(const struct hv_precedence *g, size_t most,
                                    struct hv_arena *arena, struct hv_node_sets *out,
                                    struct hv_err *err)
{
    size_t *order = NULL, n_words = g->n_nodes / 64 + 1;
    *out = (struct hv_node_sets){.n_words = n_words};
    most = most < HV_PRECEDENCE_MAX_SETS ? most : HV_PRECEDENCE_MAX_SETS;
    enum hv_status st = hv_precedence_order(g, arena, &order, err);
    if (st) {
        return st;
    }
    struct hv_precedence_edge *turned =
        hv_arena_new(arena, struct hv_precedence_edge, g->n_edges + 1);
    for (size_t i = 0; i < g->n_edges; i++) {
        turned[i] = (struct hv_precedence_edge){g->edges[i].to, g->edges[i].from};
    }
    struct hv_precedence back = {g->n_nodes, g->n_edges, turned};
    struct successors before = index_of(&back, arena);
    enum { FIRST = 64 };
    struct known k = {.n_slots = 2 * FIRST, .cap = FIRST, .sets = {.n_words = n_words}};
    k.slot = hv_xcalloc(k.n_slots, sizeof *k.slot);
    k.sets.bits = hv_xcalloc(k.cap, n_words * sizeof *k.sets.bits);
    if (!all_sets(&k, &before, g->n_nodes, most)) {
        st = hv_err_set(err, HV_ELIMIT, "the graph has more than %zu ideals", most);
    } else {
        *out = k.sets;
        out->bits = hv_arena_copy(arena, k.sets.bits, k.sets.n * n_words, sizeof *out->bits);
    }
    free(k.slot);
    free(k.sets.bits);
    return st;
}

void hv_precedence_antichains(const struct hv_precedence *g, struct hv_node_sets *ideals)
{
    for (size_t i = 0; i < ideals->n; i++) {
        uint64_t *set = &ideals->bits[i * ideals->n_words];
        uint64_t *inner = hv_xcalloc(ideals->n_words, sizeof *inner);
        for (size_t e = 0; e < g->n_edges; e++) { /* an ideal holds what is before its nodes */
            if (holds(set, g->edges[e].to)) {
                put(inner, g->edges[e].from);
            }
        }
        for (size_t w = 0; w < ideals->n_words; w++) {
            set[w] &= ~inner[w];
        }
        free(inner);
    }
}
