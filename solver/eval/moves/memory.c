/** Memory over time of ranks whose activations move: what leaves is there until its last byte has
 * gone, what comes is there from its first byte on, at both ends. */
#include "solver/eval/moves/moves.h"

/** A list of changes. */
struct list {
    struct hv_memory_change *items;
    size_t n;
};

static void add(struct list *l, double at_s, double bytes)
{
    l->items[l->n++] = (struct hv_memory_change){.at_s = at_s, .bytes = bytes};
}

/** Bytes of a move on one device of its owner's dp rank, of the tables `mem`. */
static double own_bytes(const struct hv__pipeline *pl, const struct hv_pipe_memory *mem,
                        const struct hv_link_move *m)
{
    int32_t node = m->back ? m->gates : m->node;
    struct hv_op op = pl->schedule->ops[hv_pipe_first_op(pl->pipe, node)];
    op.kind = HV_OP_F;
    return hv_pipe_op_bytes(pl->schedule, mem, mem->start_bytes, &op);
}

/** Bytes of a move on one device of the rank that keeps what it moves. */
static double kept_bytes(const struct hv__pipeline *pl, const struct hv_link_move *m, size_t i_dp)
{
    const struct hv__move_lane *lane = &pl->moving.lanes[m->lane];
    const struct hv__rank *rk = &pl->ranks[lane->keeper];
    double held = 1 + rk->memory[i_dp % rk->n_dp].fragmentation_frac;
    return held * m->scale * lane->bytes / (double)rk->n_devices;
}

double hv__later_from_s(const struct hv__pipeline *pl, size_t rank)
{
    int32_t from = pl->pipe->rank_node_at[rank], to = pl->pipe->rank_node_at[rank + 1];
    return pl->moving.short_start_s[from + (to - from) / 2];
}

bool hv__memory_moves(const struct hv__pipeline *pl)
{
    return pl->moving.n > 0;
}

/** A pipeline with the times of its operations and moves: of the short run, where it was stretched.
 */
struct times {
    const struct hv__pipeline *pl;
    struct hv_pipe_run run;
    const struct hv_link_moved *moved;
};

static struct times times_of(const struct hv__pipeline *pl)
{
    struct times t = {pl, pl->run, pl->moving.moved};
    if (pl->moving.later_s > 0) {
        t.run.node_start_s = pl->moving.short_start_s;
        t.run.node_end_s = pl->moving.short_end_s;
        t.moved = pl->moving.short_moved;
    }
    return t;
}

/** An operation whose offloaded activations move, on one device of a data-parallel rank. */
struct copied {
    const struct hv_op *op;
    double start_s, end_s;      /**< of the operation */
    double bytes, weight_bytes; /**< that move; those that W needs */
    double layer;               /**< share of one layer */
};

static struct copied copied_by(const struct times *t, const struct hv_link_move *m, size_t i_dp)
{
    const struct hv__pipeline *pl = t->pl;
    const struct hv__move_lane *lane = &pl->moving.lanes[m->lane];
    const struct hv__rank *rk = &pl->ranks[lane->rank];
    int32_t node = m->back ? m->gates : m->node;
    struct copied c = {.start_s = t->run.node_start_s[node], .end_s = t->run.node_end_s[node]};
    size_t first = hv_pipe_first_op(pl->pipe, node), next = hv_pipe_first_op(pl->pipe, node + 1);
    c.op = &pl->schedule->ops[first];
    if (next - first > 1 && (c.op->kind == HV_OP_F) == m->back) {
        c.op++; /* the other half of an overlapped pair */
    }
    const struct hv__gstage *g =
        &pl->gstages[(size_t)c.op->pipe * pl->n_gstages + (size_t)c.op->stage];
    size_t d = i_dp % rk->n_dp, shape = hv__shape_of(pl, c.op->stage, c.op->mb, c.op->slice);
    const struct hv_pass *pass = &g->plain[shape * rk->n_dp + d];
    double part = (1 + rk->memory[d].fragmentation_frac) * lane->share;
    part *= m->back ? 1 : hv_op_share(pl->schedule, c.op);
    c.bytes = part * pass->away_bytes;
    c.weight_bytes = part * pass->away_weight_bytes;
    c.layer = 1 / fmax(1, (g->range.to2 - g->range.from2) / 2);
    return c;
}

/** What leaves while its forward runs: the device holds one layer of it, and what a slow or busy
 * link has not taken when the forward ends. O(1). */
static void add_out(struct list *l, const struct copied *c, const struct hv_link_moved *t)
{
    double left = 0;
    if (t->end_s > c->end_s) {
        left = 1 - fmax(0, c->end_s - t->start_s) / (t->end_s - t->start_s);
    }
    double bytes = c->bytes * fmax(c->layer, left);
    add(l, c->start_s, bytes);
    add(l, fmax(c->end_s, t->end_s), -bytes);
}

/** End of the weight gradient of an input gradient, which comes later on its rank. O(operations
 * between). */
static double weights_end_s(const struct times *t, const struct hv_op *of)
{
    const struct hv_schedule *s = t->pl->schedule;
    size_t i = (size_t)(of - s->ops);
    for (size_t k = i + 1; k < s->rank_at[hv_schedule_rank_of(s, i) + 1]; k++) {
        const struct hv_op *op = &s->ops[k];
        if (op->kind == HV_OP_W && op->stage == of->stage && op->mb == of->mb &&
            op->slice == of->slice) {
            return hv_pipe_op_end_s(t->pl->pipe, &t->run, k);
        }
    }
    return t->run.makespan_s;
}

/** What comes back while its backward runs: the device holds one layer of it, and what has come
 * before the backward starts; until W what that needs. O(1), O(operations between B and W). */
static void add_back(struct list *l, const struct times *t, const struct copied *c,
                     const struct hv_link_moved *moved)
{
    double long_s = moved->end_s - moved->start_s;
    double there = long_s > 0 ? fmin(1, fmax(0, c->start_s - moved->start_s) / long_s) : 1;
    double bytes = c->bytes * fmax(c->layer, there);
    add(l, moved->start_s, bytes);
    if (c->op->kind == HV_OP_B) {
        bytes -= c->weight_bytes;
        add(l, weights_end_s(t, c->op), -c->weight_bytes);
    }
    add(l, c->end_s, -bytes);
}

/** What a move of an offload changes on a device of its owner. */
static void add_offload(struct list *l, const struct times *t, size_t move, size_t i_dp)
{
    const struct hv_link_move *m = &t->pl->moving.moves[move];
    struct copied c = copied_by(t, m, i_dp);
    if (m->back) {
        add_back(l, t, &c, &t->moved[move]);
    } else {
        add_out(l, &c, &t->moved[move]);
    }
}

/** What an eviction changes on a device of its owner, and of the rank that keeps it. */
static void add_eviction(struct list *l, const struct times *t, const struct hv_pipe_memory *mem,
                         size_t move, size_t rank, size_t i_dp)
{
    const struct hv_link_move *m = &t->pl->moving.moves[move];
    const struct hv_link_moved *at = &t->moved[move];
    const struct hv__move_lane *lane = &t->pl->moving.lanes[m->lane];
    if (lane->rank == rank) {
        double bytes = own_bytes(t->pl, mem, m);
        add(l, m->back ? at->start_s : at->end_s, m->back ? bytes : -bytes);
    }
    if (lane->keeper == rank) {
        double bytes = kept_bytes(t->pl, m, i_dp);
        add(l, m->back ? at->end_s : at->start_s, m->back ? -bytes : bytes);
    }
}

/** All changes of the memory of a device of dp rank `i_dp` of a rank, in time order. */
static struct hv_memory_changes changes_of(const struct hv__lowered *l,
                                           const struct hv__pipeline *pl,
                                           const struct hv_pipe_memory *mem, size_t rank,
                                           size_t i_dp, const struct hv_memory_changes *others)
{
    const struct times t = times_of(pl);
    const struct hv__moving *m = &pl->moving;
    size_t n = m->n > 0 ? m->rank_at[0] : 0, first = m->n > 0 ? m->rank_at[rank] : 0;
    size_t last = m->n > 0 ? m->rank_at[rank + 1] : 0;
    size_t most = 2 * n + 3 * (last - first) + (others != NULL ? others->n : 0);
    struct list beside = {hv_arena_new(l->arena, struct hv_memory_change, most + 1), 0};
    for (size_t i = 0; i < n; i++) {
        add_eviction(&beside, &t, mem, i, rank, i_dp);
    }
    for (size_t i = first; i < last; i++) {
        add_offload(&beside, &t, i, i_dp);
    }
    for (size_t i = 0; others != NULL && i < others->n; i++) {
        beside.items[beside.n++] = others->items[i];
    }
    const struct hv_memory_changes x = {beside.items, beside.n, 0};
    struct hv_memory_changes all =
        hv_pipe_changes(l->arena, pl->pipe, &t.run, mem, (int32_t)rank, &x);
    all.base_bytes += others != NULL ? others->base_bytes : 0;
    return all;
}

struct hv_memory_changes hv__memory_changes(const struct hv__lowered *l,
                                            const struct hv__pipeline *pl,
                                            const struct hv_pipe_memory *mem, size_t rank,
                                            size_t i_dp)
{
    return changes_of(l, pl, mem, rank, i_dp, NULL);
}

struct hv_pipe_peak hv__memory_peak(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                    const struct hv_pipe_memory *mem, size_t rank, size_t i_dp,
                                    const struct hv_memory_changes *others)
{
    const struct hv_memory_changes x = changes_of(l, pl, mem, rank, i_dp, others);
    struct hv_pipe_peak peak = hv_memory_peak(&x);
    if (pl->moving.later_s > 0 && peak.peak_at_s >= hv__later_from_s(pl, rank)) {
        peak.peak_at_s += pl->moving.later_s;
    }
    return peak;
}

struct hv_memory_step *hv__memory_steps(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                        const struct hv_pipe_memory *mem, size_t rank, size_t i_dp,
                                        size_t *n)
{
    if (!hv__memory_moves(pl)) {
        int32_t r = (int32_t)rank;
        *n = hv_pipe_trace(pl->pipe, &pl->run, mem, r, NULL);
        struct hv_memory_step *out = hv_arena_new(l->arena, struct hv_memory_step, *n + 1);
        *n = hv_pipe_trace(pl->pipe, &pl->run, mem, r, out);
        return out;
    }
    const struct hv_memory_changes x = changes_of(l, pl, mem, rank, i_dp, NULL);
    struct hv_memory_step *out = hv_arena_new(l->arena, struct hv_memory_step, x.n + 1);
    *n = hv_memory_steps(&x, out);
    return out;
}
