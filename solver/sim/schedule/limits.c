/*
 * Orders within the limits of ranks on the micro-batches that they hold.
 *
 * A schedule whose generator does not look at limits keeps them too: its ranks run its order, but a
 * forward for which its rank has no room is passed over until there is room, and so is whatever
 * waits for it on any rank. Room is promised to micro-batches in one order on all ranks (`turn`):
 * to the first ones whose activations all fit beside each other. Three things follow:
 * - The limits hold, since only micro-batches with a promise are held.
 * - An order that is within the limits stays as it is: nothing is ever passed over.
 * - There is no deadlock where the schedule had none. Operations that are not passed over wait for
 *   none that is, so the first of them in the schedule's own topological order can always run. And
 *   there is always one: of the micro-batches that are not finished, the oldest has a promise on
 *   every rank, for those before it hold nothing.
 * Ranks are played by time, because it depends on times when room is given back.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>
#include <string.h>

/* ---- what a rank holds, in halves of a stage's activation of one micro-batch (or slice)
 * -------------------------------------------------------------------------------------------- */

/* a forward of a micro-batch that is cut into parts is counted with its first part */
static int takes(const struct hv_schedule_input *in, const struct hv_schedule *s,
                 const struct hv_op *op)
{
    const unsigned halves = HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST;
    bool split = (in->row->flags & halves) == halves; /* B and W give back half each */
    switch ((enum hv_op_kind)op->kind) {
    case HV_OP_F:
        return s->parts && op->slice > 0 ? 0 : 2;
    case HV_OP_B:
        return split ? -1 : 0;
    case HV_OP_W:
        return split ? -1 : -2;
    case HV_OP_BW:
        return -2;
    case HV_OP_R:
    case HV_OP_KIND_N:
        break;
    }
    return 0;
}

/* halves in one micro-batch of a rank */
static double unit_of(const struct hv_schedule_input *in, const struct hv_schedule *s)
{
    return 2.0 * in->chunks * (s->parts ? 1 : s->n_slices);
}

/* most micro-batches that a rank has in flight, wherever their activations are */
static double most_held(const struct hv_schedule_input *in, const struct hv_schedule *s, int32_t r)
{
    int now = 0, most = 0;
    for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
        now += takes(in, s, &s->ops[i]);
        most = now > most ? now : most;
    }
    return most / unit_of(in, s);
}

/* the micro-batches that a rank gets room for: its limit, and never more than its schedule keeps */
static double room_of(const struct hv_schedule_input *in, const struct hv_schedule *s, int32_t r)
{
    return fmin(in->limits[r], most_held(in, s, r));
}

/* the first rank that keeps more than its limit, with how many; -1 = none */
static int32_t first_over(const struct hv_schedule_input *in, const struct hv_schedule *s,
                          double *most)
{
    int32_t *kept = s->stash ? hv_xcalloc((size_t)s->n_ranks, sizeof *kept) : NULL, over = -1;
    if (kept) {
        hv_schedule_peak_inflight(s, kept);
    }
    for (int32_t r = 0; r < s->n_ranks && over < 0; r++) {
        *most = kept ? kept[r] : most_held(in, s, r);
        over = *most > in->limits[r] + 1e-9 ? r : -1;
    }
    free(kept);
    return over;
}

enum hv_status hv__check_room(const struct hv_schedule_input *in, struct hv_err *err)
{
    for (int32_t r = 0; in->limits && r < in->ranks; r++) {
        if (!(in->limits[r] >= 1)) {
            return hv_err_set(err, HV_ENO,
                              "schedule %s: rank %d may hold %g micro-batches, it needs room for 1 "
                              "at least; raise its limit",
                              in->row->name, r, in->limits[r]);
        }
    }
    return HV_OK;
}

/* ---- the play
 * -------------------------------------------------------------------------------------------- */

/* an op of a rank's own order */
struct cell {
    size_t next; /* the next one that has not run */
    bool alone;  /* its pair was taken apart */
};

/* an op, or an overlapped pair, that a rank can run */
struct next {
    size_t op, n; /* n: 1, or 2 of a pair; 0 = nothing */
    double at;    /* earliest start; infinity = not known yet */
};

struct rank {
    size_t head, end; /* first op that has not run, behind the last one */
    double free_at;
    int32_t promised;      /* micro-batches, by turn */
    int32_t n_open;        /* ops of these that have not run */
    double room, reserved; /* halves */
    bool waits;            /* operations of its own wait for room somewhere */
    bool found;            /* what it runs next */
    struct next next;
};

struct play {
    const struct hv_schedule_input *in;
    const struct hv_schedule *s;
    struct rank *ranks;
    struct cell *cells;    /* [n_ops] */
    int32_t *turn, *of;    /* [micro-batches] place in the order of promises, and the reverse */
    int32_t *needs, *n_of; /* [n_ranks × micro-batches] halves, ops */
    int32_t *fore, *whole; /* [pipes × stages] micro-batches with room for F; for all else */
    int32_t *before;       /* [2 × pipes × stages] both, a step ago */
    struct hv__times times;
    size_t *met, scan; /* [stages × micro-batches] the last look at a rank's order to meet it */
    struct hv_op *ops; /* the new order */
    size_t *n_ops;     /* [n_ranks] of it */
};

static int32_t rank_of(const struct hv_schedule *s, int32_t pipe, int32_t stage)
{
    return s->stage_to_rank[(size_t)pipe * (size_t)s->n_stages + (size_t)stage];
}

/* Micro-batches get room in the order in which they begin, directions in turn. */
static void fill_turns(struct play *x)
{
    const struct hv_schedule *s = x->s;
    size_t m = (size_t)s->n_micro_batches, n_pipes = (size_t)s->n_pipes;
    int32_t *begun = hv_xcalloc(n_pipes, sizeof *begun); /* micro-batches of each direction */
    int32_t *at = hv_xmalloc(n_pipes * m * sizeof *at), n = 0;
    for (size_t p = 0; p < n_pipes; p++) {
        int32_t r = rank_of(s, (int32_t)p, 0);
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
            const struct hv_op *op = &s->ops[i];
            if (op->kind == HV_OP_F && op->pipe == p && op->stage == 0 && op->slice <= 0) {
                at[p * m + (size_t)begun[p]++] = op->mb;
            }
        }
    }
    for (size_t k = 0; k < m; k++) {
        for (size_t p = 0; p < n_pipes; p++) {
            if (k < (size_t)begun[p]) {
                x->of[n] = at[p * m + k];
                x->turn[x->of[n]] = n;
                n++;
            }
        }
    }
    free(at);
    free(begun);
}

/* gives a rank's room to as many micro-batches as fit; true where there are more than before */
static bool promise(struct play *x, int32_t r)
{
    struct rank *k = &x->ranks[r];
    int32_t m = x->s->n_micro_batches, before = k->promised;
    double limit = k->room + 1e-9;
    const int32_t *needs = x->needs + (size_t)r * (size_t)m, *n_of = x->n_of + (needs - x->needs);
    while (k->promised < m && k->reserved + needs[x->of[k->promised]] <= limit) {
        k->n_open += n_of[x->of[k->promised]];
        k->reserved += needs[x->of[k->promised++]];
    }
    return k->promised > before;
}

/* lowers `a` to the least of it and `b`; true where it was above */
static bool lower_to(int32_t *a, int32_t b)
{
    bool above = b < *a;
    *a = above ? b : *a;
    return above;
}

/* Takes the least of what lies before every stage (fore), and before and behind it (whole). One
 * round for edges in order, one more to see that nothing changes. */
static void least_of_graph(const struct hv_stage_graph *g, int32_t n_stages, int32_t *fore,
                           int32_t *whole)
{
    for (bool more = true; more;) {
        more = false;
        for (int32_t e = 0; e < g->n_edges; e++) {
            more |= lower_to(&fore[g->to[e]], fore[g->from[e]]);
        }
    }
    memcpy(whole, fore, (size_t)n_stages * sizeof *whole);
    for (bool more = true; more;) {
        more = false;
        for (int32_t e = g->n_edges; e-- > 0;) {
            more |= lower_to(&whole[g->from[e]], whole[g->to[e]]);
        }
    }
}

/* finds how many micro-batches have room wherever their operations have to come from; ranks for
 * which that changes look again at what they run next */
static void spread(struct play *x)
{
    const struct hv_schedule *s = x->s;
    size_t n = (size_t)s->n_pipes * (size_t)s->n_stages;
    memcpy(x->before, x->fore, 2 * n * sizeof *x->before);
    for (int32_t p = 0; p < s->n_pipes; p++) {
        int32_t *fore = x->fore + (size_t)p * (size_t)s->n_stages;
        for (int32_t i = 0; i < s->n_stages; i++) {
            fore[i] = x->ranks[rank_of(s, p, i)].promised;
        }
        least_of_graph(&s->graph, s->n_stages, fore, x->whole + (fore - x->fore));
    }
    for (int32_t r = 0; r < s->n_ranks; r++) {
        x->ranks[r].waits = false;
    }
    for (size_t i = 0; i < n; i++) {
        struct rank *k = &x->ranks[s->stage_to_rank[i]];
        bool same = x->before[i] == x->fore[i] && x->before[n + i] == x->whole[i];
        k->waits |= x->whole[i] < s->n_micro_batches;
        k->found &= same;
    }
}

static bool has_room(const struct play *x, const struct hv_op *op)
{
    size_t at = (size_t)op->pipe * (size_t)x->s->n_stages + (size_t)op->stage;
    return x->turn[op->mb] < (op->kind == HV_OP_F ? x->fore : x->whole)[at];
}

/* True where this look at a rank's order has met an op of the same stage and micro-batch before:
 * they stay in their order. */
static bool comes_after(const struct play *x, const struct hv_op *op)
{
    size_t at = (size_t)op->stage * (size_t)x->s->n_micro_batches + (size_t)op->mb;
    bool met = x->met[at] == x->scan;
    x->met[at] = x->scan;
    return met;
}

/* true where op i is the first of an overlapped pair of which both are left */
static bool is_pair(const struct play *x, const struct rank *k, size_t i)
{
    const struct hv_op *ops = x->s->ops;
    return ops[i].group >= 0 && !x->cells[i].alone && i + 1 < k->end &&
           ops[i + 1].group == ops[i].group;
}

/* Finds what of op i, and of its pair, need not be passed over, and when it can start; n = 0:
 * nothing. */
static struct next next_of(struct play *x, const struct rank *k, size_t i, bool pair)
{
    const struct hv_op *ops = x->s->ops;
    bool one = !comes_after(x, &ops[i]) && has_room(x, &ops[i]);
    bool two = pair && !comes_after(x, &ops[i + 1]) && has_room(x, &ops[i + 1]);
    double at = fmax(k->free_at, one ? hv__op_ready(&x->times, &ops[i]) : 0);
    return (struct next){.op = one ? i : i + 1,
                         .n = (size_t)one + (size_t)two,
                         .at = fmax(at, two ? hv__op_ready(&x->times, &ops[i + 1]) : 0)};
}

/*
 * Finds what a rank runs next: the first op of its order that need not be passed over, though it
 * may have to wait for it. While operations of its own are passed over, waiting would keep room
 * that others need: then it is the op that can start first.
 */
static void find_next(struct play *x, struct rank *k)
{
    int32_t left = k->n_open;
    x->scan++;
    k->found = true;
    k->next = (struct next){.at = HUGE_VAL};
    for (size_t i = k->head; i < k->end && left > 0;) {
        bool pair = is_pair(x, k, i);
        struct next it = next_of(x, k, i, pair);
        if (it.n > 0 && (k->next.n == 0 || it.at < k->next.at)) {
            k->next = it;
        }
        if (it.n > 0 && (!k->waits || it.at <= k->free_at)) {
            return;
        }
        for (size_t j = i; j <= i + pair; j++) {
            left -= x->turn[x->s->ops[j].mb] < k->promised;
        }
        i = x->cells[i + pair].next;
    }
}

/* takes op i out of the list of its rank and appends it to the new order; `group` of it there */
static void append(struct play *x, int32_t r, size_t i, int32_t group)
{
    struct rank *k = &x->ranks[r];
    const struct hv_op *op = &x->s->ops[i];
    struct hv_op *out = &x->ops[x->s->rank_at[r] + x->n_ops[r]++];
    *out = *op;
    out->group = group;
    size_t *link = &k->head;
    while (*link != i) {
        link = &x->cells[*link].next;
    }
    *link = x->cells[i].next;
    k->n_open--;
    int gives = takes(x->in, x->s, op);
    k->reserved += gives < 0 ? gives : 0;
}

/* looks again at what the ranks of some stages run next */
static void look_again(struct play *x, const struct hv_op *op, bool back)
{
    const struct hv_schedule *s = x->s;
    for (int32_t k = x->times.near_at[back][op->stage]; k < x->times.near_at[back][op->stage + 1];
         k++) {
        x->ranks[rank_of(s, op->pipe, x->times.near[back][k])].found = false;
    }
}

/* runs what a rank has found */
static void run(struct play *x, int32_t r)
{
    const struct hv_schedule *s = x->s;
    struct rank *k = &x->ranks[r];
    const struct next it = k->next;
    k->free_at = it.at;
    for (size_t j = it.op; j < it.op + it.n; j++) {
        k->free_at += hv__op_takes(&x->times, &s->ops[j]);
    }
    for (size_t j = it.op; j < it.op + it.n; j++) {
        const struct hv_op *op = &s->ops[j];
        if (hv__op_ended(&x->times, op, k->free_at)) {
            look_again(x, op, op->kind == HV_OP_F);
        }
        append(x, r, j, it.n == 2 ? op->group : -1);
    }
    if (it.n == 1 && it.op > s->rank_at[r]) {
        x->cells[it.op - 1].alone = true; /* where it was its pair */
    }
    k->found = false;
}

/* plays the whole order; false: it stands still, as it would without limits */
static bool play(struct play *x)
{
    for (int32_t r = 0; r < x->s->n_ranks; r++) {
        (void)promise(x, r);
    }
    spread(x);
    for (;;) {
        int32_t next = -1;
        bool done = true;
        for (int32_t r = 0; r < x->s->n_ranks; r++) {
            struct rank *k = &x->ranks[r];
            if (!k->found) {
                find_next(x, k);
            }
            done = done && k->head == k->end;
            next = k->next.at < HUGE_VAL && (next < 0 || k->next.at < x->ranks[next].next.at)
                       ? r
                       : next;
        }
        if (done || next < 0) {
            return done;
        }
        run(x, next);
        if (promise(x, next)) {
            spread(x);
        }
    }
}

/* numbers the pairs that are left, and counts them */
static int32_t number_pairs(struct hv_op *ops, size_t n_ops)
{
    int32_t n = 0;
    for (size_t i = 0; i < n_ops; i++) {
        if (ops[i].group >= 0) {
            ops[i].group = ops[i + 1].group = n++;
            i++;
        }
    }
    return n;
}

static void fill_lists(struct play *x)
{
    const struct hv_schedule *s = x->s;
    for (int32_t r = 0; r < s->n_ranks; r++) {
        x->ranks[r].head = s->rank_at[r];
        x->ranks[r].end = s->rank_at[r + 1];
        x->ranks[r].room = room_of(x->in, s, r) * unit_of(x->in, s);
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
            int more = takes(x->in, s, &s->ops[i]);
            x->cells[i].next = i + 1;
            x->needs[r * s->n_micro_batches + s->ops[i].mb] += more > 0 ? more : 0;
            x->n_of[r * s->n_micro_batches + s->ops[i].mb]++;
        }
    }
}

/* plays the schedule within the limits; its ops become those of the play */
static void hold_back(struct hv_arena *a, const struct hv_schedule_input *in, struct hv_schedule *s)
{
    struct hv_arena scratch = {0};
    size_t p = (size_t)s->n_ranks, m = (size_t)s->n_micro_batches, n_ops = hv_schedule_n_ops(s);
    size_t stages = (size_t)s->n_pipes * (size_t)s->n_stages;
    struct play x = {.in = in, .s = s, .ops = hv_arena_new(a, struct hv_op, n_ops + 1)};
    x.ranks = hv_arena_new(&scratch, struct rank, p);
    x.cells = hv_arena_new(&scratch, struct cell, n_ops + 1);
    x.turn = hv_arena_new(&scratch, int32_t, m);
    x.of = hv_arena_new(&scratch, int32_t, m);
    x.needs = hv_arena_new(&scratch, int32_t, p * m);
    x.n_of = hv_arena_new(&scratch, int32_t, p * m);
    x.fore = hv_arena_new(&scratch, int32_t, 2 * stages);
    x.whole = x.fore + stages;
    x.before = hv_arena_new(&scratch, int32_t, 2 * stages);
    x.n_ops = hv_arena_new(&scratch, size_t, p);
    x.met = hv_arena_new(&scratch, size_t, (size_t)s->n_stages * m);
    hv__times_begin(&scratch, in, s, &x.times);
    fill_lists(&x);
    fill_turns(&x);
    if (play(&x)) {
        s->n_groups = number_pairs(x.ops, n_ops);
        s->ops = x.ops;
        s->by_times = true;
    }
    hv_arena_free(&scratch);
}

enum hv_status hv__keep_limits(struct hv_arena *a, const struct hv_schedule_input *in,
                               struct hv_schedule *s, struct hv_err *err)
{
    double most;
    int32_t over = in->limits ? first_over(in, s, &most) : -1;
    if (over < 0) {
        return HV_OK;
    }
    if (in->row->flags & HV_SCHEDULE_ORDER) {
        return hv_err_set(err, HV_ENO,
                          "schedule %s keeps %g micro-batches on rank %d, its limit is %g; allow "
                          "%g there, or take another schedule than an order written out",
                          in->row->name, most, over, in->limits[over], most);
    }
    double steps = (double)hv_schedule_n_ops(s) * (s->n_ranks + s->graph.n_edges);
    enum hv_status st = hv__check_work(in, steps, err);
    if (st == HV_OK) {
        hold_back(a, in, s);
    }
    return st;
}
