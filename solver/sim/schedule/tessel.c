/*
 * Tessel's repetend search, exact for small numbers of blocks. Schedules of a chain of stages take
 * their order from it (sched_tessel.c); blocks on several devices are played by
 * solver/sim/events/events.c.
 */
#include "solver/sim/schedule/tessel.h"

#include "solver/sim/cycle.h"
#include "solver/sim/events/events.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* branches after which the search gives up */
#define MOST_BRANCHES 200000

struct search {
    const struct hv_tessel *t;
    struct hv_arena a;
    int32_t *mid;
    struct hv_cycle_edge *edges; /* deps first, then two per decided pair */
    size_t n_edges;
    int32_t *pair; /* blocks that share a device: two entries each */
    size_t n_pairs;
    double least_s; /* work of the busiest device */
    double best_s;
    int32_t *best_mid;
    double *best_start;
    double *start; /* [n_blocks] */
    int64_t branches;
    bool done;
};

/* ---- one choice of mids
 * ------------------------------------------------------------------------------------------------
 */

/* earliest starts that keep all edges at this period; there is no circle longer than it */
static void starts_at(const struct search *s, double period_s, double *start)
{
    bool changed = true;
    memset(start, 0, (size_t)s->t->n_blocks * sizeof *start);
    for (int32_t round = 0; round <= s->t->n_blocks && changed; round++) {
        changed = false;
        for (size_t e = 0; e < s->n_edges; e++) {
            const struct hv_cycle_edge *x = &s->edges[e];
            double at = start[x->from] + x->weight_s - period_s * x->tokens;
            if (at > start[x->to] + 1e-9 * (1 + period_s)) {
                start[x->to] = at;
                changed = true;
            }
        }
    }
}

/* true where a device exceeds the memory limit at some moment of the repetend, in the order of
 * these starts */
static bool fits(const struct search *s, const double *start, double period_s)
{
    const struct hv_tessel *t = s->t;
    for (int32_t d = 0; d < t->n_devices; d++) {
        double entry = 0, base = (double)INFINITY;
        double limit = t->limits ? fmin(t->limits[d], t->memory_limit) : t->memory_limit;
        for (int32_t k = 0; k < t->n_blocks; k++) {
            if (t->blocks[k].devices >> d & 1) {
                entry += t->blocks[k].memory * s->mid[k];
                base = fmin(base, start[k]);
            }
        }
        double now = entry;
        for (int32_t done = -1, n = 0; n < t->n_blocks; n++) { /* by start, then by index */
            int32_t next = -1;
            for (int32_t k = 0; k < t->n_blocks; k++) {
                bool later =
                    done < 0 || start[k] > start[done] || (!(start[k] < start[done]) && k > done);
                if ((t->blocks[k].devices >> d & 1) && later &&
                    (next < 0 || start[k] < start[next])) {
                    next = k;
                }
            }
            if (next < 0) {
                break;
            }
            now += t->blocks[next].memory;
            if (now > limit + 1e-9 || start[next] > base + period_s) {
                return false;
            }
            done = next;
        }
    }
    return true;
}

static void add_edge(struct search *s, int32_t from, int32_t to, int32_t tokens)
{
    s->edges[s->n_edges++] = (struct hv_cycle_edge){from, to, tokens, s->t->blocks[from].span_s};
}

/* decides the pairs from `at` on; edges hold what has been decided */
static void decide(struct search *s, size_t at)
{
    double period = 0;
    if (s->done || ++s->branches > MOST_BRANCHES) {
        s->done = true;
        return;
    }
    struct hv_arena_mark mark = hv_arena_mark(&s->a);
    struct hv_err why;
    enum hv_status st =
        hv_cycle_ratio(&s->a, s->edges, s->n_edges, s->t->n_blocks, &period, NULL, NULL, &why);
    hv_arena_rewind(&s->a, mark);
    bool stuck = st != HV_OK && s->n_pairs > 0 && at > 0;
    period = fmax(period, s->least_s);
    if (stuck || period >= s->best_s * (1 - 1e-9)) {
        return;
    }
    if (at == s->n_pairs) {
        starts_at(s, period, s->start);
        if (fits(s, s->start, period)) {
            s->best_s = period;
            memcpy(s->best_mid, s->mid, (size_t)s->t->n_blocks * sizeof *s->mid);
            memcpy(s->best_start, s->start, (size_t)s->t->n_blocks * sizeof *s->start);
            s->done = period <= s->least_s * (1 + 1e-9);
        }
        return;
    }
    int32_t x = s->pair[2 * at], y = s->pair[2 * at + 1];
    size_t n = s->n_edges;
    for (int turn = 0; turn < 2; turn++) {
        add_edge(s, x, y, turn);
        add_edge(s, y, x, 1 - turn);
        decide(s, at + 1);
        s->n_edges = n;
    }
}

static void try_mids(struct search *s)
{
    const struct hv_tessel *t = s->t;
    s->n_edges = 0;
    for (int32_t k = 0; k < t->n_blocks; k++) {
        for (int32_t e = t->dep_at[k]; e < t->dep_at[k + 1]; e++) {
            add_edge(s, t->dep[e], k, s->mid[t->dep[e]] - s->mid[k]);
        }
    }
    decide(s, 0);
}

/* ---- all choices of mids
 * -----------------------------------------------------------------------------------------------
 */

/* chooses the mids of block k and all after it: none above those of its dependencies, and every
 * number from 0 to n − 1 occurs */
static void choose(struct search *s, int32_t k, int32_t n)
{
    const struct hv_tessel *t = s->t;
    if (s->done) {
        return;
    }
    if (k == t->n_blocks) {
        uint64_t seen = 0;
        for (int32_t i = 0; i < k; i++) {
            seen |= (uint64_t)1 << s->mid[i];
        }
        if (seen == ((uint64_t)1 << n) - 1) {
            try_mids(s);
        }
        return;
    }
    int32_t most = n - 1;
    for (int32_t e = t->dep_at[k]; e < t->dep_at[k + 1]; e++) {
        int32_t its = s->mid[t->dep[e]];
        most = its < most ? its : most;
    }
    bool first = t->dep_at[k] == t->dep_at[k + 1]; /* no dependencies: the newest micro-batch */
    for (int32_t x = most; x >= (first ? most : 0); x--) {
        s->mid[k] = x;
        choose(s, k + 1, n);
    }
}

static enum hv_status check(const struct hv_tessel *t, struct hv_err *err)
{
    bool ok = t->n_blocks > 0 && t->n_devices > 0 && t->n_devices <= 64 &&
              t->most_micro_batches > 0 && t->most_micro_batches < 64;
    for (int32_t k = 0; k < t->n_blocks && ok; k++) {
        const struct hv_tessel_block *b = &t->blocks[k];
        ok = b->span_s >= 0 && isfinite(b->span_s) && b->devices != 0 &&
             (t->n_devices == 64 || b->devices >> t->n_devices == 0);
        for (int32_t e = t->dep_at[k]; e < t->dep_at[k + 1] && ok; e++) {
            ok = t->dep[e] >= 0 && t->dep[e] < k;
        }
    }
    return ok ? HV_OK
              : hv_err_set(err, HV_EUSAGE,
                           "tessel: blocks need a span and devices among 1 to 64 and wait for "
                           "earlier ones; repetends hold 1 to 63 micro-batches");
}

static void set_up(struct search *s)
{
    const struct hv_tessel *t = s->t;
    size_t n = (size_t)t->n_blocks;
    s->mid = hv_arena_new(&s->a, int32_t, n);
    s->start = hv_arena_new(&s->a, double, n);
    s->pair = hv_arena_new(&s->a, int32_t, n * n);
    for (int32_t x = 0; x < t->n_blocks; x++) {
        for (int32_t y = x + 1; y < t->n_blocks; y++) {
            if (t->blocks[x].devices & t->blocks[y].devices) {
                s->pair[2 * s->n_pairs] = x;
                s->pair[2 * s->n_pairs++ + 1] = y;
            }
        }
    }
    s->edges = hv_arena_new(&s->a, struct hv_cycle_edge, (size_t)t->dep_at[n] + 2 * s->n_pairs + 1);
    for (int32_t d = 0; d < t->n_devices; d++) {
        double work = 0;
        for (size_t k = 0; k < n; k++) {
            work += t->blocks[k].devices >> d & 1 ? t->blocks[k].span_s : 0;
        }
        s->least_s = fmax(s->least_s, work);
    }
}

enum hv_status hv_tessel_search(struct hv_arena *a, const struct hv_tessel *t,
                                struct hv_repetend *out, struct hv_err *err)
{
    enum hv_status st = check(t, err);
    if (st != HV_OK) {
        return st;
    }
    struct search s = {.t = t, .best_s = (double)INFINITY};
    s.best_mid = hv_arena_new(a, int32_t, (size_t)t->n_blocks);
    s.best_start = hv_arena_new(a, double, (size_t)t->n_blocks);
    set_up(&s);
    for (int32_t n = 1; n <= t->most_micro_batches && n <= t->n_blocks && !s.done; n++) {
        choose(&s, 0, n);
    }
    *out = (struct hv_repetend){.period_s = s.best_s,
                                .mid = s.best_mid,
                                .start_s = s.best_start,
                                .zero_bubble = s.best_s <= s.least_s * (1 + 1e-9)};
    for (int32_t k = 0; k < t->n_blocks; k++) {
        out->micro_batches =
            s.best_mid[k] + 1 > out->micro_batches ? s.best_mid[k] + 1 : out->micro_batches;
    }
    out->proven = out->zero_bubble || s.branches <= MOST_BRANCHES;
    if (isinf(s.best_s) && s.branches > MOST_BRANCHES) {
        st = hv_err_set(err, HV_ELIMIT,
                        "tessel: no order found in %d branches for %d blocks; use fewer blocks or "
                        "fewer micro-batches in a repetend",
                        MOST_BRANCHES, t->n_blocks);
    } else if (isinf(s.best_s)) {
        st = hv_err_set(err, HV_ENO, "tessel: no repetend of up to %d micro-batches fits into %g",
                        t->most_micro_batches, t->memory_limit);
    }
    hv_arena_free(&s.a);
    return st;
}

/* ---- unrolling ---- */

static int by_start(const void *x, const void *y)
{
    const struct hv_tessel_run *a = x, *b = y;
    if (a->start_s < b->start_s || a->start_s > b->start_s) {
        return a->start_s < b->start_s ? -1 : 1;
    }
    return a->mb != b->mb ? (a->mb > b->mb) - (a->mb < b->mb)
                          : (a->block > b->block) - (a->block < b->block);
}

/* The runs as tasks in their order, on all devices of their blocks; in the arena. */
static struct hv_event_graph graph_of(const struct hv_tessel *t, int32_t m,
                                      const struct hv_tessel_run *runs, struct hv_arena *a)
{
    size_t n = (size_t)t->n_blocks * (size_t)m, n_res = 0, n_dep = 0;
    struct hv_event_task *tasks = hv_arena_new(a, struct hv_event_task, n);
    int32_t *res_at = hv_arena_new(a, int32_t, n + 1), *dep_at = hv_arena_new(a, int32_t, n + 1);
    int32_t *res = hv_arena_new(a, int32_t, n * (size_t)t->n_devices);
    int32_t *dep = hv_arena_new(a, int32_t, (size_t)t->dep_at[t->n_blocks] * (size_t)m + 1);
    int32_t *task_of = hv_arena_new(a, int32_t, n);
    enum hv_queue_rule *rules = hv_arena_new(a, enum hv_queue_rule, (size_t)t->n_devices);
    for (size_t i = 0; i < n; i++) {
        task_of[(size_t)runs[i].block * (size_t)m + (size_t)runs[i].mb] = (int32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        int32_t k = runs[i].block;
        tasks[i] =
            (struct hv_event_task){.duration_s = t->blocks[k].span_s, .pool = -1, .memory = -1};
        for (int32_t d = 0; d < t->n_devices; d++) {
            if (t->blocks[k].devices >> d & 1) {
                res[n_res++] = d;
            }
            rules[d] = HV_QUEUE_ORDER;
        }
        for (int32_t e = t->dep_at[k]; e < t->dep_at[k + 1]; e++) {
            dep[n_dep++] = task_of[(size_t)t->dep[e] * (size_t)m + (size_t)runs[i].mb];
        }
        res_at[i + 1] = (int32_t)n_res;
        dep_at[i + 1] = (int32_t)n_dep;
    }
    return (struct hv_event_graph){.n_tasks = n,
                                   .n_resources = (size_t)t->n_devices,
                                   .tasks = tasks,
                                   .res_at = res_at,
                                   .res = res,
                                   .dep_at = dep_at,
                                   .dep = dep,
                                   .rules = rules};
}

/* times of the runs, each device in the order of its tasks */
static enum hv_status play(const struct hv_tessel *t, int32_t m, struct hv_tessel_run *runs,
                           double *makespan_s, struct hv_err *err)
{
    struct hv_arena a = {0};
    struct hv_event_graph g = graph_of(t, m, runs, &a);
    struct hv_event_rules how = {0};
    struct hv_event_run run;
    hv_events_run_new(&a, &g, &run);
    enum hv_status st = hv_events_run(&g, &how, &run, err);
    for (size_t i = 0; i < g.n_tasks && st == HV_OK; i++) {
        runs[i].start_s = run.start_s[i];
    }
    *makespan_s = run.makespan_s;
    hv_arena_free(&a);
    return st;
}

enum hv_status hv_tessel_unroll(const struct hv_tessel *t, const struct hv_repetend *r, int32_t m,
                                struct hv_tessel_run *out, double *makespan_s, struct hv_err *err)
{
    size_t n = 0;
    for (int32_t k = 0; k < t->n_blocks; k++) {
        for (int32_t i = 0; i < m; i++) {
            out[n++] = (struct hv_tessel_run){k, i, r->start_s[k] + r->period_s * (i - r->mid[k])};
        }
    }
    qsort(out, n, sizeof *out, by_start);
    return play(t, m, out, makespan_s, err);
}
