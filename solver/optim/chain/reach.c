/*
 * The least maximum over free orders of the devices. For a limit, every multiset of used devices
 * has the set of ends that its stages can reach with no value above the limit; the limit is
 * bisected between a bound and the best partition found, until none is left below that one.
 * Not here: objectives with a sum, too many multisets (order_search.c).
 */
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_WORDS ((size_t)32 << 20) /* of one array of sets */
#define WORD      64

/* A state that used `slow` in place of `fast` is at least as good for the remaining stages. */
struct swap {
    size_t slow, fast, step; /* step: how much less the number of the better state is */
};

struct reach {
    const struct hv_partition *p;
    struct hv__watch *watch;
    struct hv__kinds set;
    size_t n_words, n_ends;
    uint64_t *got;       /* state → ends within the limit that no better state has */
    uint64_t *upper;     /* state → ends that it or a better state has */
    uint64_t *next;      /* kind · n_ends + start → ends of a run at the position at hand */
    double *end, *start; /* kind · n_ends + place: of the runs in `next` */
    double *new_end, *new_start;
    uint32_t *order;             /* states by number of used devices */
    size_t *level;               /* used devices → first of them in `order` */
    size_t first_word, end_word; /* where ends of the level at hand can be */
    size_t n_swaps;
    struct swap *swaps;
    double limit;
};

/* True when device a is at least as fast as b on every layer and holds as much. */
static bool is_better(const struct hv_partition *p, size_t a, size_t b)
{
    const struct hv_part_stage *x = &p->stages[a], *y = &p->stages[b];
    if (x->table || y->table || x->capacity < y->capacity) {
        return false;
    }
    for (size_t l = 0; l < p->n_layers; l++) {
        if (x->time[l + 1] - x->time[l] > y->time[l + 1] - y->time[l]) {
            return false;
        }
    }
    return true;
}

/* True where a swap over a kind between the two follows from two other swaps: each kind has devices
 * used or left to swap. */
static bool has_kind_between(const struct reach *r, size_t slow, size_t fast)
{
    for (size_t k = slow + 1; k < fast; k++) {
        if (is_better(r->p, r->set.dev[k], r->set.dev[slow]) &&
            is_better(r->p, r->set.dev[fast], r->set.dev[k])) {
            return true;
        }
    }
    return false;
}

/* Kinds are numbered from slow to fast, so that rising order sees the better state first. */
static void find_swaps(struct reach *r, struct hv_arena *arena)
{
    size_t n = r->set.n_kinds;
    r->swaps = hv_arena_new(arena, struct swap, n * n);
    for (size_t slow = 0; slow < n; slow++) {
        for (size_t fast = slow + 1; fast < n; fast++) {
            if (is_better(r->p, r->set.dev[fast], r->set.dev[slow]) &&
                !has_kind_between(r, slow, fast)) {
                r->swaps[r->n_swaps++] =
                    (struct swap){slow, fast, r->set.radix[fast] - r->set.radix[slow]};
            }
        }
    }
}

static void sort_states(struct reach *r, struct hv_arena *arena)
{
    size_t n = r->set.n_states, S = r->p->n_stages;
    r->order = hv_arena_new(arena, uint32_t, n);
    r->level = hv_arena_new(arena, size_t, S + 3);
    for (size_t t = 0; t < n; t++) {
        r->level[r->set.used[t] + 2]++;
    }
    for (size_t u = 0; u <= S; u++) {
        r->level[u + 2] += r->level[u + 1];
    }
    for (size_t t = 0; t < n; t++) {
        r->order[r->level[r->set.used[t] + 1]++] = (uint32_t)t;
    }
}

static bool begin(struct reach *r, const struct hv_partition *p, struct hv_arena *arena)
{
    *r = (struct reach){.p = p, .n_ends = p->n_layers + 1, .n_words = p->n_layers / WORD + 1};
    if (!hv__kinds_group(&r->set, p, arena) || r->set.n_states > MAX_WORDS / r->n_words ||
        r->set.n_kinds * r->n_ends > MAX_WORDS / r->n_words) {
        return false;
    }
    r->got = hv_arena_new(arena, uint64_t, r->set.n_states * r->n_words);
    r->upper = hv_arena_new(arena, uint64_t, r->set.n_states * r->n_words);
    r->next = hv_arena_new(arena, uint64_t, r->set.n_kinds * r->n_ends * r->n_words);
    r->end = hv_arena_new(arena, double, r->set.n_kinds * r->n_ends);
    r->start = hv_arena_new(arena, double, r->set.n_kinds * r->n_ends);
    r->new_end = hv_arena_new(arena, double, r->n_ends);
    r->new_start = hv_arena_new(arena, double, r->n_ends);
    find_swaps(r, arena);
    sort_states(r, arena);
    return true;
}

static bool has_bit(const uint64_t *set, size_t j)
{
    return set[j / WORD] >> j % WORD & 1;
}

/* Terms of a run's value that depend on its end and on its start, as in hv_partition_value. */
static void fill_sides(const struct reach *r, size_t pos, size_t k, double *end, double *start)
{
    const struct hv_partition *p = r->p;
    const double *time = p->stages[r->set.dev[k]].time;
    memcpy(end, time, r->n_ends * sizeof *end);
    memcpy(start, time, r->n_ends * sizeof *start);
    for (size_t j = 1; p->cuts && j < p->n_layers; j++) {
        end[j] += pos + 1 < p->n_stages ? p->cuts[pos][j] : 0;
        start[j] -= pos > 0 ? p->cuts[pos - 1][j] : 0;
    }
}

/* Ends of the runs of kind k from start i that stay within the limit. */
static void fill_set(const struct reach *r, size_t pos, size_t k, size_t i, uint64_t *set)
{
    const struct hv_partition *p = r->p;
    const struct hv_part_stage *d = &p->stages[r->set.dev[k]];
    const double *m = p->stages[pos].memory, *end = r->end + k * r->n_ends;
    double start = r->start[k * r->n_ends + i], longest = r->limit * (1 + 1e-12);
    for (size_t j = i + p->min_layers; j <= p->n_layers; j++) {
        if ((!d->table && d->time[j] - d->time[i] > longest) ||
            (m && !hv__fits(p, pos, r->set.dev[k], i, j))) {
            break;
        }
        double v = d->table ? hv_partition_value(p, pos, r->set.dev[k], i, j) : end[j] - start;
        if (v <= r->limit) {
            set[j / WORD] |= (uint64_t)1 << j % WORD;
        }
    }
}

/* The runs of every kind at a position; those of the position before where nothing differs. */
static void fill_runs(struct reach *r, size_t pos)
{
    const struct hv_partition *p = r->p;
    size_t n = r->n_ends, words = n * r->n_words;
    bool same_memory = pos > 0 && p->stages[pos].memory == p->stages[pos - 1].memory;
    for (size_t k = 0; k < r->set.n_kinds; k++) {
        double *end = r->end + k * n, *start = r->start + k * n;
        bool table = p->stages[r->set.dev[k]].table != NULL;
        if (!table) {
            fill_sides(r, pos, k, r->new_end, r->new_start);
            if (same_memory && memcmp(end, r->new_end, n * sizeof *end) == 0 &&
                memcmp(start, r->new_start, n * sizeof *start) == 0) {
                continue;
            }
            memcpy(end, r->new_end, n * sizeof *end);
            memcpy(start, r->new_start, n * sizeof *start);
        }
        memset(r->next + k * words, 0, words * sizeof *r->next);
        for (size_t i = 0; i < n; i++) {
            fill_set(r, pos, k, i, r->next + k * words + i * r->n_words);
        }
    }
}

/* Leaves the ends that no better state has; false when there are none. */
static bool drop_beaten(struct reach *r, size_t t)
{
    const struct hv__kinds *g = &r->set;
    const uint16_t *digit = g->digit + t * g->n_kinds;
    uint64_t *got = r->got + t * r->n_words, *upper = r->upper + t * r->n_words, any = 0;
    for (size_t w = r->first_word; w < r->end_word; w++) {
        upper[w] = 0;
    }
    for (size_t k = 0; k < r->n_swaps; k++) {
        const struct swap *s = &r->swaps[k];
        if (digit[s->fast] == 0 || digit[s->slow] == g->count[s->slow]) {
            continue;
        }
        const uint64_t *better = upper - s->step * r->n_words;
        for (size_t w = r->first_word; w < r->end_word; w++) {
            upper[w] |= better[w];
        }
    }
    for (size_t w = r->first_word; w < r->end_word; w++) {
        uint64_t all = upper[w] | got[w];
        got[w] &= ~upper[w];
        upper[w] = all;
        any |= got[w];
    }
    return any != 0;
}

static size_t lowest_bit(uint64_t x)
{
    size_t n = 0;
    for (size_t half = WORD / 2; half > 0; half /= 2) {
        if ((x & (((uint64_t)1 << half) - 1)) == 0) {
            x >>= half;
            n += half;
        }
    }
    return n;
}

/* Puts one more stage of every kind behind the ends of a state. */
static void extend(struct reach *r, size_t t)
{
    const struct hv__kinds *g = &r->set;
    const uint64_t *got = r->got + t * r->n_words;
    for (size_t w = r->first_word; w < r->end_word; w++) {
        for (uint64_t left = got[w]; left; left &= left - 1) {
            size_t i = w * WORD + lowest_bit(left);
            for (size_t k = 0; k < g->n_kinds; k++) {
                if (g->digit[t * g->n_kinds + k] == g->count[k]) {
                    continue;
                }
                uint64_t *to = r->got + (t + g->radix[k]) * r->n_words;
                const uint64_t *runs = r->next + (k * r->n_ends + i) * r->n_words;
                for (size_t x = w; x < r->n_words; x++) {
                    to[x] |= runs[x];
                }
            }
        }
    }
}

/* Data shared by all states of a level: the range of their ends, and the runs that follow. */
static void set_level(struct reach *r, size_t used)
{
    const struct hv_partition *p = r->p;
    size_t most = p->n_layers;
    if (!p->any_stages) {
        most -= (p->n_stages - used) * p->min_layers;
    }
    r->first_word = used * p->min_layers / WORD;
    r->end_word = most / WORD + 1;
    if (used < p->n_stages) {
        fill_runs(r, used);
    }
}

/* A state that reaches the end with no value above the limit; SIZE_MAX when there is none. */
static size_t find_end(struct reach *r)
{
    size_t S = r->p->n_stages, L = r->p->n_layers;
    memset(r->got, 0, r->set.n_states * r->n_words * sizeof *r->got);
    r->got[0] = 1;
    for (size_t u = 0; u <= S; u++) {
        bool any = false;
        set_level(r, u);
        for (size_t at = r->level[u]; at < r->level[u + 1]; at++) {
            size_t t = r->order[at];
            if (at % 1024 == 0 && hv__watch_over(r->watch)) {
                return SIZE_MAX;
            }
            if (!drop_beaten(r, t)) {
                continue;
            }
            any = true;
            if (u > 0 && (u == S || r->p->any_stages) && has_bit(r->got + t * r->n_words, L)) {
                return t;
            }
            if (u < S) {
                extend(r, t);
            }
        }
        if (!any) {
            break;
        }
    }
    return SIZE_MAX;
}

/* The partition behind a state that reaches the end. */
static void trace(const struct reach *r, size_t t, struct hv_partition_result *out)
{
    const struct hv__kinds *g = &r->set;
    size_t j = r->p->n_layers;
    out->n_stages = g->used[t];
    for (size_t s = out->n_stages; s-- > 0;) {
        bool found = false;
        for (size_t k = 0; k < g->n_kinds && !found; k++) {
            if (!hv__has_kind(g, t, k)) {
                continue;
            }
            const uint64_t *from = r->got + (t - g->radix[k]) * r->n_words;
            for (size_t i = 0; i <= j && !found; i++) {
                if (!has_bit(from, i) || hv_partition_value(r->p, s, g->dev[k], i, j) > r->limit) {
                    continue;
                }
                found = true;
                out->cut[s] = j;
                out->order[s] = g->dev[k];
                t -= g->radix[k];
                j = i;
            }
        }
    }
    hv__kinds_name(g, out);
}

/* Searches for a partition within the limit; the result keeps the best one so far. */
static bool improve(struct reach *r, double limit, struct hv_arena *arena,
                    struct hv_partition_result *out)
{
    r->limit = limit;
    out->n_probes++;
    size_t t = find_end(r);
    if (t == SIZE_MAX) {
        return false;
    }
    trace(r, t, out);
    struct hv_arena_mark mark = hv_arena_mark(arena);
    double *value = out->value; /* hv__finish makes a list of its own, which is given back */
    hv__finish(r->p, arena, out);
    hv_arena_rewind(arena, mark); /* only the sums are wanted */
    out->value = value;
    return true;
}

/* Limits from the bound upwards until a partition is found; the last one is no limit. */
static bool climb(struct reach *r, double *low, struct hv_arena *arena,
                  struct hv_partition_result *out)
{
    double top = 0;
    for (size_t k = 0; k < r->set.n_kinds; k++) {
        const struct hv_part_stage *d = &r->p->stages[r->set.dev[k]];
        top = d->table ? HUGE_VAL : fmax(top, d->time[r->p->n_layers]);
    }
    for (double limit = *low * 1.25; limit > 0 && limit < top; limit *= 1.25) {
        if (improve(r, limit, arena, out)) {
            return true;
        }
        if (r->watch->stopped) {
            return false;
        }
        *low = limit;
        if (hv__watch_due(r->watch)) {
            hv__watch_tell(r->watch, HUGE_VAL, r->p->max_weight * *low);
        }
    }
    return improve(r, DBL_MAX, arena, out);
}

bool hv__reach_free(const struct hv_partition *p, struct hv__watch *watch, struct hv_arena *arena,
                    struct hv_partition_result *out)
{
    struct reach r;
    double low = hv__relaxed_bound(p, 0, 1), near = 0.01;
    if (p->min_layers * p->n_stages > p->n_layers && !p->any_stages) {
        return false;
    }
    if (!begin(&r, p, arena)) {
        watch->too_big = true;
        return false;
    }
    r.watch = watch;
    out->cut = hv_arena_new(arena, size_t, p->n_stages);
    out->order = hv_arena_new(arena, size_t, p->n_stages);
    out->value = hv_arena_new(arena, double, p->n_stages);
    if (!climb(&r, &low, arena, out)) {
        out->stopped = watch->stopped;
        return false;
    }
    while (out->max > low && !watch->stopped) {
        bool below = out->max - low <= near * out->max;
        double limit = below ? nextafter(out->max, 0) : 0.5 * (low + out->max);
        if (hv__watch_due(watch)) {
            hv__watch_tell(watch, out->objective, p->max_weight * low);
        }
        bool found = improve(&r, limit, arena, out);
        if (found && below) {
            near /= 16;
        } else if (!found && !watch->stopped) {
            low = below ? out->max : limit;
        }
    }
    hv__finish(p, arena, out);
    out->stopped = watch->stopped;
    out->bound = p->max_weight * fmin(low, out->max);
    return true;
}
