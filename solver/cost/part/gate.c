/*
 * Gates that choose experts by place: a target for the tokens that go from rank to rank, and a limit
 * on tokens that leave their node. Sources: TA-MoE (Chen et al. 2022, dispatch towards a target
 * c_ie; its released gate limits tokens that leave the node), FasterMoE (He et al. 2022, the
 * topology-aware gate: what is above the limit chooses again among the experts of its node).
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/network/matrix.h"
#include "solver/cost/part/part_int.h"

bool hv__gates_tokens(const struct hv_part_query *q)
{
    return q->moe && q->ep > 1 && (q->moe->n_target > 0 || hv_known(q->moe->off_node_frac));
}

/* Tokens of every rank go to the experts of a rank as the target has them, to each alike. */
static void aim(const struct hv_moe_knobs *m, const struct hv__gate *g, double *tokens)
{
    double *held = hv_xcalloc(g->ranks, sizeof *held);
    for (size_t e = 0; e < g->experts; e++) {
        held[hv_expert_owner(m, (int)g->experts, (int)g->ranks, (int)e)]++;
    }
    for (size_t s = 0; s < g->ranks; s++) {
        const double *row = m->target + s * g->ranks;
        double sum = 0;
        for (size_t r = 0; r < g->ranks; r++) {
            sum += held[r] > 0 ? row[r] : 0;
        }
        for (size_t e = 0; e < g->experts; e++) {
            int r = hv_expert_owner(m, (int)g->experts, (int)g->ranks, (int)e);
            tokens[s * g->experts + e] = sum > 0 ? row[r] / held[r] / sum : 0;
        }
    }
    free(held);
}

/* True for the experts that a rank of the source's house holds. */
static void find_near(const struct hv_moe_knobs *m, const struct hv__gate *g, size_t source,
                      bool *on, bool *near)
{
    size_t house = hv_ways_house(g->ways, source);
    for (size_t e = 0; e < g->experts; e++) {
        near[e] = false;
        (void)hv_expert_places(m, (int)g->experts, (int)g->ranks, (int)e, on);
        for (size_t r = 0; r < g->ranks; r++) {
            near[e] = near[e] || (on[r] && hv_ways_house(g->ways, r) == house);
        }
    }
}

/* Adds `more` to the near experts in proportion to what they have, or evenly, and to none more than
 * `most`; returns what finds no place. */
static double add_near(const bool *near, size_t n, double most, double more, double *row)
{
    for (size_t round = 0; round < n && more > 1e-15; round++) {
        double has = 0, open = 0, left = 0;
        for (size_t e = 0; e < n; e++) {
            bool takes = near[e] && row[e] < most;
            open += takes;
            has += takes ? row[e] : 0;
        }
        for (size_t e = 0; e < n && open > 0; e++) {
            if (near[e] && row[e] < most) {
                double to = row[e] + more * (has > 0 ? row[e] / has : 1 / open);
                left += fmax(0, to - most);
                row[e] = fmin(to, most);
            }
        }
        more = open > 0 ? left : more;
        if (!(open > 0)) {
            break;
        }
    }
    return more;
}

/* No more than `limit` of a source's tokens leave its house where its own experts can take the rest:
 * none of them gets a token twice. */
static void keep_near(const struct hv_moe_knobs *m, const struct hv__gate *g, size_t source,
                      const bool *near, double *tokens)
{
    double *row = tokens + source * g->experts, away = 0, all = 0;
    double most = g->top_k > 0 ? 1.0 / g->top_k : 1;
    for (size_t e = 0; e < g->experts; e++) {
        all += row[e];
        away += near[e] ? 0 : row[e];
    }
    double over = away - m->off_node_frac * all;
    if (!(over > 0) || !(away > 0)) {
        return;
    }
    double stay = over - add_near(near, g->experts, most * all, over, row);
    for (size_t e = 0; e < g->experts; e++) {
        row[e] *= near[e] ? 1 : 1 - stay / away;
    }
}

void hv__gate_tokens(const struct hv_moe_knobs *m, const struct hv__gate *g, double *tokens)
{
    if (m->n_target == g->ranks) {
        aim(m, g, tokens);
    }
    if (!hv_known(m->off_node_frac)) {
        return;
    }
    bool *on = hv_xcalloc(g->ranks + g->experts, sizeof *on), *near = on + g->ranks;
    size_t seen = SIZE_MAX;
    for (size_t s = 0; s < g->ranks; s++) {
        size_t house = hv_ways_house(g->ways, s);
        if (house != seen) { /* ranks of a house follow each other */
            find_near(m, g, s, on, near);
            seen = house;
        }
        keep_near(m, g, s, near, tokens);
    }
    free(on);
}
