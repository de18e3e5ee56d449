/** The time of an iteration, step by step, and the order in which it is shortest. */
#include "solver/eval/exchange/exchange.h"
#include "solver/eval/exchange/exchange_int.h"
#include "solver/eval/train/steps.h"

#include "solver/base/rng.h"

/** Times that differ by less than this share are equal: rounding does not choose an order. */
#define TIME_REL 1e-12

/** Orders that were simulated, by fingerprint. */
struct seen {
    uint64_t orders[HV__ORDERS + 1];
    size_t n;
};

/** Fingerprint of the orders of all pipelines: operations by rank, and what else they wait for.
 * O(operations + waits). */
static uint64_t order_of(const struct hv__lowered *l)
{
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv_schedule *s = l->pipelines.items[i].schedule;
        size_t n = hv_schedule_n_ops(s);
        h = hv_hash(h, s->ops, n * sizeof *s->ops);
        if (s->wait_at != NULL) {
            h = hv_hash(h, s->wait_at, (n + 1) * sizeof *s->wait_at);
            h = hv_hash(h, s->waits, (size_t)s->wait_at[n] * sizeof *s->waits);
        }
    }
    return h;
}

/** True where an order was simulated before; else notes it. */
static bool was_seen(struct seen *seen, uint64_t order)
{
    for (size_t i = 0; i < seen->n; i++) {
        if (seen->orders[i] == order) {
            return true;
        }
    }
    seen->orders[seen->n++] = order;
    return false;
}

/** Runs and the end of the iteration, of a lowered plan, as far as it may be fast enough. */
static enum hv_status time_lowered(struct hv__lowered *l, struct hv_verdict *out,
                                   struct hv_err *err)
{
    enum hv_status st = hv__report_progress(l, HV__AT_LOWERED, err);
    st = st == HV_OK ? hv__time_alone(l, err) : st;
    if (st != HV_OK || hv__gives_up(l, false)) {
        return st;
    }
    hv__time_together(l);
    st = hv__report_progress(l, HV__AT_TIMED, err);
    if (st != HV_OK || hv__gives_up(l, true)) {
        return st;
    }
    if (l->schedule.stale) {
        return hv__time_stale(l, out, err);
    }
    hv__late_gathers(l);
    hv__tail(l);
    (void)hv__too_long(l, l->iteration.total_s);
    return hv__report_progress(l, HV__AT_TIMED, err);
}

/** True where the time of an order differs much from what its choice took into account: ranks that
 * take turns share links, and gathers keep streams busy. Whether links are crowded is not known of
 * an order that took too long before. */
static bool estimates_poorly(const struct hv__lowered *l)
{
    bool crowded = l->network.crowded || l->iteration.least_s > 0;
    bool any = crowded && !(l->schedule.row->flags & HV_SCHEDULE_GREEDY);
    for (size_t i = 0; !any && i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        any = hv__split_of(l, pl->i_replica) != NULL || hv__has_stream(pl);
    }
    return any;
}

/** A lowered plan that is not timed yet, with tables of its own for what timing and another order
 * write. O(ranks). */
static struct hv__lowered kept_apart(const struct hv__lowered *l, struct hv_arena *arena)
{
    struct hv__lowered x = *l;
    const struct hv__pipeline *from = l->pipelines.items;
    x.pipelines.items = hv_arena_copy(arena, from, l->pipelines.n, sizeof *from);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &x.pipelines.items[i];
        pl->like = pl->like != NULL ? x.pipelines.items + (pl->like - from) : NULL;
        pl->ranks = hv_arena_copy(arena, pl->ranks, pl->n_ranks, sizeof *pl->ranks);
        if (pl->orders != NULL) {
            pl->orders = hv_arena_copy(arena, pl->orders, HV__ORDERS, sizeof *pl->orders);
        }
    }
    return x;
}

/** A plan as it was before it was lowered, and lowered but not timed. */
struct untimed {
    struct hv__lowered fresh, lowered;
    bool reorders;   /**< the lowered plan can take up other orders; else it is lowered again */
    size_t findings; /**< before that */
};

/** Lowers the plan in another order, with results in an arena; *out has findings, spans and the
 * time at which it is given up. */
static enum hv_status lower_again(const struct untimed *u, int order, struct hv_arena *arena,
                                  struct hv__lowered *out, struct hv_err *err)
{
    struct hv_findings *findings = out->findings;
    bool spans = out->spans;
    double give_up_s = out->give_up_s;
    *out = u->reorders ? kept_apart(&u->lowered, arena) : u->fresh;
    out->arena = arena;
    out->findings = findings;
    out->spans = spans;
    out->give_up_s = give_up_s;
    out->order = order;
    return u->reorders ? hv__reorder(out, err) : hv__lower(out, err);
}

/** Seconds of the iteration in one order, in memory of its own; HUGE_VAL: it cannot be run, was
 * seen, or takes longer than most_s. */
static enum hv_status try_order(const struct untimed *u, int order, double most_s,
                                struct seen *seen, double *time_s)
{
    struct hv_arena scratch = {0};
    struct hv_verdict v = {.findings = {.arena = &scratch}};
    struct hv_err unheard = {0};
    struct hv__lowered x = {.findings = &v.findings, .give_up_s = most_s};
    enum hv_status st = lower_again(u, order, &scratch, &x, &unheard);
    *time_s = HUGE_VAL;
    if (st == HV_OK && !(x.iteration.least_s > 0) && !was_seen(seen, order_of(&x))) {
        st = time_lowered(&x, &v, &unheard);
        *time_s = st == HV_OK && !(x.iteration.least_s > 0) ? x.iteration.total_s : HUGE_VAL;
    }
    hv_arena_free(&scratch);
    return st;
}

/** The order, other than that of l, with the shortest time below *best_s; 0: there is none. */
static enum hv_status find_order(const struct hv__lowered *l, const struct untimed *u,
                                 double *best_s, int *best)
{
    struct seen seen = {.orders = {order_of(l)}, .n = 1};
    *best = 0;
    for (int order = 1; order <= HV__ORDERS; order++) {
        double time_s;
        if (try_order(u, order, *best_s, &seen, &time_s) == HV_ESTOPPED) {
            return HV_ESTOPPED;
        }
        if (time_s < *best_s * (1 - TIME_REL)) {
            *best_s = time_s;
            *best = order;
        }
    }
    return HV_OK;
}

enum hv_status hv__time_iteration(struct hv__lowered *l, struct hv_verdict *out, struct hv_err *err)
{
    struct untimed u = {.fresh = *l, .findings = l->findings->n};
    enum hv_status st = hv__lower(l, err);
    if (st != HV_OK || l->iteration.least_s > 0) {
        return st;
    }
    bool chooses = hv__chooses_order(l);
    if (chooses && hv__can_reorder(l)) {
        u.reorders = true;
        u.lowered = kept_apart(l, l->arena);
        u.findings = l->findings->n;
    }
    st = time_lowered(l, out, err);
    if (st != HV_OK || !chooses || !estimates_poorly(l)) {
        return st;
    }
    int best;
    double best_s = l->iteration.least_s > 0 ? l->give_up_s : l->iteration.total_s;
    st = find_order(l, &u, &best_s, &best);
    if (l->iteration.least_s > 0) {
        l->iteration.least_s = l->give_up_s; /* all orders take longer, some less than this one */
    }
    if (st != HV_OK || best == 0) {
        return st == HV_ESTOPPED ? hv__report_progress(l, 0, err) : st;
    }
    l->findings->n = u.findings;
    l->give_up_s = 0;
    st = lower_again(&u, best, l->arena, l, err);
    return st == HV_OK ? time_lowered(l, out, err) : st;
}
