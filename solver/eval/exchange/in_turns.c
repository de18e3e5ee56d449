/**
 * Reductions of gradients and all-to-alls of experts that take turns on one network, which finishes
 * what it has begun (Li et al. 2023, Lina, section 4; the queue of one NCCL communicator). First
 * come, first served (`priority` fifo): an exchange waits for all buckets that were ready before
 * it. `after_all_to_all`: an exchange waits at most for the chunk that is on its way, and what is
 * left of its bucket waits until no exchange is under way or ready. A pass goes on when its
 * exchange is done, so later gradients of its rank come later, and so do the passes that wait for
 * it.
 *
 * Events are played in order of time: buckets that become ready, begin, and end, exchanges that
 * become ready, and ends of passes, from the first bucket on. All-to-alls of several ranks are
 * together on a network as they are priced; only reductions exclude them. What compute hides of an
 * exchange is not delayed. Transfers between stages keep the times of the run before it was
 * delayed, where they leave bandwidth to reductions (links_left.c).
 */
#include "solver/eval/exchange/buckets.h"

#include <string.h>

/** Times that differ by less than this share are equal. */
#define ROUNDING 1e-12

/** A rank whose last passes are played. */
struct player {
    struct hv__pipeline *pl;
    size_t i_pipeline, rank;
    int32_t node, end;       /**< the node at hand, and behind the last */
    bool running;            /**< the node has begun, at start_s */
    double start_s, waits_s; /**< waits_s: of the exchanges of this node so far */
    struct hv__exchange *exchanges;
    size_t n_exchanges, i_exchange;
    const size_t *lanes; /**< [n_lanes] that its exchanges use */
    size_t n_lanes;
};

/** A pipeline as it is played. */
struct played {
    double *start_s, *end_s;   /**< [nodes]; NULL: it keeps its run */
    bool *ended;               /**< [nodes] */
    int32_t *last_node;        /**< [global stages] of the last weight gradients, −1 = none */
    struct hv__delays *delays; /**< [global stages] inside that node */
    double *waits_s;           /**< [ranks] of exchanges, inside passes */
};

/** A stream of buckets, and what is on its way. */
struct sender {
    struct hv__bucket_stream *stream, before; /**< before: without the bucket at hand */
    struct hv__bucket bucket;                 /**< that at hand, the first of a run of equal ones */
    bool more;
    size_t seen;    /**< what its readiness counts, see play.n_known */
    double left_s;  /**< of the bucket, on a network of its own */
    double ready_s; /**< the bucket, or what is left of it */
    bool running;
    double start_s, end_s; /**< while it runs */
    const size_t *lanes;   /**< [n_lanes] of the bucket */
    size_t n_lanes;
};

/** Reductions, or a piece of one, as they were run. */
struct piece {
    const struct hv__bucket_stream *stream;
    struct hv__reduced reduced;
};

/** Lanes are numbered: networks of nodes, named links, and behind them the links of every flat rank
 * inside its node. */
struct play {
    struct hv__lowered *l;
    struct hv__links_left *traffic;
    struct played *pipelines;
    struct player *players;
    size_t n_players;
    struct sender *senders;
    size_t n_senders;
    bool exchanges_first;
    size_t n_network;      /**< lanes of the network */
    double *reduced_s;     /**< [lanes] until when reductions use them */
    double *exchanged_s;   /**< [lanes] until when exchanges do */
    double *rank_s;        /**< [flat ranks] until when the rank takes part in a reduction */
    struct sender **owner; /**< [lanes] of the reduction on its way */
    size_t n_known;        /**< how often more has become known of when gradients come */
    struct piece *pieces;
    size_t n_pieces, cap_pieces;
};

/* ---- who uses which lanes
 * ---------------------------------------------------------------------------- */

/** Lanes of the all-to-alls of a rank: the networks of the nodes that a group of ranks with all
 * experts spreads over, else its own links. */
static void find_lanes(const struct play *y, struct player *x)
{
    const struct hv_cluster *c = hv_cost_cluster(y->l->k);
    const struct hv__rank *rk = &x->pl->ranks[x->rank];
    const struct hv_stage *s = &x->pl->replica->stages[rk->stage];
    size_t group = hv__holder_stride(s, true), n = 0;
    size_t *lanes = hv_arena_new(y->l->arena, size_t, rk->n_devices + 1);
    for (size_t from = 0; from < rk->n_devices; from += group) {
        size_t to = from + group < rk->n_devices ? from + group : rk->n_devices;
        bool far = hv_cluster_is_far(c, rk->devices + from, to - from, 1);
        for (size_t i = from; far && i < to; i++) {
            size_t node = hv_cluster_node_of(c, rk->devices[i]);
            lanes[n] = node;
            n += n == 0 || lanes[n - 1] != node;
        }
    }
    if (n == 0) {
        lanes[n++] = y->n_network + y->l->pipelines.rank_at[x->i_pipeline] + x->rank;
    }
    x->lanes = lanes;
    x->n_lanes = n;
}

/** Lanes of the bucket at hand: of the network, else the links of its ranks. */
static void find_bucket_lanes(const struct play *y, struct sender *w)
{
    const struct hv__lanes *of = &w->bucket.lanes;
    size_t n = of->n > 0 ? of->n : w->stream->n_ranks;
    size_t *lanes = hv_arena_new(y->l->arena, size_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        lanes[i] = of->n > 0 ? of->ids[i] : y->n_network + w->stream->ranks[i];
    }
    w->lanes = lanes;
    w->n_lanes = n;
}

static double latest_s(const double *until_s, const size_t *lanes, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) {
        s = fmax(s, until_s[lanes[i]]);
    }
    return s;
}

/* ---- buckets
 * ----------------------------------------------------------------------------------------- */

/** Takes the next bucket of a stream. */
static void take_bucket(struct play *y, struct sender *w)
{
    const uint32_t *lanes = w->more ? w->bucket.lanes.ids : NULL;
    w->before = *w->stream;
    w->more = hv__next_bucket(y->l, w->stream, &w->bucket);
    w->seen = y->n_known;
    w->running = false;
    if (w->more) {
        w->left_s = w->bucket.duration_s;
        w->ready_s = w->bucket.ready_s;
        if (w->lanes == NULL || w->bucket.lanes.ids != lanes) {
            find_bucket_lanes(y, w);
        }
    }
}

/** Takes the bucket at hand again where it was not certain when its gradients come, and more is
 * known now. */
static void refresh(struct play *y, struct sender *w)
{
    if (w->bucket.certain || w->seen == y->n_known) {
        return;
    }
    struct hv__bucket_stream after = *w->stream;
    *w->stream = w->before;
    memcpy(w->stream->prices, after.prices, sizeof after.prices);
    w->stream->n_prices = after.n_prices;
    w->stream->lanes = after.lanes;
    take_bucket(y, w);
}

/** Goes on behind n of the equal buckets at hand. */
static void leave_buckets(struct play *y, struct sender *w, double n)
{
    struct hv__bucket *b = &w->bucket;
    b->ready_s += n * b->step_s;
    b->n -= n;
    if (!(b->n > 0)) {
        take_bucket(y, w);
        return;
    }
    w->left_s = b->duration_s;
    w->ready_s = b->ready_s;
    w->running = false;
}

/** Time from which the lanes and the ranks of the bucket at hand are free. */
static double network_free_s(const struct play *y, const struct sender *w)
{
    return fmax(latest_s(y->rank_s, w->stream->ranks, w->stream->n_ranks),
                fmax(latest_s(y->reduced_s, w->lanes, w->n_lanes),
                     latest_s(y->exchanged_s, w->lanes, w->n_lanes)));
}

/** Time of the next event of a stream: its bucket is ready or, where exchanges go first, begins or
 * ends. */
static double event_of_sender_s(struct play *y, struct sender *w)
{
    if (!w->more) {
        return HUGE_VAL;
    }
    if (w->running) {
        return w->end_s;
    }
    refresh(y, w);
    if (!w->bucket.certain) {
        return HUGE_VAL;
    }
    return y->exchanges_first ? fmax(w->ready_s, network_free_s(y, w)) : w->ready_s;
}

static void keep_piece(struct play *y, const struct sender *w, const struct hv__reduced *reduced)
{
    if (y->n_pieces == y->cap_pieces) {
        y->cap_pieces = y->cap_pieces > 0 ? 2 * y->cap_pieces : 64;
        struct piece *more = hv_arena_new(y->l->arena, struct piece, y->cap_pieces);
        if (y->n_pieces > 0) {
            memcpy(more, y->pieces, y->n_pieces * sizeof *more);
        }
        y->pieces = more;
    }
    y->pieces[y->n_pieces++] = (struct piece){w->stream, *reduced};
}

/** Keeps the lanes and ranks of a bucket in use until it ends, and its owner or NULL beside them.
 */
static void use_lanes(struct play *y, struct sender *w, struct sender *owner)
{
    for (size_t i = 0; i < w->n_lanes; i++) {
        double share = w->bucket.lanes.n > 0 && owner == NULL ? w->bucket.lanes.shares[i] : 1;
        y->reduced_s[w->lanes[i]] = w->start_s + share * (w->end_s - w->start_s);
        y->owner[w->lanes[i]] = owner;
    }
    for (size_t i = 0; i < w->stream->n_ranks; i++) {
        y->rank_s[w->stream->ranks[i]] = w->end_s;
    }
}

/** Begins what is left of a bucket when its lanes are free. */
static void begin_bucket(struct play *y, struct sender *w)
{
    w->running = true;
    w->start_s = fmax(w->ready_s, network_free_s(y, w));
    w->end_s = hv__end_on_links_left(y->traffic, &w->bucket.lanes, w->start_s, w->left_s);
    use_lanes(y, w, w);
}

/** Keeps what was run of the bucket on its way, and frees its lanes. */
static void keep_running(struct play *y, struct sender *w)
{
    const struct hv__reduced x = {w->start_s, w->end_s - w->start_s, 1, 0};
    keep_piece(y, w, &x);
    use_lanes(y, w, NULL);
}

/** Runs n of the equal buckets at hand, each as soon as it is ready and its lanes are free: the use
 * of the last one. `at_once`: how many run without a gap; `keep`: the pieces are kept. */
static struct hv__lane_use run_buckets(struct play *y, const struct sender *w, double n, bool keep,
                                       double *at_once)
{
    struct hv__lane_use u = {0, network_free_s(y, w)};
    struct hv__reduced x;
    for (double done = 0; done < n;) {
        double some = hv__run_some(y->traffic, &w->bucket, done, n, &u, &x);
        *at_once = done > 0 ? *at_once : some;
        done += some;
        if (keep) {
            keep_piece(y, w, &x);
        }
    }
    return u;
}

/** Runs n of the equal buckets at hand to their ends. */
static void run_whole(struct play *y, struct sender *w, double n)
{
    double at_once;
    struct hv__lane_use u = run_buckets(y, w, n, true, &at_once);
    w->start_s = u.start_s;
    w->end_s = u.end_s;
    use_lanes(y, w, NULL);
    leave_buckets(y, w, n);
}

/** True where two streams use a lane or a rank together. O(lanes² + ranks²) */
static bool share_network(const struct sender *a, const struct sender *b)
{
    bool any = false;
    for (size_t i = 0; i < a->n_lanes && !any; i++) {
        for (size_t k = 0; k < b->n_lanes && !any; k++) {
            any = a->lanes[i] == b->lanes[k];
        }
    }
    for (size_t i = 0; i < a->stream->n_ranks && !any; i++) {
        for (size_t k = 0; k < b->stream->n_ranks && !any; k++) {
            any = a->stream->ranks[i] == b->stream->ranks[k];
        }
    }
    return any;
}

/** What limits the buckets of a stream that run one after the other. */
struct room {
    double end_s;     /**< when the last has ended */
    double begin_s;   /**< before this the last begins */
    double waiting_s; /**< likewise, but for those that run without a gap: streams behind this one
                         have to wait for them */
};

/** Room for the buckets at hand until a pass goes on, at plays_s, or another stream may take the
 * network. Next events of other streams: at others_s or later. */
static struct room room_for(const struct play *y, const struct sender *w, double others_s,
                            double plays_s)
{
    struct room r = {plays_s * (1 - ROUNDING), HUGE_VAL, HUGE_VAL};
    if (hv__links_busy_after(y->traffic, w->ready_s)) {
        r.end_s = fmin(r.end_s, others_s); /* traffic is met in order of time */
    }
    for (size_t i = 0; i < y->n_senders; i++) {
        const struct sender *o = &y->senders[i];
        if (o == w || !o->more || (!o->running && !o->bucket.certain) || !share_network(o, w)) {
            continue;
        }
        double from_s = o->running ? -HUGE_VAL : o->ready_s;
        double *limit_s = o > w && !o->running ? &r.waiting_s : &r.begin_s;
        *limit_s = fmin(*limit_s, from_s);
    }
    return r;
}

/** How many of the equal buckets at hand run to their ends in the room that they have, by
 * bisection. */
static double whole_in(struct play *y, const struct sender *w, const struct room *r)
{
    double fits = 0, over = w->bucket.n + 1;
    if (w->bucket.n < 2 || w->left_s < w->bucket.duration_s || w->ready_s > w->bucket.ready_s) {
        return 0;
    }
    while (over - fits > 1) {
        double n = floor((fits + over) / 2), at_once = 0;
        struct hv__lane_use u = run_buckets(y, w, n, false, &at_once);
        bool alone = n <= at_once || u.start_s < r->waiting_s;
        *(u.end_s <= r->end_s && u.start_s < r->begin_s && alone ? &fits : &over) = n;
    }
    return fits;
}

/** Runs buckets that nothing interrupts, else begins the one at hand. */
static void begin_some(struct play *y, struct sender *w, double others_s, double plays_s)
{
    struct room r = room_for(y, w, others_s, plays_s);
    double n = whole_in(y, w, &r);
    if (n > 0) {
        run_whole(y, w, n);
    } else {
        begin_bucket(y, w);
    }
}

/** Lets a stream go on until others do, or passes, which follow each other at these times. Where
 * exchanges do not go first, the turn of buckets is certain once they are ready. */
static void play_sender(struct play *y, struct sender *w, double others_s, double plays_s)
{
    if (!y->exchanges_first) {
        run_whole(y, w, hv__ready_before(&w->bucket, fmin(others_s, plays_s)));
    } else if (w->running) {
        keep_running(y, w);
        leave_buckets(y, w, 1);
    } else {
        begin_some(y, w, others_s, plays_s);
    }
}

/** Interrupts the bucket on its way behind the chunk that is under way at a time. */
static void interrupt(struct play *y, struct sender *w, double at_s)
{
    double all_s = w->end_s - w->start_s;
    double chunk_s = w->bucket.chunk_s * all_s / w->left_s;
    double until_s =
        w->start_s + chunk_s * fmax(1, ceil((at_s - w->start_s) / chunk_s * (1 - ROUNDING)));
    if (!(until_s < w->end_s)) {
        return;
    }
    w->left_s *= (w->end_s - until_s) / all_s;
    w->end_s = until_s;
    w->running = false;
    w->ready_s = until_s;
    keep_running(y, w);
}

/* ---- passes
 * ------------------------------------------------------------------------------------------ */

static struct played *played_of(const struct play *y, const struct player *x)
{
    return &y->pipelines[x->i_pipeline];
}

/** Later than planned. */
static double late_s(const struct player *x)
{
    return x->start_s - x->pl->run.node_start_s[x->node] + x->waits_s;
}

/** Where the gradients of the node at hand are the last of a stage: their delays, else NULL. */
static struct hv__delays *delays_of(const struct play *y, const struct player *x)
{
    const struct hv_op *op = &x->pl->schedule->ops[hv_pipe_first_op(x->pl->pipe, x->node)];
    struct played *p = played_of(y, x);
    size_t at = (size_t)op->pipe * x->pl->n_gstages + (size_t)op->stage;
    return p->last_node[at] == x->node ? &p->delays[at] : NULL;
}

static void add_delay(struct play *y, struct hv__delays *d, struct hv__delay delay)
{
    if (d->n == d->cap) {
        d->cap = d->cap > 0 ? 2 * d->cap : 8;
        struct hv__delay *more = hv_arena_new(y->l->arena, struct hv__delay, d->cap);
        if (d->n > 0) {
            memcpy(more, d->items, d->n * sizeof *more);
        }
        d->items = more;
    }
    d->items[d->n++] = delay;
}

/** Notes how late the node at hand is from a planned time on, and that this holds until its next
 * exchange. */
static void note_delay(struct play *y, const struct player *x, double after_s)
{
    struct hv__delays *d = delays_of(y, x);
    double by_s = late_s(x);
    if (d == NULL) {
        return;
    }
    if (by_s > (d->n > 0 ? d->items[d->n - 1].by_s : 0)) {
        add_delay(y, d, (struct hv__delay){after_s, by_s});
    }
    bool more = x->i_exchange < x->n_exchanges;
    d->known_until_s =
        more ? x->pl->run.node_start_s[x->node] + x->exchanges[x->i_exchange].at_s : HUGE_VAL;
    y->n_known++;
}

/** Notes the end of the last node of a rank. */
static void note_end(struct play *y, const struct player *x, double end_s)
{
    for (size_t i = 0; x->node == x->end && i < x->pl->n_pipes * x->pl->n_gstages; i++) {
        if (x->pl->gstages[i].rank == x->rank) {
            played_of(y, x)->delays[i].rank_end_s = end_s;
            y->n_known++;
        }
    }
}

/** Begins the node at hand where all that it waits for has ended. */
static void try_begin(struct play *y, struct player *x)
{
    struct hv__pipeline *pl = x->pl;
    struct played *p = played_of(y, x);
    if (x->running || x->node == x->end) {
        return;
    }
    double start_s = pl->run.node_start_s[x->node];
    if (!hv_pipe_is_first(pl->pipe, x->node)) {
        start_s = fmax(start_s, p->end_s[x->node - 1]);
    }
    for (int32_t k = 0; k < hv_pipe_n_edges(pl->pipe, x->node); k++) {
        int32_t from = hv_pipe_edge_of(pl->pipe, x->node, k).node;
        if (!p->ended[from]) {
            return;
        }
        double hop_s = hv_pipe_edge_s(pl->pipe, &pl->cost, &pl->run, x->node, k);
        double planned_s = pl->run.node_end_s[from] + hop_s;
        if (p->end_s[from] > pl->run.node_end_s[from] || planned_s > start_s) {
            start_s = fmax(start_s, p->end_s[from] + hop_s);
        }
    }
    x->running = true;
    x->start_s = start_s;
    x->waits_s = 0;
    x->i_exchange = 0;
    x->n_exchanges = hv__list_exchanges(y->l, pl, x->node, &x->exchanges);
    note_delay(y, x, -HUGE_VAL);
}

static double event_of_player_s(const struct player *x)
{
    if (!x->running) {
        return HUGE_VAL;
    }
    double length_s = x->pl->run.node_end_s[x->node] - x->pl->run.node_start_s[x->node];
    double at_s = x->i_exchange < x->n_exchanges ? x->exchanges[x->i_exchange].at_s : length_s;
    return x->start_s + at_s + x->waits_s;
}

/** Runs the exchange that is ready, when reductions leave its lanes. */
static void exchange(struct play *y, struct player *x, double ready_s)
{
    const struct hv__exchange *e = &x->exchanges[x->i_exchange++];
    for (size_t i = 0; i < x->n_lanes; i++) {
        struct sender *w = y->owner[x->lanes[i]];
        if (w != NULL && w->running && w->end_s > ready_s) {
            interrupt(y, w, ready_s);
        }
    }
    double start_s = fmax(ready_s, latest_s(y->reduced_s, x->lanes, x->n_lanes));
    for (size_t i = 0; i < x->n_lanes; i++) {
        y->exchanged_s[x->lanes[i]] = fmax(y->exchanged_s[x->lanes[i]], start_s + e->length_s);
    }
    x->waits_s += start_s - ready_s;
    note_delay(y, x, x->pl->run.node_start_s[x->node] + e->at_s);
}

/** Ends the node at hand, and begins those that waited for it. */
static void end_node(struct play *y, struct player *x, double end_s)
{
    struct played *p = played_of(y, x);
    p->start_s[x->node] = x->start_s;
    p->end_s[x->node] = end_s;
    p->ended[x->node] = true;
    p->waits_s[x->rank] += x->waits_s;
    x->running = false;
    x->node++;
    note_end(y, x, end_s);
    for (size_t i = 0; i < y->n_players; i++) {
        if (y->players[i].i_pipeline == x->i_pipeline) {
            try_begin(y, &y->players[i]);
        }
    }
}

static void play_player(struct play *y, struct player *x)
{
    double now_s = event_of_player_s(x);
    if (x->i_exchange < x->n_exchanges) {
        exchange(y, x, now_s);
    } else {
        end_node(y, x, now_s);
    }
}

/* ---- the whole
 * --------------------------------------------------------------------------------------- */

/** Plays all events, or those until the caller stops the evaluation. Of events at one time buckets
 * come first, unless exchanges do. */
static void play_all(struct play *y)
{
    while (hv__report_progress(y->l, HV__AT_TIMED, NULL) == HV_OK) {
        struct sender *w = NULL;
        struct player *x = NULL;
        double sends_s = HUGE_VAL, others_s = HUGE_VAL, plays_s = HUGE_VAL;
        for (size_t i = 0; i < y->n_senders; i++) {
            double s = event_of_sender_s(y, &y->senders[i]);
            w = s < sends_s ? &y->senders[i] : w;
            others_s = fmin(others_s, fmax(s, sends_s));
            sends_s = fmin(s, sends_s);
        }
        for (size_t i = 0; i < y->n_players; i++) {
            double s = event_of_player_s(&y->players[i]);
            x = s < plays_s ? &y->players[i] : x;
            plays_s = fmin(s, plays_s);
        }
        bool sends = y->exchanges_first ? sends_s < plays_s * (1 - ROUNDING)
                                        : sends_s <= plays_s * (1 + ROUNDING);
        if (w != NULL && (sends || x == NULL)) {
            play_sender(y, w, others_s, plays_s);
        } else if (x != NULL) {
            play_player(y, x);
        } else {
            return;
        }
    }
}

/** True where the passes of a pipeline can be delayed: none of its times are of transfers or
 * gathers beside the passes. */
static bool can_wait(const struct hv__pipeline *pl)
{
    return pl->cost.stream == NULL && pl->moving.n == 0;
}

/** First node of a rank that ends after a time. */
static int32_t first_after(const struct hv__pipeline *pl, size_t rank, double from_s)
{
    int32_t n = pl->pipe->rank_node_at[rank + 1];
    while (n > pl->pipe->rank_node_at[rank] && pl->run.node_end_s[n - 1] > from_s) {
        n--;
    }
    return n;
}

/** Adds the ranks of a pipeline as players, from a time on. */
static void add_players(struct play *y, size_t i_pipeline, double from_s)
{
    struct hv__pipeline *pl = &y->l->pipelines.items[i_pipeline];
    for (size_t r = 0; r < pl->n_ranks; r++) {
        struct player x = {.pl = pl, .i_pipeline = i_pipeline, .rank = r};
        x.node = first_after(pl, r, from_s);
        x.end = pl->pipe->rank_node_at[r + 1];
        find_lanes(y, &x);
        y->players[y->n_players++] = x;
    }
}

/** True where an exchange of a player may meet a reduction. */
static bool meets(const struct player *x, const bool *reduces)
{
    bool lanes = false, exchanges = false;
    for (size_t i = 0; i < x->n_lanes; i++) {
        lanes = lanes || reduces[x->lanes[i]];
    }
    for (int32_t n = x->node; lanes && !exchanges && n < x->end; n++) {
        exchanges = hv__exchanges_s(x->pl, n) > 0;
    }
    return exchanges;
}

/** Opens the times of a pipeline that is played. */
static void open_played(struct play *y, size_t i_pipeline)
{
    const struct hv__pipeline *pl = &y->l->pipelines.items[i_pipeline];
    struct played *p = &y->pipelines[i_pipeline];
    size_t n = (size_t)pl->pipe->n_nodes, n_stages = pl->n_pipes * pl->n_gstages;
    p->start_s = hv_arena_copy(y->l->arena, pl->run.node_start_s, n, sizeof(double));
    p->end_s = hv_arena_copy(y->l->arena, pl->run.node_end_s, n, sizeof(double));
    p->ended = hv_arena_new(y->l->arena, bool, n + 1);
    memset(p->ended, true, n);
    p->waits_s = hv_arena_new(y->l->arena, double, pl->n_ranks + 1);
    p->delays = hv_arena_new(y->l->arena, struct hv__delays, n_stages + 1);
    for (size_t i = 0; i < n_stages; i++) {
        p->delays[i].known_until_s = -HUGE_VAL;
        p->delays[i].rank_end_s = HUGE_VAL;
    }
    p->last_node = hv_arena_new(y->l->arena, int32_t, n_stages + 1);
    memset(p->last_node, -1, n_stages * sizeof *p->last_node);
    for (int32_t k = 0; k < pl->pipe->n_nodes; k++) { /* nodes of a rank are in its order */
        for (size_t i = hv_pipe_first_op(pl->pipe, k); i < hv_pipe_first_op(pl->pipe, k + 1); i++) {
            const struct hv_op *op = &pl->schedule->ops[i];
            if (op->kind == HV_OP_W || op->kind == HV_OP_BW) {
                p->last_node[(size_t)op->pipe * pl->n_gstages + (size_t)op->stage] = k;
            }
        }
    }
}

/** The global stage of its pipeline that a holder is, or is a part of. */
static size_t gstage_of(const struct hv__pipeline *pl, const struct hv__holder *h)
{
    for (size_t i = 0; i < pl->n_pipes * pl->n_gstages; i++) {
        const struct hv__gstage *g = &pl->gstages[i];
        bool part = g->rank == h->g->rank && g->range.from2 <= h->g->range.from2 &&
                    g->range.to2 >= h->g->range.to2;
        if (g == h->g || (part && h->stage != &pl->replica->stages[g->rank])) {
            return i;
        }
    }
    return 0;
}

/** Lets the gradients of holders come with the delays of their passes. */
static void delay_holders(struct play *y, struct hv__holder *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct played *p = &y->pipelines[h[i].pipeline];
        if (p->end_s != NULL) {
            size_t at = gstage_of(&y->l->pipelines.items[h[i].pipeline], &h[i]);
            h[i].delays = &p->delays[at];
        }
    }
}

/** Lets the gradients of a stream come with the delays of its passes, from its first bucket on,
 * which was taken without. */
static void delay_stream(struct play *y, struct sender *w)
{
    const struct hv__bucket_stream *s = w->stream;
    w->bucket.certain = false;
    w->seen = SIZE_MAX;
    delay_holders(y, s->holders, s->n_holders);
    if (s->blocks != NULL) {
        delay_holders(y, s->blocks->holders, s->blocks->n_holders);
    }
    for (size_t i = 0; i < s->n_ends; i++) {
        delay_holders(y, s->ends[i]->holders, s->ends[i]->n_holders);
    }
}

/** Gives a pipeline the times that were played. Waits of exchanges are exposed reductions. */
static void settle(struct play *y, size_t i_pipeline)
{
    struct hv__pipeline *pl = &y->l->pipelines.items[i_pipeline];
    struct played *p = &y->pipelines[i_pipeline];
    struct hv_pipe_rank *idle = hv_arena_copy(y->l->arena, pl->idle, pl->n_ranks, sizeof *idle);
    double busy_s = pl->run.busy_s;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        int32_t last = pl->pipe->rank_node_at[r + 1] - 1;
        struct hv__rank *rk = &pl->ranks[r];
        if (last >= pl->pipe->rank_node_at[r]) {
            idle[r].last_s += p->end_s[last] - pl->run.node_end_s[last];
        }
        rk->compute_end_s = idle[r].last_s;
        rk->sync_end_s = fmax(rk->compute_end_s, rk->stream_end_s);
        rk->sync_exposed_s += p->waits_s[r];
    }
    pl->idle = idle;
    pl->run.node_start_s = p->start_s;
    pl->run.node_end_s = p->end_s;
    pl->like = NULL;
    hv_pipe_summarise(pl->pipe, &pl->run);
    pl->run.busy_s = busy_s;
    y->l->iteration.pipeline_s = fmax(y->l->iteration.pipeline_s, pl->run.makespan_s);
}

/** The streams of a plan, bucket by bucket, each at its first, and lanes with nothing on them. */
static struct play open_play(struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    struct play y = {.l = l,
                     .exchanges_first = l->plan->sync.priority == HV_PRIORITY_AFTER_A2A,
                     .n_network = c->n_nodes + c->n_links};
    size_t flat = l->pipelines.rank_at[l->pipelines.n], n_lanes = y.n_network + flat;
    struct hv__bucket_stream *s = hv__bucket_streams(l, &y.n_senders);
    y.pipelines = hv_arena_new(l->arena, struct played, l->pipelines.n + 1);
    y.players = hv_arena_new(l->arena, struct player, flat + 1);
    y.senders = hv_arena_new(l->arena, struct sender, y.n_senders + 1);
    y.reduced_s = hv_arena_new(l->arena, double, n_lanes + 1);
    y.exchanged_s = hv_arena_new(l->arena, double, n_lanes + 1);
    y.rank_s = hv_arena_new(l->arena, double, flat + 1);
    y.owner = hv_arena_new(l->arena, struct sender *, n_lanes + 1);
    for (size_t i = 0; i < y.n_senders; i++) {
        y.senders[i].stream = &s[i];
        take_bucket(&y, &y.senders[i]);
    }
    return y;
}

/** Lets a player begin behind the nodes that have ended, whose gradients come as planned. */
static void open_player(struct play *y, struct player *x)
{
    struct played *p = played_of(y, x);
    memset(p->ended + x->node, false, (size_t)(x->end - x->node));
    for (size_t i = 0; i < x->pl->n_pipes * x->pl->n_gstages; i++) {
        if (x->pl->gstages[i].rank == x->rank && p->last_node[i] < x->node) {
            p->delays[i].known_until_s = HUGE_VAL;
        }
    }
    note_end(y, x, x->pl->ranks[x->rank].compute_end_s);
}

/** True where a stage of a pipeline has experts on several ranks. */
static bool has_exchanges(const struct hv__pipeline *pl)
{
    for (size_t i = 0; i < pl->replica->n_stages; i++) {
        if (hv_stage_experts_over(&pl->replica->stages[i]) > 1) {
            return true;
        }
    }
    return false;
}

/** True where passes of the plan may have all-to-alls while gradients are reduced, of the same
 * ranks or of others. */
static bool may_meet(const struct hv__lowered *l)
{
    bool any = false;
    for (size_t i = 0; i < l->pipelines.n && !any; i++) {
        any = can_wait(&l->pipelines.items[i]) && has_exchanges(&l->pipelines.items[i]);
    }
    return any;
}

/** Chooses the pipelines that are played; false: no exchange meets a reduction. */
static bool choose_players(struct play *y, bool *in_turns, double *from_s)
{
    bool any = false,
         *reduces = hv_arena_new(y->l->arena, bool,
                                 y->n_network + y->l->pipelines.rank_at[y->l->pipelines.n] + 1);
    *from_s = HUGE_VAL;
    for (size_t i = 0; i < y->n_senders; i++) {
        const struct sender *w = &y->senders[i];
        *from_s = w->more ? fmin(*from_s, w->bucket.ready_s) : *from_s;
        for (size_t k = 0; w->more && k < w->n_lanes; k++) {
            reduces[w->lanes[k]] = true;
        }
    }
    for (size_t i = 0; i < y->l->pipelines.n; i++) {
        size_t first = y->n_players;
        if (can_wait(&y->l->pipelines.items[i])) {
            add_players(y, i, *from_s);
        }
        for (size_t k = first; k < y->n_players; k++) {
            in_turns[i] = in_turns[i] || meets(&y->players[k], reduces);
        }
        y->n_players = in_turns[i] ? y->n_players : first;
        any = any || in_turns[i];
    }
    return any;
}

bool hv__reduce_in_turns(struct hv__lowered *l)
{
    if (!may_meet(l)) {
        return false;
    }
    struct play y = open_play(l);
    bool *in_turns = hv_arena_new(l->arena, bool, l->pipelines.n + 1);
    double from_s;
    if (!choose_players(&y, in_turns, &from_s)) {
        return false;
    }
    y.traffic = hv__links_left_after(l, from_s, in_turns);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        if (in_turns[i]) {
            open_played(&y, i);
        }
    }
    for (size_t i = 0; i < y.n_players; i++) {
        open_player(&y, &y.players[i]);
    }
    for (size_t i = 0; i < y.n_senders; i++) {
        delay_stream(&y, &y.senders[i]);
    }
    for (size_t i = 0; i < y.n_players; i++) {
        try_begin(&y, &y.players[i]);
    }
    play_all(&y);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        if (in_turns[i]) {
            settle(&y, i);
        }
    }
    for (size_t i = 0; i < y.n_pieces; i++) {
        const struct piece *p = &y.pieces[i];
        hv__count_reductions(l, p->stream, &p->reduced);
    }
    return true;
}
