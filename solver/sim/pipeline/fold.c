/*
 * Folding a long run. Two orders of one schedule are laid out, for m and for m + q·step
 * micro-batches, and compared: on every rank the longer one must be the shorter one with q equal
 * stretches inserted ("windows", each for `step` micro-batches more) between its head and its tail.
 * In the timed longer one, all windows must lie behind each other at one distance P.
 *
 * Then K windows more change nothing but that the tail lies K·P later. Proof: starts are the only
 * solution of "latest of what an op waits for". Keep the head, lay windows at distance P, move the
 * tail by K·P, and every op still starts when the latest of what it waits for allows:
 *   - in the head, because nothing there waits for the tail (checked);
 *   - in the tail, because nothing there waits for the head (checked), and windows and tail have
 *     moved alike as seen from the end;
 *   - in a window, because what it waits for lies a fixed number of windows away; where all of it
 *     lies in windows the equation is one of those that held before, moved by whole distances. This
 *     holds for an op's waits together if they spread over less than q windows (checked), as then
 *     none reaches into head and tail at once.
 * Generators place further windows by the same rule as those compared; tests compare the result
 * with the full run for every schedule. Estimates without proof are in steady.c.
 */
#include "solver/sim/pipeline/fold.h"
#include "solver/base/whole.h"

#include "solver/sim/pipeline/pipeline_int.h"
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>

/* ops of the longest order that is laid out: some milliseconds */
#define FOLD_OPS_MAX ((int64_t)1 << 18)
/* distances that differ by less than this share are equal */
#define FOLD_REL 1e-9
/* micro-batches after which schedules may group; options beyond do not name groups */
enum { WINDOWS = 6, GROUP_MAX = 4096 };

/* the longer order and where its windows lie */
struct folding {
    const struct hv_pipe *g;
    const struct hv_pipe_cost *c;
    const struct hv_pipe_run *run;
    int32_t step;
    int32_t *at, *len; /* per rank: first node of the first window, nodes of each */
    double period_s;
};

/* number of micro-batches after which every grouping starts again */
static int64_t group_of(const struct hv_schedule_input *in)
{
    int64_t group = in->ranks;
    for (size_t i = 0; i < in->row->n_options; i++) {
        int64_t x = in->options[i];
        bool counts = in->row->options[i].type == HV_SCHEDULE_INT && x > 1 && x <= GROUP_MAX;
        group = counts ? hv_lcm(group, x) : group;
        group = group > FOLD_OPS_MAX ? in->ranks : group;
    }
    return group;
}

static int64_t least(const struct hv_schedule_input *in, int64_t step, int64_t m)
{
    int64_t from = 6 * (int64_t)in->ranks * in->chunks;
    return m > from ? from + (m - from) % step : m;
}

int64_t hv_fold_least(const struct hv_schedule_input *in, int64_t micro_batches)
{
    return least(in, group_of(in), micro_batches);
}

/* ---- windows
 * ---------------------------------------------------------------------------------------------- */

/* finds where the longer order of a rank differs from the shorter one; true where the difference is
 * a number of windows */
static bool find_windows(struct folding *f, const struct hv_pipe *small, int32_t r)
{
    const struct hv_pipe *g = f->g;
    int32_t a = small->rank_node_at[r], n_a = small->rank_node_at[r + 1] - a;
    int32_t b = g->rank_node_at[r], n_b = g->rank_node_at[r + 1] - b, same = 0;
    while (same < n_a && hv__same_node(small, a + same, g, b + same, 0)) {
        same++;
    }
    int32_t len = (n_b - n_a) / WINDOWS, tail = same + WINDOWS * len;
    bool ok = len > 0 && n_b - n_a == WINDOWS * len;
    for (int32_t i = same + len; ok && i < tail; i++) {
        ok = hv__same_node(g, b + i - len, g, b + i, f->step);
    }
    for (int32_t i = tail; ok && i < n_b; i++) {
        ok = hv__same_node(small, a + i - tail + same, g, b + i, WINDOWS * f->step);
    }
    f->at[r] = b + same;
    f->len[r] = len;
    return ok;
}

static void count_kinds(const struct folding *f, int32_t from, int32_t to, size_t *n)
{
    size_t end = hv_pipe_first_op(f->g, to);
    for (size_t i = hv_pipe_first_op(f->g, from); i < end; i++) {
        n[f->g->s.ops[i].kind]++;
    }
}

/* true where a window holds as many backwards as forwards, and one recompute for each of them
 * unless the rank recomputes nothing */
static bool is_balanced(const struct folding *f, int32_t r)
{
    size_t n[HV_OP_KIND_N] = {0}, whole[HV_OP_KIND_N] = {0};
    count_kinds(f, f->at[r], f->at[r] + f->len[r], n);
    count_kinds(f, f->g->rank_node_at[r], f->g->rank_node_at[r + 1], whole);
    return n[HV_OP_F] > 0 && n[HV_OP_F] == n[HV_OP_B] + n[HV_OP_BW] && n[HV_OP_W] == n[HV_OP_B] &&
           (whole[HV_OP_R] == 0 || n[HV_OP_R] == n[HV_OP_F]);
}

/* true where the windows follow each other at one distance */
static bool is_steady(struct folding *f, int32_t r)
{
    const double *start = f->run->node_start_s;
    for (int32_t i = f->at[r] + f->len[r]; i < f->at[r] + WINDOWS * f->len[r]; i++) {
        double apart = start[i] - start[i - f->len[r]];
        f->period_s = f->period_s < 0 ? apart : f->period_s;
        if (!(fabs(apart - f->period_s) <= FOLD_REL * f->period_s)) {
            return false;
        }
    }
    return true;
}

/* the window that a node lies in; -1 = head, WINDOWS = tail */
static int32_t window_of(const struct folding *f, int32_t r, int32_t n)
{
    if (n < f->at[r]) {
        return -1;
    }
    int32_t j = (n - f->at[r]) / f->len[r];
    return j < WINDOWS ? j : WINDOWS;
}

static int32_t rank_of(const struct hv_pipe *g, int32_t n)
{
    return hv_schedule_rank_of(&g->s, hv_pipe_first_op(g, n));
}

/* number of windows by which the k-th dependency of node i of a window lies before this window;
 * false = the dependency is outside of all windows laid out */
static bool reach_of(const struct folding *f, int32_t r, int32_t i, int32_t k, int32_t *out)
{
    for (int32_t j = WINDOWS - 1; j >= 0; j -= WINDOWS - 1) {
        int32_t other = hv_pipe_edge_of(f->g, f->at[r] + j * f->len[r] + i, k).node;
        int32_t its = window_of(f, rank_of(f->g, other), other);
        if (its >= 0 && its < WINDOWS) {
            *out = j - its;
            return true;
        }
    }
    return false;
}

/* true where the dependencies of every op of a window span less than WINDOWS windows */
static bool windows_are_closed(const struct folding *f, int32_t r)
{
    for (int32_t i = 0; i < f->len[r]; i++) {
        int32_t first = f->at[r] + i, lo = i == 0, hi = lo; /* the op before it on the rank */
        int32_t n_edges = hv_pipe_n_edges(f->g, first);
        for (int32_t j = 1; j < WINDOWS; j++) {
            if (hv_pipe_n_edges(f->g, first + j * f->len[r]) != n_edges) {
                return false;
            }
        }
        for (int32_t k = 0; k < n_edges; k++) {
            int32_t reach = 0;
            if (!reach_of(f, r, i, k, &reach)) {
                return false;
            }
            lo = reach < lo ? reach : lo;
            hi = reach > hi ? reach : hi;
        }
        if (hi - lo >= WINDOWS) {
            return false;
        }
    }
    return true;
}

/* true where nothing in the head waits for the tail, and nothing in the tail for the head */
static bool ends_are_apart(const struct folding *f, int32_t r)
{
    for (int32_t n = f->g->rank_node_at[r]; n < f->g->rank_node_at[r + 1]; n++) {
        int32_t own = window_of(f, r, n);
        for (int32_t k = 0; (own < 0 || own == WINDOWS) && k < hv_pipe_n_edges(f->g, n); k++) {
            int32_t other = hv_pipe_edge_of(f->g, n, k).node;
            if (window_of(f, rank_of(f->g, other), other) == (own < 0 ? WINDOWS : -1)) {
                return false;
            }
        }
    }
    return true;
}

static const char not_repeating[] = "the middle of its order does not repeat";

/* the condition that does not hold, as text; NULL = all conditions hold */
static const char *find_fault(struct folding *f, const struct hv_pipe *small)
{
    f->period_s = -1;
    for (int32_t r = 0; r < f->g->s.n_ranks; r++) {
        if (!find_windows(f, small, r) || !is_balanced(f, r)) {
            return not_repeating;
        }
    }
    for (int32_t r = 0; r < f->g->s.n_ranks; r++) {
        if (!is_steady(f, r)) {
            return "its times have not settled";
        }
    }
    for (int32_t r = 0; r < f->g->s.n_ranks; r++) {
        if (!windows_are_closed(f, r) || !ends_are_apart(f, r)) {
            return "its operations wait for others too far away";
        }
    }
    return NULL;
}

/* ---- the whole
 * -------------------------------------------------------------------------------------------- */

/* inserts `times` windows in the middle of the existing ones */
static void stretch(const struct folding *f, double times, struct hv_fold *out)
{
    struct hv_pipe_run *run = &out->run;
    double by_s = times * f->period_s;
    run->longest_span_s = 0;
    for (int32_t r = 0; r < f->g->s.n_ranks; r++) {
        struct hv_pipe_rank *k = &out->idle[r];
        double busy_s = 0, comm_s = 0;
        for (int32_t n = f->at[r] + f->len[r]; n < f->at[r] + 2 * f->len[r]; n++) {
            double gap = run->node_start_s[n] - run->node_end_s[n - 1];
            busy_s += run->node_end_s[n] - run->node_start_s[n];
            comm_s += gap > 0 ? fmin(gap, hv_pipe_waited_s(f->g, f->c, run, n)) : 0;
        }
        k->busy_s += times * busy_s;
        k->comm_s += times * comm_s;
        k->steady_s += times * (f->period_s - busy_s - comm_s);
        k->last_s += by_s;
        run->busy_s += times * busy_s;
        run->longest_span_s = fmax(run->longest_span_s, k->last_s - k->first_s);
    }
    for (int32_t r = 0; r < f->g->s.n_ranks; r++) {
        int32_t later = f->at[r] + WINDOWS / 2 * f->len[r]; /* the last windows are the last */
        for (int32_t n = later; n < f->g->rank_node_at[r + 1]; n++) {
            run->node_start_s[n] += by_s;
            run->node_end_s[n] += by_s;
        }
    }
    double p = f->g->s.n_ranks;
    run->makespan_s += by_s;
    run->bubble_frac = run->makespan_s > 0 ? 1 - run->busy_s / (p * run->makespan_s) : 0;
    run->span_bubble_frac =
        run->longest_span_s > 0 ? 1 - run->busy_s / (p * run->longest_span_s) : 0;
}

static enum hv_status lay_out(struct hv_arena *a, struct hv_schedule_input in, int64_t m,
                              struct hv_schedule *s, struct hv_pipe *g, struct hv_err *err)
{
    in.micro_batches = (int32_t)m;
    enum hv_status st = hv_schedule_make(a, &in, s, err);
    return st == HV_OK ? hv_pipe_compile(a, s, g, err) : st;
}

/* tries one size; *why = the condition that does not hold, NULL when the fold succeeds */
static enum hv_status try_fold(struct hv_arena *a, const struct hv_schedule_input *in,
                               struct folding *f, int64_t m0, int64_t m, struct hv_fold *out,
                               const char **why, struct hv_err *err)
{
    struct hv_arena scratch = {0};
    struct hv_arena_mark mark = hv_arena_mark(a);
    struct hv_schedule small;
    struct hv_pipe small_g;
    size_t p = (size_t)in->ranks;
    int64_t long_m = m0 + WINDOWS * (int64_t)f->step;
    enum hv_status st = lay_out(&scratch, *in, m0, &small, &small_g, err);
    st = st == HV_OK ? lay_out(a, *in, long_m, &out->s, &out->g, err) : st;
    if (st == HV_OK) {
        hv_pipe_run_new(a, &out->g, &out->run);
        hv_pipe_time(&out->g, f->c, &out->run);
        f->g = &out->g;
        f->run = &out->run;
        f->at = hv_arena_new(&scratch, int32_t, p);
        f->len = hv_arena_new(&scratch, int32_t, p);
        *why = find_fault(f, &small_g);
        if (!*why) {
            out->idle = hv_arena_new(a, struct hv_pipe_rank, p);
            hv_pipe_idle(&out->g, f->c, &out->run, out->idle);
            out->step = f->step;
            out->period_s = f->period_s;
            out->more = m - long_m;
            stretch(f, (double)(out->more / f->step), out);
        }
    }
    if (st != HV_OK || *why) {
        hv_arena_rewind(a, mark);
    }
    hv_arena_free(&scratch);
    return st;
}

enum hv_status hv_schedule_fold(struct hv_arena *a, const struct hv_schedule_input *in,
                                const struct hv_pipe_cost *c, int64_t micro_batches,
                                struct hv_fold *out, struct hv_err *err)
{
    int64_t m = micro_batches, group = group_of(in), ops = 3 * (int64_t)in->ranks * in->chunks;
    const char *why = "it is too large to analyse";
    *out = (struct hv_fold){0};
    if (in->row->flags & (HV_SCHEDULE_BY_COST | HV_SCHEDULE_ORDER)) {
        return hv_err_set(err, HV_ENO, "schedule %s: its order is not known for all m",
                          in->row->name);
    }
    if (!c->stage_s || c->op_s || c->mb_scale || c->hop_scale || c->pair_s) {
        return hv_err_set(err, HV_ENO, "micro-batches have durations of their own");
    }
    for (int64_t grow = 1; grow <= (why == not_repeating ? 2 : 64); grow *= 2) {
        for (int64_t steps = 1; steps <= 3; steps++) { /* times may take turns */
            int64_t step = steps * group, m0 = least(in, step, m) + (grow - 1) * group * steps * 6;
            if (m0 + WINDOWS * step > m || (m0 + WINDOWS * step) * ops > FOLD_OPS_MAX) {
                continue;
            }
            struct folding f = {.c = c, .step = (int32_t)step};
            enum hv_status st = try_fold(a, in, &f, m0, m, out, &why, err);
            if (st != HV_OK || !why) {
                return st;
            }
        }
    }
    *out = (struct hv_fold){0};
    return hv_err_set(err, HV_ENO, "schedule %s with p = %d: %s", in->row->name, in->ranks, why);
}
