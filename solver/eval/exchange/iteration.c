/** The time of an iteration, step by step, and the order in which it is shortest. */
#include "solver/eval/exchange/exchange.h"
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

/** Runs and the end of the iteration, of a lowered plan. */
static enum hv_status time_lowered(struct hv__lowered *l, struct hv_verdict *out,
                                   struct hv_err *err)
{
    enum hv_status st = hv__report_progress(l, HV__AT_LOWERED, err);
    if (st == HV_OK) {
        st = hv__time(l, err);
    }
    if (st == HV_OK) {
        st = hv__report_progress(l, HV__AT_TIMED, err);
    }
    if (st == HV_OK && l->iteration.given_up) {
        return HV_OK;
    }
    if (st == HV_OK && l->schedule.stale) {
        st = hv__time_stale(l, out, err);
    } else if (st == HV_OK) {
        hv__late_gathers(l);
        hv__tail(l);
        st = hv__report_progress(l, HV__AT_TIMED, err);
    }
    return st;
}

/** True where the time of an order differs much from what its choice took into account: ranks that
 * take turns share links, and gathers keep streams busy. */
static bool estimates_poorly(const struct hv__lowered *l)
{
    bool any = l->network.crowded && !(l->schedule.row->flags & HV_SCHEDULE_GREEDY);
    for (size_t i = 0; !any && i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        any = hv__split_of(l, pl->i_replica) != NULL || hv__has_stream(pl);
    }
    return any;
}

/** Passes, runs and the end of the iteration, in the order that l->order asks for. */
static enum hv_status time_order(struct hv__lowered *l, struct hv_verdict *out, struct hv_err *err)
{
    enum hv_status st = hv__lower(l, err);
    return st == HV_OK ? time_lowered(l, out, err) : st;
}

/** Seconds of the iteration in one order, in memory of its own; HUGE_VAL: it cannot be run, or was
 * seen. */
static enum hv_status try_order(const struct hv__lowered *fresh, int order, struct seen *seen,
                                double *time_s)
{
    struct hv_arena scratch = {0};
    struct hv_verdict v = {.findings = {.arena = &scratch}};
    struct hv_err unheard = {0};
    struct hv__lowered x = *fresh;
    x.arena = &scratch;
    x.findings = &v.findings;
    x.spans = false;
    x.order = order;
    enum hv_status st = hv__lower(&x, &unheard);
    *time_s = HUGE_VAL;
    if (st == HV_OK && !was_seen(seen, order_of(&x))) {
        st = time_lowered(&x, &v, &unheard);
        *time_s = st == HV_OK ? x.iteration.total_s : HUGE_VAL;
    }
    hv_arena_free(&scratch);
    return st;
}

enum hv_status hv__time_iteration(struct hv__lowered *l, struct hv_verdict *out, struct hv_err *err)
{
    const struct hv__lowered fresh = *l;
    size_t findings = l->findings->n;
    enum hv_status st = time_order(l, out, err);
    if (st != HV_OK || l->iteration.given_up || !hv__chooses_order(l) || !estimates_poorly(l)) {
        return st;
    }
    int best = 0;
    struct seen seen = {.orders = {order_of(l)}, .n = 1};
    double best_s = l->iteration.total_s;
    for (int order = 1; order <= HV__ORDERS; order++) {
        double time_s;
        st = try_order(&fresh, order, &seen, &time_s);
        if (st == HV_ESTOPPED) {
            return hv__report_progress(l, 0, err);
        }
        if (time_s < best_s * (1 - TIME_REL)) {
            best_s = time_s;
            best = order;
        }
    }
    if (best == 0) {
        return HV_OK;
    }
    *l = fresh;
    l->order = best;
    l->findings->n = findings;
    return time_order(l, out, err);
}
