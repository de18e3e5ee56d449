/*
 * The best contiguous split of an operator graph: a dynamic program over its down-sets.
 *
 * A device that gets the difference R of two down-sets pays the transfer of a node exactly when R
 * cuts the node's star, the node with its successors. For down-sets I in J that sum is found from
 * the stars that I cuts and those that J cuts, so pairs are cheap.
 * Not here: the order of the classes (dag_order.c), the latency (dag_downset.c).
 */
#include "solver/base/vec.h"
#include "solver/optim/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SETS  ((size_t)1 << 18)
#define MAX_WORDS ((size_t)1 << 24) /* of all sets, and cut stars of all sets */
#define MAX_PAIRS ((uint64_t)3000000000)
#define WORD      ((size_t)64)
#define HAIR      (1 + 1e-12)

/* A star that a down-set cuts, with how much of it lies inside. */
struct cut {
    uint32_t star, inside;
};

/* A down-set with the sums over its groups. */
struct set {
    double accel, cpu, bytes, cost;                       /* cost of the stars it cuts */
    size_t n_groups, n_cpu_only, first_cut, n_cuts, bits; /* where its cuts and bits begin */
};

/* One step of the depth-first listing: which groups may still follow, and the one added last. */
struct frame {
    size_t begin, end, next, group;
};

struct program {
    const struct hv__dag_groups *q;
    const struct hv__dag_index *x;
    struct hv__watch *watch;
    size_t n_words;
    HV_VEC(struct set) sets;
    HV_VEC(uint64_t) bits;
    HV_VEC(struct cut) cuts;
    struct hv_arena arena;
    /* the listing */
    uint64_t *now;
    size_t *waits;
    uint32_t *inside, *total; /* of stars; total 0 = free of cost */
    uint32_t *split, *place;  /* stars that are cut, and where they stand in the list */
    size_t n_split;
    /* the program */
    size_t n_states;
    double limit, *value; /* set · n_states + state → least load of the busiest device */
    uint32_t *from;
    unsigned char *on_cpu;
    struct hv__dag_relief relief;
    double *offload;     /* CPUs → most accelerator time they can take off within the limit */
    uint32_t *mark_kept; /* star → how much is inside the set at hand, where that set cuts it */
    uint64_t n_pairs;
};

/* ---- listing the down-sets ------------------------------------------------------------------ */

static void touch_star(struct program *p, size_t v, uint32_t by)
{
    if (p->total[v] == 0)
        return;
    bool was = p->inside[v] > 0 && p->inside[v] < p->total[v];
    p->inside[v] += by;
    bool is = p->inside[v] > 0 && p->inside[v] < p->total[v];
    if (is && !was) {
        p->place[v] = (uint32_t)p->n_split;
        p->split[p->n_split++] = (uint32_t)v;
    } else if (was && !is) {
        uint32_t last = p->split[--p->n_split];
        p->split[p->place[v]] = last;
        p->place[last] = p->place[v];
    }
}

/* Adds a group to the set at hand (by = 1) or takes it out (by = -1 as unsigned). */
static void move_group(struct program *p, size_t group, uint32_t by)
{
    const struct hv__dag_groups *q = p->q;
    p->now[group / WORD] ^= (uint64_t)1 << group % WORD;
    for (size_t m = q->member_at[group]; m < q->member_at[group + 1]; m++) {
        size_t v = q->member[m];
        touch_star(p, v, by);
        for (size_t e = p->x->in_at[v]; e < p->x->in_at[v + 1]; e++)
            touch_star(p, p->x->in[e], by);
    }
}

static void keep_set(struct program *p, const struct set *sums)
{
    struct set s = *sums;
    s.bits = p->bits.n;
    s.first_cut = p->cuts.n;
    s.n_cuts = p->n_split;
    s.cost = 0;
    for (size_t w = 0; w < p->n_words; w++)
        hv_vec_push(&p->bits, p->now[w]);
    for (size_t k = 0; k < p->n_split; k++) {
        uint32_t v = p->split[k];
        hv_vec_push(&p->cuts, (struct cut){v, p->inside[v]});
        s.cost += p->x->cost[v];
    }
    hv_vec_push(&p->sets, s);
}

static struct set with_group(const struct program *p, const struct set *s, size_t group)
{
    struct set t = *s;
    t.accel += p->q->accel[group];
    t.cpu += p->q->cpu[group];
    t.bytes += p->q->bytes[group];
    t.n_cpu_only += p->q->n_cpu_only[group];
    t.n_groups++;
    return t;
}

static void begin_listing(struct program *p)
{
    const struct hv__dag_index *x = p->x;
    size_t n = x->g->n_nodes;
    p->n_words = p->q->n / WORD + 1;
    p->now = hv_arena_new(&p->arena, uint64_t, p->n_words);
    p->waits = hv_arena_new(&p->arena, size_t, p->q->n);
    p->inside = hv_arena_new(&p->arena, uint32_t, n);
    p->total = hv_arena_new(&p->arena, uint32_t, n);
    p->split = hv_arena_new(&p->arena, uint32_t, n);
    p->place = hv_arena_new(&p->arena, uint32_t, n);
    for (size_t v = 0; v < n; v++)
        if (x->cost[v] > 0)
            p->total[v] = (uint32_t)(1 + x->out_at[v + 1] - x->out_at[v]);
    for (size_t k = 0; k < p->q->next_at[p->q->n]; k++)
        p->waits[p->q->next[k]]++;
}

/*
 * Every down-set once: groups are added in rising order only, which any down-set allows since the
 * numbers are topological. False when there are too many.
 */
static bool list_sets(struct program *p)
{
    const struct hv__dag_groups *q = p->q;
    HV_VEC(size_t) ready = {0};
    HV_VEC(struct frame) frames = {0};
    HV_VEC(struct set) sums = {0};
    bool fits = true;
    for (size_t c = 0; c < q->n; c++)
        if (p->waits[c] == 0)
            hv_vec_push(&ready, c);
    hv_vec_push(&frames, (struct frame){0, ready.n, 0, SIZE_MAX});
    hv_vec_push(&sums, (struct set){0});
    keep_set(p, &sums.items[0]);
    while (frames.n && fits) {
        struct frame *f = &frames.items[frames.n - 1];
        if (f->next == f->end) {
            size_t c = f->group;
            ready.n = f->begin;
            for (size_t k = 0; c != SIZE_MAX && k < q->next_at[c + 1] - q->next_at[c]; k++)
                p->waits[q->next[q->next_at[c] + k]]++;
            if (c != SIZE_MAX)
                move_group(p, c, UINT32_MAX);
            frames.n--;
            sums.n--;
            continue;
        }
        size_t c = ready.items[f->next++], begin = ready.n, last = f->end;
        for (size_t k = f->next; k < last; k++)
            hv_vec_push(&ready, ready.items[k]);
        for (size_t k = q->next_at[c]; k < q->next_at[c + 1]; k++)
            if (--p->waits[q->next[k]] == 0)
                hv_vec_push(&ready, q->next[k]);
        move_group(p, c, 1);
        struct set s = with_group(p, &sums.items[sums.n - 1], c);
        keep_set(p, &s);
        hv_vec_push(&sums, s);
        hv_vec_push(&frames, (struct frame){begin, ready.n, begin, c});
        fits = p->sets.n <= MAX_SETS && p->bits.n <= MAX_WORDS && p->cuts.n <= MAX_WORDS &&
               (p->sets.n % 1024 || !hv__watch_over(p->watch));
    }
    hv_vec_free(&ready);
    hv_vec_free(&frames);
    hv_vec_free(&sums);
    return fits;
}

/* ---- the program ---------------------------------------------------------------------------- */

static int by_size(const void *pa, const void *pb)
{
    const struct set *a = pa, *b = pb;
    if (a->accel != b->accel)
        return a->accel < b->accel ? -1 : 1;
    if (a->n_groups != b->n_groups)
        return a->n_groups < b->n_groups ? -1 : 1;
    return (a->bits > b->bits) - (a->bits < b->bits);
}

/* Sorted sets with their bits in the same order, so that a walk over them is one over memory. */
static void sort_sets(struct program *p)
{
    uint64_t *bits = hv_arena_new(&p->arena, uint64_t, p->sets.n * p->n_words);
    qsort(p->sets.items, p->sets.n, sizeof *p->sets.items, by_size);
    for (size_t k = 0; k < p->sets.n; k++) {
        struct set *s = &p->sets.items[k];
        memcpy(bits + k * p->n_words, p->bits.items + s->bits, p->n_words * sizeof *bits);
        s->bits = k * p->n_words;
    }
    memcpy(p->bits.items, bits, p->sets.n * p->n_words * sizeof *bits);
}

/* Least accelerator time that must lie in a set for the devices that are left to take the rest. */
static double least_accel(const struct program *p, size_t accels, size_t cpus)
{
    const struct hv_dag *g = p->x->g;
    double whole = p->sets.items[p->sets.n - 1].accel;
    return whole -
           (p->offload[g->n_cpus - cpus] + (double)(g->n_accelerators - accels) * p->limit) -
           1e-9 * whole;
}

/* Transfers of the difference of two sets, the first being marked. */
static double transfers(const struct program *p, const struct set *i, const struct set *j)
{
    double cost = i->cost + j->cost;
    const struct cut *c = p->cuts.items + j->first_cut;
    for (size_t k = 0; k < j->n_cuts; k++) {
        uint32_t kept = p->mark_kept[c[k].star];
        if (kept) /* cut by both: paid once, or not at all when nothing of it lies between */
            cost -= (kept == c[k].inside ? 2 : 1) * p->x->cost[c[k].star];
    }
    return cost;
}

static void mark_cuts(struct program *p, const struct set *s, bool on)
{
    for (size_t k = 0; k < s->n_cuts; k++) {
        const struct cut *c = &p->cuts.items[s->first_cut + k];
        p->mark_kept[c->star] = on ? c->inside : 0;
    }
}

static bool lies_in(const struct program *p, const struct set *i, const struct set *j)
{
    const uint64_t *a = p->bits.items + i->bits, *b = p->bits.items + j->bits;
    for (size_t w = 0; w < p->n_words; w++)
        if (a[w] & ~b[w])
            return false;
    return true;
}

/* States of a set that can lead to something below the limit; returns how many. */
static size_t live_states(const struct program *p, size_t at, size_t *live)
{
    const double *value = p->value + at * p->n_states;
    size_t per = p->x->g->n_cpus + 1, n = 0;
    for (size_t t = 0; t < p->n_states; t++) {
        bool beaten =
            value[t] >= p->limit || p->sets.items[at].accel < least_accel(p, t / per, t % per);
        for (size_t k = 0; k < n && !beaten; k++) /* another has used no more of either */
            beaten = live[k] % per <= t % per && value[live[k]] <= value[t];
        if (!beaten)
            live[n++] = t;
    }
    return n;
}

static void offer(struct program *p, size_t from, size_t to, size_t state, double value, bool cpu)
{
    size_t cell = to * p->n_states + state;
    if (value >= p->value[cell])
        return;
    p->value[cell] = value;
    p->from[cell] = (uint32_t)from;
    p->on_cpu[cell] = cpu;
}

/* Index of the first set in [begin, end) with at least that much accelerator time. */
static size_t first_with(const struct program *p, size_t begin, size_t end, double accel)
{
    while (begin < end) {
        size_t mid = begin + (end - begin) / 2;
        if (p->sets.items[mid].accel < accel)
            begin = mid + 1;
        else
            end = mid;
    }
    return begin;
}

/* Where the sets begin that can follow with one more device. */
static size_t first_after(const struct program *p, size_t at, const size_t *live, size_t n_live)
{
    const struct hv_dag *g = p->x->g;
    size_t per = g->n_cpus + 1;
    double least = HUGE_VAL;
    for (size_t k = 0; k < n_live; k++) {
        size_t a = live[k] / per, c = live[k] % per;
        if (a < g->n_accelerators)
            least = fmin(least, least_accel(p, a + 1, c));
        if (c < g->n_cpus)
            least = fmin(least, least_accel(p, a, c + 1));
    }
    return first_with(p, at + 1, p->sets.n, least);
}

/* True when a device with this load behind set `at` would be the best way to set `to` so far. */
static bool helps(const struct program *p, size_t at, size_t to, size_t state, size_t next,
                  double load)
{
    double before = p->value[at * p->n_states + state], now = p->value[to * p->n_states + next];
    return before < now && load < now;
}

/* One more device behind set `at` for every set around it. */
static void extend(struct program *p, size_t at, const size_t *live, size_t n_live)
{
    const struct hv_dag *g = p->x->g;
    const struct set *i = &p->sets.items[at];
    const double *value = p->value + at * p->n_states;
    size_t per = g->n_cpus + 1;
    double most = i->accel + (g->n_cpus ? fmax(p->limit, p->offload[1]) : p->limit);
    for (size_t to = first_after(p, at, live, n_live); to < p->sets.n; to++) {
        const struct set *j = &p->sets.items[to];
        if (j->accel > most)
            break;
        p->n_pairs++;
        if (!lies_in(p, i, j))
            continue;
        double cpu = j->cpu - i->cpu, accel = j->accel - i->accel;
        bool fits = accel < p->limit && j->n_cpu_only == i->n_cpu_only &&
                    j->bytes - i->bytes <= g->memory * HAIR;
        bool priced = false;
        for (size_t k = 0; k < n_live; k++) {
            size_t t = live[k];
            if (fits && t / per < g->n_accelerators && helps(p, at, to, t, t + per, accel)) {
                accel += priced ? 0 : transfers(p, i, j);
                priced = true;
                fits = accel < p->limit;
                if (fits)
                    offer(p, at, to, t + per, fmax(value[t], accel), false);
            }
            if (t % per < g->n_cpus && cpu < p->limit)
                offer(p, at, to, t + 1, fmax(value[t], cpu), true);
        }
    }
}

static void run(struct program *p, double bound)
{
    size_t *live = hv_arena_new(&p->arena, size_t, p->n_states);
    for (size_t k = 0; k < p->sets.n * p->n_states; k++)
        p->value[k] = HUGE_VAL;
    p->value[0] = 0;

    for (size_t at = 0; at + 1 < p->sets.n; at++) {
        size_t n = live_states(p, at, live);
        if (n == 0)
            continue;
        mark_cuts(p, &p->sets.items[at], true);
        extend(p, at, live, n);
        mark_cuts(p, &p->sets.items[at], false);
        if (p->n_pairs > MAX_PAIRS)
            return;
        if (hv__watch_due(p->watch))
            hv__watch_tell(p->watch, p->limit, bound);
        if (hv__watch_over(p->watch))
            return;
    }
}

/* Devices along the best chain of sets. */
static void trace(const struct program *p, size_t state, size_t *device)
{
    size_t at = p->sets.n - 1, per = p->x->g->n_cpus + 1;
    while (at > 0) {
        size_t cell = at * p->n_states + state, before = p->from[cell];
        const uint64_t *i = p->bits.items + p->sets.items[before].bits;
        const uint64_t *j = p->bits.items + p->sets.items[at].bits;
        size_t d = p->on_cpu[cell] ? p->x->g->n_accelerators + state % per - 1 : state / per - 1;
        for (size_t c = 0; c < p->q->n; c++) {
            if (!((j[c / WORD] & ~i[c / WORD]) >> c % WORD & 1))
                continue;
            for (size_t m = p->q->member_at[c]; m < p->q->member_at[c + 1]; m++)
                device[p->q->member[m]] = d;
        }
        state -= p->on_cpu[cell] ? 1 : per;
        at = before;
    }
}

/* More than any device can have to do: what a split is measured against when none is known. */
static double most_load(const struct hv__dag_index *x)
{
    double sum = 1;
    for (size_t v = 0; v < x->g->n_nodes; v++)
        sum += x->g->nodes[v].accel + x->g->nodes[v].cpu + x->cost[v];
    return 2 * sum;
}

static void begin_program(struct program *p)
{
    const struct hv_dag *g = p->x->g;
    size_t cells = p->sets.n * p->n_states;
    sort_sets(p);
    p->offload = hv_arena_new(&p->arena, double, g->n_cpus + 1);
    p->value = hv_arena_new(&p->arena, double, cells);
    p->from = hv_arena_new(&p->arena, uint32_t, cells);
    p->on_cpu = hv_arena_new(&p->arena, unsigned char, cells);
    p->mark_kept = hv_arena_new(&p->arena, uint32_t, g->n_nodes);
    hv__dag_relief(p->q->accel, p->q->cpu, p->q->n_cpu_only, p->q->n, &p->arena, &p->relief);
}

/* The best state of the whole graph with a load below the limit; 0 = none. */
static size_t run_below(struct program *p, double limit, double bound)
{
    size_t found = 0;
    p->limit = limit * (1 - 1e-12);
    for (size_t c = 0; c <= p->x->g->n_cpus; c++)
        p->offload[c] = hv__dag_offload(&p->relief, (double)c * p->limit);
    run(p, bound);
    const double *value = p->value + (p->sets.n - 1) * p->n_states;
    for (size_t t = 1; t < p->n_states; t++)
        found = value[t] < value[found] ? t : found;
    return value[found] < p->limit ? found : 0;
}

/* Limits from just above the bound upwards keep the number of pairs small. */
static bool solve(struct program *p, double *best, size_t *device)
{
    const struct hv_dag *g = p->x->g;
    p->n_states = (g->n_accelerators + 1) * (g->n_cpus + 1);
    if (p->sets.n > MAX_WORDS / p->n_states)
        return false;
    begin_program(p);
    double bound = hv__dag_even_bound(&p->relief, g), top = fmin(*best, most_load(p->x));
    for (double width = 0.03;; width *= 2) {
        double limit = bound > 0 ? fmin(bound * (1 + width), top) : top;
        size_t found = run_below(p, limit, bound);
        if (p->n_pairs > MAX_PAIRS || p->watch->stopped)
            return false;
        if (found) {
            *best = p->value[(p->sets.n - 1) * p->n_states + found];
            trace(p, found, device);
        }
        if (found || limit >= top)
            return true;
    }
}

bool hv__dag_contiguous(const struct hv__dag_groups *q, struct hv__watch *watch, double *best,
                        size_t *device)
{
    struct program p = {.q = q, .x = q->x, .watch = watch};
    begin_listing(&p);
    bool done = list_sets(&p) && solve(&p, best, device);
    hv_vec_free(&p.sets);
    hv_vec_free(&p.bits);
    hv_vec_free(&p.cuts);
    hv_arena_free(&p.arena);
    return done;
}
