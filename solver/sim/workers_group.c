/*
 * The controller of Partial Reduce: who averages with whom (Miao et al., SIGMOD'21, section 4), and
 * how fast groups mix (section 5). When things happen is in workers.c.
 */
#include "solver/sim/workers_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* sweeps of Jacobi's method at most; it converges quadratically */
enum { SWEEPS = 60 };

void hv__groups_init(struct hv_arena *a, struct hv__groups *g, const struct hv_workers *w)
{
    *g = (struct hv__groups){.n = w->n, .group = w->group, .connect = w->connect && w->group > 1};
    if (!g->connect) {
        return;
    }
    g->window = (w->n - 1 + w->group - 2) / (w->group - 1);
    g->history = hv_arena_new(a, size_t, g->window * w->group + 1);
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
        for (size_t m = 1; m < g->group; m++) {
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

/* The oldest, then the oldest of each other component: how many came to the front. */
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

bool hv__groups_next(struct hv__groups *g, size_t *queue, size_t n_queue)
{
    if (n_queue < g->group) {
        return false;
    }
    bool guarded = g->connect && g->n_made >= g->window && !connected(g);
    if (guarded && pick_apart(g, queue, n_queue) < 2) {
        return false; /* nobody of another component is ready */
    }
    if (g->connect) {
        memcpy(&g->history[g->n_made % g->window * g->group], queue, g->group * sizeof *queue);
    }
    g->n_made++;
    return true;
}

/* Turns rows and columns p and q so that the entry between them becomes 0. */
static void rotate(double *m, size_t n, size_t p, size_t q)
{
    double off = m[p * n + q];
    if (off == 0) {
        return;
    }
    double theta = (m[q * n + q] - m[p * n + p]) / (2 * off);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t i = 0; i < n; i++) {
        double x = m[i * n + p], y = m[i * n + q];
        m[i * n + p] = c * x - s * y;
        m[i * n + q] = s * x + c * y;
    }
    for (size_t i = 0; i < n; i++) {
        double x = m[p * n + i], y = m[q * n + i];
        m[p * n + i] = c * x - s * y;
        m[q * n + i] = s * x + c * y;
    }
}

double hv_workers_mixing_rho(const double *mixing, size_t n)
{
    double *m = hv_xcalloc(n * n + 1, sizeof *m), rho = 0;
    for (size_t i = 0; i < n * n; i++) { /* without the mean of all, whose eigenvalue is 1 */
        m[i] = (mixing[i] + mixing[i % n * n + i / n]) / 2 - 1 / (double)n;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0;
        for (size_t p = 0; p + 1 < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                off = fmax(off, fabs(m[p * n + q]));
                rotate(m, n, p, q);
            }
        }
        if (off < 1e-14) {
            break;
        }
    }
    for (size_t i = 0; i < n; i++) {
        rho = fmax(rho, m[i * n + i]);
    }
    free(m);
    return rho;
}
