/*
 * The best contiguous split of an operator graph: a dynamic program over its down-sets.
 *
 * A device that gets the difference R of two down-sets pays the transfer of a node exactly when R
 * cuts the node's star, the node with its successors. For down-sets I in J that sum is found from
 * the stars that I cuts and those that J cuts, so pairs are cheap.
 * Not here: the order of the classes (order.c), the latency (downset.c).
 */
#include "solver/base/vec.h"
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SETS  ((size_t)1 << 18)
#define MAX_CUTS  ((size_t)1 << 24)     /* stars that all sets cut */
#define MAX_CELLS ((size_t)1 << 25)     /* sets times states */
#define MAX_PAIRS ((uint64_t)500000000) /* some seconds */
#define HAIR      (1 + 1e-12)
#define ROUND     1e-6 /* more than rounding to float changes */

/* A star that a down-set cuts, with how much of it lies inside. */
struct cut {
    uint32_t star, inside;
};

/* A down-set with the sums over its groups. */
struct set {
    double accel, cpu, bytes, cost; /* cost of the stars it cuts */
    size_t n_cpu_only, first_cut, n_cuts;
    uint32_t n_groups, parent;
};

/*
 * Its place in the listing, a tree where groups are added in rising order: the group added last and
 * where the search for its predecessor's next group begins; the sets up to `after` hold this one
 * and otherwise only groups behind `last`.
 */
struct node {
    float accel; /* rounded, for the first test */
    uint32_t last, begin, after;
};

/* One step of the listing: the groups that may still follow, and the current set. */
struct frame {
    size_t begin, end, next, set;
};

/* Groups that may follow, of all frames. */
struct ready {
    size_t *items, n, cap;
};

struct program {
    const struct hv__dag_groups *q;
    const struct hv__dag_index *x;
    struct hv__watch *watch;
    HV_VEC(struct set) sets;
    HV_VEC(struct node) nodes;
    HV_VEC(struct cut) cuts;
    struct hv_arena arena;
    /* the listing */
    size_t *waits;
    uint32_t *inside, *total; /* of stars; total 0 = free of cost */
    uint32_t *split, *place;  /* stars that are cut, and where they stand in the list */
    size_t n_split;
    /* the program */
    uint32_t *order; /* sets from small to large */
    uint32_t *has;   /* group → the first group from it on that the set at hand has; n = none */
    size_t n_states, full;
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
    if (p->total[v] == 0) {
        return;
    }
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
    for (size_t m = q->member_at[group]; m < q->member_at[group + 1]; m++) {
        size_t v = q->member[m];
        touch_star(p, v, by);
        for (size_t e = p->x->in_at[v]; e < p->x->in_at[v + 1]; e++) {
            touch_star(p, p->x->in[e], by);
        }
    }
}

/* Appends the current set to the list: its parent with one more group. */
static void keep_set(struct program *p, size_t parent, size_t group)
{
    struct set s = {0};
    struct node n = {0};
    if (p->sets.n > 0) {
        s = p->sets.items[parent];
        s.accel += p->q->accel[group];
        s.cpu += p->q->cpu[group];
        s.bytes += p->q->bytes[group];
        s.n_cpu_only += p->q->n_cpu_only[group];
        s.n_groups++;
        s.parent = (uint32_t)parent;
        n = (struct node){(float)s.accel, (uint32_t)group,
                          parent ? p->nodes.items[parent].last + 1 : 0, 0};
    }
    s.first_cut = p->cuts.n;
    s.n_cuts = p->n_split;
    s.cost = 0;
    for (size_t k = 0; k < p->n_split; k++) {
        uint32_t v = p->split[k];
        hv_vec_push(&p->cuts, (struct cut){v, p->inside[v]});
        s.cost += p->x->cost[v];
    }
    hv_vec_push(&p->sets, s);
    hv_vec_push(&p->nodes, n);
}

static void begin_listing(struct program *p)
{
    const struct hv__dag_index *x = p->x;
    size_t n = x->g->n_nodes;
    p->waits = hv_arena_new(&p->arena, size_t, p->q->n);
    p->inside = hv_arena_new(&p->arena, uint32_t, n);
    p->total = hv_arena_new(&p->arena, uint32_t, n);
    p->split = hv_arena_new(&p->arena, uint32_t, n);
    p->place = hv_arena_new(&p->arena, uint32_t, n);
    for (size_t v = 0; v < n; v++) {
        if (x->cost[v] > 0) {
            p->total[v] = (uint32_t)(1 + x->out_at[v + 1] - x->out_at[v]);
        }
    }
    for (size_t k = 0; k < p->q->next_at[p->q->n]; k++) {
        p->waits[p->q->next[k]]++;
    }
}

/* Takes the group of the frame's set out again. */
static void step_back(struct program *p, const struct frame *f)
{
    const struct hv__dag_groups *q = p->q;
    size_t c = p->nodes.items[f->set].last;
    p->nodes.items[f->set].after = (uint32_t)p->sets.n;
    if (f->set == 0) {
        return;
    }
    for (size_t k = q->next_at[c]; k < q->next_at[c + 1]; k++) {
        p->waits[q->next[k]]++;
    }
    move_group(p, c, UINT32_MAX);
}

/* Puts a group among those that may follow, which rise from `begin` on. */
static void insert_ready(struct ready *r, size_t begin, size_t group)
{
    hv_vec_push(r, group);
    for (size_t k = r->n - 1; k > begin && r->items[k - 1] > group; k--) {
        r->items[k] = r->items[k - 1];
        r->items[k - 1] = group;
    }
}

/*
 * Every down-set once: groups are added in rising order only, which any down-set allows since the
 * numbers are topological. False when there are too many.
 */
static bool list_sets(struct program *p)
{
    const struct hv__dag_groups *q = p->q;
    struct ready ready = {0};
    HV_VEC(struct frame) frames = {0};
    bool fits = true;
    for (size_t c = 0; c < q->n; c++) {
        if (p->waits[c] == 0) {
            hv_vec_push(&ready, c);
        }
    }
    hv_vec_push(&frames, (struct frame){0, ready.n, 0, 0});
    keep_set(p, 0, 0);
    while (frames.n && fits) {
        struct frame *f = &frames.items[frames.n - 1];
        if (f->next == f->end) {
            step_back(p, f);
            ready.n = f->begin;
            frames.n--;
            continue;
        }
        size_t c = ready.items[f->next++], begin = ready.n, last = f->end, parent = f->set;
        for (size_t k = f->next; k < last; k++) {
            hv_vec_push(&ready, ready.items[k]);
        }
        for (size_t k = q->next_at[c]; k < q->next_at[c + 1]; k++) {
            if (--p->waits[q->next[k]] == 0) {
                insert_ready(&ready, begin, q->next[k]);
            }
        }
        move_group(p, c, 1);
        hv_vec_push(&frames, (struct frame){begin, ready.n, begin, p->sets.n});
        keep_set(p, parent, c);
        fits = p->sets.n <= MAX_SETS && p->cuts.n <= MAX_CUTS &&
               (p->sets.n % 1024 || !hv__watch_over(p->watch));
    }
    hv_vec_free(&ready);
    hv_vec_free(&frames);
    return fits;
}

/* ---- the program ---------------------------------------------------------------------------- */

/* A set by its size. */
struct rank {
    double accel;
    uint32_t n_groups, set;
};

static int by_size(const void *pa, const void *pb)
{
    const struct rank *a = pa, *b = pb;
    if (a->accel != b->accel) {
        return a->accel < b->accel ? -1 : 1;
    }
    if (a->n_groups != b->n_groups) {
        return a->n_groups < b->n_groups ? -1 : 1;
    }
    return (a->set > b->set) - (a->set < b->set);
}

static void sort_sets(struct program *p)
{
    size_t n = p->sets.n;
    struct rank *r = hv_arena_new(&p->arena, struct rank, n);
    p->order = hv_arena_new(&p->arena, uint32_t, n);
    for (size_t k = 0; k < n; k++) {
        r[k] = (struct rank){p->sets.items[k].accel, p->sets.items[k].n_groups, (uint32_t)k};
    }
    qsort(r, n, sizeof *r, by_size);
    for (size_t k = 0; k < n; k++) {
        p->order[k] = r[k].set;
    }
    p->full = p->order[n - 1];
}

/* Least accelerator time that must lie in a set for the devices that are left to take the rest. */
static double least_accel(const struct program *p, size_t accels, size_t cpus)
{
    const struct hv_dag *g = p->x->g;
    double whole = p->sets.items[p->full].accel;
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
        if (kept) { /* cut by both: paid once, or not at all when nothing of it lies between */
            cost -= (kept == c[k].inside ? 2 : 1) * p->x->cost[c[k].star];
        }
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

/* Builds the index of the groups in the current set. */
static void mark_groups(struct program *p, size_t at)
{
    size_t n = p->q->n;
    for (size_t c = 0; c <= n; c++) {
        p->has[c] = (uint32_t)n;
    }
    for (size_t k = at; k != 0; k = p->sets.items[k].parent) {
        p->has[p->nodes.items[k].last] = p->nodes.items[k].last;
    }
    for (size_t c = n; c-- > 0;) {
        p->has[c] = p->has[c] == n ? p->has[c + 1] : p->has[c];
    }
}

/* States of a set from which a load below the limit is possible; returns their number. */
static size_t live_states(const struct program *p, size_t at, size_t *live)
{
    const double *value = p->value + at * p->n_states;
    size_t per = p->x->g->n_cpus + 1, n = 0;
    for (size_t t = 0; t < p->n_states; t++) {
        bool beaten =
            value[t] >= p->limit || p->sets.items[at].accel < least_accel(p, t / per, t % per);
        for (size_t k = 0; k < n && !beaten; k++) { /* another has used no more of either */
            beaten = live[k] % per <= t % per && value[live[k]] <= value[t];
        }
        if (!beaten) {
            live[n++] = t;
        }
    }
    return n;
}

static void offer(struct program *p, size_t from, size_t to, size_t state, double value, bool cpu)
{
    size_t cell = to * p->n_states + state;
    if (value >= p->value[cell]) {
        return;
    }
    p->value[cell] = value;
    p->from[cell] = (uint32_t)from;
    p->on_cpu[cell] = cpu;
}

/* Least accelerator time of the sets that can follow with one more device. */
static double least_after(const struct program *p, const size_t *live, size_t n_live)
{
    const struct hv_dag *g = p->x->g;
    size_t per = g->n_cpus + 1;
    double least = HUGE_VAL;
    for (size_t k = 0; k < n_live; k++) {
        size_t a = live[k] / per, c = live[k] % per;
        if (a < g->n_accelerators) {
            least = fmin(least, least_accel(p, a + 1, c));
        }
        if (c < g->n_cpus) {
            least = fmin(least, least_accel(p, a, c + 1));
        }
    }
    return least;
}

/* True when a device with this load behind set `at` would be the best way to set `to` so far. */
static bool helps(const struct program *p, size_t at, size_t to, size_t state, size_t next,
                  double load)
{
    double before = p->value[at * p->n_states + state], now = p->value[to * p->n_states + next];
    return before < now && load < now;
}

/* One more device behind set `at`, up to set `to`. */
static void add_device(struct program *p, size_t at, size_t to, const size_t *live, size_t n_live)
{
    const struct hv_dag *g = p->x->g;
    const struct set *i = &p->sets.items[at], *j = &p->sets.items[to];
    const double *value = p->value + at * p->n_states;
    size_t per = g->n_cpus + 1;
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
            if (fits) {
                offer(p, at, to, t + per, fmax(value[t], accel), false);
            }
        }
        if (t % per < g->n_cpus && cpu < p->limit) {
            offer(p, at, to, t + 1, fmax(value[t], cpu), true);
        }
    }
}

/* One more device behind set `at` for every set around it. */
static void extend(struct program *p, size_t at, const size_t *live, size_t n_live)
{
    const struct hv_dag *g = p->x->g;
    const struct node *nodes = p->nodes.items;
    double step = g->n_cpus ? fmax(p->limit, p->offload[1]) : p->limit;
    float least = (float)(least_after(p, live, n_live) * (1 - ROUND));
    float most = (float)((p->sets.items[at].accel + step) * (1 + ROUND));
    uint32_t none = (uint32_t)p->q->n;
    for (size_t to = 1; to < p->sets.n;) {
        const struct node *n = &nodes[to];
        p->n_pairs++;
        if (p->has[n->begin] < n->last || n->accel > most) {
            to = n->after; /* all of them lack a group, or hold too much */
            continue;
        }
        if (p->has[n->last + 1] == none && n->accel >= least && to != at) {
            add_device(p, at, to, live, n_live);
        }
        to++;
    }
}

static void run(struct program *p, double bound)
{
    size_t *live = hv_arena_new(&p->arena, size_t, p->n_states);
    for (size_t k = 0; k < p->sets.n * p->n_states; k++) {
        p->value[k] = HUGE_VAL;
    }
    p->value[0] = 0;

    for (size_t k = 0; k + 1 < p->sets.n; k++) {
        size_t at = p->order[k], n = live_states(p, at, live);
        if (n == 0) {
            continue;
        }
        mark_groups(p, at);
        mark_cuts(p, &p->sets.items[at], true);
        extend(p, at, live, n);
        mark_cuts(p, &p->sets.items[at], false);
        if (p->n_pairs > MAX_PAIRS) {
            return;
        }
        if (hv__watch_due(p->watch)) {
            hv__watch_tell(p->watch, p->limit, bound);
        }
        if (hv__watch_over(p->watch)) {
            return;
        }
    }
}

/* Devices along the best chain of sets, from the last to the first. */
static void trace(const struct program *p, size_t state, size_t *device)
{
    size_t at = p->full, per = p->x->g->n_cpus + 1;
    while (at != 0) {
        size_t cell = at * p->n_states + state;
        size_t d = p->on_cpu[cell] ? p->x->g->n_accelerators + state % per - 1 : state / per - 1;
        for (size_t k = at; k != 0; k = p->sets.items[k].parent) { /* later devices overwrite */
            size_t c = p->nodes.items[k].last;
            for (size_t m = p->q->member_at[c]; m < p->q->member_at[c + 1]; m++) {
                device[p->q->member[m]] = d;
            }
        }
        state -= p->on_cpu[cell] ? 1 : per;
        at = p->from[cell];
    }
}

/* Upper bound on the load of any device: the limit where no split is known. */
static double most_load(const struct hv__dag_index *x)
{
    double sum = 1;
    for (size_t v = 0; v < x->g->n_nodes; v++) {
        sum += x->g->nodes[v].accel + x->g->nodes[v].cpu + x->cost[v];
    }
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
    p->has = hv_arena_new(&p->arena, uint32_t, p->q->n + 2);
    p->mark_kept = hv_arena_new(&p->arena, uint32_t, g->n_nodes);
    hv__dag_relief(p->q->accel, p->q->cpu, p->q->n_cpu_only, p->q->n, &p->arena, &p->relief);
}

/* The best state of the whole graph with a load below the limit; 0 = none. */
static size_t run_below(struct program *p, double limit, double bound)
{
    size_t found = 0;
    p->limit = limit * (1 - 1e-12);
    for (size_t c = 0; c <= p->x->g->n_cpus; c++) {
        p->offload[c] = hv__dag_offload(&p->relief, (double)c * p->limit);
    }
    run(p, bound);
    const double *value = p->value + p->full * p->n_states;
    for (size_t t = 1; t < p->n_states; t++) {
        found = value[t] < value[found] ? t : found;
    }
    return value[found] < p->limit ? found : 0;
}

/* Limits from just above the bound upwards keep the number of pairs small. */
static bool solve(struct program *p, double *best, size_t *device)
{
    const struct hv_dag *g = p->x->g;
    p->n_states = (g->n_accelerators + 1) * (g->n_cpus + 1);
    if (p->sets.n > MAX_CELLS / p->n_states) {
        return false;
    }
    begin_program(p);
    double bound = hv__dag_even_bound(&p->relief, g), top = fmin(*best, most_load(p->x));
    for (double width = 0.03;; width *= 3) {
        bool last = !(bound * (1 + 3 * width) < top);
        double limit = last ? top : bound * (1 + width);
        size_t found = run_below(p, limit, bound);
        if (p->n_pairs > MAX_PAIRS || p->watch->stopped) {
            return false;
        }
        if (found) {
            *best = p->value[p->full * p->n_states + found];
            trace(p, found, device);
        }
        if (found || last) {
            return true;
        }
    }
}

bool hv__dag_contiguous(const struct hv__dag_groups *q, struct hv__watch *watch, double *best,
                        size_t *device)
{
    struct program p = {.q = q, .x = q->x, .watch = watch};
    begin_listing(&p);
    bool done = list_sets(&p) && solve(&p, best, device);
    hv_vec_free(&p.sets);
    hv_vec_free(&p.nodes);
    hv_vec_free(&p.cuts);
    hv_arena_free(&p.arena);
    return done;
}
