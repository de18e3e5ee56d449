/**
 * Houses that a plan ties together (union of sets), and cuts between them (a sum of subsets: sets
 * of tied houses, and single ones, that make up the far side).
 */
#include "solver/eval/sides.h"

#include "solver/eval/train/reduce_int.h"

#include <stdlib.h>

/* ---- sets of houses ----------------------------------------------------------------------------
 */

struct union_of {
    const struct hv_cluster *c;
    uint32_t *parent; /* [houses] */
    bool *seen;       /* [houses] has a device of the plan */
};

static uint32_t root_of(const struct union_of *u, uint32_t house)
{
    while (u->parent[house] != house) {
        u->parent[house] = u->parent[u->parent[house]];
        house = u->parent[house];
    }
    return house;
}

static uint32_t house_of(const struct union_of *u, uint32_t device)
{
    const struct hv_device_ref r = hv_cluster_device(u->c, device);
    uint32_t house = hv_node_group_domain(&u->c->groups[r.group], r.node);
    u->seen[house] = true;
    return house;
}

/** Ties the houses of these devices to each other. */
static void tie(const struct union_of *u, const uint32_t *devices, size_t n)
{
    uint32_t first = n > 0 ? root_of(u, house_of(u, devices[0])) : 0;
    for (size_t i = 1; i < n; i++) {
        uint32_t other = root_of(u, house_of(u, devices[i]));
        u->parent[other] = first;
    }
}

/* ---- stages ------------------------------------------------------------------------------------
 */

static int by_number(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/** Different numbers of ranks of the stages of a copy, rising. Returns how many. */
static size_t list_ranks(const struct hv_replica *r, size_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_stages; i++) {
        out[i] = hv_stage_ranks(r, &r->stages[i]);
    }
    qsort(out, r->n_stages, sizeof *out, by_number);
    for (size_t i = 0; i < r->n_stages; i++) {
        if (i == 0 || out[i] != out[i - 1]) {
            out[n++] = out[i];
        }
    }
    return n;
}

/** True where a stage of `each` ranks has equal flows from and to stages of all those numbers. */
static bool flows_are_equal(size_t each, const size_t *ranks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ranks[i] == 0 || (ranks[i] % each != 0 && each % ranks[i] != 0)) {
            return false;
        }
    }
    return true;
}

/** Ties of one stage; `ranks`: [n] of all stages of a copy. */
static void tie_stage(const struct union_of *u, const struct hv_replica *r,
                      const struct hv_stage *st, const size_t *ranks, size_t n)
{
    size_t each = hv_stage_ranks(r, st), dp = st->dp > 0 ? (size_t)st->dp : 1;
    bool all = st->zero.stage > 0; /* all copies may share the states */
    for (size_t i = 0; i < st->n_degrees; i++) {
        all = all || st->degrees[i].zero.stage > 0;
    }
    if (each == 0) {
        return;
    }
    for (size_t i = 0; i < st->n_offload; i++) {
        const struct hv_offload *o = &st->offload[i];
        tie(u, o->devices, o->to_host ? 0 : o->n_devices);
        if (!o->to_host && o->n_devices > 0 && st->n_devices > 0) {
            tie(u, (const uint32_t[]){o->devices[0], st->devices[0]}, 2);
            all = true;
        }
    }
    bool apart = st->n_degrees == 0 && st->shares == NULL && hv_stage_experts_over(st) <= 1 &&
                 flows_are_equal(each, ranks, n) && each % dp == 0;
    size_t width = all ? st->n_devices : apart ? each / dp : each;
    for (size_t at = 0; at + width <= st->n_devices && width > 0; at += width) {
        tie(u, st->devices + at, width);
    }
}

static void tie_plan(const struct union_of *u, const struct hv_plan *p, struct hv_arena *arena)
{
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        size_t *ranks = hv_arena_new(arena, size_t, r->n_stages + 1);
        size_t n = list_ranks(r, ranks);
        for (size_t k = 0; k < r->n_stages; k++) {
            tie_stage(u, r, &r->stages[k], ranks, n);
        }
    }
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static int by_set(const void *a, const void *b)
{
    const struct hv__tied_row *x = a, *y = b;
    if (x->set != y->set) {
        return x->set < y->set ? -1 : 1;
    }
    return (x->class > y->class) - (x->class < y->class);
}

static int by_class(const void *a, const void *b)
{
    const struct hv__tied_row *x = a, *y = b;
    if (x->class != y->class) {
        return x->class < y->class ? -1 : 1;
    }
    return (x->houses > y->houses) - (x->houses < y->houses);
}

/** A row per set and class, by set. Returns how many. */
static size_t list_rows(const struct union_of *u, const struct hv_houses *h, uint32_t n_houses,
                        struct hv__tied_row *rows)
{
    size_t n = 0, kept = 0;
    for (uint32_t i = 0; i < n_houses; i++) {
        if (u->seen[i]) {
            rows[n++] = (struct hv__tied_row){root_of(u, i), hv_house_class_of(h, i), 1};
        }
    }
    qsort(rows, n, sizeof *rows, by_set);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && by_set(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].houses++;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

/** Separates sets of one class from those of several. Single houses are not tied. */
static void sort_rows(struct hv__ties *t, struct hv__tied_row *rows, size_t n)
{
    size_t own = 0;
    t->rows = hv_arena_new(t->arena, struct hv__tied_row, n + 1);
    t->own = rows;
    for (size_t i = 0; i < n; i++) {
        bool alone = (i == 0 || rows[i - 1].set != rows[i].set) &&
                     (i + 1 == n || rows[i + 1].set != rows[i].set);
        if (!alone) {
            t->rows[t->n++] = rows[i];
        }
    }
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        bool mixed = at < t->n && by_set(&t->rows[at], &rows[i]) == 0;
        at += mixed;
        if (rows[i].class != HV_HOUSE_DRAINED && (mixed || rows[i].houses > 1)) {
            t->tied[rows[i].class] += rows[i].houses;
        }
        if (!mixed && rows[i].houses > 1) {
            rows[own++] = rows[i];
        }
    }
    qsort(rows, own, sizeof *rows, by_class);
    for (size_t i = 0; i < own; i++) {
        if (t->n_own > 0 && by_class(&rows[t->n_own - 1], &rows[i]) == 0) {
            rows[t->n_own - 1].set++;
        } else {
            rows[t->n_own] = rows[i];
            rows[t->n_own++].set = 1;
        }
    }
}

struct hv__ties hv__find_ties(const struct hv__lowered *l, const struct hv_houses *houses)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    struct hv__ties t = {.houses = houses, .arena = l->arena, .none_free = hv__by_servers(l)};
    if (t.none_free || c->n_nodes == 0) {
        return t;
    }
    uint32_t n_houses = hv_cluster_domain_of(c, c->n_nodes - 1) + 1;
    struct union_of u = {c, hv_arena_new(l->arena, uint32_t, n_houses),
                         hv_arena_new(l->arena, bool, n_houses)};
    for (uint32_t i = 0; i < n_houses; i++) {
        u.parent[i] = i;
    }
    tie_plan(&u, l->written, l->arena);
    struct hv__tied_row *rows = hv_arena_new(l->arena, struct hv__tied_row, n_houses + 1);
    t.tied = hv_arena_new(l->arena, uint32_t, houses->n_classes + 1);
    sort_rows(&t, rows, list_rows(&u, houses, n_houses, rows));
    return t;
}

/* ---- cuts --------------------------------------------------------------------------------------
 */

enum place { NEAR, FAR, EITHER };

static enum place place_of(const struct hv__ties *t, const uint32_t *beyond, uint32_t class)
{
    if (class == HV_HOUSE_DRAINED || beyond[class] == 0) {
        return NEAR;
    }
    return beyond[class] == t->houses->classes[class].houses ? FAR : EITHER;
}

/** Sets reachable sums in `sums` (bits 0 to most) to those with one more number. */
static void add_number(uint64_t *sums, uint32_t number, uint32_t most)
{
    size_t words = number / 64, bits = number % 64;
    for (size_t i = (size_t)most / 64 + 1; i-- > words;) {
        uint64_t more = sums[i - words] << bits;
        if (bits > 0 && i > words) {
            more |= sums[i - words - 1] >> (64 - bits);
        }
        sums[i] |= more;
    }
}

/** True where sets of tied houses of the class and up to `free` single ones make up `want`. */
static bool can_make(const struct hv__ties *t, uint32_t class, uint32_t want, uint32_t free)
{
    uint64_t *sums = hv_arena_new(t->arena, uint64_t, want / 64 + 1);
    sums[0] = 1;
    for (size_t i = 0; i < t->n_own; i++) {
        uint64_t left = t->own[i].class == class ? t->own[i].set : 0;
        for (uint64_t times = 1; left > 0; times *= 2) {
            uint64_t use = times < left ? times : left;
            if (use * t->own[i].houses <= want) {
                add_number(sums, (uint32_t)(use * t->own[i].houses), want);
            }
            left -= use;
        }
    }
    for (uint32_t sum = want > free ? want - free : 0; sum <= want; sum++) {
        if (sums[sum / 64] >> (sum % 64) & 1) {
            return true;
        }
    }
    return false;
}

/** Looks at one set of several classes: false where it is on both sides. Counts its houses of the
 * class that the cut goes through where they have to be beyond. */
static bool place_set(const struct hv__ties *t, const uint32_t *beyond, size_t from, size_t to,
                      uint32_t *far_of_cut)
{
    bool near = false, far = false;
    uint32_t either = 0;
    for (size_t i = from; i < to; i++) {
        enum place p = place_of(t, beyond, t->rows[i].class);
        near = near || p == NEAR;
        far = far || p == FAR;
        either += p == EITHER ? t->rows[i].houses : 0;
    }
    *far_of_cut += far ? either : 0;
    return !(near && far);
}

bool hv__can_cut(const struct hv__ties *t, const uint32_t *beyond)
{
    uint32_t far = 0;
    if (t->none_free) {
        return false;
    }
    for (size_t i = 0, to; i < t->n; i = to) {
        for (to = i + 1; to < t->n && t->rows[to].set == t->rows[i].set; to++)
            ;
        if (!place_set(t, beyond, i, to, &far)) {
            return false;
        }
    }
    for (uint32_t c = 0; c < t->houses->n_classes; c++) {
        if (place_of(t, beyond, c) == EITHER) {
            uint32_t free = t->houses->classes[c].houses - t->tied[c];
            return beyond[c] >= far && can_make(t, c, beyond[c] - far, free);
        }
    }
    return true;
}
