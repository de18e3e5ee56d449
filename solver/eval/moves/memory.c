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
    l->items[l->n++] = (struct hv_memory_change){at_s, bytes};
}

/** Bytes of a move on one device of its owner's dp rank, of the tables `mem`. */
static double own_bytes(const struct hv__pipeline *pl, const struct hv_pipe_memory *mem,
                        const struct hv_link_move *m)
{
    int32_t node = m->back ? m->gates : m->node;
    const struct hv_op *op = &pl->schedule->ops[hv_pipe_first_op(pl->pipe, node)];
    double bytes = mem->start_bytes[(size_t)op->stage * HV_OP_KIND_N + HV_OP_F];
    return bytes * (mem->mb_scale != NULL ? mem->mb_scale[op->mb] : 1);
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

/** All changes of the memory of a device of dp rank `i_dp` of a rank, in time order; of a run that
 * was stretched in the times of the short one. */
static struct hv_memory_changes changes_of(const struct hv__lowered *l,
                                           const struct hv__pipeline *pl,
                                           const struct hv_pipe_memory *mem, size_t rank,
                                           size_t i_dp)
{
    struct list beside = {hv_arena_new(l->arena, struct hv_memory_change, 2 * pl->moving.n + 1), 0};
    bool is_short = pl->moving.later_s > 0;
    const struct hv_link_moved *moved = is_short ? pl->moving.short_moved : pl->moving.moved;
    for (size_t i = 0; i < pl->moving.n; i++) {
        const struct hv_link_move *m = &pl->moving.moves[i];
        const struct hv_link_moved *t = &moved[i];
        const struct hv__move_lane *lane = &pl->moving.lanes[m->lane];
        if (lane->rank == rank) {
            double bytes = own_bytes(pl, mem, m);
            add(&beside, m->back ? t->start_s : t->end_s, m->back ? bytes : -bytes);
        }
        if (lane->keeper == rank) {
            double bytes = kept_bytes(pl, m, i_dp);
            add(&beside, m->back ? t->end_s : t->start_s, m->back ? -bytes : bytes);
        }
    }
    const struct hv_memory_changes x = {beside.items, beside.n, 0};
    struct hv_pipe_run run = pl->run;
    if (is_short) {
        run.node_start_s = pl->moving.short_start_s;
        run.node_end_s = pl->moving.short_end_s;
    }
    return hv_pipe_changes(l->arena, pl->pipe, &run, mem, (int32_t)rank, &x);
}

struct hv_pipe_peak hv__memory_peak(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                    const struct hv_pipe_memory *mem, size_t rank, size_t i_dp)
{
    const struct hv_memory_changes x = changes_of(l, pl, mem, rank, i_dp);
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
    const struct hv_memory_changes x = changes_of(l, pl, mem, rank, i_dp);
    struct hv_memory_step *out = hv_arena_new(l->arena, struct hv_memory_step, x.n + 1);
    *n = hv_memory_steps(&x, out);
    return out;
}
