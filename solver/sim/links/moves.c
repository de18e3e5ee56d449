/*
 * Moves beside a pipeline: who waits for whom. They are played in play.c.
 */
#include "solver/sim/links/links_int.h"

/* Numbers 0 … n - 1 grouped by a key of each; a key below 0 is in no group. */
struct groups {
    size_t *at; /* [n_keys + 2] while they are counted */
    int32_t *items;
};

typedef int32_t key_fn(const struct hv_link_move *m);

static int32_t start_of(const struct hv_link_move *m)
{
    return m->at_start ? m->node : -1;
}

static int32_t end_of(const struct hv_link_move *m)
{
    return m->at_start ? -1 : m->node;
}

static int32_t behind_of(const struct hv_link_move *m)
{
    return m->behind;
}

static int32_t lane_of(const struct hv_link_move *m)
{
    return m->lane;
}

static struct groups group_by(struct hv_arena *a, const struct hv_link_pipe *p, key_fn *key,
                              size_t n_keys)
{
    struct groups g = {hv_arena_new(a, size_t, n_keys + 2),
                       hv_arena_new(a, int32_t, p->n_moves + 1)};
    for (size_t i = 0; i < p->n_moves; i++) {
        int32_t k = key(&p->moves[i]);
        if (k >= 0) {
            g.at[k + 2]++;
        }
    }
    for (size_t k = 2; k < n_keys + 2; k++) {
        g.at[k] += g.at[k - 1];
    }
    for (size_t i = 0; i < p->n_moves; i++) {
        int32_t k = key(&p->moves[i]);
        if (k >= 0) {
            g.items[g.at[k + 1]++] = (int32_t)i;
        }
    }
    return g;
}

void hv__moves_open(struct hv__moves *m, struct hv_arena *a, const struct hv_link_pipe *p,
                    int32_t *open)
{
    size_t n_nodes = (size_t)p->g->n_nodes, n_lanes = (size_t)p->n_lanes;
    *m = (struct hv__moves){.items = p->moves};
    struct groups by_start = group_by(a, p, start_of, n_nodes);
    struct groups by_end = group_by(a, p, end_of, n_nodes);
    struct groups behind = group_by(a, p, behind_of, p->n_moves);
    struct groups of_lane = group_by(a, p, lane_of, n_lanes);
    m->start_at = by_start.at;
    m->by_start = by_start.items;
    m->end_at = by_end.at;
    m->by_end = by_end.items;
    m->behind_at = behind.at;
    m->behind = behind.items;
    m->lane_at = of_lane.at;
    m->of_lane = of_lane.items;
    m->next = hv_arena_copy(a, m->lane_at, n_lanes + 1, sizeof *m->next);
    m->open = hv_arena_new(a, uint8_t, p->n_moves + 1);
    m->holds = hv_arena_new(a, int32_t, n_nodes + 1);
    for (size_t i = 0; i < p->n_moves; i++) {
        const struct hv_link_move *x = &p->moves[i];
        m->open[i] = (uint8_t)((x->node >= 0) + (x->behind >= 0));
        if (x->gates >= 0) {
            open[x->gates]++;
            m->holds[x->gates] += x->streams;
        }
    }
}
