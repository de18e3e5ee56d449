/*
 * Contiguous partition with free order of the devices: a dynamic program over multisets of equal
 * devices, and a local search where there are too many of those.
 * Not here: the inner loops (partition_step.c) and fixed order (partition.c).
 */
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "solver/optim/partition_int.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_STATES ((size_t)2 << 20)
#define MAX_CELLS  ((size_t)96 << 20)

#define DEAD UINT32_MAX

/* Devices grouped into kinds; a state says how many of each kind have been used. */
struct orders {
    const struct hv_partition *p;
    size_t n_kinds, n_states;
    size_t *kind_dev;  /* a stage that has this kind's device */
    size_t *count;     /* devices of the kind */
    size_t *radix;     /* weight of the kind in a state's number */
    size_t *used;      /* state → stages used */
    uint16_t *digit;   /* state · n_kinds + kind → devices of the kind used */
    uint32_t *lo, *hi; /* state → window of end positions; lo > hi = dead */
    double *fee;       /* position → what its cuts cost at least */
    double least_fee;
    uint32_t *down, *up; /* kind · (n_layers + 1) + i → nearest start ≤ i, or end ≥ i, at which
                            min_layers layers keep the limit; DEAD = none */
    struct hv__row *rows;
    struct hv__watch *watch;
};

static bool same_device(const struct hv_part_stage *a, const struct hv_part_stage *b)
{
    return a->time == b->time && a->table == b->table && a->capacity == b->capacity;
}

static size_t kind_of(const struct orders *o, size_t dev)
{
    for (size_t k = 0; k < o->n_kinds; k++)
        if (same_device(&o->p->stages[o->kind_dev[k]], &o->p->stages[dev]))
            return k;
    return o->n_kinds;
}

/* Groups the devices; false when there are too many states. */
static bool group_devices(struct orders *o, const struct hv_partition *p, struct hv_arena *arena)
{
    *o = (struct orders){.p = p, .n_states = 1};
    o->kind_dev = hv_arena_new(arena, size_t, p->n_stages);
    o->count = hv_arena_new(arena, size_t, p->n_stages);
    o->radix = hv_arena_new(arena, size_t, p->n_stages);
    for (size_t s = 0; s < p->n_stages; s++) {
        size_t k = kind_of(o, s);
        if (k == o->n_kinds)
            o->kind_dev[o->n_kinds++] = s;
        o->count[k]++;
    }
    for (size_t k = 0; k < o->n_kinds; k++) {
        o->radix[k] = o->n_states;
        o->n_states *= o->count[k] + 1;
        if (o->n_states > MAX_STATES)
            return false;
    }
    o->used = hv_arena_new(arena, size_t, o->n_states);
    o->lo = hv_arena_new(arena, uint32_t, o->n_states);
    o->hi = hv_arena_new(arena, uint32_t, o->n_states);
    o->digit = hv_arena_new(arena, uint16_t, o->n_states * o->n_kinds);
    for (size_t t = 0; t < o->n_states; t++)
        for (size_t k = 0; k < o->n_kinds; k++) {
            o->digit[t * o->n_kinds + k] = (uint16_t)(t / o->radix[k] % (o->count[k] + 1));
            o->used[t] += o->digit[t * o->n_kinds + k];
        }
    return true;
}

/* The least cost of the cuts around every position; nothing where a stage may be empty. */
static void find_fees(struct orders *o, struct hv_arena *arena)
{
    const struct hv_partition *p = o->p;
    o->fee = hv_arena_new(arena, double, p->n_stages);
    o->down = hv_arena_new(arena, uint32_t, o->n_kinds * (p->n_layers + 1));
    o->up = hv_arena_new(arena, uint32_t, o->n_kinds * (p->n_layers + 1));
    if (!p->cuts || p->any_stages || p->min_layers == 0)
        return;
    for (size_t s = 0; s + 1 < p->n_stages; s++) {
        double least = HUGE_VAL;
        for (size_t j = 1; j < p->n_layers; j++)
            least = fmin(least, p->cuts[s][j]);
        o->fee[s] += least;
        o->fee[s + 1] += least;
    }
    o->least_fee = HUGE_VAL;
    for (size_t s = 0; s < p->n_stages; s++)
        o->least_fee = fmin(o->least_fee, o->fee[s]);
}

static bool has_kind(const struct orders *o, size_t state, size_t k)
{
    return o->digit[state * o->n_kinds + k] > 0;
}

/* Where a device of each kind can begin or end with its least number of layers. */
static void find_places(struct orders *o, double limit)
{
    size_t L = o->p->n_layers, m = o->p->min_layers, n = L + 1;
    double most = (limit - o->least_fee) * (1 + 1e-12);
    for (size_t k = 0; k < o->n_kinds; k++) {
        const struct hv_part_stage *d = &o->p->stages[o->kind_dev[k]];
        const double *t = d->table ? NULL : d->time;
        uint32_t *down = o->down + k * n, *up = o->up + k * n, last = DEAD;
        for (size_t i = 0; i <= L; i++) {
            if (i + m <= L && (!t || t[i + m] - t[i] <= most))
                last = (uint32_t)i;
            down[i] = last;
        }
        last = DEAD;
        for (size_t j = n; j-- > 0;) {
            if (j >= m && (!t || t[j] - t[j - m] <= most))
                last = (uint32_t)j;
            up[j] = last;
        }
    }
}

/* Furthest end of a run of kind k at position pos that begins at `from` or before; DEAD = none. */
static size_t reach_from(const struct orders *o, size_t pos, size_t k, size_t from, double limit)
{
    size_t i = from == DEAD ? DEAD : o->down[k * (o->p->n_layers + 1) + from];
    return i == DEAD ? DEAD : hv__furthest(o->p, pos, o->kind_dev[k], i, limit - o->fee[pos]);
}

/* Furthest end positions of all states under the limit, cut costs at their least. */
static void reach_forward(struct orders *o, double limit)
{
    const struct hv_partition *p = o->p;
    size_t L = p->n_layers, S = p->n_stages, m = p->min_layers;
    find_places(o, limit);
    o->hi[0] = 0;
    for (size_t t = 1; t < o->n_states; t++) {
        size_t far = 0, pos = o->used[t] - 1;
        size_t most = p->any_stages ? L : L - (S - o->used[t]) * m;
        bool any = false;
        for (size_t k = 0; k < o->n_kinds && !(any && far >= most); k++) {
            if (!has_kind(o, t, k))
                continue;
            size_t j = reach_from(o, pos, k, o->hi[t - o->radix[k]], limit);
            any = any || j != DEAD;
            far = j != DEAD && j > far ? j : far;
        }
        o->hi[t] = !any || far < o->used[t] * m ? DEAD : (uint32_t)(far < most ? far : most);
    }
}

/* Earliest end positions from which the rest can still reach the end; hi < lo where there are none.
 */
static void reach_backward(struct orders *o, double limit)
{
    const struct hv_partition *p = o->p;
    size_t L = p->n_layers, full = o->n_states - 1;
    for (size_t t = o->n_states; t-- > 0;) {
        size_t least = o->used[t] * p->min_layers, near = t == full ? L : L + 1;
        if (p->any_stages)
            near = least;
        for (size_t k = 0; t != full && !p->any_stages && k < o->n_kinds && near > least; k++) {
            size_t next = t + o->radix[k], pos = o->used[t];
            if (o->digit[t * o->n_kinds + k] == o->count[k] || o->lo[next] > L)
                continue;
            size_t j = o->up[k * (L + 1) + o->lo[next]];
            if (j == DEAD)
                continue;
            size_t i = hv__nearest(p, pos, o->kind_dev[k], j, limit - o->fee[pos]);
            near = i < near ? i : near;
        }
        o->lo[t] = (uint32_t)(near > least ? near : least);
        if (o->hi[t] == DEAD || o->lo[t] > o->hi[t]) {
            o->lo[t] = (uint32_t)L + 1; /* nothing needs to reach it */
            o->hi[t] = 0;
        }
    }
}

static size_t count_cells(const struct orders *o)
{
    size_t n = 0;
    for (size_t t = 0; t < o->n_states; t++)
        if (o->lo[t] <= o->hi[t])
            n += o->hi[t] - o->lo[t] + 1;
    return n;
}

static void fill_rows(struct orders *o, struct hv__step *step, struct hv_arena *arena)
{
    double *scratch = hv_arena_new(arena, double, o->p->n_layers + 1);
    o->rows = hv_arena_new(arena, struct hv__row, o->n_states);
    for (size_t t = 0; t < o->n_states; t++) {
        if (t % 512 == 0 && hv__watch_over(o->watch)) {
            o->watch->too_big = true;
            return;
        }
        o->rows[t] = hv__row_new(arena, o->lo[t], o->hi[t]);
        if (t == 0 && o->rows[0].lo <= o->rows[0].hi)
            o->rows[0].v[0] = 0;
        for (size_t k = 0; t > 0 && k < o->n_kinds; k++) {
            if (!has_kind(o, t, k))
                continue;
            step->pos = o->used[t] - 1;
            step->dev = o->kind_dev[k];
            hv__relax(o->p, step, &o->rows[t - o->radix[k]], &o->rows[t], scratch);
        }
        hv__trim(&o->rows[t], step->goal == HV__MAX ? step->limit : DBL_MAX);
    }
}

/* Gives every position one of the instance's stages of the chosen kind, lowest first. */
static void name_devices(const struct orders *o, struct hv_partition_result *out)
{
    for (size_t k = 0; k < o->n_kinds; k++) {
        size_t dev = 0;
        for (size_t s = 0; s < out->n_stages; s++) {
            if (out->order[s] != o->kind_dev[k])
                continue;
            while (!same_device(&o->p->stages[dev], &o->p->stages[o->kind_dev[k]]))
                dev++;
            out->value[s] = (double)dev++; /* parked: order still tells the kind */
        }
    }
    for (size_t s = 0; s < out->n_stages; s++)
        out->order[s] = (size_t)out->value[s];
}

static bool trace_orders(const struct orders *o, struct hv__step *step, size_t state,
                         struct hv_partition_result *out)
{
    size_t j = o->p->n_layers;
    double want = o->rows[state].v[j - o->rows[state].lo];
    for (size_t s = o->used[state]; s-- > 0;) {
        size_t i = SIZE_MAX, k = 0;
        for (; k < o->n_kinds; k++) {
            if (!has_kind(o, state, k))
                continue;
            const struct hv__row *from = &o->rows[state - o->radix[k]];
            step->pos = s;
            step->dev = o->kind_dev[k];
            i = from->lo <= from->hi ? hv__trace(o->p, step, from, j, want) : SIZE_MAX;
            if (i != SIZE_MAX)
                break;
        }
        if (i == SIZE_MAX)
            return false;
        out->cut[s] = j;
        out->order[s] = o->kind_dev[k];
        state -= o->radix[k];
        j = i;
        if (step->goal == HV__SUM)
            want = o->rows[state].v[j - o->rows[state].lo];
    }
    return true;
}

static size_t best_state(const struct orders *o, const struct hv__step *step)
{
    size_t L = o->p->n_layers, best = SIZE_MAX;
    double value = HUGE_VAL;
    for (size_t t = 1; t < o->n_states; t++) {
        const struct hv__row *r = &o->rows[t];
        bool ends = r->lo <= L && r->hi == L && (o->p->any_stages || t + 1 == o->n_states);
        if (!ends || r->v[L - r->lo] >= value)
            continue;
        if (step->goal == HV__MAX && r->v[L - r->lo] > step->limit)
            continue;
        value = r->v[L - r->lo];
        best = t;
    }
    return best;
}

/* The order of devices along the furthest reaches of the last reach_forward. */
static void walk_back(const struct orders *o, double limit, struct hv_part_stage *stages)
{
    const struct hv_partition *p = o->p;
    size_t t = o->n_states - 1;
    for (size_t s = p->n_stages; s-- > 0;) {
        size_t far = 0, chosen = o->n_kinds;
        for (size_t k = 0; k < o->n_kinds; k++) {
            if (!has_kind(o, t, k))
                continue;
            size_t j = reach_from(o, s, k, o->hi[t - o->radix[k]], limit);
            if (chosen == o->n_kinds || (j != DEAD && j > far)) {
                far = j == DEAD ? 0 : j;
                chosen = k;
            }
        }
        const struct hv_part_stage *d = &p->stages[o->kind_dev[chosen]];
        stages[s].time = d->time;
        stages[s].table = d->table;
        stages[s].capacity = d->capacity;
        t -= o->radix[chosen];
    }
}

/*
 * Bounds on the least maximum. Below *low not even the furthest reaches get to the end; *high comes
 * from orders along those reaches, each cut exactly (infinity when none of them fits).
 */
static void narrow(struct orders *o, struct hv_arena *arena, double *low, double *high)
{
    const struct hv_partition *p = o->p;
    struct hv_partition fixed = *p;
    struct hv_part_stage *stages = hv_arena_copy(arena, p->stages, p->n_stages, sizeof *stages);
    struct hv_partition_result r;
    fixed.stages = stages;
    fixed.free_order = false;
    double reach = *high = hv__greedy_max(&fixed);
    *low = 0;
    for (int k = 0; k < 8 && !isinf(*high) && reach - *low > 0.02 * reach; k++) {
        double mid = 0.5 * (*low + reach);
        reach_forward(o, mid);
        if (o->hi[o->n_states - 1] != p->n_layers) {
            *low = mid;
            continue;
        }
        struct hv_arena_mark mark = hv_arena_mark(arena);
        walk_back(o, mid, stages);
        r = (struct hv_partition_result){0};
        if (hv__solve_fixed(&fixed, HV__MAX, *high, arena, &r) && r.max < *high)
            *high = r.max;
        hv_arena_rewind(arena, mark);
        reach = mid;
    }
}

/* One program over all states with every value ≤ limit; SIZE_MAX when it finds nothing. */
static size_t run_orders(struct orders *o, struct hv__step *step, struct hv_arena *arena)
{
    reach_forward(o, step->limit);
    reach_backward(o, step->limit);
    o->watch->too_big = count_cells(o) > MAX_CELLS;
    if (o->watch->too_big || o->lo[0] > o->hi[0])
        return SIZE_MAX;
    fill_rows(o, step, arena);
    return o->watch->too_big ? SIZE_MAX : best_state(o, step);
}

/* The least maximum: limits from just above the lower bound upwards keep the windows small. */
static size_t climb(struct orders *o, struct hv__step *step, struct hv_arena *arena)
{
    double low = 0, high = HUGE_VAL;
    if (!o->p->any_stages)
        narrow(o, arena, &low, &high);
    for (double width = 0.45;; width *= 3) {
        struct hv_arena_mark mark = hv_arena_mark(arena);
        bool last = !(low > 0) || isinf(high) || low * (1 + width) >= high;
        step->limit = last ? high : low * (1 + width);
        size_t state = run_orders(o, step, arena);
        if (last || state != SIZE_MAX || o->watch->too_big)
            return state;
        hv_arena_rewind(arena, mark);
    }
}

bool hv__solve_free(const struct hv_partition *p, enum hv__goal goal, double limit,
                    struct hv__watch *watch, struct hv_arena *arena,
                    struct hv_partition_result *out)
{
    struct orders o;
    out->n_probes++;
    if (p->min_layers * p->n_stages > p->n_layers && !p->any_stages)
        return false;
    if (!group_devices(&o, p, arena)) {
        watch->too_big = true;
        return false;
    }
    o.watch = watch;
    find_fees(&o, arena);
    struct hv__step step = {goal, 0, 0, limit};
    size_t state =
        goal == HV__MAX && isinf(limit) ? climb(&o, &step, arena) : run_orders(&o, &step, arena);
    if (state == SIZE_MAX)
        return false;
    out->n_stages = o.used[state];
    out->cut = hv_arena_new(arena, size_t, p->n_stages);
    out->order = hv_arena_new(arena, size_t, p->n_stages);
    out->value = hv_arena_new(arena, double, p->n_stages);
    if (!trace_orders(&o, &step, state, out))
        return false;
    name_devices(&o, out);
    hv__finish(p, arena, out);
    return true;
}

/*
 * No order can be better than this: any weights w ≥ 0 with Σ w = 1 give max_d time_d ≥
 * Σ_layers min_d w_d t_d(layer); w is taken in proportion to the speed over the whole chain.
 */
static double relaxed_bound(const struct hv_partition *p)
{
    double rate = 0, top = 0, sum = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        if (p->stages[s].table || p->stages[s].time[p->n_layers] <= 0)
            return 0;
        rate += 1 / p->stages[s].time[p->n_layers];
    }
    for (size_t l = 0; l < p->n_layers; l++) {
        double weighted = HUGE_VAL, plain = HUGE_VAL;
        for (size_t s = 0; s < p->n_stages; s++) {
            const double *t = p->stages[s].time;
            plain = fmin(plain, t[l + 1] - t[l]);
            weighted = fmin(weighted, (t[l + 1] - t[l]) / t[p->n_layers] / rate);
        }
        top += weighted;
        sum += plain;
    }
    return p->sum_weight * sum + p->max_weight * top;
}

static bool judge(const struct hv_partition *fixed, struct hv__watch *watch, struct hv_arena *arena,
                  struct hv_partition_result *r)
{
    *r = (struct hv_partition_result){0};
    if (fixed->sum_weight > 0)
        return hv__solve_mixed(fixed, watch, arena, r);
    return hv__solve_fixed(fixed, HV__MAX, hv__greedy_max(fixed), arena, r);
}

/* The device that position s has in the order, with the position's own memory. */
static void place(const struct hv_partition *p, struct hv_part_stage *stages, const size_t *order)
{
    for (size_t s = 0; s < p->n_stages; s++) {
        stages[s] = p->stages[order[s]];
        stages[s].memory = p->stages[s].memory;
    }
}

enum hv_status hv__search_order(const struct hv_partition *p, struct hv__watch *watch,
                                struct hv_arena *arena, struct hv_partition_result *out,
                                struct hv_err *err)
{
    size_t S = p->n_stages, *order = hv_arena_new(arena, size_t, S);
    size_t *cut = hv_arena_new(arena, size_t, S), *chosen = hv_arena_new(arena, size_t, S);
    struct hv_part_stage *stages = hv_arena_new(arena, struct hv_part_stage, S);
    struct hv_partition fixed = *p;
    struct hv_partition_result r;
    struct hv_rng rng;
    const struct hv_part_limits quiet = hv__watch_rest(watch);
    struct hv__watch inner; /* an order's own bound says nothing about the others */
    hv__watch_start(&inner, &quiet);
    (void)err;
    hv_rng_seed(&rng, 1);
    fixed.stages = stages;
    fixed.free_order = false;
    memset(out, 0, sizeof *out);
    for (size_t s = 0; s < S; s++)
        order[s] = s;
    for (int64_t tries = 0, idle = 0; idle < 400 && tries < 20000; tries++, idle++) {
        size_t a = (size_t)hv_rng_below(&rng, S), b = (size_t)hv_rng_below(&rng, S);
        size_t keep = order[a];
        if (hv__watch_due(watch))
            hv__watch_tell(watch, out->feasible ? out->objective : HUGE_VAL, relaxed_bound(p));
        if (tries && (hv__watch_over(watch) || same_device(&p->stages[keep], &p->stages[order[b]])))
            continue;
        if (tries) {
            order[a] = order[b];
            order[b] = keep;
        }
        place(p, stages, order);
        struct hv_arena_mark mark = hv_arena_mark(arena);
        bool found = judge(&fixed, &inner, arena, &r);
        out->n_probes += r.n_probes;
        if (found && (!out->feasible || r.objective < out->objective)) {
            int64_t probes = out->n_probes;
            memcpy(cut, r.cut, r.n_stages * sizeof *cut);
            memcpy(chosen, order, S * sizeof *chosen);
            *out = r;
            out->n_probes = probes;
            idle = 0;
        } else if (tries && out->feasible) {
            order[b] = order[a];
            order[a] = keep;
        }
        hv_arena_rewind(arena, mark);
    }
    out->method = "order-search";
    out->stopped = watch->stopped || inner.stopped;
    out->proof =
        "orders improved by swaps, each solved exactly; the bound lets devices share layers";
    out->bound = relaxed_bound(p);
    out->cut = cut;
    out->order = chosen;
    if (out->feasible)
        hv__finish(p, arena, out);
    else
        out->objective = HV_UNKNOWN;
    out->proven = out->feasible && out->objective <= out->bound * (1 + 1e-9);
    return HV_OK;
}
