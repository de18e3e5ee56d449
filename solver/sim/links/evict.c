/* Evictions as moves beside a pipeline. */
#include "solver/sim/links/evict.h"

#include "solver/sim/schedule/evictions.h"

static int32_t node_of(const struct hv_pipe *g, size_t op)
{
    if (op == HV_NO_OP) {
        return -1;
    }
    return g->node_of_op ? g->node_of_op[op] : (int32_t)op;
}

/* the two moves of eviction k of a rank, whose first move has number `first` */
static void add(const struct hv_pipe *g, int32_t rank, const struct hv_eviction *e, size_t k,
                size_t first, struct hv_link_move *out)
{
    out[0] = (struct hv_link_move){.lane = hv_evict_lane(rank, false),
                                   .node = node_of(g, e->forward),
                                   .behind = -1,
                                   .gates = node_of(g, e->place_of),
                                   .scale = 1};
    /* evictions leave one after the other: behind a later one it is behind its own */
    int32_t behind = e->after_eviction >= 0 ? e->after_eviction : (int32_t)k;
    out[1] = (struct hv_link_move){.lane = hv_evict_lane(rank, true),
                                   .node = node_of(g, e->after_op),
                                   .behind = (int32_t)first + 2 * behind,
                                   .gates = node_of(g, e->backward),
                                   .back = true,
                                   .scale = 1};
}

struct hv_link_move *hv_evict_moves(struct hv_arena *a, const struct hv_pipe *g, size_t *n)
{
    struct hv_arena scratch = {0};
    size_t p = (size_t)g->s.n_ranks, *n_of = hv_arena_new(&scratch, size_t, p);
    const struct hv_eviction **of = hv_arena_new(&scratch, const struct hv_eviction *, p);
    *n = 0;
    for (int32_t r = 0; r < g->s.n_ranks && g->s.stash; r++) {
        n_of[r] = hv_schedule_evictions(&scratch, &g->s, r, &of[r]);
        *n += 2 * n_of[r];
    }
    struct hv_link_move *out = hv_arena_new(a, struct hv_link_move, *n + 1);
    size_t at = 0;
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        size_t first = at;
        for (size_t k = 0; k < n_of[r]; k++, at += 2) {
            add(g, r, &of[r][k], k, first, &out[at]);
        }
    }
    hv_arena_free(&scratch);
    return out;
}
