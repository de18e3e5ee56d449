/*
 * The event-driven engine against a plain walk from moment to moment, on random graphs with all
 * that it knows at once: several resources per task, priorities, credits, work in pieces, limited
 * memory, lags, orders with and without looking ahead, jitter, and graphs that get stuck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/sim/events/events.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CASES = 10000, TASKS = 14, RES = 4, MEMORIES = 2, POOLS = 2, DEPS = TASKS * TASKS };
enum state { WAITING, READY, RUNNING, DONE };

struct world {
    struct hv_event_graph g;
    struct hv_event_task tasks[TASKS];
    int32_t res_at[TASKS + 1], res[TASKS * RES], dep_at[TASKS + 1], dep[DEPS];
    double lag_s[DEPS], capacity[MEMORIES];
    enum hv_queue_rule rules[RES];
    int32_t credits[POOLS];
    struct hv_event_rules how;
};

static int32_t pick(struct hv_rng *r, int32_t n)
{
    return (int32_t)hv_rng_below(r, (uint64_t)n);
}

/* multiples of 1/4, so that sums are exact */
static double some(struct hv_rng *r, int32_t most)
{
    return pick(r, 4 * most + 1) / 4.0;
}

static void draw_task(struct world *w, struct hv_rng *r, int32_t i, bool plain)
{
    struct hv_event_task *t = &w->tasks[i];
    *t = (struct hv_event_task){.duration_s = some(r, 6),
                                .priority = pick(r, 3),
                                .pool = plain || pick(r, 3) ? -1 : pick(r, POOLS),
                                .memory = plain || pick(r, 2) ? -1 : pick(r, MEMORIES),
                                .may_jump = pick(r, 2)};
    t->piece_s = pick(r, 2) ? 0 : 0.5 * (1 + pick(r, 3));
    t->credits = t->pool >= 0 ? 1 + pick(r, 2) : 0;
    t->start_bytes = t->memory >= 0 ? pick(r, 7) : 0;
    t->end_bytes = t->memory >= 0 ? (pick(r, 4) ? -t->start_bytes : -floor(t->start_bytes / 2)) : 0;
    int32_t n = w->res_at[i];
    for (int32_t k = 0; k < (int32_t)w->g.n_resources; k++) {
        if (pick(r, plain ? 1000 : 4) == 0) {
            w->res[n++] = k;
        }
    }
    if (n == w->res_at[i]) {
        w->res[n++] = pick(r, (int32_t)w->g.n_resources);
    }
    w->res_at[i + 1] = n;
    n = w->dep_at[i];
    for (int32_t k = 0; k < (int32_t)w->g.n_tasks; k++) {
        bool back = k < i ? pick(r, 6) == 0 : k > i && pick(r, 400) == 0; /* a circle, at times */
        if (back) {
            w->lag_s[n] = pick(r, 2) ? 0 : some(r, 3);
            w->dep[n++] = k;
        }
    }
    w->dep_at[i + 1] = n;
}

static void draw(struct world *w, struct hv_rng *r, int round)
{
    *w = (struct world){.g = {.n_tasks = 1 + (size_t)pick(r, TASKS),
                              .n_resources = 1 + (size_t)pick(r, RES),
                              .n_memories = MEMORIES,
                              .n_pools = POOLS}};
    for (size_t k = 0; k < RES; k++) {
        w->rules[k] = pick(r, 3) ? HV_QUEUE_PRIORITY : HV_QUEUE_ORDER;
    }
    for (size_t k = 0; k < POOLS; k++) {
        w->credits[k] = 2 + pick(r, 3);
        w->capacity[k] = pick(r, 3) ? 6 + pick(r, 12) : HUGE_VAL;
    }
    for (int32_t i = 0; i < (int32_t)w->g.n_tasks; i++) {
        draw_task(w, r, i, round % 3 == 0); /* a third without what tangles resources */
    }
    w->how.look_ahead = pick(r, 4);
    w->g.tasks = w->tasks;
    w->g.res_at = w->res_at;
    w->g.res = w->res;
    w->g.dep_at = w->dep_at;
    w->g.dep = w->dep;
    w->g.lag_s = w->lag_s;
    w->g.rules = w->rules;
    w->g.capacity_bytes = w->capacity;
    w->g.pool_credits = w->credits;
}

/* ---- the walk
 * --------------------------------------------------------------------------------------------- */

struct walk {
    const struct world *w;
    double left[TASKS], from[TASKS], until[TASKS], cut[TASKS], start[TASKS], end[TASKS];
    double busy[RES], bytes[MEMORIES], peak[MEMORIES], now;
    enum state state[TASKS];
    bool begun[TASKS];
    int32_t credits[POOLS];
    size_t n_done, n_interrupted;
};

static bool holds(const struct world *w, int32_t i, int32_t r)
{
    for (int32_t k = w->res_at[i]; k < w->res_at[i + 1]; k++) {
        if (w->res[k] == r) {
            return true;
        }
    }
    return false;
}

static bool share(const struct world *w, int32_t i, int32_t j)
{
    for (int32_t k = w->res_at[i]; k < w->res_at[i + 1]; k++) {
        if (holds(w, j, w->res[k])) {
            return true;
        }
    }
    return false;
}

static bool in_an_order(const struct world *w, int32_t i)
{
    for (int32_t k = w->res_at[i]; k < w->res_at[i + 1]; k++) {
        if (w->rules[w->res[k]] == HV_QUEUE_ORDER) {
            return true;
        }
    }
    return false;
}

/* has everything that i waits for ended, and its lag passed? */
static bool is_ready(const struct walk *x, int32_t i)
{
    const struct world *w = x->w;
    for (int32_t k = w->dep_at[i]; k < w->dep_at[i + 1]; k++) {
        if (x->state[w->dep[k]] != DONE || x->end[w->dep[k]] + w->lag_s[k] > x->now) {
            return false;
        }
    }
    return true;
}

/* is it task i's turn on resource r, which has an order? */
static bool has_turn(const struct walk *x, int32_t r, int32_t i)
{
    int32_t seen = 0;
    for (int32_t k = 0; k < (int32_t)x->w->g.n_tasks; k++) {
        if (!holds(x->w, k, r) || x->state[k] == RUNNING || x->state[k] == DONE) {
            continue;
        }
        if (x->state[k] == READY && (seen == 0 || x->w->tasks[k].may_jump)) {
            return k == i;
        }
        if (seen++ >= x->w->how.look_ahead) {
            return false;
        }
    }
    return false;
}

static bool may_start(const struct walk *x, int32_t i)
{
    const struct world *w = x->w;
    const struct hv_event_task *t = &w->tasks[i];
    if (x->state[i] != READY) {
        return false;
    }
    for (int32_t k = 0; k < (int32_t)w->g.n_tasks; k++) {
        if (x->state[k] == RUNNING && share(w, i, k)) {
            return false;
        }
    }
    for (int32_t k = w->res_at[i]; k < w->res_at[i + 1]; k++) {
        if (w->rules[w->res[k]] == HV_QUEUE_ORDER && !has_turn(x, w->res[k], i)) {
            return false;
        }
    }
    if (x->begun[i]) {
        return true;
    }
    bool has_credits = t->pool < 0 || x->credits[t->pool] >= t->credits;
    return has_credits && (t->memory < 0 || t->start_bytes <= 0 ||
                           x->bytes[t->memory] + t->start_bytes <= w->capacity[t->memory]);
}

static void add_bytes(struct walk *x, int32_t memory, double bytes)
{
    if (memory >= 0) {
        x->bytes[memory] += bytes;
        x->peak[memory] = fmax(x->peak[memory], x->bytes[memory]);
        assert_true(x->bytes[memory] >= 0);
    }
}

static void start(struct walk *x, int32_t i)
{
    const struct hv_event_task *t = &x->w->tasks[i];
    if (!x->begun[i]) {
        x->start[i] = x->now;
        add_bytes(x, t->memory, t->start_bytes);
        x->credits[t->pool < 0 ? 0 : t->pool] -= t->pool < 0 ? 0 : t->credits;
    }
    x->begun[i] = true;
    x->state[i] = RUNNING;
    x->from[i] = x->now;
    x->until[i] = x->now + x->left[i];
    x->cut[i] = HUGE_VAL;
}

static void stop(struct walk *x, int32_t i)
{
    for (int32_t k = x->w->res_at[i]; k < x->w->res_at[i + 1]; k++) {
        x->busy[x->w->res[k]] += x->now - x->from[i];
    }
}

/* what is less urgent and keeps i waiting ends its piece */
static void ask_for_room(struct walk *x, int32_t i)
{
    const struct hv_event_task *t = x->w->tasks;
    for (int32_t k = 0; k < (int32_t)x->w->g.n_tasks; k++) {
        if (x->state[k] == RUNNING && share(x->w, i, k) && t[k].priority < t[i].priority &&
            t[k].piece_s > 0 && isinf(x->cut[k]) && !in_an_order(x->w, k)) {
            double at = x->from[k] + ceil((x->now - x->from[k]) / t[k].piece_s) * t[k].piece_s;
            x->cut[k] = at < x->until[k] ? at : HUGE_VAL;
        }
    }
}

/* what ends, is cut or becomes ready at this moment; false = nothing */
static bool happens(struct walk *x)
{
    int32_t n = (int32_t)x->w->g.n_tasks;
    bool fresh[TASKS] = {false}, any = false;
    for (int32_t i = 0; i < n; i++) {
        const struct hv_event_task *t = &x->w->tasks[i];
        if (x->state[i] == RUNNING && x->until[i] <= x->now) {
            stop(x, i);
            x->state[i] = DONE;
            x->end[i] = x->now;
            add_bytes(x, t->memory, t->end_bytes);
            x->credits[t->pool < 0 ? 0 : t->pool] += t->pool < 0 ? 0 : t->credits;
            x->n_done++;
            any = true;
        } else if (x->state[i] == RUNNING && x->cut[i] <= x->now) {
            stop(x, i);
            x->left[i] = x->until[i] - x->now;
            x->state[i] = READY;
            x->n_interrupted++;
            fresh[i] = true;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        if (x->state[i] == WAITING && is_ready(x, i)) {
            x->state[i] = READY;
            fresh[i] = true;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        if (fresh[i]) {
            ask_for_room(x, i); /* at the end of a piece that may be this moment */
            any = true;
        }
    }
    return any;
}

/* all that happens at this moment, then all that can start */
static void live_through(struct walk *x)
{
    int32_t n = (int32_t)x->w->g.n_tasks;
    while (happens(x)) {
    }
    for (int32_t best = 0; best >= 0;) {
        best = -1;
        for (int32_t i = 0; i < n; i++) {
            if (!may_start(x, i)) {
                continue;
            }
            double a = 2.0 * x->w->tasks[i].priority + x->begun[i];
            double b = best < 0 ? -1 : 2.0 * x->w->tasks[best].priority + x->begun[best];
            best = a > b ? i : best;
        }
        if (best >= 0) {
            start(x, best);
        }
    }
}

/* the next moment at which something happens, infinite = none */
static double next_moment(const struct walk *x)
{
    const struct world *w = x->w;
    double next = HUGE_VAL;
    for (int32_t i = 0; i < (int32_t)w->g.n_tasks; i++) {
        if (x->state[i] == RUNNING) {
            next = fmin(next, fmin(x->until[i], x->cut[i]));
        }
        for (int32_t k = w->dep_at[i]; k < w->dep_at[i + 1]; k++) {
            if (x->state[i] == WAITING && x->state[w->dep[k]] == DONE) {
                double at = x->end[w->dep[k]] + w->lag_s[k];
                next = at > x->now ? fmin(next, at) : next;
            }
        }
    }
    return next;
}

static void walk(struct walk *x, const struct world *w, const double *durations_s)
{
    *x = (struct walk){.w = w};
    memcpy(x->left, durations_s, w->g.n_tasks * sizeof *durations_s);
    memcpy(x->credits, w->credits, sizeof x->credits);
    live_through(x);
    for (double at = next_moment(x); isfinite(at); at = next_moment(x)) {
        x->now = at;
        live_through(x);
    }
}

/* ---- comparing
 * -------------------------------------------------------------------------------------------- */

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

static void check_equal(const struct walk *x, const struct hv_event_run *run)
{
    double most = 0, work = 0, busy = 0;
    for (size_t i = 0; i < x->w->g.n_tasks; i++) {
        assert_true(near(run->start_s[i], x->start[i]) && near(run->end_s[i], x->end[i]));
        most = fmax(most, x->end[i]);
        work += x->w->tasks[i].duration_s * (x->w->res_at[i + 1] - x->w->res_at[i]);
    }
    for (size_t k = 0; k < x->w->g.n_resources; k++) {
        assert_true(near(run->busy_s[k], x->busy[k]));
        busy += run->busy_s[k];
    }
    for (size_t k = 0; k < MEMORIES; k++) {
        assert_true(near(run->peak_bytes[k], x->peak[k]) && x->peak[k] <= x->w->capacity[k]);
    }
    assert_true(near(run->makespan_s, most));
    assert_true(x->w->how.jitter > 0 || near(busy, work)); /* no work is lost or done twice */
    assert_int_equal(run->n_interrupted, x->n_interrupted);
}

/* nothing goes on: the message names the first that is left on the first resource with any, and
 * what it waits for when that is a task */
static void check_stuck(const struct walk *x, const struct hv_err *err)
{
    const struct world *w = x->w;
    char want[64];
    for (int32_t r = 0; r < (int32_t)w->g.n_resources; r++) {
        for (int32_t i = 0; i < (int32_t)w->g.n_tasks; i++) {
            if (!holds(w, i, r) || x->state[i] == DONE) {
                continue;
            }
            int n = snprintf(want, sizeof want, "no task can continue: task %d waits for ", i);
            for (int32_t k = w->dep_at[i]; k < w->dep_at[i + 1]; k++) {
                if (x->state[w->dep[k]] != DONE) {
                    snprintf(want + n, sizeof want - (size_t)n, "task %d", w->dep[k]);
                    break;
                }
            }
            if (!strstr(err->text, want)) {
                fail_msg("'%s' does not say '%s'", err->text, want);
            }
            return;
        }
    }
    fail_msg("nothing is left, and yet: %s", err->text);
}

static void as_a_plain_walk(void **state)
{
    (void)state;
    struct hv_rng r;
    size_t n_stuck = 0, n_interrupted = 0;
    hv_rng_seed(&r, 17);
    for (int round = 0; round < CASES; round++) {
        struct world w;
        struct walk x;
        struct hv_arena a = {0};
        struct hv_event_run run;
        struct hv_err err;
        double durations_s[TASKS];
        draw(&w, &r, round);
        hv_events_run_new(&a, &w.g, &run);
        for (size_t i = 0; i < w.g.n_tasks; i++) {
            durations_s[i] = w.tasks[i].duration_s;
        }
        enum hv_status st = hv_events_run(&w.g, &w.how, &run, &err);
        walk(&x, &w, durations_s);
        if (x.n_done < w.g.n_tasks) {
            assert_int_equal(st, HV_ENO);
            check_stuck(&x, &err);
            n_stuck++;
        } else {
            assert_int_equal(st, HV_OK);
            check_equal(&x, &run);
            n_interrupted += run.n_interrupted;
        }
        hv_arena_free(&a);
    }
    assert_true(n_stuck > CASES / 50 && n_stuck < CASES / 2 && n_interrupted > CASES / 100);
}

/* with jitter and without pieces, what a task took tells its factor: with those durations the walk
 * must find the same */
static void jitter_is_durations(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 18);
    for (int round = 0; round < CASES / 5; round++) {
        struct world w;
        struct walk x;
        struct hv_arena a = {0};
        struct hv_event_run run;
        double durations_s[TASKS];
        draw(&w, &r, round);
        for (size_t i = 0; i < w.g.n_tasks; i++) {
            w.tasks[i].piece_s = 0;
        }
        w.how.jitter = 0.3;
        w.how.seed = (uint64_t)round;
        hv_events_run_new(&a, &w.g, &run);
        if (hv_events_run(&w.g, &w.how, &run, NULL) == HV_OK) {
            for (size_t i = 0; i < w.g.n_tasks; i++) {
                durations_s[i] = run.end_s[i] - run.start_s[i];
            }
            walk(&x, &w, durations_s);
            assert_int_equal(x.n_done, w.g.n_tasks);
            check_equal(&x, &run);
        }
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_plain_walk),
                                       cmocka_unit_test(jitter_is_durations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
