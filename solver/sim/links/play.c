/*
 * Simulates pipelines whose transfers share links, event by event: when an operation ends, its
 * output is sent; when a transfer ends, other transfers get its rate, and the operations that
 * waited for it may start. Transfers of one channel run one after the other, in the order in which
 * they are ready, as sends of one stream do.
 */
#include "solver/sim/events/heap.h"
#include "solver/sim/links/links_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An edge, at its sender. */
struct sent {
    int32_t to, hop;
    size_t edge; /* hv_pipe_edge_number */
};

/* One transfer: adjacent edges of one sender and one hop. */
struct parcel {
    size_t from, to;
    double ready_s;
};

/* Transfers of one channel, or of a hop that has none, in order. Of a lane of moves struct
 * hv__moves has them. */
struct lane {
    size_t pipe;
    struct parcel *parcels; /* those that are ready */
    size_t n, n_gone;
    double free_s; /* of a hop that shares with none: its last transfer is through */
};

/* The stream of a rank while it uses links. */
struct tasks {
    int32_t exchange; /* number among the ranks and streams that use links, or -1 */
    size_t done;      /* first task that has not ended */
    int32_t ended;    /* first node that has not ended */
    bool under_way;   /* that task is */
    bool late;        /* the present node has what the stream beside it adds to it */
};

/* A rank of any pipe. */
struct place {
    size_t pipe;
    int32_t rank;
};

/* One pipe being played. */
struct played {
    const struct hv_link_pipe *p;
    size_t *at; /* [n_nodes + 1] into sent: edges by sender */
    struct sent *sent;
    int32_t *open; /* [n_nodes] edges that have not arrived */
    int32_t *rank; /* [n_nodes] */
    int32_t *next; /* [n_ranks] first node that has not started */
    int32_t *told; /* [n_ranks] first node whose end may still become an event */
    bool *waits;   /* [n_ranks] an end event of the rank is pending; later ends follow it. Of a rank
                      that uses links: it runs, or its start is an event */
    int32_t *exchange;   /* [n_ranks] number among the ranks and streams that use links, or -1 */
    struct tasks *tasks; /* [n_ranks] of streams that use links; NULL: none does */
    size_t first_rank;   /* number through all pipes */
    double *ready_s;     /* [n_nodes] the latest arrival so far, and not_before_s */
    double *edge_s;
    size_t first_hop, first_node, first_move; /* numbers through all pipes */
    /* of a pipe with moves */
    struct hv__moves moves;
    int32_t *begun; /* [n_ranks] first node whose start is not an event yet */
    struct hv_pipe_held *held;
    double *least_end_s; /* [n_nodes] when the moves that arrive before its end have */
    bool *stuck; /* [n_ranks] of a rank that uses links: only moves keep its node from ending */
};

struct play {
    struct hv_arena scratch;
    struct played *pipes;
    size_t n_pipes, n_hops, n_nodes, n_moves, n_ranks;
    struct place *places; /* [n_ranks] ranks by their number */
    struct hv__sky sky;
    struct lane *lanes; /* by hop through all pipes: of the first hop of a channel */
    size_t *lane_of;    /* [n_hops] */
    struct hv__heap heap;
    size_t cap;
};

/* ---- edges by sender ---- */

/* keeps the few edges of one sender sorted by hop; order of arrival within a hop */
static void insert(struct sent *list, size_t n, struct sent x)
{
    for (; n > 0 && list[n - 1].hop > x.hop; n--) {
        list[n] = list[n - 1];
    }
    list[n] = x;
}

static void sort_edges(struct hv_arena *a, struct played *x)
{
    const struct hv_pipe *g = x->p->g;
    size_t n = (size_t)g->n_nodes;
    x->at = hv_arena_new(a, size_t, n + 2);
    x->open = hv_arena_new(a, int32_t, n + 1);
    for (int32_t k = 0; k < g->n_nodes; k++) {
        x->open[k] = hv_pipe_n_edges(g, k);
        for (int32_t e = 0; e < x->open[k]; e++) {
            x->at[hv_pipe_edge_of(g, k, e).node + 1]++;
        }
    }
    for (size_t k = 1; k <= n; k++) {
        x->at[k] += x->at[k - 1];
    }
    uint32_t *count = hv_arena_new(a, uint32_t, n + 1);
    x->sent = hv_arena_new(a, struct sent, x->at[n] + 1);
    for (int32_t k = 0; k < g->n_nodes; k++) {
        for (int32_t e = 0; e < x->open[k]; e++) {
            struct hv_pipe_edge d = hv_pipe_edge_of(g, k, e);
            insert(x->sent + x->at[d.node], count[d.node]++,
                   (struct sent){k, d.hop, hv_pipe_edge_number(g, k, e)});
        }
    }
}

/* finds the lane of each hop of a pipe: that of the first hop of its channel, or its own. O(hops)
 */
static void find_lanes(struct play *y, const struct played *x)
{
    int32_t n_hops = hv_link_n_hops(x->p), n_channels = 0;
    for (int32_t h = 0; h < n_hops; h++) {
        int32_t channel = x->p->hops[h].channel;
        n_channels = channel > n_channels ? channel : n_channels;
    }
    size_t *first =
        hv_arena_new(&y->scratch, size_t, (size_t)n_channels + 1); /* hop + 1; 0: none */
    for (int32_t h = 0; h < n_hops; h++) {
        int32_t channel = x->p->hops[h].channel;
        size_t hop = x->first_hop + (size_t)h;
        if (channel > 0 && first[channel] == 0) {
            first[channel] = hop + 1;
        }
        y->lane_of[hop] = channel > 0 ? first[channel] - 1 : hop;
    }
}

/* room for all parcels of each lane */
static void open_lanes(struct play *y, size_t i)
{
    const struct played *x = &y->pipes[i];
    const struct hv_pipe *g = x->p->g;
    size_t *most = hv_arena_new(&y->scratch, size_t, (size_t)g->n_hops + 1), all = 0;
    find_lanes(y, x);
    for (size_t k = 0; k < x->at[g->n_nodes]; k++) {
        if (x->sent[k].hop >= 0) {
            most[y->lane_of[x->first_hop + (size_t)x->sent[k].hop] - x->first_hop]++;
            all++;
        }
    }
    struct parcel *parcels = hv_arena_new(&y->scratch, struct parcel, all + 1);
    for (int32_t h = 0; h < hv_link_n_hops(x->p); h++) {
        y->lanes[x->first_hop + (size_t)h] = (struct lane){.pipe = i, .parcels = parcels};
        parcels += h < g->n_hops ? most[h] : 0;
    }
}

/* streams that use links begin with their first task */
static void open_streams(struct play *y, struct played *x)
{
    int32_t p = x->p->g->s.n_ranks;
    x->first_rank = y->n_ranks;
    y->n_ranks += (size_t)p;
    x->tasks = x->p->streams ? hv_arena_new(&y->scratch, struct tasks, (size_t)p) : NULL;
    for (int32_t r = 0; x->tasks && r < p; r++) {
        x->tasks[r] = (struct tasks){
            .exchange = -1, .done = x->p->c->stream->task_at[r], .ended = x->p->g->rank_node_at[r]};
    }
}

static void list_places(struct play *y)
{
    y->places = hv_arena_new(&y->scratch, struct place, y->n_ranks + 1);
    for (size_t i = 0; i < y->n_pipes; i++) {
        for (int32_t r = 0; r < y->pipes[i].p->g->s.n_ranks; r++) {
            y->places[y->pipes[i].first_rank + (size_t)r] = (struct place){i, r};
        }
    }
}

/* room for what the moves of a pipe do */
static void open_moves(struct play *y, struct hv_arena *a, struct played *x)
{
    const struct hv_pipe *g = x->p->g;
    if (x->p->n_moves > 0) {
        hv__moves_open(&x->moves, &y->scratch, x->p, x->open);
        x->begun = hv_arena_copy(&y->scratch, x->next, (size_t)g->s.n_ranks, sizeof *x->begun);
        x->held = hv_arena_new(a, struct hv_pipe_held, (size_t)g->n_nodes + 1);
        x->least_end_s = hv_arena_new(&y->scratch, double, (size_t)g->n_nodes + 1);
        x->stuck = hv_arena_new(&y->scratch, bool, (size_t)g->s.n_ranks);
    }
}

static void open_play(struct play *y, struct hv_arena *a, const struct hv_links *s)
{
    y->n_pipes = s->n_pipes;
    y->pipes = hv_arena_new(&y->scratch, struct played, s->n_pipes + 1);
    for (size_t i = 0; i < s->n_pipes; i++) {
        struct played *x = &y->pipes[i];
        const struct hv_pipe *g = s->pipes[i].g;
        *x = (struct played){.p = &s->pipes[i],
                             .first_hop = y->n_hops,
                             .first_node = y->n_nodes,
                             .first_move = y->n_moves};
        x->next = hv_arena_new(&y->scratch, int32_t, (size_t)g->s.n_ranks);
        memcpy(x->next, g->rank_node_at, (size_t)g->s.n_ranks * sizeof *x->next);
        x->told = hv_arena_copy(&y->scratch, x->next, (size_t)g->s.n_ranks, sizeof *x->told);
        x->waits = hv_arena_new(&y->scratch, bool, (size_t)g->s.n_ranks);
        x->rank = hv_arena_new(&y->scratch, int32_t, (size_t)g->n_nodes + 1);
        for (int32_t r = 0; r < g->s.n_ranks; r++) {
            for (int32_t n = g->rank_node_at[r]; n < g->rank_node_at[r + 1]; n++) {
                x->rank[n] = r;
            }
        }
        x->exchange = hv_arena_new(&y->scratch, int32_t, (size_t)g->s.n_ranks);
        for (int32_t r = 0; r < g->s.n_ranks; r++) {
            x->exchange[r] = -1;
        }
        x->ready_s = hv_arena_new(&y->scratch, double, (size_t)g->n_nodes + 1);
        if (x->p->not_before_s != NULL && g->n_nodes > 0) {
            memcpy(x->ready_s, x->p->not_before_s, (size_t)g->n_nodes * sizeof *x->ready_s);
        }
        x->edge_s = hv_arena_new(a, double, hv_pipe_n_all_edges(g) + 1);
        sort_edges(&y->scratch, x);
        open_moves(y, a, x);
        open_streams(y, x);
        y->n_moves += x->p->n_moves;
        y->n_hops += (size_t)hv_link_n_hops(x->p);
        y->n_nodes += (size_t)g->n_nodes;
    }
    y->lanes = hv_arena_new(&y->scratch, struct lane, y->n_hops + 1);
    y->lane_of = hv_arena_new(&y->scratch, size_t, y->n_hops + 1);
    for (size_t i = 0; i < s->n_pipes; i++) {
        open_lanes(y, i);
    }
    list_places(y);
    hv__sky_open(&y->sky, &y->scratch, s);
    for (size_t k = 0; k < y->sky.n_exchanges; k++) {
        const struct hv__exchange *e = &y->sky.exchanges[k];
        struct played *x = &y->pipes[e->pipe];
        *(e->stream ? &x->tasks[e->rank].exchange : &x->exchange[e->rank]) = (int32_t)k;
    }
}

/* ---- events ---- */

/* An event is the end of a node, the landing of a flight at the rate of its latest change, or
 * (below 0) one of a rank that uses links, or (below these) the time of a move that waits for the
 * start of a node. */
static void push(struct play *y, double at_s, int64_t id)
{
    if (y->heap.n == y->cap) {
        y->cap = y->cap > 0 ? 2 * y->cap : 256;
        y->heap.items = hv_xrealloc(y->heap.items, y->cap, sizeof *y->heap.items);
    }
    hv__heap_push(&y->heap, at_s, id);
}

static int64_t landing_id(const struct play *y, size_t hop)
{
    int64_t n = (int64_t)(y->n_hops + y->sky.n_exchanges);
    return (int64_t)y->n_nodes + (int64_t)hop + n * (int64_t)y->sky.flights[hop].change;
}

/* true where nothing is sent, and no move begins, when the node ends */
static bool ends_quietly(const struct played *x, int32_t n)
{
    const struct hv__moves *m = &x->moves;
    return x->at[n] == x->at[n + 1] && (!m->items || m->end_at[n] == m->end_at[n + 1]);
}

/* the next end on a rank at which something is sent, once it is known */
static void tell_end(struct play *y, struct played *x, int32_t rank)
{
    int32_t n = x->told[rank];
    while (n < x->next[rank] && ends_quietly(x, n)) {
        n++;
    }
    x->waits[rank] = n < x->next[rank];
    x->told[rank] = x->waits[rank] ? n + 1 : n;
    if (x->waits[rank]) {
        push(y, x->p->run->node_end_s[n], (int64_t)(x->first_node + (size_t)n));
    }
}

/* True where events decide when the nodes of a rank start and end. */
static bool is_live(const struct played *x, int32_t rank)
{
    return x->exchange[rank] >= 0 || (x->tasks && x->tasks[rank].exchange >= 0);
}

/* The stream of a rank that uses links, or NULL. */
static struct tasks *tasks_of(const struct played *x, int32_t rank)
{
    return x->tasks && x->tasks[rank].exchange >= 0 ? &x->tasks[rank] : NULL;
}

/* Events of ranks: the start of a node, the end of a task that uses no link. */
enum { NODE_STARTS, TASK_ENDS, RANK_EVENTS };

static int64_t rank_event(const struct played *x, int32_t rank, int what)
{
    return -1 - (int64_t)RANK_EVENTS * (int64_t)(x->first_rank + (size_t)rank) - what;
}

/* when a node whose inputs have arrived can start: after the one before it, and the gather that it
 * waits for */
static double ready_s(const struct played *x, int32_t rank, int32_t n)
{
    const struct hv_pipe_run *run = x->p->run;
    const struct hv_stream *s = x->p->c->stream;
    double before = hv_pipe_is_first(x->p->g, n) ? 0 : run->node_end_s[n - 1], gathered = 0;
    if (s && tasks_of(x, rank)) {
        gathered = s->needs[n] >= 0 ? run->stream->end_s[s->needs[n]] : 0;
    } else if (s) {
        gathered = hv_stream_ready_s(s, run->stream, rank, n, before);
    }
    double ready = before < x->ready_s[n] ? x->ready_s[n] : before;
    return ready < gathered ? gathered : ready;
}

/* duration of a node whose start is set, beside its rank's stream; where that uses links, alone */
static double seconds_of(const struct played *x, int32_t rank, int32_t n)
{
    const struct hv_pipe_run *run = x->p->run;
    const struct hv_stream *s = x->p->c->stream;
    double d = hv_pipe_node_duration_s(x->p->g, x->p->c, n);
    return s && !tasks_of(x, rank)
               ? d + hv_stream_slows_s(s, run->stream, rank, run->node_start_s[n], d)
               : d;
}

/* schedules the start of the next node of a rank that uses links, once it is known */
static void tell_start(struct play *y, struct played *x, int32_t rank)
{
    const struct hv_pipe *g = x->p->g;
    int32_t n = x->next[rank];
    const struct tasks *t = tasks_of(x, rank);
    if (x->waits[rank] || n == g->rank_node_at[rank + 1] || x->open[n] > 0 ||
        (t && x->p->c->stream->needs[n] >= (int64_t)t->done)) {
        return;
    }
    x->waits[rank] = true;
    x->p->run->node_start_s[n] = ready_s(x, rank, n);
    push(y, x->p->run->node_start_s[n], rank_event(x, rank, NODE_STARTS));
}

/* schedules the moves that may begin when a node starts, or some time later */
static void tell_moves(struct play *y, struct played *x, int32_t rank, int32_t n)
{
    const struct hv__moves *m = &x->moves;
    if (!m->items || n < x->begun[rank]) {
        return;
    }
    x->begun[rank] = n + 1;
    for (size_t k = m->start_at[n]; k < m->start_at[n + 1]; k++) {
        int32_t move = m->by_start[k];
        int64_t id =
            (int64_t)RANK_EVENTS * (int64_t)y->n_ranks + (int64_t)(x->first_move + (size_t)move);
        push(y, x->p->run->node_start_s[n] + m->items[move].delay_s, -1 - id);
    }
}

/* true where moves that arrive before the node ends have not */
static bool is_held_up(const struct played *x, int32_t n)
{
    return x->moves.items && x->moves.holds[n] > 0;
}

/* the end of a node of so many seconds; moves that arrive before it have */
static double end_of(const struct played *x, int32_t n, double seconds)
{
    double end_s = x->p->run->node_start_s[n] + seconds;
    return x->least_end_s && x->least_end_s[n] > end_s ? x->least_end_s[n] : end_s;
}

/* starts the nodes of a rank that can start: all inputs have arrived, and the end of the previous
 * node is known */
static void start_rank(struct play *y, struct played *x, int32_t rank)
{
    const struct hv_pipe *g = x->p->g;
    struct hv_pipe_run *run = x->p->run;
    if (is_live(x, rank)) {
        tell_start(y, x, rank);
        return;
    }
    for (int32_t n = x->next[rank]; n < g->rank_node_at[rank + 1] && x->open[n] == 0; n++) {
        run->node_start_s[n] = ready_s(x, rank, n);
        tell_moves(y, x, rank, n);
        if (is_held_up(x, n)) {
            break;
        }
        run->node_end_s[n] = end_of(x, n, seconds_of(x, rank, n));
        x->next[rank] = n + 1;
    }
    if (!x->waits[rank]) {
        tell_end(y, x, rank);
    }
}

static void arrive(struct play *y, struct played *x, const struct sent *e, double sent_s,
                   double at_s)
{
    x->edge_s[e->edge] = at_s - sent_s;
    x->ready_s[e->to] = x->ready_s[e->to] < at_s ? at_s : x->ready_s[e->to];
    int32_t rank = x->rank[e->to];
    if (--x->open[e->to] == 0 && x->next[rank] == e->to) {
        start_rank(y, x, rank);
    }
}

/* updates the rates of all transfers that share links with a hop, and the times at which they land
 */
static void balance(struct play *y, size_t hop, double now_s)
{
    struct hv__sky *s = &y->sky;
    hv__sky_balance(s, hop, now_s);
    for (size_t i = 0; i < s->n_found; i++) {
        struct hv__flight *f = &s->flights[s->found[i]];
        if (f->told != f->change) {
            f->told = f->change;
            push(y, now_s + f->left / f->per_s, landing_id(y, (size_t)s->found[i]));
        }
    }
}

/* bytes of a parcel over those of its hop */
static double parcel_scale(const struct played *x, const struct sent *sent)
{
    const struct hv_pipe *g = x->p->g;
    return hv_pipe_hop_scale(g, x->p->c, hv_pipe_hop_end(g, sent->to, sent->hop));
}

static void take_off(struct play *y, size_t hop, double now_s)
{
    hv__sky_set(&y->sky, hop, true, now_s);
    if (hop < y->n_hops) { /* no exchange of a rank */
        const struct lane *l = &y->lanes[y->lane_of[hop]];
        const struct played *x = &y->pipes[l->pipe];
        y->sky.flights[hop].left = parcel_scale(x, &x->sent[l->parcels[l->n_gone].from]);
    }
    balance(y, hop, now_s);
}

/* ---- moves ---- */

/* the node whose end or start began a move, or the moves before it */
static int32_t origin_of(const struct hv__moves *m, int32_t move)
{
    while (m->items[move].node < 0 && m->items[move].behind >= 0) {
        move = m->items[move].behind;
    }
    return m->items[move].node;
}

/* a node that must not end before moves have arrived */
static void let_end(struct play *y, struct played *x, int32_t node, double at_s)
{
    int32_t rank = x->rank[node];
    x->least_end_s[node] = fmax(x->least_end_s[node], at_s);
    if (--x->moves.holds[node] > 0) {
        return;
    }
    if (!is_live(x, rank) && x->next[rank] == node) {
        start_rank(y, x, rank);
    } else if (x->stuck[rank] && x->next[rank] == node + 1) {
        x->stuck[rank] = false;
        push(y, x->least_end_s[node], (int64_t)(x->first_node + (size_t)node));
    }
}

/* a node that must not start before moves have arrived */
static void let_start(struct play *y, struct played *x, int32_t node, struct hv_pipe_held by)
{
    int32_t rank = x->rank[node];
    if (x->held[node].until_s <= by.until_s) {
        x->held[node] = by;
    }
    x->ready_s[node] = fmax(x->ready_s[node], by.until_s);
    if (--x->open[node] == 0 && x->next[rank] == node) {
        start_rank(y, x, rank);
    }
}

/* the next move of a lane takes off, where it may and the one before it has landed */
static void send_move(struct play *y, struct played *x, int32_t lane, double now_s)
{
    size_t hop = x->first_hop + (size_t)x->p->g->n_hops + (size_t)lane;
    const struct hv__moves *m = &x->moves;
    size_t next = m->next[lane];
    if (y->sky.flights[hop].under_way || next == m->lane_at[lane + 1] ||
        m->open[m->of_lane[next]] > 0) {
        return;
    }
    int32_t move = m->of_lane[next];
    const struct hv_link_move *is = &m->items[move];
    x->p->moved[move].start_s = now_s;
    hv__sky_set(&y->sky, hop, true, now_s);
    y->sky.flights[hop].left = is->scale;
    balance(y, hop, now_s);
    if (is->gates >= 0 && is->streams) {
        let_start(y, x, is->gates, (struct hv_pipe_held){now_s, origin_of(m, move)});
    }
}

/* one thing less for some moves to wait for */
static void let_moves(struct play *y, struct played *x, const int32_t *moves, size_t n,
                      double now_s)
{
    for (size_t i = 0; i < n; i++) {
        if (--x->moves.open[moves[i]] == 0) {
            send_move(y, x, x->moves.items[moves[i]].lane, now_s);
        }
    }
}

static void let_moves_at_end(struct play *y, struct played *x, int32_t node, double now_s)
{
    const struct hv__moves *m = &x->moves;
    if (m->items) {
        let_moves(y, x, m->by_end + m->end_at[node], m->end_at[node + 1] - m->end_at[node], now_s);
    }
}

static void land_move(struct play *y, size_t hop, double now_s)
{
    struct played *x = &y->pipes[y->lanes[hop].pipe];
    struct hv__moves *m = &x->moves;
    int32_t lane = (int32_t)(hop - x->first_hop) - x->p->g->n_hops;
    int32_t move = m->of_lane[m->next[lane]++];
    const struct hv_link_move *is = &m->items[move];
    x->p->moved[move].end_s = now_s;
    hv__sky_set(&y->sky, hop, false, now_s);
    send_move(y, x, lane, now_s);
    if (!y->sky.flights[hop].under_way) {
        balance(y, hop, now_s);
    }
    let_moves(y, x, m->behind + m->behind_at[move], m->behind_at[move + 1] - m->behind_at[move],
              now_s);
    double at_s = now_s + (is->back ? y->sky.flights[hop].hop->latency_s : 0);
    if (is->gates >= 0 && is->streams) {
        let_end(y, x, is->gates, at_s);
    } else if (is->gates >= 0) {
        let_start(y, x, is->gates, (struct hv_pipe_held){at_s, origin_of(m, move)});
    }
}

/* ---- results of nodes ---- */

static void land(struct play *y, size_t hop, double now_s)
{
    struct lane *l = &y->lanes[y->lane_of[hop]];
    struct hv__flight *f = &y->sky.flights[hop];
    struct played *x = &y->pipes[l->pipe];
    struct parcel *p = &l->parcels[l->n_gone++];
    hv__sky_set(&y->sky, hop, false, now_s);
    if (l->n_gone < l->n) {
        take_off(y, x->first_hop + (size_t)x->sent[l->parcels[l->n_gone].from].hop, now_s);
    }
    if (!f->under_way) {
        balance(y, hop, now_s);
    }
    for (size_t k = p->from; k < p->to; k++) {
        arrive(y, x, &x->sent[k], p->ready_s, now_s + f->hop->latency_s);
    }
}

/* sends over links that no other transfer ever uses, so the landing time is final */
static double land_alone(struct lane *l, const struct hv__flight *f, double scale, double now_s)
{
    double start_s = now_s > l->free_s ? now_s : l->free_s;
    l->free_s = start_s + scale / f->alone_per_s;
    return l->free_s + f->hop->latency_s;
}

/* a node has ended: results that use no link arrive after their fixed time, the rest is sent */
static void end_node(struct play *y, struct played *x, int32_t node, double now_s)
{
    let_moves_at_end(y, x, node, now_s);
    for (size_t k = x->at[node], to; k < x->at[node + 1]; k = to) {
        int32_t h = x->sent[k].hop;
        for (to = k; to < x->at[node + 1] && x->sent[to].hop == h; to++) {
        }
        size_t hop = x->first_hop + (size_t)(h < 0 ? 0 : h);
        bool linked = h >= 0 && y->sky.flights[hop].hop->n_loads > 0;
        if (linked && !y->sky.flights[hop].alone) {
            struct lane *l = &y->lanes[y->lane_of[hop]];
            l->parcels[l->n++] = (struct parcel){k, to, now_s};
            if (l->n == l->n_gone + 1) {
                take_off(y, hop, now_s);
            }
            continue;
        }
        const struct hv_op *end = hv_pipe_hop_end(x->p->g, x->sent[k].to, h);
        double at_s = linked ? land_alone(&y->lanes[y->lane_of[hop]], &y->sky.flights[hop],
                                          hv_pipe_hop_scale(x->p->g, x->p->c, end), now_s)
                             : now_s + hv_pipe_op_hop_s(x->p->g, x->p->c, end, h);
        for (size_t e = k; e < to; e++) {
            arrive(y, x, &x->sent[e], now_s, at_s);
        }
    }
}

double hv_links_node_frac(const struct hv_pipe *g, const struct hv_pipe_cost *c, const double *frac,
                          int32_t node)
{
    size_t first = hv_pipe_first_op(g, node), end = hv_pipe_first_op(g, node + 1);
    double most = 0, sum_s = 0;
    for (size_t i = first; i < end; i++) {
        const struct hv_op *op = &g->s.ops[i];
        size_t stage = (size_t)op->pipe * (size_t)g->s.n_stages + (size_t)op->stage;
        double own = frac[stage * HV_OP_KIND_N + (size_t)op->kind];
        most = own > most ? own : most;
        sum_s += end - first > 1 ? own * hv_pipe_op_duration_s(g, c, i) : 0;
    }
    double all_s = end - first > 1 ? hv_pipe_node_duration_s(g, c, node) : 0;
    return all_s > 0 ? fmin(1, sum_s / all_s) : most;
}

/* starts the next node of a rank that uses links */
static void start_exchange(struct play *y, struct played *x, int32_t rank, double now_s)
{
    int32_t node = x->next[rank]++, exchange = x->exchange[rank];
    tell_moves(y, x, rank, node);
    double frac = exchange >= 0 ? hv_links_node_frac(x->p->g, x->p->c, x->p->frac, node) : 0;
    double s = seconds_of(x, rank, node);
    if (frac > 0 && s > 0) {
        hv__sky_price(&y->sky, (size_t)exchange, s, frac);
        take_off(y, y->n_hops + (size_t)exchange, now_s);
    } else {
        push(y, now_s + s, (int64_t)(x->first_node + (size_t)node));
    }
}

/* starts the next task of a stream that uses links, where the node that it waits for has ended */
static void start_task(struct play *y, struct played *x, int32_t rank, double now_s)
{
    struct tasks *t = tasks_of(x, rank);
    const struct hv_stream *s = x->p->c->stream;
    if (!t || t->under_way || t->done == s->task_at[rank + 1] ||
        s->tasks[t->done].before > t->ended) {
        return;
    }
    double time_s = s->tasks[t->done].time_s, frac = x->p->task_frac[t->done];
    t->under_way = true;
    x->p->run->stream->start_s[t->done] = now_s;
    if (frac > 0 && time_s > 0) {
        hv__sky_price(&y->sky, (size_t)t->exchange, time_s, frac);
        take_off(y, y->n_hops + (size_t)t->exchange, now_s);
    } else {
        push(y, now_s + time_s, rank_event(x, rank, TASK_ENDS));
    }
}

static void end_task(struct play *y, struct played *x, int32_t rank, double now_s)
{
    struct tasks *t = &x->tasks[rank];
    x->p->run->stream->end_s[t->done++] = now_s;
    t->under_way = false;
    start_task(y, x, rank, now_s);
    tell_start(y, x, rank);
}

/* Seconds of the tasks beside a node of a rank until now. */
static double beside_s(const struct played *x, int32_t rank, int32_t node, double now_s)
{
    const struct hv_stream_run *run = x->p->run->stream;
    const struct tasks *t = tasks_of(x, rank);
    double sum_s = 0, start_s = x->p->run->node_start_s[node];
    for (size_t k = t->done + t->under_way; k-- > x->p->c->stream->task_at[rank];) {
        double to_s = k < t->done && run->end_s[k] < now_s ? run->end_s[k] : now_s;
        double from_s = run->start_s[k] > start_s ? run->start_s[k] : start_s;
        if (to_s <= start_s) {
            break;
        }
        sum_s += to_s > from_s ? to_s - from_s : 0;
    }
    return sum_s;
}

/* True where the stream beside a node that is to end now lengthens it: it ends later. */
static bool is_lengthened(struct play *y, struct played *x, int32_t rank, int32_t node,
                          double now_s)
{
    struct tasks *t = tasks_of(x, rank);
    if (!t || t->late) {
        return false;
    }
    double later_s = x->p->c->stream->slowdown[rank] * beside_s(x, rank, node, now_s);
    t->late = true;
    if (later_s > 0) {
        x->p->run->stream->slowed_s[rank] += later_s;
        push(y, now_s + later_s, (int64_t)(x->first_node + (size_t)node));
    }
    return later_s > 0;
}

/* True where moves that arrive before a node ends keep it from ending now. */
static bool is_kept(struct play *y, struct played *x, int32_t rank, int32_t node, double now_s)
{
    if (is_held_up(x, node)) {
        x->stuck[rank] = true;
        return true;
    }
    if (x->least_end_s && x->least_end_s[node] > now_s) { /* the latency of the last move */
        push(y, x->least_end_s[node], (int64_t)(x->first_node + (size_t)node));
        return true;
    }
    return false;
}

/* ends the node that runs on a rank that uses links */
static void end_exchange(struct play *y, struct played *x, int32_t rank, double now_s)
{
    int32_t node = x->next[rank] - 1;
    struct tasks *t = tasks_of(x, rank);
    if (is_lengthened(y, x, rank, node, now_s) || is_kept(y, x, rank, node, now_s)) {
        return;
    }
    x->p->run->node_end_s[node] = now_s;
    x->waits[rank] = false;
    if (t) {
        t->late = false;
        t->ended = node + 1;
        start_task(y, x, rank, now_s);
    }
    tell_start(y, x, rank);
    end_node(y, x, node, now_s);
}

static struct played *pipe_of_node(struct play *y, size_t node)
{
    size_t lo = 0, hi = y->n_pipes;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        *(y->pipes[mid].first_node <= node ? &lo : &hi) = mid;
    }
    return &y->pipes[lo];
}

static void node_ends(struct play *y, size_t id, double now_s)
{
    struct played *x = pipe_of_node(y, id);
    int32_t node = (int32_t)(id - x->first_node), rank = x->rank[node];
    if (is_live(x, rank)) {
        end_exchange(y, x, rank, now_s);
        return;
    }
    tell_end(y, x, rank);
    end_node(y, x, node, now_s);
}

static void flight_lands(struct play *y, size_t flight, double now_s)
{
    if (flight < y->n_hops) {
        const struct played *x = &y->pipes[y->lanes[flight].pipe];
        bool moves = flight - x->first_hop >= (size_t)x->p->g->n_hops;
        (moves ? land_move : land)(y, flight, now_s);
        return;
    }
    const struct hv__exchange *e = &y->sky.exchanges[flight - y->n_hops];
    hv__sky_set(&y->sky, flight, false, now_s);
    balance(y, flight, now_s);
    if (e->stream) {
        end_task(y, &y->pipes[e->pipe], e->rank, now_s);
    } else {
        end_exchange(y, &y->pipes[e->pipe], e->rank, now_s);
    }
}

/* an event of a rank that uses links, or what a move waits for at a start */
static void rank_acts(struct play *y, size_t number, double now_s)
{
    if (number < RANK_EVENTS * y->n_ranks) {
        const struct place *at = &y->places[number / RANK_EVENTS];
        bool task = number % RANK_EVENTS == TASK_ENDS;
        (task ? end_task : start_exchange)(y, &y->pipes[at->pipe], at->rank, now_s);
        return;
    }
    number -= RANK_EVENTS * y->n_ranks;
    struct played *x = y->pipes;
    while (number - x->first_move >= x->p->n_moves) {
        x++;
    }
    int32_t move = (int32_t)(number - x->first_move);
    let_moves(y, x, &move, 1, now_s);
}

static void run_events(struct play *y)
{
    int64_t n_flights = (int64_t)(y->n_hops + y->sky.n_exchanges);
    while (y->heap.n > 0) {
        struct hv__entry e = hv__heap_pop(&y->heap);
        if (e.id < 0) {
            rank_acts(y, (size_t)(-1 - e.id), e.key);
        } else if (e.id < (int64_t)y->n_nodes) {
            node_ends(y, (size_t)e.id, e.key);
        } else {
            size_t flight = (size_t)((e.id - (int64_t)y->n_nodes) % n_flights);
            if (y->sky.flights[flight].under_way && e.id == landing_id(y, flight)) {
                flight_lands(y, flight, e.key);
            }
        }
    }
}

/* the moves that wait for nothing */
static void start_moves(struct play *y)
{
    for (size_t i = 0; i < y->n_pipes; i++) {
        struct played *x = &y->pipes[i];
        for (int32_t lane = 0; x->moves.items && lane < x->p->n_lanes; lane++) {
            send_move(y, x, lane, 0);
        }
    }
}

/* begins all pipes at time 0 */
static void start_pipes(struct play *y)
{
    for (size_t i = 0; i < y->n_pipes; i++) {
        struct played *x = &y->pipes[i];
        if (x->p->c->stream) {
            hv_stream_begin(x->p->g, x->p->c->stream, x->p->run->stream);
        }
        for (int32_t r = 0; r < x->p->g->s.n_ranks; r++) {
            start_task(y, x, r, 0);
            start_rank(y, x, r);
        }
    }
    start_moves(y);
}

/* fills what follows from starts and ends */
static void finish_pipe(const struct played *x)
{
    const struct hv_stream *s = x->p->c->stream;
    x->p->run->held = x->held;
    hv_pipe_summarise(x->p->g, x->p->run);
    x->p->run->edge_s = x->edge_s;
    for (int32_t r = 0; s && r < x->p->g->s.n_ranks; r++) {
        if (tasks_of(x, r)) {
            x->p->run->stream->next[r] = s->task_at[r + 1];
        }
    }
    if (s) {
        hv_stream_finish(x->p->g, s, x->p->run->node_end_s, x->p->run->stream);
    }
}

void hv_links_play(struct hv_arena *a, struct hv_links *s)
{
    struct play y = {0};
    open_play(&y, a, s);
    start_pipes(&y);
    run_events(&y);
    for (size_t i = 0; i < s->n_pipes; i++) {
        finish_pipe(&y.pipes[i]);
    }
    s->steps = y.sky.steps;
    free(y.heap.items);
    hv_arena_free(&y.scratch);
}
