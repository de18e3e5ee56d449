/*
 * Paths over matrices: Dijkstra, the subset program, and a local search for larger tours.
 * Not here: the meaning of the costs.
 */
#include "solver/optim/graph/path.h"
#include "solver/base/units.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define STARTS ((size_t)16)
#define WORK   ((int64_t)300000000) /* most edges that the local search evaluates */

static enum hv_status check(const double *cost, size_t n, double least, struct hv_err *err)
{
    if (n > HV_PATH_MAX) {
        return hv_err_set(err, HV_ELIMIT, "a path may have at most %zu nodes", HV_PATH_MAX);
    }
    if (n == 0) {
        return hv_err_set(err, HV_EINPUT, "expected at least one node");
    }
    for (size_t u = 0; u < n; u++) {
        for (size_t v = 0; v < n; v++) {
            if (u != v && !(cost[u * n + v] >= least)) {
                return hv_err_set(
                    err, HV_EINPUT, "cost from %zu to %zu: expected %s, found %g", u + 1, v + 1,
                    least < 0 ? "a number" : "a number that is not negative", cost[u * n + v]);
            }
        }
    }
    return HV_OK;
}

/* Shortest distances up to `to` (Dijkstra), and the node before each. */
static double *find_distances(const double *cost, size_t n, size_t from, size_t to, size_t *before,
                              struct hv_arena *arena)
{
    double *far = hv_arena_new(arena, double, n);
    bool *done = hv_arena_new(arena, bool, n);
    size_t u = from;
    for (size_t v = 0; v < n; v++) {
        far[v] = v == from ? 0 : HUGE_VAL;
    }
    while (u != n && u != to) {
        done[u] = true;
        size_t next = n;
        for (size_t v = 0; v < n; v++) {
            if (!done[v] && v != u && far[u] + cost[u * n + v] < far[v]) {
                far[v] = far[u] + cost[u * n + v];
                before[v] = u;
            }
            if (!done[v] && !isinf(far[v]) && (next == n || far[v] < far[next])) {
                next = v;
            }
        }
        u = next;
    }
    return far;
}

enum hv_status hv_path_shortest(const double *cost, size_t n, size_t from, size_t to,
                                struct hv_arena *arena, struct hv_path_result *out,
                                struct hv_err *err)
{
    memset(out, 0, sizeof *out);
    out->value = out->bound = HV_UNKNOWN;
    enum hv_status st = check(cost, n, 0, err);
    if (st != HV_OK) {
        return st;
    }
    if (from >= n || to >= n) {
        return hv_err_set(err, HV_EINPUT, "expected two nodes out of %zu", n);
    }
    size_t *before = hv_arena_new(arena, size_t, n), u;
    const double *far = find_distances(cost, n, from, to, before, arena);
    out->proven = true;
    if (isinf(far[to])) {
        return HV_OK;
    }
    out->feasible = true;
    out->value = out->bound = far[to];
    for (u = to; u != from; u = before[u]) {
        out->n++;
    }
    out->order = hv_arena_new(arena, size_t, ++out->n);
    u = to;
    for (size_t k = out->n; k-- > 0; u = before[u]) {
        out->order[k] = u;
    }
    return HV_OK;
}

/* Costs to be minimised: negated for the heaviest path. */
struct tour {
    const double *cost;
    size_t n;
    bool heaviest;
    int64_t work;
};

static double edge(const struct tour *t, size_t u, size_t v)
{
    double c = t->cost[u * t->n + v];
    return isinf(c) ? HUGE_VAL : t->heaviest ? -c : c;
}

static double length_of(struct tour *t, const size_t *order)
{
    double sum = 0;
    t->work += (int64_t)t->n;
    for (size_t k = 0; k + 1 < t->n; k++) {
        sum += edge(t, order[k], order[k + 1]);
    }
    return sum;
}

/* Best order by subsets: best[set · n + last]. */
static double by_subsets(const struct tour *t, struct hv_arena *arena, size_t *order)
{
    size_t n = t->n, sets = (size_t)1 << n, last = 0;
    double *best = hv_arena_new(arena, double, sets *n), value = HUGE_VAL;
    unsigned char *from = hv_arena_new(arena, unsigned char, sets *n);
    for (size_t k = 0; k < sets * n; k++) {
        best[k] = HUGE_VAL;
    }
    for (size_t v = 0; v < n; v++) {
        best[((size_t)1 << v) * n + v] = 0;
    }
    for (size_t set = 1; set < sets; set++) {
        for (size_t u = 0; u < n; u++) {
            double at = best[set * n + u];
            for (size_t v = 0; !isinf(at) && v < n; v++) {
                size_t to = (set | (size_t)1 << v) * n + v;
                if (set >> v & 1 || at + edge(t, u, v) >= best[to]) {
                    continue;
                }
                best[to] = at + edge(t, u, v);
                from[to] = (unsigned char)u;
            }
        }
    }
    size_t set = sets - 1;
    for (size_t v = 0; v < n; v++) {
        if (best[set * n + v] < value) {
            value = best[set * n + v];
            last = v;
        }
    }
    for (size_t k = n; k-- > 0 && !isinf(value);) {
        order[k] = last;
        size_t u = from[set * n + last];
        set &= ~((size_t)1 << last);
        last = u;
    }
    return value;
}

static void nearest_from(const struct tour *t, size_t start, size_t *order, bool *used)
{
    memset(used, 0, t->n * sizeof *used);
    order[0] = start;
    used[start] = true;
    for (size_t k = 1; k < t->n; k++) {
        size_t best = t->n;
        for (size_t v = 0; v < t->n; v++) {
            if (!used[v] &&
                (best == t->n || edge(t, order[k - 1], v) < edge(t, order[k - 1], best))) {
                best = v;
            }
        }
        order[k] = best;
        used[best] = true;
    }
}

/* Moves order[i … i + len) behind position j of the rest, reversed when `turn`. */
static void move_segment(const size_t *order, size_t n, const size_t *how, bool turn, size_t *out)
{
    size_t i = how[0], len = how[1], j = how[2], at = 0, seen = 0;
    for (size_t k = 0; k <= n - len; k++) {
        if (k == j) {
            for (size_t q = 0; q < len; q++) {
                out[at++] = order[turn ? i + len - 1 - q : i + q];
            }
        }
        if (k == n - len) {
            break;
        }
        if (seen == i) {
            seen += len;
        }
        out[at++] = order[seen++];
    }
}

/* One round of segment moves; true when the order got better. */
static bool improve(struct tour *t, size_t *order, size_t *trial, double *value)
{
    for (size_t len = 1; len <= 3 && len < t->n; len++) {
        for (size_t i = 0; i + len <= t->n && t->work < WORK; i++) {
            for (size_t j = 0; j <= t->n - len; j++) {
                for (int turn = 0; turn < 2; turn++) {
                    const size_t how[] = {i, len, j};
                    move_segment(order, t->n, how, turn == 1, trial);
                    double v = length_of(t, trial);
                    if (!(v < *value - 1e-12 * fabs(*value))) {
                        continue;
                    }
                    *value = v;
                    memcpy(order, trial, t->n * sizeof *order);
                    return true;
                }
            }
        }
    }
    for (size_t i = 0; i < t->n && t->work < WORK; i++) { /* reversals */
        for (size_t j = i + 1; j < t->n; j++) {
            memcpy(trial, order, t->n * sizeof *trial);
            for (size_t k = 0; k <= j - i; k++) {
                trial[i + k] = order[j - k];
            }
            double v = length_of(t, trial);
            if (!(v < *value - 1e-12 * fabs(*value))) {
                continue;
            }
            *value = v;
            memcpy(order, trial, t->n * sizeof *order);
            return true;
        }
    }
    return false;
}

static double by_search(struct tour *t, struct hv_arena *arena, size_t *order)
{
    size_t n = t->n, starts = n < STARTS ? n : STARTS;
    size_t *now = hv_arena_new(arena, size_t, n), *trial = hv_arena_new(arena, size_t, n);
    bool *used = hv_arena_new(arena, bool, n);
    double best = HUGE_VAL;
    for (size_t s = 0; s < starts; s++) {
        nearest_from(t, s * n / starts, now, used);
        double v = length_of(t, now);
        while (improve(t, now, trial, &v)) {
        }
        if (s == 0 || v < best) {
            best = v;
            memcpy(order, now, n * sizeof *order);
        }
    }
    return best;
}

/* Bound: the sum of the best outgoing edges of all nodes but the costliest; the same for incoming
 * edges. */
static double neighbour_bound(const struct tour *t)
{
    double leave = 0, arrive = 0, worst_leave = -HUGE_VAL, worst_arrive = -HUGE_VAL;
    for (size_t u = 0; u < t->n; u++) {
        double out = HUGE_VAL, in = HUGE_VAL;
        for (size_t v = 0; v < t->n; v++) {
            if (v != u) {
                out = fmin(out, edge(t, u, v));
                in = fmin(in, edge(t, v, u));
            }
        }
        /* the last node has no outgoing edge: the largest term is left out */
        worst_leave = fmax(worst_leave, out);
        worst_arrive = fmax(worst_arrive, in);
        leave += out;
        arrive += in;
    }
    if (isinf(leave) || isinf(arrive)) {
        return -HUGE_VAL;
    }
    return fmax(leave - worst_leave, arrive - worst_arrive);
}

enum hv_status hv_path_through_all(const double *cost, size_t n, bool heaviest,
                                   struct hv_arena *arena, struct hv_path_result *out,
                                   struct hv_err *err)
{
    struct tour t = {cost, n, heaviest, 0};
    memset(out, 0, sizeof *out);
    out->value = out->bound = HV_UNKNOWN;
    enum hv_status st = check(cost, n, -HUGE_VAL, err);
    if (st != HV_OK) {
        return st;
    }
    out->order = hv_arena_new(arena, size_t, n);
    out->proven = n <= HV_PATH_EXACT;
    double v = out->proven ? by_subsets(&t, arena, out->order) : by_search(&t, arena, out->order);
    if (isinf(v)) {
        return HV_OK;
    }
    out->feasible = true;
    out->n = n;
    out->value = heaviest ? -v : v;
    out->bound = out->value;
    if (out->proven) {
        return HV_OK;
    }
    double low = neighbour_bound(&t);
    out->bound = isinf(low) ? HV_UNKNOWN : heaviest ? -low : low;
    out->proven = v <= low + 1e-12 * fabs(low);
    return HV_OK;
}
