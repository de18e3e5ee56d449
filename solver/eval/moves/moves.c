/**
 * What moves beside the operations of a pipeline: the activations that a schedule hands to another
 * rank (hv_schedule.stash). Each rank has a lane out and a lane back, whose transfers share the
 * links of devices and the network with all others (links_shared.c).
 */
#include "solver/eval/moves/moves.h"
#include "solver/sim/links/evict.h"

size_t hv__most_lanes(const struct hv__pipeline *pl)
{
    return pl->schedule->stash != NULL ? 2 * pl->n_ranks : 0;
}

/** Activations that a rank keeps of one micro-batch of a shape, on all its devices together. */
static double activation_bytes(const struct hv__pipeline *pl, const struct hv__gstage *g,
                               size_t shape)
{
    const struct hv__rank *rk = &pl->ranks[g->rank];
    double bytes = 0;
    for (size_t d = 0; d < rk->n_dp; d++) {
        bytes += g->plain[shape * rk->n_dp + d].activation_bytes * (double)rk->width;
    }
    return bytes;
}

/** The lanes of the schedule's evictions, with the bytes of the first shape. */
static void set_lanes(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    struct hv__moving *m = &pl->moving;
    m->n_lanes = (int32_t)(2 * pl->n_ranks);
    m->lanes = hv_arena_new(l->arena, struct hv__move_lane, (size_t)m->n_lanes);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        for (int back = 0; back < 2; back++) {
            m->lanes[hv_evict_lane((int32_t)r, back)] =
                (struct hv__move_lane){.rank = r,
                                       .back = back,
                                       .keeper = pl->n_ranks - 1 - r,
                                       .bytes = activation_bytes(pl, &pl->gstages[r], 0)};
        }
    }
}

/** Sets the scale of every move by the shape of its micro-batch. */
static void set_scales(const struct hv__pipeline *pl)
{
    for (size_t i = 0; i < pl->moving.n && pl->n_shapes > 1; i++) {
        struct hv_link_move *m = &pl->moving.moves[i];
        const struct hv__move_lane *lane = &pl->moving.lanes[m->lane];
        int32_t node = m->back ? m->gates : m->node;
        int32_t mb = pl->schedule->ops[hv_pipe_first_op(pl->pipe, node)].mb;
        double bytes = activation_bytes(pl, &pl->gstages[lane->rank], (size_t)pl->shape_of[mb]);
        m->scale = bytes / lane->bytes;
    }
}

/** Adds the sending of every lane that has moves. */
static void price_lanes(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    struct hv__hops *h = &pl->hops;
    for (size_t i = 0; i < pl->moving.n; i++) {
        int32_t lane = pl->moving.moves[i].lane, hop = pl->pipe->n_hops + lane;
        const struct hv__move_lane *x = &pl->moving.lanes[lane];
        if (h->sending_of[hop] >= 0) {
            continue;
        }
        struct hv__sending s = {.from = x->back ? x->keeper : x->rank,
                                .to = x->back ? x->rank : x->keeper,
                                .bytes = x->bytes};
        hv__price_sending(l, pl, &s);
        h->sending_of[hop] = (int32_t)h->n_sendings;
        h->sendings[h->n_sendings++] = s;
    }
}

void hv__find_moves(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    if (!pl->hops.devices) {
        return;
    }
    set_lanes(l, pl);
    pl->moving.moves = hv_evict_moves(l->arena, pl->pipe, &pl->moving.n);
    pl->moving.moved = hv_arena_new(l->arena, struct hv_link_moved, pl->moving.n + 1);
    for (size_t i = 0; i < pl->moving.n; i++) {
        if (!(pl->moving.lanes[pl->moving.moves[i].lane].bytes > 0)) {
            pl->moving = (struct hv__moving){0}; /* layers without activations: nothing moves */
            return;
        }
    }
    set_scales(pl);
    price_lanes(l, pl);
}
