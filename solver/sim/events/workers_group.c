/*
 * The controller of Partial Reduce: the members of groups (Miao et al., SIGMOD'21, section 4), and
 * the rate of mixing (section 5). The times are in workers.c.
 */
#include "solver/sim/events/workers_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* bisection steps on [0, 2], until the ends are adjacent numbers */
enum { HALVINGS = 56 };

void hv__groups_init(struct hv_arena *a, struct hv__groups *g, const struct hv_workers *w)
{
    *g = (struct hv__groups){.n = w->n, .group = w->group, .connect = w->connect && w->group > 1};
    if (!g->connect) {
        return;
    }
    g->window = (w->n - 1 + w->group - 2) / (w->group - 1);
    g->history = hv_arena_new(a, size_t, g->window * w->group + 1);
    g->sizes = hv_arena_new(a, size_t, g->window + 1);
    g->component = hv_arena_new(a, size_t, w->n);
    g->seen = hv_arena_new(a, bool, w->n);
}

/* Joins the workers of the last groups; true where they are all one component. */
static bool connected(struct hv__groups *g)
{
    for (size_t i = 0; i < g->n; i++) {
        g->component[i] = i;
    }
    for (size_t k = 0; k < g->window; k++) {
        const size_t *members = &g->history[k * g->group];
        for (size_t m = 1; m < g->sizes[k]; m++) {
            size_t from = g->component[members[m]], to = g->component[members[0]];
            for (size_t i = 0; i < g->n; i++) {
                g->component[i] = g->component[i] == from ? to : g->component[i];
            }
        }
    }
    bool one = true;
    for (size_t i = 1; i < g->n; i++) {
        one = one && g->component[i] == g->component[0];
    }
    return one;
}

/* Moves the entry at `from` to place `to` ≤ from; those between move back by one. */
static void move_up(size_t *queue, size_t from, size_t to)
{
    size_t x = queue[from];
    memmove(&queue[to + 1], &queue[to], (from - to) * sizeof *queue);
    queue[to] = x;
}

/* Moves the oldest entry, then the oldest of each other component, to the front; returns how many.
 */
static size_t pick_apart(struct hv__groups *g, size_t *queue, size_t n_queue)
{
    size_t n = 0;
    memset(g->seen, 0, g->n * sizeof *g->seen);
    for (size_t i = 0; i < n_queue && n < g->group; i++) {
        bool *seen = &g->seen[g->component[queue[i]]];
        if (!*seen) {
            *seen = true;
            move_up(queue, i, n++);
        }
    }
    return n;
}

size_t hv__groups_next(struct hv__groups *g, size_t *queue, size_t n_queue, bool late)
{
    if (n_queue < g->group && !(late && n_queue > 0)) {
        return 0;
    }
    size_t n = n_queue < g->group ? n_queue : g->group;
    bool guarded = g->connect && g->n_made >= g->window && !connected(g);
    if (guarded && pick_apart(g, queue, n_queue) < 2 && !late) {
        return 0; /* nobody of another component is ready */
    }
    if (g->connect) {
        size_t at = g->n_made % g->window;
        memcpy(&g->history[at * g->group], queue, n * sizeof *queue);
        g->sizes[at] = n;
    }
    g->n_made++;
    return n;
}

/* ---- eigenvalues ---- */

/* Row k of the part of m below it, as a unit vector v that mirrors it onto its first entry; false:
 * it lies there already. *beta = that entry. */
static bool mirror_of(const double *m, size_t n, size_t k, double *v, double *beta)
{
    double scale = 0, sum = 0;
    for (size_t i = k + 1; i < n; i++) {
        v[i] = m[k * n + i];
        scale = fmax(scale, i > k + 1 ? fabs(v[i]) : 0);
        sum += v[i] * v[i];
    }
    *beta = v[k + 1];
    if (!(scale > 0)) {
        return false;
    }
    double length = sqrt(sum), norm = 0;
    *beta = v[k + 1] > 0 ? -length : length;
    v[k + 1] -= *beta;
    for (size_t i = k + 1; i < n; i++) {
        norm += v[i] * v[i];
    }
    for (size_t i = k + 1; i < n; i++) {
        v[i] /= sqrt(norm);
    }
    return true;
}

/* m − 2 v (p − (v·p) v)ᵀ − 2 (p − (v·p) v) vᵀ with p = m v, behind row and column k */
static void mirror(double *m, size_t n, size_t k, const double *v, double *p)
{
    double vp = 0;
    for (size_t i = k + 1; i < n; i++) {
        p[i] = 0;
        for (size_t j = k + 1; j < n; j++) {
            p[i] += m[i * n + j] * v[j];
        }
        vp += v[i] * p[i];
    }
    for (size_t i = k + 1; i < n; i++) {
        p[i] -= vp * v[i];
    }
    for (size_t i = k + 1; i < n; i++) {
        for (size_t j = k + 1; j < n; j++) {
            m[i * n + j] -= 2 * (v[i] * p[j] + p[i] * v[j]);
        }
    }
}

/* Householder: m becomes tridiagonal with the same eigenvalues, diagonal d, beside it e (e[0] = 0).
 */
static void tridiagonal(double *m, size_t n, double *d, double *e)
{
    double *v = hv_xcalloc(2 * n + 2, sizeof *v), *p = v + n + 1;
    for (size_t k = 0; k < n; k++) {
        d[k] = m[k * n + k];
        if (k + 1 < n && mirror_of(m, n, k, v, &e[k + 1])) {
            mirror(m, n, k, v, p);
        }
    }
    free(v);
}

/* Number of eigenvalues above x (Sturm). */
static size_t n_above(const double *d, const double *e, size_t n, double x)
{
    size_t above = 0;
    double q = 1;
    for (size_t i = 0; i < n; i++) {
        q = d[i] - x - (i > 0 ? e[i] * e[i] / q : 0);
        q = fabs(q) < 1e-300 ? -1e-300 : q;
        above += q > 0;
    }
    return above;
}

double hv_workers_mixing_rho(const double *mixing, size_t n)
{
    double *m = hv_xcalloc(n * n + 1, sizeof *m), *d = hv_xcalloc(2 * n + 2, sizeof *d);
    double *e = d + n + 1, lo = 0, hi = 2;
    for (size_t i = 0; i < n * n; i++) { /* without the mean of all, whose eigenvalue is 1 */
        m[i] = (mixing[i] + mixing[i % n * n + i / n]) / 2 - 1 / (double)n;
    }
    tridiagonal(m, n, d, e);
    for (int step = 0; step < HALVINGS; step++) {
        double mid = (lo + hi) / 2;
        *(n_above(d, e, n, mid) > 0 ? &lo : &hi) = mid;
    }
    free(d);
    free(m);
    return hi < 1e-14 ? 0 : hi;
}
