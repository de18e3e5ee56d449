/**
 * What moves beside the operations of a pipeline: the activations that a schedule hands to another
 * rank, and those that a stage offloads. Each has a lane out and a lane back, whose transfers share
 * the links of devices, the memory of hosts and the network with all others (links_shared.c).
 *
 * Offloaded activations leave layer by layer while their forward runs, and come back layer by layer
 * while their backward runs (Rajbhandari et al. 2021, ZeRO-Infinity, section 5.1). The copy out
 * ends with the forward where the link is fast enough, and goes on beside later operations where it
 * is not; the copy back begins with the operation before the backward, and hides as long as the
 * time between them (Zhou et al. 2023, MPress, section III).
 */
#include "solver/eval/moves/moves.h"
#include "solver/sim/links/evict.h"

#include <string.h>

bool hv__moves_away(const struct hv__pipeline *pl, const struct hv__gstage *g)
{
    return !g->again && hv_stage_copies_apart(&pl->replica->stages[pl->ranks[g->rank].stage]);
}

/** Offloads of activations of a rank's stage that are copied beside its passes. */
static size_t count_offloads(const struct hv__pipeline *pl, size_t rank)
{
    const struct hv_stage *s = &pl->replica->stages[pl->ranks[rank].stage];
    size_t n = 0;
    for (size_t i = 0; hv_stage_copies_apart(s) && i < s->n_offload; i++) {
        n += s->offload[i].what == HV_OFFLOAD_ACTIVATIONS && s->offload[i].frac > 0;
    }
    return n;
}

/** Lanes of the schedule's evictions; those of offloads come behind them. */
static size_t evict_lanes(const struct hv__pipeline *pl)
{
    return pl->schedule->stash != NULL ? 2 * pl->n_ranks : 0;
}

size_t hv__most_lanes(const struct hv__pipeline *pl)
{
    size_t n = evict_lanes(pl);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        n += 2 * count_offloads(pl, r);
    }
    return n;
}

/** Bytes of one micro-batch of a shape on all devices of its rank together: what a global stage
 * keeps, or what it offloads. */
static double bytes_of(const struct hv__pipeline *pl, const struct hv__gstage *g, size_t shape,
                       bool away)
{
    const struct hv__rank *rk = &pl->ranks[g->rank];
    double bytes = 0;
    for (size_t d = 0; d < rk->n_dp; d++) {
        const struct hv_pass *p = &g->plain[shape * rk->n_dp + d];
        bytes += (away ? p->away_bytes : p->activation_bytes) * (double)rk->width;
    }
    return bytes;
}

/** The lanes of evictions, with the bytes of the first shape. */
static void set_evict_lanes(struct hv__pipeline *pl)
{
    for (size_t r = 0; evict_lanes(pl) > 0 && r < pl->n_ranks; r++) {
        for (int back = 0; back < 2; back++) {
            pl->moving.lanes[hv_evict_lane((int32_t)r, back)] =
                (struct hv__move_lane){.rank = r,
                                       .back = back,
                                       .keeper = pl->n_ranks - 1 - r,
                                       .share = 1,
                                       .bytes = bytes_of(pl, &pl->gstages[r], 0, false)};
        }
    }
}

/** The largest bytes that a rank offloads of a micro-batch. */
static double most_away(const struct hv__pipeline *pl, size_t rank)
{
    double most = 0;
    for (size_t g = 0; g < pl->n_pipes * pl->n_gstages; g++) {
        const struct hv__gstage *x = &pl->gstages[g];
        for (size_t i = 0; x->rank == rank && hv__moves_away(pl, x) && i < pl->n_shapes; i++) {
            most = fmax(most, bytes_of(pl, x, i, true));
        }
    }
    return most;
}

/** The lanes of offloads: a lane out and a lane back of each rank and item. `first` receives the
 * first of each rank. */
static void set_offload_lanes(struct hv__pipeline *pl, size_t *first)
{
    size_t n = evict_lanes(pl);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        const struct hv_stage *s = &pl->replica->stages[pl->ranks[r].stage];
        double bytes = count_offloads(pl, r) > 0 ? most_away(pl, r) : 0;
        first[r] = n;
        for (size_t i = 0; bytes > 0 && i < s->n_offload; i++) {
            double share = hv_stage_offload_share(s, i);
            if (s->offload[i].what != HV_OFFLOAD_ACTIVATIONS || !(share > 0)) {
                continue;
            }
            for (int back = 0; back < 2; back++) {
                pl->moving.lanes[n++] = (struct hv__move_lane){.rank = r,
                                                               .back = back,
                                                               .keeper = HV__NO_RANK,
                                                               .to = &s->offload[i],
                                                               .share = share,
                                                               .bytes = share * bytes};
            }
        }
    }
    first[pl->n_ranks] = n;
    pl->moving.n_lanes = (int32_t)n;
}

/** Number of a micro-batch's slice among all of the pipeline. */
static size_t cell_of(const struct hv__pipeline *pl, const struct hv_op *op)
{
    size_t k = (size_t)(pl->n_slices > 1 ? pl->n_slices : 1);
    return (size_t)op->mb * k + (k > 1 && op->slice > 0 ? (size_t)op->slice : 0);
}

/** Moves of offloads while they are listed. */
struct list {
    const struct hv__pipeline *pl;
    struct hv_link_move *items;
    size_t n;
    int32_t *out_of;     /**< [stages × micro-batches and slices] first move out, -1: none */
    const size_t *first; /**< [n_ranks + 1] lanes of each rank */
};

/** The moves of one operation on every lane of its rank. */
static void add_op(struct list *l, size_t rank, int32_t node, const struct hv_op *op)
{
    const struct hv__pipeline *pl = l->pl;
    const struct hv__gstage *g = &pl->gstages[(size_t)op->pipe * pl->n_gstages + (size_t)op->stage];
    bool out = op->kind == HV_OP_F, back = op->kind == HV_OP_B || op->kind == HV_OP_BW;
    size_t k = (size_t)(pl->n_slices > 1 ? pl->n_slices : 1), cell = cell_of(pl, op);
    int32_t *first =
        &l->out_of[(size_t)op->stage * (size_t)pl->schedule->n_micro_batches * k + cell];
    double bytes = bytes_of(pl, g, hv__shape_of(pl, op->stage, op->mb, op->slice), true);
    if ((!out && !back) || !hv__moves_away(pl, g) || !(bytes > 0)) {
        return;
    }
    int32_t came = *first;
    *first = out ? (int32_t)l->n : came;
    for (size_t lane = l->first[rank]; lane < l->first[rank + 1]; lane += 2) {
        const struct hv__move_lane *x = &pl->moving.lanes[lane];
        struct hv_link_move m = {.lane = (int32_t)lane + back,
                                 .node = node,
                                 .at_start = true,
                                 .behind = -1,
                                 .gates = -1,
                                 .scale = bytes * x->share / x->bytes};
        if (out) {
            m.scale *= hv_op_share(pl->schedule, op);
        } else { /* beside the operation before, unless that makes it */
            m.behind = came + (int32_t)(lane - l->first[rank]) / 2;
            m.node = node - 1;
            m.at_start = l->items[m.behind].node != m.node;
            m.gates = node;
            m.streams = m.back = true;
        }
        l->items[l->n++] = m;
    }
}

/** Lists the moves of offloads behind `before` others, in the order of the operations. */
static void add_offloads(const struct hv__lowered *l, struct hv__pipeline *pl,
                         const size_t *first_lane, const struct hv_link_move *others, size_t before)
{
    const struct hv_pipe *g = pl->pipe;
    size_t cells = pl->n_gstages * (size_t)pl->schedule->n_micro_batches *
                   (size_t)(pl->n_slices > 1 ? pl->n_slices : 1);
    size_t most = before;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        most += (pl->schedule->rank_at[r + 1] - pl->schedule->rank_at[r]) *
                (first_lane[r + 1] - first_lane[r]) / 2;
    }
    struct list x = {.pl = pl,
                     .n = before,
                     .items = hv_arena_new(l->arena, struct hv_link_move, most + 1),
                     .out_of = hv_arena_new(l->arena, int32_t, cells + 1),
                     .first = first_lane};
    if (before > 0) {
        memcpy(x.items, others, before * sizeof *others);
    }
    pl->moving.rank_at = hv_arena_new(l->arena, size_t, pl->n_ranks + 1);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        pl->moving.rank_at[r] = x.n;
        for (int32_t n = g->rank_node_at[r]; n < g->rank_node_at[r + 1]; n++) {
            for (size_t i = hv_pipe_first_op(g, n); i < hv_pipe_first_op(g, n + 1); i++) {
                add_op(&x, r, n, &pl->schedule->ops[i]);
            }
        }
    }
    pl->moving.rank_at[pl->n_ranks] = x.n;
    pl->moving.moves = x.items;
    pl->moving.n = x.n;
}

/** Sets the scale of every eviction by the shape of its micro-batch. */
static void set_scales(const struct hv__pipeline *pl, struct hv_link_move *moves, size_t n)
{
    for (size_t i = 0; i < n && pl->n_shapes > 1; i++) {
        const struct hv__move_lane *lane = &pl->moving.lanes[moves[i].lane];
        int32_t node = moves[i].back ? moves[i].gates : moves[i].node;
        const struct hv_op *op = &pl->schedule->ops[hv_pipe_first_op(pl->pipe, node)];
        size_t shape = hv__shape_of(pl, op->stage, op->mb, op->slice);
        moves[i].scale = bytes_of(pl, &pl->gstages[lane->rank], shape, false) / lane->bytes;
    }
}

/** The transfer of a lane. */
static struct hv__sending sending_of(const struct hv__move_lane *x)
{
    struct hv__sending s = {.from = x->back ? x->keeper : x->rank,
                            .to = x->back ? x->rank : x->keeper,
                            .beside = true,
                            .bytes = x->bytes};
    if (x->to != NULL && !x->to->to_host) {
        s.devices = x->to->devices;
        s.n_devices = x->to->n_devices;
    }
    return s;
}

/** Adds the sending of every lane that has moves. */
static void price_lanes(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    struct hv__hops *h = &pl->hops;
    for (size_t i = 0; i < pl->moving.n; i++) {
        int32_t lane = pl->moving.moves[i].lane, hop = pl->pipe->n_hops + lane;
        if (h->sending_of[hop] < 0) {
            struct hv__sending s = sending_of(&pl->moving.lanes[lane]);
            hv__price_sending(l, pl, &s);
            h->sending_of[hop] = (int32_t)h->n_sendings;
            h->sendings[h->n_sendings++] = s;
        }
    }
}

/** Lets copies out begin so late that they end with the forward where the link is fast enough: what
 * they copy is made while it runs. */
static void set_delays(struct hv__pipeline *pl)
{
    for (size_t i = 0; i < pl->moving.n; i++) {
        struct hv_link_move *m = &pl->moving.moves[i];
        if (m->at_start && !m->back) {
            const struct hv__hops *h = &pl->hops;
            int32_t sending = h->sending_of[pl->pipe->n_hops + m->lane];
            double copy_s = h->sendings[sending].cost.bytes_s * m->scale;
            double pass_s = hv_pipe_node_duration_s(pl->pipe, &pl->cost, m->node);
            m->delay_s = fmax(0, pass_s - copy_s);
        }
    }
}

/** True where evictions carry bytes: measured layers may have no activations. */
static bool evictions_carry(const struct hv__pipeline *pl, const struct hv_link_move *moves,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(pl->moving.lanes[moves[i].lane].bytes > 0)) {
            return false;
        }
    }
    return true;
}

void hv__find_moves(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    size_t n_lanes = hv__most_lanes(pl), n = 0;
    if (n_lanes == 0) {
        return;
    }
    size_t *first = hv_arena_new(l->arena, size_t, pl->n_ranks + 1);
    pl->moving.lanes = hv_arena_new(l->arena, struct hv__move_lane, n_lanes);
    set_evict_lanes(pl);
    set_offload_lanes(pl, first);
    struct hv_link_move *evictions = hv_evict_moves(l->arena, pl->pipe, &n);
    n = evictions_carry(pl, evictions, n) ? n : 0;
    set_scales(pl, evictions, n);
    add_offloads(l, pl, first, evictions, n);
    pl->moving.moved = hv_arena_new(l->arena, struct hv_link_moved, pl->moving.n + 1);
    price_lanes(l, pl);
    set_delays(pl);
}
