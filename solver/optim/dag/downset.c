/*
 * The least latency of an operator graph: a dynamic program over down-sets of its units, each set
 * being grown by one block on an accelerator or by one unit on the CPUs.
 * Not here: units, evaluation and choice of the answer (latency.c).
 */
#include "solver/base/vec.h"
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_SETS    ((size_t)4096)
#define MAX_ENTRIES ((size_t)1000000)
#define MAX_NUMBERS ((size_t)32 << 20)
#define MAX_WORK    3e10 /* numbers compared: a minute at most */
#define PREFIX_KEPT 16u  /* entries of one prefix */
#define NONE        UINT32_MAX

/* Sets of units, the smaller before the larger. */
struct family {
    const struct hv__dag_units *u;
    struct hv_arena *a;
    size_t words, n, cap;
    uint64_t *bits;
    uint32_t *slot; /* open hash of the sets */
    size_t n_slots;
    size_t *front_at, *front; /* nodes of a set with successors outside of it */
    double *rest;             /* per such node: longest path behind it, outside of the set */
    double *accel, *bytes;    /* of a set */
    size_t *cpu_only;
};

static bool has(const uint64_t *set, size_t k)
{
    return set[k / 64] >> (k % 64) & 1;
}

static const uint64_t *set_at(const struct family *f, size_t s)
{
    return f->bits + s * f->words;
}

/* Number of the set; NONE when it is not in the family (add = false) or does not fit. */
static uint32_t find_set(struct family *f, const uint64_t *set, bool add)
{
    uint64_t h = 1469598103934665603u;
    for (size_t w = 0; w < f->words; w++) {
        h = (h ^ set[w]) * 1099511628211u;
        h ^= h >> 29;
    }
    size_t at = (size_t)h % f->n_slots;
    for (; f->slot[at] != NONE; at = (at + 1) % f->n_slots) {
        if (memcmp(set_at(f, f->slot[at]), set, f->words * sizeof *set) == 0) {
            return f->slot[at];
        }
    }
    if (!add || f->n == f->cap) {
        return NONE;
    }
    memcpy(f->bits + f->n * f->words, set, f->words * sizeof *set);
    f->slot[at] = (uint32_t)f->n;
    return (uint32_t)f->n++;
}

static bool is_ready(const struct hv__dag_units *u, const uint64_t *set, size_t k)
{
    for (size_t e = u->pred_at[k]; e < u->pred_at[k + 1]; e++) {
        if (u->pred[e] != k && !has(set, u->pred[e])) {
            return false;
        }
    }
    return !has(set, k);
}

/* All down-sets by size; false when there are too many. */
static bool add_all(struct family *f, uint64_t *trial, struct hv__watch *watch)
{
    for (size_t s = 0; s < f->n; s++) {
        if (s % 64 == 0 && hv__watch_over(watch)) {
            return false;
        }
        for (size_t k = 0; k < f->u->n; k++) {
            if (!is_ready(f->u, set_at(f, s), k)) {
                continue;
            }
            memcpy(trial, set_at(f, s), f->words * sizeof *trial);
            trial[k / 64] |= (uint64_t)1 << (k % 64);
            if (find_set(f, trial, true) == NONE) {
                return false;
            }
        }
    }
    return true;
}

/* Computes the times and bytes of a set, and its front. */
static void describe_set(struct family *f, size_t s, size_t *n_front)
{
    const struct hv__dag_units *u = f->u;
    const struct hv__dag_index *x = u->x;
    const uint64_t *set = set_at(f, s);
    f->front_at[s] = *n_front;
    for (size_t k = 0; k < u->n; k++) {
        if (!has(set, k)) {
            continue;
        }
        f->accel[s] += u->accel[k];
        f->bytes[s] += u->bytes[k];
        f->cpu_only[s] += u->cpu_only[k];
        for (size_t m = u->member_at[k]; m < u->member_at[k + 1]; m++) {
            size_t v = u->member[m];
            double rest = -1;
            for (size_t e = x->out_at[v]; e < x->out_at[v + 1]; e++) {
                if (!has(set, u->of[x->out[e]])) {
                    rest = fmax(rest, u->path[x->out[e]]);
                }
            }
            if (rest < 0) {
                continue;
            }
            if (f->front) {
                f->front[*n_front] = v;
                f->rest[*n_front] = rest;
            }
            ++*n_front;
        }
    }
    f->front_at[s + 1] = *n_front;
}

static void describe_sets(struct family *f)
{
    f->front_at = hv_arena_new(f->a, size_t, f->n + 1);
    for (int pass = 0; pass < 2; pass++) {
        size_t n_front = 0;
        f->accel = hv_arena_new(f->a, double, f->n);
        f->bytes = hv_arena_new(f->a, double, f->n);
        f->cpu_only = hv_arena_new(f->a, size_t, f->n);
        for (size_t s = 0; s < f->n; s++) {
            describe_set(f, s, &n_front);
        }
        if (pass) {
            return;
        }
        f->front = hv_arena_new(f->a, size_t, n_front);
        f->rest = hv_arena_new(f->a, double, n_front);
    }
}

static bool make_family(struct family *f, const size_t *order, struct hv__watch *watch)
{
    f->words = (f->u->n + 63) / 64;
    f->cap = order ? f->u->n + 1 : MAX_SETS;
    f->n_slots = 2 * f->cap + 1;
    f->bits = hv_arena_new(f->a, uint64_t, f->cap * f->words);
    f->slot = hv_arena_new(f->a, uint32_t, f->n_slots);
    memset(f->slot, 0xff, f->n_slots * sizeof *f->slot);
    uint64_t *trial = hv_arena_new(f->a, uint64_t, f->words);
    find_set(f, trial, true);
    for (size_t k = 0; order && k < f->u->n; k++) {
        trial[order[k] / 64] |= (uint64_t)1 << (order[k] % 64);
        find_set(f, trial, true);
    }
    if (!order && !add_all(f, trial, watch)) {
        return false;
    }
    describe_sets(f);
    return true;
}

/* An entry of a set: numbers = accelerators used, latest end, ends of the front's nodes. */
struct entry {
    uint32_t set, from, next;
    bool block;
    size_t at;
};

struct search {
    struct family f;
    HV_VEC(struct entry) entries;
    HV_VEC(double) numbers;
    uint32_t *head, *count; /* of a set */
    double *end, *trial;    /* end: of nodes; trial: numbers of a new entry */
    double best;
    double work;
    uint32_t best_entry;
    bool prefixes, lost; /* lost: an entry was dropped that no other rules out */
};

static double entry_bound(const struct search *q, size_t set, const double *x)
{
    const struct family *f = &q->f;
    double bound = x[1];
    for (size_t k = f->front_at[set]; k < f->front_at[set + 1]; k++) {
        bound = fmax(bound, x[2 + k - f->front_at[set]] + f->rest[k]);
    }
    return bound;
}

/* True when an entry of the set is at least as good everywhere as the trial. */
static bool is_dominated(struct search *q, size_t set, size_t width)
{
    for (uint32_t e = q->head[set]; e != NONE; e = q->entries.items[e].next) {
        const double *x = q->numbers.items + q->entries.items[e].at;
        size_t k = 0;
        while (k < width && x[k] <= q->trial[k]) {
            k++;
        }
        q->work += (double)k + 1;
        if (k == width) {
            return true;
        }
    }
    return false;
}

/* Puts the trial into the place of the set's worst entry, if it is better. */
static void replace_worst(struct search *q, uint32_t set, uint32_t from, bool block, size_t width)
{
    uint32_t worst = NONE;
    double most = entry_bound(q, set, q->trial);
    for (uint32_t e = q->head[set]; e != NONE; e = q->entries.items[e].next) {
        double b = entry_bound(q, set, q->numbers.items + q->entries.items[e].at);
        if (b > most) {
            most = b;
            worst = e;
        }
    }
    q->lost = true;
    if (worst == NONE) {
        return;
    }
    q->entries.items[worst].from = from;
    q->entries.items[worst].block = block;
    memcpy(q->numbers.items + q->entries.items[worst].at, q->trial, width * sizeof *q->trial);
}

static void offer(struct search *q, uint32_t set, uint32_t from, bool block)
{
    const struct family *f = &q->f;
    size_t width = 2 + f->front_at[set + 1] - f->front_at[set];
    if (entry_bound(q, set, q->trial) >= q->best * (1 - 1e-12) || is_dominated(q, set, width)) {
        return;
    }
    if (q->prefixes && q->count[set] >= PREFIX_KEPT && set + 1 < f->n) {
        replace_worst(q, set, from, block, width);
        return;
    }
    if (q->entries.n >= MAX_ENTRIES || q->numbers.n + width > MAX_NUMBERS) {
        q->lost = true;
        return;
    }
    struct entry e = {set, from, q->head[set], block, q->numbers.n};
    q->head[set] = (uint32_t)q->entries.n;
    q->count[set]++;
    hv_vec_push(&q->entries, e);
    for (size_t k = 0; k < width; k++) {
        hv_vec_push(&q->numbers, q->trial[k]);
    }
    if (set + 1 == f->n) {
        q->best = q->trial[1];
        q->best_entry = q->head[set];
    }
}

/* Ends of the nodes that wait behind an entry's set. */
static void load_ends(struct search *q, uint32_t e)
{
    const struct family *f = &q->f;
    size_t set = q->entries.items[e].set;
    const double *x = q->numbers.items + q->entries.items[e].at;
    for (size_t k = f->front_at[set]; k < f->front_at[set + 1]; k++) {
        q->end[f->front[k]] = x[2 + k - f->front_at[set]];
    }
}

/* The trial for set `to`, from an entry whose ends are loaded; new nodes of a block end at `end`
 * (of a CPU unit: at q->end, end < 0). */
static void make_trial(struct search *q, const uint64_t *from_set, size_t to, double end)
{
    const struct family *f = &q->f;
    for (size_t k = f->front_at[to]; k < f->front_at[to + 1]; k++) {
        size_t v = f->front[k];
        bool fresh = end >= 0 && !has(from_set, f->u->of[v]);
        q->trial[2 + k - f->front_at[to]] = fresh ? end : q->end[v];
    }
}

/* Puts one ready unit on the CPUs, for all entries of the set. */
static void grow_by_unit(struct search *q, size_t s, size_t k, uint32_t to)
{
    const struct hv__dag_units *u = q->f.u;
    const struct hv__dag_index *x = u->x;
    for (uint32_t e = q->head[s]; e != NONE; e = q->entries.items[e].next) {
        const double *from = q->numbers.items + q->entries.items[e].at;
        double used = from[0], latest = from[1];
        load_ends(q, e);
        for (size_t m = u->member_at[k]; m < u->member_at[k + 1]; m++) {
            size_t v = u->member[m];
            double start = 0;
            for (size_t i = x->in_at[v]; i < x->in_at[v + 1]; i++) {
                start = fmax(start, q->end[x->in[i]]);
            }
            q->end[v] = start + x->g->nodes[v].cpu;
            latest = fmax(latest, q->end[v]);
        }
        q->trial[0] = used;
        q->trial[1] = latest;
        make_trial(q, set_at(&q->f, s), to, -1);
        offer(q, to, e, false);
    }
}

/* True when some successor of v lies in `to`, so that a block from v's set to it fetches v. */
static bool feeds(const struct family *f, size_t v, const uint64_t *from, const uint64_t *to)
{
    const struct hv__dag_index *x = f->u->x;
    for (size_t e = x->out_at[v]; e < x->out_at[v + 1]; e++) {
        size_t k = f->u->of[x->out[e]];
        if (has(to, k) && !has(from, k)) {
            return true;
        }
    }
    return false;
}

/* Puts the units of set `to` that are not in set s on a new accelerator, for all entries of s. */
static void grow_by_block(struct search *q, size_t s, uint32_t to, size_t *fed)
{
    const struct family *f = &q->f;
    const struct hv__dag_index *x = f->u->x;
    const uint64_t *a = set_at(f, s), *b = set_at(f, to);
    double busy = f->accel[to] - f->accel[s];
    size_t n_fed = 0;
    for (size_t k = f->front_at[s]; k < f->front_at[s + 1]; k++) {
        if (feeds(f, f->front[k], a, b)) {
            busy += x->cost[f->front[k]];
            fed[n_fed++] = f->front[k];
        }
    }
    for (size_t k = f->front_at[to]; k < f->front_at[to + 1]; k++) {
        busy += has(a, f->u->of[f->front[k]]) ? 0 : x->cost[f->front[k]];
    }
    for (uint32_t e = q->head[s]; e != NONE; e = q->entries.items[e].next) {
        const double *from = q->numbers.items + q->entries.items[e].at;
        double start = 0;
        if (from[0] >= (double)x->g->n_accelerators) {
            continue;
        }
        load_ends(q, e);
        for (size_t k = 0; k < n_fed; k++) {
            start = fmax(start, q->end[fed[k]]);
        }
        q->trial[0] = from[0] + 1;
        q->trial[1] = fmax(from[1], start + busy);
        make_trial(q, a, to, start + busy);
        offer(q, to, e, true);
    }
}

static bool inside(const uint64_t *a, const uint64_t *b, size_t words)
{
    for (size_t w = 0; w < words; w++) {
        if (a[w] & ~b[w]) {
            return false;
        }
    }
    return true;
}

static void grow_set(struct search *q, size_t s, uint64_t *trial, size_t *fed)
{
    struct family *f = &q->f;
    const struct hv_dag *g = f->u->x->g;
    for (size_t k = 0; g->n_cpus && k < f->u->n; k++) {
        if (!is_ready(f->u, set_at(f, s), k)) {
            continue;
        }
        memcpy(trial, set_at(f, s), f->words * sizeof *trial);
        trial[k / 64] |= (uint64_t)1 << (k % 64);
        uint32_t to = find_set(f, trial, false);
        if (to != NONE) {
            grow_by_unit(q, s, k, to);
        }
    }
    for (size_t to = s + 1; to < f->n; to++) {
        if (f->cpu_only[to] != f->cpu_only[s] ||
            f->bytes[to] - f->bytes[s] > g->memory * (1 + 1e-14) ||
            !inside(set_at(f, s), set_at(f, to), f->words)) {
            continue;
        }
        grow_by_block(q, s, (uint32_t)to, fed);
    }
}

static void read_answer(const struct search *q, size_t *device)
{
    const struct family *f = &q->f;
    const struct hv_dag *g = f->u->x->g;
    for (uint32_t e = q->best_entry; q->entries.items[e].from != NONE;) {
        const struct entry *now = &q->entries.items[e], *from = &q->entries.items[now->from];
        const uint64_t *a = set_at(f, from->set), *b = set_at(f, now->set);
        size_t used = (size_t)q->numbers.items[now->at];
        for (size_t v = 0; v < g->n_nodes; v++) {
            if (has(b, f->u->of[v]) && !has(a, f->u->of[v])) {
                device[v] = now->block ? used - 1 : g->n_accelerators;
            }
        }
        e = now->from;
    }
}

bool hv__dag_downsets(const struct hv__dag_units *u, const size_t *order, struct hv__watch *watch,
                      double *best, size_t *device)
{
    struct hv_arena a = {0};
    struct search q = {.f = {.u = u, .a = &a}, .best = *best, .best_entry = NONE};
    size_t n = u->x->g->n_nodes;
    bool complete = make_family(&q.f, order, watch);
    if (complete) {
        q.prefixes = order != NULL;
        q.head = hv_arena_new(&a, uint32_t, q.f.n);
        q.count = hv_arena_new(&a, uint32_t, q.f.n);
        q.end = hv_arena_new(&a, double, n);
        q.trial = hv_arena_new(&a, double, n + 2);
        memset(q.head, 0xff, q.f.n * sizeof *q.head);
        uint64_t *trial = hv_arena_new(&a, uint64_t, q.f.words);
        size_t *fed = hv_arena_new(&a, size_t, n);
        offer(&q, 0, NONE, false);
        for (size_t s = 0; s + 1 < q.f.n && complete; s++) {
            if (q.head[s] != NONE) {
                grow_set(&q, s, trial, fed);
            }
            if (hv__watch_due(watch)) {
                hv__watch_tell(watch, q.best, 0);
            }
            complete = !hv__watch_over(watch) && q.work < MAX_WORK;
        }
    }
    if (q.best_entry != NONE) {
        read_answer(&q, device);
        *best = q.best;
    }
    hv_vec_free(&q.entries);
    hv_vec_free(&q.numbers);
    hv_arena_free(&a);
    return complete && !q.lost;
}
