/** Times that no order of the passes of a pipeline can be below: plans that take too long are given
 * up before their orders are made. */
#include "solver/eval/train/steps.h"

#include <math.h>

/** Iterations that are longer by less than this share are simulated to the end. */
#define GIVE_UP_REL 1e-6

/** Seconds of the passes of a global stage: of all micro-batches, and the shortest of one. */
struct stage_s {
    double all_s, weights_s;  /**< weights_s: of these, in passes of their own */
    double forward_s, back_s; /**< the shortest; back_s: without weights that may come later */
};

static struct stage_s stage_of(const struct hv__lowered *l, const struct hv__pipeline *pl,
                               const struct hv__gstage *g)
{
    struct stage_s x = {.forward_s = HUGE_VAL, .back_s = HUGE_VAL};
    bool split = (l->schedule.row->flags & HV_SCHEDULE_SPLIT) != 0;
    double more = (double)pl->replica->micro_batches / (double)pl->n_mb;
    for (size_t i = 0; i < pl->n_shapes; i++) {
        double both_s = g->backward_s[i], back_s = both_s, weights_s = 0;
        if (split) {
            both_s = fmin(both_s, g->input_grad_s[i] + g->weight_grad_s[i]);
            back_s = fmin(both_s, g->input_grad_s[i]);
            weights_s = both_s - back_s;
        }
        x.all_s += more * pl->n_of_shape[i] * (g->forward_s[i] + both_s);
        x.weights_s += more * pl->n_of_shape[i] * weights_s;
        x.forward_s = fmin(x.forward_s, g->forward_s[i]);
        x.back_s = fmin(x.back_s, back_s);
    }
    return x;
}

/** True where stages follow each other in a chain, in one direction, and passes run one by one. */
static bool is_plain(const struct hv__pipeline *pl)
{
    const struct hv_schedule *s = pl->schedule;
    bool chain = s->graph.n_edges == s->n_stages - 1;
    for (int32_t e = 0; e < s->graph.n_edges && chain; e++) {
        chain = s->graph.from[e] == e && s->graph.to[e] == e + 1;
    }
    return chain && pl->n_pipes == 1 && s->n_groups == 0 && !s->parts && s->units == NULL &&
           pl->shape_of_stage == NULL;
}

/**
 * The first forward of a rank comes behind those of the stages before its own, its last backward
 * before theirs; between these it runs all its passes, but for weight gradients that may come
 * later. O(global stages · shapes).
 */
bool hv__busy_too_long(struct hv__lowered *l, const struct hv__pipeline *pl)
{
    if (l->schedule.stale || !is_plain(pl)) {
        return false;
    }
    struct stage_s *rank = hv_arena_new(l->arena, struct stage_s, pl->n_ranks + 1);
    double *around = hv_arena_new(l->arena, double, 2 * pl->n_ranks + 1), fore_s = 0, back_s = 0;
    bool *seen = hv_arena_new(l->arena, bool, pl->n_ranks + 1);
    for (size_t g = 0; g < pl->n_gstages; g++) {
        size_t r = pl->gstages[g].rank;
        const struct stage_s x = stage_of(l, pl, &pl->gstages[g]);
        rank[r].all_s += x.all_s;
        rank[r].weights_s += x.weights_s;
        if (!seen[r]) {
            around[2 * r] = fore_s;
            around[2 * r + 1] = back_s;
            seen[r] = true;
        }
        fore_s += x.forward_s;
        back_s += x.back_s;
    }
    double least_s = 0;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        double behind_s = fmax(0, around[2 * r + 1] - rank[r].weights_s);
        least_s = fmax(least_s, around[2 * r] + rank[r].all_s + behind_s);
    }
    bool longer = least_s * (1 - GIVE_UP_REL) > l->give_up_s;
    l->iteration.least_s = longer ? least_s : 0;
    return longer;
}
