/*
 * Contiguous partition with free order of the devices: the least sum under a limit by a dynamic
 * program over multisets of equal devices, and a bound that no order beats.
 * Not here: the least maximum (reach.c), the inner loops (step.c), instances with too many
 * multisets (order_search.c).
 */
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <float.h>
#include <math.h>
#include <stdint.h>

#define MAX_CELLS ((size_t)96 << 20)

#define DEAD UINT32_MAX

struct orders {
    const struct hv_partition *p;
    struct hv__kinds set;
    uint32_t *lo, *hi; /* state → window of end positions; lo > hi = dead */
    double *fee;       /* position → least cost of its cuts */
    double least_fee;
    uint32_t *down, *up; /* kind · (n_layers + 1) + i → nearest start ≤ i, or end ≥ i, at which
                            min_layers layers keep the limit; DEAD = none */
    struct hv__row *rows;
    struct hv__watch *watch;
};

/* The least cost of the cuts around every position; nothing where a stage may be empty. */
static void find_fees(struct orders *o, struct hv_arena *arena)
{
    const struct hv_partition *p = o->p;
    o->fee = hv_arena_new(arena, double, p->n_stages);
    o->down = hv_arena_new(arena, uint32_t, o->set.n_kinds * (p->n_layers + 1));
    o->up = hv_arena_new(arena, uint32_t, o->set.n_kinds * (p->n_layers + 1));
    if (!p->cuts || p->any_stages || p->min_layers == 0) {
        return;
    }
    for (size_t s = 0; s + 1 < p->n_stages; s++) {
        double least = HUGE_VAL;
        for (size_t j = 1; j < p->n_layers; j++) {
            least = fmin(least, p->cuts[s][j]);
        }
        o->fee[s] += least;
        o->fee[s + 1] += least;
    }
    o->least_fee = HUGE_VAL;
    for (size_t s = 0; s < p->n_stages; s++) {
        o->least_fee = fmin(o->least_fee, o->fee[s]);
    }
}

/* Finds the positions at which a device of each kind can begin or end with its least number of
 * layers. */
static void find_places(struct orders *o, double limit)
{
    size_t L = o->p->n_layers, m = o->p->min_layers, n = L + 1;
    double most = (limit - o->least_fee) * (1 + 1e-12);
    for (size_t k = 0; k < o->set.n_kinds; k++) {
        const struct hv_part_stage *d = &o->p->stages[o->set.dev[k]];
        const double *t = d->table ? NULL : d->time;
        uint32_t *down = o->down + k * n, *up = o->up + k * n, last = DEAD;
        for (size_t i = 0; i <= L; i++) {
            if (i + m <= L && (!t || t[i + m] - t[i] <= most)) {
                last = (uint32_t)i;
            }
            down[i] = last;
        }
        last = DEAD;
        for (size_t j = n; j-- > 0;) {
            if (j >= m && (!t || t[j] - t[j - m] <= most)) {
                last = (uint32_t)j;
            }
            up[j] = last;
        }
    }
}

/* Furthest end of a run of kind k at position pos that begins at `from` or before; DEAD = none. */
static size_t reach_from(const struct orders *o, size_t pos, size_t k, size_t from, double limit)
{
    size_t i = from == DEAD ? DEAD : o->down[k * (o->p->n_layers + 1) + from];
    return i == DEAD ? DEAD : hv__furthest(o->p, pos, o->set.dev[k], i, limit - o->fee[pos]);
}

/* Furthest end positions of all states under the limit, cut costs at their least. */
static void reach_forward(struct orders *o, double limit)
{
    const struct hv_partition *p = o->p;
    size_t L = p->n_layers, S = p->n_stages, m = p->min_layers;
    find_places(o, limit);
    o->hi[0] = 0;
    for (size_t t = 1; t < o->set.n_states; t++) {
        size_t far = 0, pos = o->set.used[t] - 1;
        size_t most = p->any_stages ? L : L - (S - o->set.used[t]) * m;
        bool any = false;
        for (size_t k = 0; k < o->set.n_kinds && !(any && far >= most); k++) {
            if (!hv__has_kind(&o->set, t, k)) {
                continue;
            }
            size_t j = reach_from(o, pos, k, o->hi[t - o->set.radix[k]], limit);
            any = any || j != DEAD;
            far = j != DEAD && j > far ? j : far;
        }
        o->hi[t] = !any || far < o->set.used[t] * m ? DEAD : (uint32_t)(far < most ? far : most);
    }
}

/* Earliest end positions from which the rest can still reach the end; hi < lo where there are none.
 */
static void reach_backward(struct orders *o, double limit)
{
    const struct hv_partition *p = o->p;
    size_t L = p->n_layers, full = o->set.n_states - 1;
    for (size_t t = o->set.n_states; t-- > 0;) {
        size_t least = o->set.used[t] * p->min_layers, near = t == full ? L : L + 1;
        if (p->any_stages) {
            near = least;
        }
        for (size_t k = 0; t != full && !p->any_stages && k < o->set.n_kinds && near > least; k++) {
            size_t next = t + o->set.radix[k], pos = o->set.used[t];
            if (o->set.digit[t * o->set.n_kinds + k] == o->set.count[k] || o->lo[next] > L) {
                continue;
            }
            size_t j = o->up[k * (L + 1) + o->lo[next]];
            if (j == DEAD) {
                continue;
            }
            size_t i = hv__nearest(p, pos, o->set.dev[k], j, limit - o->fee[pos]);
            near = i < near ? i : near;
        }
        o->lo[t] = (uint32_t)(near > least ? near : least);
        if (o->hi[t] == DEAD || o->lo[t] > o->hi[t]) {
            o->lo[t] = (uint32_t)L + 1; /* the state is not needed */
            o->hi[t] = 0;
        }
    }
}

static size_t count_cells(const struct orders *o)
{
    size_t n = 0;
    for (size_t t = 0; t < o->set.n_states; t++) {
        if (o->lo[t] <= o->hi[t]) {
            n += o->hi[t] - o->lo[t] + 1;
        }
    }
    return n;
}

static void fill_rows(struct orders *o, struct hv__step *step, struct hv_arena *arena)
{
    double *scratch = hv_arena_new(arena, double, o->p->n_layers + 1);
    o->rows = hv_arena_new(arena, struct hv__row, o->set.n_states);
    for (size_t t = 0; t < o->set.n_states; t++) {
        if (t % 512 == 0 && hv__watch_over(o->watch)) {
            o->watch->too_big = true;
            return;
        }
        o->rows[t] = hv__row_new(arena, o->lo[t], o->hi[t]);
        if (t == 0 && o->rows[0].lo <= o->rows[0].hi) {
            o->rows[0].v[0] = 0;
        }
        for (size_t k = 0; t > 0 && k < o->set.n_kinds; k++) {
            if (!hv__has_kind(&o->set, t, k)) {
                continue;
            }
            step->pos = o->set.used[t] - 1;
            step->dev = o->set.dev[k];
            hv__relax(o->p, step, &o->rows[t - o->set.radix[k]], &o->rows[t], scratch);
        }
        hv__trim(&o->rows[t], DBL_MAX);
    }
}

static bool trace_orders(const struct orders *o, struct hv__step *step, size_t state,
                         struct hv_partition_result *out)
{
    size_t j = o->p->n_layers;
    double want = o->rows[state].v[j - o->rows[state].lo];
    for (size_t s = o->set.used[state]; s-- > 0;) {
        size_t i = SIZE_MAX, k = 0;
        for (; k < o->set.n_kinds; k++) {
            if (!hv__has_kind(&o->set, state, k)) {
                continue;
            }
            const struct hv__row *from = &o->rows[state - o->set.radix[k]];
            step->pos = s;
            step->dev = o->set.dev[k];
            i = from->lo <= from->hi ? hv__trace(o->p, step, from, j, want) : SIZE_MAX;
            if (i != SIZE_MAX) {
                break;
            }
        }
        if (i == SIZE_MAX) {
            return false;
        }
        out->cut[s] = j;
        out->order[s] = o->set.dev[k];
        state -= o->set.radix[k];
        j = i;
        want = o->rows[state].v[j - o->rows[state].lo];
    }
    return true;
}

static size_t best_state(const struct orders *o)
{
    size_t L = o->p->n_layers, best = SIZE_MAX;
    double value = HUGE_VAL;
    for (size_t t = 1; t < o->set.n_states; t++) {
        const struct hv__row *r = &o->rows[t];
        bool ends = r->lo <= L && r->hi == L && (o->p->any_stages || t + 1 == o->set.n_states);
        if (!ends || r->v[L - r->lo] >= value) {
            continue;
        }
        value = r->v[L - r->lo];
        best = t;
    }
    return best;
}

/* One program over all states with every value ≤ limit; SIZE_MAX when it finds nothing. */
static size_t run_orders(struct orders *o, struct hv__step *step, struct hv_arena *arena)
{
    reach_forward(o, step->limit);
    reach_backward(o, step->limit);
    o->watch->too_big = count_cells(o) > MAX_CELLS;
    if (o->watch->too_big || o->lo[0] > o->hi[0]) {
        return SIZE_MAX;
    }
    fill_rows(o, step, arena);
    return o->watch->too_big ? SIZE_MAX : best_state(o);
}

bool hv__solve_free(const struct hv_partition *p, double limit, struct hv__watch *watch,
                    struct hv_arena *arena, struct hv_partition_result *out)
{
    struct orders o = {.p = p, .watch = watch};
    out->n_probes++;
    if (p->min_layers * p->n_stages > p->n_layers && !p->any_stages) {
        return false;
    }
    if (!hv__kinds_group(&o.set, p, arena)) {
        watch->too_big = true;
        return false;
    }
    o.lo = hv_arena_new(arena, uint32_t, o.set.n_states);
    o.hi = hv_arena_new(arena, uint32_t, o.set.n_states);
    find_fees(&o, arena);
    struct hv__step step = {HV__SUM, 0, 0, limit};
    size_t state = run_orders(&o, &step, arena);
    if (state == SIZE_MAX) {
        return false;
    }
    out->n_stages = o.set.used[state];
    out->cut = hv_arena_new(arena, size_t, p->n_stages);
    out->order = hv_arena_new(arena, size_t, p->n_stages);
    out->value = hv_arena_new(arena, double, p->n_stages);
    if (!trace_orders(&o, &step, state, out)) {
        return false;
    }
    hv__kinds_name(&o.set, out);
    hv__finish(p, arena, out);
    return true;
}

/*
 * Lower bound for all orders: any weights w ≥ 0 with Σ w = 1 give max_d time_d ≥
 * Σ_layers min_d w_d t_d(layer); w is taken in proportion to the speed over the whole chain.
 */
double hv__relaxed_bound(const struct hv_partition *p, double sum_weight, double max_weight)
{
    double rate = 0, top = 0, sum = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        if (p->stages[s].table || p->stages[s].time[p->n_layers] <= 0) {
            return 0;
        }
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
    return sum_weight * sum + max_weight * top;
}
